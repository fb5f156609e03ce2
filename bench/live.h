/* bench/live.h -- what live.c measures: a scenario, its frames and cameras, and what became of them. */
#ifndef GPST_BENCH_LIVE_H
#define GPST_BENCH_LIVE_H

#include "../gpustage.h"

#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>

#define MS ((int64_t)1000000)

enum { FRAME, SMALL, SCORES, MASK };
enum { N_PIXELS = 8, MOST_CAMERAS = 8, MOST_HELD = 64, N_CLASSES = 19, STEP = 4, MOST_WRONG_SAID = 5 };

typedef enum scenario_kind { LATEST, MODEL, DEVICE, STREAM, CAMERAS, SOAK, N_SCENARIOS } scenario_kind;

typedef struct scenario {
    const char *name, *wanted;
    double seconds;               /* unless asked */
    uint32_t n_cameras, fps;      /* each camera's */
    uint32_t width, height, side; /* of a frame; of what the warp makes of it */
    int64_t service_ns, hold_ns;  /* of the slowest stage; how long the taker has each result */
    uint32_t n_slots[2];          /* a row each, unless asked; 0 = the pipeline's choice, or no second row */
    gpst_full_policy full_policy;
} scenario;

/* What the soak chooses by chance, once a run. */
typedef struct soak_run {
    uint64_t seed;
    bool copied, as_ready;
    int64_t submit_ns;            /* how long submit may wait */
    uint32_t n_held;              /* results that the taker has at most */
    gpst_full_policy policies[4]; /* of the pipeline, and of stages 1 to 3 */
    uint32_t queue_most[4];
} soak_run;

typedef struct live live;

/* One frame, from its camera to its end. */
typedef struct frame {
    int64_t due_ns, age_ns;
    gpst_result submitted, result;
    uint32_t camera;
    atomic_uint n_results, n_dropped, n_given_back;
} frame;

typedef struct camera {
    live* live;
    uint32_t number;
    pthread_t thread;
} camera;

struct live {
    const scenario* scenario;
    double seconds; /* of one run */
    uint32_t n_slots;
    soak_run* soak; /* NULL: another scenario */
    gpst_context* context;
    gpst_warp* warp;
    gpst_mask_desc mask;
    gpst_memory* pixels[N_PIXELS]; /* frame n is number n % N_PIXELS: nobody writes them */
    gpst_pipeline* pipeline;
    camera cameras[MOST_CAMERAS];
    atomic_uint n_shooting;
    int64_t start_ns;
    frame* frames;    /* n_frames of a run, those of a camera n_cameras apart */
    uint64_t n_frames;
    int64_t* ages_ns; /* n_ok of all runs */
    uint64_t n_submitted, n_refused, n_ok, n_failed, n_skipped, n_dropped, n_given_back, n_wrong, n_runs;
    double wall_s;    /* of all runs */
    gpst_stats stats; /* of the last one */
    gpst_camera_stats camera_stats[MOST_CAMERAS];
    uint64_t first_kib, end_kib; /* of the soak */
};

#endif
