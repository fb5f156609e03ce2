/* tests/compile/prefix.c -- the program of two units that implement the library under two prefixes: this
   one calls the copy of its own prefix. */
#include "gpustage.h"

int main(void) { return gpst_version() == GPST_VERSION ? 0 : 1; }
