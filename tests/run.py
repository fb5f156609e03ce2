#!/usr/bin/env python3
"""tests/run.py -- runs test programs, one process each, with a time limit, and counts what came of their cases.

Programs behind --on BACKEND are run with GPUSTAGE_TEST_BACKEND=BACKEND: the engine's tests on that backend.

Exit status of a program: 0 passed, 77 skipped (the last line it printed is the reason), anything else failed. Its cases
are those of which it says so as cmocka does ("[       OK ] test_x"; tests/cases.py for those in Python); without any it
is a case itself. The line before "[  SKIPPED ]" is the reason. A case counts once, however often it runs (with the
split library, with gpustage.h, on another backend): failed if it failed once, else passed if it passed once. Lines that
begin with "skip: " name those that passed nowhere. What failed programs printed comes last, without the cases that
passed and said nothing. The closing line is `N passed, N failed, N skipped`; GPST_RESULTS names a file to which the
cases are added, for --sum. Needs Python 3.9.
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


def cases_of(text):
    """Case -> (verdict, reason), by what a program printed; one that begins again is another case."""
    found, name, last = {}, None, ""
    for line in text.splitlines():
        mark = re.match(r"\[ *(RUN|OK|FAILED|ERROR|SKIPPED) *\] (\w+)$", line.strip())
        if mark and mark.group(1) == "RUN":
            name, last = mark.group(2), ""
            while name in found:
                name += "+"
            found[name] = "failed", "no end"
        elif mark and name and mark.group(2) == name.rstrip("+"):
            verdict = {"OK": "passed", "SKIPPED": "skipped"}.get(mark.group(1), "failed")
            found[name] = verdict, (last or "no reason given") if verdict == "skipped" else ""
            name = None
        else:
            last = line.strip()
    return found


def without_passed(text):
    """The lines of what a program printed, without the cases that began and passed with nothing in between."""
    return re.sub(r"^\[ RUN {6}\] (\w+) *\n\[ {7}OK \] \1 *(?:\n|\Z)", "", text, flags=re.M).splitlines()


def tally(results):
    """[(program, case, verdict, reason)] -> {(program, case): (verdict, reason)}, each once."""
    rank = ["skipped", "passed", "failed"]
    once = {}
    for program, case, verdict, reason in results:
        key = re.sub(r"^(split|amalgam)/| on \w+$", "", program), case
        if key not in once or rank.index(verdict) > rank.index(once[key][0]):
            once[key] = verdict, reason
    have_cases = {program for program, case in once if case}
    return {key: told for key, told in once.items() if key[1] or told[0] == "failed" or key[0] not in have_cases}


def count_of(once):
    verdicts = [verdict for verdict, _ in once.values()]
    return {verdict: verdicts.count(verdict) for verdict in ("passed", "failed", "skipped")}


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
        return "passed", "", text, taken
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
    parser.add_argument("--floor", type=int, default=0, help="fail when fewer cases than this were executed")
    parser.add_argument("--under", default="", metavar="COMMAND", help="run programs under this: \"valgrind -q\"")
    parser.add_argument("--beside", default="", metavar="COMMAND", help="keep this running meanwhile: \"busy 40 25\"")
    parser.add_argument("--on", nargs="+", default=[], metavar=("BACKEND", "TEST"), help="run these on that backend")
    parser.add_argument("--skip", action="append", default=[], metavar="TEST=REASON", help="count as skipped")
    parser.add_argument("--sum", metavar="FILE", help="print the closing line for the cases in FILE, and stop")
    arguments = parser.parse_args()
    skips = [text.partition("=") for text in arguments.skip]
    tests = [(path, None) for path in arguments.tests] + [(path, arguments.on[0]) for path in arguments.on[1:]]
    if arguments.list:
        for path, backend in tests + [(path, None) for path, _, _ in skips]:
            print(label(path, backend))
        return 0

    if arguments.sum:
        with open(arguments.sum, encoding="utf-8") as file:
            once = tally(line.rstrip("\n").split("\t") for line in file)
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count_of(once))
        return 0

    limit = arguments.seconds * float(os.environ.get("GPST_TIME_FACTOR", "1"))
    results = [(label(path), "", "skipped", reason) for path, _, reason in skips]
    failures = []
    beside = subprocess.Popen(shlex.split(arguments.beside)) if arguments.beside else None
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        running = {pool.submit(run, path, limit, shlex.split(arguments.under), backend): label(path, backend)
                   for path, backend in tests}
        for done in concurrent.futures.as_completed(running):
            verdict, reason, output, taken = done.result()
            cases = cases_of(output)
            verdicts = [told for told, _ in cases.values()]
            if verdict == "passed" and "failed" in verdicts:
                verdict, reason = "failed", "exit status 0, but a case has failed"
            if verdict == "passed" and "skipped" in verdicts:
                reason = "%d of %d cases skipped" % (verdicts.count("skipped"), len(cases))
            if not cases or (verdict == "failed" and "failed" not in verdicts):
                cases[""] = verdict, reason
            results += [(running[done], case, *told) for case, told in cases.items()]
            print("%-7s %-40s %6.1f s  %s" % (verdict, running[done], taken, reason), flush=True)
            if verdict == "failed":
                failures.append((running[done], reason, without_passed(output)[-200:]))
    once = tally(results)
    count = count_of(once)
    for (program, case), (verdict, reason) in sorted(once.items()):
        if verdict == "skipped":
            print("skip: %s: %s" % (" ".join((program, case)).strip(), reason))
    for name, reason, lines in failures:
        print("---- failed: %s, %s" % (name, reason))
        print("".join("    | %s\n" % line for line in lines), end="", flush=True)
    if beside and beside.poll() is not None:
        print("\"%s\" did not go on beside the tests: exit status %d" % (arguments.beside, beside.returncode))
        count["failed"] += 1
    elif beside:
        beside.terminate()
        beside.wait()
    if os.environ.get("GPST_RESULTS"):
        with open(os.environ["GPST_RESULTS"], "a", encoding="utf-8") as file:
            file.writelines("%s\n" % "\t".join(" ".join(text.split()) for text in row) for row in results)
    executed = count["passed"] + count["failed"]
    if executed < arguments.floor:
        print("only %d executed, at least %d are expected" % (executed, arguments.floor))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
    return 1 if count["failed"] or executed < arguments.floor else 0


if __name__ == "__main__":
    sys.exit(main())
