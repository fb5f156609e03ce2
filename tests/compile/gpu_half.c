/* tests/compile/gpu_half.c -- a C program of two halves: asks for the GPU and says what came of it. Without an
   argument anything but a mismatch of the halves will do; with one, the mismatch is what must be told. */
#include "gpustage.h"

#include <stdio.h>
#include <string.h>

int main(int n_arguments, char** arguments) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    (void)arguments;
    desc.backend = "cuda";
    const gpst_result result = gpst_context_create(&desc, &context);
    printf("%s\n%s: %s\n", gpst_build_info(), gpst_result_name(result), gpst_last_reason());
    gpst_context_destroy(context);
    if (!strstr(gpst_build_info(), " cuda;"))
        return 2;
    if (n_arguments > 1)
        return result == GPST_ERROR_VERSION ? 0 : 1;
    return result == GPST_OK || result == GPST_ERROR_NO_BACKEND ? 0 : 1;
}
