/* tools/gpustage/manifest.h -- the list, under -o, of items that are whole: what --resume skips. */
#ifndef GPST_TOOL_MANIFEST_H
#define GPST_TOOL_MANIFEST_H

#include "files.h"
#include "outputs.h"

/* A line of the file: an item that was begun, or an input as it was and the sizes of what was made of it. */
typedef struct manifest_entry {
    const char* tag;  /* of the run */
    const char* stem; /* what the outputs are named by */
    const char* path; /* of the input: absolute, links followed; NULL: begun */
    uint64_t bytes;
    int64_t mtime_ns;
    const char* output_bytes; /* "n,n,..." */
    const char* output_times; /* "n,n,...": when each was changed last, as file_info has it */
    size_t line;
    size_t epoch; /* runs that were alone and began before it */
} manifest_entry;

typedef struct manifest {
    text path;
    const char* tag;
    open_file file;
    bool writable;
    text header;             /* how a list of this run's settings begins */
    bool same;               /* the file that was found does */
    text loaded;             /* that file; entries point into it */
    manifest_entry* entries; /* what is whole, sorted by stem */
    size_t count;
} manifest;

typedef struct manifest_desc {
    const char* directory;
    const char* settings; /* "key=value" lines that say all that the outputs depend on */
    const char* tag;      /* of this run; must live as long as the manifest */
    bool resume;          /* other settings are wrong usage then; else the list begins anew with these */
    bool sync;            /* a new list is on the disk before the first output is made */
    const char* command;
    const char* no_jpeg;  /* why views are no JPEG, where that was not asked for; else NULL */
} manifest_desc;

/* Reads what is there. EXIT_DONE, or an exit status with the sentence printed: a run that cannot keep the list does not
   begin, since an old one would then tell of outputs that are not its own. */
int manifest_open(manifest* self, const manifest_desc* desc);
/* Makes the file ready for new lines; with other settings it begins anew. stale: outputs of other settings (stale.h),
   which it says then. As manifest_open. */
int manifest_start(manifest* self, const manifest_desc* desc, const text_list* stale);
/* After it and before the first item. alone: no other run is at work there; to be looked for after manifest_start, or
   one that began an item in between is taken for dead. As manifest_open. */
int manifest_say_others(manifest* self, bool alone);

/* Ahead of manifest_start, what the file that was found says; false: out of memory, or func says so. Each item that a run
   finished, as its line has it, and what "stale" lines name. The value of a setting: text_free; empty: it has none. */
typedef bool (*manifest_item_func)(void* user_data, const manifest_entry* item);
bool manifest_each_item(const manifest* self, manifest_item_func func, void* user_data);
bool manifest_list_stale(const manifest* self, text_list* out);
text manifest_find_setting(const manifest* self, const char* key);

void manifest_close(manifest* self); /* all-zero: a no-op */

/* Sizes of an item's outputs as the manifest has them for this input as it is now; NULL: not whole. */
const char* manifest_find(const manifest* self, const input* in);
/* From now on what is listed for the item's name counts no more: its outputs are about to change. NULL, or why that
   cannot be written: then they must not change. */
const char* manifest_begin_item(manifest* self, const char* stem);
/* They are whole. decoder, encoder: which codecs made them, for who reads the list. */
void manifest_add(manifest* self, const input* in, const char* output_bytes, const char* output_times,
                  const char* decoder, const char* encoder);
/* The same as manifest_begin_item for a file that becomes an output's of the runs that made the directory's list; without
   a list nothing. */
const char* manifest_withdraw(const char* directory, const char* tag, const char* stem);

#endif
