#!/usr/bin/env python3
"""tests/test_environment.py -- the command where there is little of something: cores, memory, locked memory, system
calls, room on the disk, time to end. What comes out is what comes out in plenty, or nothing and a reason."""
import ctypes
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import (  # noqa: E402
    Case, COMMAND, MANIFEST, finish, gpustage, main, read_files, start, write_directions
)

N_FRAMES = 24
VIEWS = ["--views", "2", "--size", "48x32", "--format", "ppm"]
KNOBS = ["workers", "slots", "reads", "writes", "streams", "inside"]


def forbid_io_uring():
    """In the process that calls it, and for good: the system calls of io_uring end with EPERM, as in containers."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    load, at_least, above, give = 0x20, 0x35, 0x25, 0x06 # instructions of a filter
    lines = ((load, 0, 0, 0), (at_least, 0, 2, 425), (above, 1, 0, 427), (give, 0, 0, 0x00050001),
             (give, 0, 0, 0x7fff0000))
    program = Program(len(lines), b"".join(struct.pack("HBBI", *line) for line in lines))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program)): # no new privileges; the filter
        raise OSError(ctypes.get_errno(), "prctl")


class Environment(Case):
    def setUp(self):
        super().setUp()
        self.folder = self.panoramas(N_FRAMES)
        self.check(self.reproject("plenty"), 0)
        self.wanted = read_files(self.path("plenty"))
        self.assertEqual(len(self.wanted), 2 * N_FRAMES)

    def reproject(self, out, *flags, **keywords):
        return gpustage("reproject", self.folder, "-o", self.path(out), "--stats", self.path("stats.json"), *VIEWS,
                        *flags, **keywords)

    def probe(self, **keywords):
        return json.loads(self.check(gpustage("probe", "--json", **keywords), 0).out)

    def check_same(self, out):
        found = read_files(self.path(out))
        self.assertEqual(sorted(found), sorted(self.wanted))
        self.assertEqual([n for n in found if found[n] != self.wanted[n]], [])

    def check_budgets(self, **most):
        """The budgets leave of these knobs what they must, and no knob was ever above them."""
        tuner = self.stats()["tuner"]
        for name, value in most.items():
            self.assertEqual(tuner["most"][name], value, tuner)
        now = dict(word.split("=") for word in tuner["settings"].split())
        for name in KNOBS:
            self.assertLessEqual(int(now.get(name, 0)), tuner["most"][name], tuner)
        for line in tuner["decisions"]:
            if line["knob"] in KNOBS:
                self.assertLessEqual(max(line["before"], line["after"]), tuner["most"][line["knob"]], tuner)

    def engine_at_once(self):
        """Flags of a tuned run that is in the engine from its first item on."""
        with open(self.path("engine.txt"), "w", encoding="utf-8") as stream:
            stream.write("loop=engine\n")
        return ["--tune", self.path("engine.txt")]

    def check_runs(self, modes=("balanced",), budgets=None, **keywords):
        """As it comes and in the engine, in every mode: the same outputs, within the budgets."""
        for mode in modes:
            for way in ([], self.engine_at_once()):
                shutil.rmtree(self.path("out"), ignore_errors=True)
                self.check(self.reproject("out", "--mode", mode, *way, **keywords), 0)
                self.check_same("out")
                self.check_budgets(**(budgets or {}))

    def within(self, name, *before):
        """A command that does something first and then is gpustage."""
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\n%s\n" % "\n".join(before) + "exec '%s' \"$@\"\n" % COMMAND)
        os.chmod(path, 0o755)
        return path

    def mounted(self, what):
        """A command that runs where something is mounted, which nobody else sees."""
        inner = self.within("inner", what + " || exit 99")
        path = self.path("outer")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\nexec unshare -m '%s' \"$@\"\n" % inner)
        os.chmod(path, 0o755)
        if not shutil.which("unshare") or gpustage("--version", command=path).code != 0:
            self.skipTest("nothing can be mounted here")
        return path

    # ---- cores and memory

    def test_one_core(self):
        if not hasattr(os, "sched_setaffinity"):
            self.skipTest("a process cannot be held on a core here")
        core = min(os.sched_getaffinity(0))
        keywords = {"preexec_fn": lambda: os.sched_setaffinity(0, {core})}
        cores = self.probe(**keywords)["cores"]
        self.assertEqual((cores["affinity"], cores["allowed"]), (1, 1))
        self.check_runs(("latency", "throughput"), {"workers": 1, "inside": 1}, **keywords)

    def test_quota_of_a_cgroup(self):
        with open("/proc/self/cgroup", encoding="ascii") as stream:
            groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in stream)
        if "cpu" not in groups:
            self.skipTest("no cgroup of its own for the controller cpu, version 1")
        group = "/sys/fs/cgroup/cpu%s/gpustage-test-%d" % (groups["cpu"].rstrip("/"), os.getpid())
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest("no cgroup can be made: %s" % error)
        self.addCleanup(os.rmdir, group)
        with open(group + "/cpu.cfs_quota_us", "w", encoding="ascii") as stream:
            stream.write("60000") # of 100000
        command = self.within("in_group", "echo $$ > '%s/cgroup.procs' || exit 99" % group)
        cores = self.probe(command=command)["cores"]
        self.assertEqual((cores["quota"], cores["allowed"]), (0.6, 1))
        self.check_runs(("balanced",), {"workers": 1}, command=command)

    def groups_that_say(self, files):
        """A command that finds these files as the root of the cgroups, of both versions."""
        root = self.path("groups")
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="ascii") as stream:
                stream.write(text)
        if not os.path.isdir("/sys/fs/cgroup"):
            self.skipTest("no cgroups here")
        return self.mounted("mount --bind '%s' /sys/fs/cgroup" % root)

    def test_quota_that_a_container_sees(self):
        command = self.groups_that_say({"cpu.max": "40000 100000\n", "cpu/cpu.cfs_quota_us": "40000\n",
                                        "cpu/cpu.cfs_period_us": "100000\n"})
        self.assertEqual(self.probe(command=command)["cores"]["quota"], 0.4)
        self.check_runs(("throughput",), {"workers": 1, "inside": 1}, command=command)

    def test_little_memory(self):
        """No more items are in flight than fit in half of what the cgroup leaves."""
        for name in os.listdir(self.folder):
            write_directions(os.path.join(self.folder, name), 1024, 512)
        frame_bytes, view_bytes = 1024 * 512 * 3, 48 * 32 * 3
        limit = 32 << 20
        command = self.groups_that_say({"memory.max": "%d\n" % limit, "memory/memory.limit_in_bytes": "%d\n" % limit})
        self.assertEqual(self.probe(command=command)["memory"]["bytes"], limit)
        self.check(self.reproject("plenty"), 0)
        self.wanted = read_files(self.path("plenty"))
        for mode in ("balanced", "throughput"):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.check(self.reproject("out", "--mode", mode, command=command), 0)
            self.check_same("out")
            self.check_budgets()
            fit = limit // 2 // (frame_bytes + 2 * view_bytes) # the picture is used where the file was read to
            self.assertLessEqual(self.stats()["engine"]["slots_used"], fit)
        for slots in ([], ["--slots", "40"]): # nor without a tuner, and whatever is asked for
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.check(self.reproject("out", "--tune", "off", "--workers", "8", *slots, command=command), 0)
            self.check_same("out")
            self.assertLessEqual(self.stats()["engine"]["slots_used"], fit)

    # ---- address space and stacks

    def check_limited(self, what, most_bytes, *flags):
        keywords = {"preexec_fn": lambda: resource.setrlimit(what, (most_bytes, most_bytes))}
        shutil.rmtree(self.path("out"), ignore_errors=True)
        self.check(self.reproject("out", *flags, **keywords), 0)
        self.check_same("out")
        self.check(gpustage("preprocess", self.folder, "-o", self.path("all.npy"), "--size", "16x16", **keywords), 0)

    def check_plain_build(self):
        if "sanitizer: none" not in gpustage("--version").out:
            self.skipTest("instrumented code needs more")

    def test_little_address_space(self):
        """Threads have stacks and memory to allocate in that fit into it, or there are fewer."""
        self.check_plain_build()
        larger = ["--size", "256x256"] # so that all threads have something to do
        self.check(self.reproject("plenty", *larger), 0)
        self.wanted = read_files(self.path("plenty"))
        for kib in (400000, 200000):
            for flags in ([], ["--workers", "16"], ["--workers", "16", "--tune", "off"]):
                self.check_limited(resource.RLIMIT_AS, kib << 10, *larger, *flags)

    def test_small_stack(self):
        self.check_plain_build()
        self.check_limited(resource.RLIMIT_STACK, 64 << 10)
        self.check_limited(resource.RLIMIT_STACK, 64 << 10, "--tune", "off")

    def test_little_locked_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (2 << 20, 2 << 20))
        self.assertEqual(self.probe(preexec_fn=limit)["memory"]["memlock_bytes"], 2 << 20)
        for way in ("auto", "pread", "direct", "uring"):
            if way == "uring" and not self.probe(preexec_fn=limit)["io_uring"]["allowed"]:
                continue
            self.check_runs(preexec_fn=limit, env=dict(os.environ, GPUSTAGE_IO=way))

    def test_io_uring_forbidden(self):
        try:
            probe = self.probe(preexec_fn=forbid_io_uring)
        except (OSError, subprocess.SubprocessError):
            self.skipTest("this process can have no filter of system calls")
        self.assertFalse(probe["io_uring"]["allowed"])
        self.assertIn("EPERM", probe["io_uring"]["reason"])
        self.check_runs(preexec_fn=forbid_io_uring)
        outcome = self.reproject("asked", "--tune", "off", preexec_fn=forbid_io_uring,
                                 env=dict(os.environ, GPUSTAGE_IO="uring"))
        self.check(outcome, 0, "GPUSTAGE_IO=uring: ", "EPERM") # a wish: the report says what it came to
        self.check_same("asked")
        self.assertIn("mode=engine", self.stats()["tuner"]["settings"])
        read = self.stats()["path"]["read"]
        self.assertTrue(read["taken"].startswith("pread"), read)
        self.assertIn("EPERM", read["why_not"]["io_uring"])

    # ---- disks

    def test_read_only(self):
        os.mkdir(self.path("disk"))
        command = self.mounted("mount -t tmpfs -o size=8m none '%s' && cp -r '%s' '%s/in' && mount -o remount,ro '%s'" %
                               (self.path("disk"), self.folder, self.path("disk"), self.path("disk")))
        inside = [self.path("disk", "in"), *VIEWS]
        self.check(gpustage("reproject", *inside, "-o", self.path("out"), command=command), 0)
        self.check_same("out") # inputs may lie there
        self.check(gpustage("reproject", *inside, "-o", self.path("disk", "in"), command=command), 2,
                   "-o=", "Read-only file system")
        self.check(gpustage("reproject", *inside, "-o", self.path("disk", "new"), command=command), 2,
                   "-o=", "Read-only file system")
        for flag in ("--stats", "--tune"):
            outcome = gpustage("reproject", *inside, "-o", self.path("never"), flag, self.path("disk", "file"),
                               command=command)
            self.check(outcome, 2, flag + "=", "Read-only file system")
            self.assertFalse(os.path.exists(self.path("never")), "found before any work")
        outcome = gpustage("preprocess", self.path("disk", "in"), "-o", self.path("disk", "t.npy"), "--size", "8x8",
                           command=command)
        self.check(outcome, 2, "Read-only file system")

    def test_full_disk_and_resume(self):
        """Each item that did not fit is told; when there is room again the rest is done, and is the same."""
        os.mkdir(self.path("disk"))
        try:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", self.path("disk")], check=True,
                           stderr=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("a small tmpfs cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("disk")], check=False)
        with open(self.path("disk", "ballast"), "wb") as stream:
            stream.write(bytes(60 << 10))
        outcome = self.check(self.reproject("disk/out"), 1, "No space left")
        stats = self.stats()
        self.assertEqual({(e["stage"], e["result"]) for e in stats["errors"]}, {("write", "GPST_ERROR_NO_SPACE")},
                         outcome)
        self.assertGreater(stats["items"]["ok"], 0)
        self.check_no_leftovers(self.path("disk"))
        for name, data in read_files(self.path("disk", "out")).items():
            self.assertEqual(data, self.wanted[name])
        os.remove(self.path("disk", "ballast"))
        subprocess.run(["mount", "-o", "remount,size=4m", self.path("disk")], check=True)
        self.check(self.reproject("disk/out", "--resume"), 0)
        self.check_same("disk/out")

    def test_files_may_not_be_large(self):
        """A limit on the size of files ends items, not the process."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        for engine in ([], ["--plain"]):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            outcome = gpustage("reproject", self.folder, "-o", self.path("out"), *VIEWS, *engine, preexec_fn=limit)
            self.check(outcome, 1, "write: ", "File too large")
            self.assertEqual(len(outcome.err.splitlines()), N_FRAMES)
            self.assertEqual(self.outputs(), [])

    def test_devices_that_take_nothing(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for flag in ("--stats", "--tune"):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            outcome = gpustage("reproject", self.folder, "-o", self.path("out"), *VIEWS, flag, "/dev/full")
            self.check(outcome, 1 if flag == "--stats" else 2, flag + "=/dev/full: ")
        with open("/dev/full", "wb") as full:
            child = subprocess.Popen([COMMAND, "reproject", self.folder, "-o", self.path("out"), *VIEWS], stdout=full,
                                     stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            said = child.communicate(timeout=60)[1]
        self.assertEqual((said, child.returncode), (b"gpustage: standard output cannot be written\n", 1))
        self.check_same("out")

    # ---- killed

    def kill_when(self, arguments, written):
        """Kills a run when that many outputs are there."""
        child = start(*arguments)
        deadline = time.monotonic() + 30
        while child.poll() is None and time.monotonic() < deadline:
            if os.path.isdir(self.path("out")) and len(self.named()) >= written:
                break
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        self.assertEqual(finish(child).code, -signal.SIGKILL)

    def named(self):
        return [n for n in self.outputs() if not n.startswith(".")]

    def test_killed_and_resumed(self):
        frames = sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder))
        pipes = [self.path("never%d.ppm" % i) for i in range(4)]
        for pipe in pipes:
            os.mkfifo(pipe)
        for engine in (["--slots", "3"], ["--plain"]):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            flags = ["-o", self.path("out"), "--resume", "--stats", self.path("stats.json"), *VIEWS, *engine]
            arguments = ["reproject", self.folder, *flags]
            for written in (1, 6, 16, 30): # no run gets further than what is never fed
                n = written // 2 + 2
                self.kill_when(["reproject", *frames[:n], *pipes, *frames[n:], *flags], written)
            found = read_files(self.path("out"))
            for name in self.named():
                self.assertTrue(found[name] == self.wanted[name], "whole or absent: " + name)
            before = {n: os.stat(self.path("out", n)).st_mtime_ns for n in self.named()}
            self.check(gpustage(*arguments), 0)
            self.check_same("out")
            items = self.stats()["items"]
            kept = sum(os.stat(self.path("out", n)).st_mtime_ns == before[n] for n in before)
            self.assertGreaterEqual(kept, 2 * items["skipped"])
            self.assertGreater(items["skipped"], 0, "what was whole is not done again")
            self.check_no_leftovers(self.path("out"))

    def test_killed_stack_is_absent(self):
        pipes = self.fifos([12])
        child = start("preprocess", *self.files(), "-o", self.path("t.npy"), "--size", "8x8")
        pipe = self.wait_for_reader(child, pipes[0])
        child.send_signal(signal.SIGKILL)
        os.close(pipe)
        self.assertEqual(finish(child).code, -signal.SIGKILL)
        self.assertFalse(os.path.exists(self.path("t.npy")))


if __name__ == "__main__":
    main()
