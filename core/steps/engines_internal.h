/* core/steps/engines_internal.h -- what DECODE and ENCODE need: a thread's codec, and the device's JPEG engines. */
#ifndef GPSTI_ENGINES_INTERNAL_H
#define GPSTI_ENGINES_INTERNAL_H

#include "../pictures/jpeg_internal.h"
#include "../pictures/nvjpeg_internal.h"
#include "../tuning/codec_choice_internal.h"
#include "call_internal.h"

/* ---- codec.c: on a thread. Not locked ------------------------------------------------------ */

/* What one thread decodes or encodes with, made when first needed. */
typedef struct gpsti_codec {
    gpst_jpeg* jpeg;
    void* scratch; /* a file before its size is known */
    size_t scratch_bytes;
} gpsti_codec;

/* The services of DECODE and ENCODE on this thread. */
GPSTI_INTERN gpst_result gpsti_codec_decode(gpsti_stage* stage, gpst_task* task);
GPSTI_INTERN gpst_result gpsti_codec_encode(gpsti_stage* stage, gpst_task* task);
GPSTI_INTERN gpst_result gpsti_codecs_create(gpst_pipeline* pipeline, gpsti_stage* stage);
GPSTI_INTERN void gpsti_codecs_free(gpst_pipeline* pipeline, gpsti_stage* stage);
GPSTI_INTERN const char* gpsti_codec_encoder(const gpst_encode_desc* desc); /* the name of what encodes on a thread */
/* Bytes of the segments of a picture's file, and they with the marker before them, in front of a file that lies so many
   bytes behind room, whose own first marker they replace. */
GPSTI_INTERN gpst_result gpsti_codec_ask_segments(const gpst_encode_desc* desc, const gpst_item* shown,
                                                  uint32_t picture, size_t* bytes);
GPSTI_INTERN gpst_result gpsti_codec_put_segments(const gpst_encode_desc* desc, const gpst_item* shown,
                                                  uint32_t picture, void* room, size_t bytes);

/* ---- engines.c: nvJPEG for a pipeline ---------------------------------------------------------- */

#define GPSTI_ENGINES_MOST_FILES 64 /* in a batch, and pictures of an item that are encoded together */
#define GPSTI_ENGINES_ENCODERS 4    /* items that are encoded at a time: their states take ms to make */

/* Locked, but for what one batch at a time, or one worker, uses. */
typedef struct gpsti_engines {
    bool asked;         /* a stage wants it */
    bool on;            /* it is there, and has not failed as a whole */
    bool begins, begun; /* opened by a thread now; open */
    bool decodes, used; /* the DECODE stage may use it; some stage may */
    bool has_engines;   /* for batches */
    gpsti_nvjpeg* nvjpeg;
    gpst_stream* stream;                                  /* for what is no item's */
    gpsti_nvjpeg_file* files;                             /* of the batch in progress */
    gpsti_nvjpeg_worker* workers;                         /* n_workers + 1, to decode with */
    gpsti_nvjpeg_worker encoders[GPSTI_ENGINES_ENCODERS]; /* each with a state a picture, for who has its mutex */
    gpsti_mutex encoding[GPSTI_ENGINES_ENCODERS];
    uint32_t n_mutexes;
    /* Recent means: of a file there, of one on a core, and of all pictures of an item on a core. */
    gpsti_a64 device_ns, decode_ns, encode_ns;
    uint64_t n_decoded;      /* files there and here */
    uint64_t decoder_bytes;  /* that decoders on threads hold side by side, */
    gpsti_cond decoder_room; /* and who waits for fewer */
    bool has_room;
    /* The first thing that it could not do, or all of it, for this reason: */
    char reason[GPST_REASON_BYTES];
} gpsti_engines;

/* Stages are there, with their sets. Where the engines are not, the reason is kept. */
GPSTI_INTERN gpst_result gpsti_engines_create(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_engines_destroy(gpst_pipeline* pipeline);
/* Is it worth opening them, or are they open? Locked. */
GPSTI_INTERN bool gpsti_engines_are_worth_it(const gpst_pipeline* pipeline, gpst_codec codec, uint32_t n_queued);
/* Items that are still to be done, n_queued that wait among them; UINT64_MAX: no end is known. Locked. */
GPSTI_INTERN uint64_t gpsti_engines_n_to_come(const gpst_pipeline* pipeline, uint32_t n_queued);
/* One thread opens them; the others take the cores meanwhile. False: they are not open. Not locked. */
GPSTI_INTERN bool gpsti_engines_open(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_engines_note_failure(gpst_pipeline* pipeline, gpst_result result, const char* reason);

#endif
