/* tools/gpustage/text.c -- strings that grow, lists of strings, and numbers read in one way wherever the user
   lives. Prints nothing. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char text_out_of_memory[] = "out of memory";

/* ---- text -------------------------------------------------------------------- */

void text_free(text* self) {
    free(self->data);
    memset(self, 0, sizeof *self);
}

static bool text_fail(text* self) {
    text_free(self);
    self->failed = true;
    return false;
}

static bool text_reserve(text* self, size_t more) {
    if (self->failed || more > SIZE_MAX / 4 || self->bytes > SIZE_MAX / 4)
        return text_fail(self);
    if (self->bytes + more + 1 <= self->capacity)
        return true;
    const size_t capacity = (self->bytes + more + 1) * 2;
    char* const data = (char*)realloc(self->data, capacity);
    if (!data)
        return text_fail(self);
    self->data = data;
    self->capacity = capacity;
    return true;
}

void text_append(text* self, const char* data, size_t bytes) {
    if (!text_reserve(self, bytes))
        return;
    memcpy(self->data + self->bytes, data, bytes);
    self->bytes += bytes;
    self->data[self->bytes] = '\0';
}

void text_add(text* self, const char* string) { text_append(self, string, strlen(string)); }

void text_format(text* self, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (bytes < 0 || !text_reserve(self, (size_t)bytes))
        return;
    va_start(arguments, format);
    vsnprintf(self->data + self->bytes, (size_t)bytes + 1, format, arguments);
    va_end(arguments);
    self->bytes += (size_t)bytes;
}

/* ---- list -------------------------------------------------------------------- */

char* text_copy(const char* string, size_t bytes) {
    char* const copy = (char*)malloc(bytes + 1);
    if (!copy)
        return NULL;
    memcpy(copy, string, bytes);
    copy[bytes] = '\0';
    return copy;
}

bool text_list_add(text_list* self, const char* item) {
    if (self->count == self->capacity) {
        const size_t capacity = self->capacity ? self->capacity * 2 : 16;
        char** const items = (char**)realloc(self->items, capacity * sizeof *items);
        if (!items)
            return false;
        self->items = items;
        self->capacity = capacity;
    }
    char* const copy = text_copy(item, strlen(item));
    if (copy)
        self->items[self->count++] = copy;
    return copy != NULL;
}

void text_list_free(text_list* self) {
    for (size_t i = 0; i < self->count; i++)
        free(self->items[i]);
    free(self->items);
    memset(self, 0, sizeof *self);
}

static char text_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

bool text_same(const char* a, const char* b) {
    for (; *a && text_lower(*a) == text_lower(*b); a++)
        b++;
    return text_lower(*a) == text_lower(*b);
}

/* ---- numbers ------------------------------------------------------------------- */

bool text_read_count(const char** at, uint64_t* out) {
    const char* p = *at;
    uint64_t value = 0;
    while (*p >= '0' && *p <= '9') {
        const uint64_t digit = (uint64_t)(*p++ - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *out = value;
    return true;
}

static double text_scale(double mantissa, int exponent) {
    double power = 1.0;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        power *= 10.0;
    return exponent < 0 ? mantissa / power : mantissa * power;
}

static bool text_read_exponent(const char** at, int* exponent) {
    const char* p = *at + 1;
    const bool negative = *p == '-';
    uint64_t value;
    if (*p == '-' || *p == '+')
        p++;
    if (!text_read_count(&p, &value) || value > 300)
        return false;
    *exponent += negative ? -(int)value : (int)value;
    *at = p;
    return true;
}

/* Up to 15 digits and a power of ten up to 22 are exact, so their one product or quotient is the nearest
   double; with more it may be one unit in the last place beside it, and digits beyond the seventeenth count
   as zero. */
bool text_read_number(const char** at, double* out) {
    const char* p = *at;
    const bool negative = *p == '-';
    uint64_t mantissa = 0;
    int exponent = 0, digits = 0;
    bool point = false;
    if (*p == '-' || *p == '+')
        p++;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digits++;
        if (mantissa < 10000000000000000u) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
            exponent -= point ? 1 : 0;
        } else {
            exponent += point ? 0 : 1;
        }
    }
    if (digits == 0 || ((*p == 'e' || *p == 'E') && !text_read_exponent(&p, &exponent)))
        return false;
    *out = text_scale(negative ? -(double)mantissa : (double)mantissa, exponent);
    *at = p;
    return true;
}

