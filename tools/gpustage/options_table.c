/* tools/gpustage/options_table.c -- one line an option, and how each kind of value is read. Knows no rule
   that joins two options; options.c does. */
#include "options_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOTH (COMMAND_REPROJECT | COMMAND_PREPROCESS)
#define ENGINE (BOTH)

/* ---- kinds of values ----------------------------------------------------------- */

static void* option_member(const option* spec, options* self) { return (char*)self + spec->offset; }

static bool take_flag(const option* spec, options* self, const char* value, char* rule) {
    (void)value;
    (void)rule;
    *(bool*)option_member(spec, self) = true;
    return true;
}

static bool take_text(const option* spec, options* self, const char* value, char* rule) {
    snprintf(rule, OPTIONS_RULE_BYTES, "must not be empty");
    *(const char**)option_member(spec, self) = value;
    return value[0] != '\0';
}

static bool take_count(const option* spec, options* self, const char* value, char* rule) {
    uint64_t count = 0;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be a whole number from %.0f to %.0f", spec->min, spec->max);
    if (!text_read_count(&value, &count) || *value || (double)count < spec->min || (double)count > spec->max)
        return false;
    *(uint32_t*)option_member(spec, self) = (uint32_t)count;
    return true;
}

/* What comes after a colon is the backend's to judge. */
static bool take_backend(const option* spec, options* self, const char* value, char* rule) {
    static const char* const names[] = {"cpu", "cuda", "hip", "auto"};
    const char** const member = (const char**)option_member(spec, self);
    const size_t length = strcspn(value, ":");
    *member = NULL;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be auto, cpu, cuda or hip, or cuda:device=N for another than the first");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (text_same(names[i], value))
            *member = names[i];
        else if (i < 3 && strlen(names[i]) == length && !strncmp(names[i], value, length))
            *member = value;
    return *member != NULL;
}

/* A field of view. */
static bool take_angle(const option* spec, options* self, const char* value, char* rule) {
    double angle = 0.0;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be between %.0f and %.0f (exclusive)", spec->min, spec->max);
    if (!text_read_number(&value, &angle) || *value || !(angle > spec->min && angle < spec->max))
        return false;
    *(double*)option_member(spec, self) = angle;
    return true;
}

static bool take_choice(const option* spec, options* self, const char* value, char* rule) {
    size_t used = (size_t)snprintf(rule, OPTIONS_RULE_BYTES, "must be one of");
    for (const option_choice* choice = spec->choices; choice->name; choice++) {
        if (text_same(choice->name, value)) {
            *(int*)option_member(spec, self) = choice->value;
            return true;
        }
        if (used < OPTIONS_RULE_BYTES)
            used += (size_t)snprintf(rule + used, OPTIONS_RULE_BYTES - used, " %s", choice->name);
    }
    return false;
}

/* Up to `most` numbers within +-limit, between commas. */
static bool read_numbers(const char* value, double limit, uint32_t most, double* out, uint32_t* n) {
    for (*n = 0; *n < most; value++) {
        if (!text_read_number(&value, &out[*n]) || out[*n] > limit || out[*n] < -limit)
            return false;
        ++*n;
        if (*value != ',')
            break;
    }
    return *value == '\0';
}

/* ---- options with a syntax of their own -------------------------------------------- */

static bool read_size(const char** at, uint32_t* width, uint32_t* height) {
    uint64_t w = 0, h = 0;
    if (!text_read_count(at, &w) || (**at != 'x' && **at != 'X') || (++*at, !text_read_count(at, &h)) || w < 1 || h < 1 ||
        w > CODEC_MAX_SIDE || h > CODEC_MAX_SIDE)
        return false;
    *width = (uint32_t)w;
    *height = (uint32_t)h;
    return true;
}

static bool take_size(const option* spec, options* self, const char* value, char* rule) {
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be WIDTHxHEIGHT, each from 1 to %u", CODEC_MAX_SIDE);
    return read_size(&value, &self->width, &self->height) && *value == '\0';
}

