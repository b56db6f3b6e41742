# SPDX-License-Identifier: Apache-2.0
"""The oracle's view of the raw files: a record's tokens, and what a trainer must get of its parts.

Written after docs/formats/pipeline_toml.md, jsonl.md and megatron.md, in plain Python.
"""

import json
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NO_LABEL = -100
assert array("i").itemsize == 4 and array("q").itemsize == 8


@dataclass(frozen=True)
class Record:
    tokens: array  # Of unsigned shorts.
    first_label: int  # Tokens before this one are nobody's label.


@dataclass(frozen=True, order=True)
class PartId:
    source: int
    epoch: int
    record: int
    part: int

    def __str__(self) -> str:
        return f"{self.source}:{self.epoch}:{self.record}:{self.part}"


@dataclass(frozen=True)
class Content:
    """What a trainer gets of a part: the bytes of its arrays."""

    tokens: bytes  # int32
    labels: bytes  # int64
    positions: bytes  # int32

    def __len__(self) -> int:
        return len(self.tokens) // 4

    @property
    def valid_labels(self) -> int:
        labels = array("q", self.labels)
        return len(labels) - labels.count(NO_LABEL)


class Source:
    """All records of a [[source]], in the order of its files' names."""

    def __init__(self, folder: Path, pipeline: dict, table: dict) -> None:
        self.name: str = table["name"]
        self.weight: float = table["weight"]
        self._begin: list[int] = pipeline["tokens"].get("begin", [])
        self._end: list[int] = pipeline["tokens"].get("end", [])
        self._part: int = pipeline["step"]["max_sample_tokens"]
        self.records: list[Record] = []
        for pattern in table["files"]:
            for path in sorted(folder.glob(pattern)):
                if path.suffix == ".jsonl":
                    self.records += self._jsonl(path, table["fields"])
                else:
                    self.records += self._megatron(path)

    def _jsonl(self, path: Path, fields: dict[str, str]) -> Iterator[Record]:
        for line in path.read_bytes().split(b"\n"):
            if line.strip():
                record = json.loads(line)
                prompt = record[fields["prompt"]].encode()
                answer = record[fields["answer"]].encode()
                tokens = array("H", [*self._begin, *prompt, *answer, *self._end])
                yield Record(tokens, first_label=len(self._begin) + len(prompt))

    def _megatron(self, path: Path) -> Iterator[Record]:
        ids = array("H", path.read_bytes())
        index = path.with_suffix(".idx").read_bytes()
        mark, version, type_code, sequences, bounds = struct.unpack_from("<9sQBQQ", index)
        assert (mark, version, type_code) == (b"MMIDIDX\0\0", 1, 8), f"{path}: another format"
        lengths = struct.unpack_from(f"<{sequences}i", index, 34)
        documents = struct.unpack_from(f"<{bounds}q", index, 34 + 12 * sequences)
        place = 0
        for first, last in zip(documents, documents[1:], strict=False):
            size = sum(lengths[first:last])
            of_record = ids[place : place + size]
            yield Record(array("H", [*self._begin, *of_record, *self._end]), first_label=0)
            place += size
        assert place == len(ids), f"{path}: {len(ids)} ids, {place} of them in documents"

    def part_tokens(self, record: int, part: int) -> int:
        rest = len(self.records[record].tokens) - part * self._part
        return min(rest, self._part)

    def parts_of(self, record: int) -> int:
        return -(-len(self.records[record].tokens) // self._part)

    def content(self, record: int, part: int) -> Content:
        """Labels are the next tokens of the record, across parts; positions count in the record."""
        of_record = self.records[record]
        first = part * self._part
        last = min(first + self._part, len(of_record.tokens))
        labels = array("q", of_record.tokens[first + 1 : last + 1])
        if last == len(of_record.tokens):
            labels.append(NO_LABEL)
        for place in range(min(of_record.first_label - 1 - first, len(labels))):
            labels[place] = NO_LABEL
        return Content(
            tokens=array("i", of_record.tokens[first:last]).tobytes(),
            labels=labels.tobytes(),
            positions=array("i", range(first, last)).tobytes(),
        )
