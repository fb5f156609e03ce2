#!/usr/bin/env python3
"""tools/check_house.py -- every folder includes and calls only what stands above it, and no circle of files crosses one.

    python3 tools/check_house.py [--cycles N]     exit status 1 with a line for each break

ORDER is docs/architecture.md's, from the ground up. A file calls another when it uses one of its gpsti_ functions; a
name that several files define (one for each system) says nothing of any of them. --cycles: files that may form a circle
within a folder, for folders that are not yet done. Needs Python 3.9 or later.
"""
import argparse
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ORDER = ["core/base", "backends", "kernels", "core/device", "core/memory", "core/stats", "core/workers", "core/files",
         "core/pictures", "core/prefetch", "core/machine", "core/tuning", "core/items", "core/steps", "core/pipeline",
         "core/jobs"]
DEFINITION = re.compile(r"^(?:GPSTI_\w+|static)[^;{}=]*?\b(gpsti_\w+)\s*\([^;{}]*\)\s*\{", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def load():
    """Path -> text as it is."""
    files = {}
    for folder in ORDER:
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*"), recursive=True)):
            if path.endswith((".c", ".h")):
                with open(path, encoding="ascii") as stream:
                    files[os.path.relpath(path, ROOT).replace(os.sep, "/")] = stream.read()
    return files


def edges_of(files):
    """Path -> {path it calls: by what}, and path -> paths it includes."""
    code = {path: without_comments(text) for path, text in files.items()}
    owners = {}
    for path, text in code.items():
        for name in DEFINITION.findall(text):
            owners.setdefault(name, set()).add(path)
    calls, includes = {path: {} for path in files}, {path: set() for path in files}
    for path, text in code.items():
        for name in set(re.findall(r"\bgpsti_\w+", text)):
            found = owners.get(name, ())
            if len(found) == 1 and path not in found:
                calls[path].setdefault(next(iter(found)), name)
        for name in INCLUDE.findall(files[path]):
            found = os.path.normpath(os.path.join(os.path.dirname(path), name)).replace(os.sep, "/")
            if found in files:
                includes[path].add(found)
    return calls, includes


def circles(edges):
    """Strongly connected files, by calls: including a header leads nowhere by itself."""
    index, low, stack, groups = {}, {}, [], []

    def visit(path):
        index[path] = low[path] = len(index)
        stack.append(path)
        for other in edges[path]:
            if other not in index:
                visit(other)
                low[path] = min(low[path], low[other])
            elif other in stack:
                low[path] = min(low[path], index[other])
        if low[path] == index[path]:
            at = stack.index(path)
            groups.append(sorted(stack[at:]))
            del stack[at:]

    for path in edges:
        if path not in index:
            visit(path)
    return [group for group in groups if len(group) > 1]


def main():
    parser = argparse.ArgumentParser(description="Checks the order of the folders.")
    parser.add_argument("--cycles", type=int, default=3, help="files that a circle within a folder may have")
    most = parser.parse_args().cycles
    sys.setrecursionlimit(10000)
    files = load()
    calls, includes = edges_of(files)
    floor = {path: next(i for i, folder in enumerate(ORDER) if path.startswith(folder + "/")) for path in files}
    broken = ["%s calls %s of %s, which stands below it" % (path, name, other) for path in files
              for other, name in sorted(calls[path].items()) if floor[other] > floor[path]]
    broken += ["%s includes %s, which stands below it" % (path, other) for path in files
               for other in sorted(includes[path]) if floor[other] > floor[path]]
    for group in circles(calls):
        folders = {os.path.dirname(path) for path in group}
        if len(folders) > 1 or len(group) > most:
            broken.append("a circle of %d files: %s" % (len(group), " ".join(group)))
    print("\n".join(broken) if broken else "%d files in %d folders: no call runs up" % (len(files), len(ORDER)))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
