/* tests/test_pipeline_flow.c -- which thread brings an item through its stages: one, as long as nothing has to be waited
   for; others meanwhile, where something has; and none of the workers in a run that is over before they begin. Whoever
   waits here waits for what it is to see, so that no clock decides. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

#include <fcntl.h>
#include <time.h>

#define PATIENCE_NS ((int64_t)20000000000) /* longer than any machine needs */
#define BEGIN_NS 1000000                   /* after a run's start no worker begins for so long */

enum { N_ITEMS = 200, N_PLACES = 3 };

/* ---- nothing waits ------------------------------------------------------------------------------- */

typedef struct places { /* where each item was served */
    kit* owner;
    const void* threads[N_ITEMS][N_PLACES];
    uint32_t workers[N_ITEMS][N_PLACES];
    gpsti_a32 most_threads; /* of the process */
    int64_t start_ns;       /* of the run */
} places;

static places where;

static void note_place(gpst_task* task, int place) {
    static GPSTI_TLS char this_thread;
    const uint64_t index = task->item->index;
    const uint32_t n_threads = kit_count_threads();
    kit_check(where.owner, index < N_ITEMS);
    kit_check(where.owner, task->worker_index == 3 || gpsti_now_ns() - where.start_ns >= BEGIN_NS ||
                               where.start_ns == 0); /* no worker before it is time */
    where.threads[index][place] = &this_thread;
    where.workers[index][place] = task->worker_index;
    if (n_threads > gpsti_a32_load(&where.most_threads))
        gpsti_a32_store(&where.most_threads, n_threads);
}

static gpst_result decode_here(void* user_data, gpst_task* task) {
    note_place(task, 0);
    return kit_decode(user_data, task);
}

static gpst_result compute_here(void* user_data, gpst_task* task) {
    note_place(task, 1);
    return kit_device(user_data, task);
}

static gpst_result encode_here(void* user_data, gpst_task* task) {
    note_place(task, 2);
    return kit_encode(user_data, task);
}

static gpst_pipeline_desc places_desc(kit* self, uint64_t n_items) {
    memset(&where, 0, sizeof where);
    where.owner = self;
    self->n_outputs = 1;
    gpst_pipeline_desc desc = kit_standard(self, n_items);
    self->stages[1].func = decode_here;
    self->stages[2].func = compute_here;
    self->stages[3].func = encode_here;
    return desc;
}

static void check_places(uint64_t n_items, bool by_workers) {
    for (uint64_t n = 0; n < n_items; n++) {
        for (int p = 0; p < N_PLACES; p++) {
            assert_ptr_equal(where.threads[n][p], where.threads[n][0]);
            assert_int_equal(where.workers[n][p], where.workers[n][0]);
        }
        assert_ptr_not_equal(where.threads[n][0], NULL);
        if (by_workers)
            assert_in_range(where.workers[n][0], 0, 2);
    }
}

/* Files that are in memory, kernels on the CPU, files that are not synced: each item is one thread's from its first
   stage to its last, in every mode, and there are no threads but the context's. */
static void test_nothing_waits(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};
    for (int m = 0; m < 3; m++) {
        kit* const self = kit_open("cpu", 3);
        gpst_stats stats;
        gpst_pipeline_desc desc = places_desc(self, N_ITEMS);
        const uint32_t n_threads = kit_count_threads();
        desc.mode = modes[m];
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        check_places(N_ITEMS, modes[m] == GPST_RUN_ENGINE);
        assert_int_equal(gpsti_a32_load(&where.most_threads), n_threads);
        assert_int_equal(self->n_ok, N_ITEMS);
        kit_check_files(self);
        kit_close(self);
    }
}

/* The caller's thread alone, one item at a time, whatever has to be waited for. */
static void test_plain_loops_start_no_thread(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim:read_us=200,write_us=200"};
    for (int i = 0; i < 4; i++) {
        kit* const self = kit_open(backends[i % 2], 3);
        gpst_stats stats;
        gpst_pipeline_desc desc = places_desc(self, 20);
        const uint32_t n_threads = kit_count_threads();
        desc.mode = i / 2 ? GPST_RUN_PLAIN_INSIDE : GPST_RUN_PLAIN_SERIAL;
        desc.fsync = GPST_FSYNC_FILE;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        check_places(20, false);
        for (uint64_t n = 0; n < 20; n++)
            assert_int_equal(where.workers[n][0], 3);
        if (strcmp(self->backend, "cpu") == 0) /* a device has threads of its own */
            assert_int_equal(gpsti_a32_load(&where.most_threads), n_threads);
        assert_int_equal(stats.slots_used, 1);
        kit_check_files(self);
        kit_close(self);
    }
}

