/* tests/test_pipeline_sets.c -- picture sets: random pipelines against a straightforward interpreter of the same stages,
   with every copy over the link counted by hand; MASK stages; lists of rois; what a stage may say of its sets. */
#include "pipeline_kit.h"

/* ---- a random pipeline ------------------------------------------------------------------------------------ */

enum { MOST_STAGES = 8, MOST_SETS = 9, MOST_PICTURES = 16, N_PIPELINES = 50, N_PLAN_ITEMS = 12, MOST_BYTES = 2048 };

typedef enum plan_kind { PLAN_HOST, PLAN_EACH, PLAN_DEVICE, PLAN_WARP, N_PLAN_KINDS } plan_kind;

typedef struct plan_stage {
    struct plan* owner;
    plan_kind kind;
    uint32_t reads, to; /* a set as a bit, or several; the number of the set that is written */
    uint32_t salt;
    uint64_t fail_every; /* 0 = never */
    gpst_warp* warp;
    char name[16];
} plan_stage;

typedef struct plan {
    kit* owner;
    uint32_t n_stages, n_sets;
    plan_stage stages[MOST_STAGES];
    uint32_t capacity[MOST_SETS];
    uint32_t n_results;
    gpst_result_set results[MOST_SETS];
    bool lends, fails, has_faults;
    gpsti_a32 n_released;
    uint64_t n_ended, n_ok, cancel_after; /* so many have ended; 0 = never */
    uint64_t h2d, d2h; /* by the interpreter */
} plan;

static uint32_t pick(uint64_t* random, uint32_t n) { return (uint32_t)((test_random(random) >> 33) % n); }

static uint32_t lowest(uint32_t sets) {
    uint32_t k = 0;
    while (!(sets & GPST_SET(k)))
        k++;
    return k;
}

static gpst_image gray(uint32_t width, uint32_t height, void* data) {
    gpst_image image = kit_shape(width, height);
    image.data = data;
    return image;
}

static gpst_image frame_shape(uint64_t index) {
    return gray(8 + (uint32_t)(index * 7 % 23), 5 + (uint32_t)(index * 5 % 17), NULL);
}

static void fill_frame(uint64_t index, uint8_t* pixels) {
    for (uint32_t i = 0; i < MOST_BYTES; i++)
        pixels[i] = (uint8_t)(i * 13 + index * 29 + (i >> 5));
}

static gpst_warp* make_warp(uint64_t* random, uint32_t n_rois) {
    static const gpst_roi rois[2] = {{1, 1, 5, 3}, {2.5f, 0, 4, 4.5f}};
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = n_rois ? GPST_MAP_ROI : GPST_MAP_RESIZE;
    desc.rois = n_rois ? rois : NULL;
    desc.n_rois = n_rois;
    desc.width = 6 + pick(random, 20);
    desc.height = 5 + pick(random, 20);
    desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

static void plan_add_stage(plan* self, uint64_t* random) {
    plan_stage* const stage = &self->stages[self->n_stages++];
    const uint32_t from = pick(random, self->n_sets), to = self->n_sets++;
    stage->owner = self;
    stage->kind = (plan_kind)pick(random, N_PLAN_KINDS);
    stage->to = to;
    stage->salt = pick(random, 251);
    stage->reads = GPST_SET(from);
    self->capacity[to] = self->capacity[from];
    snprintf(stage->name, sizeof stage->name, "stage%u", self->n_stages - 1);
    if (stage->kind == PLAN_HOST) {
        stage->reads |= GPST_SET(pick(random, self->n_sets - 1));
        stage->fail_every = self->fails && pick(random, 3) == 0 ? 2 + pick(random, 5) : 0;
        self->capacity[to] = 4;
    }
    if (stage->kind == PLAN_WARP) {
        const uint32_t n = self->capacity[from] * 2 <= MOST_PICTURES ? pick(random, 3) : 0;
        stage->warp = make_warp(random, n);
        self->capacity[to] = self->capacity[from] * (n ? n : 1);
    }
}

static void plan_make(plan* self, uint64_t seed) {
    uint64_t random = seed;
    memset(self, 0, sizeof *self);
    self->fails = seed % 3 == 0;
    self->lends = seed % 2 == 0;
    self->n_sets = 1;
    self->capacity[0] = 1;
    const uint32_t n_stages = 1 + pick(&random, MOST_STAGES);
    while (self->n_stages < n_stages)
        plan_add_stage(self, &random);
    for (uint32_t k = 0; k < self->n_sets; k++)
        if (pick(&random, 2) == 0 || (k + 1 == self->n_sets && self->n_results == 0))
            self->results[self->n_results++] = gpst_result_of(k, (gpst_place)(int)pick(&random, 3));
}

static void plan_unmake(plan* self) {
    for (uint32_t s = 0; s < self->n_stages; s++)
        gpst_warp_destroy(self->stages[s].warp);
}

/* ---- what its stages do, and the interpreter ---------------------------------------------------------------- */

static uint32_t sum_of(const gpst_image* image) {
    uint32_t sum = image->width * 3 + image->height;
    for (uint32_t i = 0; i < image->width * image->height; i++)
        sum = sum * 31 + ((const uint8_t*)image->data)[i];
    return sum;
}

/* A HOST stage makes up to 3 pictures of all that it reads, sometimes none. */
static uint32_t host_makes(uint64_t index, const plan_stage* stage) { return (uint32_t)((index + stage->salt) % 4); }

static gpst_image host_shape(uint64_t index, const plan_stage* stage, uint32_t i) {
    return gray(7 + (uint32_t)(index + stage->salt + i) % 19, 5 + (stage->salt + i) % 11, NULL);
}

static void paint(const gpst_image* image, uint32_t value) {
    for (uint32_t i = 0; i < image->width * image->height; i++)
        ((uint8_t*)image->data)[i] = (uint8_t)(value + i * 7 + (i >> 4));
}

typedef struct model_set {
    gpst_image pictures[MOST_PICTURES];
    uint8_t bytes[MOST_PICTURES][MOST_BYTES];
    uint32_t n;
    bool on_host, on_device;
} model_set;

typedef struct model {
    model_set sets[MOST_SETS];
    int failed; /* the stage, or -1 */
} model;

static uint64_t bytes_of(const model_set* set) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < set->n; i++)
        total += (uint64_t)set->pictures[i].width * set->pictures[i].height;
    return total;
}

