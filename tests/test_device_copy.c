/* tests/test_device_copy.c -- copies of bytes, rows and between devices, and the order of streams, byte for byte, the
   same on every backend. */
#include "test_device.h"

#define BYTES ((size_t)70001)
#define OWN_BYTES ((size_t)18 * 4096) /* pages of its own: drivers lock whole ones, and each once */
#define GUARD 0xA5

/* ---- every pair of memories ------------------------------------------------------------ */

enum { N_KINDS = 5 }; /* plain, page-locked, device, registered, and what the device knows nothing of */

typedef struct place {
    gpst_memory* memory;
    uint8_t* data;
    uint8_t* own; /* the user's */
    bool is_device;
} place;

static void place_make(gpst_device* device, int kind, place* out) {
    memset(out, 0, sizeof *out);
    if (kind >= 3)
        out->own = (uint8_t*)gpsti_aligned_alloc(OWN_BYTES, 4096);
    if (kind == 3)
        assert_int_equal(gpst_memory_register(device, out->own, BYTES, &out->memory), GPST_OK);
    else if (kind < 3)
        out->memory = memory_of(device, (gpst_memory_kind)(kind + 1), BYTES);
    out->data = kind == 4 ? out->own : (uint8_t*)gpst_memory_data(out->memory);
    out->is_device = kind == 2;
    assert_non_null(out->data);
}

static void place_free(place* p) {
    gpst_memory_destroy(p->memory);
    gpsti_aligned_free(p->own);
}

