/* kernels/warp/warp_plan.c -- what a warp computes ahead of its pixels: the plan of
   every output, once, and the job of one output of one call. Checks nothing. */
#include "../../core/base/platform_internal.h"

#include "warp_pixel_internal.h"

/* ---- the plan ------------------------------------------------------------------------ */
GPSTI_PRIVATE bool gpsti_warp_angle_fits(double degrees) { return degrees >= -1e6 && degrees <= 1e6; }

/* Ry(yaw) Rx(pitch) Rz(roll); element by element, in a fixed order. */
GPST_API void gpst_view_rotation(const gpst_view* view, double out[9]) {
    double sy, cy, sp, cp, sr, cr;
    if (out)
        memset(out, 0, 9 * sizeof *out);
    if (!out || !view || !gpsti_warp_angle_fits(view->yaw) || !gpsti_warp_angle_fits(view->pitch) ||
        !gpsti_warp_angle_fits(view->roll))
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

/* PY360 spreads the pixels from edge to edge: their centres lie on the edges. */
GPSTI_PRIVATE void gpsti_warp_plan_rays(const gpst_warp_desc* desc, gpsti_warp_view* plan) {
    const uint32_t edge = desc->convention == GPST_CONVENTION_PY360 ? 1 : 0, width = desc->width, height = desc->height;
    for (int c = 0; c < 3; c++) {
        plan->a[c] = gpsti_mul64(plan->rotation[3 * c], plan->tan_x) / (width - edge);
        plan->b[c] = gpsti_mul64(plan->rotation[3 * c + 1], plan->tan_y) / (height - edge);
        plan->d[c] = plan->rotation[3 * c + 2];
        gpsti_split(plan->a[c], &plan->a_high[c], &plan->a_low[c]);
    }
}

GPSTI_PRIVATE void gpsti_warp_plan_view(const gpst_view* view, const gpst_warp_desc* desc, gpsti_warp_view* plan) {
    gpst_view_rotation(view, plan->rotation);
    plan->tan_x = gpsti_warp_tan_half(view->hfov > 0 ? view->hfov : 90.0);
    plan->tan_y = view->vfov > 0 ? gpsti_warp_tan_half(view->vfov)
                                 : gpsti_mul64(plan->tan_x, (double)desc->height) / desc->width;
    gpsti_warp_plan_rays(desc, plan);
}

/* The view stays where it is in the world, and the source was taken turned by pose: transposed(pose) * rotation. */
GPSTI_PRIVATE void gpsti_warp_plan_pose(const gpst_view* pose, const gpst_warp_desc* desc, gpsti_warp_view* plan) {
    double p[9], view[9];
    gpst_view_rotation(pose, p);
    const gpsti_fp_mode mode = gpsti_fp_enter();
    memcpy(view, plan->rotation, sizeof view);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            plan->rotation[3 * r + c] = gpsti_mul64(p[r], view[c]) + gpsti_mul64(p[3 + r], view[3 + c]) +
                                        gpsti_mul64(p[6 + r], view[6 + c]);
    gpsti_warp_plan_rays(desc, plan);
    gpsti_fp_leave(mode);
}

/* Floats of one output of ROTATE: columns padded to whole blocks, then rows. */
GPSTI_PRIVATE uint32_t gpsti_warp_turn_stride(uint32_t width) {
    return (width + GPSTI_BLOCK - 1) / GPSTI_BLOCK * GPSTI_BLOCK;
}

GPSTI_INTERN size_t gpsti_warp_turn_floats(uint32_t width, uint32_t height) {
    return (size_t)GPSTI_WARP_TURN_COLUMN * gpsti_warp_turn_stride(width) + (size_t)GPSTI_WARP_TURN_ROW * height;
}

GPSTI_PRIVATE void gpsti_warp_plan_turn(const gpst_view* view, uint32_t width, uint32_t height,
                                        gpsti_warp_view* plan, float* turn) {
    const uint32_t stride = gpsti_warp_turn_stride(width);
    float* const rows = turn + (size_t)GPSTI_WARP_TURN_COLUMN * stride;
    float column[GPSTI_WARP_TURN_COLUMN];
    gpst_view_rotation(view, plan->rotation);
    memset(turn, 0, gpsti_warp_turn_floats(width, height) * sizeof *turn);
    for (uint32_t x = 0; x < width; x++) {
        gpsti_warp_turn_column(plan->rotation, width, x, column);
        for (uint32_t i = 0; i < GPSTI_WARP_TURN_COLUMN; i++)
            turn[i * stride + x] = column[i];
    }
    for (uint32_t y = 0; y < height; y++)
        gpsti_warp_turn_row(plan->rotation, height, y, rows + (size_t)GPSTI_WARP_TURN_ROW * y);
}

/* Half a pixel less, so that 0 is the centre of the first; OPENCV: that of the output, too. */
GPSTI_PRIVATE void gpsti_warp_plan_affine(const gpst_affine* affine, bool opencv, gpsti_warp_matrix* plan) {
    const int64_t half = (int64_t)1 << 28;
    for (int e = 0; e < 6; e++)
        plan->q[e] = e % 3 == 2 ? gpsti_warp_whole(affine->m[e] * 536870912.0)
                                : gpsti_warp_whole(affine->m[e] * 268435456.0);
    plan->q[2] -= opencv ? plan->q[0] + plan->q[1] : half;
    plan->q[5] -= opencv ? plan->q[3] + plan->q[4] : half;
}

/* ---- an item's list -------------------------------------------------------------------- */
GPSTI_INTERN uint32_t gpsti_warp_list_channels(gpst_map map) {
    return map == GPST_MAP_ROI ? 4 : map == GPST_MAP_AFFINE ? 6 : map == GPST_MAP_EQUIRECT ? 5 : 0;
}

GPSTI_INTERN const char* gpsti_warp_list_name(gpst_map map) {
    return map == GPST_MAP_ROI ? "rois" : map == GPST_MAP_AFFINE ? "affines" : "views";
}

GPSTI_INTERN gpst_affine gpsti_warp_list_affine(const void* entry) {
    float m[6];
    gpst_affine affine;
    memcpy(m, entry, sizeof m); /* a picture of a mapped file may lie anywhere */
    for (int e = 0; e < 6; e++)
        affine.m[e] = (double)m[e];
    return affine;
}

GPSTI_INTERN gpst_view gpsti_warp_list_view(const void* entry) {
    float members[5];
    gpst_view view;
    memcpy(members, entry, sizeof members);
    view.yaw = (double)members[0], view.pitch = (double)members[1], view.roll = (double)members[2];
    view.hfov = (double)members[3], view.vfov = (double)members[4];
    return view;
}

/* What the map of this output is planned from, where the list comes with the item. */
GPSTI_PRIVATE void gpsti_warp_job_entry(const gpst_warp_desc* desc, const float* entry, gpsti_warp_job* job) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    if (job->map == GPST_MAP_AFFINE) {
        const gpst_affine affine = gpsti_warp_list_affine(entry);
        gpsti_warp_plan_affine(&affine, desc->convention == GPST_CONVENTION_OPENCV, &job->affine);
    } else if (job->map == GPST_MAP_EQUIRECT) {
        const gpst_view view = gpsti_warp_list_view(entry);
        gpsti_warp_plan_view(&view, desc, &job->view);
    }
    gpsti_fp_leave(mode);
}

