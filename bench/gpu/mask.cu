/* bench/gpu/mask.cu -- masks and quantising on a GPU, in the cases of the benchmarks' page. Bytes are unique bytes:
   each input byte once, each output byte once. tools/peers/torch_gpu_mask.py runs the same cases with PyTorch.

   nvcc -O3 -std=c++17 -arch=native -I. -x cu bench/gpu/mask.cu -o gpu_mask
   ./gpu_mask [--json FILE] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

static cudaStream_t stream;
static FILE* json;
static double copy_rate;

/* Inputs and outputs in turns, over more than the last cache holds. */
struct turns {
    std::vector<uint8_t*> in, out;
    turns(size_t in_bytes, size_t out_bytes, bool scores) {
        const size_t n = std::min<size_t>(64, ((size_t)256 << 20) / (in_bytes + out_bytes) + 2);
        for (size_t i = 0; i < n; i++) {
            in.push_back(scores ? random_floats(in_bytes, (uint32_t)i + 1) : bench_alloc_random(in_bytes, (uint32_t)i + 1));
            out.push_back(bench_alloc(out_bytes));
        }
    }
    ~turns() {
        BENCH_RT(cudaStreamSynchronize(stream));
        for (size_t i = 0; i < in.size(); i++) {
            BENCH_RT(cudaFree(in[i]));
            BENCH_RT(cudaFree(out[i]));
        }
    }
    uint8_t* from(int i) const { return in[(size_t)i % in.size()]; }
    uint8_t* to(int i) const { return out[(size_t)i % out.size()]; }

    /* Of -1 to 1, spread evenly; as halves they are any finite number. */
    static uint8_t* random_floats(size_t bytes, uint32_t seed) {
        std::vector<uint32_t> bits(bytes / 4 + 1);
        for (uint32_t& value : bits) {
            seed = seed * 1664525u + 1013904223u;
            const float number = (float)(int32_t)seed / 2147483648.0f;
            memcpy(&value, &number, 4);
        }
        uint8_t* const memory = bench_alloc(bytes);
        BENCH_RT(cudaMemcpy(memory, bits.data(), bytes, cudaMemcpyHostToDevice));
        return memory;
    }
};

template <typename Launch>
static void measure(const char* name, double bytes, Launch launch) {
    bench_row(json, name, bench_device_time(stream, 20, 21, launch), bytes, copy_rate);
}

/* ---- argmax ------------------------------------------------------------------------- */
static void argmax(const char* name, uint32_t batch, uint32_t side, gpst_dtype dtype, gpst_layout layout, uint32_t width,
                   uint32_t height) {
    const size_t in_bytes = (size_t)21 * side * side * gpst_dtype_bytes(dtype), out_bytes = (size_t)width * height;
    const turns t(in_bytes * batch, out_bytes * batch, true);
    std::vector<gpst_logits> logits(batch);
    std::vector<gpst_labels> labels(batch);
    measure(name, (double)(in_bytes + out_bytes) * batch, [&](int i) {
        for (uint32_t k = 0; k < batch; k++) {
            logits[k].data = t.from(i) + k * in_bytes, labels[k].data = t.to(i) + k * out_bytes;
            logits[k].n_classes = labels[k].n_classes = 21;
            logits[k].width = logits[k].height = side;
            labels[k].width = width, labels[k].height = height;
            logits[k].dtype = dtype, logits[k].layout = layout;
        }
        BENCH_OK(gpst_mask_argmax_launch(logits.data(), labels.data(), batch, stream));
    });
}

/* ---- 16 pictures of 1920 x 1080 -------------------------------------------------------- */
enum { BATCH = 16, WIDTH = 1920, HEIGHT = 1080, PIXELS = WIDTH * HEIGHT };

static std::vector<gpst_image> images_of(uint8_t* data, gpst_dtype dtype, gpst_format format) {
    std::vector<gpst_image> images(BATCH);
    for (uint32_t k = 0; k < BATCH; k++) {
        images[k].width = WIDTH, images[k].height = HEIGHT;
        images[k].format = format, images[k].dtype = dtype;
        images[k].data = data + k * gpst_image_row_bytes(&images[k]) * HEIGHT;
    }
    return images;
}

static std::vector<gpst_labels> labels_of(uint8_t* data) {
    std::vector<gpst_labels> labels(BATCH);
    for (uint32_t k = 0; k < BATCH; k++) {
        labels[k].data = data + (size_t)k * PIXELS;
        labels[k].width = WIDTH, labels[k].height = HEIGHT;
        labels[k].n_classes = 21;
    }
    return labels;
}

