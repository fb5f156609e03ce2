/* core/pictures/nvjpeg.c -- the library loaded, opened on a device and called; its errors in our words. Every operation
   on a device is a kernel of a stream: only there is the device current, and the native stream known. */
#include "../base/platform_internal.h"

#include "nvjpeg_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the library -------------------------------------------------------------------------------------------- */

#define GPSTI_NVJPEG_OUT_PLANES 1 /* nvjpegOutputFormat_t: the file's own */
#define GPSTI_NVJPEG_IN_RGB 5     /* nvjpegInputFormat_t: interleaved */
#define GPSTI_NVJPEG_IN_BGR 6
#define GPSTI_NVJPEG_DEFAULT 0 /* nvjpegBackend_t */
#define GPSTI_NVJPEG_HYBRID 1
#define GPSTI_NVJPEG_GPU_HYBRID 2
#define GPSTI_NVJPEG_HARDWARE 3
/* Not the library's strict mode: it looks through every file again, 2 ms each, for what the caller has seen. */
#define GPSTI_NVJPEG_FLAGS 0u
#define GPSTI_NVJPEG_GRAY 6    /* nvjpegChromaSubsampling_t */

#define GPSTI_NVJPEG_LARGE_PIXELS 1000000u  /* from here on the GPU decodes Huffman codes faster than a core */
#define GPSTI_NVJPEG_MOST_PIXELS 268435456u /* its encoder computes sizes in 32 bits */

typedef struct gpsti_nvjpeg_image { /* nvjpegImage_t */
    uint8_t* planes[4];
    size_t pitches[4];
} gpsti_nvjpeg_image;

/* What it calls a file of a batch, in three lists. */
typedef struct gpsti_nvjpeg_lists {
    const uint8_t** data;
    size_t* bytes;
    gpsti_nvjpeg_image* images;
} gpsti_nvjpeg_lists;

#define GPSTI_NVJPEG_CALLS(X)                                                                                          \
    X(GetProperty, (int property, int* value))                                                                         \
    X(CreateEx, (int backend, void* device_allocator, void* pinned_allocator, unsigned flags, void** library))         \
    X(Destroy, (void* library))                                                                                        \
    X(GetHardwareDecoderInfo, (void* library, unsigned* n_engines, unsigned* n_cores))                                 \
    X(JpegStateCreate, (void* library, void** state))                                                                  \
    X(JpegStateDestroy, (void* state))                                                                                 \
    X(GetImageInfo,                                                                                                    \
      (void* library, const uint8_t* data, size_t bytes, int* n, int* chroma, int* widths, int* heights))              \
    X(DecodeBatchedInitialize, (void* library, void* state, int n, int n_threads, int format))                         \
    X(DecodeBatchedPreAllocate, (void* library, void* state, int n, int width, int height, int chroma, int format))    \
    X(DecodeBatched, (void* library, void* state, const uint8_t* const* data, const size_t* bytes,                     \
                      gpsti_nvjpeg_image* to, void* stream))                                                           \
    X(JpegStreamCreate, (void* library, void** parsed))                                                                \
    X(JpegStreamDestroy, (void* parsed))                                                                               \
    X(JpegStreamParse,                                                                                                 \
      (void* library, const uint8_t* data, size_t bytes, int save_metadata, int save_data, void* parsed))              \
    X(DecoderCreate, (void* library, int backend, void** decoder))                                                     \
    X(DecoderDestroy, (void* decoder))                                                                                 \
    X(DecoderStateCreate, (void* library, void* decoder, void** state))                                                \
    X(BufferPinnedCreate, (void* library, void* allocator, void** buffer))                                             \
    X(BufferPinnedDestroy, (void* buffer))                                                                             \
    X(BufferDeviceCreate, (void* library, void* allocator, void** buffer))                                             \
    X(BufferDeviceDestroy, (void* buffer))                                                                             \
    X(StateAttachPinnedBuffer, (void* state, void* buffer))                                                            \
    X(StateAttachDeviceBuffer, (void* state, void* buffer))                                                            \
    X(DecodeParamsCreate, (void* library, void** params))                                                              \
    X(DecodeParamsDestroy, (void* params))                                                                             \
    X(DecodeParamsSetOutputFormat, (void* params, int format))                                                         \
    X(DecodeJpegHost, (void* library, void* decoder, void* state, void* params, void* parsed))                         \
    X(DecodeJpegTransferToDevice, (void* library, void* decoder, void* state, void* parsed, void* stream))             \
    X(DecodeJpegDevice, (void* library, void* decoder, void* state, gpsti_nvjpeg_image* to, void* stream))             \
    X(EncoderStateCreate, (void* library, void** encoder, void* stream))                                               \
    X(EncoderStateDestroy, (void* encoder))                                                                            \
    X(EncoderParamsCreate, (void* library, void** params, void* stream))                                               \
    X(EncoderParamsDestroy, (void* params))                                                                            \
    X(EncoderParamsSetQuality, (void* params, int quality, void* stream))                                              \
    X(EncoderParamsSetOptimizedHuffman, (void* params, int optimise, void* stream))                                    \
    X(EncoderParamsSetSamplingFactors, (void* params, int chroma, void* stream))                                       \
    X(EncodeImage, (void* library, void* encoder, void* params, const gpsti_nvjpeg_image* from, int format, int width, \
                    int height, void* stream))                                                                         \
    X(EncodeRetrieveBitstream, (void* library, void* encoder, uint8_t* out, size_t* bytes, void* stream))

