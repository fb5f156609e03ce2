/* core/pipeline/pipeline.h -- the engine: items flow through slots from a source over
   stages to a sink, with the slowest resource always busy and memory bounded by the number of slots. */
#ifndef GPSTI_PIPELINE_H
#define GPSTI_PIPELINE_H

#include "../device/context.h"
#include "../files/reader.h"
#include "../items/stage.h"
#include "../stats/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_path -- the way the bytes came, and why not a faster one

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_path {
    char what[16];    /* "read", "host_memory", "device", "device_memory" (where it was short), "jpeg", "write",
                         "copies", "batch", "graph", "threads", "prefetch" */
    char taken[32];
    char why_not[256]; /* "name: reason; name: reason" for every faster way not taken; "" = none is faster */
} gpst_path;

/* gpst_copy_stats -- copies of one set over the link, all for the same stage or result

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_copy_stats {
    uint32_t set;
    bool up;          /* to the device; else to the host */
    char wanted[32];  /* the stage that wanted it there; "result" */
    uint64_t count, bytes; /* of pictures */
} gpst_copy_stats;

/* gpst_stats -- everything a run counted and timed

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_stats {
    uint64_t items_total, items_ok, items_failed, items_skipped, items_dropped, items_cancelled;
    int64_t wall_ns;            /* from start to the last sink, or to now while running; of a job (gpst_report) with: */
    int64_t start_ns;           /* from the job's begin to that start */
    int64_t sync_ns;            /* from the last sink until the job's output is on the disk; 0 = not yet, or no job */
    uint64_t bytes_read, bytes_h2d, bytes_d2h, bytes_written;
    uint32_t n_stages;
    gpst_stage_stats stages[GPST_MAX_STATS]; /* in flow order; a device group shows as upload, its stages, download */
    gpst_verdict verdict;
    gpst_read_ahead read_ahead; /* of desc.paths */
    uint32_t n_copies;
    gpst_copy_stats copies[2 * GPST_MAX_SETS]; /* what bytes_h2d and bytes_d2h are of */
    uint32_t n_paths;
    gpst_path paths[12];
    char settings[512];         /* "mode=engine workers=2 slots=8 reads=4 writes=4 threads_inside=2 order=input
                                   fsync=file dirty_bytes=0 preset=latency; model: queue_most=1 latest-only batch=8
                                   depth=1": of stages with bounds or batches */
    uint32_t slots, slots_used;
    /* Frozen: every slot has served an item. From then on an item's way calls the allocator no more; the set of frame
       buffers may still grow, when more items than ever are past the reader at once or a larger one comes. */
    uint64_t growths, growths_after_freeze; /* allocations of frame memory, host and device */
    uint64_t allocations_after_freeze;      /* calls to the allocator by the whole context */
    uint64_t device_fallbacks;  /* items whose device work was done again on the CPU */
    int64_t latency_p50_ns, latency_p99_ns, latency_max_ns; /* of items, source to sink */
    int64_t cpu_ns;             /* thread CPU time of all workers, readers and writers for this run */
} gpst_stats;

/* gpst_pipeline_create -- makes a pipeline in a context

   Parameters   version, desc_bytes (in)  given by the macro: header and implementation must agree
                context  (in)   whose workers, device and budgets it uses; must outlive the pipeline
                desc     (in)   what it does; copied
                out      (out)  the pipeline; NULL on failure
   Shapes       none
   Returns      GPST_OK | VERSION | ARGUMENT (member, value and rule in the reason) | UNSUPPORTED (ENCODE asks for what
                the libturbojpeg that is found is too old for) | FORKED | MEMORY | IO (threads)
   Ownership    destroy with gpst_pipeline_destroy
   Threads      any
   Blocking     never waits, but copies a warp's mask and table to a device; allocates slots' bookkeeping, starts no
                thread
   Device       memory for a warp's mask and table; the rest with the first item
   Source       core/pipeline/pipeline.c          Tests  tests/test_pipeline.c          Since 0.1
*/
#define gpst_pipeline_create(context, desc, out) \
    gpst_pipeline_create_versioned(GPST_VERSION, sizeof(gpst_pipeline_desc), (context), (desc), (out))
GPST_API gpst_result gpst_pipeline_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_pipeline_desc* desc, gpst_pipeline** out);

/* gpst_pipeline_destroy -- cancels, waits for what is in flight, and frees

   Parameters   pipeline (in)  NULL is a no-op
   Shapes       none
   Returns      GPST_OK | REENTRANT (from one of its own callbacks; nothing is done) | FORKED (likewise)
   Ownership    items still in the user's hands, results or kept by the sink, die with it, and their lent frames are
                given back, once; its frame memory stays in the context for the next pipeline, within
                gpst_context_desc.max_kept_bytes
   Threads      any, once. It waits for run, submit, next_result and drain of other threads, which return as after
                gpst_pipeline_cancel; no other call may begin meanwhile. No callback runs after it returned
   Blocking     until every running callback has returned
   Device       waits for the slots' streams
   Source       core/pipeline/pipeline.c          Tests  tests/test_pipeline.c          Since 0.1
*/
GPST_API gpst_result gpst_pipeline_destroy(gpst_pipeline* pipeline);

