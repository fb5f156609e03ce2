/* tests/fuzz/seeds.h -- main of the fuzzers that draw something at random, from a seed or from the bytes of a file,
   play it and compare: fuzz_pipeline.c, fuzz_ring.c. Each defines

     static void play(draw* from, const char* backend);

   which calls REQUIRE where something must hold, and say() for what it has drawn.

     fuzz_x --seed 7 --count 100      the seeds 7 .. 106, each on cpu and on sim; the default: one random seed
     fuzz_x --seconds 60              random seeds, for so long
     fuzz_x --seeds FILE              the number at the beginning of each line, and others where --seed says so
     fuzz_x FILE ...                  the bytes of each file instead of a seed
     --backend NAME                   that one instead of cpu and sim; GPUSTAGE_TEST_BACKEND says the same
     --only WORD                      draws only what the fuzzer calls so. Pipelines: budgets, of little memory, where no item
                                      may fail that fits alone

   With clang's -fsanitize=fuzzer and -DFUZZ_NO_MAIN there is no main, and the fuzzer's bytes are played. */
#ifndef GPST_FUZZ_SEEDS_H
#define GPST_FUZZ_SEEDS_H

#include "fuzz.h"

#include "../../gpustage.h"

#include <stdatomic.h>

static struct {
    uint64_t n_refused; /* desc that a create refused, and why the last one */
    char refusal[300];
    const char* only;              /* NULL: all */
    uint64_t n_short, n_fit_alone; /* items that lacked memory, and those of them that fit alone: faults */
} seeds = {0, "", NULL, 0, 0};

/* For another thread. */
static draw fork_draw(draw* from) {
    draw other = {NULL, 0, 0};
    other.state = from->n > 0 ? pick(from, 256) : next_number(&from->state);
    return other;
}

/* From any thread; the first one is heard. */
__attribute__((format(printf, 2, 3), noreturn)) static void stop(const char* rule, const char* format, ...) {
    static atomic_flag is_stopped = ATOMIC_FLAG_INIT;
    char text[1400];
    const int n = snprintf(text, sizeof text, "does not hold: %s: ", rule);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, arguments);
    va_end(arguments);
    while (atomic_flag_test_and_set(&is_stopped))
        (void)pause();
    fprintf(stderr, "%s\n", text);
    abort();
}

#define REQUIRE_OF(holds, ...) ((holds) ? (void)0 : stop(#holds, __VA_ARGS__))
#define REQUIRE(holds) REQUIRE_OF(holds, "last reason: %s", gpst_last_reason())

/* ---- main -------------------------------------------------------------------------------------------------------- */

static void play(draw* from, const char* backend);

static void play_on(draw from, const char* backend, const char* what) {
    begin_play("%s --backend %s%s%s", what, backend, seeds.only ? " --only " : "", seeds.only ? seeds.only : "");
    play(&from, backend);
    (void)alarm(0);
}

static void play_all(const draw* from, const char* backend, const char* what) {
    if (backend) {
        play_on(*from, backend, what);
        return;
    }
    play_on(*from, "cpu", what);
    play_on(*from, "sim", what);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    const draw from = {data, bytes, 1};
    play_all(&from, getenv("GPUSTAGE_TEST_BACKEND"), "FILE");
    return 0;
}

#if !defined(FUZZ_NO_MAIN)
static void play_seed(uint64_t seed, const char* backend) {
    const draw from = {NULL, 0, seed};
    char what[40];
    snprintf(what, sizeof what, "--seed %" PRIu64, seed);
    play_all(&from, backend, what);
}

static uint64_t play_seeds_of(const char* path, const char* backend) {
    char line[400];
    uint64_t n = 0, seed;
    FILE* const file = fopen(path, "r");
    REQUIRE_OF(file != NULL, "%s", path);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%" SCNu64, &seed) == 1)
            play_seed(seed, backend), n++;
    fclose(file);
    return n;
}

static void play_file(const char* path, const char* backend) {
    static uint8_t data[1 << 16];
    FILE* const file = fopen(path, "rb");
    REQUIRE_OF(file != NULL, "%s", path);
    const draw from = {data, fread(data, 1, sizeof data, file), 1};
    fclose(file);
    play_all(&from, backend, path);
}

int main(int argc, char** argv) {
    const char* backend = getenv("GPUSTAGE_TEST_BACKEND");
    uint64_t seed = random_seed(), count = 1, n = 0;
    int64_t seconds = 0;
    bool is_numbered = false;
    watch(argv[0]);
    for (int i = 1; i < argc; i++) {
        const char *const word = argv[i], *const value = i + 1 < argc ? argv[i + 1] : "";
        i += word[0] == '-';
        if (strcmp(word, "--backend") == 0)
            backend = value;
        else if (strcmp(word, "--only") == 0)
            seeds.only = value;
        else if (strcmp(word, "--limit") == 0)
            fuzz.limit_s = (unsigned)atoi(value);
        else if (strcmp(word, "--seed") == 0)
            seed = strtoull(value, NULL, 10), is_numbered = true;
        else if (strcmp(word, "--count") == 0)
            count = strtoull(value, NULL, 10), is_numbered = true;
        else if (strcmp(word, "--seconds") == 0)
            seconds = atoi(value);
        else if (strcmp(word, "--seeds") == 0)
            n += play_seeds_of(value, backend);
        else if (word[0] != '-')
            play_file(word, backend), n++;
        else
            REQUIRE_OF(false, "%s: unknown", word);
    }
    is_numbered = is_numbered || n == 0;
    if (seconds > 0)
        printf("%s: from seed %" PRIu64 " on, for %d s\n", fuzz.program, seed, (int)seconds), fflush(stdout);
    const int64_t end_ns = gpst_now_ns() + seconds * 1000000000;
    for (uint64_t i = 0; seconds > 0 ? gpst_now_ns() < end_ns : is_numbered && i < count; i++)
        play_seed(seed + i, backend), n++;
    printf("%s: %" PRIu64 " played, %" PRIu64 " refused%s%s\n", fuzz.program, n, seeds.n_refused,
           seeds.n_refused ? ": " : "", seeds.refusal);
    if (seeds.only)
        printf("%" PRIu64 " items lacked memory; %" PRIu64 " of them fit alone\n", seeds.n_short, seeds.n_fit_alone);
    return seeds.n_fit_alone > 0;
}
#endif
#endif