static void model_put(model_set* set, uint32_t i, gpst_image shape) {
    assert_true(i < MOST_PICTURES && shape.width * shape.height <= MOST_BYTES);
    shape.data = set->bytes[i];
    shape.pitch_bytes = shape.width;
    set->pictures[i] = shape;
    set->n = i + 1;
}

static void model_host(model* self, const plan_stage* stage, uint64_t index) {
    uint32_t value = stage->salt;
    for (uint32_t k = 0; k < MOST_SETS; k++)
        for (uint32_t i = 0; (stage->reads & GPST_SET(k)) && i < self->sets[k].n; i++)
            value = value * 17 + sum_of(&self->sets[k].pictures[i]);
    for (uint32_t i = 0; i < host_makes(index, stage); i++) {
        model_put(&self->sets[stage->to], i, host_shape(index, stage, i));
        paint(&self->sets[stage->to].pictures[i], value + i);
    }
}

static void model_each(model* self, const plan_stage* stage, bool adds) {
    const model_set* const from = &self->sets[lowest(stage->reads)];
    for (uint32_t i = 0; i < from->n; i++) {
        model_put(&self->sets[stage->to], i, from->pictures[i]);
        for (uint32_t b = 0; b < from->pictures[i].width * from->pictures[i].height; b++)
            self->sets[stage->to].bytes[i][b] =
                (uint8_t)(adds ? from->bytes[i][b] + stage->salt : from->bytes[i][b] ^ stage->salt);
    }
}

static void model_warp(model* self, const plan_stage* stage) {
    const model_set* const from = &self->sets[lowest(stage->reads)];
    const uint32_t n = gpst_warp_n_outputs(stage->warp);
    gpst_image shape;
    gpst_warp_query_output(stage->warp, &shape);
    for (uint32_t i = 0; i < from->n; i++) {
        for (uint32_t o = 0; o < n; o++)
            model_put(&self->sets[stage->to], i * n + o, shape);
        assert_int_equal(
            gpst_warp_run(stage->warp, &from->pictures[i], &self->sets[stage->to].pictures[i * n], n, 1), GPST_OK);
    }
}

/* A set is copied where it is read and is not; so much and no more may cross the link. */
static void model_want(plan* counts, model_set* set, bool on_device) {
    bool* const there = on_device ? &set->on_device : &set->on_host;
    if (!*there)
        *(on_device ? &counts->h2d : &counts->d2h) += bytes_of(set);
    *there = true;
}

static void model_run(model* self, plan* of, uint64_t index) {
    memset(self, 0, sizeof *self);
    self->failed = -1;
    model_put(&self->sets[0], 0, frame_shape(index));
    fill_frame(index, self->sets[0].bytes[0]);
    self->sets[0].on_host = true;
    for (uint32_t s = 0; s < of->n_stages; s++) {
        const plan_stage* const stage = &of->stages[s];
        const bool on_device = stage->kind == PLAN_DEVICE || stage->kind == PLAN_WARP;
        for (uint32_t k = 0; k < of->n_sets; k++)
            if (stage->reads & GPST_SET(k))
                model_want(of, &self->sets[k], on_device);
        if (stage->fail_every > 0 && index % stage->fail_every == 0) {
            self->failed = (int)s;
            return;
        }
        if (stage->kind == PLAN_HOST)
            model_host(self, stage, index);
        else if (stage->kind == PLAN_WARP)
            model_warp(self, stage);
        else
            model_each(self, stage, stage->kind == PLAN_DEVICE);
        self->sets[stage->to].on_host = !on_device;
        self->sets[stage->to].on_device = on_device;
    }
    for (uint32_t r = 0; r < of->n_results; r++)
        if (of->results[r].place != GPST_AS_IT_IS)
            model_want(of, &self->sets[of->results[r].set], of->results[r].place == GPST_ON_DEVICE);
}

/* ---- the same through the engine ----------------------------------------------------------------------------- */

static gpst_result run_host(void* user_data, gpst_task* task) {
    const plan_stage* const stage = (const plan_stage*)user_data;
    const gpst_item* const item = task->item;
    uint32_t value = stage->salt;
    if (stage->fail_every > 0 && item->index % stage->fail_every == 0)
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "every %u", (unsigned)stage->fail_every);
    for (uint32_t k = 0; k < item->n_sets; k++)
        for (uint32_t i = 0; (stage->reads & GPST_SET(k)) && i < item->sets[k].n; i++)
            value = value * 17 + sum_of(&item->sets[k].pictures[i]);
    for (uint32_t i = 0; i < host_makes(item->index, stage); i++) {
        const gpst_image shape = host_shape(item->index, stage, i);
        gpst_image image;
        GPSTI_TRY(gpst_task_set_picture(task, stage->to, i, &shape, &image));
        paint(&image, value + i);
    }
    return GPST_OK;
}

