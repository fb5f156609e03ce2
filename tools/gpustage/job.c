/* tools/gpustage/job.c -- a run from its inputs to its exit status: what is checked first, the pipeline, what
   is told at the end. The work on pictures is in job_stages.c. */
#include "job.h"

#include "console.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- source and sink ---------------------------------------------------------------- */

/* A file that is too large to be decoded is not read at all. */
static bool job_refuse_large(const job* self, input* in) {
    char found[CODEC_AMOUNT_BYTES], most[CODEC_AMOUNT_BYTES];
    const codec_limits* const limits = &self->desc.asked->limits;
    text reason = GPST_ZERO;
    if (!in->identity || codec_fits(limits, in->bytes))
        return false;
    codec_format_amount(in->bytes, true, found);
    codec_format_amount(codec_most_bytes(limits), false, most);
    text_format(&reason, "the file has %s; at most %s here (--max-item-bytes)", found, most);
    in->problem = reason.data; /* NULL: out of memory; the engine has its own words then */
    return true;
}

/* The item fails with this sentence; out of memory, with the engine's words. */
static gpst_result job_refuse(input* in, gpst_result result, const char* sentence, const char* detail) {
    text reason = GPST_ZERO;
    text_format(&reason, "%s%s", sentence, detail);
    in->problem = reason.data;
    return result;
}

static const char job_moved[] = "the output directory was moved, emptied or replaced during the run";

/* Its outputs are about to change: first the list says so. */
static gpst_result job_begin_outputs(job* self, input* in) {
    if (self->desc.stacked)
        return GPST_OK;
    if (!run_lock_holds(&self->lock))
        return job_refuse(in, GPST_ERROR_STATE, job_moved, "");
    const char* const problem = manifest_begin_item(&self->manifest, in->stem);
    return problem ? job_refuse(in, GPST_ERROR_IO, "the list of what is whole cannot be kept: ", problem) : GPST_OK;
}

static gpst_result job_next_input(void* user_data, uint64_t index, gpst_input* out) {
    job* const self = (job*)user_data;
    (void)index;
    while (self->next_input < self->inputs.count && self->inputs.items[self->next_input].skip)
        self->next_input++;
    if (self->next_input == self->inputs.count)
        return GPST_END;
    input* const in = &self->inputs.items[self->next_input++];
    out->path = in->path;
    out->user_data = in;
    if (in->problem)
        return GPST_ERROR_ACCESS;
    inputs_refresh(in); /* before it is read: if it changes afterwards, --resume does it again */
    return job_refuse_large(self, in) ? GPST_ERROR_BUDGET : job_begin_outputs(self, in);
}

static void job_list_whole(job* self, const input* in) {
    if (self->desc.stacked)
        return;
    if (!run_lock_holds(&self->lock)) {
        if (!self->moved)
            console_error("-o=%s: %s", self->desc.asked->output, job_moved);
        self->moved = true;
        return;
    }
    text sizes = outputs_sizes(&self->names, in);
    if (sizes.data && !sizes.failed)
        manifest_add(&self->manifest, in, sizes.data);
    text_free(&sizes);
}

static gpst_result job_take_item(void* user_data, const gpst_item* item) {
    job* const self = (job*)user_data;
    const input* const in = (const input*)item->user_data;
    if (!GPST_FAILED(item->result)) {
        self->counts.ok++;
        job_list_whole(self, in);
    } else if (item->result != GPST_ERROR_CANCELLED) {
        const char* const reason = in->problem ? in->problem : item->reason;
        self->counts.failed++;
        console_error("%s: %s: %s", item->name, item->stage, reason);
        if (!counts_add_error(&self->counts, (size_t)(in - self->inputs.items), item->name, item->stage,
                              item->result, reason) &&
            self->desc.asked->stats)
            console_error("%s: out of memory: not listed in --stats", item->name);
    }
    console_progress(self->counts.ok + self->counts.failed, self->n_to_do, self->counts.failed,
                     files_clock_ns() - self->start_ns);
    return GPST_OK;
}

/* ---- open ------------------------------------------------------------------------------ */

