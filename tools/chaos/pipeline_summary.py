# SPDX-License-Identifier: Apache-2.0
"""What a run of a pipeline prints in the end."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaos.kill_plan import AIMS, ANYWHERE, Plans
from chaos.phases import INDEXING, OPENING, PHASES

Hit = tuple[str, str, str]  # Role, aim, phase.

# What a run of so many kills, or of so many unaimed kills of a role, should have hit.
KILLS_THAT_HIT_ALL = 100
KILLS_THAT_SPREAD = 20
MOST_IN_START_UP = 0.75  # Of a role's unaimed kills; by their pauses it is a third.


@dataclass
class PipelineSummary:
    """Which kills were planned, counts by name, what kills have hit, and what is wrong."""

    plans: Plans
    counts: dict[str, int] = field(default_factory=dict)
    hits: Counter[Hit] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    aimed_indexes: tuple[str, ...] = ()  # Sources of which one was to be hit while it was written,
    indexes_hit: Counter[str] = field(default_factory=Counter)  # and those that were.

    def missing(self) -> list[str]:
        """What a run of so many kills should have hit."""
        return [*self.missed_aims(), *self.missed_indexes(), *self.crowded()]

    def missed_aims(self) -> Iterator[str]:
        """Aims that the larger part of their kills has missed."""
        if self.hits.total() < KILLS_THAT_HIT_ALL:
            return
        for role, aims in AIMS.items():
            for aim in aims:
                planned, hit = self.plans[role][aim], self.hits[role, aim, aim]
                if 2 * hit < planned:
                    yield f"{hit} of {planned} kills of a {role} that were aimed at '{aim}' hit it"

    def missed_indexes(self) -> Iterator[str]:
        """Of sources: were it most of them, the run would show little of how indexes are made."""
        missed = [source for source in self.aimed_indexes if not self.indexes_hit[source]]
        if 2 * len(missed) > len(self.aimed_indexes):
            yield f"no kill hit the writing of an index of {', '.join(missed)}"

    def crowded(self) -> Iterator[str]:
        """Roles whose unaimed kills have come too early to hit them at work."""
        for role in AIMS:
            unaimed = {phase: self.hits[role, ANYWHERE, phase] for phase in PHASES}
            early, all_of_them = unaimed[INDEXING] + unaimed[OPENING], sum(unaimed.values())
            if all_of_them >= KILLS_THAT_SPREAD and early > MOST_IN_START_UP * all_of_them:
                yield f"{early} of {all_of_them} unaimed kills of a {role} hit its start-up"

    def is_good(self) -> bool:
        return not self.problems and not self.missing()

    def histogram(self) -> list[str]:
        """A line per role and aim: how often such a kill has hit which phase."""
        lines = []
        for role in sorted({role for role, _, _ in self.hits}):
            for aim in (ANYWHERE, *PHASES):
                phases = [(phase, self.hits[role, aim, phase]) for phase in PHASES]
                counts = ", ".join(f"{phase} {count}" for phase, count in phases if count)
                if counts:
                    lines.append(f"  {role}, {aim}: {counts}")
        return lines

    def aims(self) -> list[str]:
        """Of each aim: how many of the kills that were planned have hit it."""
        return [
            f"  {role}, {aim}: {self.hits[role, aim, aim]} of {self.plans[role][aim]}"
            for role, aims in AIMS.items()
            for aim in aims
        ]

    def to_text(self) -> str:
        lines = [f"{name}: {count}" for name, count in self.counts.items()]
        lines += ["killed, by aim and by the phase that was hit:", *self.histogram()]
        lines += ["aims hit:", *self.aims()]
        if self.aimed_indexes:
            hit = [source for source in self.aimed_indexes if self.indexes_hit[source]]
            lines.append(f"killed while it wrote an index of: {', '.join(hit)}")
        lines += [f"problem: {problem}" for problem in [*self.problems, *self.missing()]]
        lines.append("chaos: " + ("nothing is wrong" if self.is_good() else "something is wrong"))
        return "\n".join(lines) + "\n"
