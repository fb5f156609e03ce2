/* core/base/os_windows.c -- threads, clocks, files, pages and limits by the Windows
   API, for mingw and MSVC. Compiles to nothing elsewhere. */
#include "platform_internal.h"

#include "base_internal.h"

#if defined(_WIN32)
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

/* ---- threads -------------------------------------------------------------------- */

GPSTI_LINK gpst_result gpsti_mutex_init(gpsti_mutex* mutex) {
    InitializeSRWLock((SRWLOCK*)&mutex->srwlock);
    return GPST_OK;
}

GPSTI_LINK void gpsti_mutex_term(gpsti_mutex* mutex) { (void)mutex; }
GPSTI_LINK void gpsti_mutex_lock(gpsti_mutex* mutex) { AcquireSRWLockExclusive((SRWLOCK*)&mutex->srwlock); }
GPSTI_LINK bool gpsti_mutex_try_lock(gpsti_mutex* mutex) {
    return TryAcquireSRWLockExclusive((SRWLOCK*)&mutex->srwlock) != 0;
}
GPSTI_LINK void gpsti_mutex_unlock(gpsti_mutex* mutex) {
    ReleaseSRWLockExclusive((SRWLOCK*)&mutex->srwlock);
}

GPSTI_LINK gpst_result gpsti_cond_init(gpsti_cond* cond) {
    InitializeConditionVariable((CONDITION_VARIABLE*)&cond->variable);
    return GPST_OK;
}

GPSTI_LINK void gpsti_cond_term(gpsti_cond* cond) { (void)cond; }

GPSTI_PRIVATE DWORD gpsti_milliseconds(int64_t ns) {
    const int64_t most = (int64_t)INFINITE - 1;
    const int64_t ms = ns <= 0 ? 0 : (ns - 1) / 1000000 + 1;
    return (DWORD)(ms < most ? ms : most);
}

GPSTI_LINK bool gpsti_cond_wait_until(gpsti_cond* cond, gpsti_mutex* mutex, int64_t deadline_ns) {
    const DWORD wait_ms =
        deadline_ns == GPST_FOREVER ? INFINITE : gpsti_milliseconds(deadline_ns - gpsti_now_ns());
    return SleepConditionVariableSRW((CONDITION_VARIABLE*)&cond->variable, (SRWLOCK*)&mutex->srwlock, wait_ms,
                                     0) ||
           gpsti_now_ns() < deadline_ns;
}

GPSTI_LINK void gpsti_cond_signal(gpsti_cond* cond) {
    WakeConditionVariable((CONDITION_VARIABLE*)&cond->variable);
}

GPSTI_LINK void gpsti_cond_broadcast(gpsti_cond* cond) {
    WakeAllConditionVariable((CONDITION_VARIABLE*)&cond->variable);
}

static GPSTI_TLS bool gpsti_thread_own = false;

GPSTI_LINK bool gpsti_thread_is_own(void) { return gpsti_thread_own; }

GPSTI_PRIVATE unsigned __stdcall gpsti_thread_main(void* arg) {
    gpsti_thread* thread = (gpsti_thread*)arg;
    gpsti_thread_own = true;
    thread->func(thread->arg);
    return 0;
}

GPSTI_LINK gpst_result gpsti_thread_start(gpsti_thread* thread, void (*func)(void*), void* arg,
                                            const char* name) {
    thread->func = func;
    thread->arg = arg;
    thread->handle = (void*)_beginthreadex(NULL, 0, gpsti_thread_main, thread, 0, NULL);
    GPSTI_FAIL_IF(!thread->handle, GPST_ERROR_MEMORY, "start thread \"%s\": errno %d", name, errno);
    return GPST_OK;
}

GPSTI_LINK void gpsti_thread_join(gpsti_thread* thread) {
    (void)WaitForSingleObject((HANDLE)thread->handle, INFINITE);
    (void)CloseHandle((HANDLE)thread->handle);
}


/* Its threads cost address space that is not used, of which there is enough. */
GPSTI_INTERN uint32_t gpsti_threads_try(uint32_t n, size_t stack_bytes) {
    (void)stack_bytes;
    return n;
}

GPSTI_INTERN uint32_t gpsti_threads_fit(uint32_t n) { return n; }

GPSTI_INTERN uint64_t gpsti_space_bytes(uint64_t* left_bytes) {
    *left_bytes = UINT64_MAX;
    return UINT64_MAX;
}

GPSTI_INTERN bool gpsti_cores_query(gpsti_cores* out) {
    memset(out, 0, sizeof *out);
    return false;
}

