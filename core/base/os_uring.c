/* core/base/os_uring.c -- io_uring by raw system calls: a ring, and one large read as
   pieces in flight on it. Owns the ring's mappings, never a file. */
#include "platform_internal.h"

#include "os_direct_internal.h"

#include <string.h>

#if defined(__linux__) && !defined(__ANDROID__)
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own numbers and layouts, the same on every architecture: its header may be missing or old. */
#define GPSTI_URING_SYS_SETUP 425
#define GPSTI_URING_SYS_ENTER 426
#define GPSTI_URING_MAP_RINGS 0
#define GPSTI_URING_MAP_ENTRIES 0x10000000
#define GPSTI_URING_SINGLE_MAP 1u /* features; Linux 5.4 */
#define GPSTI_URING_HAS_READ 8u   /* features; came with the operation READ in Linux 5.6 */
#define GPSTI_URING_READ 22
#define GPSTI_URING_GET_EVENTS 1u

typedef struct gpsti_uring_offsets {
    uint32_t head, tail, mask, entries;
    uint32_t words[4]; /* submissions: flags, dropped, array, 0; completions: overflow, entries, flags, 0 */
    uint64_t user_address;
} gpsti_uring_offsets;

typedef struct gpsti_uring_params {
    uint32_t n_submit, n_done, flags, thread_cpu, thread_idle, features, pool, reserved[3];
    gpsti_uring_offsets submit, done;
} gpsti_uring_params;

typedef struct gpsti_uring_entry {
    uint8_t operation, flags;
    uint16_t priority;
    int32_t descriptor;
    uint64_t offset, address;
    uint32_t bytes, call_flags;
    uint64_t user_data;
    uint64_t unused[3];
} gpsti_uring_entry;

typedef struct gpsti_uring_result {
    uint64_t user_data;
    int32_t result;
    uint32_t flags;
} gpsti_uring_result;

GPSTI_STATIC_ASSERT(sizeof(gpsti_uring_params) == 120, "struct io_uring_params");
GPSTI_STATIC_ASSERT(sizeof(gpsti_uring_entry) == 64, "struct io_uring_sqe");
GPSTI_STATIC_ASSERT(sizeof(gpsti_uring_result) == 16, "struct io_uring_cqe");

