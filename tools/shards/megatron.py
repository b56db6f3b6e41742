# SPDX-License-Identifier: Apache-2.0
"""The index of a Megatron data set (docs/formats/megatron.md)."""

import struct
from collections.abc import Sequence
from itertools import accumulate

U16 = 8
ID_BYTES = 2


def index_of(lengths: Sequence[int]) -> bytes:
    """Of documents of 16-bit ids, each of one sequence, that lie one behind the other."""
    count = len(lengths)
    places = accumulate((ID_BYTES * length for length in lengths[:-1]), initial=0)
    return (
        struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, U16, count, count + 1)
        + struct.pack(f"<{count}i", *lengths)
        + struct.pack(f"<{count}q", *list(places)[:count])
        + struct.pack(f"<{count + 1}q", *range(count + 1))
    )
