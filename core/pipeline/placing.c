/* core/pipeline/placing.c -- what decoding keeps on an item of the file's metadata: pixels where they belong, how the
   panorama was turned, sentences for the user. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <stdarg.h>
#include <string.h>

GPSTI_PRIVATE gpsti_slot* gpsti_placing_slot(const gpst_task* task) { return (gpsti_slot*)(uintptr_t)task->item; }

GPSTI_INTERN gpst_result gpsti_task_check(const gpst_task* task, const char* function, const void* pointer,
                                          const char* member) {
    GPSTI_FAIL_IF(!task || !task->item, GPST_ERROR_ARGUMENT, "%s: task=NULL: required", function);
    GPSTI_FAIL_IF(!pointer, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function, member);
    return GPST_OK;
}

GPST_API gpst_result gpst_task_set_pose(gpst_task* task, const gpst_view* pose) {
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_set_pose", pose, "pose"));
    gpsti_slot* const slot = gpsti_placing_slot(task);
    const double angles[3] = {pose->yaw, pose->pitch, pose->roll};
    for (int i = 0; i < 3; i++)
        GPSTI_FAIL_IF(!(angles[i] >= -1e6 && angles[i] <= 1e6), GPST_ERROR_ARGUMENT,
                      "gpst_task_set_pose: pose: %g degrees: must be within +-1e6", angles[i]);
    slot->pose = *pose;
    slot->posed = true;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_slot_begin_notes(gpsti_slot* slot) {
    slot->posed = slot->given.posed;
    slot->pose = slot->given.pose;
    memcpy(slot->note, slot->given.note, sizeof slot->note);
    slot->item.note = slot->note;
}

GPSTI_INTERN void gpsti_slot_load_notes(gpsti_slot* slot, const gpst_input* input) {
    const gpst_view none = GPST_ZERO;
    slot->given.posed = input->pose != NULL;
    slot->given.pose = input->pose ? *input->pose : none;
    gpsti_copy_text(slot->given.note, sizeof slot->given.note, input->note ? input->note : "");
    gpsti_slot_begin_notes(slot);
}

/* What is there already is not said twice: a file may be decoded again. "" is always there. */
GPSTI_INTERN void gpsti_slot_note(gpsti_slot* slot, const char* text) {
    const size_t used = strlen(slot->note);
    if (!strstr(slot->note, text))
        gpsti_format(slot->note + used, sizeof slot->note - used, "%s%s", used > 0 ? "; " : "", text);
}

GPSTI_INTERN const gpst_metadata* gpsti_slot_metadata(gpsti_slot* slot) {
    gpst_item* const item = &slot->item;
    if (!item->metadata) {
        memset(&slot->metadata, 0, sizeof slot->metadata);
        if (item->file_data)
            (void)gpst_metadata_read(item->file_data, item->file_bytes, &slot->metadata);
        item->metadata = &slot->metadata;
    }
    return item->metadata;
}

GPST_API const gpst_metadata* gpst_task_metadata(gpst_task* task) {
    return gpsti_slot_metadata(gpsti_placing_slot(task));
}

GPST_API void gpst_task_set_decoder(gpst_task* task, const char* name) {
    if (!GPST_FAILED(gpsti_task_check(task, "gpst_task_set_decoder", name, "name")))
        gpsti_placing_slot(task)->item.decoder = name;
}

GPST_API void gpst_task_note(gpst_task* task, const char* format, ...) {
    char text[GPSTI_NOTE_BYTES];
    va_list arguments;
    if (GPST_FAILED(gpsti_task_check(task, "gpst_task_note", format, "format")))
        return;
    va_start(arguments, format);
    gpsti_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    gpsti_slot_note(gpsti_placing_slot(task), text);
}

GPSTI_INTERN void gpsti_slot_placed(gpsti_slot* slot, const gpst_placement* placement) {
    slot->pose = placement->pose;
    slot->posed = placement->has_pose;
    gpsti_slot_note(slot, placement->note);
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
    gpsti_slot_placed(gpsti_placing_slot(task), &placing->placement);
    return orientation != 1 ? gpst_image_orient(&placing->stored, orientation, &placing->window) : GPST_OK;
}
