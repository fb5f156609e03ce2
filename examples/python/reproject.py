#!/usr/bin/env python3
"""examples/python/reproject.py -- gpustage from Python over ctypes: no build step, no NumPy.

    make build/libgpustage.so
    python3 examples/python/reproject.py FILE.ppm OUT.ppm [YAW [PITCH [ROLL [HFOV]]]]

The structs below repeat gpustage.h by hand. gpst_warp_create_versioned is given the version and the size of
the desc, and refuses when they are not its own. Of gpst_probe_info the head is declared, with ample room.
"""
import ctypes as c
import os
import sys

WIDTH, HEIGHT = 640, 480
FORMAT_RGB, MAP_EQUIRECT = 2, 2


class Image(c.Structure):
    _fields_ = [("data", c.c_void_p), ("pitch_bytes", c.c_int64), ("width", c.c_uint32),
                ("height", c.c_uint32), ("format", c.c_int), ("dtype", c.c_int), ("layout", c.c_int)]


class View(c.Structure):
    _fields_ = [(name, c.c_double) for name in ("yaw", "pitch", "roll", "hfov", "vfov")]


class WarpDesc(c.Structure):
    _fields_ = [("start_canary", c.c_uint32), ("map", c.c_int), ("filter", c.c_int), ("convention", c.c_int),
                ("border", c.c_int), ("views", c.POINTER(View)), ("n_views", c.c_uint32), ("rois", c.c_void_p),
                ("n_rois", c.c_uint32), ("rois_in_place", c.c_bool), ("n_rois_used", c.c_void_p),
                ("affines", c.c_void_p), ("n_affines", c.c_uint32), ("fit", c.c_int),
                ("short_side", c.c_uint32), ("fill", c.c_float * 4), ("list_per_item", c.c_bool),
                ("table", c.c_void_p), ("table_pitch_bytes", c.c_int64), ("width", c.c_uint32),
                ("height", c.c_uint32), ("format", c.c_int), ("dtype", c.c_int), ("layout", c.c_int),
                ("has_scale", c.c_bool), ("scale_of_full", c.c_bool), ("scale", c.c_float * 4), ("bias", c.c_float * 4),
                ("yuv", c.c_int), ("siting", c.c_int), ("mask", Image),
                ("end_canary", c.c_uint32)]


class Probe(c.Structure):
    _fields_ = [("tier", c.c_int), ("tier_reason", c.c_char * 160), ("system", c.c_char * 128),
                ("cores_online", c.c_uint32), ("cores_affinity", c.c_uint32), ("cores_allowed", c.c_uint32),
                ("rest", c.c_ubyte * 65536)]


def load():
    """The library, with the types of the calls used here."""
    build = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
    path = os.environ.get("GPUSTAGE_LIBRARY", os.path.join(build, "libgpustage.so"))
    library = c.CDLL(path)
    library.gpst_version.restype = c.c_uint32
    library.gpst_build_info.restype = c.c_char_p
    library.gpst_last_reason.restype = c.c_char_p
    library.gpst_probe.argtypes = [c.c_char_p, c.POINTER(Probe)]
    library.gpst_warp_create_versioned.argtypes = [c.c_uint32, c.c_size_t, c.POINTER(WarpDesc), c.c_void_p,
                                                   c.POINTER(c.c_void_p)]
    library.gpst_warp_run.argtypes = [c.c_void_p, c.POINTER(Image), c.POINTER(Image), c.c_uint32, c.c_uint32]
    library.gpst_warp_destroy.argtypes = [c.c_void_p]
    library.gpst_warp_destroy.restype = None
    return library


def check(library, result):
    if result < 0:
        raise RuntimeError(library.gpst_last_reason().decode())


def read_ppm(path):
    """Width, height and the pixels of a P6 file without comments."""
    with open(path, "rb") as file:
        magic, width, height, largest, pixels = file.read().split(maxsplit=4)
    if magic != b"P6" or largest != b"255":
        raise ValueError("%s: not a plain P6 file" % path)
    return int(width), int(height), pixels


def image_of(buffer, width, height):
    return Image(data=c.addressof(buffer), width=width, height=height, format=FORMAT_RGB)


def reproject(library, width, height, pixels, view):
    """The pixels of one perspective view of an equirectangular picture."""
    source = (c.c_ubyte * (width * height * 3)).from_buffer_copy(pixels)
    output = (c.c_ubyte * (WIDTH * HEIGHT * 3))()
    desc = WarpDesc(map=MAP_EQUIRECT, views=c.pointer(view), n_views=1, width=WIDTH, height=HEIGHT,
                    format=FORMAT_RGB)
    warp = c.c_void_p()
    version = library.gpst_version()
    check(library, library.gpst_warp_create_versioned(version, c.sizeof(desc), desc, None, warp))
    try:
        source_image, output_image = image_of(source, width, height), image_of(output, WIDTH, HEIGHT)
        check(library, library.gpst_warp_run(warp, source_image, output_image, 1, 0))
    finally:
        library.gpst_warp_destroy(warp)
    return bytes(output)


def main():
    if not 3 <= len(sys.argv) <= 7:
        sys.exit("usage: reproject.py FILE.ppm OUT.ppm [YAW [PITCH [ROLL [HFOV]]]]")
    library = load()
    machine = Probe()
    check(library, library.gpst_probe(None, machine))
    print("%s, %d cores allowed; %s" % (machine.system.decode(), machine.cores_allowed,
                                        library.gpst_build_info().decode()))
    view = View(*(float(text) for text in sys.argv[3:]))
    pixels = reproject(library, *read_ppm(sys.argv[1]), view)
    with open(sys.argv[2], "wb") as file:
        file.write(b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT) + pixels)
    print("%s: yaw %g, pitch %g, roll %g -> %s" % (sys.argv[1], view.yaw, view.pitch, view.roll, sys.argv[2]))


if __name__ == "__main__":
    main()
