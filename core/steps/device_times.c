/* core/steps/device_times.c -- what a device's events say of an item's work: read when the device has reported, and
   added to the clocks of its stages and to the busy times of the device's resources. */
#include "../base/platform_internal.h"

#include "device_internal.h"

GPSTI_INTERN void gpsti_device_read_times(gpsti_item* first) {
    gpsti_device_work* const work = first->work;
    work->n_times = 0;
    while (work->n_times < work->n_recorded &&
           gpsti_event_time(work->events[work->n_times], &work->times_ns[work->n_times]) == GPST_OK)
        work->n_times++;
}

/* Enters one interval between two events into a clock, an item's share of it, and into the busy time of a device's
   resource. */
GPSTI_PRIVATE void gpsti_device_count_interval(const gpsti_item* item, uint32_t clock_index, uint32_t first_event,
                                               uint64_t bytes, int64_t wait_ns, gpsti_timing_use use) {
    gpsti_counts* const counts = &item->pipeline->counts;
    const gpsti_device_work* const work = item->work;
    gpsti_clock* const clock = &counts->clocks[clock_index];
    if (!work->timed)
        gpsti_clock_add_untimed(clock, wait_ns, bytes);
    if (first_event + 1 >= work->n_times)
        return;
    const int64_t from_ns = work->times_ns[first_event];
    const int64_t to_ns = work->times_ns[first_event + 1];
    gpsti_clock_add(clock, (to_ns - from_ns) / (int64_t)work->n_items, wait_ns, bytes, false);
    if (clock->resource != GPST_RESOURCE_CPU && use == GPSTI_TIMING_COUNTS)
        gpsti_busy_add(&counts->busy[clock->resource], from_ns, to_ns);
    if (clock->resource != GPST_RESOURCE_CPU && use == GPSTI_TIMING_BEGINS)
        gpsti_busy_close(&counts->busy[clock->resource], to_ns);
}

/* From the first event to the last; 0 = not timed, or a time is missing. */
GPSTI_PRIVATE int64_t gpsti_device_total_ns(const gpsti_device_work* work) {
    if (!work->timed || work->n_times < 2 || work->n_times < work->n_recorded)
        return 0;
    const int64_t device_ns = work->times_ns[work->n_times - 1] - work->times_ns[0];
    return device_ns > 0 ? device_ns : 1;
}

/* Submissions that run at the same time, this one included, or may soon. */
GPSTI_PRIVATE uint32_t gpsti_device_n_beside(const gpst_pipeline* pipeline) {
    const uint32_t n_active = pipeline->plan.n_active, n_in_flight = gpsti_a32_load(&pipeline->items.in_flight);
    if (gpsti_is_plain(pipeline))
        return 1;
    return n_in_flight > n_active ? n_in_flight : n_active > 1 ? n_active : 2;
}

GPSTI_PRIVATE gpsti_timing_use gpsti_device_time_use(const gpsti_item* item, uint64_t written_bytes) {
    gpsti_counts* const counts = &item->pipeline->counts;
    if (item->work->on_host)
        return GPSTI_TIMING_COUNTS;
    const gpsti_timing_item timed = {item->work->number, item->up_bytes + written_bytes,
                                     gpsti_device_total_ns(item->work), gpsti_now_ns(),
                                     gpsti_device_n_beside(item->pipeline)};
    return gpsti_timing_enter(&counts->timing, counts->busy, &timed);
}

/* The bytes cross the link, copied or in place. */
GPSTI_PRIVATE void gpsti_device_count_copies(const gpsti_item* item, const gpsti_step* step) {
    gpst_pipeline* const pipeline = item->pipeline;
    const uint32_t up = item->in_place ? step->needs : item->uploaded;
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        const uint64_t bytes = (up | step->downloads) & GPST_SET(k) ? gpsti_sets_bytes(item, GPST_SET(k)) : 0;
        if (up & GPST_SET(k))
            gpsti_count_copy(pipeline, k, true, item->sets[k].n, bytes);
        if (step->downloads & GPST_SET(k))
            gpsti_count_copy(pipeline, k, false, item->sets[k].n, bytes);
    }
    pipeline->counts.n_in_place += item->in_place ? 1 : 0;
    pipeline->counts.n_copied += item->in_place ? 0 : 1;
}

GPSTI_INTERN void gpsti_device_count(gpsti_item* item, const gpsti_step* step) {
    const bool is_own =
        !item->on_cpu || item->works[0].device == item->works[1].device; /* the clocks are the device's */
    const uint64_t written_bytes = is_own ? gpsti_sets_bytes(item, step->writes) : 0;
    const gpsti_timing_use use = is_own ? gpsti_device_time_use(item, written_bytes) : GPSTI_TIMING_COUNTS;
    const uint32_t first_event = item->work->copies ? 1 : 0, n = step->n_stages, clock = step->first_clock;
    if (is_own && !item->in_place) {
        gpsti_device_count_interval(item, clock, 0, item->up_bytes, 0, use);
        gpsti_device_count_interval(item, clock + n + 1, n + 1, item->down_bytes, 0, use);
    }
    if (is_own && !item->work->on_host)
        gpsti_device_count_copies(item, step);
    for (uint32_t s = 0; is_own && s < n; s++)
        gpsti_device_count_interval(item, clock + 1 + s, first_event + s, written_bytes,
                                    s == 0 ? item->device_wait_ns : 0, use);
    gpsti_sets_take_counts(item, step->writes);
}
