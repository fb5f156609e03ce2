/* tests/test_graph_cache.c -- the cache of graphs, on every backend: piece by piece, captured or found, a run gives the
   bits of the plain calls; what is kept is bounded; threads share it. */
#include "graph_cache_kit.h"

static void run_scene(gpst_graph_cache* cache, const scene* s, gpst_stream* stream) {
    assert_int_equal(gpst_graph_begin(stream), GPST_OK);
    assert_int_equal(scene_put(s, stream), GPST_OK);
    if (gpst_graph_cache_run(cache, stream) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
}

/* ---- what a run does ------------------------------------------------------------------------------- */

static void test_second_time(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene s, plain;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        scene_begin(&s, &kit, warp);
        scene_begin(&plain, &kit, warp);
        expect_info(cache, 0, 0, 0, 0, 0);
        for (uint64_t round = 0; round < 5; round++) {
            scene_feed(&s, round);
            scene_feed(&plain, round);
            run_scene(cache, &s, kit.stream);
            expect_info(cache, round < 2 ? 0 : round - 1, round > 0, 0, 1, 0);
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
            scene_expect_equal(&s, &plain);
        }
        gpst_graph_cache_info info = info_of(cache);
        assert_int_equal(info.n_graphs, 1);
        assert_true(info.host_bytes > 0);
        assert_string_equal(info.reason, "");
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK); /* nothing recorded: nothing to count */
        assert_int_equal(gpst_graph_cache_run(cache, kit.stream), GPST_OK);
        assert_int_equal(info_of(cache).runs, 5);
        gpst_graph_cache_trim(cache);
        info = info_of(cache);
        assert_int_equal(info.n_graphs + info.host_bytes + info.device_bytes, 0);
        run_scene(cache, &s, kit.stream);
        run_scene(cache, &s, kit.stream);
        expect_info(cache, 3, 2, 0, 2, 0);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        gpst_graph_cache_destroy(cache);
        scene_end(&s);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* Another address, another shape, another argument: its own graph, beside the first. */
static void test_what_differs(void** state) {
    static const uint8_t lists[][8] = {
        {0, 0, 1, 9, 3, 0, 2, 1}, /* a copy, and a step */
        {0, 0, 1, 9, 3, 0, 2, 2}, /* the step adds more */
        {0, 0, 1, 9, 3, 0, 3, 1}, /* to another address */
        {0, 0, 1, 8, 3, 0, 2, 1}, /* the copy is shorter */
        {3, 0, 2, 1, 0, 0, 1, 9}, /* the other way round */
        {1, 0, 1, 9, 3, 0, 2, 1}, /* rows */
        {2, 7, 1, 9, 3, 0, 2, 1}, /* a fill */
        {2, 8, 1, 9, 3, 0, 2, 1}, /* of another value */
    };
    enum { N = sizeof lists / sizeof *lists };
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        static twins t;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (int i = 0; i < N; i++)
            twins_run(&t, cache, lists[i], 8);
        expect_info(cache, 0, 0, 0, N, 0);
        for (int i = 0; i < N; i++)
            twins_run(&t, cache, lists[i], 8);
        expect_info(cache, 0, N, 0, N, 0);
        for (int i = 0; i < N; i++)
            twins_run(&t, cache, lists[i], 8);
        expect_info(cache, N, N, 0, N, 0);
        assert_int_equal(info_of(cache).n_graphs, N);
        twins_compare(&t);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* What lies between the members of a description is no difference. */
static void test_gaps(void** state) {
    gpst_warp* const warp = scene_warp(0);
    device_kit kit;
    scene s;
    (void)state;
    kit_start(&kit, "cpu");
    gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
    scene_begin(&s, &kit, warp);
    for (int gaps = 0; gaps < 3; gaps++) {
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        assert_int_equal(scene_put_argmax(&s, gaps * 0x55, kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_cache_run(cache, kit.stream), GPST_OK);
    }
    expect_info(cache, 1, 1, 0, 1, 0);
    gpst_graph_cache_destroy(cache);
    scene_end(&s);
    kit_end(&kit);
    gpst_warp_destroy(warp);
}

/* Gives the same addresses again, once all has come back. */
typedef struct same_place {
    size_t used, n_live;
    GPSTI_ALIGNAS(128) uint8_t room[1 << 16];
} same_place;

static void* same_place_alloc(void* user_data, size_t bytes, size_t align_bytes) {
    same_place* const place = (same_place*)user_data;
    const size_t at = (place->used + align_bytes - 1) / align_bytes * align_bytes;
    if (at + bytes > sizeof place->room)
        return NULL;
    place->used = at + bytes;
    place->n_live++;
    memset(place->room + at, 0, bytes);
    return place->room + at;
}

static void same_place_free(void* user_data, void* ptr, size_t bytes) {
    same_place* const place = (same_place*)user_data;
    (void)ptr;
    (void)bytes;
    if (--place->n_live == 0)
        place->used = 0;
}

/* A warp that lies where a destroyed one lay is another one; and a kernel that has become another. */
static void test_same_addresses(void** state) {
    static same_place place;
    gpst_allocator hooks;
    (void)state;
    memset(&hooks, 0, sizeof hooks);
    hooks.alloc = same_place_alloc;
    hooks.free = same_place_free;
    hooks.user_data = &place;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        const gpst_warp* first = NULL;
        device_kit kit;
        scene s, plain;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        scene_begin(&s, &kit, NULL);
        scene_begin(&plain, &kit, NULL);
        scene_feed(&s, 3);
        scene_feed(&plain, 3);
        for (uint64_t n = 0; n < 3; n++) {
            gpst_view views[SCENE_VIEWS];
            gpst_warp_desc desc = GPST_ZERO;
            gpst_warp* warp = NULL;
            memset(views, 0, sizeof views);
            for (int v = 0; v < SCENE_VIEWS; v++)
                views[v].yaw = 60 * v + 20 * (double)n;
            desc.map = GPST_MAP_EQUIRECT;
            desc.views = views;
            desc.n_views = SCENE_VIEWS;
            desc.width = SCENE_VIEW_WIDTH;
            desc.height = SCENE_VIEW_HEIGHT;
            desc.format = GPST_FORMAT_RGB;
            if (gpst_warp_create_versioned(GPST_VERSION, sizeof desc, &desc, &hooks, &warp) != GPST_OK)
                fail_msg("%s", gpst_last_reason());
            if (!first)
                first = warp;
            assert_ptr_equal(warp, first);
            s.warp = plain.warp = warp;
            for (int round = 0; round < 3; round++) {
                run_scene(cache, &s, kit.stream);
                assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
                scene_expect_equal(&s, &plain);
            }
            expect_info(cache, n + 1, n + 1, 0, n + 1, 0);
            gpst_warp_destroy(warp);
        }
        gpst_graph_cache_destroy(cache);
        scene_end(&s);
        scene_end(&plain);
        kit_end(&kit);
    }
}

static gpst_result twice_host(const void* args) {
    const gpst_result result = graph_step_host(args);
    return GPST_FAILED(result) ? result : graph_step_host(args);
}

static void test_another_kernel_in_its_place(void** state) {
    gpst_kernel kernel = {"step", graph_step_host, NULL};
    uint64_t value = 1;
    test_step_args args;
    device_kit kit;
    (void)state;
    args.value = &value;
    args.add = 0;
    kit_start(&kit, "cpu");
    gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
    for (int n = 0; n < 6; n++) {
        kernel.host = n < 3 ? graph_step_host : twice_host;
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        assert_int_equal(gpst_kernel_enqueue(&kernel, &args, sizeof args, kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_cache_run(cache, kit.stream), GPST_OK);
    }
    assert_int_equal(value, 27 * 729);
    expect_info(cache, 2, 2, 0, 2, 0);
    gpst_graph_cache_destroy(cache);
    kit_end(&kit);
}

/* ---- what is kept is bounded ------------------------------------------------------------------------ */

static void test_max_graphs(void** state) {
    static const uint8_t longer[] = {3, 0, 1, 5, 3, 0, 2, 4, 3, 0, 3, 4};
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        static twins t;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 2, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (uint8_t add = 1; add <= 3; add++) {
            twins_add(&t, cache, add);
            twins_add(&t, cache, add);
        }
        expect_info(cache, 0, 2, 1, 3, 0); /* the third took the place, and the topology, of the first */
        assert_int_equal(info_of(cache).evictions, 1);
        assert_int_equal(info_of(cache).n_graphs, 2);
        twins_add(&t, cache, 2);
        twins_add(&t, cache, 3);
        expect_info(cache, 2, 2, 1, 3, 0);
        twins_add(&t, cache, 1); /* it went, so it is new again */
        twins_add(&t, cache, 1);
        expect_info(cache, 2, 2, 2, 4, 0);
        twins_add(&t, cache, 3); /* that was not the oldest */
        expect_info(cache, 3, 2, 2, 4, 0);
        twins_run(&t, cache, longer, sizeof longer);
        twins_run(&t, cache, longer, sizeof longer);
        expect_info(cache, 3, 3, 2, 5, 0); /* of another topology nothing is taken over */
        assert_int_equal(info_of(cache).evictions, 3);
        assert_int_equal(info_of(cache).n_graphs, 2);
        twins_run(&t, cache, longer, sizeof longer);
        twins_add(&t, cache, 3);
        expect_info(cache, 5, 3, 2, 5, 0);
        twins_compare(&t);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* Where device memory is the host's, what a graph takes is known. */
static void test_max_bytes(void** state) {
    static const char* const names[] = {"cpu", "sim:launch_us=0"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        device_kit kit;
        static twins t;
        kit_start(&kit, names[d]);
        twins_begin(&t, kit.device, kit.stream);
        gpst_graph_cache* cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        twins_add(&t, cache, 1);
        twins_add(&t, cache, 1);
        const uint64_t bytes = info_of(cache).device_bytes;
        assert_true(bytes > 0);
        gpst_graph_cache_destroy(cache);

        cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 2 * bytes + bytes / 2);
        for (uint8_t add = 1; add <= 5; add++) {
            twins_add(&t, cache, add);
            twins_add(&t, cache, add);
            assert_true(info_of(cache).device_bytes <= 2 * bytes);
        }
        expect_info(cache, 0, 5, 0, 5, 0);
        assert_int_equal(info_of(cache).evictions, 3);
        assert_int_equal(info_of(cache).n_graphs, 2);
        gpst_graph_cache_destroy(cache);

        cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, bytes - 1); /* not even one */
        for (int n = 0; n < 4; n++)
            twins_add(&t, cache, 1);
        expect_info(cache, 0, 0, 0, 1, 3);
        assert_int_equal(info_of(cache).n_graphs, 0);
        assert_non_null(strstr(info_of(cache).reason, "max_bytes="));
        gpst_graph_cache_destroy(cache);
        twins_compare(&t);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* Graphs of a context's device are in its account for as long as they are kept. */
static void test_charged_to_the_context(void** state) {
    static twins t;
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_stream* stream = NULL;
    gpst_memory_use before, now;
    (void)state;
    desc.backend = "sim:launch_us=0";
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    gpst_device* const device = gpst_context_device(context);
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    twins_begin(&t, device, stream);
    gpst_graph_cache* const cache = cache_of(device, GPST_GRAPHS_ALWAYS, 0, 0);
    gpst_context_query_memory(context, &before);
    twins_add(&t, cache, 1);
    twins_add(&t, cache, 1);
    gpst_context_query_memory(context, &now);
    assert_true(info_of(cache).device_bytes > 0);
    assert_int_equal(now.device.charged_bytes, before.device.charged_bytes + info_of(cache).device_bytes);
    twins_compare(&t);
    gpst_graph_cache_destroy(cache);
    gpst_context_query_memory(context, &now);
    assert_int_equal(now.device.charged_bytes, before.device.charged_bytes);
    twins_end(&t);
    gpst_stream_destroy(stream);
    gpst_context_destroy(context);
}

/* A graph that the context's budget has no room for is none: the pieces run, and the account is kept. */
static void test_no_room_in_the_context(void** state) {
    static twins t;
    gpst_context_desc desc = GPST_ZERO;
    gpst_pool_desc pool_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_stream* stream = NULL;
    gpst_pool* pool = NULL;
    gpst_buffer loans[64];
    uint32_t n_loans = 0;
    gpst_memory_use use;
    (void)state;
    desc.backend = "sim:launch_us=0";
    desc.max_device_bytes = 64 * 4096;
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    gpst_device* const device = gpst_context_device(context);
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    twins_begin(&t, device, stream);
    gpst_context_query_memory(context, &use);
    pool_desc.kind = GPST_MEMORY_DEVICE;
    assert_int_equal(gpst_pool_create(context, &pool_desc, &pool), GPST_OK);
    for (uint64_t left = use.device.budget_bytes - use.device.charged_bytes; left >= 4096; left -= 4096)
        assert_int_equal(gpst_pool_acquire(pool, 4096, 0, &loans[n_loans++]), GPST_OK);
    gpst_graph_cache* const cache = cache_of(device, GPST_GRAPHS_ALWAYS, 0, 0);
    for (uint32_t run = 0; run < 4; run++) {
        twins_add(&t, cache, 1);
        twins_compare(&t);
        gpst_context_query_memory(context, &use);
        assert_true(use.device.charged_bytes <= use.device.budget_bytes);
        assert_true(use.device.peak_bytes <= use.device.budget_bytes);
    }
    assert_int_equal(info_of(cache).n_graphs, 0);
    assert_int_equal(info_of(cache).device_bytes, 0);
    assert_non_null(strstr(info_of(cache).reason, "max_device_bytes="));
    gpst_graph_cache_destroy(cache);
    twins_end(&t);
    gpst_stream_destroy(stream);
    while (n_loans > 0)
        gpst_pool_release(pool, &loans[--n_loans]);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    gpst_context_destroy(context);
}

/* A job whose every frame has another shape: neither memory nor allocations grow. */
static void test_many_shapes(void** state) {
    uint64_t random = test_seed(21);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        uint64_t most_bytes[2] = {0, 0}, most_blocks[2] = {0, 0};
        device_kit kit;
        static twins t;
        kit_start(&kit, device_name(d));
        const int n_shapes = TEST_INSTRUMENTED || gpst_stream_native(kit.stream) ? 5000 : 100000;
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (int n = 0; n < n_shapes; n++) {
            const int half = n >= n_shapes / 2;
            uint8_t bytes[12];
            for (int i = 0; i < 12; i++)
                bytes[i] = (uint8_t)test_random(&random);
            bytes[0] = 2;
            bytes[4] = 0;
            bytes[8] = 3;
            twins_run(&t, cache, bytes, sizeof bytes);
            twins_run(&t, cache, bytes, sizeof bytes);
            const uint64_t live = gpsti_a64_load(&kit.memory.live_bytes);
            const uint64_t blocks = gpsti_a64_load(&kit.memory.live_blocks);
            most_bytes[half] = live > most_bytes[half] ? live : most_bytes[half];
            most_blocks[half] = blocks > most_blocks[half] ? blocks : most_blocks[half];
            if (n % 1000 == 0)
                twins_compare(&t);
        }
        assert_true(most_bytes[1] <= most_bytes[0] + most_bytes[0] / 4);
        assert_true(most_blocks[1] <= most_blocks[0] + most_blocks[0] / 4);
        const gpst_graph_cache_info info = info_of(cache);
        assert_int_equal(info.n_graphs, 64);
        assert_int_equal(info.runs, 2 * (uint64_t)n_shapes);
        assert_int_equal(info.captures + info.updates, info.n_graphs + info.evictions);
        assert_int_equal(info.refused, 0);
        twins_compare(&t);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* ---- random sequences ---------------------------------------------------------------------------------- */

/* Of a pool of sequences, so that some come again soon, some late, and some after they were given up. */
static void test_random_runs(void** state) {
    enum { N_LISTS = 24, N_RUNS = 2000, MOST = 12 };
    static uint8_t lists[N_LISTS][MOST * OPS_EACH];
    size_t sizes[N_LISTS];
    uint64_t random = test_seed(33);
    (void)state;
    for (int i = 0; i < N_LISTS; i++) {
        sizes[i] = (1 + test_random(&random) % MOST) * OPS_EACH;
        for (size_t k = 0; k < sizes[i]; k++)
            lists[i][k] = (uint8_t)test_random(&random);
        if (i % 3 == 2) { /* the same topology with other addresses */
            memcpy(lists[i], lists[i - 1], sizes[i] = sizes[i - 1]);
            for (size_t k = 0; k < sizes[i]; k += OPS_EACH)
                lists[i][k + 1] ^= 1;
        }
    }
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        static twins t;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 9, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (int n = 0; n < N_RUNS; n++) {
            const uint64_t drawn = test_random(&random);
            const size_t i = drawn % 4 ? drawn / 4 % 8 : drawn / 4 % N_LISTS;
            twins_run(&t, cache, lists[i], sizes[i]);
            twins_compare(&t);
        }
        const gpst_graph_cache_info info = info_of(cache);
        assert_true(info.hits > 100 && info.captures > 9 && info.updates > 0 && info.misses > 9);
        assert_true(info.n_graphs == 9 && info.refused == 0);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* A graph that goes while it is on its way, and the lists of its kernels with it. */
static void test_evicted_while_queued(void** state) {
    gpst_warp* warps[3];
    (void)state;
    for (int w = 0; w < 3; w++)
        warps[w] = scene_warp(15 * w);
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene s, plain;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 1, 0);
        scene_begin(&s, &kit, warps[0]);
        scene_begin(&plain, &kit, warps[0]);
        scene_feed(&s, 3);
        scene_feed(&plain, 3);
        for (int n = 0; n < 12; n++) {
            s.warp = plain.warp = warps[n / 4 % 3];
            run_scene(cache, &s, kit.stream);
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
            if (n == 10)
                gpst_graph_cache_trim(cache);
        }
        scene_expect_equal(&s, &plain);
        gpst_graph_cache_destroy(cache);
        scene_end(&s);
        scene_end(&plain);
        kit_end(&kit);
    }
    for (int w = 0; w < 3; w++)
        gpst_warp_destroy(warps[w]);
}

/* Piece by piece the lists of one recording are still read when the next one is made: of two targets in turns each gets
   its own. */
static void test_pieces_while_queued(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene a, b, plain;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_OFF, 0, 0);
        scene_begin(&a, &kit, warp);
        scene_begin(&b, &kit, warp);
        scene_begin(&plain, &kit, warp);
        scene_feed(&a, 3);
        scene_feed(&b, 3);
        scene_feed(&plain, 3);
        run_scene(cache, &a, kit.stream);
        run_scene(cache, &b, kit.stream);
        assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
        scene_expect_equal(&a, &plain);
        scene_expect_equal(&b, &plain);
        run_scene(cache, &a, kit.stream);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        gpst_graph_cache_destroy(cache);
        scene_end(&a);
        scene_end(&b);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* ---- threads --------------------------------------------------------------------------------------------- */

typedef struct player {
    gpst_device* device;
    gpst_graph_cache* cache;
    uint64_t seed;
} player;

static void play(void* argument) {
    player* const self = (player*)argument;
    twins* const t = (twins*)malloc(sizeof *t);
    gpst_stream* stream = NULL;
    assert_int_equal(gpst_stream_create(self->device, &stream), GPST_OK);
    twins_begin(t, self->device, stream);
    for (int n = 0; n < 300; n++) {
        gpst_graph_cache_info info;
        twins_add(t, self->cache, (uint8_t)(test_random(&self->seed) % 5));
        if (n % 10 == 0)
            twins_compare(t);
        gpst_graph_cache_query_info(self->cache, &info);
        if (n % 100 == 50)
            gpst_graph_cache_trim(self->cache);
    }
    twins_compare(t);
    twins_end(t);
    gpst_stream_destroy(stream);
    free(t);
}

static void test_threads(void** state) {
    enum { N = 4 };
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        gpsti_thread threads[N];
        player players[N];
        device_kit kit;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 7, 0);
        for (uint64_t i = 0; i < N; i++) {
            players[i].device = kit.device;
            players[i].cache = cache;
            players[i].seed = i + 1;
            assert_int_equal(gpsti_thread_start(&threads[i], play, &players[i], "player"), GPST_OK);
        }
        for (int i = 0; i < N; i++)
            gpsti_thread_join(&threads[i]);
        const gpst_graph_cache_info info = info_of(cache);
        assert_true(info.runs == N * 300 && info.hits > 0 && info.refused == 0 && info.n_graphs <= 7);
        gpst_graph_cache_destroy(cache);
        kit_end(&kit);
    }
}

/* Addresses that come once each: from the 17th run on one graph takes them, and every byte is where it belongs. */
static void test_new_addresses_each_time(void** state) {
    enum { N_RUNS = 60, PIECE = 256 };
    static uint8_t seen[N_RUNS * PIECE];
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, sizeof seen);
        uint8_t* const to = (uint8_t*)gpst_memory_data(memory);
        assert_int_equal(gpst_fill(to, 0xA5, sizeof seen, kit.stream), GPST_OK);
        for (int n = 0; n < N_RUNS; n++) {
            assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
            assert_int_equal(gpst_fill(to + n * PIECE, n, PIECE / 2, kit.stream), GPST_OK);
            assert_int_equal(gpst_fill(to + n * PIECE + PIECE / 2, 255 - n, PIECE / 2, kit.stream), GPST_OK);
            assert_int_equal(gpst_graph_cache_run(cache, kit.stream), GPST_OK);
        }
        assert_int_equal(gpst_copy(seen, to, sizeof seen, kit.stream), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        for (int i = 0; i < N_RUNS * PIECE; i++)
            assert_int_equal(seen[i], i % PIECE < PIECE / 2 ? i / PIECE : 255 - i / PIECE);
        const gpst_graph_cache_info info = info_of(cache);
        assert_int_equal(info.misses, 16);
        assert_int_equal(info.captures, 1);
        assert_int_equal(info.updates, N_RUNS - 17);
        assert_int_equal(info.n_graphs, 1);
        assert_int_equal(info.evictions, 0);
        gpst_graph_cache_destroy(cache);
        gpst_memory_destroy(memory);
        kit_end(&kit);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_time),
        cmocka_unit_test(test_what_differs),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_same_addresses),
        cmocka_unit_test(test_another_kernel_in_its_place),
        cmocka_unit_test(test_max_graphs),
        cmocka_unit_test(test_max_bytes),
        cmocka_unit_test(test_charged_to_the_context),
        cmocka_unit_test(test_no_room_in_the_context),
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_random_runs),
        cmocka_unit_test(test_evicted_while_queued),
        cmocka_unit_test(test_pieces_while_queued),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_new_addresses_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
