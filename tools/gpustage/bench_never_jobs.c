/* tools/gpustage/bench_never_jobs.c -- never-slower's jobs: a matrix of every kind, and mixes that nobody chose. */
#include "bench_never_jobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KB ((size_t)1024)
#define MB (KB * KB)
enum { N_BACKENDS = 3 };

/* ---- the matrix ------------------------------------------------------------------------------------ */

/* On each backend one row. A device has bytes to carry, so that the row is about it. */
typedef struct never_cell {
    const char* backends[N_BACKENDS]; /* cpu, sim, cuda; NULL = there is no such row */
    size_t device_bytes;              /* up, where the load says nothing and the backend is a device */
    bench_load load;                  /* without its backend */
} never_cell;

static const char* const backend_names[N_BACKENDS] = {"cpu", "sim", "cuda"};

/* In about the order of how long their runs take: what short ones leave of the budget is for the others, and none of
   them has too few rounds because one before it could not do with its share. */
static const never_cell cells[] = {
    {{"cpu", "sim:preset=h200", "cuda"}, 0,
     {"one-item", "5 ms of CPU, a view, a file", NULL, 1, 0,
      MB / 4, 5000, 0, 0, true, 0, MB / 4, false, false, 0, false, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 0,
     {"three-items", "5 ms of CPU, a view, a file", NULL, 3, 0,
      MB / 4, 5000, 0, 0, true, 0, MB / 4, false, false, 0, false, false}},
    {{"cpu", NULL, "cuda"}, 0,
     {"warp-bound", "a view of 640x480", NULL, 96, 0,
      0, 0, 0, 0, true, 0, 0, false, false, 0, false, false}},
    {{"cpu", "sim:write_gbps=0.2", "cuda"}, 64 * KB,
     {"sink-bound", "512 KiB written; sim: 0.2 GB/s", NULL, 64, 0,
      0, 100, 0, 64 * KB, false, 0, MB / 2, false, false, 0, false, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, MB,
     {"warm-files", "1 MiB from the page cache", NULL, 400, 0,
      MB, 0, 0, 0, false, 0, 0, false, false, 0, false, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 0,
     {"jpeg-decode", "1024x512 JPEG, a view of 640x480", NULL, 64, 0,
      0, 0, 0, 0, true, 0, 0, false, false, 1024, false, false}},
    {{NULL, "sim:read_us=3000,jitter_pct=90,seed=1", NULL}, 0,
     {"jittery-reads", "3 ms a file, +- 90 %", NULL, 96, 0,
      64 * KB, 300, 0, 0, false, 0, 0, false, false, 0, false, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, MB,
     {"mixed-sizes", "4 MiB and 256 KiB", NULL, 200, 0,
      4 * MB, 300, 0, 0, false, 0, 64 * KB, false, true, 0, false, false}},
    {{"cpu", NULL, NULL}, 0,
     {"fsync", "1 MiB written and synced", NULL, 64, 0,
      0, 300, 0, 0, false, 0, MB, true, false, 0, false, false}},
    {{"cpu", NULL, NULL}, 0,
     {"fsync-small", "16 KiB written and synced", NULL, 200, 0,
      0, 100, 0, 0, false, 0, 16 * KB, true, false, 0, false, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 64 * KB,
     {"many-small", "10000 of 64 KiB", NULL, 10000, 0,
      64 * KB, 0, 0, 0, false, 0, 0, false, false, 0, false, false}},
    {{NULL, "sim:h2d_gbps=0.5", NULL}, 0,
     {"upload-bound", "1 MiB at 0.5 GB/s", NULL, 64, 0,
      MB / 4, 300, MB, 64 * KB, false, 0, 0, false, false, 0, false, false}},
    {{NULL, NULL, "cuda"}, 0,
     {"upload-bound", "64 MiB an item", NULL, 64, 0,
      64 * KB, 100, 64 * MB, 64 * KB, false, 0, 0, false, false, 0, false, false}},
    {{NULL, "sim:kernel_us=2000", NULL}, 0,
     {"kernel-bound", "2 ms a kernel", NULL, 64, 0,
      MB / 4, 300, MB, 64 * KB, false, 0, 0, false, false, 0, false, false}},
    {{"cpu", "sim:preset=h200,read_gbps=0.2", "cuda"}, MB,
     {"disk-cold", "1 MiB from the disk; sim: 0.2 GB/s", NULL, 64, 0,
      MB, 300, 0, 0, false, 0, 0, false, false, 0, true, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 84 * MB,
     {"few-large", "40 of 88 MB", NULL, 40, 0,
      88000000, 2000, 0, 0, false, 0, 0, false, false, 0, false, false}}};
#define N_CELLS (sizeof cells / sizeof cells[0])
#define N_ROWS (N_CELLS * N_BACKENDS)

/* times: of the lists of many items, so many times as long. */
static bool cell_row(size_t index, uint32_t times, never_row* out) {
    const never_cell* const cell = &cells[index / N_BACKENDS];
    const size_t b = index % N_BACKENDS;
    if (!cell->backends[b] || (cell->load.jpeg_width > 0 && !bench_has_jpeg()))
        return false;
    out->load = cell->load;
    out->load.backend = cell->backends[b];
    out->load.n_items *= out->load.n_items >= NEVER_MANY_ITEMS ? times : 1;
    out->on_cpu = b == 0;
    if (!out->on_cpu && !out->load.warp && out->load.up_bytes == 0)
        out->load.up_bytes = cell->device_bytes;
    if (out->on_cpu || out->load.up_bytes == 0)
        out->load.down_bytes = 0;
    out->load.cold = cell->load.cold && b != 1; /* the model's disk is as slow as it says */
    snprintf(out->name, sizeof out->name, "%s/%s", cell->load.name, backend_names[b]);
    return true;
}

/* ---- mixes ------------------------------------------------------------------------------------------- */

static bool mix_has(uint64_t* random, double part) { return bench_random(random) < part; }

/* As often between 1 and 10 as between 10 and 100. */
static double mix_between(uint64_t* random, double least, double most) {
    return least * pow(most / least, bench_random(random));
}

static size_t mix_bytes(uint64_t* random, size_t least, size_t most) {
    return (size_t)mix_between(random, (double)least, (double)most) / KB * KB;
}

/* What an item asks of everything but a device, in any order of magnitude that one might meet. */
static void mix_of_host(uint64_t* random, bench_load* out) {
    if (mix_has(random, 0.67))
        out->read_bytes = mix_bytes(random, 4 * KB, 2 * MB);
    if (mix_has(random, 0.67) || out->read_bytes == 0)
        out->cpu_us = mix_between(random, 2.0, 5000.0);
    if (mix_has(random, 0.33)) {
        out->write_bytes = mix_bytes(random, KB, MB / 2);
        out->n_outputs = mix_has(random, 0.2) ? 4 : 1;
        out->encode_us = mix_has(random, 0.5) ? mix_between(random, 5.0, 1000.0) : 0.0;
    }
    out->mixed = out->read_bytes > 64 * KB && mix_has(random, 0.25);
}

static void mix_of_device(uint64_t* random, bench_load* out) {
    out->up_bytes = mix_bytes(random, 4 * KB, 4 * MB);
    out->down_bytes = mix_has(random, 0.5) ? mix_bytes(random, KB, out->up_bytes) : 0;
}

/* Of a plain loop, about: 5 GB/s from the page cache, 1 to it, 4 to a device. */
static double mix_item_us(const bench_load* load) {
    const double outputs = load->n_outputs > 0 ? load->n_outputs : 1.0;
    return 3.0 + load->cpu_us + (double)load->read_bytes / 5e3 + (double)load->up_bytes / 4e3 +
           outputs * (load->encode_us + (double)load->write_bytes / 1e3);
}

/* Mix `number`, the same on every backend but for what a device has to carry. A plain loop takes 2 to 150 ms for it. */
static void mix_row(size_t number, size_t b, never_row* out) {
    static const char* const models[] = {"sim:preset=h200", "sim:preset=rtx3090", "sim:preset=old_laptop",
                                         "sim:read_us=500", "sim:kernel_us=50"};
    uint64_t random = number * 7919 + 12345;
    for (int warm_up = 0; warm_up < 4; warm_up++)
        (void)bench_random(&random);
    const double run_us = mix_between(&random, 2e3, 150e3);
    const size_t model = (size_t)(bench_random(&random) * (double)(sizeof models / sizeof models[0]));
    mix_of_host(&random, &out->load);
    if (b > 0)
        mix_of_device(&random, &out->load);
    const double n_items = run_us / mix_item_us(&out->load);
    out->load.n_items = n_items < 1.0 ? 1 : n_items > 10000.0 ? 10000 : (uint32_t)n_items;
    out->load.backend = b == 1 ? models[model] : backend_names[b];
    out->load.name = "mix";
    out->load.text = "a mix of demands";
    out->load.in_memory = true; /* a disk would be the subject of half of them */
    out->on_cpu = b == 0;
    snprintf(out->name, sizeof out->name, "mix-%u/%s", (unsigned)number, backend_names[b]);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

/* Does --only name the row? */
static bool row_is_asked(const never_row* row, const char* only) {
    while (only && *only) {
        const size_t bytes = strcspn(only, ",");
        char part[48];
        snprintf(part, sizeof part, "%.*s", (int)bytes, only);
        if (bytes > 0 && strstr(row->name, part))
            return true;
        only += bytes + (only[bytes] ? 1 : 0);
    }
    return only == NULL;
}

size_t never_n_rows(const bench_ask* asked) { return asked->mixes > 0 ? asked->mixes * (size_t)N_BACKENDS : N_ROWS; }

bool never_row_of(const bench_ask* asked, size_t index, never_row* out) {
    memset(out, 0, sizeof *out);
    if (asked->mixes > 0)
        mix_row(index / N_BACKENDS, index % N_BACKENDS, out);
    else if (!cell_row(index, asked->times ? asked->times : 1, out))
        return false;
    return row_is_asked(out, asked->only);
}
