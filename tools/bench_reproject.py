#!/usr/bin/env python3
"""tools/bench_reproject.py -- the main job measured: 24 JPEG frames to 8 views each, engine against both plain loops.

Runs are interleaved; figures are medians with min and max. Prints a Markdown table and, with --json, all of it.
usage: tools/bench_reproject.py [--rounds N] [--frames DIR] [--json FILE] [-- FLAGS FOR reproject]
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = os.path.join(ROOT, "build", "gpustage")
MODES = {"plain-serial": ["--plain=serial"], "plain-inside": ["--plain=inside"], "engine": []}


def run(frames, flags):
    """The --stats of one run, with its peak RSS in MiB."""
    out = tempfile.mkdtemp(prefix="gpustage-bench-")
    stats = os.path.join(out, "stats.json")
    try:
        command = [COMMAND, "reproject", frames, "-o", os.path.join(out, "views"), "--views", "8", "--quiet",
                   "--stats", stats] + flags
        child = subprocess.Popen(command)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit("bench_reproject.py: %s: status %d" % (" ".join(command), status))
        with open(stats, encoding="utf-8") as stream:
            figures = json.load(stream)
        figures["peak_rss_mib"] = usage.ru_maxrss / 1024
        return figures
    finally:
        shutil.rmtree(out)


def spread(values):
    return "%.3f (%.3f..%.3f)" % (statistics.median(values), min(values), max(values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", default=os.path.join(ROOT, "build", "demo", "in"))
    parser.add_argument("--json")
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    runs = {mode: [] for mode in MODES}
    for _ in range(arguments.rounds):
        for mode, flags in MODES.items():
            runs[mode].append(run(arguments.frames, flags + arguments.flags))
    print("%s, %d cores; %d rounds interleaved; %s" % (platform.processor() or platform.machine(), os.cpu_count(),
                                                       arguments.rounds, runs["engine"][0]["version"]))
    print("\n| mode | wall s | items/s | efficiency | cpu share | peak RSS MiB | after freeze |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for mode, list_of_runs in runs.items():
        print("| %s | %s | %s | %s | %s | %.0f | %s |" % (
            mode, spread([r["wall_s"] for r in list_of_runs]), spread([r["items_per_s"] for r in list_of_runs]),
            spread([r["verdict"]["efficiency"] for r in list_of_runs]),
            spread([r["verdict"]["share"]["cpu"] for r in list_of_runs]),
            max(r["peak_rss_mib"] for r in list_of_runs),
            max(r.get("allocations_after_freeze", -1) for r in list_of_runs)))
    for mode in ("plain-serial", "plain-inside"):
        ratios = [a["wall_s"] / b["wall_s"] for a, b in zip(runs[mode], runs["engine"])]
        print("\nengine against %s: %sx" % (mode, spread(ratios)))
    print("\nverdict of the last engine run: %s" % runs["engine"][-1]["verdict"]["text"])
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as stream:
            json.dump(runs, stream, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
