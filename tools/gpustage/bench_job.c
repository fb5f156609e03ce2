/* tools/gpustage/bench_job.c -- the job of gpustage bench: JPEG frames to eight JPEG views each, as `gpustage
   reproject` does it for a user, in turns with --plain. Both print their verdict. */
#include "bench.h"

#include "codec.h"
#include "commands.h"
#include "console.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_WIDTH = 4096, FRAME_HEIGHT = 2048, LEAST_FRAMES = 4, MOST_FRAMES = 128, N_ROUNDS = 2 };

static codec_kind job_kind(void) { return codec_available(CODEC_JPEG) ? CODEC_JPEG : CODEC_PNM; }

/* ---- frames ------------------------------------------------------------------------------------ */

static bool job_paint(text* file) {
    codec* const self = codec_create();
    codec_options how = GPST_ZERO;
    gpst_image frame = GPST_ZERO;
    char reason[CODEC_REASON_BYTES];
    how.quality = 95;
    how.chroma = 444;
    frame.width = FRAME_WIDTH;
    frame.height = FRAME_HEIGHT;
    frame.format = GPST_FORMAT_RGB;
    frame.dtype = GPST_DTYPE_U8;
    frame.pitch_bytes = FRAME_WIDTH * 3;
    frame.data = malloc((size_t)FRAME_WIDTH * FRAME_HEIGHT * 3);
    file->capacity = file->bytes = codec_encode_bound(job_kind(), &frame, &how);
    file->data = (char*)malloc(file->capacity);
    const bool ok = self && frame.data && file->data;
    if (ok)
        bench_paint(&frame);
    const bool encoded =
        ok && codec_encode(self, job_kind(), &frame, &how, file->data, &file->bytes, reason) == GPST_OK;
    free(frame.data);
    codec_destroy(self);
    return encoded;
}

/* A file for each frame, as it is for users. */
static int job_make_frames(const char* folder, const text* file, uint32_t from, uint32_t to) {
    const char* wrong = NULL;
    text path = GPST_ZERO;
    for (uint32_t i = from; !wrong && i < to && !interrupt_happened(); i++) {
        text_free(&path);
        text_format(&path, "%s/frame_%03u.%s", folder, (unsigned)i, codec_extension(job_kind()));
        wrong = path.failed ? text_out_of_memory : files_write_whole(path.data, file->data, file->bytes);
    }
    if (wrong)
        console_error("bench: %s: %s", path.failed ? folder : path.data, wrong);
    text_free(&path);
    return wrong ? EXIT_FAILED_ITEMS : interrupt_happened() ? EXIT_INTERRUPTED : EXIT_DONE;
}

/* ---- runs ---------------------------------------------------------------------------------------- */

/* As from the command line. *seconds: from reading the options to the end. */
static int job_run_once(const char* frames, const char* views, bool plain, double* seconds) {
    char text_frames[512], text_views[512], output[] = "-o", loop[] = "--plain";
    char* arguments[4];
    options asked;
    snprintf(text_frames, sizeof text_frames, "%s", frames);
    snprintf(text_views, sizeof text_views, "%s", views);
    arguments[0] = text_frames;
    arguments[1] = output;
    arguments[2] = text_views;
    arguments[3] = loop;
    printf("%-9s ", plain ? "plain" : "gpustage");
    fflush(stdout);
    const double start = bench_now();
    int status = options_read(&asked, COMMAND_REPROJECT, plain ? 4 : 3, arguments);
    if (status == EXIT_DONE)
        status = command_reproject(&asked);
    *seconds = bench_now() - start;
    options_free(&asked);
    return status;
}

static void job_report(double seconds[2][N_ROUNDS], uint32_t n_frames, json* out) {
    static const char* const names[] = {"plain", "gpustage"};
    double sum[2] = {0.0, 0.0};
    json_count(out, "frames", n_frames);
    json_count(out, "views_a_frame", 8);
    for (int way = 0; way < 2; way++) {
        json_open(out, names[way], '[');
        for (int round = 0; round < N_ROUNDS; round++) {
            sum[way] += seconds[way][round];
            json_number(out, NULL, seconds[way][round]);
        }
        json_close(out, ']');
    }
    json_number(out, "speedup", sum[0] / sum[1]);
    printf("%.2f frames/s, %.2f times the plain loop's (seconds of both runs together, from reading the options on)\n",
           N_ROUNDS * (double)n_frames / sum[1], sum[0] / sum[1]);
}

/* So many that all the runs take about the budget, by a short one. */
static uint32_t job_count(double plain_s, double budget_s) {
    const double n = LEAST_FRAMES * budget_s / (2.0 * N_ROUNDS) / plain_s;
    return n < LEAST_FRAMES ? LEAST_FRAMES : n > MOST_FRAMES ? MOST_FRAMES : (uint32_t)n;
}

static int job_measure(const bench_place* place, const char* frames, const char* views, const text* file, json* out) {
    double seconds[2][N_ROUNDS], first_s = 1.0;
    int status = job_make_frames(frames, file, 0, LEAST_FRAMES);
    if (status == EXIT_DONE)
        status = job_run_once(frames, views, true, &first_s); /* also the first touch of everything */
    const uint32_t n_frames = job_count(first_s, place->budget_s);
    if (status == EXIT_DONE)
        status = job_make_frames(frames, file, LEAST_FRAMES, n_frames);
    for (int round = 0; round < N_ROUNDS; round++)
        for (int way = 0; way < 2 && status == EXIT_DONE; way++)
            status = job_run_once(frames, views, way == 0, &seconds[way][round]);
    if (status == EXIT_DONE)
        job_report(seconds, n_frames, out);
    return status;
}

int bench_job(const bench_place* place, json* out) {
    text file = GPST_ZERO, frames = GPST_ZERO, views = GPST_ZERO;
    text_format(&frames, "%s/frames", place->directory.data);
    text_format(&views, "%s/views", place->directory.data);
    printf("job: %dx%d %s frames to 8 views of 1920x1080 each, files to files; a first run of %d, then in turns\n",
           FRAME_WIDTH, FRAME_HEIGHT, codec_extension(job_kind()), LEAST_FRAMES);
    int status = frames.failed || views.failed || !job_paint(&file) ? console_memory() : EXIT_DONE;
    const char* const wrong = status == EXIT_DONE ? files_make_directory(frames.data) : NULL;
    if (wrong) {
        console_error("bench: %s: %s", frames.data, wrong);
        status = EXIT_FAILED_ITEMS;
    }
    if (status == EXIT_DONE)
        status = job_measure(place, frames.data, views.data, &file, out);
    text_free(&file);
    text_free(&frames);
    text_free(&views);
    return status;
}
