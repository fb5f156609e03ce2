/* bench/ring.c -- a ring between a producer that has items in bursts and a consumer that takes as long for each: fixed
   depths against an adaptive ring. A pause behind each burst is as long as the consumer takes for the burst. So with
   depth 2 an item takes almost twice as long as with room for a burst.

   ring [--rounds N] [--burst N] [--item-us N] [--seconds N] [--spsc] */
#define _GNU_SOURCE
#include "measure.h"

#include "../gpustage.h"

#include <pthread.h>

enum { N_WAYS = 3, MAX_SLOTS = 256, SLOT_BYTES = 4096 };

typedef struct ring_bench {
    uint32_t n_rounds, burst, item_us;
    double run_s;
    gpst_ring_sharing sharing;
    double rates[N_WAYS][MEASURE_MAX_ROUNDS], depths[N_WAYS][MEASURE_MAX_ROUNDS];
} ring_bench;

typedef struct ring_run {
    const ring_bench* bench;
    gpst_ring* ring;
    double end_s;
} ring_run;

static void* produce(void* arg) {
    const ring_run* const run = (const ring_run*)arg;
    const int64_t pause_ns = (int64_t)run->bench->burst * run->bench->item_us * 1000;
    gpst_ring_slot slot;
    while (measure_now() < run->end_s) {
        for (uint32_t i = 0; i < run->bench->burst; i++)
            if (gpst_ring_acquire(run->ring, GPST_FOREVER, &slot) == GPST_OK)
                gpst_ring_commit(run->ring, &slot);
        measure_wait_until(measure_ns() + pause_ns);
    }
    gpst_ring_close(run->ring);
    return NULL;
}

/* The items that it took. The work is sleep, so that the two threads do not wait for a core. */
static uint64_t consume(const ring_run* run) {
    gpst_ring_slot slot;
    uint64_t n = 0;
    for (; gpst_ring_take(run->ring, GPST_FOREVER, &slot) == GPST_OK; n++) {
        measure_wait_until(measure_ns() + (int64_t)run->bench->item_us * 1000);
        gpst_ring_release(run->ring, &slot);
    }
    return n;
}

static bool run_way(ring_bench* self, gpst_context* context, uint32_t way, uint32_t round, bool tell) {
    gpst_ring_desc desc = GPST_ZERO;
    gpst_ring_decision decisions[GPST_RING_MAX_DECISIONS];
    gpst_ring_info info;
    pthread_t thread;
    ring_run run;
    uint32_t n_decisions = 0;
    desc.max_slots = MAX_SLOTS;
    desc.slot_bytes = SLOT_BYTES;
    desc.sharing = self->sharing;
    desc.depth = way == 0 ? 2 : way == 1 ? (self->burst < MAX_SLOTS ? self->burst : MAX_SLOTS) : 0;
    desc.adaptive = way == 2;
    run.bench = self;
    if (gpst_ring_create(context, &desc, &run.ring) != GPST_OK)
        return false;
    const double start_s = measure_now();
    run.end_s = start_s + self->run_s;
    if (pthread_create(&thread, NULL, produce, &run) != 0)
        return false;
    const uint64_t n = consume(&run);
    self->rates[way][round] = (double)n / (measure_now() - start_s);
    pthread_join(thread, NULL);
    gpst_ring_query_info(run.ring, &info);
    self->depths[way][round] = info.depth;
    gpst_ring_query_decisions(run.ring, decisions, GPST_RING_MAX_DECISIONS, &n_decisions);
    for (uint32_t i = 0; tell && i < n_decisions; i++)
        printf("  after %llu items, %u to %u: %s\n", (unsigned long long)decisions[i].commit, decisions[i].before,
               decisions[i].after, decisions[i].reason);
    gpst_ring_destroy(run.ring);
    return true;
}

static bool parse_number(const char* text, double* out) {
    char* end = NULL;
    *out = text ? strtod(text, &end) : 0.0;
    return text && *text && !*end && *out > 0.0 && *out < 1e6;
}

static bool parse(ring_bench* self, int argc, char** argv) {
    self->n_rounds = 5;
    self->burst = 32;
    self->item_us = 230;
    self->run_s = 18.0;
    for (int i = 1; i < argc; i++) {
        double number = 0.0;
        if (!strcmp(argv[i], "--spsc")) {
            self->sharing = GPST_RING_SPSC;
            continue;
        }
        if (i + 1 == argc || !parse_number(argv[i + 1], &number))
            return false;
        if (!strcmp(argv[i], "--rounds"))
            self->n_rounds = (uint32_t)number;
        else if (!strcmp(argv[i], "--burst"))
            self->burst = (uint32_t)number;
        else if (!strcmp(argv[i], "--item-us"))
            self->item_us = (uint32_t)number;
        else if (!strcmp(argv[i], "--seconds"))
            self->run_s = number;
        else
            return false;
        i++;
    }
    return self->n_rounds >= 1 && self->n_rounds <= MEASURE_MAX_ROUNDS && self->burst >= 1;
}

int main(int argc, char** argv) {
    static const char* const names[N_WAYS] = {"depth 2", "depth of a burst", "adaptive, from 2"};
    static ring_bench self;
    gpst_context* context = NULL;
    if (!parse(&self, argc, argv)) {
        fprintf(stderr, "usage: %s [--rounds N] [--burst N] [--item-us N] [--seconds N] [--spsc]\n", argv[0]);
        return 1;
    }
    bool ok = gpst_context_create(NULL, &context) == GPST_OK;
    printf("%s\nbursts of %u, %u us an item, %.1f s a run, %s; decisions of the last run\n", gpst_build_info(),
           self.burst, self.item_us, self.run_s, self.sharing == GPST_RING_SPSC ? "SPSC" : "MPMC");
    for (uint32_t round = 0; ok && round < self.n_rounds; round++)
        for (uint32_t way = 0; ok && way < N_WAYS; way++)
            ok = run_way(&self, context, way, round, round + 1 == self.n_rounds);
    for (uint32_t way = 0; ok && way < N_WAYS; way++) {
        const measure_spread rate = measure_spread_of(self.rates[way], self.n_rounds);
        const measure_spread depth = measure_spread_of(self.depths[way], self.n_rounds);
        printf("%-18s %6.0f items/s (%.0f..%.0f), depth at the end %.0f (%.0f..%.0f)\n", names[way], rate.median,
               rate.min, rate.max, depth.median, depth.min, depth.max);
    }
    gpst_context_destroy(context);
    if (!ok)
        fprintf(stderr, "ring: %s\n", gpst_last_reason());
    return ok ? 0 : 1;
}
