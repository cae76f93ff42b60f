"""Coroutines that an extension makes and nobody awaits, such as those of a missing ``await``."""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from typing import TextIO

from crow.cli.ext_check.finding import Finding

DEPTH = 8
"""How many calls, from where a coroutine was made, are kept of it."""
NEVER = re.compile(r"coroutine '(?P<name>.+)' was never awaited")
MADE_AT = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+)')


class Unawaited:
    """Hears of them for as long as this process lives."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        sys.set_coroutine_origin_tracking_depth(DEPTH)
        warnings.filterwarnings("always", NEVER.pattern, RuntimeWarning)
        warnings.showwarning = self._hear

    def found(self, files: Collection[str]) -> Iterator[Finding]:
        """Those that were made in these files, since it was asked last."""
        gc.collect()
        heard, self._heard = self._heard, []
        for text in heard:
            never, made = NEVER.match(text), [*MADE_AT.finditer(text)]
            places = [(each["path"], int(each["line"])) for each in made if each["path"] in files]
            if never and places:
                what = f"{never['name']} is called and never awaited: nothing of it happens"
                yield Finding(what, "write await in front of the call", *places[-1])

    def _hear(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        self._heard.append(str(message))
