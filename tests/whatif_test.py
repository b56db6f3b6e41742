# SPDX-License-Identifier: Apache-2.0
"""`batchloom whatif` and `plan explain` from outside."""

import json
import shutil
from pathlib import Path

import pytest
from cli_test import DONE, FAILED, ROOT, as_fields, fail, refuse, run, succeed, succeed_json

LADDER = ["static_cp", "naive_hdp", "dp_balance", "hdp"]
BESIDE = ["none", "two_level"]  # Replayed too, where no strategy is named.
# 64 ranks in nodes of 8; small, so that a what-if takes a moment.
CLUSTER = """axes = "dp=2 cp=32"
cost_model = "{costs}"
[[levels]]
name = "node"
ranks = 8
bandwidth = "400GB/s"
latency = "2us"
[[levels]]
name = "cluster"
ranks = 64
bandwidth = "{bandwidth}"
latency = "5us"
"""
STEPS = ("--lengths=github-like", "--tokens=4M")
SMALL = (*STEPS, "--context=256K", "--steps=2")


def write_cluster(folder: Path, costs: str = "h200-llama7b", bandwidth: str = "50GB/s") -> Path:
    path = folder / "cluster.toml"
    path.write_text(CLUSTER.format(costs=costs, bandwidth=bandwidth))
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return write_cluster(tmp_path)


def whatif_json(*arguments: str | Path) -> dict:
    return json.loads(succeed("whatif", *arguments, "--json=-"))


def rows_of(context: dict) -> dict[str, dict]:
    return {row["strategy"]: row for row in context["strategies"]}


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def test_strategies_are_in_the_published_order(cluster: Path) -> None:
    text = succeed("whatif", *SMALL, f"--cluster={cluster}", "--check")
    lines = [line for line in text.splitlines() if line.split(" ")[0] in LADDER]
    assert [line.split()[0] for line in lines] == LADDER
    assert all("(simulated)" in line for line in lines)
    seconds = [float(line.split()[1]) for line in lines]
    assert seconds == sorted(seconds, reverse=True)
    assert "50 GB/s and 5 us among 64 ranks (cluster)" in text
    assert "2 x those of forward" in text


def test_stages_are_compared_with_their_own_balance(tmp_path: Path) -> None:
    cluster = write_cluster(tmp_path)
    cluster.write_text(cluster.read_text().replace("dp=2 cp=32", "pp=2 dp=1 cp=32"))
    report = whatif_json(*SMALL, f"--cluster={cluster}")
    staged = [*LADDER[:2], "pp_balance", "hdp"]
    assert list(rows_of(report["contexts"][0])) == [*staged, *BESIDE]


def test_the_papers_ratios_stand_beside_ours() -> None:
    text = succeed("whatif", "--lengths=github-like", "--steps=1", "--check")
    (line,) = [line for line in text.splitlines() if line.startswith("dp_balance ")]
    assert "up to 7.89" in line
    assert "ByteScale (arXiv 2502.21231)" in text
    (row,) = [line for line in text.splitlines() if line.startswith("static_cp ")]
    assert "1.00 (simulated)" in row
    assert "samples of up to 8192 tokens stay whole" in text
    assert "in shares of at least 4096" in text
    assert "takes fewer ranks with activations on the host" in text
    assert "over none" in text.splitlines()[3]
    (balanced,) = [line for line in text.splitlines() if line.startswith("two_level ")]
    assert balanced.count("(simulated)") == 2
    assert "up to 4.5 over none" in balanced
    assert "Lengths have no pictures" in text


def test_named_strategies_are_all_that_is_replayed(cluster: Path) -> None:
    text = succeed("whatif", *SMALL, f"--cluster={cluster}", f"--strategies={','.join(LADDER)}")
    assert "over none" not in text.splitlines()[3]
    assert "two_level " not in text


def test_what_nobody_named_and_cannot_plan_is_left_out(cluster: Path) -> None:
    # Groups of 32 ranks hold 256K tokens; the others may take all 64.
    lengths = cluster.with_name("lengths.txt")
    lengths.write_text("300000\n5000\n")
    arguments = (f"--lengths={lengths}", "--context=512K", "--tokens=305000", "--steps=1",
                 f"--cluster={cluster}")
    assert list(rows_of(whatif_json(*arguments)["contexts"][0])) == LADDER
    assert "does not fit" not in succeed("whatif", *arguments)


