/* core/files/prefetch.h -- files of a list, decoded if wanted, in memory before they are
   asked for, and kept there while there is room. For access in any order from any thread. */
#ifndef GPSTI_PREFETCH_H
#define GPSTI_PREFETCH_H

#include "reader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_prefetch gpst_prefetch;

/* gpst_frame -- one file of the list in memory; read only

   Ownership    the prefetcher's; lives from gpst_prefetch_get to gpst_prefetch_release
   Since 0.1
*/
typedef struct gpst_frame {
    uint64_t index;
    const char* path;
    const void* data; /* the file, or what decode made of it */
    size_t bytes;
} gpst_frame;

/* gpst_prefetch_desc -- a list of files, and how they will be asked for; all-zero plus paths is valid

   Ownership    copied, strings and schedule too; decode_user_data must outlive the prefetcher
   Since 0.1
*/
typedef struct gpst_prefetch_desc {
    uint32_t start_canary;       /* 0 */
    const char* const* paths;    /* n_paths of them; required */
    uint64_t n_paths;            /* 1 .. 2^32 - 1 */
    const uint64_t* schedule;    /* indices in the order in which they will be asked for, up to 63 left out in a row;
                                    NULL = it is guessed from what is asked for: sequence, stride, cameras in turn,
                                    circles; else nothing is fetched */
    uint64_t n_schedule;
    uint64_t max_bytes;          /* frames in memory; 0 = 256 MiB. One that is in use may exceed it */
    uint32_t max_ahead;          /* frames ahead of what was asked for; 0 = 8, at most 64 */
    uint32_t n_in_flight;        /* reads at once; 0 = 4, at most 64 */
    const char* kind;            /* of reading, as gpst_reader_desc has it */
    /* Optional: makes the frame from the file, on a thread of the reader's or on one that asks. *out is from the C
       library's or any other memory that decode_free gives back; negative fails the frame. */
    gpst_result (*decode)(void* user_data, uint64_t index, const void* file, size_t file_bytes, void** out,
                          size_t* out_bytes);
    void (*decode_free)(void* user_data, void* frame, size_t frame_bytes); /* required with decode */
    void* decode_user_data;
    uint32_t end_canary;         /* 0 */
} gpst_prefetch_desc;

/* gpst_prefetch_info -- what was asked for, and what foresight was worth

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_prefetch_info {
    char pattern[32];  /* "schedule", "sequence", "stride 3", "period 8", "none", "off" */
    uint64_t asked;    /* gpst_prefetch_get */
    uint64_t hits;     /* of them: was there */
    uint64_t late;     /* was on its way */
    uint64_t misses;   /* was read because it was asked for */
    uint64_t fetched;  /* read or begun ahead of being asked for */
    uint64_t used;     /* of them: asked for, in time or late */
    uint64_t wasted;   /* given up without having been asked for */
    uint64_t failed;   /* frames that could not be read or decoded; told to who asks for them */
    uint64_t bytes, most_bytes; /* in memory now, and at most */
    uint32_t times_off;         /* it switched itself off because half of what it fetched was wasted */
} gpst_prefetch_info;

/* gpst_prefetch_create -- a prefetcher over a list of files; nothing is read yet

   Parameters   context  (in)   outlives the prefetcher; not NULL
                desc     (in)   copied; not NULL
                out      (out)  NULL on failure
                version and desc_bytes of the second form come from the macro
   Shapes       none
   Returns      GPST_OK | ARGUMENT | VERSION | FORKED | MEMORY | what gpst_reader_create returns
   Ownership    the caller's, until gpst_prefetch_destroy
   Threads      any
   Blocking     starts n_in_flight threads; copies the list
   Device       none
   Source       core/files/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
#define gpst_prefetch_create(context, desc, out) \
    gpst_prefetch_create_versioned(GPST_VERSION, sizeof(gpst_prefetch_desc), (context), (desc), (out))
GPST_API gpst_result gpst_prefetch_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_prefetch_desc* desc, gpst_prefetch** out);

/* gpst_prefetch_destroy -- gives up what is on its way and frees every frame

   Parameters   prefetch  (in)  NULL does nothing
   Shapes       none
   Returns      nothing
   Ownership    frames not yet released die with it
   Threads      any, once, with no other call on it under way
   Blocking     until reads in flight are done
   Device       none
   Source       core/files/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
GPST_API void gpst_prefetch_destroy(gpst_prefetch* prefetch);

/* gpst_prefetch_get -- one file of the list; what will be asked for next is set going

   Parameters   prefetch  (in)   not NULL
                index     (in)   below n_paths
                out       (out)  the frame; NULL on failure
   Shapes       none
   Returns      GPST_OK | ARGUMENT | FORKED | MEMORY | what gpst_read has as result, or what decode returned: of this
                frame only, and the next call for it tries again
   Ownership    the prefetcher's; give it back with gpst_prefetch_release
   Threads      any, several at once; the same frame may be held several times
   Blocking     until the frame is there; reads it itself when nobody has begun to
   Device       none
   Source       core/files/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
GPST_API gpst_result gpst_prefetch_get(gpst_prefetch* prefetch, uint64_t index, const gpst_frame** out);

/* gpst_prefetch_release -- gives a frame back; it stays in memory while there is room

   Parameters   prefetch  (in)
                frame     (in)  from gpst_prefetch_get, once for each; NULL does nothing
   Shapes       none
   Returns      nothing
   Ownership    the frame's pointers are dead afterwards
   Threads      any
   Blocking     never
   Device       none
   Source       core/files/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
GPST_API void gpst_prefetch_release(gpst_prefetch* prefetch, const gpst_frame* frame);

/* gpst_prefetch_query_info -- counters

   Parameters   prefetch  (in)   NULL gives all zero
                out       (out)  not NULL
   Shapes       none
   Returns      nothing
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/files/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
GPST_API void gpst_prefetch_query_info(gpst_prefetch* prefetch, gpst_prefetch_info* out);

#ifdef __cplusplus
}
#endif
#endif
