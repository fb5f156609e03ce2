/* tools/gpustage/options.c -- reads the command line by the table, joins what belongs together, and prints
   help from the same table. Knows no pipeline. */
#include "options.h"

#include "console.h"
#include "files.h"
#include "options_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------- */

typedef struct reading {
    options* self;
    int argc, at; /* argv[at] is next */
    char** argv;
} reading;

static const option* options_find(command_id command, const char* name, size_t bytes, char letter) {
    for (size_t i = 0; i < options_table_count; i++) {
        const option* const spec = &options_table[i];
        if (!spec->name || !(spec->commands & (unsigned)command))
            continue;
        if (name ? strlen(spec->name) == bytes && !memcmp(spec->name, name, bytes) : spec->letter == letter)
            return spec;
    }
    return NULL;
}

/* `shown` is the option as it was written, without its value. */
static int options_take(reading* in, const option* spec, const char* shown, const char* value) {
    const char* const command = in->self->command_name;
    char rule[OPTIONS_RULE_BYTES];
    const bool optional = spec->value && spec->value[0] == '[';
    if (!spec->value && value)
        return console_usage(command, "%s=%s: takes no value", shown, value);
    if (spec->value && !optional && !value && in->at == in->argc)
        return console_usage(command, "%s: needs a value: %s", shown, spec->value);
    if (spec->value && !optional && !value)
        value = in->argv[in->at++];
    if (!spec->take)
        return console_usage(command, "%s=%s: " OPTIONS_LATER, shown, value);
    if (!spec->take(spec, in->self, value, rule))
        return console_refuse(command, strcmp(rule, text_out_of_memory) ? NULL : text_out_of_memory, "%s=%s: %s", shown,
                              value, rule);
    return EXIT_DONE;
}

static int options_read_long(reading* in, const char* argument) {
    char shown[64];
    const char* const equals = strchr(argument, '=');
    const size_t bytes = equals ? (size_t)(equals - argument) : strlen(argument);
    const option* const spec = options_find(in->self->command, argument + 2, bytes - 2, 0);
    snprintf(shown, sizeof shown, "%.*s", (int)bytes, argument);
    if (bytes == 6 && !strcmp(argument, "--help")) {
        in->self->help = true;
        return EXIT_DONE;
    }
    if (!spec)
        return console_usage(in->self->command_name, "%s: %s has no such option", shown,
                             in->self->command_name);
    return options_take(in, spec, shown, equals ? equals + 1 : NULL);
}

/* -o DIR and -oDIR. */
static int options_read_short(reading* in, const char* argument) {
    char shown[3] = {'-', argument[1], '\0'};
    const option* const spec = options_find(in->self->command, NULL, 0, argument[1]);
    if (argument[1] == 'h' && !argument[2]) {
        in->self->help = true;
        return EXIT_DONE;
    }
    if (!spec)
        return console_usage(in->self->command_name, "%s: %s has no such option", argument,
                             in->self->command_name);
    return options_take(in, spec, shown, argument[2] ? argument + 2 : NULL);
}

static int options_read_all(reading* in) {
    bool only_inputs = false;
    int status = EXIT_DONE;
    while (status == EXIT_DONE && in->at < in->argc && !in->self->help) {
        const char* const argument = in->argv[in->at++];
        if (!only_inputs && !strcmp(argument, "--"))
            only_inputs = true;
        else if (!only_inputs && argument[0] == '-' && argument[1] == '-')
            status = options_read_long(in, argument);
        else if (!only_inputs && argument[0] == '-' && argument[1])
            status = options_read_short(in, argument);
        else if (!text_list_add(&in->self->inputs, argument))
            status = console_memory();
    }
    return status;
}

#define OPTIONS_NO_PAD UINT32_MAX /* --pad is not given */

/* ---- what belongs together ------------------------------------------------------------- */

