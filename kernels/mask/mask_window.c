/* kernels/mask/mask_window.c -- the rules of what looks at a window of pixels:
   morphology, smoothing, refinement. Computes no pixel; mask_window_cpu.c does. */
#include "../../core/base/platform_internal.h"

#include "mask_internal.h"

#include <string.h>

#define GPSTI_WINDOW_CHECK_SIZE(function, size)                                                                   \
    GPSTI_FAIL_IF((size) != 3 && (size) != 5, GPST_ERROR_ARGUMENT, "%s: size=%u: must be 3 or 5", function,       \
                  (unsigned)(size))

/* Masks of one size, apart in memory. */
GPSTI_PRIVATE gpst_result gpsti_window_masks(const char* function, const char* source_name, const gpst_image* source,
                                             const gpst_image* output, gpsti_window_job* out) {
    gpst_image from = GPST_ZERO, to = GPST_ZERO;
    gpsti_span source_span = GPST_ZERO, output_span = GPST_ZERO;
    GPSTI_TRY(gpsti_mask_check_mask(function, source_name, source, &from, &source_span));
    GPSTI_TRY(gpsti_mask_check_mask(function, "output", output, &to, &output_span));
    GPSTI_TRY(gpsti_mask_check_pair(function, "output", source_span, from.width, from.height, output_span, to.width,
                                    to.height));
    memset(out, 0, sizeof *out);
    out->source = (const uint8_t*)from.data, out->source_pitch = from.pitch_bytes;
    out->output = (uint8_t*)to.data, out->output_pitch = to.pitch_bytes;
    out->width = (int32_t)from.width, out->height = (int32_t)from.height;
    return GPST_OK;
}

