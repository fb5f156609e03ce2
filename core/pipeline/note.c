/* core/pipeline/note.c -- what is to be counted of services that are over, at once or, by a worker that brings
   several items,
   of all of them together: the clocks are under the lock that everybody asks for. */
#include "../base/platform_internal.h"

#include "note_internal.h"

#include <string.h>

/* ---- a service ------------------------------------------------------------------------------ */

/* cpu_ns and both of setup are what the thread's own counts stand at, until the end makes differences of them. Of the
   device's way, which is long and which most have not, only what is asked of every note. */
GPSTI_INTERN void gpsti_note_begin(gpsti_note* note, const gpsti_step* step, bool sample_cpu, int64_t now_ns) {
    note->step = step;
    note->n_threads = 1;
    note->result = GPST_OK;
    note->has_file = false;
    note->way.timed = false;
    note->way.n_times = 0;
    note->cpu_ns = sample_cpu ? gpsti_thread_cpu_ns() : -1;
    note->setup_ns = gpsti_pool_growth_here_ns();
    note->setup_cpu_ns = GPSTI_STUB_GROWTH_CPU_NS;
    note->start_ns = sample_cpu ? gpsti_now_ns() : now_ns;
}

GPSTI_INTERN int64_t gpsti_note_end(gpsti_note* note, gpst_result result) {
    note->result = result;
    note->end_ns = gpsti_now_ns();
    note->setup_ns = gpsti_pool_growth_here_ns() - note->setup_ns;
    note->setup_cpu_ns = GPSTI_STUB_GROWTH_CPU_NS - note->setup_cpu_ns;
    note->cpu_ns = note->cpu_ns >= 0 ? gpsti_thread_cpu_ns() - note->cpu_ns : -1;
    return note->end_ns;
}

GPSTI_INTERN void gpsti_note_file(gpsti_note* note, int64_t start_ns, int64_t end_ns, uint64_t bytes) {
    note->has_file = true;
    note->file_start_ns = start_ns;
    note->file_end_ns = end_ns;
    note->file_bytes = bytes;
}

GPSTI_PRIVATE void gpsti_note_count_file(gpst_pipeline* pipeline, const gpsti_note* note) {
    const bool reads = note->step->kind == GPSTI_STEP_READ, failed = GPST_FAILED(note->result);
    gpsti_clock_add(&pipeline->clocks[note->step->first_clock], note->file_end_ns - note->file_start_ns, 0,
                    note->file_bytes, failed);
    gpsti_busy_add(&pipeline->busy[reads ? GPST_RESOURCE_DISK_IN : GPST_RESOURCE_DISK_OUT], note->file_start_ns,
                   note->file_end_ns);
    if (reads)
        pipeline->bytes_read += note->file_bytes;
    else if (!failed)
        pipeline->bytes_written += note->file_bytes;
}

GPSTI_INTERN void gpsti_note_count(gpst_pipeline* pipeline, const gpsti_note* note) {
    const gpsti_step* const step = note->step;
    gpsti_clock* const clock = &pipeline->clocks[step->first_clock];
    const int64_t busy_ns = note->end_ns - note->start_ns;
    const bool failed = GPST_FAILED(note->result), has_cpu = note->cpu_ns >= 0;
    if (step->kind == GPSTI_STEP_HOST)
        gpsti_clock_add(clock, busy_ns, 0, 0, failed);
    if (note->has_file)
        gpsti_note_count_file(pipeline, note);
    if (step->kind != GPSTI_STEP_OFFLOAD) /* whose clocks are the device's */
        clock->setup_ns += note->setup_ns;
    else if (failed)
        gpsti_clock_add(clock + 1, 0, 0, 0, true);
    else
        gpsti_offload_account(pipeline, step, &note->way, 0);
    pipeline->plain_inside_cpu_ns += busy_ns * (int64_t)(note->n_threads - 1);
    gpsti_service_account_cpu(pipeline, step, busy_ns, has_cpu ? note->cpu_ns * (int64_t)note->n_threads : -1);
    if (step->kind == GPSTI_STEP_READ && has_cpu)
        gpsti_carry_note_read(pipeline, busy_ns - note->setup_ns, note->cpu_ns - note->setup_cpu_ns);
}

/* ---- several -------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_ledger_open(gpsti_ledger* ledger, gpst_pipeline* pipeline) {
    ledger->pipeline = pipeline;
    ledger->n = ledger->n_counted = ledger->n_times = 0;
}

GPSTI_INTERN void gpsti_ledger_count(gpsti_ledger* ledger, uint32_t end) {
    for (; ledger->n_counted < end && ledger->n_counted < ledger->n; ledger->n_counted++)
        gpsti_note_count(ledger->pipeline, &ledger->notes[ledger->n_counted]);
}

GPSTI_PRIVATE void gpsti_ledger_settle(gpsti_ledger* ledger) {
    gpsti_mutex* const mutex = &ledger->pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    gpsti_ledger_count(ledger, ledger->n);
    gpsti_mutex_unlock(mutex);
    gpsti_ledger_open(ledger, ledger->pipeline);
}

/* By the few that are timed others are judged, who ended meanwhile: in the order of their ends. */
GPSTI_PRIVATE bool gpsti_note_is_measure(const gpsti_note* note) { return note->way.timed && !note->way.on_host; }

GPSTI_INTERN void gpsti_ledger_keep(gpsti_ledger* ledger, const gpsti_note* note) {
    const uint32_t n_times = note->way.n_times;
    if (ledger->n == GPSTI_LEDGER_NOTES || n_times > GPSTI_LEDGER_TIMES - ledger->n_times)
        gpsti_ledger_settle(ledger);
    gpsti_note* const kept = &ledger->notes[ledger->n++];
    *kept = *note;
    kept->way.times_ns = &ledger->times_ns[ledger->n_times];
    if (n_times > 0) /* the slot's next item has others */
        memcpy(&ledger->times_ns[ledger->n_times], note->way.times_ns, n_times * sizeof *ledger->times_ns);
    ledger->n_times += n_times;
    if (gpsti_note_is_measure(note))
        gpsti_ledger_settle(ledger);
}