static int job_open_context(job* self) {
    const options* const asked = self->desc.asked;
    gpst_context_desc desc = GPST_ZERO;
    desc.backend = asked->backend;
    /* A GPU that was named is not replaced. */
    desc.require_backend = !strncmp(asked->backend, "cuda", 4) || !strncmp(asked->backend, "hip", 3);
    desc.n_workers = asked->workers;
    desc.pin = asked->pin;
    desc.logger.func = console_log;
    const gpst_result result = gpst_context_create(&desc, &self->context);
    if (result == GPST_ERROR_ARGUMENT)
        return strstr(gpst_last_reason(), "desc.pin")
                   ? console_usage(asked->command_name, "--pin=%s: %s", asked->pin, gpst_last_reason())
                   : console_usage(asked->command_name, "--backend=%s: %s", asked->backend, gpst_last_reason());
    if (GPST_FAILED(result)) {
        console_error("--backend=%s: %s", asked->backend, gpst_last_reason());
        return EXIT_MACHINE;
    }
    return EXIT_DONE;
}

static uint32_t job_make_stages(job* self, gpst_stage_desc stages[5]) {
    uint32_t n = 0;
    memset(stages, 0, 5 * sizeof *stages);
    stages[n++].kind = GPST_STAGE_READ;
    stages[n].name = "decode";
    stages[n].kind = GPST_STAGE_HOST;
    stages[n++].func = job_decode;
    stages[n].kind = GPST_STAGE_WARP;
    stages[n++].warp = self->desc.warp;
    stages[n].name = self->desc.stacked ? "write" : "encode";
    stages[n].kind = GPST_STAGE_HOST;
    stages[n].per_picture = !self->desc.stacked;
    stages[n++].func = self->desc.stacked ? job_write_row : job_encode;
    if (!self->desc.stacked)
        stages[n++].kind = GPST_STAGE_WRITE;
    for (uint32_t s = 0; s < n; s++)
        if (stages[s].kind == GPST_STAGE_HOST) {
            stages[s].user_data = self;
            stages[s].worker_init = job_worker_init;
            stages[s].worker_term = job_worker_term;
        }
    return n;
}

#define JOB_TUNE_BYTES 1048576 /* of a file of settings, at most */

/* What a run before has left; nothing where there is no such file yet. */
static int job_load_settings(job* self) {
    const options* const asked = self->desc.asked;
    text found = GPST_ZERO;
    file_info info;
    if (!asked->tune_file)
        return EXIT_DONE;
    const int status = outputs_check_parent("--tune", asked->tune_file, asked->command_name);
    if (status != EXIT_DONE || files_query(asked->tune_file, &info))
        return status;
    if (!info.is_regular)
        return console_usage(asked->command_name, "--tune=%s: is no regular file", asked->tune_file);
    const char* const problem = files_read_at_most(asked->tune_file, JOB_TUNE_BYTES, &found);
    const bool wrong = problem || GPST_FAILED(gpst_settings_parse(found.data ? found.data : "", &self->settings));
    text_free(&found);
    return wrong ? console_refuse(asked->command_name, problem, "--tune=%s: %s", asked->tune_file,
                                  problem ? problem : gpst_last_reason())
                 : EXIT_DONE;
}

/* What the source will hand out, in its order: read ahead where it is cold. Without memory for it nothing is. */
static uint64_t job_list_paths(job* self) {
    uint64_t n = 0;
    self->paths = (const char**)malloc((self->inputs.count + 1) * sizeof *self->paths);
    for (size_t i = 0; self->paths && i < self->inputs.count; i++)
        if (!self->inputs.items[i].skip)
            self->paths[n++] = self->inputs.items[i].path;
    return n;
}

/* Settings found on another machine, or beside flags that say otherwise: what is not taken from them. */
static void job_say_settings(const job* self) {
    static gpst_tuner_report report;
    gpst_pipeline_query_tuner(self->pipeline, &report);
    for (int k = (int)GPST_KNOB_WORKERS; report.on && k < (int)GPST_KNOB_COUNT; k++) {
        const uint32_t given = self->settings.value[k];
        const bool too_many = given > report.most.value[k];
        if (given != 0 && (too_many || given < report.least.value[k]))
            console_note("note: --tune=%s: %s=%u: %s %u here", self->desc.asked->tune_file,
                         gpst_knob_name((gpst_knob)k), given, too_many ? "at most" : "at least",
                         too_many ? report.most.value[k] : report.least.value[k]);
    }
}

