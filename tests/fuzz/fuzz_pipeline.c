/* tests/fuzz/fuzz_pipeline.c -- random pipelines, one or two of a context, against a model of their stages: every item
   is heard of exactly once, with the bits that direct calls give or with a reason that was drawn; every lent frame
   comes back once; held results do not change.
   pipeline_plan.h draws, pipeline_model.h computes, seeds.h has the options.

   cc tests/fuzz/fuzz_pipeline.c gpustage.c -pthread -lm -ldl
   clang -fsanitize=fuzzer,address,undefined -DFUZZ_NO_MAIN tests/fuzz/fuzz_pipeline.c gpustage.c -ldl
*/
#include "pipeline_model.h"

#include <pthread.h>
#include <sys/stat.h>

static fuzz_world the_world; /* its addresses are the pipelines' */

/* ---- what comes of an item --------------------------------------------------------------------------------------- */

static void read_picture(const plan* owner, const gpst_set* set, const gpst_image* picture, uint8_t* out) {
    const size_t bytes = bytes_of(picture);
    gpst_stream* stream = NULL;
    if (!set->on_device) {
        memcpy(out, picture->data, bytes);
        return;
    }
    REQUIRE(gpst_stream_create(gpst_context_device(owner->world->context), &stream) == GPST_OK);
    REQUIRE(gpst_copy(out, picture->data, bytes, stream) == GPST_OK);
    REQUIRE(gpst_stream_synchronize(stream) == GPST_OK);
    gpst_stream_destroy(stream);
}

static void check_set(const item_plan* item, const gpst_item* got, uint32_t k) {
    const plan* const owner = item->owner;
    const gpst_set* const set = &got->sets[k];
    const uint32_t n = item->wanted.n[k];
    const bool may_have_more = owner->sets[k].is_counted && set->on_device; /* all, not those that count */
    uint8_t bytes[MOST_BYTES];
    REQUIRE_OF(set->n == n || (may_have_more && set->n > n), "item %u: set %u has %u pictures, not %u", item->number, k,
               set->n, n);
    REQUIRE(!set->on_device || set->n == 0 || owner->is_result[k] != 1 + GPST_ON_HOST);
    for (uint32_t i = 0; i < n; i++) {
        const gpst_image* const picture = &set->pictures[i];
        const picture_sum* const wanted = &item->wanted.sums[k][i];
        REQUIRE_OF(picture->width == wanted->width && picture->height == wanted->height && picture->data,
                   "item %u, set %u, picture %u: %ux%u, not %ux%u", item->number, k, i, picture->width, picture->height,
                   wanted->width, wanted->height);
        if (set->on_device && owner->world->has_faults)
            continue; /* the device may be lost since */
        read_picture(owner, set, picture, bytes);
        REQUIRE_OF(hash_of(bytes, bytes_of(picture)) == wanted->hash, "item %u, set %u, picture %u: other bytes",
                   item->number, k, i);
    }
}

static void check_pictures(const item_plan* item, const gpst_item* got) {
    for (uint32_t k = 0; k < got->n_sets; k++) {
        if (k < MOST_SETS && item->owner->is_result[k])
            check_set(item, got, k);
        else
            REQUIRE_OF(got->sets[k].n == 0, "item %u: set %u is no result", item->number, k);
    }
}

static bool is_memory(gpst_result result) {
    return result == GPST_ERROR_BUDGET || result == GPST_ERROR_MEMORY || result == GPST_ERROR_DEVICE_MEMORY;
}

/* Results that the stages themselves do not explain. */
static bool may_end_so(const item_plan* item, const gpst_item* got) {
    const plan* const owner = item->owner;
    const fuzz_world* const world = owner->world;
    if (got->result == GPST_ERROR_CANCELLED)
        return owner->ending != ALL;
    if (got->result == GPST_ERROR_BUDGET && item->may_run_short)
        return true;
    if (is_memory(got->result))
        return world->is_host_short || world->is_device_short;
    const bool is_lost =
        strstr(got->reason, "the stage that made it is not called again") ||
        (owner->input == LENT && strstr(got->reason, "the lent frame that it was made of was given back"));
    return is_lost && (world->is_host_short || world->is_device_short || world->has_faults); /* not made again */
}

