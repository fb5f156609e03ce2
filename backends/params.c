/* backends/params.c -- reads "key=value,..." into a backend's struct of
   parameters, by the backend's table of keys. */
#include "../core/base/platform_internal.h"

#include "params_internal.h"

#include <string.h>

GPSTI_PRIVATE void gpsti_params_list(const gpsti_param* keys, size_t n_keys, char* out, size_t out_bytes) {
    size_t i;
    size_t length = 0;
    out[0] = 0;
    for (i = 0; i < n_keys; ++i) {
        gpsti_copy_text(out + length, out_bytes - length, i ? ", " : "");
        length += strlen(out + length);
        gpsti_copy_text(out + length, out_bytes - length, keys[i].name);
        length += strlen(out + length);
    }
}

/* digits[.digits], the whole of the text: what strtod makes of a point depends on the locale. */
GPSTI_PRIVATE bool gpsti_params_number(const char* text, size_t length, double* out) {
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

GPSTI_PRIVATE gpst_result gpsti_params_pair(const char* backend, const gpsti_param* keys, size_t n_keys,
                                            const char* pair, size_t length, uint32_t* seen, void* params) {
    char names[400];
    size_t i;
    double value = 0;
    const char* equals = (const char*)memchr(pair, '=', length);
    const size_t name_length = equals ? (size_t)(equals - pair) : length;
    for (i = 0; i < n_keys; ++i)
        if (strlen(keys[i].name) == name_length &&
            !memcmp(keys[i].name, pair, name_length))
            break;
    gpsti_params_list(keys, n_keys, names, sizeof(names));
    GPSTI_FAIL_IF(i == n_keys, GPST_ERROR_ARGUMENT,
                  "backend %s: \"%.*s\": no such key; keys are %s", backend,
                  (int)(name_length < 64 ? name_length : 64), pair, names);
    const gpsti_param* key = &keys[i];
    const size_t value_length = equals ? length - name_length - 1 : 0;
    const bool is_number = equals && gpsti_params_number(equals + 1, value_length, &value);
    GPSTI_FAIL_IF(!is_number || value < key->min || value > key->max ||
                      (key->whole && value != (double)(uint64_t)value),
                  GPST_ERROR_ARGUMENT, "backend %s: %s=\"%.*s\": must be a %s from %u to %u; keys are %s",
                  backend, key->name, (int)(value_length < 32 ? value_length : 32), equals ? equals + 1 : "",
                  key->whole ? "whole number" : "number", (unsigned)key->min, (unsigned)key->max, names);
    GPSTI_FAIL_IF(*seen & (1u << i), GPST_ERROR_ARGUMENT, "backend %s: %s: is given twice", backend, key->name);
    *seen |= 1u << i;
    memcpy((char*)params + key->offset, &value, sizeof(value));
    return GPST_OK;
}

GPSTI_LINK gpst_result gpsti_params_parse(const char* backend, const gpsti_param* keys, size_t n_keys,
                                          const char* text, void* params) {
    uint32_t seen = 0;
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        GPSTI_TRY(gpsti_params_pair(backend, keys, n_keys, text, length, &seen, params));
        text += length;
        text += *text == ',';
    }
    return GPST_OK;
}

GPSTI_LINK gpsti_a32* gpsti_faults_fired(void) {
    static gpsti_a32 fired;
    return &fired;
}
