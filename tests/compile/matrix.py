#!/usr/bin/env python3
"""tests/compile/matrix.py -- compiles the header in every way users do, without a warning, and links what must (and
must not) link.

    python3 tests/compile/matrix.py [--jobs N] [--list] [CASE...]     CASE: part of a case's name

A case whose compiler is not on this machine is skipped, with the reason. The closing line is
`N passed, N failed, N skipped`.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "compile")
sys.path.insert(0, ROOT)
sys.path.insert(0, os.path.join(ROOT, "tools"))
import amalgamate  # noqa: E402
import snippets  # noqa: E402

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror".split()
# What a compiler warns of depends on the standard and on how far it looks into the code: each standard of each compiler
# is here, and each level; not every pair of them, since the whole costs 40 to 60 s of a core optimised, 5 s read. gcc's
# optimiser warns, and has found faults at -O3: it has all levels in C (-O2 with the budget, -O1 with the split files)
# and one in C++. clang's warnings come as it reads: one optimised build of each language is for what its passes say.
# clang's OpenMP is a package of its own.
HOST = [("gcc", "c11", "-O3 -fopenmp"), ("gcc", "c17", "-fsyntax-only"),
        ("clang", "c11", "-O3"), ("clang", "c17", "-fsyntax-only"),
        ("g++", "c++17", "-O2 -fopenmp"), ("g++", "c++20", "-fsyntax-only"),
        ("clang++", "c++17", "-O2"), ("clang++", "c++20", "-fsyntax-only")]
FOUR = [("gcc", "c11"), ("clang", "c11"), ("g++", "c++17"), ("clang++", "c++17")]
MAX_OBJECT_BYTES = 9 << 17  # with graphs, prefetch, DLPack, readers and budgets: 1050 KiB
MAX_COMPILE = 16  # times what YARDSTICK takes: it is 11.3 to 12.1, as runs differ; the exact limit is the size
CUDA_ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
MAX_GPU_OBJECT_BYTES = 6 << 20
MAX_GPU_COMPILE = 80
# Macros that are tested in the code but are not for users.
OWN_MACROS = {"GPUSTAGE_H", "GPUSTAGE_SPLIT_BUILD"}
MACRO_VALUES = {"GPUSTAGE_PREFIX": "stranger_"}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def run(command, cwd=ROOT, environment=None, errors=False):
    """Standard output (and with errors=True what follows on standard error) of a command that must succeed."""
    if not shutil.which(command[0]):
        raise Skipped("no %s" % command[0])
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          errors="replace", env=dict(os.environ, **(environment or {})))
    if done.returncode:
        raise Failed("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout + (done.stderr if errors else "")


def runs(program):
    try:
        run([program, "--version"])
    except (Failed, Skipped):
        return False
    return True


def refuse(command, text):
    """The command must fail and say text."""
    try:
        run(command)
    except Failed as failed:
        if text in str(failed):
            return
        raise Failed("failed, as it must, but without saying '%s':\n%s" % (text, failed)) from failed
    raise Failed("%s\nmust fail, and did not" % " ".join(command))


def compiler(name, standard):
    language = ["-x", "c++"] if "++" in name else ["-x", "c"]
    return [name, "-std=" + standard] + language + WARNINGS + ["-I", ROOT]


def macros():
    with open(os.path.join(ROOT, "core", "base", "config.h"), encoding="ascii") as stream:
        return amalgamate.config_macros(stream.read().split("\n"))


def define(names):
    return ["-D%s%s" % (name, "=" + MACRO_VALUES[name] if name in MACRO_VALUES else "") for name in names]


class Objects:
    """gpustage.c as several cases need it: compiled without optimisation by the first that asks, once."""
    def __init__(self):
        self.lock, self.made = threading.Lock(), {}
        self.folder = tempfile.TemporaryDirectory(prefix="gpustage-")

    def get(self, name, standard, *flags):
        with self.lock:
            one = self.made.setdefault((name, flags), {"lock": threading.Lock(), "path": None, "n": len(self.made)})
        with one["lock"]:
            if not one["path"]: # where it fails, it does so for each that asks
                path = "%s/%d.o" % (self.folder.name, one["n"])
                run(compiler(name, standard) + ["-O0", *flags, "-c", "gpustage.c", "-o", path])
                one["path"] = path
        return one["path"]


OBJECTS = Objects()
CASES = []


def case(name):
    """Registers function(folder), which raises Failed or Skipped, under a name."""
    def register(function):
        CASES.append((name, function))
        return function
    return register


# ---- every compiler and standard -----------------------------------------------------------

def output(flags, folder):
    return [] if "-fsyntax-only" in flags else ["-c", "-o", folder + "/o"]


def add_host_cases():
    for name, standard, flags in HOST:
        def compile_it(folder, base=compiler(name, standard) + flags.split()):
            for source in ("implementation.c", "header_only.c"):
                run(base + output(base, folder) + [os.path.join(HERE, source)])
        case("host %s %s %s" % (name, standard, flags))(compile_it)
    for name, standard in FOUR:
        # That each file includes what it needs is seen by reading it; gcc's optimiser sees functions that are not static.
        flags = ["-O1" if name == "gcc" else "-fsyntax-only", "-DGPUSTAGE_SPLIT_BUILD"]
        def compile_split(folder, base=compiler(name, standard) + flags):
            for path in sorted(glob.glob(ROOT + "/core/*/*.c") + glob.glob(ROOT + "/backends/*.c")
                               + glob.glob(ROOT + "/kernels/*/*.c")):
                run(base + output(base, folder) + [path])
        case("split files %s %s" % (name, standard))(compile_split)
    for name, standard in FOUR + [("x86_64-w64-mingw32-gcc", "c11"), ("x86_64-w64-mingw32-g++", "c++17")]:
        def compile_behind(folder, name=name, standard=standard):
            run(compiler(name, standard) + ["-fsyntax-only", os.path.join(HERE, "taken_names.c")])
        case("behind other headers %s %s" % (name, standard))(compile_behind)


# A C++ object that needs nothing of C++ when it runs.
LEAN = "g++", "c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"


@case("host g++ no exceptions, no rtti, no static guards")
def no_exceptions(folder):
    OBJECTS.get(*LEAN)


@case("host gcc -m32")
def thirty_two_bits(folder):
    if subprocess.run(["gcc", "-m32", "-E", "-x", "c", "-include", "stdlib.h", "/dev/null"], capture_output=True,
                      check=False).returncode:
        raise Skipped("no 32-bit headers (gcc-multilib)")
    run(compiler("gcc", "c11") + ["-m32", "-O1", "-c", "gpustage.c", "-o", folder + "/o"])


@case("host musl-gcc c11")
def musl(folder):
    run(compiler("musl-gcc", "c11") + ["-O0", "-c", "gpustage.c", "-o", folder + "/o"]) # gcc, with other headers


# ---- configuration macros ---------------------------------------------------------------------

@case("macros: config.h lists what the code tests, and the code tests what config.h lists")
def macro_names(folder):
    tested = set()
    with open(os.path.join(ROOT, "gpustage.h"), encoding="ascii") as stream:
        for line in stream:
            if re.match(r"\s*#\s*(if|elif|ifdef|ifndef|define \w+ .*GPSTI_PASTE)", line):
                tested.update(re.findall(r"\bGPUSTAGE_\w+", line))
    wrong = tested - OWN_MACROS ^ set(macros())
    if wrong:
        raise Failed("only on one side: %s" % ", ".join(sorted(wrong)))


def add_macro_cases():
    units = ("GPUSTAGE_IMPLEMENTATION", "GPUSTAGE_GPU_IMPLEMENTATION")
    names = [name for name in macros() if name not in units]
    sets = [("all off", [])] + [(name, [name]) for name in names]
    for left_out in (("GPUSTAGE_STATIC", "GPUSTAGE_HIP"), ("GPUSTAGE_SHARED", "GPUSTAGE_CUDA")):
        sets.append(("all but " + " and ".join(left_out), [name for name in names if name not in left_out]))
    for title, chosen in sets:
        for name, standard in (("gcc", "c11"), ("clang++", "c++17")):
            def compile_set(folder, name=name, standard=standard, chosen=chosen):
                # gcc tells what is unused behind reading, clang as it reads.
                if name == "gcc":
                    OBJECTS.get(name, standard, *define(chosen), *(["-fPIC"] if chosen == ["GPUSTAGE_SHARED"] else []))
                base = compiler(name, standard) + define(chosen) + ["-fsyntax-only"]
                if name != "gcc":
                    run(base + ["gpustage.c"])
                if "GPUSTAGE_STATIC" not in chosen:  # then only the unit that implements it has functions to call
                    run(base + [HERE + "/header_only.c"])
            case("macros %s: %s" % (name, title))(compile_set)


@case("macros: STATIC with SHARED is refused")
def exclusive(folder):
    refuse(compiler("gcc", "c11") + define(["GPUSTAGE_STATIC", "GPUSTAGE_SHARED"])
           + ["-E", "gpustage.c", "-o", folder + "/o"], "exclude each other")  # #error: nothing behind it need be read


@case("macros: what cannot be is refused")
def impossible(folder):
    base = compiler("gcc", "c11") + ["-E", "-o", folder + "/o"]
    refuse(base + define(["GPUSTAGE_CUDA", "GPUSTAGE_HIP"]) + ["gpustage.c"], "exclude each other")
    refuse(base + ["gpustage_gpu.cu"], "is for nvcc")


@case("macros: a system header before the implementation is refused")
def too_late(folder):
    path = folder + "/late.c"
    with open(path, "w", encoding="ascii") as stream:
        stream.write('#include <stdio.h>\n#define GPUSTAGE_IMPLEMENTATION\n#include "gpustage.h"\n')
    refuse(compiler("gcc", "c11") + ["-E", path, "-o", folder + "/o"], "before any system header")


# ---- device compilers and other systems -----------------------------------------------------------

# Most of what nvcc takes goes to ptxas, for the kernels that are the same in each of these: they end at its input; the
# budget is of six architectures by ptxas. Their host code is optimised a little: else what the GPU half does not use of
# the header stays in it, and calls what only the other half has.
PTX_80 = ["-O1", "-gencode=arch=compute_80,code=compute_80"]
PTX_90 = ["-O1", "-gencode=arch=compute_90,code=compute_90"]


def nvcc(*arguments):
    """nvcc on a CUDA source, where not even a remark of its own is allowed."""
    return (["nvcc", "-x", "cu", "-std=c++17", "-Werror", "all-warnings", "-Xcompiler",
             "-Wall,-Wextra,-Werror,-fno-exceptions,-fno-threadsafe-statics", "-I", ROOT] + list(arguments))


def add_device_cases():
    for name, standard in (("gcc", "c11"), ("g++", "c++17")):
        def compile_windows(folder, name=name, standard=standard):
            base = compiler("x86_64-w64-mingw32-" + name, standard) + ["-O1" if name == "gcc" else "-fsyntax-only"]
            for source in ("gpustage.c", HERE + "/header_only.c"):
                run(base + output(base, folder) + [source])
        case("mingw %s %s" % (name, standard))(compile_windows)


@case("device nvcc one unit sm_80 sm_90")
def cuda_unit(folder):
    run(nvcc(*PTX_80, PTX_90[-1], "-c", "gpustage.c", "-o", folder + "/o"))


def hipcc(*arguments):
    return ["hipcc", "-x", "hip", "-Wall", "-Wextra", "-Werror", "-I", ROOT] + list(arguments)


@case("device hipcc one unit gfx90a gfx1030")
def hip_unit(folder):  # clang again: it is read for the host and for each architecture
    run(hipcc("--offload-arch=gfx90a", "--offload-arch=gfx1030", "-c", "-fsyntax-only", "gpustage.c"))


@case("device hipcc GPU half gfx90a gfx1030")
def hip_half(folder):  # the kernels are the unit's, which is not compiled to its end
    run(hipcc("--offload-arch=gfx90a", "--offload-arch=gfx1030", "-c", "gpustage_gpu.cu", "-o", folder + "/o"))


@case("device hip on nvidia")
def hip_on_nvidia(folder):
    if not os.path.exists("/usr/include/hip/nvidia_detail"):
        raise Skipped("no HIP headers for NVIDIA (libamdhip64-dev)")
    run(nvcc(*PTX_90, "-D__HIP_PLATFORM_NVIDIA__", "-DGPUSTAGE_HIP", "-include",
             ROOT + "/tests/hip_on_nvidia.h", "-diag-suppress", "2810,940", "-c", "gpustage_gpu.cu", "-o",
             folder + "/o"))


@case("device nvcc the example of a kernel of one's own, on the CPU")
def own_kernel(folder):
    run(nvcc(*PTX_90, "examples/06_own_kernel.cu", "-o", folder + "/own_kernel"))
    said = run([folder + "/own_kernel", "cpu"])
    if "0 bytes differ" not in said:
        raise Failed(said)


def link_cuda(objects, target):
    """The line that the header's text gives."""
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc") or "")))
    return ["gcc"] + objects + ["-o", target, "-L%s/lib64" % toolkit, "-lcudart_static", "-lrt", "-ldl", "-lpthread",
                                "-lm"]


