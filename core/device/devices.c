/* core/device/devices.c -- the backend that a context or a user asks for: by name, or the GPU that answers. Opens it,
   and says why. */
#include "../base/platform_internal.h"

#include "context_internal.h"

#include <string.h>

GPSTI_INTERN const gpsti_backend_i* gpsti_backend_at(size_t index, const char** name) {
    size_t n = 0;
    const gpsti_backend_entry* const entries = gpsti_backend_list(&n);
    *name = index < n && !entries[index].by_name_only ? entries[index].name : NULL;
    return *name && entries[index].backend ? entries[index].backend() : NULL;
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

/* "cuda:device=1" is the entry "cuda"; *params is what follows the colon, NULL without one. NULL for "auto" and for
   names that are none. */
GPSTI_PRIVATE const gpsti_backend_entry* gpsti_backend_find(const char* name, const char** params) {
    const size_t length = strcspn(name, ":");
    size_t n = 0;
    const gpsti_backend_entry* const entries = gpsti_backend_list(&n);
    *params = name[length] ? name + length + 1 : NULL;
    for (size_t i = 0; i < n; i++)
        if (strlen(entries[i].name) == length && !strncmp(entries[i].name, name, length))
            return &entries[i];
    return NULL;
}

/* What is to be opened, and for whom. */
typedef struct gpsti_choice {
    gpsti_host* host;
    gpsti_device* cpu; /* NULL: the CPU is opened as any other */
    char* reason;      /* GPSTI_REASON_BYTES: why this one */
} gpsti_choice;

GPSTI_PRIVATE gpst_result gpsti_choice_open(const gpsti_choice* choice, const gpsti_backend_entry* entry,
                                            const char* params, gpsti_device** out) {
    const gpsti_backend_i* const backend = entry->backend();
    GPSTI_TRY(gpsti_backend_check(backend));
    if (!choice->cpu || backend != choice->cpu->i || params)
        return backend->device_open(choice->host, params, out);
    *out = choice->cpu;
    return GPST_OK;
}

/* The GPU when there is one that answers, else the CPU: why not is no failure of the caller's. */
GPSTI_PRIVATE gpst_result gpsti_choice_open_auto(const gpsti_choice* choice, gpsti_device** out) {
    char before[GPSTI_REASON_BYTES];
    size_t n = 0;
    const gpsti_backend_entry* const entries = gpsti_backend_list(&n);
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    gpsti_copy_text(choice->reason, GPSTI_REASON_BYTES, "auto: cuda and hip are not compiled in");
    for (size_t i = 0; i < n && !*out; i++) {
        if (!entries[i].backend || entries[i].backend == gpsti_backend_cpu || entries[i].by_name_only)
            continue;
        if (gpsti_choice_open(choice, &entries[i], NULL, out) == GPST_OK)
            gpsti_format(choice->reason, GPSTI_REASON_BYTES, "auto: %s is available", entries[i].name);
        else
            gpsti_format(choice->reason, GPSTI_REASON_BYTES, "auto: %.480s", gpst_last_reason());
    }
    if (!*out)
        GPSTI_TRY(gpsti_choice_open(choice, &entries[0], NULL, out));
    return gpsti_fail(GPST_OK, "%s", before);
}

/* Behind the reason, which device it is, where a vendor's device can be worked on in several contexts. */
GPSTI_PRIVATE void gpsti_choice_name_context(const gpsti_choice* choice, const gpsti_device* device) {
    gpsti_device_info info;
    memset(&info, 0, sizeof info);
    device->i->device_query(device, &info);
    const size_t n = strlen(choice->reason);
    if (info.context[0])
        gpsti_format(choice->reason + n, GPSTI_REASON_BYTES - n, "; device %d, %s", (int)info.ordinal, info.context);
}

GPSTI_INTERN gpst_result gpsti_device_choose(const char* member, const char* asked, gpsti_host* host,
                                             gpsti_device* cpu, gpsti_device** out, char* reason) {
    gpsti_choice choice;
    const char* params = NULL;
    const gpsti_backend_entry* const entry = gpsti_backend_find(asked, &params);
    choice.host = host;
    choice.cpu = cpu;
    choice.reason = reason;
    if (!entry) {
        GPSTI_TRY(gpsti_choice_open_auto(&choice, out));
        gpsti_choice_name_context(&choice, *out);
        return GPST_OK;
    }
    GPSTI_FAIL_IF(!entry->backend, GPST_ERROR_NO_BACKEND, "%s=\"%s\": not compiled into this gpustage", member,
                  asked);
    gpsti_format(reason, GPSTI_REASON_BYTES, "%s: asked for by name", asked);
    GPSTI_TRY(gpsti_choice_open(&choice, entry, params, out));
    gpsti_choice_name_context(&choice, *out);
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_backend_is_known(const char* name) {
    const char* params = NULL;
    return !strcmp(name, "auto") || gpsti_backend_find(name, &params) != NULL;
}
