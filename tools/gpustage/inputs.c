/* tools/gpustage/inputs.c -- from INPUT arguments to a list of files. Opens no picture. */
#include "inputs.h"

#include "console.h"
#include "files.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ------------------------------------------------------------------- */

static char* inputs_make_stem(const char* path) {
    const char* const name = files_base_name(path);
    const char* const dot = strrchr(name, '.');
    return text_copy(name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

static bool inputs_add(input_list* self, const char* path, const char* problem) {
    if (self->count == self->capacity) {
        const size_t capacity = self->capacity ? self->capacity * 2 : 64;
        input* const items = (input*)realloc(self->items, capacity * sizeof *items);
        if (!items)
            return false;
        self->items = items;
        self->capacity = capacity;
    }
    input* const added = &self->items[self->count++];
    memset(added, 0, sizeof *added);
    added->path = text_copy(path, strlen(path));
    added->stem = inputs_make_stem(path);
    added->problem = problem ? text_copy(problem, strlen(problem)) : NULL;
    return added->path && added->stem && (added->problem || !problem);
}

void inputs_free(input_list* self) {
    for (size_t i = 0; i < self->count; i++) {
        free(self->items[i].path);
        free(self->items[i].stem);
        free(self->items[i].problem);
        free(self->items[i].identity);
    }
    free(self->items);
    memset(self, 0, sizeof *self);
}

void inputs_refresh(input* self) {
    file_info info;
    free(self->identity);
    self->identity = !files_query(self->path, &info) && info.is_regular ? files_real_path(self->path) : NULL;
    self->bytes = info.bytes;
    self->mtime_ns = info.mtime_ns;
}

/* ---- directories ------------------------------------------------------------------- */

/* What a listing adds to. */
typedef struct inputs_found {
    input_list* list;
    bool raw; /* every file is one, whatever its name */
    bool added;
    size_t n, n_ignored;
} inputs_found;

static bool inputs_take_found(void* user_data, const char* path, bool is_picture) {
    inputs_found* const found = (inputs_found*)user_data;
    file_info info;
    if (!is_picture && !found->raw) {
        found->n_ignored++;
        return true;
    }
    found->n++;
    found->added = inputs_add(found->list, path, NULL);
    found->list->has_streams = found->list->has_streams || (!files_query(path, &info) && !info.is_regular);
    return found->added;
}

static bool inputs_add_directory(input_list* self, const char* path, bool raw) {
    inputs_found found = {self, raw, true, 0, 0};
    const gpst_result result = gpst_folder_list(path, inputs_take_found, &found);
    if (result == GPST_ERROR_MEMORY || !found.added)
        return false;
    if (GPST_FAILED(result))
        return inputs_add(self, path, gpst_last_reason());
    if (found.n_ignored > 0 || found.n == 0)
        console_note("note: %s: %zu pictures; %zu other file%s left out", path, found.n, found.n_ignored,
                     found.n_ignored == 1 ? " is" : "s are");
    return true;
}

#define INPUTS_LIST_BYTES ((size_t)256 << 20) /* of a list, at most: a device may never end */

/* ---- arguments ------------------------------------------------------------------------ */

static bool inputs_add_path(input_list* self, const char* path, bool raw) {
    file_info info;
    const bool is_there = !files_query(path, &info);
    if (is_there && info.is_directory)
        return inputs_add_directory(self, path, raw);
    self->has_streams = self->has_streams || (is_there && !info.is_regular);
    return inputs_add(self, path, NULL); /* if it is not there, that is an error of the item */
}

static bool inputs_add_lines(input_list* self, char* lines, bool raw) {
    bool added = true;
    while (added && *lines) {
        char* const end = lines + strcspn(lines, "\n");
        char* const next = *end ? end + 1 : end;
        *end = '\0';
        if (end > lines && end[-1] == '\r')
            end[-1] = '\0';
        if (*lines)
            added = inputs_add_path(self, lines, raw);
        lines = next;
    }
    return added;
}

static int inputs_add_argument(input_list* self, const options* asked, const char* argument) {
    const bool raw = asked->raw.format != GPST_FORMAT_INVALID;
    bool added = true;
    if (argument[0] == '@') {
        text lines = GPST_ZERO;
        const char* const problem = files_read_at_most(argument + 1, INPUTS_LIST_BYTES, &lines);
        if (problem) {
            text_free(&lines);
            return console_refuse(asked->command_name, problem, "%s: %s", argument, problem);
        }
        added = !lines.data || inputs_add_lines(self, lines.data, raw);
        text_free(&lines);
    } else {
        added = inputs_add_path(self, argument, raw);
    }
    return added ? EXIT_DONE : console_memory();
}

/* ---- rules ------------------------------------------------------------------------------- */

static int inputs_compare_stems(const void* a, const void* b) {
    const input* const first = *(const input* const*)a;
    const input* const second = *(const input* const*)b;
    const int order = strcmp(first->stem, second->stem);
    return order ? order : first < second ? -1 : 1; /* the pair that is named should not depend on qsort */
}

static int inputs_check_stems(const input_list* self, const options* asked) {
    const input** const sorted = (const input**)malloc((self->count + 1) * sizeof *sorted);
    int status = EXIT_DONE;
    size_t n = 0;
    if (!sorted)
        return console_memory();
    for (size_t i = 0; i < self->count; i++)
        if (!self->items[i].problem)
            sorted[n++] = &self->items[i];
    if (n > 1)
        qsort(sorted, n, sizeof *sorted, inputs_compare_stems);
    for (size_t i = 1; status == EXIT_DONE && i < n; i++)
        if (!strcmp(sorted[i - 1]->stem, sorted[i]->stem))
            status =
                console_usage(asked->command_name,
                              "%s and %s: both outputs would be named \"%s\": inputs need different stems",
                              sorted[i - 1]->path, sorted[i]->path, sorted[i]->stem);
    free(sorted);
    return status;
}

int inputs_collect(input_list* self, const options* asked, bool unique_stems) {
    int status = EXIT_DONE;
    memset(self, 0, sizeof *self);
    for (size_t i = 0; status == EXIT_DONE && i < asked->inputs.count; i++)
        status = inputs_add_argument(self, asked, asked->inputs.items[i]);
    if (status == EXIT_DONE && self->count == 0)
        status = console_usage(asked->command_name, "%s: holds no picture", asked->inputs.items[0]);
    if (status == EXIT_DONE && unique_stems)
        status = inputs_check_stems(self, asked);
    return status;
}
