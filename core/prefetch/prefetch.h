/* core/prefetch/prefetch.h -- files of a list in memory, as they are or as pictures, before they are asked for, and
   kept there while there is room: in the context's memory, page-locked where asked. For access in any order from any
   thread, and for pipelines (gpst_prefetch_source). */
#ifndef GPSTI_PREFETCH_H
#define GPSTI_PREFETCH_H

#include "../files/reader.h"
#include "../pictures/decode.h"

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
    uint32_t camera;     /* as desc.n_cameras says */
    const void* data;    /* the picture's pixels; the file, where it is not decoded */
    size_t bytes;
    gpst_image picture;  /* rows without gaps; data NULL: the file is not decoded */
    bool pinned;         /* its memory is page-locked, */
    uint64_t charged_bytes; /* and takes so much of the context's max_host_bytes */
    bool has_pose;       /* how its panorama was turned, as gpst_placement says */
    gpst_view pose;
    const char* note;    /* what was mended, kept or placed in decoding, with "; " in between; "" */
} gpst_frame;

/* gpst_prefetch_file -- a file that a gpst_prefetch_func makes a picture of; read only

   Ownership    the prefetcher's; dies when the function returns
   Since 0.1
*/
typedef struct gpst_prefetch_file {
    uint64_t index;
    const char* path;
    const void* data; /* the whole file; NULL of an empty one */
    size_t bytes;
} gpst_prefetch_file;

/* Makes a picture of the file, in the room that gpst_prefetch_set_picture gives. Negative fails the frame, with the
   sentence of gpst_task_fail(NULL, ...) where it was called. On a thread of the reader's, or one that asks for the
   frame; several calls at once. It must not call the prefetcher for anything else. */
typedef gpst_result (*gpst_prefetch_func)(void* user_data, const gpst_prefetch_file* file);

/* The order of a list of several cameras, all with as many frames. */
typedef enum gpst_camera_order {
    GPST_CAMERAS_DEFAULT = 0,
    GPST_CAMERAS_BY_FRAME = 1, /* all cameras of a frame, then all of the next frame */
    GPST_CAMERAS_BY_CAMERA = 2 /* all frames of a camera, then all of the next camera */
} gpst_camera_order;

/* gpst_prefetch_desc -- a list of files, and how they will be asked for; all-zero plus paths is valid

   Frames are what decode and func make of files; with neither of them the files as they are. They are in the context's
   memory, tagged "prefetch", within max_bytes and max_host_bytes. What is not in use is given up where anybody else of
   the context needs memory. A frame that is asked for may exceed max_bytes, and takes what others can do without.

   Ownership    copied, strings, schedule and decode too; func_user_data must outlive the prefetcher
   Since 0.1
*/
typedef struct gpst_prefetch_desc {
    uint32_t start_canary;       /* 0 */
    const char* const* paths;    /* n_paths of them; required */
    uint64_t n_paths;            /* 1 .. 2^32 - 1 */
    uint32_t n_cameras;          /* whose frames paths are, as many of each; 0 = 1, at most 64 */
    gpst_camera_order list_order; /* of paths; default: by frame */
    /* How frames will be asked for, and which way gpst_prefetch_source goes. Default: it is guessed from what is asked
       for: sequence, stride, cameras in turn, circles; else nothing is fetched. The source goes as the list does. */
    gpst_camera_order walk_order;
    const uint64_t* schedule;    /* instead of walk_order: indices in the order in which they will be asked for, up to
                                    63 left out in a row. Behind its end it begins anew; the same is true of a walk */
    uint64_t n_schedule;
    uint64_t max_bytes;          /* frames in memory, those on their way too; 0 = 256 MiB. Files that are being decoded
                                    and the rounding of sizes up to 1/8 are not counted */
    uint32_t max_ahead;          /* frames ahead of what was asked for; 0 = 8, at most 64 */
    uint32_t n_in_flight;        /* frames read and decoded at once; 0 = 4, at most 64 */
    const char* kind;            /* of reading, as gpst_reader_desc has it */
    bool pinned;                 /* frames in memory that the device has page-locked, where it locks any */
    const gpst_decode_desc* decode; /* JPEG, PNM, PAM and .npy become pictures, as a DECODE stage on a core has them */
    gpst_prefetch_func func;     /* makes pictures of files: with decode of those of other kinds, else of all */
    void* func_user_data;
    uint32_t end_canary;         /* 0 */
} gpst_prefetch_desc;

