/* backends/sim_params.c -- the keys of a simulated device's parameters, and what
   they are when nobody sets them. */
#include "../core/platform_internal.h"

#include "sim_internal.h"

#include <string.h>

#define GPSTI_SIM_FAIL(call) (offsetof(gpsti_sim_params, fail) + sizeof(double) * (size_t)(call))
static const gpsti_param gpsti_sim_keys[] = {
    {"h2d_gbps", offsetof(gpsti_sim_params, h2d_gbps), 0, 1e6, false},
    {"d2h_gbps", offsetof(gpsti_sim_params, d2h_gbps), 0, 1e6, false},
    {"d2d_gbps", offsetof(gpsti_sim_params, d2d_gbps), 0, 1e6, false},
    {"launch_us", offsetof(gpsti_sim_params, launch_us), 0, 1e9, false},
    {"kernel_us", offsetof(gpsti_sim_params, kernel_us), 0, 1e9, false},
    {"copy_engines", offsetof(gpsti_sim_params, copy_engines), 1, 2, true},
    {"memory_mb", offsetof(gpsti_sim_params, memory_mb), 0, 1e9, false},
    {"oom_mb", offsetof(gpsti_sim_params, oom_mb), 0, 1e9, false},
    {"fail_alloc", GPSTI_SIM_FAIL(GPSTI_FAULT_ALLOC), 0, 1e9, true},
    {"fail_host_alloc", GPSTI_SIM_FAIL(GPSTI_FAULT_HOST_ALLOC), 0, 1e9, true},
    {"fail_copy", GPSTI_SIM_FAIL(GPSTI_FAULT_COPY), 0, 1e9, true},
    {"fail_launch", GPSTI_SIM_FAIL(GPSTI_FAULT_LAUNCH), 0, 1e9, true},
    {"fail_event", GPSTI_SIM_FAIL(GPSTI_FAULT_EVENT), 0, 1e9, true},
    {"fail_stream", GPSTI_SIM_FAIL(GPSTI_FAULT_STREAM), 0, 1e9, true},
    {"fail_notify", GPSTI_SIM_FAIL(GPSTI_FAULT_NOTIFY), 0, 1e9, true},
    {"lose_at", offsetof(gpsti_sim_params, lose_at), 0, 1e9, true},
    {"jitter_pct", offsetof(gpsti_sim_params, jitter_pct), 0, 100, false},
    {"seed", offsetof(gpsti_sim_params, seed), 0, 1e9, true}};

GPSTI_INTERN gpst_result gpsti_sim_parse(const char* text, gpsti_sim_params* params) {
    memset(params, 0, sizeof(*params));
    params->h2d_gbps = params->d2h_gbps = 12; /* about PCIe 3.0 x16 */
    params->launch_us = 5;
    params->copy_engines = 2;
    return gpsti_params_parse("sim", gpsti_sim_keys, sizeof(gpsti_sim_keys) / sizeof(gpsti_sim_keys[0]), text,
                              params);
}
