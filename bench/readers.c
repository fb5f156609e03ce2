/* bench/readers.c -- each way of reading, with 1, 4 and 16 reads at once, on files that are not in the page cache and
   on files that are. They lie in a folder of its own under TMPDIR, which says the disk, and are removed. Linux.

   readers [--rounds N] */
#define _GNU_SOURCE
#include "measure.h"

#include "../gpustage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_FILES = 24, N_KINDS = 4, N_DEPTHS = 3, N_CELLS = 2 * N_KINDS * N_DEPTHS };
#define FILE_BYTES (((size_t)16 << 20) + 12345) /* ends in the midst of a page, as files do */
#define PAGE_BYTES ((size_t)4096)
#define STEP_BYTES ((FILE_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES)

static const char* const kinds[N_KINDS] = {"pread", "direct", "uring", "auto"};
static const uint32_t depths[N_DEPTHS] = {1, 4, 16};

typedef struct readers_bench {
    gpst_context* context;
    char directory[256];
    char paths[N_FILES][320];
    uint32_t n_files;
    char* memory; /* room for all of them: no read waits for another's */
    gpst_read reads[N_FILES];
    uint32_t n_done, n_failed;  /* __atomic */
    size_t most_resident;       /* pages of any file, right before it was read cold */
    char why_not[N_KINDS][256]; /* "" = it ran */
    double gb_per_s[N_CELLS][MEASURE_MAX_ROUNDS];
} readers_bench;

/* ---- files ------------------------------------------------------------------------------------ */

static bool write_file(const char* path, const void* data, size_t bytes) {
    FILE* const file = fopen(path, "wb");
    const bool ok = file && fwrite(data, 1, bytes, file) == bytes;
    return file && fclose(file) == 0 && ok;
}

