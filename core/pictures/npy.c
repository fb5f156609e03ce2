/* core/pictures/npy.c -- NumPy's .npy: (H,W) and (H,W,1|3|4) of b1, u1, u2, f2, f4 and f8 in, in either byte and index
   order, any layout out. Its header is a Python dictionary, of which exactly the three keys of the format are
   understood. */
#include "../base/platform_internal.h"

#include "pictures_internal.h"

#include <stdio.h>
#include <string.h>

#define GPSTI_NPY_MAX_DIMS 8

typedef struct gpsti_npy_fields {
    char descr[8]; /* "" where it is longer or no string */
    bool fortran_order;
    uint32_t n_dims;
    uint64_t dims[GPSTI_NPY_MAX_DIMS];
    uint32_t keys; /* seen: 1 descr, 2 fortran_order, 4 shape */
} gpsti_npy_fields;

typedef struct gpsti_npy_cursor {
    const char *at, *end;
} gpsti_npy_cursor;

GPSTI_INTERN bool gpsti_npy_is(const uint8_t* data, size_t bytes) {
    return bytes >= 6 && memcmp(data, "\x93NUMPY", 6) == 0;
}

/* The next character behind white space, 0 at the end; it stays. */
GPSTI_PRIVATE char gpsti_npy_peek(gpsti_npy_cursor* cursor) {
    while (cursor->at != cursor->end && (*cursor->at == ' ' || (*cursor->at >= '\t' && *cursor->at <= '\r')))
        cursor->at++;
    return cursor->at == cursor->end ? '\0' : *cursor->at;
}

GPSTI_PRIVATE bool gpsti_npy_accept(gpsti_npy_cursor* cursor, char c) {
    if (c == '\0' || gpsti_npy_peek(cursor) != c)
        return false;
    cursor->at++;
    return true;
}

