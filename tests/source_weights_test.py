# SPDX-License-Identifier: Apache-2.0
"""Another weight of a source, of any format: refused with the difference, and where it is to hold,
from exactly that step on."""

from pathlib import Path

import pytest
from cli_test import DONE, FAILED, run, succeed_json
from shards import every_format
from source_faults_test import PIPELINE, folder, hashes_of, pristine

__all__ = ["folder", "pristine"]  # Fixtures.

OTHER_WEIGHT = 0.9
CHANGE = 3
STEPS = 6


def share_of(source: str, stream: Path, steps: range) -> float:
    """Of the tokens of all steps together."""
    shown = [succeed_json("store", "show", stream, f"--step={step}") for step in steps]
    pieces = [piece for step in shown for piece in step["pieces"]]
    tokens = [piece["hi"] - piece["lo"] for piece in pieces if piece["source"] == source]
    return sum(tokens) / sum(piece["hi"] - piece["lo"] for piece in pieces)


@pytest.mark.parametrize("source", every_format.SOURCES)
def test_another_weight_holds_from_exactly_that_step(
    pristine: tuple[Path, list[dict]], folder: Path, source: str
) -> None:
    def run_to(step: int, *options: str):
        options = (f"--steps={step}", "--fsync=none", "--lead=unlimited", *options)
        return run("run", folder / "p.toml", *options)

    assert run_to(CHANGE).returncode == DONE
    before = every_format.SOURCES[source].weight
    text = every_format.to_toml("data", "bytes", {source: OTHER_WEIGHT})
    (folder / "p.toml").write_text(PIPELINE + text, encoding="utf-8")
    refused = run_to(STEPS)
    assert refused.returncode == FAILED
    assert f"\n  source.{source}.weight: {before} -> {OTHER_WEIGHT}\n" in refused.stderr
    assert f"--change-from={CHANGE}\n" in refused.stderr
    done = run_to(STEPS, f"--change-from={CHANGE}")
    assert done.returncode == DONE, done.stderr
    stream = folder / "stream"
    hashes = hashes_of(stream, f"--steps={STEPS}")
    assert hashes[:CHANGE] == pristine[1][:CHANGE]
    assert hashes[CHANGE] != pristine[1][CHANGE]
    weights = sum(one.weight for one in every_format.SOURCES.values())
    expected = OTHER_WEIGHT / (weights - before + OTHER_WEIGHT)
    assert share_of(source, stream, range(CHANGE)) == pytest.approx(before / weights, abs=0.04)
    assert share_of(source, stream, range(CHANGE, STEPS)) == pytest.approx(expected, abs=0.04)
