/* core/items/callback.c -- in which pipelines' callbacks a thread is: there some calls are refused, and none waits. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

static GPSTI_TLS gpsti_call* gpsti_calls = NULL;

GPSTI_INTERN void gpsti_call_enter(gpsti_call* call, gpst_pipeline* pipeline, const gpsti_item* item) {
    call->pipeline = pipeline;
    call->item = item;
    call->outer = gpsti_calls;
    gpsti_calls = call;
}

GPSTI_INTERN void gpsti_call_leave(void) { gpsti_calls = gpsti_calls->outer; }

GPSTI_INTERN bool gpsti_call_inside(const gpst_pipeline* pipeline) {
    for (const gpsti_call* call = gpsti_calls; call; call = call->outer)
        if (call->pipeline == pipeline)
            return true;
    return false;
}

GPSTI_INTERN bool gpsti_call_inside_any(const gpst_context* context) {
    for (const gpsti_call* call = gpsti_calls; call; call = call->outer)
        if (call->pipeline->context == context)
            return true;
    return false;
}

GPSTI_INTERN uint64_t gpsti_call_age(const gpst_context* context) {
    const gpsti_call* call = gpsti_calls;
    while (call && (!call->item || call->pipeline->context != context))
        call = call->outer;
    return call ? call->item->age : 0;
}

GPSTI_INTERN void gpsti_call_release(gpst_pipeline* pipeline, void (*release)(void* user_data), void* user_data) {
    gpsti_call call;
    gpsti_call_enter(&call, pipeline, NULL);
    release(user_data);
    gpsti_call_leave();
}
