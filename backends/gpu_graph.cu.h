/* backends/gpu_graph.cu.h -- graphs of CUDA and HIP: captured from a stream, made, given new addresses, launched. */
#include "gpu_stream.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* Thread-local: other threads may allocate and page-lock meanwhile; what this one must not do during a capture fails
   it, with the vendor's reason. */
GPSTI_PRIVATE gpst_result gpsti_gpu_graph_begin(gpsti_stream* stream) {
    GPSTI_TRY(gpsti_gpu_check_not_recording(stream, GPSTI_GPU_CALL("graph_begin")));
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_GRAPH, GPSTI_GPU_CALL("graph_begin")));
    GPSTI_GPU_IN_CONTEXT(stream->device, "graph_begin");
    GPSTI_GPU_TRY(stream->device,
                  GPSTI_RT(StreamBeginCapture)(gpsti_gpu_native(stream), GPSTI_RT(StreamCaptureModeThreadLocal)),
                  "graph_begin");
    ((gpsti_gpu_stream*)stream)->recording = true;
    return GPST_OK;
}

/* HIP does not say that a graph may go while it runs: there an event of its latest launch is waited for. CUDA frees it
   when it has run. */
#if defined(GPSTI_HIP)
GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_graph_make_event(gpsti_gpu_graph* graph) {
    return GPSTI_RT(EventCreateWithFlags)(&graph->done, GPSTI_RT(EventBlockingSync) | GPSTI_RT(EventDisableTiming));
}

GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_graph_launched(gpsti_gpu_graph* graph, gpsti_rt_stream stream) {
    return GPSTI_RT(EventRecord)(graph->done, stream);
}

GPSTI_PRIVATE void gpsti_gpu_graph_wait(gpsti_gpu_graph* graph) {
    if (!graph->done)
        return;
    gpsti_gpu_ignore(graph->base.device, gpsti_gpu_wait(graph->done));
    gpsti_gpu_ignore(graph->base.device, GPSTI_RT(EventDestroy)(graph->done));
}
#else
GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_graph_make_event(gpsti_gpu_graph* graph) {
    (void)graph;
    return GPSTI_RT(Success);
}

GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_graph_launched(gpsti_gpu_graph* graph, gpsti_rt_stream stream) {
    (void)graph, (void)stream;
    return GPSTI_RT(Success);
}

GPSTI_PRIVATE void gpsti_gpu_graph_wait(gpsti_gpu_graph* graph) { (void)graph; }
#endif

GPSTI_PRIVATE void gpsti_gpu_graph_destroy(gpsti_graph* base) {
    gpsti_gpu_graph* graph = (gpsti_gpu_graph*)base;
    if (!graph)
        return;
    const gpsti_gpu_current current(base->device);
    if (!current.gone())
        gpsti_gpu_graph_wait(graph);
    if (graph->native && !current.gone())
        gpsti_gpu_ignore(base->device, GPSTI_RT(GraphExecDestroy)(graph->native));
    gpsti_free(base->device->host, graph, sizeof(*graph));
}

