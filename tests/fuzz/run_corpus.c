/* tests/fuzz/run_corpus.c -- main of a fuzz target without a fuzzer: the target is called with every file
   named, and with a number of damaged copies of it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

enum { MAX_BYTES = 1 << 20, N_DAMAGED = 200 };

static uint64_t next_random(uint64_t* state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Some bytes changed, and often the end lost. */
static void run_damaged(const uint8_t* data, size_t bytes, uint8_t* damaged) {
    uint64_t state = bytes;
    for (int i = 0; i < N_DAMAGED && bytes > 0; i++) {
        memcpy(damaged, data, bytes);
        for (uint64_t n = next_random(&state) % 4; n > 0; n--)
            damaged[next_random(&state) % bytes] = (uint8_t)next_random(&state);
        LLVMFuzzerTestOneInput(damaged, next_random(&state) % 2 ? bytes : next_random(&state) % (bytes + 1));
    }
}

int main(int argc, char** argv) {
    static uint8_t data[MAX_BYTES], damaged[MAX_BYTES];
    for (int i = 1; i < argc; i++) {
        FILE* file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        const size_t bytes = fread(data, 1, sizeof data, file);
        fclose(file);
        printf("%s: %zu bytes\n", argv[i], bytes);
        fflush(stdout); /* so that the last line names the file that failed */
        LLVMFuzzerTestOneInput(data, bytes);
        run_damaged(data, bytes, damaged);
    }
    printf("%d files\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
