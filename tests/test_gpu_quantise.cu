/* tests/test_gpu_quantise.cu -- quantising and ranges on a GPU against those on the CPU, bit for bit: tables of cases
   by chance, a large tensor. Needs no library but the runtime; exits with 77 where no device answers.

   nvcc -O2 -x cu tests/test_gpu_quantise.cu -o test_gpu_quantise && ./test_gpu_quantise [--quick] */
#include "test_gpu_mask.h"

static gpst_channels pick_channels(arena* a, gpst_dtype dtype) {
    static const size_t outers[] = {1, 2, 7, 64}, inners[] = {1, 2, 9, 63, 64, 65, 127, 200, 1030};
    static const uint32_t channels[] = {1, 2, 3, 5, 16, 300};
    gpst_channels values = GPST_ZERO;
    values.dtype = dtype;
    values.n_channels = channels[random_below(6)];
    values.n_outer = outers[random_below(4)];
    values.n_inner = values.n_outer == 64 ? 1 + random_below(3) : inners[random_below(values.n_channels > 16 ? 4 : 9)];
    values.data =
        take(a, values.n_outer * values.n_channels * values.n_inner * gpst_dtype_bytes(dtype), gpst_dtype_bytes(dtype));
    return values;
}

static void test_quantise(uint32_t n_cases) {
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const gpst_dtype dtype = choice & 1 ? GPST_DTYPE_F16 : GPST_DTYPE_F32;
        const bool back = choice & 2;
        tidy = random_below(2);
        arenas_begin();
        gpst_channels values = pick_channels(back ? &output : &source, dtype);
        const size_t n = values.n_outer * values.n_channels * values.n_inner;
        int8_t* const integers = (int8_t*)take(back ? &source : &output, n, 1);
        if (back)
            for (size_t i = 0; i < source.used; i++)
                source.host[i] = (uint8_t)random_next();
        else
            fill_scores(dtype, choice / 4 % 5);
        float* const scales = (float*)take(&source, values.n_channels * sizeof(float), 4 + (size_t)(tidy ? 0 : 4));
        for (uint32_t c = 0; c < values.n_channels; c++) {
            const bool huge = random_below(8) == 0; /* whose inverse is subnormal */
            const uint32_t bits =
                (uint32_t)(huge ? 0x7e800001u + random_next() % 0xfffffeu : random_next() % 0x7f800000u);
            scales[c] =
                choice % 3 == 0 ? gpsti_f32_from_bits(bits ? bits : 1) : (float)((double)(1 + random_below(64)) / 512);
        }
        for (size_t i = 0; i < n && !back && dtype == GPST_DTYPE_F32; i += 3) /* on ties, or next to them */
            ((float*)values.data)[i] = ((float)random_below(300) - 150.5f) * scales[gpsti_quantise_channel(&values, i)];
        arenas_upload(8);
        for (size_t i = 0; i < n && !back; i++)
            integers[i] =
                gpsti_quantise_value(gpsti_quantise_read(&values, i), scales[gpsti_quantise_channel(&values, i)]);
        if (back)
            CHECK_OK(gpst_dequantise(integers, scales, &values));
        values.data = on_device(back ? &output : &source, values.data);
        const float* const device_scales = (const float*)on_device(&source, scales);
        int8_t* const device_integers = (int8_t*)on_device(back ? &source : &output, integers);
        CHECK_OK(back ? gpst_dequantise_launch(device_integers, device_scales, &values, stream)
                      : gpst_quantise_launch(&values, device_scales, device_integers, stream));
        arenas_compare(back ? "dequantise" : "quantise", choice, values.n_channels);
    }
    printf("quantise: %u cases\n", n_cases);
}

static void test_ranges(uint32_t n_cases) {
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const gpst_dtype dtype = choice & 1 ? GPST_DTYPE_F16 : GPST_DTYPE_F32;
        gpst_calibration_desc desc = GPST_ZERO;
        gpst_calibration* calibration = NULL;
        tidy = random_below(2);
        arenas_begin();
        gpst_channels values = pick_channels(&source, dtype);
        gpst_calibration_info* const infos =
            (gpst_calibration_info*)take(&output, values.n_channels * sizeof(gpst_calibration_info), 8);
        fill_scores(dtype, choice / 2 % 5);
        arenas_upload(8);
        desc.n_channels = values.n_channels, desc.max_only = true;
        CHECK_OK(gpst_calibration_create(&desc, &calibration));
        CHECK_OK(gpst_calibration_add(calibration, &values));
        for (uint32_t c = 0; c < values.n_channels; c++)
            CHECK_OK(gpst_calibration_query(calibration, c, &infos[c]));
        gpst_calibration_destroy(calibration);
        values.data = on_device(&source, values.data);
        CHECK_OK(gpst_calibration_ranges_launch(&values, (gpst_calibration_info*)on_device(&output, infos), stream));
        arenas_compare("ranges", choice, values.n_channels);
    }
    printf("ranges: %u cases\n", n_cases);
}

/* Values whose last ones lie beyond 2^31 bytes. */
static void test_large(void) {
    gpst_channels values = GPST_ZERO;
    const float scales[3] = {1e30f, 3.0f, 2e-20f};
    large scores = large_open((size_t)301 * 1500 * 1250 * 4, true), out = large_open((size_t)301 * 1500 * 1250, false);
    values.data = scores.host, values.dtype = GPST_DTYPE_F32;
    values.n_outer = 1250, values.n_channels = 301, values.n_inner = 1500;
    large scale = large_open(301 * 4, false);
    for (uint32_t c = 0; c < 301; c++)
        memcpy(scale.host + 4 * c, &scales[c % 3], 4);
    CHECK_RT(GPSTI_RT(MemcpyAsync)(scale.device, scale.host, 301 * 4, GPSTI_RT(MemcpyHostToDevice), stream));
    CHECK_OK(gpst_quantise(&values, (const float*)(void*)scale.host, (int8_t*)out.host, 0));
    values.data = scores.device;
    CHECK_OK(gpst_quantise_launch(&values, (const float*)(void*)scale.device, (int8_t*)out.device, stream));
    large_close(&out, true, "quantise");
    large_close(&scale, false, "");
    large_close(&scores, false, "");
}

int main(int argc, char** argv) {
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const uint32_t scale = quick ? 1 : 12;
    if (!begin())
        return 77;
    test_quantise(80 * scale);
    test_ranges(40 * scale);
    if (!quick)
        test_large();
    end();
    return 0;
}
