/* examples/05_push.c -- push: one thread hands frames in as they come, another takes the results, in order.

   cc -std=c11 -O2 -I. examples/05_push.c -o push -pthread
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 360, N_FRAMES = 300 };

/* Stands for a camera: frame i is all of value i. Submit copies it, and waits while every slot is taken. */
static void* capture(void* argument) {
    static unsigned char pixels[WIDTH * HEIGHT * 3];
    gpst_pipeline* pipeline = (gpst_pipeline*)argument;
    gpst_input input = GPST_ZERO;
    input.frame.data = pixels;
    input.frame.width = WIDTH;
    input.frame.height = HEIGHT;
    input.frame.format = GPST_FORMAT_RGB;
    for (int i = 0; i < N_FRAMES; i++) {
        memset(pixels, i & 255, sizeof pixels);
        input.timestamp_ns = (int64_t)i * 33333333;
        if (gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL) != GPST_OK)
            break;
    }
    gpst_pipeline_close(pipeline); /* nothing more will come */
    return NULL;
}

int main(void) {
    gpst_warp_desc warp_desc = GPST_ZERO;
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.width = 224;
    warp_desc.height = 224;
    warp_desc.format = GPST_FORMAT_RGB;
    warp_desc.dtype = GPST_DTYPE_F32;
    warp_desc.layout = GPST_LAYOUT_CHW;
    warp_desc.has_scale = true;
    for (int c = 0; c < 3; c++)
        warp_desc.scale[c] = 1.0f / 255.0f;

    gpst_context_desc context_desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_warp* warp = NULL;
    gpst_pipeline* pipeline = NULL;
    stage.kind = GPST_STAGE_WARP;
    desc.stages = &stage;
    desc.n_stages = 1; /* no source and no sink: submit and next_result */
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_warp_create(&warp_desc, &warp);
    stage.warp = warp;
    if (!GPST_FAILED(result))
        result = gpst_pipeline_create(context, &desc, &pipeline);
    pthread_t camera;
    if (GPST_FAILED(result) || pthread_create(&camera, NULL, capture, pipeline) != 0) {
        fprintf(stderr, "%s\n", gpst_last_reason());
        gpst_pipeline_destroy(pipeline);
        gpst_warp_destroy(warp);
        gpst_context_destroy(context);
        return 1;
    }

    uint64_t n = 0, wrong = 0;
    const gpst_item* item;
    while (gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_OK) { /* then GPST_END */
        if (GPST_FAILED(item->result)) {
            fprintf(stderr, "%s: %s: %s\n", item->name, item->stage, item->reason);
            wrong++;
        } else {
            const float* tensor = (const float*)item->sets[1].pictures[0].data;
            const float expected = (float)(n & 255) * (1.0f / 255.0f);
            wrong += item->index != n || tensor[0] != expected || tensor[3 * 224 * 224 - 1] != expected;
        }
        gpst_pipeline_release(pipeline, item); /* its memory is for the next frame */
        n++;
    }
    pthread_join(camera, NULL);
    printf("%llu tensors in order, %llu wrong\n", (unsigned long long)n, (unsigned long long)wrong);
    gpst_pipeline_destroy(pipeline);
    gpst_warp_destroy(warp);
    gpst_context_destroy(context);
    return n == N_FRAMES && wrong == 0 ? 0 : 1;
}
