/* tests/test_backend_sim.c -- the simulated device keeps the device contract,
   its clock model overlaps what can overlap, and every fault happens when asked for. */
#include "test_backend.h"

static const test_backend* test_subject(void) {
    static test_backend subject;
    subject.i = gpsti_backend_sim();
    subject.params = "h2d_gbps=0,d2h_gbps=0,launch_us=0";
    subject.zero_copy = false;
    subject.asynchronous = true;
    return &subject;
}

static void sim_open(test_device* t, const char* params) { test_device_open(t, gpsti_backend_sim(), params); }

static void* sim_alloc(test_device* t, size_t bytes) {
    void* memory = NULL;
    assert_int_equal(t->i->memory_alloc(t->device, bytes, &memory), GPST_OK);
    return memory;
}

/* ---- parameters -------------------------------------------------------------- */

typedef struct sim_bad_params {
    const char* params;
    const char* named; /* must be in the reason */
} sim_bad_params;

static void sim_refuses_bad_parameters(void** state) {
    static const sim_bad_params bad[] = {{"speed=1", "\"speed\""},
                                         {"launch_us", "launch_us"},
                                         {"launch_us=", "launch_us=\"\""},
                                         {"launch_us=-1", "\"-1\""},
                                         {"launch_us=1e3", "\"1e3\""},
                                         {"launch_us=1,5", "\"5\""},
                                         {"launch_us=1.2.3", "1.2.3"},
                                         {"copy_engines=3", "copy_engines"},
                                         {"copy_engines=1.5", "whole number"},
                                         {"copy_engines=0", "from 1 to 2"},
                                         {"lose_at=0.5", "lose_at"},
                                         {"=1", "no such key"},
                                         {"jitter_pct=101", "jitter_pct"},
                                         {"fail_copy=1,fail_copy=2", "given twice"},
                                         {",", "no such key"},
                                         {"h2d_gbps=nan", "nan"},
                                         {"preset=rtx", "rtx3090, rtx5070ti, h200 or old_laptop"},
                                         {"preset=rtx30900", "\"rtx30900\""},
                                         {"preset=", "preset=\"\""},
                                         {"seed=1,preset=h200", "\"preset\": no such key"},
                                         {"virtual=2", "from 0 to 1"},
                                         {"h2d_gbps=99999999999999999999", "h2d_gbps"}};
    gpsti_host host;
    gpsti_device* device = NULL;
    size_t k;
    (void)state;
    gpsti_host_init(&host, NULL, NULL);
    for (k = 0; k < sizeof(bad) / sizeof(bad[0]); ++k) {
        gpst_clear_reason();
        assert_int_equal(gpsti_backend_sim()->device_open(&host, bad[k].params, &device),
                         GPST_ERROR_ARGUMENT);
        if (!strstr(gpst_last_reason(), bad[k].named))
            fail_msg("\"%s\": \"%s\" is not in: %s", bad[k].params, bad[k].named, gpst_last_reason());
        if (!strstr(bad[k].named, "twice") && strncmp(bad[k].params, "preset=", 7) != 0)
            assert_non_null(strstr(gpst_last_reason(), "h2d_gbps, d2h_gbps,")); /* the keys there are */
    }
    assert_null(device);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

static void sim_takes_every_parameter(void** state) {
    test_device t;
    gpsti_device_info info;
    (void)state;
    sim_open(&t,
             "h2d_gbps=1.5,d2h_gbps=.5,d2d_gbps=2.,launch_us=1,kernel_us=2,copy_engines=1,memory_mb=64,"
             "oom_mb=32,others_mb=1,fail_alloc=0,fail_host_alloc=0,fail_copy=0,fail_launch=0,fail_event=0,fail_stream=0,"
             "fail_notify=0,lose_at=0,jitter_pct=10,seed=5,kernel_gbps=3,pin_gbps=4,virtual=0");
    t.i->device_query(t.device, &info);
    assert_int_equal(info.n_copy_engines, 1);
    assert_int_equal(info.memory_bytes, 64 << 20);
    test_device_close(&t);
}

static void sim_presets_are_overridden(void** state) {
    static const char* const presets[] = {"preset=rtx3090", "preset=rtx5070ti", "preset=h200",
                                          "preset=old_laptop"};
    static const double gib[] = {24, 15.9, 140, 2};
    gpsti_device_info info;
    test_device t;
    (void)state;
    for (int k = 0; k < 4; ++k) {
        sim_open(&t, presets[k]);
        t.i->device_query(t.device, &info);
        assert_true((double)info.memory_bytes / 1073741824.0 > gib[k] - 0.5 &&
                    (double)info.memory_bytes / 1073741824.0 < gib[k] + 0.5);
        assert_int_equal(info.n_copy_engines, k == 3 ? 1 : 2);
        assert_true(info.counts_bytes);
        test_device_close(&t);
    }
    sim_open(&t, "preset=rtx3090,memory_mb=64,kernel_gbps=0");
    t.i->device_query(t.device, &info);
    assert_int_equal(info.memory_bytes, 64 << 20);
    assert_int_equal(info.n_copy_engines, 2);
    assert_false(info.counts_bytes);
    test_device_close(&t);
}

/* ---- the clock model: modelled times only, never the wall's ------------------- */

/* Two streams held back until both have all their work, so that both begin at the same modelled instant. */
typedef struct sim_race {
    test_device t;
    gpsti_a32 open;
    gpsti_stream* streams[2];
    gpsti_event* start;
    gpsti_event* ends[2];
    int64_t start_ns, ends_ns[2];
    bool is_virtual;
} sim_race;

static void sim_race_begin(sim_race* race, const char* params) {
    test_gate_args args;
    int k;
    memset(race, 0, sizeof(*race));
    race->is_virtual = strstr(params, "virtual=1") != NULL;
    sim_open(&race->t, params);
    const gpsti_backend_i* i = race->t.i;
    args.open = &race->open;
    assert_int_equal(i->event_create(race->t.device, &race->start), GPST_OK);
    assert_int_equal(i->launch(race->t.stream, &test_gate, &args, sizeof(args), NULL), GPST_OK);
    assert_int_equal(i->event_record(race->start, race->t.stream), GPST_OK);
    for (k = 0; k < 2; ++k) {
        assert_int_equal(i->stream_create(race->t.device, &race->streams[k]), GPST_OK);
        assert_int_equal(i->event_create(race->t.device, &race->ends[k]), GPST_OK);
        assert_int_equal(i->stream_wait_event(race->streams[k], race->start), GPST_OK);
    }
}

static void sim_race_run(sim_race* race) {
    const gpsti_backend_i* i = race->t.i;
    int k;
    for (k = 0; k < 2; ++k)
        assert_int_equal(i->event_record(race->ends[k], race->streams[k]), GPST_OK);
    assert_int_equal(i->event_query(race->ends[0]), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(i->event_time(race->ends[0], &race->ends_ns[0]), GPST_ERROR_WOULD_BLOCK);
    gpsti_a32_store(&race->open, 1);
    for (k = 0; k < 2; ++k) {
        assert_int_equal(i->event_wait(race->ends[k]), GPST_OK);
        assert_int_equal(i->event_time(race->ends[k], &race->ends_ns[k]), GPST_OK);
        if (!race->is_virtual)
            assert_true(gpsti_now_ns() >= race->ends_ns[k]); /* nothing is done before its modelled time */
    }
    assert_int_equal(i->event_time(race->start, &race->start_ns), GPST_OK);
}

static void sim_race_end(sim_race* race) {
    int k;
    for (k = 0; k < 2; ++k) {
        race->t.i->stream_destroy(race->streams[k]);
        race->t.i->event_destroy(race->ends[k]);
    }
    race->t.i->event_destroy(race->start);
    test_device_close(&race->t);
}

enum { SIM_MB = 1000000, SIM_COPY_NS = 10000000 }; /* 1 MB at 0.1 GB/s, where the host is no slower */

/* One upload and one download; later_ns: when the later of them is done, from the start. */
static void sim_copy_race(const char* params, int64_t* first_ns, int64_t* later_ns) {
    sim_race race;
    char* host = (char*)calloc(2, SIM_MB);
    sim_race_begin(&race, params);
    void* device = sim_alloc(&race.t, 2 * SIM_MB);
    const gpsti_backend_i* i = race.t.i;
    assert_int_equal(i->copy(race.streams[0], GPSTI_COPY_H2D, device, host, SIM_MB), GPST_OK);
    assert_int_equal(i->copy(race.streams[1], GPSTI_COPY_D2H, host + SIM_MB, (char*)device + SIM_MB, SIM_MB),
                     GPST_OK);
    sim_race_run(&race);
    const int64_t a = race.ends_ns[0] - race.start_ns;
    const int64_t b = race.ends_ns[1] - race.start_ns;
    *first_ns = a < b ? a : b;
    *later_ns = a < b ? b : a;
    i->memory_free(race.t.device, device, 2 * SIM_MB);
    sim_race_end(&race);
    free(host);
}

/* On the virtual clock, which no busy machine delays: as long as modelled, and no longer. */
static void sim_copies_overlap_on_two_engines(void** state) {
    int64_t first, later;
    (void)state;
    sim_copy_race("virtual=1,h2d_gbps=0.1,d2h_gbps=0.1,copy_engines=2", &first, &later);
    assert_int_equal(first, SIM_COPY_NS);
    assert_int_equal(later, SIM_COPY_NS);
    sim_copy_race("virtual=1,h2d_gbps=0.1,d2h_gbps=0.05,copy_engines=2", &first, &later);
    assert_int_equal(first, SIM_COPY_NS);
    assert_int_equal(later, 2 * SIM_COPY_NS);
}

static void sim_copies_queue_on_one_engine(void** state) {
    int64_t first, later;
    (void)state;
    sim_copy_race("virtual=1,h2d_gbps=0.1,d2h_gbps=0.1,copy_engines=1", &first, &later);
    assert_int_equal(first, SIM_COPY_NS);
    assert_int_equal(later, 2 * SIM_COPY_NS);
}

/* On the wall's clock a copy takes at least what is modelled. */
static void sim_copies_take_their_time(void** state) {
    int64_t first, later;
    (void)state;
    sim_copy_race("h2d_gbps=0.1,d2h_gbps=0.05,copy_engines=2", &first, &later);
    assert_true(first >= SIM_COPY_NS && later >= 2 * SIM_COPY_NS);
    sim_copy_race("h2d_gbps=0.1,d2h_gbps=0.1,copy_engines=1", &first, &later);
    assert_true(first >= SIM_COPY_NS && later >= 2 * SIM_COPY_NS);
}

static void sim_kernels_overlap_copies_but_not_kernels(void** state) {
    sim_race race;
    char* host = (char*)calloc(1, SIM_MB);
    (void)state;
    sim_race_begin(&race, "h2d_gbps=0.1,launch_us=15000");
    void* device = sim_alloc(&race.t, SIM_MB);
    uint64_t* value = (uint64_t*)sim_alloc(&race.t, sizeof(*value));
    assert_int_equal(race.t.i->copy(race.streams[0], GPSTI_COPY_H2D, device, host, SIM_MB), GPST_OK);
    test_launch_step(&race.t, race.streams[0], value, 1);
    test_launch_step(&race.t, race.streams[1], value, 1);
    sim_race_run(&race);
    const int64_t first = race.ends_ns[0] - race.start_ns;
    const int64_t second = race.ends_ns[1] - race.start_ns;
    assert_true(second >= 15000000);                      /* the launch alone, beside the copy */
    assert_true(first >= SIM_COPY_NS + 15000000);         /* copy, then launch */
    assert_true(first >= 30000000 || second >= 30000000); /* one compute engine, whoever came to it first */
    race.t.i->memory_free(race.t.device, device, SIM_MB);
    race.t.i->memory_free(race.t.device, value, sizeof(*value));
    sim_race_end(&race);
    free(host);
}

/* A graph of sets costs one launch; each takes its time on the device. */
static void sim_graphs_cost_one_launch(void** state) {
    sim_race race;
    gpsti_graph* graph = NULL;
    int k;
    (void)state;
    sim_race_begin(&race, "virtual=1,launch_us=5000,d2d_gbps=0.1");
    void* device = sim_alloc(&race.t, SIM_MB);
    gpsti_stream* recorder;
    assert_int_equal(race.t.i->stream_create(race.t.device, &recorder), GPST_OK);
    assert_int_equal(race.t.i->graph_begin(recorder), GPST_OK);
    for (k = 0; k < 3; ++k)
        assert_int_equal(race.t.i->memory_set(recorder, device, k, SIM_MB), GPST_OK);
    assert_int_equal(race.t.i->graph_end(recorder, &graph), GPST_OK);
    assert_int_equal(race.t.i->graph_launch(graph, race.streams[0]), GPST_OK);
    sim_race_run(&race);
    assert_int_equal(race.ends_ns[0] - race.start_ns, 5000000 + 3 * SIM_COPY_NS);
    assert_int_equal(race.ends_ns[1], race.start_ns);
    race.t.i->graph_destroy(graph);
    race.t.i->stream_destroy(recorder);
    race.t.i->memory_free(race.t.device, device, SIM_MB);
    sim_race_end(&race);
}

static void sim_kernels_take_the_time_given(void** state) {
    test_device t;
    gpsti_event* events[2];
    int64_t times[2];
    int k;
    (void)state;
    sim_open(&t, "launch_us=1000,kernel_us=3000,jitter_pct=50,seed=3");
    uint64_t* value = test_new_value(&t);
    for (k = 0; k < 2; ++k) {
        assert_int_equal(t.i->event_create(t.device, &events[k]), GPST_OK);
        assert_int_equal(t.i->event_record(events[k], t.stream), GPST_OK);
        if (k == 0)
            test_launch_step(&t, t.stream, value, 1);
    }
    for (k = 0; k < 2; ++k) {
        assert_int_equal(t.i->event_wait(events[k]), GPST_OK);
        assert_int_equal(t.i->event_time(events[k], &times[k]), GPST_OK);
        t.i->event_destroy(events[k]);
    }
    assert_true(times[1] - times[0] >= 2000000 && times[1] - times[0] != 4000000);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

static gpst_result sim_nothing_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    return GPST_OK;
}
static const gpsti_kernel sim_nothing = {"nothing", sim_nothing_host, NULL, NULL};

/* How long a launch that moves so many bytes takes, between two events, on a device whose clock nobody waits for. */
static int64_t sim_launch_ns(const char* params, uint64_t bytes, const gpsti_kernel* kernel) {
    test_device t;
    gpsti_event* events[2];
    int64_t times[2];
    gpsti_exec exec;
    exec.n_threads = 1;
    exec.bytes = bytes;
    sim_open(&t, params);
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(t.i->event_create(t.device, &events[k]), GPST_OK);
        assert_int_equal(t.i->event_record(events[k], t.stream), GPST_OK);
        if (k == 0)
            assert_int_equal(t.i->launch(t.stream, kernel, NULL, 0, &exec), GPST_OK);
    }
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(t.i->event_time(events[k], &times[k]), GPST_OK);
        t.i->event_destroy(events[k]);
    }
    test_device_close(&t);
    return times[1] - times[0];
}

