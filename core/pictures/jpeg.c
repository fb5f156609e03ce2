/* core/pictures/jpeg.c -- JPEG files to pixels through libturbojpeg, which is loaded here. What its warnings say
   decides nothing: the same words stand for harmless faults and for damage. A file is mended, then decoded strictly. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"

#include <string.h>

/* ---- libturbojpeg ------------------------------------------------------------------------------------ */

#define GPSTI_TJ_FATAL 1 /* the other error code is of warnings */
#define GPSTI_JPEG_TEXT_BYTES 200

static gpsti_jpeg_calls gpsti_jpeg_turbo;

#if defined(_WIN32)
GPSTI_PRIVATE const char* const gpsti_jpeg_names[] = {"turbojpeg.dll", "libturbojpeg.dll", NULL};
#elif defined(__APPLE__)
GPSTI_PRIVATE const char* const gpsti_jpeg_names[] = {"libturbojpeg.0.dylib", "libturbojpeg.dylib",
                                                      "/opt/homebrew/opt/jpeg-turbo/lib/libturbojpeg.dylib",
                                                      "/usr/local/opt/jpeg-turbo/lib/libturbojpeg.dylib", NULL};
#else
GPSTI_PRIVATE const char* const gpsti_jpeg_names[] = {"libturbojpeg.so.0", "libturbojpeg.so", NULL};
#endif

GPSTI_PRIVATE const gpsti_symbol gpsti_jpeg_symbols[] = {
    {"tjInitDecompress", offsetof(gpsti_jpeg_calls, init_decompress), false},
    {"tjInitCompress", offsetof(gpsti_jpeg_calls, init_compress), false},
    {"tjDestroy", offsetof(gpsti_jpeg_calls, destroy), false},
    {"tjGetErrorStr2", offsetof(gpsti_jpeg_calls, error_text), false},
    {"tjGetErrorCode", offsetof(gpsti_jpeg_calls, error_code), false},
    {"tjDecompressHeader3", offsetof(gpsti_jpeg_calls, header), false},
    {"tjDecompress2", offsetof(gpsti_jpeg_calls, decompress), false},
    {"tjDecompressToYUVPlanes", offsetof(gpsti_jpeg_calls, decompress_planes), false},
    {"tjBufSize", offsetof(gpsti_jpeg_calls, bound), false},
    {"tjCompress2", offsetof(gpsti_jpeg_calls, compress), false},
    {"tj3Set", offsetof(gpsti_jpeg_calls, set), true},
    {NULL, 0, false},
};

static gpsti_library gpsti_jpeg_library = {
    "libturbojpeg", "libturbojpeg 2.1 or later", "GPUSTAGE_LIBTURBOJPEG", gpsti_jpeg_names, gpsti_jpeg_symbols,
    &gpsti_jpeg_turbo, {0}, {0}, {0}};

/* "12 extraneous bytes before marker 0xd9" are counted from where its decoder had read to, up to 8 bytes late. */
GPSTI_PRIVATE void gpsti_jpeg_reword(char text[GPSTI_JPEG_TEXT_BYTES]) {
    const char* const found = strstr(text, "extraneous bytes before marker ");
    char marker[8] = "";
    if (!found)
        return;
    gpsti_copy_text(marker, sizeof marker, found + strlen("extraneous bytes before marker "));
    gpsti_format(text, GPSTI_JPEG_TEXT_BYTES,
                 "there are more data than pixels before marker %s: damage, or added bytes", marker);
}

