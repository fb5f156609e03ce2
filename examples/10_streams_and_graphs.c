/* examples/10_streams_and_graphs.c -- without a pipeline: one stream uploads frames, another computes views of them and
   brings them back, and events keep the two in step. What is computed is recorded, and a cache runs it: as one graph
   from the second time on, where that saves time. The same program on a CPU, where every call is done when it returns.

   cc -std=c11 -O2 -I. examples/10_streams_and_graphs.c -o streams -pthread -lm
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 320, SIDE = 160, N_VIEWS = 4, N_FRAMES = 20, N_SLOTS = 2 };
#define FRAME_BYTES ((size_t)WIDTH * HEIGHT * 3)
#define VIEW_BYTES ((size_t)SIDE * SIDE * 3)

/* What a frame needs on its way: two of them, so that one may be uploaded while the other is computed. */
typedef struct slot {
    gpst_memory *frame, *views, *device_frame, *device_views;
    gpst_event *arrived, *done;
} slot;

static gpst_device* device;
static gpst_stream *load, *compute;
static gpst_graph_cache* graphs;
static gpst_warp* warp;
static slot slots[N_SLOTS];

static gpst_result make_slot(slot* s) {
    gpst_result result = gpst_memory_create(device, GPST_MEMORY_PINNED, FRAME_BYTES, &s->frame);
    if (!GPST_FAILED(result))
        result = gpst_memory_create(device, GPST_MEMORY_PINNED, N_VIEWS * VIEW_BYTES, &s->views);
    if (!GPST_FAILED(result))
        result = gpst_memory_create(device, GPST_MEMORY_DEVICE, FRAME_BYTES, &s->device_frame);
    if (!GPST_FAILED(result))
        result = gpst_memory_create(device, GPST_MEMORY_DEVICE, N_VIEWS * VIEW_BYTES, &s->device_views);
    if (!GPST_FAILED(result))
        result = gpst_event_create(device, &s->arrived);
    if (!GPST_FAILED(result))
        result = gpst_event_create(device, &s->done);
    return result;
}

static void free_slot(slot* s) {
    gpst_event_destroy(s->arrived);
    gpst_event_destroy(s->done);
    gpst_memory_destroy(s->frame);
    gpst_memory_destroy(s->views);
    gpst_memory_destroy(s->device_frame);
    gpst_memory_destroy(s->device_views);
}

static gpst_result make_warp(void) {
    gpst_view views[N_VIEWS] = GPST_ZERO;
    gpst_warp_desc desc = GPST_ZERO;
    for (int v = 0; v < N_VIEWS; v++)
        views[v].yaw = 90 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = desc.height = SIDE;
    desc.format = GPST_FORMAT_RGB;
    return gpst_warp_create(&desc, &warp);
}

/* The descriptions may go when each call returns. Each slot has its own addresses, and so its own graph. */
static gpst_result compute_views(slot* s) {
    gpst_image source = GPST_ZERO, outputs[N_VIEWS];
    source.data = gpst_memory_data(s->device_frame);
    source.width = WIDTH;
    source.height = HEIGHT;
    source.format = GPST_FORMAT_RGB;
    for (int v = 0; v < N_VIEWS; v++) {
        gpst_warp_query_output(warp, &outputs[v]);
        outputs[v].data = (unsigned char*)gpst_memory_data(s->device_views) + (size_t)v * VIEW_BYTES;
    }
    gpst_result result = gpst_graph_begin(compute);
    if (!GPST_FAILED(result))
        result = gpst_warp_enqueue(warp, &source, outputs, N_VIEWS, compute);
    if (!GPST_FAILED(result))
        result = gpst_copy(gpst_memory_data(s->views), gpst_memory_data(s->device_views), N_VIEWS * VIEW_BYTES,
                           compute);
    if (!GPST_FAILED(result))
        result = gpst_graph_cache_run(graphs, compute);
    return result;
}

/* A picture of one grey, whose views are of that grey, too. Events are not recorded: they stand around it. */
static gpst_result send(slot* s, int frame) {
    memset(gpst_memory_data(s->frame), frame, FRAME_BYTES);
    gpst_result result = gpst_copy(gpst_memory_data(s->device_frame), gpst_memory_data(s->frame), FRAME_BYTES, load);
    if (!GPST_FAILED(result))
        result = gpst_event_record(s->arrived, load);
    if (!GPST_FAILED(result))
        result = gpst_stream_wait(compute, s->arrived);
    if (!GPST_FAILED(result))
        result = compute_views(s);
    if (!GPST_FAILED(result))
        result = gpst_event_record(s->done, compute);
    return result;
}

static int count_wrong(const slot* s, int frame) {
    const unsigned char* pixels = (const unsigned char*)gpst_memory_data(s->views);
    int wrong = 0;
    for (size_t i = 0; i < N_VIEWS * VIEW_BYTES; i++)
        wrong += pixels[i] != frame;
    return wrong;
}

int main(int argc, char** argv) {
    gpst_device_info info;
    gpst_graph_cache_info used;
    int wrong = 0;
    gpst_result result = gpst_device_open(argc > 1 ? argv[1] : "auto", &device);
    if (!GPST_FAILED(result))
        result = gpst_stream_create(device, &load);
    if (!GPST_FAILED(result))
        result = gpst_stream_create(device, &compute);
    if (!GPST_FAILED(result))
        result = gpst_graph_cache_create(device, NULL, &graphs);
    if (!GPST_FAILED(result))
        result = make_warp();
    for (int k = 0; k < N_SLOTS && !GPST_FAILED(result); k++)
        result = make_slot(&slots[k]);
    /* A slot is used again when its views are here. */
    for (int frame = 0; frame < N_FRAMES + N_SLOTS && !GPST_FAILED(result); frame++) {
        slot* const s = &slots[frame % N_SLOTS];
        if (frame >= N_SLOTS && !GPST_FAILED(result = gpst_event_wait(s->done, GPST_FOREVER)))
            wrong += count_wrong(s, frame - N_SLOTS);
        if (frame < N_FRAMES && !GPST_FAILED(result))
            result = send(s, frame);
    }
    if (!GPST_FAILED(result))
        result = gpst_stream_synchronize(compute); /* whatever failed on the way is told of here */
    if (GPST_FAILED(result)) {
        fprintf(stderr, "%s\n", gpst_last_reason());
    } else {
        gpst_device_query_info(device, &info);
        gpst_graph_cache_query_info(graphs, &used);
        printf("%d frames, %d views each, %d values wrong, on %s: %s (%s)\n", N_FRAMES, N_VIEWS, wrong, info.backend,
               info.name, info.reason);
        printf("%u of %u runs by a graph, the others piece by piece (%s)\n",
               (unsigned)(used.hits + used.captures + used.updates), (unsigned)used.runs,
               used.refused > 0 ? used.reason : "seen for the first time");
    }
    gpst_stream_destroy(load); /* first: what they use goes next */
    gpst_stream_destroy(compute);
    gpst_graph_cache_destroy(graphs);
    for (int k = 0; k < N_SLOTS; k++)
        free_slot(&slots[k]);
    gpst_warp_destroy(warp);
    gpst_device_close(device);
    return GPST_FAILED(result) || wrong > 0 ? 1 : 0;
}
