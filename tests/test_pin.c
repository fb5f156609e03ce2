/* tests/test_pin.c -- lists of cores, and which cores the threads of a context may run on. */
#include "test.h"

#include "test_subject.h"

#if !defined(__linux__)
int main(void) {
    printf("SKIPPED: threads are pinned on Linux only\n");
    return 77;
}
#else
#include <dirent.h>
#include <sched.h>

static void test_pin_texts(void** state) {
    gpsti_cores mine;
    gpsti_pin pin;
    char list[64];
    uint32_t core = 0;
    (void)state;
    assert_true(gpsti_cores_query(&mine));
    while (!(mine.words[core / 64] >> core % 64 & 1u))
        core++;
    snprintf(list, sizeof list, "%u-%u,%u", core, core, core);
    assert_int_equal(gpsti_pin_parse(list, &pin), GPST_OK);
    assert_true(pin.on);
    assert_int_equal(pin.n_cores, 1);
    snprintf(list, sizeof list, "cores %u", core);
    assert_string_equal(pin.text, list);
    assert_int_equal(gpsti_pin_parse("cores", &pin), GPST_OK);
    assert_memory_equal(&pin.cores, &mine, sizeof mine);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpsti_pin_parse(i ? "none" : NULL, &pin), GPST_OK);
        assert_false(pin.on);
        assert_string_equal(pin.text, "none");
    }
    static const char* const wrong[] = {"", "all", "0-", "-1", "0,", ",0", "0 ", "1-0", "0x1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(gpsti_pin_parse(wrong[i], &pin), GPST_ERROR_ARGUMENT);
        test_reason_has("must be none, cores, or a list of cores like 0-3,8", wrong[i]);
    }
    assert_int_equal(gpsti_pin_parse("16383", &pin), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_context_create: desc.pin=\"16383\"", "core 16383: not one that this process may run on");
}

static int test_first_core; /* of the thread looked at last */

/* A thread of the process by its name: how many cores it may run on, -1 = there is none such. */
static int test_cores_of(const char* name) {
    char path[300], line[64];
    int n_cores = -1;
    DIR* const dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent* entry = readdir(dir); entry; entry = readdir(dir)) {
        cpu_set_t set;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE* const file = fopen(path, "r");
        if (!file)
            continue;
        if (fgets(line, sizeof line, file) && !strncmp(line, name, strlen(name)) &&
            !sched_getaffinity((pid_t)atoi(entry->d_name), sizeof set, &set)) {
            n_cores = CPU_COUNT(&set);
            for (test_first_core = 0; !CPU_ISSET((size_t)test_first_core, &set);)
                test_first_core++;
        }
        fclose(file);
    }
    closedir(dir);
    return n_cores;
}

/* Names come with the threads' first steps. */
static int test_cores_of_soon(const char* name) {
    int n_cores = -1;
    for (int tries = 0; n_cores < 0 && tries < 2000; tries++) {
        n_cores = test_cores_of(name);
        if (n_cores < 0)
            gpsti_sleep_ns(1000000);
    }
    return n_cores;
}

static void test_pinned_threads(void** state) {
    test_subject t;
    gpst_context_info info;
    gpst_reader* reader = NULL;
    gpsti_writer* writer = NULL;
    gpsti_limits limits;
    (void)state;
    gpsti_limits_query(&limits);
    if (limits.cores_affinity < 2) {
        test_skip("one core only: pinned or not is the same");
    }
    for (int pinned = 0; pinned < 2; pinned++) {
        test_begin(&t);
        t.desc.n_workers = 3;
        t.desc.pin = pinned ? "cores" : NULL;
        assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_OK);
        assert_int_equal(gpst_reader_create(t.context, NULL, &reader), GPST_OK);
        assert_int_equal(gpsti_writer_create(t.context, 1, &writer), GPST_OK);
        assert_int_equal(gpsti_writer_start(writer), GPST_OK);
        gpst_context_query_info(t.context, &info);
        assert_int_equal(strncmp(info.pinned, pinned ? "cores " : "none", 6), 0);
        int first_cores[3];
        for (int w = 0; w < 3; w++) {
            char name[16];
            snprintf(name, sizeof name, "gpst-work-%d", w);
            assert_int_equal(test_cores_of_soon(name), pinned ? 1 : (int)limits.cores_affinity);
            first_cores[w] = test_first_core;
        }
        assert_true((first_cores[0] != first_cores[1]) == (pinned != 0));
        if (pinned && limits.cores_affinity == 2)
            assert_int_equal(first_cores[0], first_cores[2]);
        assert_int_equal(test_cores_of_soon("gpst-read"), limits.cores_affinity);
        assert_int_equal(test_cores_of_soon("gpst-write"), limits.cores_affinity);
        assert_int_equal(test_cores_of_soon("test_pin"), limits.cores_affinity); /* the caller's own */
        gpst_reader_destroy(reader);
        gpsti_writer_destroy(writer);
        test_end(&t);
    }
}

/* Of a list the threads that block on files may run on all of it, and the workers default to as many. */
static void test_pinned_to_a_list(void** state) {
    test_subject t;
    gpst_context_info info;
    gpst_reader* reader = NULL;
    gpsti_cores mine;
    char list[16];
    uint32_t core = 0;
    (void)state;
    assert_true(gpsti_cores_query(&mine));
    while (!(mine.words[core / 64] >> core % 64 & 1u))
        core++;
    snprintf(list, sizeof list, "%u", core);
    test_begin(&t);
    t.desc.n_workers = 0;
    t.desc.pin = list;
    assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_OK);
    assert_int_equal(gpst_reader_create(t.context, NULL, &reader), GPST_OK);
    gpst_context_query_info(t.context, &info);
    assert_int_equal(info.n_workers, 1);
    assert_int_equal(info.cores_allowed, 1);
    assert_int_equal(test_cores_of_soon("gpst-work-0"), 1);
    assert_int_equal(test_cores_of_soon("gpst-read"), 1);
    assert_int_equal(gpst_reader_set_in_flight(reader, 5), GPST_OK);
    gpst_reader_destroy(reader);
    test_end(&t);
    t.desc.pin = "no list";
    assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_ERROR_ARGUMENT);
    assert_null(t.context);
    test_reason_has("desc.pin=\"no list\"", "must be none, cores");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pin_texts),
        cmocka_unit_test(test_pinned_threads),
        cmocka_unit_test(test_pinned_to_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