static gpst_result run_each(void* user_data, gpst_task* task) {
    const plan_stage* const stage = (const plan_stage*)user_data;
    const gpst_image* const from = &task->item->sets[lowest(stage->reads)].pictures[task->picture_index];
    gpst_image to;
    GPSTI_TRY(gpst_task_set_picture(task, stage->to, task->picture_index, from, &to));
    for (uint32_t b = 0; b < from->width * from->height; b++)
        ((uint8_t*)to.data)[b] = (uint8_t)(((const uint8_t*)from->data)[b] ^ stage->salt);
    return GPST_OK;
}

static gpst_result add_on_host(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

static gpst_result run_device(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"add", add_on_host, TEST_GPU(test_number_gpu)};
    const plan_stage* const stage = (const plan_stage*)user_data;
    const uint32_t from = lowest(stage->reads), n = task->item->sets[from].n;
    gpst_image pictures[MOST_PICTURES], to;
    GPSTI_TRY(gpst_task_pictures(task, from, pictures, n));
    for (uint32_t i = 0; i < n; i++) {
        test_number_args args;
        memset(&args, 0, sizeof args);
        GPSTI_TRY(gpst_task_set_picture(task, stage->to, i, &pictures[i], &to));
        args.from = (const uint8_t*)pictures[i].data;
        args.to = (uint8_t*)to.data;
        args.add = stage->salt;
        args.bytes = to.width * to.height;
        GPSTI_TRY(gpst_task_enqueue(task, &kernel, &args, sizeof args));
    }
    return GPST_OK;
}

typedef struct lent_frame {
    plan* owner;
    uint8_t pixels[MOST_BYTES];
} lent_frame;

static lent_frame lent_frames[N_PLAN_ITEMS];

/* Who reads it now reads what is wrong. */
static void give_back(void* user_data) {
    lent_frame* const frame = (lent_frame*)user_data;
    memset(frame->pixels, 0xEE, sizeof frame->pixels);
    (void)gpsti_a32_add(&frame->owner->n_released, 1);
}

static gpst_result plan_source(void* user_data, uint64_t index, gpst_input* out) {
    plan* const self = (plan*)user_data;
    static uint8_t copied[MOST_BYTES];
    if (index >= N_PLAN_ITEMS)
        return GPST_END;
    uint8_t* const pixels = self->lends ? lent_frames[index].pixels : copied;
    fill_frame(index, pixels);
    out->frame = frame_shape(index);
    out->frame.data = pixels;
    out->release = self->lends ? give_back : NULL;
    out->release_user_data = &lent_frames[index];
    lent_frames[index].owner = self;
    return GPST_OK;
}

static bool copy_from_device(const kit* owner, void* to, const void* from, size_t bytes) {
    gpst_stream* stream = NULL;
    gpst_result result = gpst_stream_create(gpst_context_device(owner->context), &stream);
    if (result == GPST_OK)
        result = gpst_copy(to, from, bytes, stream);
    if (result == GPST_OK)
        result = gpst_stream_synchronize(stream);
    gpst_stream_destroy(stream);
    return result == GPST_OK;
}

/* A picture of a result, wherever it is. */
static void plan_compare(plan* self, const gpst_item* item, const model* wanted, const gpst_result_set* result) {
    const gpst_set* const set = &item->sets[result->set];
    const model_set* const right = &wanted->sets[result->set];
    kit_check(self->owner, set->n == right->n);
    for (uint32_t i = 0; i < set->n && i < right->n; i++) {
        const gpst_image* const picture = &set->pictures[i];
        uint8_t bytes[MOST_BYTES];
        const size_t n = (size_t)picture->width * picture->height;
        kit_check(self->owner, picture->width == right->pictures[i].width && picture->data);
        kit_check(self->owner, picture->height == right->pictures[i].height && n <= sizeof bytes);
        if (n > sizeof bytes || !picture->data)
            continue;
        if (!set->on_device)
            memcpy(bytes, picture->data, n);
        else if (!copy_from_device(self->owner, bytes, picture->data, n)) {
            kit_check(self->owner, self->has_faults); /* such as the device's loss since */
            continue;
        }
        kit_check(self->owner, memcmp(bytes, right->bytes[i], n) == 0);
        kit_check(self->owner, result->place != GPST_ON_HOST || !set->on_device);
    }
}

static gpst_result plan_sink(void* user_data, const gpst_item* item) {
    static model wanted; /* one call at a time */
    plan* const self = (plan*)user_data;
    if (++self->n_ended == self->cancel_after)
        gpst_pipeline_cancel(self->owner->pipeline);
    if (item->result == GPST_ERROR_CANCELLED)
        return GPST_OK;
    if (self->lends && self->has_faults && strstr(item->reason, "lost, and the lent frame that it was made of"))
        return GPST_OK; /* nothing is left that it could be computed from */
    model_run(&wanted, self, item->index);
    kit_check(self->owner, (wanted.failed >= 0) == (item->result != GPST_OK));
    if (item->result != GPST_OK && wanted.failed < 0)
        printf("    item %u: %s: %s\n", (unsigned)item->index, item->stage, item->reason);
    if (item->result != GPST_OK && wanted.failed >= 0) {
        kit_check(self->owner, strcmp(item->stage, self->stages[wanted.failed].name) == 0);
        kit_check(self->owner, strncmp(item->reason, "every ", 6) == 0);
        return GPST_OK;
    }
    self->n_ok++;
    for (uint32_t k = 0; k < self->n_sets; k++) {
        const gpst_result_set* result = NULL;
        for (uint32_t r = 0; r < self->n_results; r++)
            result = self->results[r].set == k ? &self->results[r] : result;
        if (result)
            plan_compare(self, item, &wanted, result);
        else
            kit_check(self->owner, item->sets[k].n == 0); /* dead by now */
    }
    return GPST_OK;
}

