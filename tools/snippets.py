#!/usr/bin/env python3
"""tools/snippets.py -- writes the named code blocks of a text into a folder, so that CI runs what the text shows.

    python3 tools/snippets.py README.md FOLDER

A block is named by a second word behind its fence: ```c app.c. Blocks of one name are joined in order.
"""
import os
import re
import sys


def snippets(text):
    """{name: contents} of the fenced blocks that have a name."""
    found = {}
    for name, body in re.findall(r"^ *```\w+ ([\w.]+)\n(.*?)^ *```$", text, re.M | re.S):
        found[name] = found.get(name, "") + body
    return found


def main():
    if len(sys.argv) != 3:
        print("usage: snippets.py FILE FOLDER", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as stream:
        found = snippets(stream.read())
    if not found:
        print("%s: no named code block" % sys.argv[1], file=sys.stderr)
        return 1
    for name, body in found.items():
        with open(os.path.join(sys.argv[2], name), "w", encoding="utf-8") as stream:
            stream.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