static void sim_kernels_cost_their_bytes(void** state) {
    (void)state;
    assert_int_equal(sim_launch_ns("virtual=1,launch_us=1,kernel_gbps=2", 1000000, &sim_nothing), 501000);
    assert_int_equal(sim_launch_ns("virtual=1,launch_us=1,kernel_gbps=2,kernel_us=3", 1000000, &sim_nothing), 504000);
    assert_int_equal(sim_launch_ns("virtual=1,launch_us=1,kernel_gbps=2,kernel_us=3", 0, &sim_nothing), 4000);
    /* as the host: no time here */
    assert_int_equal(sim_launch_ns("virtual=1,launch_us=1,kernel_gbps=2", 0, &sim_nothing), 1000);
    assert_int_equal(sim_launch_ns("preset=rtx3090,virtual=1", 840000000, &sim_nothing), 1004000);
    assert_true(sim_launch_ns("launch_us=0,kernel_gbps=1", 2000000, &sim_nothing) >= 2000000);
}

static gpst_result sim_slow_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    gpsti_sleep_ns(2000000);
    return GPST_OK;
}

/* The host plays the device: what it needs longer than the model says is the device's time, and on its clock
   nobody's. */
static void sim_is_no_faster_than_its_host(void** state) {
    (void)state;
    static const gpsti_kernel slow = {"slow", sim_slow_host, NULL, NULL};
    assert_true(sim_launch_ns("launch_us=0,kernel_us=1", 0, &slow) >= 2000000);
    assert_true(sim_launch_ns("launch_us=0,kernel_us=1,jitter_pct=100,seed=5", 0, &slow) >= 2000000);
    assert_int_equal(sim_launch_ns("virtual=1,launch_us=0,kernel_us=1", 0, &slow), 1000);
}