/* ---- morphology, smoothing ---------------------------------------------------------- */
GPSTI_INTERN gpst_result gpsti_morph_job_init(const gpst_image* mask, gpst_morph op, uint32_t size,
                                              const gpst_image* output, gpsti_window_job* out) {
    GPSTI_FAIL_IF((int)op < GPST_MORPH_ERODE || (int)op > GPST_MORPH_CLOSE, GPST_ERROR_ARGUMENT,
                  "gpst_mask_morph: op=%d: must be ERODE, DILATE, OPEN or CLOSE", (int)op);
    GPSTI_WINDOW_CHECK_SIZE("gpst_mask_morph", size);
    GPSTI_TRY(gpsti_window_masks("gpst_mask_morph", "mask", mask, output, out));
    out->op = op == GPST_MORPH_ERODE    ? GPSTI_WINDOW_ERODE
              : op == GPST_MORPH_DILATE ? GPSTI_WINDOW_DILATE
              : op == GPST_MORPH_OPEN   ? GPSTI_WINDOW_OPEN
                                        : GPSTI_WINDOW_CLOSE;
    out->radius = (int32_t)size / 2;
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_morph(const gpst_image* mask, gpst_morph op, uint32_t size, const gpst_image* output,
                                     uint32_t n_threads) {
    gpsti_window_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_morph_job_init(mask, op, size, output, &job));
    gpsti_window_compute(&job, n_threads);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_smooth_job_init(const gpst_image* source, gpst_smooth kind, uint32_t size,
                                               const gpst_image* output, gpsti_window_job* out) {
    GPSTI_FAIL_IF(kind != GPST_SMOOTH_BOX && kind != GPST_SMOOTH_GAUSSIAN, GPST_ERROR_ARGUMENT,
                  "gpst_mask_smooth: kind=%d: must be BOX or GAUSSIAN", (int)kind);
    GPSTI_WINDOW_CHECK_SIZE("gpst_mask_smooth", size);
    GPSTI_TRY(gpsti_window_masks("gpst_mask_smooth", "source", source, output, out));
    out->op = kind == GPST_SMOOTH_BOX ? GPSTI_WINDOW_BOX : GPSTI_WINDOW_GAUSSIAN;
    out->radius = (int32_t)size / 2;
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_smooth(const gpst_image* source, gpst_smooth kind, uint32_t size,
                                      const gpst_image* output, uint32_t n_threads) {
    gpsti_window_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_smooth_job_init(source, kind, size, output, &job));
    gpsti_window_compute(&job, n_threads);
    return GPST_OK;
}

/* ---- refinement ---------------------------------------------------------------------- */
GPSTI_PRIVATE gpst_result gpsti_refine_guide(const gpst_image* guide, uint32_t tolerance, gpsti_span output,
                                             gpsti_window_job* out) {
    gpst_image from = GPST_ZERO;
    gpsti_span span = GPST_ZERO;
    if (!guide)
        return GPST_OK;
    GPSTI_TRY(gpsti_mask_check_image("gpst_mask_refine", "guide", guide, &from, &span));
    GPSTI_FAIL_IF(from.dtype != GPST_DTYPE_U8, GPST_ERROR_ARGUMENT, "gpst_mask_refine: guide.dtype=%d: must be U8",
                  (int)guide->dtype);
    GPSTI_FAIL_IF(from.format == GPST_FORMAT_TENSOR, GPST_ERROR_ARGUMENT,
                  "gpst_mask_refine: guide.format=TENSOR: must have colours");
    GPSTI_FAIL_IF(gpsti_image_is_yuv(from.format), GPST_ERROR_ARGUMENT,
                  "gpst_mask_refine: guide.format=%d: must not have planes of chroma", (int)guide->format);
    GPSTI_FAIL_IF(from.layout == GPST_LAYOUT_CHW && from.format != GPST_FORMAT_GRAY, GPST_ERROR_ARGUMENT,
                  "gpst_mask_refine: guide.layout=CHW: must be HWC");
    GPSTI_FAIL_IF(from.width != (uint32_t)out->width || from.height != (uint32_t)out->height, GPST_ERROR_ARGUMENT,
                  "gpst_mask_refine: guide.width=%u, height=%u: must be the labels' %d x %d", (unsigned)from.width,
                  (unsigned)from.height, (int)out->width, (int)out->height);
    GPSTI_FAIL_IF(gpsti_spans_overlap(span, output), GPST_ERROR_ARGUMENT,
                  "gpst_mask_refine: output: must not overlap guide");
    GPSTI_FAIL_IF(tolerance > 255, GPST_ERROR_ARGUMENT, "gpst_mask_refine: tolerance=%u: must be 0 to 255",
                  (unsigned)tolerance);
    out->guide = (const uint8_t*)from.data, out->guide_pitch = from.pitch_bytes;
    out->guide_channels = (int32_t)gpst_format_channels(from.format);
    out->tolerance = (int32_t)tolerance;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_refine_job_init(const gpst_labels* labels, const gpst_image* guide, uint32_t tolerance,
                                               const gpst_labels* output, gpsti_window_job* out) {
    gpst_labels from = GPST_ZERO, to = GPST_ZERO;
    gpsti_span source_span = GPST_ZERO, output_span = GPST_ZERO;
    GPSTI_TRY(gpsti_labels_check("gpst_mask_refine", "labels", labels, &from, &source_span));
    GPSTI_TRY(gpsti_labels_check("gpst_mask_refine", "output", output, &to, &output_span));
    GPSTI_FAIL_IF(to.n_classes != from.n_classes, GPST_ERROR_ARGUMENT,
                  "gpst_mask_refine: output.n_classes=%u: must be the %u of labels", (unsigned)to.n_classes,
                  (unsigned)from.n_classes);
    GPSTI_TRY(gpsti_mask_check_pair("gpst_mask_refine", "output", source_span, from.width, from.height, output_span,
                                    to.width, to.height));
    memset(out, 0, sizeof *out);
    out->op = GPSTI_WINDOW_REFINE;
    out->radius = 1;
    out->wide = from.n_classes > 256;
    out->source = (const uint8_t*)from.data, out->source_pitch = from.pitch_bytes;
    out->output = (uint8_t*)to.data, out->output_pitch = to.pitch_bytes;
    out->width = (int32_t)from.width, out->height = (int32_t)from.height;
    return gpsti_refine_guide(guide, tolerance, output_span, out);
}

GPST_API gpst_result gpst_mask_refine(const gpst_labels* labels, const gpst_image* guide, uint32_t tolerance,
                                      const gpst_labels* output, uint32_t n_threads) {
    gpsti_window_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_refine_job_init(labels, guide, tolerance, output, &job));
    gpsti_window_compute(&job, n_threads);
    return GPST_OK;
}
