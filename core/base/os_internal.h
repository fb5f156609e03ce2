/* core/base/os_internal.h -- everything that differs between operating systems: threads, clocks, files, pages, limits.
   Three branches: POSIX, mingw, MSVC. Knows nothing of gpustage's nouns. */
#ifndef GPSTI_OS_INTERNAL_H
#define GPSTI_OS_INTERNAL_H

#include <stdarg.h>

#include "compiler_internal.h"

/* ---- threads ----------------------------------------------------------------
   Workers block every asynchronous signal, so that the host application's handlers run on its own threads;
   the faults of a thread's own (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT) keep their handlers. */
#if defined(_WIN32)
typedef struct gpsti_mutex {
    void* srwlock;
} gpsti_mutex;
typedef struct gpsti_cond {
    void* variable;
} gpsti_cond;
typedef struct gpsti_thread {
    void* handle;
    void (*func)(void*);
    void* arg;
} gpsti_thread;
#else
#include <pthread.h>
typedef struct gpsti_mutex {
    pthread_mutex_t mutex;
} gpsti_mutex;
typedef struct gpsti_cond {
    pthread_cond_t cond;
} gpsti_cond; /* on the monotonic clock */
typedef struct gpsti_thread {
    pthread_t thread;
    void (*func)(void*);
    void* arg;
    char name[16];
} gpsti_thread;
#endif

GPSTI_LINK gpst_result gpsti_mutex_init(gpsti_mutex* mutex);
GPSTI_LINK void gpsti_mutex_term(gpsti_mutex* mutex);
GPSTI_LINK void gpsti_mutex_lock(gpsti_mutex* mutex);
GPSTI_LINK bool gpsti_mutex_try_lock(gpsti_mutex* mutex); /* false: another has it, and this thread did not wait */
GPSTI_LINK void gpsti_mutex_unlock(gpsti_mutex* mutex);
GPSTI_LINK gpst_result gpsti_cond_init(gpsti_cond* cond);
GPSTI_LINK void gpsti_cond_term(gpsti_cond* cond);
/* false when deadline_ns (on gpsti_now_ns; GPST_FOREVER = never) passed; wakes may be spurious. */
GPSTI_LINK bool gpsti_cond_wait_until(gpsti_cond* cond, gpsti_mutex* mutex, int64_t deadline_ns);
GPSTI_LINK void gpsti_cond_signal(gpsti_cond* cond);
GPSTI_LINK void gpsti_cond_broadcast(gpsti_cond* cond);
/* *thread stays where it is until the join. name: at most 15 bytes, shown by ps and debuggers. */
GPSTI_LINK gpst_result gpsti_thread_start(gpsti_thread* thread, void (*func)(void*), void* arg,
                                            const char* name);
GPSTI_LINK void gpsti_thread_join(gpsti_thread* thread);
GPSTI_LINK bool gpsti_thread_is_own(void); /* the calling one: of gpsti_thread_start */
/* How many of n threads with so large a stack (0 = the system's default) can be made beside each other, now, and leave
   half of a limited address space to others; all of them are gone again. Windows: n. */
GPSTI_INTERN uint32_t gpsti_threads_try(uint32_t n, size_t stack_bytes);

/* How many of n threads of gpsti_thread_start take no more than half of the address space that is left. */
GPSTI_INTERN uint32_t gpsti_threads_fit(uint32_t n);

#define GPSTI_MAX_CORES 16384u
typedef struct gpsti_cores { /* a set, by the system's numbers */
    uint64_t words[GPSTI_MAX_CORES / 64];
} gpsti_cores;
/* Those that the calling thread may run on; false where the system does not tell or cannot bind threads. */
GPSTI_INTERN bool gpsti_cores_query(gpsti_cores* out);
/* A thread that has been started; UNSUPPORTED where gpsti_cores_query is false. */
GPSTI_INTERN gpst_result gpsti_thread_pin(gpsti_thread* thread, const gpsti_cores* cores);
GPSTI_INTERN void gpsti_yield(void);

/* Futex: sleeps while *word == expected, until a wake, deadline_ns or a spurious return.
   wake_count UINT32_MAX = all. Where the system has none, hashed mutex + condition variable. */