/* An hour on the device passes at once, on two engines as on a real clock, and the next submission comes after what
   the host was told of. */
static void sim_virtual_time_is_not_waited_for(void** state) {
    const char* const params = "virtual=1,h2d_gbps=0.000001,launch_us=0,kernel_us=1000000";
    const int64_t hour_ns = (int64_t)3600 * 1000000000, second_ns = 1000000000;
    char* host = (char*)calloc(1, 3600 * 1000);
    gpsti_event* events[3];
    gpsti_stream* other;
    int64_t times[3];
    test_device t;
    (void)state;
    const int64_t start_ns = gpsti_now_ns();
    sim_open(&t, params);
    void* device = sim_alloc(&t, 3600 * 1000);
    assert_int_equal(t.i->stream_create(t.device, &other), GPST_OK);
    for (int k = 0; k < 3; ++k)
        assert_int_equal(t.i->event_create(t.device, &events[k]), GPST_OK);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, device, host, 3600 * 1000), GPST_OK);
    assert_int_equal(t.i->event_record(events[0], t.stream), GPST_OK);
    assert_int_equal(t.i->launch(other, &sim_nothing, NULL, 0, NULL), GPST_OK);
    assert_int_equal(t.i->event_record(events[1], other), GPST_OK);
    assert_int_equal(t.i->event_wait(events[1]), GPST_OK);
    assert_int_equal(t.i->event_wait(events[0]), GPST_OK);
    assert_int_equal(t.i->launch(other, &sim_nothing, NULL, 0, NULL), GPST_OK);
    assert_int_equal(t.i->event_record(events[2], other), GPST_OK);
    assert_int_equal(t.i->event_wait(events[2]), GPST_OK);
    for (int k = 0; k < 3; ++k) {
        assert_int_equal(t.i->event_time(events[k], &times[k]), GPST_OK);
        t.i->event_destroy(events[k]);
    }
    assert_int_equal(times[0], hour_ns);
    assert_int_equal(times[1], second_ns);
    assert_int_equal(times[2], hour_ns + second_ns);
    assert_true(gpsti_now_ns() - start_ns < hour_ns);
    t.i->stream_destroy(other);
    t.i->memory_free(t.device, device, 3600 * 1000);
    test_device_close(&t);
    free(host);
}

