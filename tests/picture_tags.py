"""tests/picture_tags.py -- what files say beside their pixels: IFDs (TIFF, EXIF), XMP packets, ICC profiles.

Needs only the standard library. make_pictures.py gives all of it on.
"""
import struct

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED, SIGNED_RATIONAL, IFD8 = 1, 2, 3, 4, 5, 7, 10, 18
ORIENTATION, SUB_IFD_EXIF, SUB_IFD_GPS = 0x0112, 0x8769, 0x8825
NAMESPACES = {
    "GPano": "http://ns.google.com/photos/1.0/panorama/",
    "Camera": "http://pix4d.com/camera/1.0/",
    "drone-dji": "http://www.dji.com/drone-dji/1.0/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "tiff": "http://ns.adobe.com/tiff/1.0/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "xmpNote": "http://ns.adobe.com/xmp/note/",
}


# ---- IFDs ------------------------------------------------------------------------------------------

def _typed(value):
    """(type, values) of a value of Python: int, text, bytes, list of ints, (a, b) as a fraction, list of fractions."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], (list, bytes)):
        return value
    if isinstance(value, str):
        return ASCII, value.encode("utf-8") + b"\0"
    if isinstance(value, bytes):
        return UNDEFINED, value
    if isinstance(value, tuple):
        value = [value]
    if isinstance(value, int):
        value = [value]
    if isinstance(value[0], tuple):
        return (SIGNED_RATIONAL if any(min(v) < 0 for v in value) else RATIONAL), value
    return (SHORT if max(value) < 65536 else LONG), value


def _packed(mark, kind, values):
    """(count, bytes) of an entry's values."""
    if isinstance(values, bytes):
        return len(values), values
    if kind in (RATIONAL, SIGNED_RATIONAL):
        code, flat = "I" if kind == RATIONAL else "i", [n for pair in values for n in pair]
    else:
        code, flat = {BYTE: "B", SHORT: "H", LONG: "I"}[kind], values
    return len(values), struct.pack("%s%d%s" % (mark, len(flat), code), *flat)


def ifd(entries, order="II", at=8, following=0, wide=False):
    """An IFD that lies at that offset, its long values and its own IFDs behind it; wide: BigTIFF's.

    entries: tag -> value; a dict is an IFD of its own; (type, values) names the type, also a wrong one."""
    mark = "<" if order == "II" else ">"
    head, word, room = ("Q", "Q", 8) if wide else ("H", "I", 4)
    table, behind = b"", b""
    begin = at + struct.calcsize(mark + head) + (4 + 2 * room) * len(entries) + room
    for tag, value in sorted(entries.items()):
        if isinstance(value, dict):
            kind, count, data = IFD8 if wide else LONG, 1, struct.pack(mark + word, begin + len(behind))
            behind += ifd(value, order, begin + len(behind), wide=wide)
        else:
            kind, values = _typed(value)
            count, data = _packed(mark, kind, values)
        if len(data) > room:
            data, place = data + b"\0" * (len(data) % 2), begin + len(behind)
            behind, data = behind + data, struct.pack(mark + word, place)
        table += struct.pack(mark + "HH" + word, tag, kind, count) + data.ljust(room, b"\0")
    return struct.pack(mark + head, len(entries)) + table + struct.pack(mark + word, following) + behind


def tiff_head(order="II", first=8, wide=False):
    mark = "<" if order == "II" else ">"
    return order.encode("ascii") + (struct.pack(mark + "HHHQ", 43, 8, 0, first) if wide else
                                    struct.pack(mark + "HI", 42, first))


