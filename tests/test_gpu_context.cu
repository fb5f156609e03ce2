/* tests/test_gpu_context.cu -- a device of CUDA in whichever context the application works in: its primary one, one of
   the application's, none; what was current is current again behind every call; what is of another context is refused;
   and a context that is destroyed is the loss of the device, in words. Needs no library but the runtime, and no link to
   the driver; exits with 77 where no device answers.

   nvcc -O2 -x cu tests/test_gpu_context.cu -o test_gpu_context && ./test_gpu_context [--quick] */
#include "test_gpu.h"

#if defined(GPSTI_HIP)
int main(void) {
    (void)random_below(1);
    (void)stream;
    printf("HIP has one context a device\n");
    return 77;
}
#else

#include <pthread.h>

#define CHECK_OK(call) CHECK((call) == GPST_OK, "refused")
#define CHECK_CU(call) CHECK((call) == 0, "the driver failed")

/* ---- the driver, as an application has it ---------------------------------------------------- */

#define CALLS(X)                                                                  \
    X(create, "cuCtxCreate", 3020, (void** context, unsigned flags, int ordinal)) \
    X(destroy, "cuCtxDestroy", 4000, (void* context))                             \
    X(push, "cuCtxPushCurrent", 4000, (void* context))                            \
    X(pop, "cuCtxPopCurrent", 4000, (void** context))                             \
    X(get, "cuCtxGetCurrent", 4000, (void** context))                             \
    X(set, "cuCtxSetCurrent", 4000, (void* context))                              \
    X(retain, "cuDevicePrimaryCtxRetain", 7000, (void** context, int ordinal))    \
    X(attribute, "cuPointerGetAttribute", 4000, (void* out, int attribute, unsigned long long ptr))
#define MEMBER(member, name, version, arguments) int(CUDART_CB * member) arguments;
#define FIND(member, name, version, arguments) \
    cu.member = (int(CUDART_CB*) arguments)gpsti_gpu_driver_find(name, version);
static struct { CALLS(MEMBER) } cu;

static void* now_current(void) {
    void* context = NULL;
    CHECK_CU(cu.get(&context));
    return context;
}

static void* context_of(const void* ptr) {
    void* context = NULL;
    CHECK_CU(cu.attribute(&context, 1, (unsigned long long)(uintptr_t)ptr));
    return context;
}

static void* make_context(int ordinal) { /* it is current then */
    void* context = NULL;
    CHECK_CU(cu.create(&context, 0, ordinal));
    return context;
}

static void* primary_of(int ordinal) {
    void* context = NULL;
    CHECK_CU(cu.retain(&context, ordinal)); /* for as long as the program runs */
    return context;
}

/* ---- every call --------------------------------------------------------------------------------- */

enum { WIDTH = 96, HEIGHT = 48, SIDE = 32, BYTES = WIDTH * HEIGHT * 3 };

static void* seen_by_kernel; /* the context that was current where the launch was put on the stream */

static __global__ void invert(uint8_t* bytes, int n) {
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        bytes[i] = (uint8_t)(255 - bytes[i]);
}

typedef struct invert_args {
    uint8_t* bytes;
    int n;
} invert_args;

static gpst_result invert_gpu(const void* args, void* native_stream) {
    const invert_args a = *(const invert_args*)args;
    seen_by_kernel = now_current();
    invert<<<1, 128, 0, (cudaStream_t)native_stream>>>(a.bytes, a.n);
    return cudaGetLastError() == cudaSuccess ? GPST_OK : GPST_ERROR_DEVICE;
}

static const gpst_kernel invert_kernel = {"invert", NULL, invert_gpu};

static gpst_warp* make_warp(void) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_EQUIRECT;
    gpst_view view = GPST_ZERO;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = desc.height = SIDE;
    desc.format = GPST_FORMAT_RGB;
    CHECK_OK(gpst_warp_create(&desc, &warp));
    return warp;
}

static gpst_image frame_of(void* data) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = WIDTH;
    image.height = HEIGHT;
    image.format = GPST_FORMAT_RGB;
    return image;
}

static uint8_t frame[BYTES], wanted[SIDE * SIDE * 3], inverted[SIDE * SIDE * 3];

static void make_wanted(void) {
    gpst_warp* const warp = make_warp();
    const gpst_image source = frame_of(frame);
    gpst_image output;
    for (int i = 0; i < BYTES; i++)
        frame[i] = (uint8_t)random_below(256);
    gpst_warp_query_output(warp, &output);
    output.data = wanted;
    CHECK_OK(gpst_warp_run(warp, &source, &output, 1, 1));
    for (size_t i = 0; i < sizeof wanted; i++)
        inverted[i] = (uint8_t)(255 - wanted[i]);
    gpst_warp_destroy(warp);
}

