/* tests/compile/taken_names.c -- a user's unit that has many of the system's headers, and the names that headers take by
   macros on one system or another, before the implementation. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

/* What the implementation includes stands among them: it is not the system's headers that have to bear the macros. */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(_WIN32)
#include <winsock2.h>
#include <windows.h>

#include <dlgs.h>
#include <malloc.h>
#include <mmsystem.h>
#include <objbase.h>
#include <process.h>
#include <rpc.h>
#include <shlobj.h>
#else
#include <complex.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <termios.h>
#include <tgmath.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <linux/fs.h>
#include <linux/limits.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Windows: minwindef.h, rpcndr.h, basetyps.h, wingdi.h, winnt.h, sehmap.h; and compilers of 16 bits. */
#undef near
#undef far
#undef huge
#undef small
#undef hyper
#undef interface
#undef min
#undef max
#undef IN
#undef OUT
#undef OPTIONAL
#undef ERROR
#undef DELETE
#undef OPAQUE
#undef TRANSPARENT
#undef ABSOLUTE
#undef RELATIVE
#undef STRICT
#undef THIS
#undef pascal
#undef cdecl
#undef except
#undef finally
#define near
#define far
#define huge
#define small char
#define hyper long long
#define interface struct
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define IN
#define OUT
#define OPTIONAL
#define ERROR 0
#define DELETE (0x00010000L)
#define OPAQUE 2
#define TRANSPARENT 1
#define ABSOLUTE 1
#define RELATIVE 2
#define STRICT 1
#define THIS void
#define pascal __stdcall
#define cdecl
#define except __except
#define finally __finally

/* Compilers' own, outside of the strict modes. */
#undef unix
#undef linux
#undef i386
#undef arm
#undef mips
#undef sparc
#undef sun
#undef vax
#define unix 1
#define linux 1
#define i386 1
#define arm 1
#define mips 1
#define sparc 1
#define sun 1
#define vax 1

/* POSIX: sys/sysmacros.h, sys/param.h, complex.h, math.h of System V, termios.h; BSD's strings.h. */
#undef major
#undef minor
#undef makedev
#undef MIN
#undef MAX
#undef howmany
#undef roundup
#undef powerof2
#undef I
#undef complex
#undef imaginary
#undef DOMAIN
#undef OVERFLOW
#undef UNDERFLOW
#undef SING
#undef HUGE
#undef ECHO
#undef index
#undef rindex
#if defined(__linux__) /* where the implementation takes these from */
#define major(device) gnu_dev_major(device)
#define minor(device) gnu_dev_minor(device)
#else
#define major(device) ((device) >> 8)
#define minor(device) ((device) & 255)
#endif
#define makedev(a, b) ((a) << 8 | (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define howmany(x, y) (((x) + ((y)-1)) / (y))
#define roundup(x, y) ((((x) + ((y)-1)) / (y)) * (y))
#define powerof2(x) ((((x)-1) & (x)) == 0)
#define I _Complex_I
#define complex _Complex
#define imaginary _Imaginary
#define DOMAIN 1
#define OVERFLOW 3
#define UNDERFLOW 4
#define SING 2
#define HUGE 3.40282347e+38F
#define ECHO 8
#define index(string, c) strchr(string, c)
#define rindex(string, c) strrchr(string, c)

/* X11, macOS, Arduino. */
#undef Bool
#undef Status
#undef Success
#undef None
#undef Always
#undef True
#undef False
#undef check
#undef verify
#undef require
#undef nil
#undef round
#undef bit
#undef abs
#define Bool int
#define Status int
#define Success 0
#define None 0L
#define Always 2
#define True 1
#define False 0
#define check(assertion) ((void)(assertion))
#define verify(assertion) ((void)(assertion))
#define require(assertion, label) ((void)(assertion))
#define nil NULL
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x)-0.5))
#define bit(b) (1UL << (b))
#define abs(x) ((x) > 0 ? (x) : -(x))

#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

uint32_t taken_names_version(void);
uint32_t taken_names_version(void) { return gpst_version(); }
