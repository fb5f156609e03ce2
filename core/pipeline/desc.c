/* core/pipeline/desc.c -- a pipeline's desc is right, or the sentence says what is not. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_CREATE "gpst_pipeline_create"

GPSTI_INTERN bool gpsti_desc_is_offload(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_DEVICE;
}

GPSTI_PRIVATE gpst_result gpsti_stage_check(const gpst_pipeline_desc* desc, uint32_t s, bool after_outputs) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    GPSTI_FAIL_IF(stage->kind < GPST_STAGE_READ || stage->kind > GPST_STAGE_WRITE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].kind=%d: unknown", s, (int)stage->kind);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_READ && s != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].kind=READ: only the first stage reads", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WRITE && s + 1 != desc->n_stages, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].kind=WRITE: only the last stage writes", s);
    GPSTI_FAIL_IF((stage->kind == GPST_STAGE_HOST || stage->kind == GPST_STAGE_DEVICE) && !stage->func,
                  GPST_ERROR_ARGUMENT, GPSTI_CREATE ": stages[%u].func=NULL: required for HOST and DEVICE", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WARP && !stage->warp, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].warp=NULL: required for WARP", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WARP && stage->warp->desc.rois_in_place, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].warp: rois_in_place: there is one list, and items overlap", s);
    GPSTI_FAIL_IF(stage->per_output && (stage->kind != GPST_STAGE_HOST || stage->ordered), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].per_output: only for a HOST stage that is not ordered", s);
    GPSTI_FAIL_IF(gpsti_desc_is_offload(stage) && after_outputs, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u]: device work comes before per-output stages", s);
    GPSTI_FAIL_IF(stage->ordered && stage->kind != GPST_STAGE_HOST, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].ordered: only for a HOST stage", s);
    GPSTI_FAIL_IF(stage->name && strlen(stage->name) > 31, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].name=\"%.40s\": at most 31 bytes", s, stage->name);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_stages_check(const gpst_pipeline_desc* desc) {
    bool after_outputs = false;
    uint32_t n_warp_outputs = 0;
    GPSTI_FAIL_IF(!desc->stages || desc->n_stages == 0 || desc->n_stages > GPST_MAX_STAGES, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": n_stages=%u: 1..%d stages are required", desc->n_stages, GPST_MAX_STAGES);
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        GPSTI_TRY(gpsti_stage_check(desc, s, after_outputs));
        after_outputs = after_outputs || desc->stages[s].per_output;
        if (!desc->stages[s].warp)
            continue;
        const uint32_t n_outputs = gpst_warp_n_outputs(desc->stages[s].warp);
        GPSTI_FAIL_IF(n_warp_outputs != 0, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": stages[%u].kind=WARP: one WARP stage at most", s);
        GPSTI_FAIL_IF(desc->n_outputs != 0 && desc->n_outputs != n_outputs, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": n_outputs=%u: the WARP stage makes %u", desc->n_outputs, n_outputs);
        n_warp_outputs = n_outputs;
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_desc_check(const gpst_context* context, const gpst_pipeline_desc* desc,
                                          gpst_pipeline** out) {
    GPSTI_FAIL_IF(!context || !desc || !out, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": %s=NULL: required",
                  !context ? "context"
                  : !desc  ? "desc"
                           : "out");
    GPSTI_TRY(gpsti_check_canaries(GPSTI_CREATE, desc->start_canary, desc->end_canary));
    GPSTI_TRY(gpsti_context_check(context, GPSTI_CREATE));
    GPSTI_TRY(gpsti_stages_check(desc));
    const int mode = (int)desc->mode, policy = (int)desc->full_policy, fsync_policy = (int)desc->fsync;
    GPSTI_FAIL_IF(mode < 0 || mode > (int)GPST_RUN_PLAIN_INSIDE, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": mode=%d: unknown",
                  mode);
    GPSTI_FAIL_IF(policy < 0 || policy > (int)GPST_FULL_LATEST_ONLY, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": full_policy=%d: unknown", policy);
    GPSTI_FAIL_IF(fsync_policy < 0 || fsync_policy > (int)GPST_FSYNC_NONE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": fsync=%d: unknown", fsync_policy);
    GPSTI_FAIL_IF(!desc->source && mode > (int)GPST_RUN_ENGINE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": mode=plain: a plain loop pulls: source is required");
    GPSTI_FAIL_IF(desc->n_slots > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_slots=%u: at most 4096", desc->n_slots);
    GPSTI_FAIL_IF(desc->n_reads > 64 || desc->n_writes > 64, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_%s=%u: at most 64",
                  desc->n_reads > 64 ? "reads" : "writes", desc->n_reads > 64 ? desc->n_reads : desc->n_writes);
    GPSTI_FAIL_IF(desc->batch > GPSTI_MOST_BATCH, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": batch=%u: at most %d",
                  desc->batch, GPSTI_MOST_BATCH);
    GPSTI_FAIL_IF(desc->n_outputs > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_outputs=%u: at most 4096",
                  desc->n_outputs);
    GPSTI_FAIL_IF(desc->n_paths > UINT32_MAX - 1 || (desc->n_paths > 0 && !desc->paths), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": n_paths=%llu: at most 2^32 - 2, and paths must not be NULL",
                  (unsigned long long)desc->n_paths);
    for (uint64_t k = 0; k < desc->n_paths; k++)
        GPSTI_FAIL_IF(!desc->paths[k], GPST_ERROR_ARGUMENT, GPSTI_CREATE ": paths[%llu]=NULL: required",
                      (unsigned long long)k);
    return gpsti_tune_check(desc, GPSTI_CREATE);
}