/* Whatever was current before is so behind each call. */
#define STILL(call)                                                                         \
    do {                                                                                    \
        call;                                                                               \
        CHECK(now_current() == before, "%p is current, and not %p", now_current(), before); \
    } while (0)

static void try_all(gpst_device* device, void* context) {
    void* const before = now_current();
    uint8_t back[sizeof wanted];
    static uint8_t registered[1 << 16];
    gpst_memory *in = NULL, *out = NULL, *pinned = NULL, *locked = NULL;
    gpst_stream *stream_a = NULL, *stream_b = NULL, *usual = NULL;
    gpst_event *start = NULL, *end = NULL;
    gpst_device_info info;
    int64_t elapsed_ns = 0;
    gpst_warp* const warp = make_warp();
    STILL(gpst_device_query_info(device, &info));
    STILL(CHECK_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, BYTES, &in)));
    STILL(CHECK_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, sizeof wanted, &out)));
    STILL(CHECK_OK(gpst_memory_create(device, GPST_MEMORY_PINNED, BYTES, &pinned)));
    STILL(CHECK_OK(gpst_memory_register(device, registered, sizeof registered, &locked)));
    CHECK(context_of(gpst_memory_data(in)) == context, "memory of another context");
    STILL(CHECK_OK(gpst_stream_create(device, &stream_a)));
    STILL(CHECK_OK(gpst_stream_create(device, &stream_b)));
    STILL(CHECK_OK(gpst_stream_wrap(device, NULL, &usual)));
    STILL(CHECK_OK(gpst_event_create(device, &start)));
    STILL(CHECK_OK(gpst_event_create(device, &end)));
    memcpy(gpst_memory_data(pinned), frame, BYTES);
    STILL(CHECK_OK(gpst_event_record(start, stream_a)));
    STILL(CHECK_OK(gpst_copy_rows(gpst_memory_data(in), WIDTH * 3, gpst_memory_data(pinned), WIDTH * 3, WIDTH * 3,
                                  HEIGHT, stream_a)));
    STILL(CHECK_OK(gpst_event_record(end, stream_a)));
    STILL(CHECK_OK(gpst_stream_wait(stream_b, end)));
    STILL(CHECK_OK(gpst_fill(gpst_memory_data(out), 0xA5, sizeof wanted, stream_b)));
    const gpst_image source = frame_of(gpst_memory_data(in));
    gpst_image output;
    gpst_warp_query_output(warp, &output);
    output.data = gpst_memory_data(out);
    STILL(CHECK_OK(gpst_warp_enqueue(warp, &source, &output, 1, stream_b)));
    const invert_args args = {(uint8_t*)gpst_memory_data(out), (int)sizeof wanted};
    STILL(CHECK_OK(gpst_kernel_enqueue(&invert_kernel, &args, sizeof args, stream_b)));
    CHECK(seen_by_kernel == context, "a kernel's launch in another context");
    STILL(CHECK_OK(gpst_copy(back, gpst_memory_data(out), sizeof back, stream_b)));
    STILL(CHECK_OK(gpst_stream_synchronize(stream_b)));
    CHECK(memcmp(back, inverted, sizeof back) == 0, "wrong bits");
    STILL(CHECK_OK(gpst_event_wait(end, GPST_FOREVER)));
    STILL(CHECK_OK(gpst_event_wait(end, 0)));
    STILL(CHECK_OK(gpst_event_elapsed(start, end, &elapsed_ns)));
    STILL(CHECK_OK(gpst_copy(gpst_memory_data(out), back, sizeof back, usual)));
    STILL(CHECK_OK(gpst_stream_synchronize(usual)));
    STILL(gpst_event_destroy(start));
    STILL(gpst_event_destroy(end));
    STILL(gpst_stream_destroy(stream_a));
    STILL(gpst_stream_destroy(stream_b));
    STILL(gpst_stream_destroy(usual));
    STILL(gpst_memory_destroy(in));
    STILL(gpst_memory_destroy(out));
    STILL(gpst_memory_destroy(pinned));
    STILL(gpst_memory_destroy(locked));
    gpst_warp_destroy(warp);
}

