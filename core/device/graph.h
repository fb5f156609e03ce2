/* core/device/graph.h -- work of a stream recorded once and launched again at the cost of one launch; and a cache that
   does so by itself where it pays. The same program on every backend: on cpu and sim a graph is a list. */
#ifndef GPSTI_GRAPH_H
#define GPSTI_GRAPH_H

#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_graph gpst_graph;
typedef struct gpst_graph_cache gpst_graph_cache;

/* gpst_graph_begin -- from now on the stream records what is put there, and runs nothing

   gpst_copy, gpst_copy_rows, gpst_fill and every gpst_..._enqueue can be recorded, up to gpst_graph_end or
   gpst_graph_cache_run. Their descriptions and lists are copied. Each call checks its arguments at once; an error that
   is found later is returned by the end of the recording. Calls of the vendor's own on gpst_stream_native are not
   recorded: put them into a gpst_kernel. Calls that cannot be recorded return GPST_ERROR_STATE.

   Parameters   stream  (in)  not NULL; records nothing yet
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_STATE (the stream records already) | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED | on
                sim, what work of an earlier recording has failed with
   Ownership    none
   Threads      one at a time uses a stream that records
   Blocking     never; but sim waits for an earlier recording that runs piece by piece
   Device       none; other streams and threads are not disturbed
   Source       core/device/graph.c          Tests  tests/test_graph.c          Since 0.1
*/
GPST_API gpst_result gpst_graph_begin(gpst_stream* stream);

/* gpst_graph_end -- ends the recording and makes a graph of it

   A graph can always be launched. Where the device refuses to make one of it (capture is not possible on the vendor's
   default stream, or the device has no memory for it), launching it puts its work on the stream piece by piece, and
   gpst_graph_info says why.

   Parameters   stream  (in)   one that records
                out     (out)  the graph; NULL on failure. out NULL: what was recorded is forgotten
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_STATE (the stream does not record) | GPST_ERROR_MEMORY (of this call, or of a
                recorded one) | GPST_ERROR_DEVICE_LOST | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED. In any case the
                recording is over
   Ownership    destroy with gpst_graph_destroy, before the device. Memory, warps, kernels and all else that the
                recorded calls want to live until the stream has been there live as long as the graph
   Threads      the one that records
   Blocking     allocates; a driver takes about 10 microseconds for each piece of work
   Device       makes the graph; runs nothing
   Source       core/device/graph.c          Tests  tests/test_graph.c          Since 0.1
*/
GPST_API gpst_result gpst_graph_end(gpst_stream* stream, gpst_graph** out);

/* gpst_graph_launch -- puts all the work of a graph on a stream

   Parameters   graph   (in)  not NULL
                stream  (in)  of the graph's device; may be another one than recorded it; records nothing
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_STATE (the stream records) | GPST_ERROR_ARGUMENT | GPST_ERROR_DEVICE,
                GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED | of a graph that the device refused, what a user's kernel
                says
   Ownership    none
   Threads      any; a GPU runs launches of one graph one after the other, whatever their streams
   Blocking     as gpst_copy and the enqueue calls; no allocation
   Device       one launch
   Source       core/device/graph.c          Tests  tests/test_graph.c          Since 0.1
*/
GPST_API gpst_result gpst_graph_launch(gpst_graph* graph, gpst_stream* stream);

/* gpst_graph_destroy -- frees a graph

   Parameters   graph  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    the graph is gone. Launches of it may still be under way, except of a graph that is launched piece by
                piece (gpst_graph_info.reason is not ""): wait for the stream first
   Threads      one, and no other call on the graph is running
   Blocking     may wait for the graph's launches
   Device       frees the graph; in a forked child nothing happens
   Source       core/device/graph.c          Tests  tests/test_graph.c          Since 0.1
*/
GPST_API void gpst_graph_destroy(gpst_graph* graph);

/* gpst_graph_info -- what a graph is

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_graph_info {
    uint32_t n_commands;   /* copies, fills and kernels recorded */
    uint64_t host_bytes;   /* of the recorded list */
    uint64_t device_bytes; /* of the graph, as measured when it was made; other threads' allocations may show in it */
    uint64_t n_launches;
    char reason[160];      /* why it is launched piece by piece; "": by one launch */
} gpst_graph_info;

/* gpst_graph_query_info -- what a graph is

   Parameters   graph  (in)   NULL fills with zeroes
                out    (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/device/graph.c          Tests  tests/test_graph.c          Since 0.1
*/
GPST_API void gpst_graph_query_info(const gpst_graph* graph, gpst_graph_info* out);

/* ---- a cache of graphs ------------------------------------------------------------- */

typedef enum gpst_graph_use {
    GPST_GRAPHS_AUTO = 0,  /* where the time saved is more than 2 % of the period: see gpst_graph_cache_run. Never on
                              cpu, where nothing is saved, nor on hip, where replay was seen to cost more */
    GPST_GRAPHS_OFF = 1,   /* every run is piece by piece */
    GPST_GRAPHS_ALWAYS = 2 /* whatever it saves, from the second time on; on cpu, too */
} gpst_graph_use;

