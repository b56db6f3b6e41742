# SPDX-License-Identifier: Apache-2.0
"""What a rank writes down of what it got: a file of its own, step after step.

Of each step a line of JSON, then the bytes of its arrays: for each micro-batch tokens (int32),
labels (int64), positions (int32), cu_seqlens (int32), and of its pictures the spans of tokens that
stand for them (int32, two each), their heights and widths (int32, two each) and their pixels
(uint8, three each). The last line says that the rank came to its end.
"""

import json
from array import array
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import astuple, dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from quickstart.pictures import described
from quickstart.records import Content, picture_at


@dataclass
class MicroBatch:
    tokens: bytes
    labels: bytes
    positions: bytes
    cu_seqlens: bytes
    spans: bytes = b""
    shapes: bytes = b""
    pixels: bytes = b""

    def __len__(self) -> int:
        return len(self.tokens) // 4

    def sequences(self) -> Iterator[Content]:
        ends = array("i", self.cu_seqlens)
        pictures = list(self._pictures())
        for lo, hi in zip(ends, ends[1:], strict=False):
            labels = self.labels[8 * lo : 8 * hi]
            yield Content(
                self.tokens[4 * lo : 4 * hi],
                labels,
                self.positions[4 * lo : 4 * hi],
                b"".join(picture_at(a - lo, b - lo, s) for a, b, s in pictures if lo <= a < hi),
            )

    def _pictures(self) -> Iterator[tuple[int, int, bytes]]:
        """Of each picture its span of tokens, and what it shows."""
        spans, shapes, place = array("i", self.spans), array("i", self.shapes), 0
        for i in range(0, len(spans), 2):
            height, width = shapes[i : i + 2]
            pixels = self.pixels[place : place + 3 * height * width]
            place += len(pixels)
            yield spans[i], spans[i + 1], described(height, width, pixels)

    def faults(self) -> Iterator[str]:
        """Where the arrays do not fit together."""
        ends, spans, shapes = (array("i", a) for a in (self.cu_seqlens, self.spans, self.shapes))
        if (len(self.labels), len(self.positions)) != (8 * len(self), 4 * len(self)):
            yield "tokens, labels and positions are not equally many"
        if sorted({0, *ends, len(self)}) != list(ends):
            yield f"cu_seqlens does not ascend from 0 to {len(self)}"
        sizes = zip(shapes[::2], shapes[1::2], strict=False)
        if len(self.pixels) != 3 * sum(height * width for height, width in sizes):
            yield "its pictures have other numbers of pixels than their sizes say"
        if sorted(spans) != list(spans) or (spans and not 0 <= spans[0] < spans[-1] <= len(self)):
            yield "spans of its pictures do not ascend within its tokens"


@dataclass
class Step:
    step: int
    state: str
    global_valid_labels: int
    micro_batches: list[MicroBatch]


class RankFile:
    """A rank's file, as far as it goes: where a rank was killed it ends anywhere."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[tuple[dict, int]] = []  # And where their arrays begin.
        self.peak_memory_bytes: int | None = None  # None: the rank did not come to its end.
        size = path.stat().st_size if path.exists() else 0
        with path.open("rb") if size else nullcontext(BytesIO()) as file:
            while (line := file.readline()).endswith(b"\n"):
                row = json.loads(line)
                if "step" not in row:
                    self.peak_memory_bytes = row["peak_memory_bytes"]
                    break
                begin = file.tell()
                end = begin + sum(map(sum, row["sizes"]))
                if end > size:
                    break
                self._rows.append((row, begin))
                file.seek(end)

    def step_numbers(self) -> list[int]:
        return [row["step"] for row, _ in self._rows]

    def load(self, step: int) -> list[Step]:
        """All that was delivered as this step."""
        return [self._load(*row) for row in self._rows if row[0]["step"] == step]

    def load_all(self) -> list[Step]:
        """In order."""
        return [self._load(*row) for row in self._rows]

    def _load(self, row: dict, begin: int) -> Step:
        with self._path.open("rb") as file:
            file.seek(begin)
            arrays = [[file.read(size) for size in sizes] for sizes in row["sizes"]]
        micro_batches = [MicroBatch(*of_one) for of_one in arrays]
        return Step(row["step"], row["state"], row["global_valid_labels"], micro_batches)


def write_batch(file: BinaryIO, batch: Any) -> None:
    """`batch` is what the package hands out."""
    micro_batches = [
        MicroBatch(
            *(one.tobytes() for one in (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens)),
            spans=flat(mb.image_spans),
            shapes=flat(image.shape[:2] for image in mb.images),
            pixels=b"".join(image.tobytes() for image in mb.images),
        )
        for mb in batch.micro_batches
    ]
    state = batch.state.decode()
    write_step(file, Step(batch.step, state, batch.global_valid_labels, micro_batches))


def flat(pairs: Iterable[tuple[int, int]]) -> bytes:
    return array("i", chain.from_iterable(pairs)).tobytes()


def write_step(file: BinaryIO, step: Step) -> None:
    contents = [astuple(micro_batch) for micro_batch in step.micro_batches]
    row = {
        "step": step.step,
        "state": step.state,
        "global_valid_labels": step.global_valid_labels,
        "sizes": [[len(one) for one in of_micro_batch] for of_micro_batch in contents],
    }
    file.write(json.dumps(row).encode() + b"\n")
    for of_micro_batch in contents:
        file.writelines(of_micro_batch)


def write_end(file: BinaryIO, peak_memory_bytes: int) -> None:
    file.write(json.dumps({"peak_memory_bytes": peak_memory_bytes}).encode() + b"\n")
