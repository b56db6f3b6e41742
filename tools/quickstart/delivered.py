# SPDX-License-Identifier: Apache-2.0
"""What a rank writes down of what it got: a file of its own, step after step.

Of each step a line of JSON, then the bytes of its arrays: for each micro-batch tokens (int32),
labels (int64), positions (int32) and cu_seqlens (int32). The last line says that the rank came to
its end.
"""

import json
from array import array
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from quickstart.records import Content


@dataclass
class MicroBatch:
    tokens: bytes
    labels: bytes
    positions: bytes
    cu_seqlens: bytes

    def __len__(self) -> int:
        return len(self.tokens) // 4

    def sequences(self) -> Iterator[Content]:
        ends = array("i", self.cu_seqlens)
        for lo, hi in zip(ends, ends[1:], strict=False):
            labels = self.labels[8 * lo : 8 * hi]
            yield Content(self.tokens[4 * lo : 4 * hi], labels, self.positions[4 * lo : 4 * hi])

    def faults(self) -> Iterator[str]:
        """Where the arrays do not fit together."""
        ends = array("i", self.cu_seqlens)
        if (len(self.labels), len(self.positions)) != (8 * len(self), 4 * len(self)):
            yield "tokens, labels and positions are not equally many"
        if sorted({0, *ends, len(self)}) != list(ends):
            yield f"cu_seqlens does not ascend from 0 to {len(self)}"


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
        micro_batches = [MicroBatch(*four) for four in arrays]
        return Step(row["step"], row["state"], row["global_valid_labels"], micro_batches)


def write_batch(file: BinaryIO, batch: Any) -> None:
    """`batch` is what the package hands out."""
    micro_batches = [
        MicroBatch(*(one.tobytes() for one in (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens)))
        for mb in batch.micro_batches
    ]
    state = batch.state.decode()
    write_step(file, Step(batch.step, state, batch.global_valid_labels, micro_batches))


def write_step(file: BinaryIO, step: Step) -> None:
    contents = [(m.tokens, m.labels, m.positions, m.cu_seqlens) for m in step.micro_batches]
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