static gpst_device* open_device(const char* name, const char* where, int ordinal) {
    void* const before = now_current();
    gpst_device* device = NULL;
    gpst_device_info info;
    STILL(CHECK_OK(gpst_device_open(name, &device)));
    gpst_device_query_info(device, &info);
    CHECK(strcmp(info.backend, "cuda") == 0 && strstr(info.reason, where), "%s", info.reason);
    CHECK(info.ordinal == ordinal, "device %d", (int)info.ordinal);
    return device;
}

static void close_device(gpst_device* device) {
    void* const before = now_current();
    STILL(CHECK_OK(gpst_device_close(device)));
}

#define IN_PRIMARY "in its primary context"
#define IN_APPLICATION "in the application's context"

/* ---- which one, with which one current ------------------------------------------------------------ */

static void* with_none(void* unused) {
    (void)unused;
    CHECK(now_current() == NULL, "a new thread has a context");
    gpst_device* const device = open_device("cuda", IN_PRIMARY, 0);
    try_all(device, primary_of(0));
    close_device(device);
    return NULL;
}

/* On a thread of the application's that has nothing current. */
static void* all_of_device(void* pair) {
    void** const both = (void**)pair;
    CHECK(now_current() == NULL, "a new thread has a context");
    try_all((gpst_device*)both[0], both[1]);
    return NULL;
}

static void on_new_thread(void* (*func)(void*), void* arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, func, arg) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void test_contexts(void) {
    CHECK_RT(cudaSetDevice(0));
    CHECK_RT(cudaFree(NULL));
    CHECK(now_current() == primary_of(0), "the runtime's is the primary one");
    gpst_device* const primary = open_device("cuda", IN_PRIMARY, 0);
    try_all(primary, primary_of(0));
    on_new_thread(with_none, NULL);
    CHECK_CU(cu.set(NULL));
    void* const app = make_context(0);
    gpst_device* const device = open_device("cuda", IN_APPLICATION, 0);
    gpst_device* const named = open_device("cuda:device=0", IN_APPLICATION, 0);
    gpst_device* const by_itself = open_device("auto", IN_APPLICATION, 0);
    try_all(device, app);
    try_all(named, app);
    try_all(by_itself, app);
    try_all(primary, primary_of(0)); /* with the application's current */
    void* const other = make_context(0);
    try_all(device, app);
    try_all(primary, primary_of(0));
    CHECK_CU(cu.set(primary_of(0)));
    try_all(device, app);
    CHECK_CU(cu.set(NULL));
    try_all(device, app);
    void* pair[2] = {device, app};
    on_new_thread(all_of_device, pair);
    CHECK_CU(cu.push(other)); /* a stack of them: what lies below stays */
    CHECK_CU(cu.push(app));
    try_all(primary, primary_of(0));
    void* popped = NULL;
    CHECK_CU(cu.pop(&popped));
    CHECK(popped == app && now_current() == other, "the stack has changed");
    close_device(primary), close_device(device), close_device(named), close_device(by_itself);
    CHECK_CU(cu.destroy(other));
    CHECK_CU(cu.destroy(app));
    printf("contexts: primary, the application's, none\n");
}

/* ---- what is of another one -------------------------------------------------------------------------- */

static void refuse(gpst_result result, gpst_result code, const char* words) {
    CHECK(result == code && strstr(gpst_last_reason(), words), "%s: wanted: %s", gpst_result_name(result), words);
    gpst_clear_reason();
}

