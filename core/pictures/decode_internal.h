/* core/pictures/decode_internal.h -- what a file asks for, checked before anything is allocated, and its pixels. */
#ifndef GPSTI_DECODE_INTERNAL_H
#define GPSTI_DECODE_INTERNAL_H

#include "decode.h"
#include "pictures_internal.h"

#define GPSTI_DECODE_ROWS_BYTES ((uint64_t)16 << 20) /* decoders that take less hold rows, not pictures */

/* Everywhere desc NULL is all-zero. The failures' sentences name no function: gpsti_fail_in does. */

/* ARGUMENT: a member is out of range; where begins the sentence. */
GPSTI_INTERN gpst_result gpsti_decode_check(const gpst_decode_desc* desc, const char* where);
/* May decoding take so many bytes? Asks the system only where that is much. */
GPSTI_INTERN bool gpsti_decode_fits(const gpst_decode_desc* desc, uint64_t bytes);
/* BUDGET: more pixels than desc allows. name: the kind of file. */
GPSTI_INTERN gpst_result gpsti_decode_check_pixels(const gpst_decode_desc* desc, const char* name, uint32_t width,
                                                   uint32_t height);
/* BUDGET: a JPEG of so many bytes asks for more than desc allows. */
GPSTI_INTERN gpst_result gpsti_decode_check_jpeg(const gpst_decode_desc* desc, const gpst_jpeg_info* info,
                                                 uint64_t file_bytes);
/* Where its metadata puts the pixels of a JPEG. */
GPSTI_INTERN gpst_result gpsti_decode_placement(const gpst_decode_desc* desc, const gpst_metadata* metadata,
                                                size_t bytes, const gpst_jpeg_info* info, gpst_placement* out);

/* What a file becomes, by its header. */
typedef struct gpsti_decode_plan {
    gpst_file_kind kind;
    gpst_image stored;  /* as the file has it; data NULL */
    gpst_image picture; /* as it is used; data NULL, rows without gaps */
    size_t picture_bytes;
    size_t offset;            /* above 0: the pixels lie there as they are in memory */
    size_t turned_bytes;      /* room that stored pixels take before they are turned; 0: none */
    uint64_t decoder_bytes;   /* of a JPEG */
    gpst_placement placement; /* its note and pose are of the picture */
} gpsti_decode_plan;

/* UNSUPPORTED or FORMAT with kind UNKNOWN: a file of no kind that is decoded here. */
GPSTI_INTERN gpst_result gpsti_decode_plan_of(const gpst_decode_desc* desc, const void* data, size_t bytes,
                                              gpsti_decode_plan* out);
/* jpeg: of a JPEG, this thread's. pixels: picture_bytes; turned: turned_bytes. */
GPSTI_INTERN gpst_result gpsti_decode_run(const gpst_decode_desc* desc, const gpsti_decode_plan* plan, const void* data,
                                          size_t bytes, gpst_jpeg* jpeg, void* pixels, void* turned,
                                          gpst_jpeg_note* note);

#endif
