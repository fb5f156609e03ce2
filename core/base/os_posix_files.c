/* core/base/os_posix_files.c -- files and their names by POSIX, with what Linux and macOS add. Compiles to nothing on
   Windows. */
#include "platform_internal.h"

#include "base_internal.h"

#if !defined(_WIN32)
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

/* A regular file is waited for all the same where it wants to be: another process has a lease on it, or it comes from a
   tape. */
GPSTI_PRIVATE gpst_result gpsti_file_open(const char* path, int flags, gpsti_file* out) {
    struct stat status;
    int descriptor = -1;
    do {
        descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
        if (descriptor < 0 && errno == EAGAIN && (flags & O_NONBLOCK) && !stat(path, &status) &&
            S_ISREG(status.st_mode)) {
            flags &= ~O_NONBLOCK;
            errno = EINTR;
        }
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0)
        return gpsti_os_fail(flags & O_CREAT ? "create" : "open", path, errno);
    out->handle = descriptor;
    return GPST_OK;
}

/* Opening a FIFO would wait for its writer, where nobody could cancel that. */
GPSTI_INTERN gpst_result gpsti_file_open_read(const char* path, gpsti_file* out) {
    return gpsti_file_open(path, O_RDONLY | O_NONBLOCK, out);
}

GPSTI_INTERN gpst_result gpsti_file_create(const char* path, gpsti_file* out) {
    return gpsti_file_open(path, O_WRONLY | O_CREAT | O_EXCL, out);
}

GPSTI_PRIVATE void gpsti_file_info_of(const struct stat* status, gpsti_file_info* out) {
#if defined(__APPLE__)
    const struct timespec modified = status->st_mtimespec;
#else
    const struct timespec modified = status->st_mtim;
#endif
    out->is_regular = S_ISREG(status->st_mode);
    out->is_directory = S_ISDIR(status->st_mode);
    out->bytes = out->is_regular ? (uint64_t)status->st_size : 0;
    out->modified_ns = (uint64_t)modified.tv_sec * GPSTI_OS_NS + (uint64_t)modified.tv_nsec;
    out->device = (uint64_t)status->st_dev;
    out->inode = (uint64_t)status->st_ino;
}

