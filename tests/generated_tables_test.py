# SPDX-License-Identifier: Apache-2.0
"""The checked-in tables are what tools/generate_tables.py makes of the figures."""

from decimal import Decimal

import pytest
from generate_tables import TABLES
from tables import costs, lengths
from tables.cpp import ROOT, grouped, load, whole


@pytest.mark.parametrize("path", TABLES)
def test_table_is_fresh(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == TABLES[path](), (
        f"{path} differs: run python3 tools/generate_tables.py"
    )


def test_numbers_are_read_as_written() -> None:
    data = load(costs.ORIGIN)
    forward_ms = data["causal_attention_32x128_bf16"][0]["cudnn"]["forward_ms"]
    assert str(forward_ms) == "0.03347200155258179"
    assert whole(forward_ms * costs.PS_PER_MS) == 33_472_002


def test_numbers_are_written_as_cpp_reads_them() -> None:
    written = [grouped(number) for number in (0, 999, 1_000, 12_345_678)]
    assert written == ["0", "999", "1'000", "12'345'678"]


def test_octaves_cut_at_powers_of_two_and_share_by_logarithm() -> None:
    cut = lengths.octaves(3, 24, Decimal(3))
    assert [(above, up_to) for above, up_to, _ in cut] == [(3, 4), (4, 8), (8, 16), (16, 24)]
    assert sum(share for _, _, share in cut) == pytest.approx(Decimal(3))
    assert cut[1][2] == pytest.approx(Decimal(1)), "one of three octaves"
    assert [row[:2] for row in lengths.octaves(4, 8, Decimal(1))] == [(4, 8)]


def test_no_kind_leaves_lengths_above_its_largest() -> None:
    data = load(lengths.ORIGIN)
    for name, entry in data["distributions"].items():
        ranges = lengths.KINDS[entry["kind"]](entry, data)
        assert all(above < up_to for above, up_to, _ in ranges), name
        assert max(up_to for _, up_to, _ in ranges) <= entry.get("max", 2**21), name
        assert all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:])), name
