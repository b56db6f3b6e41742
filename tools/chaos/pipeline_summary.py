# SPDX-License-Identifier: Apache-2.0
"""What a run of a pipeline prints in the end."""

from collections import Counter
from dataclasses import dataclass, field

from chaos.kill_plan import AIMS, ANYWHERE, KILLS_THAT_HIT_ALL
from chaos.phases import PHASES

Hit = tuple[str, str, str]  # Role, aim, phase.


@dataclass
class PipelineSummary:
    """Counts by name, what kills have hit, and what is wrong."""

    counts: dict[str, int] = field(default_factory=dict)
    hits: Counter[Hit] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def missing(self) -> list[str]:
        """What a run of so many kills should have hit."""
        if self.hits.total() < KILLS_THAT_HIT_ALL:
            return []
        return [
            f"no kill of a {role} that was aimed at '{aim}' has hit it, in a run of "
            f"{KILLS_THAT_HIT_ALL} kills or more"
            for role, aims in AIMS.items()
            for aim in aims
            if not self.hits[role, aim, aim]
        ]

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
        """Of each aim: how many of the kills have hit it."""
        lines = []
        for role, aims in AIMS.items():
            for aim in aims:
                tried = sum(n for hit, n in self.hits.items() if hit[:2] == (role, aim))
                lines.append(f"  {role}, {aim}: {self.hits[role, aim, aim]} of {tried}")
        return lines

    def to_text(self) -> str:
        lines = [f"{name}: {count}" for name, count in self.counts.items()]
        lines += ["killed, by aim and by the phase that was hit:", *self.histogram()]
        lines += ["aims hit:", *self.aims()]
        lines += [f"problem: {problem}" for problem in [*self.problems, *self.missing()]]
        lines.append("chaos: " + ("nothing is wrong" if self.is_good() else "something is wrong"))
        return "\n".join(lines) + "\n"
