/* kernels/warp/warp_jpeg_internal.h -- the reference of sources that are the planes of a JPEG file: the pixel that
   libjpeg-turbo makes of them with its defaults ("fancy" upsampling, colours in integers), to the last bit. Plain C for
   the host and for devices. */
#ifndef GPSTI_WARP_JPEG_INTERNAL_H
#define GPSTI_WARP_JPEG_INTERNAL_H

#include "warp_map_internal.h"

/* Chroma is a pair: Cb in the low 16 bits, Cr in the high ones. No sum of either is more than 16 x 255 + 8, so both are
   computed at once. A pixel ahead of its colours has Cb, Y and Cr from the lowest byte up. */
#define GPSTI_JPEG_PAIR(value) ((uint32_t)(value) * 0x10001u)
#define GPSTI_JPEG_BYTES 0x00ff00ffu
#define GPSTI_JPEG_BLACK 0x00800080u

/* Two pixels of an axis take three samples at most: the one that they are both near to, or that lies between them, and
   its neighbours. Where a sample is a single pixel's there are two. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_ycc_first(int32_t at, uint32_t pixels) {
    return pixels == 2 ? ((at + 1) >> 1) - 1 : at;
}

/* What is added ahead of the shift that rounds. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_bias(int32_t x, int32_t y, uint32_t across, uint32_t down) {
    if (across == 2)
        return down == 2 ? GPSTI_JPEG_PAIR(8 - (x & 1)) : GPSTI_JPEG_PAIR(1 + (x & 1));
    return GPSTI_JPEG_PAIR(1 + (y & 1));
}

GPSTI_DEVICE GPSTI_PRIVATE GPSTI_ALWAYS_INLINE uint32_t gpsti_ycc_round(uint32_t sum, int32_t x, int32_t y,
                                                                          uint32_t across, uint32_t down) {
    if (across * down == 1)
        return sum;
    return ((sum + gpsti_ycc_bias(x, y, across, down)) >> (across * down == 4 ? 4 : 2)) & GPSTI_JPEG_BYTES;
}

/* ---- a pixel ----------------------------------------------------------------------------- */
/* The sample of pixel at on an axis, and the one on the pixel's other side, which at the edge is the same. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_ycc_samples(int32_t at, uint32_t pixels, int32_t size, int32_t* nearer,
                                                  int32_t* other) {
    *nearer = pixels == 2 ? at >> 1 : at;
    *other = pixels == 1 ? at : (at & 1) != 0 ? *nearer + 1 : *nearer - 1;
    *other = *other < 0 ? 0 : *other >= size ? size - 1 : *other;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_pair(const gpsti_warp_job* job, const uint8_t* cb, int32_t x, int32_t y) {
    const ptrdiff_t at = (ptrdiff_t)(y * job->chroma_pitch) + x;
    return (uint32_t)cb[at] | (uint32_t)cb[at + (ptrdiff_t)(job->chroma_height * job->chroma_pitch)] << 16;
}

/* Where Cb begins: behind all rows of Y. */
GPSTI_DEVICE GPSTI_INLINE const uint8_t* gpsti_ycc_cb(const gpsti_warp_job* job, const uint8_t* source) {
    return source + (ptrdiff_t)(job->chroma_height * (int64_t)job->jpeg_down * job->source_pitch);
}

/* Rows of one or two samples are repeated where they are stretched. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_chroma(const gpsti_warp_job* job, const uint8_t* source, int32_t x,
                                                     int32_t y) {
    const uint8_t* const cb = gpsti_ycc_cb(job, source);
    const uint32_t across = job->jpeg_across, down = job->jpeg_down;
    int32_t near_x, far_x, near_y, far_y;
    gpsti_ycc_samples(x, across, job->chroma_width, &near_x, &far_x);
    gpsti_ycc_samples(y, down, job->chroma_height, &near_y, &far_y);
    uint32_t sum = gpsti_ycc_pair(job, cb, near_x, near_y), other = 0;
    if (across == 2 && job->chroma_width <= 2)
        return sum;
    if (down == 2)
        sum = 3 * sum + gpsti_ycc_pair(job, cb, near_x, far_y);
    if (across == 2)
        other = gpsti_ycc_pair(job, cb, far_x, near_y);
    if (across == 2 && down == 2)
        other = 3 * other + gpsti_ycc_pair(job, cb, far_x, far_y);
    return gpsti_ycc_round(across == 2 ? 3 * sum + other : sum, x, y, across, down);
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_pixel(const gpsti_warp_job* job, const uint8_t* source, int32_t x,
                                                    int32_t y) {
    return gpsti_ycc_chroma(job, source, x, y) |
           (uint32_t)source[(ptrdiff_t)(y * job->source_pitch) + x] << 8;
}

/* ---- four pixels -------------------------------------------------------------------------- */
/* Of pixels (x, y) to (x + 1, y + 1), away from the edges: the samples of gpsti_ycc_first and behind, a row of four
   bytes, of which three count; and two of Y. across and down are the job's, given as constants where compilers are to
   leave out what others need. */
