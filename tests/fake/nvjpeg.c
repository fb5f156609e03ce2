/* tests/fake/nvjpeg.c -- a stand-in for NVIDIA's nvJPEG: its functions, computed by libturbojpeg in memory of the host.
   What it is told it reads from the environment at each call:

   FAKE_NVJPEG_ENGINES  of the hardware decoder; 7 without it; 0: there is none (status 7)
   FAKE_NVJPEG_FAIL     "nvjpegDecodeBatched:2:5": the second call of that function since fake_nvjpeg_reset fails with
                        status 5; "*:2:5": the second call of any, but for those that destroy
   FAKE_NVJPEG_LENGTH   1: a file comes out one byte shorter than promised

   The hardware gives libturbojpeg's planes. The other decoders change every 64th sample of them by 1, the one that
   reads Huffman codes on a GPU at the first, the other at the second of 64. Built a second time, with FAKE_NVJPEG_OLD,
   it lacks functions. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <turbojpeg.h>

#define FAKE_API __attribute__((visibility("default")))

enum { OK = 0, INVALID = 2, BAD_JPEG = 3, UNSUPPORTED = 4, NO_MEMORY = 5, ARCH = 7 };
enum { HYBRID = 1, GPU_HYBRID = 2, HARDWARE = 3, PLANES = 1 };

typedef enum kind {
    LIBRARY = 0x51ab1e01,
    STATE,
    PARSED,
    DECODER,
    PINNED,
    DEVICE,
    DECODE_PARAMS,
    ENCODER,
    ENCODE_PARAMS
} kind;

typedef struct handle {
    kind kind;
    struct handle* owner; /* the library it was made in, or the decoder */
    struct handle *before, *after; /* all that live, so that what a lost device leaves is no leak of the test's */
    int n_owned;
    int backend;
    int batch_n, format;
    int most_width, most_height, most_chroma; /* that a batch is prepared for */
    bool prepared, pinned, device, on_host, transferred;
    const unsigned char* data;
    size_t bytes;
    int quality, chroma, optimise;
    unsigned char* file;
    unsigned long file_bytes;
} handle;

typedef struct image {
    unsigned char* planes[4];
    size_t pitches[4];
} image;

/* ---- what tests ask and set -------------------------------------------------------------------------------- */

static int n_live, n_misused, n_calls, n_fired, n_prepared;
static int n_decoded[4]; /* by backend */

#define ADD(counter, amount) (void)__atomic_fetch_add(&(counter), (amount), __ATOMIC_ACQ_REL)
#define LOAD(counter) __atomic_load_n(&(counter), __ATOMIC_ACQUIRE)

FAKE_API void fake_nvjpeg_reset(void) {
    __atomic_store_n(&n_calls, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&n_fired, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&n_prepared, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < 4; i++)
        __atomic_store_n(&n_decoded[i], 0, __ATOMIC_RELEASE);
}

FAKE_API int fake_nvjpeg_live(void) { return LOAD(n_live); }         /* handles */
FAKE_API int fake_nvjpeg_misused(void) { return LOAD(n_misused); }   /* since it was loaded */
FAKE_API int fake_nvjpeg_calls(void) { return LOAD(n_calls); }       /* that could have failed, since the reset */
FAKE_API int fake_nvjpeg_fired(void) { return LOAD(n_fired); }       /* faults, since the reset */
FAKE_API int fake_nvjpeg_prepared(void) { return LOAD(n_prepared); } /* batches, since the reset */
FAKE_API int fake_nvjpeg_decoded(int backend) { return LOAD(n_decoded[backend]); }

