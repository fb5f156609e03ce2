/* tools/gpustage/tensor.c -- one .npy file with a row for every input. Computes nothing. */
#include "tensor.h"

#include <string.h>

static uint32_t tensor_shape(const gpst_image* row, uint64_t n_rows, uint64_t* shape) {
    const uint32_t channels = gpst_format_channels(row->format);
    const bool planes = row->layout == GPST_LAYOUT_CHW;
    shape[0] = n_rows;
    shape[1] = planes ? channels : row->height;
    shape[2] = planes ? row->height : row->width;
    shape[3] = planes ? row->width : channels;
    return 4;
}

const char* tensor_create(tensor_file* self, const char* path, const gpst_image* row, uint64_t n_rows) {
    uint8_t header[GPST_NPY_HEADER_BYTES];
    uint64_t shape[4];
    size_t written = 0;
    memset(self, 0, sizeof *self);
    if (GPST_FAILED(gpst_image_bytes(row, &self->row_bytes)))
        return "the rows are too large";
    if (n_rows > (uint64_t)(INT64_MAX - GPST_NPY_HEADER_BYTES) / self->row_bytes)
        return "too many rows";
    self->path = path;
    self->header_bytes = gpst_npy_header(row->dtype, shape, tensor_shape(row, n_rows, shape), header);
    const char* problem = files_place_create(path, self->header_bytes + n_rows * self->row_bytes, &self->temporary,
                                             &self->file);
    if (!problem && (problem = files_place_write(&self->file, header, self->header_bytes, 0, &written)) != NULL)
        (void)tensor_close(self, false);
    return problem;
}

static void tensor_clear(const tensor_file* self, uint64_t offset, size_t bytes) {
    static const uint8_t zeroes[4096];
    size_t written = 0;
    for (size_t at = 0; at < bytes; at += sizeof zeroes)
        if (files_place_write(&self->file, zeroes, bytes - at < sizeof zeroes ? bytes - at : sizeof zeroes,
                              offset + at, &written))
            return;
}

const char* tensor_write_row(const tensor_file* self, uint64_t index, const void* data) {
    const uint64_t offset = self->header_bytes + index * self->row_bytes;
    size_t written = 0;
    const char* const problem = files_place_write(&self->file, data, self->row_bytes, offset, &written);
    if (problem)
        tensor_clear(self, offset, written);
    return problem;
}

const char* tensor_close(tensor_file* self, bool whole) {
    if (!self->temporary.data)
        return NULL;
    const char* problem = NULL;
    if (whole)
        problem = files_become(&self->file, self->temporary.data, self->path, self->sync);
    else
        files_discard(&self->file, self->temporary.data);
    text_free(&self->temporary);
    return problem;
}