GPSTI_INTERN uint32_t gpsti_warp_count_outputs(const gpst_warp_desc* desc) {
    switch (desc->map) {
    case GPST_MAP_EQUIRECT:
    case GPST_MAP_ROTATE:
        return desc->n_views;
    case GPST_MAP_ROI:
        return desc->n_rois;
    case GPST_MAP_AFFINE:
        return desc->n_affines;
    default:
        return 1;
    }
}

GPSTI_PRIVATE void gpsti_warp_resolve(const gpst_warp_desc* desc, gpst_warp_desc* out) {
    *out = *desc;
    if (desc->filter == GPST_FILTER_DEFAULT)
        out->filter = GPST_FILTER_BILINEAR;
    if (desc->convention == GPST_CONVENTION_DEFAULT)
        out->convention = GPST_CONVENTION_NATIVE;
    if (desc->border == GPST_BORDER_DEFAULT)
        out->border =
            desc->map == GPST_MAP_AFFINE || desc->map == GPST_MAP_TABLE ? GPST_BORDER_ZERO : GPST_BORDER_EDGE;
    if (desc->yuv == GPST_YUV_DEFAULT)
        out->yuv = GPST_YUV_BT709_VIDEO;
    if (desc->siting == GPST_SITING_DEFAULT)
        out->siting = GPST_SITING_LEFT;
    if (desc->dtype == GPST_DTYPE_DEFAULT)
        out->dtype = GPST_DTYPE_U8;
    if (desc->layout == GPST_LAYOUT_DEFAULT)
        out->layout = GPST_LAYOUT_HWC;
    if (desc->mask.data)
        out->mask = gpsti_image_resolved(&desc->mask);
    if (desc->table_pitch_bytes == 0)
        out->table_pitch_bytes = (int64_t)desc->width * 8;
    out->rois = desc->rois_in_place ? desc->rois : NULL;
    out->affines = NULL;
}

