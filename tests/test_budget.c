/* tests/test_budget.c -- how much memory a context uses and for what: accounts, soft marks and their alert, memory
   given back on request, and what the log says when there is none left or something was not given back. */
#include "test.h"

#include "test_allocator.h"

#define PAGE ((size_t)4096)
#define MIB ((uint64_t)1 << 20)

/* ---- a context that says what it does --------------------------------------------------------- */

typedef struct budget_kit budget_kit;
struct budget_kit {
    gpst_context_desc desc;
    gpst_context* context;
    test_memory memory;
    /* What the log got, a line a message. */
    gpsti_mutex mutex;
    gpsti_a32 n_lines;
    char text[16384];
    /* What alerts got. */
    gpsti_a32 n_alerts;
    gpst_memory_use use; /* of the latest */
    uint64_t thread;
    void (*inside)(budget_kit* kit);
    gpst_pool* pool;
    gpst_buffer buffer;
};

static void kit_log(void* user_data, gpst_log_level level, uint64_t item, const char* message, const char* file,
                    int line) {
    budget_kit* const kit = (budget_kit*)user_data;
    (void)item;
    (void)file;
    (void)line;
    gpsti_mutex_lock(&kit->mutex);
    const size_t n = strlen(kit->text);
    gpsti_format(kit->text + n, sizeof kit->text - n, "%d %s\n", (int)level, message);
    (void)gpsti_a32_add(&kit->n_lines, 1);
    gpsti_mutex_unlock(&kit->mutex);
}

static void kit_alert(void* user_data, const gpst_memory_use* use) {
    budget_kit* const kit = (budget_kit*)user_data;
    if (gpsti_a32_add(&kit->n_alerts, 1) == 0 || !kit->inside)
        kit->use = *use;
    if (kit->inside)
        kit->inside(kit);
}

static budget_kit* kit_start(const char* backend, uint64_t budget_bytes) {
    static budget_kit kit;
    memset(&kit, 0, sizeof kit);
    assert_int_equal(gpsti_mutex_init(&kit.mutex), GPST_OK);
    kit.desc.allocator = test_memory_hooks(&kit.memory);
    kit.desc.logger.func = kit_log;
    kit.desc.logger.user_data = &kit;
    kit.desc.backend = backend;
    kit.desc.n_workers = 1;
    kit.desc.max_host_bytes = kit.desc.max_device_bytes = budget_bytes;
    kit.desc.max_kept_bytes = budget_bytes;
    kit.desc.memory_marks.alert = kit_alert;
    kit.desc.memory_marks.user_data = &kit;
    return &kit;
}

static budget_kit* kit_open(const char* backend, uint64_t budget_bytes) {
    budget_kit* const kit = kit_start(backend, budget_bytes);
    assert_int_equal(gpst_context_create(&kit->desc, &kit->context), GPST_OK);
    return kit;
}

static void kit_close(budget_kit* kit) {
    gpst_context_destroy(kit->context);
    test_memory_check(&kit->memory);
    gpsti_mutex_term(&kit->mutex);
}

static gpst_memory_use use_of(const budget_kit* kit) {
    gpst_memory_use use;
    memset(&use, 0xA5, sizeof use);
    gpst_context_query_memory(kit->context, &use);
    return use;
}

static gpst_memory* take(const budget_kit* kit, gpst_memory_kind kind, size_t bytes) {
    gpst_memory* memory = NULL;
    assert_int_equal(gpst_memory_create(gpst_context_device(kit->context), kind, bytes, &memory), GPST_OK);
    return memory;
}

/* So much of the device is kept, in pieces of a page. */
static void keep_pages(const budget_kit* kit, int n) {
    gpst_memory* pieces[128];
    for (int i = 0; i < n; i++)
        pieces[i] = take(kit, GPST_MEMORY_DEVICE, PAGE);
    for (int i = 0; i < n; i++)
        gpst_memory_destroy(pieces[i]);
}

static gpst_pool* pool_of(const budget_kit* kit, gpst_memory_kind kind, const char* tag) {
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    desc.kind = kind;
    desc.tag = tag;
    assert_int_equal(gpst_pool_create(kit->context, &desc, &pool), GPST_OK);
    return pool;
}

/* ---- accounts ----------------------------------------------------------------------------------- */