typedef struct gpsti_ycc_words {
    uint32_t luma[2], cb[3], cr[3];
} gpsti_ycc_words;

/* Whether the samples are all there. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_ycc_is_inner(const gpsti_warp_job* job, int32_t x, int32_t y, uint32_t across,
                                                   uint32_t down) {
    const int32_t first_x = gpsti_ycc_first(x, across), first_y = gpsti_ycc_first(y, down);
    return first_x >= 0 && first_x < job->chroma_width - 3 && first_y >= 0 && first_y < job->chroma_height - 2;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_word(const uint8_t* from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_ycc_read(const gpsti_warp_job* job, const uint8_t* source, int32_t x, int32_t y,
                                               uint32_t across, uint32_t down, gpsti_ycc_words* words) {
    const ptrdiff_t pitch = (ptrdiff_t)job->chroma_pitch, to_cr = job->chroma_height * pitch;
    const uint8_t* const luma = source + (ptrdiff_t)(y * job->source_pitch) + x;
    const uint8_t* cb = gpsti_ycc_cb(job, source) + gpsti_ycc_first(y, down) * pitch +
                        gpsti_ycc_first(x, across);
    for (int r = 0; r < 2; r++)
        words->luma[r] = (uint32_t)luma[r * (ptrdiff_t)job->source_pitch] |
                         (uint32_t)luma[r * (ptrdiff_t)job->source_pitch + 1] << 8;
    for (int r = 0; r < 3; r++, cb += pitch)
        words->cb[r] = gpsti_ycc_word(cb), words->cr[r] = gpsti_ycc_word(cb + to_cr);
}

/* The sums of two pixels of an axis, at and the next: 3 of the sample that each is near to, and the one on its other
   side. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_sum(uint32_t first, uint32_t second, int32_t at, uint32_t pixels) {
    return pixels == 1 ? first : first + second + 2 * ((at & 1) != 0 ? first : second);
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_next_sum(uint32_t first, uint32_t second, uint32_t third, int32_t at,
                                                       uint32_t pixels) {
    return pixels == 1 ? second : 3 * second + ((at & 1) != 0 ? first : third);
}

/* Sample c of row r. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_sample(const gpsti_ycc_words* words, int r, int c) {
    return ((words->cb[r] >> (8 * c)) & 255) | ((words->cr[r] >> (8 * c)) & 255) << 16;
}

/* The sums down of column c: of the upper pixels, of the lower ones. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_upper(const gpsti_ycc_words* words, int c, int32_t y, uint32_t down) {
    return gpsti_ycc_sum(gpsti_ycc_sample(words, 0, c), gpsti_ycc_sample(words, 1, c), y, down);
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_lower(const gpsti_ycc_words* words, int c, int32_t y, uint32_t down) {
    return gpsti_ycc_next_sum(gpsti_ycc_sample(words, 0, c), gpsti_ycc_sample(words, 1, c),
                               gpsti_ycc_sample(words, 2, c), y, down);
}

/* In the order of reading. Without loops, which keep compilers from taking many pixels at once. */
GPSTI_DEVICE GPSTI_PRIVATE GPSTI_ALWAYS_INLINE void gpsti_ycc_four(const gpsti_ycc_words* words, int32_t x, int32_t y,
                                                                     uint32_t across, uint32_t down,
                                                                     uint32_t pixel[4]) {
    const uint32_t upper0 = gpsti_ycc_upper(words, 0, y, down), upper1 = gpsti_ycc_upper(words, 1, y, down);
    const uint32_t lower0 = gpsti_ycc_lower(words, 0, y, down), lower1 = gpsti_ycc_lower(words, 1, y, down);
    const uint32_t upper2 = gpsti_ycc_upper(words, 2, y, down), lower2 = gpsti_ycc_lower(words, 2, y, down);
    const uint32_t sum0 = gpsti_ycc_sum(upper0, upper1, x, across);
    const uint32_t sum1 = gpsti_ycc_next_sum(upper0, upper1, upper2, x, across);
    const uint32_t sum2 = gpsti_ycc_sum(lower0, lower1, x, across);
    const uint32_t sum3 = gpsti_ycc_next_sum(lower0, lower1, lower2, x, across);
    const uint32_t luma0 = words->luma[0], luma1 = words->luma[1];
    pixel[0] = gpsti_ycc_round(sum0, x, y, across, down) | (luma0 & 255) << 8;
    pixel[1] = gpsti_ycc_round(sum1, x + 1, y, across, down) | (luma0 & 0xff00u);
    pixel[2] = gpsti_ycc_round(sum2, x, y + 1, across, down) | (luma1 & 255) << 8;
    pixel[3] = gpsti_ycc_round(sum3, x + 1, y + 1, across, down) | (luma1 & 0xff00u);
}

