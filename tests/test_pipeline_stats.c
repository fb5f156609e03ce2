/* tests/test_pipeline_stats.c -- what the statistics of a run hold: counts, bytes and paths of every stage, all the
   CPU time of it, and whose time its reads and the names of its files take. */
#include "pipeline_kit.h"

static gpst_result burn(void* user_data, gpst_task* task) {
    const int64_t until_ns = gpsti_thread_cpu_ns() + 1200000; /* from 1 ms on every service is sampled */
    (void)user_data;
    (void)task;
    while (gpsti_thread_cpu_ns() < until_ns) {}
    return GPST_OK;
}

static void test_stats(void** state) {
    (void)state;
    static const char* const names[] = {"read", "decode", "upload", "compute", "download", "encode", "write"};
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 2);
        const bool in_place = strcmp(self->backend, "cpu") == 0;
        const gpst_resource kernels = in_place ? GPST_RESOURCE_CPU : GPST_RESOURCE_GPU;
        const gpst_resource resources[] = {GPST_RESOURCE_DISK_IN, GPST_RESOURCE_CPU, GPST_RESOURCE_H2D,
                                           kernels,               GPST_RESOURCE_D2H, GPST_RESOURCE_CPU,
                                           GPST_RESOURCE_DISK_OUT};
        gpst_pipeline_desc desc = kit_standard(self, 20);
        gpst_stats stats;
        self->stages[1].name = "decode";
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.n_stages, 7);
        for (uint32_t s = 0; s < 7; s++) {
            const bool is_copy = s == 2 || s == 4;
            const uint64_t wanted = is_copy && in_place ? 0 : s < 5 ? 20 : 60; /* 3 outputs */
            assert_string_equal(stats.stages[s].name, names[s]);
            assert_int_equal(stats.stages[s].resource, resources[s]);
            assert_int_equal(stats.stages[s].count, wanted);
            assert_int_equal(stats.stages[s].failed, 0);
            assert_true(stats.stages[s].max_ns >= stats.stages[s].p99_ns);
            assert_true(stats.stages[s].p99_ns >= stats.stages[s].p50_ns);
        }
        assert_int_equal(stats.bytes_read, 20 * KIT_BYTES);
        assert_int_equal(stats.bytes_written, 60 * KIT_BYTES);
        assert_int_equal(stats.bytes_h2d, in_place ? 0 : 20 * KIT_BYTES);
        assert_int_equal(stats.bytes_d2h, in_place ? 0 : 60 * KIT_BYTES);
        assert_int_equal(stats.device_fallbacks, 0);
        assert_non_null(strstr(stats.settings, m ? "mode=plain-serial" : "mode=engine"));
        assert_true(stats.wall_ns > 0 && stats.cpu_ns > 0);
        assert_true(stats.verdict.text[0]);
        assert_true(stats.verdict.efficiency > 0 && stats.verdict.efficiency <= 1);
        assert_int_equal(stats.n_paths, 8);
        assert_string_equal(stats.paths[3].what, "write");
        assert_string_equal(stats.paths[4].what, "copies");
        assert_string_equal(stats.paths[4].taken, in_place ? "none: computed in place"
                                                   : m      ? "up and down, one stream"
                                                            : "up and down, a stream a slot");
        assert_string_equal(stats.paths[5].what, "graph");
        assert_string_equal(stats.paths[6].what, "threads");
        assert_string_equal(stats.paths[7].what, "prefetch");
        assert_string_equal(stats.paths[0].what, "read");
        assert_string_equal(stats.paths[2].taken, self->backend);
        kit_close(self);
    }
}

/* 20 items of 1.2 ms of CPU: what the clocks say together is about that at least, in a stage or in the sink. It may be
   more: a short service that was not sampled but preempted counts as busy. */
static gpst_result burning_sink(void* user_data, const gpst_item* item) {
    (void)item;
    return burn(user_data, NULL);
}

static void test_cpu_time_is_all_there(void** state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 20, i % 2 ? kit_nothing : burn);
        gpst_stats stats;
        gpst_pipeline* pipeline = NULL;
        desc.sink = i % 2 ? burning_sink : NULL;
        desc.mode = i / 2 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
        gpst_pipeline_query_stats(pipeline, &stats);
        if (stats.cpu_ns < 20000000)
            fail_msg("case %d: %lld ns instead of about 24 ms", i, (long long)stats.cpu_ns);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

