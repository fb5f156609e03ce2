/* tools/gpustage/codec_pnm.c -- binary PGM, PPM and PAM with values up to 255. Numbers are read and
   written without the locale. */
#include "codec_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct codec_pnm_cursor {
    const uint8_t *at, *end;
} codec_pnm_cursor;

static bool codec_pnm_is(const uint8_t* data, size_t bytes) {
    return bytes >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7' &&
           (data[2] == '#' || strchr(" \t\n\v\f\r", data[2])) && data[2] != '\0';
}

static bool codec_pnm_is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next character, -1 at the end. A comment is the line end that closes it. */
static int codec_pnm_next(codec_pnm_cursor* cursor) {
    if (cursor->at == cursor->end)
        return -1;
    int c = *cursor->at++;
    if (c != '#')
        return c;
    while (cursor->at != cursor->end) {
        c = *cursor->at++;
        if (c == '\n' || c == '\r')
            return c;
    }
    return -1;
}

static gpst_result codec_pnm_cut(char* reason) {
    return codec_fail(reason, GPST_ERROR_TRUNCATED, "PNM: the header ends too early");
}

/* A number behind white space, and the one character after it, which is white space too. */
static gpst_result codec_pnm_number(codec_pnm_cursor* cursor, const char* what, uint64_t* out, char* reason) {
    int c = codec_pnm_next(cursor);
    while (codec_pnm_is_space(c))
        c = codec_pnm_next(cursor);
    if (c < 0)
        return codec_pnm_cut(reason);
    if (c < '0' || c > '9')
        return codec_fail(reason, GPST_ERROR_FORMAT, "PNM: the %s is not a number", what);
    uint64_t value = 0;
    for (; c >= '0' && c <= '9'; c = codec_pnm_next(cursor))
        value = value > UINT32_MAX ? value : value * 10 + (uint64_t)(c - '0');
    if (c < 0)
        return codec_pnm_cut(reason);
    if (!codec_pnm_is_space(c))
        return codec_fail(reason, GPST_ERROR_FORMAT, "PNM: the %s is not a number", what);
    *out = value;
    return GPST_OK;
}

typedef struct codec_pnm_header {
    uint64_t width, height, max_value, depth;
} codec_pnm_header;

static gpst_result codec_pnm_read_p5_p6(codec_pnm_cursor* cursor, codec_pnm_header* header, char* reason) {
    gpst_result result = codec_pnm_number(cursor, "width", &header->width, reason);
    if (!GPST_FAILED(result))
        result = codec_pnm_number(cursor, "height", &header->height, reason);
    if (!GPST_FAILED(result))
        result = codec_pnm_number(cursor, "largest value", &header->max_value, reason);
    return result;
}

#define CODEC_PAM_WORD 16

/* The next word of a PAM header line ("" at a line's end); a longer one is cut, no keyword is that long. */
static gpst_result codec_pam_word(codec_pnm_cursor* cursor, char word[CODEC_PAM_WORD], char* reason) {
    size_t length = 0;
    while (cursor->at != cursor->end && *cursor->at != '\n' && codec_pnm_is_space(*cursor->at))
        cursor->at++;
    while (cursor->at != cursor->end && !codec_pnm_is_space(*cursor->at)) {
        if (length < CODEC_PAM_WORD - 1)
            word[length++] = (char)*cursor->at;
        cursor->at++;
    }
    word[length] = '\0';
    return cursor->at == cursor->end ? codec_pnm_cut(reason) : GPST_OK;
}

static gpst_result codec_pam_skip_line(codec_pnm_cursor* cursor, char* reason) {
    while (cursor->at != cursor->end)
        if (*cursor->at++ == '\n')
            return GPST_OK;
    return codec_pnm_cut(reason);
}

