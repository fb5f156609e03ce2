/* core/pipeline/codec_internal.h -- what DECODE and ENCODE need: a thread's codec, the device's JPEG engines, and who
   decodes which file. */
#ifndef GPSTI_CODEC_INTERNAL_H
#define GPSTI_CODEC_INTERNAL_H

#include "../pictures/decode_internal.h"
#include "../pictures/jpeg_internal.h"
#include "../pictures/nvjpeg_internal.h"
#include "../tuning/codec_choice_internal.h"
#include "pipeline.h"

struct gpsti_item;
struct gpsti_stage;
struct gpsti_step;

/* What one thread decodes or encodes with, made when first needed. */
typedef struct gpsti_codec {
    gpst_jpeg* jpeg;
    void* scratch; /* a file before its size is known */
    size_t scratch_bytes;
} gpsti_codec;

/* Who decodes an item's file. */
typedef enum gpsti_decode_form {
    GPSTI_DECODE_UNSEEN = 0, /* nobody has looked at the file */
    GPSTI_DECODE_CORES,
    GPSTI_DECODE_EITHER, /* whoever is first: it queues */
    GPSTI_DECODE_DEVICE
} gpsti_decode_form;

/* ---- the device's JPEG engines --------------------------------------------------------- */

#define GPSTI_CODEC_MOST_FILES 64 /* in a batch, and pictures of an item that are encoded together */
#define GPSTI_CODEC_ENCODERS 4    /* items that are encoded at a time: their states take ms to make */
/* Of a batch, for each engine: twice a frame of 7680x3840. Smaller batches leave engines idle between them. */
#define GPSTI_CODEC_BATCH_PIXELS ((uint64_t)40 << 20)

/* nvJPEG for the pipeline's device. Locked, but for what one batch at a time, or one worker, uses. */
typedef struct gpsti_jpeg_device {
    bool asked;         /* a stage wants it */
    bool on;            /* it is there, and has not failed as a whole */
    bool begins, begun; /* opened by a thread now; open */
    bool decodes, used; /* the DECODE stage may use it; some stage may */
    bool has_engines;   /* for batches */
    gpsti_nvjpeg* nvjpeg;
    gpst_stream* stream;                                /* for what is no item's */
    gpsti_nvjpeg_file* files;                           /* of the batch in progress */
    gpsti_nvjpeg_worker* workers;                       /* n_workers + 1, to decode with */
    gpsti_nvjpeg_worker encoders[GPSTI_CODEC_ENCODERS]; /* each with a state a picture, for whoever has its mutex */
    gpsti_mutex encoding[GPSTI_CODEC_ENCODERS];
    uint32_t n_mutexes;
    /* Recent means: of a file there, of one on a core, and of all pictures of an item on a core. */
    gpsti_a64 device_ns, decode_ns, encode_ns;
    uint64_t n_decoded; /* files there and here */
    /* The first thing that it could not do, or all of it, for this reason: */
    char reason[GPST_REASON_BYTES];
} gpsti_jpeg_device;

/* ---- codec.c -------------------------------------------------------------------------- */

/* The descs of DECODE and ENCODE, of stage number s. */
GPSTI_INTERN gpst_result gpsti_codec_check(const gpst_stage_desc* stage, uint32_t s);
/* The services of DECODE and ENCODE on this thread. Not locked. */
GPSTI_INTERN gpst_result gpsti_codec_decode(struct gpsti_stage* stage, gpst_task* task);
GPSTI_INTERN gpst_result gpsti_codec_encode(struct gpsti_stage* stage, gpst_task* task);
GPSTI_INTERN void gpsti_codec_free(gpsti_host* host, gpsti_codec* codec);
GPSTI_INTERN const char* gpsti_codec_encoder(const gpst_encode_desc* desc); /* the name of what encodes on a thread */
/* Bytes of the segments of a picture's file, and they with the marker before them, in front of a file that lies so many
   bytes behind room, whose own first marker they replace. */
GPSTI_INTERN gpst_result gpsti_codec_ask_segments(const gpst_encode_desc* desc, const gpst_item* item, uint32_t picture,
                                                  size_t* bytes);
GPSTI_INTERN gpst_result gpsti_codec_put_segments(const gpst_encode_desc* desc, const gpst_item* item, uint32_t picture,
                                                  void* room, size_t bytes);

/* ---- codec_device.c --------------------------------------------------------------------- */

/* Stages are there, with their sets. Where the engines are not, the reason is kept. */
GPSTI_INTERN void gpsti_jpeg_device_create(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_jpeg_device_destroy(gpst_pipeline* pipeline);
GPSTI_INTERN uint64_t gpsti_jpeg_device_n_to_come(const gpst_pipeline* pipeline, uint32_t n_queued); /* locked */
GPSTI_INTERN bool gpsti_jpeg_device_is_worth_it(const gpst_pipeline* pipeline, gpst_codec codec,
                                                uint32_t n_queued); /* or open; locked */
/* Must this item wait in the step's queue for whoever decodes it? Looks through its file the first time. Not locked. */
GPSTI_INTERN bool gpsti_decode_must_queue(struct gpsti_item* item, const struct gpsti_step* step);
/* For the step's head; EITHER: nobody now. Locked. */
GPSTI_INTERN gpsti_decode_form gpsti_decode_choose(const struct gpsti_step* step);
/* Files like slot's that keep all engines busy for as long as is good, and no more of them. */
GPSTI_INTERN uint32_t gpsti_decode_batch_most(const gpsti_jpeg_device* jpeg, const struct gpsti_item* item);
/* Chains the rest of a batch behind first. Locked. */
GPSTI_INTERN void gpsti_decode_gather(struct gpsti_step* step, struct gpsti_item* first);
/* Decodes a batch; those that it could not are the cores' then. Gives how many it could. Not locked. */
GPSTI_INTERN uint32_t gpsti_decode_batch(struct gpsti_item* first, const struct gpsti_step* step,
                                         uint32_t worker_index);
/* Are all pictures that the step encodes on the device, and may and should it encode them? Not locked. */
GPSTI_INTERN bool gpsti_encode_is_on_device(struct gpsti_item* item, const struct gpsti_step* step);
/* *refused: the cores may do it. Not locked. */
GPSTI_INTERN gpst_result gpsti_encode_on_device(struct gpsti_item* item, const struct gpsti_step* step,
                                                uint32_t worker_index, bool* refused, char* reason);

#endif
