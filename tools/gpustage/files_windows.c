/* tools/gpustage/files_windows.c -- the same of Windows, by its wide calls: the narrow ones lose what the code page has
   no letter for. Compiles to nothing elsewhere. */
#include "files_system.h"

#if defined(_WIN32)
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#define FILES_WIDE 4096 /* characters of a path, at most */
/* What is open can be renamed and removed all the same. */
#define FILES_SHARED (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* ---- names in UTF-8 -------------------------------------------------------------- */

static bool files_widen(const char* path, wchar_t out[FILES_WIDE]) {
    const bool fits = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, FILES_WIDE) > 0;
    errno = fits ? errno : GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : ENOENT;
    return fits;
}

/* NULL: no memory. free. */
static char* files_narrow(const wchar_t* wide) {
    const int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char* const narrow = bytes > 0 ? (char*)malloc((size_t)bytes) : NULL;
    if (narrow)
        (void)WideCharToMultiByte(CP_UTF8, 0, wide, -1, narrow, bytes, NULL, NULL);
    return narrow;
}

char** files_arguments(int n, wchar_t** wide) {
    char** const narrow = (char**)calloc((size_t)n + 1, sizeof *narrow);
    for (int i = 0; narrow && i < n; i++) {
        narrow[i] = files_narrow(wide[i]);
        if (!narrow[i])
            return NULL;
    }
    return narrow;
}

static UINT files_code_page; /* the console's, before this program */

static void files_restore_code_page(void) { (void)SetConsoleOutputCP(files_code_page); }

/* What is printed is UTF-8, too. */
void files_open_standard(void) {
    files_code_page = GetConsoleOutputCP(); /* 0: there is no console */
    if (files_code_page != 0 && SetConsoleOutputCP(CP_UTF8))
        (void)atexit(files_restore_code_page);
}

/* ---- facts ---------------------------------------------------------------------- */

static bool files_fail(DWORD code) {
    static const struct {
        DWORD code;
        int number;
    } known[] = {{ERROR_FILE_NOT_FOUND, ENOENT},     {ERROR_PATH_NOT_FOUND, ENOENT}, {ERROR_INVALID_NAME, ENOENT},
                 {ERROR_ACCESS_DENIED, EACCES},      {ERROR_FILE_EXISTS, EEXIST},    {ERROR_ALREADY_EXISTS, EEXIST},
                 {ERROR_SHARING_VIOLATION, EACCES},  {ERROR_OUTOFMEMORY, ENOMEM},    {ERROR_DISK_FULL, ENOSPC},
                 {ERROR_NOT_ENOUGH_MEMORY, ENOMEM}};
    errno = EIO;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].code == code)
            errno = known[i].number;
    return false;
}

#define FILES_1970 116444736000000000 /* from 1601, in units of 100 ns */

static bool files_describe(HANDLE handle, file_info* out) {
    BY_HANDLE_FILE_INFORMATION found;
    memset(out, 0, sizeof *out);
    out->mtime_ns = -1;
    out->n_names = 1;
    if (GetFileType(handle) != FILE_TYPE_DISK)
        return true;
    if (!GetFileInformationByHandle(handle, &found))
        return files_fail(GetLastError());
    const int64_t since_1970 =
        (int64_t)((uint64_t)found.ftLastWriteTime.dwHighDateTime << 32 | found.ftLastWriteTime.dwLowDateTime) - FILES_1970;
    out->is_directory = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    out->is_regular = !out->is_directory;
    out->bytes = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
    if (since_1970 >= 0 && since_1970 <= INT64_MAX / 100)
        out->mtime_ns = since_1970 * 100;
    out->device = found.dwVolumeSerialNumber;
    out->inode = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow;
    out->n_names = found.nNumberOfLinks;
    return true;
}

bool files_system_query(const char* path, file_info* out) {
    wchar_t wide[FILES_WIDE];
    memset(out, 0, sizeof *out);
    if (!files_widen(path, wide))
        return false;
    const HANDLE handle = CreateFileW(wide, FILE_READ_ATTRIBUTES, FILES_SHARED, NULL, OPEN_EXISTING,
                                      FILE_FLAG_BACKUP_SEMANTICS, NULL); /* of directories, too */
    if (handle == INVALID_HANDLE_VALUE)
        return files_fail(GetLastError());
    const bool known = files_describe(handle, out);
    (void)CloseHandle(handle);
    return known;
}

bool files_system_query_open(int descriptor, file_info* out) {
    return files_describe((HANDLE)_get_osfhandle(descriptor), out);
}