/* As a batch function: each item has its own result; sometimes the batch fails as a whole, and is taken apart. */
static gpst_result run_together(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* results) {
    const plan_stage* const stage = (const plan_stage*)user_data;
    if (n_tasks > 1 && (tasks[0].item->index + stage->salt) % 5 == 0)
        return GPST_ERROR_CALLBACK;
    for (uint32_t i = 0; i < n_tasks; i++)
        results[i] = stage->kind == PLAN_HOST ? run_host(user_data, &tasks[i]) : run_device(user_data, &tasks[i]);
    return GPST_OK;
}

static void plan_batch(const plan* self, const plan_stage* stage, gpst_stage_desc* desc) {
    const bool has_func = stage->kind == PLAN_HOST || stage->kind == PLAN_DEVICE;
    if (stage->kind == PLAN_EACH || (stage->salt + self->n_stages) % 3 != 0)
        return;
    desc->batch_most = 1 + stage->salt % 5;
    desc->batch_func = has_func ? run_together : NULL;
    desc->func = NULL;
}

static void plan_describe(plan* self, gpst_stage_desc* stages, gpst_pipeline_desc* desc) {
    for (uint32_t s = 0; s < self->n_stages; s++) {
        plan_stage* const stage = &self->stages[s];
        const uint32_t writes = GPST_SET(stage->to);
        if (stage->kind == PLAN_WARP)
            gpst_stage_warp(&stages[s], lowest(stage->reads), stage->to, stage->warp);
        else if (stage->kind == PLAN_DEVICE)
            gpst_stage_device(&stages[s], stage->reads, writes, run_device, stage);
        else
            gpst_stage_host(&stages[s], stage->reads, writes, stage->kind == PLAN_HOST ? run_host : run_each, stage);
        stages[s].per_picture = stage->kind == PLAN_EACH;
        plan_batch(self, stage, &stages[s]);
        stages[s].name = stage->name;
        desc->capacity[stage->to] = stage->kind == PLAN_WARP ? 0 : self->capacity[stage->to];
    }
    desc->stages = stages;
    desc->n_stages = self->n_stages;
    memcpy(desc->results, self->results, sizeof self->results);
    desc->n_results = self->n_results;
    desc->source = plan_source;
    desc->sink = plan_sink;
    desc->source_user_data = desc->sink_user_data = self;
}

static void run_plan(const char* backend, uint64_t seed, gpst_run_mode mode, bool has_faults, bool cancels) {
    static plan self; /* its addresses are the pipeline's */
    kit* const owner = kit_open(backend, 3);
    gpst_stage_desc stages[MOST_STAGES];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stats stats;
    plan_make(&self, seed);
    self.owner = owner;
    plan_describe(&self, stages, &desc);
    desc.mode = mode;
    desc.as_ready = seed % 5 == 0;
    assert_int_equal(gpst_pipeline_create(owner->context, &desc, &owner->pipeline), GPST_OK);
    self.has_faults = has_faults;
    self.cancel_after = cancels ? 1 + seed % 7 : 0;
    const gpst_result result = gpst_pipeline_run(owner->pipeline);
    gpst_pipeline_query_stats(owner->pipeline, &stats);
    assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
    owner->pipeline = NULL;
    if (!cancels) {
        assert_true(result == (self.n_ok == N_PLAN_ITEMS ? GPST_OK : GPST_PARTIAL));
        assert_int_equal(self.n_ended, N_PLAN_ITEMS);
    }
    assert_int_equal(self.n_ended, stats.items_ok + stats.items_failed + stats.items_cancelled);
    if (self.lends)
        assert_int_equal(gpsti_a32_load(&self.n_released), self.n_ended);
    if (!cancels && !has_faults && self.n_ok == N_PLAN_ITEMS && kit_has_own_memory(owner)) {
        uint64_t up = 0, down = 0;
        assert_int_equal(stats.bytes_h2d, self.h2d);
        assert_int_equal(stats.bytes_d2h, self.d2h);
        for (uint32_t c = 0; c < stats.n_copies; c++) {
            *(stats.copies[c].up ? &up : &down) += stats.copies[c].bytes;
            assert_true(stats.copies[c].wanted[0] != '\0');
        }
        assert_int_equal(up, self.h2d);
        assert_int_equal(down, self.d2h);
    }
    plan_unmake(&self);
    kit_close(owner);
}

static void test_random_pipelines(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1", "sim:kernel_us=100,jitter_pct=80,seed=3"};
    const uint64_t seed = test_seed(7);
    for (uint64_t n = 0; n < N_PIPELINES; n++)
        for (size_t b = 0; b < sizeof backends / sizeof *backends; b++)
            run_plan(backends[b], seed + n, n % 4 == 1 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE, false, false);
}

/* An item that the device fails for is computed on the CPU: the same bits, wherever its sets were. */
static void test_random_pipelines_in_trouble(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:fail_launch=3", "sim:fail_copy=4", "sim:fail_notify=2",
                                           "sim:lose_at=30", "sim:fail_alloc=2", "sim:lose_at=4",   "sim:lose_at=11"};
    const uint64_t seed = test_seed(7);
    kit_count_faults();
    for (uint64_t n = 0; n < N_PIPELINES; n++)
        run_plan(backends[n % (sizeof backends / sizeof *backends)], seed + n, GPST_RUN_ENGINE, true, false);
    assert_true(kit_counted_faults() >= N_PIPELINES / 2); /* some plans have little for the device to do */
}

static void test_random_pipelines_cancelled(void** state) {
    (void)state;
    const uint64_t seed = test_seed(7);
    for (uint64_t n = 0; n < N_PIPELINES; n++)
        run_plan(n % 2 ? "sim:kernel_us=200" : "cpu", seed + n, GPST_RUN_ENGINE, false, true);
}

