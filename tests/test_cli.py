#!/usr/bin/env python3
"""tests/test_cli.py -- the command line and what the command makes of pictures: probe, bench, reproject, preprocess."""
import glob
import json
import math
import os
import shutil
import signal
import socket
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import (  # noqa: E402
    Case, RED, GREEN, BLUE, YELLOW, WHITE, GRAY, write_ppm, write_pgm, directions,
    write_directions, write_npy, write_png16, read_pnm, pixel, read_gray_png, read_npy, read_files, start, finish,
    gpustage, has_format, main
)


def without_jpeg():
    return dict(os.environ, GPUSTAGE_LIBTURBOJPEG="")


# ---- help, version, wrong usage ----------------------------------------------------------------------

class Usage(Case):
    def test_help_and_version(self):
        for arguments in (["--help"], ["probe", "--help"], ["reproject", "--help"], ["preprocess", "--help"], ["help"],
                          ["bench", "--help"], ["reproject", "x", "--views", "3", "--help"]):
            outcome = self.check(gpustage(*arguments), 0)
            self.assertIn("usage: gpustage", outcome.out)
            self.assertEqual(outcome.err, "")
        self.assertIn("Example", gpustage("reproject", "--help").out)
        self.assertIn("Example", gpustage("preprocess", "--help").out)
        for arguments in (["--version"], ["reproject", "--version"], ["bench", "--version"]):
            self.assertRegex(self.check(gpustage(*arguments), 0).out, r"^gpustage \d+\.\d+\.\d+\n")

    def test_help_lists_every_option_of_the_design(self):
        reproject, preprocess = gpustage("reproject", "--help").out, gpustage("preprocess", "--help").out
        engine = ("backend mode plain tune slots readers writers workers prefetch fsync dirty-bytes pin batch on-error "
                  "resume stats trace report quiet")
        for name in (engine + " raw filter convention output recursive clean").split():
            self.assertIn("--" + name, reproject)
            self.assertIn("--" + name, preprocess)
        for name in "views view hfov vfov size mask mask-names mask-out pitch-rings rig layout format quality".split():
            self.assertIn("--" + name, reproject)
        for name in "size mean std layout dtype swap-rb".split():
            self.assertIn("--" + name, preprocess)

    def test_wrong_flags(self):
        write_directions(self.path("a.ppm"))
        with open(self.path("words.txt"), "w", encoding="utf-8") as stream:
            stream.write("not settings\n")
        wrong = [
            (["--hfov=190"], "--hfov=190: must be between 0 and 180 (exclusive)"),
            (["--hfov", "0"], "--hfov=0: must be between"),
            (["--hfov", "nan"], "--hfov=nan: must be between"),
            (["--hfov", "0x10"], "--hfov=0x10: must be between"),
            (["--hfov", "90,5"], "--hfov=90,5: must be between"),
            (["--hfov", ""], "--hfov=: must be between"),
            (["--vfov", "180"], "--vfov=180: must be between"),
            (["--size", "640"], "--size=640: must be WIDTHxHEIGHT"),
            (["--size", "0x480"], "--size=0x480: must be WIDTHxHEIGHT"),
            (["--size", "640x99999"], "--size=640x99999: must be WIDTHxHEIGHT"),
            (["--size", "640x480x3"], "--size=640x480x3: must be WIDTHxHEIGHT"),
            (["--size", "-5x5"], "--size=-5x5: must be WIDTHxHEIGHT"),
            (["--views", "0"], "--views=0: must be a whole number from 1 to 1000"),
            (["--views", "-1"], "--views=-1: must be a whole number"),
            (["--views", "3.5"], "--views=3.5: must be a whole number"),
            (["--views", "99999999999999999999999"], "must be a whole number"),
            (["--view", "1,2"], "--view=1,2: must be YAW,PITCH,ROLL"),
            (["--view", "1,2,3,200"], "--view=1,2,3,200: must be YAW,PITCH,ROLL"),
            (["--view", "1,2,3,90,5"], "--view=1,2,3,90,5: must be"),
            (["--view", "1e9,0,0"], "--view=1e9,0,0: must be"),
            (["--view", "0,0,0", "--views", "4"], "--view: cannot be joined with --views"),
            (["--view", "0,0,0", "--pitch-rings", "4"], "--view: cannot be joined with --pitch-rings"),
            (["--pitch-rings", "0,100"], "--pitch-rings=0,100: must be"),
            (["--views", "1000", "--pitch-rings", "0,10"], "at most 1000 views"),
            (["--filter", "cubic"], "--filter=cubic: must be one of nearest bilinear area"),
            (["--convention", "torch"], "--convention=torch: must be one of native ffmpeg py360 opencv"),
            (["--convention", "py360", "--size", "64x1"], "height=1: must be 2 or more with convention=PY360"),
            (["--layout", "colmap", "--format", "npy"], "--layout=colmap: needs pictures: not --format npy"),
            (["--depth", "16"], "--depth=16: .jpg does not hold it: needs --format png, tif, ppm or npy"),
            (["--format", "gif"], "--format=gif: must be one of jpg jpeg png tif tiff webp ppm npy"),
            (["--quality", "101"], "--quality=101: must be a whole number from 1 to 100"),
            (["--chroma", "411"], "--chroma=411: must be one of 444 422 420"),
            (["--format", "png", "--quality", "90"], "--quality: needs --format jpg"),
            (["--format", "ppm", "--chroma", "420"], "--chroma: needs --format jpg"),
            (["--format", "npy", "--optimise"], "--optimise: needs --format jpg"),
            (["--format", "png", "--restart-rows", "1"], "--restart-rows: needs --format jpg"),
            (["--mask-out"], "--mask-out: needs --mask"),
            (["--mask", self.path("none.png")], "none.png: No such file"),
            (["--mode", "fast"], "--mode=fast: must be one of latency balanced throughput"),
            (["--plain=both"], "--plain=both: must be one of serial inside"),
            (["--prefetch", "maybe"], "--prefetch=maybe: must be one of on off"),
            (["--fsync", "always"], "--fsync=always: must be one of file none"),
            (["--dirty-bytes", "0"], "--dirty-bytes=0: must be a whole number above 0, with K, M or G behind it"),
            (["--dirty-bytes", "1MB"], "--dirty-bytes=1MB: must be"),
            (["--dirty-bytes", "1T"], "--dirty-bytes=1T: must be"),
            (["--dirty-bytes", "17179869185G"], "--dirty-bytes=17179869185G: must be"),
            (["--pin", "all"],
             "--pin=all: gpst_context_create: desc.pin=\"all\": must be none, cores, or a list of cores"),
            (["--pin", "0-"], "--pin=0-: "), (["--pin", "1-0"], "--pin=1-0: "), (["--pin", "0,"], "--pin=0,: "),
            (["--pin", "16000"], "core 16000: not one that this process may run on"),
            (["--tune", ""], "--tune=: must be off, on or a file"),
            (["--tune", self.path("a.ppm")], "a.ppm: would overwrite the input"),
            (["--tune", self.path("words.txt")], "words.txt: gpst_settings_parse: line 1: "),
            (["--batch", "65"], "--batch=65: must be a whole number from 1 to 64"),
            (["--trace", "t.json"], "--trace=t.json: comes with a later version"),
            (["--report=r.html"], "--report=r.html: comes with a later version"),
            (["--slots", "0"], "--slots=0: must be a whole number"),
            (["--workers", "2000"], "--workers=2000: must be a whole number"),
            (["--readers", "x"], "--readers=x: must be a whole number"),
            (["--writers", "65"], "--writers=65: must be a whole number"),
            (["--on-error", "ask"], "--on-error=ask: must be one of continue stop"),
            (["--backend", "vulkan"], "--backend=vulkan: must be auto, cpu, cuda or hip"),
            (["--backend", "cpu0"], "--backend=cpu0: must be auto"), (["--backend", ""], "--backend=: must be auto"),
            (["--backend", "sim"], "--backend=sim: must be auto"),
            (["--backend", "sim:kernel_us=1"], "--backend=sim:kernel_us=1: must be auto"),
            (["--backend", "cpu:x=1"], "--backend=cpu:x=1: "),
            (["--raw", "64x32"], "--raw=64x32: must be WIDTHxHEIGHT:FORMAT"),
            (["--raw", "64x32:rgb9"], "--raw=64x32:rgb9: must be WIDTHxHEIGHT:FORMAT"),
            (["--quiet=1"], "--quiet=1: takes no value"),
            (["--mean", "0.5"], "--mean: reproject has no such option"),
            (["--nothing"], "--nothing: reproject has no such option"),
            (["-x"], "-x: reproject has no such option"),
            (["--hfov"], "--hfov: needs a value: DEGREES"),
            (["--stats", self.path("no", "s.json")], "its parent"),
            (["--rig", self.path("no", "r.json")], "its parent"),
        ]
        for flags, says in wrong:
            with self.subTest(flags=flags):
                outcome = gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), *flags)
                self.check(outcome, 2, says, "see gpustage reproject --help")
                self.assertTrue(outcome.err.startswith("gpustage: "), outcome)
                self.assertEqual(outcome.out, "")
                self.assertFalse(os.path.exists(self.path("out")), "work was done")

    def test_wrong_flags_of_preprocess(self):
        write_directions(self.path("a.ppm"))
        for flags, says in [
                ([], "--size WxH is required"),
                (["--size", "8x8", "--mean", "1,2"], "--mean=1,2: must be R,G,B"),
                (["--size", "8x8", "--std", "0"], "--std=0: must be R,G,B"),
                (["--size", "8x8", "--std", "1,1,-1"], "--std=1,1,-1: must be R,G,B"),
                (["--size", "8x8", "--mean", "0.5", "--dtype", "u8"], "--mean: needs --dtype f16 or f32"),
                (["--size", "8x8", "--dtype", "i8"], "--dtype=i8: must be one of u8 f16 f32"),
                (["--size", "8x8", "--layout", "nchw"], "--layout=nchw: must be one of chw hwc"),
                (["--size", "8x8", "--convention", "ffmpeg"],
                 "--convention=ffmpeg: must be one of native opencv torch"),
                (["--size", "8x8", "--filter", "cubic"], "--filter=cubic: must be one of nearest bilinear area"),
                (["--size", "8x8", "--views", "2"], "--views: preprocess has no such option")]:
            with self.subTest(flags=flags):
                self.check(gpustage("preprocess", self.path("a.ppm"), "-o", self.path("out"), *flags), 2, says,
                           "see gpustage preprocess --help")
                self.assertFalse(os.path.exists(self.path("out")), "work was done")
        self.check(gpustage("preprocess", self.path("a.ppm"), "-o", self.path("t.npy"), "--size", "8x8", "--resume"), 2,
                   "--resume: needs -o DIR")

    def test_wrong_commands(self):
        self.check(gpustage(), 2, "a command is required", "see gpustage --help")
        self.check(gpustage("project"), 2, "project: no such command")
        self.check(gpustage("reproject", "-o", self.path("out")), 2, "INPUT is required")
        self.check(gpustage("reproject", "x.ppm"), 2, "-o DIR is required")
        self.check(gpustage("probe", "/", "/tmp"), 2, "one PATH at most")

    def test_a_required_backend_that_is_not_there(self):
        write_directions(self.path("a.ppm"))
        rows = {row["name"]: row for row in json.loads(gpustage("probe", "--json").out)["backends"]}
        for name in ("cuda", "hip"):
            if rows[name]["compiled_in"]:
                continue # what it says then is test_cli_gpu.py's
            outcome = gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--backend", name)
            self.check(outcome, 3, "--backend=" + name, "not compiled")
            self.assertFalse(os.path.exists(self.path("out")))


