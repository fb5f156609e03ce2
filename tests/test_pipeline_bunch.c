/* tests/test_pipeline_bunch.c -- whole items that are brief: a worker has several of the source in one turn. Each has
   its own strings, pixels and failure, however the source uses its memory again; none is lost. */
#include "pipeline_kit.h"

#include "pipeline_books.h"

/* ---- who was called --------------------------------------------------------------------------------------------- */

typedef struct turns {
    books* books;
    uint64_t n_given;
    uint64_t n_too_late;      /* calls that found the run stopped: one may have begun before */
    uint8_t marks[N_BRIEF];   /* the user's data of each item */
    int64_t called_ns[N_BRIEF];
    uint64_t fail_every;
    char text[2][8192];       /* the source's path and name, */
    size_t text_bytes;
    uint8_t pixels[KIT_BYTES]; /* and picture */
} turns;

static turns the;

static void turns_note_call(turns* self, uint64_t index) {
    const gpst_pipeline* const pipeline = self->books->pipeline;
    self->n_too_late += gpsti_a32_load(&pipeline->cancel) != 0 || gpsti_a32_load(&pipeline->stop) != 0;
    if (index < N_BRIEF)
        self->called_ns[index] = gpsti_now_ns();
}

static gpst_result turns_source(void* user_data, uint64_t index, gpst_input* out) {
    turns* const self = (turns*)user_data;
    turns_note_call(self, index);
    const gpst_result result = books_source(self->books, index, out);
    self->n_given += result != GPST_END;
    if (result != GPST_END && self->fail_every != 0 && index % self->fail_every == 3)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "line %u is bad", (unsigned)index);
    return result;
}

static gpst_result turns_work(void* user_data, gpst_task* task) {
    turns* const self = (turns*)user_data;
    take_bunches(task->pipeline);
    return books_work(self->books, task);
}

static turns* turns_open(kit* owner, gpst_pipeline_desc* desc, gpst_stage_desc* stage) {
    turns* const self = &the;
    memset(self, 0, sizeof *self);
    self->books = books_open(owner, 0, N_BRIEF);
    *desc = books_desc(self->books, stage);
    stage->func = turns_work;
    stage->user_data = self;
    desc->source = turns_source;
    desc->source_user_data = self;
    return self;
}

/* ---- when items are counted ------------------------------------------------------------------------------------- */

enum { N_LIST = 100, N_LAST = 9 }; /* and of it, what is left at the source */

/* One bunch by the calling thread, beside another that has in hand what nobody has counted yet. How many it counted. */
static uint64_t bring_a_bunch(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    const uint64_t n_counted = pipeline->next_index;
    gpsti_scheduler_enter(scheduler);
    gpsti_carry_run(pipeline, scheduler->n_workers);
    gpsti_scheduler_exit(scheduler);
    const uint64_t n = pipeline->next_index - n_counted;
    gpsti_mutex_unlock(&scheduler->mutex);
    return n;
}

/* However many are thought to be left, since nobody has counted them: else all would want the lock when there is no
   other item, one after the other. */
static void test_towards_the_end_few_are_uncounted(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    books* const own = books_open(self, 0, N_LIST);
    gpst_stage_desc stage;
    const gpst_pipeline_desc desc = books_desc(own, &stage);
    gpst_pipeline* pipeline = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    pipeline->whole = true;
    pipeline->n_active = 2;
    pipeline->n_carrying = 1;
    pipeline->source_work_ns = own->work_ns = 1000;
    pipeline->source_index = own->next = N_LIST - N_LAST;
    const uint64_t n = bring_a_bunch(pipeline); /* 9 / (2 * 2); slow calls make turns shorter, and that two of them */
    assert_in_range(n, 2, 4);
    for (uint64_t i = n; i < N_LAST; i++)
        assert_int_equal(bring_a_bunch(pipeline), 1);
    assert_int_equal(bring_a_bunch(pipeline), 0);
    assert_int_equal(pipeline->items_ok, N_LAST);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* ---- who is called ---------------------------------------------------------------------------------------------- */

static int64_t backlog_ns(gpst_pipeline* pipeline, uint32_t executing, int64_t item_ns, uint64_t n_given) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    pipeline->started = true;
    pipeline->executing = executing;
    pipeline->source_work_ns = item_ns;
    pipeline->next_index = n_given;
    const int64_t ns = gpsti_flow_backlog_ns(&pipeline->client);
    pipeline->started = false;
    pipeline->executing = 0;
    gpsti_mutex_unlock(mutex);
    return ns;
}