def test_balance_stands_beside_megascale_datas(cluster: Path) -> None:
    arguments = (*STEPS, "--context=16K", "--steps=1", f"--cluster={cluster}",
                 "--strategies=none,two_level")
    text = succeed("whatif", *arguments)
    (row,) = [line for line in text.splitlines() if line.startswith("two_level ")]
    assert "up to 4.5 over none" in row
    assert "over none" in text.splitlines()[3]
    assert "MegaScale-Data (arXiv 2504.09844)" in text
    assert "Lengths have no pictures" in text
    rows = rows_of(whatif_json(*arguments)["contexts"][0])
    balanced = rows["two_level"]
    published = (balanced["speedup_in_the_paper"], balanced["over_in_the_paper"])
    assert published == ("up to 4.5", "none")
    ratio = rows["none"]["step_ns"][0] / balanced["step_ns"][0]
    assert balanced["speedup_over_none_simulated"] == pytest.approx(ratio, abs=1e-4)
    assert ratio > 1


def given_ratios(text: str, lengths: str) -> list[str]:
    """Of the design page: ours over static_cp, naive_hdp and dp_balance."""
    table = text.split(f"batchloom whatif --lengths={lengths} --assumptions")[1]
    (row, *_) = [line for line in table.splitlines() if line.startswith("| as given |")]
    return [cell.strip() for cell in row.split("|")[3:6]]


@pytest.mark.parametrize("lengths", ["byted-like", "github-like"])
def test_the_design_page_has_todays_figures(lengths: str) -> None:
    page = (ROOT / "docs" / "design" / "0007-what-if.md").read_text()
    rows = rows_of(whatif_json(f"--lengths={lengths}")["contexts"][0])
    total = {name: sum(row["step_ns"]) for name, row in rows.items()}
    ours = [f"{total[name] / total['hdp']:.2f}" for name in LADDER[:3]]
    assert given_ratios(page, lengths) == ours, "made anew by the command that stands there"


def toml_block(page: str) -> str:
    text = (ROOT / "docs" / "formats" / page).read_text()
    return text.split("```toml\n")[1].split("```")[0]


def test_the_pages_show_what_is_read(tmp_path: Path) -> None:
    """The built-in cluster stands on its page, and a cost model that a cluster may name on its."""
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(toml_block("cluster.md"))
    assert whatif_json(*SMALL, f"--cluster={cluster}") == whatif_json(*SMALL)
    (tmp_path / "ours.toml").write_text(toml_block("cost_model.md"))
    cluster.write_text(toml_block("cluster.md").replace("h200-llama7b", "ours.toml"))
    assert whatif_json(*SMALL, f"--cluster={cluster}")["cluster"]["cost_model"] == "ours"


def test_another_order_fails_after_its_table(cluster: Path) -> None:
    done = run("whatif", *SMALL, f"--cluster={cluster}", "--check", "--strategies=hdp,static_cp")
    assert done.returncode == FAILED
    assert "static_cp" in done.stdout
    assert "the order of strategies needs naive_hdp, which was not replayed" in done.stderr


def test_equal_strategies_are_no_order(tmp_path: Path) -> None:
    # One rank: whoever plans, it computes all.
    cluster = tmp_path / "one.toml"
    cluster.write_text(CLUSTER.format(costs="h200-llama7b", bandwidth="50GB/s").replace(
        "dp=2 cp=32", "dp=1").replace("ranks = 8", "ranks = 1").replace("ranks = 64", "ranks = 1"))
    done = run("whatif", "--lengths=github-like", "--context=8K", "--tokens=8K", "--steps=1",
               f"--cluster={cluster}", "--check")
    assert done.returncode == FAILED, done.stdout
    assert done.stderr.startswith("batchloom: invalid: context 8K: naive_hdp takes ")
    assert "which is not less than" in done.stderr


def test_json_has_what_the_table_has(cluster: Path, tmp_path: Path) -> None:
    report = whatif_json(*STEPS, "--steps=2", "--context=64K,256K", f"--cluster={cluster}")
    assert report["simulated"] is True
    assert report["cluster"]["hdp_ranks"] == 64
    assert [context["context_tokens"] for context in report["contexts"]] == [64 << 10, 256 << 10]
    for context in report["contexts"]:
        rows = rows_of(context)
        assert list(rows) == [*LADDER, *BESIDE]
        for row in rows.values():
            assert len(row["step_ns"]) == 2
            ratio = sum(rows["static_cp"]["step_ns"]) / sum(row["step_ns"])
            assert row["speedup_over_static_cp_simulated"] == pytest.approx(ratio, abs=1e-4)
            gap = sum(row["step_ns"]) / sum(context["bound_ns"])
            assert row["gap"] == pytest.approx(gap, abs=1e-4)
            spans = row["timeline"]
            assert max(spans["end_ns"]) == row["step_ns"][0]
            assert set(spans["rank"]) <= set(range(64))
    written = tmp_path / "report.json"
    text = succeed("whatif", *SMALL, f"--cluster={cluster}", f"--json={written}")
    assert "strategy" in text
    assert len(json.loads(written.read_text())["contexts"]) == 1


