/* core/files/ahead_internal.h -- files of a list brought into the page cache before they
   are read, by a reader's threads when they have nothing to read. Nothing of it can fail a read. */
#ifndef GPSTI_AHEAD_INTERNAL_H
#define GPSTI_AHEAD_INTERNAL_H

#include "../device/context_internal.h"
#include "prefetch_internal.h"
#include "reader.h"

typedef struct gpsti_ahead gpsti_ahead;

/* paths: n_paths of them, not copied. in_order: they will be asked for as they stand there; else it is foreseen. */
GPSTI_INTERN gpst_result gpsti_ahead_create(gpst_context* context, const char* const* paths, uint64_t n_paths,
                                            bool in_order, gpsti_ahead** out);
GPSTI_INTERN void gpsti_ahead_destroy(gpsti_ahead* ahead); /* nobody is inside gpsti_ahead_run */
/* path was asked for; n_asked: as how many-th of all. Never two calls at once. True: there is work for
   gpsti_ahead_run. */
GPSTI_INTERN bool gpsti_ahead_note(gpsti_ahead* ahead, const char* path, uint64_t n_asked);
/* One piece of a file, on a thread that would rest. False: there is none. */
GPSTI_INTERN bool gpsti_ahead_run(gpsti_ahead* ahead);
/* path is being read from now on. Gives how many of its bytes were brought. */
GPSTI_INTERN uint64_t gpsti_ahead_take(gpsti_ahead* ahead, const char* path);
/* A read has ended; starving: what comes after it had waited for it. */
GPSTI_INTERN void gpsti_ahead_weigh(gpsti_ahead* ahead, bool starving);
/* Nothing more is brought, and with undo what was brought and not read leaves memory again, as if it had never come;
   until the next gpsti_ahead_note. */
GPSTI_INTERN void gpsti_ahead_pause(gpsti_ahead* ahead, bool undo);
/* For good: reads have begun to go past the page cache. */
GPSTI_INTERN void gpsti_ahead_stop(gpsti_ahead* ahead, const char* why);
GPSTI_INTERN void gpsti_ahead_query(gpsti_ahead* ahead, gpst_read_ahead* out);

#endif
