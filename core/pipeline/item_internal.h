/* core/pipeline/item_internal.h -- one item in flight: its file, its picture sets, its files to write, its device work,
   and what the engine knows of it. */
#ifndef GPSTI_ITEM_INTERNAL_H
#define GPSTI_ITEM_INTERNAL_H

#include "../device/context_internal.h"
#include "../files/reader_internal.h"
#include "../files/writer_internal.h"
#include "codec_internal.h"
#include "pipeline.h"

typedef struct gpsti_item gpsti_item;

#define GPSTI_NOTE_BYTES 248

/* One item, or one part of it, at a step. */
typedef struct gpsti_job {
    gpsti_item* item;
    uint32_t part;
    uint32_t step;
    int64_t ready_ns; /* since when it waits in its step */
    struct gpsti_job* next;
} gpsti_job;

/* One file to write. The slot uses it again. */
typedef struct gpsti_output_file {
    gpsti_write write;
    gpsti_item* item;
    uint32_t part;
    gpst_buffer room;
    size_t asked; /* of the room, by this item */
    char* path;
    size_t path_capacity;
    bool committed;
    struct gpsti_output_file* next;
} gpsti_output_file;

/* One picture's way through per_picture steps and WRITE, or the whole item's. */
typedef struct gpsti_part {
    gpsti_job job;
    gpsti_output_file* files; /* list; the first n_files are in use, the next one holds the open room */
    uint32_t n_files;
    uint32_t writes_pending; /* locked */
} gpsti_part;

/* One picture set of an item. A set is there on the host, on the device, on both, or not yet. */
typedef struct gpsti_set {
    gpst_image* on_host;        /* capacity of them; data NULL where the host has no memory for it */
    gpst_image* on_device;      /* likewise, where kernels read and write it */
    gpst_buffer *host, *device; /* their memory, where it is the slot's own */
    uint32_t n;
    uint32_t writer; /* the stage that has set pictures of it, + 1 */
    bool host_valid, device_valid;
    /* How many of them count, where kernels read and write it, until the host knows: then n is no more. NULL: all. */
    uint32_t* count;
    uint32_t per_count; /* pictures for each that counts; 0: it counts the columns of the one picture, a list */
} gpsti_set;

/* A slot's stream on one device, and the events that time its work. Made when first needed. */
typedef struct gpsti_device_work {
    gpst_device* device;
    bool on_host; /* the device computes in host memory: nothing to copy */
    gpst_stream* stream;
    gpst_event** events; /* n_events of the pipeline */
    uint64_t number;     /* of the latest group, for the pipeline's timing */
    bool timed;          /* it has its events recorded */
    gpst_image* sources; /* of a batch: batch_most pictures, and all that are made of them */
    gpst_image* images;
    uint32_t n_items;  /* in the latest group */
    bool is_short;     /* which found no memory of the device */
    bool copies;       /* which has an upload and a download, each between two events */
    uint32_t n_events; /* made so far */
    int64_t* times_ns; /* when the first n_times of them happened, in the latest group */
    uint32_t n_recorded, n_times;
} gpsti_device_work;

