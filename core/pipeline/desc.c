/* core/pipeline/desc.c -- a pipeline's desc is right, or the sentence says what is not. What is special about a kind
   of stage that kind checks (core/steps). */
#include "../base/platform_internal.h"

#include "engine_internal.h"

#include <string.h>

#define GPSTI_CREATE "gpst_pipeline_create"

/* ---- one stage --------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_stage_check_kind(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    GPSTI_FAIL_IF(!gpsti_kind_of(stage->kind), GPST_ERROR_ARGUMENT, GPSTI_CREATE ": stages[%u].kind=%d: unknown", s,
                  (int)stage->kind);
    GPSTI_FAIL_IF(stage->capturable && stage->kind != GPST_STAGE_DEVICE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].capturable: only for DEVICE", s);
    GPSTI_FAIL_IF(stage->name && strlen(stage->name) > 31, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].name=\"%.40s\": at most 31 bytes", s, stage->name);
    GPSTI_FAIL_IF(stage->decode && stage->kind != GPST_STAGE_DECODE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].decode: only for DECODE", s);
    GPSTI_FAIL_IF(stage->encode && stage->kind != GPST_STAGE_ENCODE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].encode: only for ENCODE", s);
    return gpsti_kind_of(stage->kind)->check_desc(desc, s);
}

GPSTI_PRIVATE gpst_result gpsti_stage_check_order(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    const bool is_host = stage->kind == GPST_STAGE_HOST;
    GPSTI_FAIL_IF(stage->per_picture && (!is_host || stage->ordered), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].per_picture: only for a HOST stage that is not ordered", s);
    GPSTI_FAIL_IF(stage->stateful && (stage->per_picture || (!is_host && stage->kind != GPST_STAGE_DEVICE)),
                  GPST_ERROR_ARGUMENT, GPSTI_CREATE ": stages[%u].stateful: only for HOST and DEVICE, not per_picture",
                  s);
    GPSTI_FAIL_IF(stage->ordered && !is_host, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].ordered: only for a HOST stage", s);
    GPSTI_FAIL_IF(stage->end && (!is_host || stage->per_picture), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].end: only for HOST, not per_picture", s);
    GPSTI_FAIL_IF(stage->concurrency > 0 && !is_host && stage->kind != GPST_STAGE_WRITE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].concurrency=%u: only for HOST and WRITE", s, stage->concurrency);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_stage_check_batch(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    const bool has_func = stage->kind == GPST_STAGE_HOST || stage->kind == GPST_STAGE_DEVICE;
    GPSTI_FAIL_IF(stage->batch_func && (!has_func || stage->per_picture || stage->func), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].batch_func: only for HOST and DEVICE, without func, not per_picture", s);
    GPSTI_FAIL_IF(stage->batch_most > GPSTI_MOST_BATCH, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].batch_most=%u: at most %d", s, stage->batch_most, GPSTI_MOST_BATCH);
    GPSTI_FAIL_IF(stage->batch_most > 1 && !gpsti_stage_has_batches(stage), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].batch_most=%u: only with batch_func, and for WARP and MASK", s,
                  stage->batch_most);
    return GPST_OK;
}

/* Only stages that take items together look at deadlines. */
GPSTI_PRIVATE gpst_result gpsti_stages_check_deadline(const gpst_pipeline_desc* desc) {
    bool acts = desc->deadline_ns == 0;
    GPSTI_FAIL_IF(desc->deadline_ns < 0 || (desc->deadline_ns > 0 && desc->source), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": deadline_ns=%lld: must not be negative, and is for pushed inputs",
                  (long long)desc->deadline_ns);
    for (uint32_t s = 0; s < desc->n_stages; s++)
        acts = acts || desc->stages[s].batch_func ||
               (desc->stages[s].batch_most > 0 && gpsti_stage_has_batches(&desc->stages[s]));
    GPSTI_FAIL_IF(!acts, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": deadline_ns=%lld: only a stage with a batch_func, or WARP and MASK with batch_most, "
                               "drops what would be late, and there is none",
                  (long long)desc->deadline_ns);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_stage_check_bound(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    const int policy = (int)stage->full_policy;
    const bool drops = stage->full_policy == GPST_FULL_DROP_NEWEST || stage->full_policy == GPST_FULL_DROP_OLDEST;
    GPSTI_FAIL_IF(policy < 0 || policy > (int)GPST_FULL_LATEST_ONLY, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].full_policy=%d: unknown", s, policy);
    GPSTI_FAIL_IF(drops && stage->queue_most == 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].queue_most=0: required with this full_policy", s);
    GPSTI_FAIL_IF(stage->full_policy == GPST_FULL_LATEST_ONLY && stage->queue_most > 1, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].queue_most=%u: LATEST_ONLY has 1", s, stage->queue_most);
    GPSTI_FAIL_IF((stage->queue_most > 0 || policy > 0) &&
                      (stage->per_picture || stage->kind == GPST_STAGE_ENCODE || stage->kind == GPST_STAGE_WRITE),
                  GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].queue_most: not for WRITE and what is done for each picture: an item is "
                               "dropped before",
                  s);
    return GPST_OK;
}