static const option_choice raw_formats[] = {{"gray8", GPST_FORMAT_GRAY},
                                            {"rgb8", GPST_FORMAT_RGB},
                                            {"bgr8", GPST_FORMAT_BGR},
                                            {"rgba8", GPST_FORMAT_RGBA},
                                            {NULL, 0}};

static bool take_raw(const option* spec, options* self, const char* value, char* rule) {
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES,
             "must be WIDTHxHEIGHT:FORMAT with sides from 1 to %u and FORMAT one of gray8 rgb8 bgr8 rgba8",
             CODEC_MAX_SIDE);
    if (!read_size(&value, &self->raw.width, &self->raw.height) || *value++ != ':')
        return false;
    for (const option_choice* format = raw_formats; format->name; format++)
        if (text_same(format->name, value))
            self->raw.format = (gpst_format)format->value;
    return self->raw.format != GPST_FORMAT_INVALID;
}

static bool take_view(const option* spec, options* self, const char* value, char* rule) {
    double numbers[4] = {0.0, 0.0, 0.0, 0.0};
    uint32_t n = 0;
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES,
             "must be YAW,PITCH,ROLL or YAW,PITCH,ROLL,HFOV: degrees within +-360, HFOV between 0 and 180 "
             "(exclusive)");
    if (!read_numbers(value, 360.0, 4, numbers, &n) || n < 3 ||
        (n == 4 && !(numbers[3] > 0.0 && numbers[3] < 180.0)))
        return false;
    snprintf(rule, OPTIONS_RULE_BYTES, "at most %d views", OPTIONS_MAX_VIEWS);
    if (self->n_views == OPTIONS_MAX_VIEWS)
        return false;
    gpst_view* const views = (gpst_view*)realloc(self->views, (self->n_views + 1) * sizeof *views);
    snprintf(rule, OPTIONS_RULE_BYTES, "%s", text_out_of_memory);
    if (!views)
        return false;
    gpst_view* const view = &views[self->n_views];
    memset(view, 0, sizeof *view);
    view->yaw = numbers[0];
    view->pitch = numbers[1];
    view->roll = numbers[2];
    view->hfov = numbers[3];
    self->views = views;
    self->n_views++;
    return true;
}

static bool take_rings(const option* spec, options* self, const char* value, char* rule) {
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be up to %d pitches, degrees within +-90, between commas",
             OPTIONS_MAX_RINGS);
    return read_numbers(value, 90.0, OPTIONS_MAX_RINGS, self->rings, &self->n_rings);
}

/* One number for all three channels, or three. */
static bool read_rgb(const char* value, double limit, double out[3]) {
    uint32_t n = 0;
    if (!read_numbers(value, limit, 3, out, &n) || n == 2)
        return false;
    if (n == 1)
        out[1] = out[2] = out[0];
    return true;
}

static bool take_mean(const option* spec, options* self, const char* value, char* rule) {
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES,
             "must be R,G,B or one number for all, on the 0..1 scale, within +-1000");
    self->has_mean = read_rgb(value, 1000.0, self->mean);
    return self->has_mean;
}

static bool take_std(const option* spec, options* self, const char* value, char* rule) {
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES,
             "must be R,G,B or one number for all, on the 0..1 scale, from 1e-6 to 1000");
    self->has_std = read_rgb(value, 1000.0, self->std);
    for (int c = 0; c < 3; c++)
        self->has_std = self->has_std && self->std[c] >= 1e-6;
    return self->has_std;
}

static bool take_plain(const option* spec, options* self, const char* value, char* rule) {
    return take_choice(spec, self, value ? value : "serial", rule);
}

