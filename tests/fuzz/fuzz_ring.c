/* tests/fuzz/fuzz_ring.c -- random rings between threads: sharing, policy, depth, readers, memory and streams of all
   kinds. What is taken is what was committed, in order and once for each reader; it does not change while somebody
   holds it; nothing is lost but what the policy gave up; and the counts say so. seeds.h has the options.

   cc tests/fuzz/fuzz_ring.c gpustage.c -pthread -lm -ldl
   clang -fsanitize=fuzzer,address,undefined -DFUZZ_NO_MAIN tests/fuzz/fuzz_ring.c gpustage.c -ldl
*/
#include "seeds.h"

#include <pthread.h>

enum { MOST_THREADS = 3, MOST_SLOTS = 24, MOST_EACH = 400, MOST_HELD = 4, MOST_BYTES = 3000 };

typedef struct ring_plan {
    gpst_ring_desc desc;
    gpst_context* context;
    gpst_ring* ring;
    uint32_t n_producers, n_consumers, n_each, n_held, abandon_every, leave_after;
    bool on_streams, moves_depth, closes_at_once;
    atomic_uint n_producing;
    atomic_uint n_committed, n_abandoned, n_refused, n_taken;
    atomic_uchar seen[MOST_THREADS * MOST_EACH]; /* by sequence, of a ring without readers */
} ring_plan;

typedef struct ring_thread {
    ring_plan* plan;
    uint32_t number;
    draw from;
    gpst_stream* stream; /* NULL: the host's */
    gpst_ring_reader* reader;
    pthread_t thread;
    uint64_t next_sequence,
        next_of[MOST_THREADS]; /* of a consumer: the least that may come, in all and of a producer */
    uint64_t n_taken;
} ring_thread;

static int64_t pick_timeout(draw* from, bool may_wait_forever) {
    static const int64_t times[4] = {0, 10000, 1000000, GPST_FOREVER};
    return times[pick(from, may_wait_forever ? 4 : 3)];
}

/* ---- one slot ---------------------------------------------------------------------------------------------------- */

static uint8_t value_of(const gpst_ring_slot* slot) { return (uint8_t)(slot->words[0] * 37 + slot->words[1] * 11 + 1); }

/* Host memory is the host's to use, when the device is done with it. */
static bool is_on_stream(const ring_thread* self, const gpst_ring_slot* slot) {
    const ring_plan* const plan = self->plan;
    if (plan->desc.memory != GPST_MEMORY_DEVICE && plan->desc.streams)
        REQUIRE(gpst_ring_slot_wait(plan->ring, slot, GPST_FOREVER) == GPST_OK);
    return plan->desc.memory == GPST_MEMORY_DEVICE;
}

static void fill(const ring_thread* self, const gpst_ring_slot* slot) {
    const size_t bytes = self->plan->desc.slot_bytes;
    if (is_on_stream(self, slot) && bytes > 0)
        REQUIRE(gpst_fill(slot->data, value_of(slot), bytes, self->stream) == GPST_OK);
    else if (bytes > 0)
        memset(slot->data, value_of(slot), bytes);
}

static void check(const ring_thread* self, const gpst_ring_slot* slot) {
    const size_t bytes = self->plan->desc.slot_bytes;
    uint8_t seen[MOST_BYTES];
    REQUIRE((slot->data != NULL) == (bytes > 0));
    if (is_on_stream(self, slot) && bytes > 0) {
        REQUIRE(gpst_copy(seen, slot->data, bytes, self->stream) == GPST_OK);
        REQUIRE(gpst_stream_synchronize(self->stream) == GPST_OK);
    } else if (bytes > 0) {
        memcpy(seen, slot->data, bytes);
    }
    for (size_t i = 0; i < bytes; i++)
        REQUIRE_OF(seen[i] == value_of(slot), "byte %zu of sequence %llu is %u, not %u", i,
                   (unsigned long long)slot->sequence, seen[i], value_of(slot));
}

/* ---- producers --------------------------------------------------------------------------------------------------- */

static gpst_result acquire(ring_thread* self, gpst_ring_slot* out) {
    ring_plan* const plan = self->plan;
    const gpst_result result = gpst_ring_acquire_on(plan->ring, pick_timeout(&self->from, true), self->stream, out);
    REQUIRE(result != GPST_DROPPED || plan->desc.policy != GPST_RING_BLOCK);
    REQUIRE(
        result == GPST_OK || result == GPST_DROPPED || result == GPST_ERROR_CLOSED ||
        ((result == GPST_ERROR_WOULD_BLOCK || result == GPST_ERROR_TIMEOUT) && plan->desc.policy == GPST_RING_BLOCK));
    REQUIRE(result != GPST_ERROR_CLOSED || plan->closes_at_once);
    return result;
}

