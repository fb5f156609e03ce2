/* core/pipeline/plan.c -- from a desc, before any item: the picture sets, the steps that stages become, who writes and
   reads each set, and how many items go together. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

#include <string.h>

/* ---- what a stage reads and writes ------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_stage_resolve_sets(gpst_stage_desc* stage, uint32_t earlier, uint32_t named) {
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
            if (writes && (gpsti_stage_is_device(stage) || (desc->stages[s].writes & GPST_SET(k))))
                pipeline->plan.sets[k].writer = s;
            pipeline->plan.n_written += writes && gpsti_stage_is_device(stage) ? pipeline->plan.sets[k].capacity : 0;
        }
    }
    pipeline->plan.frame_reader = gpsti_plan_frame_reader(pipeline, desc);
    pipeline->plan.n_written =
        pipeline->plan.n_written > 0 ? pipeline->plan.n_written : pipeline->plan.sets[1].capacity;
}

/* ---- stages become steps ------------------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_clock_name(gpst_pipeline* pipeline, const char* name, gpst_resource resource) {
    gpsti_clock* const clock = &pipeline->counts.clocks[pipeline->counts.n_clocks++];
    gpsti_copy_text(clock->name, sizeof clock->name, name);
    clock->resource = resource;
}

GPSTI_PRIVATE void gpsti_step_add_clocks(gpst_pipeline* pipeline, gpsti_step* step) {
    const bool on_cores = step->kind->resource == GPST_RESOURCE_GPU && pipeline->plan.device_on_host;
    const gpst_resource resource = on_cores ? GPST_RESOURCE_CPU : step->kind->resource;
    step->first_clock = pipeline->counts.n_clocks;
    if (step->kind->joins)
        gpsti_clock_name(pipeline, "upload", GPST_RESOURCE_H2D);
    for (uint32_t s = 0; s < step->n_stages; s++)
        gpsti_clock_name(pipeline, pipeline->plan.stages[step->first_stage + s].name, resource);
    if (step->kind->joins)
        gpsti_clock_name(pipeline, "download", GPST_RESOURCE_D2H);
}

GPSTI_PRIVATE void gpsti_step_find_sets(const gpst_pipeline* pipeline, gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        step->needs |= stage->reads & ~step->writes & ~gpsti_stage_host_list(stage);
        step->lists |= gpsti_stage_host_list(stage);
        step->reads |= stage->reads;
        step->writes |= stage->writes;
    }
}

/* Parts go on where the next stage has the same pictures, and to be written. */
GPSTI_PRIVATE bool gpsti_step_is_chained(const gpst_pipeline* pipeline, const gpsti_step* step) {
    return step > pipeline->plan.steps && step->per_picture && step[-1].per_picture &&
           (step->reads == 0 ||               /* what is written */
            (step->reads == step[-1].reads && /* what the device may encode together is not split */
             pipeline->plan.stages[step[-1].first_stage].codec == GPST_CODEC_EXACT));
}

/* Items that one stage wants to be told at once; 0: it says nothing. What has no batches is told each item alone,
   whatever batch_most says. */
GPSTI_PRIVATE uint32_t gpsti_stage_batch_most(const gpst_pipeline* pipeline, const gpst_stage_desc* stage) {
    return !gpsti_stage_has_batches(stage)               ? 0
           : stage->batch_most == 0 && stage->batch_func ? gpsti_batch_preset_of(pipeline->plan.desc.preset).batch_most
                                                         : stage->batch_most;
}

/* Two stages in one submission: a batch function is told no more than its own batch_most; and what it fails for is done
   again, by every stage of the submission, which one that keeps something of its camera must not. */
GPSTI_PRIVATE bool gpsti_stages_agree(const gpst_pipeline* pipeline, const gpst_stage_desc* a,
                                      const gpst_stage_desc* b) {
    const uint32_t a_most = gpsti_stage_batch_most(pipeline, a), b_most = gpsti_stage_batch_most(pipeline, b);
    const bool a_keeps = a->stateful || gpsti_stage_has_state(a), b_keeps = b->stateful || gpsti_stage_has_state(b);
    return !(a->batch_func && b_most > a_most) && !(b->batch_func && a_most > b_most) && !(a->batch_func && b_keeps) &&
           !(b->batch_func && a_keeps);
}

/* May stage s be submitted with those from first on? Not where items may wait in front of it, but for LATEST_ONLY: the
   newest waits in front of them all, since what the device makes of it meanwhile would stand behind this stage there.
   And a list that the host reads must have been written before. */
