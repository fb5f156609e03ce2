#!/bin/sh
# tests/test_fuzz_warp.sh -- the fuzz target of the warp over its corpus; --seconds N: over what is made of it
# at random, for so long.
# Environment: GPST_BUILD (the build folder).
set -eu
cd "$(dirname "$0")/.."
exec "${GPST_BUILD:-build}/fuzz/warp" "$@" tests/fuzz/corpus/warp/*
