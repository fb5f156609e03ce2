/* kernels/warp.c -- the public warp: its rules, its plan, where it looks and how
   much memory it moves. Computes no pixel; warp_cpu.c does. */
#include "../core/platform_internal.h"

#include "exact_internal.h"
#include "warp_internal.h"

#define GPSTI_WARP_MAX_DEGREES 1e6

/* ---- rules of the desc ------------------------------------------------------------- */
#define GPSTI_WARP_RULE(condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "gpst_warp_create: " __VA_ARGS__)

/* False for NaN and infinities, too. */
GPSTI_PRIVATE bool gpsti_warp_within(double value, double limit) { return value >= -limit && value <= limit; }

GPSTI_PRIVATE bool gpsti_warp_finite(float value) {
    return (gpsti_f32_bits(value) & 0x7f800000u) != 0x7f800000u;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_view(const gpst_view* view, uint32_t index) {
    const double angles[3] = {view->yaw, view->pitch, view->roll};
    static const char* const names[3] = {"yaw", "pitch", "roll"};
    for (int i = 0; i < 3; i++)
        GPSTI_WARP_RULE(gpsti_warp_within(angles[i], GPSTI_WARP_MAX_DEGREES),
                        "views[%u].%s=%g: degrees, must be within +-1e6", (unsigned)index, names[i],
                        angles[i]);
    GPSTI_WARP_RULE(view->hfov >= 0 && view->hfov < 180,
                    "views[%u].hfov=%g: must be 0 (90 degrees) or between 0 and 180", (unsigned)index,
                    view->hfov);
    GPSTI_WARP_RULE(view->vfov >= 0 && view->vfov < 180,
                    "views[%u].vfov=%g: must be 0 (square pixels) or between 0 and 180", (unsigned)index,
                    view->vfov);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_enums(const gpst_warp_desc* desc) {
    GPSTI_WARP_RULE(desc->map == GPST_MAP_RESIZE || desc->map == GPST_MAP_EQUIRECT,
                    "map=%d: required, RESIZE or EQUIRECT", (int)desc->map);
    GPSTI_WARP_RULE(desc->filter == GPST_FILTER_DEFAULT || desc->filter == GPST_FILTER_NEAREST ||
                        desc->filter == GPST_FILTER_BILINEAR,
                    "filter=%d: must be NEAREST or BILINEAR", (int)desc->filter);
    GPSTI_WARP_RULE(desc->convention == GPST_CONVENTION_DEFAULT ||
                        desc->convention == GPST_CONVENTION_NATIVE ||
                        desc->convention == GPST_CONVENTION_FFMPEG,
                    "convention=%d: must be NATIVE or FFMPEG", (int)desc->convention);
    GPSTI_WARP_RULE(desc->convention != GPST_CONVENTION_FFMPEG || desc->map == GPST_MAP_EQUIRECT,
                    "convention=FFMPEG: only with map=EQUIRECT");
    GPSTI_WARP_RULE(gpst_format_channels(desc->format) != 0,
                    "format=%d: required, GRAY, RGB, BGR, RGBA or BGRA", (int)desc->format);
    GPSTI_WARP_RULE(gpst_dtype_bytes(desc->dtype) != 0, "dtype=%d: must be U8, I8, F16 or F32",
                    (int)desc->dtype);
    GPSTI_WARP_RULE(desc->dtype != GPST_DTYPE_I8 || desc->has_scale, "dtype=I8: only with has_scale");
    GPSTI_WARP_RULE(desc->layout == GPST_LAYOUT_DEFAULT || desc->layout == GPST_LAYOUT_HWC ||
                        desc->layout == GPST_LAYOUT_CHW,
                    "layout=%d: must be HWC or CHW", (int)desc->layout);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_mask(const gpst_warp_desc* desc) {
    if (!desc->mask.data)
        return GPST_OK;
    GPSTI_WARP_RULE(desc->map == GPST_MAP_EQUIRECT, "mask: only with map=EQUIRECT");
    GPSTI_TRY(gpsti_image_check(&desc->mask, "gpst_warp_create", "mask"));
    GPSTI_WARP_RULE(desc->mask.format == GPST_FORMAT_GRAY &&
                        (desc->mask.dtype == GPST_DTYPE_DEFAULT || desc->mask.dtype == GPST_DTYPE_U8),
                    "mask.format=%d, dtype=%d: must be GRAY and U8", (int)desc->mask.format,
                    (int)desc->mask.dtype);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_desc(const gpst_warp_desc* desc) {
    GPSTI_TRY(gpsti_check_canaries("gpst_warp_create", desc->start_canary, desc->end_canary));
    GPSTI_TRY(gpsti_warp_check_enums(desc));
    GPSTI_WARP_RULE(desc->width >= 1 && desc->width <= GPSTI_WARP_MAX_SIDE, "width=%u: required, 1 to %d",
                    (unsigned)desc->width, GPSTI_WARP_MAX_SIDE);
    GPSTI_WARP_RULE(desc->height >= 1 && desc->height <= GPSTI_WARP_MAX_SIDE, "height=%u: required, 1 to %d",
                    (unsigned)desc->height, GPSTI_WARP_MAX_SIDE);
    for (uint32_t c = 0; desc->has_scale && c < gpst_format_channels(desc->format); c++)
        GPSTI_WARP_RULE(gpsti_warp_finite(desc->scale[c]) && gpsti_warp_finite(desc->bias[c]),
                        "scale[%u]=%g, bias[%u]=%g: must be finite", (unsigned)c, (double)desc->scale[c],
                        (unsigned)c, (double)desc->bias[c]);
    if (desc->map == GPST_MAP_RESIZE) {
        GPSTI_WARP_RULE(desc->n_views <= 1, "n_views=%u: 0 or 1 with map=RESIZE", (unsigned)desc->n_views);
    } else {
        GPSTI_WARP_RULE(desc->n_views >= 1, "n_views=0: required with map=EQUIRECT");
        GPSTI_WARP_RULE(desc->views, "views=NULL: required with map=EQUIRECT");
        for (uint32_t i = 0; i < desc->n_views; i++)
            GPSTI_TRY(gpsti_warp_check_view(&desc->views[i], i));
    }
    return gpsti_warp_check_mask(desc);
}

/* ---- the plan ------------------------------------------------------------------------ */
/* Ry(yaw) Rx(pitch) Rz(roll); element by element, in a fixed order. */
GPST_API void gpst_view_rotation(const gpst_view* view, double out[9]) {
    double sy, cy, sp, cp, sr, cr;
    memset(out, 0, 9 * sizeof *out);
    if (!gpsti_warp_within(view->yaw, GPSTI_WARP_MAX_DEGREES) ||
        !gpsti_warp_within(view->pitch, GPSTI_WARP_MAX_DEGREES) ||
        !gpsti_warp_within(view->roll, GPSTI_WARP_MAX_DEGREES))
        return;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    gpsti_sin_cos_degrees(view->yaw, &sy, &cy);
    gpsti_sin_cos_degrees(view->pitch, &sp, &cp);
    gpsti_sin_cos_degrees(view->roll, &sr, &cr);
    const double sp_sr = gpsti_mul64(sp, sr), sp_cr = gpsti_mul64(sp, cr);
    out[0] = gpsti_mul64(cy, cr) + gpsti_mul64(sy, sp_sr);
    out[1] = gpsti_mul64(sy, sp_cr) - gpsti_mul64(cy, sr);
    out[2] = gpsti_mul64(sy, cp);
    out[3] = gpsti_mul64(cp, sr);
    out[4] = gpsti_mul64(cp, cr);
    out[5] = 0.0 - sp;
    out[6] = gpsti_mul64(cy, sp_sr) - gpsti_mul64(sy, cr);
    out[7] = gpsti_mul64(sy, sr) + gpsti_mul64(cy, sp_cr);
    out[8] = gpsti_mul64(cy, cp);
    gpsti_fp_leave(mode);
}

GPSTI_PRIVATE double gpsti_warp_tan_half(double fov_degrees) {
    double sine, cosine;
    gpsti_sin_cos_degrees(gpsti_mul64(fov_degrees, 0.5), &sine, &cosine);
    return sine / cosine;
}

GPSTI_PRIVATE void gpsti_warp_plan_view(const gpst_view* view, uint32_t width, uint32_t height,
                                        gpsti_warp_view* plan) {
    gpst_view_rotation(view, plan->rotation);
    plan->tan_x = gpsti_warp_tan_half(view->hfov > 0 ? view->hfov : 90.0);
    plan->tan_y =
        view->vfov > 0 ? gpsti_warp_tan_half(view->vfov) : gpsti_mul64(plan->tan_x, (double)height) / width;
    for (int c = 0; c < 3; c++) {
        plan->a[c] = gpsti_mul64(plan->rotation[3 * c], plan->tan_x) / width;
        plan->b[c] = gpsti_mul64(plan->rotation[3 * c + 1], plan->tan_y) / height;
        plan->d[c] = plan->rotation[3 * c + 2];
        gpsti_split(plan->a[c], &plan->a_high[c], &plan->a_low[c]);
    }
}

GPSTI_PRIVATE void gpsti_warp_plan(gpst_warp* warp, const gpst_warp_desc* desc) {
    warp->desc = *desc;
    warp->desc.views = warp->views;
    warp->desc.n_views = warp->views ? warp->n_outputs : 0;
    if (desc->filter == GPST_FILTER_DEFAULT)
        warp->desc.filter = GPST_FILTER_BILINEAR;
    if (desc->convention == GPST_CONVENTION_DEFAULT)
        warp->desc.convention = GPST_CONVENTION_NATIVE;
    if (desc->dtype == GPST_DTYPE_DEFAULT)
        warp->desc.dtype = GPST_DTYPE_U8;
    if (desc->layout == GPST_LAYOUT_DEFAULT)
        warp->desc.layout = GPST_LAYOUT_HWC;
    if (desc->mask.data)
        warp->desc.mask = gpsti_image_resolved(&desc->mask);
    warp->level = gpsti_warp_level_query();
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (uint32_t i = 0; i < warp->desc.n_views; i++) {
        warp->views[i] = desc->views[i];
        gpsti_warp_plan_view(&warp->views[i], desc->width, desc->height, &warp->plans[i]);
    }
    gpsti_fp_leave(mode);
}

/* One block: the warp, its plans, its views. */
GPSTI_PRIVATE gpst_result gpsti_warp_alloc(gpsti_host* host, const gpst_warp_desc* desc, gpst_warp** out) {
    const uint32_t n_views = desc->map == GPST_MAP_EQUIRECT ? desc->n_views : 0;
    size_t plans_at = 0, views_at = 0, bytes = 0;
    const bool fits = gpsti_size_round_up(sizeof(gpst_warp), 64, &plans_at) &&
                      gpsti_size_mul(n_views, sizeof(gpsti_warp_view), &views_at) &&
                      gpsti_size_add(views_at, plans_at, &views_at) &&
                      gpsti_size_mul(n_views, sizeof(gpst_view), &bytes) &&
                      gpsti_size_add(bytes, views_at, &bytes);
    GPSTI_FAIL_IF(!fits, GPST_ERROR_OVERFLOW, "gpst_warp_create: n_views=%u: do not fit in memory",
                  (unsigned)n_views);
    uint8_t* block = (uint8_t*)gpsti_alloc(host, bytes);
    if (!block)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_warp_create");
    gpst_warp* warp = (gpst_warp*)(void*)block;
    warp->bytes = bytes;
    warp->n_outputs = n_views ? n_views : 1;
    warp->plans = n_views ? (gpsti_warp_view*)(void*)(block + plans_at) : NULL;
    warp->views = n_views ? (gpst_view*)(void*)(block + views_at) : NULL;
    *out = warp;
    return GPST_OK;
}

GPST_API gpst_result gpst_warp_create_versioned(uint32_t version, size_t desc_bytes,
                                                const gpst_warp_desc* desc, const gpst_allocator* allocator,
                                                gpst_warp** out) {
    GPSTI_WARP_RULE(out, "out=NULL: required");
    *out = NULL;
    GPSTI_TRY(gpsti_check_version("gpst_warp_create", version, desc_bytes, sizeof(gpst_warp_desc)));
    GPSTI_WARP_RULE(desc, "desc=NULL: required");
    GPSTI_TRY(gpsti_warp_check_desc(desc));
    const char* inexact = gpsti_exact_self_test();
    GPSTI_FAIL_IF(inexact, GPST_ERROR_UNSUPPORTED,
                  "gpst_warp_create: this build does not compute exactly: %s", inexact);
    gpsti_host host;
    gpsti_host_init(&host, allocator, NULL);
    GPSTI_TRY(gpsti_warp_alloc(&host, desc, out));
    (*out)->host = host;
    gpsti_warp_plan(*out, desc);
    return GPST_OK;
}

GPST_API void gpst_warp_destroy(gpst_warp* warp) {
    if (!warp)
        return;
    gpsti_host host = warp->host;
    gpsti_free(&host, warp, warp->bytes);
}

/* ---- queries --------------------------------------------------------------------------- */
GPST_API uint32_t gpst_warp_n_outputs(const gpst_warp* warp) { return warp ? warp->n_outputs : 0; }

GPST_API void gpst_warp_query_output(const gpst_warp* warp, gpst_image* out) {
    memset(out, 0, sizeof *out);
    out->width = warp->desc.width;
    out->height = warp->desc.height;
    out->format = warp->desc.format;
    out->dtype = warp->desc.dtype;
    out->layout = warp->desc.layout;
    out->pitch_bytes = (int64_t)gpst_image_row_bytes(out);
}

/* (2 i + 1) * in / (2 out) - 1/2 */
GPSTI_PRIVATE double gpsti_warp_resize_position(uint32_t i, uint32_t in, uint32_t out) {
    return (double)((2 * (int64_t)i + 1) * in - out) / (2.0 * out);
}

GPST_API gpst_result gpst_warp_position(const gpst_warp* warp, uint32_t output_index, uint32_t x, uint32_t y,
                                        uint32_t source_width, uint32_t source_height, double* source_x,
                                        double* source_y) {
#define GPSTI_WARP_POSITION_RULE(condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "gpst_warp_position: " __VA_ARGS__)
    GPSTI_WARP_POSITION_RULE(warp && source_x && source_y, "warp, source_x and source_y: required");
    GPSTI_WARP_POSITION_RULE(output_index < warp->n_outputs, "output_index=%u: the warp has %u outputs",
                             (unsigned)output_index, (unsigned)warp->n_outputs);
    GPSTI_WARP_POSITION_RULE(x < warp->desc.width && y < warp->desc.height, "x=%u, y=%u: outputs are %u x %u",
                             (unsigned)x, (unsigned)y, (unsigned)warp->desc.width,
                             (unsigned)warp->desc.height);
    GPSTI_WARP_POSITION_RULE(source_width >= 1 && source_width <= GPSTI_WARP_MAX_SIDE && source_height >= 1 &&
                                 source_height <= GPSTI_WARP_MAX_SIDE,
                             "source_width=%u, source_height=%u: must be 1 to %d", (unsigned)source_width,
                             (unsigned)source_height, GPSTI_WARP_MAX_SIDE);
#undef GPSTI_WARP_POSITION_RULE
    const gpsti_fp_mode mode = gpsti_fp_enter();
    if (warp->desc.map == GPST_MAP_RESIZE) {
        *source_x = gpsti_warp_resize_position(x, source_width, warp->desc.width);
        *source_y = gpsti_warp_resize_position(y, source_height, warp->desc.height);
    } else {
        const gpsti_warp_view* plan = &warp->plans[output_index];
        const double n = 2.0 * x + 1.0 - warp->desc.width, m = 2.0 * y + 1.0 - warp->desc.height;
        double ray[3];
        for (int c = 0; c < 3; c++)
            ray[c] = gpsti_mul64(plan->a[c], n) + (gpsti_mul64(plan->b[c], m) + plan->d[c]);
        const double across = gpsti_sqrt64(gpsti_mul64(ray[0], ray[0]) + gpsti_mul64(ray[2], ray[2]));
        const double turn = gpsti_atan2_radians(ray[0], ray[2]) / (2 * GPSTI_PI) + 0.5;
        const double tilt = gpsti_atan2_radians(ray[1], across) / GPSTI_PI + 0.5;
        const bool native = warp->desc.convention == GPST_CONVENTION_NATIVE;
        *source_x = native ? gpsti_mul64(turn, source_width) - 0.5 : gpsti_mul64(turn, source_width - 1.0);
        *source_y = native ? gpsti_mul64(tilt, source_height) - 0.5 : gpsti_mul64(tilt, source_height - 1.0);
    }
    gpsti_fp_leave(mode);
    return GPST_OK;
}

/* Whether any view sees this direction. An estimate is made of it: the last bits do not matter. */
GPSTI_PRIVATE bool gpsti_warp_is_seen(const gpst_warp* warp, const double ray[3]) {
    for (uint32_t i = 0; i < warp->n_outputs; i++) {
        const gpsti_warp_view* plan = &warp->plans[i];
        const double* r = plan->rotation;
        const double z = r[2] * ray[0] + r[5] * ray[1] + r[8] * ray[2];
        const double x = r[0] * ray[0] + r[3] * ray[1] + r[6] * ray[2];
        const double y = r[1] * ray[0] + r[4] * ray[1] + r[7] * ray[2];
        const double x_limit = plan->tan_x * z, y_limit = plan->tan_y * z;
        if (z > 0 && x <= x_limit && -x <= x_limit && y <= y_limit && -y <= y_limit)
            return true;
    }
    return false;
}

/* How much of the sphere's picture the views see together, by the centres of 256 x 128 cells. */
GPSTI_PRIVATE double gpsti_warp_seen_share(const gpst_warp* warp) {
    const uint32_t n_across = 256, n_down = 128;
    uint32_t n_seen = 0;
    for (uint32_t row = 0; row < n_down; row++) {
        double sine_y, cosine_y, sine_x, cosine_x;
        gpsti_sin_cos_degrees((row + 0.5) * 180.0 / n_down - 90.0, &sine_y, &cosine_y);
        for (uint32_t column = 0; column < n_across; column++) {
            gpsti_sin_cos_degrees((column + 0.5) * 360.0 / n_across - 180.0, &sine_x, &cosine_x);
            const double ray[3] = {cosine_y * sine_x, sine_y, cosine_y * cosine_x};
            n_seen += gpsti_warp_is_seen(warp, ray) ? 1 : 0;
        }
    }
    return (double)n_seen / (n_across * n_down);
}

GPSTI_PRIVATE uint64_t gpsti_warp_min64(uint64_t a, uint64_t b) { return a < b ? a : b; }

GPST_API void gpst_warp_query_bytes(const gpst_warp* warp, const gpst_image* source, uint64_t* read_bytes,
                                    uint64_t* written_bytes) {
    const uint64_t width = warp->desc.width, height = warp->desc.height, n_outputs = warp->n_outputs;
    const uint64_t pixel_bytes = gpst_format_channels(source->format) * gpst_dtype_bytes(source->dtype);
    const uint64_t taps = warp->desc.filter == GPST_FILTER_NEAREST ? 1 : 2; /* on each axis */
    uint64_t pixels;
    if (warp->desc.map == GPST_MAP_RESIZE) {
        pixels =
            gpsti_warp_min64(source->width, taps * width) * gpsti_warp_min64(source->height, taps * height);
    } else {
        const double seen = gpsti_warp_seen_share(warp) * (double)source->width * (double)source->height;
        pixels = gpsti_warp_min64((uint64_t)seen, n_outputs * width * height * taps * taps);
    }
    *read_bytes = pixels * (pixel_bytes + (warp->desc.mask.data ? 1 : 0));
    *written_bytes = n_outputs * width * height * gpst_format_channels(warp->desc.format) *
                     gpst_dtype_bytes(warp->desc.dtype);
}

/* ---- running ------------------------------------------------------------------------------ */
#define GPSTI_WARP_RUN_RULE(condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "gpst_warp_run: " __VA_ARGS__)

GPSTI_PRIVATE gpst_result gpsti_warp_check_source(const gpst_warp* warp, const gpst_image* source) {
    const gpst_image* mask = &warp->desc.mask;
    GPSTI_TRY(gpsti_image_check(source, "gpst_warp_run", "source"));
    GPSTI_WARP_RUN_RULE(source->width <= GPSTI_WARP_MAX_SIDE && source->height <= GPSTI_WARP_MAX_SIDE,
                        "source.width=%u, height=%u: must be at most %d", (unsigned)source->width,
                        (unsigned)source->height, GPSTI_WARP_MAX_SIDE);
    GPSTI_WARP_RUN_RULE(source->dtype == GPST_DTYPE_DEFAULT || source->dtype == GPST_DTYPE_U8,
                        "source.dtype=%d: must be U8", (int)source->dtype);
    GPSTI_WARP_RUN_RULE(source->layout != GPST_LAYOUT_CHW || source->format == GPST_FORMAT_GRAY,
                        "source.layout=CHW: must be HWC");
    GPSTI_WARP_RUN_RULE(source->format == GPST_FORMAT_GRAY || warp->desc.format != GPST_FORMAT_GRAY,
                        "source.format=%d: must be GRAY where the outputs are GRAY", (int)source->format);
    GPSTI_WARP_RUN_RULE(!mask->data || (mask->width == source->width && mask->height == source->height),
                        "source.width=%u, height=%u: must be the mask's %u x %u", (unsigned)source->width,
                        (unsigned)source->height, (unsigned)mask->width, (unsigned)mask->height);
    return GPST_OK;
}

GPSTI_PRIVATE bool gpsti_warp_overlap(const gpst_image* a, const gpst_image* b) {
    size_t a_bytes = 0, b_bytes = 0;
    const gpst_image a_whole = gpsti_image_resolved(a), b_whole = gpsti_image_resolved(b);
    if (GPST_FAILED(gpst_image_bytes(&a_whole, &a_bytes)) ||
        GPST_FAILED(gpst_image_bytes(&b_whole, &b_bytes)))
        return true;
    const uintptr_t a_begin = (uintptr_t)gpsti_image_lowest(&a_whole),
                    b_begin = (uintptr_t)gpsti_image_lowest(&b_whole);
    return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_output(const gpst_warp* warp, const gpst_image* source,
                                                  const gpst_image* output, uint32_t index) {
    const gpst_warp_desc* desc = &warp->desc;
    char member[24];
    gpsti_format(member, sizeof member, "outputs[%u]", (unsigned)index);
    GPSTI_TRY(gpsti_image_check(output, "gpst_warp_run", member));
    const gpst_image image = gpsti_image_resolved(output);
    GPSTI_WARP_RUN_RULE(image.width == desc->width && image.height == desc->height,
                        "%s.width=%u, height=%u: must be the warp's %u x %u", member, (unsigned)image.width,
                        (unsigned)image.height, (unsigned)desc->width, (unsigned)desc->height);
    GPSTI_WARP_RUN_RULE(
        image.format == desc->format && image.dtype == desc->dtype && image.layout == desc->layout,
        "%s.format=%d, dtype=%d, layout=%d: must be the warp's %d, %d, %d", member, (int)image.format,
        (int)image.dtype, (int)image.layout, (int)desc->format, (int)desc->dtype, (int)desc->layout);
    GPSTI_WARP_RUN_RULE(!gpsti_warp_overlap(&image, source), "%s.data=%p: must not overlap the source",
                        member, output->data);
    GPSTI_WARP_RUN_RULE(!desc->mask.data || !gpsti_warp_overlap(&image, &desc->mask),
                        "%s.data=%p: must not overlap the mask", member, output->data);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_warp_check(const gpst_warp* warp, const gpst_image* source,
                                          const gpst_image* outputs, uint32_t n_outputs) {
    GPSTI_WARP_RUN_RULE(warp && source && outputs, "warp, source and outputs: required");
    GPSTI_WARP_RUN_RULE(n_outputs >= 1 && n_outputs <= warp->n_outputs, "n_outputs=%u: the warp has %u",
                        (unsigned)n_outputs, (unsigned)warp->n_outputs);
    GPSTI_TRY(gpsti_warp_check_source(warp, source));
    for (uint32_t i = 0; i < n_outputs; i++)
        GPSTI_TRY(gpsti_warp_check_output(warp, source, &outputs[i], i));
    return GPST_OK;
}

GPSTI_PRIVATE bool gpsti_warp_blue_first(gpst_format format) {
    return format == GPST_FORMAT_BGR || format == GPST_FORMAT_BGRA;
}

/* Where each output channel stands in a source pixel. */
GPSTI_PRIVATE void gpsti_warp_channels(gpst_format source, gpst_format output, uint32_t shift[4]) {
    for (uint32_t c = 0; c < 4; c++) {
        const bool swapped = gpsti_warp_blue_first(source) != gpsti_warp_blue_first(output);
        if (c >= gpst_format_channels(source) && c == 3)
            shift[c] = GPSTI_WARP_CHANNEL_FULL;
        else if (source == GPST_FORMAT_GRAY)
            shift[c] = 0;
        else
            shift[c] = 8 * (swapped && c < 3 ? 2 - c : c);
    }
}

GPSTI_PRIVATE void gpsti_warp_job_equirect(gpsti_warp_job* job) {
    const bool native = job->convention == GPST_CONVENTION_NATIVE;
    const int32_t width = job->source_width - (native ? 0 : 1),
                  height = job->source_height - (native ? 0 : 1);
    const gpsti_fp_mode mode = gpsti_fp_enter();
    job->scale_u = gpsti_narrow(width * (32768.0 / (2 * GPSTI_PI)));
    job->scale_v = gpsti_narrow(height * (32768.0 / GPSTI_PI));
    gpsti_fp_leave(mode);
    job->quarter_u = width * 8192;
    job->quarter_v = height * 16384;
    job->offset_u = width * 16384 - (native ? 16384 : 0);
    job->offset_v = height * 16384 - (native ? 16384 : 0);
}

GPSTI_INTERN void gpsti_warp_job_init(const gpst_warp* warp, const gpst_image* source,
                                      const gpst_image* output, uint32_t output_index, gpsti_warp_job* out) {
    const gpst_warp_desc* desc = &warp->desc;
    const gpst_image from = gpsti_image_resolved(source), to = gpsti_image_resolved(output);
    memset(out, 0, sizeof *out);
    out->map = desc->map, out->filter = desc->filter, out->convention = desc->convention;
    out->dtype = desc->dtype, out->layout = desc->layout, out->has_scale = desc->has_scale;
    out->source = (const uint8_t*)from.data, out->source_pitch = from.pitch_bytes;
    out->source_width = (int32_t)from.width, out->source_height = (int32_t)from.height;
    out->source_pixel_bytes = gpst_format_channels(from.format);
    gpsti_warp_channels(from.format, desc->format, out->shift);
    if (desc->map == GPST_MAP_EQUIRECT) {
        out->view = warp->plans[output_index];
        gpsti_warp_job_equirect(out);
    }
    out->mask = (const uint8_t*)desc->mask.data, out->mask_pitch = desc->mask.pitch_bytes;
    out->output = (uint8_t*)to.data, out->output_pitch = to.pitch_bytes;
    out->plane_bytes = to.pitch_bytes * (int64_t)to.height;
    out->width = (int32_t)to.width, out->height = (int32_t)to.height;
    out->n_channels = gpst_format_channels(desc->format);
    memcpy(out->scale, desc->scale, sizeof out->scale);
    memcpy(out->bias, desc->bias, sizeof out->bias);
}

GPST_API gpst_result gpst_warp_run(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                                   uint32_t n_outputs, uint32_t n_threads) {
    GPSTI_TRY(gpsti_warp_check(warp, source, outputs, n_outputs));
    GPSTI_WARP_RUN_RULE(n_outputs == warp->n_outputs, "n_outputs=%u: the warp has %u", (unsigned)n_outputs,
                        (unsigned)warp->n_outputs);
    gpsti_warp_args args;
    memset(&args, 0, sizeof args);
    args.warp = warp;
    args.source = *source;
    args.outputs = outputs;
    args.n_outputs = n_outputs;
    gpsti_warp_compute(&args, n_threads);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_kernel_host(const void* args, const gpsti_exec* exec) {
    gpsti_warp_compute((const gpsti_warp_args*)args, exec ? exec->n_threads : 1);
    return GPST_OK;
}

GPSTI_INTERN const gpsti_kernel* gpsti_warp_kernel(void) {
    static const gpsti_kernel kernel = {"warp", gpsti_warp_kernel_host};
    return &kernel;
}
