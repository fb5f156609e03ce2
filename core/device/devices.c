/* core/device/devices.c -- which backends there are, and the one that a context or a user asks for: by name, or the GPU
   that answers. Opens it, and says why. */
#include "../base/platform_internal.h"

#include "context_internal.h"

#include <string.h>

typedef struct gpsti_candidate {
    const char* name;
    const gpsti_backend_i* (*backend)(void); /* NULL: not compiled in */
} gpsti_candidate;

#if defined(GPSTI_CUDA)
#define GPSTI_CANDIDATE_CUDA gpsti_backend_gpu
#define GPSTI_CANDIDATE_HIP NULL
#elif defined(GPSTI_HIP)
#define GPSTI_CANDIDATE_CUDA NULL
#define GPSTI_CANDIDATE_HIP gpsti_backend_gpu
#else
#define GPSTI_CANDIDATE_CUDA NULL
#define GPSTI_CANDIDATE_HIP NULL
#endif

/* In the order in which gpst_probe lists them. */
GPSTI_PRIVATE const gpsti_candidate gpsti_candidates[] = {
    {"cpu", gpsti_backend_cpu},
    {"sim", gpsti_backend_sim},
    {"cuda", GPSTI_CANDIDATE_CUDA},
    {"hip", GPSTI_CANDIDATE_HIP},
};
#define GPSTI_N_CANDIDATES (sizeof gpsti_candidates / sizeof gpsti_candidates[0])

GPSTI_INTERN const gpsti_backend_i* gpsti_backend_at(size_t index, const char** name) {
    *name = index < GPSTI_N_CANDIDATES ? gpsti_candidates[index].name : NULL;
    return *name && gpsti_candidates[index].backend ? gpsti_candidates[index].backend() : NULL;
}

GPSTI_INTERN gpst_result gpsti_backend_check(const gpsti_backend_i* backend) {
    GPSTI_FAIL_IF(backend->size_bytes != sizeof *backend || backend->abi != GPSTI_BACKEND_ABI ||
                      (backend->source_id[0] && GPSTI_SOURCE_ID[0] && strcmp(backend->source_id, GPSTI_SOURCE_ID)),
                  GPST_ERROR_VERSION,
                  "backend: abi=%u: the GPU half was compiled from another gpustage.h than this half (abi %u): "
                  "compile both again",
                  (unsigned)backend->abi, (unsigned)GPSTI_BACKEND_ABI);
    return GPST_OK;
}

/* "sim:memory=1g" is the candidate "sim"; *params is what follows the colon, NULL without one. NULL for "auto" and
   for names that are none. */
GPSTI_PRIVATE const gpsti_candidate* gpsti_candidate_find(const char* name, const char** params) {
    const size_t length = strcspn(name, ":");
    *params = name[length] ? name + length + 1 : NULL;
    for (size_t i = 0; i < GPSTI_N_CANDIDATES; i++)
        if (strlen(gpsti_candidates[i].name) == length && !strncmp(gpsti_candidates[i].name, name, length))
            return &gpsti_candidates[i];
    return NULL;
}

/* What is to be opened, and for whom. */
typedef struct gpsti_choice {
    gpsti_host* host;
    gpsti_device* cpu; /* NULL: the CPU is opened as any other */
    char* reason;      /* GPSTI_REASON_BYTES: why this one */
} gpsti_choice;

GPSTI_PRIVATE gpst_result gpsti_choice_open(const gpsti_choice* choice, const gpsti_candidate* candidate,
                                            const char* params, gpsti_device** out) {
    const gpsti_backend_i* const backend = candidate->backend();
    GPSTI_TRY(gpsti_backend_check(backend));
    if (!choice->cpu || backend != choice->cpu->i || params)
        return backend->device_open(choice->host, params, out);
    *out = choice->cpu;
    return GPST_OK;
}

/* The GPU when there is one that answers, else the CPU: why not is no failure of the caller's. */
GPSTI_PRIVATE gpst_result gpsti_choice_open_auto(const gpsti_choice* choice, gpsti_device** out) {
    char before[GPSTI_REASON_BYTES];
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    gpsti_copy_text(choice->reason, GPSTI_REASON_BYTES, "auto: cuda and hip are not compiled in");
    for (size_t i = 0; i < GPSTI_N_CANDIDATES && !*out; i++) {
        const gpsti_candidate* const candidate = &gpsti_candidates[i];
        if (!candidate->backend || candidate->backend == gpsti_backend_cpu ||
            candidate->backend == gpsti_backend_sim)
            continue;
        if (gpsti_choice_open(choice, candidate, NULL, out) == GPST_OK)
            gpsti_format(choice->reason, GPSTI_REASON_BYTES, "auto: %s is available", candidate->name);
        else
            gpsti_format(choice->reason, GPSTI_REASON_BYTES, "auto: %.480s", gpst_last_reason());
    }
    if (!*out)
        GPSTI_TRY(gpsti_choice_open(choice, &gpsti_candidates[0], NULL, out));
    return gpsti_fail(GPST_OK, "%s", before);
}

GPSTI_INTERN gpst_result gpsti_device_choose(const char* member, const char* asked, gpsti_host* host,
                                             gpsti_device* cpu, gpsti_device** out, char* reason) {
    gpsti_choice choice;
    const char* params = NULL;
    const gpsti_candidate* const candidate = gpsti_candidate_find(asked, &params);
    choice.host = host;
    choice.cpu = cpu;
    choice.reason = reason;
    if (!candidate)
        return gpsti_choice_open_auto(&choice, out);
    GPSTI_FAIL_IF(!candidate->backend, GPST_ERROR_NO_BACKEND, "%s=\"%s\": not compiled into this gpustage", member,
                  asked);
    gpsti_format(reason, GPSTI_REASON_BYTES, "%s: asked for by name", asked);
    return gpsti_choice_open(&choice, candidate, params, out);
}

GPSTI_INTERN bool gpsti_backend_is_known(const char* name) {
    const char* params = NULL;
    return !strcmp(name, "auto") || gpsti_candidate_find(name, &params) != NULL;
}
