#!/bin/sh
# tests/test_fuzz_pipeline.sh -- random pipelines against their model: fixed seeds, and those that found something once;
# with arguments those of tests/fuzz/seeds.h.
# Environment: GPST_BUILD (the build folder).
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- --seeds tests/fuzz/corpus/pipeline/seeds --seed 1 --count 120
exec "${GPST_BUILD:-build}/fuzz/pipeline" "$@"
