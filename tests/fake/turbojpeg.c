/* tests/fake/turbojpeg.c -- a library with libturbojpeg's functions that does what a test tells it. Every picture is of
   one colour, every file 100 bytes. With FAKE_LACKS_COMPRESS it has one function less. */
#include "turbojpeg.h"

#include <stdlib.h>
#include <string.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

typedef struct fake_handle {
    int warned;
} fake_handle;

FAKE_EXPORT fake_turbojpeg fake_state;

static int fails(void) {
    const int n = __atomic_add_fetch(&fake_state.n_calls, 1, __ATOMIC_RELAXED);
    return fake_state.fail_at && (n == fake_state.fail_at || (fake_state.fails_on && n > fake_state.fail_at));
}

static void* create(void) {
    if (fails())
        return NULL;
    __atomic_add_fetch(&fake_state.n_live, 1, __ATOMIC_RELAXED);
    return calloc(1, sizeof(fake_handle));
}

FAKE_EXPORT void* tjInitDecompress(void);
FAKE_EXPORT void* tjInitCompress(void);
FAKE_EXPORT int tjDestroy(void* handle);
FAKE_EXPORT const char* tjGetErrorStr2(void* handle);
FAKE_EXPORT int tjGetErrorCode(void* handle);
FAKE_EXPORT int tjDecompressHeader3(void* handle, const unsigned char* data, unsigned long bytes, int* width,
                                    int* height, int* sampling, int* colours);
FAKE_EXPORT int tjDecompress2(void* handle, const unsigned char* data, unsigned long bytes, unsigned char* out,
                              int width, int pitch, int height, int format, int flags);
FAKE_EXPORT int tjDecompressToYUVPlanes(void* handle, const unsigned char* data, unsigned long bytes,
                                        unsigned char** planes, int width, int* pitches, int height, int flags);
FAKE_EXPORT unsigned long tjBufSize(int width, int height, int sampling);
FAKE_EXPORT int tjCompress2(void* handle, const unsigned char* pixels, int width, int pitch, int height, int format,
                            unsigned char** out, unsigned long* bytes, int sampling, int quality, int flags);
FAKE_EXPORT int tj3Set(void* handle, int parameter, int value);

void* tjInitDecompress(void) { return create(); }
void* tjInitCompress(void) { return create(); }

int tjDestroy(void* handle) {
    __atomic_sub_fetch(&fake_state.n_live, 1, __ATOMIC_RELAXED);
    free(handle);
    return 0;
}

const char* tjGetErrorStr2(void* handle) {
    (void)handle;
    return fake_state.text ? fake_state.text : "No error";
}

int tjGetErrorCode(void* handle) { return ((fake_handle*)handle)->warned ? 0 : 1; }

int tjDecompressHeader3(void* handle, const unsigned char* data, unsigned long bytes, int* width, int* height,
                        int* sampling, int* colours) {
    (void)handle;
    if (fake_state.has_header_failed)
        return -1;
    for (unsigned long at = 2; at + 9 < bytes; at += 2 + (unsigned long)data[at + 2] * 256 + data[at + 3])
        if (data[at + 1] >= 0xc0 && data[at + 1] <= 0xc2) {
            *height = data[at + 5] * 256 + data[at + 6];
            *width = data[at + 7] * 256 + data[at + 8] + fake_state.wider;
            break;
        }
    *sampling = *colours = 0;
    return 0;
}

/* 0, or -1 with what is told of it. True: there are pixels. */
static int answer(void* handle, int flags, int* returned) {
    const int failed = fails();
    ((fake_handle*)handle)->warned = failed && fake_state.warns;
    if (fake_state.fail_at) { /* else threads may be at work, which only read */
        fake_state.last_flags = flags;
        fake_state.last_handle = handle;
    }
    *returned = failed ? -1 : 0;
    return !failed || (fake_state.warns && !(flags & 8192));
}

int tjDecompress2(void* handle, const unsigned char* data, unsigned long bytes, unsigned char* out, int width,
                  int pitch, int height, int format, int flags) {
    static const int sizes[12] = {3, 3, 4, 4, 4, 4, 1, 4, 4, 4, 4, 4};
    int returned;
    (void)data;
    (void)bytes;
    if (answer(handle, flags, &returned))
        for (int y = 0; y < height; y++)
            memset(out + (size_t)(pitch ? pitch : width * sizes[format]) * (size_t)y, FAKE_PIXEL,
                   (size_t)(width * sizes[format]));
    return returned;
}

int tjDecompressToYUVPlanes(void* handle, const unsigned char* data, unsigned long bytes, unsigned char** planes,
                            int width, int* pitches, int height, int flags) {
    int returned;
    (void)data;
    (void)bytes;
    if (answer(handle, flags, &returned))
        for (int y = 0; y < height; y++)
            memset(planes[0] + (size_t)pitches[0] * (size_t)y, FAKE_PIXEL, (size_t)width);
    return returned;
}

unsigned long tjBufSize(int width, int height, int sampling) {
    (void)sampling;
    return (unsigned long)width * (unsigned long)height + fake_state.larger;
}

#if !defined(FAKE_LACKS_COMPRESS)
int tjCompress2(void* handle, const unsigned char* pixels, int width, int pitch, int height, int format,
                unsigned char** out, unsigned long* bytes, int sampling, int quality, int flags) {
    int returned;
    (void)pixels, (void)width, (void)pitch, (void)height, (void)format, (void)sampling;
    if (answer(handle, flags, &returned)) {
        memset(*out, quality, 100);
        *bytes = fake_state.longer ? *bytes + fake_state.longer : 100;
    }
    return returned;
}
#endif

int tj3Set(void* handle, int parameter, int value) {
    (void)handle;
    if (fails())
        return -1;
    if (fake_state.fail_at)
        *(parameter == 11 ? &fake_state.optimise : &fake_state.restart_rows) = value;
    return 0;
}