static void test_foreign(void) {
    cudaStream_t theirs = NULL, ours = NULL;
    void *there = NULL, *here = NULL;
    gpst_stream* wrapped = NULL;
    gpst_dlpack_desc desc = GPST_ZERO;
    gpst_dlpack_view view;
    void* managed = NULL;
    CHECK_RT(cudaSetDevice(0));
    CHECK_RT(cudaStreamCreate(&theirs));
    CHECK_RT(cudaMalloc(&there, BYTES));
    gpst_device* const primary = open_device("cuda", IN_PRIMARY, 0);
    void* const app = make_context(0);
    CHECK_RT(cudaStreamCreate(&ours));
    CHECK_RT(cudaMalloc(&here, BYTES));
    CHECK(context_of(here) == app && context_of(there) != app, "the runtime allocates elsewhere");
    gpst_device* const device = open_device("cuda", IN_APPLICATION, 0);
    refuse(gpst_stream_wrap(device, theirs, &wrapped), GPST_ERROR_ARGUMENT, "is a stream of another context");
    refuse(gpst_stream_wrap(primary, ours, &wrapped), GPST_ERROR_ARGUMENT, "is a stream of another context");
    CHECK_OK(gpst_stream_wrap(device, ours, &wrapped));
    CHECK_OK(gpst_fill(here, 3, BYTES, wrapped));
    CHECK_OK(gpst_stream_synchronize(wrapped));
    gpst_stream_destroy(wrapped);
    CHECK_OK(gpst_stream_wrap(device, cudaStreamLegacy, &wrapped));
    gpst_stream_destroy(wrapped);
    CHECK_OK(gpst_stream_wrap(device, cudaStreamPerThread, &wrapped));
    gpst_stream_destroy(wrapped);
    desc.image = frame_of(there);
    desc.device = primary;
    CHECK_OK(gpst_dlpack_export(&desc, &managed));
    CHECK_OK(gpst_dlpack_import(managed, GPST_DLPACK_VERSIONED, GPST_LAYOUT_HWC, primary, &view));
    CHECK(view.on_device && view.image.data == there, "not what went in");
    refuse(gpst_dlpack_import(managed, GPST_DLPACK_VERSIONED, GPST_LAYOUT_HWC, device, &view), GPST_ERROR_ARGUMENT,
           "is memory of another context");
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, managed);
    close_device(device), close_device(primary);
    CHECK_RT(cudaStreamDestroy(ours));
    CHECK_RT(cudaFree(here));
    CHECK_CU(cu.destroy(app));
    CHECK_RT(cudaSetDevice(0));
    CHECK_RT(cudaStreamDestroy(theirs));
    CHECK_RT(cudaFree(there));
    printf("foreign: streams and memory of another context are refused\n");
}

/* ---- a pipeline ------------------------------------------------------------------------------------------ */

static gpst_result put_invert(void* user_data, gpst_task* task) {
    gpst_image view, made;
    (void)user_data;
    GPSTI_TRY(gpst_task_pictures(task, 1, &view, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, &view, &made));
    gpst_image shape = made;
    const size_t bytes = (size_t)shape.width * shape.height * 3;
    const invert_args args = {(uint8_t*)made.data, (int)bytes};
    void* const native = gpst_task_native_stream(task);
    CHECK(native != NULL, "no stream");
    CHECK_RT(cudaMemcpyAsync(made.data, view.data, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)native));
    return gpst_task_enqueue(task, &invert_kernel, &args, sizeof args);
}

static gpsti_a32 n_released;
static void count_release(void* user_data) {
    (void)user_data;
    (void)gpsti_a32_add(&n_released, 1);
}

typedef struct engine {
    gpst_context* context;
    gpst_pipeline* pipeline;
    gpst_warp* warp;
} engine;

static void engine_start(engine* self, bool require, const char* where) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_context_info info;
    void* const before = now_current();
    memset(stages, 0, sizeof stages);
    context_desc.backend = "cuda";
    context_desc.require_backend = require;
    context_desc.n_workers = 3;
    self->warp = make_warp();
    stages[0].kind = GPST_STAGE_WARP;
    stages[0].warp = self->warp;
    stages[1].kind = GPST_STAGE_DEVICE;
    stages[1].func = put_invert;
    stages[1].reads = GPST_SET(1);
    stages[1].writes = GPST_SET(2);
    desc.stages = stages;
    desc.n_stages = require ? 2 : 1;
    desc.results[0] = gpst_result_of(require ? 2 : 1, GPST_ON_HOST);
    desc.n_results = 1;
    STILL(CHECK_OK(gpst_context_create(&context_desc, &self->context)));
    STILL(CHECK_OK(gpst_pipeline_create(self->context, &desc, &self->pipeline)));
    gpst_context_query_info(self->context, &info);
    CHECK(strstr(info.backend_reason, where), "%s", info.backend_reason);
}

static void engine_end(engine* self) {
    void* const before = now_current();
    STILL(gpst_pipeline_destroy(self->pipeline));
    gpst_warp_destroy(self->warp);
    STILL(gpst_context_destroy(self->context));
}

static gpst_result engine_submit(engine* self, void* device_frame) {
    gpst_input input = GPST_ZERO;
    input.frame = frame_of(device_frame ? device_frame : frame);
    input.frame_on_device = device_frame != NULL;
    input.release = device_frame ? count_release : NULL;
    return gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL);
}

