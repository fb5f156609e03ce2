/* core/pictures/names.c -- what a file is, by its first bytes: what is read here, and what is only named when it is
   refused. Looks no further than it must, and judges nothing. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"
#include "metadata_internal.h"
#include "pictures_internal.h"

#include <string.h>

#define GPSTI_TIFF_SUBFILE 254
#define GPSTI_TIFF_DNG 50706

/* A file of that name has those bytes there. */
typedef struct gpsti_magic {
    const char* name;
    uint32_t at, bytes;
    const char* magic;
} gpsti_magic;

static const gpsti_magic gpsti_magics[] = {
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n"},
    {"GIF", 0, 4, "GIF8"},
    {"PSD", 0, 4, "8BPS"},
    {"EXR", 0, 4, "\x76\x2f\x31\x01"},
    {"HDR", 0, 10, "#?RADIANCE"},
    {"HDR", 0, 6, "#?RGBE"},
    {"PDF", 0, 5, "%PDF-"},
    {"JPEG XL", 0, 2, "\xff\x0a"},
    {"JPEG XL", 4, 8, "JXL \r\n\x87\n"},
    {"JPEG 2000", 4, 8, "jP  \r\n\x87\n"},
    {"JPEG 2000", 0, 4, "\xff\x4f\xff\x51"},
    {"camera raw", 0, 15, "FUJIFILMCCD-RAW"},
    {"camera raw", 0, 4, "IIU\0"}, /* Panasonic's, and Olympus's */
    {"camera raw", 0, 4, "IIRO"},
    {"camera raw", 0, 4, "IIRS"},
    {"Matroska video", 0, 4, "\x1a\x45\xdf\xa3"},
    {"MOV video", 4, 4, "moov"},
    {"MOV video", 4, 4, "mdat"},
    {"MOV video", 4, 4, "wide"},
    {"camera raw", 0, 12, "II*\0\x10\0\0\0CR\2\0"}, /* Canon's */
    {"TIFF", 0, 4, "II*\0"},
    {"TIFF", 0, 4, "MM\0*"},
    {"TIFF", 0, 4, "II+\0"},
    {"TIFF", 0, 4, "MM\0+"},
};

/* Of files whose first box says what they are. */
static const gpsti_magic gpsti_brands[] = {
    {"HEIC", 8, 3, "hei"}, {"HEIC", 8, 3, "hev"},       {"HEIC", 8, 4, "mif1"},    {"HEIC", 8, 4, "msf1"},
    {"AVIF", 8, 3, "avi"}, {"camera raw", 8, 3, "crx"}, {"MOV video", 8, 2, "qt"}, {"MP4 video", 8, 0, ""},
};

/* Of RIFF files, whose first letters those are. */
static const gpsti_magic gpsti_forms[] = {{"WebP", 8, 4, "WEBP"}, {"AVI video", 8, 4, "AVI "}, {"", 8, 0, ""}};

GPSTI_PRIVATE bool gpsti_magic_is(const gpsti_magic* self, const uint8_t* data, size_t bytes) {
    return bytes >= self->at + self->bytes && memcmp(data + self->at, self->magic, self->bytes) == 0;
}

/* Only with the length of a header that exists: two letters are not much. */
GPSTI_PRIVATE bool gpsti_name_is_bmp(const uint8_t* data, size_t bytes) {
    return bytes >= 18 && data[0] == 'B' && data[1] == 'M' && data[14] >= 12 && data[14] <= 124 && data[15] == 0 &&
           data[16] == 0 && data[17] == 0;
}

/* Raw files of most cameras are TIFFs whose first picture is a thumbnail; few say what they are. */
GPSTI_PRIVATE const char* gpsti_name_tiff(const uint8_t* data, size_t bytes) {
    const gpsti_segment file = {data, bytes};
    if (!gpsti_tiff_is(data, bytes))
        return "TIFF";
    if (gpsti_tiff_tag(file, GPSTI_TIFF_DNG).bytes > 0)
        return "camera raw (DNG)";
    return gpsti_tiff_number_of(file, GPSTI_TIFF_SUBFILE) & 1 ? "TIFF (a thumbnail first)" : "TIFF";
}

GPST_API const char* gpst_picture_name(const void* data, size_t bytes) {
    const uint8_t* const first = (const uint8_t*)data;
    if (!data || bytes == 0)
        return "";
    if (gpsti_pnm_is(first, bytes))
        return "PNM";
    if (gpsti_npy_is(first, bytes))
        return "NPY";
    if (gpsti_jpeg_is(first, bytes))
        return "JPEG";
    if (gpsti_name_is_bmp(first, bytes))
        return "BMP";
    for (size_t i = 0; bytes >= 12 && memcmp(first, "RIFF", 4) == 0; i++)
        if (gpsti_magic_is(&gpsti_forms[i], first, bytes))
            return gpsti_forms[i].name;
    for (size_t i = 0; bytes >= 12 && memcmp(first + 4, "ftyp", 4) == 0; i++)
        if (gpsti_magic_is(&gpsti_brands[i], first, bytes))
            return gpsti_brands[i].name;
    for (size_t i = 0; i < sizeof gpsti_magics / sizeof gpsti_magics[0]; i++)
        if (gpsti_magic_is(&gpsti_magics[i], first, bytes))
            return strcmp(gpsti_magics[i].name, "TIFF") ? gpsti_magics[i].name : gpsti_name_tiff(first, bytes);
    return "";
}
