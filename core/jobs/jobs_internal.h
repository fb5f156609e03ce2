/* core/jobs/jobs_internal.h -- what the files of this folder share. */
#ifndef GPSTI_JOBS_INTERNAL_H
#define GPSTI_JOBS_INTERNAL_H

#include "../device/context_internal.h"
#include "../files/folder_internal.h"
#include "jobs.h"

/* ---- one .npy file with a row for every input ------------------------------------------- */

#define GPSTI_JOB_PATH_BYTES 4096

typedef struct gpsti_stack {
    gpst_target* target; /* NULL: none is open */
    size_t header_bytes, row_bytes;
} gpsti_stack;

/* Rows have the shape of row, all zero at first. */
GPSTI_INTERN gpst_result gpsti_stack_open(gpsti_stack* self, gpst_context* context, const char* path,
                                          const gpst_image* row, uint64_t n_rows, bool sync);
/* data: as gpst_task_emit_at's. */
GPSTI_INTERN gpst_result gpsti_stack_emit(const gpsti_stack* self, gpst_task* task, uint64_t row, const void* data);
/* It gets its name, replacing what had it, or is removed. A second time is a no-op. */
GPSTI_INTERN gpst_result gpsti_stack_close(gpsti_stack* self, bool whole);

/* ---- names ----------------------------------------------------------------------------------- */

GPSTI_INTERN const char* gpsti_jobs_base_name(const char* path); /* behind the directory */
GPSTI_INTERN size_t gpsti_jobs_stem_bytes(const char* name);     /* of a base name: without its last extension */

/* ---- files through a warp ------------------------------------------------------------------- */

/* A job as files_job.c runs it. */
typedef struct gpsti_files_job_desc {
    const char* function; /* that the user called, for sentences */
    int64_t begun_ns;     /* when */
    const char* const* inputs;
    size_t n_inputs;
    bool files_only; /* folders are not expanded */
    const char *output_dir, *output_file; /* one of them */
    bool numbered;                        /* <stem>_v00 */
    const gpst_warp* warp;
    const gpst_warp* mask_warp; /* of each frame's own mask; NULL: there are none */
    const gpst_decode_desc* decode;
    gpst_encode_desc encode;
    bool has_metadata; /* JPEG outputs say what their views are */
    gpst_context* context;
    const gpst_pipeline_desc* run;
    const gpst_job_hooks* hooks;
} gpsti_files_job_desc;

typedef struct gpsti_files_job {
    gpsti_files_job_desc desc;
    gpsti_host* host;
    const char* extension;
    gpsti_names inputs; /* folders expanded */
    gpsti_stack stack;
    uint64_t n_ended, n_ok;
    gpst_report* report; /* or NULL */
} gpsti_files_job;

/* Folders expanded. */
GPSTI_INTERN gpst_result gpsti_files_job_list_inputs(gpsti_files_job* self);
/* ARGUMENT where two inputs have outputs of one name, or an output is an input. */
GPSTI_INTERN gpst_result gpsti_files_job_check_outputs(const gpsti_files_job* self);
GPSTI_INTERN gpst_result gpsti_files_job_output_path(const gpsti_files_job* self, uint64_t index, uint32_t view,
                                                     char path[GPSTI_JOB_PATH_BYTES]);
/* The output directory, and those that names below it have. */
GPSTI_INTERN gpst_result gpsti_files_job_make_folders(const gpsti_files_job* self);

/* Sets of a job's pipeline. With masks the views of set 1 become those of set 4. */
enum { GPSTI_JOB_FRAME = 0, GPSTI_JOB_VIEWS = 1, GPSTI_JOB_MASK = 2, GPSTI_JOB_VIEW_MASKS = 3, GPSTI_JOB_MASKED = 4 };

/* The stage that calls the user's mask hook, and the one behind the warps that clears what the views' masks drop. */
GPSTI_INTERN gpst_result gpsti_files_job_load_mask(void* user_data, gpst_task* task);
GPSTI_INTERN gpst_result gpsti_files_job_apply_mask(void* user_data, gpst_task* task);

/* Of ENCODE: EXIF and ICC of a view. */
GPSTI_INTERN gpst_result gpsti_files_job_segments(void* user_data, const gpst_item* item, uint32_t view, void* out,
                                                  size_t* bytes);

/* The last reason once more, with the name of the function that the user called. */
GPSTI_INTERN gpst_result gpsti_files_job_fail(gpst_result result, const char* function);
GPSTI_INTERN gpst_result gpsti_files_job_run(const gpsti_files_job_desc* desc, gpst_report* report);

#endif
