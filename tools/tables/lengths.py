# SPDX-License-Identifier: Apache-2.0
"""Named distributions of sequence lengths: each becomes ranges of at most an octave, within which
lengths are log-uniform, with the share of samples in each."""

from collections.abc import Callable
from decimal import Decimal
from statistics import NormalDist

from tables.cpp import Json, grouped, load, source_file, whole

PATH = "batchloom/simulator/length_tables.cc"
ORIGIN = "batchloom/simulator/lengths/length-distributions.json"
# Shares are rounded to this, so coarsely that no host's last digit shows.
WEIGHTS = 10**9
MIXTURE_FOLD = 16

# A range (above, up_to] and the share of samples in it; shares need not add up to 1.
Range = tuple[int, int, Decimal]


def log_ratio(above: int, up_to: int) -> Decimal:
    return (Decimal(up_to) / Decimal(above)).ln()


def mean(above: int, up_to: int) -> Decimal:
    """Of the lengths of a range."""
    return Decimal(up_to - above) / log_ratio(above, up_to)


def octaves(above: int, up_to: int, share: Decimal) -> list[Range]:
    """A log-uniform range, cut at powers of two."""
    cuts = [2**k for k in range(33) if above < 2**k < up_to]
    edges = [above, *cuts, up_to]
    whole_ratio = log_ratio(above, up_to)
    return [(a, b, share * log_ratio(a, b) / whole_ratio) for a, b in zip(edges, edges[1:])]


def token_shares(entry: Json, data: Json) -> list[Range]:
    found = []
    for (above, up_to), percent in zip(data["ranges_tokens"], entry["token_share_percent"]):
        found += octaves(above, up_to, percent / mean(above, up_to))
    return found


def lognormal(entry: Json, _: Json) -> list[Range]:
    """In quarters of octaves, so that log-uniform pieces follow the curve."""
    return bell(NormalDist(float(entry["mu"]), float(entry["sigma"])), entry["max"])


def median_and_p99(entry: Json, _: Json) -> list[Range]:
    spread = float(log_ratio(entry["median"], entry["p99"])) / NormalDist().inv_cdf(0.99)
    return bell(NormalDist(float(Decimal(entry["median"]).ln()), spread), entry["max"])


def bell(of_log: NormalDist, largest: int) -> list[Range]:
    """The first range is (0, 4]."""
    cuts = [quarter * 2**k for k in range(30) for quarter in (4, 5, 6, 7)]
    edges = [cut for cut in cuts if cut < largest] + [largest]
    below = [0.0] + [of_log.cdf(float(Decimal(edge).ln())) for edge in edges]
    shares = [Decimal(b - a) for a, b in zip(below, below[1:])]
    return list(zip([0, *edges], edges, shares))


def body_and_tail(entry: Json, _: Json) -> list[Range]:
    """The body's upper half ends where the tail's tokens are their share of all tokens."""
    median, largest, tail_lo = entry["median"], entry["max"], entry["tail_lo"]
    tail_share = entry["tail_sample_percent"] / 100
    upper_share = Decimal("0.5") - tail_share
    tail_tokens = tail_share * mean(tail_lo, largest)
    all_tokens = tail_tokens / (entry["tail_token_percent"] / 100)
    upper_tokens = all_tokens - tail_tokens - mean(1, median) / 2
    end, beyond = median + 1, tail_lo
    while end + 1 < beyond:
        middle = (end + beyond) // 2
        if upper_share * mean(median, middle) <= upper_tokens:
            end = middle
        else:
            beyond = middle
    return [
        *octaves(1, median, Decimal("0.5")),
        *octaves(median, end, upper_share),
        *octaves(tail_lo, largest, tail_share),
    ]


def mixture(entry: Json, _: Json) -> list[Range]:
    found = []
    for part in entry["parts"]:
        above = whole(part["mean"] * log_ratio(1, MIXTURE_FOLD) / (MIXTURE_FOLD - 1))
        found += octaves(above, MIXTURE_FOLD * above, part["share"])
    return found


KINDS: dict[str, Callable[[Json, Json], list[Range]]] = {
    "token_shares": token_shares,
    "lognormal": lognormal,
    "median_and_p99": median_and_p99,
    "body_and_tail": body_and_tail,
    "mixture": mixture,
}


def weighted(ranges: list[Range]) -> list[tuple[int, int, int]]:
    """With whole weights that add up to about WEIGHTS; ranges that get none are left out."""
    total = sum((share for _, _, share in ranges), Decimal(0))
    rows = [(above, up_to, whole(share / total * WEIGHTS)) for above, up_to, share in ranges]
    return [row for row in rows if row[2] > 0]


def make() -> str:
    data = load(ORIGIN)
    rows: list[str] = []
    tables = ["constexpr LengthTable kLengthTables[] = {"]
    for name, entry in data["distributions"].items():
        array = "k" + "".join(word.capitalize() for word in name.split("-")) + "Lengths"
        rows += ["", f"constexpr LengthRange {array}[] = {{"]
        for above, up_to, weight in weighted(KINDS[entry["kind"]](entry, data)):
            rows.append(f"    {{{grouped(above)}, {grouped(up_to)}, {grouped(weight)}}},")
        rows.append("};")
        tables.append(f'    {{"{name}", {array}}},')
    rest = [
        "std::span<const LengthTable> length_tables() {",
        "  return kLengthTables;",
        "}",
    ]
    header = "batchloom/simulator/length_tables.h"
    return source_file(ORIGIN, header, "batchloom::simulator", [*rows, "", *tables, "};"], rest)
