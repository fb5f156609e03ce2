#!/usr/bin/env python3
"""tests/test_cli_bombs.py -- small files that ask for gigabytes, through the command: refused alone, in a sentence,
with no memory taken; what is large and within the limits is done."""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True # the tree stays as it was
import make_pictures as make  # noqa: E402
from cli_kit import Case, COMMAND, Outcome, gpustage, has_format, main, write_directions  # noqa: E402
from picture_codecs import riff_chunk  # noqa: E402
from picture_tags import LONG, gpano, ifd, tiff_head  # noqa: E402

MOST_KB = 300 * 1000 # of a run that refuses everything that is large
SMALL = ("--views", "1", "--size", "32x32", "--format", "ppm")
SANITIZED = "sanitizer: none" not in gpustage("--version").out # their memory is not the command's
FULL, HALF = (0x11, 0x11, 0x11), (0x22, 0x11, 0x11) # colours of full and of half the resolution


# ---- files -------------------------------------------------------------------------------------------------

def segment(marker, body):
    return struct.pack(">BBH", 0xff, marker, len(body) + 2) + body


def scan(components, first, last):
    return segment(0xda, bytes([len(components)]) + b"".join(bytes([c, 0]) for c in components) +
                   bytes([first, last, 0]))


def jpeg(marker, width, height, sampling=FULL, interleaved=True, n_scans=1, data=0):
    """A picture of one colour. Arithmetic coding needs no byte for it, Huffman coding a bit or two for a block."""
    progressive, arithmetic = marker in (0xc2, 0xca), marker > 0xc8
    frame = struct.pack(">BHHB", 8, height, width, len(sampling))
    frame += b"".join(bytes([c + 1, s, 0]) for c, s in enumerate(sampling))
    shortest = bytes([1]) + bytes(16) # one code, of one bit
    out = b"\xff\xd8" + segment(0xdb, b"\0" + b"\1" * 64) + segment(marker, frame)
    if arithmetic:
        out += segment(0xcc, bytes([0x00, 0x10, 0x10, 0x05]))
    else:
        out += segment(0xc4, b"\x00" + shortest) + segment(0xc4, b"\x10" + shortest)
    components = list(range(1, len(sampling) + 1))
    for part in ([components] if interleaved else [[c] for c in components]):
        out += scan(part, 0, 0 if progressive else 63) + bytes(data)
    return out + scan([1], 1, 63) * (n_scans - 1) + b"\xff\xd9"


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def zeros(n_bytes):
    """So many, packed, without ever having them."""
    packer, out = zlib.compressobj(9), b""
    while n_bytes > 0:
        out += packer.compress(bytes(min(n_bytes, 65536)))
        n_bytes -= 65536
    return out + packer.flush()


def png(width, height, bits=1, colour=0, interlaced=False, extra=b""):
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[colour]
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    n_bytes = 0
    for x, y, step_x, step_y in passes:
        across, down = (width - x + step_x - 1) // step_x, (height - y + step_y - 1) // step_y
        n_bytes += down * (1 + (across * channels * bits + 7) // 8) if across > 0 else 0
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, int(interlaced))
    palette = chunk(b"PLTE", bytes(6)) if colour == 3 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + extra + chunk(b"IDAT", zeros(n_bytes)) +
            chunk(b"IEND", b""))


def tiff(width, height, rows_per_strip, **more):
    """Gray of 8 bits, deflate: strips of zeros, all of them at one place."""
    strip, n = zeros(width * rows_per_strip), -(-height // rows_per_strip)
    entries = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 273: (LONG, [8] * n), 277: 1, 278: rows_per_strip,
               279: (LONG, [len(strip)] * n)}
    entries.update({int(tag[1:]): value for tag, value in more.items()})
    first = 8 + len(strip) + len(strip) % 2
    return tiff_head("II", first) + strip + b"\0" * (len(strip) % 2) + ifd(entries, "II", first)