static void thresholds(void) {
    const turns floats((size_t)BATCH * PIXELS * 4, (size_t)BATCH * PIXELS, true), bytes((size_t)BATCH * PIXELS, (size_t)BATCH * PIXELS, false);
    measure("threshold, 16 x 1080p f32", 5.0 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_threshold_launch(images_of(floats.from(i), GPST_DTYPE_F32, GPST_FORMAT_GRAY).data(), 0.25f,
                                            images_of(floats.to(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY).data(), BATCH, stream));
    });
    measure("threshold, 16 x 1080p u8", 2.0 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_threshold_launch(images_of(bytes.from(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY).data(), 100,
                                            images_of(bytes.to(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY).data(), BATCH, stream));
    });
}

static std::vector<gpst_bitmap> bitmaps_of(uint8_t* data) {
    std::vector<gpst_bitmap> bitmaps(BATCH);
    for (uint32_t k = 0; k < BATCH; k++) {
        bitmaps[k].data = data + (size_t)k * PIXELS / 8;
        bitmaps[k].width = WIDTH, bitmaps[k].height = HEIGHT;
    }
    return bitmaps;
}

static void bits(void) {
    const turns t((size_t)BATCH * PIXELS, (size_t)BATCH * PIXELS, false);
    measure("pack, 16 x 1080p", 1.125 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_pack_launch(images_of(t.from(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY).data(),
                                       bitmaps_of(t.to(i)).data(), BATCH, stream));
    });
    measure("unpack, 16 x 1080p", 1.125 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_unpack_launch(bitmaps_of(t.from(i)).data(),
                                         images_of(t.to(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY).data(), BATCH, stream));
    });
}

/* Pictures as segmentation gives them: scores of 30 x 17 enlarged. */
static void regions(const turns& t, uint8_t* const* data, uint32_t n_classes) {
    for (size_t i = 0; i < t.in.size(); i++) {
        uint8_t* const scores = turns::random_floats((size_t)BATCH * n_classes * 30 * 17 * 4, (uint32_t)i + 77);
        std::vector<gpst_logits> logits(BATCH);
        std::vector<gpst_labels> labels = labels_of(data[i]);
        for (uint32_t k = 0; k < BATCH; k++) {
            logits[k].data = scores + (size_t)k * n_classes * 30 * 17 * 4;
            logits[k].width = 30, logits[k].height = 17, logits[k].n_classes = labels[k].n_classes = n_classes;
            logits[k].dtype = GPST_DTYPE_F32, logits[k].layout = GPST_LAYOUT_CHW;
        }
        BENCH_OK(gpst_mask_argmax_launch(logits.data(), labels.data(), BATCH, stream));
        BENCH_RT(cudaStreamSynchronize(stream));
        BENCH_RT(cudaFree(scores));
    }
}

static void windows(void) {
    static const char* const names[4] = {"open 3 x 3, 16 x 1080p", "close 5 x 5, 16 x 1080p", "smooth Gaussian 3 x 3, 16 x 1080p",
                                         "smooth Gaussian 5 x 5, 16 x 1080p"};
    const turns t((size_t)BATCH * PIXELS, (size_t)BATCH * PIXELS, false);
    regions(t, t.in.data(), 2);
    for (uint32_t op = 0; op < 4; op++)
        measure(names[op], 2.0 * BATCH * PIXELS, [&](int i) {
            const std::vector<gpst_image> from = images_of(t.from(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY);
            const std::vector<gpst_image> to = images_of(t.to(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY);
            BENCH_OK(op < 2 ? gpst_mask_morph_launch(from.data(), op ? GPST_MORPH_CLOSE : GPST_MORPH_OPEN, op ? 5 : 3,
                                                     to.data(), BATCH, stream)
                            : gpst_mask_smooth_launch(from.data(), GPST_SMOOTH_GAUSSIAN, op == 2 ? 3 : 5, to.data(), BATCH,
                                                      stream));
        });
    measure("boxes of masks, 16 x 1080p", 1.0 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_box_launch(images_of(t.from(i), GPST_DTYPE_U8, GPST_FORMAT_GRAY).data(),
                                      (gpst_box*)(void*)t.to(i), BATCH, stream));
    });
}

