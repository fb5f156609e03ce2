/* core/base/pin_internal.h -- which cores a context's threads are bound to, from the
   words that ask for it. Starts no thread. */
#ifndef GPSTI_PIN_INTERNAL_H
#define GPSTI_PIN_INTERNAL_H

#include "base_internal.h"

typedef struct gpsti_pin {
    bool on;
    uint32_t n_cores;
    gpsti_cores cores;
    char text[96]; /* "none", "cores 0-3,8", "none: not on this system" */
} gpsti_pin;

/* asked: NULL, "none", "cores" or a list. ARGUMENT for what is no list, or a core this process may not run on. */
GPSTI_INTERN gpst_result gpsti_pin_parse(const char* asked, gpsti_pin* out);
/* Workers have a core each, in turn; threads that block on files may run on any of them. pin NULL or off: nothing. */
GPSTI_INTERN gpst_result gpsti_pin_worker(const gpsti_pin* pin, gpsti_thread* thread, uint32_t index);
GPSTI_INTERN gpst_result gpsti_pin_io(const gpsti_pin* pin, gpsti_thread* thread);

#endif
