/* core/pipeline/input.c -- an input is right for its pipeline, or the sentence says what is not; and the strings that
   its item keeps of it. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

GPSTI_INTERN gpst_result gpsti_input_check(const gpst_pipeline* pipeline, const gpst_input* input,
                                           const char* function) {
    const bool reads = pipeline->steps[0].kind == GPSTI_STEP_READ;
    size_t ignored = 0;
    GPSTI_FAIL_IF(input->camera >= GPST_MAX_CAMERAS, GPST_ERROR_ARGUMENT,
                  "%s: input.camera=%u: must be below GPST_MAX_CAMERAS=%d", function, input->camera, GPST_MAX_CAMERAS);
    GPSTI_FAIL_IF(!input->path && reads, GPST_ERROR_ARGUMENT,
                  "%s: input.path=NULL: required when the first stage is READ", function);
    GPSTI_FAIL_IF(!input->frame.data && pipeline->frame_reader, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.data=NULL: required: stage \"%s\" reads set 0, which no stage before it writes",
                  function, pipeline->frame_reader);
    GPSTI_FAIL_IF(input->frame_on_device && (!input->frame.data || !input->release), GPST_ERROR_ARGUMENT,
                  "%s: input.frame_on_device: frame and release are required", function);
    GPSTI_FAIL_IF(input->frame_on_device && input->frame.pitch_bytes < 0, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.pitch_bytes=%lld: must not be negative with frame_on_device", function,
                  (long long)input->frame.pitch_bytes);
    GPSTI_FAIL_IF(input->release && !input->frame.data, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.data=NULL: required with release", function);
    if (input->frame.data)
        GPSTI_TRY(gpsti_image_extent(&input->frame, function, "input.frame", &ignored));
    if (input->frame_on_device)
        GPSTI_TRY(gpsti_device_check_memory(&pipeline->context->public_device, input->frame.data, function));
    GPSTI_FAIL_IF(input->frame.data && pipeline->sets[0].writer < pipeline->desc.n_stages, GPST_ERROR_ARGUMENT,
                  "%s: input.frame: set 0 is written by stage \"%s\"", function,
                  pipeline->stages[pipeline->sets[0].writer].name);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_slot_load_names(gpsti_slot* slot, const gpst_input* input) {
    const char* const path = input->path ? input->path : "";
    const char* const name = input->name && input->name[0] ? input->name : path;
    const size_t path_bytes = strlen(path) + 1, name_bytes = strlen(name) + 1;
    gpst_result result = GPST_OK;
    slot->item.timestamp_ns = input->timestamp_ns;
    slot->item.user_data = input->user_data;
    slot->item.camera = input->camera < GPST_MAX_CAMERAS ? input->camera : 0;
    slot->item.priority = input->priority;
    if (name[0])
        result = gpsti_slot_reserve_text(slot->pipeline, &slot->text, &slot->text_capacity, path_bytes + name_bytes);
    if (!name[0] || GPST_FAILED(result)) {
        gpsti_format(slot->numbered, sizeof slot->numbered, "item %llu", (unsigned long long)slot->item.index);
        slot->item.name = slot->numbered;
        return result;
    }
    memcpy(slot->text, path, path_bytes);
    memcpy(slot->text + path_bytes, name, name_bytes);
    slot->item.path = input->path ? slot->text : NULL;
    slot->item.name = slot->text + path_bytes;
    return GPST_OK;
}
