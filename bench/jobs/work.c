/* bench/jobs/work.c -- what an item of a job is: decoded, computed, encoded, written; the same functions for every way.
   Knows no pipeline. */
#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DELTA_HEADER_BYTES = 8, N_VIEWS_MOST = 16 };
static codec_options view_options(void) {
    codec_options options = GPST_ZERO;
    options.quality = 95;
    options.chroma = 444;
    return options;
}

/* ---- clocks --------------------------------------------------------------------------- */

/* The cameras are triggered together. The first frame leaves time for threads to start. */
int64_t clock_due_ns(const job_run* run, uint64_t item) {
    return run->start_ns + 100000000 + (int64_t)(item / run->job->n_cameras * 1000000000 / run->job->fps);
}

/* ---- workers ---------------------------------------------------------------------------- */

worker* worker_create(void) {
    worker* const self = (worker*)calloc(1, sizeof *self);
    if (self && !(self->codec = codec_create())) {
        free(self);
        return NULL;
    }
    return self;
}

void worker_free(worker* self) {
    if (!self)
        return;
    codec_destroy(self->codec);
    free(self->file.data);
    free(self->picture.data);
    free(self->outputs.data);
    free(self->encoded.data);
    free(self);
}

bool buffer_fit(buffer* self, size_t bytes) {
    if (self->bytes >= bytes && self->data)
        return true;
    free(self->data);
    self->data = (uint8_t*)malloc(bytes ? bytes : 1);
    self->bytes = self->data ? bytes : 0;
    return self->data != NULL;
}

static bool work_failed(worker* self, const char* reason) {
    snprintf(self->reason, sizeof self->reason, "%s", reason);
    return false;
}

/* ---- pictures ------------------------------------------------------------------------------ */

size_t work_image_bytes(const gpst_image* image) {
    size_t bytes = 0;
    return GPST_FAILED(gpst_image_bytes(image, &bytes)) ? 0 : bytes;
}

bool work_make_warp(job_run* run) {
    const job* const asked = run->job;
    gpst_view views[N_VIEWS_MOST];
    gpst_warp_desc desc = GPST_ZERO;
    if (!asked->out_width)
        return true;
    memset(views, 0, sizeof views);
    for (uint32_t v = 0; v < asked->n_views; v++)
        views[v].yaw = 360.0 * v / asked->n_views;
    desc.map = asked->n_views ? GPST_MAP_EQUIRECT : GPST_MAP_RESIZE;
    desc.views = asked->n_views ? views : NULL;
    desc.n_views = asked->n_views;
    desc.width = asked->out_width / run->shrink;
    desc.height = asked->out_height / run->shrink;
    desc.format = GPST_FORMAT_RGB;
    desc.dtype = asked->n_views ? GPST_DTYPE_U8 : asked->dtype;
    desc.layout = asked->n_views ? GPST_LAYOUT_HWC : GPST_LAYOUT_CHW;
    desc.has_scale = desc.scale_of_full = asked->dtype == GPST_DTYPE_F32;
    for (int c = 0; desc.has_scale && c < 3; c++) { /* (value / 255 - 0.45) / 0.225 */
        desc.scale[c] = 1.0f / 0.225f;
        desc.bias[c] = -2.0f;
    }
    if (GPST_FAILED(gpst_warp_create(&desc, &run->warp)))
        return false;
    gpst_warp_query_output(run->warp, &run->shape);
    run->n_outputs = gpst_warp_n_outputs(run->warp);
    return true;
}

bool work_shape(const job_run* run, worker* self, const void* data, size_t bytes, gpst_image* shape, bool* in_place) {
    const job_source source = run->job->source;
    codec_kind kind = CODEC_JPEG;
    memset(shape, 0, sizeof *shape);
    shape->format = GPST_FORMAT_RGB;
    *in_place = source == SOURCE_RAW;
    if (source == SOURCE_JPEG)
        return !GPST_FAILED(codec_read_header(self->codec, data, bytes, NULL, &kind, shape, self->reason));
    inputs_size(run, 0, &shape->width, &shape->height);
    if (source == SOURCE_DELTA) {
        uint32_t size[2] = {0, 0};
        if (bytes > DELTA_HEADER_BYTES)
            memcpy(size, data, sizeof size);
        shape->width = size[0];
        shape->height = size[1];
        bytes = bytes > DELTA_HEADER_BYTES ? bytes - DELTA_HEADER_BYTES : 0;
    }
    return bytes == (size_t)shape->width * shape->height * 3 || work_failed(self, "the file is of the wrong size");
}