class Probe(Case):
    def test_text_and_json(self):
        text = self.check(gpustage("probe", self.dir), 0).out
        for word in ("tier", "cores", "memory", "io_uring", "cuda", "hip", "libturbojpeg", "nvJPEG", "formats",
                     "storage"):
            self.assertIn(word, text)
        facts = json.loads(self.check(gpustage("probe", "--json", self.dir), 0).out)
        self.assertIn(facts["tier"], ("CPU_ONLY", "GPU_BASE"))
        self.assertGreaterEqual(facts["cores"]["allowed"], 1)
        self.assertEqual(facts["storage"]["path"], self.dir)
        backends = {b["name"]: b for b in facts["backends"]}
        self.assertTrue(backends["cpu"]["available"])
        self.assertEqual(list(backends), ["cpu", "cuda", "hip"])
        for name in ("cuda", "hip"):
            self.assertTrue(backends[name]["available"] or backends[name]["reason"])
        libraries = {library["name"]: library for library in facts["libraries"]}
        self.assertEqual(list(libraries), ["libturbojpeg", "nvJPEG"])
        for library in libraries.values():
            self.assertEqual(library["available"], library["version"] != "")
            self.assertEqual(library["available"], library["reason"] == "")
            self.assertIn("available: %s %s" % (library["name"], library["version"]) if library["available"]
                          else library["reason"], text)
        self.assertIn("formats       jpg (no libturbojpeg), ", self.check(gpustage("probe", env=without_jpeg()), 0).out)
        self.assertNotIn("storage", json.loads(gpustage("probe", "--json").out))

    def test_missing_path(self):
        self.check(gpustage("probe", self.path("none")), 1, "none")


