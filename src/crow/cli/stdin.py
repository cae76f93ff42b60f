"""Standard input: whether somebody is there, else the prompt itself, or what stands beside it.

A pipe that somebody left open and never writes to is not waited for, unless a person looks on.
"""

from __future__ import annotations

import codecs
import os
import select
import stat
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread

from crow.cli.output import Output
from crow.cli.parser import UsageError

PATIENCE = 3.0
"""Seconds until something comes, where nobody is there who could be told of waiting."""
ATTACHED, LONGEST = 256 * 1024, 4 * 1024 * 1024
"""Bytes that are attached to a prompt, and those of a prompt."""
PIECE = 65_536
WAITING = "waiting for standard input to end (Ctrl-C ends this; < /dev/null says there is none)"
SILENT = (
    f"standard input is open, but nothing came within {PATIENCE:g} s: going on without it "
    "(< /dev/null says that there is none)"
)


def somebody_is_there() -> bool:
    """True where a person can type an answer."""
    with suppress(AttributeError, ValueError):
        return sys.stdin.isatty()
    return False


def piped_prompt(out: Output, *, asked_for: bool) -> str:
    """The prompt that stands there, in whatever encoding.

    ``asked_for``: it is waited for, however long that takes. Raises `UsageError` for what is no
    text, and for what is too long.
    """
    data = _read(out, LONGEST, forever=asked_for)
    if len(data) > LONGEST:
        raise UsageError(f"the prompt on standard input has more than {LONGEST:,} bytes")
    return _text(data, is_cut=False)


def attached(out: Output) -> str:
    """What a pipe or a file has to go behind the prompt, marked; empty where that is nothing.

    Raises `UsageError` for what is no text.
    """
    if not _is_fed():
        return ""
    data = _read(out, ATTACHED)
    is_cut, data = len(data) > ATTACHED, data[:ATTACHED]
    text = _text(data, is_cut=is_cut)
    if not text.strip():
        return ""
    note = ""
    if is_cut:
        note = f"\n[cut off: only the first {ATTACHED:,} bytes of standard input are here]"
        out.error(f"only the first {ATTACHED:,} bytes of standard input go to the model")
    return f"\n\n<stdin>\n{text.strip(chr(10))}{note}\n</stdin>"


def _is_fed() -> bool:
    """True for a pipe, a socket or a file: neither a terminal nor /dev/null has anything."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)


def _text(data: bytes, *, is_cut: bool) -> str:
    from crow.tools.encoding import decode

    with suppress(UnicodeDecodeError):
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(data, not is_cut)
        if "\0" not in text:
            return text
    decoded = decode(data)
    if decoded is None:
        raise UsageError("standard input is no text: name the file in the prompt instead")
    return decoded[0]


def _read(out: Output, limit: int, *, forever: bool = False) -> bytes:
    """What stands there, up to a little more than the limit."""
    came: SimpleQueue[bytes] = SimpleQueue()
    try:
        source = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return b""
    Thread(target=_pump, args=(source, came, limit), daemon=True).start()
    data = piece = _first(came, out, forever=forever)
    while piece:
        piece = came.get()
        data += piece
    return data


def _first(came: SimpleQueue[bytes], out: Output, *, forever: bool) -> bytes:
    """The first piece; empty at the end, and where nothing comes and nobody can be told."""
    try:
        return came.get(timeout=None if forever else PATIENCE)
    except Empty:
        if not out.err.isatty():
            out.error(SILENT)
            return b""
    out.note(WAITING)
    return came.get()


def _pump(source: int, came: SimpleQueue[bytes], limit: int) -> None:
    """Read pieces until the end or the limit; an empty one is the last."""
    count = 0
    while count <= limit:
        try:
            piece = os.read(source, PIECE)
        except BlockingIOError:
            select.select([source], [], [])
            continue
        except OSError:
            break
        if not piece:
            break
        count += len(piece)
        came.put(piece)
    came.put(b"")
