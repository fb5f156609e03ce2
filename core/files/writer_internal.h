/* core/files/writer_internal.h -- memory into files that are whole or absent: written
   under a temporary name, renamed later by whoever knows that the item is good. */
#ifndef GPSTI_WRITER_INTERNAL_H
#define GPSTI_WRITER_INTERNAL_H

#include "../device/context_internal.h"
#include "target_internal.h"

typedef struct gpsti_writer gpsti_writer;
typedef struct gpsti_write gpsti_write;

/* One file, owned by the caller, alive and in place from submit until `done` was called. */
struct gpsti_write {
    const char* path; /* final name; must live until commit or discard */
    /* NULL, or the file that it is a part of, at offset_bytes: pending then means that the part is there, discard
       makes it zero, and commit is not called. */
    const gpst_target* target;
    uint64_t offset_bytes;
    const void* data;
    size_t bytes;
    bool sync;                        /* fsync before done */
    uint64_t dirty_bytes;             /* so many at most wait in memory for the disk, twice; 0 = as the system does */
    void (*done)(gpsti_write* write); /* on a writer's thread, exactly once */
    void* user_data;
    gpst_result result; /* set before done; failed = the temporary file is gone already */
    bool pending;       /* a temporary file is there: commit or discard it */
    int64_t start_ns, end_ns;
    char reason[GPSTI_REASON_BYTES];
    uint64_t temporary_id; /* the rest is the writer's own */
    bool closes;           /* a job that only closes: */
    gpsti_file replaced;   /* what had the name of a file before */
    void* next;
};

typedef struct gpsti_writer_info {
    uint32_t n_in_flight;
    uint64_t writes, failed, bytes;
    uint64_t computed; /* of writes: waited for nothing but a core; Linux only, else 0 */
    uint64_t service_ns, cpu_ns;
} gpsti_writer_info;

/* Told when what a file replaced was freed, on the thread that did it, without a lock. */
typedef void (*gpsti_closed_func)(void* user_data, int64_t start_ns, int64_t end_ns);

/* n_in_flight: threads, 0 = 2, at most 64; they come with the first that is submitted. */
GPSTI_INTERN gpst_result gpsti_writer_create(gpst_context* context, uint32_t n_in_flight, gpsti_writer** out);
/* The first of them now, so that nothing is submitted where none is to be had. */
GPSTI_INTERN gpst_result gpsti_writer_start(gpsti_writer* writer);
/* Before the first commit: who is told how long the writer's threads took to free what had a name. */
GPSTI_INTERN void gpsti_writer_tell_closed(gpsti_writer* writer, gpsti_closed_func closed, void* user_data);
/* Cancels what is queued, waits for what runs and for every `done`. Not from `done`. */
GPSTI_INTERN void gpsti_writer_destroy(gpsti_writer* writer);
GPSTI_INTERN gpst_result gpsti_writer_submit(gpsti_writer* writer, gpsti_write* write);
/* On this thread; `done` is not called, and no writer's clock counts it. context NULL: no device models a disk. */
GPSTI_INTERN gpst_result gpsti_writer_write_here(const gpst_context* context, gpsti_write* write);
/* Temporary name -> path (replaces). On failure the temporary file is gone, and result and reason are set. What had the
   name is freed by threads of the writer's; NULL, or they have their hands full = before this returns. */
GPSTI_INTERN gpst_result gpsti_write_commit(gpsti_write* write, gpsti_writer* writer);
GPSTI_INTERN void gpsti_write_discard(gpsti_write* write);
/* How many writes may run at once, from now on; on failure the setting stays. */
GPSTI_INTERN gpst_result gpsti_writer_set_in_flight(gpsti_writer* writer, uint32_t n_in_flight);
GPSTI_INTERN void gpsti_writer_query_info(const gpsti_writer* writer, gpsti_writer_info* out);

#endif