static void labels(void) {
    const turns t((size_t)BATCH * PIXELS, (size_t)BATCH * PIXELS, false), guides((size_t)BATCH * PIXELS * 3, 256, false);
    regions(t, t.in.data(), 21);
    measure("boxes of 21 labels, 16 x 1080p", 1.0 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_label_boxes_launch(labels_of(t.from(i)).data(), (gpst_box*)(void*)t.to(i), BATCH, stream));
    });
    measure("refine, 16 x 1080p", 2.0 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_refine_launch(labels_of(t.from(i)).data(), nullptr, 0, labels_of(t.to(i)).data(), BATCH, stream));
    });
    measure("refine with RGB guide, 16 x 1080p", 5.0 * BATCH * PIXELS, [&](int i) {
        BENCH_OK(gpst_mask_refine_launch(labels_of(t.from(i)).data(),
                                         images_of(guides.from(i), GPST_DTYPE_U8, GPST_FORMAT_RGB).data(), 40,
                                         labels_of(t.to(i)).data(), BATCH, stream));
    });
}

/* ---- quantise ------------------------------------------------------------------------------- */
static void quantise(const char* name, gpst_dtype dtype, size_t n_outer, uint32_t n_channels, size_t n_inner) {
    const size_t n = n_outer * n_channels * n_inner, unit = gpst_dtype_bytes(dtype);
    const turns t(n * unit, n + n_channels * sizeof(gpst_calibration_info), true);
    uint8_t* const scales = turns::random_floats(n_channels * 4, 5);
    char text[96];
    gpst_channels values = GPST_ZERO;
    values.dtype = dtype;
    values.n_outer = n_outer, values.n_channels = n_channels, values.n_inner = n_inner;
    snprintf(text, sizeof text, "quantise, %s", name);
    measure(text, (double)n * (double)(unit + 1), [&](int i) {
        values.data = t.from(i);
        BENCH_OK(gpst_quantise_launch(&values, (const float*)(void*)scales, (int8_t*)t.to(i), stream));
    });
    snprintf(text, sizeof text, "dequantise, %s", name);
    measure(text, (double)n * (double)(unit + 1), [&](int i) {
        values.data = t.from(i);
        BENCH_OK(gpst_dequantise_launch((const int8_t*)t.to(i), (const float*)(void*)scales, &values, stream));
    });
    snprintf(text, sizeof text, "ranges, %s", name);
    measure(text, (double)n * (double)unit, [&](int i) {
        values.data = t.from(i);
        BENCH_OK(gpst_calibration_ranges_launch(&values, (gpst_calibration_info*)(void*)t.to(i), stream));
    });
    BENCH_RT(cudaStreamSynchronize(stream));
    BENCH_RT(cudaFree(scales));
}

int main(int argc, char** argv) {
    cudaDeviceProp device;
    int n_devices = 0;
    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
        printf("skipped: no device\n");
        return 77;
    }
    BENCH_RT(cudaGetDeviceProperties(&device, 0));
    BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    json = argc > 2 && strcmp(argv[1], "--json") == 0 ? fopen(argv[2], "w") : nullptr;
    copy_rate = bench_copy_bytes_per_us(stream);
    printf("%s, a copy moves %.0f GB/s; medians of 21 samples of 20 launches\n", device.name, copy_rate / 1e3);
    argmax("argmax 8 x 21 x 512 x 512 f32 CHW", 8, 512, GPST_DTYPE_F32, GPST_LAYOUT_CHW, 512, 512);
    argmax("argmax 8 x 21 x 512 x 512 f16 CHW", 8, 512, GPST_DTYPE_F16, GPST_LAYOUT_CHW, 512, 512);
    argmax("argmax 8 x 512 x 512 x 21 f32 HWC", 8, 512, GPST_DTYPE_F32, GPST_LAYOUT_HWC, 512, 512);
    argmax("argmax 21 x 128 x 128 f32 to 1080p", 1, 128, GPST_DTYPE_F32, GPST_LAYOUT_CHW, WIDTH, HEIGHT);
    argmax("argmax 21 x 128 x 128 f16 to 1080p", 1, 128, GPST_DTYPE_F16, GPST_LAYOUT_CHW, WIDTH, HEIGHT);
    argmax("argmax 128 x 128 x 21 f32 HWC to 1080p", 1, 128, GPST_DTYPE_F32, GPST_LAYOUT_HWC, WIDTH, HEIGHT);
    thresholds();
    bits();
    windows();
    labels();
    quantise("4 x 64 x 512 x 512 f32 NCHW", GPST_DTYPE_F32, 4, 64, 512 * 512);
    quantise("4 x 64 x 512 x 512 f16 NCHW", GPST_DTYPE_F16, 4, 64, 512 * 512);
    quantise("4 x 512 x 512 x 64 f32 NHWC", GPST_DTYPE_F32, 4 * 512 * 512, 64, 1);
    quantise("8 x 1080p x 3 f32 NHWC", GPST_DTYPE_F32, 8 * PIXELS, 3, 1);
    if (json)
        fclose(json);
    return 0;
}
