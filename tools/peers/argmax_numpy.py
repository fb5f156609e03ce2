#!/usr/bin/env python3
"""tools/peers/argmax_numpy.py -- gpst_mask_argmax against NumPy's argmax on the same scores. Lines of JSON for run.py; 77
when NumPy or the library is not here."""
import sys

sys.dont_write_bytecode = True
import peer  # noqa: E402

try:
    import numpy
except ImportError:
    peer.skip("no NumPy: pip install numpy")


def main():
    lib = peer.library()
    shape = (peer.N_CLASSES, 512, 512)
    random = numpy.random.default_rng(1)
    inputs = [random.standard_normal(shape, dtype=numpy.float32) for _ in range(peer.rotation(4 * 21 * 512 * 512))]
    out = numpy.full(shape[1:], 0xa5, numpy.uint8)
    peer.argmax(lib, inputs[0], out, 1)
    if not numpy.array_equal(out, numpy.argmax(inputs[0], axis=0)):
        sys.exit("results differ")
    for threads in peer.thread_counts():
        peer.compare("argmax", "NumPy %s argmax (1 thread)" % numpy.__version__, threads, inputs[0].nbytes + out.nbytes,
                     lambda turn, n=threads: peer.argmax(lib, inputs[turn % len(inputs)], out, n),
                     lambda turn: numpy.argmax(inputs[turn % len(inputs)], axis=0))


if __name__ == "__main__":
    main()