@case("link: a C program with a GPU half by nvcc")
def gpu_half(folder):
    run(nvcc(*PTX_90, "-Xcompiler", "-fPIC", "-c", "gpustage_gpu.cu", "-o", folder + "/gpu.o"))
    host = OBJECTS.get("gcc", "c11", "-DGPUSTAGE_CUDA")
    run(compiler("gcc", "c11") + ["-c", HERE + "/gpu_half.c", "-o", folder + "/main.o"])
    run(link_cuda([folder + "/main.o", host, folder + "/gpu.o"], folder + "/main"))
    run([folder + "/main"])
    run(compiler("gcc", "c11") + ["-O0", "-DGPUSTAGE_CUDA", "-DGPUSTAGE_SHARED", "-fPIC", "-c", "gpustage.c", "-o",
                                  folder + "/shared.o"])
    run(link_cuda([folder + "/shared.o", folder + "/gpu.o"], folder + "/l.so") + ["-shared"])
    names = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", folder + "/l.so"]).splitlines()}
    wrong = names ^ set(amalgamate.Sources().public_functions())
    if wrong:
        raise Failed("exported, or not: %s" % ", ".join(sorted(wrong)))


@case("link: halves from different headers refuse each other")
def halves_differ(folder):
    copy = folder + "/copy"
    os.mkdir(copy)
    for part in amalgamate.FOLDERS:
        shutil.copytree(os.path.join(ROOT, part), os.path.join(copy, part))
    for part in ("amalgamate.py", "gpustage_gpu.cu"):
        shutil.copy(os.path.join(ROOT, part), copy)
    with open(copy + "/core/base/base.h", "a", encoding="ascii") as stream:
        stream.write("/* another */\n")
    run([sys.executable, "amalgamate.py"], cwd=copy)
    run(nvcc(*PTX_90, "-c", copy + "/gpustage_gpu.cu", "-o", folder + "/gpu.o"), cwd=copy)
    host = OBJECTS.get("gcc", "c11", "-DGPUSTAGE_CUDA")
    run(compiler("gcc", "c11") + ["-c", HERE + "/gpu_half.c", "-o", folder + "/main.o"])
    run(link_cuda([folder + "/main.o", host, folder + "/gpu.o"], folder + "/main"))
    run([folder + "/main", "differ"])


