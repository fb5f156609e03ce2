#!/usr/bin/env python3
"""tests/test_cli_metadata.py -- what pictures say beside their pixels, through the command: orientation, parts of a
sphere, how the camera was turned, and what views say of themselves."""
import json
import os
import struct
import sys

sys.dont_write_bytecode = True  # the tree stays as it was
from cli_kit import BLUE, GREEN, RED, WHITE, Case, directions, gpustage, has_format, main, pixel, read_gray_png, read_npy, read_pnm  # noqa: E402
import make_pictures as make  # noqa: E402

MADE_OF = {"jpg": make.jpeg, "png": make.png, "tif": make.tiff, "webp": make.webp}
TAKEN, PLACE = "2024:05:06 07:08:09", (48.25, -16.5, -12.5)
DATE, OFFSET, FOCAL, PLANE_X, UNIT, GPS, EXIF = 0x9003, 0x9011, 0x920A, 0xA20E, 0xA210, 0x8825, 0x8769


# ---- what a file says, read without the command -----------------------------------------------------

def read_ifd(block, at):
    """tag -> (type, values) of the directory at that offset, of bytes "II" or "MM"."""
    order = "<" if block[:2] == b"II" else ">"
    entries = {}
    for i in range(struct.unpack_from(order + "H", block, at)[0]):
        tag, kind, count = struct.unpack_from(order + "HHI", block, at + 2 + 12 * i)
        size, code = {1: (1, "B"), 2: (1, "B"), 3: (2, "H"), 4: (4, "I"), 5: (8, "II"), 7: (1, "B"),
                      13: (4, "I")}.get(kind, (1, "B"))
        place = at + 2 + 12 * i + 8
        if size * count > 4:
            place = struct.unpack_from(order + "I", block, place)[0]
        entries[tag] = (kind, struct.unpack_from(order + code * count, block, place))
    return entries


def read_exif(block):
    """IFD0, the Exif directory and that of GPS."""
    first = read_ifd(block, struct.unpack_from("<I" if block[:2] == b"II" else ">I", block, 4)[0])
    return first, read_ifd(block, first[EXIF][1][0]), read_ifd(block, first[GPS][1][0]) if GPS in first else {}


def blocks_of(data):
    """(EXIF block, ICC profile) of a JPEG, PNG, TIFF or WebP; b"" for none."""
    exif, icc, at = b"", b"", 0
    if data[:2] == b"\xff\xd8":
        at = 2
        while data[at + 1] != 0xDA:
            length = struct.unpack(">H", data[at + 2:at + 4])[0]
            body = data[at + 4:at + 2 + length]
            exif = body[6:] if body[:6] == b"Exif\0\0" else exif
            icc += body[14:] if body[:12] == b"ICC_PROFILE\0" else b""
            at += 2 + length
    elif data[:4] == b"\x89PNG":
        at = 8
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            exif = body if kind == b"eXIf" else exif
            icc = make.zlib.decompress(body[body.index(b"\0") + 2:]) if kind == b"iCCP" else icc
            at += 12 + length
    elif data[:4] == b"RIFF":
        at = 12
        while at + 8 <= len(data):
            kind, length = struct.unpack("<4sI", data[at:at + 8])
            exif = data[at + 8:at + 8 + length] if kind == b"EXIF" else exif
            icc = data[at + 8:at + 8 + length] if kind == b"ICCP" else icc
            at += 8 + length + length % 2
    else:
        first = read_ifd(data, struct.unpack_from("<I" if data[:2] == b"II" else ">I", data, 4)[0])
        exif = data if EXIF in first else b""
        icc = bytes(first[34675][1]) if 34675 in first else b""
    return exif, icc


def panorama(width=256, height=128):
    return make.Picture(width, height, 3, "u1", list(b"".join(directions(width, height))))


