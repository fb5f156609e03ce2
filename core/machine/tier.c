/* core/machine/tier.c -- looks at the machine: what there is, and for what there is not,
   why. Changes nothing and opens no device. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "../base/os_direct_internal.h"
#include "../pictures/jpeg_internal.h"
#include "../pictures/nvjpeg_internal.h"
#include "tier.h"

#include <string.h>

#if !defined(_WIN32)
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#endif
#if defined(__linux__)
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#endif

#define GPSTI_TIER_TEXT_BYTES 4096

/* ---- small files of /sys and /proc ------------------------------------------- */

/* false and an empty text when it cannot be read. */
GPSTI_PRIVATE bool gpsti_tier_read_text(const char* path, char* out, size_t out_bytes) {
    gpsti_file file = GPST_ZERO;
    size_t filled = 0;
    size_t done = 1;
    out[0] = 0;
    if (GPST_FAILED(gpsti_file_open_read(path, &file)))
        return false;
    while (done && filled + 1 < out_bytes) {
        if (GPST_FAILED(gpsti_file_read(&file, path, out + filled, out_bytes - 1 - filled, filled, &done)))
            done = 0;
        filled += done;
    }
    out[filled] = 0;
    (void)gpsti_file_close(&file, path);
    return filled > 0;
}

/* The first number after `name` in the text; false when there is none. */
GPSTI_PRIVATE bool gpsti_tier_find_number(const char* text, const char* name, uint64_t* out) {
    const char* at = strstr(text, name);
    uint64_t value = 0;
    if (!at)
        return false;
    for (at += strlen(name); *at == ' ' || *at == '\t' || *at == ':'; ++at) {}
    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; ++at)
        value = value * 10 + (uint64_t)(*at - '0');
    *out = value;
    return true;
}

/* ---- the machine ------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tier_look_at_system(gpst_probe_info* out) {
#if defined(_WIN32)
    gpsti_copy_text(out->system, sizeof(out->system), "Windows");
#else
    struct utsname name;
    if (uname(&name) == 0)
        gpsti_format(out->system, sizeof(out->system), "%.40s %.50s %.30s", name.sysname, name.release,
                     name.machine);
#endif
}

GPSTI_PRIVATE void gpsti_tier_look_at_limits(gpst_probe_info* out) {
    gpsti_limits limits;
    gpsti_limits_query(&limits);
    out->cores_online = limits.cores_online;
    out->cores_affinity = limits.cores_affinity;
    out->cores_allowed = limits.cores_allowed;
    out->cores_quota = limits.cores_quota;
    out->ram_bytes = limits.ram_bytes;
    out->ram_available_bytes = limits.ram_available_bytes;
    out->memlock_bytes = limits.memlock_bytes;
    out->page_bytes = limits.page_bytes;
}

/* Where the compiler cannot ask, all stay false. */
GPSTI_PRIVATE void gpsti_tier_look_at_cpu(gpst_probe_info* out) {
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    out->has_fma = __builtin_cpu_supports("fma") != 0;
    out->has_avx2 = __builtin_cpu_supports("avx2") != 0;
    out->has_avx512 = __builtin_cpu_supports("avx512f") != 0;
#else
    (void)out;
#endif
}

