# SPDX-License-Identifier: Apache-2.0
"""The chaos run of a whole pipeline kills what it says, tells where it hit, and judges right."""

import random
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from chaos.corpus import BAD_LINES, RECORDS, SHARDS, write_corpus
from chaos import job as job_module
from chaos.job import Job, Rank, Runner
from chaos.kill_plan import ANYWHERE, plan_kills
from chaos.phases import (
    AT_LEAD,
    COMMITTED,
    ENDED,
    FIRST_STEP,
    INDEXING,
    LAST_STEP,
    OPENING,
    READING,
    UPLOADED,
    WAITING,
    ProducerPlace,
    RankPlace,
)
from chaos.pipeline_settings import PipelineSettings, draw_pipeline
from chaos.pipeline_summary import PipelineSummary
from chaos.scenario import PATIENCE_S, Failure
from chaos.stream_watch import Look, StreamWatch
from chaos_test import chaos, line_of, write_on
from cli_test import COMMAND, run, succeed_rows
from shards import every_format


def settings_in(folder: Path, seed: int = 1, **others) -> PipelineSettings:
    common = {"steps": 20, "fsync": "none", "seconds_max": 60.0, "broken": ""}
    common |= {"producer_kills": 1, "consumer_kills": 1}
    return draw_pipeline(command=COMMAND, folder=folder, seed=seed, **common | others)


# Of short runs.
FEW = ("--producer-kills=2", "--consumer-kills=2", "--steps=24", "--fsync=none")
MANY = [(100, 100), (30, 30), (10, 10), (100, 0), (100, 20), (1000, 1000), (8, 8)]


@pytest.mark.parametrize(("producer_kills", "consumer_kills"), MANY)
def test_half_of_all_kills_hit_anywhere_and_a_fifth_after_an_upload(
    producer_kills: int, consumer_kills: int
) -> None:
    plans = plan_kills(producer_kills, consumer_kills)
    producer, consumer = plans["producer"], plans["consumer"]
    assert (producer.total(), consumer.total()) == (producer_kills, consumer_kills)
    kills = producer_kills + consumer_kills
    assert producer[UPLOADED] == kills // 5
    assert producer[ANYWHERE] + consumer[ANYWHERE] == kills // 2
    assert min(producer[aim] for aim in (INDEXING, FIRST_STEP, LAST_STEP)) >= 1


def test_a_hundred_kills_of_each() -> None:
    plans = plan_kills(100, 100)
    once = {INDEXING: 4, FIRST_STEP: 3, LAST_STEP: 3}
    assert plans["producer"] == {ANYWHERE: 50, UPLOADED: 40} | once
    assert plans["consumer"] == {ANYWHERE: 50, READING: 30, FIRST_STEP: 10, LAST_STEP: 10}


@pytest.mark.parametrize(
    ("producer_kills", "consumer_kills"), [(0, 0), (0, 9), (1, 0), (2, 2), (3, 1), (4, 0), (5, 300)]
)
def test_few_kills_are_aimed_first(producer_kills: int, consumer_kills: int) -> None:
    plans = plan_kills(producer_kills, consumer_kills)
    producer, consumer = plans["producer"], plans["consumer"]
    assert (producer.total(), consumer.total()) == (producer_kills, consumer_kills)
    assert min([*producer.values(), *consumer.values()], default=1) >= 1
    assert producer[UPLOADED] >= min(1, producer_kills)
    for aim, kills_needed in ((INDEXING, 2), (FIRST_STEP, 3), (LAST_STEP, 4)):
        assert (producer[aim] >= 1) == (producer_kills >= kills_needed)


