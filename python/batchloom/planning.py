# SPDX-License-Identifier: Apache-2.0
"""Plans of steps of which only lengths are known."""

from collections.abc import Iterable

from . import _core
from ._core import Plan, Topology
from .errors import Invalid

_MOST_TOKENS = 2**32 - 1


def plan(
    lengths: Iterable[int],
    topology: Topology | str,
    *,
    strategy: str = "hdp",
    capacity: int = 8192,
    cost_model: str = "h200-llama7b",
    min_share: int = 4096,
    offload: bool = True,
) -> Plan:
    """Who computes what of a step whose samples have these lengths, in tokens.

    A pure function: no stream, no data. `strategy` is one of strategies(); `capacity` is what a
    rank holds in one micro-batch, in tokens; `min_share` is the least that is worth being one
    rank's part of a long sample, and `offload` lets activations go to the host (both hdp).
    DoesNotFit for a sample that fits nowhere, Invalid for an unknown name and for a number that is
    out of range, TypeError for what is no whole number.

    >>> step = plan([30_000, 2_000, 2_000], "dp=4")
    >>> len(step.ranks), step.makespan_ns >= step.bound_ns
    (4, True)
    """
    values = lengths.tolist() if hasattr(lengths, "tolist") else lengths  # Arrays and tensors.
    return _core.plan(
        [_tokens(f"lengths[{i}]", length) for i, length in enumerate(values)],
        Topology(topology) if isinstance(topology, str) else topology,
        strategy=strategy,
        capacity=_tokens("capacity", capacity),
        cost_model=cost_model,
        min_share=_tokens("min_share", min_share),
        offload=offload,
    )


def _tokens(name: str, value: int) -> int:
    tokens = _core.whole_number(name, value)
    if not 0 <= tokens <= _MOST_TOKENS:
        raise Invalid(f"{name}={tokens}: a number of tokens from 0 to {_MOST_TOKENS} is needed")
    return tokens
