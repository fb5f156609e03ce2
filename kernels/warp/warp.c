/* kernels/warp/warp.c -- the public warp: its life, where it looks and how much memory
   it moves. Checks and plans nothing, computes no pixel: warp_check.c, warp_plan.c and warp_cpu.c do. */
#include "../../core/base/platform_internal.h"

#include "../exact/exact_internal.h"
#include "warp_internal.h"

/* ---- create, destroy ------------------------------------------------------------------ */
/* The next part of a block, at a multiple of 64; false when it does not fit in memory. */
GPSTI_PRIVATE bool gpsti_warp_part(size_t n, size_t bytes_each, size_t* bytes, size_t* at) {
    size_t part = 0;
    return gpsti_size_round_up(*bytes, 64, at) && gpsti_size_mul(n, bytes_each, &part) &&
           gpsti_size_add(*at, part, bytes);
}

/* One block: the warp, and what its map keeps of the outputs. */
GPSTI_PRIVATE gpst_result gpsti_warp_alloc(gpsti_host* host, const gpst_warp_desc* desc, gpst_warp** out) {
    const size_t n = gpsti_warp_count_outputs(desc);
    const bool own = !desc->list_per_item, turned = desc->map == GPST_MAP_ROTATE;
    const bool viewed = turned || (desc->map == GPST_MAP_EQUIRECT && own), moved = desc->map == GPST_MAP_AFFINE && own;
    const bool copied = desc->map == GPST_MAP_ROI && own && !desc->rois_in_place;
    const size_t turn_floats = turned ? gpsti_warp_turn_floats(desc->width, desc->height) : 0;
    size_t bytes = sizeof(gpst_warp), views = 0, plans = 0, rois = 0, affines = 0, turns = 0;
    const bool fits =
        gpsti_warp_part(viewed ? n : 0, sizeof(gpst_view), &bytes, &views) &&
        gpsti_warp_part(viewed ? n : 0, sizeof(gpsti_warp_view), &bytes, &plans) &&
        gpsti_warp_part(copied ? n : 0, sizeof(gpsti_warp_roi), &bytes, &rois) &&
        gpsti_warp_part(moved ? n : 0, sizeof(gpsti_warp_matrix), &bytes, &affines) &&
        gpsti_warp_part(turned ? n : 0, turn_floats * sizeof(float), &bytes, &turns);
    GPSTI_FAIL_IF(!fits, GPST_ERROR_OVERFLOW, "gpst_warp_create: %llu outputs: do not fit in memory",
                  (unsigned long long)n);
    uint8_t* block = (uint8_t*)gpsti_alloc(host, bytes);
    if (!block)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_warp_create");
    gpst_warp* warp = (gpst_warp*)(void*)block;
    memset(warp, 0, sizeof *warp);
    warp->bytes = bytes;
    warp->n_outputs = (uint32_t)n;
    warp->turn_floats = turn_floats;
    warp->views = viewed ? (gpst_view*)(void*)(block + views) : NULL;
    warp->plans = viewed ? (gpsti_warp_view*)(void*)(block + plans) : NULL;
    warp->rois = copied ? (gpsti_warp_roi*)(void*)(block + rois) : NULL;
    warp->affines = moved ? (gpsti_warp_matrix*)(void*)(block + affines) : NULL;
    warp->turns = turned ? (float*)(void*)(block + turns) : NULL;
    *out = warp;
    return GPST_OK;
}

GPST_API gpst_result gpst_warp_create_versioned(uint32_t version, size_t desc_bytes,
                                                const gpst_warp_desc* desc, const gpst_allocator* allocator,
                                                gpst_warp** out) {
    static gpsti_a64 n_made;
    GPSTI_OUT_NONE(out);
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_warp_create: out=NULL: required");
    GPSTI_TRY(gpsti_check_version("gpst_warp_create", version, desc_bytes, sizeof(gpst_warp_desc)));
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, "gpst_warp_create: desc=NULL: required");
    GPSTI_TRY(gpsti_warp_check_desc(desc));
    GPSTI_TRY(gpsti_exact_check("gpst_warp_create"));
    gpsti_host host;
    gpsti_host_init(&host, allocator, NULL);
    GPSTI_TRY(gpsti_warp_alloc(&host, desc, out));
    (*out)->host = host;
    (*out)->serial = gpsti_a64_add(&n_made, 1);
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
    if (out)
        memset(out, 0, sizeof *out);
    if (!out || !warp)
        return;
    out->width = warp->desc.width;
    out->height = warp->desc.height;
    out->format = warp->desc.format;
    out->dtype = warp->desc.dtype;
    out->layout = warp->desc.layout;
    out->pitch_bytes = (int64_t)gpst_image_row_bytes(out);
}

