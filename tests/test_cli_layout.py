#!/usr/bin/env python3
"""tests/test_cli_layout.py -- where the command puts what it makes: layouts, directories below the inputs, masks by
frame, what other settings left; and lists in other encodings."""
import json
import os
import shutil
import sys
import unittest

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import (  # noqa: E402
    Case, MANIFEST, RED, GREEN, BLUE, YELLOW, WHITE, GRAY, write_directions, write_pgm, write_ppm, read_pnm, pixel,
    read_gray_png, read_npy, start, finish, gpustage, has_format, main
)

SMALL = ["--format", "ppm", "--size", "16x16"]


def files_below(folder):
    """Relative names, sorted, without the manifest."""
    found = [os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder)
             for name in names]
    return sorted(name for name in found if name != MANIFEST)


def read(*names):
    with open(os.path.join(*names), "rb") as stream:
        return stream.read()


class LayoutCase(Case):
    def run_in(self, *arguments, code=0, says=()):
        return self.check(gpustage("reproject", "-o", self.path("out"), *SMALL, *arguments), code, *says)

    def below(self, folder="out"):
        return files_below(self.path(folder))


# ---- layouts ------------------------------------------------------------------------------------------------

class Colmap(LayoutCase):
    def test_trees_and_rig(self):
        folder = self.panoramas(2)
        write_pgm(self.path("mask.pgm"), 64, 32, [bytes([1] * 40 + [0] * 24)] * 32)
        masks = ["--mask", self.path("mask.pgm")] + (["--mask-out"] if has_format("png") else [])
        self.run_in(folder, "--views", "3", *masks)
        flat = {name: read(self.path("out", name)) for name in self.below()}
        shutil.rmtree(self.path("out"))
        self.run_in(folder, "--views", "3", "--layout", "colmap", *masks)
        names = ["images/v%02d/pano%02d.ppm" % (v, i) for v in range(3) for i in range(2)]
        kept = ["masks/v%02d/pano%02d.ppm.png" % (v, i) for v in range(3) for i in range(2)] if len(masks) > 2 else []
        self.assertEqual(self.below(), sorted(names + kept + ["rig_config.json"]))
        for v in range(3):
            for i in range(2):
                self.assertEqual(read(self.path("out", names[2 * v + i])), flat["pano%02d_v%02d.ppm" % (i, v)])
                if kept:
                    self.assertEqual(read(self.path("out", kept[2 * v + i])), flat["pano%02d_v%02d.ppm.png" % (i, v)])
        self.assertTrue(os.path.exists(self.path("out", MANIFEST)))
        with open(self.path("out", "rig_config.json"), encoding="utf-8") as stream:
            (rig,) = json.load(stream)
        self.assertEqual([camera["image_prefix"] for camera in rig["cameras"]], ["v00/", "v01/", "v02/"])
        for camera in rig["cameras"]: # every prefix is a folder under images/, and f is half of 16
            self.assertTrue(os.path.isdir(self.path("out", "images", camera["image_prefix"])))
            self.assertEqual(camera["camera_model_name"], "PINHOLE")
            self.assertEqual(camera["camera_params"], [8, 8, 8, 8])
            self.assertNotIn("image_suffix", camera)

    def test_resume(self):
        folder = self.panoramas(3)
        flags = [folder, "--views", "2", "--layout", "colmap", "--stats", self.path("stats.json")]
        self.run_in(*flags)
        wanted = {name: read(self.path("out", name)) for name in self.below()}
        os.remove(self.path("out", "images", "v01", "pano02.ppm"))
        self.run_in(*flags, "--resume")
        self.assertEqual(self.stats()["items"]["skipped"], 2)
        self.assertEqual({name: read(self.path("out", name)) for name in self.below()}, wanted)
        self.run_in(folder, "--views", "2", "--resume", code=2, says=["layout=colmap, this run has layout=flat"])

    def test_a_rig_elsewhere(self):
        folder = self.panoramas(1)
        self.run_in(folder, "--views", "2", "--layout", "colmap", "--rig", self.path("rig.json"))
        self.assertEqual(self.below(), ["images/v00/pano00.ppm", "images/v01/pano00.ppm"])
        self.assertIn("v01/", read(self.path("rig.json")).decode())

    def test_what_killed_runs_left_in_the_trees(self):
        folder = self.panoramas(1)
        self.run_in(folder, "--views", "2", "--layout", "colmap")
        tag = self.path("out", ".gpustage-00000000000000aa")
        left = self.path("out", "images", "v01", ".gpustage-00000000000000aa-7.tmp")
        other = self.path("out", "images", "v01", ".gpustage-00000000000000ab-7.tmp")
        os.symlink(self.path("out"), self.path("out", "images", "round"))
        for path in (tag + ".lock", left, other):
            with open(path, "wb"):
                pass
        self.run_in(folder, "--views", "2", "--layout", "colmap")
        self.assertFalse(os.path.exists(left) or os.path.exists(tag + ".lock"))
        self.assertTrue(os.path.exists(other), "nobody knows whose that is")

    def test_what_is_read_is_not_written(self):
        write_directions(self.path("a.ppm"), 64, 32)
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap")
        inner = self.path("out", "images", "v01", "a.ppm")
        before = read(inner)
        self.run_in(inner, "--views", "2", "--layout", "colmap", code=2,
                    says=["images/v01/a.ppm, made of", "would overwrite an input"])
        os.link(self.path("a.ppm"), self.path("out", "rig.link"))
        os.replace(self.path("out", "rig.link"), self.path("out", "rig_config.json"))
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap", code=2,
                    says=["rig_config.json: would overwrite the input"])
        os.remove(self.path("out", "rig_config.json"))
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap", "--stats", inner, code=2,
                    says=["a.ppm: is the name of an output, made of"])
        os.symlink(self.path("out", "images"), self.path("way"))
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap", "--stats",
                    self.path("way", "v00", "a.ppm"), code=2, says=["is the name of an output, made of"])
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap", "--stats",
                    self.path("out", "rig_config.json"), code=2, says=["is the file of --rig, too"])
        self.assertEqual(read(inner), before)

    def test_a_file_in_the_way_of_a_folder(self):
        write_directions(self.path("a.ppm"), 64, 32)
        os.makedirs(self.path("out", "images"))
        with open(self.path("out", "images", "v01"), "wb"):
            pass
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap", code=3, says=["make directory", "v01"])
        if not has_format("png"):
            self.skipTest("PNG is not built in: masks were not tried")
        os.remove(self.path("out", "images", "v01"))
        with open(self.path("out", "masks"), "wb"):
            pass
        write_pgm(self.path("mask.pgm"), 64, 32, [b"\1" * 32 + b"\0" * 32] * 32)
        self.run_in(self.path("a.ppm"), "--views", "2", "--layout", "colmap", "--mask", self.path("mask.pgm"),
                    "--mask-out", code=3, says=["out: File exists"])


