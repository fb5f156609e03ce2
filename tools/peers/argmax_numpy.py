#!/usr/bin/env python3
"""tools/peers/argmax_numpy.py -- gpst_mask_argmax against NumPy's argmax on the same scores.

    python3 tools/peers/argmax_numpy.py [--library build/libgpustage.so] [--rounds 11]

Both take turns in one process; inputs rotate over more than the last-level cache; medians are printed, with the share
of what memcpy reaches on the same bytes. 77 when NumPy or the library is not here.
"""
import argparse
import ctypes
import os
import statistics
import sys
import time

try:
    import numpy
except ImportError:
    print("no NumPy: pip install numpy")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
F16, F32, HWC, CHW = 2, 3, 1, 2
CACHE_BYTES = 96 << 20


class Logits(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("n_classes", ctypes.c_uint32), ("width", ctypes.c_uint32),
                ("height", ctypes.c_uint32), ("dtype", ctypes.c_int), ("layout", ctypes.c_int),
                ("pitch_bytes", ctypes.c_int64), ("plane_bytes", ctypes.c_int64)]


class Labels(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("pitch_bytes", ctypes.c_int64), ("width", ctypes.c_uint32),
                ("height", ctypes.c_uint32), ("n_classes", ctypes.c_uint32)]


def argmax(library, scores, layout, out, n_threads):
    """Scores (C, H, W) or (H, W, C) to labels out (H, W), enlarged where out is larger."""
    n_classes, height, width = scores.shape if layout == CHW else (scores.shape[2],) + scores.shape[:2]
    logits = Logits(scores.ctypes.data, n_classes, width, height, F16 if scores.itemsize == 2 else F32, layout, 0, 0)
    labels = Labels(out.ctypes.data, 0, out.shape[1], out.shape[0], n_classes)
    if library.gpst_mask_argmax(ctypes.byref(logits), ctypes.byref(labels), n_threads) < 0:
        raise RuntimeError(library.gpst_last_reason().decode())


def race(runners, inputs, rounds):
    """Median seconds of each runner; they take turns, and each sees every input."""
    seconds = {name: [] for name in runners}
    for turn in range(rounds + 1):
        for name, run in runners.items():
            scores = inputs[turn % len(inputs)]
            begin = time.perf_counter()
            run(scores)
            seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values[1:]) for name, values in seconds.items()}


def report(title, medians, pixels, peer):
    print(title)
    for name, value in medians.items():
        times = "%6.1fx NumPy" % (medians[peer] / value) if peer in medians else ""
        print("  %-22s %8.2f ms %8.2f ns/pixel %6.0f %% of memcpy %s"
              % (name, value * 1e3, value / pixels * 1e9, 100 * medians["memcpy"] / value, times))


def compare(library, dtype, layout, rounds):
    shape = (21, 512, 512) if layout == CHW else (512, 512, 21)
    axis = 0 if layout == CHW else 2
    random = numpy.random.default_rng(1)
    n = max(2, CACHE_BYTES // (21 * 512 * 512 * numpy.dtype(dtype).itemsize))
    inputs = [random.standard_normal(shape, dtype=numpy.float32).astype(dtype) for _ in range(n)]
    out, copy = numpy.full((512, 512), 0xa5, numpy.uint8), numpy.empty(shape, dtype)
    argmax(library, inputs[0], layout, out, 1)
    if not numpy.array_equal(out, numpy.argmax(inputs[0], axis=axis)):
        raise RuntimeError("results differ")
    report("argmax 21x512x512 %s %s" % (numpy.dtype(dtype).name, "CHW" if layout == CHW else "HWC"), race({
        "numpy": lambda scores: numpy.argmax(scores, axis=axis),
        "gpustage, 1 thread": lambda scores: argmax(library, scores, layout, out, 1),
        "gpustage, 2 threads": lambda scores: argmax(library, scores, layout, out, 2),
        "memcpy": lambda scores: numpy.copyto(copy, scores),
    }, inputs, rounds), 512 * 512, "numpy")


def enlarge(library, dtype, rounds):
    random = numpy.random.default_rng(2)
    inputs = [random.standard_normal((21, 128, 128), dtype=numpy.float32).astype(dtype) for _ in range(80)]
    out, copy = numpy.full((1080, 1920), 0xa5, numpy.uint8), numpy.empty((1080, 1920), numpy.uint8)
    source, target = numpy.empty((21, 128, 128), dtype), numpy.zeros((1080, 1920), numpy.uint8)

    def copies(scores):
        numpy.copyto(source, scores)
        numpy.copyto(copy, target)

    report("argmax 21x128x128 %s enlarged to 1920x1080" % numpy.dtype(dtype).name, race({
        "gpustage, 1 thread": lambda scores: argmax(library, scores, CHW, out, 1),
        "gpustage, 2 threads": lambda scores: argmax(library, scores, CHW, out, 2),
        "memcpy": copies,
    }, inputs, rounds), 1920 * 1080, "")


def main():
    parser = argparse.ArgumentParser(description="gpst_mask_argmax against NumPy.")
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "libgpustage.so"))
    parser.add_argument("--rounds", type=int, default=11, help="runs of each (default 11)")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.library):
        print("no %s: make" % arguments.library)
        return 77
    library = ctypes.CDLL(os.path.abspath(arguments.library))
    library.gpst_last_reason.restype = ctypes.c_char_p
    print("NumPy %s, %d CPUs, medians of %d" % (numpy.__version__, len(os.sched_getaffinity(0)), arguments.rounds))
    for layout in (CHW, HWC):
        for dtype in (numpy.float32, numpy.float16):
            compare(library, dtype, layout, arguments.rounds)
    for dtype in (numpy.float32, numpy.float16):
        enlarge(library, dtype, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
