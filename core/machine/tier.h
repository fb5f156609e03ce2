/* core/machine/tier.h -- what this machine is: static facts, each absence with its
   reason. Creates no device context and changes nothing. */
#ifndef GPSTI_TIER_H
#define GPSTI_TIER_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For printing; what is used is decided by measurement. */
typedef enum gpst_tier {
    GPST_TIER_CPU_ONLY = 0,
    GPST_TIER_GPU_BASE = 1,   /* pinned memory and streams */
    GPST_TIER_GDS_COMPAT = 2, /* cuFile, by way of host memory */
    GPST_TIER_GDS_FULL = 3    /* cuFile, straight to the device */
} gpst_tier;

/* gpst_probe_backend -- one backend: compiled in, available, or why not

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_probe_backend {
    char name[16]; /* "cpu", "cuda", "hip" */
    bool compiled_in, available;
    char device_name[128]; /* "" when not available */
    uint64_t memory_bytes;
    gpst_result result;
    char reason[160]; /* why not available or not compiled in; "" when available */
} gpst_probe_backend;

/* gpst_probe_library -- a library that is looked for at run time: there, or why not

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_probe_library {
    char name[16]; /* "libturbojpeg", "nvJPEG" */
    bool available;
    char version[24]; /* "13.0.1"; of libturbojpeg "2" or "3"; "" when not available */
    gpst_result result;
    char reason[256]; /* why not available; "" when available */
} gpst_probe_library;

/* gpst_probe_storage -- what holds the path that was given

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_probe_storage {
    char path[256];      /* as given, cut to fit; "" when no path was given */
    gpst_result result;  /* of looking at it */
    char filesystem[32]; /* "ext4", "tmpfs", ..., "0x..." for a type without a name here; "" when unknown */
    int32_t rotational;  /* 1, 0, -1 unknown; virtual disks often say 1 */
    uint64_t free_bytes, total_bytes;
    /* Of offsets and lengths, and of addresses, for O_DIRECT; 0 = not supported or not known */
    uint32_t direct_offset_align_bytes, direct_memory_align_bytes;
    char direct_reason[160]; /* "" when they are known */
    char reason[160];        /* why the rest is unknown; "" when it is known */
} gpst_probe_storage;

/* gpst_probe_info -- the machine, as far as it can be known without using it

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_probe_info {
    gpst_tier tier;
    char tier_reason[160]; /* why not a higher one */
    char system[128];      /* name, release, machine */
    uint32_t cores_online, cores_affinity, cores_allowed;
    double cores_quota; /* cgroup; 0 = none */
    uint64_t ram_bytes, ram_available_bytes;
    uint64_t memlock_bytes; /* UINT64_MAX = unlimited */
    uint32_t page_bytes;
    char thp[64]; /* "always", "madvise", "never", "" unknown */
    uint64_t huge_page_bytes, huge_pages_total, huge_pages_free; /* hugetlb, of the default size */
    bool has_fma, has_avx2, has_avx512; /* AVX-512F; x86, where the compiler can ask */
    bool io_uring;
    char io_uring_reason[160]; /* why not; "" when allowed */
    uint32_t n_backends;
    gpst_probe_backend backends[8];
    uint32_t n_libraries;
    /* libturbojpeg decodes and encodes JPEG on the cores, nvJPEG on an NVIDIA GPU. GPUSTAGE_LIBTURBOJPEG and
       GPUSTAGE_LIBNVJPEG in the environment name their files; set to nothing, they are not used.
       GPUSTAGE_NVJPEG_HARDWARE=0 leaves the JPEG decoder that some GPUs have as hardware unused. */
    gpst_probe_library libraries[4];
    gpst_probe_storage storage;
    int64_t duration_ns; /* what the probe itself took */
} gpst_probe_info;

/* gpst_probe -- look at the machine, and at the storage under a path

   Parameters   path  (in)   a file or directory, or NULL; O_DIRECT's rules are learnt of a regular file only
                out   (out)  everything that could be learnt; not NULL
   Shapes       none
   Returns      GPST_OK, also when something is absent: that has its own result and reason in out
                | GPST_ERROR_ARGUMENT
   Ownership    none
   Threads      any; needs no context
   Blocking     a few ms: small files of /proc and /sys; where the kernel does not tell O_DIRECT's rules, one
                read of 4096 bytes of the file; with a GPU backend compiled in its driver is started, about
                100 ms once a process; loads the libraries that it looks for, which stay loaded
   Device       none is opened: no context is made
   Source       core/machine/tier.c          Tests  tests/test_tier.c          Since 0.1
*/
GPST_API gpst_result gpst_probe(const char* path, gpst_probe_info* out);

/* gpst_tier_name -- "CPU_ONLY", "GPU_BASE", "GDS_COMPAT", "GDS_FULL"

   Parameters   tier  (in)  any value
   Shapes       none
   Returns      static text; "unknown tier" for any other value
   Ownership    static text; do not free
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/machine/tier.c          Tests  tests/test_tier.c          Since 0.1
*/
GPST_API const char* gpst_tier_name(gpst_tier tier);

#ifdef __cplusplus
}
#endif
#endif
