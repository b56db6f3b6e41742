# SPDX-License-Identifier: Apache-2.0
"""docs/traps.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "traps.md"
IN_CODE = re.compile(r"`([^`]+)`")
CPP_TEST = re.compile(
    r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)", re.MULTILINE
)
PYTHON_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def held_rows(page: str) -> list[list[str]]:
    """The cells of each row of the first table."""
    held = page.partition("## Held")[2].partition("## Open")[0]
    lines = [line for line in held.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def existing_tests(root: Path) -> set[str]:
    names = set()
    for path in [*root.glob("batchloom/**/*_test.cc"), *root.glob("cli/**/*_test.cc")]:
        text = path.read_text(encoding="utf-8")
        names.update(f"{suite}.{case}" for suite, case in CPP_TEST.findall(text))
    for path in [*root.glob("tests/*_test.py"), *root.glob("python/tests/*_test.py")]:
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(root).as_posix()
        names.update(f"{place}::{case}" for case in PYTHON_TEST.findall(text))
    return names


def unknown_tests(page: str, existing: set[str]) -> list[str]:
    named = [name for row in held_rows(page) for name in IN_CODE.findall(row[3])]
    return [name for name in named if name not in existing]


def test_every_named_test_exists() -> None:
    assert not unknown_tests(PAGE.read_text(encoding="utf-8"), existing_tests(ROOT))


def test_every_trap_that_is_held_names_a_test() -> None:
    rows = held_rows(PAGE.read_text(encoding="utf-8"))
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 4, row
        assert IN_CODE.findall(row[3]), f"no test holds: {row[0]}"


@pytest.mark.parametrize("name", ["Consumer.NoSuchTest", "tests/pipeline_test.py::test_nothing"])
def test_a_test_that_went_is_found(name: str) -> None:
    page = f"## Held\n\n| a | b | c | d |\n| --- | --- | --- | --- |\n| r | w | h | `{name}` |\n"
    assert unknown_tests(page, existing_tests(ROOT)) == [name]