/* ---- several stages of the library's own ------------------------------------------------------------------------ */

enum { N_CLASSES = 21, SIDE = 24, LARGE = 40, N_LIST = 3 };

static uint64_t hash_of(const gpst_image* image) {
    uint64_t hash = 1469598103934665603u;
    size_t bytes = 0;
    assert_int_equal(gpst_image_bytes(image, &bytes), GPST_OK);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t*)image->data)[i]) * 1099511628211u;
    return hash;
}

static gpst_image scores_shape(void) {
    gpst_image shape = GPST_ZERO;
    shape.width = shape.height = SIDE;
    shape.format = GPST_FORMAT_TENSOR;
    shape.n_channels = N_CLASSES;
    shape.dtype = GPST_DTYPE_F32;
    shape.layout = GPST_LAYOUT_CHW;
    return shape;
}

static void fill_scores(float* scores, uint64_t index) {
    uint64_t random = index + 1;
    for (uint32_t i = 0; i < N_CLASSES * SIDE * SIDE; i++)
        scores[i] = (float)(int)(pick(&random, 2001)) / 100.0f - 10.0f;
}

static gpst_result make_scores(void* user_data, gpst_task* task) {
    const gpst_image shape = scores_shape();
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    fill_scores((float*)image.data, task->item->index);
    return GPST_OK;
}

enum { SCORES, LABELS, REFINED, BOXES, ABOVE, OPENED, SOFT, BITS, BACK, ONE_BOX };

typedef struct masks {
    kit* owner;
    gpst_mask_desc ops[9];
    uint64_t wanted[4][10]; /* hash of each set of each item */
} masks;

static void masks_init(masks* self) {
    static const gpst_mask_desc none = GPST_ZERO;
    for (int i = 0; i < 9; i++)
        self->ops[i] = none;
    self->ops[0].kind = GPST_MASK_ARGMAX, self->ops[0].width = LARGE, self->ops[0].height = LARGE;
    self->ops[1].kind = GPST_MASK_REFINE;
    self->ops[2].kind = GPST_MASK_LABEL_BOXES, self->ops[2].n_classes = N_CLASSES;
    self->ops[3].kind = GPST_MASK_THRESHOLD, self->ops[3].threshold = 9;
    self->ops[4].kind = GPST_MASK_MORPH, self->ops[4].morph = GPST_MORPH_OPEN, self->ops[4].size = 3;
    self->ops[5].kind = GPST_MASK_SMOOTH, self->ops[5].smooth = GPST_SMOOTH_GAUSSIAN, self->ops[5].size = 5;
    self->ops[6].kind = GPST_MASK_PACK;
    self->ops[7].kind = GPST_MASK_UNPACK, self->ops[7].width = LARGE;
    self->ops[8].kind = GPST_MASK_BOX;
}

static const uint32_t mask_from[9] = {SCORES, LABELS, REFINED, REFINED, ABOVE, ABOVE, ABOVE, BITS, OPENED};

/* The same one after the other by direct calls. */
static void masks_compute(masks* self) {
    static float scores[N_CLASSES * SIDE * SIDE];
    static _Alignas(64) uint8_t rooms[10][4096];
    for (uint64_t n = 0; n < 4; n++) {
        gpst_image pictures[10];
        pictures[SCORES] = scores_shape();
        pictures[SCORES].data = scores;
        fill_scores(scores, n);
        for (int i = 0; i < 9; i++) {
            const gpst_image* const from = &pictures[mask_from[i]];
            assert_int_equal(gpst_mask_query_output(&self->ops[i], from, &pictures[i + 1]), GPST_OK);
            pictures[i + 1].data = rooms[i + 1];
            assert_int_equal(gpst_mask_run(&self->ops[i], from, NULL, &pictures[i + 1], 1), GPST_OK);
            self->wanted[n][i + 1] = hash_of(&pictures[i + 1]);
        }
    }
}

static gpst_result masks_sink(void* user_data, const gpst_item* item) {
    masks* const self = (masks*)user_data;
    kit_check(self->owner, item->result == GPST_OK);
    if (item->result != GPST_OK)
        printf("    %s: %s\n", item->stage, item->reason);
    for (uint32_t k = 1; k < 10 && item->result == GPST_OK; k++) {
        kit_check(self->owner, item->sets[k].n == 1);
        kit_check(self->owner, hash_of(&item->sets[k].pictures[0]) == self->wanted[item->index][k]);
    }
    return GPST_OK;
}