/* gpst_pipeline_run -- pull: runs the source dry and waits for the last item's end; those that the sink has kept may be
   released later

   Parameters   pipeline (in)  made with a source; runs once
   Shapes       none
   Returns      GPST_OK | GPST_PARTIAL (some items failed, others were done or skipped; the sink was told which) | where
                all failed the result of the first that did, with its sentence | CANCELLED | STATE (ran before, or no
                source) | REENTRANT | FORKED
   Ownership    none
   Threads      any. Plain loops run on the calling thread, and so do the first 1 ms of the mode DEFAULT and a few
                items that the guard measures; else it waits. From a stage of another pipeline of the same context
                the calling worker helps
   Blocking     until the last sink call returned; where kept items have what the next item needs, until one is
                released
   Device       used through the slots' streams
   Source       core/pipeline/pipeline.c          Tests  tests/test_pipeline.c          Since 0.1
*/
GPST_API gpst_result gpst_pipeline_run(gpst_pipeline* pipeline);

/* gpst_pipeline_submit -- push: hands one input in

   Parameters   pipeline   (in)   made without a source
                input      (in)   with a path where the first stage is READ, a frame where a stage reads set 0 that no
                                  stage before it writes; copied before the call returns, but for a borrowed frame
                timeout_ns (in)   how long to wait for a slot under the policy BLOCK, or for memory that others have;
                                  0 = not at all, GPST_FOREVER
                index      (out)  the item's; may be NULL
   Shapes       none
   Returns      GPST_OK | GPST_DROPPED (by the policy; desc.dropped was told) | WOULD_BLOCK (timeout 0; or at once, on
                the thread that took the latest result, where it would wait for nothing but results that nobody takes)
                | TIMEOUT | CLOSED | ARGUMENT | BUDGET | MEMORY. Every state: docs/live.md
   Ownership    of a frame with release, once it returned OK or DROPPED, until release is called; else it is still the
                caller's
   Threads      any, several at once; from a callback of the same pipeline it never waits
   Blocking     up to timeout_ns, and while the frame is copied. GPST_FOREVER may not return on the only thread that
                releases results or kept items: those that are held have memory
   Device       none
   Source       core/pipeline/push.c          Tests  tests/test_pipeline_push.c          Since 0.1
*/
GPST_API gpst_result gpst_pipeline_submit(gpst_pipeline* pipeline, const gpst_input* input, int64_t timeout_ns,
                                          uint64_t* index);

/* gpst_pipeline_next_result -- push without a sink: the next finished item, good or failed

   Parameters   pipeline   (in)
                timeout_ns (in)   0 = not at all, GPST_FOREVER
                out        (out)  the item; NULL unless GPST_OK
   Shapes       none
   Returns      GPST_OK | GPST_END (closed, and everything was handed out) | WOULD_BLOCK | TIMEOUT | STATE (has a sink)
                | BUDGET (results that are held leave the next one no memory: release one) | REENTRANT
   Ownership    the item holds its memory until gpst_pipeline_release, and no slot: the next input may come
   Threads      any, several at once; in input order unless as_ready. From a stage of another pipeline of the same
                context the calling worker helps meanwhile, and stages run on it; else nothing does
   Blocking     up to timeout_ns
   Device       none
   Source       core/pipeline/push.c          Tests  tests/test_pipeline_push.c          Since 0.1
*/
GPST_API gpst_result gpst_pipeline_next_result(gpst_pipeline* pipeline, int64_t timeout_ns, const gpst_item** out);

/* gpst_pipeline_release -- gives a result back, or an item that the sink keeps: its memory is for others

   Parameters   pipeline (in)
                item     (in)  from gpst_pipeline_next_result, or a sink's of this pipeline, once; NULL is a no-op.
                               What is released already is ignored, with an error in the log
   Shapes       none
   Returns      nothing
   Ownership    the item's pointers are dead afterwards
   Threads      any, also callbacks of the pipeline
   Blocking     never; no allocation; its time does not depend on how many items are held
   Device       none
   Source       core/pipeline/push.c
   Tests  tests/test_pipeline_push.c, tests/test_pipeline_keep.c          Since 0.1
*/
GPST_API void gpst_pipeline_release(gpst_pipeline* pipeline, const gpst_item* item);

