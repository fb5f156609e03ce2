/* core/base/base.c -- results, reasons, logging, counted allocation and checked
   sizes. Owns the reason of each thread and nothing else. */
#include "platform_internal.h"

#include "base_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- results ------------------------------------------------------------------ */

GPST_API const char* gpst_result_name(gpst_result result) {
    switch ((int)result) {
#define GPSTI_X(name, value, text) \
    case value:                    \
        return #name;
        GPSTI_RESULTS(GPSTI_X)
#undef GPSTI_X
    default:
        return "unknown result";
    }
}

GPST_API const char* gpst_result_text(gpst_result result) {
    switch ((int)result) {
#define GPSTI_X(name, value, text) \
    case value:                    \
        return text;
        GPSTI_RESULTS(GPSTI_X)
#undef GPSTI_X
    default:
        return "not a result of this version";
    }
}

/* ---- version ------------------------------------------------------------------ */

#define GPSTI_QUOTE_(token) #token
#define GPSTI_QUOTE(token) GPSTI_QUOTE_(token)

#if defined(_MSC_VER) && !defined(__clang__)
#define GPSTI_BUILD_COMPILER "msvc " GPSTI_QUOTE(_MSC_VER)
#elif defined(__clang__)
#define GPSTI_BUILD_COMPILER __VERSION__
#else
#define GPSTI_BUILD_COMPILER "gcc " __VERSION__
#endif
#if defined(__cplusplus)
#define GPSTI_BUILD_LANGUAGE "C++ " GPSTI_QUOTE(__cplusplus)
#else
#define GPSTI_BUILD_LANGUAGE "C " GPSTI_QUOTE(__STDC_VERSION__)
#endif
#if defined(GPSTI_CUDA)
#define GPSTI_BUILD_GPU " cuda"
#elif defined(GPSTI_HIP)
#define GPSTI_BUILD_GPU " hip"
#else
#define GPSTI_BUILD_GPU ""
#endif
#if defined(_OPENMP) && !defined(GPUSTAGE_NO_OPENMP)
#define GPSTI_BUILD_OPENMP GPSTI_QUOTE(_OPENMP)
#else
#define GPSTI_BUILD_OPENMP "no"
#endif
#if defined(__SANITIZE_ADDRESS__)
#define GPSTI_BUILD_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define GPSTI_BUILD_SANITIZER "thread"
#else
#define GPSTI_BUILD_SANITIZER "none"
#endif
#if defined(NDEBUG)
#define GPSTI_BUILD_NDEBUG "yes"
#else
#define GPSTI_BUILD_NDEBUG "no"
#endif

GPST_API uint32_t gpst_version(void) { return GPST_VERSION; }

GPST_API const char* gpst_build_info(void) {
    return "gpustage " GPST_VERSION_TEXT "; " GPSTI_BUILD_COMPILER "; " GPSTI_BUILD_LANGUAGE
           "; backends: cpu" GPSTI_BUILD_GPU "; OpenMP: " GPSTI_BUILD_OPENMP "; sanitizer: " GPSTI_BUILD_SANITIZER
           "; NDEBUG: " GPSTI_BUILD_NDEBUG;
}

/* ---- reasons ------------------------------------------------------------------ */

GPSTI_PRIVATE GPSTI_TLS char gpsti_reason[GPSTI_REASON_BYTES];
static GPSTI_TLS uint64_t gpsti_reason_serial = 0;

GPST_API const char* gpst_last_reason(void) { return gpsti_reason; }
GPST_API void gpst_clear_reason(void) { gpsti_reason[0] = 0; }

