/* core/closer_internal.h -- files that were replaced, closed by threads of their
   own: freeing what they held may wait for the disk, and nobody needs the result. */
#ifndef GPSTI_CLOSER_INTERNAL_H
#define GPSTI_CLOSER_INTERNAL_H

#include "io_internal.h"

#define GPSTI_CLOSER_FILES 16 /* held at once at most: as much of the disk stays taken */

typedef struct gpsti_closing {
    gpsti_file file;
    void* next; /* io's, or the next free one */
} gpsti_closing;

typedef struct gpsti_closer {
    gpsti_mutex mutex; /* over all below but io */
    const gpsti_pin* pin;
    bool started, cannot_start; /* its threads: with the first file */
    gpsti_closing* free;
    gpsti_closing files[GPSTI_CLOSER_FILES];
    gpsti_io io;
} gpsti_closer;

GPSTI_INTERN gpst_result gpsti_closer_init(gpsti_closer* closer, const gpsti_pin* pin);
/* Waits until all are closed. */
GPSTI_INTERN void gpsti_closer_term(gpsti_closer* closer);
/* Takes the file. While as many are held as may be it is closed before this returns. */
GPSTI_INTERN void gpsti_closer_close(gpsti_closer* closer, gpsti_file* file);
GPSTI_INTERN int64_t gpsti_closer_cpu_ns(gpsti_closer* closer);

#endif
