"""A store of a session's changes that all of the machines share on which it goes on.

What is there at first, and what is about to change, stays in this machine's file; what did change
goes to the attachments of the shared store with its contents, before and after, in one step.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from crow.errors import SessionError
from crow.extensions.rewind.path_state import PathState, Stamp
from crow.extensions.rewind.store import DAY, Change, Store, mark_of
from crow.storage import Attachment, Attachments

logger = logging.getLogger("crow.rewind")

OWNER = "rewind"
LOOK = 60.0
"""Seconds between two looks at how much is kept."""


class StoreQuota:
    """The quota of a shared store: for so many days and so many bytes."""

    def __init__(self, shared: Attachments, *, days: float, most: int) -> None:
        self.shared = shared
        self.known: set[str] = set()
        self._days = days
        self._most = most
        self._looked = float("-inf")
        self._is_full = False

    @property
    def is_full(self) -> bool:
        """True where no more contents are to be brought there; what is old goes at first."""
        now = time.monotonic()
        if now - self._looked > LOOK:
            if self._looked == float("-inf"):
                self.shared.clean_up(OWNER, time.time() - self._days * DAY)
            self._looked, self._is_full = now, self.shared.size() > self._most
        return self._is_full


class SharedStore:
    """The store of one session on this machine: its own file, and what all machines share.

    ``folder`` is where the session works here. Raises ``OSError`` where something cannot be had.
    """

    def __init__(self, local: Store, room: StoreQuota, folder: str) -> None:
        self._local = local
        self._room = room
        self._shared = room.shared
        self._folder = os.path.realpath(folder)

    @property
    def is_full(self) -> bool:
        """True where nothing more is to be kept here."""
        return self._local.is_full

    def read(self, mark: str) -> bytes | None:
        """A content by its hash; None where it is nowhere, or is damaged."""
        import hashlib

        data = self._local.read(mark)
        if data is None:
            with _reached():
                data = self._shared.content(mark)
        return data if data is not None and hashlib.sha256(data).hexdigest() == mark else None

    def has(self, mark: str) -> bool:
        """True where a content is kept, here or there."""
        with _reached():
            return self._local.has(mark) or self._shared.has(mark)

    def keep(self, contents: Mapping[str, bytes], stamps: Mapping[str, tuple[Stamp, str]]) -> None:
        """Keep contents here."""
        self._local.keep(contents, stamps)

    def known_below(self, root: str) -> dict[str, tuple[Stamp, str]]:
        """Paths in a folder of this machine that are kept here."""
        return self._local.known_below(root)

    def begin(self, session: str, at: float, paths: Mapping[str, PathState]) -> list[int]:
        """Write down here that these paths are about to change."""
        return self._local.begin(session, at, paths)

    def end(self, pending: Iterable[int], changes: Iterable[Change]) -> None:
        """Write down what came of it: there, and where that cannot be at least here."""
        made = [*changes]
        if made:
            try:
                self._bring(made)
                made = []
            except (SessionError, LookupError) as error:
                logger.info("changes are kept on this machine alone: %s", error)
        self._local.end(pending, made)

    def changes(self, sessions: Sequence[str], since: float) -> list[Change]:
        """What some sessions changed since a time, in order, wherever they did."""
        with _reached():
            there = self._shared.of(OWNER, sessions, since)
        shared, own = [*map(self._change, there)], self._local.changes(sessions, since)
        return sorted([*shared, *own], key=lambda each: each.at) if own else shared

    def pending(self, sessions: Sequence[str], since: float) -> list[tuple[float, str, PathState]]:
        """What was about to change on this machine, and whose end nobody saw."""
        return self._local.pending(sessions, since)

    def drop(self, session: str, rewind: str, path: str) -> None:
        """Forget a step of a rewind that was not done."""
        self._local.drop(session, rewind, path)
        with _reached():
            found = map(self._change, self._shared.of(OWNER, [session], 0.0))
            ids = [each.id for each in found if (each.rewind, each.path) == (rewind, path)]
            self._shared.remove(OWNER, ids)

    def _bring(self, changes: Sequence[Change]) -> None:
        """Bring changes there; once more with all contents, where others took some away."""
        try:
            self._add(changes)
        except LookupError:
            self._room.known.clear()
            self._add(changes)

    def _add(self, changes: Sequence[Change]) -> None:
        wanted = {mark for each in changes for mark in _marks(each)} - self._room.known
        contents: dict[str, bytes] = {}
        for mark in wanted if not self._room.is_full else ():
            if (data := self._local.read(mark)) is not None:
                contents[mark] = data
        old = {mark for mark in wanted - contents.keys() if self._shared.has(mark)}
        there = self._room.known | contents.keys() | old
        self._shared.add(OWNER, [self._record(each, there) for each in changes], contents)
        self._room.known |= contents.keys() | old

    def _record(self, change: Change, there: set[str]) -> Attachment:
        data = {
            "path": change.path,
            "folder": self._folder,
            "before": change.before.as_text(),
            "after": change.after.as_text(),
            "rewind": change.rewind,
        }
        contents = tuple(mark for mark in _marks(change) if mark in there)
        return Attachment(change.session, change.at, json.dumps(data), contents)

    def _change(self, record: Attachment) -> Change:
        data = json.loads(record.data)
        before, after = PathState.of_text(data["before"]), PathState.of_text(data["after"])
        path = here(data["path"], data["folder"], self._folder)
        return Change(record.session, record.at, path, before, after, data["rewind"], record.id)


Kept: TypeAlias = Store | SharedStore
"""A store of contents and changes: this machine's, alone or with what machines share."""


@contextmanager
def _reached() -> Generator[None]:
    """Raise ``OSError`` where the shared store cannot be had."""
    try:
        yield
    except SessionError as error:
        raise OSError(str(error)) from error


def _marks(change: Change) -> list[str]:
    return [mark for shape in (change.before, change.after) if (mark := mark_of(shape))]


def here(path: str, there: str, folder: str) -> str:
    """A path as it is on this machine: in the session's folder, where that was another one."""
    below = path.startswith(there.rstrip(os.sep) + os.sep)
    if there == folder or not below or os.path.isdir(there):  # noqa: PTH112
        return path
    return os.path.join(folder, os.path.relpath(path, there))  # noqa: PTH118
