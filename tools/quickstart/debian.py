# SPDX-License-Identifier: Apache-2.0
"""Data out of Debian 12's packages: texts in English and six other languages, code, and pictures
with captions, in four formats, and a tokenizer that is trained on them.

Files are taken in an order that has nothing to do with their names, so that a part of a package
stands for all of it.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quickstart import vocabulary
from quickstart.figures import Figure, figures_of
from quickstart.gathering import Collection, Document, Found, Gathered, NoData, Rules, gather
from quickstart.ids import encode_by
from quickstart.made_ids import write_ids
from quickstart.pictures import is_known
from quickstart.shard_files import write_jsonl_zst, write_parquet, write_tar
from quickstart.texts import entries, page

LANGUAGES = ("de", "es", "fr", "it", "pl", "ru")
RULES = Rules(
    largest_file_bytes=16 << 20,  # The dictionary has 15 MB, as it is compressed.
    order=lambda name: zlib.crc32(name.encode()),
)
MODEL = "tokenizer.model"
HELP = "usr/share/gimp/2.0/help/en"


@dataclass(frozen=True)
class Packaged:
    """A collection, and the packages that it is in."""

    packages: tuple[str, ...]
    collection: Collection


def packaged(packages: str, *collection: object) -> Packaged:
    return Packaged(tuple(packages.split()), Collection(*collection))  # type: ignore[arg-type]


COLLECTIONS = (
    packaged("manpages", "manuals", "man", "manual pages", ("usr/share/man/man*/*.gz",)),
    packaged("manpages-dev", "manuals", "dev", "of functions", ("usr/share/man/man*/*.gz",)),
    packaged("glibc-doc", "manuals", "glibc", "glibc", ("usr/share/doc/glibc-doc/**/*",)),
    packaged("perl-doc", "manuals", "perl", "Perl's pod", ("usr/share/perl/**/*.pod",)),
    *(
        packaged(f"manpages-{language}", "languages", f"man-{language}", f"man {language}",
                 (f"usr/share/man/{language}/**/*.gz",))
        for language in LANGUAGES
    ),
    *(
        packaged("gnome-user-docs", "languages", f"help-{language}", f"GNOME {language}",
                 (f"usr/share/help/{language}/**/*.page",), page)
        for language in LANGUAGES
    ),
    packaged("linux-doc-6.1", "kernel", "linux", "Linux' documentation",
             ("usr/share/doc/linux-doc-6.1/Documentation/**/*.rst.gz",)),
    packaged("dict-gcide", "dictionary", "gcide", "a dictionary",
             ("usr/share/dictd/gcide.dict.dz",), entries),
    packaged("rust-src", "code", "rust", "Rust", ("usr/src/rustc-*/**/*.rs",)),
    packaged("golang-1.19-src", "code", "go", "Go", ("usr/share/go-1.19/src/**/*.go",)),
    packaged("libpython3.11-stdlib libpython3.11-testsuite", "code", "python", "Python",
             ("usr/lib/python3.11/**/*.py",)),
)
PICTURES = ("gimp-help-en", "gimp-help-common")  # The licence of the first is in the second.
PACKAGES = tuple(dict.fromkeys([*(p for c in COLLECTIONS for p in c.packages), *PICTURES]))


@dataclass
class Writer:
    """Puts data together in `folder`, for the pipeline that lies in the folder above it."""

    roots: dict[str, Path]  # By package.
    folder: Path
    gathered: list[Gathered] = field(default_factory=list)

    def write(self, wanted_bytes: dict[str, int], vocab: int) -> None:
        """`wanted_bytes` by source."""
        self.folder.mkdir()
        of_source = {
            source: self._gather(source, wanted)
            for source, wanted in wanted_bytes.items()
            if source != "pictures"
        }
        documents = [found.documents for several in of_source.values() for found in several]
        vocabulary.train(documents, vocab, self.folder.parent)
        for source, several in of_source.items():
            for found in several:
                if found.documents:
                    self._write(source, found)
        self._write_pictures(wanted_bytes["pictures"])

    def _gather(self, source: str, wanted: int) -> list[Found]:
        packages = {c.collection: c.packages for c in COLLECTIONS if c.collection.source == source}
        roots = {c: [self.roots[name] for name in names] for c, names in packages.items()}
        several = gather(list(packages), roots.__getitem__, wanted, RULES)
        self.gathered += [one.gathered(" and ".join(packages[one.collection])) for one in several]
        return several

    def _write(self, source: str, found: Found) -> None:
        path = self.folder / f"{source}-{found.collection.name}"
        records = [{"name": one.name, "text": one.text} for one in found.documents]
        if source == "code":
            texts = [one.text for one in found.documents]
            write_ids(path.with_suffix(".bin"), texts, encode_by(self.folder.parent / MODEL)(texts))
        elif source == "dictionary":
            write_parquet(path.with_suffix(".parquet"), words_of(found.documents))
        elif source == "kernel":
            write_parquet(path.with_suffix(".parquet"), records)
        else:
            write_jsonl_zst(path.with_suffix(".jsonl.zst"), records)

    def _write_pictures(self, wanted: int) -> None:
        found = figures_of(self.roots[PICTURES[0]] / HELP)
        figures = sorted(
            (figure for figure in found if is_known(figure.picture.read_bytes())),
            key=lambda figure: RULES.order(figure.picture.name),
        )
        if not figures:
            raise NoData(f"source pictures: {PICTURES[0]} has no figures in {HELP}")
        taken = list(first_of(figures, wanted))
        write_tar(self.folder / "pictures-gimp.tar", (sample_of(figure) for figure in taken))
        size = sum(figure.picture.stat().st_size for figure in taken)
        what = "figures of GIMP's help"
        self.gathered.append(Gathered("pictures", what, PICTURES[0], len(taken), size))


def first_of(figures: Iterable[Figure], wanted_bytes: int) -> Iterable[Figure]:
    for figure in figures:
        if wanted_bytes <= 0:
            return
        wanted_bytes -= PICTURE_BYTES
        yield figure


# What a picture counts as, beside texts: its ids, at about 3 bytes of text each.
PICTURE_BYTES = 200


def sample_of(figure: Figure) -> dict[str, bytes]:
    return {"picture": figure.picture.read_bytes(), "txt": figure.caption.encode()}


def words_of(documents: Sequence[Document]) -> list[dict[str, str]]:
    """Word and what is said of it: an entry begins with the word and how it is spoken."""
    pairs = (document.text.partition(" \\") for document in documents)
    return [
        {"word": word, "entry": mark + rest}
        for word, mark, rest in pairs
        if mark and "\n" not in word
    ]
