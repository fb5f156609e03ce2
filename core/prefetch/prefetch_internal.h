/* core/prefetch/prefetch_internal.h -- what the files of this folder share: the prefetcher, its entries, and what
   becomes of one. */
#ifndef GPSTI_PREFETCH_INTERNAL_H
#define GPSTI_PREFETCH_INTERNAL_H

#include "../memory/pool_internal.h"
#include "../pictures/decode_internal.h"
#include "prefetch.h"
#include "prefetch_policy_internal.h"

#define GPSTI_PREFETCH_IDLE_CODECS 16
#define GPSTI_PREFETCH_NOTE_BYTES 448 /* a placement's note, and a decoder's */

typedef struct gpsti_prefetch_entry {
    gpst_frame frame; /* first: a frame is its entry */
    gpst_prefetch* prefetch;
    gpst_read read;
    gpst_buffer file;   /* the file's bytes; given back when a picture was made of them somewhere else */
    gpst_buffer pixels; /* the picture, where it does not lie in the file */
    uint64_t claimed_bytes; /* of info.bytes */
    uint32_t n_holders; /* who asked for it and has not released it; a wait is a hold */
    bool loading;
    bool refused; /* foresight found no room, */
    uint64_t refused_at; /* when so many had been asked for */
    bool starved; /* not loaded since others have the context's memory, which may come back */
    bool fetched; /* ahead of being asked for, and not asked for yet */
    int64_t decode_ns;
    gpst_result result;
    char reason[GPSTI_REASON_BYTES];
    char note[GPSTI_PREFETCH_NOTE_BYTES];
    struct gpsti_prefetch_entry* newer; /* all entries, by their last use */
    struct gpsti_prefetch_entry* older;
} gpsti_prefetch_entry;

struct gpst_prefetch {
    gpst_context* context;
    gpst_prefetch_desc desc; /* defaults resolved; paths, schedule and decode are the copies below */
    gpst_decode_desc decode;
    char** paths;
    uint64_t* schedule; /* the desc's, or that of a walk which goes another way than the list */
    uint64_t n_schedule;
    gpst_reader* reader;
    gpst_pool* pool;
    gpsti_memory_cache cache;
    /* Over all below, and the entries. Memory is acquired without it: others may have to give something up for that. */
    gpsti_mutex mutex;
    gpsti_cond changed; /* an entry was loaded, or a decoder's memory came back */
    bool has_mutex, has_changed;
    gpsti_prefetch_entry** entries; /* by index; NULL = not in memory */
    gpsti_prefetch_entry* newest;
    gpsti_prefetch_entry* oldest;
    uint64_t frame_bytes;   /* of the picture made last: what the next file may become */
    uint64_t decoder_bytes; /* that decoders hold side by side */
    gpst_jpeg* codecs[GPSTI_PREFETCH_IDLE_CODECS]; /* n_codecs of them that nobody uses */
    uint32_t n_codecs;
    gpsti_prefetch_policy policy;
    gpst_prefetch_info info;
};

/* ---- prefetch_cache.c: which frames are in memory; with the mutex held ---------------------------- */

/* A new entry, the newest, on its way; NULL: no memory. */
GPSTI_INTERN gpsti_prefetch_entry* gpsti_prefetch_add(gpst_prefetch* prefetch, uint64_t index);
GPSTI_INTERN void gpsti_prefetch_touch(gpsti_prefetch_entry* entry); /* used last */
GPSTI_INTERN void gpsti_prefetch_drop(gpsti_prefetch_entry* entry);
/* Its memory goes back to the pool, and it counts for nothing any more. */
GPSTI_INTERN void gpsti_prefetch_empty(gpsti_prefetch_entry* entry);
/* How many of those that will be asked for next keep their room when this entry wants some: those before it. */
GPSTI_INTERN uint32_t gpsti_prefetch_n_kept(const gpsti_prefetch_entry* entry);
/* What was used longest ago goes, else of what was fetched and is not among the next n_kept that will be asked for what
   will be last. False: there is nothing to give up. */
GPSTI_INTERN bool gpsti_prefetch_drop_one(gpst_prefetch* prefetch, uint32_t n_kept);
/* Until so many bytes more fit. */
GPSTI_INTERN bool gpsti_prefetch_make_room(gpst_prefetch* prefetch, uint64_t bytes, uint32_t n_kept);
/* The entry will have so many bytes, of which max_bytes gets room. False: no room, and nobody asked for it. */
GPSTI_INTERN bool gpsti_prefetch_claim(gpsti_prefetch_entry* entry, uint64_t bytes);

/* ---- prefetch_load.c: a frame of its file; without the mutex -------------------------------------- */

/* Sets the members of its read. */
GPSTI_INTERN void gpsti_prefetch_prepare(gpsti_prefetch_entry* entry);
/* Reads and decodes on this thread. */
GPSTI_INTERN void gpsti_prefetch_load(gpsti_prefetch_entry* entry);

/* ---- prefetch.c ---------------------------------------------------------------------------------- */

/* Sets going what will be asked for. Locked. */
GPSTI_INTERN void gpsti_prefetch_go_ahead(gpst_prefetch* prefetch);
/* As gpst_prefetch_get. position: above 0, the frame is the walk's position-th, from 1. *starved: it failed since
   others have the context's memory, which may come back. */
GPSTI_INTERN gpst_result gpsti_prefetch_get_at(gpst_prefetch* prefetch, uint64_t index, uint64_t position,
                                               const gpst_frame** out, bool* starved);
/* Which frame the walk has at a position, from 0; false: behind its end. */
GPSTI_INTERN bool gpsti_prefetch_walk(const gpst_prefetch* prefetch, uint64_t position, uint64_t* index);
GPSTI_INTERN uint32_t gpsti_prefetch_camera(const gpst_prefetch* prefetch, uint64_t index);

#endif
