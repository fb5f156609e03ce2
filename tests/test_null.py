#!/usr/bin/env python3
"""tests/test_null.py -- every public call with each of its pointers NULL, one at a time, beside arguments that are right.

The calls are generated from the public headers' declarations: a new function is called so from its first day on. None
may crash. A call that gives a gpst_result answers ARGUMENT, unless the comment above the declaration says what NULL
means there. Calls that ask something of an item are made in stages of the host and of the device.

Environment: GPST_BUILD (the build folder, with split/libgpustage_split.a), CC, GPST_SANITIZE (compiler flags).
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
import amalgamate  # noqa: E402

CC = shlex.split(os.environ.get("CC", "cc"))
SANITIZE = shlex.split(os.environ.get("GPST_SANITIZE", ""))
LIBRARY = os.path.join(os.environ.get("GPST_BUILD", os.path.join(ROOT, "build")), "split", "libgpustage_split.a")
DECLARATION = re.compile(r"^GPST_API\s+([^;]*?)\b(gpst_\w+)\s*\(([^;]*?)\)\s*(?:GPSTI_PRINTF\([^)]*\))?\s*;", re.M | re.S)
SIZES = re.compile(r"\b(gpst_\w+_versioned)\(GPST_VERSION, (sizeof\(\w+\))")
PARAMETER = re.compile(r"^ {16}(?=\w[\w, ]*? +\((?:in|out))", re.M)

# What is right for a parameter: by its name, else by its type; objects are the program's variables of that name.
BY_NAME = {"version": "GPST_VERSION", "orientation": "1", "out_bytes": "64", "max_bytes": "64", "n_outputs": "1",
           "n_sources": "1", "n_items": "1", "n_threads": "1", "max": "1", "n": "1", "n_channels": "1", "n_rows": "1",
           "row_bytes": "8", "dst_pitch_bytes": "8", "src_pitch_bytes": "8", "depth": "2", "n_in_flight": "1",
           "probability": "0.5", "percentile": "99", "size": "3", "x": "1", "y": "1", "source_width": "8",
           "source_height": "8", "budget_ns": "1", "path": "folder", "name": '"cpu"', "extension": '"ppm"', "text": '""',
           "input": '"a.ppm"', "format": '"note"', "prefetch": "prefetch", "func": "stage_func", "found": "found_func"}
BY_TYPE = {"gpst_labels": "&labels", "gpst_logits": "&logits", "gpst_image": "&image", "gpst_task": "task",
           "gpst_kernel": "&kernel", "gpst_allocator": "NULL", "gpst_logger": "NULL", "gpst_item": "item",
           "gpst_mask_desc": "&mask", "gpst_warp_desc": "&warp_desc", "gpst_pipeline_desc": "&pipeline_desc",
           "gpst_placement": "&placement", "gpst_channels": "&channels", "gpst_bitmap": "&bitmap",
           "gpst_input": "&input", "gpst_ring_desc": "&ring_desc", "gpst_calibration_desc": "&calibration_desc"}
# The stream's recording is ended first, and there is none.
SAYS_OTHERWISE = {("gpst_graph_cache_run", "cache")}
OBJECTS = ["context", "device", "stream", "event", "memory", "pool", "ring", "reader", "ring_reader", "warp", "jpeg",
           "prefetch", "calibration", "graph", "graph_cache", "pipeline"]
MADE = {"gpst_" + noun: "gpst_%s_%s" % (noun, "close" if noun == "device" else "destroy") for noun in OBJECTS}


def declarations():
    """(name, result, parameters, the comment above) of every public function; the size that each macro passes."""
    sizes, found = {}, []
    for path in amalgamate.PUBLIC:
        with open(os.path.join(ROOT, path), encoding="ascii") as stream:
            text = stream.read()
        sizes.update(SIZES.findall(re.sub(r"\\\n", " ", text)))
        comments = [(m.end(), m.group()) for m in re.finditer(r"/\*.*?\*/", text, re.S)]
        blank = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
        for m in DECLARATION.finditer(blank):
            above = [comment for end, comment in comments if end <= m.start() and "Parameters" in comment]
            parameters = [] if m.group(3).strip() == "void" else " ".join(m.group(3).split()).split(", ")
            found.append((m.group(2), m.group(1).strip(), parameters, above[-1] if above else ""))
    return found, sizes


def split_parameter(text):
    m = re.match(r"(.*?)\s*\b(\w+)(\[\d*\])?$", text)
    return m.group(1) + ("*" if m.group(3) else ""), m.group(2)


def is_pointer(kind):
    return "*" in kind or kind.endswith("_func")


def may_be_null(comment, name):
    """Do the lines of the parameter say what NULL is?"""
    text = comment.replace("   Parameters   ", " " * 16, 1).split("\n   Shapes")[0]
    mine = [part for part in PARAMETER.split(text) if re.match(r"(?:\w+, +)*%s(?:, +\w+)* +\(" % name, part)]
    return name == "user_data" or any("NULL" in part.replace("not NULL", "").replace("NULL on failure", "") for part in mine)


def right_value(function, kind, name, sizes):
    base = re.sub(r"\bconst\b|\*|\s", "", kind)
    if name in ("desc_bytes", "info_bytes"):
        return sizes[function]
    if kind.endswith("**"):
        return "(%s)(void*)&made" % kind
    if kind == "void*" and name in ("stream", "native"):
        return "NULL"
    if base in BY_TYPE and (kind.startswith("const") or base == "gpst_task"):
        return BY_TYPE[base]
    if is_pointer(kind) and base[5:] in OBJECTS:
        return base[5:]
    if name == "n" and is_pointer(kind):
        return "&count"
    if name in BY_NAME and (not is_pointer(kind) or base == "char" or name in ("prefetch", "func", "found")):
        return BY_NAME[name]
    if is_pointer(kind):
        return "(%s)scratch" % kind
    return {"gpst_memory_kind": "GPST_MEMORY_HOST", "size_t": "8"}.get(kind, "(%s)0" % kind)


def calls(found, sizes):
    for function, result, parameters, comment in found:
        kinds = [split_parameter(p) for p in parameters if p != "..."]
        values = [right_value(function, kind, name, sizes) for kind, name in kinds]
        for k, (kind, name) in enumerate(kinds):
            if not is_pointer(kind):
                continue
            given = ", ".join("(%s)0" % kind if i == k else value for i, value in enumerate(values))
            made = [MADE.get(out[:-2]) for i, (out, _) in enumerate(kinds) if i != k and out.endswith("**")]
            other = (kind == "void*" and name == "stream") or (function, name) in SAYS_OTHERWISE
            wants = result == "gpst_result" and not other and not may_be_null(comment, name)
            yield function, name, result, given, made[0] if made else None, wants


def program(found, sizes):
    lines = {False: [], True: []}
    for function, name, result, given, destroy, wants in calls(found, sizes):
        call = "%s(%s)" % (function, given)
        call = "(int)%s" % call if result == "gpst_result" else "(%s, 0)" % call
        lines[function.startswith("gpst_task_")].append(
            '    TRY("%s: %s=NULL", %s, %d);%s' % (function, name, call, wants,
                                                   " DROP(%s);" % destroy if destroy else ""))
    return TEMPLATE.replace("@CALLS@", "\n".join(lines[False])).replace("@TASK_CALLS@", "\n".join(lines[True]))


TEMPLATE = r"""
#include "gpustage.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static union { char bytes[1 << 16]; double align; } room;
static void *made, *const scratch = room.bytes;
static const char *folder, *now;
static uint32_t count;
static sigjmp_buf back;
static int n_calls, n_wrong;

