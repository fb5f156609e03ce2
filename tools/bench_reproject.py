#!/usr/bin/env python3
"""tools/bench_reproject.py -- the main job measured: JPEG frames to 8 views each, in several ways.

Ways: both plain loops, "everything" (what GPU pipelines switch on first, whether it pays or not: page-locked memory, a
stream for each of three slots, one thread that reads ahead, one that decodes beside one that encodes, one that writes),
"engine" (the engine with its knobs where they are) and "gpustage" (what one gets who asks for nothing). Runs are
interleaved; figures are medians with min and max. Prints a Markdown table and, with --json, all of it.
usage: tools/bench_reproject.py [--rounds N] [--frames DIR] [--repeat WAY=N]... [--ways A,B] [--backends cpu,cuda]
                                [--json FILE] [-- FLAGS FOR reproject]
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
COMMAND = os.path.join(os.environ.get("GPST_BUILD", os.path.join(ROOT, "build")), "gpustage")
WAYS = {
    "plain-serial": ["--plain=serial"],
    "plain-inside": ["--plain=inside"],
    "everything": ["--tune", "off", "--slots", "3", "--readers", "1", "--workers", "2", "--writers", "1"],
    "engine": ["--tune", "off"],
    "gpustage": [],
}
VIEWS = 8


def links(frames, times, folder):
    """The directory of all frames, each as often as wanted: hard links, so the page cache holds them once."""
    os.mkdir(folder)
    for name in sorted(os.listdir(frames)):
        stem, extension = os.path.splitext(name)
        for i in range(times):
            os.link(os.path.join(frames, name), os.path.join(folder, "%s_%03d%s" % (stem, i, extension)))
    return folder


def run(frames, times, flags):
    """The --stats of one run, with its peak RSS in MiB."""
    out = tempfile.mkdtemp(prefix=".gpustage-bench-", dir=os.path.dirname(os.path.abspath(frames)))
    stats = os.path.join(out, "stats.json")
    try:
        command = [COMMAND, "reproject", links(frames, times, os.path.join(out, "in")), "-o", os.path.join(out, "views"),
                   "--views", str(VIEWS), "--quiet", "--stats", stats] + flags
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


def table(backend, runs):
    print("\n| backend | way | items | items/s | views/s | efficiency | cpu share | gpu share | peak RSS MiB | after freeze |")
    print("| --- " * 10 + "|")
    for way, done in runs.items():
        print("| %s | %s | %d | %s | %.0f | %s | %.2f | %.3f | %.0f | %d |" % (
            backend, way, done[0]["items"]["ok"], spread([r["items_per_s"] for r in done]),
            VIEWS * statistics.median(r["items_per_s"] for r in done),
            spread([r["verdict"]["efficiency"] for r in done]),
            statistics.median(r["verdict"]["share"]["cpu"] for r in done),
            statistics.median(r["verdict"]["share"]["gpu"] for r in done),
            max(r["peak_rss_mib"] for r in done), max(r["allocations_after_freeze"] for r in done)))
    for way, done in runs.items():
        print("\n%s, %s: %s" % (backend, way, done[-1]["verdict"]["text"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", default=os.path.join(ROOT, "build", "demo", "in"))
    parser.add_argument("--repeat", action="append", default=[], metavar="WAY=N", help="every frame N times in this way")
    parser.add_argument("--ways", default="plain-serial,plain-inside,gpustage")
    parser.add_argument("--backends", default="auto")
    parser.add_argument("--json")
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    repeat = {way: int(n) for way, _, n in (text.partition("=") for text in arguments.repeat)}
    backends, ways = arguments.backends.split(","), arguments.ways.split(",")
    runs = {backend: {way: [] for way in ways} for backend in backends}
    for _ in range(arguments.rounds):
        for backend in backends:
            for way in ways:
                runs[backend][way].append(run(arguments.frames, repeat.get(way, 1),
                                              WAYS[way] + ["--backend", backend] + arguments.flags))
    print("%s, %d cores; %d rounds interleaved; %s" % (platform.processor() or platform.machine(), os.cpu_count(),
                                                       arguments.rounds, runs[backends[0]][ways[0]][0]["version"]))
    for backend in backends:
        table(backend, runs[backend])
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as stream:
            json.dump(runs, stream, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
