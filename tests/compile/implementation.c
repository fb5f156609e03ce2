/* tests/compile/implementation.c -- a user's unit that holds the implementation, as the header's own text
   shows it. */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

/* Included again, as other headers of the user may do: nothing is defined twice. */
#include "gpustage.h"

uint32_t implementation_version(void);
uint32_t implementation_version(void) { return gpst_version(); }