/* What it holds is known to the host: by way of plain memory where it is the device's. */
static void place_write(device_kit* kit, place* p, const uint8_t* from) {
    assert_int_equal(gpst_copy(p->data, from, BYTES, kit->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(kit->stream), GPST_OK);
}

static void place_read(device_kit* kit, const place* p, uint8_t* to) {
    assert_int_equal(gpst_copy(to, p->data, BYTES, kit->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(kit->stream), GPST_OK);
}

typedef struct copy_case {
    size_t dst_at, src_at, dst_pitch, src_pitch, row_bytes, n_rows;
} copy_case;

static const copy_case copy_cases[] = {
    {0, 0, BYTES, BYTES, BYTES, 1},   {1, 3, 1, 1, 1, 1},          {13, 7, 501, 501, 501, 1},
    {5, 2, 301, 263, 257, 101},       {0, 1, 257, 300, 257, 99},   {3, 0, 640, 640, 639, 100},
    {17, 31, 64, 96, 64, 33},         {0, 0, 700, 700, 700, 100},  {0, 0, 9, 11, 0, 5},
    {0, 0, 9, 11, 7, 0},              {2, 2, 7, 8, 1, 1000},
};

static void copy_and_compare(device_kit* kit, place* dst, place* src, const copy_case* c, uint64_t* random) {
    static uint8_t from[BYTES], to[BYTES], wanted[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (uint8_t)test_random(random);
    memset(wanted, GUARD, BYTES);
    place_write(kit, src, from);
    place_write(kit, dst, wanted);
    for (size_t r = 0; r < c->n_rows; r++)
        memcpy(wanted + c->dst_at + r * c->dst_pitch, from + c->src_at + r * c->src_pitch, c->row_bytes);
    if (c->n_rows == 1)
        assert_int_equal(gpst_copy(dst->data + c->dst_at, src->data + c->src_at, c->row_bytes, kit->stream), GPST_OK);
    else
        assert_int_equal(gpst_copy_rows(dst->data + c->dst_at, c->dst_pitch, src->data + c->src_at, c->src_pitch,
                                        c->row_bytes, c->n_rows, kit->stream),
                         GPST_OK);
    place_read(kit, dst, to);
    assert_memory_equal(to, wanted, BYTES);
}

static void test_every_pair(void** state) {
    uint64_t random = test_seed(7);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        kit_start(&kit, device_name(d));
        for (int pair = 0; pair < N_KINDS * N_KINDS; pair++) {
            place dst, src;
            place_make(kit.device, pair % N_KINDS, &dst);
            place_make(kit.device, pair / N_KINDS, &src);
            for (size_t c = 0; c < sizeof copy_cases / sizeof copy_cases[0]; c++)
                copy_and_compare(&kit, &dst, &src, &copy_cases[c], &random);
            place_free(&dst);
            place_free(&src);
        }
        kit_end(&kit);
    }
}

static void test_fill(void** state) {
    static uint8_t seen[1000], wanted[1000];
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        kit_start(&kit, device_name(d));
        gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, sizeof seen);
        uint8_t* const data = (uint8_t*)gpst_memory_data(memory);
        memset(seen, GUARD, sizeof seen);
        memset(wanted, 0x11, sizeof wanted);
        memset(wanted + 13, 0xEE, 501);
        assert_int_equal(gpst_fill(data, 0x11, sizeof seen, kit.stream), GPST_OK);
        assert_int_equal(gpst_fill(data + 13, 0x4EE, 501, kit.stream), GPST_OK); /* its low 8 bits */
        assert_int_equal(gpst_fill(data, 1, 0, kit.stream), GPST_OK);
        assert_int_equal(gpst_fill(NULL, 1, 0, kit.stream), GPST_OK);
        assert_int_equal(gpst_copy(NULL, NULL, 0, kit.stream), GPST_OK);
        assert_int_equal(gpst_copy(seen, data, sizeof seen, kit.stream), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        assert_memory_equal(seen, wanted, sizeof seen);
        gpst_memory_destroy(memory);
        kit_end(&kit);
    }
}

/* ---- between devices --------------------------------------------------------------------- */

#define PEER_BYTES (((size_t)9 << 20) + 13) /* three pieces through the host */

static void copy_peer(gpst_device* from, gpst_device* to) {
    gpst_memory* const src = memory_of(from, GPST_MEMORY_DEVICE, PEER_BYTES);
    gpst_memory* const dst = memory_of(to, GPST_MEMORY_DEVICE, PEER_BYTES + 1);
    uint8_t *host = (uint8_t*)malloc(PEER_BYTES), *seen = (uint8_t*)malloc(PEER_BYTES + 1);
    gpst_stream *stream = NULL, *other = NULL;
    assert_int_equal(gpst_stream_create(from, &stream), GPST_OK);
    assert_int_equal(gpst_stream_create(to, &other), GPST_OK);
    for (size_t i = 0; i < PEER_BYTES; i++)
        host[i] = (uint8_t)(i * 7 + (i >> 11));
    memset(seen, 0, PEER_BYTES + 1);
    assert_int_equal(gpst_fill(gpst_memory_data(dst), GUARD, PEER_BYTES + 1, other), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(other), GPST_OK);
    assert_int_equal(gpst_copy(gpst_memory_data(src), host, PEER_BYTES, stream), GPST_OK);
    assert_int_equal(gpst_copy_peer(gpst_memory_data(dst), to, gpst_memory_data(src), PEER_BYTES, stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(stream), GPST_OK);
    assert_int_equal(gpst_copy(seen, gpst_memory_data(dst), PEER_BYTES + 1, other), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(other), GPST_OK);
    assert_memory_equal(seen, host, PEER_BYTES);
    assert_int_equal(seen[PEER_BYTES], GUARD);
    assert_int_equal(gpst_copy_peer(NULL, to, NULL, 0, stream), GPST_OK);
    gpst_stream_destroy(stream);
    gpst_stream_destroy(other);
    gpst_memory_destroy(src);
    gpst_memory_destroy(dst);
    free(host);
    free(seen);
}

static void test_peers(void** state) {
    (void)state;
    for (int pair = 0; pair < N_DEVICES * N_DEVICES; pair++) {
        const char *from = device_name(pair / N_DEVICES), *to = device_name(pair % N_DEVICES);
        device_kit a, b;
        if (!from || !to)
            continue;
        kit_start(&a, from);
        kit_start(&b, to);
        copy_peer(a.device, b.device);
        copy_peer(a.device, a.device);
        kit_end(&a);
        kit_end(&b);
    }
}

static void test_peers_fail(void** state) {
    static const char* const faults[] = {"fail_host_alloc=1", "fail_stream=2", "fail_copy=1"};
    static uint8_t bytes[100];
    (void)state;
    for (size_t f = 0; f < 3; f++) {
        char name[64];
        device_kit a, b;
        snprintf(name, sizeof name, "sim:%s", faults[f]);
        kit_start(&a, "cpu");
        kit_start(&b, name);
        gpst_memory* const memory = memory_of(b.device, GPST_MEMORY_DEVICE, sizeof bytes);
        const gpst_result result =
            gpst_copy_peer(gpst_memory_data(memory), b.device, bytes, sizeof bytes, a.stream);
        refused(result, f == 0 ? GPST_ERROR_MEMORY : GPST_ERROR_DEVICE, "gpst_copy_peer: ", "injected fault");
        assert_int_equal(gpst_copy_peer(gpst_memory_data(memory), b.device, bytes, sizeof bytes, a.stream), GPST_OK);
        gpst_memory_destroy(memory);
        kit_end(&a);
        kit_end(&b);
    }
}

/* ---- order -------------------------------------------------------------------------------- */

#define ORDER_BYTES ((size_t)1 << 20)

/* Uploads are slow: without the event the other stream would copy what was there before. */
static void run_in_order(const char* name) {
    device_kit kit;
    gpst_stream* other = NULL;
    gpst_event *arrived = NULL, *left = NULL;
    kit_start(&kit, name);
    gpst_memory* const up = memory_of(kit.device, GPST_MEMORY_PINNED, ORDER_BYTES);
    gpst_memory* const down = memory_of(kit.device, GPST_MEMORY_PINNED, ORDER_BYTES);
    gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, ORDER_BYTES);
    uint8_t *const source = (uint8_t*)gpst_memory_data(up), *const seen = (uint8_t*)gpst_memory_data(down);
    assert_int_equal(gpst_stream_create(kit.device, &other), GPST_OK);
    assert_int_equal(gpst_event_create(kit.device, &arrived), GPST_OK);
    assert_int_equal(gpst_event_create(kit.device, &left), GPST_OK);
    for (int round = 1; round <= 5; round++) {
        assert_int_equal(gpst_event_wait(arrived, GPST_FOREVER), GPST_OK); /* the host writes source again */
        memset(source, round, ORDER_BYTES);
        memset(seen, GUARD, ORDER_BYTES);
        assert_int_equal(gpst_stream_wait(kit.stream, left), GPST_OK); /* never recorded, the first time */
        assert_int_equal(gpst_copy(gpst_memory_data(memory), source, ORDER_BYTES, kit.stream), GPST_OK);
        assert_int_equal(gpst_event_record(arrived, kit.stream), GPST_OK);
        assert_int_equal(gpst_stream_wait(other, arrived), GPST_OK);
        assert_int_equal(gpst_copy(seen, gpst_memory_data(memory), ORDER_BYTES, other), GPST_OK);
        assert_int_equal(gpst_event_record(left, other), GPST_OK);
        assert_int_equal(gpst_event_wait(left, INT64_C(100000000000)), GPST_OK);
        assert_int_equal(gpst_event_wait(left, 0), GPST_OK);
        assert_int_equal(gpst_event_wait(arrived, 0), GPST_OK);
        for (size_t i = 0; i < ORDER_BYTES; i += 4093)
            assert_int_equal(seen[i], round);
        int64_t elapsed_ns = -1;
        assert_int_equal(gpst_event_elapsed(arrived, left, &elapsed_ns), GPST_OK);
        assert_true(elapsed_ns >= -2000); /* a GPU's clock has microseconds */
    }
    gpst_event_destroy(arrived);
    gpst_event_destroy(left);
    gpst_stream_destroy(other);
    gpst_memory_destroy(up);
    gpst_memory_destroy(down);
    gpst_memory_destroy(memory);
    kit_end(&kit);
}

static void test_order(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++)
        run_in_order(device_name(d));
    run_in_order("sim:h2d_gbps=0.1");
}