/* ---- sets ----------------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_sets_is_one(uint32_t sets) { return sets != 0 && (sets & (sets - 1)) == 0; }

/* One set and, where the operation knows what to do with it, another. */
GPSTI_PRIVATE gpst_result gpsti_stage_check_second(const gpst_stage_desc* stage, uint32_t s) {
    const uint32_t reads = stage->reads;
    const bool listed = stage->kind == GPST_STAGE_WARP && stage->warp->desc.list_per_item;
    const bool guided = stage->kind == GPST_STAGE_MASK && stage->mask->kind == GPST_MASK_REFINE;
    const uint32_t second = stage->second_set < GPST_MAX_SETS ? GPST_SET(stage->second_set) : 0;
    if (gpsti_sets_is_one(reads)) {
        GPSTI_FAIL_IF(stage->second_set != 0, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": stages[%u].second_set=%u: reads=0x%x has one set", s, stage->second_set, reads);
        GPSTI_FAIL_IF(listed, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": stages[%u].warp: list_per_item: second_set must be the list's, in reads", s);
        return GPST_OK;
    }
    GPSTI_FAIL_IF(!listed && !guided, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].reads=0x%x: only list_per_item and REFINE read two sets", s, reads);
    GPSTI_FAIL_IF(!(reads & second) || !gpsti_sets_is_one(reads & ~second), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].second_set=%u: must be one of two sets in reads=0x%x", s,
                  stage->second_set, reads);
    return GPST_OK;
}

/* By the desc with every set said; written: by stages before. */
GPSTI_PRIVATE gpst_result gpsti_stage_check_sets(const gpst_stage_desc* stage, uint32_t s, bool is_named,
                                                 uint32_t written) {
    const uint32_t reads = stage->reads, writes = stage->writes, twice = writes & written;
    const bool is_files = stage->kind == GPST_STAGE_READ || stage->kind == GPST_STAGE_WRITE;
    const bool computes = stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_MASK;
    GPSTI_FAIL_IF(is_files && (reads | writes) != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].reads=0x%x, writes=0x%x: READ and WRITE have files, not sets", s, reads,
                  writes);
    GPSTI_FAIL_IF(((reads | writes) >> GPST_MAX_SETS) != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].reads=0x%x, writes=0x%x: sets are 0..%d", s, reads, writes,
                  GPST_MAX_SETS - 1);
    GPSTI_FAIL_IF(is_named && (reads & writes) != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u]: set %u is read and written: no stage writes what it reads", s,
                  gpsti_set_of(reads & writes));
    GPSTI_FAIL_IF(twice != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].writes=0x%x: set %u is written by a stage before (sets are bits)", s,
                  writes, gpsti_set_of(twice));
    GPSTI_FAIL_IF(computes && !gpsti_sets_is_one(writes), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].writes=0x%x: WARP and MASK write one set", s, writes);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_DECODE && (reads != 0 || !gpsti_sets_is_one(writes)), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].reads=0x%x, writes=0x%x: DECODE writes one set and reads none", s, reads,
                  writes);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_ENCODE && (writes != 0 || !gpsti_sets_is_one(reads)), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].reads=0x%x, writes=0x%x: ENCODE reads one set and writes none", s, reads,
                  writes);
    if (computes)
        GPSTI_TRY(gpsti_stage_check_second(stage, s));
    GPSTI_FAIL_IF(!computes && stage->second_set != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].second_set=%u: only for WARP and MASK", s, stage->second_set);
    GPSTI_FAIL_IF(stage->per_picture && !gpsti_sets_is_one(reads), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].reads=0x%x: per_picture reads one set", s, reads);
    return GPST_OK;
}