/* ---- faults ------------------------------------------------------------------ */

typedef struct sim_fault {
    const char* key;
    gpst_result result;
    gpst_result (*call)(test_device* t);
} sim_fault;

static gpst_result sim_call_alloc(test_device* t) {
    void* memory = NULL;
    const gpst_result result = t->i->memory_alloc(t->device, 100, &memory);
    t->i->memory_free(t->device, memory, 100);
    return result;
}
static gpst_result sim_call_host_alloc(test_device* t) {
    gpsti_host_memory memory;
    const gpst_result result = t->i->host_alloc(t->device, 100, false, &memory);
    t->i->host_free(t->device, &memory);
    return result;
}
static gpst_result sim_call_copy(test_device* t) {
    return t->i->copy(t->stream, GPSTI_COPY_H2D, NULL, NULL, 0);
}
static gpst_result sim_call_launch(test_device* t) {
    return t->i->launch(t->stream, &sim_nothing, NULL, 0, NULL);
}
static gpst_result sim_call_event(test_device* t) {
    gpsti_event* event = NULL;
    const gpst_result result = t->i->event_create(t->device, &event);
    t->i->event_destroy(event);
    return result;
}
static gpst_result sim_call_stream(test_device* t) {
    gpsti_stream* stream = NULL;
    const gpst_result result = t->i->stream_create(t->device, &stream);
    t->i->stream_destroy(stream);
    return result;
}
static gpst_result sim_call_notify(test_device* t) {
    test_note note;
    memset(&note, 0, sizeof(note));
    const gpst_result result = t->i->stream_notify(t->stream, test_note_down, &note);
    assert_int_equal(t->i->stream_wait_idle(t->stream), GPST_OK);
    assert_int_equal(gpsti_a32_load(&note.count), GPST_FAILED(result) ? 0 : 1);
    return result;
}

