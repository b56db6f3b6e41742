# SPDX-License-Identifier: Apache-2.0
"""The chaos run judges right: what is wrong is found, and what is right is not."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.judge import (
    count_orphans,
    expected_hashes,
    judge_log,
    judge_report,
    verify_payload,
)
from chaos.looks import ORDER, is_stopped, most_telling, name_of, stop_and_look
from chaos.roles import Consumer
from chaos.settings import Settings, draw_settings
from chaos.step_logs import RankLog
from chaos.summary import Summary
from cli_test import COMMAND

ROOT = Path(__file__).resolve().parent.parent


Lines = tuple[tuple[int, str], ...]


def log_of(path: Path, *processes: Lines) -> RankLog:
    """The lines of processes, of which each was asked for the step in its first line."""
    log = RankLog(path)
    for lines in processes:
        log.begin(lines[0][0])
        write_on(path, "".join(line_of(*line) for line in lines))
        log.read_on()
    return log


def write_on(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def line_of(step: int, text: str) -> str:
    return json.dumps({"step": step, "hash": text}) + "\n"


def test_a_log_without_a_flaw(tmp_path: Path) -> None:
    log = log_of(tmp_path / "rank-0", ((0, "a"), (1, "b")), ((0, "a"), (1, "b"), (2, "c")))
    assert (log.position, log.repeats) == (3, 2)
    assert judge_log(log, ["a", "b", "c"]) == []


@pytest.mark.parametrize(
    ("lines", "flaw"),
    [
        (((0, "a"), (2, "c")), "step 2 where 1 was next"),
        (((0, "a"), (1, "b"), (0, "a"), (1, "b"), (2, "c")), "step 0 where 2 was next"),
        (((0, "a"), (1, "b"), (1, "b"), (2, "c")), "step 1 where 2 was next"),
        (((0, "a"), (1, "x"), (2, "c")), "step 1 is x, not b"),
        (((0, "a"), (1, "b"), (1, "x"), (2, "c")), "step 1 was b and is x when read again"),
        (((0, "a"), (1, "b")), "ends at step 2, not at 3"),
        (((0, "a"), (1, "b"), (2, "c"), (3, "d")), "ends at step 4, not at 3"),
        (((1, "b"),), "ends at step 0, not at 3"),
    ],
)
def test_a_log_with_a_flaw(tmp_path: Path, lines: Lines, flaw: str) -> None:
    problems = judge_log(log_of(tmp_path / "rank-0", lines), ["a", "b", "c"])
    assert any(flaw in problem for problem in problems), problems


def test_a_process_says_first_what_it_was_asked_for(tmp_path: Path) -> None:
    settings = replace(settings_in(tmp_path, 1), command=Path("/bin/true"))
    rank = Consumer(settings, 0, random.Random(1))
    write_on(rank.log.path, "".join(line_of(step, "a") for step in range(4)))
    rank.listen()
    rank.first = 2
    rank.start()
    rank.wait()
    write_on(rank.log.path, line_of(1, "a") + line_of(2, "a"))
    rank.listen()
    assert rank.log.problems == ["rank-0.steps: step 1 where 2 was next"]


def test_a_torn_line_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rank-0"
    log = log_of(path, ((0, "a"),))
    write_on(path, '{"step": 1, "ha')
    log.begin(1)
    write_on(path, line_of(1, "b"))
    log.read_on()
    assert judge_log(log, ["a", "b"]) == []


def sound_report() -> dict:
    orphans = ("orphan_segments", "orphan_states", "orphan_batches", "orphan_memberships")
    counts = (*orphans, "trimmed_segments", "trimmed_batches", "leftover_slots")
    return {"problems": [], "foreign": [], **dict.fromkeys(counts, 0)}


def test_reports_of_verify() -> None:
    assert judge_report(sound_report()) == []
    assert judge_report(sound_report() | {"problems": ["m/1: gone"]}) == ["m/1: gone"]
    for count in ("orphan_batches", "trimmed_batches", "trimmed_segments"):
        assert judge_report(sound_report() | {count: 2}) == [f"verify: {count} is 2"]
    assert judge_report(sound_report() | {"foreign": ["x"]}) != []


def test_orphans_are_told_from_what_was_trimmed() -> None:
    def key(seq: int, nonce: int) -> str:
        return f"d/00/main.000000000007.{seq:012}.{nonce:016x}.tgb"

    removed = [key(0, 1), key(0, 2), key(1, 3), key(2, 4), "d/00/main.1.2.state"]
    # Steps 0 to 3 are trimmed: one each of 0 and 1 was committed, and 2 still is elsewhere.
    assert count_orphans(removed, first_step=4, steps_per_object=2) == 2
    assert count_orphans(removed, first_step=0, steps_per_object=2) == 4


def test_phases_of_a_process() -> None:
    assert name_of("265 0xffffff9c 0x7f", machine="x86_64") == "linkat"
    assert name_of("37 0xffffff9c 0x7f", machine="aarch64") == "linkat"
    assert name_of("running", machine="x86_64") == "running"
    assert name_of("-1 0x7ffd 0x7f", machine="x86_64") == "running"
    assert name_of("9999 0x0", machine="x86_64") == "other"
    assert most_telling(["futex", "running", "linkat", "openat"]) == "linkat"
    assert most_telling(["futex", "running"]) == "running"
    assert most_telling([]) == "gone"


def test_a_process_is_stopped_where_it_is() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            phase = stop_and_look(sleeper.pid, patience_s=10.0)
            assert is_stopped(sleeper.pid)
            assert phase in ORDER
        finally:
            sleeper.kill()
    assert sleeper.returncode == -signal.SIGKILL


def test_a_long_run_must_see_what_it_is_for() -> None:
    seen = {"fences": 20, "orphans_removed": 20, "trims": 20, "slots_removed": 1000}
    seen["trimmed_batches_removed"] = 100
    assert Summary(counts={"kills": 200} | seen).is_good()
    assert Summary(counts={"kills": 199}).is_good()
    for name in seen:
        summary = Summary(counts={"kills": 200} | seen | {name: seen[name] - 1})
        assert not summary.is_good()
        assert f"problem: {name}: {seen[name] - 1}, at least {seen[name]}" in summary.to_text()
    assert not Summary(counts={"kills": 1}, problems=["a gap"]).is_good()


def test_the_histogram_has_a_line_for_each_role() -> None:
    hits = Counter({("producer", "linkat"): 2, ("producer", "futex"): 1, ("consumer", "read"): 3})
    text = Summary(hits=hits).to_text()
    assert "  producer: linkat=2 futex=1\n" in text
    assert "  consumer: read=3\n" in text


def settings_in(folder: Path, seed: int) -> Settings:
    return draw_settings(COMMAND, folder, kills=1, seed=seed, fsync="none", seconds_max=60)


def test_what_is_expected_follows_from_the_seed(tmp_path: Path) -> None:
    hashes = expected_hashes(settings_in(tmp_path, 1), 3)
    assert hashes == expected_hashes(settings_in(tmp_path, 1), 3)
    assert [len(of_rank) for of_rank in hashes] == [3] * 8
    assert len({text for of_rank in hashes for text in of_rank}) == 24
    assert hashes != expected_hashes(settings_in(tmp_path, 2), 3)


def test_damaged_payload_is_found_at_the_end(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, 1)
    words = ("--synthetic", "--producer=main", "--steps=2", *settings.synthetic())
    subprocess.run([*settings.on_stream("produce"), *words], capture_output=True, check=True)
    assert judge_report(verify_payload(settings)) == []
    batch = next((settings.stream / "d").glob("*/*.tgb"))
    content = bytearray(batch.read_bytes())
    content[len(content) // 3] ^= 1  # Among the runs: the index, at the end, says nothing of it.
    batch.write_bytes(content)
    problems = judge_report(verify_payload(settings))
    assert any(batch.name in problem for problem in problems), problems


def chaos(
    *options: str | Path, target: str = "store", program: Path = COMMAND
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "chaos", target, *map(str, options)]
    environment = os.environ | {"BATCHLOOM": str(program)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    done = chaos("--kills=5", "--seed=3", "--folder", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills: 5\n" in done.stdout
    assert "chaos: nothing is wrong\n" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "program", "complaint"),
    [
        (["--kills=0"], COMMAND, "--kills=0: at least 1"),
        (["--kills=-3"], COMMAND, "--kills=-3: at least 1"),
        (["--folder=/dev/null/x"], COMMAND, "no folder for the stream: "),
        ([], Path("/no/such/command"), "there is no command /no/such/command ($BATCHLOOM)"),
    ],
)
def test_what_cannot_be_run_is_refused(
    options: list[str], program: Path, complaint: str
) -> None:
    done = chaos(*options, program=program)
    assert done.returncode != 0
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_takes_too_long_fails_and_keeps_its_folder(tmp_path: Path) -> None:
    options = ("--kills=1000", "--seed=3", "--seconds-max=2.0", "--fsync=always")
    done = chaos(*options, "--folder", tmp_path)
    assert done.returncode == 1
    assert "problem: the time was up after " in done.stdout
    assert f"again: scripts/chaos store {' '.join(options)}\n" in done.stdout
    (folder,) = tmp_path.iterdir()
    assert f"stream and logs: {folder}" in done.stdout
    assert (folder / "stream" / "FORMAT").is_file()


def test_a_step_that_is_not_what_it_must_be_is_found(tmp_path: Path) -> None:
    liar = tmp_path / "batchloom"
    liar.write_text(
        f"""#!/bin/sh
        [ "$1" = sim ] || exec {COMMAND} "$@"
        {COMMAND} "$@" | sed '3s/"hash":"./"hash":"x/'
        """,
        encoding="utf-8",
    )
    liar.chmod(0o755)
    done = chaos("--kills=1", "--seed=3", "--folder", tmp_path / "run", program=liar)
    assert done.returncode == 1
    assert "problem: rank-2.steps: step 0 is " in done.stdout