/* ---- open and close -------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_uring_refused(int code) {
    char text[32] = "";
    switch (code) {
    case ENOSYS:
        return gpsti_fail(GPST_ERROR_UNSUPPORTED,
                          "this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)");
    case EPERM:
        (void)gpsti_read_text("", "/proc/sys/kernel/io_uring_disabled", text, sizeof text);
        if (text[0] == '1' || text[0] == '2')
            return gpsti_fail(GPST_ERROR_UNSUPPORTED,
                              "kernel.io_uring_disabled=%c forbids it to this process (EPERM)", text[0]);
        return gpsti_fail(GPST_ERROR_UNSUPPORTED,
                          "refused, as the seccomp filters of containers do (EPERM)");
    case ENOMEM:
        return gpsti_fail(GPST_ERROR_UNSUPPORTED,
                          "the ring does not fit in the limit on locked memory: see ulimit -l (ENOMEM)");
    default:
        return gpsti_fail(GPST_ERROR_UNSUPPORTED, "io_uring_setup: %s (%d)", gpsti_os_error_text(code), code);
    }
}

GPSTI_PRIVATE void* gpsti_uring_map(int descriptor, size_t bytes, long offset) {
    void* const map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, (off_t)offset);
    return map == MAP_FAILED ? NULL : map;
}

GPSTI_PRIVATE void gpsti_uring_place(gpsti_uring* ring, const gpsti_uring_params* params) {
    char* const rings = (char*)ring->rings;
    ring->submit_head = (volatile uint32_t*)(void*)(rings + params->submit.head);
    ring->submit_tail = (volatile uint32_t*)(void*)(rings + params->submit.tail);
    ring->submit_mask = *(uint32_t*)(void*)(rings + params->submit.mask);
    ring->submit_array = (uint32_t*)(void*)(rings + params->submit.words[2]);
    ring->done_head = (volatile uint32_t*)(void*)(rings + params->done.head);
    ring->done_tail = (volatile uint32_t*)(void*)(rings + params->done.tail);
    ring->done_mask = *(uint32_t*)(void*)(rings + params->done.mask);
    ring->done_entries = rings + params->done.words[1];
}

GPSTI_INTERN gpst_result gpsti_uring_open(gpsti_uring* ring) {
    const uint32_t needed = GPSTI_URING_SINGLE_MAP | GPSTI_URING_HAS_READ;
    gpsti_uring_params params;
    memset(&params, 0, sizeof params);
    memset(ring, 0, sizeof *ring);
    const long descriptor = syscall(GPSTI_URING_SYS_SETUP, GPSTI_URING_DEPTH, &params); /* close-on-exec */
    if (descriptor < 0)
        return gpsti_uring_refused(errno);
    ring->open = true;
    ring->descriptor = (int)descriptor;
    if ((params.features & needed) != needed) {
        gpsti_uring_close(ring);
        return gpsti_fail(GPST_ERROR_UNSUPPORTED, "this kernel's io_uring is too old: Linux 5.6 or later");
    }
    const size_t submit_bytes = params.submit.words[2] + params.n_submit * sizeof(uint32_t);
    const size_t done_bytes = params.done.words[1] + params.n_done * sizeof(gpsti_uring_result);
    ring->rings_bytes = submit_bytes > done_bytes ? submit_bytes : done_bytes;
    ring->entries_bytes = params.n_submit * sizeof(gpsti_uring_entry);
    ring->rings = gpsti_uring_map(ring->descriptor, ring->rings_bytes, GPSTI_URING_MAP_RINGS);
    ring->entries = gpsti_uring_map(ring->descriptor, ring->entries_bytes, GPSTI_URING_MAP_ENTRIES);
    if (!ring->rings || !ring->entries) {
        const int code = errno;
        gpsti_uring_close(ring);
        return gpsti_uring_refused(code);
    }
    gpsti_uring_place(ring, &params);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_uring_close(gpsti_uring* ring) {
    if (!ring->open)
        return;
    if (ring->rings)
        (void)munmap(ring->rings, ring->rings_bytes);
    if (ring->entries)
        (void)munmap(ring->entries, ring->entries_bytes);
    (void)close(ring->descriptor);
    memset(ring, 0, sizeof *ring);
}

/* ---- one read ---------------------------------------------------------------------- */

typedef struct gpsti_uring_job {
    gpsti_uring* ring;
    int descriptor;
    char* data;
    uint64_t offset_bytes;
    size_t next;      /* first byte that no piece has been made for */
    size_t end;       /* what comes whole, as far as is known: trouble of a piece moves it down */
    int code;         /* errno of the piece that ends there; 0 = the file does */
    uint32_t n_queued; /* told to the queue, not yet to the kernel */
    uint32_t n_in_flight;
} gpsti_uring_job;

GPSTI_PRIVATE size_t gpsti_uring_piece_bytes(size_t start, size_t bytes) {
    return bytes - start < GPSTI_URING_PIECE ? bytes - start : GPSTI_URING_PIECE;
}

GPSTI_PRIVATE void gpsti_uring_queue(gpsti_uring_job* job, size_t bytes) {
    gpsti_uring* const ring = job->ring;
    const uint32_t tail = *ring->submit_tail;
    const uint32_t index = tail & ring->submit_mask;
    gpsti_uring_entry* const entry = (gpsti_uring_entry*)ring->entries + index;
    const size_t piece = gpsti_uring_piece_bytes(job->next, bytes);
    memset(entry, 0, sizeof *entry);
    entry->operation = GPSTI_URING_READ;
    entry->descriptor = job->descriptor;
    entry->offset = job->offset_bytes + job->next;
    entry->address = (uint64_t)(uintptr_t)(job->data + job->next);
    entry->bytes = (uint32_t)piece;
    entry->user_data = job->next;
    ring->submit_array[index] = index;
    __atomic_store_n(ring->submit_tail, tail + 1, __ATOMIC_RELEASE);
    job->next += piece;
    job->n_queued++;
}

