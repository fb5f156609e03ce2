#!/usr/bin/env python3
"""amalgamate.py -- makes gpustage.h from core/, backends/ and kernels/.

    python3 amalgamate.py            writes gpustage.h
    python3 amalgamate.py --check    fails when gpustage.h is not, byte for byte, what this makes
    python3 amalgamate.py --line     writes gpustage.h with #line, so that a debugger shows the split sources
    -o FILE                          another file than gpustage.h

The manifest below is the only order, and every file of the three folders stands in it. Nothing but those files goes
into the output: no date, host, user, commit or path of this machine. Needs Python 3.9 or later, and no git.
"""
import argparse
import hashlib
import os
import re
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("core", "backends", "kernels")
MAX_COLUMNS = 120

# The header's opening comment.
PROSE = "core/preamble.txt"

# Feature macros: ahead of any system header, and only where the implementation is compiled.
PLATFORM = "core/base/platform_internal.h"

# What users see, in the order in which they read it.
PUBLIC = [
    "core/base/config.h",
    "core/base/base.h",
    "core/device/context.h",
    "core/device/device.h",
    "core/device/stream.h",
    "core/memory/budget.h",
    "core/memory/pool.h",
    "core/memory/ring.h",
    "core/files/reader.h",
    "core/files/folder.h",
    "core/files/target.h",
    "core/machine/measure.h",
    "core/machine/find_batch.h",
    "core/machine/tier.h",
    "kernels/image/image.h",
    "kernels/warp/warp.h",
    "kernels/mask/mask.h",
    "kernels/mask/mask_launch.h",
    "kernels/mask/mask_op.h",
    "kernels/quantise/quantise.h",
    "core/device/enqueue.h",
    "core/device/graph.h",
    "core/device/dlpack.h",
    "core/pictures/pictures.h",
    "core/pictures/jpeg.h",
    "core/pictures/metadata.h",
    "core/pictures/placement.h",
    "core/pictures/decode.h",
    "core/prefetch/prefetch.h",
    "core/stats/profile.h",
    "core/tuning/tuner.h",
    "core/items/item.h",
    "core/items/stage.h",
    "core/pipeline/pipeline.h",
    "core/pipeline/frame_source.h",
    "core/jobs/jobs.h",
]

