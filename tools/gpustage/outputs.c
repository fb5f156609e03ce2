/* tools/gpustage/outputs.c -- how the files that a run writes are named, and the directory they go to. Writes
   none of them. */
#include "outputs.h"

#include "console.h"
#include "files.h"
#include "run_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------- */

static bool outputs_name(const outputs* self, const input* in, uint32_t index, bool mask, char* out,
                         size_t bytes) {
    if (GPST_FAILED(gpst_output_name(in->path, self->numbered ? (int32_t)index : -1, codec_extension(self->kind), out,
                                     bytes)))
        return false;
    const size_t used = strlen(out);
    if (mask && used + sizeof ".png" > bytes)
        return false;
    memcpy(out + used, mask ? ".png" : "", mask ? sizeof ".png" : 1);
    return true;
}

static bool outputs_path(const outputs* self, const input* in, uint32_t index, bool mask,
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

/* ---- nothing that is read is written, and nothing is written twice ---------------------- */

/* A file that is read, by what identifies it. */
typedef struct read_file {
    uint64_t device, inode;
    const char* path;
} read_file;

typedef struct read_files {
    read_file* items;
    size_t count;
} read_files;

static int outputs_compare_files(const void* a, const void* b) {
    const read_file* const first = (const read_file*)a;
    const read_file* const second = (const read_file*)b;
    if (first->device != second->device)
        return first->device < second->device ? -1 : 1;
    return first->inode < second->inode ? -1 : first->inode > second->inode;
}

static void outputs_add_read(read_files* self, const char* path) {
    file_info info;
    if (!path || files_query(path, &info) || !info.is_regular || info.inode == 0)
        return;
    read_file* const added = &self->items[self->count++];
    added->device = info.device;
    added->inode = info.inode;
    added->path = path;
}

/* Inputs, the lists that name them, and the mask. */
static bool outputs_list_read(const input_list* inputs, const options* asked, read_files* out) {
    out->count = 0;
    out->items = (read_file*)malloc((inputs->count + asked->inputs.count + 1) * sizeof *out->items);
    if (!out->items)
        return false;
    for (size_t i = 0; i < inputs->count; i++)
        outputs_add_read(out, inputs->items[i].path);
    for (size_t i = 0; i < asked->inputs.count; i++)
        if (asked->inputs.items[i][0] == '@')
            outputs_add_read(out, asked->inputs.items[i] + 1);
    outputs_add_read(out, asked->mask);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, outputs_compare_files);
    return true;
}

/* The file that is read and that is the one at path, too; NULL: none. */
static const read_file* outputs_find_read(const read_files* files, const char* path) {
    file_info info;
    read_file key;
    if (files->count == 0 || files_query(path, &info) || !info.is_regular)
        return NULL;
    key.device = info.device;
    key.inode = info.inode;
    key.path = NULL;
    return (const read_file*)bsearch(&key, files->items, files->count, sizeof key, outputs_compare_files);
}

static int outputs_compare(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

/* Names in the output directory of files that are read. NULL, or why it cannot be listed: then nothing is known. */
static const char* outputs_list_taken(const char* directory, const read_files* files, text_list* out) {
    text_list names = GPST_ZERO;
    file_info info;
    const char* problem = files_query(directory, &info) || !info.is_directory ? NULL : files_list(directory, &names);
    for (size_t i = 0; !problem && i < names.count; i++) {
        char path[OUTPUTS_PATH_BYTES];
        if (snprintf(path, sizeof path, "%s/%s", directory, names.items[i]) < (int)sizeof path &&
            outputs_find_read(files, path) && !text_list_add(out, names.items[i]))
            problem = text_out_of_memory;
    }
    text_list_free(&names);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, outputs_compare);
    return problem;
}

/* The first output whose name is in the sorted list; false: none is. */
static bool outputs_meet(const outputs* self, const input_list* inputs, const text_list* taken,
                         char name[OUTPUTS_PATH_BYTES], const char** made_of) {
    const uint32_t kinds = self->masks ? 2 : 1;
    const char* const key = name;
    for (size_t i = 0; taken->count > 0 && i < inputs->count; i++)
        for (uint32_t o = 0; o < kinds * self->n_outputs; o++)
            if (outputs_name(self, &inputs->items[i], o / kinds, o % kinds != 0, name, OUTPUTS_PATH_BYTES) &&
                bsearch(&key, taken->items, taken->count, sizeof *taken->items, outputs_compare)) {
                *made_of = inputs->items[i].path;
                return true;
            }
    return false;
}

