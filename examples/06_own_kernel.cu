/* examples/06_own_kernel.cu -- a kernel of your own behind the warp, on the item's own stream: one upload before both,
   one download behind both. The views are set 1 of an item, and what the kernel makes of them is set 2. The kernel has
   a form for the CPU, too, so the same program runs where no GPU answers.

   nvcc -x cu -O2 -I. examples/06_own_kernel.cu -o own_kernel
   ./own_kernel [auto|cpu|cuda]
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 512, HEIGHT = 256, SIDE = 160, N_VIEWS = 4, N_FRAMES = 24 };

/* ---- the operation: darker towards the corners, in integers ------------------------------------- */

typedef struct vignette_args {
    const unsigned char* from; /* RGB, SIDE x SIDE, in the memory of the device it runs on */
    unsigned char* to;
} vignette_args;

static __host__ __device__ unsigned char vignette_value(unsigned char value, int x, int y) {
    const int dx = 2 * x - SIDE + 1, dy = 2 * y - SIDE + 1;
    const int far = (dx * dx + dy * dy) * 128 / (SIDE * SIDE); /* 0 in the middle, 256 in the corners */
    return (unsigned char)(value * (512 - far) / 512);
}

static __global__ void vignette(vignette_args args) {
    const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x), y = (int)blockIdx.y;
    for (int c = 0; x < SIDE && c < 3; c++) {
        const int i = (y * SIDE + x) * 3 + c;
        args.to[i] = vignette_value(args.from[i], x, y);
    }
}

static gpst_result vignette_gpu(const void* args, void* native_stream) {
    const dim3 grid((SIDE + 63) / 64, SIDE);
    vignette<<<grid, 64, 0, (cudaStream_t)native_stream>>>(*(const vignette_args*)args);
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? GPST_OK : gpst_task_fail(NULL, GPST_ERROR_DEVICE, "vignette: %s", cudaGetErrorString(error));
}

static gpst_result vignette_host(const void* args) {
    const vignette_args* a = (const vignette_args*)args;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 3; c++) {
                const int i = (y * SIDE + x) * 3 + c;
                a->to[i] = vignette_value(a->from[i], x, y);
            }
    return GPST_OK;
}

/* The stage: one launch for every view of the item. It only puts work on the stream; nothing here waits. */
static gpst_result add_vignette(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"vignette", vignette_host, vignette_gpu};
    gpst_image views[N_VIEWS], darker[N_VIEWS];
    (void)user_data;
    gpst_result result = gpst_task_pictures(task, 1, views, N_VIEWS);
    for (uint32_t v = 0; v < N_VIEWS && !GPST_FAILED(result); v++) {
        result = gpst_task_set_picture(task, 2, v, &views[v], &darker[v]);
        if (GPST_FAILED(result))
            break;
        vignette_args args;
        args.from = (const unsigned char*)views[v].data;
        args.to = (unsigned char*)darker[v].data;
        result = gpst_task_enqueue(task, &kernel, &args, sizeof args);
    }
    return result;
}

/* ---- around it ---------------------------------------------------------------------------------- */

typedef struct show {
    unsigned char panorama[WIDTH * HEIGHT * 3];
    unsigned char view[SIDE * SIDE * 3];
    const gpst_warp* warp;
    unsigned long long wrong;
} show;

static void paint(show* self, uint64_t index) {
    for (size_t i = 0; i < sizeof self->panorama; i++)
        self->panorama[i] = (unsigned char)((i * 7 >> 5) + index * 31);
}

static gpst_result next_frame(void* user_data, uint64_t index, gpst_input* out) {
    show* self = (show*)user_data;
    if (index == N_FRAMES)
        return GPST_END;
    paint(self, index);
    out->frame.data = self->panorama;
    out->frame.width = WIDTH;
    out->frame.height = HEIGHT;
    out->frame.format = GPST_FORMAT_RGB;
    return GPST_OK;
}

/* Keeps one byte in a hundred of every view of every item, to be compared at the end. */
enum { KEPT = SIDE * SIDE * 3 / 100 };
static unsigned char kept[N_FRAMES][N_VIEWS][KEPT];

static gpst_result keep(void* user_data, const gpst_item* item) {
    (void)user_data;
    for (uint32_t v = 0; item->result == GPST_OK && v < item->sets[2].n; v++)
        for (int i = 0; i < KEPT; i++)
            kept[item->index][v][i] = ((const unsigned char*)item->sets[2].pictures[v].data)[i * 100];
    return GPST_OK;
}

/* The same once more by direct calls on the CPU: the bits must be the same. */
static gpst_result compare(show* self) {
    for (uint64_t n = 0; n < N_FRAMES; n++) {
        gpst_image source = GPST_ZERO;
        paint(self, n);
        source.data = self->panorama;
        source.width = WIDTH;
        source.height = HEIGHT;
        source.format = GPST_FORMAT_RGB;
        static unsigned char views[N_VIEWS][SIDE * SIDE * 3];
        gpst_image outputs[N_VIEWS];
        for (int v = 0; v < N_VIEWS; v++) {
            gpst_warp_query_output(self->warp, &outputs[v]);
            outputs[v].data = views[v];
        }
        const gpst_result result = gpst_warp_run(self->warp, &source, outputs, N_VIEWS, 1);
        if (GPST_FAILED(result))
            return result;
        for (int v = 0; v < N_VIEWS; v++) {
            vignette_args args;
            args.from = args.to = views[v];
            vignette_host(&args);
            for (int i = 0; i < KEPT; i++)
                self->wrong += kept[n][v][i] != views[v][i * 100];
        }
    }
    return GPST_OK;
}

static gpst_result run(show* self, gpst_context* context, gpst_stats* stats) {
    gpst_stage_desc stages[2] = {};
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stage_warp(&stages[0], 0, 1, self->warp);
    gpst_stage_device(&stages[1], GPST_SET(1), GPST_SET(2), add_vignette, NULL);
    stages[1].name = "vignette";
    desc.capacity[2] = N_VIEWS;
    desc.stages = stages;
    desc.n_stages = 2;
    desc.source = next_frame;
    desc.source_user_data = self;
    desc.sink = keep;
    gpst_result result = gpst_pipeline_create(context, &desc, &pipeline);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_run(pipeline);
    if (pipeline) {
        gpst_pipeline_query_stats(pipeline, stats);
        gpst_pipeline_destroy(pipeline);
    }
    return result;
}

int main(int argc, char** argv) {
    static show self;
    static gpst_stats stats;
    gpst_view views[N_VIEWS] = {};
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_context_info info;
    for (int v = 0; v < N_VIEWS; v++)
        views[v].yaw = 90.0 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = desc.height = SIDE;
    desc.format = GPST_FORMAT_RGB;
    context_desc.backend = argc > 1 ? argv[1] : "auto";
    gpst_result result = gpst_warp_create(&desc, &warp);
    self.warp = warp;
    if (!GPST_FAILED(result))
        result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = run(&self, context, &stats);
    if (!GPST_FAILED(result))
        result = compare(&self);
    if (GPST_FAILED(result)) {
        fprintf(stderr, "%s: %s\n", gpst_result_name(result), gpst_last_reason());
    } else {
        gpst_context_query_info(context, &info);
        printf("%d frames of %d views on %s, %llu bytes differ from the CPU's, %llu items fell back\n", N_FRAMES, N_VIEWS,
               info.backend, self.wrong, (unsigned long long)stats.device_fallbacks);
    }
    gpst_context_destroy(context);
    gpst_warp_destroy(warp);
    return GPST_FAILED(result) || self.wrong ? 1 : 0;
}
