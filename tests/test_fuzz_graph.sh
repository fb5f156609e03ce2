#!/bin/sh
# tests/test_fuzz_graph.sh -- the fuzz target of graphs over its corpus; --seconds N: over what is made of it
# at random, for so long.
# Environment: GPST_BUILD (the build folder).
set -eu
cd "$(dirname "$0")/.."
exec "${GPST_BUILD:-build}/fuzz/graph" "$@" tests/fuzz/corpus/graph/*
