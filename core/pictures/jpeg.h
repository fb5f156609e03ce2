/* core/pictures/jpeg.h -- JPEG files in memory to pixels and back, on the cores, through libturbojpeg (2.1 or 3), which
   is looked for at run time: nothing of it is needed to compile or to link. GPUSTAGE_LIBTURBOJPEG in the environment
   names its file; set to nothing, it is not used. Headers are read without it. Knows nothing of files on a disk. */
#ifndef GPSTI_JPEG_H
#define GPSTI_JPEG_H

#include "../../kernels/image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_jpeg_info -- what a JPEG file is, by its header

   The colours are those that libjpeg-turbo sees, by JFIF and Adobe markers, else by the components' numbers.

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_jpeg_info {
    uint32_t width, height; /* 1 to GPST_MAX_SIDE */
    uint32_t n_components;  /* 1, 3 or 4 */
    gpst_format format;     /* what it is decoded to: GRAY or RGB; of CMYK and YCCK files RGB */
    gpst_format planes;     /* the planes as they lie in the file, which gpst_jpeg_decode can give, too: GRAY,
                               JPEG_444, _422, _420 or _440; INVALID: it cannot, since the file has other sampling
                               factors, or is RGB, CMYK or YCCK */
    bool progressive, arithmetic;
    uint64_t decoder_bytes; /* what decoding takes beside file and picture, at most; a file that has to be mended takes
                               its own size more */
    uint64_t n_scans;       /* how often the data go over the picture; 0: once */
} gpst_jpeg_info;

/* gpst_jpeg_read_header -- what a JPEG file is, and whether its bytes can be such a picture at all

   A few bytes can ask for gigabytes: what cannot hold the pixels that it promises is refused, and what decoding takes
   is told before anything is allocated. Faults that gpst_jpeg_decode mends are none here.

   Parameters   data, bytes  (in)   the whole file
                out          (out)  all-zero on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_FORMAT | GPST_ERROR_TRUNCATED | GPST_ERROR_UNSUPPORTED
                (lossless, hierarchical, not 8 bits, 2 or more than 4 components, a side above GPST_MAX_SIDE, more than
                500 scans)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation; files in several scans are looked through to their end
   Device       none
   Source       core/pictures/jpeg_header.c          Tests  tests/test_jpeg_files.c          Since 0.1
*/
GPST_API gpst_result gpst_jpeg_read_header(const void* data, size_t bytes, gpst_jpeg_info* out);

/* A decoder and an encoder. */
typedef struct gpst_jpeg gpst_jpeg;

/* gpst_jpeg_create -- a decoder and an encoder (through the macro, which passes the version)

   Parameters   version     (in)   GPST_VERSION
                info_bytes  (in)   sizeof(gpst_jpeg_info)
                allocator   (in)   for what the library itself takes; libturbojpeg has the C library's. NULL = that, too
                out         (out)  NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_UNSUPPORTED (no libturbojpeg, or one that lacks a function; a later call looks
                again) | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_MEMORY
   Ownership    gpst_jpeg_destroy ends it; libturbojpeg stays loaded. allocator is copied
   Threads      any; one at a time uses what was made
   Blocking     the first one loads the library
   Device       none
   Source       core/pictures/jpeg.c          Tests  tests/test_jpeg.c          Since 0.1
*/
#define gpst_jpeg_create(allocator, out) \
    gpst_jpeg_create_versioned(GPST_VERSION, sizeof(gpst_jpeg_info), (allocator), (out))
GPST_API gpst_result gpst_jpeg_create_versioned(uint32_t version, size_t info_bytes, const gpst_allocator* allocator,
                                                gpst_jpeg** out);

/* gpst_jpeg_destroy -- ends what gpst_jpeg_create made

   Parameters   jpeg  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    jpeg is gone
   Threads      one, and no other call on jpeg is running
   Blocking     never
   Device       none
   Source       core/pictures/jpeg.c          Tests  tests/test_jpeg.c          Since 0.1
*/
GPST_API void gpst_jpeg_destroy(gpst_jpeg* jpeg);

/* ---- decoding ---------------------------------------------------------------------------------------- */

typedef enum gpst_damage {
    /* Missing data are an error, never a grey rest; and so are changed data that do not come out even: that end before
       the last pixel, go on behind it, or have codes that do not exist. Others are not noticed: of changes of one byte
       in a sequential file's data 70 in 100 (docs/conventions.md, "Whose JPEG codec") */
    GPST_DAMAGE_FAIL = 0,
    GPST_DAMAGE_KEEP = 1 /* what the decoder makes of it is taken, and the note says so */
} gpst_damage;

/* gpst_jpeg_decode_desc -- how a file is decoded; all-zero is valid

   Ownership    read during the call
   Since 0.1
*/
typedef struct gpst_jpeg_decode_desc {
    gpst_damage on_damage;
} gpst_jpeg_decode_desc;

/* gpst_jpeg_note -- what decoding had to do beside decoding

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_jpeg_note {
    bool mended;    /* the pixels are those of the file without its faults, bit for bit */
    bool damaged;   /* some pixels are wrong; GPST_DAMAGE_KEEP */
    char text[248]; /* "mended: SOS parameters; stray bytes", "damaged: " and the decoder's words, what was taken for
                       granted; "" */
} gpst_jpeg_note;

