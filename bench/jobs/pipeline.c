/* bench/jobs/pipeline.c -- the ways through the library, as its users write them: the engine with nothing asked for,
   and on a device with memory of its own the plain loop, one or a pool of them in one context. The only file here that
   knows the pipeline's API. */
#define _GNU_SOURCE
#include "job.h"

/* The names of a revision before items had sets, which these sources are compiled with for comparison. */
#if defined(GPST_MAX_SETS)
#define MADE(item) ((item)->sets[1].pictures)
#define PICTURE_INDEX picture_index
#define PER_PICTURE per_picture
#define LEND(input) ((input).release = pipeline_given_back) /* nobody writes into the frames */
#define SET_INPUT(task, shape, out) gpst_task_set_picture(task, 0, 0, shape, out)
#define MAP_INPUT(task, shape, offset_bytes, out) gpst_task_map_picture(task, 0, 0, shape, offset_bytes, out)
#else
#define MADE(item) ((item)->outputs)
#define PICTURE_INDEX output_index
#define PER_PICTURE per_output
#define LEND(input) ((void)0)
#define SET_INPUT(task, shape, out) gpst_task_set_input(task, shape, out)
#define MAP_INPUT(task, shape, offset_bytes, out) gpst_task_map_input(task, shape, offset_bytes, out)
#endif

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STAGES = 5 };

static uint64_t pipeline_item(const gpst_item* item) { return (uint64_t)(uintptr_t)item->user_data - 1; }
static void* pipeline_tag(uint64_t item) { return (void*)(uintptr_t)(item + 1); }

/* ---- stages ---------------------------------------------------------------------------- */

static gpst_result pipeline_start_worker(void* user_data, uint32_t worker_index, void** state) {
    (void)user_data;
    (void)worker_index;
    *state = worker_create();
    return *state ? GPST_OK : GPST_ERROR_MEMORY;
}

static void pipeline_end_worker(void* user_data, uint32_t worker_index, void* state) {
    (void)user_data;
    (void)worker_index;
    worker_free((worker*)state);
}

static gpst_result pipeline_fail(gpst_task* task) {
    return gpst_task_fail(task, GPST_ERROR_CALLBACK, "%s", ((const worker*)task->worker_state)->reason);
}

static gpst_result pipeline_decode(void* user_data, gpst_task* task) {
    const job_run* const run = (const job_run*)user_data;
    worker* const self = (worker*)task->worker_state;
    const gpst_item* const item = task->item;
    gpst_image shape, picture;
    bool in_place;
    if (!work_shape(run, self, item->file_data, item->file_bytes, &shape, &in_place))
        return pipeline_fail(task);
    if (in_place)
        return MAP_INPUT(task, &shape, 0, &picture);
    const gpst_result result = SET_INPUT(task, &shape, &picture);
    if (GPST_FAILED(result))
        return result;
    return work_decode(run, self, item->file_data, item->file_bytes, &picture) ? GPST_OK : pipeline_fail(task);
}

static gpst_result pipeline_put_view(void* user_data, gpst_task* task) {
    const job_run* const run = (const job_run*)user_data;
    worker* const self = (worker*)task->worker_state;
    char path[JOB_PATH_BYTES];
    void* room = NULL;
    size_t bytes;
    if (!work_encode(run, self, &MADE(task->item)[task->PICTURE_INDEX], &bytes))
        return pipeline_fail(task);
    if (!work_path(run, pipeline_item(task->item), task->PICTURE_INDEX, path))
        return GPST_ERROR_ARGUMENT;
    const gpst_result result = gpst_task_encoded(task, bytes, &room);
    if (GPST_FAILED(result))
        return result;
    memcpy(room, self->encoded.data, bytes);
    return gpst_task_emit(task, path, bytes);
}

static gpst_result pipeline_put_file(void* user_data, gpst_task* task) {
    const job_run* const run = (const job_run*)user_data;
    const uint64_t item = pipeline_item(task->item);
    const size_t bytes = work_file_bytes(run, item);
    char path[JOB_PATH_BYTES];
    void* room = NULL;
    if (!work_path(run, item, 0, path))
        return GPST_ERROR_ARGUMENT;
    const gpst_result result = gpst_task_encoded(task, bytes, &room);
    if (GPST_FAILED(result))
        return result;
    work_fill_file(run, item, room);
    return gpst_task_emit(task, path, bytes);
}

static gpst_result pipeline_put_row(void* user_data, gpst_task* task) {
    const job_run* const run = (const job_run*)user_data;
    return work_write_row(run, (worker*)task->worker_state, pipeline_item(task->item), MADE(task->item)[0].data)
               ? GPST_OK
               : pipeline_fail(task);
}

static gpst_result pipeline_put_number(void* user_data, gpst_task* task) {
    job_run* const run = (job_run*)user_data;
    const uint64_t item = pipeline_item(task->item);
    const bool has_picture = run->warp != NULL;
    work_wait(run);
    run->numbers[item] = work_number(run, item, has_picture ? MADE(task->item)[0].data : NULL,
                                     has_picture ? work_image_bytes(&run->shape) : 0);
    return GPST_OK;
}

