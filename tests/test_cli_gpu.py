#!/usr/bin/env python3
"""tests/test_cli_gpu.py -- the command on a GPU: the same bytes as on the CPU, and what it says where there is none."""
import json
import random
import shutil
import sys

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import Case, gpustage, main, read_files, write_ppm  # noqa: E402


def backends():
    return {row["name"]: row for row in json.loads(gpustage("probe", "--json").out)["backends"]}


def gpu_backend():
    """The name of the GPU backend that answers, or None."""
    return next((name for name, row in backends().items() if name in ("cuda", "hip") and row["available"]), None)


class SameBytes(Case):
    REPROJECT = [
        ["--views", "8"],
        ["--views", "3", "--pitch-rings", "-60,0,75", "--hfov", "75"],
        ["--view", "10,20,30,110", "--view=-100,-80,5", "--filter", "nearest"],
        ["--views", "4", "--convention", "ffmpeg"],
    ]
    PREPROCESS = [
        ["--dtype", dtype, "--layout", layout, "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"] + more
        for dtype in ("f16", "f32") for layout in ("chw", "hwc") for more in ([], ["--swap-rb"])
    ] + [["--dtype", "u8", "--layout", "hwc"], ["--dtype", "u8", "--layout", "chw", "--filter", "nearest"]]

    def setUp(self):
        super().setUp()
        self.backend = gpu_backend()
        chance = random.Random(5)
        for n, (width, height) in enumerate(((640, 320), (517, 259), (64, 33))):
            write_ppm(self.path("in%d.ppm" % n), width, height, [chance.randbytes(width * 3) for _ in range(height)])
        self.inputs = [self.path("in%d.ppm" % n) for n in range(3)]

    def compare(self, command, arguments):
        if not self.backend:
            self.skipTest("no GPU answers")
        found = {}
        for backend in ("cpu", self.backend):
            folder, stats = self.path("out_" + backend), self.path(backend + ".json")
            self.check(gpustage(command, *self.inputs, "-o", folder, "--backend", backend, "--stats", stats, "--quiet",
                                *arguments), 0)
            with open(stats, encoding="utf-8") as stream:
                told = json.load(stream)
            self.assertEqual(told["path"]["device"]["taken"], backend)
            self.assertEqual(told["bytes"]["h2d"] > 0, backend != "cpu")
            found[backend] = read_files(folder)
            self.assertGreaterEqual(len(found[backend]), 3)
            shutil.rmtree(folder)
        self.assertEqual(found["cpu"], found[self.backend], arguments)

    def test_reproject(self):
        for arguments in self.REPROJECT:
            with self.subTest(arguments):
                self.compare("reproject", ["--size", "200x150", "--format", "ppm"] + arguments)

    def test_preprocess(self):
        for arguments in self.PREPROCESS:
            with self.subTest(arguments):
                self.compare("preprocess", ["--size", "97x61"] + arguments)


class WithoutOne(Case):
    def test_named_and_absent(self):
        """Exit 3 with the vendor's words, or that it is not compiled in; auto goes on without it."""
        rows = backends()
        write_ppm(self.path("a.ppm"), 8, 4, [bytes(24)] * 4)
        for name in ("cuda", "hip"):
            if rows[name]["available"]:
                continue
            outcome = gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--backend", name)
            words = "backend %s" % name if rows[name]["compiled_in"] else "not compiled into"
            self.check(outcome, 3, "--backend=" + name, words)
            self.assertTrue(rows[name]["reason"])
        self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--size", "16x16", "--stats",
                            self.path("stats.json")), 0)
        if not gpu_backend():
            told = self.stats()
            self.assertEqual(told["backend"], "cpu")
            self.assertIn("auto", told["path"]["device"]["why_not"])


if __name__ == "__main__":
    main()
