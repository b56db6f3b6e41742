# SPDX-License-Identifier: Apache-2.0
"""The `batchloom` command from outside: what it prints, and how it ends."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMAND = Path(os.environ.get("BATCHLOOM", ROOT / "build" / "dev" / "batchloom"))
SAMPLE_STREAM = COMMAND.with_name("batchloom_sample_stream")

DONE, FAILED, USAGE = 0, 1, 2


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def succeed(*arguments: str | Path) -> str:
    """What the command prints; it must end well and say nothing else."""
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (DONE, "")
    return done.stdout


def succeed_json(*arguments: str | Path) -> dict:
    return json.loads(succeed(*arguments, "--json"))


def succeed_rows(*arguments: str | Path) -> list[dict]:
    return [json.loads(line) for line in succeed(*arguments, "--json").splitlines()]


def fail(*arguments: str | Path) -> str:
    """What the command complains about; it must print no result."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (FAILED, "")
    return done.stderr


def refuse(*arguments: str | Path) -> str:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    return done.stderr


def as_fields(text: str) -> dict[str, str]:
    """The top level of a result in text form."""
    lines = [line for line in text.splitlines() if not line.startswith("  ")]
    return dict(line.split(": ", 1) for line in lines)


def row_names(line: str) -> list[str]:
    return [part.split("=", 1)[0] for part in shlex.split(line)]


def keys_of(stream: Path) -> list[str]:
    files = (path.relative_to(stream) for path in stream.rglob("*") if path.is_file())
    return sorted(str(key) for key in files if not str(key).startswith("."))


