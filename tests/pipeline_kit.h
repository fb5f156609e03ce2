/* tests/pipeline_kit.h -- what the tests of the engine share: a context with a counting allocator, a directory with
   small input files, the standard stages (read, decode, compute, encode, write) with a fault where the test wants one,
   and a sink that keeps the books. Callbacks run on other threads, where a failed assert may not jump: they note what
   is wrong by kit_check, and kit_close fails for it. */
#ifndef GPST_PIPELINE_KIT_H
#define GPST_PIPELINE_KIT_H

#include "test_allocator.h"

#include "pipeline_backend.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../backends/params_internal.h"
#include "../core/pipeline/engine_internal.h"
#endif

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIT_MAX_ITEMS 10000
#define KIT_WIDTH 16u
#define KIT_HEIGHT 4u
#define KIT_BYTES ((size_t)KIT_WIDTH * KIT_HEIGHT)

typedef enum kit_place { /* where an item is made to fail, in flow order */
                         KIT_NOWHERE = 0,
                         KIT_SOURCE,
                         KIT_READ,
                         KIT_DECODE,
                         KIT_DEVICE,       /* the DEVICE stage's own function */
                         KIT_DEVICE_LATER, /* what it put on the stream */
                         KIT_ENCODE,       /* of the last output only */
                         KIT_WRITE,        /* likewise */
                         KIT_COMMIT,       /* likewise */
                         KIT_SINK
} kit_place;

typedef struct kit {
    test_memory memory;
    test_log log;
    gpst_context* context;
    const char* opener;  /* the function that called kit_open */
    const char* backend; /* what serves it: "cpu", "sim", "cuda" or "hip" */
    char fault[100];     /* with what faults: "fail_...", "lose_at"; kit_close fails where none has fired, */
    bool wants_none;     /* or where one has: it lies behind the last call that should be made */
    uint32_t n_fired_before;
    char dir[64];
    uint32_t n_threads_before;
    uint64_t n_items;
    uint32_t n_outputs, encoded_set;
    gpst_stage_desc stages[8];
    uint32_t n_stages;
    kit_place fail_place;
    uint64_t fail_every, fail_first; /* items fail_first, fail_first + fail_every, ... */
    int64_t source_ns, decode_ns, encode_ns, sink_ns;
    int64_t cancel_ns; /* of kit_cancel_soon */
    gpst_pipeline* pipeline;
    const char* written[3]; /* what callbacks found wrong first: text, file; line beside */
    int written_line;
    gpsti_a32 broken;
    gpsti_a32 in_log;
    gpsti_a32 in_source, in_sink; /* calls now inside */
    uint64_t next_source;
    char path[120]; /* the source's: copied by the engine before the next call */
    bool as_ready;
    uint64_t n_sinks, n_ok, n_failed, n_cancelled, last_index;
    gpst_result results[KIT_MAX_ITEMS];
    char failed_stage[32], failed_reason[GPST_REASON_BYTES]; /* of the latest failed item */
    uint8_t seen[KIT_MAX_ITEMS];
} kit;

