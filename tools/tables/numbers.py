# SPDX-License-Identifier: Apache-2.0
"""What was measured, as documents tell it. Rows are written by hand, with any number in place of a
figure: bench/results says which it is, at which commit, and which bars are missed, and that is
filled in here.

docs/numbers.md has all rows. Each names its figures in their order: by a name of the `figures` of
its file, or as `column of key=value key=value`, which is in the one of the `rows` that has these.
README.md has some of these rows, found by what they tell, without bars, and one paragraph of all
bars that are missed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from textwrap import fill

from tables.cpp import ROOT, Json, load

PAGE = "docs/numbers.md"
FRONT = "README.md"
RESULTS = "bench/results"
COLUMNS = "| what | figure | from |"
MAX_COLUMNS = 100

ROW = re.compile(
    r"\| (?P<what>[^|]+) \| (?P<figure>[^|]+) \| "
    rf"`(?P<command>[^`]+)` at \[(?P<commit>\w+)\]\(\.\./{RESULTS}/(?P<file>\w+\.json)\): "
    r"(?P<names>`[^`]+`(?:, `[^`]+`)*) \|"
)
FRONT_SECTION = re.compile(r"(?<=\n## Numbers\n).*?(?=\n## )", re.DOTALL)
MISSED = re.compile(r"^Missed, of .*?(?=\n\n|\n\Z)", re.MULTILINE | re.DOTALL)

NUMBER = r"\d[\d,]*(?:\.\d+)?"
# A value, the words that follow it, and the bar that it is held to.
VALUE = re.compile(
    rf"(?P<value>{NUMBER})(?P<unit>[^\d(]*)"
    rf"(?P<bar>\((?P<side>at least|at most) (?P<limit>{NUMBER})(?P<limit_unit>[^):]*)"
    r"(?P<missed>: missed)?\))?"
)
BAR = re.compile(r" \(at (?:least|most) [^)]*\)")


@dataclass(frozen=True)
class Row:
    """A row of the page. `figure` has as many values as there are `names`."""

    what: str
    figure: str
    command: str
    commit: str
    file: str
    names: str

    def text(self) -> str:
        results = f"[{self.commit}](../{RESULTS}/{self.file})"
        return f"| {self.what} | {self.figure} | `{self.command}` at {results}: {self.names} |"

    def front_text(self) -> str:
        results = f"[`{self.command}`]({RESULTS}/{self.file})"
        return f"| {self.what} | {BAR.sub('', self.figure)} | {results} |"

    def missed(self) -> Iterator[str]:
        """Each value whose bar is missed, and that bar."""
        for value in VALUE.finditer(self.figure):
            if value["missed"]:
                yield value[0].removesuffix(": missed)") + ")"


def stored_value(results: Json, name: str) -> Decimal:
    column, _, keys = name.partition(" of ")
    if not keys:
        return Decimal(results["figures"][column])
    wanted = dict(key.split("=", 1) for key in keys.split(" "))
    (row,) = (r for r in results["rows"] if all(str(r.get(k)) == v for k, v in wanted.items()))
    return Decimal(row[column])


def percent(unit: str) -> int:
    """How many of `unit` make one."""
    return 100 if unit.startswith(" %") else 1


def bar_of(found: re.Match[str], value: Decimal) -> str:
    """The bar of a VALUE, with whether `value` misses it."""
    limit = Decimal(found["limit"].replace(",", "")) / percent(found["limit_unit"])
    reached = value >= limit if found["side"] == "at least" else value <= limit
    return f"({found['side']} {found['limit']}{found['limit_unit']}{'' if reached else ': missed'})"


def rounded(value: Decimal, like: str) -> str:
    """With as many decimals as `like`, but not fewer than two digits that tell something; of whole
    numbers, three are told."""
    decimals = len(like.partition(".")[2])
    if value:
        decimals = max(decimals, 1 - value.adjusted())
    if decimals == 0:
        decimals = min(0, 2 - value.adjusted())
    return f"{value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):,f}"


def filled_in(row: Row, results: Json) -> Row:
    """The row, as its file says. Raises ValueError where there are not as many values as names."""
    names = re.findall("`([^`]+)`", row.names)
    values = len(VALUE.findall(row.figure))
    if len(names) != values:
        raise ValueError(f"{row.what}: {values} values, but {len(names)} names")
    name = iter(names)

    def value(found: re.Match[str]) -> str:
        stored = stored_value(results, next(name))
        shown = rounded(stored * percent(found["unit"]), found["value"])
        return shown + found["unit"] + (bar_of(found, stored) if found["bar"] else "")

    figure = VALUE.sub(value, row.figure)
    return replace(row, figure=figure, command=results["command"], commit=results["commit"])


def is_row(line: str) -> bool:
    return line.startswith("| ") and line != COLUMNS


def rows_of(page: str) -> list[Row]:
    """Raises ValueError for a row that is not as the others."""
    rows = []
    for line in filter(is_row, page.splitlines()):
        found = ROW.fullmatch(line)
        if not found:
            raise ValueError(f"{PAGE}: not as the rows beside it: {line}")
        rows.append(Row(**found.groupdict()))
    return rows


def page_of(text: str) -> str:
    """`text` of the page, filled in."""
    for row in rows_of(text):
        results = load(f"{RESULTS}/{row.file}")
        text = text.replace(row.text() + "\n", filled_in(row, results).text() + "\n")
    return text


def missed_paragraph(rows: list[Row]) -> str:
    missed = "; ".join(f"{row.what}: {value}" for row in rows for value in row.missed())
    text = f"Missed, of the bars in [all numbers]({PAGE}): {missed or 'none'}."
    return fill(text, MAX_COLUMNS, break_long_words=False, break_on_hyphens=False)


def front_of(text: str, page: str) -> str:
    """`text` of the README with its section of numbers filled in from those of the page. Raises
    ValueError for a row that the page does not have."""
    rows = {row.what: row for row in rows_of(page)}

    def front_line(line: str) -> str:
        if not is_row(line):
            return line
        what = line.split(" | ")[0].removeprefix("| ")
        if what not in rows:
            raise ValueError(f"{FRONT}: {PAGE} has no such row: {what}")
        return rows[what].front_text()

    def section(found: re.Match[str]) -> str:
        lines = "\n".join(front_line(line) for line in found[0].split("\n"))
        paragraph = missed_paragraph(list(rows.values()))
        text, count = MISSED.subn(lambda _: paragraph, lines)
        if count != 1:
            raise ValueError(f"{FRONT}: {count} paragraphs of numbers begin with 'Missed, of'")
        return text

    text, count = FRONT_SECTION.subn(section, text)
    if count != 1:
        raise ValueError(f"{FRONT}: no section of numbers")
    return text


def make_page() -> str:
    return page_of((ROOT / PAGE).read_text(encoding="utf-8"))


def make_front() -> str:
    return front_of((ROOT / FRONT).read_text(encoding="utf-8"), make_page())
