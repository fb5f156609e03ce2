/* tools/gpustage/codec_jpeg.c -- JPEG, baseline and progressive, through libjpeg-turbo. The header is read
   here, so that a picture's size, and what the library will allocate for it, is known and judged before it does. */
#include "codec_internal.h"

#if defined(GPST_TOOL_JPEG)
#include <string.h>

#include <turbojpeg.h>
#endif

static bool codec_jpeg_is(const uint8_t* data, size_t bytes) {
    return bytes >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

#if defined(GPST_TOOL_JPEG)

bool codec_jpeg_create(codec* self) {
    self->jpeg_decoder = tjInitDecompress();
    self->jpeg_encoder = tjInitCompress();
    return self->jpeg_decoder && self->jpeg_encoder;
}

void codec_jpeg_destroy(codec* self) {
    if (self->jpeg_decoder)
        tjDestroy(self->jpeg_decoder);
    if (self->jpeg_encoder)
        tjDestroy(self->jpeg_encoder);
}

static uint32_t codec_jpeg_u16(const uint8_t* at) { return (uint32_t)at[0] << 8 | at[1]; }

/* A start-of-frame marker; C4, C8 and CC of that range are something else. */
static bool codec_jpeg_is_frame(uint8_t marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* The next marker with a segment, from *at on: *at is on its 0xff. Lengths are checked: the segment is there whole. */
static gpst_result codec_jpeg_segment(const uint8_t* data, size_t bytes, size_t* at, char* reason) {
    while (*at + 4 <= bytes) {
        if (data[*at] != 0xff)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: byte %zu is not a marker", *at);
        const uint8_t marker = data[*at + 1];
        if (marker == 0xff) { /* a fill byte */
            *at += 1;
            continue;
        }
        if (marker == 0xd9)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: there is no picture before the end");
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) { /* no segment behind these */
            *at += 2;
            continue;
        }
        const uint32_t length = codec_jpeg_u16(data + *at + 2);
        if (length < 2)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: a segment of %u bytes at byte %zu", length,
                              *at);
        if (length > bytes - *at - 2)
            break;
        return GPST_OK;
    }
    return codec_fail(reason, GPST_ERROR_TRUNCATED, "JPEG: the header ends too early");
}

/* The frame segment, on its marker; 8 bytes of it are there. */
static gpst_result codec_jpeg_find_frame(const uint8_t* data, size_t bytes, const uint8_t** frame,
                                         char* reason) {
    for (size_t at = 2;; at += 2 + (size_t)codec_jpeg_u16(data + at + 2)) {
        const gpst_result result = codec_jpeg_segment(data, bytes, &at, reason);
        if (GPST_FAILED(result))
            return result;
        const uint32_t length = codec_jpeg_u16(data + at + 2);
        if (data[at + 1] == 0xda)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: there is no frame header before the data");
        if (!codec_jpeg_is_frame(data[at + 1]))
            continue;
        if (length < 8)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: a segment of %u bytes at byte %zu", length, at);
        *frame = data + at;
        return GPST_OK;
    }
}

/* The header of the first scan, behind the frame; at least its count of components is there. */
static gpst_result codec_jpeg_find_scan(const uint8_t* data, size_t bytes, const uint8_t* frame,
                                        const uint8_t** scan, char* reason) {
    for (size_t at = (size_t)(frame - data);;) {
        at += 2 + (size_t)codec_jpeg_u16(data + at + 2);
        const gpst_result result = codec_jpeg_segment(data, bytes, &at, reason);
        if (GPST_FAILED(result))
            return result;
        if (data[at + 1] != 0xda)
            continue;
        if (codec_jpeg_u16(data + at + 2) < 3)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: a segment of %u bytes at byte %zu",
                              codec_jpeg_u16(data + at + 2), at);
        *scan = data + at;
        return GPST_OK;
    }
}

/* Scan headers from `at`, the first of them, up to the end: between them data, in which 0xff is followed by 0, and
   segments. */
static uint64_t codec_jpeg_count_scans(const uint8_t* data, size_t bytes, size_t at) {
    uint64_t n = 0;
    while (at < bytes) {
        const uint8_t* const found = (const uint8_t*)memchr(data + at, 0xff, bytes - at);
        if (!found)
            break;
        at = (size_t)(found - data) + 1; /* on the marker's second byte, which may be a fill byte */
        if (bytes - at < 3 || data[at] == 0xd9)
            break;
        if (data[at] <= 0x01 || data[at] == 0xff || (data[at] >= 0xd0 && data[at] <= 0xd7))
            continue;
        n += data[at] == 0xda;
        at += 1 + (size_t)codec_jpeg_u16(data + at + 1);
    }
    return n;
}

typedef struct codec_jpeg_frame {
    uint64_t width, height;
    uint64_t n_blocks;          /* of 8x8 samples, in all components */
    uint64_t coefficient_bytes; /* of all of them, filled up to whole MCUs */
    uint64_t row_bytes;         /* of the rows on their way through the decoder */
} codec_jpeg_frame;

