#!/usr/bin/env python3
"""tools/check_docs.py -- every public function has a documentation comment with all headings, every struct a short one.

The comment stands directly above the declaration; declarations that follow one another without a blank line share it.
Every heading must be there and say something ("none" is something), and files named under Source and Tests must exist.
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


def main():
    found = []
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
