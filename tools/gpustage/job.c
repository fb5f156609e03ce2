/* tools/gpustage/job.c -- a run from its inputs to its exit status: what is checked first, the library's job, what is
   told at the end. The work on pictures is in job_stages.c. */
#include "job.h"

#include "console.h"
#include "files.h"
#include "interrupt.h"
#include "remarks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs, one by one ------------------------------------------------------------ */

/* A file that is too large to be decoded is not read at all. */
static gpst_result job_refuse_large(const job* self, const input* in) {
    char found[CODEC_AMOUNT_BYTES], most[CODEC_AMOUNT_BYTES];
    const codec_limits* const limits = &self->desc.asked->limits;
    if (!in->identity || codec_fits(limits, in->bytes))
        return GPST_OK;
    codec_format_amount(in->bytes, true, found);
    codec_format_amount(codec_most_bytes(limits), false, most);
    return gpst_task_fail(NULL, GPST_ERROR_BUDGET, "the file has %s; at most %s here (--max-item-bytes)", found, most);
}

static gpst_result job_refuse_unmasked(const job* self, const input* in) {
    text names = inputs_mask_names(in, self->desc.asked);
    const gpst_result result = gpst_task_fail(NULL, GPST_ERROR_NOT_FOUND, "--mask=%s has no mask of this frame: no %s",
                                              self->desc.asked->mask, names.data ? names.data : "name fits");
    text_free(&names);
    return result;
}

static const char job_moved[] = "the output directory was moved, emptied or replaced during the run";

/* Its outputs are about to change: first the list says so. */
static gpst_result job_begin_outputs(job* self, const input* in) {
    if (self->desc.stacked)
        return GPST_OK;
    if (!run_lock_holds(&self->lock))
        return gpst_task_fail(NULL, GPST_ERROR_STATE, "%s", job_moved);
    const char* const problem = manifest_begin_item(&self->manifest, in->stem);
    return problem ? gpst_task_fail(NULL, GPST_ERROR_IO, "the list of what is whole cannot be kept: %s", problem)
                   : GPST_OK;
}

static gpst_result job_begin(void* user_data, uint64_t index, const char* path) {
    job* const self = (job*)user_data;
    input* const in = self->to_do[index];
    (void)path;
    if (in->problem)
        return gpst_task_fail(NULL, GPST_ERROR_ACCESS, "%s", in->problem);
    inputs_refresh(in, self->desc.asked); /* before it is read: if it changes afterwards, --resume does it again */
    const gpst_result result = job_refuse_large(self, in);
    if (GPST_FAILED(result))
        return result;
    return self->desc.asked->mask_by_frame && !in->mask ? job_refuse_unmasked(self, in) : job_begin_outputs(self, in);
}

static void job_list_whole(job* self, const input* in, const gpst_item* item) {
    if (self->desc.stacked)
        return;
    if (!run_lock_holds(&self->lock)) {
        if (!self->moved)
            console_error("-o=%s: %s", self->desc.asked->output, job_moved);
        self->moved = true;
        return;
    }
    text times = GPST_ZERO, sizes = outputs_sizes(&self->names, in, &times);
    if (sizes.data && times.data)
        manifest_add(&self->manifest, in, sizes.data, times.data, item->decoder, item->encoder);
    text_free(&times);
    text_free(&sizes);
}

/* The library's sentences name members of its structs: here those have options. */
static void job_translate(const char* reason, char* out, size_t room) {
    static const char* const names[][2] = {{"(max_pixels)", "(--max-pixels)"}, {"(max_bytes)", "(--max-item-bytes)"}};
    snprintf(out, room, "%s", reason);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char* const found = strstr(reason, names[i][0]);
        if (found)
            snprintf(out, room, "%.*s%s%s", (int)(found - reason), reason, names[i][1], found + strlen(names[i][0]));
    }
}