GPSTI_INTERN gpst_result gpsti_thread_pin(gpsti_thread* thread, const gpsti_cores* cores) {
    (void)thread;
    (void)cores;
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "pin thread: not on this system");
}

GPSTI_INTERN void gpsti_yield(void) { (void)SwitchToThread(); }
GPSTI_INTERN uint64_t gpsti_pid(void) { return GetCurrentProcessId(); }

GPSTI_INTERN uint64_t gpsti_random(void) {
    LARGE_INTEGER ticks;
    FILETIME now;
    (void)QueryPerformanceCounter(&ticks);
    GetSystemTimeAsFileTime(&now);
    const uint64_t time = (uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime;
    return (time ^ ((uint64_t)ticks.QuadPart << 20) ^ (gpsti_pid() << 44)) * 0x9E3779B97F4A7C15u;
}
GPSTI_INTERN gpsti_a32* gpsti_fork_guard_create(void) { return NULL; }
GPSTI_INTERN void gpsti_fork_guard_destroy(gpsti_a32* guard) { (void)guard; }

/* ---- clocks ----------------------------------------------------------------------- */

GPSTI_LINK int64_t gpsti_now_ns(void) {
    LARGE_INTEGER count, frequency;
    (void)QueryPerformanceFrequency(&frequency);
    (void)QueryPerformanceCounter(&count);
    return count.QuadPart / frequency.QuadPart * GPSTI_OS_NS +
           count.QuadPart % frequency.QuadPart * GPSTI_OS_NS / frequency.QuadPart;
}

GPSTI_PRIVATE uint64_t gpsti_filetime(FILETIME time) {
    return ((uint64_t)time.dwHighDateTime << 32) | time.dwLowDateTime;
}

GPSTI_INTERN bool gpsti_thread_waits(uint64_t* out) {
    *out = 0;
    return false;
}

GPSTI_INTERN int64_t gpsti_thread_cpu_ns(void) {
    FILETIME created, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user))
        return 0;
    return (int64_t)((gpsti_filetime(kernel) + gpsti_filetime(user)) * 100);
}

GPSTI_LINK void gpsti_sleep_ns(int64_t duration_ns) { Sleep(gpsti_milliseconds(duration_ns)); }

/* ---- files ------------------------------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_wide_path(const char* path, wchar_t out[GPSTI_PATH_CHARS]) {
    const int got = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, GPSTI_PATH_CHARS);
    return got > 0 ? GPST_OK : gpsti_os_fail("open", path, ERROR_INVALID_NAME);
}

GPSTI_INTERN bool gpsti_utf8_path(const wchar_t* wide, char* out, size_t out_bytes) {
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, (int)out_bytes, NULL, NULL) > 0;
}

GPSTI_PRIVATE gpst_result gpsti_file_open(const char* what, const char* path, DWORD access, DWORD disposition,
                                          gpsti_file* out) {
    wchar_t wide[GPSTI_PATH_CHARS];
    GPSTI_TRY(gpsti_wide_path(path, wide));
    const HANDLE handle = CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                      NULL, disposition, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        return gpsti_os_fail(what, path, (int)GetLastError());
    out->handle = (intptr_t)handle;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_open_read(const char* path, gpsti_file* out) {
    return gpsti_file_open("open", path, GENERIC_READ, OPEN_EXISTING, out);
}

GPSTI_INTERN gpst_result gpsti_file_create(const char* path, gpsti_file* out) {
    return gpsti_file_open("create", path, GENERIC_WRITE, CREATE_NEW, out);
}

GPSTI_PRIVATE void gpsti_file_info_of(DWORD attributes, DWORD high, DWORD low, FILETIME modified,
                                      gpsti_file_info* out) {
    const uint64_t from_1601_to_1970 = 116444736000000000u; /* in units of 100 ns */
    out->is_directory = (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    out->is_regular = !out->is_directory;
    out->bytes = out->is_regular ? ((uint64_t)high << 32) | low : 0;
    out->modified_ns = (gpsti_filetime(modified) - from_1601_to_1970) * 100;
    out->device = out->inode = 0;
}

