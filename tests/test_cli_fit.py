#!/usr/bin/env python3
"""tests/test_cli_fit.py -- preprocess with inputs that keep their shape, with bicubic filters, and what it remarks."""
import os
import sys

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import Case, gpustage, read_npy, write_ppm, main  # noqa: E402


class Fit(Case):
    """8 x 4 pixels, red = 10 x, green = 10 y, blue 200."""
    def setUp(self):
        super().setUp()
        write_ppm(self.path("a.ppm"), 8, 4, [b"".join(bytes((10 * x, 10 * y, 200)) for x in range(8)) for y in range(4)])

    def rows(self, *flags):
        """Of the tensor in bytes, row by row: (red, green, blue)."""
        self.check(gpustage("preprocess", self.path("a.ppm"), "-o", self.path("out"), "--dtype", "u8", "--layout", "hwc",
                            *flags), 0)
        _, (height, width, _), values = read_npy(self.path("out", "a.npy"))
        return [[tuple(values[3 * (y * width + x):][:3]) for x in range(width)] for y in range(height)]

    def test_letterbox(self):
        """In 8 x 9 there are 5 rows to fill: 2 above, 3 below."""
        bar, picture = [(114, 114, 114)] * 8, [[(10 * x, 10 * y, 200) for x in range(8)] for y in range(4)]
        self.assertEqual(self.rows("--size", "8x9", "--letterbox"), [bar] * 2 + picture + [bar] * 3)
        black = [(0, 0, 0)] * 8
        self.assertEqual(self.rows("--size", "8x9", "--letterbox", "--pad", "0"), [black] * 2 + picture + [black] * 3)
        small = self.rows("--size", "4x4", "--letterbox", "--filter", "area", "--convention", "opencv")
        self.assertEqual([row[0] for row in small], [(114,) * 3, (5, 5, 200), (5, 25, 200), (114,) * 3])

    def test_short_side(self):
        """4 x 4 from the middle; where 6 x 6 are asked for, a bar above and one below."""
        middle = [[(10 * x, 10 * y, 200) for x in range(2, 6)] for y in range(4)]
        self.assertEqual(self.rows("--size", "4x4", "--short-side", "4"), middle)
        bar, wider = [(0, 0, 0)] * 6, [[(10 * x, 10 * y, 200) for x in range(1, 7)] for y in range(4)]
        self.assertEqual(self.rows("--size", "6x6", "--short-side", "4"), [bar] + wider + [bar])
        self.assertEqual(self.rows("--size", "6x6", "--short-side", "4", "--pad", "255")[0], [(255, 255, 255)] * 6)

    def test_bars_are_normalised(self):
        """pad is on the scale of the pixels, and its colours are those of mean and std by name."""
        self.check(gpustage("preprocess", self.path("a.ppm"), "-o", self.path("out"), "--size", "8x6", "--letterbox",
                            "--pad", "51", "--mean", "0.1,0.2,0.3", "--std", "0.5", "--swap-rb"), 0)
        values = read_npy(self.path("out", "a.npy"))[2]
        for plane, wanted in enumerate((-0.2, 0.0, 0.2)):
            self.assertAlmostEqual(values[48 * plane], wanted, delta=1e-6)

    def test_cubic(self):
        """Ramps stay ramps away from the edges, which repeat; beyond them antialiased ones differ."""
        for name in ("bicubic", "bicubic-area"):
            rows = self.rows("--size", "16x8", "--filter", name)
            for x in range(5, 11):
                self.assertAlmostEqual(rows[4][x][0], 10 * ((x + 0.5) / 2 - 0.5), delta=0.5)
        self.assertEqual(self.rows("--size", "8x4", "--filter", "bicubic")[3][7], (70, 30, 200))
        self.assertNotEqual(self.rows("--size", "4x2", "--filter", "bicubic"),
                            self.rows("--size", "4x2", "--filter", "bicubic-area"))

    def test_wrong_flags(self):
        for flags, says in [
                (["--letterbox", "--short-side", "9"], "--letterbox: cannot be joined with --short-side"),
                (["--pad", "3"], "--pad: needs --letterbox or --short-side"),
                (["--letterbox", "--pad", "256"], "--pad=256: must be a whole number from 0 to 255"),
                (["--short-side", "0"], "--short-side=0: must be a whole number from 1 to 65535"),
                (["--filter", "bicubic-area", "--convention", "opencv"],
                 "filter=BICUBIC_AREA: not with convention=OPENCV, which has none")]:
            with self.subTest(flags=flags):
                self.check(gpustage("preprocess", self.path("a.ppm"), "-o", self.path("out"), "--size", "8x8", *flags), 2,
                           says, "see gpustage preprocess --help")
                self.assertFalse(os.path.exists(self.path("out")), "work was done")
        self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--filter", "bicubic"), 2,
                   "--filter=bicubic: must be one of nearest bilinear area")

    def test_resume_knows_the_fit(self):
        run = ["preprocess", self.path("a.ppm"), "-o", self.path("out"), "--size", "8x8", "--resume"]
        self.check(gpustage(*run, "--letterbox"), 0)
        self.assertIn("1 skipped", self.check(gpustage(*run, "--letterbox"), 0).out)
        for flags, says in ((["--letterbox", "--pad", "0"], "pad=114, this run has pad=0"),
                            (["--short-side", "8", "--pad", "114"], "letterbox=on, this run has letterbox=off"),
                            (["--letterbox", "--filter", "bicubic"], "filter=bilinear, this run has filter=bicubic")):
            self.check(gpustage(*run, *flags), 2, says)

    def test_means_of_bytes_are_remarked(self):
        run = ["preprocess", self.path("a.ppm"), "-o", self.path("out"), "--size", "8x8"]
        outcome = self.check(gpustage(*run, "--mean", "123.675,116.28,103.53"), 0)
        self.assertEqual(outcome.err.count("note: --mean=123.675,116.28,103.53: values are on the 0..1 scale"), 1)
        self.assertNotIn("note: --mean", self.check(gpustage(*run, "--mean", "0.485,0.456,1"), 0).err)


if __name__ == "__main__":
    main()