/* gpst_pipeline_release_after -- gives a result or a kept item back as soon as a stream gets there, for work of the
   user's on it

   Parameters   pipeline (in)
                item     (in)  as for gpst_pipeline_release
                stream   (in)  of the context's device or wrapped from the host application; not NULL
   Shapes       none
   Returns      GPST_OK | ARGUMENT | DEVICE, DEVICE_LOST (then it was given back at once) | FORKED
   Ownership    the item's pointers may be used by what is on the stream by now, and by nothing else
   Threads      any
   Blocking     never, but on cpu, whose streams are always there
   Device       puts a notice on the stream
   Source       core/pipeline/push.c          Tests  tests/test_pipeline_frames.c          Since 0.1
*/
GPST_API gpst_result gpst_pipeline_release_after(gpst_pipeline* pipeline, const gpst_item* item, gpst_stream* stream);

/* gpst_pipeline_close -- push: nothing more will be submitted

   Parameters   pipeline (in)  NULL is a no-op
   Shapes       none
   Returns      nothing
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pipeline/push.c          Tests  tests/test_pipeline_push.c          Since 0.1
*/
GPST_API void gpst_pipeline_close(gpst_pipeline* pipeline);

/* gpst_pipeline_drain -- push: waits until every item in flight has ended: with a sink, which may have kept it, or, of
   results, was released

   Parameters   pipeline   (in)
                timeout_ns (in)  GPST_FOREVER = as long as it takes
   Shapes       none
   Returns      GPST_OK | TIMEOUT | WOULD_BLOCK (timeout 0; or all others are results that nobody takes, and this is the
                thread that took the latest) | STATE | REENTRANT
   Ownership    none
   Threads      any
   Blocking     up to timeout_ns
   Device       none
   Source       core/pipeline/push.c          Tests  tests/test_pipeline_push.c          Since 0.1
*/
GPST_API gpst_result gpst_pipeline_drain(gpst_pipeline* pipeline, int64_t timeout_ns);

/* gpst_pipeline_cancel, gpst_pipeline_stop -- cancel: items not finished end CANCELLED at their next stage, those whose
   read waits for a FIFO, a terminal or a device at once; stop: only the source ends

   Parameters   pipeline (in)  NULL is a no-op
   Shapes       none
   Returns      nothing; noticed within 50 ms
   Ownership    none
   Threads      any, also callbacks and signal handlers
   Blocking     never; no allocation
   Device       none
   Source       core/pipeline/pipeline.c          Tests  tests/test_pipeline.c          Since 0.1
*/
GPST_API void gpst_pipeline_cancel(gpst_pipeline* pipeline);
GPST_API void gpst_pipeline_stop(gpst_pipeline* pipeline);

/* gpst_pipeline_query_stats -- what the run counted and timed so far, with the verdict

   Parameters   pipeline (in)
                out      (out)  consistent once the run is over; before, of the moment
   Shapes       none
   Returns      nothing
   Ownership    plain values
   Threads      any
   Blocking     never waits long; no allocation
   Device       none
   Source       core/pipeline/report.c
   Tests  tests/test_pipeline.c, tests/test_pipeline_stats.c          Since 0.1
*/
GPST_API void gpst_pipeline_query_stats(gpst_pipeline* pipeline, gpst_stats* out);

/* gpst_camera_stats -- how the items of one camera fared

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_camera_stats {
    uint64_t items_ok, items_failed, items_skipped, items_dropped, items_cancelled;
    int64_t latency_p50_ns, latency_p99_ns, latency_max_ns; /* submit or source to sink */
} gpst_camera_stats;

/* gpst_pipeline_query_cameras -- counts of each camera so far

   Parameters   pipeline (in)
                out      (out)  n of them, by the camera's number; those that never came are all-zero
                n        (in)   at most GPST_MAX_CAMERAS
   Shapes       out: gpst_camera_stats[n]
   Returns      how many cameras there were: the highest number seen, + 1
   Ownership    plain values
   Threads      any
   Blocking     never waits long; no allocation
   Device       none
   Source       core/pipeline/report.c          Tests  tests/test_pipeline_drops.c          Since 0.1
*/
GPST_API uint32_t gpst_pipeline_query_cameras(gpst_pipeline* pipeline, gpst_camera_stats* out, uint32_t n);

/* gpst_pipeline_query_tuner -- where the knobs are, what they may reach, and every decision about them

   Parameters   pipeline (in)
                out      (out)  of the moment; settings can be saved by gpst_settings_format
   Shapes       none
   Returns      nothing
   Ownership    plain values
   Threads      any
   Blocking     never waits long; no allocation
   Device       none
   Source       core/pipeline/tune.c          Tests  tests/test_pipeline_tune.c          Since 0.1
*/
GPST_API void gpst_pipeline_query_tuner(gpst_pipeline* pipeline, gpst_tuner_report* out);

#ifdef __cplusplus
}
#endif
#endif