def apply(matrix, vector):
    return [sum(matrix[r][c] * vector[c] for c in range(3)) for r in range(3)]


class Nerfstudio(LayoutCase):
    def transforms(self):
        with open(self.path("out", "transforms.json"), encoding="utf-8") as stream:
            return json.load(stream)

    def test_poses(self):
        """What a camera looks along, its right and its up, in a world whose z is up and y the panorama's middle."""
        write_directions(self.path("a.ppm"))
        looks = [("0,0,0", RED, (0, 1, 0)), ("90,0,0", GREEN, (1, 0, 0)), ("180,0,0", BLUE, (0, -1, 0)),
                 ("-90,0,0", YELLOW, (-1, 0, 0)), ("0,90,0", WHITE, (0, 0, 1)), ("0,-90,0", GRAY, (0, 0, -1))]
        flags = [part for look, _, _ in looks for part in ("--view", look)]
        self.run_in(self.path("a.ppm"), "--layout", "nerfstudio", *flags)
        told = self.transforms()
        self.assertEqual(self.below(), ["images/a_v%02d.ppm" % i for i in range(6)] + ["transforms.json"])
        self.assertEqual((told["fl_x"], told["fl_y"], told["cx"], told["cy"], told["w"], told["h"]),
                         (8, 8, 8, 8, 16, 16))
        self.assertEqual((told["camera_model"], told["k1"]), ("OPENCV", 0))
        for frame, (_, colour, direction) in zip(told["frames"], looks):
            self.assertEqual(pixel(read_pnm(self.path("out", frame["file_path"])), 8, 8), colour)
            matrix = frame["transform_matrix"]
            self.assertEqual([row[3] for row in matrix], [0, 0, 0, 1])
            self.assertEqual(matrix[3], [0, 0, 0, 1])
            for found, wanted in zip(apply(matrix, (0, 0, -1)), direction):
                self.assertAlmostEqual(found, wanted, 12)
        level = told["frames"][1]["transform_matrix"] # to the right: its up is up, its right is behind
        self.assertEqual([round(v, 9) for v in apply(level, (0, 1, 0))], [0, 0, 1])
        self.assertEqual([round(v, 9) for v in apply(level, (1, 0, 0))], [0, -1, 0])

    def test_rolled(self):
        write_directions(self.path("a.ppm"))
        self.run_in(self.path("a.ppm"), "--layout", "nerfstudio", "--view", "0,0,90", "--view", "30,20,10,60")
        first, second = self.transforms()["frames"]
        # Rolled clockwise by 90 degrees the camera has its top to the right.
        self.assertEqual([round(v, 9) for v in apply(first["transform_matrix"], (0, 1, 0))], [1, 0, 0])
        self.assertEqual((first["fl_x"], round(second["fl_x"], 6)), (8, round(8 * 3 ** 0.5, 6)))
        self.assertNotIn("fl_x", self.transforms())

    def test_whole_frames_only(self):
        folder = self.panoramas(3)
        with open(self.path("in", "pano01.ppm"), "wb") as stream:
            stream.write(b"P6\n")
        os.mkdir(self.path("out"))
        with open(self.path("out", "transforms.json"), "w", encoding="ascii") as stream:
            stream.write("of another run")
        flags = [folder, "--views", "2", "--layout", "nerfstudio", "--stats", self.path("stats.json")]
        self.run_in(*flags, code=1)
        self.assertEqual([f["file_path"] for f in self.transforms()["frames"]],
                         ["images/pano%02d_v%02d.ppm" % (i, v) for i in (0, 2) for v in (0, 1)])
        write_directions(self.path("in", "pano01.ppm"), 64, 32)
        self.run_in(*flags, "--resume")
        self.assertEqual(self.stats()["items"]["skipped"], 2)
        told = self.transforms()
        self.assertEqual(len(told["frames"]), 6)
        self.assertNotIn("mask_path", told["frames"][0])

    @unittest.skipUnless(sys.platform.startswith("linux"), "names are bytes on Linux")
    def test_names_that_json_cannot_hold(self):
        """What transforms.json names is there; what it cannot name is said."""
        self.panoramas(1)
        os.rename(self.path("in", "pano00.ppm"), os.path.join(os.fsencode(self.path("in")), b"caf\xe9.ppm"))
        write_directions(self.path("in", "caf\u00e9 \U0001f4f7.ppm"), 64, 32)
        for flags in ((), ("--resume",)):
            outcome = self.run_in(self.path("in"), "--views", "2", "--layout", "nerfstudio", "--stats",
                                  self.path("stats.json"), *flags)
            self.assertIn("its views are left out of transforms.json", outcome.err)
            self.assertEqual([f["file_path"] for f in self.transforms()["frames"]],
                             ["images/caf\u00e9 \U0001f4f7_v%02d.ppm" % v for v in (0, 1)])
            self.assertIn("not_in_transforms", str(self.stats()["remarks"]))
        self.assertEqual(len(os.listdir(self.path("out", "images"))), 4)

    def test_none_while_outputs_change(self):
        self.panoramas(3)
        flags = ["reproject", *self.files(), "-o", self.path("out"), "--views", "1", "--layout", "nerfstudio", *SMALL]
        self.check(gpustage(*flags), 0)
        pipes = self.fifos([2])
        child = start(*flags)
        pipe = self.wait_for_reader(child, pipes[0])
        self.assertFalse(os.path.exists(self.path("out", "transforms.json")))
        self.interrupt(child)
        os.close(pipe)
        self.check(finish(child), 130)
        self.assertEqual([f["file_path"] for f in self.transforms()["frames"]],
                         ["images/pano00_v00.ppm", "images/pano01_v00.ppm"])

    @unittest.skipUnless(has_format("png"), "PNG is not built in")
    def test_masks(self):
        folder = self.panoramas(1)
        write_pgm(self.path("mask.pgm"), 64, 32, [b"\1" * 40 + b"\0" * 24] * 32)
        self.run_in(folder, "--views", "2", "--layout", "nerfstudio", "--mask", self.path("mask.pgm"), "--mask-out")
        for v, frame in enumerate(self.transforms()["frames"]):
            self.assertEqual(frame["mask_path"], "masks/pano00_v%02d.ppm.png" % v)
            self.assertEqual(read_gray_png(self.path("out", frame["mask_path"]))[:2], (16, 16))