static bool make_files(readers_bench* self) {
    const char* const root = getenv("TMPDIR");
    char* const data = (char*)malloc(FILE_BYTES);
    self->memory = (char*)aligned_alloc(PAGE_BYTES, N_FILES * STEP_BYTES);
    snprintf(self->directory, sizeof self->directory, "%.200s/gpustage-readers-XXXXXX", root ? root : "/tmp");
    bool ok = data && self->memory && mkdtemp(self->directory);
    for (size_t i = 0; data && i < FILE_BYTES; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    if (ok)
        memset(self->memory, 1, N_FILES * STEP_BYTES); /* every page is there before the clock runs */
    while (ok && self->n_files < N_FILES) {
        char* const path = self->paths[self->n_files++];
        snprintf(path, sizeof self->paths[0], "%s/in_%u.bin", self->directory, (unsigned)self->n_files);
        ok = write_file(path, data, FILE_BYTES);
    }
    free(data);
    return ok;
}

static void remove_files(readers_bench* self) {
    for (uint32_t i = 0; i < self->n_files; i++)
        unlink(self->paths[i]);
    rmdir(self->directory);
    free(self->memory);
}

/* Pages of it in the page cache; all of them where that is not known. */
static size_t resident_pages(int file) {
    enum { N_PAGES = STEP_BYTES / PAGE_BYTES };
    static unsigned char pages[N_PAGES];
    void* const map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
    size_t n = 0;
    memset(pages, 1, sizeof pages);
    if (map != MAP_FAILED) {
        (void)!mincore(map, FILE_BYTES, pages);
        munmap(map, FILE_BYTES);
    }
    for (size_t i = 0; i < N_PAGES; i++)
        n += pages[i] & 1u;
    return n;
}

/* Out of the page cache, which only clean pages leave, or into it. */
static bool settle_file(readers_bench* self, const char* path, bool cold) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = file >= 0;
    if (ok && cold) {
        ok = fdatasync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0;
        const size_t n = resident_pages(file);
        self->most_resident = n > self->most_resident ? n : self->most_resident;
    } else if (ok) {
        ok = read(file, self->memory, FILE_BYTES) == (ssize_t)FILE_BYTES;
    }
    if (file >= 0)
        close(file);
    return ok;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void read_done(gpst_read* read) {
    readers_bench* const self = (readers_bench*)read->user_data;
    if (GPST_FAILED(read->result) || read->bytes != FILE_BYTES)
        (void)__atomic_fetch_add(&self->n_failed, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&self->n_done, 1, __ATOMIC_RELEASE);
}

static bool read_all(readers_bench* self, gpst_reader* reader) {
    const struct timespec moment = {0, 50000};
    self->n_done = self->n_failed = 0;
    for (uint32_t i = 0; i < N_FILES; i++) {
        gpst_read* const read = &self->reads[i];
        memset(read, 0, sizeof *read);
        read->path = self->paths[i];
        read->data = self->memory + i * STEP_BYTES;
        read->capacity_bytes = STEP_BYTES;
        read->done = read_done;
        read->user_data = self;
        if (GPST_FAILED(gpst_reader_submit(reader, read)))
            return false;
    }
    while (__atomic_load_n(&self->n_done, __ATOMIC_ACQUIRE) < N_FILES)
        nanosleep(&moment, NULL);
    return self->n_failed == 0;
}

static bool measure_cell(readers_bench* self, uint32_t cell, uint32_t round) {
    const uint32_t kind = cell / N_DEPTHS % N_KINDS;
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader* reader = NULL;
    bool ok = true;
    desc.kind = kinds[kind];
    desc.n_in_flight = depths[cell % N_DEPTHS];
    if (self->why_not[kind][0])
        return true;
    if (GPST_FAILED(gpst_reader_create(self->context, &desc, &reader))) {
        snprintf(self->why_not[kind], sizeof self->why_not[kind], "%.255s", gpst_last_reason());
        return true;
    }
    for (uint32_t i = 0; ok && i < N_FILES; i++)
        ok = settle_file(self, self->paths[i], cell < N_CELLS / 2);
    const double start = measure_now();
    ok = ok && read_all(self, reader);
    self->gb_per_s[cell][round] = (double)N_FILES * (double)FILE_BYTES / (measure_now() - start) / 1e9;
    gpst_reader_destroy(reader);
    return ok;
}

static void print_rows(const readers_bench* self, uint32_t n_rounds) {
    for (uint32_t cell = 0; cell < N_CELLS; cell++) {
        const measure_spread spread = measure_spread_of(self->gb_per_s[cell], n_rounds);
        const uint32_t kind = cell / N_DEPTHS % N_KINDS;
        if (!self->why_not[kind][0])
            printf("%-8s %-8s %7u  %8.3f (%.3f..%.3f)\n", cell < N_CELLS / 2 ? "cold" : "resident", kinds[kind],
                   depths[cell % N_DEPTHS], spread.median, spread.min, spread.max);
    }
    for (uint32_t k = 0; k < N_KINDS; k++)
        if (self->why_not[k][0])
            printf("%-8s not here: %s\n", kinds[k], self->why_not[k]);
    printf("before cold reads at most %.1f %% of a file was resident\n",
           100.0 * (double)self->most_resident * (double)PAGE_BYTES / (double)STEP_BYTES);
}

int main(int argc, char** argv) {
    static readers_bench self;
    const uint32_t n_rounds = measure_rounds_asked(argc, argv, 5);
    gpst_context_desc desc = GPST_ZERO;
    if (n_rounds == 0)
        return 1;
    desc.backend = "cpu";
    desc.n_workers = 1;
    bool ok = gpst_context_create(&desc, &self.context) == GPST_OK && make_files(&self);
    printf("%s\n%s: %d files of 16 MiB; medians of %u rounds (min..max), each way once a round\n%-8s %-8s %7s  %8s\n",
           gpst_build_info(), self.directory, (int)N_FILES, (unsigned)n_rounds, "files", "kind", "at once", "GB/s");
    for (uint32_t round = 0; ok && round < n_rounds; round++)
        for (uint32_t cell = 0; ok && cell < N_CELLS; cell++)
            ok = measure_cell(&self, cell, round);
    if (ok)
        print_rows(&self, n_rounds);
    else
        fprintf(stderr, "readers: %s\n", gpst_last_reason()[0] ? gpst_last_reason() : "files cannot be made, read or "
                                                                                      "dropped from the page cache");
    remove_files(&self);
    gpst_context_destroy(self.context);
    return ok ? 0 : 1;
}