static gpst_result gate_host(const void* args, const gpsti_exec* exec) {
    gpsti_a32* open;
    (void)exec;
    memcpy(&open, args, sizeof open);
    while (gpsti_a32_load(open) == 0)
        gpsti_futex_wait(open, 0, GPST_FOREVER);
    return GPST_OK;
}

/* An event that is ahead until the gate opens: asked for, waited for in vain, waited for. */
static void test_waiting(void** state) {
    static const gpsti_kernel gate = {"gate", gate_host, NULL, NULL};
    static uint8_t bytes[1 << 20];
    gpsti_a32 open, *where = &open;
    device_kit kit;
    gpst_event *start = NULL, *end = NULL;
    int64_t elapsed_ns = 5;
    (void)state;
    kit_start(&kit, "sim:h2d_gbps=0.1"); /* 10.5 ms */
    gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, sizeof bytes);
    gpsti_a32_store(&open, 0);
    assert_int_equal(gpst_event_create(kit.device, &start), GPST_OK);
    assert_int_equal(gpst_event_create(kit.device, &end), GPST_OK);
    assert_int_equal(gpst_event_record(start, kit.stream), GPST_OK);
    assert_int_equal(gpst_copy(gpst_memory_data(memory), bytes, sizeof bytes, kit.stream), GPST_OK);
    assert_int_equal(
        kit.device->device->i->launch(kit.stream->stream, &gate, (const void*)&where, sizeof where, NULL), GPST_OK);
    assert_int_equal(gpst_event_record(end, kit.stream), GPST_OK);
    refused(gpst_event_wait(end, 0), GPST_ERROR_WOULD_BLOCK, "gpst_event_wait: ", "not done");
    refused(gpst_event_wait(end, 2000000), GPST_ERROR_TIMEOUT, "gpst_event_wait: timeout_ns=2000000: ", "not done");
    refused(gpst_event_elapsed(start, end, &elapsed_ns), GPST_ERROR_WOULD_BLOCK, "gpst_event_elapsed: ", "not done");
    assert_int_equal(elapsed_ns, 0);
    gpsti_a32_store(&open, 1);
    gpsti_futex_wake(&open, 1);
    assert_int_equal(gpst_event_wait(end, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_event_elapsed(start, end, &elapsed_ns), GPST_OK);
    assert_true(elapsed_ns >= 10000000);
    assert_int_equal(gpst_event_elapsed(end, start, &elapsed_ns), GPST_OK);
    assert_true(elapsed_ns <= -10000000);
    gpst_event_destroy(start);
    gpst_event_destroy(end);
    gpst_memory_destroy(memory);
    kit_end(&kit);
}

