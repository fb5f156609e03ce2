/* core/base/compiler_internal.h -- everything that differs between compilers: which unit this is, attributes, atomics.
   Calls nothing. */
#ifndef GPSTI_COMPILER_INTERNAL_H
#define GPSTI_COMPILER_INTERNAL_H

#include "base.h"

/* ---- units --------------------------------------------------------------------
   GPSTI_CUDA, GPSTI_HIP  the program has that backend       GPSTI_GPU  it has either
   GPSTI_GPU_UNIT         this unit holds the device code: nvcc or hipcc compiles it

   With GPSTI_GPU there are one unit or two. One: nvcc or hipcc compiles everything. Two: the user's compiler has
   the host half (GPUSTAGE_CUDA or GPUSTAGE_HIP says that there is another), and GPUSTAGE_GPU_IMPLEMENTATION
   is the GPU half: the internal headers and the .cu.h files, none of the .c files. */
#if defined(GPUSTAGE_CUDA) && defined(GPUSTAGE_HIP)
#error "gpustage: GPUSTAGE_CUDA and GPUSTAGE_HIP exclude each other in one program"
#endif
#if defined(GPUSTAGE_GPU_IMPLEMENTATION) && !defined(__CUDACC__) && !defined(__HIPCC__)
#error "gpustage: GPUSTAGE_GPU_IMPLEMENTATION is for nvcc (-x cu) or hipcc (-x hip)"
#endif
#if defined(GPUSTAGE_HIP) || (defined(__HIPCC__) && !defined(GPUSTAGE_CUDA))
#define GPSTI_HIP 1
#elif defined(GPUSTAGE_CUDA) || defined(__CUDACC__)
#define GPSTI_CUDA 1
#endif
#if defined(GPSTI_CUDA) || defined(GPSTI_HIP)
#define GPSTI_GPU 1
#endif
#if defined(GPUSTAGE_GPU_IMPLEMENTATION) || \
    (defined(GPUSTAGE_IMPLEMENTATION) && (defined(__CUDACC__) || defined(__HIPCC__)))
#define GPSTI_GPU_UNIT 1
#endif

#if defined(_WIN32)
#define GPSTI_HIDDEN extern
#else
#define GPSTI_HIDDEN extern __attribute__((visibility("hidden")))
#endif

/* Shared between files. In the GPU half nothing but inline functions of the host's is there to be called ... */
#if defined(GPUSTAGE_SPLIT_BUILD) || !defined(GPUSTAGE_IMPLEMENTATION)
#define GPSTI_INTERN GPSTI_HIDDEN
#else
#define GPSTI_INTERN GPSTI_UNUSED static
#endif
/* ... and what is spelt GPSTI_LINK: functions that one half defines and both may call. They keep C linkage, and
   GPUSTAGE_PREFIX renames them as it renames the public ones. */
#if !defined(GPUSTAGE_SPLIT_BUILD) && defined(GPUSTAGE_IMPLEMENTATION) && \
    (!defined(GPSTI_GPU) || defined(GPSTI_GPU_UNIT))
#define GPSTI_LINK GPSTI_INTERN
#elif defined(__cplusplus) && defined(_WIN32)
#define GPSTI_LINK extern "C"
#elif defined(__cplusplus)
#define GPSTI_LINK extern "C" __attribute__((visibility("hidden")))
#else
#define GPSTI_LINK GPSTI_HIDDEN
#endif
#define GPSTI_PRIVATE GPSTI_UNUSED static
#define GPSTI_INLINE GPSTI_UNUSED static inline

#if defined(_MSC_VER) && !defined(__clang__)
#define GPSTI_RESTRICT __restrict
#define GPSTI_TLS __declspec(thread)
#define GPSTI_NOINLINE __declspec(noinline)
#define GPSTI_ALWAYS_INLINE __forceinline
#define GPSTI_FALLTHROUGH
#else
#define GPSTI_RESTRICT __restrict__
#define GPSTI_TLS __thread
#define GPSTI_NOINLINE __attribute__((noinline))
#define GPSTI_ALWAYS_INLINE inline __attribute__((always_inline))
#define GPSTI_FALLTHROUGH __attribute__((fallthrough))
#endif
#ifdef __cplusplus
#define GPSTI_ALIGNAS(bytes) alignas(bytes)
#define GPSTI_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define GPSTI_ALIGNAS(bytes) _Alignas(bytes)
#define GPSTI_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* Two lines of x86, because the adjacent-line prefetcher pairs them. */
#define GPSTI_CACHE_LINE 128