static void test_accounts(void** state) {
    budget_kit* const kit = kit_open("sim:memory_mb=64,others_mb=8", 16 * MIB);
    gpst_buffer a, b;
    gpst_memory_use use;
    (void)state;
    for (int on_device = 0; on_device < 2; on_device++) {
        gpst_pool* const pool = pool_of(kit, on_device ? GPST_MEMORY_DEVICE : GPST_MEMORY_HOST, "frames");
        const gpst_memory_account* const its = on_device ? &use.device : &use.host;
        assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &a), GPST_OK);
        assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &b), GPST_OK);
        gpst_pool_release(pool, &a);
        gpst_memory_destroy(take(kit, on_device ? GPST_MEMORY_DEVICE : GPST_MEMORY_HOST, 5 * PAGE));
        use = use_of(kit);
        assert_int_equal(its->budget_bytes, 16 * MIB);
        assert_int_equal(its->charged_bytes, 9 * PAGE);
        assert_int_equal(its->lent_bytes, 3 * PAGE);
        assert_int_equal(its->free_bytes, PAGE);
        assert_int_equal(its->kept_bytes, 5 * PAGE);
        assert_int_equal(its->peak_bytes, 9 * PAGE);
        gpst_pool_release(pool, &b);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        gpst_context_trim(kit->context);
        use = use_of(kit);
        assert_int_equal(its->charged_bytes + its->lent_bytes + its->free_bytes + its->kept_bytes, 0);
        assert_int_equal(its->peak_bytes, 9 * PAGE);
    }
    gpst_memory* const memory = take(kit, GPST_MEMORY_DEVICE, MIB);
    use = use_of(kit);
    assert_int_equal(use.device_total_bytes, 64 * MIB);
    assert_int_equal(use.device_free_bytes, 55 * MIB);
    assert_int_equal(use.device_others_bytes, 8 * MIB);
    assert_true(use.alert_part == 0.9 && use.target_part > 0.8499 && use.target_part < 0.8501);
    assert_true(!use.above_budget && !use.above_device && use.n_alerts == 0);
    gpst_memory_destroy(memory);
    memset(&use, 0xA5, sizeof use);
    gpst_context_query_memory(NULL, &use);
    assert_int_equal(use.device_total_bytes + use.host.budget_bytes, 0);
    gpst_context_query_memory(kit->context, NULL);
    kit_close(kit);
}

/* ---- marks ----------------------------------------------------------------------------------------- */

static void test_bad_marks(void** state) {
    static const struct {
        double alert, target;
        const char* named;
    } bad[] = {{-0.1, 0, "alert_part=-0.1: must be 0 (0.9) .. 1"},
               {1.1, 0, "alert_part=1.1"},
               {0, 0.91, "target_part=0.91: must be 0 (default) .. 0.9"},
               {0.5, 0.6, "target_part=0.6"},
               {0.5, -1, "target_part=-1"}};
    budget_kit* const kit = kit_start("cpu", 0);
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kit->desc.memory_marks.alert_part = bad[i].alert;
        kit->desc.memory_marks.target_part = bad[i].target;
        assert_int_equal(gpst_context_create(&kit->desc, &kit->context), GPST_ERROR_ARGUMENT);
        test_reason_has("gpst_context_create: desc.memory_marks.", bad[i].named);
    }
    const volatile double zero = 0;
    kit->desc.memory_marks.target_part = 0;
    kit->desc.memory_marks.alert_part = zero / zero;
    assert_int_equal(gpst_context_create(&kit->desc, &kit->context), GPST_ERROR_ARGUMENT);
    kit->desc.memory_marks.alert_part = 0.18;
    assert_int_equal(gpst_context_create(&kit->desc, &kit->context), GPST_OK);
    const gpst_memory_use use = use_of(kit);
    assert_true(use.alert_part == 0.18 && use.target_part > 0.1699 && use.target_part < 0.1701);
    kit_close(kit);
}

