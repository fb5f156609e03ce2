/* backends/sim_stream.c -- a simulated stream: its queue, who plays it and the
   clock model. Computes nothing itself: an operation is run by the cpu backend's code. */
#include "../core/base/platform_internal.h"

#include "sim_internal.h"

#include <string.h>

#define GPSTI_SIM_SPIN_NS 50000 /* sleeping is no more exact than this */
#define GPSTI_SIM_TURN_NS 20000 /* who waits for an engine no longer than that need not sleep */

GPSTI_INTERN double gpsti_sim_jitter(gpsti_sim_device* device) {
    if (device->params.jitter_pct <= 0)
        return 1;
    device->random = device->random * 6364136223846793005u + 1442695040888963407u;
    const double unit = (double)(device->random >> 11) / 9007199254740992.0;
    return 1 + device->params.jitter_pct / 100 * (2 * unit - 1);
}

/* ---- an operation ------------------------------------------------------------- */

GPSTI_PRIVATE int64_t gpsti_sim_later(int64_t a, int64_t b) { return a > b ? a : b; }

GPSTI_PRIVATE void gpsti_sim_wait_until(int64_t time_ns) {
    for (;;) {
        const int64_t left_ns = time_ns - gpsti_now_ns();
        if (left_ns <= 0)
            return;
        if (left_ns > GPSTI_SIM_SPIN_NS)
            gpsti_sleep_ns(left_ns - GPSTI_SIM_SPIN_NS);
        else
            gpsti_relax();
    }
}

GPSTI_PRIVATE void gpsti_sim_wait_turn(gpsti_sim_stream* stream) {
    gpsti_sim_device* const device = gpsti_sim_of(&stream->base);
    const int64_t end_ns = gpsti_now_ns() + GPSTI_SIM_TURN_NS;
    gpsti_mutex_unlock(&device->mutex);
    while (gpsti_a32_load(&stream->has_engine) == 0 && gpsti_now_ns() < end_ns)
        gpsti_relax();
    gpsti_mutex_lock(&device->mutex);
    while (gpsti_a32_load(&stream->has_engine) == 0)
        gpsti_cond_wait_until(&stream->turn, &device->mutex, GPST_FOREVER);
}

/* In order of arrival. Each waits by itself: of many that all wake only one could go on. */
GPSTI_PRIVATE void gpsti_sim_acquire(gpsti_sim_stream* stream, gpsti_sim_engine* engine) {
    if (!engine->busy) {
        engine->busy = true;
        return;
    }
    gpsti_a32_store(&stream->has_engine, 0);
    stream->next_in_turn = NULL;
    if (engine->first)
        engine->last->next_in_turn = stream;
    else
        engine->first = stream;
    engine->last = stream;
    gpsti_sim_wait_turn(stream);
}

GPSTI_PRIVATE void gpsti_sim_release(gpsti_sim_engine* engine) {
    gpsti_sim_stream* const next = engine->first;
    engine->busy = next != NULL;
    if (!next)
        return;
    engine->first = next->next_in_turn;
    gpsti_a32_store(&next->has_engine, 1);
    gpsti_cond_signal(&next->turn);
}

GPSTI_PRIVATE gpsti_sim_engine* gpsti_sim_engine_for(gpsti_sim_device* device,
                                                     const gpsti_operation* operation) {
    if (operation->kind == GPSTI_OPERATION_COPY && operation->copy_kind == GPSTI_COPY_H2D)
        return &device->copy_engines[0];
    if (operation->kind == GPSTI_OPERATION_COPY && operation->copy_kind == GPSTI_COPY_D2H)
        return &device->copy_engines[(uint32_t)device->params.copy_engines - 1];
    return &device->compute_engine;
}

GPSTI_PRIVATE double gpsti_sim_kernel_ns(const gpsti_sim_params* params, uint64_t bytes) {
    const bool by_bytes = params->kernel_gbps > 0 && bytes > 0;
    if (params->kernel_us <= 0 && !by_bytes)
        return -1;
    return params->kernel_us * 1e3 + (by_bytes ? (double)bytes / params->kernel_gbps : 0);
}

