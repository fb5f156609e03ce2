#!/usr/bin/env python3
"""examples/python/dlpack.py -- NumPy arrays and PyTorch tensors into gpustage and out of it, without a copy.

    make build/libgpustage.so
    python3 examples/python/dlpack.py

A frame made by NumPy is reprojected where it lies, over ctypes; the view is a NumPy array, and a PyTorch tensor, in
gpustage's memory. Where PyTorch has a GPU and libgpustage.so its backend (make GPU=cuda build/cuda/libgpustage.so,
named in GPUSTAGE_LIBRARY), the same is done with a tensor there. Needs NumPy, else it ends with 77; PyTorch need not be
there.
"""
import ctypes as c
import itertools
import sys

import reproject
from reproject import Image, View, WarpDesc, check

VERSIONED, LEGACY = 1, 2          # gpst_dlpack_kind
NAMES = {VERSIONED: b"dltensor_versioned", LEGACY: b"dltensor"}
USED = {VERSIONED: b"used_dltensor_versioned", LEGACY: b"used_dltensor"}
HWC, CHW = 1, 2                   # gpst_layout
HOST, DEVICE = 1, 3               # gpst_memory_kind
CPU, CUDA, ROCM = 1, 2, 10        # DLPack's device types
FORMAT_RGB, MAP_EQUIRECT = 2, 2


class DlpackDesc(c.Structure):
    _fields_ = [("start_canary", c.c_uint32), ("kind", c.c_int), ("image", Image), ("n_images", c.c_uint32),
                ("image_step_bytes", c.c_int64), ("gray_has_channels", c.c_bool), ("read_only", c.c_bool),
                ("device", c.c_void_p), ("memory", c.c_int), ("release", c.c_void_p),
                ("release_user_data", c.c_void_p), ("allocator", c.c_void_p * 3), ("end_canary", c.c_uint32)]


class DlpackView(c.Structure):
    _fields_ = [("image", Image), ("n_images", c.c_uint32), ("image_step_bytes", c.c_int64), ("read_only", c.c_bool),
                ("copied", c.c_bool), ("on_device", c.c_bool), ("pinned", c.c_bool), ("release", c.c_void_p),
                ("release_user_data", c.c_void_p)]


class DeviceInfo(c.Structure):
    _fields_ = [("backend", c.c_char_p), ("name", c.c_char_p), ("reason", c.c_char_p), ("asynchronous", c.c_bool),
                ("zero_copy", c.c_bool), ("copies_peers", c.c_bool), ("ordinal", c.c_int32),
                ("n_copy_engines", c.c_uint32), ("memory_bytes", c.c_uint64), ("memory_free_bytes", c.c_uint64),
                ("n_objects", c.c_uint64), ("allocation_count", c.c_uint64), ("live_bytes", c.c_uint64)]


def load():
    """The library, with the types of the calls used here."""
    library = reproject.load()
    p = c.c_void_p
    for name, types in {"gpst_device_open_versioned": [c.c_uint32, c.c_size_t, c.c_char_p, p, p, c.POINTER(p)],
                        "gpst_memory_create": [p, c.c_int, c.c_size_t, c.POINTER(p)],
                        "gpst_stream_create": [p, c.POINTER(p)], "gpst_stream_wrap": [p, p, c.POINTER(p)],
                        "gpst_stream_wait": [p, p], "gpst_stream_synchronize": [p],
                        "gpst_event_create": [p, c.POINTER(p)], "gpst_event_record": [p, p],
                        "gpst_warp_enqueue": [p, c.POINTER(Image), c.POINTER(Image), c.c_uint32, p],
                        "gpst_dlpack_export_versioned": [c.c_uint32, c.c_size_t, c.POINTER(DlpackDesc), c.POINTER(p)],
                        "gpst_dlpack_import": [p, c.c_int, c.c_int, p, c.POINTER(DlpackView)]}.items():
        getattr(library, name).argtypes = types
    for name, types in {"gpst_device_query_info": [p, c.POINTER(DeviceInfo)], "gpst_memory_destroy": [p],
                        "gpst_stream_destroy": [p], "gpst_event_destroy": [p],
                        "gpst_dlpack_release": [c.c_int, p]}.items():
        getattr(library, name).argtypes = types
        getattr(library, name).restype = None
    library.gpst_device_close.argtypes = library.gpst_memory_data.argtypes = [p]
    library.gpst_stream_native.argtypes = [p]
    library.gpst_memory_data.restype = library.gpst_stream_native.restype = p
    return library


def call(library, name, *arguments):
    """A call that gives an object by its last parameter."""
    out = c.c_void_p()
    check(library, getattr(library, name)(*arguments, c.byref(out)))
    return out