GPSTI_PRIVATE bool gpsti_stage_goes_along(const gpst_pipeline* pipeline, uint32_t first, uint32_t s) {
    const gpsti_stage* const stages = pipeline->plan.stages;
    uint32_t written = 0;
    if (s == pipeline->plan.desc.n_stages || !gpsti_stage_is_device(&stages[s].desc))
        return false;
    const bool latest = stages[s].desc.full_policy == GPST_FULL_LATEST_ONLY;
    if (gpsti_stage_has_bound(&stages[s].desc) && !latest)
        return false;
    for (uint32_t before = first; before < s; before++) {
        written |= stages[before].desc.writes;
        if ((latest && gpsti_stage_has_bound(&stages[before].desc)) ||
            !gpsti_stages_agree(pipeline, &stages[before].desc, &stages[s].desc))
            return false;
    }
    return (gpsti_stage_host_list(&stages[s].desc) & written) == 0;
}

GPSTI_PRIVATE bool gpsti_step_is_stateful(const gpst_pipeline* pipeline, const gpsti_step* step) {
    for (uint32_t s = 0; s < step->n_stages; s++)
        if (pipeline->plan.stages[step->first_stage + s].desc.stateful ||
            gpsti_stage_has_state(&pipeline->plan.stages[step->first_stage + s].desc))
            return true;
    return false;
}

/* The largest that one of its stages wants. */
GPSTI_PRIVATE void gpsti_step_find_batch(const gpst_pipeline* pipeline, gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++) {
        const uint32_t most = gpsti_stage_batch_most(pipeline, &pipeline->plan.stages[s].desc);
        step->batch_most = most > step->batch_most ? most : step->batch_most;
    }
}

/* What the stage says; LATEST_ONLY of the pipeline is that of every stage which says nothing. Items queue in front of
   the first step, and of those that not every item may enter at once. */
GPSTI_PRIVATE void gpsti_steps_bound(gpst_pipeline* pipeline) {
    const bool all = pipeline->plan.desc.full_policy == GPST_FULL_LATEST_ONLY;
    gpsti_step* holds = NULL;
    for (uint32_t s = pipeline->plan.n_steps - 1; s-- > 0;) { /* the last one has none */
        gpsti_step* const step = &pipeline->plan.steps[s];
        const gpst_stage_desc* const stage = gpsti_step_bounded(&pipeline->plan, step);
        const bool says = gpsti_stage_has_bound(stage);
        step->full_policy = says ? stage->full_policy : all ? GPST_FULL_LATEST_ONLY : GPST_FULL_BLOCK;
        step->queue_most = step->full_policy == GPST_FULL_LATEST_ONLY ? 1 : stage->queue_most;
        if (!says && step->full_policy == GPST_FULL_BLOCK && step->batch_most > 0)
            step->queue_most = step->batch_most * gpsti_batch_preset_of(pipeline->plan.desc.preset).queue_batches;
        step->held_by = holds;
        if (step->queue_most > 0 && step->full_policy == GPST_FULL_BLOCK && s > 0)
            holds = step;
    }
}

/* Steps that follow one another, with a last one for the ends of items. */
GPSTI_PRIVATE void gpsti_step_make(gpst_pipeline* pipeline, const gpsti_step_kind* kind, uint32_t first, uint32_t end,
                                   bool asynchronous) {
    gpsti_step* const step = &pipeline->plan.steps[pipeline->plan.n_steps];
    const gpst_stage_desc* const stage = end > first ? &pipeline->plan.stages[first].desc : NULL;
    step->kind = kind;
    step->index = pipeline->plan.n_steps++;
    step->first_stage = first;
    step->n_stages = end - first;
    step->count = kind->count;
    gpsti_step_find_sets(pipeline, step);
    step->one_warp = stage && stage->kind == GPST_STAGE_WARP && step->n_stages == 1;
    step->per_picture = stage && stage->per_picture;
    step->ordered = (stage && stage->ordered) || gpsti_step_is_stateful(pipeline, step);
    gpsti_step_find_batch(pipeline, step);
    step->batch = step->batch_most > 0 ? step->batch_most : 1;
    if (kind->plan)
        kind->plan(pipeline, step, asynchronous);
    step->chained = gpsti_step_is_chained(pipeline, step);
    step->gated = step->gated || step->concurrency > 0 || step->ordered;
    if (step->n_stages + 3 > pipeline->plan.n_events) /* before and after each of upload, stages, download */
        pipeline->plan.n_events = step->n_stages + 3;
    if (stage)
        gpsti_step_add_clocks(pipeline, step);
}

