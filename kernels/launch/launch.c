/* kernels/launch/launch.c -- the rows of a kernel over threads. How many threads there may be is team.c's. */
#include "../../core/base/platform_internal.h"

#include "launch_internal.h"

#define GPSTI_LAUNCH_BANDS 4           /* for each thread, as some rows take longer than others */
#define GPSTI_LAUNCH_BAND_VALUES 8192u /* and at least: some microseconds */

#if GPSTI_OPENMP
/* Bands of one image. */
GPSTI_PRIVATE uint64_t gpsti_launch_bands(uint64_t n_images, uint64_t n_rows, uint64_t n_values, uint64_t n_threads) {
    const uint64_t wanted = GPSTI_LAUNCH_BANDS * n_threads, most = n_values / GPSTI_LAUNCH_BAND_VALUES;
    const uint64_t n_bands = most < wanted ? most : wanted, n_wanted = n_bands < n_rows ? n_bands : n_rows;
    return n_images >= GPSTI_LAUNCH_BANDS * wanted || n_wanted == 0 ? 1 : n_wanted;
}
#endif

GPSTI_INTERN void gpsti_launch_rows(gpsti_rows_func func, const void* job, gpsti_simd_level level, uint64_t n_images,
                                    uint64_t n_rows, uint64_t row_values, uint32_t n_threads) {
#if GPSTI_OPENMP
    const uint64_t n_values = n_rows * row_values;
    const int n = n_images * n_values < 2 * GPSTI_LAUNCH_BAND_VALUES ? 1 : gpsti_team_size(n_threads);
    if (n > 1) {
        const uint64_t n_bands = gpsti_launch_bands(n_images, n_rows, n_values, (uint64_t)n);
        const int64_t n_tasks = (int64_t)(n_images * n_bands);
        _Pragma("omp parallel for schedule(dynamic) num_threads(n)")
        for (int64_t task = 0; task < n_tasks; task++) {
            const uint64_t first = (uint64_t)task / n_bands * n_rows, band = (uint64_t)task % n_bands;
            func(job, level, first + n_rows * band / n_bands, first + n_rows * (band + 1) / n_bands);
        }
        return;
    }
#endif
    (void)row_values, (void)n_threads;
    for (uint64_t i = 0; i < n_images; i++)
        func(job, level, i * n_rows, (i + 1) * n_rows);
}