struct gpsti_item {
    gpst_item shown; /* first: a task's item is its slot */
    gpst_pipeline* pipeline;
    gpsti_item *older, *newer; /* of the items in flight of its camera, those before and behind it */
    uint64_t camera_index;     /* of the camera's items, from 0 */
    uint32_t passed;           /* ordered steps before this one have had it */
    uint32_t arrived;          /* the step, + 1, to which it came last */
    bool waits_turn;           /* it is at an ordered step that its older one has not passed; in no queue */
    bool may_drop;             /* it waits in front of a step that has not begun with it */
    bool in_use;               /* between source and end */
    bool started;              /* a stage has touched it */
    bool served;               /* an item ended in it */
    bool samples_cpu;          /* the CPU time of its services is read */
    bool source_failed;        /* or what it gave could not be copied: there is nothing to begin with */
    bool has_frame;            /* set 0 is the source's or submit's own picture, */
    bool frame_on_device;      /* which came in memory of the device, */
    bool borrowed;             /* or is the user's memory until release is called */
    void (*release)(void* user_data);
    void* release_user_data;
    gpst_event* ready;  /* the borrowed frame is there; NULL = it is */
    bool exclusive;     /* it found too little memory beside others: no other item runs with it */
    gpsti_a32 starved;  /* others have the memory that it needs */
    gpsti_a32 failed;   /* item.result is a failure, or SKIPPED: for those who are not locked */
    uint32_t pending;   /* locked: parts that are not through their steps yet, */
    uint32_t n_split;   /* of so many, */
    uint32_t next_part; /* and the first that no thread has taken */
    gpsti_job job;
    char numbered[32]; /* "item N" */
    char* text;        /* name and path */
    size_t text_capacity;
    char stage[32];
    char reason[GPST_REASON_BYTES]; /* of its failure; in a batch function, what gpst_task_fail has said of it */
    /* Why its latest device work failed: as the device reported, then until gpsti_offload_run has logged it. */
    char device_reason[GPST_REASON_BYTES];
    bool in_batch;               /* a batch function has it */
    char note[GPSTI_NOTE_BYTES]; /* item.note */
    bool posed;
    gpst_view pose;         /* if so, of the panorama */
    gpst_metadata metadata; /* item.metadata */
    struct {                /* what the input said of pose and note: an item that begins anew has that alone */
        bool posed;
        gpst_view pose;
        char note[GPSTI_NOTE_BYTES];
    } given;
    const char* encoder; /* the item's, if it ends well */
    gpsti_decode_form decode;
    gpst_placement placement; /* of EITHER and DEVICE, */
    gpst_image jpeg_shape;    /* the planes, */
    size_t jpeg_first;        /* where the first segment is that is no APPn or comment, */
    uint8_t jpeg_kept[2];     /* and what was before it */
    gpst_buffer file;
    gpst_buffer counts_on_host, counts_on_device; /* a word a set, made for the first DEVICE stage that counts */
    gpsti_set* sets;                              /* n_sets of the pipeline */
    gpst_set* views;                              /* what item.sets points to */
    gpsti_part* parts;                            /* n_parts of the pipeline */
    gpst_read read;
    gpsti_a64 host_bytes;                   /* frame memory of this slot, against max_item_bytes; */
    gpsti_a64 charged_bytes;                /* and what was taken for it */
    int64_t read_setup_ns;                  /* making its memory, for its latest read */
    int64_t commit_start_ns, commit_end_ns; /* when its files got their names; 0, 0 = it has none */

    bool plain;       /* its device work is waited for */
    gpsti_exec exec;  /* how this item's kernels use the CPU */
    bool on_cpu;      /* this item's device work is done by the cpu backend: works[1] */
    bool device_done; /* locked: the device has reported device_result; its sentence is in device_reason */
    gpst_result device_result;
    int64_t device_wait_ns;     /* from runnable to submitted */
    int64_t batch_ns;           /* its batch, of which it is the first, began then */
    bool waits_memory;          /* locked: parked until the device may have memory for it */
    bool single;                /* a batch with it failed: it is submitted by itself */
    gpsti_item* next_in_batch;  /* the next item of its batch; the first item's stream and events are all of theirs */
    gpsti_device_work works[2]; /* the context's device, and what it falls back to */
    gpsti_device_work* work;    /* in use now; in a batch the first item's */
    bool in_place;              /* its kernel works on host memory: nothing to copy */
    uint32_t uploaded;          /* sets that its latest device work has copied to the device */
    bool state_changed;         /* its latest device work may have changed the state of its camera */
    uint32_t stage_at;          /* of its latest device work, the stage that is put on the stream */
    uint64_t up_bytes, down_bytes; /* that its latest device work copies, or reads and writes over the link */
    gpst_image counted_source;     /* what counted_bytes are of */
    uint64_t counted_bytes;        /* a WARP launch reads and writes */

    gpsti_item* next; /* free list, results list */
};

