/* tools/gpustage/job.h -- what reproject and preprocess share: inputs through read, decode, warp, encode and
   write. */
#ifndef GPST_TOOL_JOB_H
#define GPST_TOOL_JOB_H

#include "mask.h"
#include "options.h"
#include "outputs.h"
#include "stats.h"
#include "manifest.h"
#include "run_lock.h"
#include "tensor.h"

typedef struct job_desc {
    const options* asked;
    const gpst_warp* warp;
    const mask* mask;     /* all-zero: none */
    codec_kind kind;      /* of the files written */
    bool numbered;        /* <stem>_v00 */
    bool stacked;         /* -o is one .npy file */
    const char* settings; /* "key=value" lines: all that the outputs depend on */
} job_desc;

typedef struct job {
    job_desc desc;
    input_list inputs;
    outputs names;
    run_lock lock;
    manifest manifest;
    bool moved; /* the output directory is not where it was */
    tensor_file tensor;
    const char** paths; /* what the source will hand out, in order */
    gpst_context* context;
    gpst_pipeline* pipeline;
    gpst_settings settings; /* of --tune FILE */
    size_t next_input;
    uint64_t n_to_do;
    int64_t start_ns;
    run_counts counts;
} job;

/* Checks everything that can be checked, then makes directory, manifest and pipeline. An exit status;
   anything but EXIT_DONE has its sentence printed. */
int job_open(job* self, const job_desc* desc);
int job_run(job* self); /* the exit status of the command */
void job_close(job* self);

/* A stage's work on one worker. */
typedef struct job_worker {
    codec* codec;
    void* scratch; /* encoders ask for far more room than they fill: only what is filled goes to the slot */
    size_t scratch_bytes;
} job_worker;

/* job_stages.c: the callbacks of the pipeline; user_data is the job. */
gpst_result job_worker_init(void* user_data, uint32_t worker_index, void** worker_state);
void job_worker_term(void* user_data, uint32_t worker_index, void* worker_state);
gpst_result job_decode(void* user_data, gpst_task* task);
gpst_result job_encode(void* user_data, gpst_task* task);    /* per output */
gpst_result job_write_row(void* user_data, gpst_task* task); /* stacked */

#endif
