/* tools/gpustage/mask.h -- the equirectangular mask, and the mask of every view made from it. */
#ifndef GPST_TOOL_MASK_H
#define GPST_TOOL_MASK_H

#include "options.h"

typedef struct mask_view { /* an encoded PNG */
    uint8_t* data;
    size_t bytes;
} mask_view;

/* All-zero is no mask. */
typedef struct mask {
    gpst_image image; /* GRAY u8, 255 keep and 0 drop; data NULL without a mask */
    uint64_t file_bytes;
    uint64_t file_hash;
    mask_view* views; /* --mask-out: n_views of them, the same for every frame */
    uint32_t n_views;
} mask;

/* EXIT_DONE; EXIT_USAGE or EXIT_MACHINE with the sentence printed. */
int mask_load(mask* self, const options* asked);
/* Through the very warp the frames go through, so that no pixel can differ. */
int mask_make_views(mask* self, const options* asked, const gpst_warp* warp);
void mask_free(mask* self);

#endif
