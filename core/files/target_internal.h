/* core/files/target_internal.h -- a file that several items write parts of, as the writer sees it; temporary names. */
#ifndef GPSTI_TARGET_INTERNAL_H
#define GPSTI_TARGET_INTERNAL_H

#include "../device/context_internal.h"
#include "target.h"

#define GPSTI_TEMPORARY_BYTES 4096

struct gpst_target {
    gpst_context* context;
    char* path;
    uint64_t bytes;
    bool sync;
    gpsti_file file;
    char temporary[GPSTI_TEMPORARY_BYTES]; /* locked while its process lives */
};

/* Temporary files are called .gpustage-TAG-N and the ending: TAG is gpsti_process_tag in 16 hexadecimal digits, N the
   id. out, temporary: room for GPSTI_TEMPORARY_BYTES. */
GPSTI_INTERN gpst_result gpsti_temporary_name(const char* path, uint64_t id, const char* ending, char* out);
GPSTI_INTERN gpst_result gpsti_temporary_create(const char* path, const char* ending, bool locks, uint64_t* id,
                                                char* temporary, gpsti_file* file);

/* ARGUMENT where the part is not within the file. */
GPSTI_INTERN gpst_result gpsti_target_check(const gpst_target* target, const char* function, uint64_t offset_bytes,
                                            size_t bytes);
/* From any thread. On failure the part is zero again as far as the disk allows. */
GPSTI_INTERN gpst_result gpsti_target_put(const gpst_target* target, uint64_t offset_bytes, const void* data,
                                          size_t bytes);
GPSTI_INTERN void gpsti_target_clear(const gpst_target* target, uint64_t offset_bytes, size_t bytes); /* zeroes */

#endif
