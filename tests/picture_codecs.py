"""tests/picture_codecs.py -- a baseline JPEG encoder and a lossless WebP encoder for small pictures of tests.

Needs only the standard library. They know no Picture: what they take and give is flat samples. make_pictures.py calls
them.
"""
import math
import struct

# ---- JPEG: tables of ITU T.81, annex K ------------------------------------------------------------------

LUMA = (16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29,
        51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121,
        120, 101, 72, 92, 95, 98, 112, 100, 103, 99)
ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
DC_COUNTS, DC_SYMBOLS = (0, 1, 5, 1, 1, 1, 1, 1, 1) + (0,) * 7, tuple(range(12))
AC_COUNTS = (0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125)
AC_SYMBOLS = bytes.fromhex(
    "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738"
    "393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5"
    "a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa")
BASIS = [[math.cos((2 * x + 1) * u * math.pi / 16) * (math.sqrt(0.125) if u == 0 else 0.5) for x in range(8)]
         for u in range(8)]


def _codes(counts, symbols):
    """Symbol -> (code, bits)"""
    codes, code, at = {}, 0, 0
    for bits, count in enumerate(counts, 1):
        for symbol in symbols[at:at + count]:
            codes[symbol] = (code, bits)
            code += 1
        code, at = code << 1, at + count
    return codes


DC_CODES, AC_CODES = _codes(DC_COUNTS, DC_SYMBOLS), _codes(AC_COUNTS, AC_SYMBOLS)


def _forward(block):
    half = [[sum(BASIS[u][x] * block[y][x] for x in range(8)) for u in range(8)] for y in range(8)]
    return [sum(BASIS[v][y] * half[y][u] for y in range(8)) for v in range(8) for u in range(8)]


def _inverse(coefficients):
    half = [[sum(BASIS[v][y] * coefficients[8 * v + u] for v in range(8)) for u in range(8)] for y in range(8)]
    return [[sum(BASIS[u][x] * half[y][u] for u in range(8)) for x in range(8)] for y in range(8)]


class _Bits:
    """Most significant bit first; 0xFF is followed by 0."""

    def __init__(self):
        self.out, self.number, self.count = bytearray(), 0, 0

    def put(self, value, bits):
        self.number, self.count = self.number << bits | value, self.count + bits
        while self.count >= 8:
            self.count -= 8
            byte = self.number >> self.count
            self.out += b"\xff\0" if byte == 255 else bytes([byte])
            self.number &= (1 << self.count) - 1

    def flush(self):
        if self.count:
            self.put((1 << (8 - self.count)) - 1, 8 - self.count)


def _put_number(bits, codes, run, value):
    """A run of zeros and the coefficient behind it."""
    size = abs(value).bit_length()
    bits.put(*codes[run << 4 | size])
    bits.put(value if value >= 0 else value + (1 << size) - 1, size)


def _put_block(bits, quantised, before):
    _put_number(bits, DC_CODES, 0, quantised[0] - before)
    run = 0
    for value in quantised[1:]:
        if value == 0:
            run += 1
            continue
        while run > 15:
            bits.put(*AC_CODES[0xF0])
            run -= 16
        _put_number(bits, AC_CODES, run, value)
        run = 0
    if run:
        bits.put(*AC_CODES[0])


