/* core/jobs/stack.c -- one .npy file with a row for every input, whole or absent. */
#include "../base/platform_internal.h"

#include "../pictures/pictures_internal.h"
#include "jobs_internal.h"

#include <string.h>

GPSTI_PRIVATE uint32_t gpsti_stack_shape(const gpst_image* row, uint64_t n_rows, uint64_t shape[4]) {
    const uint32_t channels = gpsti_image_channels(row);
    const bool planes = row->layout == GPST_LAYOUT_CHW;
    shape[0] = n_rows;
    shape[1] = planes ? channels : row->height;
    shape[2] = planes ? row->height : row->width;
    shape[3] = planes ? row->width : channels;
    return 4;
}

/* Beside its final name, so that the rename stays within one file system. */
GPSTI_PRIVATE gpst_result gpsti_stack_create(gpsti_stack* self, const char* path) {
    static gpsti_a64 next_id;
    const size_t directory_bytes = gpsti_path_directory_bytes(path);
    gpst_result result = GPST_ERROR_EXISTS;
    GPSTI_FAIL_IF(directory_bytes + 64 > sizeof self->temporary, GPST_ERROR_ARGUMENT,
                  "create \"%.100s...\": the path is too long", path);
    memcpy(self->temporary, path, directory_bytes);
    for (int tries = 0; result == GPST_ERROR_EXISTS && tries < 1000; tries++) {
        gpsti_format(self->temporary + directory_bytes, 64, ".gpustage-%016llx-%llu.part",
                     (unsigned long long)gpsti_process_tag(), (unsigned long long)gpsti_a64_add(&next_id, 1));
        result = gpsti_file_create(self->temporary, &self->file);
        if (!GPST_FAILED(result) && !gpsti_file_lock(&self->file)) { /* a run that cleans up took it for abandoned */
            (void)gpsti_file_close(&self->file, path);
            result = gpsti_fail(GPST_ERROR_EXISTS, "its temporary file is removed again and again");
        }
    }
    char prefix[160];
    gpsti_format(prefix, sizeof prefix, "write \"%.140s\"", path);
    return GPST_FAILED(result) ? gpsti_fail_in(result, prefix) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_stack_open(gpsti_stack* self, const char* path, const gpst_image* row, uint64_t n_rows) {
    char header[GPSTI_NPY_HEADER_BYTES];
    uint64_t shape[4];
    size_t done = 0;
    self->path = NULL;
    GPSTI_TRY(gpst_image_bytes(row, &self->row_bytes));
    GPSTI_FAIL_IF(n_rows > (uint64_t)(INT64_MAX - GPSTI_NPY_HEADER_BYTES) / self->row_bytes, GPST_ERROR_OVERFLOW,
                  "create \"%s\": %llu rows are too many", path, (unsigned long long)n_rows);
    self->header_bytes = gpsti_npy_header(row->dtype, shape, gpsti_stack_shape(row, n_rows, shape), header);
    GPSTI_TRY(gpsti_stack_create(self, path));
    self->path = path;
    gpst_result result = gpsti_file_set_bytes(&self->file, path, self->header_bytes + n_rows * self->row_bytes);
    if (!GPST_FAILED(result))
        result = gpsti_file_write_at(&self->file, path, header, self->header_bytes, 0, &done);
    if (GPST_FAILED(result)) {
        char reason[GPSTI_REASON_BYTES];
        gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
        (void)gpsti_stack_close(self, false, false);
        return gpsti_fail(result, "%s", reason);
    }
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_stack_clear(const gpsti_stack* self, uint64_t offset_bytes, size_t bytes) {
    static const uint8_t zeroes[4096] = {0};
    size_t done = 0;
    for (size_t at = 0; at < bytes; at += sizeof zeroes)
        if (GPST_FAILED(gpsti_file_write_at(&self->file, self->path, zeroes,
                                            bytes - at < sizeof zeroes ? bytes - at : sizeof zeroes, offset_bytes + at,
                                            &done)))
            return;
}

GPSTI_INTERN gpst_result gpsti_stack_write(const gpsti_stack* self, uint64_t row, const void* data) {
    const uint64_t offset_bytes = self->header_bytes + row * self->row_bytes;
    size_t done = 0;
    const gpst_result result =
        gpsti_file_write_at(&self->file, self->path, data, self->row_bytes, offset_bytes, &done);
    if (!GPST_FAILED(result))
        return GPST_OK;
    char reason[GPSTI_REASON_BYTES];
    gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
    gpsti_stack_clear(self, offset_bytes, done);
    return gpsti_fail(result, "%s", reason);
}

/* Renamed, or removed, while it is locked: in between another process would take it for abandoned. */
GPSTI_INTERN gpst_result gpsti_stack_close(gpsti_stack* self, bool whole, bool sync) {
    char reason[GPSTI_REASON_BYTES] = "";
    gpst_result result = GPST_OK;
    if (!self->path)
        return GPST_OK;
    if (whole && sync)
        result = gpsti_file_sync(&self->file, self->path);
    if (whole && !GPST_FAILED(result))
        result = gpsti_path_rename(self->temporary, self->path);
    gpsti_copy_text(reason, sizeof reason, GPST_FAILED(result) ? gpst_last_reason() : "");
    if (!whole || GPST_FAILED(result))
        (void)gpsti_path_remove(self->temporary);
    const gpst_result closed = gpsti_file_close(&self->file, self->path);
    if (whole && !GPST_FAILED(result) && GPST_FAILED(closed)) { /* disks of a network tell late what is wrong */
        gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
        (void)gpsti_path_remove(self->path);
        result = closed;
    }
    self->path = NULL;
    return GPST_FAILED(result) ? gpsti_fail(result, "%s", reason) : GPST_OK;
}