/* ---- who begins when ------------------------------------------------------------------------------ */

/* Before its time no worker takes an item: see note_place. Where all of a run is over by then, the caller did it all, in
   one slot. */
static void test_brief_runs(void** state) {
    (void)state;
    uint32_t n_alone = 0;
    for (int round = 0; round < 50; round++) {
        kit* const self = kit_open("cpu", 3);
        gpst_stats stats;
        gpst_pipeline_desc desc = places_desc(self, 1 + (uint64_t)round % 8);
        bool alone = true;
        desc.mode = GPST_RUN_DEFAULT;
        kit_forget(self);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        where.start_ns = gpsti_now_ns();
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        const bool brief = gpsti_now_ns() - where.start_ns < BEGIN_NS;
        gpst_pipeline_query_stats(self->pipeline, &stats);
        for (uint64_t n = 0; n < self->n_items; n++)
            alone = alone && where.workers[n][0] == 3;
        assert_true(alone || !brief);
        assert_true(stats.slots_used == 1 || !brief);
        n_alone += alone;
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_check_files(self);
        kit_close(self);
    }
    printf("  the caller alone did %u of 50 runs\n", n_alone);
}

typedef struct first { /* item 0 goes on when so many others have begun, or ended */
    kit* kit;
    uint32_t wanted;
    bool wants_ended;
    gpsti_a32 n_others, n_inside, most_inside;
    bool on_device, seen;
    gpst_result result; /* and this is what becomes of it */
} first;

static bool sees_others(const first* self) {
    gpst_stats stats;
    if (!self->wants_ended)
        return gpsti_a32_load(&self->n_others) >= self->wanted;
    gpst_pipeline_query_stats(self->kit->pipeline, &stats);
    return stats.items_ok >= self->wanted;
}

static void wait_for_others(first* self) {
    const int64_t end_ns = gpsti_now_ns() + PATIENCE_NS;
    while (!sees_others(self) && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    self->seen = sees_others(self);
}

static gpst_result first_stage(void* user_data, gpst_task* task) {
    first* const self = (first*)user_data;
    const uint32_t n_inside = gpsti_a32_add(&self->n_inside, 1) + 1;
    if (n_inside > gpsti_a32_load(&self->most_inside))
        gpsti_a32_store(&self->most_inside, n_inside);
    if (task->item->index > 0)
        (void)gpsti_a32_add(&self->n_others, 1);
    else if (!self->on_device)
        wait_for_others(self);
    const gpst_result result = kit_decode(self->kit, task);
    (void)gpsti_a32_add(&self->n_inside, UINT32_MAX);
    return task->item->index == 0 && GPST_FAILED(self->result)
               ? gpst_task_fail(task, self->result, "item 0 had enough")
               : result;
}

static gpst_result first_kernel(const void* args) {
    first* self = NULL;
    memcpy(&self, args, sizeof self);
    wait_for_others(self);
    return GPST_OK;
}

static gpst_result first_device(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"first", first_kernel, NULL};
    first* const self = (first*)user_data;
    if (self->on_device && task->item->index == 0)
        GPSTI_TRY(gpst_task_enqueue(task, &kernel, &self, sizeof self));
    return kit_device(self->kit, task);
}

static kit* first_open(first* self, const char* backend, uint64_t n_items, gpst_pipeline_desc* desc) {
    kit* const owner = kit_open(backend, 2);
    memset(self, 0, sizeof *self);
    self->kit = owner;
    self->wanted = 1;
    *desc = kit_standard(owner, n_items);
    owner->stages[1].func = first_stage;
    owner->stages[2].func = first_device;
    owner->stages[1].user_data = owner->stages[2].user_data = self;
    desc->n_items_expected = n_items;
    return owner;
}

