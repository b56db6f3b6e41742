# SPDX-License-Identifier: Apache-2.0
"""In which order a job is hurt, and how far it may go on meanwhile.

1. Half of the kills hit anywhere, from the beginning to the end.
2. The others are aimed. Kills in the first step come first, before any rank may read on; those in
   the last step come last; the other aims are hit on the way. Where sources are aimed at, the
   producer is killed once more for each of them, while an index of that one is written.
3. Ranks may read so far as the share of kills that are done, so that there is room for all of them.
"""

import random
from collections import Counter

from chaos.job import Job
from chaos.kill_plan import ANYWHERE, Plans
from chaos.killer import Killer
from chaos.phases import FIRST_STEP, INDEXING, LAST_STEP, READING, UPLOADED
from chaos.unaimed import Unaimed

SHARE_BY_KILLS = 0.7  # Of the way; the rest is for aims that need a producer at work.
EDGE_SHARE = 0.05  # Of the kills that hit anywhere: those that may hit in the first step, and
# those that wait for the last one.


class Harm:
    """run() once, then the job may finish."""

    def __init__(self, job: Job, plans: Plans, choice: random.Random) -> None:
        self.job = job
        self.plans = plans
        self.choice = choice
        self.steps = job.settings.steps
        self.sources = job.settings.sources.aimed
        anywhere = Counter({kind: plan[ANYWHERE] for kind, plan in plans.items()})
        self.unaimed = Unaimed(job, anywhere, choice)
        self.killer = Killer(job, self.unaimed, choice)

    def run(self) -> None:
        self.unaimed.let_loose(EDGE_SHARE)
        self.hurt_begin()
        self.hurt_on_the_way()
        self.hurt_end()
        self.killer.tick_until(self.unaimed.is_quiet)

    def hurt_begin(self) -> None:
        plan = self.plans["producer"]
        if plan[INDEXING] > len(self.sources):
            self.killer.aim_at_producer(INDEXING)
        for _ in range(plan[FIRST_STEP]):
            self.killer.aim_at_producer(FIRST_STEP)
        for _ in range(self.plans["consumer"][FIRST_STEP]):
            self.killer.aim_at_rank(FIRST_STEP, 0)

    def hurt_on_the_way(self) -> None:
        producer, consumer = self.plans["producer"], self.plans["consumer"]
        aims = [INDEXING] * (producer[INDEXING] - len(self.sources) - 1)
        aims += [UPLOADED] * producer[UPLOADED] + [READING] * consumer[READING] + [*self.sources]
        self.choice.shuffle(aims)
        for done, aim in enumerate(aims):
            self.read_on((done + 1) / (len(aims) + 1))
            if aim == READING:
                self.killer.aim_at_rank(READING)
            elif aim in self.sources:
                self.killer.aim_at_producer(INDEXING, source=aim)
            else:
                self.killer.aim_at_producer(aim)
        self.read_on(1.0)

    def read_on(self, share: float) -> None:
        """Waits for as large a share of the kills that hit anywhere, while ranks read on; those
        that are due next may hit while somebody is aimed at."""
        self.killer.tick_until(self.unaimed.is_quiet)
        way = int(self.job.most_allowed * SHARE_BY_KILLS * share)
        self.job.allowed = max(self.job.allowed, way)
        self.unaimed.let_loose(EDGE_SHARE + share * (1.0 - 2 * EDGE_SHARE))

    def hurt_end(self) -> None:
        """The producer is about to begin the last step when it is started again, and ranks to read
        it."""
        self.job.allowed = max(self.job.allowed, self.job.most_allowed)
        self.killer.tick_until(lambda: self.killer.next_step() == self.steps - 1)
        self.job.stop(self.job.producer)
        self.job.allowed = self.steps - 1
        self.killer.tick_until(
            lambda: all(rank.log.position == self.steps - 1 for rank in self.job.ranks)
        )
        self.job.let_go(self.job.producer)
        for _ in range(self.plans["producer"][LAST_STEP]):
            self.killer.aim_at_producer(LAST_STEP)
        self.killer.tick_until(lambda: self.killer.next_step() == self.steps)
        for _ in range(self.plans["consumer"][LAST_STEP]):
            self.killer.aim_at_rank(LAST_STEP, self.steps - 1)
        self.job.allowed = self.steps
        self.unaimed.let_loose(1.0)
