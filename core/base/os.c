/* core/base/os.c -- what the files beside it share: system errors in words, a futex
   for systems without one, deadlines. The calls are in os_posix.c, os_limits.c and os_windows.c. */
#include "platform_internal.h"

#include "base_internal.h"

#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <errno.h>
#include <pthread.h>
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif

/* ---- errors -------------------------------------------------------------------
   Own texts, because strerror and FormatMessage speak the user's language. */

typedef struct gpsti_os_error {
    int code;
    gpst_result result;
    const char* text;
} gpsti_os_error;

#if defined(_WIN32)
GPSTI_PRIVATE const gpsti_os_error gpsti_os_errors[] = {
    {ERROR_FILE_NOT_FOUND, GPST_ERROR_NOT_FOUND, "No such file or directory"},
    {ERROR_PATH_NOT_FOUND, GPST_ERROR_NOT_FOUND, "No such path"},
    {ERROR_INVALID_NAME, GPST_ERROR_NOT_FOUND, "Not a file name"},
    {ERROR_ACCESS_DENIED, GPST_ERROR_ACCESS, "Permission denied"},
    {ERROR_SHARING_VIOLATION, GPST_ERROR_ACCESS, "In use by another process"},
    {ERROR_WRITE_PROTECT, GPST_ERROR_ACCESS, "Write-protected"},
    {ERROR_FILE_EXISTS, GPST_ERROR_EXISTS, "File exists"},
    {ERROR_ALREADY_EXISTS, GPST_ERROR_EXISTS, "File exists"},
    {ERROR_DISK_FULL, GPST_ERROR_NO_SPACE, "No space left on device"},
    {ERROR_HANDLE_DISK_FULL, GPST_ERROR_NO_SPACE, "No space left on device"},
    {ERROR_NOT_ENOUGH_MEMORY, GPST_ERROR_MEMORY, "Cannot allocate memory"},
    {ERROR_OUTOFMEMORY, GPST_ERROR_MEMORY, "Cannot allocate memory"},
    {ERROR_NO_SYSTEM_RESOURCES, GPST_ERROR_MEMORY, "Not enough system resources"},
    {ERROR_PRIVILEGE_NOT_HELD, GPST_ERROR_ACCESS, "Privilege not held"},
    {ERROR_BUFFER_OVERFLOW, GPST_ERROR_IO, "File name too long"},
    {ERROR_DIRECTORY, GPST_ERROR_NOT_FOUND, "Not a directory"},
};
#else
GPSTI_PRIVATE const gpsti_os_error gpsti_os_errors[] = {
    {ENOENT, GPST_ERROR_NOT_FOUND, "No such file or directory"},
    {ENXIO, GPST_ERROR_IO, "No such device or address"}, /* a socket that is opened */
    {ENOTDIR, GPST_ERROR_NOT_FOUND, "Not a directory"},
    {EACCES, GPST_ERROR_ACCESS, "Permission denied"},
    {EPERM, GPST_ERROR_ACCESS, "Operation not permitted"},
    {EROFS, GPST_ERROR_ACCESS, "Read-only file system"},
    {EEXIST, GPST_ERROR_EXISTS, "File exists"},
    {ENOTEMPTY, GPST_ERROR_EXISTS, "Directory not empty"},
    {ENOSPC, GPST_ERROR_NO_SPACE, "No space left on device"},
    {EDQUOT, GPST_ERROR_NO_SPACE, "Disk quota exceeded"},
    {EFBIG, GPST_ERROR_NO_SPACE, "File too large"},
    {ENOMEM, GPST_ERROR_MEMORY, "Cannot allocate memory"},
    {EAGAIN, GPST_ERROR_MEMORY, "Resource temporarily unavailable"},
    {EISDIR, GPST_ERROR_IO, "Is a directory"},
    {EIO, GPST_ERROR_IO, "Input/output error"},
    {EMFILE, GPST_ERROR_IO, "Too many open files"},
    {ENFILE, GPST_ERROR_IO, "Too many open files in system"},
    {ENAMETOOLONG, GPST_ERROR_IO, "File name too long"},
    {ELOOP, GPST_ERROR_IO, "Too many levels of symbolic links"},
    {EXDEV, GPST_ERROR_IO, "Invalid cross-device link"},
    {ESPIPE, GPST_ERROR_IO, "Illegal seek"},
    {EPIPE, GPST_ERROR_IO, "Broken pipe"},
    {EBADF, GPST_ERROR_IO, "Bad file descriptor"},
    {EINVAL, GPST_ERROR_IO, "Invalid argument"},
};
#endif

GPSTI_PRIVATE gpsti_os_error gpsti_os_error_of(int code) {
    for (size_t i = 0; i < sizeof gpsti_os_errors / sizeof gpsti_os_errors[0]; i++)
        if (gpsti_os_errors[i].code == code)
            return gpsti_os_errors[i];
    const gpsti_os_error unknown = {code, GPST_ERROR_IO, "system error"};
    return unknown;
}