static void* produce(void* argument) {
    ring_thread* const self = (ring_thread*)argument;
    ring_plan* const plan = self->plan;
    for (uint32_t i = 0; i < plan->n_each;) {
        gpst_ring_slot slot;
        const gpst_result result = acquire(self, &slot);
        if (result == GPST_ERROR_CLOSED)
            break;
        i += result == GPST_OK || result == GPST_DROPPED;
        atomic_fetch_add(&plan->n_refused, result == GPST_DROPPED);
        if (result != GPST_OK)
            continue;
        REQUIRE(slot.words[0] == 0 && slot.words[1] == 0);
        slot.words[0] = self->number, slot.words[1] = i;
        fill(self, &slot);
        if (plan->abandon_every > 0 && i % plan->abandon_every == 0) {
            if (self->stream)
                REQUIRE(gpst_stream_synchronize(self->stream) == GPST_OK);
            gpst_ring_abandon(plan->ring, &slot);
            atomic_fetch_add(&plan->n_abandoned, 1);
            continue;
        }
        REQUIRE(gpst_ring_commit_on(plan->ring, &slot, self->stream) == GPST_OK);
        REQUIRE(slot.data == NULL);
        atomic_fetch_add(&plan->n_committed, 1);
    }
    atomic_fetch_sub(&plan->n_producing, 1);
    return NULL;
}

/* ---- consumers --------------------------------------------------------------------------------------------------- */

static gpst_result take(ring_thread* self, bool may_wait, gpst_ring_slot* out) {
    const int64_t timeout = pick_timeout(&self->from, may_wait);
    const gpst_result result = self->reader ? gpst_ring_reader_take(self->reader, timeout, self->stream, out)
                                            : gpst_ring_take_on(self->plan->ring, timeout, self->stream, out);
    REQUIRE_OF(result == GPST_OK || result == GPST_END || result == GPST_ERROR_WOULD_BLOCK ||
                   result == GPST_ERROR_TIMEOUT,
               "take: %s: %s", gpst_result_name(result), gpst_last_reason());
    return result;
}

static void see(ring_thread* self, const gpst_ring_slot* slot) {
    ring_plan* const plan = self->plan;
    const uint64_t producer = slot->words[0];
    REQUIRE(producer < plan->n_producers && slot->sequence < MOST_THREADS * MOST_EACH);
    REQUIRE_OF(slot->sequence >= self->next_sequence, "sequence %llu, wanted %llu or later",
               (unsigned long long)slot->sequence, (unsigned long long)self->next_sequence);
    REQUIRE(slot->words[1] >= self->next_of[producer]);
    const bool sees_all = plan->desc.policy == GPST_RING_BLOCK && (self->reader || plan->n_consumers == 1);
    REQUIRE(!sees_all || slot->sequence == self->next_sequence);
    self->next_sequence = slot->sequence + 1;
    self->next_of[producer] = slot->words[1] + 1;
    self->n_taken++;
    if (!self->reader)
        REQUIRE(atomic_exchange(&plan->seen[slot->sequence], 1) == 0);
    atomic_fetch_add(&plan->n_taken, 1);
}

static void release(ring_thread* self, gpst_ring_slot* slot) {
    check(self, slot); /* still */
    if (self->reader)
        REQUIRE(gpst_ring_reader_release(self->reader, slot, self->stream) == GPST_OK);
    else
        REQUIRE(gpst_ring_release_on(self->plan->ring, slot, self->stream) == GPST_OK);
}

static void* consume(void* argument) {
    ring_thread* const self = (ring_thread*)argument;
    ring_plan* const plan = self->plan;
    gpst_ring_slot held[MOST_HELD + 1];
    uint32_t n = 0;
    gpst_result result;
    do {
        result = take(self, n == 0, &held[n]);
        if (result == GPST_OK) {
            see(self, &held[n]);
            check(self, &held[n++]);
        }
        while (n > plan->n_held || (result != GPST_OK && n > 0)) {
            const uint32_t i = pick(&self->from, n);
            release(self, &held[i]);
            held[i] = held[--n];
        }
        if (self->reader && plan->leave_after > 0 && self->n_taken >= plan->leave_after)
            break;
    } while (result != GPST_END);
    while (n > 0)
        release(self, &held[--n]);
    gpst_ring_reader_destroy(self->reader); /* nobody waits for it any more */
    return NULL;
}

/* ---- a ring from begin to end ------------------------------------------------------------------------------------ */