/* ---- names and encodings --------------------------------------------------------- */

bool text_expand(const char* pattern, const char* name, char* out, size_t out_bytes) {
    const char* const dot = strrchr(name, '.');
    const size_t name_bytes = strlen(name), stem_bytes = dot && dot != name ? (size_t)(dot - name) : name_bytes;
    size_t used = 0;
    while (*pattern) {
        const bool is_name = !strncmp(pattern, "{name}", 6), is_stem = !strncmp(pattern, "{stem}", 6);
        const size_t bytes = is_name ? name_bytes : is_stem ? stem_bytes : 1;
        if (bytes >= out_bytes - used)
            return false;
        memcpy(out + used, is_name || is_stem ? name : pattern, bytes);
        used += bytes;
        pattern += is_name || is_stem ? 6 : 1;
    }
    out[used] = '\0';
    return true;
}

static void text_add_utf8(text* self, uint32_t code) {
    const char bytes[4] = {(char)(code < 0x80      ? code
                                  : code < 0x800   ? 0xc0 | code >> 6
                                  : code < 0x10000 ? 0xe0 | code >> 12
                                                   : 0xf0 | code >> 18),
                           (char)(0x80 | (code >> (code < 0x800 ? 0 : code < 0x10000 ? 6 : 12) & 0x3f)),
                           (char)(0x80 | (code >> (code < 0x10000 ? 0 : 6) & 0x3f)), (char)(0x80 | (code & 0x3f))};
    text_append(self, bytes, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
}

static uint32_t text_utf16_unit(const unsigned char* at, bool high_first) {
    return high_first ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

static const char* text_convert_utf16(text* self, bool high_first) {
    const unsigned char* const data = (const unsigned char*)self->data;
    text out = GPST_ZERO;
    const char* problem = self->bytes % 2 ? "is UTF-16 of an odd number of bytes" : NULL;
    for (size_t i = 2; !problem && i < self->bytes; i += 2) {
        uint32_t code = text_utf16_unit(data + i, high_first);
        const uint32_t next = i + 2 < self->bytes ? text_utf16_unit(data + i + 2, high_first) : 0;
        if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
            i += 2;
        } else if (code >= 0xd800 && code < 0xe000) {
            problem = "is UTF-16 with half a character in it";
        }
        text_add_utf8(&out, code);
    }
    text_free(self);
    *self = out;
    return self->failed ? text_out_of_memory : problem;
}

const char* text_make_utf8(text* self) {
    const char* problem = NULL;
    if (self->bytes >= 3 && !memcmp(self->data, "\xef\xbb\xbf", 3)) {
        self->bytes -= 3;
        memmove(self->data, self->data + 3, self->bytes + 1);
    } else if (self->bytes >= 2 && (!memcmp(self->data, "\xff\xfe", 2) || !memcmp(self->data, "\xfe\xff", 2))) {
        problem = text_convert_utf16(self, (unsigned char)self->data[0] == 0xfe);
    }
    if (!problem && self->bytes > 0 && strlen(self->data) < self->bytes)
        problem = "has a zero byte in it: names in UTF-16 need a byte order mark before them";
    return problem;
}

uint64_t text_hash(const void* data, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char*)data)[i]) * 0x100000001b3u;
    return hash;
}

void text_printable(char* out, size_t out_bytes, const char* string) {
    size_t i = 0;
    for (; string[i] && i + 1 < out_bytes; i++)
        out[i] = (unsigned char)string[i] < 0x20 || string[i] == 0x7f ? '?' : string[i];
    out[i] = '\0';
}