/* 1048576, 1024K or 1M: bytes or pixels. */
static bool take_bytes(const option* spec, options* self, const char* value, char* rule) {
    static const char units[] = "KMG";
    uint64_t bytes = 0;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be a whole number above 0, with K, M or G behind it or nothing");
    if (!text_read_count(&value, &bytes) || bytes == 0)
        return false;
    const char* const unit = *value ? strchr(units, *value) : NULL;
    const unsigned shift = unit ? 10u * (unsigned)(unit - units + 1) : 0u;
    if (value[unit ? 1 : 0] || bytes > UINT64_MAX >> shift)
        return false;
    *(uint64_t*)option_member(spec, self) = bytes << shift;
    return true;
}

/* A file of settings may have any name. */
static bool take_tune(const option* spec, options* self, const char* value, char* rule) {
    (void)spec;
    snprintf(rule, OPTIONS_RULE_BYTES, "must be off, on or a file");
    const bool off = text_same(value, "off");
    self->tune = (int)(off ? GPST_TUNE_OFF : GPST_TUNE_DEFAULT);
    self->tune_file = off || text_same(value, "on") ? NULL : value;
    return *value != 0;
}

/* {stem} and {name} stand for what each file is called by. */
static bool take_pattern(const option* spec, options* self, const char* value, char* rule) {
    const char* const pattern = value ? value : OPTIONS_MASK_OUT;
    const size_t bytes = strlen(pattern);
    snprintf(rule, OPTIONS_RULE_BYTES,
             "must be a name with {stem} or {name} in it and .png at its end, without a directory");
    *(const char**)option_member(spec, self) = pattern;
    return (strstr(pattern, "{stem}") || strstr(pattern, "{name}")) && !strpbrk(pattern, "/\\") && bytes > 4 &&
           bytes < 200 && !strcmp(pattern + bytes - 4, ".png");
}

/* ---- choices ----------------------------------------------------------------------------- */

static const option_choice filters[] = {{"nearest", GPST_FILTER_NEAREST},
                                        {"bilinear", GPST_FILTER_BILINEAR},
                                        {"area", GPST_FILTER_AREA},
                                        {NULL, 0}};
static const option_choice resize_filters[] = {{"nearest", GPST_FILTER_NEAREST},
                                               {"bilinear", GPST_FILTER_BILINEAR},
                                               {"area", GPST_FILTER_AREA},
                                               {"bicubic", GPST_FILTER_BICUBIC},
                                               {"bicubic-area", GPST_FILTER_BICUBIC_AREA},
                                               {NULL, 0}};
static const option_choice conventions[] = {{"native", GPST_CONVENTION_NATIVE},
                                            {"ffmpeg", GPST_CONVENTION_FFMPEG},
                                            {"py360", GPST_CONVENTION_PY360},
                                            {"opencv", GPST_CONVENTION_OPENCV},
                                            {NULL, 0}};
static const option_choice resize_conventions[] = {{"native", GPST_CONVENTION_NATIVE},
                                                   {"opencv", GPST_CONVENTION_OPENCV},
                                                   {"torch", GPST_CONVENTION_TORCH},
                                                   {NULL, 0}};
static const option_choice formats[] = {{"jpg", CODEC_JPEG},
                                        {"jpeg", CODEC_JPEG},
                                        {"png", CODEC_PNG},
                                        {"tif", CODEC_TIFF},
                                        {"tiff", CODEC_TIFF},
                                        {"webp", CODEC_WEBP},
                                        {"ppm", CODEC_PNM},
                                        {"npy", CODEC_NPY},
                                        {NULL, 0}};
static const option_choice depths[] = {
    {"8", GPST_DTYPE_U8}, {"16", GPST_DTYPE_U16}, {"f32", GPST_DTYPE_F32}, {NULL, 0}};
static const option_choice chromas[] = {
    {"444", 444}, {"422", 422}, {"420", 420}, {NULL, 0}};
static const option_choice jpegs[] = {
    {"auto", GPST_CODEC_AUTO}, {"cpu", GPST_CODEC_EXACT}, {"gpu", GPST_CODEC_GPU}, {NULL, 0}};
