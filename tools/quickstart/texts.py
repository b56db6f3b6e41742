# SPDX-License-Identifier: Apache-2.0
"""Texts out of files of packages: plain ones, pages of help, entries of a dictionary."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

# What no text has: characters that a terminal obeys. Such files are passed over.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
MALLARD = "{http://projectmallard.org/1.0/}"
NOT_READ = {MALLARD + "info"}  # Who wrote it, and when.
GZIP_ENDINGS = (".gz", ".dz")


class NoText(Exception):
    """The file holds none, or none that can be read."""


Texts = Callable[[Path], Iterator[str]]


def bytes_of(path: Path) -> bytes:
    raw = path.read_bytes()
    try:
        return gzip.decompress(raw) if path.suffix in GZIP_ENDINGS else raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise NoText(str(error)) from error


def text_of(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise NoText(str(error)) from error
    if CONTROL.search(text):
        raise NoText("it has control characters")
    return text


def whole(path: Path) -> Iterator[str]:
    """A file is a text."""
    yield text_of(bytes_of(path))


def page(path: Path) -> Iterator[str]:
    """A page of Mallard, without its marks: a line for each that has text."""
    try:
        root = ElementTree.fromstring(text_of(bytes_of(path)))
    except ElementTree.ParseError as error:
        raise NoText(str(error)) from error
    for element in root.iter():
        for child in [one for one in element if one.tag in NOT_READ]:
            element.remove(child)
    words = (line.split() for line in "".join(root.itertext()).splitlines())
    yield "\n".join(" ".join(line) for line in words if line)


def entries(path: Path) -> Iterator[str]:
    """A dictionary, cut at blank lines. Senses, which are indented, stay with their word. Not all
    entries need be UTF-8."""
    entry: list[bytes] = []
    for paragraph in [*re.split(rb"\n[ \t]*\n", bytes_of(path)), b""]:
        if entry and not paragraph.startswith(b" "):
            with suppress(NoText):
                yield text_of(b"\n\n".join(entry))
            entry.clear()
        if paragraph.strip():
            entry.append(paragraph.strip(b"\n"))