/* MEMORY, or result. 3 can fail without an error of its own to tell. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_read_error(const gpst_jpeg* self, void* handle, gpst_result result,
                                                char text[GPSTI_JPEG_TEXT_BYTES]) {
    const bool fatal = !handle || self->calls->error_code(handle) == GPSTI_TJ_FATAL;
    const char* const found = self->calls->error_text(handle);
    const bool tells = strcmp(found, "No error") != 0;
    gpsti_copy_text(text, GPSTI_JPEG_TEXT_BYTES, tells ? found : "libturbojpeg gives no reason");
    gpsti_jpeg_reword(text);
    return fatal && strstr(text, "emory") ? GPST_ERROR_MEMORY : result;
}

GPSTI_INTERN gpst_result gpsti_jpeg_fail(const gpst_jpeg* self, void* handle, gpst_result result) {
    char text[GPSTI_JPEG_TEXT_BYTES];
    result = gpsti_jpeg_read_error(self, handle, result, text);
    return gpsti_fail(result, "JPEG: %s", text);
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_init(gpst_jpeg* self) {
    self->calls = &gpsti_jpeg_turbo;
    self->decoder = self->calls->init_decompress();
    if (self->decoder)
        self->encoder = self->calls->init_compress();
    return self->encoder ? GPST_OK : gpsti_jpeg_fail(self, NULL, GPST_ERROR_MEMORY);
}

GPST_API gpst_result gpst_jpeg_create_versioned(uint32_t version, size_t info_bytes, const gpst_allocator* allocator,
                                                gpst_jpeg** out) {
    gpsti_host host;
    GPSTI_OUT_NONE(out);
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_jpeg_create: out=NULL: required");
    GPSTI_TRY(gpsti_check_version("gpst_jpeg_create", version, info_bytes, sizeof(gpst_jpeg_info)));
    GPSTI_FAIL_IF(allocator && !allocator->alloc != !allocator->free, GPST_ERROR_ARGUMENT,
                  "gpst_jpeg_create: allocator: both functions or neither");
    GPSTI_TRY(gpsti_library_load(&gpsti_jpeg_library));
    gpsti_host_init(&host, allocator, NULL);
    gpst_jpeg* const self = (gpst_jpeg*)gpsti_alloc(&host, sizeof *self);
    if (!self)
        return GPST_ERROR_MEMORY;
    self->host = host;
    const gpst_result result = gpsti_jpeg_init(self);
    if (GPST_FAILED(result)) {
        gpst_jpeg_destroy(self);
        return result;
    }
    *out = self;
    return GPST_OK;
}

GPST_API void gpst_jpeg_destroy(gpst_jpeg* jpeg) {
    if (!jpeg)
        return;
    void* const handles[] = {jpeg->decoder, jpeg->encoder, jpeg->optimiser};
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
        if (handles[i])
            (void)jpeg->calls->destroy(handles[i]);
    gpsti_host host = jpeg->host;
    gpsti_free(&host, jpeg, sizeof *jpeg);
}

GPSTI_INTERN int gpsti_jpeg_pixels(gpst_format format) {
    switch (format) {
    case GPST_FORMAT_GRAY:
        return 6;
    case GPST_FORMAT_BGR:
        return 1;
    case GPST_FORMAT_RGBA:
        return 7;
    case GPST_FORMAT_BGRA:
        return 8;
    default:
        return 0;
    }
}

GPSTI_INTERN gpsti_jpeg_rows gpsti_jpeg_rows_of(const gpst_image* image) {
    const bool up = image->pitch_bytes < 0;
    gpsti_jpeg_rows rows;
    rows.data = (uint8_t*)image->data + (up ? (ptrdiff_t)(image->pitch_bytes * ((int64_t)image->height - 1)) : 0);
    rows.pitch = (int)(up ? -image->pitch_bytes : image->pitch_bytes);
    rows.flags = up ? GPSTI_TJ_BOTTOM_UP : 0;
    return rows;
}

GPSTI_INTERN gpst_result gpsti_jpeg_check_pitch(const gpst_image* image, const char* function, const char* member) {
    GPSTI_FAIL_IF(image->pitch_bytes < -INT32_MAX || image->pitch_bytes > INT32_MAX, GPST_ERROR_UNSUPPORTED,
                  "%s: %s.pitch_bytes=%lld: up to %d is possible", function, member, (long long)image->pitch_bytes,
                  INT32_MAX);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_jpeg_check_options(const gpst_jpeg_encode_desc* desc, const char* where) {
    const bool asks = desc && (desc->optimise || desc->restart_rows > 0);
    if (!asks || GPST_FAILED(gpsti_library_load(&gpsti_jpeg_library)) || gpsti_jpeg_turbo.set)
        return GPST_OK;
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "%s.%s: needs libturbojpeg 3 or later; libturbojpeg 2 was found: %s",
                      where, desc->optimise ? "optimise" : "restart_rows", gpsti_jpeg_library.file);
}

/* ---- one decoding ------------------------------------------------------------------------------------ */

