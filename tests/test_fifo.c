/* tests/test_fifo.c -- inputs that may never have a byte: a FIFO nobody feeds is read until it is cancelled, in plain
   loops, in the engine and by a reader; one that is fed slowly is read whole. What would hang is ended by alarm(). */
#include "test.h"

#if defined(_WIN32)
int main(void) {
    printf("no FIFOs here\n");
    return GPST_TEST_SKIP;
}
#else
#if !defined(GPST_TEST_AMALGAM)
#include "../core/machine/measure.h"
#include "../core/prefetch/prefetch.h"
#endif

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS ((int64_t)1000000)

static gpst_context* context;
static char directory[] = "/tmp/gpst_fifo_XXXXXX";
static char path[64];

static void soon(void) { gpsti_sleep_ns(60 * MS); }

/* ---- who feeds ---------------------------------------------------------------------------------- */

typedef struct feed {
    int n_pieces; /* of 5 bytes */
    bool stays;   /* keeps it open until it is told */
    gpsti_a32 fed, leave;
    gpsti_thread thread;
} feed;

static void feed_main(void* arg) {
    feed* const self = (feed*)arg;
    soon();
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < self->n_pieces; i++) {
        (void)!write(file, "piece", 5);
        gpsti_sleep_ns(30 * MS);
    }
    gpsti_a32_store(&self->fed, 1);
    while (self->stays && gpsti_a32_load(&self->leave) == 0)
        gpsti_sleep_ns(5 * MS);
    (void)close(file);
}

static void feed_start(feed* self, int n_pieces, bool stays) {
    memset(self, 0, sizeof *self);
    self->n_pieces = n_pieces;
    self->stays = stays;
    assert_int_equal(gpsti_thread_start(&self->thread, feed_main, self, "feed"), GPST_OK);
}

static void feed_end(feed* self) {
    gpsti_a32_store(&self->leave, 1);
    gpsti_thread_join(&self->thread);
}

/* ---- pipelines ----------------------------------------------------------------------------------- */

typedef struct run_case {
    gpst_pipeline* pipeline;
    uint64_t n_items, n_sunk;
    gpst_result first_result;
    size_t first_bytes;
} run_case;

static gpst_result give(void* user_data, uint64_t index, gpst_input* out) {
    const run_case* const self = (const run_case*)user_data;
    if (index >= self->n_items)
        return GPST_END;
    out->path = path;
    return GPST_OK;
}

static gpst_result take(void* user_data, const gpst_item* item) {
    run_case* const self = (run_case*)user_data;
    if (item->index == 0) {
        self->first_result = item->result;
        self->first_bytes = item->file_bytes;
    }
    self->n_sunk++;
    return GPST_OK;
}

static gpst_result work(void* user_data, gpst_task* task) {
    (void)user_data, (void)task;
    return GPST_OK;
}

static void run_case_init(run_case* self, gpst_run_mode mode, uint64_t n_items) {
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stages[2];
    memset(stages, 0, sizeof stages);
    memset(self, 0, sizeof *self);
    self->n_items = n_items;
    stages[0].kind = GPST_STAGE_READ;
    stages[1].kind = GPST_STAGE_HOST;
    stages[1].func = work;
    desc.stages = stages;
    desc.n_stages = 2;
    desc.source = give;
    desc.sink = take;
    desc.source_user_data = desc.sink_user_data = self;
    desc.n_items_expected = n_items;
    desc.mode = mode;
    assert_int_equal(gpst_pipeline_create(context, &desc, &self->pipeline), GPST_OK);
}

static void cancel_soon(void* arg) {
    soon();
    gpst_pipeline_cancel((gpst_pipeline*)arg);
}

static void stop_and_cancel_soon(void* arg) {
    soon();
    gpst_pipeline_stop((gpst_pipeline*)arg);
    soon();
    gpst_pipeline_cancel((gpst_pipeline*)arg);
}

static const gpst_run_mode modes[] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_PLAIN_INSIDE, GPST_RUN_ENGINE, GPST_RUN_DEFAULT};
#define N_MODES (sizeof modes / sizeof modes[0])