class Metadata(Case):
    def setUp(self):
        super().setUp()
        for name in MADE_OF:
            if not has_format(name):
                self.skipTest("no %s in this build" % name)

    def write(self, name, data):
        with open(self.path(name), "wb") as stream:
            stream.write(data)
        return self.path(name)

    def reproject(self, source, folder, *flags, status=0):
        return self.check(gpustage("reproject", source, "-o", self.path(folder), "--views", "4", "--size", "33x33", "--stats",
                                   self.path("stats.json"), *flags), status)

    def remarks(self):
        with open(self.path("stats.json")) as stream:
            return {remark["kind"]: remark for remark in json.load(stream)["remarks"]}

    def read(self, *names):
        with open(self.path(*names), "rb") as stream:
            return stream.read()

    # ---- orientation --------------------------------------------------------------------------------

    def tensor(self, source, size, *flags):
        self.check(gpustage("preprocess", source, "-o", self.path("one.npy"), "--size", "%dx%d" % size, "--dtype", "u8",
                            "--layout", "hwc", "--filter", "nearest", *flags), 0)
        return read_npy(self.path("one.npy"))[2]

    def test_every_orientation(self):
        for kind, maker in MADE_OF.items():
            for orientation in range(1, 9):
                made = maker(orientation=orientation)
                source = self.write("a." + kind, made.data)
                upright, stored = made.upright, made.picture
                plain = self.tensor(self.write("plain." + kind, maker(upright).data), (upright.width, upright.height))
                kept = self.tensor(source, (stored.width, stored.height), "--orient", "ignore")
                turned = self.tensor(source, (upright.width, upright.height))
                if kind == "jpg":  # of which other blocks are made: within what quality 95 changes
                    self.assertLessEqual(max(abs(a - b) for a, b in zip(turned, plain)), 24, orientation)
                else:
                    self.assertEqual(turned, plain, (kind, orientation))
                swapped = orientation >= 5
                self.assertEqual((upright.width, upright.height),
                                 (stored.height, stored.width) if swapped else (stored.width, stored.height))
                if orientation == 1:
                    self.assertEqual(kept, turned)
                else:
                    self.assertNotEqual(kept, turned, (kind, orientation))

    def test_masks_are_turned(self):
        mask = make.Picture(256, 128, 1, "u1", [255 if x < 64 else 0 for _ in range(128) for x in range(256)])
        self.write("upright.png", make.png(mask, color=0).data)
        turned = [mask.values[(127 - x) * 256 + y] for y in range(256) for x in range(128)]
        stored = make.Picture(128, 256, 1, "u1", turned)  # that orientation 8 turns left again
        self.write("turned.png", make.png(stored, color=0, exif_block=make.exif("MM", orientation=8)).data)
        source = self.write("a.png", make.png(panorama()).data)
        for name in ("upright", "turned"):
            self.reproject(source, name, "--format", "ppm", "--mask", self.path(name + ".png"))
        for view in range(4):
            name = "a_v%02d.ppm" % view
            self.assertEqual(self.read("upright", name), self.read("turned", name))
        self.reproject(source, "wrong", "--format", "ppm", "--orient", "ignore", "--mask", self.path("turned.png"), status=1)

    # ---- parts of a sphere, and how it was taken -------------------------------------------------------

    def test_a_part_is_placed(self):
        """The front alone, of a panorama of twice its width and height: the views of it are those of the whole."""
        whole = panorama()
        values = [v for y in range(32, 96) for x in range(64, 192) for v in whole.pixel(x, y)]
        front = make.Picture(128, 64, 3, "u1", values)
        for elements in (False, True):
            xmp = make.gpano(128, 64, full=(256, 128), at=(64, 32), elements=elements)
            source = self.write("front.png", make.png(front, xmp_packet=xmp).data)
            self.reproject(source, "part", "--format", "ppm", "--filter", "nearest", "--hfov", "60")
            view = read_pnm(self.path("part", "front_v00.ppm"))
            self.assertEqual({pixel(view, x, y) for x in range(33) for y in range(33)}, {RED})
            behind = read_pnm(self.path("part", "front_v02.ppm"))
            self.assertEqual({pixel(behind, x, y) for x in range(33) for y in range(33)}, {(0, 0, 0)})
            self.assertEqual(list(self.remarks()), ["placed"])
            self.assertEqual(self.remarks()["placed"]["count"], 1)

    def test_the_mask_of_a_part(self):
        """Of the part's size or the sphere's: the same, and what is behind the part is not kept."""
        xmp = make.gpano(128, 64, full=(256, 128), at=(64, 32))
        source = self.write("front.png", make.png(make.Picture(128, 64, 3, "u1", [90] * (128 * 64 * 3)), xmp_packet=xmp).data)
        left = [255 if x < 64 else 0 for _ in range(64) for x in range(128)]
        whole = [255 if x < 128 else 0 for _ in range(128) for x in range(256)]
        for name, mask in (("own", make.Picture(128, 64, 1, "u1", left)), ("whole", make.Picture(256, 128, 1, "u1", whole))):
            os.mkdir(self.path(name))
            self.write(os.path.join(name, "front.png"), make.png(mask, color=0).data)
            self.reproject(source, "o_" + name, "--format", "ppm", "--mask", self.path(name), "--mask-out")
        for view in range(4):
            masks = [read_gray_png(self.path("o_" + name, "front_v%02d.ppm.png" % view))[3] for name in ("own", "whole")]
            self.assertEqual(masks[0], masks[1], view)
            if view == 0:
                self.assertEqual(set(masks[0]), {0, 255})
            if view == 2:
                self.assertEqual(set(masks[0]), {0})
        self.write(os.path.join("own", "front.png"), make.png(make.Picture(127, 64, 1, "u1", left[64:]), color=0).data)
        self.reproject(source, "o_wrong", "--format", "ppm", "--mask", self.path("own"), status=1)

    def test_what_is_no_sphere_is_said_once(self):
        for name in ("a", "b"):
            self.write(name + ".png", make.png(make.draw(40, 30)).data)
        outcome = self.check(gpustage("reproject", self.path("a.png"), self.path("b.png"), "-o", self.path("out"), "--views",
                                      "1", "--size", "8x8", "--stats", self.path("stats.json")), 0)
        self.assertEqual(outcome.err.count("40x30 is not 2:1"), 1)
        self.assertEqual(self.remarks()["not_a_sphere"]["count"], 2)
        outcome = self.check(gpustage("reproject", self.path("a.png"), "-o", self.path("out"), "--views", "1", "--size", "8x8",
                                      "--stats", self.path("stats.json"), "--quiet"), 0)
        self.assertEqual(outcome.err, "")
        self.assertEqual(self.remarks()["not_a_sphere"]["count"], 1)

    def test_poses(self):
        """The camera looked to the east: the front of its picture is in the view that looks there."""
        source = self.write("a.png", make.png(panorama(), xmp_packet=make.gpano(256, 128, PoseHeadingDegrees=90)).data)
        middles = {}
        for use in ("use", "ignore"):
            self.reproject(source, use, "--format", "ppm", "--pose", use)
            middles[use] = [pixel(read_pnm(self.path(use, "a_v%02d.ppm" % view)), 16, 16) for view in range(3)]
            self.assertEqual("pose" in self.remarks(), use == "use")
        self.assertEqual(middles["ignore"], [RED, GREEN, BLUE])
        self.assertEqual(middles["use"][1:], [RED, GREEN])
        up = self.write("up.png", make.png(panorama(), xmp_packet=make.gpano(256, 128, PosePitchDegrees=-90)).data)
        self.reproject(up, "up", "--format", "ppm")  # the camera looked down: ahead in the world is what it had above
        self.assertEqual(pixel(read_pnm(self.path("up", "up_v00.ppm")), 16, 16), WHITE)

    # ---- what views say ------------------------------------------------------------------------------

    def source(self, kind):
        exif = dict(orientation=1, make="Ricoh", model="Theta", taken=TAKEN, gps=PLACE, focal_mm=1.2)
        picture, named = panorama(), {"icc_profile": make.icc()}
        if kind == "tif":
            named["extra"] = make.exif_entries(**{k: v for k, v in exif.items() if k != "orientation"})
        else:
            named["exif_block"] = make.exif("MM", **exif)
            named["xmp_packet"] = make.gpano(256, 128)
        return self.write("s." + kind, MADE_OF[kind](picture, **named).data)

    def test_views_say_date_place_and_focal_length(self):
        for kind in MADE_OF:
            source = self.source(kind)
            for form in MADE_OF:
                folder = "%s_%s" % (kind, form)
                self.reproject(source, folder, "--format", form)
                data = self.read(folder, "s_v01." + form)
                block, icc = blocks_of(data)
                first, exif, gps = read_exif(block)
                self.assertEqual(bytes(exif[DATE][1]), TAKEN.encode() + b"\0", folder)
                self.assertEqual(exif[FOCAL][1][0] / exif[FOCAL][1][1] / 10 * exif[PLANE_X][1][0] / exif[PLANE_X][1][1], 16.5)
                self.assertEqual(exif[UNIT][1], (3,))
                self.assertEqual((bytes(gps[1][1]), bytes(gps[3][1])), (b"N\0", b"W\0"))
                self.assertEqual(gps[2][1], (48, 1, 15, 1, 0, 1000))
                self.assertEqual((gps[5][1], gps[6][1]), ((1,), (12500, 1000)))
                self.assertEqual(icc, make.icc(), folder)
                self.assertNotIn(0x10F, first)
                self.assertNotIn(b"GPano", data)
                self.assertNotIn(b"Ricoh", data)

    def test_pixels_that_are_not_square(self):
        self.reproject(self.source("jpg"), "out", "--format", "jpg", "--vfov", "60")
        exif = read_exif(blocks_of(self.read("out", "s_v00.jpg"))[0])[1]
        self.assertEqual((exif[PLANE_X][1], exif[0xA20F][1]), ((16500, 1000), (28579, 1000)))

    def test_views_that_say_nothing(self):
        source = self.source("jpg")
        for form in MADE_OF:
            self.reproject(source, form, "--format", form, "--metadata", "none")
            self.assertEqual(blocks_of(self.read(form, "s_v00." + form)), (b"", b""))
        outcome = self.reproject(source, "jpg", "--format", "jpg", "--resume", status=2)
        self.assertIn("metadata=off", outcome.err)

    def test_a_profile_of_other_colours(self):
        """Of gray, beside RGB views: none of them has it, and that is said once."""
        gray = make.icc()[:16] + b"GRAY" + make.icc()[20:]
        for kind in ("jpg", "png"):
            named = {"color": 0} if kind == "png" else {}
            source = self.write("s." + kind, MADE_OF[kind](make.Picture(64, 32, 1, "u1", [90] * 2048), icc_profile=gray,
                                                           **named).data)
            for form in MADE_OF:
                outcome = self.reproject(source, kind + form, "--format", form)
                self.assertEqual(blocks_of(self.read(kind + form, "s_v00." + form))[1], b"")
                self.assertEqual(outcome.err.count("profile is not one of RGB"), 1)
                self.assertEqual(self.remarks()["profile_dropped"]["count"], 1)

    def test_pages_are_said(self):
        first = make.tiff(make.Picture(64, 32, 3, "u1", [90] * 6144)).data
        again = bytearray(first)  # a second directory that is the first once more
        at = struct.unpack_from("<I", first, 4)[0]
        entries = struct.unpack_from("<H", first, at)[0]
        struct.pack_into("<I", again, at + 2 + 12 * entries, len(first) + len(first) % 2)
        again += b"\0" * (len(first) % 2) + first[at:at + 2 + 12 * entries] + b"\0\0\0\0"
        outcome = self.reproject(self.write("s.tif", bytes(again)), "out", "--format", "ppm")
        self.assertEqual(outcome.err.count("others are not read"), 1)
        self.assertEqual(self.remarks()["pages"]["count"], 1)

    def test_a_large_profile(self):
        icc = make.icc(bytes_at_least=150000)
        source = self.write("s.jpg", make.jpeg(panorama(), icc_profile=icc, icc_chunk=40000).data)
        for form in ("jpg", "png"):
            self.reproject(source, form, "--format", form)
            self.assertEqual(blocks_of(self.read(form, "s_v03." + form))[1], icc)


if __name__ == "__main__":
    main()
