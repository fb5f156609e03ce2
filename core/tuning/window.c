/* core/tuning/window.c -- when a window of items is full and how much its rate says, and how many items fit. Pure
   policies: they count, and read no clock. */
#include "../base/platform_internal.h"

#include "../../kernels/exact/exact_internal.h"
#include "window_internal.h"

#include <string.h>

#define GPSTI_WINDOW_NS 100000000 /* at least: shorter windows are of chance */
#define GPSTI_WINDOW_BLOCKS 4     /* at least: their spread is the noise */
#define GPSTI_WINDOW_BLOCK_ITEMS 4

GPSTI_INTERN void gpsti_window_open(gpsti_window* window, int64_t now_ns) {
    memset(window, 0, sizeof *window);
    window->start_ns = window->block_start_ns = now_ns;
}

/* Items that are worked on side by side end together: a block has at least one of each worker. */
GPSTI_INTERN bool gpsti_window_add(gpsti_window* window, int64_t now_ns, uint32_t n_parallel) {
    const uint64_t n = n_parallel > GPSTI_WINDOW_BLOCK_ITEMS ? n_parallel : GPSTI_WINDOW_BLOCK_ITEMS;
    window->n_items++;
    if (++window->n_in_block == n) {
        const double block_ns = (double)(now_ns - window->block_start_ns);
        window->block_sum += block_ns;
        window->block_squares += block_ns * block_ns;
        window->n_blocks++;
        window->n_in_block = 0;
        window->block_start_ns = now_ns;
    }
    return window->n_blocks >= GPSTI_WINDOW_BLOCKS && now_ns - window->start_ns >= GPSTI_WINDOW_NS;
}

GPSTI_INTERN double gpsti_window_noise(const gpsti_window* window) {
    const double n = (double)window->n_blocks;
    if (window->n_blocks < 2 || window->block_sum <= 0.0)
        return 1.0;
    const double mean = window->block_sum / n;
    const double variance = (window->block_squares - n * mean * mean) / (n - 1.0);
    return variance > 0.0 ? gpsti_sqrt64(variance / n) / mean : 0.0;
}
