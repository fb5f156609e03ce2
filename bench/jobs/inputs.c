/* bench/jobs/inputs.c -- the inputs of the jobs: pictures painted from their number alone, so that every machine has
   the same; and the state that files and disk are in when a run begins. */
#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/scene.h"

#define MOST_ROW_BYTES ((uint64_t)1 << 30) /* of the file of rows, which is in memory */
enum { DELTA_HEADER_BYTES = 8, DELTA_SIZES = 9, LEAST_SIDE = 8 };

static bool inputs_failed(const char* path, const char* what) {
    fprintf(stderr, "run_job: %s: %s\n", path, what);
    return false;
}

/* ---- pictures ------------------------------------------------------------------------ */

/* A little noise on every value, as every camera has. */
static void paint_grain(uint8_t* data, size_t bytes, uint32_t seed) {
    uint32_t noise = seed * 2654435761u + 1;
    for (size_t i = 0; i < bytes; i++) {
        noise = noise * 1664525u + 1013904223u;
        const int value = data[i] + (int)(noise >> 28) - 8; /* -8 .. 7 */
        data[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

static void paint_waves(uint8_t* data, uint32_t width, uint32_t height, uint32_t seed) {
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width * 3; x++)
            data[(size_t)y * width * 3 + x] = (uint8_t)(x / 30 + y / 10 + seed * 16);
    paint_grain(data, (size_t)width * height * 3, seed);
}

/* The scene of the demo at frame `seed`. */
static bool paint_scene(uint8_t* data, uint32_t width, uint32_t height, uint32_t seed) {
    static uint8_t* background; /* of the size before: the same for every frame */
    static uint32_t of_width, of_height;
    scene now;
    scene_prepare(&now, SCENE_ALL, (double)seed);
    if (of_width != width || of_height != height) {
        free(background);
        background = (uint8_t*)malloc((size_t)width * height * 3);
        if (!background || !scene_render_background(&now, (int)width, (int)height, background))
            return false;
        of_width = width;
        of_height = height;
    }
    if (!scene_render_frame(&now, (int)width, (int)height, background, data))
        return false;
    paint_grain(data, (size_t)width * height * 3, seed);
    return true;
}

static uint32_t inputs_shrunk(const job_run* run, uint32_t side) {
    return side / run->shrink > LEAST_SIDE ? side / run->shrink : LEAST_SIDE;
}

/* Files of SOURCE_DELTA are of nine sizes, each twice as many bytes as the one before, in an order that mixes them. */
bool inputs_size(const job_run* run, uint32_t index, uint32_t* width, uint32_t* height) {
    *width = inputs_shrunk(run, run->job->width);
    *height = inputs_shrunk(run, run->job->height);
    if (run->job->source == SOURCE_DELTA) {
        const uint32_t bytes = 65536u << (index * 5 % DELTA_SIZES);
        *width = *height = inputs_shrunk(run, (uint32_t)sqrt((double)bytes / 3));
    }
    return (uint64_t)*width * *height * 3 < SIZE_MAX / 2;
}

/* ---- files --------------------------------------------------------------------------- */

static bool inputs_write(const char* path, const void* data, size_t bytes) {
    char temporary[JOB_PATH_BYTES + 8];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE* const file = fopen(temporary, "wb");
    if (!file)
        return inputs_failed(temporary, strerror(errno));
    const bool written = fwrite(data, 1, bytes, file) == bytes;
    const bool closed = fclose(file) == 0;
    if (!written || !closed || rename(temporary, path) != 0)
        return inputs_failed(path, strerror(errno));
    return true;
}

static bool inputs_write_jpeg(const char* path, const uint8_t* pixels, uint32_t width, uint32_t height) {
    codec_options as_cameras_do = GPST_ZERO;
    char reason[CODEC_REASON_BYTES] = "no room to encode in, or no libjpeg-turbo in this build";
    gpst_image picture = GPST_ZERO;
    as_cameras_do.quality = 95;
    as_cameras_do.chroma = 420;
    picture.data = (void*)(uintptr_t)pixels;
    picture.width = width;
    picture.height = height;
    picture.format = GPST_FORMAT_RGB;
    size_t bytes = codec_encode_bound(CODEC_JPEG, &picture, &as_cameras_do);
    codec* const encoder = codec_create();
    void* const data = malloc(bytes ? bytes : 1);
    const bool encoded =
        encoder && data && bytes > 0 &&
        !GPST_FAILED(codec_encode(encoder, CODEC_JPEG, &picture, &as_cameras_do, data, &bytes, reason));
    const bool done = encoded ? inputs_write(path, data, bytes) : inputs_failed(path, reason);
    free(data);
    codec_destroy(encoder);
    return done;
}

static bool inputs_write_delta(const char* path, uint8_t* pixels, uint32_t width, uint32_t height) {
    const size_t row = (size_t)width * 3, bytes = row * height;
    uint8_t* const data = (uint8_t*)malloc(DELTA_HEADER_BYTES + bytes);
    if (!data)
        return inputs_failed(path, "out of memory");
    const uint32_t size[2] = {width, height};
    memcpy(data, size, sizeof size);
    for (size_t i = 0; i < bytes; i++)
        data[DELTA_HEADER_BYTES + i] = (uint8_t)(pixels[i] - (i % row < 3 ? 0 : pixels[i - 3]));
    const bool done = inputs_write(path, data, DELTA_HEADER_BYTES + bytes);
    free(data);
    return done;
}

static bool inputs_path(const job_run* run, uint32_t index, char* out) {
    static const char* const extensions[] = {"", "jpg", "raw", "delta", ""};
    const int length = snprintf(out, JOB_PATH_BYTES, "%s/%s_%05u.%s", run->dir, run->job->name, (unsigned)index,
                                extensions[run->job->source]);
    return length > 0 && length < JOB_PATH_BYTES;
}

static bool inputs_make_file(const job_run* run, uint32_t index) {
    char path[JOB_PATH_BYTES];
    uint32_t width, height;
    if (!inputs_path(run, index, path) || !inputs_size(run, index, &width, &height))
        return inputs_failed(run->dir, "too long");
    if (access(path, R_OK) == 0)
        return true;
    uint8_t* const pixels = (uint8_t*)malloc((size_t)width * height * 3);
    bool done = pixels != NULL;
    if (done && run->job->source == SOURCE_JPEG)
        done = paint_scene(pixels, width, height, index);
    else if (done)
        paint_waves(pixels, width, height, index);
    if (!done)
        inputs_failed(path, "out of memory");
    else if (run->job->source == SOURCE_JPEG)
        done = inputs_write_jpeg(path, pixels, width, height);
    else if (run->job->source == SOURCE_RAW)
        done = inputs_write(path, pixels, (size_t)width * height * 3);
    else
        done = inputs_write_delta(path, pixels, width, height);
    free(pixels);
    return done;
}

bool inputs_make(const job_run* run) {
    const bool files = run->job->source != SOURCE_NONE && run->job->source != SOURCE_CAMERA;
    for (uint32_t i = 0; files && i < run->n_files; i++)
        if (!inputs_make_file(run, i))
            return false;
    return true;
}

/* ---- before a run ---------------------------------------------------------------------- */

static bool inputs_open_frames(job_run* run) {
    run->frames = (gpst_image*)calloc(run->n_files, sizeof *run->frames);
    for (uint32_t i = 0; run->frames && i < run->n_files; i++) {
        gpst_image* const frame = &run->frames[i];
        inputs_size(run, i, &frame->width, &frame->height);
        frame->format = GPST_FORMAT_RGB;
        frame->data = malloc((size_t)frame->width * frame->height * 3);
        if (!frame->data)
            return inputs_failed(run->job->name, "out of memory");
        paint_waves((uint8_t*)frame->data, frame->width, frame->height, i);
    }
    return run->frames != NULL;
}

bool inputs_open(job_run* run) {
    char path[JOB_PATH_BYTES];
    if (run->job->source == SOURCE_CAMERA)
        return inputs_open_frames(run);
    if (run->job->source == SOURCE_NONE)
        return true;
    run->paths = (char**)calloc(run->n_files, sizeof *run->paths);
    for (uint32_t i = 0; run->paths && i < run->n_files; i++)
        if (!inputs_path(run, i, path) || !(run->paths[i] = strdup(path)))
            return inputs_failed(run->dir, "too long");
    return run->paths != NULL;
}

void inputs_close(job_run* run) {
    for (uint32_t i = 0; i < run->n_files; i++) {
        if (run->paths)
            free(run->paths[i]);
        if (run->frames)
            free(run->frames[i].data);
    }
    free(run->paths);
    free(run->frames);
    if (run->rows_file >= 0)
        close(run->rows_file);
}

static size_t inputs_resident_pages(int file, size_t bytes, size_t page_bytes) {
    const size_t n_pages = (bytes + page_bytes - 1) / page_bytes;
    unsigned char* const pages = (unsigned char*)malloc(n_pages ? n_pages : 1);
    void* const map = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    size_t n = 0;
    if (pages && map != MAP_FAILED && mincore(map, bytes, pages) == 0)
        for (size_t i = 0; i < n_pages; i++)
            n += pages[i] & 1u;
    if (map != MAP_FAILED)
        munmap(map, bytes);
    free(pages);
    return n;
}

/* Only clean pages can be dropped. */
static bool inputs_settle_file(const char* path, bool cold, size_t* n_resident, size_t* n_pages) {
    static char data[1 << 20];
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ssize_t got = 0;
    if (file < 0)
        return inputs_failed(path, strerror(errno));
    if (cold)
        got = fdatasync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0 ? 0 : -1;
    else
        while ((got = read(file, data, sizeof data)) > 0) {}
    const bool known = got == 0 && fstat(file, &status) == 0;
    if (known) {
        *n_resident += inputs_resident_pages(file, (size_t)status.st_size, page_bytes);
        *n_pages += ((size_t)status.st_size + page_bytes - 1) / page_bytes;
    }
    close(file);
    return known || inputs_failed(path, "cannot be read or dropped from the page cache");
}

int inputs_settle(const job_run* run) {
    const uint64_t n = run->n_items < run->n_files ? run->n_items : run->n_files;
    size_t n_resident = 0, n_pages = 0;
    for (uint32_t i = 0; run->paths && i < n; i++)
        if (!inputs_settle_file(run->paths[i], run->job->cold, &n_resident, &n_pages))
            return -1;
    return n_pages ? (int)(n_resident * 100 / n_pages) : 100;
}

static bool inputs_open_rows(job_run* run) {
    const uint64_t row_bytes = work_image_bytes(&run->shape);
    const uint64_t fit = MOST_ROW_BYTES / row_bytes / run->n_files * run->n_files;
    char path[JOB_PATH_BYTES];
    run->n_rows = fit == 0 ? run->n_files : fit;
    if (run->n_rows > run->n_items)
        run->n_rows = run->n_items;
    snprintf(path, sizeof path, "%s/rows.bin", run->out);
    run->rows_file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (run->rows_file < 0 || ftruncate(run->rows_file, (off_t)(run->n_rows * row_bytes)) != 0)
        return inputs_failed(path, strerror(errno));
    return true;
}

static bool inputs_make_replaced(job_run* run) {
    char path[JOB_PATH_BYTES];
    for (uint32_t i = 0; i < run->job->n_names; i++) {
        const size_t bytes = work_file_bytes(run, i);
        void* const data = calloc(1, bytes);
        const bool done = data && work_path(run, i, 0, path) && inputs_write(path, data, bytes);
        free(data);
        if (!done)
            return false;
    }
    return true;
}

bool inputs_open_outputs(job_run* run) {
    if (run->job->output == OUTPUT_ROW && !inputs_open_rows(run))
        return false;
    if (!inputs_make_replaced(run))
        return false;
    const int directory = run->job->output_on_disk ? open(run->out, O_RDONLY | O_CLOEXEC) : -1;
    if (directory >= 0) {
        (void)syncfs(directory); /* what runs before this one left to write is not this one's */
        close(directory);
    }
    return true;
}
