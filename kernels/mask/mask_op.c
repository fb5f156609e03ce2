/* kernels/mask/mask_op.c -- mask operations by description: pictures turned into what each operation of mask.h takes,
   on the CPU and on a GPU. Computes nothing itself. */
#include "../../core/base/platform_internal.h"

#include "../warp/warp_internal.h"
#include "mask_internal.h"
#include "mask_launch.h"

#include <string.h>

/* ---- pictures as what the operations take ----------------------------------------------------- */

GPSTI_PRIVATE gpst_logits gpsti_logits_of(const gpst_image* image) {
    gpst_logits logits;
    memset(&logits, 0, sizeof logits);
    logits.data = image->data;
    logits.n_classes = gpsti_image_channels(image);
    logits.width = image->width;
    logits.height = image->height;
    logits.dtype = image->dtype;
    logits.layout = image->layout == GPST_LAYOUT_DEFAULT ? GPST_LAYOUT_HWC : image->layout;
    logits.pitch_bytes = image->pitch_bytes;
    return logits;
}

GPSTI_PRIVATE gpst_labels gpsti_labels_of(const gpst_image* image, uint32_t n_classes) {
    gpst_labels labels;
    labels.data = image->data;
    labels.pitch_bytes = image->pitch_bytes;
    labels.width = image->width;
    labels.height = image->height;
    labels.n_classes = n_classes > 0 ? n_classes : image->dtype == GPST_DTYPE_U16 ? 65535 : 256;
    return labels;
}

GPSTI_PRIVATE gpst_bitmap gpsti_bitmap_of(const gpst_image* image, const gpst_image* mask) {
    gpst_bitmap bitmap;
    bitmap.data = image->data;
    bitmap.pitch_bytes = image->pitch_bytes;
    bitmap.width = mask->width;
    bitmap.height = mask->height;
    return bitmap;
}

/* One call: its pictures as each operation takes them. */
typedef struct gpsti_mask_views {
    gpst_logits logits;
    gpst_labels before, after;
    gpst_bitmap packed, bits; /* of PACK, of UNPACK */
} gpsti_mask_views;

/* ---- shapes ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_image gpsti_mask_gray(uint32_t width, uint32_t height, gpst_dtype dtype) {
    gpst_image image;
    memset(&image, 0, sizeof image);
    image.width = width;
    image.height = height;
    image.format = GPST_FORMAT_GRAY;
    image.dtype = dtype;
    image.pitch_bytes = (int64_t)gpst_image_row_bytes(&image);
    return image;
}

GPSTI_PRIVATE bool gpsti_mask_has_window(const gpst_mask_desc* desc) {
    const bool sized = desc->size == 3 || desc->size == 5;
    if (desc->kind == GPST_MASK_MORPH)
        return sized && (int)desc->morph >= (int)GPST_MORPH_ERODE && (int)desc->morph <= (int)GPST_MORPH_CLOSE;
    return sized && (int)desc->smooth >= (int)GPST_SMOOTH_BOX && (int)desc->smooth <= (int)GPST_SMOOTH_GAUSSIAN;
}

/* NaN is none. */
GPSTI_PRIVATE bool gpsti_mask_is_share(float value) { return value >= 0.0f && value <= 1.0f; }

