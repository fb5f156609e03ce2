/* tools/gpustage/outputs.h -- how the files that a run writes are named, and the directory they go to. */
#ifndef GPST_TOOL_OUTPUTS_H
#define GPST_TOOL_OUTPUTS_H

#include "inputs.h"

#define OUTPUTS_PATH_BYTES 4096
#define OUTPUTS_MANIFEST ".gpustage-manifest" /* in the directory that -o names, whatever the layout */

/* Where files lie below -o. FOLDER is that of the input below the directory it was found in (--recursive), else none:

     LAYOUT_FLAT        FOLDER/STEM_v00.EXT           and its mask beside it
     LAYOUT_COLMAP      images/v00/FOLDER/STEM.EXT    masks/v00/FOLDER/MASK
     LAYOUT_NERFSTUDIO  images/FOLDER/STEM_v00.EXT    masks/FOLDER/MASK

   A tensor is FOLDER/STEM.npy. */
typedef struct outputs {
    const char* directory;
    int layout;             /* layout_kind */
    const char* extension;
    bool numbered;          /* there are views: the second is _v01, or lies in v01/ */
    const char* mask_names; /* pattern of the masks of views; NULL: there are none */
    uint32_t n_outputs;     /* of an item */
} outputs;

/* Below the directory, of the view of that index or of its mask. False: the name is too long. */
bool outputs_name(const outputs* self, const char* stem, uint32_t index, bool mask, char* out, size_t bytes);
bool outputs_path(const outputs* self, const char* stem, uint32_t index, bool mask, char out[OUTPUTS_PATH_BYTES]);
/* Sizes of the files of an item as "n,n,..." and, where it has a mask of its own, which that was; empty when one is not
   there, or when nothing tells that mask from another. times: when they were changed last, as "n,n,..."; may be NULL. text_free both. */
text outputs_sizes(const outputs* self, const input* in, text* times);
/* The folders that the masks of views go to. NULL, or why one cannot be made. */
const char* outputs_make_mask_folders(const outputs* self, const input_list* inputs);

/* EXIT_DONE, or EXIT_USAGE with the sentence printed. */
int outputs_open_directory(const char* directory, const char* command); /* makes it when its parent exists */
int outputs_check_parent(const char* option, const char* path,
                         const char* command); /* of a file named by an option */
/* No file that is read is written, no file is written twice; compared by what identifies a file, not by its name.
   stacked: -o is a file. */
int outputs_check(const outputs* self, bool stacked, const input_list* inputs, const options* asked);

/* outputs_check.c. Files that are read, by what identifies them. */
typedef struct read_file {
    uint64_t device, inode;
    const char* path;
} read_file;

typedef struct read_files {
    read_file* items;
    size_t count;
} read_files;

/* Inputs, the lists that name them, and masks; free the items. False: out of memory. */
bool outputs_list_read(const input_list* inputs, const options* asked, read_files* out);
/* The file that is read and that is the one at path, too; NULL: none. */
const read_file* outputs_find_read(const read_files* files, const char* path);

#endif