/* Set 0 may come with the input, where no stage is named as its writer; a HOST stage that says nothing may have written
   any that nobody names, and reads what there is. */
GPSTI_PRIVATE gpst_result gpsti_sets_check_reads(const gpst_stage_desc* stages, const gpst_pipeline_desc* desc) {
    uint32_t there = stages[0].kind == GPST_STAGE_READ ? 0 : GPST_SET(0);
    for (uint32_t s = 0; s < desc->n_stages; s++)
        there &= ~desc->stages[s].writes;
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const bool all = stages[s].kind == GPST_STAGE_HOST && !stages[s].per_picture &&
                         (desc->stages[s].reads | desc->stages[s].writes) == 0;
        const uint32_t missing = stages[s].reads & ~there;
        GPSTI_FAIL_IF(missing != 0 && !all, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": stages[%u].reads=0x%x: no stage before it writes set %u (sets are bits)", s,
                      stages[s].reads, gpsti_set_of(missing));
        there |= stages[s].writes;
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_sets_check_results(const gpst_pipeline_desc* desc) {
    GPSTI_FAIL_IF(desc->n_results > GPST_MAX_SETS, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_results=%u: at most %d",
                  desc->n_results, GPST_MAX_SETS);
    for (uint32_t k = 0; k < desc->n_results; k++) {
        const int place = (int)desc->results[k].place;
        GPSTI_FAIL_IF(desc->results[k].set >= GPST_MAX_SETS, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": results[%u].set=%u: sets are 0..%d", k, desc->results[k].set, GPST_MAX_SETS - 1);
        GPSTI_FAIL_IF(place < 0 || place > (int)GPST_ON_DEVICE, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": results[%u].place=%d: unknown", k, place);
        for (uint32_t i = 0; i < k; i++)
            GPSTI_FAIL_IF(desc->results[i].set == desc->results[k].set, GPST_ERROR_ARGUMENT,
                          GPSTI_CREATE ": results[%u].set=%u: named twice", k, desc->results[k].set);
    }
    return GPST_OK;
}

/* How many pictures each set may have: what a WARP makes of a set is as many as its outputs for each. */
GPSTI_PRIVATE gpst_result gpsti_sets_check_capacities(const gpst_stage_desc* stages, const gpst_pipeline_desc* desc) {
    uint64_t capacity[GPST_MAX_SETS];
    for (uint32_t k = 0; k < GPST_MAX_SETS; k++) {
        capacity[k] = desc->capacity[k] > 0 ? desc->capacity[k] : 1;
        GPSTI_FAIL_IF(capacity[k] > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": capacity[%u]=%u: at most 4096", k,
                      desc->capacity[k]);
    }
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        for (uint32_t k = 0; stages[s].per_picture && k < GPST_MAX_SETS; k++) {
            const uint64_t parts = capacity[gpsti_set_of(stages[s].reads)];
            if (!(stages[s].writes & GPST_SET(k)))
                continue;
            GPSTI_FAIL_IF(desc->capacity[k] != 0 && capacity[k] < parts, GPST_ERROR_ARGUMENT,
                          GPSTI_CREATE ": capacity[%u]=%u: stages[%u] is per_picture and may make %u", k,
                          desc->capacity[k], s, (uint32_t)parts);
            capacity[k] = desc->capacity[k] != 0 ? capacity[k] : parts;
        }
        if (stages[s].kind != GPST_STAGE_WARP && stages[s].kind != GPST_STAGE_MASK)
            continue;
        const uint32_t from = gpsti_stage_from(&stages[s]), to = gpsti_set_of(stages[s].writes);
        const uint32_t makes = gpsti_stage_makes(&stages[s], (uint32_t)capacity[from]);
        GPSTI_FAIL_IF(gpsti_stage_has_second(&stages[s]) && stages[s].kind == GPST_STAGE_WARP && capacity[from] != 1,
                      GPST_ERROR_ARGUMENT, GPSTI_CREATE ": stages[%u]: a list is for one picture: capacity[%u]=%u", s,
                      from, (unsigned)capacity[from]);
        GPSTI_FAIL_IF(desc->capacity[to] != 0 && desc->capacity[to] != makes, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": capacity[%u]=%u: stages[%u] makes %u", to, desc->capacity[to], s, makes);
        GPSTI_FAIL_IF(makes > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": stages[%u]: makes %u pictures: at most 4096",
                      s, makes);
        capacity[to] = makes;
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_stages_check(const gpst_pipeline_desc* desc) {
    gpst_stage_desc stages[GPST_MAX_STAGES];
    uint32_t written = 0;
    GPSTI_FAIL_IF(!desc->stages || desc->n_stages == 0 || desc->n_stages > GPST_MAX_STAGES, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": n_stages=%u: 1..%d stages are required", desc->n_stages, GPST_MAX_STAGES);
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        GPSTI_TRY(gpsti_stage_check_kind(desc, s));
        GPSTI_TRY(gpsti_stage_check_order(desc, s));
        GPSTI_TRY(gpsti_stage_check_batch(desc, s));
        GPSTI_TRY(gpsti_stage_check_bound(desc, s));
    }
    GPSTI_TRY(gpsti_sets_check_results(desc));
    memcpy(stages, desc->stages, desc->n_stages * sizeof *stages);
    (void)gpsti_stages_resolve_sets(stages, desc);
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        const bool is_named = (desc->stages[s].reads | desc->stages[s].writes) != 0;
        const bool names_none = stages[s].kind == GPST_STAGE_HOST && !is_named;
        GPSTI_TRY(gpsti_stage_check_sets(&stages[s], s, is_named, names_none ? 0 : written));
        written |= names_none ? 0 : stages[s].writes;
    }
    GPSTI_TRY(gpsti_sets_check_reads(stages, desc));
    for (uint32_t s = 0; s < desc->n_stages; s++)
        written |= stages[s].writes;
    for (uint32_t k = 0; k < desc->n_results; k++)
        GPSTI_FAIL_IF(!((written | GPST_SET(0)) & GPST_SET(desc->results[k].set)), GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": results[%u].set=%u: no stage writes it", k, desc->results[k].set);
    return gpsti_sets_check_capacities(stages, desc);
}

