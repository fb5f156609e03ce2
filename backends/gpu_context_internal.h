/* backends/gpu_context_internal.h -- the context that a device of CUDA works in: the application's own or the device's
   primary one; made current for a call, and what was current put back. HIP has one context a device: there it is the
   device that is made current. Empty but for the unit of nvcc or hipcc. */
#ifndef GPSTI_GPU_CONTEXT_INTERNAL_H
#define GPSTI_GPU_CONTEXT_INTERNAL_H

#include "gpu_runtime_internal.h"

#if defined(GPSTI_GPU_UNIT)

#if defined(GPSTI_HIP)

typedef struct gpsti_gpu_context {
    int ordinal;
} gpsti_gpu_context;

GPSTI_PRIVATE gpst_result gpsti_gpu_context_open(gpsti_gpu_context* self, int asked, const char* function) {
    (void)function;
    self->ordinal = asked < 0 ? 0 : asked;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_gpu_context_close(gpsti_gpu_context* self) { (void)self; }

GPSTI_PRIVATE const char* gpsti_gpu_context_text(const gpsti_gpu_context* self) {
    (void)self;
    return "";
}

GPSTI_PRIVATE const char* gpsti_gpu_context_lost_text(const gpsti_gpu_context* self) {
    (void)self;
    return NULL;
}

GPSTI_PRIVATE bool gpsti_gpu_context_has_stream(const gpsti_gpu_context* self, gpsti_rt_stream stream) {
    (void)self;
    (void)stream;
    return true;
}

GPSTI_PRIVATE bool gpsti_gpu_context_is_foreign(const gpsti_gpu_context* self, const void* ptr) {
    (void)self;
    (void)ptr;
    return false;
}

GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_context_copy_peer(const gpsti_gpu_context* from, const void* src,
                                                         const gpsti_gpu_context* to, void* dst, size_t bytes,
                                                         gpsti_rt_stream stream) {
    return GPSTI_RT(MemcpyPeerAsync)(dst, to->ordinal, src, from->ordinal, bytes, stream);
}

/* What was current before, while another one is. */
typedef struct gpsti_gpu_before {
    int ordinal;
    bool changed;
} gpsti_gpu_before;

GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_context_enter(const gpsti_gpu_context* self, gpsti_gpu_before* before) {
    before->ordinal = 0;
    if (GPSTI_RT(GetDevice)(&before->ordinal) == GPSTI_RT(Success) && before->ordinal == self->ordinal)
        before->changed = false;
    else
        before->changed = GPSTI_RT(SetDevice)(self->ordinal) == GPSTI_RT(Success);
    return GPSTI_RT(Success);
}

GPSTI_PRIVATE void gpsti_gpu_context_leave(const gpsti_gpu_context* self, const gpsti_gpu_before* before) {
    (void)self;
    if (before->changed)
        (void)GPSTI_RT(SetDevice)(before->ordinal);
}

#else /* CUDA */

/* ---- the driver ---------------------------------------------------------------------------
   Its calls are asked of the runtime: nothing is linked but that. Each with the version in which it got the form that
   is declared here; one that an older driver lacks is NULL. */
#define GPSTI_GPU_DRIVER_CALLS(X)                                                                           \
    X(get_current, "cuCtxGetCurrent", 4000, (void** context))                                               \
    X(set_current, "cuCtxSetCurrent", 4000, (void* context))                                                \
    X(get_device, "cuCtxGetDevice", 2000, (int* ordinal))                                                   \
    X(get_version, "cuCtxGetApiVersion", 3020, (void* context, unsigned* version))                          \
    X(get_id, "cuCtxGetId", 12000, (void* context, unsigned long long* id))                                 \
    X(primary_state, "cuDevicePrimaryCtxGetState", 7000, (int ordinal, unsigned* flags, int* active))       \
    X(primary_retain, "cuDevicePrimaryCtxRetain", 7000, (void** context, int ordinal))                      \
    X(primary_release, "cuDevicePrimaryCtxRelease", 11000, (int ordinal))                                   \
    X(stream_context, "cuStreamGetCtx", 9020, (gpsti_rt_stream stream, void** context))                     \
    X(stream_contexts, "cuStreamGetCtx", 12050, (gpsti_rt_stream stream, void** context, void** green))     \
    X(pointer_attribute, "cuPointerGetAttribute", 4000, (void* out, int attribute, unsigned long long ptr)) \
    X(copy_peer, "cuMemcpyPeerAsync", 4000,                                                                 \
      (unsigned long long dst, void* dst_context, unsigned long long src, void* src_context, size_t bytes,  \
       gpsti_rt_stream stream))

#define GPSTI_GPU_DRIVER_MEMBER(member, name, version, arguments) int(GPSTI_RT_CALLBACK * member) arguments;
typedef struct gpsti_gpu_driver {
    GPSTI_GPU_DRIVER_CALLS(GPSTI_GPU_DRIVER_MEMBER)
} gpsti_gpu_driver;
#undef GPSTI_GPU_DRIVER_MEMBER

GPSTI_PRIVATE void* gpsti_gpu_driver_find(const char* name, unsigned version) {
    void* found = NULL;
#if CUDART_VERSION >= 12050
    const gpsti_rt_error error = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault);
#else /* what it was in the runtime's own version */
    const gpsti_rt_error error =
        version > CUDART_VERSION ? cudaErrorInvalidValue : cudaGetDriverEntryPoint(name, &found, cudaEnableDefault);
#endif
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error == cudaSuccess ? found : NULL;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_driver_open(gpsti_gpu_driver* self, const char* function) {
#define GPSTI_GPU_DRIVER_FIND(member, name, version, arguments) \
    self->member = (int(GPSTI_RT_CALLBACK*) arguments)gpsti_gpu_driver_find(name, version);
    GPSTI_GPU_DRIVER_CALLS(GPSTI_GPU_DRIVER_FIND)
#undef GPSTI_GPU_DRIVER_FIND
    GPSTI_FAIL_IF(!self->get_current || !self->set_current || !self->get_device || !self->get_version ||
                      !self->primary_state || !self->primary_retain || !self->primary_release ||
                      !self->stream_context || !self->pointer_attribute || !self->copy_peer,
                  GPST_ERROR_NO_BACKEND, "%s: the driver lacks a call for contexts: one for CUDA 11 or later is needed",
                  function);
    return GPST_OK;
}

/* ---- open and close ------------------------------------------------------------------------- */

typedef struct gpsti_gpu_context {
    gpsti_gpu_driver driver;
    void* handle;          /* CUcontext */
    unsigned long long id; /* no two contexts of a process have one, unlike the handle; 0: this driver has none */
    bool borrowed;         /* the application's, which may destroy it */
    int ordinal;
} gpsti_gpu_context;

GPSTI_PRIVATE bool gpsti_gpu_driver_is_primary(const gpsti_gpu_driver* driver, int ordinal, const void* context) {
    unsigned flags = 0;
    int active = 0;
    void* primary = NULL;
    if (driver->primary_state(ordinal, &flags, &active) != 0 || !active)
        return false;
    if (driver->primary_retain(&primary, ordinal) != 0)
        return false;
    (void)driver->primary_release(ordinal);
    return primary == context;
}

/* asked: the device's number; -1: whichever the application works on. The context that is current on this thread, where
   it is one of that device that the application has made; else the primary one, held until close. */
GPSTI_PRIVATE gpst_result gpsti_gpu_context_open(gpsti_gpu_context* self, int asked, const char* function) {
    gpsti_gpu_driver* const driver = &self->driver;
    void* current = NULL;
    int ordinal = -1;
    self->ordinal = asked < 0 ? 0 : asked;
    GPSTI_TRY(gpsti_gpu_driver_open(driver, function));
    if (driver->get_current(&current) == 0 && current && driver->get_device(&ordinal) == 0 &&
        (asked < 0 || asked == ordinal) && !gpsti_gpu_driver_is_primary(driver, ordinal, current)) {
        self->ordinal = ordinal;
        self->handle = current;
        self->borrowed = true;
        if (driver->get_id && driver->get_id(current, &self->id) != 0)
            self->id = 0;
        return GPST_OK;
    }
    const int error = driver->primary_retain(&self->handle, self->ordinal);
    if (error != 0)
        self->handle = NULL;
    return gpsti_rt_check((gpsti_rt_error)error, function);
}

GPSTI_PRIVATE void gpsti_gpu_context_close(gpsti_gpu_context* self) {
    if (self->handle && !self->borrowed)
        (void)self->driver.primary_release(self->ordinal);
    self->handle = NULL;
}

GPSTI_PRIVATE const char* gpsti_gpu_context_text(const gpsti_gpu_context* self) {
    return self->borrowed ? "in the application's context, which was current" : "in its primary context";
}

GPSTI_PRIVATE const char* gpsti_gpu_context_lost_text(const gpsti_gpu_context* self) {
    return self->borrowed ? "the application has destroyed the context that the device works in" : NULL;
}

/* ---- current ---------------------------------------------------------------------------------- */

typedef struct gpsti_gpu_before {
    void* context;
    bool changed;
} gpsti_gpu_before;

/* A destroyed context stays current where it was, and another one may get its address. */
GPSTI_PRIVATE bool gpsti_gpu_context_is_there(const gpsti_gpu_context* self) {
    unsigned version = 0;
    unsigned long long id = 0;
    return self->driver.get_version(self->handle, &version) == 0 &&
           (self->id == 0 || (self->driver.get_id(self->handle, &id) == 0 && id == self->id));
}

GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_context_enter(const gpsti_gpu_context* self, gpsti_gpu_before* before) {
    enum { INVALID_CONTEXT = 201 };
    before->context = NULL;
    before->changed = false;
    if (self->borrowed && !gpsti_gpu_context_is_there(self))
        return cudaErrorContextIsDestroyed;
    (void)self->driver.get_current(&before->context);
    if (before->context == self->handle)
        return cudaSuccess;
    const int error = self->driver.set_current(self->handle);
    before->changed = error == 0;
    return error == INVALID_CONTEXT && self->borrowed ? cudaErrorContextIsDestroyed : (gpsti_rt_error)error;
}

/* A thread of ours has nobody who would miss that nothing was current: the next call finds the context there. */
GPSTI_PRIVATE void gpsti_gpu_context_leave(const gpsti_gpu_context* self, const gpsti_gpu_before* before) {
    if (before->changed && (before->context || !gpsti_thread_is_own()) &&
        self->driver.set_current(before->context) != 0)
        (void)self->driver.set_current(NULL); /* it was destroyed */
}

/* ---- what is of another one --------------------------------------------------------------------- */

/* While ours is current, which is that of the default streams. A green context's stream is of the primary one, too. */
GPSTI_PRIVATE bool gpsti_gpu_context_has_stream(const gpsti_gpu_context* self, gpsti_rt_stream stream) {
    void *context = NULL, *around = NULL, *green = NULL;
    if (self->driver.stream_context(stream, &context) != 0)
        return true; /* whoever uses it will say what is wrong with it */
    return context == self->handle ||
           (self->driver.stream_contexts && self->driver.stream_contexts(stream, &around, &green) == 0 &&
            around == self->handle);
}

/* Memory of a device, made in another context, that is not managed and so everybody's. Of pools none is told. */
GPSTI_PRIVATE bool gpsti_gpu_context_is_foreign(const gpsti_gpu_context* self, const void* ptr) {
    enum { CONTEXT = 1, MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE = 2 };
    const unsigned long long address = (unsigned long long)(uintptr_t)ptr;
    void* context = NULL;
    unsigned type = 0, managed = 0;
    if (self->driver.pointer_attribute(&context, CONTEXT, address) != 0 || !context || context == self->handle)
        return false;
    return self->driver.pointer_attribute(&type, MEMORY_TYPE, address) == 0 && type == DEVICE &&
           self->driver.pointer_attribute(&managed, IS_MANAGED, address) == 0 && !managed;
}

/* The runtime's call knows primary contexts only. */
GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_context_copy_peer(const gpsti_gpu_context* from, const void* src,
                                                         const gpsti_gpu_context* to, void* dst, size_t bytes,
                                                         gpsti_rt_stream stream) {
    return (gpsti_rt_error)from->driver.copy_peer((unsigned long long)(uintptr_t)dst, to->handle,
                                                  (unsigned long long)(uintptr_t)src, from->handle, bytes, stream);
}

#endif
#endif
#endif
