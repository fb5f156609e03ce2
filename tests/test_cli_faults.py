#!/usr/bin/env python3
"""tests/test_cli_faults.py -- the command where something around it is wrong: runs that were killed or that are at work
in the same directory, files that are several things at once, closed descriptors, no memory, no room."""
import errno
import glob
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

from cli_kit import (COMMAND, MANIFEST, Case, finish, gpustage, main, read_files, start, threads_may_be_left,
                     write_directions)

VIEWS = ["--views", "2", "--size", "16x16", "--format", "ppm"]
OTHER = ["--views", "2", "--size", "24x16", "--format", "ppm"]


class Faults(Case):
    def reproject(self, *arguments, views=VIEWS, out="out", **keywords):
        return gpustage("reproject", *arguments, "-o", self.path(out), *views, **keywords)

    def open_run(self, *arguments, command="reproject", views=VIEWS, out="out", **keywords):
        """A run that is at work until self.feed: one of its inputs is a FIFO that nobody feeds."""
        if not os.path.exists(self.path("pipe.ppm")):
            os.mkfifo(self.path("pipe.ppm"))
        child = start(command, *arguments, self.path("pipe.ppm"), "-o", self.path(out), *views, **keywords)
        self.addCleanup(self.end, child)
        return child

    def wait_for_reader(self):
        """A descriptor to write to the FIFO, once somebody reads from it: until it is closed that waits."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return os.open(self.path("pipe.ppm"), os.O_WRONLY | os.O_NONBLOCK)
            except OSError as problem:
                if problem.errno != errno.ENXIO or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def end(self, child):
        if child.poll() is None:
            child.kill()
        child.communicate()

    def feed(self):
        write_directions(self.path("fed.ppm"), 64, 32)
        with open(self.path("fed.ppm"), "rb") as stream, open(self.path("pipe.ppm"), "wb") as pipe:
            pipe.write(stream.read())

    def wait_for(self, pattern, child, count=1):
        deadline = time.monotonic() + 30
        while len(glob.glob(self.path(*pattern))) < count:
            self.assertLess(time.monotonic(), deadline, "never there: %s" % (pattern,))
            self.assertIsNone(child.poll(), "the run is over already")
            time.sleep(0.005)
        return sorted(glob.glob(self.path(*pattern)))

    def make(self, name, data=b""):
        with open(self.path(name), "wb") as stream:
            stream.write(data)
        return self.path(name)


class Manifest(Faults):
    def small_disk(self, kilobytes):
        """A directory of that size; skipped where none can be mounted."""
        folder = self.path("disk")
        os.mkdir(folder)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kilobytes, "none", folder],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            self.skipTest("no disk can be mounted")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        return folder

    def fill(self, folder):
        with open(os.path.join(folder, "filler"), "wb", buffering=0) as stream:
            try:
                while True:
                    stream.write(bytes(4096))
            except OSError:
                pass

    def test_old_list_does_not_tell_of_new_outputs(self):
        """A whole run, a run of other settings on a full disk, and room again: no output of the second is taken for one
        of the first."""
        folder, disk = self.panoramas(4), self.small_disk(256)
        out = os.path.join(disk, "out")
        self.check(gpustage("reproject", folder, "-o", out, *VIEWS), 0)
        wanted = read_files(out)
        self.fill(disk)
        outcome = gpustage("reproject", folder, "-o", out, *VIEWS, "--filter", "nearest")
        self.check(outcome, 3, "No space left on device")
        os.remove(os.path.join(disk, "filler"))
        self.check_no_leftovers(out)
        self.assertEqual(read_files(out), wanted)
        outcome = self.check(gpustage("reproject", folder, "-o", out, *VIEWS, "--filter", "nearest"), 0)
        self.assertNotEqual(read_files(out), wanted)
        self.check(gpustage("reproject", folder, "-o", out, *VIEWS, "--resume"), 2, "filter=nearest")

    def test_disk_that_fills(self):
        """At each tenth of a job: what is there is whole, and --resume makes the rest."""
        folder = self.panoramas(20)
        self.check(self.reproject(folder), 0)
        wanted = read_files(self.path("out"))
        disk = self.small_disk(512)
        total = 0
        for tenth in range(1, 10):
            out = os.path.join(disk, "out")
            shutil.rmtree(out, ignore_errors=True)
            os.mkdir(out)
            self.fill(disk)
            with open(os.path.join(disk, "filler"), "r+b") as stream:
                stream.truncate(os.path.getsize(stream.name) - 4096 * (3 + 4 * tenth)) # a page for each view, and its list
            outcome = gpustage("reproject", folder, "-o", out, *VIEWS)
            self.check(outcome, 1, "No space left on device")
            found = read_files(out)
            self.assertEqual({n: found[n] for n in found}, {n: wanted[n] for n in found}, tenth)
            self.check_no_leftovers(out)
            os.remove(os.path.join(disk, "filler"))
            self.check(gpustage("reproject", folder, "-o", out, *VIEWS, "--resume"), 0)
            self.assertEqual(read_files(out), wanted, tenth)
            total += len(found)
        self.assertGreater(total, 0)

    def test_list_that_cannot_be_kept(self):
        folder = self.panoramas(1)
        os.mkdir(self.path("out"))
        os.mkfifo(self.path("out", MANIFEST))
        self.check(self.reproject(folder), 3, MANIFEST + ": is no regular file")
        os.remove(self.path("out", MANIFEST))
        os.mkdir(self.path("out", MANIFEST))
        self.check(self.reproject(folder), 3, MANIFEST)
        os.rmdir(self.path("out", MANIFEST))
        os.symlink(self.make("elsewhere"), self.path("out", MANIFEST))
        self.check(self.reproject(folder), 3, MANIFEST)
        self.assertEqual(os.path.getsize(self.path("elsewhere")), 0)
        self.assertEqual(self.outputs(), [])

    def test_directory_that_is_moved_or_emptied(self):
        """The run notices at the next item, and no list speaks of outputs that are elsewhere."""
        folder = self.panoramas(3)
        for number, replace in enumerate((lambda: os.rename(self.path("out"), self.path("moved")),
                                          lambda: shutil.rmtree(self.path("out")))):
            shutil.rmtree(self.path("moved"), ignore_errors=True)
            child = self.open_run(folder)
            self.wait_for(["out", "pano*"], child, 6)
            replace()
            os.mkdir(self.path("out"))
            self.check(self.reproject(folder, views=OTHER), 0) # another run, in what has the name now
            wanted = read_files(self.path("out"))
            self.feed()
            self.check(finish(child), 1, "the output directory was moved, emptied or replaced during the run")
            outcome = self.check(self.reproject(folder, "--resume", views=OTHER), 0)
            self.assertIn("3 skipped", outcome.out, number)
            for name, data in wanted.items():
                self.assertEqual(read_files(self.path("out"))[name], data)
            shutil.rmtree(self.path("out"))

    def variants(self):
        """Two directories with files of the same names, and what a clean run makes of each."""
        folder, other, wanted = self.panoramas(3, "a"), self.path("b"), {}
        shutil.copytree(folder, other)
        for i in range(3):
            with open(os.path.join(other, "pano%02d.ppm" % i), "r+b") as stream:
                stream.seek(-3000, os.SEEK_END)
                stream.write(bytes(3000))
        for which in (folder, other):
            self.check(self.reproject(which, out="wanted"), 0)
            wanted[which] = read_files(self.path("wanted"))
            shutil.rmtree(self.path("wanted"))
        self.assertNotEqual(wanted[folder], wanted[other])
        return folder, other, wanted

    def check_resumed(self, folder, wanted):
        self.check(self.reproject(folder, "--resume"), 0)
        found = read_files(self.path("out"))
        for name, data in wanted[folder].items():
            self.assertEqual(found[name], data, name)

    def test_outputs_that_another_input_has_overwritten(self):
        """From the moment on when they may change, what is listed of them counts no more."""
        folder, other, wanted = self.variants()
        os.mkfifo(self.path("pano00.pipe"))
        for _ in range(2): # by what has no identity
            self.check(self.reproject(folder), 0)
            child = start("reproject", self.path("pano00.pipe"), "-o", self.path("out"), *VIEWS)
            with open(os.path.join(other, "pano00.ppm"), "rb") as stream, open(self.path("pano00.pipe"), "wb") as pipe:
                pipe.write(stream.read())
            self.check(finish(child), 0)
            self.check_resumed(folder, wanted)
        for seconds in (-5, 10 ** 10): # by what has an odd time
            self.check(self.reproject(folder), 0)
            os.utime(os.path.join(other, "pano01.ppm"), (seconds, seconds))
            self.check(self.reproject(os.path.join(other, "pano01.ppm")), 0)
            self.check_resumed(folder, wanted)
        self.check(self.reproject(folder), 0) # by a run that was killed
        chance = random.Random(3)
        for i in range(int(os.environ.get("GPST_KILLS", "24"))):
            child = start("reproject", other, "-o", self.path("out"), *VIEWS)
            time.sleep(chance.random() * 0.03)
            child.kill()
            finish(child)
            self.check_resumed(folder, wanted)
        for _ in range(4): # by one at the same time
            children = [start("reproject", which, "-o", self.path("out"), *VIEWS) for which in (folder, other)]
            for child in children:
                self.check(finish(child), 0)
            self.check_resumed(folder, wanted)

    def test_runs_that_began_at_one_time(self):
        """Who found nobody beside it may say so behind the first lines of one that came then."""
        folder = self.panoramas(1)
        self.check(self.reproject(folder), 0)
        with open(self.path("out", MANIFEST)) as stream:
            lines = stream.read().splitlines()
        tag = next(line.split()[1] for line in lines if line.startswith("run "))
        own = [line for line in lines if tag in line]
        self.assertEqual([line.split()[0] for line in own], ["run", "alone", "begin", "item"])
        head = lines[:lines.index(own[0])]
        for other, n_skipped in ((["run x", "alone x", "begin x pano00"] + own, 1), # killed
                                 ([own[0], "run x", "begin x pano00", own[1], "beside x"] + own[2:], 0),
                                 (["run x", "begin x pano00"] + own[:1] + ["beside " + tag] + own[2:], 0)):
            with open(self.path("out", MANIFEST), "w") as stream:
                stream.write("\n".join(head + other) + "\n")
            outcome = self.check(self.reproject(folder, "--resume"), 0)
            self.assertEqual("1 skipped" in outcome.out, n_skipped == 1, other)

    def test_lines_that_cannot_be_added(self):
        """Then outputs that are listed do not change."""
        folder, other, wanted = self.variants()
        self.check(self.reproject(folder), 0)
        size = os.path.getsize(self.path("out", MANIFEST))
        limit = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                         resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60, size + 60)))
        outcome = self.reproject(other, preexec_fn=limit)
        self.assertIn(outcome.code, (1, 3), outcome)
        self.check_resumed(folder, wanted)

    def test_stack_over_an_output(self):
        folder = self.panoramas(2)
        tensor = ["preprocess", folder, "--size", "8x8", "-o", self.path("out")]
        self.check(gpustage(*tensor), 0)
        wanted = read_files(self.path("out"))
        self.check(gpustage("preprocess", self.path("in", "pano00.ppm"), "--size", "8x8", "--mean", "0.5", "-o",
                            self.path("out", "pano00.npy")), 0)
        self.assertIn("1 skipped", self.check(gpustage(*tensor, "--resume"), 0).out)
        self.assertEqual(read_files(self.path("out")), wanted)

    def test_backup_by_links(self):
        folder = self.panoramas(2)
        self.check(self.reproject(folder), 0)
        os.mkdir(self.path("backup"))
        for name in os.listdir(self.path("out")):
            os.link(self.path("out", name), self.path("backup", name))
        with open(self.path("in", "pano00.ppm"), "r+b") as stream:
            stream.seek(-300, os.SEEK_END)
            stream.write(bytes(300))
        self.check(self.reproject(folder), 0)
        outcome = self.check(self.reproject(folder, "--resume", out="backup"), 0)
        self.assertIn("1 skipped", outcome.out)
        self.assertEqual(read_files(self.path("backup")), read_files(self.path("out")))

    def test_masks_are_told_by_their_contents(self):
        folder = self.panoramas(1)
        for name, value in (("m1.pgm", b"\xff"), ("m2.pgm", b"\x00")):
            self.make(name, b"P5\n64 32\n255\n" + value * 2048)
            os.utime(self.path(name), (1000, 1000))
        self.check(self.reproject(folder, "--mask", self.path("m1.pgm")), 0)
        self.check(self.reproject(folder, "--mask", self.path("m2.pgm"), "--resume"), 2, "mask=2061 bytes")
        os.rename(self.path("m1.pgm"), self.path("m3.pgm"))
        self.assertIn("1 skipped", self.check(self.reproject(folder, "--mask", self.path("m3.pgm"), "--resume"), 0).out)

    def test_input_of_another_directory(self):
        """Of the same name, size and time."""
        folder = self.panoramas(2)
        shutil.copytree(folder, self.path("other"))
        with open(self.path("other", "pano00.ppm"), "r+b") as stream:
            stream.seek(-30, os.SEEK_END)
            stream.write(bytes(30))
        for name in ("in", "other"):
            for i in range(2):
                os.utime(self.path(name, "pano%02d.ppm" % i), (1000, 1000))
        self.check(self.reproject(folder), 0)
        outcome = self.check(self.reproject(self.path("other"), "--resume"), 0)
        self.assertNotIn("skipped", outcome.out)
        outcome = self.check(self.reproject(folder, "--resume"), 0) # what is there is the other's now
        self.assertNotIn("skipped", outcome.out)
        outcome = self.check(self.reproject("in", "--resume", cwd=self.dir), 0) # the same by another name
        self.assertIn("2 skipped", outcome.out)

    def test_names_with_blanks(self):
        folder = self.panoramas(1)
        os.rename(self.path("in", "pano00.ppm"), self.path("in", "a b %20 c\nd.ppm"))
        self.check(self.reproject(folder), 0)
        self.assertIn("1 skipped", self.check(self.reproject(folder, "--resume"), 0).out)


class Killed(Faults):
    def test_what_a_killed_run_left_is_removed(self):
        """By the next run, whatever it does there; what belongs to a run at work, or to nobody known, stays."""
        folder = self.panoramas(2)
        for number, again in enumerate(([], ["--resume"])):
            child = self.open_run(folder)
            lock, = self.wait_for(["out", ".gpustage-*.lock"], child)
            self.wait_for(["out", "pano*"], child, 4)
            child.kill()
            finish(child)
            dead = self.make(lock[:-5] + "-7.tmp")
            unknown = self.make(os.path.join("out", ".gpustage-0123456789abcdef-1.tmp"))
            alive = self.open_run(folder)
            self.wait_for(["out", ".gpustage-*.lock"], alive)
            deadline = time.monotonic() + 30
            while os.path.exists(lock):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.005)
            self.assertFalse(os.path.exists(dead))
            theirs, = glob.glob(self.path("out", ".gpustage-*.lock"))
            working = self.make(theirs[:-5] + "-1000000.tmp")
            self.check(self.reproject(folder, *again), 0)
            self.assertTrue(os.path.exists(working) and os.path.exists(theirs), number)
            self.assertTrue(os.path.exists(unknown))
            os.remove(working)
            os.remove(unknown)
            self.feed()
            self.check(finish(alive), 0)
            self.check_no_leftovers(self.path("out"))

    def test_killed_stack(self):
        child = self.open_run(command="preprocess", views=["--size", "8x8"], out="t.npy")
        left, = self.wait_for([".gpustage-*.part"], child)
        other = self.open_run(command="preprocess", views=["--size", "8x8"], out="u.npy")
        self.wait_for([".gpustage-*.part"], other, 2)
        child.kill()
        finish(child)
        self.check(gpustage("preprocess", self.panoramas(1), "-o", self.path("v.npy"), "--size", "8x8"), 0)
        self.assertFalse(os.path.exists(left))
        self.assertEqual(len(glob.glob(self.path(".gpustage-*.part"))), 1)
        self.feed()
        self.check(finish(other), 0)
        self.assertTrue(os.path.exists(self.path("u.npy")))
        self.check_no_leftovers(self.dir)

    def in_namespace(self, *arguments):
        """A run that is process 1, as in a container."""
        return subprocess.Popen(["unshare", "--pid", "--fork", COMMAND] + list(arguments), start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kill_all(self, child):
        """With what it started: unshare may be gone before its child is the run."""
        os.killpg(child.pid, signal.SIGKILL)
        finish(child)

    def test_process_number_that_comes_again(self):
        if not shutil.which("unshare") or \
                subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no process namespace can be made")
        os.mkfifo(self.path("pipe.ppm"))
        before = []
        for _ in range(3):
            child = self.in_namespace("preprocess", self.path("pipe.ppm"), "-o", self.path("t.npy"), "--size", "8x8")
            self.addCleanup(self.end, child)
            while self.wait_for([".gpustage-*"], child) == before: # what the run before has left
                time.sleep(0.005)
            before = self.wait_for([".gpustage-*"], child)
            self.kill_all(child)
        self.assertLessEqual(len(glob.glob(self.path(".gpustage-*"))), 1)
        folder = self.panoramas(1)
        self.check(finish(self.in_namespace("preprocess", folder, "-o", self.path("t.npy"), "--size", "8x8")), 0)
        self.assertEqual(glob.glob(self.path(".gpustage-*")), [])

    def test_many_kills(self):
        """At any moment, as process 1 or another: whole or absent, and nothing stays. GPST_KILLS: how many."""
        folder = self.panoramas(16)
        self.check(self.reproject(folder, out="wanted"), 0)
        wanted = read_files(self.path("wanted"))
        spaces = [[]]
        if shutil.which("unshare") and not subprocess.run(["unshare", "--pid", "--fork", "true"], check=False,
                                                          stderr=subprocess.DEVNULL).returncode:
            spaces.append(["unshare", "--pid", "--fork"])
        chance = random.Random(7)
        arguments = ["reproject", folder, "-o", self.path("out"), "--resume", *VIEWS]
        for i in range(int(os.environ.get("GPST_KILLS", "8"))):
            if chance.random() < 0.2:
                shutil.rmtree(self.path("out"), ignore_errors=True)
            child = subprocess.Popen(spaces[i % len(spaces)] + [COMMAND, *arguments], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
            time.sleep(chance.random() * 0.06)
            self.kill_all(child)
            for name in self.named():
                with open(self.path("out", name), "rb") as stream:
                    self.assertEqual(stream.read(), wanted[name], (i, name))
        deadline = time.monotonic() + 30 # with its parent gone, process 1 ends in its own time
        while True:
            self.check(gpustage(*arguments), 0)
            if not glob.glob(self.path("out", ".gpustage-*.*")) or time.monotonic() > deadline:
                break
        self.assertEqual(read_files(self.path("out")), wanted)
        self.check_no_leftovers(self.path("out"))

    def named(self):
        if not os.path.isdir(self.path("out")):
            return []
        return [n for n in os.listdir(self.path("out")) if not n.startswith(".")]

    def test_dead_locks(self):
        """However odd: of a FIFO, of somebody else, and of many runs that begin at once."""
        folder = self.panoramas(1)
        os.mkdir(self.path("out"))
        os.mkfifo(self.path("out", ".gpustage-0123456789abcdef.lock"))
        self.check(self.reproject(folder), 0)
        os.remove(self.path("out", ".gpustage-0123456789abcdef.lock"))
        for _ in range(4):
            lock = self.make(os.path.join("out", ".gpustage-00000000000000aa.lock"),
                             b"gpustage-lock 1\nsettings 0000000000000001\n")
            os.chmod(lock, 0o444)
            for i in range(500):
                self.make(os.path.join("out", ".gpustage-00000000000000aa-%d.tmp" % i))
            children = [start("reproject", folder, "-o", self.path("out"), *VIEWS) for _ in range(4)]
            for child in children:
                self.check(finish(child), 0)
            self.check_no_leftovers(self.path("out"))
        for _ in range(6): # who makes the directory
            shutil.rmtree(self.path("out"))
            children = [start("reproject", folder, "-o", self.path("out"), *VIEWS) for _ in range(4)]
            for child in children:
                self.check(finish(child), 0)

    def test_folders_that_were_moved(self):
        """What a dead run left behind a link is removed, also where links lead in a circle; and what a run could not remove
        when its directory was not there for a moment, by its end."""
        folder = self.panoramas(1)
        os.makedirs(self.path("out", "deep"))
        os.makedirs(self.path("moved", "below"))
        os.symlink(self.path("moved"), self.path("out", "deep", "sub"))
        os.symlink(self.path("out"), self.path("moved", "back"))
        self.make(os.path.join("out", ".gpustage-00000000000000aa.lock"), b"gpustage-lock 1\n")
        for name in ("moved", "moved/below", "out/deep"):
            self.make(os.path.join(name, ".gpustage-00000000000000aa-1.tmp"))
        self.check(self.reproject(folder), 0)
        for name in ("out", "moved"):
            self.check_no_leftovers(self.path(name))
        child = self.open_run()
        pipe = self.wait_for_reader()
        lock = glob.glob(self.path("out", ".gpustage-*.lock"))[0]
        self.make(lock[:-5] + "-99.tmp")
        self.make(os.path.join("moved", os.path.basename(lock)[:-5] + "-98.tmp"))
        os.rename(self.path("out"), self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("out"))
        os.close(pipe)
        self.check(finish(child), 1)
        for name in ("elsewhere", "moved"):
            self.check_no_leftovers(self.path(name))

    def test_two_runs_of_other_settings(self):
        folder = self.panoramas(2)
        child = self.open_run(folder)
        self.wait_for(["out", "pano*"], child, 4)
        end, before = time.monotonic() + 20, b""
        while before.count(b"\nitem ") < 2 and time.monotonic() < end: # a line comes behind its item's files
            with open(self.path("out", MANIFEST), "rb") as stream:
                before = stream.read()
        for views in (OTHER, VIEWS + ["--filter", "nearest"]):
            self.check(self.reproject(folder, views=views), 2, "another run, with other settings, is at work there")
        with open(self.path("out", MANIFEST), "rb") as stream:
            self.assertEqual(stream.read(), before)
        self.assertEqual(len(glob.glob(self.path("out", ".gpustage-*.lock"))), 1)
        self.check(self.reproject(folder), 0) # of the same settings any number
        self.feed()
        self.check(finish(child), 0)
        self.check(self.reproject(folder, views=OTHER), 0) # now it may
        self.check_no_leftovers(self.path("out"))


class Overwrites(Faults):
    def check_kept(self, arguments, *says):
        """The command refuses, and nothing has changed."""
        before = {n: os.lstat(os.path.join(w, n)) for w, _, names in os.walk(self.dir) for n in names}
        self.check(gpustage(*arguments), 2, *says)
        after = {n: os.lstat(os.path.join(w, n)) for w, _, names in os.walk(self.dir) for n in names}
        self.assertEqual({n: (s.st_mtime_ns, s.st_ino) for n, s in after.items()},
                         {n: (s.st_mtime_ns, s.st_ino) for n, s in before.items()})

    def test_inputs_by_other_names(self):
        os.mkdir(self.path("out"))
        os.mkdir(self.path("in"))
        write_directions(self.path("out", "a_v00.ppm"), 64, 32)
        os.symlink(self.path("out", "a_v00.ppm"), self.path("in", "a.ppm"))
        self.check_kept(["reproject", self.path("in", "a.ppm"), "-o", self.path("out"), *VIEWS], "would overwrite an input")
        os.remove(self.path("in", "a.ppm"))
        os.link(self.path("out", "a_v00.ppm"), self.path("in", "a.ppm"))
        self.check_kept(["reproject", self.path("in"), "-o", self.path("out"), *VIEWS], "would overwrite an input")
        os.symlink(self.path("in", "a.ppm"), self.path("t.npy"))
        self.check_kept(["preprocess", self.path("in"), "-o", self.path("t.npy"), "--size", "4x4"],
                        "would overwrite the input")

    def test_files_that_options_name(self):
        folder = self.panoramas(2)
        os.mkdir(self.path("out"))
        mask = self.path("mask.ppm")
        write_directions(mask, 64, 32)
        os.symlink(self.path("in", "pano01.ppm"), self.path("link"))
        with open(self.path("list.txt"), "w", encoding="utf-8") as stream:
            stream.write(folder + "\n")
        run = ["reproject", "@" + self.path("list.txt"), "-o", self.path("out"), "--mask", mask, *VIEWS]
        for option in ("--rig", "--stats", "--tune"):
            for name in (self.path("in", "pano00.ppm"), self.path("link"), self.path("in", "..", "in", "pano00.ppm"), mask,
                         self.path("list.txt")):
                self.check_kept(run + [option, name], option + "=" + name, "would overwrite the input")
            self.check_kept(run + [option, self.path("out", "pano01_v01.ppm")], "is the name of an output")
            self.check_kept(run + [option, self.path("in", "..", "out", "pano01_v01.ppm")], "is the name of an output")
            self.check_kept(run + [option, self.path("out", MANIFEST)], "is the list of what is whole")
        self.check_kept(run + ["--rig", self.path("x"), "--stats", self.path("in", "..", "x")], "is the file of --rig, too")
        self.check_kept(["preprocess", folder, "-o", self.path("t.npy"), "--size", "4x4", "--stats", self.path("t.npy")],
                        "is the file of -o, too")
        self.check(gpustage(*run, "--rig", self.path("out", "rig.json"), "--stats", self.path("out", "stats.json")), 0)
        self.check(gpustage(*run, "--stats", self.path("out", "stats.json")), 0) # a second time, over the first
        self.check(gpustage(*run, "--stats", "/dev/null", "--rig", "/dev/null"), 0)
        for option in ("--rig", "--stats", "--tune"):
            self.check_kept(run + [option, self.path("in")], option + "=" + self.path("in"), "is a directory")
        os.symlink("/proc/self/fd/1", self.path("standard"))
        with open(self.path("said"), "wb") as stream:
            subprocess.run([COMMAND, *run, "--stats", self.path("standard"), "--quiet"], stdout=stream, check=True)
        self.assertTrue(os.path.islink(self.path("standard")))
        with open(self.path("said"), "rb") as stream:
            self.assertEqual(json.loads(stream.read())["items"]["ok"], 2)

    def test_directory_that_cannot_be_listed(self):
        """Then nobody knows what would be overwritten."""
        if os.getuid() != 0:
            self.skipTest("takes root to become somebody else")
        os.mkdir(self.path("d"))
        write_directions(self.path("d", "a.ppm"), 64, 32)
        write_directions(self.path("d", "a_v00.ppm"), 64, 32)
        os.chmod(self.dir, 0o755)
        command = shutil.copy(COMMAND, self.path("command")) # where it was built may be nobody else's to enter
        os.chown(self.path("d"), 65534, 65534)
        os.chmod(self.path("d"), 0o333)
        with open(self.path("d", "a_v00.ppm"), "rb") as stream:
            before = stream.read()
        self.check(gpustage("reproject", self.path("d", "a.ppm"), self.path("d", "a_v00.ppm"), "-o", self.path("d"), *VIEWS,
                            command=command, preexec_fn=lambda: (os.setgid(65534), os.setuid(65534))), 2,
                   "Permission denied")
        with open(self.path("d", "a_v00.ppm"), "rb") as stream:
            self.assertEqual(stream.read(), before)

    def test_stack_of_nothing(self):
        """What was there stays when no input could be used."""
        self.check(gpustage("preprocess", self.panoramas(1), "-o", self.path("t.npy"), "--size", "4x4"), 0)
        with open(self.path("t.npy"), "rb") as stream:
            before = stream.read()
        self.make("bad.ppm", b"P6\n64 32\n255\nshort")
        self.check(gpustage("preprocess", self.path("bad.ppm"), "-o", self.path("t.npy"), "--size", "4x4"), 1,
                   "no input could be used")
        with open(self.path("t.npy"), "rb") as stream:
            self.assertEqual(stream.read(), before)


class Descriptors(Faults):
    def test_closed_descriptors(self):
        """A file of ours must not become standard error."""
        folder = self.panoramas(3)
        self.make("in/bad.ppm", b"P6\n64 32\n255\nshort")
        stack = ["preprocess", folder, "-o", self.path("t.npy"), "--size", "8x8"] # open from the start to the end
        self.check(gpustage(*stack), 1)
        with open(self.path("t.npy"), "rb") as stream:
            wanted_stack = stream.read()
        self.check(self.reproject(folder), 1)
        wanted = read_files(self.path("out"))
        for closed in itertools.chain.from_iterable(itertools.combinations((0, 1, 2), n) for n in range(4)):
            shutil.rmtree(self.path("out"))
            shell = "exec \"$@\" " + " ".join("%d%s&-" % (d, "<" if d == 0 else ">") for d in closed)
            for arguments in (stack, ["reproject", folder, "-o", self.path("out"), *VIEWS]):
                done = subprocess.run(["sh", "-c", shell, "sh", COMMAND, *arguments], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=90, check=False)
                self.assertEqual((closed, done.returncode), (closed, 1))
            self.assertEqual(read_files(self.path("out")), wanted, closed)
            with open(self.path("t.npy"), "rb") as stream:
                self.assertEqual(stream.read(), wanted_stack, closed)
            outcome = self.check(self.reproject(folder, "--resume"), 1)
            self.assertIn("3 skipped", outcome.out)

    def test_output_that_cannot_be_written(self):
        folder = self.panoramas(1)
        for arguments in (["--version"], ["--help"], ["help"], ["probe"], ["probe", "--json"], ["probe", "--help"],
                          ["reproject", "--help"], ["preprocess", "--help"], ["bench", "--help"],
                          ["reproject", folder, "-o", self.path("out"), *VIEWS]):
            with open("/dev/full", "wb") as full:
                child = subprocess.Popen([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE,
                                         stdin=subprocess.DEVNULL)
                said = child.communicate(timeout=60)[1]
            self.assertEqual((arguments, said, child.returncode),
                             (arguments, b"gpustage: standard output cannot be written\n", 1))

    def test_a_list_that_is_never_fed(self):
        """Nothing has been made yet: the first signal ends it."""
        os.mkfifo(self.path("list"))
        for arguments in (["@" + self.path("list")], ["--mask", self.path("list"), self.panoramas(1)]):
            child = start("reproject", *arguments, "-o", self.path("out"), *VIEWS)
            self.addCleanup(self.end, child)
            time.sleep(0.3) # it is waiting, or has not yet begun to
            child.send_signal(signal.SIGTERM)
            self.assertEqual(finish(child).code, -signal.SIGTERM)
            self.assertFalse(os.path.exists(self.path("out")))

    def test_an_input_that_is_never_fed(self):
        for engine in (["--plain"], []):
            out = "out%d" % len(engine)
            child = self.open_run(self.panoramas(2, "in%d" % len(engine)), views=VIEWS + engine, out=out)
            self.wait_for([out, "pano*"], child, 4)
            self.addCleanup(os.close, self.wait_for_reader())
            child.send_signal(signal.SIGINT)
            time.sleep(0.3)
            self.assertIsNone(child.poll(), "the first lets what is in flight end")
            child.send_signal(signal.SIGINT)
            self.check(finish(child), 130)
            self.check_no_leftovers(self.path(out))

    def test_files_that_nobody_reads(self):
        """Signals end what waits for a reader: the third at the latest."""
        os.mkfifo(self.path("fifo"))
        folder = self.panoramas(1)
        for option in ("--rig", "--stats"):
            child = start("reproject", folder, "-o", self.path("out"), *VIEWS, option, self.path("fifo"),
                          env=threads_may_be_left())
            self.addCleanup(self.end, child)
            self.wait_for(["out", "pano*" if option == "--stats" else MANIFEST], child)
            signals = 0
            while child.poll() is None and signals < 3: # a run may be at work, or closing, at the first
                child.send_signal(signal.SIGINT)
                signals += 1
                for _ in range(40):
                    if child.poll() is None:
                        time.sleep(0.05)
            self.check(finish(child), 130)

    def test_settings_are_a_file(self):
        os.mkfifo(self.path("tune"))
        self.check(self.reproject(self.panoramas(1), "--tune", self.path("tune")), 2, "is no regular file")


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
static long at = -2, every;
static int fails(void) {
    if (at == -2) {
        const char* text = getenv("FAIL_AT");
        at = text ? atol(text) : -1;
        every = getenv("FAIL_ON") != NULL;
    }
    if (at < 0)
        return 0;
    if (at > 0) {
        __atomic_fetch_sub(&at, 1, __ATOMIC_SEQ_CST);
        return 0;
    }
    if (!every)
        at = -1;
    errno = ENOMEM;
    return 1;
}
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t),
    *__libc_memalign(size_t, size_t);
void* malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
int posix_memalign(void** out, size_t a, size_t n) {
    if (fails())
        return ENOMEM;
    *out = __libc_memalign(a, n);
    return *out ? 0 : ENOMEM;
}
"""


