/* tests/test_team.c -- kernels on all cores where the system gives few threads or none: OpenMP's runtimes end the
   process then, so they must not be asked. The program runs itself again under limits on address space and on threads,
   with several sizes of stack, and looks whether it ends by itself, with the right pixels. */
#include "test.h"

#if defined(_WIN32) || !defined(_OPENMP)
int main(void) {
    printf("without OpenMP, or without limits of this kind\n");
    return GPST_TEST_SKIP;
}
#else
#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/mask/mask.h"
#include "../kernels/quantise/quantise.h"
#endif

#include <errno.h>
#include <grp.h>
#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE 96u
#define N_VALUES ((size_t)SIDE * SIDE)
#define EXIT_RIGHT 40 /* none that a runtime, a shell or a sanitizer would use */
#define EXIT_WRONG 41
#define EXIT_NO_START 42 /* the program's own memory or limits could not be had: it says so itself */

/* ---- what a child does --------------------------------------------------------------------------- */

static uint8_t picture[N_VALUES], right_warp[N_VALUES], right_mask[N_VALUES];
static int8_t right_values[N_VALUES];
static float values[N_VALUES];
static gpst_warp* warp;

static gpst_image image_of(uint8_t* data) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = image.height = SIDE;
    image.format = GPST_FORMAT_GRAY;
    return image;
}

static bool compute(uint32_t n_threads, uint8_t* warped, uint8_t* mask, int8_t* integers) {
    const gpst_image source = image_of(picture), output = image_of(warped), masked = image_of(mask);
    const float scale = 0.05f;
    gpst_channels channels = GPST_ZERO;
    channels.data = values;
    channels.dtype = GPST_DTYPE_F32;
    channels.n_outer = channels.n_channels = 1;
    channels.n_inner = N_VALUES;
    return gpst_warp_run(warp, &source, &output, 1, n_threads) == GPST_OK &&
           gpst_mask_morph(&source, GPST_MORPH_DILATE, 5, &masked, n_threads) == GPST_OK &&
           gpst_quantise(&channels, &scale, integers, n_threads) == GPST_OK;
}

static bool compute_is_right(uint32_t n_threads, uint8_t* out) {
    memset(out, 0xA5, 3 * N_VALUES);
    return compute(n_threads, out, out + N_VALUES, (int8_t*)out + 2 * N_VALUES) &&
           memcmp(out, right_warp, N_VALUES) == 0 && memcmp(out + N_VALUES, right_mask, N_VALUES) == 0 &&
           memcmp(out + 2 * N_VALUES, right_values, N_VALUES) == 0;
}

static bool prepare(void) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_view view = GPST_ZERO;
    for (size_t i = 0; i < N_VALUES; i++) {
        picture[i] = i % 7 == 0 ? (uint8_t)(i * 13) : 0;
        values[i] = (float)(i % 411) * 0.03f - 5.0f;
    }
    view.hfov = view.vfov = 80;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = desc.height = SIDE;
    desc.format = GPST_FORMAT_GRAY;
    return gpst_warp_create(&desc, &warp) == GPST_OK && compute(1, right_warp, right_mask, right_values);
}

static uint8_t outs[8][3 * N_VALUES];
static gpsti_a32 go, next_out;

static void* thread_main(void* arg) {
    uint8_t* const out = outs[gpsti_a32_add(&next_out, 1) % 8];
    while (gpsti_a32_load(&go) == 0)
        gpsti_sleep_ns(100000);
    return compute_is_right(*(const uint32_t*)arg, out) ? arg : NULL;
}

/* Each thread has a team of its own; n_beside at once, n_rounds times. They begin when all are there: what the program
   itself takes between a trial and the runtime's turn nobody can know. */
static bool on_threads(int n_beside, int n_rounds, uint32_t n_threads) {
    pthread_t threads[8];
    bool right = true;
    for (int round = 0; round < n_rounds; round++) {
        int n = 0;
        gpsti_a32_store(&go, 0);
        while (n < n_beside && !pthread_create(&threads[n], NULL, thread_main, &n_threads))
            n++;
        gpsti_a32_store(&go, 1);
        for (int i = 0; i < n; i++) {
            void* result = NULL;
            (void)pthread_join(threads[i], &result);
            right = right && result;
        }
    }
    return right;
}

static int child(void) {
    static const uint32_t asked[] = {64, 0, 2, 8, 3, 64, 200, 1};
    bool right = true;
    if (!prepare())
        return EXIT_NO_START;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        right = right && compute_is_right(asked[i], outs[0]);
    right = on_threads(1, 8, 4) && right;
    right = on_threads(3, 4, 8) && right;
    return right ? EXIT_RIGHT : EXIT_WRONG;
}

/* ---- the parent ---------------------------------------------------------------------------------- */

typedef struct limit {
    uint64_t space_mib, n_threads; /* 0 = none */
    const char* name;
    const char* value;
} limit;

