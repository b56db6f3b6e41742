# SPDX-License-Identifier: Apache-2.0
"""Builds, runs the tests and counts them; `scripts/test` calls it after `scripts/setup`."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
JOBS = os.cpu_count() or 1

TORCH = ("scripts/setup", "--torch")
TEN_KILLS_EACH = ("--producer-kills=10", "--consumer-kills=10")
BENCHMARKS = ("commit", "memory", "partition", "pipeline", "planner", "sidecars", "start", "store")

Command = tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """Commands that run one after the other until one fails. Where they leave JUnit reports
    their cases are counted, and otherwise the stage counts as one test."""

    name: str
    commands: tuple[Command, ...]
    full: bool = False


@dataclass
class Outcome:
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)


def report_of(stage: str) -> Path:
    return REPORTS / f"{stage}.xml"


def cases_of(stage: str) -> Path:
    """Where the shards of a preset's test programs leave their reports (cmake/module.cmake)."""
    return ROOT / "build" / stage / "cases"


def build(preset: str) -> Command:
    return ("scripts/build", preset)


def ctest(preset: str) -> Command:
    return ("ctest", "--preset", preset, f"-j{JOBS}", "--output-junit", str(report_of(preset)))


def pytest(stage: str, folder: str) -> Command:
    options = ("-q", "-p", "no:cacheprovider", f"--junit-xml={report_of(stage)}")
    # Each file's tests in one process, for they share what they prepare.
    parallel = (f"--numprocesses={JOBS}", "--dist=loadfile")
    return (sys.executable, "-m", "pytest", *options, *parallel, folder)


STAGES = (
    Stage("dev", (build("dev"), ctest("dev"))),
    Stage("python", (pytest("python", "tests"),)),
    Stage("package", (TORCH, pytest("package", "python/tests"))),
    Stage(
        "asan",
        (
            build("asan"),
            ctest("asan"),
            # Simulated histories are the same by either compiler.
            ("build/asan/batchloom", "sim", "store", "--seeds=20"),
        ),
        full=True,
    ),
    Stage("tsan", (build("tsan"), ctest("tsan")), full=True),
    Stage(
        "simulation",
        (build("release"), ("build/release/batchloom", "sim", "store", "--seeds=3000")),
        full=True,
    ),
    Stage(
        "bench",
        tuple(("bench/run", name, "--quick") for name in BENCHMARKS),
        full=True,
    ),
    Stage("chaos", (("scripts/chaos", "store", "--kills=40"),), full=True),
    Stage(
        "chaos-pipeline",
        (("scripts/chaos", "pipeline", "--sources=all", *TEN_KILLS_EACH),),
        full=True,
    ),
    Stage("fuzz", (("scripts/fuzz", "--seconds=8"),), full=True),
)


def count_reports(reports: Sequence[Path]) -> Outcome:
    """Counts the cases of JUnit reports by ctest, pytest or GoogleTest."""
    outcome = Outcome()
    cases = [case for report in reports for case in ElementTree.parse(report).iter("testcase")]
    for case in cases:
        children = {child.tag: child.get("message", "") for child in case}
        # ctest reports a test whose program is missing as skipped.
        lost = "unable to find" in children.get("skipped", "").lower()
        if lost or children.keys() & {"failure", "error"}:
            outcome.failed.append(case.get("name", "?"))
        elif "skipped" in children or case.get("status") in ("disabled", "notrun"):
            outcome.skipped += 1
        elif ".shard-" not in case.get("name", ""):  # Its cases have a report of their own.
            outcome.passed += 1
    return outcome


def run_command(command: Command) -> int:
    print(f"$ {shlex.join(command)}", flush=True)
    try:
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    except FileNotFoundError as error:
        print(f"cannot run it: {error}", flush=True)
        return 127


def fetch_torch() -> subprocess.Popen[bytes]:
    """Begins, while the compiler runs, what a later stage waits for, and tries again if need be."""
    with (REPORTS / "torch.log").open("wb") as log:
        return subprocess.Popen(TORCH, cwd=ROOT, stdout=log, stderr=log)


def run_stage(stage: Stage) -> Outcome:
    report_of(stage.name).unlink(missing_ok=True)
    shutil.rmtree(cases_of(stage.name), ignore_errors=True)
    broken = ""
    for command in stage.commands:
        if status := run_command(command):
            broken = f"`{shlex.join(command)}` exited with {status}"
            break
    reports = [*REPORTS.glob(f"{stage.name}.xml"), *sorted(cases_of(stage.name).glob("*.xml"))]
    outcome = count_reports(reports) if reports else Outcome(passed=int(not broken))
    if broken and not outcome.failed:
        outcome.failed.append(broken)
    return outcome


def summary(outcomes: dict[str, Outcome], seconds: float) -> str:
    """The last line, such as `tests: 412 passed, 0 failed (dev 390, python 22) in 143 s`."""
    passed = sum(outcome.passed for outcome in outcomes.values())
    failed = sum(len(outcome.failed) for outcome in outcomes.values())
    skipped = sum(outcome.skipped for outcome in outcomes.values())
    also = f", {skipped} skipped" if skipped else ""
    parts = ", ".join(
        f"{name} {outcome.passed + len(outcome.failed)}" for name, outcome in outcomes.items()
    )
    return f"tests: {passed} passed, {failed} failed{also} ({parts}) in {seconds:.0f} s"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__)
    parser.add_argument(
        "--full",
        action="store_true",
        help="also sanitizers, the second compiler, simulation, killed processes and fuzzing",
    )
    full = parser.parse_args(arguments).full
    REPORTS.mkdir(parents=True, exist_ok=True)

    start = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    fetching = fetch_torch()
    for stage in STAGES:
        if full or not stage.full:
            began = time.monotonic()
            print(f"== {stage.name}", flush=True)
            outcomes[stage.name] = run_stage(stage)
            print(f"== {stage.name}: {time.monotonic() - began:.0f} s\n", flush=True)

    fetching.wait()
    for name, outcome in outcomes.items():
        for failure in outcome.failed:
            print(f"failed: {name}: {failure}")
    print(summary(outcomes, time.monotonic() - start))
    return int(any(outcome.failed for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
