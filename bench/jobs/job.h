/* bench/jobs/job.h -- the jobs that the engine is measured by, and what one run of one of them holds. Uses the public
   API of gpustage.h and the command's codecs, so that the same files compile against an older gpustage.h. Linux.

   job.c       the table of jobs
   inputs.c    makes their input files, and brings them into the page cache or out of it
   work.c      what an item computes, writes and is checked by, whichever way it goes
   loop.c      the ways without a pipeline: one loop by hand, and a pool of threads that run it
   pipeline.c  the ways through gpst_pipeline: the only file that knows that API
   run_job.c   one job, one way, once: options, clocks, one line of JSON */
#ifndef GPST_BENCH_JOB_H
#define GPST_BENCH_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../tools/gpustage/codec.h"
#include "../measure.h"

typedef enum job_source {
    SOURCE_NONE = 0, /* items have no input */
    SOURCE_JPEG,     /* a file: libjpeg-turbo decodes it */
    SOURCE_RAW,      /* a file: RGB pixels as they are */
    SOURCE_DELTA,    /* a file: each pixel less its neighbour, under its size; from 64 KiB to 16 MiB */
    SOURCE_CAMERA    /* a picture in memory, at the camera's own rate */
} job_source;

typedef enum job_output {
    OUTPUT_NUMBER = 0, /* one number an item */
    OUTPUT_ROW,        /* a row of one file */
    OUTPUT_FILES       /* a file for each output, whole or absent */
} job_output;

/* Zero = the job has none of it. */
typedef struct job {
    const char *name, *text;
    job_source source;
    uint32_t n_files;       /* different inputs: item i takes number i % n_files */
    uint32_t width, height; /* of an input picture */
    bool cold;              /* no input is in the page cache when a run begins: as many files as items */
    uint32_t n_cameras, fps;
    uint32_t n_views; /* of an equirectangular picture; else the warp is one resize */
    uint32_t out_width, out_height;
    gpst_dtype dtype;     /* of the resize; floats are normalised, planes of channels */
    uint32_t wait_us;     /* waits so long before it computes, as for a network */
    uint32_t n_workers;   /* of the engine: as many as may wait at once; 0 = its own choice */
    uint32_t work_passes; /* over the warp's output or, without one, over WORK_BYTES; 1 is about 0.25 ns a byte */
    bool one_at_a_time;   /* the work has one executor, as a model has */
    job_output output;
    size_t write_bytes; /* of a file that is no picture; number i is 1 + i % write_spread times as large */
    uint32_t write_spread;
    uint32_t n_names;     /* outputs replace one another under so many names; they are there when a run begins */
    bool synced;          /* on the disk before they have their names */
    bool output_on_disk;  /* what is measured is the disk; else outputs belong in memory */
    uint32_t first_items; /* about a tenth of a second of one core: where a search for the right number begins */
} job;

#define WORK_BYTES 65536u
#define JOB_MOST_THREADS 256u

extern const job job_table[];
extern const uint32_t job_count;
const job* job_find(const char* name); /* NULL: there is none */

typedef enum job_way { WAY_ENGINE = 0, WAY_SERIAL, WAY_POOL } job_way;

#define JOB_PATH_BYTES 512
#define JOB_REASON_BYTES 512

/* What the stages of a one-at-a-time run took, in seconds: the demands of the job (DESIGN section 5). */
typedef struct job_demands {
    double cpu;               /* CPU seconds of the process over the cores allowed */
    double disk_in, disk_out; /* time in reads and writes that nobody computed in */
    double h2d, gpu, d2h;
    double one_at_a_time; /* the work of a job that has one executor for it */
} job_demands;

typedef struct job_run {
    /* as asked for */
    const job* job;
    job_way way;
    uint32_t n_threads, n_files, shrink; /* shrink: the sides of pictures are divided by it, for tests */
    uint64_t n_items, n_check;           /* the hash is of the first n_check items */
    const char *dir, *out, *backend;
    uint32_t n_cores;
    /* made before the clock starts */
    gpst_context* context; /* NULL: a loop by hand */
    gpst_warp* warp;       /* NULL: the job has none */
    gpst_image shape;      /* of an output of the warp */
    uint32_t n_outputs;
    char** paths;        /* n_files of them */
    gpst_image* frames;  /* of cameras: n_files of them */
    uint64_t* numbers;   /* OUTPUT_NUMBER: one an item */
    int64_t* latency_ns; /* of cameras: one an item, from the moment a frame is due */
    int64_t start_ns;
    int rows_file;
    uint64_t n_rows; /* a multiple of n_files, so that a row is the same whichever item wrote it last */
    /* what happened */
    atomic_uint_fast64_t next, n_done, n_failed;
    char reason[JOB_REASON_BYTES]; /* of the first item that failed */
    job_demands demands;
    gpst_verdict verdict; /* of the library, where a pipeline ran; its text is "" otherwise */
    char settings[256];   /* the engine's, at the end */
} job_run;

/* What one thread needs. All-zero is ready; worker_free. */
typedef struct buffer {
    uint8_t* data;
    size_t bytes;
} buffer;

typedef struct worker {
    codec* codec;
    buffer file, picture, outputs, encoded;
    char reason[CODEC_REASON_BYTES];
} worker;

worker* worker_create(void); /* NULL: out of memory */
void worker_free(worker* self);
bool buffer_fit(buffer* self, size_t bytes); /* keeps nothing of what was there */

/* ---- inputs.c; false, or non-zero: said on stderr */
bool inputs_make(const job_run* run); /* those files that are not there yet */
bool inputs_open(job_run* run);       /* names them, or paints the frames of cameras */
void inputs_close(job_run* run);
int inputs_settle(const job_run* run);  /* all in the page cache, or none; of 100 pages so many are; -1: not known */
bool inputs_open_outputs(job_run* run); /* the file of rows; files that will be replaced; nothing left to write back */
bool inputs_size(const job_run* run, uint32_t index, uint32_t* width, uint32_t* height);

/* ---- work.c; false: self->reason says why */
bool work_make_warp(job_run* run);
/* in_place: the pixels are the file's own, from offset on. */
bool work_shape(const job_run* run, worker* self, const void* data, size_t bytes, gpst_image* shape, bool* in_place);
bool work_decode(const job_run* run, worker* self, const void* data, size_t bytes, const gpst_image* picture);
void work_wait(const job_run* run);
/* The number of an item: of its output or, where data is NULL, of bytes of its own. */
uint64_t work_number(const job_run* run, uint64_t item, const void* data, size_t bytes);
uint64_t work_digest(const void* data, size_t bytes, uint32_t passes, uint64_t seed);
bool work_encode(const job_run* run, worker* self, const gpst_image* picture, size_t* bytes); /* into self->encoded */
size_t work_file_bytes(const job_run* run, uint64_t item); /* of a file that is no picture */
void work_fill_file(const job_run* run, uint64_t item, void* out);
bool work_path(const job_run* run, uint64_t item, uint32_t view, char* out);
bool work_write_row(const job_run* run, worker* self, uint64_t item, const void* data);
bool work_write_file(const job_run* run, worker* self, const char* path, const void* data, size_t bytes);
bool work_hash(const job_run* run, uint64_t* out); /* of what the first n_check items left */
size_t work_image_bytes(const gpst_image* image);

int64_t clock_due_ns(const job_run* run, uint64_t item); /* when the frame of a camera is there */

void run_note_failure(job_run* run, const char* what, const char* reason);

/* ---- loop.c, pipeline.c */
gpst_result loop_run(job_run* run);
gpst_result pipeline_run(job_run* run);

#endif
