/* core/jobs/jobs.c -- what a job's desc asks for, as a warp and a job over files. */
#include "../base/platform_internal.h"

#include "jobs_internal.h"

#include <float.h>
#include <string.h>

#define GPSTI_JOBS_VIEWS 8
#define GPSTI_JOBS_MOST_VIEWS 100 /* that are laid out here */
#define GPSTI_JOBS_WIDTH 1920
#define GPSTI_JOBS_HEIGHT 1080

GPSTI_INTERN const char* gpsti_jobs_base_name(const char* path) { return path + gpsti_path_directory_bytes(path); }

GPSTI_INTERN size_t gpsti_jobs_stem_bytes(const char* name) {
    const char* const dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - name) : strlen(name);
}

GPST_API gpst_result gpst_output_name(const char* input, int32_t view, const char* extension, char* out,
                                      size_t out_bytes) {
    GPSTI_FAIL_IF(!input || !extension || !out, GPST_ERROR_ARGUMENT,
                  "gpst_output_name: input, extension and out: required");
    const char* const name = gpsti_jobs_base_name(input);
    const size_t stem_bytes = gpsti_jobs_stem_bytes(name);
    char number[16] = "";
    if (view >= 0)
        gpsti_format(number, sizeof number, "_v%02u", (unsigned)view);
    const size_t bytes = stem_bytes + strlen(number) + 1 + strlen(extension) + 1;
    if (out_bytes > 0)
        out[0] = '\0';
    GPSTI_FAIL_IF(bytes > out_bytes, GPST_ERROR_OVERFLOW, "gpst_output_name: out_bytes=%llu: %llu are needed",
                  (unsigned long long)out_bytes, (unsigned long long)bytes);
    gpsti_format(out, out_bytes, "%.*s%s.%s", (int)stem_bytes, name, number, extension);
    return GPST_OK;
}

/* made: the result of making the warps, which are destroyed here. */
GPSTI_PRIVATE gpst_result gpsti_jobs_run(gpsti_files_job_desc* job, gpst_result made, gpst_warp* warp,
                                         gpst_warp* mask_warp, gpst_report* report) {
    gpst_result result = made;
    job->warp = warp;
    job->mask_warp = mask_warp;
    if (GPST_FAILED(made))
        result = gpsti_files_job_fail(made, job->function);
    else
        result = gpsti_files_job_run(job, report);
    gpst_warp_destroy(mask_warp);
    gpst_warp_destroy(warp);
    return result;
}

/* ---- reproject ------------------------------------------------------------------------------------ */

GPSTI_PRIVATE bool gpsti_jobs_is_u8(gpst_dtype dtype) { return dtype == GPST_DTYPE_DEFAULT || dtype == GPST_DTYPE_U8; }

/* Whether files of encode.kind hold views of that dtype; hooks.encode takes any. */
GPSTI_PRIVATE gpst_result gpsti_jobs_check_store(const gpst_reproject_desc* desc) {
    const gpst_file_kind kind = desc->encode.kind;
    if (desc->hooks.encode || gpsti_jobs_is_u8(desc->dtype))
        return GPST_OK;
    GPSTI_FAIL_IF(kind == GPST_FILE_UNKNOWN || kind == GPST_FILE_JPEG, GPST_ERROR_ARGUMENT,
                  "gpst_reproject_files: desc.dtype=%d: encode.kind=JPEG holds U8 only", (int)desc->dtype);
    GPSTI_FAIL_IF(kind == GPST_FILE_PNM && desc->dtype != GPST_DTYPE_U16, GPST_ERROR_ARGUMENT,
                  "gpst_reproject_files: desc.dtype=%d: encode.kind=PNM holds U8 and U16 only", (int)desc->dtype);
    return GPST_OK;
}

