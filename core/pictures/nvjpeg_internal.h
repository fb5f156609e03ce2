/* core/pictures/nvjpeg_internal.h -- JPEG files decoded and encoded by NVIDIA's nvJPEG, which is looked for at run
   time: nothing of it is needed to compile or to link. GPUSTAGE_LIBNVJPEG in the environment names its file; set to
   nothing, it is not used. GPUSTAGE_NVJPEG_HARDWARE=0 leaves the decoder that some GPUs have as hardware unused. Knows
   neither files on a disk nor the engine. */
#ifndef GPSTI_NVJPEG_INTERNAL_H
#define GPSTI_NVJPEG_INTERNAL_H

#include "../base/library_internal.h"
#include "../device/device_internal.h"
#include "pictures_internal.h"

/* One for a device. Handles of the library are void pointers; NULL: not made. */
typedef struct gpsti_nvjpeg {
    gpsti_host* host;
    /* BEGIN sets these three. */
    uint32_t n_engines;           /* of the hardware decoder; 0 = there is none */
    uint32_t batch;               /* files that all engines together decode at a time: best is a multiple of it */
    char no_hardware_reason[160]; /* "" where there are engines */
    /* The hardware's, for DECODE_BATCH. */
    void *hardware, *batch_state;
    int batch_n, batch_width, batch_height, batch_chroma; /* what it has prepared for; batch_n 0 = nothing */
    void* batch_lists;                                    /* batch_room files as the library takes them */
    uint32_t batch_room;
    /* For everything else. Used by all threads at once. */
    void* library;
    void* decoders[2]; /* HYBRID, GPU_HYBRID */
    void* params;
} gpsti_nvjpeg;

/* What one thread decodes and encodes with at a time. All-zero at first; DECODE_ONE and ENCODE make what they need. */
typedef struct gpsti_nvjpeg_worker {
    void *parsed, *pinned, *device;
    void* states[2]; /* one a decoder */
    void* encode_params;
    void** encoders; /* one a picture */
    uint32_t n_encoders, encoder_room;
} gpsti_nvjpeg_worker;

typedef struct gpsti_nvjpeg_file {
    const uint8_t* data; /* without APPn segments: the library has crashed on those */
    size_t bytes;
    bool progressive;
    gpst_image to;      /* device memory: GRAY, or what planes the file has, any pitch */
    gpst_result result; /* of the operation */
} gpsti_nvjpeg_file;

typedef struct gpsti_nvjpeg_picture {
    gpst_image image; /* device memory: RGB or BGR, U8, HWC, not bottom-up */
    size_t bytes;     /* ENCODE: of its file, at least 1 */
    void* out;        /* RETRIEVE: host memory, room for so many bytes */
} gpsti_nvjpeg_picture;

typedef enum gpsti_nvjpeg_operation {
    GPSTI_NVJPEG_BEGIN = 1,        /* opens the library on the stream's device; no other operation runs */
    GPSTI_NVJPEG_END = 2,          /* undoes it, after all workers have ended; nothing to undo is fine */
    GPSTI_NVJPEG_DECODE_BATCH = 3, /* all files by the hardware, or none; one thread at a time */
    GPSTI_NVJPEG_DECODE_ONE = 4,   /* files[0], with the worker: Huffman on the CPU, or, large ones, on the GPU */
    GPSTI_NVJPEG_ENCODE = 5,       /* all pictures, with the worker, which holds the files */
    GPSTI_NVJPEG_RETRIEVE = 6,     /* the files of the worker's latest ENCODE, of the same pictures */
    GPSTI_NVJPEG_WORKER_END = 7    /* frees what the worker has made; it is all-zero again */
} gpsti_nvjpeg_operation;

/* One call. What it points to lives until gpsti_nvjpeg_call returns. */
typedef struct gpsti_nvjpeg_op {
    gpsti_nvjpeg_operation operation;
    gpsti_nvjpeg* self;
    bool skip_hardware; /* BEGIN: nothing will be decoded; opening the hardware takes most of the time */
    gpsti_nvjpeg_worker* worker;
    gpsti_nvjpeg_file* files;
    uint32_t n_files;
    gpsti_nvjpeg_picture* pictures;
    uint32_t n_pictures;
    uint32_t quality;   /* ENCODE: 1 to 100 */
    gpst_format chroma; /* ENCODE: JPEG_444, _422 or _420 */
    bool optimise;      /* ENCODE: Huffman tables of the picture's own */
    gpst_result result; /* out */
    char reason[GPSTI_REASON_BYTES];
} gpsti_nvjpeg_op;

/* The library's version as "13.0.1"; loads it. No device is touched. UNSUPPORTED: see gpsti_library_load. */
GPSTI_INTERN gpst_result gpsti_nvjpeg_version(char* out, size_t out_bytes);
/* The library and its functions; no device is touched. UNSUPPORTED: it is not there, or too old. */
GPSTI_INTERN gpst_result gpsti_nvjpeg_load(gpsti_host* host, gpsti_nvjpeg** out);
/* Host memory of a worker whose WORKER_END has failed: the device is lost, and took its handles with it. */
GPSTI_INTERN void gpsti_nvjpeg_worker_free(const gpsti_nvjpeg* self, gpsti_nvjpeg_worker* worker);
/* After END. Where that failed, the device is lost, and took all handles with it. NULL is a no-op. */
GPSTI_INTERN void gpsti_nvjpeg_unload(gpsti_nvjpeg* self);
/* Runs an operation as a kernel of the stream and waits until the stream is idle: for the hardware, which does not know
   streams, the caller has waited for all earlier work on the memory, too. Beside the stream's own failures: FORMAT (the
   file is damaged, or not what `to` says), UNSUPPORTED (the library cannot do it, or has no hardware),
   DEVICE_MEMORY, MEMORY, ARGUMENT, STATE or DEVICE, with the reason "nvJPEG: ...". */
GPSTI_INTERN gpst_result gpsti_nvjpeg_call(gpst_stream* stream, gpsti_nvjpeg_op* op);

#endif
