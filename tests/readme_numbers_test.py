# SPDX-License-Identifier: Apache-2.0
"""README's table of numbers is what bench/results say, as rounded there, bars that are missed
included."""

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
HEADING = "| what | figure | from |\n|---|---|---|\n"
ROW = re.compile(
    r"\| (?P<what>[^|]+) \| (?P<figure>[^|]+) \| "
    r"`(?P<command>[^`]+)` at \[(?P<commit>\w+)\]\(bench/results/(?P<file>\w+\.json)\): "
    r"`(?P<name>[^`]+)` \|"
)
NUMBER = r"\d[\d,]*(?:\.\d+)?"
FIGURE = re.compile(
    rf"(?P<value>{NUMBER})(?P<unit> \S+)?"
    rf"(?:; should be (?P<side>at least|at most) (?P<bar>{NUMBER})(?P<bar_unit> \S+)?: missed)?"
)


@dataclass(frozen=True)
class Row:
    what: str
    figure: str
    command: str
    commit: str
    file: str
    name: str


def numbers_section() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split("\n## Numbers\n")[1].split("\n## ")[0]


def rows_of(section: str) -> list[Row]:
    assert section.count(HEADING) == 1
    lines = section.split(HEADING)[1].split("\n\n")[0].splitlines()
    rows = []
    for line in lines:
        found = ROW.fullmatch(line)
        assert found, f"README.md: not as the rows beside it: {line}"
        rows.append(Row(**found.groupdict()))
    return rows


ROWS = rows_of(numbers_section())


def document(file: str) -> dict[str, Any]:
    return json.loads((RESULTS / file).read_text(encoding="utf-8"))


def stored_value(results: dict[str, Any], name: str) -> Decimal:
    """`name` of the figures; `column of key=value key=value` of the one row that has these."""
    column, _, keys = name.partition(" of ")
    if not keys:
        return Decimal(str(results["figures"][column]))
    wanted = dict(key.split("=", 1) for key in keys.split(" "))
    (row,) = (r for r in results["rows"] if all(str(r.get(k)) == v for k, v in wanted.items()))
    return Decimal(str(row[column]))


def in_unit(value: Decimal, unit: str | None) -> Decimal:
    return value * 100 if unit == " %" else value


def parsed(number: str) -> Decimal:
    return Decimal(number.replace(",", ""))


def half_of_last_digit(number: str) -> Decimal:
    """What rounding may have changed. Zeros at the end of a whole number are rounded ones."""
    if "." in number:
        return Decimal(1).scaleb(-len(number.partition(".")[2])) / 2
    digits = number.replace(",", "")
    return Decimal(1).scaleb(len(digits) - len(digits.rstrip("0") or digits)) / 2


def faults_of(row: Row, results: dict[str, Any]) -> list[str]:
    """What of a row is not so in its file."""
    faults = []
    if row.command != results["command"]:
        faults.append(f"the command was {results['command']}")
    if row.commit != results["commit"]:
        faults.append(f"the commit was {results['commit']}")
    figure = FIGURE.fullmatch(row.figure)
    if not figure:
        return [*faults, f"no figure: {row.figure}"]
    value = stored_value(results, row.name)
    shown = in_unit(value, figure["unit"])
    if abs(shown - parsed(figure["value"])) > half_of_last_digit(figure["value"]):
        faults.append(f"{row.name} is {shown}")
    if figure["side"]:
        bar = parsed(figure["bar"])
        reached = shown >= bar if figure["side"] == "at least" else shown <= bar
        if reached or figure["bar_unit"] != figure["unit"]:
            faults.append(f"{shown} is {figure['side']} {bar}")
    return faults


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.file}: {row.name}")
def test_rows_are_what_was_measured(row: Row) -> None:
    assert faults_of(row, document(row.file)) == []


def test_every_result_and_every_bar_that_is_missed_is_told() -> None:
    files = {path.name for path in RESULTS.glob("*.json")}
    assert {row.file for row in ROWS} == files
    told = Counter(row.file for row in ROWS if row.figure.endswith(": missed"))
    missed = {file: document(file)["figures"].get("bars_missed", 0) for file in sorted(files)}
    assert {file: told[file] for file in sorted(files)} == missed


def test_nothing_is_told_twice() -> None:
    assert max(Counter((row.file, row.name) for row in ROWS).values()) == 1


RESULT = {
    "command": "bench/run x",
    "commit": "abc1234",
    "figures": {"share": 0.26998, "rate": 80032, "time_ms": 4.3649},
    "rows": [{"phase": "a", "size": 1, "v": 1225.1}, {"phase": "a", "size": 2, "v": 5455.2}],
}
RIGHT = Row("some", "27 %", "bench/run x", "abc1234", "x.json", "share")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"figure": "0.27"}, None),
        ({"figure": "27.0 %"}, None),
        ({"figure": "26 %"}, "share is 26.998"),
        ({"figure": "27.1 %"}, "share is 26.998"),
        ({"figure": "27 %; should be at least 75 %: missed"}, None),
        ({"figure": "27 %; should be at least 20 %: missed"}, "is at least 20"),
        ({"figure": "27 %; should be at most 20 %: missed"}, None),
        ({"figure": "27 %; should be at most 0.2: missed"}, "is at most 0.2"),
        ({"figure": "about 27 %"}, "no figure"),
        ({"command": "bench/run x --quick"}, "the command was bench/run x"),
        ({"commit": "abc1235"}, "the commit was abc1234"),
        ({"name": "rate", "figure": "80,000"}, None),
        ({"name": "rate", "figure": "80,032"}, None),
        ({"name": "rate", "figure": "80,100"}, "rate is 80032"),
        ({"name": "time_ms", "figure": "4.4 ms"}, None),
        ({"name": "time_ms", "figure": "4.3 ms"}, "time_ms is 4.3649"),
        ({"name": "v of phase=a size=2", "figure": "5,460 MB/s"}, None),
        ({"name": "v of phase=a size=1", "figure": "5,460 MB/s"}, "is 1225.1"),
    ],
)
def test_what_differs_is_found(change: dict[str, str], fault: str | None) -> None:
    faults = faults_of(replace(RIGHT, **change), RESULT)
    assert bool(faults) == (fault is not None), faults
    assert fault is None or fault in faults[0]
