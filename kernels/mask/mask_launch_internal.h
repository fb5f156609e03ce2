/* kernels/mask/mask_launch_internal.h -- what a launch of mask operations is told:
   items that have a job in common. Between mask_launch.c and mask.cu.h. */
#ifndef GPSTI_MASK_LAUNCH_INTERNAL_H
#define GPSTI_MASK_LAUNCH_INTERNAL_H

#include "mask_internal.h"
#include "mask_launch.h"

typedef enum gpsti_mask_kind {
    GPSTI_MASK_KIND_ARGMAX = 1,
    GPSTI_MASK_KIND_ROWS = 2,
    GPSTI_MASK_KIND_WINDOW = 3,
    GPSTI_MASK_KIND_BOX = 4
} gpsti_mask_kind;

typedef struct gpsti_box_job {
    const uint8_t* source;
    int64_t source_pitch;
    uint32_t width, height;
    uint32_t n_classes; /* 0 = a mask */
    bool wide;          /* labels of u16 */
} gpsti_box_job;

/* What an item has of its own. */
typedef struct gpsti_mask_item {
    const uint8_t* source;
    uint8_t* output;
    const uint8_t* guide;
} gpsti_mask_item;

#define GPSTI_MASK_ITEMS 128

/* One struct by value, within what kernels may take. The pointers in job are NULL: they are the items'. */
typedef struct gpsti_mask_batch {
    union {
        gpsti_argmax_job argmax;
        gpsti_mask_job rows;
        gpsti_window_job window;
        gpsti_box_job box;
    } job;
    gpsti_mask_kind kind;
    uint32_t n_items;
    gpsti_mask_item items[GPSTI_MASK_ITEMS];
} gpsti_mask_batch;

#if defined(GPSTI_GPU)
GPSTI_LINK gpst_result gpsti_mask_gpu_launch(const char* function, const gpsti_mask_batch* batch, void* stream);
GPSTI_LINK gpst_result gpsti_mask_time_gpu_launch(const char* function, const gpsti_mask_time_job* job, void* stream);
#endif

#endif