GPSTI_INTERN gpst_result gpsti_mask_desc_rules(const gpst_mask_desc* desc, const char* function) {
    const int kind = (int)desc->kind;
    const bool windowed = desc->kind == GPST_MASK_MORPH || desc->kind == GPST_MASK_SMOOTH;
    GPSTI_FAIL_IF(kind < (int)GPST_MASK_ARGMAX || kind > (int)GPST_MASK_TIME, GPST_ERROR_ARGUMENT,
                  "%s: kind=%d: unknown", function, kind);
    GPSTI_FAIL_IF(desc->kind == GPST_MASK_ARGMAX && (desc->width == 0) != (desc->height == 0), GPST_ERROR_ARGUMENT,
                  "%s: width=%u, height=%u: both or none with ARGMAX", function, desc->width, desc->height);
    GPSTI_FAIL_IF(desc->kind == GPST_MASK_UNPACK && desc->width == 0, GPST_ERROR_ARGUMENT,
                  "%s: width=0: required with UNPACK", function);
    GPSTI_FAIL_IF(windowed && !gpsti_mask_has_window(desc), GPST_ERROR_ARGUMENT,
                  "%s: morph=%d, smooth=%d, size=%u: MORPH needs morph, SMOOTH smooth, and both 3 or 5", function,
                  (int)desc->morph, (int)desc->smooth, desc->size);
    GPSTI_FAIL_IF(desc->kind == GPST_MASK_THRESHOLD && !(desc->threshold <= 0.0f || desc->threshold > 0.0f),
                  GPST_ERROR_ARGUMENT, "%s: threshold=NaN: must be a number", function);
    GPSTI_FAIL_IF(desc->kind == GPST_MASK_SIGMOID && !(desc->probability >= 0.0 && desc->probability <= 1.0),
                  GPST_ERROR_ARGUMENT, "%s: probability=%g: must be 0 to 1", function, desc->probability);
    GPSTI_FAIL_IF(desc->tolerance > 255, GPST_ERROR_ARGUMENT, "%s: tolerance=%u: must be 0 to 255", function,
                  desc->tolerance);
    GPSTI_FAIL_IF(desc->n_classes > 65535, GPST_ERROR_ARGUMENT, "%s: n_classes=%u: at most 65535", function,
                  desc->n_classes);
    if (desc->kind != GPST_MASK_TIME)
        return GPST_OK;
    GPSTI_FAIL_IF(!gpsti_mask_is_share(desc->weight) || !gpsti_mask_is_share(desc->change), GPST_ERROR_ARGUMENT,
                  "%s: weight=%g, change=%g: must be 0 to 1", function, (double)desc->weight, (double)desc->change);
    GPSTI_FAIL_IF(!(desc->cut >= 0.0f), GPST_ERROR_ARGUMENT, "%s: cut=%g: must be 0 or more", function,
                  (double)desc->cut);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_mask_desc_check(const gpst_mask_desc* desc, const char* function) {
    GPSTI_TRY(gpsti_mask_desc_rules(desc, function));
    GPSTI_FAIL_IF(desc->kind == GPST_MASK_TIME, GPST_ERROR_ARGUMENT,
                  "%s: kind=TIME: has a state: call gpst_mask_time or gpst_mask_time_launch", function);
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_query_output(const gpst_mask_desc* desc, const gpst_image* from, gpst_image* out) {
    const char* function = "gpst_mask_query_output";
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: required", function);
    memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!desc || !from, GPST_ERROR_ARGUMENT, "%s: desc and from: required", function);
    GPSTI_TRY(gpsti_mask_desc_rules(desc, function));
    const bool wide = from->dtype == GPST_DTYPE_U16;
    const uint32_t n_classes = gpsti_labels_of(from, desc->n_classes).n_classes;
    switch (desc->kind) {
    case GPST_MASK_ARGMAX:
        *out = gpsti_mask_gray(desc->width ? desc->width : from->width, desc->height ? desc->height : from->height,
                               gpsti_image_channels(from) <= 256 ? GPST_DTYPE_U8 : GPST_DTYPE_U16);
        return GPST_OK;
    case GPST_MASK_THRESHOLD:
    case GPST_MASK_SIGMOID:
    case GPST_MASK_MORPH:
    case GPST_MASK_SMOOTH:
    case GPST_MASK_TIME:
        *out = gpsti_mask_gray(from->width, from->height, GPST_DTYPE_U8);
        return GPST_OK;
    case GPST_MASK_REFINE:
        *out = gpsti_mask_gray(from->width, from->height, wide ? GPST_DTYPE_U16 : GPST_DTYPE_U8);
        return GPST_OK;
    case GPST_MASK_PACK:
        *out = gpsti_mask_gray(from->width / 8 + (from->width % 8 ? 1 : 0), from->height, GPST_DTYPE_U8);
        return GPST_OK;
    case GPST_MASK_UNPACK:
        GPSTI_FAIL_IF(((uint64_t)desc->width + 7) / 8 != from->width, GPST_ERROR_ARGUMENT,
                      "%s: width=%u: must fit bitmaps %u bytes wide", function, desc->width, from->width);
        *out = gpsti_mask_gray(desc->width, from->height, GPST_DTYPE_U8);
        return GPST_OK;
    case GPST_MASK_BOX:
        *out = gpsti_mask_gray((uint32_t)sizeof(gpst_box), 1, GPST_DTYPE_U8);
        return GPST_OK;
    case GPST_MASK_INVALID:
    case GPST_MASK_LABEL_BOXES:
        break;
    }
    *out = gpsti_mask_gray((uint32_t)sizeof(gpst_box) * n_classes, 1, GPST_DTYPE_U8);
    return GPST_OK;
}

/* ---- on the CPU and on a GPU ------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_mask_op_open(const gpst_mask_desc* desc, const gpst_image* from,
                                             const gpst_image* guide, const gpst_image* to, const char* function,
                                             gpsti_mask_views* out) {
    gpst_image wanted;
    GPSTI_FAIL_IF(!desc || !from || !to, GPST_ERROR_ARGUMENT, "%s: desc, from and to: required", function);
    GPSTI_FAIL_IF(guide && desc->kind != GPST_MASK_REFINE, GPST_ERROR_ARGUMENT, "%s: guide: only with REFINE",
                  function);
    GPSTI_TRY(gpsti_mask_desc_check(desc, function));
    GPSTI_TRY(gpst_mask_query_output(desc, from, &wanted));
    const gpst_dtype dtype = to->dtype == GPST_DTYPE_DEFAULT ? GPST_DTYPE_U8 : to->dtype;
    GPSTI_FAIL_IF(to->width != wanted.width || to->height != wanted.height || to->format != wanted.format ||
                      dtype != wanted.dtype,
                  GPST_ERROR_ARGUMENT, "%s: to=%ux%u: must be what gpst_mask_query_output says: %ux%u", function,
                  to->width, to->height, wanted.width, wanted.height);
    GPSTI_FAIL_IF((desc->kind == GPST_MASK_BOX || desc->kind == GPST_MASK_LABEL_BOXES) &&
                      (uintptr_t)to->data % sizeof(uint64_t) != 0,
                  GPST_ERROR_ARGUMENT, "%s: to.data=%p: boxes must be aligned to 8 bytes", function, to->data);
    out->logits = gpsti_logits_of(from);
    out->before = gpsti_labels_of(from, desc->n_classes);
    out->after = gpsti_labels_of(to, desc->kind == GPST_MASK_ARGMAX ? out->logits.n_classes : out->before.n_classes);
    out->packed = gpsti_bitmap_of(to, from);
    out->bits = gpsti_bitmap_of(from, to);
    return GPST_OK;
}

GPST_API gpst_result gpst_mask_run(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* guide,
                                   const gpst_image* to, uint32_t n_threads) {
    gpsti_mask_views views;
    GPSTI_TRY(gpsti_mask_op_open(desc, from, guide, to, "gpst_mask_run", &views));
    switch (desc->kind) {
    case GPST_MASK_ARGMAX:
        return gpst_mask_argmax(&views.logits, &views.after, n_threads);
    case GPST_MASK_THRESHOLD:
        return gpst_mask_threshold(from, desc->threshold, to, n_threads);
    case GPST_MASK_SIGMOID:
        return gpst_mask_threshold_sigmoid(from, desc->probability, to, n_threads);
    case GPST_MASK_MORPH:
        return gpst_mask_morph(from, desc->morph, desc->size, to, n_threads);
    case GPST_MASK_SMOOTH:
        return gpst_mask_smooth(from, desc->smooth, desc->size, to, n_threads);
    case GPST_MASK_REFINE:
        return gpst_mask_refine(&views.before, guide, desc->tolerance, &views.after, n_threads);
    case GPST_MASK_PACK:
        return gpst_mask_pack(from, &views.packed, n_threads);
    case GPST_MASK_UNPACK:
        return gpst_mask_unpack(&views.bits, to, n_threads);
    case GPST_MASK_BOX:
        return gpst_mask_box(from, (gpst_box*)to->data);
    default:
        return gpst_mask_label_boxes(&views.before, (gpst_box*)to->data);
    }
}

GPST_API gpst_result gpst_mask_launch(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* guide,
                                      const gpst_image* to, void* stream) {
    gpsti_mask_views views;
    GPSTI_TRY(gpsti_mask_op_open(desc, from, guide, to, "gpst_mask_launch", &views));
    switch (desc->kind) {
    case GPST_MASK_ARGMAX:
        return gpst_mask_argmax_launch(&views.logits, &views.after, 1, stream);
    case GPST_MASK_THRESHOLD:
        return gpst_mask_threshold_launch(from, desc->threshold, to, 1, stream);
    case GPST_MASK_SIGMOID:
        return gpst_mask_threshold_sigmoid_launch(from, desc->probability, to, 1, stream);
    case GPST_MASK_MORPH:
        return gpst_mask_morph_launch(from, desc->morph, desc->size, to, 1, stream);
    case GPST_MASK_SMOOTH:
        return gpst_mask_smooth_launch(from, desc->smooth, desc->size, to, 1, stream);
    case GPST_MASK_REFINE:
        return gpst_mask_refine_launch(&views.before, guide, desc->tolerance, &views.after, 1, stream);
    case GPST_MASK_PACK:
        return gpst_mask_pack_launch(from, &views.packed, 1, stream);
    case GPST_MASK_UNPACK:
        return gpst_mask_unpack_launch(&views.bits, to, 1, stream);
    case GPST_MASK_BOX:
        return gpst_mask_box_launch(from, (gpst_box*)to->data, 1, stream);
    default:
        return gpst_mask_label_boxes_launch(&views.before, (gpst_box*)to->data, 1, stream);
    }
}

/* ---- many, as a backend's kernel ---------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_mask_op_host(const void* args, const gpsti_exec* exec) {
    const gpsti_mask_op_args* const a = (const gpsti_mask_op_args*)args;
    for (uint32_t i = 0; i < a->n; i++)
        GPSTI_TRY(gpst_mask_run(a->desc, &a->from[i], a->guides ? &a->guides[i] : NULL, &a->to[i],
                                exec ? exec->n_threads : 1));
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_op_gpu(const void* args, void* native_stream) {
    const gpsti_mask_op_args* const a = (const gpsti_mask_op_args*)args;
    for (uint32_t i = 0; i < a->n; i++)
        GPSTI_TRY(gpst_mask_launch(a->desc, &a->from[i], a->guides ? &a->guides[i] : NULL, &a->to[i], native_stream));
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_mask_op_lists(void* args, gpsti_lists* lists) {
    gpsti_mask_op_args* const a = (gpsti_mask_op_args*)args;
    const size_t bytes = a->n * sizeof *a->from;
    a->desc = (const gpst_mask_desc*)gpsti_lists_take(lists, a->desc, sizeof *a->desc);
    a->from = (const gpst_image*)gpsti_lists_take(lists, a->from, bytes);
    a->guides = (const gpst_image*)gpsti_lists_take(lists, a->guides, bytes);
    a->to = (const gpst_image*)gpsti_lists_take(lists, a->to, bytes);
}

GPSTI_INTERN const gpsti_kernel* gpsti_mask_op_kernel(void) {
    static const gpsti_kernel kernel = {"mask", gpsti_mask_op_host, gpsti_mask_op_gpu, gpsti_mask_op_lists};
    return &kernel;
}
