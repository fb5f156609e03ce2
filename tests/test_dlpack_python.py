#!/usr/bin/env python3
"""tests/test_dlpack_python.py -- examples/python/dlpack.py with the NumPy and the PyTorch that are there: what it
prints, and what it does not show: every dtype, axes in other orders, whose reference goes when.

Environment: GPST_BUILD (the build folder with libgpustage.so), GPST_SANITIZE (compiler flags: then nothing is run).
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("GPST_BUILD", os.path.join(ROOT, "build"))
LIBRARY = os.path.join(BUILD, "libgpustage.so")
EXAMPLES = os.path.join(ROOT, "examples", "python")
SYSTEM_PYTHON = "/usr/bin/python3"  # whose NumPy python3-numpy is, also where another Python comes first in PATH
failures = []


def skip(reason):
    print(reason)
    sys.exit(77)


def expect(condition, what):
    print("%s  %s" % ("ok  " if condition else "FAIL", what), flush=True)
    if not condition:
        failures.append(what)


if os.environ.get("GPST_SANITIZE"):
    skip("Python is not built with the sanitizers")
if not os.path.exists(LIBRARY):
    skip("no " + LIBRARY)
try:
    import numpy
except ImportError:
    if os.path.realpath(sys.executable) == os.path.realpath(SYSTEM_PYTHON) or not os.path.exists(SYSTEM_PYTHON):
        skip("no NumPy: install python3-numpy")
    os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)
try:
    import torch
except ImportError:
    torch = None
os.environ["GPUSTAGE_LIBRARY"] = LIBRARY
sys.path.insert(0, EXAMPLES)
sys.dont_write_bytecode = True
import dlpack as example  # noqa: E402


def check_what_it_prints():
    done = subprocess.run([sys.executable, "-B", os.path.join(EXAMPLES, "dlpack.py")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=100)
    text = done.stdout.decode("utf-8", "replace")
    print("".join("     | %s\n" % line for line in text.splitlines()), end="", flush=True)
    expect(done.returncode == 0 and re.search(r"^NumPy .* in gpustage's memory: True$", text, re.M), "NumPy's array")
    expect("refused: gpst_dlpack_import: strides[1]=6: from one pixel to the next" in text, "a gap between pixels")
    if torch:
        expect(re.search(r"^PyTorch .*, the same memory: True\nas planes: \(3, 240, 320\), the same pixels: True$",
                         text, re.M), "PyTorch's tensor")
    else:
        print("--    no PyTorch: only NumPy's arrays are checked", flush=True)
    expect("False" not in text, "nothing is false")


def image_of(view):
    return [getattr(view.image, name) for name in ("data", "width", "height", "pitch_bytes", "layout", "dtype")]


def check_arrays(library):
    """Where NumPy's arrays lie, in which order and how they are typed."""
    for k, dtype in enumerate(("uint8", "float16", "float32", "int8", "uint16"), 1):
        array = numpy.zeros((4, 5, 3), dtype)
        with example.Taken(library, array) as view:
            expect(image_of(view) == [array.ctypes.data, 5, 4, 15 * array.itemsize, example.HWC, k] and
                   view.image.format == example.FORMAT_RGB, dtype)
    array = numpy.zeros((4, 5, 3), numpy.uint8)
    with example.Taken(library, array[1:, 1:4]) as view:
        expect(image_of(view)[:4] == [array.ctypes.data + 18, 3, 3, 15], "a part of a picture")
    with example.Taken(library, array[::-1]) as view:
        expect(image_of(view)[:4] == [array.ctypes.data + 45, 5, 4, -15], "upside down")
    with example.Taken(library, array.transpose(2, 0, 1), example.CHW) as view:
        expect(image_of(view)[1:5] == [5, 4, 15, example.HWC], "interleaved with its axes as planes")
    with example.Taken(library, array[..., 0][:, ::3].copy()) as view:
        expect(image_of(view)[1:4] == [2, 4, 2], "two axes")
    with example.Taken(library, numpy.zeros((2, 3, 4, 5), numpy.float32), example.CHW) as view:
        expect((view.n_images, view.image_step_bytes, view.image.layout) == (2, 240, example.CHW), "several pictures")
    for wrong in (numpy.zeros((4, 5, 3), numpy.float64), numpy.zeros((4, 5, 3), numpy.int64), numpy.zeros(3, numpy.uint8)):
        before = sys.getrefcount(wrong)
        try:
            example.Taken(library, wrong)
            expect(False, "refused: %s %s" % (wrong.shape, wrong.dtype))
        except RuntimeError as error:
            expect("gpst_dlpack_import: " in str(error), "refused: %s" % error)
        expect(sys.getrefcount(wrong) == before, "what is refused is not held")


def check_references(library):
    """A consumer's array holds gpustage's memory, and gpustage an array that it was given, no longer than needed."""
    array = numpy.zeros((4, 5, 3), numpy.uint8)
    before = sys.getrefcount(array)
    with example.Taken(library, array):
        expect(sys.getrefcount(array) == before + 1, "an array is held while it is used")
    expect(sys.getrefcount(array) == before, "and not after that")
    given = example.on_host(library, example.frame_of(numpy))
    view = numpy.from_dlpack(given)
    expect(len(example.owners) == 1, "memory is held by the array")
    wanted = view.copy()
    del given
    expect(numpy.array_equal(view, wanted), "also when nobody else holds it")
    del view
    expect(not example.owners, "until it is gone")
    given = example.on_host(library, example.frame_of(numpy))
    given.__dlpack__()
    given.__dlpack__(max_version=(1, 0))
    expect(not example.owners, "capsules that nobody took give it back")


def check_torch(library):
    frame = example.frame_of(numpy)
    tensor = torch.from_numpy(frame)
    last = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    with example.Taken(library, last, example.CHW) as view:
        expect((view.image.layout, view.image.pitch_bytes, view.image.data) == (example.HWC, 60, last.data_ptr()),
               "channels_last is interleaved")
    with example.Taken(library, tensor) as view:
        expect(view.image.data == frame.ctypes.data, "a tensor of a NumPy array")
    given = example.on_host(library, tensor)
    seen = torch.from_dlpack(given)
    expect(seen.data_ptr() == given.owner.data and len(example.owners) == 1, "a tensor in gpustage's memory")
    del seen
    expect(not example.owners, "which it gives back")


def main():
    library = example.load()
    check_what_it_prints()
    check_arrays(library)
    check_references(library)
    if torch:
        check_torch(library)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
