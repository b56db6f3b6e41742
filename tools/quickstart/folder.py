# SPDX-License-Identifier: Apache-2.0
"""The folder of a quickstart: what lies in it, and when it may be replaced."""

import shutil
from dataclasses import dataclass
from pathlib import Path


class NotOurs(Exception):
    """The folder holds something that no quickstart has written."""


@dataclass(frozen=True)
class Folder:
    path: Path

    @property
    def mark(self) -> Path:
        """Says that a quickstart made this folder."""
        return self.path / ".quickstart"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def pipeline(self) -> Path:
        return self.path / "pipeline.toml"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer.model"

    @property
    def packages(self) -> Path:
        """Unpacked, and kept for the next quickstart."""
        return self.path / "packages"

    @property
    def stream(self) -> Path:
        return self.path / "stream"

    @property
    def report(self) -> Path:
        """As it is printed."""
        return self.path / "report.txt"

    @property
    def report_md(self) -> Path:
        return self.path / "report.md"

    @property
    def report_json(self) -> Path:
        return self.path / "report.json"

    @property
    def plots(self) -> Path:
        return self.path / "plots"

    @property
    def delivered(self) -> Path:
        """What ranks got, a file each."""
        return self.path / "delivered"

    @property
    def logs(self) -> Path:
        """What processes had to say on stderr, a file each."""
        return self.path / "logs"

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.txt"

    def of_rank(self, rank: int) -> Path:
        return self.delivered / f"rank-{rank}"

    def count_batch_objects(self) -> int:
        return sum(1 for _ in self.stream.glob("d/*/*"))

    def make(self) -> None:
        """Empty but for packages, in place of a former quickstart's. NotOurs where anything else
        is in it."""
        reports = [self.report, self.report_md, self.report_json, self.plots]
        made = [self.data, self.pipeline, self.tokenizer, self.stream, self.delivered, self.logs]
        ours = [*made, *reports]
        if self.path.exists() and not self.path.is_dir():
            raise NotOurs(f"{self.path} is no folder: name another --out")
        there = sorted(self.path.iterdir()) if self.path.exists() else []
        strange = [one for one in there if one not in (self.mark, self.packages, *ours)]
        if there and self.mark not in there:
            raise NotOurs(f"{self.path} is not empty, and no quickstart's: name another --out")
        if strange:
            raise NotOurs(f"{strange[0]} is no quickstart's: take it away, or name another --out")
        self.path.mkdir(parents=True, exist_ok=True)
        self.mark.touch()
        for one in ours:
            remove(one)
        self.delivered.mkdir()
        self.logs.mkdir()


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
