"""tests/make_pictures.py -- files of pictures whose pixels are known, made by the standard library alone.

    python3 tests/make_pictures.py FOLDER     a file of every kind, and NAME.npy: what a right decoder gives, upright

As a module: every maker (png, tiff, pnm, npy, jpeg, webp) gives a Made: the file's bytes, the pixels in stored order,
and those turned upright. A maker draws a small picture itself, or takes one. What files say beside their pixels is made
by picture_tags.py (exif, xmp, gpano, icc), JPEG and WebP by picture_codecs.py; all of it has its name here too.
"""
import collections
import os
import struct
import sys
import zlib

from picture_codecs import from_ycc, jpeg_file, jpeg_segment, riff_chunk, to_ycc, webp_file  # noqa: F401
from picture_tags import (ASCII, BYTE, LONG, ORIENTATION, RATIONAL, SHORT, SIGNED_RATIONAL, SUB_IFD_EXIF,  # noqa: F401
                          SUB_IFD_GPS, UNDEFINED, exif, exif_entries, gpano, gps_entries, icc, ifd, raw_profile, tiff_head, xmp)

CODES = {"?": "?", "u1": "B", "u2": "H", "f2": "e", "f4": "f", "f8": "d"}
FULL = {"?": 1, "u1": 255, "u2": 65535, "f2": 1.0, "f4": 1.0, "f8": 1.0}

Made = collections.namedtuple("Made", "data picture upright")  # the file; its pixels as they are stored; and turned


class Picture:
    """Pixels of 1 to 4 channels; kind: "?", "u1", "u2", "f2", "f4" or "f8"; values: flat, channels innermost."""

    def __init__(self, width, height, channels, kind, values):
        self.width, self.height, self.channels, self.kind, self.values = width, height, channels, kind, list(values)
        assert len(self.values) == width * height * channels, (width, height, channels, len(self.values))

    def pixel(self, x, y):
        at = (y * self.width + x) * self.channels
        return tuple(self.values[at:at + self.channels])

    def pixels(self):
        return [tuple(self.values[at:at + self.channels]) for at in range(0, len(self.values), self.channels)]

    def bytes(self, mark="<"):
        return struct.pack("%s%d%s" % (mark, len(self.values), CODES[self.kind]), *self.values)

    def of_pixels(self, pixels, width=None, height=None):
        """A picture of this kind of tuples."""
        return Picture(width or self.width, height or self.height, len(pixels[0]), self.kind,
                       [value for pixel in pixels for value in pixel])

    def turned(self, orientation):
        """Upright: what a viewer shows of these stored pixels with that EXIF orientation, 1 to 8."""
        width, height = (self.width, self.height) if orientation < 5 else (self.height, self.width)

        def stored(x, y):
            return {1: (x, y), 2: (width - 1 - x, y), 3: (width - 1 - x, height - 1 - y), 4: (x, height - 1 - y),
                    5: (y, x), 6: (y, width - 1 - x), 7: (height - 1 - y, width - 1 - x),
                    8: (height - 1 - y, x)}[orientation]
        return self.of_pixels([self.pixel(*stored(x, y)) for y in range(height) for x in range(width)], width, height)

    def to(self, kind):
        """Another kind, full scale to full scale, rounded to nearest, ties to even; floats to floats as they are."""
        if FULL[kind] == 1.0:
            values = [value / FULL[self.kind] for value in self.values]
            values = struct.unpack("<%d%s" % (len(values), CODES[kind]),
                                   struct.pack("<%d%s" % (len(values), CODES[kind]), *values))
        else:
            values = [round(min(max(value, 0), FULL[self.kind]) * FULL[kind] / FULL[self.kind])
                      for value in self.values]
        return Picture(self.width, self.height, self.channels, kind, values)

    def rgb(self):
        """Three channels: gray three times, without alpha."""
        return self.of_pixels([(p[0],) * 3 if len(p) < 3 else p[:3] for p in self.pixels()])

    def rgba(self):
        """Four channels: gray three times, alpha full where there is none."""
        full = FULL[self.kind]
        return self.of_pixels([((p[0],) * 3 if len(p) < 3 else p[:3]) + ((p[-1],) if len(p) % 2 == 0 else (full,))
                               for p in self.pixels()])