/* of_masks: the same geometry for the masks of the frames, looked up where desc.mask would be. */
GPSTI_PRIVATE gpst_result gpsti_jobs_make_views(const gpst_reproject_desc* desc, bool of_masks, gpst_warp** out) {
    gpst_view around[GPSTI_JOBS_MOST_VIEWS];
    gpst_warp_desc warp = GPST_ZERO;
    GPSTI_FAIL_IF(!gpsti_jobs_is_u8(desc->dtype) && desc->dtype != GPST_DTYPE_U16 && desc->dtype != GPST_DTYPE_F32,
                  GPST_ERROR_ARGUMENT, "gpst_reproject_warp: desc.dtype=%d: must be U8, U16 or F32", (int)desc->dtype);
    warp.map = GPST_MAP_EQUIRECT;
    warp.filter = of_masks ? GPST_FILTER_NEAREST : desc->filter;
    warp.convention = desc->convention;
    warp.views = desc->views;
    warp.n_views = desc->n_views ? desc->n_views : GPSTI_JOBS_VIEWS;
    warp.width = desc->width ? desc->width : GPSTI_JOBS_WIDTH;
    warp.height = desc->height ? desc->height : GPSTI_JOBS_HEIGHT;
    warp.format = of_masks ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    warp.dtype = of_masks ? GPST_DTYPE_U8 : desc->dtype;
    warp.has_scale = warp.scale_of_full = !of_masks && desc->dtype == GPST_DTYPE_F32;
    for (int c = 0; c < 3; c++)
        warp.scale[c] = 1.0f;
    warp.layout = GPST_LAYOUT_HWC;
    warp.mask = desc->mask;
    GPSTI_FAIL_IF(desc->views && desc->n_views == 0, GPST_ERROR_ARGUMENT,
                  "gpst_reproject_warp: desc.n_views=0: required with views");
    if (!warp.views) {
        GPSTI_FAIL_IF(warp.n_views > GPSTI_JOBS_MOST_VIEWS, GPST_ERROR_ARGUMENT,
                      "gpst_reproject_warp: desc.n_views=%u: without views at most %d", warp.n_views,
                      GPSTI_JOBS_MOST_VIEWS);
        memset(around, 0, sizeof around);
        for (uint32_t v = 0; v < warp.n_views; v++) {
            around[v].yaw = 360.0 * (double)v / (double)warp.n_views;
            around[v].hfov = 90.0;
        }
        warp.views = around;
    }
    const gpst_result result = gpst_warp_create(&warp, out);
    return GPST_FAILED(result) ? gpsti_files_job_fail(result, "gpst_reproject_warp") : GPST_OK;
}

GPST_API gpst_result gpst_reproject_warp_versioned(uint32_t version, size_t desc_bytes, const gpst_reproject_desc* desc,
                                                   gpst_warp** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version("gpst_reproject_warp", version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!desc || !out, GPST_ERROR_ARGUMENT, "gpst_reproject_warp: desc and out: required");
    return gpsti_jobs_make_views(desc, false, out);
}

