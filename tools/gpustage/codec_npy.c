/* tools/gpustage/codec_npy.c -- NumPy's .npy: (H,W) and (H,W,1|3|4) of u1, u2, f2 and f4 in, any layout out. Its
   header is a Python dictionary, of which exactly the three keys of the format are understood. */
#include "codec_internal.h"

#include <stdio.h>
#include <string.h>

#define CODEC_NPY_MAX_DIMS 8

typedef struct codec_npy_fields {
    char descr[8]; /* "" where it is longer or no string */
    bool fortran_order;
    uint32_t n_dims;
    uint64_t dims[CODEC_NPY_MAX_DIMS];
    uint32_t keys; /* seen: 1 descr, 2 fortran_order, 4 shape */
} codec_npy_fields;

typedef struct codec_npy_cursor {
    const char *at, *end;
} codec_npy_cursor;

static bool codec_npy_is(const uint8_t* data, size_t bytes) {
    return bytes >= 6 && memcmp(data, "\x93NUMPY", 6) == 0;
}

/* The next character behind white space, 0 at the end; it stays. */
static char codec_npy_peek(codec_npy_cursor* cursor) {
    while (cursor->at != cursor->end && (*cursor->at == ' ' || (*cursor->at >= '\t' && *cursor->at <= '\r')))
        cursor->at++;
    return cursor->at == cursor->end ? '\0' : *cursor->at;
}

static bool codec_npy_accept(codec_npy_cursor* cursor, char c) {
    if (c == '\0' || codec_npy_peek(cursor) != c)
        return false;
    cursor->at++;
    return true;
}

static bool codec_npy_accept_word(codec_npy_cursor* cursor, const char* word) {
    const size_t length = strlen(word);
    codec_npy_peek(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* A quoted string without escapes; "" when it is longer than the room. */
static bool codec_npy_string(codec_npy_cursor* cursor, char* out, size_t room) {
    const char quote = codec_npy_peek(cursor);
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

static bool codec_npy_shape(codec_npy_cursor* cursor, codec_npy_fields* header) {
    if (!codec_npy_accept(cursor, '('))
        return false;
    header->n_dims = 0;
    while (!codec_npy_accept(cursor, ')')) {
        char c = codec_npy_peek(cursor);
        if (c < '0' || c > '9' || header->n_dims == CODEC_NPY_MAX_DIMS)
            return false;
        uint64_t value = 0;
        for (; cursor->at != cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
            value = value > UINT32_MAX ? value : value * 10 + (uint64_t)(*cursor->at - '0');
        header->dims[header->n_dims++] = value;
        if (!codec_npy_accept(cursor, ',') && codec_npy_peek(cursor) != ')')
            return false;
    }
    return true;
}

static bool codec_npy_pair(codec_npy_cursor* cursor, codec_npy_fields* header) {
    char key[16];
    if (!codec_npy_string(cursor, key, sizeof key) || !codec_npy_accept(cursor, ':'))
        return false;
    if (strcmp(key, "descr") == 0) {
        header->keys |= 1;
        return codec_npy_string(cursor, header->descr, sizeof header->descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        header->keys |= 2;
        header->fortran_order = codec_npy_accept_word(cursor, "True");
        return header->fortran_order || codec_npy_accept_word(cursor, "False");
    }
    header->keys |= 4;
    return strcmp(key, "shape") == 0 && codec_npy_shape(cursor, header);
}

static bool codec_npy_dictionary(codec_npy_cursor* cursor, codec_npy_fields* header) {
    if (!codec_npy_accept(cursor, '{'))
        return false;
    while (!codec_npy_accept(cursor, '}')) {
        if (!codec_npy_pair(cursor, header))
            return false;
        if (!codec_npy_accept(cursor, ',') && codec_npy_peek(cursor) != '}')
            return false;
    }
    return codec_npy_peek(cursor) == '\0' && header->keys == 7;
}

static char codec_npy_order(uint32_t bytes_each) {
    const uint16_t probe = 1;
    return bytes_each == 1 ? '|' : *(const uint8_t*)&probe ? '<' : '>';
}

/* Where the dictionary is; offset: where it ends. */
static gpst_result codec_npy_locate(const uint8_t* data, size_t bytes, codec_npy_cursor* out, size_t* offset,
                                    char* reason) {
    if (bytes >= 8 && (data[6] < 1 || data[6] > 3))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "NPY: version %d.%d; 1, 2 and 3 are read", data[6],
                          data[7]);
    const size_t prefix = bytes >= 8 && data[6] > 1 ? 12 : 10;
    if (bytes < prefix)
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "NPY: the header ends too early");
    size_t length = data[8] | (size_t)data[9] << 8;
    if (prefix == 12)
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (length > bytes - prefix)
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "NPY: the header ends too early");
    out->at = (const char*)data + prefix;
    out->end = out->at + length;
    *offset = prefix + length;
    return GPST_OK;
}

/* What order stands for is the machine's own; of single bytes it is any. */
static bool codec_npy_order_fits(char order, uint32_t bytes_each) {
    return bytes_each == 1 || order == '=' || order == codec_npy_order(bytes_each);
}

/* DEFAULT: none of those that are read. */
static gpst_dtype codec_npy_dtype(const char* descr) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static const char names[4][3] = {"u1", "u2", "f2", "f4"};
    const size_t length = strlen(descr);
    for (int i = 0; length >= 2 && length <= 3 && i < 4; i++)
        if (strcmp(descr + length - 2, names[i]) == 0 &&
            codec_npy_order_fits(length == 3 ? descr[0] : '=', gpst_dtype_bytes(dtypes[i])))
            return dtypes[i];
    return GPST_DTYPE_DEFAULT;
}

static gpst_result codec_npy_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                         codec_layout* layout, char* reason) {
    codec_npy_cursor cursor = {NULL, NULL};
    codec_npy_fields header;
    memset(&header, 0, sizeof header);
    gpst_result result = codec_npy_locate(data, bytes, &cursor, &layout->offset, reason);
    if (GPST_FAILED(result))
        return result;
    if (!codec_npy_dictionary(&cursor, &header))
        return codec_fail(reason, GPST_ERROR_FORMAT,
                          "NPY: the header is not a dictionary of descr, fortran_order and "
                          "shape");
    shape->dtype = codec_npy_dtype(header.descr);
    if (shape->dtype == GPST_DTYPE_DEFAULT)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "NPY: descr=\"%s\"; u1, u2, f2 and f4 are read, in this machine's byte order", header.descr);
    if (header.fortran_order)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "NPY: fortran_order=True; only C order is read");
    const uint64_t channels = header.n_dims == 2 ? 1 : header.n_dims == 3 ? header.dims[2] : 0;
    if (channels != 1 && channels != 3 && channels != 4)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "NPY: %u dimensions, the last of %llu; (H,W), (H,W,1), (H,W,3) "
                          "and (H,W,4) are read",
                          header.n_dims,
                          (unsigned long long)(header.n_dims ? header.dims[header.n_dims - 1] : 0));
    result = codec_check_sides("NPY", header.dims[1], header.dims[0], reason);
    if (GPST_FAILED(result))
        return result;
    shape->width = (uint32_t)header.dims[1];
    shape->height = (uint32_t)header.dims[0];
    shape->format = channels == 1 ? GPST_FORMAT_GRAY : channels == 3 ? GPST_FORMAT_RGB : GPST_FORMAT_RGBA;
    const size_t wanted = codec_plain_bytes(shape), found = bytes - layout->offset;
    if (found != wanted)
        return codec_fail(reason, found < wanted ? GPST_ERROR_TRUNCATED : GPST_ERROR_FORMAT,
                          "NPY: %zu bytes of pixels; %ux%u pixels are %zu", found, shape->width,
                          shape->height, wanted);
    return GPST_OK;
}

