/* kernels/mask/mask_launch.c -- the rules of mask operations on a GPU: every item
   checked, then those that have a job in common gathered. Computes nothing; mask.cu.h does. */
#include "../../core/base/platform_internal.h"

#include "mask_launch_internal.h"

#include <string.h>

/* The arguments of one public call, as they came. */
typedef struct gpsti_mask_call {
    const char* function;
    const gpst_logits* logits;
    const gpst_labels *labels, *output_labels;
    const gpst_image *images, *outputs, *guides;
    const gpst_bitmap* bitmaps;
    gpst_box* boxes;
    float threshold;
    bool is_sigmoid;
    uint32_t op, size, tolerance;
} gpsti_mask_call;

/* Item i of the call as a batch of one. */
typedef gpst_result (*gpsti_mask_make_func)(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out);

/* ---- items ------------------------------------------------------------------------------ */
GPSTI_PRIVATE gpst_result gpsti_mask_make_argmax(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    gpsti_argmax_job* job = &out->job.argmax;
    GPSTI_TRY(gpsti_argmax_job_init(&call->logits[i], &call->labels[i], job));
    out->kind = GPSTI_MASK_KIND_ARGMAX;
    out->items[0].source = job->source, out->items[0].output = job->output;
    job->source = NULL, job->output = NULL;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_mask_take_rows(gpsti_mask_batch* out) {
    gpsti_mask_job* job = &out->job.rows;
    out->kind = GPSTI_MASK_KIND_ROWS;
    out->items[0].source = job->source, out->items[0].output = job->output;
    job->source = NULL, job->output = NULL;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_threshold(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    GPSTI_TRY(gpsti_threshold_job_init(call->function, &call->images[i], call->threshold, &call->outputs[i],
                                       &out->job.rows));
    GPSTI_FAIL_IF(call->is_sigmoid && out->job.rows.op == GPSTI_MASK_ABOVE_U8, GPST_ERROR_ARGUMENT,
                  "%s: source.dtype=U8: must be F16 or F32", call->function);
    gpsti_mask_take_rows(out);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_bitmap(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    GPSTI_TRY(gpsti_bitmap_job_init(call->function, (gpsti_mask_op)call->op, &call->images[i], &call->bitmaps[i],
                                    &out->job.rows));
    gpsti_mask_take_rows(out);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_mask_take_window(gpsti_mask_batch* out) {
    gpsti_window_job* job = &out->job.window;
    out->kind = GPSTI_MASK_KIND_WINDOW;
    out->items[0].source = job->source, out->items[0].output = job->output, out->items[0].guide = job->guide;
    job->source = NULL, job->output = NULL, job->guide = NULL;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_morph(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    GPSTI_TRY(gpsti_morph_job_init(&call->images[i], (gpst_morph)call->op, call->size, &call->outputs[i],
                                   &out->job.window));
    gpsti_mask_take_window(out);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_smooth(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    GPSTI_TRY(gpsti_smooth_job_init(&call->images[i], (gpst_smooth)call->op, call->size, &call->outputs[i],
                                    &out->job.window));
    gpsti_mask_take_window(out);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_refine(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    GPSTI_TRY(gpsti_refine_job_init(&call->labels[i], call->guides ? &call->guides[i] : NULL, call->tolerance,
                                    &call->output_labels[i], &out->job.window));
    gpsti_mask_take_window(out);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_box(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    gpst_image from = GPST_ZERO;
    gpsti_span span = GPST_ZERO;
    gpsti_box_job* job = &out->job.box;
    GPSTI_TRY(gpsti_mask_check_mask(call->function, "masks", &call->images[i], &from, &span));
    out->kind = GPSTI_MASK_KIND_BOX;
    out->items[0].source = (const uint8_t*)from.data;
    out->items[0].output = (uint8_t*)&call->boxes[i];
    job->source_pitch = from.pitch_bytes;
    job->width = from.width, job->height = from.height;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_mask_make_label_boxes(const gpsti_mask_call* call, uint32_t i, gpsti_mask_batch* out) {
    gpst_labels from = GPST_ZERO;
    gpsti_span span = GPST_ZERO;
    gpsti_box_job* job = &out->job.box;
    GPSTI_TRY(gpsti_labels_check(call->function, "labels", &call->labels[i], &from, &span));
    GPSTI_FAIL_IF(from.n_classes != call->labels[0].n_classes, GPST_ERROR_ARGUMENT,
                  "%s: labels.n_classes=%u: must be the first's %u", call->function, (unsigned)from.n_classes,
                  (unsigned)call->labels[0].n_classes);
    out->kind = GPSTI_MASK_KIND_BOX;
    out->items[0].source = (const uint8_t*)from.data;
    out->items[0].output = (uint8_t*)&call->boxes[(size_t)i * from.n_classes];
    job->source_pitch = from.pitch_bytes;
    job->width = from.width, job->height = from.height;
    job->n_classes = from.n_classes;
    job->wide = from.n_classes > 256;
    return GPST_OK;
}

/* ---- gathering ---------------------------------------------------------------------------- */
GPSTI_PRIVATE gpst_result gpsti_mask_make(const gpsti_mask_call* call, gpsti_mask_make_func make, uint32_t i,
                                          gpsti_mask_batch* one) {
    memset(one, 0, offsetof(gpsti_mask_batch, items) + sizeof one->items[0]);
    return make(call, i, one);
}

GPSTI_PRIVATE gpst_result gpsti_mask_put(const gpsti_mask_call* call, const gpsti_mask_batch* batch, void* stream) {
    (void)batch;
    return GPSTI_LAUNCH_GPU(call->function, stream, gpsti_mask_gpu_launch(call->function, batch, stream));
}

GPSTI_PRIVATE gpst_result gpsti_mask_launch(const gpsti_mask_call* call, gpsti_mask_make_func make, uint32_t n_items,
                                            void* stream) {
    gpsti_mask_batch batch, one;
    GPSTI_FAIL_IF(n_items == 0, GPST_ERROR_ARGUMENT, "%s: n_items=0: must be 1 or more", call->function);
    for (uint32_t i = 0; i < n_items; i++)
        GPSTI_TRY(gpsti_mask_make(call, make, i, &one));
    memset(&batch, 0, sizeof batch);
    for (uint32_t i = 0; i < n_items; i++) {
        GPSTI_TRY(gpsti_mask_make(call, make, i, &one));
        const bool joins = batch.n_items < GPSTI_MASK_ITEMS && memcmp(&batch.job, &one.job, sizeof one.job) == 0;
        if (batch.n_items && !joins) {
            GPSTI_TRY(gpsti_mask_put(call, &batch, stream));
            batch.n_items = 0;
        }
        batch.job = one.job;
        batch.kind = one.kind;
        batch.items[batch.n_items++] = one.items[0];
    }
    return gpsti_mask_put(call, &batch, stream);
}

#define GPSTI_MASK_LISTS(function, lists) \
    GPSTI_FAIL_IF(!(lists), GPST_ERROR_ARGUMENT, "%s: a list is NULL: required", (function))

/* ---- the public calls ------------------------------------------------------------------------ */
GPST_API gpst_result gpst_mask_argmax_launch(const gpst_logits* logits, const gpst_labels* labels, uint32_t n_items,
                                             void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_argmax_launch";
    call.logits = logits, call.labels = labels;
    GPSTI_MASK_LISTS(call.function, logits && labels);
    return gpsti_mask_launch(&call, gpsti_mask_make_argmax, n_items, stream);
}

GPST_API gpst_result gpst_mask_threshold_launch(const gpst_image* sources, float threshold, const gpst_image* masks,
                                                uint32_t n_items, void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_threshold_launch";
    call.images = sources, call.outputs = masks;
    call.threshold = threshold;
    GPSTI_MASK_LISTS(call.function, sources && masks);
    GPSTI_FAIL_IF(!(threshold <= 0.0f || threshold > 0.0f), GPST_ERROR_ARGUMENT, "%s: threshold=NaN: must be a number",
                  call.function);
    return gpsti_mask_launch(&call, gpsti_mask_make_threshold, n_items, stream);
}

GPST_API gpst_result gpst_mask_threshold_sigmoid_launch(const gpst_image* logits, double probability,
                                                        const gpst_image* masks, uint32_t n_items, void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_threshold_sigmoid_launch";
    call.images = logits, call.outputs = masks;
    call.is_sigmoid = true;
    GPSTI_MASK_LISTS(call.function, logits && masks);
    GPSTI_FAIL_IF(!(probability >= 0.0 && probability <= 1.0), GPST_ERROR_ARGUMENT,
                  "%s: probability=%g: must be 0 to 1", call.function, probability);
    GPSTI_TRY(gpsti_exact_check(call.function));
    call.threshold = gpst_logit(probability);
    return gpsti_mask_launch(&call, gpsti_mask_make_threshold, n_items, stream);
}

GPST_API gpst_result gpst_mask_pack_launch(const gpst_image* masks, const gpst_bitmap* bitmaps, uint32_t n_items,
                                           void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_pack_launch";
    call.op = GPSTI_MASK_PACK;
    call.images = masks, call.bitmaps = bitmaps;
    GPSTI_MASK_LISTS(call.function, masks && bitmaps);
    return gpsti_mask_launch(&call, gpsti_mask_make_bitmap, n_items, stream);
}

GPST_API gpst_result gpst_mask_unpack_launch(const gpst_bitmap* bitmaps, const gpst_image* masks, uint32_t n_items,
                                             void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_unpack_launch";
    call.op = GPSTI_MASK_UNPACK;
    call.images = masks, call.bitmaps = bitmaps;
    GPSTI_MASK_LISTS(call.function, masks && bitmaps);
    return gpsti_mask_launch(&call, gpsti_mask_make_bitmap, n_items, stream);
}

#define GPSTI_MASK_BOXES(function, boxes)                                                                          \
    GPSTI_FAIL_IF((uintptr_t)(boxes) % 8 != 0, GPST_ERROR_ARGUMENT, "%s: boxes=%p: must be a multiple of 8", function, \
                  (void*)(boxes))

GPST_API gpst_result gpst_mask_box_launch(const gpst_image* masks, gpst_box* boxes, uint32_t n_items, void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_box_launch";
    call.images = masks, call.boxes = boxes;
    GPSTI_MASK_LISTS(call.function, masks && boxes);
    GPSTI_MASK_BOXES(call.function, boxes);
    return gpsti_mask_launch(&call, gpsti_mask_make_box, n_items, stream);
}

GPST_API gpst_result gpst_mask_label_boxes_launch(const gpst_labels* labels, gpst_box* boxes, uint32_t n_items,
                                                  void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_label_boxes_launch";
    call.labels = labels, call.boxes = boxes;
    GPSTI_MASK_LISTS(call.function, labels && boxes);
    GPSTI_MASK_BOXES(call.function, boxes);
    return gpsti_mask_launch(&call, gpsti_mask_make_label_boxes, n_items, stream);
}

GPST_API gpst_result gpst_mask_morph_launch(const gpst_image* masks, gpst_morph op, uint32_t size,
                                            const gpst_image* outputs, uint32_t n_items, void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_morph_launch";
    call.op = (uint32_t)op, call.size = size;
    call.images = masks, call.outputs = outputs;
    GPSTI_MASK_LISTS(call.function, masks && outputs);
    return gpsti_mask_launch(&call, gpsti_mask_make_morph, n_items, stream);
}

GPST_API gpst_result gpst_mask_smooth_launch(const gpst_image* sources, gpst_smooth kind, uint32_t size,
                                             const gpst_image* outputs, uint32_t n_items, void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_smooth_launch";
    call.op = (uint32_t)kind, call.size = size;
    call.images = sources, call.outputs = outputs;
    GPSTI_MASK_LISTS(call.function, sources && outputs);
    return gpsti_mask_launch(&call, gpsti_mask_make_smooth, n_items, stream);
}

GPST_API gpst_result gpst_mask_refine_launch(const gpst_labels* labels, const gpst_image* guides, uint32_t tolerance,
                                             const gpst_labels* outputs, uint32_t n_items, void* stream) {
    gpsti_mask_call call = GPST_ZERO;
    call.function = "gpst_mask_refine_launch";
    call.tolerance = tolerance;
    call.labels = labels, call.guides = guides, call.output_labels = outputs;
    GPSTI_MASK_LISTS(call.function, labels && outputs);
    return gpsti_mask_launch(&call, gpsti_mask_make_refine, n_items, stream);
}
