/* tests/hip_on_nvidia.h -- lets HIP 5.2's headers for NVIDIA devices compile with CUDA 13: what CUDA has
   renamed, removed or given more arguments, as those headers know it. Included by force ahead of everything. */
#ifndef GPST_TEST_HIP_ON_NVIDIA_H
#define GPST_TEST_HIP_ON_NVIDIA_H

#include <cuda_runtime.h>
#include <cuda.h>
#if CUDART_VERSION >= 13000 && defined(__cplusplus)
struct old_properties : public cudaDeviceProp {
    int clockRate, computeMode, memoryClockRate, kernelExecTimeoutEnabled, cooperativeMultiDeviceLaunch, deviceOverlap,
        singleToDoublePrecisionPerfRatio, maxTexture1DLinear;
};
static inline cudaError_t old_get_properties(old_properties* p, int d) {
    cudaError_t e = cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(p), d);
    if (e)
        return e;
    cudaDeviceGetAttribute(&p->clockRate, cudaDevAttrClockRate, d);
    cudaDeviceGetAttribute(&p->memoryClockRate, cudaDevAttrMemoryClockRate, d);
    cudaDeviceGetAttribute(&p->computeMode, cudaDevAttrComputeMode, d);
    cudaDeviceGetAttribute(&p->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout, d);
    p->cooperativeMultiDeviceLaunch = 0;
    p->deviceOverlap = 1;
    p->singleToDoublePrecisionPerfRatio = 0;
    p->maxTexture1DLinear = 0;
    return e;
}
static inline cudaMemLocation new_location(int d) {
    cudaMemLocation l;
    l.type = d < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    l.id = d < 0 ? 0 : d;
    return l;
}
static inline cudaError_t old_advise(const void* p, size_t n, cudaMemoryAdvise a, int d) {
    return cudaMemAdvise(p, n, a, new_location(d));
}
static inline cudaError_t old_prefetch(const void* p, size_t n, int d, cudaStream_t s = 0) {
    return cudaMemPrefetchAsync(p, n, new_location(d), 0, s);
}
static inline CUresult old_context_create(CUcontext* c, unsigned f, CUdevice d) {
    return cuCtxCreate(c, (CUctxCreateParams*)0, f, d);
}
typedef const cudaGraphNode_t* node_list;
static inline cudaError_t old_add_dependencies(cudaGraph_t g, node_list a, node_list b, size_t n) {
    return cudaGraphAddDependencies(g, a, b, (const cudaGraphEdgeData*)0, n);
}
static inline cudaError_t old_remove_dependencies(cudaGraph_t g, node_list a, node_list b, size_t n) {
    return cudaGraphRemoveDependencies(g, a, b, (const cudaGraphEdgeData*)0, n);
}
static inline cudaError_t old_get_edges(cudaGraph_t g, cudaGraphNode_t* a, cudaGraphNode_t* b, size_t* n) {
    return cudaGraphGetEdges(g, a, b, (cudaGraphEdgeData*)0, n);
}
static inline cudaError_t old_get_dependencies(cudaGraphNode_t g, cudaGraphNode_t* a, size_t* n) {
    return cudaGraphNodeGetDependencies(g, a, (cudaGraphEdgeData*)0, n);
}
static inline cudaError_t old_get_dependents(cudaGraphNode_t g, cudaGraphNode_t* a, size_t* n) {
    return cudaGraphNodeGetDependentNodes(g, a, (cudaGraphEdgeData*)0, n);
}
static inline cudaError_t old_capture_info(cudaStream_t s, cudaStreamCaptureStatus* st, unsigned long long* id = 0,
                                           cudaGraph_t* g = 0, const cudaGraphNode_t** d = 0, size_t* n = 0) {
    return cudaStreamGetCaptureInfo(s, st, id, g, d, (const cudaGraphEdgeData**)0, n);
}
static inline cudaError_t old_update_capture(cudaStream_t s, cudaGraphNode_t* d, size_t n, unsigned f = 0) {
    return cudaStreamUpdateCaptureDependencies(s, d, (const cudaGraphEdgeData*)0, n, f);
}
template <class T, int D, enum cudaTextureReadMode M> struct texture {};
#define cudaDeviceProp old_properties
#define cudaGetDeviceProperties old_get_properties
#define cudaMemAdvise old_advise
#define cudaMemPrefetchAsync old_prefetch
#undef cuCtxCreate
#define cuCtxCreate old_context_create
#define cudaGraphAddDependencies old_add_dependencies
#define cudaGraphRemoveDependencies old_remove_dependencies
#define cudaGraphGetEdges old_get_edges
#define cudaGraphNodeGetDependencies old_get_dependencies
#define cudaGraphNodeGetDependentNodes old_get_dependents
#define cudaStreamGetCaptureInfo old_capture_info
#define cudaStreamGetCaptureInfo_v2 old_capture_info
#define cudaStreamUpdateCaptureDependencies old_update_capture
#define cudaDevAttrCooperativeMultiDeviceLaunch ((cudaDeviceAttr)96)
#define cudaLaunchCooperativeKernelMultiDevice(...) cudaErrorNotSupported
#define cudaBindTexture(...) cudaErrorNotSupported
#define cudaBindTexture2D(...) cudaErrorNotSupported
#define cudaUnbindTexture(...) cudaErrorNotSupported
#define cudaBindTextureToArray(...) cudaErrorNotSupported
#define cudaGetTextureAlignmentOffset(...) cudaErrorNotSupported
#endif

#endif
