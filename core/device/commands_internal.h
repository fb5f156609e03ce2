/* core/device/commands_internal.h -- a command list: copies, fills and launches as bytes, in order, with the lists that
   they point to. What a stream keeps while it records, and what a graph is made of. */
#ifndef GPSTI_COMMANDS_INTERNAL_H
#define GPSTI_COMMANDS_INTERNAL_H

#include "../../backends/backend.h"

typedef struct gpsti_copied_rows {
    void* dst;
    size_t dst_pitch_bytes;
    const void* src;
    size_t src_pitch_bytes, row_bytes, n_rows;
} gpsti_copied_rows;

/* Zeroed, but for host, it is empty. Its bytes hold no address of its own: two lists that do the same are equal. */
typedef struct gpsti_commands {
    gpsti_host* host;
    uint8_t* data;
    size_t n_bytes, capacity;
    uint32_t n;
    uint32_t tag;        /* which the next commands get; */
    uint32_t failed_tag; /* and that of the one at which the latest gpsti_commands_put ended */
    gpst_result result; /* the first command that found no memory; it and what came after it are not in the list */
    bool in_use;        /* a device that computes on the host may still read it: until its stream is idle */
} gpsti_commands;

GPSTI_INTERN void gpsti_commands_free(gpsti_commands* commands);
GPSTI_INTERN void gpsti_commands_reset(gpsti_commands* commands); /* its memory stays */
/* A list in no more memory than it needs. MEMORY. */
GPSTI_INTERN gpst_result gpsti_commands_copy(const gpsti_commands* from, gpsti_commands* to);
GPSTI_INTERN bool gpsti_commands_are_equal(const gpsti_commands* a, const gpsti_commands* b);
/* Of all that it does; and of its kinds, kernels and sizes alone: its topology. */
GPSTI_INTERN void gpsti_commands_hash(const gpsti_commands* commands, uint64_t* all, uint64_t* topology);

/* Each: OK or MEMORY. */
GPSTI_INTERN gpst_result gpsti_commands_add_copy(gpsti_commands* commands, void* dst, const void* src, size_t bytes);
GPSTI_INTERN gpst_result gpsti_commands_add_rows(gpsti_commands* commands, const gpsti_copied_rows* rows);
GPSTI_INTERN gpst_result gpsti_commands_add_fill(gpsti_commands* commands, void* dst, int value, size_t bytes);
GPSTI_INTERN gpst_result gpsti_commands_add_launch(gpsti_commands* commands, const gpsti_kernel* kernel,
                                                   const void* args, size_t args_bytes, const gpsti_exec* exec);

/* Room for so many bytes, so that recording them allocates nothing. MEMORY. */
GPSTI_INTERN gpst_result gpsti_commands_reserve(gpsti_commands* commands, size_t n_bytes);

/* Puts them on the stream, one after the other, up to the first that fails, whose tag goes to *failed_tag (NULL: to
   nowhere). On a device that computes on the host later the list must live until the stream has been there. */
GPSTI_INTERN gpst_result gpsti_commands_put(const gpsti_commands* commands, gpsti_stream* stream, uint32_t* failed_tag);

#endif