GPSTI_INTERN void gpsti_warp_plan(gpst_warp* warp, const gpst_warp_desc* desc) {
    gpsti_warp_resolve(desc, &warp->desc);
    warp->desc.views = warp->views;
    warp->desc.n_views = warp->views ? warp->n_outputs : 0;
    warp->level = gpsti_simd_level_query();
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (uint32_t i = 0; i < warp->n_outputs; i++) {
        if (warp->views)
            warp->views[i] = desc->views[i];
        if (warp->turns)
            gpsti_warp_plan_turn(&warp->views[i], desc->width, desc->height, &warp->plans[i],
                                 warp->turns + warp->turn_floats * i);
        else if (warp->views)
            gpsti_warp_plan_view(&warp->views[i], desc, &warp->plans[i]);
        if (warp->rois)
            warp->rois[i] = gpsti_warp_roi_of(&desc->rois[i]);
        if (warp->affines)
            gpsti_warp_plan_affine(&desc->affines[i], warp->desc.convention == GPST_CONVENTION_OPENCV,
                                   &warp->affines[i]);
    }
    gpsti_fp_leave(mode);
}

/* ---- the job ------------------------------------------------------------------------- */
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
    const bool native = job->convention != GPST_CONVENTION_FFMPEG;
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

GPSTI_PRIVATE double gpsti_warp_length(const double v[3]) {
    return gpsti_sqrt64(gpsti_mul64(v[0], v[0]) + gpsti_mul64(v[1], v[1]) + gpsti_mul64(v[2], v[2]));
}

/* What a filter and a convention make of the axes. */
GPSTI_PRIVATE void gpsti_warp_job_convention(gpsti_warp_job* job) {
    const bool opencv = job->convention == GPST_CONVENTION_OPENCV, torch = job->convention == GPST_CONVENTION_TORCH;
    const bool whole = opencv && job->source_dtype == GPST_DTYPE_U8;
    const gpsti_windows windows = job->filter == GPST_FILTER_BICUBIC_AREA ? GPSTI_WINDOWS_CUBIC
                                  : job->filter != GPST_FILTER_BICUBIC    ? GPSTI_WINDOWS_AREA
                                  : whole                                 ? GPSTI_WINDOWS_WHOLE_TAPS
                                                                          : GPSTI_WINDOWS_TAPS;
    job->across.windows = job->down.windows = (uint8_t)windows;
    if (opencv && job->map == GPST_MAP_RESIZE && job->filter == GPST_FILTER_AREA) {
        const int32_t across = job->across.out - job->source_width, down = job->down.out - job->source_height;
        job->across.windows = across < 0 && down > 0 ? GPSTI_WINDOWS_PAIR : GPSTI_WINDOWS_AREA;
        job->down.windows = down < 0 && across > 0 ? GPSTI_WINDOWS_PAIR : GPSTI_WINDOWS_AREA;
    }
    job->across.box = job->down.box = opencv;
    job->across.corner = job->down.corner = job->filter == GPST_FILTER_NEAREST && (opencv || torch);
    if (torch && job->filter != GPST_FILTER_NEAREST) {
        const gpsti_fp_mode mode = gpsti_fp_enter();
        job->across.scale = (float)job->source_width / (float)job->across.out;
        job->down.scale = (float)job->source_height / (float)job->down.out;
        gpsti_fp_leave(mode);
    }
}

