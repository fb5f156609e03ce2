/* core/pipeline/frame_source.c -- the frames of a prefetcher as the inputs of a pipeline. Owns nothing. */
#include "../base/platform_internal.h"

#include "../prefetch/prefetch_internal.h"
#include "frame_source.h"

GPSTI_PRIVATE void gpsti_frame_source_release(void* user_data) {
    gpsti_prefetch_entry* const entry = (gpsti_prefetch_entry*)user_data;
    gpst_prefetch_release(entry->prefetch, &entry->frame);
}

GPST_API gpst_result gpst_prefetch_source(void* prefetch, uint64_t index, gpst_input* out) {
    const char* function = "gpst_prefetch_source";
    gpst_prefetch* const self = (gpst_prefetch*)prefetch;
    const gpst_frame* frame = NULL;
    uint64_t which = 0;
    bool starved = false;
    GPSTI_FAIL_IF(!self, GPST_ERROR_ARGUMENT, "%s: source_user_data=NULL: the prefetcher is required", function);
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: required", function);
    if (!gpsti_prefetch_walk(self, index, &which))
        return GPST_END;
    out->path = self->paths[which];
    out->camera = gpsti_prefetch_camera(self, which);
    GPSTI_FAIL_IF(!self->desc.decode && !self->desc.func, GPST_ERROR_STATE,
                  "%s: the prefetcher has neither decode nor func: its frames are no pictures", function);
    const gpst_result result = gpsti_prefetch_get_at(self, which, index + 1, &frame, &starved);
    if (GPST_FAILED(result))
        return starved ? GPST_ERROR_WOULD_BLOCK : result;
    out->frame = frame->picture;
    out->charged_bytes = frame->charged_bytes;
    out->pose = frame->has_pose ? &frame->pose : NULL;
    out->note = frame->note;
    out->release = gpsti_frame_source_release;
    out->release_user_data = (void*)(uintptr_t)frame;
    return GPST_OK;
}
