/* core/pictures/placement.c -- how the pixels of a file become the picture that is used. Decodes nothing. */
#include "../base/platform_internal.h"

#include "pictures_internal.h"
#include "placement.h"

#include <string.h>

/* Within a percent. */
GPSTI_PRIVATE bool gpsti_placement_is_sphere(uint32_t width, uint32_t height) {
    const uint64_t w = width, twice = 2 * (uint64_t)height, off = w > twice ? w - twice : twice - w;
    return off * 100 <= w;
}

/* value * to / from, to the nearest. */
GPSTI_PRIVATE uint64_t gpsti_placement_scale(uint32_t value, uint32_t to, uint32_t from) {
    return ((uint64_t)value * to + from / 2) / from;
}

/* Does GPano say which part of a sphere it is? */
GPSTI_PRIVATE bool gpsti_placement_has_crop(const gpst_metadata* metadata) {
    return metadata->full_width > 0 || metadata->full_height > 0 || metadata->crop_width > 0 ||
           metadata->crop_height > 0 || metadata->crop_left > 0 || metadata->crop_top > 0;
}

/* Why GPano's numbers cannot be used; "": they can. */
GPSTI_PRIVATE void gpsti_placement_find_fault(const gpst_metadata* metadata, char* out, size_t room) {
    static const char* const names[4] = {"FullPanoWidthPixels", "FullPanoHeightPixels", "CroppedAreaImageWidthPixels",
                                         "CroppedAreaImageHeightPixels"};
    const uint32_t sizes[4] = {metadata->full_width, metadata->full_height, metadata->crop_width,
                               metadata->crop_height};
    const double angles[3] = {metadata->heading, metadata->pitch, metadata->roll};
    gpsti_copy_text(out, room, metadata->gpano_fault);
    for (int i = 0; i < 3 && !out[0]; i++)
        if (!(angles[i] >= -1e9 && angles[i] <= 1e9))
            gpsti_format(out, room, "%g is no angle", angles[i]);
    for (int i = 0; i < 4 && !out[0] && gpsti_placement_has_crop(metadata); i++)
        if (sizes[i] == 0)
            gpsti_format(out, room, "%s is missing or 0", names[i]);
    if (!out[0] && (metadata->crop_width > metadata->full_width || metadata->crop_height > metadata->full_height ||
                    metadata->crop_left > metadata->full_width - metadata->crop_width ||
                    metadata->crop_top > metadata->full_height - metadata->crop_height))
        gpsti_format(out, room, "%ux%u at %u,%u does not fit into %ux%u", metadata->crop_width, metadata->crop_height,
                     metadata->crop_left, metadata->crop_top, metadata->full_width, metadata->full_height);
}

GPSTI_PRIVATE gpst_result gpsti_placement_crop(const gpst_metadata* metadata, gpst_placement* out) {
    const uint32_t width = out->turned_width, height = out->turned_height;
    const uint64_t full_width = gpsti_placement_scale(metadata->full_width, width, metadata->crop_width);
    const uint64_t full_height = gpsti_placement_scale(metadata->full_height, height, metadata->crop_height);
    GPSTI_FAIL_IF(full_width > GPST_MAX_SIDE || full_height > GPST_MAX_SIDE, GPST_ERROR_UNSUPPORTED,
                  "GPano: the picture is %ux%u of a sphere of %llux%llu; sides are up to %d", width, height,
                  (unsigned long long)full_width, (unsigned long long)full_height, GPST_MAX_SIDE);
    uint64_t left = gpsti_placement_scale(metadata->crop_left, width, metadata->crop_width);
    uint64_t top = gpsti_placement_scale(metadata->crop_top, height, metadata->crop_height);
    left = left <= full_width - width ? left : full_width - width; /* each was rounded by itself */
    top = top <= full_height - height ? top : full_height - height;
    if (full_width == width && full_height == height)
        return GPST_OK;
    out->width = (uint32_t)full_width, out->height = (uint32_t)full_height;
    out->left = (uint32_t)left, out->top = (uint32_t)top;
    out->moves = true;
    gpsti_format(out->note, sizeof out->note, "GPano: %ux%u placed at %u,%u of a sphere of %ux%u", width, height,
                 out->left, out->top, out->width, out->height);
    return GPST_OK;
}

/* Deflate packs 1032 bytes into one at most, and a pixel has a bit at least: no file holds more pixels in so few bytes,
   but for those of one colour. */
#define GPSTI_PLACEMENT_PIXELS_A_BYTE 8256

GPSTI_PRIVATE gpst_result gpsti_placement_judge(const gpst_placement_desc* desc, const gpst_placement* placement) {
    const uint64_t pixels = (uint64_t)placement->width * placement->height,
                   stored = (uint64_t)placement->turned_width * placement->turned_height;
    GPSTI_FAIL_IF(desc->file_bytes > 0 && pixels > stored && pixels / GPSTI_PLACEMENT_PIXELS_A_BYTE > desc->file_bytes,
                  GPST_ERROR_TRUNCATED, "GPano: %llu bytes cannot hold a part of a sphere of %ux%u",
                  (unsigned long long)desc->file_bytes, placement->width, placement->height);
    return GPST_OK;
}

