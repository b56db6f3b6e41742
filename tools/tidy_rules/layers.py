# SPDX-License-Identifier: Apache-2.0
"""Rules about who includes whom; the table is tools/layers.toml."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from tidy_rules.cpp import includes
from tidy_rules.tree import CPP, Finding, SourceFile, Tree

TABLE = Path(__file__).resolve().parent.parent / "layers.toml"


@dataclass(frozen=True)
class Layers:
    """`may_include` of every module, and the folders beside the library."""

    may_include: dict[str, set[str]]
    edges: set[str]

    def allowed(self, owner: str) -> set[str]:
        if owner in self.edges:
            return set(self.may_include)
        return self.may_include[owner]


@cache
def load_layers(path: Path = TABLE) -> Layers:
    """Reads the table. ValueError where a module may include another of its own rank or above."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    modules = table["modules"]
    for name, row in modules.items():
        for other in row["may_include"]:
            if modules[other]["rank"] >= row["rank"]:
                raise ValueError(f"{path}: {name} may not include {other}: its rank is not lower")
    may_include = {name: set(row["may_include"]) for name, row in modules.items()}
    return Layers(may_include, set(table["edges"]))


def is_ours(path: str) -> bool:
    """Whether an #include names a file of this repository, from its root."""
    return path.startswith(("batchloom/", *(f"{edge}/" for edge in load_layers().edges)))


def owner_of(path: str) -> str:
    """The module or edge folder that a file belongs to."""
    parts = PurePosixPath(path).parts
    return parts[1] if parts[0] == "batchloom" and len(parts) > 2 else parts[0]


def include_form(tree: Tree) -> Iterator[Finding]:
    """Our own headers are quoted and named from the root of the repository; others are <>."""
    for file in tree.of_kind(*CPP):
        for number, path, quoted in includes(file):
            if quoted and not is_ours(path):
                message = f'"{path}": write "batchloom/<module>/<file>.h", or <> for a library'
                yield Finding(file.path, number, message)
            elif is_ours(path) and not quoted:
                yield Finding(file.path, number, f'<{path}>: write "{path}"')


def layers(tree: Tree) -> Iterator[Finding]:
    table = load_layers()
    for file in tree.of_kind(*CPP):
        owner = owner_of(file.path)
        if owner not in table.may_include and owner not in table.edges:
            yield Finding(file.path, 1, f"'{owner}' has no row in tools/layers.toml: add one")
            continue
        for number, path, _ in includes(file):
            target = owner_of(path)
            if is_ours(path) and target not in table.allowed(owner) | {owner}:
                message = f"{owner} may not include {target} (tools/layers.toml): move the code"
                yield Finding(file.path, number, message)


def include_cycle(tree: Tree) -> Iterator[Finding]:
    """Reports the #include that closes a cycle of files."""
    files = {file.path: file for file in tree.of_kind(*CPP)}
    finished: set[str] = set()
    for path in files:
        yield from cycles_from(path, [], files, finished)


def cycles_from(
    path: str, chain: list[str], files: dict[str, SourceFile], finished: set[str]
) -> Iterator[Finding]:
    if path in finished:
        return
    chain.append(path)
    for number, target, _ in includes(files[path]):
        if target in chain:
            cycle = " -> ".join([*chain[chain.index(target) :], target])
            yield Finding(path, number, f"include cycle: {cycle}: forward-declare, or split a file")
        elif target in files:
            yield from cycles_from(target, chain, files, finished)
    chain.pop()
    finished.add(path)
