#!/bin/sh
# tests/test_fuzz_codec.sh -- the fuzz targets of the codecs, and of the library's JPEG, over their corpus, without a
# fuzzer.
# Environment: CC, GPST_SANITIZE (compiler flags), GPST_LIBRARY (what to link with; unset: gpustage.c).
set -eu
cd "$(dirname "$0")/.."
cc=${CC:-cc}
flags="-std=c11 -O1 -g ${GPST_SANITIZE:-}"
libraries=
has() { printf '#include <%s>\n' "$1" | $cc -E -x c - >/dev/null 2>&1; }
if has turbojpeg.h; then flags="$flags -DGPST_TOOL_JPEG" libraries="$libraries -lturbojpeg"; fi
if has spng.h; then flags="$flags -DGPST_TOOL_PNG" libraries="$libraries -lspng"; fi
if has tiffio.h; then flags="$flags -DGPST_TOOL_TIFF" libraries="$libraries -ltiff"; fi
if has webp/encode.h; then flags="$flags -DGPST_TOOL_WEBP" libraries="$libraries -lwebp"; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
$cc $flags tests/fuzz/fuzz_codec.c tests/fuzz/run_corpus.c tools/gpustage/codec*.c ${GPST_LIBRARY:-gpustage.c} \
    -o "$folder/fuzz" $libraries -pthread
"$folder/fuzz" tests/fuzz/corpus/codec/*
$cc $flags tests/fuzz/fuzz_jpeg.c tests/fuzz/run_corpus.c ${GPST_LIBRARY:-gpustage.c} -o "$folder/fuzz_jpeg" -pthread -lm
"$folder/fuzz_jpeg" tests/fuzz/corpus/codec/*.jpg
