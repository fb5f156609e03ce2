/* tools/gpustage/bench_readers.c -- the case readers: each way of reading on files that are not in memory, and on
   files that are, with 1, 4 and 16 reads at once. */
#include "bench_load.h"

#include "../measure.h"
#include "console.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_FILES = 24, N_KINDS = 4, N_DEPTHS = 3, N_ROUNDS = 5, N_CELLS = 2 * N_KINDS * N_DEPTHS };
#define FILE_BYTES (((size_t)16 << 20) + 12345) /* ends in the midst of a page, as files do */
#define PAGE_BYTES ((size_t)4096)

static const char* const kinds[N_KINDS] = {"pread", "direct", "uring", "auto"};
static const uint32_t depths[N_DEPTHS] = {1, 4, 16};

typedef struct readers_bench {
    gpst_context* context;
    text directory;
    char paths[N_FILES][320];
    uint32_t n_files;
    char* memory; /* room for all of them: no read waits for another's */
    gpst_read reads[N_FILES];
    uint32_t n_done, n_failed;  /* __atomic */
    int most_resident_pct;      /* of any file, right before it was read cold */
    char why_not[N_KINDS][256]; /* "" = it ran */
    double gb_per_s[N_CELLS][N_ROUNDS];
} readers_bench;

static void readers_done(gpst_read* read) {
    readers_bench* const self = (readers_bench*)read->user_data;
    if (GPST_FAILED(read->result) || read->bytes != FILE_BYTES)
        (void)__atomic_fetch_add(&self->n_failed, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&self->n_done, 1, __ATOMIC_RELEASE);
}

