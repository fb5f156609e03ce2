/* core/files/reader.h -- files into memory: many reads in flight, each straight into
   its destination. Owns its threads and open files, never the destination. */
#ifndef GPSTI_READER_H
#define GPSTI_READER_H

#include "../device/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_reader gpst_reader;
typedef struct gpst_read gpst_read;

/* gpst_reader_desc -- what a reader is made of; all-zero is valid

   Ownership    the caller's; read during create only, strings too
   Since 0.1
*/
typedef struct gpst_reader_desc {
    uint32_t start_canary; /* 0 */
    uint32_t n_in_flight;  /* reads at once = threads; 0 = 4; at most 64 */
    /* How bytes are read; NULL = what the environment's GPUSTAGE_IO says, else "auto".
       "pread"   by the page cache
       "direct"  past it (O_DIRECT) as far as block and address alignment allow, the rest by the cache
       "uring"   the same with eight pieces of 1 MiB of a file in flight; where io_uring is refused an error, or, when
                 it is GPUSTAGE_IO that says so, a warning and "auto"
       "auto"    by the cache until this reader has read half of the available memory; from then on windows of
                 8 MiB that are not resident, of files of 8 MiB or more, go past it */
    const char* kind;
    uint32_t end_canary;   /* 0 */
} gpst_reader_desc;

/* gpst_read -- one read, from submission to `done`

   A regular file is read up to where it ends when it is read: one that grows meanwhile is read on, one that
   shrinks below the size it had when opened is TRUNCATED. What has no size (a FIFO, /dev/stdin, files of
   /proc) is read in order until it ends, with growing room from reserve. A range (length_bytes above 0) is
   complete or TRUNCATED. While such a one has no bytes it is waited for, until it is cancelled (Windows: not then).

   Ownership    the caller's; alive and in place from submit until `done` was called; so are path and data
   Since 0.1
*/
struct gpst_read {
    /* set by the caller */
    const char* path;
    uint64_t offset_bytes; /* must be 0 for what is not a regular file */
    uint64_t length_bytes; /* 0 = from offset_bytes to the end, however far that turns out to be */
    void* data;            /* destination; NULL with capacity_bytes 0 when reserve is to provide it */
    size_t capacity_bytes;
    /* Called on the reading thread when capacity_bytes is too small; must set data and capacity_bytes (to
       at least needed_bytes) and keep the first filled_bytes, or fail: then the read fails with that
       result, and with the reason of that thread if it set one. NULL = a larger file is an OVERFLOW. */
    gpst_result (*reserve)(gpst_read* read, size_t needed_bytes, size_t filled_bytes);
    /* Called on a reader's thread, exactly once; may submit this or another read; must not destroy the
       reader. NULL = nobody is told. */
    void (*done)(gpst_read* read);
    void* user_data;
    /* set by the reader before done */
    /* OK | NOT_FOUND | ACCESS | TRUNCATED | OVERFLOW (no room, or the offset too large) | IO (a directory,
       too) | ARGUMENT | CANCELLED | CALLBACK (reserve broke its word) | what reserve returned */
    gpst_result result;
    size_t bytes;             /* read; also what had been read when a read failed */
    int64_t start_ns, end_ns; /* monotonic; both the time of cancelling when it had not begun */
    uint32_t n_calls;         /* system calls that moved bytes */
    char reason[512];         /* "" unless result is an error */
    void* next;               /* the reader's own */
};

/* gpst_reader_info -- what a reader has done since its creation

   Ownership    the caller's; kind is static text
   Since 0.1
*/
typedef struct gpst_reader_info {
    const char* kind;
    uint32_t n_in_flight; /* the setting */
    uint64_t reads;       /* done, failed ones included, cancelled ones not */
    uint64_t failed;
    uint64_t computed;    /* of reads: waited for nothing but a core, as those of resident files; Linux only, else 0 */
    uint64_t bytes, calls;
    uint64_t busy_ns;    /* time with at least one read in flight */
    uint64_t service_ns; /* start to end, summed over the reads */
    uint64_t cpu_ns;     /* of the reader's threads; a thread's part is added when it has nothing to do */
    uint64_t direct_bytes; /* of bytes: past the page cache */
    char path[32];         /* "pread, buffered", "io_uring, 99 % direct", ... */
    char why_not[256];     /* "direct: reason; io_uring: reason" for what was not taken */
} gpst_reader_info;

/* gpst_read_ahead -- files that the system was told of before they were read

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_read_ahead {
    uint64_t advised; /* files */
    char state[64];   /* "on", or "off: no list of files", ... */
} gpst_read_ahead;

/* gpst_reader_create -- start a reader; its threads come with its work

   Parameters   context  (in)   outlives the reader; not NULL
                desc     (in)   NULL = all defaults
                out      (out)  the reader; NULL on failure
                version and desc_bytes of the second form come from the macro
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_FORKED | GPST_ERROR_MEMORY
                | GPST_ERROR_UNSUPPORTED ("uring" where this process can have none: kernel, seccomp, sysctl)
   Ownership    the caller's, until gpst_reader_destroy
   Threads      any
   Blocking     starts one thread, and each of up to n_in_flight when reads wait for it; the only allocation the
                reader ever makes. Where the system gives no more threads, those there are do
   Device       none
   Source       core/files/reader.c       Tests  tests/test_reader.c, tests/test_reader_queue.c       Since 0.1
*/
#define gpst_reader_create(context, desc, out) \
    gpst_reader_create_versioned(GPST_VERSION, sizeof(gpst_reader_desc), (context), (desc), (out))
