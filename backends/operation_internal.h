/* backends/operation_internal.h -- one device operation as the backends that
   compute on the host keep, record and run it. Shared by cpu and sim only. */
#ifndef GPSTI_OPERATION_INTERNAL_H
#define GPSTI_OPERATION_INTERNAL_H

#include "backend.h"

typedef enum gpsti_operation_kind {
    GPSTI_OPERATION_COPY = 1,
    GPSTI_OPERATION_SET = 2,
    GPSTI_OPERATION_LAUNCH = 3
} gpsti_operation_kind;

typedef struct gpsti_operation gpsti_operation;
struct gpsti_operation {
    gpsti_operation* next; /* in a graph */
    gpsti_operation_kind kind;
    gpsti_copy_kind copy_kind;
    void* dst;
    const void* src;
    size_t bytes;
    int value; /* of a set */
    const gpsti_kernel* kernel;
    gpsti_exec exec;
    GPSTI_ALIGNAS(16) unsigned char args[GPSTI_ARGS_BYTES];
};

/* Check and fill; ARGUMENT with the reason set. `function` begins the reason. */
GPSTI_INTERN gpst_result gpsti_operation_copy(gpsti_operation* operation, const char* function,
                                              gpsti_copy_kind kind, void* dst, const void* src, size_t bytes);
GPSTI_INTERN gpst_result gpsti_operation_set(gpsti_operation* operation, const char* function, void* dst,
                                             int value, size_t bytes);
GPSTI_INTERN gpst_result gpsti_operation_launch(gpsti_operation* operation, const char* function,
                                                const gpsti_kernel* kernel, const void* args,
                                                size_t args_bytes, const gpsti_exec* exec);
/* Does the work on the calling thread; fails only as a kernel fails. */
GPSTI_INTERN gpst_result gpsti_operation_run(const gpsti_operation* operation);

/* A graph of either backend: what was recorded, in order. */
typedef struct gpsti_recording {
    gpsti_graph base;
    gpsti_operation* first;
    gpsti_operation* last;
    uint32_t n_queued; /* launches of it that are not done: sim's, under its mutex */
} gpsti_recording;

GPSTI_INTERN gpst_result gpsti_recording_create(gpsti_device* device, gpsti_recording** out);
GPSTI_INTERN void gpsti_recording_destroy(gpsti_recording* recording);
GPSTI_INTERN gpst_result gpsti_recording_append(gpsti_recording* recording, const gpsti_operation* operation);

#endif
