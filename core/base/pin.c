/* core/base/pin.c -- lists of cores read and written, and threads bound to them. Owns
   no thread; how a system binds one is core/os's. */
#include "platform_internal.h"

#include "pin_internal.h"

#include <string.h>

#define GPSTI_PIN_ASKED "gpst_context_create: desc.pin=\"%.80s\": "

GPSTI_PRIVATE bool gpsti_cores_have(const gpsti_cores* cores, uint32_t core) {
    return core < GPSTI_MAX_CORES && (cores->words[core / 64] >> core % 64 & 1u) != 0;
}

GPSTI_PRIVATE void gpsti_cores_add(gpsti_cores* cores, uint32_t core) {
    cores->words[core / 64] |= (uint64_t)1 << core % 64;
}

/* ---- a list ---------------------------------------------------------------------- */

/* Digits; moves *at behind them. More than there can be cores is not a number. */
GPSTI_PRIVATE bool gpsti_pin_read_core(const char** at, uint32_t* out) {
    const char* const begin = *at;
    for (*out = 0; **at >= '0' && **at <= '9' && *out < GPSTI_MAX_CORES; ++*at)
        *out = *out * 10 + (uint32_t)(**at - '0');
    return *at != begin && *out < GPSTI_MAX_CORES;
}

/* "0-3,8" */
GPSTI_PRIVATE gpst_result gpsti_pin_read_list(const char* list, const gpsti_cores* allowed, gpsti_cores* out) {
    for (const char* at = list;; at++) {
        uint32_t first = 0, last = 0;
        bool ok = gpsti_pin_read_core(&at, &first);
        last = first;
        if (ok && *at == '-') {
            at++;
            ok = gpsti_pin_read_core(&at, &last);
        }
        GPSTI_FAIL_IF(!ok || last < first || (*at && *at != ','), GPST_ERROR_ARGUMENT,
                      GPSTI_PIN_ASKED "must be none, cores, or a list of cores like 0-3,8", list);
        for (uint32_t core = first; core <= last; core++) {
            GPSTI_FAIL_IF(!gpsti_cores_have(allowed, core), GPST_ERROR_ARGUMENT,
                          GPSTI_PIN_ASKED "core %u: not one that this process may run on", list, core);
            gpsti_cores_add(out, core);
        }
        if (!*at)
            return GPST_OK;
    }
}

/* Written as it is read, in runs; what does not fit is left out. */
GPSTI_PRIVATE void gpsti_pin_write_list(gpsti_pin* pin) {
    gpsti_copy_text(pin->text, sizeof pin->text, "cores ");
    for (uint32_t core = 0; core < GPSTI_MAX_CORES; core++) {
        const size_t used = strlen(pin->text);
        uint32_t last = core;
        if (!gpsti_cores_have(&pin->cores, core))
            continue;
        while (gpsti_cores_have(&pin->cores, last + 1))
            last++;
        gpsti_format(pin->text + used, sizeof pin->text - used, last > core ? "%s%u-%u" : "%s%u",
                     used > strlen("cores ") ? "," : "", core, last);
        pin->n_cores += last - core + 1;
        core = last;
    }
}

GPSTI_INTERN gpst_result gpsti_pin_parse(const char* asked, gpsti_pin* out) {
    gpsti_cores allowed;
    memset(out, 0, sizeof *out);
    gpsti_copy_text(out->text, sizeof out->text, "none");
    if (!asked || !strcmp(asked, "none"))
        return GPST_OK;
    if (!gpsti_cores_query(&allowed)) {
        gpsti_copy_text(out->text, sizeof out->text, "none: not on this system");
        return GPST_OK;
    }
    if (!strcmp(asked, "cores"))
        out->cores = allowed;
    else
        GPSTI_TRY(gpsti_pin_read_list(asked, &allowed, &out->cores));
    out->on = true;
    gpsti_pin_write_list(out);
    return GPST_OK;
}

/* ---- threads --------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_pin_worker(const gpsti_pin* pin, gpsti_thread* thread, uint32_t index) {
    gpsti_cores one;
    uint32_t core = 0;
    if (!pin || !pin->on)
        return GPST_OK;
    for (uint32_t left = index % pin->n_cores; left > 0 || !gpsti_cores_have(&pin->cores, core); core++)
        left -= gpsti_cores_have(&pin->cores, core) ? 1 : 0;
    memset(&one, 0, sizeof one);
    gpsti_cores_add(&one, core);
    return gpsti_thread_pin(thread, &one);
}

GPSTI_INTERN gpst_result gpsti_pin_io(const gpsti_pin* pin, gpsti_thread* thread) {
    return pin && pin->on ? gpsti_thread_pin(thread, &pin->cores) : GPST_OK;
}
