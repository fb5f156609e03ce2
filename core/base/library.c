/* core/base/library.c -- opens a library by one of its names and finds its functions. Owns no library's meaning. */
#include "platform_internal.h"

#include "library_internal.h"

#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#define GPSTI_LIBRARY_WHY_BYTES 256
#define GPSTI_LIBRARY_PATH_BYTES 4096

/* ---- the system's calls ----------------------------------------------------------------------------- */

#if defined(_WIN32)
/* A bare name is never looked for in the current directory, where anybody may have put one. */
GPSTI_PRIVATE void* gpsti_library_open(const char* name, char why[GPSTI_LIBRARY_WHY_BYTES]) {
    const DWORD where = strpbrk(name, "/\\") ? LOAD_WITH_ALTERED_SEARCH_PATH : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    wchar_t wide[GPSTI_PATH_CHARS];
    HMODULE library = NULL;
    if (!GPST_FAILED(gpsti_wide_path(name, wide)))
        library = LoadLibraryExW(wide, NULL, where);
    if (!library)
        gpsti_format(why, GPSTI_LIBRARY_WHY_BYTES, "%s: error %u", name, (unsigned)GetLastError());
    return (void*)library;
}

GPSTI_PRIVATE bool gpsti_library_find(void* library, const char* name, void* out) {
    const FARPROC found = GetProcAddress((HMODULE)library, name);
    memcpy(out, &found, sizeof found);
    return found != NULL;
}

GPSTI_PRIVATE void gpsti_library_find_file(void* library, const void* function, char out[GPSTI_LIBRARY_FILE_BYTES]) {
    wchar_t wide[GPSTI_PATH_CHARS];
    char path[GPSTI_LIBRARY_FILE_BYTES];
    const DWORD chars = GetModuleFileNameW((HMODULE)library, wide, GPSTI_PATH_CHARS);
    (void)function;
    if (chars > 0 && chars < GPSTI_PATH_CHARS && gpsti_utf8_path(wide, path, sizeof path))
        gpsti_copy_text(out, GPSTI_LIBRARY_FILE_BYTES, path);
}

/* Of the environment; NULL: it is not set. */
GPSTI_PRIVATE const char* gpsti_library_variable(const char* name, char* out, size_t out_bytes) {
    wchar_t wide[GPSTI_PATH_CHARS];
    const wchar_t* const value = GPST_FAILED(gpsti_wide_path(name, wide)) ? NULL : _wgetenv(wide);
    return !value ? NULL : gpsti_utf8_path(value, out, out_bytes) ? out : getenv(name);
}
#else
GPSTI_PRIVATE void* gpsti_library_open(const char* name, char why[GPSTI_LIBRARY_WHY_BYTES]) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* const text = dlerror();
        gpsti_copy_text(why, GPSTI_LIBRARY_WHY_BYTES, text ? text : name);
    }
    return library;
}

/* By way of its bytes: ISO C has no cast from an object's address to a function's. */
GPSTI_PRIVATE bool gpsti_library_find(void* library, const char* name, void* out) {
    void* const found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
    return found != NULL;
}

/* function: any of the library's, or NULL: then out stays as it is. */
GPSTI_PRIVATE void gpsti_library_find_file(void* library, const void* function, char out[GPSTI_LIBRARY_FILE_BYTES]) {
    Dl_info info;
    (void)library;
    if (function && dladdr(function, &info) != 0 && info.dli_fname)
        gpsti_copy_text(out, GPSTI_LIBRARY_FILE_BYTES, info.dli_fname);
}

GPSTI_PRIVATE const char* gpsti_library_variable(const char* name, char* out, size_t out_bytes) {
    (void)out, (void)out_bytes;
    return getenv(name);
}
#endif

/* ---- loading ------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_library_open_any(gpsti_library* self, void** out) {
    char value[GPSTI_LIBRARY_PATH_BYTES];
    const char* const path = gpsti_library_variable(self->variable, value, sizeof value);
    char why[GPSTI_LIBRARY_WHY_BYTES] = "";
    GPSTI_FAIL_IF(path && !path[0], GPST_ERROR_UNSUPPORTED,
                  "%s: %s is set to nothing: it is not to be used; unset it to have the installed one looked for",
                  self->title, self->variable);
    if (path) {
        *out = gpsti_library_open(path, why);
        gpsti_copy_text(self->file, sizeof self->file, path);
        GPSTI_FAIL_IF(!*out, GPST_ERROR_UNSUPPORTED,
                      "%s: %s must name the library's file: %s; unset it to have the installed one looked for",
                      self->title, self->variable, why);
        return GPST_OK;
    }
    /* The first name is the one to install: its reason is told. */
    for (size_t i = 0; self->names[i]; i++) {
        char other[GPSTI_LIBRARY_WHY_BYTES] = "";
        *out = gpsti_library_open(self->names[i], i == 0 ? why : other);
        gpsti_copy_text(self->file, sizeof self->file, self->names[i]);
        if (*out)
            return GPST_OK;
    }
    return gpsti_fail(GPST_ERROR_UNSUPPORTED, "%s: not found: %s; install it, or name its file in %s", self->title, why,
                      self->variable);
}

GPSTI_PRIVATE gpst_result gpsti_library_load_locked(gpsti_library* self) {
    const char* lacks = NULL;
    void *library = NULL, *function = NULL;
    if (gpsti_a32_load(&self->loaded))
        return GPST_OK;
    GPSTI_TRY(gpsti_library_open_any(self, &library));
    for (const gpsti_symbol* symbol = self->symbols; symbol->name; symbol++) {
        char* const to = (char*)self->calls + symbol->offset;
        if (gpsti_library_find(library, symbol->name, to))
            memcpy(&function, to, sizeof function);
        else if (!symbol->optional && !lacks)
            lacks = symbol->name;
    }
    gpsti_library_find_file(library, function, self->file);
    GPSTI_FAIL_IF(lacks, GPST_ERROR_UNSUPPORTED, "%s: %s lacks %s: %s is needed; install it, or name its file in %s",
                  self->title, self->file, lacks, self->needed, self->variable);
    gpsti_a32_store(&self->loaded, 1);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_library_load(gpsti_library* self) {
    if (gpsti_a32_load(&self->loaded))
        return GPST_OK;
    while (gpsti_a32_exchange(&self->lock, 1) != 0)
        gpsti_futex_wait(&self->lock, 1, GPST_FOREVER);
    const gpst_result result = gpsti_library_load_locked(self);
    gpsti_a32_store(&self->lock, 0);
    gpsti_futex_wake(&self->lock, UINT32_MAX);
    return result;
}
