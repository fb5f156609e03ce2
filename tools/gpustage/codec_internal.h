/* tools/gpustage/codec_internal.h -- what the codec_*.c files share: one table of functions a format, and the
   rules that hold for all of them. */
#ifndef GPST_TOOL_CODEC_INTERNAL_H
#define GPST_TOOL_CODEC_INTERNAL_H

#include "codec.h"

#define CODEC_NOTE_BYTES 96

struct codec {
    codec_limits limits;
    gpst_jpeg* jpeg; /* NULL until one is needed */
    char note[CODEC_NOTE_BYTES];
    uint64_t held_bytes; /* file and decoder, of the header read last */
    uint32_t row[CODEC_MAX_SIDE * 4]; /* one row on its way, where its samples change */
};

/* What a header says beside the shape. */
typedef struct codec_layout {
    uint64_t decoder_bytes; /* what decoding takes beside the file and the picture, at most */
    uint64_t n_scans;       /* how often the data go over the picture; 0 = once */
    bool in_place;          /* the picture is used where the file was read to */
    char note[CODEC_NOTE_BYTES]; /* codec_note */
} codec_layout;

typedef struct codec_format {
    codec_kind kind;
    const char* name; /* gpst_picture_name's */
    const char* extension;
    const char* holds;   /* dtypes and sides that are written */
    const char* library; /* that reads and writes it; NULL: none is needed */
    bool available;
    /* Fills width, height, format and, other than U8, dtype of shape; layout is all-zero. */
    gpst_result (*read_header)(const uint8_t* data, size_t bytes, gpst_image* shape, codec_layout* layout,
                               char* reason);
    /* The image has the shape of the header, pitch resolved. */
    gpst_result (*decode)(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                          char* reason);
    /* 0 = cannot hold it. */
    size_t (*bound)(const gpst_image* image, const codec_options* options);
    /* The image is valid, pitch resolved, and the room is at least the bound. */
    gpst_result (*encode)(codec* self, const gpst_image* image, const codec_options* options, uint8_t* out,
                          size_t* bytes, char* reason);
    bool (*read_icc)(const uint8_t* data, size_t bytes, void** profile, size_t* profile_bytes); /* NULL = the library does */
} codec_format;

extern const codec_format codec_jpeg, codec_png, codec_pnm, codec_npy, codec_tiff, codec_webp;

/* Fills reason (CODEC_REASON_BYTES) and returns result. */
gpst_result codec_fail(char* reason, gpst_result result, const char* format, ...) GPSTI_PRINTF(3, 4);
/* codec_limits.c. Is a file of this shape within the limits? BUDGET. */
gpst_result codec_check_limits(const codec* self, const char* name, const gpst_image* shape, size_t file_bytes,
                               const codec_layout* layout, char* reason);
/* Waits until decoders may hold so many bytes more; what is taken is given back. */
void codec_room_take(const codec* self, uint64_t bytes);
void codec_room_give(uint64_t bytes);

/* The sides of a picture are 1..CODEC_MAX_SIDE. */
gpst_result codec_check_sides(const char* name, uint64_t width, uint64_t height, char* reason);
uint8_t* codec_row(const gpst_image* image, size_t y);
/* Plain pixels: the planes one after the other, row by row without gaps. */
size_t codec_plain_bytes(const gpst_image* image);
void codec_write_plain(const gpst_image* image, uint8_t* out);
/* A row of an HWC image, BGR and BGRA turned into RGB and RGBA through self->row. */
const uint8_t* codec_rgb_row(codec* self, const gpst_image* image, uint32_t y);
/* HWC, sides within the limit: what picture formats hold, each of its own dtypes. */
bool codec_is_picture(const gpst_image* image);

bool codec_jpeg_available(void); /* libturbojpeg is found */

#endif
