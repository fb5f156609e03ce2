/* bench/jobs/run_job.c -- runs one job in one way once, and prints one line of JSON about it. What happens before the
   clock starts (inputs, the page cache, the context with its device) and after it (the hash) is not counted. */
#define _GNU_SOURCE
#include "job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char run_usage[] =
    "usage: run_job --list\n"
    "       run_job JOB --make --dir INPUTS [--files N] [--shrink N]\n"
    "       run_job JOB --way engine|serial|pool --items N --dir INPUTS --out DIR [--threads N] [--backend NAME]\n"
    "                   [--files N] [--shrink N] [--check N]\n"
    "threads: of a pool; of the engine, its workers (0: its own choice). files: different inputs. check: the hash is "
    "of so\n"
    "many items. shrink: pictures of a fraction of the size, for tests. --list: the jobs, as JSON\n";

void run_note_failure(job_run* run, const char* what, const char* reason) {
    if (atomic_fetch_add(&run->n_failed, 1) == 0)
        snprintf(run->reason, sizeof run->reason, "%s: %s", what, reason);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void print_jobs(void) {
    printf("[");
    for (uint32_t i = 0; i < job_count; i++) {
        const job* const row = &job_table[i];
        printf("%s\n{", i ? "," : "");
        measure_print_text(stdout, "name", row->name);
        printf(", ");
        measure_print_text(stdout, "text", row->text);
        printf(", \"files\": %u, \"available\": %s, \"cold\": %s, \"output_on_disk\": %s, \"items_per_s\": %u, "
               "\"first_items\": %u}",
               row->n_files, row->source != SOURCE_JPEG || codec_available(CODEC_JPEG) ? "true" : "false",
               row->cold ? "true" : "false", row->output_on_disk ? "true" : "false", row->n_cameras * row->fps,
               row->first_items);
    }
    printf("\n]\n");
}

/* Of a run of two seconds and more without its first half second, in which memory is found. */
static void print_latency(job_run* run) {
    const uint64_t early = run->job->n_cameras * run->job->fps / 2, skipped = run->n_items >= 4 * early ? early : 0;
    const uint64_t n = run->n_items - skipped;
    int64_t* const latency_ns = run->latency_ns + skipped;
    measure_sort_ns(latency_ns, n);
    printf(", \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f", measure_percentile_ms(latency_ns, n, 50),
           measure_percentile_ms(latency_ns, n, 99), measure_percentile_ms(latency_ns, n, 100));
}

static void print_demands(const job_demands* demands) {
    printf(", \"demands_s\": {\"cpu\": %.6f, \"disk_in\": %.6f, \"disk_out\": %.6f, \"h2d\": %.6f, \"gpu\": %.6f, "
           "\"d2h\": %.6f, \"one_at_a_time\": %.6f}",
           demands->cpu, demands->disk_in, demands->disk_out, demands->h2d, demands->gpu, demands->d2h,
           demands->one_at_a_time);
}

/* ---- one run --------------------------------------------------------------------------------- */

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static uint32_t cores(void) {
    static gpst_probe_info info;
    return GPST_FAILED(gpst_probe(NULL, &info)) || info.cores_allowed == 0 ? 1 : info.cores_allowed;
}

/* On the CPU, the serial way and the pool are loops by hand: they need no context. */
static bool run_open_context(job_run* run) {
    gpst_context_desc desc = GPST_ZERO;
    if (run->way != WAY_ENGINE && !strcmp(run->backend, "cpu"))
        return true;
    desc.backend = run->backend;
    desc.require_backend = true;
    desc.n_workers = run->way != WAY_ENGINE ? 1 : run->n_threads ? run->n_threads : run->job->n_workers;
    return !GPST_FAILED(gpst_context_create(&desc, &run->context));
}

static bool run_open(job_run* run) {
    run->rows_file = -1;
    run->n_outputs = 1;
    run->n_cores = cores();
    run->numbers = (uint64_t*)calloc((size_t)run->n_items, sizeof *run->numbers);
    run->latency_ns = (int64_t*)calloc((size_t)run->n_items, sizeof *run->latency_ns);
    if (!run->numbers || !run->latency_ns) {
        fprintf(stderr, "run_job: out of memory\n");
        return false;
    }
    if (!work_make_warp(run) || !run_open_context(run)) {
        fprintf(stderr, "run_job: %s\n", gpst_last_reason());
        return false;
    }
    return inputs_open(run) && inputs_open_outputs(run);
}

static void run_close(job_run* run) {
    gpst_context_destroy(run->context);
    gpst_warp_destroy(run->warp);
    inputs_close(run);
    free(run->numbers);
    free(run->latency_ns);
}

static void run_print(job_run* run, double open_s, double wall_s, double used_cpu_s, int resident_pct, uint64_t hash) {
    static const char* const ways[] = {"engine", "serial", "pool"};
    printf("{");
    measure_print_text(stdout, "job", run->job->name);
    printf(", ");
    measure_print_text(stdout, "way", ways[run->way]);
    printf(", ");
    measure_print_text(stdout, "backend", run->backend);
    printf(", \"threads\": %u, \"cores\": %u, \"items\": %" PRIu64 ", \"items_failed\": %" PRIu64
           ", \"wall_s\": %.6f, \"items_per_s\": %.3f, \"cpu_s\": %.6f, \"open_s\": %.6f, \"peak_rss_bytes\": %" PRIu64,
           run->n_threads, run->n_cores, (uint64_t)atomic_load(&run->n_done), (uint64_t)atomic_load(&run->n_failed),
           wall_s, (double)atomic_load(&run->n_done) / wall_s, used_cpu_s, open_s, measure_status_kib("VmHWM") * 1024);
    printf(", \"resident_pct\": %d, \"hash\": \"%016" PRIx64 "\"", resident_pct, hash);
    if (run->way == WAY_SERIAL)
        print_demands(&run->demands);
    if (run->job->n_cameras)
        print_latency(run);
    if (run->verdict.text[0]) {
        printf(", \"library_efficiency\": %.4f, ", run->verdict.efficiency);
        measure_print_text(stdout, "verdict", run->verdict.text);
        printf(", ");
        measure_print_text(stdout, "settings", run->settings);
    }
    if (run->reason[0]) {
        printf(", ");
        measure_print_text(stdout, "reason", run->reason);
    }
    printf("}\n");
}

static int run_once(job_run* run) {
    uint64_t hash = 0;
    int64_t ns = measure_ns();
    if (!run_open(run))
        return 1;
    const double open_s = (double)(measure_ns() - ns) * 1e-9;
    const int resident_pct = inputs_settle(run);
    if (resident_pct < 0)
        return 1;
    const double start_cpu_s = cpu_s();
    run->start_ns = measure_ns();
    const gpst_result result = run->context ? pipeline_run(run) : loop_run(run);
    ns = measure_ns() - run->start_ns;
    const double used_cpu_s = cpu_s() - start_cpu_s;
    if (!run->context)
        run->demands.cpu = used_cpu_s / run->n_cores;
    if (GPST_FAILED(result))
        run_note_failure(run, gpst_result_name(result), gpst_last_reason());
    if (!atomic_load(&run->n_failed) && atomic_load(&run->n_done) != run->n_items)
        run_note_failure(run, "items", "not each was told of once");
    if (!atomic_load(&run->n_failed) && !work_hash(run, &hash))
        run_note_failure(run, "hash", "an output is not there");
    run_print(run, open_s, (double)ns * 1e-9, used_cpu_s, resident_pct, hash);
    return atomic_load(&run->n_failed) ? 1 : 0;
}

/* ---- options ---------------------------------------------------------------------------------- */

static bool parse_count(const char* text, uint64_t most, uint64_t* out) {
    char* end;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *out <= most;
}

static bool parse_way(const char* text, job_way* out) {
    *out = !strcmp(text, "serial") ? WAY_SERIAL : !strcmp(text, "pool") ? WAY_POOL : WAY_ENGINE;
    return *out != WAY_ENGINE || !strcmp(text, "engine");
}

/* An option and its value. */
static bool parse_option(job_run* run, const char* option, const char* value) {
    uint64_t n = 0;
    if (!strcmp(option, "--way"))
        return parse_way(value, &run->way);
    if (!strcmp(option, "--dir"))
        return (run->dir = value)[0] != '\0';
    if (!strcmp(option, "--out"))
        return (run->out = value)[0] != '\0';
    if (!strcmp(option, "--backend"))
        return (run->backend = value)[0] != '\0';
    if (!parse_count(value, 100000000, &n))
        return false;
    if (!strcmp(option, "--items"))
        run->n_items = n;
    else if (!strcmp(option, "--threads"))
        run->n_threads = (uint32_t)n;
    else if (!strcmp(option, "--files"))
        run->n_files = (uint32_t)n;
    else if (!strcmp(option, "--shrink"))
        run->shrink = (uint32_t)n;
    else if (!strcmp(option, "--check"))
        run->n_check = n;
    else
        return false;
    return true;
}

static bool run_check(job_run* run, bool make) {
    if (!run->n_files)
        run->n_files = run->job->n_files ? run->job->n_files : 1;
    if (!run->shrink)
        run->shrink = 1;
    if (run->way != WAY_ENGINE && (run->way == WAY_SERIAL || !run->n_threads))
        run->n_threads = 1;
    const bool enough = !run->job->cold || run->n_items <= run->n_files;
    if (!make && !enough)
        fprintf(stderr, "run_job: %s: a file is cold once: as many --files as --items\n", run->job->name);
    return run->dir && (make || (run->out && run->n_items > 0 && run->n_threads <= JOB_MOST_THREADS && enough));
}

int main(int argc, char** argv) {
    static job_run run;
    bool make = false, right = argc > 1;
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        print_jobs();
        return 0;
    }
    run.backend = "cpu";
    run.job = right ? job_find(argv[1]) : NULL;
    for (int i = 2; right && i < argc; i++)
        if (!strcmp(argv[i], "--make"))
            make = true;
        else if ((right = i + 1 < argc) != false) {
            right = parse_option(&run, argv[i], argv[i + 1]);
            i++;
        }
    if (!right || !run.job || !run_check(&run, make)) {
        fputs(run_usage, stderr);
        return 2;
    }
    if (make)
        return inputs_make(&run) ? 0 : 1;
    const int status = run_once(&run);
    run_close(&run);
    return status;
}
