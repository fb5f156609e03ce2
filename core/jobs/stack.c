/* core/jobs/stack.c -- one .npy file with a row for every input: its header, and where rows lie behind it. */
#include "../base/platform_internal.h"

#include "../pictures/pictures_internal.h"
#include "jobs_internal.h"

GPSTI_PRIVATE uint32_t gpsti_stack_shape(const gpst_image* row, uint64_t n_rows, uint64_t shape[4]) {
    const uint32_t channels = gpsti_image_channels(row);
    const bool planes = row->layout == GPST_LAYOUT_CHW;
    shape[0] = n_rows;
    shape[1] = planes ? channels : row->height;
    shape[2] = planes ? row->height : row->width;
    shape[3] = planes ? row->width : channels;
    return 4;
}

GPSTI_INTERN gpst_result gpsti_stack_open(gpsti_stack* self, gpst_context* context, const char* path,
                                          const gpst_image* row, uint64_t n_rows, bool sync) {
    char header[GPSTI_NPY_HEADER_BYTES];
    uint64_t shape[4];
    GPSTI_TRY(gpst_image_bytes(row, &self->row_bytes));
    GPSTI_FAIL_IF(n_rows > (uint64_t)(INT64_MAX - GPSTI_NPY_HEADER_BYTES) / self->row_bytes, GPST_ERROR_OVERFLOW,
                  "create \"%s\": %llu rows are too many", path, (unsigned long long)n_rows);
    self->header_bytes = gpsti_npy_header(row->dtype, shape, gpsti_stack_shape(row, n_rows, shape), header);
    GPSTI_TRY(gpst_target_create(context, path, self->header_bytes + n_rows * self->row_bytes, sync, &self->target));
    const gpst_result result = gpst_target_write(self->target, 0, header, self->header_bytes);
    if (GPST_FAILED(result))
        (void)gpsti_stack_close(self, false);
    return result;
}

GPSTI_INTERN gpst_result gpsti_stack_emit(const gpsti_stack* self, gpst_task* task, uint64_t row, const void* data) {
    return gpst_task_emit_at(task, self->target, self->header_bytes + row * self->row_bytes, data, self->row_bytes);
}

GPSTI_INTERN gpst_result gpsti_stack_close(gpsti_stack* self, bool whole) {
    gpst_target* const target = self->target;
    self->target = NULL;
    return gpst_target_finish(target, whole);
}
