#!/usr/bin/env python3
"""tests/test_cli_gpu.py -- the command on a GPU: the same bytes as on the CPU, and what it says where there is none."""
import json
import os
import random
import shutil
import sys

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import Case, gpustage, has_format, main, read_files, write_ppm  # noqa: E402


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
    ] + [["--dtype", "u8", "--layout", "hwc"], ["--dtype", "u8", "--layout", "chw", "--filter", "nearest"],
         ["--letterbox", "--convention", "opencv"], ["--letterbox", "--dtype", "u8", "--layout", "hwc", "--pad", "9"],
         ["--short-side", "70", "--filter", "area", "--convention", "torch"],
         ["--short-side", "50", "--filter", "bicubic"], ["--filter", "bicubic-area", "--dtype", "f16"]]

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


class JpegByNvjpeg(Case):
    """nvJPEG itself, by the bounds of docs/conventions.md ("Whose JPEG codec")."""
    SIZES = ((640, 320), (518, 260), (1, 1), (643, 483))

    def setUp(self):
        super().setUp()
        self.backend = gpu_backend()
        if self.backend != "cuda" or not has_format("jpg"):
            self.skipTest("no NVIDIA GPU answers, or no libturbojpeg")
        for n, (width, height) in enumerate(self.SIZES):
            chance = random.Random(n)
            rows = [bytes(40 + (x // 3 + y * 2 // 3) % 150 + 20 * c + chance.randrange(8)
                          for x in range(width) for c in range(3)) for y in range(height)]
            for chroma in ("420", "444"):
                source = self.path("%d_%s.ppm" % (n, chroma))
                write_ppm(source, width, height, rows)
                self.check(gpustage("reproject", source, "-o", self.path("in"), "--views", "1", "--size",
                                    "%dx%d" % (width, height), "--chroma", chroma, "--exact"), 0)
        self.files = [self.path("in", name) for name in sorted(read_files(self.path("in"))) if name.endswith(".jpg")]

    def tensors(self, way, files, hardware="1"):
        """Each file's pixels as they are: a byte a colour, at the size of the file."""
        found, decoders = [], set()
        for path in files:
            width, height = self.SIZES[int(os.path.basename(path)[0])]
            self.check(gpustage("preprocess", path, "-o", self.path("t"), "--size", "%dx%d" % (width, height),
                                "--dtype", "u8", "--layout", "hwc", "--backend", "cuda", "--jpeg", way, "--stats",
                                self.path("s.json"), env=dict(os.environ, GPUSTAGE_NVJPEG_HARDWARE=hardware)), 0)
            told = self.stats("s.json")
            decoders.add(told["files"][0]["decoder"])
            self.engines = "engines" not in told["path"]["jpeg"]["why_not"]
            found.append(next(iter(read_files(self.path("t")).values()))[128:])
            shutil.rmtree(self.path("t"))
        return found, decoders

    def differ(self, one, two):
        self.assertEqual([len(a) for a in one], [len(b) for b in two])
        return max(abs(x - y) for a, b in zip(one, two) if a != b for x, y in zip(a, b)) if one != two else 0

    def test_decoding(self):
        cores, by = self.tensors("cpu", self.files)
        self.assertEqual(by, {"libjpeg-turbo"})
        for hardware in ("1", "0"):
            device, by = self.tensors("gpu", self.files, hardware)
            if by == {"libjpeg-turbo"}:
                self.skipTest("nvJPEG is not here")
            self.assertEqual(by, {"nvJPEG"})
            self.assertLessEqual(self.differ(cores, device), 0 if self.engines else 3)
        self.assertFalse(self.engines)

    def test_encoding(self):
        views = {}
        for way in ("cpu", "gpu"):
            self.check(gpustage("reproject", *self.files, "-o", self.path(way), "--views", "2", "--size", "322x242",
                                "--backend", "cuda", "--jpeg", way, "--stats", self.path("s.json")), 0)
            by = {told["encoder"] for told in self.stats("s.json")["files"]}
            if way == "gpu" and by == {"libjpeg-turbo"}:
                self.skipTest("nvJPEG is not here")
            self.assertEqual(by, {"nvJPEG" if way == "gpu" else "libjpeg-turbo"})
            self.check(gpustage("preprocess", self.path(way), "-o", self.path(way + "_t"), "--size", "322x242", "--dtype",
                                "u8", "--layout", "hwc"), 0)
            views[way] = [data[128:] for _, data in sorted(read_files(self.path(way + "_t")).items())]
        self.assertEqual(len(views["gpu"]), 2 * len(self.files))
        self.assertLessEqual(self.differ(views["cpu"], views["gpu"]), 16)


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
