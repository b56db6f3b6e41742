# SPDX-License-Identifier: Apache-2.0
"""What the rules look at: the files of a source tree, and C++ text without its comments."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

# Made by tools, never by people.
GENERATED_FOLDERS = {"build", "quickstart-out", "__pycache__"}
# Hidden folders belong to tools, except this one.
HIDDEN_FOLDERS_WE_OWN = {".ci"}
# Each folder in here is a tree of its own: what the rules must find.
BAD_TREES = PurePosixPath("tests/tidy/bad")

KIND_OF_SUFFIX = {
    ".h": "header",
    ".cc": "cpp",
    ".py": "python",
    ".cmake": "cmake",
    ".sh": "shell",
    ".fbs": "schema",
    ".md": "markdown",
    ".toml": "config",
    ".json": "config",
    ".yml": "config",
}
CPP = {"header", "cpp"}
CODE = CPP | {"python", "cmake", "shell", "schema"}
TEXT = CODE | {"markdown", "config"}

# Comments, then literals, in the order in which C++ would recognise them. A quote after a digit
# separates digits.
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*" """.rstrip()
    + r"""|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


@dataclass(frozen=True)
class Finding:
    """Something a rule objects to: where, and what to do instead."""

    path: str
    line: int
    message: str


class SourceFile:
    """One text file; `path` counts from the root of its tree."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.splitlines()

    @cached_property
    def kind(self) -> str:
        pure = PurePosixPath(self.path)
        if pure.name == "CMakeLists.txt":
            return "cmake"
        if pure.suffix == "" and self.lines and self.lines[0].startswith("#!"):
            return "python" if "python" in self.lines[0] else "shell"
        return KIND_OF_SUFFIX.get(pure.suffix, "other")

    @cached_property
    def code_lines(self) -> list[str]:
        """C++ lines with comments and the insides of literals blanked out."""
        return NOT_CODE.sub(blank, self.text).splitlines()

    @property
    def is_test(self) -> bool:
        """Whether this C++ file is a test, or a fixture of tests."""
        stem = PurePosixPath(self.path).stem
        return self.path.startswith("tests/") or stem.endswith(("_test", "_testing"))


def blank(match: re.Match[str]) -> str:
    text = match[0]
    edge = text[0] if text[0] in "\"'" else " "
    inside = re.sub(r"[^\n]", " ", text[1:-1])
    return edge + inside + edge


class Tree:
    """All text files below `root` that people write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = list(read_files(root))

    def of_kind(self, *kinds: str) -> list[SourceFile]:
        return [file for file in self.files if file.kind in kinds]

    @cached_property
    def folders(self) -> list[str]:
        """Every folder that holds a file, at any depth."""
        parents = (PurePosixPath(file.path).parents for file in self.files)
        return sorted({str(folder) for chain in parents for folder in chain} - {"."})


def read_files(root: Path) -> Iterator[SourceFile]:
    for folder, subfolders, names in os.walk(root):
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        subfolders[:] = sorted(name for name in subfolders if is_ours(here / name))
        for name in sorted(names):
            try:
                text = (Path(folder) / name).read_bytes().decode()
            except UnicodeDecodeError:
                continue
            yield SourceFile(str(here / name), text)


def is_ours(folder: PurePosixPath) -> bool:
    if folder.name.startswith("."):
        return folder.name in HIDDEN_FOLDERS_WE_OWN
    return folder.name not in GENERATED_FOLDERS and folder != BAD_TREES
