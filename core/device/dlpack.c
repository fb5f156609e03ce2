/* core/device/dlpack.c -- DLPack's structs as bytes in memory: made of pictures, and read as pictures. Touches no
   pixel, and calls no device. */
#include "../base/platform_internal.h"

#include "../../kernels/warp/warp_internal.h"
#include "device_internal.h"
#include "dlpack.h"

#include <string.h>

/* ---- the layout of DLPack's structs ---------------------------------------------------------
   Whoever exchanges them uses dlpack.h's types, perhaps in this same unit: what crosses is copied as bytes, never
   accessed by way of ours. */

#define GPSTI_DLPACK_MAJOR 1
#define GPSTI_DLPACK_MINOR 0
#define GPSTI_DLPACK_READ_ONLY 1u
#define GPSTI_DLPACK_COPIED 2u
#define GPSTI_DLPACK_MAX_AXES 4

enum { /* device types */
       GPSTI_DLPACK_CPU = 1,
       GPSTI_DLPACK_CUDA = 2,
       GPSTI_DLPACK_CUDA_HOST = 3,
       GPSTI_DLPACK_ROCM = 10,
       GPSTI_DLPACK_ROCM_HOST = 11,
       GPSTI_DLPACK_CUDA_MANAGED = 13
};

enum { GPSTI_DLPACK_INT = 0, GPSTI_DLPACK_UINT = 1, GPSTI_DLPACK_FLOAT = 2 }; /* codes of a dtype */

typedef struct gpsti_dlpack_tensor {
    void* data;
    int32_t device_type, device_id;
    int32_t n_axes;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t* shape;
    int64_t* strides; /* in values; NULL, which DLPack before 1.2 allows: rows without gaps */
    uint64_t byte_offset;
} gpsti_dlpack_tensor;

typedef struct gpsti_dlpack_versioned {
    uint32_t major, minor;
    void* manager;
    void (*deleter)(void* self);
    uint64_t flags;
    gpsti_dlpack_tensor tensor;
} gpsti_dlpack_versioned;

typedef struct gpsti_dlpack_legacy {
    gpsti_dlpack_tensor tensor;
    void* manager;
    void (*deleter)(void* self);
} gpsti_dlpack_legacy;

#define GPSTI_DLPACK_64 (sizeof(void*) == 8)
GPSTI_STATIC_ASSERT(!GPSTI_DLPACK_64 ||
                        (sizeof(gpsti_dlpack_tensor) == 48 && offsetof(gpsti_dlpack_tensor, device_type) == 8 &&
                         offsetof(gpsti_dlpack_tensor, n_axes) == 16 && offsetof(gpsti_dlpack_tensor, code) == 20 &&
                         offsetof(gpsti_dlpack_tensor, lanes) == 22 && offsetof(gpsti_dlpack_tensor, shape) == 24 &&
                         offsetof(gpsti_dlpack_tensor, strides) == 32 &&
                         offsetof(gpsti_dlpack_tensor, byte_offset) == 40),
                    "DLTensor");
GPSTI_STATIC_ASSERT(!GPSTI_DLPACK_64 ||
                        (sizeof(gpsti_dlpack_versioned) == 80 && offsetof(gpsti_dlpack_versioned, manager) == 8 &&
                         offsetof(gpsti_dlpack_versioned, deleter) == 16 &&
                         offsetof(gpsti_dlpack_versioned, flags) == 24 &&
                         offsetof(gpsti_dlpack_versioned, tensor) == 32),
                    "DLManagedTensorVersioned");
GPSTI_STATIC_ASSERT(!GPSTI_DLPACK_64 ||
                        (sizeof(gpsti_dlpack_legacy) == 64 && offsetof(gpsti_dlpack_legacy, manager) == 48 &&
                         offsetof(gpsti_dlpack_legacy, deleter) == 56),
                    "DLManagedTensor");

typedef struct gpsti_dlpack_type {
    gpst_dtype dtype;
    uint8_t code, bits;
} gpsti_dlpack_type;

static const gpsti_dlpack_type gpsti_dlpack_types[] = {{GPST_DTYPE_U8, GPSTI_DLPACK_UINT, 8},
                                                       {GPST_DTYPE_I8, GPSTI_DLPACK_INT, 8},
                                                       {GPST_DTYPE_U16, GPSTI_DLPACK_UINT, 16},
                                                       {GPST_DTYPE_F16, GPSTI_DLPACK_FLOAT, 16},
                                                       {GPST_DTYPE_F32, GPSTI_DLPACK_FLOAT, 32}};