# ---- masks --------------------------------------------------------------------------------------------------

class Masks(LayoutCase):
    def masks(self, pattern, count=3, folder="keep", size=(64, 32)):
        """Masks of those panoramas, each another part of the picture. They are PGM, whatever their names say."""
        os.makedirs(self.path(folder), exist_ok=True)
        for i in range(count):
            row = bytes(1 if (x + 9 * i) % 40 < 24 else 0 for x in range(size[0]))
            write_pgm(self.path(folder, pattern % i), size[0], size[1], [row] * size[1])
        return self.path(folder)

    def test_each_frame_has_its_own(self):
        folder = self.panoramas(3)
        out = ["--mask-out"] if has_format("png") else []
        formats = ["ppm"] + [name for name in ("jpg", "png") if has_format(name)]
        for form in formats:
            wanted = {}
            flags = ["--views", "3", "--size", "24x16", "--format", form]
            self.masks("pano%02d.png")
            for i in range(3):
                shutil.rmtree(self.path("out"), ignore_errors=True)
                self.check(gpustage("reproject", self.path("in", "pano%02d.ppm" % i), "-o", self.path("out"), *flags,
                                    *out, "--mask", self.path("keep", "pano%02d.png" % i)), 0)
                wanted.update({name: read(self.path("out", name)) for name in self.below()})
            self.assertEqual(len(wanted), 18 if out else 9)
            for pattern in ("pano%02d.png", "pano%02d.ppm.png", "pano%02d_mask.png", "m-pano%02d.png"):
                shutil.rmtree(self.path("keep"), ignore_errors=True)
                shutil.rmtree(self.path("out"), ignore_errors=True)
                names = ["--mask-names", "m-{stem}.png"] if pattern[0] == "m" else []
                self.check(gpustage("reproject", folder, "-o", self.path("out"), *flags, *out, *names, "--mask",
                                    self.masks(pattern)), 0)
                self.assertEqual({name: read(self.path("out", name)) for name in self.below()}, wanted)

    def test_frames_without_a_good_one_fail_alone(self):
        folder = self.panoramas(4)
        keep = self.masks("pano%02d.png", 3)
        with open(self.path("keep", "pano01.png"), "wb") as stream:
            stream.write(b"P5\n64 32\n")
        write_pgm(self.path("keep", "pano02.png"), 32, 16, [b"\1" * 16 + b"\0" * 16] * 16)
        names = " or ".join(os.path.join(keep, name) for name in ("pano03.png", "pano03.ppm.png", "pano03_mask.png"))
        self.run_in(folder, "--views", "1", "--mask", keep, code=1,
                    says=["pano03.ppm: source: --mask=%s has no mask of this frame: no %s" % (keep, names),
                          "pano01.ppm: mask: %s: PNM" % os.path.join(keep, "pano01.png"),
                          "pano02.ppm: mask: the mask has 32 x 16 pixels: must be the frame's 64 x 32"])
        self.assertEqual(self.below(), ["pano00_v00.ppm"])
        self.run_in(folder, "--views", "1", "--mask", keep, "--mask-names", "{name}.x.png", code=1,
                    says=["no " + os.path.join(keep, "pano00.ppm.x.png")])

    def test_resume_knows_the_mask(self):
        folder = self.panoramas(3)
        flags = [folder, "--views", "1", "--mask", self.masks("a b%%%02d.png"), "--stats", self.path("stats.json"),
                 "--resume"]
        for i in range(3):
            os.rename(self.path("in", "pano%02d.ppm" % i), self.path("in", "a b%%%02d.ppm" % i))
        self.run_in(*flags)
        self.run_in(*flags)
        self.assertEqual(self.stats()["items"]["skipped"], 3)
        os.utime(self.path("keep", "a b%01.png"), (5, 5))
        os.rename(self.path("keep", "a b%02.png"), self.path("keep", "a b%02_mask.png"))
        self.run_in(*flags)
        self.assertEqual(self.stats()["items"]["skipped"], 1)
        os.remove(self.path("keep", "a b%00.png"))
        self.run_in(*flags, code=1)
        self.assertEqual(self.stats()["items"]["skipped"], 2)
        self.run_in(folder, "--views", "1", "--resume", code=2, says=["mask=by frame, of the usual names"])

    def test_resume_tells_mask_folders_apart(self):
        """Masks of the same names, sizes and times; and links to a folder lead to the same masks."""
        flags = [self.panoramas(2), "--views", "1", "--stats", self.path("stats.json"), "--resume", "--mask"]
        for folder in ("keep", "other"):
            for name in os.listdir(self.masks("pano%02d.png", 2, folder=folder)):
                os.utime(self.path(folder, name), (5, 5))
        os.symlink(self.path("other"), self.path("link"))
        for folder, skipped in (("keep", 0), ("keep", 2), ("other", 0), ("link", 2)):
            self.run_in(*flags, self.path(folder))
            self.assertEqual(self.stats()["items"]["skipped"], skipped, folder)
        for _ in range(2): # of a time that no list has nothing is known
            os.utime(self.path("other", "pano00.png"), (-5, -5))
            self.run_in(*flags, self.path("other"))
            self.assertEqual(self.stats()["items"]["skipped"], 1)

    def test_masks_are_read_and_not_written(self):
        folder = self.panoramas(1)
        keep = self.masks("pano%02d_v00.png", 1)
        self.check(gpustage("reproject", folder, "-o", keep, "--views", "1", "--format", "png", "--mask", keep,
                            "--mask-names", "{stem}_v00.png"), 2 if has_format("png") else 3)
        self.assertEqual(read(self.path("keep", "pano00_v00.png"))[:2], b"P5")

    @unittest.skipUnless(has_format("png"), "PNG is not built in")
    def test_masks_of_views_are_what_the_views_keep(self):
        """In every convention, with every filter; the picture is nowhere black by itself."""
        folder = self.panoramas(1)
        rows = [bytes((x * x + 3 * y * y) // 5 % 3 for x in range(64)) for y in range(32)]
        write_pgm(self.path("mask.pgm"), 64, 32, rows)
        for convention in ("native", "ffmpeg", "py360", "opencv"):
            for kind in ("nearest", "bilinear", "area"):
                self.run_in(folder, "--view", "10,20,30", "--size", "37x29", "--mask", self.path("mask.pgm"),
                            "--mask-out", "--convention", convention, "--filter", kind)
                view = read_pnm(self.path("out", "pano00_v00.ppm"))[3]
                kept = read_gray_png(self.path("out", "pano00_v00.ppm.png"))[3]
                wrong = [n for n in range(37 * 29) if any(view[3 * n:3 * n + 3]) != (kept[n] != 0)]
                self.assertEqual(wrong[:5], [], (convention, kind))
                self.assertEqual(set(kept), {0, 255})

    @unittest.skipUnless(has_format("png"), "PNG is not built in")
    def test_names_of_the_masks_of_views(self):
        folder = self.panoramas(1)
        keep = self.masks("pano%02d.png", 1)
        self.run_in(folder, "--views", "2", "--mask", keep, "--mask-out={stem}_mask.png")
        self.assertEqual(self.below(), ["pano00_v00.ppm", "pano00_v00_mask.png", "pano00_v01.ppm",
                                        "pano00_v01_mask.png"])
        shutil.rmtree(self.path("out"))
        self.run_in(folder, "--views", "1", "--mask", keep, "--mask-out={stem}.png", "--layout", "colmap")
        self.assertEqual(self.below(), ["images/v00/pano00.ppm", "masks/v00/pano00.png", "rig_config.json"])
        for pattern in ("mask.png", "{stem}.jpg", "{stem}/a.png", "../{name}.png", ".png", "{view}.png"):
            self.run_in(folder, "--mask", keep, "--mask-out=" + pattern, code=2,
                        says=["--mask-out=%s: must be a name with {stem} or {name} in it" % pattern])
        for pattern in ("{stem}.png", "x_{stem}.png", "{name}_v7.png"):
            self.run_in(folder, "--mask", keep, "--mask-out=" + pattern, "--format", "png", code=2,
                        says=["--mask-out=%s: is the name of a view" % pattern])
        self.run_in(folder, "--mask-names", "{stem}.png", code=2, says=["--mask-names: needs --mask DIR"])
        self.run_in(folder, "--mask-out", code=2, says=["--mask-out: needs --mask"])

    def test_what_is_remarked(self):
        folder = self.panoramas(3)
        keep = self.masks("pano%02d.png")
        for value, says in ((1, "keeps every pixel"), (0, "keeps no pixel")):
            for i in (0, 1):
                write_pgm(self.path("keep", "pano%02d.png" % i), 64, 32, [bytes([value]) * 64] * 32)
            outcome = self.run_in(folder, "--views", "1", "--mask", keep, says=["note: " + keep, says])
            self.assertEqual(outcome.err.count(says), 1, outcome)
            outcome = self.run_in(folder, "--views", "1", "--mask", keep, "--quiet", "--stats", self.path("stats.json"))
            self.assertEqual(outcome.err, "")
            (remark,) = self.stats()["remarks"]
            self.assertEqual((remark["kind"], remark["count"]), ("mask_keeps_all" if value else "mask_keeps_none", 2))
            self.assertIn(remark["first_item"], [os.path.join(keep, "pano%02d.png" % i) for i in (0, 1)])
            self.assertEqual(remark["text"], "the mask " + says)
            self.run_in(folder, "--views", "1", "--mask", self.path("keep", "pano01.png"), says=[says])
        if has_format("png"): # of two views, one at the front and one at the back, one is dropped
            for i in range(3):
                write_pgm(self.path("keep", "pano%02d.png" % i), 64, 32, [bytes(16) + b"\1" * 32 + bytes(16)] * 32)
            for mask, says in ((keep, "_v01.ppm.png: the mask keeps no pixel of the view"),
                               (self.path("keep", "pano00.png"), "v01: the mask keeps no pixel of the view")):
                outcome = self.run_in(folder, "--views", "2", "--mask", mask, "--mask-out", says=[says])
                self.assertEqual(outcome.err.count("\n"), 1, outcome)
            shutil.rmtree(self.path("out"))
        with open(self.path("alpha.pam"), "wb") as stream:
            stream.write(b"P7\nWIDTH 64\nHEIGHT 32\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" +
                         (b"\xff\xff\xff\xff" * 32 + b"\xff\xff\xff\x00" * 16 + b"\0\0\0\0" * 16) * 32)
        outcome = self.run_in(folder, "--views", "1", "--mask", self.path("alpha.pam"),
                              says=["the mask's alpha does not count, and says otherwise than its colours"])
        self.assertEqual(outcome.err.count("\n"), 1, outcome)


# ---- directories below the inputs -------------------------------------------------------------------------------

class Recursive(LayoutCase):
    def tree(self):
        for i, names in enumerate((("in", "a.ppm"), ("in", "one", "a.ppm"), ("in", "one", "deep", "b.ppm"),
                                   ("in", "two", "a.ppm"))):
            os.makedirs(self.path(*names[:-1]), exist_ok=True)
            write_ppm(self.path(*names), 64, 32, [bytes((40 * i + 40, 0, 0)) * 64] * 32)
        return self.path("in")

    def check_views(self, pattern):
        for i, name in enumerate(("a", "one/a", "one/deep/b", "two/a")):
            folder, stem = os.path.split(name)
            path = self.path("out", pattern % {"folder": folder + "/" if folder else "", "stem": stem})
            self.assertEqual(pixel(read_pnm(path), 3, 3), (40 * i + 40, 0, 0), path)

    def test_outputs_keep_the_directories(self):
        folder = self.tree()
        self.run_in(folder, "--recursive", "--views", "2", "--stats", self.path("stats.json"))
        self.check_views("%(folder)s%(stem)s_v01.ppm")
        self.assertEqual(len(self.below()), 8)
        self.run_in(folder + "//", "--recursive", "--views", "2", "--resume", "--stats", self.path("stats.json"))
        self.assertEqual(self.stats()["items"]["skipped"], 4)
        shutil.rmtree(self.path("out"))
        self.run_in(folder, "--recursive", "--views", "2", "--layout", "colmap")
        self.check_views("images/v01/%(folder)s%(stem)s.ppm")
        self.assertEqual(len(self.below()), 9)
        shutil.rmtree(self.path("out"))
        self.run_in(folder, "--recursive", "--views", "2", "--layout", "nerfstudio")
        self.check_views("images/%(folder)s%(stem)s_v00.ppm")

    def test_tensors(self):
        folder = self.tree()
        self.check(gpustage("preprocess", folder, "-o", self.path("out"), "--size", "4x4", "--recursive"), 0)
        self.assertEqual(self.below(), ["a.npy", "one/a.npy", "one/deep/b.npy", "two/a.npy"])
        self.check(gpustage("preprocess", folder, "-o", self.path("t.npy"), "--size", "1x1", "--dtype", "u8",
                            "--recursive"), 0)
        self.assertEqual(read_npy(self.path("t.npy"))[2][::3], [40, 80, 120, 160])

    def test_masks_lie_in_the_same_directories(self):
        folder = self.tree()
        for i, names in enumerate((("a.png",), ("one", "a_mask.png"), ("one", "deep", "b.ppm.png"), ("two", "a.png"))):
            os.makedirs(self.path("keep", *names[:-1]), exist_ok=True)
            write_pgm(self.path("keep", *names), 64, 32, [bytes([i % 2]) * 63 + bytes([1 - i % 2])] * 32)
        self.run_in(folder, "--recursive", "--views", "1", "--mask", self.path("keep"))
        for i, name in enumerate(("a", "one/a", "one/deep/b", "two/a")):
            kept = pixel(read_pnm(self.path("out", name + "_v00.ppm")), 8, 8) != (0, 0, 0)
            self.assertEqual(kept, i % 2 == 1, name)

    def test_without_it_directories_are_named(self):
        folder = self.tree()
        for name in ("x.txt", "y.txt"):
            with open(self.path("in", name), "wb"):
                pass
        for i in range(3):
            os.mkdir(self.path("in", "more%d" % i))
        os.mkdir(self.path("in", ".hidden"))
        outcome = self.run_in(folder, "--views", "1")
        self.assertEqual(outcome.err, "gpustage: note: %s: 1 picture; 2 other files are left out: x.txt, y.txt; 5 "
                         "folders are left out (see --recursive): more0, more1, more2, ...\n" % folder)
        outcome = self.run_in(folder, folder, "--views", "1", code=2) # of each directory, though one is enough
        self.assertEqual(outcome.err.count("5 folders are left out"), 2, outcome)
        self.assertEqual(self.run_in(folder, "--views", "1", "--quiet", "--stats", self.path("stats.json")).err, "")
        (remark,) = self.stats()["remarks"]
        self.assertEqual((remark["kind"], remark["count"], remark["first_item"]), ("left_out", 1, folder))
        self.assertIn("more0, more1, more2, ...", remark["text"])

    def test_links_in_a_circle(self):
        folder = self.tree()
        os.symlink(folder, self.path("in", "one", "deep", "again"))
        os.symlink("..", self.path("in", "two", "up"))
        os.mkdir(self.path("apart"))
        write_directions(self.path("apart", "c.ppm"), 64, 32)
        os.symlink(self.path("apart"), self.path("in", "way1"))
        os.symlink(self.path("apart"), self.path("in", "way2"))
        self.run_in(folder, "--recursive", "--views", "1")
        self.assertEqual(self.below(), ["a_v00.ppm", "one/a_v00.ppm", "one/deep/b_v00.ppm", "two/a_v00.ppm",
                                        "way1/c_v00.ppm"])

    def test_outputs_and_masks_are_no_inputs(self):
        folder = self.tree()
        write_pgm(self.path("mask.pgm"), 64, 32, [b"\1" * 63 + b"\0"] * 32)
        for name in ("in/keep/a.png", "in/keep/one/a.png", "in/keep/one/deep/b.png", "in/keep/two/a.png"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            shutil.copy(self.path("mask.pgm"), self.path(name))
        out = self.path("in", "views")
        for _ in range(2):
            outcome = gpustage("reproject", folder, "-o", out, "--recursive", "--views", "1", "--mask",
                               self.path("in", "keep"), *SMALL)
            self.check(outcome, 0)
            self.assertEqual(len(files_below(out)), 4)
        self.assertIn("2 folders are left out: keep, views", outcome.err)

    def test_equal_names_in_one_directory_are_refused(self):
        folder = self.tree()
        write_directions(self.path("in", "one", "a.pnm"), 64, 32)
        self.run_in(folder, "--recursive", code=2, says=["one/a.pnm", "one/a.ppm", "would be named \"one/a\""])
        os.remove(self.path("in", "one", "a.pnm"))
        os.makedirs(self.path("other", "one"))
        write_directions(self.path("other", "one", "a.ppm"), 64, 32)
        self.run_in(folder, self.path("other"), "--recursive", code=2, says=["would be named \"one/a\""])
        self.assertFalse(os.path.exists(self.path("out")))


# ---- what other settings left ------------------------------------------------------------------------------------

class Stale(LayoutCase):
    def test_views_that_are_not_written_any_more(self):
        folder = self.panoramas(2)
        self.run_in(folder, "--views", "4")
        with open(self.path("out", "pano00_v99.ppm"), "wb"):
            pass
        says = "note: %s: there are still 4 files of runs with other settings (see --clean): pano00_v02.ppm, ...\n"
        outcome = self.run_in(folder, "--views", "2", says=[says % self.path("out")])
        self.assertEqual(outcome.err.count("\n"), 1, outcome)
        self.assertEqual(len(self.below()), 9)
        # They are known further on, also to a run that goes on.
        self.run_in(folder, "--views", "2", says=["4 files of runs with other settings"])
        self.run_in(folder, "--views", "2", "--resume", says=["4 files of runs with other settings"])
        self.run_in(folder, "--views", "1", says=["6 files of runs with other settings"])
        self.run_in(folder, "--views", "2", "--clean",
                    says=["removed 4 files of runs with other settings: pano00_v02.ppm, ..."])
        self.assertEqual(self.below(), ["pano00_v00.ppm", "pano00_v01.ppm", "pano00_v99.ppm", "pano01_v00.ppm",
                                        "pano01_v01.ppm"])
        self.assertEqual(self.run_in(folder, "--views", "2", "--clean").err, "")
        self.assertEqual(self.run_in(folder, "--views", "2", "--resume").err, "")

    def test_other_extensions_layouts_and_commands(self):
        folder = self.panoramas(1)
        self.run_in(folder, "--views", "2", "--layout", "colmap")
        self.run_in(folder, "--views", "2", "--format", "npy", says=["2 files of", ": images/v00/pano00.ppm"])
        self.check(gpustage("preprocess", folder, "-o", self.path("out"), "--size", "4x4"), 0, "4 files of",
                   ": images/v00/pano00.ppm")
        self.assertTrue(os.path.isdir(self.path("out", "images", "v01")))
        self.run_in(folder, "--views", "1", "--clean", says=["removed 5 files of runs with other settings"])
        self.assertEqual(sorted(os.listdir(self.path("out"))), [MANIFEST, "pano00_v00.ppm", "rig_config.json"])

    @unittest.skipUnless(has_format("png"), "PNG is not built in")
    def test_masks(self):
        folder = self.panoramas(1)
        write_pgm(self.path("mask.pgm"), 64, 32, [b"\1" * 40 + b"\0" * 24] * 32)
        self.run_in(folder, "--views", "1", "--mask", self.path("mask.pgm"), "--mask-out={stem}-m.png")
        self.run_in(folder, "--views", "1", "--clean",
                    says=["removed 1 file of runs with other settings: pano00_v00-m.png\n"])
        self.assertEqual(self.below(), ["pano00_v00.ppm"])

    def test_outputs_of_the_same_settings_stay(self):
        """Two folders, one after the other, into one directory; and one of them had more views before."""
        first, second = self.panoramas(1, "first"), self.path("second")
        os.mkdir(second)
        write_directions(self.path("second", "b.ppm"), 64, 32)
        self.run_in(second, "--views", "3")
        self.run_in(first, "--views", "2")
        self.run_in(second, "--views", "2", says=["1 file of runs with other settings"])
        self.run_in(first, "--views", "2", "--clean", says=["1 file of runs with other settings", "b_v02.ppm"])
        self.assertEqual(self.below(), ["b_v00.ppm", "b_v01.ppm", "pano00_v00.ppm", "pano00_v01.ppm"])

    def test_links_lead_nowhere(self):
        """A folder of outputs that became a link: what lies behind it is not this directory's."""
        inner = os.path.join(self.panoramas(1), "sub")
        os.mkdir(inner)
        write_directions(os.path.join(inner, "b.ppm"), 64, 32)
        self.run_in(self.path("in"), "--views", "2", "--recursive")
        os.rename(self.path("out", "sub"), self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("out", "sub"))
        before = sorted(os.listdir(self.path("elsewhere")))
        self.assertEqual(len(before), 2)
        self.run_in(self.path("in", "pano00.ppm"), "--views", "1", "--clean")
        self.assertEqual(sorted(os.listdir(self.path("elsewhere"))), before)

    def test_not_while_another_run_is_at_work(self):
        folder = self.panoramas(2)
        flags = ["reproject", *self.files(), "-o", self.path("out"), "--views", "1", *SMALL]
        self.run_in(folder, "--views", "2")
        self.run_in(folder, "--views", "1")
        pipes = self.fifos([1])
        child = start(*flags)
        pipe = self.wait_for_reader(child, pipes[0])
        self.run_in(self.path("in", "pano00.ppm"), "--views", "1", "--clean",
                    says=["2 files of runs with other settings, kept while another run is at work there"])
        self.assertEqual(len([name for name in self.below() if name.endswith(".ppm")]), 4)
        os.close(pipe)
        self.check(finish(child), 1)

    def test_what_is_read_stays(self):
        write_directions(self.path("a.ppm"), 64, 32)
        self.run_in(self.path("a.ppm"), "--views", "3")
        self.run_in(self.path("out", "a_v02.ppm"), "--views", "1", "--clean",
                    says=["removed 2 files of runs with other settings"])
        self.assertEqual(self.below(), ["a_v02.ppm", "a_v02_v00.ppm"])

    def test_a_list_that_somebody_wrote(self):
        folder = self.panoramas(1)
        self.run_in(folder, "--views", "2")
        for name in ("up_v01.ppm", "in_v01.ppm"):
            with open(self.path(name), "wb"):
                pass
        with open(self.path("out", MANIFEST), "a", encoding="utf-8") as stream:
            for name in ("../up_v01.ppm", self.path("up_v01.ppm")):
                stream.write("stale 0%%20%d%%20%s\n" % (os.stat(self.path("up_v01.ppm")).st_mtime_ns, name))
            for name in ("../in", self.path("in")):
                stream.write("item 1 2 3 0,0 {0},{0} %s /a own/own\n".format(
                    os.stat(self.path("in_v01.ppm")).st_mtime_ns) % name)
            stream.write("stale\nstale \nstale 0\nbegin\nset\nitem 1 2 3 0 0 a /a\nitem 1 2 3 , , a /a own/own\n")
        self.run_in(folder, "--views", "1", "--clean", says=["removed 1 file of runs with other settings"])
        self.assertTrue(os.path.exists(self.path("up_v01.ppm")) and os.path.exists(self.path("in_v01.ppm")))

    def test_what_no_run_finished_stays(self):
        """Files of the names of outputs: one whose run failed, and ones that are no more as a run left them."""
        folder = self.panoramas(3)
        os.mkdir(self.path("out"))
        with open(self.path("in", "pano00.ppm"), "wb") as stream:
            stream.write(b"P6\n")
        with open(self.path("out", "pano00_v01.ppm"), "wb") as stream:
            stream.write(b"mine")
        self.run_in(folder, "--views", "2", code=1)
        with open(self.path("out", "pano01_v01.ppm"), "ab") as stream:
            stream.write(b"more")
        before = os.stat(self.path("out", "pano02_v01.ppm"))
        os.utime(self.path("out", "pano02_v01.ppm"), ns=(before.st_atime_ns, before.st_mtime_ns + 1000000000))
        for _ in range(2): # the list that began anew knows no more of them than the first
            self.assertNotIn("other settings", self.run_in(folder, "--views", "1", "--clean", code=1).err)
        self.assertEqual([name for name in self.below() if name.endswith("v01.ppm")],
                         ["pano00_v01.ppm", "pano01_v01.ppm", "pano02_v01.ppm"])

    @unittest.skipIf(os.name == "nt", "links need rights there")
    def test_a_link_to_what_a_run_made_stays(self):
        folder = self.panoramas(1)
        self.run_in(folder, "--views", "2")
        os.rename(self.path("out", "pano00_v01.ppm"), self.path("archive.ppm"))
        os.symlink(self.path("archive.ppm"), self.path("out", "pano00_v01.ppm"))
        self.assertNotIn("other settings", self.run_in(folder, "--views", "1", "--clean").err)
        self.assertTrue(os.path.islink(self.path("out", "pano00_v01.ppm")))

    def test_a_file_of_all_tensors_stays(self):
        """It takes its name in a directory that has a list, and the list must not know it as its own."""
        folder = self.panoramas(1)
        self.check(gpustage("preprocess", folder, "-o", self.path("out"), "--size", "4x4"), 0)
        for name in ("all.npy", "pano00.npy"):
            self.check(gpustage("preprocess", folder, "-o", self.path("out", name), "--size", "5x4"), 0)
        self.assertNotIn("other settings", self.run_in(folder, "--views", "1", "--clean").err)
        self.assertEqual(self.below(), ["all.npy", "pano00.npy", "pano00_v00.ppm"])

    @unittest.skipIf(os.name == "nt", "no names there hold these")
    def test_names_that_hold_separators_of_other_systems(self):
        os.mkdir(self.path("in"))
        write_directions(self.path("in", "a\\b:c d%\n.ppm"), 64, 32)
        self.run_in(self.path("in"), "--views", "3")
        self.run_in(self.path("in"), "--views", "2")
        self.run_in(self.path("in"), "--views", "1", "--clean",
                    says=["removed 2 files of runs with other settings"])
        self.assertEqual(self.below(), ["a\\b:c d%\n_v00.ppm"])

    def test_without_a_directory(self):
        self.check(gpustage("preprocess", self.panoramas(1), "-o", self.path("t.npy"), "--size", "4x4", "--clean"), 2,
                   "--clean: needs -o DIR")


# ---- lists --------------------------------------------------------------------------------------------------

class Lists(LayoutCase):
    def test_encodings(self):
        name = "caf\u00e9 \u20ac \U0001f4f7.ppm"
        write_directions(self.path(name), 64, 32)
        lines = "%s\r\n\r\n" % self.path(name)
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-be-sig"):
            data = b"\xfe\xff" + lines.encode("utf-16-be") if encoding == "utf-16-be-sig" else lines.encode(encoding)
            with open(self.path("list.txt"), "wb") as stream:
                stream.write(data)
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.run_in("@" + self.path("list.txt"), "--views", "1")
            self.assertEqual(self.below(), [name[:-4] + "_v00.ppm"])
        for data, says in ((lines.encode("utf-16-le"), "list.txt: has a zero byte in it"),
                           (b"\xff\xfea", "list.txt: is UTF-16 of an odd number of bytes"),
                           (b"\xef\xbb\xbf", "holds no picture"), (b"\xff\xfe", "holds no picture")):
            with open(self.path("list.txt"), "wb") as stream:
                stream.write(data)
            self.run_in("@" + self.path("list.txt"), "--views", "1", code=2, says=[says])


if __name__ == "__main__":
    main()
