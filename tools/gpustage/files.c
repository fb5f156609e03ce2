/* tools/gpustage/files.c -- what the command asks of the file system and the terminal, on every system. Knows
   no picture. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#define _FILE_OFFSET_BITS 64

#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(_WIN32)
#include <io.h>
#include <windows.h>
#define FILES_FLAGS (O_BINARY | O_NOINHERIT)
#else
#define FILES_FLAGS O_CLOEXEC
#endif

/* ---- names --------------------------------------------------------------------- */

static bool files_is_separator(char c) {
#if defined(_WIN32)
    return c == '/' || c == '\\';
#else
    return c == '/';
#endif
}

const char* files_base_name(const char* path) {
    const char* name = path;
    for (; *path; path++)
        if (files_is_separator(*path))
            name = path + 1;
    return name;
}

text files_parent(const char* path) {
    text parent = GPST_ZERO;
    size_t bytes = strlen(path);
    while (bytes > 1 && files_is_separator(path[bytes - 1])) /* "out/" is "out" */
        bytes--;
    while (bytes > 0 && !files_is_separator(path[bytes - 1]))
        bytes--;
    while (bytes > 1 && files_is_separator(path[bytes - 1]))
        bytes--;
    text_append(&parent, bytes ? path : ".", bytes ? bytes : 1);
    return parent;
}

text files_temporary_beside(const char* path) {
    static unsigned serial;
    text name = GPST_ZERO;
    text_append(&name, path, (size_t)(files_base_name(path) - path));
    text_format(&name, ".gpustage-%lu-%u.tmp", (unsigned long)getpid(), serial++);
    return name;
}

/* ---- facts ---------------------------------------------------------------------- */

const char* files_query(const char* path, file_info* out) {
    struct stat status;
    memset(out, 0, sizeof *out);
    if (stat(path, &status) != 0)
        return strerror(errno);
    out->is_regular = S_ISREG(status.st_mode);
    out->is_directory = S_ISDIR(status.st_mode);
    out->bytes = (uint64_t)status.st_size;
    out->mtime_ns = (int64_t)status.st_mtime * 1000000000;
#if !defined(_WIN32) && !defined(__APPLE__)
    out->mtime_ns += (int64_t)status.st_mtim.tv_nsec;
#endif
    out->device = (uint64_t)status.st_dev;
    out->inode = (uint64_t)status.st_ino;
    return NULL;
}

bool files_same_directory(const char* a, const char* b) {
    file_info first, second;
    return !files_query(a, &first) && !files_query(b, &second) && first.device == second.device &&
           first.inode == second.inode && first.inode != 0;
}

const char* files_make_directory(const char* path) {
#if defined(_WIN32)
    const int failed = mkdir(path);
#else
    const int failed = mkdir(path, 0777);
#endif
    return failed ? strerror(errno) : NULL;
}

const char* files_check_writable(const char* directory) {
    return access(directory, W_OK) == 0 ? NULL : strerror(errno);
}

const char* files_list(const char* directory, text_list* out) {
    DIR* const stream = opendir(directory);
    const char* problem = NULL;
    if (!stream)
        return strerror(errno);
    while (!problem) {
        errno = 0;
        const struct dirent* const entry = readdir(stream);
        if (!entry) {
            problem = errno ? strerror(errno) : NULL;
            break;
        }
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !text_list_add(out, entry->d_name))
            problem = "out of memory";
    }
    closedir(stream);
    return problem;
}

bool files_process_is_gone(unsigned long id) {
#if defined(_WIN32)
    HANDLE const process = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)id);
    const bool gone = !process && GetLastError() == ERROR_INVALID_PARAMETER;
    if (process)
        CloseHandle(process);
    return gone;
#else
    return kill((pid_t)id, 0) != 0 && errno == ESRCH;
#endif
}

bool files_is_terminal(int descriptor) { return isatty(descriptor) != 0; }

int64_t files_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

/* ---- whole files ------------------------------------------------------------------ */

static const char* files_put(int descriptor, const void* data, size_t bytes) {
    const char* at = (const char*)data;
    while (bytes > 0) {
        const size_t piece = bytes < 0x40000000u ? bytes : 0x40000000u;
        const ssize_t done = write(descriptor, at, (unsigned)piece);
        if (done < 0 && errno != EINTR)
            return strerror(errno);
        at += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    return NULL;
}

const char* files_read_at_most(const char* path, size_t most_bytes, text* out) {
    char piece[16384];
    const int descriptor = open(path, O_RDONLY | FILES_FLAGS);
    if (descriptor < 0)
        return strerror(errno);
    const char* problem = NULL;
    while (!problem && !out->failed) {
        const ssize_t done = read(descriptor, piece, sizeof piece);
        if (done == 0)
            break;
        if (done > 0)
            text_append(out, piece, (size_t)done);
        else if (errno != EINTR)
            problem = strerror(errno);
        if (out->bytes > most_bytes)
            problem = "is too large";
    }
    close(descriptor);
    return problem ? problem : out->failed ? "out of memory" : NULL;
}

const char* files_read(const char* path, text* out) { return files_read_at_most(path, SIZE_MAX, out); }

static const char* files_write_to(const char* path, int flags, const void* data, size_t bytes, bool sync) {
    const int descriptor = open(path, O_WRONLY | flags | FILES_FLAGS, 0666);
    if (descriptor < 0)
        return strerror(errno);
    const char* problem = files_put(descriptor, data, bytes);
#if !defined(_WIN32)
    if (!problem && sync && fsync(descriptor) != 0)
        problem = strerror(errno);
#else
    (void)sync;
#endif
    if (close(descriptor) != 0 && !problem)
        problem = strerror(errno);
    return problem;
}

const char* files_rename(const char* from, const char* to) {
#if defined(_WIN32)
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) ? NULL : "cannot be renamed";
#else
    return rename(from, to) == 0 ? NULL : strerror(errno);
#endif
}

