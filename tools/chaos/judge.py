# SPDX-License-Identifier: Apache-2.0
"""What must have come out, from the configuration alone, and what is wrong with what did."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

from chaos.settings import Settings, StreamSettings
from chaos.step_logs import RankLog

Row = dict[str, Any]
# Counts of `store verify`: what the last removal should have removed.
LEFT_OVER = (
    "orphan_segments",
    "orphan_states",
    "orphan_batches",
    "orphan_memberships",
    "trimmed_segments",
    "trimmed_batches",
    "leftover_slots",
)
BATCH = re.compile(
    r"d/../(?P<producer>[a-z0-9_-]+)\.(?P<term>\d+)\.(?P<seq>\d+)\.[0-9a-f]{16}\.tgb"
)


def run_json(command: list[str]) -> list[Row]:
    """The rows that a command prints; it must end well."""
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def verify_payload(settings: StreamSettings) -> Row:
    """What `store verify` says of the whole stream, every byte of every batch read; also where it
    found something wrong."""
    command = settings.on_stream("store", "verify", "--depth=payload", "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def expected_hashes(settings: Settings, steps: int) -> list[list[str]]:
    """By rank, then by step. One producer writes batches 0, 1, 2, ..., so its steps are the
    stream's."""
    command = [str(settings.command), "sim", "batches", f"--steps={steps}", *settings.synthetic()]
    hashes: list[list[str]] = [[] for _ in range(settings.ranks)]
    for row in run_json(command):
        hashes[row["rank"]].append(row["hash"])
    return hashes


def judge_log(log: RankLog, expected: list[str]) -> list[str]:
    """Every step, once, as it must be."""
    problems = list(log.problems)
    if log.position != len(expected):
        problems.append(f"{log.path.name}: ends at step {log.position}, not at {len(expected)}")
    for step, (seen, wanted) in enumerate(zip(log.hashes, expected)):
        if seen != wanted:
            problems.append(f"{log.path.name}: step {step} is {seen}, not {wanted}")
            break
    return problems


def judge_report(report: Row) -> list[str]:
    """Of `store verify`, after the last removal."""
    problems = list(report["problems"])
    for count in LEFT_OVER:
        if report[count]:
            problems.append(f"verify: {count} is {report[count]}")
    if report["foreign"]:
        problems.append(f"verify: foreign objects: {report['foreign']}")
    return problems


def count_orphans(removed: Iterable[str], first_step: int, steps_per_object: int) -> int:
    """How many of the batch objects that were removed had never been committed. Of each sequence
    number one was; it may be removed once all of its steps are below `first_step`."""
    by_seq = Counter(int(match["seq"]) for key in removed if (match := BATCH.fullmatch(key)))
    return sum(
        count - int((seq + 1) * steps_per_object <= first_step) for seq, count in by_seq.items()
    )