/* gpst_prefetch_info -- what was asked for, and what foresight and keeping were worth

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_prefetch_info {
    char pattern[32];  /* "schedule", "sequence", "stride 3", "period 8", "none", "off" */
    uint64_t asked;    /* gpst_prefetch_get, and the source's */
    uint64_t hits;     /* of them: was there */
    uint64_t kept;     /* of the hits: had been asked for before */
    uint64_t late;     /* was on its way */
    uint64_t misses;   /* was read because it was asked for */
    uint64_t fetched;  /* read or begun ahead of being asked for */
    uint64_t used;     /* of them: asked for, in time or late */
    uint64_t wasted;   /* of them: given up without having been asked for; those that failed, too */
    uint64_t failed;   /* attempts to read or decode a frame that failed; who asks for the frame is told why */
    uint64_t decoded;  /* pictures made */
    int64_t decode_ns; /* making them took, summed over threads that do it side by side */
    int64_t saved_ns;  /* making those took that were kept: once more for each time that one was asked for again */
    uint64_t bytes, most_bytes; /* in memory now, and at most, as max_bytes counts */
    uint64_t charged_bytes;     /* of the context's max_host_bytes: with what the next frames will use again */
    uint64_t pinned_bytes;      /* of these */
    uint64_t given_up;          /* frames that others of the context needed the memory of */
    uint32_t times_off;         /* it switched itself off because half of what it fetched was wasted */
} gpst_prefetch_info;

/* gpst_prefetch_create -- a prefetcher over a list of files; nothing is read yet

   Parameters   context  (in)   outlives the prefetcher; not NULL
                desc     (in)   copied; not NULL
                out      (out)  NULL on failure
                version and desc_bytes of the second form come from the macro
   Shapes       none
   Returns      GPST_OK | ARGUMENT | OVERFLOW | VERSION | FORKED | MEMORY | what gpst_reader_create returns
   Ownership    the caller's, until gpst_prefetch_destroy
   Threads      any
   Blocking     starts n_in_flight threads; copies the list
   Device       none
   Source       core/prefetch/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
#define gpst_prefetch_create(context, desc, out) \
    gpst_prefetch_create_versioned(GPST_VERSION, sizeof(gpst_prefetch_desc), (context), (desc), (out))
GPST_API gpst_result gpst_prefetch_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_prefetch_desc* desc, gpst_prefetch** out);

/* gpst_prefetch_set_picture -- room for the picture that a gpst_prefetch_func makes

   Parameters   file   (in)   the function's
                shape  (in)   width, height, format, n_channels, dtype, layout; data and pitch are ignored
                out    (out)  the same with data and tight pitch set; all-zero on failure
   Shapes       out->data: height rows of the shape's row bytes, without gaps (CHW: plane after plane)
   Returns      GPST_OK | ARGUMENT | OVERFLOW | BUDGET (there is no room for it now: return that; a frame that is only
                foreseen is not made then) | MEMORY
   Ownership    the frame owns the memory; asking again keeps nothing of what was there
   Threads      within a call of the function, on its thread
   Blocking     may allocate
   Device       none
   Source       core/prefetch/prefetch_load.c          Tests  tests/test_prefetch_pictures.c          Since 0.1
*/
GPST_API gpst_result gpst_prefetch_set_picture(const gpst_prefetch_file* file, const gpst_image* shape,
                                               gpst_image* out);

/* gpst_prefetch_destroy -- gives up what is on its way and frees every frame

   Parameters   prefetch  (in)  NULL does nothing
   Shapes       none
   Returns      nothing
   Ownership    frames not yet released die with it
   Threads      any, once, with no other call on it under way
   Blocking     until reads in flight are done
   Device       none
   Source       core/prefetch/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
GPST_API void gpst_prefetch_destroy(gpst_prefetch* prefetch);

/* gpst_prefetch_get -- one file of the list; what will be asked for next is set going

   Parameters   prefetch  (in)   not NULL
                index     (in)   below n_paths
                out       (out)  the frame; NULL on failure
   Shapes       none
   Returns      GPST_OK | ARGUMENT | FORKED | MEMORY | BUDGET (max_host_bytes: others have the memory, or the picture is
                larger; decode's limits) | what gpst_read has as result, what a DECODE stage says of a file, or what
                func returned: of this frame only, and the next call for it tries again
   Ownership    the prefetcher's; give it back with gpst_prefetch_release
   Threads      any, several at once; the same frame may be held several times
   Blocking     until the frame is there; reads it itself when nobody has begun to
   Device       none
   Source       core/prefetch/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
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
   Source       core/prefetch/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
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
   Source       core/prefetch/prefetch.c          Tests  tests/test_prefetch.c          Since 0.1
*/
GPST_API void gpst_prefetch_query_info(gpst_prefetch* prefetch, gpst_prefetch_info* out);

#ifdef __cplusplus
}
#endif
#endif
