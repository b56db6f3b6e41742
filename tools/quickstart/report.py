# SPDX-License-Identifier: Apache-2.0
"""What is printed at the end, and stays in report.txt."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quickstart.balance import Balance
from quickstart.data import Prepared
from quickstart.folder import Folder
from quickstart.live import LiveRun
from quickstart.options import Options
from quickstart.records import Source
from quickstart.verdict import Verdict
from quickstart.weights import changes_of

REASONS_SHOWN = 6
KINDS_SHOWN = 5  # Of what a source is made of.
MIB = 1 << 20


@dataclass(frozen=True)
class Findings:
    options: Options
    folder: Folder
    prepared: Prepared
    sources: list[Source]
    live: LiveRun
    stream_bytes: int
    rank_memory_bytes: int
    balance: Balance
    verdict: Verdict
    kept: bool  # What ranks got.

    @property
    def changes(self) -> list[int]:
        """The steps at which weights change."""
        return changes_of([source.weight for source in self.sources])


def render(found: Findings) -> str:
    lines = [f"  {name:<10}{text}".rstrip() for name, text in rows(found)]
    return "\n".join(["", *lines, "", *conclusion(found), ""])


def rows(found: Findings) -> Iterator[tuple[str, str]]:
    verdict, live = found.verdict, found.live
    tokens = sum(verdict.tokens)
    ranks = live.ranks
    yield "stream", f"{shown(found.folder.stream)}, {found.stream_bytes / MIB:.1f} MiB"
    steps = found.options.steps
    yield "steps", f"{steps} for {ranks} ranks: {tokens:,} tokens in {verdict.parts:,} parts"
    yield "", ""
    if why_not := found.prepared.why_not_debian:
        yield "data", f"of this machine. Not Debian's packages: {why_not}"
        yield "", ""
    yield (
        "source",
        f"{'records':>9}{'tokens':>12}{'quota':>12}{'parts':>9}{'passes':>8}{'share':>9}",
    )
    for number, source in enumerate(found.sources):
        yield source.name, source_row(found, number, source)
    yield (
        "",
        f"at most {verdict.most_apart:,.0f} tokens from its quota after any step; "
        f"{verdict.apart_allowed:,} are allowed",
    )
    for gathered in found.prepared.gathered:
        if gathered.documents == 0:
            yield "missing", f"{gathered.what}: there is nothing in {gathered.where}"
    yield "", ""
    balance = found.balance
    yield (
        "balance",
        f"slowest rank over mean {balance.before:.2f} as drawn, {balance.after:.2f} as planned; "
        f"{balance.over_bound:.2f} of the lower bound",
    )
    yield "", f"as the cost model predicts it, in {len(balance.steps)} of the steps"
    per_second = tokens / live.seconds / 1e6
    yield "speed", f"{live.seconds:.1f} s, {per_second:.2f} M tokens/s, start included"
    producer, rank = live.producer_memory_bytes / MIB, found.rank_memory_bytes / MIB
    yield "memory", f"producer {producer:.0f} MiB, a rank {rank:.0f} MiB at most"
    yield (
        "killed",
        f"the producer, when rank 0 had {live.killed_at} steps; the next one went on at step "
        f"{live.went_on_at}",
    )
    yield "", ""
    yield from where_next(found)


def source_row(found: Findings, number: int, source: Source) -> str:
    verdict = found.verdict
    tokens, parts = verdict.tokens[number], verdict.parts_of_source[number]
    what = [
        gathered.what
        for gathered in found.prepared.gathered
        if gathered.source == source.name and gathered.documents
    ]
    row = f"{len(source.records):>9,}{tokens:>12,}{verdict.quotas[number]:>12,.0f}{parts:>9,}"
    row += f"{tokens / source.all_tokens:>8.1f}{tokens / sum(verdict.tokens):>9.4f}"
    return f"{row}  {', '.join(what[:KINDS_SHOWN])}{' ...' if len(what) > KINDS_SHOWN else ''}"


def where_next(found: Findings) -> Iterator[tuple[str, str]]:
    command, stream = shown(found.options.command), shown(found.folder.stream)
    step = found.live.went_on_at
    yield "look", f"{shown(found.folder.report_md)}, with plots; report.json has the figures"
    yield "", f"{command} store show {stream} --step={step} --rank=2"
    yield "", f"{command} store verify {stream} --depth=payload"
    yield "", f"{command} plan explain --store={stream} --step={step}"


def conclusion(found: Findings) -> Iterator[str]:
    reasons = found.verdict.reasons
    for reason in reasons[:REASONS_SHOWN]:
        yield f"  {reason}"
    if len(reasons) > REASONS_SHOWN:
        yield f"  and {len(reasons) - REASONS_SHOWN} more"
    if found.kept:
        yield f"  what ranks got: {shown(found.folder.delivered)}; logs: {shown(found.folder.logs)}"
    if reasons or found.kept:
        yield ""
    yield last_line(found.verdict.is_yes)


def last_line(is_yes: bool) -> str:
    return f"every step on every rank exactly once: {'yes' if is_yes else 'no'}"


def shown(path: Path) -> str:
    """As it is typed here: ./x for a store, which would be no URL without."""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else f"./{relative}"
