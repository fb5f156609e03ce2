/* tools/gpustage/job.h -- what reproject and preprocess add to the library's jobs: the list of what is whole, resume,
   progress, statistics, masks, and the codecs of files that the library doesn't know. */
#ifndef GPST_TOOL_JOB_H
#define GPST_TOOL_JOB_H

#include "mask.h"
#include "options.h"
#include "outputs.h"
#include "stats.h"
#include "manifest.h"
#include "run_lock.h"

typedef struct job_desc {
    const options* asked;
    const gpst_reproject_desc* reproject;   /* what the library is asked for, but for files and hooks; */
    const gpst_preprocess_desc* preprocess; /* one of them */
    const gpst_warp* warp;                  /* the job's */
    const mask* mask;     /* all-zero: none */
    codec_kind kind;      /* of the files written */
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
    char no_jpeg[GPST_REASON_BYTES]; /* why there is no libturbojpeg; "": it is there */
    const char** paths; /* n_to_do that the library is given, */
    input** to_do;      /* and which inputs they are */
    size_t n_to_do;
    bool has_begun;     /* there was a pipeline */
    gpst_context* context;
    gpst_settings settings; /* of --tune FILE */
    gpst_report report;
    int64_t start_ns;
    run_counts counts;
} job;

/* Checks everything that can be checked, then makes directory and manifest. An exit status; anything but EXIT_DONE has
   its sentence printed. */
int job_open(job* self, const job_desc* desc);
int job_run(job* self); /* the exit status of the command */
void job_close(job* self);

/* job_outputs.c, of job_open: -o is one file, or a directory. */
int job_open_stacked(job* self);
int job_open_directory(job* self);

/* What of a file's metadata moves its pixels. */
gpst_placement_desc job_make_placement(const job* self);

/* A stage's work on one worker: PNG. */
typedef struct job_worker {
    codec* codec;
    void* scratch; /* encoders ask for far more room than they fill: only what is filled goes to the slot */
    size_t scratch_bytes;
} job_worker;

/* job_metadata.c. What a view says of itself; icc is to be freed, on failure, too. */
typedef struct job_metadata {
    uint8_t exif[GPST_EXIF_MOST_BYTES];
    size_t exif_bytes, icc_bytes; /* 0: none */
    void* icc;
} job_metadata;
gpst_result job_take_metadata(const job* self, const gpst_task* task, job_metadata* out);
/* What a user should know of an item that was done; and of one that is decoded, that it has more bits than what is made
   of it. */
void job_remark_item(const job* self, const gpst_item* item);
void job_remark_bits(const job* self, const gpst_item* item, gpst_dtype was);
/* A hook of the library's job. */
gpst_result job_icc(void* user_data, const gpst_item* item, void* out, size_t* bytes);

/* job_stages.c: hooks of the library's job; user_data is this one. */
gpst_result job_worker_init(void* user_data, uint32_t worker_index, void** worker_state);
void job_worker_term(void* user_data, uint32_t worker_index, void* worker_state);
gpst_result job_decode(void* user_data, gpst_task* task);
gpst_result job_encode(void* user_data, gpst_task* task, const gpst_image* picture, const char* path);
gpst_result job_emit_mask(void* user_data, gpst_task* task, const char* beside);
gpst_result job_name(void* user_data, uint64_t index, uint32_t view, char* out, size_t out_bytes);
gpst_result job_load_mask(void* user_data, gpst_task* task);

#endif