/* gpst_graph_cache_desc -- what a cache is made of; all-zero is valid

   Ownership    the caller's; read during create only
   Since 0.1
*/
typedef struct gpst_graph_cache_desc {
    uint32_t start_canary; /* 0 */
    gpst_graph_use use;
    uint32_t max_graphs;   /* 0 = 64; at most 4096 */
    /* Of the device, by all graphs, as measured; 0 = 64 MiB. Of a context's device they count against max_device_bytes,
       too. */
    uint64_t max_bytes;
    uint32_t end_canary;   /* 0 */
} gpst_graph_cache_desc;

/* gpst_graph_cache_create -- an empty cache

   Parameters   device  (in)   not NULL
                desc    (in)   NULL = all defaults
                out     (out)  the cache; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_MEMORY | GPST_ERROR_FORKED
   Ownership    destroy with gpst_graph_cache_destroy, before the device
   Threads      any
   Blocking     allocates
   Device       none
   Source       core/device/graph_cache.c          Tests  tests/test_graph_cache.c          Since 0.1
*/
#define gpst_graph_cache_create(device, desc, out) \
    gpst_graph_cache_create_versioned(GPST_VERSION, sizeof(gpst_graph_cache_desc), (device), (desc), (out))
GPST_API gpst_result gpst_graph_cache_create_versioned(uint32_t version, size_t desc_bytes, gpst_device* device,
                                                       const gpst_graph_cache_desc* desc, gpst_graph_cache** out);

/* gpst_graph_cache_destroy -- frees a cache and its graphs; gpst_graph_cache_trim -- its graphs alone

   Parameters   cache  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    destroy: the cache is gone
   Threads      destroy: one, and no other call on the cache is running; trim: any
   Blocking     may wait for launches of its graphs
   Device       frees graphs; in a forked child nothing happens
   Source       core/device/graph_cache.c          Tests  tests/test_graph_cache.c          Since 0.1
*/
GPST_API void gpst_graph_cache_destroy(gpst_graph_cache* cache);
GPST_API void gpst_graph_cache_trim(gpst_graph_cache* cache);

/* gpst_graph_cache_run -- ends what gpst_graph_begin began, and runs it: as one graph where that pays

       gpst_graph_begin(stream);
       gpst_warp_enqueue(warp, &source, outputs, n_outputs, stream);
       gpst_mask_argmax_enqueue(&logits, &labels, stream);
       gpst_graph_cache_run(cache, stream);

   What was recorded is compared byte by byte with what the cache has: kernels, shapes, types, addresses. The first time
   it runs piece by piece. The second time a graph is made of it and launched; from then on it is one launch. When the
   cache is full the graph used longest ago goes: where it has the same topology (kernels and sizes in the same order)
   it takes the new addresses, which is cheaper than a new one. Where 16 runs of a topology in a row had addresses that
   came for the first time, the next such ones do not wait for a second: a graph takes the addresses of each.

   AUTO measures what runs of a topology take on the calling thread, piece by piece and as a graph, and the time from
   one such run to the next. A graph is used only where it saves more than 2 % of that. If making one fails, runs of
   that topology stay piece by piece, and the first reason goes to the logger.

   Parameters   cache   (in)  not NULL
                stream  (in)  of the cache's device; one that records
   Shapes       none
   Returns      GPST_OK: it will run, in the order of the stream | GPST_ERROR_STATE (the stream does not record) |
                GPST_ERROR_MEMORY (of a recorded call: nothing runs) | what the recorded calls would return |
                GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED. In any case the recording is over
   Ownership    as the recorded calls: until the stream has been there. A user's gpst_kernel must do the same whenever
                its arguments' bytes are the same
   Threads      any, several at once with a stream each
   Blocking     the first time as the recorded calls, the second time about 10 microseconds for each piece of work.
                Allocates where a graph is made
   Device       runs what was recorded
   Source       core/device/graph_cache.c          Tests  tests/test_graph_cache.c          Since 0.1
*/
GPST_API gpst_result gpst_graph_cache_run(gpst_graph_cache* cache, gpst_stream* stream);

/* gpst_graph_cache_info -- what a cache holds and has done

   runs = hits + captures + updates + misses + refused

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_graph_cache_info {
    uint64_t runs;
    uint64_t hits;      /* by a graph that was there */
    uint64_t captures;  /* by one that was made for it, */
    uint64_t updates;   /* or that took its addresses */
    uint64_t misses;    /* piece by piece: seen for the first time, or to measure what that takes */
    uint64_t refused;   /* piece by piece: a graph would save too little, is not possible or not wanted */
    uint64_t evictions; /* graphs that made room */
    uint32_t n_graphs;
    uint64_t host_bytes, device_bytes;
    char reason[160];   /* why the latest refused run was; "": none was */
} gpst_graph_cache_info;

/* gpst_graph_cache_query_info -- counters

   Parameters   cache  (in)   NULL fills with zeroes
                out    (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/device/graph_cache.c          Tests  tests/test_graph_cache.c          Since 0.1
*/
GPST_API void gpst_graph_cache_query_info(gpst_graph_cache* cache, gpst_graph_cache_info* out);

#ifdef __cplusplus
}
#endif
#endif
