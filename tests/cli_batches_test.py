# SPDX-License-Identifier: Apache-2.0
"""What writes, reads and looks after whole batches, from outside."""

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from cli_test import (
    COMMAND,
    DONE,
    FAILED,
    as_fields,
    fail,
    refuse,
    run,
    succeed_json,
    succeed_rows,
)

FAST = "--fsync=none"
# Three ranks, two steps in an object, one sample that lies on all ranks.
SMALL = (
    "--seed=7",
    "--ranks=3",
    "--steps-per-object=2",
    "--records-per-run=2",
    "--record-tokens=40",
    "--ring",
)
SAMPLES_PER_STEP = 3 * 2 + 1


def produce(stream: Path, *options: str) -> dict:
    """Runs a producer called `main` to its end; its log is not looked at."""
    words = ("produce", stream, "--synthetic", "--producer=main", FAST, "--json", *SMALL, *options)
    done = run(*words)
    assert done.returncode == DONE, done.stderr
    return json.loads(done.stdout)


def consume(stream: Path, rank: int, *options: str) -> tuple[list[dict], dict]:
    """The lines of the steps, and the result."""
    rows = succeed_rows("consume", stream, f"--rank={rank}", "--hashes=-", FAST, *options)
    return rows[:-1], rows[-1]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command; what still runs when the test ends is killed."""
    started: list[subprocess.Popen[str]] = []

    def start_command(*arguments: str | Path) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [COMMAND, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        started.append(process)
        return process

    yield start_command
    for process in started:
        process.kill()
        process.communicate()


def expected(steps: int, rank: int) -> list[str]:
    rows = succeed_rows("sim", "batches", f"--steps={steps}", f"--rank={rank}", *SMALL)
    assert [row["step"] for row in rows] == list(range(steps))
    return [row["hash"] for row in rows]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten steps, and their end."""
    stream = tmp_path_factory.mktemp("pristine") / "stream"
    report = produce(stream, "--steps=10", "--lead=unlimited", "--end")
    assert (report["steps"], report["next_step"], report["next_seq"]) == (10, 10, 5)
    return stream


@pytest.fixture
def stream(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "stream"))


def test_every_rank_gets_what_the_configuration_says(pristine: Path) -> None:
    for rank in range(3):
        lines, result = consume(pristine, rank)
        assert [line["step"] for line in lines] == list(range(10))
        assert [line["hash"] for line in lines] == expected(10, rank)
        assert (result["steps"], result["next_step"], result["ended"]) == (10, 10, True)
        assert result["payload_bytes"] == sum(line["bytes"] for line in lines)


def test_text_has_the_same_fields(pristine: Path) -> None:
    _, result = consume(pristine, 0)
    done = run("consume", pristine, "--rank=0", FAST)
    assert list(as_fields(done.stdout)) == list(result)
    again = run("produce", pristine, "--synthetic", "--producer=other", FAST, *SMALL, "--steps=2")
    assert again.returncode == FAILED
    assert "ended" in again.stderr


def test_the_content_of_a_step_does_not_depend_on_the_world(pristine: Path) -> None:
    def sums(*ranks_and_worlds: tuple[int, str]) -> list[int]:
        total = [0] * 10
        for rank, world in ranks_and_worlds:
            lines, _ = consume(pristine, rank, *([world] if world else []))
            for line in lines:
                total[line["step"]] = (total[line["step"]] + int(line["sum"], 16)) % (1 << 64)
        return total

    stored = sums((0, ""), (1, ""), (2, ""))
    assert len(set(stored)) == 10
    for world in (1, 2, 5):
        assert sums(*((rank, f"--world={world}") for rank in range(world))) == stored
    hashes = {
        consume(pristine, rank, *world)[1]["samples_hash"]
        for rank, world in [(0, []), (1, []), (0, ["--world=1"]), (4, ["--world=5"])]
    }
    assert len(hashes) == 1