/* What is kept goes down to the target, the oldest first, and the user is told once for each time. */
static void test_what_is_kept_goes_first(void** state) {
    static const char* const backends[] = {"sim", "cpu"};
    (void)state;
    for (int b = 0; b < 2; b++) {
        budget_kit* const kit = kit_open(backends[b], 100 * PAGE);
        keep_pages(kit, 40);
        gpst_memory* const first = take(kit, GPST_MEMORY_DEVICE, 48 * PAGE);
        gpst_memory* const second = take(kit, GPST_MEMORY_DEVICE, 2 * PAGE);
        assert_int_equal(use_of(kit).device.charged_bytes, 90 * PAGE); /* not above it */
        assert_int_equal(gpsti_a32_load(&kit->n_alerts), 0);
        gpst_memory* const third = take(kit, GPST_MEMORY_DEVICE, 3 * PAGE);
        assert_int_equal(gpsti_a32_load(&kit->n_alerts), 1);
        assert_int_equal(kit->use.device.charged_bytes, 85 * PAGE);
        assert_int_equal(kit->use.device.lent_bytes, 53 * PAGE);
        assert_int_equal(kit->use.device.peak_bytes, 93 * PAGE);
        assert_int_equal(kit->use.n_alerts, 1);
        assert_true(kit->use.above_budget && !kit->use.above_device);
        gpst_memory* const fourth = take(kit, GPST_MEMORY_DEVICE, 5 * PAGE); /* it had fallen: armed again */
        assert_int_equal(gpsti_a32_load(&kit->n_alerts), 1);
        assert_false(use_of(kit).above_budget);
        gpst_memory* const fifth = take(kit, GPST_MEMORY_DEVICE, PAGE + 1);
        assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
        assert_int_equal(use_of(kit).device.charged_bytes, 85 * PAGE);
        assert_int_equal(gpsti_a32_load(&kit->n_lines), 0); /* INFO is not in this log */
        gpst_memory_destroy(first);
        gpst_memory_destroy(second);
        gpst_memory_destroy(third);
        gpst_memory_destroy(fourth);
        gpst_memory_destroy(fifth);
        kit_close(kit);
    }
}

/* Nothing is free: told once, however much is made, until use has been at the target; of the host nobody is told. */
static void test_hysteresis(void** state) {
    budget_kit* const kit = kit_start("sim", 100 * PAGE);
    gpst_memory* pieces[100];
    int n = 0;
    (void)state;
    kit->desc.max_kept_bytes = 1;
    kit->desc.logger.threshold = GPST_LOG_INFO;
    assert_int_equal(gpst_context_create(&kit->desc, &kit->context), GPST_OK);
    while (n < 100) {
        pieces[n++] = take(kit, GPST_MEMORY_DEVICE, PAGE);
        assert_int_equal(gpsti_a32_load(&kit->n_alerts), n > 90);
    }
    assert_non_null(strstr(kit->text, "3 device memory went above alert_part=0.9; now 372736 of max_device_bytes="
                                      "409600 are charged, 372736 of these lent; "));
    while (n > 86)
        gpst_memory_destroy(pieces[--n]);
    while (n < 100)
        pieces[n++] = take(kit, GPST_MEMORY_DEVICE, PAGE);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 1);
    assert_true(use_of(kit).above_budget);
    while (n > 85)
        gpst_memory_destroy(pieces[--n]);
    while (n < 100)
        pieces[n++] = take(kit, GPST_MEMORY_DEVICE, PAGE);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
    while (n > 0)
        gpst_memory_destroy(pieces[--n]);
    while (n < 100)
        pieces[n++] = take(kit, GPST_MEMORY_HOST, PAGE);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
    while (n > 0)
        gpst_memory_destroy(pieces[--n]);
    kit_close(kit);
}

/* 57.6 of 64 MiB are the mark, 54.4 the target, and others have 50 of them. */
static void test_what_others_use_counts(void** state) {
    budget_kit* const kit = kit_open("sim:memory_mb=64,others_mb=50", 32 * MIB);
    gpst_memory* pieces[8];
    (void)state;
    gpst_memory_destroy(take(kit, GPST_MEMORY_DEVICE, 4 * MIB));
    pieces[0] = take(kit, GPST_MEMORY_DEVICE, 2 * MIB);
    assert_int_equal(use_of(kit).device.kept_bytes, 4 * MIB);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 0);
    pieces[1] = take(kit, GPST_MEMORY_DEVICE, 2 * MIB); /* 58 */
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 1);
    assert_true(kit->use.above_device && !kit->use.above_budget);
    assert_int_equal(kit->use.device.kept_bytes, 0); /* 54 */
    assert_int_equal(kit->use.device_others_bytes, 50 * MIB);
    pieces[2] = take(kit, GPST_MEMORY_DEVICE, 3 * MIB); /* from below the target: armed again, but not above the mark */
    assert_false(use_of(kit).above_device);
    pieces[3] = take(kit, GPST_MEMORY_DEVICE, MIB); /* 58 */
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
    pieces[4] = take(kit, GPST_MEMORY_DEVICE, MIB);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
    for (int i = 0; i < 5; i++)
        gpst_memory_destroy(pieces[i]);
    kit_close(kit);
}

