# SPDX-License-Identifier: Apache-2.0
"""Rules about folders, documents and formatting."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tidy_rules.tree import CPP, Finding, Tree, is_ours

# Of an edge that is not built yet, too: where it will lie is settled.
TOP_FOLDERS = {".ci", "batchloom", "bench", "cli", "cmake", "dashboard", "docs", "examples"}
TOP_FOLDERS |= {"python", "scripts", "tests", "tools"}
MEANINGLESS = {"util", "utils", "common", "helper", "helpers", "internal", "misc"}
MAX_README_LINES = 40

# The formatter's output differs between versions: that of tools/requirements.txt counts.
CLANG_FORMAT = Path(__file__).parents[2] / ".venv" / "bin" / "clang-format"
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def top_folder(tree: Tree) -> Iterator[Finding]:
    """Looks at folders themselves: what a run leaves behind need not be text."""
    for folder in sorted(tree.root.iterdir()):
        if folder.is_dir() and is_ours(PurePosixPath(folder.name)):
            if folder.name not in TOP_FOLDERS:
                message = "not a part of the project: remove it, or name it in TOP_FOLDERS"
                yield Finding(folder.name, 1, message)


def folder_name(tree: Tree) -> Iterator[Finding]:
    for folder in tree.folders:
        if PurePosixPath(folder).name in MEANINGLESS:
            yield Finding(folder, 1, "this name says nothing: name the folder after what it holds")


def module_readme(tree: Tree) -> Iterator[Finding]:
    files = {file.path: file for file in tree.files}
    for folder in tree.folders:
        if PurePosixPath(folder).parent != PurePosixPath("batchloom"):
            continue
        readme = files.get(f"{folder}/README.md")
        if readme is None:
            message = "no such file: say why the module exists and what belongs in it"
            yield Finding(f"{folder}/README.md", 1, message)
        elif len(readme.lines) > MAX_README_LINES:
            message = f"{len(readme.lines)} lines, at most {MAX_README_LINES}: move detail to docs/"
            yield Finding(readme.path, MAX_README_LINES + 1, message)


def one_heading(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind("markdown"):
        text = FENCED.sub(lambda match: "\n" * match[0].count("\n"), file.text)
        titles = [number for number, line in enumerate(text.split("\n"), 1) if line[:2] == "# "]
        if not titles:
            yield Finding(file.path, 1, "no title: begin with one '# ' heading")
        for number in titles[1:]:
            yield Finding(file.path, number, "a second title: use '## ' below the first")


def clang_format(tree: Tree) -> Iterator[Finding]:
    paths = [file.path for file in tree.of_kind(*CPP)]
    if not paths:
        return
    if not CLANG_FORMAT.exists():
        message = "tidy: clang_format skipped: no .venv/bin/clang-format: run scripts/setup"
        print(message, file=sys.stderr)
        return
    command = [str(CLANG_FORMAT), "--dry-run", *paths]
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
    reported: set[str] = set()
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: warning: ", done.stderr, re.MULTILINE):
        if path not in reported:
            reported.add(path)
            yield Finding(path, int(line), f"not formatted: run .venv/bin/clang-format -i {path}")
