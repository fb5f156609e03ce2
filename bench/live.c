/* bench/live.c -- live streams: cameras lend frames at their own rate, stages work, and a thread takes results and may
   hold them for a while. What is measured is the age of a result when it is taken: now less the moment its frame was
   due. Every frame is followed: what submit took ends as one result or one dropped frame, and is given back once.

   live latest|model|device|stream|cameras|soak [--seconds S] [--slots N] [--seed N] [--backend NAME] [--json FILE]

   latest   60 fps, 1080p, and a stage that waits 40 ms a frame: the newest frame is next, others are dropped
   model    60 fps, 1080p, to a network's input, 40 ms in the network on the host, which says LATEST_ONLY and nothing
            else, its classes at 1080p on the host
   device   the same with the network on the device
   stream   60 fps, 1080p, to a network's input, 5 ms in the network, its classes at 1080p on the host
   cameras  eight at 30 fps, triggered together, a slot each; each result held for 100 ms
   soak     60 fps: stages, cameras and taker that stall, items that fail, bounds and policies by chance

   A row says what was wanted, on two cores (stream: with a GPU), and judges nothing. Exit status 1: a frame was lost
   sight of, or memory grew in the soak; 77: the backend is not there. */
#define _GNU_SOURCE
#include "live.h"

#include <inttypes.h>

#include "gpu/live_model.h"

enum { SOAK_RUNS = 40, SOAK_LONGEST_S = 15 };
enum { SOAK_GROWTH_KIB = 8192 }; /* more than the frames of all slots and all held results take */

/* ---- what there is to measure --------------------------------------------------------------- */

static const scenario scenarios[N_SCENARIOS] = {
    {.name = "latest", .wanted = "p50 65 ms, p99 110 ms, with 4 slots and with 16", .seconds = 10, .n_cameras = 1,
     .fps = 60, .width = 1920, .height = 1080, .side = 224, .service_ns = 40 * MS, .n_slots = {4, 16},
     .full_policy = GPST_FULL_LATEST_ONLY},
    {.name = "model", .wanted = "p50 65 ms", .seconds = 10, .n_cameras = 1, .fps = 60, .width = 1920, .height = 1080,
     .side = 512, .service_ns = 40 * MS},
    {.name = "device", .wanted = "p50 65 ms, with --backend sim or a GPU", .seconds = 10, .n_cameras = 1, .fps = 60,
     .width = 1920, .height = 1080, .side = 512, .service_ns = 40 * MS},
    {.name = "stream", .wanted = "p50 12 ms, p99 20 ms, none dropped, with a GPU", .seconds = 10, .n_cameras = 1,
     .fps = 60, .width = 1920, .height = 1080, .side = 512, .service_ns = 5 * MS,
     .full_policy = GPST_FULL_DROP_OLDEST},
    {.name = "cameras", .wanted = "none dropped", .seconds = 5, .n_cameras = 8, .fps = 30, .width = 640,
     .height = 480, .side = 224, .hold_ns = 100 * MS, .n_slots = {8}, .full_policy = GPST_FULL_DROP_OLDEST},
    {.name = "soak", .wanted = "memory that does not grow", .seconds = 60, .n_cameras = 4, .fps = 15, .width = 320,
     .height = 180, .side = 112, .service_ns = 5 * MS},
};

/* ---- chance: a number of the seed and of what is asked about, whoever asks first --------------- */

