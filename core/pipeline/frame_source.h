/* core/pipeline/frame_source.h -- the frames of a prefetcher as the inputs of a pipeline. */
#ifndef GPSTI_FRAME_SOURCE_H
#define GPSTI_FRAME_SOURCE_H

#include "../prefetch/prefetch.h"
#include "pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_prefetch_source -- the source of a pipeline whose set 0 are the frames of a prefetcher: desc.source, with the
   prefetcher as desc.source_user_data

   Frames come in the order of the schedule, else of the walk, else of the list; every pipeline begins at its beginning.
   They are lent, not copied; items have their path, camera, pose and note. A file that cannot be read or decoded fails
   its own item. Where items in flight or kept by the sink have the context's memory the next frame waits until one of
   them has ended or was released.

   Parameters   prefetch  (in)   the gpst_prefetch, made with decode or func
                index     (in)   the item's
                out       (out)  the frame, with release
   Shapes       none
   Returns      GPST_OK | GPST_END | WOULD_BLOCK (others have the memory) | STATE (frames are no pictures) | what
                gpst_prefetch_get returns
   Ownership    the prefetcher's; out->release gives the frame back. The prefetcher must outlive the pipeline's run
   Threads      a pipeline's source; several pipelines may have the same prefetcher, one after the other where its
                foresight is to be right
   Blocking     as gpst_prefetch_get
   Device       none
   Source       core/pipeline/frame_source.c          Tests  tests/test_prefetch_source.c          Since 0.1
*/
GPST_API gpst_result gpst_prefetch_source(void* prefetch, uint64_t index, gpst_input* out);

#ifdef __cplusplus
}
#endif
#endif
