/* core/files/target.h -- one file that several items write parts of: whole or absent. Owns its temporary file until it
   is finished. */
#ifndef GPSTI_TARGET_H
#define GPSTI_TARGET_H

#include "../device/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_target gpst_target;

/* gpst_target_create -- a file of known size, all zero, for parts of many items (gpst_task_emit_at)

   Parameters   context (in)   any
                path    (in)   final name; copied; not "" and not NULL
                bytes   (in)   of the whole file; below 2^63
                sync    (in)   gpst_target_finish waits until the file is on the disk, before it has its name
                out     (out)  the target; NULL on failure
   Shapes       none
   Returns      GPST_OK | ARGUMENT | OVERFLOW | NOT_FOUND | ACCESS | NO_SPACE | MEMORY | IO
   Ownership    end it by gpst_target_finish, before the context
   Threads      any
   Blocking     while the file system makes a file .gpustage-*.part beside path, which it does not fill; allocates. The
                file is locked while this process lives: one that nobody holds is left over, and may be removed
   Device       none
   Source       core/files/target.c          Tests  tests/test_pipeline_target.c          Since 0.1
*/
GPST_API gpst_result gpst_target_create(gpst_context* context, const char* path, uint64_t bytes, bool sync,
                                        gpst_target** out);
/* gpst_target_write -- a part that is no item's, such as a header, on this thread

   Parameters   target       (in)
                offset_bytes (in)  where it begins; it ends within the file
                data         (in)
                bytes        (in)
   Shapes       data: uint8_t[bytes]
   Returns      GPST_OK | ARGUMENT | NO_SPACE | IO. After a failure the part is zero, as far as the disk allows
   Ownership    nothing is kept
   Threads      any, several at once: parts that overlap are not looked for
   Blocking     while the system takes the bytes
   Device       none
   Source       core/files/target.c          Tests  tests/test_pipeline_target.c          Since 0.1
*/
GPST_API gpst_result gpst_target_write(gpst_target* target, uint64_t offset_bytes, const void* data, size_t bytes);
/* gpst_target_finish -- the file gets its name, replacing what had it, or is removed; ends the target

   Parameters   target (in)  not used any more, whatever is returned; NULL is ignored
                whole  (in)  false: it is removed
   Shapes       none
   Returns      GPST_OK | NO_SPACE | IO | ACCESS and others of the system: there is no file, and what had its name stays
                but where a disk says only at the very end what is wrong. gpst_last_reason is then of that, else what
                it was
   Ownership    frees the target
   Threads      one, when no item that has a part of it is in flight any more
   Blocking     as the file system does; with sync until the disk has the file
   Device       none
   Source       core/files/target.c          Tests  tests/test_pipeline_target.c          Since 0.1
*/
GPST_API gpst_result gpst_target_finish(gpst_target* target, bool whole);

#ifdef __cplusplus
}
#endif
#endif