#define JOB_STREAM_BYTES ((uint64_t)1 << 30) /* of what has no size, unless --max-item-bytes says so */

/* What has no size may never end: the engine stops reading it where there is no room left for its picture. Its buffers
   grow by copies, so that this is less than for files. Views and what they are encoded to count there, too. Without
   such inputs 0: slots may keep their memory from item to item. */
static uint64_t job_most_slot_bytes(const job* self) {
    const codec_limits* const limits = &self->desc.asked->limits;
    gpst_image view;
    size_t bytes = 0;
    if (!self->inputs.has_streams)
        return 0;
    uint64_t most_bytes = codec_most_bytes(limits);
    gpst_warp_query_output(self->desc.warp, &view);
    view.data = NULL;
    (void)gpst_image_bytes(&view, &bytes);
    if (limits->bytes == 0 && most_bytes > JOB_STREAM_BYTES)
        most_bytes = JOB_STREAM_BYTES;
    return most_bytes + gpst_warp_n_outputs(self->desc.warp) * (4 * (uint64_t)bytes + 1048576);
}

static int job_open_pipeline(job* self) {
    const options* const asked = self->desc.asked;
    gpst_stage_desc stages[5];
    gpst_pipeline_desc desc = GPST_ZERO;
    desc.stages = stages;
    desc.n_stages = job_make_stages(self, stages);
    desc.source = job_next_input;
    desc.source_user_data = self;
    desc.n_items_expected = self->n_to_do;
    desc.n_paths = job_list_paths(self);
    desc.paths = self->paths;
    desc.no_prefetch = asked->no_prefetch != 0;
    desc.sink = job_take_item;
    desc.sink_user_data = self;
    desc.as_ready = true;
    desc.mode = (gpst_run_mode)asked->mode;
    desc.preset = (gpst_preset)asked->preset;
    desc.tune = (gpst_tune)asked->tune;
    desc.settings = self->settings;
    desc.n_slots = asked->slots;
    desc.batch = asked->batch;
    desc.n_reads = asked->readers;
    desc.n_writes = asked->writers;
    desc.fsync = (gpst_fsync)asked->fsync;
    desc.dirty_bytes = asked->dirty_bytes;
    desc.max_item_bytes = job_most_slot_bytes(self);
    desc.stop_on_error = asked->stop_on_error != 0;
    if (!GPST_FAILED(gpst_pipeline_create(self->context, &desc, &self->pipeline))) {
        job_say_settings(self);
        return EXIT_DONE;
    }
    console_error("%s", gpst_last_reason());
    return EXIT_MACHINE;
}

/* A stacked file may take the name of an output that a list there has. */
static const char* job_withdraw(const job* self) {
    const char* const path = self->desc.asked->output;
    gpst_context_info info;
    text parent = files_parent(path), stem = GPST_ZERO;
    const char* problem = text_out_of_memory;
    gpst_context_query_info(self->context, &info);
    text_append(&stem, files_base_name(path), strlen(files_base_name(path)) - strlen(".npy"));
    if (parent.data && stem.data) {
        run_lock_clean(parent.data);
        problem = manifest_withdraw(parent.data, info.temporary_tag, stem.data);
    }
    text_free(&stem);
    text_free(&parent);
    return problem;
}

static int job_open_stacked(job* self) {
    const options* const asked = self->desc.asked;
    file_info info;
    gpst_image row;
    if (asked->resume)
        return console_usage(asked->command_name, "--resume: needs -o DIR: one .npy file is whole or absent");
    if (!files_query(asked->output, &info) && !info.is_regular)
        return console_usage(asked->command_name, "-o=%s: is no regular file", asked->output);
    const int status = outputs_check_parent("-o", asked->output, asked->command_name);
    if (status != EXIT_DONE)
        return status;
    const char* problem = job_withdraw(self);
    gpst_warp_query_output(self->desc.warp, &row);
    if (!problem)
        problem = tensor_create(&self->tensor, asked->output, &row, self->inputs.count);
    self->tensor.sync = asked->fsync != (int)GPST_FSYNC_NONE;
    if (!problem)
        return EXIT_DONE;
    console_error("-o=%s: %s", asked->output, problem);
    return EXIT_MACHINE;
}

