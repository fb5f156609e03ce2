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

/* 0..n-1 in an order drawn by chance: each is as likely as any other to come first, or after a certain one. */
void bench_draw_order(uint32_t* order, uint32_t n, uint64_t* random);

/* Of the median of other / self, at least 95 %, by ranks: nothing is assumed of how times are spread. n: 1 to
   BENCH_MOST_ROUNDS; of fewer than 6 it is less than 95 %. */
bench_interval bench_interval_of(const double* other, const double* self, uint32_t n);

/* Where there is time. Of n rounds, until both intervals are narrow; of few they may be so by chance. */
bool bench_wants_more(const bench_interval* a, const bench_interval* b, uint32_t n);

#endif