/* Modulo 360; within it as it is. */
GPSTI_PRIVATE double gpsti_placement_angle(double angle) { return angle - 360.0 * (double)(int64_t)(angle / 360.0); }

GPSTI_PRIVATE void gpsti_placement_add(gpst_placement* out, const char* sentence) {
    const size_t used = strlen(out->note);
    if (sentence[0])
        gpsti_format(out->note + used, sizeof out->note - used, "%s%s", used > 0 ? "; " : "", sentence);
}

GPSTI_PRIVATE void gpsti_placement_pose(const gpst_metadata* metadata, gpst_placement* out) {
    out->pose.yaw = gpsti_placement_angle(metadata->heading);
    out->pose.pitch = gpsti_placement_angle(metadata->pitch);
    out->pose.roll = gpsti_placement_angle(metadata->roll);
    out->has_pose = out->pose.yaw < 0.0 || out->pose.yaw > 0.0 || out->pose.pitch < 0.0 || out->pose.pitch > 0.0 ||
                    out->pose.roll < 0.0 || out->pose.roll > 0.0;
    if (out->has_pose)
        gpsti_placement_add(out, "GPano: the camera was turned: views look into the world");
}

GPSTI_PRIVATE gpst_result gpsti_placement_sphere(const gpst_metadata* metadata, bool ignore_pose, gpst_placement* out) {
    char fault[GPST_GPANO_FAULT_BYTES] = "";
    const bool has_crop = metadata->has_sphere && gpsti_placement_has_crop(metadata);
    if (metadata->projection[0] && !metadata->has_sphere) {
        gpsti_format(out->note, sizeof out->note, "GPano: its projection is %s: taken for a whole sphere",
                     metadata->projection);
        return GPST_OK;
    }
    if (metadata->has_sphere || metadata->gpano_fault[0])
        gpsti_placement_find_fault(metadata, fault, sizeof fault);
    if (fault[0]) {
        gpsti_format(out->note, sizeof out->note, "GPano is ignored: %s: taken for a whole sphere", fault);
        return GPST_OK;
    }
    if (has_crop)
        GPSTI_TRY(gpsti_placement_crop(metadata, out));
    else if (!gpsti_placement_is_sphere(out->width, out->height))
        gpsti_format(out->note, sizeof out->note,
                     "%ux%u is not 2:1, and no GPano says which part of a sphere it is: taken for a whole one",
                     out->width, out->height);
    if (metadata->has_sphere && !ignore_pose)
        gpsti_placement_pose(metadata, out);
    return GPST_OK;
}

GPST_API gpst_result gpst_placement_of(const gpst_placement_desc* desc, const gpst_metadata* metadata,
                                       const gpst_image* stored, gpst_placement* out) {
    if (out)
        memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!metadata || !stored || !out, GPST_ERROR_ARGUMENT,
                  "gpst_placement_of: metadata, stored and out: required");
    const uint32_t said = metadata->orientation;
    out->orientation = said >= 1 && said <= 8 && !(desc && desc->ignore_orientation) ? said : 1;
    out->moves = out->orientation != 1;
    out->width = out->turned_width = out->orientation >= 5 ? stored->height : stored->width;
    out->height = out->turned_height = out->orientation >= 5 ? stored->width : stored->height;
    const bool sphere = desc && desc->sphere;
    gpst_result result = sphere ? gpsti_placement_sphere(metadata, desc->ignore_pose, out) : GPST_OK;
    if (sphere && !GPST_FAILED(result))
        result = gpsti_placement_judge(desc, out);
    if (GPST_FAILED(result))
        memset(out, 0, sizeof *out);
    else
        gpsti_placement_add(out, metadata->note);
    return result;
}

GPST_API void gpst_placement_window(const gpst_placement* placement, const gpst_image* picture, gpst_image* window) {
    if (window && (!placement || !picture))
        memset(window, 0, sizeof *window);
    if (!placement || !picture || !window)
        return;
    const gpst_image whole = gpsti_image_resolved(picture);
    const size_t pixel_bytes = (size_t)gpst_format_channels(whole.format) * gpst_dtype_bytes(whole.dtype);
    *window = whole;
    if (placement->turned_width == whole.width && placement->turned_height == whole.height)
        return;
    for (uint32_t y = 0; y < whole.height; y++)
        memset((uint8_t*)whole.data + (ptrdiff_t)y * (ptrdiff_t)whole.pitch_bytes, 0, whole.width * pixel_bytes);
    window->data =
        (uint8_t*)whole.data + (ptrdiff_t)placement->top * (ptrdiff_t)whole.pitch_bytes + placement->left * pixel_bytes;
    window->width = placement->turned_width;
    window->height = placement->turned_height;
}
