/* tools/gpustage/run_lock.h -- which runs are at work in a directory, and what runs that were killed left there.

   A run has .gpustage-TAG.lock there, locked while the run lives: by that its files, .gpustage-TAG-N.tmp, are known to be
   in work or left behind. The command's own temporary files are locked themselves. */
#ifndef GPST_TOOL_RUN_LOCK_H
#define GPST_TOOL_RUN_LOCK_H

#include "files.h"

typedef struct run_lock {
    text path;
    open_file file;
    bool alone; /* no other run was at work there when this one began */
} run_lock;

/* Locks the directory for runs of these settings, and removes what dead runs left. tag: of the process's temporary
   files. EXIT_DONE, or an exit status with the sentence printed: another run with other settings is at work. */
int run_lock_open(run_lock* self, const char* directory, const char* tag, const char* settings);
/* failed: not all went well, so files of its own may be left, as where the directory was not there for a moment: removed.
   All-zero: a no-op. */
void run_lock_close(run_lock* self, bool failed);

/* Is no other run at work there now? Of a disk without locks it says so, too. */
bool run_lock_is_alone(const run_lock* self, const char* directory);

/* Is it still there by its name? False: the directory was moved, emptied or replaced. */
bool run_lock_holds(const run_lock* self);

/* Removes what dead runs left. */
void run_lock_clean(const char* directory);

#endif
