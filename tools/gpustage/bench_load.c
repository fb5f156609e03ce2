/* tools/gpustage/bench_load.c -- runs jobs made of known demands. Compares nothing. */
#include "bench_load.h"

#include "codec.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_NAMES = 256, MAX_POOL = 64, SHAPE_WIDTH = 1024 };
#define MOST_INPUT_BYTES ((size_t)1 << 30)

typedef char bench_path[320];

struct bench_job {
    bench_load load;
    gpst_context* context;
    gpst_context* pools[MAX_POOL + 1]; /* by number of threads; made when first asked for */
    gpst_context* loops; /* of those threads' own pipelines: what these leave for the next is not gpustage's */
    gpst_context* deep_pools[MAX_POOL + 1]; /* the same with the device, for those of more depth than 1 */
    gpst_warp* warp;
    text directory;
    bench_path* inputs;
    uint32_t n_inputs; /* those that were made */
    double resident_pct;
    bool fresh;
    gpst_tuner_report report; /* of the last run of gpustage's */
};

/* One run: the threads of a pool share it. */
typedef struct bench_run {
    bench_job* job;
    bench_way way;
    bench_pool pool;
    uint32_t next; /* __atomic */
    int64_t asked_ns; /* what asking for figures took: nobody's work */
} bench_run;

uint32_t bench_cores(void) {
    static gpst_probe_info info;
    return GPST_FAILED(gpst_probe(NULL, &info)) || info.cores_allowed == 0 ? 1 : info.cores_allowed;
}

double bench_random(uint64_t* random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (double)(*random >> 11) / 9007199254740992.0;
}

/* ---- what an item does --------------------------------------------------------------------- */

static int64_t bench_cpu_ns(void) {
#if defined(_WIN32)
    return files_clock_ns();
#else
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

static void bench_spin(double us) {
    volatile uint32_t work = 1;
    const int64_t end_ns = bench_cpu_ns() + (int64_t)(us * 1e3);
    while (us > 0.0 && bench_cpu_ns() < end_ns)
        for (int i = 0; i < 2000; i++)
            work = work * 1664525u + 1013904223u;
}

static gpst_result bench_next(void* user_data, uint64_t index, gpst_input* out) {
    bench_run* const self = (bench_run*)user_data;
    const uint32_t n = __atomic_fetch_add(&self->next, 1, __ATOMIC_RELAXED);
    (void)index;
    if (n >= self->job->load.n_items)
        return GPST_END;
    out->name = "item";
    if (self->job->n_inputs > 0)
        out->path = self->job->inputs[n % self->job->n_inputs];
    return GPST_OK;
}

static gpst_image bench_shape(size_t bytes) {
    gpst_image shape = GPST_ZERO;
    shape.width = SHAPE_WIDTH;
    shape.height = (uint32_t)(bytes / SHAPE_WIDTH);
    shape.format = GPST_FORMAT_GRAY;
    shape.dtype = GPST_DTYPE_U8;
    return shape;
}

static gpst_result bench_codec_start(void* user_data, uint32_t worker_index, void** state) {
    (void)user_data;
    (void)worker_index;
    *state = codec_create();
    return *state ? GPST_OK : GPST_ERROR_MEMORY;
}

static void bench_codec_end(void* user_data, uint32_t worker_index, void* state) {
    (void)user_data;
    (void)worker_index;
    codec_destroy((codec*)state);
}

static gpst_result bench_decode_jpeg(void* user_data, gpst_task* task) {
    codec* const self = (codec*)task->worker_state;
    const gpst_item* const item = task->item;
    codec_kind kind = CODEC_JPEG;
    gpst_image shape, image;
    char reason[CODEC_REASON_BYTES];
    (void)user_data;
    gpst_result result = codec_read_header(self, item->file_data, item->file_bytes, NULL, &kind, &shape, reason);
    if (result == GPST_OK)
        result = gpst_task_set_input(task, &shape, &image);
    return result == GPST_OK ? codec_decode(self, item->file_data, item->file_bytes, kind, &image, reason) : result;
}

static gpst_result bench_decode(void* user_data, gpst_task* task) {
    const bench_load* const load = &((const bench_job*)user_data)->load;
    gpst_image shape = bench_shape(load->up_bytes), out;
    gpst_result result = GPST_OK;
    bench_spin(load->cpu_us);
    if (load->warp) {
        shape.height = 512;
        shape.format = GPST_FORMAT_RGB;
    }
    if (load->up_bytes > 0 || load->warp)
        result = gpst_task_set_input(task, &shape, &out);
    shape = bench_shape(load->down_bytes);
    for (uint32_t o = 0; result == GPST_OK && load->down_bytes > 0 && o < task->item->n_outputs; o++)
        result = gpst_task_set_output(task, o, &shape, &out);
    return result;
}

static gpst_result bench_nothing(const void* args) {
    (void)args;
    return GPST_OK;
}

static gpst_result bench_nothing_on_gpu(const void* args, void* native_stream) {
    (void)args;
    (void)native_stream;
    return GPST_OK;
}

static gpst_result bench_kernel(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"nothing", bench_nothing, bench_nothing_on_gpu};
    (void)user_data;
    return gpst_task_enqueue(task, &kernel, NULL, 0);
}