static void sim_fails_the_nth_call(void** state) {
    static const sim_fault faults[] = {{"fail_alloc", GPST_ERROR_DEVICE_MEMORY, sim_call_alloc},
                                       {"fail_host_alloc", GPST_ERROR_MEMORY, sim_call_host_alloc},
                                       {"fail_copy", GPST_ERROR_DEVICE, sim_call_copy},
                                       {"fail_launch", GPST_ERROR_DEVICE, sim_call_launch},
                                       {"fail_event", GPST_ERROR_DEVICE, sim_call_event},
                                       {"fail_stream", GPST_ERROR_DEVICE, sim_call_stream},
                                       {"fail_notify", GPST_ERROR_DEVICE, sim_call_notify}};
    size_t f;
    unsigned n;
    unsigned k;
    (void)state;
    for (f = 0; f < sizeof(faults) / sizeof(faults[0]); ++f)
        for (n = 2; n <= 3; ++n) {
            test_device t;
            char params[64];
            snprintf(params, sizeof(params), "launch_us=0,%s=%u", faults[f].key, n);
            sim_open(&t, params); /* which creates a stream */
            for (k = faults[f].call == sim_call_stream ? 2 : 1; k <= 5; ++k) {
                assert_int_equal(faults[f].call(&t), k == n ? faults[f].result : GPST_OK);
                if (k == n)
                    assert_non_null(strstr(gpst_last_reason(), "injected fault at call"));
            }
            assert_string_equal(t.i->last_error(t.device), "simErrorInjected");
            assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
            test_device_close(&t);
        }
}

