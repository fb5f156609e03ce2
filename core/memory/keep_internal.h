/* core/memory/keep_internal.h -- memory that the pipelines of a context gave back, kept for the next: a system takes
   longer to make it, and a driver to lock it, than a short run takes in all. */
#ifndef GPSTI_KEEP_INTERNAL_H
#define GPSTI_KEEP_INTERNAL_H

#include "../../backends/backend.h"

#define GPSTI_KEEP_MOST 128 /* buffers of each kind */

typedef struct gpsti_kept {
    gpsti_device* device; /* whose it is */
    size_t asked_bytes;
    bool want_huge;           /* as it was asked for */
    gpsti_host_memory memory; /* on a device: ptr and bytes alone */
} gpsti_kept;

/* One kind of memory, in the order in which it was given back. */
typedef struct gpsti_shelf {
    bool on_device;
    uint32_t n;
    uint64_t bytes, most_bytes;       /* now; at most */
    const gpsti_a64* in_use;          /* what pipelines have of it, */
    uint64_t budget_bytes;            /* and of how much, both together */
    uint64_t made_bytes;              /* by the system, */
    int64_t made_ns, making_since_ns; /* and how long that took, but for what goes on now, since the last end */
    uint32_t n_making;
    gpsti_kept kept[GPSTI_KEEP_MOST];
} gpsti_shelf;

typedef struct gpsti_keep gpsti_keep;
struct gpsti_keep {
    gpsti_mutex mutex;  /* over all below; not held while a device frees */
    gpsti_cond freed;   /* n_freeing became 0 */
    uint32_t n_freeing; /* buffers on their way back to a device */
    uint64_t n_freed;   /* and of those that were, ever */
    bool lost;          /* the device is: nobody is to find its memory */
    uint32_t n_runs;   /* pipelines that left all of their memory here, since one last did not */
    bool dropped;      /* some of it has been given back since the last one ended */
    gpsti_shelf host, device;
};

GPSTI_INTERN gpst_result gpsti_keep_init(gpsti_keep* keep);
/* Everything back to its devices, what others are just giving back, too. */
GPSTI_INTERN void gpsti_keep_clear(gpsti_keep* keep);
GPSTI_INTERN void gpsti_keep_term(gpsti_keep* keep);

/* New memory, as host_alloc and memory_alloc give it: what is kept makes way, and all of it goes where there is none to
   be had. For those who neither keep nor find any. */
GPSTI_INTERN gpst_result gpsti_keep_make_host(gpsti_keep* keep, gpsti_device* device, size_t bytes, bool want_huge,
                                              gpsti_host_memory* out);
GPSTI_INTERN gpst_result gpsti_keep_make_memory(gpsti_keep* keep, gpsti_device* device, size_t bytes, void** out);

/* The same, or what was kept; *known_ns is about what that took when it was made,
   0 = it has just been made. used_bytes of new memory that is not page-locked are written once: that, too, is what it
   takes to make. */
GPSTI_INTERN gpst_result gpsti_keep_host_alloc(gpsti_keep* keep, gpsti_device* device, size_t bytes, bool want_huge,
                                               size_t used_bytes, gpsti_host_memory* out, int64_t* known_ns);
GPSTI_INTERN void gpsti_keep_host_free(gpsti_keep* keep, gpsti_device* device, size_t asked_bytes, bool want_huge,
                                       gpsti_host_memory* memory);
GPSTI_INTERN gpst_result gpsti_keep_memory_alloc(gpsti_keep* keep, gpsti_device* device, size_t bytes, void** out,
                                                 int64_t* known_ns);
GPSTI_INTERN void gpsti_keep_memory_free(gpsti_keep* keep, gpsti_device* device, void* ptr, size_t bytes);

/* What is kept now. Any thread. */
GPSTI_INTERN void gpsti_keep_query(const gpsti_keep* keep, uint64_t* host_bytes, uint64_t* device_bytes);

/* Has the last pipeline left all of its memory here? */
GPSTI_INTERN bool gpsti_keep_stays(gpsti_keep* keep);
/* Memory of a pipeline went back to its device otherwise. */
GPSTI_INTERN void gpsti_keep_note_dropped(gpsti_keep* keep);
/* The device is lost: from now on nothing stays. */
GPSTI_INTERN void gpsti_keep_lose(gpsti_keep* keep);
/* A pipeline that ran is gone. */
GPSTI_INTERN void gpsti_keep_count_run(gpsti_keep* keep);
/* What a run is to think that memory costs it, which the next ones find: as many of them are expected as there were. */
GPSTI_INTERN int64_t gpsti_keep_share_ns(gpsti_keep* keep, int64_t price_ns);

#endif
