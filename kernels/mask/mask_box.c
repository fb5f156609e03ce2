/* kernels/mask/mask_box.c -- where masks and labels are and how many pixels they
   have, in one reading. Changes nothing. */
#include "../../core/base/platform_internal.h"

#include "mask_internal.h"

#include <string.h>

/* While it grows: columns and rows from first up to (not with) end; end 0 = empty. */
typedef struct gpsti_extent {
    uint32_t x_first, x_end, y_first, y_end;
    uint64_t area;
} gpsti_extent;

GPSTI_PRIVATE uint64_t gpsti_box_word(const uint8_t* p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Eight at a time: the top bit of every byte that is not zero, then their sum in the top byte of a product. */
GPSTI_PRIVATE uint32_t gpsti_box_count(const uint8_t* row, uint32_t width) {
    const uint64_t low_bits = 0x7f7f7f7f7f7f7f7fu, ones = 0x0101010101010101u;
    uint32_t n = 0, x = 0;
    for (; x + 8 <= width; x += 8) {
        const uint64_t word = gpsti_box_word(row + x);
        n += (uint32_t)((((((word & low_bits) + low_bits) | word) >> 7 & ones) * ones) >> 56);
    }
    for (; x < width; x++)
        n += row[x] != 0 ? 1u : 0u;
    return n;
}

GPST_API gpst_result gpst_mask_box(const gpst_image* mask, gpst_box* out) {
    gpst_image from = GPST_ZERO;
    gpsti_span span = GPST_ZERO;
    gpsti_extent extent = GPST_ZERO;
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_mask_box: out=NULL: required");
    GPSTI_TRY(gpsti_mask_check_mask("gpst_mask_box", "mask", mask, &from, &span));
    extent.x_first = from.width;
    extent.y_first = from.height;
    for (uint32_t y = 0; y < from.height; y++) {
        const uint8_t* row = (const uint8_t*)from.data + (ptrdiff_t)(y * from.pitch_bytes);
        const uint32_t n = gpsti_box_count(row, from.width);
        uint32_t first = 0, end = from.width;
        if (n == 0)
            continue;
        while (first < extent.x_first && row[first] == 0) /* no further than what is known */
            first++;
        while (end > extent.x_end && row[end - 1] == 0)
            end--;
        extent.x_first = first < extent.x_first ? first : extent.x_first;
        extent.x_end = end > extent.x_end ? end : extent.x_end;
        extent.y_first = y < extent.y_first ? y : extent.y_first;
        extent.y_end = y + 1;
        extent.area += n;
    }
    memset(out, 0, sizeof *out);
    if (extent.area == 0)
        return GPST_OK;
    out->x = extent.x_first, out->width = extent.x_end - extent.x_first;
    out->y = extent.y_first, out->height = extent.y_end - extent.y_first;
    out->area = extent.area;
    return GPST_OK;
}

/* ---- labels ---------------------------------------------------------------------------
   Labels come in runs: a run costs one step and one look at every eight bytes. */
GPSTI_PRIVATE uint32_t gpsti_box_run_u8(const uint8_t* row, uint32_t x, uint32_t width) {
    const uint8_t label = row[x];
    const uint64_t same = label * 0x0101010101010101u;
    while (x + 8 <= width && gpsti_box_word(row + x) == same)
        x += 8;
    while (x < width && row[x] == label)
        x++;
    return x;
}

GPSTI_PRIVATE uint32_t gpsti_box_run_u16(const uint8_t* row, uint32_t x, uint32_t width) {
    const uint16_t* labels = (const uint16_t*)(const void*)row;
    const uint16_t label = labels[x];
    const uint64_t same = label * 0x0001000100010001u;
    while (x + 4 <= width && gpsti_box_word(row + (size_t)x * 2) == same)
        x += 4;
    while (x < width && labels[x] == label)
        x++;
    return x;
}

/* A box of positive area grows by columns x up to end of row y. */
GPSTI_PRIVATE void gpsti_box_grow(gpst_box* box, uint32_t x, uint32_t end, uint32_t y) {
    const uint32_t old_end = box->x + box->width, first = x < box->x ? x : box->x;
    box->width = (end > old_end ? end : old_end) - first;
    box->x = first;
    box->height = y + 1 - box->y;
    box->area += end - x;
}

GPSTI_PRIVATE void gpsti_box_begin(gpst_box* box, uint32_t x, uint32_t end, uint32_t y) {
    box->x = x, box->y = y;
    box->width = end - x, box->height = 1;
    box->area = end - x;
}

GPST_API gpst_result gpst_mask_label_boxes(const gpst_labels* labels, gpst_box* out) {
    gpst_labels from = GPST_ZERO;
    gpsti_span span = GPST_ZERO;
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_mask_label_boxes: out=NULL: required");
    GPSTI_TRY(gpsti_labels_check("gpst_mask_label_boxes", "labels", labels, &from, &span));
    const bool wide = from.n_classes > 256;
    memset(out, 0, from.n_classes * sizeof *out);
    for (uint32_t y = 0; y < from.height; y++) {
        const uint8_t* row = (const uint8_t*)from.data + (ptrdiff_t)(y * from.pitch_bytes);
        for (uint32_t x = 0; x < from.width;) {
            const uint32_t label = wide ? ((const uint16_t*)(const void*)row)[x] : row[x];
            const uint32_t end = wide ? gpsti_box_run_u16(row, x, from.width) : gpsti_box_run_u8(row, x, from.width);
            if (label < from.n_classes && out[label].area)
                gpsti_box_grow(&out[label], x, end, y);
            else if (label < from.n_classes)
                gpsti_box_begin(&out[label], x, end, y);
            x = end;
        }
    }
    return GPST_OK;
}