static gpst_result burning_kernel(const void* args) {
    (void)args;
    return burn(NULL, NULL);
}

static gpst_result burning_device(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"burn", burning_kernel, NULL};
    (void)user_data;
    return gpst_task_enqueue(task, &kernel, NULL, 0);
}

/* Two stages of one device group: each has its own half. */
static void test_cpu_time_of_a_group(void** state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_standard(self, 20);
        gpst_stats stats;
        self->stages[3] = kit_stage(self, GPST_STAGE_DEVICE, burning_device, "one");
        self->stages[4] = kit_stage(self, GPST_STAGE_DEVICE, burning_device, "two");
        self->stages[3].reads = self->stages[4].reads = GPST_SET(1);
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_string_equal(stats.stages[4].name, "one");
        for (int s = 4; s < 6; s++)
            if (stats.stages[s].cpu_ns < 2000000)
                fail_msg("%s: %lld ns instead of about 24 ms", stats.stages[s].name,
                         (long long)stats.stages[s].cpu_ns);
        if (stats.cpu_ns < 15000000)
            fail_msg("%lld ns instead of about 48 ms", (long long)stats.cpu_ns);
        kit_close(self);
    }
}

static int64_t disk_busy_ns(const gpst_pipeline* pipeline) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const int64_t busy_ns = pipeline->counts.busy[GPST_RESOURCE_DISK_OUT].busy_ns;
    gpsti_mutex_unlock(mutex);
    return busy_ns;
}

/* One worker and one slot: nothing is written while files get their names, so that a disk that does both is busy for
   longer than the write stage says. */
