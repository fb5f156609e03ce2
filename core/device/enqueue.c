/* core/device/enqueue.c -- kernels put on a stream, with all that they are told copied into the launch. Computes
   nothing: on a GPU the kernels' own launches do, elsewhere their functions for the host. */
#include "../base/platform_internal.h"

#include "../../kernels/mask/mask_internal.h"
#include "../../kernels/mask/mask_launch.h"
#include "../../kernels/quantise/quantise_internal.h"
#include "../../kernels/warp/warp_internal.h"
#include "device_internal.h"
#include "enqueue.h"

#include <string.h>

/* Does the device compute by itself, from the lists that the caller has now? */
GPSTI_PRIVATE bool gpsti_enqueue_on_gpu(const gpst_stream* stream) {
    return stream->device->device->i->stream_native != NULL;
}

GPSTI_INTERN gpst_result gpsti_stream_launch(gpst_stream* stream, const gpsti_kernel* kernel, const void* args,
                                             size_t args_bytes, const gpsti_exec* exec) {
    return stream->records ? gpsti_commands_add_launch(&stream->commands, kernel, args, args_bytes, exec)
                           : stream->device->device->i->launch(stream->stream, kernel, args, args_bytes, exec);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_put(const char* function, const gpsti_kernel* kernel, const void* args,
                                            size_t args_bytes, gpst_stream* stream) {
    gpsti_exec exec;
    exec.n_threads = stream->device->n_threads;
    exec.bytes = 0;
    return gpsti_device_result(gpsti_stream_launch(stream, kernel, args, args_bytes, &exec), function);
}

/* ---- the user's own ---------------------------------------------------------------------- */

#define GPSTI_ENQUEUE_ARGS_BYTES 224

typedef struct gpsti_enqueue_user {
    const gpst_kernel* kernel;
    unsigned char args[GPSTI_ENQUEUE_ARGS_BYTES];
} gpsti_enqueue_user;

GPSTI_STATIC_ASSERT(sizeof(gpsti_enqueue_user) <= GPSTI_ARGS_BYTES, "a user's kernel must fit into a launch");

GPSTI_PRIVATE gpst_result gpsti_enqueue_user_host(const void* args, const gpsti_exec* exec) {
    const gpsti_enqueue_user* const user = (const gpsti_enqueue_user*)args;
    (void)exec;
    return user->kernel->host(user->args);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_user_gpu(const void* args, void* native_stream) {
    const gpsti_enqueue_user* const user = (const gpsti_enqueue_user*)args;
    return user->kernel->gpu(user->args, native_stream);
}

/* What the user's kernel does follows from its functions and its arguments' bytes. */
GPSTI_PRIVATE void gpsti_enqueue_user_lists(void* args, gpsti_lists* lists) {
    const gpsti_enqueue_user* const user = (const gpsti_enqueue_user*)args;
    gpsti_lists_add(lists, user->kernel, sizeof *user->kernel);
}

GPSTI_INTERN gpst_result gpsti_kernel_put(const char* function, const gpst_kernel* kernel, const void* args,
                                          size_t args_bytes, gpst_stream* stream, const gpsti_exec* exec) {
    static const gpsti_kernel launched = {"user", gpsti_enqueue_user_host, gpsti_enqueue_user_gpu,
                                          gpsti_enqueue_user_lists};
    gpsti_enqueue_user user;
    GPSTI_FAIL_IF(!kernel || (!kernel->host && !kernel->gpu), GPST_ERROR_ARGUMENT, "%s: kernel: must have host or gpu",
                  function);
    const char* const name = kernel->name ? kernel->name : "";
    GPSTI_FAIL_IF(args_bytes > sizeof user.args, GPST_ERROR_ARGUMENT, "%s: args_bytes=%zu: at most %u (\"%s\")",
                  function, args_bytes, (unsigned)sizeof user.args, name);
    GPSTI_FAIL_IF(args_bytes > 0 && !args, GPST_ERROR_ARGUMENT, "%s: args=NULL: must be args_bytes=%zu (\"%s\")",
                  function, args_bytes, name);
    GPSTI_FAIL_IF(gpsti_enqueue_on_gpu(stream) ? !kernel->gpu : !kernel->host, GPST_ERROR_UNSUPPORTED,
                  "%s: kernel \"%s\": has no form for the backend %s", function, name, stream->device->device->i->name);
    memset(&user, 0, sizeof user);
    user.kernel = kernel;
    if (args_bytes > 0)
        memcpy(user.args, args, args_bytes);
    return gpsti_stream_launch(stream, &launched, &user, sizeof user, exec); /* the user's sentence stays as it is */
}

GPST_API gpst_result gpst_kernel_enqueue(const gpst_kernel* kernel, const void* args, size_t args_bytes,
                                         gpst_stream* stream) {
    const char* function = "gpst_kernel_enqueue";
    GPSTI_TRY(gpsti_stream_check(stream, function));
    const gpsti_exec exec = {stream->device->n_threads, 0};
    return gpsti_kernel_put(function, kernel, args, args_bytes, stream, &exec);
}

/* ---- warps -------------------------------------------------------------------------------- */

#define GPSTI_ENQUEUE_OUTPUTS 4 /* of one launch: what fits into its arguments */

typedef struct gpsti_enqueue_warp {
    gpsti_warp_args args; /* its lists are those below, wherever this lies by then */
    gpst_image source;
    gpst_image outputs[GPSTI_ENQUEUE_OUTPUTS];
} gpsti_enqueue_warp;

GPSTI_STATIC_ASSERT(sizeof(gpsti_enqueue_warp) <= GPSTI_ARGS_BYTES, "a warp's images must fit into a launch");

GPSTI_PRIVATE gpst_result gpsti_enqueue_warp_host(const void* args, const gpsti_exec* exec) {
    const gpsti_enqueue_warp* const warp = (const gpsti_enqueue_warp*)args;
    gpsti_warp_args with_lists = warp->args;
    with_lists.sources = &warp->source;
    with_lists.outputs = warp->outputs;
    return gpsti_warp_kernel()->host(&with_lists, exec);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_warp_in_parts(const char* function, const gpsti_warp_args* args,
                                                      gpst_stream* stream) {
    static const gpsti_kernel launched = {"warp", gpsti_enqueue_warp_host, NULL, NULL};
    gpsti_enqueue_warp part;
    memset(&part, 0, sizeof part);
    part.args = *args;
    part.source = *args->sources;
    for (uint32_t first = 0; first < args->n_outputs; first += GPSTI_ENQUEUE_OUTPUTS) {
        const uint32_t left = args->n_outputs - first;
        part.args.first_output = first;
        part.args.n_outputs = left < GPSTI_ENQUEUE_OUTPUTS ? left : GPSTI_ENQUEUE_OUTPUTS;
        memcpy(part.outputs, args->outputs + first, part.args.n_outputs * sizeof *part.outputs);
        GPSTI_TRY(gpsti_enqueue_put(function, &launched, &part, sizeof part, stream));
    }
    return GPST_OK;
}

GPST_API gpst_result gpst_warp_enqueue(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                                       uint32_t n_outputs, gpst_stream* stream) {
    const char* function = "gpst_warp_enqueue";
    gpsti_warp_args args;
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(!warp || !source || !outputs, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function,
                  !warp     ? "warp"
                  : !source ? "source"
                            : "outputs");
    GPSTI_FAIL_IF(n_outputs != gpst_warp_n_outputs(warp), GPST_ERROR_ARGUMENT, "%s: n_outputs=%u: the warp has %u",
                  function, (unsigned)n_outputs, (unsigned)gpst_warp_n_outputs(warp));
    GPSTI_TRY(gpsti_warp_check_list(warp, function));
    GPSTI_TRY(gpsti_device_result(gpsti_warp_check(warp, source, outputs, n_outputs), function));
    memset(&args, 0, sizeof args);
    args.warp = warp;
    args.sources = source;
    args.n_sources = 1;
    args.outputs = outputs;
    args.n_outputs = n_outputs;
    return gpsti_enqueue_on_gpu(stream) || stream->records
               ? gpsti_enqueue_put(function, gpsti_warp_kernel(), &args, sizeof args, stream)
               : gpsti_enqueue_warp_in_parts(function, &args, stream);
}

/* ---- masks -------------------------------------------------------------------------------- */

typedef struct gpsti_enqueue_argmax {
    gpst_logits logits;
    gpst_labels labels;
} gpsti_enqueue_argmax;

typedef struct gpsti_enqueue_threshold {
    gpst_image source, mask;
    float threshold;
} gpsti_enqueue_threshold;

GPSTI_PRIVATE gpst_result gpsti_enqueue_argmax_host(const void* args, const gpsti_exec* exec) {
    const gpsti_enqueue_argmax* const argmax = (const gpsti_enqueue_argmax*)args;
    return gpst_mask_argmax(&argmax->logits, &argmax->labels, exec->n_threads);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_argmax_gpu(const void* args, void* native_stream) {
    const gpsti_enqueue_argmax* const argmax = (const gpsti_enqueue_argmax*)args;
    return gpst_mask_argmax_launch(&argmax->logits, &argmax->labels, 1, native_stream);
}

/* Member by member: the caller's gaps between them would make equal calls of a recording differ. */
GPSTI_PRIVATE void gpsti_enqueue_argmax_fill(gpsti_enqueue_argmax* argmax, const gpst_logits* logits,
                                             const gpst_labels* labels) {
    memset(argmax, 0, sizeof *argmax);
    argmax->logits.data = logits->data;
    argmax->logits.n_classes = logits->n_classes;
    argmax->logits.width = logits->width;
    argmax->logits.height = logits->height;
    argmax->logits.dtype = logits->dtype;
    argmax->logits.layout = logits->layout;
    argmax->logits.pitch_bytes = logits->pitch_bytes;
    argmax->logits.plane_bytes = logits->plane_bytes;
    argmax->labels.data = labels->data;
    argmax->labels.pitch_bytes = labels->pitch_bytes;
    argmax->labels.width = labels->width;
    argmax->labels.height = labels->height;
    argmax->labels.n_classes = labels->n_classes;
}

GPST_API gpst_result gpst_mask_argmax_enqueue(const gpst_logits* logits, const gpst_labels* labels,
                                              gpst_stream* stream) {
    static const gpsti_kernel launched = {"mask_argmax", gpsti_enqueue_argmax_host, gpsti_enqueue_argmax_gpu, NULL};
    const char* function = "gpst_mask_argmax_enqueue";
    gpsti_argmax_job job;
    gpsti_enqueue_argmax argmax;
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(!logits || !labels, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function,
                  !logits ? "logits" : "labels");
    GPSTI_TRY(gpsti_device_result(gpsti_argmax_job_init(logits, labels, &job), function));
    gpsti_enqueue_argmax_fill(&argmax, logits, labels);
    return gpsti_enqueue_put(function, &launched, &argmax, sizeof argmax, stream);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_threshold_host(const void* args, const gpsti_exec* exec) {
    const gpsti_enqueue_threshold* const above = (const gpsti_enqueue_threshold*)args;
    return gpst_mask_threshold(&above->source, above->threshold, &above->mask, exec->n_threads);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_threshold_gpu(const void* args, void* native_stream) {
    const gpsti_enqueue_threshold* const above = (const gpsti_enqueue_threshold*)args;
    return gpst_mask_threshold_launch(&above->source, above->threshold, &above->mask, 1, native_stream);
}

GPST_API gpst_result gpst_mask_threshold_enqueue(const gpst_image* source, float threshold, const gpst_image* mask,
                                                 gpst_stream* stream) {
    static const gpsti_kernel launched = {"mask_threshold", gpsti_enqueue_threshold_host,
                                          gpsti_enqueue_threshold_gpu, NULL};
    const char* function = "gpst_mask_threshold_enqueue";
    gpsti_mask_job job;
    gpsti_enqueue_threshold above;
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(!source || !mask, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function,
                  !source ? "source" : "mask");
    GPSTI_TRY(gpsti_threshold_job_init(function, source, threshold, mask, &job));
    memset(&above, 0, sizeof above);
    above.source = *source;
    above.mask = *mask;
    above.threshold = threshold;
    return gpsti_enqueue_put(function, &launched, &above, sizeof above, stream);
}

/* ---- 8-bit integers ------------------------------------------------------------------------ */

typedef struct gpsti_enqueue_quantise {
    gpst_channels values;
    const float* scales;
    int8_t* integers; /* not written by dequantise */
} gpsti_enqueue_quantise;

GPSTI_PRIVATE gpst_result gpsti_enqueue_quantise_host(const void* args, const gpsti_exec* exec) {
    const gpsti_enqueue_quantise* const q = (const gpsti_enqueue_quantise*)args;
    return gpst_quantise(&q->values, q->scales, q->integers, exec->n_threads);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_quantise_gpu(const void* args, void* native_stream) {
    const gpsti_enqueue_quantise* const q = (const gpsti_enqueue_quantise*)args;
    return gpst_quantise_launch(&q->values, q->scales, q->integers, native_stream);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_dequantise_host(const void* args, const gpsti_exec* exec) {
    const gpsti_enqueue_quantise* const q = (const gpsti_enqueue_quantise*)args;
    (void)exec;
    return gpst_dequantise(q->integers, q->scales, &q->values);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_dequantise_gpu(const void* args, void* native_stream) {
    const gpsti_enqueue_quantise* const q = (const gpsti_enqueue_quantise*)args;
    return gpst_dequantise_launch(q->integers, q->scales, &q->values, native_stream);
}

GPSTI_PRIVATE gpst_result gpsti_enqueue_channels(const char* function, const gpsti_kernel* kernel,
                                                 const gpst_channels* values, const float* scales, int8_t* integers,
                                                 gpst_stream* stream) {
    gpsti_enqueue_quantise q;
    size_t n = 0;
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_TRY(gpsti_channels_check(function, values, &n));
    GPSTI_FAIL_IF(!scales, GPST_ERROR_ARGUMENT, "%s: scales=NULL: required", function);
    GPSTI_FAIL_IF(!integers, GPST_ERROR_ARGUMENT, "%s: 8-bit integers: NULL: required", function);
    memset(&q, 0, sizeof q);
    q.values = *values;
    q.scales = scales;
    q.integers = integers;
    return gpsti_enqueue_put(function, kernel, &q, sizeof q, stream);
}

GPST_API gpst_result gpst_quantise_enqueue(const gpst_channels* values, const float* scales, int8_t* out,
                                           gpst_stream* stream) {
    static const gpsti_kernel launched = {"quantise", gpsti_enqueue_quantise_host, gpsti_enqueue_quantise_gpu, NULL};
    return gpsti_enqueue_channels("gpst_quantise_enqueue", &launched, values, scales, out, stream);
}

GPST_API gpst_result gpst_dequantise_enqueue(const int8_t* integers, const float* scales, const gpst_channels* out,
                                             gpst_stream* stream) {
    static const gpsti_kernel launched = {"dequantise", gpsti_enqueue_dequantise_host,
                                          gpsti_enqueue_dequantise_gpu, NULL};
    return gpsti_enqueue_channels("gpst_dequantise_enqueue", &launched, out, scales, (int8_t*)(uintptr_t)integers,
                                  stream);
}
