# SPDX-License-Identifier: Apache-2.0
"""What all tables share: figures as they are written, and C++ text."""

import json
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

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


def source_file(origin: str, header: str, namespace: str, rows: list[str], rest: list[str]) -> str:
    """A .cc file from the JSON at `origin`: `rows`, one a line, then what refers to them."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Made by tools/generate_tables.py from {origin}:",
        "// edit that file, not this one.",
        f'#include "{header}"',
        "",
        f"namespace {namespace} {{",
        "namespace {",
        "// clang-format off: a row a line",
        *rows,
        "",
        "// clang-format on",
        "}  // namespace",
        "",
        *rest,
        "",
        f"}}  // namespace {namespace}",
    ]
    return "\n".join(lines) + "\n"
