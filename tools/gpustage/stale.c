/* tools/gpustage/stale.c -- outputs under -o that runs with other settings made and that this one does not write. What
   is not known from the list there is never touched. */
#include "stale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int stale_compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

static bool stale_has(const text_list* sorted, const char* name) {
    return sorted->count > 0 && bsearch(&name, sorted->items, sorted->count, sizeof *sorted->items, stale_compare);
}

/* Somebody may have written into the list: nothing leads out of the directory. */
static bool stale_is_below(const char* name) {
    if (!*name || *name == '/' || strpbrk(name, "\\:"))
        return false;
    for (const char* part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
            return false;
    return true;
}

/* A folder on the way that is a link leads elsewhere. */
static bool stale_is_inside(const char* directory, const char* name) {
    char path[2 * OUTPUTS_PATH_BYTES];
    for (const char* end = strchr(name, '/'); end; end = strchr(end + 1, '/'))
        if (snprintf(path, sizeof path, "%s/%.*s", directory, (int)(end - name), name) >= (int)sizeof path ||
            files_is_link(path))
            return false;
    return true;
}

/* Names of the outputs of an item. False: out of memory. */
static bool stale_add_names(const outputs* self, const char* stem, text_list* out) {
    const uint32_t kinds = self->mask_names ? 2 : 1;
    char name[OUTPUTS_PATH_BYTES];
    for (uint32_t o = 0; o < kinds * self->n_outputs; o++)
        if (outputs_name(self, stem, o / kinds, o % kinds != 0, name, sizeof name) && !text_list_add(out, name))
            return false;
    return true;
}

/* How outputs were named by the list's settings. The texts hold what out points to; false: it has no such settings. */
static bool stale_read_names(const manifest* list, text values[5], outputs* out) {
    static const char* const keys[] = {"command", "views", "format", "layout", "mask-out"};
    uint64_t n_views = 1;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 5; i++)
        values[i] = manifest_find_setting(list, keys[i]);
    const char* number = values[1].data;
    out->numbered = values[0].data && !strcmp(values[0].data, "reproject");
    if (out->numbered &&
        (!number || !values[2].data || !text_read_count(&number, &n_views) || n_views > OPTIONS_MAX_VIEWS))
        return false;
    out->n_outputs = (uint32_t)n_views;
    out->extension = out->numbered ? values[2].data : "npy";
    out->layout = options_layout_of(values[3].data);
    out->mask_names = values[4].data && strcmp(values[4].data, options_switch_name(false)) ? values[4].data : NULL;
    return values[0].data != NULL;
}

/* Of the stems under the settings of the list, where they are not this run's. */
static bool stale_add_old(const manifest* list, const text_list* stems, text_list* out) {
    text values[5];
    outputs was;
    bool added = true;
    const bool is_known = stale_read_names(list, values, &was);
    for (size_t i = 0; is_known && added && i < stems->count; i++)
        added = stale_add_names(&was, stems->items[i], out);
    for (int i = 0; i < 5; i++)
        text_free(&values[i]);
    return added;
}

/* Under the settings of this run: what it writes, and what others of the same settings wrote. */
static bool stale_add_current(const manifest* list, const outputs* names, const input_list* inputs,
                              const text_list* stems, text_list* out) {
    bool added = true;
    for (size_t i = 0; added && i < inputs->count; i++)
        added = stale_add_names(names, inputs->items[i].stem, out);
    for (size_t i = 0; list->same && added && i < stems->count; i++)
        added = stale_add_names(names, stems->items[i], out);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, stale_compare);
    return added;
}

/* Of the candidates those that are there and are nobody's. */
static bool stale_choose(const char* directory, const text_list* candidates, const text_list* current,
                         const read_files* read, text_list* out) {
    bool added = true;
    for (size_t i = 0; added && i < candidates->count; i++) {
        const char* const name = candidates->items[i];
        char path[2 * OUTPUTS_PATH_BYTES];
        file_info info;
        if (stale_is_below(name) && stale_is_inside(directory, name) && !stale_has(current, name) &&
            (i == 0 || strcmp(name, candidates->items[i - 1]) != 0) &&
            snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path && !files_query(path, &info) &&
            info.is_regular && !outputs_find_read(read, path))
            added = text_list_add(out, name);
    }
    return added;
}

const char* stale_find(const manifest* list, const outputs* names, const input_list* inputs, const options* asked,
                       text_list* out) {
    text_list stems = GPST_ZERO, candidates = GPST_ZERO, current = GPST_ZERO;
    read_files read = {NULL, 0};
    bool done = manifest_list_stale(list, &candidates) && manifest_list_stems(list, &stems);
    if (done && !list->same)
        done = stale_add_old(list, &stems, &candidates);
    if (candidates.count > 1)
        qsort(candidates.items, candidates.count, sizeof *candidates.items, stale_compare);
    if (done && candidates.count > 0)
        done = stale_add_current(list, names, inputs, &stems, &current) && outputs_list_read(inputs, asked, &read) &&
               stale_choose(names->directory, &candidates, &current, &read, out);
    free(read.items);
    text_list_free(&current);
    text_list_free(&candidates);
    text_list_free(&stems);
    return done ? NULL : text_out_of_memory;
}

void stale_remove(const char* directory, const text_list* stale) {
    for (size_t i = 0; i < stale->count; i++) {
        text path = GPST_ZERO;
        text_format(&path, "%s/%s", directory, stale->items[i]);
        if (path.data)
            files_remove(path.data);
        for (size_t end = path.data ? path.bytes : 0; end > strlen(directory) + 1; end--)
            if (path.data[end] == '/') {
                path.data[end] = '\0';
                files_remove_directory(path.data);
            }
        text_free(&path);
    }
}
