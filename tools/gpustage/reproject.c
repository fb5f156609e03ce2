/* tools/gpustage/reproject.c -- equirectangular frames to perspective views: from the options to a warp and a
   job. */
#include "commands.h"

#include "console.h"
#include "files.h"
#include "job.h"
#include "remarks.h"
#include "rig.h"

#include <string.h>

/* All that the views depend on, as --resume compares it. */
static text reproject_settings(const options* asked, const mask* mask_used) {
    text out = GPST_ZERO;
    text_format(&out, "version=" GPST_VERSION_TEXT "\ncommand=reproject\nsize=%ux%u\nviews=%u\n",
                asked->width, asked->height, asked->n_views);
    for (uint32_t i = 0; i < asked->n_views; i++) {
        const gpst_view* const view = &asked->views[i];
        text_format(&out, "view%02u=%.17g,%.17g,%.17g,%.17g,%.17g\n", (unsigned)i, view->yaw, view->pitch,
                    view->roll, view->hfov, view->vfov);
    }
    text_format(&out, "filter=%s\nconvention=%s\nformat=%s\nlayout=%s\n", options_filter_name(asked),
                options_convention_name(asked), codec_extension((codec_kind)asked->format), options_layout_name(asked));
    text_format(&out, "depth=%s\n", options_depth_name(asked));
    if (asked->format == (int)CODEC_WEBP)
        text_format(&out, "quality=%u\n", asked->quality);
    if (asked->format == (int)CODEC_JPEG)
        text_format(&out, "quality=%u\nchroma=%d\noptimise=%s\nrestart-rows=%u\n", asked->quality, asked->chroma,
                    options_switch_name(asked->optimise), asked->restart_rows);
    text_format(&out, "jpeg=%s\non-damage=%s\n", options_jpeg_name(asked), options_damage_name(asked));
    text_format(&out, "orient=%s\npose=%s\nmetadata=%s\n", options_switch_name(!asked->ignore_orientation),
                options_switch_name(!asked->ignore_pose), options_switch_name(!asked->no_metadata));
    if (asked->raw.format != GPST_FORMAT_INVALID)
        text_format(&out, "raw=%ux%u:%s\n", asked->raw.width, asked->raw.height, options_raw_name(asked));
    if (asked->mask_by_frame)
        text_format(&out, "mask=by frame, of %s\n", asked->mask_names ? asked->mask_names : "the usual names");
    else if (asked->mask)
        text_format(&out, "mask=%llu bytes, hash %016llx\n", (unsigned long long)mask_used->file_bytes,
                    (unsigned long long)mask_used->file_hash);
    if (asked->mask)
        text_format(&out, "mask-out=%s\n", asked->mask_out ? asked->mask_out : "off");
    return out;
}

static int reproject_make_warp(const options* asked, const mask* mask_used, gpst_reproject_desc* desc,
                               gpst_warp** out) {
    memset(desc, 0, sizeof *desc);
    desc->views = asked->views;
    desc->n_views = asked->n_views;
    desc->width = asked->width;
    desc->height = asked->height;
    desc->filter = (gpst_filter)asked->filter;
    desc->convention = (gpst_convention)asked->convention;
    desc->mask = mask_used->image;
    desc->dtype = (gpst_dtype)asked->depth;
    desc->no_metadata = asked->no_metadata != 0;
    const gpst_result result = gpst_reproject_warp(desc, out);
    if (result == GPST_ERROR_ARGUMENT)
        return console_usage(asked->command_name, "%s", gpst_last_reason());
    if (!GPST_FAILED(result))
        return EXIT_DONE;
    console_error("%s", gpst_last_reason());
    return EXIT_MACHINE;
}

static int reproject_write(const char* option, const char* path, text* contents) {
    const char* const problem =
        contents->failed ? text_out_of_memory : files_write_whole(path, contents->data, contents->bytes);
    text_free(contents);
    if (problem)
        console_error("%s=%s: %s", option, path, problem);
    return problem ? EXIT_MACHINE : EXIT_DONE;
}

static rig_views reproject_views(const options* asked, const gpst_warp* warp) {
    rig_views views;
    views.views = asked->views;
    views.n_views = asked->n_views;
    views.width = asked->width;
    views.height = asked->height;
    views.warp = warp;
    return views;
}

/* Transforms name what is whole, and that is known at the end: until then there are none. */
static int reproject_write_rig(const options* asked, const job* run) {
    const rig_views views = reproject_views(asked, run->desc.warp);
    const bool suffixes = asked->tree != (int)LAYOUT_COLMAP;
    if (asked->transforms)
        files_remove(asked->transforms);
    for (size_t i = 0; asked->transforms && i < run->inputs.count; i++)
        if (!transforms_can_name(&run->names, run->inputs.items[i].stem))
            remarks_add("not_in_transforms", run->inputs.items[i].path,
                        "its views are left out of transforms.json, which cannot name them: their names are no UTF-8");
    if (!asked->rig)
        return EXIT_DONE;
    text rig = rig_make_json(&views, codec_extension((codec_kind)asked->format), suffixes);
    return reproject_write(asked->rig_beside ? "--layout" : "--rig", asked->rig, &rig);
}

static int reproject_write_transforms(const options* asked, const job* run) {
    const rig_views views = reproject_views(asked, run->desc.warp);
    if (!asked->transforms || run->moved)
        return EXIT_DONE;
    text transforms = transforms_make_json(&views, &run->names, &run->inputs);
    return reproject_write("--layout", asked->transforms, &transforms);
}

static int reproject_run(const options* asked, const mask* mask_used, const gpst_reproject_desc* reproject,
                         const gpst_warp* warp) {
    job_desc desc;
    job run;
    text settings = reproject_settings(asked, mask_used);
    memset(&desc, 0, sizeof desc);
    desc.asked = asked;
    desc.reproject = reproject;
    desc.warp = warp;
    desc.mask = mask_used;
    desc.kind = (codec_kind)asked->format;
    desc.settings = settings.data;
    int status = settings.failed ? console_memory() : EXIT_DONE;
    if (status == EXIT_DONE && asked->rig && !asked->rig_beside)
        status = outputs_check_parent("--rig", asked->rig, asked->command_name);
    if (status == EXIT_DONE) {
        status = job_open(&run, &desc);
        if (status == EXIT_DONE)
            status = reproject_write_rig(asked, &run);
        if (status == EXIT_DONE) {
            status = job_run(&run);
            if (status != EXIT_MACHINE && reproject_write_transforms(asked, &run) != EXIT_DONE && status == EXIT_DONE)
                status = EXIT_FAILED_ITEMS;
        }
        job_close(&run);
    }
    text_free(&settings);
    return status;
}

int command_reproject(const options* asked) {
    gpst_reproject_desc desc;
    mask mask_used;
    gpst_warp* warp = NULL;
    int status = mask_load(&mask_used, asked);
    if (status == EXIT_DONE)
        status = reproject_make_warp(asked, &mask_used, &desc, &warp);
    if (status == EXIT_DONE)
        status = mask_make_views(&mask_used, asked);
    if (status == EXIT_DONE)
        status = reproject_run(asked, &mask_used, &desc, warp);
    gpst_warp_destroy(warp);
    mask_free(&mask_used);
    return status;
}
