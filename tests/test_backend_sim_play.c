/* tests/test_backend_sim_play.c -- who plays a simulated device: the thread that waits for a stream, or the stream's
   own, and nobody before either is asked for. */
#include "test.h"

#include "../backends/backend.h"

#include <pthread.h>

typedef struct sim_kit {
    gpsti_host host;
    const gpsti_backend_i* i;
    gpsti_device* device;
    gpsti_stream* streams[2];
} sim_kit;

static void kit_open(sim_kit* kit, const char* params) {
    memset(kit, 0, sizeof *kit);
    gpsti_host_init(&kit->host, NULL, NULL);
    kit->i = gpsti_backend_sim();
    assert_int_equal(kit->i->device_open(&kit->host, params, &kit->device), GPST_OK);
    for (int s = 0; s < 2; s++)
        assert_int_equal(kit->i->stream_create(kit->device, &kit->streams[s]), GPST_OK);
}

static void kit_close(sim_kit* kit) {
    for (int s = 0; s < 2; s++)
        kit->i->stream_destroy(kit->streams[s]);
    kit->i->device_close(kit->device);
    assert_int_equal(gpsti_a64_load(&kit->host.live_bytes), 0);
}

/* ---- kernels ------------------------------------------------------------------------------------------ */

/* Where and in which turn a kernel ran. */
typedef struct play {
    pthread_t thread;
    gpsti_a32 turn; /* 0 = it has not */
} play;

static gpsti_a32 n_turns;

static gpst_result play_host(const void* args, const gpsti_exec* exec) {
    play* self;
    (void)exec;
    memcpy(&self, args, sizeof self);
    self->thread = pthread_self();
    gpsti_a32_store(&self->turn, gpsti_a32_add(&n_turns, 1) + 1);
    return GPST_OK;
}
static const gpsti_kernel play_kernel = {"play", play_host, NULL, NULL};

static gpst_result busy_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    gpsti_sleep_ns(3000000);
    return GPST_OK;
}
static const gpsti_kernel busy_kernel = {"busy", busy_host, NULL, NULL};

static void kit_launch(const sim_kit* kit, int stream, play* self) {
    memset(self, 0, sizeof *self);
    assert_int_equal(kit->i->launch(kit->streams[stream], &play_kernel, &self, sizeof self, NULL), GPST_OK);
}

static bool is_played(const play* self) { return gpsti_a32_load(&self->turn) > 0; }
static bool is_mine(const play* self) { return pthread_equal(self->thread, pthread_self()) != 0; }

/* Long enough for a thread that was called. */
static void wait_for_nobody(void) { gpsti_sleep_ns(20000000); }

static void note_down(void* user_data, gpst_result result) {
    play* const self = (play*)user_data;
    assert_int_equal(result, GPST_OK);
    self->thread = pthread_self();
    gpsti_a32_store(&self->turn, gpsti_a32_add(&n_turns, 1) + 1);
}

/* ---- tests ---------------------------------------------------------------------------------------------- */

static void test_who_waits_plays(void** state) {
    sim_kit kit;
    play plays[3];
    (void)state;
    kit_open(&kit, "launch_us=0");
    for (int k = 0; k < 3; k++)
        kit_launch(&kit, 0, &plays[k]);
    wait_for_nobody();
    assert_false(is_played(&plays[0])); /* nobody has asked yet */
    assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
    for (int k = 0; k < 3; k++)
        assert_true(is_played(&plays[k]) && is_mine(&plays[k]));
    assert_true(gpsti_a32_load(&plays[0].turn) < gpsti_a32_load(&plays[1].turn));
    assert_true(gpsti_a32_load(&plays[1].turn) < gpsti_a32_load(&plays[2].turn));
    kit_close(&kit);
}

/* What calls others is not for who waits: it may have locks that they take. */
static void test_notes_come_from_the_stream(void** state) {
    sim_kit kit;
    play before, note, behind;
    (void)state;
    kit_open(&kit, "launch_us=0");
    memset(&note, 0, sizeof note);
    kit_launch(&kit, 0, &before);
    assert_int_equal(kit.i->stream_notify(kit.streams[0], note_down, &note), GPST_OK);
    while (!is_played(&note)) /* nobody waits for the stream */
        gpsti_sleep_ns(100000);
    assert_true(is_played(&before) && !is_mine(&before));
    for (int round = 0; round < 20; round++) { /* in some of which the one that waits is the first to play */
        memset(&note, 0, sizeof note);
        assert_int_equal(kit.i->launch(kit.streams[0], &busy_kernel, NULL, 0, NULL), GPST_OK);
        assert_int_equal(kit.i->stream_notify(kit.streams[0], note_down, &note), GPST_OK);
        kit_launch(&kit, 0, &behind);
        assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
        assert_true(is_played(&note) && is_played(&behind));
        assert_false(is_mine(&note));
    }
    kit_close(&kit);
}