static DWORD files_attributes(const char* path) {
    wchar_t wide[FILES_WIDE];
    return files_widen(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
}

bool files_is_folder(const char* path) {
    const DWORD attributes = files_attributes(path);
    return attributes != INVALID_FILE_ATTRIBUTES &&
           (attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) == FILE_ATTRIBUTE_DIRECTORY;
}

bool files_is_link(const char* path) {
    const DWORD attributes = files_attributes(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
}

const char* files_list(const char* directory, text_list* out) {
    wchar_t wide[FILES_WIDE];
    text pattern = GPST_ZERO;
    WIN32_FIND_DATAW found;
    const char* problem = NULL;
    text_format(&pattern, "%s/*", directory);
    const bool widened = pattern.data && files_widen(pattern.data, wide);
    text_free(&pattern);
    const HANDLE listing = widened ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    if (listing == INVALID_HANDLE_VALUE) {
        if (widened)
            (void)files_fail(GetLastError());
        return strerror(errno);
    }
    do {
        char* const name = files_narrow(found.cFileName);
        if (!name || (strcmp(name, ".") && strcmp(name, "..") && !text_list_add(out, name)))
            problem = text_out_of_memory;
        free(name);
    } while (!problem && FindNextFileW(listing, &found));
    (void)FindClose(listing);
    return problem;
}

/* ---- as POSIX has them ------------------------------------------------------------- */

int files_system_open(const char* path, int flags, int mode) {
    static const DWORD access[] = {GENERIC_READ, GENERIC_WRITE, GENERIC_READ | GENERIC_WRITE}; /* O_RDONLY is 0 */
    const DWORD made = !(flags & O_CREAT) ? OPEN_EXISTING : flags & O_EXCL ? CREATE_NEW : OPEN_ALWAYS;
    wchar_t wide[FILES_WIDE];
    (void)mode;
    if (!files_widen(path, wide))
        return -1;
    const HANDLE handle = CreateFileW(wide, access[flags & (O_WRONLY | O_RDWR)], FILES_SHARED, NULL, made,
                                      FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return files_fail(GetLastError()) ? 0 : -1;
    const int descriptor = _open_osfhandle((intptr_t)handle, flags & (O_APPEND | O_NOINHERIT | O_BINARY));
    if (descriptor < 0)
        (void)CloseHandle(handle);
    return descriptor;
}

int files_system_mkdir(const char* path, int mode) {
    wchar_t wide[FILES_WIDE];
    (void)mode;
    return files_widen(path, wide) ? _wmkdir(wide) : -1;
}

int files_system_access(const char* path, int mode) {
    wchar_t wide[FILES_WIDE];
    return files_widen(path, wide) ? _waccess(wide, mode) : -1;
}

int files_system_rename(const char* from, const char* to) {
    wchar_t wide_from[FILES_WIDE], wide_to[FILES_WIDE];
    if (!files_widen(from, wide_from) || !files_widen(to, wide_to))
        return -1;
    return MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING) || files_fail(GetLastError()) ? 0 : -1;
}

int files_system_unlink(const char* path) {
    wchar_t wide[FILES_WIDE];
    return files_widen(path, wide) ? _wunlink(wide) : -1;
}

int files_system_rmdir(const char* path) {
    wchar_t wide[FILES_WIDE];
    return files_widen(path, wide) ? _wrmdir(wide) : -1;
}

char* files_system_realpath(const char* path, char* out) {
    wchar_t wide[FILES_WIDE], full[FILES_WIDE];
    (void)out;
    return files_widen(path, wide) && _wfullpath(full, wide, FILES_WIDE) ? files_narrow(full) : NULL;
}

int files_system_fsync(int descriptor) { return _commit(descriptor); }

/* Locks of bytes far behind the end: there, a lock keeps others from reading, too. The first says that a file is alive;
   under the second it grows, since others may write between the end that is found and what is written there. */
static OVERLAPPED files_byte(DWORD number) {
    OVERLAPPED place;
    memset(&place, 0, sizeof place);
    place.OffsetHigh = 0x1000;
    place.Offset = number;
    return place;
}

bool files_system_lock(int descriptor, bool wait) {
    OVERLAPPED place = files_byte(0);
    return LockFileEx((HANDLE)_get_osfhandle(descriptor), LOCKFILE_EXCLUSIVE_LOCK | (wait ? 0 : LOCKFILE_FAIL_IMMEDIATELY),
                      0, 1, 0, &place) != 0;
}

void files_system_begin_append(int descriptor) {
    OVERLAPPED place = files_byte(1);
    (void)LockFileEx((HANDLE)_get_osfhandle(descriptor), LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &place);
}

void files_system_end_append(int descriptor) {
    OVERLAPPED place = files_byte(1);
    (void)UnlockFileEx((HANDLE)_get_osfhandle(descriptor), 0, 1, 0, &place);
}
#endif
