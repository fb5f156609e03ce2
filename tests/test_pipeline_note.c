/* tests/test_pipeline_note.c -- services that are counted late: as if each had been counted when it was over, but for
   those by which others are judged. */
#include "pipeline_kit.h"

#include "pipeline_books.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/pipeline/note_internal.h"
#endif

enum { N_NOTES = 5000, N_STEPS = 5, MOST_TIMES = 20, N_MORE = 2, N_MORE_BYTES = 7 };

/* read, decode, compute, encode, write */
static gpst_pipeline* open_pipeline(kit* self) {
    const gpst_pipeline_desc desc = kit_standard(self, 1);
    gpst_pipeline* pipeline = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(pipeline->n_steps, N_STEPS + 1);
    assert_int_equal(pipeline->steps[2].kind, GPSTI_STEP_OFFLOAD);
    return pipeline;
}

static uint64_t seed;

static uint32_t below(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static void make_way(gpsti_way* way, int64_t end_ns, int64_t* times_ns) {
    memset(way, 0, sizeof *way);
    way->counts = below(8) > 0;
    way->on_host = true;
    way->in_place = true;
    way->timed = true;
    way->n_items = 1;
    way->n_recorded = way->n_times = 2 + below(MOST_TIMES - 2);
    way->in_bytes = below(100);
    way->out_bytes = below(100);
    way->end_ns = end_ns;
    way->times_ns = times_ns;
    for (uint32_t t = 0; t < way->n_times; t++)
        times_ns[t] = end_ns - 100 + 4 * t + below(4);
}

/* Any service that there could be; its times last until the next is made. */
static void make_note(gpsti_note* note, uint32_t s, const gpst_pipeline* pipeline, int64_t now_ns, int64_t* times_ns) {
    const gpsti_step_kind kind = pipeline->steps[s].kind;
    gpsti_note_begin(note, &pipeline->steps[s], false, 0);
    note->start_ns = now_ns - 100 - below(100);
    note->end_ns = now_ns;
    note->cpu_ns = below(4) == 0 ? (int64_t)below(100) : -1;
    note->setup_ns = below(3) == 0 ? below(20) : 0;
    note->setup_cpu_ns = note->setup_ns / 2;
    note->result = below(16) == 0 ? GPST_ERROR_FORMAT : GPST_OK;
    if (kind == GPSTI_STEP_READ || (kind == GPSTI_STEP_WRITE && below(4) > 0))
        gpsti_note_file(note, note->start_ns + 5, note->end_ns - 5, below(1000));
    if (kind == GPSTI_STEP_OFFLOAD)
        note->n_threads = 1 + below(2);
    if (kind == GPSTI_STEP_OFFLOAD && !GPST_FAILED(note->result))
        make_way(&note->way, now_ns, times_ns);
}

static void assert_same(const gpst_pipeline* a, const gpst_pipeline* b) {
    for (uint32_t c = 0; c < a->n_clocks; c++)
        assert_memory_equal(&a->clocks[c], &b->clocks[c], sizeof a->clocks[c]);
    assert_memory_equal(a->busy, b->busy, sizeof a->busy);
    assert_memory_equal(&a->submit_clock, &b->submit_clock, sizeof a->submit_clock);
    assert_int_equal(a->bytes_read, b->bytes_read);
    assert_int_equal(a->bytes_written, b->bytes_written);
    assert_int_equal(a->plain_inside_cpu_ns, b->plain_inside_cpu_ns);
    assert_true(a->read_cpu_part >= b->read_cpu_part && a->read_cpu_part <= b->read_cpu_part);
}

/* Notes of any kind, counted at once, and kept and counted now and then; more of them than there is room for, too. */
static void test_late_is_as_at_once(void** state) {
    static gpsti_ledger ledger;
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline *const at_once = open_pipeline(self), *const late = open_pipeline(self);
    seed = test_seed(7);
    gpsti_ledger_open(&ledger, late);
    for (uint32_t n = 0; n < N_NOTES; n++) {
        int64_t times_ns[MOST_TIMES];
        gpsti_note note;
        const uint32_t s = below(N_STEPS);
        make_note(&note, s, at_once, 1000 + 150 * (int64_t)n, times_ns);
        gpsti_note_count(at_once, &note);
        note.step = &late->steps[s];
        gpsti_ledger_keep(&ledger, &note);
        assert_true(ledger.n <= GPSTI_LEDGER_NOTES && ledger.n_times <= GPSTI_LEDGER_TIMES);
        memset(times_ns, 0xA5, sizeof times_ns); /* they are the slot's, which has another item now */
        memset(&note, 0xA5, sizeof note);
        if (below(300) > 0)
            continue;
        gpsti_mutex* const mutex = &self->context->scheduler->mutex;
        gpsti_mutex_lock(mutex);
        const uint32_t n_some = below(ledger.n + 1);
        gpsti_ledger_count(&ledger, n_some);
        assert_int_equal(ledger.n_counted, n_some);
        gpsti_ledger_count(&ledger, ledger.n + 1); /* the rest; and none twice */
        gpsti_ledger_count(&ledger, ledger.n);
        gpsti_mutex_unlock(mutex);
        assert_same(at_once, late);
        gpsti_ledger_open(&ledger, late);
    }
    gpsti_ledger_count(&ledger, ledger.n);
    assert_same(at_once, late);
    assert_true(at_once->clocks[at_once->steps[2].first_clock + 1].count > N_NOTES / 10);
    assert_int_equal(gpst_pipeline_destroy(at_once), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(late), GPST_OK);
    kit_close(self);
}

static void keep_way(gpsti_ledger* ledger, uint64_t number, bool timed, bool on_host) {
    const int64_t times_ns[3] = {1000, 2000, 3000};
    gpsti_note note;
    gpsti_note_begin(&note, &ledger->pipeline->steps[2], false, 0);
    (void)gpsti_note_end(&note, GPST_OK);
    note.end_ns = 4000;
    note.way.counts = true;
    note.way.on_host = on_host;
    note.way.timed = timed;
    note.way.n_items = 1;
    note.way.n_recorded = note.way.n_times = timed ? 3 : 0;
    note.way.number = number;
    note.way.end_ns = 4000;
    note.way.times_ns = times_ns;
    gpsti_ledger_keep(ledger, &note);
}

/* Of a device's items the timed ones say what the others took, who ended before: all are counted then. */
static void test_measures_are_not_late(void** state) {
    static gpsti_ledger ledger;
    (void)state;
    kit* const self = kit_open("sim", 1);
    gpst_pipeline* const pipeline = open_pipeline(self);
    const gpsti_clock* const kernel = &pipeline->clocks[pipeline->steps[2].first_clock + 1];
    gpsti_ledger_open(&ledger, pipeline);
    for (uint64_t n = 0; n < 3; n++)
        keep_way(&ledger, n, false, false);
    keep_way(&ledger, 3, true, true); /* cores of the host: judged by nobody */
    assert_int_equal(kernel->count, 0);
    keep_way(&ledger, 4, true, false);
    assert_int_equal(kernel->count, 5);
    assert_int_equal(ledger.n, 0);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* The time of all files of an output, and what of it was the processor's, is counted with one. Where nobody else
   counts. */
static void check_writes(kit* self, const gpst_pipeline* pipeline) {
    const gpsti_clock* const write = &pipeline->clocks[pipeline->steps[pipeline->n_steps - 2].first_clock];
    kit_check(self, pipeline->steps[pipeline->n_steps - 2].kind == GPSTI_STEP_WRITE);
    kit_check(self, write->setup_ns == 0 && write->cpu_samples * (1 + N_MORE) <= write->count);
}

/* The kit's file of an output, and N_MORE besides. */
static gpst_result encode_several(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    if (task->pipeline->desc.mode == GPST_RUN_PLAIN_SERIAL)
        check_writes(self, task->pipeline);
    GPSTI_TRY(kit_encode(user_data, task));
    for (uint32_t more = 0; more < N_MORE; more++) {
        char path[120];
        void* room = NULL;
        snprintf(path, sizeof path, "%.63s/more_%u_%u_%u", self->dir, (unsigned)task->item->index,
                 (unsigned)task->output_index, (unsigned)more);
        GPSTI_TRY(gpst_task_encoded(task, N_MORE_BYTES, &room));
        memset(room, 7, N_MORE_BYTES);
        GPSTI_TRY(gpst_task_emit(task, path, N_MORE_BYTES));
    }
    return GPST_OK;
}

static void run_several(gpst_run_mode mode, uint64_t n_items) {
    kit* const self = kit_open("cpu", 3);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_standard(self, n_items);
    self->stages[3].func = encode_several;
    self->decode_ns = mode == GPST_RUN_DEFAULT ? 1000000 : 0;
    desc.sink = NULL;
    desc.mode = mode;
    desc.n_items_expected = n_items;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    const uint64_t n_outputs = n_items * self->n_outputs;
    const gpst_stage_stats* const write = &stats.stages[stats.n_stages - 1];
    assert_string_equal(write->name, "write");
    assert_int_equal(write->count, n_outputs * (1 + N_MORE));
    assert_int_equal(write->bytes, stats.bytes_written);
    assert_int_equal(stats.bytes_written, n_outputs * (KIT_BYTES + N_MORE * N_MORE_BYTES));
    assert_int_equal(kit_count_files(self, "out_"), n_outputs);
    assert_int_equal(kit_count_files(self, "more_"), n_outputs * N_MORE);
    kit_close(self);
}

/* Each of an output's files is counted, by a plain loop and by workers, whichever way they bring them. */
static void test_several_files_of_an_output(void** state) {
    (void)state;
    run_several(GPST_RUN_PLAIN_SERIAL, 20);
    run_several(GPST_RUN_DEFAULT, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_late_is_as_at_once),
                                       cmocka_unit_test(test_measures_are_not_late),
                                       cmocka_unit_test(test_several_files_of_an_output)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
