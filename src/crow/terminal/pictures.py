"""Pictures: found in a prompt by their paths, and shown where the terminal can."""

from __future__ import annotations

import base64
import binascii
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from crow.core.messages import Content, ImagePart, Part
from crow.terminal import raster
from crow.terminal.palette import Palette, Protocol
from crow.text import one_line, shorten

ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
WORD = re.compile(r"@?(?:'([^'\n]+)'|\"([^\"\n]+)\"|((?:\\.|[^\s'\"\\])+))")
"""A path as terminals paste one that is dragged: quoted, or with backslashes."""
ROWS = 8
PIECE = 4096
"""Letters of base64 that kitty takes at once."""
KITTY = frozenset({"xterm-kitty", "ghostty", "xterm-ghostty"})
ITERM = frozenset({"iterm.app", "wezterm"})
DATA = re.compile(r"data:(image/\w+);base64,(.*)", re.DOTALL)
MARK = "▣"


def paths_in(text: str, cwd: str) -> list[Path]:
    """The pictures that a text names, as far as they are there; each once."""
    found: dict[Path, None] = {}
    for match in WORD.finditer(text):
        quoted = match[1] or match[2]
        name = (quoted or re.sub(r"\\(.)", r"\1", match[3])).removeprefix("@")
        if name.startswith("file://"):
            name = unquote(name.removeprefix("file://"))
        for each in (name, name.rstrip(".,;:!?)")):
            path = Path(cwd, Path(os.path.expanduser(each))) if each else Path()
            if path.suffix.lower() in ENDINGS and os.path.isfile(path):  # noqa: PTH113 - odd names
                found[path] = None
                break
    return list(found)


def with_pictures(text: str, paths: Iterable[Path]) -> tuple[Content, list[str]]:
    """A prompt with its pictures beside the text, and what is wrong with others."""
    from crow.tools.images import LARGEST_IMAGE, recognise

    parts: list[Part] = []
    wrong: list[str] = []
    for path in paths:
        try:
            data = path.read_bytes() if path.stat().st_size <= LARGEST_IMAGE else b""
        except OSError as error:
            wrong.append(f"{path.name} cannot be read: {error.strerror}")
            continue
        mime = recognise(data[:16])
        if mime is None:
            large = f"more than {LARGEST_IMAGE >> 20} MiB" if not data else "no picture"
            wrong.append(f"{path.name} stays a path: it is {large}")
            continue
        url = f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return ([{"type": "text", "text": text}, *parts] if parts else text), wrong


def pictures_of(content: Content | None) -> list[ImagePart]:
    """The pictures of a message."""
    parts = content if isinstance(content, list) else []
    return [part for part in parts if part["type"] == "image_url"]


def picture_lines(part: ImagePart, width: int, palette: Palette) -> list[str]:
    """A picture, where the terminal can show it, and a line about it."""
    found = DATA.match(part["image_url"]["url"])
    if found is None:
        return [
            palette(f"  {MARK} {shorten(one_line(part['image_url']['url']), width - 4)}", "dim")
        ]
    mime, data = found.groups()
    about = [mime.removeprefix("image/").upper(), size_of(data), f"{len(data) * 3 // 4096:,} kB"]
    if palette.pictures == "sixel" and not raster.is_installed():
        about.append(raster.MISSING)
    line = palette(f"  {MARK} {' · '.join(filter(None, about))}", "dim")
    return [*drawn(mime, data, palette.pictures, width), line]


def protocol_of(env: Mapping[str, str]) -> Protocol:
    """How the terminal is shown pictures, by the names that it gives itself.

    Whether it knows sixels it says when it is asked.
    """
    if env.get("TMUX"):
        return ""
    names = {env.get("TERM_PROGRAM", "").lower(), env.get("TERM", "").lower()}
    if names & KITTY or env.get("KITTY_WINDOW_ID"):
        return "kitty"
    return "iterm" if names & ITERM else ""


def drawn(mime: str, data: str, protocol: Protocol, width: int) -> Iterator[str]:
    """What the terminal draws a picture by, in rows of its own."""
    if not re.fullmatch(r"[A-Za-z0-9+/=]*", data):
        return
    told = ""
    match protocol:
        case "iterm":
            size = len(data) * 3 // 4 - data.count("=")  # xterm.js draws nothing without it
            about = f"inline=1;size={size};height={ROWS};preserveAspectRatio=1"
            yield f"\x1b]1337;File={about}:{data}\x07"
        case "kitty":
            told = kittys(data if mime == "image/png" else raster.as_png(data))
        case "sixel":
            told = raster.as_sixels(data, width, ROWS)
        case "":
            pass
    if told:
        room = "\r\n" * (ROWS - 1)  # the rows are there before the picture stands on them
        yield f"{room}\x1b[{ROWS - 1}A\x1b7{told}\x1b8\x1b[{ROWS - 1}B"


def kittys(data: str) -> str:
    """A PNG as kitty takes it, in pieces."""
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
    last = len(pieces) - 1
    heads = [f"a=T,f=100,r={ROWS},C=1,q=2,", *[""] * last]
    return "".join(
        f"\x1b_G{head}m={int(n < last)};{piece}\x1b\\"
        for n, (head, piece) in enumerate(zip(heads, pieces, strict=False))
    )


def size_of(data: str) -> str:
    """Width and height, of a PNG or a GIF; empty of others."""
    try:
        start = base64.b64decode(data[:64])
    except binascii.Error:
        return ""
    if start.startswith(b"\x89PNG") and len(start) >= 24:
        return "{}×{}".format(*struct.unpack(">II", start[16:24]))
    if start.startswith(b"GIF8") and len(start) >= 10:
        return "{}×{}".format(*struct.unpack("<HH", start[6:10]))
    return ""
