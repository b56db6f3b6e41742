# SPDX-License-Identifier: Apache-2.0
"""Unaimed kills of a chaos run come when the job's own speed says, and spread over its life."""

import random
from collections import Counter
from pathlib import Path

import pytest
from chaos import job as job_module
from chaos import unaimed as unaimed_module
from chaos.job import Job
from chaos.roles import Role
from chaos.unaimed import START_UPS, Unaimed
from chaos_pipeline_test import settings_in


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


class StillJob(Job):
    """Without processes: those who are alive are named, and the producer fences when told to."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__(settings_in(folder / "job"), random.Random(1))
        self.clock = clock
        self.slots = self.settings.stream / "m"
        self.slots.mkdir(parents=True)

    def begin_producer(self) -> None:
        producer = self.producer
        producer.runs += 1
        producer.has_fenced = False
        producer.newest_before = producer.watch.newest()
        producer.started_at = self.clock.now_s

    def fence(self) -> None:
        (self.slots / f"{len([*self.slots.iterdir()]):020}").touch()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time that a job and its unaimed kills go by; whoever plays a part is alive."""
    clock = Clock()
    monkeypatch.setattr(job_module, "time", clock)
    monkeypatch.setattr(unaimed_module, "time", clock)
    monkeypatch.setattr(Role, "alive", True)
    monkeypatch.setattr(Role, "kill", lambda role: 0)
    return clock


def test_a_start_up_is_measured_to_the_first_slot(tmp_path: Path, clock: Clock) -> None:
    job = StillJob(tmp_path, clock)
    job.fence()  # A predecessor's.
    job.begin_producer()
    clock.now_s = 3.0
    job.producer.listen()
    assert job.producer.startup_s == 0.0, "not yet"
    job.fence()
    job.producer.listen()
    clock.now_s = 9.0
    job.fence()
    job.producer.listen()
    assert job.producer.startup_s == 3.0
    job.producer.kill()
    assert job.producer.startup_s == 3.0


def test_who_dies_in_its_start_up_would_have_taken_longer(tmp_path: Path, clock: Clock) -> None:
    job = StillJob(tmp_path, clock)
    job.producer.startup_s = 2.0
    for life_s, expected in ((1.0, 2.0), (5.0, 5.0), (4.0, 5.0)):
        job.begin_producer()
        clock.now_s += life_s
        job.producer.kill()
        assert job.producer.startup_s == expected
    job.begin_producer()
    clock.now_s += 1.0
    job.fence()
    job.producer.kill()
    assert job.producer.startup_s == 1.0, "the machine is quicker now"


def test_who_is_aimed_at_measures_nothing(tmp_path: Path, clock: Clock) -> None:
    job = StillJob(tmp_path, clock)
    job.producer.is_slowed = True
    job.begin_producer()
    clock.now_s = 50.0
    job.fence()
    job.producer.kill()
    job.begin_producer()
    clock.now_s = 90.0
    job.producer.kill()
    assert job.producer.startup_s == 0.0


@pytest.mark.parametrize("true_startup_s", [0.01, 1.0, 40.0])
def test_a_producer_is_killed_all_over_its_life(
    tmp_path: Path, clock: Clock, true_startup_s: float
) -> None:
    """Whatever the machine was taken for."""
    job = StillJob(tmp_path, clock)
    job.producer.startup_s = 0.3
    kills = 300
    unaimed = Unaimed(job, Counter({"producer": kills}), random.Random(7))
    unaimed.let_loose(1.0)
    ages: list[float] = []
    while unaimed.left["producer"]:
        clock.now_s += true_startup_s  # Until it is started again.
        job.begin_producer()
        has_fenced = False
        while not unaimed.due():
            clock.now_s += true_startup_s / 20
            if not has_fenced and clock.now_s - job.producer.started_at >= true_startup_s:
                has_fenced = True
                job.fence()
            job.producer.listen()
        ages.append((clock.now_s - job.producer.started_at) / true_startup_s)
        job.producer.kill()
        unaimed.done(job.producer)
    thirds = Counter(min(2, int(age)) for age in ages)
    assert min(thirds[third] for third in range(int(START_UPS))) > kills / 6, thirds


def test_kills_are_let_loose_by_shares(tmp_path: Path, clock: Clock) -> None:
    job = StillJob(tmp_path, clock)
    job.producer.startup_s = 1.0
    unaimed = Unaimed(job, Counter({"producer": 10, "consumer": 20}), random.Random(7))

    def kills() -> tuple[int, int]:
        """All that are due now."""
        for _ in range(200):
            clock.now_s += 1.0
            for role in unaimed.due():
                unaimed.done(role)
        assert unaimed.is_quiet()
        return 10 - unaimed.left["producer"], 20 - unaimed.left["consumer"]

    assert kills() == (0, 0)
    unaimed.let_loose(0.5)
    assert not unaimed.is_quiet()
    assert kills() == (5, 10)
    unaimed.let_loose(1.0)
    assert kills() == (10, 20)


def test_nobody_is_due_at_once_when_kills_are_let_loose(tmp_path: Path, clock: Clock) -> None:
    job = StillJob(tmp_path, clock)
    job.producer.startup_s = 1.0
    unaimed = Unaimed(job, Counter({"consumer": 500}), random.Random(7))
    at_once = 0
    for share in range(1, 501):
        clock.now_s += 100.0
        unaimed.let_loose(share / 500)
        at_once += len(unaimed.due())
        while not unaimed.is_quiet():
            clock.now_s += START_UPS
            for role in unaimed.due():
                unaimed.done(role)
    assert at_once == 0
    assert unaimed.left["consumer"] == 0
