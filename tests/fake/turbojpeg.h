/* tests/fake/turbojpeg.h -- what a test tells the library that stands in for libturbojpeg, and what that counts. */
#ifndef GPST_TEST_FAKE_TURBOJPEG_H
#define GPST_TEST_FAKE_TURBOJPEG_H

typedef struct fake_turbojpeg {
    int fail_at;           /* the n-th call that can fail does, from 1; 0 = none */
    int fails_on;          /* all after it fail, too */
    int warns;             /* that failure is a warning: pixels are there all the same, unless they are asked to stop */
    const char* text;      /* of the error */
    int wider;             /* than the file, in tjDecompressHeader3 */
    unsigned long larger;  /* than it is, in tjBufSize */
    unsigned long longer;  /* than the room, in tjCompress2 */
    int has_header_failed; /* tjDecompressHeader3 says nothing */
    int n_calls, n_live;   /* calls that can fail; handles that are not destroyed */
    int last_flags, optimise, restart_rows;
    const void* last_handle;
} fake_turbojpeg;

#define FAKE_PIXEL 77

#endif
