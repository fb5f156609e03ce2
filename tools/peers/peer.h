/* tools/peers/peer.h -- what the peer programs in C++ share: ours, theirs and memcpy interleaved, a line of JSON for each
   comparison (tools/peers/run.py makes the table), and how far the two results are apart. */
#ifndef GPST_PEERS_PEER_H
#define GPST_PEERS_PEER_H

#include "../../bench/workloads.h"

#include "../../bench/measure.h"

#include <math.h>

#define PEER_ROUNDS 11
#define PEER_SAMPLE_S 0.03

static inline measured peer_measured(const char* name, bool (*run)(void*, uint32_t), void* user_data) {
    measured out;
    memset(&out, 0, sizeof out);
    out.name = name;
    out.run = run;
    out.user_data = user_data;
    return out;
}

static inline uint32_t peer_cores(void) {
    gpst_probe_info info;
    return GPST_FAILED(gpst_probe(NULL, &info)) || info.cores_allowed == 0 ? 1 : info.cores_allowed;
}

/* PSNR of the outputs of two ways to do the first set's work, in dB; of floats against a range of 1. */
static inline double peer_agreement(workload_run* ours, bool (*other)(void*, uint32_t), void* user_data) {
    double squares = 0.0;
    uint64_t count = 0;
    const bool floats = ours->sets[0].outputs[0].dtype == GPST_DTYPE_F32;
    for (uint32_t i = 0; i < ours->n_outputs; i++) {
        const gpst_image* const image = &ours->sets[0].outputs[i];
        size_t bytes = 0;
        gpst_image_bytes(image, &bytes);
        void* const kept = malloc(bytes);
        if (!kept || !ours->work->run(ours, 0))
            return 0.0;
        memcpy(kept, image->data, bytes);
        if (!other(user_data, 0))
            return 0.0;
        const size_t n = floats ? bytes / sizeof(float) : bytes;
        for (size_t k = 0; k < n; k++) {
            const double apart = floats ? (double)((const float*)kept)[k] - (double)((const float*)image->data)[k]
                                        : (double)((const uint8_t*)kept)[k] - (double)((const uint8_t*)image->data)[k];
            squares += apart * apart;
        }
        count += n;
        free(kept);
    }
    const double range = floats ? 1.0 : 255.0;
    return squares > 0.0 ? 10.0 * log10(range * range * (double)count / squares) : 999.0;
}

static inline void peer_print_samples(const char* key, const measured* self) {
    printf(", \"%s\": [", key);
    for (uint32_t i = 0; i < PEER_ROUNDS; i++)
        printf("%s%.9f", i ? ", " : "", self->seconds[i]);
    printf("]");
}

/* all[0] is ours and the last is left for memcpy; a line for each of the others. decibels < 0: not compared. */
static inline bool peer_compare(const workload_run* ours, measured* all, uint32_t n, const double* decibels) {
    workload_copy copy;
    bool ok = workload_copy_open(&copy, ours);
    all[n - 1] = peer_measured("memcpy", workload_copy_run, &copy);
    ok = ok && measure_rounds(all, n, PEER_ROUNDS, PEER_SAMPLE_S);
    for (uint32_t i = 1; ok && i < n - 1; i++) {
        printf("{\"work\": \"%s\", \"peer\": \"%s\", \"threads\": %u, \"psnr_db\": ", ours->work->name, all[i].name,
               ours->n_threads);
        if (decibels[i - 1] < 0.0)
            printf("null");
        else
            printf("%.1f", decibels[i - 1]);
        peer_print_samples("ours_s", &all[0]);
        peer_print_samples("theirs_s", &all[i]);
        peer_print_samples("memcpy_s", &all[n - 1]);
        printf("}\n");
        fflush(stdout);
    }
    workload_copy_close(&copy);
    return ok;
}

#endif