@case("link: two prefixes, each with a GPU half")
def gpu_prefixes(folder):
    for prefix in ("one_", "two_"):
        run(compiler("gcc", "c11") + ["-O0", "-DGPUSTAGE_CUDA", "-DGPUSTAGE_PREFIX=" + prefix, "-c", "gpustage.c", "-o",
                                      "%s/%s.o" % (folder, prefix)])
        run(nvcc(*PTX_90, "-DGPUSTAGE_PREFIX=" + prefix, "-c", "gpustage_gpu.cu", "-o",
                 "%s/%sgpu.o" % (folder, prefix)))
    run(["gcc", "-I", ROOT, "-DGPUSTAGE_PREFIX=two_", "-c", HERE + "/gpu_half.c", "-o", folder + "/main.o"])
    run(link_cuda([folder + "/main.o"] + ["%s/%s" % (folder, name) for name in ("one_.o", "one_gpu.o", "two_.o",
                                                                               "two_gpu.o")], folder + "/main"))
    run([folder + "/main"])


# The same core takes twice as long on a day on which its host has others to serve: what compiling takes is told in the
# CPU time that gcc takes for so many of these.
YARDSTICK = 1000 * ("""
int yardstick_%d(const int* in, int n, int* out) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        const int x = in[i] > n ? in[i] * 3 : in[i] - sum;
        sum += x & 1 ? x : -x;
        if (out && sum > x)
            out[i] = sum / (x | 1);
    }
    return sum;
}
""",)


