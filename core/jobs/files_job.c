/* core/jobs/files_job.c -- files through READ, decode, WARP, encode and WRITE: the pipeline, and what is reported at
   the end. */
#include "../base/platform_internal.h"

#include "../pipeline/engine_internal.h"
#include "jobs_internal.h"

#include <string.h>

#define GPSTI_FILES_JOB_STAGES 8
#define GPSTI_FILES_JOB_NAME_BYTES 440 /* in report->first_failure, which has room for stage and reason beside it */

GPSTI_INTERN gpst_result gpsti_files_job_fail(gpst_result result, const char* function) {
    const char* const reason = gpst_last_reason();
    const char* const rest = strncmp(reason, "gpst_", 5) ? NULL : strstr(reason, ": ");
    char text[GPSTI_REASON_BYTES];
    gpsti_copy_text(text, sizeof text, rest ? rest + 2 : reason);
    return gpsti_fail(result, "%s: %s", function, text);
}

/* ---- source and sink ------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_files_job_next_input(void* user_data, uint64_t index, gpst_input* out) {
    gpsti_files_job* const self = (gpsti_files_job*)user_data;
    const gpst_job_hooks* const hooks = self->desc.hooks;
    if (index >= self->inputs.n)
        return GPST_END;
    out->path = self->inputs.items[index];
    const gpst_result result = hooks->begin ? hooks->begin(hooks->user_data, index, out->path) : GPST_OK;
    GPSTI_FAIL_IF(result > GPST_OK && result != GPST_SKIPPED, GPST_ERROR_CALLBACK,
                  "begin returned %s: must be GPST_OK, GPST_SKIPPED or negative", gpst_result_name(result));
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_take_item(void* user_data, const gpst_item* item) {
    gpsti_files_job* const self = (gpsti_files_job*)user_data;
    const gpst_job_hooks* const hooks = self->desc.hooks;
    self->n_ended += item->result != GPST_ERROR_CANCELLED;
    self->n_ok += item->result == GPST_OK;
    if (self->report && GPST_FAILED(item->result) && item->result != GPST_ERROR_CANCELLED &&
        !self->report->first_failure[0])
        gpsti_format(self->report->first_failure, sizeof self->report->first_failure, "%.*s%s: %s: %s",
                     GPSTI_FILES_JOB_NAME_BYTES, item->name,
                     strlen(item->name) > GPSTI_FILES_JOB_NAME_BYTES ? "..." : "", item->stage, item->reason);
    if (hooks->done)
        hooks->done(hooks->user_data, item);
    return GPST_OK;
}

GPSTI_PRIVATE const char* gpsti_files_job_extension(const gpsti_files_job_desc* desc) {
    const gpst_file_kind kind = desc->encode.kind;
    return desc->hooks->encode ? desc->hooks->extension
           : kind == GPST_FILE_PNM ? "ppm"
           : kind == GPST_FILE_NPY ? "npy"
                                   : "jpg";
}

/* ---- stages -------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_files_job_worker_init(void* user_data, uint32_t worker_index, void** worker_state) {
    const gpst_job_hooks* const hooks = ((const gpsti_files_job*)user_data)->desc.hooks;
    return hooks->worker_init ? hooks->worker_init(hooks->user_data, worker_index, worker_state) : GPST_OK;
}

GPSTI_PRIVATE void gpsti_files_job_worker_term(void* user_data, uint32_t worker_index, void* worker_state) {
    const gpst_job_hooks* const hooks = ((const gpsti_files_job*)user_data)->desc.hooks;
    if (hooks->worker_term)
        hooks->worker_term(hooks->user_data, worker_index, worker_state);
}

GPSTI_PRIVATE gpst_result gpsti_files_job_decode(void* user_data, gpst_task* task) {
    const gpst_job_hooks* const hooks = ((const gpsti_files_job*)user_data)->desc.hooks;
    (void)gpst_task_metadata(task); /* for all of its views */
    return hooks->decode ? hooks->decode(hooks->user_data, task) : hooks->decode_other(hooks->user_data, task);
}

