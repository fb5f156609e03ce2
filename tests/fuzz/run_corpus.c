/* tests/fuzz/run_corpus.c -- main of a fuzz target that takes bytes, without a fuzzer: the target is called with every
   file named, and with a number of damaged copies of it; or, for --seconds, with what is made of the files at random.

     fuzz_x FILE ...                          the files, and the same damaged copies each time
     fuzz_x --seconds 60 FILE ...             random inputs made of them, for so long; --seed 7: from that seed on
     fuzz_x --seed 7 FILE ...                 the input of that seed; --count N: of N seeds
*/
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

enum { MOST_BYTES = 1 << 20, MOST_FILES = 4096, N_DAMAGED = 200 };

typedef struct corpus_file {
    const char* path;
    uint8_t* data;
    size_t bytes;
} corpus_file;

static corpus_file files[MOST_FILES];
static uint32_t n_files;
static uint8_t made[MOST_BYTES];

static uint64_t next_random(uint64_t* state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Some bytes changed, and often the end lost. */
static void run_damaged(const corpus_file* file) {
    uint64_t state = file->bytes;
    for (int i = 0; i < N_DAMAGED && file->bytes > 0; i++) {
        memcpy(made, file->data, file->bytes);
        for (uint64_t n = next_random(&state) % 4; n > 0; n--)
            made[next_random(&state) % file->bytes] = (uint8_t)next_random(&state);
        LLVMFuzzerTestOneInput(made, next_random(&state) % 2 ? file->bytes : next_random(&state) % (file->bytes + 1));
    }
}

/* ---- inputs made at random --------------------------------------------------------------------------------------- */

static size_t place(draw* from, size_t n) { return n == 0 ? 0 : (size_t)(next_number(&from->state) % n); }

/* A number of 1, 2 or 4 bytes as readers have trouble with, in either order. */
static void put_number(draw* from, uint8_t* at, size_t room) {
    static const uint32_t edges[] = {0,     1,      2,      8,       0x7f,       0x80,      0xff,
                                     0x100, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0xffffffff};
    const uint32_t value = edges[pick(from, sizeof edges / sizeof *edges)] - pick(from, 2), width = 1u << pick(from, 3);
    const bool big = one_in(from, 2);
    for (uint32_t b = 0; b < width && b < room; b++)
        at[b] = (uint8_t)(value >> 8 * (big ? width - 1 - b : b));
}

/* A part of a file over what is at a place, or between; how many bytes there are then. */
static size_t put_part(draw* from, size_t at, size_t n, const uint8_t* data, size_t bytes, bool between) {
    const size_t first = place(from, bytes), most = 1 + place(from, bytes - first);
    const size_t part = most < MOST_BYTES - n ? most : MOST_BYTES - n;
    if (between)
        memmove(made + at + part, made + at, n - at);
    memmove(made + at, data + first, part);
    n = between ? n + part : n;
    return at + part > n ? at + part : n;
}

static size_t change(draw* from, size_t n) {
    const corpus_file* const other = &files[place(from, n_files)];
    const size_t at = place(from, n), part = 1 + place(from, n - at < 64 || one_in(from, 4) ? n - at : 64);
    switch (n > 0 ? pick(from, 8) : 5) {
    case 0:
        made[at] ^= (uint8_t)(1u << pick(from, 8));
        return n;
    case 1:
        made[at] = (uint8_t)pick(from, 256);
        return n;
    case 2:
    case 3:
        put_number(from, made + at, n - at);
        return n;
    case 4: /* a part is lost */
        if (at + part >= n)
            return at;
        memmove(made + at, made + at + part, n - at - part);
        return n - part;
    case 5:
        return other->bytes > 0 ? put_part(from, at, n, other->data, other->bytes, one_in(from, 2)) : n;
    case 6: /* a part comes again and again */
        for (uint32_t i = 1 + pick(from, 20); i > 0 && n + part <= MOST_BYTES && at + part <= n; i--, n += part)
            memmove(made + at + part, made + at, n - at);
        return n;
    default:
        return one_in(from, 4) ? at : n;
    }
}

static void run_made(uint64_t seed) {
    draw from = {NULL, 0, seed};
    const corpus_file* const file = &files[place(&from, n_files)];
    size_t n = file->bytes;
    begin_play("--seed %" PRIu64 " FILES", seed);
    say("made of %s\n", file->path);
    memcpy(made, file->data, n);
    for (uint32_t i = 1 + pick(&from, 6); i > 0; i--)
        n = change(&from, n);
    LLVMFuzzerTestOneInput(made, n);
    (void)alarm(0);
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static void load(const char* path) {
    corpus_file* const file = &files[n_files];
    FILE* const in = fopen(path, "rb");
    if (!in || n_files == MOST_FILES) {
        perror(path);
        exit(1);
    }
    file->path = path;
    file->bytes = fread(made, 1, sizeof made, in);
    file->data = (uint8_t*)malloc(file->bytes + 1);
    fclose(in);
    if (!file->data)
        abort();
    memcpy(file->data, made, file->bytes);
    n_files++;
}

static void run_files(void) {
    for (uint32_t i = 0; i < n_files; i++) {
        begin_play("%s", files[i].path);
        printf("%s: %zu bytes\n", files[i].path, files[i].bytes);
        fflush(stdout); /* so that the last line names the file that failed */
        LLVMFuzzerTestOneInput(files[i].data, files[i].bytes);
        run_damaged(&files[i]);
    }
    (void)alarm(0);
    printf("%u files\n", n_files);
}

int main(int argc, char** argv) {
    uint64_t seed = random_seed(), count = 0, n = 0;
    long seconds = 0;
    watch(argv[0]);
    for (int i = 1; i < argc; i++) {
        const bool is_option = strncmp(argv[i], "--", 2) == 0 && i + 1 < argc;
        if (!is_option)
            load(argv[i]);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = atol(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10), count = count > 0 ? count : 1;
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[++i], NULL, 10);
        else
            return fprintf(stderr, "%s: unknown\n", argv[i]), 1;
    }
    if (n_files == 0)
        return 1;
    if (seconds == 0 && count == 0)
        return run_files(), 0;
    printf("%s: from seed %" PRIu64 " on\n", argv[0], seed);
    fflush(stdout);
    for (const time_t end = time(NULL) + seconds; seconds > 0 ? time(NULL) < end : n < count; n++)
        run_made(seed + n);
    printf("%s: %" PRIu64 " played\n", argv[0], n);
    return 0;
}
