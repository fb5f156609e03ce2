"""tests/cli_kit.py -- what the tests of the command share: pictures made and read, runs, a directory for each test.

Needs only the standard library. Pictures are PPM made here; JPEG and PNG are made by the command where it can.
"""
import ast
import errno
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = os.path.join(os.environ.get("GPST_BUILD", os.path.join(ROOT, "build")), "gpustage")
STAGES = ["read", "decode", "upload", "kernel", "download", "encode", "write"] # of files to files, in their order
RESOURCES = ["disk_in", "cpu", "h2d", "gpu", "d2h", "disk_out", "jpeg"]
RED, GREEN, BLUE, YELLOW = (200, 0, 0), (0, 200, 0), (0, 0, 200), (200, 200, 0)
WHITE, GRAY = (255, 255, 255), (90, 90, 90)
MANIFEST = ".gpustage-manifest"


# ---- pictures ------------------------------------------------------------------------------------

def write_ppm(path, width, height, rows):
    """rows: height byte strings of width RGB pixels."""
    with open(path, "wb") as stream:
        stream.write(b"P6\n%d %d\n255\n" % (width, height) + b"".join(rows))


def write_pgm(path, width, height, rows):
    with open(path, "wb") as stream:
        stream.write(b"P5\n%d %d\n255\n" % (width, height) + b"".join(rows))


def write_npy(path, descr, width, height, values):
    """values: width * height RGB pixels, flat."""
    code = {"|u1": "B", "<u2": "H", ">u2": ">H", "<f2": "e", "<f4": "f"}[descr]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d, 3), }" % (descr, height, width)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as stream:
        stream.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii"))
        stream.write(struct.pack("%s%d%s" % (">" if code[0] == ">" else "<", len(values), code[-1]), *values))


def write_png16(path, width, height, values):
    """values: width * height RGB pixels of 0..65535, flat."""
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    rows = b"".join(b"\0" + struct.pack(">%dH" % (3 * width), *values[3 * width * y:3 * width * (y + 1)])
                    for y in range(height))
    with open(path, "wb") as stream:
        stream.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def directions(width=256, height=128):
    """A panorama whose colour says where one looks: front red, right green, back blue, left yellow, up white, down
    gray."""
    side = width // 8
    around = bytes(BLUE) * side + bytes(YELLOW) * (2 * side) + bytes(RED) * (2 * side) + bytes(GREEN) * (2 * side) + \
        bytes(BLUE) * side
    quarter = height // 4
    return [bytes(WHITE) * width] * quarter + [around] * (2 * quarter) + [bytes(GRAY) * width] * quarter


def write_directions(path, width=256, height=128):
    write_ppm(path, width, height, directions(width, height))


def read_pnm(path):
    """(width, height, channels, bytes)"""
    with open(path, "rb") as stream:
        data = stream.read()
    magic, width, height, largest = data.split(None, 4)[:4]
    assert largest == b"255"
    channels = {b"P6": 3, b"P5": 1}[magic]
    return int(width), int(height), channels, data[len(data) - int(width) * int(height) * channels:]


def pixel(picture, x, y):
    width, _, channels, data = picture
    at = (y * width + x) * channels
    return tuple(data[at:at + channels])


