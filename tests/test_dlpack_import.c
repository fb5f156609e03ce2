/* tests/test_dlpack_import.c -- tensors of other libraries as pictures: which strides are some, and what is refused by
   which sentence. */
#include "test_dlpack.h"

/* ---- tensors of others ---------------------------------------------------------------------------- */

typedef struct strides_case {
    int n_axes;
    gpst_layout axes;
    int64_t shape[4], strides[4];
    gpst_layout layout;
    int64_t pitch_bytes; /* of bytes */
    const char* refused; /* NULL: it is taken */
} strides_case;

static const strides_case strides_cases[] = {
    {3, HWC, {4, 5, 3, 0}, {15, 3, 1, 0}, HWC, 15, NULL},
    {3, HWC, {4, 5, 3, 0}, {20, 3, 1, 0}, HWC, 20, NULL},
    {3, HWC, {4, 5, 3, 0}, {-20, 3, 1, 0}, HWC, -20, NULL},
    {3, HWC, {4, 5, 3, 0}, {5, 1, 20, 0}, CHW, 5, NULL}, /* planes whose axes were put into another order */
    {3, CHW, {3, 4, 5, 0}, {20, 5, 1, 0}, CHW, 5, NULL},
    {3, CHW, {3, 4, 5, 0}, {24, 6, 1, 0}, CHW, 6, NULL},
    {3, CHW, {3, 4, 5, 0}, {-24, -6, 1, 0}, CHW, -6, NULL},
    {3, CHW, {3, 4, 5, 0}, {1, 15, 3, 0}, HWC, 15, NULL}, /* PyTorch's channels_last */
    {3, CHW, {3, 1, 5, 0}, {8, 99, 1, 0}, CHW, 8, NULL},
    {3, CHW, {1, 4, 5, 0}, {99, 7, 1, 0}, CHW, 7, NULL},
    {3, HWC, {4, 5, 1, 0}, {7, 1, 99, 0}, HWC, 7, NULL},
    {3, HWC, {4, 1, 3, 0}, {9, 99, 1, 0}, HWC, 9, NULL},
    {3, HWC, {1, 5, 3, 0}, {99, 3, 1, 0}, HWC, 15, NULL},
    {2, HWC, {4, 5, 0, 0}, {6, 1, 0, 0}, HWC, 6, NULL},
    {2, CHW, {4, 5, 0, 0}, {-6, 1, 0, 0}, CHW, -6, NULL},
    {4, HWC, {2, 4, 5, 3}, {60, 15, 3, 1}, HWC, 15, NULL},
    {4, CHW, {2, 3, 4, 5}, {80, 20, 5, 1}, CHW, 5, NULL},
    {4, HWC, {1, 4, 5, 3}, {0, 15, 3, 1}, HWC, 15, NULL},
    {4, HWC, {2, 4, 5, 3}, {15, 30, 3, 1}, HWC, 30, NULL}, /* side by side */
    {3, HWC, {4, 5, 3, 0}, {20, 4, 1, 0}, HWC, 0, "strides[1]=4: from one pixel to the next: must be 1, or the 3"},
    {3, HWC, {4, 5, 3, 0}, {15, -3, 1, 0}, HWC, 0, "strides[1]=-3: from one pixel to the next"},
    {3, HWC, {4, 5, 3, 0}, {15, 3, -1, 0}, HWC, 0, "strides[2]=-1: from one channel to the next"},
    {3, HWC, {4, 5, 3, 0}, {15, 3, 2, 0}, HWC, 0, "strides[2]=2: from one channel to the next"},
    {3, HWC, {4, 5, 3, 0}, {14, 3, 1, 0}, HWC, 0, "strides[0]=14: from one row to the next: must be at least the 15"},
    {3, HWC, {4, 5, 3, 0}, {0, 3, 1, 0}, HWC, 0, "strides[0]=0: from one row to the next"},
    {3,
     CHW,
     {3, 4, 5, 0},
     {21, 5, 1, 0},
     HWC,
     0,
     "strides[0]=21: from one channel to the next: must be 1 with pixels 3"},
    {3, CHW, {3, 4, 5, 0}, {20, 5, 2, 0}, HWC, 0, "strides[2]=2: from one pixel to the next"},
    {3, CHW, {3, 4, 5, 0}, {16, 4, 1, 0}, HWC, 0, "strides[1]=4: from one row to the next"},
    {3, CHW, {3, 1, 5, 0}, {4, 0, 1, 0}, HWC, 0, "strides[0]=4: from one row to the next"},
    {2, HWC, {4, 5, 0, 0}, {1, 4, 0, 0}, HWC, 0, "strides[1]=4: from one pixel to the next"},
    {4, HWC, {2, 4, 5, 3}, {0, 15, 3, 1}, HWC, 0, "strides[0]=0: from one picture to the next"},
    {1, HWC, {4, 0, 0, 0}, {1, 0, 0, 0}, HWC, 0, "ndim=1: must be 2..4"},
    {3, HWC, {4, 0, 3, 0}, {1, 1, 1, 0}, HWC, 0, "shape[1]=0: must be 1..4294967295"},
    {3, HWC, {-4, 5, 3, 0}, {1, 1, 1, 0}, HWC, 0, "shape[0]=-4: must be 1"},
    {2, HWC, {4, 4294967296, 0, 0}, {1, 1, 0, 0}, HWC, 0, "shape[1]=4294967296: must be 1"},
};

