/* tools/gpustage/bench.c -- the bench command: the machine's limits and one honest job, in a minute; and the JSON of
   it. What engineers measure by is under bench/. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* getloadavg */
#endif
#include "bench.h"

#include "commands.h"
#include "console.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_BUDGET_S 30

double bench_now(void) { return (double)files_clock_ns() / 1e9; }

/* Waves with a little noise: a picture that costs about what a photograph does. */
void bench_paint(const gpst_image* frame) {
    uint32_t noise = 1;
    for (size_t y = 0; y < frame->height; y++)
        for (size_t x = 0; x < (size_t)frame->width * 3; x++) {
            noise = noise * 1664525u + 1013904223u;
            ((uint8_t*)frame->data)[y * (size_t)frame->pitch_bytes + x] =
                (uint8_t)((x / 30 + y / 10 + x * y / 50000 + (noise >> 29)) & 255);
        }
}

/* Told before a minute is spent on measuring. */
static int bench_check_file(const options* asked) {
    if (!asked->json_file)
        return EXIT_DONE;
    text parent = files_parent(asked->json_file);
    const char* const wrong = parent.failed ? text_out_of_memory : files_check_writable(parent.data);
    text_free(&parent);
    return wrong ? console_refuse(asked->command_name, wrong, "--json=%s: its parent: %s", asked->json_file, wrong)
                 : EXIT_DONE;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static int bench_make_folder(text* path) {
    const char* root = getenv("TMPDIR") ? getenv("TMPDIR") : getenv("TEMP");
    root = root ? root : "/tmp";
    text_format(path, "%s/gpustage-bench-%llx", root, (unsigned long long)files_clock_ns());
    if (path->failed)
        return console_memory();
    const char* const wrong = path->bytes > 256 ? "too long" : files_make_directory(path->data);
    if (!wrong)
        return EXIT_DONE;
    console_error("bench: %s: %s", path->data, wrong);
    text_free(path);
    return EXIT_FAILED_ITEMS;
}

static void bench_remove(const char* path) {
    text_list names = GPST_ZERO;
    file_info info;
    if (files_query(path, &info))
        return;
    if (!info.is_directory) {
        files_remove(path);
        return;
    }
    (void)files_list(path, &names);
    for (size_t i = 0; i < names.count; i++) {
        text below = GPST_ZERO;
        text_format(&below, "%s/%s", path, names.items[i]);
        if (!below.failed)
            bench_remove(below.data);
        text_free(&below);
    }
    text_list_free(&names);
    files_remove_directory(path);
}

/* ---- the machine -------------------------------------------------------------------------- */

/* The processor's name as Linux tells it. */
static void bench_processor(char* out, size_t out_bytes) {
    char line[256];
    FILE* const file = fopen("/proc/cpuinfo", "r");
    snprintf(out, out_bytes, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        const char* const colon = strchr(line, ':');
        if (colon && !strncmp(line, "model name", 10) && colon[1] == ' ') {
            snprintf(out, out_bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

/* What else runs spoils the figures, so it stands beside them. Negative where the system does not tell. */
static double bench_load(void) {
    double load = -1.0;
#if !defined(_WIN32)
    if (getloadavg(&load, 1) != 1)
        load = -1.0;
#endif
    return load;
}

/* Returns the cores that this process may use. */
static uint32_t bench_machine(json* out) {
    static gpst_probe_info info;
    char processor[256];
    const double load = bench_load();
    bench_processor(processor, sizeof processor);
    if (GPST_FAILED(gpst_probe(NULL, &info)))
        memset(&info, 0, sizeof info);
    printf("%s\n%s; %s; %u cores; load %.2f\n", gpst_build_info(), info.system, processor, info.cores_allowed, load);
    json_string(out, "version", GPST_VERSION_TEXT);
    json_string(out, "build", gpst_build_info());
    json_string(out, "system", info.system);
    json_string(out, "processor", processor);
    json_count(out, "cores", info.cores_allowed);
    json_number(out, "load_before", load);
    return info.cores_allowed ? info.cores_allowed : 1;
}

/* ---- the run ---------------------------------------------------------------------------------- */

static int bench_run(bench_place* place, json* out) {
    json_open(out, NULL, '{');
    place->n_cores = bench_machine(out);
    int status = bench_make_folder(&place->directory);
    if (status == EXIT_DONE) {
        json_open(out, "limits", '{');
        status = bench_limits(place, out);
        json_close(out, '}');
    }
    if (status == EXIT_DONE) {
        json_open(out, "job", '{');
        status = bench_job(place, out);
        json_close(out, '}');
    }
    json_number(out, "load_after", bench_load());
    json_close(out, '}');
    if (place->directory.data)
        bench_remove(place->directory.data);
    text_free(&place->directory);
    return interrupt_happened() ? EXIT_INTERRUPTED : status;
}

int command_bench(const options* asked) {
    bench_place place = GPST_ZERO;
    json out = GPST_ZERO;
    place.budget_s = asked->budget_s ? asked->budget_s : BENCH_BUDGET_S;
    int status = bench_check_file(asked);
    if (status == EXIT_DONE) {
        interrupt_open(true); /* what was made is removed */
        status = bench_run(&place, &out);
    }
    if (status == EXIT_DONE && asked->json_file) {
        const char* const wrong =
            out.out.failed ? text_out_of_memory : files_write_whole(asked->json_file, out.out.data, out.out.bytes);
        if (wrong) {
            console_error("%s: %s", asked->json_file, wrong);
            status = EXIT_FAILED_ITEMS;
        }
    }
    text_free(&out.out);
    return status;
}
