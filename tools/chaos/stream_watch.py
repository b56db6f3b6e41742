# SPDX-License-Identifier: Apache-2.0
"""Looks at a stream in its folder, from outside."""

from dataclasses import dataclass

from chaos.judge import BATCH, Row, run_json
from chaos.settings import PRODUCER, StreamSettings


@dataclass(frozen=True)
class Look:
    """The newest head, and what was uploaded since."""

    next_step: int
    term: int  # Of the producer; 0 before its first fence.
    uploaded: bool  # The producer's last session has a batch object that is not committed.


class StreamWatch:
    """Asks the command for a head only where there is a newer one."""

    def __init__(self, settings: StreamSettings) -> None:
        self.settings = settings
        self._newest = ""
        self._head: Row = {}

    def exists(self) -> bool:
        """The floor is the last object of a stream to be made."""
        return (self.settings.stream / "gc" / "floor").exists()

    def newest(self) -> str:
        """The newest manifest slot; "" where there is none."""
        slots = self.settings.stream / "m"
        return max((path.name for path in slots.iterdir()), default="") if slots.exists() else ""

    def look(self) -> Look | None:
        """None: there is no stream yet. Exact while nobody writes."""
        if not self.exists():
            return None
        newest = self.newest()
        if newest != self._newest:
            self._head = run_json(self.settings.on_stream("store", "show"))[0]
            self._newest = newest
        rows = [row for row in self._head["producers"] if row["producer"] == PRODUCER]
        if not rows:
            return Look(next_step=0, term=0, uploaded=False)
        return Look(
            next_step=self._head["next_step"],
            term=rows[0]["term"],
            uploaded=self.has_uploaded(rows[0]["term"], rows[0]["next_seq"]),
        )

    def has_uploaded(self, term: int, next_seq: int) -> bool:
        stream = self.settings.stream
        keys = (str(path.relative_to(stream)) for path in stream.glob(f"d/*/{PRODUCER}.*.tgb"))
        batches = (match for key in keys if (match := BATCH.fullmatch(key)))
        return any(int(b["term"]) == term and int(b["seq"]) >= next_seq for b in batches)
