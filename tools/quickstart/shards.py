# SPDX-License-Identifier: Apache-2.0
"""The oracle's view of shards: what their records hold, in the order of the file.

Read by what others wrote: the zstd command, pyarrow, and Python's json and tarfile; after
docs/formats/jsonl.md, parquet.md, webdataset.md and megatron.md.
"""

import json
import struct
import tarfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet

from quickstart.commands import output_of

Fields = dict[str, str]


@dataclass(frozen=True)
class Row:
    """The texts of a record, prompt and answer where it has both, and its picture."""

    texts: tuple[str, ...]
    picture: bytes | None = None


def rows_of(path: Path, fields: Fields) -> Iterator[Row]:
    (reader,) = (reader for ending, reader in READERS.items() if path.name.endswith(ending))
    return reader(path, fields)


def row_of(record: dict[str, Any], fields: Fields) -> Row:
    texts = [record[fields[role]] for role in ("prompt", "answer", "text") if role in fields]
    return Row(tuple(texts), record[fields["image"]] if "image" in fields else None)


def lines_of(content: bytes, fields: Fields) -> Iterator[Row]:
    for line in content.split(b"\n"):
        if line.strip():
            yield row_of(json.loads(line), fields)


def jsonl(path: Path, fields: Fields) -> Iterator[Row]:
    return lines_of(path.read_bytes(), fields)


def jsonl_zst(path: Path, fields: Fields) -> Iterator[Row]:
    return lines_of(output_of(["zstd", "-dcq", path]), fields)


def parquet(path: Path, fields: Fields) -> Iterator[Row]:
    table = pyarrow.parquet.read_table(path, columns=list(fields.values()))
    return (row_of(record, fields) for record in table.to_pylist())


def tar(path: Path, fields: Fields) -> Iterator[Row]:
    """Neighbours whose names agree up to the first dot are one record."""
    with tarfile.open(path) as archive:
        named = ((*member.name.partition(".")[::2], member) for member in archive)
        for _, members in groupby(named, key=lambda one: one[0]):
            record: dict[str, Any] = {}
            for _, ending, member in members:
                file = archive.extractfile(member)
                assert file, f"{path}: {member.name} is no file"
                content = file.read()
                record[ending] = content.decode() if ending == fields["text"] else content
            yield row_of(record, fields)


READERS: dict[str, Callable[[Path, Fields], Iterator[Row]]] = {
    ".jsonl": jsonl,
    ".jsonl.zst": jsonl_zst,
    ".parquet": parquet,
    ".tar": tar,
}


def documents_of_ids(path: Path) -> Iterator[array]:
    """Of Megatron's `path`, a .bin, and the .idx beside it."""
    ids = array("H", path.read_bytes())
    index = path.with_suffix(".idx").read_bytes()
    mark, version, type_code, sequences, bounds = struct.unpack_from("<9sQBQQ", index)
    assert (mark, version, type_code) == (b"MMIDIDX\0\0", 1, 8), f"{path}: another format"
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    documents = struct.unpack_from(f"<{bounds}q", index, 34 + 12 * sequences)
    place = 0
    for first, last in zip(documents, documents[1:], strict=False):
        size = sum(lengths[first:last])
        yield ids[place : place + size]
        place += size
    assert place == len(ids), f"{path}: {len(ids)} ids, {place} of them in documents"
