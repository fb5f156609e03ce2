/* core/pipeline/tune_slots.c -- how many slots a tuned run has, by what they have cost so far: how many there are to
   be, and how
   many of them get their memory at once. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_TUNE_SOME_ITEMS 256 /* a run of unknown length is believed to go on for so long */

/* Host memory of the slot that holds the most, or of the item that held the most. */
GPSTI_PRIVATE uint64_t gpsti_tune_slot_bytes(const gpst_pipeline* pipeline) {
    uint64_t most = pipeline->tune.item_host_bytes;
    for (uint32_t i = 0; i < pipeline->n_slots_made; i++) {
        const uint64_t bytes = gpsti_a64_load(&pipeline->slots[i]->host_bytes);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Of all_ns, which item 0's memory, or all that there is by now, has taken. */
GPSTI_PRIVATE int64_t gpsti_tune_made_ns(const gpst_pipeline* pipeline, int64_t all_ns) {
    gpst_pool_info pool;
    gpst_pool_query_info(pipeline->pool, &pool);
    const uint64_t made_bytes = pool.small_bytes + pool.thp_bytes + pool.hugetlb_bytes;
    const int64_t seen_ns = gpsti_tuner_slot_ns(all_ns, made_bytes, gpsti_tune_slot_bytes(pipeline));
    const bool whole = !pipeline->tune.sparing || gpsti_a64_load(&pipeline->device_growths) > 0;
    return whole ? seen_ns : gpsti_tuner_unseen_slot_ns(seen_ns);
}

/* What a driver locked stays for the next runs, which pay for it, too. What cores made is soon made again, and more of
   it than runs need would only fill their caches. */
GPSTI_PRIVATE int64_t gpsti_tune_share_ns(const gpst_pipeline* pipeline, int64_t price_ns) {
    (void)pipeline;
    return price_ns;
}

/* Cores make it side by side. Of a run with a device they are not what more slots would keep busy: it gains less. */
GPSTI_INTERN int64_t gpsti_tune_slot_ns(const gpst_pipeline* pipeline) {
    const gpsti_tuner_budget* const budget = &pipeline->tune.tuner.budget;
    const bool in_turn = budget->streams || pipeline->context->device_info.locks_host;
    const int64_t made_ns = gpsti_tune_made_ns(pipeline, GPSTI_STUB_PRICE_NS);
    return gpsti_tune_share_ns(pipeline, made_ns) / (in_turn ? 1 : budget->cores);
}

/* Where nobody locks memory it is the cores that make it. */
GPSTI_INTERN void gpsti_tune_set_filling(gpst_pipeline* pipeline, int64_t way_ns) {
    const uint32_t cores = pipeline->tune.tuner.budget.cores;
    const int64_t made_ns = gpsti_tune_made_ns(pipeline, gpsti_plain_setup_ns(pipeline));
    if (!pipeline->desc.source)
        return;
    if (pipeline->context->device_info.locks_host)
        pipeline->n_filling = gpsti_tuner_filling(way_ns, made_ns);
    else
        pipeline->n_filling = made_ns > way_ns ? (cores > 2 ? cores : 2) : 0;
}

/* Those that have carried an item cost nothing more. */
GPSTI_INTERN uint32_t gpsti_tune_slots_worth(const gpst_pipeline* pipeline) {
    const uint64_t done = pipeline->next_index;
    uint64_t n_left = gpsti_flow_n_left(pipeline);
    if (pipeline->desc.n_items_expected == 0)
        n_left = done > GPSTI_TUNE_SOME_ITEMS ? done : GPSTI_TUNE_SOME_ITEMS;
    const uint32_t n = gpsti_tuner_slots_worth(n_left, pipeline->tune.item_ns, gpsti_tune_slot_ns(pipeline));
    return n > 0 && n < pipeline->n_served ? pipeline->n_served : n;
}

GPSTI_INTERN uint32_t gpsti_tune_slots_now(const gpst_pipeline* pipeline) {
    const uint32_t wanted = pipeline->tune.tuner.now.value[GPST_KNOB_SLOTS];
    const uint32_t worth = pipeline->tune.sparing ? gpsti_tune_slots_worth(pipeline) : 0;
    return worth > 0 && worth < wanted ? worth : wanted;
}

GPSTI_INTERN void gpsti_tune_afford_more(gpst_pipeline* pipeline) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    const uint32_t slots = gpsti_tune_slots_worth(pipeline);
    if (pipeline->desc.n_items_expected == 0 && slots > tuner->budget.slots_worth && tuner->budget.slots_worth > 0)
        gpsti_tuner_afford(tuner, slots);
}

/* One line, however often it happens. */
GPSTI_PRIVATE void gpsti_tune_say_fewer(gpsti_tuner* tuner, uint32_t before) {
    static const char why[] = "memory for more takes longer to make than they would save";
    const uint32_t after = tuner->now.value[GPST_KNOB_SLOTS];
    const uint32_t n = tuner->n_decisions < GPST_MAX_DECISIONS ? tuner->n_decisions : GPST_MAX_DECISIONS;
    gpst_tuner_decision* decision = n > 0 ? &tuner->decisions[n - 1] : NULL;
    if (after == before)
        return;
    if (!decision || strcmp(decision->reason, why) != 0)
        decision = gpsti_tuner_note(tuner, GPST_KNOB_SLOTS, before, after);
    decision->after = after;
    gpsti_copy_text(decision->reason, sizeof decision->reason, why);
}

GPSTI_INTERN void gpsti_tune_afford_fewer(gpst_pipeline* pipeline) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    if (pipeline->n_filling == 0 || pipeline->n_served >= pipeline->n_slots || pipeline->whole ||
        pipeline->context->device_info.locks_host)
        return;
    const uint32_t slots = gpsti_tune_slots_worth(pipeline);
    if (slots == 0 || slots >= pipeline->n_slots)
        return;
    const uint32_t before = tuner->now.value[GPST_KNOB_SLOTS];
    gpsti_tuner_afford(tuner, slots);
    tuner->n_items = pipeline->items_ok + pipeline->items_failed;
    gpsti_tune_say_fewer(tuner, before);
    pipeline->n_slots = tuner->now.value[GPST_KNOB_SLOTS];
}

GPSTI_INTERN void gpsti_tune_afford(gpst_pipeline* pipeline) {
    if (!pipeline->tune.modelled && !pipeline->tune.sparing)
        gpsti_tuner_afford(&pipeline->tune.tuner, gpsti_tune_slots_worth(pipeline));
}

GPSTI_INTERN void gpsti_tune_hold_back(gpst_pipeline* pipeline) {
    if (pipeline->desc.n_slots > 0 || !pipeline->desc.source)
        return;
    const uint32_t fit = gpsti_tuner_n_fit(pipeline->context->info.max_host_bytes, pipeline->tune.item_host_bytes);
    const uint32_t n_slots = fit < pipeline->slots_capacity ? fit : pipeline->slots_capacity;
    if (n_slots == pipeline->n_slots)
        return;
    pipeline->n_slots = n_slots;
    gpsti_steps_set_batch(pipeline, pipeline->desc.batch);
    pipeline->frozen = false;
    gpsti_flow_call_workers(pipeline);
}