/* How many pixels of the source an output pixel is wide and high, where it is widest and highest. Of a sphere a pixel
   counts as it is on the equator: towards the poles the source has more of them, and no more to show. */
GPSTI_PRIVATE void gpsti_warp_job_samples(gpsti_warp_job* job) {
    const double around = job->source_width > 2 * job->source_height ? job->source_width : 2.0 * job->source_height;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    double across = 0, down = 0;
    if (job->map == GPST_MAP_ROTATE) {
        across = around / job->width, down = gpsti_mul64(around, 0.5) / job->height;
    } else if (job->map == GPST_MAP_EQUIRECT) {
        across = gpsti_mul64(gpsti_warp_length(job->view.a), around) / GPSTI_PI;
        down = gpsti_mul64(gpsti_warp_length(job->view.b), around) / GPSTI_PI;
    } else if (job->map == GPST_MAP_AFFINE) {
        const int64_t* const q = job->affine.q;
        const double x[3] = {(double)q[0], (double)q[3], 0}, y[3] = {(double)q[1], (double)q[4], 0};
        across = gpsti_warp_length(x) / 268435456.0, down = gpsti_warp_length(y) / 268435456.0;
    }
    job->n_across = job->map == GPST_MAP_TABLE ? 0 : gpsti_warp_n_samples(gpsti_narrow(across));
    job->n_down = job->map == GPST_MAP_TABLE ? 0 : gpsti_warp_n_samples(gpsti_narrow(down));
    gpsti_fp_leave(mode);
}

/* ---- RESIZE: how the source fits in --------------------------------------------------- */
/* Half of n pixels, of an odd number the even one of the two nearest. */
GPSTI_PRIVATE int32_t gpsti_warp_half_even(int32_t n) { return n / 2 + (n % 2 != 0 && n / 2 % 2 != 0 ? 1 : 0); }

/* The side of the source as large as the ratio makes it, to the nearest pixel, ties to even: a double of 2^52 to 2^53
   is a whole number. */
GPSTI_PRIVATE uint64_t gpsti_warp_scaled(uint32_t side, double ratio) {
    const double lift = 4503599627370496.0, rounded = gpsti_mul64((double)side, ratio) + lift;
    return rounded - lift < 1.0 ? 1 : (uint64_t)(rounded - lift);
}

/* The picture that COVER cuts from. Its shorter side, unless it is given: so long that both sides reach. */
GPSTI_PRIVATE void gpsti_warp_covering(const gpst_warp_desc* desc, uint64_t width, uint64_t height,
                                       gpsti_warp_fit* across, gpsti_warp_fit* down) {
    const bool upright = width <= height;
    const uint64_t shorter = upright ? width : height, longer = upright ? height : width;
    const uint64_t by_shorter = upright ? desc->width : desc->height, by_longer = upright ? desc->height : desc->width;
    const uint64_t reaching = (by_longer * shorter + longer - 1) / longer;
    const uint64_t least = by_shorter > reaching ? by_shorter : reaching;
    const uint64_t side = desc->short_side ? desc->short_side : least, other = side * longer / shorter;
    across->resized = upright ? side : other, down->resized = upright ? other : side;
}

/* The resized side in the output's: its middle, or all of it in the middle. */
GPSTI_PRIVATE void gpsti_warp_centre(uint32_t out, gpsti_warp_fit* fit) {
    const int32_t size = (int32_t)out, resized = (int32_t)fit->resized;
    fit->first = resized > size ? gpsti_warp_half_even(resized - size) : 0;
    fit->begin = resized < size ? (size - resized) / 2 : 0;
    fit->size = resized < size ? resized : size;
}