/* "always [madvise] never": the word in brackets is in force. */
GPSTI_PRIVATE void gpsti_tier_look_at_huge_pages(gpst_probe_info* out) {
    char text[GPSTI_TIER_TEXT_BYTES];
    uint64_t kib = 0;
    if (gpsti_tier_read_text("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text))) {
        char* word = strchr(text, '[');
        char* end = word ? strchr(word, ']') : NULL;
        if (end) {
            *end = 0;
            gpsti_copy_text(out->thp, sizeof(out->thp), word + 1);
        }
    }
    gpsti_tier_read_text("/proc/meminfo", text, sizeof(text));
    if (gpsti_tier_find_number(text, "Hugepagesize", &kib))
        out->huge_page_bytes = kib * 1024;
    gpsti_tier_find_number(text, "HugePages_Total", &out->huge_pages_total);
    gpsti_tier_find_number(text, "HugePages_Free", &out->huge_pages_free);
}

/* ---- io_uring ---------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tier_look_at_io_uring(gpst_probe_info* out) {
    gpsti_uring ring;
    out->io_uring = !GPST_FAILED(gpsti_uring_open(&ring));
    if (!out->io_uring)
        gpsti_copy_text(out->io_uring_reason, sizeof(out->io_uring_reason), gpst_last_reason());
    gpsti_uring_close(&ring);
}

/* ---- storage ----------------------------------------------------------------- */

#if defined(__linux__)
typedef struct gpsti_tier_filesystem {
    uint32_t magic;
    const char* name;
} gpsti_tier_filesystem;

GPSTI_PRIVATE void gpsti_tier_name_filesystem(uint32_t magic, char* out, size_t out_bytes) {
    static const gpsti_tier_filesystem filesystems[] = {
        {0xEF53, "ext4"},         {0x58465342, "xfs"},      {0x9123683E, "btrfs"}, {0x01021994, "tmpfs"},
        {0x794C7630, "overlay"},  {0x6969, "nfs"},          {0xFF534D42, "cifs"},  {0xFE534D42, "smb2"},
        {0x65735546, "fuse"},     {0x2FC12FC1, "zfs"},      {0xF2F52010, "f2fs"},  {0x2011BAB0, "exfat"},
        {0x4D44, "vfat"},         {0x7366746E, "ntfs3"},    {0x858458F6, "ramfs"}, {0x9FA0, "proc"},
        {0x62656572, "sysfs"},    {0x73717368, "squashfs"}, {0x9660, "iso9660"},   {0x0BD00BD0, "lustre"},
        {0x00C36400, "ceph"},     {0x01021997, "9p"},       {0x01161970, "gfs2"},  {0x47504653, "gpfs"},
        {0x19830326, "beegfs"},   {0xCA451A4E, "bcachefs"}, {0xF15F, "ecryptfs"},  {0x5346544E, "ntfs"},
        {0x958458F6, "hugetlbfs"}};
    size_t i;
    for (i = 0; i < sizeof(filesystems) / sizeof(filesystems[0]); ++i)
        if (filesystems[i].magic == magic) {
            gpsti_copy_text(out, out_bytes, filesystems[i].name);
            return;
        }
    gpsti_format(out, out_bytes, "0x%x", magic);
}

/* A partition has no queue of its own: its parent has. */
GPSTI_PRIVATE int32_t gpsti_tier_rotational(dev_t device) {
    static const char* const queues[] = {"queue", "../queue"};
    char path[128];
    char text[16];
    size_t i;
    for (i = 0; i < 2; ++i) {
        gpsti_format(path, sizeof(path), "/sys/dev/block/%u:%u/%s/rotational", major(device), minor(device),
                     queues[i]);
        if (gpsti_tier_read_text(path, text, sizeof(text)))
            return text[0] == '1';
    }
    return -1;
}

/* As a reader would: what opens past the page cache is read once, because not every file system that says yes means
   it. */
GPSTI_PRIVATE gpst_result gpsti_tier_try_direct(const char* path, const gpsti_file* file, gpsti_direct_rules* rules) {
    GPSTI_ALIGNAS(4096) char block[4096];
    gpsti_file direct;
    size_t done = 0;
    GPSTI_TRY(gpsti_file_open_direct(file, path, &direct, rules));
    const bool fits = rules->offset_align_bytes <= sizeof block && rules->memory_align_bytes <= sizeof block;
    const gpst_result result = fits ? gpsti_file_read(&direct, path, block, sizeof block, 0, &done) : GPST_OK;
    (void)gpsti_file_close(&direct, path);
    return result;
}

GPSTI_PRIVATE void gpsti_tier_look_at_direct(const char* path, gpst_probe_storage* storage) {
    gpsti_direct_rules rules;
    gpsti_file file;
    char before[GPSTI_REASON_BYTES]; /* what a file system cannot do is no failure of the caller's */
    gpsti_copy_text(before, sizeof(before), gpst_last_reason());
    gpst_result result = gpsti_file_open_read(path, &file);
    if (!GPST_FAILED(result)) {
        result = gpsti_tier_try_direct(path, &file, &rules);
        (void)gpsti_file_close(&file, path);
    }
    if (GPST_FAILED(result)) {
        gpsti_copy_text(storage->direct_reason, sizeof(storage->direct_reason), gpst_last_reason());
        (void)gpsti_fail(GPST_OK, "%s", before);
        return;
    }
    storage->direct_memory_align_bytes = rules.memory_align_bytes;
    storage->direct_offset_align_bytes = rules.offset_align_bytes;
}

GPSTI_PRIVATE void gpsti_tier_look_at_block_device(const char* path, gpst_probe_storage* storage) {
    struct statfs filesystem;
    struct stat file;
    if (statfs(path, &filesystem) == 0)
        gpsti_tier_name_filesystem((uint32_t)filesystem.f_type, storage->filesystem,
                                   sizeof(storage->filesystem));
    if (stat(path, &file) != 0)
        return;
    storage->rotational = gpsti_tier_rotational(file.st_dev);
    if (storage->rotational < 0)
        gpsti_format(storage->reason, sizeof(storage->reason),
                     "rotational: device %u:%u is no block device that /sys knows", major(file.st_dev),
                     minor(file.st_dev));
    if (!S_ISREG(file.st_mode))
        gpsti_copy_text(storage->direct_reason, sizeof(storage->direct_reason),
                        "only a regular file can be asked: name one");
    else
        gpsti_tier_look_at_direct(path, storage);
}
#else
GPSTI_PRIVATE void gpsti_tier_look_at_block_device(const char* path, gpst_probe_storage* storage) {
    (void)path;
    gpsti_copy_text(storage->direct_reason, sizeof(storage->direct_reason), "not looked at on this system");
    gpsti_copy_text(storage->reason, sizeof(storage->reason), "file system: not looked at on this system");
}
#endif

GPSTI_PRIVATE void gpsti_tier_look_at_storage(const char* path, gpst_probe_storage* storage) {
    gpsti_file_info info;
    storage->rotational = -1;
    gpsti_copy_text(storage->path, sizeof(storage->path), path ? path : "");
    if (!path) {
        gpsti_copy_text(storage->reason, sizeof(storage->reason), "no path was given");
        gpsti_copy_text(storage->direct_reason, sizeof(storage->direct_reason), "no path was given");
        return;
    }
    storage->result = gpsti_path_query(path, &info);
    if (GPST_FAILED(storage->result)) {
        gpsti_copy_text(storage->reason, sizeof(storage->reason), gpst_last_reason());
        gpsti_copy_text(storage->direct_reason, sizeof(storage->direct_reason), gpst_last_reason());
        return;
    }
#if !defined(_WIN32)
    struct statvfs space;
    if (statvfs(path, &space) == 0) {
        storage->free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
        storage->total_bytes = (uint64_t)space.f_blocks * space.f_frsize;
    }
#endif
    gpsti_tier_look_at_block_device(path, storage);
}

/* ---- backends ---------------------------------------------------------------- */

/* What opening it would open. */
GPSTI_PRIVATE gpst_result gpsti_tier_ask_backend(const gpsti_backend_i* backend, gpsti_device_info* info) {
    gpsti_host host;
    gpsti_device* device = NULL;
    GPSTI_TRY(gpsti_backend_check(backend));
    if (backend->device_probe)
        return backend->device_probe(NULL, info);
    gpsti_host_init(&host, NULL, NULL);
    GPSTI_TRY(backend->device_open(&host, NULL, &device));
    backend->device_query(device, info);
    backend->device_close(device);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_tier_add_backend(gpst_probe_info* out, const char* name,
                                          const gpsti_backend_i* backend) {
    gpst_probe_backend* row = &out->backends[out->n_backends++];
    gpsti_device_info info;
    gpsti_copy_text(row->name, sizeof(row->name), name);
    row->compiled_in = backend != NULL;
    if (!backend) {
        row->result = GPST_ERROR_NO_BACKEND;
        gpsti_copy_text(row->reason, sizeof(row->reason), "not compiled in");
        return;
    }
    memset(&info, 0, sizeof(info));
    row->result = gpsti_tier_ask_backend(backend, &info);
    row->available = !GPST_FAILED(row->result);
    if (!row->available)
        gpsti_copy_text(row->reason, sizeof(row->reason), gpst_last_reason());
    gpsti_copy_text(row->device_name, sizeof(row->device_name), info.name);
    row->memory_bytes = info.memory_bytes;
}

/* A GPU that answers makes GPU_BASE: pinned memory and streams come with every one. */
GPSTI_PRIVATE void gpsti_tier_judge(gpst_probe_info* out) {
    out->tier = GPST_TIER_CPU_ONLY;
    gpsti_copy_text(out->tier_reason, sizeof(out->tier_reason), "cuda and hip: not compiled in");
    for (uint32_t i = 0; i < out->n_backends; i++) {
        const gpst_probe_backend* row = &out->backends[i];
        if (!row->compiled_in || (strcmp(row->name, "cuda") && strcmp(row->name, "hip")))
            continue;
        out->tier = row->available ? GPST_TIER_GPU_BASE : GPST_TIER_CPU_ONLY;
        gpsti_copy_text(out->tier_reason, sizeof(out->tier_reason),
                        row->available ? "cuFile is not looked for in this version" : row->reason);
    }
}

/* ---- libraries ---------------------------------------------------------------- */

/* 3 has a function that 2 lacks. */
GPSTI_PRIVATE gpst_result gpsti_tier_ask_turbojpeg(char* version, size_t bytes) {
    gpst_jpeg* jpeg = NULL;
    GPSTI_TRY(gpst_jpeg_create(NULL, &jpeg));
    gpsti_copy_text(version, bytes, jpeg->calls->set ? "3" : "2");
    gpst_jpeg_destroy(jpeg);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_tier_add_library(gpst_probe_info* out, const char* name,
                                          gpst_result (*ask)(char* version, size_t bytes)) {
    gpst_probe_library* const row = &out->libraries[out->n_libraries++];
    gpsti_copy_text(row->name, sizeof(row->name), name);
    row->result = ask(row->version, sizeof(row->version));
    row->available = !GPST_FAILED(row->result);
    if (!row->available)
        gpsti_copy_text(row->reason, sizeof(row->reason), gpst_last_reason());
}

/* ---- the public face --------------------------------------------------------- */

GPST_API gpst_result gpst_probe(const char* path, gpst_probe_info* out) {
    const int64_t start_ns = gpsti_now_ns();
    char before[GPSTI_REASON_BYTES];
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_probe: out=NULL: must point to a gpst_probe_info");
    gpsti_copy_text(before, sizeof(before), gpst_last_reason());
    memset(out, 0, sizeof(*out));
    gpsti_tier_look_at_system(out);
    gpsti_tier_look_at_limits(out);
    gpsti_tier_look_at_cpu(out);
    gpsti_tier_look_at_huge_pages(out);
    gpsti_tier_look_at_io_uring(out);
    gpsti_tier_look_at_storage(path, &out->storage);
    const char* name = NULL;
    const gpsti_backend_i* backend = gpsti_backend_at(0, &name);
    for (size_t i = 1; name; backend = gpsti_backend_at(i++, &name))
        gpsti_tier_add_backend(out, name, backend);
    gpsti_tier_judge(out);
    gpsti_tier_add_library(out, "libturbojpeg", gpsti_tier_ask_turbojpeg);
    gpsti_tier_add_library(out, "nvJPEG", gpsti_nvjpeg_version);
    out->duration_ns = gpsti_now_ns() - start_ns;
    return gpsti_fail(GPST_OK, "%s", before); /* looking for what is absent is no failure of the caller's */
}

GPST_API const char* gpst_tier_name(gpst_tier tier) {
    switch (tier) {
    case GPST_TIER_CPU_ONLY:
        return "CPU_ONLY";
    case GPST_TIER_GPU_BASE:
        return "GPU_BASE";
    case GPST_TIER_GDS_COMPAT:
        return "GDS_COMPAT";
    case GPST_TIER_GDS_FULL:
        return "GDS_FULL";
    }
    return "unknown tier";
}
