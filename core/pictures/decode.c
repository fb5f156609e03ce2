/* core/pictures/decode.c -- what a file asks for, against its limits, and its pixels where they belong. The formats are
   other files' of this folder. */
#include "../base/platform_internal.h"

#include "decode_internal.h"

#include <string.h>

#define GPSTI_DECODE_MOST_PIXELS ((uint64_t)1 << 29)
#define GPSTI_DECODE_SCANS 16 /* over as many pixels as a picture may have; the usual progression has 10 */
#define GPSTI_DECODE_SMALL_BYTES ((uint64_t)256 << 20)

/* ---- how much a file may ask for: a few bytes can stand for gigabytes ------------------------------ */

GPSTI_INTERN gpst_result gpsti_decode_check(const gpst_decode_desc* desc, const char* where) {
    GPSTI_FAIL_IF(desc && ((int)desc->codec < 0 || desc->codec > GPST_CODEC_GPU), GPST_ERROR_ARGUMENT,
                  "%s: codec=%d: unknown", where, (int)desc->codec);
    GPSTI_FAIL_IF(desc && ((int)desc->on_damage < 0 || desc->on_damage > GPST_DAMAGE_KEEP), GPST_ERROR_ARGUMENT,
                  "%s: on_damage=%d: unknown", where, (int)desc->on_damage);
    return GPST_OK;
}

GPSTI_PRIVATE uint64_t gpsti_decode_most_bytes(const gpst_decode_desc* desc) {
    gpsti_limits limits;
    if (desc && desc->max_bytes > 0)
        return desc->max_bytes;
    gpsti_limits_query(&limits);
    return limits.ram_bytes / 4 > GPSTI_DECODE_SMALL_BYTES ? limits.ram_bytes / 4 : GPSTI_DECODE_SMALL_BYTES;
}

GPSTI_INTERN bool gpsti_decode_fits(const gpst_decode_desc* desc, uint64_t bytes) {
    return ((!desc || desc->max_bytes == 0) && bytes <= GPSTI_DECODE_SMALL_BYTES) ||
           bytes <= gpsti_decode_most_bytes(desc);
}

GPSTI_PRIVATE uint64_t gpsti_decode_most_pixels(const gpst_decode_desc* desc) {
    return desc && desc->max_pixels > 0 ? desc->max_pixels : GPSTI_DECODE_MOST_PIXELS;
}