def draw(width=13, height=9, channels=3, kind="u1", largest=None, seed=1):
    """Quadrants of four colours; every other pixel is noise. largest: of integers, the kind's where None.

    Floats are multiples of 1/256 from 0 to 255/256, so f2, f4 and f8 hold them all."""
    top = 255 if kind[0] == "f" else FULL[kind] if largest is None else largest
    state, values = seed, []
    for y in range(height):
        for x in range(width):
            quadrant = 2 * (2 * y >= height) + (2 * x >= width)
            for c in range(channels):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                flat = top * ((quadrant * 3 + c * 5 + 2) % 11) // 10
                value = flat if (x + y) % 2 == 0 else (state >> 33) % (top + 1)
                values.append(value / 256 if kind[0] == "f" else value)
    return Picture(width, height, channels, kind, values)


def made(data, picture, orientation=1):
    return Made(data, picture, picture.turned(orientation))


def packed_rows(values, width, height, channels, bits):
    """Rows of samples of 1, 2, 4, 8 or 16 bits, big-endian, each row padded to bytes."""
    rows, per_row = [], width * channels
    for y in range(height):
        row = values[y * per_row:(y + 1) * per_row]
        if bits == 16:
            rows.append(struct.pack(">%dH" % per_row, *row))
            continue
        number = 0
        for value in row:
            number = number << bits | value
        padding = -per_row * bits % 8
        rows.append((number << padding).to_bytes((per_row * bits + padding) // 8, "big"))
    return rows


# ---- PNG -------------------------------------------------------------------------------------------

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
PNG_CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
PNG_COLORS = [(GRAY, (1, 2, 4, 8, 16)), (RGB, (8, 16)), (PALETTE, (1, 2, 4, 8)), (GRAY_ALPHA, (8, 16)), (RGBA, (8, 16))]
PNG_KINDS = [(color, depth, transparent) for color, depths in PNG_COLORS for depth in depths
             for transparent in ((False, True) if color in (GRAY, RGB, PALETTE) else (False,))]
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png_chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _png_filtered(rows, step):
    """The rows with the five filters by turns."""
    out, before = b"", bytes(len(rows[0]))
    for y, row in enumerate(rows):
        kind, line = y % 5, bytearray()
        for i, value in enumerate(row):
            left, up, corner = (row[i - step] if i >= step else 0), before[i], (before[i - step] if i >= step else 0)
            estimate = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(estimate - v))
            line.append((value - (0, left, up, (left + up) // 2, paeth)[kind]) & 255)
        out, before = out + bytes([kind]) + bytes(line), row
    return out


def _png_data(samples, depth, interlaced):
    out, channels = b"", samples.channels
    for x0, y0, dx, dy in ADAM7 if interlaced else ((0, 0, 1, 1),):
        width, height = -(-(samples.width - x0) // dx), -(-(samples.height - y0) // dy)
        if width > 0 and height > 0:
            values = [v for y in range(y0, samples.height, dy) for x in range(x0, samples.width, dx)
                      for v in samples.pixel(x, y)]
            out += _png_filtered(packed_rows(values, width, height, channels, depth), max(1, channels * depth // 8))
    return zlib.compress(out)


def palette_of(count):
    """That many colours, all different."""
    return [((i * 97 + 30) % 256, (i * 57 + 5) % 256, (i * 31 + 200) % 256) for i in range(count)]


def _png_decoded(samples, color, depth, palette, alphas, key):
    """What a decoder gives: bits below 8 scaled up, palettes and tRNS resolved."""
    full, scale = (65535 if depth == 16 else 255), (1 if depth >= 8 else 255 // (2**depth - 1))
    pixels = samples.pixels()
    if color == PALETTE:
        pixels = [palette[p[0]] + ((alphas[p[0]] if p[0] < len(alphas) else 255,) if alphas else ()) for p in pixels]
    else:
        pixels = [tuple(v * scale for v in p) + (() if key is None else (0 if p == key else full,)) for p in pixels]
    return Picture(samples.width, samples.height, 1, "u2" if depth == 16 else "u1",
                   [p[0] for p in pixels]).of_pixels(pixels)


def png(picture=None, color=RGB, depth=8, transparent=False, interlaced=False, orientation=1, exif_block=None,
        icc_profile=None, xmp_packet=None, chunks=(), size=(13, 9)):
    """A PNG. picture: samples as the file has them (indices of a palette); transparent: tRNS, whose key is pixel 0, 0.

    exif_block stands in for the one that says the orientation; chunks: (name, body) before IDAT."""
    samples = picture or draw(*size, PNG_CHANNELS[color], "u2" if depth == 16 else "u1", 2**depth - 1)
    palette = palette_of(2**depth) if color == PALETTE else []
    alphas = [(i * 83 + 10) % 256 for i in range(2**depth * 3 // 4)] if color == PALETTE and transparent else []
    key = samples.pixel(0, 0) if transparent and color != PALETTE else None
    if exif_block is None and orientation != 1:
        exif_block = exif(orientation=orientation)
    out = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", samples.width, samples.height, depth,
                                                                color, 0, 0, int(interlaced)))
    if icc_profile is not None:
        out += png_chunk(b"iCCP", b"profile\0\0" + zlib.compress(icc_profile))
    if palette:
        out += png_chunk(b"PLTE", bytes(v for entry in palette for v in entry))
    if transparent:
        out += png_chunk(b"tRNS", bytes(alphas) if alphas else struct.pack(">%dH" % len(key), *key))
    if exif_block is not None:
        out += png_chunk(b"eXIf", exif_block)
    if xmp_packet is not None:
        out += png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp_packet)
    for name, body in chunks:
        out += png_chunk(name, body)
    out += png_chunk(b"IDAT", _png_data(samples, depth, interlaced)) + png_chunk(b"IEND", b"")
    return made(out, _png_decoded(samples, color, depth, palette, alphas, key), orientation)


# ---- PNM and PAM -------------------------------------------------------------------------------------

def pnm(picture=None, largest=None, pam=False, comment="", size=(13, 9)):
    """P5 or P6, or P7 (also of 2 and 4 channels). Its samples go up to largest: 255 or 65535 where None."""
    picture = picture or draw(*size, 3, "u1" if largest is None or largest < 256 else "u2", largest)
    largest = largest or FULL[picture.kind]
    if pam or picture.channels % 2 == 0:
        names = {1: "GRAYSCALE", 2: "GRAYSCALE_ALPHA", 3: "RGB", 4: "RGB_ALPHA"}
        head = "P7\n%sWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n" % (
            comment, picture.width, picture.height, picture.channels, largest, names[picture.channels])
    else:
        head = "P%d\n%s%d %d\n%d\n" % (5 if picture.channels == 1 else 6, comment, picture.width, picture.height,
                                       largest)
    kind = "u1" if largest < 256 else "u2"
    scaled = [round(value * FULL[kind] / largest) for value in picture.values]
    return made(head.encode("ascii") + Picture(picture.width, picture.height, picture.channels, kind,
                                               picture.values).bytes(">"),
                Picture(picture.width, picture.height, picture.channels, kind, scaled))


# ---- NumPy -------------------------------------------------------------------------------------------

NPY_KINDS = [mark + kind for kind in ("u2", "f2", "f4", "f8") for mark in "<>"] + ["|b1", "|u1"]


def npy(picture=None, descr="|u1", fortran=False, version=1, flat_gray=True, planes=False, size=(13, 9)):
    """A .npy of (H,W) where flat_gray and one channel, of (C,H,W) with planes, else of (H,W,C)."""
    kind = "?" if descr[1:] == "b1" else descr[1:]
    picture = picture or draw(*size, 3, kind)
    shape = (picture.height, picture.width) + (() if flat_gray and picture.channels == 1 else (picture.channels,))
    place = {(y, x, c)[:len(shape)]: picture.pixel(x, y)[c] for y in range(picture.height)
             for x in range(picture.width) for c in range(picture.channels)}
    if planes:
        shape, place = shape[2:] + shape[:2], {at[2:] + at[:2]: value for at, value in place.items()}
    values = [place[at] for at in sorted(place, key=(lambda at: at[::-1]) if fortran else None)]
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    length = "<H" if version == 1 else "<I"
    begin = 8 + struct.calcsize(length) + len(text) + 1
    text += " " * (-begin % 64) + "\n"
    order = ">" if descr[0] == ">" else "<"
    return made(b"\x93NUMPY" + bytes([version, 0]) + struct.pack(length, len(text)) + text.encode("ascii") +
                Picture(picture.width, picture.height, picture.channels, kind, values).bytes(order), picture)


# ---- TIFF --------------------------------------------------------------------------------------------

WHITE_IS_ZERO, BLACK_IS_ZERO, TIFF_RGB, TIFF_PALETTE, CMYK = 0, 1, 2, 3, 5
NO_COMPRESSION, LZW, DEFLATE, PACKBITS = 1, 5, 8, 32773


def _lzw(data):
    """Codes of 9 bits, the table cleared before it grows beyond them."""
    number, count = 0, 0
    for i, value in enumerate(data):
        for code in ((256, value) if i % 250 == 0 else (value,)):
            number, count = number << 9 | code, count + 1
    number, count = number << 9 | 257, count + 1
    padding = -9 * count % 8
    return (number << padding).to_bytes((9 * count + padding) // 8, "big")


def _packbits(data):
    return b"".join(bytes([len(data[i:i + 128]) - 1]) + data[i:i + 128] for i in range(0, len(data), 128))


TIFF_PACKERS = {NO_COMPRESSION: lambda data: data, LZW: _lzw, DEFLATE: zlib.compress, PACKBITS: _packbits}


def _tiff_rows(samples, rectangle, channels, bits, mark, predictor):
    """The bytes of one strip or tile; beyond the picture zeros."""
    x0, y0, width, height = rectangle
    nothing, out = (0,) * samples.channels, b""
    for y in range(y0, y0 + height):
        row = [samples.pixel(x, y) if x < samples.width and y < samples.height else nothing
               for x in range(x0, x0 + width)]
        values = [pixel[c] for pixel in row for c in channels]
        if predictor == 2:
            step = len(channels)
            values = [(v - (values[i - step] if i >= step else 0)) & (2**bits - 1) for i, v in enumerate(values)]
        if bits < 8:
            out += packed_rows(values, width, 1, len(channels), bits)[0]
            continue
        data = struct.pack("%s%d%s" % (mark, len(values), CODES[samples.kind]), *values)
        if predictor == 3:
            step, data = len(channels), struct.pack(">%df" % len(values), *values)
            planes = b"".join(data[i::4] for i in range(4))
            data = bytes((v - (planes[i - step] if i >= step else 0)) & 255 for i, v in enumerate(planes))
        out += data
    return out


def cmyk_to_rgb(pixel):
    """The plain conversion, rounded to nearest; 0 is no ink."""
    return tuple(((255 - ink) * (255 - pixel[3]) * 2 + 255) // 510 for ink in pixel[:3])


def _tiff_decoded(samples, photometric, bits):
    full = FULL[samples.kind] if bits >= 8 else 2**bits - 1
    scale = 1 if bits >= 8 else 255 // full
    if photometric == TIFF_PALETTE:
        colors = palette_of(2**bits)
        return samples.of_pixels([colors[p[0]] for p in samples.pixels()])
    if photometric == CMYK:
        return samples.of_pixels([cmyk_to_rgb(p) for p in samples.pixels()])
    if photometric == WHITE_IS_ZERO:
        return samples.of_pixels([tuple((full - v) * scale for v in p[:1]) + p[1:] for p in samples.pixels()])
    return samples.of_pixels([tuple(v * scale for v in p) for p in samples.pixels()])


def tiff(picture=None, photometric=None, bits=None, order="II", tile=None, rows_per_strip=4,
         compression=NO_COMPRESSION, predictor=1, planar=1, orientation=1, extra=None, exif_inner=None, gps=None,
         xmp_packet=None, icc_profile=None, alpha=2, size=(13, 9), big=False):
    """A TIFF; big: a BigTIFF. picture: samples as the file has them, "u1", "u2" or "f4", their bits below 8 where bits says so.

    photometric: of the channels where None; tile: (width, height), multiples of 16; alpha: 1 multiplied in, 2 not;
    exif_inner: tags of the EXIF IFD; gps: (latitude, longitude[, altitude]); extra: more tags of the first IFD."""
    if photometric is None:
        photometric = BLACK_IS_ZERO if picture and picture.channels < 3 else TIFF_RGB
    expected = {TIFF_RGB: 3, CMYK: 4}.get(photometric, 1)
    samples = picture or draw(*size, expected, "u2" if bits == 16 else "u1", 2**(bits or 8) - 1)
    bits = bits or {"u1": 8, "u2": 16, "f4": 32}[samples.kind]
    mark, n = ("<" if order == "II" else ">"), samples.channels
    wide, high = tile or (samples.width, rows_per_strip)
    rectangles = [(x, y, wide, high if tile else min(high, samples.height - y))
                  for y in range(0, samples.height, high) for x in range(0, samples.width, wide)]
    planes = [range(n)] if planar == 1 else [[c] for c in range(n)]
    parts = [TIFF_PACKERS[compression](_tiff_rows(samples, rectangle, channels, bits, mark, predictor))
             for channels in planes for rectangle in rectangles]
    body, places, begin = b"", [], len(tiff_head(order, 0, big))
    for part in parts:
        places.append(begin + len(body))
        body += part + b"\0" * (len(part) % 2)
    entries = {256: samples.width, 257: samples.height, 258: [bits] * n, 259: compression, 262: photometric, 277: n,
               284: planar, 339: [3 if samples.kind == "f4" else 1] * n}
    entries.update({322: wide, 323: high, 324: (LONG, places), 325: (LONG, [len(p) for p in parts])} if tile else
                   {278: high, 273: (LONG, places), 279: (LONG, [len(p) for p in parts])})
    if predictor != 1:
        entries[317] = predictor
    if photometric == TIFF_PALETTE:
        entries[320] = (SHORT, [entry[c] * 257 for c in range(3) for entry in palette_of(2**bits)])
    if n > expected:
        entries[338] = [alpha]
    if orientation != 1:
        entries[ORIENTATION] = orientation
    if xmp_packet is not None:
        entries[700] = (BYTE, xmp_packet)
    if icc_profile is not None:
        entries[34675] = icc_profile
    entries.update(exif_entries(inner=exif_inner, gps=gps, first=extra))
    first = begin + len(body)
    return made(tiff_head(order, first, big) + body + ifd(entries, order, first, wide=big),
                _tiff_decoded(samples, photometric, bits), orientation)


# ---- JPEG and WebP ---------------------------------------------------------------------------------------

ICC_CHUNK = 65535 - 2 - 14


def smooth(width=40, height=24, channels=3):
    """Quadrants with gradients: what JPEG keeps within a few levels."""
    def value(x, y, c):
        quadrant = 2 * (2 * y >= height) + (2 * x >= width)
        return 40 + (quadrant * 61 + c * 47) % 120 + 30 * ((x if c % 2 else y) % 8) // 8
    return Picture(width, height, channels, "u1",
                   [value(x, y, c) for y in range(height) for x in range(width) for c in range(channels)])


def jpeg_segments(exif_block=None, xmp_packet=None, icc_profile=None, icc_chunk=ICC_CHUNK):
    """APP1 of EXIF and XMP, and APP2 of an ICC profile, in pieces of that many bytes."""
    out = []
    if exif_block is not None:
        out.append(jpeg_segment(0xE1, b"Exif\0\0" + exif_block))
    if xmp_packet is not None:
        out.append(jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet))
    pieces = [icc_profile[at:at + icc_chunk] for at in range(0, len(icc_profile or b""), icc_chunk)]
    out += [jpeg_segment(0xE2, b"ICC_PROFILE\0" + bytes([i + 1, len(pieces)]) + piece)
            for i, piece in enumerate(pieces)]
    return out


def jpeg(picture=None, quality=95, orientation=1, order="II", exif_block=None, xmp_packet=None, icc_profile=None,
         icc_chunk=ICC_CHUNK, segments=(), transform=None, restart=0, size=(40, 24)):
    """A baseline JPEG of 1, 3 (YCbCr 4:4:4) or 4 channels (Adobe's CMYK, stored inverted; 0 is no ink).

    The pixels are those of exact arithmetic; decoders differ by 2 levels. transform: of an Adobe segment, 0: RGB or
    CMYK as they are, 1: YCbCr, 2: YCCK. segments: more, of jpeg_segment, behind the others. restart: blocks between
    markers."""
    picture = picture or smooth(*size)
    pixels, n = picture.pixels(), picture.channels
    if transform is None and n == 4:
        transform = 0
    if n == 4:
        pixels = [tuple(255 - ink for ink in pixel) for pixel in pixels]
    turns = n == 3 and transform != 0 or transform == 2
    flip = 255 if n == 4 else 0  # the luma of YCCK is that of the inks
    planes = list(zip(*[to_ycc(*(abs(flip - v) for v in p[:3])) + p[3:] if turns else p for p in pixels]))
    if exif_block is None and orientation != 1:
        exif_block = exif(order, orientation=orientation)
    everything = [jpeg_segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")] if transform is None else \
        [jpeg_segment(0xEE, struct.pack(">5s3HB", b"Adobe", 100, 0, 0, transform))]
    everything += jpeg_segments(exif_block, xmp_packet, icc_profile, icc_chunk) + list(segments)
    data, decoded = jpeg_file(planes, picture.width, picture.height, quality, everything, restart)
    pixels = [tuple(abs(flip - v) for v in from_ycc(*p[:3])) + p[3:] if turns else p for p in zip(*decoded)]
    pixels = [tuple(min(max(round(v), 0), 255) for v in pixel) for pixel in pixels]
    if n == 4:
        pixels = [cmyk_to_rgb(tuple(255 - v for v in pixel)) for pixel in pixels]
    return made(data, picture.of_pixels(pixels), orientation)


def webp(picture=None, orientation=1, order="II", exif_block=None, xmp_packet=None, icc_profile=None, size=(13, 9)):
    """A lossless WebP of 3 or 4 channels."""
    picture = picture or draw(*size)
    if exif_block is None and orientation != 1:
        exif_block = exif(order, orientation=orientation)
    has_alpha = picture.channels == 4
    pixels = [p if has_alpha else p + (255,) for p in picture.pixels()]
    return made(webp_file(pixels, picture.width, picture.height, has_alpha, icc_profile, exif_block, xmp_packet),
                picture, orientation)


# ---- one of every kind --------------------------------------------------------------------------------------

def _every_png():
    names = {GRAY: "gray", RGB: "rgb", PALETTE: "palette", GRAY_ALPHA: "grayalpha", RGBA: "rgba"}
    for color, depth, transparent in PNG_KINDS:
        for interlaced in (False, True):
            yield "%s%d%s%s.png" % (names[color], depth, "_trns" * transparent, "_adam7" * interlaced), \
                png(color=color, depth=depth, transparent=transparent, interlaced=interlaced)
    for n in range(1, 9):
        yield "turned%d.png" % n, png(orientation=n)
    yield "said.png", png(exif_block=exif("MM", orientation=1, make="gpst"), icc_profile=icc(), xmp_packet=gpano(13, 9))


def _every_tiff():
    for order in ("II", "MM"):
        for name, kind, n, photometric, bits in (
                ("gray1", "u1", 1, BLACK_IS_ZERO, 1), ("white1", "u1", 1, WHITE_IS_ZERO, 1),
                ("gray8", "u1", 1, BLACK_IS_ZERO, 8), ("white8", "u1", 1, WHITE_IS_ZERO, 8),
                ("gray16", "u2", 1, BLACK_IS_ZERO, 16), ("white16", "u2", 1, WHITE_IS_ZERO, 16),
                ("grayf", "f4", 1, BLACK_IS_ZERO, 32), ("palette8", "u1", 1, TIFF_PALETTE, 8),
                ("palette4", "u1", 1, TIFF_PALETTE, 4), ("rgb8", "u1", 3, TIFF_RGB, 8),
                ("rgb16", "u2", 3, TIFF_RGB, 16), ("rgbf", "f4", 3, TIFF_RGB, 32), ("rgba8", "u1", 4, TIFF_RGB, 8),
                ("rgba16", "u2", 4, TIFF_RGB, 16), ("grayalpha8", "u1", 2, BLACK_IS_ZERO, 8),
                ("cmyk8", "u1", 4, CMYK, 8)):
            samples = draw(35, 21, n, kind, 2**bits - 1 if kind != "f4" else None)
            for planar in (1, 2) if n > 1 else (1,):
                for tile in (None, (16, 16)):
                    for compression in (NO_COMPRESSION, DEFLATE):
                        yield "%s_%s_%s_%s%s.tif" % (name, order, "tiles" if tile else "strips",
                                                     {1: "plain", 8: "deflate"}[compression],
                                                     "_planes" * (planar == 2)), \
                            tiff(samples, photometric, bits, order, tile, compression=compression, planar=planar)
        for n in range(1, 9):
            yield "turned%d_%s.tif" % (n, order), tiff(order=order, orientation=n)
            yield "turned%d_big_%s.tif" % (n, order), tiff(order=order, orientation=n, big=True)
        for name, compression, predictor, kind in (("lzw", LZW, 1, "u1"), ("packbits", PACKBITS, 1, "u1"),
                                                   ("difference8", DEFLATE, 2, "u1"), ("difference16", LZW, 2, "u2"),
                                                   ("differencef", DEFLATE, 3, "f4")):
            yield "%s_%s.tif" % (name, order), tiff(draw(kind=kind), order=order, compression=compression,
                                                    predictor=predictor)
        yield "said_%s.tif" % order, tiff(order=order, exif_inner={0xA405: 24}, gps=(47.5, -8.25, 432.1),
                                          xmp_packet=gpano(13, 9), icc_profile=icc("Display P3"))


def _every_plain():
    for n, letters in ((1, "pgm"), (3, "ppm"), (2, "pam"), (4, "pam")):
        for largest in (255, 65535, 101, 1023):
            kind = "u1" if largest < 256 else "u2"
            yield "%d_%d.%s" % (n, largest, letters), pnm(draw(channels=n, kind=kind, largest=largest), largest)
    for descr in NPY_KINDS:
        for fortran in (False, True):
            for version in (1, 2):
                for n in (1, 3):
                    yield "%s_%s_v%d_%d.npy" % (descr.translate({60: "le_", 62: "be_", 124: ""}), "FC"[not fortran],
                                                version, n), \
                        npy(draw(channels=n, kind="?" if descr == "|b1" else descr[1:]), descr, fortran, version)


def _every_codec():
    for n, transform in ((1, None), (3, None), (3, 0), (3, 1), (4, 0), (4, 2)):
        yield "%d_%s.jpg" % (n, "adobe%d" % transform if transform is not None else "jfif"), \
            jpeg(smooth(channels=n), transform=transform)
    yield "restart.jpg", jpeg(restart=2)
    for n in range(1, 9):
        for order in ("II", "MM"):
            yield "turned%d_%s.jpg" % (n, order), jpeg(size=(20, 12), orientation=n, order=order)
        yield "turned%d.webp" % n, webp(orientation=n)
    yield "said.jpg", jpeg(exif_block=exif("MM", orientation=1, make="gpst", gps=(-1.5, 2.25)), icc_chunk=200,
                           xmp_packet=gpano(40, 24, elements=True), icc_profile=icc())
    yield "4.webp", webp(draw(channels=4))
    yield "said.webp", webp(exif_block=exif(make="gpst"), xmp_packet=gpano(13, 9), icc_profile=icc())


def every():
    """(name, Made) of a file of every kind."""
    for some in (_every_png, _every_tiff, _every_plain, _every_codec):
        yield from some()


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    os.makedirs(arguments[0], exist_ok=True)
    for name, file in every():
        kind = {"?": "|b1", "u1": "|u1"}.get(file.upright.kind, "<" + file.upright.kind)
        for path, data in ((name, file.data), (name + ".npy", npy(file.upright, kind).data)):
            with open(os.path.join(arguments[0], path), "wb") as stream:
                stream.write(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