/* begin + (2 i + 1) * extent / (2 out) - 1/2 */
GPSTI_PRIVATE double gpsti_warp_axis_position(const gpsti_warp_axis* axis, int64_t i) {
    const int64_t out = axis->out;
    const int64_t n = 2 * (i + axis->first) + (axis->corner ? 0 : 1);
    return (double)(2 * out * axis->begin + n * axis->extent - out * GPSTI_WARP_AXIS_UNIT) /
           ((double)out * 262144.0);
}

/* As pixels are computed, in double: where on the source's sphere the output pixel looks. */
GPSTI_PRIVATE void gpsti_warp_sphere_position(const gpst_warp* warp, const gpsti_warp_view* plan, uint32_t x,
                                              uint32_t y, uint32_t source_width, uint32_t source_height,
                                              double* source_x, double* source_y) {
    const double n = 2.0 * x + 1.0 - warp->desc.width, m = 2.0 * y + 1.0 - warp->desc.height;
    double ray[3];
    if (warp->turns) {
        double sine_x, cosine_x, sine_y, cosine_y;
        gpsti_sin_cos_degrees(gpsti_mul64(180.0, n) / warp->desc.width, &sine_x, &cosine_x);
        gpsti_sin_cos_degrees(gpsti_mul64(90.0, m) / warp->desc.height, &sine_y, &cosine_y);
        const double* r = plan->rotation;
        for (int c = 0; c < 3; c++)
            ray[c] =
                gpsti_mul64(gpsti_mul64(r[3 * c], sine_x) + gpsti_mul64(r[3 * c + 2], cosine_x), cosine_y) +
                gpsti_mul64(r[3 * c + 1], sine_y);
    } else {
        for (int c = 0; c < 3; c++)
            ray[c] = gpsti_mul64(plan->a[c], n) + (gpsti_mul64(plan->b[c], m) + plan->d[c]);
    }
    const double across = gpsti_sqrt64(gpsti_mul64(ray[0], ray[0]) + gpsti_mul64(ray[2], ray[2]));
    const double turn = gpsti_atan2_radians(ray[0], ray[2]) / (2 * GPSTI_PI) + 0.5;
    const double tilt = gpsti_atan2_radians(ray[1], across) / GPSTI_PI + 0.5;
    const bool native = warp->desc.convention != GPST_CONVENTION_FFMPEG;
    *source_x = native ? gpsti_mul64(turn, source_width) - 0.5 : gpsti_mul64(turn, source_width - 1.0);
    *source_y = native ? gpsti_mul64(tilt, source_height) - 0.5 : gpsti_mul64(tilt, source_height - 1.0);
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
    GPSTI_TRY(gpsti_warp_check_resized(warp, source_width, source_height, "gpst_warp_position"));
    GPSTI_FAIL_IF(warp->desc.rois_in_place || warp->desc.list_per_item, GPST_ERROR_UNSUPPORTED,
                  "gpst_warp_position: %s: where they are is known to each run only",
                  warp->desc.rois_in_place ? "rois_in_place" : "list_per_item");
    const gpsti_fp_mode mode = gpsti_fp_enter();
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    gpsti_warp_job job;
    source.width = source_width, source.height = source_height, source.format = GPST_FORMAT_GRAY;
    gpst_warp_query_output(warp, &output);
    gpsti_warp_job_init(warp, &source, &output, output_index, &job);
    if (warp->plans) {
        gpsti_warp_sphere_position(warp, &job.view, x, y, source_width, source_height, source_x, source_y);
    } else if (job.map == GPST_MAP_AFFINE) {
        const int64_t n = 2 * (int64_t)x + 1, m = 2 * (int64_t)y + 1;
        *source_x = (double)(job.affine.q[0] * n + job.affine.q[1] * m + job.affine.q[2]) / 536870912.0;
        *source_y = (double)(job.affine.q[3] * n + job.affine.q[4] * m + job.affine.q[5]) / 536870912.0;
    } else if (job.map == GPST_MAP_TABLE) {
        const float* row =
            (const float*)(const void*)((const char*)job.table + (size_t)y * (size_t)job.table_pitch);
        *source_x = (double)row[2 * (size_t)x];
        *source_y = (double)row[2 * (size_t)x + 1];
    } else {
        *source_x = gpsti_warp_axis_position(&job.across, (int64_t)x - job.left);
        *source_y = gpsti_warp_axis_position(&job.down, (int64_t)y - job.top);
    }
    gpsti_fp_leave(mode);
    return GPST_OK;
}

