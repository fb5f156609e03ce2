/* core/items/stage.h -- what a pipeline is asked to do: its stages, and the desc that they are in. */
#ifndef GPSTI_STAGE_H
#define GPSTI_STAGE_H

#include "../../kernels/mask/mask_op.h"
#include "../../kernels/warp/warp.h"
#include "../device/graph.h"
#include "../pictures/decode.h"
#include "../pictures/jpeg.h"
#include "../pictures/pictures.h"
#include "../tuning/tuner.h"
#include "item.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPST_MAX_STAGES 16
#define GPST_MAX_STATS 48 /* stages, plus upload and download of every device group */

/* ---- stages ------------------------------------------------------------------ */

/* Called on a worker, or on the thread that is in gpst_pipeline_run. Returns GPST_OK, GPST_SKIPPED or negative, which
   fails the item: with this thread's reason if the callback set one by gpst_task_fail, else with the result's own text.
   GPST_SKIPPED, of a HOST stage: no stage is called for the item any more, none of its files stays, and the sink is
   told. Called for an item again where older ones need its memory and no ordered stage has had it: then it begins
   anew. */
typedef gpst_result (*gpst_stage_func)(void* user_data, gpst_task* task);

/* The same for n_tasks items at once, of which each has its own result: GPST_OK where the function says nothing. What
   it returns itself is of all of them: a negative one means that nothing was done, and each item is tried alone. Of an
   item gpst_task_fail keeps the sentence. */
typedef gpst_result (*gpst_batch_func)(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* results);

typedef enum gpst_stage_kind {
    GPST_STAGE_INVALID = 0,
    GPST_STAGE_READ = 1,   /* built in: the item's whole file into the slot. First stage, or absent */
    GPST_STAGE_HOST = 2,   /* func on a worker */
    GPST_STAGE_WARP = 3,   /* built in: each picture of a set through a warp, into another set, on the device */
    GPST_STAGE_DEVICE = 4, /* func on a worker puts the user's own device work on the item's stream */
    GPST_STAGE_WRITE = 5,  /* built in: what was emitted, into files that are whole or absent, or into parts of one
                              (gpst_target). Last stage, or absent */
    GPST_STAGE_MASK = 6,   /* built in: each picture of a set through a mask operation, on the device */
    GPST_STAGE_DECODE = 7, /* built in: the item's file into the one picture of a set */
    GPST_STAGE_ENCODE = 8  /* built in: each picture of a set into the bytes of a file, which func is given */
} gpst_stage_kind;

/* What goes behind the first marker of a JPEG: APPn segments, as gpst_metadata_segments makes them, for picture
   picture_index of the set that ENCODE reads. out NULL: only *bytes is told; else room for as many, which it fills.
   item->file_data is there. GPST_OK, or negative: the item fails, with the sentence of gpst_task_fail(NULL, ...) where
   it was called. Called for several pictures at once. */
typedef gpst_result (*gpst_segments_func)(void* user_data, const gpst_item* item, uint32_t picture_index, void* out,
                                          size_t* bytes);

/* gpst_encode_desc -- what ENCODE makes of a picture; all-zero is valid

   Ownership    must outlive the pipeline
   Since        0.1
*/
typedef struct gpst_encode_desc {
    gpst_codec codec;    /* the device's encodes RGB and BGR pictures that are in its memory; not as JPEG_440 and not
                            with restart_rows */
    gpst_file_kind kind; /* UNKNOWN = JPEG. Pictures must be what gpst_jpeg_encode or gpst_picture_encode takes */
    gpst_jpeg_encode_desc jpeg;
    gpst_segments_func segments; /* NULL: none; only for JPEG */
    void* segments_user_data;
} gpst_encode_desc;

/* What becomes of an item where no more may wait: in front of a stage, or at submit when every slot is taken. What is
   dropped waits in front of a stage, which has not begun with it. No later item and no result waits for it. */
