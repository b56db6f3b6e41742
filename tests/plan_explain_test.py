# SPDX-License-Identifier: Apache-2.0
"""`batchloom plan explain` of streams that `batchloom run` makes, and `whatif` and `plan explain`
of the records that it reads. What must come out is reckoned here, from files and pieces."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from cli_test import DONE, as_fields, fail, run, succeed, succeed_json
from pipeline_test import PART, folder, run_pipeline, write_pipeline

__all__ = ["folder"]  # A fixture.

STEPS = 4
# Ranks as the pipelines have them, two on each node.
CLUSTER = """axes = "dp=4"
capacity_tokens = 512
min_share_tokens = 64
cost_model = "bytescale-fig6"
[[levels]]
name = "node"
ranks = 2
bandwidth = "400GB/s"
latency = "2us"
[[levels]]
name = "cluster"
ranks = 4
bandwidth = "50GB/s"
latency = "5us"
"""


def make_stream(folder: Path, **settings: str) -> None:
    write_pipeline(folder, **settings)
    shutil.rmtree(folder / "stream", ignore_errors=True)
    assert run_pipeline(f"--steps={STEPS}")["steps"] == STEPS


def explain(folder: Path, step: int, *options: str) -> dict:
    stored = (f"--store={folder / 'stream'}", f"--step={step}")
    return succeed_json("plan", "explain", *stored, *options)


def check_against_pieces(folder: Path, step: int, told: dict) -> None:
    """What the plan is made of is what `store show` says of every piece."""
    shown = succeed_json("store", "show", folder / "stream", f"--step={step}")
    samples = {piece["sample"]: piece for piece in shown["pieces"]}
    tokens = {name: piece["sample_tokens"] for name, piece in samples.items()}
    assert (told["strategy"], told["topology"]) == (shown["strategy"], shown["topology"])
    assert told["samples"] == shown["samples"] == len(samples)
    assert told["tokens"] == sum(tokens.values())
    assert told["longest_sample"] == max(tokens.values())
    rings = [len(piece["ring"].split()) for piece in shown["pieces"]]
    assert told["largest_ring"] == max(rings)
    of_source: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for name, piece in samples.items():
        of_source[piece["source"]] += tokens[name]
        count[piece["source"]] += 1
    assert [row["source"] for row in told["sources"]] == ["docs", "chats"]
    for row in told["sources"]:
        assert row["samples"] == count[row["source"]]
        assert row["tokens"] == of_source[row["source"]]
        share = of_source[row["source"]] / told["tokens"]
        assert row["share_of_tokens"] == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize("strategy", ["two_level", "hdp"])
def test_a_runs_steps_are_explained(folder: Path, strategy: str) -> None:
    make_stream(folder, strategy=strategy)
    for step in range(STEPS):
        told = explain(folder, step)
        check_against_pieces(folder, step, told)
        assert told["costs"] == "h200-llama7b"
        assert told["bound_term"] in {"work", "longest"}
        assert 1 <= told["gap_of_makespan"]
        assert told["step_ms_simulated"] == pytest.approx(told["makespan_ms"], rel=1e-6)
        assert told["imbalance_before"] >= told["imbalance_after"] >= 1
        assert told["links"] == "none: rings take no time"
        assert [row["level"] for row in told["ring_bytes"]] == ["all"]
    text = succeed("plan", "explain", f"--store={folder / 'stream'}", "--step=0")
    assert list(as_fields(text)) == list(explain(folder, 0))


def test_a_stored_plan_is_put_onto_a_cluster(folder: Path) -> None:
    # On 4 ranks that share samples of 256 tokens in rings.
    make_stream(folder, axes="dp=1 cp=4")
    alone = explain(folder, 1)
    cluster = folder / "cluster.toml"
    cluster.write_text(CLUSTER.replace("50GB/s", "5MB/s"))
    told = explain(folder, 1, f"--cluster={cluster}")
    assert told["costs"] == "bytescale-fig6"
    assert told["links"] == "as the cluster has them"
    assert [row["level"] for row in told["ring_bytes"]] == ["node", "cluster"]
    assert sum(row["bytes"] for row in told["ring_bytes"]) > 0
    assert told["ring_wait_ms_mean"] > alone["ring_wait_ms_mean"] == 0
    check_against_pieces(folder, 1, told)
    cluster.write_text(CLUSTER.replace("dp=4", "dp=8").replace("ranks = 4", "ranks = 8"))
    stored = (f"--store={folder / 'stream'}", "--step=1")
    complaint = fail("plan", "explain", *stored, f"--cluster={cluster}")
    assert "a cluster of 8 ranks, and the plan is for 4 (dp=1 cp=4)" in complaint


def test_a_timeline_is_each_ranks(folder: Path) -> None:
    make_stream(folder, axes="dp=2 cp=2")
    told = explain(folder, 2, "--timeline")
    spans = told["timeline"]
    assert {span["rank"] for span in spans} == set(range(4))
    busy = dict.fromkeys(range(4), 0.0)
    until = dict.fromkeys(range(4), 0.0)
    for span in spans:
        assert span["begin_ms"] >= until[span["rank"]] - 1e-9, "one thing at a time"
        until[span["rank"]] = span["end_ms"]
        busy[span["rank"]] += span["end_ms"] - span["begin_ms"]
    assert max(until.values()) == pytest.approx(told["step_ms_simulated"], abs=0.002)
    mean = sum(busy.values()) / 4
    parts = sum(told[f"{part}_ms_mean"] for part in ("compute", "ring_wait", "copy_wait"))
    assert mean == pytest.approx(parts, abs=0.002 * len(spans))
    phases = Counter((span["rank"], span["phase"]) for span in spans)
    assert all(phases[rank, "forward"] == phases[rank, "backward"] for rank in range(4))


def test_a_plan_is_timed_by_the_costs_that_made_it(folder: Path) -> None:
    timings = folder / "timings.csv"
    timings.write_text(
        "kind,tokens,forward_ms,backward_ms\nattention,64,0.1,0.2\nlinear,64,0.1,0.2\n"
    )
    succeed("calibrate", timings, f"--out={folder / 'ours.toml'}", "--name=ours")
    write_pipeline(folder)
    pipeline = folder / "p.toml"
    pipeline.write_text(
        pipeline.read_text().replace("[balance]", '[balance]\ncost_model = "ours.toml"')
    )
    assert run_pipeline("--steps=1")["steps"] == 1
    (folder / "ours.toml").unlink()
    told = explain(folder, 0)
    assert told["costs"] == "ours"
    assert told["step_ms_simulated"] == pytest.approx(told["makespan_ms"], rel=1e-6)
    cluster = folder / "cluster.toml"
    cluster.write_text(CLUSTER)
    assert explain(folder, 0, f"--cluster={cluster}")["costs"] == "bytescale-fig6"


def whatif_json(*arguments: str | Path) -> dict:
    """Indexing is told on stderr."""
    done = run("whatif", *arguments, "--json=-")
    assert done.returncode == DONE, done.stderr
    return json.loads(done.stdout)


def test_a_pipelines_lengths_are_those_that_it_draws(folder: Path) -> None:
    make_stream(folder)
    cluster = folder / "cluster.toml"
    cluster.write_text(CLUSTER)
    arguments = ("--lengths=p.toml", f"--cluster={cluster}", "--strategies=two_level")
    report = whatif_json(*arguments)
    assert (report["step"], report["tokens"], report["seed"]) == ("4K tokens", 4096, 17)
    (context,) = report["contexts"]
    assert (context["context_tokens"], context["steps"]) == (PART, 4)
    # The first step that would be run is the first one that was.
    told = succeed_json("plan", "explain", "--lengths=p.toml", f"--cluster={cluster}")
    stored = explain(folder, 0)
    for field in ("samples", "tokens", "longest_sample"):
        assert told[field] == stored[field]
    shorter = whatif_json(*arguments, "--context=64", "--tokens=2K", "--seed=1", "--steps=1")
    assert (shorter["step"], shorter["seed"]) == ("2K tokens", 1)
    assert shorter["contexts"][0]["context_tokens"] == 64
    text = succeed("whatif", *arguments, "--steps=1000")
    assert "1000 steps of 4K tokens" in text
    assert "context 256: the sources end after " in text


def test_a_pipeline_is_indexed_where_it_is_not(folder: Path) -> None:
    arguments = ("plan", "explain", "--lengths=p.toml", f"--index-folder={folder / 'indexes'}")
    (folder / "indexes").mkdir()
    cluster = folder / "cluster.toml"
    cluster.write_text(CLUSTER)
    done = run(*arguments, f"--cluster={cluster}")
    assert done.returncode == DONE
    assert "indexed docs-0.jsonl: 60 records" in done.stderr
    assert len(list((folder / "indexes").glob("*.blidx"))) == 4
    assert not list(folder.glob("*.blidx"))
    assert succeed(*arguments, f"--cluster={cluster}") == done.stdout


def lengths_of(folder: Path, pattern: str, *fields: str) -> list[int]:
    found = []
    for path in sorted(folder.glob(pattern)):
        with path.open(encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines if line.strip()]
        found += [sum(len(record[field].encode()) for field in fields) for record in records]
    return [length for length in found if length > 0]


def test_json_lines_have_the_lengths_of_their_tokens(folder: Path) -> None:
    cluster = folder / "cluster.toml"
    cluster.write_text(CLUSTER)
    common = ("plan", "explain", f"--cluster={cluster}", "--tokenizer=bytes")
    told = succeed_json(*common, "--lengths=docs-*.jsonl")
    expected = lengths_of(folder, "docs-*.jsonl", "text")
    assert told["samples"] == len(expected)
    assert told["tokens"] == sum(expected)
    assert told["longest_sample"] == max(expected)
    told = succeed_json(*common, f"--lengths={folder / 'chats.jsonl'}", "--field=q,a")
    assert told["tokens"] == sum(lengths_of(folder, "chats.jsonl", "q", "a"))
    (folder / "chats.jsonl").rename(folder / "CHATS.JsonL")
    told = succeed_json(*common, f"--lengths={folder / 'CHATS.JsonL'}", "--field=a")
    assert told["tokens"] == sum(lengths_of(folder, "CHATS.JsonL", "a"))
    assert not list(folder.glob("*.blidx")), "a question leaves nothing beside the data"
    report = whatif_json("--lengths=docs-[01].jsonl", "--tokenizer=bytes", "--strategies=hdp",
                         f"--cluster={cluster}", "--context=1K", "--tokens=8K", "--steps=2")
    assert report["lengths"] == "docs-[01].jsonl"


def test_json_lines_may_hold_ids(folder: Path) -> None:
    path = folder / "ids.jsonl"
    path.write_text('{"tokens": [1, 2, 2000000000]}\n{"tokens": [7]}\n')
    arguments = ("plan", "explain", f"--lengths={path}", "--tokenizer=ids")
    assert succeed_json(*arguments)["tokens"] == 4
    assert f"{path}: record 0 at offset 0: " in fail(*arguments, "--field=ids")


def test_files_of_lengths_are_read_by_pattern(folder: Path) -> None:
    (folder / "a-1.txt").write_text("5\n")
    (folder / "a-2.txt").write_text("6\n7\n")
    assert succeed_json("plan", "explain", "--lengths=a-?.txt")["tokens"] == 18
    (folder / "b[1].txt").write_text("9\n")
    assert succeed_json("plan", "explain", "--lengths=b[1].txt")["tokens"] == 9, "a name, too"
    (folder / "a-3.txt").write_text("x\n")
    assert "a-3.txt: line 1: 'x' is no number" in fail("plan", "explain", "--lengths=a-*.txt")
    assert "z-*.txt: no plain file has such a name" in fail("whatif", "--lengths=z-*.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": 5}\n', "record 1 at offset 14: "),
        ('{"text": "a"}\n{"text"', "record 1 at offset 14: "),
        ('{"txt": "a"}\n', "record 0 at offset 0: "),
        ("", "no lengths in it; expected records of JSON Lines with tokens"),
        ("\x1f\x8b", "offset 0: "),
    ],
)
def test_wrong_json_lines_are_named_by_the_reader(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content.encode("latin-1"))
    for command in (("whatif",), ("plan", "explain")):
        complaint = fail(*command, f"--lengths={path}", "--tokenizer=bytes")
        assert f"{path}: {message}" in complaint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lengths=docs-0.jsonl",), "docs-0.jsonl: whose tokens? JSON Lines need --tokenizer="),
        (("--lengths=wiki", "--tokenizer=bytes"), "wiki is a distribution; they are for files"),
        (("--lengths=p.toml", "--tokenizer=bytes"), "p.toml is a pipeline, which has its own"),
        (("--lengths=p.toml", "--column=a"), "p.toml is a pipeline, which has no columns"),
        (("--lengths=wiki", "--index-folder=a"), "wiki is no pipeline, and nothing else is index"),
        (("--lengths=timings.txt", "--tokenizer=bytes"), "--tokenizer and --field are for files"),
        (("--lengths=none.toml",), "none.toml: there is no such file"),
        (("--lengths=p.toml", "--context=8K"), "p.toml: "),
    ],
)
def test_what_does_not_go_together_is_named(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "timings.txt").write_text("5\n")
    assert message in fail("whatif", *arguments)
    assert message in fail("plan", "explain", *arguments)


def test_a_pipelines_faults_are_those_of_its_file(folder: Path) -> None:
    pipeline = folder / "p.toml"
    pipeline.write_text(pipeline.read_text().replace("tokens = 4096", "token = 4096"))
    assert "step.tokens is missing" in fail("whatif", "--lengths=p.toml")
    write_pipeline(folder)
    (folder / "chats.jsonl").unlink()
    assert "no plain file has such a name" in fail("whatif", "--lengths=p.toml")


def test_wrong_usage_is_named() -> None:
    for arguments, message in [
        (("--lengths=a.jsonl", "--tokenizer=gpt"), "--tokenizer: 'gpt' is none; there are bytes"),
        (("--lengths=a.jsonl", "--field=a"), "--field requires --tokenizer"),
        (("--lengths=a.jsonl", "--tokenizer=bytes", "--field=a,b,c"), "'a,b,c' is neither"),
        (("--lengths=a.jsonl", "--tokenizer=ids", "--field=a,b"), "hold them in one field"),
    ]:
        done = run("whatif", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