def jpeg_segment(marker, body):
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _scan(planes, width, height, table, restart):
    """The scan's bytes, and the planes as a decoder with exact arithmetic has them."""
    decoded, before, scan = [[0.0] * (width * height) for _ in planes], [0] * len(planes), bytearray()
    bits, n_mcus = _Bits(), 0
    for y0 in range(0, height, 8):
        for x0 in range(0, width, 8):
            if restart and n_mcus and n_mcus % restart == 0:
                bits.flush()
                scan += bits.out + bytes([0xFF, 0xD0 + (n_mcus // restart - 1) % 8])
                bits, before = _Bits(), [0] * len(planes)
            n_mcus += 1
            for c, plane in enumerate(planes):
                block = [[plane[min(y0 + y, height - 1) * width + min(x0 + x, width - 1)] - 128 for x in range(8)]
                         for y in range(8)]
                found = _forward(block)
                quantised = [round(found[at] / table[at]) for at in ZIGZAG]
                _put_block(bits, quantised, before[c])
                before[c] = quantised[0]
                exact = [0] * 64
                for at, value in zip(ZIGZAG, quantised):
                    exact[at] = value * table[at]
                pixels = _inverse(exact)
                for y in range(min(8, height - y0)):
                    for x in range(min(8, width - x0)):
                        decoded[c][(y0 + y) * width + x0 + x] = min(max(pixels[y][x] + 128, 0.0), 255.0)
    bits.flush()
    return bytes(scan + bits.out), decoded


def jpeg_file(planes, width, height, quality, segments, restart=0):
    """(file, decoded planes, as floats) of planes of samples, one block of each in turn; segments lie behind SOI."""
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    table = [min(max((q * scale + 50) // 100, 1), 255) for q in LUMA]
    scan, decoded = _scan(planes, width, height, table, restart)
    n = len(planes)
    out = b"\xff\xd8" + b"".join(segments)
    out += jpeg_segment(0xDB, b"\0" + bytes(table[at] for at in ZIGZAG))
    out += jpeg_segment(0xC0, struct.pack(">BHHB", 8, height, width, n) +
                        b"".join(bytes([c + 1, 0x11, 0]) for c in range(n)))
    out += jpeg_segment(0xC4, b"\0" + bytes(DC_COUNTS) + bytes(DC_SYMBOLS))
    out += jpeg_segment(0xC4, b"\x10" + bytes(AC_COUNTS) + bytes(AC_SYMBOLS))
    if restart:
        out += jpeg_segment(0xDD, struct.pack(">H", restart))
    out += jpeg_segment(0xDA, bytes([n]) + b"".join(bytes([c + 1, 0]) for c in range(n)) + b"\0\x3f\0")
    return out + scan + b"\xff\xd9", decoded


def to_ycc(red, green, blue):
    """JFIF's, not rounded."""
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    return luma, (blue - luma) / 1.772 + 128, (red - luma) / 1.402 + 128


def from_ycc(luma, blue, red):
    r, b = luma + 1.402 * (red - 128), luma + 1.772 * (blue - 128)
    return r, (luma - 0.299 * r - 0.114 * b) / 0.587, b


# ---- WebP: VP8L without transforms ------------------------------------------------------------------------

class _LowBits:
    """Least significant bit first."""

    def __init__(self):
        self.number, self.count = 0, 0

    def put(self, value, bits):
        self.number |= value << self.count
        self.count += bits

    def bytes(self):
        return self.number.to_bytes((self.count + 7) // 8, "little")


CODE_LENGTH_ORDER = (17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)


def _put_flat_code(bits, rest):
    """A prefix code whose first 256 symbols have 8 bits each; the rest behind them have none."""
    bits.put(0, 1)
    bits.put(12 - 4, 4)
    for symbol in CODE_LENGTH_ORDER[:12]:
        bits.put(1 if symbol in (8, 18) else 0, 3)
    bits.put(0, 1)
    bits.put(0, 256)
    if rest:
        bits.put(1, 1)
        bits.put(rest - 11, 7)


def vp8l(pixels, width, height, has_alpha):
    """The bitstream of (red, green, blue, alpha) pixels."""
    bits = _LowBits()
    bits.put(0x2F, 8)
    bits.put(width - 1, 14)
    bits.put(height - 1, 14)
    bits.put(int(has_alpha), 1)
    bits.put(0, 3 + 1 + 1 + 1)  # version; no transform, no colour cache, one group of codes
    _put_flat_code(bits, 24)  # green, and the lengths of copies
    for _ in range(3):
        _put_flat_code(bits, 0)
    bits.put(1, 1)  # distances: a simple code
    bits.put(0, 1 + 1 + 1)  # of one symbol of one bit, 0
    for red, green, blue, alpha in pixels:
        for value in (green, red, blue, alpha):
            bits.put(int("{:08b}".format(value)[::-1], 2), 8)
    return bits.bytes()


def riff_chunk(name, body):
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def webp_file(pixels, width, height, has_alpha, icc_profile=None, exif_block=None, xmp_packet=None):
    """A file of one VP8L chunk; in the extended form where it says more."""
    image = riff_chunk(b"VP8L", vp8l(pixels, width, height, has_alpha))
    if icc_profile is not None or exif_block is not None or xmp_packet is not None:
        flags = (0x20 * (icc_profile is not None) | 0x10 * has_alpha | 0x08 * (exif_block is not None) |
                 0x04 * (xmp_packet is not None))
        head = struct.pack("<I", flags) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        image = riff_chunk(b"VP8X", head) + \
            (riff_chunk(b"ICCP", icc_profile) if icc_profile is not None else b"") + image + \
            (riff_chunk(b"EXIF", exif_block) if exif_block is not None else b"") + \
            (riff_chunk(b"XMP ", xmp_packet) if xmp_packet is not None else b"")
    return riff_chunk(b"RIFF", b"WEBP" + image)