/* What the model says an operation takes; negative: it says nothing, the host's own time counts. */
GPSTI_PRIVATE double gpsti_sim_modelled_ns(const gpsti_sim_params* params, const gpsti_operation* operation) {
    double gbps = params->d2d_gbps;
    if (operation->kind == GPSTI_OPERATION_LAUNCH)
        return gpsti_sim_kernel_ns(params, operation->exec.bytes);
    if (operation->kind == GPSTI_OPERATION_COPY && operation->copy_kind == GPSTI_COPY_H2D)
        gbps = params->h2d_gbps;
    if (operation->kind == GPSTI_OPERATION_COPY && operation->copy_kind == GPSTI_COPY_D2H)
        gbps = params->d2h_gbps;
    return gbps > 0 ? (double)operation->bytes / gbps : -1;
}

/* Under the mutex. What an operation takes of its engine, on the device's clock. */
GPSTI_PRIVATE int64_t gpsti_sim_duration_ns(gpsti_sim_device* device, const gpsti_operation* operation,
                                            double modelled_ns, int64_t host_ns, double launch_us) {
    const double played_ns = device->params.virtual_clock > 0 ? 0 : (double)host_ns;
    const double launch_ns = operation->kind == GPSTI_OPERATION_LAUNCH ? launch_us * 1e3 : 0;
    return (int64_t)(((modelled_ns < 0 ? played_ns : modelled_ns) + launch_ns) * gpsti_sim_jitter(device));
}

GPSTI_PRIVATE void gpsti_sim_note_failure(gpsti_sim_stream* stream, gpst_result result, const char* reason) {
    if (GPST_FAILED(stream->result))
        return;
    stream->result = result;
    gpsti_copy_text(stream->reason, sizeof(stream->reason), reason);
}

/* Under the mutex. Is the device there for this operation? */
GPSTI_PRIVATE bool gpsti_sim_lives(gpsti_sim_device* device, const gpsti_operation* operation) {
    if (!device->lost && operation->kind == GPSTI_OPERATION_LAUNCH &&
        (double)++device->n_launches == device->params.lose_at) {
        device->lost = true;
        (void)gpsti_a32_add(gpsti_faults_fired(), 1);
    }
    return !device->lost;
}

/* Under the mutex, which is let go meanwhile. When it was played; *host_ns: what the host took for it. */
GPSTI_PRIVATE int64_t gpsti_sim_run(gpsti_sim_stream* stream, const gpsti_operation* operation, int64_t* host_ns) {
    gpsti_sim_device* const device = gpsti_sim_of(&stream->base);
    gpsti_mutex_unlock(&device->mutex);
    const int64_t start_ns = gpsti_now_ns();
    const gpst_result result = gpsti_operation_run(operation);
    const int64_t end_ns = gpsti_now_ns();
    *host_ns = end_ns - start_ns;
    gpsti_a64_add(&device->base.played_ns, (uint64_t)*host_ns);
    gpsti_mutex_lock(&device->mutex);
    if (GPST_FAILED(result)) {
        gpsti_a32_store(&device->vendor_error, GPSTI_SIM_VENDOR_KERNEL);
        gpsti_sim_note_failure(stream, result, gpst_last_reason());
    }
    return end_ns;
}

/* Under the mutex. An operation ends no earlier than it is played, but its engine is free for what others play. */
GPSTI_PRIVATE void gpsti_sim_occupy(gpsti_sim_stream* stream, gpsti_sim_engine* engine, int64_t start_ns,
                                    int64_t duration_ns, int64_t played_ns) {
    engine->free_ns = gpsti_sim_later(start_ns, engine->free_ns) + duration_ns;
    stream->time_ns = engine->free_ns;
    if (gpsti_sim_of(&stream->base)->params.virtual_clock <= 0)
        stream->time_ns = gpsti_sim_later(engine->free_ns, played_ns);
}

/* Under the mutex, which is let go while modelled time passes. */
GPSTI_PRIVATE void gpsti_sim_pass(gpsti_sim_stream* stream, int64_t now_ns) {
    gpsti_sim_device* const device = gpsti_sim_of(&stream->base);
    if (device->params.virtual_clock > 0 || stream->time_ns <= now_ns)
        return;
    gpsti_mutex_unlock(&device->mutex);
    gpsti_sim_wait_until(stream->time_ns);
    gpsti_mutex_lock(&device->mutex);
}

