/* kernels/quantise/quantise_launch.c -- the rules of quantising and of ranges on a GPU.
   Computes nothing; quantise.cu.h does. */
#include "../../core/base/platform_internal.h"

#include "quantise_internal.h"

GPSTI_PRIVATE gpst_result gpsti_quantise_enqueue(const char* function, const gpst_channels* values, const float* scales,
                                                 int8_t* integers, bool back, void* stream) {
    gpsti_quantise_args args;
    size_t n = 0;
    GPSTI_TRY(gpsti_quantise_check(function, values, scales, integers, &n));
    GPSTI_FAIL_IF((uintptr_t)scales % sizeof(float) != 0, GPST_ERROR_ARGUMENT, "%s: scales=%p: must be a multiple of 4",
                  function, (const void*)scales);
    memset(&args, 0, sizeof args);
    args.shape = *values;
    args.integers = integers;
    args.scales = scales;
    args.n_values = n;
    args.back = back;
    return GPSTI_LAUNCH_GPU(function, stream, gpsti_quantise_gpu_launch(function, &args, stream));
}

GPST_API gpst_result gpst_quantise_launch(const gpst_channels* values, const float* scales, int8_t* out, void* stream) {
    return gpsti_quantise_enqueue("gpst_quantise_launch", values, scales, out, false, stream);
}

GPST_API gpst_result gpst_dequantise_launch(const int8_t* integers, const float* scales, const gpst_channels* out,
                                            void* stream) {
    return gpsti_quantise_enqueue("gpst_dequantise_launch", out, scales, (int8_t*)(uintptr_t)integers, true, stream);
}

GPST_API gpst_result gpst_calibration_ranges_launch(const gpst_channels* values, gpst_calibration_info* infos,
                                                    void* stream) {
    const char* const function = "gpst_calibration_ranges_launch";
    gpsti_range_args args;
    size_t n = 0;
    GPSTI_TRY(gpsti_channels_check(function, values, &n));
    GPSTI_FAIL_IF(!infos || (uintptr_t)infos % 8 != 0, GPST_ERROR_ARGUMENT,
                  "%s: infos=%p: required, a multiple of 8", function, (void*)infos);
    memset(&args, 0, sizeof args);
    args.shape = *values;
    args.infos = infos;
    return GPSTI_LAUNCH_GPU(function, stream, gpsti_range_gpu_launch(function, &args, stream));
}