static uint64_t dice(uint64_t seed, uint64_t about) {
    uint64_t z = seed + (about + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Mostly 0; 1 of 16 times up to 30 ms, 1 of 256 times 150 ms. */
static int64_t stall_ns(uint64_t chance) {
    if (chance % 256 == 0)
        return 150 * MS;
    return chance % 16 == 0 ? (int64_t)(chance >> 8 & 0xffff) * 30 * MS / 0xffff : 0;
}

enum { OF_CAMERA = 8, OF_TAKER, OF_HOLD }; /* stages: their index */

static uint64_t dice_of(const live* self, const frame* of, uint32_t about) {
    return dice(self->soak->seed, (uint64_t)(of - self->frames) * 16 + about);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static gpst_result wait_service(void* user_data, gpst_task* task) {
    (void)task;
    measure_wait_until(measure_ns() + ((const live*)user_data)->scenario->service_ns);
    return GPST_OK;
}

/* Fails 1 of 128 items, and skips as many. */
static gpst_result stall_by_chance(void* user_data, gpst_task* task) {
    const live* const self = (const live*)user_data;
    const uint64_t chance = dice_of(self, (const frame*)task->item->user_data, task->stage_index);
    const int64_t wait_ns = stall_ns(chance) + (task->stage_index == 2 ? self->scenario->service_ns : 0);
    if (wait_ns > 0)
        measure_wait_until(measure_ns() + wait_ns);
    if ((chance >> 32) % 64 != 0)
        return GPST_OK;
    return chance >> 40 & 1 ? GPST_SKIPPED : gpst_task_fail(task, GPST_ERROR_CALLBACK, "by chance");
}

static gpst_result model_host(const void* args) {
    const live_model_args* const a = (const live_model_args*)args;
    measure_wait_until(measure_ns() + (int64_t)a->service_ns);
    for (uint32_t i = 0; i < a->n_classes * a->n_scores; i++)
        a->scores[i] = a->tensor[i % a->n_scores * a->n_steps] * (float)(i / a->n_scores);
    return GPST_OK;
}

/* Room for the scores of a tensor, and what the network is to do. */
static gpst_result prepare_model(const live* self, gpst_task* task, const gpst_image* tensor, live_model_args* args) {
    gpst_image shape = GPST_ZERO, scores;
    shape.width = shape.height = self->scenario->side / STEP;
    shape.format = GPST_FORMAT_TENSOR;
    shape.n_channels = N_CLASSES;
    shape.dtype = GPST_DTYPE_F32;
    shape.layout = GPST_LAYOUT_CHW;
    const gpst_result result = gpst_task_set_picture(task, SCORES, 0, &shape, &scores);
    args->tensor = (const float*)tensor->data;
    args->scores = (float*)scores.data;
    args->n_classes = N_CLASSES;
    args->n_scores = shape.width * shape.height;
    args->n_steps = STEP * STEP;
    args->service_ns = (uint64_t)self->scenario->service_ns;
    return result;
}

static gpst_result run_model_on_host(void* user_data, gpst_task* task) {
    live_model_args args;
    const gpst_result result =
        prepare_model((const live*)user_data, task, &task->item->sets[SMALL].pictures[0], &args);
    return GPST_FAILED(result) ? result : model_host(&args);
}

static gpst_result run_model(void* user_data, gpst_task* task) {
#if defined(GPUSTAGE_CUDA) || defined(GPUSTAGE_HIP)
    static const gpst_kernel kernel = {"model", model_host, live_model_gpu};
#else
    static const gpst_kernel kernel = {"model", model_host, NULL};
#endif
    live_model_args args;
    gpst_image tensor;
    gpst_result result = gpst_task_pictures(task, SMALL, &tensor, 1);
    if (!GPST_FAILED(result))
        result = prepare_model((const live*)user_data, task, &tensor, &args);
    return GPST_FAILED(result) ? result : gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

/* ---- the pipeline of a scenario --------------------------------------------------------------- */

static void count_dropped(void* user_data, const gpst_item* item) {
    (void)user_data;
    atomic_fetch_add(&((frame*)item->user_data)->n_dropped, 1);
}

static void describe_stream(live* self, gpst_stage_desc* stages, gpst_pipeline_desc* desc) {
    if (self->scenario == &scenarios[MODEL])
        gpst_stage_host(&stages[1], GPST_SET(SMALL), GPST_SET(SCORES), run_model_on_host, self);
    else
        gpst_stage_device(&stages[1], GPST_SET(SMALL), GPST_SET(SCORES), run_model, self);
    stages[1].name = "model";
    stages[1].queue_most = 1;
    stages[1].full_policy = GPST_FULL_LATEST_ONLY;
    gpst_stage_mask(&stages[2], SCORES, MASK, &self->mask);
    desc->n_stages = 3;
    desc->n_results = 2;
    desc->results[0] = gpst_result_of(FRAME, GPST_AS_IT_IS);
    desc->results[1] = gpst_result_of(MASK, GPST_ON_HOST);
}

static void describe_soak(live* self, gpst_stage_desc* stages, gpst_pipeline_desc* desc) {
    for (uint32_t s = 1; s < 4; s++) {
        gpst_stage_host(&stages[s], GPST_SET(SMALL), 0, stall_by_chance, self);
        stages[s].full_policy = self->soak->policies[s];
        stages[s].queue_most = self->soak->queue_most[s];
    }
    stages[2].concurrency = 1;
    stages[3].ordered = true;
    desc->n_stages = 4;
    desc->full_policy = self->soak->policies[0];
    desc->as_ready = self->soak->as_ready;
}

static gpst_result make_pipeline(live* self) {
    gpst_stage_desc stages[4];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_warp(&stages[0], FRAME, SMALL, self->warp);
    desc.stages = stages;
    desc.n_stages = 1;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(SMALL, GPST_ON_HOST);
    desc.n_slots = self->n_slots;
    desc.full_policy = self->scenario->full_policy;
    desc.dropped = count_dropped;
    if (self->scenario == &scenarios[MODEL] || self->scenario == &scenarios[DEVICE] ||
        self->scenario == &scenarios[STREAM])
        describe_stream(self, stages, &desc);
    if (self->scenario == &scenarios[SOAK])
        describe_soak(self, stages, &desc);
    if (self->scenario == &scenarios[LATEST]) {
        gpst_stage_host(&stages[1], GPST_SET(SMALL), 0, wait_service, self);
        stages[1].concurrency = 1;
        desc.n_stages = 2;
    }
    return gpst_pipeline_create(self->context, &desc, &self->pipeline);
}

/* ---- cameras and taker ------------------------------------------------------------------------ */

static void give_back(void* release_user_data) {
    atomic_fetch_add(&((frame*)release_user_data)->n_given_back, 1);
}

/* All cameras are triggered together. The last one that ends closes the pipeline. */
static void* shoot(void* argument) {
    const camera* const self = (const camera*)argument;
    live* const run = self->live;
    const scenario* const is = run->scenario;
    for (uint64_t n = self->number; n < run->n_frames; n += is->n_cameras) {
        frame* const of = &run->frames[n];
        gpst_input input = GPST_ZERO;
        of->camera = self->number;
        of->due_ns = run->start_ns + (int64_t)(n / is->n_cameras * 1000000000 / is->fps);
        measure_wait_until(of->due_ns + (run->soak ? stall_ns(dice_of(run, of, OF_CAMERA)) : 0));
        input.frame.data = gpst_memory_data(run->pixels[n % N_PIXELS]);
        input.frame.width = is->width;
        input.frame.height = is->height;
        input.frame.format = GPST_FORMAT_BGR;
        input.release = run->soak && run->soak->copied ? NULL : give_back;
        input.release_user_data = of;
        input.timestamp_ns = of->due_ns;
        input.camera = self->number;
        input.user_data = of;
        of->submitted = gpst_pipeline_submit(run->pipeline, &input, run->soak ? run->soak->submit_ns : 0, NULL);
    }
    if (atomic_fetch_sub(&run->n_shooting, 1) == 1)
        gpst_pipeline_close(run->pipeline);
    return NULL;
}

typedef struct held {
    const gpst_item* item;
    int64_t until_ns;
} held;

/* Takes results as they come, and has them until their time; oldest first. */
static gpst_result take(live* self) {
    held all[MOST_HELD];
    uint32_t first = 0, n = 0;
    const uint32_t most = self->soak ? self->soak->n_held : MOST_HELD;
    gpst_result result = GPST_OK;
    while (result == GPST_OK || result == GPST_ERROR_TIMEOUT || result == GPST_ERROR_WOULD_BLOCK) {
        const gpst_item* item = NULL;
        const int64_t now = measure_ns();
        held* const oldest = &all[first % MOST_HELD];
        if (n > 0 && (n >= most || oldest->until_ns <= now)) {
            measure_wait_until(oldest->until_ns);
            gpst_pipeline_release(self->pipeline, oldest->item);
            first++, n--;
            continue;
        }
        result = gpst_pipeline_next_result(self->pipeline, n > 0 ? oldest->until_ns - now : GPST_FOREVER, &item);
        if (result != GPST_OK)
            continue;
        frame* const of = (frame*)item->user_data;
        int64_t hold_ns = self->scenario->hold_ns;
        of->age_ns = measure_ns() - item->timestamp_ns;
        of->result = item->result;
        atomic_fetch_add(&of->n_results, 1);
        if (self->soak) {
            hold_ns = (int64_t)(dice_of(self, of, OF_HOLD) % 50) * MS;
            measure_wait_until(measure_ns() + stall_ns(dice_of(self, of, OF_TAKER)));
        }
        if (hold_ns == 0 || most == 0) {
            gpst_pipeline_release(self->pipeline, item);
            continue;
        }
        all[(first + n) % MOST_HELD].item = item;
        all[(first + n) % MOST_HELD].until_ns = measure_ns() + hold_ns;
        n++;
    }
    for (; n > 0; n--)
        gpst_pipeline_release(self->pipeline, all[first++ % MOST_HELD].item);
    return result == GPST_END ? GPST_OK : result;
}

/* ---- a run ------------------------------------------------------------------------------------ */

/* What submit took was heard of once, and what was lent came back once; the pipeline counted as many. */
static void check_frames(live* self) {
    uint64_t n_heard = 0, n_counted = 0;
    for (uint64_t n = 0; n < self->n_frames; n++) {
        frame* const of = &self->frames[n];
        const uint32_t n_results = atomic_load(&of->n_results), n_dropped = atomic_load(&of->n_dropped),
                       n_back = atomic_load(&of->n_given_back);
        const uint32_t taken = of->submitted == GPST_OK || of->submitted == GPST_DROPPED;
        const bool refused = of->submitted == GPST_ERROR_TIMEOUT || of->submitted == GPST_ERROR_WOULD_BLOCK;
        const bool right = (taken || refused) && n_results + n_dropped == taken &&
                           n_back == (self->soak && self->soak->copied ? 0 : taken) &&
                           (of->submitted != GPST_DROPPED || n_dropped == 1);
        n_heard += n_results + n_dropped;
        self->n_submitted += taken;
        self->n_refused += refused;
        self->n_dropped += n_dropped;
        self->n_given_back += n_back;
        self->n_failed += n_results && GPST_FAILED(of->result);
        self->n_skipped += n_results && of->result == GPST_SKIPPED;
        if (n_results && of->result == GPST_OK)
            self->ages_ns[self->n_ok++] = of->age_ns;
        if (!right && self->n_wrong++ < MOST_WRONG_SAID)
            fprintf(stderr, "run %" PRIu64 ", frame %" PRIu64 ": submit said %s; %u results, dropped %u times, given "
                            "back %u times\n",
                    self->n_runs, n, gpst_result_name(of->submitted), n_results, n_dropped, n_back);
    }
    for (uint32_t c = 0; c < self->scenario->n_cameras; c++) {
        const gpst_camera_stats* const of = &self->camera_stats[c];
        n_counted += of->items_ok + of->items_failed + of->items_skipped + of->items_dropped + of->items_cancelled;
    }
    if (n_heard != self->stats.items_total || n_heard != n_counted) {
        fprintf(stderr, "run %" PRIu64 ": %" PRIu64 " frames were heard of, %" PRIu64 " counted, %" PRIu64
                        " of the cameras\n",
                self->n_runs, n_heard, self->stats.items_total, n_counted);
        self->n_wrong++;
    }
}

static bool run_once(live* self) {
    const scenario* const is = self->scenario;
    self->n_frames = is->n_cameras * (uint64_t)(self->seconds * is->fps);
    memset(self->frames, 0, (size_t)self->n_frames * sizeof *self->frames);
    if (GPST_FAILED(make_pipeline(self)))
        return false;
    atomic_store(&self->n_shooting, is->n_cameras);
    self->start_ns = measure_ns() + 20 * MS; /* time for the threads to start */
    for (uint32_t c = 0; c < is->n_cameras; c++) {
        self->cameras[c].live = self;
        self->cameras[c].number = c;
        if (pthread_create(&self->cameras[c].thread, NULL, shoot, &self->cameras[c]) != 0) {
            fprintf(stderr, "live: no thread for a camera\n");
            exit(1);
        }
    }
    const gpst_result result = take(self);
    if (GPST_FAILED(result)) {
        fprintf(stderr, "live: %s\n", gpst_last_reason());
        gpst_pipeline_cancel(self->pipeline);
    }
    for (uint32_t c = 0; c < is->n_cameras; c++)
        pthread_join(self->cameras[c].thread, NULL);
    self->wall_s += (double)(measure_ns() - self->start_ns) * 1e-9;
    self->n_runs++;
    gpst_pipeline_query_stats(self->pipeline, &self->stats);
    gpst_pipeline_query_cameras(self->pipeline, self->camera_stats, is->n_cameras);
    gpst_pipeline_destroy(self->pipeline); /* gives back whatever it has */
    self->pipeline = NULL;
    check_frames(self);
    return !GPST_FAILED(result);
}

/* The first run may take as much memory as any. */
static void choose(live* self, uint64_t seed, uint64_t run) {
    static const int64_t submit_ns[] = {0, 5 * MS, GPST_FOREVER};
    soak_run* const soak = self->soak;
    memset(soak, 0, sizeof *soak);
    soak->seed = dice(seed, run * 64);
    soak->copied = run == 0 || dice(soak->seed, 1) % 2;
    soak->as_ready = dice(soak->seed, 2) % 2;
    soak->n_held = run == 0 ? 8 : (uint32_t)(dice(soak->seed, 3) % 9);
    soak->submit_ns = run == 0 ? GPST_FOREVER : submit_ns[dice(soak->seed, 4) % 3];
    self->n_slots = run == 0 ? 16 : 1 + (uint32_t)(dice(soak->seed, 5) % 16);
    for (uint32_t k = 0; k < 4 && run > 0; k++) {
        soak->policies[k] = (gpst_full_policy)(dice(soak->seed, 6 + k) % 4);
        soak->queue_most[k] = 1 + (uint32_t)(dice(soak->seed, 10 + k) % 3);
        if (soak->policies[k] == GPST_FULL_LATEST_ONLY)
            soak->queue_most[k] = 0;
    }
}

static bool run_soak(live* self, double seconds, uint64_t seed) {
    const int64_t start_ns = measure_ns();
    bool ok = true;
    for (uint64_t run = 0; ok && (run < 2 || (double)(measure_ns() - start_ns) * 1e-9 < seconds); run++) {
        choose(self, seed, run);
        ok = run_once(self);
        self->end_kib = measure_status_kib("VmRSS");
        if ((double)(measure_ns() - start_ns) * 1e-9 < seconds / 10 || run == 0)
            self->first_kib = self->end_kib;
    }
    return ok;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static bool memory_is_flat(const live* self) { return self->end_kib <= self->first_kib + SOAK_GROWTH_KIB; }

static void print_head(void) {
    printf("%-8s %5s %7s %7s %7s %7s %7s %7s %9s %8s %8s %8s %7s %6s\n", "what", "slots", "frames", "results",
           "dropped", "failed", "skipped", "refused", "results/s", "p50 ms", "p99 ms", "max ms", "stale %", "wrong");
}

/* Stale: older than the slowest stage and one period of the camera. */
static void print_row(live* self, const char* backend, FILE* json, bool is_first) {
    const scenario* const is = self->scenario;
    const int64_t fresh_ns = is->service_ns + 1000000000 / is->fps;
    uint64_t n_fresh = 0;
    measure_sort_ns(self->ages_ns, self->n_ok);
    while (n_fresh < self->n_ok && self->ages_ns[n_fresh] <= fresh_ns)
        n_fresh++;
    const double stale = self->n_ok ? (double)(self->n_ok - n_fresh) / (double)self->n_ok : 0.0,
                 rate = (double)self->n_ok / self->wall_s, p50 = measure_percentile_ms(self->ages_ns, self->n_ok, 50),
                 p99 = measure_percentile_ms(self->ages_ns, self->n_ok, 99),
                 most = measure_percentile_ms(self->ages_ns, self->n_ok, 100);
    const uint64_t n_frames = self->n_submitted + self->n_refused;
    printf("%-8s %5u %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64
           " %9.1f %8.2f %8.2f %8.2f %7.1f %6" PRIu64 "\n",
           is->name, self->stats.slots, n_frames, self->n_ok, self->n_dropped, self->n_failed, self->n_skipped,
           self->n_refused, rate, p50, p99, most, 100.0 * stale, self->n_wrong);
    for (uint32_t c = 0; is == &scenarios[CAMERAS] && c < is->n_cameras; c++) {
        const gpst_camera_stats* const of = &self->camera_stats[c];
        printf("  camera %u: %" PRIu64 " results, %" PRIu64 " dropped, submit to sink p50 %.2f ms, p99 %.2f ms\n", c,
               of->items_ok, of->items_dropped, (double)of->latency_p50_ns * 1e-6, (double)of->latency_p99_ns * 1e-6);
    }
    if (self->soak)
        printf("  %" PRIu64 " runs; memory: %" PRIu64 " KiB after a tenth, %" PRIu64 " KiB at the end: %s\n",
               self->n_runs, self->first_kib, self->end_kib, memory_is_flat(self) ? "flat" : "it grew");
    printf("  %s\n  %s\n", self->stats.settings, self->stats.verdict.text);
    fflush(stdout);
    if (!json)
        return;
    fprintf(json, "%s\n{", is_first ? "[" : ",");
    measure_print_text(json, "what", is->name);
    fprintf(json, ", ");
    measure_print_text(json, "build", gpst_build_info());
    fprintf(json, ", ");
    measure_print_text(json, "backend", backend);
    fprintf(json, ", ");
    measure_print_text(json, "wanted", is->wanted);
    fprintf(json, ", ");
    measure_print_text(json, "settings", self->stats.settings);
    fprintf(json, ", ");
    measure_print_text(json, "verdict", self->stats.verdict.text);
    fprintf(json, ", \"slots\": %u, \"wall_s\": %.3f, \"frames\": %" PRIu64 ", \"submitted\": %" PRIu64
                  ", \"refused\": %" PRIu64 ", \"results\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"skipped\": %" PRIu64
                  ", \"dropped\": %" PRIu64 ", \"given_back\": %" PRIu64 ", \"wrong\": %" PRIu64
                  ", \"results_per_s\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, \"stale\": %.5f",
            self->stats.slots, self->wall_s, n_frames, self->n_submitted, self->n_refused, self->n_ok, self->n_failed,
            self->n_skipped, self->n_dropped, self->n_given_back, self->n_wrong, rate, p50, p99, most, stale);
    if (self->soak)
        fprintf(json, ", \"runs\": %" PRIu64 ", \"first_kib\": %" PRIu64 ", \"end_kib\": %" PRIu64, self->n_runs,
                self->first_kib, self->end_kib);
    fprintf(json, ", \"cameras\": [");
    for (uint32_t c = 0; c < is->n_cameras; c++)
        fprintf(json, "%s{\"ok\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"p99_ms\": %.3f}", c ? ", " : "",
                self->camera_stats[c].items_ok, self->camera_stats[c].items_dropped,
                (double)self->camera_stats[c].latency_p99_ns * 1e-6);
    fprintf(json, "]}");
}

/* ---- the program ------------------------------------------------------------------------------ */

typedef struct options {
    const scenario* scenario;
    const char *backend, *json;
    double seconds;
    uint32_t n_slots;
    uint64_t seed;
} options;

static bool read_options(options* self, int argc, char** argv) {
    memset(self, 0, sizeof *self);
    self->seed = 1;
    for (uint32_t k = 0; argc > 1 && k < N_SCENARIOS; k++)
        self->scenario = strcmp(argv[1], scenarios[k].name) ? self->scenario : &scenarios[k];
    bool right = self->scenario && argc % 2 == 0;
    for (int k = 2; right && k < argc; k += 2) {
        char* end = argv[k + 1] + strlen(argv[k + 1]);
        if (!strcmp(argv[k], "--seconds"))
            right = (self->seconds = strtod(argv[k + 1], &end)) >= 0.1 && self->seconds < 1e6;
        else if (!strcmp(argv[k], "--slots"))
            right = (self->n_slots = (uint32_t)strtoul(argv[k + 1], &end, 10)) >= 1 && self->n_slots <= 1024;
        else if (!strcmp(argv[k], "--seed"))
            self->seed = strtoull(argv[k + 1], &end, 10);
        else if (!strcmp(argv[k], "--backend"))
            self->backend = argv[k + 1];
        else if (!strcmp(argv[k], "--json"))
            self->json = argv[k + 1];
        else
            right = false;
        right = right && !*end;
    }
    if (right && self->seconds == 0.0)
        self->seconds = self->scenario->seconds;
    if (!right)
        fprintf(stderr, "usage: live latest|model|device|stream|cameras|soak [--seconds S] [--slots N] [--seed N] [--backend NAME] "
                        "[--json FILE]     S from 0.1, N from 1 to 1024\n");
    return right;
}

static bool open_live(live* self, const options* asked) {
    const scenario* const is = asked->scenario;
    const double seconds = asked->seconds;
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image shape = GPST_ZERO;
    size_t bytes = 0;
    self->scenario = is;
    self->seconds = seconds;
    if (self->soak)
        self->seconds = seconds < SOAK_RUNS * 0.25             ? 0.25
                        : seconds > SOAK_RUNS * SOAK_LONGEST_S ? SOAK_LONGEST_S
                                                               : seconds / SOAK_RUNS;
    context_desc.backend = asked->backend;
    context_desc.require_backend = asked->backend != NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = is->side;
    desc.format = GPST_FORMAT_RGB;
    desc.dtype = GPST_DTYPE_F32;
    desc.layout = GPST_LAYOUT_CHW;
    desc.has_scale = true;
    for (int c = 0; c < 3; c++)
        desc.scale[c] = 1.0f / 57.0f, desc.bias[c] = -2.1f;
    self->mask.kind = GPST_MASK_ARGMAX;
    self->mask.width = shape.width = is->width;
    self->mask.height = shape.height = is->height;
    shape.format = GPST_FORMAT_BGR;
    /* All of a soak's memory at once, and touched: what comes later is the library's. */
    const size_t n_frames = (size_t)(self->seconds * is->fps + 1) * is->n_cameras,
                 n_ages = (size_t)((seconds + 60) * is->fps + 1) * is->n_cameras;
    self->frames = (frame*)malloc(n_frames * sizeof *self->frames);
    self->ages_ns = (int64_t*)malloc(n_ages * sizeof *self->ages_ns);
    if (!self->frames || !self->ages_ns) {
        fprintf(stderr, "live: out of memory\n");
        return false;
    }
    memset(self->frames, 0, n_frames * sizeof *self->frames);
    memset(self->ages_ns, 1, n_ages * sizeof *self->ages_ns);
    if (GPST_FAILED(gpst_context_create(&context_desc, &self->context))) {
        printf("%s\n", gpst_last_reason());
        exit(77);
    }
    bool ok = !GPST_FAILED(gpst_warp_create(&desc, &self->warp)) && !GPST_FAILED(gpst_image_bytes(&shape, &bytes));
    for (uint32_t k = 0; ok && k < N_PIXELS; k++) {
        ok = !GPST_FAILED(gpst_memory_create(gpst_context_device(self->context), GPST_MEMORY_PINNED, bytes,
                                             &self->pixels[k]));
        for (size_t i = 0; ok && i < bytes; i++)
            ((uint8_t*)gpst_memory_data(self->pixels[k]))[i] = (uint8_t)(i * 7 + (i >> 9) + 29 * k);
    }
    if (!ok)
        fprintf(stderr, "live: %s\n", gpst_last_reason());
    return ok;
}

static void close_live(live* self) {
    for (uint32_t k = 0; k < N_PIXELS; k++)
        gpst_memory_destroy(self->pixels[k]);
    gpst_warp_destroy(self->warp);
    gpst_context_destroy(self->context);
    free(self->frames);
    free(self->ages_ns);
    memset(self, 0, sizeof *self);
}

static bool measure_row(const options* asked, uint32_t n_slots, FILE* json, bool is_first) {
    static live self;
    static soak_run soak;
    gpst_context_info info;
    memset(&self, 0, sizeof self);
    self.n_slots = n_slots;
    self.soak = asked->scenario == &scenarios[SOAK] ? &soak : NULL;
    bool ok = open_live(&self, asked);
    if (ok) {
        gpst_context_query_info(self.context, &info);
        if (is_first) {
            printf("%s\n%s: %u workers, for %.1f s; wanted: %s\n\n", gpst_build_info(), info.backend, info.n_workers,
                   asked->seconds, asked->scenario->wanted);
            print_head();
        }
        ok = self.soak ? run_soak(&self, asked->seconds, asked->seed) : run_once(&self);
        print_row(&self, info.backend, json, is_first);
        ok = ok && self.n_wrong == 0 && memory_is_flat(&self);
    }
    close_live(&self);
    return ok;
}

int main(int argc, char** argv) {
    options asked;
    if (!read_options(&asked, argc, argv))
        return 1;
    FILE* const json = asked.json ? fopen(asked.json, "w") : NULL;
    if (asked.json && !json) {
        fprintf(stderr, "live: %s: %s\n", asked.json, strerror(errno));
        return 1;
    }
    bool ok = measure_row(&asked, asked.n_slots ? asked.n_slots : asked.scenario->n_slots[0], json, true);
    if (!asked.n_slots && asked.scenario->n_slots[1] > 0)
        ok = measure_row(&asked, asked.scenario->n_slots[1], json, false) && ok;
    if (json) {
        fprintf(json, "\n]\n");
        ok = fclose(json) == 0 && ok;
    }
    return ok ? 0 : 1;
}
