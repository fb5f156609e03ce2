/* tests/test_tier.c -- what gpst_probe says agrees with what the system says
   elsewhere, and whatever is absent has a reason. */
#include "test_files.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

static void the_machine(void** state) {
    gpst_probe_info info;
    struct utsname name;
    struct rlimit limit;
    (void)state;
    memset(&info, 0xA5, sizeof(info));
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    printf("probe: %s, %u of %u cores (quota %.2f), %.1f of %.1f GiB, %.2f ms\n", info.system,
           info.cores_allowed, info.cores_online, info.cores_quota,
           (double)info.ram_available_bytes / 1073741824, (double)info.ram_bytes / 1073741824,
           (double)info.duration_ns / 1e6);
    assert_true(info.duration_ns > 0);
    assert_int_equal(uname(&name), 0);
    assert_non_null(strstr(info.system, name.sysname));
    assert_non_null(strstr(info.system, name.machine));
    assert_int_equal(info.cores_online, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(info.cores_affinity >= 1);
    assert_true(info.cores_allowed >= 1 && info.cores_allowed <= info.cores_affinity);
    assert_true(info.cores_quota >= 0);
    assert_int_equal(info.page_bytes, sysconf(_SC_PAGESIZE));
    const uint64_t ram_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(info.ram_bytes > 0 && info.ram_bytes <= ram_bytes + ram_bytes / 8);
    assert_true(info.ram_available_bytes > 0 && info.ram_available_bytes <= info.ram_bytes);
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    assert_true(info.memlock_bytes == (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur));
}

static bool test_proc_number(const char* path, const char* format, unsigned long long* out) {
    char line[512];
    FILE* file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof(line), file))
        found = sscanf(line, format, out) == 1;
    if (file)
        fclose(file);
    return found;
}

static void huge_pages_and_cpu(void** state) {
    gpst_probe_info info;
    char line[4096];
    unsigned long long number = 0;
    FILE* file;
    (void)state;
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    printf("thp \"%s\", huge pages of %llu bytes: %llu, %llu free; fma %d avx2 %d avx512 %d\n", info.thp,
           (unsigned long long)info.huge_page_bytes, (unsigned long long)info.huge_pages_total,
           (unsigned long long)info.huge_pages_free, info.has_fma, info.has_avx2, info.has_avx512);
    assert_true(!info.thp[0] || !strcmp(info.thp, "always") || !strcmp(info.thp, "madvise") ||
                !strcmp(info.thp, "never"));
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0)
        assert_true(info.thp[0] != 0);
    if (test_proc_number("/proc/meminfo", "Hugepagesize: %llu kB", &number))
        assert_int_equal(info.huge_page_bytes, number * 1024);
    if (test_proc_number("/proc/meminfo", "HugePages_Total: %llu", &number))
        assert_int_equal(info.huge_pages_total, number);
    assert_true(info.huge_pages_free <= info.huge_pages_total);
    file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, "flags", 5)) {
            assert_int_equal(info.has_fma, strstr(line, " fma ") != NULL);
            assert_int_equal(info.has_avx2, strstr(line, " avx2 ") != NULL);
            assert_int_equal(info.has_avx512, strstr(line, " avx512f ") != NULL);
            break;
        }
    if (file)
        fclose(file);
}

static void io_uring_has_a_reason_when_absent(void** state) {
    gpst_probe_info info;
    (void)state;
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    printf("io_uring: %s %s\n", info.io_uring ? "allowed" : "no:", info.io_uring_reason);
    assert_int_equal(info.io_uring, info.io_uring_reason[0] == 0);
}

#if defined(GPSTI_CUDA)
#define TEST_GPU_COMPILED_IN "cuda"
#elif defined(GPSTI_HIP)
#define TEST_GPU_COMPILED_IN "hip"
#else
#define TEST_GPU_COMPILED_IN "neither"
#endif