# ---- capsules: the addresses of tensors, as Python hands them on -----------------------------------------------
capsule_is = c.pythonapi.PyCapsule_IsValid
capsule_is.argtypes, capsule_is.restype = [c.py_object, c.c_char_p], c.c_int
capsule_pointer = c.pythonapi.PyCapsule_GetPointer
capsule_pointer.argtypes, capsule_pointer.restype = [c.py_object, c.c_char_p], c.c_void_p
capsule_rename = c.pythonapi.PyCapsule_SetName
capsule_rename.argtypes, capsule_rename.restype = [c.py_object, c.c_char_p], c.c_int
DESTRUCTOR = c.PYFUNCTYPE(None, c.c_void_p)
capsule_new = c.pythonapi.PyCapsule_New
capsule_new.argtypes, capsule_new.restype = [c.c_void_p, c.c_char_p, DESTRUCTOR], c.py_object
# A destructor is given an object that is dying: by its address only, so that nobody counts references to it.
dying_is = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", c.pythonapi))
dying_pointer = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", c.pythonapi))


class Taken:
    """Somebody's array as a gpst_image, as long as a with block lasts. stream: the gpst_stream that is to use it."""

    def __init__(self, library, array, axes=HWC, device=None, stream=None):
        self.library, self.view = library, DlpackView()
        more = {"stream": library.gpst_stream_native(stream)} if stream else {}
        try:
            capsule = array.__dlpack__(max_version=(1, 0), **more)
        except TypeError:  # made before DLPack 1.0
            capsule = array.__dlpack__(**more)
        self.kind = VERSIONED if capsule_is(capsule, NAMES[VERSIONED]) else LEGACY
        self.managed = capsule_pointer(capsule, NAMES[self.kind])
        check(library, library.gpst_dlpack_import(self.managed, self.kind, axes, device, self.view))
        capsule_rename(capsule, USED[self.kind])  # the tensor is ours; before this it went with the capsule

    def __enter__(self):
        return self.view

    def __exit__(self, *_):
        self.library.gpst_dlpack_release(self.kind, self.managed)


owners, keys = {}, itertools.count(1)
release_owner = c.CFUNCTYPE(None, c.c_void_p)(owners.pop)


class Given:
    """Pictures in gpustage's memory, as others take arrays: numpy.from_dlpack(given), torch.from_dlpack(given)."""

    def __init__(self, library, image, owner, device=None, stream=None, device_type=(CPU, 0), n_images=0):
        self.library, self.image, self.owner, self.device = library, image, owner, device
        self.stream, self.device_type, self.n_images = stream, device_type, n_images

    def __dlpack_device__(self):
        return self.device_type

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or dl_device not in (None, self.device_type):
            raise BufferError("no copy, and no other device")
        if self.stream and stream != -1:
            self.wait_for_us(stream or (None if self.device_type[0] == ROCM else 1))  # 1: CUDA's default stream
        kind = VERSIONED if max_version and max_version[0] >= 1 else LEGACY
        key = next(keys)
        owners[key] = self.owner  # until the consumer's array is gone
        desc = DlpackDesc(kind=kind, image=self.image, n_images=self.n_images, device=self.device,
                          memory=DEVICE if self.stream else HOST, release=c.cast(release_owner, c.c_void_p),
                          release_user_data=key)
        try:
            managed = call(self.library, "gpst_dlpack_export_versioned", self.library.gpst_version(), c.sizeof(desc),
                           desc)
        except RuntimeError as error:
            del owners[key]
            raise BufferError(str(error)) from error
        return capsule_new(managed, NAMES[kind], destroy_capsule(self.library, kind))

    def wait_for_us(self, stream):
        """The consumer's stream goes on when our work is done; nobody else waits."""
        theirs = call(self.library, "gpst_stream_wrap", self.device, stream)
        event = call(self.library, "gpst_event_create", self.device)
        check(self.library, self.library.gpst_event_record(event, self.stream))
        check(self.library, self.library.gpst_stream_wait(theirs, event))
        self.library.gpst_event_destroy(event)
        self.library.gpst_stream_destroy(theirs)


destructors = {}


def destroy_capsule(library, kind):
    """Gives back a tensor that no consumer took."""
    def destroy(capsule):
        if dying_is(capsule, NAMES[kind]):
            library.gpst_dlpack_release(kind, dying_pointer(capsule, NAMES[kind]))
    return destructors.setdefault(kind, DESTRUCTOR(destroy))  # lives as long as the program