GPSTI_INTERN void gpsti_warp_fit_of(const gpst_warp_desc* desc, uint32_t source_width, uint32_t source_height,
                                    gpsti_warp_fit* across, gpsti_warp_fit* down) {
    across->resized = desc->width, down->resized = desc->height;
    if (desc->fit == GPST_FIT_LETTERBOX) {
        const gpsti_fp_mode mode = gpsti_fp_enter();
        const double by_width = (double)desc->width / source_width, by_height = (double)desc->height / source_height;
        const double ratio = by_height < by_width ? by_height : by_width;
        across->resized = gpsti_warp_scaled(source_width, ratio);
        down->resized = gpsti_warp_scaled(source_height, ratio);
        gpsti_fp_leave(mode);
    } else if (desc->fit == GPST_FIT_COVER) {
        gpsti_warp_covering(desc, source_width, source_height, across, down);
    }
    gpsti_warp_centre(desc->width, across);
    gpsti_warp_centre(desc->height, down);
}

/* The axes, and which pixels of the output they are for. */
GPSTI_PRIVATE void gpsti_warp_job_fit(const gpst_warp_desc* desc, gpsti_warp_job* job) {
    const int32_t width = job->source_width, height = job->source_height;
    const int64_t unit = GPSTI_WARP_AXIS_UNIT;
    gpsti_warp_fit across, down;
    gpsti_warp_fit_of(desc, (uint32_t)width, (uint32_t)height, &across, &down);
    job->across = gpsti_warp_axis_of(0, width * unit, width, (int32_t)across.resized);
    job->down = gpsti_warp_axis_of(0, height * unit, height, (int32_t)down.resized);
    job->across.first = across.first, job->down.first = down.first;
    job->left = across.begin, job->top = down.begin;
    job->width = across.size, job->height = down.size;
    if (job->output)
        job->output = gpsti_warp_output(job, job->left, job->top, 0);
}

/* What the map knows of this output; the sizes of both images are in the job. entry: of the item's list, or NULL;
   pose: of the source, or NULL. */
GPSTI_PRIVATE void gpsti_warp_job_map(const gpst_warp* warp, uint32_t output_index, const float* entry,
                                      const gpst_view* pose, gpsti_warp_job* job) {
    const int32_t width = job->source_width, height = job->source_height;
    job->border = (int)warp->desc.border;
    if (job->map == GPST_MAP_RESIZE) {
        gpsti_warp_job_fit(&warp->desc, job);
    } else if (job->map == GPST_MAP_ROI) {
        job->across = gpsti_warp_axis_of(0, 0, width, job->width);
        job->down = gpsti_warp_axis_of(0, 0, height, job->height);
        job->rois_in_place = warp->desc.rois_in_place || entry;
    } else if (job->map == GPST_MAP_AFFINE) {
        if (!entry)
            job->affine = warp->affines[output_index];
    } else if (job->map == GPST_MAP_TABLE) {
        job->table = warp->desc.table;
        job->table_pitch = warp->desc.table_pitch_bytes;
    } else {
        job->border = GPSTI_BORDER_SPHERE;
        if (!entry)
            job->view = warp->plans[output_index];
        gpsti_warp_job_equirect(job);
    }
    if (entry)
        gpsti_warp_job_entry(&warp->desc, entry, job);
    if (pose && job->map == GPST_MAP_EQUIRECT)
        gpsti_warp_plan_pose(pose, &warp->desc, &job->view);
    gpsti_warp_job_convention(job);
    if (warp->rois)
        gpsti_warp_take_roi(&warp->rois[output_index], job);
    else if (job->cb && gpsti_warp_by_axes(job->map))
        gpsti_warp_chroma_axes(job);
    if (job->map == GPST_MAP_ROTATE) {
        job->turn_stride = (int32_t)gpsti_warp_turn_stride((uint32_t)job->width);
        job->turn_columns = warp->turns + warp->turn_floats * output_index;
        job->turn_rows = job->turn_columns + (ptrdiff_t)GPSTI_WARP_TURN_COLUMN * job->turn_stride;
    }
    if (job->filter == GPST_FILTER_AREA && !gpsti_warp_by_axes(job->map))
        gpsti_warp_job_samples(job);
}

