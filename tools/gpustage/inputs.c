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

/* In a directory the name says what is a picture; of files that were named, only the contents count. */
static bool inputs_is_picture_name(const char* name) {
    static const char* const extensions[] = {"jpg", "jpeg", "png", "ppm", "pgm", "pnm", "pam", "npy"};
    char lower[8];
    const char* const dot = strrchr(name, '.');
    if (!dot || strlen(dot + 1) >= sizeof lower)
        return false;
    for (size_t i = 0; i <= strlen(dot + 1); i++)
        lower[i] = (char)(dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? dot[1 + i] - 'A' + 'a' : dot[1 + i]);
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
        if (!strcmp(lower, extensions[i]))
            return true;
    return false;
}

static int inputs_compare_names(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

static text inputs_join_path(const char* directory, const char* name) {
    text path = GPST_ZERO;
    const size_t bytes = strlen(directory);
    text_format(&path, "%s%s%s", directory, bytes && directory[bytes - 1] == '/' ? "" : "/", name);
    return path;
}

static bool inputs_add_entry(input_list* self, const char* directory, const char* name, bool raw,
                             size_t* ignored) {
    file_info info;
    bool added = true;
    text path = inputs_join_path(directory, name);
    if (path.failed)
        return false;
    const bool is_there = !files_query(path.data, &info), is_directory = is_there && info.is_directory;
    if (!is_directory && (raw || inputs_is_picture_name(name))) {
        added = inputs_add(self, path.data, NULL);
        self->has_streams = self->has_streams || (is_there && !info.is_regular);
    } else {
        *ignored += is_directory ? 0 : 1;
    }
    text_free(&path);
    return added;
}

static bool inputs_add_directory(input_list* self, const char* path, bool raw) {
    text_list names = GPST_ZERO;
    size_t ignored = 0;
    const size_t before = self->count;
    const char* const problem = files_list(path, &names);
    bool added = problem ? inputs_add(self, path, problem) : true;
    if (names.count > 1)
        qsort(names.items, names.count, sizeof *names.items, inputs_compare_names);
    for (size_t i = 0; !problem && added && i < names.count; i++)
        if (names.items[i][0] != '.')
            added = inputs_add_entry(self, path, names.items[i], raw, &ignored);
    if (added && !problem && (ignored > 0 || self->count == before))
        console_note("note: %s: %zu pictures; %zu other file%s left out", path, self->count - before, ignored,
                     ignored == 1 ? " is" : "s are");
    text_list_free(&names);
    return added;
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