/* Under the mutex. Of what the host's own time counts for, an engine does one thing at a time; the modelled time of the
   rest is in turns, however many threads play it. */
GPSTI_PRIVATE void gpsti_sim_execute(gpsti_sim_stream* stream, const gpsti_operation* operation,
                                     int64_t submit_ns, double launch_us) {
    gpsti_sim_device* const device = gpsti_sim_of(&stream->base);
    gpsti_sim_engine* const engine = gpsti_sim_engine_for(device, operation);
    const double modelled_ns = gpsti_sim_modelled_ns(&device->params, operation);
    int64_t host_ns = 0, played_ns = stream->time_ns;
    if (modelled_ns < 0)
        gpsti_sim_acquire(stream, engine);
    if (gpsti_sim_lives(device, operation)) {
        played_ns = gpsti_sim_run(stream, operation, &host_ns);
        gpsti_sim_occupy(stream, engine, gpsti_sim_later(stream->time_ns, submit_ns),
                         gpsti_sim_duration_ns(device, operation, modelled_ns, host_ns, launch_us), played_ns);
    }
    if (modelled_ns < 0)
        gpsti_sim_release(engine);
    gpsti_sim_pass(stream, played_ns);
}

/* One submission, so one launch cost, before the first operation. */
GPSTI_PRIVATE void gpsti_sim_execute_graph(gpsti_sim_stream* stream, gpsti_sim_task* task) {
    const gpsti_operation* operation;
    const int64_t launch_ns = (int64_t)(gpsti_sim_of(&stream->base)->params.launch_us * 1e3);
    stream->time_ns = gpsti_sim_later(stream->time_ns, task->submit_ns) + launch_ns;
    for (operation = task->recording->first; operation; operation = operation->next)
        gpsti_sim_execute(stream, operation, task->submit_ns, 0);
    --task->recording->n_queued;
}

/* Under the mutex. What the stream has to say about its work since it last said something. */
GPSTI_PRIVATE gpst_result gpsti_sim_take_result(gpsti_sim_stream* stream, char* reason) {
    gpsti_sim_device* device = gpsti_sim_of(&stream->base);
    gpst_result result = stream->result;
    gpsti_copy_text(reason, GPSTI_REASON_BYTES, stream->reason);
    if (device->lost) {
        gpsti_copy_text(reason, GPSTI_REASON_BYTES, "backend sim: the simulated device is lost (lose_at)");
        gpsti_a32_store(&device->vendor_error, GPSTI_SIM_VENDOR_LOST);
        result = GPST_ERROR_DEVICE_LOST;
    }
    stream->result = GPST_OK;
    return result;
}

GPSTI_PRIVATE void gpsti_sim_execute_notify(gpsti_sim_stream* stream, gpsti_sim_task* task) {
    gpsti_sim_device* device = gpsti_sim_of(&stream->base);
    char reason[GPSTI_REASON_BYTES];
    const gpst_result result = gpsti_sim_take_result(stream, reason);
    gpsti_sim_tell(device, stream->time_ns);
    gpsti_mutex_unlock(&device->mutex);
    if (GPST_FAILED(result))
        gpsti_fail(result, "%s", reason); /* func finds the reason on its own thread */
    task->func(task->user_data, result);
    gpsti_mutex_lock(&device->mutex);
}

GPSTI_PRIVATE void gpsti_sim_execute_task(gpsti_sim_stream* stream, gpsti_sim_task* task) {
    gpsti_sim_device* device = gpsti_sim_of(&stream->base);
    gpsti_sim_event* event = task->event;
    switch (task->kind) {
    case GPSTI_SIM_TASK_OPERATION:
        gpsti_sim_execute(stream, &task->operation, task->submit_ns, device->params.launch_us);
        break;
    case GPSTI_SIM_TASK_GRAPH:
        gpsti_sim_execute_graph(stream, task);
        break;
    case GPSTI_SIM_TASK_RECORD:
        event->time_ns = stream->time_ns = gpsti_sim_later(stream->time_ns, task->submit_ns);
        event->done = task->sequence;
        --event->n_queued;
        break;
    case GPSTI_SIM_TASK_WAIT:
        while (event->done < task->sequence)
            gpsti_cond_wait_until(&device->changed, &device->mutex, GPST_FOREVER);
        stream->time_ns = gpsti_sim_later(stream->time_ns, event->time_ns);
        --event->n_queued;
        break;
    case GPSTI_SIM_TASK_NOTIFY:
        gpsti_sim_execute_notify(stream, task);
        break;
    }
}