GPSTI_INTERN void gpsti_plan_steps(gpst_pipeline* pipeline, bool asynchronous) {
    const uint32_t n_stages = pipeline->plan.desc.n_stages;
    for (uint32_t s = 0, first = 0; s < n_stages; first = s) {
        const gpsti_step_kind* const kind = gpsti_kind_of(pipeline->plan.stages[s++].desc.kind);
        while (kind->joins && gpsti_stage_goes_along(pipeline, first, s))
            s++;
        gpsti_step_make(pipeline, kind, first, s, asynchronous);
    }
    gpsti_step_make(pipeline, gpsti_step_finish(), n_stages, n_stages, asynchronous);
    gpsti_steps_bound(pipeline);
}

/* ---- which copies ------------------------------------------------------------------------------- */

/* Sets that are no results unless they are named: what WARP, MASK, DEVICE and ENCODE make something else of. A HOST
   stage may look at any, which are on the host then; but for the input's own frame, which is given back early. */
GPSTI_PRIVATE uint32_t gpsti_plan_used_up(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    const bool is_made =
        pipeline->plan.steps[0].kind == gpsti_step_read() || pipeline->plan.sets[0].writer < desc->n_stages;
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
        if (pipeline->plan.steps[s].kind->joins)
            wanted |= pipeline->plan.steps[s].lists;
        else if (pipeline->plan.steps[s].n_stages > 0 &&
                 pipeline->plan.stages[pipeline->plan.steps[s].first_stage].codec == GPST_CODEC_EXACT)
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
        may = other == step || !other->kind->joins ||
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
        const bool offloads = step->kind->joins;
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

/* ---- how many go together ---------------------------------------------------------------------- */

#define GPSTI_MOST_BATCH_PICTURES 1024u

/* A DEVICE stage calls the user's function for each item: only a WARP of single pictures has batches. */
GPSTI_INTERN uint32_t gpsti_plan_batch_most(const gpst_pipeline* pipeline, bool asynchronous) {
    const uint32_t fit = GPSTI_MOST_BATCH_PICTURES / pipeline->plan.n_written;
    bool alone = false;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        const gpsti_step* const step = &pipeline->plan.steps[s];
        if (!step->kind->joins)
            continue;
        alone = step->one_warp &&
                pipeline->plan.sets[gpsti_stage_from(&pipeline->plan.stages[step->first_stage].desc)].capacity == 1;
        if (!alone)
            break;
    }
    if (!alone || !asynchronous || pipeline->plan.device_on_host || pipeline->plan.desc.mode != GPST_RUN_ENGINE ||
        fit < 2)
        return 1;
    return fit < GPSTI_MOST_BATCH ? fit : GPSTI_MOST_BATCH;
}

GPSTI_INTERN uint32_t gpsti_plan_room(const gpst_pipeline* pipeline) {
    bool may = pipeline->plan.batch_most > 1;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        const gpsti_step* const step = &pipeline->plan.steps[s];
        may = may || step->batch_most > 1 || (step->gated && !step->kind->joins && step->kind->goes_along);
    }
    return may ? GPSTI_MOST_BATCH : 1;
}

GPSTI_INTERN void gpsti_plan_set_batch(gpst_pipeline* pipeline, uint32_t batch) {
    const uint32_t in_three = pipeline->items.n_slots / 3; /* one batch uploads, one is computed, one downloads */
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        gpsti_step* const step = &pipeline->plan.steps[s];
        const bool together = step->kind->joins && pipeline->plan.batch_most > 1 && batch > 1;
        step->batch = !together ? 1 : batch < pipeline->plan.batch_most ? batch : pipeline->plan.batch_most;
        step->batch = step->batch_most > 0 ? step->batch_most : step->batch;
        /* The engine waits for a batch size that the user gave; else what is ready goes at once. */
        const bool waits = pipeline->plan.desc.batch > 0 && pipeline->plan.desc.preset != GPST_PRESET_LATENCY;
        step->batch_full = !waits ? 1 : step->batch < in_three ? step->batch : in_three;
        /* A second batch that is not full would only stand behind the first, and take what should go together. */
        step->batch_full = step->batch_most > 0 ? step->batch_most : step->batch_full;
    }
}
