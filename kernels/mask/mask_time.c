/* kernels/mask/mask_time.c -- the rules of the mean over time, its state, and who calls it: the public functions and a
   backend's kernel. Computes no pixel; mask_time_cpu.c and mask_time.cu.h do. */
#include "../../core/base/platform_internal.h"

#include "mask_internal.h"
#include "mask_launch_internal.h"

#include <string.h>

#define GPSTI_MASK_TIME_FULL 65280.0 /* 255 in units of 1/256 */
#define GPSTI_MASK_TIME_STATE_WIDTH (GPSTI_MASK_TIME_PARTS * 8 / 2) /* at least, of u16: room for the sums */

/* ---- the state ----------------------------------------------------------------------------- */

/* Rows of whole vectors, and one more for the sums. */
GPSTI_PRIVATE gpst_image gpsti_mask_time_state(uint32_t width, uint32_t height) {
    const uint32_t whole = (width + 15) / 16 * 16;
    gpst_image state;
    memset(&state, 0, sizeof state);
    state.width = whole < GPSTI_MASK_TIME_STATE_WIDTH ? GPSTI_MASK_TIME_STATE_WIDTH : whole;
    state.height = height + 1;
    state.format = GPST_FORMAT_GRAY;
    state.dtype = GPST_DTYPE_U16;
    state.pitch_bytes = (int64_t)gpst_image_row_bytes(&state);
    return state;
}

GPSTI_PRIVATE gpst_result gpsti_mask_time_check_desc(const char* function, const gpst_mask_desc* desc) {
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, "%s: desc=NULL: required", function);
    GPSTI_FAIL_IF(desc->kind != GPST_MASK_TIME, GPST_ERROR_ARGUMENT, "%s: desc.kind=%d: must be TIME", function,
                  (int)desc->kind);
    return gpsti_mask_desc_rules(desc, function);
}