typedef struct gpsti_jpeg_job {
    gpst_jpeg* jpeg;
    const uint8_t* data;
    size_t bytes;
    gpst_image picture; /* resolved */
    bool keeps;
    gpsti_jpeg_header header;
    uint8_t* inks; /* of files of four components: width * height * 4 */
    char text[GPSTI_JPEG_TEXT_BYTES]; /* of the latest failure, which becomes the reason if nothing is made of it */
} gpsti_jpeg_job;

#define GPSTI_TJ_CMYK 11

/* A picture larger than the file's would be decoded in part, without a word. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_check_size(gpsti_jpeg_job* job, const uint8_t* data, unsigned long bytes) {
    int width = 0, height = 0, sampling = 0, colours = 0;
    (void)job->jpeg->calls->header(job->jpeg->decoder, data, bytes, &width, &height, &sampling, &colours);
    if (width <= 0 || height <= 0 ||
        ((uint32_t)width == job->picture.width && (uint32_t)height == job->picture.height))
        return GPST_OK;
    gpsti_format(job->text, sizeof job->text, "libturbojpeg sees %dx%d pixels, the header says %ux%u", width, height,
                 job->picture.width, job->picture.height);
    return GPST_ERROR_FORMAT;
}

GPSTI_PRIVATE int gpsti_jpeg_run_planes(const gpsti_jpeg_job* job, const uint8_t* data, unsigned long bytes,
                                        int flags) {
    const gpst_image* const picture = &job->picture;
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(picture);
    uint8_t* planes[3];
    int pitches[3];
    pitches[0] = (int)picture->pitch_bytes;
    pitches[1] = pitches[2] = (int)chroma.pitch_bytes;
    planes[0] = (uint8_t*)picture->data;
    planes[1] = planes[0] + (size_t)chroma.luma_rows * (size_t)picture->pitch_bytes;
    planes[2] = planes[1] + (size_t)chroma.height * (size_t)chroma.pitch_bytes;
    return job->jpeg->calls->decompress_planes(job->jpeg->decoder, data, bytes, planes, (int)picture->width, pitches,
                                               (int)picture->height, flags);
}

/* What the library returns, after a look at whether it sees the picture that we see. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_run(gpsti_jpeg_job* job, const uint8_t* data, size_t bytes, int flags,
                                         int* returned) {
    const gpsti_jpeg_calls* const calls = job->jpeg->calls;
    const gpst_image* const picture = &job->picture;
    const unsigned long n = (unsigned long)bytes;
    const int width = (int)picture->width, height = (int)picture->height;
    GPSTI_TRY(gpsti_jpeg_check_size(job, data, n));
    if (job->inks) {
        *returned = calls->decompress(job->jpeg->decoder, data, n, job->inks, width, 0, height, GPSTI_TJ_CMYK, flags);
        return GPST_OK;
    }
    if (gpsti_image_is_jpeg(picture->format)) {
        *returned = gpsti_jpeg_run_planes(job, data, n, flags);
        return GPST_OK;
    }
    const gpsti_jpeg_rows rows = gpsti_jpeg_rows_of(picture);
    *returned = calls->decompress(job->jpeg->decoder, data, n, rows.data, width, rows.pitch, height,
                                  gpsti_jpeg_pixels(picture->format), flags | rows.flags);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_run_strictly(gpsti_jpeg_job* job, const uint8_t* data, size_t bytes) {
    int returned = 0;
    GPSTI_TRY(gpsti_jpeg_run(job, data, bytes, GPSTI_TJ_STOP_ON_WARNING | GPSTI_TJ_LIMIT_SCANS, &returned));
    return returned == 0 ? GPST_OK : gpsti_jpeg_read_error(job->jpeg, job->jpeg->decoder, GPST_ERROR_FORMAT, job->text);
}

/* What a decoder that gives up leaves alone must not be what was there before: gray, opaque. */
GPSTI_PRIVATE void gpsti_jpeg_clear(const gpst_image* picture) {
    const size_t row_bytes = gpst_image_row_bytes(picture);
    const gpsti_jpeg_rows rows = gpsti_jpeg_rows_of(picture);
    for (uint32_t y = 0; y < picture->height; y++) {
        uint8_t* const row = rows.data + (size_t)rows.pitch * y;
        memset(row, 128, row_bytes);
        for (size_t i = 3; gpsti_image_channels(picture) == 4 && i < row_bytes; i += 4)
            row[i] = 255;
    }
}