static void check_item(const item_plan* item, const gpst_item* got) {
    const outcome* const wanted = &item->wanted;
    const bool fails = GPST_FAILED(got->result), is_ok = got->result == GPST_OK;
    bool is_right = is_ok == !got->reason[0] && is_ok == !got->stage[0] && got->end_ns >= got->start_ns &&
                    ((!got->user_data && !item->handed_by) || got->camera == item->camera);
    if (!fails || !may_end_so(item, got))
        is_right = is_right && fails == GPST_FAILED(wanted->result) &&
                   (got->result == GPST_SKIPPED) == (wanted->result == GPST_SKIPPED) &&
                   (is_ok || strcmp(got->stage, wanted->stage) == 0);
    REQUIRE_OF(is_right, "item %u: %s at \"%s\": %s, not %s at \"%s\"", item->number, gpst_result_name(got->result),
               got->stage, got->reason, gpst_result_name(wanted->result), wanted->stage ? wanted->stage : "");
    if (is_ok)
        check_pictures(item, got);
}

static void end_now(plan* self) {
    if (self->ending == CANCELLED) {
        gpst_pipeline_cancel(self->pipeline);
        atomic_store(&self->is_cancelled, true);
    }
    if (self->ending == STOPPED)
        gpst_pipeline_stop(self->pipeline);
    if (self->ending == DESTROYED)
        atomic_store(&self->is_over, true);
}

static item_plan* hear(plan* self, const gpst_item* got) {
    item_plan* const item = item_of(self, got);
    REQUIRE_OF(atomic_fetch_add(&item->n_heard, 1) == 0, "item %u: %s, after %s", item->number,
               gpst_result_name(got->result), gpst_result_name(item->heard));
    item->heard = got->result;
    snprintf(item->reason, sizeof item->reason, "%s", got->reason);
    if (atomic_fetch_add(&self->n_heard, 1) + 1 == self->end_after)
        end_now(self);
    return item;
}

/* Of a sink and of next_result. */
static item_plan* hear_result(plan* self, const gpst_item* got) {
    item_plan* const item = hear(self, got);
    REQUIRE(got->result != GPST_DROPPED);
    uint32_t* const next = &self->next_number[got->camera]; /* 0 of what failed in the source */
    REQUIRE_OF(self->desc.as_ready || *next <= item->number, "item %u after %u", item->number, *next);
    *next = item->number + 1;
    check_item(item, got);
    return item;
}

/* With n_held it keeps as many, and releases the one that it has had longest; destroy gives the others back. Where
   memory is short nobody else could release any. */
static gpst_result run_sink(void* user_data, const gpst_item* got) {
    plan* const self = (plan*)user_data;
    const bool keeps = self->n_held > 0 && !self->world->is_host_short && !self->world->is_device_short;
    REQUIRE(atomic_fetch_add(&self->n_in_sink, 1) == 0);
    hear_result(self, got);
    if (keeps && self->n_kept == self->n_held) {
        const gpst_item* const oldest = self->kept[0];
        if (oldest->result == GPST_OK)
            check_pictures(item_of(self, oldest), oldest);
        memmove(self->kept, self->kept + 1, --self->n_kept * sizeof *self->kept);
        gpst_pipeline_release(self->pipeline, oldest);
    }
    if (keeps)
        self->kept[self->n_kept++] = got;
    atomic_fetch_sub(&self->n_in_sink, 1);
    return keeps ? GPST_KEPT : GPST_OK;
}