static int environment(const char* name, int otherwise) {
    const char* const text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* The status that this call is to fail with. Where one function is named only its calls are counted. */
static int fault(const char* function) {
    char name[64] = "";
    int n = 0, status = 0;
    const char* const text = getenv("FAKE_NVJPEG_FAIL");
    if (!text || sscanf(text, "%63[^:]:%d:%d", name, &n, &status) != 3)
        return OK;
    if (strcmp(name, "*") != 0 && strcmp(name, function) != 0)
        return OK;
    if (__atomic_add_fetch(&n_calls, 1, __ATOMIC_ACQ_REL) != n)
        return OK;
    ADD(n_fired, 1);
    return status;
}

static int misuse(const char* function) {
    fprintf(stderr, "fake nvJPEG: %s: misused\n", function);
    ADD(n_misused, 1);
    return INVALID;
}

#define NEED(condition)              \
    do {                             \
        if (!(condition))            \
            return misuse(__func__); \
    } while (0)
#define ENTER(condition)                    \
    do {                                    \
        NEED(condition);                    \
        const int status = fault(__func__); \
        if (status != OK)                   \
            return status;                  \
    } while (0)

static bool is(const void* it, kind kind_) { return it && ((const handle*)it)->kind == kind_; }

/* ---- handles ------------------------------------------------------------------------------------------------- */

static handle* first_handle;
static pthread_mutex_t handles_mutex = PTHREAD_MUTEX_INITIALIZER;

static void list_handle(handle* made) {
    pthread_mutex_lock(&handles_mutex);
    made->after = first_handle;
    if (first_handle)
        first_handle->before = made;
    first_handle = made;
    pthread_mutex_unlock(&handles_mutex);
}

static void unlist_handle(handle* gone) {
    pthread_mutex_lock(&handles_mutex);
    *(gone->before ? &gone->before->after : &first_handle) = gone->after;
    if (gone->after)
        gone->after->before = gone->before;
    pthread_mutex_unlock(&handles_mutex);
}

static int make(handle* owner, kind kind_, void** out) {
    handle* const made = (handle*)calloc(1, sizeof *made);
    if (!made)
        return NO_MEMORY;
    made->kind = kind_;
    made->owner = owner;
    if (owner)
        ADD(owner->n_owned, 1);
    ADD(n_live, 1);
    list_handle(made);
    *out = made;
    return OK;
}

static int destroy(const char* function, void* it, kind kind_) {
    handle* const gone = (handle*)it;
    if (!is(it, kind_) || LOAD(gone->n_owned) != 0)
        return misuse(function);
    if (gone->owner)
        ADD(gone->owner->n_owned, -1);
    ADD(n_live, -1);
    unlist_handle(gone);
    free(gone->file);
    gone->kind = (kind)0;
    free(gone);
    return OK;
}

#define DESTROY(name, kind_) \
    FAKE_API int name(void* it) { return destroy(#name, it, kind_); }
DESTROY(nvjpegDestroy, LIBRARY)
DESTROY(nvjpegJpegStateDestroy, STATE)
DESTROY(nvjpegJpegStreamDestroy, PARSED)
DESTROY(nvjpegDecoderDestroy, DECODER)
DESTROY(nvjpegBufferPinnedDestroy, PINNED)
DESTROY(nvjpegBufferDeviceDestroy, DEVICE)
DESTROY(nvjpegDecodeParamsDestroy, DECODE_PARAMS)
DESTROY(nvjpegEncoderStateDestroy, ENCODER)
DESTROY(nvjpegEncoderParamsDestroy, ENCODE_PARAMS)

FAKE_API int nvjpegGetProperty(int property, int* value) {
    static const int version[3] = {13, 0, 99};
    ENTER(property >= 0 && property < 3 && value);
    *value = version[property];
    return OK;
}

FAKE_API int nvjpegCreateEx(int backend, void* device, void* pinned, unsigned flags, void** out) {
    ENTER(out && !device && !pinned && (backend == 0 || backend == HARDWARE) && flags == 0);
    if (backend == HARDWARE && environment("FAKE_NVJPEG_ENGINES", 7) == 0)
        return ARCH;
    const int status = make(NULL, LIBRARY, out);
    if (status == OK) {
        ((handle*)*out)->backend = backend;
    }
    return status;
}

FAKE_API int nvjpegJpegStateCreate(void* library, void** out) {
    ENTER(is(library, LIBRARY));
    return make((handle*)library, STATE, out);
}

FAKE_API int nvjpegJpegStreamCreate(void* library, void** out) {
    ENTER(is(library, LIBRARY));
    return make((handle*)library, PARSED, out);
}

FAKE_API int nvjpegBufferPinnedCreate(void* library, void* allocator, void** out) {
    ENTER(is(library, LIBRARY) && !allocator);
    return make((handle*)library, PINNED, out);
}

FAKE_API int nvjpegBufferDeviceCreate(void* library, void* allocator, void** out) {
    ENTER(is(library, LIBRARY) && !allocator);
    return make((handle*)library, DEVICE, out);
}

FAKE_API int nvjpegDecodeParamsCreate(void* library, void** out) {
    ENTER(is(library, LIBRARY));
    return make((handle*)library, DECODE_PARAMS, out);
}

FAKE_API int nvjpegDecoderCreate(void* library, int backend, void** out) {
    ENTER(is(library, LIBRARY) && (backend == HYBRID || backend == GPU_HYBRID));
    const int status = make((handle*)library, DECODER, out);
    if (status == OK)
        ((handle*)*out)->backend = backend;
    return status;
}

FAKE_API int nvjpegDecoderStateCreate(void* library, void* decoder, void** out) {
    ENTER(is(library, LIBRARY) && is(decoder, DECODER));
    return make((handle*)decoder, STATE, out);
}

FAKE_API int nvjpegEncoderStateCreate(void* library, void** out, void* stream) {
    ENTER(is(library, LIBRARY) && !stream);
    return make((handle*)library, ENCODER, out);
}

FAKE_API int nvjpegEncoderParamsCreate(void* library, void** out, void* stream) {
    ENTER(is(library, LIBRARY) && !stream);
    return make((handle*)library, ENCODE_PARAMS, out);
}

/* ---- decoding -------------------------------------------------------------------------------------------------- */

/* nvJPEG's number of libturbojpeg's. */
static int chroma_of(int sampling) {
    switch (sampling) {
    case TJSAMP_444:
        return 0;
    case TJSAMP_422:
        return 1;
    case TJSAMP_420:
        return 2;
    case TJSAMP_440:
        return 3;
    case TJSAMP_411:
        return 4;
    case TJSAMP_GRAY:
        return 6;
    default:
        return -1;
    }
}

typedef struct header {
    int width, height, sampling;
    bool progressive;
} header;

static bool is_progressive(const unsigned char* data, size_t bytes) {
    for (size_t at = 2; at + 4 <= bytes && data[at] == 0xff && data[at + 1] != 0xda;
         at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]))
        if (data[at + 1] == 0xc2)
            return true;
    return false;
}

static int read_header(const unsigned char* data, size_t bytes, header* out) {
    int colours = 0;
    tjhandle const turbo = tjInitDecompress();
    const int failed =
        tjDecompressHeader3(turbo, data, (unsigned long)bytes, &out->width, &out->height, &out->sampling, &colours);
    tjDestroy(turbo);
    out->progressive = !failed && is_progressive(data, bytes);
    return failed ? BAD_JPEG : OK;
}

/* What is no whole file it refuses, as the real one does in part. */
static int decode(const unsigned char* data, size_t bytes, const image* to, int backend) {
    header h;
    int pitches[3];
    unsigned char* planes[3];
    const int status = read_header(data, bytes, &h);
    if (status != OK)
        return status;
    if (chroma_of(h.sampling) < 0 || (h.progressive && backend != HYBRID))
        return UNSUPPORTED;
    if (bytes < 2 || data[bytes - 2] != 0xff || data[bytes - 1] != 0xd9)
        return BAD_JPEG;
    for (int i = 0; i < 3; i++) {
        planes[i] = to->planes[i];
        pitches[i] = (int)to->pitches[i];
    }
    tjhandle const turbo = tjInitDecompress();
    const int failed = tjDecompressToYUVPlanes(turbo, data, (unsigned long)bytes, planes, h.width, pitches, h.height,
                                               TJFLAG_STOPONWARNING);
    tjDestroy(turbo);
    if (failed)
        return BAD_JPEG;
    for (int p = 0; p < (h.sampling == TJSAMP_GRAY ? 1 : 3) && backend != HARDWARE; p++) {
        const size_t width = (size_t)tjPlaneWidth(p, h.width, h.sampling);
        const size_t n = width * (size_t)tjPlaneHeight(p, h.height, h.sampling);
        for (size_t i = backend == GPU_HYBRID ? 0 : 1; i < n; i += 64)
            planes[p][i / width * to->pitches[p] + i % width] ^= 1;
    }
    ADD(n_decoded[backend], 1);
    return OK;
}

FAKE_API int nvjpegGetImageInfo(void* library, const unsigned char* data, size_t bytes, int* n, int* chroma,
                                int* widths, int* heights) {
    header h;
    ENTER(is(library, LIBRARY) && data && n && chroma && widths && heights);
    const int status = read_header(data, bytes, &h);
    if (status != OK)
        return status;
    *n = h.sampling == TJSAMP_GRAY ? 1 : 3;
    *chroma = chroma_of(h.sampling);
    widths[0] = h.width;
    heights[0] = h.height;
    return OK;
}

FAKE_API int nvjpegDecodeBatchedInitialize(void* library, void* state, int n, int n_threads, int format) {
    ENTER(is(library, LIBRARY) && is(state, STATE) && n > 0 && n_threads > 0 && format == PLANES);
    ((handle*)state)->batch_n = n;
    ((handle*)state)->prepared = false;
    ADD(n_prepared, 1);
    return OK;
}

/* Is a batch prepared for pictures like this one, too? */
static bool fits(const handle* state, const header* h) {
    static const int samples[7] = {12, 8, 6, 8, 0, 0, 4}; /* of four pixels */
    const int chroma = chroma_of(h->sampling);
    return chroma < 0 || chroma == 4 ||
           (h->width <= state->most_width && h->height <= state->most_height &&
            samples[chroma] <= samples[state->most_chroma]);
}

FAKE_API int nvjpegDecodeBatched(void* library, void* state, const unsigned char* const* data, const size_t* bytes,
                                 image* to, void* stream) {
    const handle* const own = (const handle*)state;
    ENTER(is(library, LIBRARY) && is(state, STATE) && own->prepared && data && bytes && to && !stream);
    for (int i = 0; i < own->batch_n; i++) {
        header h;
        NEED(read_header(data[i], bytes[i], &h) != OK || fits(own, &h));
        const int status = decode(data[i], bytes[i], &to[i], HARDWARE);
        if (status != OK)
            return status;
    }
    return OK;
}

FAKE_API int nvjpegJpegStreamParse(void* library, const unsigned char* data, size_t bytes, int save_metadata,
                                   int save_data, void* parsed) {
    header h;
    ENTER(is(library, LIBRARY) && is(parsed, PARSED) && data && !save_metadata && !save_data);
    ((handle*)parsed)->data = data;
    ((handle*)parsed)->bytes = bytes;
    return read_header(data, bytes, &h);
}

FAKE_API int nvjpegStateAttachPinnedBuffer(void* state, void* buffer) {
    ENTER(is(state, STATE) && is(buffer, PINNED));
    ((handle*)state)->pinned = true;
    return OK;
}

FAKE_API int nvjpegStateAttachDeviceBuffer(void* state, void* buffer) {
    ENTER(is(state, STATE) && is(buffer, DEVICE));
    ((handle*)state)->device = true;
    return OK;
}

FAKE_API int nvjpegDecodeParamsSetOutputFormat(void* params, int format) {
    ENTER(is(params, DECODE_PARAMS) && format == PLANES);
    ((handle*)params)->format = format;
    return OK;
}

FAKE_API int nvjpegDecodeJpegHost(void* library, void* decoder, void* state, void* params, void* parsed) {
    handle* const own = (handle*)state;
    ENTER(is(library, LIBRARY) && is(decoder, DECODER) && is(state, STATE) && own->owner == decoder && own->pinned &&
          is(params, DECODE_PARAMS) && is(parsed, PARSED));
    own->data = ((handle*)parsed)->data;
    own->bytes = ((handle*)parsed)->bytes;
    own->on_host = true;
    return OK;
}

FAKE_API int nvjpegDecodeJpegTransferToDevice(void* library, void* decoder, void* state, void* parsed, void* stream) {
    handle* const own = (handle*)state;
    ENTER(is(library, LIBRARY) && is(decoder, DECODER) && is(state, STATE) && own->on_host && own->device &&
          is(parsed, PARSED) && !stream);
    own->on_host = false;
    own->transferred = true;
    return OK;
}

FAKE_API int nvjpegDecodeJpegDevice(void* library, void* decoder, void* state, image* to, void* stream) {
    handle* const own = (handle*)state;
    ENTER(is(library, LIBRARY) && is(decoder, DECODER) && is(state, STATE) && own->transferred && to && !stream);
    own->transferred = false;
    return decode(own->data, own->bytes, to, ((const handle*)decoder)->backend);
}

/* ---- encoding -------------------------------------------------------------------------------------------------- */

FAKE_API int nvjpegEncoderParamsSetQuality(void* params, int quality, void* stream) {
    ENTER(is(params, ENCODE_PARAMS) && quality >= 1 && quality <= 100 && !stream);
    ((handle*)params)->quality = quality;
    return OK;
}

FAKE_API int nvjpegEncoderParamsSetOptimizedHuffman(void* params, int optimise, void* stream) {
    ENTER(is(params, ENCODE_PARAMS) && !stream);
    ((handle*)params)->optimise = optimise;
    return OK;
}

FAKE_API int nvjpegEncoderParamsSetSamplingFactors(void* params, int chroma, void* stream) {
    ENTER(is(params, ENCODE_PARAMS) && chroma >= 0 && chroma <= 2 && !stream);
    ((handle*)params)->chroma = chroma;
    return OK;
}

/* libturbojpeg's file; where its own tables were asked for it says so in a comment. */
FAKE_API int nvjpegEncodeImage(void* library, void* encoder, void* params, const image* from, int format, int width,
                               int height, void* stream) {
    static const int samplings[3] = {TJSAMP_444, TJSAMP_422, TJSAMP_420};
    static const unsigned char comment[] = "\xff\xfe\x00\x0boptimised"; /* its length: 2 bytes and 9 */
    const handle* const how = (const handle*)params;
    handle* const own = (handle*)encoder;
    unsigned char* file = NULL;
    unsigned long bytes = 0;
    ENTER(is(library, LIBRARY) && is(encoder, ENCODER) && is(params, ENCODE_PARAMS) && from &&
          (format == 5 || format == 6) && !stream);
    tjhandle const turbo = tjInitCompress();
    const int failed =
        tjCompress2(turbo, from->planes[0], width, (int)from->pitches[0], height, format == 5 ? TJPF_RGB : TJPF_BGR,
                    &file, &bytes, samplings[how->chroma], how->quality, 0);
    const size_t more = how->optimise ? sizeof comment - 1 : 0;
    free(own->file);
    own->file = failed ? NULL : (unsigned char*)malloc(bytes + more);
    if (own->file) {
        memcpy(own->file, file, 2);
        memcpy(own->file + 2, comment, more);
        memcpy(own->file + 2 + more, file + 2, bytes - 2);
    }
    own->file_bytes = bytes + more;
    tjFree(file);
    tjDestroy(turbo);
    return own->file ? OK : UNSUPPORTED;
}

#if !defined(FAKE_NVJPEG_OLD)
FAKE_API int nvjpegGetHardwareDecoderInfo(void* library, unsigned* n_engines, unsigned* n_cores) {
    ENTER(is(library, LIBRARY) && n_engines && n_cores);
    *n_engines = (unsigned)environment("FAKE_NVJPEG_ENGINES", 7);
    *n_cores = 1;
    return OK;
}

FAKE_API int nvjpegDecodeBatchedPreAllocate(void* library, void* state, int n, int width, int height, int chroma,
                                            int format) {
    ENTER(is(library, LIBRARY) && is(state, STATE) && n == ((handle*)state)->batch_n && width > 0 && height > 0 &&
          chroma >= 0 && format == PLANES);
    handle* const own = (handle*)state;
    own->prepared = true;
    own->most_width = width, own->most_height = height, own->most_chroma = chroma;
    return OK;
}

FAKE_API int nvjpegEncodeRetrieveBitstream(void* library, void* encoder, unsigned char* out, size_t* bytes,
                                           void* stream) {
    const handle* const own = (const handle*)encoder;
    ENTER(is(library, LIBRARY) && is(encoder, ENCODER) && own->file && bytes && !stream);
    if (out && *bytes < own->file_bytes)
        return INVALID;
    *bytes = own->file_bytes;
    if (out)
        memcpy(out, own->file, own->file_bytes);
    if (out && environment("FAKE_NVJPEG_LENGTH", 0) == 1)
        *bytes -= 1;
    return OK;
}
#endif
