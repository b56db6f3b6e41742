# SPDX-License-Identifier: Apache-2.0
"""`batchloom index` and `batchloom run`: what they read from files is what ranks get, whatever is
stopped or killed in between. What must come out is reckoned here, from the files alone."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, fail, refuse, run, succeed, succeed_json, succeed_rows
from shards.writers import write_megatron

PIPELINE = """
seed = 17

[store]
url = "./stream"
lead_steps = {lead}

[topology]
axes = "{axes}"
capacity = 512

[step]
tokens = 4096
max_sample_tokens = 256

[tokens]
tokenizer = {{ kind = "bytes" }}
vocab = 300
end = [299]

[balance]
strategy = "{strategy}"

[[source]]
name = "docs"
files = ["docs-*.jsonl"]
weight = 0.7
exhausted = "drop"

[[source]]
name = "chats"
files = ["chats.jsonl"]
fields = {{ prompt = "q", answer = "a" }}
loss_on = "answer"
weight = 0.3
exhausted = "drop"
"""
END = 299
PART = 256


def run_pipeline(*options: str | Path) -> dict:
    """Its result; on stderr it says how far it is."""
    done = run("run", "p.toml", *options, "--json")
    assert done.returncode == DONE, done.stderr
    return json.loads(done.stdout)


def text_of(rng: random.Random, most: int) -> str:
    return "".join(rng.choice("abcdefgh \u00e4\u20ac\n") for _ in range(rng.randrange(most)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = random.Random(5)
    for shard in range(3):
        with (tmp_path / f"docs-{shard}.jsonl").open("w", encoding="utf-8") as file:
            for _ in range(60):
                file.write(json.dumps({"text": text_of(rng, 700), "other": [1, {}]}) + "\n")
            file.write("\n")
    with (tmp_path / "chats.jsonl").open("w", encoding="utf-8", newline="\r\n") as file:
        for _ in range(40):
            file.write(json.dumps({"q": text_of(rng, 90), "a": text_of(rng, 90)}) + "\n")
    monkeypatch.chdir(tmp_path)
    write_pipeline(tmp_path)
    return tmp_path


def write_pipeline(
    folder: Path, axes: str = "dp=4", strategy: str = "two_level", lead: str = '"unlimited"'
) -> None:
    text = PIPELINE.format(axes=axes, strategy=strategy, lead=lead)
    (folder / "p.toml").write_text(text, encoding="utf-8")


def ids_of(text: str) -> list[int]:
    return [*text.encode("utf-8"), END]


def expected_records(folder: Path) -> dict[tuple[str, int], list[int]]:
    """By source and number: the ids of each record."""
    records = {}
    number = 0
    for path in sorted(folder.glob("docs-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                records["docs", number] = ids_of(json.loads(line)["text"])
                number += 1
    lines = (folder / "chats.jsonl").read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(line for line in lines if line.strip()):
        record = json.loads(line)
        records["chats", number] = ids_of(record["q"] + record["a"])
    return records


def pieces_of(folder: Path, steps: int) -> Counter[tuple[str, int, int, int]]:
    """(source, record, first token in the record, tokens) of all pieces of all ranks."""
    pieces: Counter[tuple[str, int, int, int]] = Counter()
    for step in range(steps):
        shown = succeed_json("store", "show", folder / "stream", f"--step={step}")
        for piece in shown["pieces"]:
            _, _, record, part = map(int, piece["sample"].split(":"))
            first = part * PART + piece["lo"]
            pieces[piece["source"], record, first, piece["hi"] - piece["lo"]] += 1
    return pieces


def counted(steps: int, folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Of each source: samples, tokens, first and last step, as the stream has them."""
    samples: dict[str, dict[tuple[int, str], int]] = {}
    for step in range(steps):
        shown = succeed_json("store", "show", folder / "stream", f"--step={step}")
        for piece in shown["pieces"]:
            of_source = samples.setdefault(piece["source"], {})
            key = step, piece["sample"]
            of_source[key] = of_source.get(key, 0) + piece["hi"] - piece["lo"]
    return {
        source: (len(of_source), sum(of_source.values()), min(of_source)[0], max(of_source)[0])
        for source, of_source in samples.items()
    }