/* A source that has given many items gives many more, so that another worker is called though each is brief; as many
   as the lock has time for. Who looks at the source already is enough for the next one. */
static void test_brief_items_of_a_long_list_are_worth_a_worker(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 8);
    books* const own = books_open(self, 0, N_LIST);
    gpst_stage_desc stage;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    gpst_pipeline* pipeline = NULL;
    desc.n_items_expected = 0;
    desc.n_slots = 16;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    pipeline->n_active = 8;
    assert_int_equal(backlog_ns(pipeline, 1, 5000, 100), 500000);
    assert_int_equal(backlog_ns(pipeline, 2, 5000, 100), 5000);
    assert_int_equal(backlog_ns(pipeline, 4, 10000, 100), 1000000);
    assert_int_equal(backlog_ns(pipeline, 5, 10000, 100), 10000);
    assert_int_equal(backlog_ns(pipeline, 1, 5000, 1), 5000);
    assert_int_equal(backlog_ns(pipeline, 0, 5000, 100), 5000);
    assert_int_equal(backlog_ns(pipeline, 1, 3900, 100), 3900);
    pipeline->desc.n_items_expected = 50; /* and there are more */
    assert_int_equal(backlog_ns(pipeline, 1, 5000, 100), 5000);
    pipeline->desc.n_items_expected = 200;
    assert_true(backlog_ns(pipeline, 1, 5000, 100) >= 500000);
    assert_int_equal(backlog_ns(pipeline, 8, 100000, 100), 0); /* who returns takes the next */
    pipeline->next_index = 0;
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* ---- inputs of every kind --------------------------------------------------------------------------------------- */

static bool has_path(uint64_t index) { return index % 3 != 0; }
static bool has_name(uint64_t index) { return index % 4 != 0; }
static bool has_frame(uint64_t index) { return index % 9 == 4 || index >= N_BRIEF - N_BRIEF / 4; }

/* As many letters as make it short, or long, or longer than a bunch has room for, and the index; in little time, so
   that a turn is not over by that. Its length. */
static size_t spell(char* out, char what, uint64_t index) {
    const size_t bytes = index % 53 == 7 ? GPSTI_BUNCH_TEXT_BYTES : index % 5 == 3 ? 900 : 5 + (size_t)index % 40;
    memset(out, what, bytes);
    for (size_t i = 1; i < 5; i++, index /= 10)
        out[i] = (char)('0' + index % 10);
    out[bytes] = '\0';
    return bytes;
}

/* What the call before handed out is not there any more. */
static void turns_wipe(turns* self) {
    memset(self->text[0], '?', self->text_bytes);
    memset(self->text[1], '?', self->text_bytes);
    memset(self->pixels, 0xEE, sizeof self->pixels);
}

static gpst_result source_of_every_kind(void* user_data, uint64_t index, gpst_input* out) {
    turns* const self = (turns*)user_data;
    turns_wipe(self);
    const gpst_result result = turns_source(self, index, out);
    if (result == GPST_END)
        return result;
    self->text_bytes = spell(self->text[0], 'p', index);
    (void)spell(self->text[1], 'n', index);
    for (size_t i = 0; i < KIT_BYTES && has_frame(index); i++)
        self->pixels[i] = kit_pixel(index, i);
    out->path = has_path(index) ? self->text[0] : NULL;
    out->name = has_name(index) ? self->text[1] : NULL;
    out->timestamp_ns = (int64_t)index * 1000 + 1;
    out->user_data = &self->marks[index];
    if (has_frame(index)) {
        out->frame = kit_shape(KIT_WIDTH, KIT_HEIGHT);
        out->frame.pitch_bytes = KIT_WIDTH;
        out->frame.data = self->pixels;
    }
    return result;
}

static void check_names(kit* owner, const gpst_item* item) {
    char text[8192], numbered[32];
    (void)spell(text, 'p', item->index);
    kit_check(owner, has_path(item->index) ? item->path && strcmp(item->path, text) == 0 : !item->path);
    snprintf(numbered, sizeof numbered, "item %u", (unsigned)item->index);
    if (has_name(item->index))
        (void)spell(text, 'n', item->index);
    kit_check(owner, strcmp(item->name, has_name(item->index) || has_path(item->index) ? text : numbered) == 0);
}

