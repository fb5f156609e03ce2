/* core/pictures/plain.c -- pixels that lie in a file one after the other: as those of a picture in memory, or to be
   converted on the way there. Knows no header. */
#include "../base/platform_internal.h"

#include "pictures_internal.h"

#include <string.h>

GPSTI_INTERN bool gpsti_plain_big_machine(void) {
    const uint16_t probe = 1;
    return *(const uint8_t*)&probe == 0;
}

GPSTI_INTERN bool gpsti_plain_is_native(const gpsti_plain* self, const gpst_image* shape) {
    return self->values == GPSTI_VALUES_AS_THEY_ARE && !self->columns &&
           self->n_channels == gpst_format_channels(shape->format) &&
           (self->bytes_each == 1 || self->big == gpsti_plain_big_machine());
}

/* Whether a file of pixels ends with them is its format's to say. */
GPSTI_INTERN gpst_result gpsti_plain_check(const gpsti_plain* self, const char* name, const gpst_image* shape,
                                           size_t bytes, bool may_be_longer) {
    const uint64_t found = bytes - self->offset;
    const uint64_t wanted = (uint64_t)shape->width * shape->height * self->n_channels * self->bytes_each;
    GPSTI_FAIL_IF(found < wanted || (found > wanted && !may_be_longer),
                  found < wanted ? GPST_ERROR_TRUNCATED : GPST_ERROR_FORMAT,
                  "%s: %llu bytes of pixels; %ux%u pixels are %llu", name, (unsigned long long)found, shape->width,
                  shape->height, (unsigned long long)wanted);
    return GPST_OK;
}

/* ---- one value ------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE uint64_t gpsti_plain_load(const gpsti_plain* self, const uint8_t* at) {
    uint64_t value = 0;
    if (self->bytes_each == 2)
        return self->big ? (uint64_t)at[0] << 8 | at[1] : (uint64_t)at[1] << 8 | at[0];
    for (uint32_t i = 0; i < self->bytes_each; i++)
        value = value << 8 | at[self->big ? i : self->bytes_each - 1 - i];
    return value;
}

/* 0..max_value to all that the type holds, to the nearest, halves up. What is above is full. */
GPSTI_PRIVATE uint64_t gpsti_plain_scale(const gpsti_plain* self, uint64_t value) {
    const uint64_t full = self->bytes_each == 1 ? 255 : 65535;
    return value >= self->max_value ? full : (value * full + self->max_value / 2) / self->max_value;
}

GPSTI_PRIVATE float gpsti_plain_float(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

GPSTI_PRIVATE void gpsti_plain_convert(const gpsti_plain* self, uint64_t value, uint8_t* to) {
    float real;
    uint32_t four;
    uint16_t two;
    switch (self->values) {
    case GPSTI_VALUES_BOOL:
        to[0] = value ? 255 : 0;
        return;
    case GPSTI_VALUES_DOUBLE:
        real = gpsti_plain_float(value);
        memcpy(to, &real, sizeof real);
        return;
    case GPSTI_VALUES_SCALED:
        value = gpsti_plain_scale(self, value);
        break;
    case GPSTI_VALUES_AS_THEY_ARE:
        break;
    }
    to[0] = (uint8_t)value;
    two = (uint16_t)value;
    four = (uint32_t)value;
    if (self->bytes_each > 1)
        memcpy(to, self->bytes_each == 2 ? (const void*)&two : (const void*)&four, self->bytes_each);
}

/* ---- a picture ------------------------------------------------------------------------------------------ */

/* What most files of 16 bits need; the compiler takes many at a time. */
GPSTI_PRIVATE void gpsti_plain_swap_words(const uint8_t* from, uint8_t* to, size_t n) {
    for (size_t i = 0; i < 2 * n; i += 2) {
        to[i] = from[i + 1];
        to[i + 1] = from[i];
    }
}

GPSTI_PRIVATE void gpsti_plain_row(const gpsti_plain* self, const uint8_t* from, const gpst_image* image, uint8_t* to) {
    const uint32_t n_channels = gpst_format_channels(image->format), bytes_out = gpst_dtype_bytes(image->dtype);
    const size_t each = self->bytes_each, n = self->n_channels;
    const size_t step_x = each * (self->columns ? image->height : n);
    const size_t step_c = each * (self->columns ? (size_t)image->width * image->height : 1);
    for (uint32_t x = 0; x < image->width; x++)
        for (uint32_t c = 0; c < n_channels; c++, to += bytes_out) {
            const size_t channel = n == 2 ? c / 3 : c; /* gray three times, alpha */
            gpsti_plain_convert(self, gpsti_plain_load(self, from + step_x * x + step_c * channel), to);
        }
}

GPSTI_INTERN void gpsti_plain_decode(const gpsti_plain* self, const uint8_t* data, const gpst_image* image) {
    const size_t n = (size_t)image->width * self->n_channels;
    const bool native = gpsti_plain_is_native(self, image);
    const bool swaps = self->values == GPSTI_VALUES_AS_THEY_ARE && self->bytes_each == 2 && !self->columns &&
                       self->n_channels == gpst_format_channels(image->format);
    const size_t step_y = self->bytes_each * (self->columns ? 1 : n);
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t* const from = data + self->offset + step_y * y;
        uint8_t* const to = (uint8_t*)image->data + (ptrdiff_t)(image->pitch_bytes * (int64_t)y);
        if (native)
            memcpy(to, from, n * self->bytes_each);
        else if (swaps)
            gpsti_plain_swap_words(from, to, n);
        else
            gpsti_plain_row(self, from, image, to);
    }
}
