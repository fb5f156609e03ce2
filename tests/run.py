#!/usr/bin/env python3
"""tests/run.py -- runs test programs, one process each, with a time limit, and counts what came of them.

Programs behind --on BACKEND are run with GPUSTAGE_TEST_BACKEND=BACKEND: the engine's tests on that backend.

Exit status of a test: 0 passed, 77 skipped (the last line it printed is the reason), anything else failed. Of a program
that passed without some of its cases it is said how many. What failed tests printed comes after all the others. The
closing line is `N passed, N failed, N skipped`. Needs Python 3.9 or later.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import signal
import subprocess
import sys
import time

SKIPPED = 77


def label(path, backend=None):
    """build/tests/split/test_ring -> split/test_ring; tests/test_examples.sh -> test_examples.sh"""
    parts = path.split("/")
    name = "/".join(parts[-2:]) if parts[-2:-1] in (["split"], ["amalgam"]) else parts[-1]
    return name + " on " + backend if backend else name


def command(path, under):
    if path.endswith(".py"):
        return [sys.executable, path]
    if path.endswith(".sh"):
        return ["sh", path]
    return under + [os.path.abspath(path)]


def run(path, seconds, under, backend):
    """(verdict, reason, output, seconds taken). The test and what it started are gone when this returns."""
    start = time.monotonic()
    environment = dict(os.environ, GPUSTAGE_TEST_BACKEND=backend) if backend else None
    try:
        child = subprocess.Popen(command(path, under), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True, env=environment)
    except OSError as error:
        return "failed", str(error), "", 0.0
    try:
        output, _ = child.communicate(timeout=seconds)
        late = False
    except subprocess.TimeoutExpired:
        late = True
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
    text = output.decode("utf-8", "replace")
    taken = time.monotonic() - start
    lines = text.strip().splitlines()
    if late:
        return "failed", "no end within %d s" % seconds, text, taken
    if child.returncode == 0:
        n_skipped = sum(map(int, re.findall(r"^\[  SKIPPED \] (\d+) test", text, re.MULTILINE)))
        return "passed", "without %d of its cases" % n_skipped if n_skipped else "", text, taken
    if child.returncode == SKIPPED:
        return "skipped", lines[-1].strip() if lines else "no reason given", text, taken
    if child.returncode < 0:
        return "failed", "killed by %s" % signal.Signals(-child.returncode).name, text, taken
    return "failed", "exit status %d" % child.returncode, text, taken


def main():
    parser = argparse.ArgumentParser(description="Runs test programs and counts what came of them.")
    parser.add_argument("tests", nargs="*", help="executables, .py or .sh files")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of one test (default 120)")
    parser.add_argument("--jobs", type=int, default=1, help="tests at once (default 1)")
    parser.add_argument("--floor", type=int, default=0, help="fail when fewer tests than this were executed")
    parser.add_argument("--under", default="", metavar="COMMAND", help="run programs under this: \"valgrind -q\"")
    parser.add_argument("--beside", default="", metavar="COMMAND", help="keep this running meanwhile: \"busy 40 25\"")
    parser.add_argument("--on", nargs="+", default=[], metavar=("BACKEND", "TEST"), help="run these on that backend")
    parser.add_argument("--skip", action="append", default=[], metavar="TEST=REASON", help="count as skipped")
    arguments = parser.parse_args()
    skips = [text.partition("=") for text in arguments.skip]
    tests = [(path, None) for path in arguments.tests] + [(path, arguments.on[0]) for path in arguments.on[1:]]
    if arguments.list:
        for path, backend in tests + [(path, None) for path, _, _ in skips]:
            print(label(path, backend))
        return 0

    limit = arguments.seconds * float(os.environ.get("GPST_TIME_FACTOR", "1"))
    count = {"passed": 0, "failed": 0, "skipped": len(skips)}
    failures = []
    beside = subprocess.Popen(shlex.split(arguments.beside)) if arguments.beside else None
    for path, _, reason in skips:
        print("skipped %-40s %s" % (label(path), reason))
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        running = {pool.submit(run, path, limit, shlex.split(arguments.under), backend): label(path, backend)
                   for path, backend in tests}
        for done in concurrent.futures.as_completed(running):
            verdict, reason, output, taken = done.result()
            count[verdict] += 1
            print("%-7s %-40s %6.1f s  %s" % (verdict, running[done], taken, reason), flush=True)
            if verdict == "failed":
                failures.append((running[done], reason, output.splitlines()[-200:]))
    for name, reason, lines in failures:
        print("---- failed: %s, %s" % (name, reason))
        print("".join("    | %s\n" % line for line in lines), end="", flush=True)
    if beside and beside.poll() is not None:
        print("\"%s\" did not go on beside the tests: exit status %d" % (arguments.beside, beside.returncode))
        count["failed"] += 1
    elif beside:
        beside.terminate()
        beside.wait()
    executed = count["passed"] + count["failed"]
    if executed < arguments.floor:
        print("only %d executed, at least %d are expected" % (executed, arguments.floor))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
    return 1 if count["failed"] or executed < arguments.floor else 0


if __name__ == "__main__":
    sys.exit(main())
