/* core/base/os_posix.c -- threads, clocks and pages by POSIX, with what Linux
   and macOS add. Compiles to nothing on Windows. */
#include "platform_internal.h"

#include "base_internal.h"

#if !defined(_WIN32)
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

/* ---- threads -------------------------------------------------------------------- */

/* Beyond 2^31 s a 32-bit time_t would wrap; nobody waits that long. */
GPSTI_PRIVATE struct timespec gpsti_timespec(int64_t ns) {
    struct timespec time;
    const int64_t seconds = ns < 0 ? 0 : ns / GPSTI_OS_NS;
    time.tv_sec = (time_t)(seconds < INT32_MAX ? seconds : INT32_MAX);
    time.tv_nsec = (long)(ns < 0 ? 0 : ns % GPSTI_OS_NS);
    return time;
}

/* Held for well under a microsecond: who finds one taken does better to try again for a moment than to sleep. */
GPSTI_LINK gpst_result gpsti_mutex_init(gpsti_mutex* mutex) {
#if defined(PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP)
    pthread_mutexattr_t attributes;
    int code = pthread_mutexattr_init(&attributes);
    if (code)
        return gpsti_os_fail("create", "mutex", code);
    code = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    if (!code)
        code = pthread_mutex_init(&mutex->mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
#else
    const int code = pthread_mutex_init(&mutex->mutex, NULL);
#endif
    return code ? gpsti_os_fail("create", "mutex", code) : GPST_OK;
}

GPSTI_LINK void gpsti_mutex_term(gpsti_mutex* mutex) { (void)pthread_mutex_destroy(&mutex->mutex); }
GPSTI_LINK void gpsti_mutex_lock(gpsti_mutex* mutex) { (void)pthread_mutex_lock(&mutex->mutex); }
GPSTI_LINK bool gpsti_mutex_try_lock(gpsti_mutex* mutex) { return pthread_mutex_trylock(&mutex->mutex) == 0; }
GPSTI_LINK void gpsti_mutex_unlock(gpsti_mutex* mutex) { (void)pthread_mutex_unlock(&mutex->mutex); }

GPSTI_LINK gpst_result gpsti_cond_init(gpsti_cond* cond) {
#if defined(__APPLE__) /* has no clock attribute; waits are relative there */
    const int code = pthread_cond_init(&cond->cond, NULL);
#else
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (!code) {
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        code = pthread_cond_init(&cond->cond, &attributes);
        (void)pthread_condattr_destroy(&attributes);
    }
#endif
    return code ? gpsti_os_fail("create", "condition variable", code) : GPST_OK;
}

GPSTI_LINK void gpsti_cond_term(gpsti_cond* cond) { (void)pthread_cond_destroy(&cond->cond); }

GPSTI_LINK bool gpsti_cond_wait_until(gpsti_cond* cond, gpsti_mutex* mutex, int64_t deadline_ns) {
    if (deadline_ns == GPST_FOREVER) {
        (void)pthread_cond_wait(&cond->cond, &mutex->mutex);
        return true;
    }
#if defined(__APPLE__)
    const struct timespec time = gpsti_timespec(deadline_ns - gpsti_now_ns());
    return pthread_cond_timedwait_relative_np(&cond->cond, &mutex->mutex, &time) != ETIMEDOUT;
#else
    const struct timespec time = gpsti_timespec(deadline_ns);
    return pthread_cond_timedwait(&cond->cond, &mutex->mutex, &time) != ETIMEDOUT;
#endif
}

GPSTI_LINK void gpsti_cond_signal(gpsti_cond* cond) { (void)pthread_cond_signal(&cond->cond); }
GPSTI_LINK void gpsti_cond_broadcast(gpsti_cond* cond) { (void)pthread_cond_broadcast(&cond->cond); }

static GPSTI_TLS bool gpsti_thread_own = false;

GPSTI_LINK bool gpsti_thread_is_own(void) { return gpsti_thread_own; }

GPSTI_PRIVATE void* gpsti_thread_main(void* arg) {
    gpsti_thread* thread = (gpsti_thread*)arg;
    gpsti_thread_own = true;
#if defined(__linux__)
    (void)pthread_setname_np(pthread_self(), thread->name);
#elif defined(__APPLE__)
    (void)pthread_setname_np(thread->name);
#endif
    thread->func(thread->arg);
    return NULL;
}

GPSTI_PRIVATE void gpsti_thread_signals(sigset_t* set) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    (void)sigfillset(set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        (void)sigdelset(set, own[i]);
}

/* At least: musl's default, and that of a small stack's limit, are too small for image decoders. */
#define GPSTI_STACK_LEAST_BYTES ((size_t)1 << 20)
#define GPSTI_STACK_SHARE 256 /* of a limited address space, at most, for each thread */
/* Where glibc allocates for a thread: address space alone. */
#if defined(__GLIBC__)
#define GPSTI_THREAD_HEAP_BYTES ((size_t)(sizeof(void*) > 4 ? 64 : 1) << 20)
#else
#define GPSTI_THREAD_HEAP_BYTES ((size_t)0)
#endif

GPSTI_PRIVATE size_t gpsti_thread_stack_bytes(const pthread_attr_t* attributes) {
    size_t bytes = 0;
    uint64_t left_bytes = 0;
    const uint64_t most_bytes = gpsti_space_bytes(&left_bytes) / GPSTI_STACK_SHARE;
    (void)pthread_attr_getstacksize(attributes, &bytes);
    if (bytes > most_bytes)
        bytes = (size_t)most_bytes / gpsti_page_bytes() * gpsti_page_bytes();
    return bytes > GPSTI_STACK_LEAST_BYTES ? bytes : GPSTI_STACK_LEAST_BYTES;
}

GPSTI_INTERN uint32_t gpsti_threads_fit(uint32_t n) {
    pthread_attr_t attributes;
    uint64_t left_bytes = 0;
    if (gpsti_space_bytes(&left_bytes) == UINT64_MAX || pthread_attr_init(&attributes))
        return n;
    const uint64_t most = left_bytes / 2 / (gpsti_thread_stack_bytes(&attributes) + GPSTI_THREAD_HEAP_BYTES);
    (void)pthread_attr_destroy(&attributes);
    return n < most ? n : (uint32_t)most;
}

GPSTI_LINK gpst_result gpsti_thread_start(gpsti_thread* thread, void (*func)(void*), void* arg,
                                            const char* name) {
    pthread_attr_t attributes;
    sigset_t blocked, before;
    thread->func = func;
    thread->arg = arg;
    gpsti_copy_text(thread->name, sizeof thread->name, name);
    int code = pthread_attr_init(&attributes);
    if (!code) {
        (void)pthread_attr_setstacksize(&attributes, gpsti_thread_stack_bytes(&attributes));
        gpsti_thread_signals(&blocked);
        (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
        code = pthread_create(&thread->thread, &attributes, gpsti_thread_main, thread);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    return code ? gpsti_os_fail("start thread", name, code) : GPST_OK;
}

GPSTI_LINK void gpsti_thread_join(gpsti_thread* thread) { (void)pthread_join(thread->thread, NULL); }

/* ---- trial ---------------------------------------------------------------------------- */

/* Address space left to who is to make the threads: it has notes to keep, and of each some. Of a limited one half of
   what is left stays with who is to work there. */
#define GPSTI_TRIAL_SPARE_BYTES ((size_t)2 << 20)
#define GPSTI_TRIAL_EACH_BYTES ((size_t)256 << 10)
/* Stacks are a little larger than wanted: glibc keeps 40 MiB of stacks that are free for others that fit, and LLVM's
   runtime wants some bytes more for each of its threads. */
#define GPSTI_TRIAL_STACK_BYTES ((size_t)64 << 10)
#define GPSTI_TRIAL_END_NS ((int64_t)100 * 1000000)

typedef struct gpsti_trial {
    pthread_t thread;
    gpsti_a32* leave;
    gpsti_a32 system_id;
} gpsti_trial;

GPSTI_PRIVATE void* gpsti_trial_main(void* arg) {
    gpsti_trial* const self = (gpsti_trial*)arg;
#if defined(__linux__)
    gpsti_a32_store(&self->system_id, (uint32_t)syscall(SYS_gettid));
#endif
    while (gpsti_a32_load(self->leave) == 0)
        gpsti_futex_wait(self->leave, 0, GPST_FOREVER);
    return NULL;
}

/* A joined thread counts against the system's limits until it has no number any more. */
GPSTI_PRIVATE void gpsti_trial_end(gpsti_trial* self) {
    (void)pthread_join(self->thread, NULL);
#if defined(__linux__)
    const int64_t until_ns = gpsti_now_ns() + GPSTI_TRIAL_END_NS;
    while (!syscall(SYS_tgkill, (long)getpid(), (long)gpsti_a32_load(&self->system_id), 0L) &&
           gpsti_now_ns() < until_ns)
        (void)sched_yield();
#endif
}

GPSTI_PRIVATE uint32_t gpsti_trial_run(gpsti_trial* trials, uint32_t n, const pthread_attr_t* attributes) {
    gpsti_a32 leave = GPST_ZERO;
    sigset_t blocked, before;
    uint32_t made = 0;
    gpsti_thread_signals(&blocked);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    for (; made < n; made++) {
        trials[made].leave = &leave;
        gpsti_a32_store(&trials[made].system_id, 0);
        if (pthread_create(&trials[made].thread, attributes, gpsti_trial_main, &trials[made]))
            break;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    gpsti_a32_store(&leave, 1);
    gpsti_futex_wake(&leave, UINT32_MAX);
    for (uint32_t i = 0; i < made; i++)
        gpsti_trial_end(&trials[i]);
    return made;
}

GPSTI_INTERN uint32_t gpsti_threads_try(uint32_t n, size_t stack_bytes) {
    gpsti_trial* const trials = n ? (gpsti_trial*)gpsti_aligned_alloc(n * sizeof(gpsti_trial), 64) : NULL;
    uint64_t left_bytes = 0;
    const bool limited = gpsti_space_bytes(&left_bytes) != UINT64_MAX;
    const size_t spare_bytes =
        GPSTI_TRIAL_SPARE_BYTES + n * GPSTI_TRIAL_EACH_BYTES + (limited ? (size_t)(left_bytes / 2) : 0);
    void* const spare = mmap(NULL, spare_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    uint32_t made = 0;
    if (trials && spare != MAP_FAILED && !pthread_attr_init(&attributes)) {
        if (stack_bytes)
            (void)pthread_attr_setstacksize(&attributes, stack_bytes); /* refused: runtimes keep the default, too */
        if (!pthread_attr_getstacksize(&attributes, &stack_bytes))
            (void)pthread_attr_setstacksize(&attributes, stack_bytes + GPSTI_TRIAL_STACK_BYTES);
        made = gpsti_trial_run(trials, n, &attributes);
        (void)pthread_attr_destroy(&attributes);
    }
    if (spare != MAP_FAILED)
        (void)munmap(spare, spare_bytes);
    gpsti_aligned_free(trials);
    return made;
}

#if defined(__linux__) && !defined(__ANDROID__)
#define GPSTI_CPU_SETS (GPSTI_MAX_CORES / CPU_SETSIZE)

GPSTI_INTERN bool gpsti_cores_query(gpsti_cores* out) {
    cpu_set_t sets[GPSTI_CPU_SETS];
    memset(out, 0, sizeof *out);
    if (sched_getaffinity(0, sizeof sets, sets))
        return false;
    for (uint32_t core = 0; core < GPSTI_MAX_CORES; core++)
        if (CPU_ISSET_S(core, sizeof sets, sets))
            out->words[core / 64] |= (uint64_t)1 << core % 64;
    return true;
}

GPSTI_INTERN gpst_result gpsti_thread_pin(gpsti_thread* thread, const gpsti_cores* cores) {
    cpu_set_t sets[GPSTI_CPU_SETS];
    memset(sets, 0, sizeof sets);
    for (uint32_t core = 0; core < GPSTI_MAX_CORES; core++)
        if (cores->words[core / 64] >> core % 64 & 1u)
            CPU_SET_S(core, sizeof sets, sets);
    const int code = pthread_setaffinity_np(thread->thread, sizeof sets, sets);
    return code ? gpsti_os_fail("pin thread", thread->name, code) : GPST_OK;
}
#else
GPSTI_INTERN bool gpsti_cores_query(gpsti_cores* out) {
    memset(out, 0, sizeof *out);
    return false;
}

GPSTI_INTERN gpst_result gpsti_thread_pin(gpsti_thread* thread, const gpsti_cores* cores) {
    (void)cores;
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "pin thread \"%s\": not on this system", thread->name);
}
#endif

GPSTI_INTERN void gpsti_yield(void) { (void)sched_yield(); }
GPSTI_INTERN uint64_t gpsti_pid(void) { return (uint64_t)getpid(); }

GPSTI_INTERN uint64_t gpsti_random(void) {
    struct timespec now;
    uint64_t value = 0;
    const int descriptor = open("/dev/urandom", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool got = descriptor >= 0 && read(descriptor, &value, sizeof value) == (ssize_t)sizeof value;
    if (descriptor >= 0)
        (void)close(descriptor);
    if (got)
        return value;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    value = (uint64_t)now.tv_sec * GPSTI_OS_NS + (uint64_t)now.tv_nsec;
    return (value ^ (gpsti_pid() << 32) ^ (uintptr_t)&value) * 0x9E3779B97F4A7C15u;
}

#if defined(__linux__)
#define GPSTI_FUTEX_PRIVATE 128
#define GPSTI_FUTEX_WAKE (1 | GPSTI_FUTEX_PRIVATE)
#define GPSTI_FUTEX_WAIT_BITSET \
    (9 | GPSTI_FUTEX_PRIVATE) /* its deadline is absolute, on the monotonic clock */

/* A 32-bit system with a 64-bit time_t has its own call for that layout of timespec. */
#if defined(SYS_futex_time64) && defined(SYS_futex)
#define GPSTI_SYS_FUTEX (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#elif defined(SYS_futex)
#define GPSTI_SYS_FUTEX SYS_futex
#else
#define GPSTI_SYS_FUTEX SYS_futex_time64
#endif

GPSTI_INTERN void gpsti_futex_wait(gpsti_a32* word, uint32_t expected, int64_t deadline_ns) {
    const struct timespec time = gpsti_timespec(deadline_ns);
    (void)syscall(GPSTI_SYS_FUTEX, &word->value, GPSTI_FUTEX_WAIT_BITSET, expected,
                  deadline_ns == GPST_FOREVER ? (const struct timespec*)NULL : &time, (void*)NULL,
                  UINT32_MAX);
}

GPSTI_INTERN void gpsti_futex_wake(gpsti_a32* word, uint32_t wake_count) {
    const int count = wake_count > INT_MAX ? INT_MAX : (int)wake_count;
    (void)syscall(GPSTI_SYS_FUTEX, &word->value, GPSTI_FUTEX_WAKE, count, (void*)NULL, (void*)NULL, 0);
}
#endif

#if defined(__linux__)
#define GPSTI_MADV_WIPEONFORK 18

GPSTI_INTERN gpsti_a32* gpsti_fork_guard_create(void) {
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void* page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, bytes, GPSTI_MADV_WIPEONFORK)) {
        (void)munmap(page, bytes);
        return NULL;
    }
    gpsti_a32_store((gpsti_a32*)page, 1);
    return (gpsti_a32*)page;
}

GPSTI_INTERN void gpsti_fork_guard_destroy(gpsti_a32* guard) {
    if (guard)
        (void)munmap((void*)guard, (size_t)sysconf(_SC_PAGESIZE));
}
#else
GPSTI_INTERN gpsti_a32* gpsti_fork_guard_create(void) { return NULL; }
GPSTI_INTERN void gpsti_fork_guard_destroy(gpsti_a32* guard) { (void)guard; }
#endif

/* ---- clocks ----------------------------------------------------------------------- */

GPSTI_PRIVATE int64_t gpsti_clock_ns(clockid_t clock) {
    struct timespec time;
    (void)clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * GPSTI_OS_NS + time.tv_nsec;
}

GPSTI_LINK int64_t gpsti_now_ns(void) { return gpsti_clock_ns(CLOCK_MONOTONIC); }
GPSTI_INTERN int64_t gpsti_thread_cpu_ns(void) { return gpsti_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

GPSTI_INTERN bool gpsti_thread_waits(uint64_t* out) {
#if defined(__linux__)
    struct rusage usage;
    const bool known = getrusage(1, &usage) == 0; /* RUSAGE_THREAD, which only GNU names */
    *out = known ? (uint64_t)usage.ru_nvcsw : 0;
    return known;
#else
    *out = 0;
    return false;
#endif
}

GPSTI_LINK void gpsti_sleep_ns(int64_t duration_ns) {
    struct timespec time = gpsti_timespec(duration_ns);
    while (nanosleep(&time, &time) && errno == EINTR) {}
}

/* ---- text and memory ----------------------------------------------------------------- */

GPSTI_INTERN void gpsti_format_list(char* out, size_t out_bytes, const char* format, va_list list) {
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t before = plain ? uselocale(plain) : (locale_t)0;
    if (vsnprintf(out, out_bytes, format, list) < 0 && out_bytes)
        out[0] = 0;
    if (plain) {
        (void)uselocale(before);
        freelocale(plain);
    }
}

GPSTI_INTERN bool gpsti_read_text(const char* root, const char* path, char* out, size_t out_bytes) {
    char whole[1024];
    gpsti_format(whole, sizeof whole, "%s%s", root, path);
    const int descriptor = open(whole, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 0;
    while (descriptor >= 0 && used < out_bytes - 1 &&
           (got = read(descriptor, out + used, out_bytes - 1 - used)) > 0)
        used += (size_t)got;
    if (descriptor >= 0)
        (void)close(descriptor);
    out[used] = 0;
    return used > 0;
}

GPSTI_INTERN void* gpsti_aligned_alloc(size_t bytes, size_t align_bytes) {
    void* ptr = NULL;
    return posix_memalign(&ptr, align_bytes, bytes) ? NULL : ptr;
}

GPSTI_INTERN void gpsti_aligned_free(void* ptr) { free(ptr); }

GPSTI_PRIVATE void* gpsti_pages_map(size_t bytes, int flags) {
    void* ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return ptr == MAP_FAILED ? NULL : ptr;
}

#if defined(__linux__)
#define GPSTI_HUGE_BYTES ((size_t)2 << 20)
#define GPSTI_MAP_HUGE_2MB (21 << 26)
#define GPSTI_MADV_POPULATE_WRITE 23

/* False where the administrator switched them off: madvise would succeed and change nothing. Asked once: the answer
   takes longer than the pages. */
GPSTI_PRIVATE bool gpsti_pages_thp_allowed(void) {
    static gpsti_a32 answer; /* 0 = not known, 1 = no, 2 = yes */
    uint32_t known = gpsti_a32_load(&answer);
    char text[128];
    if (known == 0) {
        const bool read =
            gpsti_read_text("", "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
        known = read && !strstr(text, "[never]") ? 2 : 1;
        gpsti_a32_store(&answer, known);
    }
    return known == 2;
}

/* Populated at once: a cgroup's limit on huge pages would else show as SIGBUS at the first touch. */
GPSTI_PRIVATE void* gpsti_pages_hugetlb(size_t bytes, char* why_not, size_t why_not_bytes) {
    void* ptr = gpsti_pages_map(bytes, MAP_HUGETLB | GPSTI_MAP_HUGE_2MB);
    if (ptr && madvise(ptr, bytes, GPSTI_MADV_POPULATE_WRITE) && errno != EINVAL) {
        const int code = errno;
        (void)munmap(ptr, bytes);
        errno = code;
        ptr = NULL;
    }
    if (!ptr)
        gpsti_format(why_not, why_not_bytes, "hugetlb: %s (%d)", gpsti_os_error_text(errno), errno);
    return ptr;
}

/* Aligned: systems of today do that by themselves, for the others what is cut off at both ends goes back at once. */
GPSTI_PRIVATE char* gpsti_pages_map_aligned(size_t bytes) {
    char* const base = (char*)gpsti_pages_map(bytes, 0);
    if (!base || ((uintptr_t)base & (GPSTI_HUGE_BYTES - 1)) == 0)
        return base;
    (void)munmap(base, bytes);
    char* const wide = (char*)gpsti_pages_map(bytes + GPSTI_HUGE_BYTES, 0);
    if (!wide)
        return NULL;
    const size_t head = (size_t)(-(intptr_t)wide & (intptr_t)(GPSTI_HUGE_BYTES - 1));
    if (head)
        (void)munmap(wide, head);
    (void)munmap(wide + head + bytes, GPSTI_HUGE_BYTES - head);
    return wide + head;
}

GPSTI_PRIVATE void* gpsti_pages_thp(size_t bytes, char* why_not, size_t why_not_bytes) {
    const bool allowed = gpsti_pages_thp_allowed();
    char* const base = allowed ? gpsti_pages_map_aligned(bytes) : NULL;
    int code = errno;
    if (base) {
        if (!madvise(base, bytes, MADV_HUGEPAGE))
            return base;
        code = errno;
        (void)munmap(base, bytes);
    }
    const size_t used = strlen(why_not);
    gpsti_format(why_not + used, why_not_bytes - used, "; THP: %s",
                 allowed ? gpsti_os_error_text(code) : "switched off or not compiled into the kernel");
    return NULL;
}
#endif

#if defined(__linux__)
GPSTI_PRIVATE bool gpsti_pages_fills(size_t bytes, size_t huge_bytes) {
    return huge_bytes != 0 && huge_bytes - bytes <= GPSTI_HUGE_BYTES - GPSTI_PAGES_REST_BYTES;
}
#endif

/* The best pages to be had, or NULL; *mapped_bytes is whole small pages before and what was mapped after. */
GPSTI_PRIVATE void* gpsti_pages_huge(gpsti_pages_want want, size_t* mapped_bytes, gpsti_pages_kind* kind,
                                     char* why_not, size_t why_not_bytes) {
#if defined(__linux__)
    size_t huge_bytes = 0;
    void* ptr = NULL;
    if (gpsti_size_round_up(*mapped_bytes, GPSTI_HUGE_BYTES, &huge_bytes))
        ptr = gpsti_pages_hugetlb(huge_bytes, why_not, why_not_bytes);
    *kind = ptr ? GPSTI_PAGES_HUGETLB : GPSTI_PAGES_THP;
    if (!ptr) {
        if (want != GPSTI_WANT_FILLED || !gpsti_pages_fills(*mapped_bytes, huge_bytes))
            huge_bytes = *mapped_bytes;
        ptr = gpsti_pages_thp(huge_bytes, why_not, why_not_bytes);
    }
    if (ptr)
        *mapped_bytes = huge_bytes;
    return ptr;
#else
    (void)want;
    (void)mapped_bytes;
    (void)kind;
    gpsti_copy_text(why_not, why_not_bytes, "huge pages: not on this system");
    return NULL;
#endif
}

GPSTI_LINK gpst_result gpsti_pages_alloc(size_t bytes, gpsti_pages_want want, void** out, size_t* mapped_bytes,
                                           gpsti_pages_kind* kind, char* why_not) {
    char reason[128] = "";
    size_t mapped = 0;
    GPSTI_FAIL_IF(!bytes || !gpsti_size_round_up(bytes, (size_t)sysconf(_SC_PAGESIZE), &mapped),
                  GPST_ERROR_OVERFLOW, "map memory: bytes=%zu: must be 1..SIZE_MAX/2", bytes);
    void* ptr =
        want != GPSTI_WANT_SMALL ? gpsti_pages_huge(want, &mapped, kind, reason, sizeof reason) : NULL;
    if (!ptr) {
        *kind = GPSTI_PAGES_SMALL;
        ptr = gpsti_pages_map(mapped, 0);
        GPSTI_FAIL_IF(!ptr, GPST_ERROR_MEMORY, "map memory: bytes=%zu: %s (%d)", mapped,
                      gpsti_os_error_text(errno), errno);
    }
    if (why_not)
        gpsti_copy_text(why_not, sizeof reason, reason);
    *out = ptr;
    *mapped_bytes = mapped;
    return GPST_OK;
}

GPSTI_LINK void gpsti_pages_free(void* ptr, size_t mapped_bytes) {
    if (ptr)
        (void)munmap(ptr, mapped_bytes);
}

GPSTI_INTERN void gpsti_pages_touch(void* ptr, size_t bytes, gpsti_pages_kind kind) {
#if defined(__linux__)
    const size_t page_bytes = kind == GPSTI_PAGES_SMALL ? gpsti_page_bytes() : GPSTI_HUGE_BYTES;
    for (size_t at = 0; at < bytes; at += page_bytes)
        (void)__atomic_fetch_or((char*)ptr + at, 0, __ATOMIC_RELAXED); /* a write that changes nothing */
#else
    (void)kind;
    (void)ptr;
    (void)bytes;
#endif
}
#endif