GPST_API gpst_result gpst_reproject_files_versioned(uint32_t version, size_t desc_bytes,
                                                    const gpst_reproject_desc* desc, gpst_report* report) {
    gpsti_files_job_desc job = GPST_ZERO;
    gpst_decode_desc decode;
    gpst_warp *warp = NULL, *mask_warp = NULL;
    if (report)
        memset(report, 0, sizeof *report);
    GPSTI_TRY(gpsti_check_version("gpst_reproject_files", version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, "gpst_reproject_files: desc=NULL: required");
    GPSTI_TRY(gpsti_jobs_check_store(desc));
    GPSTI_FAIL_IF(desc->hooks.mask && desc->mask.data, GPST_ERROR_ARGUMENT,
                  "gpst_reproject_files: desc.mask and desc.hooks.mask: one of them");
    job.begun_ns = desc->begun_ns != 0 ? desc->begun_ns : gpsti_now_ns();
    gpst_result made = gpsti_jobs_make_views(desc, false, &warp);
    if (!GPST_FAILED(made) && desc->hooks.mask)
        made = gpsti_jobs_make_views(desc, true, &mask_warp);
    job.function = "gpst_reproject_files";
    job.inputs = desc->inputs;
    job.n_inputs = desc->n_inputs;
    job.files_only = desc->files_only;
    job.output_dir = desc->output_dir;
    job.numbered = true;
    decode = desc->decode;
    decode.placement.sphere = true;
    job.decode = &decode;
    job.encode = desc->encode;
    job.has_metadata = !desc->no_metadata;
    job.context = desc->context;
    job.run = &desc->run;
    job.hooks = &desc->hooks;
    return gpsti_jobs_run(&job, made, warp, mask_warp, report);
}

/* ---- preprocess ------------------------------------------------------------------------------------ */

/* (value / full - mean) / std is (value / full) * scale + bias. Means belong to red, green and blue by name; scale and
   bias to channels as they are stored. */
GPSTI_PRIVATE void gpsti_jobs_set_scale(const gpst_preprocess_desc* desc, gpst_warp_desc* warp) {
    warp->has_scale = warp->scale_of_full = warp->dtype != GPST_DTYPE_U8;
    for (int c = 0; warp->has_scale && c < 3; c++) {
        const int colour = desc->swap_rb ? 2 - c : c;
        const double deviation = desc->std[colour] != 0.0 ? desc->std[colour] : 1.0;
        warp->scale[c] = (float)(1.0 / deviation);
        warp->bias[c] = (float)(0.0 - desc->mean[colour] / deviation);
    }
}

GPST_API gpst_result gpst_preprocess_warp_versioned(uint32_t version, size_t desc_bytes,
                                                    const gpst_preprocess_desc* desc, gpst_warp** out) {
    gpst_warp_desc warp = GPST_ZERO;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version("gpst_preprocess_warp", version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!desc || !out, GPST_ERROR_ARGUMENT, "gpst_preprocess_warp: desc and out: required");
    GPSTI_FAIL_IF(desc->dtype == GPST_DTYPE_U16, GPST_ERROR_ARGUMENT,
                  "gpst_preprocess_warp: desc.dtype=%d: must be U8, I8, F16 or F32", (int)desc->dtype);
    for (int c = 0; c < 3; c++) {
        GPSTI_FAIL_IF(!(desc->std[c] >= 0.0 && desc->std[c] <= (double)FLT_MAX), GPST_ERROR_ARGUMENT,
                      "gpst_preprocess_warp: desc.std[%d]=%g: must be positive, or 0 for 1", c, desc->std[c]);
        GPSTI_FAIL_IF(!(desc->mean[c] >= -(double)FLT_MAX && desc->mean[c] <= (double)FLT_MAX), GPST_ERROR_ARGUMENT,
                      "gpst_preprocess_warp: desc.mean[%d]=%g: must be finite", c, desc->mean[c]);
    }
    warp.map = GPST_MAP_RESIZE;
    warp.filter = desc->filter;
    warp.convention = desc->convention;
    warp.width = desc->width;
    warp.height = desc->height;
    warp.format = desc->swap_rb ? GPST_FORMAT_BGR : GPST_FORMAT_RGB;
    warp.dtype = desc->dtype != GPST_DTYPE_DEFAULT ? desc->dtype : GPST_DTYPE_F32;
    warp.layout = desc->layout;
    warp.fit = desc->fit;
    warp.short_side = desc->short_side;
    for (int c = 0; c < 3; c++)
        warp.fill[c] = desc->fill[desc->swap_rb ? 2 - c : c];
    gpsti_jobs_set_scale(desc, &warp);
    const gpst_result result = gpst_warp_create(&warp, out);
    return GPST_FAILED(result) ? gpsti_files_job_fail(result, "gpst_preprocess_warp") : GPST_OK;
}

GPST_API gpst_result gpst_preprocess_files_versioned(uint32_t version, size_t desc_bytes,
                                                     const gpst_preprocess_desc* desc, gpst_report* report) {
    gpsti_files_job_desc job = GPST_ZERO;
    gpst_warp* warp = NULL;
    if (report)
        memset(report, 0, sizeof *report);
    GPSTI_TRY(gpsti_check_version("gpst_preprocess_files", version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, "gpst_preprocess_files: desc=NULL: required");
    GPSTI_FAIL_IF(desc->hooks.mask, GPST_ERROR_ARGUMENT, "gpst_preprocess_files: desc.hooks.mask: a tensor has none");
    job.begun_ns = desc->begun_ns != 0 ? desc->begun_ns : gpsti_now_ns();
    const gpst_result made = gpst_preprocess_warp(desc, &warp);
    job.function = "gpst_preprocess_files";
    job.inputs = desc->inputs;
    job.n_inputs = desc->n_inputs;
    job.files_only = desc->files_only;
    job.output_dir = desc->output_dir;
    job.output_file = desc->output_file;
    job.decode = &desc->decode;
    job.encode.kind = GPST_FILE_NPY;
    job.context = desc->context;
    job.run = &desc->run;
    job.hooks = &desc->hooks;
    return gpsti_jobs_run(&job, made, warp, NULL, report);
}