/* ---- colours --------------------------------------------------------------------------------- */
/* A sum in 1/65536 to a byte in its bits 16 to 23. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_clamp(int32_t sum) {
    const int32_t low = sum < 0 ? 0 : sum, most = 0xffffff;
    return (uint32_t)(low < most ? low : most) & 0xff0000u;
}

/* Cb, Y and Cr to red, green and blue, from the lowest byte up. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_ycc_rgb(uint32_t pixel) {
    const int32_t y = (int32_t)((pixel << 8) & 0xff0000u) + 32768;
    const int32_t cb = (int32_t)(pixel & 255) - 128, cr = (int32_t)((pixel >> 16) & 255) - 128;
    const uint32_t red = gpsti_ycc_clamp(y + 91881 * cr), blue = gpsti_ycc_clamp(y + 116130 * cb);
    const uint32_t green = gpsti_ycc_clamp(y - 22554 * cb - 46802 * cr);
    return red >> 16 | green >> 8 | blue;
}

/* ---- as a source is read ----------------------------------------------------------------------- */
/* Not inlined: with them the kernels of all sources would need more registers. A source pixel, its border included. */
GPSTI_NOINLINE GPSTI_DEVICE GPSTI_PRIVATE uint32_t gpsti_ycc_read_pixel(const gpsti_warp_job* job,
                                                                         const uint8_t* source, int32_t x, int32_t y) {
    if (!gpsti_warp_border(job, &x, &y))
        return job->outside;
    return gpsti_ycc_rgb(gpsti_ycc_pixel(job, source, x, y));
}

typedef struct gpsti_ycc_taps {
    uint32_t pixel[4];
} gpsti_ycc_taps;

/* Pixels (x, y) to (x + 1, y + 1). */
GPSTI_NOINLINE GPSTI_DEVICE GPSTI_PRIVATE gpsti_ycc_taps gpsti_ycc_read_taps(const gpsti_warp_job* job, int32_t x,
                                                                               int32_t y) {
    const uint32_t across = job->jpeg_across, down = job->jpeg_down;
    gpsti_ycc_taps taps;
    if (gpsti_ycc_is_inner(job, x, y, across, down)) {
        gpsti_ycc_words words;
        gpsti_ycc_read(job, job->source, x, y, across, down, &words);
        gpsti_ycc_four(&words, x, y, across, down, taps.pixel);
        for (int t = 0; t < 4; t++)
            taps.pixel[t] = gpsti_ycc_rgb(taps.pixel[t]);
    } else {
        for (int t = 0; t < 4; t++)
            taps.pixel[t] = gpsti_ycc_read_pixel(job, job->source, x + (t & 1), y + (t >> 1));
    }
    return taps;
}

#endif
