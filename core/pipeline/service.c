/* core/pipeline/service.c -- one run of one step for one item, timed, and whose clock has its CPU time. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_INTERN void gpsti_service_run(gpsti_service* service, gpsti_job* job, const gpsti_step* step,
                                    uint32_t worker_index, bool sample_cpu) {
    service->start_ns = gpsti_now_ns();
    service->wait_ns = service->start_ns - job->ready_ns;
    const int64_t n_threads = step->kind == GPSTI_STEP_OFFLOAD ? (int64_t)job->slot->exec.n_threads : 1;
    service->cpu_start_ns = sample_cpu ? gpsti_thread_cpu_ns() : 0;
    service->setup_ns = gpsti_pool_growth_here_ns();
    service->finished = true;
    service->reason[0] = '\0';
    service->result = GPST_OK;
    if (step->kind == GPSTI_STEP_OFFLOAD)
        job->slot->device_wait_ns = service->wait_ns;
    if (step->kind == GPSTI_STEP_HOST)
        service->result =
            gpsti_call_stage(job->slot, step->first_stage, job->output, worker_index, service->reason);
    else if (step->kind == GPSTI_STEP_OFFLOAD)
        service->result =
            gpsti_offload_run(job->slot, step, worker_index, &service->finished, service->reason);
    else
        gpsti_finish_item(job->slot, gpsti_finish_who_frees(job->slot), service->start_ns);
    service->busy_ns = gpsti_now_ns() - service->start_ns;
    service->setup_ns = gpsti_pool_growth_here_ns() - service->setup_ns;
    service->cpu_ns = sample_cpu ? (gpsti_thread_cpu_ns() - service->cpu_start_ns) * n_threads : -1;
}

/* ---- CPU time ------------------------------------------------------------------------------ */

/* The clock that has it of a step's services. */
GPSTI_PRIVATE gpsti_clock* gpsti_service_cpu_clock(gpst_pipeline* pipeline, const gpsti_step* step) {
    if (step->kind == GPSTI_STEP_FINISH)
        return &pipeline->finish_clock;
    if (step->kind == GPSTI_STEP_OFFLOAD)
        return pipeline->device_on_host ? &pipeline->clocks[step->first_clock + 1] : &pipeline->submit_clock;
    return &pipeline->clocks[step->first_clock];
}

GPSTI_INTERN bool gpsti_service_wants_cpu(gpst_pipeline* pipeline, const gpsti_step* step) {
    const gpsti_clock* const clock = gpsti_service_cpu_clock(pipeline, step);
    const uint32_t n_clocks =
        step->kind == GPSTI_STEP_OFFLOAD && pipeline->device_on_host ? step->n_stages : 1;
    for (uint32_t s = 0; s < n_clocks; s++)
        if (gpsti_clock_wants_cpu(&clock[s]))
            return true;
    return false;
}

GPSTI_INTERN void gpsti_service_account_cpu(gpst_pipeline* pipeline, const gpsti_step* step, int64_t busy_ns,
                                            int64_t cpu_ns) {
    gpsti_clock* const clock = gpsti_service_cpu_clock(pipeline, step);
    const bool group = step->kind == GPSTI_STEP_OFFLOAD && pipeline->device_on_host;
    if (clock == &pipeline->finish_clock || clock == &pipeline->submit_clock)
        gpsti_clock_add(clock, busy_ns, 0, 0, false);
    for (uint32_t s = 0; cpu_ns >= 0 && s < (group ? step->n_stages : 1); s++)
        gpsti_clock_add_cpu(&clock[s], cpu_ns, busy_ns);
}

GPSTI_INTERN void gpsti_service_account_source(gpst_pipeline* pipeline, uint64_t n_items, int64_t busy_ns,
                                               int64_t cpu_ns) {
    gpsti_clock* const clock = &pipeline->source_clock;
    clock->count += n_items;
    clock->busy_ns += busy_ns;
    if (cpu_ns >= 0)
        gpsti_clock_add_cpu(clock, cpu_ns, busy_ns);
}
