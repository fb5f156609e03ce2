/* tests/fuzz/pipeline_model.h -- what the stages of a random pipeline do, twice: as callbacks of the engine, and one
   after the other by direct calls without a pipeline, which says what must come of each item. */
#ifndef GPST_FUZZ_PIPELINE_MODEL_H
#define GPST_FUZZ_PIPELINE_MODEL_H

#include "pipeline_plan.h"

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

static size_t bytes_of(const gpst_image* image) {
    size_t bytes = 0;
    REQUIRE(gpst_image_bytes(image, &bytes) == GPST_OK && bytes <= MOST_BYTES);
    return bytes;
}

static uint64_t hash_of(const void* data, size_t bytes) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t*)data)[i]) * 1099511628211u;
    return hash;
}

static void fill_frame(uint32_t number, uint8_t* pixels) {
    for (uint32_t i = 0; i < MOST_BYTES; i++)
        pixels[i] = (uint8_t)(i * 13 + number * 29 + (i >> 5));
}

static uint32_t sum_of(const gpst_image* image) {
    const size_t bytes = bytes_of(image);
    uint32_t sum = image->width * 3 + image->height;
    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + ((const uint8_t*)image->data)[i];
    return sum;
}

static void paint(const gpst_image* image, uint32_t value) {
    const size_t bytes = bytes_of(image);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t*)image->data)[i] = (uint8_t)(value + i * 7 + (i >> 4));
}

static uint8_t each_byte(uint8_t value, uint32_t salt) { return (uint8_t)(value ^ salt); }
static uint8_t kernel_byte(uint8_t value, uint32_t salt) { return (uint8_t)(value + salt); }

