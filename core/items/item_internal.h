/* core/items/item_internal.h -- one item: what it is doing, its file, its picture sets, its parts and their files, its
   device work. */
#ifndef GPSTI_ITEM_INTERNAL_H
#define GPSTI_ITEM_INTERNAL_H

#include "../files/reader_internal.h"
#include "../files/writer_internal.h"
#include "../pictures/decode_internal.h"
#include "../workers/scheduler_internal.h"
#include "plan_internal.h"

#define GPSTI_NOTE_BYTES 248

/* ---- what an item is doing ---------------------------------------------------------------- */

/* Each state has its list in the pipeline (gpsti_items), and an item is in one of them. */
typedef enum gpsti_item_state {
    GPSTI_ITEM_FREE = 0, /* no input has it */
    GPSTI_ITEM_LOADS,    /* the source or submit fills it */
    GPSTI_ITEM_RUNS,     /* a thread has it, or threads its parts */
    GPSTI_ITEM_QUEUED,   /* waits for a place in its step, or for company there */
    GPSTI_ITEM_TURN,     /* waits for the older item of its camera */
    GPSTI_ITEM_MEMORY,   /* waits for a grant */
    GPSTI_ITEM_FILE,     /* waits for its file */
    GPSTI_ITEM_DEVICE,   /* waits for the device */
    GPSTI_ITEM_WRITER,   /* waits until its files are written */
    GPSTI_ITEM_RESULT,   /* has ended; nobody has taken it yet */
    GPSTI_ITEM_HELD,     /* waits for its user's release */
    GPSTI_ITEM_DROPPED,  /* has ended; desc.dropped has not been told yet */
    GPSTI_ITEM_STATES
} gpsti_item_state;

/* Who has an item from the call of its sink until its end: it may be released before it has ended. */
typedef enum gpsti_keeping {
    GPSTI_NOT_KEPT = 0,
    GPSTI_IN_SINK,  /* the sink has it, or keeps it */
    GPSTI_RELEASED, /* it was released; the stream that was named may be on its way still */
    GPSTI_IS_BACK   /* nobody but the thread that ends it, which gives it back */
} gpsti_keeping;

typedef struct gpsti_item_list {
    gpsti_item *first, *last;
    uint32_t n;
} gpsti_item_list;

/* ---- batches ------------------------------------------------------------------------------- */

/* What a step is run on: an item, one picture of an item that is split, or several items that go together. Each item
   and each part has one of its own; of items that go together it is the first one's. */
struct gpsti_batch {
    gpsti_item* item;   /* the first, */
    uint32_t n;         /* of so many, */
    gpsti_item** items; /* these */
    uint32_t part;      /* of an item that is split, its picture */
    uint32_t step;
    bool entered;       /* it has a place in its step */
    bool on_device;     /* it counts among those on the device */
    bool returned;      /* what it was parked for has come; locked */
    gpst_result result; /* that came; an item's own sentence of it is in item->device_reason */
    int64_t ready_ns;   /* since when it waits; 0 = it came without a wait */
    int64_t begin_ns;   /* when it was formed */
    gpsti_batch* next;  /* in its step's queue */
};

/* What running a step made of a batch. */
typedef enum gpsti_outcome {
    GPSTI_DONE = 0,  /* each item has passed the step, has failed, or stays in it (item->stays) */
    GPSTI_PARKED,    /* others have the batch, and return it: it is touched no more */
    GPSTI_AGAIN,     /* once more: each alone, or with the sets or the memory that an item says (lacks, wants) */
    GPSTI_OTHER_FORM /* once more, by the cores */
} gpsti_outcome;

/* ---- parts and files ------------------------------------------------------------------------ */

/* One file to write. The item's next input uses it again. */
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
    gpsti_batch batch;
    gpsti_output_file* files; /* list; the first n_files are in use, the next one holds the open room */
    uint32_t n_files;
    uint32_t writes_pending; /* locked */
} gpsti_part;

/* ---- sets -------------------------------------------------------------------------------------- */

/* Where a set is: a bit for the host, and one for each device. */
#define GPSTI_ON_HOST 1u
#define GPSTI_ON_DEVICE(device) (2u << (device))

typedef struct gpsti_set {
    gpst_image* on_host;        /* capacity of them; data NULL where the host has no memory for it */
    gpst_image* on_device;      /* likewise, where kernels read and write it */
    gpst_buffer *host, *device; /* their memory, where it is the item's own */
    uint32_t n;
    uint32_t writer; /* the stage that has set pictures of it, + 1 */
    uint32_t valid;  /* where it is */
    /* How many of them count, where kernels read and write it, until the host knows: then n is no more. NULL: all. */
    uint32_t* count;
    uint32_t per_count; /* pictures for each that counts; 0: it counts the columns of the one picture, a list */
} gpsti_set;

