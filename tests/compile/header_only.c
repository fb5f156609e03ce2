/* tests/compile/header_only.c -- a unit that only includes the header and calls it: its own implementation
   is elsewhere. Also the program that a stranger builds against an installed copy. */
#include "gpustage.h"

#include <stdio.h>

int main(void) {
    gpst_context_desc desc = GPST_ZERO;
    desc.backend = "cpu";
    gpst_context* context = NULL;
    const gpst_result result = gpst_context_create(&desc, &context);
    if (GPST_FAILED(result)) {
        fprintf(stderr, "%s: %s\n", gpst_result_name(result), gpst_last_reason());
        return 1;
    }
    gpst_context_destroy(context);
    printf("%s\n", gpst_build_info());
    return gpst_version() == GPST_VERSION ? 0 : 1;
}