def webp(width, height):
    """Of one colour, without loss: each of the five codes has one symbol, of no bits."""
    bits = width - 1 | height - 1 << 14 # no alpha, version 0, no transform, no cache, one group
    at = 14 + 14 + 1 + 3 + 1 + 1 + 1
    for _ in range(5):
        bits |= 1 << at # a simple code of one symbol of one bit, 0
        at += 4
    return riff_chunk(b"RIFF", b"WEBP" + riff_chunk(b"VP8L", b"\x2f" + bits.to_bytes(at // 8 + 1, "little")))


# ---- runs --------------------------------------------------------------------------------------------------

def measured(*arguments, stdin=subprocess.DEVNULL):
    """(outcome, most memory of the process in KB)"""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([COMMAND] + [str(a) for a in arguments], stdin=stdin, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status >> 8
        out.seek(0)
        err.seek(0)
        told = Outcome(child.returncode, out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace"))
    return told, usage.ru_maxrss


class Bombs(Case):
    def write(self, name, data):
        with open(self.path(name), "wb") as stream:
            stream.write(data)
        return self.path(name)

    def check_memory(self, peak_kb, most_kb):
        if not SANITIZED:
            self.assertLess(peak_kb, most_kb)

    def refuse(self, bombs, *options):
        """Every one fails, at its stage and with its words; good files before and behind them are done."""
        write_directions(self.path("good1.ppm"))
        write_directions(self.path("good2.ppm"))
        out = self.path("out%d" % len(os.listdir(self.dir)))
        outcome, peak_kb = measured("reproject", self.path("good1.ppm"), *[self.path(name) for name in bombs],
                                    self.path("good2.ppm"), "-o", out, *SMALL, *options)
        self.check(outcome, 1)
        for name, (stage, words) in bombs.items():
            lines = [line for line in outcome.err.splitlines() if self.path(name) + ": " in line]
            self.assertEqual(len(lines), 1, outcome)
            self.assertIn("%s: %s: " % (self.path(name), stage), lines[0])
            self.assertIn(words, lines[0])
        done = sorted(name for name in os.listdir(out) if name.endswith(".ppm"))
        self.assertEqual(done, ["good1_v00.ppm", "good2_v00.ppm"])
        self.check_memory(peak_kb, MOST_KB)

    def test_jpeg(self):
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        vast = (32767, 32767)
        files = {
            "arithmetic.jpg": (jpeg(0xc9, *vast), "--max-pixels"),
            "arithmetic_scans.jpg": (jpeg(0xc9, *vast, interleaved=False), "--max-pixels"),
            "arithmetic_progressive.jpg": (jpeg(0xca, *vast), "--max-pixels"),
            "baseline.jpg": (jpeg(0xc0, *vast, data=140000), "cannot hold 32767x32767 pixels"),
            "baseline_gray.jpg": (jpeg(0xc0, *vast, sampling=(0x11,), data=140000), "cannot hold 32767x32767 pixels"),
            "extended.jpg": (jpeg(0xc1, *vast, data=140000), "cannot hold 32767x32767 pixels"),
            "progressive.jpg": (jpeg(0xc2, *vast, data=140000), "cannot hold 32767x32767 pixels"),
            "progressive_half.jpg": (jpeg(0xc2, 16384, 16384, HALF, data=140000), "cannot hold 16384x16384 pixels"),
            "many_scans.jpg": (jpeg(0xca, 8192, 8192, n_scans=200), "200 scans over 8192x8192 pixels; at most 128"),
            "more_scans.jpg": (jpeg(0xca, 64, 64, n_scans=1000), "1000 scans; 500 at most"),
            "lossless.jpg": (jpeg(0xc3, 64, 64), "lossless"),
        }
        for name, (data, _) in files.items():
            self.assertLess(len(self.write(name, data)) and len(data), 450000)
        self.refuse({name: ("decode", words) for name, (_, words) in files.items()})

    def test_tiff_and_webp(self):
        if not has_format("tif") or not has_format("webp"):
            self.skipTest("no TIFF or no WebP")
        files = {
            "pixels.tif": (tiff(32767, 32767, 64), "--max-pixels"),
            "one_strip.tif": (tiff(16000, 16000, 16000), "--max-item-bytes"),
            "strips.tif": (tiff(20000, 20000, 64), "--max-item-bytes"),
            "tiles.tif": (tiff(64, 64, 64, t322=65536, t323=65536), "--max-item-bytes"),
            "sides.tif": (tiff(64, 64, 64, t256=100000), "100000x64 pixels"),
            "one_colour.webp": (webp(16383, 16383), "--max-item-bytes"),
        }
        for name, (data, _) in files.items():
            self.assertLess(len(self.write(name, data)) and len(data), 300000)
        self.refuse({name: ("decode", words) for name, (_, words) in files.items()}, "--max-item-bytes", "256M")

    def test_tiff_and_webp_within_the_limits(self):
        """The same kinds of files, smaller: they are right."""
        if not has_format("tif") or not has_format("webp"):
            self.skipTest("no TIFF or no WebP")
        sources = [self.write("strips.tif", tiff(4000, 2000, 64)), self.write("one.webp", webp(4000, 2000))]
        outcome, _ = measured("reproject", *sources, "-o", self.path("out"), *SMALL)
        self.check(outcome, 0)
        for name in ("strips_v00.ppm", "one_v00.ppm"):
            with open(self.path("out", name), "rb") as stream:
                self.assertEqual(stream.read()[-32 * 32 * 3:], bytes(32 * 32 * 3), name)

    def test_jpeg_within_the_pixels(self):
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        # 3 bytes a pixel; 6 more of coefficients, or 3 where the colours have half the resolution.
        self.write("rows.jpg", jpeg(0xc9, 16000, 8000))
        self.write("coefficients.jpg", jpeg(0xca, 16000, 8000))
        self.write("half.jpg", jpeg(0xca, 16000, 8000, HALF))
        self.write("each.jpg", jpeg(0xc9, 16000, 8000, interleaved=False))
        self.refuse({
            "rows.jpg": ("decode", "JPEG: 16000x8000 pixels take 38"),
            "coefficients.jpg": ("decode", "JPEG: 16000x8000 pixels take 115"),
            "half.jpg": ("decode", "JPEG: 16000x8000 pixels take 768"),
            "each.jpg": ("decode", "JPEG: 16000x8000 pixels take 115"),
        }, "--max-item-bytes", "100M")
        self.refuse({"rows.jpg": ("decode", "at most 127999999 here (--max-pixels)")}, "--max-pixels", "127999999")

    def test_png(self):
        if not has_format("png"):
            self.skipTest("no PNG")
        self.write("gray.png", png(32767, 32767))
        self.write("palette.png", png(32767, 32767, colour=3))
        self.write("interlaced.png", png(32767, 32767, interlaced=True))
        self.write("tall.png", png(800, 30000, bits=16, colour=6))
        self.refuse({
            "gray.png": ("decode", "32767x32767 are 1073676289 pixels; at most 536870912 here (--max-pixels)"),
            "palette.png": ("decode", "--max-pixels"),
            "interlaced.png": ("decode", "--max-pixels"),
        })
        self.refuse({
            "tall.png": ("decode", "800x30000 pixels take 193 MB to decode; at most 104 MB here (--max-item-bytes)"),
            "gray.png": ("decode", "PNG: 32767x32767 pixels take 1075 MB to decode; at most 104 MB here"),
        }, "--max-item-bytes", "100M", "--max-pixels", "2G")

    def test_png_metadata(self):
        """No picture fails by what lies beside its pixels, and none takes memory for it."""
        if not has_format("png"):
            self.skipTest("no PNG")
        bomb = b"x\0\0" + zeros(200 << 20)
        extras = {
            "plain": b"", "profile": chunk(b"iCCP", bomb), "text": chunk(b"zTXt", bomb),
            "text2": chunk(b"iTXt", b"x\0\1\0\0\0" + bomb[3:]),
            "texts": chunk(b"zTXt", b"x\0\0" + zeros(15 << 20)) * 50, "long": chunk(b"tEXt", b"x\0" + bytes(17 << 20)),
            "exif": chunk(b"eXIf", b""), "exifs": chunk(b"eXIf", b"II*\0\x08\0\0\0") * 2,
            "crc": chunk(b"tEXt", b"x\0y")[:-1] + b"?",
        }
        for name in (b"cHRM", b"gAMA", b"sBIT", b"sRGB", b"bKGD", b"hIST", b"pHYs", b"sPLT", b"tIME", b"oFFs", b"zzZz"):
            extras[name.decode("ascii")] = chunk(name, b"\xff" * 5)
        sources = [self.write(name + ".png", png(64, 32, bits=8, extra=extra)) for name, extra in extras.items()]
        outcome, peak_kb = measured("reproject", *sources, "-o", self.path("out"), *SMALL)
        self.check(outcome, 0)
        self.assertEqual(outcome.err, "")
        for name in extras:
            with open(self.path("out", name + "_v00.ppm"), "rb") as stream:
                self.assertEqual(stream.read()[-32 * 32 * 3:], bytes(32 * 32 * 3), name)
        self.check_memory(peak_kb, MOST_KB)

    def test_files_larger_than_memory_are_not_read(self):
        for name, header in (("vast.ppm", b"P6\n32767 32767\n255\n"), ("vast2.npy", b"\x93NUMPY\x01\x00")):
            self.write(name, header)
            try:
                os.truncate(self.path(name), 200 << 30)
            except OSError as problem:
                self.skipTest("no sparse files: %s" % problem)
        self.write("some.ppm", b"P6\n8192 8192\n255\n")
        os.truncate(self.path("some.ppm"), 8192 * 8192 * 3 + 17)
        self.refuse({"vast.ppm": ("source", "the file has 214.8 GB; at most"),
                     "vast2.npy": ("source", "--max-item-bytes")}, "--max-item-bytes", "4G")
        self.refuse({"some.ppm": ("source", "the file has 202 MB; at most 104 MB here (--max-item-bytes)")},
                    "--max-item-bytes", "100M")
        self.refuse({"some.ppm": ("decode", "PNM: 8192x8192 are 67108864 pixels; at most 67108863 here (--max-pixels)")},
                    "--max-pixels", "67108863")

    def test_what_never_ends(self):
        self.refuse({"/dev/zero": ("read", "allows no more")}, "--max-item-bytes", "64M")
        with open("/dev/zero", "rb") as endless:
            feeder = subprocess.Popen(["cat"], stdin=endless, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        outcome, peak_kb = measured("reproject", "/dev/stdin", "-o", self.path("piped"), "--max-item-bytes", "64M",
                                    *SMALL, stdin=feeder.stdout)
        feeder.stdout.close()
        feeder.wait()
        self.check(outcome, 1, "/dev/stdin: read: ", "allows no more")
        self.check_memory(peak_kb, MOST_KB)

    def test_masks(self):
        write_directions(self.path("good.ppm"))
        masks = {"/dev/zero": "is too large"}
        self.write("vast.ppm", b"P6\n32767 32767\n255\n")
        os.truncate(self.path("vast.ppm"), 200 << 30)
        masks["vast.ppm"] = "is too large (--max-item-bytes)"
        if has_format("jpg"):
            self.write("mask.jpg", jpeg(0xca, 16000, 8000))
            masks["mask.jpg"] = "at most 67 MB here (--max-item-bytes)"
        if has_format("png"):
            self.write("mask.png", png(32767, 32767))
            masks["mask.png"] = "--max-pixels"
        for name, words in masks.items():
            outcome, peak_kb = measured("reproject", self.path("good.ppm"), "-o", self.path("out"), "--mask",
                                        self.path(name), "--max-item-bytes", "64M", *SMALL)
            self.check(outcome, 2, "--mask=%s: " % self.path(name), words)
            self.check_memory(peak_kb, MOST_KB)

    def test_parts_of_a_vast_sphere(self):
        """What is made from a file is judged as the file: 8x4 pixels are no part of a sphere of 32000x16000."""
        part = make.draw(8, 4)
        kinds = {"jpg": make.jpeg, "png": make.png, "tif": make.tiff, "webp": make.webp}
        for kind, maker in list(kinds.items()):
            if has_format(kind):
                self.write(kind + "." + kind, maker(part, xmp_packet=gpano(8, 4, full=(32000, 16000))).data)
            else:
                del kinds[kind]
        self.refuse({kind + "." + kind: ("decode", "cannot hold a part of a sphere of 32000x16000") for kind in kinds},
                    "--max-item-bytes", "8G")

    def test_masks_of_frames(self):
        """They take of the frames' memory."""
        if not has_format("png"):
            self.skipTest("no PNG")
        os.mkdir(self.path("masks"))
        for name in ("good1.ppm", "good2.ppm"):
            write_directions(self.path("masks", name + ".png"))
        self.write("masks/a.ppm.png", png(32000, 16000, colour=3))
        self.write("masks/b.ppm.png", b"")
        with open(self.path("masks", "c.ppm.png"), "wb") as stream:
            stream.truncate(128 << 20) # so many zeros
        bombs = {"a.ppm": ("mask", "max_host_bytes"), "b.ppm": ("mask", "the file is empty"),
                 "c.ppm": ("mask", "max_host_bytes")}
        for name in bombs:
            write_directions(self.path(name))
        self.refuse(bombs, "--mask", self.path("masks"), "--max-host-bytes", "64M", "--max-item-bytes", "8G")
        outcome, peak_kb = measured("reproject", self.path("good1.ppm"), "-o", self.path("out"), *SMALL, "--mask",
                                    self.path("masks", "a.ppm.png"), "--max-host-bytes", "64M", "--max-item-bytes", "8G")
        self.check(outcome, 2, "a.ppm.png: takes 2049 MB; at most 67 MB here (--max-host-bytes)")
        self.check_memory(peak_kb, MOST_KB)

    def test_options_raise_the_limits(self):
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        path = self.write("some.jpg", jpeg(0xca, 3000, 2000))
        arguments = ("reproject", path, "-o", self.path("out"), *SMALL)
        for option, least in (("--max-pixels", 3000 * 2000), ("--max-item-bytes", 3000 * 2000 * 9)):
            outcome, _ = measured(*arguments, option, least - 1)
            self.check(outcome, 1, "(%s)" % option)
        outcome, peak_kb = measured(*arguments, "--max-pixels", 3000 * 2000, "--max-item-bytes", "56M")
        self.check(outcome, 0)
        # What was foretold is what it takes: 54 MB, and a few of the command's own.
        self.check_memory(peak_kb, 56 * 1024 + 30 * 1000)
        outcome, _ = measured("preprocess", path, "-o", self.path("rows"), "--size", "8x8", "--max-pixels", "1M")
        self.check(outcome, 1, "at most 1048576 here (--max-pixels)")
        for value in ("0", "-1", "1X", "", "1.5G", "99999999999G"):
            self.check(gpustage(*arguments, "--max-pixels", value), 2,
                       "--max-pixels=%s: must be a whole number" % value)

    def test_the_job_passes(self):
        """A panorama of 16384x8192 takes less than a quarter of 8 GB; a progressive one, too: test_codec_limits.c."""
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        path = self.write("some.jpg", jpeg(0xc9, 16384, 8192))
        outcome, _ = measured("reproject", path, "-o", self.path("out"), "--max-item-bytes", "2G", *SMALL)
        self.check(outcome, 0)

    def test_decoders_wait_for_each_other(self):
        """Four at once would hold 4 x 9 bytes a pixel; their coefficients, 6 of them, have room for one at a time."""
        if not has_format("jpg"):
            self.skipTest("no JPEG")
        for i in range(16):
            self.write("p%02d.jpg" % i, jpeg(0xca, 4000, 3000))
        outcome, peak_kb = measured("reproject", *[self.path("p%02d.jpg" % i) for i in range(16)], "-o",
                                    self.path("out"), "--max-item-bytes", "110M", "--workers", "4", "--slots", "4",
                                    "--tune", "off", *SMALL)
        self.check(outcome, 0)
        self.check_memory(peak_kb, 12000 * (6 + 4 * 3) + 140 * 1000)


if __name__ == "__main__":
    main()
