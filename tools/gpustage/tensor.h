/* tools/gpustage/tensor.h -- one .npy file with a row for every input, written row by row from any thread. */
#ifndef GPST_TOOL_TENSOR_H
#define GPST_TOOL_TENSOR_H

#include "codec.h"
#include "files.h"

typedef struct tensor_file {
    text temporary;
    const char* path;
    open_file file;
    size_t header_bytes, row_bytes;
    bool sync; /* on the disk before it has its name; tensor_create sets it */
} tensor_file;

/* Rows are shaped like `row`, all zero at first. NULL, or what went wrong. */
const char* tensor_create(tensor_file* self, const char* path, const gpst_image* row, uint64_t n_rows);
/* On failure the row is zero again as far as the disk allows. */
const char* tensor_write_row(const tensor_file* self, uint64_t index, const void* data);
/* whole: renamed to its name; else removed. */
const char* tensor_close(tensor_file* self, bool whole);

#endif
