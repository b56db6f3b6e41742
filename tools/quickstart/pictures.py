# SPDX-License-Identifier: Apache-2.0
"""The oracle's view of pictures: the grid that one is scaled to, and its pixels there.

Written after docs/formats/pictures.md. Pillow decodes, which brings decoders of its own, and NumPy
scales, in double precision: sums of whole numbers below 2^53, so they are exact. PNGs of 16 bits
are not known here, since Pillow cuts them to 8 where they are to be rounded.
"""

import hashlib
import io
import struct
from dataclasses import dataclass
from math import isqrt

import numpy as np
import numpy.typing as npt
from PIL import Image

JPEG_SCALES = (8, 4, 2)
PNG, PNG_DEPTH_AT = b"\x89PNG\r\n\x1a\n", 24


@dataclass(frozen=True)
class Rules:
    """Of a pipeline's [image]."""

    patch: int
    merge: int
    max_patches: int
    token: int

    @property
    def cell_px(self) -> int:
        return self.patch * self.merge

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """Rows and columns of cells."""
        unit, most = self.cell_px, self.max_patches // self.merge**2
        rows, columns = (max(1, (2 * side + unit) // (2 * unit)) for side in (height, width))
        if rows * columns > most:
            rows = min(rows, max(1, isqrt(height * most // width)))
            columns = min(columns, max(1, isqrt(width * most // height)))
            # Where one was raised to 1, the other is what fits.
            rows = min(rows, max(1, most // columns))
            columns = min(columns, most // rows)
        return rows, columns


@dataclass(frozen=True)
class Picture:
    rows: int
    columns: int
    shown: bytes  # What must be delivered of it, as `described` has it.

    @property
    def cells(self) -> int:
        return self.rows * self.columns


def described(height: int, width: int, pixels: bytes) -> bytes:
    """A picture in a few bytes: equal ones have equal ones, and others in effect do not."""
    return struct.pack("<II", height, width) + hashlib.sha256(pixels).digest()


def is_known(content: bytes) -> bool:
    """Whether picture_of() can tell what must be delivered."""
    return not content.startswith(PNG) or content[PNG_DEPTH_AT] <= 8


def picture_of(content: bytes, rules: Rules) -> Picture:
    assert is_known(content), "a PNG of 16 bits"
    with Image.open(io.BytesIO(content)) as image:
        rows, columns = rules.grid(*image.size)
        height, width = rows * rules.cell_px, columns * rules.cell_px
        if image.format == "JPEG":
            draft(image, width, height)
        pixels = scaled(rgb_of(image), height, width)
    return Picture(rows, columns, described(height, width, pixels.tobytes()))


def draft(image: Image.Image, width: int, height: int) -> None:
    """Has a JPEG decoded at the smallest of its scales that is no smaller than that."""
    across, down = image.size
    for scale in JPEG_SCALES:
        if -(-across // scale) >= width and -(-down // scale) >= height:
            image.draft(None, (across // scale, down // scale))
            return


def rgb_of(image: Image.Image) -> npt.NDArray[np.uint8]:
    """What is transparent lies over white."""
    if image.mode in ("LA", "RGBA") or "transparency" in image.info:
        rgba = np.asarray(image.convert("RGBA"), dtype=np.uint32)
        alpha = rgba[..., 3:]
        over_white = (rgba[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255
        return over_white.astype(np.uint8)
    return np.asarray(image.convert("RGB"))


def scaled(pixels: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Of [rows, columns, 3]."""
    down, across = axis(pixels.shape[0], height), axis(pixels.shape[1], width)
    rows = np.tensordot(down, pixels.astype(np.float64), axes=1)  # [height, columns, 3]
    sums = np.tensordot(rows, across, axes=(1, 1)).transpose(0, 2, 1)
    whole = int(down[0].sum()) * int(across[0].sum())
    return ((sums.astype(np.int64) + whole // 2) // whole).astype(np.uint8)


def axis(size: int, wanted: int) -> npt.NDArray[np.float64]:
    """How much of each pixel makes each of the wanted ones: whole numbers."""
    weights = np.zeros((wanted, size))
    for i in range(wanted):
        if wanted <= size:  # The area that it covers.
            for j in range(i * size // wanted, -(-(i + 1) * size // wanted)):
                lo, hi = max(i * size, j * wanted), min((i + 1) * size, (j + 1) * wanted)
                weights[i, j] = hi - lo
        else:  # The two whose centres lie around its own.
            centre = (2 * i + 1) * size - wanted
            first, right = divmod(min(max(centre, 0), (size - 1) * 2 * wanted), 2 * wanted)
            weights[i, first] += 2 * wanted - right
            if right:
                weights[i, first + 1] += right
    return weights
