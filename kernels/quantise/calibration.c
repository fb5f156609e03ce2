/* kernels/quantise/calibration.c -- scales from samples: ranges, and histograms of
   magnitudes whose bins are the upper bits of the floats, so that they are the same for all and simply add up. */
#include "../../core/base/platform_internal.h"

#include "quantise_internal.h"

#define GPSTI_CALIBRATION_SHIFT 16     /* a float's bits below its bin: 7 of the 23 of its significand remain */
#define GPSTI_CALIBRATION_BINS 0x7f80u /* of finite magnitudes */

typedef struct gpsti_calibration_channel {
    GPSTI_ALIGNAS(64) uint64_t n_finite, n_infinite, n_nan;
    float min, max;
} gpsti_calibration_channel;

struct gpst_calibration {
    gpsti_host host;
    size_t bytes; /* of this block, channels, histograms and all */
    uint32_t n_channels;
    gpsti_calibration_channel* channels;
    uint64_t* histograms; /* GPSTI_CALIBRATION_BINS a channel; NULL = max_only */
};

#define GPSTI_CALIBRATION_RULE(function, condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, function ": " __VA_ARGS__)

/* ---- create, destroy ------------------------------------------------------------------ */
/* One block: the calibration, its channels, its histograms. */
GPSTI_PRIVATE gpst_result gpsti_calibration_alloc(gpsti_host* host, uint32_t n_channels, bool max_only,
                                                  gpst_calibration** out) {
    size_t channels_at = 0, histograms_at = 0, bytes = 0;
    const bool fits =
        gpsti_size_round_up(sizeof(gpst_calibration), 64, &channels_at) &&
        gpsti_size_mul(n_channels, sizeof(gpsti_calibration_channel), &histograms_at) &&
        gpsti_size_add(histograms_at, channels_at, &histograms_at) &&
        gpsti_size_mul(max_only ? 0 : n_channels, GPSTI_CALIBRATION_BINS * sizeof(uint64_t), &bytes) &&
        gpsti_size_add(bytes, histograms_at, &bytes);
    GPSTI_FAIL_IF(!fits, GPST_ERROR_OVERFLOW, "gpst_calibration_create: n_channels=%u: do not fit in memory",
                  (unsigned)n_channels);
    uint8_t* block = (uint8_t*)gpsti_alloc(host, bytes);
    if (!block)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_calibration_create");
    gpst_calibration* calibration = (gpst_calibration*)(void*)block;
    calibration->bytes = bytes;
    calibration->n_channels = n_channels;
    calibration->channels = (gpsti_calibration_channel*)(void*)(block + channels_at);
    calibration->histograms = max_only ? NULL : (uint64_t*)(void*)(block + histograms_at);
    *out = calibration;
    return GPST_OK;
}

GPST_API gpst_result gpst_calibration_create_versioned(uint32_t version, size_t desc_bytes,
                                                       const gpst_calibration_desc* desc,
                                                       const gpst_allocator* allocator, gpst_calibration** out) {
    gpsti_host host;
    GPSTI_OUT_NONE(out);
    GPSTI_CALIBRATION_RULE("gpst_calibration_create", out, "out=NULL: required");
    GPSTI_TRY(gpsti_check_version("gpst_calibration_create", version, desc_bytes, sizeof(gpst_calibration_desc)));
    GPSTI_CALIBRATION_RULE("gpst_calibration_create", desc, "desc=NULL: required");
    GPSTI_TRY(gpsti_check_canaries("gpst_calibration_create", desc->start_canary, desc->end_canary));
    gpsti_host_init(&host, allocator, NULL);
    GPSTI_TRY(gpsti_calibration_alloc(&host, desc->n_channels ? desc->n_channels : 1, desc->max_only, out));
    (*out)->host = host;
    return GPST_OK;
}

GPST_API void gpst_calibration_destroy(gpst_calibration* calibration) {
    if (!calibration)
        return;
    gpsti_host host = calibration->host;
    gpsti_free(&host, calibration, calibration->bytes);
}