/* The device is asked for every half MiB: what is between two questions neither ends an alert nor hides that use was at
   the target. */
static void test_between_two_questions(void** state) {
    budget_kit* const kit = kit_start("sim:memory_mb=64,others_mb=50", 32 * MIB);
    gpst_memory* pieces[5];
    (void)state;
    kit->desc.max_kept_bytes = 1;
    assert_int_equal(gpst_context_create(&kit->desc, &kit->context), GPST_OK);
    pieces[0] = take(kit, GPST_MEMORY_DEVICE, 4 * MIB);
    pieces[1] = take(kit, GPST_MEMORY_DEVICE, MIB / 4);
    pieces[2] = take(kit, GPST_MEMORY_DEVICE, 4 * MIB); /* 58.25 */
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 1);
    pieces[3] = take(kit, GPST_MEMORY_DEVICE, PAGE);
    assert_true(use_of(kit).above_device);
    pieces[4] = take(kit, GPST_MEMORY_DEVICE, MIB / 2);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 1);
    for (int i = 2; i < 5; i++)
        gpst_memory_destroy(pieces[i]); /* 54.25 */
    pieces[2] = take(kit, GPST_MEMORY_DEVICE, MIB / 4);
    pieces[3] = take(kit, GPST_MEMORY_DEVICE, MIB / 4); /* 54.75, of which half a MiB is new */
    assert_false(use_of(kit).above_device);
    pieces[4] = take(kit, GPST_MEMORY_DEVICE, 4 * MIB);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
    for (int i = 0; i < 5; i++)
        gpst_memory_destroy(pieces[i]);
    kit_close(kit);
}

/* ---- who asks the device ----------------------------------------------------------------------------- */

static struct {
    const gpsti_backend_i* real;
    gpsti_backend_i i;
    uint32_t n_asked;
} asked;

static void count_memory_info(const gpsti_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
    asked.n_asked++;
    asked.real->memory_info(device, free_bytes, total_bytes);
}

/* Where memory of its own is made, and a 128th of it has been: two pages. Not where it is found, not for the host's,
   not on a device that has the host's. */
static void test_when_the_device_is_asked(void** state) {
    static const char* const backends[] = {"sim:memory_mb=1", "cpu"};
    (void)state;
    for (uint32_t b = 0; b < 2; b++) {
        budget_kit* const kit = kit_open(backends[b], 100 * PAGE);
        gpsti_device* const device = kit->context->device;
        asked.real = device->i;
        asked.i = *device->i;
        asked.i.memory_info = count_memory_info;
        asked.n_asked = 0;
        device->i = &asked.i;
        keep_pages(kit, 1);
        assert_int_equal(asked.n_asked, 0);
        keep_pages(kit, 2);
        assert_int_equal(asked.n_asked, 1 - b);
        keep_pages(kit, 3);
        assert_int_equal(asked.n_asked, 1 - b);
        gpst_memory_destroy(take(kit, GPST_MEMORY_HOST, 2 * PAGE));
        gpst_memory_destroy(take(kit, GPST_MEMORY_PINNED, 2 * PAGE));
        gpst_memory_destroy(take(kit, GPST_MEMORY_DEVICE, PAGE));
        assert_int_equal(asked.n_asked, 1 - b);
        gpst_memory_destroy(take(kit, GPST_MEMORY_DEVICE, 2 * PAGE));
        assert_int_equal(asked.n_asked, 2 - 2 * b);
        device->i = asked.real;
        kit_close(kit);
    }
}

/* ---- what an alert may do ------------------------------------------------------------------------------ */

