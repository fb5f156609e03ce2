/* core/tuning/window_internal.h -- a stretch of the run that is long enough to be judged, as a pure policy: times at
   which items ended in, whether the window is full and how much of its rate is chance out. */
#ifndef GPSTI_WINDOW_INTERNAL_H
#define GPSTI_WINDOW_INTERNAL_H

#include "../base/base_internal.h"

/* Its items in blocks: the spread of the blocks' times is the window's noise. */
typedef struct gpsti_window {
    int64_t start_ns, block_start_ns;
    uint64_t n_items, n_blocks, n_in_block;
    double block_sum, block_squares;
} gpsti_window;

GPSTI_INTERN void gpsti_window_open(gpsti_window* window, int64_t now_ns);
/* An item ended at now_ns, beside which n_parallel are worked on, itself among them. True: the window is full. */
GPSTI_INTERN bool gpsti_window_add(gpsti_window* window, int64_t now_ns, uint32_t n_parallel);
/* Standard error of the mean block, as a part of it; 1 where there are too few blocks. */
GPSTI_INTERN double gpsti_window_noise(const gpsti_window* window);

#endif
