/* core/steps/decode.c -- DECODE: which of the device's JPEG engines and the cores has a file, and batches of files for
   the engines. Pixels by a core are codec.c's; who is to have what is core/tuning's to say. */
#include "../base/platform_internal.h"

#include "engines_internal.h"

#include <string.h>

/* Of a batch, for each engine: twice a frame of 7680x3840. Smaller batches leave engines idle between them. */
#define GPSTI_DECODE_BATCH_PIXELS ((uint64_t)40 << 20)

/* ---- who decodes ------------------------------------------------------------------------------------ */

/* Looks through the item's file the first time. */
GPSTI_PRIVATE bool gpsti_decode_queues(gpsti_item* item, const gpsti_step* step) {
    const gpst_item* const shown = &item->shown;
    gpst_jpeg_info info;
    if (!step->gated || item->on_cpu)
        item->decode = GPSTI_DECODE_CORES;
    if (item->decode != GPSTI_DECODE_UNSEEN)
        return item->decode == GPSTI_DECODE_EITHER;
    const gpst_decode_desc* const desc = gpsti_step_stage(item->pipeline, step)->decode;
    const bool plain = shown->file_data &&
                       gpsti_jpeg_is_plain((const uint8_t*)shown->file_data, shown->file_bytes, &item->jpeg_first) &&
                       !GPST_FAILED(gpst_jpeg_read_header(shown->file_data, shown->file_bytes, &info)) &&
                       !GPST_FAILED(gpsti_decode_check_jpeg(desc, &info, shown->file_bytes)) &&
                       !GPST_FAILED(gpsti_decode_placement(desc, gpsti_item_metadata(item), shown->file_bytes, &info,
                                                           &item->placement)) &&
                       !item->placement.moves;
    item->decode = plain ? GPSTI_DECODE_EITHER : GPSTI_DECODE_CORES;
    if (plain) {
        memset(&item->jpeg_shape, 0, sizeof item->jpeg_shape);
        item->jpeg_shape.width = info.width;
        item->jpeg_shape.height = info.height;
        item->jpeg_shape.format = info.planes;
    }
    return plain;
}

/* Files like the item's that keep all engines busy for as long as is good, and no more of them. */
GPSTI_PRIVATE uint32_t gpsti_decode_batch_most(const gpsti_engines* jpeg, const gpsti_item* item) {
    const uint64_t pixels = (uint64_t)item->jpeg_shape.width * item->jpeg_shape.height;
    const uint64_t most = jpeg->nvjpeg->batch * (GPSTI_DECODE_BATCH_PIXELS / (pixels + 1) + 1);
    return most < GPSTI_ENGINES_MOST_FILES ? (uint32_t)most : GPSTI_ENGINES_MOST_FILES;
}

/* For the step's head; EITHER: nobody now. */
GPSTI_PRIVATE gpsti_decode_form gpsti_decode_choose(const gpsti_step* step, const gpsti_item* head) {
    gpst_pipeline* const pipeline = head->pipeline;
    const gpsti_engines* const jpeg = pipeline->engines;
    const gpst_codec asked = pipeline->plan.stages[step->first_stage].codec;
    const uint32_t n_queued = step->queue.n;
    gpsti_codec_choice_input input;
    if (!step->gated) /* another DECODE stage had the item */
        return GPSTI_DECODE_CORES;
    if (head->decode == GPSTI_DECODE_UNSEEN || head->decode == GPSTI_DECODE_CORES)
        return head->decode;
    if (!jpeg->on)
        return GPSTI_DECODE_CORES;
    if (!jpeg->begun && !gpsti_engines_are_worth_it(pipeline, asked, n_queued))
        return jpeg->begins && asked == GPST_CODEC_GPU ? GPSTI_DECODE_EITHER : GPSTI_DECODE_CORES;
    input.only_device = asked == GPST_CODEC_GPU;
    input.has_engines = jpeg->has_engines || !jpeg->begun;
    input.busy = step->queue.running > 0;
    input.n_queued = n_queued;
    input.batch = jpeg->begun ? gpsti_decode_batch_most(jpeg, head) : 1;
    input.n_to_come = gpsti_engines_n_to_come(pipeline, n_queued);
    input.device_ns = gpsti_a64_load(&jpeg->device_ns);
    input.core_ns = gpsti_a64_load(&jpeg->decode_ns);
    input.n_before = jpeg->n_decoded;
    const gpsti_codec_choice choice = gpsti_codec_choose(&input);
    return choice == GPSTI_CODEC_DEVICE  ? GPSTI_DECODE_DEVICE
           : choice == GPSTI_CODEC_CORES ? GPSTI_DECODE_CORES
                                         : GPSTI_DECODE_EITHER;
}

