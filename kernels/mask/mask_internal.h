/* kernels/mask/mask_internal.h -- mask operations as plain data, and who computes
   them: what the public calls, the row loops and the reference share. */
#ifndef GPSTI_MASK_INTERNAL_H
#define GPSTI_MASK_INTERNAL_H

#include "mask.h"
#include "mask_op.h"
#include "../warp/warp_internal.h"

/* Scores at any layout: class c of pixel (x, y) is at y * pitch + x * pixel_bytes + c * class_bytes. */
typedef struct gpsti_argmax_job {
    const uint8_t* source;
    int64_t source_pitch, pixel_bytes, class_bytes;
    uint32_t source_width, source_height;
    uint32_t n_classes;
    bool half;   /* f16, else f32 */
    bool resize; /* interpolate from source_width x source_height */

    uint8_t* output;
    int64_t output_pitch;
    uint32_t width, height;
    bool wide; /* u16, else u8 */
} gpsti_argmax_job;

typedef enum gpsti_mask_op {
    GPSTI_MASK_ABOVE_U8 = 1, /* threshold, by what is compared */
    GPSTI_MASK_ABOVE_F16 = 2,
    GPSTI_MASK_ABOVE_F32 = 3,
    GPSTI_MASK_PACK = 4,
    GPSTI_MASK_UNPACK = 5
} gpsti_mask_op;

/* Row y of the source alone gives row y of the output. */
typedef struct gpsti_mask_job {
    gpsti_mask_op op;
    const uint8_t* source;
    int64_t source_pitch;
    uint8_t* output;
    int64_t output_pitch;
    uint32_t width, height;
    int32_t limit;    /* ABOVE_U8: the highest byte that is out, or -1; ABOVE_F16: the highest key that is out */
    float threshold;  /* ABOVE_F32 */
} gpsti_mask_job;

typedef enum gpsti_window_op {
    GPSTI_WINDOW_ERODE = 1,
    GPSTI_WINDOW_DILATE = 2,
    GPSTI_WINDOW_OPEN = 3,
    GPSTI_WINDOW_CLOSE = 4,
    GPSTI_WINDOW_BOX = 5,
    GPSTI_WINDOW_GAUSSIAN = 6,
    GPSTI_WINDOW_REFINE = 7
} gpsti_window_op;

/* A window of (2 radius + 1) squared source pixels gives an output pixel. */
typedef struct gpsti_window_job {
    gpsti_window_op op;
    int32_t radius; /* 1 or 2 */
    bool wide;      /* REFINE: labels of u16 */
    const uint8_t* source;
    int64_t source_pitch;
    uint8_t* output;
    int64_t output_pitch;
    int32_t width, height;
    const uint8_t* guide; /* REFINE: NULL = none */
    int64_t guide_pitch;
    int32_t guide_channels, tolerance;
} gpsti_window_job;

#define GPSTI_MASK_TIME_PARTS 64 /* sums of 8 bytes in the first row of a state, each of a GPU's block */

/* A frame into the means of those before it, which are in units of 1/256. */
typedef struct gpsti_mask_time_job {
    const uint8_t* source;
    int64_t source_pitch;
    uint8_t* output;
    int64_t output_pitch;
    uint8_t* state; /* its first row, which is a GPU's; the means follow */
    int64_t state_pitch;
    uint32_t width, height;
    uint16_t weight; /* of 65536; 65535 = all */
    uint16_t change; /* of 65280 */
    bool restart;
    uint64_t cut; /* the sum of differences from which it is a cut; UINT64_MAX = not looked for */
} gpsti_mask_time_job;

/* Rows first up to end on this thread: by the loops of a level (job: the job of this name), and by the per-pixel
   reference. */
GPSTI_INTERN void gpsti_argmax_rows(const void* job, gpsti_simd_level level, uint64_t first, uint64_t end);
GPSTI_INTERN void gpsti_argmax_rows_reference(const gpsti_argmax_job* job, uint32_t y_begin, uint32_t y_end);
GPSTI_INTERN void gpsti_mask_rows(const void* job, gpsti_simd_level level, uint64_t first, uint64_t end);
GPSTI_INTERN void gpsti_mask_rows_reference(const gpsti_mask_job* job, uint32_t y_begin, uint32_t y_end);
GPSTI_INTERN void gpsti_window_rows(const void* job, gpsti_simd_level level, uint64_t first, uint64_t end);
GPSTI_INTERN void gpsti_window_rows_reference(const gpsti_window_job* job, uint32_t y_begin, uint32_t y_end);
/* All rows at the machine's level; n_threads as in the public calls. */
GPSTI_INTERN void gpsti_argmax_compute(const gpsti_argmax_job* job, uint32_t n_threads);
GPSTI_INTERN void gpsti_mask_compute(const gpsti_mask_job* job, uint32_t n_threads);
GPSTI_INTERN void gpsti_window_compute(const gpsti_window_job* job, uint32_t n_threads);
/* At a level: what is a cut must be known ahead of the first row. */
GPSTI_INTERN void gpsti_mask_time_compute(const gpsti_mask_time_job* job, gpsti_simd_level level, uint32_t n_threads);
GPSTI_INTERN void gpsti_mask_time_reference(const gpsti_mask_time_job* job);

