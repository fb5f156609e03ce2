/* tests/compile/two_static.c -- compiled twice, with TWO_STATIC_NAME set to a and b, and linked into one
   program: two private copies of the library live side by side. */
#define GPUSTAGE_STATIC
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

uint32_t two_static_a(void);
uint32_t two_static_b(void);

uint32_t TWO_STATIC_NAME(void) { return gpst_version(); }

#if defined(TWO_STATIC_MAIN)
int main(void) { return two_static_a() == two_static_b() ? 0 : 1; }
#endif
