/* core/steps/graphs.c -- device steps as graphs: which steps may be, a submission's kernels recorded and run. The
   cache is core/device/graph_cache.c's. Copies stay outside: their host memory changes from item to item. */
#include "../base/platform_internal.h"

#include "call_internal.h"

#define GPSTI_STEP_GRAPHS_PART 8 /* of the device's budget is for graphs at most */
#define GPSTI_STEP_GRAPHS_MOST_BYTES ((uint64_t)64 << 20)
#define GPSTI_STEP_GRAPHS_TIMED 8 /* with ALWAYS, one in so many */
#define GPSTI_STEP_GRAPHS_FEWEST 64
#define GPSTI_STEP_GRAPHS_MOST 1024

/* A single WARP is one launch already. */
GPSTI_PRIVATE bool gpsti_graphs_may(const gpst_pipeline* pipeline, const gpsti_step* step) {
    bool may = step->kind->joins && !step->one_warp;
    for (uint32_t s = 0; may && s < step->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[step->first_stage + s].desc;
        may = stage->kind != GPST_STAGE_DEVICE || stage->capturable;
    }
    return may;
}

GPSTI_INTERN gpst_result gpsti_graphs_create(gpst_pipeline* pipeline) {
    gpst_graph_cache_desc desc = GPST_ZERO;
    const uint64_t part = pipeline->context->info.max_device_bytes / GPSTI_STEP_GRAPHS_PART;
    uint32_t n_steps = 0;
    if (pipeline->plan.desc.graphs == GPST_GRAPHS_OFF || pipeline->plan.device_on_host)
        return GPST_OK;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        pipeline->plan.steps[s].capturable = gpsti_graphs_may(pipeline, &pipeline->plan.steps[s]);
        n_steps += pipeline->plan.steps[s].capturable ? 1 : 0;
    }
    if (n_steps == 0)
        return GPST_OK;
    const uint32_t wanted = 2 * pipeline->items.n_slots * n_steps; /* each slot has memory of its own */
    desc.use = pipeline->plan.desc.graphs;
    desc.max_graphs = wanted < GPSTI_STEP_GRAPHS_FEWEST ? GPSTI_STEP_GRAPHS_FEWEST
                      : wanted > GPSTI_STEP_GRAPHS_MOST ? GPSTI_STEP_GRAPHS_MOST
                                                        : wanted;
    desc.max_bytes = part > 0 && part < GPSTI_STEP_GRAPHS_MOST_BYTES ? part : GPSTI_STEP_GRAPHS_MOST_BYTES;
    return gpst_graph_cache_create(&pipeline->context->public_device, &desc, &pipeline->plan.graphs);
}

/* With ALWAYS a few are timed, whatever they take. */
GPSTI_INTERN bool gpsti_graphs_leave_timed(const gpst_pipeline* pipeline, const gpsti_step* step, uint64_t number) {
    return !pipeline->plan.graphs || !step->capturable || pipeline->plan.desc.graphs != GPST_GRAPHS_ALWAYS ||
           number % GPSTI_STEP_GRAPHS_TIMED == 0;
}

/* What is timed has events between its launches, and on the host there is nothing to save. */
GPSTI_INTERN gpst_result gpsti_graphs_begin(gpsti_item* first, const gpsti_step* step) {
    const bool records =
        first->pipeline->plan.graphs && step->capturable && !first->work->timed && !first->work->on_host;
    return records ? gpst_graph_begin(first->work->stream) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_graphs_end(gpsti_item* first, gpst_result result) {
    gpst_stream* const stream = first->work->stream;
    if (!stream->records)
        return result;
    if (GPST_FAILED(result)) {
        stream->records = false;
        return result;
    }
    GPSTI_TRY(gpsti_graph_stop(stream, "device work"));
    const gpst_result ran = gpsti_graph_cache_run(first->pipeline->plan.graphs, stream);
    if (GPST_FAILED(ran))
        first->stage_at = stream->commands.failed_tag;
    return ran;
}
