/* core/jobs/jobs.h -- whole jobs in one call: a folder of panoramas to views, a folder of pictures to tensors. A job
   makes a warp and a pipeline of READ, decode, WARP, encode and WRITE; core/jobs/ reads like a program of a user's. */
#ifndef GPSTI_JOBS_H
#define GPSTI_JOBS_H

#include "../files/folder.h"
#include "../pictures/pictures.h"
#include "../pipeline/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_job_hooks -- what a job leaves to its user; all-zero is valid

   decode       a HOST stage's function: sets picture 0 of set 0 from task->item->file_data, of any size and format that
                the warp takes. Called for several inputs at once. NULL = a DECODE stage does, and
   decode_other is its func: the same for files that are no JPEG, PNM, PAM or .npy; NULL = those fail
   encode       called for each output, for several at once: task->picture_index is the view's number; picture is on the
                host, without gaps, RGB HWC of a reprojection, a tensor of the desc's type and layout else. It makes
                room by gpst_task_encoded, fills it, and names the file by gpst_task_emit(task, path, bytes). It may
                emit more files beside that one, or none. NULL = an ENCODE stage does, as the desc's encode says, and
   beside       is called once it has emitted the file at path, and may emit more
   name         the name of an output's file below output_dir, instead of gpst_output_name's, such as "v00/a.jpg"; index
                as of begin, view 0 of a tensor. The folders in it are made before the first input is read. It gives the
                same name whenever it is asked, from any thread, and no two outputs the same. Negative: as begin
   mask         of a reprojection, a HOST stage's function: sets picture 0 of set 2 to the mask of this frame, GRAY U8
                and of the frame's size, which does to its views what desc.mask does to those of every frame, to the
                last bit; that is NULL then. In encode and beside, set 3 has the masks of the views, and set 4 the
                views. It costs a second warp for each frame, and one copy of its views on a core
   icc          of a reprojection: the ICC profile, of RGB, of an input in which gpst_metadata_read_icc finds none, for
                its JPEG views; out NULL: only *bytes is told. Called for several views at once. NULL = they have none
   worker_init, worker_term  as of gpst_stage_desc, for the stages' functions above; each stage has a worker_state of
                its own
   begin        before an input is read: GPST_OK, GPST_SKIPPED, or negative: that input fails, with the sentence of
                gpst_task_fail(NULL, ...) where it was called. index: of the input in the list, folders expanded. Never
                two calls at once
   done         each input once, as it ends, good or failed; item->index: as of begin. Never two calls at once
   watch        once with the pipeline, before its first item, and once with NULL, before it is destroyed. Between them
                any thread may cancel or stop it, or ask for its statistics, and so may a signal handler on the thread
                that called the job. n_inputs: folders expanded, for a progress line

   Ownership    functions and user_data must live until the job returns
   Since        0.1
*/
typedef gpst_result (*gpst_encode_func)(void* user_data, gpst_task* task, const gpst_image* picture, const char* path);
typedef gpst_result (*gpst_beside_func)(void* user_data, gpst_task* task, const char* path);
typedef struct gpst_job_hooks {
    gpst_stage_func decode, decode_other;
    gpst_encode_func encode;
    gpst_beside_func beside;
    gpst_result (*name)(void* user_data, uint64_t index, uint32_t view, char* out, size_t out_bytes);
    gpst_stage_func mask;
    gpst_result (*icc)(void* user_data, const gpst_item* item, void* out, size_t* bytes);
    const char* extension; /* of the files that encode makes, without the dot or a directory; required with it */
    gpst_result (*worker_init)(void* user_data, uint32_t worker_index, void** worker_state);
    void (*worker_term)(void* user_data, uint32_t worker_index, void* worker_state);
    gpst_result (*begin)(void* user_data, uint64_t index, const char* path);
    void (*done)(void* user_data, const gpst_item* item);
    void (*watch)(void* user_data, gpst_pipeline* pipeline, uint64_t n_inputs);
    void* user_data; /* of all of them */
} gpst_job_hooks;

