/* tools/gpustage/files_system.h -- the system's calls behind files.c, by names in UTF-8: POSIX's own, or
   files_windows.c, which has those of Windows and for it the rest of files.h that is no such call. */
#ifndef GPST_TOOL_FILES_SYSTEM_H
#define GPST_TOOL_FILES_SYSTEM_H

#include "files.h"

/* False: errno says why. */
bool files_system_query(const char* path, file_info* out);
bool files_system_query_open(int descriptor, file_info* out);

/* As POSIX has them. */
#if defined(_WIN32)
int files_system_open(const char* path, int flags, int mode);
int files_system_mkdir(const char* path, int mode);
int files_system_access(const char* path, int mode);
int files_system_rename(const char* from, const char* to);
int files_system_unlink(const char* path);
int files_system_rmdir(const char* path);
char* files_system_realpath(const char* path, char* out);
int files_system_fsync(int descriptor);
bool files_system_lock(int descriptor, bool wait); /* false: another has it, or the disk knows no locks */
/* Around writes to what is open with O_APPEND, which POSIX does by itself. */
void files_system_begin_append(int descriptor);
void files_system_end_append(int descriptor);
#else
#define files_system_open open
#define files_system_mkdir mkdir
#define files_system_access access
#define files_system_rename rename
#define files_system_unlink unlink
#define files_system_rmdir rmdir
#define files_system_realpath realpath
#define files_system_fsync fsync
#define files_system_begin_append(descriptor) ((void)(descriptor))
#define files_system_end_append(descriptor) ((void)(descriptor))
#endif

#endif
