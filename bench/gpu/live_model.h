/* bench/gpu/live_model.h -- the network that bench/live.c pretends to run: it takes so long and writes scores. */
#ifndef GPST_BENCH_LIVE_MODEL_H
#define GPST_BENCH_LIVE_MODEL_H

#include "../../gpustage.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct live_model_args {
    const float* tensor; /* one score a class for each n_steps-th value */
    float* scores;       /* [n_classes][n_scores] */
    uint32_t n_classes, n_scores, n_steps;
    uint64_t service_ns;
} live_model_args;

gpst_result live_model_gpu(const void* args, void* native_stream); /* bench/gpu/live_model.cu */

#ifdef __cplusplus
}
#endif
#endif