def test_a_second_run_goes_on_exactly(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    first = produce(stream, "--steps=4", "--lead=unlimited")
    assert (first["first_seq"], first["next_seq"]) == (0, 2)
    second = produce(stream, "--steps=10", "--lead=unlimited", "--uploaders=5")
    assert (second["first_seq"], second["next_seq"], second["steps"]) == (2, 5, 6)
    nothing = produce(stream, "--steps=10", "--lead=unlimited")
    assert nothing["steps"] == 0
    lines, _ = consume(stream, 2, "--steps=10")
    assert [line["hash"] for line in lines] == expected(10, 2)
    assert succeed_json("store", "verify", stream)["problems"] == []


def test_a_producer_does_not_go_on_with_other_batches(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    produce(stream, "--steps=4", "--lead=unlimited")
    before = succeed_json("store", "show", stream)
    words = ("produce", stream, "--synthetic", "--producer=main", FAST, "--steps=8")
    assert "producer main: its batches before 2 were made with other options" in fail(*words)
    # Whoever is at work with the right ones was not fenced.
    assert succeed_json("store", "show", stream) == before


def wait_for(stderr: Iterable[str], text: str) -> str:
    """Reads lines until one has `text` in it."""
    for line in stderr:
        if text in line:
            return line
    raise AssertionError(f"it never said {text!r}")


def test_a_producer_waits_for_a_consumer(tmp_path: Path, start: Start) -> None:
    stream = tmp_path / "stream"
    words = ("produce", stream, "--synthetic", "--producer=main", FAST, "--json", *SMALL)
    producer = start(*words, "--steps=20", "--lead=4", "--end")
    assert producer.stderr and producer.stdout
    assert f"waiting for a consumer of {stream}" in wait_for(producer.stderr, "waiting")
    lines, result = consume(stream, 1, "--group=job", "--report", "--report-every=1")
    assert producer.wait(60) == DONE
    assert json.loads(producer.stdout.read())["steps"] == 20
    assert ([line["hash"] for line in lines], result["ended"]) == (expected(20, 1), True)
    (cursor,) = succeed_rows("store", "pins", stream)
    assert (cursor["kind"], cursor["group"], cursor["closed"]) == ("live", "job", True)


def test_a_fenced_producer_says_so(tmp_path: Path, start: Start) -> None:
    stream = tmp_path / "stream"
    words = ("produce", stream, "--synthetic", "--producer=main", FAST, "--json", *SMALL)
    producer = start(*words, "--steps=20", "--lead=4")
    assert producer.stderr and producer.stdout
    wait_for(producer.stderr, "waiting for a consumer")
    succeed_json("store", "fence", stream, "--producer=main", FAST)
    # It goes on once somebody reads, and then finds out. One more step than there are: a consumer
    # that is done closes its cursor, perhaps before the producer has looked at it.
    start("consume", stream, "--rank=0", "--group=job", "--report", "--report-every=1", "--steps=5")
    assert producer.wait(60) == FAILED
    assert "fenced: " in producer.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_producer_at_an_object(
    tmp_path: Path, start: Start, number: signal.Signals
) -> None:
    stream = tmp_path / "stream"
    words = ("produce", stream, "--synthetic", "--producer=main", FAST, "--json", *SMALL)
    producer = start(*words, "--lead=6")
    assert producer.stderr and producer.stdout
    wait_for(producer.stderr, "waiting for a consumer")
    producer.send_signal(number)
    assert producer.wait(60) == DONE
    assert json.loads(producer.stdout.read())["next_step"] == 6
    report = succeed_json("store", "verify", stream)
    assert (report["problems"], report["orphan_batches"]) == ([], 0)
    assert "ended" not in succeed_json("store", "show", stream)


def test_a_signal_ends_a_consumer_after_a_step(tmp_path: Path, start: Start) -> None:
    stream = tmp_path / "stream"
    produce(stream, "--steps=4", "--lead=unlimited")
    words = ("consume", stream, "--rank=0", "--group=g", "--report", "--json", "--hashes=-", FAST)
    consumer = start(*words)
    assert consumer.stdout
    for step in range(4):
        assert json.loads(consumer.stdout.readline())["step"] == step
    consumer.terminate()
    assert consumer.wait(60) == DONE
    assert json.loads(consumer.stdout.readline())["next_step"] == 4
    assert [row["closed"] for row in succeed_rows("store", "pins", stream)] == [True]


def test_a_paced_consumer_reads_a_step_for_each_line(pristine: Path) -> None:
    words = [COMMAND, "consume", str(pristine), "--rank=0", "--paced", "--json", FAST]
    done = subprocess.run(
        words, input="\n" * 3, capture_output=True, text=True, timeout=60, check=False
    )
    assert json.loads(done.stdout)["steps"] == 3


def test_a_consumer_appends_to_a_file(pristine: Path, tmp_path: Path) -> None:
    file = tmp_path / "steps"
    for first in (0, 4):
        options = ("--rank=1", f"--start={first}", "--steps=4", f"--hashes={file}", FAST)
        succeed_json("consume", pristine, *options)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines] == list(range(8))
    assert [line["hash"] for line in lines] == expected(8, 1)
    missing = tmp_path / "none" / "steps"
    complaint = fail("consume", pristine, "--rank=0", f"--hashes={missing}")
    assert f"not_found: open {missing}: " in complaint


def test_what_a_consumer_got_is_more_than_it_read(pristine: Path) -> None:
    for world in ((), ("--world=2",)):
        _, result = consume(pristine, 0, *world)
        assert result["payload_bytes"] < result["fetched_bytes"] < result["get_bytes"]


def test_consume_refuses_to_start_beyond_an_end(stream: Path) -> None:
    end = succeed_json("store", "show", stream)["next_step"]
    complaint = fail("consume", stream, "--rank=0", f"--start={end + 1}")
    assert f"step {end + 1} will not come: the stream has ended before step {end}" in complaint
    lines, result = consume(stream, 0, f"--start={end}")
    assert (lines, result["ended"]) == ([], True)


def test_show_says_where_each_piece_comes_from(pristine: Path) -> None:
    step = succeed_json("store", "show", pristine, "--step=3")
    assert (step["first_step"], step["position"], step["strategy"]) == (2, 1, "synthetic")
    assert step["samples"] == SAMPLES_PER_STEP
    pieces = step["pieces"]
    assert len(pieces) == 3 * (2 + 1)
    long = [piece for piece in pieces if piece["ring"] == "0 1 2"]
    assert [(piece["rank"], piece["lo"], piece["hi"]) for piece in long] == [
        (0, 0, 40),
        (1, 40, 80),
        (2, 80, 120),
    ]
    assert {(piece["sample"], piece["micro_batch"]) for piece in long} == {("0:0:27:0", 1)}
    first = pieces[0]
    assert (first["sample"], first["source"], first["lo"]) == ("0:0:21:0", "synthetic-0", 0)
    assert (first["shard"], first["offset_bytes"], first["size_bytes"]) == (0, 21, 1)
    assert first["sample_tokens"] == 40 and first["sample_valid_labels"] <= 40
    of_one = succeed_json("store", "show", pristine, "--step=3", "--rank=1")
    assert of_one["pieces"] == [piece for piece in pieces if piece["rank"] == 1]
    complaint = fail("store", "show", pristine, "--step=3", "--rank=3")
    assert "step 3 was laid out for ranks 0 to 2; there is no rank 3" in complaint


def test_an_ended_stream_can_be_reopened(stream: Path) -> None:
    reopened = succeed_json("store", "reopen", stream, FAST)
    assert (reopened["committed"], reopened["ended"]) == (True, False)
    assert succeed_json("store", "reopen", stream, FAST)["committed"] is False
    assert produce(stream, "--steps=12", "--lead=unlimited")["next_step"] == 12
    ended = succeed_json("store", "end", stream, FAST)
    assert (ended["committed"], ended["next_step"], ended["ended"]) == (True, 12, True)
    lines, result = consume(stream, 1)
    assert ([line["hash"] for line in lines], result["ended"]) == (expected(12, 1), True)


def damage_step(stream: Path, step: int) -> str:
    """Flips a bit in the run of rank 0; the object's key."""
    entry = succeed_json("store", "show", stream, f"--step={step}")
    offset = int.from_bytes(bytes.fromhex(entry["run_table"])[16:24], "little")
    path = stream / entry["key"]
    data = bytearray(path.read_bytes())
    data[offset + 500] ^= 1
    path.write_bytes(data)
    return entry["key"]


def test_a_damaged_step_is_named_and_can_be_skipped(stream: Path) -> None:
    key = damage_step(stream, 3)
    done = run("consume", stream, "--rank=0", "--hashes=-", "--json", FAST)
    assert done.returncode == FAILED
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["step"] for row in rows[:-1]] == [0, 1, 2]
    assert rows[-1]["next_step"] == 3
    assert "corruption" in done.stderr and key in done.stderr
    skip = succeed_json("store", "skip", stream, "--step=3", FAST)
    lines, _ = consume(stream, 0, "--start=3", f"--min-slot={skip['slot']}")
    assert [line["step"] for line in lines] == list(range(4, 10))
    assert "not_found" in fail("store", "skip", stream, "--step=10", FAST)


