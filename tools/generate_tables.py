# SPDX-License-Identifier: Apache-2.0
"""Fills measured and published figures in where they are told, so that no figure is typed twice:
C++ tables from the JSON that lies beside them, and documents from bench/results. Its output is
checked in; tests/generated_tables_test.py compares.

Usage: python3 tools/generate_tables.py
"""

from collections.abc import Callable

from tables import costs, lengths, numbers
from tables.cpp import ROOT

# Each checked-in file, and what makes it.
TABLES: dict[str, Callable[[], str]] = {
    costs.PATH: costs.make,
    lengths.PATH: lengths.make,
    numbers.PAGE: numbers.make_page,
    numbers.FRONT: numbers.make_front,
}


def main() -> None:
    for path, make in TABLES.items():
        (ROOT / path).write_text(make(), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
