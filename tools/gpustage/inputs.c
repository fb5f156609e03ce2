/* tools/gpustage/inputs.c -- from INPUT arguments to a list of files. Opens no picture. */
#include "inputs.h"

#include "console.h"
#include "files.h"
#include "remarks.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ------------------------------------------------------------------- */

/* base: where in path the part begins that outputs are named by. */
static bool inputs_add(input_list* self, const char* path, size_t base, const char* problem) {
    const char* const name = files_base_name(path);
    const char* const dot = strrchr(name, '.');
    const char* const end = dot && dot != name ? dot : path + strlen(path);
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
    added->stem = text_copy(path + base, (size_t)(end - path) - base);
    added->problem = problem ? text_copy(problem, strlen(problem)) : NULL;
    return added->path && added->stem && (added->problem || !problem);
}

void inputs_free(input_list* self) {
    for (size_t i = 0; i < self->count; i++) {
        free(self->items[i].path);
        free(self->items[i].stem);
        free(self->items[i].problem);
        free(self->items[i].identity);
        free(self->items[i].mask);
    }
    free(self->items);
    memset(self, 0, sizeof *self);
}

/* ---- the mask of a frame ------------------------------------------------------------- */

static const char* const inputs_mask_patterns[] = {"{stem}.png", "{name}.png", "{stem}_mask.png"};

/* By the n-th pattern; NULL: there are no more, the name is too long, or there is no memory. free. */
static char* inputs_mask_path(const input* self, const options* asked, size_t n) {
    const bool given = asked->mask_names != NULL;
    char name[1024];
    text path = GPST_ZERO;
    if (n >= (given ? 1 : sizeof inputs_mask_patterns / sizeof inputs_mask_patterns[0]) ||
        !text_expand(given ? asked->mask_names : inputs_mask_patterns[n], files_base_name(self->path), name,
                     sizeof name))
        return NULL;
    text_format(&path, "%s/%.*s%s", asked->mask, (int)(files_base_name(self->stem) - self->stem), self->stem, name);
    return path.data;
}

text inputs_mask_names(const input* self, const options* asked) {
    text names = GPST_ZERO;
    for (size_t n = 0;; n++) {
        char* const path = inputs_mask_path(self, asked, n);
        if (!path)
            return names;
        text_format(&names, "%s%s", n ? " or " : "", path);
        free(path);
    }
}

static void inputs_find_mask(input* self, const options* asked) {
    char* path = NULL;
    file_info info;
    free(self->mask);
    self->mask = NULL;
    for (size_t n = 0; !self->mask && (path = inputs_mask_path(self, asked, n)) != NULL; n++) {
        if (files_query(path, &info) || !info.is_regular) {
            free(path);
            continue;
        }
        self->mask = path;
        self->mask_bytes = info.bytes;
        self->mask_mtime_ns = info.mtime_ns;
    }
}

void inputs_refresh(input* self, const options* asked) {
    file_info info;
    free(self->identity);
    self->identity = !files_query(self->path, &info) && info.is_regular ? files_real_path(self->path) : NULL;
    self->bytes = info.bytes;
    self->mtime_ns = info.mtime_ns;
    if (asked->mask_by_frame)
        inputs_find_mask(self, asked);
}

/* ---- directories ------------------------------------------------------------------- */

#define INPUTS_DEPTH 64   /* of directories below an argument, where the system does not tell one from another */
#define INPUTS_EXAMPLES 3 /* names of what is left out */

/* Of one kind what is left out: how many, and the first names. */
typedef struct inputs_left {
    size_t n;
    text names;
} inputs_left;

enum { INPUTS_FILES, INPUTS_ENDLESS, INPUTS_FOLDERS, INPUTS_LEFT };

/* What lies below one argument, and what of it is left out. */
typedef struct inputs_found {
    input_list* list;
    const options* asked;
    bool raw; /* every file is one, whatever its name */
    bool added;
    size_t base; /* of paths: the argument's own part */
    size_t n;
    inputs_left left[INPUTS_LEFT];
    folder_set entered;
} inputs_found;

static void inputs_leave_out(inputs_found* self, const char* path, int kind) {
    inputs_left* const left = &self->left[kind];
    if (++left->n <= INPUTS_EXAMPLES)
        text_format(&left->names, "%s%s", left->n > 1 ? ", " : "", path + self->base);
    else if (left->n == INPUTS_EXAMPLES + 1)
        text_add(&left->names, ", ...");
}

static bool inputs_take_found(void* user_data, const char* path, bool is_picture) {
    inputs_found* const found = (inputs_found*)user_data;
    file_info info;
    const bool is_endless = !files_query(path, &info) && !info.is_regular;
    if (is_endless || (!is_picture && !found->raw)) {
        inputs_leave_out(found, path, is_endless ? INPUTS_ENDLESS : INPUTS_FILES);
        return true;
    }
    const size_t base = found->asked->recursive ? found->base : (size_t)(files_base_name(path) - path);
    found->n++;
    found->added = inputs_add(found->list, path, base, NULL);
    return found->added;
}

static int inputs_compare_names(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

/* Paths of the directories in a directory, sorted, without those whose names begin with a dot. */
static bool inputs_list_folders(const char* path, text_list* out) {
    const char* const separator = path[strlen(path) - 1] == '/' ? "" : "/";
    text_list names = GPST_ZERO;
    file_info info;
    bool added = files_list(path, &names) != text_out_of_memory;
    for (size_t i = 0; added && i < names.count; i++) {
        text below = GPST_ZERO;
        text_format(&below, "%s%s%s", path, separator, names.items[i]);
        added = below.data != NULL;
        if (added && names.items[i][0] != '.' && !files_query(below.data, &info) && info.is_directory)
            added = text_list_add(out, below.data);
        text_free(&below);
    }
    text_list_free(&names);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, inputs_compare_names);
    return added;
}

