/* backends/sim_internal.h -- what a simulated device consists of: its parameters,
   engines, streams and tasks. */
#ifndef GPSTI_SIM_INTERNAL_H
#define GPSTI_SIM_INTERNAL_H

#include "operation_internal.h"
#include "params_internal.h"

#define GPSTI_SIM_BLOCK_TASKS 32

/* All of one type, so that one table describes them; 0 = not modelled, never, or as the host has it. */
typedef struct gpsti_sim_params {
    double h2d_gbps, d2h_gbps, d2d_gbps; /* 10^9 bytes a second; 0 = as fast as the host copies */
    double launch_us;
    double kernel_us, kernel_gbps; /* of a kernel: us + its bytes / gbps; both 0 = as long as the host computes */
    double copy_engines;
    double read_gbps, write_gbps, read_us, write_us; /* of files: bandwidth, and each file's own time; 0 = as it is */
    double memory_mb, oom_mb; /* MiB: what the device says it has; where allocation really ends */
    double others_mb;         /* MiB: what other processes use of it */
    double fail[GPSTI_N_FAULTS];
    double lose_at;
    double jitter_pct, seed;
    double pin_gbps;      /* of making host memory, one thread at a time; 0 = as long as the system takes */
    double mapped;        /* 1: kernels reach pinned host memory */
    double virtual_clock; /* 1: modelled time passes on the device's clock only, and nobody waits for it */
} gpsti_sim_params;

/* ARGUMENT names the key, its rule and every key there is. */
GPSTI_INTERN gpst_result gpsti_sim_parse(const char* text, gpsti_sim_params* params);

typedef struct gpsti_sim_memory {
    char* ptr;
    size_t bytes, mapped_bytes;
} gpsti_sim_memory;

typedef struct gpsti_sim_memories { /* by address */
    gpsti_sim_memory* list;
    size_t n, capacity;
} gpsti_sim_memories;

/* Does one thing at a time, first come first served. */
typedef struct gpsti_sim_engine {
    bool busy;
    struct gpsti_sim_stream* first; /* who waits for it, in order of arrival */
    struct gpsti_sim_stream* last;
    int64_t free_ns; /* modelled end of what it did last */
} gpsti_sim_engine;

typedef enum gpsti_sim_vendor_error {
    GPSTI_SIM_VENDOR_NONE = 0,
    GPSTI_SIM_VENDOR_INJECTED,
    GPSTI_SIM_VENDOR_MEMORY,
    GPSTI_SIM_VENDOR_LOST,
    GPSTI_SIM_VENDOR_KERNEL
} gpsti_sim_vendor_error;

typedef struct gpsti_sim_device {
    gpsti_device base;
    gpsti_sim_params params;
    uint64_t memory_bytes;
    gpsti_mutex mutex;  /* over all below, and every stream, event and graph */
    gpsti_cond changed; /* an event is done, an event or a graph is no longer in use */
    gpsti_sim_engine copy_engines[2];
    gpsti_sim_engine compute_engine;
    struct gpsti_sim_stream* streams; /* all there are */
    gpsti_sim_memories memories;   /* of the device */
    gpsti_sim_memories registered; /* of the host: what others allocated */
    uint64_t used_bytes;
    uint64_t n_calls[GPSTI_N_FAULTS];
    uint64_t n_launches;
    uint64_t random;
    int64_t told_ns; /* virtual clock: the latest end the host was told of; what it submits next is not earlier */
    int64_t pin_free_ns; /* when the host memory that was asked for by now is made */
    int64_t read_free_ns, write_free_ns; /* when the modelled disk has moved what was asked for by now */
    bool lost;
    gpsti_a32 vendor_error;
} gpsti_sim_device;

typedef struct gpsti_sim_event {
    gpsti_event base;
    uint64_t recorded, done; /* how often it was put on a stream, and was passed there */
    int64_t time_ns;
    uint32_t n_queued; /* tasks that name it */
} gpsti_sim_event;

typedef enum gpsti_sim_task_kind {
    GPSTI_SIM_TASK_OPERATION = 0,
    GPSTI_SIM_TASK_GRAPH,
    GPSTI_SIM_TASK_RECORD,
    GPSTI_SIM_TASK_WAIT,
    GPSTI_SIM_TASK_NOTIFY
} gpsti_sim_task_kind;

