#!/usr/bin/env python3
"""tools/peers/gpu.py -- our kernels and those of other projects on one GPU, in turns, and the table of it.

    python3 tools/peers/gpu.py [--rounds N] [--seconds S] PROGRAM...

PROGRAM: gpu_kernels, gpu_mask, npp_gpu, torch_gpu.py, torch_gpu_mask.py: each prints a line a case, its
median in us. They run one after the other, N rounds, fewer where the time is up. The first table has every case: the
median of its rounds (smallest..largest); the second has the ratios that are asked, taken round by round.
"""
import argparse
import re
import statistics
import subprocess
import sys
import time

LINE = re.compile(r"(.+?) +([0-9.]+) us  \([^)]*\)(?:.* ([0-9.]+) % of copy)?")
# What it is, ours, theirs, their times for one of ours, what is asked.
ASKED = (
    ("8 level views u8, NPP remap with ready maps", "equirect 7680x3840 rgb8 -> 8 level views u8",
     "npp: remap 7680x3840 rgb8 -> 8 views u8", 1, "2, aim 3"),
    ("8 level views f16 CHW, grid_sample and arithmetic", "equirect 7680x3840 rgb8 -> 8 level views f16 chw",
     "torch: grid_sample f16 planes -> 8 views f16, normalised", 1, "5"),
    ("32 frames to tensors, torch.compile", "32 x 1080p bgr8 -> 512^2 f32 chw",
     "torch: compile, 32 x 1080p bgr8 -> 512^2 f32 chw", 1, "1.6"),
    ("32 frames to tensors, NPP's chain", "32 x 1080p bgr8 -> 512^2 f32 chw",
     "npp: 1 x 1080p bgr8 -> 512^2 f32 chw, six calls", 32, "12"),
    ("one frame, launch to done, an empty launch", "1 x 1080p bgr8 -> 512^2 f32 chw, launch to done",
     "an empty launch, launch to done, spinning", 1, "at least 0.5"),
    ("argmax 8 x 21 x 512 x 512, torch argmax", "argmax 8 x 21 x 512 x 512 f32 CHW",
     "torch: argmax 8 x 21 x 512 x 512 f32 CHW", 1, "-"),
    ("argmax enlarged to 1080p, interpolate + argmax", "argmax 21 x 128 x 128 f32 to 1080p",
     "torch: interpolate + argmax to 1080p f32", 1, "10"),
    ("the same, theirs to u8 as ours", "argmax 21 x 128 x 128 f32 to 1080p",
     "torch: interpolate + argmax to 1080p f32 to u8", 1, "10"),
)


def run(path):
    """{case: (us, share of the copy or None)} of one program; its first lines and what failed are printed."""
    command = [sys.executable, path] if path.endswith(".py") else ["./" + path if "/" not in path else path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print("%s: exit status %d: %s" % (path, done.returncode, done.stdout.strip()[-200:]), flush=True)
    found = {}
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match:
            found[match.group(1).strip()] = float(match.group(2)), match.group(3)
        elif not found:
            print(line, flush=True)
    return found


def spread(values, digits):
    ordered = sorted(values)
    return "%.*f (%.*f..%.*f)" % (digits, statistics.median(ordered), digits, ordered[0], digits, ordered[-1])


def print_tables(rounds):
    cases = {case: None for found in rounds for case in found}
    print("| one launch | us | % of copy |\n| --- | --- | --- |")
    for case in cases:
        values = [found[case] for found in rounds if case in found]
        shares = [float(share) for _, share in values if share]
        print("| %s | %s | %s |" % (case, spread([us for us, _ in values], 2), spread(shares, 1) if shares else ""))
    print("\n| ours, theirs | theirs / ours | asked |\n| --- | --- | --- |")
    for what, ours, theirs, times, asked in ASKED:
        ratios = [times * found[theirs][0] / found[ours][0] for found in rounds if ours in found and theirs in found]
        if ratios:
            print("| %s | %s | %s |" % (what, spread(ratios, 2), asked))


def main():
    parser = argparse.ArgumentParser(description="Our kernels and others' on one GPU, in turns.")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600, help="no round begins that would end later")
    arguments = parser.parse_args()
    rounds, begin = [], time.monotonic()
    while len(rounds) < arguments.rounds:
        last = time.monotonic()
        found = {}
        for path in arguments.programs:
            found.update(run(path))
        rounds.append(found)
        now = time.monotonic()
        print("round %d: %.0f s" % (len(rounds), now - last), flush=True)
        if now - begin + (now - last) > arguments.seconds:
            break
    print_tables(rounds)


if __name__ == "__main__":
    main()
