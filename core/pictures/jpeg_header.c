/* core/pictures/jpeg_header.c -- the header of a JPEG file: what it is, and what decoding it takes. It is read here, so
   that a picture's size, and what libturbojpeg will allocate for it, is known and judged before it does. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"

#include <string.h>

#define GPSTI_JPEG_MAX_SCANS 500u /* libturbojpeg's own limit */

GPSTI_INTERN bool gpsti_jpeg_is(const uint8_t* data, size_t bytes) {
    return bytes >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

GPSTI_PRIVATE uint32_t gpsti_jpeg_u16(const uint8_t* at) { return (uint32_t)at[0] << 8 | at[1]; }

/* ---- from marker to marker --------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_jpeg_walk gpsti_jpeg_walk_of(const uint8_t* data, size_t bytes) {
    gpsti_jpeg_walk walk = GPST_ZERO;
    walk.data = data;
    walk.bytes = bytes;
    walk.at = walk.from = walk.begin = 2;
    return walk;
}

GPSTI_PRIVATE bool gpsti_jpeg_is_restart(uint8_t marker) { return marker >= 0xd0 && marker <= 0xd7; }

/* Where the next marker begins, its second byte there; what is passed over is counted. */
GPSTI_PRIVATE bool gpsti_jpeg_find(gpsti_jpeg_walk* walk) {
    const uint8_t* const data = walk->data;
    size_t at = walk->at;
    for (;;) {
        const void* const found = at < walk->bytes ? memchr(data + at, 0xff, walk->bytes - at) : NULL;
        walk->begin = found ? (size_t)((const uint8_t*)found - data) : walk->bytes;
        walk->n_stray += walk->in_data ? 0 : walk->begin - at;
        for (at = walk->begin; at + 1 < walk->bytes && data[at + 1] == 0xff;) /* fill bytes */
            at++;
        if (at + 1 >= walk->bytes)
            return false;
        if (data[at + 1] != 0 && !(walk->in_data && gpsti_jpeg_is_restart(data[at + 1])))
            break;
        walk->n_stray += walk->in_data ? 0 : 2;
        at += 2;
    }
    walk->begin = at;
    return true;
}

GPSTI_INTERN bool gpsti_jpeg_next(gpsti_jpeg_walk* walk) {
    walk->from = walk->at;
    walk->n_stray = 0;
    walk->length = 0;
    walk->cut = false;
    walk->marker = 0;
    if (!gpsti_jpeg_find(walk)) {
        walk->at = walk->bytes;
        return false;
    }
    walk->marker = walk->data[walk->begin + 1];
    walk->at = walk->begin + 2;
    if (walk->marker == 0x01 || (walk->marker >= 0xd0 && walk->marker <= 0xd9)) /* no segment behind these */
        return true;
    walk->cut = walk->bytes - walk->at < 2;
    walk->length = walk->cut ? 2 : gpsti_jpeg_u16(walk->data + walk->at);
    walk->cut = walk->cut || walk->length < 2 || walk->length > walk->bytes - walk->at;
    walk->at = walk->cut ? walk->bytes : walk->at + walk->length;
    walk->in_data = walk->marker == 0xda;
    return true;
}

/* ---- what it takes ----------------------------------------------------------------------------------- */

typedef struct gpsti_jpeg_frame {
    uint64_t n_blocks;          /* of 8x8 samples, in all components */
    uint64_t coefficient_bytes; /* of all of them, filled up to whole MCUs */
    uint64_t row_bytes;         /* of the rows on their way through the decoder */
} gpsti_jpeg_frame;

GPSTI_PRIVATE uint64_t gpsti_jpeg_up(uint64_t value, uint64_t to) { return (value + to - 1) / to; }

/* What libturbojpeg allocates, by the frame's sampling factors: a row of MCUs with its neighbours (10 rows of blocks'
   lines a factor) and a group of rows scaled up; for all coefficients two bytes each and a pointer a row. */
GPSTI_PRIVATE void gpsti_jpeg_measure(const gpsti_jpeg_header* header, gpsti_jpeg_frame* frame) {
    const uint64_t width = header->info.width, height = header->info.height;
    uint64_t most_h = 1, most_v = 1;
    memset(frame, 0, sizeof *frame);
    for (uint32_t c = 0; c < header->info.n_components; c++) {
        const uint64_t h = header->factors[c] >> 4, v = header->factors[c] & 15;
        most_h = h > most_h ? h : most_h;
        most_v = v > most_v ? v : most_v;
    }
    for (uint32_t c = 0; c < header->info.n_components; c++) {
        const uint64_t h = header->factors[c] >> 4, v = header->factors[c] & 15;
        const uint64_t across = gpsti_jpeg_up(width * h, 8 * most_h), down = gpsti_jpeg_up(height * v, 8 * most_v),
                       rows = gpsti_jpeg_up(down, v) * v;
        frame->n_blocks += across * down;
        frame->coefficient_bytes += gpsti_jpeg_up(across, h) * h * rows * 128 + rows * 16;
        frame->row_bytes += 10 * v * (8 * across + 32) + most_v * (width + 64);
    }
    frame->row_bytes += 16 * height;
}

/* Fewer bytes than any file of such a picture has. Huffman codes have a bit at least: a block of a sequential picture
   has two of them (its mean, and the end of the rest), one of a progressive picture has one (the mean; the rest of
   32767 blocks can be one code). Of arithmetic coding there is no such bound: what is as likely as it can be moves
   the lower end of the interval not at all, and zeros at the end are not sent, so a picture of one colour is a few
   bytes whatever its size. */
GPSTI_PRIVATE uint64_t gpsti_jpeg_least_bytes(const gpst_jpeg_info* info, const gpsti_jpeg_frame* frame) {
    return info->arithmetic ? 0 : (info->progressive ? 1 : 2) * frame->n_blocks / 8;
}

/* Components that share a number count as sent together. A scan that refines what never came sends nothing. */
GPSTI_PRIVATE void gpsti_jpeg_count_sent(const gpsti_jpeg_header* header, const uint8_t* scan, uint32_t length,
                                         uint8_t low_bits[4][64]) {
    const uint32_t n = scan[4];
    if (length != 6 + 2 * n)
        return;
    const bool progressive = header->info.progressive;
    const uint32_t first = progressive ? scan[5 + 2 * n] : 0, last = progressive ? scan[6 + 2 * n] : 63;
    const uint8_t low = progressive ? scan[7 + 2 * n] & 15 : 0, high = progressive ? scan[7 + 2 * n] >> 4 : 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < header->info.n_components; c++)
            for (uint32_t k = first; header->ids[c] == scan[5 + 2 * i] && k <= last && k < 64; k++)
                low_bits[c][k] = high && low_bits[c][k] == 0xff ? 0xff : low;
}