/* Every operation, in one submission: up go the scores of 21 classes, down what is asked for. */
static void test_masks(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:fail_launch=5"};
    static masks self;
    masks_init(&self);
    masks_compute(&self);
    for (int b = 0; b < 3; b++) {
        kit* const owner = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stage_desc stages[10];
        gpst_stats stats;
        self.owner = owner;
        gpst_stage_host(&stages[0], 0, GPST_SET(SCORES), make_scores, NULL);
        for (uint32_t i = 0; i < 9; i++)
            gpst_stage_mask(&stages[i + 1], mask_from[i], i + 1, &self.ops[i]);
        for (uint32_t k = 1; k < 10; k++)
            desc.results[desc.n_results++] = gpst_result_of(k, GPST_ON_HOST);
        desc.stages = stages;
        desc.n_stages = 10;
        owner->n_items = 4;
        desc.source = kit_source_empty;
        desc.source_user_data = owner;
        desc.sink = masks_sink;
        desc.sink_user_data = &self;
        desc.mode = GPST_RUN_ENGINE;
        assert_int_equal(gpst_pipeline_create(owner->context, &desc, &owner->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(owner->pipeline), GPST_OK);
        gpst_pipeline_query_stats(owner->pipeline, &stats);
        assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
        owner->pipeline = NULL;
        if (b == 1)
            assert_int_equal(stats.bytes_h2d, 4 * sizeof(float) * N_CLASSES * SIDE * SIDE);
        kit_close(owner);
    }
}

static void test_mask_rules(void** state) {
    static uint8_t room[64 * 64];
    gpst_image from = gray(16, 8, room), to = gray(16, 8, room + 1024), out;
    gpst_mask_desc desc = GPST_ZERO;
    (void)state;
    assert_int_equal(gpst_mask_query_output(&desc, &from, &out), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_mask_query_output: kind=0", "unknown");
    desc.kind = GPST_MASK_ARGMAX, desc.width = 20;
    assert_int_equal(gpst_mask_query_output(&desc, &from, &out), GPST_ERROR_ARGUMENT);
    test_reason_has("width=20, height=0", "both or none");
    desc.kind = GPST_MASK_UNPACK, desc.width = 200;
    assert_int_equal(gpst_mask_query_output(&desc, &from, &out), GPST_ERROR_ARGUMENT);
    test_reason_has("width=200", "bitmaps 16 bytes wide");
    desc.kind = GPST_MASK_MORPH, desc.morph = GPST_MORPH_CLOSE, desc.size = 4;
    assert_int_equal(gpst_mask_query_output(&desc, &from, &out), GPST_ERROR_ARGUMENT);
    test_reason_has("morph=4, smooth=0, size=4", "both 3 or 5");
    desc.kind = GPST_MASK_THRESHOLD;
    assert_int_equal(gpst_mask_run(&desc, &from, &from, &to, 1), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_mask_run: guide", "only with REFINE");
    to.width = 15;
    assert_int_equal(gpst_mask_run(&desc, &from, NULL, &to, 1), GPST_ERROR_ARGUMENT);
    test_reason_has("to=15x8", "16x8");
    desc.kind = GPST_MASK_BOX;
    to = gray((uint32_t)sizeof(gpst_box), 1, room + 1025);
    assert_int_equal(gpst_mask_run(&desc, &from, NULL, &to, 1), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_mask_run: to.data", "aligned to 8");
}

/* A list of rois for every item, of other lengths, made by the host. */
typedef struct lists {
    kit* owner;
    gpst_warp* warp;
} lists;

static uint32_t list_of(uint64_t index, gpst_roi* rois) {
    for (uint32_t i = 0; i < N_LIST; i++) {
        const gpst_roi roi = {(float)(index + i), (float)i, 4.0f + (float)i, 3.5f};
        rois[i] = roi;
    }
    return (uint32_t)(index % (N_LIST + 1));
}

static gpst_result make_list(void* user_data, gpst_task* task) {
    gpst_image shape = GPST_ZERO, image;
    gpst_roi rois[N_LIST];
    (void)user_data;
    shape.width = list_of(task->item->index, rois);
    shape.height = 1;
    shape.format = GPST_FORMAT_TENSOR;
    shape.n_channels = 4;
    shape.dtype = GPST_DTYPE_F32;
    shape.layout = GPST_LAYOUT_HWC;
    if (shape.width == 0)
        return GPST_OK; /* no list, no crops */
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    memcpy(image.data, rois, shape.width * sizeof *rois);
    return GPST_OK;
}

static gpst_result lists_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[MOST_BYTES];
    (void)user_data;
    fill_frame(index, pixels);
    out->frame = gray(SIDE, SIDE, pixels);
    return index < 12 ? GPST_OK : GPST_END;
}

static gpst_result lists_sink(void* user_data, const gpst_item* item) {
    static uint8_t pixels[MOST_BYTES], crop[MOST_BYTES];
    lists* const self = (lists*)user_data;
    gpst_roi rois[N_LIST];
    const uint32_t n = list_of(item->index, rois);
    kit_check(self->owner, item->result == GPST_OK && item->sets[2].n == n);
    if (item->result != GPST_OK)
        printf("    %s: %s\n", item->stage, item->reason);
    fill_frame(item->index, pixels);
    for (uint32_t i = 0; item->result == GPST_OK && i < n; i++) {
        const gpst_image source = gray(SIDE, SIDE, pixels);
        gpst_warp_desc desc = GPST_ZERO;
        gpst_warp* warp = NULL;
        gpst_image output;
        desc.map = GPST_MAP_ROI;
        desc.rois = &rois[i];
        desc.n_rois = 1;
        desc.width = desc.height = 9;
        desc.format = GPST_FORMAT_GRAY;
        kit_check(self->owner, gpst_warp_create(&desc, &warp) == GPST_OK);
        gpst_warp_query_output(warp, &output);
        output.data = crop;
        kit_check(self->owner, gpst_warp_run(warp, &source, &output, 1, 1) == GPST_OK);
        kit_check(self->owner, memcmp(item->sets[2].pictures[i].data, crop, 81) == 0);
        gpst_warp_destroy(warp);
    }
    return GPST_OK;
}

static void test_a_list_of_rois_for_each_item(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1"};
    gpst_warp_desc warp_desc = GPST_ZERO;
    lists self;
    warp_desc.map = GPST_MAP_ROI;
    warp_desc.list_per_item = true;
    warp_desc.n_rois = N_LIST;
    warp_desc.width = warp_desc.height = 9;
    warp_desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&warp_desc, &self.warp), GPST_OK);
    for (int b = 0; b < 3; b++) {
        kit* const owner = self.owner = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stage_desc stages[2];
        gpst_stage_host(&stages[0], 0, GPST_SET(1), make_list, NULL);
        gpst_stage_list(&stages[1], 0, 1, 2, self.warp);
        desc.stages = stages;
        desc.n_stages = 2;
        desc.source = lists_source;
        desc.sink = lists_sink;
        desc.sink_user_data = &self;
        assert_int_equal(gpst_pipeline_create(owner->context, &desc, &owner->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(owner->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
        owner->pipeline = NULL;
        kit_close(owner);
    }
    gpst_warp_destroy(self.warp);
}

/* A list for every item, and a picture to cut from for every other one. */
static gpst_result make_some(void* user_data, gpst_task* task) {
    const gpst_image shape = gray(SIDE, SIDE, NULL);
    gpst_image image;
    GPSTI_TRY(make_list(user_data, task));
    return task->item->index % 2 == 0 ? GPST_OK : gpst_task_set_picture(task, 2, 0, &shape, &image);
}

static gpst_result some_sink(void* user_data, const gpst_item* item) {
    gpst_roi rois[N_LIST];
    kit_check((kit*)user_data, item->result == GPST_OK);
    kit_check((kit*)user_data, item->sets[3].n == (item->index % 2 == 0 ? 0 : list_of(item->index, rois)));
    return GPST_OK;
}

/* Picture 1 of two; nothing can be computed from the other one. */
static gpst_result make_second(void* user_data, gpst_task* task) {
    const gpst_image shape = gray(SIDE, SIDE, NULL);
    gpst_image image;
    (void)user_data;
    return gpst_task_set_picture(task, 1, 1, &shape, &image);
}

static gpst_result second_sink(void* user_data, const gpst_item* item) {
    kit_check((kit*)user_data, item->result == GPST_ERROR_STATE);
    kit_check((kit*)user_data, strstr(item->reason, "set 1: picture 0 of 2 was never set") != NULL);
    return GPST_OK;
}

static void run_with_gaps(const char* backend, gpst_stage_desc* stages, gpst_pipeline_desc* desc, gpst_sink_func sink) {
    kit* const owner = kit_open(backend, 2);
    desc->stages = stages;
    desc->n_stages = 2;
    desc->source = lists_source;
    desc->sink = sink;
    desc->sink_user_data = owner;
    assert_int_equal(gpst_pipeline_create(owner->context, desc, &owner->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(owner->pipeline), sink == some_sink ? GPST_OK : GPST_ERROR_STATE);
    assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
    owner->pipeline = NULL;
    kit_close(owner);
}

static void test_pictures_that_are_missing(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1"};
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_mask_desc mask = GPST_ZERO;
    gpst_warp* warp = NULL;
    warp_desc.map = GPST_MAP_ROI;
    warp_desc.list_per_item = true;
    warp_desc.n_rois = N_LIST;
    warp_desc.width = warp_desc.height = 9;
    warp_desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    mask.kind = GPST_MASK_THRESHOLD;
    for (int b = 0; b < 3; b++) {
        gpst_pipeline_desc some = GPST_ZERO, second = GPST_ZERO;
        gpst_stage_desc stages[2];
        gpst_stage_host(&stages[0], 0, GPST_SET(1) | GPST_SET(2), make_some, NULL);
        gpst_stage_list(&stages[1], 2, 1, 3, warp);
        run_with_gaps(backends[b], stages, &some, some_sink);
        gpst_stage_host(&stages[0], 0, GPST_SET(1), make_second, NULL);
        gpst_stage_mask(&stages[1], 1, 2, &mask);
        second.capacity[1] = second.capacity[2] = 2;
        run_with_gaps(backends[b], stages, &second, second_sink);
    }
    gpst_warp_destroy(warp);
}

/* An empty set is nowhere: a lost device has not taken it along. */
enum { N_UNSET = 8 };

static gpst_result unset_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[16];
    (void)user_data;
    out->frame = gray(4, 4, pixels);
    return index < N_UNSET ? GPST_OK : GPST_END;
}

static gpst_result make_every_second(void* user_data, gpst_task* task) {
    const gpst_image shape = gray(4, 4, NULL);
    gpst_image image;
    (void)user_data;
    return task->item->index % 2 ? gpst_task_set_picture(task, 1, 0, &shape, &image) : GPST_OK;
}

static gpst_result fill_one(const void* args) {
    memset(*(void* const*)args, 7, 16);
    return GPST_OK;
}

static gpst_result make_one_of_nothing(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"fill", fill_one, NULL};
    const gpst_image shape = gray(4, 4, NULL);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, &shape, &image));
    return gpst_task_enqueue(task, &kernel, &image.data, sizeof image.data);
}

static gpst_result unset_sink(void* user_data, const gpst_item* item) {
    kit* const self = (kit*)user_data;
    kit_check(self, item->result == GPST_OK && item->sets[1].n == item->index % 2);
    return GPST_OK;
}

static void test_an_empty_set_is_never_lost(void** state) {
    (void)state;
    bool on_gpu = false;
    kit_count_faults();
    for (int k = 1; k < 30; k++) {
        char backend[32];
        snprintf(backend, sizeof backend, "sim:lose_at=%d", 1 + k % 8);
        kit* const self = kit_open(backend, 2);
        on_gpu = kit_is_on_gpu(self);
        gpst_stage_desc stages[2];
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stage_host(&stages[0], 0, GPST_SET(1), make_every_second, NULL);
        gpst_stage_device(&stages[1], GPST_SET(1), GPST_SET(2), make_one_of_nothing, NULL);
        desc.stages = stages;
        desc.n_stages = 2;
        desc.source = unset_source;
        desc.sink = unset_sink;
        desc.sink_user_data = self;
        desc.mode = GPST_RUN_ENGINE;
        desc.n_slots = 4;
        desc.capacity[1] = 2; /* else there must be one */
        desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
        desc.n_results = 1;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_close(self);
    }
    const uint32_t n_fired = kit_counted_faults();
    assert_true(on_gpu || n_fired >= 8); /* a device that has nothing to copy makes few calls, or none */
}

/* ---- what a stage may and may not say -------------------------------------------------------------------------------- */

/* A set is one stage's: neither the next one nor the frame's reader can have its memory. */
static gpst_result write_again(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image shape = kit_shape(4, 4);
    gpst_image image;
    const void* const before = task->item->sets[1].pictures[0].data;
    kit_check(self, gpst_task_set_picture(task, 1, 0, &shape, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "the stage \"make\" has written it") != NULL);
    kit_check(self, task->item->sets[1].pictures[0].data == before);
    kit_check(self, gpst_task_set_picture(task, 0, 0, &shape, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "the input's own frame") != NULL);
    kit_check(self, task->item->sets[2].n == 0 && task->item->sets[2].pictures != NULL);
    return GPST_OK;
}

static void test_no_set_is_written_twice(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 5, kit_make_pictures);
    self->stages[0].name = "make";
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, write_again, "again");
    desc.n_stages = 2;
    desc.capacity[2] = 1;
    desc.source = lists_source;
    self->n_items = 12;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
}

