#!/usr/bin/env python3
"""tools/check_docs.py -- every public function has a documentation comment with all headings, every struct a short one;
every table of figures names the command that made it.

The comment stands directly above the declaration; declarations that follow one another without a blank line share it.
Every heading must be there and say something ("none" is something), and files named under Source and Tests must exist.

A table of docs/benchmarks/ has its command in its section, or in its file's head, and what a command runs is in the
project. tried.md has no tables: it has at most 100 lines.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
import amalgamate  # noqa: E402

FUNCTION_HEADINGS = ["Parameters", "Shapes", "Returns", "Ownership", "Threads", "Blocking", "Device", "Source", "Tests",
                     "Since"]
STRUCT_HEADINGS = ["Ownership", "Since"]
FUNCTION = re.compile(r"^GPST_API\b")
STRUCT = re.compile(r"^(?:typedef )?struct (\w+) \{")
BLANK, COMMENT, CODE = range(3)


def classify(text):
    """(kind of every line, [(first line, last line, text)] of the comments that begin a line)"""
    kinds = [CODE if line.strip() else BLANK for line in text.split("\n")]
    comments = []
    for found in re.finditer(r"^ *(/\*.*?\*/)[ ]*$", text, re.M | re.S):
        first = text.count("\n", 0, found.start(1))
        last = text.count("\n", 0, found.end(1))
        kinds[first:last + 1] = [COMMENT] * (last + 1 - first)
        comments.append((first, last, found.group(1)))
    return kinds, comments


def comment_above(line, kinds, comments):
    """The comment that covers a declaration at this line: above it, nothing but other code in between."""
    while line > 0 and kinds[line - 1] == CODE:
        line -= 1
    return next((text for _, last, text in comments if last == line - 1), None)


def heading_text(comment, heading):
    """What stands behind a heading; None when the heading is missing. Source, Tests and Since may share a line."""
    found = re.search(r"(?:^ *|  +)%s(?: +([^\n]*?))?(?=$|  +(?:Tests|Since) )" % heading, comment, re.M)
    return None if not found else (found.group(1) or "").strip()


def problems(path, text):
    kinds, comments = classify(text)
    for number, line in enumerate(text.split("\n")):
        struct = STRUCT.match(line)
        if kinds[number] != CODE or not (struct or FUNCTION.match(line)):
            continue
        name = struct.group(1) if struct else re.search(r"\b(gpst_\w+)\s*\(", line)
        name = name if isinstance(name, str) else name.group(1) if name else line
        where = "%s:%d: %s" % (path, number + 1, name)
        comment = comment_above(number, kinds, comments)
        if comment is None:
            yield "%s: no documentation comment directly above" % where
            continue
        wanted = STRUCT_HEADINGS if struct else FUNCTION_HEADINGS
        missing = [heading for heading in wanted if not heading_text(comment, heading)]
        if missing:
            yield "%s: the comment above has no %s" % (where, ", ".join(missing))
        for heading in ("Source", "Tests"):
            for named in re.findall(r"[\w/]+\.(?:cu\.h|cu|c|h|sh|py)\b", heading_text(comment, heading) or ""):
                if not os.path.exists(os.path.join(ROOT, named)):
                    yield "%s: '%s' names %s, which does not exist" % (where, heading, named)


# ---- figures ------------------------------------------------------------------------------------------------------

MEASURED = "docs/benchmarks"
TRIED_LINES = 100
COMMAND = re.compile(r"\bmake bench-\w+|\b(?:build|bench|tools|tests)/[\w/]+|\bpython3 [\w/]+\.py|\bsh tools/\w+|"
                     r"\bgpustage (?:reproject|preprocess|bench|probe)\b|\brun_job \w+ --way|\b(?:gpu|test)_[a-z]\w*")
GONE = re.compile(r"gpustage bench (?!quick\b)[a-z]\w*")


def sections(text):
    """(heading, text) of a file's head and of each section behind it"""
    parts = re.split(r"^(##+ .*)$", text, flags=re.M)
    return [("", parts[0])] + list(zip(parts[1::2], parts[2::2]))


def in_code(text):
    """What stands between backticks, on a line or as a block."""
    return [block or line for block, line in re.findall(r"^```[^\n]*\n(.*?)^```|`([^`]+)`", text, re.M | re.S)]


def has_command(text):
    return any(COMMAND.search(code) for code in in_code(text))


def named_programs(text):
    """Each program or file of the project that commands in it name: (as named, the files of which one must exist)."""
    for code in in_code(text):
        for name in re.findall(r"\b((?:bench|tools|tests)/[\w/.-]*\w\.(?:py|sh|c|cu|cpp|h))\b", code):
            yield name, [name]
        for name in re.findall(r"\bgpu_([a-z]+)\b(?!\.)", code):
            yield "gpu_" + name, ["bench/gpu/%s.cu" % name, "tools/gpu_%s.sh" % name]
        for name in re.findall(r"\bbuild/(?:cuda/)?bench/(\w+)", code):
            yield name, ["bench/%s.c" % name, "bench/gpu/%s.cu" % name.replace("gpu_", "")]


def figure_problems(path, text, every_section):
    """every_section: of a file that holds figures alone; else only the sections called groups of constants."""
    parts = sections(text)
    for heading, body in parts:
        has_table = re.search(r"^\|", body, re.M) and (every_section or heading == "### The groups")
        if has_table and not has_command(body) and not (every_section and has_command(parts[0][1])):
            yield "%s: %s: no command that made its figures" % (path, heading or "head")
    for name, files in named_programs(text):
        if not any(os.path.exists(os.path.join(ROOT, file)) for file in files):
            yield "%s: names %s, which does not exist" % (path, name)
    for gone in GONE.findall(text):
        yield "%s: names '%s', which the command does not know" % (path, gone)


def all_figure_problems():
    for name in sorted(os.listdir(os.path.join(ROOT, MEASURED))):
        with open(os.path.join(ROOT, MEASURED, name), encoding="utf-8") as stream:
            text = stream.read()
        if name == "tried.md" and text.count("\n") > TRIED_LINES:
            yield "%s/tried.md: %d lines: must be at most %d" % (MEASURED, text.count("\n"), TRIED_LINES)
        if name not in ("tried.md", "README.md"):
            yield from figure_problems("%s/%s" % (MEASURED, name), text, True)
    with open(os.path.join(ROOT, "docs", "tuner.md"), encoding="utf-8") as stream:
        yield from figure_problems("docs/tuner.md", stream.read(), False)


def main():
    found = list(all_figure_problems())
    for path in amalgamate.PUBLIC:
        with open(os.path.join(ROOT, path), encoding="ascii") as stream:
            found += problems(path, stream.read())
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print("check_docs.py: %d problems; CONTRIBUTING.md shows the form of the comment" % len(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
