/* tests/test_pipeline_stats.c -- what the statistics of a run hold: counts, bytes and paths of every stage, and all the
   CPU time of it. */
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

/* 20 items of 1.2 ms of CPU: what the clocks say together is that, in a stage or in the sink. Not to the ms: a short
   service that was not sampled but preempted counts as busy. */
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
        if (stats.cpu_ns < 20000000 || stats.cpu_ns > 200000000)
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
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_string_equal(stats.stages[4].name, "one");
        for (int s = 4; s < 6; s++)
            if (stats.stages[s].cpu_ns < 2000000)
                fail_msg("%s: %lld ns instead of about 24 ms", stats.stages[s].name,
                         (long long)stats.stages[s].cpu_ns);
        if (stats.cpu_ns < 15000000 || stats.cpu_ns > 400000000)
            fail_msg("%lld ns instead of about 48 ms", (long long)stats.cpu_ns);
        kit_close(self);
    }
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
        cmocka_unit_test(test_stats_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
