#!/usr/bin/env python3
"""tests/test_cli_runs.py -- how runs of the command go and end: bad input, interrupts, resuming, what is told."""
import errno
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import (  # noqa: E402
    Case, COMMAND, MANIFEST, STAGES, RESOURCES, write_directions, read_files, start, finish,
    gpustage, has_format, main
)
import make_pictures as make  # noqa: E402


# ---- bad input ---------------------------------------------------------------------------------------------

class BadInput(Case):
    def write(self, name, data):
        with open(self.path(name), "wb") as stream:
            stream.write(data)
        return self.path(name)

    def test_each_bad_input_fails_alone(self):
        write_directions(self.path("good1.ppm"))
        write_directions(self.path("good2.ppm"))
        with open(self.path("good1.ppm"), "rb") as stream:
            whole = stream.read()
        bad = {
            "missing.ppm": ("read", "GPST_ERROR_NOT_FOUND", ["No such file"]),
            "empty.ppm": ("decode", None, []),
            "text.jpg": ("decode", "GPST_ERROR_FORMAT", []),
            "zero.ppm": ("decode", "GPST_ERROR_FORMAT", []),
            "huge.ppm": ("decode", None, ["100000"]),
            "short.ppm": ("decode", "GPST_ERROR_TRUNCATED", []),
            "folder.ppm/x.npy": ("decode", "GPST_ERROR_FORMAT", []),
        }
        self.write("empty.ppm", b"")
        self.write("text.jpg", b"this is not a picture\n" * 10)
        self.write("zero.ppm", b"P6\n0 0\n255\n")
        self.write("huge.ppm", b"P6\n100000 100000\n255\n" + bytes(100))
        self.write("short.ppm", whole[:len(whole) // 2])
        os.mkdir(self.path("folder.ppm"))
        self.write("folder.ppm/x.npy", b"\x93NUMPY\x01\x00" + bytes(60))
        if has_format("jpg"):
            self.check(gpustage("reproject", self.path("good1.ppm"), "-o", self.path("j"), "--views", "1", "--size",
                                "320x160", "--format", "jpg"), 0)
            with open(self.path("j", "good1_v00.jpg"), "rb") as stream:
                jpeg = stream.read()
            at = jpeg.index(b"\xff\xc0") + 5 # height and width in the frame header
            self.write("cut.jpg", jpeg[:len(jpeg) * 3 // 4])
            self.write("nil.jpg", jpeg[:at] + struct.pack(">HH", 0, 0) + jpeg[at + 4:])
            self.write("vast.jpg", jpeg[:at] + struct.pack(">HH", 65500, 65500) + jpeg[at + 4:])
            for name in ("cut.jpg", "nil.jpg", "vast.jpg"):
                bad[name] = ("decode", None, [])
        if has_format("png"):
            head = struct.pack(">II5B", 100000, 100000, 8, 2, 0, 0, 0)
            chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
            self.write("vast.png", b"\x89PNG\r\n\x1a\n" + chunk)
            bad["vast.png"] = ("decode", None, [])
            os.rename(self.path("vast.png"), self.path("wide.png"))
            bad["wide.png"] = bad.pop("vast.png")
        inputs = [self.path("good1.ppm")] + [self.path(n) for n in bad] + [self.path("good2.ppm")]
        for engine in ([], ["--plain"]):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            outcome = gpustage("reproject", *inputs, "-o", self.path("out"), "--views", "2", "--size", "32x16",
                               "--format", "ppm", "--stats", self.path("stats.json"), *engine)
            self.check(outcome, 1)
            self.assertEqual(self.outputs(), ["good%d_v0%d.ppm" % (g, v) for g in (1, 2) for v in (0, 1)])
            stats = self.stats()
            self.assertEqual(stats["items"], {"total": len(bad) + 2, "ok": 2, "failed": len(bad), "skipped": 0,
                                              "not_done": 0})
            errors = {e["item"]: e for e in stats["errors"]}
            self.assertEqual([e["item"] for e in stats["errors"]], inputs[1:-1], "in the order of the inputs")
            lines = outcome.err.splitlines()
            for name, (stage, result, says) in bad.items():
                error = errors[self.path(name)]
                self.assertEqual(error["stage"], stage, error)
                self.assertEqual(error["result"], result or error["result"], error)
                self.assertGreater(len(error["reason"]), 5, error)
                self.assertIn("gpustage: %s: %s: %s" % (self.path(name), stage, error["reason"]), lines)
                for text in says:
                    self.assertIn(text, error["reason"])
            self.assertEqual(len(lines), len(bad), outcome)

    def test_long_names_leave_the_reason_whole(self):
        name = "n" * 248 + ".ppm"
        flags = ["-o", self.path("out"), "--views", "1", "--size", "16x16", "--format", "ppm", "--stats",
                 self.path("stats.json")]
        os.mkdir(self.path("masks"))
        for before, more, ends in ((None, [], "No such file or directory (2)"), ("file", [], "File name too long (%d)" % errno.ENAMETOOLONG),
                                   ("file", ["--mask", self.path("masks")], "_mask.png")):
            if before:
                write_directions(self.path(name), 64, 32)
            outcome = self.check(gpustage("reproject", self.path(name), *flags, *more), 1)
            for said in (self.stats()["errors"][0]["reason"], outcome.err.rstrip("\n")):
                self.assertTrue(said.endswith(ends), said)

    def test_stop_on_error(self):
        folder = self.panoramas(30)
        self.write("in/pano03.ppm", b"P6\n")
        for engine in ([], ["--plain"]):
            outcome = gpustage("reproject", folder, "-o", self.path("out"), "--views", "1", "--size", "16x16",
                               "--format",
                               "ppm", "--on-error", "stop", "--slots", "2", "--stats", self.path("stats.json"), *engine)
            self.check(outcome, 1, "pano03.ppm: decode: ")
            items = self.stats()["items"]
            self.assertEqual(items["failed"], 1)
            self.assertGreater(items["not_done"], 10)
            self.assertEqual(items["ok"] + items["failed"] + items["not_done"], 30)

    def test_wrong_inputs_before_any_work(self):
        os.mkdir(self.path("x"))
        os.mkdir(self.path("y"))
        write_directions(self.path("x", "same.ppm"))
        write_directions(self.path("y", "same.pnm"))
        out = ["-o", self.path("out"), "--size", "16x16", "--format", "ppm"]
        self.check(gpustage("reproject", self.path("x"), self.path("y"), *out), 2, "same.ppm", "same.pnm",
                   "inputs need different stems")
        self.check(gpustage("reproject", "@" + self.path("none.txt"), *out), 2, "none.txt: No such file")
        os.mkdir(self.path("nothing"))
        self.check(gpustage("reproject", self.path("nothing"), *out), 2, "holds no picture")
        self.assertFalse(os.path.exists(self.path("out")))
        self.check(gpustage("reproject", self.path("x"), "-o", self.path("no", "where")), 2, "its parent",
                   "No such file")
        self.check(gpustage("reproject", self.path("x"), "-o", self.path("x", "same.ppm")), 2, "is no directory")
        self.check(gpustage("preprocess", self.path("x"), "-o", self.path("no", "t.npy"), "--size", "4x4"), 2,
                   "its parent")
        write_directions(self.path("x", "same_v00.ppm"))
        self.check(gpustage("reproject", self.path("x"), "-o", self.path("x"), "--format", "ppm"), 2,
                   "same_v00.ppm, made of", "would overwrite an input")

    def unprivileged(self):
        """Keywords that run the command as a user whom permissions bind."""
        if os.geteuid() != 0:
            return {}
        shutil.copy(COMMAND, self.path("gpustage"))
        for where, _, names in os.walk(self.dir):
            for name in [where] + [os.path.join(where, n) for n in names]:
                os.chown(name, 65534, 65534)

        def drop():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        keywords = {"command": self.path("gpustage"), "preexec_fn": drop}
        try:
            if gpustage("--version", **keywords).code == 0:
                return keywords
        except (OSError, subprocess.SubprocessError):
            pass
        return self.skipTest("runs as root and cannot become anyone else")

    def test_permissions(self):
        folder = self.panoramas(2)
        locked = self.panoramas(2, "locked")
        write_directions(self.path("secret.ppm"))
        write_directions(self.path("locked.ppm")) # of the folder's name, which costs neither its outputs
        os.mkdir(self.path("sealed"))
        keywords = self.unprivileged()
        os.chmod(locked, 0)
        os.chmod(self.path("secret.ppm"), 0)
        os.chmod(self.path("sealed"), 0o555)
        self.addCleanup(os.chmod, locked, 0o755)
        flags = ["--views", "1", "--size", "16x16", "--format", "ppm", "--stats", self.path("stats.json")]
        outcome = gpustage("reproject", locked, folder, self.path("secret.ppm"), self.path("locked.ppm"), "-o",
                           self.path("out"), *flags, **keywords)
        self.check(outcome, 1, "locked\": Permission denied (13)", "secret.ppm: read: ")
        self.assertEqual(self.outputs(), ["locked_v00.ppm", "pano00_v00.ppm", "pano01_v00.ppm"])
        self.assertEqual({e["result"] for e in self.stats()["errors"]}, {"GPST_ERROR_ACCESS"})
        self.check(gpustage("reproject", folder, "-o", self.path("sealed"), *flags, **keywords), 2, "Permission denied")
        self.check(gpustage("reproject", folder, "-o", self.path("sealed", "out"), *flags, **keywords), 2,
                   "Permission denied")

    def test_full_disk(self):
        folder = self.panoramas(12)
        os.mkdir(self.path("disk"))
        try:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", self.path("disk")],
                                     stderr=subprocess.DEVNULL, check=False).returncode == 0
        except OSError:
            mounted = False
        if not mounted:
            self.skipTest("a small tmpfs cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("disk")], check=False)
        for engine in ([], ["--plain"]):
            shutil.rmtree(self.path("disk", "out"), ignore_errors=True)
            outcome = gpustage("reproject", folder, "-o", self.path("disk", "out"), "--views", "2", "--size", "64x64",
                               "--format", "ppm", "--stats", self.path("stats.json"), *engine)
            self.check(outcome, 1, "No space left")
            stats = self.stats()
            self.assertGreater(stats["items"]["ok"], 0)
            self.assertGreater(stats["items"]["failed"], 0)
            self.assertEqual({(e["stage"], e["result"]) for e in stats["errors"]}, {("write", "GPST_ERROR_NO_SPACE")})
            self.assertEqual(len(self.outputs("disk/out")), 2 * stats["items"]["ok"])
            self.check_no_leftovers(self.path("disk"))
        outcome = gpustage("preprocess", folder, "-o", self.path("disk", "t.npy"), "--size", "64x64")
        self.check(outcome, 1, "No space left")


# ---- interrupt, resume ------------------------------------------------------------------------------------------

class Interrupt(Case):
    VIEWS = ["--views", "2", "--size", "16x16", "--format", "ppm"]

    def wait_for_output(self, child):
        deadline = time.monotonic() + 30
        while not (os.path.isdir(self.path("out")) and len(self.outputs()) >= 4):
            self.assertLess(time.monotonic(), deadline, "nothing is written")
            self.assertIsNone(child.poll(), "the run is over already")
            time.sleep(0.005)

    def check_whole_items(self):
        """Every item has all its views or none."""
        names = self.outputs()
        self.check_no_leftovers(self.path("out"))
        stems = {n.rsplit("_v", 1)[0] for n in names}
        self.assertEqual(len(names), 2 * len(stems))
        return len(stems)

    def interrupt_and_resume(self, number, engine):
        """Interrupted while items are in flight, at the latest at those that have not come yet."""
        self.panoramas(80)
        late = [20, 21, 22]
        pipes = self.fifos(late)
        arguments = ["reproject", *self.files(), "-o", self.path("out"), "--stats", self.path("stats.json")] + self.VIEWS
        child = start(*arguments, *engine)
        self.wait_for_output(child)
        self.interrupt(child, number)
        fed = self.feed(child, pipes)
        outcome = self.check(finish(child), 130)
        items = self.stats()["items"]
        self.assertEqual(items["failed"], 0, outcome)
        self.assertGreater(items["not_done"], 0, outcome)
        self.assertEqual(items["ok"], self.check_whole_items())
        for pipe in pipes:
            os.remove(pipe)
            write_directions(pipe, 64, 32)
        again = self.check(gpustage(*arguments, "--resume"), 0)
        resumed, kept = self.stats()["items"], items["ok"] - fed # a FIFO is not told from another
        self.assertEqual(resumed["skipped"], kept, again)
        self.assertEqual(resumed["ok"], 80 - kept)
        self.assertIn("%d skipped" % kept, again.out)
        self.assertEqual(self.check_whole_items(), 80)

    def test_ctrl_c_drains(self):
        self.interrupt_and_resume(signal.SIGINT, ["--slots", "2"])

    def test_sigterm_drains_a_plain_loop(self):
        self.interrupt_and_resume(signal.SIGTERM, ["--plain"])

    def test_sighup_drains(self):
        self.interrupt_and_resume(signal.SIGHUP, ["--slots", "2", "--tune", "off"])

    def test_what_is_ignored_stays_ignored(self):
        """As under nohup, and in the background of a shell without job control."""
        self.panoramas(12)
        pipes = self.fifos([6, 7, 8])
        child = start("reproject", *self.files(), "-o", self.path("out"), "--slots", "2", *self.VIEWS,
                      preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGHUP, signal.SIGINT)])
        self.wait_for_output(child)
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGINT)
        self.assertEqual(self.feed(child, pipes), 3)
        self.check(finish(child), 0)
        self.assertEqual(self.check_whole_items(), 12)

    def test_interrupted_stack_is_absent(self):
        self.panoramas(60)
        pipes = self.fifos([20, 21, 22])
        child = start("preprocess", *self.files(), "-o", self.path("t.npy"), "--size", "8x8", "--slots", "2")
        pipe = self.wait_for_reader(child, pipes[0])
        self.interrupt(child)
        os.close(pipe)
        self.feed(child, pipes[1:])
        self.check(finish(child), 130, "not every input had its turn")
        self.assertFalse(os.path.exists(self.path("t.npy")))
        self.check_no_leftovers(self.dir)

    def test_resume_does_again_what_is_not_whole(self):
        folder = self.panoramas(5)
        arguments = ["reproject", folder, "-o", self.path("out"), "--resume",
                     "--stats", self.path("stats.json")] + self.VIEWS
        self.check(gpustage(*arguments), 0)
        self.assertEqual(self.stats()["items"]["skipped"], 0)
        wanted = read_files(self.path("out"))
        os.remove(self.path("out", "pano01_v01.ppm"))
        with open(self.path("out", "pano02_v00.ppm"), "ab") as stream:
            stream.write(b"more")
        self.check(gpustage(*arguments), 0)
        self.assertEqual(self.stats()["items"], {"total": 5, "ok": 2, "failed": 0, "skipped": 3, "not_done": 0})
        self.assertEqual(read_files(self.path("out")), wanted)
        for i in (1, 2, 3):
            os.utime(self.path("in", "pano%02d.ppm" % i), (i, i))
        with open(self.path("out", MANIFEST), "ab") as stream:
            stream.write(b"item 12 34 5,5 pano0") # torn off by a crash
        self.check(gpustage(*arguments), 0)
        self.assertEqual(self.stats()["items"], {"total": 5, "ok": 3, "failed": 0, "skipped": 2, "not_done": 0})
        self.assertEqual(read_files(self.path("out")), wanted)
        self.check(gpustage(*arguments), 0)
        self.assertEqual(self.stats()["items"]["skipped"], 5)
        self.check(gpustage(*arguments, "--plain", "--fsync", "none"), 0) # not settings of the outputs
        self.assertEqual(self.stats()["items"]["skipped"], 5)

    def test_resume_with_other_settings(self):
        folder = self.panoramas(2)
        arguments = ["reproject", folder, "-o", self.path("out")] + self.VIEWS
        self.check(gpustage(*arguments), 0)
        for flags, says in ((["--hfov", "80"], "view00="), (["--filter", "nearest"], "filter=bilinear"),
                            (["--convention", "opencv"], "convention=native"),
                            (["--format", "npy"], "format=ppm"), (["--views", "3"], "views=2, this run has views=3"),
                            (["--size", "16x17"], "size=16x16, this run has size=16x17")):
            self.check(gpustage(*arguments, "--resume", *flags), 2, "--resume: ", says, "see gpustage reproject --help")
        self.check(gpustage("preprocess", folder, "-o", self.path("out"), "--size", "4x4", "--resume"), 2,
                   "command=reproject, this run has command=preprocess")
        self.check(gpustage(*arguments, "--size", "8x8"), 0) # without --resume a new beginning
        outcome = self.check(gpustage(*arguments, "--size", "8x8", "--resume"), 0)
        self.assertIn("2 skipped", outcome.out)
        for found in (b"something else\n", b"gpustage-manifest 1\nset version=0.1\n", b"item 1 2 3 a a\n"):
            with open(self.path("out", MANIFEST), "wb") as stream:
                stream.write(found)
            self.check(gpustage(*arguments, "--resume"), 2, "begins with \"" + found.decode().split("\n")[0],
                       "instead of \"gpustage-manifest 4\"")


# ---- what is told ------------------------------------------------------------------------------------------------

class Told(Case):
    def test_stats(self):
        folder = self.panoramas(6)
        with open(self.path("in", "pano02.ppm"), "wb") as stream:
            stream.write(b"P6\n")
        sizes = sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder))
        for engine in (["--backend", "cpu"], ["--plain", "--backend", "cpu"]):
            outcome = gpustage("reproject", folder, "-o", self.path("out"), "--views", "3", "--size", "16x16",
                               "--format", "ppm", "--stats", self.path("stats.json"), *engine)
            self.check(outcome, 1)
            stats = self.stats()
            keys = "version backend device items wall_s start_s sync_s items_per_s bytes stages copies verdict path"
            for key in keys.split() + ["tuner", "errors"]:
                self.assertIn(key, stats)
            self.assertEqual(stats["backend"], "cpu")
            self.assertEqual(stats["items"], {"total": 6, "ok": 5, "failed": 1, "skipped": 0, "not_done": 0})
            self.assertTrue(0 < stats["start_s"] <= stats["start_s"] + stats["sync_s"] < stats["wall_s"])
            self.assertAlmostEqual(stats["items_per_s"], 5 / stats["wall_s"], 3)
            made = sum(os.path.getsize(self.path("out", n)) for n in self.outputs())
            self.assertEqual((stats["bytes"]["read"], stats["bytes"]["written"]), (sizes, made))
            self.assertEqual((stats["bytes"]["h2d"], stats["bytes"]["d2h"]), (0, 0))
            self.assertEqual(list(stats["stages"]), STAGES)
            for name, stage in stats["stages"].items():
                for key in "count timed busy_s wait_s p50_us p90_us p99_us max_us".split():
                    self.assertGreaterEqual(stage[key], 0, (name, key))
                self.assertLessEqual(stage["p50_us"], stage["max_us"] * 1.07)
            self.assertEqual([stats["stages"][n]["count"] for n in ("read", "decode", "kernel", "encode", "write")],
                             [6, 6, 5, 15, 15])
            verdict = stats["verdict"]
            self.assertEqual((sorted(verdict["share"]), sorted(verdict["cap"])), (sorted(RESOURCES), sorted(RESOURCES)))
            self.assertIn(verdict["bound"], RESOURCES + ["none"])
            self.assertTrue(0 < verdict["efficiency"] <= 1)
            self.assertTrue(all(v >= 1 for v in verdict["cap"].values()))
            self.assertIn(verdict["text"], outcome.out)
            self.assertEqual(sorted(stats["path"]), ["copies", "device", "graph", "host_memory", "jpeg", "prefetch",
                                                     "read", "threads", "write"])
            for way in stats["path"].values():
                self.assertTrue(way["taken"])
                self.assertIsInstance(way["why_not"], dict)
            self.check_tuner(stats["tuner"], tuned="--plain" not in engine)
            self.assertEqual(sorted(stats["errors"][0]), ["item", "reason", "result", "stage"])

    def test_every_stage_and_path_is_told(self):
        """By the names that the run's stages and paths have, and not by a list in the command: masks of frames, a file
        of tensors."""
        os.mkdir(self.path("masks"))
        folder = self.panoramas(3)
        for i in range(3):
            with open(self.path("masks", "pano%02d.png" % i), "wb") as stream:
                stream.write(make.png(color=make.GRAY, size=(64, 32)).data)
        common = ["--stats", self.path("stats.json"), "--backend", "cpu"]
        views = ["reproject", folder, "-o", self.path("out"), "--views", "2", "--size", "16x16", "--format", "ppm"]
        tensors = ["preprocess", folder, "-o", self.path("all.npy"), "--size", "16x16"]
        masked = STAGES[:2] + ["mask", "upload", "kernel", "mask kernel", "download", "masking"] + STAGES[5:]
        stacked = STAGES[:5] + ["row", "write"]
        every = ["copies", "device", "graph", "host_memory", "jpeg", "prefetch", "read", "threads", "write"]
        runs = [(views, STAGES, 6), (tensors, stacked, 3)]
        if has_format("png"):
            runs.append((views + ["--mask", self.path("masks")], masked, 6))
        for arguments, stages, n_writes in runs:
            self.check(gpustage(*arguments, *common), 0)
            stats = self.stats()
            self.assertEqual(list(stats["stages"]), stages)
            self.assertEqual(sorted(stats["path"]), every)
            for name, count in (("read", 3), ("decode", 3), ("kernel", 3), ("write", n_writes)):
                self.assertEqual(stats["stages"][name]["count"], count, name)
            for name in set(stages) - set(STAGES):
                self.assertEqual(stats["stages"][name]["count"], 3, name)
                self.assertIn(stats["stages"][name]["resource"], RESOURCES)

    def test_the_time_is_all_of_it(self):
        """From the command's call on, with a list that comes late, to the last sync; where nothing is to be done, too."""
        folder, names = self.panoramas(4), self.path("list.txt")
        common = ["-o", self.path("out"), "--views", "1", "--size", "8x8", "--format", "ppm", "--stats",
                  self.path("stats.json"), "--resume"]
        for done in (4, 0):
            if os.path.exists(names):
                os.remove(names)
            os.mkfifo(names)
            child = start("reproject", "@" + names, *common)
            pipe = self.wait_for_reader(child, names)
            time.sleep(0.1)
            os.write(pipe, "".join(os.path.join(folder, n) + "\n" for n in sorted(os.listdir(folder))).encode())
            os.close(pipe)
            self.check(finish(child), 0)
            stats = self.stats()
            self.assertEqual(stats["items"]["ok"], done)
            self.assertGreaterEqual(stats["start_s"], 0.1)
            self.assertGreaterEqual(stats["wall_s"], stats["start_s"] + stats["sync_s"])

    def check_tuner(self, tuner, tuned):
        self.assertIn("workers=", tuner["settings"])
        self.assertEqual(tuner["on"], 1 if tuned else 0)
        self.assertEqual(tuner["n_decisions"] > 0, tuned)
        for line in tuner["decisions"]:
            self.assertEqual(sorted(line), sorted("item knob before after items_per_s_before items_per_s_after "
                                                  "reason".split()))
            self.assertTrue(line["reason"])
        self.assertEqual(sorted(tuner["guard"]), sorted("text measured engine_us plain_us plain_items".split()))

    def test_writer_knobs_and_pinning_are_told(self):
        core = str(min(os.sched_getaffinity(0)))
        common = [self.panoramas(3), "-o", self.path("out"), "--views", "1", "--size", "16x16", "--format", "ppm",
                  "--stats", self.path("stats.json")]
        self.check(gpustage("reproject", *common), 0)
        path = self.stats()["path"]
        self.assertEqual(path["write"]["taken"], "buffered, fsync")
        self.assertEqual((path["threads"]["taken"], path["threads"]["why_not"]),
                         ("not pinned", {"pinned": "not asked for"}))
        self.check(gpustage("reproject", *common, "--fsync=none", "--dirty-bytes", "3K", "--pin", core), 0)
        stats = self.stats()
        self.assertEqual(stats["path"]["write"]["taken"], "buffered")
        self.assertEqual(stats["path"]["threads"], {"taken": "cores " + core, "why_not": {}})
        self.assertIn("fsync=none dirty_bytes=3072", stats["tuner"]["settings"])

    def test_prefetch_is_told(self):
        common = [self.panoramas(30), "-o", self.path("out"), "--views", "1", "--size", "16x16", "--format", "ppm",
                  "--stats", self.path("stats.json"), "--slots", "2"]
        self.check(gpustage("reproject", *common), 0)
        stats = self.stats()
        ahead = stats["prefetch"]
        self.assertIn(ahead["state"], ("on", "off: no read had to wait"))
        self.assertEqual(stats["path"]["prefetch"]["taken"],
                         "%d files advised" % ahead["advised"] if ahead["advised"] else "none")
        self.check(gpustage("reproject", *common, "--prefetch=off"), 0)
        stats = self.stats()
        self.assertEqual((stats["prefetch"]["state"], stats["prefetch"]["advised"]), ("off: switched off", 0))
        self.assertEqual(stats["path"]["prefetch"], {"taken": "none", "why_not": {"ahead": "switched off"}})

    def test_settings_are_kept(self):
        """--tune FILE leaves what was found, and begins with it; what was fixed is in it, too."""
        kept = self.path("kept.txt")
        for i in range(30):
            write_directions(self.path("p%02d.ppm" % i))
        common = [self.dir, "-o", self.path("out"), "--views", "2", "--size", "32x32", "--format", "ppm"]
        self.check(gpustage("reproject", *common, "--readers", "3", "--slots", "5", "--tune", kept), 0)
        with open(kept) as stream:
            found = dict(line.split("=") for line in stream.read().split())
        self.assertIn(found["loop"], ("engine", "plain-serial", "plain-inside"))
        self.assertEqual((found["reads"], found["slots"]), ("3", "5"))
        with open(kept, "w") as stream:
            stream.write("loop=plain-inside\n")
        self.check(gpustage("reproject", *common, "--tune", kept, "--stats", self.path("stats.json")), 0)
        self.assertIn("mode=plain-inside", self.stats()["tuner"]["settings"])
        with open(kept) as stream:
            self.assertIn("loop=plain-inside", stream.read())

    def test_settings_of_elsewhere(self):
        """What this machine does not allow is said; what a short run did is no finding; what is no settings is
        refused."""
        folder = self.panoramas(40)
        kept = self.path("kept.txt")
        common = ["-o", self.path("out"), "--views", "1", "--size", "16x16", "--format", "ppm", "--tune", kept]
        given = "workers=64\nslots=5000\nreads=3\n"
        with open(kept, "w") as stream:
            stream.write(given)
        one = os.path.join(folder, "pano00.ppm")
        self.check(gpustage("reproject", one, *common, "--workers", "2"), 0, "workers=64: at most 2 here",
                   "slots=5000: at most ", "too short to find settings: left as it was")
        with open(kept) as stream:
            self.assertEqual(stream.read(), given)
        with open(kept, "w") as stream:
            stream.write("workers=2\nreads=3\n")
        self.assertNotIn("at most", self.check(gpustage("reproject", folder, *common, "--workers", "2"), 0).err)
        for text, says in (("reads=8\nfast=1\n", "line 2: \"fast\": no such knob"), ("x" * 1100000, "is too large")):
            with open(kept, "w") as stream:
                stream.write(text)
            self.check(gpustage("reproject", folder, *common), 2, "--tune=%s: " % kept, says)
            with open(kept) as stream:
                self.assertEqual(stream.read(), text)
        outcome = self.check(gpustage("reproject", self.path("none.ppm"), "-o", self.path("out")), 1)
        self.assertEqual(outcome.out, "0 of 1 done, 1 failed\n", "no verdict of nothing")

    def test_strange_names(self):
        names = [b"quo\"te\\.ppm", b"t\tab\x01.ppm", b"umlaut-\xc3\xa4.ppm", b"latin-\xe4.ppm", b"-dash.ppm",
                 b"%41 100%.ppm", b"line\nfeed.ppm", b"noext", b"two.dots.ppm"]
        bad = (names[0], b"line\nfeed.ppm")
        for name in names:
            with open(os.path.join(os.fsencode(self.dir), name), "wb") as stream:
                stream.write(b"P6\n2 1\n255\nabcdef" if name not in bad else b"")
        arguments = ["reproject", "-o", self.path("out"), "--views", "1", "--size", "2x2", "--format", "ppm", "--stats",
                     self.path("stats.json"), "--resume", "--"] + [os.fsdecode(n) for n in names]
        for skipped in (0, len(names) - len(bad)):
            child = subprocess.Popen([os.fsencode(a) for a in [COMMAND] + arguments], cwd=self.dir,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            outcome = self.check(finish(child), 1)
            self.assertEqual(len(outcome.err.splitlines()), 2, "control characters are not printed")
            stats = self.stats()
            self.assertEqual(stats["items"]["skipped"], skipped)
            self.assertEqual([e["item"] for e in stats["errors"]], ["quo\"te\\.ppm", "line\nfeed.ppm"])
        self.assertIn("two.dots_v00.ppm", self.outputs())
        self.assertIn("noext_v00.ppm", self.outputs())

    def test_quiet_and_closing_line(self):
        folder = self.panoramas(2)
        arguments = ["reproject", folder, "-o", self.path("out"), "--views", "1", "--size", "8x8", "--format", "ppm"]
        outcome = self.check(gpustage(*arguments), 0)
        self.assertEqual(len(outcome.out.splitlines()), 1)
        self.assertRegex(outcome.out, r"^2 of 2 done in \d+\.\d\d s, \d+\.\d items/s; \S")
        self.assertEqual(outcome.err, "")
        quiet = self.check(gpustage(*arguments, "--quiet", self.path("none.ppm")), 1, "none.ppm: read: ")
        self.assertEqual(quiet.out, "")
        self.assertEqual(len(quiet.err.splitlines()), 1)

    def on_terminal(self, *arguments, **environment):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest("no pseudo-terminal: %s" % error)
        child = subprocess.Popen([COMMAND] + list(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=theirs, env=dict(os.environ, TERM="xterm", **environment))
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        os.close(ours)
        child.wait(timeout=60)
        return seen.decode("utf-8", "replace")

    def test_bar_on_a_terminal(self):
        folder = self.panoramas(12)
        arguments = ["reproject", folder, self.path("none.ppm"), "-o", self.path("out"), "--views", "1",
                     "--size", "8x8", "--format", "ppm", "--slots", "1"]
        seen = self.on_terminal(*arguments, NO_COLOR="")
        self.assertRegex(seen, r"\[[#-]+\] \d+/13  \d+\.\d items/s  ETA \d+:\d\d")
        self.assertIn("\033[1;31mgpustage:\033[0m ", seen)
        self.assertTrue(seen.endswith("\r\033[K"), "the bar goes when it is over")
        self.assertNotIn("\033[1;31m", self.on_terminal(*arguments, NO_COLOR="1"))
        quiet = self.on_terminal(*arguments, "--quiet")
        self.assertNotIn("ETA", quiet)
        self.assertIn("none.ppm", quiet)

    def test_stats_to_a_pipe(self):
        folder = self.panoramas(1)
        outcome = self.check(gpustage("reproject", folder, "-o", self.path("out"), "--views", "1", "--size", "8x8",
                                      "--format", "ppm", "--quiet", "--stats", "/dev/stdout"), 0)
        self.assertEqual(json.loads(outcome.out)["items"]["ok"], 1)

    def test_nothing_is_written_outside(self):
        folder = self.panoramas(2)
        before = sorted(os.listdir(self.dir))
        self.check(gpustage("reproject", folder, "-o", self.path("out"), "--views", "1", "--size", "8x8",
                            "--format", "ppm", cwd=self.dir), 0)
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(before + ["out"]))
        self.assertEqual(sorted(os.listdir(self.path("out"))), [MANIFEST, "pano00_v00.ppm", "pano01_v00.ppm"])


if __name__ == "__main__":
    main()
