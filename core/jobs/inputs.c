/* core/jobs/inputs.c -- what a job reads: the list with its folders expanded, and the rules that nothing is written
   twice and nothing that is read. */
#include "../base/platform_internal.h"

#include "jobs_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list of inputs -------------------------------------------------------------------- */

/* What a listing adds to, and how it went. */
typedef struct gpsti_files_job_found {
    gpsti_names* inputs;
    gpst_result result;
} gpsti_files_job_found;

GPSTI_PRIVATE bool gpsti_files_job_take_found(void* user_data, const char* path, bool is_picture) {
    gpsti_files_job_found* const found = (gpsti_files_job_found*)user_data;
    found->result = is_picture ? gpsti_names_add(found->inputs, path) : GPST_OK;
    return !GPST_FAILED(found->result);
}

/* A folder that cannot be listed stays in the list, as what is not there does: it fails when its turn comes. */
GPSTI_PRIVATE gpst_result gpsti_files_job_add_input(gpsti_files_job* self, const char* path) {
    gpsti_files_job_found found = {&self->inputs, GPST_OK};
    gpsti_file_info info;
    if (self->desc.files_only || GPST_FAILED(gpsti_path_query(path, &info)) || !info.is_directory)
        return gpsti_names_add(&self->inputs, path);
    const gpst_result result = gpsti_folder_list(self->host, path, gpsti_files_job_take_found, &found);
    if (result == GPST_ERROR_MEMORY || GPST_FAILED(found.result))
        return GPST_ERROR_MEMORY;
    return GPST_FAILED(result) ? gpsti_names_add(&self->inputs, path) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_files_job_list_inputs(gpsti_files_job* self) {
    const gpsti_files_job_desc* const desc = &self->desc;
    self->inputs.host = self->host;
    for (size_t i = 0; i < desc->n_inputs; i++) {
        GPSTI_FAIL_IF(!desc->inputs[i] || !desc->inputs[i][0], GPST_ERROR_ARGUMENT,
                      "%s: desc.inputs[%llu]: must not be empty", desc->function, (unsigned long long)i);
        GPSTI_TRY(gpsti_files_job_add_input(self, desc->inputs[i]));
    }
    GPSTI_FAIL_IF(self->inputs.n == 0, GPST_ERROR_ARGUMENT,
                  "%s: desc.inputs: \"%s\" holds no picture (" GPSTI_FOLDER_PICTURES ")", desc->function,
                  desc->inputs[0]);
    return GPST_OK;
}

/* ---- nothing is written twice, and nothing that is read ------------------------------------------ */

/* By stem, and of the same stem by path, so that the pair that is named does not depend on qsort. */
GPSTI_PRIVATE int gpsti_files_job_compare_stems(const void* a, const void* b) {
    const char* const first = *(const char* const*)a;
    const char* const second = *(const char* const*)b;
    const char* const first_name = gpsti_jobs_base_name(first);
    const char* const second_name = gpsti_jobs_base_name(second);
    const size_t first_bytes = gpsti_jobs_stem_bytes(first_name);
    const size_t second_bytes = gpsti_jobs_stem_bytes(second_name);
    const int order = memcmp(first_name, second_name, first_bytes < second_bytes ? first_bytes : second_bytes);
    if (order)
        return order;
    return first_bytes != second_bytes ? (first_bytes < second_bytes ? -1 : 1) : strcmp(first, second);
}

GPSTI_PRIVATE bool gpsti_files_job_same_stem(const char* a, const char* b) {
    const char *const first = gpsti_jobs_base_name(a), *const second = gpsti_jobs_base_name(b);
    const size_t bytes = gpsti_jobs_stem_bytes(first);
    return bytes == gpsti_jobs_stem_bytes(second) && !memcmp(first, second, bytes);
}

/* One that could not be listed: it fails, and nothing is named after it. */
GPSTI_PRIVATE bool gpsti_files_job_is_folder(const char* path) {
    gpsti_file_info info;
    return !GPST_FAILED(gpsti_path_query(path, &info)) && info.is_directory;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_fail_stems(const gpsti_files_job* self, const char* a, const char* b) {
    const char* const name = gpsti_jobs_base_name(b);
    GPSTI_FAIL_IF(!strcmp(a, b), GPST_ERROR_ARGUMENT, "%s: desc.inputs: \"%s\" is there twice", self->desc.function, b);
    return gpsti_fail(GPST_ERROR_ARGUMENT,
                      "%s: desc.inputs: \"%s\" and \"%s\": outputs of both would be named \"%.*s...\"",
                      self->desc.function, a, b, (int)gpsti_jobs_stem_bytes(name), name);
}

GPSTI_PRIVATE gpst_result gpsti_files_job_check_stems(const gpsti_files_job* self) {
    const size_t bytes = self->inputs.n * sizeof(char*);
    const char** const sorted = (const char**)gpsti_alloc(self->host, bytes);
    const char* before = NULL;
    gpst_result result = GPST_OK;
    if (!sorted)
        return GPST_ERROR_MEMORY;
    memcpy((void*)sorted, self->inputs.items, bytes);
    qsort((void*)sorted, self->inputs.n, sizeof *sorted, gpsti_files_job_compare_stems);
    for (size_t i = 0; i < self->inputs.n && !GPST_FAILED(result); i++) {
        if (before && gpsti_files_job_same_stem(before, sorted[i])) {
            if (gpsti_files_job_is_folder(sorted[i]))
                continue;
            if (!gpsti_files_job_is_folder(before))
                result = gpsti_files_job_fail_stems(self, before, sorted[i]);
        }
        before = sorted[i];
    }
    gpsti_free(self->host, (void*)sorted, bytes);
    return result;
}

/* What identifies a file, whatever its name. */
typedef struct gpsti_identity {
    uint64_t device, inode;
    const char* path;
} gpsti_identity;

typedef struct gpsti_identities {
    gpsti_identity* items; /* sorted; NULL: not made yet */
    size_t n;
} gpsti_identities;

GPSTI_PRIVATE int gpsti_identity_compare(const void* a, const void* b) {
    const gpsti_identity* const first = (const gpsti_identity*)a;
    const gpsti_identity* const second = (const gpsti_identity*)b;
    if (first->device != second->device)
        return first->device < second->device ? -1 : 1;
    return first->inode != second->inode ? (first->inode < second->inode ? -1 : 1) : 0;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_identify(const gpsti_files_job* self, gpsti_identities* out) {
    out->items = (gpsti_identity*)gpsti_alloc(self->host, self->inputs.n * sizeof *out->items);
    if (!out->items)
        return GPST_ERROR_MEMORY;
    for (size_t i = 0; i < self->inputs.n; i++) {
        gpsti_file_info info;
        if (GPST_FAILED(gpsti_path_query(self->inputs.items[i], &info)) || info.inode == 0)
            continue;
        out->items[out->n].device = info.device;
        out->items[out->n].inode = info.inode;
        out->items[out->n++].path = self->inputs.items[i];
    }
    qsort(out->items, out->n, sizeof *out->items, gpsti_identity_compare);
    return GPST_OK;
}

/* The inputs are looked at only where there is a file of an output's name. */
GPSTI_PRIVATE gpst_result gpsti_files_job_check_output(const gpsti_files_job* self, const char* path,
                                                       gpsti_identities* inputs) {
    gpsti_file_info info;
    gpsti_identity key;
    if (GPST_FAILED(gpsti_path_query(path, &info)))
        return GPST_OK;
    if (!inputs->items)
        GPSTI_TRY(gpsti_files_job_identify(self, inputs));
    key.device = info.device;
    key.inode = info.inode;
    key.path = NULL;
    const gpsti_identity* const met =
        (const gpsti_identity*)bsearch(&key, inputs->items, inputs->n, sizeof key, gpsti_identity_compare);
    GPSTI_FAIL_IF(met, GPST_ERROR_ARGUMENT, "%s: output \"%s\" would overwrite the input \"%s\"", self->desc.function,
                  path, met->path);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_files_job_output_path(const gpsti_files_job* self, uint64_t index, uint32_t view,
                                                     char path[GPSTI_JOB_PATH_BYTES]) {
    const gpst_job_hooks* const hooks = self->desc.hooks;
    const size_t used = strlen(self->desc.output_dir) + 1;
    gpsti_format(path, GPSTI_JOB_PATH_BYTES, "%s/", self->desc.output_dir);
    if (hooks->name)
        return hooks->name(hooks->user_data, index, view, path + used, GPSTI_JOB_PATH_BYTES - used);
    return gpst_output_name(self->inputs.items[index], self->desc.numbered ? (int32_t)view : -1, self->extension,
                            path + used, GPSTI_JOB_PATH_BYTES - used);
}

/* Of path, which has `at` bytes of directories that are there. */
GPSTI_PRIVATE gpst_result gpsti_files_job_make_parents(char* path, size_t at) {
    for (size_t end = at + strcspn(path + at, "/"); path[end]; end += 1 + strcspn(path + end + 1, "/")) {
        path[end] = '\0';
        GPSTI_TRY(gpsti_path_make_directory(path));
        path[end] = '/';
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_files_job_make_folders(const gpsti_files_job* self) {
    const uint32_t n_outputs = gpst_warp_n_outputs(self->desc.warp);
    const size_t used = strlen(self->desc.output_dir) + 1;
    char path[GPSTI_JOB_PATH_BYTES], last[GPSTI_JOB_PATH_BYTES] = "";
    size_t last_bytes = used;
    GPSTI_TRY(gpsti_path_make_directory(self->desc.output_dir));
    for (uint32_t v = 0; self->desc.hooks->name && v < n_outputs; v++)
        for (size_t i = 0; i < self->inputs.n; i++) {
            GPSTI_TRY(gpsti_files_job_output_path(self, i, v, path));
            const size_t bytes = gpsti_path_directory_bytes(path);
            if (bytes == used || (bytes == last_bytes && !memcmp(path, last, bytes)))
                continue;
            GPSTI_TRY(gpsti_files_job_make_parents(path, used));
            memcpy(last, path, bytes);
            last_bytes = bytes;
        }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_files_job_check_directory(const gpsti_files_job* self, gpsti_identities* inputs) {
    const uint32_t n_outputs = gpst_warp_n_outputs(self->desc.warp);
    char path[GPSTI_JOB_PATH_BYTES];
    gpsti_file_info info;
    if (GPST_FAILED(gpsti_path_query(self->desc.output_dir, &info)))
        return GPST_OK;
    for (size_t i = 0; i < self->inputs.n; i++)
        for (uint32_t v = 0; v < n_outputs; v++)
            if (!GPST_FAILED(gpsti_files_job_output_path(self, i, v, path)))
                GPSTI_TRY(gpsti_files_job_check_output(self, path, inputs));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_files_job_check_outputs(const gpsti_files_job* self) {
    gpsti_identities inputs = {NULL, 0};
    gpsti_file_info info;
    const char* const file = self->desc.output_file;
    gpst_result result = GPST_OK;
    GPSTI_FAIL_IF(file && !GPST_FAILED(gpsti_path_query(file, &info)) && !info.is_regular, GPST_ERROR_ARGUMENT,
                  "%s: desc.output_file=\"%s\": is no regular file", self->desc.function, file);
    if (!file && !self->desc.hooks->name)
        GPSTI_TRY(gpsti_files_job_check_stems(self));
    result = file ? gpsti_files_job_check_output(self, file, &inputs) : gpsti_files_job_check_directory(self, &inputs);
    gpsti_free(self->host, inputs.items, self->inputs.n * sizeof *inputs.items);
    return result;
}
