"""A file of somebody's conversation: which program wrote it, and what was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from crow.core.errors import CrowError
from crow.transcripts.atif import is_atif
from crow.transcripts.atif import read as read_atif
from crow.transcripts.claude import is_claude
from crow.transcripts.claude import read as read_claude
from crow.transcripts.codex import is_codex
from crow.transcripts.codex import read as read_codex
from crow.transcripts.opencode import is_opencode
from crow.transcripts.opencode import read as read_opencode
from crow.transcripts.otlp import is_otlp
from crow.transcripts.otlp import read as read_otlp
from crow.transcripts.pi import is_pi
from crow.transcripts.pi import read as read_pi
from crow.transcripts.transcript import Object, Transcript, objects

LOOKED_AT = 50
"""Lines by which a program is known."""
BY_LINES: tuple[tuple[Callable[[Iterable[Object]], bool], Callable[[str], Transcript]], ...] = (
    (is_codex, read_codex),
    (is_pi, read_pi),
    (is_claude, read_claude),
)
KNOWN = (
    "an export of Crow, a transcript of Claude Code, a rollout of Codex, a session of pi, an "
    "export of opencode, an ATIF trajectory, traces in OTLP's JSON"
)


class UnknownTranscriptError(CrowError):
    """A text is nobody's conversation, as far as is known here."""


def read(text: str) -> Transcript | str:
    """The conversation of a file; an export of Crow's as the text that it is.

    Raises `UnknownTranscriptError` for what is none.
    """
    first = list(islice(objects(text), LOOKED_AT))
    if first and first[0].get("kind") == "session" and "cwd" in first[0]:
        return text
    for fits, reader in BY_LINES:
        if fits(first):
            return _with_something(reader(text))
    value = _whole(text)
    if is_otlp(value) or any(map(is_otlp, first)):
        return _with_something(read_otlp(text))
    if is_opencode(value):
        return _with_something(read_opencode(value))
    if is_atif(value):
        return _with_something(read_atif(value))
    raise UnknownTranscriptError(f"it is no conversation that is known here: {KNOWN}")


def _with_something(made: Transcript) -> Transcript:
    if not made.rows:
        raise UnknownTranscriptError(f"nothing was said in this conversation of {made.program}")
    return made


def _whole(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
