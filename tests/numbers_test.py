# SPDX-License-Identifier: Apache-2.0
"""docs/numbers.md tells of every file of bench/results and every bar that is missed, and README.md
has rows of it. That both are what the results say is in generated_tables_test.py; how rows are
filled in is here."""

import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from tables.cpp import ROOT, load
from tables.numbers import (
    FRONT,
    PAGE,
    RESULTS,
    VALUE,
    Row,
    filled_in,
    front_of,
    page_of,
    percent,
    rows_of,
)

MAX_FRONT_ROWS = 15
FRONT_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| \[`([^`]+)`\]\(([^)]+)\) \|$", re.MULTILINE)
# A bar is told in brackets.
BAR = r" \(at (?:least|most) [^)]+\)"


def rows() -> list[Row]:
    return rows_of((ROOT / PAGE).read_text(encoding="utf-8"))


def front_section() -> str:
    text = (ROOT / FRONT).read_text(encoding="utf-8")
    return text.split("\n## Numbers\n")[1].split("\n## ")[0]


def test_every_file_of_results_has_rows() -> None:
    files = {path.name for path in (ROOT / RESULTS).glob("*.json")}
    assert {row.file for row in rows()} == files


def test_every_bar_that_is_missed_is_told() -> None:
    told = Counter({row.file: 0 for row in rows()})
    for row in rows():
        told[row.file] += row.figure.count(": missed)")
    missed = {file: load(f"{RESULTS}/{file}")["figures"].get("bars_missed", 0) for file in told}
    assert told == missed


def source_of(benchmark: str) -> str:
    """Of what `bench/run NAME` runs."""
    places = (f"{benchmark}.cc", f"{benchmark}.py", f"{benchmark}/__main__.py")
    (path,) = (path for place in places if (path := ROOT / "bench" / place).is_file())
    return path.read_text(encoding="utf-8")


def limits_of(source: str, figure: str) -> set[Decimal]:
    """The numbers beside a figure's name where its bar is set. The name's end may be in braces, for
    several figures with one bar."""
    start, _, end = figure.rpartition("_")
    bars = re.findall(rf'"{start}_(?:{end}|{{\w+}})",([^)}}]*)[)}}]', source)
    return {Decimal(n.replace("'", "")) for bar in bars for n in re.findall(r"\d[\d'.]*", bar)}


WITH_BARS = [row for row in rows() if " (at " in row.figure]


@pytest.mark.parametrize("row", WITH_BARS, ids=lambda row: row.what)
def test_bars_are_those_of_the_benchmark(row: Row) -> None:
    source = source_of(row.file.removesuffix(".json"))
    names = re.findall("`([^`]+)`", row.names)
    for name, value in zip(names, VALUE.finditer(row.figure), strict=True):
        if value["bar"]:
            limit = Decimal(value["limit"].replace(",", "")) / percent(value["limit_unit"])
            assert limit in limits_of(source, name)


def test_the_readme_tells_what_is_missed() -> None:
    paragraph = " ".join(front_section().split()).split("Missed, of the bars in ")[1]
    missed = [row for row in rows() if ": missed)" in row.figure]
    assert [row.what for row in missed if f" {row.what}: " not in paragraph] == []
    assert len(re.findall(BAR, paragraph)) == sum(row.figure.count(": missed)") for row in missed)
    assert f"({PAGE})" in paragraph


def test_the_readme_has_some_rows_of_the_page() -> None:
    shown = FRONT_ROW.findall(front_section())
    lines = [line for line in front_section().splitlines() if line.startswith("| ")]
    assert len(shown) == len(lines) - 1, "each row but the heading is as the others"
    assert 0 < len(shown) <= MAX_FRONT_ROWS
    page = {
        (row.what, re.sub(BAR, "", row.figure), row.command, f"{RESULTS}/{row.file}")
        for row in rows()
    }
    assert [row for row in shown if row not in page] == []


def test_no_row_is_there_twice() -> None:
    assert max(Counter(row.what for row in rows()).values()) == 1
    assert max(Counter(what for what, *_ in FRONT_ROW.findall(front_section())).values()) == 1


RESULT = {
    "command": "bench/run x",
    "commit": "abc1234",
    "figures": {"share": Decimal("0.26998"), "rate": 80032, "time_ms": Decimal("4.3649")},
    "rows": [
        {"phase": "a", "size": 1, "v": Decimal("1225.1")},
        {"phase": "a", "size": 2, "v": Decimal("5455.2")},
    ],
}
ROW = Row("some", "0", "bench/run y", "0000000", "x.json", "`share`")


@pytest.mark.parametrize(
    ("names", "written", "told"),
    [
        ("`share`", "26 %", "27 %"),
        ("`share`", "26.1 %", "27.0 %"),
        ("`share`", "0", "0.27"),
        ("`share`", "1.000", "0.270"),
        ("`share`", "about 1 of it", "about 0.27 of it"),
        ("`share`", "1 % (at least 75 %)", "27 % (at least 75 %: missed)"),
        ("`share`", "1 % (at least 75 %: missed)", "27 % (at least 75 %: missed)"),
        ("`share`", "1 % (at least 20 %: missed)", "27 % (at least 20 %)"),
        ("`share`", "1 % (at most 20 %)", "27 % (at most 20 %: missed)"),
        ("`share`", "1 of all (at most 0.2)", "0.27 of all (at most 0.2: missed)"),
        ("`share`", "1 (at most 0.27)", "0.27 (at most 0.27)"),
        ("`rate`", "1 (at least 120,000) a second", "80,000 (at least 120,000: missed) a second"),
        ("`rate`", "1.5", "80,032.0"),
        ("`time_ms`", "0 ms (at most 5 ms)", "4.4 ms (at most 5 ms)"),
        ("`v of phase=a size=2`", "7 MB/s", "5,460 MB/s"),
        ("`v of size=1`, `share`", "1 MB/s, 1 % of it", "1,230 MB/s, 27 % of it"),
        ("`time_ms`, `share`", "1 ms (at most 4 ms), 1 %", "4.4 ms (at most 4 ms: missed), 27 %"),
    ],
)
def test_rows_are_filled_in(names: str, written: str, told: str) -> None:
    row = filled_in(replace(ROW, names=names, figure=written), RESULT)
    assert row == Row("some", told, "bench/run x", "abc1234", "x.json", names)
    assert filled_in(row, RESULT) == row


@pytest.mark.parametrize(
    ("value", "like", "told"),
    [("999.6", "1", "1,000"), ("0", "1.5", "0.0"), ("0.0996", "0.1", "0.100"), ("57", "1", "57")],
)
def test_figures_are_rounded(value: str, like: str, told: str) -> None:
    result = {**RESULT, "figures": {"share": Decimal(value)}}
    assert filled_in(replace(ROW, figure=like), result).figure == told


@pytest.mark.parametrize(
    ("names", "figure"), [("`share`, `rate`", "1"), ("`share`", "1, 2"), ("`share`", "none")]
)
def test_each_value_has_a_name(names: str, figure: str) -> None:
    with pytest.raises(ValueError, match="some: . values, but . names"):
        filled_in(replace(ROW, names=names, figure=figure), RESULT)


def test_a_row_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="not as the rows beside it: . some . 1 . hearsay ."):
        rows_of("| what | figure | from |\n|---|---|---|\n| some | 1 | hearsay |\n")


FRONT_TEXT = """
## Numbers

| what | figure | from |
|---|---|---|
| {what} | 7 | nowhere |

Missed, of what
ever.

## Next
"""


def store_page() -> str:
    """A page of one row, whose bar is missed."""
    names = "`read_amplification`"
    return page_of(Row("read", "0 (at least 2)", "-", "0", "store.json", names).text() + "\n")


def test_the_readme_is_filled_in_from_the_page() -> None:
    text = front_of(FRONT_TEXT.format(what="read"), store_page())
    assert "\n| read | 1.0 | [`bench/run store`](bench/results/store.json) |\n" in text
    assert f"\n\nMissed, of the bars in [all numbers]({PAGE}): read: 1.0 (at least 2).\n\n" in text
    none = front_of(FRONT_TEXT.format(what="read"), store_page().replace(": missed", ""))
    assert f"\n\nMissed, of the bars in [all numbers]({PAGE}): none.\n\n" in none


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (FRONT_TEXT.format(what="written"), "has no such row: written"),
        (FRONT_TEXT.format(what="read").replace("Missed", "Reached"), "0 paragraphs"),
        (FRONT_TEXT.replace("Numbers", "Figures"), "no section of numbers"),
    ],
)
def test_a_readme_of_another_shape_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        front_of(text, store_page())
