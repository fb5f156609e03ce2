#!/usr/bin/env python3
"""tools/peers/ffmpeg_v360.py -- 8 views of an equirectangular picture against FFmpeg's v360 on gbrp. FFmpeg is a program
of its own, so the time is what its filter `bench` says of v360 less what it says of null: what it takes to start, to
make its maps and to have frames does not count. Its sources rotate as ours do: each has frames of its own, and those
that are new, and so have just been written, do not count. Lines of JSON for run.py; 77 when FFmpeg or the library is
not here."""
import re
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

SOURCE = "nullsrc=s=7680x3840:r=25:d=0.08,format=gbrp" # two frames, of which the second has the first's memory
VIEW = "v360=e:flat:w=1920:h=1080:h_fov=90:v_fov=58.7155:yaw=%d:interp=linear"


def graph(filters, n_sources):
    """Interleaves the sources, splits each picture and sends its copies through a filter each, between two clocks."""
    sources = "".join("%s[in%d];" % (SOURCE, i) for i in range(n_sources))
    joined = "".join("[in%d]" % i for i in range(n_sources)) + "interleave=nb_inputs=%d," % n_sources
    splits = "split=%d" % len(filters) + "".join("[s%d]" % i for i in range(len(filters)))
    return sources + joined + splits + ";" + ";".join(
        "[s%d]bench=start,%s,bench=stop[o%d]" % (i, text, i) for i, text in enumerate(filters))


def frame_s(filters, n_sources, threads):
    """A frame's time in all the filters: the mean of a round of sources, behind a first one."""
    command = ["ffmpeg", "-v", "info", "-nostats", "-nostdin", "-filter_complex_threads", str(threads),
               "-filter_complex", graph(filters, n_sources)]
    for i in range(len(filters)):
        command += ["-map", "[o%d]" % i, "-c:v", "wrapped_avframe", "-f", "null", "-"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    seconds = [float(text) for text in re.findall(r"\bt:([0-9.]+) avg:", done.stderr)]
    assert len(seconds) == 2 * n_sources * len(filters), done.stderr
    return sum(seconds[len(seconds) // 2:]) / n_sources


def compare(lib, version, threads):
    sources = [numpy.full((3840, 7680, 3), 7 * i, numpy.uint8) for i in range(peer.rotation(3840 * 7680 * 3))]
    outputs = [numpy.zeros((1080, 1920, 3), numpy.uint8) for _ in range(8)]
    warp = peer.views_warp(lib)

    def ours_s():
        begin = time.perf_counter()
        for source in sources:
            warp.run(source, (7680, 3840), peer.FORMAT_RGB, outputs, threads)
        return (time.perf_counter() - begin) / len(sources)

    views, nulls = [VIEW % (45 * i - 360 * (i > 4)) for i in range(8)], ["null"] * 8
    copy = peer.Copy(warp.moved((7680, 3840), peer.FORMAT_RGB), threads)

    def copy_s():
        begin = time.perf_counter()
        for turn in range(len(sources)):
            copy.run(turn)
        return (time.perf_counter() - begin) / len(sources)

    ours, theirs, copies = [], [], []
    for _ in range(peer.ROUNDS):
        ours.append(ours_s())
        theirs.append(frame_s(views, len(sources), threads) - frame_s(nulls, len(sources), threads))
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
