#!/usr/bin/env python3
"""Makes the golden vectors: what the other projects give for the cases of cases.txt, as .npy files.

    make_goldens.py [--out FOLDER] [PEER...]     peers: opencv torch torchvision ultralytics ffmpeg py360; all that
                                                 are here

Sources are noise from a seed (splitmix64, as tests/test.h), so only results are stored. Every peer that ran has a
line in versions.txt. tests/test_warp_peers.c draws the same sources and compares.
"""
import argparse
import array
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("name peer convention map filter source store channels width height seed out_width out_height "
           "bound limit").split()
CODES = {"u8": "B", "u16": "H", "f32": "f"}
DESCR = {"u8": "|u1", "u16": "<u2", "f32": "<f4"}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Case:
    def __init__(self, words):
        for name, word in zip(COLUMNS, words):
            setattr(self, name, int(word) if word.isdigit() else word)
        self.rest = [float(word) for word in words[len(COLUMNS):]]
        self.result = "f32" if self.store == "norm" else self.store


def read_cases(path):
    with open(path, encoding="ascii") as text:
        return [Case(line.split()) for line in text if line.strip() and not line.startswith("#")]


def draw(seed, count):
    """Splitmix64."""
    mask = (1 << 64) - 1
    for _ in range(count):
        seed = (seed + 0x9e3779b97f4a7c15) & mask
        z = ((seed ^ seed >> 30) * 0xbf58476d1ce4e5b9) & mask
        z = ((z ^ z >> 27) * 0x94d049bb133111eb) & mask
        yield z ^ z >> 31


def noise(case):
    randoms = draw(case.seed, case.width * case.height * case.channels)
    if case.source == "f32":
        return array.array("f", [(z >> 40) / 2.0**24 for z in randoms])
    return array.array(CODES[case.source], [z & (255 if case.source == "u8" else 65535) for z in randoms])


def smooth(case):
    """Bytes between the points of a grid of 4 pixels, which goes around in x."""
    across, down, n = case.width // 4, case.height // 4 + 1, case.channels
    grid = [z & 255 for z in draw(case.seed, across * down * n)]
    pixels = array.array("B")
    for y in range(case.height):
        for x in range(case.width):
            for c in range(n):
                corner = [grid[((y // 4 + j) * across + (x // 4 + i) % across) * n + c]
                          for j in (0, 1) for i in (0, 1)]
                upper = corner[0] * (4 - x % 4) + corner[1] * (x % 4)
                lower = corner[2] * (4 - x % 4) + corner[3] * (x % 4)
                pixels.append((upper * (4 - y % 4) + lower * (y % 4)) // 16)
    return pixels


def table_of(case):
    """Positions in and around the source, from the seed after its own."""
    randoms = draw(case.seed + 1, case.out_width * case.out_height * 2)
    return [(z >> 40) / 2.0**24 * ((case.height if i % 2 else case.width) + 4) - 2 for i, z in enumerate(randoms)]


def source_of(case):
    return smooth(case) if case.map == "equirect" else noise(case)


def save(path, case, data):
    """Version 1.0 of the format, [height][width][channels]."""
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d, %d), }" % (
        DESCR[case.result], case.out_height, case.out_width, case.channels)
    head = head.ljust(117) + "\n"
    count = case.out_height * case.out_width * case.channels
    assert len(data) == count * struct.calcsize(CODES[case.result]), (case.name, len(data), count)
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode("ascii") + data)