/* Item 0 is the caller's, and long: in a stage or on a device. Others begin, but no more at once than workers; the sink
   is told of all in the source's order, and item 0 may even fail. */
static void test_others_begin(void** state) {
    (void)state;
    static const uint64_t n_items[] = {2, 3, 40};
    for (int i = 0; i < 9; i++) {
        first watch;
        gpst_stats stats;
        gpst_pipeline_desc desc;
        kit* const self = first_open(&watch, i % 3 == 1 ? "sim" : "cpu", n_items[i / 3], &desc);
        watch.on_device = i % 3 == 1;
        watch.result = i % 3 == 2 ? GPST_ERROR_FORMAT : GPST_OK;
        assert_int_equal(run_tuned(self, &desc, &stats), i % 3 == 2 ? GPST_PARTIAL : GPST_OK);
        assert_true(watch.seen);
        assert_true(gpsti_a32_load(&watch.most_inside) <= 2);
        assert_int_equal(self->n_sinks, n_items[i / 3]);
        assert_int_equal(self->n_failed, i % 3 == 2);
        assert_true(stats.slots_used > 1);
        kit_check_files(self);
        kit_close(self);
    }
}

/* As they are ready, all others even end before it. */
static void test_others_end(void** state) {
    (void)state;
    first watch;
    gpst_stats stats;
    gpst_pipeline_desc desc;
    kit* const self = first_open(&watch, "cpu", 40, &desc);
    watch.wanted = 39;
    watch.wants_ended = true;
    desc.as_ready = self->as_ready = true;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_true(watch.seen);
    assert_int_equal(self->n_ok, 40);
    assert_int_equal(self->last_index, 0);
    kit_check_files(self);
    kit_close(self);
}

static void run_with_a_long_step(int i) {
    static const char* const backends[] = {"cpu", "sim:kernel_us=100", "sim:read_us=3000,write_us=500"};
    kit* const self = kit_open(backends[i % 3], 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_standard(self, 20);
    desc.n_items_expected = i % 2 ? 20 : 0;
    self->source_ns = i / 3 == 0 ? 2000000 : 0;
    self->decode_ns = i / 3 == 1 ? 2000000 : 0;
    self->encode_ns = i / 3 == 2 ? 2000000 : 0;
    self->sink_ns = i / 3 == 3 ? 2000000 : 0;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 20);
    assert_int_equal(stats.stages[0].count, 20);
    kit_check_files(self);
    kit_close(self);
}

/* Workers begin while the caller is at any place of an item's way: it goes on from there. */
static void test_workers_begin_anywhere(void** state) {
    (void)state;
    for (int i = 0; i < 3 * 4; i++)
        run_with_a_long_step(i);
}

/* One long item: whoever comes takes outputs that nobody has taken. */
static void test_one_item_is_shared(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    self->n_outputs = 8;
    gpst_pipeline_desc desc = kit_standard(self, 1);
    self->encode_ns = 2000000;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.stages[5].count, 8);
    kit_check_files(self);
    kit_close(self);
}

/* ---- reads that wait ------------------------------------------------------------------------------- */

#if defined(__linux__)
enum { N_FIFOS = 4 };

/* Written to when all other items have been told of. */
static void feed_fifos(void* argument) {
    kit* const self = (kit*)argument;
    const int64_t end_ns = gpsti_now_ns() + PATIENCE_NS;
    char path[100];
    uint8_t pixels[KIT_BYTES];
    gpst_stats stats = GPST_ZERO;
    while (stats.items_ok < self->n_items - N_FIFOS && gpsti_now_ns() < end_ns) {
        gpst_pipeline_query_stats(self->pipeline, &stats);
        gpsti_sleep_ns(100000);
    }
    kit_check(self, stats.items_ok == self->n_items - N_FIFOS);
    for (uint64_t n = 0; n < N_FIFOS; n++) {
        kit_input_path(self, n, path, sizeof path);
        for (size_t i = 0; i < KIT_BYTES; i++)
            pixels[i] = kit_pixel(n, i);
        const int file = open(path, O_WRONLY);
        kit_check(self, file >= 0 && write(file, pixels, KIT_BYTES) == (ssize_t)KIT_BYTES);
        close(file);
    }
}