static int options_lay_out_views(options* self) {
    const uint32_t n = self->n_views_asked ? self->n_views_asked : 8,
                   rings = self->n_rings ? self->n_rings : 1;
    if (n * rings > OPTIONS_MAX_VIEWS)
        return console_usage(self->command_name, "--views=%u on %u rings: at most %d views", n, rings,
                             OPTIONS_MAX_VIEWS);
    self->views = (gpst_view*)calloc((size_t)n * rings, sizeof *self->views);
    if (!self->views)
        return console_memory();
    for (uint32_t i = 0; i < n * rings; i++) {
        self->views[i].yaw = 360.0 * (double)(i % n) / (double)n;
        self->views[i].pitch = self->rings[i / n];
    }
    self->n_views = n * rings;
    return EXIT_DONE;
}

static int options_join_jpeg(options* self) {
    const char* const given = self->quality        ? "quality"
                              : self->chroma       ? "chroma"
                              : self->optimise     ? "optimise"
                              : self->restart_rows ? "restart-rows"
                                                   : NULL;
    const bool by_default = self->format == (int)CODEC_UNKNOWN;
    self->falls_back = by_default && !codec_available(CODEC_JPEG);
    if (by_default)
        self->format = (int)(self->falls_back ? CODEC_PNM : CODEC_JPEG);
    if (given && self->falls_back) {
        console_error("--%s: there is no JPEG here: %s", given, gpst_last_reason());
        return EXIT_MACHINE;
    }
    const bool only_quality = given && !self->chroma && !self->optimise && !self->restart_rows;
    if (given && self->format != (int)CODEC_JPEG && !(only_quality && self->format == (int)CODEC_WEBP))
        return console_usage(self->command_name, "--%s: needs --format jpg%s", given, only_quality ? " or webp" : "");
    self->quality = self->quality ? self->quality : 95;
    self->chroma = self->chroma ? self->chroma : 444;
    return EXIT_DONE;
}

/* What files of the format hold. */
static int options_join_depth(options* self) {
    const codec_kind kind = (codec_kind)self->format;
    const bool any = kind == CODEC_TIFF || kind == CODEC_NPY, words = any || kind == CODEC_PNG || kind == CODEC_PNM;
    if (self->depth == (int)GPST_DTYPE_DEFAULT)
        self->depth = (int)GPST_DTYPE_U8;
    if (self->depth == (int)GPST_DTYPE_F32 ? any : words || self->depth == (int)GPST_DTYPE_U8)
        return EXIT_DONE;
    return console_usage(self->command_name, "--depth=%s: .%s does not hold it: needs --format %s",
                         options_depth_name(self), codec_extension(kind),
                         self->depth == (int)GPST_DTYPE_F32 ? "tif or npy" : "png, tif, ppm or npy");
}

/* In one folder with the views it could have a view's name: a_v00.png. */
static bool options_names_a_view(const char* pattern, const char* extension) {
    char name[256];
    if (!text_expand(pattern, "a_v00.x", name, sizeof name))
        return false;
    char* end = strrchr(name, '.');
    if (strcmp(end + 1, extension) != 0)
        return false;
    while (end > name && end[-1] >= '0' && end[-1] <= '9')
        end--;
    return end - name > 2 && *end != '.' && end[-1] == 'v' && end[-2] == '_';
}

static int options_join_masks(options* self) {
    file_info info;
    self->mask_by_frame = self->mask && !files_query(self->mask, &info) && info.is_directory;
    if (self->mask_out && !self->mask)
        return console_usage(self->command_name, "--mask-out: needs --mask");
    if (self->mask_names && !self->mask_by_frame)
        return console_usage(self->command_name, "--mask-names: needs --mask DIR");
    if (self->mask_out && self->tree == (int)LAYOUT_FLAT &&
        options_names_a_view(self->mask_out, codec_extension((codec_kind)self->format)))
        return console_usage(self->command_name, "--mask-out=%s: is the name of a view", self->mask_out);
    return EXIT_DONE;
}

