# SPDX-License-Identifier: Apache-2.0
"""tools/tidy.py: each rule finds exactly the bad lines made for it, and our own tree has none.

tests/tidy/bad/<rule>/ is a small source tree; its expected.txt lists every path:line that the rule
must report. The other rules must find nothing there.
"""

from pathlib import Path

import pytest
import tidy
from tidy_rules.functions import cpp_functions
from tidy_rules.layers import load_layers
from tidy_rules.tree import SourceFile

ROOT = Path(__file__).resolve().parent.parent.parent
BAD = Path(__file__).resolve().parent / "bad"
NAMES = sorted(rule.__name__ for rule in tidy.RULES)


def test_every_rule_has_one_bad_tree() -> None:
    assert sorted(folder.name for folder in BAD.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_rule_finds_exactly_its_bad_lines(name: str) -> None:
    tree = BAD / name
    expected = (tree / "expected.txt").read_text(encoding="utf-8").split()
    found = {f"[{rule}] {finding.path}:{finding.line}" for rule, finding in tidy.check(tree)}
    assert found == {f"[{name}] {place}" for place in expected}


def test_our_own_tree_is_clean() -> None:
    found = [f"{f.path}:{f.line}: [{rule}] {f.message}" for rule, f in tidy.check(ROOT)]
    assert not found, "\n".join(found)


def test_main_prints_findings_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert tidy.main([str(BAD / "macro")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "cli/bad.cc:2: [macro] macro: write a function, a template or a constant",
        f"tidy: 1 findings by {len(NAMES)} rules",
    ]


def test_table_refuses_a_module_of_the_same_rank(tmp_path: Path) -> None:
    table = tmp_path / "layers.toml"
    row = "[modules.{}]\nrank = 1\nmay_include = {}\n"
    table.write_text("edges = []\n" + row.format("a", '["b"]') + row.format("b", "[]"))
    with pytest.raises(ValueError, match="a may not include b"):
        load_layers(table)


@pytest.mark.parametrize(
    ("code", "spans"),
    [
        ("int f() {\n}\n", [(1, 2)]),
        ("struct S {\n  void f() {\n  }\n};\n", [(2, 3)]),
        ('class BL(capability("m")) M {\n  void f();\n};\n', []),
        ("#define X(a) \\\n  { a\nvoid f()\n{\n}\n", [(3, 5)]),
        ("void f() {\n  if (x) {\n  }\n  auto g = [&] {\n  };\n}\n", [(1, 6)]),
        ("int table[] = {1, 2};\n", []),
        ('extern "C" {\nint f() {\n}\n}\n', [(2, 3)]),
        ('void f() {\n  // }\n  g("}");\n}\n', [(1, 4)]),
    ],
)
def test_function_spans(code: str, spans: list[tuple[int, int]]) -> None:
    assert list(cpp_functions(SourceFile("cli/x.cc", code))) == spans