static gpst_result set_frame(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(4, 4);
    gpst_image image;
    (void)user_data;
    return gpst_task_set_picture(task, 0, 0, &shape, &image);
}

/* Of stages that name nothing, the one that sets a picture is its set's writer. */
static void test_silent_stages_share_nothing(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 5, kit_nothing);
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, set_frame, "decode");
    desc.n_stages = 2;
    desc.source = kit_source_empty;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
}

static gpst_result skip_every_third(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->index % 3 == 0 ? GPST_SKIPPED : GPST_OK;
}

static gpst_result skip_some(void* user_data, uint64_t index, gpst_input* out) {
    const gpst_result result = kit_source(user_data, index, out);
    return result != GPST_OK ? result
           : index % 10 == 1 ? GPST_SKIPPED
           : index % 10 == 2 ? gpst_task_fail(NULL, GPST_ERROR_ACCESS, "camera %u is locked", (unsigned)index)
                             : GPST_OK;
}

typedef struct skips {
    kit* owner;
    uint64_t n_skipped, n_locked;
} skips;

static gpst_result skips_sink(void* user_data, const gpst_item* item) {
    skips* const self = (skips*)user_data;
    const bool by_source = item->index % 10 == 1 && item->result == GPST_SKIPPED;
    self->n_skipped += item->result == GPST_SKIPPED;
    if (item->result == GPST_SKIPPED)
        kit_check(self->owner, strcmp(item->stage, by_source ? "source" : "sieve") == 0);
    if (item->index % 10 == 2 && item->result == GPST_ERROR_ACCESS) {
        self->n_locked++;
        kit_check(self->owner, strstr(item->reason, "is locked") != NULL);
    }
    return GPST_OK;
}