class Device:
    def __init__(self, library, name):
        self.library = library
        self.handle = call(library, "gpst_device_open_versioned", library.gpst_version(), c.sizeof(DeviceInfo),
                           name.encode(), None, None)
        info = DeviceInfo()
        library.gpst_device_query_info(self.handle, info)
        self.backend = info.backend.decode()
        self.type = ({"cuda": CUDA, "hip": ROCM}.get(self.backend, CPU), info.ordinal)

    def __del__(self):
        if hasattr(self, "handle"):
            self.library.gpst_device_close(self.handle)


class Memory:
    def __init__(self, device, kind, n_bytes):
        self.device = device
        self.handle = call(device.library, "gpst_memory_create", device.handle, kind, n_bytes)
        self.data = device.library.gpst_memory_data(self.handle)

    def __del__(self):
        if hasattr(self, "handle"):
            self.device.library.gpst_memory_destroy(self.handle)


# ---- the example -----------------------------------------------------------------------------------------------
WIDTH, HEIGHT = 320, 240


def make_warp(library, layout):
    view = View(90)
    desc = WarpDesc(map=MAP_EQUIRECT, views=c.pointer(view), n_views=1, width=WIDTH, height=HEIGHT, format=FORMAT_RGB,
                    layout=layout)
    return call(library, "gpst_warp_create_versioned", library.gpst_version(), c.sizeof(desc), desc, None)


def image_in(memory, layout):
    return Image(data=memory.data, width=WIDTH, height=HEIGHT, format=FORMAT_RGB, layout=layout)


def on_host(library, frame, layout=HWC):
    """The view of a frame in an array that lies on the host; what is given can be taken several times."""
    warp = make_warp(library, layout)
    memory = Memory(Device(library, "cpu"), HOST, WIDTH * HEIGHT * 3)
    output = image_in(memory, layout)
    try:
        with Taken(library, frame) as view:
            check(library, library.gpst_warp_run(warp, view.image, output, 1, 0))
    finally:
        library.gpst_warp_destroy(warp)
    return Given(library, output, memory)


def on_gpu(library, device, frame, layout=HWC):
    """The same of a tensor on the device."""
    warp = make_warp(library, layout)
    stream = call(library, "gpst_stream_create", device.handle)
    memory = Memory(device, DEVICE, WIDTH * HEIGHT * 3)
    output = image_in(memory, layout)
    try:
        with Taken(library, frame, HWC, device.handle, stream) as view:
            check(library, library.gpst_warp_enqueue(warp, view.image, output, 1, stream))
            check(library, library.gpst_stream_synchronize(stream))  # the frame is its owner's again after this
    finally:
        library.gpst_warp_destroy(warp)
    return Given(library, output, memory, device.handle, stream, device.type), stream


def frame_of(numpy):
    y, x = numpy.mgrid[0:128, 0:256]
    return numpy.stack([x, 2 * y, x ^ y], axis=-1).astype(numpy.uint8)


def show_gpu(library, numpy, torch, frame, wanted):
    if not torch.cuda.is_available():
        print("no GPU: PyTorch has none")
        return
    try:
        device = Device(library, ("hip" if torch.version.hip else "cuda") + ":device=%d" % torch.cuda.current_device())
    except RuntimeError as error:
        print("no GPU: %s" % error)
        return
    given, stream = on_gpu(library, device, torch.from_numpy(frame).cuda())
    tensor = torch.from_dlpack(given)
    print("%s tensor on %s: the same bits as the CPU's: %s" % (tuple(tensor.shape), tensor.device,
                                                             numpy.array_equal(tensor.cpu().numpy(), wanted)))
    torch.cuda.synchronize()
    del tensor, given
    library.gpst_stream_destroy(stream)


def main():
    try:
        import numpy
    except ImportError:
        print("no NumPy")
        return 77
    try:
        import torch
    except ImportError:
        torch = None
    library = load()
    frame = frame_of(numpy)
    given = on_host(library, frame)
    view = numpy.from_dlpack(given)
    print("NumPy %s: %s %s in gpustage's memory: %s" % (numpy.__version__, view.shape, view.dtype,
                                                       view.ctypes.data == given.owner.data))
    try:
        on_host(library, frame[:, ::2])
    except RuntimeError as error:
        print("refused: %s" % error)
    if torch:
        tensor = torch.from_dlpack(given)
        print("PyTorch %s: %s %s, the same memory: %s" % (torch.__version__, tuple(tensor.shape), tensor.dtype,
                                                          tensor.data_ptr() == view.ctypes.data))
        planes = torch.from_dlpack(on_host(library, torch.from_numpy(frame), CHW))
        print("as planes: %s, the same pixels: %s" % (tuple(planes.shape),
                                                    torch.equal(planes.permute(1, 2, 0), tensor)))
        show_gpu(library, numpy, torch, frame, view)
    else:
        print("no PyTorch")
    return 0


if __name__ == "__main__":
    sys.exit(main())