def make_sample(folder: Path) -> Path:
    subprocess.run([SAMPLE_STREAM, folder], check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of 12 entries by two producers; see cli/sample_stream_testing.cc."""
    return make_sample(tmp_path_factory.mktemp("pristine") / "stream")


@pytest.fixture
def stream(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "stream"))


def test_version_and_help() -> None:
    assert succeed("--version").startswith("batchloom ")
    for path in ("", "store", "store ls", "sim", "sim store"):
        assert "--help" in succeed(*path.split(), "--help")


def test_init_makes_a_stream_once(tmp_path: Path) -> None:
    first = as_fields(succeed("store", "init", tmp_path / "new"))
    assert first["stream"] == "created"
    again = succeed_json("store", "init", f"file://{tmp_path}/new")
    assert again == {"uuid": first["uuid"], "stream": "exists"}
    assert succeed("store", "ls", tmp_path / "new") == ""
    assert succeed_json("store", "verify", tmp_path / "new")["newest"] == 1


def test_ls_lists_entries(pristine: Path) -> None:
    listed = succeed_rows("store", "ls", pristine)
    rows = [row for row in listed if "first_step" in row]
    assert [row["first_step"] for row in rows] == [0, 1, 2, 3, 4, 5, 7, 9, 11, 12, 13, 14]
    assert [row["steps"] for row in rows].count(2) == 3
    assert {row["producer"] for row in rows} == {"a", "b"}
    assert all((pristine / row["key"]).stat().st_size == row["bytes"] for row in rows)
    lines = succeed("store", "ls", pristine).splitlines()
    assert [row_names(line) for line in lines] == [list(row) for row in listed]


def test_ls_lists_memberships_where_they_begin(pristine: Path) -> None:
    rows = succeed_rows("store", "ls", pristine)
    assert [at for at, row in enumerate(rows) if "first_step" not in row] == [0, 11]
    few = {"membership_from_step": 0, "digest": f"{12:032x}", "producer": "a", "term": 2}
    many = {"membership_from_step": 13, "digest": f"{3000:032x}", "producer": "a", "term": 13}
    assert rows[0] == few | {"keys_bytes": 12}
    assert rows[11] == many | {"keys_bytes": 3000}
    rows = succeed_rows("store", "ls", pristine, "--from=12", "--limit=1")
    assert [row.get("first_step") for row in rows] == [None, 12]


def test_ls_begins_and_ends_where_asked(pristine: Path) -> None:
    rows = succeed_rows("store", "ls", pristine, "--from", "6", "--limit=2")
    assert [row["first_step"] for row in rows[1:]] == [5, 7]  # Step 6 is the second of a pack.
    assert len(succeed_rows("store", "ls", pristine, "--from=15")) == 1
    assert "step 16 is not committed yet" in fail("store", "ls", pristine, "--from=16")


def test_show_prints_a_head(pristine: Path) -> None:
    head = succeed_json("store", "show", pristine)
    assert (head["slot"], head["next_step"], head["writer"]) == (19, 15, "b")
    assert [row["producer"] for row in head["producers"]] == ["a", "b"]
    assert bytes.fromhex(head["producers"][1]["state"]) == b"b is after batch 2"
    assert head["producers"][0]["state_key"] in keys_of(pristine)
    few, many = head["memberships"]
    assert bytes.fromhex(few["keys"]) == b"k" * 12
    assert (many["membership_from_step"], many["keys_bytes"]) == (13, 3000)
    assert many["keys_key"] in keys_of(pristine)
    assert {ref["key"] for ref in head["segments"]} < set(keys_of(pristine))
    assert head["tail"][-1]["first_step"] == 14
    text = succeed("store", "show", pristine)
    assert list(as_fields(text)) == list(head)
    older = succeed_json("store", "show", pristine, "--slot=18")
    assert (older["slot"], older["crc"]) == (18, head["previous_crc"])
    for slot in (15, 20):  # At the floor, and not there yet.
        assert f"slot {slot} " in fail("store", "show", pristine, "--slot", str(slot))


def test_show_prints_the_entry_of_a_step(pristine: Path) -> None:
    entry = succeed_json("store", "show", pristine, "--step=6")
    assert (entry["first_step"], entry["steps"], entry["producer"]) == (5, 2, "b")
    assert len(bytes.fromhex(entry["run_table"])) == 2 * 16 + 4
    assert list(as_fields(succeed("store", "show", pristine, "--step=6"))) == list(entry)
    assert "step 15 is not committed yet" in fail("store", "show", pristine, "--step=15")


def test_verify_counts(pristine: Path) -> None:
    report = succeed_json("store", "verify", pristine)
    expected = {"floor": 15, "newest": 19, "slots": 4, "entries": 12, "steps": 15, "producers": 2}
    expected |= {"samples": 39, "tokens": 288, "memberships": 2, "orphan_memberships": 0}
    assert expected.items() <= report.items()
    assert len(report["segments_by_level"]) >= 2
    assert (report["complete"], report["foreign"], report["problems"]) == (True, [], [])
    assert list(as_fields(succeed("store", "verify", pristine))) == list(report)


def test_verify_lists_what_is_foreign_and_orphaned(stream: Path) -> None:
    (stream / "d" / "notes.txt").write_text("x")
    (stream / "d" / "ff" / "a.000000000002.000000000009.ff00000000000000.tgb").write_text("x")
    report = succeed_json("store", "verify", stream)
    assert (report["foreign"], report["orphan_batches"]) == (["d/notes.txt"], 1)


def test_fence_stops_older_sessions(stream: Path) -> None:
    fenced = as_fields(succeed("store", "fence", stream, "--producer=a"))
    assert fenced == {"producer": "a", "term": "20", "next_seq": "9", "state_bytes": "100"}
    again = succeed_json("store", "fence", stream, "--producer", "b")
    assert again == {"producer": "b", "term": 21, "next_seq": 3, "state_bytes": 18}
    succeed("store", "verify", stream)


def test_commands_that_change_a_stream_refuse_the_format_of_another(
    stream: Path, tmp_path: Path
) -> None:
    succeed("store", "pin", stream, "--group=g", "--id=x", "--step=4")
    (stream / "FORMAT").write_bytes((make_sample(tmp_path / "other") / "FORMAT").read_bytes())
    before = keys_of(stream)
    for command in (
        ("store", "pin", stream, "--group=g", "--id=y", "--step=4"),
        ("store", "unpin", stream, "--group=g", "--id=x"),
        ("store", "gc", stream, "--yes"),
        ("store", "fence", stream, "--producer=a"),
        ("store", "skip", stream, "--step=4"),
        ("store", "end", stream),
        ("store", "show", stream),
        ("produce", stream, "--synthetic", "--producer=new"),
        ("consume", stream, "--rank=0"),
    ):
        complaint = fail(*command)
        assert "belongs to stream" in complaint, (command, complaint)
        assert keys_of(stream) == before, command


def test_a_lost_floor_is_damage_to_every_command(stream: Path) -> None:
    (stream / "gc" / "floor").unlink()
    for command in (
        ("store", "ls", stream),
        ("store", "show", stream),
        ("store", "init", stream),
        ("store", "pins", stream),
        ("store", "unpin", stream, "--group=g", "--id=x"),
        ("store", "gc", stream, "--yes"),
        ("store", "fence", stream, "--producer=a"),
        ("consume", stream, "--rank=0"),
        ("produce", stream, "--synthetic", "--producer=new"),
    ):
        complaint = fail(*command)
        assert "corruption: " in complaint and "gc/floor: missing" in complaint, complaint
    report = json.loads(run("store", "verify", stream, "--json").stdout)
    assert any("gc/floor: missing" in problem for problem in report["problems"]), report


def test_fence_with_a_damaged_state_says_that_it_stands(stream: Path) -> None:
    before = succeed_json("store", "show", stream)["slot"]
    row = next(p for p in succeed_json("store", "show", stream)["producers"] if "state_key" in p)
    path = stream / row["state_key"]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    complaint = fail("store", "fence", stream, f"--producer={row['producer']}")
    assert f"producer {row['producer']} has its new term {before + 1}, but not its" in complaint
    assert row["state_key"] in complaint
    assert succeed_json("store", "show", stream)["slot"] == before + 1


def test_fence_adds_no_producer(stream: Path, tmp_path: Path) -> None:
    before = succeed("store", "show", stream)
    complaint = fail("store", "fence", stream, "--producer=c")
    assert "not_found: producer c: slot 19 knows no producer of this name" in complaint
    assert "it knows a, b" in complaint
    assert succeed("store", "show", stream) == before
    succeed("store", "init", tmp_path / "new")
    assert "it knows none" in fail("store", "fence", tmp_path / "new", "--producer=c")


@pytest.mark.parametrize("producer", ["a", "b"])  # The state of a is an object.
def test_produce_fences_nobody_whom_it_cannot_follow(stream: Path, producer: str) -> None:
    before = succeed("store", "show", stream)
    complaint = fail("produce", stream, "--synthetic", f"--producer={producer}", "--steps=20")
    assert f"producer {producer}: its state before batch " in complaint
    assert "was not written by `produce --synthetic`" in complaint
    assert succeed("store", "show", stream) == before


def test_probe_reports_each_check(tmp_path: Path) -> None:
    arguments = ("store", "probe", tmp_path, "--size=4096", "--fsync=none")
    rows = succeed_rows(*arguments)
    assert {row["outcome"] for row in rows} == {"passed"}
    assert {"create_twice", "racing_creates_batch_size"} <= {row["check"] for row in rows}
    lines = succeed(*arguments).splitlines()
    assert [row_names(line) for line in lines] == [list(row) for row in rows]
    assert keys_of(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_probe_names_a_missing_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        complaint = fail("store", "probe", tmp_path)
    finally:
        tmp_path.chmod(0o700)
    assert "permission" in complaint and str(tmp_path) in complaint
    assert "use another store" not in complaint


def test_sim_store_help_names_what_break_takes() -> None:
    text = " ".join(succeed("sim", "store", "--help").split())
    listed = refuse("sim", "store", "--break=x").split("choose one of ", 1)[1]
    for name in listed.split("\n", 1)[0].split(", "):
        assert name in text, name


def test_sim_store_counts_events() -> None:
    summary = succeed_json("sim", "store", "--seeds=3", "--first-seed=5")
    assert summary["seeds"] == 3
    assert summary["events"]["commit"] > 0
    text = succeed("sim", "store", "--seeds=3", "--first-seed=5", "--jobs=2")
    assert list(as_fields(text)) == list(summary)
    assert as_fields(text)["trace_hash"] == summary["trace_hash"]


def test_sim_store_replays_a_failure() -> None:
    done = run("sim", "store", "--seeds=100", "--break=drop-rule", "--json")
    assert done.returncode == FAILED
    summary = json.loads(done.stdout)
    assert f"seed {summary['failed_seed']} breaks a rule: {summary['violations'][0]}" in done.stderr
    replayed = run(*shlex.split(summary["replay"])[1:], "--json")
    assert replayed.returncode == FAILED
    assert json.loads(replayed.stdout)["violations"] == summary["violations"]


@pytest.mark.parametrize("command", ["ls", "show", "verify", "fence --producer=a", "probe"])
def test_a_missing_folder_is_named(tmp_path: Path, command: str) -> None:
    verb, *options = command.split()
    assert f"{tmp_path}/none" in fail("store", verb, tmp_path / "none", *options)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["ls", "show", "verify", "fence --producer=a"])
def test_a_missing_stream_is_named(tmp_path: Path, command: str) -> None:
    verb, *options = command.split()
    complaint = fail("store", verb, tmp_path, *options)
    assert f"{tmp_path}: FORMAT: there is no stream here" in complaint


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("", "subcommand is required"),
        ("stroe ls ./x", "did you mean store?"),
        ("store shwo ./x", "did you mean show?"),
        ("store ls ./x --form=3", "did you mean --from?"),
        ("store ls ./x --frmo 3", "did you mean --from?"),
        ("store ls", "URL is required"),
        ("store ls x", "did you mean ./x?"),
        ("store ls s3://bucket/x", "not supported yet; a store is a folder: ./dir"),
        ("store init ./x --fsync=often", "neither always nor none"),
        ("store ls ./x --limit=0", "not a whole number from 1"),
        ("store show ./x --slot=1 --step=1", "excludes"),
        ("store fence ./x --producer=A", "is not a name"),
        ("store fence ./x", "--producer is required"),
        ("store probe ./x --size=9MiB", "'9MiB' is not a whole number"),
        ("sim store --break=nothing", "choose one of drop-rule"),
        ("sim store --seed=1 --seeds=2", "excludes"),
        ("sim store --seed=1 --without=rain:1", "'rain:1' is no fault"),
    ],
)
def test_bad_usage_is_explained(arguments: str, hint: str) -> None:
    complaint = refuse(*arguments.split())
    assert hint in complaint
    assert "--help" in complaint


def test_results_that_cannot_be_written_are_a_failure(pristine: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [COMMAND, "store", "show", pristine],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == FAILED
    assert "stdout could not be written" in done.stderr
