#!/bin/sh
# tests/test_fuzz_jpeg.sh -- the fuzz target of the library's JPEG over the corpus of the codecs; --seconds N:
# over what is made of it at random, for so long.
# Environment: GPST_BUILD (the build folder).
set -eu
cd "$(dirname "$0")/.."
exec "${GPST_BUILD:-build}/fuzz/jpeg" "$@" tests/fuzz/corpus/codec/*.jpg
