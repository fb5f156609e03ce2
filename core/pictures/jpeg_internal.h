/* core/pictures/jpeg_internal.h -- what the files on JPEG share, and what a decoder on a GPU needs to know of one. */
#ifndef GPSTI_JPEG_INTERNAL_H
#define GPSTI_JPEG_INTERNAL_H

#include "../base/library_internal.h"
#include "jpeg.h"
#include "pictures_internal.h"

/* ---- segments ---------------------------------------------------------------------------------------- */

/* From marker to marker. What a scan's header is followed by is data, in which 0xff comes before 0 or a restart's
   number; elsewhere whatever is no marker belongs to nothing. */
typedef struct gpsti_jpeg_walk {
    const uint8_t* data;
    size_t bytes;
    size_t at;      /* behind what was found last */
    bool in_data;   /* a scan's data come next */
    size_t from;    /* where the latest search began */
    size_t begin;   /* of the marker: its 0xff; where none was found: the end of what belongs to the data */
    uint8_t marker; /* 0: none any more */
    uint32_t length; /* of its segment with the two bytes that say so; 0: it has none */
    bool cut;       /* the segment ends behind the file */
    size_t n_stray; /* bytes before it that belong to nothing */
} gpsti_jpeg_walk;

GPSTI_INTERN gpsti_jpeg_walk gpsti_jpeg_walk_of(const uint8_t* data, size_t bytes); /* behind the start marker */
GPSTI_INTERN bool gpsti_jpeg_next(gpsti_jpeg_walk* walk); /* false: no marker any more */

/* ---- the header -------------------------------------------------------------------------------------- */

/* What is mended, in the order in which notes name it. */
#define GPSTI_JPEG_FAULT_SCAN 1u     /* parameters of a sequential scan */
#define GPSTI_JPEG_FAULT_STRAY 2u    /* bytes of no segment */
#define GPSTI_JPEG_FAULT_VERSION 4u  /* of JFIF */
#define GPSTI_JPEG_FAULT_PADDING 8u  /* zeros before the end */
#define GPSTI_JPEG_FAULT_NO_END 16u

typedef struct gpsti_jpeg_header {
    gpst_jpeg_info info;
    uint8_t frame; /* the marker */
    uint8_t ids[4], factors[4];
    bool has_jfif, has_adobe;
    uint8_t adobe_transform;
    uint32_t faults; /* up to the first scan's header */
    size_t scan;     /* where the first scan's marker is */
    /* Of files by scans: a scan of each component was there; and all bits of it. */
    bool has_all_components, has_all_bits;
} gpsti_jpeg_header;

GPSTI_INTERN bool gpsti_jpeg_is(const uint8_t* data, size_t bytes);
GPSTI_INTERN gpst_result gpsti_jpeg_read(const uint8_t* data, size_t bytes, gpsti_jpeg_header* out);
/* Can a decoder that knows no more than the usual have it as it is? Baseline, one scan of 1 or 3 components in planes
   that are known, well-formed from the first byte to the last. *first: where the first segment is that is no APPn or
   comment; all of those come before it, so that the start marker and what begins there are the same picture. */
GPSTI_INTERN bool gpsti_jpeg_is_plain(const uint8_t* data, size_t bytes, size_t* first);

/* ---- mending ----------------------------------------------------------------------------------------- */

/* Is this segment of a sequential file or a JFIF one as it should be? 0 or its fault. */
GPSTI_INTERN uint32_t gpsti_jpeg_segment_fault(const uint8_t* segment, uint32_t length, bool sequential);

typedef struct gpsti_jpeg_mended {
    uint32_t faults; /* 0: there was nothing to mend, or no way */
    size_t bytes;    /* of the copy */
    bool ended;      /* the file has an end marker */
} gpsti_jpeg_mended;

/* Writes a copy without faults; out has room for two bytes more than the file. */
GPSTI_INTERN gpsti_jpeg_mended gpsti_jpeg_mend(const uint8_t* data, size_t bytes, bool sequential, uint8_t* out);
GPSTI_INTERN void gpsti_jpeg_note_mended(uint32_t faults, gpst_jpeg_note* note);

/* ---- libturbojpeg ------------------------------------------------------------------------------------ */

/* The interface of 2.1, which 3 has, too; in 3 tj3Set holds for the handle. Sizes are C's unsigned long there. */
typedef struct gpsti_jpeg_calls {
    void* (*init_decompress)(void);
    void* (*init_compress)(void);
    int (*destroy)(void* handle);
    char* (*error_text)(void* handle);
    int (*error_code)(void* handle);
    int (*header)(void* handle, const unsigned char* data, unsigned long bytes, int* width, int* height, int* sampling,
                  int* colours);
    int (*decompress)(void* handle, const unsigned char* data, unsigned long bytes, unsigned char* out, int width,
                      int pitch, int height, int pixels, int flags);
    int (*decompress_planes)(void* handle, const unsigned char* data, unsigned long bytes, unsigned char** planes,
                             int width, int* pitches, int height, int flags);
    unsigned long (*bound)(int width, int height, int sampling);
    int (*compress)(void* handle, const unsigned char* pixels, int width, int pitch, int height, int format,
                    unsigned char** out, unsigned long* bytes, int sampling, int quality, int flags);
    int (*set)(void* handle, int parameter, int value); /* 3 only */
} gpsti_jpeg_calls;

#define GPSTI_JPEG_QUALITY 95 /* where the desc says 0 */

#define GPSTI_TJ_BOTTOM_UP 2
#define GPSTI_TJ_NO_REALLOC 1024
#define GPSTI_TJ_STOP_ON_WARNING 8192
#define GPSTI_TJ_LIMIT_SCANS 32768

struct gpst_jpeg {
    gpsti_host host;
    const gpsti_jpeg_calls* calls;
    void *decoder, *encoder;
    void* optimiser; /* made with the first picture that asks for it */
};

/* An image as the library wants it: from its lowest address, upside down where the pitch is negative. */
typedef struct gpsti_jpeg_rows {
    uint8_t* data;
    int pitch;
    int flags;
} gpsti_jpeg_rows;

/* TJPF_*. Decoders set alpha to 255, encoders drop it. */
GPSTI_INTERN int gpsti_jpeg_pixels(gpst_format format);
GPSTI_INTERN gpsti_jpeg_rows gpsti_jpeg_rows_of(const gpst_image* image);
/* Pitches are ints there. */
GPSTI_INTERN gpst_result gpsti_jpeg_check_pitch(const gpst_image* image, const char* function, const char* member);
/* UNSUPPORTED, named as a member of where: the library is there, and too old for what desc (NULL: nothing) asks for. */
GPSTI_INTERN gpst_result gpsti_jpeg_check_options(const gpst_jpeg_encode_desc* desc, const char* where);
/* MEMORY, or result, with the library's words as the reason. */
GPSTI_INTERN gpst_result gpsti_jpeg_fail(const gpst_jpeg* self, void* handle, gpst_result result);

#endif
