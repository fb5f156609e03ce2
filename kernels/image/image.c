/* kernels/image/image.c -- sizes, rules and extent of an image. Touches no pixel. */
#include "../../core/base/platform_internal.h"

#include "../warp/warp_internal.h"

#include <string.h>

GPST_API uint32_t gpst_format_channels(gpst_format format) {
    switch (format) {
    case GPST_FORMAT_GRAY:
        return 1;
    case GPST_FORMAT_RGB:
    case GPST_FORMAT_BGR:
    case GPST_FORMAT_NV12:
    case GPST_FORMAT_I420:
    case GPST_FORMAT_JPEG_444:
    case GPST_FORMAT_JPEG_422:
    case GPST_FORMAT_JPEG_420:
    case GPST_FORMAT_JPEG_440:
        return 3;
    case GPST_FORMAT_RGBA:
    case GPST_FORMAT_BGRA:
        return 4;
    default:
        return 0;
    }
}

GPST_API uint32_t gpst_dtype_bytes(gpst_dtype dtype) {
    switch (dtype) {
    case GPST_DTYPE_DEFAULT:
    case GPST_DTYPE_U8:
    case GPST_DTYPE_I8:
        return 1;
    case GPST_DTYPE_F16:
    case GPST_DTYPE_U16:
        return 2;
    case GPST_DTYPE_F32:
        return 4;
    default:
        return 0;
    }
}

GPSTI_INTERN bool gpsti_image_is_jpeg(gpst_format format) {
    return format == GPST_FORMAT_JPEG_444 || format == GPST_FORMAT_JPEG_422 || format == GPST_FORMAT_JPEG_420 ||
           format == GPST_FORMAT_JPEG_440;
}

GPSTI_INTERN bool gpsti_image_is_yuv(gpst_format format) {
    return format == GPST_FORMAT_NV12 || format == GPST_FORMAT_I420 || gpsti_image_is_jpeg(format);
}

/* Pixels of a sample of chroma on an axis. */
GPSTI_PRIVATE uint32_t gpsti_image_across(gpst_format format) {
    return format == GPST_FORMAT_JPEG_444 || format == GPST_FORMAT_JPEG_440 ? 1 : 2;
}

GPSTI_PRIVATE uint32_t gpsti_image_down(gpst_format format) {
    return format == GPST_FORMAT_JPEG_444 || format == GPST_FORMAT_JPEG_422 ? 1 : 2;
}

GPSTI_INTERN uint32_t gpsti_image_channels(const gpst_image* image) {
    return image->format == GPST_FORMAT_TENSOR ? image->n_channels : gpst_format_channels(image->format);
}

GPST_API size_t gpst_image_row_bytes(const gpst_image* image) {
    if (!image)
        return 0;
    const bool planar = image->layout == GPST_LAYOUT_CHW || gpsti_image_is_yuv(image->format);
    const uint32_t channels = planar ? 1 : gpsti_image_channels(image);
    const uint32_t unit = gpsti_image_is_jpeg(image->format) ? gpsti_image_across(image->format) : 1;
    size_t bytes = 0;
    if (gpsti_image_channels(image) == 0 || !gpsti_size_add(image->width, image->width % unit, &bytes) ||
        !gpsti_size_mul(bytes, channels, &bytes) ||
        !gpsti_size_mul(bytes, gpst_dtype_bytes(image->dtype), &bytes))
        return 0;
    return bytes;
}

/* Rows one pitch apart: planes follow each other without a seam. */
GPSTI_PRIVATE uint64_t gpsti_image_rows(const gpst_image* image) {
    return (uint64_t)image->height *
           (image->layout == GPST_LAYOUT_CHW ? gpsti_image_channels(image) : 1);
}

GPSTI_PRIVATE uint64_t gpsti_image_stride(const gpst_image* image) {
    return image->pitch_bytes < 0 ? 0 - (uint64_t)image->pitch_bytes : (uint64_t)image->pitch_bytes;
}

GPSTI_INTERN gpst_image gpsti_image_resolved(const gpst_image* image) {
    gpst_image resolved = *image;
    if (resolved.dtype == GPST_DTYPE_DEFAULT)
        resolved.dtype = GPST_DTYPE_U8;
    if (resolved.layout == GPST_LAYOUT_DEFAULT)
        resolved.layout = GPST_LAYOUT_HWC;
    if (resolved.pitch_bytes == 0)
        resolved.pitch_bytes = (int64_t)gpst_image_row_bytes(&resolved);
    return resolved;
}

