/* examples/07_two_warps.c -- two warps of one frame: a tensor for a network and a small preview, both from one upload.
   The frame is lent, not copied; the sink is given both, and the path says which bytes crossed the link for whom.

   cc -std=c11 -O2 -I. examples/07_two_warps.c -o two_warps -pthread
   ./two_warps [auto|cpu|cuda]
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>
#include <stdlib.h>

enum { FRAME, TENSOR, PREVIEW }; /* the picture sets of an item */
enum { WIDTH = 1920, HEIGHT = 1080, N_FRAMES = 8 };

/* A camera whose driver has a buffer for every frame. It is lent, and given back once: by free, when nothing reads it
   any more. A source may wait; who calls it waits with it. */
static gpst_result next_frame(void* user_data, uint64_t index, gpst_input* out) {
    const size_t bytes = (size_t)WIDTH * HEIGHT * 3;
    (void)user_data;
    if (index == N_FRAMES)
        return GPST_END;
    unsigned char* pixels = (unsigned char*)malloc(bytes);
    if (!pixels)
        return GPST_ERROR_MEMORY;
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (unsigned char)(i * 7 + index);
    out->frame.data = pixels;
    out->frame.width = WIDTH;
    out->frame.height = HEIGHT;
    out->frame.format = GPST_FORMAT_BGR;
    out->release = free;
    out->release_user_data = pixels;
    return GPST_OK;
}

static gpst_result take(void* user_data, const gpst_item* item) {
    double* sum = (double*)user_data;
    if (item->result != GPST_OK)
        fprintf(stderr, "%s: %s: %s\n", item->name, item->stage, item->reason);
    else
        *sum += ((const float*)item->sets[TENSOR].pictures[0].data)[0] +
                ((const unsigned char*)item->sets[PREVIEW].pictures[0].data)[0];
    return GPST_OK;
}

static gpst_warp* resize(uint32_t width, uint32_t height, int is_tensor) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.width = width;
    desc.height = height;
    desc.format = GPST_FORMAT_RGB;
    if (is_tensor) {
        desc.dtype = GPST_DTYPE_F32;
        desc.layout = GPST_LAYOUT_CHW;
        desc.has_scale = true;
        for (int c = 0; c < 3; c++)
            desc.scale[c] = 1.0f / 255.0f;
    }
    if (GPST_FAILED(gpst_warp_create(&desc, &warp)))
        fprintf(stderr, "%s\n", gpst_last_reason());
    return warp;
}

static gpst_result run(const char* backend, const gpst_warp* to_tensor, const gpst_warp* to_preview) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stage_desc stages[2];
    static gpst_stats stats;
    double sum = 0;
    context_desc.backend = backend;
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (GPST_FAILED(result))
        return result;
    gpst_stage_warp(&stages[0], FRAME, TENSOR, to_tensor);
    gpst_stage_warp(&stages[1], FRAME, PREVIEW, to_preview);
    desc.stages = stages;
    desc.n_stages = 2;
    desc.source = next_frame;
    desc.sink = take;
    desc.sink_user_data = &sum;
    result = gpst_pipeline_create(context, &desc, &pipeline);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, &stats);
    for (uint32_t c = 0; c < stats.n_copies; c++)
        printf("set %u %s for %s: %.1f MB\n", stats.copies[c].set, stats.copies[c].up ? "up" : "down",
               stats.copies[c].wanted, (double)stats.copies[c].bytes * 1e-6);
    printf("%llu frames, sum %.3f\n", (unsigned long long)stats.items_ok, sum);
    gpst_pipeline_destroy(pipeline);
    gpst_context_destroy(context);
    return result;
}

int main(int argc, char** argv) {
    gpst_warp* to_tensor = resize(512, 512, 1);
    gpst_warp* to_preview = resize(320, 180, 0);
    const gpst_result result =
        to_tensor && to_preview ? run(argc > 1 ? argv[1] : "auto", to_tensor, to_preview) : GPST_ERROR_ARGUMENT;
    if (GPST_FAILED(result))
        fprintf(stderr, "%s\n", gpst_last_reason());
    gpst_warp_destroy(to_tensor);
    gpst_warp_destroy(to_preview);
    return GPST_FAILED(result) ? 1 : 0;
}
