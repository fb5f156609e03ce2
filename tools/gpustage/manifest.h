/* tools/gpustage/manifest.h -- the list, under -o, of items that are whole: what --resume skips. */
#ifndef GPST_TOOL_MANIFEST_H
#define GPST_TOOL_MANIFEST_H

#include "inputs.h"

#define MANIFEST_NAME ".gpustage-manifest"

/* A line of the file: an input as it was, and the sizes of what was made of it. */
typedef struct manifest_entry {
    const char* name; /* base name of the input */
    uint64_t bytes;
    int64_t mtime_ns;
    const char* output_bytes; /* "n,n,..." */
    size_t line;
} manifest_entry;

typedef struct manifest {
    char* path;
    bool writable;
    text loaded;             /* the file that was found; entries point into it */
    manifest_entry* entries; /* sorted by name; of equal names the latest line last */
    size_t count;
} manifest;

/* settings: "key=value" lines that say all that the outputs depend on. Reads what is there and makes the file
   ready for new lines; a last line that was torn off by a crash is dropped. With resume, other settings are
   wrong usage. EXIT_DONE or EXIT_USAGE with the sentence printed. */
int manifest_open(manifest* self, const char* directory, const char* settings, bool resume,
                  const char* command);
void manifest_close(manifest* self);

/* Sizes of an item's outputs as the manifest has them for this input as it is now; NULL: not listed. */
const char* manifest_find(const manifest* self, const input* in);
/* Adds a line, by one write. */
void manifest_add(manifest* self, const input* in, const char* output_bytes);

#endif
