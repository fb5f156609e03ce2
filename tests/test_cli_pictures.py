#!/usr/bin/env python3
"""tests/test_cli_pictures.py -- TIFF and WebP as inputs and outputs of the command; masks of
frames whose metadata says how they were taken; profiles of views."""
import os
import struct
import sys
import unittest
import zlib

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import (  # noqa: E402
    Case, directions, gpustage, has_format, main, read_gray_png, read_pnm, write_pgm, write_png16
)
import make_pictures as make  # noqa: E402
from picture_tags import gpano, icc  # noqa: E402

WIDTH, HEIGHT = 64, 32


def panorama(kind="u1"):
    """A picture of that kind of the directions, with an edge in every direction."""
    values = list(b"".join(directions(WIDTH, HEIGHT)))
    return make.Picture(WIDTH, HEIGHT, 3, "u1", values).to(kind)


class Pictures(Case):
    def setUp(self):
        super().setUp()
        for name in ("tif", "webp"):
            if not has_format(name):
                self.skipTest("no %s in this build" % name)

    def write(self, name, data):
        with open(self.path(name), "wb") as stream:
            stream.write(data)
        return self.path(name)

    def views(self, source, folder, *flags, form="ppm"):
        """The files of the views, in order, and what was said."""
        outcome = self.check(gpustage("reproject", source, "-o", self.path(folder), "--views", "2", "--size", "40x30",
                                      "--format", form, "--stats", self.path("stats.json"), "--metadata", "none",
                                      *flags), 0)
        contents = []
        for name in self.outputs(folder):
            with open(self.path(folder, name), "rb") as stream:
                contents.append(stream.read())
        self.assertEqual(len(contents), 2)
        return contents, outcome

    def test_the_same_views_of_every_kind_of_file(self):
        descr = {"u1": "|u1", "u2": "<u2", "f4": "<f4"}
        for kind, maker in (("u1", "tiff"), ("u1", "webp"), ("u2", "tiff"), ("f4", "tiff"), ("u2", "png")):
            picture = panorama(kind)
            if maker == "png":
                data = make.png(picture, depth=16).data
            else:
                data = getattr(make, maker)(picture).data
            source = self.write("%s.%s" % (kind, maker), data)
            expected = self.write("expected.npy", make.npy(picture, descr[kind]).data)
            self.assertEqual(self.views(source, "%s_%s" % (maker, kind))[0],
                             self.views(expected, "npy_%s_%s" % (maker, kind))[0], (maker, kind))

    def test_a_tiff_of_strangers_is_read_in_silence(self):
        """A tag that libtiff does not know, of which it would warn on stderr."""
        source = self.write("a.tif", make.tiff(panorama(), extra={50674: 4}).data)
        said = self.views(source, "out")[1].err
        self.assertNotIn("50674", said)
        self.assertNotIn("TIFF", said)

    def test_views_as_tiff(self):
        source = self.write("a.tif", make.tiff(panorama()).data)
        plain = self.views(source, "ppm")[0]
        for i, data in enumerate(self.views(source, "tif", form="tif")[0]):
            path = self.write("view.ppm", plain[i])
            pixels = read_pnm(path)[3]
            self.assertEqual(data[:4], b"II*\0")
            self.assertEqual(data[8:8 + len(pixels)], pixels)  # the strips one behind the other
        first = self.outputs("tif")[0]
        self.assertTrue(first.endswith("_v00.tif"), first)

    def test_views_as_webp(self):
        source = self.write("a.webp", make.webp(panorama()).data)
        sizes = []
        for quality in (None, 95, 30):
            flags = ("--quality", str(quality)) if quality else ()
            views = self.views(source, "webp%s" % quality, *flags, form="webp")[0]
            for data in views:
                self.assertEqual(data[:4] + data[8:16], b"RIFFWEBPVP8 ")
                self.assertEqual(struct.unpack("<I", data[4:8])[0] + 8, len(data))
            sizes.append(views)
        self.assertEqual(sizes[0], sizes[1])  # 95 where nothing is said
        self.assertLess(len(sizes[2][0]), len(sizes[1][0]))

    def test_options_that_do_not_go_with_them(self):
        source = self.write("a.tif", make.tiff(panorama()).data)
        for flags, says in ((("--format", "tif", "--quality", "90"), "--quality: needs --format jpg or webp"),
                            (("--format", "webp", "--chroma", "420"), "--chroma: needs --format jpg"),
                            (("--format", "webp", "--quality", "90", "--optimise"), "needs --format jpg")):
            self.check(gpustage("reproject", source, "-o", self.path("out"), *flags), 2, says)

    def test_bad_ones_fail_alone(self):
        good = make.tiff(panorama()).data
        animation = make.riff_chunk(b"RIFF", b"WEBP" + make.riff_chunk(b"VP8X", bytes([2]) + bytes(9)) +
                                    make.riff_chunk(b"ANIM", bytes(6)))
        sources = [self.write("good.tif", good), self.write("cut.tif", good[:400]),
                   self.write("raw.tif", make.tiff(panorama(), extra={50706: (make.BYTE, [1, 4, 0, 0])}).data),
                   self.write("short.webp", make.webp(panorama()).data[:900]), self.write("moves.webp", animation),
                   self.write("vast.tif", make.tiff(size=(5, 4), extra={256: 40000, 257: 40000}).data)]
        outcome = gpustage("reproject", *sources, "-o", self.path("out"), "--views", "2", "--size", "40x30",
                           "--format", "ppm", "--stats", self.path("stats.json"))
        self.check(outcome, 1)
        self.assertEqual(len(self.outputs()), 2)
        reasons = {os.path.basename(f["item"]): f["reason"] for f in self.stats()["errors"]}
        for name, says in (("cut.tif", "TIFF: "), ("raw.tif", "DNG"), ("short.webp", "ends too early"),
                           ("moves.webp", "animation"), ("vast.tif", "40000x40000")):
            self.assertIn(says, reasons[name], name)
        self.assertEqual(len(reasons), 5)

    def test_more_pictures_than_one_are_told(self):
        page = make.tiff(panorama()).data
        first = struct.unpack("<I", page[4:8])[0]
        end = first + 2 + 12 * struct.unpack("<H", page[first:first + 2])[0]
        data = page[:end] + struct.pack("<I", len(page)) + page[end + 4:]
        data += page[first:end] + struct.pack("<I", 0)  # the same pixels once more
        source = self.write("two.tif", data)
        self.views(source, "out")
        self.assertIn("others are not read", str(self.stats()["files"]))


