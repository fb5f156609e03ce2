/* tools/gpustage/bench_limits.c -- the case limits: what each resource of this machine gives alone, in the same run as
   whatever is compared with it. */
#include "bench_load.h"

#include "../measure.h"
#include "codec.h"
#include "console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TIMES = 5, FRAME_WIDTH = 7680, FRAME_HEIGHT = 3840 };
#define COPY_BYTES ((size_t)256 << 20)

static void limits_row(json* out, const char* what, uint32_t n_at_once, const char* unit, const double* values) {
    const measure_spread spread = measure_spread_of(values, N_TIMES);
    printf("%-26s %4u  %10.2f (%.2f..%.2f) %s\n", what, (unsigned)n_at_once, spread.median, spread.min, spread.max,
           unit);
    fflush(stdout);
    json_open(out, NULL, '{');
    json_string(out, "what", what);
    json_count(out, "at_once", n_at_once);
    json_string(out, "unit", unit);
    json_number(out, "median", spread.median);
    json_number(out, "min", spread.min);
    json_number(out, "max", spread.max);
    json_close(out, '}');
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool limits_copy(uint32_t n_threads, json* out) {
    char* const from = (char*)malloc(COPY_BYTES);
    char* const to = (char*)malloc(COPY_BYTES);
    double values[N_TIMES];
    const bool ok = from && to;
    if (ok) { /* every page is there before the clock runs */
        memset(from, 1, COPY_BYTES);
        memset(to, 2, COPY_BYTES);
    }
    for (int t = 0; ok && t < N_TIMES; t++) {
        const int n = (int)n_threads;
        const double start = measure_now();
#if defined(_OPENMP)
        _Pragma("omp parallel for num_threads(n)")
#endif
        for (int i = 0; i < n; i++) {
            const size_t begin = COPY_BYTES / (size_t)n * (size_t)i;
            memcpy(to + begin, from + begin, COPY_BYTES / (size_t)n);
        }
        values[t] = 2e-9 * (double)COPY_BYTES / (measure_now() - start);
    }
    if (ok)
        limits_row(out, "memcpy, read + written", n_threads, "GB/s", values);
    free(from);
    free(to);
    return ok;
}

/* ---- files ------------------------------------------------------------------------------------- */

/* One stage of a pipeline and nothing else, so many at once. */
static bool limits_files(const bench_load* load, uint32_t n_at_once, json* out) {
    bench_job* job = NULL;
    const double gb = (double)load->n_items * (double)(load->read_bytes + load->write_bytes) / 1e9;
    const bench_pool pool = {n_at_once, 1};
    double values[N_TIMES];
    bool ok = bench_job_open(load, 0, &job) == GPST_OK && bench_job_run(job, BENCH_POOL, &pool, NULL) > 0.0;
    for (int t = 0; ok && t < N_TIMES; t++) {
        const double seconds = bench_job_run(job, BENCH_POOL, &pool, NULL);
        ok = seconds > 0.0;
        values[t] = gb / seconds;
    }
    if (ok)
        limits_row(out, load->text, n_at_once, "GB/s", values);
    bench_job_close(job);
    return ok;
}

/* ---- a frame as JPEG ------------------------------------------------------------------------------- */

static bool limits_jpeg_times(codec* self, const gpst_image* frame, text* file, json* out) {
    codec_options options;
    codec_kind kind = CODEC_JPEG;
    gpst_image shape;
    char reason[CODEC_REASON_BYTES];
    double encode[N_TIMES], decode[N_TIMES];
    options.quality = 95;
    options.chroma = 444;
    for (int t = 0; t < N_TIMES; t++) {
        size_t bytes = file->capacity;
        const double start = measure_now();
        if (codec_encode(self, CODEC_JPEG, frame, &options, file->data, &bytes, reason) != GPST_OK)
            return false;
        const double between = measure_now();
        if (codec_read_header(self, file->data, bytes, NULL, &kind, &shape, reason) != GPST_OK ||
            codec_decode(self, file->data, bytes, kind, frame, reason) != GPST_OK)
            return false;
        encode[t] = 1e3 * (between - start);
        decode[t] = 1e3 * (measure_now() - between);
    }
    limits_row(out, "JPEG 7680x3840 decode", 1, "ms", decode);
    limits_row(out, "JPEG 7680x3840 encode", 1, "ms", encode);
    return true;
}

static bool limits_jpeg(json* out) {
    codec* const self = codec_create();
    codec_options options;
    gpst_image frame = GPST_ZERO;
    text file = GPST_ZERO;
    bool ok = self != NULL;
    frame.width = FRAME_WIDTH;
    frame.height = FRAME_HEIGHT;
    frame.format = GPST_FORMAT_RGB;
    frame.dtype = GPST_DTYPE_U8;
    frame.pitch_bytes = FRAME_WIDTH * 3;
    frame.data = malloc((size_t)FRAME_WIDTH * FRAME_HEIGHT * 3);
    options.quality = 95;
    options.chroma = 444;
    file.capacity = codec_encode_bound(CODEC_JPEG, &frame, &options);
    file.data = (char*)malloc(file.capacity);
    ok = ok && frame.data && file.data;
    if (ok) {
        bench_paint(&frame);
        ok = limits_jpeg_times(self, &frame, &file, out);
    }
    free(file.data);
    free(frame.data);
    codec_destroy(self);
    return ok;
}

/* ---- the case ------------------------------------------------------------------------------------------ */

int bench_limits(const bench_ask* asked, json* out) {
    (void)asked;
    bench_load read, write;
    memset(&read, 0, sizeof read);
    read.text = "read 16 MiB, page cache";
    read.backend = "cpu";
    read.n_items = 64;
    read.read_bytes = (size_t)16 << 20;
    memset(&write, 0, sizeof write);
    write.text = "write 8 MiB, fsync";
    write.backend = "cpu";
    write.n_items = 32;
    write.write_bytes = (size_t)8 << 20;
    write.synced = true;
    const uint32_t cores = bench_cores(), most = cores < 16 ? cores : 16;
    printf("limits: each resource alone, %d times\n%-26s %4s\n", N_TIMES, "what", "at once");
    json_open(out, "rows", '[');
    bool ok = limits_copy(1, out) && (cores == 1 || limits_copy(cores, out));
    ok = ok && limits_files(&read, 1, out) && (most == 1 || limits_files(&read, most, out));
    ok = ok && limits_files(&write, 1, out) && (most == 1 || limits_files(&write, most, out));
    ok = ok && (!codec_available(CODEC_JPEG) || limits_jpeg(out));
    json_close(out, ']');
    if (!ok)
        console_error("limits: %s", bench_reason());
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
