/* core/base/os_direct_internal.h -- ways past the page cache, where the system has
   them: O_DIRECT, what of a file is resident, io_uring. Elsewhere each says that it has none. */
#ifndef GPSTI_OS_DIRECT_INTERNAL_H
#define GPSTI_OS_DIRECT_INTERNAL_H

#include "base_internal.h"

/* What a read past the page cache must keep to; powers of two. */
typedef struct gpsti_direct_rules {
    uint32_t offset_align_bytes; /* of offsets and lengths */
    uint32_t memory_align_bytes; /* of addresses */
} gpsti_direct_rules;

/* Opens the very file that `file` is a second time, past the page cache. UNSUPPORTED and IO with a reason, when the
   path names another file by now, too. */
GPSTI_INTERN gpst_result gpsti_file_open_direct(const gpsti_file* file, const char* path, gpsti_file* out,
                                                gpsti_direct_rules* rules);
/* How many of 100 pages of the range are in memory: 100 also where the system does not tell, as of files that are
   neither the process's own nor writable. At most 4096 pages are looked at. Never touches one. */
GPSTI_INTERN uint32_t gpsti_file_resident_pct(const gpsti_file* file, uint64_t offset_bytes, size_t bytes);

/* ---- io_uring ------------------------------------------------------------------ */

#define GPSTI_URING_DEPTH 8                 /* pieces of one read in flight */
#define GPSTI_URING_PIECE ((size_t)1 << 20) /* bytes of one */

/* One ring, used by one thread at a time. */
typedef struct gpsti_uring {
    bool open;
    bool broken; /* the kernel takes no more: what is in flight is waited for, nothing is added */
    int descriptor;
    void* rings; /* mapped: both queues' heads and tails */
    size_t rings_bytes;
    void* entries; /* mapped: submissions */
    size_t entries_bytes;
    volatile uint32_t* submit_head;
    volatile uint32_t* submit_tail;
    uint32_t* submit_array;
    uint32_t submit_mask;
    volatile uint32_t* done_head;
    volatile uint32_t* done_tail;
    uint32_t done_mask;
    void* done_entries;
    int32_t (*fault)(int32_t result); /* tests put wrong results here; NULL = none */
} gpsti_uring;

/* UNSUPPORTED with the reason: kernel too old, refused by seccomp or sysctl, over the memlock limit. */
GPSTI_INTERN gpst_result gpsti_uring_open(gpsti_uring* ring);
GPSTI_INTERN void gpsti_uring_close(gpsti_uring* ring);
/* Reads in pieces side by side. *done: how much came whole from the beginning; less than bytes when the file ended or
   a piece went wrong, and it fails only when that leaves nothing. Nothing is in flight when it returns. */
GPSTI_INTERN gpst_result gpsti_uring_read(gpsti_uring* ring, const gpsti_file* file, const char* path, void* data,
                                          size_t bytes, uint64_t offset_bytes, size_t* done);

#endif