static void job_done(void* user_data, const gpst_item* item) {
    job* const self = (job*)user_data;
    char reason[GPST_REASON_BYTES + 32];
    job_translate(item->reason, reason, sizeof reason);
    input* const in = self->to_do[item->index];
    if (!GPST_FAILED(item->result)) {
        in->done = true;
        self->counts.ok++;
        self->counts.damaged += strncmp(item->note, "damaged: ", 9) == 0;
        job_remark_item(self, item);
        job_list_whole(self, in, item);
        if (self->desc.asked->stats && !counts_add_file(&self->counts, (size_t)(in - self->inputs.items), item))
            console_error("%s: out of memory: not listed in --stats", item->name);
    } else if (item->result != GPST_ERROR_CANCELLED) {
        self->counts.failed++;
        console_error("%s: %s: %s", item->name, item->stage, reason);
        if (!counts_add_error(&self->counts, (size_t)(in - self->inputs.items), item->name, item->stage,
                              item->result, reason) &&
            self->desc.asked->stats)
            console_error("%s: out of memory: not listed in --stats", item->name);
    }
    console_progress(self->counts.ok + self->counts.failed, self->n_to_do, self->counts.failed,
                     files_clock_ns() - self->start_ns);
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
    desc.max_host_bytes = asked->max_host_bytes;
    desc.max_device_bytes = asked->max_device_bytes;
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

/* What the library is given, in its order. */
static bool job_list_to_do(job* self) {
    self->paths = (const char**)malloc((self->inputs.count + 1) * sizeof *self->paths);
    self->to_do = (input**)malloc((self->inputs.count + 1) * sizeof *self->to_do);
    self->n_to_do = 0;
    for (size_t i = 0; self->paths && self->to_do && i < self->inputs.count; i++) {
        if (self->inputs.items[i].skip)
            continue;
        self->paths[self->n_to_do] = self->inputs.items[i].path;
        self->to_do[self->n_to_do++] = &self->inputs.items[i];
    }
    return self->paths && self->to_do;
}

/* Settings found on another machine, or beside flags that say otherwise: what is not taken from them. */
static void job_say_settings(const job* self, gpst_pipeline* pipeline) {
    static gpst_tuner_report report;
    gpst_pipeline_query_tuner(pipeline, &report);
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
    /* Masks of frames: masked views, and the masks of views. */
    return most_bytes + gpst_warp_n_outputs(self->desc.warp) *
                            ((self->desc.asked->mask_by_frame ? 6 : 4) * (uint64_t)bytes + 1048576);
}

/* Views as they are asked for can be made here. */
static int job_check_encoder(job* self) {
    const options* const asked = self->desc.asked;
    const codec_kind kind = self->desc.kind;
    gpst_jpeg_encode_desc jpeg = GPST_ZERO;
    char reason[CODEC_REASON_BYTES] = "";
    if (!codec_available(CODEC_JPEG))
        snprintf(self->no_jpeg, sizeof self->no_jpeg, "%s", gpst_last_reason());
    if (self->desc.stacked)
        return EXIT_DONE;
    if (!codec_available(kind)) {
        console_error("--format=%s: %s%s", codec_extension(kind),
                      kind == CODEC_JPEG ? self->no_jpeg : "is not built into this gpustage: there was no ",
                      kind == CODEC_JPEG ? "" : codec_library(kind));
        return EXIT_MACHINE;
    }
    jpeg.optimise = asked->optimise;
    jpeg.restart_rows = asked->restart_rows;
    if (kind != CODEC_JPEG || codec_jpeg_can(&jpeg, reason))
        return EXIT_DONE;
    console_error("--%s: %s", asked->optimise ? "optimise" : "restart-rows", reason);
    return EXIT_MACHINE;
}

/* By contents, as they will be told. What is no file is not read twice. */
static bool job_is_jpeg(const input* in) {
    uint8_t first[3];
    return in->identity && codec_jpeg_is(first, files_read_beginning(in->path, first, sizeof first));
}

/* Without libturbojpeg, and without a GPU that may do it, JPEG files fail one by one; a run of nothing else is not
   begun. */
static int job_check_decoder(job* self) {
    const options* const asked = self->desc.asked;
    gpst_context_info info;
    size_t n = 0;
    gpst_context_query_info(self->context, &info);
    if (!self->no_jpeg[0] || asked->raw.format != GPST_FORMAT_INVALID ||
        (asked->jpeg != (int)GPST_CODEC_EXACT && !strcmp(info.backend, "cuda")))
        return EXIT_DONE;
    for (size_t i = 0; i < self->inputs.count; i++) {
        input* const in = &self->inputs.items[i];
        if (in->skip)
            continue;
        inputs_refresh(in, asked);
        if (!job_is_jpeg(in))
            return EXIT_DONE;
        n++;
    }
    if (n == 0)
        return EXIT_DONE;
    console_error("no input can be decoded: all are JPEG files, and there is no %s", self->no_jpeg);
    return EXIT_MACHINE;
}

/* Nothing is made where nothing can be decoded; what is whole already is known only behind the list of it. */
static int job_open_outputs(job* self) {
    const bool resume = self->desc.asked->resume && !self->desc.stacked;
    int status = resume ? EXIT_DONE : job_check_decoder(self);
    if (status == EXIT_DONE && self->desc.asked->falls_back)
        remarks_add("no_jpeg", "", "views are .ppm files: there is no %s", self->no_jpeg);
    if (status == EXIT_DONE)
        status = self->desc.stacked ? job_open_stacked(self) : job_open_directory(self);
    return status == EXIT_DONE && resume ? job_check_decoder(self) : status;
}

int job_open(job* self, const job_desc* desc) {
    const options* const asked = desc->asked;
    memset(self, 0, sizeof *self);
    self->desc = *desc;
    self->names.directory = asked->output;
    self->names.layout = asked->tree;
    self->names.extension = codec_extension(desc->kind);
    self->names.numbered = desc->reproject != NULL;
    self->names.mask_names = asked->mask_out;
    self->names.n_outputs = gpst_warp_n_outputs(desc->warp);
    int status = job_check_encoder(self);
    if (status == EXIT_DONE)
        status = inputs_collect(&self->inputs, asked, !desc->stacked);
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
        status = job_open_outputs(self);
    self->counts.total = self->inputs.count;
    return status == EXIT_DONE && !job_list_to_do(self) ? console_memory() : status;
}

/* ---- run --------------------------------------------------------------------------------- */

static bool job_has_settings(const job* self) {
    const gpst_settings none = GPST_ZERO;
    return memcmp(&self->settings, &none, sizeof none) != 0;
}

static int job_save_settings(const job* self) {
    const char* const file = self->desc.asked->tune_file;
    const gpst_tuner_report* const tuner = &self->report.tuner;
    char found[256];
    if (!file)
        return EXIT_DONE;
    if (tuner->on && tuner->n_decisions < 2 && job_has_settings(self)) { /* but for the line of where it began */
        console_note("note: --tune=%s: the run was too short to find settings: left as it was", file);
        return EXIT_DONE;
    }
    const char* problem = gpst_last_reason();
    if (!GPST_FAILED(gpst_settings_format(&tuner->settings, found, sizeof found)))
        problem = files_write_whole(file, found, strlen(found));
    if (!problem)
        return EXIT_DONE;
    console_error("--tune=%s: %s", file, problem);
    return EXIT_FAILED_ITEMS;
}

static int job_write_stats(const job* self) {
    gpst_context_info info;
    if (!self->desc.asked->stats)
        return EXIT_DONE;
    gpst_context_query_info(self->context, &info);
    text out = stats_make_json(&self->counts, &self->report.stats, &self->report.tuner, &info);
    const char* const problem =
        out.failed ? text_out_of_memory : files_write_whole(self->desc.asked->stats, out.data, out.bytes);
    text_free(&out);
    if (!problem)
        return EXIT_DONE;
    console_error("--stats=%s: %s", self->desc.asked->stats, problem);
    return EXIT_FAILED_ITEMS;
}

/* What the library does with a stacked file, in words: it is there when every input had its turn and one was good. */
static void job_say_stacked(job* self) {
    if (self->counts.not_done > 0 || self->counts.ok == 0)
        console_error("-o=%s: not written: %s", self->desc.asked->output,
                      self->counts.not_done > 0 ? "not every input had its turn" : "no input could be used");
}

static void job_print_outcome(const job* self) {
    const gpst_stats* const stats = &self->report.stats;
    const run_counts* const counts = &self->counts;
    const double wall_s = (double)stats->wall_ns * 1e-9;
    if (console_is_quiet())
        return;
    printf("%llu of %llu done", (unsigned long long)counts->ok, (unsigned long long)counts->total);
    if (counts->damaged > 0)
        printf(", %llu kept damaged (see --stats)", (unsigned long long)counts->damaged);
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

/* From its first item to its end a run can be interrupted. */
static void job_watch(void* user_data, gpst_pipeline* pipeline, uint64_t n_inputs) {
    job* const self = (job*)user_data;
    (void)n_inputs;
    if (pipeline) {
        self->has_begun = true;
        self->start_ns = files_clock_ns();
        job_say_settings(self, pipeline);
    }
    interrupt_watch(pipeline);
}

static gpst_pipeline_desc job_make_run(const job* self) {
    const options* const asked = self->desc.asked;
    gpst_pipeline_desc run = GPST_ZERO;
    run.no_prefetch = asked->no_prefetch != 0;
    run.mode = (gpst_run_mode)asked->mode;
    run.preset = (gpst_preset)asked->preset;
    run.tune = (gpst_tune)asked->tune;
    run.settings = self->settings;
    run.n_slots = asked->slots;
    run.batch = asked->batch;
    run.n_reads = asked->readers;
    run.n_writes = asked->writers;
    run.fsync = (gpst_fsync)asked->fsync;
    run.dirty_bytes = asked->dirty_bytes;
    run.max_item_bytes = job_most_slot_bytes(self);
    run.stop_on_error = asked->stop_on_error != 0;
    return run;
}

/* Views of kinds that the library does not know. */
static bool job_encodes(const job* self) {
    const codec_kind kind = self->desc.kind;
    return kind == CODEC_PNG || kind == CODEC_TIFF || kind == CODEC_WEBP;
}

/* PNG, TIFF and WebP are the command's, and so are files without headers; the others the library's own. */
static gpst_job_hooks job_make_hooks(job* self) {
    gpst_job_hooks hooks = GPST_ZERO;
    *(self->desc.asked->raw.format != GPST_FORMAT_INVALID ? &hooks.decode : &hooks.decode_other) = job_decode;
    hooks.icc = job_icc;
    if (job_encodes(self)) {
        hooks.encode = job_encode;
        hooks.extension = codec_extension(self->desc.kind);
    } else if (self->names.mask_names) {
        hooks.beside = job_emit_mask;
    }
    hooks.name = self->desc.stacked ? NULL : job_name;
    hooks.mask = self->desc.asked->mask_by_frame ? job_load_mask : NULL;
    hooks.worker_init = job_worker_init;
    hooks.worker_term = job_worker_term;
    hooks.begin = job_begin;
    hooks.done = job_done;
    hooks.watch = job_watch;
    hooks.user_data = self;
    return hooks;
}

gpst_placement_desc job_make_placement(const job* self) {
    const options* const asked = self->desc.asked;
    gpst_placement_desc placement = GPST_ZERO;
    placement.ignore_orientation = asked->ignore_orientation != 0;
    placement.sphere = self->desc.reproject != NULL;
    placement.ignore_pose = asked->ignore_pose != 0;
    return placement;
}

static gpst_decode_desc job_make_decode(const job* self) {
    const options* const asked = self->desc.asked;
    gpst_decode_desc decode = GPST_ZERO;
    decode.codec = (gpst_codec)asked->jpeg;
    decode.on_damage = (gpst_damage)asked->on_damage;
    decode.placement = job_make_placement(self);
    decode.max_pixels = asked->limits.pixels;
    decode.max_bytes = asked->limits.bytes;
    return decode;
}

static gpst_encode_desc job_make_encode(const job* self) {
    const options* const asked = self->desc.asked;
    gpst_encode_desc encode = GPST_ZERO;
    encode.kind = self->desc.kind == CODEC_PNM   ? GPST_FILE_PNM
                  : self->desc.kind == CODEC_NPY ? GPST_FILE_NPY
                                                 : GPST_FILE_JPEG;
    encode.codec = (gpst_codec)asked->jpeg;
    encode.jpeg.optimise = asked->optimise;
    encode.jpeg.restart_rows = asked->restart_rows;
    encode.jpeg.quality = asked->quality;
    encode.jpeg.chroma = asked->chroma == 444   ? GPST_FORMAT_JPEG_444
                         : asked->chroma == 422 ? GPST_FORMAT_JPEG_422
                                                : GPST_FORMAT_JPEG_420;
    return encode;
}

static gpst_result job_call(job* self) {
    const gpst_pipeline_desc run = job_make_run(self);
    const gpst_job_hooks hooks = job_make_hooks(self);
    if (self->desc.reproject) {
        gpst_reproject_desc desc = *self->desc.reproject;
        desc.begun_ns = self->desc.asked->begun_ns;
        desc.inputs = self->paths;
        desc.n_inputs = self->n_to_do;
        desc.files_only = true;
        desc.output_dir = self->desc.asked->output;
        desc.decode = job_make_decode(self);
        desc.encode = job_make_encode(self);
        desc.context = self->context;
        desc.run = run;
        desc.hooks = hooks;
        return gpst_reproject_files(&desc, &self->report);
    }
    gpst_preprocess_desc desc = *self->desc.preprocess;
    desc.begun_ns = self->desc.asked->begun_ns;
    desc.inputs = self->paths;
    desc.n_inputs = self->n_to_do;
    desc.files_only = true;
    *(self->desc.stacked ? &desc.output_file : &desc.output_dir) = self->desc.asked->output;
    desc.decode = job_make_decode(self);
    desc.context = self->context;
    desc.run = run;
    desc.hooks = hooks;
    return gpst_preprocess_files(&desc, &self->report);
}

/* Finding that nothing is to be done takes time, too. */
static gpst_result job_skip(job* self) {
    self->report.stats.start_ns = gpst_now_ns() - self->desc.asked->begun_ns;
    self->report.stats.wall_ns = self->report.stats.start_ns;
    return GPST_OK;
}

int job_run(job* self) {
    const gpst_result result = self->n_to_do > 0 ? job_call(self) : job_skip(self);
    const bool said = self->counts.ok == 0 && self->counts.failed > 0; /* of each input, why none was done */
    const bool failed = GPST_FAILED(result) && result != GPST_ERROR_CANCELLED && !said;
    int status = EXIT_DONE;
    console_progress_end();
    if (failed && self->desc.stacked)
        console_error("-o=%s: %s", self->desc.asked->output, gpst_last_reason());
    else if (failed)
        console_error("%s", gpst_last_reason());
    if (failed && !self->has_begun)
        return EXIT_MACHINE;
    self->counts.not_done = self->n_to_do - self->counts.ok - self->counts.failed;
    if (self->desc.stacked && !failed)
        job_say_stacked(self);
    if (failed || self->counts.failed > 0 || self->moved)
        status = EXIT_FAILED_ITEMS;
    if (job_write_stats(self) != EXIT_DONE || job_save_settings(self) != EXIT_DONE)
        status = EXIT_FAILED_ITEMS;
    job_print_outcome(self);
    return interrupt_happened() ? EXIT_INTERRUPTED : status;
}

void job_close(job* self) {
    gpst_context_destroy(self->context);
    manifest_close(&self->manifest);
    run_lock_close(&self->lock, self->moved || self->counts.failed > 0);
    free(self->paths);
    free(self->to_do);
    inputs_free(&self->inputs);
    counts_free(&self->counts);
}
