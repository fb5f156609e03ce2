/* core/pipeline/plan.c -- the picture sets of a pipeline, from its desc alone: which there are, who writes and reads
   each, which of them the host wants after a device stage has written them. Touches no item. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

GPSTI_INTERN bool gpsti_stage_is_offload(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_DEVICE || stage->kind == GPST_STAGE_MASK;
}

GPSTI_INTERN bool gpsti_stage_has_batches(const gpst_stage_desc* stage) {
    return stage->batch_func || stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_MASK;
}

GPSTI_INTERN bool gpsti_stage_has_bound(const gpst_stage_desc* stage) {
    return stage->queue_most > 0 || stage->full_policy != GPST_FULL_BLOCK;
}

GPSTI_INTERN const gpst_stage_desc* gpsti_step_bounded(const gpst_pipeline* pipeline, const gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++)
        if (gpsti_stage_has_bound(&pipeline->plan.stages[s].desc))
            return &pipeline->plan.stages[s].desc;
    return &pipeline->plan.stages[step->first_stage].desc;
}

GPSTI_INTERN uint32_t gpsti_step_depth(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const bool may_wait = step->kind == GPSTI_STEP_HOST || step->kind == GPSTI_STEP_OFFLOAD;
    if (may_wait && gpsti_step_bounded(pipeline, step)->full_policy == GPST_FULL_LATEST_ONLY)
        return 1;
    return step->batch_most > 0 ? gpsti_batch_preset_of(pipeline->plan.desc.preset).depth : 0;
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

/* ---- what a stage reads and writes ------------------------------------------------------------ */

GPSTI_INTERN void gpsti_stage_resolve_sets(gpst_stage_desc* stage, uint32_t earlier, uint32_t named) {
    const bool says_nothing = stage->reads == 0 && stage->writes == 0;
    const bool computes = stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_MASK;
    if ((computes || (stage->kind == GPST_STAGE_DEVICE && says_nothing)) && stage->reads == 0)
        stage->reads = GPST_SET(0);
    if ((computes || (stage->kind == GPST_STAGE_DEVICE && says_nothing)) && stage->writes == 0)
        stage->writes = GPST_SET(1);
    if (stage->kind == GPST_STAGE_DECODE && stage->writes == 0)
        stage->writes = GPST_SET(0);
    if (stage->kind == GPST_STAGE_ENCODE && stage->reads == 0)
        stage->reads = GPST_SET(1);
    if (stage->kind != GPST_STAGE_HOST || !says_nothing)
        return;
    stage->reads = stage->per_picture ? GPST_SET(1) : earlier | GPST_SET(0);
    stage->writes = stage->per_picture ? 0 : ~named; /* set 0 too, where the input has no frame */
}

/* Sets that stages name, or have by default. A HOST stage that says nothing names none. */
GPSTI_PRIVATE uint32_t gpsti_stages_named(const gpst_stage_desc* stages, uint32_t n_stages) {
    uint32_t named = 0;
    for (uint32_t s = 0; s < n_stages; s++) {
        gpst_stage_desc stage = stages[s];
        if (stage.kind == GPST_STAGE_HOST && stage.reads == 0 && stage.writes == 0)
            continue;
        gpsti_stage_resolve_sets(&stage, 0, 0);
        named |= stage.writes;
    }
    return named;
}

GPSTI_INTERN uint32_t gpsti_stages_resolve_sets(gpst_stage_desc* stages, const gpst_pipeline_desc* desc) {
    const uint32_t n_stages = desc->n_stages, named = gpsti_stages_named(stages, n_stages);
    uint32_t earlier = 0, all = GPST_SET(0) | GPST_SET(1), n_sets = GPST_MAX_SETS;
    for (uint32_t k = 0; k < GPST_MAX_SETS; k++)
        all |= desc->capacity[k] > 0 ? GPST_SET(k) : 0;
    for (uint32_t s = 0; s < n_stages; s++)
        all |= stages[s].reads | stages[s].writes;
    for (uint32_t k = 0; k < desc->n_results && k < GPST_MAX_SETS; k++)
        all |= desc->results[k].set < GPST_MAX_SETS ? GPST_SET(desc->results[k].set) : 0;
    for (uint32_t s = 0; s < n_stages; s++) {
        gpsti_stage_resolve_sets(&stages[s], earlier, named);
        stages[s].reads &= all;
        stages[s].writes &= all;
        earlier |= stages[s].writes;
    }
    while (n_sets > 0 && !(all & GPST_SET(n_sets - 1)))
        n_sets--;
    return n_sets;
}

/* ---- how many pictures ------------------------------------------------------------------------ */