static gpst_result bench_encode(void* user_data, gpst_task* task) {
    const bench_job* const self = (const bench_job*)user_data;
    char path[360];
    void* room = NULL;
    const gpst_result result = gpst_task_encoded(task, self->load.write_bytes, &room);
    if (GPST_FAILED(result))
        return result;
    memset(room, 7, self->load.write_bytes);
    bench_spin(self->load.encode_us);
    snprintf(path, sizeof path, "%s/out_%u.bin", self->directory.data,
             (unsigned)((task->item->index * task->item->n_outputs + task->output_index) % N_NAMES));
    return gpst_task_emit(task, path, self->load.write_bytes);
}

/* ---- running ----------------------------------------------------------------------------------- */

static uint32_t bench_stages(bench_job* self, gpst_stage_desc* stages) {
    const bench_load* const load = &self->load;
    uint32_t n = 0;
    memset(stages, 0, 5 * sizeof *stages);
    if (self->n_inputs > 0)
        stages[n++].kind = GPST_STAGE_READ;
    stages[n].kind = GPST_STAGE_HOST;
    stages[n].name = "decode";
    stages[n].func = load->jpeg_width > 0 ? bench_decode_jpeg : bench_decode;
    stages[n].worker_init = load->jpeg_width > 0 ? bench_codec_start : NULL;
    stages[n].worker_term = load->jpeg_width > 0 ? bench_codec_end : NULL;
    stages[n++].user_data = self;
    if (load->warp) {
        stages[n].kind = GPST_STAGE_WARP;
        stages[n++].warp = self->warp;
    } else if (load->up_bytes > 0) {
        stages[n].kind = GPST_STAGE_DEVICE;
        stages[n].name = "kernel";
        stages[n++].func = bench_kernel;
    }
    if (load->write_bytes > 0) {
        stages[n].kind = GPST_STAGE_HOST;
        stages[n].name = "encode";
        stages[n].func = bench_encode;
        stages[n].per_output = true;
        stages[n++].user_data = self;
        stages[n++].kind = GPST_STAGE_WRITE;
    }
    return n;
}

static void bench_ask_run(bench_run* run, gpst_pipeline* pipeline, gpst_stats* stats) {
    const int64_t start_ns = files_clock_ns();
    gpst_pipeline_query_stats(pipeline, stats);
    if (run->way == BENCH_GPUSTAGE)
        gpst_pipeline_query_tuner(pipeline, &run->job->report);
    run->asked_ns = files_clock_ns() - start_ns;
}

/* A number of reads or of writes at once that a pipeline takes. */
static uint32_t bench_at_once(const bench_pool* pool) {
    const uint32_t in_flight = pool->n_threads * pool->depth;
    return in_flight < 64 ? in_flight : 64;
}