# The implementation: internal headers first, each after what it needs, then the code from the ground up.
PRIVATE = [
    "core/base/compiler_internal.h",
    "core/base/os_internal.h",
    "core/base/base_internal.h",
    "core/base/library_internal.h",
    "backends/backend.h",
    "backends/operation_internal.h",
    "backends/params_internal.h",
    "backends/gpu_runtime_internal.h",
    "backends/gpu_context_internal.h",
    "backends/gpu_internal.h",
    "backends/sim_internal.h",
    "kernels/exact/exact_internal.h",
    "kernels/exact/half_internal.h",
    "kernels/simd/simd_internal.h",
    "kernels/launch/launch_internal.h",
    "kernels/warp/warp_internal.h",
    "kernels/warp/warp_map_internal.h",
    "kernels/warp/warp_footprint_internal.h",
    "kernels/warp/warp_area_internal.h",
    "kernels/warp/warp_yuv_internal.h",
    "kernels/warp/warp_jpeg_internal.h",
    "kernels/warp/warp_wide_internal.h",
    "kernels/warp/warp_pixel_internal.h",
    "kernels/warp/warp_hot_area_internal.h",
    "kernels/warp/warp_hot_internal.h",
    "kernels/warp/warp_rows_internal.h",
    "kernels/warp/warp_gather_rows_internal.h",
    "kernels/warp/warp_yuv_rows_internal.h",
    "kernels/warp/warp_wide_rows_internal.h",
    "kernels/warp/warp_area_rows_internal.h",
    "kernels/warp/warp_footprint_rows_internal.h",
    "kernels/mask/mask_internal.h",
    "kernels/mask/mask_pixel_internal.h",
    "kernels/mask/mask_rows_internal.h",
    "kernels/mask/mask_window_rows_internal.h",
    "kernels/mask/mask_time_rows_internal.h",
    "kernels/mask/mask_launch_internal.h",
    "kernels/quantise/quantise_internal.h",
    "kernels/quantise/quantise_rows_internal.h",
    "core/base/pin_internal.h",
    "core/tuning/tuner_internal.h",
    "core/device/commands_internal.h",
    "core/device/device_internal.h",
    "core/device/graph_internal.h",
    "core/device/context_internal.h",
    "core/memory/memory_internal.h",
    "core/memory/pool_internal.h",
    "core/memory/ring_depth_internal.h",
    "core/memory/ring_state_internal.h",
    "core/memory/ring_internal.h",
    "core/stats/profile_internal.h",
    "core/stats/timing_internal.h",
    "core/tuning/window_internal.h",
    "core/tuning/guard_internal.h",
    "core/machine/find_batch_internal.h",
    "core/tuning/batch_internal.h",
    "core/tuning/codec_choice_internal.h",
    "core/workers/scheduler_internal.h",
    "core/files/io_internal.h",
    "core/base/os_direct_internal.h",
    "core/files/reader_internal.h",
    "core/files/target_internal.h",
    "core/files/writer_internal.h",
    "core/files/folder_internal.h",
    "core/pictures/pictures_internal.h",
    "core/pictures/jpeg_internal.h",
    "core/pictures/decode_internal.h",
    "core/prefetch/prefetch_policy_internal.h",
    "core/prefetch/prefetch_internal.h",
    "core/pictures/metadata_internal.h",
    "core/pictures/nvjpeg_internal.h",
    "core/items/plan_internal.h",
    "core/items/item_internal.h",
    "core/items/counts_internal.h",
    "core/items/grant_internal.h",
    "core/items/pipeline_internal.h",
    "core/steps/steps_internal.h",
    "core/steps/call_internal.h",
    "core/steps/engines_internal.h",
    "core/steps/device_internal.h",
    "core/pipeline/engine_internal.h",
    "core/jobs/jobs_internal.h",
    "core/base/os.c",
    "core/base/os_limits.c",
    "core/base/os_posix.c",
    "core/base/os_posix_files.c",
    "core/base/os_windows.c",
    "core/base/base.c",
    "core/base/library.c",
    "core/base/os_direct.c",
    "core/base/os_uring.c",
    "kernels/simd/simd.c",
    "kernels/launch/team.c",
    "kernels/launch/launch.c",
    "kernels/exact/exact.c",
    "kernels/image/image.c",
    "kernels/image/orient.c",
    "kernels/warp/warp_cpu.c",
    "kernels/warp/warp_plan.c",
    "kernels/warp/warp_check.c",
    "kernels/warp/warp.c",
    "kernels/mask/mask_cpu.c",
    "kernels/mask/mask.c",
    "kernels/mask/mask_box.c",
    "kernels/mask/mask_window_cpu.c",
    "kernels/mask/mask_window.c",
    "kernels/mask/mask_launch.c",
    "kernels/mask/mask_time_cpu.c",
    "kernels/mask/mask_time.c",
    "kernels/mask/mask_op.c",
    "kernels/quantise/quantise.c",
    "kernels/quantise/quantise_launch.c",
    "kernels/quantise/calibration.c",
    "backends/kernel_lists.c",
    "backends/cpu.c",
    "backends/params.c",
    "backends/sim_params.c",
    "backends/sim_stream.c",
    "backends/sim.c",
    "backends/list.c",
    "core/stats/profile.c",
    "core/tuning/tuner.c",
    "core/tuning/tuner_text.c",
    "core/stats/timing.c",
    "core/tuning/window.c",
    "core/tuning/guard.c",
    "core/tuning/batch.c",
    "core/tuning/codec_choice.c",
    "core/base/pin.c",
    "core/workers/scheduler.c",
    "core/device/devices.c",
    "core/device/device.c",
    "core/device/device_cache.c",
    "core/device/stream.c",
    "core/device/copy.c",
    "core/device/commands.c",
    "core/device/graph.c",
    "core/device/graph_gate.c",
    "core/device/graph_cache.c",
    "core/device/enqueue.c",
    "core/device/dlpack.c",
    "core/machine/tier.c",
    "core/files/io.c",
    "core/memory/blocks.c",
    "core/memory/caches.c",
    "core/memory/budget.c",
    "core/memory/dump.c",
    "core/memory/memory.c",
    "core/memory/device_memory.c",
    "core/memory/pool.c",
    "core/memory/ring_depth.c",
    "core/memory/ring_free.c",
    "core/memory/ring_memory.c",
    "core/memory/ring_desc.c",
    "core/memory/ring_adapt.c",
    "core/memory/ring_slot.c",
    "core/memory/ring_wait.c",
    "core/memory/ring_event.c",
    "core/memory/ring_spsc.c",
    "core/memory/ring_mpmc.c",
    "core/memory/ring_reader.c",
    "core/memory/ring.c",
    "core/files/reader_kinds.c",
    "core/files/reader.c",
    "core/machine/measure.c",
    "core/machine/find_batch.c",
    "core/files/target.c",
    "core/files/writer.c",
    "core/files/folder.c",
    "core/pictures/rules.c",
    "core/pictures/names.c",
    "core/pictures/plain.c",
    "core/pictures/pnm.c",
    "core/pictures/npy.c",
    "core/pictures/jpeg_header.c",
    "core/pictures/jpeg_mend.c",
    "core/pictures/jpeg.c",
    "core/pictures/jpeg_encode.c",
    "core/pictures/nvjpeg.c",
    "core/pictures/pictures.c",
    "core/pictures/exif.c",
    "core/pictures/xmp.c",
    "core/pictures/unpack.c",
    "core/pictures/metadata.c",
    "core/pictures/placement.c",
    "core/pictures/decode.c",
    "core/prefetch/prefetch_policy.c",
    "core/prefetch/prefetch_cache.c",
    "core/prefetch/prefetch_load.c",
    "core/prefetch/prefetch.c",
    "core/items/stage.c",
    "core/items/callback.c",
    "core/items/counts.c",
    "core/items/state.c",
    "core/items/grant.c",
    "core/items/device_grant.c",
    "core/items/set.c",
    "core/items/item.c",
    "core/items/yield.c",
    "core/steps/call.c",
    "core/steps/task.c",
    "core/steps/placing.c",
    "core/steps/common.c",
    "core/steps/kinds.c",
    "core/steps/codec.c",
    "core/steps/engines.c",
    "core/steps/state.c",
    "core/steps/graphs.c",
    "core/steps/files.c",
    "core/steps/host.c",
    "core/steps/decode.c",
    "core/steps/encode.c",
    "core/steps/device_times.c",
    "core/steps/launch.c",
    "core/steps/device.c",
    "core/steps/finish.c",
    "core/pipeline/plan.c",
    "core/pipeline/queue.c",
    "core/pipeline/items.c",
    "core/pipeline/run.c",
    "core/pipeline/tune.c",
    "core/pipeline/ends.c",
    "core/pipeline/threads.c",
    "core/pipeline/push.c",
    "core/pipeline/report.c",
    "core/pipeline/report_paths.c",
    "core/pipeline/desc.c",
    "core/pipeline/pipeline.c",
    "core/pipeline/context.c",
    "core/pipeline/frame_source.c",
    "core/jobs/inputs.c",
    "core/jobs/stack.c",
    "core/jobs/frame_mask.c",
    "core/jobs/view_metadata.c",
    "core/jobs/files_job.c",
    "core/jobs/jobs.c",
]

