/* core/items/stage.c -- stages in one line, and what the desc of a stage says. */
#include "../base/platform_internal.h"

#include "../../kernels/warp/warp_internal.h"
#include "pipeline_internal.h"

#include <string.h>

/* ---- stages in one line -------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_stage_set(gpst_stage_desc* out, gpst_stage_kind kind, uint32_t reads, uint32_t writes) {
    memset(out, 0, sizeof *out);
    out->kind = kind;
    out->reads = reads;
    out->writes = writes;
}

/* A number that is none becomes a bit that the check refuses. */
GPSTI_PRIVATE uint32_t gpsti_set_bit(uint32_t set) { return GPST_SET(set < GPST_MAX_SETS ? set : GPST_MAX_SETS); }

GPST_API void gpst_stage_read(gpst_stage_desc* out) {
    if (out)
        gpsti_stage_set(out, GPST_STAGE_READ, 0, 0);
}

GPST_API void gpst_stage_write(gpst_stage_desc* out) {
    if (out)
        gpsti_stage_set(out, GPST_STAGE_WRITE, 0, 0);
}

GPST_API void gpst_stage_decode(gpst_stage_desc* out, uint32_t to, const gpst_decode_desc* decode) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_DECODE, 0, gpsti_set_bit(to));
    out->decode = decode;
}

GPST_API void gpst_stage_encode(gpst_stage_desc* out, uint32_t from, const gpst_encode_desc* encode,
                                gpst_stage_func func, void* user_data) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_ENCODE, gpsti_set_bit(from), 0);
    out->encode = encode;
    out->func = func;
    out->user_data = user_data;
}

GPST_API void gpst_stage_host(gpst_stage_desc* out, uint32_t reads, uint32_t writes, gpst_stage_func func,
                              void* user_data) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_HOST, reads, writes);
    out->func = func;
    out->user_data = user_data;
}

GPST_API void gpst_stage_device(gpst_stage_desc* out, uint32_t reads, uint32_t writes, gpst_stage_func func,
                                void* user_data) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_DEVICE, reads, writes);
    out->func = func;
    out->user_data = user_data;
}

GPST_API void gpst_stage_warp(gpst_stage_desc* out, uint32_t from, uint32_t to, const gpst_warp* warp) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_WARP, gpsti_set_bit(from), gpsti_set_bit(to));
    out->warp = warp;
}

GPST_API void gpst_stage_list(gpst_stage_desc* out, uint32_t from, uint32_t list, uint32_t to, const gpst_warp* warp) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_WARP, gpsti_set_bit(from) | gpsti_set_bit(list), gpsti_set_bit(to));
    out->second_set = list;
    out->warp = warp;
}

GPST_API void gpst_stage_mask(gpst_stage_desc* out, uint32_t from, uint32_t to, const gpst_mask_desc* mask) {
    if (!out)
        return;
    gpsti_stage_set(out, GPST_STAGE_MASK, gpsti_set_bit(from), gpsti_set_bit(to));
    out->mask = mask;
}

GPST_API gpst_result_set gpst_result_of(uint32_t set, gpst_place place) {
    gpst_result_set result;
    result.set = set;
    result.place = place;
    return result;
}

/* ---- what a desc says ----------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_stage_is_device(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_DEVICE || stage->kind == GPST_STAGE_MASK;
}

GPSTI_INTERN uint32_t gpsti_set_of(uint32_t sets) {
    uint32_t set = 0;
    while (set + 1 < GPST_MAX_SETS && !(sets & GPST_SET(set)))
        set++;
    return set;
}

GPSTI_INTERN bool gpsti_stage_has_second(const gpst_stage_desc* stage) {
    return (stage->reads & (stage->reads - 1)) != 0;
}

GPSTI_INTERN uint32_t gpsti_stage_from(const gpst_stage_desc* stage) {
    const bool two = gpsti_stage_has_second(stage) && stage->second_set < GPST_MAX_SETS;
    return gpsti_set_of(two ? stage->reads & ~GPST_SET(stage->second_set) : stage->reads);
}

GPSTI_INTERN bool gpsti_stage_is_listed(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_WARP && gpsti_stage_has_second(stage);
}

GPSTI_INTERN uint32_t gpsti_stage_host_list(const gpst_stage_desc* stage) {
    const bool here = gpsti_stage_is_listed(stage) && stage->warp->desc.map != GPST_MAP_ROI;
    return here ? GPST_SET(stage->second_set) : 0;
}

GPSTI_INTERN uint32_t gpsti_stage_makes(const gpst_stage_desc* stage, uint32_t n) {
    return stage->kind == GPST_STAGE_WARP ? n * gpst_warp_n_outputs(stage->warp) : n;
}

GPSTI_INTERN bool gpsti_stage_has_state(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_MASK && stage->mask && stage->mask->kind == GPST_MASK_TIME;
}

GPSTI_INTERN const char* gpsti_stage_default_name(gpst_stage_kind kind) {
    static const char* const names[] = {"", "read", "stage", "kernel", "device", "write", "mask", "decode", "encode"};
    return names[(int)kind];
}

GPSTI_INTERN bool gpsti_stage_has_batches(const gpst_stage_desc* stage) {
    return stage->batch_func || stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_MASK;
}

GPSTI_INTERN bool gpsti_stage_has_bound(const gpst_stage_desc* stage) {
    return stage->queue_most > 0 || stage->full_policy != GPST_FULL_BLOCK;
}

/* ---- what a step is ------------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_step_is_device(const gpsti_plan* plan, const gpsti_step* step) {
    return step->n_stages > 0 && gpsti_stage_is_device(&plan->stages[step->first_stage].desc);
}

GPSTI_INTERN gpsti_step* gpsti_batch_step(const gpsti_batch* batch) {
    return &batch->item->pipeline->plan.steps[batch->step];
}

GPSTI_INTERN const gpst_stage_desc* gpsti_step_bounded(const gpsti_plan* plan, const gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++)
        if (gpsti_stage_has_bound(&plan->stages[s].desc))
            return &plan->stages[s].desc;
    return &plan->stages[step->first_stage].desc;
}

GPSTI_INTERN uint32_t gpsti_step_depth(const gpsti_plan* plan, const gpsti_step* step) {
    if (gpsti_step_bounded(plan, step)->full_policy == GPST_FULL_LATEST_ONLY)
        return 1;
    return step->batch_most > 0 ? gpsti_batch_preset_of(plan->desc.preset).depth : 0;
}

GPSTI_INTERN const char* gpsti_step_name(const gpsti_plan* plan, const gpsti_step* step) {
    return step->n_stages > 0 ? gpsti_step_bounded(plan, step)->name : "sink";
}
