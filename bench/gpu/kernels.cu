/* bench/gpu/kernels.cu -- the warp on a GPU, in the cases of the benchmarks' page. Bytes are unique bytes: what
   the samples need of the source, and the outputs.

   nvcc -O3 -std=c++17 -arch=native -I. -x cu bench/gpu/kernels.cu -o gpu_kernels
   ./gpu_kernels [--json FILE] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

static cudaStream_t stream;
static FILE* json;
static double copy_rate;

/* n sets of sources and outputs, taken in turns. */
struct warp_case {
    gpst_warp* warp = nullptr;
    std::vector<gpst_image> sources, outputs;
    uint32_t n_sources = 1, n_per_source = 1, n_sets = 1;
    uint64_t bytes = 0;

    void prepare(const gpst_warp_desc& desc, const gpst_image& source, uint32_t batch, uint32_t sets) {
        size_t source_bytes = 0, output_bytes = 0;
        uint64_t read = 0, written = 0;
        gpst_image shape;
        BENCH_OK(gpst_warp_create(&desc, &warp));
        gpst_warp_query_output(warp, &shape);
        gpst_warp_query_bytes(warp, &source, &read, &written);
        n_sources = batch, n_sets = sets, n_per_source = gpst_warp_n_outputs(warp);
        bytes = (read + written) * batch;
        BENCH_OK(gpst_image_bytes(&source, &source_bytes));
        BENCH_OK(gpst_image_bytes(&shape, &output_bytes));
        for (uint32_t i = 0; i < sets * batch; i++) {
            sources.push_back(source);
            sources.back().data = bench_alloc_random(source_bytes, i + 1);
            for (uint32_t o = 0; o < n_per_source; o++) {
                outputs.push_back(shape);
                outputs.back().data = bench_alloc(output_bytes);
            }
        }
    }

    void launch(int i) const {
        const size_t set = (size_t)i % n_sets, n = (size_t)n_sources * n_per_source;
        BENCH_OK(gpst_warp_launch(warp, &sources[set * n_sources], n_sources, &outputs[set * n], (uint32_t)n, stream));
    }

    void finish() {
        BENCH_RT(cudaStreamSynchronize(stream));
        for (const gpst_image& image : sources)
            BENCH_RT(cudaFree(image.data));
        for (const gpst_image& image : outputs)
            BENCH_RT(cudaFree(image.data));
        gpst_warp_destroy(warp);
    }
};

static gpst_image image_of(uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.width = width, image.height = height, image.format = format;
    return image;
}

static void normalise(gpst_warp_desc* desc, gpst_dtype dtype) {
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, deviation[3] = {0.229f, 0.224f, 0.225f};
    desc->dtype = dtype, desc->layout = GPST_LAYOUT_CHW, desc->has_scale = true;
    for (int c = 0; c < 3; c++)
        desc->scale[c] = 1.0f / (255.0f * deviation[c]), desc->bias[c] = -mean[c] / deviation[c];
}

static void measure(const char* name, const gpst_warp_desc& desc, const gpst_image& source, uint32_t batch,
                    uint32_t sets) {
    warp_case c;
    c.prepare(desc, source, batch, sets);
    bench_row(json, name, bench_device_time(stream, 12, 15, [&](int i) { c.launch(i); }), (double)c.bytes, copy_rate);
    c.finish();
}

static void bench_views(void) {
    gpst_view level[8], turned[8];
    memset(level, 0, sizeof level);
    for (int i = 0; i < 8; i++)
        level[i].yaw = 45.0 * i, level[i].hfov = 90;
    memcpy(turned, level, sizeof turned);
    for (int i = 0; i < 8; i++)
        turned[i].pitch = 1e-3; /* hardly another picture, but not level */
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_EQUIRECT, desc.views = level, desc.n_views = 8, desc.width = 1920, desc.height = 1080;
    desc.format = GPST_FORMAT_RGB;
    measure("equirect 7680x3840 rgb8 -> 8 level views u8", desc, image_of(7680, 3840, GPST_FORMAT_RGB), 1, 3);
    measure("equirect 7680x3840 rgba8 -> 8 level views u8", desc, image_of(7680, 3840, GPST_FORMAT_RGBA), 1, 3);
    measure("equirect 7680x3840 nv12 -> 8 level views u8", desc, image_of(7680, 3840, GPST_FORMAT_NV12), 1, 3);
    desc.views = turned;
    measure("equirect 7680x3840 rgb8 -> 8 turned views u8", desc, image_of(7680, 3840, GPST_FORMAT_RGB), 1, 3);
    desc.views = level;
    normalise(&desc, GPST_DTYPE_F16);
    measure("equirect 7680x3840 rgb8 -> 8 level views f16 chw", desc, image_of(7680, 3840, GPST_FORMAT_RGB), 1, 3);
    desc.dtype = GPST_DTYPE_F32;
    measure("equirect 7680x3840 rgb8 -> 8 level views f32 chw", desc, image_of(7680, 3840, GPST_FORMAT_RGB), 1, 3);
}

