/* core/pictures/pictures.c -- files into pixels, and pixels into files. The formats themselves are in pnm.c, npy.c and
   jpeg_header.c. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"
#include "pictures_internal.h"

#include <string.h>

/* ---- in ----------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_picture_read_jpeg(const uint8_t* data, size_t bytes, gpst_image* shape) {
    gpsti_jpeg_header header;
    GPSTI_TRY(gpsti_jpeg_read(data, bytes, &header));
    shape->width = header.info.width;
    shape->height = header.info.height;
    shape->format = header.info.format;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_picture_refuse(const uint8_t* data, size_t bytes) {
    const char* const name = gpst_picture_name(data, bytes);
    GPSTI_FAIL_IF(!name[0], GPST_ERROR_FORMAT, "not a PNM, PAM, .npy or JPEG file by its first bytes");
    return gpsti_fail(GPST_ERROR_UNSUPPORTED,
                      "the file is %s, which is not read: convert it first (JPEG, PNM, PAM and .npy are read)", name);
}

GPSTI_PRIVATE gpst_result gpsti_picture_read(const uint8_t* data, size_t bytes, gpst_file_kind* kind,
                                             gpst_image* shape, gpsti_plain* plain) {
    GPSTI_FAIL_IF(!data || bytes == 0, GPST_ERROR_TRUNCATED, "the file is empty");
    *kind = gpsti_pnm_is(data, bytes)    ? GPST_FILE_PNM
            : gpsti_npy_is(data, bytes)  ? GPST_FILE_NPY
            : gpsti_jpeg_is(data, bytes) ? GPST_FILE_JPEG
                                         : GPST_FILE_UNKNOWN;
    if (*kind == GPST_FILE_UNKNOWN)
        return gpsti_picture_refuse(data, bytes);
    shape->dtype = GPST_DTYPE_U8;
    shape->layout = GPST_LAYOUT_HWC;
    GPSTI_TRY(*kind == GPST_FILE_PNM   ? gpsti_pnm_read_header(data, bytes, shape, plain)
              : *kind == GPST_FILE_NPY ? gpsti_npy_read_header(data, bytes, shape, plain)
                                       : gpsti_picture_read_jpeg(data, bytes, shape));
    shape->pitch_bytes = (int64_t)gpst_image_row_bytes(shape);
    return GPST_OK;
}

GPST_API gpst_result gpst_picture_read_header(const void* data, size_t bytes, gpst_file_kind* kind, gpst_image* shape,
                                              size_t* offset_bytes) {
    gpsti_plain plain = GPST_ZERO;
    GPSTI_FAIL_IF((!data && bytes > 0) || !kind || !shape || !offset_bytes, GPST_ERROR_ARGUMENT,
                  "gpst_picture_read_header: data, kind, shape and offset_bytes: required");
    *kind = GPST_FILE_UNKNOWN;
    *offset_bytes = 0;
    memset(shape, 0, sizeof *shape);
    const gpst_result result = gpsti_picture_read((const uint8_t*)data, bytes, kind, shape, &plain);
    if (GPST_FAILED(result))
        memset(shape, 0, sizeof *shape);
    else if (*kind != GPST_FILE_JPEG && gpsti_plain_is_native(&plain, shape))
        *offset_bytes = plain.offset;
    return result;
}

GPST_API gpst_result gpst_picture_decode(const void* data, size_t bytes, const gpst_image* image) {
    const char* function = "gpst_picture_decode";
    gpst_image shape = GPST_ZERO;
    gpsti_plain plain = GPST_ZERO;
    gpst_file_kind kind = GPST_FILE_UNKNOWN;
    size_t extent = 0;
    GPSTI_FAIL_IF((!data && bytes > 0) || !image || !image->data, GPST_ERROR_ARGUMENT,
                  "%s: data, image and its data: required", function);
    GPSTI_TRY(gpsti_image_extent(image, function, "image", &extent));
    const gpst_image to = gpsti_image_resolved(image);
    GPSTI_TRY(gpsti_picture_read((const uint8_t*)data, bytes, &kind, &shape, &plain));
    GPSTI_FAIL_IF(kind == GPST_FILE_JPEG, GPST_ERROR_ARGUMENT, "%s: a JPEG file: gpst_jpeg_decode reads it", function);
    GPSTI_FAIL_IF(to.width != shape.width || to.height != shape.height || to.format != shape.format ||
                      to.dtype != shape.dtype || to.layout != GPST_LAYOUT_HWC,
                  GPST_ERROR_ARGUMENT, "%s: image: not of the shape that the header of the file (%ux%u) says", function,
                  shape.width, shape.height);
    gpsti_plain_decode(&plain, (const uint8_t*)data, &to);
    return GPST_OK;
}

/* ---- out ------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE bool gpsti_picture_can_hold(gpst_file_kind kind, const gpst_image* image) {
    if (kind == GPST_FILE_NPY)
        return !gpsti_image_is_yuv(image->format);
    return image->format != GPST_FORMAT_TENSOR && !gpsti_image_is_yuv(image->format) &&
           (image->dtype == GPST_DTYPE_U8 || image->dtype == GPST_DTYPE_U16) && image->layout == GPST_LAYOUT_HWC &&
           image->width <= GPST_MAX_SIDE && image->height <= GPST_MAX_SIDE;
}

/* PNM knows RGB only, */
GPSTI_PRIVATE void gpsti_picture_swap_row(uint8_t* row, size_t row_bytes, size_t pixel_bytes, size_t bytes_each) {
    for (size_t i = 0; i < row_bytes; i += pixel_bytes)
        for (size_t b = i; b < i + bytes_each; b++) {
            const uint8_t first = row[b];
            row[b] = row[b + 2 * bytes_each];
            row[b + 2 * bytes_each] = first;
        }
}