static const option_choice trees[] = {
    {"flat", LAYOUT_FLAT}, {"colmap", LAYOUT_COLMAP}, {"nerfstudio", LAYOUT_NERFSTUDIO}, {NULL, 0}};
static const option_choice damages[] = {{"fail", GPST_DAMAGE_FAIL}, {"keep", GPST_DAMAGE_KEEP}, {NULL, 0}};
static const option_choice layouts[] = {
    {"chw", GPST_LAYOUT_CHW}, {"hwc", GPST_LAYOUT_HWC}, {NULL, 0}};
static const option_choice dtypes[] = {{"u8", GPST_DTYPE_U8},
                                       {"f16", GPST_DTYPE_F16},
                                       {"f32", GPST_DTYPE_F32},
                                       {NULL, 0}};
static const option_choice modes[] = {{"latency", GPST_PRESET_LATENCY},
                                      {"balanced", GPST_PRESET_BALANCED},
                                      {"throughput", GPST_PRESET_THROUGHPUT},
                                      {NULL, 0}};
static const option_choice plains[] = {
    {"serial", GPST_RUN_PLAIN_SERIAL}, {"inside", GPST_RUN_PLAIN_INSIDE}, {NULL, 0}};
static const option_choice orients[] = {{"apply", 0}, {"ignore", 1}, {NULL, 0}};
static const option_choice poses[] = {{"use", 0}, {"ignore", 1}, {NULL, 0}};
static const option_choice metadatas[] = {{"minimal", 0}, {"none", 1}, {NULL, 0}};
static const option_choice syncs[] = {
    {"file", GPST_FSYNC_FILE}, {"none", GPST_FSYNC_NONE}, {NULL, 0}};
static const option_choice prefetches[] = {{"on", 0}, {"off", 1}, {NULL, 0}};
static const option_choice policies[] = {{"continue", 0}, {"stop", 1}, {NULL, 0}};

static const char* choice_name(const option_choice* choices, int value) {
    while (choices->name && choices->value != value)
        choices++;
    return choices->name;
}

const char* options_filter_name(const options* self) { return choice_name(resize_filters, self->filter); }

const char* options_depth_name(const options* self) { return choice_name(depths, self->depth); }

const char* options_jpeg_name(const options* self) { return choice_name(jpegs, self->jpeg); }

const char* options_damage_name(const options* self) { return choice_name(damages, self->on_damage); }

const char* options_raw_name(const options* self) { return choice_name(raw_formats, (int)self->raw.format); }

const char* options_layout_name(const options* self) { return choice_name(trees, self->tree); }

int options_layout_of(const char* name) {
    for (const option_choice* tree = trees; name && tree->name; tree++)
        if (!strcmp(tree->name, name))
            return tree->value;
    return (int)LAYOUT_FLAT;
}

const char* options_switch_name(bool on) { return on ? "on" : "off"; }

const char* options_convention_name(const options* self) {
    const char* const name = choice_name(conventions, self->convention);
    return name ? name : choice_name(resize_conventions, self->convention);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) offsetof(options, member)