/* ---- arguments ---------------------------------------------------------------------------- */

static void test_arguments(void** state) {
    static uint8_t a[100], b[100];
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit, other;
        gpst_event *event = NULL, *foreign = NULL;
        int64_t ns = 5;
        kit_start(&kit, device_name(d));
        kit_start(&other, device_name(d));
        gpst_stream* const s = kit.stream;
        const gpst_result bad = GPST_ERROR_ARGUMENT;
        assert_int_equal(gpst_event_create(kit.device, &event), GPST_OK);
        assert_int_equal(gpst_event_create(other.device, &foreign), GPST_OK);
        refused(gpst_copy(a, b, 10, NULL), bad, "gpst_copy: stream=NULL", "");
        refused(gpst_copy(NULL, b, 10, s), bad, "gpst_copy: dst=NULL", "bytes=10");
        refused(gpst_copy(a, NULL, 10, s), bad, "gpst_copy: src=NULL", "bytes=10");
        refused(gpst_copy(a, b, SIZE_MAX, s), GPST_ERROR_OVERFLOW, "gpst_copy: bytes=", "");
        refused(gpst_copy_rows(a, 10, b, 10, 5, 2, NULL), bad, "gpst_copy_rows: stream=NULL", "");
        refused(gpst_copy_rows(NULL, 10, b, 10, 5, 2, s), bad, "gpst_copy_rows: dst=NULL", "");
        refused(gpst_copy_rows(a, 10, NULL, 10, 5, 2, s), bad, "gpst_copy_rows: src=NULL", "");
        refused(gpst_copy_rows(a, 4, b, 10, 5, 2, s), bad, "gpst_copy_rows: dst_pitch_bytes=4: ", "row_bytes=5");
        refused(gpst_copy_rows(a, 10, b, 4, 5, 2, s), bad, "gpst_copy_rows: src_pitch_bytes=4: ", "row_bytes=5");
        refused(gpst_copy_rows(a, SIZE_MAX / 4, b, 10, 5, 9, s), GPST_ERROR_OVERFLOW, "dst_pitch_bytes=", "9 rows");
        refused(gpst_copy_rows(a, 10, b, SIZE_MAX / 4, 5, 9, s), GPST_ERROR_OVERFLOW, "src_pitch_bytes=", "9 rows");
        refused(gpst_copy_peer(a, NULL, b, 5, s), bad, "gpst_copy_peer: dst_device=NULL", "");
        refused(gpst_copy_peer(a, kit.device, b, 5, NULL), bad, "gpst_copy_peer: stream=NULL", "");
        refused(gpst_copy_peer(NULL, kit.device, b, 5, s), bad, "gpst_copy_peer: dst=NULL", "");
        refused(gpst_fill(a, 1, 5, NULL), bad, "gpst_fill: stream=NULL", "");
        refused(gpst_fill(NULL, 1, 5, s), bad, "gpst_fill: dst=NULL", "");
        refused(gpst_stream_synchronize(NULL), bad, "gpst_stream_synchronize: stream=NULL", "");
        refused(gpst_stream_wait(NULL, event), bad, "gpst_stream_wait: stream=NULL", "");
        refused(gpst_stream_wait(s, NULL), bad, "gpst_stream_wait: event=NULL", "");
        refused(gpst_stream_wait(s, foreign), bad, "gpst_stream_wait: event: ", "stream's device");
        refused(gpst_event_record(NULL, s), bad, "gpst_event_record: event=NULL", "");
        refused(gpst_event_record(event, NULL), bad, "gpst_event_record: stream=NULL", "");
        refused(gpst_event_record(foreign, s), bad, "gpst_event_record: event: ", "stream's device");
        refused(gpst_event_wait(NULL, 0), bad, "gpst_event_wait: event=NULL", "");
        refused(gpst_event_wait(event, -1), bad, "gpst_event_wait: timeout_ns=-1", "");
        refused(gpst_event_elapsed(event, event, NULL), bad, "gpst_event_elapsed: elapsed_ns=NULL", "");
        refused(gpst_event_elapsed(NULL, event, &ns), bad, "gpst_event_elapsed: event=NULL", "");
        refused(gpst_event_elapsed(event, foreign, &ns), bad, "gpst_event_elapsed: start, end", "");
        refused(gpst_event_elapsed(event, event, &ns), GPST_ERROR_STATE, "gpst_event_elapsed: ", "never recorded");
        assert_int_equal(ns, 0);
        gpst_event_destroy(event);
        gpst_event_destroy(foreign);
        kit_end(&other);
        kit_end(&kit);
    }
}

/* Reading on behind device memory is no copy from the host. */
static void test_beyond_the_end(void** state) {
    static uint8_t host[8192];
    device_kit kit;
    (void)state;
    kit_start(&kit, "sim");
    gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, 4096);
    uint8_t* const data = (uint8_t*)gpst_memory_data(memory);
    refused(gpst_copy(data + 1, host, 4096, kit.stream), GPST_ERROR_ARGUMENT, "gpst_copy: ", "dst: 4096 bytes reach");
    refused(gpst_copy(host, data + 1, 4096, kit.stream), GPST_ERROR_ARGUMENT, "gpst_copy: ", "src: 4096 bytes reach");
    refused(gpst_fill(host, 1, 4096, kit.stream), GPST_ERROR_ARGUMENT, "gpst_fill: ", "must be device memory");
    gpst_memory_destroy(memory);
    kit_end(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair), cmocka_unit_test(test_fill),      cmocka_unit_test(test_peers),
        cmocka_unit_test(test_peers_fail), cmocka_unit_test(test_order),     cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_arguments),  cmocka_unit_test(test_beyond_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
