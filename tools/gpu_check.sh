#!/bin/sh
# tools/gpu_check.sh -- everything that needs a GPU, on a machine with nothing but make, a C compiler, Python and the
# CUDA toolkit: builds, runs the GPU tests, the reduced set under compute-sanitizer's four tools, then the benchmarks.
#
#   sh tools/gpu_check.sh [OUT]         OUT/gpu_check.log and OUT/gpu_check.json (default build/gpu_check)
#
# GPU=cuda (default), hip_on_nvidia; GPU_ARCH=native; JOBS; CHECK_PARTS="build tests sanitizer bench".
# Without cmocka the tests of the backend and of the engine are not built, and said to be skipped. The build that is
# there already may be checked with CHECK_PARTS="tests sanitizer bench" and BUILD.
# Exit status: 0 all passed, 1 not, 77 no device.
cd "$(dirname "$0")/.." || exit 1
GPU=${GPU:-cuda}
OUT=${1:-build/gpu_check}
BUILD=${BUILD:-build/$GPU}
PARTS=${CHECK_PARTS:-build tests sanitizer bench}
mkdir -p "$OUT"
LOG=$OUT/gpu_check.log
RESULTS=$OUT/results.txt
: > "$LOG"
: > "$RESULTS"

say() { echo "$*"; echo "$*" >> "$LOG"; }
has() { case " $PARTS " in *" $1 "*) true ;; *) false ;; esac; }
# note PART NAME VERDICT TEXT
note() { printf '%s\t%s\t%s\t%s\n' "$@" >> "$RESULTS"; say "$(printf '%-10s %-44s %-8s %s' "$@")"; }

# attempt PART NAME SECONDS COMMAND...: its exit status as a verdict, its output in the log.
attempt() {
    part=$1 name=$2 seconds=$3
    shift 3
    began=$(date +%s)
    timeout "$seconds" "$@" > "$OUT/last.txt" 2>&1
    status=$?
    { echo "---- $part $name: $*"; cat "$OUT/last.txt"; } >> "$LOG"
    text="$(($(date +%s) - began)) s"
    case $status in
    0) note "$part" "$name" passed "$text" ;;
    77) note "$part" "$name" skipped "$(tail -1 "$OUT/last.txt")" ;;
    *) note "$part" "$name" failed "$text, exit status $status"; grep -v '^\[ RUN\|^\[ *OK' "$OUT/last.txt" | tail -15 ;;
    esac
}

machine() {
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -4
    uname -srm
    ("${NVCC:-nvcc}" --version 2>/dev/null || /usr/local/cuda/bin/nvcc --version 2>/dev/null) | tail -1
    git rev-parse --short HEAD 2>/dev/null
    sed -n 2p gpustage.h
}
say "$(machine)"

if has build; then
    attempt build "GPU=$GPU" 600 make GPU="$GPU" BUILD="$BUILD" ${GPU_ARCH:+GPU_ARCH="$GPU_ARCH"} \
        -j"${JOBS:-$(nproc)}" gpu-check-build
fi

SPLIT=$BUILD/tests/split
# The engine's tests, which take their backend from the environment.
KIND=${GPU%%_*}
# A second device shows what forgets to say which one it means.
SECOND=$([ "$(nvidia-smi -L 2> /dev/null | grep -c GPU)" -gt 1 ] && echo "$KIND:device=1")
ENGINE=$(grep -l '"pipeline_kit.h"' tests/test_*.c | xargs grep -L KIT_NAMES_ITS_BACKENDS | sed 's|^tests/||; s|\.c$||')
if has tests; then
    for test in "$SPLIT/test_backend_gpu" "$SPLIT/test_pipeline_gpu" "$SPLIT/test_batch_gpu" "$SPLIT/test_graph" \
        "$SPLIT/test_graph_cache" "$SPLIT/test_graph_cache_faults" "$SPLIT/test_ring_streams" \
        "$SPLIT/test_ring_stream_faults"; do
        if [ -x "$test" ]; then attempt tests "$(basename "$test")" 120 "$test"
        else note tests "$(basename "$test")" skipped "not built: install libcmocka-dev"; fi
    done
    for on in $KIND $SECOND; do
        for name in $ENGINE; do
            [ -x "$SPLIT/$name" ] &&
                attempt tests "$name on $on" 120 env GPUSTAGE_TEST_BACKEND="$on" "$SPLIT/$name"
        done
    done
    for test in "$BUILD"/tests/gpu/test_*; do
        [ -x "$test" ] && attempt tests "$(basename "$test")" 240 "$test"
    done
    [ -x "$BUILD/examples/06_own_kernel" ] && attempt tests 06_own_kernel 60 "$BUILD/examples/06_own_kernel" "${GPU%%_*}"
    [ -x "$BUILD/examples/08_live" ] && attempt tests 08_live 60 "$BUILD/examples/08_live" "${GPU%%_*}"
    [ -x "$BUILD/examples/10_streams_and_graphs" ] &&
        attempt tests 10_streams_and_graphs 60 "$BUILD/examples/10_streams_and_graphs" "${GPU%%_*}"
    [ -x "$BUILD/examples/11_device_ring" ] &&
        attempt tests 11_device_ring 60 "$BUILD/examples/11_device_ring" "${GPU%%_*}"
    GPST_BUILD=$(cd "$BUILD" && pwd) attempt tests test_cli_gpu.py 120 python3 tests/test_cli_gpu.py