/* All scans of a file that comes in several. */
GPSTI_PRIVATE void gpsti_jpeg_read_scans(gpsti_jpeg_walk walk, gpsti_jpeg_header* header) {
    uint8_t low_bits[4][64];
    memset(low_bits, 0xff, sizeof low_bits);
    do {
        if (walk.marker != 0xda || walk.length < 3)
            continue;
        header->info.n_scans++;
        gpsti_jpeg_count_sent(header, walk.data + walk.begin, walk.length, low_bits);
    } while (gpsti_jpeg_next(&walk) && !walk.cut && walk.marker != 0xd9);
    header->has_all_components = header->has_all_bits = true;
    for (uint32_t c = 0; c < header->info.n_components; c++)
        for (uint32_t k = 0; k < 64; k++) {
            header->has_all_components = header->has_all_components && low_bits[c][0] != 0xff;
            header->has_all_bits = header->has_all_bits && low_bits[c][k] == 0;
        }
}

/* A picture that comes in several scans is held as coefficients until the last. Each scan goes over all of it, in
   however few bytes (runs of empty blocks), so that their number is bounded, too. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_judge(const gpsti_jpeg_walk* walk, gpsti_jpeg_header* header) {
    gpst_jpeg_info* const info = &header->info;
    const uint8_t n_in_scan = walk->data[walk->begin + 4];
    gpsti_jpeg_frame frame;
    gpsti_jpeg_measure(header, &frame);
    GPSTI_FAIL_IF(walk->bytes - walk->begin < gpsti_jpeg_least_bytes(info, &frame), GPST_ERROR_TRUNCATED,
                  "JPEG: %zu bytes cannot hold %ux%u pixels", walk->bytes, info->width, info->height);
    info->decoder_bytes = frame.row_bytes + 65536;
    if (info->n_components == 4) /* decoded as inks first */
        info->decoder_bytes += (uint64_t)4 * info->width * info->height;
    header->has_all_components = header->has_all_bits = true;
    if (!info->progressive && n_in_scan >= info->n_components)
        return GPST_OK;
    info->decoder_bytes += frame.coefficient_bytes;
    gpsti_jpeg_read_scans(*walk, header);
    GPSTI_FAIL_IF(info->n_scans > GPSTI_JPEG_MAX_SCANS, GPST_ERROR_UNSUPPORTED,
                  "JPEG: %llu scans; %u at most are read", (unsigned long long)info->n_scans, GPSTI_JPEG_MAX_SCANS);
    return GPST_OK;
}

