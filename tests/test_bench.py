#!/usr/bin/env python3
"""tests/test_bench.py -- the programs under bench/ run, and print the rows that they are for. No time is judged."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True # the tree stays as it was
import cases  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(os.environ.get("GPST_BUILD", os.path.join(ROOT, "build")), "bench")


def run(name, *arguments, **around):
    return subprocess.run([os.path.join(PROGRAMS, name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, OMP_WAIT_POLICY="passive", **around), text=True, check=False)


class Bench(unittest.TestCase):
    def test_usage(self):
        for name in ("kernels", "engine", "readers", "prefetch", "ring"):
            for wrong in (["--rounds", "0"], ["--rounds"], ["--rounds", "3x"], ["now"]):
                done = run(name, *wrong)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("usage: ", done.stderr)

    def test_kernels(self):
        done = run("kernels", "--rounds", "1")
        self.assertEqual(done.returncode, 0, done)
        rows = re.findall(r"(?m)^(\S+) +(\d+)  [0-9.]+ \([0-9.]+\.\.[0-9.]+\) .* ([0-9.]+) % ", done.stdout)
        self.assertEqual({row[0] for row in rows},
                         {"equirect", "tilted", "table", "tensor", "tensor-nv12", "argmax", "upscale-argmax"})
        self.assertIn("1", {row[1] for row in rows})
        self.assertTrue(all(float(row[2]) > 0 for row in rows))

    def test_engine(self):
        done = run("engine", "--rounds", "1")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len(re.findall(r"(?m)^ +\d+  (?:plain-serial|engine) ", done.stdout)), 10)
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ +\d+ +[0-9.]+ +[-+][0-9.]+ ", done.stdout)), 20)
        self.assertRegex(done.stdout, r"at most -?[0-9.]+ ms more than the plain loop; promised: 1\n$")

    def test_readers(self):
        """That it starts: the rest is 400 MB of files, written and read 24 times."""
        done = run("readers", "--rounds", "1", TMPDIR="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("files cannot be made", done.stderr)

    def test_ring(self):
        for more in ([], ["--spsc"]):
            done = run("ring", "--rounds", "1", "--seconds", "0.1", "--burst", "8", *more)
            self.assertEqual(done.returncode, 0, done)
            rows = re.findall(r"(?m)^(\S.*\S) +(\d+) items/s \(.*\), depth at the end (\d+) ", done.stdout)
            self.assertEqual([row[0] for row in rows], ["depth 2", "depth of a burst", "adaptive, from 2"])
            self.assertTrue(all(int(row[1]) > 0 for row in rows))
            self.assertEqual([row[2] for row in rows[:2]], ["2", "8"])

    def test_prefetch(self):
        done = run("prefetch", "--rounds", "1", "--frames", "12")
        if done.returncode and "libturbojpeg" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done)
        rows = re.findall(r"(?m)^(read and decode|prefetcher) +([12]) +[0-9.]+ \([0-9.]+\.\.[0-9.]+\) +\d+ +([0-9.]+) ",
                          done.stdout)
        self.assertEqual([row[:2] for row in rows], [(way, n) for way in ("read and decode", "prefetcher") for n in "12"])
        self.assertEqual([float(row[2]) > 0 for row in rows], [True, True, True, False])
        self.assertIn("last round: 12 decoded, 12 kept, ", done.stdout)

    def test_live_usage(self):
        for wrong in ([], ["late"], ["stream", "--seconds"], ["stream", "--seconds", "0"], ["soak", "--slots", "0"],
                      ["soak", "--seconds", "3x"], ["soak", "--rounds", "1"]):
            done = run("live", *wrong)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("usage: ", done.stderr)

    def live(self, what, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "live.json")
            done = run("live", what, "--seconds", "0.3", "--backend", "cpu", "--json", path, *arguments)
            self.assertEqual(done.returncode, 0, done)
            with open(path, encoding="ascii") as file:
                rows = json.load(file)
        for row in rows:
            self.assertEqual(row["what"], what)
            self.assertEqual((row["backend"], row["wrong"]), ("cpu", 0))
            self.assertLessEqual({"build", "wanted", "settings", "verdict", "slots", "wall_s", "results_per_s",
                                  "p50_ms", "p99_ms", "max_ms", "stale", "given_back", "cameras"}, set(row))
            self.assertEqual(row["frames"], row["submitted"] + row["refused"])
            self.assertEqual(row["submitted"], row["results"] + row["failed"] + row["skipped"] + row["dropped"])
            self.assertLessEqual(row["p50_ms"], row["max_ms"])
        return rows

    def test_live(self):
        self.assertEqual([row["slots"] for row in self.live("latest")], [4, 16])
        for what, n_frames, n_cameras in (("latest", 18, 1), ("stream", 18, 1), ("cameras", 72, 8)):
            (row,) = self.live(what, "--slots", "8")
            self.assertEqual((row["frames"], row["given_back"]), (n_frames, n_frames))
            self.assertEqual(sum(of["ok"] + of["dropped"] for of in row["cameras"]), n_frames)
            self.assertEqual(len(row["cameras"]), n_cameras)

    def test_live_soak(self):
        (row,) = self.live("soak", "--seed", "3")
        self.assertGreaterEqual(row["runs"], 2)
        self.assertGreater(row["first_kib"], 0)
        self.assertGreater(row["end_kib"], 0)


if __name__ == "__main__":
    if not os.path.exists(os.path.join(PROGRAMS, "engine")):
        print("no %s: make bench-kernels bench-engine bench-readers bench-prefetch bench-ring bench-live" % PROGRAMS)
        sys.exit(77)
    if os.environ.get("GPST_SANITIZE"):
        print("instrumented code is not measured")
        sys.exit(77)
    cases.main()