typedef enum gpst_full_policy {
    GPST_FULL_BLOCK = 0,       /* submit waits; of a stage: items behind it wait in front of stages before it */
    GPST_FULL_DROP_NEWEST = 1, /* the new one */
    GPST_FULL_DROP_OLDEST = 2, /* the oldest that waits, of the same camera. submit: of the camera with the most items
                                  in flight; where none waits the new one */
    GPST_FULL_LATEST_ONLY = 3  /* all but the newest, of the same camera: queue_most is 1. Of a pipeline: in front of
                                  every stage that says nothing itself; submit as with DROP_OLDEST */
} gpst_full_policy;

/* gpst_stage_desc -- one stage; all-zero plus kind (and func, warp or mask) is valid

   reads and writes are sets as bits, GPST_SET(0) | GPST_SET(3). A set has one stage that writes it, which comes before
   those that read it and reads none that it writes; set 0 may be the input's own frame. What a stage names in writes
   its function must set, where the set has a capacity of 1 and is read by a built-in stage but a WARP by lists, is
   named as a result, or is read by nobody: else the item fails. With 0 in both: WARP, MASK and DEVICE read 0 and write
   1; DECODE writes 0; ENCODE and a per_picture stage read 1 and write none; any other HOST stage reads all that was
   written by then, and may write every set that no stage names. Device stages that follow one another are submitted
   together, but for a WARP whose list of affines or views one of them writes.

   Ownership    copied, the name too; user_data, warp and mask must outlive the pipeline
   Since        0.1
*/
typedef struct gpst_stage_desc {
    const char* name;      /* at most 31 bytes; default by kind: "read", "stage", "kernel", "device", "write", "mask",
                              "decode", "encode" */
    gpst_stage_kind kind;  /* required */
    /* Required for HOST, DEVICE and ENCODE. DECODE: for files of other kinds; NULL = they fail. ENCODE: called for each
       picture, whose file is task->encoded: gpst_task_emit(task, path, task->encoded_bytes) gives it to WRITE */
    gpst_stage_func func;
    void* user_data;
    /* HOST, DEVICE: instead of func, for up to batch_most items at once; of an ordered stage: of as many cameras. WARP,
       MASK: batch_most items are submitted together. The stage takes what is ready when no batch is in it, and
       full batches until two are (preset LATENCY: one; THROUGHPUT: three; HOST: concurrency, where that is set). 0 = 1,
       or what desc.batch says; with a batch_func 16 (preset LATENCY: 8; THROUGHPUT: 32). Of other stages at most 1,
       which says no more than 0 */
    gpst_batch_func batch_func;
    uint32_t batch_most;   /* at most 64 */
    uint32_t reads, writes; /* WARP, MASK: one set each, and may read a second one */
    /* The second of two sets that a WARP or MASK stage reads. MASK REFINE: the guides, as many as there are labels.
       WARP, made with list_per_item: each item's list, one picture, TENSOR, F32, HWC, of height 1, with an entry a
       pixel; so many pictures are made of one. For an empty list its picture is not set. Channels are the members of
       gpst_roi (4), gpst_affine (6) or gpst_view (5), in their order and as floats, where the last two structs have
       doubles. Rois are read where kernels read pictures, and not checked; how many count may be known to the device
       alone (gpst_task_count). Affines and views are read on the host, to which they come where a DEVICE stage wrote
       them: one against the rules of its struct fails the item. */
    uint32_t second_set;
    uint32_t concurrency;  /* HOST: services at once; 0 = any number, with LATEST_ONLY 1; 1 = serial. WRITE: of workers
                              that write, beside the writer's threads, which are n_writes */
    bool ordered;          /* HOST: items of a camera one after the other, in input order; cameras side by side */
    bool stateful;         /* HOST, DEVICE: ordered; task->n_missed tells when its state of a camera is out of date */
    /* Items of a camera that may wait in front of the stage, beyond those that it could begin with at once, and what
       becomes of more. 0 = any number, or as LATEST_ONLY says, with which a HOST stage has concurrency 1, if it says no
       more, and device work, with the device stages right before it, one submission under way. Not for per_picture
       stages and WRITE */
    uint32_t queue_most;
    gpst_full_policy full_policy;
    /* HOST, not per_picture: optional. What the stage still has when no more items of a camera come: the source is at
       its end, or the pipeline is closed or stopped, and all items of the camera have ended; not after a cancel. Called
       with a new item of the camera, with the next index. GPST_OK: it goes on behind this stage, with the sets that the
       call has made, and the stage is asked again; nothing drops it. GPST_END: there is none. A failure is the item's,
       and the last call.
       The stages of a camera are asked in their order, each when the items of the one before have ended; never two
       calls of a pipeline at once, and none beside func where concurrency is 1 */
    gpst_stage_func end;
    bool per_picture;      /* HOST: once for every picture of the one set that it reads, in parallel: idle workers help.
                              The first failure fails the item and begins no more */
    /* DEVICE: all device work of func goes through gpst_task_enqueue, and a kernel does the same whenever its
       arguments' bytes are the same: then it may become part of a graph. gpst_task_native_stream ends that for the
       item */
    bool capturable;
    /* Both optional. init on the worker itself, before its first service; term when the pipeline is destroyed. */
    gpst_result (*worker_init)(void* user_data, uint32_t worker_index, void** worker_state);
    void (*worker_term)(void* user_data, uint32_t worker_index, void* worker_state);
    const gpst_warp* warp; /* WARP: required; must outlive the pipeline */
    /* MASK: required; must outlive the pipeline. TIME: stateful, one picture an item. Its state is the pipeline's, one
       for each camera; it begins anew at a cut, after 30 missed items, and after a failure of the device */
    const gpst_mask_desc* mask;
    const gpst_decode_desc* decode; /* DECODE: NULL = all-zero */
    const gpst_encode_desc* encode; /* ENCODE: NULL = all-zero */
} gpst_stage_desc;