/* ---- what it is -------------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_jpeg_is_rgb(const gpsti_jpeg_header* header) {
    if (header->has_jfif || header->info.n_components != 3)
        return false;
    return header->has_adobe ? header->adobe_transform == 0 : memcmp(header->ids, "RGB", 3) == 0;
}

/* Of the ways in which equal shapes can be spelt, the one of all encoders: chroma once an MCU. */
GPSTI_PRIVATE gpst_format gpsti_jpeg_planes_of(const gpsti_jpeg_header* header) {
    const uint8_t* const factors = header->factors;
    if (header->info.n_components == 1)
        return GPST_FORMAT_GRAY;
    if (header->info.n_components != 3 || gpsti_jpeg_is_rgb(header) || factors[1] != 0x11 || factors[2] != 0x11)
        return GPST_FORMAT_INVALID;
    switch (factors[0]) {
    case 0x11:
        return GPST_FORMAT_JPEG_444;
    case 0x21:
        return GPST_FORMAT_JPEG_422;
    case 0x22:
        return GPST_FORMAT_JPEG_420;
    case 0x12:
        return GPST_FORMAT_JPEG_440;
    default:
        return GPST_FORMAT_INVALID;
    }
}

GPSTI_INTERN uint32_t gpsti_jpeg_segment_fault(const uint8_t* segment, uint32_t length, bool sequential) {
    if (segment[1] == 0xe0 && length >= 16 && memcmp(segment + 4, "JFIF", 5) == 0)
        return segment[9] == 1 ? 0 : GPSTI_JPEG_FAULT_VERSION;
    if (segment[1] != 0xda || !sequential || length < 3 || length != 6 + 2 * (uint32_t)segment[4])
        return 0;
    const uint8_t* const parameters = segment + 2 + length - 3;
    return parameters[0] == 0 && parameters[1] == 63 && parameters[2] == 0 ? 0 : GPSTI_JPEG_FAULT_SCAN;
}