static void fill_list(const stage_plan* stage, uint32_t number, void* data) {
    const uint32_t n = entry_floats(stage->map);
    for (uint32_t i = 0; i < n_entries(stage, number); i++)
        entry_of(stage, number, i, (float*)data + i * n);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct model_set {
    _Alignas(64) uint8_t bytes[MOST_PICTURES][MOST_BYTES / 64 * 64];
    gpst_image pictures[MOST_PICTURES];
    uint32_t n;
} model_set;

static model_set model[MOST_SETS];
static gpst_jpeg* model_jpeg; /* NULL: no libturbojpeg */

static void model_put(model_set* set, uint32_t i, gpst_image shape) {
    shape.data = set->bytes[i];
    shape.pitch_bytes = (int64_t)gpst_image_row_bytes(&shape);
    (void)bytes_of(&shape);
    REQUIRE(i < MOST_PICTURES);
    set->pictures[i] = shape;
    set->n = i + 1;
}

static void model_make(const stage_plan* stage, uint32_t number) {
    const uint32_t reads[2] = {stage->from, stage->also};
    uint32_t value = stage->salt;
    for (uint32_t r = 0; r < (stage->also == stage->from ? 1 : 2) && stage->from < MOST_SETS; r++)
        for (uint32_t i = 0; i < model[reads[r]].n; i++)
            value += (i + r * 100 + 1) * sum_of(&model[reads[r]].pictures[i]);
    for (uint32_t i = 0; i < n_made(stage, number); i++) {
        model_put(&model[stage->to], i, made_shape(stage, number, i));
        paint(&model[stage->to].pictures[i], value + i);
    }
}

static void model_bytes(const stage_plan* stage, uint8_t (*func)(uint8_t, uint32_t)) {
    const model_set* const from = &model[stage->from];
    for (uint32_t i = 0; i < from->n; i++) {
        model_put(&model[stage->to], i, from->pictures[i]);
        for (size_t b = bytes_of(&from->pictures[i]); b-- > 0;)
            model[stage->to].bytes[i][b] = func(from->bytes[i][b], stage->salt);
    }
}

static void model_list(const stage_plan* stage, uint32_t number) {
    if (n_entries(stage, number) == 0)
        return;
    model_put(&model[stage->to], 0, list_shape(stage->map, n_entries(stage, number)));
    fill_list(stage, number, model[stage->to].bytes[0]);
}

static void model_count(const stage_plan* stage, uint32_t number) {
    const uint32_t n = n_counted(stage, number) < MOST_LIST ? n_counted(stage, number) : MOST_LIST;
    if (n == 0)
        return;
    model_put(&model[stage->to], 0, list_shape(stage->map, n));
    memcpy(model[stage->to].bytes[0], model[stage->from].bytes[0], bytes_of(&model[stage->to].pictures[0]));
}

static void model_warp(const stage_plan* stage, const gpst_warp* warp) {
    const model_set* const from = &model[stage->from];
    const uint32_t n = gpst_warp_n_outputs(warp);
    gpst_image shape;
    gpst_warp_query_output(warp, &shape);
    for (uint32_t i = 0; i < from->n; i++) {
        for (uint32_t o = 0; o < n; o++)
            model_put(&model[stage->to], i * n + o, shape);
        REQUIRE(gpst_warp_run(warp, &from->pictures[i], &model[stage->to].pictures[i * n], n, 1) == GPST_OK);
    }
}

/* By a warp that is made with the list. */
static void model_crop(const stage_plan* stage) {
    const model_set* const list = &model[stage->also];
    gpst_roi rois[MOST_LIST];
    gpst_affine affines[MOST_LIST];
    gpst_view views[MOST_LIST];
    gpst_warp_desc desc = stage->warp_desc;
    gpst_warp* warp = NULL;
    if (list->n == 0 || model[stage->from].n == 0)
        return;
    const uint32_t n = list->pictures[0].width, n_floats = entry_floats(stage->map);
    for (uint32_t i = 0; i < n; i++) {
        const float* const e = (const float*)(const void*)list->bytes[0] + i * n_floats;
        const gpst_roi roi = {e[0], e[1], e[2], e[3]};
        rois[i] = roi;
        for (int m = 0; m < 6 && stage->map == GPST_MAP_AFFINE; m++)
            affines[i].m[m] = (double)e[m];
        views[i].yaw = (double)e[0], views[i].pitch = (double)e[1], views[i].roll = (double)e[2];
        views[i].hfov = (double)e[3], views[i].vfov = stage->map == GPST_MAP_EQUIRECT ? (double)e[4] : 0;
    }
    desc.list_per_item = false;
    desc.rois = rois, desc.affines = affines, desc.views = views;
    desc.n_rois = stage->map == GPST_MAP_ROI ? n : 0;
    desc.n_affines = stage->map == GPST_MAP_AFFINE ? n : 0;
    desc.n_views = stage->map == GPST_MAP_EQUIRECT ? n : 0;
    desc.rois = desc.n_rois ? rois : NULL, desc.affines = desc.n_affines ? affines : NULL;
    desc.views = desc.n_views ? views : NULL;
    REQUIRE(gpst_warp_create(&desc, &warp) == GPST_OK);
    model_warp(stage, warp);
    gpst_warp_destroy(warp);
}

/* TIME: items come in order, of a camera one after the other. */
static void model_mask(const stage_plan* stage, uint32_t number) {
    static _Alignas(64) uint8_t states[MOST_STAGES][MOST_CAMERAS][4 * MOST_BYTES];
    const plan* const owner = stage->owner;
    const model_set* const from = &model[stage->from];
    for (uint32_t i = 0; i < from->n; i++) {
        gpst_image shape, state;
        REQUIRE(gpst_mask_query_output(&stage->mask, &from->pictures[i], &shape) == GPST_OK);
        model_put(&model[stage->to], i, shape);
        const gpst_image* const to = &model[stage->to].pictures[i];
        if (stage->mask.kind != GPST_MASK_TIME) {
            REQUIRE(gpst_mask_run(&stage->mask, &from->pictures[i], NULL, to, 1) == GPST_OK);
            continue;
        }
        REQUIRE(gpst_mask_query_state(&stage->mask, &from->pictures[i], &state) == GPST_OK);
        state.data = states[stage - owner->stages][number % owner->n_cameras];
        REQUIRE(gpst_mask_time(&stage->mask, &from->pictures[i], to, &state, number < owner->n_cameras, 1) == GPST_OK);
    }
}

static bool model_fails(const stage_plan* stage, uint32_t number, outcome* out) {
    const bool fails = fails_at(stage, number) && (stage->kind != EACH || model[stage->from].n > 0);
    if (!fails && !skips_at(stage, number))
        return false;
    out->result = fails ? GPST_ERROR_FORMAT : GPST_SKIPPED;
    out->stage = stage->name;
    return true;
}

static void model_stage(const stage_plan* stage, uint32_t number) {
    switch (stage->kind) {
    case MAKE:
        model_make(stage, number);
        break;
    case EACH:
        model_bytes(stage, each_byte);
        break;
    case LIST:
        model_list(stage, number);
        break;
    case KERNEL:
        model_bytes(stage, kernel_byte);
        break;
    case COUNT:
        model_count(stage, number);
        break;
    case WARP:
        model_warp(stage, stage->warp);
        break;
    case CROP:
        model_crop(stage);
        break;
    default:
        model_mask(stage, number);
    }
}

/* Into room for MOST_BYTES * 2; how many there are. */
static size_t model_encode(gpst_file_kind kind, const gpst_image* image, uint8_t* out) {
    size_t bytes = 2 * MOST_BYTES;
    if (kind != GPST_FILE_JPEG)
        REQUIRE(gpst_picture_encode(kind, image, out, &bytes) == GPST_OK);
    else
        REQUIRE(gpst_jpeg_encode(model_jpeg, image, NULL, out, &bytes) == GPST_OK);
    return bytes;
}

static void model_run(const item_plan* item, outcome* out) {
    static uint8_t file[2 * MOST_BYTES];
    const plan* const owner = item->owner;
    const uint32_t first = item->handed_by ? (uint32_t)(item->handed_by - owner->stages) : 0;
    memset(out, 0, sizeof *out);
    for (uint32_t k = 0; k < MOST_SETS; k++)
        model[k].n = 0;
    if (item->fails_early) {
        out->result = GPST_ERROR_CALLBACK;
        out->stage = owner->input != FILES ? "source" : item->number % 2 ? "decode" : "read";
        return;
    }
    if (owner->input != NONE && !item->handed_by) {
        model_put(&model[0], 0, item->frame);
        memcpy(model[0].bytes[0], item->pixels, bytes_of(&model[0].pictures[0]));
    }
    for (uint32_t s = first; s < owner->n_stages; s++) {
        if (model_fails(&owner->stages[s], item->number, out))
            return;
        model_stage(&owner->stages[s], item->number);
    }
    for (uint32_t k = 0; k < owner->n_sets; k++) {
        out->n[k] = model[k].n;
        for (uint32_t i = 0; i < model[k].n; i++) {
            const gpst_image* const picture = &model[k].pictures[i];
            out->sums[k][i].width = picture->width, out->sums[k][i].height = picture->height;
            out->sums[k][i].hash = hash_of(picture->data, bytes_of(picture));
        }
    }
    for (uint32_t i = 0; owner->writes && i < model[owner->encoded].n; i++)
        out->files[i] = hash_of(file, model_encode(owner->encode.kind, &model[owner->encoded].pictures[i], file));
}

/* ---- the same as callbacks --------------------------------------------------------------------------------------- */

#define TRY(call)                        \
    do {                                 \
        const gpst_result got_ = (call); \
        if (GPST_FAILED(got_))           \
            return got_;                 \
    } while (0)

/* A pulled item's number is its index: what failed in the source has nothing else. What ends hand out has the next
   indices. */
static item_plan* item_of(plan* owner, const gpst_item* item) {
    const uint64_t first_end = atomic_load(&owner->first_end);
    item_plan* found = (item_plan*)item->user_data;
    if (!found && item->index >= first_end && item->index - first_end < MOST_ENDS * MOST_HANDED * MOST_CAMERAS)
        found = owner->ended[item->index - first_end];
    if (found)
        REQUIRE(found->owner == owner);
    else
        REQUIRE(owner->desc.source && item->index < owner->n_items);
    return found ? found : &owner->items[item->index];
}

static uint32_t number_of(const stage_plan* stage, const gpst_task* task) {
    return item_of(stage->owner, task->item)->number;
}

/* Of a camera one after the other, in order. Device work that is done again, on the CPU or
   since a batch of it failed, has the same item once more. */
static void enter_ordered(stage_plan* stage, const gpst_task* task) {
    const int number = (int)number_of(stage, task);
    const uint32_t camera = task->item->camera;
    REQUIRE(camera == (uint32_t)number % stage->owner->n_cameras);
    REQUIRE(stage->is_stateful || task->n_missed == 0);
    if (!stage->is_ordered && !stage->is_stateful)
        return;
    REQUIRE(atomic_fetch_add(&stage->is_inside[camera], 1) == 0);
    const int last = atomic_exchange(&stage->last[camera], number);
    REQUIRE_OF(last < number || (last == number && stage->kind == KERNEL), "item %d after %d", number, last);
    if (stage->is_stateful && stage->owner->world->is_calm && last < number)
        REQUIRE_OF(task->n_missed == (last < 0 ? UINT64_MAX : 0), "%llu of item %d", (unsigned long long)task->n_missed,
                   number);
}

static void leave_ordered(stage_plan* stage, const gpst_task* task) {
    if (stage->is_ordered || stage->is_stateful)
        atomic_fetch_sub(&stage->is_inside[task->item->camera], 1);
}

static gpst_result make(stage_plan* stage, gpst_task* task) {
    const gpst_item* const item = task->item;
    const uint32_t number = number_of(stage, task), reads[2] = {stage->from, stage->also};
    uint32_t value = stage->salt;
    if (fails_at(stage, number))
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "%s fails", stage->name);
    if (skips_at(stage, number))
        return GPST_SKIPPED;
    for (uint32_t r = 0; r < (stage->also == stage->from ? 1 : 2) && stage->from < MOST_SETS; r++)
        for (uint32_t i = 0; i < item->sets[reads[r]].n; i++)
            value += (i + r * 100 + 1) * sum_of(&item->sets[reads[r]].pictures[i]);
    for (uint32_t i = 0; i < n_made(stage, number); i++) {
        const gpst_image shape = made_shape(stage, number, i);
        gpst_image image;
        TRY(gpst_task_set_picture(task, stage->to, i, &shape, &image));
        paint(&image, value + i);
    }
    return GPST_OK;
}