#define GPSTI_X(name, parameters) int(*name) parameters;
typedef struct gpsti_nvjpeg_calls {
    GPSTI_NVJPEG_CALLS(GPSTI_X)
} gpsti_nvjpeg_calls;
#undef GPSTI_X

static gpsti_nvjpeg_calls gpsti_nvjpeg_api;

#if defined(_WIN32)
GPSTI_PRIVATE const char* const gpsti_nvjpeg_names[] = {"nvjpeg64_13.dll", "nvjpeg64_12.dll", "nvjpeg64_11.dll", NULL};
#else
GPSTI_PRIVATE const char* const gpsti_nvjpeg_names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11", NULL};
#endif

#define GPSTI_X(name, parameters) {"nvjpeg" #name, offsetof(gpsti_nvjpeg_calls, name), false},
GPSTI_PRIVATE const gpsti_symbol gpsti_nvjpeg_symbols[] = {GPSTI_NVJPEG_CALLS(GPSTI_X){NULL, 0, false}};
#undef GPSTI_X

static gpsti_library gpsti_nvjpeg_library = {
    "nvJPEG", "a newer one", "GPUSTAGE_LIBNVJPEG", gpsti_nvjpeg_names, gpsti_nvjpeg_symbols, &gpsti_nvjpeg_api,
    {0}, {0}, {0}};

/* ---- its errors ---------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE const char* gpsti_nvjpeg_status_name(int status) {
    static const char* const names[] = {"SUCCESS",
                                        "NOT_INITIALIZED",
                                        "INVALID_PARAMETER",
                                        "BAD_JPEG",
                                        "JPEG_NOT_SUPPORTED",
                                        "ALLOCATOR_FAILURE",
                                        "EXECUTION_FAILED",
                                        "ARCH_MISMATCH",
                                        "INTERNAL_ERROR",
                                        "IMPLEMENTATION_NOT_SUPPORTED",
                                        "INCOMPLETE_BITSTREAM"};
    return status >= 0 && (size_t)status < sizeof names / sizeof names[0] ? names[status] : "unknown";
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_result(int status) {
    switch (status) {
    case 3:
    case 10:
        return GPST_ERROR_FORMAT;
    case 4:
    case 7:
        return GPST_ERROR_UNSUPPORTED;
    case 5:
        return GPST_ERROR_DEVICE_MEMORY;
    default:
        return GPST_ERROR_DEVICE;
    }
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_check(int status, const char* call) {
    if (status == 0)
        return GPST_OK;
    return gpsti_fail(gpsti_nvjpeg_result(status), "nvJPEG: %s: %s (status %d)", call, gpsti_nvjpeg_status_name(status),
                      status);
}

#define GPSTI_NVJPEG_TRY(name, ...) GPSTI_TRY(gpsti_nvjpeg_check(gpsti_nvjpeg_api.name(__VA_ARGS__), "nvjpeg" #name))
/* What is made once and stays. */
#define GPSTI_NVJPEG_MAKE(handle, name, ...)     \
    do {                                         \
        if (!(handle))                           \
            GPSTI_NVJPEG_TRY(name, __VA_ARGS__); \
    } while (0)