/* The first files are FIFOs that give nothing: the only worker brings all others meanwhile. */
static void test_fifos_hold_no_worker(void** state) {
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) {
        kit* const self = kit_open("cpu", 1);
        gpsti_thread other;
        char path[100];
        self->as_ready = true;
        gpst_pipeline_desc desc = kit_standard(self, 30);
        for (uint64_t n = 0; n < N_FIFOS; n++) {
            kit_input_path(self, n, path, sizeof path);
            assert_int_equal(unlink(path), 0);
            assert_int_equal(mkfifo(path, 0600), 0);
        }
        desc.n_reads = N_FIFOS + 1;
        self->cancel_ns = 5000000;
        kit_forget(self);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpsti_thread_start(&other, cancels ? kit_cancel_soon : feed_fifos, self, "other"), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), cancels ? GPST_ERROR_CANCELLED : GPST_OK);
        gpsti_thread_join(&other);
        assert_true(cancels || self->n_ok == 30);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_check_files(self);
        kit_close(self);
    }
}
#endif

/* In the first item's stage, which has the only worker, files of others come in. */
static gpst_result wait_for_reads(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const int64_t end_ns = gpsti_now_ns() + PATIENCE_NS;
    gpst_stats stats = GPST_ZERO;
    while (task->item->index == 0 && stats.bytes_read < 3 * KIT_BYTES && gpsti_now_ns() < end_ns) {
        gpst_pipeline_query_stats(task->pipeline, &stats);
        gpsti_sleep_ns(100000);
    }
    kit_check(self, task->item->index > 0 || stats.bytes_read >= 3 * KIT_BYTES);
    return kit_decode(user_data, task);
}

static void test_cold_reads_hold_no_worker(void** state) {
    (void)state;
    kit* const self = kit_open("sim:read_us=2000", 1);
    gpst_pipeline_desc desc = kit_standard(self, 20);
    self->stages[1].func = wait_for_reads;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    assert_int_equal(self->n_ok, 20);
    kit_check_files(self);
    kit_close(self);
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

enum { N_OUTPUTS = 8 };

typedef struct failing_outputs {
    kit* owner;
    uint32_t n_together; /* so many outputs are at work when one of them fails */
    gpsti_a32 n_begun;
} failing_outputs;

/* The last one of those that are at work fails, the others stay until that is known. */
static gpst_result fail_one_output(void* user_data, gpst_task* task) {
    failing_outputs* const self = (failing_outputs*)user_data;
    const gpsti_item* const item = (const gpsti_item*)(const void*)task->item;
    const int64_t end_ns = gpsti_now_ns() + PATIENCE_NS;
    if (gpsti_a32_add(&self->n_begun, 1) + 1 == self->n_together)
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "output %u is bad", task->picture_index);
    while (self->n_together > 1 && !gpsti_item_has_failed(item) && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    return GPST_OK;
}

static void test_a_failed_output_is_the_last(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};
    for (uint32_t i = 0; i < 3 * 3; i++) {
        kit* const self = kit_open("cpu", 3);
        failing_outputs outputs;
        memset(&outputs, 0, sizeof outputs);
        outputs.owner = self;
        outputs.n_together = i % 3 == 0 ? 1 + 2 * (i / 3 % 2) : 1; /* of the engine: one alone, or all workers */
        self->n_outputs = N_OUTPUTS;
        gpst_pipeline_desc desc = kit_simple(self, 1, kit_make_pictures);
        self->stages[1] = kit_stage(self, GPST_STAGE_HOST, fail_one_output, "fail");
        self->stages[1].per_picture = true;
        self->stages[1].user_data = &outputs;
        self->stages[1].concurrency = outputs.n_together == 1 ? 1 : 0;
        desc.n_stages = 2;
        desc.mode = modes[i % 3];
        assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_FORMAT);
        assert_int_equal(gpsti_a32_load(&outputs.n_begun), outputs.n_together);
        assert_int_equal(self->n_failed, 1);
        kit_close(self);
    }
}

/* ---- memory ----------------------------------------------------------------------------------------- */

enum { N_SIZED = 40, LARGE_ROWS = 16, PAGE = 4096 }; /* pictures of so many pages: input and output */

typedef enum sized_way { SIZED_ON_HOST, SIZED_FRAMES, SIZED_ON_DEVICE, N_WAYS } sized_way;