def test_the_same_question_has_the_same_answer(cluster: Path) -> None:
    one = succeed("whatif", *SMALL, f"--cluster={cluster}", "--json=-")
    assert one == succeed("whatif", *SMALL, f"--cluster={cluster}", "--json=-")
    other = succeed("whatif", *SMALL, f"--cluster={cluster}", "--json=-", "--seed=9")
    assert one != other


def test_faster_links_help_static_groups_most(tmp_path: Path) -> None:
    def ratio(bandwidth: str) -> float:
        cluster = write_cluster(tmp_path, bandwidth=bandwidth)
        rows = rows_of(whatif_json(*SMALL, f"--cluster={cluster}")["contexts"][0])
        return rows["hdp"]["speedup_over_static_cp_simulated"]

    assert ratio("25GB/s") > ratio("50GB/s") > ratio("100GB/s") > 1


def test_assumptions_are_varied_one_at_a_time(cluster: Path) -> None:
    arguments = (*STEPS, "--context=256K", "--steps=1", f"--cluster={cluster}", "--assumptions")
    variants = whatif_json(*arguments)["contexts"][0]["assumptions"]
    assert variants[0]["assumption"] == "as given"
    values = {(row["assumption"], row["value"]) for row in variants}
    assert {("bandwidth of cluster", "25 GB/s"), ("bytes of backward", "4 x forward")} <= values
    (staged,) = [row for row in variants if row["assumption"] == "pipeline stages"]
    assert staged["value"] == "2, with pp_balance"
    assert [row["strategy"] for row in staged["strategies"]] == [*LADDER[:2], "pp_balance", "hdp"]
    assert len(values) == len(variants)
    assert all(len(row["strategies"]) in (0, len(LADDER)) for row in variants)
    text = succeed("whatif", *arguments)
    assert "hdp over static_cp (simulated)" in text
    assert "hdp over none" not in text


@pytest.mark.parametrize("strategies", ["all", "lpt,hdp"])
def test_who_cannot_plan_says_so(cluster: Path, strategies: str) -> None:
    # Groups of 32 ranks hold 256K tokens; all 64 hold a sample of 300,000.
    lengths = cluster.with_name("lengths.txt")
    lengths.write_text("300000\n5000\n")
    arguments = (f"--lengths={lengths}", "--context=512K", "--tokens=305000", "--steps=1",
                 f"--cluster={cluster}", f"--strategies={strategies}")
    done = run("whatif", *arguments)
    message = "lpt, step 0: sample 0:0:"
    if strategies == "all":
        assert done.returncode == DONE
        assert message in done.stdout
    else:
        assert (done.returncode, done.stdout) == (FAILED, "")
        assert message in done.stderr


def test_a_plan_is_explained(cluster: Path) -> None:
    explain = ("plan", "explain", "--lengths=byted-like", "--context=256K", "--tokens=4M")
    fields = succeed_json(*explain, f"--cluster={cluster}")
    assert fields["strategy"] == "hdp"
    assert fields["tokens"] == 4 << 20
    assert fields["bound_term"] in {"work", "longest"}
    assert 1 <= fields["gap_of_makespan"] <= fields["gap_of_step"]
    assert fields["imbalance_before"] > fields["imbalance_after"] >= 1
    parts = [fields[f"{part}_ms_mean"] for part in ("compute", "ring_wait", "copy_wait", "idle")]
    assert sum(parts) == pytest.approx(fields["step_ms_simulated"], rel=1e-5)
    assert [row["level"] for row in fields["ring_bytes"]] == ["node", "cluster"]
    text = succeed(*explain, f"--cluster={cluster}")
    assert list(as_fields(text)) == list(fields)
    grouped = succeed_json(*explain, f"--cluster={cluster}", "--strategy=two_level")
    assert grouped["strategy"] == "two_level"
    assert grouped["step_ms_simulated"] > fields["step_ms_simulated"]