/* ---- samples ---------------------------------------------------------------------------- */
GPSTI_PRIVATE void gpsti_calibration_widen(gpsti_calibration_channel* channel, float min, float max) {
    const bool first = channel->n_finite == 0;
    channel->min = first || min < channel->min ? min : channel->min;
    channel->max = first || max > channel->max ? max : channel->max;
}

GPSTI_PRIVATE void gpsti_calibration_count(gpsti_calibration_channel* channel, uint64_t* histogram, float value) {
    const uint32_t magnitude = gpsti_f32_bits(value) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        channel->n_nan++;
    } else if (magnitude == 0x7f800000u) {
        channel->n_infinite++;
    } else {
        gpsti_calibration_widen(channel, value + 0.0f, value + 0.0f); /* -0 becomes 0: whichever comes first */
        channel->n_finite++;
        if (histogram)
            histogram[magnitude >> GPSTI_CALIBRATION_SHIFT]++;
    }
}

GPST_API gpst_result gpst_calibration_add(gpst_calibration* calibration, const gpst_channels* values) {
    size_t n = 0, i = 0;
    GPSTI_CALIBRATION_RULE("gpst_calibration_add", calibration, "calibration=NULL: required");
    GPSTI_TRY(gpsti_channels_check("gpst_calibration_add", values, &n));
    const bool together = calibration->n_channels == 1;
    GPSTI_CALIBRATION_RULE("gpst_calibration_add", together || values->n_channels == calibration->n_channels,
                           "values.n_channels=%u: must be the calibration's %u", (unsigned)values->n_channels,
                           (unsigned)calibration->n_channels);
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (size_t outer = 0; outer < values->n_outer; outer++)
        for (uint32_t c = 0; c < values->n_channels; c++) {
            gpsti_calibration_channel* channel = &calibration->channels[together ? 0 : c];
            uint64_t* histogram = calibration->histograms;
            if (histogram && !together)
                histogram += (size_t)c * GPSTI_CALIBRATION_BINS;
            for (const size_t end = i + values->n_inner; i < end; i++)
                gpsti_calibration_count(channel, histogram, gpsti_quantise_read(values, i));
        }
    gpsti_fp_leave(mode);
    return GPST_OK;
}

GPST_API gpst_result gpst_calibration_merge(gpst_calibration* calibration, const gpst_calibration* other) {
    GPSTI_CALIBRATION_RULE("gpst_calibration_merge", calibration && other, "calibration and other: required");
    GPSTI_CALIBRATION_RULE("gpst_calibration_merge", calibration != other, "other: must not be the calibration itself");
    GPSTI_CALIBRATION_RULE("gpst_calibration_merge", calibration->n_channels == other->n_channels,
                           "other.n_channels=%u: must be %u", (unsigned)other->n_channels,
                           (unsigned)calibration->n_channels);
    GPSTI_CALIBRATION_RULE("gpst_calibration_merge", !calibration->histograms == !other->histograms,
                           "other.max_only=%d: must be %d", other->histograms ? 0 : 1, calibration->histograms ? 0 : 1);
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (uint32_t c = 0; c < calibration->n_channels; c++) {
        gpsti_calibration_channel* to = &calibration->channels[c];
        const gpsti_calibration_channel* from = &other->channels[c];
        if (from->n_finite)
            gpsti_calibration_widen(to, from->min, from->max);
        to->n_finite += from->n_finite;
        to->n_infinite += from->n_infinite;
        to->n_nan += from->n_nan;
    }
    const size_t n_bins = calibration->histograms ? (size_t)calibration->n_channels * GPSTI_CALIBRATION_BINS : 0;
    for (size_t i = 0; i < n_bins; i++)
        calibration->histograms[i] += other->histograms[i];
    gpsti_fp_leave(mode);
    return GPST_OK;
}