static void sim_runs_out_of_memory(void** state) {
    static const char* const limits[] = {"memory_mb=1", "oom_mb=1", "memory_mb=8,oom_mb=1", "memory_mb=9,others_mb=8"};
    size_t k;
    (void)state;
    for (k = 0; k < 4; ++k) {
        uint64_t free_bytes = 0, total_bytes = 0;
        test_device t;
        gpsti_device_info info;
        void* more = NULL;
        sim_open(&t, limits[k]);
        void* a = sim_alloc(&t, 512 << 10);
        void* b = sim_alloc(&t, 512 << 10);
        assert_int_equal(t.i->memory_alloc(t.device, 1, &more), GPST_ERROR_DEVICE_MEMORY);
        assert_non_null(strstr(gpst_last_reason(), "out of simulated memory"));
        assert_string_equal(t.i->last_error(t.device), "simErrorMemoryAllocation");
        t.i->device_query(t.device, &info);
        assert_int_equal(info.memory_free_bytes, k == 3 ? 0 : info.memory_bytes - (1 << 20));
        t.i->memory_info(t.device, &free_bytes, &total_bytes);
        assert_int_equal(free_bytes, info.memory_free_bytes);
        assert_int_equal(total_bytes, info.memory_bytes);
        t.i->memory_free(t.device, a, 512 << 10);
        a = sim_alloc(&t, 512 << 10);
        t.i->memory_free(t.device, a, 512 << 10);
        t.i->memory_free(t.device, b, 512 << 10);
        test_device_close(&t);
    }
}

static void sim_checks_where_pointers_point(void** state) {
    test_device t;
    char host[64];
    (void)state;
    memset(host, 0, sizeof(host));
    sim_open(&t, NULL);
    char* a = (char*)sim_alloc(&t, 64);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, host, host, 8), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, a, a, 8), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, a, a, 8), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, host, host, 8), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2D, a, host, 8), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, a + 32, host, 33),
                     GPST_ERROR_ARGUMENT); /* past the end */
    assert_int_equal(t.i->memory_set(t.stream, host, 0, 8), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, a + 32, host, 32), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal((unsigned char)a[0], 0xA5); /* fresh device memory holds garbage */
    t.i->memory_free(t.device, a, 64);
    test_device_close(&t);
}

