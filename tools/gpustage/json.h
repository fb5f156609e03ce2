/* tools/gpustage/json.h -- writes JSON into a text: right escapes, commas by itself, numbers that every
   reader takes. */
#ifndef GPST_TOOL_JSON_H
#define GPST_TOOL_JSON_H

#include "text.h"

/* All-zero is ready. Every value is put by json_..(self, key, value); key is NULL inside a list. */
typedef struct json {
    text out;
    unsigned depth;
    bool has_before; /* a value stands before this one at this depth */
} json;

bool json_can_hold(const char* string); /* it is UTF-8; of what is not, json_string puts U+FFFD for each byte */
void json_open(json* self, const char* key, char bracket); /* '{' or '[' */
void json_close(json* self, char bracket);                 /* '}' or ']' */
void json_string(json* self, const char* key, const char* value);
void json_count(json* self, const char* key, uint64_t value);
void json_number(json* self, const char* key, double value); /* null when it is not finite */
void json_bool(json* self, const char* key, bool value);

#endif
