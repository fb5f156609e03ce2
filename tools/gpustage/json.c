/* tools/gpustage/json.c -- writes JSON into a text. Knows nothing of what the values mean. */
#include "json.h"

#include <stdio.h>
#include <string.h>

/* Length of the UTF-8 sequence at p, 0 when it is none: too long a form, a surrogate, beyond U+10FFFF, cut
   off. */
static size_t json_utf8_bytes(const unsigned char* p) {
    const size_t bytes = *p < 0x80                 ? 1
                         : *p >= 0xc2 && *p < 0xe0 ? 2
                         : (*p & 0xf0) == 0xe0     ? 3
                         : *p >= 0xf0 && *p < 0xf5 ? 4
                                                   : 0;
    for (size_t i = 1; i < bytes; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
        (*p == 0xf4 && p[1] > 0x8f))
        return 0;
    return bytes;
}

bool json_can_hold(const char* string) {
    const unsigned char* p = (const unsigned char*)string;
    size_t bytes = 1;
    for (; *p && bytes > 0; p += bytes)
        bytes = json_utf8_bytes(p);
    return bytes > 0;
}

static void json_quote(json* self, const char* string) {
    const unsigned char* p = (const unsigned char*)string;
    text_add(&self->out, "\"");
    while (*p) {
        const size_t bytes = json_utf8_bytes(p);
        if (*p == '"' || *p == '\\')
            text_format(&self->out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            text_format(&self->out, "\\u%04x", *p);
        else if (bytes == 0)
            text_add(&self->out, "\\ufffd");
        else
            text_append(&self->out, (const char*)p, bytes);
        p += bytes ? bytes : 1;
    }
    text_add(&self->out, "\"");
}

/* Comma, line, indentation and key: what stands before every value. */
static void json_begin(json* self, const char* key) {
    if (self->has_before)
        text_add(&self->out, ",");
    if (self->depth > 0)
        text_format(&self->out, "\n%*s", (int)(2 * self->depth), "");
    if (key) {
        json_quote(self, key);
        text_add(&self->out, ": ");
    }
    self->has_before = true;
}

void json_open(json* self, const char* key, char bracket) {
    json_begin(self, key);
    text_append(&self->out, &bracket, 1);
    self->depth++;
    self->has_before = false;
}

void json_close(json* self, char bracket) {
    self->depth--;
    if (self->has_before)
        text_format(&self->out, "\n%*s", (int)(2 * self->depth), "");
    text_append(&self->out, &bracket, 1);
    self->has_before = true;
    if (self->depth == 0)
        text_add(&self->out, "\n");
}

void json_string(json* self, const char* key, const char* value) {
    json_begin(self, key);
    json_quote(self, value);
}

void json_count(json* self, const char* key, uint64_t value) {
    json_begin(self, key);
    text_format(&self->out, "%llu", (unsigned long long)value);
}

/* 17 digits bring the same double back; fewer where they do, because 0.1 reads better than
   0.10000000000000001. */
void json_number(json* self, const char* key, double value) {
    char digits[40] = "null";
    json_begin(self, key);
    if (value - value == 0.0) {
        double back = 0.0;
        for (int precision = 6; precision <= 17; precision++) {
            snprintf(digits, sizeof digits, "%.*g", precision, value);
            for (char* p = digits; *p; p++)
                if (*p == ',') /* some locales' point */
                    *p = '.';
            const char* at = digits;
            if (text_read_number(&at, &back) && back == value)
                break;
        }
    }
    text_add(&self->out, digits);
}

void json_bool(json* self, const char* key, bool value) {
    json_begin(self, key);
    text_add(&self->out, value ? "true" : "false");
}