static bool readers_read_all(readers_bench* self, gpst_reader* reader) {
    const size_t step = (FILE_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char* const first = (char*)(((uintptr_t)self->memory + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1));
    self->n_done = self->n_failed = 0;
    for (uint32_t i = 0; i < N_FILES; i++) {
        gpst_read* const read = &self->reads[i];
        memset(read, 0, sizeof *read);
        read->path = self->paths[i];
        read->data = first + i * step;
        read->capacity_bytes = step;
        read->done = readers_done;
        read->user_data = self;
        if (GPST_FAILED(gpst_reader_submit(reader, read)))
            return false;
    }
    while (__atomic_load_n(&self->n_done, __ATOMIC_ACQUIRE) < N_FILES) {
        const struct timespec moment = {0, 50000};
        nanosleep(&moment, NULL);
    }
    return self->n_failed == 0;
}

/* Every file out of the page cache, or into it. False: the system does not do it. */
static bool readers_prepare(readers_bench* self, bool cold) {
    for (uint32_t i = 0; i < N_FILES; i++) {
        text whole = GPST_ZERO;
        const int resident_pct = cold ? files_drop_cached(self->paths[i]) : 0;
        const bool ok = cold ? resident_pct >= 0 : !files_read(self->paths[i], &whole);
        text_free(&whole);
        if (!ok)
            return false;
        if (resident_pct > self->most_resident_pct)
            self->most_resident_pct = resident_pct;
    }
    return true;
}

static bool readers_cell(readers_bench* self, uint32_t cell, uint32_t round) {
    const uint32_t kind = cell / N_DEPTHS % N_KINDS;
    const bool cold = cell < N_CELLS / 2;
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader* reader = NULL;
    desc.kind = kinds[kind];
    desc.n_in_flight = depths[cell % N_DEPTHS];
    if (self->why_not[kind][0])
        return true;
    if (GPST_FAILED(gpst_reader_create(self->context, &desc, &reader))) {
        snprintf(self->why_not[kind], sizeof self->why_not[kind], "%.255s", gpst_last_reason());
        return true;
    }
    bool ok = readers_prepare(self, cold);
    const double start = measure_now();
    ok = ok && readers_read_all(self, reader);
    self->gb_per_s[cell][round] = (double)N_FILES * (double)FILE_BYTES / (measure_now() - start) / 1e9;
    gpst_reader_destroy(reader);
    return ok && !interrupt_happened();
}

static void readers_row(const readers_bench* self, uint32_t cell, json* out) {
    const char* const kind = kinds[cell / N_DEPTHS % N_KINDS];
    const bool cold = cell < N_CELLS / 2;
    const measure_spread spread = measure_spread_of(self->gb_per_s[cell], N_ROUNDS);
    printf("%-8s %-8s %4u  %8.3f (%.3f..%.3f)\n", cold ? "cold" : "resident", kind, depths[cell % N_DEPTHS],
           spread.median, spread.min, spread.max);
    json_open(out, NULL, '{');
    json_string(out, "kind", kind);
    json_bool(out, "cold", cold);
    json_count(out, "at_once", depths[cell % N_DEPTHS]);
    json_number(out, "median", spread.median);
    json_number(out, "min", spread.min);
    json_number(out, "max", spread.max);
    json_close(out, '}');
}

static void readers_report(const readers_bench* self, json* out) {
    json_count(out, "most_resident_pct", (uint64_t)self->most_resident_pct);
    json_open(out, "rows", '[');
    for (uint32_t cell = 0; cell < N_CELLS; cell++)
        if (!self->why_not[cell / N_DEPTHS % N_KINDS][0])
            readers_row(self, cell, out);
    json_close(out, ']');
    for (uint32_t k = 0; k < N_KINDS; k++)
        if (self->why_not[k][0])
            printf("%-8s not here: %s\n", kinds[k], self->why_not[k]);
    printf("before cold reads at most %d %% of a file was resident\n", self->most_resident_pct);
}

static bool readers_make_files(readers_bench* self) {
    bool ok = bench_make_directory(false, &self->directory);
    char* const data = (char*)malloc(FILE_BYTES);
    self->memory = (char*)malloc(((size_t)N_FILES + 1) * (FILE_BYTES + PAGE_BYTES));
    ok = ok && data && self->memory;
    for (size_t i = 0; data && i < FILE_BYTES; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    if (ok)
        memset(self->memory, 1, ((size_t)N_FILES + 1) * (FILE_BYTES + PAGE_BYTES));
    for (; ok && self->n_files < N_FILES; self->n_files++) {
        char* const path = self->paths[self->n_files];
        snprintf(path, sizeof self->paths[0], "%s/in_%u.bin", self->directory.data, (unsigned)self->n_files);
        ok = !files_write_whole(path, data, FILE_BYTES);
    }
    free(data);
    return ok;
}

int bench_readers(const bench_ask* asked, json* out) {
    (void)asked;
    static readers_bench self;
    gpst_context_desc desc = GPST_ZERO;
    memset(&self, 0, sizeof self);
    desc.backend = "cpu";
    desc.n_workers = 1;
    bool ok = gpst_context_create(&desc, &self.context) == GPST_OK && readers_make_files(&self);
    printf("readers: %d files of 16 MiB, %d rounds, each way once a round; GB/s\n%-8s %-8s %4s\n", (int)N_FILES,
           (int)N_ROUNDS, "files", "kind", "at once");
    for (uint32_t round = 0; ok && round < N_ROUNDS; round++)
        for (uint32_t cell = 0; ok && cell < N_CELLS; cell++)
            ok = readers_cell(&self, cell, round);
    if (ok)
        readers_report(&self, out);
    else
        console_error("readers: %s", interrupt_happened()    ? "interrupted"
                                     : gpst_last_reason()[0] ? gpst_last_reason()
                                                             : "files cannot be made, or not be dropped from memory");
    for (uint32_t i = 0; i < self.n_files; i++)
        files_remove(self.paths[i]);
    if (self.directory.data)
        files_remove_directory(self.directory.data);
    text_free(&self.directory);
    free(self.memory);
    gpst_context_destroy(self.context);
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