@pytest.mark.parametrize("verb", ["gc --yes", "pins", "end", "reopen", "skip --step=0"])
def test_a_missing_stream_is_named(tmp_path: Path, verb: str) -> None:
    name, *options = verb.split()
    assert f"{tmp_path}/none" in fail("store", name, tmp_path / "none", *options)
    complaint = fail("store", name, tmp_path, *options)
    assert f"{tmp_path}: FORMAT: there is no stream here" in complaint


def test_consumers_and_pins_need_a_stream(tmp_path: Path) -> None:
    pin = ("--group=g", "--id=i")
    reason = f"{tmp_path}: FORMAT: there is no stream here"
    assert reason in fail("store", "pin", tmp_path, *pin, "--step=1")
    assert reason in fail("store", "unpin", tmp_path, *pin)
    assert reason in fail("consume", tmp_path, "--rank=0")


def test_a_producer_makes_one_folder_only(tmp_path: Path) -> None:
    words = ("--synthetic", "--producer=main", "--steps=1", FAST)
    assert "not_found" in fail("produce", tmp_path / "a" / "b", *words)
    assert not (tmp_path / "a").exists()


def test_a_rank_that_is_none_is_refused(pristine: Path) -> None:
    done = run("consume", pristine, "--rank=3", FAST)
    assert done.returncode == FAILED
    assert "invalid" in done.stderr and "rank 3" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("produce ./x --producer=a", "--synthetic is required"),
        ("produce ./x --synthetic --producer=A", "is not a name"),
        ("produce ./x --synthetic --producer=a --steps=3 --steps-per-object=2", "not a multiple"),
        ("produce ./x --synthetic --producer=a --lead=0", "nor unlimited"),
        ("produce ./x --synthetic --producer=a --record-tokens=1", "at least 2 tokens"),
        ("produce ./x --synthetic --producer=a --end", "requires --steps"),
        ("consume ./x", "--rank is required"),
        ("consume ./x --rank=-1", "not a whole number"),
        ("consume ./x --rank=4 --world=4", "a world of 4 has ranks 0 to 3"),
        ("consume ./x --rank=0 --report", "need --group=NAME"),
        ("consume ./x --rank=0 --prefetch=1GB", "is no size"),
        ("consum ./x --rank=0", "did you mean consume?"),
        ("store gc ./x", "say --dry-run"),
        ("store gc ./x --yes --dry-run", "excludes"),
        ("store gc ./x --yes --every=2", "is no time"),
        ("store gc ./x --yes --every=0s", "a pause of nothing"),
        ("store pin ./x --group=g --id=i", "--step is required"),
        ("store pin ./x --group=g --id=I --step=1", "is not a name"),
        ("store unpin ./x --group=g", "say which"),
        ("store show ./x --rank=1", "requires --step"),
        ("store skip ./x", "--step is required"),
        ("sim batches --steps=1 --rank=8", "--ranks=8 has ranks 0 to 7"),
    ],
)
def test_bad_usage_is_explained(arguments: str, hint: str) -> None:
    complaint = refuse(*arguments.split())
    assert hint in complaint
    assert "--help" in complaint
