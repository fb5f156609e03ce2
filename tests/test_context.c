/* tests/test_context.c -- validation, choice of the backend, budgets, forks, and
   a create whose every allocation fails once. */
#include "test.h"

#include "test_subject.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_refused(gpst_context_desc desc, gpst_result result, const char* first, const char* second) {
    gpst_context* context = (gpst_context*)&desc;
    gpst_clear_reason();
    assert_int_equal(gpst_context_create(&desc, &context), result);
    assert_null(context);
    test_reason_has("gpst_context_create: ", first);
    test_reason_has(second, second);
}

/* ---- validation ----------------------------------------------------------------- */

/* What `auto` is here: a GPU where there is one. */
static const char* auto_backend(void) {
    static const char* const gpus[] = {"cuda", "hip"};
    for (size_t i = 0; i < 2; i++) {
        gpst_context_desc desc = GPST_ZERO;
        gpst_context* context = NULL;
        desc.backend = gpus[i];
        desc.require_backend = true;
        const gpst_result result = gpst_context_create(&desc, &context);
        gpst_context_destroy(context);
        if (result == GPST_OK)
            return gpus[i];
    }
    return "cpu";
}

static void test_defaults(void** state) {
    const gpst_context_desc zero = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_context_info info;
    gpsti_limits limits;
    (void)state;
    gpsti_limits_query(&limits);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpst_context_create(i ? &zero : NULL, &context), GPST_OK);
        memset(&info, 0xA5, sizeof info);
        gpst_context_query_info(context, &info);
        assert_string_equal(info.backend, auto_backend());
        assert_true(strlen(info.device_name) > 0 && strlen(info.backend_reason) > 0);
        assert_int_equal(info.cores_allowed, limits.cores_allowed);
        assert_int_equal(info.n_workers, limits.cores_allowed);
        assert_true(info.max_host_bytes > 0 && info.max_host_bytes <= limits.ram_bytes);
        assert_true(info.max_device_bytes > 0);
        assert_true(info.allocation_count > 0 && info.live_bytes >= sizeof *context);
        assert_int_equal(context->device == context->cpu, strcmp(info.backend, "cpu") == 0);
        gpst_context_destroy(context);
    }
    gpst_context_destroy(NULL);
    gpst_context_query_info(NULL, &info);
    assert_null(info.backend);
    gpst_context_query_info(NULL, NULL);
}

