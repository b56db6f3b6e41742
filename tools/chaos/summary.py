# SPDX-License-Identifier: Apache-2.0
"""What a run prints in the end."""

from collections import Counter
from dataclasses import dataclass, field

from chaos.looks import ORDER

# A long run has seen all of this, or it does not test what it says.
KILLS_THAT_SEE_ALL = 200
REQUIRED = {
    "fences": 20,
    "orphans_removed": 20,
    "trims": 20,
    "trimmed_batches_removed": 100,
    "slots_removed": 1000,
}


@dataclass
class Summary:
    """Counts by name, where kills have hit by role, and what is wrong."""

    counts: dict[str, int] = field(default_factory=dict)
    hits: Counter[tuple[str, str]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def missing(self) -> list[str]:
        """What a run of so many kills should have seen more often."""
        if self.counts.get("kills", 0) < KILLS_THAT_SEE_ALL:
            return []
        return [
            f"{name}: {self.counts.get(name, 0)}, at least {least} in a run of "
            f"{KILLS_THAT_SEE_ALL} kills or more"
            for name, least in REQUIRED.items()
            if self.counts.get(name, 0) < least
        ]

    def is_good(self) -> bool:
        return not self.problems and not self.missing()

    def histogram(self) -> list[str]:
        """A line per role: how often a kill has hit which phase."""
        roles = sorted({role for role, _ in self.hits})
        lines = []
        for role in roles:
            phases = [(phase, self.hits[role, phase]) for phase in ORDER if self.hits[role, phase]]
            counts = " ".join(f"{phase}={count}" for phase, count in phases)
            lines.append(f"  {role}: {counts}")
        return lines

    def to_text(self) -> str:
        lines = [f"{name}: {count}" for name, count in self.counts.items()]
        lines += ["killed in:", *self.histogram()]
        lines += [f"problem: {problem}" for problem in [*self.problems, *self.missing()]]
        lines.append("chaos: " + ("nothing is wrong" if self.is_good() else "something is wrong"))
        return "\n".join(lines) + "\n"