static void strides_of_others(void** state) {
    (void)state;
    for (size_t k = 0; k < sizeof strides_cases / sizeof *strides_cases; k++) {
        const strides_case* const c = &strides_cases[k];
        foreign other;
        gpst_dlpack_view view;
        dl_managed* const managed = foreign_make(&other, pixels + 1024, c->n_axes, c->shape, c->strides);
        const gpst_result result = gpst_dlpack_import(managed, GPST_DLPACK_VERSIONED, c->axes, NULL, &view);
        if (c->refused) {
            refused(result, GPST_ERROR_ARGUMENT, "gpst_dlpack_import: ", c->refused);
            assert_null(view.release);
            assert_int_equal(gpsti_a32_load(&other.n_deleted), 0);
            continue;
        }
        if (result != GPST_OK)
            fail_msg("case %d: %s", (int)k, gpst_last_reason());
        const int first = c->n_axes == 4;
        assert_int_equal(view.image.layout, c->layout);
        assert_int_equal(view.image.pitch_bytes, c->pitch_bytes);
        assert_int_equal(view.image.height, c->shape[first + (c->axes == CHW && c->n_axes > 2)]);
        assert_int_equal(view.n_images, first ? c->shape[0] : 0);
        if (first && c->shape[0] > 1)
            assert_int_equal(view.image_step_bytes, c->strides[0]);
        else if (first)
            assert_int_equal(view.image_step_bytes, 60);
        view.release(view.release_user_data);
        assert_int_equal(gpsti_a32_load(&other.n_deleted), 1);
    }
}

/* Huge numbers: none is computed with before it was checked. */
static void strides_that_overflow(void** state) {
    static const int64_t huge[] = {4000000000, 4000000000, 3}, few[] = {2, 3, 3}, rows[] = {2, 4000000000, 4000000000};
    static const int64_t strides[3][3] = {{INT64_MAX / 2 + 1, 3, 1}, {INT64_MIN, 3, 1}, {3, INT64_MAX, 1}};
    foreign other;
    gpst_dlpack_view view;
    (void)state;
    foreign_make(&other, pixels, 3, huge, NULL); /* 2^63 and more: rows without gaps that nobody has */
    refused(import_of(&other, NULL, &view), GPST_ERROR_OVERFLOW, "gpst_dlpack_import: ", "fit in memory");
    foreign_make(&other, pixels, 3, rows, NULL);
    refused(import_of(&other, NULL, &view), GPST_ERROR_OVERFLOW, "gpst_dlpack_import: ", "fit in memory");
    for (int k = 0; k < 3; k++) {
        foreign_make(&other, pixels, 3, few, strides[k]);
        refused(import_of(&other, NULL, &view), GPST_ERROR_OVERFLOW, "gpst_dlpack_import: strides[", "fit in memory");
    }
    foreign_make(&other, pixels, 3, few, NULL);
    other.managed.tensor.byte_offset = UINT64_MAX;
    refused(import_of(&other, NULL, &view), GPST_ERROR_OVERFLOW, "gpst_dlpack_import: byte_offset=", "fit in memory");
}

