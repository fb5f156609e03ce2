#!/usr/bin/env python3
"""tests/test_cli_depth.py -- --depth: views of 16 bits and of floats, and what is said of fewer bits; words of options
in either case."""
import ast
import os
import struct
import sys

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import Case, gpustage, has_format, main, write_directions, write_npy  # noqa: E402

VIEW = ["--views", "1", "--size", "24x16", "--backend", "cpu"]
WORDS = (4660, 33333, 65535)  # no byte has those
FLOATS = (0.1234567, 1.5, -0.25)
CODES = {"|u1": "B", "<u2": "H", "<f4": "f"}


class Depth(Case):
    def frame(self, name, descr, pixel):
        """One colour everywhere: so is every view."""
        write_npy(self.path(name), descr, 64, 32, list(pixel) * (64 * 32))
        return self.path(name)

    def view(self, folder, name):
        """descr, and the pixel that all of a .npy view's are."""
        with open(self.path(folder, name), "rb") as stream:
            data = stream.read()
        begin = 10 + struct.unpack("<H", data[8:10])[0]
        header = ast.literal_eval(data[10:begin].decode("ascii").strip())
        values = struct.unpack("<%d%s" % (24 * 16 * 3, CODES[header["descr"]]), data[begin:])
        self.assertEqual(header["shape"], (16, 24, 3))
        self.assertEqual(set(zip(values[::3], values[1::3], values[2::3])), {values[:3]})
        return header["descr"], values[:3]

    def through(self, source, depth, form):
        """A view as a file of that kind, and a view of that view as .npy."""
        first = "%s_%s_%s" % (source, form, depth)
        self.check(gpustage("reproject", source, "-o", first, "--format", form, "--depth", depth, *VIEW), 0)
        (name,) = self.outputs(first)
        self.check(gpustage("reproject", os.path.join(first, name), "-o", first + "_again", "--format", "npy",
                            "--depth", depth, *VIEW), 0)
        return self.view(first + "_again", self.outputs(first + "_again")[0])

    def test_views_of_16_bits(self):
        source = self.frame("a.npy", "<u2", WORDS)
        for form in ("ppm", "npy", "png", "tif"):
            if form in ("ppm", "npy") or has_format(form):
                self.assertEqual(self.through(source, "16", form), ("<u2", WORDS), form)

    def test_views_of_floats(self):
        """Floats are kept, beyond white, too; of integers 1 is white."""
        for name, descr, pixel, wanted in (("f.npy", "<f4", FLOATS, FLOATS),
                                           ("w.npy", "<u2", WORDS, [v / 65535 for v in WORDS]),
                                           ("b.npy", "|u1", (51, 204, 255), (0.2, 0.8, 1))):
            source = self.frame(name, descr, pixel)
            for form in ("npy", "tif"):
                if form == "npy" or has_format(form):
                    descr, found = self.through(source, "f32", form)
                    self.assertEqual(descr, "<f4")
                    for one, other in zip(found, wanted):
                        self.assertAlmostEqual(one, other, 6, (name, form))

    def test_fewer_bits_are_remarked_once(self):
        sources = [self.frame("w%d.npy" % i, "<u2", WORDS) for i in range(3)] + [self.frame("f.npy", "<f4", FLOATS)]
        write_directions(self.path("bytes.ppm"), 64, 32)
        run = ["reproject", "-o", self.path("out"), "--format", "npy", "--stats", self.path("stats.json"), *VIEW]
        for depth, words, n in (("8", sources, 4), ("16", sources, 1), ("f32", sources, 0),
                                ("8", [self.path("bytes.ppm")], 0)):
            for quiet in ([], ["--quiet"]):
                outcome = self.check(gpustage(*run, "--depth", depth, *words, *quiet), 0)
                remarks = [r for r in self.stats()["remarks"] if r["kind"] == "fewer_bits"]
                self.assertEqual([r["count"] for r in remarks], [n] if n else [], (depth, remarks))
                said = [line for line in outcome.err.splitlines() if "--depth" in line]
                self.assertEqual(len(said), 1 if n and not quiet else 0, outcome)
                if said:
                    self.assertIn("%s: %s" % (remarks[0]["first_item"], remarks[0]["text"]), said[0])

    def test_files_that_do_not_hold_it(self):
        source = self.frame("a.npy", "<u2", WORDS)
        for form, depth, fits in (("jpg", "16", "png, tif, ppm or npy"), ("webp", "16", "png, tif, ppm or npy"),
                                  (None, "16", "png, tif, ppm or npy"), ("png", "f32", "tif or npy"),
                                  ("ppm", "f32", "tif or npy"), ("jpg", "f32", "tif or npy")):
            flags = ["--format", form] if form else []
            self.check(gpustage("reproject", source, "-o", self.path("out"), "--depth", depth, *flags), 2,
                       "--depth=%s" % depth, "needs --format " + fits)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_resume_knows_the_depth(self):
        source = self.frame("a.npy", "<u2", WORDS)
        run = ["reproject", source, "-o", self.path("out"), "--format", "npy", *VIEW, "--depth"]
        self.check(gpustage(*run, "16"), 0)
        self.check(gpustage(*run, "8", "--resume"), 2, "depth=16")
        self.assertIn("1 skipped", self.check(gpustage(*run, "16", "--resume"), 0).out)


class Words(Case):
    def test_either_case(self):
        write_directions(self.path("a.ppm"), 64, 32)
        with open(self.path("b.raw"), "wb") as stream:
            stream.write(bytes(64 * 32 * 3))
        for source, flags in (("a.ppm", ["--format", "NPY", "--size", "16X8", "--filter", "Area"]),
                              ("a.ppm", ["--format", "Ppm", "--backend", "CPU", "--tune", "OFF"]),
                              ("a.ppm", ["--format", "npy", "--depth", "F32", "--backend", "AUTO", "--tune", "On"]),
                              ("b.raw", ["--format", "ppm", "--raw", "64X32:RGB8"])):
            self.check(gpustage("reproject", self.path(source), "-o", self.path("out"), "--views", "1", *flags,
                                cwd=self.dir), 0)
        self.assertEqual(sorted(os.listdir(self.dir)), ["a.ppm", "b.raw", "out"], "no file of settings was made")

    def test_other_names_of_formats(self):
        write_directions(self.path("a.ppm"), 64, 32)
        for name, extension in (("jpeg", "jpg"), ("JPEG", "jpg"), ("tiff", "tif")):
            if has_format(extension):
                self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path(name), "--format", name, *VIEW), 0)
                self.assertEqual(self.outputs(name), ["a_v00." + extension])


if __name__ == "__main__":
    main()
