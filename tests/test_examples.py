#!/usr/bin/env python3
"""tests/test_examples.py -- runs every example and looks at what it prints and writes.

Environment: GPST_BUILD (the build folder: an example that is not under its examples/ is built here; without
libgpustage.so there is no Python example), CC, GPST_SANITIZE (compiler flags; no Python example either). The
first example is always built here, by the command in its own comment.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CC = shlex.split(os.environ.get("CC", "cc"))
SANITIZE = shlex.split(os.environ.get("GPST_SANITIZE", ""))
BUILD = os.environ.get("GPST_BUILD", os.path.join(ROOT, "build"))
LIBRARY = os.path.join(BUILD, "libgpustage.so")
failures = []


def expect(condition, what):
    print("%s  %s" % ("ok  " if condition else "FAIL", what), flush=True)
    if not condition:
        failures.append(what)


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, **more)
    text = done.stdout.decode("utf-8", "replace")
    print("".join("     | %s\n" % line for line in text.splitlines()), end="", flush=True)
    return done.returncode, text


def build(source, folder):
    """The program, by the command in the example's own comment, but not optimised: that takes a third of the time."""
    with open(source) as file:
        line = re.search(r"^ +(cc .*)$", file.read(), re.M)
    if not line:
        return None
    words = shlex.split(line.group(1))
    program = os.path.join(folder, words[words.index("-o") + 1])
    words[words.index("-o") + 1] = program
    checks = SANITIZE or ["-Wall", "-Wextra", "-Wpedantic", "-Werror"] # sanitizers bring warnings of their own
    returncode, _ = run(CC + words[1:] + checks + ["-O0"], cwd=ROOT)
    return program if returncode == 0 else None


