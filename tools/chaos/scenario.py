# SPDX-License-Identifier: Apache-2.0
"""How a run of the store goes.

1. Two producers of one name fence each other, the ranks of a group read in step, a reclaimer
   removes. Whoever dies or was fenced is started again; a rank goes on at the last step in its log,
   or a few steps before.
2. Meanwhile random processes are killed and stopped, at random moments and in the midst of changes.
3. After the last kill the producers end in good order, one goes on to a boundary and ends the
   stream, and all ranks read to its end.
4. A last removal, a verification, and the judgement of every line that was read.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable

from chaos.judge import (
    Row,
    count_orphans,
    expected_hashes,
    judge_log,
    judge_report,
    run_json,
    verify_payload,
)
from chaos.looks import phase_of, stop_and_look, stop_while_changing
from chaos.roles import Consumer, LastProducer, Producer, Reclaimer, Role
from chaos.settings import Settings
from chaos.summary import Summary

TICK_S = 0.005
WINDOW = 64  # Steps that one rank may be ahead of the slowest.
PATIENCE_S = 120.0  # For what must come to an end.


class Failure(Exception):
    """The run cannot go on: something is wrong."""


class Scenario:
    """One run. run() once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.choice = random.Random(settings.seed)
        self.producers: list[Role] = [
            Producer(settings, f"producer-{name}", self.choice) for name in "ab"
        ]
        self.ranks = [Consumer(settings, rank, self.choice) for rank in range(settings.ranks)]
        self.reclaimer = Reclaimer(settings, "reclaimer", self.choice)
        self.summary = Summary()
        self.counts: Counter[str] = Counter()
        self.steps: int | None = None  # Of the whole stream, once they are known.
        self.have_read_all: set[Role] = set()
        self.stopped: dict[Role, float] = {}  # Until when.
        self.has_two_pins = False
        self.began = time.monotonic()

    @property
    def roles(self) -> list[Role]:
        return [*self.producers, *self.ranks, self.reclaimer]

    def run(self) -> Summary:
        try:
            run_json(self.settings.on_stream("store", "init"))
            self.hurt()
            self.wind_down()
            self.judge()
        except (Failure, RuntimeError) as failure:
            self.summary.problems.append(str(failure))
        finally:
            for role in self.roles:
                role.kill()
        self.counts["seconds"] = round(time.monotonic() - self.began)
        self.summary.counts = dict(self.counts)
        return self.summary

    # While it goes on.

    def tick(self) -> None:
        """Starts who is due, takes in what was written, and lets the ranks read on."""
        now = time.monotonic()
        for role in [role for role, until in self.stopped.items() if until <= now]:
            self.wake(role)
        for role in self.roles:
            if role.process is not None and not role.alive:
                self.settle(role, role.wait())
            elif role.process is None and not role.ending and role.due <= now:
                self.start(role)
            role.listen()
        self.pace()
        time.sleep(TICK_S)

    def start(self, role: Role) -> None:
        if isinstance(role, Consumer):
            role.first = role.log.position - self.steps_back()
        role.start()

    def steps_back(self) -> int:
        """How far before its last recorded step a rank goes on. Pins reach so far back once there
        are two of them: rank 0, which makes them, is never ahead of another."""
        if not self.has_two_pins:
            pins = run_json(self.settings.on_stream("store", "pins"))
            self.has_two_pins = len({row["step"] for row in pins if row["kind"] == "pin"}) >= 2
        return self.choice.randint(0, self.settings.pin_every // 2) if self.has_two_pins else 0

    def settle(self, role: Role, status: int) -> None:
        """A process has ended by itself: as it may, or the run is over."""
        message = role.complaint()
        fenced = isinstance(role, Producer) and message.startswith("batchloom: fenced: ")
        if fenced:
            self.counts["fences"] += 1
        elif isinstance(role, Consumer) and status == 0 and role.log.position == self.steps:
            self.have_read_all.add(role)
            role.ending = True
        elif not (role.ending and status in (0, -signal.SIGTERM)):
            raise Failure(f"{role.name} ended with {status}: {message}")
        role.rest(fenced)

    def pace(self) -> None:
        """Ranks keep together as a training job does. Rank 0 makes the pins, so it comes last."""
        slowest = min(rank.log.position for rank in self.ranks)
        others = min(rank.log.position for rank in self.ranks[1:])
        for rank in self.ranks[1:]:
            rank.grant(slowest + WINDOW)
        # At the end of the stream, one more line lets it see that this is the end.
        self.ranks[0].grant(others + int(others == self.steps))

    def wake(self, role: Role) -> None:
        self.stopped.pop(role, None)
        role.send(signal.SIGCONT)

    # Harm.

    def hurt(self) -> None:
        """Kills and stops until there were enough kills."""
        due = time.monotonic() + 1.0
        while self.counts["kills"] < self.settings.kills:
            now = time.monotonic()
            if now - self.began > self.settings.seconds_max:
                kills = f"{self.counts['kills']} of {self.settings.kills} kills"
                raise Failure(f"the time was up after {kills}")
            if now >= due:
                self.hurt_one(self.pick())
                due = now + self.choice.expovariate(1 / self.settings.pause_s)
            self.tick()

    def pick(self) -> Role:
        """Producers and ranks alike, and the reclaimer half as often."""
        crowds: list[list[Role]] = [self.producers, [*self.ranks], [self.reclaimer]]
        return self.choice.choice(self.choice.choices(crowds, weights=[2, 2, 1])[0])

    def hurt_one(self, role: Role) -> None:
        if not role.alive:
            return
        if role not in self.stopped and self.choice.random() < 0.25:
            role.send(signal.SIGSTOP)
            self.stopped[role] = time.monotonic() + self.choice.uniform(0.02, 1.0)
            self.counts["stops"] += 1
            return
        phase = self.look(role)
        status = role.kill()
        self.stopped.pop(role, None)
        if status != -signal.SIGKILL:
            self.settle(role, status)  # It was faster.
            return
        self.counts["kills"] += 1
        self.summary.hits[role.kind, phase] += 1
        role.rest()

    def look(self, role: Role) -> str:
        """Where the kill will hit: anywhere, or in the midst of a change."""
        if role in self.stopped:
            return phase_of(role.pid)
        kind = self.choice.random()
        if kind < 0.3:
            return phase_of(role.pid)  # It runs on until the kill.
        return stop_and_look(role.pid) if kind < 0.6 else stop_while_changing(role.pid)

    # The end.

    def wind_down(self) -> None:
        for role in [*self.stopped]:
            self.wake(role)
        for role in self.producers:
            self.end(role)
        self.run_last_producer()
        self.tick_until(lambda: len(self.have_read_all) == len(self.ranks), "all ranks to end")
        self.end(self.reclaimer)

    def end(self, role: Role) -> None:
        """In good order; a producer may be fenced meanwhile."""
        role.ending = True
        role.send(signal.SIGTERM)
        self.tick_until(lambda: role.process is None, f"{role.name} to end")

    def run_last_producer(self) -> None:
        head = run_json(self.settings.on_stream("store", "show"))[0]
        per_object = self.settings.steps_per_object
        objects = head["next_step"] // per_object + self.settings.lead
        self.steps = objects * per_object
        last = LastProducer(self.settings, self.choice, self.steps)
        self.producers.append(last)
        last.start()
        last.ending = True
        self.tick_until(lambda: last.process is None, "the last producer to end")

    def tick_until(self, done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > end:
                raise Failure(f"waited {PATIENCE_S:.0f} s for {what}")
            self.tick()

    def judge(self) -> None:
        assert self.steps is not None
        problems = self.summary.problems
        kept = f"--slots-kept={self.settings.slots_kept}"
        rows = run_json([*self.settings.on_stream("store", "gc"), "--yes", "--list", kept])
        report = verify_payload(self.settings)
        problems += judge_report(report)
        if report["next_step"] != self.steps:
            problems.append(f"the stream has {report['next_step']} steps, not {self.steps}")
        expected = expected_hashes(self.settings, self.steps)
        for rank in self.ranks:
            problems += judge_log(rank.log, expected[rank.rank])
        self.counts["steps"] = self.steps
        self.counts["sessions"] = sum(role.runs for role in self.producers)
        self.counts["lines_repeated"] = sum(rank.log.repeats for rank in self.ranks)
        for run in range(1, self.reclaimer.runs + 1):
            rows += self.reclaimer.rows(run)
        self.count_removals(rows, report["first_step"])

    def count_removals(self, rows: list[Row], first_step: int) -> None:
        """At least so many: what a killed reclaimer had not printed yet is not in `rows`."""
        removed = [row["key"] for row in rows if row.get("kind") == "batch"]
        per_object = self.settings.steps_per_object
        orphans = count_orphans(removed, first_step, per_object)
        self.counts["orphans_removed"] = orphans
        self.counts["trimmed_batches_removed"] = len(removed) - orphans
        self.counts["slots_removed"] = sum(row.get("kind") == "slot" for row in rows)
        self.counts["trims"] = sum(row.get("steps_trimmed", 0) > 0 for row in rows)
        self.counts["steps_trimmed"] = first_step
