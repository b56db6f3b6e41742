# SPDX-License-Identifier: Apache-2.0
"""In which order a job is hurt, and how far it may go on meanwhile.

1. Half of the kills or more hit anywhere, by an exponential clock, from the beginning to the end.
2. The others are aimed. Kills in the first step come first, before any rank may read on; those in
   the last step come last; indexing and the time between upload and commit are hit on the way.
3. Ranks may read so far as the share of kills that are done, so that there is room for all of them.
"""

import random
import time
from collections import Counter

from chaos.job import Job
from chaos.kill_plan import ANYWHERE, plan_consumer_kills, plan_producer_kills
from chaos.killer import Killer
from chaos.phases import FIRST_STEP, INDEXING, LAST_STEP, UPLOADED

SHARE_BY_KILLS = 0.7  # Of the way; the rest is for aims that need a producer at work.
LATE_SHARE = 0.05  # Of the kills that hit anywhere: those that wait for the last step.


class Harm:
    """run() once, then the job may finish."""

    def __init__(self, job: Job, choice: random.Random) -> None:
        self.job = job
        self.choice = choice
        self.steps = job.settings.steps
        self.plans = {
            "producer": plan_producer_kills(job.settings.producer_kills),
            "consumer": plan_consumer_kills(job.settings.consumer_kills),
        }
        anywhere = Counter({kind: plan[ANYWHERE] for kind, plan in self.plans.items()})
        self.planned_anywhere = anywhere.total()
        self.killer = Killer(job, anywhere, choice)

    def run(self) -> None:
        self.hurt_begin()
        self.hurt_on_the_way()
        self.hurt_end()
        self.killer.tick_until(lambda: not self.killer.anywhere.total())

    def hurt_begin(self) -> None:
        plan = self.plans["producer"]
        if plan[INDEXING]:
            self.killer.aim_at_producer(INDEXING)
        for _ in range(plan[FIRST_STEP]):
            self.killer.aim_at_producer(FIRST_STEP)
        for _ in range(self.plans["consumer"][FIRST_STEP]):
            self.killer.aim_at_rank(FIRST_STEP, 0)

    def hurt_on_the_way(self) -> None:
        plan = self.plans["producer"]
        aims = [INDEXING] * (plan[INDEXING] - 1) + [UPLOADED] * plan[UPLOADED]
        self.choice.shuffle(aims)
        for done, aim in enumerate(aims):
            self.read_on(done / len(aims))
            self.killer.aim_at_producer(aim)
        self.read_on(1.0)

    def read_on(self, share: float) -> None:
        """Waits for as large a share of the kills that hit anywhere, while ranks read on."""
        left = self.planned_anywhere * (1.0 - share * (1.0 - LATE_SHARE))
        while self.killer.anywhere.total() > left:
            done = self.planned_anywhere - self.killer.anywhere.total()
            until_due = max(0.0, self.killer.due - time.monotonic()) / self.job.settings.pause_s
            now = (done + max(0.0, 1.0 - until_due)) / self.planned_anywhere
            way = int(self.job.most_allowed * SHARE_BY_KILLS * min(share, now))
            self.job.allowed = max(self.job.allowed, way)
            self.killer.tick()

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
