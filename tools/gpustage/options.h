/* tools/gpustage/options.h -- the command line: what every command takes, checked, with every default
   resolved. */
#ifndef GPST_TOOL_OPTIONS_H
#define GPST_TOOL_OPTIONS_H

#include "codec.h"
#include "text.h"

typedef enum command_id {
    COMMAND_NONE = 0,
    COMMAND_PROBE = 1,
    COMMAND_REPROJECT = 2,
    COMMAND_PREPROCESS = 4,
    COMMAND_BENCH = 8
} command_id; /* bits, because an option may belong to several */

/* Where the files that a run writes lie below -o: outputs.h. */
typedef enum layout_kind { LAYOUT_FLAT = 0, LAYOUT_COLMAP = 1, LAYOUT_NERFSTUDIO = 2 } layout_kind;

#define OPTIONS_MAX_VIEWS 1000
#define OPTIONS_MAX_RINGS 64

typedef struct options {
    command_id command;
    const char* command_name;
    int64_t begun_ns;   /* on gpst_now_ns's clock: when the command was called */
    text_list inputs;   /* probe: PATH; bench: "quick" */
    const char* output; /* -o */
    bool help;

    /* reproject: geometry */
    uint32_t n_views_asked; /* --views; 0 = not given */
    gpst_view* views;       /* --view while parsing; afterwards every view, rings laid out */
    uint32_t n_views;
    double rings[OPTIONS_MAX_RINGS]; /* --pitch-rings */
    uint32_t n_rings;
    double hfov, vfov; /* vfov 0 = square pixels */
    const char* mask;
    bool mask_by_frame;     /* it is a directory */
    const char* mask_names; /* pattern of the masks in it; NULL = the usual ones */
    const char* mask_out;   /* pattern of the masks of views; NULL: none are written */
    const char* rig;
    bool rig_beside;        /* it comes with the layout, below -o */
    const char* transforms; /* likewise; NULL: none */
    int tree;               /* layout_kind */
    text beside;            /* that path */
    int format;      /* codec_kind; CODEC_UNKNOWN: not given yet */
    bool falls_back; /* it was not given, and there is no libturbojpeg */
    int depth;       /* gpst_dtype of the views: U8, U16 or F32 */
    uint32_t quality;
    int chroma;

    /* preprocess: tensor */
    double mean[3], std[3]; /* R, G, B, on the 0..1 scale */
    bool has_mean, has_std;
    int layout; /* gpst_layout */
    int dtype;  /* gpst_dtype */
    bool swap_rb;
    bool letterbox;
    uint32_t short_side; /* 0 = not given */
    uint32_t pad;        /* of 255 */

    /* both */
    uint32_t width, height; /* --size; 0 = not given */
    int filter;             /* gpst_filter */
    int convention;         /* gpst_convention */
    codec_raw raw;
    codec_limits limits; /* --max-pixels, --max-item-bytes */
    uint64_t max_host_bytes, max_device_bytes; /* 0 = not given */
    int jpeg;      /* gpst_codec */
    bool exact;
    int ignore_orientation; /* 0 or 1 */
    int ignore_pose, no_metadata; /* reproject; 0 or 1 */
    int on_damage; /* gpst_damage */
    bool optimise; /* reproject, as restart_rows */
    uint32_t restart_rows;

    /* engine */
    const char* backend;
    int mode;                                  /* gpst_run_mode */
    int preset, tune;                          /* gpst_preset, gpst_tune */
    const char* tune_file;                     /* settings found are kept here; NULL = nowhere */
    uint32_t slots, readers, writers, workers, batch; /* 0 = the engine's default */
    int no_prefetch;                           /* 0 or 1 */
    int fsync;                                 /* gpst_fsync */
    uint64_t dirty_bytes;                      /* 0 = the system's */
    const char* pin;
    int stop_on_error;                         /* 0 or 1 */
    bool resume;
    bool recursive;
    bool clean;
    const char* stats;
    bool quiet;

    bool json;             /* probe */
    const char* json_file; /* bench */
    uint32_t budget_s;     /* bench: 0 = the default */
} options;

/* Reads argv behind the command's name. EXIT_DONE, or EXIT_USAGE with the sentence printed. */
int options_read(options* self, command_id command, int argc, char** argv);
void options_free(options* self);
/* As the command line has it. */
const char* options_filter_name(const options* self);
const char* options_convention_name(const options* self);
const char* options_depth_name(const options* self);
const char* options_jpeg_name(const options* self);
const char* options_damage_name(const options* self);
const char* options_raw_name(const options* self); /* of the format; NULL: headers say it */
const char* options_switch_name(bool on);
const char* options_layout_name(const options* self);
int options_layout_of(const char* name); /* layout_kind; NULL, or unknown: LAYOUT_FLAT */

void options_print_help(command_id command);

#endif
