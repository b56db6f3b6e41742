# SPDX-License-Identifier: Apache-2.0
"""What the documents say is true: their commands run, their links and paths exist."""

import re
import shlex
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tidy_rules.tree import CPP, Tree

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ROOT / "build" / "dev" / "batchloom"
TIME_LIMIT_S = 300
MAX_MEDIAN_LINES = 150
MAX_COLUMNS = 100
ROLES = [
    "Source Loader",
    "Planner",
    "Data Constructor",
    "Producer session",
    "Consumer",
    "Reclaimer",
]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# A command of the checkout that takes what is built.
QUICKSTART = "scripts/quickstart"
# Other commands of the checkout, which the tests themselves are or which take too long here.
CHECKOUT = re.compile(r"^(scripts/\S+|bench/run|\.ci/run|tools/\S+)")
ELSEWHERE = re.compile(r"^(git clone |cd batchloom$)")
EXIT_CODE = re.compile(r"^(.*\S)\s+# exit code ([1-9]\d*)\b")
BUILD = re.compile(r"(?<![\w./])(\$PWD/)?build/\w+")


@dataclass(frozen=True)
class Block:
    """A ```sh block: the document's path, its first line there, its commands, and, where a block
    without a language comes next, what that says they print."""

    document: Path
    line: int
    commands: list[str]
    output: str | None = None


def executed_documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def sh_blocks(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    for fence, following in zip(fences, [*fences[1:], None], strict=True):
        if fence[1] == "sh":
            commands = fence[2].replace("\\\n", " ").splitlines()
            output = following[2] if following and not following[1] else None
            yield Block(document, text.count("\n", 0, fence.start()) + 2, commands, output)


def runnable(block: Block) -> list[str]:
    """The commands to run, in this checkout's build folder; those that belong to the checkout must
    exist there instead."""
    commands = []
    for command in block.commands:
        if command.startswith(QUICKSTART):
            build = shlex.quote(str(COMMAND.parent))
            here = f"{shlex.quote(str(ROOT))}/{command} --data=machine"  # Nothing is fetched.
            commands.append(f"BATCHLOOM_BUILD={build} {here}")
        elif script := CHECKOUT.match(command):
            assert (ROOT / script[1]).is_file(), f"{place(block)}: there is no {script[1]}"
        elif not ELSEWHERE.match(command):
            here = BUILD.sub(lambda _: shlex.quote(str(COMMAND.parent)), command)
            commands.append(expecting(here))
    return commands


def expecting(command: str) -> str:
    """A command with a comment `# exit code N` must end with that code; all others with 0."""
    if failing := EXIT_CODE.match(command):
        return f"{{ {failing[1]}; }} && code=0 || code=$?\n[ $code -eq {failing[2]} ]"
    return command


def prints(output: str, printed: str) -> bool:
    """Whether lines of `printed` that follow each other are those of `output`, in which `...`
    stands for anything: for a part of a line, and alone for any number of lines."""
    pattern = "^"
    for line in output.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part.rstrip()) for part in line.split("...")) + r" *\n"
    return re.search(pattern, printed, re.MULTILINE) is not None


def place(block: Block) -> str:
    return f"{block.document.relative_to(ROOT)}:{block.line}"


@pytest.mark.parametrize("document", executed_documents(), ids=lambda path: path.name)
def test_commands_run(document: Path, tmp_path: Path) -> None:
    """Block after block, in one shell and one empty folder: what a reader does who starts at the
    top."""
    assert COMMAND.is_file(), f"no {COMMAND.relative_to(ROOT)}: run scripts/build"
    blocks = list(sh_blocks(document))
    commands: list[str] = []
    for block in blocks:
        commands += [*runnable(block), f"echo 'end of {place(block)}'"]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(["exec 2>&1", *commands])],
        cwd=tmp_path,
        timeout=TIME_LIMIT_S,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}"
    rest = done.stdout
    for block in blocks:
        printed, rest = rest.split(f"end of {place(block)}\n")
        if block.output is not None:
            what = f"{place(block)}: what follows it is not what it prints:"
            assert prints(block.output, printed), f"{what}\n{block.output}\n{printed}"


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("true", True),
        ("false", False),
        ("false  # exit code 1: as it must", True),
        ("true  # exit code 1: as it must", False),
        ("(exit 2)  # exit code 1", False),
        ("(exit 2)  # exit code 2", True),
    ],
)
def test_an_expected_failure_is_checked(line: str, passes: bool) -> None:
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", expecting(line)], check=False)
    assert (done.returncode == 0) == passes


@pytest.mark.parametrize(
    ("output", "passes"),
    [
        ("b\nc\n", True),
        ("a 1\n...\nd\n", True),
        ("a ...\nb\n", True),
        ("...1\nb\n", True),
        ("a 2\n", False),
        ("a 1\nc\n", False),
        ("...\ne\n", False),
        ("b\nc\n...\n", True),
    ],
)
def test_output_is_compared(output: str, passes: bool) -> None:
    assert prints(output, "a 1\nb\nc\nd\n") == passes


def test_documents_have_commands() -> None:
    assert any(block.commands for path in executed_documents() for block in sh_blocks(path))


def cells_of(row: str) -> list[str]:
    return [cell.strip().strip("`") for cell in row.strip().strip("|").split("|")]


def role_rows() -> list[dict[str, str]]:
    """The rows of ARCHITECTURE.md's table with the columns Role, Folder, Main header, State."""
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    tables = [cells_of(line) if line.startswith("|") else None for line in lines]
    columns = ["Role", "Folder", "Main header", "State"]
    assert columns in tables, f"ARCHITECTURE.md has no table with the columns {columns}"
    rows = []
    for cells in tables[tables.index(columns) + 2 :]:
        if cells is None:
            break
        rows.append(dict(zip(columns, cells, strict=True)))
    return rows


def test_roles_exist_or_say_that_they_do_not() -> None:
    rows = role_rows()
    assert [row["Role"] for row in rows] == ROLES
    for row in rows:
        assert row["State"] in {"built", "not built yet"}, row
        if row["State"] == "built":
            folder = ROOT / row["Folder"]
            header = row["Main header"]
            assert folder.is_dir(), f"{row['Role']}: there is no folder {row['Folder']}"
            exists = (ROOT / header).is_file() or (folder / header).is_file()
            assert exists, f"{row['Role']}: there is no header {header}"


def test_relative_links_resolve() -> None:
    broken = []
    for document in Tree(ROOT).of_kind("markdown"):
        folder = (ROOT / document.path).parent
        for target in LINK.findall(FENCE.sub("", document.text)):
            path = target.partition("#")[0]
            if path and not re.match(r"\w+:", path) and not (folder / path).exists():
                broken.append(f"{document.path}: {target}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/numbers.md"])
def test_lines_fit_a_terminal(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > MAX_COLUMNS and not line.startswith("|")] == []


def test_cpp_files_are_small() -> None:
    sizes = [len(file.lines) for file in Tree(ROOT).of_kind(*CPP)]
    assert statistics.median(sizes) <= MAX_MEDIAN_LINES