GPSTI_INTERN uint32_t gpsti_stage_makes(const gpst_stage_desc* stage, uint32_t n) {
    return stage->kind == GPST_STAGE_WARP ? n * gpst_warp_n_outputs(stage->warp) : n;
}

/* A stage that reads set 0 where none before it can have written it. One that says nothing may do without. */
GPSTI_PRIVATE const char* gpsti_plan_frame_reader(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        if (stage->kind == GPST_STAGE_READ || (stage->writes & GPST_SET(0)))
            return NULL;
        if (stage->reads & GPST_SET(0))
            return stage->name;
    }
    return NULL;
}

/* May DECODE write the planes of its file? Only a WARP knows what they are. */
GPSTI_PRIVATE bool gpsti_plan_may_have_planes(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc,
                                              uint32_t decode) {
    const gpst_stage_desc* const stage = &pipeline->plan.stages[decode].desc;
    bool may = !pipeline->plan.device_on_host && !(stage->decode && stage->decode->rgb), is_read = false;
    for (uint32_t k = 0; k < desc->n_results; k++)
        may = may && !(stage->writes & GPST_SET(desc->results[k].set));
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const gpst_stage_desc* const other = &pipeline->plan.stages[s].desc;
        if (!(other->reads & stage->writes))
            continue;
        is_read = true;
        may = may && other->kind == GPST_STAGE_WARP && gpsti_stage_from(other) == gpsti_set_of(stage->writes);
    }
    return may && is_read;
}

GPSTI_INTERN void gpsti_plan_capacities(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    pipeline->plan.n_parts = 1;
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        gpsti_set_plan* const plan = &pipeline->plan.sets[k];
        plan->capacity = desc->capacity[k] > 0 ? desc->capacity[k] : 1;
        plan->writer = desc->n_stages;
    }
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        const uint32_t from = gpsti_stage_from(stage), to = gpsti_set_of(stage->writes);
        if (stage->kind == GPST_STAGE_DECODE)
            pipeline->plan.stages[s].planes = gpsti_plan_may_have_planes(pipeline, desc, s);
        if (stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_MASK)
            pipeline->plan.sets[to].capacity = gpsti_stage_makes(stage, pipeline->plan.sets[from].capacity);
        if (stage->per_picture && pipeline->plan.sets[from].capacity > pipeline->plan.n_parts)
            pipeline->plan.n_parts = pipeline->plan.sets[from].capacity;
        for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
            const bool writes = (stage->writes & GPST_SET(k)) != 0;
            if (writes && stage->per_picture && desc->capacity[k] == 0)
                pipeline->plan.sets[k].capacity = pipeline->plan.sets[from].capacity;
            if (writes && (gpsti_stage_is_offload(stage) || (desc->stages[s].writes & GPST_SET(k))))
                pipeline->plan.sets[k].writer = s;
            pipeline->plan.n_written += writes && gpsti_stage_is_offload(stage) ? pipeline->plan.sets[k].capacity : 0;
        }
    }
    pipeline->plan.frame_reader = gpsti_plan_frame_reader(pipeline, desc);
    pipeline->plan.n_written =
        pipeline->plan.n_written > 0 ? pipeline->plan.n_written : pipeline->plan.sets[1].capacity;
}

/* ---- which copies ------------------------------------------------------------------------------- */

/* Sets that are no results unless they are named: what WARP, MASK, DEVICE and ENCODE make something else of. A HOST
   stage may look at any, which are on the host then; but for the input's own frame, which is given back early. */
GPSTI_PRIVATE uint32_t gpsti_plan_used_up(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    const bool is_made =
        pipeline->plan.steps[0].kind == GPSTI_STEP_READ || pipeline->plan.sets[0].writer < desc->n_stages;
    uint32_t used_up = 0;
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        used_up |= stage->reads & (stage->kind != GPST_STAGE_HOST ? UINT32_MAX : is_made ? 0 : GPST_SET(0));
    }
    return used_up;
}

GPSTI_PRIVATE void gpsti_plan_results(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    const uint32_t used_up = gpsti_plan_used_up(pipeline, desc);
    for (uint32_t k = 0; k < desc->n_results; k++) {
        pipeline->plan.sets[desc->results[k].set].is_result = true;
        pipeline->plan.sets[desc->results[k].set].place = desc->results[k].place;
    }
    for (uint32_t k = 0; desc->n_results == 0 && k < pipeline->plan.n_sets; k++) {
        pipeline->plan.sets[k].is_result = !(used_up & GPST_SET(k));
        pipeline->plan.sets[k].place = GPST_ON_HOST;
    }
}