/* The device goes when the third launch would run; two streams have work and notifications pending. */
static void sim_loses_the_device(void** state) {
    test_device t;
    gpsti_stream* other;
    gpsti_event* event;
    gpsti_graph* graph = NULL;
    gpsti_device_info info;
    gpsti_host_memory memory;
    test_gate_args gate_args;
    gpsti_a32 gate;
    test_note notes[4];
    int64_t time;
    void* more = NULL;
    unsigned char out[64];
    (void)state;
    memset(notes, 0, sizeof(notes));
    memset(&gate, 0, sizeof(gate));
    memset(out, 0xA5, sizeof(out));
    sim_open(&t, "launch_us=0,lose_at=3");
    assert_int_equal(t.i->stream_create(t.device, &other), GPST_OK);
    assert_int_equal(t.i->event_create(t.device, &event), GPST_OK);
    uint64_t* value = test_new_value(&t);
    assert_int_equal(t.i->graph_begin(other), GPST_OK);
    test_launch_step(&t, other, value, 9);
    assert_int_equal(t.i->graph_end(other, &graph), GPST_OK);

    gate_args.open = &gate;
    assert_int_equal(t.i->launch(t.stream, &test_gate, &gate_args, sizeof(gate_args), NULL), GPST_OK);
    test_launch_step(&t, t.stream, value, 7);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &notes[0]), GPST_OK); /* before the loss */
    test_launch_step(&t, t.stream, value, 8);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, out, value, sizeof(*value)), GPST_OK);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &notes[1]), GPST_OK);
    assert_int_equal(t.i->event_record(event, t.stream), GPST_OK);
    assert_int_equal(t.i->stream_wait_event(other, event), GPST_OK);
    assert_int_equal(t.i->graph_launch(graph, other), GPST_OK);
    assert_int_equal(t.i->stream_notify(other, test_note_down, &notes[2]), GPST_OK);
    gpsti_a32_store(&gate, 1);

    assert_int_equal(t.i->stream_wait_idle(other), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_ERROR_DEVICE_LOST);
    assert_non_null(strstr(gpst_last_reason(), "lose_at"));
    assert_string_equal(t.i->last_error(t.device), "simErrorDeviceLost");
    assert_int_equal(notes[0].result, GPST_OK);
    assert_int_equal(notes[1].result, GPST_ERROR_DEVICE_LOST);
    assert_int_equal(notes[2].result, GPST_ERROR_DEVICE_LOST);
    assert_non_null(strstr(notes[2].reason, "lost"));
    assert_int_equal(*value, 7); /* neither the third launch ran nor the graph */
    assert_int_equal(out[0], 0xA5);

    assert_int_equal(t.i->event_query(event), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->event_wait(event), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->event_time(event, &time), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->event_record(event, t.stream), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &notes[3]), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(gpsti_a32_load(&notes[3].count), 0);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, out, value, 8), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->memory_set(t.stream, value, 0, 8), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->graph_launch(graph, t.stream), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->graph_begin(t.stream), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->memory_alloc(t.device, 8, &more), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->host_alloc(t.device, 8, false, &memory), GPST_ERROR_DEVICE_LOST);
    t.i->device_query(t.device, &info); /* still answers */
    assert_true(info.memory_bytes > 0);

    t.i->graph_destroy(graph);
    t.i->event_destroy(event);
    t.i->stream_destroy(other);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

/* ---- threads ----------------------------------------------------------------- */