/* Asking does not wait, so asking alone must bring it about; again and again, whatever was played before. */
static void test_asking_calls_the_thread(void** state) {
    sim_kit kit;
    gpsti_event* event = NULL;
    play self;
    int64_t time_ns;
    (void)state;
    kit_open(&kit, "launch_us=0");
    assert_int_equal(kit.i->event_create(kit.device, &event), GPST_OK);
    for (int round = 0; round < 3; round++) {
        kit_launch(&kit, 0, &self);
        while (kit.i->stream_query(kit.streams[0]) == GPST_ERROR_WOULD_BLOCK)
            gpsti_sleep_ns(100000);
        assert_true(is_played(&self) && !is_mine(&self));
        kit_launch(&kit, 0, &self);
        assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
        kit_launch(&kit, 0, &self);
        assert_int_equal(kit.i->event_record(event, kit.streams[0]), GPST_OK);
        while (kit.i->event_time(event, &time_ns) == GPST_ERROR_WOULD_BLOCK)
            gpsti_sleep_ns(100000);
        assert_true(is_played(&self) && !is_mine(&self));
        kit_launch(&kit, 0, &self);
        assert_int_equal(kit.i->event_record(event, kit.streams[0]), GPST_OK);
        assert_int_equal(kit.i->event_wait(event), GPST_OK);
        assert_true(is_played(&self));
    }
    kit.i->event_destroy(event);
    kit_close(&kit);
}

/* Through another stream's event, and for what is to go. */
static void test_what_others_wait_for_is_played(void** state) {
    sim_kit kit;
    gpsti_event* event = NULL;
    gpsti_graph* graph = NULL;
    play first, second;
    play* args = &second;
    (void)state;
    kit_open(&kit, "launch_us=0");
    assert_int_equal(kit.i->event_create(kit.device, &event), GPST_OK);
    kit_launch(&kit, 0, &first);
    assert_int_equal(kit.i->event_record(event, kit.streams[0]), GPST_OK);
    assert_int_equal(kit.i->stream_wait_event(kit.streams[1], event), GPST_OK);
    kit_launch(&kit, 1, &second);
    assert_int_equal(kit.i->stream_wait_idle(kit.streams[1]), GPST_OK);
    assert_true(gpsti_a32_load(&first.turn) < gpsti_a32_load(&second.turn));
    kit_launch(&kit, 0, &first);
    assert_int_equal(kit.i->event_record(event, kit.streams[0]), GPST_OK);
    kit.i->event_destroy(event);
    assert_true(is_played(&first));
    assert_int_equal(kit.i->graph_begin(kit.streams[0]), GPST_OK);
    assert_int_equal(kit.i->launch(kit.streams[0], &play_kernel, &args, sizeof args, NULL), GPST_OK);
    assert_int_equal(kit.i->graph_end(kit.streams[0], &graph), GPST_OK);
    memset(&second, 0, sizeof second);
    assert_int_equal(kit.i->graph_launch(graph, kit.streams[0]), GPST_OK);
    kit.i->graph_destroy(graph);
    assert_true(is_played(&second));
    kit_launch(&kit, 1, &second);
    kit.i->stream_destroy(kit.streams[1]);
    assert_true(is_played(&second));
    assert_int_equal(kit.i->stream_create(kit.device, &kit.streams[1]), GPST_OK);
    kit_close(&kit);
}

/* Modelled time begins with the submission: who waits late finds it over. */
static void test_late_waiters_find_it_over(void** state) {
    sim_kit kit;
    play self;
    (void)state;
    kit_open(&kit, "launch_us=0,kernel_us=1000000");
    kit_launch(&kit, 0, &self);
    const int64_t submitted_ns = gpsti_now_ns();
    gpsti_sleep_ns(1000000000);
    const int64_t asked_ns = gpsti_now_ns();
    assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
    assert_true(gpsti_now_ns() - asked_ns < 1000000000); /* at once, on any machine */
    kit_launch(&kit, 0, &self);
    assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
    assert_true(gpsti_now_ns() - submitted_ns >= 2000000000); /* and who is early waits */
    kit_close(&kit);
}

