/* tests/test_codec_choice.c -- who decodes the next JPEG file: the rules one by one, and a whole job played through on
   the times that were measured on an H100 with 16 cores. */
#include "test.h"

#include "../core/tuning/codec_choice_internal.h"

#define CORE_NS 220000000u  /* a frame of 7680x3840 on a core, with 15 others at work */
#define DEVICE_NS 3600000u  /* the same by seven engines, of a batch of 14 */

static gpsti_codec_choice_input input_of(uint32_t n_queued, uint64_t n_to_come) {
    gpsti_codec_choice_input input;
    memset(&input, 0, sizeof input);
    input.has_engines = true;
    input.busy = true;
    input.n_queued = n_queued;
    input.batch = 14;
    input.n_to_come = n_to_come;
    input.device_ns = DEVICE_NS;
    input.core_ns = CORE_NS;
    return input;
}

static void test_engines(void** state) {
    (void)state;
    gpsti_codec_choice_input input = input_of(1, 1);
    input.busy = false;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_DEVICE); /* what is ready goes at once */
    input.busy = true;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_WAIT);
    input = input_of(14, 100000); /* all of it goes with the next batch */
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_WAIT);
    input = input_of(15, 100000);
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_CORES);
    input.only_device = true;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_WAIT);
    input = input_of(15, 61); /* the engines are through with 61 in 219.6 ms, and with 62 later than a core with one */
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_WAIT);
    input.n_to_come = 62;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_CORES);
    input.n_to_come = UINT64_MAX;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_CORES);
    input = input_of(15, 15); /* no batch has ended yet: nobody knows when this one will */
    input.device_ns = 0;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_CORES);
}

/* The faster of two that both need a thread; the slower one is measured again now and then. */
static void test_without_engines(void** state) {
    uint32_t n[3] = {0, 0, 0};
    (void)state;
    gpsti_codec_choice_input input = input_of(5, 100);
    input.has_engines = false;
    input.device_ns = 0;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_DEVICE);
    input.device_ns = 70000000u;
    input.core_ns = 0;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_CORES);
    input.core_ns = CORE_NS;
    for (input.n_before = 0; input.n_before < 640; input.n_before++)
        n[gpsti_codec_choose(&input)]++;
    assert_int_equal(n[GPSTI_CODEC_DEVICE], 630);
    assert_int_equal(n[GPSTI_CODEC_CORES], 10);
    input.device_ns = CORE_NS + 1;
    input.n_before = 1;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_CORES);
    input.only_device = true;
    assert_int_equal(gpsti_codec_choose(&input), GPSTI_CODEC_DEVICE);
}

static void test_opening(void** state) {
    gpsti_codec_load load = {72, CORE_NS, 16}; /* 0.99 s of 16 cores */
    (void)state;
    assert_false(gpsti_codec_is_worth_opening(&load));
    load.n_items = 73;
    assert_true(gpsti_codec_is_worth_opening(&load));
    load.n_items = UINT64_MAX;
    assert_true(gpsti_codec_is_worth_opening(&load));
    load.core_ns = 0; /* not before one was measured */
    assert_false(gpsti_codec_is_worth_opening(&load));
}

static void test_learning(void** state) {
    gpsti_a64 mean;
    (void)state;
    gpsti_a64_store(&mean, 0);
    gpsti_codec_learn(&mean, 800);
    assert_int_equal(gpsti_a64_load(&mean), 800);
    gpsti_codec_learn(&mean, 1600);
    assert_int_equal(gpsti_a64_load(&mean), 900);
    for (int i = 0; i < 200; i++)
        gpsti_codec_learn(&mean, 80);
    assert_in_range(gpsti_a64_load(&mean), 80, 90);
    gpsti_codec_learn(&mean, 0); /* a clock that stands still */
    assert_true(gpsti_a64_load(&mean) > 0);
}

/* 1000 frames, 16 threads: how long it takes in the model, against the engines alone and the cores alone. */
static double play(bool cores, bool engines) {
    double free_at[16] = {0}, engines_at = 0, end = 0;
    uint32_t left = 1000;
    while (left > 0) {
        uint32_t w = 0;
        for (uint32_t i = 1; i < 16; i++)
            w = free_at[i] < free_at[w] ? i : w;
        const double now = free_at[w];
        gpsti_codec_choice_input input = input_of(left < 48 ? left : 48, left);
        input.busy = engines_at > now;
        gpsti_codec_choice choice = engines ? gpsti_codec_choose(&input) : GPSTI_CODEC_CORES;
        if (choice == GPSTI_CODEC_CORES && !cores)
            choice = GPSTI_CODEC_WAIT;
        if (choice == GPSTI_CODEC_WAIT) {
            free_at[w] = engines_at;
            continue;
        }
        const uint32_t n = choice == GPSTI_CODEC_CORES ? 1 : left < 14 ? left : 14;
        const double took = choice == GPSTI_CODEC_CORES ? CORE_NS : (double)DEVICE_NS * (n < 7 ? 7 : n);
        free_at[w] = now + took;
        if (choice == GPSTI_CODEC_DEVICE)
            engines_at = now + took;
        end = now + took > end ? now + took : end;
        left -= n;
    }
    return end;
}

static void test_both_are_faster_than_each(void** state) {
    (void)state;
    const double both = play(true, true), engines = play(false, true), cores = play(true, false);
    const double sum = 1.0 / (1.0 / engines + 1.0 / cores);
    assert_true(both < engines && both < cores);
    assert_true(both < 1.05 * sum); /* what the two rates together would take */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engines),  cmocka_unit_test(test_without_engines),
        cmocka_unit_test(test_opening),  cmocka_unit_test(test_learning),
        cmocka_unit_test(test_both_are_faster_than_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
