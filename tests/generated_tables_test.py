# SPDX-License-Identifier: Apache-2.0
"""The checked-in C++ tables are what tools/generate_tables.py makes of the figures."""

import generate_tables
import pytest
from generate_tables import ROOT, TABLES


@pytest.mark.parametrize("path", TABLES)
def test_table_is_fresh(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == TABLES[path](), (
        f"{path} differs: run python3 tools/generate_tables.py"
    )


def test_numbers_are_read_as_written() -> None:
    costs = generate_tables.load("batchloom/planning/costs/h200-costs.json")
    forward_ms = costs["causal_attention_32x128_bf16"][0]["cudnn"]["forward_ms"]
    assert str(forward_ms) == "0.03347200155258179"
    assert generate_tables.whole(forward_ms * generate_tables.PS_PER_MS) == 33_472_002


def test_numbers_are_written_as_cpp_reads_them() -> None:
    assert [generate_tables.grouped(n) for n in (0, 999, 1_000, 12_345_678)] == [
        "0",
        "999",
        "1'000",
        "12'345'678",
    ]
