/* core/files/closer_internal.h -- files that were replaced, closed by threads of their
   own: freeing what they held may wait for the disk, and nobody needs the result. */
#ifndef GPSTI_CLOSER_INTERNAL_H
#define GPSTI_CLOSER_INTERNAL_H

#include "io_internal.h"

#define GPSTI_CLOSER_FILES 16 /* held at once at most: as much of the disk stays taken */

typedef struct gpsti_closing {
    gpsti_file file;
    void* next; /* io's, or the next free one */
} gpsti_closing;

/* Told when a file was closed, on the thread that did it, without a lock. */
typedef void (*gpsti_closed_func)(void* user_data, int64_t start_ns, int64_t end_ns, bool waited);

typedef struct gpsti_closer {
    gpsti_closed_func closed; /* and its user_data: set before the first file, or NULL */
    void* user_data;
    gpsti_mutex mutex; /* over all below but io */
    const gpsti_pin* pin;
    bool started, cannot_start; /* its first thread: with the first file */
    bool wide;                  /* the others: once a file waits for another */
    uint32_t n_held;
    gpsti_closing* free;
    gpsti_closing files[GPSTI_CLOSER_FILES];
    gpsti_io io;
} gpsti_closer;

/* On this thread. Did that wait for more than a core? Where nobody can tell, it did. */
GPSTI_INTERN bool gpsti_close_waits(gpsti_file* file);
GPSTI_INTERN gpst_result gpsti_closer_init(gpsti_closer* closer, const gpsti_pin* pin);
/* No file will come any more. Waits for nothing. */
GPSTI_INTERN void gpsti_closer_retire(gpsti_closer* closer);
/* Waits until all are closed. */
GPSTI_INTERN void gpsti_closer_term(gpsti_closer* closer);
/* Takes the file. While as many are held as may be it is closed before this returns, and nobody is told. */
GPSTI_INTERN void gpsti_closer_close(gpsti_closer* closer, gpsti_file* file);
GPSTI_INTERN int64_t gpsti_closer_cpu_ns(gpsti_closer* closer);

#endif