static gpst_result run_each(void* user_data, gpst_task* task) {
    stage_plan* const stage = (stage_plan*)user_data;
    const uint32_t i = task->picture_index;
    const gpst_image* const from = &task->item->sets[stage->from].pictures[i];
    gpst_image to;
    if (fails_at(stage, number_of(stage, task)))
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "%s fails", stage->name);
    TRY(gpst_task_set_picture(task, stage->to, i, from, &to));
    for (size_t b = bytes_of(&to); b-- > 0;)
        ((uint8_t*)to.data)[b] = each_byte(((const uint8_t*)from->data)[b], stage->salt);
    return GPST_OK;
}

static gpst_result run_list(void* user_data, gpst_task* task) {
    stage_plan* const stage = (stage_plan*)user_data;
    const uint32_t number = number_of(stage, task);
    const gpst_image shape = list_shape(stage->map, n_entries(stage, number));
    gpst_image list;
    if (shape.width == 0)
        return GPST_OK;
    TRY(gpst_task_set_picture(task, stage->to, 0, &shape, &list));
    fill_list(stage, number, list.data);
    return GPST_OK;
}

typedef struct kernel_args {
    const uint8_t* from;
    uint8_t* to;
    uint32_t* word; /* NULL: none */
    uint32_t bytes, salt, count;
} kernel_args;