/* What those with planes of chroma must be besides. */
GPSTI_PRIVATE gpst_result gpsti_image_check_yuv(const gpst_image* image, const char* function, const char* member) {
    const bool jpeg = gpsti_image_is_jpeg(image->format);
    const char* const formats = jpeg ? "JPEG's formats" : "NV12 and I420";
    const uint32_t across = jpeg ? gpsti_image_across(image->format) : 1;
    GPSTI_FAIL_IF(image->dtype != GPST_DTYPE_DEFAULT && image->dtype != GPST_DTYPE_U8, GPST_ERROR_ARGUMENT,
                  "%s: %s.dtype=%d: must be U8 with %s", function, member, (int)image->dtype, formats);
    GPSTI_FAIL_IF(image->layout == GPST_LAYOUT_CHW, GPST_ERROR_ARGUMENT, "%s: %s.layout=CHW: must be HWC with %s",
                  function, member, formats);
    GPSTI_FAIL_IF(image->pitch_bytes < 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.pitch_bytes=%lld: must not be negative with %s", function, member,
                  (long long)image->pitch_bytes, formats);
    GPSTI_FAIL_IF(image->pitch_bytes % across != 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.pitch_bytes=%lld: must be a multiple of the %u pixels of a sample of chroma", function,
                  member, (long long)image->pitch_bytes, (unsigned)across);
    return GPST_OK;
}