/* Where outputs and masks lie nothing is an input. */
static bool inputs_is_ours(const options* asked, const char* path) {
    return files_same_directory(path, asked->output) ||
           (asked->mask_by_frame && files_same_directory(path, asked->mask));
}

static void inputs_walk(inputs_found* self, const char* path, int depth) {
    text_list folders = GPST_ZERO;
    if (!files_enter(&self->entered, path)) {
        self->added = !self->entered.failed;
        return;
    }
    const gpst_result result = gpst_folder_list(path, inputs_take_found, self);
    if (result == GPST_ERROR_MEMORY || !self->added)
        self->added = false;
    else if (GPST_FAILED(result))
        self->added = inputs_add(self->list, path, (size_t)(files_base_name(path) - path), gpst_last_reason());
    else
        self->added = inputs_list_folders(path, &folders);
    for (size_t i = 0; self->added && i < folders.count; i++) {
        if (!self->asked->recursive || depth == INPUTS_DEPTH || inputs_is_ours(self->asked, folders.items[i]))
            inputs_leave_out(self, folders.items[i], INPUTS_FOLDERS);
        else
            inputs_walk(self, folders.items[i], depth + 1);
    }
    text_list_free(&folders);
}

/* "; 2 other files are left out: a.txt, b.txt" */
static void inputs_say_left(text* out, const inputs_left* left, const char* one, const char* more, const char* why) {
    if (left->n > 0)
        text_format(out, "; %zu %s left out%s: %s", left->n, left->n == 1 ? one : more, why,
                    left->names.data ? left->names.data : "");
}

static bool inputs_add_directory(input_list* self, const char* path, const options* asked, bool raw) {
    const size_t bytes = strlen(path);
    const size_t n_before = self->count;
    inputs_found found;
    text left = GPST_ZERO;
    memset(&found, 0, sizeof found);
    found.list = self;
    found.asked = asked;
    found.raw = raw;
    found.added = true;
    found.base = path[bytes - 1] == '/' ? bytes : bytes + 1;
    inputs_walk(&found, path, 0);
    inputs_say_left(&left, &found.left[INPUTS_FILES], "other file is", "other files are", "");
    inputs_say_left(&left, &found.left[INPUTS_ENDLESS], "FIFO, socket or device is", "FIFOs, sockets or devices are", "");
    inputs_say_left(&left, &found.left[INPUTS_FOLDERS], "folder is", "folders are",
                    asked->recursive ? "" : " (see --recursive)");
    const char* const says = left.data ? left.data : "";
    const char* const plural = found.n == 1 ? "" : "s";
    if (found.added && (left.data || (found.n == 0 && self->count == n_before)) &&
        !remarks_add("left_out", path, "%zu picture%s%s", found.n, plural, says))
        console_note("note: %s: %zu picture%s%s", path, found.n, plural, says); /* of each directory */
    text_free(&left);
    for (int i = 0; i < INPUTS_LEFT; i++)
        text_free(&found.left[i].names);
    free(found.entered.items);
    return found.added;
}

#define INPUTS_LIST_BYTES ((size_t)256 << 20) /* of a list, at most: a device may never end */

/* ---- arguments ------------------------------------------------------------------------ */

static bool inputs_add_path(input_list* self, const char* path, const options* asked) {
    const bool raw = asked->raw.format != GPST_FORMAT_INVALID;
    file_info info;
    const bool is_there = !files_query(path, &info);
    if (is_there && info.is_directory)
        return inputs_add_directory(self, path, asked, raw);
    self->has_streams = self->has_streams || (is_there && !info.is_regular);
    /* If it is not there, that is an error of the item. */
    return inputs_add(self, path, (size_t)(files_base_name(path) - path), NULL);
}

static bool inputs_add_lines(input_list* self, char* lines, const options* asked) {
    bool added = true;
    while (added && *lines) {
        char* const end = lines + strcspn(lines, "\n");
        char* const next = *end ? end + 1 : end;
        *end = '\0';
        if (end > lines && end[-1] == '\r')
            end[-1] = '\0';
        if (*lines)
            added = inputs_add_path(self, lines, asked);
        lines = next;
    }
    return added;
}

static int inputs_add_argument(input_list* self, const options* asked, const char* argument) {
    bool added = true;
    if (argument[0] == '@') {
        text lines = GPST_ZERO;
        const char* problem = files_read_at_most(argument + 1, INPUTS_LIST_BYTES, &lines);
        problem = problem ? problem : text_make_utf8(&lines);
        if (problem) {
            text_free(&lines);
            return console_refuse(asked->command_name, problem, "%s: %s", argument, problem);
        }
        added = !lines.data || inputs_add_lines(self, lines.data, asked);
        text_free(&lines);
    } else {
        added = inputs_add_path(self, argument, asked);
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
                              "%s and %s: both outputs would be named \"%s\": inputs need different stems, "
                              "or one directory above them as INPUT, with --recursive",
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
    for (size_t i = 0; asked->mask_by_frame && status == EXIT_DONE && i < self->count; i++)
        inputs_refresh(&self->items[i], asked);
    return status;
}
