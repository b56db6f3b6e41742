# SPDX-License-Identifier: Apache-2.0
"""Pins and live cursors, and what they keep from `store gc`, by the command."""

import json
import time
from collections import Counter
from pathlib import Path

from cli_batches_test import FAST, Start, consume, expected, pristine, start, stream
from cli_test import DONE, fail, keys_of, succeed_json, succeed_rows

__all__ = ["pristine", "start", "stream"]  # Fixtures.

def test_a_consumer_pins_as_checkpoints_do(stream: Path) -> None:
    consume(stream, 0, "--group=job", "--pin-every=2", "--keep=3", "--report", "--steps=9")
    pins = [row for row in succeed_rows("store", "pins", stream) if row["kind"] == "pin"]
    assert [(row["id"], row["step"]) for row in pins] == [
        ("step-4", 4),
        ("step-6", 6),
        ("step-8", 8),
    ]


def test_a_checkpoint_is_not_missed_where_a_step_is_skipped(stream: Path) -> None:
    skip = succeed_json("store", "skip", stream, "--step=3", FAST)
    options = ("--group=job", "--pin-every=4", "--keep=9", f"--min-slot={skip['slot']}")
    lines, _ = consume(stream, 0, *options)
    assert [line["step"] for line in lines] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    # After step 2 the next one is 3, and after step 4 it is 5.
    assert [row["step"] for row in succeed_rows("store", "pins", stream)] == [5, 8]


def test_a_job_that_goes_back_keeps_the_pins_it_makes(stream: Path) -> None:
    options = ("--group=job", "--pin-every=2", "--keep=2")
    consume(stream, 0, *options)
    consume(stream, 0, *options, "--start=1", "--steps=1")
    assert [row["step"] for row in succeed_rows("store", "pins", stream)] == [2, 10]


def test_pins_stop_trimming(stream: Path) -> None:
    for name, step in (("a", 5), ("b", 8)):
        pin = succeed_json(
            "store", "pin", stream, "--group=job", f"--id={name}", f"--step={step}", FAST
        )
        assert pin["key"] in keys_of(stream)
    would = succeed_rows("store", "gc", stream, "--dry-run")
    assert would[-1]["steps_trimmed"] == 5
    assert all((stream / row["key"]).exists() and row["reason"] for row in would[:-1])
    report = succeed_json("store", "gc", stream, "--yes", FAST)
    # Step 4 shares its object with step 5, which is pinned.
    assert (report["first_step"], report["batches_removed"]) == (5, 2)
    assert Counter(row["kind"] for row in would[:-1])["batch"] == 2
    lines, _ = consume(stream, 0, "--start=5")
    assert [line["hash"] for line in lines] == expected(10, 0)[5:]
    complaint = fail("consume", stream, "--rank=0", "--start=4")
    assert "not_found" in complaint and "5" in complaint
    late = fail("store", "pin", stream, "--group=job", "--id=late", "--step=3", FAST)
    assert "not_found" in late and "5" in late
    removed = succeed_json("store", "unpin", stream, "--group=job", "--id=a", FAST)
    assert removed == {"group": "job", "id": "a", "removed": 1}
    assert succeed_json("store", "gc", stream, "--yes", FAST)["first_step"] == 8
    assert "no pin called a" in fail("store", "unpin", stream, "--group=job", "--id=a")
    assert succeed_json("store", "verify", stream)["problems"] == []


def test_an_unfinished_group_is_closed_by_hand(stream: Path, start: Start) -> None:
    reader = start("consume", stream, "--rank=0", "--group=dead", "--report", "--paced", FAST)
    deadline = time.monotonic() + 60
    while not any(key.startswith("pin/dead") for key in keys_of(stream)):
        assert time.monotonic() < deadline and reader.poll() is None
    reader.kill()
    reader.wait(60)
    (row,) = succeed_rows("store", "pins", stream)
    assert (row["group"], row["closed"], row["below_first_step"]) == ("dead", False, False)
    assert succeed_json("store", "gc", stream, "--yes", FAST)["first_step"] == 0
    closed = succeed_json("store", "unpin", stream, "--group=dead", "--live", FAST)
    assert closed == {"group": "dead", "live": "closed"}
    assert [row["closed"] for row in succeed_rows("store", "pins", stream)] == [True]
    assert "no live cursor" in fail("store", "unpin", stream, "--group=none", "--live")


def test_gc_goes_on_until_a_signal(stream: Path, start: Start) -> None:
    succeed_json("store", "pin", stream, "--group=job", "--id=a", "--step=8", FAST)
    options = ("--yes", "--list", "--every=10ms", "--slots-kept=2", "--json", FAST)
    gc = start("store", "gc", stream, *options)
    assert gc.stdout
    rows = []
    while sum("floor" in row for row in rows) < 3:
        rows.append(json.loads(gc.stdout.readline()))
    gc.terminate()
    assert gc.wait(60) == DONE
    kinds = Counter(row["kind"] for row in rows if "kind" in row)
    assert kinds["batch"] == 4 and kinds["slot"] > 0
    assert not any((stream / row["key"]).exists() for row in rows if "kind" in row)
    assert succeed_json("store", "verify", stream)["problems"] == []