GPSTI_INTERN gpst_result gpsti_file_query(const gpsti_file* file, const char* path, gpsti_file_info* out) {
    BY_HANDLE_FILE_INFORMATION info;
    memset(out, 0, sizeof *out);
    if (GetFileType((HANDLE)file->handle) != FILE_TYPE_DISK)
        return GPST_OK;
    if (!GetFileInformationByHandle((HANDLE)file->handle, &info))
        return gpsti_os_fail("query", path, (int)GetLastError());
    gpsti_file_info_of(info.dwFileAttributes, info.nFileSizeHigh, info.nFileSizeLow, info.ftLastWriteTime,
                       out);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_path_query(const char* path, gpsti_file_info* out) {
    wchar_t wide[GPSTI_PATH_CHARS];
    WIN32_FILE_ATTRIBUTE_DATA info;
    GPSTI_TRY(gpsti_wide_path(path, wide));
    if (!GetFileAttributesExW(wide, GetFileExInfoStandard, &info))
        return gpsti_os_fail("query", path, (int)GetLastError());
    gpsti_file_info_of(info.dwFileAttributes, info.nFileSizeHigh, info.nFileSizeLow, info.ftLastWriteTime,
                       out);
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_path_is_regular(const char* path) {
    wchar_t wide[GPSTI_PATH_CHARS];
    WIN32_FILE_ATTRIBUTE_DATA info;
    return !GPST_FAILED(gpsti_wide_path(path, wide)) && GetFileAttributesExW(wide, GetFileExInfoStandard, &info) &&
           !(info.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE));
}

/* at NULL: from the current position. */
GPSTI_PRIVATE gpst_result gpsti_file_read_at(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                             OVERLAPPED* at, size_t* done) {
    DWORD got = 0;
    if (!ReadFile((HANDLE)file->handle, data, (DWORD)(bytes < GPSTI_OS_CALL_BYTES ? bytes : GPSTI_OS_CALL_BYTES),
                  &got, at)) {
        const DWORD code = GetLastError();
        if (code != ERROR_HANDLE_EOF && code != ERROR_BROKEN_PIPE)
            return gpsti_os_fail("read", path, (int)code);
        got = 0;
    }
    *done = got;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_read(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                         uint64_t offset_bytes, size_t* done) {
    OVERLAPPED at;
    memset(&at, 0, sizeof at);
    at.Offset = (DWORD)(offset_bytes & 0xffffffffu);
    at.OffsetHigh = (DWORD)(offset_bytes >> 32);
    return gpsti_file_read_at(file, path, data, bytes, &at, done);
}

/* Nobody can be asked what is in memory. */
GPSTI_INTERN gpst_result gpsti_file_read_cached(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                                uint64_t offset_bytes, size_t* done) {
    (void)file, (void)path, (void)data, (void)bytes, (void)offset_bytes;
    *done = 0;
    return GPST_ERROR_UNSUPPORTED;
}

GPSTI_INTERN void gpsti_path_will_need(const char* path) { (void)path; }

GPSTI_INTERN gpst_result gpsti_file_read_next(const gpsti_file* file, const char* path, void* data, size_t bytes,
                                              bool begun, int64_t wait_ns, size_t* done) {
    (void)begun;
    (void)wait_ns;
    return gpsti_file_read_at(file, path, data, bytes, NULL, done);
}

GPSTI_INTERN bool gpsti_file_make_waiting(const gpsti_file* file) {
    (void)file;
    return false;
}

GPSTI_INTERN gpst_result gpsti_file_write(const gpsti_file* file, const char* path, const void* data,
                                          size_t bytes) {
    const char* next = (const char*)data;
    while (bytes) {
        DWORD got = 0;
        const DWORD want = (DWORD)(bytes < GPSTI_OS_CALL_BYTES ? bytes : GPSTI_OS_CALL_BYTES);
        if (!WriteFile((HANDLE)file->handle, next, want, &got, NULL))
            return gpsti_os_fail("write", path, (int)GetLastError());
        if (!got)
            return gpsti_os_fail("write", path, ERROR_DISK_FULL);
        next += got;
        bytes -= got;
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_write_at(const gpsti_file* file, const char* path, const void* data, size_t bytes,
                                             uint64_t offset_bytes, size_t* done) {
    *done = 0;
    while (*done < bytes) {
        const uint64_t place = offset_bytes + *done;
        const size_t left = bytes - *done;
        OVERLAPPED at;
        DWORD got = 0;
        memset(&at, 0, sizeof at);
        at.Offset = (DWORD)(place & 0xffffffffu);
        at.OffsetHigh = (DWORD)(place >> 32);
        if (!WriteFile((HANDLE)file->handle, (const char*)data + *done,
                       (DWORD)(left < GPSTI_OS_CALL_BYTES ? left : GPSTI_OS_CALL_BYTES), &got, &at))
            return gpsti_os_fail("write", path, (int)GetLastError());
        if (!got)
            return gpsti_os_fail("write", path, ERROR_DISK_FULL);
        *done += got;
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_set_bytes(const gpsti_file* file, const char* path, uint64_t bytes) {
    LARGE_INTEGER end;
    end.QuadPart = (LONGLONG)bytes;
    return SetFilePointerEx((HANDLE)file->handle, end, NULL, FILE_BEGIN) && SetEndOfFile((HANDLE)file->handle)
               ? GPST_OK
               : gpsti_os_fail("write", path, (int)GetLastError());
}

/* Far behind the end: there, a lock keeps others from reading, too. */
GPSTI_INTERN bool gpsti_file_lock(const gpsti_file* file) {
    OVERLAPPED place;
    memset(&place, 0, sizeof place);
    place.OffsetHigh = 0x1000;
    (void)LockFileEx((HANDLE)file->handle, LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &place);
    return true; /* what is open keeps its name */
}

GPSTI_INTERN gpst_result gpsti_file_flush(const gpsti_file* file, const char* path, uint64_t offset_bytes,
                                          uint64_t bytes, bool wait) {
    (void)file;
    (void)path;
    (void)offset_bytes;
    (void)bytes;
    (void)wait;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_file_sync(const gpsti_file* file, const char* path) {
    return FlushFileBuffers((HANDLE)file->handle) ? GPST_OK
                                                  : gpsti_os_fail("sync", path, (int)GetLastError());
}

GPSTI_INTERN gpst_result gpsti_file_close(gpsti_file* file, const char* path) {
    const HANDLE handle = (HANDLE)file->handle;
    file->handle = -1;
    return CloseHandle(handle) ? GPST_OK : gpsti_os_fail("close", path, (int)GetLastError());
}

GPSTI_INTERN bool gpsti_file_is_in_memory(const gpsti_file* file) {
    (void)file;
    return false;
}

GPSTI_INTERN gpst_result gpsti_path_rename(const char* from, const char* to) {
    wchar_t wide_from[GPSTI_PATH_CHARS], wide_to[GPSTI_PATH_CHARS];
    GPSTI_TRY(gpsti_wide_path(from, wide_from));
    GPSTI_TRY(gpsti_wide_path(to, wide_to));
    if (!MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING))
        return gpsti_os_fail("rename to", to, (int)GetLastError());
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_path_hold(const char* path, gpsti_file* out) {
    (void)path;
    (void)out;
    return false;
}

GPSTI_INTERN gpst_result gpsti_path_remove(const char* path) {
    wchar_t wide[GPSTI_PATH_CHARS];
    GPSTI_TRY(gpsti_wide_path(path, wide));
    return DeleteFileW(wide) ? GPST_OK : gpsti_os_fail("remove", path, (int)GetLastError());
}

GPSTI_INTERN gpst_result gpsti_path_make_directory(const char* path) {
    wchar_t wide[GPSTI_PATH_CHARS];
    GPSTI_TRY(gpsti_wide_path(path, wide));
    if (CreateDirectoryW(wide, NULL))
        return GPST_OK;
    const DWORD code = GetLastError();
    const DWORD attributes = GetFileAttributesW(wide);
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY))
        return GPST_OK;
    return gpsti_os_fail("make directory", path, (int)code);
}

GPSTI_INTERN gpst_result gpsti_path_list(const char* path, gpsti_name_func take, void* user_data) {
    char pattern[GPSTI_PATH_CHARS], name[3 * MAX_PATH];
    wchar_t wide[GPSTI_PATH_CHARS];
    WIN32_FIND_DATAW found;
    gpst_result result = GPST_OK;
    GPSTI_FAIL_IF(strlen(path) + 3 > sizeof pattern, GPST_ERROR_ARGUMENT, "list \"%s\": the path is too long", path);
    gpsti_format(pattern, sizeof pattern, "%s/*", path);
    GPSTI_TRY(gpsti_wide_path(pattern, wide));
    const HANDLE listing = FindFirstFileW(wide, &found);
    if (listing == INVALID_HANDLE_VALUE)
        return gpsti_os_fail("list", path, (int)GetLastError());
    do {
        if (gpsti_utf8_path(found.cFileName, name, sizeof name) && strcmp(name, ".") && strcmp(name, ".."))
            result = take(user_data, name);
    } while (!GPST_FAILED(result) && FindNextFileW(listing, &found));
    (void)FindClose(listing);
    return result;
}

/* ---- text and memory ----------------------------------------------------------------- */

GPSTI_INTERN void gpsti_format_list(char* out, size_t out_bytes, const char* format, va_list list) {
    char before[64];
    const int shared = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    const char* now = setlocale(LC_NUMERIC, NULL);
    gpsti_copy_text(before, sizeof before, now ? now : "C");
    (void)setlocale(LC_NUMERIC, "C");
    if (vsnprintf(out, out_bytes, format, list) < 0 && out_bytes)
        out[0] = 0;
    (void)setlocale(LC_NUMERIC, before);
    (void)_configthreadlocale(shared);
}

GPSTI_INTERN void* gpsti_aligned_alloc(size_t bytes, size_t align_bytes) {
    return _aligned_malloc(bytes, align_bytes);
}

GPSTI_INTERN void gpsti_aligned_free(void* ptr) { _aligned_free(ptr); }

GPSTI_LINK gpst_result gpsti_pages_alloc(size_t bytes, gpsti_pages_want want, void** out, size_t* mapped_bytes,
                                           gpsti_pages_kind* kind, char* why_not) {
    const size_t large_bytes = want != GPSTI_WANT_SMALL ? GetLargePageMinimum() : 0;
    char reason[128] = "";
    void* ptr = NULL;
    size_t mapped = 0;
    *kind = GPSTI_PAGES_HUGETLB;
    if (large_bytes && gpsti_size_round_up(bytes, large_bytes, &mapped))
        ptr = VirtualAlloc(NULL, mapped, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES, PAGE_READWRITE);
    if (!ptr) {
        if (want != GPSTI_WANT_SMALL)
            gpsti_format(reason, sizeof reason, "large pages: %s",
                         large_bytes ? gpsti_os_error_text((int)GetLastError()) : "not on this system");
        *kind = GPSTI_PAGES_SMALL;
        GPSTI_FAIL_IF(!bytes || !gpsti_size_round_up(bytes, 4096, &mapped), GPST_ERROR_OVERFLOW,
                      "map memory: bytes=%zu: must be 1..SIZE_MAX/2", bytes);
        ptr = VirtualAlloc(NULL, mapped, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        GPSTI_FAIL_IF(!ptr, GPST_ERROR_MEMORY, "map memory: bytes=%zu: %s (%lu)", mapped,
                      gpsti_os_error_text((int)GetLastError()), (unsigned long)GetLastError());
    }
    if (why_not)
        gpsti_copy_text(why_not, sizeof reason, reason);
    *out = ptr;
    *mapped_bytes = mapped;
    return GPST_OK;
}

GPSTI_LINK void gpsti_pages_free(void* ptr, size_t mapped_bytes) {
    (void)mapped_bytes;
    if (ptr)
        (void)VirtualFree(ptr, 0, MEM_RELEASE);
}

GPSTI_INTERN void gpsti_pages_touch(void* ptr, size_t bytes, gpsti_pages_kind kind) {
    (void)kind;
    (void)ptr;
    (void)bytes;
}

/* ---- limits ------------------------------------------------------------------------- */

GPSTI_PRIVATE uint32_t gpsti_count_bits(uint64_t mask) {
    uint32_t count = 0;
    for (; mask; mask &= mask - 1)
        count++;
    return count;
}

GPSTI_INTERN uint32_t gpsti_page_bytes(void) {
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    return system.dwPageSize;
}

GPSTI_INTERN void gpsti_limits_query_under(const char* root, gpsti_limits* out) {
    SYSTEM_INFO system;
    MEMORYSTATUSEX memory;
    DWORD_PTR process_mask = 0, system_mask = 0;
    (void)root;
    memset(out, 0, sizeof *out);
    GetSystemInfo(&system);
    out->page_bytes = system.dwPageSize;
    out->cores_online = system.dwNumberOfProcessors;
    out->cores_affinity = out->cores_online;
    if (GetProcessAffinityMask(GetCurrentProcess(), &process_mask, &system_mask) && process_mask)
        out->cores_affinity = gpsti_count_bits(process_mask);
    memory.dwLength = sizeof memory;
    if (GlobalMemoryStatusEx(&memory)) {
        out->ram_bytes = memory.ullTotalPhys;
        out->ram_available_bytes = memory.ullAvailPhys;
    }
    out->memlock_bytes = UINT64_MAX;
    gpsti_limits_cores(out);
}

GPSTI_INTERN void gpsti_core_use_query_under(const char* root, gpsti_core_use* out) {
    (void)root;
    memset(out, 0, sizeof *out);
}
#endif
