/* tools/gpustage/outputs_check.c -- no file that a run reads is written by it, and none is written twice. */
#include "console.h"
#include "files.h"
#include "outputs.h"
#include "run_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is read ------------------------------------------------------------------ */

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

bool outputs_list_read(const input_list* inputs, const options* asked, read_files* out) {
    out->count = 0;
    out->items = (read_file*)malloc((2 * inputs->count + asked->inputs.count + 1) * sizeof *out->items);
    if (!out->items)
        return false;
    for (size_t i = 0; i < inputs->count; i++) {
        outputs_add_read(out, inputs->items[i].path);
        outputs_add_read(out, inputs->items[i].mask);
    }
    for (size_t i = 0; i < asked->inputs.count; i++)
        if (asked->inputs.items[i][0] == '@')
            outputs_add_read(out, asked->inputs.items[i] + 1);
    outputs_add_read(out, asked->mask);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, outputs_compare_files);
    return true;
}

const read_file* outputs_find_read(const read_files* files, const char* path) {
    file_info info;
    read_file key;
    if (files->count == 0 || files_query(path, &info) || !info.is_regular)
        return NULL;
    key.device = info.device;
    key.inode = info.inode;
    key.path = NULL;
    return (const read_file*)bsearch(&key, files->items, files->count, sizeof key, outputs_compare_files);
}

/* ---- names that are taken -------------------------------------------------------------- */

static int outputs_compare(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

/* Names below the output directory of files that are read and lie in this folder there, which is "" or ends in '/'.
   NULL, or why it cannot be listed: then nothing is known. */
static const char* outputs_list_taken(const char* directory, const char* folder, const read_files* files,
                                      text_list* out) {
    text_list names = GPST_ZERO;
    char path[2 * OUTPUTS_PATH_BYTES];
    file_info info;
    const int bytes = snprintf(path, sizeof path, "%s/%s", directory, folder);
    const size_t at = strlen(directory) + 1;
    if (bytes < 0 || (size_t)bytes >= sizeof path || files_query(path, &info) || !info.is_directory)
        return NULL;
    const char* problem = files_list(path, &names);
    for (size_t i = 0; !problem && i < names.count; i++)
        if (strlen(names.items[i]) < sizeof path - (size_t)bytes) {
            strcpy(path + bytes, names.items[i]);
            if (outputs_find_read(files, path) && !text_list_add(out, path + at))
                problem = text_out_of_memory;
        }
    text_list_free(&names);
    return problem;
}

/* The same of every folder that outputs go to. Inputs of one folder stand together. */
static const char* outputs_list_all_taken(const outputs* self, const input_list* inputs, const read_files* files,
                                          text_list* out) {
    const bool trees = self->layout != (int)LAYOUT_FLAT;
    const uint32_t n_views = self->layout == (int)LAYOUT_COLMAP ? self->n_outputs : 1;
    const uint32_t n = trees && self->mask_names ? 2 * n_views : n_views;
    const char* problem = NULL;
    for (uint32_t o = 0; o < n; o++) {
        char name[OUTPUTS_PATH_BYTES], last[OUTPUTS_PATH_BYTES] = "?";
        for (size_t i = 0; !problem && i < inputs->count; i++) {
            if (!outputs_name(self, inputs->items[i].stem, o % n_views, o >= n_views, name, sizeof name))
                continue;
            name[files_base_name(name) - name] = '\0';
            if (strcmp(name, last) != 0)
                problem = outputs_list_taken(self->directory, name, files, out);
            strcpy(last, name);
        }
    }
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, outputs_compare);
    return problem;
}

/* The first output whose name is in the sorted list; false: none is. */
static bool outputs_meet(const outputs* self, const input_list* inputs, const text_list* taken,
                         char name[OUTPUTS_PATH_BYTES], const char** made_of) {
    const uint32_t kinds = self->mask_names ? 2 : 1;
    const char* const key = name;
    for (size_t i = 0; taken->count > 0 && i < inputs->count; i++)
        for (uint32_t o = 0; o < kinds * self->n_outputs; o++)
            if (outputs_name(self, inputs->items[i].stem, o / kinds, o % kinds != 0, name, OUTPUTS_PATH_BYTES) &&
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
    const char* const problem = outputs_list_all_taken(self, inputs, files, &taken);
    if (problem)
        status = console_refuse(command, problem, "-o=%s: %s", self->directory, problem);
    else if (outputs_meet(self, inputs, &taken, name, &made_of))
        status = console_usage(command, "-o=%s: %s, made of %s, would overwrite an input of that name",
                               self->directory, name, made_of);
    text_list_free(&taken);
    return status;
}

/* ---- files that options name --------------------------------------------------------------- */

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

/* What path is called below the directory: "images/a.jpg"; empty where it is not below. Both may come by links. */
static text outputs_below(const char* directory, const char* path) {
    text below = GPST_ZERO, parent = files_parent(path);
    char* const top = files_real_path(directory);
    char* const real = parent.data ? files_real_path(parent.data) : NULL;
    const size_t bytes = top ? strlen(top) : 0;
    if (top && real && !strncmp(real, top, bytes) && (real[bytes] == '/' || !real[bytes]))
        text_format(&below, "%s%s%s", real + bytes + (real[bytes] ? 1 : 0), real[bytes] ? "/" : "",
                    files_base_name(path));
    free(real);
    free(top);
    text_free(&parent);
    return below;
}

/* In the output directory it must not have the name of an output or of the list of what is whole. */
static int outputs_check_beside(const outputs* self, const input_list* inputs, const named_file* file,
                                const char* command) {
    text_list taken = GPST_ZERO;
    char name[OUTPUTS_PATH_BYTES];
    const char* made_of = NULL;
    int status = EXIT_DONE;
    text below = outputs_below(self->directory, file->path);
    if (below.failed || (below.data && !text_list_add(&taken, below.data)))
        status = console_memory();
    else if (below.data && !strcmp(below.data, OUTPUTS_MANIFEST))
        status = console_usage(command, "%s=%s: is the list of what is whole there", file->option, file->path);
    else if (outputs_meet(self, inputs, &taken, name, &made_of))
        status =
            console_usage(command, "%s=%s: is the name of an output, made of %s", file->option, file->path, made_of);
    text_list_free(&taken);
    text_free(&below);
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
                                {"--layout", asked->transforms},
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
            status = console_usage(command, "%s=%s: would overwrite the input %s", files[i].option, files[i].path,
                                   met->path);
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