class Bench(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("tmp"))
        # A thread that waits for work leaves a busy machine's cores to the others.
        self.around = dict(os.environ, TMPDIR=self.path("tmp"), OMP_WAIT_POLICY="passive")

    def test_what_is_refused(self):
        self.assertIn("--json FILE", gpustage("bench", "--help").out)
        self.check(gpustage("bench", "kernels"), 2, "kernels: there is quick, and nothing else",
                   "see gpustage bench --help")
        self.check(gpustage("bench", "--json", self.path("no", "b.json")), 2, "its parent")
        self.check(gpustage("bench", "--budget", "0"), 2, "--budget=0: must be a whole number")
        self.check(gpustage("bench", "--views", "3"), 2, "--views: bench has no such option")
        nowhere = dict(os.environ, TMPDIR=self.path("nowhere"))
        self.check(gpustage("bench", env=nowhere), 1, "bench: " + self.path("nowhere"), "No such file or directory")

    @unittest.skipIf(os.environ.get("GPST_SANITIZE"), "instrumented code is not measured")
    def test_limits_and_a_job(self):
        outcome = self.check(gpustage("bench", "quick", "--budget", "1", "--json", self.path("b.json"),
                                      env=self.around), 0)
        report = self.stats("b.json")
        self.assertIn(report["build"], outcome.out)
        self.assertGreaterEqual(len({row["what"] for row in report["limits"]["rows"]}), 3)
        for row in report["limits"]["rows"]:
            self.assertGreater(row["value"], 0, row)
            self.assertIn(row["what"], outcome.out)
        job = report["job"]
        self.assertGreaterEqual(job["frames"], 4)
        self.assertEqual((len(job["plain"]), len(job["gpustage"])), (2, 2))
        self.assertEqual(job["speedup"], sum(job["plain"]) / sum(job["gpustage"]))
        self.assertEqual(outcome.out.count(" done in "), 5)
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_ctrl_c_leaves_no_files(self):
        for made in "file.bin", os.path.join("views", "*_v07.*"): # while a limit is measured, and in the job
            child = start("bench", "--budget", "60", env=self.around)
            deadline = time.monotonic() + 240
            # a sanitizer's runtime makes files there, too, before main
            while not glob.glob(self.path("tmp", "gpustage-bench-*", made)):
                self.assertLess(time.monotonic(), deadline, "never made: " + made)
                time.sleep(0.005)
            child.send_signal(signal.SIGINT)
            self.check(finish(child), 130)
            self.assertEqual(os.listdir(self.path("tmp")), [])


# ---- reproject -----------------------------------------------------------------------------------------