GPST_API gpst_result gpst_mask_query_state(const gpst_mask_desc* desc, const gpst_image* from, gpst_image* out) {
    const char* function = "gpst_mask_query_state";
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: required", function);
    memset(out, 0, sizeof *out);
    GPSTI_TRY(gpsti_mask_time_check_desc(function, desc));
    GPSTI_FAIL_IF(!from, GPST_ERROR_ARGUMENT, "%s: from=NULL: required", function);
    GPSTI_FAIL_IF(from->width < 1 || from->width > GPSTI_WARP_MAX_SIDE || from->height < 1 ||
                      from->height > GPSTI_WARP_MAX_SIDE,
                  GPST_ERROR_ARGUMENT, "%s: from.width=%u, height=%u: must be 1 to %d", function, from->width,
                  from->height, GPSTI_WARP_MAX_SIDE);
    *out = gpsti_mask_time_state(from->width, from->height);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_time_check_state(const char* function, const gpst_image* state, uint32_t width,
                                                      uint32_t height, gpst_image* resolved, gpsti_span* span) {
    const gpst_image wanted = gpsti_mask_time_state(width, height);
    GPSTI_FAIL_IF(!state, GPST_ERROR_ARGUMENT, "%s: state=NULL: required", function);
    GPSTI_FAIL_IF(state->width != wanted.width || state->height != wanted.height || state->format != wanted.format ||
                      state->dtype != wanted.dtype,
                  GPST_ERROR_ARGUMENT,
                  "%s: state=%ux%u, format=%d, dtype=%d: must be what gpst_mask_query_state says: %ux%u, GRAY and U16",
                  function, state->width, state->height, (int)state->format, (int)state->dtype, wanted.width,
                  wanted.height);
    GPSTI_TRY(gpsti_image_check(state, function, "state"));
    GPSTI_FAIL_IF((uintptr_t)state->data % sizeof(uint64_t) != 0, GPST_ERROR_ARGUMENT,
                  "%s: state.data=%p: must be a multiple of 8", function, state->data);
    *resolved = gpsti_image_resolved(state);
    span->begin = (uintptr_t)gpsti_image_lowest(resolved);
    return gpst_image_bytes(resolved, &span->bytes);
}

/* ---- the job ---------------------------------------------------------------------------------- */

/* A share of a range to nearest. The product is exact: 24 bits by at most 17. */
GPSTI_PRIVATE uint32_t gpsti_mask_time_fixed(float share, float otherwise, double range) {
    return (uint32_t)((double)(share > 0.0f ? share : otherwise) * range + 0.5);
}

GPSTI_PRIVATE void gpsti_mask_time_set(const gpst_mask_desc* desc, bool restart, gpsti_mask_time_job* job) {
    const uint32_t weight = gpsti_mask_time_fixed(desc->weight, 0.35f, 65536.0);
    job->weight = (uint16_t)(weight < 1 ? 1 : weight > 65535 ? 65535 : weight);
    job->change = (uint16_t)gpsti_mask_time_fixed(desc->change, 0.5f, GPSTI_MASK_TIME_FULL);
    job->restart = restart;
    job->cut = UINT64_MAX;
    if (!restart && desc->cut <= 1.0f) {
        const uint32_t cut = gpsti_mask_time_fixed(desc->cut, 0.25f, GPSTI_MASK_TIME_FULL);
        job->cut = (uint64_t)job->width * job->height * (cut < 1 ? 1 : cut);
    }
}

GPSTI_INTERN gpst_result gpsti_mask_time_job_init(const char* function, const gpst_mask_desc* desc,
                                                  const gpst_image* from, const gpst_image* to, const gpst_image* state,
                                                  bool restart, gpsti_mask_time_job* out) {
    gpst_image source = GPST_ZERO, output = GPST_ZERO, means = GPST_ZERO;
    gpsti_span source_span = GPST_ZERO, output_span = GPST_ZERO, state_span = GPST_ZERO;
    GPSTI_TRY(gpsti_mask_time_check_desc(function, desc));
    GPSTI_TRY(gpsti_mask_check_mask(function, "from", from, &source, &source_span));
    GPSTI_TRY(gpsti_mask_check_mask(function, "to", to, &output, &output_span));
    GPSTI_TRY(gpsti_mask_check_pair(function, "to", source_span, source.width, source.height, output_span,
                                    output.width, output.height));
    GPSTI_TRY(gpsti_mask_time_check_state(function, state, source.width, source.height, &means, &state_span));
    GPSTI_FAIL_IF(gpsti_spans_overlap(state_span, source_span) || gpsti_spans_overlap(state_span, output_span),
                  GPST_ERROR_ARGUMENT, "%s: state: must overlap neither from nor to", function);
    memset(out, 0, sizeof *out);
    out->source = (const uint8_t*)source.data, out->source_pitch = source.pitch_bytes;
    out->output = (uint8_t*)output.data, out->output_pitch = output.pitch_bytes;
    out->state = (uint8_t*)means.data, out->state_pitch = means.pitch_bytes;
    out->width = source.width, out->height = source.height;
    gpsti_mask_time_set(desc, restart, out);
    return GPST_OK;
}

/* ---- on the CPU and on a GPU --------------------------------------------------------------------- */
GPST_API gpst_result gpst_mask_time(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* to,
                                    const gpst_image* state, bool restart, uint32_t n_threads) {
    gpsti_mask_time_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_mask_time_job_init("gpst_mask_time", desc, from, to, state, restart, &job));
    gpsti_mask_time_compute(&job, gpsti_simd_level_query(), n_threads);
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_time_launch(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* to,
                                           const gpst_image* state, bool restart, void* stream) {
    const char* function = "gpst_mask_time_launch";
    gpsti_mask_time_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_mask_time_job_init(function, desc, from, to, state, restart, &job));
    return GPSTI_LAUNCH_GPU(function, stream, gpsti_mask_time_gpu_launch(function, &job, stream));
}

/* ---- many, as a backend's kernel ------------------------------------------------------------------ */
GPSTI_PRIVATE gpst_result gpsti_mask_time_host(const void* args, const gpsti_exec* exec) {
    const gpsti_mask_time_args* const a = (const gpsti_mask_time_args*)args;
    for (uint32_t i = 0; i < a->n; i++)
        GPSTI_TRY(gpst_mask_time(a->desc, &a->from[i], &a->to[i], &a->states[i], a->restart,
                                 exec ? exec->n_threads : 1));
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_time_gpu(const void* args, void* native_stream) {
    const gpsti_mask_time_args* const a = (const gpsti_mask_time_args*)args;
    for (uint32_t i = 0; i < a->n; i++)
        GPSTI_TRY(gpst_mask_time_launch(a->desc, &a->from[i], &a->to[i], &a->states[i], a->restart, native_stream));
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_mask_time_lists(void* args, gpsti_lists* lists) {
    gpsti_mask_time_args* const a = (gpsti_mask_time_args*)args;
    const size_t bytes = a->n * sizeof *a->from;
    a->desc = (const gpst_mask_desc*)gpsti_lists_take(lists, a->desc, sizeof *a->desc);
    a->from = (const gpst_image*)gpsti_lists_take(lists, a->from, bytes);
    a->to = (const gpst_image*)gpsti_lists_take(lists, a->to, bytes);
    a->states = (const gpst_image*)gpsti_lists_take(lists, a->states, bytes);
}

GPSTI_INTERN const gpsti_kernel* gpsti_mask_time_kernel(void) {
    static const gpsti_kernel kernel = {"mask_time", gpsti_mask_time_host, gpsti_mask_time_gpu,
                                        gpsti_mask_time_lists};
    return &kernel;
}