def cpu_seconds(said):
    """Of commands that print nothing, and the `times` after them: the shell's own come first."""
    user, system = re.findall(r"(\d+)m([\d.]+)s", said)[2:4]
    return sum(float(part[0]) * 60 + float(part[1]) for part in (user, system))


def yardstick(folder):
    path = folder + "/yardstick.c"
    with open(path, "w") as file:
        file.write("".join(text % i for i, text in enumerate(YARDSTICK)))
    return cpu_seconds(run(["sh", "-c", "gcc -O2 -std=c11 -c '%s' -o '%s.o' && times" % (path, path)]))


def budget_kept(folder, size, seconds, max_bytes, max_yardsticks):
    taken = seconds / yardstick(folder)
    if size >= max_bytes or taken >= max_yardsticks:
        raise Failed("%d bytes (limit %d), %.1f s, %.1f yardsticks (limit %d)" % (size, max_bytes, seconds, taken,
                                                                                  max_yardsticks))
    return "%d KiB, %.1f s, %.1f yardsticks" % (size >> 10, seconds, taken)


@case("budget: the GPU half for six architectures, without a spill")
def gpu_budget(folder):
    """What ptxas says of registers is printed, and nothing may be spilled."""
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (name[3:], name[3:]) for name in CUDA_ARCHITECTURES]
    command = nvcc(*flags, "-O3", "-Xptxas", "-v", "-Xfatbin", "-compress-all", "-c", "gpustage_gpu.cu", "-o",
                   folder + "/o")
    if not shutil.which("nvcc"):
        raise Skipped("no nvcc")
    said = run(["sh", "-c", '"$@" && times', "nvcc"] + command, errors=True)
    kept = budget_kept(folder, os.path.getsize(folder + "/o"), cpu_seconds(said), MAX_GPU_OBJECT_BYTES, MAX_GPU_COMPILE)
    most = {}
    for architecture, text in re.findall(r"for '(sm_\d+)'(.*?)(?=Compiling entry|\Z)", said, re.S):
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", text)
        registers = re.search(r"Used (\d+) registers", text)
        if not spills or not registers or spills.group(1) != "0" or spills.group(2) != "0":
            raise Failed("ptxas spills, or says nothing of it:\n" + text)
        most[architecture] = max(most.get(architecture, 0), int(registers.group(1)))
    if set(most) != set(CUDA_ARCHITECTURES):
        raise Failed("ptxas speaks of %s alone" % sorted(most))
    return "%s, at most %s registers" % (kept, " ".join(
        "%s %d" % (name, most[name]) for name in CUDA_ARCHITECTURES))