static void sim_destroy_waits_for_work(void** state) {
    test_device t;
    gpsti_stream* stream;
    gpsti_event* event;
    uint64_t expected = 0;
    uint64_t k;
    (void)state;
    sim_open(&t, "launch_us=100");
    uint64_t* value = test_new_value(&t);
    assert_int_equal(t.i->stream_create(t.device, &stream), GPST_OK);
    assert_int_equal(t.i->event_create(t.device, &event), GPST_OK);
    for (k = 0; k < 40; ++k) {
        test_launch_step(&t, stream, value, k);
        expected = expected * 3 + k;
    }
    assert_int_equal(t.i->event_record(event, stream), GPST_OK);
    t.i->event_destroy(event);
    assert_int_equal(*value, expected);
    test_launch_step(&t, stream, value, 1);
    t.i->stream_destroy(stream);
    assert_int_equal(*value, expected * 3 + 1);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

enum { SIM_STREAMS = 4, SIM_STEPS = 2000 };

/* Random steps on random streams, each after the one before by an event: as if there were one stream. */
static void sim_random_order_over_streams(void** state) {
    uint64_t seed = test_seed(77);
    test_device t;
    gpsti_stream* streams[SIM_STREAMS];
    gpsti_event* events[SIM_STREAMS];
    uint64_t expected = 0;
    uint64_t k;
    int from = 0;
    (void)state;
    sim_open(&t, "launch_us=0,h2d_gbps=0,d2h_gbps=0,jitter_pct=100");
    uint64_t* value = test_new_value(&t);
    for (k = 0; k < SIM_STREAMS; ++k) {
        assert_int_equal(t.i->stream_create(t.device, &streams[k]), GPST_OK);
        assert_int_equal(t.i->event_create(t.device, &events[k]), GPST_OK);
    }
    for (k = 0; k < SIM_STEPS; ++k) {
        const int to = (int)(test_random(&seed) % SIM_STREAMS);
        assert_int_equal(t.i->event_record(events[from], streams[from]), GPST_OK);
        assert_int_equal(t.i->stream_wait_event(streams[to], events[from]), GPST_OK);
        test_launch_step(&t, streams[to], value, k);
        expected = expected * 3 + k;
        from = to;
    }
    for (k = 0; k < SIM_STREAMS; ++k)
        assert_int_equal(t.i->stream_wait_idle(streams[k]), GPST_OK);
    assert_int_equal(test_get_value(&t, value), expected);
    for (k = 0; k < SIM_STREAMS; ++k) {
        t.i->event_destroy(events[k]);
        t.i->stream_destroy(streams[k]);
    }
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

typedef struct sim_pinning {
    test_device device;
    gpsti_a32 n_ok;
} sim_pinning;

static void sim_pin_a_page(void* argument) {
    sim_pinning* const self = (sim_pinning*)argument;
    gpsti_host_memory memory;
    if (self->device.i->host_alloc(self->device.device, 4096, false, &memory) == GPST_OK)
        (void)gpsti_a32_add(&self->n_ok, 1);
    self->device.i->host_free(self->device.device, &memory);
}

/* Four threads at once take as long as one after the other would; on the virtual clock nobody waits. */
static void sim_pins_for_one_at_a_time(void** state) {
    sim_pinning self;
    gpsti_device_info info;
    gpsti_thread threads[4];
    (void)state;
    memset(&self, 0, sizeof self);
    sim_open(&self.device, "pin_gbps=0.001"); /* 4 ms a page */
    self.device.i->device_query(self.device.device, &info);
    assert_true(info.locks_host);
    const int64_t start_ns = gpsti_now_ns();
    for (int k = 0; k < 4; ++k)
        assert_int_equal(gpsti_thread_start(&threads[k], sim_pin_a_page, &self, "pin"), GPST_OK);
    for (int k = 0; k < 4; ++k)
        gpsti_thread_join(&threads[k]);
    assert_true(gpsti_now_ns() - start_ns >= 4 * 4096000);
    test_device_close(&self.device);
    sim_open(&self.device, "pin_gbps=0.000000001,virtual=1"); /* else 4096 s a page */
    sim_pin_a_page(&self);
    assert_int_equal(gpsti_a32_load(&self.n_ok), 5);
    test_device_close(&self.device);
    sim_open(&self.device, "mapped=1");
    self.device.i->device_query(self.device.device, &info);
    assert_false(info.locks_host);
    test_device_close(&self.device);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST_BACKEND_CONTRACT,
                                       cmocka_unit_test(sim_refuses_bad_parameters),
                                       cmocka_unit_test(sim_takes_every_parameter),
                                       cmocka_unit_test(sim_presets_are_overridden),
                                       cmocka_unit_test(sim_copies_overlap_on_two_engines),
                                       cmocka_unit_test(sim_copies_queue_on_one_engine),
                                       cmocka_unit_test(sim_copies_take_their_time),
                                       cmocka_unit_test(sim_kernels_overlap_copies_but_not_kernels),
                                       cmocka_unit_test(sim_graphs_cost_one_launch),
                                       cmocka_unit_test(sim_kernels_take_the_time_given),
                                       cmocka_unit_test(sim_kernels_cost_their_bytes),
                                       cmocka_unit_test(sim_is_no_faster_than_its_host),
                                       cmocka_unit_test(sim_pins_for_one_at_a_time),
                                       cmocka_unit_test(sim_virtual_time_is_not_waited_for),
                                       cmocka_unit_test(sim_fails_the_nth_call),
                                       cmocka_unit_test(sim_runs_out_of_memory),
                                       cmocka_unit_test(sim_checks_where_pointers_point),
                                       cmocka_unit_test(sim_loses_the_device),
                                       cmocka_unit_test(sim_destroy_waits_for_work),
                                       cmocka_unit_test(sim_random_order_over_streams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