/* The file that comes with a layout. */
static int options_join_layout(options* self) {
    const bool colmap = self->tree == (int)LAYOUT_COLMAP;
    if (self->tree != (int)LAYOUT_FLAT && self->format == (int)CODEC_NPY)
        return console_usage(self->command_name, "--layout=%s: needs pictures: not --format npy",
                             options_layout_name(self));
    if (self->tree == (int)LAYOUT_FLAT || (colmap && self->rig))
        return EXIT_DONE;
    text_format(&self->beside, "%s/%s", self->output, colmap ? "rig_config.json" : "transforms.json");
    *(colmap ? &self->rig : &self->transforms) = self->beside.data;
    self->rig_beside = colmap;
    return self->beside.failed ? console_memory() : EXIT_DONE;
}

static int options_join_geometry(options* self) {
    const char* const command = self->command_name;
    if (self->n_views > 0 && (self->n_views_asked || self->n_rings))
        return console_usage(command, "--view: cannot be joined with --%s",
                             self->n_views_asked ? "views" : "pitch-rings");
    if (self->n_views == 0) {
        const int status = options_lay_out_views(self);
        if (status != EXIT_DONE)
            return status;
    }
    for (uint32_t i = 0; i < self->n_views; i++) {
        self->views[i].hfov = self->views[i].hfov > 0.0 ? self->views[i].hfov : self->hfov;
        self->views[i].vfov = self->vfov;
    }
    if (self->width == 0) {
        self->width = 1920;
        self->height = 1080;
    }
    const int status = options_join_masks(self);
    return status == EXIT_DONE ? options_join_layout(self) : status;
}

static int options_join_tensor(options* self) {
    const char* const command = self->command_name;
    if (self->width == 0)
        return console_usage(command, "--size WxH is required");
    if (self->dtype == (int)GPST_DTYPE_U8 && (self->has_mean || self->has_std))
        return console_usage(command, "--%s: needs --dtype f16 or f32", self->has_mean ? "mean" : "std");
    if (self->letterbox && self->short_side)
        return console_usage(command, "--letterbox: cannot be joined with --short-side");
    if (self->pad != OPTIONS_NO_PAD && !self->letterbox && !self->short_side)
        return console_usage(command, "--pad: needs --letterbox or --short-side");
    if (self->pad == OPTIONS_NO_PAD)
        self->pad = self->letterbox ? 114 : 0;
    return EXIT_DONE;
}

static int options_join(options* self) {
    const char* const command = self->command_name;
    if (self->command == COMMAND_PROBE) {
        if (self->inputs.count > 1)
            return console_usage(command, "%s: one PATH at most", self->inputs.items[1]);
        return EXIT_DONE;
    }
    if (self->command == COMMAND_BENCH) {
        for (size_t i = 0; i < self->inputs.count; i++)
            if (strcmp(self->inputs.items[i], "quick") != 0)
                return console_usage(command, "%s: there is quick, and nothing else", self->inputs.items[i]);
        return EXIT_DONE;
    }
    if (self->inputs.count == 0)
        return console_usage(command, "INPUT is required: files, directories or @list.txt");
    if (!self->output)
        return console_usage(command, "-o %s is required",
                             self->command == COMMAND_REPROJECT ? "DIR" : "DIR|FILE.npy");
    if (self->exact && self->jpeg == (int)GPST_CODEC_GPU)
        return console_usage(command, "--exact: cannot be joined with --jpeg gpu");
    self->jpeg = self->exact ? (int)GPST_CODEC_EXACT : self->jpeg;
    if (self->command != COMMAND_REPROJECT)
        return options_join_tensor(self);
    int status = options_join_jpeg(self);
    if (status == EXIT_DONE)
        status = options_join_depth(self);
    return status == EXIT_DONE ? options_join_geometry(self) : status;
}