GPSTI_PRIVATE void gpsti_jpeg_clear_planes(const gpst_image* picture) {
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(picture);
    uint8_t* row = (uint8_t*)picture->data;
    for (uint64_t y = 0; y < chroma.luma_rows; y++, row += picture->pitch_bytes)
        memset(row, 128, gpst_image_row_bytes(picture));
    for (uint64_t y = 0; y < 2 * (uint64_t)chroma.height; y++, row += chroma.pitch_bytes)
        memset(row, 128, chroma.width);
}

/* Takes what comes. An error behind a warning has the warning's code, so only what is fatal from the start fails. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_run_laxly(gpsti_jpeg_job* job, const uint8_t* data, size_t bytes,
                                               gpst_jpeg_note* note) {
    int returned = 0;
    if (!job->inks && gpsti_image_is_jpeg(job->picture.format))
        gpsti_jpeg_clear_planes(&job->picture);
    else if (!job->inks)
        gpsti_jpeg_clear(&job->picture);
    GPSTI_TRY(gpsti_jpeg_run(job, data, bytes, GPSTI_TJ_LIMIT_SCANS, &returned));
    if (returned != 0) {
        const bool fatal = job->jpeg->calls->error_code(job->jpeg->decoder) == GPSTI_TJ_FATAL;
        const gpst_result result =
            gpsti_jpeg_read_error(job->jpeg, job->jpeg->decoder, GPST_ERROR_FORMAT, job->text);
        if (fatal)
            return result;
    }
    note->damaged = true;
    gpsti_format(note->text, sizeof note->text, "damaged: %s", job->text);
    return GPST_OK;
}

/* ---- with mending ------------------------------------------------------------------------------------ */

/* What no decoder warns of: a scan that never came leaves its component gray, or coarse. */
GPSTI_PRIVATE bool gpsti_jpeg_lacks_scans(const gpsti_jpeg_job* job, bool ended) {
    return !job->header.has_all_components || (!ended && !job->header.has_all_bits);
}