static void test_a_run_that_waits_is_cancelled(void** state) {
    (void)state;
    for (size_t m = 0; m < N_MODES; m++)
        for (uint64_t n_items = 1; n_items <= 3; n_items += 2) {
            run_case run;
            gpsti_thread thread;
            run_case_init(&run, modes[m], n_items);
            void (*const end)(void*) = n_items == 1 ? cancel_soon : stop_and_cancel_soon;
            assert_int_equal(gpsti_thread_start(&thread, end, run.pipeline, "cancel"), GPST_OK);
            assert_int_equal(gpst_pipeline_run(run.pipeline), GPST_ERROR_CANCELLED);
            gpsti_thread_join(&thread);
            assert_true(run.n_sunk >= 1);
            assert_int_equal(run.first_result, GPST_ERROR_CANCELLED);
            assert_int_equal(gpst_pipeline_destroy(run.pipeline), GPST_OK);
        }
}

/* A writer came, gave a part, and gives no more. */
static void test_a_run_that_waits_for_more_is_cancelled(void** state) {
    (void)state;
    for (size_t m = 0; m < N_MODES; m++) {
        run_case run;
        feed feeder;
        gpsti_thread thread;
        run_case_init(&run, modes[m], 1);
        feed_start(&feeder, 2, true);
        assert_int_equal(gpsti_thread_start(&thread, stop_and_cancel_soon, run.pipeline, "cancel"), GPST_OK);
        assert_int_equal(gpst_pipeline_run(run.pipeline), GPST_ERROR_CANCELLED);
        gpsti_thread_join(&thread);
        const int rescue = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* if the writer came too late for the run */
        feed_end(&feeder);
        (void)close(rescue);
        assert_int_equal(run.first_result, GPST_ERROR_CANCELLED);
        assert_int_equal(gpst_pipeline_destroy(run.pipeline), GPST_OK);
    }
}

static void test_a_run_that_is_fed_reads_all(void** state) {
    (void)state;
    for (size_t m = 0; m < N_MODES; m++) {
        run_case run;
        feed feeder;
        run_case_init(&run, modes[m], 1);
        feed_start(&feeder, 7, false);
        assert_int_equal(gpst_pipeline_run(run.pipeline), GPST_OK);
        feed_end(&feeder);
        assert_int_equal(run.first_result, GPST_OK);
        assert_int_equal(run.first_bytes, 35);
        assert_int_equal(gpst_pipeline_destroy(run.pipeline), GPST_OK);
    }
}

/* Push, and nobody looks at the pipeline again before it is destroyed. */
static void test_destroy_ends_what_waits(void** state) {
    (void)state;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    stage.kind = GPST_STAGE_READ;
    desc.stages = &stage;
    desc.n_stages = 1;
    input.path = path;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    soon();
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
}

/* ---- a reader ------------------------------------------------------------------------------------- */

static void note_done(gpst_read* read) { gpsti_a32_store((gpsti_a32*)read->user_data, 1); }

static void read_init(gpst_read* read, const char* name, char* data, size_t bytes) {
    memset(read, 0, sizeof *read);
    read->path = name;
    read->data = data;
    read->capacity_bytes = bytes;
}

static void cancel_reader_soon(void* arg) {
    soon();
    gpst_reader_cancel((gpst_reader*)arg);
}

static void test_a_reader_is_cancelled(void** state) {
    (void)state;
    static const char* const kinds[] = {"pread", "auto", "direct"};
    for (size_t k = 0; k < 3; k++) {
        gpst_reader_desc desc = GPST_ZERO;
        gpst_reader* reader = NULL;
        gpst_read read;
        gpsti_thread thread;
        gpsti_a32 done = GPST_ZERO;
        char data[64];
        desc.kind = kinds[k];
        assert_int_equal(gpst_reader_create(context, &desc, &reader), GPST_OK);
        read_init(&read, path, data, sizeof data);
        read.done = note_done;
        read.user_data = &done;
        assert_int_equal(gpst_reader_submit(reader, &read), GPST_OK);
        soon();
        assert_int_equal(gpsti_a32_load(&done), 0);
        gpst_reader_cancel(reader);
        while (gpsti_a32_load(&done) == 0)
            gpsti_sleep_ns(MS);
        assert_int_equal(read.result, GPST_ERROR_CANCELLED);
        assert_non_null(strstr(read.reason, "cancelled"));

        assert_int_equal(gpsti_thread_start(&thread, cancel_reader_soon, reader, "cancel"), GPST_OK);
        read.done = NULL;
        assert_int_equal(gpst_reader_read_now(reader, &read), GPST_ERROR_CANCELLED);
        gpsti_thread_join(&thread);

        feed feeder; /* and what comes afterwards is read */
        feed_start(&feeder, 3, false);
        assert_int_equal(gpst_reader_read_now(reader, &read), GPST_OK);
        feed_end(&feeder);
        assert_int_equal(read.bytes, 15);
        assert_memory_equal(data, "piecepiecepiece", 15);

        gpsti_a32_store(&done, 0);
        read.done = note_done;
        assert_int_equal(gpst_reader_submit(reader, &read), GPST_OK);
        soon();
        gpst_reader_destroy(reader);
        assert_int_equal(gpsti_a32_load(&done), 1);
        assert_int_equal(read.result, GPST_ERROR_CANCELLED);
    }
}