def test_index_counts_what_files_hold(folder: Path) -> None:
    rows = succeed_rows("index", "p.toml")
    records = expected_records(folder)
    for source in ("docs", "chats"):
        (row,) = [row for row in rows if row.get("source") == source]
        of_source = [ids for (name, _), ids in records.items() if name == source]
        assert row["records"] == len(of_source)
        assert row["tokens"] == sum(map(len, of_source))
        assert row["bad_records"] == 0
    assert [row.keys() & {"shard"} for row in succeed_rows("index", "p.toml")] == [set(), set()]
    (folder / "docs-1.jsonl").write_text('{"text": "new"}\n', encoding="utf-8")
    assert [row["shard"] for row in succeed_rows("index", "p.toml") if "shard" in row] == [
        "docs-1.jsonl"
    ]


@pytest.mark.parametrize(
    ("axes", "strategy"), [("dp=4", "two_level"), ("dp=3", "kk"), ("dp=2 cp=2", "hdp")]
)
def test_every_token_reaches_one_rank_once(folder: Path, axes: str, strategy: str) -> None:
    write_pipeline(folder, axes, strategy)
    result = run_pipeline()
    assert result["end"] == "sources stop"
    succeed("store", "verify", "./stream", "--depth=payload")
    covered: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for (source, record, first, tokens), times in pieces_of(folder, result["steps"]).items():
        assert times == 1
        covered.setdefault((source, record), []).append((first, first + tokens))
    records = expected_records(folder)
    assert covered.keys() == records.keys()
    for name, intervals in covered.items():
        ends = [0]
        for begin, end in sorted(intervals):
            assert begin == ends[-1], name
            ends.append(end)
        assert ends[-1] == len(records[name]), name
    assert result["tokens"] == sum(map(len, records.values()))


def hashes_of(stream: Path, rank: int) -> list[dict]:
    return succeed_rows("consume", stream, f"--rank={rank}", "--hashes=-")[:-1]


def all_hashes(stream: Path, ranks: int = 4) -> list[list[dict]]:
    return [hashes_of(stream, rank) for rank in range(ranks)]


def test_a_second_run_goes_on_exactly(folder: Path) -> None:
    steps = run_pipeline("--store=./whole")["steps"]
    for end in range(3, steps, 7):
        assert run_pipeline(f"--steps={end}")["next_step"] == end
        run_pipeline(f"--steps={end}")
    assert run_pipeline()["next_step"] == steps
    assert all_hashes(folder / "stream") == all_hashes(folder / "whole")
    assert run_pipeline()["steps"] == 0, "it has ended"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_however_it_ends_nothing_is_lost(folder: Path, how: signal.Signals) -> None:
    steps = run_pipeline("--store=./whole")["steps"]
    ends = 0
    for moment in range(12):
        command = [COMMAND, "run", "p.toml", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.004 * moment)
        process.send_signal(how)
        process.communicate(timeout=60)
        ends += process.returncode == 0
    assert run_pipeline()["next_step"] == steps
    assert all_hashes(folder / "stream") == all_hashes(folder / "whole")
    succeed("store", "verify", "./stream", "--depth=payload")


