/* tools/gpustage/outputs.c -- how the files that a run writes are named, and the directory they go to. Writes
   none of them. */
#include "outputs.h"

#include "console.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------- */

static bool outputs_name(const outputs* self, const input* in, uint32_t index, bool mask, char* out,
                         size_t bytes) {
    char number[16] = "";
    if (self->numbered)
        snprintf(number, sizeof number, "_v%02u", (unsigned)index);
    const int n =
        snprintf(out, bytes, "%s%s.%s%s", in->stem, number, codec_extension(self->kind), mask ? ".png" : "");
    return n >= 0 && (size_t)n < bytes;
}

bool outputs_path(const outputs* self, const input* in, uint32_t index, bool mask,
                  char out[OUTPUTS_PATH_BYTES]) {
    const size_t bytes = strlen(self->directory);
    if (bytes + 2 > OUTPUTS_PATH_BYTES)
        return false;
    memcpy(out, self->directory, bytes);
    out[bytes] = '/';
    return outputs_name(self, in, index, mask, out + bytes + 1, OUTPUTS_PATH_BYTES - bytes - 1);
}

text outputs_sizes(const outputs* self, const input* in) {
    text sizes = GPST_ZERO;
    char path[OUTPUTS_PATH_BYTES];
    file_info info;
    const uint32_t kinds = self->masks ? 2 : 1;
    for (uint32_t i = 0; i < kinds * self->n_outputs; i++) {
        if (!outputs_path(self, in, i / kinds, i % kinds != 0, path) || files_query(path, &info) ||
            !info.is_regular) {
            text_free(&sizes);
            break;
        }
        text_format(&sizes, "%s%llu", i ? "," : "", (unsigned long long)info.bytes);
    }
    return sizes;
}

/* ---- directories ------------------------------------------------------------------- */

int outputs_check_parent(const char* option, const char* path, const char* command) {
    file_info info;
    text parent = files_parent(path);
    const char* problem = parent.failed ? "out of memory" : files_query(parent.data, &info);
    if (!problem)
        problem = info.is_directory ? files_check_writable(parent.data) : "is no directory";
    const int status = problem ? console_usage(command, "%s=%s: its parent %s: %s", option, path,
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
        return problem ? console_usage(command, "-o=%s: %s", directory, problem) : status;
    }
    if (!info.is_directory)
        return console_usage(command, "-o=%s: is no directory", directory);
    const char* const problem = files_check_writable(directory);
    return problem ? console_usage(command, "-o=%s: %s", directory, problem) : EXIT_DONE;
}

void outputs_remove_leftovers(const char* directory) {
    text_list names = GPST_ZERO;
    (void)files_list(directory, &names);
    for (size_t i = 0; i < names.count; i++) {
        unsigned long process = 0, number = 0;
        int bytes = 0;
        char path[OUTPUTS_PATH_BYTES];
        if (sscanf(names.items[i], ".gpustage-%lu-%lu.tmp%n", &process, &number, &bytes) != 2 || bytes == 0 ||
            names.items[i][bytes] || !files_process_is_gone(process))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", directory, names.items[i]) < (int)sizeof path)
            files_remove(path);
    }
    text_list_free(&names);
}

/* ---- nothing that is read is written ------------------------------------------------- */

static int outputs_compare(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

/* Base names of the inputs that lie in the output directory. */
static bool outputs_list_neighbours(const outputs* self, const input_list* inputs, text_list* out) {
    text known = GPST_ZERO; /* the parent looked at last: inputs of one directory come together */
    bool inside = false, listed = true;
    for (size_t i = 0; listed && i < inputs->count; i++) {
        text parent = files_parent(inputs->items[i].path);
        listed = !parent.failed;
        if (listed && (!known.data || strcmp(known.data, parent.data)))
            inside = files_same_directory(parent.data, self->directory);
        if (listed && inside)
            listed = text_list_add(out, files_base_name(inputs->items[i].path));
        text_free(&known);
        known = parent;
    }
    text_free(&known);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, outputs_compare);
    return listed;
}

int outputs_check_inputs(const outputs* self, const input_list* inputs, const char* command) {
    text_list neighbours = GPST_ZERO;
    char name[OUTPUTS_PATH_BYTES];
    const char* const key = name;
    const uint32_t kinds = self->masks ? 2 : 1;
    int status = EXIT_DONE;
    if (!outputs_list_neighbours(self, inputs, &neighbours))
        status = console_usage(command, "out of memory");
    for (size_t i = 0; neighbours.count > 0 && i < inputs->count; i++)
        for (uint32_t o = 0; status == EXIT_DONE && o < kinds * self->n_outputs; o++)
            if (outputs_name(self, &inputs->items[i], o / kinds, o % kinds != 0, name, sizeof name) &&
                bsearch(&key, neighbours.items, neighbours.count, sizeof *neighbours.items, outputs_compare))
                status =
                    console_usage(command, "-o=%s: %s, made of %s, would overwrite an input of that name",
                                  self->directory, name, inputs->items[i].path);
    text_list_free(&neighbours);
    return status;
}
