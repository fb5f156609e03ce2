/* tools/gpustage/inputs.h -- from INPUT arguments to a list of files, each with the stem its outputs are
   named by. */
#ifndef GPST_TOOL_INPUTS_H
#define GPST_TOOL_INPUTS_H

#include "options.h"

typedef struct input {
    char* path;
    char* stem;      /* what its outputs are named by: without its last extension, and below the directory that it was
                        found in: "a", or with --recursive "deeper/a" */
    char* problem;   /* it cannot even be listed: a directory that cannot be opened; else NULL */
    bool skip;       /* --resume: whole already */
    bool done;       /* in this run */
    char* identity;  /* of a regular file: its absolute path, links followed; the next two are known then. Else NULL */
    uint64_t bytes;
    int64_t mtime_ns;
    char* mask;      /* of --mask DIR, with its size and time; NULL: none was found, or there is no DIR */
    uint64_t mask_bytes;
    int64_t mask_mtime_ns;
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
/* Looks file and mask up again: which they are, and size and time as they are now. */
void inputs_refresh(input* self, const options* asked);
/* The names that a mask of this frame may have, in their order: "masks/a.png or ...". text_free. */
text inputs_mask_names(const input* self, const options* asked);

#endif