/* gpst_reproject_desc -- equirectangular frames to perspective views; all-zero plus inputs and output_dir is valid. The
   files are called <input without extension>_v00.jpg, _v01 and so on. A process that is killed leaves files called
   .gpustage-*.tmp there: nobody needs them

   Ownership    everything must live until the job returns
   Since        0.1
*/
typedef struct gpst_reproject_desc {
    const char* const* inputs; /* n_inputs files and folders; of a folder the files that gpst_folder_list calls
                                  pictures: others, such as those of a decoder of yours, are named one by one. No two
                                  may have the same name without extension: their outputs would */
    size_t n_inputs;
    bool files_only;           /* inputs are files: what is a folder by then fails */
    int64_t begun_ns;          /* on gpst_now_ns's clock: where report->stats.wall_ns begins to count, so that work of
                                  yours before the call is in it; 0 = with the call */
    const char* output_dir;    /* made where only its parent exists */
    const gpst_view* views;    /* n_views of them; NULL = around the horizon, evenly, 90 degrees wide */
    uint32_t n_views;          /* 0 = 8; without views at most 100 */
    uint32_t width, height;    /* of a view; 0 = 1920x1080 */
    gpst_dtype dtype;          /* of a view: DEFAULT = U8; U16, as NPY and PNM; F32, as NPY: integers become 0 to 1,
                                  floats stay as they are */
    gpst_filter filter;
    gpst_convention convention;
    gpst_image mask;           /* as of gpst_warp_desc; data NULL = none */
    gpst_decode_desc decode;   /* placement.sphere is the job's */
    gpst_encode_desc encode;   /* all-zero: JPEG, quality 95, 4:4:4; segments only with no_metadata */
    bool no_metadata;          /* else JPEG views have an EXIF block of gpst_exif_make, with the date and the place of
                                  the input and the view's own focal length, and the input's ICC profile */
    gpst_context* context;     /* NULL: one of the job's own, with the defaults of gpst_context_desc */
    gpst_pipeline_desc run;    /* mode, preset, tune, settings, n_slots, n_reads, n_writes, batch, max_item_bytes,
                                  fsync, dirty_bytes, no_prefetch, stop_on_error as of any pipeline; the rest is the
                                  job's */
    gpst_job_hooks hooks;
} gpst_reproject_desc;

/* gpst_preprocess_desc -- pictures to tensors of one shape; all-zero plus inputs, size and an output is valid. A value
   is (v / full - mean) / std, where full is 255 of U8 pictures, 65535 of U16, and 1 of floats

   Ownership    as gpst_reproject_desc
   Since        0.1
*/
typedef struct gpst_preprocess_desc {
    const char* const* inputs; /* as of gpst_reproject_desc; into one file names may repeat */
    size_t n_inputs;
    bool files_only;           /* as of gpst_reproject_desc, and so is begun_ns */
    int64_t begun_ns;
    const char* output_dir;    /* <input without extension>.npy each; or NULL and */
    const char* output_file;   /* one .npy file, a row for each input in the order of the list: zero where it failed or
                                  was skipped. It is there when every input had its turn and one was good */
    uint32_t width, height;
    gpst_dtype dtype;          /* U8, I8, F16, F32; DEFAULT = F32; of U8 nothing is normalised */
    gpst_layout layout;        /* DEFAULT = HWC */
    bool swap_rb;              /* blue first */
    double mean[3], std[3];    /* of red, green and blue; finite, std positive; std 0 = 1 */
    gpst_filter filter;
    gpst_convention convention;
    gpst_fit fit;              /* as of gpst_warp_desc, and so is short_side */
    uint32_t short_side;
    float fill[3];             /* of the bars: red, green and blue, of 255 */
    gpst_decode_desc decode;
    gpst_context* context;     /* as of gpst_reproject_desc, and so are run and hooks */
    gpst_pipeline_desc run;
    gpst_job_hooks hooks;
} gpst_preprocess_desc;

/* gpst_report -- what a job did

   Ownership    plain values, 19 KB
   Since        0.1
*/
typedef struct gpst_report {
    gpst_stats stats;          /* with the verdict; all-zero where the job did not begin. wall_ns and the verdict are of
                                  the whole job: start_ns before its first input is read, with the list of inputs, and
                                  sync_ns after its last item, in which desc.output_file is synced and named */
    gpst_tuner_report tuner;
    char first_failure[1024];  /* "name: stage: reason" of the first input that failed; "" = none did */
} gpst_report;

