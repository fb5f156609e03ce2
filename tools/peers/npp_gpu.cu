/* tools/peers/npp_gpu.cu -- the same work by NVIDIA's NPP: remap with ready maps, and the chain of calls that makes a
   normalised tensor of a frame.

   nvcc -O3 -std=c++17 -arch=native -I. tools/peers/npp_gpu.cu -o npp_gpu -lnppig -lnppicc -lnppial -lnppidei -lnppc */
#include "../../bench/gpu/gpu.h"

#include <cmath>
#include <cstring>

#include <npp.h>

#define PEER_NPP(call)                                                               \
    do {                                                                             \
        const NppStatus peer_status = (call);                                        \
        if (peer_status != NPP_SUCCESS) {                                            \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, peer_status); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static NppStreamContext context;

/* Positions of one level view in a source of W x H. */
static void view_map(double yaw, int width, int height, int w, int h, float** x, float** y) {
    std::vector<float> xs((size_t)width * height), ys((size_t)width * height);
    for (int j = 0; j < height; j++)
        for (int i = 0; i < width; i++) {
            const double a = (2.0 * i + 1 - width) / width, b = (2.0 * j + 1 - height) / width;
            const double u = (atan2(a, 1.0) + yaw) / (2 * M_PI) + 0.5, v = atan2(b, hypot(a, 1.0)) / M_PI + 0.5;
            xs[(size_t)j * width + i] = (float)((u - floor(u)) * w - 0.5);
            ys[(size_t)j * width + i] = (float)(v * h - 0.5);
        }
    *x = (float*)bench_alloc(xs.size() * 4);
    *y = (float*)bench_alloc(ys.size() * 4);
    BENCH_RT(cudaMemcpy(*x, xs.data(), xs.size() * 4, cudaMemcpyHostToDevice));
    BENCH_RT(cudaMemcpy(*y, ys.data(), ys.size() * 4, cudaMemcpyHostToDevice));
}

static void bench_remap(FILE* json) {
    const int w = 7680, h = 3840, width = 1920, height = 1080;
    uint8_t *sources[3], *outputs[3][8];
    float *xs[8], *ys[8];
    for (int s = 0; s < 3; s++) {
        sources[s] = bench_alloc_random((size_t)w * h * 3, s + 1);
        for (int v = 0; v < 8; v++)
            outputs[s][v] = bench_alloc((size_t)width * height * 3);
    }
    for (int v = 0; v < 8; v++)
        view_map(M_PI / 4 * v, width, height, w, h, &xs[v], &ys[v]);
    const NppiSize size = {w, h}, out = {width, height};
    const NppiRect roi = {0, 0, w, h};
    const bench_spread time = bench_device_time(context.hStream, 6, 15, [&](int i) {
        for (int v = 0; v < 8; v++)
            PEER_NPP(nppiRemap_8u_C3R_Ctx(sources[i % 3], size, w * 3, roi, xs[v], width * 4, ys[v], width * 4,
                                          outputs[i % 3][v], width * 3, out, NPPI_INTER_LINEAR, context));
    });
    bench_row(json, "npp: remap 7680x3840 rgb8 -> 8 views u8", time, 0, 1);
}

static void bench_chain(FILE* json) {
    const int n = 64, w = 1920, h = 1080, side = 512, order[3] = {2, 1, 0};
    const Npp32f scale[3] = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}, mean[3] = {123.675f, 116.28f, 103.53f};
    std::vector<uint8_t*> sources, outputs;
    for (int i = 0; i < n; i++) {
        sources.push_back(bench_alloc_random((size_t)w * h * 3, i + 1));
        outputs.push_back(bench_alloc((size_t)side * side * 12));
    }
    uint8_t *const small = bench_alloc((size_t)side * side * 3), *const swapped = bench_alloc((size_t)side * side * 3);
    Npp32f* const wide = (Npp32f*)bench_alloc((size_t)side * side * 12);
    const NppiSize size = {w, h}, out = {side, side};
    const NppiRect roi = {0, 0, w, h}, out_roi = {0, 0, side, side};
    const bench_spread time = bench_device_time(context.hStream, 64, 15, [&](int i) {
        Npp32f* const planes = (Npp32f*)outputs[i % n];
        Npp32f* const plane_list[3] = {planes, planes + side * side, planes + 2 * side * side};
        PEER_NPP(nppiResize_8u_C3R_Ctx(sources[i % n], w * 3, size, roi, small, side * 3, out, out_roi,
                                       NPPI_INTER_LINEAR, context));
        PEER_NPP(nppiSwapChannels_8u_C3R_Ctx(small, side * 3, swapped, side * 3, out, order, context));
        PEER_NPP(nppiConvert_8u32f_C3R_Ctx(swapped, side * 3, wide, side * 12, out, context));
        PEER_NPP(nppiSubC_32f_C3IR_Ctx(mean, wide, side * 12, out, context));
        PEER_NPP(nppiMulC_32f_C3IR_Ctx(scale, wide, side * 12, out, context));
        PEER_NPP(nppiCopy_32f_C3P3R_Ctx(wide, side * 12, plane_list, side * 4, out, context));
    });
    bench_row(json, "npp: 1 x 1080p bgr8 -> 512^2 f32 chw, six calls", time, 0, 1);
}

int main(int argc, char** argv) {
    FILE* const json = argc > 1 ? fopen(argv[1], "w") : nullptr;
    cudaDeviceProp properties;
    cudaStream_t stream;
    BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    BENCH_RT(cudaGetDeviceProperties(&properties, 0));
    memset(&context, 0, sizeof context);
    context.hStream = stream;
    context.nMultiProcessorCount = properties.multiProcessorCount;
    context.nMaxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
    context.nMaxThreadsPerBlock = properties.maxThreadsPerBlock;
    context.nSharedMemPerBlock = properties.sharedMemPerBlock;
    context.nCudaDevAttrComputeCapabilityMajor = properties.major;
    context.nCudaDevAttrComputeCapabilityMinor = properties.minor;
    bench_remap(json);
    bench_chain(json);
    if (json)
        fclose(json);
    return 0;
}