/* gpst_stage_read, gpst_stage_decode, gpst_stage_host, gpst_stage_warp, gpst_stage_list, gpst_stage_mask,
   gpst_stage_device, gpst_stage_encode, gpst_stage_write -- a stage in one line

   Parameters   out            (out)  every other member is 0; not NULL
                reads, writes  (in)   sets as bits; host: 0 in both as gpst_stage_desc says
                from, list, to (in)   numbers of sets; list: second_set, of a WARP made with list_per_item
                func, user_data, warp, mask, decode, encode  (in)  the members
   Shapes       none
   Returns      nothing
   Ownership    as gpst_stage_desc
   Threads      any
   Blocking     never
   Device       none
   Source       core/items/stage.c          Tests  tests/test_pipeline_sets.c          Since 0.1
*/
GPST_API void gpst_stage_read(gpst_stage_desc* out);
GPST_API void gpst_stage_decode(gpst_stage_desc* out, uint32_t to, const gpst_decode_desc* decode);
GPST_API void gpst_stage_host(gpst_stage_desc* out, uint32_t reads, uint32_t writes, gpst_stage_func func,
                              void* user_data);
GPST_API void gpst_stage_warp(gpst_stage_desc* out, uint32_t from, uint32_t to, const gpst_warp* warp);
GPST_API void gpst_stage_list(gpst_stage_desc* out, uint32_t from, uint32_t list, uint32_t to, const gpst_warp* warp);
GPST_API void gpst_stage_mask(gpst_stage_desc* out, uint32_t from, uint32_t to, const gpst_mask_desc* mask);
GPST_API void gpst_stage_device(gpst_stage_desc* out, uint32_t reads, uint32_t writes, gpst_stage_func func,
                                void* user_data);
GPST_API void gpst_stage_encode(gpst_stage_desc* out, uint32_t from, const gpst_encode_desc* encode,
                                gpst_stage_func func, void* user_data);
GPST_API void gpst_stage_write(gpst_stage_desc* out);

