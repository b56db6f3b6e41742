# SPDX-License-Identifier: Apache-2.0
"""The cost model h200-llama7b from its measurements."""

from decimal import Decimal

from tables.cpp import grouped, load, source_file, whole

PATH = "batchloom/planning/h200_llama7b_costs.cc"
ORIGIN = "batchloom/planning/costs/h200-costs.json"
PS_PER_MS = 10**9


def points(name: str, comment: str, rows: list[tuple[int, Decimal]]) -> list[str]:
    """An array of cost points from (tokens, milliseconds)."""
    lines = ["", f"/// {comment}", f"constexpr CostPoint {name}[] = {{"]
    for tokens, ms in rows:
        lines.append(f"    {{{grouped(tokens)}, {grouped(whole(ms * PS_PER_MS))}}},")
    return [*lines, "};"]


def make() -> str:
    data = load(ORIGIN)
    attention = [(row["tokens"], row["cudnn"]) for row in data["causal_attention_32x128_bf16"]]
    layer = data["llama7b_layer_without_attention_bf16"]
    both = [(tokens, times["forward_ms"] + times["backward_ms"]) for tokens, times in attention]
    forward = [(tokens, times["forward_ms"]) for tokens, times in attention]
    linear_both = [(row["tokens"], row["forward_backward_ms"]) for row in layer]
    linear_forward = [(row["tokens"], row["forward_ms"]) for row in layer]
    largest = max(data["pinned_copy"], key=lambda row: row["MiB"])
    copy_gbps = min(largest["d2h_GBps"], largest["h2d_GBps"])
    rows = [
        *points("kH200Attention", "cuDNN, forward and backward.", both),
        *points("kH200AttentionForward", "cuDNN, forward.", forward),
        *points("kH200Linear", "Forward and backward.", linear_both),
        *points("kH200LinearForward", "Forward.", linear_forward),
    ]
    rest = [
        "const MeasuredCosts kH200Llama7bCosts = {",
        "    .attention = kH200Attention,",
        "    .attention_forward = kH200AttentionForward,",
        "    .linear = kH200Linear,",
        "    .linear_forward = kH200LinearForward,",
        f"    .copy_bytes_per_s = {grouped(int(copy_gbps * 10**9))},",
        "};",
    ]
    header = "batchloom/planning/measured_costs.h"
    return source_file(ORIGIN, header, "batchloom::planning", rows, rest)