/* One batch at a time is a service of the step; what threads decode has no limit. */
GPSTI_PRIVATE gpsti_next gpsti_decode_next(gpsti_locked locked, const gpsti_step* step, const gpsti_item* head) {
    const gpsti_engines* const jpeg = head->pipeline->engines;
    const gpsti_decode_form form = gpsti_decode_choose(step, head);
    gpsti_next next = {0, false, false};
    (void)locked;
    if (form == GPSTI_DECODE_EITHER)
        return next;
    next.on_device = form == GPSTI_DECODE_DEVICE;
    next.enters = next.on_device && (jpeg->has_engines || !jpeg->begun);
    next.most = next.on_device && jpeg->begun && jpeg->has_engines ? gpsti_decode_batch_most(jpeg, head) : 1;
    return next;
}

GPSTI_PRIVATE bool gpsti_decode_goes_along(const gpsti_item* item) { return item->decode >= GPSTI_DECODE_EITHER; }

GPSTI_PRIVATE void gpsti_decode_formed(gpsti_locked locked, gpsti_batch* batch, bool on_device) {
    (void)locked;
    for (uint32_t i = 0; i < batch->n; i++)
        batch->items[i]->decode = on_device ? GPSTI_DECODE_DEVICE : GPSTI_DECODE_CORES;
}

/* ---- a batch on the engines --------------------------------------------------------------------------- */

/* Behind the APPn segments and comments a file begins anew, with the two bytes before it as its start marker. */
GPSTI_PRIVATE void gpsti_decode_cut(gpsti_item* item, gpsti_nvjpeg_file* file) {
    uint8_t* const start = (uint8_t*)item->file.data + item->jpeg_first - 2;
    memcpy(item->jpeg_kept, start, 2);
    start[0] = 0xff, start[1] = 0xd8;
    file->data = start;
    file->bytes = item->shown.file_bytes - (item->jpeg_first - 2);
}

GPSTI_PRIVATE gpst_result gpsti_decode_place(gpsti_item* item, uint32_t to, gpsti_nvjpeg_file* file) {
    size_t bytes = 0;
    memset(file, 0, sizeof *file);
    GPSTI_TRY(gpsti_set_shape(&item->jpeg_shape, "decode", &item->sets[to].on_host[0], &bytes));
    item->sets[to].on_host[0].data = NULL;
    GPSTI_TRY(gpsti_set_make_on_device(item, to, 0));
    file->to = item->sets[to].on_device[0];
    gpsti_decode_cut(item, file);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_decode_take(gpsti_item* item, uint32_t stage, uint32_t to) {
    gpsti_set_resize(item, to, 1);
    item->sets[to].writer = stage + 1;
    item->sets[to].valid = GPSTI_ON_DEVICE(0);
    item->shown.decoder = "nvJPEG";
    gpsti_item_placed(item, &item->placement);
}

/* The hardware takes all of them, or none; without it each is decoded by the thread that has it, and the device. */
GPSTI_PRIVATE gpst_result gpsti_decode_call(gpsti_item* first, gpsti_nvjpeg_file* files, uint32_t n,
                                            uint32_t worker_index) {
    gpsti_engines* const jpeg = first->pipeline->engines;
    gpsti_nvjpeg_op op = GPST_ZERO;
    op.operation = jpeg->has_engines ? GPSTI_NVJPEG_DECODE_BATCH : GPSTI_NVJPEG_DECODE_ONE;
    op.self = jpeg->nvjpeg;
    op.worker = &jpeg->workers[worker_index];
    op.files = files;
    op.n_files = n;
    GPSTI_TRY(gpsti_device_work_prepare(first, &first->works[0]));
    return gpsti_nvjpeg_call(first->works[0].stream, &op);
}

/* Decodes a batch; those that it could not stay, for the cores. Gives how many it could. */
GPSTI_PRIVATE uint32_t gpsti_decode_together(const gpsti_batch* batch, uint32_t worker_index) {
    gpst_pipeline* const pipeline = batch->item->pipeline;
    gpsti_engines* const jpeg = pipeline->engines;
    const gpsti_step* const step = gpsti_batch_step(batch);
    const uint32_t to = gpsti_set_of(step->writes);
    gpsti_nvjpeg_file one;
    uint32_t n = 0;
    const bool open = gpsti_engines_open(pipeline);
    gpsti_nvjpeg_file* const files = open && jpeg->has_engines ? jpeg->files : &one; /* one batch at a time */
    gpst_result result = open ? GPST_OK : GPST_ERROR_UNSUPPORTED;
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->items[i];
        const gpst_result placed = GPST_FAILED(result) ? result : gpsti_decode_place(item, to, &files[n]);
        item->wants[GPSTI_OF_DEVICE] = 0; /* who finds no room is the cores' */
        item->stays = GPST_FAILED(placed);
        n += item->stays ? 0 : 1;
    }
    const int64_t start_ns = gpsti_now_ns();
    if (n > 0)
        result = gpsti_decode_call(batch->item, files, n, worker_index);
    if (n > 0 && GPST_FAILED(result))
        gpsti_engines_note_failure(pipeline, result, gpst_last_reason());
    else if (n > 0)
        gpsti_codec_learn(&jpeg->device_ns, (gpsti_now_ns() - start_ns) / n);
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->items[i];
        if (!item->stays) {
            memcpy((uint8_t*)item->file.data + item->jpeg_first - 2, item->jpeg_kept, 2);
            item->stays = GPST_FAILED(result);
        }
        if (item->stays)
            item->decode = GPSTI_DECODE_CORES;
        else
            gpsti_decode_take(item, step->first_stage, to);
    }
    return GPST_FAILED(result) ? 0 : n;
}