class Reproject(Case):
    def test_views_show_where_they_look(self):
        write_directions(self.path("a.ppm"))
        looks = [("0,0,0", RED), ("90,0,0", GREEN), ("180,0,0", BLUE), ("-90,0,0", YELLOW), ("270,0,0", YELLOW),
                 ("0,90,0", WHITE), ("0,-90,0", GRAY), ("90,0,45,30", GREEN)]
        flags = [part for look, _ in looks for part in ("--view", look)]
        self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--format", "ppm",
                            "--size", "65x33", *flags), 0)
        self.assertEqual(self.outputs(), ["a_v%02d.ppm" % i for i in range(len(looks))])
        for i, (look, colour) in enumerate(looks):
            picture = read_pnm(self.path("out", "a_v%02d.ppm" % i))
            self.assertEqual(picture[:3], (65, 33, 3))
            self.assertEqual(pixel(picture, 32, 16), colour, look)

    def test_signs_of_the_angles(self):
        """What yaw, pitch and roll bring into the corners and sides of a wide view."""
        write_directions(self.path("a.ppm"))
        self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--format", "ppm",
                            "--size", "65x65",
                            "--hfov", "100", "--view", "0,0,0", "--view", "0,0,90", "--view", "45,0,0", "--view",
                            "0,45,0"), 0)
        level, rolled, right, up = (read_pnm(self.path("out", "a_v%02d.ppm" % i)) for i in range(4))
        self.assertEqual([pixel(level, *at) for at in ((0, 32), (64, 32), (32, 0), (32, 64))],
                         [YELLOW, GREEN, WHITE, GRAY])
        # The camera rolled clockwise by 90 degrees has its top to the right.
        self.assertEqual([pixel(rolled, *at) for at in ((0, 32), (64, 32), (32, 0), (32, 64))],
                         [WHITE, GRAY, GREEN, YELLOW])
        self.assertEqual((pixel(right, 16, 32), pixel(right, 48, 32)), (RED, GREEN))
        self.assertEqual((pixel(up, 32, 16), pixel(up, 32, 48)), (WHITE, RED))

    def test_even_yaws_rings_and_fields_of_view(self):
        write_directions(self.path("a.ppm"))
        base = ["reproject", self.path("a.ppm"), "--format", "ppm", "--size", "33x17"]
        self.check(gpustage(*base, "-o", self.path("four"), "--views", "4"), 0)
        self.assertEqual([pixel(read_pnm(self.path("four", "a_v%02d.ppm" % i)), 16, 8) for i in range(4)],
                         [RED, GREEN, BLUE, YELLOW])
        self.check(gpustage(*base, "-o", self.path("eight")), 0)
        self.assertEqual(len(self.outputs("eight")), 8)
        self.check(gpustage(*base, "-o", self.path("rings"), "--views=2", "--pitch-rings=0,-60"), 0)
        self.assertEqual([pixel(read_pnm(self.path("rings", "a_v%02d.ppm" % i)), 16, 8) for i in range(4)],
                         [RED, BLUE, GRAY, GRAY])
        # A square view of 170 degrees sees white above; with a vfov of 10 the same size does not.
        tall = ["reproject", self.path("a.ppm"), "--format", "ppm", "--size", "33x33", "--views", "1"]
        self.check(gpustage(*tall, "-o", self.path("wide"), "--hfov", "170"), 0)
        self.check(gpustage(*tall, "-o", self.path("flat"), "--hfov", "170", "--vfov", "10"), 0)
        self.assertEqual(pixel(read_pnm(self.path("wide", "a_v00.ppm")), 16, 0), WHITE)
        self.assertEqual(pixel(read_pnm(self.path("flat", "a_v00.ppm")), 16, 0), RED)

    def test_every_backend_and_loop_gives_the_same_files(self):
        folder = self.path("in")
        os.mkdir(folder)
        for i in range(5):
            rows = [bytes((x * 7 + y * 13 + i * 31 + c * 5) & 255 for x in range(96) for c in range(3))
                    for y in range(48)]
            write_ppm(os.path.join(folder, "p%d.ppm" % i), 96, 48, rows)
        runs = {"cpu": ["--backend", "cpu"], "auto": [], "serial": ["--plain"], "inside": ["--plain=inside"],
                "narrow": ["--slots", "1", "--workers", "1", "--readers", "1", "--writers", "1"],
                "neutral": ["--mode", "balanced", "--tune", "off", "--on-error", "continue"],
                "latency": ["--mode", "latency", "--tune", "on"],
                "throughput": ["--mode", "throughput", "--tune", self.path("kept.txt")],
                "kept": ["--tune", self.path("kept.txt")],
                "unsynced": ["--fsync", "none", "--dirty-bytes", "4K"], "pinned": ["--pin", "cores"],
                "no_prefetch": ["--prefetch", "off"],
                "one_core": ["--pin", str(min(os.sched_getaffinity(0)))]}
        formats = ["ppm"] + [f for f in ("jpg", "png", "npy") if has_format(f)]
        first = {}
        for form in formats:
            for name, flags in runs.items() if form == "ppm" else [("cpu", []), ("serial", ["--plain"])]:
                out = self.path("out_%s_%s" % (form, name))
                self.check(gpustage("reproject", folder, "-o", out, "--views", "3", "--size", "80x60", "--format", form,
                                    *flags), 0)
                made = read_files(out)
                self.assertEqual(len(made), 15)
                self.assertEqual(made, first.setdefault(form, made), (form, name))

    def test_inputs_files_directories_lists_fifos(self):
        folder = self.panoramas(3)
        with open(os.path.join(folder, "notes.txt"), "w", encoding="ascii") as stream:
            stream.write("no picture")
        write_directions(os.path.join(folder, ".hidden.ppm"))
        os.mkdir(os.path.join(folder, "deeper.ppm"))
        write_directions(self.path("single.ppm"))
        write_directions(self.path("listed one.ppm"))
        with open(self.path("list.txt"), "w", encoding="utf-8") as stream:
            stream.write("\n%s\r\n\n" % self.path("listed one.ppm"))
        os.mkfifo(self.path("pipe.ppm"))
        feeder = threading.Thread(target=lambda: write_directions(self.path("pipe.ppm")))
        feeder.start()
        with open(self.path("single.ppm"), "rb") as stream:
            data = stream.read()
        outcome = gpustage("reproject", folder, self.path("single.ppm"), "@" + self.path("list.txt"),
                           self.path("pipe.ppm"),
                           "/dev/stdin", "-o", self.path("out"), "--views", "1", "--size", "32x32", "--format", "ppm",
                           data=data)
        feeder.join()
        self.check(outcome, 0, "1 other file is left out")
        self.assertEqual(self.outputs(), ["listed one_v00.ppm"] + ["pano%02d_v00.ppm" % i for i in range(3)] +
                         ["pipe_v00.ppm", "single_v00.ppm", "stdin_v00.ppm"])
        for name in ("pipe", "single", "stdin", "listed one"):
            self.assertEqual(pixel(read_pnm(self.path("out", name + "_v00.ppm")), 16, 16), RED)

    def test_a_folder_that_holds_what_is_no_file(self):
        """What may never end is left out of a scan, whatever it is called, and said."""
        folder = self.panoramas(2)
        os.mkfifo(self.path("in", "a.ppm"))
        os.symlink("a.ppm", self.path("in", "b.ppm"))
        os.symlink("/dev/zero", self.path("in", "c.ppm"))
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(self.path("in", "d"))
            os.symlink("pano00.ppm", self.path("in", "e.ppm"))
            for flags, n in ((["--size", "32x32", "--recursive"], 3),
                             (["--size", "32x32", "--raw", "64x32:rgb8"], 3)):
                outcome = gpustage("reproject", folder, "-o", self.path("out"), "--views", "1", "--format", "ppm", *flags)
                self.check(outcome, 1 if "--raw" in flags else 0,
                           "note: %s: %d pictures; 4 FIFOs, sockets or devices are left out: a.ppm, b.ppm, c.ppm, ...\n"
                           % (folder, n))
            self.check(gpustage("reproject", self.path("in", "d"), "-o", self.path("out")), 1,
                       "No such device or address (6)")
        self.assertEqual(self.outputs(), ["e_v00.ppm", "pano00_v00.ppm", "pano01_v00.ppm"])

    def test_raw_gray_and_npy_inputs(self):
        with open(self.path("a.bin"), "wb") as stream:
            stream.write(b"".join(directions()))
        base = ["--views", "1", "--size", "32x32", "--format", "ppm", "-o", self.path("out")]
        self.check(gpustage("reproject", self.path("a.bin"), "--raw", "256x128:rgb8", *base), 0)
        self.assertEqual(pixel(read_pnm(self.path("out", "a_v00.ppm")), 16, 16), RED)
        self.check(gpustage("reproject", self.path("a.bin"), "--raw", "256x128:bgr8", *base), 0)
        self.assertEqual(pixel(read_pnm(self.path("out", "a_v00.ppm")), 16, 16), RED[::-1])
        self.check(gpustage("reproject", self.path("a.bin"), "--raw", "256x129:rgb8", *base), 1, "a.bin: decode: ")
        write_pgm(self.path("g.ppm"), 64, 32, [bytes([77]) * 64] * 32)
        self.check(gpustage("reproject", self.path("g.ppm"), *base), 0)
        self.assertEqual(pixel(read_pnm(self.path("out", "g_v00.ppm")), 3, 3), (77, 77, 77))
        self.check(gpustage("reproject", self.path("g.ppm"), "--views", "1", "--size", "64x32", "--format", "npy", "-o",
                            self.path("npy")), 0)
        self.assertEqual(read_npy(self.path("npy", "g_v00.npy")), ("|u1", (32, 64, 3), [77] * (64 * 32 * 3)))
        self.check(gpustage("reproject", self.path("npy", "g_v00.npy"), *base), 0)
        self.assertEqual(pixel(read_pnm(self.path("out", "g_v00_v00.ppm")), 9, 9), (77, 77, 77))

    def test_numbers_wider_than_a_byte(self):
        """The same picture as bytes, 16 bits and floats of 0..1 gives the same views; what cannot be read says so."""
        values = [v for row in directions(64, 32) for v in row]
        write_directions(self.path("a.ppm"), 64, 32)
        write_npy(self.path("u2.npy"), "<u2", 64, 32, [257 * v for v in values])
        write_npy(self.path("f2.npy"), "<f2", 64, 32, [v / 255 for v in values])
        write_npy(self.path("f4.npy"), "<f4", 64, 32, [v / 255 for v in values])
        names = ["a.ppm", "u2.npy", "f2.npy", "f4.npy"]
        if has_format("png"):
            write_png16(self.path("deep.png"), 64, 32, [257 * v for v in values])
            names.append("deep.png")
        base = ["--views", "2", "--size", "48x48", "--format", "ppm", "-o", self.path("out")]
        self.check(gpustage("reproject", *[self.path(name) for name in names], *base), 0)
        for view in range(2):
            wanted = read_pnm(self.path("out", "a_v%02d.ppm" % view))[3]
            for name in names[1:]:
                found = read_pnm(self.path("out", "%s_v%02d.ppm" % (name.split(".")[0], view)))[3]
                self.assertLessEqual(max(abs(a - b) for a, b in zip(found, wanted)), 1, name)
        write_npy(self.path("wide.npy"), "<f4", 64, 32, values)
        with open(self.path("wide.npy"), "r+b") as stream:
            stream.seek(stream.read(64).index(b"<f4"))
            stream.write(b"<u4")
        outcome = self.check(gpustage("reproject", self.path("wide.npy"), *base), 1, "wide.npy: decode: NPY: descr=\"<u4\"")
        self.assertIn("are read", outcome.err)
        self.check(gpustage("reproject", self.path("u2.npy"), "--convention", "ffmpeg", *base), 1,
                   "wider than a byte not with convention=FFMPEG")
        write_npy(self.path("mask.npy"), "<f4", 64, 32, [-0.0 if i // 3 % 64 < 32 else 0.5 for i in range(64 * 32 * 3)])
        self.check(gpustage("reproject", self.path("f4.npy"), "--mask", self.path("mask.npy"), *base), 0)
        kept = read_pnm(self.path("out", "f4_v00.ppm"))
        self.assertEqual((pixel(kept, 3, 24), pixel(kept, 44, 24)), ((0, 0, 0), RED))

    def test_inputs_of_different_sizes(self):
        for size in ((64, 32), (256, 128), (128, 65), (1, 1)):
            write_ppm(self.path("s%dx%d.ppm" % size), size[0], size[1], [bytes(RED) * size[0]] * size[1])
        self.check(gpustage("reproject", self.dir, "-o", self.path("out"), "--views", "2", "--size", "40x20",
                            "--format", "ppm"), 0)
        for name in self.outputs():
            self.assertEqual(set(zip(*[iter(read_pnm(self.path("out", name))[3])] * 3)), {RED})

    def test_jpeg_codecs(self):
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        write_directions(self.path("a.ppm"))
        base = ["--size", "64x32", "--views", "2"]
        self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("views"), *base), 0)
        with open(self.path("views", "a_v00.jpg"), "rb") as stream:
            jpeg = stream.read()
        files = [self.path(name) for name in ("b.jpg", "no_end.jpg", "cut.jpg")]
        for path, data in zip(files, (jpeg, jpeg[:-2], jpeg[:len(jpeg) - 20])):
            with open(path, "wb") as stream:
                stream.write(data)
        stats = self.path("stats.json")
        out = ["-o", self.path("out"), "--stats", stats]
        self.check(gpustage("reproject", *files, *out, *base), 1, "cut.jpg: decode: JPEG: ")
        with open(stats, encoding="utf-8") as stream:
            said = json.load(stream)
        self.assertEqual([(os.path.basename(f["item"]), f["decoder"], f["encoder"], f.get("note", ""))
                          for f in said["files"]],
                         [("b.jpg", "libjpeg-turbo", "libjpeg-turbo", ""),
                          ("no_end.jpg", "libjpeg-turbo", "libjpeg-turbo", "mended: missing end")])
        self.assertIn("jpeg", said["path"])
        with open(self.path("out", ".gpustage-manifest"), encoding="utf-8") as stream:
            self.assertEqual(sum(line.endswith(" libjpeg-turbo/libjpeg-turbo\n") for line in stream), 2)
        for view in ("_v00.jpg", "_v01.jpg"): # mended is as good as whole
            with open(self.path("out", "b" + view), "rb") as one, open(self.path("out", "no_end" + view), "rb") as two:
                self.assertEqual(one.read(), two.read())
        outcome = self.check(gpustage("reproject", *files, *out, *base, "--on-damage", "keep"), 0)
        self.assertTrue(outcome.out.startswith("3 of 3 done, 1 kept damaged (see --stats) in "), outcome)
        self.check(gpustage("reproject", *files, *out, *base, "--resume"), 2, "was made with on-damage=keep, this run has "
                   "on-damage=fail")
        with open(stats, encoding="utf-8") as stream:
            self.assertTrue(json.load(stream)["files"][2]["note"].startswith("damaged: "))
        # --jpeg is part of what is compared; --exact is --jpeg cpu.
        self.check(gpustage("reproject", *files[:2], *out, *base, "--exact"), 0)
        outcome = gpustage("reproject", *files[:2], *out, *base, "--resume", "--jpeg", "cpu")
        self.check(outcome, 0)
        self.assertIn("2 skipped", outcome.out)
        self.check(gpustage("reproject", *files[:2], *out, *base, "--resume"), 2, "jpeg=")
        self.check(gpustage("reproject", *files[:2], *out, *base, "--exact", "--jpeg", "gpu"), 2,
                   "--exact: cannot be joined with --jpeg gpu")
        self.check(gpustage("reproject", *files[:2], *out, *base, "--jpeg", "fast"), 2, "must be one of auto cpu gpu")

    def jpeg(self, name):
        """A small JPEG of that name, made here."""
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        write_directions(self.path("one.ppm"), 64, 32)
        self.check(gpustage("reproject", self.path("one.ppm"), "-o", self.path("jpegs"), "--size", "64x32", "--views",
                            "1"), 0)
        os.rename(self.path("jpegs", "one_v00.jpg"), self.path(name))
        return self.path(name)

    def test_no_libturbojpeg(self):
        jpegs = [self.jpeg("a.jpg"), self.jpeg("b.jpg")]
        base = ["-o", self.path("out"), "--size", "64x32", "--views", "1"]
        for named, says in (("", "it is not to be used; unset it"), ("/none.so", "must name the library's file: /none.so")):
            around = dict(os.environ, GPUSTAGE_LIBTURBOJPEG=named)
            for more in ([], ["--format", "ppm"], ["--format", "jpg"]):
                outcome = self.check(gpustage("reproject", *jpegs, *base, *more, env=around), 3, says)
                self.assertEqual(outcome.err.count("\n"), 1, outcome)
                self.assertEqual(outcome.out, "")
        self.check(gpustage("preprocess", *jpegs, "-o", self.path("t.npy"), "--size", "8x8", env=without_jpeg()), 3,
                   "no input can be decoded: all are JPEG files, and there is no libturbojpeg: ")
        self.assertFalse(os.path.exists(self.path("out")) or os.path.exists(self.path("t.npy")), "work was done")
        # Among others each fails by itself. Pixels without a header may look like anything.
        outcome = self.check(gpustage("reproject", *jpegs, self.path("one.ppm"), *base, env=without_jpeg()), 1,
                             "a.jpg: decode: libturbojpeg: ", "b.jpg: decode: libturbojpeg: ")
        self.assertIn("1 of 3 done, 2 failed", outcome.out)
        self.assertEqual(outcome.err.count("note: views are .ppm files: there is no libturbojpeg: "), 1, outcome)
        self.check(gpustage("reproject", *jpegs, *base, "--raw", "%dx1:gray8" % os.path.getsize(jpegs[0]),
                            env=without_jpeg()), 0)
        # What is whole already needs no decoder.
        self.check(gpustage("reproject", *jpegs, *base, "--format", "ppm"), 0)
        outcome = self.check(gpustage("reproject", *jpegs, *base, "--resume", env=without_jpeg()), 0)
        self.assertIn("2 skipped", outcome.out)
        os.remove(self.path("out", "b_v00.ppm"))
        self.check(gpustage("reproject", *jpegs, *base, "--resume", env=without_jpeg()), 3, "no input can be decoded")

    def test_no_libturbojpeg_for_views(self):
        one = self.jpeg("a.jpg") and self.path("one.ppm")
        base = ["-o", self.path("out"), "--size", "64x32", "--views", "1"]
        for flags in (["--quality", "90"], ["--chroma", "420"], ["--optimise"], ["--restart-rows", "2"]):
            self.check(gpustage("reproject", one, *base, *flags, env=without_jpeg()), 3,
                       flags[0] + ": there is no JPEG here: libturbojpeg: ")
        self.check(gpustage("reproject", one, *base, "--format", "ppm", "--quality", "90", env=without_jpeg()), 2,
                   "--quality: needs --format jpg")
        self.assertFalse(os.path.exists(self.path("out")), "work was done")
        self.assertEqual(self.check(gpustage("reproject", one, *base, "--quiet", env=without_jpeg()), 0).err, "")
        self.assertEqual(self.outputs(), ["one_v00.ppm"])
        self.check(gpustage("reproject", one, *base), 0)
        self.check(gpustage("reproject", one, *base, "--resume", "--quiet", env=without_jpeg()), 2,
                   "was made with format=jpg, this run has format=ppm (libturbojpeg: ")

    def test_an_older_libturbojpeg(self):
        one = self.jpeg("a.jpg")
        found = json.loads(gpustage("probe", "--json").out)["libraries"][0]["version"]
        for flags in (["--optimise"], ["--restart-rows", "2"]):
            outcome = gpustage("reproject", one, "-o", self.path("out"), "--size", "64x32", *flags)
            if found == "2":
                self.check(outcome, 3, flags[0] + ": needs libturbojpeg 3 or later; libturbojpeg 2 was found: ")
                self.assertFalse(os.path.exists(self.path("out")), "work was done")
            else:
                self.check(outcome, 0)

    def test_a_gpu_codec_that_is_not_there(self):
        one = self.jpeg("a.jpg")
        outcome = self.check(gpustage("reproject", one, "-o", self.path("out"), "--size", "64x32", "--backend", "cpu",
                                      "--jpeg", "gpu"), 0)
        self.assertEqual(outcome.err.count("note: JPEG by the cores, not by the GPU: the device is the CPU"), 1, outcome)

    def test_mask(self):
        write_directions(self.path("a.ppm"))
        write_directions(self.path("small.ppm"), 64, 32)
        write_pgm(self.path("mask.pgm"), 256, 128, [bytes([1] * 128 + [0] * 128)] * 128)
        flags = ["--format", "ppm", "--size", "64x32", "--views", "2", "--mask", self.path("mask.pgm")]
        masks = ["--mask-out"] if has_format("png") else []
        outcome = gpustage("reproject", self.path("a.ppm"), self.path("small.ppm"), "-o", self.path("out"), *flags,
                           *masks)
        self.check(outcome, 1, "small.ppm: kernel: gpst_warp_run: source.width=64, height=32: must be the mask's 256 x 128")
        self.assertEqual(self.outputs(), sorted(["a_v00.ppm", "a_v01.ppm"] +
                                                (["a_v00.ppm.png", "a_v01.ppm.png"] if masks else [])))
        front, back = (read_pnm(self.path("out", "a_v%02d.ppm" % i)) for i in range(2))
        for y in range(32):
            self.assertEqual([pixel(front, x, y) == (0, 0, 0) for x in range(64)], [False] * 32 + [True] * 32)
            self.assertEqual([pixel(back, x, y) == (0, 0, 0) for x in range(64)], [True] * 32 + [False] * 32)
        if not masks:
            self.skipTest("PNG is not built in: --mask-out was not tried")
        for i, picture in enumerate((front, back)):
            width, height, _, kept = read_gray_png(self.path("out", "a_v%02d.ppm.png" % i))
            self.assertEqual((width, height), (64, 32))
            self.assertEqual([v == 255 for v in kept], [any(picture[3][3 * n:3 * n + 3]) for n in range(64 * 32)])
            self.assertEqual(set(kept), {0, 255})

    def test_rig(self):
        """The camera of every view, as COLMAP projects with it, sees what the view's pixel shows."""
        write_directions(self.path("a.ppm"))
        views = [(30, 10, 5, 80), (120, -35, 0, 100), (-75, 50, 170, 60), (200, 0, -20, 90)]
        flags = [part for v in views for part in ("--view", "%g,%g,%g,%g" % v)]
        self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--format", "ppm",
                            "--size", "64x48", "--rig", self.path("rig.json"), *flags), 0)
        with open(self.path("rig.json"), encoding="utf-8") as stream:
            (rig,) = json.load(stream)
        self.assertEqual(len(rig["cameras"]), len(views))
        self.assertTrue(rig["cameras"][0]["ref_sensor"])
        self.assertNotIn("cam_from_rig_rotation", rig["cameras"][0])
        for i, (camera, view) in enumerate(zip(rig["cameras"], views)):
            self.assertEqual(camera["camera_model_name"], "PINHOLE")
            self.assertEqual(camera["image_prefix"], "v%02d/" % i)
            self.assertEqual(camera["image_suffix"], "_v%02d.ppm" % i)
            fx, fy, cx, cy = camera["camera_params"]
            self.assertAlmostEqual(fx, 32 / math.tan(math.radians(view[3] / 2)), 6)
            self.assertEqual((fy, cx, cy), (fx, 32, 24))
            rotation = camera.get("cam_from_rig_rotation", [1, 0, 0, 0])
            self.assertEqual(camera.get("cam_from_rig_translation", [0.0] * 3), [0, 0, 0])
            # A direction in the rig (the first view) through both cameras' own rotations.
            for direction in ((0.3, -0.2, 1.0), (-1.0, 0.5, 0.2), (0.1, 0.9, -0.7)):
                world = times(rotation_of(views[0]), direction)
                wanted = times(transposed(rotation_of(view)), world)
                for a, b in zip(times(quaternion_matrix(rotation), direction), wanted):
                    self.assertAlmostEqual(a, b, 9)
                for a, b in zip(times(quaternion_matrix(camera["cam_from_panorama_rotation"]), world), wanted):
                    self.assertAlmostEqual(a, b, 9)

    def test_conventions_and_filters_differ(self):
        rows = [bytes((x * 37 + y * 101 + c * 59) & 255 for x in range(64) for c in range(3)) for y in range(32)]
        write_ppm(self.path("a.ppm"), 64, 32, rows)
        made = set()
        for flags in (["--convention", "native"], ["--convention", "ffmpeg"], ["--convention", "py360"],
                      ["--convention", "opencv"], ["--filter", "nearest"], ["--filter", "area"]):
            self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--views", "1",
                                "--size", "64x48", "--format", "ppm", *flags), 0)
            made.add(read_pnm(self.path("out", "a_v00.ppm"))[3])
        self.assertEqual(len(made), 6)

    def test_locale(self):
        write_directions(self.path("a.ppm"))
        made = []
        for name in ("C", "de_DE.UTF-8"):
            self.check(gpustage("reproject", self.path("a.ppm"), "-o", self.path("out"), "--views", "1",
                                "--size", "64x48",
                                "--format", "ppm", "--hfov", "77.5", "--stats", self.path("stats.json"), "--rig",
                                self.path("rig.json"), env=dict(os.environ, LC_ALL=name, LANG=name)), 0)
            self.assertIsInstance(self.stats()["wall_s"], float)
            with open(self.path("rig.json"), encoding="utf-8") as stream:
                made.append((read_pnm(self.path("out", "a_v00.ppm")), json.load(stream)))
        self.assertEqual(made[0], made[1])