static void backends(void** state) {
    gpst_probe_info info;
    uint32_t k;
    (void)state;
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    assert_true(info.tier_reason[0] != 0);
    assert_int_equal(info.n_backends, 3);
    const bool has_gpu = info.backends[1].available || info.backends[2].available;
    assert_int_equal(info.tier, has_gpu ? GPST_TIER_GPU_BASE : GPST_TIER_CPU_ONLY);
    assert_string_equal(gpst_tier_name(info.tier), has_gpu ? "GPU_BASE" : "CPU_ONLY");
    for (k = 0; k < info.n_backends; ++k) {
        const gpst_probe_backend* row = &info.backends[k];
        static const char* const names[] = {"cpu", "cuda", "hip"};
        printf("%s: %s %s\n", row->name, row->device_name, row->reason);
        assert_string_equal(row->name, names[k]);
        assert_int_equal(row->compiled_in, k < 1 || !strcmp(row->name, TEST_GPU_COMPILED_IN));
        assert_true(k < 1 ? row->available : row->compiled_in || !row->available);
        assert_int_equal(row->available, row->reason[0] == 0);
        assert_int_equal(row->available, row->device_name[0] != 0);
        assert_int_equal(row->available, row->memory_bytes > 0);
        assert_int_equal(row->available, row->result == GPST_OK);
    }
    assert_string_equal(info.backends[strcmp("hip", TEST_GPU_COMPILED_IN) ? 2 : 1].reason, "not compiled in");
}

/* ---- libraries ---------------------------------------------------------------- */

static void test_library(const gpst_probe_library* row, const char* name, bool available, const char* text) {
    printf("%s: %s%s\n", row->name, row->version, row->reason);
    assert_string_equal(row->name, name);
    assert_int_equal(row->available, available);
    assert_int_equal(row->result, available ? GPST_OK : GPST_ERROR_UNSUPPORTED);
    assert_int_equal(row->version[0] != 0, available);
    assert_int_equal(row->reason[0] == 0, available);
    assert_non_null(strstr(available ? row->version : row->reason, text));
}

/* What is loaded stays: absence first. */
static void libraries(void** state) {
    gpst_probe_info info;
    (void)state;
    (void)gpsti_fail(GPST_ERROR_IO, "%s", "earlier");
    assert_int_equal(setenv("GPUSTAGE_LIBTURBOJPEG", "", 1), 0);
    assert_int_equal(setenv("GPUSTAGE_LIBNVJPEG", "/nowhere/libnvjpeg.so", 1), 0);
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    assert_int_equal(info.n_libraries, 2);
    test_library(&info.libraries[0], "libturbojpeg", false, "GPUSTAGE_LIBTURBOJPEG");
    test_library(&info.libraries[1], "nvJPEG", false, "/nowhere/libnvjpeg.so");
    assert_string_equal(gpst_last_reason(), "earlier");
#if defined(GPST_TOOL_JPEG)
    assert_int_equal(unsetenv("GPUSTAGE_LIBTURBOJPEG"), 0);
    assert_int_equal(setenv("GPUSTAGE_LIBNVJPEG", GPST_TEST_FAKES "/nvjpeg.so", 1), 0);
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    test_library(&info.libraries[0], "libturbojpeg", true, info.libraries[0].version[0] == '3' ? "3" : "2");
    test_library(&info.libraries[1], "nvJPEG", true, "13.0.99");
#endif
}

/* ---- storage ----------------------------------------------------------------- */

static void test_storage_print(const gpst_probe_storage* storage) {
    printf("%s: %s, rotational %d, O_DIRECT %u/%u; %s; %s\n", storage->path, storage->filesystem,
           (int)storage->rotational, storage->direct_offset_align_bytes, storage->direct_memory_align_bytes,
           storage->direct_reason, storage->reason);
}

