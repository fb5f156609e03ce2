/* tools/gpustage/outputs.c -- how the files that a run writes are named, and the directory they go to. Writes
   none of them. */
#include "outputs.h"

#include "console.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------- */

/* The view's file without a directory. */
static bool outputs_view_name(const outputs* self, const char* stem, uint32_t index, char* out, size_t bytes) {
    const bool number = self->numbered && self->layout != (int)LAYOUT_COLMAP;
    const char* const base = files_base_name(stem);
    const int used = number ? snprintf(out, bytes, "%s_v%02u.%s", base, (unsigned)index, self->extension)
                            : snprintf(out, bytes, "%s.%s", base, self->extension);
    return used >= 0 && (size_t)used < bytes;
}

bool outputs_name(const outputs* self, const char* stem, uint32_t index, bool mask, char* out, size_t bytes) {
    const int folder_bytes = (int)(files_base_name(stem) - stem);
    char tree[32] = "", view[OUTPUTS_PATH_BYTES];
    if (self->layout == (int)LAYOUT_COLMAP)
        snprintf(tree, sizeof tree, "%s/v%02u/", mask ? "masks" : "images", (unsigned)index);
    else if (self->layout == (int)LAYOUT_NERFSTUDIO)
        snprintf(tree, sizeof tree, "%s/", mask ? "masks" : "images");
    const int used = snprintf(out, bytes, "%s%.*s", tree, folder_bytes, stem);
    if (used < 0 || (size_t)used >= bytes)
        return false;
    if (!mask)
        return outputs_view_name(self, stem, index, out + used, bytes - (size_t)used);
    return outputs_view_name(self, stem, index, view, sizeof view) &&
           text_expand(self->mask_names, view, out + used, bytes - (size_t)used);
}

bool outputs_path(const outputs* self, const char* stem, uint32_t index, bool mask, char out[OUTPUTS_PATH_BYTES]) {
    const size_t bytes = strlen(self->directory);
    if (bytes + 2 > OUTPUTS_PATH_BYTES)
        return false;
    memcpy(out, self->directory, bytes);
    out[bytes] = '/';
    return outputs_name(self, stem, index, mask, out + bytes + 1, OUTPUTS_PATH_BYTES - bytes - 1);
}

text outputs_sizes(const outputs* self, const input* in, text* times) {
    text sizes = GPST_ZERO;
    char path[OUTPUTS_PATH_BYTES];
    file_info info;
    const uint32_t kinds = self->mask_names ? 2 : 1;
    for (uint32_t i = 0; i < kinds * self->n_outputs; i++) {
        if (!outputs_path(self, in->stem, i / kinds, i % kinds != 0, path) || files_query(path, &info) ||
            !info.is_regular) {
            text_free(&sizes);
            return sizes;
        }
        text_format(&sizes, "%s%llu", i ? "," : "", (unsigned long long)info.bytes);
        if (times)
            text_format(times, "%s%lld", i ? "," : "", (long long)info.mtime_ns);
    }
    char* const mask = in->mask && in->mask_mtime_ns >= 0 ? files_real_path(in->mask) : NULL;
    if (mask)
        text_format(&sizes, ",mask:%llu:%lld:%s", (unsigned long long)in->mask_bytes, (long long)in->mask_mtime_ns,
                    mask);
    else if (in->mask) /* nothing says which it is */
        text_free(&sizes);
    free(mask);
    return sizes;
}

/* ---- directories ------------------------------------------------------------------- */

int outputs_check_parent(const char* option, const char* path, const char* command) {
    file_info info;
    text parent = files_parent(path);
    const char* problem = parent.failed ? text_out_of_memory : files_query(parent.data, &info);
    if (!problem)
        problem = info.is_directory ? files_check_writable(parent.data) : "is no directory";
    const int status = problem ? console_refuse(command, problem, "%s=%s: its parent %s: %s", option, path,
                                                parent.failed ? "" : parent.data, problem)
                               : EXIT_DONE;
    text_free(&parent);
    return status;
}

int outputs_open_directory(const char* directory, const char* command) {
    file_info info;
    if (files_query(directory, &info)) {
        const int status = outputs_check_parent("-o", directory, command);
        const char* const problem = status == EXIT_DONE ? files_make_directory(directory) : NULL;
        if (problem)
            console_error("-o=%s: %s", directory, problem);
        return problem ? EXIT_MACHINE : status;
    }
    if (!info.is_directory)
        return console_usage(command, "-o=%s: is no directory", directory);
    const char* const problem = files_check_writable(directory);
    return problem ? console_usage(command, "-o=%s: %s", directory, problem) : EXIT_DONE;
}

/* Each folder on the way to path, of which `at` bytes are there. */
static const char* outputs_make_parents(char* path, size_t at) {
    const char* problem = NULL;
    for (size_t end = at + strcspn(path + at, "/"); !problem && path[end]; end += 1 + strcspn(path + end + 1, "/")) {
        path[end] = '\0';
        problem = files_make_directory(path);
        path[end] = '/';
    }
    return problem;
}

const char* outputs_make_mask_folders(const outputs* self, const input_list* inputs) {
    char path[OUTPUTS_PATH_BYTES], last[OUTPUTS_PATH_BYTES] = "";
    const char* problem = NULL;
    for (uint32_t v = 0; self->mask_names && self->layout != (int)LAYOUT_FLAT && v < self->n_outputs; v++)
        for (size_t i = 0; !problem && i < inputs->count; i++) {
            if (inputs->items[i].skip || !outputs_path(self, inputs->items[i].stem, v, true, path))
                continue;
            const size_t bytes = (size_t)(files_base_name(path) - path);
            if (!strncmp(path, last, bytes) && !last[bytes])
                continue;
            problem = outputs_make_parents(path, strlen(self->directory) + 1);
            memcpy(last, path, bytes);
            last[bytes] = '\0';
        }
    return problem;
}