GPSTI_INTERN void gpsti_futex_wait(gpsti_a32* word, uint32_t expected, int64_t deadline_ns);
GPSTI_INTERN void gpsti_futex_wake(gpsti_a32* word, uint32_t wake_count);

GPSTI_INTERN uint64_t gpsti_pid(void); /* right after fork too; a system call, about 100 ns */
GPSTI_INTERN uint64_t gpsti_random(void); /* from the system's generator; where it has none, from what differs */
/* A word that reads 1 in this process and 0 in its forked children, which makes noticing a fork as cheap as a
   load. NULL where the system has no such memory: compare gpsti_pid then. */
GPSTI_INTERN gpsti_a32* gpsti_fork_guard_create(void);
GPSTI_INTERN void gpsti_fork_guard_destroy(gpsti_a32* guard);

/* ---- clocks ------------------------------------------------------------------ */
GPSTI_LINK int64_t gpsti_now_ns(void);        /* monotonic */
GPSTI_INTERN int64_t gpsti_thread_cpu_ns(void); /* of the calling thread; about 400 ns a call */
/* How often the calling thread gave up its core by itself, to wait for something; not how often it was taken away.
   False: the system does not count that. About as long a call. */
GPSTI_INTERN bool gpsti_thread_waits(uint64_t* out);
GPSTI_LINK void gpsti_sleep_ns(int64_t duration_ns);
/* A counter that runs evenly and costs little, for ratios of times only: its unit is not known. */
GPSTI_INTERN uint64_t gpsti_ticks(void);
/* now + timeout, saturating; GPST_FOREVER stays GPST_FOREVER; negative = now. */
GPSTI_INTERN int64_t gpsti_deadline(int64_t timeout_ns);

/* ---- files --------------------------------------------------------------------
   All failures set the reason "open \"x.jpg\": No such file or directory (2)" and map errno to NOT_FOUND,
   ACCESS, EXISTS, NO_SPACE, MEMORY or IO. Handles are close-on-exec. Offsets are 64-bit. */
typedef struct gpsti_file {
    intptr_t handle;
} gpsti_file;

typedef struct gpsti_file_info {
    uint64_t bytes;  /* 0 when unknown */
    bool is_regular; /* false for FIFOs, /dev/stdin and devices: size unknown, read in order */
    bool is_directory;
    uint64_t modified_ns;
    uint64_t device, inode; /* together they name the file; both 0 where the system does not tell */
} gpsti_file_info;

/* Never waits for a writer, a terminal or a device. */
GPSTI_INTERN gpst_result gpsti_file_open_read(const char* path, gpsti_file* out);
GPSTI_INTERN gpst_result gpsti_file_create(const char* path,
                                           gpsti_file* out); /* exclusive: EXISTS if there */
GPSTI_INTERN gpst_result gpsti_file_query(const gpsti_file* file, const char* path, gpsti_file_info* out);
GPSTI_INTERN gpst_result gpsti_path_query(const char* path, gpsti_file_info* out);
GPSTI_INTERN bool gpsti_path_is_regular(const char* path); /* false, too, where there is nothing; without a reason */
/* Of a regular file, in one system call: *done may be less than bytes; 0 = end of file. EINTR is retried. */
GPSTI_INTERN gpst_result gpsti_file_read(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                         uint64_t offset_bytes, size_t* done);
/* The same, but only what is in memory: WOULD_BLOCK where the disk would be waited for, UNSUPPORTED where the system
   does not say; both without a reason. */
GPSTI_INTERN gpst_result gpsti_file_read_cached(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                                uint64_t offset_bytes, size_t* done);
/* The next bytes of what is no regular file; *done 0 = its end. begun: some were read before, so a FIFO without writers
   has ended; else its writer may still come. WOULD_BLOCK, without a reason: nothing came within wait_ns (Windows: waits
   for as long as it takes). */
GPSTI_INTERN gpst_result gpsti_file_read_next(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                              bool begun, int64_t wait_ns, size_t* done);
/* Reads of it wait for their bytes, as those of a regular file do. False: they did before. */
GPSTI_INTERN bool gpsti_file_make_waiting(const gpsti_file* file);
GPSTI_INTERN gpst_result gpsti_file_write(const gpsti_file* file, const char* path, const void* data,
                                          size_t bytes); /* all of it, from the current position */
