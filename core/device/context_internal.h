/* core/device/context_internal.h -- the parts of a context that other nouns use. */
#ifndef GPSTI_CONTEXT_INTERNAL_H
#define GPSTI_CONTEXT_INTERNAL_H

#include "../../backends/backend.h"
#include "../base/base_internal.h"
#include "../base/pin_internal.h"
#include "context.h"
#include "device_internal.h"

/* What others make of it, each in a folder below this one. */
typedef struct gpsti_scheduler gpsti_scheduler; /* core/workers/scheduler.c */
typedef struct gpsti_memory gpsti_memory;       /* core/memory/memory.c */

struct gpst_context {
    gpsti_host host;
    gpsti_device* device; /* the backend chosen */
    gpsti_device* cpu;    /* the cpu backend's device, always there: what a lost device falls back to */
    gpst_device public_device; /* device, as gpst_context_device gives it; */
    gpst_device cpu_device;    /* and cpu, as the engine uses it */
    gpsti_scheduler* scheduler;
    gpsti_a32* fork_guard; /* NULL: processes are told apart by their number */
    gpst_context_info info;
    gpsti_device_info device_info; /* as it was when the context was made: asking costs a good deal of a small run */
    gpsti_pin pin;
    char backend_name[64];
    char backend_reason[GPSTI_REASON_BYTES];
    char device_name[128];
    char temporary_tag[17];
    bool require_backend;
    const char* system_root; /* "": where /proc is; a test has its own */
    uint32_t cores_online;
    gpsti_a64 host_bytes, device_bytes; /* frame memory, lent or free, as charged against the budgets in info */
    gpsti_a32 n_objects;  /* pipelines, pools, rings, readers, prefetchers and targets */
    struct gpsti_grants* grants; /* of it, to the items of pipelines: core/items/grant.c */
    gpsti_memory* memory;
};

/* The index-th backend that there can be, NULL when it is not compiled in; *name is NULL behind the last. */
GPSTI_INTERN const gpsti_backend_i* gpsti_backend_at(size_t index, const char** name);
/* The context's devices as core/device has them, without their caches; the context's info is resolved. */
GPSTI_INTERN void gpsti_context_init_devices(gpst_context* context);
/* May a desc name it? */
GPSTI_INTERN bool gpsti_backend_is_known(const char* name);
/* Opens the device that was asked for, "auto" included, and says in reason (GPSTI_REASON_BYTES) why it is this one.
   cpu: what is taken where it is the CPU; NULL: that is opened, too. member begins the sentence of one that is not
   here. */
GPSTI_INTERN gpst_result gpsti_device_choose(const char* member, const char* asked, gpsti_host* host,
                                             gpsti_device* cpu, gpsti_device** out, char* reason);
/* VERSION when the backend's half of the program comes from other sources than this one. */
GPSTI_INTERN gpst_result gpsti_backend_check(const gpsti_backend_i* backend);

/* ARGUMENT for NULL; FORKED in a child of the process that made the context. As cheap as a load where the
   system can wipe a page on fork. */
GPSTI_INTERN bool gpsti_context_forked(const gpst_context* context);
GPSTI_INTERN gpst_result gpsti_context_check(const gpst_context* context, const char* function);
/* Zeroed memory for what is made in a context, which outlives it; NULL: there is none. */
GPSTI_INTERN void* gpsti_context_add_object(gpst_context* context, size_t bytes);
GPSTI_INTERN void gpsti_context_drop_object(gpst_context* context, void* object, size_t bytes);

#endif
