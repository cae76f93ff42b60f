"""Terminal sequences that hooks may send: titles, notifications, the bell, and nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crow.ports import TerminalClient, implements

if TYPE_CHECKING:
    from crow import Context


HARMLESS = re.compile(
    r"(?:\x07|\x1b\](?:0|1|2|9|99|777);[^\x00-\x1f\x7f-\x9f]{0,1000}(?:\x07|\x1b\\))+"
)


def send(ctx: Context, sequence: object) -> None:
    """Have the terminal obey a sequence, where there is one and the sequence is harmless."""
    client = ctx.session.root.client
    if not isinstance(sequence, str) or not HARMLESS.fullmatch(sequence):
        return
    if implements(client, TerminalClient):
        client.obey(sequence)
