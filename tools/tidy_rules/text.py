# SPDX-License-Identifier: Apache-2.0
"""Rules about the text of any file: headers, lengths, spaces, marks, paths."""

import re
from collections.abc import Iterator

from tidy_rules.tree import CODE, CPP, TEXT, Finding, Tree

SPDX = "SPDX-License-Identifier: Apache-2.0"
MAX_COLUMNS = 100
MAX_LINES = {"cpp": 600, "python": 600, "header": 300}

# Spelled so that this file does not contain what it forbids.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~$}>-])/(?:home|root|work|Users)/\w|\.\./shared\b")


def spdx(tree: Tree) -> Iterator[Finding]:
    """The licence is named on the first line, or on the second after `#!`."""
    for file in tree.of_kind(*CODE):
        line = 2 if file.text.startswith("#!") else 1
        if len(file.lines) < line or SPDX not in file.lines[line - 1]:
            yield Finding(file.path, line, f"this line should be a comment with '{SPDX}'")


def line_length(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*CPP, "python", "cmake"):
        for number, line in enumerate(file.lines, 1):
            if len(line) > MAX_COLUMNS:
                message = f"{len(line)} columns: wrap the line at {MAX_COLUMNS}"
                yield Finding(file.path, number, message)


def file_length(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*MAX_LINES):
        limit = MAX_LINES[file.kind]
        if len(file.lines) > limit:
            message = f"{len(file.lines)} lines, at most {limit}: split the file by concern"
            yield Finding(file.path, limit + 1, message)


def whitespace(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*TEXT):
        for number, line in enumerate(file.lines, 1):
            if "\t" in line:
                yield Finding(file.path, number, "tab: indent with spaces")
            if line != line.rstrip():
                yield Finding(file.path, number, "trailing space: remove it")
        if file.text and not file.text.endswith("\n"):
            yield Finding(file.path, len(file.lines), "no newline at the end of the file: add one")


def unfinished(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*TEXT):
        for number, line in enumerate(file.lines, 1):
            if mark := UNFINISHED.search(line):
                yield Finding(file.path, number, f"{mark[0]}: finish it, or open an issue")


def machine_path(tree: Tree) -> Iterator[Finding]:
    """The project stands alone: it knows no folder outside its own checkout."""
    for file in tree.files:
        for number, line in enumerate(file.lines, 1):
            if place := MACHINE_PATH.search(line):
                message = f"'{place[0]}' is a path of one machine: name it from the checkout"
                yield Finding(file.path, number, message)