static void engine_take(engine* self, int set, const uint8_t* pixels) {
    void* const before = now_current();
    const gpst_item* item = NULL;
    STILL(CHECK_OK(gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item)));
    CHECK(item->result == GPST_OK, "%s", item->reason);
    CHECK(memcmp(item->sets[set].pictures[0].data, pixels, sizeof wanted) == 0, "wrong bits");
    STILL(gpst_pipeline_release(self->pipeline, item));
}

/* Its workers compute in the application's context, on frames that the application allocated there. */
static void test_pipeline(void) {
    enum { N = 40 };
    engine self;
    void* device_frame = NULL;
    void* elsewhere = NULL;
    CHECK_RT(cudaSetDevice(0));
    CHECK_RT(cudaMalloc(&elsewhere, BYTES));
    void* const app = make_context(0);
    CHECK_RT(cudaMalloc(&device_frame, BYTES));
    CHECK_RT(cudaMemcpy(device_frame, frame, BYTES, cudaMemcpyHostToDevice));
    engine_start(&self, true, IN_APPLICATION);
    for (int way = 0; way < 3; way++) { /* with this, another one and none current */
        if (way > 0)
            CHECK_CU(cu.set(way == 1 ? primary_of(0) : NULL));
        void* const before = now_current();
        gpsti_a32_store(&n_released, 0);
        seen_by_kernel = NULL;
        for (int k = 0; k < N; k++) {
            STILL(CHECK_OK(engine_submit(&self, k % 2 ? device_frame : NULL)));
            engine_take(&self, 2, inverted);
        }
        CHECK(seen_by_kernel == app, "a worker was in another context");
        CHECK(gpsti_a32_load(&n_released) == N / 2, "%u frames came back", gpsti_a32_load(&n_released));
        refuse(engine_submit(&self, elsewhere), GPST_ERROR_ARGUMENT, "is memory of another context");
        CHECK(gpsti_a32_load(&n_released) == N / 2, "a refused frame was taken");
    }
    engine_end(&self);
    CHECK_CU(cu.set(app));
    CHECK_RT(cudaFree(device_frame));
    CHECK_CU(cu.destroy(app));
    CHECK_RT(cudaSetDevice(0));
    CHECK_RT(cudaFree(elsewhere));
    printf("pipeline: %d items, in the application's context\n", 3 * N);
}

/* ---- two devices --------------------------------------------------------------------------------------------- */

static void test_two_devices(int n_devices) {
    uint8_t back[sizeof wanted];
    if (n_devices < 2) {
        printf("two devices: there is one\n");
        return;
    }
    CHECK_RT(cudaSetDevice(0));
    void* const app = make_context(1);
    gpst_device* const second = open_device("cuda", IN_APPLICATION, 1); /* where the application works */
    gpst_device* const first = open_device("cuda:device=0", IN_PRIMARY, 0);
    gpst_device* const named = open_device("cuda:device=1", IN_APPLICATION, 1);
    try_all(second, app);
    try_all(first, primary_of(0));
    CHECK_CU(cu.set(NULL));
    gpst_device* const fresh = open_device("cuda:device=1", IN_PRIMARY, 1);
    try_all(fresh, primary_of(1));
    gpst_stream *from = NULL, *to = NULL;
    gpst_memory *a = NULL, *b = NULL;
    CHECK_OK(gpst_stream_create(first, &from));
    CHECK_OK(gpst_stream_create(second, &to));
    CHECK_OK(gpst_memory_create(first, GPST_MEMORY_DEVICE, sizeof wanted, &a));
    CHECK_OK(gpst_memory_create(second, GPST_MEMORY_DEVICE, sizeof wanted, &b));
    CHECK_OK(gpst_copy(gpst_memory_data(a), wanted, sizeof wanted, from));
    CHECK_OK(gpst_copy_peer(gpst_memory_data(b), second, gpst_memory_data(a), sizeof wanted, from));
    CHECK_OK(gpst_stream_synchronize(from));
    CHECK_OK(gpst_copy(back, gpst_memory_data(b), sizeof back, to));
    CHECK_OK(gpst_stream_synchronize(to));
    CHECK(memcmp(back, wanted, sizeof back) == 0, "wrong bits");
    gpst_memory_destroy(a), gpst_memory_destroy(b);
    gpst_stream_destroy(from), gpst_stream_destroy(to);
    close_device(first), close_device(second), close_device(named), close_device(fresh);
    CHECK_CU(cu.destroy(app));
    printf("two devices: each in its own context\n");
}

/* ---- destroyed -------------------------------------------------------------------------------------------- */

#define GONE "the application has destroyed the context"