/* ---- rules that the public calls share ------------------------------------------------
   Each sets the reason, beginning "function: member". */
#define GPSTI_MASK_MAX_CLASSES 65535

typedef struct gpsti_span {
    uintptr_t begin;
    size_t bytes;
} gpsti_span;

GPSTI_INTERN bool gpsti_spans_overlap(gpsti_span a, gpsti_span b);
/* Any image of at most GPSTI_WARP_MAX_SIDE; the same that is GRAY and U8; labels. */
GPSTI_INTERN gpst_result gpsti_mask_check_image(const char* function, const char* member, const gpst_image* image,
                                                gpst_image* resolved, gpsti_span* span);
GPSTI_INTERN gpst_result gpsti_mask_check_mask(const char* function, const char* member, const gpst_image* image,
                                               gpst_image* resolved, gpsti_span* span);
GPSTI_INTERN gpst_result gpsti_labels_check(const char* function, const char* member, const gpst_labels* labels,
                                            gpst_labels* resolved, gpsti_span* span);
/* An output has the source's size and other memory. */
GPSTI_INTERN gpst_result gpsti_mask_check_pair(const char* function, const char* member, gpsti_span source,
                                               uint32_t width, uint32_t height, gpsti_span output,
                                               uint32_t output_width, uint32_t output_height);

/* Everything the public calls check, and the job that comes of it. */
GPSTI_INTERN gpst_result gpsti_argmax_job_init(const gpst_logits* logits, const gpst_labels* labels,
                                               gpsti_argmax_job* out);
GPSTI_INTERN double gpsti_logit(double probability); /* between 0 and 1; in the mode of gpsti_fp_enter */
GPSTI_INTERN gpst_result gpsti_threshold_job_init(const char* function, const gpst_image* source, float threshold,
                                                  const gpst_image* mask, gpsti_mask_job* out);
GPSTI_INTERN gpst_result gpsti_bitmap_job_init(const char* function, gpsti_mask_op op, const gpst_image* mask,
                                               const gpst_bitmap* bitmap, gpsti_mask_job* out);
GPSTI_INTERN gpst_result gpsti_morph_job_init(const gpst_image* mask, gpst_morph op, uint32_t size,
                                              const gpst_image* output, gpsti_window_job* out);
GPSTI_INTERN gpst_result gpsti_smooth_job_init(const gpst_image* source, gpst_smooth kind, uint32_t size,
                                               const gpst_image* output, gpsti_window_job* out);
GPSTI_INTERN gpst_result gpsti_refine_job_init(const gpst_labels* labels, const gpst_image* guide, uint32_t tolerance,
                                               const gpst_labels* output, gpsti_window_job* out);

/* Each of n pictures through one operation. */
typedef struct gpsti_mask_op_args {
    const gpst_mask_desc* desc;
    const gpst_image* from;
    const gpst_image* guides; /* NULL: none */
    const gpst_image* to;
    uint32_t n;
} gpsti_mask_op_args;
GPSTI_INTERN const gpsti_kernel* gpsti_mask_op_kernel(void);

/* Each of n pictures through TIME, each with its own state. */
typedef struct gpsti_mask_time_args {
    const gpst_mask_desc* desc;
    const gpst_image* from;
    const gpst_image* to;
    const gpst_image* states;
    uint32_t n;
    bool restart; /* all of them */
} gpsti_mask_time_args;
GPSTI_INTERN const gpsti_kernel* gpsti_mask_time_kernel(void);
GPSTI_INTERN gpst_result gpsti_mask_time_job_init(const char* function, const gpst_mask_desc* desc,
                                                  const gpst_image* from, const gpst_image* to, const gpst_image* state,
                                                  bool restart, gpsti_mask_time_job* out);

/* What can be said without a picture; the reason begins "function: ". gpsti_mask_desc_check: and that no state is
   kept, as gpsti_mask_op_kernel is given none. */
GPSTI_INTERN gpst_result gpsti_mask_desc_rules(const gpst_mask_desc* desc, const char* function);
GPSTI_INTERN gpst_result gpsti_mask_desc_check(const gpst_mask_desc* desc, const char* function);

#endif