def test_all_of_a_file_is_one_step(cluster: Path, tmp_path: Path) -> None:
    lengths = tmp_path / "lengths.csv"
    lengths.write_text("name,tokens\na,7000\n\"b,c\",500\nd,90000\n")
    explain = ("plan", "explain", f"--lengths={lengths}", "--column=tokens", f"--cluster={cluster}")
    fields = succeed_json(*explain)
    assert (fields["samples"], fields["tokens"], fields["longest_sample"]) == (3, 97_500, 90_000)
    assert succeed_json(*explain, "--context=8K")["samples"] == 2
    assert "no sample of at most 100 tokens" in fail(*explain, "--context=100")


def test_a_stored_plan_is_explained(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    done = run("produce", stream, "--synthetic", "--producer=a", "--steps=3", "--ranks=4", "--ring",
               "--lead=unlimited", "--fsync=none")
    assert done.returncode == DONE, done.stderr
    shown = succeed_json("store", "show", stream, "--step=1")
    fields = succeed_json("plan", "explain", f"--store={stream}", "--step=1")
    assert (fields["strategy"], fields["topology"]) == (shown["strategy"], shown["topology"])
    assert fields["samples"] == shown["samples"]
    assert fields["bound_term"] == "none"
    assert "lower_bound_ms" not in fields
    assert "step 9" in fail("plan", "explain", f"--store={stream}", "--step=9")
    shutil.rmtree(stream)
    assert str(stream) in fail("plan", "explain", f"--store={stream}", "--step=1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("whatif",), "--lengths=NAME|FILE is missing"),
        (("whatif", "--lengths=a", "--context=2m"), "--context: '2m' is no number of tokens"),
        (("whatif", "--lengths=a", "--context=2M,1M"), "--context: 2M,1M does not ascend"),
        (("whatif", "--lengths=a", "--context=8G"), "from 1 to 4294967295"),
        (("whatif", "--lengths=a", "--tokens=0"), "--tokens: '0' is no number of tokens"),
        (("whatif", "--lengths=a", "--steps=0"), "--steps"),
        (("whatif", "--lengths=a", "--strategies=hdp,best"), "no strategy is called 'best'; there"),
        (("whatif", "--lengths=a", "--strategies=two_module"), "lengths have no pictures"),
        (("plan", "explain", "--lengths=a", "--strategy=two_module"), "lengths have no pictures"),
        (("whatif", "--lengths=a", "--strategies=hdp,hdp"), "hdp stands there twice"),
        (("whatif", "--lengths=a", "--json="), "--json: 1 required FILE missing"),
        (("plan", "explain"), "--lengths=NAME|FILE or --store=URL is missing"),
        (("plan", "explain", "--store=./a"), "--store needs --step=N"),
        (("plan", "explain", "--store=./a", "--step=1", "--tokens=8"), "excludes"),
        (("plan", "explain", "--lengths=a", "--strategy=best"), "no strategy is called 'best'"),
        (("calibrate",), "FILE"),
        (("calibrate", "a.csv", "--out=model"), "'model' does not end in .toml"),
    ],
)
def test_wrong_usage_is_named(arguments: tuple[str, ...], message: str) -> None:
    assert message in refuse(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lengths=nobody",), "nobody: there is no such file, and no distribution of that name"),
        (("--lengths=wiki", "--column=a"), "wiki is a distribution, which has no columns"),
        (("--lengths=wiki", "--cluster=no.toml"), "no.toml: there is no such file"),
        (("--lengths=a.parquet",), "a.parquet: whose tokens? Parquet files need --tokenizer=bytes"),
        (("--lengths=a.json",), "such JSON files cannot be read yet"),
        (("--lengths=llama3-sft", "--context=100"), "a context of 100 tokens holds no sample"),
    ],
)
def test_lengths_that_cannot_be_are_named(arguments: tuple[str, ...], message: str) -> None:
    assert message in fail("whatif", *arguments)
    assert message in fail("plan", "explain", *arguments)


def test_longer_samples_are_left_out_and_counted(cluster: Path) -> None:
    lengths = cluster.with_name("lengths.txt")
    lengths.write_text("5000\n6000\n70000\n")
    arguments = (f"--lengths={lengths}", f"--cluster={cluster}", "--context=64K", "--tokens=44000",
                 "--steps=1", "--strategies=hdp")
    text = succeed("whatif", *arguments)
    assert "context 64K: 1 longer samples are left out" in text
    assert whatif_json(*arguments)["contexts"][0]["left_out"] == 1
