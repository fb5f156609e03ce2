/* tools/gpustage/remarks.c -- what a run leaves out, drops or changes without being asked to. Knows no reason for any.
 */
#include "remarks.h"

#include "console.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REMARKS_KINDS 32 /* that this program has, at most */
#define REMARKS_BYTES 1024

typedef struct remark {
    const char* kind;
    uint64_t count;
    char item[REMARKS_BYTES], text[REMARKS_BYTES]; /* of the first */
} remark;

static remark remarks_known[REMARKS_KINDS];
static size_t remarks_count;
static pthread_mutex_t remarks_mutex = PTHREAD_MUTEX_INITIALIZER;

/* True: it is the first of its kind. Locked. */
static bool remarks_take(const char* kind, const char* item, const char* says) {
    size_t n = 0;
    while (n < remarks_count && strcmp(remarks_known[n].kind, kind) != 0)
        n++;
    if (n == REMARKS_KINDS)
        return true;
    remark* const found = &remarks_known[n];
    found->count++;
    if (n < remarks_count)
        return false;
    remarks_count++;
    found->kind = kind;
    snprintf(found->item, sizeof found->item, "%s", item);
    snprintf(found->text, sizeof found->text, "%s", says);
    return true;
}

bool remarks_add(const char* kind, const char* item, const char* format, ...) {
    char says[REMARKS_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(says, sizeof says, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&remarks_mutex);
    const bool first = remarks_take(kind, item, says);
    pthread_mutex_unlock(&remarks_mutex);
    if (first)
        console_note("note: %s%s%s", item, item[0] ? ": " : "", says);
    return first;
}

void remarks_json(json* out) {
    json_open(out, "remarks", '[');
    pthread_mutex_lock(&remarks_mutex);
    for (size_t i = 0; i < remarks_count; i++) {
        json_open(out, NULL, '{');
        json_string(out, "kind", remarks_known[i].kind);
        json_count(out, "count", remarks_known[i].count);
        json_string(out, "first_item", remarks_known[i].item);
        json_string(out, "text", remarks_known[i].text);
        json_close(out, '}');
    }
    pthread_mutex_unlock(&remarks_mutex);
    json_close(out, ']');
}