/* A start-of-frame marker; C4, C8 and CC of that range are something else. */
GPSTI_PRIVATE bool gpsti_jpeg_is_frame(uint8_t marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_read_frame(const uint8_t* segment, uint32_t length, gpsti_jpeg_header* header) {
    const uint8_t marker = segment[1], precision = segment[4], n = segment[9];
    const uint32_t height = gpsti_jpeg_u16(segment + 5), width = gpsti_jpeg_u16(segment + 7);
    GPSTI_TRY(gpsti_picture_check_sides("JPEG", width, height));
    GPSTI_FAIL_IF(precision != 8, GPST_ERROR_UNSUPPORTED, "JPEG: %d bits a sample; only 8 are read", precision);
    /* Newer libraries read lossless ones. */
    GPSTI_FAIL_IF(marker > 0xca || (marker > 0xc2 && marker < 0xc9), GPST_ERROR_UNSUPPORTED,
                  "JPEG: a frame of type %X, lossless or hierarchical; sequential and progressive ones are read",
                  marker);
    GPSTI_FAIL_IF(n != 1 && n != 3 && n != 4, GPST_ERROR_UNSUPPORTED,
                  "JPEG: %d components; 1 (gray), 3 and 4 (CMYK) are read", n);
    GPSTI_FAIL_IF(length != 8 + 3 * (uint32_t)n, GPST_ERROR_FORMAT,
                  "JPEG: a frame header of %u bytes for %u components", length, n);
    for (uint32_t c = 0; c < n; c++) {
        const unsigned h = segment[11 + 3 * c] >> 4, v = segment[11 + 3 * c] & 15;
        GPSTI_FAIL_IF(h < 1 || h > 4 || v < 1 || v > 4, GPST_ERROR_FORMAT,
                      "JPEG: sampling factors of %ux%u; 1 to 4 are possible", h, v);
        header->ids[c] = segment[10 + 3 * c];
        header->factors[c] = segment[11 + 3 * c];
    }
    header->frame = marker;
    header->info.width = width;
    header->info.height = height;
    header->info.n_components = n;
    header->info.format = n == 1 ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    header->info.progressive = marker == 0xc2 || marker == 0xca;
    header->info.arithmetic = marker > 0xc8;
    return GPST_OK;
}

/* The markers by which libturbojpeg, too, tells what the components are. */
GPSTI_PRIVATE void gpsti_jpeg_read_colours(const uint8_t* segment, uint32_t length, gpsti_jpeg_header* header) {
    if (segment[1] == 0xe0 && length >= 16 && memcmp(segment + 4, "JFIF", 5) == 0)
        header->has_jfif = true;
    if (segment[1] != 0xee || length < 14 || memcmp(segment + 4, "Adobe", 5) != 0)
        return;
    header->has_adobe = true;
    header->adobe_transform = segment[15];
}

/* The segment that the walk is on is there whole. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_check_segment(const gpsti_jpeg_walk* walk, const gpsti_jpeg_header* header) {
    const size_t least = gpsti_jpeg_is_frame(walk->marker) ? 8 : walk->marker == 0xda ? 3 : 2;
    GPSTI_FAIL_IF(walk->marker == 0xd9, GPST_ERROR_FORMAT, "JPEG: there is no picture before the end");
    GPSTI_FAIL_IF(walk->marker == 0xd8, GPST_ERROR_FORMAT, "JPEG: a second start at byte %zu", walk->begin);
    GPSTI_FAIL_IF(walk->length > 0 && walk->cut && walk->length >= 2, GPST_ERROR_TRUNCATED,
                  "JPEG: the header ends too early");
    GPSTI_FAIL_IF(walk->cut || (walk->length > 0 && walk->length < least), GPST_ERROR_FORMAT,
                  "JPEG: a segment of %u bytes at byte %zu", walk->length, walk->begin);
    GPSTI_FAIL_IF(walk->marker == 0xda && !header->frame, GPST_ERROR_FORMAT,
                  "JPEG: there is no frame header before the data");
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_read_segments(const uint8_t* data, size_t bytes, gpsti_jpeg_header* header) {
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    do {
        GPSTI_FAIL_IF(!gpsti_jpeg_next(&walk), GPST_ERROR_TRUNCATED, "JPEG: the header ends too early");
        GPSTI_TRY(gpsti_jpeg_check_segment(&walk, header));
        const uint8_t* const segment = data + walk.begin;
        header->faults |= walk.n_stray > 0 ? GPSTI_JPEG_FAULT_STRAY : 0;
        if (walk.length == 0)
            continue;
        header->faults |= gpsti_jpeg_segment_fault(segment, walk.length, !header->info.progressive);
        gpsti_jpeg_read_colours(segment, walk.length, header);
        if (!header->frame && gpsti_jpeg_is_frame(walk.marker))
            GPSTI_TRY(gpsti_jpeg_read_frame(segment, walk.length, header));
    } while (walk.marker != 0xda);
    header->scan = walk.begin;
    header->info.planes = gpsti_jpeg_planes_of(header);
    return gpsti_jpeg_judge(&walk, header);
}

GPSTI_INTERN gpst_result gpsti_jpeg_read(const uint8_t* data, size_t bytes, gpsti_jpeg_header* out) {
    memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(bytes == 0, GPST_ERROR_TRUNCATED, "JPEG: the file is empty");
    GPSTI_FAIL_IF(!gpsti_jpeg_is(data, bytes), GPST_ERROR_FORMAT, "JPEG: the first bytes are not those of one");
    return gpsti_jpeg_read_segments(data, bytes, out);
}

GPST_API gpst_result gpst_jpeg_read_header(const void* data, size_t bytes, gpst_jpeg_info* out) {
    gpsti_jpeg_header header;
    GPSTI_FAIL_IF(!out || (!data && bytes > 0), GPST_ERROR_ARGUMENT, "gpst_jpeg_read_header: data and out: required");
    memset(out, 0, sizeof *out);
    GPSTI_TRY(gpsti_jpeg_read((const uint8_t*)data, bytes, &header));
    *out = header.info;
    return GPST_OK;
}

/* ---- plain files ------------------------------------------------------------------------------------- */

/* Numbers that mean RGB without a JFIF marker would change the picture when that is left out. */
GPSTI_PRIVATE bool gpsti_jpeg_header_is_plain(const gpsti_jpeg_header* header) {
    return header->frame == 0xc0 && header->faults == 0 && header->info.n_scans == 0 &&
           header->info.planes != GPST_FORMAT_INVALID && memcmp(header->ids, "RGB", 3) != 0 &&
           (header->info.n_components == 3 || header->factors[0] == 0x11);
}

GPSTI_INTERN bool gpsti_jpeg_is_plain(const uint8_t* data, size_t bytes, size_t* first) {
    gpsti_jpeg_header header;
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    uint32_t n_frames = 0;
    *first = 0;
    if (GPST_FAILED(gpsti_jpeg_read(data, bytes, &header)) || !gpsti_jpeg_header_is_plain(&header))
        return false;
    while (gpsti_jpeg_next(&walk) && walk.marker != 0xda) {
        const bool extra = (walk.marker >= 0xe0 && walk.marker <= 0xef) || walk.marker == 0xfe;
        if ((extra && *first) || walk.length == 0)
            return false;
        if (!extra && !*first)
            *first = walk.begin;
        n_frames += gpsti_jpeg_is_frame(walk.marker);
    }
    if (n_frames != 1 || !gpsti_jpeg_next(&walk) || walk.marker != 0xd9 || walk.at != bytes)
        return false;
    return data[walk.begin - 1] != 0 || data[walk.begin - 2] == 0xff; /* else it may be padding */
}
