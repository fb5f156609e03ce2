/* tools/gpustage/text.h -- strings that grow, lists of strings, and numbers read in one way wherever the user
   lives. */
#ifndef GPST_TOOL_TEXT_H
#define GPST_TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../gpustage.h"

/* All-zero is an empty text. Out of memory: `failed` is set and stays, and data is NULL: nobody takes a part for the
   whole. */
typedef struct text {
    char* data; /* NULL, or ends in 0 */
    size_t bytes, capacity;
    bool failed;
} text;

void text_free(text* self);
void text_append(text* self, const char* data, size_t bytes);
void text_add(text* self, const char* string);
void text_format(text* self, const char* format, ...) GPSTI_PRINTF(2, 3);

/* All-zero is an empty list. */
typedef struct text_list {
    char** items;
    size_t count, capacity;
} text_list;

/* What functions that return a sentence say then; compared by address, since it is no fault of what was asked for. */
extern const char text_out_of_memory[];

bool text_list_add(text_list* self, const char* item); /* copies; false: out of memory */
void text_list_free(text_list* self);

bool text_same(const char* a, const char* b); /* but for the case of letters from A to Z */
char* text_copy(const char* string, size_t bytes); /* NULL: out of memory */

/* Reads a number off the front of *at and moves *at behind it; false: there is none, and *at stays. Decimal
   only (no 0x, inf, nan or blanks), with a point whatever the locale says. */
bool text_read_number(const char** at, double* out);
bool text_read_count(const char** at, uint64_t* out); /* digits; false also when it does not fit */

/* pattern with name for each {name}, and name without its last extension for each {stem}. False: there is less room. */
bool text_expand(const char* pattern, const char* name, char* out, size_t out_bytes);

/* UTF-8 with a byte order mark, or UTF-16 with one, becomes UTF-8 without; what has none stays as it is. NULL, or why it
   is no text. */
const char* text_make_utf8(text* self);

uint64_t text_hash(const void* data, size_t bytes); /* FNV-1a: tells contents apart, not meant to withstand anybody */

/* Copies and puts '?' for control characters: for what goes to a terminal. */
void text_printable(char* out, size_t out_bytes, const char* string);

#endif
