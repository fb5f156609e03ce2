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
    if (!*name || *name == '/')
        return false;
#if defined(_WIN32)
    if (strpbrk(name, "\\:"))
        return false;
#endif
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

const char* stale_name(const char* stale) {
    for (int i = 0; i < 2; i++)
        stale += strcspn(stale, " ") + (strchr(stale, ' ') ? 1 : 0);
    return stale;
}

/* The names of the outputs of an item; false: out of memory. */
static bool stale_add_names(const outputs* self, const char* stem, text_list* out) {
    const uint32_t kinds = self->mask_names ? 2 : 1;
    char name[OUTPUTS_PATH_BYTES];
    for (uint32_t o = 0; o < kinds * self->n_outputs; o++)
        if (outputs_name(self, stem, o / kinds, o % kinds != 0, name, sizeof name) && !text_list_add(out, name))
            return false;
    return true;
}

/* What manifest_each_item's functions are called with. */
typedef struct stale_items {
    outputs names; /* of their outputs */
    text_list* out;
} stale_items;

static bool stale_add_item_names(void* user_data, const manifest_entry* item) {
    const stale_items* const self = (const stale_items*)user_data;
    return stale_add_names(&self->names, item->stem, self->out);
}

/* The outputs of an item as the list has them. */
static bool stale_add_made(void* user_data, const manifest_entry* item) {
    const stale_items* const self = (const stale_items*)user_data;
    const char *bytes = item->output_bytes, *time = item->output_times;
    text_list names = GPST_ZERO;
    bool added = stale_add_names(&self->names, item->stem, &names);
    for (size_t i = 0; added && i < names.count && *bytes && *time; i++) {
        text made = GPST_ZERO;
        text_format(&made, "%.*s %.*s %s", (int)strcspn(bytes, ","), bytes, (int)strcspn(time, ","), time,
                    names.items[i]);
        added = made.data && text_list_add(self->out, made.data);
        text_free(&made);
        bytes += strcspn(bytes, ",") + (strchr(bytes, ',') ? 1 : 0);
        time += strcspn(time, ",") + (strchr(time, ',') ? 1 : 0);
    }
    text_list_free(&names);
    return added;
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

/* What its runs made, where their settings are not this run's. */
static bool stale_add_old(const manifest* list, text_list* out) {
    text values[5];
    stale_items was;
    was.out = out;
    const bool added = !stale_read_names(list, values, &was.names) || manifest_each_item(list, stale_add_made, &was);
    for (int i = 0; i < 5; i++)
        text_free(&values[i]);
    return added;
}

/* Names of what this run writes, and of what others of the same settings wrote. */
static bool stale_add_current(const manifest* list, const outputs* names, const input_list* inputs, text_list* out) {
    stale_items same = {*names, out};
    bool added = true;
    for (size_t i = 0; added && i < inputs->count; i++)
        added = stale_add_names(names, inputs->items[i].stem, out);
    if (added && list->same)
        added = manifest_each_item(list, stale_add_item_names, &same);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, stale_compare);
    return added;
}

/* Is it the very file that the run made? What has no time could be any, and a link to it is somebody's own. */
static bool stale_is_there(const char* path, const char* stale) {
    file_info info;
    text now = GPST_ZERO;
    if (files_is_link(path) || files_query(path, &info) || !info.is_regular || info.mtime_ns < 0)
        return false;
    text_format(&now, "%llu %lld %s", (unsigned long long)info.bytes, (long long)info.mtime_ns, stale_name(stale));
    const bool same = now.data && !strcmp(now.data, stale);
    text_free(&now);
    return same;
}

/* Of the candidates those that are there and are nobody's. */
static bool stale_choose(const char* directory, const text_list* candidates, const text_list* current,
                         const read_files* read, text_list* out) {
    bool added = true;
    for (size_t i = 0; added && i < candidates->count; i++) {
        const char* const name = stale_name(candidates->items[i]);
        char path[2 * OUTPUTS_PATH_BYTES];
        if (stale_is_below(name) && stale_is_inside(directory, name) && !stale_has(current, name) &&
            (i == 0 || strcmp(candidates->items[i], candidates->items[i - 1]) != 0) &&
            snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path &&
            stale_is_there(path, candidates->items[i]) && !outputs_find_read(read, path))
            added = text_list_add(out, candidates->items[i]);
    }
    return added;
}

static int stale_compare_names(const void* a, const void* b) {
    return strcmp(stale_name(*(char* const*)a), stale_name(*(char* const*)b));
}

const char* stale_find(const manifest* list, const outputs* names, const input_list* inputs, const options* asked,
                       text_list* out) {
    text_list candidates = GPST_ZERO, current = GPST_ZERO;
    read_files read = {NULL, 0};
    bool done = manifest_list_stale(list, &candidates);
    if (done && !list->same)
        done = stale_add_old(list, &candidates);
    if (candidates.count > 1)
        qsort(candidates.items, candidates.count, sizeof *candidates.items, stale_compare);
    if (done && candidates.count > 0)
        done = stale_add_current(list, names, inputs, &current) && outputs_list_read(inputs, asked, &read) &&
               stale_choose(names->directory, &candidates, &current, &read, out);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, stale_compare_names); /* as they are told */
    free(read.items);
    text_list_free(&current);
    text_list_free(&candidates);
    return done ? NULL : text_out_of_memory;
}

void stale_remove(const char* directory, const text_list* stale) {
    for (size_t i = 0; i < stale->count; i++) {
        text path = GPST_ZERO;
        text_format(&path, "%s/%s", directory, stale_name(stale->items[i]));
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
