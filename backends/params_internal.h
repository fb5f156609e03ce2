/* backends/params_internal.h -- "key=value,..." behind a backend's name, and the
   calls that can be told to fail: for tests. Knows no device. */
#ifndef GPSTI_PARAMS_INTERNAL_H
#define GPSTI_PARAMS_INTERNAL_H

#include "../core/base/base_internal.h"

typedef enum gpsti_fault { /* fail_alloc=3: the third allocation fails */
                           GPSTI_FAULT_ALLOC = 0,
                           GPSTI_FAULT_HOST_ALLOC,
                           GPSTI_FAULT_COPY,
                           GPSTI_FAULT_LAUNCH,
                           GPSTI_FAULT_EVENT,
                           GPSTI_FAULT_STREAM,
                           GPSTI_FAULT_NOTIFY,
                           GPSTI_FAULT_GRAPH, /* a graph begun, or ended */
                           GPSTI_N_FAULTS,
                           GPSTI_FAULT_NONE = GPSTI_N_FAULTS /* a call that cannot be told to */
} gpsti_fault;

/* A parameter is a double at an offset of the backend's struct of them. */
typedef struct gpsti_param {
    const char* name;
    size_t offset;
    double min, max;
    bool whole;
} gpsti_param;

/* ARGUMENT names the key, its rule and every key there is. What the text does not name is left as it is. */
GPSTI_LINK gpst_result gpsti_params_parse(const char* backend, const gpsti_param* keys, size_t n_keys,
                                          const char* text, void* params);

/* Faults that were asked for and happened, of all devices of the process. */
GPSTI_LINK gpsti_a32* gpsti_faults_fired(void);

#endif
