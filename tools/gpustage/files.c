/* tools/gpustage/files.c -- what the command asks of the file system and the terminal, on every system. Knows
   no picture. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#define _FILE_OFFSET_BITS 64

#include "files.h"
#include "files_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILES_POLL_NS 20000000

#if defined(_WIN32)
#define FILES_FLAGS (O_BINARY | O_NOINHERIT)
#define FILES_NO_LINK 0
#else
#include <sys/file.h>
#define FILES_FLAGS (O_CLOEXEC | O_NOCTTY)
#define FILES_NO_LINK (O_NONBLOCK | O_NOFOLLOW)
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

char* files_real_path(const char* path) { return files_system_realpath(path, NULL); }

/* Of no other file, of this process or of another: O_EXCL has the last word. */
static text files_temporary_beside(const char* path) {
    static unsigned serial;
    struct timespec now;
    text name = GPST_ZERO;
    clock_gettime(CLOCK_REALTIME, &now);
    text_append(&name, path, (size_t)(files_base_name(path) - path));
    text_format(&name, ".gpustage-%llx%09lx-%lx-%u" FILES_TEMPORARY, (unsigned long long)now.tv_sec,
                (unsigned long)now.tv_nsec, (unsigned long)getpid(), serial++);
    return name;
}

/* Out of memory is the same whoever says it. */
static const char* files_words(int code) { return code == ENOMEM ? text_out_of_memory : strerror(code); }

/* ---- facts ---------------------------------------------------------------------- */

#if !defined(_WIN32)
static void files_describe(const struct stat* status, file_info* out) {
    out->is_regular = S_ISREG(status->st_mode);
    out->is_directory = S_ISDIR(status->st_mode);
    out->bytes = (uint64_t)status->st_size;
    out->mtime_ns = -1;
    if (status->st_mtime >= 0 && status->st_mtime < INT64_MAX / 1000000000)
        out->mtime_ns = (int64_t)status->st_mtime * 1000000000;
#if !defined(__APPLE__)
    if (out->mtime_ns >= 0)
        out->mtime_ns += (int64_t)status->st_mtim.tv_nsec;
#endif
    out->device = (uint64_t)status->st_dev;
    out->inode = (uint64_t)status->st_ino;
    out->n_names = (uint64_t)status->st_nlink;
}

bool files_system_query(const char* path, file_info* out) {
    struct stat status;
    memset(out, 0, sizeof *out);
    if (stat(path, &status) != 0)
        return false;
    files_describe(&status, out);
    return true;
}

bool files_system_query_open(int descriptor, file_info* out) {
    struct stat status;
    memset(out, 0, sizeof *out);
    if (fstat(descriptor, &status) != 0)
        return false;
    files_describe(&status, out);
    return true;
}

bool files_is_folder(const char* path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool files_is_link(const char* path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}
#endif

const char* files_query(const char* path, file_info* out) {
    return files_system_query(path, out) ? NULL : files_words(errno);
}

bool files_same_directory(const char* a, const char* b) {
    file_info first, second;
    return !files_query(a, &first) && !files_query(b, &second) && first.device == second.device &&
           first.inode == second.inode && first.inode != 0;
}

bool files_enter(folder_set* self, const char* path) {
    file_info info;
    if (files_query(path, &info) || info.inode == 0)
        return true;
    for (size_t i = 0; i < self->count; i++)
        if (self->items[i].device == info.device && self->items[i].inode == info.inode)
            return false;
    file_info* const items = (file_info*)realloc(self->items, (self->count + 1) * sizeof info);
    self->failed = !items;
    if (!items)
        return false;
    self->items = items;
    self->items[self->count++] = info;
    return true;
}

/* Another run may have just made it. */
const char* files_make_directory(const char* path) {
    file_info info;
    const int failed = files_system_mkdir(path, 0777);
    const int code = errno;
    return !failed || (code == EEXIST && !files_query(path, &info) && info.is_directory) ? NULL : files_words(code);
}

const char* files_check_writable(const char* directory) {
    return files_system_access(directory, W_OK) == 0 ? NULL : files_words(errno);
}

#if !defined(_WIN32)
const char* files_list(const char* directory, text_list* out) {
    DIR* const stream = opendir(directory);
    const char* problem = NULL;
    if (!stream)
        return files_words(errno);
    while (!problem) {
        errno = 0;
        const struct dirent* const entry = readdir(stream);
        if (!entry) {
            problem = errno ? files_words(errno) : NULL;
            break;
        }
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !text_list_add(out, entry->d_name))
            problem = text_out_of_memory;
    }
    closedir(stream);
    return problem;
}
#endif

