#!/usr/bin/env python3
"""torch_gpu.py -- the same work by PyTorch on a GPU: grid_sample with ready grids, and the tensor of a frame by
torch.compile. One line a row and, with a file name, one JSON object a line.

    python3 tools/peers/torch_gpu.py [FILE.json]

77 without PyTorch or GPU.
"""
import json
import math
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("no PyTorch")
    sys.exit(77)

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def measure(name, launch, together, out, samples=15):
    """Microseconds of one launch by events around several, inputs in turns; median, least, most."""
    times = []
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for sample in range(-3, samples):
        begin.record()
        for i in range(together):
            launch(i)
        end.record()
        end.synchronize()
        if sample >= 0:
            times.append(1000.0 * begin.elapsed_time(end) / together)
    times.sort()
    row = {"case": name, "us": times[len(times) // 2], "least_us": times[0], "most_us": times[-1]}
    print("%-52s %9.2f us  (%.2f .. %.2f)" % (name, row["us"], row["least_us"], row["most_us"]), flush=True)
    if out:
        out.write(json.dumps(row) + "\n")


def view_grids(width, height):
    """Grids of 8 level views of 90 degrees, -1..1 as align_corners=False has them."""
    a = (2 * torch.arange(width, device="cuda") + 1 - width) / width
    b = (2 * torch.arange(height, device="cuda") + 1 - height) / width
    b, a = torch.meshgrid(b, a, indexing="ij")
    grids = []
    for view in range(8):
        u = torch.atan(a) / math.pi + view / 4.0
        grids.append(torch.stack(((u + 1) % 2 - 1, 2 * torch.atan2(b, torch.hypot(a, torch.ones_like(a))) / math.pi), -1))
    return torch.stack(grids)


def bench_views(out):
    sources = [torch.randint(0, 256, (1, 3, 3840, 7680), device="cuda", dtype=torch.uint8).half() for _ in range(3)]
    grids = view_grids(1920, 1080)
    halves = grids.half()
    mean = torch.tensor(MEAN, device="cuda").view(1, 3, 1, 1) * 255
    scale = 1 / (torch.tensor(DEVIATION, device="cuda").view(1, 3, 1, 1) * 255)
    mean, scale = mean.half(), scale.half()
    floats = [source.float() for source in sources]

    def sample(i):
        return F.grid_sample(floats[i % 3].expand(8, -1, -1, -1), grids, mode="bilinear", align_corners=False)

    def tensor(i):
        views = F.grid_sample(sources[i % 3].expand(8, -1, -1, -1), halves, mode="bilinear", align_corners=False)
        return (views - mean) * scale

    measure("torch: grid_sample f32 planes -> 8 views f32", sample, 6, out)
    measure("torch: grid_sample f16 planes -> 8 views f16, normalised", tensor, 6, out)


def frame_to_tensor(frames):
    """BGR bytes to normalised RGB planes."""
    mean = torch.tensor(MEAN, device=frames.device).view(1, 3, 1, 1)
    deviation = torch.tensor(DEVIATION, device=frames.device).view(1, 3, 1, 1)
    planes = frames.permute(0, 3, 1, 2).flip(1).float() / 255
    return (F.interpolate(planes, size=(512, 512), mode="bilinear", align_corners=False) - mean) / deviation


def bench_tensors(out):
    frames = [torch.randint(0, 256, (32, 1080, 1920, 3), device="cuda", dtype=torch.uint8) for _ in range(2)]
    single = [frames[0][i:i + 1].contiguous() for i in range(32)]
    measure("torch: eager, 32 x 1080p bgr8 -> 512^2 f32 chw", lambda i: frame_to_tensor(frames[i % 2]), 4, out)
    compiled = torch.compile(frame_to_tensor, dynamic=False)
    try:
        measure("torch: compile, 32 x 1080p bgr8 -> 512^2 f32 chw", lambda i: compiled(frames[i % 2]), 4, out)
        measure("torch: compile, 1 x 1080p bgr8 -> 512^2 f32 chw", lambda i: compiled(single[i % 32]), 32, out)
    except Exception as error:  # no compiler there
        print("torch: compile: %s" % str(error).split("\n")[0])


def main():
    if not torch.cuda.is_available():
        print("no GPU")
        return 77
    out = open(sys.argv[1], "w") if len(sys.argv) > 1 else None
    print("torch %s, %s" % (torch.__version__, torch.cuda.get_device_name()))
    with torch.inference_mode():
        bench_views(out)
        bench_tensors(out)
    if out:
        out.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
