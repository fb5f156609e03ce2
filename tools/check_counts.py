#!/usr/bin/env python3
"""tools/check_counts.py -- counts the house, and fails where a count is above its value in tools/counts.txt.

    python3 tools/check_counts.py [--object FILE]     exit status 1 with a line for each count that grew
    python3 tools/check_counts.py --set               writes today's counts into the file; the rest of it stays

counts.txt says how each is counted. --object: gpustage.c as gcc -O2 -c has compiled it; else it is compiled here.
--file: another than tools/counts.txt. Needs Python 3.9 or later, gcc and size.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENGINE = ["core/items", "core/steps", "core/pipeline", "core/workers", "core/tuning", "core/stats"]
PUBLIC_END = "---- the public part ends here"
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
STRUCT = re.compile(r"^(?:typedef )?(?:struct|union) (\w+) \{(.*?)^\}", re.M | re.S)


def without_comments(text):
    """Its lines and literals stay."""
    return COMMENT.sub(lambda found: found.group(1) or " " + "\n" * found.group().count("\n"), text)


def declarations(body):
    """Of a struct, without what is in brackets: each field ends in ; or , then."""
    previous = None
    while previous != body:
        previous, body = body, re.sub(r"\([^()]*\)|\[[^][]*\]", "", body)
    return body


def n_fields(body):
    return len(re.findall("[;,]", declarations(body)))


def count_sources():
    engine = ""
    for folder in ENGINE:
        paths = [path for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*"), recursive=True))
                 if path.endswith((".c", ".h"))]
        if not paths:
            sys.exit("check_counts: %s has no source: its lines are the engine's wherever they went" % folder)
        for path in paths:
            with open(path, encoding="ascii") as stream:
                engine += without_comments(stream.read()) + "\n"
    inside = dict(STRUCT.findall(engine))
    with open(os.path.join(ROOT, "gpustage.h"), encoding="ascii") as stream:
        public, end, _ = stream.read().partition(PUBLIC_END)
    if not end or "gpst_pipeline" not in inside:
        sys.exit("check_counts: no end of gpustage.h's public part, or no struct gpst_pipeline")
    public = without_comments(public)
    structs = dict(STRUCT.findall(public))
    pipeline = inside["gpst_pipeline"]
    rooms = set(re.findall(r"\b(gpsti_\w+)[\s*]+\w+\s*[;,]", declarations(pipeline)))
    return {"engine_lines": sum(1 for line in engine.split("\n") if line.strip()),
            "pipeline_fields": n_fields(pipeline) + sum(n_fields(inside.get(room, "")) for room in rooms),
            "public_functions": len(re.findall(r"^GPST_API\b", public, re.M)),
            "public_structs": len(structs), "public_fields": sum(map(n_fields, structs.values()))}


def output(*command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()


def text_of(path):
    return int(output("size", os.path.abspath(path)).split("\n")[1].split()[0])


def count_text(path):
    if path:
        return text_of(path)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpustage.o")
        output("gcc", "-O2", "-c", "gpustage.c", "-o", path)
        return text_of(path)


def main():
    parser = argparse.ArgumentParser(description="Counts the house.")
    parser.add_argument("--object", help="gpustage.o, compiled by gcc -O2")
    parser.add_argument("--file", default=os.path.join(ROOT, "tools", "counts.txt"), help="the limits")
    parser.add_argument("--set", action="store_true", help="write today's counts into the file")
    options = parser.parse_args()
    counts = count_sources()
    counts["text_bytes"] = count_text(options.object)
    gcc = "-".join(output("gcc", option).strip() for option in ("-dumpversion", "-dumpmachine"))
    with open(options.file, encoding="ascii") as stream:
        text = stream.read()
    if options.set:
        for name, value in list(counts.items()) + [("text_gcc", gcc)]:
            text = re.sub(r"^%s .*$" % name, "%s %s" % (name, value), text, flags=re.M)
        with open(options.file, "w", encoding="ascii") as stream:
            stream.write(text)
    limits = dict(re.findall(r"^([\w.]+) (\S+)$", text, re.M))
    grown = []
    for name, count in counts.items():
        limit, said = int(limits.get(name, 0)), ""
        if name == "text_bytes" and limits.get("text_gcc") != gcc:
            said = ", not judged: the limit is of gcc %s, this is %s" % (limits.get("text_gcc"), gcc)
        elif count > limit:
            grown.append("%s is %d, above %d in %s: something else goes, or it is raised there"
                         % (name, count, limit, os.path.basename(options.file)))
        later = ", ".join("%s +%s" % (of.split(".")[0], value) for of, value in limits.items()
                          if of.endswith("." + name))
        print("%-16s %7d of %7d%s%s" % (name, count, limit, said, later and "; later: " + later))
    print("\n".join(grown), end="\n" if grown else "")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
