# SPDX-License-Identifier: Apache-2.0
"""Figures of pages of HTML, as DocBook's stylesheets write them: pictures and their captions."""

from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

ENDINGS = (".jpg", ".jpeg", ".png")
WITHOUT_END = {"img", "br", "hr", "input", "link", "meta", "col"}


@dataclass(frozen=True)
class Figure:
    picture: Path
    caption: str


class FigureParser(HTMLParser):
    """Collects (picture's path, caption) of each <div class="figure">: its title, and what a
    <div class="caption"> says of that picture."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open: list[str] = []  # Classes of elements, the innermost last.
        self._title = ""
        self._pictures: list[list[str]] = []  # Of the figure: a path and its own caption.

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "img" and "figure" in self._open and given.get("src"):
            self._pictures.append([str(given["src"]), ""])
        if tag not in WITHOUT_END:
            self._open.append(given.get("class") or "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in WITHOUT_END:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in WITHOUT_END or not self._open:
            return
        if self._open.pop() == "figure" and "figure" not in self._open:
            for path, own in self._pictures:
                self.found.append((path, joined(self._title, own)))
            self._title, self._pictures = "", []

    def handle_data(self, text: str) -> None:
        if "figure" not in self._open:
            return
        if "caption" in self._open and self._pictures:
            self._pictures[-1][1] += text
        elif "title" in self._open:
            self._title += text


def joined(*texts: str) -> str:
    """In one line."""
    return " ".join(" ".join(texts).split())


def figures_of(folder: Path) -> Iterator[Figure]:
    """Of all pages in a folder, each picture once."""
    seen: set[Path] = set()
    for page in sorted(folder.glob("*.html")):
        parser = FigureParser()
        parser.feed(page.read_text(encoding="utf-8", errors="replace"))
        for source, caption in parser.found:
            picture = (page.parent / source).resolve()
            if picture in seen or picture.suffix.lower() not in ENDINGS or not caption:
                continue
            seen.add(picture)
            if picture.is_file():
                yield Figure(picture, caption)