static void test_versions(void** state) {
    const gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    (void)state;
    assert_int_equal(gpst_context_create_versioned(GPST_VERSION + 1, sizeof desc, &desc, &context),
                     GPST_ERROR_VERSION);
    test_reason_has("version=101", "version 100");
    assert_int_equal(gpst_context_create_versioned(GPST_VERSION, sizeof desc - 8, &desc, &context),
                     GPST_ERROR_VERSION);
    test_reason_has("gpst_context_create", "desc_bytes=");
    assert_int_equal(gpst_context_create(&desc, NULL), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_context_create", "out=NULL");
    assert_null(context);
}

static void test_rules(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    test_memory memory;
    (void)state;
    desc.start_canary = 0xA5A5A5A5u;
    test_refused(desc, GPST_ERROR_ARGUMENT, "start_canary=2779096485", "GPST_ZERO");
    desc.start_canary = 0;
    desc.end_canary = 1;
    test_refused(desc, GPST_ERROR_ARGUMENT, "end_canary=1", "must be 0");
    desc.end_canary = 0;
    desc.allocator = test_memory_hooks(&memory);
    desc.allocator.free = NULL;
    test_refused(desc, GPST_ERROR_ARGUMENT, "allocator.free=NULL", "both");
    desc.allocator = test_memory_hooks(&memory);
    desc.allocator.alloc = NULL;
    test_refused(desc, GPST_ERROR_ARGUMENT, "allocator.alloc=NULL", "both");
    desc.allocator.free = NULL;
    desc.logger.threshold = (gpst_log_level)9;
    test_refused(desc, GPST_ERROR_ARGUMENT, "logger.threshold=9", "0..4");
    desc.logger.threshold = GPST_LOG_DEFAULT;
    desc.n_workers = 5000;
    test_refused(desc, GPST_ERROR_ARGUMENT, "n_workers=5000", "1024");
    desc.n_workers = 0;
    desc.backend = "opencl";
    test_refused(desc, GPST_ERROR_ARGUMENT, "backend=\"opencl\"", "auto, cpu, cuda or hip");
    desc.backend = "cpux";
    test_refused(desc, GPST_ERROR_ARGUMENT, "backend=\"cpux\"", "must be");
    desc.backend = "";
    test_refused(desc, GPST_ERROR_ARGUMENT, "backend=\"\"", "must be");
}

/* ---- the backend -------------------------------------------------------------------- */

static void test_by_name(void** state) {
    const char* const names[][2] = {{"auto", auto_backend()}, {"cpu", "cpu"}, {"sim", "sim"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        test_subject t;
        gpst_context_info info;
        char name[8];
        test_begin(&t);
        gpsti_copy_text(name, sizeof name, names[i][0]);
        t.desc.backend = name;
        t.desc.require_backend = i > 0;
        t.desc.max_host_bytes = 12345;
        t.desc.max_device_bytes = 54321;
        assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_OK);
        memset(name, 'x', sizeof name - 1); /* it was copied */
        gpst_context_query_info(t.context, &info);
        assert_string_equal(info.backend, names[i][1]);
        assert_non_null(strstr(info.backend_reason, names[i][0]));
        assert_int_equal(info.n_workers, 1);
        assert_int_equal(info.max_host_bytes, 12345);
        assert_int_equal(info.max_device_bytes, 54321);
        assert_string_equal(t.context->cpu->i->name, "cpu"); /* what a lost device falls back to */
        assert_int_equal(t.context->device == t.context->cpu, strcmp(names[i][1], "cpu") == 0);
        test_end(&t);
    }
}

static void test_parameters(void** state) {
    test_subject t;
    (void)state;
    test_begin(&t);
    t.desc.backend = "sim:no_such_key=1";
    assert_true(GPST_FAILED(gpst_context_create(&t.desc, &t.context)));
    test_reason_has("no_such_key", "no_such_key");
    test_end(&t);
}

/* Compiled in at most one of them is; what that one says without a device is test_cli_gpu.py's. */
static bool is_compiled_in(const char* name) {
#if defined(GPSTI_CUDA)
    return !strncmp(name, "cuda", 4);
#elif defined(GPSTI_HIP)
    return !strncmp(name, "hip", 3);
#else
    (void)name;
    return false;
#endif
}

static void test_absent(void** state) {
    static const char* const names[] = {"cuda", "hip", "cuda:1"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        test_subject t;
        if (is_compiled_in(names[i]))
            continue;
        test_begin(&t);
        t.desc.backend = names[i];
        assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_ERROR_NO_BACKEND);
        assert_null(t.context);
        test_reason_has("desc.backend=\"", "not compiled");
        test_reason_has(names[i], "gpst_context_create");
        test_end(&t);
    }
}

/* ---- forks and faults ----------------------------------------------------------------- */