/* Free memory of the device, by all processes; 0 where the vendor does not say. */
GPSTI_PRIVATE size_t gpsti_gpu_free_bytes(gpsti_device* device) {
    size_t free_bytes = 0, total_bytes = 0;
    gpsti_gpu_ignore(device, GPSTI_RT(MemGetInfo)(&free_bytes, &total_bytes));
    return free_bytes;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_graph_make(gpsti_device* device, GPSTI_RT(Graph_t) captured, gpsti_graph** out) {
    gpsti_gpu_graph* graph = (gpsti_gpu_graph*)gpsti_alloc(device->host, sizeof(gpsti_gpu_graph));
    if (!graph)
        return GPST_ERROR_MEMORY;
    graph->base.device = device;
    const size_t before = gpsti_gpu_free_bytes(device);
    gpsti_rt_error error = GPSTI_RT(GraphInstantiateWithFlags)(&graph->native, captured, 0);
    if (error == GPSTI_RT(Success))
        error = gpsti_gpu_graph_make_event(graph);
    if (error != GPSTI_RT(Success)) {
        gpsti_gpu_graph_destroy(&graph->base);
        return gpsti_gpu_result(device, error, GPSTI_GPU_CALL("graph_end"));
    }
    const size_t after = gpsti_gpu_free_bytes(device);
    graph->base.device_bytes = before > after ? before - after : 0;
    *out = &graph->base;
    return GPST_OK;
}

/* True: the graph does what was captured from now on. HIP's form of the call differs between versions: there a graph is
   made anew. */
GPSTI_PRIVATE bool gpsti_gpu_graph_update(gpsti_graph* base, GPSTI_RT(Graph_t) captured) {
#if defined(GPSTI_HIP) || CUDART_VERSION < 12000
    (void)base, (void)captured;
    return false;
#else
    GPSTI_RT(GraphExecUpdateResultInfo) info;
    const gpsti_rt_error error = GPSTI_RT(GraphExecUpdate)(((gpsti_gpu_graph*)base)->native, captured, &info);
    gpsti_gpu_ignore(base->device, error);
    return error == GPSTI_RT(Success);
#endif
}

GPSTI_PRIVATE gpst_result gpsti_gpu_graph_put(gpsti_device* device, GPSTI_RT(Graph_t) captured, gpsti_graph** graph) {
    if (*graph && gpsti_gpu_graph_update(*graph, captured))
        return GPST_OK;
    gpsti_gpu_graph_destroy(*graph);
    *graph = NULL;
    return gpsti_gpu_graph_make(device, captured, graph);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_graph_end(gpsti_stream* base, gpsti_graph** graph) {
    gpsti_gpu_stream* stream = (gpsti_gpu_stream*)base;
    GPSTI_RT(Graph_t) captured = NULL;
    gpst_result result = GPST_OK;
    const gpsti_gpu_current current(base->device);
    if (!stream->recording)
        result = gpsti_fail(GPST_ERROR_STATE, "%s: the stream is not recording a graph", GPSTI_GPU_CALL("graph_end"));
    else if (current.gone())
        result = gpsti_gpu_check_current(&current, GPSTI_GPU_CALL("graph_end"));
    else
        result = gpsti_gpu_result(base->device, GPSTI_RT(StreamEndCapture)(stream->native, &captured),
                                  GPSTI_GPU_CALL("graph_end"));
    stream->recording = false;
    if (!GPST_FAILED(result))
        result = gpsti_gpu_enter(base->device, GPSTI_FAULT_GRAPH, GPSTI_GPU_CALL("graph_end"));
    if (!GPST_FAILED(result)) {
        result = gpsti_gpu_graph_put(base->device, captured, graph);
    } else {
        gpsti_gpu_graph_destroy(*graph);
        *graph = NULL;
    }
    if (captured)
        gpsti_gpu_ignore(base->device, GPSTI_RT(GraphDestroy)(captured));
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_graph_launch(gpsti_graph* base, gpsti_stream* stream) {
    gpsti_gpu_graph* graph = (gpsti_gpu_graph*)base;
    GPSTI_TRY(gpsti_gpu_check_not_recording(stream, GPSTI_GPU_CALL("graph_launch")));
    gpsti_gpu_count_launch((gpsti_gpu_device*)stream->device);
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_LAUNCH, GPSTI_GPU_CALL("graph_launch")));
    GPSTI_GPU_IN_CONTEXT(stream->device, "graph_launch");
    GPSTI_GPU_TRY(stream->device, GPSTI_RT(GraphLaunch)(graph->native, gpsti_gpu_native(stream)), "graph_launch");
    GPSTI_GPU_TRY(stream->device, gpsti_gpu_graph_launched(graph, gpsti_gpu_native(stream)), "graph_launch");
    return GPST_OK;
}

#endif
