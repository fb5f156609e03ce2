/* tests/test_gpu_mask.h -- what the GPU tests of masks and quantising share: memory on both sides, scores of every
   kind, large blocks, and a device to begin with. */
#ifndef GPST_TEST_GPU_MASK_H
#define GPST_TEST_GPU_MASK_H

#include "test_gpu.h"

#define ARENA_BYTES ((size_t)1 << 20)

#define CHECK_OK(call) CHECK((call) == GPST_OK, "refused")

/* ---- memory ------------------------------------------------------------------------------
   What a case needs, on the host and at the end of a device allocation, so that a byte read behind it is seen by
   compute-sanitizer, and one written beside the rows by comparing all of it. */
typedef struct arena {
    uint8_t *host, *back, *device;
    size_t used, shift;
} arena;

static arena source, output;

static void arena_open(arena* a) {
    void* device = NULL;
    CHECK_RT(GPSTI_RT(Malloc)(&device, ARENA_BYTES));
    a->device = (uint8_t*)device;
    a->host = (uint8_t*)aligned_alloc(256, ARENA_BYTES);
    a->back = (uint8_t*)malloc(ARENA_BYTES);
    CHECK(a->host && a->back, "no memory");
}

static void arena_close(arena* a) {
    CHECK_RT(GPSTI_RT(Free)(a->device));
    free(a->host);
    free(a->back);
}

static void arenas_begin(void) {
    source.used = output.used = 0;
    memset(output.host, 0xa5, ARENA_BYTES);
}

static bool tidy; /* of this case: places and pitches as hot loops like them */

static void* take(arena* a, size_t bytes, size_t unit) {
    const size_t align = tidy ? 16 : unit;
    a->used = (a->used + align - 1) / align * align + (tidy ? 0 : unit * random_below(5));
    void* const at = a->host + a->used;
    a->used += bytes;
    CHECK(a->used <= ARENA_BYTES, "the arena is full: %zu", a->used);
    return at;
}

/* The end of what was taken is that of the allocation, as near as alignment allows. */
static void arenas_upload(size_t unit) {
    arena* const both[2] = {&source, &output};
    for (int i = 0; i < 2; i++) {
        const size_t align = tidy ? 16 : unit;
        both[i]->shift = (ARENA_BYTES - both[i]->used) / align * align;
        CHECK_RT(GPSTI_RT(MemcpyAsync)(both[i]->device + both[i]->shift, both[i]->host, both[i]->used,
                                       GPSTI_RT(MemcpyHostToDevice), stream));
    }
}

static void* on_device(const arena* a, const void* host) {
    return host ? a->device + a->shift + ((const uint8_t*)host - a->host) : NULL;
}

/* The host's output is the reference's by now. */
static void arenas_compare(const char* what, uint32_t number, uint32_t detail) {
    CHECK_RT(GPSTI_RT(MemcpyAsync)(output.back, output.device + output.shift, output.used, GPSTI_RT(MemcpyDeviceToHost),
                                   stream));
    CHECK_RT(GPSTI_RT(StreamSynchronize)(stream));
    for (size_t i = 0; i < output.used; i++)
        CHECK(output.back[i] == output.host[i], "%s, case %u (%u): byte %zu is %d, reference %d", what, number, detail,
              i, output.back[i], output.host[i]);
}

/* Floats that are few (so that ties happen), any, or special. */
static float pick_f32(uint32_t kind) {
    static const uint32_t special[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7f800000, 0xff800000,
                                       0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                       0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000};
    const uint64_t random = random_next();
    if (kind == 0)
        return (float)((int32_t)(random % 7) - 3);
    if (kind == 1)
        return (float)((double)(int32_t)(uint32_t)random / 1e8);
    if (kind == 2)
        return gpsti_f32_from_bits((uint32_t)random);
    if (kind == 3)
        return gpsti_f32_from_bits(random & 1 ? 0x7fc12345 : 0xff800000);
    return gpsti_f32_from_bits(special[random % 14]);
}

static void fill_scores(gpst_dtype dtype, uint32_t kind) {
    const size_t unit = gpst_dtype_bytes(dtype);
    for (size_t i = 0; i < source.used / unit; i++) {
        const float value = pick_f32(kind);
        const uint16_t half = kind == 2 ? (uint16_t)random_next() : gpsti_f16_from_f32(value);
        if (dtype == GPST_DTYPE_U8)
            source.host[i] = (uint8_t)random_next();
        else
            memcpy(source.host + i * unit, dtype == GPST_DTYPE_F32 ? (const void*)&value : (const void*)&half, unit);
    }
}

/* ---- large --------------------------------------------------------------------------------------------------- */
typedef struct large {
    uint8_t *host, *device;
    size_t bytes;
} large;

static large large_open(size_t bytes, bool random) {
    large l;
    void* device = NULL;
    l.bytes = bytes;
    l.host = (uint8_t*)malloc(bytes);
    CHECK_RT(GPSTI_RT(Malloc)(&device, bytes));
    CHECK(l.host != NULL, "no memory");
    l.device = (uint8_t*)device;
    if (random) {
        for (size_t i = 0; i + 4 <= bytes; i += 4) {
            const uint32_t bits = (uint32_t)((i * 0x9e3779b97f4a7c15u) >> 29) ^ (uint32_t)(i >> 11);
            memcpy(l.host + i, &bits, 4);
        }
        CHECK_RT(GPSTI_RT(MemcpyAsync)(l.device, l.host, bytes, GPSTI_RT(MemcpyHostToDevice), stream));
    } else {
        memset(l.host, 0xa5, bytes);
        CHECK_RT(GPSTI_RT(MemsetAsync)(l.device, 0xa5, bytes, stream));
    }
    return l;
}

static void large_close(large* l, bool compare, const char* what) {
    if (compare) {
        uint8_t* const back = (uint8_t*)malloc(l->bytes);
        CHECK(back != NULL, "no memory");
        CHECK_RT(GPSTI_RT(StreamSynchronize)(stream));
        CHECK_RT(GPSTI_RT(Memcpy)(back, l->device, l->bytes, GPSTI_RT(MemcpyDeviceToHost)));
        CHECK(memcmp(back, l->host, l->bytes) == 0, "%s", what);
        free(back);
        printf("large: %s\n", what);
    }
    CHECK_RT(GPSTI_RT(Free)(l->device));
    free(l->host);
}

/* ---- a run ----------------------------------------------------------------------------------------------------- */
/* False where no device answers. */
static bool begin(void) {
    const char* const text = getenv("GPST_SEED");
    int n_devices = 0;
    const gpsti_rt_error error = GPSTI_RT(GetDeviceCount)(&n_devices);
    if (error != GPSTI_RT(Success) || n_devices == 0) {
        printf("skipped: no device: %s\n", GPSTI_RT(GetErrorString)(error));
        return false;
    }
    seed_of_all = text ? strtoull(text, NULL, 0) : 42;
    printf("seed %llu (set GPST_SEED to replay)\n", (unsigned long long)seed_of_all);
    CHECK_RT(GPSTI_RT(StreamCreateWithFlags)(&stream, GPSTI_RT(StreamNonBlocking)));
    arena_open(&source), arena_open(&output);
    return true;
}

static void end(void) {
    arena_close(&source), arena_close(&output);
    CHECK_RT(GPSTI_RT(StreamDestroy)(stream));
}

#endif
