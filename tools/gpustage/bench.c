/* tools/gpustage/bench.c -- the bench command: which cases, on which machine, and the JSON of it all. Times nothing
   itself. */
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

typedef struct bench_case {
    const char* name;
    int (*run)(const bench_ask* asked, json* out); /* NULL: of a later version */
    const char* text;
} bench_case;

static const bench_case bench_cases[] = {
    {"kernels", bench_kernels, "the kernels, on 1 thread and on all cores, against memcpy of the same bytes"},
    {"limits", bench_limits, "each resource alone: memory, reading, a JPEG frame, writing"},
    {"readers", bench_readers, "each way of reading, on files that are in memory and on files that are not"},
    {"pipeline", bench_pipeline, "files to files, plain and in the engine, each with its verdict"},
    {"never-slower", bench_never_slower, "the engine against both plain loops and the best pool of threads"},
    {"tuner", bench_tuner, "what it finds in 200 items against a searched grid, on simulated devices and disks"},
    {"verdict", bench_verdict, "200 mixes of known demands on sim: what it names, and what its caps promise"},
};
#define BENCH_N_CASES (sizeof bench_cases / sizeof bench_cases[0])

static int bench_list(void) {
    for (size_t i = 0; i < BENCH_N_CASES; i++)
        printf("%-14s%s%s\n", bench_cases[i].name, bench_cases[i].text,
               bench_cases[i].run ? "" : " (comes with a later version)");
    return EXIT_DONE;
}

static int bench_choose(const options* asked, bool chosen[]) {
    for (size_t at = 0; at < asked->inputs.count; at++) {
        const char* const name = asked->inputs.items[at];
        size_t i = 0;
        while (i < BENCH_N_CASES && strcmp(bench_cases[i].name, name) != 0)
            i++;
        if (i == BENCH_N_CASES)
            return console_usage(asked->command_name, "%s: no such case; --list lists them", name);
        if (!bench_cases[i].run)
            return console_usage(asked->command_name, "%s: comes with a later version", name);
        chosen[i] = true;
    }
    for (size_t i = 0; asked->inputs.count == 0 && i < BENCH_N_CASES; i++)
        chosen[i] = bench_cases[i].run != NULL;
    return EXIT_DONE;
}

/* Told before minutes are spent on measuring. */
static int bench_check_file(const options* asked) {
    if (!asked->json_file)
        return EXIT_DONE;
    text parent = files_parent(asked->json_file);
    const char* const wrong = parent.failed ? text_out_of_memory : files_check_writable(parent.data);
    text_free(&parent);
    return wrong ? console_refuse(asked->command_name, wrong, "--json=%s: its parent: %s", asked->json_file, wrong)
                 : EXIT_DONE;
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

static void bench_machine(json* out) {
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
}

static int bench_run(const bench_ask* asked, const bool chosen[], json* out) {
    int status = EXIT_DONE;
    json_open(out, NULL, '{');
    bench_machine(out);
    json_open(out, "cases", '{');
    for (size_t i = 0; i < BENCH_N_CASES && status == EXIT_DONE; i++)
        if (chosen[i]) {
            json_open(out, bench_cases[i].name, '{');
            status = bench_cases[i].run(asked, out);
            status = interrupt_happened() ? EXIT_INTERRUPTED : status;
            json_close(out, '}');
        }
    json_close(out, '}');
    json_number(out, "load_after", bench_load());
    json_close(out, '}');
    printf("load at the end %.2f\n", bench_load());
    return status;
}

int command_bench(const options* asked) {
    bool chosen[BENCH_N_CASES] = {false};
    json out = GPST_ZERO;
    bench_ask ask;
    ask.only = asked->only;
    ask.budget_s = asked->budget_s;
    ask.times = asked->times;
    ask.mixes = asked->mixes;
    ask.control = asked->control;
    ask.fresh = asked->fresh;
    if (asked->list)
        return bench_list();
    int status = bench_choose(asked, chosen);
    if (status == EXIT_DONE)
        status = bench_check_file(asked);
    if (status == EXIT_DONE) {
        interrupt_open(true); /* files that a case made are removed */
        status = bench_run(&ask, chosen, &out);
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
