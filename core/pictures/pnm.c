/* core/pictures/pnm.c -- binary PGM, PPM and PAM with values up to 65535. Numbers are read and written without the
   locale. */
#include "../base/platform_internal.h"

#include "pictures_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct gpsti_pnm_cursor {
    const uint8_t *at, *end;
} gpsti_pnm_cursor;

GPSTI_INTERN bool gpsti_pnm_is(const uint8_t* data, size_t bytes) {
    return bytes >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7' &&
           (data[2] == '#' || strchr(" \t\n\v\f\r", data[2])) && data[2] != '\0';
}

GPSTI_PRIVATE bool gpsti_pnm_is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next character, -1 at the end. A comment is the line end that closes it. */
GPSTI_PRIVATE int gpsti_pnm_next(gpsti_pnm_cursor* cursor) {
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

GPSTI_PRIVATE gpst_result gpsti_pnm_cut(void) {
    return gpsti_fail(GPST_ERROR_TRUNCATED, "PNM: the header ends too early");
}

/* A number behind white space, and the one character after it, which is white space too. */
GPSTI_PRIVATE gpst_result gpsti_pnm_number(gpsti_pnm_cursor* cursor, const char* what, uint64_t* out) {
    int c = gpsti_pnm_next(cursor);
    while (gpsti_pnm_is_space(c))
        c = gpsti_pnm_next(cursor);
    if (c < 0)
        return gpsti_pnm_cut();
    if (c < '0' || c > '9')
        return gpsti_fail(GPST_ERROR_FORMAT, "PNM: the %s is not a number", what);
    uint64_t value = 0;
    for (; c >= '0' && c <= '9'; c = gpsti_pnm_next(cursor))
        value = value > UINT32_MAX ? value : value * 10 + (uint64_t)(c - '0');
    if (c < 0)
        return gpsti_pnm_cut();
    if (!gpsti_pnm_is_space(c))
        return gpsti_fail(GPST_ERROR_FORMAT, "PNM: the %s is not a number", what);
    *out = value;
    return GPST_OK;
}

typedef struct gpsti_pnm_header {
    uint64_t width, height, max_value, depth;
} gpsti_pnm_header;

GPSTI_PRIVATE gpst_result gpsti_pnm_read_p5_p6(gpsti_pnm_cursor* cursor, gpsti_pnm_header* header) {
    gpst_result result = gpsti_pnm_number(cursor, "width", &header->width);
    if (!GPST_FAILED(result))
        result = gpsti_pnm_number(cursor, "height", &header->height);
    if (!GPST_FAILED(result))
        result = gpsti_pnm_number(cursor, "largest value", &header->max_value);
    return result;
}

#define GPSTI_PAM_WORD 16

/* The next word of a PAM header line ("" at a line's end); a longer one is cut, no keyword is that long. */
GPSTI_PRIVATE gpst_result gpsti_pam_word(gpsti_pnm_cursor* cursor, char word[GPSTI_PAM_WORD]) {
    size_t length = 0;
    while (cursor->at != cursor->end && *cursor->at != '\n' && gpsti_pnm_is_space(*cursor->at))
        cursor->at++;
    while (cursor->at != cursor->end && !gpsti_pnm_is_space(*cursor->at)) {
        if (length < GPSTI_PAM_WORD - 1)
            word[length++] = (char)*cursor->at;
        cursor->at++;
    }
    word[length] = '\0';
    return cursor->at == cursor->end ? gpsti_pnm_cut() : GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pam_skip_line(gpsti_pnm_cursor* cursor) {
    while (cursor->at != cursor->end)
        if (*cursor->at++ == '\n')
            return GPST_OK;
    return gpsti_pnm_cut();
}

GPSTI_PRIVATE gpst_result gpsti_pam_read(gpsti_pnm_cursor* cursor, gpsti_pnm_header* header) {
    for (;;) {
        char word[GPSTI_PAM_WORD];
        uint64_t* value = NULL;
        gpst_result result = gpsti_pam_word(cursor, word);
        if (!GPST_FAILED(result) && strcmp(word, "WIDTH") == 0)
            value = &header->width;
        else if (!GPST_FAILED(result) && strcmp(word, "HEIGHT") == 0)
            value = &header->height;
        else if (!GPST_FAILED(result) && strcmp(word, "DEPTH") == 0)
            value = &header->depth;
        else if (!GPST_FAILED(result) && strcmp(word, "MAXVAL") == 0)
            value = &header->max_value;
        if (value) {
            result = gpsti_pnm_number(cursor, word, value);
            cursor->at--; /* the white space may be the line's end */
        } else if (!GPST_FAILED(result) && word[0] != '\0' && word[0] != '#' &&
                   strcmp(word, "TUPLTYPE") != 0 && strcmp(word, "ENDHDR") != 0) {
            result = gpsti_fail(GPST_ERROR_FORMAT, "PAM: \"%s\" is not a line of a header", word);
        }
        if (!GPST_FAILED(result))
            result = gpsti_pam_skip_line(cursor);
        if (GPST_FAILED(result) || strcmp(word, "ENDHDR") == 0)
            return result;
    }
}

GPSTI_INTERN gpst_result gpsti_pnm_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                               gpsti_plain* plain) {
    gpsti_pnm_cursor cursor;
    gpsti_pnm_header header;
    cursor.at = data + 2;
    cursor.end = data + bytes;
    memset(&header, 0, sizeof header);
    GPSTI_FAIL_IF(bytes < 3 || (data[1] != '5' && data[1] != '6' && data[1] != '7'), GPST_ERROR_UNSUPPORTED,
                  "PNM: P%c: only P5, P6 and P7 (binary) are read", bytes < 3 ? '?' : data[1]);
    header.depth = data[1] == '5' ? 1 : data[1] == '6' ? 3 : 0;
    GPSTI_TRY(data[1] == '7' ? gpsti_pam_read(&cursor, &header) : gpsti_pnm_read_p5_p6(&cursor, &header));
    GPSTI_TRY(gpsti_picture_check_sides("PNM", header.width, header.height));
    GPSTI_FAIL_IF(header.max_value < 1 || header.max_value > 65535, GPST_ERROR_FORMAT,
                  "PNM: the largest value is %llu; 1 to 65535 are possible", (unsigned long long)header.max_value);
    GPSTI_FAIL_IF(header.depth < 1 || header.depth > 4, GPST_ERROR_UNSUPPORTED,
                  "PAM: a depth of %llu; 1 (gray), 2 (gray, alpha), 3 (RGB) and 4 (RGBA) are read",
                  (unsigned long long)header.depth);
    plain->offset = (size_t)(cursor.at - data);
    plain->n_channels = (uint32_t)header.depth;
    plain->bytes_each = header.max_value > 255 ? 2 : 1;
    plain->big = true;
    plain->max_value = (uint32_t)header.max_value;
    if (header.max_value != 255 && header.max_value != 65535)
        plain->values = GPSTI_VALUES_SCALED;
    shape->width = (uint32_t)header.width;
    shape->height = (uint32_t)header.height;
    shape->dtype = plain->bytes_each == 2 ? GPST_DTYPE_U16 : GPST_DTYPE_U8;
    shape->format = header.depth == 1   ? GPST_FORMAT_GRAY
                    : header.depth == 3 ? GPST_FORMAT_RGB
                                        : GPST_FORMAT_RGBA;
    return gpsti_plain_check(plain, "PNM", shape, bytes, true);
}

GPSTI_INTERN size_t gpsti_pnm_write_header(const gpst_image* image, char out[GPSTI_PNM_HEADER_BYTES]) {
    const unsigned max_value = image->dtype == GPST_DTYPE_U16 ? 65535 : 255;
    const int length =
        gpsti_image_channels(image) == 4
            ? snprintf(out, GPSTI_PNM_HEADER_BYTES,
                       "P7\nWIDTH %u\nHEIGHT %u\nDEPTH 4\nMAXVAL %u\nTUPLTYPE RGB_ALPHA\nENDHDR\n",
                       image->width, image->height, max_value)
            : snprintf(out, GPSTI_PNM_HEADER_BYTES, "P%c\n%u %u\n%u\n",
                       image->format == GPST_FORMAT_GRAY ? '5' : '6', image->width, image->height, max_value);
    return (size_t)length;
}
