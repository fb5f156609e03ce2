/* tools/gpustage/bench_never_rounds.h -- the rounds of never-slower: who comes when, and what the times say. */
#ifndef GPST_TOOL_BENCH_NEVER_ROUNDS_H
#define GPST_TOOL_BENCH_NEVER_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_LEAST_ROUNDS = 6, BENCH_ENOUGH_ROUNDS = 40, BENCH_MOST_ROUNDS = 81 };

/* Times as long as one took over another, round by round. */
typedef struct bench_interval {
    double low, middle, high;
} bench_interval;

enum { BENCH_MOST_TURNS = 8 };

/* In what order n ways take turns: in a block of n rounds (of 2 n where n is odd) each comes as often as any other at
   each place, and after each of the others within a round. Who is who in a block is drawn by chance. */
typedef struct bench_turns {
    uint32_t n, round; /* 2..BENCH_MOST_TURNS; rounds so far */
    uint64_t random;   /* any number; the next draw comes of it */
    uint32_t names[BENCH_MOST_TURNS];
} bench_turns;

/* The next round: each of 0..n-1 once. */
void bench_turns_next(bench_turns* self, uint32_t* order);

/* Of the median of other / self, at least 95 %, by ranks: nothing is assumed of how times are spread. n: 1 to
   BENCH_MOST_ROUNDS; of fewer than 6 it is less than 95 %. */
bench_interval bench_interval_of(const double* other, const double* self, uint32_t n);

/* Where there is time. Of n rounds, until both intervals are narrow; of few they may be so by chance. */
bool bench_wants_more(const bench_interval* a, const bench_interval* b, uint32_t n);

#endif
