/* kernels/mask/mask.c -- the rules of argmax, threshold and bit masks, and the logit
   of a probability. Computes no pixel; mask_cpu.c does. */
#include "../../core/base/platform_internal.h"

#include "../exact/half_internal.h"
#include "mask_internal.h"

/* ---- memory ------------------------------------------------------------------------ */
GPSTI_INTERN bool gpsti_spans_overlap(gpsti_span a, gpsti_span b) {
    return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

/* (n_rows - 1) * pitch + row_bytes of memory; 0 when it does not fit. */
GPSTI_PRIVATE size_t gpsti_mask_extent(uint64_t n_rows, int64_t pitch, uint64_t row_bytes) {
    size_t bytes = 0;
    const bool fits = (uint64_t)(size_t)pitch == (uint64_t)pitch && (uint64_t)(size_t)row_bytes == row_bytes &&
                      gpsti_size_mul((size_t)(n_rows - 1), (size_t)pitch, &bytes) &&
                      gpsti_size_add(bytes, (size_t)row_bytes, &bytes);
    return fits ? bytes : 0;
}

GPSTI_PRIVATE gpst_result gpsti_mask_check_sides(const char* function, const char* member, uint32_t width,
                                                 uint32_t height) {
    GPSTI_FAIL_IF(width < 1 || width > GPSTI_WARP_MAX_SIDE || height < 1 || height > GPSTI_WARP_MAX_SIDE,
                  GPST_ERROR_ARGUMENT, "%s: %s.width=%u, height=%u: must be 1 to %d", function, member, (unsigned)width,
                  (unsigned)height, GPSTI_WARP_MAX_SIDE);
    return GPST_OK;
}

/* A pitch, resolved, of rows of row_bytes that hold elements of unit bytes. */
GPSTI_PRIVATE gpst_result gpsti_mask_check_rows(const char* function, const char* member, const void* data,
                                                int64_t pitch_bytes, uint64_t row_bytes, uint32_t unit) {
    GPSTI_FAIL_IF(!data, GPST_ERROR_ARGUMENT, "%s: %s.data=NULL: required", function, member);
    GPSTI_FAIL_IF((uintptr_t)data % unit != 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.data=%p: must be a multiple of the %u bytes of an element", function, member, data,
                  (unsigned)unit);
    GPSTI_FAIL_IF(pitch_bytes < 0 || (uint64_t)pitch_bytes < row_bytes, GPST_ERROR_ARGUMENT,
                  "%s: %s.pitch_bytes=%lld: must be 0 or at least the %llu bytes of a row", function, member,
                  (long long)pitch_bytes, (unsigned long long)row_bytes);
    GPSTI_FAIL_IF(pitch_bytes % unit != 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.pitch_bytes=%lld: must be a multiple of the %u bytes of an element", function, member,
                  (long long)pitch_bytes, (unsigned)unit);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_mask_check_image(const char* function, const char* member, const gpst_image* image,
                                                gpst_image* resolved, gpsti_span* span) {
    size_t bytes = 0;
    GPSTI_FAIL_IF(!image, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function, member);
    GPSTI_TRY(gpsti_image_check(image, function, member));
    GPSTI_TRY(gpsti_mask_check_sides(function, member, image->width, image->height));
    *resolved = gpsti_image_resolved(image);
    GPSTI_TRY(gpst_image_bytes(resolved, &bytes));
    span->begin = (uintptr_t)gpsti_image_lowest(resolved);
    span->bytes = bytes;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_mask_check_mask(const char* function, const char* member, const gpst_image* image,
                                               gpst_image* resolved, gpsti_span* span) {
    GPSTI_TRY(gpsti_mask_check_image(function, member, image, resolved, span));
    GPSTI_FAIL_IF(resolved->format != GPST_FORMAT_GRAY || resolved->dtype != GPST_DTYPE_U8, GPST_ERROR_ARGUMENT,
                  "%s: %s.format=%d, dtype=%d: must be GRAY and U8", function, member, (int)image->format,
                  (int)image->dtype);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_mask_check_pair(const char* function, const char* member, gpsti_span source,
                                               uint32_t width, uint32_t height, gpsti_span output,
                                               uint32_t output_width, uint32_t output_height) {
    GPSTI_FAIL_IF(width != output_width || height != output_height, GPST_ERROR_ARGUMENT,
                  "%s: %s.width=%u, height=%u: must be the source's %u x %u", function, member, (unsigned)output_width,
                  (unsigned)output_height, (unsigned)width, (unsigned)height);
    GPSTI_FAIL_IF(gpsti_spans_overlap(source, output), GPST_ERROR_ARGUMENT, "%s: %s: must not overlap the source",
                  function, member);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_labels_check(const char* function, const char* member, const gpst_labels* labels,
                                            gpst_labels* resolved, gpsti_span* span) {
    GPSTI_FAIL_IF(!labels, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function, member);
    GPSTI_TRY(gpsti_mask_check_sides(function, member, labels->width, labels->height));
    GPSTI_FAIL_IF(labels->n_classes < 1 || labels->n_classes > GPSTI_MASK_MAX_CLASSES, GPST_ERROR_ARGUMENT,
                  "%s: %s.n_classes=%u: must be 1 to %d", function, member, (unsigned)labels->n_classes,
                  GPSTI_MASK_MAX_CLASSES);
    const uint32_t unit = labels->n_classes > 256 ? 2 : 1;
    const uint64_t row_bytes = (uint64_t)labels->width * unit;
    *resolved = *labels;
    if (labels->pitch_bytes == 0)
        resolved->pitch_bytes = (int64_t)row_bytes;
    GPSTI_TRY(gpsti_mask_check_rows(function, member, labels->data, resolved->pitch_bytes, row_bytes, unit));
    span->begin = (uintptr_t)labels->data;
    span->bytes = gpsti_mask_extent(labels->height, resolved->pitch_bytes, row_bytes);
    GPSTI_FAIL_IF(span->bytes == 0, GPST_ERROR_OVERFLOW, "%s: %s: %u rows of %lld bytes do not fit in memory", function,
                  member, (unsigned)labels->height, (long long)resolved->pitch_bytes);
    return GPST_OK;
}

/* ---- argmax ------------------------------------------------------------------------- */
#define GPSTI_ARGMAX_RULE(condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "gpst_mask_argmax: " __VA_ARGS__)

GPSTI_PRIVATE gpst_result gpsti_argmax_check_logits(const gpst_logits* logits, gpst_logits* resolved,
                                                    gpsti_span* span) {
    GPSTI_ARGMAX_RULE(logits, "logits=NULL: required");
    GPSTI_TRY(gpsti_mask_check_sides("gpst_mask_argmax", "logits", logits->width, logits->height));
    GPSTI_ARGMAX_RULE(logits->n_classes >= 1 && logits->n_classes <= GPSTI_MASK_MAX_CLASSES,
                      "logits.n_classes=%u: must be 1 to %d", (unsigned)logits->n_classes, GPSTI_MASK_MAX_CLASSES);
    GPSTI_ARGMAX_RULE(logits->dtype == GPST_DTYPE_F16 || logits->dtype == GPST_DTYPE_F32,
                      "logits.dtype=%d: required, F16 or F32", (int)logits->dtype);
    GPSTI_ARGMAX_RULE(logits->layout == GPST_LAYOUT_CHW || logits->layout == GPST_LAYOUT_HWC,
                      "logits.layout=%d: required, CHW or HWC", (int)logits->layout);
    const bool planes = logits->layout == GPST_LAYOUT_CHW;
    const uint32_t unit = gpst_dtype_bytes(logits->dtype), n_planes = planes ? logits->n_classes : 1;
    const uint64_t row_bytes = (uint64_t)logits->width * unit * (planes ? 1 : logits->n_classes);
    *resolved = *logits;
    if (logits->pitch_bytes == 0)
        resolved->pitch_bytes = (int64_t)row_bytes;
    GPSTI_TRY(
        gpsti_mask_check_rows("gpst_mask_argmax", "logits", logits->data, resolved->pitch_bytes, row_bytes, unit));
    const size_t plane_extent = gpsti_mask_extent(logits->height, resolved->pitch_bytes, row_bytes);
    GPSTI_FAIL_IF(plane_extent == 0, GPST_ERROR_OVERFLOW,
                  "gpst_mask_argmax: logits: %u rows of %lld bytes do not fit in memory", (unsigned)logits->height,
                  (long long)resolved->pitch_bytes);
    GPSTI_ARGMAX_RULE(planes || logits->plane_bytes == 0, "logits.plane_bytes=%lld: only with layout=CHW",
                      (long long)logits->plane_bytes);
    if (planes && logits->plane_bytes == 0)
        resolved->plane_bytes = (int64_t)(plane_extent - (size_t)row_bytes) + resolved->pitch_bytes;
    GPSTI_ARGMAX_RULE(!planes || (resolved->plane_bytes >= (int64_t)row_bytes && resolved->plane_bytes % unit == 0),
                      "logits.plane_bytes=%lld: must be 0, or a multiple of %u and at least the %llu bytes of a row",
                      (long long)logits->plane_bytes, (unsigned)unit, (unsigned long long)row_bytes);
    span->begin = (uintptr_t)logits->data;
    span->bytes = gpsti_mask_extent(n_planes, planes ? resolved->plane_bytes : 0, plane_extent);
    GPSTI_FAIL_IF(span->bytes == 0, GPST_ERROR_OVERFLOW,
                  "gpst_mask_argmax: logits: %u planes of %lld bytes do not fit in memory", (unsigned)n_planes,
                  (long long)resolved->plane_bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_argmax_job_init(const gpst_logits* logits, const gpst_labels* labels,
                                               gpsti_argmax_job* out) {
    gpst_logits from = GPST_ZERO;
    gpst_labels to = GPST_ZERO;
    gpsti_span source = GPST_ZERO, output = GPST_ZERO;
    GPSTI_TRY(gpsti_argmax_check_logits(logits, &from, &source));
    GPSTI_TRY(gpsti_labels_check("gpst_mask_argmax", "labels", labels, &to, &output));
    GPSTI_ARGMAX_RULE(to.n_classes == from.n_classes, "labels.n_classes=%u: must be the %u of logits",
                      (unsigned)to.n_classes, (unsigned)from.n_classes);
    GPSTI_ARGMAX_RULE(!gpsti_spans_overlap(source, output), "labels.data=%p: must not overlap logits", to.data);
    const int64_t unit = gpst_dtype_bytes(from.dtype);
    const bool planes = from.layout == GPST_LAYOUT_CHW;
    memset(out, 0, sizeof *out);
    out->source = (const uint8_t*)from.data;
    out->source_pitch = from.pitch_bytes;
    out->pixel_bytes = planes ? unit : unit * from.n_classes;
    out->class_bytes = planes ? from.plane_bytes : unit;
    out->source_width = from.width, out->source_height = from.height;
    out->n_classes = from.n_classes;
    out->half = from.dtype == GPST_DTYPE_F16;
    out->resize = from.width != to.width || from.height != to.height;
    out->output = (uint8_t*)to.data;
    out->output_pitch = to.pitch_bytes;
    out->width = to.width, out->height = to.height;
    out->wide = to.n_classes > 256;
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_argmax(const gpst_logits* logits, const gpst_labels* labels, uint32_t n_threads) {
    gpsti_argmax_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_argmax_job_init(logits, labels, &job));
    GPSTI_TRY(gpsti_exact_check("gpst_mask_argmax"));
    gpsti_argmax_compute(&job, n_threads);
    return GPST_OK;
}

/* ---- threshold ------------------------------------------------------------------------ */
/* The key of the greatest half that is not above the threshold. */
GPSTI_PRIVATE int32_t gpsti_threshold_half_limit(float threshold) {
    const uint16_t nearest = gpsti_f16_from_f32(threshold);
    return gpsti_f16_key(nearest) - (gpsti_f32_from_f16(nearest) > threshold ? 1 : 0);
}

GPSTI_PRIVATE int32_t gpsti_threshold_byte_limit(float threshold) {
    return threshold < 0.0f ? -1 : threshold >= 255.0f ? 255 : (int32_t)threshold;
}

GPSTI_INTERN gpst_result gpsti_threshold_job_init(const char* function, const gpst_image* source, float threshold,
                                                  const gpst_image* mask, gpsti_mask_job* out) {
    gpst_image from = GPST_ZERO, to = GPST_ZERO;
    gpsti_span source_span = GPST_ZERO, output_span = GPST_ZERO;
    GPSTI_TRY(gpsti_mask_check_image(function, "source", source, &from, &source_span));
    GPSTI_FAIL_IF(from.format != GPST_FORMAT_GRAY, GPST_ERROR_ARGUMENT, "%s: source.format=%d: must be GRAY", function,
                  (int)from.format);
    GPSTI_FAIL_IF(from.dtype != GPST_DTYPE_U8 && from.dtype != GPST_DTYPE_F16 && from.dtype != GPST_DTYPE_F32,
                  GPST_ERROR_ARGUMENT, "%s: source.dtype=%d: must be U8, F16 or F32", function, (int)from.dtype);
    GPSTI_TRY(gpsti_mask_check_mask(function, "mask", mask, &to, &output_span));
    GPSTI_TRY(gpsti_mask_check_pair(function, "mask", source_span, from.width, from.height, output_span, to.width,
                                    to.height));
    memset(out, 0, sizeof *out);
    out->op = from.dtype == GPST_DTYPE_F32   ? GPSTI_MASK_ABOVE_F32
              : from.dtype == GPST_DTYPE_F16 ? GPSTI_MASK_ABOVE_F16
                                             : GPSTI_MASK_ABOVE_U8;
    out->source = (const uint8_t*)from.data;
    out->source_pitch = from.pitch_bytes;
    out->output = (uint8_t*)to.data;
    out->output_pitch = to.pitch_bytes;
    out->width = from.width, out->height = from.height;
    out->threshold = threshold;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    out->limit = out->op == GPSTI_MASK_ABOVE_F16 ? gpsti_threshold_half_limit(threshold)
                                                 : gpsti_threshold_byte_limit(threshold);
    gpsti_fp_leave(mode);
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_threshold(const gpst_image* source, float threshold, const gpst_image* mask,
                                         uint32_t n_threads) {
    gpsti_mask_job job = GPST_ZERO;
    GPSTI_FAIL_IF(!(threshold <= 0.0f || threshold > 0.0f), GPST_ERROR_ARGUMENT,
                  "gpst_mask_threshold: threshold=NaN: must be a number");
    GPSTI_TRY(gpsti_exact_check("gpst_mask_threshold"));
    GPSTI_TRY(gpsti_threshold_job_init("gpst_mask_threshold", source, threshold, mask, &job));
    gpsti_mask_compute(&job, n_threads);
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_threshold_sigmoid(const gpst_image* logits, double probability, const gpst_image* mask,
                                                 uint32_t n_threads) {
    gpsti_mask_job job = GPST_ZERO;
    GPSTI_FAIL_IF(!(probability >= 0.0 && probability <= 1.0), GPST_ERROR_ARGUMENT,
                  "gpst_mask_threshold_sigmoid: probability=%g: must be 0 to 1", probability);
    GPSTI_TRY(gpsti_exact_check("gpst_mask_threshold_sigmoid"));
    GPSTI_TRY(gpsti_threshold_job_init("gpst_mask_threshold_sigmoid", logits, gpst_logit(probability), mask, &job));
    GPSTI_FAIL_IF(job.op == GPSTI_MASK_ABOVE_U8, GPST_ERROR_ARGUMENT,
                  "gpst_mask_threshold_sigmoid: source.dtype=U8: must be F16 or F32");
    gpsti_mask_compute(&job, n_threads);
    return GPST_OK;
}

/* log((1 + t) / (1 - t)), t within +-1/2, by its series: the first term left out is below 1e-17 of the sum. */
GPSTI_PRIVATE double gpsti_logit_series(double t) {
    const double z = gpsti_mul64(t, t);
    double sum = 0.0;
    for (int n = 26; n > 0; n--)
        sum = gpsti_mul64(sum, z) + 2.0 / (2 * n - 1);
    return gpsti_mul64(sum, t);
}

/* Of a positive finite number: its logarithm, by the exponent and a significand near 1. */
GPSTI_PRIVATE double gpsti_logit_log(double value) {
    const bool tiny = value < 2.2250738585072014e-308;
    const uint64_t bits = gpsti_f64_bits(tiny ? gpsti_mul64(value, 18014398509481984.0 /* 2^54 */) : value);
    const uint64_t fraction = bits & 0x000fffffffffffffu;
    const bool upper = fraction > 0x6a09e667f3bccu; /* above the root of 2: halved */
    const int32_t exponent = (int32_t)(bits >> 52) - 1023 + (upper ? 1 : 0) - (tiny ? 54 : 0);
    const double m = gpsti_f64_from_bits(fraction | (upper ? (uint64_t)1022 : (uint64_t)1023) << 52);
    return gpsti_mul64((double)exponent, 0.69314718055994530942) + gpsti_logit_series((m - 1.0) / (m + 1.0));
}

GPSTI_INTERN double gpsti_logit(double probability) {
    if (probability >= 0.25 && probability <= 0.75)
        return gpsti_logit_series((probability - 0.5) + (probability - 0.5));
    return gpsti_logit_log(probability / (1.0 - probability));
}

GPST_API float gpst_logit(double probability) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    const bool above = probability > 0.0, below = probability < 1.0;
    const float logit = !above   ? gpsti_f32_from_bits(0xff800000u)
                        : !below ? gpsti_f32_from_bits(0x7f800000u)
                                 : (float)gpsti_logit(probability);
    gpsti_fp_leave(mode);
    return logit;
}

/* ---- bits ------------------------------------------------------------------------------- */
GPSTI_INTERN gpst_result gpsti_bitmap_job_init(const char* function, gpsti_mask_op op, const gpst_image* mask,
                                               const gpst_bitmap* bitmap, gpsti_mask_job* out) {
    gpst_image bytes = GPST_ZERO;
    gpsti_span mask_span = GPST_ZERO, bitmap_span = GPST_ZERO;
    const bool packs = op == GPSTI_MASK_PACK;
    GPSTI_TRY(gpsti_mask_check_mask(function, "mask", mask, &bytes, &mask_span));
    GPSTI_FAIL_IF(!bitmap, GPST_ERROR_ARGUMENT, "%s: bitmap=NULL: required", function);
    GPSTI_TRY(gpsti_mask_check_sides(function, "bitmap", bitmap->width, bitmap->height));
    const uint32_t row_bytes = (bitmap->width + 7) / 8;
    const int64_t pitch = bitmap->pitch_bytes ? bitmap->pitch_bytes : (int64_t)row_bytes;
    GPSTI_TRY(gpsti_mask_check_rows(function, "bitmap", bitmap->data, pitch, row_bytes, 1));
    bitmap_span.begin = (uintptr_t)bitmap->data;
    bitmap_span.bytes = gpsti_mask_extent(bitmap->height, pitch, row_bytes);
    GPSTI_FAIL_IF(bitmap_span.bytes == 0, GPST_ERROR_OVERFLOW,
                  "%s: bitmap: %u rows of %lld bytes do not fit in memory", function, (unsigned)bitmap->height,
                  (long long)pitch);
    if (packs)
        GPSTI_TRY(gpsti_mask_check_pair(function, "bitmap", mask_span, bytes.width, bytes.height, bitmap_span,
                                        bitmap->width, bitmap->height));
    else
        GPSTI_TRY(gpsti_mask_check_pair(function, "mask", bitmap_span, bitmap->width, bitmap->height, mask_span,
                                        bytes.width, bytes.height));
    memset(out, 0, sizeof *out);
    out->op = op;
    out->source = (const uint8_t*)(packs ? bytes.data : bitmap->data);
    out->source_pitch = packs ? bytes.pitch_bytes : pitch;
    out->output = (uint8_t*)(packs ? bitmap->data : bytes.data);
    out->output_pitch = packs ? pitch : bytes.pitch_bytes;
    out->width = bytes.width, out->height = bytes.height;
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_pack(const gpst_image* mask, const gpst_bitmap* bitmap, uint32_t n_threads) {
    gpsti_mask_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_bitmap_job_init("gpst_mask_pack", GPSTI_MASK_PACK, mask, bitmap, &job));
    gpsti_mask_compute(&job, n_threads);
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_unpack(const gpst_bitmap* bitmap, const gpst_image* mask, uint32_t n_threads) {
    gpsti_mask_job job = GPST_ZERO;
    GPSTI_TRY(gpsti_bitmap_job_init("gpst_mask_unpack", GPSTI_MASK_UNPACK, mask, bitmap, &job));
    gpsti_mask_compute(&job, n_threads);
    return GPST_OK;
}
