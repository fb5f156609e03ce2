#!/usr/bin/env python3
"""tools/peers/opencv_wheel.py -- the work of tools/peers/opencv.cpp against the OpenCV that Python has (PyPI's wheel).
Lines of JSON for run.py; 77 when it or the library is not here."""
import sys

sys.dont_write_bytecode = True
import peer  # noqa: E402

try:
    import cv2
    import numpy
except ImportError as error:
    peer.skip("%s: pip install opencv-python-headless" % error)

NAME = "OpenCV %s wheel, " % cv2.__version__
MEANS = [255 * mean for mean in peer.MEAN]


def pictures(shape):
    """Noise, more of it than the last cache holds."""
    random = numpy.random.default_rng(1)
    first = random.integers(0, 256, shape, numpy.uint8)
    return [numpy.roll(first, 7 * i) for i in range(peer.rotation(first.size))]


def view_maps(yaw, width=1920, height=1080, source=(7680, 3840)):
    """Where OpenCV looks for the pixels of a view, 90 degrees wide: half-pixel centres on both sides."""
    x = (2 * numpy.arange(width) + 1 - width) / width
    y = (2 * numpy.arange(height)[:, None] + 1 - height) / width
    azimuth = numpy.arctan2(x, numpy.ones_like(x))[None, :] + numpy.radians(yaw)
    down = numpy.arctan2(y, numpy.hypot(1.0, x)[None, :])
    u = (azimuth / (2 * numpy.pi) + 0.5) % 1.0 * source[0] - 0.5
    v = (down / numpy.pi + 0.5) * source[1] - 0.5
    u, v = numpy.broadcast_arrays(u, v)
    return cv2.convertMaps(u.astype(numpy.float32), v.astype(numpy.float32), cv2.CV_16SC2)


def compare_remap(lib, threads):
    sources = pictures((3840, 7680, 3))
    outputs = [[numpy.zeros((1080, 1920, 3), numpy.uint8) for _ in range(8)] for _ in sources]
    maps, warp = [view_maps(45.0 * i) for i in range(8)], peer.views_warp(lib)

    def ours(turn):
        at = turn % len(sources)
        warp.run(sources[at], (7680, 3840), peer.FORMAT_RGB, outputs[at], threads)

    def theirs(turn):
        at = turn % len(sources)
        for output, (xy, fraction) in zip(outputs[at], maps):
            cv2.remap(sources[at], xy, fraction, cv2.INTER_LINEAR, output, cv2.BORDER_WRAP)

    ours(0)
    mine = outputs[0][1].astype(numpy.float64)
    theirs(0)
    decibels = 10 * numpy.log10(255.0 ** 2 / numpy.mean((mine - outputs[0][1]) ** 2))
    moved = warp.moved((7680, 3840), peer.FORMAT_RGB)
    peer.compare("equirect", NAME + "remap, fixed-point maps", threads, moved, ours, theirs, decibels)


def blob_of(picture):
    return cv2.dnn.blobFromImage(picture, 1 / 255.0, (512, 512), MEANS, True, False, cv2.CV_32F)


def chain_of(picture, tensor):
    wide = cv2.cvtColor(cv2.resize(picture, (512, 512)), cv2.COLOR_BGR2RGB).astype(numpy.float32)
    planes = cv2.split(cv2.multiply(wide, (1 / 255.0,) * 3, dst=wide))
    for c, plane in enumerate(planes):
        cv2.subtract(plane, peer.MEAN[c], plane)
        cv2.divide(plane, peer.STD[c], tensor[c])


def compare_tensor(lib, threads, nv12):
    sources = pictures((1620, 1920) if nv12 else (1080, 1920, 3))
    tensors = [numpy.zeros((3, 512, 512), numpy.float32) for _ in sources]
    warp, source_format = peer.tensor_warp(lib), peer.FORMAT_NV12 if nv12 else peer.FORMAT_BGR

    def ours(turn):
        at = turn % len(sources)
        warp.run(sources[at], (1920, 1080), source_format, [tensors[at]], threads)

    def blob(turn):
        picture = sources[turn % len(sources)]
        blob_of(cv2.cvtColor(picture, cv2.COLOR_YUV2BGR_NV12) if nv12 else picture)

    def chain(turn):
        at = turn % len(sources)
        chain_of(sources[at], tensors[at])

    moved = warp.moved((1920, 1080), source_format)
    if nv12:
        peer.compare("tensor-nv12", NAME + "cvtColor, dnn.blobFromImage (one scale)", threads, moved, ours, blob)
        return
    peer.compare("tensor", NAME + "dnn.blobFromImage (one scale)", threads, moved, ours, blob)
    peer.compare("tensor", NAME + "resize cvtColor astype split subtract divide", threads, moved, ours, chain)


def main():
    lib = peer.library()
    for threads in peer.thread_counts():
        cv2.setNumThreads(threads)
        compare_remap(lib, threads)
        compare_tensor(lib, threads, False)
        compare_tensor(lib, threads, True)


if __name__ == "__main__":
    main()
