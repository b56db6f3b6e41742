# SPDX-License-Identifier: Apache-2.0
"""Documents out of files: which files make up a collection, and how much is taken of each.

Files that are large or empty, what is no UTF-8 or has control characters, and what was there before
(licenses come often) are passed over.
"""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quickstart.texts import NoText, Texts, whole

LEAST_BYTES = 1024  # It is not worth looking for documents that are smaller.


class NoData(Exception):
    """A source has nothing at all."""


@dataclass(frozen=True)
class Document:
    name: str  # Where it comes from.
    text: str


@dataclass(frozen=True)
class Collection:
    source: str  # As the pipeline calls it.
    name: str
    what: str
    patterns: tuple[str, ...]  # Below the root that it is taken from.
    texts: Texts = whole  # Of a file.


@dataclass(frozen=True)
class Gathered:
    source: str
    what: str
    where: str
    documents: int
    size_bytes: int


@dataclass(frozen=True)
class Found:
    collection: Collection
    documents: list[Document]

    def gathered(self, where: str) -> Gathered:
        collection, sizes = self.collection, [len(one.text.encode()) for one in self.documents]
        return Gathered(collection.source, collection.what, where, len(sizes), sum(sizes))


@dataclass(frozen=True)
class Rules:
    """Which files, and in which order they are looked at."""

    largest_file_bytes: int
    order: Callable[[str], int | str]


def files_of(collection: Collection, root: Path, rules: Rules) -> Iterator[Path]:
    for pattern in collection.patterns:
        names = glob.iglob(pattern, root_dir=root, recursive=True)
        for name in sorted(names, key=rules.order):
            if (root / name).is_file():
                yield root / name


def documents_of(
    collection: Collection, roots: Iterable[Path], wanted_bytes: int, rules: Rules
) -> Iterator[Document]:
    seen: set[str] = set()
    for root in roots:
        for path in files_of(collection, root, rules):
            if wanted_bytes < LEAST_BYTES:
                return
            if path.stat().st_size > rules.largest_file_bytes:
                continue
            for document in read(collection, path, root):
                size = len(document.text.encode())
                if 0 < size <= wanted_bytes and document.text not in seen:
                    seen.add(document.text)
                    wanted_bytes -= size
                    yield document


def read(collection: Collection, path: Path, root: Path) -> Iterator[Document]:
    try:
        for text in collection.texts(path):
            yield Document(f"/{path.relative_to(root)}", text)
    except NoText:
        return


def gather(
    collections: Sequence[Collection],
    roots_of: Callable[[Collection], Sequence[Path]],
    wanted_bytes: int,
    rules: Rules,
) -> list[Found]:
    """Of a source's collections as much as is wanted: as much of one as of another, and more where
    others have less."""
    found: list[Found] = []
    so_far = 0
    for number, collection in enumerate(collections):
        share = (wanted_bytes - so_far) // (len(collections) - number)
        documents = list(documents_of(collection, roots_of(collection), share, rules))
        so_far += sum(len(one.text.encode()) for one in documents)
        found.append(Found(collection, documents))
    if so_far == 0:
        patterns = ", ".join(p for c in collections for p in c.patterns)
        raise NoData(f"source {collections[0].source}: there are no such files: {patterns}")
    return found
