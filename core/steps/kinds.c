/* core/steps/kinds.c -- which kind of step a stage is. */
#include "../base/platform_internal.h"

#include "call_internal.h"

GPSTI_INTERN const gpsti_step_kind* gpsti_kind_of(gpst_stage_kind kind) {
    switch (kind) {
    case GPST_STAGE_READ:
        return gpsti_step_read();
    case GPST_STAGE_HOST:
        return gpsti_step_host();
    case GPST_STAGE_WARP:
    case GPST_STAGE_MASK:
    case GPST_STAGE_DEVICE:
        return gpsti_step_device();
    case GPST_STAGE_DECODE:
        return gpsti_step_decode();
    case GPST_STAGE_ENCODE:
        return gpsti_step_encode();
    case GPST_STAGE_WRITE:
        return gpsti_step_write();
    default:
        return NULL;
    }
}