/* was_tried: the file was decoded as it is, in vain, and its text is there. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_decode_copy(gpsti_jpeg_job* job, uint8_t* copy, bool was_tried,
                                                 gpst_jpeg_note* note) {
    const gpsti_jpeg_mended mended = gpsti_jpeg_mend(job->data, job->bytes, !job->header.info.progressive, copy);
    gpst_result result = GPST_ERROR_FORMAT;
    if (gpsti_jpeg_lacks_scans(job, mended.ended))
        gpsti_copy_text(job->text, sizeof job->text, "scans are missing");
    else if (mended.faults)
        result = gpsti_jpeg_run_strictly(job, copy, mended.bytes);
    else if (!was_tried)
        gpsti_copy_text(job->text, sizeof job->text, "a segment ends behind the file");
    if (!GPST_FAILED(result))
        gpsti_jpeg_note_mended(mended.faults, note);
    if (result != GPST_ERROR_FORMAT)
        return result;
    if (!job->keeps)
        return mended.ended ? GPST_ERROR_FORMAT : GPST_ERROR_TRUNCATED;
    return gpsti_jpeg_run_laxly(job, mended.faults ? copy : job->data, mended.faults ? mended.bytes : job->bytes, note);
}

/* Most files need no copy. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_decode_file(gpsti_jpeg_job* job, gpst_jpeg_note* note) {
    const bool tries = !job->header.faults && job->header.has_all_components;
    gpst_result result = GPST_OK;
    if (tries) {
        result = gpsti_jpeg_run_strictly(job, job->data, job->bytes);
        if (result != GPST_ERROR_FORMAT)
            return result;
    }
    uint8_t* const copy = (uint8_t*)gpsti_alloc(&job->jpeg->host, job->bytes + 2);
    if (!copy) {
        job->text[0] = 0; /* the reason is there */
        return GPST_ERROR_MEMORY;
    }
    result = gpsti_jpeg_decode_copy(job, copy, tries, note);
    gpsti_free(&job->jpeg->host, copy, job->bytes + 2);
    return result;
}

/* ---- inks -------------------------------------------------------------------------------------------- */

#define GPSTI_JPEG_INKS_NOTE "CMYK without an Adobe marker: its inks are taken for inverted, as with one"

/* a * b / 255, rounded. */
GPSTI_PRIVATE uint8_t gpsti_jpeg_multiply(uint32_t a, uint32_t b) {
    const uint32_t product = a * b + 128;
    return (uint8_t)(((product >> 8) + product) >> 8);
}

/* The inks are inverted in every file: those of the few writers that mean the contrary look the same, and nobody else
   takes them so. */