static void crashed(int number) { siglongjmp(back, number); }
static void wrong(const char* what) { printf("%s: %s\n", now, what); n_wrong++; }

#define TRY(what, call, wants)                                                \
    do {                                                                      \
        now = what;                                                           \
        made = NULL;                                                          \
        memset(room.bytes, 0, sizeof room.bytes);                             \
        n_calls++;                                                            \
        if (sigsetjmp(back, 1)) {                                             \
            wrong("CRASH");                                                   \
        } else {                                                              \
            const int result = call;                                          \
            if (wants && result != GPST_ERROR_ARGUMENT)                       \
                wrong(gpst_result_name((gpst_result)result));                 \
        }                                                                     \
    } while (0)
#define DROP(destroy) if (made) (void)destroy(made), made = NULL

static gpst_result kernel_host(const void* args) { (void)args; return GPST_OK; }
static gpst_result stage_func(void* user_data, gpst_task* task) { (void)user_data; (void)task; return GPST_OK; }
static gpst_result found_func(void* user_data, const char* path) { (void)user_data; (void)path; return GPST_OK; }
static const gpst_kernel kernel = {"nothing", kernel_host, NULL};
static gpst_context* context;
static gpst_device* device;
static gpst_stream* stream;
static gpst_event* event;
static gpst_memory* memory;
static gpst_pool* pool;
static gpst_ring* ring;
static gpst_reader* reader;
static gpst_ring_reader* ring_reader;
static gpst_warp* warp;
static gpst_jpeg* jpeg;
static gpst_prefetch* prefetch;
static gpst_calibration* calibration;
static gpst_graph* graph;
static gpst_graph_cache* graph_cache;
static gpst_pipeline* pipeline;
static gpst_image image;
static gpst_labels labels;
static gpst_logits logits;
static gpst_bitmap bitmap;
static gpst_channels channels;
static gpst_mask_desc mask;
static gpst_warp_desc warp_desc;
static gpst_placement placement;
static gpst_pipeline_desc pipeline_desc;
static gpst_ring_desc ring_desc;
static gpst_calibration_desc calibration_desc;
static gpst_stage_desc stages[2];
static gpst_input input;
static const gpst_item* item;

static gpst_result task_calls(void* user_data, gpst_task* task) {
    gpst_image picture;
    (void)user_data;
    if (task->item->index > 0) /* of a submit below, beside others */
        return gpst_task_set_picture(task, task->stage_index + 1, 0, &image, &picture);
@TASK_CALLS@
    return gpst_task_set_picture(task, task->stage_index + 1, 0, &image, &picture);
}