const option options_table[] = {
    {NULL, 0, BOTH, NULL, NULL, 0, 0, 0, NULL, "Files"},
    {"output", 'o', COMMAND_REPROJECT, "DIR", take_text, AT(output), 0, 0, NULL,
     "required; made when its parent exists. Views are DIR/<stem>_v00.<ext>, _v01, ..., or as --layout says"},
    {"layout", 0, COMMAND_REPROJECT, "flat|colmap|nerfstudio", take_choice, AT(tree), 0, 0, trees,
     "flat (default). colmap: DIR/images/v00/<stem>.<ext>, masks/v00/<stem>.<ext>.png and rig_config.json. nerfstudio: "
     "DIR/images/<stem>_v00.<ext>, masks/<stem>_v00.<ext>.png and transforms.json"},
    {"output", 'o', COMMAND_PREPROCESS, "DIR|FILE.npy", take_text, AT(output), 0, 0, NULL,
     "required; DIR/<stem>.npy for every input, or one file with a row for every input"},
    {"recursive", 0, BOTH, NULL, take_flag, AT(recursive), 0, 0, NULL,
     "directories below the INPUT directories, too; outputs have the same directories below -o DIR"},
    {"clean", 0, BOTH, NULL, take_flag, AT(clean), 0, 0, NULL,
     "remove what runs with other settings left under -o DIR and this run does not write: only files that the list "
     "there names as theirs"},
    {"raw", 0, BOTH, "WxH:FORMAT", take_raw, 0, 0, 0, NULL,
     "inputs are pixels without a header; FORMAT is gray8, rgb8, bgr8 or rgba8"},
    {"max-pixels", 0, BOTH, "N[K|M|G]", take_bytes, AT(limits.pixels), 0, 0, NULL,
     "refuse files whose header asks for more pixels (default 512M: 32767x16384), and JPEGs whose pixels times scans "
     "are more than 16 N; K, M, G are powers of 1024"},
    {"max-item-bytes", 0, BOTH, "N[K|M|G]", take_bytes, AT(limits.bytes), 0, 0, NULL,
     "refuse a file that needs more memory: its own bytes, its decoded picture and its decoder's (default: a quarter of "
     "the machine's memory, at least 256M; for pipes and devices 1G at most)"},
    {"max-host-bytes", 0, BOTH, "N[K|M|G]", take_bytes, AT(max_host_bytes), 0, 0, NULL,
     "the frames of all items take no more memory (default: half of what is available)"},
    {"max-device-bytes", 0, BOTH, "N[K|M|G]", take_bytes, AT(max_device_bytes), 0, 0, NULL,
     "the frames of all items take no more memory of the GPU (default: nine tenths of what is free); where one item "
     "needs more, the CPU computes it"},
    {"format", 0, COMMAND_REPROJECT, "jpg|png|tif|webp|ppm|npy", take_choice, AT(format), 0, 0, formats,
     "of the views (default jpg; ppm where no libturbojpeg is found). tif: not compressed; webp: lossy, sides up to "
     "16383"},
    {"depth", 0, COMMAND_REPROJECT, "8|16|f32", take_choice, AT(depth), 0, 0, depths,
     "bits of a channel of the views (default 8): 16 with png, tif, ppm and npy; f32 with tif and npy, where 0 to 1 is "
     "the full scale of frames of 8 and 16 bits, and floats stay as they are"},
    {"quality", 0, COMMAND_REPROJECT, "N", take_count, AT(quality), 1, 100, NULL,
     "of JPEG and WebP, 1 to 100 (default 95)"},
    {"chroma", 0, COMMAND_REPROJECT, "444|422|420", take_choice, AT(chroma), 0, 0, chromas,
     "of JPEG (default 444: nothing is thrown away)"},
    {"optimise", 0, COMMAND_REPROJECT, NULL, take_flag, AT(optimise), 0, 0, NULL,
     "JPEG with Huffman tables of its own: some per cent smaller, and slower; needs libturbojpeg 3 or later"},
    {"restart-rows", 0, COMMAND_REPROJECT, "N", take_count, AT(restart_rows), 1, 65535, NULL,
     "JPEG with a restart marker after every N rows of blocks, by the cores; needs libturbojpeg 3 or later"},
    {"jpeg", 0, COMMAND_REPROJECT, "auto|cpu|gpu", take_choice, AT(jpeg), 0, 0, jpegs,
     "who decodes and encodes JPEG: the cores (cpu), the GPU's nvJPEG where it can (gpu), or for each picture the one "
     "that will be done with it first (auto, the default)"},
    {"jpeg", 0, COMMAND_PREPROCESS, "auto|cpu|gpu", take_choice, AT(jpeg), 0, 0, jpegs,
     "who decodes JPEG: the cores (cpu, the default), the GPU's nvJPEG where it can (gpu), or for each picture the one "
     "that will be done with it first (auto)"},
    {"exact", 0, BOTH, NULL, take_flag, AT(exact), 0, 0, NULL,
     "the same as --jpeg cpu: the same bytes on every machine, and every damage is noticed that can be"},
    {"on-damage", 0, BOTH, "fail|keep", take_choice, AT(on_damage), 0, 0, damages,
     "a JPEG whose damage is noticed fails (default), or what can be decoded of it is kept, and --stats says so"},
    {"orient", 0, BOTH, "apply|ignore", take_choice, AT(ignore_orientation), 0, 0, orients,
     "pictures are turned and mirrored as their EXIF says (default), or used as they are stored"},
    {"metadata", 0, COMMAND_REPROJECT, "minimal|none", take_choice, AT(no_metadata), 0, 0, metadatas,
     "of each view: date, place and ICC profile of its frame and the view's own focal length (minimal, the default), or "
     "nothing. What else the frame says, as of its camera, would be wrong of a view"},

    {NULL, 0, COMMAND_REPROJECT, NULL, NULL, 0, 0, 0, NULL, "Geometry"},
    {"views", 0, COMMAND_REPROJECT, "N", take_count, AT(n_views_asked), 1, OPTIONS_MAX_VIEWS, NULL,
     "N yaws, evenly spaced from 0, pitch 0 (default 8)"},
    {"pitch-rings", 0, COMMAND_REPROJECT, "P1,P2,...", take_rings, 0, 0, 0, NULL,
     "the N views on a ring at each of these pitches, ring after ring"},
    {"view", 0, COMMAND_REPROJECT, "Y,P,R[,HFOV]", take_view, 0, 0, 0, NULL,
     "one view, repeatable, in degrees: yaw turns right, pitch up, roll clockwise (roll first)"},
    {"hfov", 0, COMMAND_REPROJECT, "DEGREES", take_angle, AT(hfov), 0, 180, NULL,
     "horizontal field of view (default 90)"},
    {"vfov", 0, COMMAND_REPROJECT, "DEGREES", take_angle, AT(vfov), 0, 180, NULL,
     "vertical field of view (default: square pixels)"},
    {"size", 0, COMMAND_REPROJECT, "WxH", take_size, 0, 0, 0, NULL, "of every view (default 1920x1080)"},
    {"convention", 0, COMMAND_REPROJECT, "native|ffmpeg|py360|opencv", take_choice, AT(convention), 0, 0, conventions,
     "where pixels lie and how they are sampled: half-pixel centres (native, the default), or as FFmpeg's v360, "
     "py360convert or OpenCV's remap do it, for comparison"},
    {"pose", 0, COMMAND_REPROJECT, "use|ignore", take_choice, AT(ignore_pose), 0, 0, poses,
     "where a frame's GPano says how its camera was turned, views look into the world: yaw 0 is north, pitch 0 the "
     "horizon (use, the default); or yaw 0 is the middle of the frame (ignore)"},
    {"mask", 0, COMMAND_REPROJECT, "FILE|DIR", take_text, AT(mask), 0, 0, NULL,
     "equirectangular picture of the frames' size (of the whole sphere, where GPano says that a frame is a part of "
     "one), non-zero = keep; dropped pixels become 0. DIR: one for each frame, "
     "<stem>.png, <name>.png (as a.jpg.png) or <stem>_mask.png; a frame without one fails"},
    {"mask-names", 0, COMMAND_REPROJECT, "PATTERN", take_pattern, AT(mask_names), 0, 0, NULL,
     "what the masks in --mask DIR are called instead, as {stem}-keep.png; {name} is the frame's name with its "
     "extension"},
    {"mask-out", 0, COMMAND_REPROJECT, "[=PATTERN]", take_pattern, AT(mask_out), 0, 0, NULL,
     "the mask of each view, 255 keep, 0 drop, beside it or in the layout's masks/; PATTERN: its name by that of the "
     "view's file (default {name}.png, as a_v00.jpg.png)"},
    {"rig", 0, COMMAND_REPROJECT, "FILE.json", take_text, AT(rig), 0, 0, NULL,
     "intrinsics and rotation of every view, as COLMAP's rig_configurator reads them. COLMAP finds the views "
     "of a frame by folder, as --layout colmap writes them, with this file"},

    {NULL, 0, COMMAND_PREPROCESS, NULL, NULL, 0, 0, 0, NULL, "Tensor"},
    {"size", 0, COMMAND_PREPROCESS, "WxH", take_size, 0, 0, 0, NULL,
     "required: every input is stretched to it, unless one of the next two says otherwise"},
    {"letterbox", 0, COMMAND_PREPROCESS, NULL, take_flag, AT(letterbox), 0, 0, NULL,
     "all of the input in its own shape, as large as fits in, in the middle: as Ultralytics"},
    {"short-side", 0, COMMAND_PREPROCESS, "N", take_count, AT(short_side), 1, 65535, NULL,
     "the input in its own shape, its shorter side N pixels, and of that the middle: as torchvision's Resize(N) and "
     "CenterCrop"},
    {"pad", 0, COMMAND_PREPROCESS, "V", take_count, AT(pad), 0, 255, NULL,
     "what both put where no picture is, of 255, ahead of --mean and --std (default 114 with --letterbox, 0 with "
     "--short-side)"},
    {"dtype", 0, COMMAND_PREPROCESS, "u8|f16|f32", take_choice, AT(dtype), 0, 0, dtypes,
     "default f32. Floats are on the 0..1 scale (value / 255); u8 keeps 0..255"},
    {"mean", 0, COMMAND_PREPROCESS, "R,G,B", take_mean, 0, 0, 0, NULL,
     "subtracted, on the 0..1 scale; one number serves all"},
    {"std", 0, COMMAND_PREPROCESS, "R,G,B", take_std, 0, 0, 0, NULL, "divided by, after the mean"},
    {"layout", 0, COMMAND_PREPROCESS, "chw|hwc", take_choice, AT(layout), 0, 0, layouts, "default chw"},
    {"swap-rb", 0, COMMAND_PREPROCESS, NULL, take_flag, AT(swap_rb), 0, 0, NULL,
     "channels stored B, G, R; mean and std still belong to the colours by name"},
    {"convention", 0, COMMAND_PREPROCESS, "native|opencv|torch", take_choice, AT(convention), 0, 0, resize_conventions,
     "half-pixel centres in all (PyTorch: align_corners=False). opencv: nearest, area and bicubic as INTER_NEAREST, "
     "INTER_AREA and INTER_CUBIC; torch: nearest as mode=nearest, positions rounded as there"},
    {"filter", 0, COMMAND_PREPROCESS, "NAME", take_choice, AT(filter), 0, 0, resize_filters,
     "nearest, bilinear (default) or bicubic; area and bicubic-area are bilinear and bicubic antialiased, for smaller "
     "sizes: what torchvision's and Pillow's resizes do"},

    {"filter", 0, COMMAND_REPROJECT, "nearest|bilinear|area", take_choice, AT(filter), 0, 0, filters,
     "default bilinear; area is antialiased, for views much coarser than the frames"},

    {NULL, 0, ENGINE, NULL, NULL, 0, 0, 0, NULL, "Engine"},
    {"backend", 0, ENGINE, "NAME", take_backend, AT(backend), 0, 0, NULL,
     "auto (default), cpu, cuda or hip (cuda:device=1 for another than the first). One named must be there"},
    {"plain", 0, ENGINE, "[=serial|inside]", take_plain, AT(mode), 0, 0, plains,
     "a plain loop instead of the engine: one item after the other on one thread, or with all cores inside "
     "the kernel"},
    {"mode", 0, ENGINE, "latency|balanced|throughput", take_choice, AT(preset), 0, 0, modes,
     "how many items may be in flight: 20, 100 (default), 200, or the workers and 4"},
    {"tune", 0, ENGINE, "off|on|FILE", take_tune, 0, 0, 0, NULL,
     "knobs not given move while the job runs (on, the default), or stay; FILE: begin with the settings in it, if it is "
     "there, and leave in it what was found"},
    {"workers", 0, ENGINE, "N", take_count, AT(workers), 1, 1024, NULL,
     "threads that compute (default: cores allowed)"},
    {"slots", 0, ENGINE, "N", take_count, AT(slots), 1, 4096, NULL,
     "items in flight (default: tuned)"},
    {"readers", 0, ENGINE, "N", take_count, AT(readers), 1, 64, NULL, "reads in flight (default: tuned)"},
    {"writers", 0, ENGINE, "N", take_count, AT(writers), 1, 64, NULL, "writes in flight (default: tuned)"},
    {"prefetch", 0, ENGINE, "on|off", take_choice, AT(no_prefetch), 0, 0, prefetches,
     "the system is told ahead of files that are not in memory (on, the default), or never"},
    {"fsync", 0, ENGINE, "file|none", take_choice, AT(fsync), 0, 0, syncs,
     "a file is on the disk before it has its name (default), or whenever the system writes it: faster, and a file may be "
     "empty after a power cut"},
    {"dirty-bytes", 0, ENGINE, "N[K|M|G]", take_bytes, AT(dirty_bytes), 0, 0, NULL,
     "about twice N bytes of each file under -o DIR may wait in memory for the disk (default: as the system allows)"},
    {"pin", 0, ENGINE, "none|cores|LIST", take_text, AT(pin), 0, 0, NULL,
     "bind each worker to one core: of those allowed, or of a LIST like 0-3,8 (Linux; default none)"},
    {"batch", 0, ENGINE, "N", take_count, AT(batch), 1, 64, NULL,
     "items in one submission to a GPU at most (default: tuned)"},
    {"on-error", 0, ENGINE, "continue|stop", take_choice, AT(stop_on_error), 0, 0, policies,
     "after a failed item: go on (default), or finish what is in flight"},
    {"resume", 0, ENGINE, NULL, take_flag, AT(resume), 0, 0, NULL,
     "skip what the list under -o DIR says is whole, made with the same settings of the same input"},
    {"stats", 0, ENGINE, "FILE.json", take_text, AT(stats), 0, 0, NULL,
     "everything counted and timed: times, verdict, each stage and each path by its name, copies, errors"},
    {"quiet", 0, ENGINE, NULL, take_flag, AT(quiet), 0, 0, NULL, "errors only"},
    {"trace", 0, ENGINE, "FILE", NULL, 0, 0, 0, NULL, NULL},
    {"report", 0, ENGINE, "FILE", NULL, 0, 0, 0, NULL, NULL},

    {NULL, 0, COMMAND_PROBE, NULL, NULL, 0, 0, 0, NULL, "Options"},
    {"json", 0, COMMAND_PROBE, NULL, take_flag, AT(json), 0, 0, NULL, "the same as JSON"},

    {NULL, 0, COMMAND_BENCH, NULL, NULL, 0, 0, 0, NULL, "Options"},
    {"json", 0, COMMAND_BENCH, "FILE", take_text, AT(json_file), 0, 0, NULL, "the same as JSON"},
    {"budget", 0, COMMAND_BENCH, "SECONDS", take_count, AT(budget_s), 1, 36000, NULL,
     "about so long for the job (default 30)"},
};

const size_t options_table_count = sizeof options_table / sizeof options_table[0];
