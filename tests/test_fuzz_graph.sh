#!/bin/sh
# tests/test_fuzz_graph.sh -- the fuzz target of graphs over its corpus, without a fuzzer.
# Environment: CC, GPST_SANITIZE (compiler flags), GPST_LIBRARY (what to link with; unset: gpustage.c).
set -eu
cd "$(dirname "$0")/.."
cc=${CC:-cc}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
$cc -std=c11 -O1 -g ${GPST_SANITIZE:-} tests/fuzz/fuzz_graph.c tests/fuzz/run_corpus.c ${GPST_LIBRARY:-gpustage.c} \
    -o "$folder/fuzz" -pthread -lm
"$folder/fuzz" tests/fuzz/corpus/graph/*