typedef struct gpsti_sim_task gpsti_sim_task;
struct gpsti_sim_task {
    gpsti_sim_task* next;
    gpsti_sim_task_kind kind;
    int64_t submit_ns;
    gpsti_operation operation;
    gpsti_recording* recording;
    gpsti_sim_event* event;
    uint64_t sequence; /* which recording of the event */
    void (*func)(void* user_data, gpst_result result);
    void* user_data;
};

typedef struct gpsti_sim_block gpsti_sim_block;
struct gpsti_sim_block {
    gpsti_sim_block* next;
    gpsti_sim_task tasks[GPSTI_SIM_BLOCK_TASKS];
};

typedef struct gpsti_sim_stream {
    gpsti_stream base;
    gpsti_thread thread;
    gpsti_cond work; /* its thread is called, or is to stop */
    gpsti_cond turn; /* it has the engine it waits for */
    gpsti_cond idle; /* n_queued has come to 0 */
    bool stop;
    bool is_played;       /* by its thread, or by one that waits for it */
    gpsti_a32 is_called;  /* its thread, which has not found that there is nothing to do since */
    gpsti_a32 has_engine; /* set under the mutex, looked at without */
    struct gpsti_sim_stream* next;         /* of the device's */
    struct gpsti_sim_stream* next_in_turn; /* of those that wait for the same engine */
    gpsti_sim_task* first;
    gpsti_sim_task* last;
    gpsti_sim_task* free_tasks;
    gpsti_sim_block* blocks;
    gpsti_a64 n_queued; /* with the one that runs; changed under the mutex */
    gpsti_recording* recording;
    int64_t time_ns;    /* modelled end of its latest operation */
    gpst_result result; /* first failure that nobody was told of yet */
    char reason[GPSTI_REASON_BYTES];
} gpsti_sim_stream;

GPSTI_INLINE gpsti_sim_device* gpsti_sim_of(const gpsti_stream* stream) {
    return (gpsti_sim_device*)stream->device;
}

/* Under the mutex. The host learns that the device got as far as time_ns. */
GPSTI_INLINE void gpsti_sim_tell(gpsti_sim_device* device, int64_t time_ns) {
    if (time_ns > device->told_ns)
        device->told_ns = time_ns;
}

/* Every call that can fail passes here, under the mutex: a lost device refuses, and the n-th call fails on
   request. */
GPSTI_INTERN gpst_result gpsti_sim_enter(gpsti_sim_device* device, gpsti_fault call, const char* function);
/* The same for who does not hold the mutex. */
GPSTI_INTERN gpst_result gpsti_sim_enter_locking(gpsti_device* device, gpsti_fault call,
                                                 const char* function);

/* backends/sim_stream.c */
GPSTI_INTERN double gpsti_sim_jitter(gpsti_sim_device* device); /* the next factor; under the mutex */
GPSTI_INTERN int64_t gpsti_sim_disk_end(gpsti_device* device, bool write, size_t bytes, int64_t start_ns);
GPSTI_INTERN gpst_result gpsti_sim_stream_create(gpsti_device* device, gpsti_stream** out);
GPSTI_INTERN void gpsti_sim_stream_destroy(gpsti_stream* stream);
GPSTI_INTERN gpst_result gpsti_sim_stream_wait_idle(gpsti_stream* stream);
GPSTI_INTERN gpst_result gpsti_sim_stream_query(gpsti_stream* stream);
/* Under the mutex. The threads of all streams that have work: one of them is waited for, and nobody says which. */
GPSTI_INTERN void gpsti_sim_call_all(gpsti_sim_device* device);
/* STATE with the reason set: for what cannot be recorded into a graph. */
GPSTI_INTERN gpst_result gpsti_sim_check_not_recording(const gpsti_stream* stream, const char* function);
/* Takes the mutex and hands out a task; on OK the mutex is held until gpsti_sim_submit_end. */
GPSTI_INTERN gpst_result gpsti_sim_submit_begin(gpsti_stream* stream, gpsti_fault call,
                                                const char* function, gpsti_sim_task** out);
/* Queues the task when result is OK, takes it back when not; lets the mutex go and gives result back. */
GPSTI_INTERN gpst_result gpsti_sim_submit_end(gpsti_stream* stream, gpsti_sim_task* task, gpst_result result);

#endif