typedef struct sized {
    kit* owner;
    sized_way way;
    bool mixed;          /* some are small */
    uint32_t n_together; /* of the large ones, that first have their inputs, where so many come within a while */
    gpsti_a32 n_inputs;
} sized;

static gpst_image sized_shape(const sized* self, uint64_t index) {
    return kit_shape(PAGE, !self->mixed || index % 8 >= 5 ? LARGE_ROWS : 1);
}

static gpst_result sized_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[LARGE_ROWS * PAGE]; /* of the latest item */
    sized* const self = (sized*)user_data;
    if (index >= N_SIZED)
        return GPST_END;
    memset(pixels, (int)index, sizeof pixels);
    out->frame = sized_shape(self, index);
    out->frame.data = self->way == SIZED_FRAMES ? pixels : NULL;
    return GPST_OK;
}

static gpst_result take_both(void* user_data, gpst_task* task) {
    sized* const self = (sized*)user_data;
    const uint64_t index = task->item->index;
    const gpst_image shape = sized_shape(self, index);
    const size_t bytes = (size_t)PAGE * shape.height;
    const int64_t end_ns = gpsti_now_ns() + 20000000;
    gpst_image input = task->item->sets[0].pictures[0], output;
    if (self->way != SIZED_FRAMES) {
        GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &input));
        memset(input.data, (int)index, bytes);
    }
    (void)gpsti_a32_add(&self->n_inputs, shape.height > 1);
    while (shape.height > 1 && gpsti_a32_load(&self->n_inputs) < self->n_together && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    if (self->way == SIZED_ON_DEVICE)
        return GPST_OK;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &output));
    memcpy(output.data, input.data, bytes);
    return GPST_OK;
}

static gpst_result copy_kernel(const void* args) {
    const kit_args* const a = (const kit_args*)args;
    memmove(a->to, a->from, a->bytes);
    return GPST_OK;
}

static gpst_result copy_on_device(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"copy", copy_kernel, NULL};
    gpst_image input, output;
    kit_args args;
    (void)user_data;
    memset(&args, 0, sizeof args);
    GPSTI_TRY(gpst_task_pictures(task, 0, &input, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &input, &output));
    args.from = (const uint8_t*)input.data;
    args.to = (uint8_t*)output.data;
    args.bytes = (uint32_t)PAGE * input.height;
    return gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

static gpst_result sized_sink(void* user_data, const gpst_item* item) {
    const sized* const self = (const sized*)user_data;
    const gpst_image shape = sized_shape(self, item->index);
    if (item->result == GPST_OK) {
        kit_check(self->owner, item->sets[1].pictures[0].height == shape.height);
        kit_check(self->owner, item->sets[0].pictures[0].height == shape.height);
        for (size_t i = 0; i < (size_t)PAGE * shape.height; i++)
            kit_check(self->owner, ((const uint8_t*)item->sets[1].pictures[0].data)[i] == item->index);
    }
    return kit_sink(self->owner, item);
}

static void run_within(uint64_t host_bytes, gpst_run_mode mode, bool mixed, sized_way way) {
    kit* const self = kit_open(way == SIZED_ON_DEVICE ? "sim" : "cpu", 3);
    gpst_context_desc context = GPST_ZERO;
    gpst_stats stats;
    sized items;
    context.backend = way == SIZED_ON_DEVICE ? "sim:kernel_us=300" : "cpu";
    context.n_workers = 3;
    context.max_host_bytes = host_bytes;
    kit_reopen(self, &context);
    memset(&items, 0, sizeof items);
    items.owner = self;
    items.way = way;
    items.mixed = mixed;
    items.n_together = 2;
    self->n_outputs = 1;
    gpst_pipeline_desc desc = kit_simple(self, N_SIZED, take_both);
    self->stages[0].user_data = &items;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, copy_on_device, "copy");
    desc.n_stages = way == SIZED_ON_DEVICE ? 2 : 1;
    desc.source = sized_source;
    desc.sink = sized_sink;
    desc.source_user_data = desc.sink_user_data = &items;
    desc.mode = mode;
    desc.n_items_expected = N_SIZED;
    desc.n_results = 2; /* the sink looks at both */
    desc.results[0] = gpst_result_of(0, GPST_ON_HOST);
    desc.results[1] = gpst_result_of(1, GPST_ON_HOST);
    const gpst_result result = kit_run(self, &desc, &stats);
    if (result != GPST_OK)
        fail_msg("%u bytes, mode %d, way %d, %s: %u items failed, the last one: %s", (unsigned)host_bytes, (int)mode,
                 (int)way, mixed ? "mixed" : "alike", (unsigned)self->n_failed, self->failed_reason);
    kit_close(self);
}