/* Kr and Kb of the standard; the ranges are 16..235 and 16..240 (video), or 0..255. */
GPSTI_PRIVATE void gpsti_warp_plan_colours(gpst_yuv yuv, gpsti_warp_colours* out) {
    const bool old = yuv == GPST_YUV_BT601_VIDEO || yuv == GPST_YUV_BT601_FULL;
    const bool full = yuv == GPST_YUV_BT601_FULL || yuv == GPST_YUV_BT709_FULL;
    const double kr = old ? 0.299 : 0.2126, kb = old ? 0.114 : 0.0722, kg = 1.0 - kr - kb;
    const double y = full ? 1.0 : 255.0 / 219.0, chroma = full ? 2.0 : 2.0 * 255.0 / 224.0;
    const double red_v = gpsti_mul64(chroma, 1.0 - kr), blue_u = gpsti_mul64(chroma, 1.0 - kb);
    const double green_u = -gpsti_mul64(blue_u, kb) / kg, green_v = -gpsti_mul64(red_v, kr) / kg;
    const double black = full ? 0.0 : -gpsti_mul64(16.0, y);
    out->y = gpsti_narrow(y), out->red_v = gpsti_narrow(red_v), out->blue_u = gpsti_narrow(blue_u);
    out->green_u = gpsti_narrow(green_u), out->green_v = gpsti_narrow(green_v);
    out->red = gpsti_narrow(black - 128.0 * red_v);
    out->green = gpsti_narrow(black - 128.0 * (green_u + green_v));
    out->blue = gpsti_narrow(black - 128.0 * blue_u);
}

GPSTI_PRIVATE void gpsti_warp_job_yuv(const gpst_warp_desc* desc, const gpst_image* source,
                                      gpsti_warp_job* out) {
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(source);
    const gpst_yuv yuv = desc->yuv;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    gpsti_warp_plan_colours(yuv, &out->colours);
    gpsti_fp_leave(mode);
    out->outside = yuv == GPST_YUV_BT601_FULL || yuv == GPST_YUV_BT709_FULL ? 0 : 16;
    out->cb = out->source + (ptrdiff_t)((int64_t)chroma.luma_rows * source->pitch_bytes);
    out->cr = chroma.n_planes == 1 ? out->cb + 1 : out->cb + (ptrdiff_t)(chroma.height * chroma.pitch_bytes);
    out->chroma_pitch = chroma.pitch_bytes;
    out->chroma_step = (int32_t)chroma.step;
    out->chroma_width = (int32_t)chroma.width, out->chroma_height = (int32_t)chroma.height;
    out->cosited = desc->siting == GPST_SITING_LEFT;
}

/* Where the chroma lies follows from these: no pointers, which an output of a launch would have of its own. */
GPSTI_PRIVATE void gpsti_warp_job_jpeg(const gpst_image* source, gpsti_warp_job* out) {
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(source);
    out->chroma_pitch = chroma.pitch_bytes;
    out->chroma_width = (int32_t)chroma.width, out->chroma_height = (int32_t)chroma.height;
    out->jpeg_across = (uint8_t)chroma.across, out->jpeg_down = (uint8_t)chroma.down;
}

/* fill is of 255; the rest is as with any pixel. */
GPSTI_PRIVATE void gpsti_warp_job_bars(const gpst_warp_desc* desc, gpsti_warp_job* job) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (int c = 0; c < 4; c++) {
        const float value = gpsti_narrow(gpsti_mul64((double)desc->fill[c], (double)job->full) / 255.0);
        job->bar[c] = job->has_scale ? gpsti_fma(value, job->scale[c], job->bias[c]) : value;
    }
    gpsti_fp_leave(mode);
}

/* Of a dtype. */
GPSTI_PRIVATE float gpsti_warp_full_of(gpst_dtype dtype) {
    return dtype == GPST_DTYPE_U8 ? 255.0f : dtype == GPST_DTYPE_U16 ? 65535.0f : 1.0f;
}

