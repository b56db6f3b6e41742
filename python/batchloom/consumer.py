# SPDX-License-Identifier: Apache-2.0
"""A rank's way through a stream of batches."""

import atexit
import os
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Self

from . import _core
from ._core import Batch, Topology, whole_number
from .errors import Invalid

Framework = Literal["numpy", "torch"]


class Consumer(Iterator[Batch]):
    """Hands out the steps of a stream to one rank of a job, in order, read ahead and verified.

    >>> data = Consumer("./stream", rank=0, world_size=8, group="run-7")  # doctest: +SKIP
    >>> for batch in data:                                                # doctest: +SKIP
    ...     for mb in batch.micro_batches:
    ...         loss = model(mb.tokens, mb.positions, mb.cu_seqlens, mb.labels)

    Iterating waits for steps that are not committed yet, and ends with an ended stream. One thread
    at a time, and in the process that opened it: forked ones open their own. close() may come from
    any thread: one that waits for a step is then told Cancelled. Where the interpreter ends, daemon
    threads that wait end with SystemExit.
    """

    # For the stream, before it was constructed: attach() does.
    _waited_s = 0.0

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
        framework: Framework = "numpy",
        open_timeout: float = 60.0,
        split_samples: bool = False,
    ) -> None:
        """Opens the stream, and waits for it up to `open_timeout` seconds.

        path: "./dir", "/abs/dir", "file:///abs/dir", or a path object.
        rank, world_size: this rank, and how many there are. Steps that were laid out for another
            number are laid out anew, with the same samples.
        topology: instead of `world_size` where tp, cp or pp exceed 1: "pp=1 dp=4 cp=1 tp=2".
        group: the job. Its pins and its cursor keep the steps that it may need: those of its first
            rank, with which all others go in step, as a training job's ranks do.
        resume: the `state` of the last batch that the model's checkpoint knows of.
        start: without a state, the first step. A group that has run before needs one of the two.
        min_slot: a manifest slot; all ranks that open with the same one pass over the same SKIPs.
        prefetch_bytes: the most that is read ahead.
        framework: what arrays are: NumPy's, or torch's tensors over the same memory.
        split_samples: take streams of hdp, where a sample may lie on more ranks than the extent of
            cp, and ranks may run other numbers of micro-batches. They raise Invalid without it, but
            where the job has one rank, which has all of each sample.
        """
        if framework not in ("numpy", "torch"):
            raise Invalid(f"framework={framework!r}: there are 'numpy' and 'torch'")
        if framework == "torch":
            import torch  # noqa: F401, PLC0415  So that its absence is seen here.
        self._core = open_core(
            url_of(path),
            rank=whole_number("rank", rank),
            topology=topology_of(world_size, topology),
            group=group,
            resume=None if resume is None else state_bytes("resume", resume),
            start=whole_number_or_none("start", start),
            min_slot=whole_number("min_slot", min_slot),
            prefetch_bytes=whole_number("prefetch_bytes", prefetch_bytes),
            for_torch=framework == "torch",
            open_timeout=open_timeout,
            split_samples=split_samples,
            report_cursor=True,
            waited=self._waited_s,
        )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        batch = self._core.next(None)
        if batch is None:
            raise StopIteration
        return batch

    def next(self, timeout: float | None = None) -> Batch | None:
        """The next step; None at the end of the stream. Unavailable after `timeout` seconds: it is
        still the next one."""
        return self._core.next(timeout)

    def pin(self, state: bytes, *, name: str, keep: int | None = None) -> None:
        """Keeps the steps from `state` on for the checkpoint called `name`, before it is written.

        With `keep`, the group's older pins of the same series go, but for the newest `keep`. Names
        that differ only in their digits are a series: "step-10" and "step-20".
        """
        self._core.pin(state_bytes("state", state), name, whole_number_or_none("keep", keep))

    def unpin(self, name: str) -> int:
        """Removes the group's pins of this name, and says how many there were."""
        return self._core.unpin(name)

    def seek(self, state: bytes) -> None:
        """Goes on where `state` says, forward or back."""
        self._core.seek(state_bytes("state", state))

    @property
    def cursor(self) -> int:
        """The next step."""
        return self._core.cursor

    @property
    def slot(self) -> int:
        """The manifest slot that it opened with: what other ranks take as `min_slot`."""
        return self._core.slot

    def counters(self) -> dict[str, int]:
        """What was counted so far, by name: steps, bytes, requests, stalls, buffers."""
        return self._core.counters()

    def close(self) -> None:
        """The job is done: reading ends, and producers need not wait for this group any more.

        Another thread that waits in a call gets Cancelled, as do all calls from then on."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error the group still needs its steps: whoever resumes goes on there.
        if kind is None:
            self.close()
        else:
            self._core.release()


# Their threads end before the interpreter does.
_open_consumers: "weakref.WeakSet[_core.Consumer]" = weakref.WeakSet()


def open_core(url: str, **settings: Any) -> _core.Consumer:
    """A Consumer of _core that is released when the interpreter ends."""
    consumer = _core.Consumer(url, **settings)
    _open_consumers.add(consumer)
    return consumer


@atexit.register
def _release_all() -> None:
    _core.end_all_calls()
    with ExitStack() as releases:  # Goes on after an error.
        for consumer in _open_consumers:
            releases.callback(consumer.release)


def url_of(path: str | os.PathLike[str]) -> str:
    """A store URL. What is given as text must be one; a path object may be any path."""
    if isinstance(path, str):
        return path
    return os.path.abspath(os.fspath(path))


def whole_number_or_none(name: str, value: int | None) -> int | None:
    return None if value is None else whole_number(name, value)


def state_bytes(name: str, value: bytes) -> bytes:
    """The argument `name`. TypeError, naming it, for what is no batch's state at all."""
    if isinstance(value, bytes):
        return value
    raise TypeError(f"{name}: the bytes of a batch's state are needed, not {type(value).__name__}")


def topology_of(world_size: int | None, topology: Topology | str | None) -> Topology:
    """The job's topology. Invalid without either, and where they differ."""
    world_size = whole_number_or_none("world_size", world_size)
    if topology is None:
        if world_size is None:
            raise Invalid("give world_size, or topology where tp, cp or pp exceed 1")
        if world_size < 1:
            raise Invalid(f"world_size={world_size}: a job has at least 1 rank")
        return Topology(f"dp={world_size}")
    if isinstance(topology, str):
        topology = Topology(topology)
    if world_size is not None and world_size != topology.world_size:
        raise Invalid(
            f"world_size={world_size}, but topology={str(topology)!r} has "
            f"{topology.world_size} ranks: leave out world_size"
        )
    return topology