/* and the high byte first. */
GPSTI_PRIVATE void gpsti_picture_order_row(uint8_t* row, size_t row_bytes) {
    for (size_t i = 0; i < row_bytes; i += 2) {
        uint16_t value;
        memcpy(&value, row + i, sizeof value);
        row[i] = (uint8_t)(value >> 8);
        row[i + 1] = (uint8_t)value;
    }
}

GPSTI_PRIVATE void gpsti_picture_write(gpst_file_kind kind, const gpst_image* image, uint8_t* out) {
    const size_t row_bytes = gpst_image_row_bytes(image), bytes_each = gpst_dtype_bytes(image->dtype);
    const size_t pixel_bytes = gpsti_image_channels(image) * bytes_each;
    const bool swaps = kind == GPST_FILE_PNM &&
                       (image->format == GPST_FORMAT_BGR || image->format == GPST_FORMAT_BGRA);
    for (size_t y = 0; y < gpsti_picture_rows(image); y++) {
        memcpy(out + row_bytes * y, (const uint8_t*)image->data + (ptrdiff_t)(image->pitch_bytes * (int64_t)y),
               row_bytes);
        if (swaps)
            gpsti_picture_swap_row(out + row_bytes * y, row_bytes, pixel_bytes, bytes_each);
        if (kind == GPST_FILE_PNM && bytes_each == 2)
            gpsti_picture_order_row(out + row_bytes * y, row_bytes);
    }
}

GPST_API gpst_result gpst_picture_encode(gpst_file_kind kind, const gpst_image* image, void* out, size_t* bytes) {
    const char* function = "gpst_picture_encode";
    char header[GPSTI_NPY_HEADER_BYTES];
    size_t extent = 0;
    GPSTI_FAIL_IF(!image || !bytes, GPST_ERROR_ARGUMENT, "%s: image and bytes: required", function);
    GPSTI_FAIL_IF(kind == GPST_FILE_JPEG, GPST_ERROR_ARGUMENT, "%s: kind=JPEG: gpst_jpeg_encode makes it", function);
    GPSTI_FAIL_IF(kind != GPST_FILE_PNM && kind != GPST_FILE_NPY, GPST_ERROR_ARGUMENT, "%s: kind=%d: unknown", function,
                  (int)kind);
    GPSTI_TRY(gpsti_image_extent(image, function, "image", &extent));
    const gpst_image from = gpsti_image_resolved(image);
    GPSTI_FAIL_IF(!gpsti_picture_can_hold(kind, &from), GPST_ERROR_UNSUPPORTED,
                  "%s: image: PNM holds u8 and u16 with interleaved colours and sides up to %d, NPY all but planes of "
                  "chroma",
                  function, GPST_MAX_SIDE);
    const size_t header_bytes =
        kind == GPST_FILE_PNM ? gpsti_pnm_write_header(&from, header) : gpsti_npy_write_header(&from, header);
    const size_t room = *bytes;
    *bytes = header_bytes + gpsti_picture_bytes(&from);
    if (!out)
        return GPST_OK;
    GPSTI_FAIL_IF(!from.data, GPST_ERROR_ARGUMENT, "%s: image.data=NULL: required", function);
    GPSTI_FAIL_IF(room < *bytes, GPST_ERROR_ARGUMENT, "%s: bytes=%llu: %llu are needed", function,
                  (unsigned long long)room, (unsigned long long)*bytes);
    memcpy(out, header, header_bytes);
    gpsti_picture_write(kind, &from, (uint8_t*)out + header_bytes);
    return GPST_OK;
}
