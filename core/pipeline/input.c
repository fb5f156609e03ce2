/* core/pipeline/input.c -- an input is right for its pipeline, or the sentence says what is not; and the strings that
   its item keeps of it. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

GPSTI_INTERN gpst_result gpsti_input_check(const gpst_pipeline* pipeline, const gpst_input* input,
                                           const char* function) {
    const bool reads = pipeline->plan.steps[0].kind == GPSTI_STEP_READ;
    size_t ignored = 0;
    GPSTI_FAIL_IF(input->camera >= GPST_MAX_CAMERAS, GPST_ERROR_ARGUMENT,
                  "%s: input.camera=%u: must be below GPST_MAX_CAMERAS=%d", function, input->camera, GPST_MAX_CAMERAS);
    GPSTI_FAIL_IF(!input->path && reads, GPST_ERROR_ARGUMENT,
                  "%s: input.path=NULL: required when the first stage is READ", function);
    GPSTI_FAIL_IF(!input->frame.data && pipeline->plan.frame_reader, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.data=NULL: required: stage \"%s\" reads set 0, which no stage before it writes",
                  function, pipeline->plan.frame_reader);
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
    GPSTI_FAIL_IF(input->frame.data && pipeline->plan.sets[0].writer < pipeline->plan.desc.n_stages,
                  GPST_ERROR_ARGUMENT, "%s: input.frame: set 0 is written by stage \"%s\"", function,
                  pipeline->plan.stages[pipeline->plan.sets[0].writer].name);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_item_load_names(gpsti_item* item, const gpst_input* input) {
    const char* const path = input->path ? input->path : "";
    const char* const name = input->name && input->name[0] ? input->name : path;
    const size_t path_bytes = strlen(path) + 1, name_bytes = strlen(name) + 1;
    gpst_result result = GPST_OK;
    item->shown.timestamp_ns = input->timestamp_ns;
    item->shown.user_data = input->user_data;
    item->shown.camera = input->camera < GPST_MAX_CAMERAS ? input->camera : 0;
    item->shown.priority = input->priority;
    if (name[0])
        result = gpsti_item_reserve_text(item->pipeline, &item->text, &item->text_capacity, path_bytes + name_bytes);
    if (!name[0] || GPST_FAILED(result)) {
        gpsti_format(item->numbered, sizeof item->numbered, "item %llu", (unsigned long long)item->shown.index);
        item->shown.name = item->numbered;
        return result;
    }
    memcpy(item->text, path, path_bytes);
    memcpy(item->text + path_bytes, name, name_bytes);
    item->shown.path = input->path ? item->text : NULL;
    item->shown.name = item->text + path_bytes;
    return GPST_OK;
}