static uint64_t codec_jpeg_up(uint64_t value, uint64_t to) { return (value + to - 1) / to; }

/* What libjpeg-turbo allocates, by the frame's sampling factors: a row of MCUs with its neighbours (10 rows of blocks'
   lines a factor) and a group of rows scaled up; for all coefficients two bytes each and a pointer a row. */
static gpst_result codec_jpeg_measure(const uint8_t* segment, codec_jpeg_frame* frame, char* reason) {
    const uint32_t n = segment[9];
    uint64_t most_h = 1, most_v = 1;
    if (codec_jpeg_u16(segment + 2) != 8 + 3 * n)
        return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: a frame header of %u bytes for %u components",
                          codec_jpeg_u16(segment + 2), n);
    for (uint32_t c = 0; c < n; c++) {
        const uint64_t h = segment[11 + 3 * c] >> 4, v = segment[11 + 3 * c] & 15;
        if (h < 1 || h > 4 || v < 1 || v > 4)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: sampling factors of %ux%u; 1 to 4 are possible",
                              (unsigned)h, (unsigned)v);
        most_h = h > most_h ? h : most_h;
        most_v = v > most_v ? v : most_v;
    }
    for (uint32_t c = 0; c < n; c++) {
        const uint64_t h = segment[11 + 3 * c] >> 4, v = segment[11 + 3 * c] & 15;
        const uint64_t across = codec_jpeg_up(frame->width * h, 8 * most_h),
                       down = codec_jpeg_up(frame->height * v, 8 * most_v),
                       rows = codec_jpeg_up(down, v) * v;
        frame->n_blocks += across * down;
        frame->coefficient_bytes += codec_jpeg_up(across, h) * h * rows * 128 + rows * 16;
        frame->row_bytes += 10 * v * (8 * across + 32) + most_v * (frame->width + 64);
    }
    frame->row_bytes += 16 * frame->height;
    return GPST_OK;
}

/* Fewer bytes than any file of such a picture has. Huffman codes have a bit at least: a block of a sequential picture
   has two of them (its mean, and the end of the rest), one of a progressive picture has one (the mean; the rest of
   32767 blocks can be one code). Of arithmetic coding there is no such bound: what is as likely as it can be moves
   the lower end of the interval not at all, and zeros at the end are not sent, so a picture of one colour is a few
   bytes whatever its size; there the limits alone hold. */
static uint64_t codec_jpeg_least_bytes(uint8_t marker, const codec_jpeg_frame* frame) {
    return marker > 0xc8 ? 0 : (marker == 0xc2 ? 1 : 2) * frame->n_blocks / 8;
}

#define CODEC_JPEG_MAX_SCANS 500 /* the library's own limit (TJFLAG_LIMITSCANS) */

/* A picture that comes in several scans is held as coefficients until the last. Each scan goes over all of it, in
   however few bytes (runs of empty blocks), so that their number is bounded, too. */
static gpst_result codec_jpeg_judge(const uint8_t* data, size_t bytes, const uint8_t* segment,
                                    const codec_jpeg_frame* frame, codec_layout* layout, char* reason) {
    const uint8_t* scan = NULL;
    const gpst_result result = codec_jpeg_find_scan(data, bytes, segment, &scan, reason);
    if (GPST_FAILED(result))
        return result;
    const uint8_t marker = segment[1], components = segment[9];
    const bool progressive = marker == 0xc2 || marker == 0xca;
    if (bytes - (size_t)(scan - data) < codec_jpeg_least_bytes(marker, frame))
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "JPEG: %zu bytes cannot hold %llux%llu pixels", bytes,
                          (unsigned long long)frame->width, (unsigned long long)frame->height);
    layout->decoder_bytes = frame->row_bytes + 65536;
    if (!progressive && scan[4] >= components)
        return GPST_OK;
    layout->decoder_bytes += frame->coefficient_bytes;
    layout->n_scans = codec_jpeg_count_scans(data, bytes, (size_t)(scan - data));
    if (layout->n_scans > CODEC_JPEG_MAX_SCANS)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "JPEG: %llu scans; %u at most are read",
                          (unsigned long long)layout->n_scans, CODEC_JPEG_MAX_SCANS);
    return GPST_OK;
}

static gpst_result codec_jpeg_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                          codec_layout* layout, char* reason) {
    const uint8_t* segment = NULL;
    codec_jpeg_frame frame;
    memset(&frame, 0, sizeof frame);
    gpst_result result = codec_jpeg_find_frame(data, bytes, &segment, reason);
    if (GPST_FAILED(result))
        return result;
    const uint8_t marker = segment[1], precision = segment[4], components = segment[9];
    frame.height = codec_jpeg_u16(segment + 5);
    frame.width = codec_jpeg_u16(segment + 7);
    result = codec_check_sides("JPEG", frame.width, frame.height, reason);
    if (GPST_FAILED(result))
        return result;
    if (precision != 8)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "JPEG: %d bits a sample; only 8 are read",
                          precision);
    if (marker > 0xca || (marker > 0xc2 && marker < 0xc9)) /* newer libraries read lossless ones */
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "JPEG: a frame of type %X, lossless or hierarchical; sequential and progressive ones "
                          "are read",
                          marker);
    if (components == 4)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "JPEG: CMYK (4 components); convert it to RGB first");
    if (components != 1 && components != 3)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "JPEG: %d components; 1 (gray) and 3 are read",
                          components);
    result = codec_jpeg_measure(segment, &frame, reason);
    if (!GPST_FAILED(result))
        result = codec_jpeg_judge(data, bytes, segment, &frame, layout, reason);
    if (GPST_FAILED(result))
        return result;
    shape->width = (uint32_t)frame.width;
    shape->height = (uint32_t)frame.height;
    shape->format = components == 1 ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    return GPST_OK;
}