#define GPSTI_DLPACK_N_TYPES (sizeof gpsti_dlpack_types / sizeof *gpsti_dlpack_types)

GPSTI_PRIVATE gpst_result gpsti_dlpack_check_kind(gpst_dlpack_kind kind, const char* function) {
    GPSTI_FAIL_IF((int)kind < 0 || kind > GPST_DLPACK_LEGACY, GPST_ERROR_ARGUMENT,
                  "%s: kind=%d: must be VERSIONED or LEGACY", function, (int)kind);
    return GPST_OK;
}

/* Its memory of that kind is what to DLPack? 0: it has no word for it. */
GPSTI_PRIVATE int32_t gpsti_dlpack_device_type(const gpst_device* device, bool on_device) {
    const char* const backend = device->device->i->name;
    if (device->info.zero_copy)
        return GPSTI_DLPACK_CPU;
    if (!strcmp(backend, "cuda"))
        return on_device ? GPSTI_DLPACK_CUDA : GPSTI_DLPACK_CUDA_HOST;
    if (!strcmp(backend, "hip"))
        return on_device ? GPSTI_DLPACK_ROCM : GPSTI_DLPACK_ROCM_HOST;
    return on_device ? 0 : GPSTI_DLPACK_CPU;
}

/* ---- export ----------------------------------------------------------------------------------- */

/* One allocation: what the consumer holds, and what its pointers lead to. */
typedef struct gpsti_dlpack_block {
    gpsti_dlpack_versioned versioned;
    gpsti_dlpack_legacy legacy;
    int64_t shape[GPSTI_DLPACK_MAX_AXES], strides[GPSTI_DLPACK_MAX_AXES];
    void (*release)(void* release_user_data);
    void* release_user_data;
    gpsti_host host; /* its own: the device may be gone when the deleter is called */
} gpsti_dlpack_block;

GPSTI_PRIVATE void gpsti_dlpack_end(gpsti_dlpack_block* block) {
    gpsti_host host = block->host;
    if (block->release)
        block->release(block->release_user_data);
    gpsti_free(&host, block, sizeof *block);
}

GPSTI_PRIVATE void gpsti_dlpack_delete_versioned(void* self) {
    gpsti_dlpack_versioned managed;
    memcpy(&managed, self, sizeof managed);
    gpsti_dlpack_end((gpsti_dlpack_block*)managed.manager);
}

GPSTI_PRIVATE void gpsti_dlpack_delete_legacy(void* self) {
    gpsti_dlpack_legacy managed;
    memcpy(&managed, self, sizeof managed);
    gpsti_dlpack_end((gpsti_dlpack_block*)managed.manager);
}

GPSTI_PRIVATE gpst_result gpsti_dlpack_check_memory(const gpst_dlpack_desc* desc, const char* function,
                                                    gpsti_dlpack_tensor* tensor) {
    const bool on_device = desc->memory == GPST_MEMORY_DEVICE || (desc->memory == 0 && desc->device);
    GPSTI_FAIL_IF((int)desc->memory < 0 || desc->memory > GPST_MEMORY_REGISTERED, GPST_ERROR_ARGUMENT,
                  "%s: desc.memory=%d: must be HOST, PINNED, DEVICE or REGISTERED", function, (int)desc->memory);
    GPSTI_FAIL_IF(on_device && !desc->device, GPST_ERROR_ARGUMENT,
                  "%s: desc.device=NULL: required with memory of a DEVICE", function);
    tensor->device_type = GPSTI_DLPACK_CPU;
    if (!desc->device)
        return GPST_OK;
    GPSTI_TRY(gpsti_device_check(desc->device, function));
    if (desc->memory != GPST_MEMORY_HOST)
        tensor->device_type = gpsti_dlpack_device_type(desc->device, on_device);
    GPSTI_FAIL_IF(tensor->device_type == 0, GPST_ERROR_UNSUPPORTED,
                  "%s: desc.device: DLPack knows no device of the backend %s", function, desc->device->device->i->name);
    if (on_device)
        tensor->device_id = desc->device->info.ordinal;
    return GPST_OK;
}

/* The image with its defaults written out. That each stride fits in an int64_t is more than that the image fits in
   memory; of a single row nobody uses the pitch. */
