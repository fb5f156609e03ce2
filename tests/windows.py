#!/usr/bin/env python3
"""tests/windows.py -- the command as mingw builds it, under wine: it makes what the one of this system makes, under the
same names, whatever letters they have. `make windows-test` builds both and runs this; wine's own files go to a folder
that is removed afterwards."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True # the tree stays as it was
from cli_kit import COMMAND, Case, finish, gpustage, main, start, write_directions  # noqa: E402

FOLDER = "日本 é" # no code page has all of them
VIEWS = ["--views", "2", "--size", "48x32", "--format", "ppm"]
WINDOWS = os.path.join(os.path.dirname(COMMAND), "windows", "gpustage.exe")
WINE = next((path for path in map(shutil.which, ("wine64", "/usr/lib/wine/wine64", "wine")) if path), None)


class Windows(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path(FOLDER))
        for i, name in enumerate(("a", "ü", "𝄞 日")):
            write_directions(self.path(FOLDER, name + ".ppm"), 64 + 8 * i, 32)

    def windows(self, *arguments, **keywords):
        return start(WINDOWS, *arguments, command=WINE, cwd=self.dir, **keywords)

    def run_both(self, *arguments, code=0):
        """What the other system's says, without the carriage returns."""
        for out, run in (("here", gpustage), ("there", lambda *a, **k: finish(self.windows(*a)))):
            found = run(*(str(a).replace("OUT", out) for a in arguments), cwd=self.dir)
            self.check(found, code)
        found.out, found.err = found.out.replace("\r\n", "\n"), found.err.replace("\r\n", "\n")
        return found

    def check_same(self, *folders):
        """The pictures and arrays that both made, of which there are some in each of these."""
        for below in folders or ("",):
            here, there = (self.pictures(out, below) for out in ("here", "there"))
            self.assertTrue(here)
            self.assertEqual(sorted(there), sorted(here))
            self.assertEqual([name for name in here if here[name] != there[name]], [])

    def pictures(self, *folder):
        found = {}
        for name in os.listdir(self.path(*folder)):
            if name.endswith((".ppm", ".npy")):
                with open(self.path(*folder, name), "rb") as stream:
                    found[name] = stream.read()
        return found

    def test_reproject_and_resume(self):
        self.run_both("reproject", FOLDER, "-o", "OUT", *VIEWS)
        self.check_same()
        self.assertIn("3 skipped", self.run_both("reproject", FOLDER, "-o", "OUT", "--resume", *VIEWS).out)
        os.remove(self.path("there", "ü_v01.ppm"))
        write_directions(self.path(FOLDER, "a.ppm"), 128, 64)
        found = self.check(finish(self.windows("reproject", FOLDER, "-o", "there", "--resume", *VIEWS)), 0)
        self.assertIn("2 of 3 done, 1 skipped", found.out)
        self.run_both("reproject", FOLDER, "-o", "OUT", *VIEWS) # over what is there
        self.check_same()
        self.check_no_leftovers(self.dir)

    def test_trees(self):
        os.mkdir(self.path(FOLDER, "下"))
        write_directions(self.path(FOLDER, "下", "b.ppm"), 64, 32)
        flags = ["--recursive", "--layout", "nerfstudio"] + VIEWS
        self.run_both("reproject", FOLDER, "-o", "OUT", "--metadata", "none", *flags)
        self.check_same("images", "images/下")

    def test_preprocess(self):
        for out in ("here", "there"):
            os.mkdir(self.path(out))
        self.run_both("preprocess", FOLDER, "-o", "OUT/数 ñ.npy", "--size", "16x16")
        self.check_same()

    def test_names_are_said_as_they_are(self):
        with open(self.path(FOLDER, "名.txt"), "w", encoding="utf-8") as stream:
            stream.write("%s/a.ppm\r\n%s/nö 無.ppm\r\n" % (FOLDER, FOLDER))
        found = self.run_both("reproject", "@" + FOLDER + "/名.txt", "-o", "OUT", "--stats", FOLDER + "/OUT.json", *VIEWS,
                              code=1)
        self.assertIn("%s/nö 無.ppm: read: open \"%s/nö 無.ppm\": No such file" % (FOLDER, FOLDER), found.err)
        self.assertEqual([e["item"] for e in self.stats(FOLDER + "/there.json")["errors"]],
                         [e["item"] for e in self.stats(FOLDER + "/here.json")["errors"]])
        self.check_same()
        library = "Z:\\" + FOLDER + "\\none.dll"
        found = self.check(finish(self.windows("reproject", FOLDER, "-o", "there", "--size", "48x32", "--views", "2",
                                               env=dict(os.environ, GPUSTAGE_LIBTURBOJPEG=library))), 0)
        self.assertIn("GPUSTAGE_LIBTURBOJPEG must name the library's file: " + library, found.err)

    def test_an_input_is_not_written(self):
        write_directions(self.path(FOLDER, "a_v00.ppm"), 64, 32)
        found = self.run_both("reproject", FOLDER + "/a.ppm", FOLDER + "/a_v00.ppm", "-o", FOLDER, *VIEWS, code=2)
        self.assertIn("a_v00.ppm", found.err)

    def test_runs_beside_each_other_and_before(self):
        os.mkdir(self.path("there"))
        for name in (".gpustage-1-2.lock", ".gpustage-1-2-3.tmp"): # of a run that was killed
            open(self.path("there", name), "wb").close()
        runs = [self.windows("reproject", FOLDER + "/" + name, "-o", "there", *VIEWS) for name in ("a.ppm", "ü.ppm")]
        for run in runs:
            self.check(finish(run), 0)
        self.assertEqual(self.outputs("there"), ["a_v00.ppm", "a_v01.ppm", "ü_v00.ppm", "ü_v01.ppm"])
        self.check(finish(self.windows("reproject", FOLDER + "/a.ppm", "-o", "there", "--clean", *VIEWS, "--hfov", "80",
                                       "--views", "1")), 0)
        self.assertEqual(self.outputs("there"), ["a_v00.ppm"])


def under_wine():
    """A Windows of its own, as wine has it before anything is installed in it: made in no time, 50 KB, no services."""
    if not WINE:
        print("no wine: install wine64")
        sys.exit(77)
    if not os.path.exists(WINDOWS):
        print("no %s: no x86_64-w64-mingw32-gcc to make it: install gcc-mingw-w64-x86-64" % WINDOWS)
        sys.exit(77)
    # One start in a thousand finds its addresses taken, unless the system puts everything where it always does.
    ctypes.CDLL(None).personality(0x0040000)
    with tempfile.TemporaryDirectory(prefix="gpustage-wine-") as folder:
        with open(folder + "/.update-timestamp", "w", encoding="ascii") as stream:
            stream.write("disable\n")
        os.environ.update(WINEPREFIX=folder, WINEARCH="win64", WINEDEBUG="-all", WINEBOOTSTRAPMODE="1", LC_ALL="C.UTF-8")
        server = shutil.which("wineserver") or os.path.join(os.path.dirname(WINE), "wineserver")
        try: # a server that stays; what the first program starts with it would keep that one's pipes open
            for command in ([server, "-p"], [WINE, WINDOWS, "--version"]):
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            main()
        finally:
            subprocess.run([server, "-k"], check=False)
            subprocess.run([server, "-w"], check=False)


if __name__ == "__main__":
    under_wine()