static gpst_result work_on_every_kind(void* user_data, gpst_task* task) {
    turns* const self = (turns*)user_data;
    kit* const owner = self->books->owner;
    const gpst_item* const item = task->item;
    const uint8_t* const data = (const uint8_t*)item->input.data;
    check_names(owner, item);
    kit_check(owner, item->timestamp_ns == (int64_t)item->index * 1000 + 1);
    kit_check(owner, item->user_data == &self->marks[item->index]);
    kit_check(owner, (data != NULL) == has_frame(item->index));
    for (size_t i = 0; i < KIT_BYTES && data; i++)
        kit_check(owner, data[i] == kit_pixel(item->index, i));
    kit_check(owner, item->start_ns <= self->called_ns[item->index]); /* of its own call */
    kit_check(owner, item->index == 0 || item->start_ns >= self->called_ns[item->index - 1]);
    return turns_work(user_data, task);
}

static void run_every_kind(uint32_t i) {
    kit* const self = kit_open("cpu", 3);
    gpst_pipeline_desc desc;
    gpst_stage_desc stage;
    gpst_stats stats;
    turns* const own = turns_open(self, &desc, &stage);
    desc.source = source_of_every_kind;
    desc.max_item_bytes = i == 0 ? 0 : (uint64_t)1 << 20; /* then the slot's memory goes back before each item */
    stage.func = work_on_every_kind;
    assert_int_equal(books_run(own->books, &desc, &stats), GPST_OK);
    books_check(own->books, N_BRIEF);
    assert_int_equal(stats.items_ok, N_BRIEF);
    kit_close(self);
}

/* The source has one buffer for each kind. Some strings and all pictures are more than a worker keeps beside others. */
static void test_every_item_has_its_own(void** state) {
    (void)state;
    run_cases(run_every_kind, 2);
}

/* ---- failures, and an end before the end ------------------------------------------------------------------------ */

static void run_failing_source(uint32_t i) {
    kit* const self = kit_open("cpu", 2 + i);
    gpst_pipeline_desc desc;
    gpst_stage_desc stage;
    gpst_stats stats;
    turns* const own = turns_open(self, &desc, &stage);
    uint64_t n_failed = 0;
    own->fail_every = 7;
    assert_int_equal(books_run(own->books, &desc, &stats), GPST_PARTIAL);
    for (uint64_t n = 0; n < N_BRIEF; n++) {
        n_failed += n % 7 == 3;
        assert_int_equal(own->books->seen[n], n % 7 == 3 ? 0 : 1);
    }
    assert_int_equal(stats.items_failed, n_failed);
    assert_int_equal(stats.items_ok, N_BRIEF - n_failed);
    assert_int_equal(own->n_given, N_BRIEF);
    kit_close(self);
}

static void test_a_source_that_fails_some(void** state) {
    (void)state;
    run_cases(run_failing_source, 2);
}

enum { CANCEL, STOP, STOP_ON_ERROR, N_ENDS };

static gpst_result work_to_the_end(void* user_data, gpst_task* task) {
    turns* const self = (turns*)user_data;
    const gpst_result result = turns_work(user_data, task);
    return task->item->index == self->books->fail_from ? result : GPST_OK; /* of all from there on that one */
}

static void run_to_an_end(uint32_t i) {
    kit* const self = kit_open("cpu", 3);
    gpst_pipeline_desc desc;
    gpst_stage_desc stage;
    gpst_stats stats;
    turns* const own = turns_open(self, &desc, &stage);
    const uint64_t at = N_BRIEF / 2 + 4 + 63 * i; /* others without a picture follow */
    const uint32_t end = i % N_ENDS;
    stage.func = work_to_the_end;
    desc.source = source_of_every_kind; /* so that workers have several turns for what they take */
    desc.stop_on_error = end == STOP_ON_ERROR;
    own->books->fail_from = end == STOP_ON_ERROR ? at : 0;
    own->books->act_at = end == STOP_ON_ERROR ? 0 : at;
    own->books->act = end == CANCEL ? gpst_pipeline_cancel : gpst_pipeline_stop;
    const gpst_result result = books_run(own->books, &desc, &stats);
    const uint64_t n_works = gpsti_a64_load(&own->books->n_works);
    assert_int_equal(result, end == CANCEL ? GPST_ERROR_CANCELLED : end == STOP ? GPST_OK : GPST_PARTIAL);
    assert_true(own->n_given > at);
    assert_int_equal(stats.items_total, own->n_given);
    assert_int_equal(stats.items_failed, end == STOP_ON_ERROR ? 1 : 0);
    assert_int_equal(stats.items_ok, n_works - stats.items_failed);
    assert_int_equal(stats.items_cancelled, own->n_given - n_works);
    if (was_whole())
        assert_true(own->n_too_late <= 1);
    if (end != CANCEL)
        books_check(own->books, own->n_given);
    printf("  end %u: %u items of which %u were cancelled\n", end, (unsigned)own->n_given,
           (unsigned)stats.items_cancelled);
    kit_close(self);
}

