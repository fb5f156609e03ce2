/* backends/sim_params.c -- reads "key=value,..." into the parameters of a
   simulated device. */
#include "../core/platform_internal.h"

#include "sim_internal.h"

#include <string.h>

typedef struct gpsti_sim_key {
    const char* name;
    size_t offset;
    double min, max;
    bool whole;
} gpsti_sim_key;

#define GPSTI_SIM_FAIL(call) (offsetof(gpsti_sim_params, fail) + sizeof(double) * (size_t)(call))
static const gpsti_sim_key gpsti_sim_keys[] = {
    {"h2d_gbps", offsetof(gpsti_sim_params, h2d_gbps), 0, 1e6, false},
    {"d2h_gbps", offsetof(gpsti_sim_params, d2h_gbps), 0, 1e6, false},
    {"d2d_gbps", offsetof(gpsti_sim_params, d2d_gbps), 0, 1e6, false},
    {"launch_us", offsetof(gpsti_sim_params, launch_us), 0, 1e9, false},
    {"kernel_us", offsetof(gpsti_sim_params, kernel_us), 0, 1e9, false},
    {"copy_engines", offsetof(gpsti_sim_params, copy_engines), 1, 2, true},
    {"memory_mb", offsetof(gpsti_sim_params, memory_mb), 0, 1e9, false},
    {"oom_mb", offsetof(gpsti_sim_params, oom_mb), 0, 1e9, false},
    {"fail_alloc", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_ALLOC), 0, 1e9, true},
    {"fail_host_alloc", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_HOST_ALLOC), 0, 1e9, true},
    {"fail_copy", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_COPY), 0, 1e9, true},
    {"fail_launch", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_LAUNCH), 0, 1e9, true},
    {"fail_event", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_EVENT), 0, 1e9, true},
    {"fail_stream", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_STREAM), 0, 1e9, true},
    {"fail_notify", GPSTI_SIM_FAIL(GPSTI_SIM_CALL_NOTIFY), 0, 1e9, true},
    {"lose_at", offsetof(gpsti_sim_params, lose_at), 0, 1e9, true},
    {"jitter_pct", offsetof(gpsti_sim_params, jitter_pct), 0, 100, false},
    {"seed", offsetof(gpsti_sim_params, seed), 0, 1e9, true}};
#define GPSTI_SIM_N_KEYS (sizeof(gpsti_sim_keys) / sizeof(gpsti_sim_keys[0]))

GPSTI_PRIVATE void gpsti_sim_list_keys(char* out, size_t out_bytes) {
    size_t i;
    size_t length = 0;
    out[0] = 0;
    for (i = 0; i < GPSTI_SIM_N_KEYS; ++i) {
        gpsti_copy_text(out + length, out_bytes - length, i ? ", " : "");
        length += strlen(out + length);
        gpsti_copy_text(out + length, out_bytes - length, gpsti_sim_keys[i].name);
        length += strlen(out + length);
    }
}

/* digits[.digits], the whole of the text: what strtod makes of a point depends on the locale. */
GPSTI_PRIVATE bool gpsti_sim_parse_number(const char* text, size_t length, double* out) {
    double value = 0;
    double unit = 1;
    bool fraction = false;
    size_t n_digits = 0;
    size_t i;
    for (i = 0; i < length; ++i) {
        if (text[i] == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || ++n_digits > 15)
            return false;
        value = value * 10 + (text[i] - '0');
        unit *= fraction ? 10 : 1;
    }
    *out = value / unit;
    return n_digits > 0;
}

GPSTI_PRIVATE gpst_result gpsti_sim_parse_pair(const char* pair, size_t length, uint32_t* seen,
                                               gpsti_sim_params* params) {
    char keys[300];
    size_t i;
    double value = 0;
    const char* equals = (const char*)memchr(pair, '=', length);
    const size_t name_length = equals ? (size_t)(equals - pair) : length;
    for (i = 0; i < GPSTI_SIM_N_KEYS; ++i)
        if (strlen(gpsti_sim_keys[i].name) == name_length &&
            !memcmp(gpsti_sim_keys[i].name, pair, name_length))
            break;
    gpsti_sim_list_keys(keys, sizeof(keys));
    GPSTI_FAIL_IF(i == GPSTI_SIM_N_KEYS, GPST_ERROR_ARGUMENT,
                  "backend sim: \"%.*s\": no such key; keys are %s",
                  (int)(name_length < 64 ? name_length : 64), pair, keys);
    const gpsti_sim_key* key = &gpsti_sim_keys[i];
    const size_t value_length = equals ? length - name_length - 1 : 0;
    const bool is_number = equals && gpsti_sim_parse_number(equals + 1, value_length, &value);
    GPSTI_FAIL_IF(!is_number || value < key->min || value > key->max ||
                      (key->whole && value != (double)(uint64_t)value),
                  GPST_ERROR_ARGUMENT, "backend sim: %s=\"%.*s\": must be a %s from %u to %u; keys are %s",
                  key->name, (int)(value_length < 32 ? value_length : 32), equals ? equals + 1 : "",
                  key->whole ? "whole number" : "number", (unsigned)key->min, (unsigned)key->max, keys);
    GPSTI_FAIL_IF(*seen & (1u << i), GPST_ERROR_ARGUMENT, "backend sim: %s: is given twice", key->name);
    *seen |= 1u << i;
    memcpy((char*)params + key->offset, &value, sizeof(value));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sim_parse(const char* text, gpsti_sim_params* params) {
    uint32_t seen = 0;
    memset(params, 0, sizeof(*params));
    params->h2d_gbps = params->d2h_gbps = 12; /* about PCIe 3.0 x16 */
    params->launch_us = 5;
    params->copy_engines = 2;
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        GPSTI_TRY(gpsti_sim_parse_pair(text, length, &seen, params));
        text += length;
        text += *text == ',';
    }
    return GPST_OK;
}
