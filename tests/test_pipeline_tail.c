/* tests/test_pipeline_tail.c -- the end of a list: while the last item is at work, the others' memory and the threads
   that read are given back, and it keeps its own. */
#include "pipeline_kit.h"

#include "pipeline_books.h"

enum { SIDE = 256, PICTURE = SIDE * SIDE, N_ITEMS = 60, N_SLOTS = 8 };

/* What is on loan when the last item comes, and when it has waited for that to become little. */
typedef struct tail {
    kit* owner;
    uint64_t n_items;
    uint64_t file_bytes; /* of each item */
    uint64_t host_then, device_then, host_bytes, device_bytes;
    uint32_t n_threads, n_threads_wanted; /* 0 = any number */
    uint32_t n_writers; /* threads */
    bool is_late; /* the source says that there are no more only when the last item is told of */
    gpsti_a32 told;
    bool paused; /* a plain loop was to be measured: beside it nothing is given back */
} tail;

static tail the_tail;

static tail* tail_open(kit* owner, uint64_t n_items) {
    memset(&the_tail, 0, sizeof the_tail);
    the_tail.owner = owner;
    the_tail.n_items = n_items;
    return &the_tail;
}

static void tail_look(tail* self, const gpst_pipeline* pipeline) {
    gpsti_mutex* const mutex = &self->owner->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    self->paused = pipeline->tune.paused;
    gpsti_mutex_unlock(mutex);
    gpst_tag_info tags[GPSTI_MEMORY_TAGS];
    uint32_t n = 0;
    gpst_context_query_tags(self->owner->context, tags, GPSTI_MEMORY_TAGS, &n);
    self->host_bytes = self->device_bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        self->host_bytes += tags[i].host_bytes;
        self->device_bytes += tags[i].device_bytes;
    }
    self->n_threads = kit_count_threads();
}

static gpst_result fill(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(SIDE, SIDE);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &image));
    memset(image.data, (int)(task->item->index & 255), PICTURE);
    return GPST_OK;
}

static gpst_result nothing_on_the_device(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return GPST_OK;
}

static bool tail_is_long(const tail* self) {
    return self->host_bytes > PICTURE + self->file_bytes || self->device_bytes > PICTURE ||
           (self->n_threads_wanted > 0 && self->n_threads > self->n_threads_wanted);
}

/* The last item stays for as long as the others hold more than it does. */
static gpst_result linger(void* user_data, gpst_task* task) {
    tail* const self = (tail*)user_data;
    const uint8_t* const pixels = (const uint8_t*)task->item->input.data;
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10 * 1000000000;
    if (task->item->index + 1 < self->n_items) {
        gpsti_sleep_ns(300000);
        return GPST_OK;
    }
    tail_look(self, task->pipeline);
    self->host_then = self->host_bytes;
    self->device_then = self->device_bytes;
    while (tail_is_long(self) && !self->paused && gpsti_now_ns() < give_up_ns) {
        gpsti_sleep_ns(200000);
        tail_look(self, task->pipeline);
    }
    for (size_t i = 0; i < PICTURE; i++)
        kit_check(self->owner, pixels[i] == (task->item->index & 255));
    return GPST_OK;
}

static void tail_check(tail* self) {
    printf("  KiB of the host: %u, then %u, of the device: %u, then %u\n", (unsigned)(self->host_then >> 10),
           (unsigned)(self->host_bytes >> 10), (unsigned)(self->device_then >> 10),
           (unsigned)(self->device_bytes >> 10));
    assert_false(tail_is_long(self));
    assert_true(self->host_bytes >= PICTURE);
}

/* ---- in stages --------------------------------------------------------------------------------------------- */

static void test_slots_of_a_device(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim"};
    for (int b = 0; b < 2; b++) {
        kit* const self = kit_open(backends[b], 4);
        tail* const own = tail_open(self, N_ITEMS);
        gpst_pipeline_desc desc = kit_simple(self, N_ITEMS, fill);
        gpst_stats stats;
        self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, nothing_on_the_device, "nothing");
        self->stages[2] = kit_stage(self, GPST_STAGE_HOST, linger, "linger");
        self->stages[2].user_data = own;
        desc.n_stages = 3;
        desc.n_slots = N_SLOTS;
        desc.mode = GPST_RUN_ENGINE;
        desc.tune = GPST_TUNE_OFF;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, N_ITEMS);
        tail_check(own);
        kit_close(self);
    }
}

/* Of a disk that is slow, too: all that is to be given back has been, and everybody sleeps, but for what reads the last
   file. */
static void test_threads_that_read(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim:read_us=3000"};
    for (int b = 0; b < 2; b++) {
        kit* const self = kit_open(backends[b], 4);
        tail* const own = tail_open(self, N_ITEMS);
        gpst_pipeline_desc desc = kit_standard(self, N_ITEMS);
        gpst_stats stats;
        own->file_bytes = 4096;
        own->n_threads_wanted = kit_count_threads(); /* the context's */
        self->stages[1] = kit_stage(self, GPST_STAGE_HOST, fill, "fill");
        self->stages[2] = kit_stage(self, GPST_STAGE_HOST, linger, "linger");
        self->stages[2].user_data = own;
        desc.n_stages = 3;
        desc.n_slots = N_SLOTS;
        desc.n_reads = b == 0 ? 3 : 1;
        desc.mode = GPST_RUN_ENGINE;
        desc.tune = GPST_TUNE_OFF;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, N_ITEMS);
        assert_true(stats.bytes_read > 0);
        tail_check(own);
        kit_close(self);
    }
}

