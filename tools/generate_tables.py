# SPDX-License-Identifier: Apache-2.0
"""Makes C++ tables from the measured and published figures that lie beside them as JSON, so that
no figure is typed twice. Its output is checked in; tests/generated_tables_test.py compares.

Usage: python3 tools/generate_tables.py
"""

from collections.abc import Callable

from tables import costs, lengths
from tables.cpp import ROOT

# Each checked-in file, and what makes it.
TABLES: dict[str, Callable[[], str]] = {
    costs.PATH: costs.make,
    lengths.PATH: lengths.make,
}


def main() -> None:
    for path, make in TABLES.items():
        (ROOT / path).write_text(make(), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