static gpst_result bench_run_one(bench_run* run, gpst_context* context, gpst_stats* stats) {
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT,      GPST_RUN_PLAIN_SERIAL, GPST_RUN_PLAIN_INSIDE,
                                          GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE,       GPST_RUN_ENGINE};
    gpst_stage_desc stages[5];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    desc.stages = stages;
    desc.n_stages = bench_stages(run->job, stages);
    for (uint32_t s = 0; run->way == BENCH_EVERYTHING && s < desc.n_stages; s++)
        stages[s].concurrency = stages[s].kind == GPST_STAGE_HOST ? 1 : 0;
    desc.source = bench_next;
    desc.source_user_data = run;
    desc.mode = modes[(int)run->way];
    desc.n_outputs = run->job->load.warp ? 0 : run->job->load.n_outputs;
    if (run->way == BENCH_EVERYTHING) {
        desc.n_reads = desc.n_writes = 1;
        desc.n_slots = 3;
    } else if (run->way == BENCH_POOL && run->pool.depth > 1) {
        desc.mode = GPST_RUN_ENGINE;
        desc.n_slots = run->pool.n_threads * run->pool.depth;
        desc.n_reads = desc.n_writes = bench_at_once(&run->pool);
    }
    desc.n_items_expected = run->job->load.n_items;
    desc.fsync = run->job->load.synced ? GPST_FSYNC_FILE : GPST_FSYNC_NONE;
    gpst_result result = gpst_pipeline_create(context, &desc, &pipeline);
    if (GPST_FAILED(result))
        return result;
    if (run->way != BENCH_POOL) /* whose threads have one each */
        interrupt_watch(pipeline);
    result = gpst_pipeline_run(pipeline);
    if (run->way != BENCH_POOL)
        interrupt_watch(NULL);
    if (stats)
        bench_ask_run(run, pipeline, stats);
    gpst_pipeline_destroy(pipeline);
    return result == GPST_PARTIAL ? GPST_ERROR_IO : result;
}

static gpst_result bench_pool_next(void* user_data, uint64_t index, gpst_input* out) {
    out->name = "thread";
    return index < *(const uint32_t*)user_data ? GPST_OK : GPST_END;
}

static gpst_result bench_pool_thread(void* user_data, gpst_task* task) {
    bench_run* const run = (bench_run*)user_data;
    (void)task;
    return bench_run_one(run, run->job->loops, NULL);
}

static gpst_result bench_pool_context(gpst_context** context, const char* backend, uint32_t n_threads) {
    gpst_context_desc desc = GPST_ZERO;
    desc.n_workers = n_threads;
    desc.backend = backend;
    return *context ? GPST_OK : gpst_context_create(&desc, context);
}

/* The threads of the pool are the workers of a context of their own, each with one long item. */
static gpst_result bench_run_loops(bench_run* run) {
    const uint32_t n_threads = run->pool.n_threads;
    gpst_context** const context = &run->job->pools[n_threads];
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_result result = bench_pool_context(context, "cpu", n_threads);
    if (!GPST_FAILED(result))
        result = bench_pool_context(&run->job->loops, run->job->load.backend, 1);
    if (GPST_FAILED(result))
        return result;
    stage.kind = GPST_STAGE_HOST;
    stage.func = bench_pool_thread;
    stage.user_data = run;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.n_slots = n_threads;
    desc.source = bench_pool_next;
    desc.source_user_data = &run->pool.n_threads;
    desc.mode = GPST_RUN_ENGINE;
    result = gpst_pipeline_create(*context, &desc, &pipeline);
    if (GPST_FAILED(result))
        return result;
    result = gpst_pipeline_run(pipeline);
    gpst_pipeline_destroy(pipeline);
    return result;
}

static gpst_result bench_run_pool(bench_run* run) {
    gpst_context** const context = &run->job->deep_pools[run->pool.n_threads];
    if (run->pool.depth <= 1)
        return bench_run_loops(run);
    const gpst_result result = bench_pool_context(context, run->job->load.backend, run->pool.n_threads);
    return GPST_FAILED(result) ? result : bench_run_one(run, *context, NULL);
}

/* What cannot be dropped is seen in what is resident; what cannot be asked counts as all of it. */
static void bench_drop_inputs(bench_job* self) {
    for (uint32_t i = 0; i < self->n_inputs; i++) {
        const int resident_pct = files_drop_cached(self->inputs[i]);
        const double pct = resident_pct < 0 ? 100.0 : resident_pct;
        if (pct > self->resident_pct)
            self->resident_pct = pct;
    }
}