def write_ppm(path, width, height):
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            pixels += bytes((x * 255 // width, y * 255 // height, (8 * x ^ 8 * y) & 255))
    with open(path, "wb") as file:
        file.write(b"P6\n%d %d\n255\n" % (width, height) + pixels)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_reproject(program, folder):
    frames = [os.path.join(folder, "frame %d.ppm" % i) for i in range(3)]
    for i, frame in enumerate(frames):
        write_ppm(frame, 256 + 2 * i, 128)
    views = os.path.join(folder, "views")
    os.mkdir(views)
    returncode, text = run([program, views, "4"] + frames)
    expect(returncode == 0 and "3 of 3 files, 4 views each" in text, "01_reproject: all done")
    names = sorted(os.listdir(views))
    wanted = ["frame %d_v%02d.ppm" % (i, v) for i in range(3) for v in range(4)]
    expect(names == wanted, "01_reproject: files")
    contents = [read(os.path.join(views, name)) for name in names]
    header = b"P6\n640 480\n255\n"
    expect(all(data.startswith(header) and len(data) == len(header) + 640 * 480 * 3 for data in contents),
           "01_reproject: every view is whole")
    expect(len(set(contents)) == len(contents), "01_reproject: every view is another one")
    check_bad_files(program, folder, views, frames)
    expect(sorted(os.listdir(views)) == names, "01_reproject: nothing is left of bad files")
    return frames[0], os.path.join(views, "frame 0_v01.ppm")


def check_folder(program, folder):
    frames = os.path.join(folder, "frames")
    os.mkdir(frames)
    write_ppm(os.path.join(frames, "a.ppm"), 256, 128)
    returncode, text = run([program, "frames"], cwd=folder)
    expect(returncode == 0 and "-bound" in text, "00_folder: all done, with a verdict")
    views = os.path.join(folder, "views")
    names = sorted(os.listdir(views))
    expect(names == ["a_v%02d.jpg" % v for v in range(8)], "00_folder: files")
    expect(len({read(os.path.join(views, name)) for name in names}) == 8, "00_folder: every view is another one")
    for name in names:
        os.remove(os.path.join(views, name))
    os.rmdir(views)
    returncode, text = run([program, "frames", "absent.ppm"], cwd=folder)
    expect(returncode == 1 and text.startswith("absent.ppm: read: "), "00_folder: what failed is named")
    for name in os.listdir(views):
        os.remove(os.path.join(views, name))
    os.rmdir(views)


def check_jpeg(program, folder):
    """Of a PPM a JPEG, and of that another one; a file without its end, and one that is cut."""
    out = os.path.join(folder, "jpegs")
    os.mkdir(out)
    write_ppm(os.path.join(folder, "one.ppm"), 256, 128)
    returncode, text = run([program, out, os.path.join(folder, "one.ppm")])
    expect(returncode == 0 and "decoded by PNM, encoded by libjpeg-turbo\n" in text, "09_jpeg: of a PPM")
    jpeg = read(os.path.join(out, "one.jpg"))
    expect(jpeg[:2] == b"\xff\xd8" and b"\x01\x40\x03" in jpeg, "09_jpeg: a file 320 pixels wide")
    files = [os.path.join(folder, name) for name in ("whole.jpg", "no end.jpg", "cut.jpg")]
    for path, data in zip(files, (jpeg, jpeg[:-2], jpeg[:len(jpeg) // 2])):
        with open(path, "wb") as file:
            file.write(data)
    returncode, text = run([program, out] + files)
    expect(returncode == 1 and "no end.jpg: decoded by libjpeg-turbo, encoded by libjpeg-turbo; mended: missing end" in text
           and "cut.jpg: decode: JPEG: " in text, "09_jpeg: what is mended and what fails is said")
    expect(sorted(os.listdir(out)) == ["no end.jpg", "one.jpg", "whole.jpg"], "09_jpeg: files")


def check_bad_files(program, folder, views, frames):
    broken = os.path.join(folder, "broken.ppm")
    with open(broken, "wb") as file:
        file.write(read(frames[0])[:5000])
    returncode, text = run([program, views, "4", broken, os.path.join(folder, "absent.ppm"), frames[1]])
    expect(returncode == 1 and "1 of 3 files" in text and "end too early" in text and "absent.ppm" in text,
           "01_reproject: bad files are told apart, the good one is done")


def check_python(frame, view):
    script = os.path.join(ROOT, "examples", "python", "reproject.py")
    output = frame + ".view.ppm"
    environment = dict(os.environ, GPUSTAGE_LIBRARY=LIBRARY)
    returncode, text = run([sys.executable, script, frame, output, "90"], env=environment)
    expect(returncode == 0 and "cores allowed" in text and read(output) == read(view),
           "python/reproject.py: the same bytes as 01_reproject")
    with open(script) as file:
        wrong = file.read().replace('("end_canary", c.c_uint32)', '("end_canary", c.c_uint32 * 8)')
    changed = frame + ".py"
    with open(changed, "w") as file:
        file.write(wrong)
    returncode, text = run([sys.executable, changed, frame, output, "90"], env=environment)
    expect(returncode != 0 and "gpst_warp_create: version=" in text,
           "python/reproject.py: a struct of a wrong size is refused")


# gpustage.h as an example sees it whose every third frame is refused; the library is linked.
REFUSING = """#undef GPUSTAGE_IMPLEMENTATION
#include "%s"
static gpst_result refuse_some(gpst_pipeline* pipeline, const gpst_input* input, int64_t timeout_ns, uint64_t* index) {
    static int n;
    return ++n %% 3 ? gpst_pipeline_submit(pipeline, input, timeout_ns, index) : GPST_ERROR_BUDGET;
}
#define gpst_pipeline_submit refuse_some
"""


def check_refused_frames(folder):
    """Sixteen buffers, every third of ninety frames refused: if those lost theirs, no more than 32 would be taken."""
    if SANITIZE or not os.path.exists(LIBRARY):
        print("     no example with refused frames: %s" % ("sanitizer" if SANITIZE else "no " + LIBRARY))
        return
    with open(os.path.join(folder, "gpustage.h"), "w") as file:
        file.write(REFUSING % os.path.join(ROOT, "gpustage.h"))
    program = os.path.join(folder, "refused")
    source = os.path.join(ROOT, "examples", "08_live.c")
    built, _ = run(CC + ["-std=c11", "-DGPUSTAGE_SHARED", "-I", folder, source, LIBRARY, "-o", program,
                         "-Wl,-rpath," + BUILD, "-pthread", "-lm"])
    returncode, text = run([program, "cpu", "1.5"]) if built == 0 else (1, "")
    counts = re.search(r"^90 frames: (\d+) shown, (\d+) dropped, (\d+) missed by the camera$", text, re.M)
    expect(returncode == 0 and counts and int(counts.group(1)) + int(counts.group(2)) > 32,
           "08_live: refused frames are given back")


EXPECTED = {
    "02_ring": r"^2000 frames taken in order, 0 wrong, depth 12,",
    "03_pool": r"^a fifth one: GPST_ERROR_WOULD_BLOCK\n400 buffers lent, 4 allocated;",
    "04_custom_stage": r"^200 frames, 0 out of order, 79800 pixels changed, 79800 expected$",
    "05_push": r"^300 tensors in order, 0 wrong$",
    "07_two_warps": r"8 frames, sum 1079\.682$",
    "08_live": r"^age of a result: p50 [0-9.]+ ms, .*\n120 frames: \d+ shown, \d+ dropped, \d+ missed by the camera\n.+"
               r"\nmode=engine ",
    "10_streams_and_graphs": r"^20 frames, 4 views each, 0 values wrong, on (cpu|cuda|hip): .+ \(auto: .+\)\n"
                             r"\d+ of 20 runs by a graph, the others piece by piece \(.+\)$",
    "11_device_ring": r"^60 frames for each of 2 readers, 0 wrong, on (cpu|cuda|hip)$",
}


def program_of(name, folder):
    built = os.path.join(BUILD, "examples", name)
    if name != "01_reproject" and os.path.exists(built):
        return built
    return build(os.path.join(ROOT, "examples", name + ".c"), folder)


def main():
    sources = glob.glob(os.path.join(ROOT, "examples", "*.c"))
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.path.splitext(os.path.basename(source))[0] for source in sources):
            program = program_of(name, folder)
            expect(program is not None, "%s: builds" % name)
            if program is None:
                continue
            if name == "09_jpeg":
                check_jpeg(program, folder)
                continue
            if name == "00_folder":
                check_folder(program, folder)
                continue
            if name == "01_reproject":
                frame, view = check_reproject(program, folder)
                if SANITIZE or not os.path.exists(LIBRARY):
                    print("     no Python example: %s" % ("sanitizer" if SANITIZE else "no " + LIBRARY))
                else:
                    check_python(frame, view)
                continue
            if name == "08_live":
                check_refused_frames(folder)
            returncode, text = run([program])
            expected = EXPECTED.get(name)
            expect(returncode == 0 and expected and re.search(expected, text, re.M), "%s: runs" % name)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