static void run_commits(gpst_run_mode mode) {
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = kit_standard(self, 200);
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    desc.mode = mode;
    desc.sink = NULL;
    desc.n_slots = desc.n_writes = 1;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_string_equal(stats.stages[stats.n_stages - 1].name, "write");
    assert_true(disk_busy_ns(pipeline) > stats.stages[stats.n_stages - 1].busy_ns + 200 * 100); /* ns an item */
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static void test_commits_are_the_disks(void** state) {
    (void)state;
    run_commits(GPST_RUN_ENGINE);
    run_commits(GPST_RUN_PLAIN_SERIAL);
}

/* Nobody counts the write itself: the pipeline does not know of it. */
static void replace_a_file(kit* self, gpsti_writer* writer) {
    char path[120];
    snprintf(path, sizeof path, "%s/replaced", self->dir);
    for (int n = 0; n < 2; n++) {
        gpsti_write write = GPST_ZERO;
        write.path = path;
        write.data = path;
        write.bytes = sizeof path;
        kit_check(self, gpsti_writer_write_here(NULL, &write) == GPST_OK);
        kit_check(self, gpsti_write_commit(&write, writer) == GPST_OK);
    }
}

static gpst_result replace_in_the_middle(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const int64_t before_ns = disk_busy_ns(task->pipeline);
    if (task->item->index != 3)
        return GPST_OK;
    replace_a_file(self, task->pipeline->files.writer);
    for (int ms = 0; disk_busy_ns(task->pipeline) == before_ns && ms < 10000; ms++)
        gpsti_sleep_ns(1000000);
    kit_check(self, disk_busy_ns(task->pipeline) > before_ns);
    return GPST_OK;
}

/* Freed by threads of the writer's, which is beside the run but on its disk: until the run's end. */
static void test_what_is_replaced_is_the_disks(void** state) {
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = kit_simple(self, 5, replace_in_the_middle);
    gpst_pipeline* pipeline = NULL;
    (void)state;
    self->stages[0].user_data = self;
    self->stages[1] = kit_stage(self, GPST_STAGE_WRITE, NULL, NULL);
    desc.n_stages = 2;
    desc.n_slots = desc.n_writes = 1;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    const int64_t busy_ns = disk_busy_ns(pipeline), end_ns = pipeline->counts.end_ns;
    gpsti_threads_file_closed(pipeline, end_ns + 5, end_ns + 1000);
    assert_int_equal(disk_busy_ns(pipeline), busy_ns);
    gpsti_threads_file_closed(pipeline, end_ns - 1, end_ns + 1000);
    assert_int_equal(disk_busy_ns(pipeline), busy_ns + 1);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* A picture without a file. */
static gpst_result paint(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    memset(image.data, 7, KIT_BYTES);
    return GPST_OK;
}

/* ---- whose time it is: every step begins where the clock was looked at last ------------------------------------- */

enum { N_OWN = 200, OWN_SOURCE_US = 20, OWN_LONG_US = 200, OWN_BRIEF_US = 20 };

static gpsti_a64 own_ns[2]; /* of both stages, by themselves */

static void take_us(int64_t us) {
    const int64_t until_ns = gpsti_now_ns() + us * 1000;
    while (gpsti_now_ns() < until_ns)
        continue;
}

static gpst_result source_with_its_own_time(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    (void)out;
    take_us(index < N_OWN ? OWN_SOURCE_US : 0);
    return index < N_OWN ? GPST_OK : GPST_END;
}

static gpst_result stage_with_its_own_time(void* user_data, gpst_task* task) {
    gpsti_a64* const own = (gpsti_a64*)user_data;
    const int64_t start_ns = gpsti_now_ns();
    (void)task;
    take_us(own == &own_ns[0] ? OWN_LONG_US : OWN_BRIEF_US);
    (void)gpsti_a64_add(own, (uint64_t)(gpsti_now_ns() - start_ns));
    return GPST_OK;
}

static gpst_result stage_that_paints(void* user_data, gpst_task* task) {
    GPSTI_TRY(paint(NULL, task));
    return stage_with_its_own_time(user_data, task);
}

static gpst_result kernel_with_its_own_time(const void* args) {
    (void)args;
    return stage_with_its_own_time(&own_ns[0], NULL);
}

static gpst_result device_with_its_own_time(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"own", kernel_with_its_own_time, NULL};
    (void)user_data;
    return gpst_task_enqueue(task, &kernel, NULL, 0);
}

static gpst_result sink_with_its_own_time(void* user_data, const gpst_item* item) {
    (void)user_data;
    (void)item;
    take_us(OWN_LONG_US);
    return GPST_OK;
}

/* A brief stage and a long one, which may be the device's. Neither the source's time nor the other stage's is a
   stage's, nor the sink's the next item's, and an item is not over before its stages. */
static void run_with_own_time(gpst_run_mode mode, bool on_device, bool with_sink) {
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, N_OWN, stage_with_its_own_time);
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    if (on_device)
        self->stages[0] = kit_stage(self, GPST_STAGE_HOST, stage_that_paints, "brief");
    desc.capacity[1] = on_device ? 1 : 0;
    self->stages[1] = on_device ? kit_stage(self, GPST_STAGE_DEVICE, device_with_its_own_time, "long")
                                : kit_stage(self, GPST_STAGE_HOST, stage_with_its_own_time, "long");
    self->stages[1].reads = on_device ? GPST_SET(0) : 0;
    self->n_stages = desc.n_stages = 2;
    desc.source = source_with_its_own_time;
    desc.n_items_expected = N_OWN;
    desc.sink = with_sink ? sink_with_its_own_time : NULL;
    desc.mode = mode;
    for (uint32_t s = 0; s < 2; s++) {
        self->stages[s].user_data = &own_ns[1 - s];
        gpsti_a64_store(&own_ns[s], 0);
    }
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_int_equal(stats.n_stages, on_device ? 4 : 2);
    for (uint32_t s = 0; s < 2; s++) {
        const gpst_stage_stats* const stage = &stats.stages[on_device ? 2 * s : s]; /* without what goes up and down */
        assert_true((int64_t)stage->busy_ns >= (int64_t)gpsti_a64_load(&own_ns[1 - s]));
    }
    assert_true(stats.latency_p50_ns >= (OWN_LONG_US + OWN_BRIEF_US) * 1000);
    assert_true(stats.latency_max_ns <= (int64_t)stats.wall_ns);
    kit_close(self);
}

static void test_each_stage_has_its_own_time(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_DEFAULT, GPST_RUN_DEFAULT, GPST_RUN_ENGINE,
                                          GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (uint32_t m = 0; m < 10; m++)
        run_with_own_time(modes[m / 2], m % 2, m > 3);
}

