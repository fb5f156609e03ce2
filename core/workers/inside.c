/* core/workers/inside.c -- is every core worth having inside a kernel? A pure policy:
   counts nanoseconds, runs nothing. */
#include "../base/platform_internal.h"

#include "inside_internal.h"

#include <string.h>

#define GPSTI_INSIDE_LATEST 64 /* kernels: what was long ago says little */
#define GPSTI_INSIDE_PAUSE 8   /* times as many each time */
#define GPSTI_INSIDE_MOST 4096
#define GPSTI_INSIDE_LOST_PART 16 /* of a kernel's time on every core: so much of it may be lost */
#define GPSTI_INSIDE_JOIN_NS 1000 /* and of each thread's, to begin and to end with the others */

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

GPSTI_INTERN void gpsti_inside_put_off(gpsti_inside* inside) { inside->n_alone = inside->pause = GPSTI_INSIDE_PAUSE; }

/* One that took long is nothing: threads were made, or the system had to do. */
GPSTI_INTERN int64_t gpsti_inside_late_ns(const gpsti_inside* inside) {
    return inside->n < 2 ? 0 : (inside->total_ns - inside->most_ns) / (inside->n - 1) - inside->least_ns;
}

/* The briefer a kernel is and the more threads meet at its end, the more. */
GPSTI_INTERN int64_t gpsti_inside_lost_ns(const gpsti_inside* inside, int64_t wide_ns, int64_t n_threads) {
    const int64_t lost_ns = wide_ns / GPSTI_INSIDE_LOST_PART + n_threads * GPSTI_INSIDE_JOIN_NS;
    const int64_t late_ns = gpsti_inside_late_ns(inside);
    return lost_ns > late_ns ? lost_ns : late_ns;
}

GPSTI_INTERN int64_t gpsti_inside_alone_more_ns(const gpsti_inside* inside, int64_t n_threads) {
    const int64_t more_ns = inside->n > 0 ? inside->least_ns * n_threads - inside->total_ns / inside->n : 0;
    return more_ns > 0 ? more_ns : 0;
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
    inside->least_ns = inside->least_ns == 0 || busy_ns < inside->least_ns ? busy_ns : inside->least_ns;
    inside->most_ns = busy_ns > inside->most_ns ? busy_ns : inside->most_ns;
    if (inside->total_ns > inside->n * inside->alone_ns) {
        inside->pause = inside->pause == 0                   ? 1
                        : inside->pause < GPSTI_INSIDE_MOST ? GPSTI_INSIDE_PAUSE * inside->pause
                                                            : inside->pause;
        inside->n_alone = inside->pause;
        inside->n = inside->total_ns = inside->most_ns = 0;
    } else if (inside->n == GPSTI_INSIDE_LATEST) {
        inside->n /= 2;
        inside->total_ns /= 2;
        inside->most_ns /= 2;
    }
}