static gpst_result kernel_host(const void* args) {
    const kernel_args* const a = (const kernel_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = kernel_byte(a->from[i], a->salt);
    if (a->word)
        *a->word = a->count;
    return GPST_OK;
}

static const gpst_kernel kernel_add = {"add", kernel_host, NULL};

static gpst_result compute(stage_plan* stage, gpst_task* task) {
    const uint32_t n = task->item->sets[stage->from].n, number = number_of(stage, task);
    gpst_image pictures[MOST_PICTURES], to;
    if (fails_at(stage, number))
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "%s fails", stage->name);
    TRY(gpst_task_pictures(task, stage->from, pictures, n));
    for (uint32_t i = 0; i < n; i++) {
        kernel_args args;
        memset(&args, 0, sizeof args);
        TRY(gpst_task_set_picture(task, stage->to, i, &pictures[i], &to));
        if (stage->kind == COUNT)
            TRY(gpst_task_count(task, stage->to, &args.word));
        args.from = (const uint8_t*)pictures[i].data;
        args.to = (uint8_t*)to.data;
        args.bytes = (uint32_t)bytes_of(&to);
        args.salt = stage->kind == COUNT ? 0 : stage->salt;
        args.count = n_counted(stage, number);
        TRY(gpst_task_enqueue(task, &kernel_add, &args, sizeof args));
    }
    return GPST_OK;
}