def test_a_stop_while_it_indexes_is_no_failure(folder: Path) -> None:
    line = json.dumps({"text": "a" * 999}) + "\n"
    (folder / "docs-9.jsonl").write_text(line * 30_000, encoding="utf-8")
    with subprocess.Popen(
        [COMMAND, "run", "p.toml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (folder / "docs-2.jsonl.blidx").exists():  # docs-9 is the next, and large.
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "stopped before all was indexed" in err
    assert not (folder / "stream").exists()


def test_without_a_consumer_it_stops_at_its_lead(folder: Path) -> None:
    write_pipeline(folder, lead="3")
    process = subprocess.Popen(
        [COMMAND, "run", "p.toml", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "waiting for a consumer of ./stream" in line:
            break
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["end"] == "stopped"
    assert json.loads(out)["next_step"] == 3


def test_a_bad_record_is_left_out_and_counted(folder: Path) -> None:
    with (folder / "docs-2.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": 7}\n{"text": null}\nnonsense\n{"other": "x"}\n{"text": "last"}\n')
    docs, chats = (row for row in succeed_rows("index", "p.toml") if "source" in row)
    assert docs["bad_records"] == 4
    assert docs["first_bad"].startswith("docs-2.jsonl: record 60 at offset")
    assert "first_bad" not in chats
    result = run_pipeline()
    records = expected_records_of_good_lines(folder)
    assert result["tokens"] == sum(records)


def test_more_bad_records_than_are_allowed_are_refused_by_name(folder: Path) -> None:
    with (folder / "docs-2.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": 7}\nnonsense\n')
    text = (folder / "p.toml").read_text(encoding="utf-8")
    for allowed, expected in ((2, DONE), (1, FAILED)):
        limits = f"[limits]\nbad_records = {allowed}\n\n[balance]"
        (folder / "p.toml").write_text(text.replace("[balance]", limits), encoding="utf-8")
        done = run("run", "p.toml", f"--store={folder}/stream-{allowed}")
        assert done.returncode == expected, done.stderr
    assert "source 'docs' has 2 bad records of 182, and limits.bad_records allows 1" in done.stderr
    assert "docs-2.jsonl: record 60 at offset" in done.stderr


def test_a_shard_that_is_read_in_the_wrong_way_is_refused_by_name(folder: Path) -> None:
    text = (folder / "p.toml").read_text(encoding="utf-8")
    files = 'files = ["docs-*.jsonl"]'
    text = text.replace(files, files + '\nfields = { text = "tex" }')
    (folder / "p.toml").write_text(text, encoding="utf-8")
    error = fail("run", "p.toml")
    assert "source 'docs': docs-0.jsonl: none of its 60 records can be used" in error
    assert "docs-0.jsonl: record 0 at offset 0" in error


def expected_records_of_good_lines(folder: Path) -> list[int]:
    lengths = []
    for path in [*folder.glob("docs-*.jsonl"), folder / "chats.jsonl"]:
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            texts = [record.get("text")] if "docs" in path.name else [record["q"], record["a"]]
            if all(isinstance(text, str) for text in texts):
                lengths.append(len(ids_of("".join(texts))))
    return lengths


@pytest.mark.parametrize("other", ["", '\n[[source]]\nname = "more"\nfiles = ["docs-2.jsonl"]\n'])
def test_sources_without_a_step_are_refused_by_name(folder: Path, other: str) -> None:
    (folder / "docs-0.jsonl").write_text('{"text": ""}\n' * 7, encoding="utf-8")
    text = (folder / "p.toml").read_text(encoding="utf-8").split("[[source]]")[0]
    text = text.replace("end = [299]", "")
    source = '[[source]]\nname = "docs"\nfiles = ["docs-0.jsonl"]\nweight = 1000\n'
    (folder / "p.toml").write_text(text + source + other, encoding="utf-8")
    said = refusal()
    assert "the sources stop before the first step: source 'docs' has 7 records" in said
    assert "7 are empty and 0 bad" in said
    # Nothing was written down, and the right sources begin.
    (folder / "docs-0.jsonl").write_text('{"text": "some"}\n' * 7, encoding="utf-8")
    assert run_pipeline()["steps"] >= 1
    assert run_pipeline()["end"] == "all steps", "and an ended stream stays one"


@pytest.mark.parametrize(
    ("records", "exhausted", "expected"),
    [
        ("", "stop", "source 'docs' has 0 records"),
        ('{"text": ""}\n' * 7, "repeat", "none of the 7 records of source 'docs' has a token"),
        ('{"text": "a"}\n' * 7, "error", "source 'docs' has no more records in step 0, after 7"),
    ],
    ids=["empty file", "empty records", "too few"],
)
def test_a_source_that_gives_no_step_is_called_by_its_name(
    folder: Path, records: str, exhausted: str, expected: str
) -> None:
    (folder / "docs-0.jsonl").write_text(records, encoding="utf-8")
    text = (folder / "p.toml").read_text(encoding="utf-8").split("[[source]]")[0]
    text = text.replace("end = [299]", "")
    source = '[[source]]\nname = "docs"\nfiles = ["docs-0.jsonl"]\n'
    (folder / "p.toml").write_text(f'{text}{source}exhausted = "{exhausted}"\n', encoding="utf-8")
    assert expected in refusal()


def test_a_stream_of_struck_records_alone_is_no_stream(folder: Path) -> None:
    # Above vocab, which reading them finds.
    write_megatron(folder / "x", [[400, 401, 402], [403, 404, 405]])
    text = (folder / "p.toml").read_text(encoding="utf-8").split("[[source]]")[0]
    text = text.replace('{ kind = "bytes" }', '"ids"')
    (folder / "p.toml").write_text(text + '[[source]]\nname = "x"\nfiles = ["x.bin"]\n')
    said = refusal()
    assert "the sources stop before the first step: source 'x' has 2 records" in said
    assert "2 records of all sources turned out to be bad" in said
    # The right ones may follow: nothing was made by those before.
    write_megatron(folder / "x", [[0, 1, 2], [3, 4, 5]])
    said = refusal()
    assert "the stream holds no step yet, and was begun by other settings of what steps" in said
    assert said.endswith("use another stream, or have these hold instead: --change-from=0\n")
    assert run_pipeline("--change-from=0")["samples"] == 2


def test_splits_share_nothing_and_leave_nothing_out(folder: Path) -> None:
    text = (folder / "p.toml").read_text(encoding="utf-8")
    split = "split = { train = 3, valid = 1 }\n"
    text = text.replace("weight = 0.7\n", "weight = 0.7\n" + split)
    (folder / "p.toml").write_text(text.replace("weight = 0.3\n", "weight = 0.3\n" + split))
    drawn = []
    for name in ("train", "valid"):
        store = folder / "stream"
        result = run_pipeline(f"--split={name}", "--store=./stream")
        drawn.append({piece[:2] for piece in pieces_of(folder, result["steps"])})
        store.rename(folder / name)
    assert not drawn[0] & drawn[1]
    assert drawn[0] | drawn[1] == set(expected_records(folder))
    assert len(drawn[0]) > 2 * len(drawn[1]) > 0
    assert "no source has a part 'test'" in fail("run", "p.toml", "--split=test")


def edit(folder: Path, before: str, after: str) -> None:
    text = (folder / "p.toml").read_text(encoding="utf-8")
    assert text.count(before) == 1
    (folder / "p.toml").write_text(text.replace(before, after), encoding="utf-8")


def refusal(*options: str | Path) -> str:
    done = run("run", "p.toml", *options)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_paths_count_from_the_files_folder(folder: Path, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    os.chdir(elsewhere)
    assert run("run", folder / "p.toml", "--steps=1").returncode == DONE
    assert (folder / "stream" / "FORMAT").exists()
    os.chdir(folder.parent)
    relative = Path(folder.name) / "p.toml"
    assert run("run", relative, "--steps=2").returncode == DONE
    assert succeed_json("store", "show", folder / "stream")["next_step"] == 2
    os.chdir(elsewhere)
    assert run("run", folder / "p.toml", "--steps=1", "--store=./here").returncode == DONE
    assert (elsewhere / "here" / "FORMAT").exists()


def test_a_full_stream_waits_for_a_trim(folder: Path) -> None:
    edit(folder, '"unlimited"', '"unlimited"\nretain.max_bytes = "64 KiB"')
    stream = folder / "stream"
    command = [COMMAND, "run", "p.toml", "--steps=9", "--reclaim-every=100ms"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        line = next(line for line in process.stderr if "waiting for room: " in line)
        assert "./stream holds all that it may, 64 KiB (store.retain.max_bytes); no pin" in line
        assert 2 < succeed_json("store", "show", stream)["next_step"] < 6
        succeed("store", "pin", stream, "--group=g", "--id=a", "--step=2")
        line = next(line for line in process.stderr if "waiting for room: " in line)
        assert "pin 'a' of group 'g' keeps step 2 and what follows" in line
        succeed("store", "pin", stream, "--group=g", "--id=b", "--step=5")
        succeed("store", "unpin", stream, "--group=g", "--id=a")
        process.stderr.read()
    assert process.returncode == DONE
    shown = succeed_json("store", "show", stream)
    assert (shown["first_step"], shown["next_step"]) == (5, 9)


def test_a_sample_timeout_that_is_no_time_is_refused() -> None:
    for text in ("0s", "5", "soon", "-1s"):
        said = refuse("run", "p.toml", f"--sample-timeout={text}")
        assert f"--sample-timeout: '{text}' is no time, as 200ms, 5s or 10min" in said