def times(m, v):
    return [sum(m[r][c] * v[c] for c in range(3)) for r in range(3)]


def transposed(m):
    return [list(column) for column in zip(*m)]


def product(a, b):
    return [[sum(a[r][k] * b[k][c] for k in range(3)) for c in range(3)] for r in range(3)]


def rotation_of(view):
    """Camera to world: Ry(yaw) Rx(pitch) Rz(roll), with x right, y down, z forward."""
    y, p, r = (math.radians(angle) for angle in view[:3])
    around_y = [[math.cos(y), 0, math.sin(y)], [0, 1, 0], [-math.sin(y), 0, math.cos(y)]]
    around_x = [[1, 0, 0], [0, math.cos(p), -math.sin(p)], [0, math.sin(p), math.cos(p)]]
    around_z = [[math.cos(r), -math.sin(r), 0], [math.sin(r), math.cos(r), 0], [0, 0, 1]]
    return product(around_y, product(around_x, around_z))


def quaternion_matrix(q):
    w, x, y, z = q
    return [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]


# ---- preprocess -------------------------------------------------------------------------------------------

class Preprocess(Case):
    def setUp(self):
        super().setUp()
        self.size = (8, 6)
        self.pixels = [[tuple((x * 31 + y * 17 + c * 83) % 256 for c in range(3)) for x in range(8)] for y in range(6)]
        write_ppm(self.path("a.ppm"), 8, 6, [bytes(v for p in row for v in p) for row in self.pixels])

    def run_one(self, *flags, size="8x6"):
        self.check(gpustage("preprocess", self.path("a.ppm"), "-o", self.path("out"), "--size", size, *flags), 0)
        return read_npy(self.path("out", "a.npy"))

    def chw(self, function, order=(0, 1, 2)):
        return [function(p[c], c) for c in order for row in self.pixels for p in row]

    def hwc(self, function, order=(0, 1, 2)):
        return [function(p[c], c) for row in self.pixels for p in row for c in order]

    def check_values(self, values, wanted, tolerance):
        self.assertEqual(len(values), len(wanted))
        worst = max(abs(a - b) for a, b in zip(values, wanted))
        self.assertLessEqual(worst, tolerance)

    def test_default(self):
        dtype, shape, values = self.run_one()
        self.assertEqual((dtype, shape), ("<f4", (3, 6, 8)))
        self.check_values(values, self.chw(lambda v, c: v / 255), 1e-7)

    def test_mean_std_layout_order(self):
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        flags = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
        normal = lambda v, c: (v / 255 - mean[c]) / std[c]  # noqa: E731
        self.check_values(self.run_one(*flags)[2], self.chw(normal), 2e-6)
        dtype, shape, values = self.run_one(*flags, "--layout", "hwc")
        self.assertEqual((dtype, shape), ("<f4", (6, 8, 3)))
        self.check_values(values, self.hwc(normal), 2e-6)
        self.check_values(self.run_one(*flags, "--swap-rb")[2], self.chw(normal, (2, 1, 0)), 2e-6)
        dtype, _, values = self.run_one(*flags, "--dtype", "f16")
        self.assertEqual(dtype, "<f2")
        self.check_values(values, self.chw(normal), 0.0011)
        self.check_values(self.run_one("--mean", "0.5", "--std=0.25")[2], self.chw(lambda v, c: (v / 255 - 0.5) / 0.25),
                          1e-6)

    def test_bytes(self):
        self.assertEqual(self.run_one("--dtype", "u8"), ("|u1", (3, 6, 8), self.chw(lambda v, c: v)))
        self.assertEqual(self.run_one("--dtype", "u8", "--layout", "hwc", "--swap-rb")[1:],
                         ((6, 8, 3), self.hwc(lambda v, c: v, (2, 1, 0))))

    def test_resize_is_half_pixel(self):
        """Half the size, bilinear: the mean of each 2 x 2 block."""
        values = self.run_one(size="4x3")[2]
        wanted = [sum(self.pixels[2 * y + dy][2 * x + dx][c] for dy in (0, 1) for dx in (0, 1)) / 4 / 255
                  for c in range(3) for y in range(3) for x in range(4)]
        self.check_values(values, wanted, 1e-6)
        values = self.run_one("--filter", "nearest", "--dtype", "u8", size="24x18")[2]
        self.assertEqual(values, [self.pixels[y // 3][x // 3][c] for c in range(3) for y in range(18)
                                  for x in range(24)])

    def test_numbers_wider_than_a_byte(self):
        """All on the 0..1 scale: bytes, 16 bits and floats in one run give one tensor."""
        values = [v for row in self.pixels for p in row for v in p]
        write_npy(self.path("u2.npy"), "<u2", 8, 6, [257 * v for v in values])
        write_npy(self.path("f4.npy"), "<f4", 8, 6, [v / 255 for v in values])
        write_npy(self.path("f2.npy"), "<f2", 8, 6, [v / 255 for v in values])
        files = [self.path(name) for name in ("a.ppm", "u2.npy", "f4.npy", "f2.npy")]
        flags = ["--size", "5x4", "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
        self.check(gpustage("preprocess", *files, "-o", self.path("out"), *flags), 0)
        wanted = read_npy(self.path("out", "a.npy"))[2]
        for name, tolerance in (("u2", 3e-6), ("f4", 3e-6), ("f2", 3e-3)):
            self.check_values(read_npy(self.path("out", name + ".npy"))[2], wanted, tolerance)
        self.check(gpustage("preprocess", *files, "-o", self.path("bytes"), "--size", "8x6", "--dtype", "u8"), 0)
        for name in ("u2", "f4"):
            self.assertEqual(read_npy(self.path("bytes", name + ".npy")), read_npy(self.path("bytes", "a.npy")))

    def test_area_and_conventions(self):
        """From 8 x 6 to 4 x 3: OpenCV's area is the mean of each 2 x 2 block, our own is twice as wide; to 5 x 5 the
        nearest pixel of OpenCV and PyTorch begins at the output pixel's corner, ours is under its middle."""
        flags = ["--dtype", "u8", "--layout", "hwc"]
        def pixel(x, y, c):
            return self.pixels[min(max(y, 0), 5)][min(max(x, 0), 7)][c]
        box = self.run_one(*flags, "--filter", "area", "--convention", "opencv", size="4x3")[2]
        self.check_values(box, [sum(pixel(2 * x + i, 2 * y + j, c) for i in (0, 1) for j in (0, 1)) / 4
                                for y in range(3) for x in range(4) for c in range(3)], 0.5)
        wide = self.run_one(*flags, "--filter", "area", size="4x3")[2]
        self.assertNotEqual(wide, box)
        weights = (1, 3, 3, 1)
        middle = sum(weights[i] * weights[j] * pixel(2 + i - 1, 2 + j - 1, 1) for i in range(4) for j in range(4)) / 64
        self.assertAlmostEqual(wide[(1 * 4 + 1) * 3 + 1], middle, delta=0.5)
        self.assertEqual(self.run_one(*flags, "--filter", "area", "--convention", "torch", size="4x3")[2], wide)
        for convention, at in (("native", 1), ("opencv", 0), ("torch", 0)):
            values = self.run_one(*flags, "--filter", "nearest", "--convention", convention, size="5x5")[2]
            self.assertEqual(values, [pixel((2 * x + at) * 8 // 10, (2 * y + at) * 6 // 10, c)
                                      for y in range(5) for x in range(5) for c in range(3)])

    def test_stacked(self):
        write_ppm(self.path("c.ppm"), 2, 2, [bytes((10, 20, 30)) * 2] * 2)
        with open(self.path("b.ppm"), "wb") as stream:
            stream.write(b"P6\n8 6\n255\ntoo short")
        flags = ["--size", "8x6", "--dtype", "u8", "--stats", self.path("stats.json")]
        inputs = [self.path(n + ".ppm") for n in "abc"]
        for engine in ([], ["--plain"], ["--plain=inside"]):
            outcome = gpustage("preprocess", *inputs, "-o", self.path("t.npy"), *flags, *engine)
            self.check(outcome, 1, "b.ppm: decode: ")
            dtype, shape, values = read_npy(self.path("t.npy"))
            self.assertEqual((dtype, shape), ("|u1", (3, 3, 6, 8)))
            row = 3 * 6 * 8
            self.assertEqual(values[:row], self.chw(lambda v, c: v))
            self.assertEqual(values[row:2 * row], [0] * row)
            self.assertEqual(values[2 * row:], [10] * 48 + [20] * 48 + [30] * 48)
            stats = self.stats()
            self.assertEqual([e["item"] for e in stats["errors"]], [self.path("b.ppm")])
            self.assertEqual(stats["bytes"]["written"], 2 * row)
            self.check_no_leftovers(self.dir)
        self.check(gpustage("preprocess", *inputs, "-o", self.path("s.npy"), *flags, "--on-error", "stop", "--plain"),
                   1, "not every input had its turn")
        self.assertFalse(os.path.exists(self.path("s.npy")))
        self.check_no_leftovers(self.dir)

    def test_nothing_read_is_overwritten(self):
        self.run_one()
        os.mkdir(self.path("n"))
        shutil.copy(self.path("out", "a.npy"), self.path("n", "a.npy"))
        self.check(gpustage("preprocess", self.path("n", "a.npy"), "-o", self.path("n"), "--size", "4x4"), 2,
                   "would overwrite an input")
        self.check(gpustage("preprocess", self.path("n", "a.npy"), "-o", self.path("n", "a.npy"), "--size", "4x4"), 2,
                   "would overwrite the input")
        self.assertEqual(read_npy(self.path("n", "a.npy")), read_npy(self.path("out", "a.npy")))


if __name__ == "__main__":
    main()