/* The ring is lost to us: what the kernel has not taken is taken back, what it has ends by itself. */
GPSTI_PRIVATE void gpsti_uring_give_up(gpsti_uring_job* job, int code) {
    gpsti_uring* const ring = job->ring;
    const uint32_t head = __atomic_load_n(ring->submit_head, __ATOMIC_ACQUIRE);
    const uint32_t n_back = *ring->submit_tail - head;
    for (uint32_t i = 0; i < n_back; i++) {
        const gpsti_uring_entry* const entry =
            (const gpsti_uring_entry*)ring->entries + ((head + i) & ring->submit_mask);
        if (entry->user_data < job->end) {
            job->end = (size_t)entry->user_data;
            job->code = code;
        }
    }
    __atomic_store_n(ring->submit_tail, head, __ATOMIC_RELEASE);
    ring->broken = true;
    job->n_queued = 0;
}

/* Hands over what is queued and waits for a completion. */
GPSTI_PRIVATE void gpsti_uring_enter(gpsti_uring_job* job) {
    gpsti_uring* const ring = job->ring;
    if (ring->broken) { /* completions come without our asking */
        gpsti_sleep_ns(100000);
        return;
    }
    const long taken = syscall(GPSTI_URING_SYS_ENTER, ring->descriptor, job->n_queued, 1,
                               GPSTI_URING_GET_EVENTS, (void*)NULL, (size_t)0);
    if (taken >= 0) {
        job->n_queued -= (uint32_t)taken;
        job->n_in_flight += (uint32_t)taken;
    } else if (errno != EINTR && (job->n_in_flight == 0 || (errno != EAGAIN && errno != EBUSY))) {
        gpsti_uring_give_up(job, errno);
    }
}

GPSTI_PRIVATE void gpsti_uring_take(gpsti_uring_job* job, const gpsti_uring_result* completion, size_t bytes) {
    const size_t start = (size_t)completion->user_data;
    const int32_t result =
        job->ring->fault ? job->ring->fault(completion->result) : completion->result;
    const size_t got = result > 0 ? (size_t)result : 0;
    if (got < gpsti_uring_piece_bytes(start, bytes) && start + got < job->end) {
        job->end = start + got;
        job->code = result < 0 ? -result : 0;
    }
    job->n_in_flight--;
}

GPSTI_PRIVATE void gpsti_uring_reap(gpsti_uring_job* job, size_t bytes) {
    gpsti_uring* const ring = job->ring;
    uint32_t head = *ring->done_head;
    const uint32_t tail = __atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE);
    for (; head != tail; head++)
        gpsti_uring_take(job, (const gpsti_uring_result*)ring->done_entries + (head & ring->done_mask),
                         bytes);
    __atomic_store_n(ring->done_head, head, __ATOMIC_RELEASE);
}

GPSTI_INTERN gpst_result gpsti_uring_read(gpsti_uring* ring, const gpsti_file* file, const char* path, void* data,
                                          size_t bytes, uint64_t offset_bytes, size_t* done) {
    gpsti_uring_job job;
    memset(&job, 0, sizeof job);
    *done = 0;
    GPSTI_FAIL_IF(!ring->open || ring->broken, GPST_ERROR_UNSUPPORTED, "read \"%s\": the ring is closed", path);
    job.ring = ring;
    job.descriptor = (int)file->handle;
    job.data = (char*)data;
    job.offset_bytes = offset_bytes;
    job.end = bytes;
    do {
        while (!ring->broken && job.next < job.end && job.n_queued + job.n_in_flight < GPSTI_URING_DEPTH)
            gpsti_uring_queue(&job, bytes);
        if (job.n_queued + job.n_in_flight > 0)
            gpsti_uring_enter(&job);
        gpsti_uring_reap(&job, bytes);
    } while (job.n_queued + job.n_in_flight > 0 || (!ring->broken && job.next < job.end));
    if (job.next < job.end)
        job.end = job.next;
    *done = job.end;
    return job.end == 0 && job.code ? gpsti_os_fail("read by io_uring", path, job.code) : GPST_OK;
}
#else
GPSTI_INTERN gpst_result gpsti_uring_open(gpsti_uring* ring) {
    memset(ring, 0, sizeof *ring);
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "not a thing of this system");
}

GPSTI_INTERN void gpsti_uring_close(gpsti_uring* ring) { (void)ring; }

GPSTI_INTERN gpst_result gpsti_uring_read(gpsti_uring* ring, const gpsti_file* file, const char* path, void* data,
                                          size_t bytes, uint64_t offset_bytes, size_t* done) {
    (void)ring;
    (void)file;
    (void)data;
    (void)bytes;
    (void)offset_bytes;
    *done = 0;
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "read \"%s\": no io_uring on this system", path);
}
#endif
