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

SPHERE = {"GPano:ProjectionType": "equirectangular"}
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

    def test_orientations_of_bigtiff_and_xmp(self):
        """BigTIFF as a file and as the EXIF of others; in XMP alone."""
        for orientation in (2, 3, 6, 8):
            xmp = make.xmp({"tiff:Orientation": orientation})
            for order in ("II", "MM"):
                block = make.exif(order, wide=True, orientation=orientation)
                for name, made in (("a.tif", make.tiff(order=order, big=True, orientation=orientation)),
                                   ("b.tif", make.tiff(order=order, big=True, xmp_packet=xmp)),
                                   ("c.tif", make.tiff(order=order, xmp_packet=xmp)),
                                   ("d.png", make.png(exif_block=block)), ("e.png", make.png(xmp_packet=xmp)),
                                   ("f.webp", make.webp(exif_block=block)), ("g.webp", make.webp(xmp_packet=xmp))):
                    upright = made.picture.turned(orientation)
                    self.assertEqual(self.tensor(self.write(name, made.data), (upright.width, upright.height)),
                                     upright.values, (name, orientation, order))

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

    def test_where_a_png_keeps_it(self):
        """As ImageMagick 6 writes it, and other ways: packed in every way that zlib has, or not."""
        whole = panorama()
        front = make.Picture(128, 64, 3, "u1", [v for y in range(32, 96) for x in range(64, 192) for v in whole.pixel(x, y)])
        xmp = make.gpano(128, 64, full=(256, 128), at=(64, 32), PoseHeadingDegrees=90)
        exif = make.exif("MM", taken=TAKEN)

        def packed(data, level=9, strategy=make.zlib.Z_DEFAULT_STRATEGY):
            packer = make.zlib.compressobj(level, make.zlib.DEFLATED, 15, 9, strategy)
            return packer.compress(data) + packer.flush()

        raw = b"Raw profile type %s\0"
        raw_xmp, raw_exif = make.raw_profile("xmp", xmp), make.raw_profile("exif", b"Exif\0\0" + exif)
        places = {
            "zTXt": [(b"zTXt", raw % b"xmp" + b"\0" + packed(raw_xmp)), (b"zTXt", raw % b"exif" + b"\0" + packed(raw_exif))],
            "tEXt": [(b"tEXt", raw % b"xmp" + raw_xmp), (b"tEXt", raw % b"exif" + raw_exif)],
            "APP1": [(b"zTXt", raw % b"APP1" + b"\0" + packed(make.raw_profile("APP1", block)))
                     for block in (b"http://ns.adobe.com/xap/1.0/\0" + xmp, b"Exif\0\0" + exif)],
            "fixed": [(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + packed(xmp, 9, make.zlib.Z_FIXED)),
                      (b"eXIf", b"Exif\0\0" + exif)],
            "stored": [(b"iTXt", b"XML:com.adobe.xmp\0\1\0en\0\0" + packed(xmp, 0)), (b"eXIf", exif)],
            "letters": [(b"zTXt", b"XML:com.adobe.xmp\0\0" + packed(xmp, 9, make.zlib.Z_HUFFMAN_ONLY)), (b"eXIf", exif)]}
        for name, chunks in places.items():
            source = self.write("front.png", make.png(front, chunks=chunks).data)
            self.reproject(source, name, "--format", "png", "--filter", "nearest")
            self.assertEqual(sorted(self.remarks()), ["placed", "pose"], name)
            self.assertEqual(bytes(read_exif(blocks_of(self.read(name, "front_v00.png"))[0])[1][DATE][1]),
                             TAKEN.encode() + b"\0", name)
        damaged = bytearray(places["zTXt"][0][1])
        damaged[-1] ^= 1
        self.reproject(self.write("front.png", make.png(front, chunks=[(b"zTXt", bytes(damaged))]).data), "damaged")
        self.assertEqual(self.remarks()["metadata_not_read"]["text"], "not read: XMP")

    def test_gpano_is_used_or_said(self):
        """All of it or nothing, in one line; a pose of 90 degrees turns the views."""
        size = {"GPano:FullPanoWidthPixels": 256, "GPano:FullPanoHeightPixels": 128,
                "GPano:CroppedAreaImageWidthPixels": 256, "GPano:CroppedAreaImageHeightPixels": 128,
                "GPano:CroppedAreaLeftPixels": 0, "GPano:CroppedAreaTopPixels": 0}
        pose = {"GPano:PoseHeadingDegrees": 90}
        used = [dict(SPHERE, **pose), dict(SPHERE, **size, **pose), dict(size, **pose), pose,
                {"GPano:ProjectionType": " Equirectangular ", **pose}, {"GPano:PoseHeadingDegrees": 450},
                {"GPano:PoseHeadingDegrees": "9.0E1"}, {"GPano:PoseHeadingDegrees": "-270"}]
        ignored = {'PosePitchDegrees="20,0" is not a number': {"GPano:PosePitchDegrees": "20,0"},
                   'PoseRollDegrees="20??" is not a number': {"GPano:PoseRollDegrees": "20\u00b0"},
                   'CroppedAreaLeftPixels="-3" is no number of pixels': {"GPano:CroppedAreaLeftPixels": -3},
                   "256x128 at 3,0 does not fit into 256x128": {"GPano:CroppedAreaLeftPixels": 3},
                   "FullPanoHeightPixels is missing or 0": {"GPano:FullPanoHeightPixels": 0}}
        for properties in used:
            source = self.write("a.png", make.png(panorama(), xmp_packet=make.xmp(properties)).data)
            self.reproject(source, "used", "--format", "ppm")
            self.assertEqual([pixel(read_pnm(self.path("used", "a_v%02d.ppm" % view)), 16, 16) for view in (1, 2)],
                             [RED, GREEN], properties)
            self.assertEqual(list(self.remarks()), ["pose"], properties)
        for fault, properties in ignored.items():
            source = self.write("a.png", make.png(panorama(), xmp_packet=make.xmp({**SPHERE, **size, **pose, **properties})).data)
            self.reproject(source, "ignored", "--format", "ppm")
            self.assertEqual(pixel(read_pnm(self.path("ignored", "a_v00.ppm")), 16, 16), RED, fault)
            self.assertEqual(list(self.remarks()), ["gpano_ignored"], fault)
            self.assertEqual(self.remarks()["gpano_ignored"]["text"],
                             "GPano is ignored: %s: taken for a whole sphere" % fault)
        self.reproject(self.write("a.png", make.png(panorama(), xmp_packet=make.xmp(SPHERE)).data), "nothing")
        self.assertEqual(self.remarks(), {})

    def test_bigtiff_says_all(self):
        for order in ("II", "MM"):
            made = make.tiff(panorama(), order=order, big=True, xmp_packet=make.xmp({"GPano:PoseHeadingDegrees": 90}),
                             icc_profile=make.icc(), extra=make.exif_entries(taken=TAKEN, gps=PLACE))
            source = self.write("a.tif", made.data)
            self.reproject(source, "out", "--format", "tif")
            block, icc = blocks_of(self.read("out", "a_v01.tif"))
            first, exif, gps = read_exif(block)
            self.assertEqual((bytes(exif[DATE][1]), bytes(gps[1][1]), icc), (TAKEN.encode() + b"\0", b"N\0", make.icc()))
            self.assertEqual(list(self.remarks()), ["pose"])
            thumbnail = make.tiff(order=order, big=True, extra={254: (make.LONG, [1])})
            outcome = self.reproject(self.write("a.tif", thumbnail.data), "thumbnail", status=1)
            self.assertIn("TIFF (a thumbnail first)", outcome.err)

    def test_what_is_dropped_is_said(self):
        ways = {"GPS position": make.exif_entries(gps=PLACE), "date": make.exif_entries(taken="6 May 2024")}
        ways["GPS position"][make.SUB_IFD_GPS][2] = [(48, 0), (15, 1), (0, 1)]
        for said, entries in ways.items():
            source = self.write("a.tif", make.tiff(panorama(), extra=entries).data)
            self.reproject(source, "out")
            self.assertEqual(self.remarks()["metadata_not_read"]["text"], "not read: " + said)

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
