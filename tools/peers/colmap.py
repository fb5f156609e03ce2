#!/usr/bin/env python3
"""tools/peers/colmap.py -- does COLMAP take what `gpustage reproject --layout colmap` writes, as it lies there?

    python3 tools/peers/colmap.py [--build build]     exit status 0; 1: it does not; 77: there is no pycolmap

Makes 4 panoramas of blocks and a mask for each, reprojects them to 8 views, and has pycolmap (3.12 or later; older ones
know no rigs) do what the three commands of docs/layouts.md do: features with masks, then the rig.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

WIDTH, HEIGHT, BLOCK, N_FRAMES, N_VIEWS, SIDE = 1024, 512, 8, 4, 8, 400
KEPT = 300 # rows of a panorama, from above


def write_panorama(path, seed):
    """Blocks of random gray, a little of each in common, so that there are features everywhere."""
    chance = random.Random(seed)
    rows = []
    for _ in range(HEIGHT // BLOCK):
        row = b"".join(bytes([chance.randrange(256)] * 3) * BLOCK for _ in range(WIDTH // BLOCK))
        rows += [row] * BLOCK
    with open(path, "wb") as stream:
        stream.write(b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT) + b"".join(rows))


def make(command, folder):
    for name in ("in", "keep"):
        os.mkdir(os.path.join(folder, name))
    for i in range(N_FRAMES):
        write_panorama(os.path.join(folder, "in", "pano%d.ppm" % i), i)
        with open(os.path.join(folder, "keep", "pano%d.png" % i), "wb") as stream: # told by its contents
            stream.write(b"P5\n%d %d\n255\n" % (WIDTH, HEIGHT) + b"\xff" * WIDTH * KEPT + bytes(WIDTH * (HEIGHT - KEPT)))
    subprocess.run([command, "reproject", os.path.join(folder, "in"), "-o", os.path.join(folder, "out"), "--layout",
                    "colmap", "--views", str(N_VIEWS), "--size", "%dx%d" % (SIDE, SIDE), "--mask",
                    os.path.join(folder, "keep"), "--mask-out", "--quiet"], check=True)
    return os.path.join(folder, "out")


def open_database(pycolmap, path):
    try:
        return pycolmap.Database.open(path)
    except TypeError: # up to 3.12 it is a method
        return pycolmap.Database(path)


def check_features(pycolmap, database, masks):
    """Every image has features, and none where its mask is black."""
    import numpy
    from PIL import Image
    n_all, n_dropped = 0, 0
    for image in database.read_all_images():
        with Image.open(os.path.join(masks, image.name + ".png")) as picture:
            mask = numpy.asarray(picture)
        points = database.read_keypoints(image.image_id)
        assert len(points) > 20, "%s has %d features" % (image.name, len(points))
        x, y = points[:, 0].astype(int), points[:, 1].astype(int)
        n_all += len(points)
        n_dropped += int((mask[y, x] == 0).sum())
        assert (mask == 0).any() and (mask != 0).any()
    assert n_dropped == 0, "%d of %d features lie where nothing is kept" % (n_dropped, n_all)
    return n_all


def check_rig(pycolmap, database):
    rigs, cameras = database.read_all_rigs(), database.read_all_cameras()
    frames, images = database.read_all_frames(), database.read_all_images()
    found = (len(rigs), len(cameras), len(frames), len(images))
    assert found == (1, N_VIEWS, N_FRAMES, N_FRAMES * N_VIEWS), "rigs, cameras, frames, images: %s" % (found,)
    for camera in cameras:
        assert (camera.model.name, list(camera.params)) == ("PINHOLE", [SIDE / 2] * 4), camera
    for frame in frames:
        names = sorted(database.read_image(data.id).name for data in frame.data_ids)
        stem = names[0].split("/")[1]
        assert names == ["v%02d/%s" % (v, stem) for v in range(N_VIEWS)], names
    assert rigs[0].num_sensors() == N_VIEWS


def main():
    parser = argparse.ArgumentParser(description="Has pycolmap read a directory of --layout colmap.")
    parser.add_argument("--build", default="build")
    build = parser.parse_args().build
    try:
        import pycolmap
    except ImportError as problem:
        print("no pycolmap: %s" % problem)
        return 77
    if not hasattr(pycolmap, "apply_rig_config"):
        print("pycolmap %s knows no rigs: 3.12 or later is needed" % pycolmap.__version__)
        return 77
    with tempfile.TemporaryDirectory(prefix="gpustage-colmap-") as folder:
        out = make(os.path.join(build, "gpustage"), folder)
        path = os.path.join(folder, "database.db")
        reader = pycolmap.ImageReaderOptions()
        reader.mask_path = os.path.join(out, "masks")
        pycolmap.extract_features(path, os.path.join(out, "images"), camera_mode=pycolmap.CameraMode.PER_FOLDER,
                                  reader_options=reader, device=pycolmap.Device.cpu)
        database = open_database(pycolmap, path)
        n_features = check_features(pycolmap, database, os.path.join(out, "masks"))
        began = sorted({float(camera.params[0]) for camera in database.read_all_cameras()})
        pycolmap.apply_rig_config(pycolmap.read_rig_config(os.path.join(out, "rig_config.json")), database)
        check_rig(pycolmap, database)
        print("pycolmap %s: 1 rig, %d cameras, %d frames, %d images; %d features, none under a mask; focal length %s, by "
              "the rig %g" % (pycolmap.__version__, N_VIEWS, N_FRAMES, N_VIEWS * N_FRAMES, n_features, began, SIDE / 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