def read_gray_png(path):
    """(width, height, 1, bytes) of an 8-bit gray PNG."""
    with open(path, "rb") as stream:
        data = stream.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, width, height = 8, b"", 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 0), (depth, colour)
        if kind == b"IDAT":
            packed += body
        at += size + 12
    raw, out, before = zlib.decompress(packed), bytearray(), bytearray(width)
    for y in range(height):
        kind, row = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            left, up, corner = (row[x - 1] if x else 0), before[x], (before[x - 1] if x else 0)
            estimate = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(estimate - v))
            row[x] = (row[x] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
        out += row
        before = row
    return width, height, 1, bytes(out)


def read_npy(path):
    """(dtype, shape, flat list of values)"""
    with open(path, "rb") as stream:
        data = stream.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    size = struct.unpack("<H", data[8:10])[0]
    assert (10 + size) % 64 == 0
    header = ast.literal_eval(data[10:10 + size].decode("ascii").strip())
    assert header["fortran_order"] is False
    code = {"|u1": "B", "<u2": "H", "<f2": "e", "<f4": "f"}[header["descr"]]
    count = 1
    for n in header["shape"]:
        count *= n
    return header["descr"], header["shape"], list(struct.unpack("<%d%s" % (count, code), data[10 + size:]))


def read_files(folder):
    """Name -> contents, without the manifest."""
    contents = {}
    for name in os.listdir(folder):
        if name != MANIFEST:
            with open(os.path.join(folder, name), "rb") as stream:
                contents[name] = stream.read()
    return contents


# ---- running ---------------------------------------------------------------------------------------

class Outcome:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return "exit %s\n--- stdout\n%s--- stderr\n%s" % (self.code, self.out, self.err)


def default_signals():
    """What whoever runs the tests ignores, as in the background of a shell, the command would leave ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments, **keywords):
    keywords.setdefault("stdin", subprocess.DEVNULL)
    keywords.setdefault("preexec_fn", default_signals)
    return subprocess.Popen([keywords.pop("command", COMMAND)] + [str(a) for a in arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **keywords)


def threads_may_be_left():
    """The environment of a command that a second signal ends at once, wherever its threads are."""
    return dict(os.environ, TSAN_OPTIONS=os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0")


def finish(child, data=None):
    out, err = child.communicate(data, timeout=90)
    return Outcome(child.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def gpustage(*arguments, data=None, **keywords):
    if data is not None:
        keywords["stdin"] = subprocess.PIPE
    return finish(start(*arguments, **keywords), data)


def has_format(name):
    return json.loads(gpustage("probe", "--json").out)["formats"][name]


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gpustage-cli-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def panoramas(self, count, folder="in"):
        """A directory of that many small panoramas, pano00.ppm ..."""
        os.mkdir(self.path(folder))
        for i in range(count):
            write_directions(self.path(folder, "pano%02d.ppm" % i), 64, 32)
        return self.path(folder)

    def fifos(self, numbers, folder="in"):
        """Those panoramas become FIFOs: a run gets no further than there until they are fed."""
        paths = [self.path(folder, "pano%02d.ppm" % i) for i in numbers]
        for path in paths:
            if os.path.exists(path):
                os.remove(path)
            os.mkfifo(path)
        return paths

    def files(self, folder="in"):
        """What lies in it, by name: of a folder a run leaves out FIFOs."""
        return [self.path(folder, name) for name in sorted(os.listdir(self.path(folder)))]

    def open_fifo(self, path):
        """For writing, or None while nobody reads it."""
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None

    def feed(self, child, paths):
        """A panorama to each that the run reads, until it is over. How many had one."""
        write_directions(self.path("fed.ppm"), 64, 32)
        with open(self.path("fed.ppm"), "rb") as stream:
            panorama = stream.read()
        waiting, deadline = list(paths), time.monotonic() + 60
        while child.poll() is None and time.monotonic() < deadline:
            for path in list(waiting):
                pipe = self.open_fifo(path)
                if pipe is not None:
                    waiting.remove(path)
                    os.write(pipe, panorama)
                    os.close(pipe)
            time.sleep(0.005)
        return len(paths) - len(waiting)

    def wait_for_reader(self, child, path):
        """Until the run is at that FIFO. The caller closes what is returned, which ends the picture."""
        deadline, pipe = time.monotonic() + 30, None
        while pipe is None:
            self.assertLess(time.monotonic(), deadline, "nobody reads it")
            self.assertIsNone(child.poll(), "the run is over already")
            time.sleep(0.005)
            pipe = self.open_fifo(path)
        return pipe

    def interrupt(self, child, number=signal.SIGINT):
        """Until the run has answered."""
        child.send_signal(number)
        said = b""
        while b"finishing what is in flight" not in said:
            more = os.read(child.stderr.fileno(), 4096)
            self.assertTrue(more, said)
            said += more

    def outputs(self, folder="out"):
        return sorted(n for n in os.listdir(self.path(folder)) if n != MANIFEST)

    def check(self, outcome, code, *says):
        """The exit status, and sentences on stderr."""
        self.assertEqual(outcome.code, code, outcome)
        for text in says:
            self.assertIn(text, outcome.err, outcome)
        return outcome

    def check_no_leftovers(self, folder):
        for where, _, names in os.walk(folder):
            for name in names:
                self.assertFalse(name.endswith((".tmp", ".part", ".lock")), os.path.join(where, name))

    def stats(self, name="stats.json"):
        with open(self.path(name), encoding="utf-8") as stream:
            return json.load(stream, parse_constant=lambda text: self.fail("not JSON: " + text))


def main():
    if not os.access(COMMAND, os.X_OK):
        print("the command is not built: no %s" % COMMAND)
        sys.exit(77)
    cases.main()