static void inside_everything(budget_kit* kit) {
    char text[512];
    gpst_memory_use use;
    gpst_context_info info;
    gpst_tag_info tag;
    uint32_t n = 0;
    kit->thread++;
    if (kit->thread > 1) /* called from below: its own memory has crossed the mark */
        return;
    gpst_context_query_memory(kit->context, &use);
    gpst_context_query_info(kit->context, &info);
    gpst_context_query_tags(kit->context, &tag, 1, &n);
    assert_true(gpst_context_dump_memory(kit->context, text, sizeof text) > 0);
    assert_true(gpst_pool_dump(kit->pool, text, sizeof text) > 0);
    gpst_pool_release(kit->pool, &kit->buffer);
    gpst_pool_trim(kit->pool);
    gpst_context_trim(kit->context);
    gpst_memory* const own = take(kit, GPST_MEMORY_DEVICE, 62 * PAGE); /* a class of 64 */
    gpst_memory_destroy(own);
    gpst_context_trim(kit->context);
}

/* The crossing of 95 is made good by the callback, whose own 64 on top of 31 cross again. */
static void test_an_alert_may_use_the_context(void** state) {
    budget_kit* const kit = kit_open("sim", 100 * PAGE);
    gpst_buffer more;
    (void)state;
    kit->inside = inside_everything;
    kit->pool = pool_of(kit, GPST_MEMORY_DEVICE, "frames");
    assert_int_equal(gpst_pool_acquire(kit->pool, 64 * PAGE, 0, &kit->buffer), GPST_OK);
    assert_int_equal(gpst_pool_acquire(kit->pool, 31 * PAGE, 0, &more), GPST_OK); /* a class of 32 */
    assert_non_null(more.data);
    assert_int_equal(gpsti_a32_load(&kit->n_alerts), 2);
    assert_int_equal(kit->use.device.charged_bytes, 96 * PAGE);
    assert_int_equal(use_of(kit).device.charged_bytes, 32 * PAGE);
    gpst_pool_release(kit->pool, &more);
    assert_int_equal(gpst_pool_destroy(kit->pool), GPST_OK);
    kit_close(kit);
}

/* ---- on request ------------------------------------------------------------------------------------------ */

/* What is kept goes before what pools have; as little as gets there; and it is seen that something came back. */
static void test_shrink(void** state) {
    (void)state;
    for (int on_device = 0; on_device < 2; on_device++) {
        budget_kit* const kit = kit_open("sim", 100 * PAGE);
        const gpst_memory_kind kind = on_device ? GPST_MEMORY_DEVICE : GPST_MEMORY_PINNED;
        gpsti_memory* const memory = kit->context->memory;
        gpst_pool* const pool = pool_of(kit, kind, NULL);
        gpst_buffer a, b;
        assert_int_equal(gpsti_memory_shrink(memory, on_device != 0, 0), 0);
        assert_int_equal(gpst_pool_acquire(pool, 8 * PAGE, 0, &a), GPST_OK);
        assert_int_equal(gpst_pool_acquire(pool, 4 * PAGE, 0, &b), GPST_OK);
        gpst_memory* const first = take(kit, kind, 2 * PAGE);
        gpst_memory* const second = take(kit, kind, 3 * PAGE);
        gpst_pool_release(pool, &b);
        gpst_memory_destroy(first);
        gpst_memory_destroy(second);
        assert_int_equal(gpsti_memory_shrink(memory, on_device == 0, 0), 0); /* of the other */
        assert_int_equal(gpsti_memory_shrink(memory, on_device != 0, 17 * PAGE), 0);
        assert_int_equal(gpsti_memory_shrink(memory, on_device != 0, 17 * PAGE - 1), 2 * PAGE);
        assert_int_equal(gpsti_memory_shrink(memory, on_device != 0, 12 * PAGE), 3 * PAGE);
        assert_int_equal(gpsti_memory_shrink(memory, on_device != 0, 0), 4 * PAGE); /* the rest is on loan */
        gpst_pool_release(pool, &a);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        kit_close(kit);
    }
}

/* ---- texts -------------------------------------------------------------------------------------------------- */