/* gpst_reproject_files, gpst_preprocess_files -- do the whole job

   Parameters   desc   (in)
                report (out)  may be NULL
   Shapes       none
   Returns      GPST_OK: every input is done or was skipped | GPST_PARTIAL: some failed | where all failed, the
                result of the first that did, with its sentence | CANCELLED: some had no turn, since the pipeline was
                cancelled or stopped | ARGUMENT (member and rule; nothing was written) |
                UNSUPPORTED (views as JPEG, and no libturbojpeg is found, or one too old) | NOT_FOUND, ACCESS, NO_SPACE,
                IO (of the output) | what gpst_context_create, gpst_warp_create and gpst_pipeline_create say
   Ownership    nothing is kept
   Threads      any, several at once with outputs of their own
   Blocking     until the last file is written; allocates
   Device       the context's
   Source       core/jobs/jobs.c          Tests  tests/test_files_job.c, tests/test_job_hooks.c          Since 0.1
*/
#define gpst_reproject_files(desc, report) \
    gpst_reproject_files_versioned(GPST_VERSION, sizeof(gpst_reproject_desc), (desc), (report))
#define gpst_preprocess_files(desc, report) \
    gpst_preprocess_files_versioned(GPST_VERSION, sizeof(gpst_preprocess_desc), (desc), (report))
GPST_API gpst_result gpst_reproject_files_versioned(uint32_t version, size_t desc_bytes,
                                                    const gpst_reproject_desc* desc, gpst_report* report);
GPST_API gpst_result gpst_preprocess_files_versioned(uint32_t version, size_t desc_bytes,
                                                     const gpst_preprocess_desc* desc, gpst_report* report);

/* gpst_reproject_warp, gpst_preprocess_warp -- the warp of such a job: for its geometry, for a pipeline of one's own

   Parameters   desc  (in)   as for the job; inputs and outputs are not looked at
                out   (out)  the warp; NULL on failure
   Shapes       none
   Returns      as gpst_warp_create
   Ownership    destroy with gpst_warp_destroy; the pixels of desc->mask must live as long
   Threads      any
   Blocking     never; one allocation
   Device       none
   Source       core/jobs/jobs.c          Tests  tests/test_files_job.c          Since 0.1
*/
#define gpst_reproject_warp(desc, out) \
    gpst_reproject_warp_versioned(GPST_VERSION, sizeof(gpst_reproject_desc), (desc), (out))
#define gpst_preprocess_warp(desc, out) \
    gpst_preprocess_warp_versioned(GPST_VERSION, sizeof(gpst_preprocess_desc), (desc), (out))
GPST_API gpst_result gpst_reproject_warp_versioned(uint32_t version, size_t desc_bytes, const gpst_reproject_desc* desc,
                                                   gpst_warp** out);
GPST_API gpst_result gpst_preprocess_warp_versioned(uint32_t version, size_t desc_bytes,
                                                    const gpst_preprocess_desc* desc, gpst_warp** out);

/* gpst_output_name -- how a job names the file that it makes of an input

   Parameters   input     (in)   path or name
                view      (in)   its number; negative = of a tensor, which has none
                extension (in)   without the dot
                out       (out)  the name without a directory; "" on failure
                out_bytes (in)   of room
   Shapes       out: char[out_bytes]
   Returns      GPST_OK | OVERFLOW (there is less room)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/jobs/jobs.c          Tests  tests/test_files_job.c          Since 0.1
*/
GPST_API gpst_result gpst_output_name(const char* input, int32_t view, const char* extension, char* out,
                                      size_t out_bytes);

/* gpst_view_exif -- the EXIF block that a job writes into a view, for a stage of yours that encodes views

   Parameters   warp   (in)      that made the view
                view   (in)      its number
                item   (in)      whose metadata say date and place, and where they are NULL its file_data
                out    (out)     the block, without "Exif" before it; NULL = only its size
                bytes  (in, out) room, then bytes of the block; GPST_EXIF_MOST_BYTES are always enough
   Shapes       out: uint8_t[*bytes]
   Returns      GPST_OK | as gpst_metadata_read, gpst_warp_query_camera and gpst_exif_make
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/jobs/view_metadata.c          Tests  tests/test_metadata_make.c          Since 0.1
*/
GPST_API gpst_result gpst_view_exif(const gpst_warp* warp, uint32_t view, const gpst_item* item, void* out,
                                    size_t* bytes);

#ifdef __cplusplus
}
#endif
#endif