# What nvcc or hipcc compiles: last, so that it sees all of the host's side. Each guards itself with GPSTI_GPU_UNIT.
DEVICE = [
    "backends/gpu_clock.cu.h",
    "backends/gpu_device.cu.h",
    "backends/gpu_stream.cu.h",
    "backends/gpu_graph.cu.h",
    "backends/gpu.cu.h",
    "kernels/launch/launch.cu.h",
    "kernels/warp/warp_block.cu.h",
    "kernels/warp/warp_area.cu.h",
    "kernels/warp/warp_steps.cu.h",
    "kernels/warp/warp_yuv.cu.h",
    "kernels/warp/warp_level.cu.h",
    "kernels/warp/warp_hot.cu.h",
    "kernels/warp/warp.cu.h",
    "kernels/mask/mask_argmax.cu.h",
    "kernels/mask/mask_window.cu.h",
    "kernels/mask/mask_box.cu.h",
    "kernels/mask/mask.cu.h",
    "kernels/mask/mask_time.cu.h",
    "kernels/quantise/quantise.cu.h",
]

# A file with this comment is a template: its text is put in at every include instead of once.
TEMPLATE_MARK = "/* amalgamate: template */"

PUBLIC_SYSTEM_HEADERS = {"stdbool.h", "stddef.h", "stdint.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
BANNER_COLUMNS = 80


class Refused(Exception):
    """The sources break a rule; the message names the file and the line."""


class Output:
    """Lines of text, each with the file and line it came from (None where this script made it)."""

    def __init__(self):
        self.lines = []
        self.origins = []

    def add(self, text, path=None, number=0):
        if text == "" and self.lines and self.lines[-1] == "":
            return  # dropped includes leave runs of blank lines behind
        self.lines.append(text)
        self.origins.append((path, number))

    def text(self, with_lines=False):
        result = []
        previous = (None, 0)
        for line, origin in zip(self.lines, self.origins):
            path, number = origin
            if with_lines and path and path.endswith((".c", ".h")) and origin != (previous[0], previous[1] + 1):
                result.append('#line %d "%s"' % (number, path))
            previous = origin
            result.append(line)
        return "\n".join(result) + "\n"


def load(path):
    """The lines of a source file, checked byte by byte."""
    try:
        with open(os.path.join(ROOT, path), "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise Refused("%s: stands in the manifest of amalgamate.py: %s" % (path, error.strerror)) from error
    if not data.endswith(b"\n"):
        raise Refused("%s: must end with a newline" % path)
    lines = data[:-1].split(b"\n")
    for number, line in enumerate(lines, 1):
        for broken, rule in (
            (b"\r" in line, "carriage return: lines end with LF alone"),
            (b"\t" in line, "tab: indent with 4 spaces"),
            (line.endswith(b" "), "blank at the end of the line"),
            (len(line) > MAX_COLUMNS, "wider than %d columns" % MAX_COLUMNS),
            (any(byte > 126 or byte < 32 for byte in line if byte not in b"\r\t"), "byte that is not printable ASCII"),
            (b"/* ==== >>" in line, "section banners are made by amalgamate.py"),
        ):
            if broken:
                raise Refused("%s:%d: %s" % (path, number, rule))
    return data, [line.decode("ascii") for line in lines]


class Sources:
    """Every file of the manifest, and what may be asked of all of them together."""

    def __init__(self):
        self.order = [PROSE, PLATFORM] + PUBLIC + PRIVATE + DEVICE
        self.position = {path: index for index, path in enumerate(self.order)}
        if len(self.position) != len(self.order):
            twice = sorted({path for path in self.order if self.order.count(path) > 1})
            raise Refused("amalgamate.py: %s stands in the manifest twice" % ", ".join(twice))
        self.check_folders()
        digest = hashlib.sha256()
        self.lines = {}
        for path in self.order:
            data, self.lines[path] = load(path)
            digest.update(path.encode("ascii") + b"\0" + data + b"\0")
        self.digest = digest.hexdigest()
        self.templates = {path for path in self.order if TEMPLATE_MARK in self.lines[path]}
        self.version = self.read_version()

    def check_folders(self):
        for folder in FOLDERS:
            for here, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
                for name in sorted(names):
                    path = os.path.relpath(os.path.join(here, name), ROOT).replace(os.sep, "/")
                    if path not in self.position:
                        raise Refused("%s: not in the manifest of amalgamate.py: add it there, in order" % path)

    def read_version(self):
        config = "\n".join(self.lines["core/base/config.h"])
        numbers = []
        for part in ("MAJOR", "MINOR", "PATCH"):
            found = re.search(r"^#define GPST_VERSION_%s (\d+)$" % part, config, re.M)
            if not found:
                raise Refused("core/base/config.h: no line '#define GPST_VERSION_%s N'" % part)
            numbers.append(found.group(1))
        version = ".".join(numbers)
        if '#define GPST_VERSION_TEXT "%s"' % version not in config:
            raise Refused("core/base/config.h: GPST_VERSION_TEXT is not the text of GPST_VERSION, %s" % version)
        return version

    def public_functions(self):
        """Names of the functions that the public headers declare, in order."""
        names = []
        for path in PUBLIC:
            text = re.sub(r"/\*.*?\*/", " ", "\n".join(self.lines[path]), flags=re.S)
            text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
            for declaration in re.findall(r"\bGPST_API\b([^;]*);", text):
                found = re.search(r"\b(gpst_\w+)\s*\(", declaration)
                if not found:
                    raise Refused("%s: GPST_API in front of what is no function: %s" % (path, declaration.strip()))
                names.append(found.group(1))
        return names


    def linked_functions(self):
        """Names of the functions between the host half and the GPU half, in order."""
        names = []
        for path in PRIVATE + DEVICE:
            if not path.endswith(".h"):
                continue
            text = re.sub(r"/\*.*?\*/", " ", "\n".join(self.lines[path]), flags=re.S)
            text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
            for declaration in re.findall(r"\bGPSTI_LINK\b([^;{]*)", text):
                found = re.search(r"\b(gpsti_\w+)\s*\(", declaration)
                if not found:
                    raise Refused("%s: GPSTI_LINK in front of what is no function: %s" % (path, declaration.strip()))
                if found.group(1) not in names:
                    names.append(found.group(1))
        return names


def config_macros(lines):
    """Macros that users may set, as the comment in core/base/config.h lists them."""
    return [found.group(1) for found in (re.match(r"^   (GPUSTAGE_\w+)  ", line) for line in lines) if found]


def banner(path):
    stem = os.path.basename(path).split(".")[0]
    head, tail = "/* ==== >>%s " % stem, " %s */" % path
    return head + "=" * (BANNER_COLUMNS - len(head) - len(tail)) + tail


def add_file(out, sources, path, public=False):
    """One file under its banner, its project includes dropped (they came earlier) or, templates, put in place."""
    out.add("")
    out.add(banner(path))
    for number, line in enumerate(sources.lines[path], 1):
        include = INCLUDE.match(line)
        if line == TEMPLATE_MARK:
            continue
        if not include:
            out.add(line, path, number)
            continue
        where = "%s:%d" % (path, number)
        if include.group(2):
            if public and include.group(2) not in PUBLIC_SYSTEM_HEADERS:
                raise Refused("%s: a public header may include only %s"
                              % (where, ", ".join("<%s>" % name for name in sorted(PUBLIC_SYSTEM_HEADERS))))
            out.add(line, path, number)
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(path), include.group(1))).replace(os.sep, "/")
        if target not in sources.position:
            raise Refused('%s: "%s" is not in the manifest of amalgamate.py' % (where, target))
        if target in sources.templates:
            add_file(out, sources, target)
            out.add("")
        elif sources.position[target] >= sources.position[path]:
            raise Refused('%s: "%s" must come before %s in the manifest of amalgamate.py' % (where, target, path))
        elif public and target not in PUBLIC:
            raise Refused('%s: "%s" is not public' % (where, target))


