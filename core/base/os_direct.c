/* core/base/os_direct.c -- files past the page cache, and what of them is in it.
   Owns nothing; which way is taken is core/files/reader_kinds.c's to say. */
#include "platform_internal.h"

#include "os_direct_internal.h"

#include <string.h>

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the 256 bytes of struct statx: older C libraries lack the members, but the kernel fills them. */
#define GPSTI_DIRECT_STATX_DIOALIGN 0x2000u
#define GPSTI_DIRECT_STATX_MEMORY_WORD (0x98 / 4)
#define GPSTI_DIRECT_STATX_OFFSET_WORD (0x9C / 4)
#define GPSTI_DIRECT_MAX_ALIGN 65536

GPSTI_PRIVATE bool gpsti_direct_ask(int descriptor, gpsti_direct_rules* rules) {
#if defined(SYS_statx) && defined(AT_EMPTY_PATH)
    uint32_t words[64];
    memset(words, 0, sizeof words);
    if (syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, GPSTI_DIRECT_STATX_DIOALIGN, words) != 0 ||
        !(words[0] & GPSTI_DIRECT_STATX_DIOALIGN))
        return false;
    rules->memory_align_bytes = words[GPSTI_DIRECT_STATX_MEMORY_WORD];
    rules->offset_align_bytes = words[GPSTI_DIRECT_STATX_OFFSET_WORD];
    return true;
#else
    (void)descriptor;
    (void)rules;
    return false;
#endif
}

/* The kernel not saying is not a no. The file system's block is a multiple of the device's; 4096 suits every disk. */
GPSTI_PRIVATE void gpsti_direct_guess(int descriptor, gpsti_direct_rules* rules) {
    struct statvfs storage;
    unsigned long block_bytes = fstatvfs(descriptor, &storage) ? 0 : storage.f_bsize;
    if (block_bytes < 4096 || block_bytes > GPSTI_DIRECT_MAX_ALIGN || (block_bytes & (block_bytes - 1)))
        block_bytes = 4096;
    rules->memory_align_bytes = rules->offset_align_bytes = (uint32_t)block_bytes;
}

GPSTI_PRIVATE bool gpsti_direct_is_power_of_two(uint32_t value) { return value && !(value & (value - 1)); }

GPSTI_PRIVATE gpst_result gpsti_direct_check(int buffered, int direct, const char* path,
                                             gpsti_direct_rules* rules) {
    struct stat first, second;
    if (fstat(buffered, &first) || fstat(direct, &second))
        return gpsti_os_fail("query", path, errno);
    GPSTI_FAIL_IF(first.st_dev != second.st_dev || first.st_ino != second.st_ino, GPST_ERROR_IO,
                  "open \"%s\" with O_DIRECT: the path names another file by now", path);
    if (!gpsti_direct_ask(direct, rules))
        gpsti_direct_guess(direct, rules);
    GPSTI_FAIL_IF(!gpsti_direct_is_power_of_two(rules->offset_align_bytes) ||
                      !gpsti_direct_is_power_of_two(rules->memory_align_bytes),
                  GPST_ERROR_UNSUPPORTED, "the file system has no O_DIRECT for this file");
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_open_direct(const gpsti_file* file, const char* path, gpsti_file* out,
                                                gpsti_direct_rules* rules) {
    int descriptor = -1;
    do {
        descriptor = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    } while (descriptor < 0 && errno == EINTR);
    GPSTI_FAIL_IF(descriptor < 0 && errno == EINVAL, GPST_ERROR_UNSUPPORTED,
                  "the file system has no O_DIRECT");
    if (descriptor < 0)
        return gpsti_os_fail("open with O_DIRECT", path, errno);
    const gpst_result result = gpsti_direct_check((int)file->handle, descriptor, path, rules);
    if (GPST_FAILED(result))
        (void)close(descriptor);
    else
        out->handle = descriptor;
    return result;
}

#define GPSTI_RESIDENT_PAGES 4096 /* looked at in one call, at most */

/* The mapping is never read, so a file cut short meanwhile costs no SIGBUS. */
GPSTI_INTERN uint32_t gpsti_file_resident_pct(const gpsti_file* file, uint64_t offset_bytes, size_t bytes) {
    unsigned char pages[GPSTI_RESIDENT_PAGES];
    const size_t page_bytes = gpsti_page_bytes();
    const uint64_t from = offset_bytes / page_bytes * page_bytes;
    const size_t most = GPSTI_RESIDENT_PAGES * page_bytes, wanted = (size_t)(offset_bytes - from) + bytes;
    const size_t length = wanted < most ? wanted : most;
    const size_t n_pages = (length + page_bytes - 1) / page_bytes;
    size_t n_resident = 0;
    void* const map =
        length ? mmap(NULL, length, PROT_READ, MAP_SHARED, (int)file->handle, (off_t)from) : MAP_FAILED;
    if (map == MAP_FAILED)
        return 100;
    if (mincore(map, length, pages))
        memset(pages, 1, n_pages);
    for (size_t i = 0; i < n_pages; i++)
        n_resident += pages[i] & 1u;
    (void)munmap(map, length);
    return (uint32_t)(n_resident * 100 / n_pages);
}
#else
GPSTI_INTERN gpst_result gpsti_file_open_direct(const gpsti_file* file, const char* path, gpsti_file* out,
                                                gpsti_direct_rules* rules) {
    (void)file;
    (void)path;
    (void)out;
    (void)rules;
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "not on this system");
}

GPSTI_INTERN uint32_t gpsti_file_resident_pct(const gpsti_file* file, uint64_t offset_bytes, size_t bytes) {
    (void)file;
    (void)offset_bytes;
    (void)bytes;
    return 100;
}
#endif