#define GPSTI_NVJPEG_FREE(handle, name)          \
    do {                                         \
        if (handle)                              \
            (void)gpsti_nvjpeg_api.name(handle); \
        (handle) = NULL;                         \
    } while (0)

/* ---- begin and end -------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_nvjpeg_close_hardware(gpsti_nvjpeg* self) {
    GPSTI_NVJPEG_FREE(self->batch_state, JpegStateDestroy);
    GPSTI_NVJPEG_FREE(self->hardware, Destroy);
    self->n_engines = self->batch = 0;
    self->batch_n = 0;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_open_hardware(gpsti_nvjpeg* self) {
    unsigned n_engines = 0, n_cores = 0;
    const char* const wanted = getenv("GPUSTAGE_NVJPEG_HARDWARE");
    GPSTI_FAIL_IF(wanted && strcmp(wanted, "0") == 0, GPST_ERROR_UNSUPPORTED, "nvJPEG: GPUSTAGE_NVJPEG_HARDWARE=0");
    const int status =
        gpsti_nvjpeg_api.CreateEx(GPSTI_NVJPEG_HARDWARE, NULL, NULL, GPSTI_NVJPEG_FLAGS, &self->hardware);
    GPSTI_FAIL_IF(status == 7, GPST_ERROR_UNSUPPORTED, "nvJPEG: no hardware decoder (status 7)");
    GPSTI_TRY(gpsti_nvjpeg_check(status, "nvjpegCreateEx of the hardware"));
    GPSTI_NVJPEG_TRY(GetHardwareDecoderInfo, self->hardware, &n_engines, &n_cores);
    GPSTI_FAIL_IF(n_engines == 0 || n_cores == 0, GPST_ERROR_UNSUPPORTED, "nvJPEG: no hardware decoder (0 engines)");
    GPSTI_NVJPEG_TRY(JpegStateCreate, self->hardware, &self->batch_state);
    self->n_engines = n_engines;
    self->batch = n_engines * n_cores;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_end(gpsti_nvjpeg* self) {
    gpsti_nvjpeg_close_hardware(self);
    GPSTI_NVJPEG_FREE(self->params, DecodeParamsDestroy);
    GPSTI_NVJPEG_FREE(self->decoders[1], DecoderDestroy);
    GPSTI_NVJPEG_FREE(self->decoders[0], DecoderDestroy);
    GPSTI_NVJPEG_FREE(self->library, Destroy);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_open(gpsti_nvjpeg* self) {
    GPSTI_NVJPEG_TRY(CreateEx, GPSTI_NVJPEG_DEFAULT, NULL, NULL, GPSTI_NVJPEG_FLAGS, &self->library);
    GPSTI_NVJPEG_TRY(DecoderCreate, self->library, GPSTI_NVJPEG_HYBRID, &self->decoders[0]);
    GPSTI_NVJPEG_TRY(DecoderCreate, self->library, GPSTI_NVJPEG_GPU_HYBRID, &self->decoders[1]);
    GPSTI_NVJPEG_TRY(DecodeParamsCreate, self->library, &self->params);
    GPSTI_NVJPEG_TRY(DecodeParamsSetOutputFormat, self->params, GPSTI_NVJPEG_OUT_PLANES);
    return GPST_OK;
}

/* Without hardware everything else still works: its absence is no failure. */
GPSTI_PRIVATE void gpsti_nvjpeg_try_hardware(gpsti_nvjpeg* self) {
    char before[GPSTI_REASON_BYTES];
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    if (!GPST_FAILED(gpsti_nvjpeg_open_hardware(self)))
        return;
    gpsti_copy_text(self->no_hardware_reason, sizeof self->no_hardware_reason, gpst_last_reason());
    gpsti_nvjpeg_close_hardware(self);
    (void)gpsti_fail(GPST_OK, "%s", before);
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_begin(const gpsti_nvjpeg_op* op) {
    gpsti_nvjpeg* const self = op->self;
    GPSTI_FAIL_IF(self->library, GPST_ERROR_STATE, "nvJPEG: it has begun");
    gpsti_copy_text(self->no_hardware_reason, sizeof self->no_hardware_reason,
                    op->skip_hardware ? "nvJPEG: the hardware decoder was not asked for" : "");
    if (!op->skip_hardware)
        gpsti_nvjpeg_try_hardware(self);
    const gpst_result result = gpsti_nvjpeg_open(self);
    if (GPST_FAILED(result))
        (void)gpsti_nvjpeg_end(self);
    return result;
}

/* ---- decoding -------------------------------------------------------------------------------------------------- */

/* nvjpegChromaSubsampling_t; -1: it has no name there. */
GPSTI_PRIVATE int gpsti_nvjpeg_chroma_of(gpst_format format) {
    switch (format) {
    case GPST_FORMAT_JPEG_444:
        return 0;
    case GPST_FORMAT_JPEG_422:
        return 1;
    case GPST_FORMAT_JPEG_420:
        return 2;
    case GPST_FORMAT_JPEG_440:
        return 3;
    case GPST_FORMAT_GRAY:
        return GPSTI_NVJPEG_GRAY;
    default:
        return -1;
    }
}

/* The picture as the library wants it. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_image_of(const gpst_image* image, const char* member, gpsti_nvjpeg_image* out) {
    memset(out, 0, sizeof *out);
    GPSTI_TRY(gpsti_image_check(image, "nvJPEG", member));
    const gpst_image to = gpsti_image_resolved(image);
    GPSTI_FAIL_IF(to.dtype != GPST_DTYPE_U8 || to.layout != GPST_LAYOUT_HWC || to.pitch_bytes < 0,
                  GPST_ERROR_UNSUPPORTED, "nvJPEG: %s: must be U8, HWC and not bottom-up", member);
    out->planes[0] = (uint8_t*)to.data;
    out->pitches[0] = (size_t)to.pitch_bytes;
    if (!gpsti_image_is_jpeg(to.format))
        return GPST_OK;
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(&to);
    out->pitches[1] = out->pitches[2] = (size_t)chroma.pitch_bytes;
    out->planes[1] = out->planes[0] + (size_t)chroma.luma_rows * out->pitches[0];
    out->planes[2] = out->planes[1] + (size_t)chroma.height * out->pitches[1];
    return GPST_OK;
}

/* The library must see the same picture as the caller: it writes as much as it sees. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_check_file(void* library, const gpsti_nvjpeg_file* file,
                                                  gpsti_nvjpeg_image* out) {
    int n = 0, chroma = -1, widths[4] = {0, 0, 0, 0}, heights[4] = {0, 0, 0, 0};
    const int wanted = gpsti_nvjpeg_chroma_of(file->to.format);
    GPSTI_FAIL_IF(wanted < 0, GPST_ERROR_UNSUPPORTED, "nvJPEG: to.format=%d: must be GRAY or one of JPEG's",
                  (int)file->to.format);
    GPSTI_FAIL_IF(!file->data || file->bytes == 0, GPST_ERROR_ARGUMENT, "nvJPEG: data, bytes: required");
    GPSTI_TRY(gpsti_nvjpeg_image_of(&file->to, "to", out));
    GPSTI_NVJPEG_TRY(GetImageInfo, library, file->data, file->bytes, &n, &chroma, widths, heights);
    GPSTI_FAIL_IF(n != (wanted == GPSTI_NVJPEG_GRAY ? 1 : 3) || chroma != wanted ||
                      (uint32_t)widths[0] != file->to.width || (uint32_t)heights[0] != file->to.height,
                  GPST_ERROR_FORMAT,
                  "nvJPEG: it sees a picture of %dx%d in %d planes (subsampling %d), not of %ux%u (subsampling %d)",
                  widths[0], heights[0], n, chroma, (unsigned)file->to.width, (unsigned)file->to.height, wanted);
    return GPST_OK;
}

#define GPSTI_NVJPEG_LIST_BYTES (sizeof(gpsti_nvjpeg_image) + sizeof(size_t) + sizeof(const uint8_t*))

GPSTI_PRIVATE void gpsti_nvjpeg_free_lists(gpsti_nvjpeg* self) {
    if (self->batch_lists)
        gpsti_free(self->host, self->batch_lists, self->batch_room * GPSTI_NVJPEG_LIST_BYTES);
    self->batch_lists = NULL;
    self->batch_room = 0;
}

/* One block, the widest list first. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_make_lists(gpsti_nvjpeg* self, uint32_t n, gpsti_nvjpeg_lists* out) {
    if (self->batch_room < n) {
        gpsti_nvjpeg_free_lists(self);
        self->batch_lists = gpsti_alloc(self->host, n * GPSTI_NVJPEG_LIST_BYTES);
        if (!self->batch_lists)
            return GPST_ERROR_MEMORY;
        self->batch_room = n;
    }
    out->images = (gpsti_nvjpeg_image*)self->batch_lists;
    out->bytes = (size_t*)(void*)(out->images + self->batch_room);
    out->data = (const uint8_t**)(void*)(out->bytes + self->batch_room);
    return GPST_OK;
}

/* How many samples of chroma a picture has, as an order of the formats. */
GPSTI_PRIVATE int gpsti_nvjpeg_chroma_rank(int chroma) {
    static const int ranks[GPSTI_NVJPEG_GRAY + 1] = {3, 2, 1, 2, 0, 0, 0};
    return ranks[chroma];
}

/* For n pictures of the largest sides and the densest chroma so far, where anything of it is new. What is not prepared
   is allocated in each batch, which then takes a quarter longer (H100). */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_prepare_batch(gpsti_nvjpeg* self, const gpsti_nvjpeg_op* op) {
    const int n = (int)op->n_files;
    int width = self->batch_width, height = self->batch_height, chroma = self->batch_chroma;
    for (uint32_t i = 0; i < op->n_files; i++) {
        const gpst_image* const to = &op->files[i].to;
        const int own = gpsti_nvjpeg_chroma_of(to->format);
        width = width > (int)to->width ? width : (int)to->width;
        height = height > (int)to->height ? height : (int)to->height;
        chroma = gpsti_nvjpeg_chroma_rank(chroma) > gpsti_nvjpeg_chroma_rank(own) ? chroma : own;
    }
    if (n == self->batch_n && width == self->batch_width && height == self->batch_height &&
        chroma == self->batch_chroma)
        return GPST_OK;
    self->batch_n = 0;
    GPSTI_NVJPEG_TRY(DecodeBatchedInitialize, self->hardware, self->batch_state, n, 1, GPSTI_NVJPEG_OUT_PLANES);
    GPSTI_NVJPEG_TRY(DecodeBatchedPreAllocate, self->hardware, self->batch_state, n, width, height, chroma,
                     GPSTI_NVJPEG_OUT_PLANES);
    self->batch_n = n, self->batch_width = width, self->batch_height = height, self->batch_chroma = chroma;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_decode_batch(const gpsti_nvjpeg_op* op, void* native_stream) {
    gpsti_nvjpeg* const self = op->self;
    gpsti_nvjpeg_lists lists;
    GPSTI_FAIL_IF(!self->hardware, GPST_ERROR_UNSUPPORTED, "%s", self->no_hardware_reason);
    GPSTI_FAIL_IF(op->n_files == 0 || op->n_files > INT16_MAX, GPST_ERROR_ARGUMENT, "nvJPEG: n_files=%u: must be 1..%d",
                  (unsigned)op->n_files, INT16_MAX);
    GPSTI_TRY(gpsti_nvjpeg_make_lists(self, op->n_files, &lists));
    for (uint32_t i = 0; i < op->n_files; i++) {
        GPSTI_TRY(gpsti_nvjpeg_check_file(self->hardware, &op->files[i], &lists.images[i]));
        lists.data[i] = op->files[i].data;
        lists.bytes[i] = op->files[i].bytes;
    }
    GPSTI_TRY(gpsti_nvjpeg_prepare_batch(self, op));
    const int status = gpsti_nvjpeg_api.DecodeBatched(self->hardware, self->batch_state, lists.data, lists.bytes,
                                                      lists.images, native_stream);
    if (status != 0)
        self->batch_n = 0; /* what a failure leaves in the state is not for the next batch */
    return gpsti_nvjpeg_check(status, "nvjpegDecodeBatched");
}

/* Decoder of either kind; the buffers are for both. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_make_decoder(const gpsti_nvjpeg* self, gpsti_nvjpeg_worker* worker,
                                                    uint32_t kind) {
    GPSTI_NVJPEG_MAKE(worker->parsed, JpegStreamCreate, self->library, &worker->parsed);
    GPSTI_NVJPEG_MAKE(worker->pinned, BufferPinnedCreate, self->library, NULL, &worker->pinned);
    GPSTI_NVJPEG_MAKE(worker->device, BufferDeviceCreate, self->library, NULL, &worker->device);
    GPSTI_NVJPEG_MAKE(worker->states[kind], DecoderStateCreate, self->library, self->decoders[kind],
                      &worker->states[kind]);
    GPSTI_NVJPEG_TRY(StateAttachPinnedBuffer, worker->states[kind], worker->pinned);
    GPSTI_NVJPEG_TRY(StateAttachDeviceBuffer, worker->states[kind], worker->device);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_decode_one(const gpsti_nvjpeg_op* op, void* native_stream) {
    const gpsti_nvjpeg* const self = op->self;
    const gpsti_nvjpeg_file* const file = &op->files[0];
    gpsti_nvjpeg_worker* const worker = op->worker;
    gpsti_nvjpeg_image to;
    const bool large = (uint64_t)file->to.width * file->to.height >= GPSTI_NVJPEG_LARGE_PIXELS;
    const uint32_t kind = large && !file->progressive ? 1 : 0;
    GPSTI_TRY(gpsti_nvjpeg_check_file(self->library, file, &to));
    GPSTI_TRY(gpsti_nvjpeg_make_decoder(self, worker, kind));
    void *const decoder = self->decoders[kind], *const state = worker->states[kind];
    GPSTI_NVJPEG_TRY(JpegStreamParse, self->library, file->data, file->bytes, 0, 0, worker->parsed);
    GPSTI_NVJPEG_TRY(DecodeJpegHost, self->library, decoder, state, self->params, worker->parsed);
    GPSTI_NVJPEG_TRY(DecodeJpegTransferToDevice, self->library, decoder, state, worker->parsed, native_stream);
    GPSTI_NVJPEG_TRY(DecodeJpegDevice, self->library, decoder, state, &to, native_stream);
    return GPST_OK;
}

/* ---- encoding -------------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_make_encoders(const gpsti_nvjpeg* self, gpsti_nvjpeg_worker* worker, uint32_t n,
                                                     void* native_stream) {
    GPSTI_NVJPEG_MAKE(worker->encode_params, EncoderParamsCreate, self->library, &worker->encode_params, native_stream);
    if (worker->encoder_room < n) {
        void** const room = (void**)gpsti_alloc(self->host, n * sizeof *room);
        if (!room)
            return GPST_ERROR_MEMORY;
        if (worker->n_encoders > 0)
            memcpy(room, worker->encoders, worker->n_encoders * sizeof *room);
        if (worker->encoders)
            gpsti_free(self->host, worker->encoders, worker->encoder_room * sizeof *room);
        worker->encoders = room;
        worker->encoder_room = n;
    }
    for (; worker->n_encoders < n; worker->n_encoders++)
        GPSTI_NVJPEG_TRY(EncoderStateCreate, self->library, &worker->encoders[worker->n_encoders], native_stream);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_set_encoder(const gpsti_nvjpeg_op* op, void* native_stream) {
    void* const params = op->worker->encode_params;
    const int chroma = gpsti_nvjpeg_chroma_of(op->chroma);
    GPSTI_FAIL_IF(op->quality == 0 || op->quality > 100, GPST_ERROR_ARGUMENT, "nvJPEG: quality=%u: must be 1 to 100",
                  (unsigned)op->quality);
    GPSTI_FAIL_IF(chroma < 0 || chroma > 2, GPST_ERROR_UNSUPPORTED,
                  "nvJPEG: chroma=%d: it encodes JPEG_444, JPEG_422 and JPEG_420", (int)op->chroma);
    GPSTI_NVJPEG_TRY(EncoderParamsSetQuality, params, (int)op->quality, native_stream);
    GPSTI_NVJPEG_TRY(EncoderParamsSetOptimizedHuffman, params, op->optimise ? 1 : 0, native_stream);
    GPSTI_NVJPEG_TRY(EncoderParamsSetSamplingFactors, params, chroma, native_stream);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_encode_picture(const gpsti_nvjpeg_op* op, uint32_t i, void* native_stream) {
    const gpst_image* const image = &op->pictures[i].image;
    gpsti_nvjpeg_image from;
    GPSTI_FAIL_IF(image->format != GPST_FORMAT_RGB && image->format != GPST_FORMAT_BGR, GPST_ERROR_UNSUPPORTED,
                  "nvJPEG: image.format=%d: it encodes RGB and BGR", (int)image->format);
    GPSTI_TRY(gpsti_nvjpeg_image_of(image, "image", &from));
    GPSTI_FAIL_IF((uint64_t)image->width * image->height > GPSTI_NVJPEG_MOST_PIXELS, GPST_ERROR_UNSUPPORTED,
                  "nvJPEG: image.width=%u, height=%u: it encodes up to %u pixels", (unsigned)image->width,
                  (unsigned)image->height, GPSTI_NVJPEG_MOST_PIXELS);
    GPSTI_NVJPEG_TRY(EncodeImage, op->self->library, op->worker->encoders[i], op->worker->encode_params, &from,
                     image->format == GPST_FORMAT_RGB ? GPSTI_NVJPEG_IN_RGB : GPSTI_NVJPEG_IN_BGR, (int)image->width,
                     (int)image->height, native_stream);
    return GPST_OK;
}

/* All are under way before the first one's size is waited for. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_encode(const gpsti_nvjpeg_op* op, void* native_stream) {
    const gpsti_nvjpeg* const self = op->self;
    gpsti_nvjpeg_worker* const worker = op->worker;
    GPSTI_TRY(gpsti_nvjpeg_make_encoders(self, worker, op->n_pictures, native_stream));
    GPSTI_TRY(gpsti_nvjpeg_set_encoder(op, native_stream));
    for (uint32_t i = 0; i < op->n_pictures; i++)
        GPSTI_TRY(gpsti_nvjpeg_encode_picture(op, i, native_stream));
    for (uint32_t i = 0; i < op->n_pictures; i++) {
        size_t* const bytes = &op->pictures[i].bytes;
        *bytes = 0;
        GPSTI_NVJPEG_TRY(EncodeRetrieveBitstream, self->library, worker->encoders[i], NULL, bytes, native_stream);
        GPSTI_FAIL_IF(*bytes == 0, GPST_ERROR_DEVICE, "nvJPEG: nvjpegEncodeRetrieveBitstream: a file of 0 bytes");
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_retrieve(const gpsti_nvjpeg_op* op, void* native_stream) {
    for (uint32_t i = 0; i < op->n_pictures; i++) {
        const gpsti_nvjpeg_picture* const picture = &op->pictures[i];
        size_t bytes = picture->bytes;
        GPSTI_FAIL_IF(i >= op->worker->n_encoders, GPST_ERROR_STATE, "nvJPEG: n_pictures=%u: %u were encoded",
                      (unsigned)op->n_pictures, (unsigned)op->worker->n_encoders);
        GPSTI_FAIL_IF(!picture->out, GPST_ERROR_ARGUMENT, "nvJPEG: out=NULL: required");
        GPSTI_NVJPEG_TRY(EncodeRetrieveBitstream, op->self->library, op->worker->encoders[i], (uint8_t*)picture->out,
                         &bytes, native_stream);
        GPSTI_FAIL_IF(bytes != picture->bytes, GPST_ERROR_DEVICE,
                      "nvJPEG: nvjpegEncodeRetrieveBitstream: %zu bytes came, %zu were promised", bytes,
                      picture->bytes);
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_worker_end(const gpsti_nvjpeg_op* op) {
    gpsti_nvjpeg_worker* const worker = op->worker;
    for (uint32_t i = 0; i < worker->n_encoders; i++)
        GPSTI_NVJPEG_FREE(worker->encoders[i], EncoderStateDestroy);
    GPSTI_NVJPEG_FREE(worker->encode_params, EncoderParamsDestroy);
    GPSTI_NVJPEG_FREE(worker->states[1], JpegStateDestroy);
    GPSTI_NVJPEG_FREE(worker->states[0], JpegStateDestroy);
    GPSTI_NVJPEG_FREE(worker->device, BufferDeviceDestroy);
    GPSTI_NVJPEG_FREE(worker->pinned, BufferPinnedDestroy);
    GPSTI_NVJPEG_FREE(worker->parsed, JpegStreamDestroy);
    gpsti_nvjpeg_worker_free(op->self, worker);
    return GPST_OK;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_nvjpeg_run(const gpsti_nvjpeg_op* op, void* native_stream) {
    GPSTI_FAIL_IF(!op->self->library && op->operation >= GPSTI_NVJPEG_DECODE_BATCH &&
                      op->operation <= GPSTI_NVJPEG_RETRIEVE,
                  GPST_ERROR_STATE, "nvJPEG: it has not begun");
    switch (op->operation) {
    case GPSTI_NVJPEG_BEGIN:
        return gpsti_nvjpeg_begin(op);
    case GPSTI_NVJPEG_END:
        return gpsti_nvjpeg_end(op->self);
    case GPSTI_NVJPEG_DECODE_BATCH:
        return gpsti_nvjpeg_decode_batch(op, native_stream);
    case GPSTI_NVJPEG_DECODE_ONE:
        return gpsti_nvjpeg_decode_one(op, native_stream);
    case GPSTI_NVJPEG_ENCODE:
        return gpsti_nvjpeg_encode(op, native_stream);
    case GPSTI_NVJPEG_RETRIEVE:
        return gpsti_nvjpeg_retrieve(op, native_stream);
    case GPSTI_NVJPEG_WORKER_END:
        return gpsti_nvjpeg_worker_end(op);
    }
    return gpsti_fail(GPST_ERROR_ARGUMENT, "nvJPEG: operation=%d: none of them", (int)op->operation);
}

/* The stream is told of no failure: it is the call's, which may be on another thread. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_kernel_gpu(const void* args, void* native_stream) {
    gpsti_nvjpeg_op* const op = *(gpsti_nvjpeg_op* const*)args;
    op->result = gpsti_nvjpeg_run(op, native_stream);
    if (GPST_FAILED(op->result))
        gpsti_copy_text(op->reason, sizeof op->reason, gpst_last_reason());
    for (uint32_t i = 0; op->operation <= GPSTI_NVJPEG_DECODE_ONE && i < op->n_files; i++)
        op->files[i].result = op->result;
    return GPST_OK;
}

/* Host memory is the device's here, and whoever is loaded must see it so: for tests. */
GPSTI_PRIVATE gpst_result gpsti_nvjpeg_kernel_host(const void* args, const gpsti_exec* exec) {
    (void)exec;
    return gpsti_nvjpeg_kernel_gpu(args, NULL);
}

GPSTI_INTERN gpst_result gpsti_nvjpeg_call(gpst_stream* stream, gpsti_nvjpeg_op* op) {
    static const gpsti_kernel kernel = {"nvjpeg", gpsti_nvjpeg_kernel_host,
                                        GPSTI_GPU_LAUNCHER(gpsti_nvjpeg_kernel_gpu), NULL};
    op->result = GPST_OK;
    op->reason[0] = '\0';
    GPSTI_TRY(gpsti_stream_launch(stream, &kernel, &op, sizeof op, NULL));
    const gpst_result idle = gpsti_stream_wait_idle(stream);
    GPSTI_FAIL_IF(GPST_FAILED(op->result), op->result, "%s", op->reason);
    return idle;
}

GPSTI_INTERN gpst_result gpsti_nvjpeg_version(char* out, size_t out_bytes) {
    int numbers[3] = {0, 0, 0};
    GPSTI_TRY(gpsti_library_load(&gpsti_nvjpeg_library));
    for (int i = 0; i < 3; i++)
        GPSTI_NVJPEG_TRY(GetProperty, i, &numbers[i]);
    gpsti_format(out, out_bytes, "%d.%d.%d", numbers[0], numbers[1], numbers[2]);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_nvjpeg_load(gpsti_host* host, gpsti_nvjpeg** out) {
    *out = NULL;
    GPSTI_TRY(gpsti_library_load(&gpsti_nvjpeg_library));
    gpsti_nvjpeg* const self = (gpsti_nvjpeg*)gpsti_alloc(host, sizeof *self);
    if (!self)
        return GPST_ERROR_MEMORY;
    self->host = host;
    self->batch_chroma = GPSTI_NVJPEG_GRAY;
    *out = self;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_nvjpeg_worker_free(const gpsti_nvjpeg* self, gpsti_nvjpeg_worker* worker) {
    if (worker->encoders)
        gpsti_free(self->host, worker->encoders, worker->encoder_room * sizeof *worker->encoders);
    memset(worker, 0, sizeof *worker);
}

GPSTI_INTERN void gpsti_nvjpeg_unload(gpsti_nvjpeg* self) {
    if (!self)
        return;
    gpsti_nvjpeg_free_lists(self);
    gpsti_free(self->host, self, sizeof *self);
}
