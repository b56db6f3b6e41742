# SPDX-License-Identifier: Apache-2.0
"""A stream as a data set of PyTorch: batchloom.torch.Dataset.

    data = bl.torch.Dataset("./stream", rank=rank, world_size=world, group="run-7")
    for batch in DataLoader(data, batch_size=None):
        ...
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import _core
from ._core import Topology, whole_number
from .consumer import open_core, state_bytes, topology_of, url_of, whole_number_or_none
from .errors import Invalid, ResumeMissing


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """As batchloom.MicroBatch, in tensors."""

    tokens: torch.Tensor
    labels: torch.Tensor
    positions: torch.Tensor
    cu_seqlens: torch.Tensor
    images: list[torch.Tensor]
    image_spans: list[tuple[int, int]]

    @classmethod
    def of(cls, mb: _core.MicroBatch) -> Self:
        return cls(*(getattr(mb, field.name) for field in fields(cls)))

    def pin_memory(self, device: Any = None) -> Self:
        """In page-locked memory, as DataLoader asks for."""
        return type(self)(
            tokens=self.tokens.pin_memory(),
            labels=self.labels.pin_memory(),
            positions=self.positions.pin_memory(),
            cu_seqlens=self.cu_seqlens.pin_memory(),
            images=[image.pin_memory() for image in self.images],
            image_spans=self.image_spans,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """As batchloom.Batch, and able to travel between processes."""

    step: int
    state: bytes
    global_valid_labels: int
    producer: str
    events: list[tuple[int, str]]
    micro_batches: list[MicroBatch]

    @classmethod
    def of(cls, batch: _core.Batch) -> Self:
        return cls(
            step=batch.step,
            state=batch.state,
            global_valid_labels=batch.global_valid_labels,
            producer=batch.producer,
            events=batch.events,
            micro_batches=[MicroBatch.of(mb) for mb in batch.micro_batches],
        )

    def pin_memory(self, device: Any = None) -> Self:
        """In page-locked memory, as DataLoader asks for."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["micro_batches"] = [mb.pin_memory(device) for mb in self.micro_batches]
        return type(self)(**values)


class Dataset(IterableDataset[Batch]):
    """The steps of one rank, for a DataLoader with batch_size=None: a batch is a whole step.

    A Consumer reads ahead by itself, so workers are not needed for speed. With n of them, worker w
    serves the steps w, w + n, ... from the beginning on, each read once, and they are delivered in
    order. What a batch's `state` has of the samples, their hash, is then of its worker's steps.

    state_dict() goes into the checkpoint; load_state_dict() goes on from there, with any number of
    workers. Where workers deliver, this process does not see how far the loop is: the checkpoint
    then takes {"state": batch.state}. All passes of a DataLoader with workers begin alike.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rank: int,
        world_size: int | None = None,
        topology: Topology | str | None = None,
        group: str = "default",
        resume: bytes | None = None,
        start: int | None = None,
        min_slot: int = 0,
        prefetch_bytes: int = 256 << 20,
        open_timeout: float = 60.0,
        split_samples: bool = False,
    ) -> None:
        """Arguments as of Consumer. Waits for the stream, and begins to read with the first
        iteration: ResumeMissing comes only then, so that load_state_dict() may come before."""
        super().__init__()
        self._job: dict[str, Any] = {
            "rank": whole_number("rank", rank),
            "topology": topology_of(world_size, topology),
            "group": group,
            "open_timeout": open_timeout,
        }
        self._reading = {
            "prefetch_bytes": whole_number("prefetch_bytes", prefetch_bytes),
            "split_samples": split_samples,
        }
        self._url = url_of(path)
        self._missing: ResumeMissing | None = None
        self._slot, self._state = 0, b""
        try:
            self._begin_at(
                None if resume is None else state_bytes("resume", resume),
                whole_number_or_none("start", start),
                whole_number("min_slot", min_slot),
            )
        except ResumeMissing as missing:
            self._missing = missing
        # Workers have a copy of this object, and this in common.
        self._workers_began = torch.zeros(1, dtype=torch.uint8).share_memory_()

    def state_dict(self) -> dict[str, bytes]:
        """Of what was handed out in this process. Invalid where workers hand out."""
        if self._workers_began.item():
            raise Invalid(
                "this data set is read by the workers of a DataLoader, which are ahead of the "
                'loop: keep {"state": batch.state} of the last batch instead'
            )
        if self._missing:
            raise self._missing
        return {"state": self._state}

    def load_state_dict(self, state: dict[str, bytes]) -> None:
        """The next iteration begins there. Invalid for another stream's state."""
        self._begin_at(state_bytes('state["state"]', state.get("state")), None, 0)
        self._missing = None
        self._workers_began.zero_()

    def __iter__(self) -> Iterator[Batch]:
        if self._missing:
            raise self._missing
        worker = get_worker_info()
        if worker is None:
            yield from self._read_all()
        else:
            self._workers_began.fill_(1)
            yield from self._read_turns(worker.id, worker.num_workers)

    def _read_all(self) -> Iterator[Batch]:
        consumer = self._open(report_cursor=True)
        try:
            while (batch := consumer.next(None)) is not None:
                self._state = batch.state
                yield Batch.of(batch)
            consumer.close()
        finally:
            consumer.release()

    def _read_turns(self, worker: int, workers: int) -> Iterator[Batch]:
        """Every step whose turn it is. The DataLoader asks its workers by turns, too."""
        # The first worker speaks for all. Reading ahead would read what others serve.
        ahead = {} if workers == 1 else {"prefetch_bytes": 0}
        consumer = self._open(report_cursor=worker == 0, **ahead)
        try:
            skipped = set(consumer.skipped)
            step = _after(consumer.cursor, worker, skipped)
            while True:
                if step != consumer.cursor:
                    consumer.skip_to(step)
                batch = consumer.next(None)
                if batch is None:
                    break
                yield Batch.of(batch)
                step = _after(batch.step, workers, skipped)
            if worker == 0:
                consumer.close()
        finally:
            consumer.release()

    def _begin_at(self, resume: bytes | None, start: int | None, min_slot: int) -> None:
        """Once, so that all workers begin alike."""
        self._slot, self._state = _core.find_start(
            self._url, resume=resume, start=start, min_slot=min_slot, **self._job
        )

    def _open(self, **settings: Any) -> _core.Consumer:
        return open_core(
            self._url,
            **self._job,
            resume=self._state,
            start=None,
            min_slot=self._slot,
            for_torch=True,
            waited=0.0,
            **(self._reading | settings),
        )


def _after(step: int, steps: int, skipped: set[int]) -> int:
    """So many steps further, skipped ones not counted; not a skipped one."""
    while step in skipped:
        step += 1
    for _ in range(steps):
        step += 1
        while step in skipped:
            step += 1
    return step