static void expect_lost(gpst_device* device, gpst_stream* on, gpst_event* event, void* memory) {
    void* const before = now_current();
    gpst_memory* more = NULL;
    gpst_stream* another = NULL;
    gpst_event* mark = NULL;
    gpst_device_info info;
    uint8_t byte = 0;
    STILL(refuse(gpst_memory_create(device, GPST_MEMORY_DEVICE, 100, &more), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_memory_create(device, GPST_MEMORY_PINNED, 1 << 20, &more), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_stream_create(device, &another), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_stream_wrap(device, NULL, &another), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_event_create(device, &mark), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_copy(&byte, memory, 1, on), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_fill(memory, 0, 1, on), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_event_record(event, on), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_event_wait(event, 0), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_event_wait(event, GPST_FOREVER), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_stream_wait(on, event), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(refuse(gpst_stream_synchronize(on), GPST_ERROR_DEVICE_LOST, GONE));
    STILL(gpst_device_query_info(device, &info));
}

static void test_destroyed(bool again) {
    gpst_stream* on = NULL;
    gpst_event* event = NULL;
    gpst_memory *memory = NULL, *pinned = NULL;
    CHECK_CU(cu.set(NULL));
    void* const app = make_context(0);
    gpst_device* const device = open_device("cuda", IN_APPLICATION, 0);
    CHECK_OK(gpst_stream_create(device, &on));
    CHECK_OK(gpst_event_create(device, &event));
    CHECK_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, 1 << 20, &memory));
    CHECK_OK(gpst_memory_create(device, GPST_MEMORY_PINNED, 1 << 20, &pinned));
    CHECK_OK(gpst_fill(gpst_memory_data(memory), 1, 1 << 20, on));
    CHECK_OK(gpst_event_record(event, on));
    CHECK_OK(gpst_stream_synchronize(on));
    CHECK_CU(cu.destroy(app));
    void* const next = again ? make_context(0) : NULL; /* it may have the address of the one before */
    expect_lost(device, on, event, gpst_memory_data(memory));
    gpst_event_destroy(event);
    gpst_stream_destroy(on);
    gpst_memory_destroy(memory);
    gpst_memory_destroy(pinned);
    close_device(device);
    if (next) {
        gpst_device* const alive = open_device("cuda", IN_APPLICATION, 0);
        try_all(alive, next);
        close_device(alive);
        CHECK_CU(cu.destroy(next));
    }
    printf("destroyed%s: every call says so\n", again ? ", and another one made" : "");
}

/* Items of the host's go on on the CPU, unless the backend is required. */
static void test_destroyed_engine(void) {
    engine self;
    CHECK_CU(cu.set(NULL));
    void* const app = make_context(0);
    engine_start(&self, false, IN_APPLICATION);
    for (int k = 0; k < 8; k++) {
        CHECK_OK(engine_submit(&self, NULL));
        engine_take(&self, 1, wanted);
    }
    CHECK_CU(cu.destroy(app));
    for (int k = 0; k < 8; k++) {
        CHECK_OK(engine_submit(&self, NULL));
        engine_take(&self, 1, wanted);
    }
    engine_end(&self);
    CHECK_CU(cu.set(NULL));
    void* const second = make_context(0);
    engine_start(&self, true, IN_APPLICATION);
    CHECK_OK(engine_submit(&self, NULL));
    engine_take(&self, 2, inverted);
    CHECK_CU(cu.destroy(second));
    const gpst_item* item = NULL;
    CHECK_OK(engine_submit(&self, NULL));
    CHECK_OK(gpst_pipeline_next_result(self.pipeline, GPST_FOREVER, &item));
    CHECK(item->result == GPST_ERROR_DEVICE_LOST && strstr(item->reason, GONE), "%s", item->reason);
    gpst_pipeline_release(self.pipeline, item);
    engine_end(&self);
    printf("destroyed under a pipeline: the CPU, or the item fails\n");
}

/* --quick: without contexts that are destroyed, in which compute-sanitizer finds memory that nobody frees. */
int main(int argc, char** argv) {
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    int n_devices = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
        printf("no device answers\n");
        return 77;
    }
    CALLS(FIND)
    CHECK(cu.create && cu.destroy && cu.push && cu.pop && cu.get && cu.set && cu.retain && cu.attribute, "no driver");
    make_wanted();
    test_contexts();
    test_foreign();
    test_pipeline();
    test_two_devices(n_devices);
    if (!quick) {
        test_destroyed(false);
        test_destroyed(true);
        test_destroyed_engine();
    }
    return 0;
}
#endif