static gpst_stage_desc* pipeline_add_host(job_run* run, gpst_stage_desc* stage, const char* name,
                                          gpst_stage_func func) {
    stage->kind = GPST_STAGE_HOST;
    stage->name = name;
    stage->func = func;
    stage->user_data = run;
    stage->worker_init = pipeline_start_worker;
    stage->worker_term = pipeline_end_worker;
    return stage;
}

static uint32_t pipeline_stages(job_run* run, gpst_stage_desc stages[MOST_STAGES]) {
    const job* const asked = run->job;
    uint32_t n = 0;
    memset(stages, 0, MOST_STAGES * sizeof *stages);
    if (run->paths) {
        stages[n++].kind = GPST_STAGE_READ;
        pipeline_add_host(run, &stages[n++], "decode", pipeline_decode);
    }
    if (run->warp) {
        stages[n].kind = GPST_STAGE_WARP;
        stages[n++].warp = run->warp;
    }
    if (asked->output == OUTPUT_ROW)
        pipeline_add_host(run, &stages[n++], "row", pipeline_put_row);
    else if (asked->output == OUTPUT_NUMBER && asked->work_passes)
        pipeline_add_host(run, &stages[n++], "work", pipeline_put_number)->concurrency = asked->one_at_a_time ? 1 : 0;
    else if (asked->output == OUTPUT_FILES) {
        if (run->warp)
            pipeline_add_host(run, &stages[n++], "encode", pipeline_put_view)->PER_PICTURE = true;
        else
            pipeline_add_host(run, &stages[n++], "fill", pipeline_put_file);
        stages[n++].kind = GPST_STAGE_WRITE;
    }
    return n;
}

/* ---- the ends ------------------------------------------------------------------------------ */

/* Several plain loops take their items from one list. */
static gpst_result pipeline_next(void* user_data, uint64_t index, gpst_input* out) {
    job_run* const run = (job_run*)user_data;
    const uint64_t item = atomic_fetch_add(&run->next, 1);
    (void)index;
    if (item >= run->n_items)
        return GPST_END;
    out->user_data = pipeline_tag(item);
    if (run->paths)
        out->path = run->paths[item % run->n_files];
    if (run->frames) {
        measure_wait_until(clock_due_ns(run, item));
        out->frame = run->frames[item % run->n_files];
    }
    return GPST_OK;
}

static void pipeline_take(job_run* run, const gpst_item* item) {
    const uint64_t index = pipeline_item(item);
    if (GPST_FAILED(item->result)) {
        run_note_failure(run, item->stage, item->reason);
        return;
    }
    atomic_fetch_add(&run->n_done, 1);
    if (run->frames) {
        run->latency_ns[index] = measure_ns() - clock_due_ns(run, index);
        if (!run->job->work_passes)
            run->numbers[index] = work_number(run, index, MADE(item)[0].data, work_image_bytes(&run->shape));
    }
}

static gpst_result pipeline_sink(void* user_data, const gpst_item* item) {
    pipeline_take((job_run*)user_data, item);
    return GPST_OK;
}

/* ---- running ----------------------------------------------------------------------------------- */

static void pipeline_describe(job_run* run, gpst_pipeline_desc* desc, gpst_stage_desc stages[MOST_STAGES]) {
    memset(desc, 0, sizeof *desc);
    desc->stages = stages;
    desc->n_stages = pipeline_stages(run, stages);
    desc->as_ready = true;
    desc->fsync = run->job->synced ? GPST_FSYNC_FILE : GPST_FSYNC_NONE;
}

/* The demands of one plain loop: what the library measured of each resource. */
static void pipeline_note(job_run* run, gpst_pipeline* pipeline) {
    static gpst_stats stats;
    gpst_pipeline_query_stats(pipeline, &stats);
    const double wall_s = (double)stats.wall_ns * 1e-9;
    run->verdict = stats.verdict;
    memcpy(run->settings, stats.settings, sizeof run->settings);
    run->demands.cpu = stats.verdict.share[GPST_RESOURCE_CPU] * wall_s;
    run->demands.disk_in = stats.verdict.share[GPST_RESOURCE_DISK_IN] * wall_s;
    run->demands.disk_out = stats.verdict.share[GPST_RESOURCE_DISK_OUT] * wall_s;
    run->demands.h2d = stats.verdict.share[GPST_RESOURCE_H2D] * wall_s;
    run->demands.gpu = stats.verdict.share[GPST_RESOURCE_GPU] * wall_s;
    run->demands.d2h = stats.verdict.share[GPST_RESOURCE_D2H] * wall_s;
    for (uint32_t s = 0; run->job->one_at_a_time && s < stats.n_stages; s++)
        if (!strcmp(stats.stages[s].name, "work"))
            run->demands.one_at_a_time = (double)stats.stages[s].busy_ns * 1e-9;
}

