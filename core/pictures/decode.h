/* core/pictures/decode.h -- how files become pictures, whoever decodes them: a DECODE stage, or a prefetcher. */
#ifndef GPSTI_DECODE_H
#define GPSTI_DECODE_H

#include "jpeg.h"
#include "placement.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose JPEG codec: that of the cores is libjpeg-turbo, that of the device nvJPEG, both found at run time. The
   hardware decoder of an H100 gave libjpeg-turbo's own pixels; nvJPEG's other decoders differ by 1 of 255 in a plane,
   and its encoder makes other files (docs/conventions.md). Damage in the middle of a file's data is seen by
   libjpeg-turbo alone, and there not always. */
typedef enum gpst_codec {
    GPST_CODEC_EXACT = 0, /* the cores': the same bytes on every machine */
    GPST_CODEC_AUTO = 1,  /* for each item the one of both that will be done with it first, by the times so far; the
                             device's is opened where it saves more time than opening it takes */
    GPST_CODEC_GPU = 2    /* the device's, but for what it cannot do; where there is none the cores', with a warning */
} gpst_codec;

/* gpst_decode_desc -- what is made of a file; all-zero is valid

   JPEG, PNM, PAM and .npy are decoded, and what else there is by a function of the user's: of DECODE the stage's func,
   of a prefetcher the desc's; without one it fails. Pixels of PNM, PAM and .npy are used where the file was read to. A
   JPEG is RGB, or GRAY; or, where nothing but WARP stages reads what a DECODE stage writes and the device has memory of
   its own, the planes of its file (GPST_FORMAT_JPEG_420 and so on), of which a WARP makes the same bits, but not with
   rgb.

   Ownership    must outlive the pipeline; a prefetcher copies it
   Since        0.1
*/
typedef struct gpst_decode_desc {
    gpst_codec codec;      /* of a prefetcher EXACT */
    bool rgb;              /* then the cores decode */
    gpst_damage on_damage; /* of JPEG; what was mended or kept is said in the note of the item, or of the frame */
    /* By the metadata of a JPEG; what it moves the cores decode. A pose is the item's, as gpst_task_set_pose says. */
    gpst_placement_desc placement;
    uint64_t max_pixels;   /* of a picture; 0 = 2^29. A JPEG's pixels times its scans may be 16 times as many: each
                              scan goes over the whole picture */
    /* Of a JPEG: file, picture and decoder together. Decoders that take more than 16 MiB and work side by side wait for
       one another within it. 0 = a quarter of the machine's memory, at least 256 MiB. */
    uint64_t max_bytes;
} gpst_decode_desc;

#ifdef __cplusplus
}
#endif
#endif