static int codec_jpeg_pixels(gpst_format format) {
    switch (format) {
    case GPST_FORMAT_GRAY:
        return TJPF_GRAY;
    case GPST_FORMAT_BGR:
        return TJPF_BGR;
    case GPST_FORMAT_RGBA:
        return TJPF_RGBX;
    default:
        return TJPF_RGB;
    }
}

/* An image as the library wants it: from its lowest address, upside down where the pitch is negative. */
typedef struct codec_jpeg_rows {
    uint8_t* data;
    int pitch;
    int flags;
} codec_jpeg_rows;

static codec_jpeg_rows codec_jpeg_lay_out(const gpst_image* image) {
    const bool up = image->pitch_bytes < 0;
    codec_jpeg_rows rows;
    rows.data = codec_row(image, up ? image->height - 1 : 0);
    rows.pitch = (int)(up ? -image->pitch_bytes : image->pitch_bytes);
    rows.flags = up ? TJFLAG_BOTTOMUP : 0;
    return rows;
}

static bool codec_jpeg_pitch_fits(const gpst_image* image) {
    return image->pitch_bytes >= -INT32_MAX && image->pitch_bytes <= INT32_MAX;
}

static gpst_result codec_jpeg_fail(tjhandle handle, char* reason) {
    const char* text = tjGetErrorStr2(handle);
    const gpst_result result = strstr(text, "Premature end") || strstr(text, "premature end")
                                   ? GPST_ERROR_TRUNCATED
                               : strstr(text, "emory") ? GPST_ERROR_MEMORY
                                                       : GPST_ERROR_FORMAT;
    return codec_fail(reason, result, "JPEG: %s", text);
}

static gpst_result codec_jpeg_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                     char* reason) {
    const codec_jpeg_rows rows = codec_jpeg_lay_out(image);
    if (!codec_jpeg_pitch_fits(image))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "JPEG: pitch_bytes=%lld: up to 2147483647 is possible",
                          (long long)image->pitch_bytes);
    if (tjDecompress2(self->jpeg_decoder, data, (unsigned long)bytes, rows.data, (int)image->width,
                      rows.pitch, (int)image->height, codec_jpeg_pixels(image->format),
                      rows.flags | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
        return codec_jpeg_fail(self->jpeg_decoder, reason);
    return GPST_OK;
}

static int codec_jpeg_sampling(const gpst_image* image, const codec_options* options) {
    if (image->format == GPST_FORMAT_GRAY)
        return TJSAMP_GRAY;
    return options->chroma == 444 ? TJSAMP_444 : options->chroma == 422 ? TJSAMP_422 : TJSAMP_420;
}

static size_t codec_jpeg_bound(const gpst_image* image, const codec_options* options) {
    const bool chroma = options->chroma == 444 || options->chroma == 422 || options->chroma == 420;
    if (!codec_is_picture(image) || !codec_jpeg_pitch_fits(image) || !chroma || options->quality < 1 ||
        options->quality > 100)
        return 0;
    return tjBufSize((int)image->width, (int)image->height, codec_jpeg_sampling(image, options));
}

static gpst_result codec_jpeg_encode(codec* self, const gpst_image* image, const codec_options* options,
                                     uint8_t* out, size_t* bytes, char* reason) {
    const codec_jpeg_rows rows = codec_jpeg_lay_out(image);
    unsigned long used = (unsigned long)*bytes;
    if (tjCompress2(self->jpeg_encoder, rows.data, (int)image->width, rows.pitch, (int)image->height,
                    codec_jpeg_pixels(image->format), &out, &used, codec_jpeg_sampling(image, options),
                    options->quality, rows.flags | TJFLAG_NOREALLOC) != 0)
        return codec_jpeg_fail(self->jpeg_encoder, reason);
    *bytes = used;
    return GPST_OK;
}

const codec_format codec_jpeg = {
    CODEC_JPEG,       "JPEG",           "jpg", true, codec_jpeg_is, codec_jpeg_read_header, codec_jpeg_decode,
    codec_jpeg_bound, codec_jpeg_encode};

#else

bool codec_jpeg_create(codec* self) {
    (void)self;
    return true;
}

void codec_jpeg_destroy(codec* self) { (void)self; }

const codec_format codec_jpeg = {CODEC_JPEG, "JPEG", "jpg", false, codec_jpeg_is, NULL, NULL, NULL, NULL};

#endif
