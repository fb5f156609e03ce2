/* core/base/platform_internal.h -- feature macros that must come before any system
   header. Every .c file includes it first; the amalgam has it at the very top. */
#ifndef GPSTI_PLATFORM_INTERNAL_H
#define GPSTI_PLATFORM_INTERNAL_H

#if defined(__linux__) && defined(_FEATURES_H) && !defined(_GNU_SOURCE)
#error "gpustage: include gpustage.h with GPUSTAGE_IMPLEMENTATION before any system header, or define _GNU_SOURCE"
#endif
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#if !defined(_FILE_OFFSET_BITS)
#define _FILE_OFFSET_BITS 64
#endif
#if defined(_WIN32)
#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#if !defined(_WIN32_WINNT)
#define _WIN32_WINNT 0x0A00
#endif
#endif

#endif