/* Counted as so many services side by side. */
GPSTI_PRIVATE gpsti_outcome gpsti_decode_run_together(gpsti_run* run, gpsti_batch* batch) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_engines* const jpeg = pipeline->engines;
    const uint32_t to = gpsti_set_of(gpsti_batch_step(batch)->writes);
    gpsti_service service;
    gpsti_service_begin(&service, batch);
    const uint32_t n = gpsti_decode_together(batch, run->worker_index);
    gpsti_service_end(&service, GPST_OK);
    const int64_t start_ns = service.start_ns, end_ns = service.end_ns;
    gpsti_service_share(&service, n);
    for (uint32_t i = 0; i < n; i++)
        gpsti_run_keep(run, &service);
    const gpsti_locked locked = gpsti_run_lock(run);
    if (n > 0 && jpeg->has_engines) {
        gpsti_busy_add(&pipeline->counts.busy[GPST_RESOURCE_JPEG], start_ns, end_ns);
        /* While one batch is decoded, the next one waits. */
        pipeline->items.n_wanted = 2 * gpsti_decode_batch_most(jpeg, batch->item);
    }
    for (uint32_t i = 0; i < batch->n; i++)
        if (!batch->items[i]->stays) {
            jpeg->n_decoded++;
            gpsti_count_copy(pipeline, to, true, 1, batch->items[i]->shown.file_bytes);
        }
    gpsti_unlock(locked);
    return GPSTI_DONE;
}

/* ---- the kind --------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpsti_outcome gpsti_decode_run_step(gpsti_run* run, gpsti_batch* batch) {
    if (batch->item->decode == GPSTI_DECODE_DEVICE)
        return gpsti_decode_run_together(run, batch);
    if (run->pipeline->engines->asked) {
        const gpsti_locked locked = gpsti_run_lock(run);
        run->pipeline->engines->n_decoded++;
        gpsti_unlock(locked);
    }
    return gpsti_host_call(run, batch);
}

GPSTI_PRIVATE gpst_result gpsti_decode_check_desc(const gpst_pipeline_desc* desc, uint32_t s) {
    char where[64];
    GPSTI_FAIL_IF(desc->stages[0].kind != GPST_STAGE_READ, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].kind=DECODE: no READ stage reads a file", s);
    gpsti_format(where, sizeof where, "gpst_pipeline_create: stages[%u].decode", s);
    return gpsti_decode_check(desc->stages[s].decode, where);
}

GPSTI_PRIVATE void gpsti_decode_plan_step(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    const gpsti_stage* const stage = &pipeline->plan.stages[step->first_stage];
    (void)asynchronous;
    step->gated = step->gated || (stage->planes && stage->codec != GPST_CODEC_EXACT);
    step->repeatable = true;
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_decode(void) {
    static const gpsti_step_kind kind = {
        GPST_RESOURCE_CPU,
        /* joins */ false,
        /* calls */ true,   gpsti_decode_check_desc, gpsti_decode_plan_step, gpsti_decode_queues,
        gpsti_decode_next,  gpsti_decode_goes_along, gpsti_decode_formed,
        /* run_all */ NULL, gpsti_decode_run_step,
        /* returned */ NULL,
        /* count */ NULL};
    return &kind;
}
