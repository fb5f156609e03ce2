/* core/steps/device_internal.h -- what the files of device steps share. */
#ifndef GPSTI_STEP_DEVICE_INTERNAL_H
#define GPSTI_STEP_DEVICE_INTERNAL_H

#include "../../kernels/mask/mask_internal.h"
#include "../../kernels/warp/warp_internal.h"
#include "call_internal.h"

/* ---- launch.c: one stage of a batch put on the stream of its first item. Not locked ----------------- */

/* What a built-in stage will write: how many pictures, their shape, and host memory where the host will read them or
   computes them. */
GPSTI_INTERN gpst_result gpsti_launch_shape(gpsti_item* item, const gpsti_step* step, uint32_t stage_index);
GPSTI_INTERN gpst_result gpsti_launch_stage(const gpsti_batch* batch, uint32_t stage_index, uint32_t worker_index,
                                            char* reason);

/* ---- device_times.c --------------------------------------------------------------------------------- */

/* When the group's events happened, from a device that has reported: its calls take time. Not locked. */
GPSTI_INTERN void gpsti_device_read_times(gpsti_item* first);
/* The item's part of device work that is done. Locked. */
GPSTI_INTERN void gpsti_device_count(gpsti_item* item, const gpsti_step* step);

#endif