GPSTI_INTERN uint64_t gpsti_hash(uint64_t hash, const void* data, size_t n_bytes) {
    const unsigned char* const bytes = (const unsigned char*)data;
    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

GPSTI_LINK void gpsti_copy_text(char* out, size_t out_bytes, const char* text) {
    const size_t length = strlen(text);
    const size_t kept = length < out_bytes ? length : out_bytes - 1;
    memmove(out, text, kept);
    out[kept] = 0;
}

GPSTI_LINK void gpsti_format(char* out, size_t out_bytes, const char* format, ...) {
    va_list list;
    va_start(list, format);
    gpsti_format_list(out, out_bytes, format, list);
    va_end(list);
}

GPSTI_INTERN void gpsti_append(char* out, size_t out_bytes, const char* format, ...) {
    const size_t used = strlen(out);
    va_list list;
    va_start(list, format);
    gpsti_format_list(out + used, out_bytes - used, format, list);
    va_end(list);
}

#define GPSTI_REASON_LONG_BYTES (4096 + GPSTI_REASON_BYTES) /* with the longest path */

GPSTI_INTERN void gpsti_format_reason(char out[GPSTI_REASON_BYTES], const char* format, va_list list) {
    char text[GPSTI_REASON_LONG_BYTES];
    const size_t most = GPSTI_REASON_BYTES - 1, end = most / 2, begin = most - end - 3;
    gpsti_format_list(text, sizeof text, format, list);
    const size_t length = strlen(text);
    if (length > most) {
        memcpy(text + begin, "...", 3);
        memmove(text + begin + 3, text + length - end, end + 1);
    }
    gpsti_copy_text(out, GPSTI_REASON_BYTES, text);
}

/* By way of a copy, because an argument may be the reason itself. */
GPSTI_LINK gpst_result gpsti_fail(gpst_result result, const char* format, ...) {
    char text[GPSTI_REASON_BYTES];
    va_list list;
    va_start(list, format);
    gpsti_format_reason(text, format, list);
    va_end(list);
    gpsti_copy_text(gpsti_reason, sizeof gpsti_reason, text);
    gpsti_reason_serial++;
    return result;
}

GPSTI_INTERN uint64_t gpsti_fail_serial(void) { return gpsti_reason_serial; }

GPSTI_INTERN gpst_result gpsti_fail_in(gpst_result result, const char* prefix) {
    return gpsti_fail(result, "%s: %s", prefix, gpsti_reason);
}

GPSTI_INTERN gpst_result gpsti_check_version(const char* function, uint32_t version, size_t desc_bytes,
                                             size_t own_desc_bytes) {
    GPSTI_FAIL_IF(
        version != GPST_VERSION || desc_bytes != own_desc_bytes, GPST_ERROR_VERSION,
        "%s: version=%u desc_bytes=%zu: this implementation is version %u with %zu; compile the caller "
        "and the implementation from one gpustage.h",
        function, version, desc_bytes, (unsigned)GPST_VERSION, own_desc_bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_check_canaries(const char* function, uint32_t start_canary,
                                              uint32_t end_canary) {
    GPSTI_FAIL_IF(start_canary || end_canary, GPST_ERROR_ARGUMENT,
                  "%s: desc.%s_canary=%u: must be 0; define the desc with = GPST_ZERO", function,
                  start_canary ? "start" : "end", start_canary ? start_canary : end_canary);
    return GPST_OK;
}

/* ---- logging ------------------------------------------------------------------ */

#if defined(GPUSTAGE_NO_STDIO)
GPSTI_PRIVATE void gpsti_log_default(gpst_log_level level, uint64_t item_index, const char* message) {
    (void)level;
    (void)item_index;
    (void)message;
}
#else
GPSTI_PRIVATE void gpsti_log_default(gpst_log_level level, uint64_t item_index, const char* message) {
    static const char* const names[] = {"", "error", "warning", "info", "debug"};
    char item[32] = "";
    if (item_index != GPSTI_NO_ITEM)
        gpsti_format(item, sizeof item, " item %llu:", (unsigned long long)item_index);
    fprintf(stderr, "gpustage: %s:%s %s\n", names[level], item, message);
}
#endif

GPSTI_LINK void gpsti_log(gpsti_host* host, gpst_log_level level, uint64_t item_index, const char* file,
                            int line, const char* format, ...) {
    const gpst_log_level threshold =
        host->logger.threshold == GPST_LOG_DEFAULT ? GPST_LOG_WARNING : host->logger.threshold;
    char message[2 * GPSTI_REASON_BYTES];
    va_list list;
    if (level > threshold)
        return;
    va_start(list, format);
    gpsti_format_list(message, sizeof message, format, list);
    va_end(list);
    if (host->logger.func)
        host->logger.func(host->logger.user_data, level, item_index, message, file, line);
    else
        gpsti_log_default(level, item_index, message);
}

/* ---- sizes -------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_size_add(size_t a, size_t b, size_t* out) {
    if (a > SIZE_MAX / 2 || b > SIZE_MAX / 2 - a)
        return false;
    *out = a + b;
    return true;
}

GPSTI_INTERN bool gpsti_size_mul(size_t a, size_t b, size_t* out) {
    if (b && a > SIZE_MAX / 2 / b)
        return false;
    *out = a * b;
    return true;
}

GPSTI_INTERN bool gpsti_size_round_up(size_t bytes, size_t multiple, size_t* out) {
    size_t raised = 0;
    if (!multiple || !gpsti_size_add(bytes, multiple - 1, &raised))
        return false;
    *out = raised / multiple * multiple;
    return true;
}

/* ---- allocation --------------------------------------------------------------- */

GPSTI_PRIVATE void* gpsti_default_alloc(void* user_data, size_t bytes, size_t align_bytes) {
    (void)user_data;
    return gpsti_aligned_alloc(bytes, align_bytes);
}

GPSTI_PRIVATE void gpsti_default_free(void* user_data, void* ptr, size_t bytes) {
    (void)user_data;
    (void)bytes;
    gpsti_aligned_free(ptr);
}

/* A process number comes again, in a container from the first run on: the tag is drawn at random. */
GPSTI_INTERN uint64_t gpsti_process_tag(void) {
    static gpsti_a64 tag;
    uint64_t found = gpsti_a64_load(&tag);
    while (!found) {
        const uint64_t drawn = gpsti_random();
        if (drawn && gpsti_a64_cas(&tag, &found, drawn))
            found = drawn;
    }
    return found;
}

GPSTI_INTERN void gpsti_host_init(gpsti_host* host, const gpst_allocator* allocator,
                                  const gpst_logger* logger) {
    memset(host, 0, sizeof *host);
    if (allocator)
        host->allocator = *allocator;
    if (!host->allocator.alloc) {
        host->allocator.alloc = gpsti_default_alloc;
        host->allocator.free = gpsti_default_free;
    }
    if (logger)
        host->logger = *logger;
    host->pid = gpsti_pid();
}

GPSTI_LINK void* gpsti_alloc(gpsti_host* host, size_t bytes) {
    const size_t asked = bytes ? bytes : 1;
    void* ptr = NULL;
    if (asked <= SIZE_MAX / 2)
        ptr = host->allocator.alloc(host->allocator.user_data, asked, GPSTI_CACHE_LINE);
    if (ptr && (uintptr_t)ptr % GPSTI_CACHE_LINE) {
        host->allocator.free(host->allocator.user_data, ptr, asked);
        (void)gpsti_fail(GPST_ERROR_MEMORY, "allocator.alloc: ptr=%p: must be aligned to %d bytes", ptr,
                         GPSTI_CACHE_LINE);
        return NULL;
    }
    if (!ptr) {
        (void)gpsti_fail(GPST_ERROR_MEMORY, "allocator.alloc: bytes=%zu: out of memory", bytes);
        return NULL;
    }
    memset(ptr, 0, asked);
    (void)gpsti_a64_add(&host->allocation_count, 1);
    (void)gpsti_a64_add(&host->live_bytes, asked);
    return ptr;
}

GPSTI_LINK void gpsti_free(gpsti_host* host, void* ptr, size_t bytes) {
    const size_t asked = bytes ? bytes : 1;
    if (!ptr)
        return;
    (void)gpsti_a64_add(&host->live_bytes, (uint64_t)0 - asked);
    host->allocator.free(host->allocator.user_data, ptr, asked);
}

GPSTI_INTERN char* gpsti_copy_string(gpsti_host* host, const char* text) {
    const size_t bytes = strlen(text) + 1;
    char* copy = (char*)gpsti_alloc(host, bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
