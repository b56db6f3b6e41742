# SPDX-License-Identifier: Apache-2.0
"""Kills processes of a job: whoever is due (unaimed.py), or one in the phase that is aimed at.

A process that is aimed at runs in slices of well below a millisecond. Between them it stands still
and is looked at, and where it is in the phase it is killed. So it is slow, and meanwhile no other
kill hits it.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable

from chaos.job import Job, Rank
from chaos.kill_plan import ANYWHERE
from chaos.looks import stop_and_look
from chaos.phases import (
    AT_LEAD,
    COMMITTED,
    ENDED,
    FIRST_STEP,
    INDEXING,
    LAST_STEP,
    OPENING,
    UPLOADED,
    ProducerPlace,
    RankPlace,
)
from chaos.pipeline_summary import Hit
from chaos.roles import Role
from chaos.scenario import TICK_S, Failure
from chaos.unaimed import Unaimed

SLICE_S = 0.0003
LONG_SLICE_S = 0.005  # Of a process that is far from what is aimed at.
TICK_AIMED_S = 0.0002
AIM_PATIENCE_S = 60.0

# What comes once, and where a producer is when it is over.
COMES_ONCE = {
    FIRST_STEP: (UPLOADED, COMMITTED, AT_LEAD, LAST_STEP, ENDED),
    LAST_STEP: (ENDED,),
}


class Killer:
    """tick() instead of the job's."""

    def __init__(self, job: Job, unaimed: Unaimed, choice: random.Random) -> None:
        self.job = job
        self.unaimed = unaimed
        self.choice = choice
        self.steps = job.settings.steps
        self.hits: Counter[Hit] = Counter()
        self.indexes_hit: Counter[str] = Counter()  # By source, where one was aimed at.
        self.aimed_at: Role | None = None
        self.has_skipped = False
        self.began = time.monotonic()

    def tick(self, pause_s: float = TICK_S) -> None:
        if time.monotonic() - self.began > self.job.settings.seconds_max:
            left = self.unaimed.left.total()
            done = self.hits.total()
            raise Failure(f"the time was up after {done} kills, with {left} unaimed ones left")
        self.job.tick(pause_s)
        for role in self.unaimed.due():
            if role is not self.aimed_at and self.kill(role, ANYWHERE):
                self.unaimed.done(role)

    def tick_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.tick()

    def kill(self, role: Role, aim: str, phase: str = "") -> bool:
        """Whether it was killed: it may have ended before. `phase` is what was seen of it, where
        that tells more than what is left."""
        has_opened = isinstance(role, Rank) and role.has_opened()
        status = role.kill()
        if status != -signal.SIGKILL:
            self.job.settle(role, status)
            return False
        if isinstance(role, Rank):
            seen = self.rank_phase(role, has_opened)
        else:
            seen = self.producer_phase()
        self.hits[role.kind, aim, phase or seen] += 1
        if isinstance(role, Rank) and self.job.settings.broken == "skip-step":
            role.skips = int(not self.has_skipped)
            self.has_skipped = True
        role.rest()
        return True

    def next_step(self) -> int:
        look = self.job.watch.look()
        return look.next_step if look else 0

    def producer_phase(self) -> str:
        producer = self.job.producer
        place = ProducerPlace(
            look=self.job.watch.look(),
            term_before=producer.term_before,
            lacks_index=producer.lacks_index(),
            cursor=self.job.ranks[0].log.next_step,
            lead=self.job.settings.lead,
            steps=self.steps,
        )
        return place.phase()

    def rank_phase(self, rank: Rank, has_opened: bool) -> str:
        place = RankPlace(
            has_opened=has_opened,
            step=rank.log.next_step,
            granted=rank.granted,
            next_step=self.next_step(),
            steps=self.steps,
        )
        return place.phase()

    def aim_at_producer(self, aim: str, source: str = "") -> None:
        """Kills it once it is in that phase; after too long a wait wherever it is. With a source,
        the index is one of its shards'."""
        producer = self.aimed_at = self.job.producer
        producer.is_slowed = True
        end = time.monotonic() + AIM_PATIENCE_S
        while True:
            self.prepare(aim, source)
            self.tick(TICK_AIMED_S)
            if not producer.alive:
                continue
            stop_and_look(producer.pid)
            phase = self.seen_of_producer(aim, source)
            if phase == aim or self.is_over(aim, phase) or time.monotonic() > end:
                if self.kill(producer, aim, phase):
                    self.indexes_hit[source] += int(phase == INDEXING and source != "")
                    break
            elif phase == AT_LEAD or (aim == UPLOADED and phase in (INDEXING, OPENING)):
                self.run_long(producer)
            else:
                self.run_a_slice(producer)
        producer.is_slowed = False
        self.aimed_at = None

    def is_over(self, aim: str, phase: str) -> bool:
        """Whether this aim cannot be hit any more."""
        if aim == UPLOADED:
            return phase == AT_LEAD and self.next_step() == self.steps - 1
        return phase in COMES_ONCE.get(aim, ())

    def run_a_slice(self, role: Role) -> None:
        """Nobody sleeps meanwhile: who sleeps may be woken too late."""
        end = time.monotonic() + self.choice.uniform(0.0, SLICE_S)
        role.send(signal.SIGCONT)
        while time.monotonic() < end:
            pass
        if role.alive:
            stop_and_look(role.pid)

    def run_long(self, role: Role) -> None:
        """Where it is far from what is aimed at."""
        role.send(signal.SIGCONT)
        time.sleep(self.choice.uniform(0.0, LONG_SLICE_S))

    def prepare(self, aim: str, source: str) -> None:
        """Gives the producer something to do of the kind that is aimed at."""
        job = self.job
        if aim == INDEXING and not job.producer.lacks_index():
            job.stop(job.producer)
            self.choice.choice(job.producer.indexes(source)).unlink()
            job.let_go(job.producer)
        elif aim == UPLOADED and job.producer.alive and self.producer_phase() == AT_LEAD:
            if job.ranks[0].log.next_step >= job.allowed:  # The last of them has read all it may.
                job.allowed = min(job.most_allowed, job.allowed + self.choice.randint(1, 3))

    def seen_of_producer(self, aim: str, source: str) -> str:
        """Of a stopped one. For the aim of indexing only an index that is being written counts, of
        that source if there is one, where Python makes its ids only while it may be at it."""
        phase = self.producer_phase()
        producer = self.job.producer
        if aim == phase == INDEXING:
            needs_workers = source in self.job.settings.sources.by_python
            writes = producer.writes_index() and producer.lacks_index(source)
            if not writes or (needs_workers and not producer.has_workers()):
                return OPENING
        return phase

    def aim_at_rank(self, aim: str, step: int | None = None) -> None:
        """Kills a rank between its opening of the stream and its delivery of the step, or of the
        last one that it has read; after too long a wait wherever it is. Its checkpoint is just
        before the step."""
        rank = self.aimed_at = self.choice.choice(self.job.ranks)
        end = time.monotonic() + AIM_PATIENCE_S
        while not self.kill_before(rank, aim, step):
            if time.monotonic() > end and rank.alive and self.kill(rank, aim):
                break
        rank.stays_at = self.aimed_at = None

    def kill_before(self, rank: Rank, aim: str, step: int | None) -> bool:
        """One try: whether the rank was killed where it was to be."""
        self.job.stop(rank)
        if step is None:
            step = rank.last_read()
        rank.go_back(step)
        self.job.let_go(rank)
        self.job.tick_until(lambda: rank.alive, f"{rank.name} to start")
        rank.grant(step + 1)
        while rank.alive and rank.log.next_step == step:
            stop_and_look(rank.pid)
            rank.listen()
            reads = rank.has_opened() and self.next_step() > step and rank.log.next_step == step
            if reads and self.choice.random() < 0.5 and self.kill(rank, aim, aim):
                return True
            rank.send(signal.SIGCONT)
            self.tick(TICK_AIMED_S)
        return False
