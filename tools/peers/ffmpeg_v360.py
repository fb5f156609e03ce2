#!/usr/bin/env python3
"""tools/peers/ffmpeg_v360.py -- 8 views of an equirectangular picture against FFmpeg's v360 on gbrp. FFmpeg is a program
of its own, so its time is that of a run with v360 less one with null in its place, each of some frames less each of
one frame: what it takes to start and to make its maps does not count. Lines of JSON for run.py; 77 when FFmpeg or the
library is not here."""
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import peer  # noqa: E402

try:
    import numpy
except ImportError:
    peer.skip("no NumPy: pip install numpy")

N_FRAMES = 6
SOURCE = "nullsrc=s=7680x3840:r=25:d=%g,format=gbrp"
VIEW = "v360=e:flat:w=1920:h=1080:h_fov=90:v_fov=58.7155:yaw=%d:interp=linear"


def graph(filters):
    """Splits the picture and sends each part through its filter."""
    splits = "".join("[s%d]" % i for i in range(len(filters)))
    return "split=%d%s;" % (len(filters), splits) + ";".join(
        "[s%d]%s[o%d]" % (i, text, i) for i, text in enumerate(filters))


def run_s(filters, n_frames, threads):
    command = ["ffmpeg", "-v", "error", "-nostdin", "-filter_complex_threads", str(threads), "-filter_complex",
               (SOURCE % (n_frames / 25)) + "[in];[in]" + graph(filters)]
    for i in range(len(filters)):
        command += ["-map", "[o%d]" % i, "-c:v", "wrapped_avframe", "-f", "null", "-"]
    begin = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def frame_s(filters, threads):
    return (run_s(filters, N_FRAMES, threads) - run_s(filters, 1, threads)) / (N_FRAMES - 1)


def compare(lib, version, threads):
    sources = [numpy.full((3840, 7680, 3), 7 * i, numpy.uint8) for i in range(peer.rotation(3840 * 7680 * 3))]
    outputs = [numpy.zeros((1080, 1920, 3), numpy.uint8) for _ in range(8)]
    warp = peer.views_warp(lib)

    def ours_s():
        begin = time.perf_counter()
        for turn in range(N_FRAMES):
            warp.run(sources[turn % len(sources)], (7680, 3840), peer.FORMAT_RGB, outputs, threads)
        return (time.perf_counter() - begin) / N_FRAMES

    views, nulls = [VIEW % (45 * i - 360 * (i > 4)) for i in range(8)], ["null"] * 8
    copy = peer.Copy(warp.moved((7680, 3840), peer.FORMAT_RGB), threads)

    def copy_s():
        begin = time.perf_counter()
        for turn in range(N_FRAMES):
            copy.run(turn)
        return (time.perf_counter() - begin) / N_FRAMES

    ours, theirs, copies = [], [], []
    for _ in range(peer.ROUNDS):
        ours.append(ours_s())
        theirs.append(frame_s(views, threads) - frame_s(nulls, threads))
        copies.append(copy_s())
    peer.row("equirect", "FFmpeg %s v360 less null" % version, threads, ours, theirs, copies)


def main():
    if not shutil.which("ffmpeg"):
        peer.skip("no ffmpeg")
    lib = peer.library()
    first = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True).stdout.split()
    for threads in peer.thread_counts():
        compare(lib, first[2], threads)


if __name__ == "__main__":
    main()
