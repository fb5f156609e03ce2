#!/usr/bin/env python3
"""tools/peers/argmax_torch.py -- gpst_mask_argmax, at the scores' size and enlarged, against PyTorch's interpolate and
argmax on the CPU. Lines of JSON for run.py; 77 when PyTorch or the library is not here."""
import sys

sys.dont_write_bytecode = True
import peer  # noqa: E402

try:
    import numpy
    import torch
except ImportError as error:
    peer.skip("%s: pip install torch numpy" % error)


def labels_of(scores, size):
    if tuple(scores.shape[-2:]) != size:
        scores = torch.nn.functional.interpolate(scores, size=size, mode="bilinear", align_corners=False)
    return scores.argmax(dim=1)


def compare(lib, work, side, size, threads):
    shape = (peer.N_CLASSES, side, side)
    random = numpy.random.default_rng(1)
    n = peer.rotation(4 * peer.N_CLASSES * side * side + size[0] * size[1])
    inputs = [random.standard_normal(shape, dtype=numpy.float32) for _ in range(n)]
    tensors = [torch.from_numpy(scores)[None] for scores in inputs]
    out = numpy.full(size, 0xa5, numpy.uint8)
    peer.argmax(lib, inputs[0], out, threads)
    apart = float((torch.from_numpy(out) != labels_of(tensors[0], size)[0]).sum()) / out.size
    if apart > 1e-4:
        sys.exit("%s: %g of the labels differ" % (work, apart))
    torch.set_num_threads(threads)
    peer.compare(work, "PyTorch %s CPU" % torch.__version__, threads, inputs[0].nbytes + out.nbytes,
                 lambda turn: peer.argmax(lib, inputs[turn % n], out, threads),
                 lambda turn: labels_of(tensors[turn % n], size))


def main():
    lib = peer.library()
    for threads in peer.thread_counts():
        compare(lib, "argmax", 512, (512, 512), threads)
        compare(lib, "upscale-argmax", 128, (1080, 1920), threads)


if __name__ == "__main__":
    main()
