"""Limits on all calls, whatever the rules allow: what Claude Code's settings say beside rules."""

from __future__ import annotations

from crow import frozen


@frozen
class Limits:
    """``never_asks``: where a question would be asked, the call is denied.

    ``blocks_reads`` and ``blocks_writes`` deny what is outside of the working directories, of
    which ``excluded`` are no part: directories, relative ones below each of them. ``no_bypass``
    takes sessions out of the mode bypassPermissions.
    """

    never_asks: bool = False
    blocks_reads: bool = False
    blocks_writes: bool = False
    excluded: tuple[str, ...] = ()
    no_bypass: bool = False


NO_LIMITS = Limits()