/* gpst_jpeg_decode -- the pixels of a file

   Decoding is strict: any warning of the decoder is an error. Where faults do no harm a copy without them is decoded,
   as strictly: the wrong parameters that some writers put into the scan header of a sequential file, bytes that belong
   to no segment, an unknown major version of JFIF, up to 16 zeros before the end marker, and a missing end marker
   behind complete data. Other bytes before the end marker are not noticed, nor told of, where the decoder had read
   them ahead, which are 4 to 8; more are an error, since damaged data leave the same behind. A file in several scans
   must have one of each component; and where it has no end marker, its scans must hold every bit of every
   coefficient, since nothing else would tell that a scan is missing.

   Parameters   jpeg         (in)   made by gpst_jpeg_create
                data, bytes  (in)   the whole file
                desc         (in)   NULL = all-zero
                picture      (in)   width and height of the file, U8, HWC; GRAY (not of CMYK and YCCK files), RGB, BGR,
                                    RGBA or BGRA (alpha 255) of any pitch, also negative; or the planes that
                                    gpst_jpeg_read_header tells
                note         (out)  NULL = not wanted; all-zero where there is nothing to say
   Shapes       CMYK and YCCK: each of R, G, B is C * K / 255, rounded, of the inverted inks that files with an Adobe
                marker hold; without one they are taken for the same, as other readers do, and the note says so
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_TRUNCATED (the file ends early) | GPST_ERROR_FORMAT (damaged)
                | GPST_ERROR_UNSUPPORTED | GPST_ERROR_MEMORY; the picture is undefined then
   Ownership    nothing is kept
   Threads      one at a time on jpeg
   Blocking     for as long as it computes; allocates for files with faults and of four components
   Device       none
   Source       core/pictures/jpeg.c          Tests  tests/test_jpeg.c          Since 0.1
*/
GPST_API gpst_result gpst_jpeg_decode(gpst_jpeg* jpeg, const void* data, size_t bytes,
                                      const gpst_jpeg_decode_desc* desc, const gpst_image* picture,
                                      gpst_jpeg_note* note);

/* ---- encoding ---------------------------------------------------------------------------------------- */

/* gpst_jpeg_encode_desc -- how a picture is encoded; all-zero is valid

   What the libturbojpeg that is found is too old for is refused with GPST_ERROR_UNSUPPORTED: by gpst_jpeg_encode, and
   by gpst_pipeline_create and the jobs before any item.

   Ownership    read during the call
   Since 0.1
*/
typedef struct gpst_jpeg_encode_desc {
    uint32_t quality;      /* 1 to 100; 0 = 95 */
    gpst_format chroma;    /* JPEG_444, _422, _420 or _440; 0 = JPEG_444. Gray pictures have none */
    bool optimise;         /* Huffman tables of the picture's own: smaller and slower. Needs libturbojpeg 3 or later */
    uint32_t restart_rows; /* rows of MCUs between restart markers, up to 65535; 0 = none. Needs libturbojpeg 3, too */
} gpst_jpeg_encode_desc;

/* gpst_jpeg_bound -- most bytes that the file of a picture can have

   Parameters   image  (in)   U8, HWC: GRAY, RGB, BGR, RGBA or BGRA (alpha is dropped), sides up to GPST_MAX_SIDE; data
                              is not read
                desc   (in)   NULL = all-zero
                bytes  (out)  0 on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (a member breaks its rule) | GPST_ERROR_UNSUPPORTED (a picture that JPEG
                cannot hold) | GPST_ERROR_OVERFLOW
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pictures/jpeg_encode.c          Tests  tests/test_jpeg.c          Since 0.1
*/
GPST_API gpst_result gpst_jpeg_bound(const gpst_image* image, const gpst_jpeg_encode_desc* desc, size_t* bytes);

/* gpst_jpeg_encode -- a file of a picture

   Parameters   jpeg   (in)      made by gpst_jpeg_create
                image  (in)      as gpst_jpeg_bound wants it; any pitch, also negative
                desc   (in)      NULL = all-zero
                out    (out)     the file
                bytes  (in, out) room at out, at least gpst_jpeg_bound's; of the file, 0 on failure
   Shapes       out: uint8_t[*bytes]
   Returns      what gpst_jpeg_bound returns | GPST_ERROR_ARGUMENT (less room) | GPST_ERROR_UNSUPPORTED (optimise or
                restart_rows with libturbojpeg 2; what the encoder refuses) | GPST_ERROR_MEMORY
   Ownership    nothing is kept
   Threads      one at a time on jpeg
   Blocking     for as long as it computes
   Device       none
   Source       core/pictures/jpeg_encode.c          Tests  tests/test_jpeg.c          Since 0.1
*/
GPST_API gpst_result gpst_jpeg_encode(gpst_jpeg* jpeg, const gpst_image* image, const gpst_jpeg_encode_desc* desc,
                                      void* out, size_t* bytes);

#ifdef __cplusplus
}
#endif
#endif
