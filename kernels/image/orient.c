/* kernels/image/orient.c -- a picture turned and mirrored as EXIF's orientation says, in memory of the host. Moves
   pixels, computes none. */
#include "../../core/base/platform_internal.h"

#include "../warp/warp_internal.h"

#include <string.h>

#define GPSTI_ORIENT_TILE 32 /* pixels on a side; the rows of a tile in both pictures stay in the first cache */

/* Source pixel (x, y) is at begin + x * column + y * row, in bytes, where x and y count in the turned picture. */
typedef struct gpsti_orient_walk {
    const uint8_t* begin;
    ptrdiff_t column, row;
} gpsti_orient_walk;

/* 1..4 keep rows as rows, 5..8 make columns of them; each bit of the mirrored pairs begins at the other end. */
GPSTI_PRIVATE gpsti_orient_walk gpsti_orient_walk_of(const gpst_image* from, uint32_t orientation,
                                                     ptrdiff_t pixel_bytes) {
    const bool swaps = orientation >= 5;
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const ptrdiff_t pitch = (ptrdiff_t)from->pitch_bytes;
    const ptrdiff_t across = from_right ? -pixel_bytes : pixel_bytes, down = from_bottom ? -pitch : pitch;
    gpsti_orient_walk walk;
    walk.begin = (const uint8_t*)from->data;
    if (from_right)
        walk.begin += (ptrdiff_t)(from->width - 1) * pixel_bytes;
    if (from_bottom)
        walk.begin += (ptrdiff_t)(from->height - 1) * pitch;
    walk.column = swaps ? down : across;
    walk.row = swaps ? across : down;
    return walk;
}

/* Inlined with a constant, so that a pixel is moved by an instruction or two. */
GPSTI_INLINE void gpsti_orient_tile(gpsti_orient_walk walk, uint8_t* to, ptrdiff_t pitch, uint32_t width,
                                    uint32_t height, size_t pixel_bytes) {
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t* source = walk.begin + (ptrdiff_t)y * walk.row;
        uint8_t* target = to + (ptrdiff_t)y * pitch;
        for (uint32_t x = 0; x < width; x++, source += walk.column, target += pixel_bytes)
            memcpy(target, source, pixel_bytes);
    }
}

GPSTI_PRIVATE void gpsti_orient_any_tile(gpsti_orient_walk walk, uint8_t* to, ptrdiff_t pitch, uint32_t width,
                                         uint32_t height, size_t pixel_bytes) {
    switch (pixel_bytes) {
    case 1:
        gpsti_orient_tile(walk, to, pitch, width, height, 1);
        break;
    case 3:
        gpsti_orient_tile(walk, to, pitch, width, height, 3);
        break;
    case 4:
        gpsti_orient_tile(walk, to, pitch, width, height, 4);
        break;
    default:
        gpsti_orient_tile(walk, to, pitch, width, height, pixel_bytes);
    }
}

GPSTI_PRIVATE uint32_t gpsti_orient_side(uint32_t at, uint32_t size) {
    return size - at < GPSTI_ORIENT_TILE ? size - at : GPSTI_ORIENT_TILE;
}

GPSTI_PRIVATE void gpsti_orient_run(const gpst_image* from, uint32_t orientation, const gpst_image* to) {
    const size_t pixel_bytes = (size_t)gpsti_image_channels(from) * gpst_dtype_bytes(from->dtype);
    const ptrdiff_t pitch = (ptrdiff_t)to->pitch_bytes;
    const gpsti_orient_walk walk = gpsti_orient_walk_of(from, orientation, (ptrdiff_t)pixel_bytes);
    for (uint32_t y = 0; y < to->height; y += GPSTI_ORIENT_TILE)
        for (uint32_t x = 0; x < to->width; x += GPSTI_ORIENT_TILE) {
            gpsti_orient_walk tile = walk;
            tile.begin += (ptrdiff_t)x * walk.column + (ptrdiff_t)y * walk.row;
            gpsti_orient_any_tile(tile, (uint8_t*)to->data + (ptrdiff_t)y * pitch + x * pixel_bytes, pitch,
                                  gpsti_orient_side(x, to->width), gpsti_orient_side(y, to->height), pixel_bytes);
        }
}

GPST_API gpst_result gpst_image_orient(const gpst_image* from, uint32_t orientation, const gpst_image* to) {
    const char* const function = "gpst_image_orient";
    GPSTI_FAIL_IF(!from || !to, GPST_ERROR_ARGUMENT, "%s: from and to: required", function);
    GPSTI_FAIL_IF(orientation < 1 || orientation > 8, GPST_ERROR_ARGUMENT, "%s: orientation=%u: must be 1 to 8",
                  function, orientation);
    GPSTI_TRY(gpsti_image_check(from, function, "from"));
    GPSTI_TRY(gpsti_image_check(to, function, "to"));
    const gpst_image a = gpsti_image_resolved(from), b = gpsti_image_resolved(to);
    const bool swaps = orientation >= 5;
    GPSTI_FAIL_IF(gpsti_image_is_yuv(a.format) || a.layout == GPST_LAYOUT_CHW, GPST_ERROR_ARGUMENT,
                  "%s: from.format=%d, layout=%d: channels must be interleaved", function, (int)a.format,
                  (int)a.layout);
    GPSTI_FAIL_IF(b.format != a.format || b.dtype != a.dtype || b.layout != a.layout ||
                      gpsti_image_channels(&b) != gpsti_image_channels(&a),
                  GPST_ERROR_ARGUMENT, "%s: to: format, dtype and layout must be from's", function);
    GPSTI_FAIL_IF(b.width != (swaps ? a.height : a.width) || b.height != (swaps ? a.width : a.height),
                  GPST_ERROR_ARGUMENT, "%s: to.width=%u, height=%u: %ux%u with orientation %u is %ux%u", function,
                  b.width, b.height, a.width, a.height, orientation, swaps ? a.height : a.width,
                  swaps ? a.width : a.height);
    gpsti_orient_run(&a, orientation, &b);
    return GPST_OK;
}
