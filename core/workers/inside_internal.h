/* core/workers/inside_internal.h -- every core inside a kernel, or one thread, as a pure
   policy: what kernels took in, which way the next one takes out. */
#ifndef GPSTI_INSIDE_INTERNAL_H
#define GPSTI_INSIDE_INTERNAL_H

#include "../base/base_internal.h"

typedef struct gpsti_inside {
    int64_t alone_ns;  /* a kernel on one thread: about, until one was measured */
    int64_t total_ns;  /* of the latest ones on every core */
    int64_t most_ns;   /* and of the longest of them */
    int64_t n;
    int64_t least_ns;  /* of the shortest of all */
    uint32_t n_alone;  /* so many to come have one thread */
    uint32_t pause;    /* so many had, the last time every core took longer */
} gpsti_inside;

GPSTI_INTERN void gpsti_inside_init(gpsti_inside* inside, int64_t about_alone_ns);
/* Is the next kernel to have every core? */
GPSTI_INTERN bool gpsti_inside_wants(const gpsti_inside* inside);
/* Is it not, but the one after it? So it is where every core was no better for the first time, which is soon over. */
GPSTI_INTERN bool gpsti_inside_doubts(const gpsti_inside* inside);
/* The next one is to have one thread, to know what that takes. */
GPSTI_INTERN void gpsti_inside_sound(gpsti_inside* inside);
/* Nor is every core expected to be better: some have one thread before it is tried. */
GPSTI_INTERN void gpsti_inside_put_off(gpsti_inside* inside);
/* What a kernel on every core took, in the mean and but for the longest, beyond the shortest; 0 = too few to say. */
GPSTI_INTERN int64_t gpsti_inside_late_ns(const gpsti_inside* inside);
/* What such a kernel, of wide_ns on n_threads, may lose: that, or what is lost anyway. */
GPSTI_INTERN int64_t gpsti_inside_lost_ns(const gpsti_inside* inside, int64_t wide_ns, int64_t n_threads);
/* By the shortest, which nothing was in the way of: about so much more than in the mean one takes on one thread. */
GPSTI_INTERN int64_t gpsti_inside_alone_more_ns(const gpsti_inside* inside, int64_t n_threads);
/* What it took, that way. */
GPSTI_INTERN void gpsti_inside_note(gpsti_inside* inside, int64_t busy_ns);

#endif
