/* core/base/base.h -- results, reasons, logging and allocation: what every other
   noun speaks in. Owns no state but the reason of each thread. */
#ifndef GPSTI_BASE_H
#define GPSTI_BASE_H

#include "config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Results: 0 is done, positive is done with a note, negative is an error.
   Values are never renumbered. One list makes the enum, the names and the sentences. */
#define GPSTI_RESULTS(X)                                                             \
    X(GPST_OK, 0, "done")                                                            \
    X(GPST_PARTIAL, 1, "done, but some items failed")                                \
    X(GPST_DROPPED, 2, "dropped by the back-pressure policy")                        \
    X(GPST_END, 3, "nothing more to come")                                           \
    X(GPST_SKIPPED, 4, "skipped by a stage or the source")                           \
    X(GPST_KEPT, 5, "kept by the sink until its release")                            \
    X(GPST_ERROR_ARGUMENT, -1, "an argument breaks its rule")                        \
    X(GPST_ERROR_VERSION, -2, "header and implementation are of different versions") \
    X(GPST_ERROR_STATE, -3, "not possible in the object's present state")            \
    X(GPST_ERROR_REENTRANT, -4, "not possible from a callback of the same object")   \
    X(GPST_ERROR_FORKED, -5, "after fork the child may only exec")                   \
    X(GPST_ERROR_UNSUPPORTED, -6, "not supported here")                              \
    X(GPST_ERROR_WOULD_BLOCK, -10, "not possible without waiting")                   \
    X(GPST_ERROR_TIMEOUT, -11, "the time allowed is over")                           \
    X(GPST_ERROR_CLOSED, -12, "closed")                                              \
    X(GPST_ERROR_CANCELLED, -13, "cancelled")                                        \
    X(GPST_ERROR_MEMORY, -20, "out of memory")                                       \
    X(GPST_ERROR_BUDGET, -21, "over the byte budget that was set")                   \
    X(GPST_ERROR_OVERFLOW, -22, "a size does not fit")                               \
    X(GPST_ERROR_IO, -40, "input or output failed")                                  \
    X(GPST_ERROR_NOT_FOUND, -41, "no such file or directory")                        \
    X(GPST_ERROR_ACCESS, -42, "permission denied")                                   \
    X(GPST_ERROR_TRUNCATED, -43, "the data end too early")                           \
    X(GPST_ERROR_NO_SPACE, -44, "no space left")                                     \
    X(GPST_ERROR_FORMAT, -45, "the data are not what they should be")                \
    X(GPST_ERROR_EXISTS, -46, "exists already")                                      \
    X(GPST_ERROR_DEVICE, -60, "the device reported an error")                        \
    X(GPST_ERROR_DEVICE_MEMORY, -61, "out of device memory")                         \
    X(GPST_ERROR_DEVICE_LOST, -62, "the device is gone")                             \
    X(GPST_ERROR_NO_BACKEND, -80, "no backend of those asked for is available")      \
    X(GPST_ERROR_CALLBACK, -90, "a user callback reported an error")                 \
    X(GPST_ERROR_INTERNAL, -100, "a defect in gpustage itself")

typedef enum gpst_result {
#define GPSTI_X(name, value, text) name = value,
    GPSTI_RESULTS(GPSTI_X)
#undef GPSTI_X
    GPSTI_RESULT_FORCE_INT = 0x7fffffff
} gpst_result;

#define GPST_FAILED(result) ((result) < 0)

/* gpst_result_name -- a result as it is spelt in C; gpst_result_text -- and in words

   Parameters   result  (in)  any value
   Shapes       none
   Returns      "GPST_ERROR_IO"; "input or output failed"; for a value that is none of ours a text that
                says so
   Ownership    static text
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/base/base.c          Tests  tests/test_base.c          Since 0.1
*/
GPST_API const char* gpst_result_name(gpst_result result);
GPST_API const char* gpst_result_text(gpst_result result);

/* gpst_last_reason -- the sentence of this thread's latest failure; gpst_clear_reason -- makes it ""

   Every call that returns a negative result sets the reason: function, member, value and rule, or the
   system's own text. The next failure overwrites it; success, queries and destroy never touch it. Failures of
   an item are in the item, not here: they happen on other threads.

   Parameters   none
   Shapes       none
   Returns      at most 511 bytes, never NULL; "" when nothing failed on this thread since its start or
                the clearing
   Ownership    the thread's; valid until its next failure or its end
   Threads      any; each has its own
   Blocking     never; no allocation
   Device       none
   Source       core/base/base.c          Tests  tests/test_base.c          Since 0.1
*/
GPST_API const char* gpst_last_reason(void);
GPST_API void gpst_clear_reason(void);

/* gpst_version -- GPST_VERSION of the implementation; gpst_build_info -- how it was compiled

   Parameters   none
   Shapes       none
   Returns      major * 10000 + minor * 100 + patch;
                "gpustage 0.1.0; <compiler>; <language>; backends: ...; OpenMP: ...; sanitizer: ...;
                NDEBUG: ..."
   Ownership    static text
   Threads      any
   Blocking     never; no allocation
   Device       none; what is compiled in need not be available: see gpst_probe
   Source       core/base/base.c          Tests  tests/test_base.c          Since 0.1
*/
GPST_API uint32_t gpst_version(void);
GPST_API const char* gpst_build_info(void);

/* gpst_now_ns -- the clock of item->start_ns and end_ns, and of deadlines: CLOCK_MONOTONIC, where there is that

   Parameters   none
   Shapes       none
   Returns      nanoseconds since a moment of the system's own
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/base/os.c          Tests  tests/test_os.c          Since 0.1
*/
GPST_API int64_t gpst_now_ns(void);

typedef enum gpst_log_level {
    GPST_LOG_DEFAULT = 0, /* as a threshold: warnings and errors */
    GPST_LOG_ERROR = 1,   /* something was not done: act */
    GPST_LOG_WARNING = 2, /* it was done, but not as asked: read */
    GPST_LOG_INFO = 3,    /* what was chosen, once */
    GPST_LOG_DEBUG = 4    /* for those who work on gpustage */
} gpst_log_level;

/* item_index is UINT64_MAX when no item is meant. Called from any thread, also at once. */
typedef void (*gpst_log_func)(void* user_data, gpst_log_level level, uint64_t item_index, const char* message,
                              const char* file, int line);

/* gpst_logger -- where messages go; all-zero: errors and warnings to stderr

   func is called from any thread, also several at once, and must not call back into the object that logs.

   Ownership    copied; message and file die when func returns; user_data lives as long as the context
   Since 0.1
*/
typedef struct gpst_logger {
    gpst_log_func func; /* NULL: stderr, or nowhere under GPUSTAGE_NO_STDIO */
    void* user_data;
    gpst_log_level threshold; /* what is less urgent is not reported */
} gpst_logger;

/* gpst_allocator -- metadata memory; all-zero: the C library's

   Both functions or neither; called from any thread, also several at once. Frame memory does not come from
   here but from the backend, and is bounded by the context's budgets.

   Ownership    copied; every block comes back through free with the bytes it was asked with; user_data lives
                as long as the context
   Since 0.1
*/
typedef struct gpst_allocator {
    /* At least bytes (never 0) at a multiple of align_bytes (a power of two), or NULL. */
    void* (*alloc)(void* user_data, size_t bytes, size_t align_bytes);
    void (*free)(void* user_data, void* ptr, size_t bytes); /* ptr is never NULL */
    void* user_data;
} gpst_allocator;

#ifdef __cplusplus
}
#endif
#endif
