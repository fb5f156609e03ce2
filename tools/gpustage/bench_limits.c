/* tools/gpustage/bench_limits.c -- what each resource of this machine gives alone: memory, the disk, a device's link,
   and a frame as JPEG. */
#include "bench.h"

#include "codec.h"
#include "console.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TIMES = 3, FRAME_WIDTH = 7680, FRAME_HEIGHT = 3840 };
#define COPY_BYTES ((size_t)256 << 20)
#define FILE_BYTES ((size_t)128 << 20)

static void limits_row(json* out, const char* what, uint32_t n_at_once, double value, const char* unit) {
    printf("  %-36s %4u  %10.2f %s\n", what, (unsigned)n_at_once, value, unit);
    fflush(stdout);
    json_open(out, NULL, '{');
    json_string(out, "what", what);
    json_count(out, "at_once", n_at_once);
    json_string(out, "unit", unit);
    json_number(out, "value", value);
    json_close(out, '}');
}

static void limits_absent(const char* what, const char* reason) { printf("  %-36s %s\n", what, reason); }

/* ---- memory ---------------------------------------------------------------------------------- */

/* The best of a few: what the memory gives, not what was left of it. */
static bool limits_copy(uint32_t n_threads, json* out) {
    char* const from = (char*)malloc(COPY_BYTES);
    char* const to = (char*)malloc(COPY_BYTES);
    double best_s = 0.0;
    const bool ok = from && to;
    if (ok) { /* every page is there before the clock runs */
        memset(from, 1, COPY_BYTES);
        memset(to, 2, COPY_BYTES);
    }
    for (int t = 0; ok && t < N_TIMES; t++) {
        const int n = (int)n_threads;
        const double start = bench_now();
#if defined(_OPENMP)
        _Pragma("omp parallel for num_threads(n)")
#endif
        for (int i = 0; i < n; i++) {
            const size_t begin = COPY_BYTES / (size_t)n * (size_t)i;
            memcpy(to + begin, from + begin, COPY_BYTES / (size_t)n);
        }
        const double seconds = bench_now() - start;
        best_s = t == 0 || seconds < best_s ? seconds : best_s;
    }
    if (ok)
        limits_row(out, "memcpy, read + written", n_threads, 2e-9 * (double)COPY_BYTES / best_s, "GB/s");
    free(from);
    free(to);
    return ok;
}

/* ---- the disk, and a device -------------------------------------------------------------------- */

/* In the sync is the disk's own time. */
static const char* limits_write(const char* path, json* out) {
    char* const data = (char*)malloc(FILE_BYTES);
    open_file file;
    if (!data)
        return text_out_of_memory;
    memset(data, 3, FILE_BYTES);
    const char* wrong = files_create_locked(path, &file);
    const double start = bench_now();
    if (!wrong)
        wrong = files_list_add(&file, data, FILE_BYTES);
    if (!wrong)
        wrong = files_list_sync(&file);
    if (!wrong)
        limits_row(out, "write of 128 MiB, on the disk", 1, 1e-9 * (double)FILE_BYTES / (bench_now() - start), "GB/s");
    files_close(&file);
    free(data);
    return wrong;
}

static gpst_result limits_measure(const char* path, json* out) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_measure_info info;
    gpst_result result = gpst_context_create(&desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_measure(context, path, 2000000000, &info);
    gpst_context_destroy(context);
    if (GPST_FAILED(result))
        return result;
    if (info.read_one_gbps > 0.0) {
        const char* const what =
            info.read_direct ? "read of it, past the page cache" : "read of it, out of the page cache";
        limits_row(out, what, 1, info.read_one_gbps, "GB/s");
        limits_row(out, what, info.n_reads, info.read_many_gbps, "GB/s");
    } else {
        limits_absent("read of it", info.read_reason);
    }
    if (info.launch_us > 0.0) {
        limits_row(out, "to the device, page-locked", 1, info.h2d_pinned_gbps, "GB/s");
        limits_row(out, "to the device, ordinary memory", 1, info.h2d_pageable_gbps, "GB/s");
        limits_row(out, "launch", 1, info.launch_us, "us");
    } else {
        limits_absent("device", info.device_reason);
    }
    return GPST_OK;
}