def add_prose(out, sources):
    lines = sources.lines[PROSE]
    listed = config_macros(sources.lines["core/base/config.h"])
    told = config_macros(lines)
    if sorted(listed) != sorted(told):
        raise Refused("%s: its table of macros and the list in core/base/config.h differ in %s"
                      % (PROSE, ", ".join(sorted(set(listed) ^ set(told)))))
    for number, line in enumerate(lines, 1):
        if "*/" in line:
            raise Refused("%s:%d: ends the comment it is put into" % (PROSE, number))
        line = line.replace("@VERSION@", sources.version).replace("@SHA256@", sources.digest)
        out.add(("/* " if number == 1 else "   " if line else "") + line, PROSE, number)
    if not re.search(r"sha256 [0-9a-f]{64}$", out.lines[1]):
        raise Refused("%s:2: must end with 'sha256 @SHA256@'" % PROSE)
    out.lines[-1] += " */"


def add_prefix(out, sources):
    out.add("")
    out.add("/* GPUSTAGE_PREFIX: every public function under another name at link time (list made by amalgamate.py). */")
    out.add("#if defined(GPUSTAGE_PREFIX)")
    out.add("#define GPSTI_HAS_PREFIX")
    out.add("#define GPSTI_PASTE_TOKENS(a, b) a##b")
    out.add("#define GPSTI_PASTE(a, b) GPSTI_PASTE_TOKENS(a, b)")
    for name in sources.public_functions() + sources.linked_functions():
        out.add("#define %s GPSTI_PASTE(GPUSTAGE_PREFIX, %s)" % (name, name))
    out.add("#endif")


