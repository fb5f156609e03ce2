/* backends/list.c -- which backends this build has, by name. Opens none of them. */
#include "../core/base/platform_internal.h"

#include "backend.h"

#if defined(GPSTI_CUDA)
#define GPSTI_ENTRY_CUDA gpsti_backend_gpu
#define GPSTI_ENTRY_HIP NULL
#elif defined(GPSTI_HIP)
#define GPSTI_ENTRY_CUDA NULL
#define GPSTI_ENTRY_HIP gpsti_backend_gpu
#else
#define GPSTI_ENTRY_CUDA NULL
#define GPSTI_ENTRY_HIP NULL
#endif

/* In the order in which gpst_probe lists them; what is for tests only stands last. */
GPSTI_PRIVATE const gpsti_backend_entry gpsti_backend_entries[] = {
    {"cpu", gpsti_backend_cpu, false},
    {"cuda", GPSTI_ENTRY_CUDA, false},
    {"hip", GPSTI_ENTRY_HIP, false},
    {"sim", gpsti_backend_sim, true},
};

GPSTI_INTERN const gpsti_backend_entry* gpsti_backend_list(size_t* n) {
    *n = sizeof gpsti_backend_entries / sizeof gpsti_backend_entries[0];
    return gpsti_backend_entries;
}
