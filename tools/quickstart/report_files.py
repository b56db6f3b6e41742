# SPDX-License-Identifier: Apache-2.0
"""report.txt; report.md, with plots; and report.json, the same figures for programs, which is as
report.schema.json says."""

import json
from typing import Any

from quickstart import plots
from quickstart.balance import Balance
from quickstart.report import Findings
from quickstart.report_md import PLOTS, markdown
from quickstart.schema import faults_of, report_schema


def figures_of(found: Findings) -> dict[str, Any]:
    verdict, live, balance = found.verdict, found.live, found.balance
    sources = [
        {
            "name": source.name,
            "records": len(source.records),
            "tokens": verdict.tokens[number],
            "quota_tokens": round(verdict.quotas[number], 1),
            "parts": verdict.parts_of_source[number],
        }
        for number, source in enumerate(found.sources)
    ]
    return {
        "exactly_once": verdict.is_yes,
        "reasons": verdict.reasons,
        "data": found.prepared.data,
        "why_not_debian": found.prepared.why_not_debian,
        "steps": found.options.steps,
        "ranks": live.ranks,
        "tokens": sum(verdict.tokens),
        "parts": verdict.parts,
        "pictures": verdict.pictures,
        "sources": sources,
        "most_tokens_from_quota": round(verdict.most_apart, 1),
        "tokens_from_quota_allowed": verdict.apart_allowed,
        **figures_of_balance(balance),
        "seconds": round(live.seconds, 3),
        "tokens_per_s": round(sum(verdict.tokens) / live.seconds),
        "stream_bytes": found.stream_bytes,
        "producer_memory_bytes": live.producer_memory_bytes,
        "rank_memory_bytes": found.rank_memory_bytes,
        "killed_at_step": live.killed_at,
        "went_on_at_step": live.went_on_at,
    }


def figures_of_balance(balance: Balance) -> dict[str, Any]:
    one = balance.shown
    return {
        "imbalance_before": round(balance.before, 4),
        "imbalance_after": round(balance.after, 4),
        "step_time_over_bound": round(balance.over_bound, 4),
        "balance_of_steps": [
            {
                "step": of_step.step,
                "imbalance_before": round(of_step.before, 4),
                "imbalance_after": round(of_step.after, 4),
                "step_time_over_bound": of_step.over_bound,
            }
            for of_step in balance.steps
        ],
        "loads": {
            "step": one.step,
            "before_ms": [round(load, 3) for load in one.before_ms],
            "after_ms": [round(load, 3) for load in one.after_ms],
            "lower_bound_ms": one.lower_bound_ms,
        },
    }


def write_report(found: Findings, text: str) -> None:
    """AssertionError where report.json would not be as its schema says."""
    verdict, folder = found.verdict, found.folder
    names = [source.name for source in found.sources]
    folder.report.write_text(text, encoding="utf-8")
    drawn = {
        "loads": plots.loads(found.balance.shown),
        "balance": plots.balance(found.balance),
        "mix": plots.mix(names, verdict.tokens_of_step, found.changes),
        "lengths": plots.lengths([one for step in verdict.lengths_of_step for one in step]),
    }
    assert list(drawn) == list(PLOTS)
    plots.write(drawn, folder.plots)
    folder.report_md.write_text(markdown(found, text), encoding="utf-8")
    figures = figures_of(found)
    faults = list(faults_of(figures, report_schema()))
    assert not faults, f"report.json: {faults}"
    folder.report_json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
