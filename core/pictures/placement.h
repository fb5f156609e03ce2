/* core/pictures/placement.h -- how the pixels of a file become the picture that is used: turned as EXIF says, and what
   GPano calls a part of a sphere put where it belongs. Decodes nothing. */
#ifndef GPSTI_PLACEMENT_H
#define GPSTI_PLACEMENT_H

#include "../../kernels/warp/warp.h"
#include "metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_placement_desc -- what of a file's metadata moves its pixels; all-zero is valid

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_placement_desc {
    bool ignore_orientation; /* else pixels are turned as EXIF says */
    bool sphere;             /* the picture is an equirectangular panorama: a part of one, as GPano tells, is placed */
    bool ignore_pose;        /* with sphere; else how GPano says that it was taken is told */
    uint64_t file_bytes;     /* with sphere: of the file. 0 = not known; else it is refused where so few bytes are no
                                part of so large a sphere. Of DECODE stages it is the library's */
} gpst_placement_desc;

/* gpst_placement -- where the stored pixels come to lie

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_placement {
    uint32_t width, height; /* of the picture */
    uint32_t orientation;   /* by which the stored pixels are turned first; 1..8 */
    uint32_t left, top, turned_width, turned_height; /* where they lie in it then; what is around them is 0 */
    bool moves;             /* false: the picture is what was stored */
    bool has_pose;          /* pose is not all-zero: yaw is GPano's heading, pitch and roll are its own */
    gpst_view pose;
    char note[248];         /* what a user may want to know of it, sentences with "; " in between, and at last the
                               metadata's note; "" */
} gpst_placement;

/* gpst_placement_of -- where the pixels of a file come to lie

   Parameters   desc      (in)   NULL = all-zero
                metadata  (in)   of gpst_metadata_read
                stored    (in)   width and height are read
                out       (out)  all-zero on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_UNSUPPORTED (the sphere of which it is a part has sides above GPST_MAX_SIDE) |
                GPST_ERROR_TRUNCATED (it has more than 8256 pixels for each of file_bytes)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Formula      GPano's numbers are of the picture as it was written: where its size is another than CroppedArea says it
                was scaled since, and all of them are scaled with it, rounded to the nearest. Angles count modulo 360.
                GPano is used, all of it, or it is ignored, all of it, and the note says why: one value cannot be read,
                one size is missing beside others, or they contradict each other. Left and top that are missing are 0
   Source       core/pictures/placement.c          Tests  tests/test_placement.c          Since 0.1
*/
GPST_API gpst_result gpst_placement_of(const gpst_placement_desc* desc, const gpst_metadata* metadata,
                                       const gpst_image* stored, gpst_placement* out);

/* gpst_placement_window -- the part of a picture that the turned pixels fill; all the rest becomes 0

   Parameters   placement  (in)   of gpst_placement_of
                picture    (in)   placement's width and height, channels interleaved, any dtype and pitch, on the host
                window     (out)  the part of it, with its pitch: what gpst_image_orient writes to, or with orientation
                                  1 a decoder
   Shapes       none
   Returns      nothing
   Ownership    picture's memory
   Threads      any
   Blocking     writes the picture where it is larger than the window; no allocation
   Device       none
   Source       core/pictures/placement.c          Tests  tests/test_placement.c          Since 0.1
*/
GPST_API void gpst_placement_window(const gpst_placement* placement, const gpst_image* picture, gpst_image* window);

#ifdef __cplusplus
}
#endif
#endif