static void on_dropped(void* user_data, const gpst_item* got) {
    plan* const self = (plan*)user_data;
    REQUIRE(got->result == GPST_DROPPED && self->may_drop);
    REQUIRE(got->reason[0] != '\0');
    REQUIRE(!hear(self, got)->handed_by);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* Who reads it now reads what is wrong. */
static void give_back(void* user_data) {
    item_plan* const item = (item_plan*)user_data;
    REQUIRE_OF(atomic_fetch_add(&item->n_released, 1) == 0, "item %u", item->number);
    if (item->owner->input == LENT)
        memset(item->pixels, 0xEE, sizeof item->pixels);
}

static void fill_input(item_plan* item, gpst_input* out) {
    plan* const self = item->owner;
    out->user_data = item;
    out->camera = item->camera;
    out->priority = item->priority;
    out->timestamp_ns = gpst_now_ns();
    out->path = self->input == FILES ? item->path : NULL;
    if (self->input == FILES || self->input == NONE)
        return;
    out->frame = item->frame;
    out->frame.data = item->pixels;
    if (self->input == COPIED) /* over the last one's */
        out->frame.data = memcpy(self->scratch, item->pixels, MOST_BYTES);
    if (self->input == ON_DEVICE)
        out->frame.data = gpst_memory_data(item->memory), out->frame_on_device = true;
    out->release = self->input == COPIED ? NULL : give_back;
    out->release_user_data = item;
}

static gpst_result run_source(void* user_data, uint64_t index, gpst_input* out) {
    plan* const self = (plan*)user_data;
    REQUIRE(atomic_fetch_add(&self->n_in_source, 1) == 0);
    REQUIRE(index == self->next || (index == self->next + 1 && self->items[self->next].may_run_short));
    self->next = (uint32_t)index;
    item_plan* const item = index < self->n_items ? &self->items[index] : NULL;
    const bool in_flight = index > atomic_load(&self->n_heard) && self->way == PULLED;
    gpst_result result = item ? GPST_OK : GPST_END;
    if (item && in_flight && self->would_block_every > 0 && index % self->would_block_every == 0 &&
        !item->may_run_short) {
        item->may_run_short = true; /* if the others have ended by now */
        result = GPST_ERROR_WOULD_BLOCK;
    } else if (item && item->fails_early && self->input != FILES) {
        result = gpst_task_fail(NULL, GPST_ERROR_FORMAT, "line %u is bad", (unsigned)index);
    } else if (item) {
        fill_input(item, out);
        item->is_accepted = true;
    }
    self->next += result != GPST_ERROR_WOULD_BLOCK && item;
    atomic_fetch_sub(&self->n_in_source, 1);
    return result;
}

/* A file of the pixels, which then are what a decoder makes of it. */
static void make_file(item_plan* item) {
    static uint8_t file[2 * MOST_BYTES];
    const plan* const self = item->owner;
    gpst_image image = item->frame;
    image.data = item->pixels;
    size_t bytes = model_encode(self->file_kind, &image, file);
    if (self->file_kind == GPST_FILE_JPEG)
        REQUIRE(gpst_jpeg_decode(model_jpeg, file, bytes, NULL, &image, NULL) == GPST_OK);
    snprintf(item->path, sizeof item->path, "%s/in_%05u", self->folder, item->number);
    if (item->fails_early && item->number % 2 == 0)
        return;
    FILE* const out = fopen(item->path, "wb");
    REQUIRE(out != NULL);
    bytes = item->fails_early ? bytes / 2 : bytes;
    REQUIRE(fwrite(file, 1, bytes, out) == bytes && fclose(out) == 0);
}

static void make_frame_on_device(item_plan* item) {
    gpst_device* const device = gpst_context_device(item->owner->world->context);
    gpst_stream* stream = NULL;
    REQUIRE(gpst_memory_create(device, GPST_MEMORY_DEVICE, bytes_of(&item->frame), &item->memory) == GPST_OK);
    REQUIRE(gpst_stream_create(device, &stream) == GPST_OK);
    REQUIRE(gpst_copy(gpst_memory_data(item->memory), item->pixels, bytes_of(&item->frame), stream) == GPST_OK);
    REQUIRE(gpst_stream_synchronize(stream) == GPST_OK);
    gpst_stream_destroy(stream);
}

static void make_items(plan* self) {
    const bool pulls = self->way == PULLED || self->way == PULLED_ALONE;
    for (uint32_t n = self->n_items; n < self->n_all; n++)
        self->items[n].fails_early = false;
    for (uint32_t n = 0; n < self->n_items; n++) {
        item_plan* const item = &self->items[n];
        item->fails_early = item->fails_early && (pulls || self->input == FILES);
        item->frame = frame_shape(self, n);
        fill_frame(n, item->pixels);
        if (self->input == FILES)
            make_file(item);
        if (self->input == ON_DEVICE)
            make_frame_on_device(item);
        model_run(item, &item->wanted);
    }
    for (uint32_t n = self->n_items; n < self->n_all; n++)
        if (self->items[n].handed_by)
            model_run(&self->items[n], &self->items[n].wanted);
}

/* ---- who takes results, and who hands in ------------------------------------------------------------------------- */

typedef struct result_taker {
    plan* owner;
    draw from;
    uint32_t n, n_given;
    const gpst_item* held[MOST_ITEMS];
} result_taker;

static void give_result(result_taker* self, uint32_t i) {
    plan* const owner = self->owner;
    const gpst_item* const got = self->held[i];
    self->held[i] = self->held[--self->n];
    if (got->result == GPST_OK)
        check_pictures(item_of(owner, got), got);
    if (owner->stream && self->n_given++ % owner->stream_every == 0)
        REQUIRE(gpst_pipeline_release_after(owner->pipeline, got, owner->stream) == GPST_OK ||
                owner->world->has_faults);
    else
        gpst_pipeline_release(owner->pipeline, got);
}

/* False at the end. */
static bool take(result_taker* self, int64_t timeout_ns) {
    plan* const owner = self->owner;
    const gpst_item* got = NULL;
    const gpst_result result = gpst_pipeline_next_result(owner->pipeline, timeout_ns, &got);
    REQUIRE_OF(result == GPST_OK || result == GPST_END || result == GPST_ERROR_WOULD_BLOCK ||
                   result == GPST_ERROR_TIMEOUT || (result == GPST_ERROR_BUDGET && owner->n_held > 0),
               "%s: %s", gpst_result_name(result), gpst_last_reason());
    REQUIRE((result == GPST_OK) == (got != NULL));
    if (got) {
        hear_result(owner, got);
        atomic_fetch_add(&owner->n_taken, 1);
        self->held[self->n++] = got;
    }
    while (self->n > owner->n_held || (!got && self->n > 0)) {
        give_result(self, pick(&self->from, self->n));
        if (!got)
            break; /* others wait for memory: one by one */
    }
    return result != GPST_END || self->n > 0;
}

static bool is_over(plan* self) { return atomic_load(&self->is_over); }

static void* take_all(void* argument) {
    result_taker* const self = (result_taker*)argument;
    while (!is_over(self->owner) && take(self, (int64_t)pick(&self->from, 3) * 1000000))
        continue;
    return NULL;
}

/* The next input. False when there is no more. */
static bool hand_in(plan* self, draw* from) {
    static const int64_t times[4] = {0, 20000, 1000000, GPST_FOREVER};
    const struct timespec moment = {0, 20000};
    if (self->next >= self->n_items || is_over(self))
        return false;
    item_plan* const item = &self->items[self->next];
    gpst_input input = GPST_ZERO;
    uint64_t index = 0;
    fill_input(item, &input);
    /* Who takes results waits for them only once it is known to take them. */
    const bool may_wait = self->submits_forever && (self->way != ONE_THREAD || atomic_load(&self->n_taken) > 0);
    const gpst_result result = gpst_pipeline_submit(self->pipeline, &input, times[pick(from, may_wait ? 4 : 3)], &index);
    if (result == GPST_ERROR_WOULD_BLOCK || result == GPST_ERROR_TIMEOUT) {
        REQUIRE(self->desc.full_policy == GPST_FULL_BLOCK);
        (void)nanosleep(&moment, NULL);
        return true;
    }
    if (result == GPST_ERROR_CLOSED) {
        REQUIRE(self->ending != ALL);
        return false;
    }
    item->is_accepted = result == GPST_OK || result == GPST_DROPPED;
    REQUIRE(result != GPST_OK || index == self->n_submitted);
    REQUIRE(result != GPST_DROPPED || (self->may_drop && item->n_heard == 1 && item->heard == GPST_DROPPED));
    REQUIRE_OF(item->is_accepted || (is_memory(result) && self->world->is_host_short), "submit: %s: %s",
               gpst_result_name(result), gpst_last_reason());
    self->n_submitted += result == GPST_OK;
    self->next++;
    return true;
}

static void* hand_in_all(void* argument) {
    plan* const self = (plan*)argument;
    while (hand_in(self, &self->from))
        continue;
    if (!is_over(self))
        gpst_pipeline_close(self->pipeline);
    return NULL;
}

/* ---- a pipeline from begin to end -------------------------------------------------------------------------------- */

/* What a run returned, by what became of its items: where all failed, the result of one of them. */
static bool is_outcome(const plan* self, gpst_result result) {
    gpst_stats stats;
    gpst_pipeline_query_stats(self->pipeline, &stats);
    if (result == GPST_ERROR_CANCELLED || stats.items_cancelled > 0)
        return result == GPST_ERROR_CANCELLED && self->ending != ALL;
    if (stats.items_failed == 0 || stats.items_ok + stats.items_skipped > 0)
        return result == (stats.items_failed > 0 ? GPST_PARTIAL : GPST_OK);
    bool is_of_an_item = !self->desc.sink;
    for (uint32_t n = 0; n < self->n_all; n++)
        is_of_an_item |= self->items[n].n_heard && self->items[n].heard == result;
    return GPST_FAILED(result) && is_of_an_item;
}

static void run_pulled(plan* self) {
    if (self->ending == DESTROYED && self->end_after < 5)
        return; /* it never runs */
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    REQUIRE_OF(is_outcome(self, result), "%s: %s", gpst_result_name(result), gpst_last_reason());
}

static void run_pushed(plan* self) {
    result_taker taker = GPST_ZERO;
    pthread_t thread;
    taker.owner = self;
    taker.from = fork_draw(&self->from);
    if (self->way == PUSHED_TO_SINK) {
        hand_in_all(self);
        if (!is_over(self))
            REQUIRE(gpst_pipeline_drain(self->pipeline, GPST_FOREVER) == GPST_OK);
    } else if (self->way == TWO_THREADS) {
        REQUIRE(pthread_create(&thread, NULL, hand_in_all, self) == 0);
        take_all(&taker);
        REQUIRE(pthread_join(thread, NULL) == 0);
    } else {
        while (hand_in(self, &self->from))
            (void)take(&taker, (int64_t)pick(&taker.from, 2) * 10000);
        if (!is_over(self))
            gpst_pipeline_close(self->pipeline);
        take_all(&taker);
    }
}

static void check_files(const plan* self, const item_plan* item) {
    static _Thread_local uint8_t file[2 * MOST_BYTES];
    for (uint32_t i = 0; i < MOST_PICTURES; i++) {
        char path[120];
        const bool is_wanted = item->heard == GPST_OK && i < item->wanted.n[self->encoded];
        path_of_output(self, item->number, i, path, sizeof path);
        FILE* const in = fopen(path, "rb");
        REQUIRE_OF((in != NULL) == is_wanted, "%s %s", path, in ? "is there" : "is missing");
        if (!in)
            continue;
        REQUIRE_OF(hash_of(file, fread(file, 1, sizeof file, in)) == item->wanted.files[i], "%s: other bytes", path);
        fclose(in);
    }
}

/* Of a camera that had an input every end was asked until it had no more; what it handed out has the indices behind the
   inputs'. */
static void check_ends(const plan* self, bool is_told) {
    const uint64_t first = self->first_end, n_inputs = self->desc.source ? self->next : self->n_submitted;
    const bool is_whole = is_told && (self->ending == ALL || self->ending == STOPPED);
    REQUIRE_OF(first == UINT64_MAX || first == n_inputs ||
                   (self->desc.source && first == n_inputs + 1 && self->items[n_inputs].may_run_short),
               "%llu behind %llu", (unsigned long long)first, (unsigned long long)n_inputs);
    for (uint32_t s = 0; s < self->n_stages; s++) {
        const stage_plan* const stage = &self->stages[s];
        for (uint32_t c = 0; stage->first_handed > 0 && c < self->n_cameras; c++) {
            bool may = self->desc.source && c == 0, must = false; /* what failed in the source is of camera 0 */
            for (uint32_t n = c; n < self->n_items; n += self->n_cameras) {
                may = may || self->items[n].is_accepted;
                must = must || (is_whole && self->items[n].n_heard > 0 && self->items[n].heard == GPST_OK);
            }
            REQUIRE_OF(may || stage->n_asked[c] == 0, "%s: camera %u has no items", stage->name, c);
            REQUIRE_OF(!must || stage->is_through[c], "%s: camera %u was asked %u times", stage->name, c,
                       stage->n_asked[c]);
        }
    }
}

static void check_all(const plan* self, const gpst_stats* stats) {
    uint64_t n_ok = 0, n_failed = 0, n_skipped = 0, n_cancelled = 0;
    const bool is_told = self->desc.sink || (!self->desc.source && self->ending != DESTROYED);
    check_ends(self, is_told);
    for (uint32_t n = 0; n < self->n_all; n++) {
        const item_plan* const item = &self->items[n];
        const bool is_lent = n < self->n_items && (self->input == LENT || self->input == ON_DEVICE);
        REQUIRE_OF(!is_told || !item->is_accepted || item->n_heard == 1, "item %u: nothing was heard", n);
        REQUIRE_OF((self->desc.source && n < self->n_items) || item->is_accepted || item->n_heard == 0,
                   "item %u: was never taken", n);
        REQUIRE_OF(item->n_released == (is_lent && item->is_accepted), "item %u: released %u times", n,
                   item->n_released);
        n_ok += item->n_heard && item->heard == GPST_OK;
        n_skipped += item->n_heard && item->heard == GPST_SKIPPED;
        n_cancelled += item->heard == GPST_ERROR_CANCELLED;
        n_failed += GPST_FAILED(item->heard) && item->heard != GPST_ERROR_CANCELLED;
        if (self->writes && is_told && item->n_heard)
            check_files(self, item);
    }
    if (is_told && self->ending != DESTROYED)
        REQUIRE_OF(stats->items_ok == n_ok && stats->items_failed == n_failed && stats->items_skipped == n_skipped &&
                       stats->items_cancelled == n_cancelled,
                   "stats: %llu ok %llu failed %llu skipped %llu cancelled; heard: %llu %llu %llu %llu",
                   (unsigned long long)stats->items_ok, (unsigned long long)stats->items_failed,
                   (unsigned long long)stats->items_skipped, (unsigned long long)stats->items_cancelled,
                   (unsigned long long)n_ok, (unsigned long long)n_failed, (unsigned long long)n_skipped,
                   (unsigned long long)n_cancelled);
}

/* False: refused, as it may be. */
static bool create(plan* self) {
    gpst_stage_desc stages[GPST_MAX_STAGES];
    gpst_pipeline_desc desc = self->desc;
    const bool pulls = self->way == PULLED || self->way == PULLED_ALONE;
    desc.stages = stages;
    desc.n_stages = describe_stages(self, stages);
    desc.source = pulls ? run_source : NULL;
    desc.sink = self->way == PULLED || self->way == PUSHED_TO_SINK ? run_sink : NULL;
    desc.dropped = on_dropped;
    desc.source_user_data = desc.sink_user_data = desc.dropped_user_data = self;
    self->desc = desc;
    const gpst_result result = gpst_pipeline_create(self->world->context, &desc, &self->pipeline);
    self->desc.stages = NULL;
    if (result == GPST_OK)
        return true;
    REQUIRE_OF(result == GPST_ERROR_ARGUMENT || self->world->has_faults ||
                   (is_memory(result) && self->world->is_device_short),
               "create: %s: %s", gpst_result_name(result), gpst_last_reason());
    seeds.n_refused++;
    snprintf(seeds.refusal, sizeof seeds.refusal, "%s", gpst_last_reason());
    return false;
}

static void* run_plan(void* argument) {
    plan* const self = (plan*)argument;
    gpst_stats stats;
    if (!self->pipeline)
        return NULL;
    if (self->end_after == 0)
        end_now(self);
    if (self->desc.source)
        run_pulled(self);
    else
        run_pushed(self);
    gpst_pipeline_query_stats(self->pipeline, &stats);
    REQUIRE(gpst_pipeline_destroy(self->pipeline) == GPST_OK);
    check_all(self, &stats);
    return NULL;
}

static void make_plan(plan* self) {
    const char* const base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    for (uint32_t s = 0; s < self->n_stages; s++)
        for (uint32_t c = 0; c < MOST_CAMERAS; c++)
            atomic_store(&self->stages[s].last[c], -1);
    if (self->input == FILES || self->writes) {
        snprintf(self->folder, sizeof self->folder, "%s/gpst_fuzz_XXXXXX", base);
        REQUIRE(mkdtemp(self->folder) != NULL);
    }
    if (!create(self))
        return;
    make_items(self);
    if (self->stream_every > 0 && gpst_stream_create(gpst_context_device(self->world->context), &self->stream))
        REQUIRE(self->world->has_faults);
}

static void unmake_plan(plan* self) {
    char path[120];
    gpst_stream_destroy(self->stream);
    for (uint32_t s = 0; s < self->n_stages; s++)
        gpst_warp_destroy(self->stages[s].warp);
    for (uint32_t n = 0; n < self->n_all; n++) {
        gpst_memory_destroy(self->items[n].memory);
        (void)(self->items[n].path[0] && remove(self->items[n].path));
        for (uint32_t i = 0; self->writes && i < MOST_PICTURES; i++) {
            path_of_output(self, n, i, path, sizeof path);
            (void)remove(path);
        }
    }
    REQUIRE_OF(!self->folder[0] || rmdir(self->folder) == 0, "%s has other files", self->folder);
}

/* ---- what fits alone --------------------------------------------------------------------------------------------- */

static gpst_result run_source_alone(void* user_data, uint64_t index, gpst_input* out) {
    if (index == 0)
        fill_input((item_plan*)user_data, out);
    return index == 0 ? GPST_OK : GPST_END;
}

static gpst_result run_sink_alone(void* user_data, const gpst_item* got) {
    ((item_plan*)user_data)->alone = got->result;
    return GPST_OK;
}

/* The item once more, in a context and a pipeline of its own. */
static bool fits_alone(item_plan* item) {
    plan* const self = item->owner;
    gpst_stage_desc stages[GPST_MAX_STAGES];
    gpst_pipeline_desc desc = self->desc;
    gpst_context* context = NULL;
    gpst_pipeline* pipeline = NULL;
    const uint32_t n_stages = describe_stages(self, stages);
    for (uint32_t s = 0; s < n_stages; s++)
        stages[s].end = NULL;
    for (uint32_t s = 0; s < self->n_stages; s++)
        atomic_store(&self->stages[s].last[item->camera], -1);
    desc.stages = stages;
    desc.source = run_source_alone, desc.sink = run_sink_alone;
    desc.source_user_data = desc.sink_user_data = item;
    desc.mode = desc.mode == GPST_RUN_DEFAULT ? GPST_RUN_ENGINE : desc.mode;
    desc.full_policy = GPST_FULL_BLOCK, desc.deadline_ns = 0;
    if (self->input == LENT)
        fill_frame(item->number, item->pixels);
    item->n_released = 0;
    item->alone = GPST_ERROR_BUDGET;
    REQUIRE(gpst_context_create(&self->world->desc, &context) == GPST_OK);
    if (gpst_pipeline_create(context, &desc, &pipeline) == GPST_OK)
        (void)gpst_pipeline_run(pipeline);
    gpst_pipeline_destroy(pipeline);
    gpst_context_destroy(context);
    return !is_memory(item->alone);
}

/* Not all that they have do items give to others whose frames were copied. Nothing does one that may not begin anew:
   an ordered stage has had it, its lent frame was given back, or an end has made it. */
static bool may_begin_anew(const plan* self) {
    bool may = self->input == FILES || self->input == NONE;
    for (uint32_t s = 0; s < self->n_stages; s++)
        may = may && !self->stages[s].is_ordered && !self->stages[s].is_stateful && self->stages[s].first_handed == 0;
    return may;
}

/* --only budgets: no item lacks memory that it would have alone, where others may begin anew. */
static void check_budgets(plan* self) {
    const fuzz_world* const world = self->world;
    const bool may = may_begin_anew(&world->plans[0]) && (world->n_plans < 2 || may_begin_anew(&world->plans[1]));
    for (uint32_t n = 0; n < self->n_items && may && seeds.only; n++) {
        item_plan* const item = &self->items[n];
        if (item->n_heard == 0 || !is_memory(item->heard) || item->may_run_short)
            continue;
        seeds.n_short++;
        if (!fits_alone(item))
            continue;
        seeds.n_fit_alone++;
        printf("item %u fits alone: %s: %s\nplay it again: %s\n", n, gpst_result_name(item->heard), item->reason,
               fuzz.replay);
    }
}

static void on_log(void* user_data, gpst_log_level level, uint64_t item_index, const char* message, const char* file,
                   int line) {
    const fuzz_world* const self = (const fuzz_world*)user_data;
    (void)item_index, (void)file, (void)line;
    REQUIRE_OF(level > GPST_LOG_ERROR || self->has_faults, "log: %s", message);
}

static void play(draw* from, const char* backend) {
    fuzz_world* const self = &the_world;
    pthread_t other;
    memset(self, 0, sizeof *self);
    if (!model_jpeg)
        (void)gpst_jpeg_create(NULL, &model_jpeg);
    draw_world(self, from, backend, model_jpeg != NULL);
    say_world(self);
    self->desc.logger.func = on_log;
    self->desc.logger.user_data = self;
    const gpst_result result = gpst_context_create(&self->desc, &self->context);
    REQUIRE(result == GPST_OK || self->has_faults);
    for (uint32_t p = 0; p < self->n_plans && self->context; p++)
        make_plan(&self->plans[p]);
    if (self->n_plans == 2 && self->context)
        REQUIRE(pthread_create(&other, NULL, run_plan, &self->plans[1]) == 0);
    if (self->context)
        run_plan(&self->plans[0]);
    if (self->n_plans == 2 && self->context)
        REQUIRE(pthread_join(other, NULL) == 0);
    for (uint32_t p = 0; p < self->n_plans; p++) {
        check_budgets(&self->plans[p]);
        unmake_plan(&self->plans[p]);
    }
    gpst_context_destroy(self->context);
}
