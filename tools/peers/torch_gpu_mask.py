#!/usr/bin/env python3
"""tools/peers/torch_gpu_mask.py -- the cases of bench/gpu/mask.cu that PyTorch has, on the same GPU.

    python3 tools/peers/torch_gpu_mask.py

Times by events around 20 calls, medians of 21, inputs in turns over more than the last cache. 77 without PyTorch or GPU.
"""
import statistics
import sys

try:
    import torch
    import torch.nn.functional as functional
except ImportError:
    print("no PyTorch")
    sys.exit(77)


def measure(name, inputs, call, together=20, samples=21):
    times = []
    turn = 0
    for sample in range(-2, samples):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(together):
            call(inputs[turn % len(inputs)])
            turn += 1
        end.record()
        end.synchronize()
        if sample >= 0:
            times.append(begin.elapsed_time(end) * 1000 / together)
    print("%-52s %9.2f us  (%.2f .. %.2f)" % ("torch: " + name, statistics.median(times), min(times), max(times)), flush=True)


def turns(shape, dtype=torch.float32):
    n = max(2, (256 << 20) // (torch.empty(0, dtype=dtype).element_size() * torch.Size(shape).numel()) + 2)
    if dtype == torch.uint8:
        return [torch.randint(0, 256, shape, dtype=dtype, device="cuda") for _ in range(min(n, 64))]
    return [torch.randn(shape, device="cuda").to(dtype) for _ in range(min(n, 64))]


def dilated(mask, size):
    return functional.max_pool2d(mask, size, stride=1, padding=size // 2)


def eroded(mask, size):
    return -functional.max_pool2d(-mask, size, stride=1, padding=size // 2)


def enlarged(scores):
    return functional.interpolate(scores, size=(1080, 1920), mode="bilinear", align_corners=False)


def cases():
    def byte_argmax(scores):
        return scores.argmax(1).to(torch.uint8)

    big = turns((8, 21, 512, 512))
    measure("argmax 8 x 21 x 512 x 512 f32 CHW", big, lambda scores: scores.argmax(1))
    measure("argmax 8 x 21 x 512 x 512 f32 CHW to u8", big, byte_argmax)
    measure("argmax 8 x 21 x 512 x 512 f16 CHW to u8", turns((8, 21, 512, 512), torch.float16), byte_argmax)
    measure("argmax 8 x 512 x 512 x 21 f32 HWC to u8", turns((8, 512, 512, 21)), lambda s: s.argmax(3).to(torch.uint8))
    small = turns((1, 21, 128, 128))
    measure("interpolate + argmax to 1080p f32", small, lambda scores: enlarged(scores).argmax(1))
    measure("interpolate + argmax to 1080p f32 to u8", small, lambda scores: byte_argmax(enlarged(scores)))
    measure("interpolate + argmax to 1080p f16 to u8", turns((1, 21, 128, 128), torch.float16),
            lambda scores: byte_argmax(enlarged(scores)))
    floats = turns((16, 1, 1080, 1920))
    measure("threshold, 16 x 1080p f32", floats, lambda x: (x > 0.25).to(torch.uint8) * 255)
    halves = turns((16, 1, 1080, 1920), torch.float16)
    measure("open 3 x 3, 16 x 1080p (f16)", halves, lambda x: dilated(eroded(x, 3), 3), 4)
    measure("close 5 x 5, 16 x 1080p (f16)", halves, lambda x: eroded(dilated(x, 5), 5), 4)
    channels = turns((4, 64, 512, 512))
    scales, zeros = torch.rand(64, device="cuda") / 64 + 0.01, torch.zeros(64, dtype=torch.int64, device="cuda")
    measure("quantise, 4 x 64 x 512 x 512 f32 NCHW", channels,
            lambda x: torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8), 4)
    measure("quantise, the same by arithmetic", channels,
            lambda x: (x / scales.view(1, 64, 1, 1)).round().clamp(-128, 127).to(torch.int8), 4)
    measure("ranges, 4 x 64 x 512 x 512 f32 NCHW", channels, lambda x: (x.amin((0, 2, 3)), x.amax((0, 2, 3))), 4)


def main():
    if not torch.cuda.is_available():
        print("no GPU")
        return 77
    print("PyTorch %s, %s" % (torch.__version__, torch.cuda.get_device_name()))
    with torch.no_grad():
        cases()
    return 0


if __name__ == "__main__":
    sys.exit(main())