static void test_ends(void** state) {
    (void)state;
    gpst_read read;
    feed feeder;
    char data[64];
    feed_start(&feeder, 0, false); /* a writer that only opens it */
    read_init(&read, path, data, sizeof data);
    assert_int_equal(gpst_reader_read_now(NULL, &read), GPST_OK);
    feed_end(&feeder);
    assert_int_equal(read.bytes, 0);

    /* what was written is there, and its writer gone before we open it */
    const int other = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int writer = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(writer, "early", 5), 5);
    (void)close(writer);
    assert_int_equal(gpst_reader_read_now(NULL, &read), GPST_OK);
    (void)close(other);
    assert_int_equal(read.bytes, 5);
    assert_memory_equal(data, "early", 5);

    read_init(&read, "/dev/null", data, sizeof data);
    assert_int_equal(gpst_reader_read_now(NULL, &read), GPST_OK);
    assert_int_equal(read.bytes, 0);
    memset(data, 0xA5, sizeof data);
    read_init(&read, "/dev/zero", data, sizeof data);
    read.length_bytes = 10;
    assert_int_equal(gpst_reader_read_now(NULL, &read), GPST_OK);
    assert_int_equal(read.bytes, 10);
    assert_true(data[9] == 0 && data[10] == (char)0xA5);
    read_init(&read, "/dev/zero", data, sizeof data); /* as long as there is room */
    assert_int_equal(gpst_reader_read_now(NULL, &read), GPST_ERROR_OVERFLOW);
}

/* Others share the description that is behind descriptor 0: it must not become one whose reads don't wait. */
static void test_the_standard_input_keeps_its_flags(void** state) {
    (void)state;
    gpst_read read;
    char data[64];
    int ends[2];
    const int before = dup(0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], 0), 0);
    (void)close(ends[0]);
    const int flags = fcntl(0, F_GETFL);
    assert_int_equal(write(ends[1], "input", 5), 5);
    (void)close(ends[1]);
    read_init(&read, "/dev/stdin", data, sizeof data);
    assert_int_equal(gpst_reader_read_now(NULL, &read), GPST_OK);
    assert_int_equal(fcntl(0, F_GETFL), flags);
    if (before >= 0) {
        (void)dup2(before, 0);
        (void)close(before);
    }
    assert_int_equal(read.bytes, 5);
}

/* What asks about a path, or thinks that it is a file, must not wait for a writer. */
static void test_who_only_asks(void** state) {
    (void)state;
    gpst_probe_info probe;
    gpst_measure_info measured;
    assert_int_equal(gpst_probe(path, &probe), GPST_OK);
    assert_int_equal(gpst_measure(context, path, 10 * MS, &measured), GPST_OK);
    assert_non_null(strstr(measured.read_reason, "regular file"));
    const char* const paths[] = {path};
    gpst_prefetch_desc desc = GPST_ZERO;
    gpst_prefetch* prefetch = NULL;
    const uint64_t schedule[] = {0};
    desc.paths = paths;
    desc.n_paths = 1;
    desc.schedule = schedule;
    desc.n_schedule = 1;
    assert_int_equal(gpst_prefetch_create(context, &desc, &prefetch), GPST_OK);
    soon();
    gpst_prefetch_destroy(prefetch);
}

static int set_up(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)alarm(100);
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof path, "%s/fifo", directory);
    desc.backend = "cpu";
    desc.n_workers = 2;
    return mkfifo(path, 0600) == 0 && gpst_context_create(&desc, &context) == GPST_OK ? 0 : -1;
}

static int tear_down(void** state) {
    (void)state;
    gpst_context_destroy(context);
    (void)unlink(path);
    (void)rmdir(directory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_that_waits_is_cancelled),
        cmocka_unit_test(test_a_run_that_waits_for_more_is_cancelled),
        cmocka_unit_test(test_a_run_that_is_fed_reads_all),
        cmocka_unit_test(test_destroy_ends_what_waits),
        cmocka_unit_test(test_a_reader_is_cancelled),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_the_standard_input_keeps_its_flags),
        cmocka_unit_test(test_who_only_asks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