static void test_fork(void** state) {
    test_subject t;
    int status = -1;
    (void)state;
    test_begin(&t);
    assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_OK);
    for (int with_guard = 1; with_guard >= 0; with_guard--) {
        gpsti_a32* guard = t.context->fork_guard;
        if (!with_guard)
            t.context->fork_guard = NULL; /* as on a system without one */
        assert_int_equal(gpsti_context_check(t.context, "f"), GPST_OK);
        const pid_t child = fork();
        if (!child) {
            const bool forked = gpsti_context_check(t.context, "f") == GPST_ERROR_FORKED;
            const bool reason = strstr(gpst_last_reason(), "f: pid=") && strstr(gpst_last_reason(), "exec");
            gpst_context_destroy(t.context); /* must not wait for threads that are not here */
            _exit(forked && reason ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        t.context->fork_guard = guard;
    }
    assert_int_equal(gpsti_context_check(t.context, "f"), GPST_OK);
    assert_int_equal(gpsti_context_check(NULL, "f"), GPST_ERROR_ARGUMENT);
    test_reason_has("f: ", "context=NULL");
    test_end(&t);
}

static void test_leak_is_told(void** state) {
    test_subject t;
    (void)state;
    test_begin(&t);
    assert_int_equal(gpst_context_create(&t.desc, &t.context), GPST_OK);
    void* forgotten = gpsti_alloc(&t.context->host, 100);
    gpst_context_destroy(t.context);
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 1);
    assert_non_null(strstr(t.log.last, "100 bytes are still held"));
    assert_int_equal(gpsti_a64_load(&t.memory.live_blocks), 1);
    gpsti_aligned_free(forgotten);
}

static void test_faults_of(const char* backend) {
    test_subject t;
    uint64_t fail_at = 0;
    gpst_result result = GPST_ERROR_MEMORY;
    for (fail_at = 1; GPST_FAILED(result); fail_at++) {
        test_begin(&t);
        t.desc.backend = backend;
        test_memory_refuse(&t.memory, fail_at);
        gpst_clear_reason();
        result = gpst_context_create(&t.desc, &t.context);
        assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
        assert_int_equal(t.context == NULL, GPST_FAILED(result));
        if (GPST_FAILED(result))
            test_reason_has("out of memory", "bytes=");
        test_end(&t);
    }
    assert_true(fail_at > 3);
}

static void look_at_stack(void* argument) {
#if defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, (size_t*)argument);
        (void)pthread_attr_destroy(&attributes);
    }
#else
    *(size_t*)argument = 1; /* not told */
#endif
}

/* In a process of its own: never returns. 16 threads of the system's stacks, with what glibc gives each to allocate in,
   would take four times as much as there is. */
static void create_in_little_space(void) {
    uint64_t left_bytes = 0;
    size_t stack_bytes = 0;
    gpsti_thread thread;
    gpst_context_desc desc = GPST_ZERO;
    gpst_context_info info;
    gpst_context* context = NULL;
    struct rlimit most;
    const uint64_t plenty_bytes = (uint64_t)1 << 46;
    most.rlim_cur = most.rlim_max = (rlim_t)plenty_bytes;
    if (setrlimit(RLIMIT_AS, &most) != 0 || gpsti_space_bytes(&left_bytes) != plenty_bytes)
        _exit(2);
    most.rlim_cur = (rlim_t)(plenty_bytes - left_bytes + ((uint64_t)300 << 20));
    if (setrlimit(RLIMIT_AS, &most) != 0)
        _exit(3);
    desc.backend = "cpu";
    desc.n_workers = 16;
    if (gpst_context_create(&desc, &context) != GPST_OK)
        _exit(4);
    gpst_context_query_info(context, &info);
    gpst_context_destroy(context);
#if defined(__GLIBC__)
    if (info.n_workers > 2)
        _exit(5);
#endif
    if (info.n_workers < 1 || info.max_host_bytes > (uint64_t)150 << 20)
        _exit(6);
    if (gpsti_thread_start(&thread, look_at_stack, &stack_bytes, "stack") != GPST_OK)
        _exit(7);
    gpsti_thread_join(&thread);
    _exit(stack_bytes > 0 && stack_bytes <= ((size_t)4 << 20) ? 0 : 8);
}

static void test_little_address_space(void** state) {
    int status = -1;
    (void)state;
    if (TEST_INSTRUMENTED)
        skip(); /* its shadow would not fit */
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        create_in_little_space();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_faults(void** state) {
    (void)state;
    test_faults_of("cpu");
    test_faults_of("sim");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_versions),
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_absent),
        cmocka_unit_test(test_fork),       cmocka_unit_test(test_leak_is_told),
        cmocka_unit_test(test_faults),     cmocka_unit_test(test_little_address_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