/* Under AddressSanitizer frame memory that nobody holds is poisoned: a use after release is caught. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define GPSTI_POISON(ptr, bytes) ASAN_POISON_MEMORY_REGION(ptr, bytes)
#define GPSTI_UNPOISON(ptr, bytes) ASAN_UNPOISON_MEMORY_REGION(ptr, bytes)
#else
#define GPSTI_POISON(ptr, bytes) ((void)(ptr), (void)(bytes))
#define GPSTI_UNPOISON(ptr, bytes) ((void)(ptr), (void)(bytes))
#endif

/* ---- atomics ----------------------------------------------------------------
   Plain integers behind accessors: <stdatomic.h> is not C++17 and std::atomic is not C.
   load = acquire, store = release, read-modify-write = acquire-release, fence = sequentially consistent. */
typedef struct gpsti_a32 {
    volatile uint32_t value;
} gpsti_a32;
typedef struct gpsti_a64 {
    GPSTI_ALIGNAS(8) volatile uint64_t value;
} gpsti_a64;

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#if defined(_M_ARM64)
#define GPSTI_MSVC_ORDER() __dmb(_ARM64_BARRIER_ISH)
#else
#define GPSTI_MSVC_ORDER() _ReadWriteBarrier()
#endif
GPSTI_INLINE uint32_t gpsti_a32_load(const gpsti_a32* a) {
    const uint32_t value = a->value;
    GPSTI_MSVC_ORDER();
    return value;
}
GPSTI_INLINE uint32_t gpsti_a32_load_relaxed(const gpsti_a32* a) { return a->value; }
GPSTI_INLINE void gpsti_a32_store(gpsti_a32* a, uint32_t value) {
    GPSTI_MSVC_ORDER();
    a->value = value;
}
GPSTI_INLINE void gpsti_a32_store_relaxed(gpsti_a32* a, uint32_t value) { a->value = value; }
GPSTI_INLINE uint32_t gpsti_a32_add(gpsti_a32* a, uint32_t amount) {
    return (uint32_t)_InterlockedExchangeAdd((volatile long*)&a->value, (long)amount);
}
GPSTI_INLINE uint32_t gpsti_a32_exchange(gpsti_a32* a, uint32_t value) {
    return (uint32_t)_InterlockedExchange((volatile long*)&a->value, (long)value);
}
GPSTI_INLINE bool gpsti_a32_cas(gpsti_a32* a, uint32_t* expected, uint32_t desired) {
    const uint32_t seen =
        (uint32_t)_InterlockedCompareExchange((volatile long*)&a->value, (long)desired, (long)*expected);
    const bool done = seen == *expected;
    *expected = seen;
    return done;
}
GPSTI_INLINE uint64_t gpsti_a64_load(const gpsti_a64* a) {
    return (uint64_t)_InterlockedCompareExchange64((volatile long long*)&a->value, 0, 0);
}
GPSTI_INLINE uint64_t gpsti_a64_load_relaxed(const gpsti_a64* a) { return gpsti_a64_load(a); }
GPSTI_INLINE void gpsti_a64_store(gpsti_a64* a, uint64_t value) {
    _InterlockedExchange64((volatile long long*)&a->value, (long long)value);
}
GPSTI_INLINE void gpsti_a64_store_relaxed(gpsti_a64* a, uint64_t value) { gpsti_a64_store(a, value); }
GPSTI_INLINE uint64_t gpsti_a64_add(gpsti_a64* a, uint64_t amount) {
    return (uint64_t)_InterlockedExchangeAdd64((volatile long long*)&a->value, (long long)amount);
}
GPSTI_INLINE bool gpsti_a64_cas(gpsti_a64* a, uint64_t* expected, uint64_t desired) {
    const uint64_t seen = (uint64_t)_InterlockedCompareExchange64((volatile long long*)&a->value,
                                                                  (long long)desired, (long long)*expected);
    const bool done = seen == *expected;
    *expected = seen;
    return done;
}
#if defined(_M_ARM64)
GPSTI_INLINE void gpsti_fence(void) { __dmb(_ARM64_BARRIER_ISH); }
GPSTI_INLINE void gpsti_relax(void) { __yield(); }
#else
GPSTI_INLINE void gpsti_fence(void) { _mm_mfence(); }
GPSTI_INLINE void gpsti_relax(void) { _mm_pause(); }
#endif
#else
GPSTI_INLINE uint32_t gpsti_a32_load(const gpsti_a32* a) {
    return __atomic_load_n(&a->value, __ATOMIC_ACQUIRE);
}
GPSTI_INLINE uint32_t gpsti_a32_load_relaxed(const gpsti_a32* a) {
    return __atomic_load_n(&a->value, __ATOMIC_RELAXED);
}
GPSTI_INLINE void gpsti_a32_store(gpsti_a32* a, uint32_t value) {
    __atomic_store_n(&a->value, value, __ATOMIC_RELEASE);
}
GPSTI_INLINE void gpsti_a32_store_relaxed(gpsti_a32* a, uint32_t value) {
    __atomic_store_n(&a->value, value, __ATOMIC_RELAXED);
}
GPSTI_INLINE uint32_t gpsti_a32_add(gpsti_a32* a, uint32_t amount) {
    return __atomic_fetch_add(&a->value, amount, __ATOMIC_ACQ_REL);
}
GPSTI_INLINE uint32_t gpsti_a32_exchange(gpsti_a32* a, uint32_t value) {
    return __atomic_exchange_n(&a->value, value, __ATOMIC_ACQ_REL);
}
GPSTI_INLINE bool gpsti_a32_cas(gpsti_a32* a, uint32_t* expected, uint32_t desired) {
    return __atomic_compare_exchange_n(&a->value, expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
GPSTI_INLINE uint64_t gpsti_a64_load(const gpsti_a64* a) {
    return __atomic_load_n(&a->value, __ATOMIC_ACQUIRE);
}
GPSTI_INLINE uint64_t gpsti_a64_load_relaxed(const gpsti_a64* a) {
    return __atomic_load_n(&a->value, __ATOMIC_RELAXED);
}
GPSTI_INLINE void gpsti_a64_store(gpsti_a64* a, uint64_t value) {
    __atomic_store_n(&a->value, value, __ATOMIC_RELEASE);
}
GPSTI_INLINE void gpsti_a64_store_relaxed(gpsti_a64* a, uint64_t value) {
    __atomic_store_n(&a->value, value, __ATOMIC_RELAXED);
}
GPSTI_INLINE uint64_t gpsti_a64_add(gpsti_a64* a, uint64_t amount) {
    return __atomic_fetch_add(&a->value, amount, __ATOMIC_ACQ_REL);
}
GPSTI_INLINE bool gpsti_a64_cas(gpsti_a64* a, uint64_t* expected, uint64_t desired) {
    return __atomic_compare_exchange_n(&a->value, expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}
/* ThreadSanitizer does not know fences; on the machines it runs on a locked operation is one. */
#if defined(__SANITIZE_THREAD__)
GPSTI_INLINE void gpsti_fence(void) {
    uint32_t word = 0;
    (void)__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}
#else
GPSTI_INLINE void gpsti_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif
GPSTI_INLINE void gpsti_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
#endif

/* False: that would be more than most, and nothing is added. */
GPSTI_INLINE bool gpsti_a64_add_within(gpsti_a64* a, uint64_t amount, uint64_t most) {
    uint64_t seen = gpsti_a64_load(a);
    do {
        if (seen > most || amount > most - seen)
            return false;
    } while (!gpsti_a64_cas(a, &seen, seen + amount));
    return true;
}

#endif