void files_remove(const char* path) { (void)remove(path); }

void files_remove_directory(const char* path) {
#if defined(_WIN32)
    (void)_rmdir(path);
#else
    (void)rmdir(path);
#endif
}

const char* files_write_whole(const char* path, const void* data, size_t bytes) {
    file_info info;
    if (!files_query(path, &info) && !info.is_regular)
        return info.is_directory ? "is a directory" : files_write_to(path, 0, data, bytes, false);
    text temporary = files_temporary_beside(path);
    if (temporary.failed)
        return "out of memory";
    const char* problem = files_write_to(temporary.data, O_CREAT | O_EXCL, data, bytes, true);
    if (!problem)
        problem = files_rename(temporary.data, path);
    if (problem)
        files_remove(temporary.data);
    text_free(&temporary);
    return problem;
}

const char* files_append(const char* path, const void* data, size_t bytes) {
    return files_write_to(path, O_CREAT | O_APPEND, data, bytes, false);
}

const char* files_truncate(const char* path, uint64_t bytes) {
    return truncate(path, (off_t)bytes) == 0 ? NULL : strerror(errno);
}

/* ---- the page cache ---------------------------------------------------------------- */

#if defined(__linux__)
/* The mapping is not touched: only asked about. */
static int files_resident_pct(int descriptor, size_t bytes) {
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), n_pages = (bytes + page_bytes - 1) / page_bytes;
    unsigned char* const pages = (unsigned char*)malloc(n_pages ? n_pages : 1);
    void* const map = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    const bool told = pages && map != MAP_FAILED && mincore(map, bytes, pages) == 0;
    size_t n_resident = 0;
    for (size_t i = 0; told && i < n_pages; i++)
        n_resident += pages[i] & 1u;
    if (map != MAP_FAILED)
        munmap(map, bytes);
    free(pages);
    return told ? (int)((n_resident * 100 + n_pages - 1) / n_pages) : -1;
}

/* Only clean pages can be dropped. */
int files_drop_cached(const char* path) {
    const int descriptor = open(path, O_RDONLY | FILES_FLAGS);
    struct stat status;
    int resident_pct = -1;
    if (descriptor < 0)
        return -1;
    if (fdatasync(descriptor) == 0 && posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0 &&
        fstat(descriptor, &status) == 0)
        resident_pct = files_resident_pct(descriptor, (size_t)status.st_size);
    close(descriptor);
    return resident_pct;
}
#else
int files_drop_cached(const char* path) {
    (void)path;
    return -1;
}
#endif

/* ---- places ------------------------------------------------------------------------ */

const char* files_place_create(const char* path, uint64_t bytes, place_file* out) {
    out->descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | FILES_FLAGS, 0666);
    if (out->descriptor < 0)
        return strerror(errno);
    if (ftruncate(out->descriptor, (off_t)bytes) == 0)
        return NULL;
    const char* const problem = strerror(errno);
    close(out->descriptor);
    files_remove(path);
    return problem;
}

static ssize_t files_put_at(int descriptor, const void* data, size_t bytes, uint64_t offset) {
#if defined(_WIN32)
    OVERLAPPED place;
    DWORD done = 0;
    memset(&place, 0, sizeof place);
    place.Offset = (DWORD)(offset & 0xffffffffu);
    place.OffsetHigh = (DWORD)(offset >> 32);
    return WriteFile((HANDLE)_get_osfhandle(descriptor), data, (DWORD)bytes, &done, &place) ? (ssize_t)done
                                                                                            : -1;
#else
    return pwrite(descriptor, data, bytes, (off_t)offset);
#endif
}

const char* files_place_write(const place_file* self, const void* data, size_t bytes, uint64_t offset,
                              size_t* written) {
    *written = 0;
    while (*written < bytes) {
        const size_t left = bytes - *written;
        const ssize_t done = files_put_at(self->descriptor, (const char*)data + *written,
                                          left < 0x40000000u ? left : 0x40000000u, offset + *written);
        if (done < 0 && errno != EINTR)
            return strerror(errno);
        *written += done > 0 ? (size_t)done : 0;
    }
    return NULL;
}

const char* files_place_close(place_file* self, bool sync) {
    const char* problem = NULL;
#if !defined(_WIN32)
    if (sync && fsync(self->descriptor) != 0)
        problem = strerror(errno);
#else
    (void)sync;
#endif
    if (close(self->descriptor) != 0 && !problem)
        problem = strerror(errno);
    self->descriptor = -1;
    return problem;
}