/* ---- the pipeline --------------------------------------------------------------- */

/* GPST_OK with *out filled, GPST_END when there is nothing more, GPST_SKIPPED, or negative: that item fails at stage
   "source", with the sentence of gpst_task_fail(NULL, ...) where it was called, and the next is asked for. But
   GPST_ERROR_WOULD_BLOCK: it has no memory for this item while others are in flight or kept by the sink, and is asked
   for the same one when one of those has ended or was released; where there is none the item fails with BUDGET. Never
   two calls at once. Strings are copied on return. */
typedef gpst_result (*gpst_source_func)(void* user_data, uint64_t index, gpst_input* out);
/* Every item once, good or failed; never two calls at once. A negative result fails the item, and its files go.
   GPST_KEPT: the item ends as with GPST_OK, but its user has it, with its results and a lent frame that is one, until
   gpst_pipeline_release or gpst_pipeline_release_after, on any thread. That may come before the sink has returned, and
   is then as good as GPST_KEPT. Kept items have memory and no slot. Where they have all the memory, or all frames of
   the source, the pipeline waits until one is released. So a sink that is the only one to release them keeps fewer: of
   a source's frames at most all but one, in the plain loop and in the engine. */
typedef gpst_result (*gpst_sink_func)(void* user_data, const gpst_item* item);

/* Of every dropped item, once: item->result is GPST_DROPPED, stage the one in front of which it waited, reason the
   rule. It has no pictures, and is not to be released. One that submit refused has the index UINT64_MAX. A lent frame
   is given back after it. On any thread, also several at once, and inside of submit, which it may call and which may
   come back to it; it must not wait for the pipeline. */
typedef void (*gpst_dropped_func)(void* user_data, const gpst_item* item);

typedef enum gpst_run_mode {
    GPST_RUN_DEFAULT = 0,      /* pull: plain on the caller's thread for 1 ms, then the engine, tuned; push: the
                                  engine */
    GPST_RUN_ENGINE = 1,       /* the engine from the first item on */
    GPST_RUN_PLAIN_SERIAL = 2, /* one item after the other on the caller's thread, nothing else */
    GPST_RUN_PLAIN_INSIDE = 3  /* the same, with all cores inside a kernel (OpenMP, where compiled in) */
} gpst_run_mode;

/* Where a result is wanted. */
typedef enum gpst_place {
    GPST_AS_IT_IS = 0, /* no copy is made for it: on the host where it is there, else on the device */
    GPST_ON_HOST = 1,
    GPST_ON_DEVICE = 2 /* on cpu, or where the item was computed on the CPU: the host's memory */
} gpst_place;

/* gpst_result_set -- a set that the user is given, and where

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_result_set {
    uint32_t set;
    gpst_place place;
} gpst_result_set;

/* gpst_result_of -- one entry of desc.results: desc.results[0] = gpst_result_of(3, GPST_ON_HOST)

   Parameters   set, place  (in)  the members
   Shapes       none
   Returns      the entry
   Ownership    none
   Threads      any
   Blocking     never
   Device       none
   Source       core/items/stage.c          Tests  tests/test_pipeline_sets.c          Since 0.1
*/
GPST_API gpst_result_set gpst_result_of(uint32_t set, gpst_place place);

typedef enum gpst_fsync { GPST_FSYNC_DEFAULT = 0 /* FILE */, GPST_FSYNC_FILE = 1, GPST_FSYNC_NONE = 2 } gpst_fsync;

