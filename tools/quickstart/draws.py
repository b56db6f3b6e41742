# SPDX-License-Identifier: Apache-2.0
"""The oracle's view of the order: which parts of which records a step must have.

Written after docs/design/0004-mixture.md, in plain Python, for what the quickstart uses of it:
steps that count tokens, weights that change at steps, `order = "random"`, `exhausted = "repeat"`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from quickstart.records import PartId, Source
from quickstart.weights import SHARE_BITS, Shares

WORD = (1 << 64) - 1
ROUNDS = 8
LEAST_BITS = 6


def mix64(x: int) -> int:
    """The finaliser of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def rotl(x: int, bits: int) -> int:
    return (x << bits | x >> 64 - bits) & WORD


def xoshiro256(seed: int) -> Iterator[int]:
    """xoshiro256**, its state filled by splitmix64."""
    s = [mix64((seed + i * 0x9E3779B97F4A7C15) & WORD) for i in range(1, 5)]
    while True:
        yield rotl(s[1] * 5 & WORD, 7) * 9 & WORD
        shifted = s[1] << 17 & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotl(s[3], 45)


def permutation(seed: int, source: int, epoch: int, records: int) -> Iterator[int]:
    """A pass over a source's records: a Feistel network over the next power of two, walked until
    it comes back among the records."""
    bits = max(LEAST_BITS, (records - 1).bit_length())
    numbers = xoshiro256(mix64(seed) ^ mix64(~(source << 32 | epoch) & WORD))
    keys = [next(numbers) for _ in range(ROUNDS)]

    def encrypt(value: int) -> int:
        low_bits, high_bits = bits // 2, bits - bits // 2
        low, high = value & (1 << low_bits) - 1, value >> low_bits
        for key in keys:
            high ^= mix64(low ^ key) & (1 << high_bits) - 1
            low, high, low_bits, high_bits = high, low, high_bits, low_bits
        return high << low_bits | low

    for place in range(records):
        value = encrypt(place)
        while value >= records:
            value = encrypt(value)
        yield value


def parts_in_order(seed: int, number: int, source: Source) -> Iterator[tuple[PartId, int]]:
    """A source's parts with their tokens, pass after pass, without end."""
    epoch = 0
    while True:
        for record in permutation(seed, number, epoch, len(source.records)):
            for part in range(source.parts_of(record)):
                yield PartId(number, epoch, record, part), source.part_tokens(record, part)
        epoch += 1


@dataclass(frozen=True)
class ExpectedStep:
    parts: list[PartId]
    tokens: int


def expected_steps(
    sources: list[Source], seed: int, step_tokens: int, part_tokens: int
) -> Iterator[ExpectedStep]:
    """Steps without end. Of the sources that are not ahead of their share, and of these those that
    are most parts behind, the one is drawn whose credit would first exceed its next part; what does
    not fit opens the next step."""
    shares = Shares([source.weight for source in sources])
    orders = [parts_in_order(seed, number, source) for number, source in enumerate(sources)]
    following = [next(order) for order in orders]
    credits = [0] * len(sources)
    parts, step, filled = [], 0, 0
    while True:
        waiting = [number for number, credit in enumerate(credits) if credit >= 0]
        levels = {number: level_of(credits[number], part_tokens) for number in waiting}
        highest = max(levels.values())
        dues = [
            (shares.due(n, owed_until_due(highest, part_tokens, following[n][1], credits[n]),
                        step, filled, step_tokens), n)
            for n in waiting
            if levels[n] == highest
        ]
        _, number = min(dues)
        part, tokens = following[number]
        if filled + tokens <= step_tokens:
            parts.append(part)
            filled += tokens
            following[number] = next(orders[number])
            earned = zip(credits, shares.at(step), strict=True)
            credits = [credit + share * tokens for credit, share in earned]
            credits[number] -= tokens << SHARE_BITS
            if filled < step_tokens:
                continue
        yield ExpectedStep(parts, filled)
        parts, step, filled = [], step + 1, 0


def level_of(credit: int, part_tokens: int) -> int:
    """0 for up to a largest part, 1 for up to two of them, and so on."""
    return max(0, (credit - 1) // (part_tokens << SHARE_BITS))


def owed_until_due(level: int, part_tokens: int, next_tokens: int, credit: int) -> int:
    return (level * part_tokens + next_tokens << SHARE_BITS) - credit