/* What it took of the host's cores is counted; what is only modelled is not. */
static void test_what_was_played_is_counted(void** state) {
    sim_kit kit;
    play self;
    (void)state;
    kit_open(&kit, "virtual=1,launch_us=0,kernel_us=1000000000"); /* a thousand seconds */
    kit_launch(&kit, 0, &self);
    assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
    assert_true(gpsti_a64_load(&kit.device->played_ns) < (uint64_t)1000 * 1000000000);
    const uint64_t before_ns = gpsti_a64_load(&kit.device->played_ns);
    assert_int_equal(kit.i->launch(kit.streams[0], &busy_kernel, NULL, 0, NULL), GPST_OK);
    assert_int_equal(kit.i->stream_wait_idle(kit.streams[0]), GPST_OK);
    assert_true(gpsti_a64_load(&kit.device->played_ns) - before_ns >= 3000000);
    kit_close(&kit);
}

/* ---- several at once ---------------------------------------------------------------------------------------- */

enum { N_PLAYERS = 4, N_STEPS = 2000 };

typedef struct player {
    const sim_kit* kit;
    gpsti_stream* stream;
    gpsti_a32* n_inside;
    uint64_t n_played;
    bool met_others;
} player;

/* One engine for all kernels: nobody meets another one inside. */
static gpst_result alone_host(const void* args, const gpsti_exec* exec) {
    player* self;
    (void)exec;
    memcpy(&self, args, sizeof self);
    if (gpsti_a32_add(self->n_inside, 1) != 0)
        self->met_others = true;
    for (const int64_t end_ns = gpsti_now_ns() + 2000; gpsti_now_ns() < end_ns;) /* for others to come */
        gpsti_relax();
    self->n_played++;
    (void)gpsti_a32_add(self->n_inside, UINT32_MAX);
    return GPST_OK;
}

static void play_on(void* argument) {
    static const gpsti_kernel alone = {"alone", alone_host, NULL, NULL};
    player* self = (player*)argument;
    for (int k = 0; k < N_STEPS; k++) {
        assert_int_equal(self->kit->i->launch(self->stream, &alone, &self, sizeof self, NULL), GPST_OK);
        if (k % 7 == 0)
            (void)self->kit->i->stream_query(self->stream); /* so that its thread plays, too */
        if (k % 3 == 0)
            assert_int_equal(self->kit->i->stream_wait_idle(self->stream), GPST_OK);
    }
    assert_int_equal(self->kit->i->stream_wait_idle(self->stream), GPST_OK);
}

static void test_one_at_a_time_has_an_engine(void** state) {
    sim_kit kit;
    player players[N_PLAYERS];
    gpsti_thread threads[N_PLAYERS];
    gpsti_a32 n_inside;
    (void)state;
    memset(&n_inside, 0, sizeof n_inside);
    memset(players, 0, sizeof players);
    kit_open(&kit, "launch_us=0");
    for (int p = 0; p < N_PLAYERS; p++) {
        players[p].kit = &kit;
        players[p].n_inside = &n_inside;
        assert_int_equal(kit.i->stream_create(kit.device, &players[p].stream), GPST_OK);
        assert_int_equal(gpsti_thread_start(&threads[p], play_on, &players[p], "player"), GPST_OK);
    }
    for (int p = 0; p < N_PLAYERS; p++) {
        gpsti_thread_join(&threads[p]);
        assert_int_equal(players[p].n_played, N_STEPS);
        assert_false(players[p].met_others);
        kit.i->stream_destroy(players[p].stream);
    }
    kit_close(&kit);
}

typedef struct meeting {
    const sim_kit* kit;
    gpsti_a32 n_players, n_begun;
    bool met;          /* the other one began before the first had ended */
    int64_t end_ns[2]; /* of each stream's kernel, on the device's clock */
} meeting;

