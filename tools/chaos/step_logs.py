# SPDX-License-Identifier: Apache-2.0
"""What ranks have read: a file per rank, to which one process after the other appends a line a
step. Each process says the steps in order from the one that it was asked for; only the next process
may repeat what an earlier one has said."""

import json
from pathlib import Path


class RankLog:
    """One rank's file, read as it grows. `position` is the first step that it does not hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hashes: list[str] = []  # By step.
        self.repeats = 0
        self.problems: list[str] = []
        self.next_step = 0  # What the process that writes must say now.
        self._offset = 0
        path.touch()

    @property
    def position(self) -> int:
        return len(self.hashes)

    def begin(self, first: int) -> None:
        """A process begins, which was asked for the steps from `first` on; the one before has
        ended, and a line that a kill has torn is none."""
        self.read_on()
        with self.path.open("r+b") as file:
            file.truncate(self._offset)
        self.next_step = first

    def read_on(self) -> None:
        """Takes in the lines that are whole by now."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            lines, _, _ = file.read().rpartition(b"\n")
        if lines:
            self._offset += len(lines) + 1
            for line in lines.split(b"\n"):
                row = json.loads(line)
                self.add(row["step"], row["hash"])

    def add(self, step: int, hash_text: str) -> None:
        if step != self.next_step:
            self.problems.append(f"{self.path.name}: step {step} where {self.next_step} was next")
        self.next_step = step + 1
        if step == self.position:
            self.hashes.append(hash_text)
        elif step > self.position:
            pass  # After a gap, which was reported.
        elif self.hashes[step] == hash_text:
            self.repeats += 1
        else:
            message = f"step {step} was {self.hashes[step]} and is {hash_text} when read again"
            self.problems.append(f"{self.path.name}: {message}")