/* gpst_pipeline_desc -- a pipeline; all-zero plus stages is valid

   Ownership    copied with its stages; user_data pointers must outlive the pipeline
   Since        0.1
*/
typedef struct gpst_pipeline_desc {
    uint32_t start_canary;
    const gpst_stage_desc* stages; /* n_stages of them, in order; copied */
    uint32_t n_stages;             /* 1 .. GPST_MAX_STAGES */
    gpst_source_func source;       /* NULL: push, by gpst_pipeline_submit */
    void* source_user_data;
    uint64_t n_items_expected;     /* 0 = not known. Tells the tuner when to try no more, and lets the guard measure the
                                      plain loop by a part of what is left; END may come earlier or later */
    /* Optional, with a source and a READ stage: the files that inputs will name, in the source's order. While reads
       wait, the system is told of the next ones. Not copied: must outlive the pipeline. n_paths at most 2^32 - 2 */
    const char* const* paths;
    uint64_t n_paths;
    bool no_prefetch;
    gpst_sink_func sink;           /* NULL: push results wait for gpst_pipeline_next_result; pull: nobody is told, and
                                      items end as they finish */
    void* sink_user_data;
    bool as_ready;                 /* sink: as items finish instead of in input order */
    gpst_run_mode mode;
    gpst_tune tune;                /* may knobs move while the run goes on? Not in the plain loops */
    gpst_preset preset;            /* how deep the tuner may make queues */
    gpst_settings settings;        /* tuned: where to start, as found by a run before; frozen there until clocks drift.
                                      All-zero = the tuner's. loop: a plain loop found best is run at once */
    gpst_full_policy full_policy;  /* push: when every slot is taken. Results that the user holds take none */
    /* Pushed: an item is wanted so long after its timestamp_ns, on gpst_now_ns's clock; 0 = at any time, and so is one
       without a timestamp. In front of stages with a batch_func, and WARP and MASK with batch_most, those that would be
       late are dropped, and in overload others where that lets more be in time (docs/live.md). One such stage is
       required */
    int64_t deadline_ns;
    gpst_dropped_func dropped;     /* NULL: nobody is told */
    void* dropped_user_data;
    /* Sets that the sink or next_result is given, and where; they live until release, every other set until its last
       reading stage. 0 = what stages write and no WARP, MASK, DEVICE or ENCODE reads, on the host; of the input's own
       frame only where no stage reads it. */
    gpst_result_set results[GPST_MAX_SETS];
    uint32_t n_results;
    /* Pictures of a set at most; 0 = 1, and of a set that WARP or MASK writes as many as it makes. At most 4096 */
    uint32_t capacity[GPST_MAX_SETS];
    /* Fixed, or 0 = the tuner's; without it the default named. */
    uint32_t n_slots;              /* items under way, without results: submit goes on until as many of these wait to be
                                      taken, and the user may hold any number; workers + reads in flight + 2, and one
                                      for each camera behind the first; or three batches where that is more. With a
                                      source no more of them than fit in the context's budgets by the largest item so
                                      far */
    uint32_t n_reads;              /* reads in flight; 4 */
    uint32_t n_writes;             /* writes in flight; 4 */
    uint32_t batch;                /* items in one submission to the device at most: one upload behind the other, one
                                      launch for all (several, where shapes differ or items have lists), one report.
                                      While the device is busy items wait until a batch is full, but not with preset
                                      LATENCY; 1. Only for a WARP stage of single pictures with no device stage beside
                                      it, on a device with memory of its own; at most 64, with at most 1024 pictures
                                      written together */
    uint64_t max_item_bytes;       /* host memory one item may take; 0 = learn (a slot grows as items need) */
    /* Device stages that are submitted together as one graph, from the second item of a slot on: WARP, MASK, and
       DEVICE with capturable. AUTO: where it saves more than 2 % of the time from item to item (gpst_graph_cache_run).
       At most an eighth of max_device_bytes, and 64 MiB, are theirs. A submission whose stages are timed has events
       between its launches, and is no graph; ALWAYS times few */
    gpst_graph_use graphs;
    gpst_fsync fsync;
    uint64_t dirty_bytes;          /* of a file that is written: after so many the disk is set to work, and what came
                                      before them is waited for; 0 = the system's own limits (Linux; else ignored) */
    bool stop_on_error;            /* the first failed item stops the source; what is in flight completes */
    uint32_t end_canary;
} gpst_pipeline_desc;

#ifdef __cplusplus
}
#endif
#endif