static void enter(stage_plan* stage) {
    REQUIRE(atomic_fetch_add(&stage->n_inside, 1) < stage->concurrency || stage->concurrency == 0);
}

/* MAKE, KERNEL, COUNT. */
static gpst_result run_one(void* user_data, gpst_task* task) {
    stage_plan* const stage = (stage_plan*)user_data;
    enter(stage);
    enter_ordered(stage, task);
    const gpst_result result = stage->kind == MAKE ? make(stage, task) : compute(stage, task);
    leave_ordered(stage, task);
    atomic_fetch_sub(&stage->n_inside, 1);
    return result;
}

/* An end may be asked now: its camera's last call was not, nor does one of a stage before still have items; of one
   camera with a sink all that have smaller indices were told. One that was being asked may see the cancel. */
static void check_asked(const stage_plan* stage, const gpst_item* got) {
    plan* const owner = stage->owner;
    const uint32_t camera = got->camera;
    const bool hears_all = owner->desc.sink && owner->n_cameras == 1 && !owner->may_drop;
    REQUIRE_OF(camera < owner->n_cameras && !stage->is_through[camera], "%s: camera %u", stage->name, camera);
    REQUIRE(!atomic_load(&owner->is_cancelled) || owner->n_since_cancel++ == 0);
    REQUIRE_OF(got->index == atomic_load(&owner->first_end) + owner->n_ended && !got->user_data, "index %llu of %s",
               (unsigned long long)got->index, stage->name);
    REQUIRE(!hears_all || stage->n_asked[camera] > 0 || atomic_load(&owner->n_heard) >= got->index);
    REQUIRE(atomic_load(&stage->is_inside[camera]) == 0);
    for (uint32_t k = 0; k < got->n_sets; k++)
        REQUIRE_OF(got->sets[k].n == 0, "set %u", k);
    for (uint32_t s = 0; &owner->stages[s] < stage; s++)
        REQUIRE_OF(owner->stages[s].first_handed == 0 || owner->stages[s].is_through[camera], "%s before %s",
                   stage->name, owner->stages[s].name);
}

