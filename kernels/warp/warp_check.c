/* kernels/warp/warp_check.c -- every rule of a warp's desc and of the images that it
   is run on. Changes nothing. */
#include "../../core/base/platform_internal.h"

#include "warp_map_internal.h"

#define GPSTI_WARP_MAX_DEGREES 1e6

/* ---- rules of the desc ------------------------------------------------------------- */
#define GPSTI_WARP_RULE(condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "gpst_warp_create: " __VA_ARGS__)

/* False for NaN and infinities, too. */
GPSTI_PRIVATE bool gpsti_warp_within(double value, double limit) { return value >= -limit && value <= limit; }

GPSTI_PRIVATE bool gpsti_warp_finite(float value) {
    return (gpsti_f32_bits(value) & 0x7f800000u) != 0x7f800000u;
}

/* The same of an entry of a list, where: whose. */
#define GPSTI_WARP_ENTRY_RULE(condition, ...) GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "%s: " __VA_ARGS__)

GPSTI_PRIVATE gpst_result gpsti_warp_check_view(const gpst_view* view, uint32_t index, const char* where) {
    const double angles[3] = {view->yaw, view->pitch, view->roll};
    static const char* const names[3] = {"yaw", "pitch", "roll"};
    for (int i = 0; i < 3; i++)
        GPSTI_WARP_ENTRY_RULE(gpsti_warp_within(angles[i], GPSTI_WARP_MAX_DEGREES),
                              "views[%u].%s=%g: degrees, must be within +-1e6", where, (unsigned)index, names[i],
                              angles[i]);
    GPSTI_WARP_ENTRY_RULE(view->hfov >= 0 && view->hfov < 180,
                          "views[%u].hfov=%g: must be 0 (90 degrees) or between 0 and 180", where, (unsigned)index,
                          view->hfov);
    GPSTI_WARP_ENTRY_RULE(view->vfov >= 0 && view->vfov < 180,
                          "views[%u].vfov=%g: must be 0 (square pixels) or between 0 and 180", where, (unsigned)index,
                          view->vfov);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_affine(const gpst_affine* affine, uint32_t index, const char* where) {
    for (int e = 0; e < 6; e++) {
        const bool offset = e % 3 == 2;
        GPSTI_WARP_ENTRY_RULE(gpsti_warp_within(affine->m[e], offset ? 536870912.0 : 65536.0),
                              "affines[%u].m[%d]=%g: must be within +-%s", where, (unsigned)index, e, affine->m[e],
                              offset ? "2^29" : "65536");
    }
    return GPST_OK;
}

GPSTI_PRIVATE bool gpsti_warp_has_views(gpst_map map) {
    return map == GPST_MAP_EQUIRECT || map == GPST_MAP_ROTATE;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_convention(const gpst_warp_desc* desc) {
    GPSTI_WARP_RULE((int)desc->convention >= 0 && (int)desc->convention <= (int)GPST_CONVENTION_PY360,
                    "convention=%d: must be one of gpst_convention", (int)desc->convention);
    GPSTI_WARP_RULE(desc->convention != GPST_CONVENTION_FFMPEG || desc->map == GPST_MAP_EQUIRECT,
                    "convention=FFMPEG: only with map=EQUIRECT");
    GPSTI_WARP_RULE(desc->convention != GPST_CONVENTION_TORCH || desc->map == GPST_MAP_RESIZE,
                    "convention=TORCH: only with map=RESIZE");
    GPSTI_WARP_RULE(desc->convention != GPST_CONVENTION_PY360 || desc->map == GPST_MAP_EQUIRECT,
                    "convention=PY360: only with map=EQUIRECT");
    GPSTI_WARP_RULE(desc->convention != GPST_CONVENTION_PY360 || (desc->width > 1 && desc->height > 1),
                    "width=%u, height=%u: must be 2 or more with convention=PY360", (unsigned)desc->width,
                    (unsigned)desc->height);
    return GPST_OK;
}

/* AREA and the cubics. */
GPSTI_PRIVATE gpst_result gpsti_warp_check_windows(const gpst_warp_desc* desc) {
    const char* const name = desc->filter == GPST_FILTER_AREA      ? "AREA"
                             : desc->filter == GPST_FILTER_BICUBIC ? "BICUBIC"
                                                                   : "BICUBIC_AREA";
    const bool cubic = desc->filter == GPST_FILTER_BICUBIC || desc->filter == GPST_FILTER_BICUBIC_AREA;
    GPSTI_WARP_RULE(!cubic || desc->map == GPST_MAP_RESIZE || desc->map == GPST_MAP_ROI,
                    "filter=%s: only with map=RESIZE and ROI", name);
    GPSTI_WARP_RULE(desc->filter != GPST_FILTER_BICUBIC_AREA || desc->convention != GPST_CONVENTION_OPENCV,
                    "filter=BICUBIC_AREA: not with convention=OPENCV, which has none");
    GPSTI_WARP_RULE(!gpsti_warp_by_windows(desc->filter) || desc->map != GPST_MAP_ROI ||
                        desc->border != GPST_BORDER_ZERO,
                    "border=ZERO: not with map=ROI and filter=%s, whose edges repeat", name);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_fit(const gpst_warp_desc* desc) {
    GPSTI_WARP_RULE((int)desc->fit >= 0 && (int)desc->fit <= (int)GPST_FIT_COVER,
                    "fit=%d: must be STRETCH, LETTERBOX or COVER", (int)desc->fit);
    GPSTI_WARP_RULE(desc->fit == GPST_FIT_STRETCH || desc->map == GPST_MAP_RESIZE,
                    "fit=%d: LETTERBOX and COVER only with map=RESIZE", (int)desc->fit);
    GPSTI_WARP_RULE(desc->fit == GPST_FIT_COVER || desc->short_side == 0, "short_side=%u: only with fit=COVER",
                    (unsigned)desc->short_side);
    GPSTI_WARP_RULE(desc->short_side <= GPSTI_WARP_MAX_SIDE, "short_side=%u: must be at most %d",
                    (unsigned)desc->short_side, GPSTI_WARP_MAX_SIDE);
    for (uint32_t c = 0; desc->fit != GPST_FIT_STRETCH && c < gpst_format_channels(desc->format); c++)
        GPSTI_WARP_RULE(gpsti_warp_finite(desc->fill[c]), "fill[%u]=%g: must be finite", (unsigned)c,
                        (double)desc->fill[c]);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_enums(const gpst_warp_desc* desc) {
    GPSTI_WARP_RULE((int)desc->map >= (int)GPST_MAP_RESIZE && (int)desc->map <= (int)GPST_MAP_TABLE,
                    "map=%d: required, RESIZE, EQUIRECT, ROI, AFFINE, ROTATE or TABLE", (int)desc->map);
    GPSTI_WARP_RULE((int)desc->filter >= 0 && (int)desc->filter <= (int)GPST_FILTER_BICUBIC_AREA,
                    "filter=%d: must be one of gpst_filter", (int)desc->filter);
    GPSTI_TRY(gpsti_warp_check_windows(desc));
    GPSTI_TRY(gpsti_warp_check_convention(desc));
    GPSTI_WARP_RULE((int)desc->border >= 0 && (int)desc->border <= (int)GPST_BORDER_ZERO,
                    "border=%d: must be EDGE or ZERO", (int)desc->border);
    GPSTI_WARP_RULE(desc->map != GPST_MAP_RESIZE || desc->border != GPST_BORDER_ZERO,
                    "border=ZERO: not with map=RESIZE, which never looks outside");
    GPSTI_WARP_RULE(!gpsti_warp_has_views(desc->map) || desc->border == GPST_BORDER_DEFAULT,
                    "border=%d: must be 0 with map=EQUIRECT and ROTATE, whose sources go around",
                    (int)desc->border);
    GPSTI_WARP_RULE((int)desc->yuv >= 0 && (int)desc->yuv <= (int)GPST_YUV_BT709_FULL,
                    "yuv=%d: must be one of gpst_yuv", (int)desc->yuv);
    GPSTI_WARP_RULE((int)desc->siting >= 0 && (int)desc->siting <= (int)GPST_SITING_CENTER,
                    "siting=%d: must be LEFT or CENTER", (int)desc->siting);
    GPSTI_WARP_RULE((int)desc->format >= (int)GPST_FORMAT_GRAY && (int)desc->format <= (int)GPST_FORMAT_BGRA,
                    "format=%d: required, GRAY, RGB, BGR, RGBA or BGRA", (int)desc->format);
    GPSTI_WARP_RULE(gpst_dtype_bytes(desc->dtype) != 0, "dtype=%d: must be U8, I8, U16, F16 or F32", (int)desc->dtype);
    GPSTI_WARP_RULE(desc->dtype != GPST_DTYPE_I8 || desc->has_scale, "dtype=I8: only with has_scale");
    GPSTI_WARP_RULE(!desc->scale_of_full || desc->has_scale, "scale_of_full: only with has_scale");
    GPSTI_WARP_RULE(desc->layout == GPST_LAYOUT_DEFAULT || desc->layout == GPST_LAYOUT_HWC ||
                        desc->layout == GPST_LAYOUT_CHW,
                    "layout=%d: must be HWC or CHW", (int)desc->layout);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_mask(const gpst_warp_desc* desc) {
    if (!desc->mask.data)
        return GPST_OK;
    GPSTI_TRY(gpsti_image_check(&desc->mask, "gpst_warp_create", "mask"));
    GPSTI_WARP_RULE(desc->mask.format == GPST_FORMAT_GRAY &&
                        (desc->mask.dtype == GPST_DTYPE_DEFAULT || desc->mask.dtype == GPST_DTYPE_U8),
                    "mask.format=%d, dtype=%d: must be GRAY and U8", (int)desc->mask.format,
                    (int)desc->mask.dtype);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_views(const gpst_warp_desc* desc) {
    if (!gpsti_warp_has_views(desc->map)) {
        GPSTI_WARP_RULE(desc->n_views <= (desc->map == GPST_MAP_RESIZE ? 1u : 0u),
                        "n_views=%u: only with map=EQUIRECT and ROTATE; 0 or 1 with RESIZE",
                        (unsigned)desc->n_views);
        return GPST_OK;
    }
    GPSTI_WARP_RULE(desc->n_views >= 1, "n_views=0: required with map=EQUIRECT and ROTATE");
    GPSTI_WARP_RULE(desc->views || desc->list_per_item, "views=NULL: required with map=EQUIRECT and ROTATE");
    for (uint32_t i = 0; desc->views && i < desc->n_views; i++) {
        const gpst_view* view = &desc->views[i];
        GPSTI_TRY(gpsti_warp_check_view(view, i, "gpst_warp_create"));
        GPSTI_WARP_RULE(desc->map == GPST_MAP_EQUIRECT || !(view->hfov > 0 || view->vfov > 0),
                        "views[%u].hfov=%g, vfov=%g: must be 0 with map=ROTATE", (unsigned)i, view->hfov,
                        view->vfov);
    }
    return GPST_OK;
}

/* Their numbers are not looked at: they may not be there yet, nor where the host can read them. */
GPSTI_PRIVATE gpst_result gpsti_warp_check_rois_in_place(const gpst_warp_desc* desc) {
    GPSTI_WARP_RULE((uintptr_t)desc->rois % sizeof(float) == 0, "rois=%p: must be a multiple of 4 with rois_in_place",
                    (const void*)desc->rois);
    GPSTI_WARP_RULE((uintptr_t)desc->n_rois_used % sizeof(uint32_t) == 0, "n_rois_used=%p: must be a multiple of 4",
                    (const void*)desc->n_rois_used);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_rois(const gpst_warp_desc* desc) {
    GPSTI_WARP_RULE(!desc->rois_in_place || desc->map == GPST_MAP_ROI, "rois_in_place: only with map=ROI");
    GPSTI_WARP_RULE(!desc->n_rois_used || desc->rois_in_place, "n_rois_used: only with rois_in_place");
    if (desc->map != GPST_MAP_ROI) {
        GPSTI_WARP_RULE(desc->n_rois == 0, "n_rois=%u: only with map=ROI", (unsigned)desc->n_rois);
        return GPST_OK;
    }
    GPSTI_WARP_RULE(desc->n_rois >= 1, "n_rois=0: required with map=ROI");
    GPSTI_WARP_RULE(desc->rois || desc->list_per_item, "rois=NULL: required with map=ROI");
    if (desc->rois_in_place)
        return gpsti_warp_check_rois_in_place(desc);
    for (uint32_t i = 0; desc->rois && i < desc->n_rois; i++) {
        const gpst_roi* roi = &desc->rois[i];
        GPSTI_WARP_RULE(gpsti_warp_within((double)roi->x, (double)GPSTI_WARP_MAX_ROI) &&
                            gpsti_warp_within((double)roi->y, (double)GPSTI_WARP_MAX_ROI),
                        "rois[%u].x=%g, y=%g: must be within +-2^20", (unsigned)i, (double)roi->x,
                        (double)roi->y);
        GPSTI_WARP_RULE(roi->width > 0 && roi->width <= GPSTI_WARP_MAX_ROI && roi->height > 0 &&
                            roi->height <= GPSTI_WARP_MAX_ROI,
                        "rois[%u].width=%g, height=%g: must be above 0 and at most 2^20", (unsigned)i,
                        (double)roi->width, (double)roi->height);
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_affines(const gpst_warp_desc* desc) {
    if (desc->map != GPST_MAP_AFFINE) {
        GPSTI_WARP_RULE(desc->n_affines == 0, "n_affines=%u: only with map=AFFINE",
                        (unsigned)desc->n_affines);
        return GPST_OK;
    }
    GPSTI_WARP_RULE(desc->n_affines >= 1, "n_affines=0: required with map=AFFINE");
    GPSTI_WARP_RULE(desc->affines || desc->list_per_item, "affines=NULL: required with map=AFFINE");
    for (uint32_t i = 0; desc->affines && i < desc->n_affines; i++)
        GPSTI_TRY(gpsti_warp_check_affine(&desc->affines[i], i, "gpst_warp_create"));
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_list_per_item(const gpst_warp_desc* desc) {
    const bool own = desc->views || desc->rois || desc->affines;
    if (!desc->list_per_item)
        return GPST_OK;
    GPSTI_WARP_RULE(gpsti_warp_list_channels(desc->map) > 0, "list_per_item: only with map=ROI, AFFINE and EQUIRECT");
    GPSTI_WARP_RULE(!own, "%s: must be NULL with list_per_item", gpsti_warp_list_name(desc->map));
    GPSTI_WARP_RULE(!desc->rois_in_place, "rois_in_place: not with list_per_item, whose rois are an item's");
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_table(const gpst_warp_desc* desc) {
    const int64_t row_bytes = (int64_t)desc->width * 8;
    if (desc->map != GPST_MAP_TABLE) {
        GPSTI_WARP_RULE(!desc->table, "table: only with map=TABLE");
        return GPST_OK;
    }
    GPSTI_WARP_RULE(desc->table, "table=NULL: required with map=TABLE");
    GPSTI_WARP_RULE((uintptr_t)desc->table % sizeof(float) == 0, "table=%p: must be a multiple of 4",
                    (const void*)desc->table);
    GPSTI_WARP_RULE(
        desc->table_pitch_bytes == 0 ||
            (desc->table_pitch_bytes >= row_bytes && desc->table_pitch_bytes % 4 == 0),
        "table_pitch_bytes=%lld: must be 0, or a multiple of 4 and at least the %lld bytes of a row",
        (long long)desc->table_pitch_bytes, (long long)row_bytes);
    GPSTI_FAIL_IF((uint64_t)desc->table_pitch_bytes > (uint64_t)(SIZE_MAX / 2) / desc->height,
                  GPST_ERROR_OVERFLOW, "gpst_warp_create: table_pitch_bytes=%lld: does not fit in memory",
                  (long long)desc->table_pitch_bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_warp_check_desc(const gpst_warp_desc* desc) {
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
    GPSTI_TRY(gpsti_warp_check_fit(desc));
    GPSTI_TRY(gpsti_warp_check_list_per_item(desc));
    GPSTI_TRY(gpsti_warp_check_views(desc));
    GPSTI_TRY(gpsti_warp_check_rois(desc));
    GPSTI_TRY(gpsti_warp_check_affines(desc));
    GPSTI_TRY(gpsti_warp_check_table(desc));
    return gpsti_warp_check_mask(desc);
}

/* ---- rules of the images ------------------------------------------------------------ */
#define GPSTI_WARP_RUN_RULE(condition, ...) \
    GPSTI_FAIL_IF(!(condition), GPST_ERROR_ARGUMENT, "gpst_warp_run: " __VA_ARGS__)

GPSTI_INTERN gpst_result gpsti_warp_check_resized(const gpst_warp* warp, uint32_t width, uint32_t height,
                                                  const char* function) {
    gpsti_warp_fit across, down;
    gpsti_warp_fit_of(&warp->desc, width, height, &across, &down);
    GPSTI_FAIL_IF(across.resized > GPSTI_WARP_MAX_RESIZED || down.resized > GPSTI_WARP_MAX_RESIZED,
                  GPST_ERROR_ARGUMENT,
                  "%s: source.width=%u, height=%u: with fit=COVER it would become %llu x %llu: must be at most %d",
                  function, (unsigned)width, (unsigned)height, (unsigned long long)across.resized,
                  (unsigned long long)down.resized, GPSTI_WARP_MAX_RESIZED);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_warp_check_source(const gpst_warp* warp, const gpst_image* source) {
    const gpst_image* mask = &warp->desc.mask;
    GPSTI_TRY(gpsti_image_check(source, "gpst_warp_run", "source"));
    GPSTI_WARP_RUN_RULE(source->width <= GPSTI_WARP_MAX_SIDE && source->height <= GPSTI_WARP_MAX_SIDE,
                        "source.width=%u, height=%u: must be at most %d", (unsigned)source->width,
                        (unsigned)source->height, GPSTI_WARP_MAX_SIDE);
    GPSTI_WARP_RUN_RULE(source->format != GPST_FORMAT_TENSOR, "source.format=TENSOR: must have colours");
    GPSTI_WARP_RUN_RULE(source->dtype != GPST_DTYPE_I8, "source.dtype=%d: must be U8, U16, F16 or F32",
                        (int)source->dtype);
    GPSTI_WARP_RUN_RULE(source->layout != GPST_LAYOUT_CHW || source->format == GPST_FORMAT_GRAY,
                        "source.layout=CHW: must be HWC");
    GPSTI_WARP_RUN_RULE(source->format == GPST_FORMAT_GRAY || warp->desc.format != GPST_FORMAT_GRAY,
                        "source.format=%d: must be GRAY where the outputs are GRAY", (int)source->format);
    GPSTI_WARP_RUN_RULE(warp->desc.convention != GPST_CONVENTION_FFMPEG || gpsti_image_is_jpeg(source->format) ||
                            (!gpsti_image_is_yuv(source->format) && gpst_dtype_bytes(source->dtype) == 1),
                        "source.format=%d, dtype=%d: NV12, I420 and wider than a byte not with convention=FFMPEG",
                        (int)source->format, (int)source->dtype);
    GPSTI_WARP_RUN_RULE(!mask->data || (mask->width == source->width && mask->height == source->height),
                        "source.width=%u, height=%u: must be the mask's %u x %u", (unsigned)source->width,
                        (unsigned)source->height, (unsigned)mask->width, (unsigned)mask->height);
    return gpsti_warp_check_resized(warp, source->width, source->height, "gpst_warp_run");
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

/* The bytes of the warp's table, last gap and all. */
GPSTI_PRIVATE bool gpsti_warp_overlaps_table(const gpst_warp_desc* desc, const gpst_image* image) {
    size_t bytes = 0;
    if (!desc->table || GPST_FAILED(gpst_image_bytes(image, &bytes)))
        return false;
    const uintptr_t begin = (uintptr_t)gpsti_image_lowest(image), table = (uintptr_t)desc->table;
    return begin < table + (size_t)desc->table_pitch_bytes * desc->height && table < begin + bytes;
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
    GPSTI_WARP_RUN_RULE(!gpsti_warp_overlaps_table(desc, &image), "%s.data=%p: must not overlap the table",
                        member, output->data);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_warp_check_list(const gpst_warp* warp, const char* function) {
    GPSTI_FAIL_IF(warp->desc.list_per_item, GPST_ERROR_ARGUMENT,
                  "%s: the warp has list_per_item: its lists come with the items of a pipeline", function);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_warp_check_entries(const gpst_warp* warp, const void* list, uint32_t n,
                                                  const char* where) {
    const size_t entry_bytes = gpsti_warp_list_channels(warp->desc.map) * sizeof(float);
    for (uint32_t i = 0; i < n; i++) {
        const void* const entry = (const uint8_t*)list + i * entry_bytes;
        if (warp->desc.map == GPST_MAP_AFFINE) {
            const gpst_affine affine = gpsti_warp_list_affine(entry);
            GPSTI_TRY(gpsti_warp_check_affine(&affine, i, where));
        } else if (warp->desc.map == GPST_MAP_EQUIRECT) {
            const gpst_view view = gpsti_warp_list_view(entry);
            GPSTI_TRY(gpsti_warp_check_view(&view, i, where));
        }
    }
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