GPSTI_INTERN const char* gpsti_os_error_text(int code) { return gpsti_os_error_of(code).text; }

/* Of a long path the end is kept: that is where paths differ. */
GPSTI_INTERN gpst_result gpsti_os_fail(const char* what, const char* path, int code) {
    const size_t most = 300;
    const size_t length = strlen(path);
    const gpsti_os_error error = gpsti_os_error_of(code);
    return gpsti_fail(error.result, "%s \"%s%s\": %s (%d)", what, length > most ? "..." : "",
                      length > most ? path + length - most : path, error.text, code);
}

/* Rounded up: a quota of 1.5 cores can keep two threads busy most of the time. */
GPSTI_INTERN void gpsti_limits_cores(gpsti_limits* limits) {
    uint32_t cores =
        limits->cores_online < limits->cores_affinity ? limits->cores_online : limits->cores_affinity;
    if (limits->cores_quota > 0.0 && limits->cores_quota < cores) {
        const uint32_t whole = (uint32_t)limits->cores_quota;
        cores = whole + ((double)whole < limits->cores_quota ? 1u : 0u);
    }
    limits->cores_allowed = cores ? cores : 1;
}

/* ---- futex where the system has none: a few buckets of mutex and condition ------ */

#if !defined(__linux__)
#define GPSTI_FUTEX_BUCKETS 64

typedef struct gpsti_futex_bucket {
    gpsti_mutex mutex;
    gpsti_cond cond;
} gpsti_futex_bucket;

GPSTI_PRIVATE gpsti_futex_bucket gpsti_futex_buckets[GPSTI_FUTEX_BUCKETS];

#if defined(_WIN32)
GPSTI_PRIVATE void gpsti_futex_start(void) {} /* zero is a valid lock and condition */
#else
GPSTI_PRIVATE void gpsti_futex_init(void) {
    for (int i = 0; i < GPSTI_FUTEX_BUCKETS; i++) {
        (void)gpsti_mutex_init(&gpsti_futex_buckets[i].mutex);
        (void)gpsti_cond_init(&gpsti_futex_buckets[i].cond);
    }
}

GPSTI_PRIVATE void gpsti_futex_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, gpsti_futex_init);
}
#endif

GPSTI_PRIVATE gpsti_futex_bucket* gpsti_futex_bucket_of(const gpsti_a32* word) {
    gpsti_futex_start();
    return &gpsti_futex_buckets[((uintptr_t)word >> 4) % GPSTI_FUTEX_BUCKETS];
}

GPSTI_INTERN void gpsti_futex_wait(gpsti_a32* word, uint32_t expected, int64_t deadline_ns) {
    gpsti_futex_bucket* bucket = gpsti_futex_bucket_of(word);
    gpsti_mutex_lock(&bucket->mutex);
    if (gpsti_a32_load(word) == expected)
        (void)gpsti_cond_wait_until(&bucket->cond, &bucket->mutex, deadline_ns);
    gpsti_mutex_unlock(&bucket->mutex);
}

GPSTI_INTERN void gpsti_futex_wake(gpsti_a32* word, uint32_t wake_count) {
    gpsti_futex_bucket* bucket = gpsti_futex_bucket_of(word);
    (void)wake_count; /* others may share the bucket: all look again */
    gpsti_mutex_lock(&bucket->mutex);
    gpsti_cond_broadcast(&bucket->cond);
    gpsti_mutex_unlock(&bucket->mutex);
}
#endif

/* ---- clocks and limits ------------------------------------------------------------ */

GPSTI_INTERN void gpsti_limits_query(gpsti_limits* out) { gpsti_limits_query_under("", out); }

GPST_API int64_t gpst_now_ns(void) { return gpsti_now_ns(); }

GPSTI_INTERN int64_t gpsti_deadline(int64_t timeout_ns) {
    const int64_t now = gpsti_now_ns();
    if (timeout_ns <= 0)
        return now;
    return timeout_ns > INT64_MAX - now ? GPST_FOREVER : now + timeout_ns;
}

GPSTI_INTERN uint64_t gpsti_ticks(void) {
#if defined(_MSC_VER) && !defined(__clang__) && (defined(_M_X64) || defined(_M_IX86))
    return __rdtsc();
#elif (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
    return __builtin_ia32_rdtsc();
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
    uint64_t count = 0;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return (uint64_t)gpsti_now_ns();
#endif
}

/* ---- names ------------------------------------------------------------------------- */

GPSTI_INTERN size_t gpsti_path_directory_bytes(const char* path) {
    size_t length = strlen(path);
#if defined(_WIN32)
    while (length && path[length - 1] != '/' && path[length - 1] != '\\')
        --length;
#else
    while (length && path[length - 1] != '/')
        --length;
#endif
    return length;
}
