"""Errors that are raised for people. Each says what is wrong and what to do, in one line."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable
from os.path import dirname
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    ModelErrorKind: TypeAlias = Literal[
        "rate_limit", "overloaded", "authentication", "billing", "model_not_found",
        "context_length", "invalid_request", "server", "network", "timeout", "protocol",
        "unconfigured", "unknown",
    ]  # fmt: skip

NOT_THEIRS = (dirname(dirname(__file__)), dirname(traceback.__file__))  # noqa: PTH120
"""Where Crow's code lies, and Python's library."""
UNKNOWN_IMPORT = r"cannot import name '(\w+)' from '[\w.]+'"
ALIKE = 0.75
"""How alike two names are of which one was probably meant."""


class CrowError(Exception):
    """Anything that Crow raises on purpose."""


class HookError(CrowError):
    """A hook cannot be registered: unknown event, unknown parameter, wrong object."""


class ExtensionError(CrowError):
    """An extension cannot be used: it does not import, or its options do not fit."""


class ModelError(CrowError):
    """A model could not answer.

    ``kind`` is one of ``rate_limit``, ``overloaded``, ``authentication``, ``billing``,
    ``model_not_found``, ``context_length``, ``invalid_request``, ``server``, ``network``,
    ``timeout``, ``protocol``, ``unconfigured`` or ``unknown``; ``retry_after`` is in seconds.
    The text names endpoint and model, never the key.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind | str = "unknown",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ModelErrorKind | str = kind
        self.status = status
        self.retry_after = retry_after


class SessionError(CrowError):
    """A session does not exist, is in use elsewhere, or is closed."""


class SessionInUse(SessionError):  # noqa: N818 - nothing is wrong with it
    """A session is there, and somebody else has it open.

    ``address`` is where clients of other machines reach whoever has it, ``left`` the seconds after
    which the session can be had where that one is gone; both empty where nobody knows.
    """

    def __init__(self, message: str, *, address: str = "", left: float = 0.0) -> None:
        super().__init__(message)
        self.address = address
        self.left = left


def message_of(error: BaseException) -> str:
    """What is told of an error: its text, and the notes that say where it happened."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = text_of(error) or type(error).__name__
    return f"{text} ({notes})" if notes else text


def text_of(error: BaseException) -> str:
    """What an error says; empty where it cannot."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - somebody else's code
        return ""


def raised_at(error: BaseException | None) -> str:
    """File and line: the last that an error came by outside of Crow and of Python's library."""
    steps = traceback.walk_tb(None if error is None else error.__traceback__)
    places = [(frame.f_code.co_filename, line) for frame, line in steps]
    theirs = [place for place in places if not place[0].startswith(("<", *NOT_THEIRS))]
    return "{}:{}".format(*theirs[-1]) if theirs else ""


def with_place(error: BaseException) -> str:
    """An error as it is written, with the file and line of others' code where it was raised."""
    place, told = raised_at(error), f"{error!r}{hint_of(error)}"
    return f"{told} ({place})" if place else told


def last_line(error: BaseException, path: str) -> str:
    """File and line: the last in this file that an error came by; empty where it did not."""
    steps = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == path]
    return f"{path}:{lines[-1]}" if lines else ""


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known word that was probably meant; None where none is like it."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1, alike)), None)


def hint_of(error: BaseException) -> str:
    """``; did you mean 'add_tool'?`` for a name that is not there and is nearly one; or nothing."""
    try:
        name, known = _sought(error)
    except Exception:  # noqa: BLE001 - somebody else's code
        return ""
    open_ones = [each for each in known if each != name and not each.startswith("_")]
    near = nearest(name, open_ones, ALIKE) if name else None
    return f"; did you mean {near!r}?" if near and f"{near!r}?" not in text_of(error) else ""


def _sought(error: BaseException) -> tuple[str, Iterable[str]]:
    """The name that somebody looked for, and what there is in that place."""
    match error:
        case AttributeError(name=str(name), obj=obj) if obj is not None:
            return name, dir(obj)
        case ImportError(name=str(module)) if found := re.match(UNKNOWN_IMPORT, text_of(error)):
            return found[1], dir(sys.modules.get(module))
        case NameError(name=str(name)) if not isinstance(error, UnboundLocalError):
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            return name, {**frames[-1].f_builtins, **frames[-1].f_globals, **frames[-1].f_locals}
        case _:
            return "", ()
