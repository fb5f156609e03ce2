#!/usr/bin/env python3
"""tools/peers/run.py -- every peer program that is here, and the table of what they measured.

    make peers
    python3 tools/peers/run.py [--json FILE] [PROGRAM...]

PROGRAM: build/peers/opencv, tools/peers/*.py; without any, all of them. Each prints a line of JSON for a comparison
(work, peer, threads, psnr_db, ours_s, theirs_s, memcpy_s: a sample a round, rounds interleaved), or ends with 77 and
says what is missing. Ratios are taken round by round; medians (smallest..largest), and where the median of the ratios
lies at 95 %. PEER_ROUNDS=N in the environment: so many rounds of the scripts.
"""
import argparse
import glob
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
HELPERS = ("run.py", "peer.py", "gpu.py", "colmap.py")


def programs(build):
    """Those built, then the scripts."""
    built = [path for path in sorted(glob.glob(os.path.join(build, "peers", "*"))) if os.access(path, os.X_OK)]
    scripts = sorted(glob.glob(os.path.join(HERE, "*.py")))
    return built + [path for path in scripts if os.path.basename(path) not in HELPERS]


def run(path):
    """The rows of one program; None where it failed."""
    command = [sys.executable, path] if path.endswith(".py") else [path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        print("skipped %s: %s" % (os.path.basename(path), done.stdout.strip()), file=sys.stderr)
        return []
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        print("failed %s: exit status %d" % (os.path.basename(path), done.returncode), file=sys.stderr)
        return None
    return rows


def spread(values, scale, digits):
    return "%.*f (%.*f..%.*f)" % (digits, scale * statistics.median(values), digits, scale * min(values),
                                  digits, scale * max(values))


def median_range(values):
    """Where the median lies at 95 %: the innermost two of the sorted values that have it between them so often."""
    ordered, outside, i = sorted(values), 0.0, 0
    while i < (len(ordered) - 1) // 2:
        outside += 2 * math.comb(len(ordered), i) / 2 ** len(ordered)
        if outside > 0.05:
            break
        i += 1
    i = max(i - 1, 0)
    return "%.2f..%.2f" % (ordered[i], ordered[-1 - i])


def print_row(row):
    ours = row["ours_s"]
    ratios = [theirs / mine for theirs, mine in zip(row["theirs_s"], ours)]
    share = "-"
    if row.get("memcpy_s"):
        share = spread([copy / mine for copy, mine in zip(row["memcpy_s"], ours)], 100, 0)
    psnr = "-" if row.get("psnr_db") is None else "%.1f" % row["psnr_db"]
    print("| %s | %s | %d | %s | %s | %s | %s | %s | %s |" % (
        row["work"], row["peer"], row["threads"], spread(ours, 1e3, 2), spread(row["theirs_s"], 1e3, 2),
        spread(ratios, 1, 2), median_range(ratios), share, psnr))


def main():
    parser = argparse.ArgumentParser(description="Our kernels against other projects'.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--build", metavar="DIR", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json", metavar="FILE", help="all rows with all samples")
    arguments = parser.parse_args()
    rows, failed = [], False
    print("| work | peer | threads | ours ms | peer ms | times ours | its 95 % | % of memcpy | PSNR dB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in arguments.programs or programs(arguments.build):
        found = run(path)
        failed = failed or found is None
        for row in found or []:
            print_row(row)
        sys.stdout.flush()
        rows += found or []
    if arguments.json:
        with open(arguments.json, "w", encoding="ascii") as file:
            json.dump(rows, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
