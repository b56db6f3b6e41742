# SPDX-License-Identifier: Apache-2.0
"""The oracle's view of the raw files: a record's tokens, and what a trainer must get of its parts.

Written after docs/formats/pipeline_toml.md and pictures.md.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from quickstart.ids import encoder_of
from quickstart.pictures import Picture, Rules, picture_of
from quickstart.shards import Row, documents_of_ids, rows_of
from quickstart.weights import Weight

NO_LABEL = -100
assert array("i").itemsize == 4 and array("q").itemsize == 8


@dataclass(frozen=True)
class Record:
    tokens: array  # Of unsigned shorts.
    first_label: int  # Tokens before this one are nobody's label.
    picture: Picture | None = None
    cells_at: int = 0  # The first token that stands for a cell of the picture.


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
    picture: bytes = b""  # Which one, and where it stands in this part: see picture_at().

    def __len__(self) -> int:
        return len(self.tokens) // 4

    @property
    def valid_labels(self) -> int:
        labels = array("q", self.labels)
        return len(labels) - labels.count(NO_LABEL)


def picture_at(first: int, last: int, shown: bytes) -> bytes:
    """That tokens [first, last) stand for this picture (pictures.described)."""
    return f"{first}:{last}:".encode() + shown


class Source:
    """All records of a [[source]], in the order of its files' names."""

    def __init__(self, folder: Path, pipeline: dict, table: dict) -> None:
        self.name: str = table["name"]
        self.weight: Weight = table["weight"]
        self._begin: list[int] = pipeline["tokens"].get("begin", [])
        self._end: list[int] = pipeline["tokens"].get("end", [])
        self._part: int = pipeline["step"]["max_sample_tokens"]
        self._fields: dict[str, str] = table.get("fields", {"text": "text"})
        self._on_answer = "answer" in self._fields
        self._rules = Rules(**pipeline["image"]) if "image" in self._fields else None
        self._encode = encoder_of(folder, pipeline)
        self.records: list[Record] = []
        for pattern in table["files"]:
            for path in sorted(folder.glob(pattern)):
                if path.suffix == ".bin":
                    self.records += [self._record(ids) for ids in documents_of_ids(path)]
                else:
                    self.records += self._records_of(list(rows_of(path, self._fields)))

    @cached_property
    def all_tokens(self) -> int:
        return sum(len(record.tokens) for record in self.records)

    def _records_of(self, rows: Sequence[Row]) -> Iterator[Record]:
        encoded = iter(self._encode([text for row in rows for text in row.texts]))
        for row in rows:
            ids = [next(encoded) for _ in row.texts]
            picture = picture_of(row.picture, self._rules) if row.picture and self._rules else None
            yield self._record(*ids, picture=picture)

    def _record(self, *texts: array, picture: Picture | None = None) -> Record:
        cells = [self._rules.token] * picture.cells if picture and self._rules else []
        tokens = array("H", [*self._begin, *cells])
        before_last = len(tokens)
        for text in texts:
            before_last = len(tokens)
            tokens += text
        tokens.extend(self._end)
        first_label = before_last if self._on_answer else 0
        return Record(tokens, first_label, picture, len(self._begin))

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
        picture = b""
        if of_record.picture and part == 0:
            begin, end = of_record.cells_at, of_record.cells_at + of_record.picture.cells
            for place in range(max(begin - 1, 0), end - 1):  # No label is a cell.
                labels[place] = NO_LABEL
            picture = picture_at(begin, end, of_record.picture.shown)
        return Content(
            tokens=array("i", of_record.tokens[first:last]).tobytes(),
            labels=labels.tobytes(),
            positions=array("i", range(first, last)).tobytes(),
            picture=picture,
        )