GPSTI_PRIVATE gpst_result gpsti_dlpack_resolve(const gpst_dlpack_desc* desc, const char* function, gpst_image* image) {
    GPSTI_FAIL_IF(
        gpsti_image_is_yuv(desc->image.format), GPST_ERROR_ARGUMENT,
        "%s: desc.image.format=%d: its planes are of two sizes, and no one array: give each as a GRAY image, or "
        "warp it to RGB",
        function, (int)desc->image.format);
    GPSTI_TRY(gpsti_image_check(&desc->image, function, "desc.image"));
    *image = gpsti_image_resolved(&desc->image);
    image->n_channels = gpsti_image_channels(image);
    const int64_t planes = image->layout == GPST_LAYOUT_CHW ? image->n_channels : 1;
    const int64_t most = INT64_MAX / image->height / planes;
    if (image->height * planes == 1)
        image->pitch_bytes = (int64_t)gpst_image_row_bytes(image);
    GPSTI_FAIL_IF(image->pitch_bytes > most || image->pitch_bytes < -most, GPST_ERROR_OVERFLOW,
                  "%s: desc.image.pitch_bytes=%lld: %u rows do not fit in memory", function,
                  (long long)image->pitch_bytes, (unsigned)image->height);
    return GPST_OK;
}

/* Bytes from one picture to the next. */
GPSTI_PRIVATE gpst_result gpsti_dlpack_check_step(const gpst_dlpack_desc* desc, const gpst_image* image,
                                                  const char* function, int64_t* step) {
    const int64_t unit = gpst_dtype_bytes(image->dtype);
    const int64_t pitch = image->pitch_bytes < 0 ? -image->pitch_bytes : image->pitch_bytes;
    *step = desc->image_step_bytes;
    GPSTI_FAIL_IF(*step != 0 && desc->n_images == 0, GPST_ERROR_ARGUMENT,
                  "%s: desc.image_step_bytes=%lld: must be 0 without n_images", function, (long long)*step);
    GPSTI_FAIL_IF(*step % unit != 0, GPST_ERROR_ARGUMENT,
                  "%s: desc.image_step_bytes=%lld: must be a multiple of the %d bytes of the image's dtype", function,
                  (long long)*step, (int)unit);
    if (*step == 0 && desc->n_images > 0)
        *step = pitch * image->height * (image->layout == GPST_LAYOUT_CHW ? image->n_channels : 1);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_dlpack_add_axis(gpsti_dlpack_tensor* tensor, int64_t size, int64_t stride) {
    tensor->shape[tensor->n_axes] = size;
    tensor->strides[tensor->n_axes] = stride;
    tensor->n_axes++;
}

/* image: resolved. */
GPSTI_PRIVATE void gpsti_dlpack_describe(const gpst_dlpack_desc* desc, const gpst_image* image, int64_t step,
                                         gpsti_dlpack_tensor* tensor) {
    const int64_t unit = gpst_dtype_bytes(image->dtype), row = image->pitch_bytes / unit;
    const int64_t width = image->width, height = image->height, channels = image->n_channels;
    const bool planes = image->layout == GPST_LAYOUT_CHW;
    const bool has_channels = image->format != GPST_FORMAT_GRAY || desc->gray_has_channels;
    tensor->data = image->data;
    tensor->lanes = 1;
    for (size_t k = 0; k < GPSTI_DLPACK_N_TYPES; k++)
        if (gpsti_dlpack_types[k].dtype == image->dtype)
            tensor->code = gpsti_dlpack_types[k].code, tensor->bits = gpsti_dlpack_types[k].bits;
    if (desc->n_images > 0)
        gpsti_dlpack_add_axis(tensor, desc->n_images, step / unit);
    if (has_channels && planes)
        gpsti_dlpack_add_axis(tensor, channels, height * row);
    gpsti_dlpack_add_axis(tensor, height, row);
    gpsti_dlpack_add_axis(tensor, width, planes ? 1 : channels);
    if (has_channels && !planes)
        gpsti_dlpack_add_axis(tensor, channels, 1);
}

GPSTI_PRIVATE void* gpsti_dlpack_fill(gpsti_dlpack_block* block, const gpst_dlpack_desc* desc,
                                      const gpsti_dlpack_tensor* tensor) {
    gpsti_dlpack_versioned versioned;
    gpsti_dlpack_legacy legacy;
    versioned.major = GPSTI_DLPACK_MAJOR, versioned.minor = GPSTI_DLPACK_MINOR;
    versioned.flags = desc->read_only ? GPSTI_DLPACK_READ_ONLY : 0;
    versioned.manager = legacy.manager = block;
    versioned.deleter = gpsti_dlpack_delete_versioned;
    legacy.deleter = gpsti_dlpack_delete_legacy;
    versioned.tensor = legacy.tensor = *tensor;
    memcpy(&block->versioned, &versioned, sizeof versioned);
    memcpy(&block->legacy, &legacy, sizeof legacy);
    return desc->kind == GPST_DLPACK_LEGACY ? (void*)&block->legacy : (void*)&block->versioned;
}

GPST_API gpst_result gpst_dlpack_export_versioned(uint32_t version, size_t desc_bytes, const gpst_dlpack_desc* desc,
                                                  void** out) {
    const char* function = "gpst_dlpack_export";
    gpsti_dlpack_tensor tensor;
    gpst_image image;
    gpsti_host host;
    int64_t step = 0;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(function, version, desc_bytes, sizeof(gpst_dlpack_desc)));
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, "%s: desc=NULL: required", function);
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must point to a void*", function);
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_TRY(gpsti_dlpack_check_kind(desc->kind, function));
    GPSTI_FAIL_IF(desc->read_only && desc->kind == GPST_DLPACK_LEGACY, GPST_ERROR_ARGUMENT,
                  "%s: desc.read_only=true: must be false with LEGACY, which cannot tell the consumer", function);
    GPSTI_FAIL_IF(!desc->allocator.alloc != !desc->allocator.free, GPST_ERROR_ARGUMENT,
                  "%s: desc.allocator: alloc and free must both be set, or neither", function);
    GPSTI_TRY(gpsti_dlpack_resolve(desc, function, &image));
    memset(&tensor, 0, sizeof tensor);
    GPSTI_TRY(gpsti_dlpack_check_memory(desc, function, &tensor));
    GPSTI_TRY(gpsti_dlpack_check_step(desc, &image, function, &step));
    gpsti_host_init(&host, desc->allocator.alloc ? &desc->allocator : NULL, NULL);
    gpsti_dlpack_block* const block = (gpsti_dlpack_block*)gpsti_alloc(&host, sizeof *block);
    if (!block)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    block->host = host;
    block->release = desc->release;
    block->release_user_data = desc->release_user_data;
    tensor.shape = block->shape;
    tensor.strides = block->strides;
    gpsti_dlpack_describe(desc, &image, step, &tensor);
    *out = gpsti_dlpack_fill(block, desc, &tensor);
    return GPST_OK;
}