double bench_job_resident_pct(const bench_job* self) { return self->resident_pct; }
const gpst_tuner_report* bench_job_report(const bench_job* self) { return &self->report; }

void bench_job_set_fresh(bench_job* self) { self->fresh = true; }

static void bench_trim(bench_job* self) {
    gpst_context_trim(self->context);
    gpst_context_trim(self->loops);
    for (uint32_t i = 0; i <= MAX_POOL; i++)
        gpst_context_trim(self->deep_pools[i]);
}

double bench_job_run(bench_job* self, bench_way way, const bench_pool* pool, gpst_stats* stats) {
    bench_run run = GPST_ZERO;
    if (interrupt_happened())
        return -1.0;
    if (self->load.cold)
        bench_drop_inputs(self);
    if (self->fresh)
        bench_trim(self);
    run.job = self;
    run.way = way;
    if (pool)
        run.pool = *pool;
    const int64_t start_ns = files_clock_ns();
    const gpst_result result =
        way == BENCH_POOL ? bench_run_pool(&run) : bench_run_one(&run, self->context, stats);
    const double seconds = (double)(files_clock_ns() - start_ns - run.asked_ns) / 1e9;
    return result == GPST_OK && !interrupt_happened() ? seconds : -1.0;
}

/* ---- open / close --------------------------------------------------------------------------------- */

static char wrong_files[400]; /* "" = nothing was wrong with the latest job's */

const char* bench_reason(void) {
    const char* const reason = interrupt_happened() ? "interrupted"
                               : wrong_files[0]     ? wrong_files
                                                    : gpst_last_reason();
    return reason[0] ? reason : "out of memory";
}

static const char* bench_root(bool in_memory) {
    static const char memory[] = "/dev/shm";
    const char* const root = getenv("TMPDIR") ? getenv("TMPDIR") : getenv("TEMP");
    if (in_memory && !files_check_writable(memory))
        return memory;
    return root ? root : "/tmp";
}

bool bench_make_directory(bool in_memory, text* path) {
    static uint32_t n_made = 0;
    const char* const root = bench_root(in_memory);
    char name[64];
    snprintf(name, sizeof name, "/gpustage-bench-%llx-%u", (unsigned long long)files_clock_ns(), (unsigned)n_made++);
    text_add(path, root);
    text_add(path, name);
    const char* wrong = path->failed ? "out of memory" : strlen(path->data) >= 280 ? "too long" : NULL;
    wrong_files[0] = '\0';
    if (!wrong)
        wrong = files_make_directory(path->data);
    if (wrong)
        snprintf(wrong_files, sizeof wrong_files, "%.300s: %.64s", path->failed ? root : path->data, wrong);
    return !wrong;
}

static bool bench_write_input(bench_job* self, const void* data, size_t bytes) {
    char* const path = self->inputs[self->n_inputs++];
    snprintf(path, sizeof(bench_path), "%s/in_%u.bin", self->directory.data, (unsigned)self->n_inputs);
    const char* const wrong = files_write_whole(path, data, bytes);
    if (wrong)
        snprintf(wrong_files, sizeof wrong_files, "%s: %.64s", path, wrong);
    return !wrong;
}

/* A file for each item, as it is for users: one that several items read would be in the caches of cores. Of more than
   1 GiB in all, items read them again. */
static uint32_t bench_room_for_inputs(bench_job* self, size_t bytes) {
    const size_t fit = bytes > 0 ? (MOST_INPUT_BYTES + bytes - 1) / bytes : 0;
    const uint32_t n = fit < self->load.n_items ? (uint32_t)fit : self->load.n_items;
    self->inputs = n > 0 ? (bench_path*)calloc(n, sizeof(bench_path)) : NULL;
    return self->inputs ? n : 0;
}

static bool bench_make_inputs(bench_job* self) {
    const bench_load* const load = &self->load;
    const uint32_t n = bench_room_for_inputs(self, load->read_bytes);
    char* const data = (char*)malloc(load->read_bytes ? load->read_bytes : 1);
    bool ok = data && (n > 0 || load->read_bytes == 0);
    if (ok)
        memset(data, 3, load->read_bytes ? load->read_bytes : 1);
    while (ok && self->n_inputs < n) {
        const bool small = load->mixed && self->n_inputs % 8 != 0;
        ok = bench_write_input(self, data, small ? load->read_bytes / 16 : load->read_bytes);
    }
    free(data);
    return ok;
}

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