/* ---- the desc ---------------------------------------------------------------------------------------- */

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
    const int graphs = (int)desc->graphs;
    GPSTI_FAIL_IF(mode < 0 || mode > (int)GPST_RUN_PLAIN_INSIDE, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": mode=%d: unknown",
                  mode);
    GPSTI_FAIL_IF(policy < 0 || policy > (int)GPST_FULL_LATEST_ONLY, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": full_policy=%d: unknown", policy);
    GPSTI_TRY(gpsti_stages_check_deadline(desc));
    GPSTI_FAIL_IF(fsync_policy < 0 || fsync_policy > (int)GPST_FSYNC_NONE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": fsync=%d: unknown", fsync_policy);
    GPSTI_FAIL_IF(graphs < 0 || graphs > (int)GPST_GRAPHS_ALWAYS, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": graphs=%d: unknown", graphs);
    GPSTI_FAIL_IF(!desc->source && mode > (int)GPST_RUN_ENGINE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": mode=plain: a plain loop pulls: source is required");
    GPSTI_FAIL_IF(desc->n_slots > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_slots=%u: at most 4096", desc->n_slots);
    GPSTI_FAIL_IF(desc->n_reads > 64 || desc->n_writes > 64, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_%s=%u: at most 64",
                  desc->n_reads > 64 ? "reads" : "writes", desc->n_reads > 64 ? desc->n_reads : desc->n_writes);
    GPSTI_FAIL_IF(desc->batch > GPSTI_MOST_BATCH, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": batch=%u: at most %d",
                  desc->batch, GPSTI_MOST_BATCH);
    GPSTI_FAIL_IF(desc->n_paths > UINT32_MAX - 1 || (desc->n_paths > 0 && !desc->paths), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": n_paths=%llu: at most 2^32 - 2, and paths must not be NULL",
                  (unsigned long long)desc->n_paths);
    for (uint64_t k = 0; k < desc->n_paths; k++)
        GPSTI_FAIL_IF(!desc->paths[k], GPST_ERROR_ARGUMENT, GPSTI_CREATE ": paths[%llu]=NULL: required",
                      (unsigned long long)k);
    return gpsti_tune_check(desc, GPSTI_CREATE);
}
