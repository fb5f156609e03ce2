/* core/base/library_internal.h -- libraries that are found at run time, so that none is needed to compile or to link.
   Knows no library by name. */
#ifndef GPSTI_LIBRARY_INTERNAL_H
#define GPSTI_LIBRARY_INTERNAL_H

#include "base_internal.h"

typedef struct gpsti_symbol {
    const char* name; /* NULL ends a list of them */
    size_t offset;    /* of its pointer in the table of calls */
    bool optional;    /* the pointer is NULL where the library lacks it */
} gpsti_symbol;

#define GPSTI_LIBRARY_FILE_BYTES 200

/* One library, static. Once loaded it stays: handles and functions of it may be in use anywhere. */
typedef struct gpsti_library {
    const char* title;
    const char* needed;        /* "libturbojpeg 2.1 or later": for whoever has one that lacks functions */
    const char* variable;      /* of the environment: a path instead of the names, or "": it is not to be used */
    const char* const* names;  /* tried in this order; NULL ends them */
    const gpsti_symbol* symbols;
    void* calls;               /* a struct of function pointers, all of one size; valid once loading gave OK */
    gpsti_a32 lock, loaded;
    char file[GPSTI_LIBRARY_FILE_BYTES]; /* of the one that was opened, where the system says it; else its name */
} gpsti_library;

/* OK at once where it is loaded; else tries again each time. UNSUPPORTED: there is none, it lacks a function, or it is
   not to be used; the reason says which. From any thread. */
GPSTI_INTERN gpst_result gpsti_library_load(gpsti_library* self);

#endif