class Memory(Faults):
    def setUp(self):
        super().setUp()
        if os.environ.get("GPST_SANITIZE"):
            self.skipTest("a sanitizer has malloc for itself")
        if not sys.platform.startswith("linux"):
            self.skipTest("not on this system")
        self.make("shim.c", SHIM.encode())
        compiler = os.environ.get("CC", "cc").split()
        if subprocess.run(compiler + ["-shared", "-fPIC", "-O1", "-o", self.path("shim.so"), self.path("shim.c"), "-ldl"],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("the C library has no such hooks")

    def test_each_allocation_fails(self):
        """Done, failed items, or this machine has no memory: never wrong usage, nothing removed that was there, no file
        that is not whole."""
        folder = self.panoramas(2)
        wanted = {}
        runs = {"stack": ["preprocess", folder, "-o", os.path.join("dir", "x.npy"), "--size", "4x4"],
                "views": ["reproject", folder, "-o", "dir", *VIEWS, "--rig", os.path.join("dir", "rig.json"),
                          "--stats", os.path.join("dir", "stats.json")]}
        for name, arguments in runs.items():
            os.makedirs(self.path("dir"))
            self.check(gpustage(*arguments, cwd=self.dir), 0)
            wanted[name] = read_files(self.path("dir"))
            shutil.rmtree(self.path("dir"))
            for mode, n in itertools.product(("once", "on"), list(range(0, 120)) + list(range(120, 900, 13))):
                os.makedirs(self.path("dir"))
                environment = dict(os.environ, LD_PRELOAD=self.path("shim.so"), FAIL_AT=str(n))
                if mode == "on":
                    environment["FAIL_ON"] = "1"
                done = subprocess.run([COMMAND, *arguments, "--plain", "--backend", "cpu"], cwd=self.dir,
                                      env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=60, check=False)
                case = (name, mode, n, done.returncode, done.stderr)
                if b"cannot allocate memory for thread-local data: ABORT" in done.stderr:
                    shutil.rmtree(self.path("dir")) # the C library's own end, of data of libturbojpeg's for a thread
                    continue
                self.assertIn(done.returncode, (0, 1, 3), case)
                self.assertTrue(os.path.isdir(self.path("dir")), case)
                for file, data in read_files(self.path("dir")).items():
                    if file != "stats.json" and (done.returncode == 0 or name != "stack"):
                        self.assertEqual(data, wanted[name].get(file), (file,) + case)
                if done.returncode == 0:
                    self.assertEqual(len(read_files(self.path("dir"))), len(wanted[name]), case)
                shutil.rmtree(self.path("dir"))


if __name__ == "__main__":
    main()