int options_read(options* self, command_id command, int argc, char** argv) {
    static const char* const names[] = {"", "probe", "reproject", "", "preprocess", "", "", "", "bench"};
    memset(self, 0, sizeof *self);
    self->command = command;
    self->command_name = names[(int)command];
    self->hfov = 90.0;
    self->jpeg = (int)(command == COMMAND_REPROJECT ? GPST_CODEC_AUTO : GPST_CODEC_EXACT);
    self->filter = (int)GPST_FILTER_BILINEAR;
    self->convention = (int)GPST_CONVENTION_NATIVE;
    self->layout = (int)GPST_LAYOUT_CHW;
    self->dtype = (int)GPST_DTYPE_F32;
    self->mode = (int)GPST_RUN_DEFAULT;
    self->backend = "auto";
    self->pad = OPTIONS_NO_PAD;
    for (int c = 0; c < 3; c++)
        self->std[c] = 1.0;
    reading in;
    in.self = self;
    in.argc = argc;
    in.at = 0;
    in.argv = argv;
    const int status = options_read_all(&in);
    return status != EXIT_DONE || self->help ? status : options_join(self);
}

void options_free(options* self) {
    text_list_free(&self->inputs);
    text_free(&self->beside);
    free(self->views);
    self->views = NULL;
}

/* ---- help ----------------------------------------------------------------------------------- */

#define HELP_COLUMN 27
#define HELP_WIDTH 100

/* Words of `string`, wrapped, from HELP_COLUMN on. */
static void help_wrap(const char* string) {
    size_t at = HELP_COLUMN;
    while (*string) {
        const size_t bytes = strcspn(string, " ");
        const bool first = at == HELP_COLUMN;
        if (at + 1 + bytes > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
        } else if (!first) {
            printf(" ");
            at++;
        }
        printf("%.*s", (int)bytes, string);
        at += bytes;
        string += bytes + (string[bytes] ? 1 : 0);
    }
    printf("\n");
}

static void help_option(const option* spec) {
    char left[80];
    const char* const between = !spec->value || spec->value[0] == '[' ? "" : " ";
    if (spec->letter)
        snprintf(left, sizeof left, "  -%c, --%s%s%s", spec->letter, spec->name, between,
                 spec->value ? spec->value : "");
    else
        snprintf(left, sizeof left, "  --%s%s%s", spec->name, between, spec->value ? spec->value : "");
    if (strlen(left) + 2 > HELP_COLUMN)
        printf("%s\n%*s", left, HELP_COLUMN, "");
    else
        printf("%-*s", HELP_COLUMN, left);
    help_wrap(spec->help);
}

static void help_later(command_id command) {
    const char* separator = "\nOf a later version, and refused by this one: ";
    for (size_t i = 0; i < options_table_count; i++)
        if (options_table[i].name && (options_table[i].commands & (unsigned)command) &&
            !options_table[i].take) {
            printf("%s--%s", separator, options_table[i].name);
            separator = ", ";
        }
    printf("\n");
}

static void help_command(command_id command, const char* opening, const char* closing) {
    printf("%s", opening);
    for (size_t i = 0; i < options_table_count; i++) {
        const option* const spec = &options_table[i];
        if (!(spec->commands & (unsigned)command))
            continue;
        if (!spec->name)
            printf("\n%s\n", spec->help);
        else if (spec->help)
            help_option(spec);
    }
    if (command & (COMMAND_REPROJECT | COMMAND_PREPROCESS))
        help_later(command);
    printf("%s", closing);
}

static const char help_general[] =
    "usage: gpustage COMMAND ...\n"
    "\n"
    "  probe       what this machine is, what is compiled in and available, and why not\n"
    "  reproject   equirectangular (360-degree) frames to perspective views\n"
    "  preprocess  images to normalised tensors (.npy)\n"
    "  bench       this machine's limits, and one job measured\n"
    "\n"
    "gpustage COMMAND --help lists a command's options. gpustage --version says what was built.\n";