/* Every item that the source gave ends, with the source not called again: those a worker has in hand are in flight. */
static void test_nothing_in_hand_is_lost(void** state) {
    (void)state;
    run_cases(run_to_an_end, 2 * N_ENDS);
}

/* ---- what a bunch keeps ----------------------------------------------------------------------------------------- */

static gpsti_bunch bunch;

static gpsti_given* bunch_next(const char* path, const char* name, const char* reason) {
    gpsti_given* const given = &bunch.given[bunch.n];
    memset(given, 0, sizeof *given);
    given->index = 40 + bunch.n;
    given->input.path = path;
    given->input.name = name;
    given->reason = reason;
    return given;
}

static void test_a_bunch_keeps_what_it_has_room_for(void** state) {
    (void)state;
    static char most[GPSTI_BUNCH_TEXT_BYTES - 8];
    memset(most, 'm', sizeof most - 1);
    gpsti_bunch_empty(&bunch);
    bunch_next("abc", NULL, NULL);
    assert_true(gpsti_bunch_keep(&bunch));
    assert_null(bunch.given[0].input.name);
    assert_null(bunch.given[0].reason);
    bunch_next(NULL, most, "why")->result = GPST_ERROR_FORMAT;
    assert_true(gpsti_bunch_keep(&bunch)); /* to the last byte */
    assert_int_equal(bunch.n, 2);
    bunch_next("", NULL, NULL);
    assert_false(gpsti_bunch_keep(&bunch));
    bunch_next(NULL, NULL, NULL);
    assert_true(gpsti_bunch_keep(&bunch));
    assert_string_equal(bunch.given[0].input.path, "abc");
    assert_string_equal(bunch.given[1].input.name, most);
    assert_string_equal(bunch.given[1].reason, "why");
    gpsti_bunch_empty(&bunch);
    bunch_next("abc", most, NULL);
    assert_true(gpsti_bunch_keep(&bunch));
    gpsti_bunch_empty(&bunch);
    bunch_next("abcdefgh", most, NULL); /* by one byte */
    assert_false(gpsti_bunch_keep(&bunch));
    uint8_t pixel = 7;
    bunch_next("abc", NULL, NULL)->input.frame.data = &pixel;
    assert_false(gpsti_bunch_keep(&bunch));
    assert_int_equal(bunch.n, 0);
}

static gpst_result fail_in_words(void* user_data, uint64_t index, gpst_input* out) {
    out->name = (const char*)user_data;
    return index % 2 ? GPST_ERROR_IO : gpst_task_fail(NULL, GPST_ERROR_FORMAT, "line %u is bad", (unsigned)index);
}

/* Words of the user's, or the result's own: whatever else fails on the thread before a slot has the item. */
static void test_a_failure_keeps_its_words(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    char name[] = "lines.txt";
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.source = fail_in_words;
    desc.source_user_data = name;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    gpsti_slot* const slot = self->pipeline->slots[0];
    gpsti_bunch_empty(&bunch);
    for (uint64_t i = 0; i < 2; i++) {
        bunch.given[i].index = 4 + i;
        gpsti_call_source_for(self->pipeline, &bunch.given[i]);
        assert_true(gpsti_bunch_keep(&bunch));
    }
    memset(name, '?', sizeof name - 1);
    (void)gpst_task_fail(NULL, GPST_ERROR_FORMAT, "something else");
    for (uint64_t i = 0; i < 2; i++) {
        gpsti_slot_reset(slot, 4 + i, gpsti_now_ns());
        gpsti_slot_receive(slot, &bunch.given[i]);
        assert_int_equal(slot->item.result, i == 0 ? GPST_ERROR_FORMAT : GPST_ERROR_IO);
        assert_string_equal(slot->item.stage, "source");
        assert_string_equal(slot->item.reason, i == 0 ? "line 4 is bad" : gpst_result_text(GPST_ERROR_IO));
        assert_string_equal(slot->item.name, "lines.txt");
    }
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bunch_keeps_what_it_has_room_for),
        cmocka_unit_test(test_a_failure_keeps_its_words),
        cmocka_unit_test(test_towards_the_end_few_are_uncounted),
        cmocka_unit_test(test_brief_items_of_a_long_list_are_worth_a_worker),
        cmocka_unit_test(test_every_item_has_its_own),
        cmocka_unit_test(test_a_source_that_fails_some),
        cmocka_unit_test(test_nothing_in_hand_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
