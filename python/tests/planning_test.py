# SPDX-License-Identifier: Apache-2.0
"""plan() and Topology."""

import pickle

import batchloom as bl
import numpy as np
import pytest


def test_every_token_is_on_one_rank() -> None:
    lengths = [30_000, 8_000, 500, 1, 12_000]
    step = bl.plan(lengths, "dp=8", capacity=8192)
    assert len(step.ranks) == 8
    pieces = [piece for rank in step.ranks for mb in rank for piece in mb]
    for sample, length in enumerate(lengths):
        spans = sorted((p.lo, p.hi) for p in pieces if p.sample == sample)
        assert spans[0][0] == 0
        assert spans[-1][1] == length
        assert all(a[1] == b[0] for a, b in zip(spans, spans[1:]))
    assert max(sum(map(len, mb)) for rank in step.ranks for mb in rank) <= 8192
    assert 0 < step.bound_ns <= step.makespan_ns
    assert step.strategy == "hdp"
    assert step.topology == bl.Topology("dp=8")


def test_strategies_differ() -> None:
    lengths = np.array([4000, 4000, 100, 100], dtype=np.uint16)
    whole = bl.plan(lengths, bl.Topology("dp=2"), strategy="lpt")
    assert all(p.lo == 0 for rank in whole.ranks for mb in rank for p in mb)
    assert {"none", "lpt", "kk", "two_level", "hdp"} <= set(bl.strategies())
    with pytest.raises(bl.Invalid, match="no strategy is called"):
        bl.plan([1], "dp=1", strategy="lpd")
    with pytest.raises(bl.Invalid, match="no such|no cost model|cost model"):
        bl.plan([1], "dp=1", cost_model="h300")


@pytest.mark.parametrize("strategy", ["lpt", "hdp", "static_cp", "megatron", "naive_hdp"])
def test_what_fits_nowhere_is_named(strategy: str) -> None:
    with pytest.raises(bl.DoesNotFit, match=r"of 900000 tokens.*100"):
        bl.plan([5, 900_000], "dp=2", strategy=strategy, capacity=100)
    with pytest.raises(bl.Invalid) as raised:
        bl.plan([5, 0], "dp=2", strategy=strategy)
    assert type(raised.value) is bl.Invalid


def test_topology() -> None:
    topology = bl.Topology("pp=2 dp=4 cp=1 tp=2")
    assert (topology.world_size, topology.hdp_size) == (16, 4)
    assert [topology.extent(axis) for axis in ("pp", "dp", "cp", "tp")] == [2, 4, 1, 2]
    assert [topology.hdp_rank(rank) for rank in (0, 1, 2, 8, 15)] == [0, 0, 1, 0, 3]
    assert repr(topology) == 'Topology("pp=2 dp=4 cp=1 tp=2")'
    assert len({topology, bl.Topology(str(topology)), bl.Topology("dp=4")}) == 2
    assert topology != "dp=4"
    for wrong in ("", "dp=0", "dp=2 dp=2", "data=4"):
        with pytest.raises(bl.Invalid):
            bl.Topology(wrong)
    with pytest.raises(bl.Invalid, match="no axis is called"):
        topology.extent("ep")
    with pytest.raises(bl.Invalid, match="rank 16 is none of 16"):
        topology.hdp_rank(16)


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(bl.DoesNotFit("sample 1")))
    assert isinstance(error, bl.Invalid)
    assert str(error) == "sample 1"