GPST_API gpst_result gpst_reader_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                  const gpst_reader_desc* desc, gpst_reader** out);

/* gpst_reader_destroy -- end a reader: what is queued ends CANCELLED, what runs goes on to its end, but for what waits
   for a FIFO, a terminal or a device: that is cancelled, too

   Parameters   reader  (in)  NULL does nothing
   Shapes       none
   Returns      nothing; when it returns, every `done` has returned
   Ownership    frees the reader; the reads stay the caller's. In a forked child it does nothing
   Threads      any but those that call `done`; once
   Blocking     until the reads in flight are done
   Device       none
   Source       core/files/reader.c          Tests  tests/test_reader_queue.c          Since 0.1
*/
GPST_API void gpst_reader_destroy(gpst_reader* reader);

/* gpst_reader_submit -- queue a read; reads begin in the order of submission

   Parameters   reader  (in)       not NULL
                read    (in, out)  its first part set; path not NULL
   Shapes       none
   Returns      GPST_OK: `done` will be called | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED
                | GPST_ERROR_CLOSED (gpst_reader_destroy is running): `done` will not be called
   Ownership    read, its path and its data must stay in place until `done` is called
   Threads      any, `done` included
   Blocking     never for input or output; no allocation
   Device       none
   Source       core/files/reader.c       Tests  tests/test_reader.c, tests/test_reader_queue.c       Since 0.1
*/
GPST_API gpst_result gpst_reader_submit(gpst_reader* reader, gpst_read* read);

/* gpst_reader_read_now -- read on the calling thread

   Parameters   reader  (in)       whose kind and counters to use; NULL = "pread", counted nowhere
                read    (in, out)  its first part set; `done` is not called; not NULL
   Shapes       none
   Returns      read->result
   Ownership    nothing is kept
   Threads      any; n_in_flight does not count these reads
   Blocking     until the read is done; no allocation but reserve's
   Device       none
   Source       core/files/reader.c          Tests  tests/test_reader.c          Since 0.1
*/
GPST_API gpst_result gpst_reader_read_now(gpst_reader* reader, gpst_read* read);

/* gpst_reader_cancel -- what is queued ends CANCELLED, soon and on the reader's threads, and so does what waits for a
   FIFO, a terminal or a device, gpst_reader_read_now's with it; what else runs goes on

   Parameters   reader  (in)  NULL does nothing
   Shapes       none
   Returns      nothing
   Ownership    reads stay the reader's until their `done` is called
   Threads      any, `done` included; reads submitted afterwards are not touched
   Blocking     never; no allocation
   Device       none
   Source       core/files/reader.c          Tests  tests/test_reader_queue.c          Since 0.1
*/
GPST_API void gpst_reader_cancel(gpst_reader* reader);

/* gpst_reader_drain -- wait until every read that was submitted is done

   Parameters   reader      (in)  not NULL
                timeout_ns  (in)  0 = not at all, GPST_FOREVER
   Shapes       none
   Returns      GPST_OK: every `done` has returned | GPST_ERROR_WOULD_BLOCK (timeout 0) | GPST_ERROR_TIMEOUT |
                GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED
   Ownership    none; the reader can be used on
   Threads      any but those that call `done`; reads that others submit meanwhile are waited for, too
   Blocking     up to timeout_ns
   Device       none
   Source       core/files/reader.c          Tests  tests/test_reader_queue.c          Since 0.1
*/
GPST_API gpst_result gpst_reader_drain(gpst_reader* reader, int64_t timeout_ns);

/* gpst_reader_set_in_flight -- how many reads may run at once, from now on

   Parameters   reader       (in)  not NULL
                n_in_flight  (in)  1..64; above it reads in flight run to their end, and threads rest
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED
   Ownership    none
   Threads      any
   Blocking     never; threads that are missing start as reads wait for them; no allocation
   Device       none
   Source       core/files/reader.c          Tests  tests/test_reader_queue.c          Since 0.1
*/
GPST_API gpst_result gpst_reader_set_in_flight(gpst_reader* reader, uint32_t n_in_flight);

/* gpst_reader_query_info -- what the reader is set to and has done

   Parameters   reader  (in)   NULL gives all zero
                out     (out)  not NULL
   Shapes       none
   Returns      nothing
   Ownership    none
   Threads      any; a read is counted before its `done` is called
   Blocking     never; no allocation
   Device       none
   Source       core/files/reader.c          Tests  tests/test_reader.c          Since 0.1
*/
GPST_API void gpst_reader_query_info(const gpst_reader* reader, gpst_reader_info* out);

#ifdef __cplusplus
}
#endif
#endif