/* What the manifest lists under the same settings, of an input that has not changed, and whose files are all
   there. */
static void job_skip_whole(job* self) {
    for (size_t i = 0; i < self->inputs.count; i++) {
        input* const in = &self->inputs.items[i];
        inputs_refresh(in);
        const char* const listed = manifest_find(&self->manifest, in);
        text sizes = GPST_ZERO;
        if (listed)
            sizes = outputs_sizes(&self->names, in);
        in->skip = sizes.data && !sizes.failed && !strcmp(sizes.data, listed);
        self->counts.skipped += in->skip ? 1 : 0;
        text_free(&sizes);
    }
}

static int job_open_directory(job* self) {
    const options* const asked = self->desc.asked;
    gpst_context_info info;
    manifest_desc desc;
    desc.directory = asked->output;
    desc.settings = self->desc.settings;
    desc.resume = asked->resume;
    desc.sync = asked->fsync != (int)GPST_FSYNC_NONE;
    desc.command = asked->command_name;
    gpst_context_query_info(self->context, &info);
    int status = outputs_open_directory(asked->output, asked->command_name);
    if (status == EXIT_DONE)
        status = run_lock_open(&self->lock, asked->output, info.temporary_tag, desc.settings);
    desc.tag = info.temporary_tag;
    desc.alone = self->lock.alone;
    if (status == EXIT_DONE)
        status = manifest_open(&self->manifest, &desc);
    if (status == EXIT_DONE && asked->resume)
        job_skip_whole(self);
    return status;
}

int job_open(job* self, const job_desc* desc) {
    const options* const asked = desc->asked;
    memset(self, 0, sizeof *self);
    self->desc = *desc;
    self->names.directory = asked->output;
    self->names.kind = desc->kind;
    self->names.numbered = desc->numbered;
    self->names.masks = desc->mask->n_views > 0;
    self->names.n_outputs = gpst_warp_n_outputs(desc->warp);
    if (!desc->stacked && !codec_available(desc->kind)) {
        console_error("--format=%s: is not built into this gpustage", codec_extension(desc->kind));
        return EXIT_MACHINE;
    }
    int status = inputs_collect(&self->inputs, asked, !desc->stacked);
    if (status == EXIT_DONE && asked->stats)
        status = outputs_check_parent("--stats", asked->stats, asked->command_name);
    if (status == EXIT_DONE)
        status = outputs_check(&self->names, desc->stacked, &self->inputs, asked);
    if (status == EXIT_DONE)
        status = job_load_settings(self);
    interrupt_open(false);
    if (status == EXIT_DONE)
        status = job_open_context(self);
    if (status == EXIT_DONE)
        status = desc->stacked ? job_open_stacked(self) : job_open_directory(self);
    self->counts.total = self->inputs.count;
    self->n_to_do = self->counts.total - self->counts.skipped;
    return status == EXIT_DONE ? job_open_pipeline(self) : status;
}

/* ---- run --------------------------------------------------------------------------------- */

static bool job_has_settings(const job* self) {
    const gpst_settings none = GPST_ZERO;
    return memcmp(&self->settings, &none, sizeof none) != 0;
}

static int job_save_settings(const job* self) {
    const char* const file = self->desc.asked->tune_file;
    static gpst_tuner_report report;
    char found[256];
    if (!file)
        return EXIT_DONE;
    gpst_pipeline_query_tuner(self->pipeline, &report);
    if (report.on && report.n_decisions < 2 && job_has_settings(self)) { /* but for the line of where it began */
        console_note("note: --tune=%s: the run was too short to find settings: left as it was", file);
        return EXIT_DONE;
    }
    const char* problem = gpst_last_reason();
    if (!GPST_FAILED(gpst_settings_format(&report.settings, found, sizeof found)))
        problem = files_write_whole(file, found, strlen(found));
    if (!problem)
        return EXIT_DONE;
    console_error("--tune=%s: %s", file, problem);
    return EXIT_FAILED_ITEMS;
}