/* An item's stream on one device, and the events that time its work. Made when first needed. */
typedef struct gpsti_device_work {
    gpst_device* device;
    bool on_host; /* the device computes in host memory: nothing to copy */
    gpst_stream* stream;
    gpst_event** events; /* n_events of the plan */
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

/* Who decodes an item's file. */
typedef enum gpsti_decode_form {
    GPSTI_DECODE_UNSEEN = 0, /* nobody has looked at the file */
    GPSTI_DECODE_CORES,
    GPSTI_DECODE_EITHER, /* whoever is first: it queues */
    GPSTI_DECODE_DEVICE
} gpsti_decode_form;

/* What came with an input. */
typedef struct gpsti_given {
    bool has_frame;       /* set 0 is the input's own picture, */
    bool frame_on_device; /* which came in memory of the device, */
    bool borrowed;        /* or is the user's memory until release is called */
    void (*release)(void* user_data);
    void* release_user_data;
    gpst_event* ready;      /* the borrowed frame is there; NULL = it is */
    bool failed;            /* the source failed, or what it gave could not be copied: there is nothing to begin with */
    bool handed_out;        /* no input: a stage's end has made it, and cannot again */
    int64_t until_ns;       /* the copy of its frame may wait for memory */
    uint64_t charged_bytes; /* of the budget, by the borrowed frame */
    bool posed;
    gpst_view pose;
    char note[GPSTI_NOTE_BYTES];
} gpsti_given;

/* Bytes of the two memories of a context. */
typedef enum gpsti_memory_of { GPSTI_OF_HOST = 0, GPSTI_OF_DEVICE = 1, GPSTI_MEMORIES = 2 } gpsti_memory_of;

typedef enum gpsti_answer {
    GPSTI_ANSWER_NONE = 0,
    GPSTI_ANSWER_GOES,   /* it has been granted what it wants */
    GPSTI_ANSWER_YIELDS, /* it begins anew, since others need what it has */
    GPSTI_ANSWER_DENIED  /* there is no more */
} gpsti_answer;

/* Who waits for memory: an item that is parked, or a thread inside of a call. Locked; grant.c's. */
typedef struct gpsti_waiter {
    gpsti_item* item;
    uint64_t bytes[GPSTI_MEMORIES]; /* so many more; of a parked item in all: others may take what it has */
    bool is_parked, is_call;        /* an item; a thread that has a place in its pipeline; neither: another thread */
    bool is_load;                   /* what came with the input is being copied */
    int64_t until_ns;               /* it waits */
    bool has_yielded;               /* it begins anew for the sake of older ones */
    gpsti_answer answer;
    struct gpsti_waiter* next; /* by age */
} gpsti_waiter;

struct gpsti_item {
    gpst_item shown; /* first: what users see; a task's item is it */
    gpst_pipeline* pipeline;
    gpsti_item_state state; /* and its list: locked */
    gpsti_item *next, *previous;

    gpsti_item *older, *newer; /* of the items in flight of its camera, those before and behind it */
    uint64_t camera_index;     /* of the camera's items, from 0 */
    uint32_t passed;           /* ordered steps before this one have had it */
    uint32_t arrived;          /* the step, + 1, to which it came last */
    uint32_t done;             /* steps that it has passed, as bits */
    bool may_drop;             /* it waits in front of a step that has not begun with it */
    bool served;               /* an item ended in it */
    bool samples_cpu;          /* the CPU time of its services is read */
    gpsti_given given;
    gpsti_a32 failed;  /* shown.result is a failure, or SKIPPED: for those who are not locked */
    gpsti_a32 keeping; /* a gpsti_keeping */

    uint32_t pending;   /* locked: parts that are not through their steps yet, */
    uint32_t n_split;   /* of so many, */
    uint32_t next_part; /* and the first that no thread has taken */
    gpsti_batch batch;
    gpsti_item** room;              /* for those that go together with it; NULL where none may */
    bool stays;                     /* after its batch's latest run: it has not passed the step */
    bool single;                    /* a batch with it failed: it goes alone */
    uint32_t lacks;                 /* AGAIN: sets that must be made again first */
    uint64_t wants[GPSTI_MEMORIES]; /* AGAIN: bytes that it must have in all, by its grant, first */

    char numbered[32]; /* "item N" */
    char* text;        /* name and path */
    size_t text_capacity;
    char stage[32];
    char reason[GPST_REASON_BYTES];        /* of its failure; in a batch function, what gpst_task_fail has said of it */
    char device_reason[GPST_REASON_BYTES]; /* why its latest device work failed, until it is logged */
    bool in_batch;                         /* a batch function has it */
    char note[GPSTI_NOTE_BYTES];           /* shown.note */
    bool posed;
    gpst_metadata metadata; /* shown.metadata */
    gpst_view pose;         /* if so, of the panorama */
    const char* encoder;    /* the item's, if it ends well */

    gpsti_decode_form decode;
    gpst_placement placement; /* of EITHER and DEVICE, */
    gpst_image jpeg_shape;    /* the planes, */
    size_t jpeg_first;        /* where the first segment is that is no APPn or comment, */
    uint8_t jpeg_kept[2];     /* and what was before it */

    gpst_buffer file;
    gpst_read read;
    gpst_buffer counts_on_host, counts_on_device; /* a word a set, made for the first DEVICE stage that counts */
    gpsti_set* sets;                              /* n_sets of the plan */
    gpst_set* views;                              /* what shown.sets points to */
    gpsti_part* parts;                            /* n_parts of the plan */
    int64_t commit_start_ns, commit_end_ns;       /* when its files got their names; 0, 0 = it has none */

    uint64_t age;                    /* of the context's items, which came first */
    gpsti_a64 grant[GPSTI_MEMORIES]; /* bytes that are its own to take; written locked */
    gpsti_a64 used[GPSTI_MEMORIES];  /* and that it has taken */
    gpsti_waiter waiter;             /* where it is parked for more */
    gpsti_a64 host_bytes;            /* as they were asked for, against max_item_bytes */
    bool denied;                     /* what it waits for cannot be; locked */
    bool yields;                     /* it fails for the sake of others, and begins anew then */
    bool gave_way;                   /* as the oldest, to younger ones, which its memory let go on */
    bool widened;                    /* its latest shortage of memory was one of its grant alone */

    bool plain;                    /* its device work is waited for */
    gpsti_exec exec;               /* how this item's kernels use the CPU */
    bool on_cpu;                   /* its device work is done by the cores: works[1] */
    int64_t device_wait_ns;        /* from runnable to submitted */
    gpsti_device_work works[2];    /* the context's device, and what it falls back to */
    gpsti_device_work* work;       /* in use now; in a batch the first item's */
    bool in_place;                 /* its kernel works on host memory: nothing to copy */
    uint32_t uploaded;             /* sets that its latest device work has copied to the device */
    uint32_t moved;                /* sets that are being brought there, outside of device work */
    bool state_changed;            /* its latest device work may have changed the state of its camera */
    uint32_t stage_at;             /* of its latest device work, the stage that is put on the stream */
    uint64_t up_bytes, down_bytes; /* that its latest device work copies, or reads and writes over the link */
    gpst_image counted_source;     /* what counted_bytes are of */
    uint64_t counted_bytes;        /* a WARP launch reads and writes */
};

/* ---- item.c ------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_item_create(gpst_pipeline* pipeline, gpsti_item** out);
GPSTI_INTERN void gpsti_item_destroy(gpsti_item* item); /* NULL: nothing */
/* Ready for an input. */
GPSTI_INTERN void gpsti_item_reset(gpsti_item* item, uint64_t index, int64_t start_ns);
/* What tells the item from others, even where the source failed: name, path, timestamp, user_data. */
GPSTI_INTERN gpst_result gpsti_item_load_names(gpsti_item* item, const gpst_input* input);
/* Fills an item that was reset from what the source or submit gave; copies strings, and the frame if it is not lent. */
GPSTI_INTERN gpst_result gpsti_item_load(gpsti_item* item, const gpst_input* input, const char* function);
/* Calls the borrowed frame's release, once: nothing reads it any more. Not locked. */
GPSTI_INTERN void gpsti_item_release_frame(gpsti_item* item);
/* Keeps the item's first failure, or that it is skipped. Locked, or no other thread has the item. */
GPSTI_INTERN void gpsti_item_fail(gpsti_item* item, gpst_result result, const char* stage, const char* reason);
GPSTI_INTERN bool gpsti_item_has_failed(const gpsti_item* item); /* any thread */
#define GPSTI_ENDS_ITEM(result) (GPST_FAILED(result) || (result) == GPST_SKIPPED || (result) == GPST_DROPPED)
/* Behind the sentences that shown.note has. */
GPSTI_INTERN void gpsti_item_note(gpsti_item* item, const char* text);
/* Its pose is the item's, its note is one of these. */
GPSTI_INTERN void gpsti_item_placed(gpsti_item* item, const gpst_placement* placement);
GPSTI_INTERN gpst_result gpsti_item_reserve_text(gpst_pipeline* pipeline, char** text, size_t* capacity, size_t bytes);
/* Parts for a WRITE step: 1 and more, up to the last that has files. */
GPSTI_INTERN uint32_t gpsti_item_n_written(const gpsti_item* item);
GPSTI_INTERN void gpsti_item_prepare_read(gpsti_item* item); /* item->read, but for done */
/* The step behind `from` that the item goes to: a failed one calls no stage any more, but takes its turn in ordered
   steps; what it has done already is not done again. */
GPSTI_INTERN uint32_t gpsti_item_next_step(const gpsti_item* item, uint32_t from);
/* What sets lack, in front of that step, is made again by the steps that made it. Gives the first of them; where one is
   not repeatable the item has failed LOST. */
GPSTI_INTERN uint32_t gpsti_item_rewind(gpsti_item* item, uint32_t step, uint32_t sets);
GPSTI_INTERN void gpsti_item_discard_files(gpsti_item* item); /* none of its files stays */
/* May the item begin anew, because of others? Not where a step that keeps an order has had it, nor without its frame.
   */
GPSTI_INTERN bool gpsti_item_is_repeatable(const gpsti_item* item);
/* Back to what came with the input, without memory but for the frame. */
GPSTI_INTERN void gpsti_item_begin_anew(gpsti_item* item);

/* ---- set.c -------------------------------------------------------------------------------- */

/* A shape with tight rows, and its bytes. */
GPSTI_INTERN gpst_result gpsti_set_shape(const gpst_image* shape, const char* function, gpst_image* out, size_t* bytes);
/* Host memory for a picture whose shape is known; tight. */
GPSTI_INTERN gpst_result gpsti_set_make_on_host(gpsti_item* item, uint32_t set, uint32_t picture);
/* Memory of the device for a picture whose shape is known. */
GPSTI_INTERN gpst_result gpsti_set_make_on_device(gpsti_item* item, uint32_t set, uint32_t picture);
GPSTI_INTERN void gpsti_set_resize(gpsti_item* item, uint32_t set, uint32_t n); /* it has so many pictures */
/* None of them is there any more; their memory stays. */
GPSTI_INTERN void gpsti_sets_forget(gpsti_item* item, uint32_t sets);
GPSTI_INTERN bool gpsti_set_is_at(const gpsti_item* item, uint32_t set, uint32_t where);
GPSTI_INTERN uint64_t gpsti_sets_bytes(const gpsti_item* item, uint32_t sets); /* of their pictures */
/* Finds where kernels will have the pictures of sets, whose shapes are known. */
GPSTI_INTERN gpst_result gpsti_sets_place(gpsti_item* item, uint32_t sets);
/* Puts copies on the stream of the item's work in progress. */
GPSTI_INTERN gpst_result gpsti_set_copy_up(gpsti_item* item, uint32_t set, uint64_t* copied);
GPSTI_INTERN gpst_result gpsti_set_copy_down(gpsti_item* item, uint32_t set, uint64_t* copied);
/* Copies sets that only the device has to the host, or the other way, and waits. */
GPSTI_INTERN gpst_result gpsti_sets_fetch(gpsti_item* item, uint32_t sets);
GPSTI_INTERN gpst_result gpsti_sets_bring(gpsti_item* item, uint32_t sets);
/* Makes the word that counts the set where the work in progress computes, and puts its being 0 on the stream. */
GPSTI_INTERN gpst_result gpsti_set_make_count(gpsti_item* item, uint32_t set);
/* Sets that the host has, with all that was put on the stream for it, have as many pictures as count. */
GPSTI_INTERN void gpsti_sets_take_counts(gpsti_item* item, uint32_t sets);
/* Stream and events of the item's work, made when first needed. */
GPSTI_INTERN gpst_result gpsti_device_work_prepare(gpsti_item* item, gpsti_device_work* work);
GPSTI_INTERN void gpsti_sets_free_device(gpsti_item* item); /* streams, events and memory of the device */
GPSTI_INTERN gpst_result gpsti_set_create(gpsti_item* item, uint32_t set);
GPSTI_INTERN void gpsti_set_destroy(gpsti_item* item, uint32_t set);

/* Sets that a thread may use which waits for memory inside of a call: theirs on the device nobody takes. */
GPSTI_INTERN uint32_t gpsti_sets_in_call(const gpsti_item* item);
/* Bytes of the device that the item has and needs from that step on: gpsti_sets_take_unneeded takes all others. */
GPSTI_INTERN uint64_t gpsti_sets_needed_bytes(const gpsti_item* item, uint32_t from);

#define GPSTI_PIECES 64

/* Memory of the device on its way back. */
typedef struct gpsti_pieces {
    uint32_t n;
    gpst_buffer memory[GPSTI_PIECES];
} gpsti_pieces;

/* Takes the device memory that an item needs no more from that step on, but for that of sets in `keep`, as far as out
   has room. True: there was some. Of an item that no thread has: locked. The caller gives it back when it is not: a
   driver that frees may wait for notifications. */
GPSTI_INTERN bool gpsti_sets_take_unneeded(gpsti_item* item, uint32_t from, uint32_t keep, gpsti_pieces* out);

#endif
