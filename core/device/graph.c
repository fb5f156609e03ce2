/* core/device/graph.c -- recordings of a stream, and graphs made of them. The list is core/device/commands.c's, what
   a device makes of it the backend's. */
#include "../base/platform_internal.h"

#include "graph_internal.h"

#include <string.h>

struct gpst_graph {
    gpst_device* device;
    gpsti_commands commands;
    gpsti_graph* graph; /* NULL: the device refused, for the reason */
    gpsti_a64 n_launches;
    char reason[160];
};

/* ---- what graphs and their cache share ---------------------------------------------- */

/* A device that computes on the host, later, may still read the lists of the latest recording. */
GPST_API gpst_result gpst_graph_begin(gpst_stream* stream) {
    const char* function = "gpst_graph_begin";
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(stream->records, GPST_ERROR_STATE, "%s: the stream records a graph already", function);
    if (stream->commands.in_use)
        GPSTI_TRY(gpsti_device_result(gpsti_stream_wait_idle(stream), function));
    gpsti_commands_reset(&stream->commands);
    stream->records = true;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_graph_stop(gpst_stream* stream, const char* function) {
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(!stream->records, GPST_ERROR_STATE,
                  "%s: the stream does not record: gpst_graph_begin comes first", function);
    stream->records = false;
    GPSTI_FAIL_IF(GPST_FAILED(stream->commands.result), stream->commands.result,
                  "%s: a recorded call has failed: %s", function, gpst_result_text(stream->commands.result));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_graph_capture(gpst_stream* stream, const gpsti_commands* commands, gpsti_graph** graph) {
    const gpsti_backend_i* const i = stream->device->device->i;
    char reason[GPSTI_REASON_BYTES];
    gpsti_graph* part = NULL;
    gpst_result result = i->graph_begin(stream->stream);
    if (!GPST_FAILED(result)) {
        result = gpsti_commands_put(commands, stream->stream, NULL);
        if (!GPST_FAILED(result))
            return i->graph_end(stream->stream, graph);
        gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
        (void)i->graph_end(stream->stream, &part);
        i->graph_destroy(part);
        result = gpsti_fail(result, "%s", reason);
    }
    i->graph_destroy(*graph);
    *graph = NULL;
    return result;
}

GPSTI_INTERN gpst_result gpsti_graph_put(gpst_stream* stream) {
    const gpst_device* const device = stream->device;
    stream->commands.in_use = device->info.asynchronous && !device->device->i->stream_native;
    return gpsti_commands_put(&stream->commands, stream->stream, &stream->commands.failed_tag);
}

GPSTI_INTERN gpst_result gpsti_graph_flush(gpst_stream* stream) {
    if (!stream->records)
        return GPST_OK;
    GPSTI_TRY(gpsti_graph_stop(stream, "recording"));
    return gpsti_graph_put(stream);
}

/* ---- graphs --------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_graph_free(gpst_graph* graph) {
    graph->device->device->i->graph_destroy(graph->graph);
    gpsti_commands_free(&graph->commands);
    gpsti_device_drop_object(graph->device, graph, sizeof *graph);
}

GPSTI_PRIVATE gpst_result gpsti_graph_make(gpst_stream* stream, gpst_graph** out) {
    gpst_graph* const graph = (gpst_graph*)gpsti_device_add_object(stream->device, sizeof *graph);
    if (!graph)
        return GPST_ERROR_MEMORY;
    graph->device = stream->device;
    gpst_result result = gpsti_commands_copy(&stream->commands, &graph->commands);
    if (!GPST_FAILED(result)) {
        result = gpsti_graph_capture(stream, &graph->commands, &graph->graph);
        if (GPST_FAILED(result) && result != GPST_ERROR_DEVICE_LOST) {
            gpsti_copy_text(graph->reason, sizeof graph->reason, gpst_last_reason());
            result = GPST_OK;
        }
    }
    if (GPST_FAILED(result)) {
        gpsti_graph_free(graph);
        return result;
    }
    *out = graph;
    return GPST_OK;
}

GPST_API gpst_result gpst_graph_end(gpst_stream* stream, gpst_graph** out) {
    const char* function = "gpst_graph_end";
    GPSTI_OUT_NONE(out);
    const bool records = stream && stream->records;
    const gpst_result stopped = gpsti_graph_stop(stream, function);
    if (!out && records && !stream->records)
        return GPST_OK;
    GPSTI_TRY(stopped);
    return gpsti_device_result(gpsti_graph_make(stream, out), function);
}

GPST_API gpst_result gpst_graph_launch(gpst_graph* graph, gpst_stream* stream) {
    const char* function = "gpst_graph_launch";
    GPSTI_FAIL_IF(!graph, GPST_ERROR_ARGUMENT, "%s: graph=NULL: must be a graph", function);
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(graph->device != stream->device, GPST_ERROR_ARGUMENT, "%s: stream: must be of the graph's device",
                  function);
    GPSTI_TRY(gpsti_stream_check_not_recording(stream, function));
    (void)gpsti_a64_add(&graph->n_launches, 1);
    return gpsti_device_result(graph->graph ? stream->device->device->i->graph_launch(graph->graph, stream->stream)
                                            : gpsti_commands_put(&graph->commands, stream->stream, NULL),
                               function);
}

GPST_API void gpst_graph_destroy(gpst_graph* graph) {
    if (graph && !gpsti_device_forked(graph->device))
        gpsti_graph_free(graph);
}

GPST_API void gpst_graph_query_info(const gpst_graph* graph, gpst_graph_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!graph)
        return;
    out->n_commands = graph->commands.n;
    out->host_bytes = graph->commands.capacity;
    out->device_bytes = graph->graph ? graph->graph->device_bytes : 0;
    out->n_launches = gpsti_a64_load(&graph->n_launches);
    gpsti_copy_text(out->reason, sizeof out->reason, graph->reason);
}
