# SPDX-License-Identifier: Apache-2.0
"""report.md, with plots, and report.json, the same figures for programs."""

import json
from typing import Any

from quickstart import plots
from quickstart.report import Findings

PLOTS = {
    "mix": "Tokens of each step, by source",
    "balance": "The slowest rank's work over the mean, before and after balancing",
    "lengths": "Tokens of parts, which are records cut at max_sample_tokens",
}


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
        "imbalance_before": balance.before,
        "imbalance_after": balance.after,
        "step_time_over_bound": balance.over_bound,
        "seconds": live.seconds,
        "tokens_per_s": sum(verdict.tokens) / live.seconds,
        "stream_bytes": found.stream_bytes,
        "producer_memory_bytes": live.producer_memory_bytes,
        "rank_memory_bytes": found.rank_memory_bytes,
        "killed_at_step": live.killed_at,
        "went_on_at_step": live.went_on_at,
    }


def markdown(text: str) -> str:
    """`text` is the report as it is printed."""
    shown = [f"## {caption}\n\n![{caption}](plots/{name}.png)" for name, caption in PLOTS.items()]
    return "\n\n".join(["# Quickstart", f"```\n{text.strip(chr(10))}\n```", *shown]) + "\n"


def write_report(found: Findings, text: str) -> None:
    verdict = found.verdict
    drawn = {
        "mix": plots.mix([source.name for source in found.sources], verdict.tokens_of_step),
        "balance": plots.balance(found.balance),
        "lengths": plots.lengths(verdict.part_tokens),
    }
    assert list(drawn) == list(PLOTS)
    plots.write(drawn, found.folder.plots)
    found.folder.report_md.write_text(markdown(text), encoding="utf-8")
    content = json.dumps(figures_of(found), indent=2) + "\n"
    found.folder.report_json.write_text(content, encoding="utf-8")
