/* tools/gpustage/mask.h -- equirectangular masks, and the mask of every view made from one that all frames share. */
#ifndef GPST_TOOL_MASK_H
#define GPST_TOOL_MASK_H

#include "options.h"

/* What a mask's pixels say together. */
enum mask_found { MASK_KEEPS = 1, MASK_DROPS = 2, MASK_ALPHA = 4 /* alpha, which does not count, says otherwise */ };

typedef struct mask_view { /* an encoded PNG */
    uint8_t* data;
    size_t bytes;
} mask_view;

/* All-zero is no mask, or (--mask DIR) one for each frame. */
typedef struct mask {
    gpst_image image; /* GRAY u8, 255 keep and 0 drop; data NULL without a mask */
    uint64_t file_bytes;
    uint64_t file_hash;
    mask_view* views; /* --mask-out: n_views of them, the same for every frame that was not taken turned */
    uint32_t n_views;
} mask;

/* EXIT_DONE; EXIT_USAGE or EXIT_MACHINE with the sentence printed. */
int mask_load(mask* self, const options* asked);
/* --mask-out: the masks of the views, of the one mask. */
int mask_make_views(mask* self, const options* asked);
/* Of a view of a frame that was taken turned by pose; GRAY U8, without gaps. Free its data, on failure, too. */
gpst_result mask_make_turned(const mask* self, const options* asked, const gpst_view* pose, uint32_t view,
                             gpst_image* out);
void mask_free(mask* self);

/* The parts, for a mask of one frame. What its file says, and what decoding it takes. */
typedef struct mask_plan {
    codec_kind kind;
    uint32_t orientation;
    gpst_image stored, turned; /* with orientation 1 the same */
    size_t bytes;              /* of room for both */
} mask_plan;

/* orients: it is turned as its EXIF says. */
gpst_result mask_plan_of(codec* worker, const void* data, size_t bytes, bool orients, mask_plan* out, char* reason);
/* Its picture, of any format, in room of plan->bytes. */
gpst_result mask_decode(codec* worker, const void* data, size_t bytes, const mask_plan* plan, void* room,
                        gpst_image* picture, char* reason);
/* 255 where a colour channel is not zero, else 0, into GRAY U8 of the same size. Returns mask_found. */
uint32_t mask_set_pixels(const gpst_image* from, const gpst_image* to);
/* Remarks what few masks are meant to be. From any thread. */
void mask_remark(const char* path, uint32_t found);
void mask_remark_view(const char* name, const gpst_image* mask); /* GRAY U8, without gaps */

#endif