GPST_API gpst_result gpst_calibration_add_info(gpst_calibration* calibration, const gpst_calibration_info* infos,
                                               uint32_t n_channels) {
    GPSTI_CALIBRATION_RULE("gpst_calibration_add_info", calibration && infos, "calibration and infos: required");
    GPSTI_CALIBRATION_RULE("gpst_calibration_add_info",
                           n_channels > 0 && (calibration->n_channels == 1 || n_channels == calibration->n_channels),
                           "n_channels=%u: must be the calibration's %u", (unsigned)n_channels,
                           (unsigned)calibration->n_channels);
    GPSTI_FAIL_IF(calibration->histograms, GPST_ERROR_STATE,
                  "gpst_calibration_add_info: calibration: must be max_only, for infos know no histogram");
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (uint32_t c = 0; c < n_channels; c++) {
        gpsti_calibration_channel* to = &calibration->channels[calibration->n_channels == 1 ? 0 : c];
        if (infos[c].n_finite)
            gpsti_calibration_widen(to, infos[c].min, infos[c].max);
        to->n_finite += infos[c].n_finite;
        to->n_infinite += infos[c].n_infinite;
        to->n_nan += infos[c].n_nan;
    }
    gpsti_fp_leave(mode);
    return GPST_OK;
}

GPST_API gpst_result gpst_calibration_query(const gpst_calibration* calibration, uint32_t channel,
                                            gpst_calibration_info* out) {
    GPSTI_CALIBRATION_RULE("gpst_calibration_query", calibration && out, "calibration and out: required");
    GPSTI_CALIBRATION_RULE("gpst_calibration_query", channel < calibration->n_channels,
                           "channel=%u: the calibration has %u", (unsigned)channel, (unsigned)calibration->n_channels);
    const gpsti_calibration_channel* from = &calibration->channels[channel];
    memset(out, 0, sizeof *out);
    out->n_finite = from->n_finite, out->n_infinite = from->n_infinite, out->n_nan = from->n_nan;
    out->min = from->min, out->max = from->max;
    return GPST_OK;
}

/* ---- scales ------------------------------------------------------------------------------- */
/* The end of the bin of the magnitude of this rank, from 1 on. */
GPSTI_PRIVATE float gpsti_calibration_ranked(const uint64_t* histogram, uint64_t rank) {
    uint64_t n = 0;
    uint32_t bin = 0;
    while (bin < GPSTI_CALIBRATION_BINS - 1 && (n += histogram[bin]) < rank)
        bin++;
    return gpsti_f32_from_bits((bin << GPSTI_CALIBRATION_SHIFT) | ((1u << GPSTI_CALIBRATION_SHIFT) - 1));
}

GPSTI_PRIVATE float gpsti_calibration_range(const gpst_calibration* calibration, uint32_t c, double percentile) {
    const gpsti_calibration_channel* channel = &calibration->channels[c];
    const float low = gpsti_abs32(channel->min), high = gpsti_abs32(channel->max), most = low > high ? low : high;
    if (percentile >= 100.0 || channel->n_finite == 0)
        return most;
    const double wanted = gpsti_mul64((double)channel->n_finite, percentile) / 100.0;
    const uint64_t below = (uint64_t)wanted, rank = below + ((double)below < wanted ? 1 : 0);
    const float ranked =
        gpsti_calibration_ranked(calibration->histograms + (size_t)c * GPSTI_CALIBRATION_BINS, rank ? rank : 1);
    return ranked < most ? ranked : most;
}

GPST_API gpst_result gpst_calibration_scales(const gpst_calibration* calibration, double percentile, float* scales) {
    GPSTI_CALIBRATION_RULE("gpst_calibration_scales", calibration && scales, "calibration and scales: required");
    GPSTI_CALIBRATION_RULE("gpst_calibration_scales", percentile > 0.0 && percentile <= 100.0,
                           "percentile=%g: must be above 0 and at most 100", percentile);
    GPSTI_FAIL_IF(percentile < 100.0 && !calibration->histograms, GPST_ERROR_STATE,
                  "gpst_calibration_scales: percentile=%g: only 100 where the calibration is max_only", percentile);
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (uint32_t c = 0; c < calibration->n_channels; c++) {
        const float range = gpsti_calibration_range(calibration, c, percentile), scale = range / 127.0f;
        const float least = gpsti_f32_from_bits(1);
        scales[c] = gpsti_f32_bits(range) == 0 ? 1.0f : scale > least ? scale : least;
    }
    gpsti_fp_leave(mode);
    return GPST_OK;
}
