/* core/pipeline/codec_queue.c -- files that wait in a DECODE step: whether the device's engines are to be opened for
   them, who decodes the first, and which of them make a batch. The policy is core/tuning's. All of it locked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

/* Opening takes more than half a second. Locked. */
GPSTI_INTERN bool gpsti_jpeg_device_is_worth_it(const gpst_pipeline* pipeline, gpst_codec codec, uint32_t n_queued) {
    const gpsti_jpeg_device* const jpeg = &pipeline->engines;
    gpsti_codec_load load;
    if (!jpeg->on || jpeg->begun || jpeg->begins)
        return jpeg->on && jpeg->begun;
    load.n_items = gpsti_jpeg_device_n_to_come(pipeline, n_queued);
    load.core_ns = gpsti_a64_load(&jpeg->decode_ns) + gpsti_a64_load(&jpeg->encode_ns);
    load.n_cores = pipeline->plan.n_workers;
    return codec == GPST_CODEC_GPU || gpsti_codec_is_worth_opening(&load);
}

/* Items that are still to be done, those that wait here among them; of a source without a number no end is known. */
GPSTI_INTERN uint64_t gpsti_jpeg_device_n_to_come(const gpst_pipeline* pipeline, uint32_t n_queued) {
    const uint64_t expected = pipeline->plan.desc.n_items_expected, asked = pipeline->items.next_index;
    if (!pipeline->plan.desc.source || pipeline->flow.source_done)
        return n_queued;
    return expected == 0 ? UINT64_MAX : n_queued + (expected > asked ? expected - asked : 0);
}

GPSTI_INTERN uint32_t gpsti_decode_batch_most(const gpsti_jpeg_device* jpeg, const gpsti_item* item) {
    const uint64_t pixels = (uint64_t)item->jpeg_shape.width * item->jpeg_shape.height;
    const uint64_t most = jpeg->nvjpeg->batch * (GPSTI_CODEC_BATCH_PIXELS / (pixels + 1) + 1);
    return most < GPSTI_CODEC_MOST_FILES ? (uint32_t)most : GPSTI_CODEC_MOST_FILES;
}

GPSTI_INTERN gpsti_decode_form gpsti_decode_choose(const gpsti_step* step) {
    const gpsti_item* const head = step->head->item;
    gpst_pipeline* const pipeline = head->pipeline;
    const gpsti_jpeg_device* const jpeg = &pipeline->engines;
    const gpst_codec asked = pipeline->plan.stages[step->first_stage].codec;
    gpsti_codec_choice_input input;
    if (!step->gated) /* another DECODE stage had the item */
        return GPSTI_DECODE_CORES;
    if (head->decode == GPSTI_DECODE_UNSEEN || head->decode == GPSTI_DECODE_CORES)
        return head->decode;
    if (!jpeg->on)
        return GPSTI_DECODE_CORES;
    if (!jpeg->begun && !gpsti_jpeg_device_is_worth_it(pipeline, asked, step->n_queued))
        return jpeg->begins && asked == GPST_CODEC_GPU ? GPSTI_DECODE_EITHER : GPSTI_DECODE_CORES;
    input.only_device = asked == GPST_CODEC_GPU;
    input.has_engines = jpeg->has_engines || !jpeg->begun;
    input.busy = step->running > 0;
    input.n_queued = step->n_queued;
    input.batch = jpeg->begun ? gpsti_decode_batch_most(jpeg, head) : 1;
    input.n_to_come = gpsti_jpeg_device_n_to_come(pipeline, step->n_queued);
    input.device_ns = gpsti_a64_load(&jpeg->device_ns);
    input.core_ns = gpsti_a64_load(&jpeg->decode_ns);
    input.n_before = jpeg->n_decoded;
    const gpsti_codec_choice choice = gpsti_codec_choose(&input);
    return choice == GPSTI_CODEC_DEVICE  ? GPSTI_DECODE_DEVICE
           : choice == GPSTI_CODEC_CORES ? GPSTI_DECODE_CORES
                                         : GPSTI_DECODE_EITHER;
}

GPSTI_INTERN void gpsti_decode_gather(gpsti_step* step, gpsti_item* first) {
    const gpsti_jpeg_device* const jpeg = &first->pipeline->engines;
    gpsti_item* last = first;
    first->next_in_batch = NULL;
    const uint32_t most = jpeg->begun && jpeg->has_engines ? gpsti_decode_batch_most(jpeg, first) : 1;
    for (uint32_t n = 1; n < most && step->head && step->head->item->decode >= GPSTI_DECODE_EITHER; n++) {
        gpsti_job* const job = gpsti_queue_pop(step);
        last->next_in_batch = job->item;
        last = job->item;
        last->next_in_batch = NULL;
        last->started = true;
        last->decode = GPSTI_DECODE_DEVICE;
    }
}
