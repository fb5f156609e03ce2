/* core/pipeline/offload_times.c -- what a device's events say of an item's work: read when the device has reported, and
   added to the clocks of its stages and to the busy times of the device's resources. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_INTERN void gpsti_offload_read_times(gpsti_item* item) {
    gpsti_device_work* const work = item->work;
    work->n_times = 0;
    while (work->n_times < work->n_recorded &&
           gpsti_event_time(work->events[work->n_times], &work->times_ns[work->n_times]) == GPST_OK)
        work->n_times++;
}

/* Times of one item's device work. */
typedef struct gpsti_stage_times {
    bool on_host, in_place, copies, timed;
    uint32_t n_items; /* of its group */
    uint32_t n_recorded, n_times;
    uint64_t number; /* of its group, for the pipeline's timing */
    uint64_t in_bytes, out_bytes, written_bytes;
    const int64_t* times_ns; /* n_times */
} gpsti_stage_times;

GPSTI_PRIVATE void gpsti_stage_times_of(const gpsti_item* item, const gpsti_step* step, gpsti_stage_times* out) {
    const gpsti_device_work* const work = item->work;
    out->on_host = work->on_host;
    out->in_place = item->in_place;
    out->copies = work->copies;
    out->timed = work->timed;
    out->n_items = work->n_items;
    out->n_recorded = work->n_recorded;
    out->n_times = work->n_times;
    out->number = work->number;
    out->in_bytes = item->up_bytes;
    out->out_bytes = item->down_bytes;
    out->written_bytes = gpsti_item_bytes(item, step->writes);
    out->times_ns = work->times_ns;
}

/* Enters one interval between two events into a clock, an item's share of it, and into the busy time of a device's
   resource. */
GPSTI_PRIVATE void gpsti_offload_enter(gpst_pipeline* pipeline, const gpsti_stage_times* times, uint32_t clock_index,
                                       uint32_t first_event, uint64_t bytes, int64_t wait_ns, gpsti_timing_use use) {
    gpsti_clock* const clock = &pipeline->counts.clocks[clock_index];
    if (!times->timed)
        gpsti_clock_add_untimed(clock, wait_ns, bytes);
    if (first_event + 1 >= times->n_times)
        return;
    const int64_t from_ns = times->times_ns[first_event];
    const int64_t to_ns = times->times_ns[first_event + 1];
    gpsti_clock_add(clock, (to_ns - from_ns) / (int64_t)times->n_items, wait_ns, bytes, false);
    if (clock->resource != GPST_RESOURCE_CPU && use == GPSTI_TIMING_COUNTS)
        gpsti_busy_add(&pipeline->counts.busy[clock->resource], from_ns, to_ns);
    if (clock->resource != GPST_RESOURCE_CPU && use == GPSTI_TIMING_BEGINS)
        gpsti_busy_close(&pipeline->counts.busy[clock->resource], to_ns);
}

/* From the first event to the last; 0 = not timed, or a time is missing. */
GPSTI_PRIVATE int64_t gpsti_stage_times_total_ns(const gpsti_stage_times* times) {
    if (!times->timed || times->n_times < 2 || times->n_times < times->n_recorded)
        return 0;
    const int64_t device_ns = times->times_ns[times->n_times - 1] - times->times_ns[0];
    return device_ns > 0 ? device_ns : 1;
}

/* Submissions that run at the same time, this one included, or may soon. Locked. */
GPSTI_PRIVATE uint32_t gpsti_offload_n_beside(const gpst_pipeline* pipeline) {
    const uint32_t n_active = pipeline->flow.n_active, n_in_flight = gpsti_a32_load(&pipeline->items.in_flight);
    if (gpsti_a32_load(&pipeline->flow.open) == 0)
        return 1;
    return n_in_flight > n_active ? n_in_flight : n_active > 1 ? n_active : 2;
}

GPSTI_PRIVATE gpsti_timing_use gpsti_offload_use(gpst_pipeline* pipeline, const gpsti_stage_times* times) {
    gpsti_timing_item item;
    item.number = times->number;
    item.bytes = times->in_bytes + times->written_bytes;
    item.device_ns = gpsti_stage_times_total_ns(times);
    item.now_ns = gpsti_now_ns();
    item.n_beside = gpsti_offload_n_beside(pipeline);
    return times->on_host ? GPSTI_TIMING_COUNTS
                          : gpsti_timing_enter(&pipeline->counts.timing, pipeline->counts.busy, &item);
}

GPSTI_PRIVATE void gpsti_offload_account_copies(gpsti_item* item, const gpsti_step* step) {
    const uint32_t up = item->in_place ? step->needs : item->uploaded;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set_plan* const plan = &item->pipeline->plan.sets[k];
        if (up & GPST_SET(k))
            gpsti_account_copy(item->pipeline, plan, true, item->sets[k].n, gpsti_item_bytes(item, GPST_SET(k)));
        if (step->downloads & GPST_SET(k))
            gpsti_account_copy(item->pipeline, plan, false, item->sets[k].n, gpsti_item_bytes(item, GPST_SET(k)));
    }
}

GPSTI_PRIVATE void gpsti_offload_count_times(gpsti_item* item, const gpsti_step* step, int64_t wait_ns) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_stage_times times;
    gpsti_stage_times_of(item, step, &times);
    const gpsti_timing_use use = gpsti_offload_use(pipeline, &times);
    const uint32_t first_event = times.copies ? 1 : 0; /* of the stages */
    const uint32_t n = step->n_stages, clock = step->first_clock;
    if (!times.in_place) {
        gpsti_offload_enter(pipeline, &times, clock, 0, times.in_bytes, 0, use);
        gpsti_offload_enter(pipeline, &times, clock + n + 1, n + 1, times.out_bytes, 0, use);
    }
    if (!times.on_host) { /* the bytes cross the link, copied or in place */
        gpsti_offload_account_copies(item, step);
        pipeline->counts.n_in_place += times.in_place ? 1 : 0;
        pipeline->counts.n_copied += times.in_place ? 0 : 1;
    }
    for (uint32_t s = 0; s < n; s++)
        gpsti_offload_enter(pipeline, &times, clock + 1 + s, first_event + s, times.written_bytes, s == 0 ? wait_ns : 0,
                            use);
}

GPSTI_INTERN void gpsti_offload_account(gpsti_item* item, const gpsti_step* step, int64_t wait_ns) {
    if (!item->on_cpu || item->works[0].device == item->works[1].device) /* the clocks are the device's */
        gpsti_offload_count_times(item, step, wait_ns);
    gpsti_place_take_counts(item, step->writes);
}