bool files_is_terminal(int descriptor) { return isatty(descriptor) != 0; }

void files_sleep_ns(int64_t duration_ns) {
    struct timespec time;
    time.tv_sec = (time_t)(duration_ns / 1000000000);
    time.tv_nsec = (long)(duration_ns % 1000000000);
    (void)nanosleep(&time, NULL);
}

int64_t files_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

/* ---- descriptors -------------------------------------------------------------------- */

#if !defined(_WIN32)
void files_open_standard(void) {
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0)
            (void)open("/", O_RDONLY); /* either takes the lowest that is free, this one; of "/" nothing is read */
}
#endif

static const char* files_put(int descriptor, const void* data, size_t bytes) {
    const char* at = (const char*)data;
    while (bytes > 0) {
        const size_t piece = bytes < 0x40000000u ? bytes : 0x40000000u;
        const ssize_t done = write(descriptor, at, (unsigned)piece);
        if (done < 0 && errno != EINTR)
            return files_words(errno);
        at += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    return NULL;
}

static const char* files_get(int descriptor, size_t most_bytes, text* out) {
    char piece[16384];
    while (!out->failed) {
        const ssize_t done = read(descriptor, piece, sizeof piece);
        if (done == 0)
            return NULL;
        if (done > 0)
            text_append(out, piece, (size_t)done);
        else if (errno != EINTR)
            return files_words(errno);
        if (out->bytes > most_bytes)
            return "is too large";
    }
    return text_out_of_memory;
}

/* Disks of a network tell what is wrong with a file when it is closed: a copy of the descriptor serves for that, and
   the file stays locked until it has its name. */
static const char* files_flush(int descriptor, bool sync) {
    if (sync)
        return files_system_fsync(descriptor) == 0 ? NULL : files_words(errno);
#if defined(_WIN32)
    return NULL;
#else
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    return copy >= 0 && close(copy) == 0 ? NULL : files_words(errno);
#endif
}

/* True: nobody else has it. A disk that knows no locks tells nobody that a file is abandoned. */
static bool files_lock(int descriptor, bool wait) {
#if defined(_WIN32)
    return files_system_lock(descriptor, wait);
#else
    int failed = 0;
    do {
        failed = flock(descriptor, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
    } while (failed && errno == EINTR);
    return !failed;
#endif
}

/* ---- files that are alive while they are locked -------------------------------------- */

/* Between its making and its locking a run that cleans up may take it for abandoned: it is made again then. */
const char* files_create_locked(const char* path, open_file* out) {
    for (;;) {
        file_info info;
        out->descriptor = files_system_open(path, O_RDWR | O_CREAT | O_EXCL | FILES_FLAGS, 0666);
        if (out->descriptor < 0)
            return files_words(errno);
        out->locked = files_lock(out->descriptor, true);
        if (files_system_query_open(out->descriptor, &info) && info.n_names > 0)
            return NULL;
        files_close(out);
    }
}

const char* files_create_temporary(const char* beside, text* path, open_file* out) {
    out->descriptor = -1;
    *path = files_temporary_beside(beside);
    const char* const problem = path->failed ? text_out_of_memory : files_create_locked(path->data, out);
    if (problem)
        text_free(path);
    return problem;
}

bool files_take_abandoned(const char* path, open_file* out) {
    file_info info;
    out->descriptor = files_system_open(path, O_RDWR | FILES_NO_LINK | FILES_FLAGS, 0);
    if (out->descriptor < 0) /* another user's, or made read-only: most disks lock that, too */
        out->descriptor = files_system_open(path, O_RDONLY | FILES_NO_LINK | FILES_FLAGS, 0);
    if (out->descriptor < 0)
        return false;
    out->locked = files_system_query_open(out->descriptor, &info) && info.is_regular && files_lock(out->descriptor, false);
    if (out->locked)
        return true;
    files_close(out);
    return false;
}

bool files_is_open(const open_file* self, const file_info* info) {
    file_info own;
    return files_system_query_open(self->descriptor, &own) && own.device == info->device && own.inode == info->inode;
}

void files_close(open_file* self) {
    if (self->descriptor >= 0)
        (void)close(self->descriptor);
    self->descriptor = -1;
}

/* Removed before it is closed, so that nobody finds it unlocked in between. */
void files_discard(open_file* self, const char* path) {
    files_remove(path);
    files_close(self);
}

/* ---- whole files ------------------------------------------------------------------ */

const char* files_read_at_most(const char* path, size_t most_bytes, text* out) {
    const int descriptor = files_system_open(path, O_RDONLY | FILES_FLAGS, 0);
    if (descriptor < 0)
        return files_words(errno);
    const char* const problem = files_get(descriptor, most_bytes, out);
    close(descriptor);
    return problem;
}

const char* files_read_into(const char* path, void* out, size_t bytes) {
    const int descriptor = files_system_open(path, O_RDONLY | FILES_FLAGS, 0);
    const char* problem = descriptor < 0 ? files_words(errno) : NULL;
    char* at = (char*)out;
    while (!problem && bytes > 0) {
        const ssize_t done = read(descriptor, at, (unsigned)(bytes < 0x40000000u ? bytes : 0x40000000u));
        if (done == 0)
            problem = "has fewer bytes than before";
        else if (done < 0 && errno != EINTR)
            problem = files_words(errno);
        at += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    if (descriptor >= 0)
        close(descriptor);
    return problem;
}

const char* files_read_regular(const char* path, size_t most_bytes, text* out) {
    file_info info;
    const int descriptor = files_system_open(path, O_RDONLY | FILES_NO_LINK | FILES_FLAGS, 0);
    if (descriptor < 0)
        return files_words(errno);
    const char* problem = "is no regular file";
    if (files_system_query_open(descriptor, &info) && info.is_regular)
        problem = files_get(descriptor, most_bytes, out);
    close(descriptor);
    return problem;
}

size_t files_read_beginning(const char* path, void* out, size_t most_bytes) {
    const int descriptor = files_system_open(path, O_RDONLY | FILES_FLAGS, 0);
    if (descriptor < 0)
        return 0;
    const int64_t bytes = (int64_t)read(descriptor, out, (unsigned)most_bytes);
    close(descriptor);
    return bytes > 0 ? (size_t)bytes : 0;
}

const char* files_read(const char* path, text* out) { return files_read_at_most(path, SIZE_MAX, out); }

const char* files_become(open_file* self, const char* temporary, const char* path, bool sync) {
    const char* problem = files_flush(self->descriptor, sync);
    if (!problem && files_system_rename(temporary, path) != 0)
        problem = files_words(errno);
    if (problem)
        files_discard(self, temporary);
    files_close(self);
    return problem;
}

void files_remove(const char* path) { (void)files_system_unlink(path); }
void files_remove_directory(const char* path) { (void)files_system_rmdir(path); }

/* A FIFO waits for its reader between two calls, where a signal can end the wait, and not within open. */
static int files_open_into(const char* path) {
#if defined(_WIN32)
    return files_system_open(path, O_WRONLY | FILES_FLAGS, 0);
#else
    struct stat status;
    const bool is_fifo = stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
    int descriptor = open(path, O_WRONLY | O_NONBLOCK | FILES_FLAGS);
    while (descriptor < 0 && is_fifo && errno == ENXIO) {
        files_sleep_ns(FILES_POLL_NS);
        descriptor = open(path, O_WRONLY | O_NONBLOCK | FILES_FLAGS);
    }
    if (descriptor >= 0)
        (void)fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    return descriptor;
#endif
}

static const char* files_write_into(const char* path, const void* data, size_t bytes) {
    const int descriptor = files_open_into(path);
    if (descriptor < 0)
        return files_words(errno);
    const char* problem = files_put(descriptor, data, bytes);
    if (close(descriptor) != 0 && !problem)
        problem = files_words(errno);
    return problem;
}

/* "/dev/stdout" and links to it stand for what the process has open: not a name to be given to another file. */
static bool files_is_descriptor(const char* path) {
#if defined(__linux__)
    char target[4096];
    const ssize_t bytes = readlink(path, target, sizeof target - 1);
    if (bytes <= 0)
        return !strncmp(path, "/proc/", 6);
    target[bytes] = '\0';
    return !strncmp(target, "/proc/", 6) || !strncmp(target, "/dev/", 5);
#else
    (void)path;
    return false;
#endif
}

const char* files_write_whole(const char* path, const void* data, size_t bytes) {
    file_info info;
    open_file file;
    text temporary;
    if (!files_query(path, &info) && !info.is_regular)
        return info.is_directory ? "is a directory" : files_write_into(path, data, bytes);
    if (files_is_descriptor(path))
        return files_write_into(path, data, bytes);
    const char* problem = files_create_temporary(path, &temporary, &file);
    if (problem)
        return problem;
    problem = files_put(file.descriptor, data, bytes);
    if (!problem)
        problem = files_become(&file, temporary.data, path, true);
    else
        files_discard(&file, temporary.data);
    text_free(&temporary);
    return problem;
}

/* ---- lists that grow ---------------------------------------------------------------- */

/* A list that has another name, too, as a backup by links has, is that one's from now on. */
static const char* files_copy_list(const char* path, open_file* out, const text* contents) {
    files_close(out);
    files_remove(path);
    out->descriptor =
        files_system_open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | FILES_NO_LINK | FILES_FLAGS, 0666);
    return out->descriptor < 0 ? files_words(errno) : files_put(out->descriptor, contents->data, contents->bytes);
}

/* Without waiting, and not through a link: a FIFO of that name would never open, and a link leads elsewhere. */
const char* files_open_list(const char* path, open_file* out, text* contents) {
    file_info info;
    out->descriptor = files_system_open(path, O_RDWR | O_CREAT | O_APPEND | FILES_NO_LINK | FILES_FLAGS, 0666);
    if (out->descriptor < 0)
        return files_words(errno);
    const char* problem = NULL;
    if (!files_system_query_open(out->descriptor, &info))
        problem = files_words(errno);
    else if (!info.is_regular)
        problem = "is no regular file";
    else
        problem = files_get(out->descriptor, SIZE_MAX, contents);
    if (!problem && info.n_names > 1)
        problem = files_copy_list(path, out, contents);
    if (problem)
        files_close(out);
    return problem;
}

const char* files_list_add(const open_file* self, const void* data, size_t bytes) {
    files_system_begin_append(self->descriptor);
    const char* const problem = files_put(self->descriptor, data, bytes);
    files_system_end_append(self->descriptor);
    return problem;
}

const char* files_list_clear(const open_file* self) {
    return ftruncate(self->descriptor, 0) == 0 ? NULL : files_words(errno);
}

const char* files_list_sync(const open_file* self) { return files_flush(self->descriptor, true); }