static gpst_result run_end(void* user_data, gpst_task* task) {
    stage_plan* const stage = (stage_plan*)user_data;
    plan* const owner = stage->owner;
    const uint32_t camera = task->item->camera;
    unsigned long long none = UINT64_MAX;
    gpst_result result = GPST_END;
    REQUIRE(atomic_fetch_add(&owner->n_in_end, 1) == 0);
    (void)atomic_compare_exchange_strong(&owner->first_end, &none, task->item->index);
    check_asked(stage, task->item);
    enter(stage);
    const uint32_t n = stage->n_asked[camera]++;
    if (n < n_handed(stage, camera)) {
        item_plan* const item = &owner->items[stage->first_handed + n * owner->n_cameras + camera];
        item->is_accepted = true;
        owner->ended[owner->n_ended++] = item;
        result = make(stage, task);
    }
    stage->is_through[camera] = result == GPST_END || GPST_FAILED(result);
    atomic_fetch_sub(&stage->n_inside, 1);
    atomic_fetch_sub(&owner->n_in_end, 1);
    return result;
}

static gpst_result run_together(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* results) {
    stage_plan* const stage = (stage_plan*)user_data;
    REQUIRE(n_tasks >= 1 && n_tasks <= stage->batch_most);
    if (n_tasks > 1 && stage->batch_fails > 0 && atomic_fetch_add(&stage->n_batches, 1) % stage->batch_fails == 0)
        return GPST_ERROR_CALLBACK;
    for (uint32_t i = 0; i < n_tasks; i++)
        results[i] = run_one(stage, &tasks[i]);
    return GPST_OK;
}

static void path_of_output(const plan* owner, uint32_t number, uint32_t picture, char* out, size_t room) {
    snprintf(out, room, "%s/out_%05u_%02u", owner->folder, number, picture);
}

static gpst_result run_encode(void* user_data, gpst_task* task) {
    plan* const owner = (plan*)user_data;
    char path[120];
    path_of_output(owner, item_of(owner, task->item)->number, task->picture_index, path, sizeof path);
    return gpst_task_emit(task, path, task->encoded_bytes);
}

/* ---- the stages as the engine is told ---------------------------------------------------------------------------- */

static void describe_stage(stage_plan* stage, gpst_stage_desc* out) {
    const uint32_t reads = stage->from < MOST_SETS ? GPST_SET(stage->from) | GPST_SET(stage->also) : 0;
    const uint32_t writes = GPST_SET(stage->to);
    if (stage->kind == WARP)
        gpst_stage_warp(out, stage->from, stage->to, stage->warp);
    else if (stage->kind == CROP)
        gpst_stage_list(out, stage->from, stage->also, stage->to, stage->warp);
    else if (stage->kind == MASK)
        gpst_stage_mask(out, stage->from, stage->to, &stage->mask);
    else if (stage->kind == KERNEL || stage->kind == COUNT)
        gpst_stage_device(out, reads, writes, run_one, stage);
    else
        gpst_stage_host(out, reads, writes,
                        stage->kind == MAKE   ? run_one
                        : stage->kind == EACH ? run_each
                                              : run_list,
                        stage);
    if (stage->batch_most > 0 && out->func)
        out->batch_func = run_together, out->func = NULL;
    out->end = stage->first_handed > 0 ? run_end : NULL;
    out->name = stage->name;
    out->batch_most = stage->batch_most;
    out->per_picture = stage->kind == EACH;
    out->ordered = stage->is_ordered;
    out->stateful = stage->is_stateful;
    out->capturable = stage->is_capturable;
    out->concurrency = stage->concurrency;
    out->queue_most = stage->queue_most;
    out->full_policy = stage->policy;
}

/* How many there are. */
static uint32_t describe_stages(plan* self, gpst_stage_desc* out) {
    uint32_t n = 0;
    if (self->input == FILES) {
        gpst_stage_read(&out[n++]);
        gpst_stage_decode(&out[n++], 0, NULL);
    }
    for (uint32_t s = 0; s < self->n_stages; s++)
        describe_stage(&self->stages[s], &out[n++]);
    if (self->writes) {
        gpst_stage_encode(&out[n++], self->encoded, &self->encode, run_encode, self);
        gpst_stage_write(&out[n++]);
    }
    return n;
}

#endif