static void refused_tensors(void** state) {
    static const int64_t shape[] = {4, 5, 3};
    static const uint16_t types[][3] = {{6, 8, 1},  {2, 64, 1}, {4, 16, 1}, {1, 32, 1},
                                        {0, 16, 1}, {1, 8, 3},  {2, 8, 1}};
    foreign other;
    gpst_dlpack_view view;
    (void)state;
    dl_managed* const managed = foreign_make(&other, pixels, 3, shape, NULL);
    refused(gpst_dlpack_import(NULL, GPST_DLPACK_VERSIONED, HWC, NULL, &view), GPST_ERROR_ARGUMENT, "managed=NULL", "");
    refused(gpst_dlpack_import(managed, GPST_DLPACK_VERSIONED, HWC, NULL, NULL), GPST_ERROR_ARGUMENT, "out=NULL", "");
    refused(gpst_dlpack_import(managed, (gpst_dlpack_kind)9, HWC, NULL, &view), GPST_ERROR_ARGUMENT, "kind=9", "");
    refused(gpst_dlpack_import(managed, GPST_DLPACK_DEFAULT, (gpst_layout)3, NULL, &view), GPST_ERROR_ARGUMENT,
            "axes=3: must be HWC or CHW", "");
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        managed->tensor.code = (uint8_t)types[k][0], managed->tensor.bits = (uint8_t)types[k][1];
        managed->tensor.lanes = types[k][2];
        refused(import_of(&other, NULL, &view), GPST_ERROR_ARGUMENT, "dtype: code=", "of one lane");
    }
    foreign_make(&other, pixels, 3, shape, NULL);
    managed->major = 2, managed->tensor.shape = NULL; /* nothing behind the flags is looked at */
    refused(import_of(&other, NULL, &view), GPST_ERROR_VERSION, "gpst_dlpack_import: version=2.0: must be 1.x", "");
    managed->major = 1, managed->minor = 99;
    refused(import_of(&other, NULL, &view), GPST_ERROR_ARGUMENT, "shape=NULL", "");
    foreign_make(&other, NULL, 3, shape, NULL);
    refused(import_of(&other, NULL, &view), GPST_ERROR_ARGUMENT, "data=NULL", "");
    foreign_make(&other, (char*)pixels + 1, 3, shape, NULL);
    managed->tensor.code = 2, managed->tensor.bits = 32;
    refused(import_of(&other, NULL, &view), GPST_ERROR_ARGUMENT, "tensor.data=", "must be a multiple of the 4 bytes");
    managed->tensor.byte_offset = 3; /* together they are aligned */
    assert_int_equal(import_of(&other, NULL, &view), GPST_OK);
    assert_ptr_equal(view.image.data, pixels + 1);
    foreign_make(&other, pixels, 5, (const int64_t[]){1, 1, 1, 1, 1}, NULL);
    refused(import_of(&other, NULL, &view), GPST_ERROR_ARGUMENT, "ndim=5: must be 2..4", "");
}

static void flags_and_deleters(void** state) {
    static const int64_t shape[] = {4, 5, 2};
    foreign other;
    gpst_dlpack_view view;
    dl_legacy legacy;
    (void)state;
    dl_managed* const managed = foreign_make(&other, pixels, 3, shape, NULL);
    managed->flags = 3 | 1 << 9;
    assert_int_equal(import_of(&other, NULL, &view), GPST_OK);
    assert_true(view.read_only && view.copied);
    assert_int_equal(view.image.format, GPST_FORMAT_TENSOR);
    assert_int_equal(view.image.n_channels, 2);
    gpst_dlpack_release(GPST_DLPACK_DEFAULT, managed);
    assert_int_equal(gpsti_a32_load(&other.n_deleted), 1);
    gpst_dlpack_release((gpst_dlpack_kind)7, managed);
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, NULL);
    gpst_dlpack_release(GPST_DLPACK_LEGACY, NULL);
    managed->deleter = NULL; /* there need not be one */
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, managed);
    assert_int_equal(gpsti_a32_load(&other.n_deleted), 1);
    legacy.tensor = managed->tensor;
    legacy.manager_ctx = &other.n_deleted;
    legacy.deleter = count_deleted_legacy;
    assert_int_equal(gpst_dlpack_import(&legacy, GPST_DLPACK_LEGACY, HWC, NULL, &view), GPST_OK);
    assert_true(!view.read_only && !view.copied);
    view.release(view.release_user_data);
    assert_int_equal(gpsti_a32_load(&other.n_deleted), 2);
    legacy.deleter = NULL;
    gpst_dlpack_release(GPST_DLPACK_LEGACY, &legacy);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(strides_of_others), cmocka_unit_test(strides_that_overflow),
                                       cmocka_unit_test(refused_tensors), cmocka_unit_test(flags_and_deleters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
