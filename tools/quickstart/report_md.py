# SPDX-License-Identifier: Apache-2.0
"""report.md: the verdict, the main figures, plots, and the report as it was printed."""

from collections.abc import Iterable, Iterator, Sequence

from quickstart.report import MIB, Findings, shown

# By name of a plot what is seen in it.
PLOTS = {
    "loads": "Work of each rank in one step, before and after balancing",
    "balance": "The slowest rank's work over the mean, over all steps",
    "mix": "What each step is made of, by source",
    "lengths": "How long parts are: records, cut at `max_sample_tokens`",
}
HEAD = (
    "{steps} steps for {ranks} ranks, in the midst of which the producer was killed and another "
    "one went on: {tokens:,} tokens in {parts:,} parts{pictures}. What each rank got was compared "
    "with the raw files."
)


def markdown(found: Findings, text: str) -> str:
    """`text` is the report as it is printed."""
    plotted = [
        f"## {caption}\n\n![{caption.replace('`', '')}](plots/{name}.png)"
        for name, caption in PLOTS.items()
    ]
    printed = f"## As it was printed\n\n```\n{text.strip(chr(10))}\n```\n"
    return "\n\n".join(["# Quickstart", *verdict(found), *plotted, printed])


def verdict(found: Findings) -> Iterator[str]:
    judged = found.verdict
    answer = "yes" if judged.is_yes else "no"
    yield f"**Every step on every rank exactly once: {answer}**"
    if judged.reasons:
        yield "\n".join(f"- {reason}" for reason in judged.reasons)
    yield HEAD.format(
        steps=found.options.steps,
        ranks=found.live.ranks,
        tokens=sum(judged.tokens),
        parts=judged.parts,
        pictures=f", {judged.pictures:,} of them with a picture" if judged.pictures else "",
    )
    if why_not := found.prepared.why_not_debian:
        yield f"The data is this machine's own, and not that of Debian 12's packages: {why_not}."
    yield table(("figure", "value", "what it is"), "lrl", figures(found))
    yield table(("source", "records", "tokens", "quota", "parts"), "lrrrr", sources(found))


def figures(found: Findings) -> Iterator[Sequence[str]]:
    judged, live, balance = found.verdict, found.live, found.balance
    tokens_per_s = sum(judged.tokens) / live.seconds / 1e6
    yield "imbalance as drawn", f"{balance.before:.2f}", "slowest rank's work over the mean"
    yield "imbalance as planned", f"{balance.after:.2f}", "1 is perfect"
    yield "step time over the lower bound", f"{balance.over_bound:.2f}", "predicted, as those are"
    yield (
        "a source from its quota",
        f"{judged.most_apart:,.0f} tokens",
        f"at most, after any step; {judged.apart_allowed:,} are allowed",
    )
    yield "throughput", f"{tokens_per_s:.2f} M tokens/s", "start and kill included"
    yield "memory of the producer", f"{live.producer_memory_bytes / MIB:.0f} MiB", "at most"
    yield "memory of a rank", f"{found.rank_memory_bytes / MIB:.0f} MiB", "at most"
    yield "stream", f"{found.stream_bytes / MIB:.1f} MiB", f"`{shown(found.folder.stream)}`"


def sources(found: Findings) -> Iterator[Sequence[str]]:
    judged = found.verdict
    for number, source in enumerate(found.sources):
        of_source = len(source.records), judged.tokens[number], round(judged.quotas[number])
        yield source.name, *(f"{n:,}" for n in (*of_source, judged.parts_of_source[number]))


def table(head: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> str:
    """`sides` has l or r for each column."""
    marks = ["---" if side == "l" else "--:" for side in sides]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))