/* Everything but data. */
GPSTI_PRIVATE gpst_result gpsti_image_check_shape(const gpst_image* image, const char* function,
                                                  const char* member) {
    const bool is_tensor = image->format == GPST_FORMAT_TENSOR;
    GPSTI_FAIL_IF(!is_tensor && gpst_format_channels(image->format) == 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.format=%d: must be one of gpst_format", function, member, (int)image->format);
    GPSTI_FAIL_IF(is_tensor && image->n_channels == 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.n_channels=0: required with TENSOR", function, member);
    GPSTI_FAIL_IF(is_tensor && (image->dtype == GPST_DTYPE_DEFAULT || image->layout == GPST_LAYOUT_DEFAULT),
                  GPST_ERROR_ARGUMENT, "%s: %s.dtype=%d, layout=%d: both are required with TENSOR", function, member,
                  (int)image->dtype, (int)image->layout);
    GPSTI_FAIL_IF(!is_tensor && image->n_channels != 0 && image->n_channels != gpst_format_channels(image->format),
                  GPST_ERROR_ARGUMENT, "%s: %s.n_channels=%u: the format has %u", function, member,
                  (unsigned)image->n_channels, (unsigned)gpst_format_channels(image->format));
    GPSTI_FAIL_IF(gpst_dtype_bytes(image->dtype) == 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.dtype=%d: must be one of gpst_dtype", function, member, (int)image->dtype);
    GPSTI_FAIL_IF((int)image->layout < 0 || (int)image->layout > (int)GPST_LAYOUT_CHW, GPST_ERROR_ARGUMENT,
                  "%s: %s.layout=%d: must be HWC or CHW", function, member, (int)image->layout);
    GPSTI_FAIL_IF(image->width == 0 || image->height == 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.width=%u, height=%u: must be 1 or more", function, member, (unsigned)image->width,
                  (unsigned)image->height);
    if (gpsti_image_is_yuv(image->format))
        GPSTI_TRY(gpsti_image_check_yuv(image, function, member));
    const size_t row_bytes = gpst_image_row_bytes(image);
    GPSTI_FAIL_IF(row_bytes == 0, GPST_ERROR_OVERFLOW, "%s: %s.width=%u: a row does not fit in memory",
                  function, member, (unsigned)image->width);
    GPSTI_FAIL_IF(image->pitch_bytes != 0 && gpsti_image_stride(image) < row_bytes, GPST_ERROR_ARGUMENT,
                  "%s: %s.pitch_bytes=%lld: must be 0, or in size at least the %llu bytes of a row", function,
                  member, (long long)image->pitch_bytes, (unsigned long long)row_bytes);
    return GPST_OK;
}

GPSTI_INTERN gpsti_image_chroma gpsti_image_chroma_of(const gpst_image* image) {
    gpsti_image_chroma chroma;
    const bool pairs = image->format == GPST_FORMAT_NV12;
    const uint32_t across = gpsti_image_across(image->format), down = gpsti_image_down(image->format);
    const int64_t odd = image->pitch_bytes % across;
    chroma.across = across, chroma.down = down;
    chroma.width = image->width / across + image->width % across;
    chroma.height = image->height / down + image->height % down;
    chroma.luma_rows = gpsti_image_is_jpeg(image->format) ? (uint64_t)chroma.height * down : image->height;
    chroma.step = pairs ? 2 : 1;
    chroma.n_planes = pairs ? 1 : 2;
    chroma.pitch_bytes = pairs ? image->pitch_bytes + odd : image->pitch_bytes / across + odd;
    return chroma;
}

/* Y and the planes behind it. */
GPSTI_PRIVATE gpst_result gpsti_image_yuv_extent(const gpst_image* image, const char* function,
                                                 const char* member, size_t* out) {
    gpst_image shape = *image;
    if (image->pitch_bytes == INT64_MAX) /* too large below, and even here */
        shape.pitch_bytes--;
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(&shape);
    const size_t pitch = (size_t)image->pitch_bytes, chroma_pitch = (size_t)chroma.pitch_bytes;
    const uint64_t luma_rows = chroma.luma_rows, chroma_rows = (uint64_t)chroma.height * chroma.n_planes;
    size_t luma = 0, rows = 0, bytes = 0;
    const bool fits = (uint64_t)pitch == (uint64_t)image->pitch_bytes && (size_t)luma_rows == luma_rows &&
                      (size_t)chroma_rows == chroma_rows && gpsti_size_mul(pitch, (size_t)luma_rows, &luma) &&
                      gpsti_size_mul(chroma_pitch, (size_t)chroma_rows - 1, &rows) &&
                      gpsti_size_add(luma, rows, &bytes) &&
                      gpsti_size_add(bytes, (size_t)chroma.width * chroma.step, &bytes);
    GPSTI_FAIL_IF(!fits, GPST_ERROR_OVERFLOW,
                  "%s: %s: %u rows of %lld bytes and their chroma do not fit in memory", function, member,
                  (unsigned)image->height, (long long)image->pitch_bytes);
    *out = bytes;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_image_extent(const gpst_image* image, const char* function,
                                             const char* member, size_t* out) {
    GPSTI_TRY(gpsti_image_check_shape(image, function, member));
    const gpst_image resolved = gpsti_image_resolved(image);
    if (gpsti_image_is_yuv(image->format))
        return gpsti_image_yuv_extent(&resolved, function, member, out);
    const uint64_t rows = gpsti_image_rows(&resolved), stride = gpsti_image_stride(&resolved);
    size_t bytes = 0;
    const bool representable = (size_t)(rows - 1) == rows - 1 && (size_t)stride == stride;
    GPSTI_FAIL_IF(!representable || !gpsti_size_mul((size_t)(rows - 1), (size_t)stride, &bytes) ||
                      !gpsti_size_add(bytes, gpst_image_row_bytes(&resolved), &bytes),
                  GPST_ERROR_OVERFLOW, "%s: %s: %llu rows of %llu bytes do not fit in memory", function,
                  member, (unsigned long long)rows, (unsigned long long)stride);
    *out = bytes;
    return GPST_OK;
}

GPST_API gpst_result gpst_image_bytes(const gpst_image* image, size_t* out) {
    GPSTI_FAIL_IF(!image, GPST_ERROR_ARGUMENT, "gpst_image_bytes: image=NULL: required");
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_image_bytes: out=NULL: required");
    return gpsti_image_extent(image, "gpst_image_bytes", "image", out);
}

GPSTI_INTERN gpst_result gpsti_image_check(const gpst_image* image, const char* function,
                                           const char* member) {
    size_t bytes = 0;
    GPSTI_FAIL_IF(!image->data, GPST_ERROR_ARGUMENT, "%s: %s.data=NULL: required", function, member);
    GPSTI_TRY(gpsti_image_extent(image, function, member, &bytes));
    const uint32_t align = gpst_dtype_bytes(image->dtype);
    GPSTI_FAIL_IF((uintptr_t)image->data % align != 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.data=%p: must be a multiple of the %u bytes of its dtype", function, member,
                  image->data, (unsigned)align);
    GPSTI_FAIL_IF(image->pitch_bytes % (int64_t)align != 0, GPST_ERROR_ARGUMENT,
                  "%s: %s.pitch_bytes=%lld: must be a multiple of the %u bytes of its dtype", function,
                  member, (long long)image->pitch_bytes, (unsigned)align);
    return GPST_OK;
}

GPSTI_INTERN const uint8_t* gpsti_image_lowest(const gpst_image* image) {
    const uint8_t* data = (const uint8_t*)image->data;
    if (image->pitch_bytes >= 0)
        return data;
    return data - (size_t)((gpsti_image_rows(image) - 1) * gpsti_image_stride(image));
}

GPSTI_PRIVATE void gpsti_image_copy_rows(const uint8_t* from, int64_t from_pitch, uint8_t* to,
                                         int64_t to_pitch, size_t row_bytes, uint64_t rows) {
    for (uint64_t y = 0; y < rows; y++)
        memcpy(to + (ptrdiff_t)((int64_t)y * to_pitch), from + (ptrdiff_t)((int64_t)y * from_pitch),
               row_bytes);
}

GPSTI_INTERN void gpsti_image_copy(const gpst_image* from, const gpst_image* to) {
    const gpst_image a = gpsti_image_resolved(from), b = gpsti_image_resolved(to);
    const uint8_t* source = (const uint8_t*)a.data;
    uint8_t* target = (uint8_t*)b.data;
    if (!gpsti_image_is_yuv(a.format)) {
        gpsti_image_copy_rows(source, a.pitch_bytes, target, b.pitch_bytes, gpst_image_row_bytes(&a),
                              gpsti_image_rows(&a));
        return;
    }
    const gpsti_image_chroma chroma = gpsti_image_chroma_of(&a), there = gpsti_image_chroma_of(&b);
    const int64_t luma_rows = (int64_t)chroma.luma_rows;
    gpsti_image_copy_rows(source, a.pitch_bytes, target, b.pitch_bytes, gpst_image_row_bytes(&a), chroma.luma_rows);
    gpsti_image_copy_rows(source + (ptrdiff_t)(luma_rows * a.pitch_bytes), chroma.pitch_bytes,
                          target + (ptrdiff_t)(luma_rows * b.pitch_bytes), there.pitch_bytes,
                          (size_t)chroma.width * chroma.step, (uint64_t)chroma.height * chroma.n_planes);
}
