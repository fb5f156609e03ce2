#!/usr/bin/env python3
"""tests/test_cli_pictures.py -- what files the command reads and writes, beside JPEG, PNG and bytes as they are; masks of
frames whose metadata says how they were taken; profiles of views."""
import os
import struct
import sys
import unittest
import zlib

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import (  # noqa: E402
    Case, directions, gpustage, has_format, main, read_gray_png, read_npy, read_pnm, write_pgm, write_png16
)
import make_pictures as make  # noqa: E402
from picture_tags import gpano, icc  # noqa: E402

WIDTH, HEIGHT = 64, 32


def panorama(kind="u1"):
    """A picture of that kind of the directions, with an edge in every direction."""
    values = list(b"".join(directions(WIDTH, HEIGHT)))
    return make.Picture(WIDTH, HEIGHT, 3, "u1", values).to(kind)


class Files(Case):
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

    def check_like(self, name, data, picture, descr):
        """The same views as of the .npy of its pixels, byte for byte."""
        expected = self.write("expected.npy", make.npy(picture, descr).data)
        found = self.views(self.write(name, data), "found_" + name)[0]
        self.assertEqual(found, self.views(expected, "expected_" + name)[0], name)


class Plain(Files):
    def test_pixels_that_are_converted(self):
        words, floats, doubles = panorama("u2"), panorama("f4"), panorama("f8")
        for name, file in (("words.ppm", make.pnm(words)), ("big.npy", make.npy(words, ">u2")),
                           ("columns.npy", make.npy(words, "<u2", fortran=True, version=2))):
            self.check_like(name, file.data, words, "<u2")
        self.check_like("doubles.npy", make.npy(doubles, ">f8").data, floats, "<f4")
        self.check_like("columns_f8.npy", make.npy(doubles, "<f8", fortran=True, version=3).data, floats, "<f4")
        tens = make.pnm(panorama().of_pixels([tuple(v // 5 for v in p) for p in panorama().pixels()]), 51)
        self.check_like("tens.ppm", tens.data, tens.picture, "|u1")

    @unittest.skipUnless(has_format("jpg"), "JPEG is not there")
    def test_inks_without_a_marker(self):
        """They are taken as with one, and that is said."""
        marked = make.jpeg(make.smooth(WIDTH, HEIGHT, 4)).data
        at = marked.index(b"\xff\xee")
        plain = marked[:at] + marked[at + 2 + struct.unpack_from(">H", marked, at + 2)[0]:]
        wanted, quiet = self.views(self.write("a.jpg", marked), "marked")
        found, noted = self.views(self.write("a.jpg", plain), "plain")
        self.assertEqual(found, wanted)
        self.assertEqual(quiet.err, "")
        self.assertIn("a.jpg: CMYK without an Adobe marker", noted.err)

    def constant(self, name, kind, descr, value):
        """A frame of one colour, which its views have, too."""
        picture = make.Picture(WIDTH, HEIGHT, 3, kind, value * (WIDTH * HEIGHT))
        return self.write(name, make.npy(picture, descr).data)

    def run_depth(self, source, folder, *flags):
        self.views(source, folder, "--depth", *flags[:-1], form=flags[-1])
        return self.path(folder, self.outputs(folder)[0])

    def test_depth(self):
        color = (0x1234, 0xabcd, 0xffff)
        words = self.constant("words.npy", "u2", "<u2", color)
        floats = self.constant("floats.npy", "f4", "<f4", (3.5, -1.0, 0.25))
        path = self.run_depth(words, "npy16", "16", "npy")
        self.assertEqual(read_npy(path), ("<u2", (30, 40, 3), list(color) * 1200))
        with open(self.run_depth(words, "ppm16", "16", "ppm"), "rb") as stream:
            self.assertEqual(stream.read(), b"P6\n40 30\n65535\n" + struct.pack(">3H", *color) * 1200)
        path = self.run_depth(words, "npyf", "F32", "npy")
        for found, wanted in zip(read_npy(path)[2][:3], color):
            self.assertAlmostEqual(found, wanted / 65535, 6)
        path = self.run_depth(floats, "floats", "f32", "NPY")
        self.assertEqual(read_npy(path), ("<f4", (30, 40, 3), [3.5, -1.0, 0.25] * 1200))
        for form in ("png", "tif"):
            if has_format(form):
                again = self.run_depth(words, form + "16", "16", form)
                self.assertEqual(read_npy(self.run_depth(again, form + "_again", "16", "npy"))[2][:3], list(color))
        if has_format("tif"):
            again = self.run_depth(floats, "tif32", "f32", "tiff")
            self.assertEqual(read_npy(self.run_depth(again, "floats_again", "f32", "npy"))[2][:3], [3.5, -1.0, 0.25])

    def test_fewer_bits_are_remarked(self):
        words = self.constant("words.npy", "u2", "<u2", (9, 9, 9))
        floats = self.constant("floats.npy", "f4", "<f4", (1, 1, 1))
        bytes_ = self.constant("bytes.npy", "u1", "|u1", (9, 9, 9))
        def remarks(*flags):
            outcome = self.check(gpustage("reproject", *flags, "-o", self.path("out"), "--views", "1", "--size", "8X8",
                                          "--format", "npy", "--stats", self.path("stats.json")), 0)
            found = [r for r in self.stats()["remarks"] if r["kind"] == "fewer_bits"]
            self.assertEqual(outcome.err.count("--depth"), len(found), outcome)
            return [(r["count"], r["text"]) for r in found]
        self.assertEqual(remarks(bytes_), [])
        self.assertEqual(remarks(words, bytes_), [(1, "it has 16 bits a channel, and views have 8 (--depth)")])
        self.assertEqual(remarks(words, floats)[0][0], 2)
        self.assertEqual(remarks(floats, "--depth", "16"),
                         [(1, "its values are floats, and views have 16 bits (--depth)")])
        self.assertEqual(remarks(words, "--depth", "16") + remarks(floats, "--depth", "f32"), [])

    def test_depths_that_files_do_not_hold(self):
        source = self.constant("a.npy", "u1", "|u1", (9, 9, 9))
        for depth, form, fit in (("16", "jpg", "png, tif, ppm or npy"), ("16", "webp", "png, tif, ppm or npy"),
                                 ("f32", "PNG", "tif or npy"), ("f32", "ppm", "tif or npy")):
            self.check(gpustage("reproject", source, "-o", self.path("out"), "--depth", depth, "--format", form), 2,
                       "--depth=%s: .%s does not hold it: needs --format %s" % (depth, form.lower(), fit))
        self.check(gpustage("reproject", source, "-o", self.path("out"), "--depth", "12"), 2, "must be one of 8 16 f32")

    def test_truth_is_a_mask(self):
        source = self.write("a.ppm", make.pnm(panorama()).data)
        right = [x >= WIDTH // 2 for _ in range(HEIGHT) for x in range(WIDTH)]
        for kind, descr, values in (("?", "|b1", right), ("u1", "|u1", [255 * v for v in right])):
            self.write("mask.npy", make.npy(make.Picture(WIDTH, HEIGHT, 1, kind, values), descr).data)
            self.views(source, "mask_" + descr[1:], "--mask", self.path("mask.npy"))
        read = [read_pnm(self.path("mask_" + kind, "a_v00.ppm"))[3] for kind in ("b1", "u1")]
        self.assertEqual(read[0], read[1])
        self.assertEqual((read[0][:3], read[0][3 * 39:3 * 40] != bytes(3)), (bytes(3), True))

    def test_what_is_not_read_is_named(self):
        """By the first bytes, whatever a file is called."""
        files = {"phone.jpg": (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"), "photo.png": (b"GIF89a", "GIF"),
                 "film.webp": (b"\0\0\0\x18ftypisom\0\0\0\0", "MP4 video")}
        for name, (data, _) in files.items():
            self.write(name, data)
        outcome = gpustage("reproject", self.dir, "-o", self.path("out"), "--views", "1", "--format", "ppm")
        for name, (_, says) in files.items():
            self.check(outcome, 1, "%s: decode: the file is %s, which is not read: convert it first (JPEG, PNG, TIFF, "
                                   "WebP, PNM, PAM and .npy are read)" % (name, says))
        integers = make.npy(panorama("u2"), "<u2").data.replace(b"<u2", b"<i2")
        self.check(gpustage("reproject", self.write("i2.npy", integers), "-o", self.path("out"), "--format", "ppm"), 1,
                   'i2.npy: decode: NPY: descr="<i2"; b1, u1, u2, f2, f4 and f8 are read')


class Pictures(Files):
    def setUp(self):
        super().setUp()
        for name in ("tif", "webp"):
            if not has_format(name):
                self.skipTest("no %s in this build" % name)

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

    def test_colours_that_are_called_gray(self):
        """Three and four samples that BlackIsZero: colours, and what is known of the last; others are refused by name."""
        for descr, kind in (("|u1", "u1"), ("<u2", "u2"), ("<f4", "f4")):
            rgb = panorama(kind)
            rgba = make.Picture(WIDTH, HEIGHT, 4, kind, [v for p in rgb.pixels() for v in p + p[:1]])
            for planar in (1, 2):
                for name, samples, extra, shown in (("rgb", rgb, None, rgb), ("loose", rgb, [0, 0], rgb),
                                                    ("rgba", rgba, None, rgba), ("alpha", rgba, [2], rgba),
                                                    ("last", rgba, [0, 0, 2], rgba), ("dropped", rgba, [0, 0, 0], rgb)):
                    tags = {262: make.BLACK_IS_ZERO} if extra is None else {262: make.BLACK_IS_ZERO, 338: extra}
                    plain = {3: make.TIFF_RGB, 4: make.CMYK}[samples.channels]  # no extra samples
                    data = make.tiff(samples, plain, planar=planar, extra=tags).data
                    self.check_like("%s_%s%d.tif" % (name, kind, planar), data, shown, descr)
        half = panorama().of_pixels([tuple(v // 2 for v in p) for p in panorama().pixels()])
        doubled = panorama().of_pixels([tuple(v * 255 // 128 for v in p) for p in half.pixels()])
        samples = make.Picture(WIDTH, HEIGHT, 4, "u1", [v for p in half.pixels() for v in p + (128,)])
        for extra, shown in (([0, 0, 1], doubled), ([1], doubled), ([0, 0, 2], half), ([0, 0, 0], half)):
            tags = {262: make.BLACK_IS_ZERO, 338: extra}
            self.check_like("half.tif", make.tiff(samples, make.CMYK, extra=tags).data, shown, "|u1")
        refused = {"five": (5, {262: 1, 338: [0] * 4}), "alpha": (3, {262: 1, 338: [2, 0]}), "white": (3, {262: 0})}
        for name, (n, tags) in refused.items():
            picture = make.Picture(WIDTH, HEIGHT, n, "u1", [9] * (n * WIDTH * HEIGHT))
            source = self.write(name + ".tif", make.tiff(picture, make.TIFF_RGB, extra=tags).data)
            self.check(gpustage("reproject", source, "-o", self.path("out"), "--views", "1"), 1,
                       "TIFF: %d samples of 8 bits, sample format 1, photometric interpretation %d: not read"
                       % (n, tags[262]))

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
