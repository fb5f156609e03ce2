/* tools/gpustage/bench_load.h -- a job made of known demands (files of a size, so much CPU time, so many bytes to a
   device and back), and the ways of running it that the cases of gpustage bench compare. */
#ifndef GPST_TOOL_BENCH_LOAD_H
#define GPST_TOOL_BENCH_LOAD_H

#include "bench.h"

/* Zero = the job has none of it. */
typedef struct bench_load {
    const char* name;
    const char* text;
    const char* backend;
    uint32_t n_items, n_outputs; /* outputs: 0 = 1; down_bytes and write_bytes are of each */
    size_t read_bytes;         /* each item's file */
    double cpu_us;             /* CPU time of a HOST stage */
    size_t up_bytes, down_bytes; /* to the device, through a kernel, and back; multiples of 1024 */
    bool warp;                 /* the kernel is a warp of 1024 x 512 RGB into one 640 x 480 view */
    double encode_us;          /* CPU time of each output's HOST stage, with write_bytes */
    size_t write_bytes;        /* each output's file */
    bool synced;               /* outputs are on the disk before they have their names */
    bool mixed;                /* of eight items one reads all of read_bytes, the others a sixteenth */
    uint32_t jpeg_width;       /* the file is a JPEG of this width and half the height, and is decoded; with warp */
    bool cold;                 /* every run begins with none of the files in the page cache */
    bool in_memory;            /* its files are, where the system has a directory for that: no disk but the model's */
} bench_load;

typedef enum bench_way {
    BENCH_GPUSTAGE = 0, /* what one gets who asks for nothing: plain while that is enough, then the tuned engine */
    BENCH_PLAIN_SERIAL,
    BENCH_PLAIN_INSIDE,
    BENCH_POOL,
    BENCH_FIXED, /* the engine from the start, every knob where it is */
    BENCH_EVERYTHING /* what GPU pipelines switch on first: pinned memory, one prefetching reader, a ring of three
                        slots with a stream each, and one thread that decodes and one that encodes */
} bench_way;

/* A pool of threads as one would write it by hand, with depth items in flight for each: 1 = as many plain loops on one
   list; more = the engine from the start with so many workers, and slots, reads and writes for all that is in flight. */
typedef struct bench_pool {
    uint32_t n_threads, depth;
} bench_pool;

/* A directory of its own under TMPDIR; in_memory: in memory, where the system has a place for that. false: bench_reason
   says why. */
bool bench_make_directory(bool in_memory, text* path);

typedef struct bench_job bench_job;

/* Makes the context and the input files, one for each item but no more than 1 GiB in all, in a directory of its own
   (bench_make_directory). n_workers 0 = the default. GPST_OK | GPST_ERROR_NO_BACKEND | others; bench_reason says why. */
gpst_result bench_job_open(const bench_load* load, uint32_t n_workers, bench_job** out);
void bench_job_close(bench_job* self); /* and removes the files; NULL: none */

const char* bench_reason(void); /* why the latest of these failed; of one thread */

/* Makes a pipeline, runs every item, and unmakes it; seconds for all of that, negative when it failed or was interrupted.
   pool: which, for BENCH_POOL; else NULL. stats may be NULL; of a pool it stays. */
double bench_job_run(bench_job* self, bench_way way, const bench_pool* pool, gpst_stats* stats);

/* With cold: the most of a file that was still in the page cache when a run began. */
double bench_job_resident_pct(const bench_job* self);
/* From now on no run finds memory that one before it made. */
void bench_job_set_fresh(bench_job* self);
const gpst_tuner_report* bench_job_report(const bench_job* self); /* of the latest run that BENCH_GPUSTAGE was */

uint32_t bench_cores(void);
double bench_random(uint64_t* random); /* 0..1, the same after the same number */
bool bench_has_jpeg(void);
void bench_paint(const gpst_image* frame); /* RGB that costs a codec about what a photograph does */

#endif