GPSTI_PRIVATE uint32_t gpsti_files_job_views(const gpsti_files_job* self) {
    return self->desc.mask_warp ? GPSTI_JOB_MASKED : GPSTI_JOB_VIEWS;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_encode(void* user_data, gpst_task* task) {
    const gpsti_files_job* const self = (const gpsti_files_job*)user_data;
    const gpst_job_hooks* const hooks = self->desc.hooks;
    char path[GPSTI_JOB_PATH_BYTES];
    GPSTI_TRY(gpsti_files_job_output_path(self, task->item->index, task->picture_index, path));
    if (hooks->encode)
        return hooks->encode(hooks->user_data, task,
                             &task->item->sets[gpsti_files_job_views(self)].pictures[task->picture_index], path);
    GPSTI_TRY(gpst_task_emit(task, path, task->encoded_bytes));
    return hooks->beside ? hooks->beside(hooks->user_data, task, path) : GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_emit_row(void* user_data, gpst_task* task) {
    const gpsti_files_job* const self = (const gpsti_files_job*)user_data;
    return gpsti_stack_emit(&self->stack, task, task->item->index,
                            task->item->sets[GPSTI_JOB_VIEWS].pictures[0].data);
}

/* Both warps follow one another, so that a device has them in one submission. */
GPSTI_PRIVATE uint32_t gpsti_files_job_make_warps(gpsti_files_job* self, gpst_stage_desc* stages, uint32_t n) {
    if (self->desc.mask_warp) {
        gpst_stage_host(&stages[n], 0, GPST_SET(GPSTI_JOB_MASK), gpsti_files_job_load_mask, self);
        stages[n++].name = "mask";
    }
    gpst_stage_warp(&stages[n++], GPSTI_JOB_FRAME, GPSTI_JOB_VIEWS, self->desc.warp);
    if (self->desc.mask_warp) {
        gpst_stage_warp(&stages[n], GPSTI_JOB_MASK, GPSTI_JOB_VIEW_MASKS, self->desc.mask_warp);
        stages[n++].name = "mask kernel";
        gpst_stage_host(&stages[n], GPST_SET(GPSTI_JOB_VIEWS) | GPST_SET(GPSTI_JOB_VIEW_MASKS),
                        GPST_SET(GPSTI_JOB_MASKED), gpsti_files_job_apply_mask, self);
        stages[n++].name = "masking";
    }
    return n;
}

GPSTI_PRIVATE uint32_t gpsti_files_job_make_stages(gpsti_files_job* self,
                                                   gpst_stage_desc stages[GPSTI_FILES_JOB_STAGES]) {
    const bool stacked = self->desc.output_file != NULL;
    const gpst_job_hooks* const hooks = self->desc.hooks;
    const uint32_t views = gpsti_files_job_views(self);
    uint32_t n = 0;
    gpst_stage_read(&stages[n++]);
    if (hooks->decode) {
        gpst_stage_host(&stages[n], 0, GPST_SET(GPSTI_JOB_FRAME), gpsti_files_job_decode, self);
    } else {
        gpst_stage_decode(&stages[n], GPSTI_JOB_FRAME, self->desc.decode);
        stages[n].func = hooks->decode_other ? gpsti_files_job_decode : NULL;
        stages[n].user_data = self;
    }
    stages[n++].name = "decode";
    n = gpsti_files_job_make_warps(self, stages, n);
    if (stacked || hooks->encode)
        gpst_stage_host(&stages[n], GPST_SET(views), 0, stacked ? gpsti_files_job_emit_row : gpsti_files_job_encode,
                        self);
    else
        gpst_stage_encode(&stages[n], views, &self->desc.encode, gpsti_files_job_encode, self);
    stages[n].per_picture = !stacked && hooks->encode;
    stages[n++].name = stacked ? "row" : "encode";
    gpst_stage_write(&stages[n]);
    stages[n++].concurrency = stacked ? 1 : 0; /* a file has one writer at a time: others would wait on a core */
    for (uint32_t s = 0; s < n; s++)
        if (stages[s].func) {
            stages[s].worker_init = gpsti_files_job_worker_init;
            stages[s].worker_term = gpsti_files_job_worker_term;
        }
    return n;
}

/* ---- the run --------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_files_job_open_output(gpsti_files_job* self, gpst_context* context) {
    gpst_image row;
    char where[64];
    gpsti_format(where, sizeof where, "%s: desc.output_%s", self->desc.function,
                 self->desc.output_file ? "file" : "dir");
    gpst_warp_query_output(self->desc.warp, &row);
    const gpst_result result =
        self->desc.output_file ? gpsti_stack_open(&self->stack, context, self->desc.output_file, &row, self->inputs.n,
                                                  self->desc.run->fsync != GPST_FSYNC_NONE)
                               : gpsti_files_job_make_folders(self);
    return GPST_FAILED(result) ? gpsti_fail_in(result, where) : GPST_OK;
}

/* The stacked file gets its name, or is removed: result, or what failed of that. */
GPSTI_PRIVATE gpst_result gpsti_files_job_close_output(gpsti_files_job* self, gpst_result result) {
    GPSTI_TRY(gpsti_stack_close(&self->stack, self->n_ended == self->inputs.n && self->n_ok > 0));
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_run_pipeline(gpsti_files_job* self, gpst_pipeline* pipeline) {
    gpst_result result = gpst_pipeline_run(pipeline);
    if (GPST_FAILED(result))
        result = gpsti_files_job_fail(result, self->desc.function);
    else if (result == GPST_OK && self->n_ended < self->inputs.n)
        result = gpsti_fail(GPST_ERROR_CANCELLED, "%s: stopped with %llu of %llu inputs done", self->desc.function,
                            (unsigned long long)self->n_ok, (unsigned long long)self->inputs.n);
    result = gpsti_files_job_close_output(self, result);
    gpsti_report_job(pipeline, self->desc.begun_ns, gpsti_now_ns());
    if (self->report) {
        gpst_pipeline_query_stats(pipeline, &self->report->stats);
        gpst_pipeline_query_tuner(pipeline, &self->report->tuner);
    }
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_make_pipeline(gpsti_files_job* self, gpst_context* context,
                                                        gpst_pipeline** out) {
    gpst_stage_desc stages[GPSTI_FILES_JOB_STAGES];
    gpst_pipeline_desc desc = *self->desc.run;
    desc.stages = stages;
    desc.n_stages = gpsti_files_job_make_stages(self, stages);
    desc.source = gpsti_files_job_next_input;
    desc.source_user_data = self;
    desc.n_items_expected = self->inputs.n;
    desc.paths = (const char* const*)self->inputs.items;
    desc.n_paths = self->inputs.n;
    desc.sink = gpsti_files_job_take_item;
    desc.sink_user_data = self;
    desc.as_ready = true;
    desc.n_results = 0;
    desc.n_writes = self->stack.target && desc.n_writes == 0 ? 1 : desc.n_writes; /* as of the WRITE stage */
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.capacity[GPSTI_JOB_MASKED] = self->desc.mask_warp ? gpst_warp_n_outputs(self->desc.warp) : 0;
    const gpst_result created = gpst_pipeline_create(context, &desc, out);
    return GPST_FAILED(created) ? gpsti_files_job_fail(created, self->desc.function) : GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_run_in(gpsti_files_job* self, gpst_context* context) {
    const gpst_job_hooks* const hooks = self->desc.hooks;
    gpst_pipeline* pipeline = NULL;
    GPSTI_TRY(gpsti_files_job_list_inputs(self));
    GPSTI_TRY(gpsti_files_job_check_outputs(self));
    GPSTI_TRY(gpsti_files_job_open_output(self, context));
    const gpst_result made = gpsti_files_job_make_pipeline(self, context, &pipeline);
    if (GPST_FAILED(made))
        return gpsti_files_job_close_output(self, made);
    gpsti_report_job(pipeline, self->desc.begun_ns, 0);
    if (hooks->watch)
        hooks->watch(hooks->user_data, pipeline, self->inputs.n);
    const gpst_result result = gpsti_files_job_run_pipeline(self, pipeline);
    if (hooks->watch)
        hooks->watch(hooks->user_data, NULL, self->inputs.n);
    (void)gpst_pipeline_destroy(pipeline);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_check(const gpsti_files_job_desc* desc) {
    const gpst_job_hooks* const hooks = desc->hooks;
    const char* const function = desc->function;
    GPSTI_FAIL_IF(!desc->inputs || desc->n_inputs == 0, GPST_ERROR_ARGUMENT, "%s: desc.inputs: required", function);
    GPSTI_FAIL_IF(!desc->output_dir && !desc->output_file, GPST_ERROR_ARGUMENT, "%s: desc.output_dir=NULL: required",
                  function);
    GPSTI_FAIL_IF(desc->output_dir && desc->output_file, GPST_ERROR_ARGUMENT,
                  "%s: desc.output_dir and desc.output_file: one of them", function);
    GPSTI_FAIL_IF(desc->begun_ns < 0 || desc->begun_ns > gpsti_now_ns(), GPST_ERROR_ARGUMENT,
                  "%s: desc.begun_ns=%lld: must not be negative or later than now", function,
                  (long long)desc->begun_ns);
    GPSTI_FAIL_IF(desc->output_dir && (!desc->output_dir[0] || strlen(desc->output_dir) + 64 > GPSTI_JOB_PATH_BYTES),
                  GPST_ERROR_ARGUMENT, "%s: desc.output_dir: 1 to %d bytes", function, GPSTI_JOB_PATH_BYTES - 64);
    GPSTI_FAIL_IF(desc->output_file && !desc->output_file[0], GPST_ERROR_ARGUMENT,
                  "%s: desc.output_file: must not be empty", function);
    GPSTI_FAIL_IF(hooks->encode && (!hooks->extension || !hooks->extension[0]), GPST_ERROR_ARGUMENT,
                  "%s: desc.hooks.extension: required with encode", function);
    GPSTI_FAIL_IF(hooks->encode && (hooks->extension[0] == '.' || strpbrk(hooks->extension, "/\\")),
                  GPST_ERROR_ARGUMENT, "%s: desc.hooks.extension=\"%s\": without a dot before it or a directory",
                  function, hooks->extension);
    GPSTI_FAIL_IF(hooks->encode && desc->output_file, GPST_ERROR_ARGUMENT,
                  "%s: desc.hooks.encode: not with output_file, whose rows are as they are", function);
    GPSTI_FAIL_IF(hooks->decode && hooks->decode_other, GPST_ERROR_ARGUMENT,
                  "%s: desc.hooks.decode_other: decode has every file already", function);
    GPSTI_FAIL_IF((hooks->encode || desc->output_file) && hooks->beside, GPST_ERROR_ARGUMENT,
                  "%s: desc.hooks.beside: neither with encode nor with output_file", function);
    GPSTI_FAIL_IF(desc->output_file && hooks->name, GPST_ERROR_ARGUMENT,
                  "%s: desc.hooks.name: not with output_file, which has its name", function);
    GPSTI_FAIL_IF((int)desc->encode.kind < 0 || desc->encode.kind > GPST_FILE_JPEG, GPST_ERROR_ARGUMENT,
                  "%s: desc.encode.kind=%d: unknown", function, (int)desc->encode.kind);
    return GPST_OK;
}

/* No input is begun whose views could not be encoded. */
GPSTI_PRIVATE gpst_result gpsti_files_job_try_codec(const gpsti_files_job_desc* desc) {
    uint8_t pixel[3] = {0, 0, 0}, file[8192];
    const gpst_image image = {pixel, 0, 1, 1, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC, 0};
    size_t bytes = sizeof file;
    gpst_jpeg* jpeg = NULL;
    if (desc->hooks->encode || desc->output_file || desc->encode.kind == GPST_FILE_PNM ||
        desc->encode.kind == GPST_FILE_NPY)
        return GPST_OK;
    gpst_result result = gpst_jpeg_create(NULL, &jpeg);
    if (!GPST_FAILED(result))
        result = gpst_jpeg_encode(jpeg, &image, &desc->encode.jpeg, file, &bytes);
    gpst_jpeg_destroy(jpeg);
    if (!GPST_FAILED(result))
        return GPST_OK;
    const char* const member = strstr(gpst_last_reason(), ": desc.");
    char text[GPSTI_REASON_BYTES];
    gpsti_copy_text(text, sizeof text, member ? member + strlen(": desc.") : "");
    return member ? gpsti_fail(result, "%s: desc.encode.jpeg.%s", desc->function, text)
                  : gpsti_files_job_fail(result, desc->function);
}

GPSTI_INTERN gpst_result gpsti_files_job_run(const gpsti_files_job_desc* desc, gpst_report* report) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* own = NULL;
    gpsti_files_job self = GPST_ZERO;
    GPSTI_TRY(gpsti_files_job_check(desc));
    GPSTI_TRY(gpsti_files_job_try_codec(desc));
    if (!desc->context)
        GPSTI_TRY(gpst_context_create(&context_desc, &own));
    gpst_context* const context = own ? own : desc->context;
    gpst_result result = gpsti_context_check(context, desc->function);
    self.desc = *desc;
    self.report = report;
    self.extension = gpsti_files_job_extension(desc);
    if (desc->has_metadata && (desc->encode.kind == GPST_FILE_UNKNOWN || desc->encode.kind == GPST_FILE_JPEG)) {
        self.desc.encode.segments = gpsti_files_job_segments;
        self.desc.encode.segments_user_data = &self;
    }
    if (!GPST_FAILED(result)) {
        self.host = &context->host;
        result = gpsti_files_job_run_in(&self, context);
        gpsti_names_free(&self.inputs);
    }
    gpst_context_destroy(own);
    return result;
}
