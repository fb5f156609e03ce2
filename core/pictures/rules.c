/* core/pictures/rules.c -- what holds for pictures in files of every kind. */
#include "../base/platform_internal.h"

#include "pictures_internal.h"

GPSTI_INTERN gpst_result gpsti_picture_check_sides(const char* name, uint64_t width, uint64_t height) {
    GPSTI_FAIL_IF(width < 1 || width > GPST_MAX_SIDE || height < 1 || height > GPST_MAX_SIDE,
                  width && height ? GPST_ERROR_UNSUPPORTED : GPST_ERROR_FORMAT,
                  "%s: the header says %llux%llu pixels; sides of 1 to %d are possible", name,
                  (unsigned long long)width, (unsigned long long)height, GPST_MAX_SIDE);
    return GPST_OK;
}

GPSTI_INTERN size_t gpsti_picture_rows(const gpst_image* image) {
    return (size_t)image->height * (image->layout == GPST_LAYOUT_CHW ? gpsti_image_channels(image) : 1);
}

GPSTI_INTERN size_t gpsti_picture_bytes(const gpst_image* image) {
    return gpst_image_row_bytes(image) * gpsti_picture_rows(image);
}