@pytest.mark.parametrize(("producer_kills", "consumer_kills"), MANY)
def test_ranks_are_killed_in_their_first_and_last_step(
    producer_kills: int, consumer_kills: int
) -> None:
    plan = plan_kills(producer_kills, consumer_kills)["consumer"]
    most = 2 * max(1, consumer_kills // 10)
    assert plan[FIRST_STEP] + plan[LAST_STEP] == min(plan.total() - plan[ANYWHERE], most)
    assert plan[FIRST_STEP] - plan[LAST_STEP] in (0, 1)


def producer_phase(look: Look | None, lacks_index: bool = False) -> str:
    place = ProducerPlace(
        look=look, term_before=7, lacks_index=lacks_index, cursor=20, lead=8, steps=30
    )
    return place.phase()


def test_phases_of_a_producer() -> None:
    def at(next_step: int, term: int = 9, uploaded: bool = False) -> Look:
        return Look(next_step=next_step, term=term, uploaded=uploaded)

    assert producer_phase(None) == OPENING
    assert producer_phase(None, lacks_index=True) == INDEXING
    assert producer_phase(at(22), lacks_index=True) == INDEXING
    assert producer_phase(at(22, term=7)) == OPENING
    assert producer_phase(at(0, uploaded=True)) == FIRST_STEP
    assert producer_phase(at(22)) == COMMITTED
    assert producer_phase(at(22, uploaded=True)) == UPLOADED
    assert producer_phase(at(27)) == COMMITTED
    assert producer_phase(at(28)) == AT_LEAD
    assert producer_phase(at(29)) == AT_LEAD
    assert producer_phase(at(30)) == ENDED


def test_the_last_step_is_one_that_the_lead_allows() -> None:
    def phase(cursor: int) -> str:
        look = Look(next_step=29, term=9, uploaded=True)
        place = ProducerPlace(
            look=look, term_before=7, lacks_index=False, cursor=cursor, lead=8, steps=30
        )
        return place.phase()

    assert [phase(21), phase(22)] == [AT_LEAD, LAST_STEP]


def test_phases_of_a_rank() -> None:
    def phase(step: int, granted: int, next_step: int, has_opened: bool = True) -> str:
        place = RankPlace(
            has_opened=has_opened, step=step, granted=granted, next_step=next_step, steps=30
        )
        return place.phase()

    assert phase(3, 5, 9, has_opened=False) == OPENING
    assert phase(3, 5, 9) == READING
    assert phase(5, 5, 9) == WAITING, "for its trainer"
    assert phase(3, 5, 3) == WAITING, "for the producer"
    assert phase(0, 5, 9) == FIRST_STEP
    assert phase(29, 30, 30) == LAST_STEP
    assert phase(30, 30, 30) == ENDED


def test_an_upload_without_its_slot_is_seen(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    watch = StreamWatch(settings)
    assert watch.look() is None
    produce = ("produce", settings.stream, "--synthetic", "--producer=main", "--lead=unlimited")
    assert run(*produce, "--steps=2").returncode == 0
    assert watch.look() == Look(next_step=2, term=2, uploaded=False)
    folder = settings.stream / "d" / "00"
    folder.mkdir(exist_ok=True)
    nonce = "0" * 16
    (folder / f"main.000000000001.000000000002.{nonce}.tgb").touch()
    assert watch.look() == Look(next_step=2, term=2, uploaded=False), "a dead one's"
    (folder / f"main.000000000002.000000000001.{nonce}.tgb").touch()
    assert watch.look() == Look(next_step=2, term=2, uploaded=False), "committed"
    (folder / f"main.000000000002.000000000002.{nonce}.tgb").touch()
    assert watch.look() == Look(next_step=2, term=2, uploaded=True)
    assert run(*produce, "--steps=3").returncode == 0
    look = watch.look()
    assert look and (look.next_step, look.uploaded) == (3, False)


def test_the_corpus_has_bad_records_and_ids_that_no_index_knows_of(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    write_corpus(tmp_path / "data", 1)
    write_corpus(tmp_path / "again", 1)
    write_corpus(tmp_path / "other", 2)
    for path in (tmp_path / "data").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
        assert path.read_bytes() != (tmp_path / "other" / path.name).read_bytes()
    settings.pipeline.write_text(settings.to_toml(), encoding="utf-8")
    rows = succeed_rows("index", settings.pipeline)
    bad = {row["source"]: row["bad_records"] for row in rows if "source" in row}
    assert bad == {"docs": SHARDS * len(BAD_LINES), "chats": 1, "ids": 0}
    ids = [row for row in rows if row.get("source") == "ids"]
    assert [row["records"] for row in ids] == [3 * RECORDS]
    where = (f"--store={settings.stream}", "--fsync=none")
    made = run("run", settings.pipeline, *where, "--lead=unlimited", "--steps=80")
    assert made.returncode == 0, made.stderr
    assert "struck out, and replaced" in made.stderr


def test_the_corpus_of_every_format_is_the_same_for_its_seed(tmp_path: Path) -> None:
    for name, seed in (("data", 1), ("again", 1), ("other", 2)):
        every_format.write_sources(tmp_path / name, seed)
    files = [path.relative_to(tmp_path / "data") for path in (tmp_path / "data").rglob("*-?.*")]
    assert len(files) == len(every_format.WRITE) * every_format.SHARDS
    for path in files:
        content = (tmp_path / "data" / path).read_bytes()
        assert content == (tmp_path / "again" / path).read_bytes()
        assert content != (tmp_path / "other" / path).read_bytes()


def test_each_source_of_every_format_has_indexes_of_its_own(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, kind_of_sources="all")
    runner = Runner(settings, random.Random(1))
    settings.sources.write(tmp_path, 1)
    settings.pipeline.write_text(settings.to_toml(), encoding="utf-8")
    succeed_rows("index", settings.pipeline, f"--index-folder={settings.index_folder}")
    assert not runner.lacks_index()
    of_sources = [path for source in settings.sources.aimed for path in runner.indexes(source)]
    assert sorted(of_sources) == runner.indexes()


def test_a_run_that_misses_most_of_the_indexes_it_aims_at_is_none() -> None:
    summary = PipelineSummary(plans=PLANS, aimed_indexes=("tar", "gzip"))
    assert "problem: no kill hit the writing of an index of tar, gzip\n" in summary.to_text()
    summary.indexes_hit["tar"] = 1
    assert summary.is_good()
    assert "killed while it wrote an index of: tar\n" in summary.to_text()


def test_workers_of_the_producer_are_seen(tmp_path: Path) -> None:
    runner = Runner(settings_in(tmp_path), random.Random(1))
    script = "import subprocess, sys\n"
    script += "if len(sys.argv) > 1: child = subprocess.Popen(['sleep', '60'])\n"
    script += "print(flush=True); sys.stdin.read()\n"
    script += "if len(sys.argv) > 1: child.kill()"
    for words, expected in (((), False), (("a child",), True)):
        with subprocess.Popen(
            [sys.executable, "-c", script, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as runner.process:
            assert runner.process.stdout
            runner.process.stdout.readline()
            assert runner.has_workers() == expected


def test_a_producer_lacks_an_index_until_all_are_there(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    runner = Runner(settings, random.Random(1))
    assert runner.lacks_index()
    write_corpus(tmp_path / "data", 1)
    settings.pipeline.write_text(settings.to_toml(), encoding="utf-8")
    succeed_rows("index", settings.pipeline, f"--index-folder={settings.index_folder}")
    assert not runner.lacks_index()
    runner.indexes()[0].unlink()
    assert runner.lacks_index()


def test_an_index_that_is_being_written_is_an_open_file(tmp_path: Path) -> None:
    runner = Runner(settings_in(tmp_path), random.Random(1))
    folder = tmp_path / ".blidx.tmp"
    folder.mkdir()
    script = "import sys; file = open(sys.argv[1], 'w'); print(flush=True); sys.stdin.read()"
    for path, expected in ((folder / "x", True), (tmp_path / "x", False)):
        with subprocess.Popen(
            [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as runner.process:
            assert runner.process.stdout
            runner.process.stdout.readline()
            assert runner.writes_index() == expected
            runner.process.send_signal(signal.SIGKILL)


def test_a_rank_goes_on_at_its_checkpoint(tmp_path: Path) -> None:
    rank = Rank(settings_in(tmp_path), 1, random.Random(1))
    for step in range(11):
        write_on(rank.log.path, line_of(step, "a"))
        rank.listen()
        assert step + 1 - rank.settings.pin_every < rank.checkpoint <= step + 1
    rank.go_back(9)
    write_on(rank.log.path, line_of(11, "a"))
    rank.listen()
    assert (rank.checkpoint, rank.log.position) == (9, 12)
    rank.first = rank.checkpoint
    assert "--start=9" in rank.command()
    rank.skips = 1
    assert "--start=10" in rank.command()


class SlowJob(Job):
    """Nobody runs; its one rank at work reads a step whenever nearly all patience is used up."""

    def __init__(self, folder: Path, steps_to_come: int) -> None:
        super().__init__(settings_in(folder / "job"), random.Random(1))
        self.steps_to_come = steps_to_come
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def tick(self, pause_s: float = 0.0) -> None:
        del pause_s
        self.now_s += 0.9 * PATIENCE_S
        log = self.ranks[1].log
        if log.position < self.steps_to_come:
            write_on(log.path, line_of(log.position, "a"))
            log.read_on()
        if log.position == self.settings.steps:
            for role in self.roles:
                role.ending = True


def test_a_job_may_take_long_while_steps_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = SlowJob(tmp_path, steps_to_come=20)
    monkeypatch.setattr(job_module, "time", job)
    job.finish()
    assert job.now_s > 10 * PATIENCE_S


def test_a_job_without_steps_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = SlowJob(tmp_path, steps_to_come=3)
    monkeypatch.setattr(job_module, "time", job)
    with pytest.raises(Failure, match="waited 120 s for a step on any rank"):
        job.finish()
    assert job.ranks[1].log.position == 3


PLANS = plan_kills(50, 50)
ALL_HIT = Counter({(role, aim, aim): n for role, plan in PLANS.items() for aim, n in plan.items()})


def summary_of(**changes: tuple[str, str, str, int]) -> PipelineSummary:
    """Of a run that has hit all, but for what is changed: role, aim, phase that was hit instead,
    and how often."""
    hits = ALL_HIT.copy()
    for role in PLANS:
        hits[role, ANYWHERE, WAITING] = hits.pop((role, ANYWHERE, ANYWHERE))
    for role, aim, phase, n in changes.values():
        hits[role, aim, WAITING if aim == ANYWHERE else aim] -= n
        hits[role, aim, phase] += n
    return PipelineSummary(plans=PLANS, hits=hits)


@pytest.mark.parametrize(
    ("role", "aim"),
    [
        ("producer", UPLOADED),
        ("producer", INDEXING),
        ("consumer", LAST_STEP),
        ("consumer", READING),
    ],
)
def test_a_long_run_must_hit_what_it_aims_at(role: str, aim: str) -> None:
    assert summary_of().is_good()
    planned = PLANS[role][aim]
    most = planned // 2
    assert summary_of(missed=(role, aim, OPENING, most)).is_good()
    summary = summary_of(missed=(role, aim, OPENING, most + 1))
    assert not summary.is_good()
    left = planned - most - 1
    problem = f"problem: {left} of {planned} kills of a {role} that were aimed at '{aim}' hit it\n"
    assert problem in summary.to_text()
    summary.hits[role, ANYWHERE, WAITING] -= 1
    assert summary.is_good(), "99 kills may miss"


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_a_long_run_must_hit_more_than_start_ups(role: str) -> None:
    unaimed = PLANS[role][ANYWHERE]
    most = unaimed * 3 // 4
    early = (role, ANYWHERE, INDEXING, 4), (role, ANYWHERE, OPENING, most - 4)
    assert summary_of(indexing=early[0], opening=early[1]).is_good()
    one_more = (role, ANYWHERE, FIRST_STEP, 1), (role, ANYWHERE, OPENING, 1)
    assert summary_of(indexing=early[0], opening=early[1], first=one_more[0]).is_good()
    summary = summary_of(indexing=early[0], opening=early[1], more=one_more[1])
    assert not summary.is_good()
    problem = f"problem: {most + 1} of {unaimed} unaimed kills of a {role} hit its start-up\n"
    assert problem in summary.to_text()


def test_a_run_of_few_kills_need_not_hit_all() -> None:
    hits = Counter({("producer", ANYWHERE, OPENING): 19, ("producer", UPLOADED, COMMITTED): 19})
    assert PipelineSummary(plans=PLANS, hits=hits).is_good()
    assert not PipelineSummary(plans=PLANS, problems=["a gap"]).is_good()


def test_the_histogram_tells_aims_and_hits() -> None:
    hits = Counter({("producer", UPLOADED, UPLOADED): 2, ("producer", UPLOADED, COMMITTED): 1})
    hits["consumer", ANYWHERE, WAITING] = 4
    text = PipelineSummary(plans=plan_kills(5, 5), hits=hits).to_text()
    assert f"  producer, {UPLOADED}: {UPLOADED} 2, {COMMITTED} 1\n" in text
    assert f"  producer, {UPLOADED}: 2 of 2\n" in text
    assert f"  consumer, {ANYWHERE}: {WAITING} 4\n" in text


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    done = chaos(*FEW, "--seed=3", "--folder", tmp_path, target="pipeline")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "producer_kills: 2\nconsumer_kills: 2\n" in done.stdout
    assert "\nsteps: 24\n" in done.stdout
    assert "chaos: nothing is wrong\n" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_every_format_is_asked_for_again_as_it_was(tmp_path: Path) -> None:
    """A whole one takes longer than a test may; scripts/test --full runs it."""
    options = (*FEW, "--sources=all", "--seed=3", "--seconds-max=0.1", "--folder", tmp_path)
    done = chaos(*options, target="pipeline")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"  producer, {INDEXING}: 0 of {len(every_format.SOURCES) + 1}\n" in done.stdout
    assert "problem: the time was up after 0 kills" in done.stdout
    assert "problem: no kill hit the writing of an index of plain, gzip" in done.stdout
    assert " --steps=24 --sources=all --seed=3 --seconds-max=0.1 --fsync=none\n" in done.stdout


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("skip-step", r"problem: rank-\d.steps: step \d+ where \d+ was next\n"),
        ("other-weights", r"problem: rank-\d.steps: step \d+ is [0-9a-f]{16}, not [0-9a-f]{16}\n"),
        ("flip-byte", r"problem: d/../main\.\d+\.\d+\.[0-9a-f]+\.tgb: at byte \d+: run of rank "),
    ],
)
def test_what_is_broken_on_purpose_is_found(tmp_path: Path, broken: str, problem: str) -> None:
    options = (*FEW, f"--break={broken}", "--seed=4")
    done = chaos(*options, "--folder", tmp_path, target="pipeline")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(problem, done.stdout), done.stdout
    assert "chaos: something is wrong\n" in done.stdout
    assert "again: scripts/chaos pipeline --producer-kills=2 " in done.stdout
    assert f"--break={broken} --seed=4 --fsync=none\n" in done.stdout
    (folder,) = tmp_path.iterdir()
    assert f"stream and logs: {folder}\n" in done.stdout


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--producer-kills=-1", "--producer-kills=-1: at least 0"),
        ("--consumer-kills=-1", "--consumer-kills=-1: at least 0"),
        ("--steps=11", "--steps=11: at least 12"),
        ("--break=nothing", "invalid choice: 'nothing'"),
    ],
)
def test_what_cannot_be_run_is_refused(option: str, complaint: str) -> None:
    done = chaos(option, target="pipeline")
    assert done.returncode == 2
    assert complaint in done.stderr
