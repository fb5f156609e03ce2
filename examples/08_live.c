/* examples/08_live.c -- a camera at 60 frames a second through a network: one thread lends frames, another shows the
   newest result with its own frame. Where a stage is busy the newest frame waits for it, and older ones are dropped.

   cc -std=c11 -O2 -I. examples/08_live.c -o live -pthread -lm
   ./live [auto|cpu|cuda] [seconds]
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAME, TENSOR, LOGITS, MASK }; /* the picture sets of an item */
enum { WIDTH = 1920, HEIGHT = 1080, SIDE = 512, FPS = 60, N_BUFFERS = 16, MOST_FRAMES = 60 * FPS };
#define PERIOD_NS (1000000000 / FPS)

/* The driver's buffers: each is lent to the pipeline, or free. */
typedef struct buffer {
    unsigned char pixels[WIDTH * HEIGHT * 3];
    atomic_int lent;
} buffer;

static buffer buffers[N_BUFFERS];
static gpst_pipeline* pipeline;
static int n_frames, n_missed;

static void give_back(void* user_data) { atomic_store((atomic_int*)user_data, 0); } /* whatever becomes of the frame */

static void* capture(void* argument) {
    const int64_t start = gpst_now_ns();
    gpst_input input = GPST_ZERO;
    input.frame.width = WIDTH;
    input.frame.height = HEIGHT;
    input.frame.format = GPST_FORMAT_BGR;
    input.release = give_back;
    for (int i = 0; i < n_frames; i++) {
        buffer* const b = &buffers[i % N_BUFFERS];
        input.timestamp_ns = start + (int64_t)i * PERIOD_NS;
        const int64_t wait = input.timestamp_ns - gpst_now_ns();
        const struct timespec pause = {0, wait > 0 ? (long)wait : 0};
        nanosleep(&pause, NULL);
        if (atomic_exchange(&b->lent, 1)) { /* its last frame is still out: the camera has no buffer for this one */
            n_missed++;
            continue;
        }
        memset(b->pixels, i * 8 % 256, sizeof b->pixels / 8); /* stands for an exposure */
        input.frame.data = b->pixels;
        input.release_user_data = &b->lent;
        if (GPST_FAILED(gpst_pipeline_submit(pipeline, &input, 0, NULL))) { /* waits for nobody */
            give_back(&b->lent); /* neither OK nor DROPPED: the frame is still ours */
            n_missed++;
        }
    }
    gpst_pipeline_close(pipeline);
    return argument;
}

/* Stands for a network: the logits of two classes, dark and bright. */
static gpst_result model(void* user_data, gpst_task* task) {
    const float* const red = (const float*)task->item->sets[TENSOR].pictures[0].data;
    gpst_image logits = task->item->sets[TENSOR].pictures[0]; /* as large, but of two planes of numbers */
    (void)user_data;
    logits.format = GPST_FORMAT_TENSOR;
    logits.n_channels = 2;
    const gpst_result result = gpst_task_set_picture(task, LOGITS, 0, &logits, &logits);
    float *const dark = (float*)logits.data, *const bright = dark + SIDE * SIDE;
    for (int i = 0; i < SIDE * SIDE && !GPST_FAILED(result); i++) {
        bright[i] = red[i] + red[i + SIDE * SIDE] + red[i + 2 * SIDE * SIDE] - 1.5f;
        dark[i] = -bright[i];
    }
    return result;
}

/* Takes results until the last, and says how many there were. */
static int render(int64_t* ages) {
    const gpst_item* item;
    int n = 0;
    for (; gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_OK; gpst_pipeline_release(pipeline, item))
        if (item->result == GPST_OK) /* here a program shows sets[MASK] over sets[FRAME], which is the mask's own */
            ages[n++] = gpst_now_ns() - item->timestamp_ns;
        else
            fprintf(stderr, "%s: %s: %s\n", item->name, item->stage, item->reason);
    return n;
}

static gpst_result make_pipeline(gpst_context* context, const gpst_warp* warp, const gpst_mask_desc* mask) {
    gpst_stage_desc stages[3];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_warp(&stages[0], FRAME, TENSOR, warp);
    gpst_stage_host(&stages[1], GPST_SET(TENSOR), GPST_SET(LOGITS), model, NULL);
    gpst_stage_mask(&stages[2], LOGITS, MASK, mask);
    stages[1].name = "model";
    stages[1].concurrency = 1;
    stages[1].queue_most = 1;                      /* nothing waits in front of it ... */
    stages[1].full_policy = GPST_FULL_LATEST_ONLY; /* ... but the newest frame */
    desc.full_policy = GPST_FULL_LATEST_ONLY;      /* and so with the other stages */
    desc.stages = stages;
    desc.n_stages = 3;
    desc.n_results = 2;
    desc.results[0] = gpst_result_of(FRAME, GPST_AS_IT_IS); /* where it lies: no copy */
    desc.results[1] = gpst_result_of(MASK, GPST_ON_HOST);
    return gpst_pipeline_create(context, &desc, &pipeline);
}

static int compare(const void* a, const void* b) {
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return x < y ? -1 : x > y;
}

/* False: a frame was not heard of. */
static bool report(int64_t* ages, int n) {
    static gpst_stats stats;
    int n_fresh = 0;
    qsort(ages, (size_t)n, sizeof ages[0], compare);
    while (n_fresh < n && ages[n_fresh] <= PERIOD_NS)
        n_fresh++;
    gpst_pipeline_query_stats(pipeline, &stats);
    if (n > 0)
        printf("age of a result: p50 %.1f ms, p99 %.1f ms; %.1f %% are older than a period\n",
               (double)ages[n / 2] * 1e-6, (double)ages[n * 99 / 100] * 1e-6, 100.0 * (n - n_fresh) / n);
    printf("%d frames: %d shown, %d dropped, %d missed by the camera\n%s\n%s\n", n_frames, n, (int)stats.items_dropped,
           n_missed, stats.verdict.text, stats.settings);
    return n > 0 && n + (int)stats.items_dropped + n_missed == n_frames;
}

int main(int argc, char** argv) {
    static int64_t ages[MOST_FRAMES + 1];
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_mask_desc mask = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_warp* warp = NULL;
    pthread_t camera;
    bool ok = false;
    n_frames = (int)(FPS * (argc > 2 ? atof(argv[2]) : 2.0));
    n_frames = n_frames < 1 ? 1 : n_frames > MOST_FRAMES ? MOST_FRAMES : n_frames;
    context_desc.backend = argc > 1 ? argv[1] : "auto";
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.width = warp_desc.height = SIDE;
    warp_desc.format = GPST_FORMAT_RGB;
    warp_desc.dtype = GPST_DTYPE_F32;
    warp_desc.layout = GPST_LAYOUT_CHW;
    warp_desc.has_scale = true;
    for (int c = 0; c < 3; c++)
        warp_desc.scale[c] = 1.0f / 255.0f;
    mask.kind = GPST_MASK_ARGMAX;
    mask.width = WIDTH;
    mask.height = HEIGHT;
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_warp_create(&warp_desc, &warp);
    if (!GPST_FAILED(result))
        result = make_pipeline(context, warp, &mask);
    if (!GPST_FAILED(result) && pthread_create(&camera, NULL, capture, NULL) == 0) {
        const int n = render(ages);
        pthread_join(camera, NULL);
        ok = report(ages, n);
    } else {
        fprintf(stderr, "%s\n", gpst_last_reason());
    }
    gpst_pipeline_destroy(pipeline);
    gpst_warp_destroy(warp);
    gpst_context_destroy(context);
    return ok ? 0 : 1;
}