GPSTI_INTERN gpst_result gpsti_decode_check_pixels(const gpst_decode_desc* desc, const char* name, uint32_t width,
                                                   uint32_t height) {
    const uint64_t pixels = (uint64_t)width * height, most = gpsti_decode_most_pixels(desc);
    GPSTI_FAIL_IF(pixels > most, GPST_ERROR_BUDGET, "%s: %ux%u are %llu pixels; at most %llu here (max_pixels)", name,
                  width, height, (unsigned long long)pixels, (unsigned long long)most);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_decode_check_jpeg(const gpst_decode_desc* desc, const gpst_jpeg_info* info,
                                                 uint64_t file_bytes) {
    const uint64_t pixels = (uint64_t)info->width * info->height, most = gpsti_decode_most_pixels(desc);
    const uint64_t bytes = file_bytes + pixels * gpst_format_channels(info->format) + info->decoder_bytes;
    GPSTI_TRY(gpsti_decode_check_pixels(desc, "JPEG", info->width, info->height));
    GPSTI_FAIL_IF(info->n_scans > 1 && info->n_scans * pixels / GPSTI_DECODE_SCANS > most, GPST_ERROR_BUDGET,
                  "JPEG: %llu scans over %ux%u pixels; at most %llu at this size (max_pixels)",
                  (unsigned long long)info->n_scans, info->width, info->height,
                  (unsigned long long)(most * GPSTI_DECODE_SCANS / pixels));
    GPSTI_FAIL_IF(!gpsti_decode_fits(desc, bytes), GPST_ERROR_BUDGET,
                  "JPEG: %ux%u pixels take %llu bytes to decode; at most %llu here (max_bytes)", info->width,
                  info->height, (unsigned long long)bytes, (unsigned long long)gpsti_decode_most_bytes(desc));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_decode_placement(const gpst_decode_desc* desc, const gpst_metadata* metadata,
                                                size_t bytes, const gpst_jpeg_info* info, gpst_placement* out) {
    gpst_placement_desc how = GPST_ZERO;
    gpst_image stored = GPST_ZERO;
    if (desc)
        how = desc->placement;
    how.file_bytes = bytes;
    stored.width = info->width, stored.height = info->height;
    GPSTI_TRY(gpst_placement_of(&how, metadata, &stored, out));
    const uint64_t placed_pixels = (uint64_t)out->width * out->height;
    const uint64_t pixels = placed_pixels + (out->orientation != 1 ? (uint64_t)info->width * info->height : 0);
    const uint64_t needed_bytes = bytes + pixels * gpst_format_channels(info->format) + info->decoder_bytes;
    GPSTI_TRY(gpsti_decode_check_pixels(desc, "JPEG", out->width, out->height));
    GPSTI_FAIL_IF(!gpsti_decode_fits(desc, needed_bytes), GPST_ERROR_BUDGET,
                  "JPEG: %ux%u pixels, turned or placed in %ux%u, take %llu bytes; at most %llu here (max_bytes)",
                  info->width, info->height, out->width, out->height, (unsigned long long)needed_bytes,
                  (unsigned long long)gpsti_decode_most_bytes(desc));
    return GPST_OK;
}

/* ---- a whole file ------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_decode_plan_jpeg(const gpst_decode_desc* desc, const void* data, size_t bytes,
                                                 gpsti_decode_plan* out) {
    gpst_metadata metadata;
    gpst_jpeg_info info;
    GPSTI_TRY(gpst_jpeg_read_header(data, bytes, &info));
    GPSTI_TRY(gpsti_decode_check_jpeg(desc, &info, bytes));
    GPSTI_TRY(gpst_metadata_read(data, bytes, &metadata));
    GPSTI_TRY(gpsti_decode_placement(desc, &metadata, bytes, &info, &out->placement));
    out->decoder_bytes = info.decoder_bytes;
    return out->placement.orientation != 1 ? gpst_image_bytes(&out->stored, &out->turned_bytes) : GPST_OK;
}

/* Files of pixels have no metadata: where a sphere is asked for, only their shape says whether they are one. */
GPSTI_PRIVATE gpst_result gpsti_decode_plan_plain(const gpst_decode_desc* desc, gpsti_decode_plan* out) {
    const gpst_metadata none = GPST_ZERO;
    GPSTI_TRY(gpsti_decode_check_pixels(desc, out->kind == GPST_FILE_PNM ? "PNM" : ".npy", out->stored.width,
                                        out->stored.height));
    if (out->offset % gpst_dtype_bytes(out->stored.dtype) != 0)
        out->offset = 0;
    return gpst_placement_of(desc ? &desc->placement : NULL, &none, &out->stored, &out->placement);
}

GPSTI_INTERN gpst_result gpsti_decode_plan_of(const gpst_decode_desc* desc, const void* data, size_t bytes,
                                              gpsti_decode_plan* out) {
    memset(out, 0, sizeof *out);
    GPSTI_TRY(gpst_picture_read_header(data, bytes, &out->kind, &out->stored, &out->offset));
    GPSTI_TRY(out->kind == GPST_FILE_JPEG ? gpsti_decode_plan_jpeg(desc, data, bytes, out)
                                          : gpsti_decode_plan_plain(desc, out));
    out->picture = out->stored;
    out->picture.width = out->placement.width;
    out->picture.height = out->placement.height;
    out->picture.pitch_bytes = (int64_t)gpst_image_row_bytes(&out->picture);
    return gpst_image_bytes(&out->picture, &out->picture_bytes);
}

GPSTI_INTERN gpst_result gpsti_decode_run(const gpst_decode_desc* desc, const gpsti_decode_plan* plan, const void* data,
                                          size_t bytes, gpst_jpeg* jpeg, void* pixels, void* turned,
                                          gpst_jpeg_note* note) {
    gpst_image picture = plan->picture, window, stored = plan->stored;
    gpst_jpeg_decode_desc how = GPST_ZERO;
    memset(note, 0, sizeof *note);
    picture.data = pixels;
    if (plan->kind != GPST_FILE_JPEG)
        return gpst_picture_decode(data, bytes, &picture);
    gpst_placement_window(&plan->placement, &picture, &window);
    stored.data = turned;
    how.on_damage = desc ? desc->on_damage : GPST_DAMAGE_FAIL;
    GPSTI_TRY(gpst_jpeg_decode(jpeg, data, bytes, &how, plan->turned_bytes > 0 ? &stored : &window, note));
    return plan->turned_bytes > 0 ? gpst_image_orient(&stored, plan->placement.orientation, &window) : GPST_OK;
}