/* The first who wants a set there is the one that is named. */
GPSTI_PRIVATE void gpsti_plan_want(gpst_pipeline* pipeline, uint32_t sets, bool up, const char* who) {
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        char* const wanted = up ? pipeline->plan.sets[k].wanted_up : pipeline->plan.sets[k].wanted_down;
        if ((sets & GPST_SET(k)) && !wanted[0])
            gpsti_copy_text(wanted, sizeof pipeline->plan.sets[k].wanted_up, who);
    }
}

/* Sets that the host reads behind this step. */
GPSTI_PRIVATE uint32_t gpsti_plan_wanted_on_host(const gpst_pipeline* pipeline, uint32_t step) {
    uint32_t wanted = 0;
    for (uint32_t s = step + 1; s < pipeline->plan.n_steps; s++)
        if (pipeline->plan.steps[s].kind != GPSTI_STEP_HOST)
            wanted |= pipeline->plan.steps[s].lists;
        else if (pipeline->plan.stages[pipeline->plan.steps[s].first_stage].codec == GPST_CODEC_EXACT)
            wanted |= pipeline->plan.steps[s].reads; /* what the device may encode is fetched where it does not */
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++)
        wanted |= pipeline->plan.sets[k].is_result && pipeline->plan.sets[k].place == GPST_ON_HOST ? GPST_SET(k) : 0;
    return wanted;
}

/* Over the link once is what a copy takes; a second device step would have it cross again. */
GPSTI_PRIVATE bool gpsti_plan_may_be_in_place(const gpst_pipeline* pipeline, const gpsti_step* step) {
    bool may = step->one_warp && step->downloads == step->writes;
    for (uint32_t s = 0; may && s < pipeline->plan.n_steps; s++) {
        const gpsti_step* const other = &pipeline->plan.steps[s];
        may = other == step || other->kind != GPSTI_STEP_OFFLOAD ||
              ((other->reads | other->writes) & (step->reads | step->writes)) == 0;
    }
    for (uint32_t k = 0; may && k < pipeline->plan.n_sets; k++)
        may = !pipeline->plan.sets[k].is_result || pipeline->plan.sets[k].place != GPST_ON_DEVICE ||
              !((step->reads | step->writes) & GPST_SET(k));
    return may;
}

/* What nobody reads, what the user is given by name, and what is read without a look at how many there are: all but a
   HOST or DEVICE function, and a WARP by lists. */
GPSTI_PRIVATE bool gpsti_plan_is_required(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc, uint32_t set) {
    const uint32_t writer = pipeline->plan.sets[set].writer;
    bool is_read = false, required = false;
    if (writer == desc->n_stages)
        return false;
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        const bool calls = stage->kind == GPST_STAGE_HOST || stage->kind == GPST_STAGE_DEVICE;
        if (!(stage->reads & GPST_SET(set)))
            continue;
        if (gpsti_stage_is_listed(stage))
            return false;
        is_read = true;
        required = required || !calls || stage->per_picture;
    }
    for (uint32_t k = 0; k < desc->n_results; k++)
        required = required || desc->results[k].set == set;
    return required || (!is_read && (desc->stages[writer].writes & GPST_SET(set)) != 0);
}

GPSTI_INTERN void gpsti_plan_copies(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpsti_plan_results(pipeline, desc);
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        gpsti_step* const step = &pipeline->plan.steps[s];
        const bool offloads = step->kind == GPSTI_STEP_OFFLOAD;
        step->downloads = offloads ? step->writes & gpsti_plan_wanted_on_host(pipeline, s) : 0;
        for (uint32_t i = 0; i < step->n_stages; i++) {
            const gpst_stage_desc* const stage = &pipeline->plan.stages[step->first_stage + i].desc;
            const uint32_t lists = gpsti_stage_host_list(stage);
            gpsti_plan_want(pipeline, stage->reads & ~lists & step->needs, offloads, stage->name);
            gpsti_plan_want(pipeline, lists, false, stage->name);
        }
        for (uint32_t k = 0; k < pipeline->plan.n_sets; k++)
            if (step->reads & GPST_SET(k))
                pipeline->plan.sets[k].last_step = s;
    }
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        pipeline->plan.steps[s].in_place = gpsti_plan_may_be_in_place(pipeline, &pipeline->plan.steps[s]);
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        gpsti_set_plan* const plan = &pipeline->plan.sets[k];
        plan->is_required = gpsti_plan_is_required(pipeline, desc, k);
        if (!plan->is_result)
            continue;
        plan->last_step = pipeline->plan.n_steps - 1;
        gpsti_plan_want(pipeline, GPST_SET(k), plan->place == GPST_ON_DEVICE, "result");
    }
}
