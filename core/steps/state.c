/* core/steps/state.c -- what a MASK stage of kind TIME keeps of each camera between two of its items: the mean so
   far, where the stage computes. One item of a camera is at it at a time: its step is ordered. */
#include "../base/platform_internal.h"

#include "../../kernels/mask/mask_internal.h"
#include "call_internal.h"

/* What a stage keeps of one camera, and where the latest value of it is. */
typedef enum gpsti_state_place {
    GPSTI_STATE_NOWHERE = 0,
    GPSTI_STATE_ON_DEVICE,
    GPSTI_STATE_ON_HOST
} gpsti_state_place;

typedef struct gpsti_state {
    gpst_buffer memory[2]; /* of the device, and of the host, made when first needed */
    gpsti_state_place place;
    gpst_image image;       /* as kernels see it */
    uint32_t width, height; /* of the picture that it is of */
} gpsti_state;

#define GPSTI_STATE_GAP 30 /* items of a camera, half a second of 60 fps: what was before says nothing more */

GPSTI_PRIVATE gpst_result gpsti_state_reserve(gpsti_item* item, gpsti_state* state, size_t bytes) {
    gpst_pipeline* const pipeline = item->pipeline;
    const bool on_host = item->work->on_host;
    gpst_buffer* const memory = &state->memory[on_host ? 1 : 0];
    if (memory->data && memory->bytes >= bytes)
        return GPST_OK;
    state->place = GPSTI_STATE_NOWHERE;
    if (on_host) {
        gpst_pool_release(pipeline->plan.pool, memory);
        return gpsti_item_take_memory(item, bytes, memory);
    }
    if (memory->data)
        gpsti_memory_release(pipeline->context, memory);
    gpsti_a64* const growths = &pipeline->memory.device_growths;
    gpst_result result = gpsti_memory_acquire_device(pipeline->context, bytes, "state", growths, memory);
    if (GPST_FAILED(result) && gpsti_grants_trim(pipeline)) /* free items had it */
        result = gpsti_memory_acquire_device(pipeline->context, bytes, "state", growths, memory);
    if (!GPST_FAILED(result))
        return result;
    item->wants[GPSTI_OF_DEVICE] += bytes;
    item->work->is_short = true;
    return result;
}

GPSTI_INTERN gpst_result gpsti_state_of(gpsti_item* item, uint32_t stage_index, const gpst_image* from,
                                        const gpst_image** out, bool* restart) {
    gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_stage* const stage = &pipeline->plan.stages[stage_index];
    gpsti_state* const state = &stage->states[item->shown.camera];
    const gpsti_state_place place = item->work->on_host ? GPSTI_STATE_ON_HOST : GPSTI_STATE_ON_DEVICE;
    const uint64_t n_missed = gpsti_call_missed(item, stage_index);
    size_t bytes = 0;
    gpst_image image;
    GPSTI_TRY(gpst_mask_query_state(stage->desc.mask, from, &image));
    GPSTI_TRY(gpst_image_bytes(&image, &bytes));
    GPSTI_TRY(gpsti_state_reserve(item, state, bytes));
    *restart = state->place != place || state->width != from->width || state->height != from->height ||
               n_missed > GPSTI_STATE_GAP;
    state->place = place;
    state->width = from->width;
    state->height = from->height;
    image.data = state->memory[item->work->on_host ? 1 : 0].data;
    state->image = image;
    *out = &state->image;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_state_forget(const gpsti_item* item, const gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++)
        if (item->pipeline->plan.stages[s].states)
            item->pipeline->plan.stages[s].states[item->shown.camera].place = GPSTI_STATE_NOWHERE;
}

GPSTI_INTERN gpst_result gpsti_states_create(gpst_pipeline* pipeline, gpsti_stage* stage) {
    if (!gpsti_stage_has_state(&stage->desc))
        return GPST_OK;
    stage->states = (gpsti_state*)gpsti_alloc(&pipeline->context->host, GPST_MAX_CAMERAS * sizeof *stage->states);
    return stage->states ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_INTERN void gpsti_states_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    for (uint32_t c = 0; stage->states && c < GPST_MAX_CAMERAS; c++) {
        if (stage->states[c].memory[0].data)
            gpsti_memory_release(pipeline->context, &stage->states[c].memory[0]);
        if (stage->states[c].memory[1].data)
            gpst_pool_release(pipeline->plan.pool, &stage->states[c].memory[1]);
    }
    if (stage->states)
        gpsti_free(&pipeline->context->host, stage->states, GPST_MAX_CAMERAS * sizeof *stage->states);
    stage->states = NULL;
}