static void draw_ring(ring_plan* self, draw* from) {
    gpst_ring_desc* const desc = &self->desc;
    const bool is_spsc = one_in(from, 3);
    desc->sharing = is_spsc ? GPST_RING_SPSC : GPST_RING_MPMC;
    desc->policy = (gpst_ring_policy)pick(from, is_spsc ? 2 : 4);
    desc->max_slots = 1 + pick(from, MOST_SLOTS);
    desc->slot_bytes = one_in(from, 5) ? 0 : 1 + pick(from, MOST_BYTES);
    desc->adaptive = one_in(from, 4);
    desc->depth = desc->adaptive || one_in(from, 2) ? 0 : 1 + pick(from, desc->max_slots);
    if (!desc->adaptive) {
        desc->memory = (gpst_memory_kind)pick(from, 4);
        desc->streams = one_in(from, 2) || desc->memory == GPST_MEMORY_DEVICE;
        desc->max_readers = !is_spsc && one_in(from, 3) ? MOST_THREADS : 0;
    }
    self->on_streams = desc->streams && (desc->memory == GPST_MEMORY_DEVICE || one_in(from, 2));
    self->n_producers = is_spsc ? 1 : 1 + pick(from, MOST_THREADS);
    self->n_consumers = is_spsc ? 1 : 1 + pick(from, MOST_THREADS);
    self->n_each = 1 + pick(from, MOST_EACH);
    self->n_held = pick(from, MOST_HELD);
    self->abandon_every = one_in(from, 3) ? 2 + pick(from, 9) : 0;
    self->leave_after = desc->max_readers > 0 && one_in(from, 3) ? 1 + pick(from, 50) : 0;
    self->moves_depth = !desc->adaptive && one_in(from, 3);
    self->closes_at_once = one_in(from, 4);
    self->n_producing = self->n_producers;
    say("ring: sharing %d policy %d slots %u depth %u bytes %zu adaptive %d memory %d readers %u streams %d (used %d)\n"
        "  %u producers, %u consumers, %u each, held %u, abandoned every %u, leave after %u, moves depth %d, closes "
        "%d\n",
        (int)desc->sharing, (int)desc->policy, desc->max_slots, desc->depth, desc->slot_bytes, desc->adaptive,
        (int)desc->memory, desc->max_readers, desc->streams, self->on_streams, self->n_producers, self->n_consumers,
        self->n_each, self->n_held, self->abandon_every, self->leave_after, self->moves_depth, self->closes_at_once);
}

static void check_counts(const ring_plan* self) {
    gpst_ring_info info;
    gpst_ring_query_info(self->ring, &info);
    REQUIRE(info.committed == self->n_committed && info.abandoned == self->n_abandoned);
    if (self->desc.max_readers > 0)
        return; /* some leave, and then nobody is there */
    REQUIRE_OF(info.taken == self->n_taken && info.occupancy == 0, "taken %llu, not %u; %u are left",
               (unsigned long long)info.taken, self->n_taken, info.occupancy);
    REQUIRE_OF(info.dropped == self->n_refused + (self->n_committed - self->n_taken),
               "dropped %llu; refused %u, committed %u", (unsigned long long)info.dropped, self->n_refused,
               self->n_committed);
    REQUIRE(self->desc.policy != GPST_RING_BLOCK || info.dropped == 0);
    REQUIRE(self->desc.policy != GPST_RING_DROP_NEWEST || self->n_committed == self->n_taken);
}

static void run_threads(ring_plan* self, draw* from) {
    ring_thread threads[2 * MOST_THREADS];
    const uint32_t n = self->n_producers + self->n_consumers;
    gpst_device* const device = gpst_context_device(self->context);
    memset(threads, 0, sizeof threads);
    for (uint32_t t = 0; t < n; t++) {
        threads[t].plan = self;
        threads[t].number = t;
        threads[t].from = fork_draw(from);
        if (self->on_streams)
            REQUIRE(gpst_stream_create(device, &threads[t].stream) == GPST_OK);
        if (self->desc.max_readers > 0 && t >= self->n_producers)
            REQUIRE(gpst_ring_reader_create(self->ring, &threads[t].reader) == GPST_OK);
    }
    for (uint32_t t = 0; t < n; t++)
        REQUIRE(pthread_create(&threads[t].thread, NULL, t < self->n_producers ? produce : consume, &threads[t]) == 0);
    while (self->moves_depth && self->n_producing > 0 && !self->closes_at_once) {
        const struct timespec moment = {0, 100000};
        REQUIRE(gpst_ring_set_depth(self->ring, 1 + pick(from, self->desc.max_slots)) == GPST_OK);
        (void)nanosleep(&moment, NULL);
    }
    if (self->closes_at_once)
        gpst_ring_close(self->ring);
    for (uint32_t t = 0; t < self->n_producers; t++)
        (void)pthread_join(threads[t].thread, NULL);
    gpst_ring_close(self->ring);
    for (uint32_t t = self->n_producers; t < n; t++)
        (void)pthread_join(threads[t].thread, NULL);
    check_counts(self);
    gpst_ring_destroy(self->ring);
    for (uint32_t t = 0; t < n; t++)
        gpst_stream_destroy(threads[t].stream);
}

static void play(draw* from, const char* backend) {
    static ring_plan self;
    gpst_context_desc desc = GPST_ZERO;
    memset(&self, 0, sizeof self);
    draw_ring(&self, from);
    desc.backend = strcmp(backend, "sim") == 0 ? "sim:launch_us=0,h2d_gbps=0,d2h_gbps=0" : backend;
    desc.n_workers = 1;
    REQUIRE(gpst_context_create(&desc, &self.context) == GPST_OK);
    const gpst_result result = gpst_ring_create(self.context, &self.desc, &self.ring);
    REQUIRE(result == GPST_OK || result == GPST_ERROR_ARGUMENT);
    if (result == GPST_OK) {
        run_threads(&self, from);
    } else {
        seeds.n_refused++;
        snprintf(seeds.refusal, sizeof seeds.refusal, "%s", gpst_last_reason());
    }
    gpst_context_destroy(self.context);
}