/* In the child: never returns. */
static void run_again(const limit* with) {
    struct rlimit most;
    if (with->name)
        (void)setenv(with->name, with->value, 1);
    if (with->n_threads > 0) {
        most.rlim_cur = most.rlim_max = (rlim_t)with->n_threads;
        if (setrlimit(RLIMIT_NPROC, &most) != 0)
            _exit(EXIT_NO_START);
        /* root has no such limit; a number that has no processes of its own begins at none */
        const gid_t nobody = (gid_t)(64000 + getpid() % 1000);
        if (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(nobody) != 0 || setuid((uid_t)nobody) != 0))
            _exit(EXIT_NO_START);
    }
    if (with->space_mib > 0) {
        most.rlim_cur = most.rlim_max = (rlim_t)(with->space_mib << 20);
        if (setrlimit(RLIMIT_AS, &most) != 0)
            _exit(EXIT_NO_START);
    }
    execl("/proc/self/exe", "test_team", "child", (char*)NULL);
    _exit(EXIT_NO_START);
}

static int run(const limit* with) {
    int status = 0;
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_again(with);
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static unsigned n_right, n_no_start;

static bool check(const limit* with) {
    const int code = run(with);
    n_right += code == EXIT_RIGHT;
    n_no_start += code == EXIT_NO_START || code == 127; /* 127: the program could not be loaded */
    if (code == EXIT_RIGHT || code == EXIT_NO_START || code == 127)
        return true;
    printf("%u MiB, %u threads, %s=%s: ended with %d\n", (unsigned)with->space_mib, (unsigned)with->n_threads,
           with->name ? with->name : "", with->name ? with->value : "", code);
    return false;
}

static void test_without_limits(void** state) {
    static const limit environments[] = {{0, 0, NULL, NULL},
                                         {0, 0, "OMP_STACKSIZE", "256k"},
                                         {0, 0, "OMP_DYNAMIC", "true"},
                                         {0, 0, "OMP_THREAD_LIMIT", "3"},
                                         {0, 0, "OMP_MAX_ACTIVE_LEVELS", "2"},
                                         {0, 0, "OMP_WAIT_POLICY", "passive"}};
    (void)state;
    for (size_t e = 0; e < sizeof environments / sizeof environments[0]; e++)
        assert_int_equal(run(&environments[e]), EXIT_RIGHT);
}

static void test_little_address_space(void** state) {
    static const char* const stacks[] = {NULL, "256k", " 32 M", "16384"};
    bool right = true;
    (void)state;
    if (TEST_INSTRUMENTED)
        test_skip("instrumented: its shadow would not fit");
#if defined(__clang__)
    /* By malloc: no trial helps. */
    test_skip("the threads of LLVM's runtime take and give back 64 MiB at any time");
#endif
    n_right = n_no_start = 0;
    for (size_t s = 0; s < sizeof stacks / sizeof stacks[0]; s++)
        for (uint64_t mib = 16; mib <= 200; mib += mib < 100 ? 4 : 20) {
            limit with = {mib, 0, stacks[s] ? "OMP_STACKSIZE" : NULL, stacks[s]};
            right = check(&with) && right;
        }
    printf("%u right, %u did not start\n", n_right, n_no_start);
    assert_true(right);
    assert_true(n_right > 40);
}

static void test_few_threads(void** state) {
    bool right = true;
    (void)state;
    if (TEST_INSTRUMENTED)
        skip(); /* who looks for leaks at the end wants a thread, too */
    n_right = n_no_start = 0;
    for (uint64_t n = 1; n <= 24; n += n < 12 ? 1 : 4)
        for (int again = 0; again < 3; again++) {
            const limit with = {0, n, NULL, NULL};
            right = check(&with) && right;
        }
    printf("%u right, %u did not start\n", n_right, n_no_start);
    assert_true(right);
    if (getuid() == 0)
        assert_true(n_right > 20); /* else it depends on what this user runs beside */
}

/* Within regions of the caller's own, with inner ones allowed and not. */
static void test_within_a_region(void** state) {
    int n_wrong = 0;
    (void)state;
    assert_true(prepare());
    for (int levels = 1; levels <= 2; levels++) {
        omp_set_max_active_levels(levels);
#pragma omp parallel num_threads(2) reduction(+ : n_wrong)
        {
            n_wrong += gpsti_team_size(4) != (levels == 1 ? 1 : 4);
            n_wrong += !compute_is_right(4, outs[omp_get_thread_num()]);
        }
    }
    omp_set_max_active_levels(1);
    assert_int_equal(n_wrong, 0);
    assert_int_equal(gpsti_team_size(5), 5);
    assert_int_equal(gpsti_team_size(1), 1);
    assert_int_equal(gpsti_team_size(5), 5);
    gpst_warp_destroy(warp);
}

static void test_sizes_of_stacks(void** state) {
    (void)state;
    assert_int_equal(gpsti_threads_try(0, 0), 0);
    assert_int_equal(gpsti_threads_try(5, 0), 5);
    assert_int_equal(gpsti_threads_try(3, (size_t)1 << 20), 3);
    assert_int_equal(gpsti_threads_try(3, 1), 3); /* too small to be taken: the default is */
}

int main(int n_arguments, char** arguments) {
    if (n_arguments == 2 && strcmp(arguments[1], "child") == 0)
        return child();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_limits), cmocka_unit_test(test_little_address_space),
        cmocka_unit_test(test_few_threads),    cmocka_unit_test(test_within_a_region),
        cmocka_unit_test(test_sizes_of_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