/* Threads that write files, by their names. */
static uint32_t count_writers(void) {
    uint32_t n = 0;
    char path[300], name[32];
    DIR* const dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent* entry = readdir(dir); entry; entry = readdir(dir)) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE* const file = fopen(path, "r");
        n += file && fgets(name, sizeof name, file) && strncmp(name, "gpst-write", 10) == 0;
        if (file)
            fclose(file);
    }
    closedir(dir);
    return n;
}

static gpst_result linger_in_sink(void* user_data, const gpst_item* item) {
    tail* const self = (tail*)user_data;
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10 * 1000000000;
    const bool is_last = item->index + 1 == self->n_items;
    if (is_last)
        gpsti_a32_store(&self->told, 1);
    while (is_last && (self->n_writers = count_writers()) > 0 && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(200000);
    return kit_sink(self->owner, item);
}

static gpst_result source_that_may_be_late(void* user_data, uint64_t index, gpst_input* out) {
    tail* const self = (tail*)user_data;
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10 * 1000000000;
    while (self->is_late && index == self->n_items && gpsti_a32_load(&self->told) == 0 &&
           gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(200000);
    return kit_source(self->owner, index, out);
}

/* When the last item's turn to end comes: nobody else is awake, or the source still has its last answer to give. */
static void test_threads_that_write(void** state) {
    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        kit* const self = kit_open(is_late ? "cpu" : "sim:write_us=1000", 4);
        tail* const own = tail_open(self, N_ITEMS);
        gpst_pipeline_desc desc = kit_standard(self, N_ITEMS);
        gpst_stats stats;
        own->is_late = is_late == 1;
        own->n_writers = UINT32_MAX;
        desc.source = source_that_may_be_late;
        desc.sink = linger_in_sink;
        desc.source_user_data = desc.sink_user_data = own;
        desc.n_writes = is_late ? 3 : 1;
        desc.mode = GPST_RUN_ENGINE;
        desc.tune = GPST_TUNE_OFF;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(own->n_writers, 0);
        kit_check_files(self);
        kit_close(self);
    }
}

/* Whose threads free what the files of each item replace: the writer's, or 'h'ere; as many as there are items. */
static char who_frees[N_ITEMS + 1];

static gpst_result ask_who_frees(void* user_data, gpst_task* task) {
    gpst_pipeline* const pipeline = task->pipeline;
    gpsti_slot* slot = NULL;
    for (uint32_t s = 0; s < pipeline->n_slots_made; s++) /* not tuned: there are no more later */
        if (&pipeline->slots[s]->item == task->item)
            slot = pipeline->slots[s];
    kit_check((kit*)user_data, slot != NULL);
    if (slot)
        who_frees[slot->item.index] = gpsti_finish_who_frees(slot) ? 'w' : 'h';
    return kit_decode(user_data, task);
}

static const char* run_and_ask(uint64_t n_items, uint64_t n_items_expected, uint32_t frees_wait) {
    kit* const self = kit_open("cpu", 4);
    gpst_pipeline_desc desc = kit_standard(self, n_items);
    gpst_stats stats;
    memset(who_frees, 0, sizeof who_frees);
    self->stages[1].func = ask_who_frees;
    desc.n_items_expected = n_items_expected;
    desc.mode = GPST_RUN_ENGINE;
    desc.tune = GPST_TUNE_OFF;
    gpsti_a32_store(&self->context->frees_wait, frees_wait);
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    kit_close(self);
    return who_frees;
}

/* Of the last items who commits frees that, unless it waits. */
static void test_who_frees(void** state) {
    (void)state;
    assert_string_equal(run_and_ask(9, 9, 0), "wwwwwhhhh");
    assert_string_equal(run_and_ask(9, 9, 1), "wwwwwwwww");
    assert_string_equal(run_and_ask(9, 0, 0), "wwwwwwwww"); /* of how many */
    assert_string_equal(run_and_ask(2, 2, 0), "hh");
}

/* ---- whole items ------------------------------------------------------------------------------------------- */

static gpst_result fill_and_linger(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    GPSTI_TRY(fill(self, task));
    GPSTI_TRY(books_work(self, task));
    return linger(&the_tail, task);
}

static void run_whole(uint32_t round) {
    kit* const self = kit_open("cpu", 4);
    books* const own = books_open(self, 0, N_ITEMS);
    gpst_stage_desc stage;
    gpst_stats stats;
    (void)round;
    (void)tail_open(self, N_ITEMS);
    const gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = fill_and_linger;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_ITEMS);
    if (was_whole() && !the_tail.paused)
        tail_check(&the_tail);
    kit_close(self);
}

static void test_workers_slots(void** state) {
    (void)state;
    run_cases(run_whole, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_of_a_device),
        cmocka_unit_test(test_threads_that_read),
        cmocka_unit_test(test_threads_that_write),
        cmocka_unit_test(test_who_frees),
        cmocka_unit_test(test_workers_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