static void need(gpst_result result, const char* what) {
    if (!GPST_FAILED(result) || result == GPST_ERROR_UNSUPPORTED) /* no libturbojpeg */
        return;
    printf("%s: %s\n", what, gpst_last_reason());
    exit(1);
}

static void describe(void) {
    static const char* const none[] = {"none"};
    static gpst_prefetch_desc prefetch_desc;
    image.data = scratch, image.width = image.height = 8, image.format = GPST_FORMAT_GRAY;
    labels.data = scratch, labels.width = labels.height = 8, labels.n_classes = 2;
    logits.data = scratch, logits.width = logits.height = 8, logits.n_classes = 2;
    bitmap.data = scratch, bitmap.width = bitmap.height = 8;
    channels.data = scratch, channels.n_channels = channels.n_outer = 1, channels.n_inner = 8;
    mask.kind = GPST_MASK_THRESHOLD;
    placement.width = placement.height = 8, placement.orientation = 1;
    warp_desc.map = GPST_MAP_RESIZE, warp_desc.width = warp_desc.height = 8, warp_desc.format = GPST_FORMAT_GRAY;
    gpst_stage_host(&stages[0], GPST_SET(0), GPST_SET(1), task_calls, NULL);
    gpst_stage_device(&stages[1], GPST_SET(1), GPST_SET(2), task_calls, NULL);
    pipeline_desc.stages = stages, pipeline_desc.n_stages = 2;
    input.frame = image;
    ring_desc.max_slots = 4, ring_desc.slot_bytes = 64;
    calibration_desc.n_channels = 1;
    prefetch_desc.paths = none, prefetch_desc.n_paths = 1;
    need(gpst_prefetch_create(context, &prefetch_desc, &prefetch), "prefetch");
}

static void make_objects(void) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_pool_desc pool_desc = GPST_ZERO;
    gpst_reader_desc reader_desc = GPST_ZERO;
    gpst_graph_cache_desc cache_desc = GPST_ZERO;
    gpst_ring_desc readers;
    desc.backend = "cpu", desc.n_workers = 1;
    need(gpst_context_create(&desc, &context), "context");
    device = gpst_context_device(context);
    describe();
    readers = ring_desc, readers.sharing = GPST_RING_MPMC, readers.max_readers = 1;
    need(gpst_stream_create(device, &stream), "stream");
    need(gpst_event_create(device, &event), "event");
    need(gpst_memory_create(device, GPST_MEMORY_HOST, 64, &memory), "memory");
    need(gpst_pool_create(context, &pool_desc, &pool), "pool");
    need(gpst_ring_create(context, &readers, &ring), "ring");
    need(gpst_ring_reader_create(ring, &ring_reader), "ring_reader");
    need(gpst_reader_create(context, &reader_desc, &reader), "reader");
    need(gpst_warp_create(&warp_desc, &warp), "warp");
    need(gpst_jpeg_create(NULL, &jpeg), "jpeg");
    need(gpst_calibration_create(&calibration_desc, &calibration), "calibration");
    need(gpst_graph_cache_create(device, &cache_desc, &graph_cache), "graph_cache");
    need(gpst_graph_begin(stream), "graph");
    need(gpst_fill(gpst_memory_data(memory), 0, 8, stream), "fill");
    need(gpst_graph_end(stream, &graph), "graph");
    need(gpst_pipeline_create(context, &pipeline_desc, &pipeline), "pipeline");
    need(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), "submit");
    need(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), "next_result");
    need(item->result, item->reason);
}

int main(int argc, char** argv) {
    (void)argc;
    folder = argv[1];
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    setvbuf(stdout, NULL, _IONBF, 0);
    make_objects();
@CALLS@
    gpst_graph_destroy(graph);
    gpst_graph_cache_destroy(graph_cache);
    gpst_pipeline_destroy(pipeline);
    gpst_calibration_destroy(calibration);
    gpst_jpeg_destroy(jpeg);
    gpst_warp_destroy(warp);
    gpst_reader_destroy(reader);
    gpst_ring_reader_destroy(ring_reader);
    gpst_ring_destroy(ring);
    gpst_pool_destroy(pool);
    gpst_memory_destroy(memory);
    gpst_event_destroy(event);
    gpst_stream_destroy(stream);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
    printf("%d calls, %d wrong\n", n_calls, n_wrong);
    return n_wrong > 0;
}
"""


def main():
    if not os.path.exists(LIBRARY):
        print("no %s" % LIBRARY)
        return 77
    found, sizes = declarations()
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "null.c"), os.path.join(folder, "null")
        with open(source, "w") as file:
            file.write(program(found, sizes))
        command = CC + ["-std=gnu11", "-w", "-I", ROOT, source, LIBRARY, "-o", binary] + SANITIZE
        command += [] if "-fsanitize=thread" in SANITIZE else ["-fopenmp"]
        if subprocess.run(command + ["-pthread", "-lm", "-ldl"]).returncode != 0:
            return 1
        done = subprocess.run([binary, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        print(done.stdout.decode("utf-8", "replace"), end="")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
