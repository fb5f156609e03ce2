#!/bin/sh
# tools/setup.sh -- looks for what a target needs and, as root on Debian or Ubuntu, installs what is missing. Never
# through sudo, and never an error: what stays missing is named, and the build goes on with what can be built.
#
#   sh tools/setup.sh demo     C compiler, libjpeg-turbo
#   sh tools/setup.sh command  the same, libspng, libtiff, libwebp: the command's other formats
#   sh tools/setup.sh test     the same, cmocka, python3
#   sh tools/setup.sh peers    the same, and what results are compared with
#   sh tools/setup.sh ci       the same, and every compiler and checker of .ci/run
set -u
want=${1:-demo}
missing=

program() { # NAME PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
header() { # NAME PACKAGE
    printf '#include <%s>\n' "$1" | "${CC:-cc}" -E -x c - >/dev/null 2>&1 || missing="$missing $2"
}
file() { # PATTERN PACKAGE
    ls $1 >/dev/null 2>&1 || missing="$missing $2"
}
library() { # NAME PACKAGE; found when a program runs
    for path in /usr/lib/*/$1 /usr/lib/$1 /usr/lib64/$1 /usr/local/lib/$1 /opt/homebrew/lib/$1; do
        [ ! -e "$path" ] || return 0
    done
    missing="$missing $2"
}

program "${CC:-cc}" gcc
header stdlib.h libc6-dev
case $want in demo | command) # the command's JPEG
    library 'libturbojpeg.*' libturbojpeg0
    ;;
esac
case $want in command | test | peers | ci)
    header spng.h libspng-dev
    header tiffio.h libtiff-dev
    header webp/encode.h libwebp-dev
    ;;
esac
case $want in test | peers | ci)
    header turbojpeg.h libturbojpeg0-dev
    header cmocka.h libcmocka-dev
    program python3 python3
    ;;
esac
case $want in peers | ci)
    program ffmpeg ffmpeg
    ;;
esac
case $want in peers)
    program "${CXX:-g++}" g++
    file /usr/include/opencv4/opencv2/dnn.hpp libopencv-dnn-dev
    ;;
esac
case $want in ci)
    program git git
    program valgrind valgrind
    program make make
    program g++ g++
    program clang clang
    program pkg-config pkg-config
    program cmake cmake
    program meson meson
    program ninja ninja-build
    python3 -c 'import numpy' 2>/dev/null || /usr/bin/python3 -c 'import numpy' 2>/dev/null \
        || missing="$missing python3-numpy" # tests/test_dlpack_python.py
    program hipcc hipcc
    file '/usr/include/hip/hip_runtime.h' libamdhip64-dev
    program x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
    program x86_64-w64-mingw32-g++ g++-mingw-w64-x86-64
    command -v wine64 >/dev/null 2>&1 || program /usr/lib/wine/wine64 wine64
    ;;
esac
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not found:$missing"
    echo "to have everything, run as root:  apt-get install -y --no-install-recommends$missing"
    exit 0
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >/dev/null 2>&1
apt_install() {
    apt-get install -qq -y --no-install-recommends "$@" </dev/null >/dev/null 2>&1
}
if ! apt_install $missing; then
    for package in $missing; do # one that this system lacks must not keep the others away
        apt_install "$package" || apt_install "${package%0}" || echo "could not be installed: $package" # Ubuntu: libturbojpeg
    done
fi
exit 0