static gpst_result meet_host(const void* args, const gpsti_exec* exec) {
    meeting* self;
    const int64_t end_ns = gpsti_now_ns() + 10000000000;
    (void)exec;
    memcpy(&self, args, sizeof self);
    if (gpsti_a32_add(&self->n_begun, 1) != 0)
        return GPST_OK;
    while (gpsti_a32_load(&self->n_begun) < 2 && gpsti_now_ns() < end_ns)
        gpsti_relax();
    self->met = gpsti_a32_load(&self->n_begun) == 2;
    return GPST_OK;
}

static void meet_on(void* argument) {
    static const gpsti_kernel meet = {"meet", meet_host, NULL, NULL};
    meeting* self = (meeting*)argument;
    const gpsti_backend_i* const i = self->kit->i;
    const uint32_t s = gpsti_a32_add(&self->n_players, 1);
    gpsti_event* event = NULL;
    assert_int_equal(i->event_create(self->kit->device, &event), GPST_OK);
    assert_int_equal(i->launch(self->kit->streams[s], &meet, &self, sizeof self, NULL), GPST_OK);
    assert_int_equal(i->event_record(event, self->kit->streams[s]), GPST_OK);
    assert_int_equal(i->stream_wait_idle(self->kit->streams[s]), GPST_OK);
    assert_int_equal(i->event_time(event, &self->end_ns[s]), GPST_OK);
    i->event_destroy(event);
}

/* What the model knows the time of is played side by side; that time passes one after the other all the same. */
static void test_modelled_work_is_played_side_by_side(void** state) {
    sim_kit kit;
    meeting self;
    gpsti_thread threads[2];
    (void)state;
    memset(&self, 0, sizeof self);
    kit_open(&kit, "launch_us=0,kernel_us=50000");
    self.kit = &kit;
    for (int p = 0; p < 2; p++)
        assert_int_equal(gpsti_thread_start(&threads[p], meet_on, &self, "player"), GPST_OK);
    for (int p = 0; p < 2; p++)
        gpsti_thread_join(&threads[p]);
    assert_true(self.met);
    assert_true(self.end_ns[0] - self.end_ns[1] >= 50000000 || self.end_ns[1] - self.end_ns[0] >= 50000000);
    kit_close(&kit);
}

static void wait_for_first(void* argument) {
    const sim_kit* const kit = (const sim_kit*)argument;
    assert_int_equal(kit->i->stream_wait_idle(kit->streams[0]), GPST_OK);
}

static void wait_for_second(void* argument) {
    const sim_kit* const kit = (const sim_kit*)argument;
    assert_int_equal(kit->i->stream_wait_idle(kit->streams[1]), GPST_OK);
}

/* A kernel whose own time counts has the engine while it runs, but not while its launch's modelled time passes. */
static void test_launch_time_keeps_nobody_out(void** state) {
    sim_kit kit;
    play first, second;
    gpsti_thread threads[2];
    (void)state;
    kit_open(&kit, "launch_us=1500000");
    kit_launch(&kit, 0, &first);
    const int64_t start_ns = gpsti_now_ns();
    assert_int_equal(gpsti_thread_start(&threads[0], wait_for_first, &kit, "first"), GPST_OK);
    while (!is_played(&first))
        gpsti_sleep_ns(100000);
    kit_launch(&kit, 1, &second);
    assert_int_equal(gpsti_thread_start(&threads[1], wait_for_second, &kit, "second"), GPST_OK);
    while (!is_played(&second))
        gpsti_sleep_ns(100000);
    const int64_t second_ns = gpsti_now_ns();
    gpsti_thread_join(&threads[0]);
    assert_true(gpsti_now_ns() - start_ns >= 1490000000); /* submitted a little before */
    assert_true(second_ns - start_ns < 1490000000);
    gpsti_thread_join(&threads[1]);
    assert_true(gpsti_now_ns() - start_ns >= 2990000000); /* one launch after the other */
    kit_close(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_waits_plays),
                                       cmocka_unit_test(test_notes_come_from_the_stream),
                                       cmocka_unit_test(test_asking_calls_the_thread),
                                       cmocka_unit_test(test_what_others_wait_for_is_played),
                                       cmocka_unit_test(test_late_waiters_find_it_over),
                                       cmocka_unit_test(test_what_was_played_is_counted),
                                       cmocka_unit_test(test_one_at_a_time_has_an_engine),
                                       cmocka_unit_test(test_launch_time_keeps_nobody_out),
                                       cmocka_unit_test(test_modelled_work_is_played_side_by_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
