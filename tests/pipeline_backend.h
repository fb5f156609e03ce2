/* tests/pipeline_backend.h -- which backend a test of the engine runs on: the one that it names, or the one of the
   environment. GPUSTAGE_TEST_BACKEND=cuda (hip, sim, cuda:device=1) puts that one in place of the cpu and of the
   simulated device, faults included, in all tests but those listed here, which look at what only the backend they
   name has. */
#ifndef GPST_PIPELINE_BACKEND_H
#define GPST_PIPELINE_BACKEND_H

#include "gpu_kernels.h"

#if defined(TEST_HAS_GPU)
#include "gpu_device.h"
#else
#include "test.h"
#endif

typedef struct kit_kept {
    const char* opener; /* the function that calls kit_open */
    const char* why;
} kit_kept;

static const kit_kept kit_all_kept[] = {
    {"test_cpu_time_of_a_group", "the CPU time of kernels that run on workers"},
    {"test_a_plain_loop_is_expected", "the clocks of kernels on the host's cores"},
    {"test_cold_reads_hold_no_worker", "the modelled disk"},
    {"test_the_system_is_told_of_cold_files", "the modelled disk"},
    {"test_nothing_waits", "items that one thread brings to their end: on a device they wait"},
    {"run_with_own_time", "kernels that run on workers, with their own clocks"},
    {"run_on_device", "how long kernels take in sim's model"},
    {"first_open", "kernels that wait for other items"},
    {"run_within", "kernels that have no form for a GPU"},
    {"test_a_mean_waits_for_memory", "a mean in the host's memory"},
};

GPSTI_PRIVATE const char* kit_why_kept(const char* opener) {
    for (size_t k = 0; k < sizeof kit_all_kept / sizeof kit_all_kept[0]; k++)
        if (strcmp(kit_all_kept[k].opener, opener) == 0)
            return kit_all_kept[k].why;
    return NULL;
}

/* NULL: each test has what it names. So do programs that have backends for a subject: KIT_NAMES_ITS_BACKENDS. */
GPSTI_PRIVATE const char* kit_wanted_backend(void) {
#if defined(KIT_NAMES_ITS_BACKENDS)
    return NULL;
#else
    return getenv("GPUSTAGE_TEST_BACKEND");
#endif
}

GPSTI_PRIVATE bool kit_find_backend(const char* wanted) {
    const size_t length = strcspn(wanted, ":");
    if (length == 3 && strncmp(wanted, "sim", length) == 0)
        return true;
#if defined(TEST_HAS_GPU)
    if (length == strlen(TEST_GPU_BACKEND) && strncmp(wanted, TEST_GPU_BACKEND, length) == 0)
        return device_is_there(wanted[length] ? wanted + length + 1 : NULL); /* which says why not */
#endif
    printf("GPUSTAGE_TEST_BACKEND=%s: not compiled in\n", wanted);
    return false;
}

/* The wanted backend is there, or the whole program is skipped. */
GPSTI_PRIVATE void kit_need_backend(const char* wanted) {
    static bool is_there;
    is_there = is_there || kit_find_backend(wanted);
    if (!is_there)
        exit(GPST_TEST_SKIP);
}

/* Faults have the same names everywhere; all else is of sim's model of a machine. */
GPSTI_PRIVATE bool kit_is_fault(const char* param) {
    return strncmp(param, "fail_", 5) == 0 || strncmp(param, "oom_mb=", 7) == 0 || strncmp(param, "lose_at=", 8) == 0;
}

/* The wanted backend with the faults of the named one. */
GPSTI_PRIVATE void kit_move_faults(const char* named, const char* wanted, char* out, size_t bytes) {
    char separator = strchr(wanted, ':') ? ',' : ':';
    size_t n = (size_t)snprintf(out, bytes, "%s", wanted);
    for (const char* param = strchr(named, ':'); param; param = strchr(param + 1, ',')) {
        if (!kit_is_fault(param + 1))
            continue;
        n += (size_t)snprintf(out + n, bytes - n, "%c%.*s", separator, (int)strcspn(param + 1, ","), param + 1);
        separator = ',';
    }
}

/* What opener has where it names that backend; room is for the text. */
GPSTI_PRIVATE const char* kit_backend(const char* opener, const char* named, char* room, size_t bytes) {
    const char* const wanted = kit_wanted_backend();
    if (!wanted)
        return named;
    kit_need_backend(wanted);
    const char* const why = kit_why_kept(opener);
    if (why)
        printf("  %s stays on %s: %s\n", opener, named, why);
    if (why || strncmp(named, wanted, strlen(wanted)) == 0)
        return named;
    kit_move_faults(named, wanted, room, bytes);
    return room;
}

#endif