/* ---- who plays ---------------------------------------------------------------- */

/* Waking a thread takes longer than most of what a stream does, and where it runs then is the system's choice; a device
   has no cores of the host's to take. So who waits for a stream plays it meanwhile, and its thread is called only for
   those who do not wait: they ask, or are to be told. Modelled time begins with the submission, whoever plays. */

/* Under the mutex, and with nobody else at it. */
GPSTI_PRIVATE void gpsti_sim_play_first(gpsti_sim_stream* stream) {
    gpsti_sim_task* const task = stream->first;
    stream->first = task->next;
    stream->is_played = true;
    gpsti_sim_execute_task(stream, task);
    stream->is_played = false;
    task->next = stream->free_tasks;
    stream->free_tasks = task;
    gpsti_a64_add(&stream->n_queued, (uint64_t)-1);
    if (gpsti_a64_load(&stream->n_queued) == 0)
        gpsti_cond_broadcast(&stream->idle);
    gpsti_cond_broadcast(&gpsti_sim_of(&stream->base)->changed);
}

/* Under the mutex. */
GPSTI_PRIVATE void gpsti_sim_call(gpsti_sim_stream* stream) {
    if (stream->first && !stream->is_played && gpsti_a32_exchange(&stream->is_called, 1) == 0)
        gpsti_cond_signal(&stream->work);
}

GPSTI_INTERN void gpsti_sim_call_all(gpsti_sim_device* device) {
    for (gpsti_sim_stream* stream = device->streams; stream; stream = stream->next)
        gpsti_sim_call(stream);
}

/* Under the mutex. What calls others, or waits for another stream, is left to the thread. */
GPSTI_PRIVATE void gpsti_sim_play(gpsti_sim_stream* stream) {
    while (stream->first && !stream->is_played && stream->first->kind != GPSTI_SIM_TASK_WAIT &&
           stream->first->kind != GPSTI_SIM_TASK_NOTIFY)
        gpsti_sim_play_first(stream);
    gpsti_sim_call(stream);
}

/* What is left when the stream is destroyed is played, too. */
GPSTI_PRIVATE void gpsti_sim_stream_main(void* arg) {
    gpsti_sim_stream* stream = (gpsti_sim_stream*)arg;
    gpsti_sim_device* device = gpsti_sim_of(&stream->base);
    gpsti_mutex_lock(&device->mutex);
    while (!stream->stop || stream->first) {
        while (!stream->stop && gpsti_a32_load(&stream->is_called) == 0)
            gpsti_cond_wait_until(&stream->work, &device->mutex, GPST_FOREVER);
        while (stream->first && !stream->is_played)
            gpsti_sim_play_first(stream);
        gpsti_a32_store(&stream->is_called, 0); /* who plays it now calls again for what is left */
    }
    gpsti_mutex_unlock(&device->mutex);
}