static int outputs_check_names(const outputs* self, const input_list* inputs, const read_files* files,
                               const char* command) {
    text_list taken = GPST_ZERO;
    char name[OUTPUTS_PATH_BYTES];
    const char* made_of = NULL;
    int status = EXIT_DONE;
    const char* const problem = outputs_list_taken(self->directory, files, &taken);
    if (problem)
        status = console_refuse(command, problem, "-o=%s: %s", self->directory, problem);
    else if (outputs_meet(self, inputs, &taken, name, &made_of))
        status = console_usage(command, "-o=%s: %s, made of %s, would overwrite an input of that name",
                               self->directory, name, made_of);
    text_list_free(&taken);
    return status;
}

/* A file that an option names to be written. */
typedef struct named_file {
    const char* option;
    const char* path; /* NULL: not given */
} named_file;

/* Of two files that need not be there yet. */
static bool outputs_is_same(const char* a, const char* b) {
    file_info first, second;
    const bool a_there = !files_query(a, &first), b_there = !files_query(b, &second);
    if (a_there && b_there)
        return first.is_regular && first.inode != 0 && first.device == second.device && first.inode == second.inode;
    if (a_there || b_there || strcmp(files_base_name(a), files_base_name(b)) != 0)
        return false;
    text a_parent = files_parent(a), b_parent = files_parent(b);
    const bool same = a_parent.data && b_parent.data && files_same_directory(a_parent.data, b_parent.data);
    text_free(&a_parent);
    text_free(&b_parent);
    return same;
}

/* In the output directory it must not have the name of an output or of the list of what is whole. */
static int outputs_check_beside(const outputs* self, const input_list* inputs, const named_file* file,
                                const char* command) {
    text_list taken = GPST_ZERO;
    char name[OUTPUTS_PATH_BYTES];
    const char* made_of = NULL;
    int status = EXIT_DONE;
    text parent = files_parent(file->path);
    const bool beside = parent.data && files_same_directory(parent.data, self->directory);
    if (parent.failed || (beside && !text_list_add(&taken, files_base_name(file->path))))
        status = console_memory();
    else if (beside && !strcmp(files_base_name(file->path), OUTPUTS_MANIFEST))
        status = console_usage(command, "%s=%s: is the list of what is whole there", file->option, file->path);
    else if (outputs_meet(self, inputs, &taken, name, &made_of))
        status = console_usage(command, "%s=%s: is the name of an output, made of %s", file->option, file->path, made_of);
    text_list_free(&taken);
    text_free(&parent);
    return status;
}

/* What a killed run left beside it is removed. */
static int outputs_check_file(const named_file* file, const char* command) {
    file_info info;
    text parent = files_parent(file->path);
    if (parent.data)
        run_lock_clean(parent.data);
    text_free(&parent);
    return !files_query(file->path, &info) && info.is_directory
               ? console_usage(command, "%s=%s: is a directory", file->option, file->path)
               : EXIT_DONE;
}

int outputs_check(const outputs* self, bool stacked, const input_list* inputs, const options* asked) {
    const char* const command = asked->command_name;
    const named_file files[] = {{"-o", stacked ? asked->output : NULL},
                                {"--rig", asked->rig},
                                {"--stats", asked->stats},
                                {"--tune", asked->tune_file}};
    const size_t n_files = sizeof files / sizeof files[0];
    read_files read;
    if (!outputs_list_read(inputs, asked, &read))
        return console_memory();
    int status = stacked ? EXIT_DONE : outputs_check_names(self, inputs, &read, command);
    for (size_t i = 0; i < n_files; i++) {
        if (!files[i].path)
            continue;
        if (status == EXIT_DONE)
            status = outputs_check_file(&files[i], command);
        const read_file* const met = outputs_find_read(&read, files[i].path);
        if (met && status == EXIT_DONE)
            status = console_usage(command, "%s=%s: would overwrite the input %s", files[i].option, files[i].path, met->path);
        for (size_t j = 0; j < i && status == EXIT_DONE; j++)
            if (files[j].path && outputs_is_same(files[i].path, files[j].path))
                status = console_usage(command, "%s=%s: is the file of %s, too", files[i].option, files[i].path,
                                       files[j].option);
        if (status == EXIT_DONE && !stacked)
            status = outputs_check_beside(self, inputs, &files[i], command);
    }
    free(read.items);
    return status;
}
