"""Ways out of a sandbox: each a small program, and what shows that it came through.

``escapes.txt`` is the table. A program finds in its environment: ``N``, its number; ``O``, a folder
outside, with a file ``T`` of its own; ``W``, the workspace that it works in; ``H``, a home; ``V``
and ``P``, processes outside (one of its own user's, and the agent); ``TCP`` and ``UDP``, ports;
``SOCK``, ``DGRAM``, ``ABS`` and ``TMUX_SOCK``, sockets; ``PIPE``, a named pipe; ``SHM`` and
``MSG``, memory and a queue of another process. Those that begin with ``py:`` are Python,
in the names of ``runner.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crow.dataclasses import frozen


@frozen
class Escape:
    """One way: ``holds`` is the guarantee that it breaks.

    ``proof`` is what the observer outside looks for: ``file``, that what ``path`` names (its own
    file without one) has changed, its mode and times too; ``said``, that it called out;
    ``secret``, that a secret was in its output; ``reached``, that somebody outside heard it;
    ``alive``, that a process of it goes on; ``left``, that ``path`` is there afterwards.
    """

    holds: str
    proof: str
    name: str
    code: str
    path: str = ""
    is_slow: bool = False


def escapes() -> list[Escape]:
    """All of the table."""
    return list(_read(Path(__file__).with_suffix(".txt").read_text()))


def _read(text: str) -> Iterator[Escape]:
    section: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]").split()
        elif line and not line.startswith("#"):
            name, _, code = line.partition(" | ")
            name, _, path = name.partition(" @")
            holds, proof, *rest = section
            yield Escape(holds, proof, name, code.strip(), path.strip(), bool(rest))
