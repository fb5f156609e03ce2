/* core/files/folder_internal.h -- a list of names or paths that grows; what is taken from folders. */
#ifndef GPSTI_FOLDER_INTERNAL_H
#define GPSTI_FOLDER_INTERNAL_H

#include "../base/base_internal.h"
#include "folder.h"

/* Extensions of pictures, as a sentence has them. */
#define GPSTI_FOLDER_PICTURES "jpg, jpeg, jpe, jfif, insp, png, tif, tiff, webp, ppm, pgm, pnm, pam, npy"

typedef struct gpsti_names {
    gpsti_host* host; /* whose memory it is */
    char** items;
    size_t n, capacity;
} gpsti_names;

GPSTI_INTERN gpst_result gpsti_names_add(gpsti_names* self, const char* name); /* copied */
GPSTI_INTERN void gpsti_names_free(gpsti_names* self);

/* gpst_folder_list with the memory of host. */
GPSTI_INTERN gpst_result gpsti_folder_list(gpsti_host* host, const char* path, gpst_found_func found, void* user_data);

#endif
