# SPDX-License-Identifier: Apache-2.0
"""Our lint: reports what breaks the rules of CONTRIBUTING.md, as path:line, and exits with 1.

Usage: python3 tools/tidy.py [ROOT]
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tidy_rules import cpp, folders, functions, layers, text
from tidy_rules.tree import Finding, Tree

Rule = Callable[[Tree], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    text.spdx,
    text.line_length,
    text.file_length,
    text.whitespace,
    text.unfinished,
    text.machine_path,
    cpp.banned,
    cpp.output,
    cpp.pragma_once,
    cpp.using_namespace,
    cpp.macro,
    cpp.range_of_part,
    cpp.heavy_header,
    layers.include_form,
    layers.layers,
    layers.include_cycle,
    functions.function_length,
    folders.top_folder,
    folders.folder_name,
    folders.module_readme,
    folders.one_heading,
    folders.clang_format,
)


def check(root: Path) -> list[tuple[str, Finding]]:
    """Every finding in the tree at `root`, each with the name of its rule."""
    tree = Tree(root)
    return [(rule.__name__, finding) for rule in RULES for finding in rule(tree)]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = check(root)
    for rule, finding in found:
        print(f"{finding.path}:{finding.line}: [{rule}] {finding.message}")
    print(f"tidy: {len(found)} findings by {len(RULES)} rules")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