static gpst_stats run_on_device(const char* backend, gpst_run_mode mode, uint64_t n_items) {
    kit* const self = kit_open(backend, 2);
    gpst_pipeline_desc desc = kit_simple(self, n_items, paint);
    gpst_stats stats;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
    self->n_stages = desc.n_stages = 2;
    desc.capacity[1] = self->n_outputs = 1;
    desc.n_slots = mode == GPST_RUN_ENGINE ? 16 : 0;
    desc.mode = mode;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, n_items);
    kit_close(self);
    return stats;
}

/* Of brief ones a part is timed; long ones all are. */
static void run_brief_on_device(gpst_run_mode mode) {
    const gpst_stats brief = run_on_device("sim:virtual=1,kernel_us=20", mode, 1000);
    for (uint32_t s = 1; s < 4; s++) { /* upload, kernel, download */
        assert_int_equal(brief.stages[s].count, 1000);
        assert_in_range(brief.stages[s].timed, 100, 1000);
    }
    assert_int_equal(brief.stages[0].timed, 1000); /* the host's */
    if (mode == GPST_RUN_PLAIN_SERIAL)
        assert_in_range(brief.stages[2].busy_ns, 1000 * 25000, 1000 * 25010); /* 20 us each, and 5 for its launch */
    printf("    %s\n", brief.verdict.text);
}

static void test_some_device_work_is_timed(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    for (int m = 0; m < 2; m++) {
        run_brief_on_device(modes[m]);
        const gpst_stats lengthy = run_on_device("sim:virtual=1,kernel_us=1500", modes[m], 100);
        for (uint32_t s = 1; s < 4; s++) {
            assert_int_equal(lengthy.stages[s].count, 100);
            assert_int_equal(lengthy.stages[s].timed, 100);
        }
    }
}

/* Beside how many the last item on the device is taken to have been. */
static uint32_t n_beside_at_last(gpst_run_mode mode, uint32_t n_workers, uint32_t n_slots) {
    kit* const self = kit_open("sim:virtual=1,kernel_us=20", n_workers);
    gpst_pipeline_desc desc = kit_simple(self, 50, paint);
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
    self->n_stages = desc.n_stages = 2;
    desc.capacity[1] = self->n_outputs = 1;
    desc.n_slots = n_slots;
    desc.mode = mode;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    const uint32_t n_beside = self->pipeline->counts.timing.n_beside;
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
    return n_beside;
}

/* As many are timed as say what each takes beside those that there can be: one for each worker, or all in flight. */
static void test_timing_knows_who_is_beside(void** state) {
    (void)state;
    assert_int_equal(n_beside_at_last(GPST_RUN_PLAIN_SERIAL, 3, 0), 1);
    assert_int_equal(n_beside_at_last(GPST_RUN_ENGINE, 1, 1), 2);
    assert_int_equal(n_beside_at_last(GPST_RUN_ENGINE, 3, 3), 3);
}

static void test_stats_of_nothing(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    const gpst_pipeline_desc desc = kit_simple(self, 0, kit_nothing);
    gpst_stats stats;
    memset(&stats, 0xA5, sizeof stats);
    gpst_pipeline_query_stats(NULL, &stats);
    assert_int_equal(stats.n_stages, 0);
    gpst_pipeline_query_stats(NULL, NULL);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    memset(&stats, 0xA5, sizeof stats);
    gpst_pipeline_query_stats(self->pipeline, &stats); /* not begun */
    assert_int_equal(stats.wall_ns, 0);
    assert_int_equal(stats.items_total, 0);
    assert_int_equal(stats.n_stages, 1);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_cpu_time_is_all_there),
        cmocka_unit_test(test_cpu_time_of_a_group),
        cmocka_unit_test(test_commits_are_the_disks),
        cmocka_unit_test(test_what_is_replaced_is_the_disks),
        cmocka_unit_test(test_each_stage_has_its_own_time),
        cmocka_unit_test(test_some_device_work_is_timed),
        cmocka_unit_test(test_timing_knows_who_is_beside),
        cmocka_unit_test(test_stats_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