/* ---- writing ---------------------------------------------------------------------- */

size_t codec_npy_header(gpst_dtype dtype, const uint64_t* shape, uint32_t n_dims, void* out) {
    char text[CODEC_NPY_HEADER_BYTES], *header = (char*)out;
    const uint32_t bytes_each = gpst_dtype_bytes(dtype);
    int used = snprintf(text, sizeof text, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                        codec_npy_order(bytes_each), bytes_each == 1 ? 'u' : 'f', bytes_each);
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

static size_t codec_npy_write_header(const gpst_image* image, char out[CODEC_NPY_HEADER_BYTES]) {
    const uint32_t channels = gpst_format_channels(image->format);
    const bool planes = image->layout == GPST_LAYOUT_CHW;
    uint64_t shape[3];
    uint32_t n = 0;
    if (planes)
        shape[n++] = channels;
    shape[n++] = image->height;
    shape[n++] = image->width;
    if (!planes && channels > 1)
        shape[n++] = channels;
    return codec_npy_header(image->dtype, shape, n, out);
}

static size_t codec_npy_bound(const gpst_image* image, const codec_options* options) {
    char header[CODEC_NPY_HEADER_BYTES];
    (void)options;
    return codec_npy_write_header(image, header) + codec_plain_bytes(image);
}

static gpst_result codec_npy_encode(codec* self, const gpst_image* image, const codec_options* options,
                                    uint8_t* out, size_t* bytes, char* reason) {
    char header[CODEC_NPY_HEADER_BYTES];
    const size_t header_bytes = codec_npy_write_header(image, header);
    (void)self, (void)options, (void)reason;
    memcpy(out, header, header_bytes);
    codec_write_plain(image, out + header_bytes);
    *bytes = header_bytes + codec_plain_bytes(image);
    return GPST_OK;
}

const codec_format codec_npy = {CODEC_NPY, "NPY",           "npy",
                                true,      codec_npy_is,    codec_npy_read_header,
                                NULL,      codec_npy_bound, codec_npy_encode};
