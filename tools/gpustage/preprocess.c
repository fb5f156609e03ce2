/* tools/gpustage/preprocess.c -- images to normalised tensors: from the options to a warp and a job. */
#include "commands.h"

#include "console.h"
#include "job.h"
#include "remarks.h"

#include <string.h>

static bool preprocess_is_stacked(const char* output) {
    const size_t bytes = strlen(output);
    return bytes > 4 && !strcmp(output + bytes - 4, ".npy");
}

static const char* preprocess_dtype_name(int dtype) {
    return dtype == (int)GPST_DTYPE_U8 ? "u8" : dtype == (int)GPST_DTYPE_F16 ? "f16" : "f32";
}

/* All that the tensors depend on, as --resume compares it. */
static text preprocess_settings(const options* asked) {
    text out = GPST_ZERO;
    text_format(&out, "version=" GPST_VERSION_TEXT "\ncommand=preprocess\nsize=%ux%u\ndtype=%s\nlayout=%s\n",
                asked->width, asked->height, preprocess_dtype_name(asked->dtype),
                asked->layout == (int)GPST_LAYOUT_CHW ? "chw" : "hwc");
    text_format(&out, "mean=%.17g,%.17g,%.17g\nstd=%.17g,%.17g,%.17g\n", asked->mean[0], asked->mean[1],
                asked->mean[2], asked->std[0], asked->std[1], asked->std[2]);
    text_format(&out, "swap-rb=%s\nfilter=%s\nconvention=%s\n", options_switch_name(asked->swap_rb),
                options_filter_name(asked), options_convention_name(asked));
    text_format(&out, "letterbox=%s\nshort-side=%u\npad=%u\n", options_switch_name(asked->letterbox),
                asked->short_side, asked->pad);
    text_format(&out, "jpeg=%s\non-damage=%s\n", options_jpeg_name(asked), options_damage_name(asked));
    text_format(&out, "orient=%s\n", options_switch_name(!asked->ignore_orientation));
    if (asked->raw.format != GPST_FORMAT_INVALID)
        text_format(&out, "raw=%ux%u:%s\n", asked->raw.width, asked->raw.height, options_raw_name(asked));
    return out;
}

static int preprocess_make_warp(const options* asked, gpst_preprocess_desc* desc, gpst_warp** out) {
    memset(desc, 0, sizeof *desc);
    desc->width = asked->width;
    desc->height = asked->height;
    desc->dtype = (gpst_dtype)asked->dtype;
    desc->layout = (gpst_layout)asked->layout;
    desc->swap_rb = asked->swap_rb != 0;
    memcpy(desc->mean, asked->mean, sizeof desc->mean);
    memcpy(desc->std, asked->std, sizeof desc->std);
    desc->filter = (gpst_filter)asked->filter;
    desc->convention = (gpst_convention)asked->convention;
    desc->fit = asked->letterbox ? GPST_FIT_LETTERBOX : asked->short_side ? GPST_FIT_COVER : GPST_FIT_STRETCH;
    desc->short_side = asked->short_side;
    for (int c = 0; c < 3; c++)
        desc->fill[c] = (float)asked->pad;
    const gpst_result result = gpst_preprocess_warp(desc, out);
    if (result == GPST_ERROR_ARGUMENT)
        return console_usage(asked->command_name, "%s", gpst_last_reason());
    if (!GPST_FAILED(result))
        return EXIT_DONE;
    console_error("%s", gpst_last_reason());
    return EXIT_MACHINE;
}

/* Means of 0..255 are a common slip, and give tensors that no network understands. */
static void preprocess_remark_mean(const options* asked) {
    const double* const mean = asked->mean;
    if (mean[0] > 1.0 || mean[1] > 1.0 || mean[2] > 1.0)
        remarks_add("mean_above_1", "",
                    "--mean=%g,%g,%g: values are on the 0..1 scale: are these of 0..255, to be divided by 255?",
                    mean[0], mean[1], mean[2]);
}

int command_preprocess(const options* asked) {
    gpst_preprocess_desc preprocess;
    gpst_warp* warp = NULL;
    mask no_mask;
    job_desc desc;
    job run;
    int status = preprocess_make_warp(asked, &preprocess, &warp);
    if (status != EXIT_DONE)
        return status;
    preprocess_remark_mean(asked);
    text settings = preprocess_settings(asked);
    memset(&no_mask, 0, sizeof no_mask);
    memset(&desc, 0, sizeof desc);
    desc.asked = asked;
    desc.preprocess = &preprocess;
    desc.warp = warp;
    desc.mask = &no_mask;
    desc.kind = CODEC_NPY;
    desc.stacked = preprocess_is_stacked(asked->output);
    desc.settings = settings.data;
    if (settings.failed) {
        status = console_memory();
    } else {
        status = job_open(&run, &desc);
        if (status == EXIT_DONE)
            status = job_run(&run);
        job_close(&run);
    }
    text_free(&settings);
    gpst_warp_destroy(warp);
    return status;
}