GPSTI_PRIVATE void gpsti_jpeg_mix(const gpsti_jpeg_job* job) {
    const gpst_image* const picture = &job->picture;
    const uint32_t n = gpsti_image_channels(picture);
    const bool swaps = picture->format == GPST_FORMAT_BGR || picture->format == GPST_FORMAT_BGRA;
    const uint8_t* ink = job->inks;
    for (uint32_t y = 0; y < picture->height; y++) {
        uint8_t* out = (uint8_t*)picture->data + (ptrdiff_t)(picture->pitch_bytes * (int64_t)y);
        for (uint32_t x = 0; x < picture->width; x++, ink += 4, out += n) {
            for (uint32_t c = 0; c < 3; c++)
                out[swaps ? 2 - c : c] = gpsti_jpeg_multiply(ink[c], ink[3]);
            if (n == 4)
                out[3] = 255;
        }
    }
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_decode_inks(gpsti_jpeg_job* job, gpst_jpeg_note* note) {
    const uint64_t wanted = (uint64_t)4 * job->picture.width * job->picture.height;
    const size_t bytes = (size_t)wanted;
    GPSTI_FAIL_IF(bytes != wanted, GPST_ERROR_OVERFLOW, "JPEG: %llu bytes of inks do not fit in memory",
                  (unsigned long long)wanted);
    job->inks = (uint8_t*)gpsti_alloc(&job->jpeg->host, bytes);
    if (!job->inks)
        return GPST_ERROR_MEMORY;
    const gpst_result result = gpsti_jpeg_decode_file(job, note);
    if (!GPST_FAILED(result))
        gpsti_jpeg_mix(job);
    const size_t used = strlen(note->text);
    if (!GPST_FAILED(result) && !job->header.has_adobe)
        gpsti_format(note->text + used, sizeof note->text - used, "%s" GPSTI_JPEG_INKS_NOTE, used > 0 ? "; " : "");
    gpsti_free(&job->jpeg->host, job->inks, bytes);
    return result;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_jpeg_check_picture(const gpst_image* picture, const gpst_jpeg_info* info) {
    const char* const function = "gpst_jpeg_decode";
    GPSTI_TRY(gpsti_image_check(picture, function, "picture"));
    const gpst_image image = gpsti_image_resolved(picture);
    GPSTI_FAIL_IF(image.dtype != GPST_DTYPE_U8 || (image.layout != GPST_LAYOUT_HWC && image.format != GPST_FORMAT_GRAY),
                  GPST_ERROR_ARGUMENT, "%s: picture.dtype=%d, layout=%d: must be U8 and HWC", function,
                  (int)image.dtype, (int)image.layout);
    GPSTI_FAIL_IF(image.width != info->width || image.height != info->height, GPST_ERROR_ARGUMENT,
                  "%s: picture: %ux%u, but the file has %ux%u pixels", function, image.width, image.height, info->width,
                  info->height);
    GPSTI_FAIL_IF(image.format == GPST_FORMAT_TENSOR || image.format == GPST_FORMAT_NV12 ||
                      image.format == GPST_FORMAT_I420,
                  GPST_ERROR_ARGUMENT, "%s: picture.format=%d: must be GRAY, RGB, BGR, RGBA, BGRA or the file's planes",
                  function, (int)image.format);
    GPSTI_FAIL_IF(gpsti_image_is_jpeg(image.format) && image.format != info->planes, GPST_ERROR_ARGUMENT,
                  "%s: picture.format=%d: the file's planes are %d (0: none that could be had)", function,
                  (int)image.format, (int)info->planes);
    GPSTI_FAIL_IF(image.format == GPST_FORMAT_GRAY && info->n_components == 4, GPST_ERROR_UNSUPPORTED,
                  "%s: picture.format=GRAY: not of CMYK and YCCK files", function);
    return gpsti_jpeg_check_pitch(&image, function, "picture");
}

GPST_API gpst_result gpst_jpeg_decode(gpst_jpeg* jpeg, const void* data, size_t bytes,
                                      const gpst_jpeg_decode_desc* desc, const gpst_image* picture,
                                      gpst_jpeg_note* note) {
    const char* const function = "gpst_jpeg_decode";
    const gpst_damage on_damage = desc ? desc->on_damage : GPST_DAMAGE_FAIL;
    gpsti_jpeg_job job;
    gpst_jpeg_note own;
    gpst_jpeg_note* const told = note ? note : &own;
    memset(told, 0, sizeof *told);
    GPSTI_FAIL_IF(!jpeg || !picture || (!data && bytes > 0), GPST_ERROR_ARGUMENT,
                  "%s: jpeg, data and picture: required", function);
    GPSTI_FAIL_IF(on_damage != GPST_DAMAGE_FAIL && on_damage != GPST_DAMAGE_KEEP, GPST_ERROR_ARGUMENT,
                  "%s: desc.on_damage=%d: must be FAIL or KEEP", function, (int)on_damage);
    memset(&job, 0, sizeof job);
    job.jpeg = jpeg;
    job.data = (const uint8_t*)data;
    job.bytes = bytes;
    job.keeps = on_damage == GPST_DAMAGE_KEEP;
    GPSTI_TRY(gpsti_jpeg_read(job.data, bytes, &job.header));
    GPSTI_TRY(gpsti_jpeg_check_picture(picture, &job.header.info));
    GPSTI_FAIL_IF((unsigned long)bytes != bytes, GPST_ERROR_UNSUPPORTED, "JPEG: a file of %zu bytes is too large here",
                  bytes);
    job.picture = gpsti_image_resolved(picture);
    const gpst_result result =
        job.header.info.n_components == 4 ? gpsti_jpeg_decode_inks(&job, told) : gpsti_jpeg_decode_file(&job, told);
    return GPST_FAILED(result) && job.text[0] ? gpsti_fail(result, "JPEG: %s", job.text) : result;
}