GPST_API gpst_result gpst_warp_query_camera(const gpst_warp* warp, uint32_t output_index, double out[4]) {
    GPSTI_FAIL_IF(!warp || !out, GPST_ERROR_ARGUMENT, "gpst_warp_query_camera: warp and out: required");
    GPSTI_FAIL_IF(warp->desc.map != GPST_MAP_EQUIRECT || !warp->plans, GPST_ERROR_ARGUMENT,
                  "gpst_warp_query_camera: map=%d: must be EQUIRECT, with views of its own", (int)warp->desc.map);
    GPSTI_FAIL_IF(output_index >= warp->n_outputs, GPST_ERROR_ARGUMENT,
                  "gpst_warp_query_camera: output_index=%u: the warp has %u outputs", (unsigned)output_index,
                  (unsigned)warp->n_outputs);
    const double edge = warp->desc.convention == GPST_CONVENTION_PY360 ? 1.0 : 0.0;
    const gpsti_warp_view* const plan = &warp->plans[output_index];
    out[0] = 0.5 * (warp->desc.width - edge) / plan->tan_x;
    out[1] = 0.5 * (warp->desc.height - edge) / plan->tan_y;
    out[2] = 0.5 * warp->desc.width;
    out[3] = 0.5 * warp->desc.height;
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

/* Twice the samples of a pixel: NV12 has one and a half. */
GPSTI_PRIVATE uint64_t gpsti_warp_half_samples(gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.format = format;
    if (!gpsti_image_is_yuv(format))
        return 2 * gpst_format_channels(format);
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(&image);
    return 2 + 4 / (chroma.across * chroma.down);
}

/* Rows times columns that RESIZE touches, with so many taps on each axis. */
GPSTI_PRIVATE uint64_t gpsti_warp_resize_pixels(const gpst_warp* warp, const gpst_image* source, uint64_t taps) {
    gpsti_warp_fit across, down;
    if (source->width == 0 || source->height == 0)
        return 0;
    gpsti_warp_fit_of(&warp->desc, source->width, source->height, &across, &down);
    const uint64_t n_across = (uint64_t)across.size, n_down = (uint64_t)down.size;
    const uint64_t width = (source->width * n_across + across.resized - 1) / across.resized;
    const uint64_t height = (source->height * n_down + down.resized - 1) / down.resized;
    return gpsti_warp_min64(width, taps * n_across) * gpsti_warp_min64(height, taps * n_down);
}

GPST_API void gpst_warp_query_bytes(const gpst_warp* warp, const gpst_image* source, uint64_t* read_bytes,
                                    uint64_t* written_bytes) {
    uint64_t unwanted = 0;
    read_bytes = read_bytes ? read_bytes : &unwanted;
    written_bytes = written_bytes ? written_bytes : &unwanted;
    *read_bytes = *written_bytes = 0;
    if (!warp || !source)
        return;
    const uint64_t width = warp->desc.width, height = warp->desc.height, n_outputs = warp->n_outputs;
    const uint64_t samples = gpsti_warp_half_samples(source->format);
    const uint64_t mask_samples = warp->desc.mask.data ? 2 : 0;
    /* On each axis; AREA: all. */
    const uint64_t taps = warp->desc.filter == GPST_FILTER_NEAREST    ? 1
                          : warp->desc.filter == GPST_FILTER_BILINEAR ? 2
                          : warp->desc.filter == GPST_FILTER_BICUBIC  ? 4
                                                                      : GPSTI_WARP_MAX_SIDE;
    uint64_t pixels;
    if (warp->desc.map == GPST_MAP_RESIZE) {
        pixels = gpsti_warp_resize_pixels(warp, source, taps);
    } else if (warp->desc.map != GPST_MAP_EQUIRECT || warp->desc.list_per_item) {
        pixels = gpsti_warp_min64((uint64_t)source->width * source->height,
                                  n_outputs * width * height * taps * taps);
    } else {
        const double seen = gpsti_warp_seen_share(warp) * (double)source->width * (double)source->height;
        pixels = gpsti_warp_min64((uint64_t)seen, n_outputs * width * height * taps * taps);
    }
    *read_bytes = pixels * (samples * gpst_dtype_bytes(source->dtype) + mask_samples) / 2;
    *written_bytes = n_outputs * width * height * gpst_format_channels(warp->desc.format) *
                     gpst_dtype_bytes(warp->desc.dtype);
}

GPSTI_INTERN void gpsti_warp_query_constants(const gpst_warp* warp, const void** mask, size_t* mask_bytes,
                                             ptrdiff_t* mask_data, const void** table, size_t* table_bytes) {
    const gpst_warp_desc* const desc = &warp->desc;
    *mask = NULL, *mask_bytes = 0, *mask_data = 0;
    if (desc->mask.data && gpst_image_bytes(&desc->mask, mask_bytes) == GPST_OK) {
        *mask = gpsti_image_lowest(&desc->mask);
        *mask_data = (const uint8_t*)desc->mask.data - (const uint8_t*)*mask;
    }
    *table = desc->table;
    *table_bytes = desc->table
                       ? (size_t)desc->table_pitch_bytes * (desc->height - 1) + (size_t)desc->width * 2 * sizeof(float)
                       : 0;
}

/* ---- running ------------------------------------------------------------------------------ */
GPSTI_PRIVATE gpsti_warp_args gpsti_warp_args_of(const gpst_warp* warp, const gpst_image* sources, uint32_t n_sources,
                                                 const gpst_image* outputs) {
    gpsti_warp_args args;
    memset(&args, 0, sizeof args);
    args.warp = warp;
    args.sources = sources, args.n_sources = n_sources;
    args.outputs = outputs, args.n_outputs = warp->n_outputs;
    return args;
}

GPST_API gpst_result gpst_warp_run(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                                   uint32_t n_outputs, uint32_t n_threads) {
    GPSTI_TRY(gpsti_warp_check(warp, source, outputs, n_outputs));
    GPSTI_FAIL_IF(n_outputs != warp->n_outputs, GPST_ERROR_ARGUMENT,
                  "gpst_warp_run: n_outputs=%u: the warp has %u", (unsigned)n_outputs,
                  (unsigned)warp->n_outputs);
    GPSTI_TRY(gpsti_warp_check_list(warp, "gpst_warp_run"));
    const gpsti_warp_args args = gpsti_warp_args_of(warp, source, 1, outputs);
    gpsti_warp_compute(&args, n_threads);
    return GPST_OK;
}

GPST_API gpst_result gpst_warp_launch(const gpst_warp* warp, const gpst_image* sources, uint32_t n_sources,
                                      const gpst_image* outputs, uint32_t n_outputs, void* stream) {
    GPSTI_FAIL_IF(!warp || !sources || !outputs || n_sources == 0, GPST_ERROR_ARGUMENT,
                  "gpst_warp_launch: warp, sources and outputs: required");
    GPSTI_FAIL_IF(n_outputs != (uint64_t)n_sources * warp->n_outputs, GPST_ERROR_ARGUMENT,
                  "gpst_warp_launch: n_outputs=%u: %u sources with %u outputs each", (unsigned)n_outputs,
                  (unsigned)n_sources, (unsigned)warp->n_outputs);
    GPSTI_TRY(gpsti_warp_check_list(warp, "gpst_warp_launch"));
    for (uint32_t s = 0; s < n_sources; s++)
        GPSTI_TRY(gpsti_warp_check(warp, &sources[s], outputs + (size_t)s * warp->n_outputs, warp->n_outputs));
    const gpsti_warp_args args = gpsti_warp_args_of(warp, sources, n_sources, outputs);
    (void)args;
    return GPSTI_LAUNCH_GPU("gpst_warp_launch", stream, gpsti_warp_kernel_gpu(&args, stream));
}

GPSTI_PRIVATE gpst_result gpsti_warp_kernel_host(const void* args, const gpsti_exec* exec) {
    gpsti_warp_compute((const gpsti_warp_args*)args, exec ? exec->n_threads : 1);
    return GPST_OK;
}

/* A list of rois is read where kernels read pictures. */
GPSTI_PRIVATE void gpsti_warp_kernel_lists(void* args, gpsti_lists* lists) {
    gpsti_warp_args* const a = (gpsti_warp_args*)args;
    const gpst_map map = a->warp->desc.map;
    const size_t entry_bytes = gpsti_warp_list_channels(map) * sizeof(float);
    const size_t n_entries = (size_t)a->first_output + a->n_outputs;
    a->sources = (const gpst_image*)gpsti_lists_take(lists, a->sources, a->n_sources * sizeof *a->sources);
    a->outputs = (const gpst_image*)gpsti_lists_take(lists, a->outputs,
                                                     (size_t)a->n_sources * a->n_outputs * sizeof *a->outputs);
    if (map != GPST_MAP_ROI)
        a->list = (const float*)gpsti_lists_take(lists, a->list, n_entries * entry_bytes);
    a->pose = (const gpst_view*)gpsti_lists_take(lists, a->pose, sizeof *a->pose);
    gpsti_lists_add(lists, &a->warp->serial, sizeof a->warp->serial); /* another warp may have its address one day */
}

GPSTI_INTERN const gpsti_kernel* gpsti_warp_kernel(void) {
    static const gpsti_kernel kernel = {"warp", gpsti_warp_kernel_host,
                                        GPSTI_GPU_LAUNCHER(gpsti_warp_kernel_gpu), gpsti_warp_kernel_lists};
    return &kernel;
}
