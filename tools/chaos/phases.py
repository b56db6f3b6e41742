# SPDX-License-Identifier: Apache-2.0
"""Where in its life a process of a job is, told from what lies in folders."""

from dataclasses import dataclass

from chaos.stream_watch import Look

# Phases of a producer, in the order of its life. Those that are aimed at:
INDEXING = "indexing"  # A sidecar index is missing; aimed: one is being written.
FIRST_STEP = "first step"  # It has fenced, and nothing is committed.
UPLOADED = "uploaded"  # A batch object of its own lies in the store, its manifest slot does not.
LAST_STEP = "last step"  # Only that one is left, and the lead allows it.
# And the others.
OPENING = "opening"  # All is indexed; it has not fenced its predecessor.
COMMITTED = "committed"  # All that it has uploaded is committed.
AT_LEAD = "at lead"  # It waits for the ranks.
ENDED = "ended"  # The last step is committed.

# Phases of a rank; its first and its last step are aimed at, too.
READING = "reading"  # It was to read a step that is committed, and has not delivered it.
WAITING = "waiting"  # For a step that is not committed, or for its trainer.

PHASES = (
    INDEXING, OPENING, FIRST_STEP, UPLOADED, COMMITTED, READING, WAITING, AT_LEAD, LAST_STEP, ENDED,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProducerPlace:
    """What is known of a producer that stands still."""

    look: Look | None
    term_before: int  # Of the stream, when it began.
    lacks_index: bool
    cursor: int  # The next step of the slowest rank.
    lead: int
    steps: int

    def phase(self) -> str:
        if self.lacks_index:
            return INDEXING
        if self.look is None or self.look.term == self.term_before:
            return OPENING
        next_step = self.look.next_step
        if next_step >= self.steps:
            return ENDED
        if next_step >= self.cursor + self.lead:
            return AT_LEAD
        otherwise = UPLOADED if self.look.uploaded else COMMITTED
        return {0: FIRST_STEP, self.steps - 1: LAST_STEP}.get(next_step, otherwise)


@dataclass(frozen=True, kw_only=True)
class RankPlace:
    """What is known of a rank that stands still."""

    has_opened: bool
    step: int  # Its next one,
    granted: int  # and the one before which it stops.
    next_step: int  # Of the stream.
    steps: int

    def phase(self) -> str:
        if not self.has_opened:
            return OPENING
        if self.step >= self.steps:
            return ENDED
        if self.step >= min(self.next_step, self.granted):
            return WAITING
        return {0: FIRST_STEP, self.steps - 1: LAST_STEP}.get(self.step, READING)