static int job_write_stats(const job* self, const gpst_stats* stats) {
    static gpst_tuner_report report;
    gpst_context_info info;
    if (!self->desc.asked->stats)
        return EXIT_DONE;
    gpst_context_query_info(self->context, &info);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    text out = stats_make_json(&self->counts, stats, &report, &info);
    const char* const problem =
        out.failed ? text_out_of_memory : files_write_whole(self->desc.asked->stats, out.data, out.bytes);
    text_free(&out);
    if (!problem)
        return EXIT_DONE;
    console_error("--stats=%s: %s", self->desc.asked->stats, problem);
    return EXIT_FAILED_ITEMS;
}

/* The stacked file is whole when every input has had its turn: then a row that is zero is one that failed. */
static int job_close_tensor(job* self) {
    if (!self->desc.stacked)
        return EXIT_DONE;
    self->counts.row_bytes_written = self->counts.ok * self->tensor.row_bytes;
    const bool whole = self->counts.not_done == 0 && self->counts.ok > 0;
    const char* const problem = tensor_close(&self->tensor, whole);
    if (problem)
        console_error("-o=%s: %s", self->desc.asked->output, problem);
    else if (!whole)
        console_error("-o=%s: not written: %s", self->desc.asked->output,
                      self->counts.not_done > 0 ? "not every input had its turn" : "no input could be used");
    return problem ? EXIT_FAILED_ITEMS : EXIT_DONE;
}

static void job_print_outcome(const job* self, const gpst_stats* stats) {
    const run_counts* const counts = &self->counts;
    const double wall_s = (double)stats->wall_ns * 1e-9;
    if (console_is_quiet())
        return;
    printf("%llu of %llu done", (unsigned long long)counts->ok, (unsigned long long)counts->total);
    if (counts->failed > 0)
        printf(", %llu failed", (unsigned long long)counts->failed);
    if (counts->skipped > 0)
        printf(", %llu skipped", (unsigned long long)counts->skipped);
    if (counts->not_done > 0)
        printf(", %llu not done", (unsigned long long)counts->not_done);
    if (counts->ok == 0)
        printf("\n"); /* a rate and a verdict of nothing would say nothing */
    else
        printf(" in %.2f s, %.1f items/s; %s\n", wall_s, wall_s > 0.0 ? (double)counts->ok / wall_s : 0.0,
               stats->verdict.text);
}

int job_run(job* self) {
    gpst_stats stats;
    int status = EXIT_DONE;
    self->start_ns = files_clock_ns();
    interrupt_watch(self->pipeline);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    interrupt_watch(NULL);
    console_progress_end();
    if (GPST_FAILED(result) && result != GPST_ERROR_CANCELLED) {
        console_error("%s", gpst_last_reason());
        status = EXIT_FAILED_ITEMS;
    }
    gpst_pipeline_query_stats(self->pipeline, &stats);
    self->counts.not_done = self->n_to_do - self->counts.ok - self->counts.failed;
    if (job_close_tensor(self) != EXIT_DONE || self->counts.failed > 0 || self->moved)
        status = EXIT_FAILED_ITEMS;
    if (job_write_stats(self, &stats) != EXIT_DONE || job_save_settings(self) != EXIT_DONE)
        status = EXIT_FAILED_ITEMS;
    job_print_outcome(self, &stats);
    return interrupt_happened() ? EXIT_INTERRUPTED : status;
}

void job_close(job* self) {
    (void)gpst_pipeline_destroy(self->pipeline);
    gpst_context_destroy(self->context);
    (void)tensor_close(&self->tensor, false);
    manifest_close(&self->manifest);
    run_lock_close(&self->lock);
    free(self->paths);
    inputs_free(&self->inputs);
    counts_free(&self->counts);
}