GPSTI_INTERN gpst_result gpsti_file_query(const gpsti_file* file, const char* path, gpsti_file_info* out) {
    struct stat status;
    if (fstat((int)file->handle, &status))
        return gpsti_os_fail("query", path, errno);
    gpsti_file_info_of(&status, out);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_path_query(const char* path, gpsti_file_info* out) {
    struct stat status;
    memset(out, 0, sizeof *out);
    if (stat(path, &status))
        return gpsti_os_fail("query", path, errno);
    gpsti_file_info_of(&status, out);
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_path_is_regular(const char* path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

GPSTI_INTERN bool gpsti_file_make_waiting(const gpsti_file* file) {
    const int flags = fcntl((int)file->handle, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) && fcntl((int)file->handle, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* Few file systems mind O_NONBLOCK, and it is taken off for those that do: it would be a call more for every file. */
GPSTI_INTERN gpst_result gpsti_file_read(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                         uint64_t offset_bytes, size_t* done) {
    const size_t want = bytes < GPSTI_OS_CALL_BYTES ? bytes : GPSTI_OS_CALL_BYTES;
    ssize_t got = 0;
    GPSTI_FAIL_IF(offset_bytes > (uint64_t)INT64_MAX - want, GPST_ERROR_OVERFLOW,
                  "read \"%s\": offset_bytes=%llu: must be below 2^63", path, (unsigned long long)offset_bytes);
    do {
        got = pread((int)file->handle, data, want, (off_t)offset_bytes);
    } while (got < 0 && (errno == EINTR || (errno == EAGAIN && gpsti_file_make_waiting(file))));
    if (got < 0)
        return gpsti_os_fail("read", path, errno);
    *done = (size_t)got;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_read_cached(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                                uint64_t offset_bytes, size_t* done) {
#if defined(__linux__) && defined(RWF_NOWAIT)
    struct iovec room;
    room.iov_base = data;
    room.iov_len = bytes < GPSTI_OS_CALL_BYTES ? bytes : GPSTI_OS_CALL_BYTES;
    if (offset_bytes > (uint64_t)INT64_MAX - room.iov_len)
        return gpsti_file_read(file, path, data, bytes, offset_bytes, done);
    const ssize_t got = preadv2((int)file->handle, &room, 1, (off_t)offset_bytes, RWF_NOWAIT);
    *done = got > 0 ? (size_t)got : 0;
    if (got >= 0)
        return GPST_OK;
    if (errno == EAGAIN)
        return GPST_ERROR_WOULD_BLOCK;
#endif
    return gpsti_file_is_in_memory(file) ? gpsti_file_read(file, path, data, bytes, offset_bytes, done)
                                         : GPST_ERROR_UNSUPPORTED;
}

GPSTI_INTERN void gpsti_path_will_need(const char* path) {
#if defined(POSIX_FADV_WILLNEED)
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return;
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_WILLNEED);
    (void)close(descriptor);
#else
    (void)path;
#endif
}

/* poll first: a descriptor that is another's, as /dev/stdin is on some systems, may be one whose reads wait. A FIFO
   that nobody has opened for writing since we opened it reads as ended; poll knows better, but not of what was written
   before that: so one that has given bytes is asked, too, when nothing comes. */
GPSTI_INTERN gpst_result gpsti_file_read_next(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                              bool begun, int64_t wait_ns, size_t* done) {
    const int descriptor = (int)file->handle;
    struct pollfd look;
    struct stat status;
    look.fd = descriptor;
    look.events = POLLIN;
    look.revents = 0;
    const int n_ready = poll(&look, 1, (int)(wait_ns / 1000000));
    if (n_ready < 0 && errno != EINTR)
        return gpsti_os_fail("wait for", path, errno);
    if (n_ready <= 0 && (!begun || !(fcntl(descriptor, F_GETFL) & O_NONBLOCK)))
        return GPST_ERROR_WOULD_BLOCK;
    const ssize_t got = read(descriptor, data, bytes < GPSTI_OS_CALL_BYTES ? bytes : GPSTI_OS_CALL_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return GPST_ERROR_WOULD_BLOCK;
    if (got < 0)
        return gpsti_os_fail("read", path, errno);
    const bool ended = begun || (look.revents & POLLHUP);
    if (got == 0 && !ended && fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode))
        return GPST_ERROR_WOULD_BLOCK;
    *done = (size_t)got;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_write(const gpsti_file* file, const char* path, const void* data,
                                          size_t bytes) {
    const char* next = (const char*)data;
    while (bytes) {
        const ssize_t got =
            write((int)file->handle, next, bytes < GPSTI_OS_CALL_BYTES ? bytes : GPSTI_OS_CALL_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return gpsti_os_fail("write", path, got < 0 ? errno : EIO);
        next += got;
        bytes -= (size_t)got;
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_write_at(const gpsti_file* file, const char* path, const void* data, size_t bytes,
                                             uint64_t offset_bytes, size_t* done) {
    *done = 0;
    while (*done < bytes) {
        const size_t left = bytes - *done, want = left < GPSTI_OS_CALL_BYTES ? left : GPSTI_OS_CALL_BYTES;
        const ssize_t got =
            pwrite((int)file->handle, (const char*)data + *done, want, (off_t)(offset_bytes + *done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return gpsti_os_fail("write", path, got < 0 ? errno : EIO);
        *done += (size_t)got;
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_set_bytes(const gpsti_file* file, const char* path, uint64_t bytes) {
    return ftruncate((int)file->handle, (off_t)bytes) ? gpsti_os_fail("write", path, errno) : GPST_OK;
}

GPSTI_INTERN bool gpsti_file_lock(const gpsti_file* file) {
    struct stat status;
    while (flock((int)file->handle, LOCK_EX) && errno == EINTR)
        continue;
    return fstat((int)file->handle, &status) || status.st_nlink > 0;
}

GPSTI_INTERN gpst_result gpsti_file_flush(const gpsti_file* file, const char* path, uint64_t offset_bytes,
                                          uint64_t bytes, bool wait) {
#if defined(__linux__) && defined(SYNC_FILE_RANGE_WRITE)
    const unsigned flags = wait ? SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER
                                : SYNC_FILE_RANGE_WRITE;
    int failed = 0;
    do {
        failed = sync_file_range((int)file->handle, (off_t)offset_bytes, (off_t)bytes, flags);
    } while (failed && errno == EINTR);
    if (failed && (errno == EIO || errno == ENOSPC)) /* else it is this kernel or file that does not take the call */
        return gpsti_os_fail("write back", path, errno);
#else
    (void)file;
    (void)path;
    (void)offset_bytes;
    (void)bytes;
    (void)wait;
#endif
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_sync(const gpsti_file* file, const char* path) {
    int failed = 0;
    do {
        failed = fsync((int)file->handle);
    } while (failed && errno == EINTR);
    if (failed && errno != EINVAL) /* EINVAL: a pipe or device, which has nothing to sync */
        return gpsti_os_fail("sync", path, errno);
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_file_is_in_memory(const gpsti_file* file) {
#if defined(__linux__)
    const uint32_t tmpfs = 0x01021994, ramfs = 0x858458F6;
    struct statfs disk;
    if (fstatfs((int)file->handle, &disk) != 0)
        return false;
    return (uint32_t)disk.f_type == tmpfs || (uint32_t)disk.f_type == ramfs;
#else
    (void)file;
    return false;
#endif
}

GPSTI_INTERN gpst_result gpsti_file_close(gpsti_file* file, const char* path) {
    const int failed = close((int)file->handle);
    file->handle = -1;
    if (failed &&
        errno != EINTR) /* after EINTR the descriptor is closed, and a retry could close another's */
        return gpsti_os_fail("close", path, errno);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_path_rename(const char* from, const char* to) {
    return rename(from, to) ? gpsti_os_fail("rename to", to, errno) : GPST_OK;
}

#if defined(__linux__) && defined(O_PATH)
/* NFS gives what is held another name, until it is let go of; and a disk that is nearly full needs the room. */
GPSTI_PRIVATE bool gpsti_may_hold(int descriptor) {
    const long nfs = 0x6969;
    const uint64_t n_spare = 64; /* as large as this one: more than are ever held and written at once */
    struct statfs disk;
    struct stat file;
    if (fstatfs(descriptor, &disk) != 0 || fstat(descriptor, &file) != 0)
        return false;
    const uint64_t free_bytes = (uint64_t)disk.f_bavail * (uint64_t)disk.f_bsize;
    return (long)disk.f_type != nfs && free_bytes / n_spare >= (uint64_t)file.st_size;
}

GPSTI_INTERN bool gpsti_path_hold(const char* path, gpsti_file* out) {
    const int descriptor = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    out->handle = descriptor;
    if (gpsti_may_hold(descriptor))
        return true;
    (void)gpsti_file_close(out, path);
    return false;
}
#else
GPSTI_INTERN bool gpsti_path_hold(const char* path, gpsti_file* out) {
    (void)path;
    (void)out;
    return false;
}
#endif

GPSTI_INTERN gpst_result gpsti_path_remove(const char* path) {
    return unlink(path) ? gpsti_os_fail("remove", path, errno) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_path_make_directory(const char* path) {
    struct stat status;
    if (!mkdir(path, 0777))
        return GPST_OK;
    const int code = errno;
    if (code == EEXIST && !stat(path, &status) && S_ISDIR(status.st_mode))
        return GPST_OK;
    return gpsti_os_fail("make directory", path, code);
}

GPSTI_INTERN gpst_result gpsti_path_list(const char* path, gpsti_name_func take, void* user_data) {
    DIR* const directory = opendir(path);
    gpst_result result = GPST_OK;
    if (!directory)
        return gpsti_os_fail("list", path, errno);
    while (!GPST_FAILED(result)) {
        errno = 0;
        const struct dirent* const entry = readdir(directory);
        if (!entry) {
            result = errno ? gpsti_os_fail("list", path, errno) : GPST_OK;
            break;
        }
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            result = take(user_data, entry->d_name);
    }
    (void)closedir(directory);
    return result;
}

#endif