bool work_decode(const job_run* run, worker* self, const void* data, size_t bytes, const gpst_image* picture) {
    if (run->job->source == SOURCE_JPEG)
        return !GPST_FAILED(codec_decode(self->codec, data, bytes, CODEC_JPEG, picture, self->reason));
    const uint8_t* in = (const uint8_t*)data + DELTA_HEADER_BYTES;
    uint8_t* out = (uint8_t*)picture->data;
    const size_t row = (size_t)picture->width * 3;
    for (uint32_t y = 0; y < picture->height; y++, in += row, out += row) {
        uint8_t r = 0, g = 0, b = 0;
        for (size_t x = 0; x < row; x += 3) {
            out[x] = r = (uint8_t)(r + in[x]);
            out[x + 1] = g = (uint8_t)(g + in[x + 1]);
            out[x + 2] = b = (uint8_t)(b + in[x + 2]);
        }
    }
    return true;
}

bool work_encode(const job_run* run, worker* self, const gpst_image* picture, size_t* bytes) {
    const codec_options options = view_options();
    (void)run;
    *bytes = codec_encode_bound(CODEC_JPEG, picture, &options);
    if (*bytes == 0 || !buffer_fit(&self->encoded, *bytes))
        return work_failed(self, "no room to encode in");
    return !GPST_FAILED(
        codec_encode(self->codec, CODEC_JPEG, picture, &options, self->encoded.data, bytes, self->reason));
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A fixed amount of work, the same on every machine. Eight sums at once, so that one core is busy, not waiting. */
uint64_t work_digest(const void* data, size_t bytes, uint32_t passes, uint64_t seed) {
    uint64_t sums[8];
    for (int lane = 0; lane < 8; lane++)
        sums[lane] = seed + (uint64_t)lane;
    for (uint32_t pass = 0; pass < passes; pass++)
        for (size_t at = 0; at + 32 <= bytes; at += 32) {
            uint32_t words[8];
            memcpy(words, (const uint8_t*)data + at, sizeof words);
            for (int lane = 0; lane < 8; lane++)
                sums[lane] = (sums[lane] ^ words[lane]) * 0x9e3779b97f4a7c15u;
        }
    uint64_t sum = seed;
    for (size_t at = bytes / 32 * 32; at < bytes; at++)
        sum = (sum ^ ((const uint8_t*)data)[at]) * 0x100000001b3u;
    for (int lane = 0; lane < 8; lane++)
        sum = (sum ^ sums[lane]) * 0x100000001b3u;
    return sum;
}

void work_wait(const job_run* run) {
    if (run->job->wait_us)
        measure_wait_until(measure_ns() + (int64_t)run->job->wait_us * 1000);
}

/* Without passes of its own, a job's result is looked at once. */
static uint64_t work_compute(const job_run* run, uint64_t item, const void* data, size_t bytes) {
    uint8_t own[WORK_BYTES];
    const uint32_t passes = run->job->work_passes ? run->job->work_passes : 1;
    if (data)
        return work_digest(data, bytes, passes, item % run->n_files);
    memset(own, (int)(item & 255), sizeof own);
    return work_digest(own, sizeof own, passes, item);
}

/* One executor is one in every way: of several pipelines in a pool, too. The engine, told of it, never waits here. */
uint64_t work_number(const job_run* run, uint64_t item, const void* data, size_t bytes) {
    static pthread_mutex_t executor = PTHREAD_MUTEX_INITIALIZER;
    if (!run->job->one_at_a_time)
        return work_compute(run, item, data, bytes);
    pthread_mutex_lock(&executor);
    const uint64_t number = work_compute(run, item, data, bytes);
    pthread_mutex_unlock(&executor);
    return number;
}

/* ---- files -------------------------------------------------------------------------------------- */

static uint64_t work_name(const job_run* run, uint64_t item) {
    return run->job->n_names ? item % run->job->n_names : item;
}

size_t work_file_bytes(const job_run* run, uint64_t item) {
    const size_t bytes = run->job->write_bytes / run->shrink;
    return bytes * (size_t)(1 + work_name(run, item) % run->job->write_spread);
}

void work_fill_file(const job_run* run, uint64_t item, void* out) {
    memset(out, (int)(work_name(run, item) % 251 + 1), work_file_bytes(run, item));
}

bool work_path(const job_run* run, uint64_t item, uint32_t view, char* out) {
    const int length = snprintf(out, JOB_PATH_BYTES, "%s/item_%06llu_v%02u.%s", run->out,
                                (unsigned long long)work_name(run, item), (unsigned)view, run->warp ? "jpg" : "bin");
    return length > 0 && length < JOB_PATH_BYTES;
}

static bool work_put(int file, const void* data, size_t bytes, off_t offset, bool at_offset) {
    const uint8_t* const from = (const uint8_t*)data;
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = at_offset ? pwrite(file, from + done, bytes - done, offset + (off_t)done)
                                    : write(file, from + done, bytes - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool work_write_row(const job_run* run, worker* self, uint64_t item, const void* data) {
    const size_t bytes = work_image_bytes(&run->shape);
    const off_t offset = (off_t)(item % run->n_rows * bytes);
    return work_put(run->rows_file, data, bytes, offset, true) || work_failed(self, strerror(errno));
}

/* Whole or absent, as the library writes: under another name first. */
bool work_write_file(const job_run* run, worker* self, const char* path, const void* data, size_t bytes) {
    char temporary[JOB_PATH_BYTES + 32];
    snprintf(temporary, sizeof temporary, "%s.%llx.tmp", path, (unsigned long long)(uintptr_t)self);
    const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return work_failed(self, strerror(errno));
    bool done = work_put(file, data, bytes, 0, false);
    if (done && run->job->synced)
        done = fsync(file) == 0;
    if (close(file) != 0 || !done || rename(temporary, path) != 0)
        return work_failed(self, strerror(errno));
    return true;
}

/* ---- what is left behind --------------------------------------------------------------------------- */

static bool work_hash_file(int file, uint64_t bytes, uint64_t* hash) {
    static uint8_t data[1 << 20];
    ssize_t n;
    off_t at = 0;
    while ((uint64_t)at < bytes && (n = pread(file, data, sizeof data, at)) > 0) {
        const uint64_t left = bytes - (uint64_t)at;
        const size_t used = left < (uint64_t)n ? (size_t)left : (size_t)n;
        *hash = work_digest(data, used, 1, *hash + used);
        at += (off_t)used;
    }
    return bytes == UINT64_MAX || (uint64_t)at == bytes;
}

static bool work_hash_files(const job_run* run, uint64_t n_items, uint64_t* hash) {
    const uint32_t n_views = run->warp ? run->n_outputs : 1;
    char path[JOB_PATH_BYTES];
    const uint64_t n = run->job->n_names && run->job->n_names < n_items ? run->job->n_names : n_items;
    for (uint64_t k = 0; k < n * n_views; k++) {
        const bool named = work_path(run, k / n_views, (uint32_t)(k % n_views), path);
        const int file = named ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        const bool read = file >= 0 && work_hash_file(file, UINT64_MAX, hash);
        if (file >= 0)
            close(file);
        if (!read)
            return false;
    }
    return true;
}

bool work_hash(const job_run* run, uint64_t* out) {
    const uint64_t n = run->n_check && run->n_check < run->n_items ? run->n_check : run->n_items;
    *out = 0;
    if (run->job->output == OUTPUT_FILES)
        return work_hash_files(run, n, out);
    if (run->job->output == OUTPUT_ROW)
        return work_hash_file(run->rows_file, (n < run->n_rows ? n : run->n_rows) * work_image_bytes(&run->shape), out);
    *out = work_digest(run->numbers, (size_t)n * sizeof *run->numbers, 1, 0);
    return true;
}
