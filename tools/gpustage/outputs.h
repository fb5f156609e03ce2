/* tools/gpustage/outputs.h -- how the files that a run writes are named, and the directory they go to. */
#ifndef GPST_TOOL_OUTPUTS_H
#define GPST_TOOL_OUTPUTS_H

#include "inputs.h"

#define OUTPUTS_PATH_BYTES 4096
#define OUTPUTS_MANIFEST ".gpustage-manifest" /* in the directory beside the outputs */

typedef struct outputs {
    const char* directory;
    codec_kind kind;
    bool numbered;      /* <stem>_v00, _v01, ...; else <stem> */
    bool masks;         /* <picture>.png beside each */
    uint32_t n_outputs; /* of an item */
} outputs;

/* Sizes of the files of an item as "n,n,..."; empty when one is not there. text_free. */
text outputs_sizes(const outputs* self, const input* in);

/* EXIT_DONE, or EXIT_USAGE with the sentence printed. */
int outputs_open_directory(const char* directory, const char* command); /* makes it when its parent exists */
int outputs_check_parent(const char* option, const char* path,
                         const char* command); /* of a file named by an option */
/* No file that is read is written, no file is written twice; compared by what identifies a file, not by its name.
   stacked: -o is a file. */
int outputs_check(const outputs* self, bool stacked, const input_list* inputs, const options* asked);

#endif