/* A skipped item is none that failed: no stage is called any more, no file stays, the run is fine, and it is counted. */
static void test_items_are_skipped(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_standard(self, 30);
        gpst_stats stats;
        skips seen = {self, 0, 0};
        self->stages[5] = self->stages[4];
        self->stages[4] = kit_stage(self, GPST_STAGE_HOST, skip_every_third, "sieve");
        self->stages[4].reads = GPST_SET(1);
        desc.n_stages = 6;
        desc.mode = modes[m];
        desc.source = skip_some;
        desc.sink = skips_sink;
        desc.sink_user_data = &seen;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_PARTIAL); /* three are locked */
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        assert_int_equal(seen.n_locked, 3);
        assert_int_equal(seen.n_skipped, 3 + 10 - 2); /* by the source 1, 11, 21; 21 and 12 are threes */
        assert_int_equal(stats.items_skipped, seen.n_skipped);
        assert_int_equal(stats.items_failed, 3);
        assert_int_equal(stats.items_ok, 30 - 3 - seen.n_skipped);
        assert_int_equal(kit_count_files(self, "out_"), (int)(stats.items_ok * self->n_outputs));
        kit_close(self);
    }
}

static gpst_result see_empty_file(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(1, 1);
    gpst_image image;
    kit_check((kit*)user_data, task->item->file_data != NULL && task->item->file_bytes == 0);
    kit_check((kit*)user_data, gpst_task_map_picture(task, 0, 0, &shape, 0, &image) == GPST_ERROR_TRUNCATED);
    return GPST_OK;
}

static gpst_result empty_source(void* user_data, uint64_t index, gpst_input* out) {
    out->path = ((kit*)user_data)->path;
    return index < 3 ? GPST_OK : GPST_END;
}

static void test_an_empty_file_is_not_none(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 3, see_empty_file);
    snprintf(self->path, sizeof self->path, "%s/empty", self->dir);
    fclose(fopen(self->path, "wb"));
    self->stages[1] = self->stages[0];
    self->stages[0] = kit_stage(self, GPST_STAGE_READ, NULL, NULL);
    desc.n_stages = 2;
    desc.source = empty_source;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_pipelines),
        cmocka_unit_test(test_random_pipelines_in_trouble),
        cmocka_unit_test(test_random_pipelines_cancelled),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_mask_rules),
        cmocka_unit_test(test_a_list_of_rois_for_each_item),
        cmocka_unit_test(test_pictures_that_are_missing),
        cmocka_unit_test(test_an_empty_set_is_never_lost),
        cmocka_unit_test(test_no_set_is_written_twice),
        cmocka_unit_test(test_silent_stages_share_nothing),
        cmocka_unit_test(test_items_are_skipped),
        cmocka_unit_test(test_an_empty_file_is_not_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
