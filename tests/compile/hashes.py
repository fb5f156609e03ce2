#!/usr/bin/env python3
"""tests/compile/hashes.py -- one hash of everything the kernels compute, whatever compiled them.

    python3 tests/compile/hashes.py [--jobs N]

Builds the tests that know `--hash` (they run generated tables of cases and print one number) with several
compilers, optimisations and contraction flags, at every level of the CPU, and fails where a number differs from
the first build's. What is not the kernels' or the tests' computes nothing of it, and is not optimised. A compiler that is not on this machine is skipped. The closing line is
`N passed, N failed, N skipped`.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Both -O0 are the code as it is written, read by either compiler; both -O3 find what depends on contraction and on how
# loops are made vectors.
BUILDS = [
    ("gcc", "-std=c11 -O0 -ffp-contract=off"),
    ("gcc", "-std=gnu17 -O3 -march=native -ffp-contract=fast"),
    ("clang", "-std=c11 -O0 -ffp-contract=off"),
    ("clang", "-std=gnu17 -O3 -march=native -ffp-contract=fast"),
]
# Compiled by it: the kernels' files and the tests.
MAKEFILE = """include Makefile
$(filter-out $(BUILD)/split/kernels/%,$(SPLIT_OBJECTS)): private override CFLAGS := -std=c11 -O0
"""
# What a machine must have for each level, as Linux names it.
LEVELS = {"portable": set(), "avx2": {"avx2", "fma"},
          "avx512": {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}}


def hashing_tests():
    """Names of the tests with --hash."""
    names = []
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "test_*.c"))):
        with open(path, encoding="ascii") as file:
            if '"--hash"' in file.read():
                names.append(os.path.basename(path)[:-2])
    return names


def build(folder, compiler, flags, names, jobs):
    programs = [os.path.join(folder, "tests", "split", name) for name in names]
    makefile = os.path.join(folder, "hashes.mk")
    with open(makefile, "w", encoding="ascii") as file:
        file.write(MAKEFILE)
    done = subprocess.run(["make", "-f", makefile, "-j%d" % jobs, "BUILD=" + folder, "CC=" + compiler, "CFLAGS=" + flags] + programs,
                          cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        return None
    return programs


def machine_levels():
    """The levels that this machine has, by its own word; None where it has none."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = set(re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE).group(1).split())
    except (OSError, AttributeError):
        return None
    return [level for level, needs in LEVELS.items() if needs <= flags]


def program_levels(programs):
    """The levels that the programs take here."""
    environment = {name: value for name, value in os.environ.items() if name != "GPUSTAGE_CPU"}
    program = next(path for path in programs if path.endswith("test_warp_bits"))
    return subprocess.run([program, "--levels"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                          env=environment).stdout.split()


def one_hash(program, level):
    """What a program prints at a level; one that fails says so instead."""
    done = subprocess.run([program, "--hash"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=dict(os.environ, GPUSTAGE_CPU=level))
    whole = done.returncode == 0 and re.fullmatch(r"(([a-z0-9 ]+ )?[0-9a-f]{16}\n)+", done.stdout)
    return " ".join(done.stdout.split()) if whole else "no hash, exit status %d" % done.returncode


def hashes(programs, levels, jobs):
    """What each program prints, at each level. The last programs, at the highest levels, take longest: they go first."""
    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
        running = {(program, level): pool.submit(one_hash, program, level)
                   for program in reversed(programs) for level in reversed(levels)}
        return {os.path.basename(program): [running[program, level].result() for level in levels]
                for program in programs}


def verdict(found, levels, expected):
    """None when every level was there and every hash is the expected one, else what differs."""
    missing = [level for level in machine_levels() or [] if level not in levels]
    if missing:
        return "the machine has %s, the programs do not take it" % " ".join(missing)
    for name, values in found.items():
        for level, value in zip(levels, values):
            if value.startswith("no hash") or value != expected[name]:
                return "%s (%s): %s, expected %s" % (name, level, value, expected[name])
    return None


def main():
    parser = argparse.ArgumentParser(description="One hash of what the kernels compute, whatever compiled them.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    jobs = parser.parse_args().jobs
    names = hashing_tests()
    expected = None
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for compiler, flags in BUILDS:
        outcome, text, levels = "passed", "", []
        if not shutil.which(compiler):
            outcome, text = "skipped", "no %s" % compiler
        else:
            with tempfile.TemporaryDirectory() as folder:
                programs = build(folder, compiler, flags, names, jobs)
                levels = program_levels(programs) if programs else []
                found = hashes(programs, levels, jobs) if programs else None
            if found and expected is None:
                expected = {name: values[0] for name, values in found.items()}
            text = verdict(found, levels, expected) if found else "does not build"
            outcome = "failed" if text else "passed"
        count[outcome] += 1
        print("%-7s %-6s %-50s %s" % (outcome, compiler, flags,
                                      text or "%d tests at %s" % (len(names), " ".join(levels))))
        sys.stdout.flush()
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
    return 1 if count["failed"] or not names or expected is None else 0


if __name__ == "__main__":
    sys.exit(main())
