/* backends/sim_params.c -- the keys of a simulated device's parameters, what they
   are when nobody sets them, and the presets. */
#include "../core/base/platform_internal.h"

#include "sim_internal.h"

#include <string.h>

#define GPSTI_SIM_FAIL(call) (offsetof(gpsti_sim_params, fail) + sizeof(double) * (size_t)(call))
static const gpsti_param gpsti_sim_keys[] = {
    {"h2d_gbps", offsetof(gpsti_sim_params, h2d_gbps), 0, 1e6, false},
    {"d2h_gbps", offsetof(gpsti_sim_params, d2h_gbps), 0, 1e6, false},
    {"d2d_gbps", offsetof(gpsti_sim_params, d2d_gbps), 0, 1e6, false},
    {"launch_us", offsetof(gpsti_sim_params, launch_us), 0, 1e9, false},
    {"kernel_us", offsetof(gpsti_sim_params, kernel_us), 0, 1e9, false},
    {"kernel_gbps", offsetof(gpsti_sim_params, kernel_gbps), 0, 1e6, false},
    {"pin_gbps", offsetof(gpsti_sim_params, pin_gbps), 0, 1e6, false},
    {"copy_engines", offsetof(gpsti_sim_params, copy_engines), 1, 2, true},
    {"read_gbps", offsetof(gpsti_sim_params, read_gbps), 0, 1e6, false},
    {"write_gbps", offsetof(gpsti_sim_params, write_gbps), 0, 1e6, false},
    {"read_us", offsetof(gpsti_sim_params, read_us), 0, 1e9, false},
    {"write_us", offsetof(gpsti_sim_params, write_us), 0, 1e9, false},
    {"memory_mb", offsetof(gpsti_sim_params, memory_mb), 0, 1e9, false},
    {"oom_mb", offsetof(gpsti_sim_params, oom_mb), 0, 1e9, false},
    {"others_mb", offsetof(gpsti_sim_params, others_mb), 0, 1e9, false},
    {"fail_alloc", GPSTI_SIM_FAIL(GPSTI_FAULT_ALLOC), 0, 1e9, true},
    {"fail_host_alloc", GPSTI_SIM_FAIL(GPSTI_FAULT_HOST_ALLOC), 0, 1e9, true},
    {"fail_copy", GPSTI_SIM_FAIL(GPSTI_FAULT_COPY), 0, 1e9, true},
    {"fail_launch", GPSTI_SIM_FAIL(GPSTI_FAULT_LAUNCH), 0, 1e9, true},
    {"fail_event", GPSTI_SIM_FAIL(GPSTI_FAULT_EVENT), 0, 1e9, true},
    {"fail_stream", GPSTI_SIM_FAIL(GPSTI_FAULT_STREAM), 0, 1e9, true},
    {"fail_notify", GPSTI_SIM_FAIL(GPSTI_FAULT_NOTIFY), 0, 1e9, true},
    {"fail_graph", GPSTI_SIM_FAIL(GPSTI_FAULT_GRAPH), 0, 1e9, true},
    {"lose_at", offsetof(gpsti_sim_params, lose_at), 0, 1e9, true},
    {"jitter_pct", offsetof(gpsti_sim_params, jitter_pct), 0, 100, false},
    {"seed", offsetof(gpsti_sim_params, seed), 0, 1e9, true},
    {"mapped", offsetof(gpsti_sim_params, mapped), 0, 1, true},
    {"virtual", offsetof(gpsti_sim_params, virtual_clock), 0, 1, true}};

/* What a copy of pinned memory and a kernel bound by memory reach on such a machine, a tenth or so below the data
   sheets. kernel_gbps counts read and written bytes, so a copy on the device reaches half of it. */
typedef struct gpsti_sim_preset {
    const char* name;
    double h2d_gbps, d2h_gbps, kernel_gbps, launch_us, copy_engines, memory_mb;
} gpsti_sim_preset;
static const gpsti_sim_preset gpsti_sim_presets[] = {
    {"rtx3090", 25, 25, 840, 4, 2, 24576},    /* PCIe 4.0 x16, GDDR6X 936 GB/s */
    {"rtx5070ti", 52, 52, 800, 3, 2, 16303},  /* PCIe 5.0 x16, GDDR7 896 GB/s */
    {"h200", 55, 55, 4200, 3, 2, 143771},     /* PCIe 5.0 x16, HBM3e 4800 GB/s */
    {"old_laptop", 3, 3, 13, 10, 1, 2048}};   /* PCIe 3.0 x4, DDR3 14.4 GB/s */
#define GPSTI_SIM_N_PRESETS (sizeof(gpsti_sim_presets) / sizeof(gpsti_sim_presets[0]))

/* Sets every figure of a device; what is given after it overrides. */
GPSTI_PRIVATE gpst_result gpsti_sim_take_preset(const char* name, size_t length, gpsti_sim_params* params) {
    const gpsti_sim_preset* preset = gpsti_sim_presets;
    const gpsti_sim_preset* const end = preset + GPSTI_SIM_N_PRESETS;
    while (preset < end && (strlen(preset->name) != length || memcmp(preset->name, name, length)))
        ++preset;
    GPSTI_FAIL_IF(preset == end, GPST_ERROR_ARGUMENT,
                  "backend sim: preset=\"%.*s\": must be rtx3090, rtx5070ti, h200 or old_laptop",
                  (int)(length < 32 ? length : 32), name);
    params->h2d_gbps = preset->h2d_gbps;
    params->d2h_gbps = preset->d2h_gbps;
    params->d2d_gbps = preset->kernel_gbps / 2;
    params->kernel_gbps = preset->kernel_gbps;
    params->launch_us = preset->launch_us;
    params->copy_engines = preset->copy_engines;
    params->memory_mb = preset->memory_mb;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sim_parse(const char* text, gpsti_sim_params* params) {
    memset(params, 0, sizeof(*params));
    params->h2d_gbps = params->d2h_gbps = 12; /* about PCIe 3.0 x16 */
    params->launch_us = 5;
    params->copy_engines = 2;
    if (text && !strncmp(text, "preset=", 7)) {
        const size_t length = strcspn(text + 7, ",");
        GPSTI_TRY(gpsti_sim_take_preset(text + 7, length, params));
        text += 7 + length;
        text += *text == ',';
    }
    return gpsti_params_parse("sim", gpsti_sim_keys, sizeof(gpsti_sim_keys) / sizeof(gpsti_sim_keys[0]), text,
                              params);
}
