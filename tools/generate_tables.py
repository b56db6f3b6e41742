# SPDX-License-Identifier: Apache-2.0
"""Makes C++ tables from the measured and published figures that lie beside them as JSON, so that
no figure is typed twice. Its output is checked in; tests/generated_tables_test.py compares.

Usage: python3 tools/generate_tables.py
"""

import json
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PS_PER_MS = 10**9

Json = dict[str, Any]


def load(path: str) -> Json:
    """The JSON at `path`, its numbers exactly as they are written."""
    data: Json = json.loads((ROOT / path).read_text(encoding="utf-8"), parse_float=Decimal)
    return data


def whole(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_HALF_EVEN))


def grouped(number: int) -> str:
    """As C++ reads it: 1234567 is 1'234'567."""
    return f"{number:,}".replace(",", "'")


def head(source: str) -> list[str]:
    return [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Made by tools/generate_tables.py from {source}:",
        "// edit that file, not this one.",
    ]


def points(name: str, comment: str, rows: list[tuple[int, Decimal]]) -> list[str]:
    """An array of cost points from (tokens, milliseconds)."""
    lines = ["", f"/// {comment}", f"constexpr CostPoint {name}[] = {{"]
    for tokens, ms in rows:
        lines.append(f"    {{{grouped(tokens)}, {grouped(whole(ms * PS_PER_MS))}}},")
    return [*lines, "};"]


def h200_llama7b_costs() -> str:
    source = "batchloom/planning/costs/h200-costs.json"
    data = load(source)
    attention = data["causal_attention_32x128_bf16"]
    layer = data["llama7b_layer_without_attention_bf16"]
    forward = [(row["tokens"], row["cudnn"]["forward_ms"]) for row in attention]
    both = [
        (row["tokens"], row["cudnn"]["forward_ms"] + row["cudnn"]["backward_ms"])
        for row in attention
    ]
    linear_forward = [(row["tokens"], row["forward_ms"]) for row in layer]
    linear_both = [(row["tokens"], row["forward_backward_ms"]) for row in layer]
    largest = max(data["pinned_copy"], key=lambda row: row["MiB"])
    copy_gbps = min(largest["d2h_GBps"], largest["h2d_GBps"])
    lines = [
        *head(source),
        '#include "batchloom/planning/measured_costs.h"',
        "",
        "namespace batchloom::planning {",
        "namespace {",
        "// clang-format off: a row a line",
        *points("kH200Attention", "cuDNN, forward and backward.", both),
        *points("kH200AttentionForward", "cuDNN.", forward),
        *points("kH200Linear", "Forward and backward.", linear_both),
        *points("kH200LinearForward", "Forward.", linear_forward),
        "",
        "// clang-format on",
        "}  // namespace",
        "",
        "const MeasuredCosts kH200Llama7bCosts = {",
        "    .attention = kH200Attention,",
        "    .attention_forward = kH200AttentionForward,",
        "    .linear = kH200Linear,",
        "    .linear_forward = kH200LinearForward,",
        f"    .copy_bytes_per_s = {grouped(int(copy_gbps * 10**9))},",
        "};",
        "",
        "}  // namespace batchloom::planning",
    ]
    return "\n".join(lines) + "\n"


# Each checked-in file, and what makes it.
TABLES: dict[str, Callable[[], str]] = {
    "batchloom/planning/h200_llama7b_costs.cc": h200_llama7b_costs,
}


def main() -> None:
    for path, make in TABLES.items():
        (ROOT / path).write_text(make(), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