GPSTI_PRIVATE void kit_note(kit* self, const char* text, const char* file, int line) {
    if (gpsti_a32_exchange(&self->broken, 1) != 0)
        return;
    self->written[0] = text;
    self->written[1] = file;
    self->written_line = line;
}
/* For callbacks: the first condition that does not hold fails the test at kit_close. */
#define kit_check(self, condition)                          \
    do {                                                    \
        if (!(condition))                                   \
            kit_note(self, #condition, __FILE__, __LINE__); \
    } while (0)

/* ---- the machine around it --------------------------------------------------------------- */

GPSTI_PRIVATE uint32_t kit_count_threads(void) {
    uint32_t n = 0;
    DIR* const dir = opendir("/proc/self/task");
    if (!dir)
        return 0;
    for (const struct dirent* entry = readdir(dir); entry; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A joined thread may be listed for a moment longer. */
GPSTI_PRIVATE bool kit_threads_become(uint32_t wanted) {
    for (int tries = 0; tries < 2000; tries++) {
        if (kit_count_threads() <= wanted)
            return true;
        gpsti_sleep_ns(1000000);
    }
    return false;
}

/* Files in the kit's directory whose names begin so. */
GPSTI_PRIVATE uint32_t kit_count_files(const kit* self, const char* prefix) {
    uint32_t n = 0;
    DIR* const dir = opendir(self->dir);
    assert_non_null(dir);
    for (const struct dirent* entry = readdir(dir); entry; entry = readdir(dir))
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strcmp(entry->d_name, ".") != 0 &&
             strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

GPSTI_PRIVATE void kit_remove_files(const kit* self, const char* prefix) {
    DIR* const dir = opendir(self->dir);
    char path[400];
    assert_non_null(dir);
    for (const struct dirent* entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "%.128s/%.255s", self->dir, entry->d_name);
        if (unlink(path) != 0)
            (void)rmdir(path);
    }
    closedir(dir);
}

GPSTI_PRIVATE uint8_t kit_pixel(uint64_t index, size_t i) { return (uint8_t)(index * 31 + i * 7 + 1); }
GPSTI_PRIVATE uint8_t kit_result(uint8_t pixel, uint32_t output) {
    return (uint8_t)((pixel ^ 0x5a) + output * 41);
}

GPSTI_PRIVATE void kit_input_path(const kit* self, uint64_t index, char* out, size_t bytes) {
    snprintf(out, bytes, "%.63s/in_%05u.raw", self->dir, (unsigned)index);
}
GPSTI_PRIVATE void kit_output_path(const kit* self, uint64_t index, uint32_t output, char* out,
                                   size_t bytes) {
    snprintf(out, bytes, "%s/out_%05u_%02u.raw", self->dir, (unsigned)index, (unsigned)output);
}

GPSTI_PRIVATE void kit_make_inputs(kit* self) {
    char path[100];
    uint8_t pixels[KIT_BYTES];
    for (uint64_t n = 0; n < self->n_items; n++) {
        kit_input_path(self, n, path, sizeof path);
        for (size_t i = 0; i < KIT_BYTES; i++)
            pixels[i] = kit_pixel(n, i);
        FILE* const file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(pixels, 1, KIT_BYTES, file), KIT_BYTES);
        assert_int_equal(fclose(file), 0);
    }
}

/* The output's file is there and right. */
GPSTI_PRIVATE bool kit_output_is_right(const kit* self, uint64_t index, uint32_t output) {
    char path[100];
    uint8_t got[KIT_BYTES + 1];
    kit_output_path(self, index, output, path, sizeof path);
    FILE* const file = fopen(path, "rb");
    if (!file)
        return false;
    const size_t bytes = fread(got, 1, sizeof got, file);
    fclose(file);
    for (size_t i = 0; i < KIT_BYTES; i++)
        if (got[i] != kit_result(kit_pixel(index, i), output))
            return false;
    return bytes == KIT_BYTES;
}

/* ---- source and sink ------------------------------------------------------------------------ */

GPSTI_PRIVATE bool kit_fails(const kit* self, kit_place place, uint64_t index) {
    return self->fail_place == place && index >= self->fail_first &&
           (self->fail_every == 0 ? index == self->fail_first
                                  : (index - self->fail_first) % self->fail_every == 0);
}

/* n_items files of the kit's directory. */
GPSTI_PRIVATE gpst_result kit_source(void* user_data, uint64_t index, gpst_input* out) {
    kit* const self = (kit*)user_data;
    char path[100];
    kit_check(self, gpsti_a32_add(&self->in_source, 1) == 0);
    kit_check(self, index == self->next_source);
    self->next_source++;
    if (self->source_ns > 0)
        gpsti_sleep_ns(self->source_ns);
    (void)gpsti_a32_add(&self->in_source, UINT32_MAX);
    if (index >= self->n_items)
        return GPST_END;
    if (kit_fails(self, KIT_SOURCE, index))
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "line %u of the list is bad", (unsigned)index);
    kit_input_path(self, index, path, sizeof path);
    snprintf(self->path, sizeof self->path, "%s%s", path, kit_fails(self, KIT_READ, index) ? ".missing" : "");
    out->path = self->path;
    out->timestamp_ns = (int64_t)index * 1000;
    out->user_data = self;
    return GPST_OK;
}

/* Nothing but a number. */
GPSTI_PRIVATE gpst_result kit_source_empty(void* user_data, uint64_t index, gpst_input* out) {
    kit* const self = (kit*)user_data;
    kit_check(self, gpsti_a32_add(&self->in_source, 1) == 0);
    kit_check(self, index == self->next_source);
    self->next_source++;
    if (self->source_ns > 0)
        gpsti_sleep_ns(self->source_ns);
    (void)gpsti_a32_add(&self->in_source, UINT32_MAX);
    out->user_data = self;
    return index < self->n_items ? GPST_OK : GPST_END;
}

GPSTI_PRIVATE gpst_result kit_sink(void* user_data, const gpst_item* item) {
    kit* const self = (kit*)user_data;
    kit_check(self, gpsti_a32_add(&self->in_sink, 1) == 0);
    kit_check(self, item->index < KIT_MAX_ITEMS);
    kit_check(self, self->seen[item->index] == 0);
    kit_check(self, self->as_ready || self->n_sinks == 0 || item->index > self->last_index);
    kit_check(self, item->end_ns >= item->start_ns && item->start_ns > 0);
    kit_check(self, GPST_FAILED(item->result) == (item->reason[0] != '\0'));
    kit_check(self, GPST_FAILED(item->result) == (item->stage[0] != '\0'));
    kit_check(self, item->name[0] != '\0');
    self->seen[item->index] = 1;
    self->last_index = item->index;
    self->results[item->index] = item->result;
    self->n_sinks++;
    if (item->result == GPST_ERROR_CANCELLED)
        self->n_cancelled++;
    else if (GPST_FAILED(item->result))
        self->n_failed++;
    else
        self->n_ok++;
    if (GPST_FAILED(item->result)) {
        char path[100]; /* what the sink is told is true by then: nothing of a failed item is there */
        kit_output_path(self, item->index, 0, path, sizeof path);
        kit_check(self, access(path, F_OK) != 0);
        gpsti_copy_text(self->failed_stage, sizeof self->failed_stage, item->stage);
        gpsti_copy_text(self->failed_reason, sizeof self->failed_reason, item->reason);
    }
    if (self->sink_ns > 0)
        gpsti_sleep_ns(self->sink_ns);
    (void)gpsti_a32_add(&self->in_sink, UINT32_MAX);
    return kit_fails(self, KIT_SINK, item->index)
               ? gpst_task_fail(NULL, GPST_ERROR_IO, "the sink did not like it")
               : GPST_OK;
}

/* ---- the standard stages ---------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_image kit_shape(uint32_t width, uint32_t height) {
    gpst_image shape;
    memset(&shape, 0, sizeof shape);
    shape.width = width;
    shape.height = height;
    shape.format = GPST_FORMAT_GRAY;
    return shape;
}

GPSTI_PRIVATE gpst_result kit_decode(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    if (self->decode_ns > 0)
        gpsti_sleep_ns(self->decode_ns);
    if (kit_fails(self, KIT_DECODE, task->item->index))
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "header of item %u is bad",
                              (unsigned)task->item->index);
    kit_check(self, task->item->file_bytes == KIT_BYTES);
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    memcpy(image.data, task->item->file_data, KIT_BYTES);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result kit_kernel_host(const void* args) {
    const kit_args* const a = (const kit_args*)args;
    if (a->fail)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "the kernel found a NaN");
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = kit_result(a->from[i], a->output);
    return GPST_OK;
}

GPSTI_PRIVATE const gpst_kernel kit_kernel = {"kit", kit_kernel_host, TEST_GPU(kit_kernel_gpu)};

/* Makes n_outputs pictures of a set from the one of another. */
GPSTI_PRIVATE gpst_result kit_device_sets(kit* self, gpst_task* task, uint32_t from, uint32_t to) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image input, outputs[16];
    const uint32_t n = self->n_outputs;
    if (kit_fails(self, KIT_DEVICE, task->item->index))
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "no launch for item %u", (unsigned)task->item->index);
    GPSTI_TRY(gpst_task_pictures(task, from, &input, 1));
    for (uint32_t o = 0; o < n; o++) {
        kit_args args;
        GPSTI_TRY(gpst_task_set_picture(task, to, o, &shape, &outputs[o]));
        memset(&args, 0, sizeof args);
        args.from = (const uint8_t*)input.data;
        args.to = (uint8_t*)outputs[o].data;
        args.output = o;
        args.bytes = (uint32_t)KIT_BYTES;
        args.fail = o == 0 && kit_fails(self, KIT_DEVICE_LATER, task->item->index);
        GPSTI_TRY(gpst_task_enqueue(task, &kit_kernel, &args, sizeof args));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result kit_device(void* user_data, gpst_task* task) {
    return kit_device_sets((kit*)user_data, task, 0, 1);
}

GPSTI_PRIVATE gpst_result kit_encode(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const uint64_t index = task->item->index;
    const uint32_t output = task->picture_index;
    const gpst_set* const set = &task->item->sets[self->encoded_set];
    const bool last = output + 1 == set->n;
    char path[200];
    void* room = NULL;
    if (self->encode_ns > 0)
        gpsti_sleep_ns(self->encode_ns);
    kit_check(self, output < set->n && set->pictures[output].data);
    if (last && kit_fails(self, KIT_ENCODE, index))
        return gpst_task_fail(task, GPST_ERROR_UNSUPPORTED, "no encoder for output %u", output);
    GPSTI_TRY(gpst_task_encoded(task, KIT_BYTES, &room));
    memcpy(room, set->pictures[output].data, KIT_BYTES);
    kit_output_path(self, index, output, path, sizeof path);
    if (last && kit_fails(self, KIT_WRITE, index)) /* a directory that is not there */
        snprintf(path, sizeof path, "%s/nowhere/out_%05u.raw", self->dir, (unsigned)index);
    if (last && kit_fails(self, KIT_COMMIT, index)) /* a directory is in the way of the final name only */
        snprintf(path, sizeof path, "%s/in_the_way", self->dir);
    return gpst_task_emit(task, path, KIT_BYTES);
}

/* Pictures for a per_picture stage. */
GPSTI_PRIVATE gpst_result kit_make_pictures(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    for (uint32_t o = 0; o < self->n_outputs; o++) {
        GPSTI_TRY(gpst_task_set_picture(task, 1, o, &shape, &image));
        memset(image.data, 0xA5, KIT_BYTES);
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result kit_nothing(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_stage_desc kit_stage(kit* self, gpst_stage_kind kind, gpst_stage_func func,
                                        const char* name) {
    gpst_stage_desc stage;
    memset(&stage, 0, sizeof stage);
    stage.kind = kind;
    stage.func = func;
    stage.name = name;
    stage.user_data = self;
    return stage;
}

/* ---- from begin to end --------------------------------------------------------------------------- */

/* What is too big for a stack; one test at a time. */
static kit kit_the;

/* Workers log side by side. */
GPSTI_PRIVATE void kit_log(void* user_data, gpst_log_level level, uint64_t item_index, const char* message,
                           const char* file, int line) {
    kit* const self = (kit*)user_data;
    while (gpsti_a32_exchange(&self->in_log, 1) != 0)
        gpsti_yield();
    test_log_func(&self->log, level, item_index, message, file, line);
    gpsti_a32_store(&self->in_log, 0);
}

GPSTI_PRIVATE gpst_logger kit_log_hooks(kit* self) {
    gpst_logger hooks = test_log_hooks(&self->log);
    hooks.func = kit_log;
    hooks.user_data = self;
    return hooks;
}

GPSTI_PRIVATE void kit_no_work(void* argument) { (void)argument; }

/* The kit's context, by desc: on the backend that it names, or on the one that GPUSTAGE_TEST_BACKEND puts there. */
GPSTI_PRIVATE void kit_make_context(kit* self, const gpst_context_desc* changes) {
    gpst_context_desc desc = *changes;
    gpst_context_info info;
    char room[100];
    desc.backend = kit_backend(self->opener, changes->backend, room, sizeof room);
    desc.allocator = test_memory_hooks(&self->memory);
    desc.logger = kit_log_hooks(self);
    self->n_fired_before = gpsti_a32_load(gpsti_faults_fired());
    const bool has_fault = strstr(desc.backend, "fail_") || strstr(desc.backend, "lose_at=");
    snprintf(self->fault, sizeof self->fault, "%s", has_fault ? desc.backend : "");
    assert_int_equal(gpst_context_create(&desc, &self->context), GPST_OK);
    gpst_context_query_info(self->context, &info);
    assert_string_equal(self->context->system_root, "");
    assert_true(self->context->cores_online >= info.cores_allowed);
    self->context->system_root = self->dir; /* whoever else runs on this machine: the tests see nobody */
    self->backend = info.backend;
    assert_memory_equal(self->backend, desc.backend, strlen(self->backend));
}

/* On sim times are the model's, and what a slot needs costs nothing. */
GPSTI_PRIVATE bool kit_is_on_gpu(const kit* self) {
    return strcmp(self->backend, "cpu") != 0 && strcmp(self->backend, "sim") != 0;
}

#define kit_open(backend, n_workers) kit_open_in(__func__, backend, n_workers)

GPSTI_PRIVATE kit* kit_open_in(const char* opener, const char* backend, uint32_t n_workers) {
    kit* const self = &kit_the;
    gpst_context_desc desc = GPST_ZERO;
    if (kit_wanted_backend())
        kit_need_backend(kit_wanted_backend()); /* with its threads, before anybody counts any */
    gpsti_thread first; /* with the first thread a sanitizer starts one of its own, which stays */
    assert_int_equal(gpsti_thread_start(&first, kit_no_work, NULL, "first"), GPST_OK);
    gpsti_thread_join(&first);
    gpsti_sleep_ns(100000);
    memset(self, 0, sizeof *self);
    self->n_threads_before = kit_count_threads();
    self->n_outputs = 3;
    self->encoded_set = 1;
    snprintf(self->dir, sizeof self->dir, "%s/gpst_kit_XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(self->dir));
    self->opener = opener;
    desc.backend = backend;
    desc.n_workers = n_workers;
    kit_make_context(self, &desc);
    return self;
}

/* Another context for the same kit. */
GPSTI_PRIVATE void kit_reopen(kit* self, const gpst_context_desc* changes) {
    gpst_context_desc desc = *changes;
    desc.backend = desc.backend ? desc.backend : "cpu"; /* on machines with a GPU, too */
    gpst_context_destroy(self->context);
    test_memory_check(&self->memory);
    kit_make_context(self, &desc);
}

/* False where the device's memory is the host's. */
GPSTI_PRIVATE bool kit_has_own_memory(const kit* self) { return strcmp(self->backend, "cpu") != 0; }

/* For a thread: cancels the kit's pipeline after a while. */
GPSTI_PRIVATE void kit_cancel_soon(void* argument) {
    kit* const self = (kit*)argument;
    gpsti_sleep_ns(self->cancel_ns);
    gpst_pipeline_cancel(self->pipeline);
}

/* Of kits that are closed between these two calls, how many had a fault that fired: where some need not reach theirs,
   the test says how many must. */
static bool kit_counts_faults;
static uint32_t kit_n_fired;

GPSTI_PRIVATE void kit_count_faults(void) {
    kit_counts_faults = true;
    kit_n_fired = 0;
}

GPSTI_PRIVATE uint32_t kit_counted_faults(void) {
    kit_counts_faults = false;
    return kit_n_fired;
}

GPSTI_PRIVATE void kit_check_fired(const kit* self) {
    const bool fired = gpsti_a32_load(gpsti_faults_fired()) != self->n_fired_before;
    kit_n_fired += fired;
    if (self->fault[0] && !kit_counts_faults && fired == self->wants_none)
        fail_msg("%s: %s: %s", self->opener, self->fault, fired ? "was reached" : "was not reached: nothing failed");
}

/* Nothing is left: no bytes, no thread, no temporary file; no callback had anything to say; and faults fired. */
GPSTI_PRIVATE void kit_close(kit* self) {
    kit_check_fired(self);
    gpst_context_destroy(self->context);
    if (gpsti_a32_load(&self->broken) != 0)
        fail_msg("%s:%d: in a callback: %s", self->written[1], self->written_line, self->written[0]);
    test_memory_check(&self->memory);
    assert_int_equal(gpsti_a32_load(&self->log.n_errors), 0);
    assert_true(kit_threads_become(self->n_threads_before));
    assert_int_equal(kit_count_files(self, ".gpustage"), 0);
    kit_remove_files(self, "");
    assert_int_equal(rmdir(self->dir), 0);
}

/* Forgets what the sink saw. */
GPSTI_PRIVATE void kit_forget(kit* self) {
    self->next_source = self->n_sinks = self->n_ok = self->n_failed = self->n_cancelled = self->last_index =
        0;
    memset(self->seen, 0, sizeof self->seen);
    memset(self->results, 0, sizeof self->results);
    self->failed_stage[0] = self->failed_reason[0] = '\0';
}

GPSTI_PRIVATE gpst_pipeline_desc kit_desc(kit* self) {
    gpst_pipeline_desc desc = GPST_ZERO;
    desc.stages = self->stages;
    desc.n_stages = self->n_stages;
    desc.source = kit_source;
    desc.source_user_data = self;
    desc.sink = kit_sink;
    desc.sink_user_data = self;
    desc.mode = GPST_RUN_ENGINE; /* not tuned: what is in flight is what the test says */
    desc.capacity[1] = self->n_outputs;
    desc.fsync = GPST_FSYNC_NONE;
    desc.as_ready = self->as_ready;
    return desc;
}

/* read, decode, compute, encode, write over n_items files. */
GPSTI_PRIVATE gpst_pipeline_desc kit_standard(kit* self, uint64_t n_items) {
    self->n_items = n_items;
    kit_make_inputs(self);
    self->stages[0] = kit_stage(self, GPST_STAGE_READ, NULL, NULL);
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, kit_decode, "decode");
    self->stages[2] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
    self->stages[3] = kit_stage(self, GPST_STAGE_HOST, kit_encode, "encode");
    self->stages[3].per_picture = true;
    self->stages[4] = kit_stage(self, GPST_STAGE_WRITE, NULL, NULL);
    self->n_stages = 5;
    return kit_desc(self);
}

/* One HOST stage over n_items items of nothing. */
GPSTI_PRIVATE gpst_pipeline_desc kit_simple(kit* self, uint64_t n_items, gpst_stage_func func) {
    self->n_items = n_items;
    self->stages[0] = kit_stage(self, GPST_STAGE_HOST, func, "work");
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = kit_source_empty;
    return desc;
}

/* Of a report, what is said of one of its ways; "" where it says nothing. */
GPSTI_PRIVATE const char* kit_why_not(const gpst_stats* stats, const char* what) {
    for (uint32_t i = 0; i < stats->n_paths; i++)
        if (strcmp(stats->paths[i].what, what) == 0)
            return stats->paths[i].why_not;
    return "";
}

/* create, run, stats, destroy. */
GPSTI_PRIVATE gpst_result kit_run(kit* self, const gpst_pipeline_desc* desc, gpst_stats* stats) {
    gpst_stats own;
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, &own);
    assert_int_equal(own.items_ok, self->n_ok - (self->fail_place == KIT_SINK ? own.items_failed : 0));
    assert_int_equal(own.items_cancelled, self->n_cancelled);
    assert_int_equal(own.items_ok + own.items_failed + own.items_cancelled, self->n_sinks);
    assert_int_equal(own.items_total, self->n_sinks);
    for (uint32_t s = 0; s < own.n_stages; s++) /* the device's clock may be a model's */
        assert_true(own.stages[s].resource != GPST_RESOURCE_CPU || (int64_t)own.stages[s].max_ns <= own.wall_ns);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    if (stats)
        *stats = own;
    return result;
}

/* Every item that should have ended well did, with all its files right; of the others there is no file. */
GPSTI_PRIVATE void kit_check_files(const kit* self) {
    uint32_t n_files = 0;
    for (uint64_t n = 0; n < self->n_items; n++) {
        if (!self->seen[n] || GPST_FAILED(self->results[n]) || kit_fails(self, KIT_SINK, n))
            continue;
        for (uint32_t o = 0; o < self->n_outputs; o++)
            if (!kit_output_is_right(self, n, o))
                fail_msg("output %u of item %u is missing or wrong", o, (unsigned)n);
        n_files += self->n_outputs;
    }
    assert_int_equal(kit_count_files(self, "out_"), n_files);
    assert_int_equal(kit_count_files(self, ".gpustage"), 0);
}

#endif
