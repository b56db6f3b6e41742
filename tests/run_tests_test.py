# SPDX-License-Identifier: Apache-2.0
"""The line that counts tests counts what ran, whatever wrote the report."""

from pathlib import Path

import run_tests


def outcome_of(folder: Path, **reports: str) -> run_tests.Outcome:
    paths = []
    for name, cases in reports.items():
        paths.append(folder / f"{name}.xml")
        paths[-1].write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return run_tests.count_reports(paths)


def test_cases_of_shards_are_counted_once(tmp_path: Path) -> None:
    outcome = outcome_of(
        tmp_path,
        ctest='<testcase name="base.shard-0" status="run"/><testcase name="example" status="run"/>',
        shard='<testcase name="A" status="run"/><testcase name="B" status="run"/>',
    )
    assert (outcome.passed, outcome.skipped, outcome.failed) == (3, 0, [])


def test_a_shard_that_failed_is_told_though_it_left_no_report(tmp_path: Path) -> None:
    failed = '<testcase name="base.shard-1" status="fail"><failure message="Crash"/></testcase>'
    assert outcome_of(tmp_path, ctest=failed).failed == ["base.shard-1"]


def test_failed_skipped_and_missing_cases_do_not_pass(tmp_path: Path) -> None:
    outcome = outcome_of(
        tmp_path,
        gtest='<testcase name="A" status="run"><failure message="no"/></testcase>'
        '<testcase name="B" status="run" result="skipped"><skipped message="root"/></testcase>'
        '<testcase name="C" status="notrun"/>',
        ctest='<testcase name="D" status="notrun"><skipped message="Unable to find it"/></testcase>'
        '<testcase name="E" status="disabled"/>',
    )
    assert (outcome.passed, outcome.skipped) == (0, 3)
    assert outcome.failed == ["A", "D"]