def amalgamate():
    sources = Sources()
    out = Output()
    add_prose(out, sources)
    out.add("")
    out.add("#if defined(GPUSTAGE_IMPLEMENTATION) || defined(GPUSTAGE_GPU_IMPLEMENTATION)")
    add_file(out, sources, PLATFORM)
    out.add("#endif")
    out.add("")
    out.add("#if defined(GPUSTAGE_H) && defined(GPUSTAGE_PREFIX) && !defined(GPSTI_HAS_PREFIX)")
    out.add('#error "GPUSTAGE_PREFIX: define it before gpustage.h is included for the first time"')
    out.add("#endif")
    out.add("#ifndef GPUSTAGE_H")
    out.add("#define GPUSTAGE_H")
    for path in PUBLIC:
        add_file(out, sources, path, public=True)
        if path == "core/base/config.h":
            add_prefix(out, sources)
    out.add("")
    out.add("/* ---- the public part ends here: what follows is the implementation ---- */")
    out.add("#endif /* GPUSTAGE_H */")
    out.add("")
    out.add("/* Stop here if you only want the API: what follows is the implementation. */")
    out.add("#if (defined(GPUSTAGE_IMPLEMENTATION) || defined(GPUSTAGE_GPU_IMPLEMENTATION)) && !defined(GPSTI_IMPLEMENTED)")
    out.add("#define GPSTI_IMPLEMENTED")
    out.add('#define GPSTI_SOURCE_ID "%s"' % sources.digest[:32])
    files = [path for path in PRIVATE if path not in sources.templates]
    for path in files:
        if path.endswith(".h"):
            add_file(out, sources, path)
    out.add("")
    out.add("#if defined(GPUSTAGE_IMPLEMENTATION)")
    for path in files:
        if not path.endswith(".h"):
            add_file(out, sources, path)
    out.add("")
    out.add("#endif /* GPUSTAGE_IMPLEMENTATION */")
    for path in DEVICE:
        add_file(out, sources, path)
    out.add("")
    out.add("#endif /* GPUSTAGE_IMPLEMENTATION || GPUSTAGE_GPU_IMPLEMENTATION */")
    return out


