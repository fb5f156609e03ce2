/* tests/test_dlpack.h -- DLPack's structs as another library declares them, a tensor of its own, and pictures to make
   tensors of. */
#ifndef GPST_TEST_DLPACK_H
#define GPST_TEST_DLPACK_H

#include "test_device.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/dlpack.h"
#include "../core/pipeline/pipeline.h"
#endif

#define HWC GPST_LAYOUT_HWC
#define CHW GPST_LAYOUT_CHW

/* ---- as another library has them ------------------------------------------------------------- */

typedef struct dl_tensor {
    void* data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    uint32_t major, minor;
    void* manager_ctx;
    void (*deleter)(struct dl_managed* self);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed;

typedef struct dl_legacy {
    dl_tensor tensor;
    void* manager_ctx;
    void (*deleter)(struct dl_legacy* self);
} dl_legacy;

static inline void count_release(void* user_data) { (void)gpsti_a32_add((gpsti_a32*)user_data, 1); }
static inline void count_deleted(dl_managed* self) { count_release(self->manager_ctx); }
static inline void count_deleted_legacy(dl_legacy* self) { count_release(self->manager_ctx); }

/* A tensor of another library's, 8 bits of unsigned on the host, with all that a test changes of it. */
typedef struct foreign {
    dl_managed managed;
    int64_t shape[6], strides[6];
    gpsti_a32 n_deleted;
} foreign;

static inline dl_managed* foreign_make(foreign* self, void* data, int n_axes, const int64_t* shape,
                                       const int64_t* strides) {
    memset(self, 0, sizeof *self);
    for (int k = 0; k < n_axes; k++)
        self->shape[k] = shape[k], self->strides[k] = strides ? strides[k] : 0;
    self->managed.major = 1;
    self->managed.manager_ctx = &self->n_deleted;
    self->managed.deleter = count_deleted;
    self->managed.tensor.data = data;
    self->managed.tensor.device_type = 1;
    self->managed.tensor.ndim = n_axes;
    self->managed.tensor.code = 1;
    self->managed.tensor.bits = 8;
    self->managed.tensor.lanes = 1;
    self->managed.tensor.shape = self->shape;
    self->managed.tensor.strides = strides ? self->strides : NULL;
    return &self->managed;
}

static inline gpst_result import_of(foreign* other, const gpst_device* device, gpst_dlpack_view* view) {
    const gpst_result result = gpst_dlpack_import(&other->managed, GPST_DLPACK_VERSIONED, HWC, device, view);
    assert_int_equal(gpsti_a32_load(&other->n_deleted), 0);
    return result;
}

/* ---- images ------------------------------------------------------------------------------------- */

static float pixels[4096]; /* aligned for every dtype */

static inline gpst_image image_of(uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype,
                                  gpst_layout layout) {
    gpst_image image = GPST_ZERO;
    image.data = pixels;
    image.width = width;
    image.height = height;
    image.format = format;
    image.dtype = dtype;
    image.layout = layout;
    image.n_channels = format == GPST_FORMAT_TENSOR ? 5 : 0;
    return image;
}

static inline gpst_dlpack_desc desc_of(gpst_image image, gpsti_a32* n_released) {
    gpst_dlpack_desc desc = GPST_ZERO;
    desc.image = image;
    desc.release = n_released ? count_release : NULL;
    desc.release_user_data = n_released;
    return desc;
}

static inline dl_managed* exported(const gpst_dlpack_desc* desc) {
    void* managed = NULL;
    if (gpst_dlpack_export(desc, &managed) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return (dl_managed*)managed;
}

/* Of one axis of one value the stride is anything. */
static inline void expect_axes(const dl_tensor* tensor, int n, const int64_t* shape, const int64_t* strides) {
    assert_int_equal(tensor->ndim, n);
    assert_int_equal(tensor->byte_offset, 0);
    for (int k = 0; k < n; k++) {
        assert_int_equal(tensor->shape[k], shape[k]);
        if (shape[k] > 1)
            assert_int_equal(tensor->strides[k], strides[k]);
    }
}

static inline void refuse_export(gpst_dlpack_desc desc, gpst_result wanted, const char* sentence) {
    gpsti_a32 n_released;
    void* managed = &desc;
    gpsti_a32_store(&n_released, 0);
    desc.release = count_release;
    desc.release_user_data = &n_released;
    refused(gpst_dlpack_export(&desc, &managed), wanted, "gpst_dlpack_export: ", sentence);
    assert_null(managed);
    assert_int_equal(gpsti_a32_load(&n_released), 0);
}

#endif