# ---- the peers: what each is called, and one case by it -------------------------------------------------
class Torch:
    def __init__(self):
        import torch
        self.torch = torch
        self.version = "torch %s, on the CPU" % torch.__version__

    def image(self, case):
        torch = self.torch
        kind = {"u8": torch.uint8, "f32": torch.float32}[case.source]
        image = torch.frombuffer(bytearray(source_of(case).tobytes()), dtype=kind)
        image = image.reshape(1, case.height, case.width, case.channels).permute(0, 3, 1, 2).contiguous()
        if case.store != "u8" and case.source == "u8":
            image = image.float() / 255
        return image

    def resize(self, case, image):
        size = (case.out_height, case.out_width)
        interpolate = self.torch.nn.functional.interpolate
        if case.filter == "nearest":
            return interpolate(image, size=size, mode="nearest-exact" if case.convention == "native" else "nearest")
        mode = "bicubic" if "bicubic" in case.filter else "bilinear"
        whole = case.store == "u8" and mode == "bicubic"  # else cut to bytes between across and down, too
        result = interpolate(image.float() if whole else image, size=size, mode=mode, align_corners=False,
                             antialias="area" in case.filter)
        return result.round().clamp(0, 255) if whole else result

    def run(self, case):
        torch = self.torch
        result = self.resize(case, self.image(case))
        if case.store == "norm":
            result = (result - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
        flat = result.permute(0, 2, 3, 1).contiguous().to(torch.uint8 if case.store == "u8" else torch.float32)
        return array.array(CODES[case.result], flat.flatten().tolist()).tobytes()


class TorchVision(Torch):
    def __init__(self):
        super().__init__()
        import torchvision
        self.transforms = torchvision.transforms
        self.version = "torchvision %s, %s" % (torchvision.__version__, self.version)

    def resize(self, case, image):
        mode = {"bilinear": ("bilinear", False), "area": ("bilinear", True), "bicubic-area": ("bicubic", True),
                "bicubic": ("bicubic", False)}[case.filter]
        resize = self.transforms.Resize(int(case.rest[0]), self.transforms.InterpolationMode(mode[0]),
                                        antialias=mode[1])
        return self.transforms.CenterCrop((case.out_height, case.out_width))(resize(image))


class OpenCV:
    def __init__(self):
        import cv2
        import numpy
        self.cv2, self.numpy = cv2, numpy
        self.version = "opencv %s, numpy %s" % (cv2.__version__, numpy.__version__)

    def image(self, case):
        kind = {"u8": "uint8", "u16": "uint16", "f32": "float32"}[case.source]
        image = self.numpy.frombuffer(source_of(case).tobytes(), dtype=kind)
        return image.reshape(case.height, case.width, case.channels)

    def run(self, case):
        cv2, numpy = self.cv2, self.numpy
        image, size = self.image(case), (case.out_width, case.out_height)
        flag = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA,
                "bicubic": cv2.INTER_CUBIC}[case.filter]
        if case.map == "resize":
            if case.convention == "native":
                flag = cv2.INTER_NEAREST_EXACT
            result = cv2.resize(image, size, interpolation=flag)
        elif case.map == "affine":
            matrix = numpy.array(case.rest).reshape(2, 3)
            result = cv2.warpAffine(image, matrix, size, flags=flag | cv2.WARP_INVERSE_MAP)
        elif case.map == "table":
            table = numpy.array(table_of(case), dtype=numpy.float32).reshape(case.out_height, case.out_width, 2)
            result = cv2.remap(image, table[..., 0], table[..., 1], flag)
        else:
            result = self.equirect(case, image, flag)
        return result.astype(numpy.float32 if case.result == "f32" else numpy.uint8).tobytes()

    def equirect(self, case, image, flag):
        """A map by our own formula through remap, the source made to go around."""
        numpy, width, height = self.numpy, case.width, case.height
        yaw, pitch, roll, hfov, vfov = numpy.radians(case.rest)
        x = ((2 * numpy.arange(case.out_width) + 1) / case.out_width - 1) * numpy.tan(hfov / 2)
        y = ((2 * numpy.arange(case.out_height) + 1) / case.out_height - 1) * numpy.tan(vfov / 2)
        x, y = numpy.meshgrid(x, y)
        z = numpy.ones_like(x)
        x, y = x * numpy.cos(roll) - y * numpy.sin(roll), x * numpy.sin(roll) + y * numpy.cos(roll)
        y, z = y * numpy.cos(pitch) - z * numpy.sin(pitch), y * numpy.sin(pitch) + z * numpy.cos(pitch)
        x, z = x * numpy.cos(yaw) + z * numpy.sin(yaw), z * numpy.cos(yaw) - x * numpy.sin(yaw)
        u = (numpy.arctan2(x, z) / (2 * numpy.pi) + 0.5) * width - 0.5
        v = (numpy.arctan2(y, numpy.hypot(x, z)) / numpy.pi + 0.5) * height - 0.5
        image = numpy.concatenate([numpy.roll(image[:1], width // 2, 1), image,
                                   numpy.roll(image[-1:], width // 2, 1)])
        image = numpy.concatenate([image[:, -1:], image, image[:, :1]], 1)
        return self.cv2.remap(image, (u + 1).astype("float32"), (v + 1).astype("float32"), flag)


class Ultralytics(OpenCV):
    def __init__(self):
        super().__init__()
        from importlib import metadata
        from ultralytics.data.augment import LetterBox
        self.letterbox = LetterBox
        self.version = "ultralytics %s, through %s" % (metadata.version("ultralytics"), self.version)

    def run(self, case):
        box = self.letterbox((case.out_height, case.out_width), auto=False, scaleup=True, center=True,
                             padding_value=int(case.rest[0]))
        result = box(image=self.image(case))
        if case.store == "norm":
            result = (result / self.numpy.float32(255) - self.numpy.float32(MEAN)) / self.numpy.float32(STD)
        return result.astype(self.numpy.float32 if case.result == "f32" else self.numpy.uint8).tobytes()


class Py360:
    def __init__(self):
        from importlib import metadata
        import numpy
        import py360convert
        self.numpy, self.py360 = numpy, py360convert
        self.version = "py360convert %s, through %s" % (metadata.version("py360convert"), OpenCV().version)

    def run(self, case):
        image = self.numpy.frombuffer(source_of(case).tobytes(), dtype="uint8")
        yaw, pitch, roll, hfov, vfov = case.rest
        result = self.py360.e2p(image.reshape(case.height, case.width, 3), fov_deg=(hfov, vfov), u_deg=yaw,
                                v_deg=pitch, in_rot_deg=roll, out_hw=(case.out_height, case.out_width),
                                mode="bilinear")
        return result.tobytes()


class FFmpeg:
    def __init__(self):
        text = subprocess.run(["ffmpeg", "-version"], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.version = " ".join(text.split()[:3])

    def run(self, case):
        view = "v360=e:flat:yaw=%g:pitch=%g:roll=%g:h_fov=%g:v_fov=%g:w=%d:h=%d:interp=line" % (
            *case.rest, case.out_width, case.out_height)
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24"]
        command = ["ffmpeg", "-v", "error", *raw, "-s", "%dx%d" % (case.width, case.height), "-i", "-",
                   "-vf", "format=gbrp,%s,format=rgb24" % view, *raw, "-"]
        return subprocess.run(command, input=source_of(case).tobytes(), stdout=subprocess.PIPE, check=True).stdout


PEERS = {"opencv": OpenCV, "torch": Torch, "torchvision": TorchVision, "ultralytics": Ultralytics, "ffmpeg": FFmpeg,
         "py360": Py360}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", metavar="PEER")
    parser.add_argument("--out", default=HERE)
    options = parser.parse_args()
    cases = read_cases(os.path.join(HERE, "cases.txt"))
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "versions.txt")
    versions = {}
    if os.path.exists(path):
        with open(path, encoding="ascii") as text:
            versions = dict(line.strip().split(": ", 1) for line in text)
    for name in options.peers or sorted(PEERS):
        try:
            peer = PEERS[name]()
        except (ImportError, OSError) as problem:
            print("%s: not here (%s)" % (name, problem))
            continue
        for case in cases:
            if case.peer == name:
                save(os.path.join(options.out, case.name + ".npy"), case, peer.run(case))
        versions[name] = peer.version
        print("%s: %d cases" % (peer.version, sum(case.peer == name for case in cases)))
    with open(path, "w", encoding="ascii") as text:
        text.writelines("%s: %s\n" % line for line in sorted(versions.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
