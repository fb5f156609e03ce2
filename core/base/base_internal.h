/* core/base/base_internal.h -- how the inside reports failures, logs, allocates
   and computes sizes. */
#ifndef GPSTI_BASE_INTERNAL_H
#define GPSTI_BASE_INTERNAL_H

#include "base.h"
#include "os_internal.h"

#define GPSTI_REASON_BYTES 512
#define GPSTI_NO_ITEM UINT64_MAX

/* Sets this thread's reason and gives the result back: return gpsti_fail(GPST_ERROR_IO, "...", ...) */
GPSTI_LINK gpst_result gpsti_fail(gpst_result result, const char* format, ...) GPSTI_PRINTF(2, 3);
/* Of a sentence that is too long the middle is left out: names are long, and what is wrong stands behind them. */
GPSTI_INTERN void gpsti_format_reason(char out[GPSTI_REASON_BYTES], const char* format, va_list list);

/* Counts this thread's failures: a callback that changed it has set the reason. */
GPSTI_INTERN uint64_t gpsti_fail_serial(void);

/* Puts "prefix: " before the reason this thread has now. */
GPSTI_INTERN gpst_result gpsti_fail_in(gpst_result result, const char* prefix);

#define GPSTI_HASH_START UINT64_C(14695981039346656037)

/* FNV-1a of more bytes, after those that gave `hash`. */
GPSTI_INTERN uint64_t gpsti_hash(uint64_t hash, const void* data, size_t n_bytes);

/* All cut what does not fit and always terminate; format is in the C locale whatever the process's is. */
GPSTI_LINK void gpsti_copy_text(char* out, size_t out_bytes, const char* text);
GPSTI_LINK void gpsti_format(char* out, size_t out_bytes, const char* format, ...) GPSTI_PRINTF(3, 4);
/* Behind the text that out has already. */
GPSTI_INTERN void gpsti_append(char* out, size_t out_bytes, const char* format, ...) GPSTI_PRINTF(3, 4);

/* What every create checks first: VERSION when caller and implementation come from different headers. */
GPSTI_INTERN gpst_result gpsti_check_version(const char* function, uint32_t version, size_t desc_bytes,
                                             size_t own_desc_bytes);
/* ARGUMENT when a desc's canaries are not zero: it was not zeroed, or something wrote over it. */
GPSTI_INTERN gpst_result gpsti_check_canaries(const char* function, uint32_t start_canary,
                                              uint32_t end_canary);

#define GPSTI_FAIL_IF(condition, result, ...)       \
    do {                                            \
        if (condition)                              \
            return gpsti_fail(result, __VA_ARGS__); \
    } while (0)

#define GPSTI_TRY(expression)                              \
    do {                                                   \
        const gpst_result gpsti_try_result = (expression); \
        if (GPST_FAILED(gpsti_try_result))                 \
            return gpsti_try_result;                       \
    } while (0)

/* What every function that hands something out begins with: whatever fails behind it, nothing old is left to be used or
   freed. */
#define GPSTI_OUT_NONE(out) \
    do {                    \
        if (out)            \
            *(out) = NULL;  \
    } while (0)

/* Checked sizes: true when the true result fits in SIZE_MAX / 2, else false and *out is untouched. */
GPSTI_INTERN bool gpsti_size_add(size_t a, size_t b, size_t* out);
GPSTI_INTERN bool gpsti_size_mul(size_t a, size_t b, size_t* out);
GPSTI_INTERN bool gpsti_size_round_up(size_t bytes, size_t multiple, size_t* out);

/* What a context hands to its parts: the user's hooks, and a count of what went through them. */
typedef struct gpsti_host {
    gpst_allocator allocator;
    gpst_logger logger;
    gpsti_a64 allocation_count; /* calls since creation */
    gpsti_a64 live_bytes;
    uint64_t pid;
} gpsti_host;

/* Never 0; no two processes share one, but for a forked child and its parent. */
GPSTI_INTERN uint64_t gpsti_process_tag(void);
GPSTI_INTERN void gpsti_host_init(gpsti_host* host, const gpst_allocator* allocator,
                                  const gpst_logger* logger);
/* Zeroed memory aligned to at least 64 bytes; NULL with the reason set when there is none. */
GPSTI_LINK void* gpsti_alloc(gpsti_host* host, size_t bytes);
GPSTI_LINK void gpsti_free(gpsti_host* host, void* ptr, size_t bytes);
GPSTI_INTERN char* gpsti_copy_string(gpsti_host* host, const char* text); /* free with strlen + 1 */

GPSTI_LINK void gpsti_log(gpsti_host* host, gpst_log_level level, uint64_t item_index, const char* file,
                            int line, const char* format, ...) GPSTI_PRINTF(6, 7);
#define GPSTI_LOG(host, level, item, ...) gpsti_log(host, level, item, __FILE__, __LINE__, __VA_ARGS__)

#endif