/* ---- import ----------------------------------------------------------------------------------- */

#define GPSTI_DLPACK_IMPORT "gpst_dlpack_import"

GPSTI_PRIVATE void gpsti_dlpack_release_versioned(void* self) {
    gpsti_dlpack_versioned managed;
    memcpy(&managed, self, sizeof managed);
    if (managed.deleter)
        managed.deleter(self);
}

GPSTI_PRIVATE void gpsti_dlpack_release_legacy(void* self) {
    gpsti_dlpack_legacy managed;
    memcpy(&managed, self, sizeof managed);
    if (managed.deleter)
        managed.deleter(self);
}

GPST_API void gpst_dlpack_release(gpst_dlpack_kind kind, void* managed) {
    if (managed && kind == GPST_DLPACK_LEGACY)
        gpsti_dlpack_release_legacy(managed);
    else if (managed && ((int)kind == GPST_DLPACK_DEFAULT || kind == GPST_DLPACK_VERSIONED))
        gpsti_dlpack_release_versioned(managed);
}

/* Of a struct of another major version no more is known than its version, deleter and flags. */
GPSTI_PRIVATE gpst_result gpsti_dlpack_read(void* managed, gpst_dlpack_kind kind, gpsti_dlpack_tensor* tensor,
                                            gpst_dlpack_view* view) {
    gpsti_dlpack_versioned versioned;
    gpsti_dlpack_legacy legacy;
    view->release_user_data = managed;
    if (kind == GPST_DLPACK_LEGACY) {
        memcpy(&legacy, managed, sizeof legacy);
        *tensor = legacy.tensor;
        view->release = gpsti_dlpack_release_legacy;
        return GPST_OK;
    }
    memcpy(&versioned, managed, offsetof(gpsti_dlpack_versioned, tensor));
    GPSTI_FAIL_IF(versioned.major != GPSTI_DLPACK_MAJOR, GPST_ERROR_VERSION,
                  GPSTI_DLPACK_IMPORT ": version=%u.%u: must be 1.x", (unsigned)versioned.major,
                  (unsigned)versioned.minor);
    memcpy(&versioned, managed, sizeof versioned);
    *tensor = versioned.tensor;
    view->read_only = (versioned.flags & GPSTI_DLPACK_READ_ONLY) != 0;
    view->copied = (versioned.flags & GPSTI_DLPACK_COPIED) != 0;
    view->release = gpsti_dlpack_release_versioned;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_dlpack_read_device(const gpsti_dlpack_tensor* tensor, const gpst_device* device,
                                                   gpst_dlpack_view* view) {
    const int32_t type = tensor->device_type == GPSTI_DLPACK_CUDA_MANAGED ? GPSTI_DLPACK_CUDA : tensor->device_type;
    if (type == GPSTI_DLPACK_CPU || type == GPSTI_DLPACK_CUDA_HOST || type == GPSTI_DLPACK_ROCM_HOST) {
        view->pinned = type != GPSTI_DLPACK_CPU;
        return GPST_OK;
    }
    GPSTI_FAIL_IF(type != GPSTI_DLPACK_CUDA && type != GPSTI_DLPACK_ROCM, GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT ": device_type=%d: must be the host's (1, 3, 11), CUDA's (2, 13) or ROCm's (10)",
                  (int)tensor->device_type);
    GPSTI_FAIL_IF(!device, GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT ": device=NULL: required: the tensor is of %s device %d",
                  type == GPSTI_DLPACK_CUDA ? "CUDA" : "ROCm", (int)tensor->device_id);
    GPSTI_FAIL_IF(gpsti_dlpack_device_type(device, true) != type || device->info.ordinal != tensor->device_id,
                  GPST_ERROR_ARGUMENT, GPSTI_DLPACK_IMPORT ": device: is %s device %d, and the tensor of %s device %d",
                  device->device->i->name, (int)device->info.ordinal, type == GPSTI_DLPACK_CUDA ? "CUDA" : "ROCm",
                  (int)tensor->device_id);
    view->on_device = true;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_dlpack_read_type(const gpsti_dlpack_tensor* tensor, gpst_image* image) {
    for (size_t k = 0; k < GPSTI_DLPACK_N_TYPES; k++)
        if (gpsti_dlpack_types[k].code == tensor->code && gpsti_dlpack_types[k].bits == tensor->bits &&
            tensor->lanes == 1) {
            image->dtype = gpsti_dlpack_types[k].dtype;
            return GPST_OK;
        }
    return gpsti_fail(GPST_ERROR_ARGUMENT,
                      GPSTI_DLPACK_IMPORT ": dtype: code=%u, bits=%u, lanes=%u: must be unsigned (1) of 8 or 16 bits, "
                                          "signed (0) of 8 or a float (2) of 16 or 32, of one lane",
                      (unsigned)tensor->code, (unsigned)tensor->bits, (unsigned)tensor->lanes);
}

typedef struct gpsti_dlpack_axis {
    int64_t size, stride; /* 1 and 0 where the tensor has no such axis */
    int index;
} gpsti_dlpack_axis;

typedef struct gpsti_dlpack_axes {
    gpsti_dlpack_axis image, row, pixel, channel;
} gpsti_dlpack_axes;

GPSTI_PRIVATE gpst_result gpsti_dlpack_read_axes(const gpsti_dlpack_tensor* tensor, gpst_layout order, int64_t unit,
                                                 gpsti_dlpack_axes* axes) {
    gpsti_dlpack_axis all[GPSTI_DLPACK_MAX_AXES];
    const gpsti_dlpack_axis none = {1, 0, -1};
    const int n = (int)tensor->n_axes;
    int64_t dense = 1;
    GPSTI_FAIL_IF(n < 2 || n > GPSTI_DLPACK_MAX_AXES, GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT ": ndim=%d: must be 2..4", n);
    GPSTI_FAIL_IF(!tensor->shape, GPST_ERROR_ARGUMENT, GPSTI_DLPACK_IMPORT ": shape=NULL: required");
    for (int k = n - 1; k >= 0; k--) {
        all[k].index = k;
        all[k].size = tensor->shape[k];
        GPSTI_FAIL_IF(all[k].size < 1 || all[k].size > UINT32_MAX, GPST_ERROR_ARGUMENT,
                      GPSTI_DLPACK_IMPORT ": shape[%d]=%lld: must be 1..%u", k, (long long)all[k].size,
                      (unsigned)UINT32_MAX);
        all[k].stride = tensor->strides ? tensor->strides[k] : dense;
        GPSTI_FAIL_IF(
            all[k].stride > INT64_MAX / all[k].size / unit || all[k].stride < -(INT64_MAX / all[k].size / unit),
            GPST_ERROR_OVERFLOW, GPSTI_DLPACK_IMPORT ": strides[%d]=%lld, shape[%d]=%lld: do not fit in memory", k,
            (long long)all[k].stride, k, (long long)all[k].size);
        if (!tensor->strides)
            dense *= all[k].size;
    }
    const int first = n == 4 ? 1 : 0, planes = n > 2 && order == GPST_LAYOUT_CHW ? 1 : 0;
    axes->image = n == 4 ? all[0] : none;
    axes->row = all[first + planes];
    axes->pixel = all[first + planes + 1];
    axes->channel = n == 2 ? none : planes ? all[first] : all[first + 2];
    return GPST_OK;
}

/* An axis of one has any stride. */
GPSTI_PRIVATE bool gpsti_dlpack_steps(const gpsti_dlpack_axis* axis, int64_t stride) {
    return axis->size == 1 || axis->stride == stride;
}

/* Where pixels have their channels together, or each channel is a plane: the values from one row to the next. */
GPSTI_PRIVATE bool gpsti_dlpack_interleaves(const gpsti_dlpack_axes* axes, int64_t* row) {
    if (!gpsti_dlpack_steps(&axes->channel, 1) || !gpsti_dlpack_steps(&axes->pixel, axes->channel.size))
        return false;
    *row = axes->row.size > 1 ? axes->row.stride : axes->pixel.size * axes->channel.size;
    return true;
}

GPSTI_PRIVATE bool gpsti_dlpack_has_planes(const gpsti_dlpack_axes* axes, int64_t* row) {
    *row = axes->row.size > 1 ? axes->row.stride : axes->channel.size > 1 ? axes->channel.stride : axes->pixel.size;
    return gpsti_dlpack_steps(&axes->pixel, 1) && gpsti_dlpack_steps(&axes->channel, axes->row.size * *row);
}

GPSTI_PRIVATE gpst_result gpsti_dlpack_fail_strides(const gpsti_dlpack_axes* axes) {
    const gpsti_dlpack_axis *pixel = &axes->pixel, *channel = &axes->channel;
    GPSTI_FAIL_IF(!gpsti_dlpack_steps(pixel, 1) && !gpsti_dlpack_steps(pixel, channel->size), GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT
                  ": strides[%d]=%lld: from one pixel to the next: must be 1, or the %lld channels: "
                  "rows may have gaps, pixels none",
                  pixel->index, (long long)pixel->stride, (long long)channel->size);
    return gpsti_fail(GPST_ERROR_ARGUMENT,
                      GPSTI_DLPACK_IMPORT
                      ": strides[%d]=%lld: from one channel to the next: must be 1 with pixels %lld "
                      "apart, or a plane of %lld rows %lld apart with pixels 1 apart",
                      channel->index, (long long)channel->stride, (long long)channel->size, (long long)axes->row.size,
                      (long long)axes->row.stride);
}

/* Layout and pitch: as the caller has the axes, or else as the memory has them. */
GPSTI_PRIVATE gpst_result gpsti_dlpack_read_strides(const gpsti_dlpack_axes* axes, gpst_layout order, int64_t unit,
                                                    gpst_dlpack_view* view) {
    int64_t interleaved = 0, planar = 0;
    const bool interleaves = gpsti_dlpack_interleaves(axes, &interleaved);
    const bool has_planes = gpsti_dlpack_has_planes(axes, &planar);
    if (!interleaves && !has_planes)
        return gpsti_dlpack_fail_strides(axes);
    const bool planes = has_planes && (order == GPST_LAYOUT_CHW || !interleaves);
    const int64_t row = planes ? planar : interleaved, least = axes->pixel.size * (planes ? 1 : axes->channel.size);
    const gpsti_dlpack_axis* const axis = axes->row.size > 1 ? &axes->row : &axes->channel;
    GPSTI_FAIL_IF((row < 0 ? -row : row) < least, GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT
                  ": strides[%d]=%lld: from one row to the next: must be at least the %lld values of a "
                  "row, up or down",
                  axis->index, (long long)axis->stride, (long long)least);
    GPSTI_FAIL_IF(axes->image.size > 1 && axes->image.stride == 0, GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT ": strides[0]=0: from one picture to the next: must not be 0");
    view->image.layout = planes ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    view->image.pitch_bytes = row * unit;
    if (axes->image.index < 0)
        return GPST_OK;
    view->n_images = (uint32_t)axes->image.size;
    view->image_step_bytes = axes->image.stride * unit;
    if (axes->image.size == 1) /* nobody goes that far */
        view->image_step_bytes = (row < 0 ? -row : row) * axes->row.size * (planes ? axes->channel.size : 1) * unit;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_dlpack_read_image(const gpsti_dlpack_tensor* tensor, gpst_layout order,
                                                  gpst_dlpack_view* view) {
    gpst_image* const image = &view->image;
    gpsti_dlpack_axes axes;
    GPSTI_TRY(gpsti_dlpack_read_type(tensor, image));
    const int64_t unit = gpst_dtype_bytes(image->dtype);
    GPSTI_TRY(gpsti_dlpack_read_axes(tensor, order, unit, &axes));
    GPSTI_TRY(gpsti_dlpack_read_strides(&axes, order, unit, view));
    image->width = (uint32_t)axes.pixel.size;
    image->height = (uint32_t)axes.row.size;
    image->n_channels = (uint32_t)axes.channel.size;
    image->format = image->n_channels == 1   ? GPST_FORMAT_GRAY
                    : image->n_channels == 3 ? GPST_FORMAT_RGB
                    : image->n_channels == 4 ? GPST_FORMAT_RGBA
                                             : GPST_FORMAT_TENSOR;
    GPSTI_FAIL_IF(!tensor->data, GPST_ERROR_ARGUMENT, GPSTI_DLPACK_IMPORT ": data=NULL: required");
    GPSTI_FAIL_IF(tensor->byte_offset > UINTPTR_MAX - (uintptr_t)tensor->data, GPST_ERROR_OVERFLOW,
                  GPSTI_DLPACK_IMPORT ": byte_offset=%llu: does not fit in memory",
                  (unsigned long long)tensor->byte_offset);
    image->data = (void*)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
    return gpsti_image_check(image, GPSTI_DLPACK_IMPORT, "tensor");
}

GPST_API gpst_result gpst_dlpack_import(void* managed, gpst_dlpack_kind kind, gpst_layout axes,
                                        const gpst_device* device, gpst_dlpack_view* out) {
    gpsti_dlpack_tensor tensor;
    gpst_dlpack_view view;
    if (out)
        memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!managed, GPST_ERROR_ARGUMENT, GPSTI_DLPACK_IMPORT ": managed=NULL: must be a managed tensor");
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, GPSTI_DLPACK_IMPORT ": out=NULL: must point to a gpst_dlpack_view");
    GPSTI_TRY(gpsti_dlpack_check_kind(kind, GPSTI_DLPACK_IMPORT));
    GPSTI_FAIL_IF((int)axes < 0 || axes > GPST_LAYOUT_CHW, GPST_ERROR_ARGUMENT,
                  GPSTI_DLPACK_IMPORT ": axes=%d: must be HWC or CHW", (int)axes);
    if (device)
        GPSTI_TRY(gpsti_device_check(device, GPSTI_DLPACK_IMPORT));
    memset(&tensor, 0, sizeof tensor);
    memset(&view, 0, sizeof view);
    GPSTI_TRY(gpsti_dlpack_read(managed, kind, &tensor, &view));
    GPSTI_TRY(gpsti_dlpack_read_device(&tensor, device, &view));
    GPSTI_TRY(gpsti_dlpack_read_image(&tensor, axes, &view));
    if (view.on_device)
        GPSTI_TRY(gpsti_device_check_memory(device, view.image.data, GPSTI_DLPACK_IMPORT));
    *out = view;
    return GPST_OK;
}
