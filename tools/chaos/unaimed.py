# SPDX-License-Identifier: Apache-2.0
"""Kills that hit whoever is there, at a moment that nothing has chosen.

1. Pauses are uniform over a few start-ups of a producer. How long one takes is measured, again and
   again, on the job itself: on a busy machine a fixed pause would hit nothing but start-ups.
2. A producer's pause counts from the beginning of its process; that of ranks, of whom any one is
   hit, from the kill before.
3. So many are let loose at a time as the job has come of its way.
"""

import random
import time
from collections import Counter

from chaos.job import Job
from chaos.roles import Role

START_UPS = 3.0  # Of a pause, at most.


class Unaimed:
    """What is left of `planned`, by kind of role, and who is due."""

    def __init__(self, job: Job, planned: Counter[str], choice: random.Random) -> None:
        self.job = job
        self.planned = planned
        self.choice = choice
        self.left = planned.copy()
        self._kept = planned.copy()  # Not let loose yet.
        self._due = {kind: self._after(time.monotonic()) for kind in planned}
        self._runs = 0  # Of the producer, when its pause was drawn.

    def let_loose(self, share: float) -> None:
        """As large a share of all; it only grows."""
        for kind, planned in self.planned.items():
            if self.left[kind] <= self._kept[kind]:
                self._due[kind] = self._after(time.monotonic())
            self._kept[kind] = int(planned * (1.0 - share))

    def is_quiet(self) -> bool:
        """All that were let loose are done."""
        return all(self.left[kind] <= self._kept[kind] for kind in self.planned)

    def due(self) -> list[Role]:
        """Who is to be killed now; who is not alive is spared, and another pause begins."""
        job, now = self.job, time.monotonic()
        if job.producer.runs != self._runs:
            self._runs = job.producer.runs
            self._due["producer"] = self._after(job.producer.started_at)
        victims: list[Role] = []
        for kind in self.planned:
            if self.left[kind] > self._kept[kind] and now >= self._due[kind]:
                self._due[kind] = self._after(now)
                role = job.producer if kind == "producer" else self.choice.choice(job.ranks)
                victims += [role] if role.alive else []
        return victims

    def done(self, role: Role) -> None:
        self.left[role.kind] -= 1

    def _after(self, moment: float) -> float:
        return moment + self.choice.uniform(0.0, START_UPS * self.job.producer.startup_s)
