/* core/reader_internal.h -- how a way of reading plugs into the reader. */
#ifndef GPSTI_READER_INTERNAL_H
#define GPSTI_READER_INTERNAL_H

#include "context_internal.h"
#include "reader.h"

/* One way of getting bytes out of an open file; gpsti_file_read's contract. */
typedef struct gpsti_reader_kind_i {
    const char* name;
    gpst_result (*read_at)(const gpsti_file* file, const char* path, void* data, size_t bytes,
                           uint64_t offset_bytes, size_t* done);
} gpsti_reader_kind_i;

/* A reader of a kind that no name stands for; n_in_flight as in gpst_reader_desc. */
GPSTI_INTERN gpst_result gpsti_reader_create(gpst_context* context, const gpsti_reader_kind_i* kind,
                                             uint32_t n_in_flight, gpst_reader** out);

#endif
