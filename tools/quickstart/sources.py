# SPDX-License-Identifier: Apache-2.0
"""Two data sets put together from files that this machine has: texts as JSON Lines, code in
Megatron's format.

Of each collection, files are taken in the order of their names while they fit into the bytes that
are wanted. Large and empty ones, what is no UTF-8, and what was there before (licenses come often)
are passed over.
"""

import glob
import json
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

LARGEST_FILE = 24 << 10  # So that there are many records, of all lengths.
LEAST_BYTES = 1024  # It is not worth looking for files that are smaller.


@dataclass(frozen=True)
class Collection:
    source: str  # As pipeline.toml calls it.
    name: str
    what: str
    patterns: tuple[str, ...]


COLLECTIONS = (
    Collection("texts", "licenses", "licenses", ("/usr/share/common-licenses/*",)),
    Collection("texts", "copyright", "copyrights", ("/usr/share/doc/*/copyright",)),
    Collection("texts", "perl", "Perl's pod", ("/usr/share/perl/*/**/*.pod",)),
    Collection("code", "python", "Python's library", ("/usr/lib/python3*/**/*.py",)),
    Collection("code", "cpp", "C++ headers", ("/usr/include/c++/**/*",)),
)


class NoData(Exception):
    """A source has nothing at all on this machine."""


@dataclass(frozen=True)
class Gathered:
    collection: Collection
    documents: int
    size_bytes: int


def documents_of(collection: Collection, wanted_bytes: int) -> Iterator[tuple[str, str]]:
    """(path, text) of files."""
    seen: set[str] = set()
    for pattern in collection.patterns:
        for path in sorted(glob.iglob(pattern, recursive=True)):
            if wanted_bytes < LEAST_BYTES:
                return
            file = Path(path)
            if not file.is_file() or file.stat().st_size > min(wanted_bytes, LARGEST_FILE):
                continue
            content = file.read_bytes()
            try:
                text = content.decode()
            except UnicodeDecodeError:
                continue
            if text and text not in seen:
                seen.add(text)
                wanted_bytes -= len(content)
                yield path, text


def write_jsonl(path: Path, documents: list[tuple[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for place, text in documents:
            line = json.dumps({"path": place, "text": text}, ensure_ascii=False)
            file.write(line + "\n")


def write_megatron(path: Path, documents: list[tuple[str, str]]) -> None:
    """Bytes as ids of 16 bits, a sequence each (docs/formats/megatron.md)."""
    contents = [text.encode() for _, text in documents]
    lengths = [len(content) for content in contents]
    with path.open("wb") as file:
        for content in contents:
            array("H", list(content)).tofile(file)
    with path.with_suffix(".idx").open("wb") as file:
        count = len(lengths)
        places = accumulate((2 * length for length in lengths[:-1]), initial=0)
        file.write(struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, count, count + 1))
        file.write(struct.pack(f"<{count}i", *lengths))
        file.write(struct.pack(f"<{count}q", *places))
        file.write(struct.pack(f"<{count + 1}q", *range(count + 1)))


def write_sources(folder: Path, wanted_bytes: dict[str, int]) -> list[Gathered]:
    """Writes each collection that is there to a shard of its own; `wanted_bytes` by source."""
    folder.mkdir()
    gathered = []
    for source, wanted in wanted_bytes.items():
        collections = [c for c in COLLECTIONS if c.source == source]
        for number, collection in enumerate(collections):
            so_far = sum(g.size_bytes for g in gathered if g.collection.source == source)
            share = (wanted - so_far) // (len(collections) - number)
            documents = list(documents_of(collection, share))
            size_bytes = sum(len(text.encode()) for _, text in documents)
            gathered.append(Gathered(collection, len(documents), size_bytes))
            if not documents:
                continue
            if source == "texts":
                write_jsonl(folder / f"texts-{collection.name}.jsonl", documents)
            else:
                write_megatron(folder / f"code-{collection.name}.bin", documents)
        if not any(g.documents for g in gathered if g.collection.source == source):
            patterns = ", ".join(p for c in collections for p in c.patterns)
            raise NoData(f"source {source}: this machine has no such files: {patterns}")
    return gathered