/* ---- item.c -------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_items_create(gpst_pipeline* pipeline);           /* room for slots_capacity */
GPSTI_INTERN gpst_result gpsti_items_make(gpst_pipeline* pipeline, uint32_t n); /* until there are n of them; locked */
GPSTI_INTERN void gpsti_items_destroy(gpst_pipeline* pipeline);
/* Gives the slot's frame memory back to the pool: the item is over. */
GPSTI_INTERN void gpsti_item_give_back(gpsti_item* item);
GPSTI_INTERN void gpsti_item_reset(gpsti_item* item, uint64_t index, int64_t start_ns);
/* What tells the item from others, even where the source failed: name, path, timestamp, user_data. */
GPSTI_INTERN gpst_result gpsti_item_load_names(gpsti_item* item, const gpst_input* input);
/* Fills a slot that was reset from what the source or submit gave; copies strings, and the frame if it is not lent. */
GPSTI_INTERN gpst_result gpsti_item_load(gpsti_item* item, const gpst_input* input, const char* function);
/* Calls the borrowed frame's release, once: nothing reads it any more. Not locked. */
GPSTI_INTERN void gpsti_item_release_frame(gpsti_item* item);
/* Behind the sentences that item.note has. */
GPSTI_INTERN void gpsti_item_note(gpsti_item* item, const char* text);
/* Its file's, read where it was not yet. */
GPSTI_INTERN const gpst_metadata* gpsti_item_metadata(gpsti_item* item);
/* Pose and note are those that the input came with; and that input is this one. */
GPSTI_INTERN void gpsti_item_begin_notes(gpsti_item* item);
GPSTI_INTERN void gpsti_item_load_notes(gpsti_item* item, const gpst_input* input);
/* Its pose is the item's, its note is one of these. */
GPSTI_INTERN void gpsti_item_placed(gpsti_item* item, const gpst_placement* placement);
/* A shape with tight rows, and its bytes. */
GPSTI_INTERN gpst_result gpsti_item_shape(const gpst_image* shape, const char* function, gpst_image* out,
                                          size_t* bytes);
/* Makes buffer hold `bytes`; the first keep_bytes survive. is_filled: all of them will be written. BUDGET, MEMORY. */
GPSTI_INTERN gpst_result gpsti_item_reserve(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                            bool is_filled);
/* The same with what memory is free: else WOULD_BLOCK. */
GPSTI_INTERN gpst_result gpsti_item_reserve_now(gpsti_item* item, gpst_buffer* buffer, size_t bytes);
/* Memory that is not the item's, for which it waits as for its own. */
GPSTI_INTERN gpst_result gpsti_item_take_memory(gpsti_item* item, size_t bytes, bool is_filled, bool waits,
                                                gpst_buffer* out);
/* A callback's task, and what else it must not lack (placing.c). */
GPSTI_INTERN gpst_result gpsti_task_check(const gpst_task* task, const char* function, const void* pointer,
                                          const char* member);
/* gpst_task_encoded (task.c); or it does not wait: WOULD_BLOCK. */
GPSTI_INTERN gpst_result gpsti_task_encoded(gpsti_item* item, uint32_t part, size_t bytes, bool waits, void** out);
GPSTI_INTERN gpst_result gpsti_item_reserve_text(gpst_pipeline* pipeline, char** text, size_t* capacity, size_t bytes);
/* Host memory for a picture whose shape is known; tight. */
GPSTI_INTERN gpst_result gpsti_item_make_on_host(gpsti_item* item, uint32_t set, uint32_t picture);
/* The set has so many pictures. */
GPSTI_INTERN void gpsti_item_set_n(gpsti_item* item, uint32_t set, uint32_t n);
/* None of them is there any more; their memory stays. */
GPSTI_INTERN void gpsti_item_forget(gpsti_item* item, uint32_t sets);
/* Parts for a WRITE step: 1 and more, up to the last that has files. */
GPSTI_INTERN uint32_t gpsti_item_n_written(const gpsti_item* item);
GPSTI_INTERN uint64_t gpsti_item_bytes(const gpsti_item* item, uint32_t sets); /* of their pictures */
/* An item as it was when it came from the source or submit. Nobody else has it. */
GPSTI_INTERN void gpsti_item_begin_anew(gpsti_item* item);
GPSTI_INTERN void gpsti_item_prepare_read(gpsti_item* item); /* slot->read, but for done */

#endif
