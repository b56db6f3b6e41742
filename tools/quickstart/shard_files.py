# SPDX-License-Identifier: Apache-2.0
"""Writes shards in each format that the quickstart shows, with tools of others."""

import io
import json
import tarfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shards import megatron

FRAME_BYTES = 1 << 20  # Of content: so much at most is decoded for one record.
ROW_GROUP_ROWS = 1000

Record = dict[str, str]


def write_jsonl(path: Path, records: Iterable[Record]) -> None:
    path.write_bytes(b"".join(lines_of(records)))


def write_jsonl_zst(path: Path, records: Iterable[Record]) -> None:
    """In frames of at most FRAME_BYTES, but for a line that has more by itself."""
    zstd = pa.Codec("zstd")
    with path.open("wb") as file:
        for frame in frames_of(lines_of(records)):
            file.write(zstd.compress(frame, asbytes=True))


def lines_of(records: Iterable[Record]) -> Iterator[bytes]:
    return (json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def frames_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    frame = bytearray()
    for line in lines:
        if frame and len(frame) + len(line) > FRAME_BYTES:
            yield bytes(frame)
            frame.clear()
        frame += line
    if frame:
        yield bytes(frame)


def write_parquet(path: Path, records: Sequence[Record]) -> None:
    table = pa.Table.from_pylist(list(records))
    pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS, compression="zstd")


def write_tar(path: Path, samples: Iterable[dict[str, bytes]]) -> None:
    """Of WebDataset: by ending the content of a sample's members."""
    with tarfile.open(path, "w") as archive:
        for number, sample in enumerate(samples):
            for ending, content in sample.items():
                member = tarfile.TarInfo(f"{number:06}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def write_megatron(path: Path, documents: Sequence[array]) -> None:
    """Ids of 16 bits, a document a sequence (docs/formats/megatron.md)."""
    with path.open("wb") as file:
        for ids in documents:
            ids.tofile(file)
    path.with_suffix(".idx").write_bytes(megatron.index_of([len(ids) for ids in documents]))