static bool bench_make_jpeg(bench_job* self) {
    codec* const encoder = codec_create();
    codec_options options;
    gpst_image frame = GPST_ZERO;
    char reason[CODEC_REASON_BYTES];
    options.quality = 95;
    options.chroma = 444;
    frame.width = self->load.jpeg_width;
    frame.height = self->load.jpeg_width / 2;
    frame.format = GPST_FORMAT_RGB;
    frame.dtype = GPST_DTYPE_U8;
    frame.pitch_bytes = (int64_t)frame.width * 3;
    frame.data = malloc((size_t)frame.pitch_bytes * frame.height);
    size_t bytes = codec_encode_bound(CODEC_JPEG, &frame, &options);
    char* const data = (char*)malloc(bytes ? bytes : 1);
    bool ok = encoder && frame.data && data;
    if (ok) {
        bench_paint(&frame);
        ok = codec_encode(encoder, CODEC_JPEG, &frame, &options, data, &bytes, reason) == GPST_OK;
        if (!ok)
            snprintf(wrong_files, sizeof wrong_files, "a JPEG: %s", reason);
    }
    const uint32_t n = ok ? bench_room_for_inputs(self, bytes) : 0;
    ok = ok && n > 0;
    while (ok && self->n_inputs < n)
        ok = bench_write_input(self, data, bytes);
    free(data);
    free(frame.data);
    codec_destroy(encoder);
    return ok;
}

bool bench_has_jpeg(void) { return codec_available(CODEC_JPEG); }

static gpst_result bench_make_warp(bench_job* self) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_view view;
    memset(&view, 0, sizeof view);
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = 640;
    desc.height = 480;
    desc.format = GPST_FORMAT_RGB;
    return self->load.warp ? gpst_warp_create(&desc, &self->warp) : GPST_OK;
}

static bool bench_make_files(bench_job* self) {
    const bench_load* const load = &self->load;
    if (load->read_bytes == 0 && load->write_bytes == 0 && load->jpeg_width == 0)
        return true;
    return bench_make_directory(load->in_memory, &self->directory) &&
           (load->jpeg_width > 0 ? bench_make_jpeg(self) : bench_make_inputs(self));
}

gpst_result bench_job_open(const bench_load* load, uint32_t n_workers, bench_job** out) {
    bench_job* const self = (bench_job*)calloc(1, sizeof *self);
    gpst_context_desc desc = GPST_ZERO;
    *out = NULL;
    wrong_files[0] = '\0';
    if (!self)
        return GPST_ERROR_MEMORY;
    self->load = *load;
    desc.backend = load->backend;
    desc.n_workers = n_workers;
    gpst_result result = gpst_context_create(&desc, &self->context);
    if (result == GPST_OK)
        result = bench_make_warp(self);
    if (result == GPST_OK && !bench_make_files(self))
        result = GPST_ERROR_IO;
    if (result == GPST_OK)
        *out = self;
    else
        bench_job_close(self);
    return result;
}

void bench_job_close(bench_job* self) {
    char path[360];
    if (!self)
        return;
    for (uint32_t i = 0; i < self->n_inputs; i++)
        files_remove(self->inputs[i]);
    free(self->inputs);
    for (uint32_t i = 0; self->load.write_bytes > 0 && self->directory.data && i < N_NAMES; i++) {
        snprintf(path, sizeof path, "%s/out_%u.bin", self->directory.data, (unsigned)i);
        files_remove(path);
    }
    if (self->directory.data)
        files_remove_directory(self->directory.data);
    text_free(&self->directory);
    for (uint32_t i = 0; i <= MAX_POOL; i++) {
        gpst_context_destroy(self->pools[i]);
        gpst_context_destroy(self->deep_pools[i]);
    }
    gpst_context_destroy(self->loops);
    gpst_context_destroy(self->context);
    gpst_warp_destroy(self->warp);
    free(self);
}
