/* tools/gpustage/codec_limits.c -- how much one file may ask for, and how much all decoders together hold. A header of
   a hundred bytes can ask for ten gigabytes and be right: only the memory that is there can say no. */
#include "codec_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- one file --------------------------------------------------------------------- */

uint64_t codec_most_bytes(const codec_limits* limits) {
    gpst_probe_info machine;
    if (limits->bytes > 0)
        return limits->bytes;
    if (GPST_FAILED(gpst_probe(NULL, &machine)) || machine.ram_bytes / 4 < CODEC_SMALL_BYTES)
        return CODEC_SMALL_BYTES;
    return machine.ram_bytes / 4;
}

bool codec_fits(const codec_limits* limits, uint64_t bytes) {
    return (limits->bytes == 0 && bytes <= CODEC_SMALL_BYTES) || bytes <= codec_most_bytes(limits);
}

void codec_format_amount(uint64_t bytes, bool up, char out[CODEC_AMOUNT_BYTES]) {
    const uint64_t unit = bytes < 10000000 ? 1 : bytes < 10000000000 ? 1000000 : 100000000;
    const uint64_t n = bytes / unit + (up && bytes % unit ? 1 : 0);
    if (unit == 1)
        snprintf(out, CODEC_AMOUNT_BYTES, "%llu bytes", (unsigned long long)n);
    else if (unit == 1000000)
        snprintf(out, CODEC_AMOUNT_BYTES, "%llu MB", (unsigned long long)n);
    else
        snprintf(out, CODEC_AMOUNT_BYTES, "%llu.%llu GB", (unsigned long long)(n / 10), (unsigned long long)(n % 10));
}

static uint64_t codec_most_pixels(const codec_limits* limits) {
    return limits->pixels ? limits->pixels : CODEC_DEFAULT_PIXELS;
}

gpst_result codec_check_limits(const codec* self, const char* name, const gpst_image* shape, size_t file_bytes,
                               const codec_layout* layout, char* reason) {
    char wanted[CODEC_AMOUNT_BYTES], most[CODEC_AMOUNT_BYTES];
    const codec_limits* const limits = &self->limits;
    const uint64_t pixels = (uint64_t)shape->width * shape->height, most_pixels = codec_most_pixels(limits);
    if (pixels > most_pixels)
        return codec_fail(reason, GPST_ERROR_BUDGET,
                          "%s: %ux%u are %llu pixels; at most %llu here (--max-pixels)", name, shape->width,
                          shape->height, (unsigned long long)pixels, (unsigned long long)most_pixels);
    if (layout->n_scans > 1 && layout->n_scans * pixels / CODEC_SCANS > most_pixels)
        return codec_fail(reason, GPST_ERROR_BUDGET,
                          "%s: %llu scans over %ux%u pixels; at most %llu at this size (--max-pixels)", name,
                          (unsigned long long)layout->n_scans, shape->width, shape->height,
                          (unsigned long long)(most_pixels * CODEC_SCANS / pixels));
    const uint64_t picture_bytes = layout->in_place ? 0 : shape->height * (uint64_t)gpst_image_row_bytes(shape);
    const uint64_t bytes = file_bytes + picture_bytes + layout->decoder_bytes;
    if (codec_fits(limits, bytes))
        return GPST_OK;
    codec_format_amount(bytes, true, wanted);
    codec_format_amount(codec_most_bytes(limits), false, most);
    return codec_fail(reason, GPST_ERROR_BUDGET,
                      "%s: %ux%u pixels take %s to decode; at most %s here (--max-item-bytes)", name,
                      shape->width, shape->height, wanted, most);
}

gpst_result codec_check_made(const codec* self, const gpst_image* shape, uint64_t beside_bytes, char* reason) {
    codec_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.decoder_bytes = self->held_bytes + beside_bytes;
    return codec_check_limits(self, "picture", shape, 0, &layout, reason);
}

/* ---- all decoders together ---------------------------------------------------------- */

#define CODEC_ROOM_BYTES ((uint64_t)16 << 20) /* less than this is not counted: rows, not pictures */

static pthread_mutex_t codec_room_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t codec_room_more = PTHREAD_COND_INITIALIZER;
static uint64_t codec_room_bytes; /* taken */

/* Who has room decodes and waits for nobody: it comes back. One alone always has it. */
void codec_room_take(const codec* self, uint64_t bytes) {
    if (bytes < CODEC_ROOM_BYTES)
        return;
    pthread_mutex_lock(&codec_room_mutex);
    while (codec_room_bytes > 0 && !codec_fits(&self->limits, codec_room_bytes + bytes))
        pthread_cond_wait(&codec_room_more, &codec_room_mutex);
    codec_room_bytes += bytes;
    pthread_mutex_unlock(&codec_room_mutex);
}

void codec_room_give(uint64_t bytes) {
    if (bytes < CODEC_ROOM_BYTES)
        return;
    pthread_mutex_lock(&codec_room_mutex);
    codec_room_bytes -= bytes;
    pthread_cond_broadcast(&codec_room_more);
    pthread_mutex_unlock(&codec_room_mutex);
}