static gpst_result codec_pam_read(codec_pnm_cursor* cursor, codec_pnm_header* header, char* reason) {
    for (;;) {
        char word[CODEC_PAM_WORD];
        uint64_t* value = NULL;
        gpst_result result = codec_pam_word(cursor, word, reason);
        if (!GPST_FAILED(result) && strcmp(word, "WIDTH") == 0)
            value = &header->width;
        else if (!GPST_FAILED(result) && strcmp(word, "HEIGHT") == 0)
            value = &header->height;
        else if (!GPST_FAILED(result) && strcmp(word, "DEPTH") == 0)
            value = &header->depth;
        else if (!GPST_FAILED(result) && strcmp(word, "MAXVAL") == 0)
            value = &header->max_value;
        if (value) {
            result = codec_pnm_number(cursor, word, value, reason);
            cursor->at--; /* the white space may be the line's end */
        } else if (!GPST_FAILED(result) && word[0] != '\0' && word[0] != '#' &&
                   strcmp(word, "TUPLTYPE") != 0 && strcmp(word, "ENDHDR") != 0) {
            result = codec_fail(reason, GPST_ERROR_FORMAT, "PAM: \"%s\" is not a line of a header", word);
        }
        if (!GPST_FAILED(result))
            result = codec_pam_skip_line(cursor, reason);
        if (GPST_FAILED(result) || strcmp(word, "ENDHDR") == 0)
            return result;
    }
}

static gpst_result codec_pnm_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                         codec_layout* layout, char* reason) {
    codec_pnm_cursor cursor;
    codec_pnm_header header;
    cursor.at = data + 2;
    cursor.end = data + bytes;
    memset(&header, 0, sizeof header);
    if (bytes < 3 || (data[1] != '5' && data[1] != '6' && data[1] != '7'))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "PNM: P%c: only P5, P6 and P7 (binary) are read",
                          bytes < 3 ? '?' : data[1]);
    header.depth = data[1] == '5' ? 1 : data[1] == '6' ? 3 : 0;
    gpst_result result = data[1] == '7' ? codec_pam_read(&cursor, &header, reason)
                                        : codec_pnm_read_p5_p6(&cursor, &header, reason);
    if (!GPST_FAILED(result))
        result = codec_check_sides("PNM", header.width, header.height, reason);
    if (GPST_FAILED(result))
        return result;
    if (header.max_value != 255)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "PNM: the largest value is %llu; only 255 is read",
                          (unsigned long long)header.max_value);
    if (header.depth != 1 && header.depth != 3 && header.depth != 4)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "PAM: a depth of %llu; 1 (gray), 3 (RGB) and 4 (RGBA) are read",
                          (unsigned long long)header.depth);
    shape->width = (uint32_t)header.width;
    shape->height = (uint32_t)header.height;
    shape->format = header.depth == 1   ? GPST_FORMAT_GRAY
                    : header.depth == 3 ? GPST_FORMAT_RGB
                                        : GPST_FORMAT_RGBA;
    layout->offset = (size_t)(cursor.at - data);
    if (codec_plain_bytes(shape) > bytes - layout->offset)
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "PNM: %zu bytes of pixels; %ux%u pixels are %zu",
                          bytes - layout->offset, shape->width, shape->height, codec_plain_bytes(shape));
    return GPST_OK;
}

#define CODEC_PNM_HEADER_BYTES 128

static size_t codec_pnm_write_header(const gpst_image* image, char out[CODEC_PNM_HEADER_BYTES]) {
    const int length =
        image->format == GPST_FORMAT_RGBA
            ? snprintf(out, CODEC_PNM_HEADER_BYTES,
                       "P7\nWIDTH %u\nHEIGHT %u\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n",
                       image->width, image->height)
            : snprintf(out, CODEC_PNM_HEADER_BYTES, "P%c\n%u %u\n255\n",
                       image->format == GPST_FORMAT_GRAY ? '5' : '6', image->width, image->height);
    return (size_t)length;
}

static size_t codec_pnm_bound(const gpst_image* image, const codec_options* options) {
    char header[CODEC_PNM_HEADER_BYTES];
    (void)options;
    return codec_is_picture(image) ? codec_pnm_write_header(image, header) + codec_plain_bytes(image) : 0;
}

static gpst_result codec_pnm_encode(codec* self, const gpst_image* image, const codec_options* options,
                                    uint8_t* out, size_t* bytes, char* reason) {
    char header[CODEC_PNM_HEADER_BYTES];
    const size_t header_bytes = codec_pnm_write_header(image, header),
                 row_bytes = gpst_image_row_bytes(image);
    (void)options, (void)reason;
    memcpy(out, header, header_bytes);
    for (uint32_t y = 0; y < image->height; y++)
        memcpy(out + header_bytes + row_bytes * y, codec_rgb_row(self, image, y), row_bytes);
    *bytes = header_bytes + codec_plain_bytes(image);
    return GPST_OK;
}

const codec_format codec_pnm = {CODEC_PNM, "PNM",           "ppm",
                                true,      codec_pnm_is,    codec_pnm_read_header,
                                NULL,      codec_pnm_bound, codec_pnm_encode};
