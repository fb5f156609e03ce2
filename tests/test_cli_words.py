#!/usr/bin/env python3
"""tests/test_cli_words.py -- words that options take: in either case, by other names, and as --resume compares them."""
import os
import sys

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import Case, gpustage, has_format, main, write_directions  # noqa: E402


class Words(Case):
    def setUp(self):
        super().setUp()
        write_directions(self.path("a.ppm"), 64, 32)

    def reproject(self, *flags, source="a.ppm", out="out"):
        return gpustage("reproject", self.path(source), "-o", self.path(out), "--views", "1", *flags, cwd=self.dir)

    def test_either_case(self):
        with open(self.path("b.raw"), "wb") as stream:
            stream.write(bytes(64 * 32 * 3))
        for source, flags in (("a.ppm", ["--format", "NPY", "--size", "16X8", "--filter", "Area"]),
                              ("a.ppm", ["--format", "Ppm", "--backend", "CPU", "--tune", "OFF"]),
                              ("a.ppm", ["--format", "npy", "--depth", "F32", "--backend", "AUTO", "--tune", "On"]),
                              ("b.raw", ["--format", "ppm", "--raw", "64X32:RGB8"])):
            self.check(self.reproject(*flags, source=source), 0)
        self.assertEqual(sorted(os.listdir(self.dir)), ["a.ppm", "b.raw", "out"], "no file of settings was made")

    def test_other_names_of_formats(self):
        for name, extension in (("jpeg", "jpg"), ("JPEG", "jpg"), ("tiff", "tif")):
            if has_format(extension):
                self.check(self.reproject("--format", name, "--size", "8x8", out=name), 0)
                self.assertEqual(self.outputs(name), ["a_v00." + extension])

    def test_resume_compares_what_they_mean(self):
        self.check(self.reproject("--format", "npy", "--depth", "f32"), 0)
        self.assertIn("1 skipped", self.check(self.reproject("--format", "NPY", "--depth", "F32", "--resume"), 0).out)
        self.check(self.reproject("--format", "npy", "--depth", "16", "--resume"), 2, "depth=f32, this run has depth=16")


if __name__ == "__main__":
    main()
