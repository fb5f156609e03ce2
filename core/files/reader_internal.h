/* core/files/reader_internal.h -- how a way of reading plugs into the reader, and what
   the files of one reader share. */
#ifndef GPSTI_READER_INTERNAL_H
#define GPSTI_READER_INTERNAL_H

#include "../device/context_internal.h"
#include "../base/os_direct_internal.h"
#include "reader.h"

#define GPSTI_READER_RINGS 64 /* bits of rings_taken; a read beyond them does without */
#define GPSTI_READER_LARGE_BYTES ((uint64_t)8 << 20) /* AUTO leaves smaller files to the cache; also its window */
#define GPSTI_READER_SAMPLE_BYTES ((size_t)256 << 10) /* at a window's end, where no read-ahead has come */

/* What the files of one reader share. */
typedef struct gpsti_reader_ways {
    gpsti_mutex mutex; /* over rings_taken and the two reasons */
    uint64_t rings_taken;
    gpsti_uring rings[GPSTI_READER_RINGS]; /* opened at first use */
    char direct_reason[160], ring_reason[160]; /* why one was refused; the latest */
    gpsti_a64 direct_after_bytes; /* AUTO: the page cache's share; 0 = not asked yet */
    gpsti_a64 file_bytes, direct_bytes, ring_bytes, large_files;
} gpsti_reader_ways;

/* A file while it is read. */
typedef struct gpsti_reader_file {
    gpsti_file file;
    const char* path;
    uint64_t bytes; /* when it was opened; 0 for what is no regular file */
    gpsti_reader_ways* ways;
    bool has_direct; /* a second way in, past the cache */
    gpsti_file direct;
    gpsti_direct_rules rules;
    gpsti_uring* ring;     /* borrowed */
    uint64_t window_end;   /* AUTO: so far holds what is known of the cache */
    bool window_is_cold;
} gpsti_reader_file;

/* One way of getting bytes out of an open file. */
typedef struct gpsti_reader_kind_i {
    const char* name;
    /* Both optional, for regular files only; what open cannot have it does without. */
    void (*open)(gpsti_reader_file* file);
    void (*close)(gpsti_reader_file* file);
    /* Some of the bytes of a regular file, at least one unless it ends. */
    gpst_result (*read_at)(gpsti_reader_file* file, void* data, size_t bytes, uint64_t offset_bytes, size_t* done);
} gpsti_reader_kind_i;

/* "pread", "auto", "direct" or "uring"; NULL when there is no such kind. */
GPSTI_INTERN const gpsti_reader_kind_i* gpsti_reader_kind_find(const char* name);
GPSTI_INTERN gpst_result gpsti_reader_ways_init(gpsti_reader_ways* ways);
GPSTI_INTERN void gpsti_reader_ways_term(gpsti_reader_ways* ways);
/* UNSUPPORTED when this process can have no ring. */
GPSTI_INTERN gpst_result gpsti_reader_ways_need_ring(gpsti_reader_ways* ways);
/* "pread, buffered", and why no faster way. */
GPSTI_INTERN void gpsti_reader_ways_tell(gpsti_reader_ways* ways, const char* kind, gpst_reader_info* out);

/* As gpst_reader_create, but the first thread is not started: gpsti_reader_start does, or the first read that is
   submitted. asked: kind, as in gpst_reader_desc. */
GPSTI_INTERN gpst_result gpsti_reader_open(gpst_context* context, const char* asked, uint32_t n_in_flight,
                                           gpst_reader** out);
GPSTI_INTERN gpst_result gpsti_reader_start(gpst_reader* reader); /* again: nothing */
/* A reader of a kind that no name stands for; n_in_flight as in gpst_reader_desc. Starts no thread. */
GPSTI_INTERN gpst_result gpsti_reader_create(gpst_context* context, const gpsti_reader_kind_i* kind,
                                             uint32_t n_in_flight, gpst_reader** out);
/* Where *flag becomes other than 0, reads that wait for their bytes (a FIFO's, a terminal's) end CANCELLED, as after
   gpst_reader_cancel. Before the first read; the flag outlives the reader. */
GPSTI_INTERN void gpsti_reader_set_cancel(gpst_reader* reader, const gpsti_a32* flag);
/* On this thread, and beside the reader's clocks. */
GPSTI_INTERN void gpsti_reader_read_here(gpst_reader* reader, gpst_read* read);
/* The same, where the file's bytes are in memory; false: it would wait, and has not been read. */
GPSTI_INTERN bool gpsti_reader_try(gpst_reader* reader, gpst_read* read);
/* Does the read, which is about to wait, go through the page cache, so that others may be brought there before? */
GPSTI_INTERN bool gpsti_reader_goes_by_cache(gpst_reader* reader, const gpst_read* read);
/* On this thread without a reader, by "pread". */
GPSTI_INTERN void gpsti_reader_read_plain(const gpst_context* context, gpst_read* read, const gpsti_a32* cancel);
GPSTI_INTERN gpsti_reader_ways* gpsti_reader_ways_of(gpst_reader* reader);

#endif