static bool limits_disk(const char* directory, json* out) {
    text path = GPST_ZERO;
    text_format(&path, "%s/file.bin", directory);
    const char* wrong = path.failed ? text_out_of_memory : limits_write(path.data, out);
    if (!wrong && GPST_FAILED(limits_measure(path.data, out)))
        wrong = gpst_last_reason();
    if (wrong)
        console_error("bench: %s: %s", path.failed ? directory : path.data, wrong);
    text_free(&path);
    return !wrong;
}

/* ---- a frame as JPEG ---------------------------------------------------------------------------- */

static bool limits_jpeg_times(codec* self, const gpst_image* frame, text* file, json* out) {
    codec_options options = GPST_ZERO;
    codec_kind kind = CODEC_JPEG;
    gpst_image shape;
    char reason[CODEC_REASON_BYTES];
    double encode_s = 0.0, decode_s = 0.0;
    options.quality = 95;
    options.chroma = 444;
    for (int t = 0; t < N_TIMES; t++) {
        size_t bytes = file->capacity;
        const double start = bench_now();
        if (codec_encode(self, CODEC_JPEG, frame, &options, file->data, &bytes, reason) != GPST_OK)
            return false;
        const double between = bench_now();
        if (codec_read_header(self, file->data, bytes, NULL, &kind, &shape, reason) != GPST_OK ||
            codec_decode(self, file->data, bytes, kind, frame, reason) != GPST_OK)
            return false;
        const double end = bench_now();
        encode_s = t == 0 || between - start < encode_s ? between - start : encode_s;
        decode_s = t == 0 || end - between < decode_s ? end - between : decode_s;
    }
    limits_row(out, "JPEG 7680x3840 decode", 1, 1e3 * decode_s, "ms");
    limits_row(out, "JPEG 7680x3840 encode", 1, 1e3 * encode_s, "ms");
    return true;
}

static bool limits_jpeg(json* out) {
    codec* const self = codec_create();
    codec_options options;
    gpst_image frame = GPST_ZERO;
    text file = GPST_ZERO;
    options.quality = 95;
    options.chroma = 444;
    frame.width = FRAME_WIDTH;
    frame.height = FRAME_HEIGHT;
    frame.format = GPST_FORMAT_RGB;
    frame.dtype = GPST_DTYPE_U8;
    frame.pitch_bytes = FRAME_WIDTH * 3;
    frame.data = malloc((size_t)FRAME_WIDTH * FRAME_HEIGHT * 3);
    file.capacity = codec_encode_bound(CODEC_JPEG, &frame, &options);
    file.data = (char*)malloc(file.capacity);
    bool ok = self && frame.data && file.data;
    if (ok) {
        bench_paint(&frame);
        ok = limits_jpeg_times(self, &frame, &file, out);
    }
    free(file.data);
    free(frame.data);
    codec_destroy(self);
    return ok;
}

/* ---- all of them ------------------------------------------------------------------------------------ */

int bench_limits(const bench_place* place, json* out) {
    printf("limits: each resource alone; files under %s\n  %-36s %s\n", place->directory.data, "what", "at once");
    json_open(out, "rows", '[');
    bool ok = limits_copy(1, out) && (place->n_cores == 1 || limits_copy(place->n_cores, out));
    if (!ok)
        console_error("bench: out of memory");
    ok = ok && !interrupt_happened() && limits_disk(place->directory.data, out);
    if (ok && !interrupt_happened() && codec_available(CODEC_JPEG) && !limits_jpeg(out)) {
        console_error("bench: a frame cannot be made a JPEG");
        ok = false;
    }
    json_close(out, ']');
    return interrupt_happened() ? EXIT_INTERRUPTED : ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