fi

# The reduced set: the device contract, the engine on the GPU, and of the kernels what their tests call --quick; those
# tests of the engine that do not look at clocks for memcheck alone: they have no kernels of their own. API errors are
# part of the contract's tests, so they are not counted; the test that makes a kernel trap is left out.
if has sanitizer; then
    export GPST_NO_TRAP=1
    for tool in memcheck racecheck initcheck synccheck; do
        more=
        [ $tool = memcheck ] && more="--leak-check full"
        # A child that imports its parent's memory has not seen it written.
        [ $tool = initcheck ] && more="--target-processes application-only"
        for test in "$SPLIT/test_backend_gpu" "$SPLIT/test_pipeline_gpu" "$SPLIT/test_batch_gpu" "$BUILD"/tests/gpu/test_*; do
            [ -x "$test" ] || continue
            quick=
            case $test in */gpu/*) quick=--quick ;; esac
            # shellcheck disable=SC2086
            attempt sanitizer "$tool $(basename "$test")" 90 compute-sanitizer --tool $tool $more \
                --report-api-errors no --error-exitcode 9 "$test" $quick
        done
    done
    for name in $ENGINE; do
        case $name in *tune*) continue ;; esac
        [ -x "$SPLIT/$name" ] &&
            attempt sanitizer "memcheck $name on $KIND" 90 env GPUSTAGE_TEST_BACKEND="$KIND" compute-sanitizer \
                --tool memcheck --leak-check full --report-api-errors no --error-exitcode 9 "$SPLIT/$name"
    done
    unset GPST_NO_TRAP
fi

if has bench; then
    for bench in "$BUILD"/bench/gpu_*; do
        [ -x "$bench" ] || continue
        name=$(basename "$bench")
        attempt bench "$name" 300 "$bench" --json "$OUT/bench_$name.json"
        cat "$OUT/last.txt"
    done
fi

python3 - "$OUT" <<'EOF'
import glob, json, os, sys
out = sys.argv[1]
with open(os.path.join(out, "results.txt"), encoding="utf-8") as stream:
    rows = [dict(zip(("part", "name", "verdict", "text"), line.rstrip("\n").split("\t"))) for line in stream]
with open(os.path.join(out, "gpu_check.log"), encoding="utf-8", errors="replace") as stream:
    machine = [next(stream, "").strip() for _ in range(5)]
benchmarks = {}
for path in sorted(glob.glob(os.path.join(out, "bench_*.json"))):
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
            lines = [line for line in text.splitlines() if line.strip()]
            # One document, or one a line.
            benchmarks[os.path.basename(path)[:-5]] = (json.loads(text) if len(lines) <= 1 or lines[0].strip() in "[{"
                                                       else [json.loads(line) for line in lines])
    except ValueError as error:
        benchmarks[os.path.basename(path)[:-5]] = str(error)
with open(os.path.join(out, "gpu_check.json"), "w", encoding="utf-8") as stream:
    json.dump({"machine": machine, "results": rows, "benchmarks": benchmarks}, stream, indent=1)
EOF
rm -f "$OUT/last.txt" "$RESULTS"
failed=$(grep -c '"verdict": "failed"' "$OUT/gpu_check.json")
say "$(grep -c '"verdict": "passed"' "$OUT/gpu_check.json") passed, $failed failed, $(grep -c '"verdict": "skipped"' "$OUT/gpu_check.json") skipped"
[ "$failed" = 0 ] || exit 1
grep -q '"verdict": "passed"' "$OUT/gpu_check.json" || exit 77