GPSTI_PRIVATE bool gpsti_npy_accept_word(gpsti_npy_cursor* cursor, const char* word) {
    const size_t length = strlen(word);
    gpsti_npy_peek(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* A quoted string without escapes, as u'' too; "" when it is longer than the room. */
GPSTI_PRIVATE bool gpsti_npy_string(gpsti_npy_cursor* cursor, char* out, size_t room) {
    (void)gpsti_npy_accept(cursor, 'u');
    const char quote = cursor->at == cursor->end ? '\0' : *cursor->at;
    if (quote != '\'' && quote != '"')
        return false;
    const char* begin = ++cursor->at;
    while (cursor->at != cursor->end && *cursor->at != quote)
        cursor->at++;
    if (cursor->at == cursor->end)
        return false;
    const size_t length = (size_t)(cursor->at++ - begin);
    memcpy(out, begin, length < room ? length : 0);
    out[length < room ? length : 0] = '\0';
    return true;
}

GPSTI_PRIVATE bool gpsti_npy_shape(gpsti_npy_cursor* cursor, gpsti_npy_fields* header) {
    if (!gpsti_npy_accept(cursor, '('))
        return false;
    header->n_dims = 0;
    while (!gpsti_npy_accept(cursor, ')')) {
        char c = gpsti_npy_peek(cursor);
        if (c < '0' || c > '9' || header->n_dims == GPSTI_NPY_MAX_DIMS)
            return false;
        uint64_t value = 0;
        for (; cursor->at != cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
            value = value > UINT32_MAX ? value : value * 10 + (uint64_t)(*cursor->at - '0');
        if (cursor->at != cursor->end && *cursor->at == 'L') /* Python 2 wrote long numbers so */
            cursor->at++;
        header->dims[header->n_dims++] = value;
        if (!gpsti_npy_accept(cursor, ',') && gpsti_npy_peek(cursor) != ')')
            return false;
    }
    return true;
}

GPSTI_PRIVATE bool gpsti_npy_pair(gpsti_npy_cursor* cursor, gpsti_npy_fields* header) {
    char key[16];
    if (!gpsti_npy_string(cursor, key, sizeof key) || !gpsti_npy_accept(cursor, ':'))
        return false;
    if (strcmp(key, "descr") == 0) {
        header->keys |= 1;
        return gpsti_npy_string(cursor, header->descr, sizeof header->descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        header->keys |= 2;
        header->fortran_order = gpsti_npy_accept_word(cursor, "True");
        return header->fortran_order || gpsti_npy_accept_word(cursor, "False");
    }
    header->keys |= 4;
    return strcmp(key, "shape") == 0 && gpsti_npy_shape(cursor, header);
}

GPSTI_PRIVATE bool gpsti_npy_dictionary(gpsti_npy_cursor* cursor, gpsti_npy_fields* header) {
    if (!gpsti_npy_accept(cursor, '{'))
        return false;
    while (!gpsti_npy_accept(cursor, '}')) {
        if (!gpsti_npy_pair(cursor, header))
            return false;
        if (!gpsti_npy_accept(cursor, ',') && gpsti_npy_peek(cursor) != '}')
            return false;
    }
    return gpsti_npy_peek(cursor) == '\0' && header->keys == 7;
}

GPSTI_PRIVATE char gpsti_npy_order(uint32_t bytes_each) {
    return bytes_each == 1 ? '|' : gpsti_plain_big_machine() ? '>' : '<';
}

/* Where the dictionary is; offset: where it ends. */
GPSTI_PRIVATE gpst_result gpsti_npy_locate(const uint8_t* data, size_t bytes, gpsti_npy_cursor* out,
                                            size_t* offset) {
    if (bytes >= 8 && (data[6] < 1 || data[6] > 3))
        return gpsti_fail(GPST_ERROR_UNSUPPORTED, "NPY: version %d.%d; 1, 2 and 3 are read", data[6],
                          data[7]);
    const size_t prefix = bytes >= 8 && data[6] > 1 ? 12 : 10;
    if (bytes < prefix)
        return gpsti_fail(GPST_ERROR_TRUNCATED, "NPY: the header ends too early");
    size_t length = data[8] | (size_t)data[9] << 8;
    if (prefix == 12)
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (length > bytes - prefix)
        return gpsti_fail(GPST_ERROR_TRUNCATED, "NPY: the header ends too early");
    out->at = (const char*)data + prefix;
    out->end = out->at + length;
    *offset = prefix + length;
    return GPST_OK;
}

typedef struct gpsti_npy_type {
    char name[3];
    uint32_t bytes_each;
    gpsti_values values;
    gpst_dtype dtype; /* in memory */
} gpsti_npy_type;

/* False: none of those that are read. Of single bytes the order may be any, else '=' is the machine's. */
GPSTI_PRIVATE bool gpsti_npy_read_type(const char* descr, gpst_dtype* dtype, gpsti_plain* plain) {
    static const gpsti_npy_type types[] = {{"b1", 1, GPSTI_VALUES_BOOL, GPST_DTYPE_U8},
                                           {"u1", 1, GPSTI_VALUES_AS_THEY_ARE, GPST_DTYPE_U8},
                                           {"u2", 2, GPSTI_VALUES_AS_THEY_ARE, GPST_DTYPE_U16},
                                           {"f2", 2, GPSTI_VALUES_AS_THEY_ARE, GPST_DTYPE_F16},
                                           {"f4", 4, GPSTI_VALUES_AS_THEY_ARE, GPST_DTYPE_F32},
                                           {"f8", 8, GPSTI_VALUES_DOUBLE, GPST_DTYPE_F32}};
    const size_t length = strlen(descr);
    const char order = length == 3 ? descr[0] : '=';
    for (size_t i = 0; length >= 2 && length <= 3 && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(descr + length - 2, types[i].name) != 0)
            continue;
        *dtype = types[i].dtype;
        plain->bytes_each = types[i].bytes_each;
        plain->values = types[i].values;
        plain->big = order == '>' || (order == '=' && gpsti_plain_big_machine());
        return plain->bytes_each == 1 || order == '<' || order == '>' || order == '=';
    }
    return false;
}

GPSTI_INTERN gpst_result gpsti_npy_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                               gpsti_plain* plain) {
    gpsti_npy_cursor cursor = {NULL, NULL};
    gpsti_npy_fields header;
    memset(&header, 0, sizeof header);
    GPSTI_TRY(gpsti_npy_locate(data, bytes, &cursor, &plain->offset));
    GPSTI_FAIL_IF(!gpsti_npy_dictionary(&cursor, &header), GPST_ERROR_FORMAT,
                  "NPY: the header is not a dictionary of descr, fortran_order and shape");
    GPSTI_FAIL_IF(!gpsti_npy_read_type(header.descr, &shape->dtype, plain), GPST_ERROR_UNSUPPORTED,
                  "NPY: descr=\"%s\"; b1, u1, u2, f2, f4 and f8 are read", header.descr);
    const uint64_t channels = header.n_dims == 2 ? 1 : header.n_dims == 3 ? header.dims[2] : 0;
    GPSTI_FAIL_IF(channels != 1 && channels != 3 && channels != 4, GPST_ERROR_UNSUPPORTED,
                  "NPY: %u dimensions, the last of %llu; (H,W), (H,W,1), (H,W,3) and (H,W,4) are read", header.n_dims,
                  (unsigned long long)(header.n_dims ? header.dims[header.n_dims - 1] : 0));
    GPSTI_TRY(gpsti_picture_check_sides("NPY", header.dims[1], header.dims[0]));
    plain->columns = header.fortran_order;
    plain->n_channels = (uint32_t)channels;
    shape->width = (uint32_t)header.dims[1];
    shape->height = (uint32_t)header.dims[0];
    shape->format = channels == 1 ? GPST_FORMAT_GRAY : channels == 3 ? GPST_FORMAT_RGB : GPST_FORMAT_RGBA;
    return gpsti_plain_check(plain, "NPY", shape, bytes, false);
}

/* ---- writing ---------------------------------------------------------------------- */

/* NumPy's letter of a type. */
GPSTI_PRIVATE char gpsti_npy_letter(gpst_dtype dtype) {
    if (dtype == GPST_DTYPE_I8)
        return 'i';
    return dtype == GPST_DTYPE_F16 || dtype == GPST_DTYPE_F32 ? 'f' : 'u';
}

GPSTI_INTERN size_t gpsti_npy_header(gpst_dtype dtype, const uint64_t* shape, uint32_t n_dims,
                                     char header[GPSTI_NPY_HEADER_BYTES]) {
    char text[GPSTI_NPY_HEADER_BYTES];
    const uint32_t bytes_each = gpst_dtype_bytes(dtype);
    int used = snprintf(text, sizeof text, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                        gpsti_npy_order(bytes_each), gpsti_npy_letter(dtype), bytes_each);
    for (uint32_t i = 0; i < n_dims; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%llu%s", (unsigned long long)shape[i],
                         n_dims == 1      ? ","
                         : i + 1 < n_dims ? ", "
                                          : "");
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    const size_t total = (10 + (size_t)used + 1 + 63) / 64 * 64;
    memset(header, ' ', total);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - 10) & 255);
    header[9] = (char)((total - 10) >> 8);
    memcpy(header + 10, text, (size_t)used);
    header[total - 1] = '\n';
    return total;
}

GPSTI_INTERN size_t gpsti_npy_write_header(const gpst_image* image, char out[GPSTI_NPY_HEADER_BYTES]) {
    const uint32_t channels = gpsti_image_channels(image);
    const bool planes = image->layout == GPST_LAYOUT_CHW;
    uint64_t shape[3];
    uint32_t n = 0;
    if (planes)
        shape[n++] = channels;
    shape[n++] = image->height;
    shape[n++] = image->width;
    if (!planes && channels > 1)
        shape[n++] = channels;
    return gpsti_npy_header(image->dtype, shape, n, out);
}