static void has(const char* text, const char* part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void test_dumps(void** state) {
    budget_kit* const kit = kit_open("sim:memory_mb=64,others_mb=8", 16 * MIB);
    char text[2048], part[40];
    gpst_buffer a, b, c;
    (void)state;
    gpst_pool* const pool = pool_of(kit, GPST_MEMORY_DEVICE, "frames");
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &b), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, MIB, 0, &c), GPST_OK);
    gpst_pool_release(pool, &b);
    gpst_memory* const memory = take(kit, GPST_MEMORY_PINNED, 2 * PAGE);
    size_t n = gpst_pool_dump(pool, text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_string_equal(text, "pool \"frames\" of device memory: 1056768 bytes held, 1052672 of them lent, at most "
                              "1056768; 3 acquires, 3 allocations, 0 refusals; device, 4096 bytes each: 1 lent, 1 "
                              "free; device, 1048576 bytes each: 1 lent, 0 free\n");
    n = gpst_context_dump_memory(kit->context, text, sizeof text);
    assert_int_equal(n, strlen(text));
    has(text, "host memory: 8192 bytes charged of max_host_bytes=16777216, at most 8192: 8192 lent, 0 free in pools, 0 "
              "kept; pinned, 8192 bytes each: 1 lent, 0 free\n");
    has(text, "host memory on loan by tag: \"memory\" 8192 (at most 8192)\n");
    has(text, "device memory: 1056768 bytes charged of max_device_bytes=16777216, at most 1056768: 1052672 lent, 4096 "
              "free in pools, 0 kept; device, 4096 bytes each: 1 lent, 1 free; ");
    has(text, "device memory on loan by tag: \"frames\" 1052672 (at most 1056768)\n");
    has(text, "simulated device: 57663488 of 67108864 bytes are free\n");
    memset(part, 0xA5, sizeof part);
    assert_int_equal(gpst_context_dump_memory(kit->context, part, 20), n);
    assert_int_equal(strlen(part), 19);
    assert_int_equal(strncmp(part, text, 19), 0);
    assert_int_equal((uint8_t)part[20], 0xA5);
    assert_int_equal(gpst_context_dump_memory(kit->context, NULL, 0), n);
    assert_int_equal(gpst_context_dump_memory(NULL, part, sizeof part), 0);
    assert_string_equal(part, "");
    part[0] = 1;
    assert_int_equal(gpst_pool_dump(NULL, part, sizeof part), 0);
    assert_string_equal(part, "");
    assert_true(gpst_pool_dump(pool, NULL, 0) > 100);
    gpst_pool_release(pool, &a);
    gpst_pool_release(pool, &c);
    gpst_memory_destroy(memory);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    kit_close(kit);
}

