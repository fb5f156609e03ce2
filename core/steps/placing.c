/* core/steps/placing.c -- what decoding keeps on an item of the file's metadata: pixels where they belong, how the
   panorama was turned, sentences for the user. */
#include "../base/platform_internal.h"

#include "call_internal.h"

#include <stdarg.h>
#include <string.h>

GPSTI_PRIVATE gpsti_item* gpsti_placing_item(const gpst_task* task) { return (gpsti_item*)(uintptr_t)task->item; }

GPSTI_INTERN gpst_result gpsti_task_check(const gpst_task* task, const char* function, const void* pointer,
                                          const char* member) {
    GPSTI_FAIL_IF(!task || !task->item, GPST_ERROR_ARGUMENT, "%s: task=NULL: required", function);
    GPSTI_FAIL_IF(!pointer, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function, member);
    return GPST_OK;
}

GPST_API gpst_result gpst_task_set_pose(gpst_task* task, const gpst_view* pose) {
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_set_pose", pose, "pose"));
    gpsti_item* const item = gpsti_placing_item(task);
    const double angles[3] = {pose->yaw, pose->pitch, pose->roll};
    for (int i = 0; i < 3; i++)
        GPSTI_FAIL_IF(!(angles[i] >= -1e6 && angles[i] <= 1e6), GPST_ERROR_ARGUMENT,
                      "gpst_task_set_pose: pose: %g degrees: must be within +-1e6", angles[i]);
    item->pose = *pose;
    item->posed = true;
    return GPST_OK;
}

GPSTI_INTERN const gpst_metadata* gpsti_item_metadata(gpsti_item* item) {
    gpst_item* const shown = &item->shown;
    if (!shown->metadata) {
        memset(&item->metadata, 0, sizeof item->metadata);
        if (shown->file_data)
            (void)gpst_metadata_read(shown->file_data, shown->file_bytes, &item->metadata);
        shown->metadata = &item->metadata;
    }
    return shown->metadata;
}

GPST_API const gpst_metadata* gpst_task_metadata(gpst_task* task) {
    static const gpst_metadata none = GPST_ZERO;
    if (GPST_FAILED(gpsti_task_check(task, "gpst_task_metadata", task, "task")))
        return &none;
    return gpsti_item_metadata(gpsti_placing_item(task));
}

GPST_API void gpst_task_set_decoder(gpst_task* task, const char* name) {
    if (!GPST_FAILED(gpsti_task_check(task, "gpst_task_set_decoder", name, "name")))
        gpsti_placing_item(task)->shown.decoder = name;
}

GPST_API void gpst_task_note(gpst_task* task, const char* format, ...) {
    char text[GPSTI_NOTE_BYTES];
    va_list arguments;
    if (GPST_FAILED(gpsti_task_check(task, "gpst_task_note", format, "format")))
        return;
    va_start(arguments, format);
    gpsti_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    gpsti_item_note(gpsti_placing_item(task), text);
}

GPST_API gpst_result gpst_task_begin_placing(gpst_task* task, uint32_t set, const gpst_placement* placement,
                                             const gpst_image* shape, gpst_placing* placing) {
    const char* const function = "gpst_task_begin_placing";
    size_t bytes = 0;
    if (placing)
        memset(placing, 0, sizeof *placing);
    GPSTI_TRY(gpsti_task_check(task, function, placing, "placing"));
    GPSTI_TRY(gpsti_task_check(task, function, placement, "placement"));
    GPSTI_TRY(gpsti_task_check(task, function, shape, "shape"));
    gpst_image picture = *shape;
    picture.width = placement->width;
    picture.height = placement->height;
    GPSTI_TRY(gpst_task_set_picture(task, set, 0, &picture, &picture));
    placing->placement = *placement;
    gpst_placement_window(placement, &picture, &placing->window);
    placing->stored = placing->window;
    if (placement->orientation == 1)
        return GPST_OK;
    placing->stored = *shape;
    placing->stored.pitch_bytes = (int64_t)gpst_image_row_bytes(shape);
    GPSTI_TRY(gpst_image_bytes(&placing->stored, &bytes));
    return gpst_task_encoded(task, bytes, &placing->stored.data);
}

GPST_API gpst_result gpst_task_end_placing(gpst_task* task, const gpst_placing* placing) {
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_end_placing", placing, "placing"));
    const uint32_t orientation = placing->placement.orientation;
    gpsti_item_placed(gpsti_placing_item(task), &placing->placement);
    return orientation != 1 ? gpst_image_orient(&placing->stored, orientation, &placing->window) : GPST_OK;
}
