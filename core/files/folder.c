/* core/files/folder.c -- the names in a folder, in their order. */
#include "../base/platform_internal.h"

#include "folder_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- a list that grows ------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_names_grow(gpsti_names* self) {
    const size_t capacity = self->capacity ? 2 * self->capacity : 64;
    char** const items = (char**)gpsti_alloc(self->host, capacity * sizeof *items);
    if (!items)
        return GPST_ERROR_MEMORY;
    if (self->n > 0)
        memcpy(items, self->items, self->n * sizeof *items);
    gpsti_free(self->host, self->items, self->capacity * sizeof *items);
    self->items = items;
    self->capacity = capacity;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_names_add(gpsti_names* self, const char* name) {
    if (self->n == self->capacity)
        GPSTI_TRY(gpsti_names_grow(self));
    self->items[self->n] = gpsti_copy_string(self->host, name);
    if (!self->items[self->n])
        return GPST_ERROR_MEMORY;
    self->n++;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_names_free(gpsti_names* self) {
    for (size_t i = 0; i < self->n; i++)
        gpsti_free(self->host, self->items[i], strlen(self->items[i]) + 1);
    gpsti_free(self->host, self->items, self->capacity * sizeof *self->items);
    self->items = NULL;
    self->n = self->capacity = 0;
}

/* ---- a folder ------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_folder_take_name(void* user_data, const char* name) {
    return name[0] == '.' ? GPST_OK : gpsti_names_add((gpsti_names*)user_data, name);
}

GPSTI_PRIVATE int gpsti_folder_compare(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

GPSTI_PRIVATE bool gpsti_folder_is_picture(const char* name) {
    static const char extensions[] = GPSTI_FOLDER_PICTURES;
    const char* const dot = strrchr(name, '.');
    char lower[8];
    if (!dot || strlen(dot + 1) >= sizeof lower)
        return false;
    for (size_t i = 0; i <= strlen(dot + 1); i++)
        lower[i] = (char)(dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? dot[1 + i] - 'A' + 'a' : dot[1 + i]);
    for (const char* at = extensions; *at; at += strcspn(at, ", "), at += strspn(at, ", "))
        if (strcspn(at, ", ") == strlen(lower) && !memcmp(at, lower, strlen(lower)))
            return true;
    return false;
}

/* A file that was removed since is reported all the same: opening it gives the reason. */
GPSTI_PRIVATE gpst_result gpsti_folder_report(const char* folder, const gpsti_names* names, gpst_found_func found,
                                              void* user_data) {
    const size_t folder_bytes = strlen(folder);
    const char* const separator = folder[folder_bytes - 1] == '/' ? "" : "/";
    bool goes_on = true;
    for (size_t i = 0; i < names->n && goes_on; i++) {
        gpsti_file_info info = GPST_ZERO;
        const size_t bytes = folder_bytes + strlen(names->items[i]) + 2;
        char* const path = (char*)gpsti_alloc(names->host, bytes);
        if (!path)
            return GPST_ERROR_MEMORY;
        gpsti_format(path, bytes, "%s%s%s", folder, separator, names->items[i]);
        const bool is_there = !GPST_FAILED(gpsti_path_query(path, &info));
        if (!info.is_directory)
            goes_on = found(user_data, path,
                            (!is_there || info.is_regular) && gpsti_folder_is_picture(names->items[i]));
        gpsti_free(names->host, path, bytes);
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_folder_list(gpsti_host* host, const char* path, gpst_found_func found, void* user_data) {
    gpsti_names names = GPST_ZERO;
    names.host = host;
    gpst_result result = gpsti_path_list(path, gpsti_folder_take_name, &names);
    if (names.n > 1)
        qsort(names.items, names.n, sizeof *names.items, gpsti_folder_compare);
    if (!GPST_FAILED(result))
        result = gpsti_folder_report(path, &names, found, user_data);
    gpsti_names_free(&names);
    return result;
}

GPST_API gpst_result gpst_folder_list(const char* path, gpst_found_func found, void* user_data) {
    gpsti_host host;
    GPSTI_FAIL_IF(!path || !path[0] || !found, GPST_ERROR_ARGUMENT, "gpst_folder_list: path and found: required");
    gpsti_host_init(&host, NULL, NULL);
    return gpsti_folder_list(&host, path, found, user_data);
}