def _degrees(value):
    """Degrees, minutes and seconds in thousandths."""
    thousandths = round(abs(value) * 3600 * 1000)
    return [(thousandths // 3600000, 1), (thousandths // 60000 % 60, 1), (thousandths % 60000, 1000)]


def gps_entries(latitude, longitude, altitude=None):
    """A GPS IFD's entries, of degrees and metres."""
    entries = {0: (BYTE, [2, 3, 0, 0]), 1: "S" if latitude < 0 else "N", 2: _degrees(latitude),
               3: "W" if longitude < 0 else "E", 4: _degrees(longitude)}
    if altitude is not None:
        entries[5], entries[6] = (BYTE, [int(altitude < 0)]), [(round(abs(altitude) * 1000), 1000)]
    return entries


def exif_entries(orientation=None, make=None, model=None, taken=None, focal_mm=None, focal_35mm=None, gps=None,
                 first=None, inner=None):
    """IFD0's entries. taken: "2024:05:06 07:08:09"; gps: (latitude, longitude[, altitude]); first, inner: more tags."""
    inner, entries = dict(inner or {}), dict(first or {})
    for tag, value in ((ORIENTATION, orientation), (0x010F, make), (0x0110, model)):
        if value is not None:
            entries[tag] = value
    if taken is not None:
        inner[0x9003] = taken
    if focal_mm is not None:
        inner[0x920A] = (round(focal_mm * 100), 100)
    if focal_35mm is not None:
        inner[0xA405] = focal_35mm
    if inner:
        inner.setdefault(0x9000, b"0232")
        entries[SUB_IFD_EXIF] = inner
    if gps is not None:
        entries[SUB_IFD_GPS] = gps_entries(*gps)
    return entries


def exif(order="II", wide=False, **named):
    """An EXIF block, a TIFF without pixels, of exif_entries' arguments."""
    first = len(tiff_head(order, 0, wide))
    return tiff_head(order, first, wide) + ifd(exif_entries(**named), order, first, wide=wide)


def raw_profile(name, data):
    """The text of a PNG in which ImageMagick keeps a profile: hex digits in lines."""
    digits = data.hex().encode("ascii")
    return b"\n%s\n%8d\n" % (name.encode("ascii"), len(data)) + \
        b"".join(digits[at:at + 72] + b"\n" for at in range(0, len(digits), 72))


# ---- XMP ---------------------------------------------------------------------------------------------

def _escaped(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def xmp(properties, elements=False, padding=0):
    """An XMP packet of {"GPano:ProjectionType": "equirectangular", ...}, as attributes or as elements."""
    spaces = sorted({name.split(":")[0] for name in properties})
    head = "".join('\n    xmlns:%s="%s"' % (space, NAMESPACES[space]) for space in spaces)
    if elements:
        body = ">\n" + "".join("   <%s>%s</%s>\n" % (name, _escaped(value), name)
                               for name, value in properties.items()) + "  </rdf:Description>"
    else:
        body = "".join('\n   %s="%s"' % (name, _escaped(value)) for name, value in properties.items()) + "/>"
    text = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n<x:xmpmeta xmlns:x="adobe:ns:meta/">\n' \
           ' <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n  <rdf:Description rdf:about=""' + \
           head + body + "\n </rdf:RDF>\n</x:xmpmeta>\n" + " " * padding + '<?xpacket end="w"?>'
    return text.encode("utf-8")


def gpano(width, height, full=None, at=(0, 0), elements=False, **more):
    """The XMP of a panorama. full: (width, height) of the whole sphere; at: this part's corner; more: properties."""
    full = full or (width, height)
    properties = {"GPano:ProjectionType": "equirectangular", "GPano:UsePanoramaViewer": "True",
                  "GPano:CroppedAreaImageWidthPixels": width, "GPano:CroppedAreaImageHeightPixels": height,
                  "GPano:FullPanoWidthPixels": full[0], "GPano:FullPanoHeightPixels": full[1],
                  "GPano:CroppedAreaLeftPixels": at[0], "GPano:CroppedAreaTopPixels": at[1]}
    properties.update(("GPano:" + name, value) for name, value in more.items())
    return xmp(properties, elements)


# ---- ICC -----------------------------------------------------------------------------------------------

PRIMARIES = {  # of D50: red, green, blue
    "sRGB": ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410)),
    "Display P3": ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407)),
}


def icc(name="sRGB", gamma=2.2, bytes_at_least=0):
    """A version 2 profile for RGB of three primaries and a gamma; padded, so that it takes several segments."""
    def fixed(values):
        return struct.pack(">%di" % len(values), *(round(v * 65536) for v in values))
    text = name.encode("ascii") + b"\0"
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"
    tags = [(b"desc", b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + b"\0" * 78),
            (b"cprt", b"text\0\0\0\0none\0"), (b"wtpt", b"XYZ \0\0\0\0" + fixed((0.96420, 1.0, 0.82491)))]
    tags += [(color + b"XYZ", b"XYZ \0\0\0\0" + fixed(xyz))
             for color, xyz in zip((b"r", b"g", b"b"), PRIMARIES[name])]
    tags += [(color + b"TRC", curve) for color in (b"r", b"g", b"b")]
    table, body, begin = b"", b"", 128 + 4 + 12 * len(tags)
    for tag, data in tags:
        table += tag + struct.pack(">II", begin + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    body += b"\0" * max(0, bytes_at_least - begin - len(body))
    head = struct.pack(">I4sI4s4s4s12s4s", begin + len(body), b"", 0x02100000, b"mntr", b"RGB ", b"XYZ ",
                       struct.pack(">6H", 2024, 1, 1, 0, 0, 0), b"acsp")
    head = head.ljust(68, b"\0") + fixed((0.96420, 1.0, 0.82491))
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body
