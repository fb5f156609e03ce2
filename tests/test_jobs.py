#!/usr/bin/env python3
"""tests/test_jobs.py -- bench/jobs.py on tiny jobs: every way does the same work, and all of it. No time is judged."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True # the tree stays as it was
import cases  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench", "jobs.py")
PROGRAM = os.path.join(os.environ.get("GPST_BUILD", os.path.join(ROOT, "build")), "jobs", "run_job")
ITEMS = 17 # more than there are different inputs, and no multiple of them


def run(*command):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpustage-jobs-test-")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.listed = {job["name"]: job for job in json.loads(run(PROGRAM, "--list").stdout)}

    def names(self):
        return [name for name, job in self.listed.items() if job["available"]]

    def test_there_are_twelve(self):
        self.assertEqual(" ".join(self.listed), "origin tensors thumbs raw88 cold slowreads synced overwrite mixed "
                                                "stream60 cameras8 model")

    def test_every_way_does_the_same_work(self):
        found = os.path.join(self.dir, "found.json")
        # The program stands for its own base, so that all five ways run.
        done = run(sys.executable, BENCH, "--new", PROGRAM, "--base-bin", PROGRAM, "--items", ITEMS, "--shrink", 16,
                   "--rounds", 1, "--dir", self.dir, "--json", found, "--jobs", ",".join(self.names()))
        self.assertEqual(done.returncode, 0, done)
        with open(found, encoding="utf-8") as stream:
            jobs = json.load(stream)["jobs"]
        self.assertEqual(list(jobs), self.names())
        for name, figures in jobs.items():
            with self.subTest(job=name):
                runs = [run for way in ("base", "new", "control", "serial", "pool") for run in figures["runs"][way]]
                self.assertEqual(len(runs), 5)
                self.assertEqual({(run["items"], run["items_failed"]) for run in runs}, {(ITEMS, 0)})
                self.assertEqual(len({run["hash"] for run in runs}), 1)
                self.assertTrue(figures["same_results"])
                self.assertIn("| %s | %d |" % (name, ITEMS), done.stdout.decode())
        self.assertEqual(run(sys.executable, BENCH, "--table", found).stdout, done.stdout)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("gpustage-jobs-")], [])

    def test_other_work_has_another_hash(self):
        def hash_of(items, check):
            out = tempfile.mkdtemp(dir=self.dir)
            done = run(PROGRAM, "slowreads", "--way", "serial", "--items", items, "--check", check, "--dir", self.dir,
                       "--out", out)
            return json.loads(done.stdout)["hash"]
        self.assertNotEqual(hash_of(2, 0), hash_of(3, 0))
        self.assertEqual(hash_of(2, 0), hash_of(3, 2))

    def test_what_fails_is_said(self):
        out = tempfile.mkdtemp(dir=self.dir)
        lost = run(PROGRAM, "raw88", "--way", "serial", "--items", 2, "--dir", self.dir, "--out", out)
        self.assertEqual((lost.returncode, lost.stdout), (1, b""))
        self.assertIn(b"No such file", lost.stderr)
        for wrong in (["none"], ["cold", "--items", "x"],
                      ["cold", "--items", 3, "--files", 2, "--dir", self.dir, "--out", out]):
            self.assertEqual(run(PROGRAM, *wrong).returncode, 2)
        self.assertEqual(run(sys.executable, BENCH, "--new", PROGRAM, "--base", "none", "--dir", self.dir,
                             "--jobs", "none").returncode, 2)


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        print("no %s: make bench-jobs" % PROGRAM)
        sys.exit(77)
    cases.main()
