/* tools/gpustage/bench_never_rounds.c -- orders the turns of rounds and judges their times. Times nothing. */
#include "bench_never_rounds.h"

#include "../measure.h"

#include <math.h>

#define WANTED_WIDTH 0.05

static void bench_turns_draw(bench_turns* self) {
    for (uint32_t i = 0; i < self->n; i++) {
        self->random = self->random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t at = (uint32_t)((self->random >> 33) % (i + 1));
        self->names[i] = self->names[at];
        self->names[at] = i;
    }
}

/* Neighbours in 0, 1, n - 1, 2, n - 2, ... are every distance modulo n apart, each once; so that its n rotations have
   every pair of neighbours once (n odd: with their mirror images twice). */
void bench_turns_next(bench_turns* self, uint32_t* order) {
    const uint32_t n = self->n, round = self->round++;
    const bool mirrored = n % 2 != 0 && round / n % 2 != 0;
    if (round % (n % 2 ? 2 * n : n) == 0)
        bench_turns_draw(self);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t step = i % 2 ? (i + 1) / 2 : n - i / 2;
        order[mirrored ? n - 1 - i : i] = self->names[(step + round) % n];
    }
}

/* How many of the least and as many of the greatest ratios can be left out: the median lies outside of the others when
   n coins fall with so few heads, or so few tails. */
static uint32_t bench_rank(uint32_t n) {
    double chance = ldexp(1.0, 1 - (int)n); /* of rank heads, or rank tails */
    double outside = chance;
    uint32_t rank = 0;
    for (;;) {
        chance *= (double)(n - rank) / (double)(rank + 1);
        outside += chance;
        if (outside > 0.05)
            return rank;
        rank++;
    }
}

bench_interval bench_interval_of(const double* other, const double* self, uint32_t n) {
    double ratios[BENCH_MOST_ROUNDS];
    bench_interval out;
    for (uint32_t i = 0; i < n; i++)
        ratios[i] = other[i] / self[i];
    qsort(ratios, n, sizeof ratios[0], measure_compare);
    const uint32_t rank = bench_rank(n);
    out.low = ratios[rank];
    out.middle = n % 2 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2.0;
    out.high = ratios[n - 1 - rank];
    return out;
}

static bool bench_is_narrow(const bench_interval* self) {
    return self->high - self->low <= WANTED_WIDTH * self->middle;
}

bool bench_wants_more(const bench_interval* a, const bench_interval* b, uint32_t n) {
    return n < BENCH_MOST_ROUNDS && (n < BENCH_ENOUGH_ROUNDS || !bench_is_narrow(a) || !bench_is_narrow(b));
}