/* The first refusal of each kind is explained, those that follow at once are not; the reason stays. */
static void test_refusals_are_explained(void** state) {
    budget_kit* const kit = kit_open("sim:oom_mb=1", 2 * MIB);
    gpst_buffer a, b;
    (void)state;
    kit->pool = pool_of(kit, GPST_MEMORY_DEVICE, "frames");
    assert_int_equal(gpst_pool_acquire(kit->pool, MIB, 0, &a), GPST_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(gpst_pool_acquire(kit->pool, PAGE, 0, &b), GPST_ERROR_DEVICE_MEMORY);
    assert_int_equal(gpsti_a32_load(&kit->n_lines), 4);
    has(kit->text, "2 no memory: backend sim: memory_alloc: bytes=4096: out of simulated memory");
    has(kit->text, "2 pool \"frames\" of device memory: 1048576 bytes held, ");
    has(kit->text, "2 device memory: 1048576 bytes charged of max_device_bytes=2097152, ");
    has(kit->text, "2 device memory on loan by tag: \"frames\" 1048576 (");
    test_reason_has("out of simulated memory", "bytes=4096");
    kit->text[0] = '\0';
    assert_int_equal(gpst_pool_acquire(kit->pool, 2 * MIB, 0, &b), GPST_ERROR_WOULD_BLOCK); /* that is no failure */
    assert_string_equal(kit->text, "");
    assert_int_equal(gpst_pool_acquire(kit->pool, 3 * MIB, 0, &b), GPST_ERROR_BUDGET);
    has(kit->text, "2 no memory: gpst_pool_acquire: bytes=3145728: takes 3145728, and 1048576 of the budget");
    assert_int_equal(gpsti_a32_load(&kit->n_lines), 8);
    gpst_memory* none = NULL;
    assert_int_equal(gpst_memory_create(gpst_context_device(kit->context), GPST_MEMORY_PINNED, 3 * MIB, &none),
                     GPST_ERROR_BUDGET);
    has(kit->text, "2 host memory: 0 bytes charged of max_host_bytes=2097152");
    assert_int_equal(gpsti_a32_load(&kit->n_lines), 11); /* there is no pool */
    test_reason_has("gpst_memory_create: bytes=3145728", "max_host_bytes");
    gpst_pool_release(kit->pool, &a);
    assert_int_equal(gpst_pool_destroy(kit->pool), GPST_OK);
    kit_close(kit);
}

/* What was forgotten is named by tag and size, and nothing is gone: it can be given back. */
static void test_leaks_are_named(void** state) {
    budget_kit* const kit = kit_open("cpu", 0);
    gpst_buffer a, b, c;
    (void)state;
    gpst_pool* const pool = pool_of(kit, GPST_MEMORY_DEVICE, "frames");
    assert_int_equal(gpst_pool_acquire(pool, 2 * PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &b), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &c), GPST_OK);
    gpst_pool_release(pool, &c);
    assert_int_equal(gpst_pool_destroy(pool), GPST_ERROR_STATE);
    test_reason_has("gpst_pool_destroy: 2 buffers are on loan, 12288 bytes of the tag \"frames\": ",
                    "release them first");
    has(kit->text, "1 gpst_pool_destroy: 2 buffers are on loan, 12288 bytes of the tag \"frames\"");
    has(kit->text, "1 pool \"frames\" of device memory: 24576 bytes held, ");
    has(kit->text, "device, 4096 bytes each: 1 lent, 0 free; device, 8192 bytes each: 1 lent, 0 free; ");
    gpst_memory* const memory = take(kit, GPST_MEMORY_HOST, PAGE);
    kit->text[0] = '\0';
    assert_int_equal(gpst_context_destroy(kit->context), GPST_ERROR_STATE);
    test_reason_has("gpst_context_destroy: 1 pipelines, pools, ", "and 1 memories, streams and events are there");
    has(kit->text, "1 gpst_context_destroy: 2 buffers of the tag \"frames\" never came back: 0 bytes of the host, "
                   "12288 of the device\n");
    has(kit->text, "1 gpst_context_destroy: 1 buffers of the tag \"memory\" never came back: 4096 bytes of the host, "
                   "0 of the device\n");
    ((volatile uint8_t*)a.data)[0] = ((volatile uint8_t*)b.data)[0] = 1;
    gpst_pool_release(pool, &a);
    gpst_pool_release(pool, &b);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    gpst_memory_destroy(memory);
    kit_close(kit);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

enum { N_THREADS = 4, N_TURNS = 300 };

static void inside_trims(budget_kit* kit) {
    gpst_memory_use use;
    gpst_context_query_memory(kit->context, &use);
    gpst_context_trim(kit->context);
}

static void turn(void* arg) {
    const budget_kit* const kit = (const budget_kit*)arg;
    uint32_t random = (uint32_t)(uintptr_t)&random;
    for (int i = 0; i < N_TURNS; i++) {
        gpst_memory* memory = NULL;
        random = random * 1664525u + 1013904223u;
        const gpst_result result = gpst_memory_create(gpst_context_device(kit->context), GPST_MEMORY_DEVICE,
                                                      (1 + (random >> 8) % 40) * PAGE, &memory);
        if (result != GPST_ERROR_BUDGET)
            gpst_memory_destroy(memory);
        if (i % 50 == 0)
            (void)gpsti_memory_shrink(kit->context->memory, true, 20 * PAGE);
    }
}

static void test_threads(void** state) {
    budget_kit* const kit = kit_open("sim", 100 * PAGE);
    gpsti_thread threads[N_THREADS];
    (void)state;
    kit->inside = inside_trims;
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(gpsti_thread_start(&threads[i], turn, kit, "turner"), GPST_OK);
    for (int i = 0; i < N_THREADS; i++)
        gpsti_thread_join(&threads[i]);
    gpst_context_trim(kit->context);
    const gpst_memory_use use = use_of(kit);
    assert_int_equal(use.device.charged_bytes, 0);
    assert_int_equal(use.n_alerts, gpsti_a32_load(&kit->n_alerts));
    assert_true(use.device.peak_bytes > 0 && use.device.peak_bytes <= 100 * PAGE);
    kit_close(kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accounts),
        cmocka_unit_test(test_bad_marks),
        cmocka_unit_test(test_what_is_kept_goes_first),
        cmocka_unit_test(test_hysteresis),
        cmocka_unit_test(test_what_others_use_counts),
        cmocka_unit_test(test_between_two_questions),
        cmocka_unit_test(test_when_the_device_is_asked),
        cmocka_unit_test(test_an_alert_may_use_the_context),
        cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_dumps),
        cmocka_unit_test(test_refusals_are_explained),
        cmocka_unit_test(test_leaks_are_named),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