class Turned(Case):
    def write_frame(self, name, **pose):
        """A white one, with GPano."""
        text = b"iTXtXML:com.adobe.xmp\0\0\0\0\0" + gpano(WIDTH, HEIGHT, **pose)
        write_png16(self.path("in", name), WIDTH, HEIGHT, [65535] * (3 * WIDTH * HEIGHT))
        with open(self.path("in", name), "r+b") as stream:
            head, rest = stream.read(33), stream.read()
            stream.seek(len(head))
            stream.write(struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text)) + rest)

    @unittest.skipUnless(has_format("png"), "PNG is not built in")
    def test_one_mask_for_all_frames(self):
        """The masks of the views look where the views of each frame look; straight up, too."""
        os.mkdir(self.path("in"))
        self.write_frame("a.png")
        self.write_frame("b.png", PoseHeadingDegrees="40")
        self.write_frame("c.png", PoseHeadingDegrees="-75", PosePitchDegrees="20", PoseRollDegrees="-12.5")
        rows = [bytes((x * x + 3 * y * y) // 40 % 3 for x in range(WIDTH)) for y in range(HEIGHT)]
        write_pgm(self.path("mask.pgm"), WIDTH, HEIGHT, rows)
        looks = ["0,0,0", "100,30,20", "30,90,0", "10,-90,45"]
        self.check(gpustage("reproject", self.path("in"), "-o", self.path("out"), "--size", "16x16", "--format", "ppm",
                            "--mask", self.path("mask.pgm"), "--mask-out",
                            *[part for look in looks for part in ("--view", look)]), 0)
        made = set()
        for name in "abc":
            for v in range(len(looks)):
                view = read_pnm(self.path("out", "%s_v%02d.ppm" % (name, v)))[3]
                kept = read_gray_png(self.path("out", "%s_v%02d.ppm.png" % (name, v)))[3]
                self.assertEqual([k != 0 for k in kept], [view[3 * n] != 0 for n in range(256)], (name, v))
                made.add(kept)
        self.assertEqual(len(made), 12)


class Profiles(Case):
    @unittest.skipUnless(has_format("jpg"), "JPEG is not built in")
    def test_views_of_rgb_have_profiles_of_rgb(self):
        """A profile of other colours, or one that no JPEG has room for, is left out, and no picture fails by it."""
        rgb, huge = icc(bytes_at_least=140000), bytes(4) + icc()[4:] + bytes(255 * 65519)
        gray = rgb[:16] + b"GRAY" + rgb[20:]
        kinds = {"jpg": make.jpeg}
        if has_format("tif"):
            kinds["tif"] = make.tiff
        for name, make_file in kinds.items():
            for label, profile in (("rgb", rgb), ("gray", gray), ("huge", huge)):
                if name == "jpg" and label == "huge":
                    continue
                source = self.path("%s.%s" % (label, name))
                with open(source, "wb") as stream:
                    stream.write(make_file(icc_profile=profile).data)
                self.check(gpustage("reproject", source, "-o", self.path("out"), "--views", "1", "--size", "16x16",
                                    "--quiet"), 0)
                with open(self.path("out", label + "_v00.jpg"), "rb") as stream:
                    view = stream.read()
                found, at = b"", 2
                while view[at + 1] != 0xda:
                    length = struct.unpack(">H", view[at + 2:at + 4])[0]
                    if view[at + 1] == 0xe2:
                        found += view[at + 18:at + 2 + length]
                    at += 2 + length
                self.assertEqual(found, rgb if label == "rgb" else b"", (name, label))


if __name__ == "__main__":
    main()