/* ---- submission -------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_sim_add_block(gpsti_sim_stream* stream) {
    size_t i;
    gpsti_sim_block* block =
        (gpsti_sim_block*)gpsti_alloc(stream->base.device->host, sizeof(gpsti_sim_block));
    if (!block)
        return GPST_ERROR_MEMORY;
    block->next = stream->blocks;
    stream->blocks = block;
    for (i = 0; i < GPSTI_SIM_BLOCK_TASKS; ++i) {
        block->tasks[i].next = stream->free_tasks;
        stream->free_tasks = &block->tasks[i];
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sim_submit_begin(gpsti_stream* stream, gpsti_fault call,
                                                const char* function, gpsti_sim_task** out) {
    gpsti_sim_stream* sim_stream = (gpsti_sim_stream*)stream;
    gpsti_sim_device* device = gpsti_sim_of(stream);
    const int64_t now_ns = gpsti_now_ns();
    gpsti_mutex_lock(&device->mutex);
    gpst_result result = gpsti_sim_enter(device, call, function);
    if (!GPST_FAILED(result) && !sim_stream->free_tasks)
        result = gpsti_sim_add_block(sim_stream);
    if (GPST_FAILED(result)) {
        gpsti_mutex_unlock(&device->mutex);
        return result;
    }
    *out = sim_stream->free_tasks;
    sim_stream->free_tasks = (*out)->next;
    (*out)->submit_ns = device->params.virtual_clock > 0 ? device->told_ns : now_ns;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sim_submit_end(gpsti_stream* stream, gpsti_sim_task* task,
                                              gpst_result result) {
    gpsti_sim_stream* sim_stream = (gpsti_sim_stream*)stream;
    gpsti_sim_device* device = gpsti_sim_of(stream);
    const bool record = task->kind == GPSTI_SIM_TASK_OPERATION && sim_stream->recording;
    if (!GPST_FAILED(result) && record)
        result = gpsti_recording_append(sim_stream->recording, &task->operation);
    if (GPST_FAILED(result) || record) {
        task->next = sim_stream->free_tasks;
        sim_stream->free_tasks = task;
    } else {
        task->next = NULL;
        if (sim_stream->first)
            sim_stream->last->next = task;
        else
            sim_stream->first = task;
        sim_stream->last = task;
        gpsti_a64_add(&sim_stream->n_queued, 1);
        if (task->kind == GPSTI_SIM_TASK_NOTIFY)
            gpsti_sim_call(sim_stream);
        else if (task->kind == GPSTI_SIM_TASK_WAIT) /* the stream waited for is to go on, too */
            gpsti_sim_call_all(device);
    }
    gpsti_mutex_unlock(&device->mutex);
    return result;
}

GPSTI_INTERN gpst_result gpsti_sim_check_not_recording(const gpsti_stream* stream, const char* function) {
    GPSTI_FAIL_IF(((const gpsti_sim_stream*)stream)->recording, GPST_ERROR_STATE,
                  "backend sim: %s: the stream is recording a graph", function);
    return GPST_OK;
}

/* ---- life -------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_sim_stream_free(gpsti_sim_stream* stream) {
    gpsti_host* host = stream->base.device->host;
    while (stream->blocks) {
        gpsti_sim_block* block = stream->blocks;
        stream->blocks = block->next;
        gpsti_free(host, block, sizeof(*block));
    }
    gpsti_recording_destroy(stream->recording);
    gpsti_free(host, stream, sizeof(*stream));
}

GPSTI_PRIVATE gpst_result gpsti_sim_stream_start(gpsti_sim_stream* stream) {
    gpsti_cond* const conds[] = {&stream->work, &stream->turn, &stream->idle};
    gpst_result result = GPST_OK;
    int n = 0;
    while (!GPST_FAILED(result) && n < 3)
        result = gpsti_cond_init(conds[n++]);
    if (GPST_FAILED(result))
        n--;
    else
        result = gpsti_thread_start(&stream->thread, gpsti_sim_stream_main, stream, "gpst-sim");
    while (GPST_FAILED(result) && n > 0)
        gpsti_cond_term(conds[--n]);
    return result;
}

GPSTI_PRIVATE void gpsti_sim_stream_list(gpsti_sim_stream* stream) {
    gpsti_sim_device* const device = gpsti_sim_of(&stream->base);
    gpsti_mutex_lock(&device->mutex);
    stream->next = device->streams;
    device->streams = stream;
    gpsti_mutex_unlock(&device->mutex);
}

/* Under the mutex. */
GPSTI_PRIVATE void gpsti_sim_stream_unlist(gpsti_sim_stream* stream) {
    gpsti_sim_stream** link = &gpsti_sim_of(&stream->base)->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
}