/* Memory for one of the largest items is enough for all of them; with more, several may be in each other's way. */
static void test_memory_for_one_item(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};
    const uint64_t item_bytes = (uint64_t)2 * LARGE_ROWS * PAGE;
    for (int i = 0; i < 2 * 3 * (int)N_WAYS; i++) {
        const sized_way way = (sized_way)(i / 6);
        const bool mixed = i % 2 != 0 && way != SIZED_FRAMES; /* the source's own pictures stay while items wait */
        for (uint64_t bytes = item_bytes; bytes < 4 * item_bytes; bytes += item_bytes / 4)
            run_within(bytes, modes[i / 2 % 3], mixed, way);
    }
}

/* ---- workers that wait in each other's sight -------------------------------------------------------- */

#define SLOW_US 100000

static uint8_t slow_pixels[64];

static gpst_result slow_source(void* user_data, uint64_t index, gpst_input* out) {
    memset(out, 0, sizeof *out);
    out->frame = kit_shape(8, 8);
    out->frame.data = slow_pixels;
    return index < *(const uint64_t*)user_data ? GPST_OK : GPST_END;
}

/* A run of its own on the slow device, for which its worker waits. */
static gpst_result run_slowly(void* user_data, gpst_task* task) {
    uint64_t n_items = 3;
    gpst_mask_desc threshold = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage;
    gpst_pipeline* pipeline = NULL;
    (void)task;
    threshold.kind = GPST_MASK_THRESHOLD;
    gpst_stage_mask(&stage, 0, 1, &threshold);
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = slow_source;
    desc.source_user_data = &n_items;
    desc.mode = GPST_RUN_ENGINE;
    desc.n_slots = 1;
    gpst_result result = gpst_pipeline_create((gpst_context*)user_data, &desc, &pipeline);
    if (result == GPST_OK)
        result = gpst_pipeline_run(pipeline);
    gpst_pipeline_destroy(pipeline);
    return result;
}

/* Two workers that wait for runs inside of their stages do not wake each other without end. */
static void test_waiting_takes_no_cpu(void** state) {
    uint64_t n_items = 2;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage;
    gpst_pipeline* pipeline = NULL;
    (void)state;
    kit* const self = kit_open("sim:kernel_us=100000", 2); /* SLOW_US */
    gpst_stage_host(&stage, GPST_SET(0), 0, run_slowly, self->context);
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = slow_source;
    desc.source_user_data = &n_items;
    desc.mode = GPST_RUN_ENGINE;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    const clock_t cpu_start = clock();
    const int64_t start_ns = gpsti_now_ns();
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    const double cpu_s = (double)(clock() - cpu_start) / CLOCKS_PER_SEC;
    const double wall_s = (double)(gpsti_now_ns() - start_ns) * 1e-9;
    const bool is_slow = wall_s >= 3 * SLOW_US * 1e-6; /* another device may have been asked for */
    if (is_slow && cpu_s > wall_s / 4)
        fail_msg("waiting took %.2f s of the cores in %.2f s", cpu_s, wall_s);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_waits),
        cmocka_unit_test(test_plain_loops_start_no_thread),
        cmocka_unit_test(test_brief_runs),
        cmocka_unit_test(test_others_begin),
        cmocka_unit_test(test_others_end),
        cmocka_unit_test(test_workers_begin_anywhere),
        cmocka_unit_test(test_one_item_is_shared),
#if defined(__linux__)
        cmocka_unit_test(test_fifos_hold_no_worker),
#endif
        cmocka_unit_test(test_cold_reads_hold_no_worker),
        cmocka_unit_test(test_a_failed_output_is_the_last),
        cmocka_unit_test(test_memory_for_one_item),
        cmocka_unit_test(test_waiting_takes_no_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