static const char help_inputs[] =
    "INPUT: files (JPEG, PNG, TIFF, WebP, PPM, PGM, PAM, .npy; told by their contents; gpustage probe lists which\n"
    "were built in), directories (the files in them whose names end as those of pictures, sorted by name;\n"
    "--recursive: and below), @list.txt (a path a line, from the working directory on; UTF-8, or UTF-16 with a\n"
    "byte order mark), /dev/stdin and FIFOs. No two inputs may have the same name without extension, except in\n"
    "different directories below one INPUT with --recursive. PNG, TIFF, PPM, PGM and PAM may have 16 bits a\n"
    "channel, TIFF floats, too; .npy of (H,W) or (H,W,1|3|4) b1, u1, u2, f2, f4 or f8. Of 16 bits 65535\n"
    "is full, of floats 1.\n";

static const char help_exits[] =
    "\nExit status: 0 all items done; 1 some failed, each listed with stage and reason on stderr and in\n"
    "--stats; 2 wrong usage; 3 this machine cannot do what was required; 130 interrupted (Ctrl-C finishes\n"
    "what is in flight, a second drops it; --resume goes on).\n";

static const char help_probe[] =
    "usage: gpustage probe [--json] [PATH]\n\n"
    "What this machine is, what is compiled in and available, and why not. PATH: the storage under it, too.\n";

static const char help_bench[] =
    "usage: gpustage bench [quick] [--json FILE] [--budget SECONDS]\n\n"
    "This machine's limits (memory, disk, device, a JPEG frame), and one job from files to files, plain and as it\n"
    "comes, each with its verdict; under a minute. Takes up to 1 GB of memory; files, up to 2 GB, are made in a\n"
    "directory of its own under TMPDIR, which says the disk, and removed.\n";

static const char help_reproject[] =
    "usage: gpustage reproject INPUT... -o DIR [options]\n\n"
    "Equirectangular (360-degree) frames to perspective views. Views are RGB, gray frames too.\n\n";

static const char help_reproject_example[] =
    "\nExamples: eight views around; the same as COLMAP reads them, with a mask for each frame\n"
    "  gpustage reproject frames/ -o views/ --views 8 --hfov 90 --size 1920x1080\n"
    "  gpustage reproject frames/ -o scene/ --views 8 --layout colmap --mask keep/ --mask-out\n";

static const char help_preprocess[] =
    "usage: gpustage preprocess INPUT... -o DIR|FILE.npy --size WxH [options]\n\n"
    "Images to normalised tensors: stored = (value / full - mean) / std, three channels, gray repeated, alpha\n"
    "dropped. In one FILE.npy, shape (N, ...) in the order of the inputs, a failed input leaves its row zero\n"
    "and is listed.\n\n";

static const char help_preprocess_example[] =
    "\nExamples: the input of torchvision's ImageNet networks, and of Ultralytics' YOLO\n"
    "  gpustage preprocess photos/ -o tensors.npy --size 224x224 --short-side 256 \\\n"
    "      --filter area --convention torch --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225\n"
    "  gpustage preprocess photos/ -o tensors.npy --size 640x640 --letterbox --convention opencv\n";

void options_print_help(command_id command) {
    if (command == COMMAND_PROBE) {
        help_command(command, help_probe, "\nExample:\n  gpustage probe /data\n");
    } else if (command == COMMAND_REPROJECT) {
        printf("%s%s", help_reproject, help_inputs);
        help_command(command, "", help_exits);
        printf("%s", help_reproject_example);
    } else if (command == COMMAND_PREPROCESS) {
        printf("%s%s", help_preprocess, help_inputs);
        help_command(command, "", help_exits);
        printf("%s", help_preprocess_example);
    } else if (command == COMMAND_BENCH) {
        help_command(command, help_bench, "\nExample:\n  TMPDIR=/data gpustage bench --json bench.json\n");
    } else {
        printf("%s", help_general);
    }
}