static gpst_warp_desc tensor_desc(gpst_dtype dtype) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.width = 512, desc.height = 512, desc.format = GPST_FORMAT_RGB;
    normalise(&desc, dtype);
    return desc;
}

static void bench_tensors(void) {
    gpst_warp_desc desc = tensor_desc(GPST_DTYPE_F32), bytes = GPST_ZERO;
    measure("32 x 1080p bgr8 -> 512^2 f32 chw", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 32, 2);
    measure("1 x 1080p bgr8 -> 512^2 f32 chw", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 1, 48);
    measure("32 x 1080p bgra8 -> 512^2 f32 chw", desc, image_of(1920, 1080, GPST_FORMAT_BGRA), 32, 2);
    measure("32 x 1080p nv12 -> 512^2 f32 chw", desc, image_of(1920, 1080, GPST_FORMAT_NV12), 32, 2);
    desc.dtype = GPST_DTYPE_F16;
    measure("32 x 1080p bgr8 -> 512^2 f16 chw", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 32, 2);
    bytes.map = GPST_MAP_RESIZE, bytes.width = 512, bytes.height = 512, bytes.format = GPST_FORMAT_RGB;
    measure("32 x 1080p bgr8 -> 512^2 u8 hwc", bytes, image_of(1920, 1080, GPST_FORMAT_BGR), 32, 2);
    desc = tensor_desc(GPST_DTYPE_F32);
    desc.filter = GPST_FILTER_AREA;
    measure("32 x 1080p bgr8 -> 512^2 f32 chw, area", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 32, 2);
}

/* Crops as a detector's boxes ask for them: the list copied, and read in place by the launch, all of it or a
   quarter. */
static void bench_crops(void) {
    enum { N_CROPS = 64 };
    const uint32_t n_used = N_CROPS / 4;
    gpst_roi rois[N_CROPS];
    for (int i = 0; i < N_CROPS; i++) {
        rois[i].x = (float)(i % 8 * 190) + 0.25f, rois[i].y = (float)(i / 8 * 100) + 0.5f;
        rois[i].width = (float)(150 + 5 * i), rois[i].height = (float)(120 + 3 * i);
    }
    gpst_warp_desc desc = tensor_desc(GPST_DTYPE_F32);
    desc.map = GPST_MAP_ROI, desc.rois = rois, desc.n_rois = N_CROPS, desc.width = 224, desc.height = 224;
    measure("64 crops of 1080p bgr8 -> 224^2 f32 chw", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 1, 8);
    uint8_t* const list = bench_alloc(sizeof rois);
    uint8_t* const count = bench_alloc(sizeof n_used);
    BENCH_RT(cudaMemcpy(list, rois, sizeof rois, cudaMemcpyHostToDevice));
    BENCH_RT(cudaMemcpy(count, &n_used, sizeof n_used, cudaMemcpyHostToDevice));
    desc.rois_in_place = true, desc.rois = (const gpst_roi*)(const void*)list;
    measure("the same, rectangles in place", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 1, 8);
    desc.n_rois_used = (const uint32_t*)(const void*)count;
    measure("the same, 16 of them count", desc, image_of(1920, 1080, GPST_FORMAT_BGR), 1, 8);
    BENCH_RT(cudaFree(list));
    BENCH_RT(cudaFree(count));
}

static __global__ void nothing(void) {}

static void bench_latencies(void) {
    warp_case c;
    c.prepare(tensor_desc(GPST_DTYPE_F32), image_of(1920, 1080, GPST_FORMAT_BGR), 1, 48);
    const bench_spread empty = bench_latency(stream, 2001, [&](int) { nothing<<<1, 1, 0, stream>>>(); });
    bench_row(json, "an empty launch, launch to done, spinning", empty, 0, copy_rate);
    const bench_spread one = bench_latency(stream, 2001, [&](int i) { c.launch(i); });
    bench_row(json, "1 x 1080p bgr8 -> 512^2 f32 chw, launch to done", one, 0, copy_rate);
    c.finish();
}

int main(int argc, char** argv) {
    cudaDeviceProp properties;
    int driver = 0;
    BENCH_RT(cudaGetDeviceProperties(&properties, 0));
    BENCH_RT(cudaDriverGetVersion(&driver));
    BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    json = argc > 2 && strcmp(argv[1], "--json") == 0 ? fopen(argv[2], "w") : nullptr;
    copy_rate = bench_copy_bytes_per_us(stream);
    printf("%s, driver %d, runtime %d, gpustage %s; a copy of 512 MiB reads and writes %.0f GB/s\n", properties.name,
           driver, CUDART_VERSION, GPST_VERSION_TEXT, copy_rate / 1e3);
    bench_views();
    bench_tensors();
    bench_crops();
    bench_latencies();
    if (json)
        fclose(json);
    return 0;
}
