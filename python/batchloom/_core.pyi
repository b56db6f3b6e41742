from collections.abc import Sequence
from typing import Any

import numpy


def whole_number(name: str, value: object) -> int:
    """
    The argument `name` as an int: NumPy's and torch's are taken. TypeError, naming it, for bools and for whatever else is no whole number.
    """

class Topology:
    """The ranks of a job as a box with named axes. Immutable."""

    def __init__(self, axes: str) -> None:
        """
        From axes like "pp=1 dp=8 cp=1 tp=1", outermost first: the last one's neighbours have neighbouring ranks. Axes that are not named have extent 1.
        """

    @property
    def world_size(self) -> int:
        """The product of all extents."""

    @property
    def hdp_size(self) -> int:
        """
        The product of the dp and cp extents: among so many the samples of a step are divided.
        """

    def extent(self, axis: str) -> int:
        """Of "pp", "dp", "cp" or "tp"."""

    def hdp_rank(self, rank: int) -> int:
        """
        Whose part of a step this rank runs: ranks that differ along pp and tp alone run the same.
        """

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[type[Topology], tuple[str]]:
        """For pickle: by its text."""

    def __hash__(self) -> int: ...

    def __eq__(self, arg: Topology, /) -> bool: ...

class Piece:
    """Tokens [lo, hi) of a sample."""

    @property
    def sample(self) -> int:
        """Its place among the lengths."""

    @property
    def lo(self) -> int: ...

    @property
    def hi(self) -> int: ...

    def __len__(self) -> int: ...

    def __eq__(self, arg: Piece, /) -> bool: ...

    def __repr__(self) -> str: ...

class Plan:
    """Who computes what of one optimizer step."""

    @property
    def ranks(self) -> list[list[list[Piece]]]:
        """
        By HDP rank its micro-batches, in the order in which it runs them, each a list of pieces. An empty one is a filler.
        """

    @property
    def strategy(self) -> str: ...

    @property
    def topology(self) -> Topology: ...

    @property
    def bound_ns(self) -> int:
        """No plan of this step can be faster; 0: none."""

    @property
    def makespan_ns(self) -> int:
        """Predicted time of the slowest rank."""

def plan(lengths: Sequence[int], topology: Topology, *, strategy: str, capacity: int, cost_model: str, min_share: int, offload: bool) -> Plan: ...

def strategies() -> list[str]:
    """What plan() knows as strategy."""

class StoredTensor:
    """What goes with a token of a piece: a picture."""

    @property
    def token(self) -> int:
        """Its token, counted from the piece's first."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str:
        """u8, i32, i64, f16, bf16 or f32."""

    @property
    def array(self) -> numpy.ndarray:
        """Read-only, without a copy; bf16 as the bits of uint16."""

class StoredPiece:
    """Tokens [lo, hi) of a sample, as stored."""

    @property
    def sample(self) -> tuple[int, int, int, int]:
        """(source, epoch, record, part)"""

    @property
    def sample_tokens(self) -> int:
        """Of the whole sample."""

    @property
    def lo(self) -> int: ...

    @property
    def hi(self) -> int: ...

    @property
    def first_position(self) -> int:
        """The position, in its record, of the sample's token 0."""

    @property
    def tokens(self) -> numpy.ndarray:
        """Read-only, uint16 or uint32, without a copy."""

    @property
    def next_token(self) -> int | None:
        """The token after the piece; None at the end of a record."""

    @property
    def labels(self) -> list[tuple[int, int]] | None:
        """
        Which labels count, as intervals from the piece's first token on; None: all that exist.
        """

    @property
    def tensors(self) -> list[StoredTensor]:
        """By ascending token."""

class StoredMicroBatch:
    """A micro-batch as it was stored, verified."""

    @property
    def pieces(self) -> list[StoredPiece]:
        """Empty for a filler."""

    @property
    def task(self) -> int:
        """The plan's task that it belongs to."""

    @property
    def ring(self) -> list[int]:
        """The HDP ranks that run this task together, in ring order."""

    @property
    def offload(self) -> float:
        """The share of its activations to be kept on the host."""

class MicroBatch:
    """
    What one rank runs in one forward: sequences one behind the other, without padding. Arrays are views of one buffer for the whole step, which goes back to its pool with the last of them.
    """

    @property
    def tokens(self) -> Any:
        """int32 ids."""

    @property
    def labels(self) -> Any:
        """
        int64: of each token the next one in its record; -100 at the end of a record, and where it does not count.
        """

    @property
    def positions(self) -> Any:
        """int32: of each token in its record."""

    @property
    def cu_seqlens(self) -> Any:
        """int32: 0, and where each sequence ends. Attention does not cross them."""

    @property
    def images(self) -> list[Any]:
        """Its pictures, uint8 of [height, width, 3], not to be written to."""

    @property
    def image_spans(self) -> list[tuple[int, int]]:
        """
        (begin, end) for each of its images: the rows of tokens that stand for its patches, row by row. A ring's other ranks may have the last of them.
        """

    @property
    def stored(self) -> StoredMicroBatch:
        """The bytes behind it, verified, without any copy."""

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

class Batch:
    """One rank's part of one optimizer step."""

    @property
    def step(self) -> int: ...

    @property
    def state(self) -> bytes:
        """
        For the checkpoint that holds what was learned from this step: the stream's id, the next step, and a hash of all samples so far, which is equal on all ranks.
        """

    @property
    def global_valid_labels(self) -> int:
        """
        Labels that count, on all ranks together: what the sum of losses is divided by where there are any: a step of nothing but prompts has 0.
        """

    @property
    def micro_batches(self) -> list[MicroBatch]: ...

    @property
    def events(self) -> list[tuple[int, str]]:
        """
        (micro-batch, "forward" or "backward") in the order in which this rank runs them.
        """

    @property
    def producer(self) -> str:
        """The name of whoever wrote it."""

    def __repr__(self) -> str: ...

class Consumer:
    """What batchloom.Consumer stands on."""

    def __init__(self, url: str, *, rank: int, topology: Topology, group: str, resume: bytes | None, start: int | None, min_slot: int, prefetch_bytes: int, for_torch: bool, open_timeout: float, split_samples: bool, report_cursor: bool, waited: float) -> None: ...

    def next(self, timeout: float | None) -> Batch | None:
        """None at the end of the stream."""

    def pin(self, state: bytes, name: str, keep: int | None) -> None: ...

    def unpin(self, name: str) -> int: ...

    def seek(self, state: bytes) -> None: ...

    def skip_to(self, step: int) -> None:
        """Goes on at `step`, as if those before it had been handed out."""

    def close(self) -> None: ...

    def release(self) -> None:
        """As the process's end: the group's cursor stays open."""

    @property
    def cursor(self) -> int: ...

    @property
    def slot(self) -> int: ...

    @property
    def skipped(self) -> list[int]:
        """The steps that it passes over, ascending."""

    def counters(self) -> dict[str, int]: ...

def find_start(url: str, *, rank: int, topology: Topology, group: str, resume: bytes | None, start: int | None, min_slot: int, open_timeout: float) -> tuple[int, bytes]:
    """The slot and the state that several processes of one rank begin with."""

def end_all_calls() -> None:
    """
    The interpreter ends: other threads leave what they wait in, with SystemExit, and nothing waits from then on.
    """