/* Full is 255, 65535 or 1; stored in U8 as 255, in U16 as 65535. */
GPSTI_PRIVATE void gpsti_warp_job_full(const gpst_warp_desc* desc, gpsti_warp_job* job) {
    const bool floats_out = job->dtype == GPST_DTYPE_F16 || job->dtype == GPST_DTYPE_F32;
    const float full_out = gpsti_warp_full_of(job->dtype);
    job->full = gpsti_warp_full_of(job->source_dtype);
    job->not_a_number = floats_out ? gpsti_f32_from_bits(0x7fc00000u) : 0.0f;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (int c = 0; desc->scale_of_full && c < 4; c++)
        job->scale[c] = job->scale[c] / job->full;
    for (int c = 0; !job->has_scale && c < 4; c++)
        job->scale[c] = full_out / job->full, job->bias[c] = 0.0f;
    gpsti_fp_leave(mode);
    job->has_scale = job->has_scale || (!floats_out && job->source_dtype != job->dtype);
}

GPSTI_PRIVATE void gpsti_warp_job_make(const gpst_warp* warp, const gpst_image* source, const gpst_image* output,
                                       uint32_t output_index, const float* entry, const gpst_view* pose,
                                       gpsti_warp_job* out) {
    const gpst_warp_desc* desc = &warp->desc;
    const gpst_image from = gpsti_image_resolved(source), to = gpsti_image_resolved(output);
    memset(out, 0, sizeof *out);
    out->map = desc->map, out->filter = desc->filter, out->convention = desc->convention;
    out->dtype = desc->dtype, out->layout = desc->layout, out->has_scale = desc->has_scale;
    out->source = (const uint8_t*)from.data, out->source_pitch = from.pitch_bytes;
    out->source_width = (int32_t)from.width, out->source_height = (int32_t)from.height;
    out->source_dtype = from.dtype;
    out->source_pixel_bytes =
        (gpsti_image_is_yuv(from.format) ? 1 : gpst_format_channels(from.format)) * gpst_dtype_bytes(from.dtype);
    gpsti_warp_channels(from.format, desc->format, out->shift);
    if (gpsti_image_is_jpeg(from.format))
        gpsti_warp_job_jpeg(&from, out);
    else if (gpsti_image_is_yuv(from.format))
        gpsti_warp_job_yuv(desc, &from, out);
    out->mask = (const uint8_t*)desc->mask.data, out->mask_pitch = desc->mask.pitch_bytes;
    out->output = (uint8_t*)to.data, out->output_pitch = to.pitch_bytes;
    out->plane_bytes = to.pitch_bytes * (int64_t)to.height;
    out->width = out->output_width = (int32_t)to.width, out->height = out->output_height = (int32_t)to.height;
    out->n_channels = gpst_format_channels(desc->format);
    gpsti_warp_job_map(warp, output_index, entry, pose, out);
    memcpy(out->scale, desc->scale, sizeof out->scale);
    memcpy(out->bias, desc->bias, sizeof out->bias);
    gpsti_warp_job_full(desc, out);
    if (desc->fit != GPST_FIT_STRETCH)
        gpsti_warp_job_bars(desc, out);
}

GPSTI_LINK void gpsti_warp_job_init(const gpst_warp* warp, const gpst_image* source, const gpst_image* output,
                                    uint32_t output_index, gpsti_warp_job* out) {
    gpsti_warp_job_make(warp, source, output, output_index, NULL, NULL, out);
}

GPSTI_LINK void gpsti_warp_job_of(const gpsti_warp_args* args, uint64_t image, gpsti_warp_job* out) {
    const gpst_warp_desc* const desc = &args->warp->desc;
    const uint32_t source = (uint32_t)(image / args->n_outputs);
    const uint32_t output = args->first_output + (uint32_t)(image % args->n_outputs);
    const float* const entry = args->list ? args->list + (size_t)output * gpsti_warp_list_channels(desc->map) : NULL;
    gpsti_warp_job_make(args->warp, &args->sources[source], &args->outputs[image], output, entry, args->pose, out);
    if (args->mask)
        out->mask = (const uint8_t*)args->mask;
    if (args->table)
        out->table = (const float*)args->table;
    if (!out->rois_in_place)
        return;
    out->listed.roi = entry ? (const gpst_roi*)(const void*)entry : desc->rois + (size_t)source * desc->n_rois + output;
    out->listed.n_used = entry ? args->n_used : desc->n_rois_used ? desc->n_rois_used + source : NULL;
    out->clears = args->n_used != NULL;
    out->listed.index = output;
}
