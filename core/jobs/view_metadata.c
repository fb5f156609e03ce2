/* core/jobs/view_metadata.c -- what the JPEG files of a job say of their views: a small EXIF block and the input's ICC
   profile. */
#include "../base/platform_internal.h"

#include "../pictures/metadata_internal.h"
#include "jobs_internal.h"

GPST_API gpst_result gpst_view_exif(const gpst_warp* warp, uint32_t view, const gpst_item* item, void* out,
                                    size_t* bytes) {
    gpst_metadata read;
    gpst_exif_desc desc = GPST_ZERO;
    gpst_image shape;
    double camera[4] = {0, 0, 0, 0};
    GPSTI_FAIL_IF(!item, GPST_ERROR_ARGUMENT, "gpst_view_exif: item=NULL: required");
    desc.from = item->metadata;
    if (!desc.from) {
        GPSTI_TRY(gpst_metadata_read(item->file_data, item->file_bytes, &read));
        desc.from = &read;
    }
    GPSTI_TRY(gpst_warp_query_camera(warp, view, camera));
    gpst_warp_query_output(warp, &shape);
    desc.width = shape.width;
    desc.height = shape.height;
    desc.focal_px = camera[0];
    desc.focal_y_px = camera[1];
    return gpst_exif_make(&desc, out, bytes);
}

/* Views are RGB: another profile would be wrong of them, and is none. */
GPSTI_PRIVATE gpst_result gpsti_files_job_icc(const gpsti_files_job* self, const gpst_item* item, void* out,
                                              size_t* bytes) {
    const gpst_job_hooks* const hooks = self->desc.hooks;
    size_t found = 0;
    GPSTI_TRY(gpst_metadata_read_icc(item->file_data, item->file_bytes, NULL, &found));
    if (found > 0 && gpsti_metadata_icc_fits(item->file_data, item->file_bytes))
        return gpst_metadata_read_icc(item->file_data, item->file_bytes, out, bytes);
    if (found == 0 && hooks->icc)
        return hooks->icc(hooks->user_data, item, out, bytes);
    *bytes = 0;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_files_job_segments(void* user_data, const gpst_item* item, uint32_t view, void* out,
                                                  size_t* bytes) {
    const gpsti_files_job* const self = (const gpsti_files_job*)user_data;
    uint8_t exif[GPST_EXIF_MOST_BYTES];
    uint8_t* icc = NULL;
    size_t exif_bytes = sizeof exif, icc_bytes = 0;
    GPSTI_TRY(gpst_view_exif(self->desc.warp, view, item, exif, &exif_bytes));
    GPSTI_TRY(gpsti_files_job_icc(self, item, NULL, &icc_bytes));
    if (out && icc_bytes > 0 && icc_bytes < *bytes) {
        icc = (uint8_t*)out + (*bytes - icc_bytes);
        GPSTI_TRY(gpsti_files_job_icc(self, item, icc, &icc_bytes));
    }
    return gpst_metadata_segments(exif, exif_bytes, icc, icc_bytes, out, bytes);
}