static void storage_under_a_file(void** state) {
    static const char* const parents[] = {"/tmp", "/dev/shm", "."};
    struct statvfs space;
    gpst_probe_info info;
    char path[64];
    size_t k;
    (void)state;
    for (k = 0; k < 3; ++k) {
        const gpst_probe_storage* storage = &info.storage;
        snprintf(path, sizeof(path), "%s/gpstXXXXXX", parents[k]);
        const int file = mkstemp(path);
        if (file < 0) {
            printf("skipped: no file in %s\n", parents[k]);
            continue;
        }
        assert_int_equal(write(file, path, sizeof(path)), sizeof(path));
        close(file);
        assert_int_equal(gpst_probe(path, &info), GPST_OK);
        unlink(path);
        test_storage_print(storage);
        assert_string_equal(storage->path, path);
        assert_int_equal(storage->result, GPST_OK);
        assert_true(storage->filesystem[0] != 0);
        assert_int_equal(statvfs(parents[k], &space), 0);
        assert_true(storage->total_bytes == (uint64_t)space.f_blocks * space.f_frsize);
        assert_true(storage->free_bytes <= storage->total_bytes);
        assert_true(storage->rotational >= -1 && storage->rotational <= 1);
        assert_true(storage->rotational >= 0 || storage->reason[0]);
        assert_true(storage->direct_offset_align_bytes || storage->direct_reason[0]);
        assert_int_equal(storage->direct_offset_align_bytes == 0, storage->direct_memory_align_bytes == 0);
        assert_int_equal(storage->direct_offset_align_bytes & (storage->direct_offset_align_bytes - 1), 0);
    }
}

static void storage_elsewhere(void** state) {
    gpst_probe_info info;
    (void)state;
    gpsti_fail(GPST_ERROR_IO, "%s", "earlier");
    assert_int_equal(gpst_probe("/tmp", &info), GPST_OK);
    test_storage_print(&info.storage);
    assert_int_equal(info.storage.result, GPST_OK);
    assert_true(info.storage.direct_reason[0] != 0); /* a directory cannot be asked */
    assert_int_equal(gpst_probe("/nowhere/at/all", &info), GPST_OK);
    assert_int_equal(info.storage.result, GPST_ERROR_NOT_FOUND);
    assert_non_null(strstr(info.storage.reason, "/nowhere/at/all"));
    assert_true(info.storage.direct_reason[0] != 0);
    assert_int_equal(gpst_probe("/proc/version", &info), GPST_OK);
    test_storage_print(&info.storage);
    assert_string_equal(info.storage.filesystem, "proc");
    assert_int_equal(info.storage.direct_offset_align_bytes, 0);
    assert_int_equal(gpst_probe("/dev/null", &info), GPST_OK);
    assert_true(info.storage.direct_reason[0] != 0);
    assert_int_equal(gpst_probe(NULL, &info), GPST_OK);
    assert_string_equal(info.storage.path, "");
    assert_true(info.storage.reason[0] != 0);
    assert_string_equal(gpst_last_reason(), "earlier"); /* looking is no failure */
    assert_int_equal(gpst_probe(NULL, NULL), GPST_ERROR_ARGUMENT);
}

static void tier_names(void** state) {
    (void)state;
    assert_string_equal(gpst_tier_name(GPST_TIER_GPU_BASE), "GPU_BASE");
    assert_string_equal(gpst_tier_name(GPST_TIER_GDS_COMPAT), "GDS_COMPAT");
    assert_string_equal(gpst_tier_name(GPST_TIER_GDS_FULL), "GDS_FULL");
    assert_string_equal(gpst_tier_name((gpst_tier)99), "unknown tier");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(libraries),
                                       cmocka_unit_test(the_machine),
                                       cmocka_unit_test(huge_pages_and_cpu),
                                       cmocka_unit_test(io_uring_has_a_reason_when_absent),
                                       cmocka_unit_test(backends),
                                       cmocka_unit_test(storage_under_a_file),
                                       cmocka_unit_test(storage_elsewhere),
                                       cmocka_unit_test(tier_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