static gpst_result pipeline_pull(job_run* run, gpst_run_mode mode) {
    gpst_stage_desc stages[MOST_STAGES];
    gpst_pipeline_desc desc;
    gpst_pipeline* pipeline = NULL;
    const char** paths = NULL;
    pipeline_describe(run, &desc, stages);
    desc.source = pipeline_next;
    desc.source_user_data = run;
    desc.sink = pipeline_sink;
    desc.sink_user_data = run;
    desc.mode = mode;
    desc.n_items_expected = run->n_items;
    if (run->paths && run->way == WAY_ENGINE && (paths = (const char**)malloc(run->n_items * sizeof *paths)) != NULL) {
        for (uint64_t i = 0; i < run->n_items; i++)
            paths[i] = run->paths[i % run->n_files];
        desc.paths = paths;
        desc.n_paths = run->n_items;
    }
    gpst_result result = gpst_pipeline_create(run->context, &desc, &pipeline);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_run(pipeline);
    if (!GPST_FAILED(result) && run->way != WAY_POOL)
        pipeline_note(run, pipeline);
    gpst_pipeline_destroy(pipeline);
    free(paths);
    return result;
}

/* ---- cameras --------------------------------------------------------------------------------------- */

typedef struct camera {
    job_run* run;
    gpst_pipeline* pipeline;
    uint32_t index;
    atomic_uint* n_open;
} camera;

#if defined(GPST_MAX_SETS)
static void pipeline_given_back(void* user_data) { (void)user_data; }
#endif

static void* pipeline_camera(void* argument) {
    const camera* const self = (const camera*)argument;
    job_run* const run = self->run;
    for (uint64_t item = self->index; item < run->n_items; item += run->job->n_cameras) {
        gpst_input input = GPST_ZERO;
        input.frame = run->frames[item % run->n_files];
        LEND(input);
        input.user_data = pipeline_tag(item);
        measure_wait_until(clock_due_ns(run, item));
        if (gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL) != GPST_OK)
            run_note_failure(run, "submit", gpst_last_reason());
    }
    if (atomic_fetch_sub(self->n_open, 1) == 1)
        gpst_pipeline_close(self->pipeline);
    return NULL;
}

static void pipeline_take_all(job_run* run, gpst_pipeline* pipeline) {
    const gpst_item* item;
    while (gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_OK) {
        pipeline_take(run, item);
        gpst_pipeline_release(pipeline, item);
    }
}

/* A thread a camera hands frames in; this one takes the results: of one camera in order, of several as they come. */
static gpst_result pipeline_push(job_run* run) {
    enum { MOST_CAMERAS = 16 };
    gpst_stage_desc stages[MOST_STAGES];
    gpst_pipeline_desc desc;
    gpst_pipeline* pipeline = NULL;
    camera cameras[MOST_CAMERAS];
    pthread_t threads[MOST_CAMERAS];
    uint32_t n = 0;
    atomic_uint n_open = run->job->n_cameras;
    pipeline_describe(run, &desc, stages);
    desc.as_ready = run->job->n_cameras > 1;
    desc.preset = GPST_PRESET_LATENCY;
    const gpst_result result = gpst_pipeline_create(run->context, &desc, &pipeline);
    if (GPST_FAILED(result))
        return result;
    for (; n < run->job->n_cameras; n++) {
        cameras[n].run = run;
        cameras[n].pipeline = pipeline;
        cameras[n].index = n;
        cameras[n].n_open = &n_open;
        if (pthread_create(&threads[n], NULL, pipeline_camera, &cameras[n]) != 0)
            break;
    }
    const bool all = n == run->job->n_cameras;
    if (all)
        pipeline_take_all(run, pipeline);
    else
        gpst_pipeline_cancel(pipeline);
    for (uint32_t t = 0; t < n; t++)
        pthread_join(threads[t], NULL);
    pipeline_note(run, pipeline);
    gpst_pipeline_destroy(pipeline);
    return all ? GPST_OK : GPST_ERROR_MEMORY;
}

/* ---- a pool of plain loops ------------------------------------------------------------------------------ */

static void* pipeline_pool_main(void* argument) {
    job_run* const run = (job_run*)argument;
    if (GPST_FAILED(pipeline_pull(run, GPST_RUN_PLAIN_SERIAL)))
        run_note_failure(run, "plain loop", gpst_last_reason());
    return NULL;
}

static gpst_result pipeline_pool(job_run* run) {
    pthread_t threads[JOB_MOST_THREADS];
    uint32_t n = 0;
    while (n < run->n_threads && pthread_create(&threads[n], NULL, pipeline_pool_main, run) == 0)
        n++;
    for (uint32_t t = 0; t < n; t++)
        pthread_join(threads[t], NULL);
    return n == run->n_threads ? GPST_OK : GPST_ERROR_MEMORY;
}

gpst_result pipeline_run(job_run* run) {
    if (run->way == WAY_SERIAL)
        return pipeline_pull(run, GPST_RUN_PLAIN_SERIAL);
    if (run->way == WAY_POOL)
        return pipeline_pool(run);
    return run->job->n_cameras ? pipeline_push(run) : pipeline_pull(run, GPST_RUN_DEFAULT);
}
