/* tools/gpustage/inputs.h -- from INPUT arguments to a list of files, each with the stem its outputs are
   named by. */
#ifndef GPST_TOOL_INPUTS_H
#define GPST_TOOL_INPUTS_H

#include "options.h"

typedef struct input {
    char* path;
    char* stem;      /* base name without its last extension */
    char* problem;   /* it cannot even be listed: a directory that cannot be opened; else NULL */
    bool skip;       /* --resume: whole already */
    char* identity;  /* of a regular file: its absolute path, links followed; the next two are known then. Else NULL */
    uint64_t bytes;
    int64_t mtime_ns;
} input;

typedef struct input_list {
    input* items;
    size_t count, capacity;
    bool has_streams; /* some are no regular files: a pipe or a device may never end */
} input_list;

/* Expands the arguments and refuses what makes no sense before any work. EXIT_DONE, or EXIT_USAGE with the
   sentence printed. unique_stems: outputs are named by them. */
int inputs_collect(input_list* self, const options* asked, bool unique_stems);
void inputs_free(input_list* self);
/* Looks the file up again: which it is, and size and time as they are now. */
void inputs_refresh(input* self);

#endif
