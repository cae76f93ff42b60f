"""Drive every path, and write the table into docs/hooks.md: ``python -m tests.firings``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.firings.doors import DOORS, drive
from tests.firings.table import lapses, rows, write, written

with TemporaryDirectory() as top:
    fired = asyncio.run(drive(Path(top), *DOORS))
wrong = list(lapses(rows(fired)))
if wrong:
    sys.exit("\n".join([*wrong, "see tests/firings/reasons.py"]))
write(written(fired))