/* All of it, at a place of its own, from any thread. *done: how much of it was written, on failure too. */
GPSTI_INTERN gpst_result gpsti_file_write_at(const gpsti_file* file, const char* path, const void* data, size_t bytes,
                                             uint64_t offset_bytes, size_t* done);
GPSTI_INTERN gpst_result gpsti_file_set_bytes(const gpsti_file* file, const char* path, uint64_t bytes); /* zeroes */
/* Shows other processes, which ask for the same lock, that this one is alive. Waits while another process holds it.
   False: the file was removed meanwhile. A file system without locks is no error. */
GPSTI_INTERN bool gpsti_file_lock(const gpsti_file* file);
/* Has the kernel begin writing a range to the disk (wait: and waits for it). Where it cannot be asked nothing
   happens. */
GPSTI_INTERN gpst_result gpsti_file_flush(const gpsti_file* file, const char* path, uint64_t offset_bytes,
                                          uint64_t bytes, bool wait);
GPSTI_INTERN gpst_result gpsti_file_sync(const gpsti_file* file, const char* path);
/* The system is told that the file will be read soon. What it cannot do nobody has to mind. */
GPSTI_INTERN void gpsti_path_will_need(const char* path);
/* Does its file system keep everything in memory (tmpfs)? False, too, where the system does not say. */
GPSTI_INTERN bool gpsti_file_is_in_memory(const gpsti_file* file);
GPSTI_INTERN gpst_result gpsti_file_close(gpsti_file* file, const char* path); /* reports late write errors */
GPSTI_INTERN gpst_result gpsti_path_rename(const char* from, const char* to);  /* replaces */
/* Keeps the file that has this name now, without opening it, until it is closed: who gives the name to another need not
   free its pages and blocks, which systems do with the directory locked. False: there is none, the disk is too full for
   both, or it is not to be had so, which nobody has to mind. */
GPSTI_INTERN bool gpsti_path_hold(const char* path, gpsti_file* out);
GPSTI_INTERN gpst_result gpsti_path_remove(const char* path);
GPSTI_INTERN gpst_result gpsti_path_make_directory(const char* path); /* OK when it is there already */
/* Of the directory that a path names, with the last separator; 0 = it names none. */
GPSTI_INTERN size_t gpsti_path_directory_bytes(const char* path);
/* Calls take for each name in a directory but "." and "..", in no order; what it returns that is negative ends it. */
typedef gpst_result (*gpsti_name_func)(void* user_data, const char* name);
GPSTI_INTERN gpst_result gpsti_path_list(const char* path, gpsti_name_func take, void* user_data);

/* ---- text and memory ------------------------------------------------------------ */
/* vsnprintf in the C locale, whatever the process's is; always terminates. */
GPSTI_INTERN void gpsti_format_list(char* out, size_t out_bytes, const char* format, va_list list);
/* The C library's memory, at an alignment that is a power of two of at least 8; not zeroed. */
GPSTI_INTERN void* gpsti_aligned_alloc(size_t bytes, size_t align_bytes);
GPSTI_INTERN void gpsti_aligned_free(void* ptr);

/* ---- pages -------------------------------------------------------------------- */
typedef enum gpsti_pages_kind {
    GPSTI_PAGES_NONE = 0,
    GPSTI_PAGES_SMALL = 1,  /* the system's ordinary pages */
    GPSTI_PAGES_THP = 2,    /* transparent huge pages asked for (Linux) */
    GPSTI_PAGES_HUGETLB = 3 /* from the reserved huge-page pool (Linux), large pages (Windows) */
} gpsti_pages_kind;

/* Zeroed, page-aligned (2 MiB-aligned when huge), bytes > 0 rounded up to whole pages in *mapped_bytes.
   Huge ones: tries hugetlb, then THP, then small pages; why_not (NULL, or 128 bytes) says what failed. */
