"""tools/peers/peer.py -- what the peer scripts share: the library over ctypes, rounds that are interleaved, and a line of
JSON for a comparison. run.py makes the table."""
import concurrent.futures
import ctypes
import json
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "examples", "python"))
# The one copy of the structs.
from reproject import FORMAT_RGB, MAP_EQUIRECT, Image, View, WarpDesc, check, load  # noqa: E402,F401

ROUNDS = int(os.environ.get("PEER_ROUNDS", "11"))
SAMPLE_S = 0.03
N_CLASSES = 21
F32, CHW, MAP_RESIZE, FORMAT_BGR, FORMAT_NV12 = 3, 2, 1, 3, 6


class Logits(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("n_classes", ctypes.c_uint32), ("width", ctypes.c_uint32),
                ("height", ctypes.c_uint32), ("dtype", ctypes.c_int), ("layout", ctypes.c_int),
                ("pitch_bytes", ctypes.c_int64), ("plane_bytes", ctypes.c_int64)]


class Labels(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("pitch_bytes", ctypes.c_int64), ("width", ctypes.c_uint32),
                ("height", ctypes.c_uint32), ("n_classes", ctypes.c_uint32)]


def skip(reason):
    print(reason)
    sys.exit(77)


def library():
    try:
        return load()
    except OSError as error:
        return skip("no libgpustage.so: make (%s)" % error)


def cores():
    return len(os.sched_getaffinity(0))


def thread_counts():
    return sorted({1, cores()})


def rotation(bytes_each):
    """How many inputs of this size are more than the last cache."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size", encoding="ascii") as file:
            last = int(file.read().strip().rstrip("K")) << 10
    except (OSError, ValueError):
        last = 64 << 20
    return max(2, 1 + last * 3 // 2 // bytes_each)


def argmax(lib, scores, out, n_threads):
    """Scores (C, H, W), f32, to labels out (H, W), enlarged where out is larger; NumPy arrays."""
    logits = Logits(scores.ctypes.data, scores.shape[0], scores.shape[2], scores.shape[1], F32, CHW, 0, 0)
    labels = Labels(out.ctypes.data, 0, out.shape[1], out.shape[0], scores.shape[0])
    check(lib, lib.gpst_mask_argmax(ctypes.byref(logits), ctypes.byref(labels), n_threads))


def race(contestants):
    """Seconds a piece of work, a list for each; contestants are called with a turn, in turn."""
    turn, pieces, seconds = 0, [], [[] for _ in contestants]
    for run in contestants:
        run(0)
        begin = time.perf_counter()
        run(1)
        pieces.append(1 + int(SAMPLE_S / max(time.perf_counter() - begin, 1e-6)))
    for _ in range(ROUNDS):
        for run, n, times in zip(contestants, pieces, seconds):
            begin = time.perf_counter()
            for _ in range(n):
                run(turn)
                turn += 1
            times.append((time.perf_counter() - begin) / n)
    return seconds


class Copy:
    """memcpy of what a work moves: half of the bytes read, half of them written, on as many threads."""

    def __init__(self, moved, threads):
        self.bytes, self.threads = moved // 2, threads
        self.pairs = [[ctypes.create_string_buffer(self.bytes) for _ in range(2)] for _ in range(rotation(self.bytes))]
        for pair in self.pairs:
            for side, buffer in enumerate(pair): # every page is there before the clock runs
                ctypes.memset(buffer, 1 + side, self.bytes)
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)

    def part(self, turn, i):
        source, target = self.pairs[turn % len(self.pairs)]
        begin, end = self.bytes * i // self.threads, self.bytes * (i + 1) // self.threads
        ctypes.memmove(ctypes.addressof(target) + begin, ctypes.addressof(source) + begin, end - begin)

    def run(self, turn):
        if self.threads == 1:
            self.part(turn, 0)
        else:
            list(self.pool.map(self.part, [turn] * self.threads, range(self.threads)))


def row(work, peer, threads, ours_s, theirs_s, memcpy_s, psnr_db=None):
    """Prints the line."""
    print(json.dumps({"work": work, "peer": peer, "threads": threads, "psnr_db": psnr_db, "ours_s": ours_s,
                      "theirs_s": theirs_s, "memcpy_s": memcpy_s}))
    sys.stdout.flush()


def compare(work, peer, threads, moved, ours, theirs, psnr_db=None):
    """Runs both and a copy of the bytes moved in turn and prints the line."""
    row(work, peer, threads, *race([ours, theirs, Copy(moved, threads).run]), psnr_db)


# ---- warps ------------------------------------------------------------------------------
class Warp:
    """A warp of the library; run() takes a source and the outputs, NumPy arrays of whole pictures."""

    def __init__(self, lib, desc):
        self.lib, self.desc, self.handle = lib, desc, ctypes.c_void_p()
        check(lib, lib.gpst_warp_create_versioned(lib.gpst_version(), ctypes.sizeof(desc), ctypes.byref(desc), None,
                                                  ctypes.byref(self.handle)))

    def moved(self, size, source_format):
        """Bytes read and written for a source of this size."""
        read, written = ctypes.c_uint64(), ctypes.c_uint64()
        image = Image(width=size[0], height=size[1], format=source_format)
        self.lib.gpst_warp_query_bytes(self.handle, ctypes.byref(image), ctypes.byref(read), ctypes.byref(written))
        return read.value + written.value

    def run(self, source, size, source_format, outputs, n_threads):
        """source holds a picture of size (width, height) in source_format."""
        from_image = Image(data=source.ctypes.data, width=size[0], height=size[1], format=source_format)
        to_images = (Image * len(outputs))(*[
            Image(data=output.ctypes.data, width=self.desc.width, height=self.desc.height, format=self.desc.format,
                  dtype=self.desc.dtype, layout=self.desc.layout) for output in outputs])
        check(self.lib, self.lib.gpst_warp_run(self.handle, ctypes.byref(from_image), to_images, len(outputs),
                                               n_threads))


def views_warp(lib):
    """8 views of 1920x1080 from an equirectangular picture."""
    views = (View * 8)(*[View(yaw=45.0 * i) for i in range(8)])
    return Warp(lib, WarpDesc(map=MAP_EQUIRECT, views=views, n_views=8, width=1920, height=1080, format=FORMAT_RGB))


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def tensor_warp(lib):
    """512x512 f32 CHW RGB with mean and std."""
    scale = (ctypes.c_float * 4)(*[1 / (255 * s) for s in STD])
    bias = (ctypes.c_float * 4)(*[-m / s for m, s in zip(MEAN, STD)])
    return Warp(lib, WarpDesc(map=MAP_RESIZE, width=512, height=512, format=FORMAT_RGB, dtype=F32, layout=CHW,
                              has_scale=True, scale=scale, bias=bias))
