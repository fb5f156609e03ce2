/* core/base/os_limits.c -- what this process may use on a POSIX system: cores and
   memory, by affinity, cgroup and rlimit. Compiles to nothing on Windows. */
#include "platform_internal.h"

#include "base_internal.h"

#if !defined(_WIN32)
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The number after `key` at a line's beginning ("" = the first number); false for none, as in "max". */
GPSTI_PRIVATE bool gpsti_find_number(const char* text, const char* key, uint64_t* out) {
    const size_t length = strlen(key);
    for (const char* line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length))
            continue;
        const char* digit = line + length + strspn(line + length, " :\t");
        if (*digit < '0' || *digit > '9')
            return false;
        *out = strtoull(digit, NULL, 10);
        return true;
    }
    return false;
}

/* What /proc/self/cgroup says of a controller: "5:cpu,cpuacct:/path" in version 1, "0::/path" in 2. */
GPSTI_PRIVATE bool gpsti_cgroup_path(const char* table, const char* controller, char* out, size_t out_bytes) {
    for (const char* line = table; *line;) {
        const size_t line_bytes = strcspn(line, "\n");
        const char* names = line + strcspn(line, ":");
        const char* path = *names ? names + 1 + strcspn(names + 1, ":") : line + line_bytes;
        bool found = path > names + 1 ? false : !*controller;
        for (const char* name = names + 1; *controller && name < path; name += strcspn(name, ",:") + 1)
            found = found || (strcspn(name, ",:") == strlen(controller) &&
                              !strncmp(name, controller, strlen(controller)));
        if (found && path < line + line_bytes) {
            gpsti_format(out, out_bytes, "%.*s", (int)(line + line_bytes - path - 1), path + 1);
            return true;
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
    return false;
}

typedef struct gpsti_cgroup {
    const char* root;
    char group[512]; /* shortened to its parents, one after the other, "" last */
    const char* mount;
} gpsti_cgroup;

GPSTI_PRIVATE bool gpsti_cgroup_read(const gpsti_cgroup* at, const char* file, char* out, size_t out_bytes) {
    char path[1024];
    gpsti_format(path, sizeof path, "%s%s/%s", at->mount, at->group, file);
    return gpsti_read_text(at->root, path, out, out_bytes);
}

GPSTI_PRIVATE bool gpsti_cgroup_number(const gpsti_cgroup* at, const char* file, const char* key,
                                       uint64_t* out) {
    char text[4096]; /* all of memory.stat, and not more of the caller's stack */
    return gpsti_cgroup_read(at, file, text, sizeof text) && gpsti_find_number(text, key, out);
}

GPSTI_PRIVATE void gpsti_cgroup_quota(const gpsti_cgroup* at, bool v2, gpsti_limits* out) {
    char text[128];
    uint64_t quota = 0, period = 0;
    if (v2) {
        if (!gpsti_cgroup_read(at, "cpu.max", text, sizeof text) || !gpsti_find_number(text, "", &quota))
            return;
        const char* second = strchr(text, ' ');
        period = second ? strtoull(second, NULL, 10) : 0;
    } else if (!gpsti_cgroup_number(at, "cpu.cfs_quota_us", "", &quota) ||
               !gpsti_cgroup_number(at, "cpu.cfs_period_us", "", &period)) {
        return;
    }
    const double cores = period ? (double)quota / (double)period : 0.0;
    if (cores > 0.0 && (out->cores_quota <= 0.0 || cores < out->cores_quota))
        out->cores_quota = cores;
}

/* Pages of files count as free: the kernel drops them before it refuses memory. */
GPSTI_PRIVATE void gpsti_cgroup_memory(const gpsti_cgroup* at, bool v2, gpsti_limits* out) {
    uint64_t most = 0, used = 0, inactive = 0, active = 0;
    if (!gpsti_cgroup_number(at, v2 ? "memory.max" : "memory.limit_in_bytes", "", &most))
        return;
    if (out->ram_bytes > 0 && most >= out->ram_bytes)
        return; /* no limit; and memory.stat takes the kernel 0.1 ms to gather */
    (void)gpsti_cgroup_number(at, v2 ? "memory.current" : "memory.usage_in_bytes", "", &used);
    (void)gpsti_cgroup_number(at, "memory.stat", v2 ? "inactive_file" : "total_inactive_file", &inactive);
    (void)gpsti_cgroup_number(at, "memory.stat", v2 ? "active_file" : "total_active_file", &active);
    const uint64_t held = used > inactive + active ? used - inactive - active : 0;
    const uint64_t available = most > held ? most - held : 0;
    if (most < out->ram_bytes)
        out->ram_bytes = most;
    if (available < out->ram_available_bytes)
        out->ram_available_bytes = available;
}

/* The tightest limit on the way from this process's group up to the root holds. Inside a container the path
   may name a group of the host that is not mounted here; its files are then missing and the root's are what
   counts. */
GPSTI_PRIVATE void gpsti_cgroup_walk(const char* root, const char* table, const char* controller,
                                     const char* mount,
                                     void (*look)(const gpsti_cgroup*, bool, gpsti_limits*),
                                     gpsti_limits* out) {
    gpsti_cgroup at;
    at.root = root;
    at.mount = mount;
    if (!gpsti_cgroup_path(table, controller, at.group, sizeof at.group))
        return;
    if (!strcmp(at.group, "/"))
        at.group[0] = 0;
    for (;;) {
        look(&at, !*controller, out);
        char* slash = strrchr(at.group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

GPSTI_PRIVATE void gpsti_limits_cgroups(const char* root, gpsti_limits* out) {
    char table[8192];
    if (!gpsti_read_text(root, "/proc/self/cgroup", table, sizeof table))
        return;
    gpsti_cgroup_walk(root, table, "", "/sys/fs/cgroup", gpsti_cgroup_quota, out);
    gpsti_cgroup_walk(root, table, "", "/sys/fs/cgroup", gpsti_cgroup_memory, out);
    gpsti_cgroup_walk(root, table, "cpu", "/sys/fs/cgroup/cpu", gpsti_cgroup_quota, out);
    gpsti_cgroup_walk(root, table, "memory", "/sys/fs/cgroup/memory", gpsti_cgroup_memory, out);
}

GPSTI_PRIVATE uint32_t gpsti_cores_affinity(uint32_t otherwise) {
#if defined(__linux__)
    cpu_set_t sets[16]; /* 16,384 processors */
    if (!sched_getaffinity(0, sizeof sets, sets))
        return (uint32_t)CPU_COUNT_S(sizeof sets, sets);
#endif
    return otherwise;
}

GPSTI_INTERN uint32_t gpsti_page_bytes(void) { return (uint32_t)sysconf(_SC_PAGESIZE); }

GPSTI_INTERN uint64_t gpsti_space_bytes(uint64_t* left_bytes) {
    char text[128];
    uint64_t used_pages = 0;
    struct rlimit space;
    *left_bytes = UINT64_MAX;
    if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    if (gpsti_read_text("", "/proc/self/statm", text, sizeof text))
        (void)gpsti_find_number(text, "", &used_pages);
    const uint64_t bytes = (uint64_t)space.rlim_cur, used_bytes = used_pages * gpsti_page_bytes();
    *left_bytes = used_bytes < bytes ? bytes - used_bytes : 0;
    return bytes;
}

GPSTI_INTERN void gpsti_limits_query_under(const char* root, gpsti_limits* out) {
    char text[512]; /* MemAvailable is in the third line */
    uint64_t kib = 0, space_bytes = 0;
    struct rlimit lock;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const long pages = sysconf(_SC_PHYS_PAGES);
    memset(out, 0, sizeof *out);
    out->page_bytes = gpsti_page_bytes();
    out->cores_online = online > 0 ? (uint32_t)online : 1;
    out->cores_affinity = gpsti_cores_affinity(out->cores_online);
    out->ram_bytes = pages > 0 ? (uint64_t)pages * out->page_bytes : 0;
    out->ram_available_bytes = out->ram_bytes / 2;
    if (gpsti_read_text(root, "/proc/meminfo", text, sizeof text) &&
        gpsti_find_number(text, "MemAvailable", &kib))
        out->ram_available_bytes = kib * 1024;
    out->memlock_bytes = UINT64_MAX;
    if (!getrlimit(RLIMIT_MEMLOCK, &lock) && lock.rlim_cur != RLIM_INFINITY)
        out->memlock_bytes = (uint64_t)lock.rlim_cur;
    gpsti_limits_cgroups(root, out);
    (void)gpsti_space_bytes(&space_bytes);
    if (space_bytes < out->ram_available_bytes)
        out->ram_available_bytes = space_bytes;
    gpsti_limits_cores(out);
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in ticks; guests are in user already. */
GPSTI_PRIVATE bool gpsti_core_ticks(const char* text, uint64_t* out) {
    const char* at = text + 3;
    *out = 0;
    for (int field = 0; field < 8; field++) {
        char* end = NULL;
        const uint64_t ticks = strtoull(at, &end, 10);
        if (end == at)
            return field > 3; /* old systems have fewer fields */
        at = end;
        *out += field == 3 || field == 4 ? 0 : ticks; /* idle, and idle while a disk is at work */
    }
    return true;
}

GPSTI_INTERN void gpsti_core_use_query_under(const char* root, gpsti_core_use* out) {
    char text[256];
    struct timespec own;
    uint64_t ticks = 0;
    const long per_second = sysconf(_SC_CLK_TCK);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    memset(out, 0, sizeof *out);
    if (per_second <= 0 || online <= 0 || gpsti_cores_affinity((uint32_t)online) != (uint32_t)online ||
        !gpsti_read_text(root, "/proc/stat", text, sizeof text) || strncmp(text, "cpu ", 4) != 0 ||
        !gpsti_core_ticks(text, &ticks) || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0)
        return;
    out->known = true;
    out->all_ns = (int64_t)(ticks * (uint64_t)(GPSTI_OS_NS / per_second));
    out->own_ns = (int64_t)own.tv_sec * GPSTI_OS_NS + own.tv_nsec;
}
#endif