# ---- linking --------------------------------------------------------------------------------------

@case("link: two static copies in one program")
def two_static(folder):
    base = compiler("gcc", "c11") + ["-O0", "-c", HERE + "/two_static.c"]
    run(base + ["-DTWO_STATIC_NAME=two_static_a", "-DTWO_STATIC_MAIN", "-o", folder + "/a.o"])
    run(base + ["-DTWO_STATIC_NAME=two_static_b", "-DGPUSTAGE_NO_STDIO", "-o", folder + "/b.o"])
    run(["gcc", folder + "/a.o", folder + "/b.o", "-o", folder + "/two", "-pthread", "-lm"])
    run([folder + "/two"])


@case("link: two plain implementations are refused")
def twice(folder):
    for name in ("/a.o", "/b.o"):
        shutil.copy(OBJECTS.get("gcc", "c11"), folder + name)
    run(compiler("gcc", "c11") + ["-c", HERE + "/header_only.c", "-o", folder + "/main.o"])
    refuse(["gcc", folder + "/main.o", folder + "/a.o", folder + "/b.o", "-o", folder + "/two", "-pthread", "-lm"],
           "multiple definition")


@case("link: two prefixes in one program")
def two_prefixes(folder):
    for prefix in ("one_", "two_"):
        run(compiler("gcc", "c11") + ["-O0", "-DGPUSTAGE_PREFIX=" + prefix, "-c", "gpustage.c", "-o",
                                      "%s/%s.o" % (folder, prefix)])
    run(["gcc", "-I", ROOT, "-DGPUSTAGE_PREFIX=two_", HERE + "/prefix.c", folder + "/one_.o", folder + "/two_.o", "-o",
         folder + "/prefix", "-pthread", "-lm"])
    run([folder + "/prefix"])
    names = {line.split()[-1] for line in run(["nm", "-g", "--defined-only", folder + "/two_.o"]).splitlines()}
    if not names or any(not name.startswith("two_gpst_") for name in names):
        raise Failed("without the prefix: %s" % ", ".join(sorted(n for n in names if not n.startswith("two_gpst_"))))


