/* core/jobs/frame_mask.c -- a mask of each frame's own: asked for, and done to its views behind the warps. */
#include "../base/platform_internal.h"

#include "jobs_internal.h"

#include <string.h>

GPSTI_INTERN gpst_result gpsti_files_job_load_mask(void* user_data, gpst_task* task) {
    const gpst_job_hooks* const hooks = ((const gpsti_files_job*)user_data)->desc.hooks;
    const gpst_image* const frame = &task->item->sets[GPSTI_JOB_FRAME].pictures[0];
    const gpst_set* const masks = &task->item->sets[GPSTI_JOB_MASK];
    GPSTI_TRY(hooks->mask(hooks->user_data, task));
    if (masks->n != 1)
        return gpst_task_fail(task, GPST_ERROR_CALLBACK, "the mask hook set %u pictures of set %u: must be one",
                              masks->n, (unsigned)GPSTI_JOB_MASK);
    const gpst_image* const mask = &masks->pictures[0];
    if (mask->format != GPST_FORMAT_GRAY || (mask->dtype != GPST_DTYPE_DEFAULT && mask->dtype != GPST_DTYPE_U8))
        return gpst_task_fail(task, GPST_ERROR_ARGUMENT, "mask.format=%d, dtype=%d: must be GRAY and U8",
                              (int)mask->format, (int)mask->dtype);
    if (mask->width != frame->width || mask->height != frame->height)
        return gpst_task_fail(task, GPST_ERROR_ARGUMENT, "the mask has %u x %u pixels: must be the frame's %u x %u",
                              mask->width, mask->height, frame->width, frame->height);
    return GPST_OK;
}

/* A set does not change once it is written: the views are copied. */
GPSTI_PRIVATE void gpsti_files_job_copy_kept(const gpst_image* view, const gpst_image* mask, const gpst_image* out) {
    const size_t row_bytes = gpst_image_row_bytes(view), pixel_bytes = row_bytes / view->width;
    for (uint32_t y = 0; y < view->height; y++) {
        uint8_t* const to = (uint8_t*)out->data + (int64_t)y * out->pitch_bytes;
        const uint8_t* const keep = (const uint8_t*)mask->data + (int64_t)y * mask->pitch_bytes;
        memcpy(to, (const uint8_t*)view->data + (int64_t)y * view->pitch_bytes, row_bytes);
        for (uint32_t x = 0; x < view->width; x++)
            if (keep[x] == 0)
                memset(to + x * pixel_bytes, 0, pixel_bytes);
    }
}

GPSTI_INTERN gpst_result gpsti_files_job_apply_mask(void* user_data, gpst_task* task) {
    const gpst_set* const views = &task->item->sets[GPSTI_JOB_VIEWS];
    const gpst_set* const masks = &task->item->sets[GPSTI_JOB_VIEW_MASKS];
    (void)user_data;
    for (uint32_t v = 0; v < views->n; v++) {
        gpst_image out;
        GPSTI_TRY(gpst_task_set_picture(task, GPSTI_JOB_MASKED, v, &views->pictures[v], &out));
        gpsti_files_job_copy_kept(&views->pictures[v], &masks->pictures[v], &out);
    }
    return GPST_OK;
}
