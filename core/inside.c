/* core/inside.c -- is every core worth having inside a kernel? A pure policy:
   counts nanoseconds, runs nothing. */
#include "platform_internal.h"

#include "inside_internal.h"

#include <string.h>

#define GPSTI_INSIDE_LATEST 64 /* kernels: what was long ago says little */
#define GPSTI_INSIDE_PAUSE 8   /* times as many each time */
#define GPSTI_INSIDE_MOST 4096

GPSTI_INTERN void gpsti_inside_init(gpsti_inside* inside, int64_t about_alone_ns) {
    memset(inside, 0, sizeof *inside);
    inside->alone_ns = about_alone_ns;
}

GPSTI_INTERN bool gpsti_inside_wants(const gpsti_inside* inside) { return inside->n_alone == 0; }
GPSTI_INTERN bool gpsti_inside_doubts(const gpsti_inside* inside) { return inside->n_alone > 0 && inside->pause == 1; }

GPSTI_INTERN void gpsti_inside_sound(gpsti_inside* inside) {
    if (inside->n_alone == 0)
        inside->n_alone = 1;
}

/* Where others have work for the cores, too, a kernel waits for the last of its threads, and all of them can take many
   times as long as one. Often that is soon over (threads that lie on one core are moved apart), so one thread has a
   kernel, and then every core again; where it is not, each time eight times as many. */
GPSTI_INTERN void gpsti_inside_note(gpsti_inside* inside, int64_t busy_ns) {
    if (inside->n_alone > 0) {
        inside->n_alone--;
        inside->alone_ns = busy_ns;
        return;
    }
    inside->n++;
    inside->total_ns += busy_ns;
    if (inside->total_ns > inside->n * inside->alone_ns) {
        inside->pause = inside->pause == 0                   ? 1
                        : inside->pause < GPSTI_INSIDE_MOST ? GPSTI_INSIDE_PAUSE * inside->pause
                                                            : inside->pause;
        inside->n_alone = inside->pause;
        inside->n = inside->total_ns = 0;
    } else if (inside->n == GPSTI_INSIDE_LATEST) {
        inside->n /= 2;
        inside->total_ns /= 2;
    }
}