GPSTI_INTERN gpst_result gpsti_sim_stream_create(gpsti_device* device, gpsti_stream** out) {
    GPSTI_TRY(gpsti_sim_enter_locking(device, GPSTI_FAULT_STREAM, "stream_create"));
    gpsti_sim_stream* stream = (gpsti_sim_stream*)gpsti_alloc(device->host, sizeof(gpsti_sim_stream));
    if (!stream)
        return GPST_ERROR_MEMORY;
    stream->base.device = device;
    gpst_result result = gpsti_sim_add_block(stream);
    if (!GPST_FAILED(result))
        result = gpsti_sim_stream_start(stream);
    if (GPST_FAILED(result)) {
        gpsti_sim_stream_free(stream);
        return result;
    }
    gpsti_sim_stream_list(stream);
    *out = &stream->base;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_sim_stream_destroy(gpsti_stream* stream) {
    gpsti_sim_stream* sim_stream = (gpsti_sim_stream*)stream;
    if (!stream)
        return;
    gpsti_mutex_lock(&gpsti_sim_of(stream)->mutex);
    gpsti_sim_stream_unlist(sim_stream);
    sim_stream->stop = true;
    gpsti_cond_signal(&sim_stream->work);
    gpsti_mutex_unlock(&gpsti_sim_of(stream)->mutex);
    gpsti_thread_join(&sim_stream->thread);
    gpsti_cond_term(&sim_stream->idle);
    gpsti_cond_term(&sim_stream->turn);
    gpsti_cond_term(&sim_stream->work);
    gpsti_sim_stream_free(sim_stream);
}

/* Under the mutex. Waits even when the device is lost: what the caller frees next is not in use then. */
GPSTI_PRIVATE gpst_result gpsti_sim_stream_pass(gpsti_sim_stream* stream, bool wait) {
    if (wait)
        gpsti_sim_play(stream);
    while (wait && gpsti_a64_load(&stream->n_queued) > 0)
        gpsti_cond_wait_until(&stream->idle, &gpsti_sim_of(&stream->base)->mutex, GPST_FOREVER);
    if (gpsti_a64_load(&stream->n_queued) == 0)
        return GPST_OK;
    gpsti_sim_call(stream);
    return GPST_ERROR_WOULD_BLOCK;
}

GPSTI_PRIVATE gpst_result gpsti_sim_stream_finish(gpsti_stream* stream, bool wait, const char* function) {
    gpsti_sim_stream* sim_stream = (gpsti_sim_stream*)stream;
    gpsti_sim_device* device = gpsti_sim_of(stream);
    char reason[GPSTI_REASON_BYTES];
    if (!wait && gpsti_a64_load(&sim_stream->n_queued) > 0 && gpsti_a32_load(&sim_stream->is_called) != 0)
        return GPST_ERROR_WOULD_BLOCK; /* asked again and again: without keeping the streams out */
    gpsti_mutex_lock(&device->mutex);
    gpst_result result = gpsti_sim_check_not_recording(stream, function);
    if (!GPST_FAILED(result))
        result = gpsti_sim_stream_pass(sim_stream, wait);
    if (GPST_FAILED(result)) {
        gpsti_mutex_unlock(&device->mutex);
        return result;
    }
    gpsti_sim_tell(device, sim_stream->time_ns);
    result = gpsti_sim_take_result(sim_stream, reason);
    gpsti_mutex_unlock(&device->mutex);
    return GPST_FAILED(result) ? gpsti_fail(result, "%s", reason) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sim_stream_wait_idle(gpsti_stream* stream) {
    return gpsti_sim_stream_finish(stream, true, "stream_wait_idle");
}

GPSTI_INTERN gpst_result gpsti_sim_stream_query(gpsti_stream* stream) {
    return gpsti_sim_stream_finish(stream, false, "stream_query");
}

/* ---- files -------------------------------------------------------------------- */

/* Bytes queue for the disk's bandwidth; what each file costs beside them overlaps with others. */
GPSTI_INTERN int64_t gpsti_sim_disk_end(gpsti_device* device, bool write, size_t bytes, int64_t start_ns) {
    gpsti_sim_device* sim = (gpsti_sim_device*)device;
    const gpsti_sim_params* params = &sim->params;
    const double gbps = write ? params->write_gbps : params->read_gbps;
    double file_us = write ? params->write_us : params->read_us;
    int64_t* free_ns = write ? &sim->write_free_ns : &sim->read_free_ns;
    if (params->virtual_clock > 0 || (gbps <= 0 && file_us <= 0))
        return start_ns;
    gpsti_mutex_lock(&sim->mutex);
    file_us *= gpsti_sim_jitter(sim);
    *free_ns = *free_ns > start_ns ? *free_ns : start_ns;
    *free_ns += gbps > 0 ? (int64_t)((double)bytes / gbps) : 0;
    const int64_t end_ns = *free_ns + (int64_t)(file_us * 1e3);
    gpsti_mutex_unlock(&sim->mutex);
    return end_ns;
}