@case("a prefix after the header is refused")
def late_prefix(folder):
    late = folder + "/late.c"
    with open(late, "w", encoding="ascii") as stream:
        stream.write('#include "gpustage.h"\n#define GPUSTAGE_PREFIX late_\n#define GPUSTAGE_IMPLEMENTATION\n'
                     '#include "gpustage.h"\n')
    done = subprocess.run(["gcc", "-I", ROOT, "-fsyntax-only", late], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode == 0 or b"GPUSTAGE_PREFIX: define it before" not in done.stdout:
        raise Failed("accepted: %s" % done.stdout.decode("utf-8", "replace")[:300])


@case("link: C program, implementation by a C++ compiler")
def c_calls_cxx(folder):
    run(["gcc", "-I", ROOT, HERE + "/header_only.c", OBJECTS.get(*LEAN), "-o", folder + "/main", "-pthread", "-lm"])
    run([folder + "/main"])


@case("symbols: a shared library exports the public functions and nothing else")
def exported(folder):
    made = OBJECTS.get("gcc", "c11", "-DGPUSTAGE_SHARED", "-fPIC")
    run(["gcc", "-shared", made, "-o", folder + "/l.so", "-pthread", "-lm"])
    names = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", folder + "/l.so"]).splitlines()}
    wrong = names ^ set(amalgamate.Sources().public_functions())
    if wrong:
        raise Failed("only on one side: %s" % ", ".join(sorted(wrong)))


@case("symbols: every public function is defined, and only gpst_ names are global")
def defined(folder):
    made = OBJECTS.get("gcc", "c11")
    names = {line.split()[-1] for line in run(["nm", "-g", "--defined-only", made]).splitlines()}
    wrong = names ^ set(amalgamate.Sources().public_functions())
    if wrong:
        raise Failed("only on one side: %s" % ", ".join(sorted(wrong)))


@case("symbols: nothing runs before main or after it")
def no_constructors(folder):
    said = run(["objdump", "-h", OBJECTS.get("gcc", "c11")])
    for section in (".init_array", ".fini_array", ".ctors", ".dtors"):
        if section in said:
            raise Failed("the object has a section %s" % section)


@case("host gcc c11 -O2, and the budget: the CPU object stays small and quick to compile")
def budget(folder):
    run(compiler("gcc", "c11") + ["-O2", "-c", HERE + "/header_only.c", "-o", folder + "/o"])
    command = compiler("gcc", "c11") + ["-O2", "-c", "gpustage.c", "-o", folder + "/o"]
    said = run(["sh", "-c", '"$@" && times', "gcc"] + command)
    return budget_kept(folder, os.path.getsize(folder + "/o"), cpu_seconds(said), MAX_OBJECT_BYTES, MAX_COMPILE)


# ---- the generator ----------------------------------------------------------------------------------

def add_generator_cases():
    for version in ("3.9", "3.11", "3.12"):
        def generate(folder, version=version):
            """From a copy without git, under another Python: the same bytes."""
            candidates = ["python" + version] + sorted(glob.glob(os.path.expanduser(
                "~/.pyenv/versions/%s.*/bin/python3" % version)))
            name = next((name for name in candidates if runs(name)), None)
            if not name:
                raise Skipped("no Python " + version)
            copy = folder + "/copy"
            os.mkdir(copy)
            for part in amalgamate.FOLDERS:
                shutil.copytree(os.path.join(ROOT, part), os.path.join(copy, part))
            for part in ("amalgamate.py", "gpustage.h"):
                shutil.copy(os.path.join(ROOT, part), copy)
            run([name, "amalgamate.py", "--check"], cwd=copy)
        case("amalgamate under Python %s, without git" % version)(generate)


@case("amalgamate refuses what it must")
def generator_refuses(folder):
    def broken(title, text, change):
        copy = "%s/%s" % (folder, title)
        os.mkdir(copy)
        for part in amalgamate.FOLDERS:
            shutil.copytree(os.path.join(ROOT, part), os.path.join(copy, part))
        for part in ("amalgamate.py", "gpustage.h"):
            shutil.copy(os.path.join(ROOT, part), copy)
        change(copy)
        refuse([sys.executable, copy + "/amalgamate.py", "--check"], text)

    def append(data):
        def change(copy):
            with open(copy + "/core/base/base.h", "ab") as stream:
                stream.write(data)
        return change

    broken("unlisted", "not in the manifest", lambda copy: open(copy + "/core/stray.h", "w", encoding="ascii").close())
    broken("missing", "stands in the manifest", lambda copy: os.remove(copy + "/core/memory/ring.h"))
    broken("include", "not in the manifest", append(b'#include "stray.h"\n'))
    broken("order", "must come before", append(b'#include "../memory/ring.h"\n'))
    broken("system", "may include only", append(b"#include <stdio.h>\n"))
    broken("tab", "tab", append(b"\t/* */\n"))
    broken("wide", "wider than 120 columns", append(b"/*" + b" *" * 59 + b"/\n"))
    broken("blank", "blank at the end", append(b"/* */ \n"))
    broken("return", "carriage return", append(b"/* */\r\n"))
    broken("ascii", "ASCII", append(b"/* \xc3\xa9 */\n"))
    broken("newline", "newline", append(b"/* */"))
    broken("banner", "banners", append(b"/* ==== >>ring == core/memory/ring.c */\n"))
    broken("edited", "edit core/base/base.h", append(b"/* an edit */\n"))


# ---- the texts and the installed copy ------------------------------------------------------------------

@case("text: the example in the header compiles and runs")
def header_example(folder):
    run([sys.executable, "tools/snippets.py", "core/preamble.txt", folder])
    for name, standard in FOUR:
        base = compiler(name, standard) + [folder + "/example.c"]
        if "clang" in name:  # builds it in a third of gcc's time; what it computes is every other test's
            run(base + ["-O0", "-o", folder + "/example", "-pthread", "-lm"])
            run([folder + "/example"])
        else:
            run(base + ["-fsyntax-only"])


def install(folder):
    """make install into folder/root, with the command of the ordinary build."""
    run(["make", "install", "PREFIX=" + folder + "/root", "BUILD=" + os.environ.get("GPST_BUILD", "build")])
    return {"PKG_CONFIG_PATH": folder + "/root/lib/pkgconfig", "PATH": folder + "/root/bin:" + os.environ["PATH"],
            "CMAKE_PREFIX_PATH": folder + "/root"}


@case("install: a stranger's program through pkg-config, and the command")
def stranger(folder):
    environment = install(folder)
    with open(folder + "/gpustage_unit.c", "w", encoding="ascii") as stream:
        stream.write('#define GPUSTAGE_IMPLEMENTATION\n#include <gpustage.h>\n')
    shutil.copy(HERE + "/header_only.c", folder)
    flags = run(["pkg-config", "--cflags", "--libs", "gpustage"], environment=environment).split()
    run(["gcc", "header_only.c", "gpustage_unit.c", "-o", "stranger"] + flags, cwd=folder)
    run([folder + "/stranger"])
    version = run(["pkg-config", "--modversion", "gpustage"], environment=environment).strip()
    if version != amalgamate.Sources().version:
        raise Failed("gpustage.pc says version %s" % version)
    run([folder + "/root/bin/gpustage", "probe"])


def project(folder, needed):
    """A folder with a vendored gpustage and the snippets of README.md and docs/building.md."""
    for text in ("README.md", "docs/building.md"):
        run([sys.executable, "tools/snippets.py", text, folder])
    for name in needed:
        if not os.path.exists(os.path.join(folder, name)):
            raise Failed("no block named %s" % name)
    os.mkdir(folder + "/gpustage")
    for name in ("gpustage.h", "gpustage.c"):
        shutil.copy(os.path.join(ROOT, name), folder + "/gpustage")


@case("text: the README's ten lines, and the program of docs/building.md as C and as C++")
def readme_example(folder):
    project(folder, ["app.c", "folder.c"])
    run(["gcc", "-fsyntax-only", "-I", "gpustage", "folder.c"], cwd=folder)
    run(["gcc", "-std=c11"] + WARNINGS + ["-I", "gpustage", "app.c", OBJECTS.get("gcc", "c11"), "-o", "app", "-pthread",
                                          "-lm"], cwd=folder)
    run(["g++", "-std=c++17", "-x", "c++"] + WARNINGS + ["-I", "gpustage", "app.c", "-x", "none", OBJECTS.get(*LEAN),
                                                         "-o", "app", "-pthread", "-lm"], cwd=folder)


@case("text: the CMake project of docs/building.md")
def readme_cmake(folder):
    project(folder, ["app.c", "CMakeLists.txt"])
    run(["cmake", "-S", folder, "-B", folder + "/out"])
    run(["cmake", "--build", folder + "/out"])
    run(["test", "-x", folder + "/out/app"])


@case("text: the Meson project of docs/building.md")
def readme_meson(folder):
    project(folder, ["app.c", "meson.build"])
    run(["meson", "setup", folder + "/out", folder])
    run(["meson", "compile", "-C", folder + "/out"])
    run(["test", "-x", folder + "/out/app"])


def attempt(function):
    with tempfile.TemporaryDirectory(prefix="gpustage-") as folder:
        start = time.monotonic()
        try:
            verdict, text = "passed", function(folder) or ""
        except Skipped as skipped:
            verdict, text = "skipped", str(skipped)
        except (Failed, amalgamate.Refused) as failed:
            verdict, text = "failed", str(failed)
        return verdict, text, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description="Compiles the header in every way users do.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="part of a case's name")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    add_host_cases()
    add_macro_cases()
    add_device_cases()
    add_generator_cases()
    chosen = [(name, function) for name, function in CASES
              if not arguments.cases or any(part in name for part in arguments.cases)]
    if arguments.list:
        print("\n".join(name for name, _ in chosen))
        return 0
    count = {"passed": 0, "failed": 0, "skipped": 0}
    failures = []
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        running = {pool.submit(attempt, function): name for name, function in chosen}
        for done in concurrent.futures.as_completed(running):
            verdict, text, seconds = done.result()
            count[verdict] += 1
            if verdict == "failed":
                failures.append((running[done], text.splitlines()[:60]))
                text = ""
            print("%-7s %5.1f s  %s%s" % (verdict, seconds, running[done], ": " + text if text else ""), flush=True)
    for name, lines in failures:
        print("---- failed: %s" % name)
        print("".join("    | %s\n" % line for line in lines), end="")
    if not chosen:
        print("no such case")
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % count)
    return 1 if count["failed"] or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
