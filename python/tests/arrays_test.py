# SPDX-License-Identifier: Apache-2.0
"""What a trainer gets: arrays over one buffer per step, and the stored bytes behind them."""

import gc
from pathlib import Path

import batchloom as bl
import numpy as np
import pytest
from conftest import Run, produce

NO_LABEL = -100


def expected_labels(piece: bl.StoredPiece) -> list[int]:
    """Token by token, from what was stored."""
    following = [int(token) for token in piece.tokens[1:]]
    following.append(NO_LABEL if piece.next_token is None else piece.next_token)
    if piece.labels is None:
        return following
    counted = {label for begin, end in piece.labels for label in range(begin, end)}
    return [label if i in counted else NO_LABEL for i, label in enumerate(following)]


def read_all(stream: Path, rank: int = 0, world_size: int = 4) -> list[bl.Batch]:
    with bl.Consumer(stream, rank=rank, world_size=world_size) as data:
        return list(data)


def test_arrays_hold_what_was_stored(stream: Path) -> None:
    masked = ended = 0
    for batch in read_all(stream):
        for mb in batch.micro_batches:
            pieces = mb.stored.pieces
            assert pieces
            assert mb.tokens.tolist() == [int(t) for piece in pieces for t in piece.tokens]
            assert mb.labels.tolist() == [label for p in pieces for label in expected_labels(p)]
            positions = [p.first_position + i for p in pieces for i in range(p.lo, p.hi)]
            assert mb.positions.tolist() == positions
            ends = np.cumsum([0] + [piece.hi - piece.lo for piece in pieces])
            assert mb.cu_seqlens.tolist() == ends.tolist()
            assert len(mb) == ends[-1]
            masked += sum(piece.labels is not None for piece in pieces)
            ended += sum(piece.next_token is None for piece in pieces)
    assert masked > 0, "no label of the stream was masked"
    assert ended > 0, "no piece of the stream ends its record"


def test_arrays_have_their_types_and_may_be_changed(stream: Path) -> None:
    mb = read_all(stream)[0].micro_batches[0]
    types = [a.dtype for a in (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens)]
    assert types == [np.int32, np.int64, np.int32, np.int32]
    assert all(isinstance(a, np.ndarray) for a in (mb.tokens, mb.labels))
    mb.labels[:] = 7
    assert (mb.labels == 7).all(), "both are views of one buffer"
    assert mb.tokens.ctypes.data == mb.tokens.ctypes.data


@pytest.mark.parametrize("bits", [16, 32])
def test_stored_ids_are_read_only_views(run: Run, tmp_path: Path, bits: int) -> None:
    stream = produce(run, tmp_path / "s", "--ranks=1", "--steps=1", "--end", f"--token-bits={bits}")
    with bl.Consumer(stream, rank=0, world_size=1) as data:
        mb = next(data).micro_batches[0]
    ids = mb.stored.pieces[0].tokens
    assert ids.dtype == (np.uint16 if bits == 16 else np.uint32)
    assert not ids.flags.writeable
    assert ids.ctypes.data == mb.stored.pieces[0].tokens.ctypes.data
    del mb, data
    gc.collect()
    assert len(ids.tolist()) == 512, "the bytes outlive batch and consumer"


def test_valid_labels_of_all_ranks_add_up(stream: Path) -> None:
    ranks = [read_all(stream, rank) for rank in range(4)]
    assert [len(batches) for batches in ranks] == [12] * 4
    for batches in zip(*ranks):
        counted = sum(int((mb.labels != NO_LABEL).sum()) for b in batches for mb in b.micro_batches)
        assert {batch.global_valid_labels for batch in batches} == {counted}
        assert len({batch.state for batch in batches}) == 1
        assert {batch.producer for batch in batches} == {"p"}


def test_steps_come_in_order_with_their_events(stream: Path) -> None:
    batches = read_all(stream)
    assert [batch.step for batch in batches] == list(range(12))
    for batch in batches:
        for place in range(len(batch.micro_batches)):
            phases = [phase for mb, phase in batch.events if mb == place]
            assert phases == ["forward", "backward"]


def test_a_buffer_goes_back_with_its_last_array(stream: Path) -> None:
    with bl.Consumer(stream, rank=0, world_size=4) as data:
        tokens = next(data).micro_batches[0].tokens
        before = tokens.tolist()
        next(data)
        assert data.counters()["client_buffers_made"] <= 3, "two taken, one made ahead"
        assert tokens.tolist() == before, "an array in use was overwritten"
        del tokens
        gc.collect()
        for _ in data:
            pass
        counters = data.counters()
    assert counters["client_buffers_made"] <= 4
    assert counters["client_buffers_reused"] >= 8


def test_ranks_along_tp_get_the_same(stream: Path) -> None:
    axes = "pp=1 dp=4 cp=1 tp=2"
    batches = []
    for rank in (4, 5, 6):
        with bl.Consumer(stream, rank=rank, topology=axes) as data:
            batches.append(next(data).micro_batches[0].tokens.tolist())
    assert batches[0] == batches[1] != batches[2]