def check(out, target):
    try:
        with open(target, "rb") as stream:
            there = stream.read()
    except OSError as error:
        return "%s: %s: run python3 amalgamate.py" % (os.path.basename(target), error.strerror)
    if there == out.text().encode("ascii"):
        return None
    lines = there.decode("ascii", "replace").split("\n")
    wanted = out.lines + [""]
    # Line 2 holds the digest of all sources: it differs whenever anything else does, so look for the rest first.
    numbers = [n for n in range(max(len(lines), len(wanted))) if lines[n:n + 1] != wanted[n:n + 1]]
    number = next((n for n in numbers if n != 1), numbers[0])
    path, line = out.origins[number] if number < len(out.origins) else (None, 0)
    name = os.path.basename(target)
    where = "%s:%d" % (path, line) if path and number != 1 else "the sources under core/, backends/, kernels/"
    return ("%s:%d: is not what amalgamate.py makes from %s\n"
            "%s is generated: edit %s, then run: python3 amalgamate.py"
            % (name, number + 1, where, name, path if path and number != 1 else "those"))


def write_if_changed(target, data):
    """Leaves an identical file alone, so that make has nothing to build again."""
    try:
        with open(target, "rb") as stream:
            if stream.read() == data:
                return
    except OSError:
        pass
    with open(target, "wb") as stream:
        stream.write(data)


def main():
    parser = argparse.ArgumentParser(description="Makes gpustage.h from core/, backends/ and kernels/.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--line", action="store_true", help="emit #line for debugging builds")
    parser.add_argument("-o", metavar="FILE", default=os.path.join(ROOT, "gpustage.h"))
    arguments = parser.parse_args()
    if arguments.check and arguments.line:
        parser.error("--check and --line exclude each other")
    try:
        out = amalgamate()
    except Refused as refused:
        print("amalgamate.py: %s" % refused, file=sys.stderr)
        return 1
    if arguments.check:
        message = check(out, arguments.o)
        if message:
            print("amalgamate.py: %s" % message, file=sys.stderr)
        return 1 if message else 0
    write_if_changed(arguments.o, out.text(arguments.line).encode("ascii"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