typedef enum gpsti_pages_want {
    GPSTI_WANT_SMALL = 0,
    GPSTI_WANT_HUGE = 1,  /* of THP as many as fit, the rest small */
    GPSTI_WANT_FILLED = 2 /* of THP one more for a good part of one: for memory whose first use is what costs */
} gpsti_pages_want;
/* What a huge page is worth having for, although it is less than one. The first use of 512 KiB of small pages takes six
   times as long as that of 2 MiB in one, and giving them back four times; but of memory there is only so much. */
#define GPSTI_PAGES_REST_BYTES ((size_t)3 << 18)
GPSTI_LINK gpst_result gpsti_pages_alloc(size_t bytes, gpsti_pages_want want, void** out, size_t* mapped_bytes,
                                           gpsti_pages_kind* kind, char* why_not);
GPSTI_LINK void gpsti_pages_free(void* ptr, size_t mapped_bytes);
/* Has pages of that kind zeroed that nobody has used yet, and changes nothing. For memory that a system call is to
   fill: that would hold the lock on all of the process's mappings meanwhile, and threads that map memory would take
   turns. And for memory whose price one wants to know: on a machine that gives back what it has free to a host, the
   first use of a page takes many times as long as reading a file into it. */
GPSTI_INTERN void gpsti_pages_touch(void* ptr, size_t bytes, gpsti_pages_kind kind);

/* ---- limits ------------------------------------------------------------------- */
typedef struct gpsti_limits {
    uint32_t cores_online;
    uint32_t cores_affinity;                 /* in this process's mask */
    double cores_quota;                      /* cgroup v2/v1 quota in cores; 0 = none */
    uint32_t cores_allowed;                  /* what to use: min of the above, rounded up, at least 1 */
    uint64_t ram_bytes, ram_available_bytes; /* the smaller of the machine's and the cgroup's; available: and of the
                                                address space that is left */
    uint64_t memlock_bytes;                  /* UINT64_MAX = unlimited */
    uint32_t page_bytes;
} gpsti_limits;
GPSTI_INTERN void gpsti_limits_query(gpsti_limits* out); /* opens some files: 0.1 ms */
GPSTI_INTERN uint32_t gpsti_page_bytes(void);
/* The same from a copy of /proc and /sys under root ("" = the system's own). */
GPSTI_INTERN void gpsti_limits_query_under(const char* root, gpsti_limits* out);

/* CPU time so far, of every core together: of this process, and of everything that ran, other machines on the same
   processor included. known: the system counts it, and the process may run on every core that it counts. Steps of 10 ms
   on Linux; opens a file: 50 us. */
typedef struct gpsti_core_use {
    bool known;
    int64_t all_ns, own_ns;
} gpsti_core_use;
GPSTI_INTERN void gpsti_core_use_query_under(const char* root, gpsti_core_use* out);

/* ---- between the os files ---------------------------------------------------------- */
#define GPSTI_OS_CALL_BYTES 0x7ffff000u /* the most Linux moves in one read or write */
#define GPSTI_OS_NS 1000000000          /* in a second */

GPSTI_INTERN const char* gpsti_os_error_text(int code);
/* what "path": text (code), with the result that the code means. */
GPSTI_INTERN gpst_result gpsti_os_fail(const char* what, const char* path, int code);
#if defined(_WIN32)
#define GPSTI_PATH_CHARS 4096 /* of a path, at most */
/* Names are UTF-8 here and UTF-16 there; what Windows makes of 8 bits loses what the code page has no letter for. */
GPSTI_INTERN gpst_result gpsti_wide_path(const char* path, wchar_t out[GPSTI_PATH_CHARS]);
GPSTI_INTERN bool gpsti_utf8_path(const wchar_t* wide, char* out, size_t out_bytes); /* false: it does not fit */
#else
/* The beginning of a small text file, without setting a reason; false when it cannot be read. */
GPSTI_INTERN bool gpsti_read_text(const char* root, const char* path, char* out, size_t out_bytes);
#endif
/* Address space that the process may have, and what is left of it; both UINT64_MAX: as much as there is. */
GPSTI_INTERN uint64_t gpsti_space_bytes(uint64_t* left_bytes);
GPSTI_INTERN void gpsti_limits_cores(gpsti_limits* limits); /* cores_allowed from the other members */

#endif
