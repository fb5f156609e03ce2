/* core/files/target.c -- one file that several items write parts of, under a temporary name, renamed or removed; and
   how temporary files are named. Knows no items: the writer puts their parts. */
#include "../base/platform_internal.h"

#include "target_internal.h"

#include <string.h>

#define GPSTI_TEMPORARY_TRIES 1000 /* names of others, at most, that may be in the way */

/* ---- temporary names ------------------------------------------------------------------------------ */

/* Beside the final name, so that the rename stays within one file system; short, so that it always fits. */
GPSTI_INTERN gpst_result gpsti_temporary_name(const char* path, uint64_t id, const char* ending, char* out) {
    const size_t directory_bytes = gpsti_path_directory_bytes(path);
    GPSTI_FAIL_IF(directory_bytes + 64 > GPSTI_TEMPORARY_BYTES, GPST_ERROR_ARGUMENT,
                  "write: path: %zu bytes of directory: must be below %d", directory_bytes, GPSTI_TEMPORARY_BYTES - 64);
    memcpy(out, path, directory_bytes);
    gpsti_format(out + directory_bytes, 64, ".gpustage-%016llx-%llu%s", (unsigned long long)gpsti_process_tag(),
                 (unsigned long long)id, ending);
    return GPST_OK;
}

/* A forked child has its parent's tag: of a name that is taken the next one is tried. */
GPSTI_INTERN gpst_result gpsti_temporary_create(const char* path, const char* ending, bool locks, uint64_t* id,
                                                char* temporary, gpsti_file* file) {
    static gpsti_a64 next_id;
    gpst_result result = GPST_ERROR_EXISTS;
    char prefix[160];
    for (int tries = 0; result == GPST_ERROR_EXISTS && tries < GPSTI_TEMPORARY_TRIES; tries++) {
        *id = gpsti_a64_add(&next_id, 1);
        GPSTI_TRY(gpsti_temporary_name(path, *id, ending, temporary));
        result = gpsti_file_create(temporary, file);
        if (locks && !GPST_FAILED(result) && !gpsti_file_lock(file)) { /* a run that cleans up took it for abandoned */
            (void)gpsti_file_close(file, path);
            result = gpsti_fail(GPST_ERROR_EXISTS, "its temporary file is removed again and again");
        }
    }
    gpsti_format(prefix, sizeof prefix, "write \"%.140s\"", path);
    return GPST_FAILED(result) ? gpsti_fail_in(result, prefix) : GPST_OK;
}

/* ---- its begin -------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_target_free(gpst_target* self) {
    if (self->path)
        gpsti_free(&self->context->host, self->path, strlen(self->path) + 1);
    gpsti_context_drop_object(self->context, self, sizeof *self);
}

GPST_API gpst_result gpst_target_create(gpst_context* context, const char* path, uint64_t bytes, bool sync,
                                        gpst_target** out) {
    uint64_t id = 0;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_context_check(context, "gpst_target_create"));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_target_create: out=NULL: required");
    GPSTI_FAIL_IF(!path || !path[0], GPST_ERROR_ARGUMENT, "gpst_target_create: path: required");
    GPSTI_FAIL_IF(bytes > (uint64_t)INT64_MAX, GPST_ERROR_OVERFLOW,
                  "gpst_target_create: bytes=%llu: must be below 2^63", (unsigned long long)bytes);
    GPSTI_FAIL_IF(gpsti_path_directory_bytes(path) + 64 > GPSTI_TEMPORARY_BYTES, GPST_ERROR_ARGUMENT,
                  "create \"%.100s...\": the path is too long", path);
    gpst_target* const self = (gpst_target*)gpsti_context_add_object(context, sizeof *self);
    if (!self)
        return GPST_ERROR_MEMORY;
    self->context = context;
    self->bytes = bytes;
    self->sync = sync;
    self->path = gpsti_copy_string(&context->host, path);
    gpst_result result = GPST_ERROR_MEMORY;
    if (self->path)
        result = gpsti_temporary_create(path, ".part", true, &id, self->temporary, &self->file);
    if (GPST_FAILED(result)) {
        gpsti_target_free(self);
        return result;
    }
    result = gpsti_file_set_bytes(&self->file, path, bytes);
    if (GPST_FAILED(result))
        (void)gpst_target_finish(self, false);
    else
        *out = self;
    return result;
}

/* ---- parts --------------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_target_check(const gpst_target* target, const char* function, uint64_t offset_bytes,
                                            size_t bytes) {
    GPSTI_FAIL_IF(offset_bytes > target->bytes || bytes > target->bytes - offset_bytes, GPST_ERROR_ARGUMENT,
                  "%s: offset_bytes=%llu: %llu bytes do not fit into %llu", function, (unsigned long long)offset_bytes,
                  (unsigned long long)bytes, (unsigned long long)target->bytes);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_target_clear(const gpst_target* target, uint64_t offset_bytes, size_t bytes) {
    static const uint8_t zeroes[4096] = {0};
    char reason[GPSTI_REASON_BYTES];
    gpst_result result = GPST_OK;
    size_t done = 0;
    gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
    for (size_t at = 0; at < bytes && !GPST_FAILED(result); at += sizeof zeroes)
        result = gpsti_file_write_at(&target->file, target->path, zeroes,
                                     bytes - at < sizeof zeroes ? bytes - at : sizeof zeroes, offset_bytes + at, &done);
    if (GPST_FAILED(result))
        (void)gpsti_fail(result, "%s", reason);
}

GPSTI_INTERN gpst_result gpsti_target_put(const gpst_target* target, uint64_t offset_bytes, const void* data,
                                          size_t bytes) {
    size_t done = 0;
    const gpst_result result = gpsti_file_write_at(&target->file, target->path, data, bytes, offset_bytes, &done);
    if (GPST_FAILED(result))
        gpsti_target_clear(target, offset_bytes, done);
    return result;
}

GPST_API gpst_result gpst_target_write(gpst_target* target, uint64_t offset_bytes, const void* data, size_t bytes) {
    GPSTI_FAIL_IF(!target, GPST_ERROR_ARGUMENT, "gpst_target_write: target=NULL: required");
    GPSTI_FAIL_IF(!data && bytes > 0, GPST_ERROR_ARGUMENT, "gpst_target_write: data=NULL: required");
    GPSTI_TRY(gpsti_target_check(target, "gpst_target_write", offset_bytes, bytes));
    return gpsti_target_put(target, offset_bytes, data, bytes);
}

/* ---- its end ------------------------------------------------------------------------------------- */

/* Renamed, or removed, while it is locked: in between another process would take it for abandoned. The thread's
   sentence stays, unless the file should be whole and is not. */
GPST_API gpst_result gpst_target_finish(gpst_target* target, bool whole) {
    char reason[GPSTI_REASON_BYTES];
    gpst_result result = GPST_OK;
    if (!target)
        return GPST_OK;
    gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
    if (whole && target->sync)
        result = gpsti_file_sync(&target->file, target->path);
    if (whole && !GPST_FAILED(result))
        result = gpsti_path_rename(target->temporary, target->path);
    if (GPST_FAILED(result))
        gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
    if (!whole || GPST_FAILED(result))
        (void)gpsti_path_remove(target->temporary);
    const gpst_result closed = gpsti_file_close(&target->file, target->path);
    if (whole && !GPST_FAILED(result) && GPST_FAILED(closed)) { /* disks of a network tell late what is wrong */
        gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
        (void)gpsti_path_remove(target->path);
        result = closed;
    }
    gpsti_target_free(target);
    return strcmp(reason, gpst_last_reason()) ? gpsti_fail(result, "%s", reason) : result;
}
