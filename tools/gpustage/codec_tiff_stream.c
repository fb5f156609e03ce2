/* tools/gpustage/codec_tiff_stream.c -- files in memory for libtiff, and what it says: as a reason, never on stderr. */
#include "codec_internal.h"

#if defined(GPST_TOOL_TIFF)
#include "codec_tiff_internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static tmsize_t codec_tiff_read(thandle_t handle, void* to, tmsize_t wanted) {
    codec_tiff_stream* const stream = (codec_tiff_stream*)handle;
    const size_t left = stream->at < stream->bytes ? stream->bytes - stream->at : 0;
    const size_t n = (size_t)wanted < left ? (size_t)wanted : left;
    memcpy(to, stream->data + stream->at, n);
    stream->at += n;
    return (tmsize_t)n;
}

static tmsize_t codec_tiff_write(thandle_t handle, void* from, tmsize_t wanted) {
    codec_tiff_stream* const stream = (codec_tiff_stream*)handle;
    const size_t n = (size_t)wanted;
    if (stream->at > stream->room || n > stream->room - stream->at)
        return 0;
    if (stream->at > stream->bytes)
        memset(stream->out + stream->bytes, 0, stream->at - stream->bytes);
    memcpy(stream->out + stream->at, from, n);
    stream->at += n;
    if (stream->bytes < stream->at)
        stream->bytes = stream->at;
    return wanted;
}

static toff_t codec_tiff_seek(thandle_t handle, toff_t offset, int whence) {
    codec_tiff_stream* const stream = (codec_tiff_stream*)handle;
    stream->at = (size_t)offset + (whence == SEEK_CUR ? stream->at : whence == SEEK_END ? stream->bytes : 0);
    return stream->at;
}

static int codec_tiff_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t codec_tiff_size(thandle_t handle) { return ((const codec_tiff_stream*)handle)->bytes; }

/* Files that are read lie in memory: nothing of them is copied. */
static int codec_tiff_map(thandle_t handle, void** base, toff_t* bytes) {
    const codec_tiff_stream* const stream = (const codec_tiff_stream*)handle;
    *base = (void*)(uintptr_t)stream->data;
    *bytes = stream->bytes;
    return !stream->out;
}

static void codec_tiff_unmap(thandle_t handle, void* base, toff_t bytes) { (void)handle, (void)base, (void)bytes; }

/* ---- what the library says --------------------------------------------------------- */

static void codec_tiff_error(thandle_t handle, const char* module, const char* format, va_list arguments) {
    codec_tiff_stream* const stream = (codec_tiff_stream*)handle;
    char said[CODEC_REASON_BYTES - 6]; /* the file's name that it was opened with is in some sentences */
    (void)module;
    if (!stream || stream->failed)
        return;
    vsnprintf(said, sizeof said, format, arguments);
    codec_fail(stream->reason, GPST_ERROR_FORMAT, "%s%s", strncmp(said, "TIFF: ", 6) ? "TIFF: " : "", said);
    stream->failed = true;
}

/* Of tags that it does not know, and the like. libjpeg's are of damage, behind which it would go on with gray. */
static void codec_tiff_warning(thandle_t handle, const char* module, const char* format, va_list arguments) {
    if (module && strcmp(module, "JPEGLib") == 0)
        codec_tiff_error(handle, module, format, arguments);
}

/* The handlers are the process's, in all versions of the library; they get the stream's address. */
static void codec_tiff_take_errors(void) {
    (void)TIFFSetErrorHandler(NULL);
    (void)TIFFSetWarningHandler(NULL);
    (void)TIFFSetErrorHandlerExt(codec_tiff_error);
    (void)TIFFSetWarningHandlerExt(codec_tiff_warning);
}

gpst_result codec_tiff_fail(const codec_tiff_stream* stream, const char* sentence) {
    if (!stream->failed)
        codec_fail(stream->reason, GPST_ERROR_FORMAT, "TIFF: %s", sentence);
    return GPST_ERROR_FORMAT;
}

TIFF* codec_tiff_open(codec_tiff_stream* stream, const char* mode) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, codec_tiff_take_errors);
    TIFF* const tiff =
        TIFFClientOpen("TIFF", mode, (thandle_t)stream, codec_tiff_read, codec_tiff_write, codec_tiff_seek,
                       codec_tiff_close, codec_tiff_size, codec_tiff_map, codec_tiff_unmap);
    if (!tiff)
        (void)codec_tiff_fail(stream, "the library cannot open it");
    else /* what it said was of a tag that it left out, and pixels may do without */
        stream->failed = false;
    return tiff;
}

#endif
