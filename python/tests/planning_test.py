# SPDX-License-Identifier: Apache-2.0
"""plan() and Topology."""

import copy
import pickle
import re
from typing import Any

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


@pytest.mark.parametrize(
    ("lengths", "place"),
    [
        ([5, 1.7], "lengths[1]=1.7"),
        ([2.0], "lengths[0]=2.0"),
        ([5, 6, True], "lengths[2]=True"),
        ([np.True_], "lengths[0]="),
        (["7"], "lengths[0]='7'"),
        ([5, None], "lengths[1]=None"),
        (np.array([5.0, 6.0]), "lengths[0]="),
        (np.array([True, False]), "lengths[0]="),
        (np.array([[5, 6], [7, 8]]), "lengths[0]=[5, 6]"),
    ],
)
def test_lengths_are_whole_numbers(lengths: Any, place: str) -> None:
    with pytest.raises(TypeError, match=re.escape(place)):
        bl.plan(lengths, "dp=2")


@pytest.mark.parametrize("wrong", [-1, 2**32, 2**64, -(2**70), np.int64(-1), np.uint64(2**32)])
def test_numbers_out_of_range_are_named(wrong: int) -> None:
    with pytest.raises(bl.Invalid, match=re.escape(f"lengths[1]={int(wrong)}:")):
        bl.plan([5, wrong], "dp=2")
    for name in ("capacity", "min_share"):
        with pytest.raises(bl.Invalid, match=f"{name}={int(wrong)}:"):
            bl.plan([5], "dp=2", **{name: wrong})
        with pytest.raises(TypeError, match=f"{name}=0.5:"):
            bl.plan([5], "dp=2", **{name: 0.5})


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_lengths_may_be_of_any_whole_dtype(dtype: type) -> None:
    of_list = bl.plan([100, 20, 3], "dp=2")
    of_array = bl.plan(np.array([100, 20, 3], dtype=dtype), "dp=2", capacity=dtype(120))
    assert sum(len(mb) for rank in of_array.ranks for mb in rank) == 3
    assert bl.plan(iter([100, 20, 3]), "dp=2").ranks == of_list.ranks


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
    assert topology.hdp_rank(np.int64(15)) == 3
    with pytest.raises(bl.Invalid, match="rank -1 is none of 16"):
        topology.hdp_rank(-1)
    for wrong in (True, "3", 3.0):
        with pytest.raises(TypeError, match="^rank=.*: a whole number is needed"):
            topology.hdp_rank(wrong)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_topologies_travel_between_processes(protocol: int) -> None:
    for text in ("pp=2 dp=4 cp=1 tp=2", "tp=2 dp=4", "dp=8"):
        topology = bl.Topology(text)
        for copied in (pickle.loads(pickle.dumps(topology, protocol)), copy.deepcopy(topology)):
            assert copied == topology
            assert str(copied) == str(topology)
            assert hash(copied) == hash(topology)


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(bl.DoesNotFit("sample 1")))
    assert isinstance(error, bl.Invalid)
    assert str(error) == "sample 1"
