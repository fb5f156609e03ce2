#!/bin/sh
# tests/test_fuzz_ring.sh -- random rings between threads: fixed seeds; with arguments those of tests/fuzz/seeds.h.
# Environment: GPST_BUILD (the build folder).
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- --seed 1 --count 150
exec "${GPST_BUILD:-build}/fuzz/ring" "$@"
