/* core/device/devices.c -- which backends there are, and the one that a context asks for: by name, or the GPU that
   answers. Opens it, and keeps why. */
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

GPSTI_PRIVATE gpst_result gpsti_context_open(gpst_context* context, const gpsti_candidate* candidate,
                                             const char* params) {
    const gpsti_backend_i* const backend = candidate->backend();
    GPSTI_TRY(gpsti_backend_check(backend));
    if (backend != context->cpu->i || params)
        return backend->device_open(&context->host, params, &context->device);
    context->device = context->cpu;
    return GPST_OK;
}

/* The GPU when there is one that answers, else the CPU: why not is no failure of the caller's. */
GPSTI_PRIVATE gpst_result gpsti_context_choose_auto(gpst_context* context) {
    char before[GPSTI_REASON_BYTES];
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    gpsti_copy_text(context->backend_reason, sizeof context->backend_reason,
                    "auto: cuda and hip are not compiled in");
    for (size_t i = 0; i < GPSTI_N_CANDIDATES && !context->device; i++) {
        const gpsti_candidate* const candidate = &gpsti_candidates[i];
        if (!candidate->backend || candidate->backend == gpsti_backend_cpu ||
            candidate->backend == gpsti_backend_sim)
            continue;
        if (gpsti_context_open(context, candidate, NULL) == GPST_OK)
            gpsti_format(context->backend_reason, sizeof context->backend_reason, "auto: %s is available",
                         candidate->name);
        else
            gpsti_format(context->backend_reason, sizeof context->backend_reason, "auto: %.480s",
                         gpst_last_reason());
    }
    if (!context->device)
        context->device = context->cpu;
    return gpsti_fail(GPST_OK, "%s", before);
}

GPSTI_INTERN gpst_result gpsti_context_choose(gpst_context* context, const char* asked) {
    const char* params = NULL;
    const gpsti_candidate* const candidate = gpsti_candidate_find(asked, &params);
    if (!candidate)
        return gpsti_context_choose_auto(context);
    GPSTI_FAIL_IF(!candidate->backend, GPST_ERROR_NO_BACKEND,
                  "gpst_context_create: desc.backend=\"%s\": not compiled into this gpustage", asked);
    gpsti_format(context->backend_reason, sizeof context->backend_reason, "%s: asked for by name", asked);
    return gpsti_context_open(context, candidate, params);
}

GPSTI_INTERN bool gpsti_backend_is_known(const char* name) {
    const char* params = NULL;
    return !strcmp(name, "auto") || gpsti_candidate_find(name, &params) != NULL;
}
