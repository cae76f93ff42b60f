"""Pictures as pixels, for terminals that take no files: by Pillow, where it is installed."""

from __future__ import annotations

import base64
import fcntl
import io
import re
import struct
import sys
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

MISSING = "crow-acp[pictures] shows it"
CELL = 8, 16
"""Width and height of a terminal's cell in pixels, where it does not say."""
WIDEST = 800
"""Pixels of a row of sixels: a picture is looked at, not studied."""
LARGEST = 50_000_000
"""Pixels of a picture that is worth the memory."""
BAND = 6
OPAQUE = 128
RUN = re.compile(rb"(.)\1{3,254}", re.DOTALL)


def is_installed() -> bool:
    """True where pixels can be had."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def opened(data: str) -> Image | None:
    """A picture in base64; None where it cannot be read."""
    try:
        from PIL import Image

        image = Image.open(io.BytesIO(base64.b64decode(data)))
        if image.width * image.height > LARGEST:
            return None
        image.load()
    except Exception:  # noqa: BLE001 - not installed, or whatever a file of somebody's has in it
        return None
    return image


def as_png(data: str) -> str:
    """The same picture as a PNG in base64; empty where it cannot be read."""
    if (image := opened(data)) is None:
        return ""
    file = io.BytesIO()
    image.convert("RGBA").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def as_sixels(data: str, columns: int, rows: int) -> str:
    """What has a terminal draw a picture in so many cells; empty where it cannot be read."""
    if (image := opened(data)) is None:
        return ""
    width, height = cell()
    image = image.convert("RGBA")
    image.thumbnail((min(columns * width, WIDEST), rows * height))
    return sixels(image)


def sixels(image: Image) -> str:
    """An image with four channels, as DEC's terminals took them: six rows at once, by colours."""
    width, height = image.size
    colours = image.convert("RGB").quantize(256)
    pixels, alpha = colours.tobytes(), image.getchannel("A").tobytes()
    shades = colours.getpalette() or []
    told = [f'\x1bP0;1;0q"1;1;{width};{height}']
    for n, (red, green, blue) in enumerate(zip(*[iter(shades)] * 3, strict=False)):
        told.append(f"#{n};2;{red * 100 // 255};{green * 100 // 255};{blue * 100 // 255}")
    for top in range(0, height, BAND):
        bits: dict[int, bytearray] = {}
        for at in range(top * width, min(top + BAND, height) * width):
            if alpha[at] >= OPAQUE:
                row = bits.setdefault(pixels[at], bytearray(width))
                row[at % width] |= 1 << at // width - top
        told.append("$".join(f"#{colour}{run(row)}" for colour, row in bits.items()) + "-")
    return "".join(told) + "\x1b\\"


def run(row: bytearray) -> str:
    """Six rows of one colour, with what comes several times told once."""
    letters = bytes(63 + bits for bits in row.rstrip(b"\0"))
    return RUN.sub(lambda found: b"!%d%b" % (len(found[0]), found[1]), letters).decode("ascii")


def cell() -> tuple[int, int]:
    """Width and height of the terminal's cells in pixels."""
    told = bytearray(8)
    try:
        fcntl.ioctl(sys.__stdout__ or 1, termios.TIOCGWINSZ, told)
    except (OSError, ValueError):
        return CELL
    rows, columns, width, height = struct.unpack("HHHH", told)
    return (width // columns or CELL[0], height // rows or CELL[1]) if rows and columns else CELL
