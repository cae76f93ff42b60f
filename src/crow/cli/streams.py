"""Standard streams that were closed before the program began."""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
"""How ``/dev/null`` stands for each: empty to read from, an output that cannot be written to."""


def hold() -> None:
    """Keep the numbers of closed streams from the files that are opened next.

    The database of the sessions would have one otherwise, and get what child processes print.
    """
    for number, mode in enumerate(MODES):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")


def _stream(number: int, mode: Literal["r", "w"]) -> TextIO:
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)
