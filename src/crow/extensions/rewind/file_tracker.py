"""The tracker of a session's files: how they looked last, and what its calls made of them."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import TypeGuard

from crow import CrowError
from crow.dataclasses import frozen
from crow.extensions.rewind.inotify import Follower, Inotify
from crow.extensions.rewind.path_state import (
    ABSENT,
    UNKNOWN,
    Keeping,
    PathState,
    Stamp,
    inode_of_many,
    is_settled,
    look,
    stamp_of,
    unread,
)
from crow.extensions.rewind.shared_store import Kept
from crow.extensions.rewind.store import Change
from crow.extensions.rewind.tree import TooManyFilesError, is_below, outermost, scan

ANYWHERE = ""
"""The path that stands for any below the session's folders."""
SLACK = 0.05
"""Seconds by which a file's time can be behind the clock."""
BATCH = 16_000_000
"""Bytes that are kept in one step."""
PART = 128
"""Files that are kept in one step, of those that were put off."""
NOTHING = Keeping(-1)
PAUSE = 0.001
"""Seconds after such a step in which others can compute."""


@frozen
class Limits:
    """Limits on looking and keeping: of a file, and bytes and files of a folder."""

    keeping: Keeping
    folder: int
    files: int
    skip: frozenset[str]


@frozen
class RunningCall:
    """A call that is at work. ``paths`` are those that it may change, None for any."""

    at: float
    paths: frozenset[str] | None
    pending: tuple[int, ...]

    def covers(self, path: str, roots: Collection[str]) -> bool:
        """True where the call may have changed a path."""
        if self.paths is not None:
            return path in self.paths
        return any(is_below(path, root) for root in roots)


class GivenUpError(CrowError):
    """A look that nobody waits for any more."""


class FileTracker:
    """The files of one session: how they looked last, and who is at work on them.

    Used in threads, one look after the other. ``told`` is what its user should know, once each.
    What is there at first is only looked at, and kept by and by, while it is as it was then.
    Once it is closed every look is given up: the ends of calls are to be waited for before.
    """

    def __init__(self, session: str, store: Kept, limits: Limits, notices: Inotify | None) -> None:
        self.session = session
        self.told: dict[str, bool] = {}
        self._store = store
        self._limits = limits
        self._notices = notices
        self._followers: dict[str, Follower | None] = {}
        self._stamps: dict[str, Stamp | None] = {}
        self._shapes: dict[str, PathState] = {}
        self._roots: dict[str, bool] = {}
        self._working: list[RunningCall] = []
        self._put_off: dict[str, None] = {}
        self._room = limits.folder
        self._closed = False
        self._lock = threading.Lock()

    def first(self, roots: Collection[str]) -> None:
        """Look at folders for the first time, and keep what is there, until that is given up."""
        with suppress(GivenUpError):
            with self._lock:
                self._look(None, roots)
            while self._put_off:
                with self._lock:
                    self._check()
                    self._keep_part()
                time.sleep(PAUSE)

    def begin(self, paths: Iterable[str] | None, roots: Collection[str]) -> RunningCall:
        """A call begins, which may change these paths, or any: keep what is there.

        Raises `GivenUpError`.
        """
        with self._lock:
            whole = None if paths is None else frozenset(_with_folders(paths))
            self._look(whole, roots)
            self._check()
            at = time.time()
            wanted = {ANYWHERE: UNKNOWN} if whole is None else {
                path: self._known(path) for path in whole
            }  # fmt: skip
            moment = RunningCall(at, whole, tuple(self._store.begin(self.session, at, wanted)))
            self._working.append(moment)
            return moment

    def end(self, moment: RunningCall, roots: Collection[str]) -> None:
        """A call is over: write down what it changed. Raises `GivenUpError`."""
        with self._lock:
            try:
                self._look(moment.paths, roots)
                self._store.end(moment.pending, ())
            finally:
                self._working.remove(moment)

    def refresh(self, paths: Iterable[str]) -> None:
        """Somebody has brought paths back, and has written that down."""
        with self._lock:
            self._take({path: stamp_of(path) for path in paths}, self._limits.folder)

    def close(self) -> None:
        """Keep no more, and hear no more of what changes; a look that is on is given up."""
        self._closed = True
        with self._lock:
            for each in self._followers.values():
                if each is not None:
                    each.leave()

    def _check(self) -> None:
        if self._closed:
            raise GivenUpError("the session is over")

    # looking

    def _known(self, path: str) -> PathState:
        return self._shapes.get(path, ABSENT if self._stamps.get(path) is None else UNKNOWN)

    def _look(self, paths: Collection[str] | None, roots: Collection[str]) -> None:
        """See what is new, keep it, and write down what of it calls of this session did.

        What nobody had looked at before is the beginning, and nobody's change.
        """
        first: list[str] = []
        if paths is None:
            now = self._scanned(roots, first)
        else:
            now = {path: stamp_of(path, self._stamps.get(path)) for path in paths}
        known = self._stamps
        new = {
            path: each
            for path, each in now.items()
            if known.get(path, ()) != each and not self._is_old(path, each)
        }
        self._check()
        before = {
            path: self._known(path)
            for path in new
            if path in known or (paths is None and not any(is_below(path, root) for root in first))
        }
        if paths is not None:
            new |= {path: now[path] for path in self._put_off.keys() & now.keys()}
        else:
            for path in [path for path in new if path not in before]:
                self._check()
                if can_wait(what := new[path]):
                    self._stamps[path], self._shapes[path] = what, unread(what)
                    self._put_off[path] = None
                    del new[path]
        self._take(new, self._limits.folder)
        self._roots |= dict.fromkeys(first, True)
        self._store.end((), [*self._changes(before, roots)])

    def _is_old(self, path: str, what: Stamp | None) -> bool:
        """True for a file that is too large to be read, and looks as it did."""
        known = self._stamps.get(path)
        is_same = known is not None and what is not None and known == (0, *what)
        return is_same and not self._shapes[path].is_kept

    def _changes(self, before: Mapping[str, PathState], roots: Collection[str]) -> Iterable[Change]:
        real, was_there = outermost(roots), {each.mark for each in before.values()}
        for path, old in before.items():
            whose = next((each for each in self._working if each.covers(path, real)), None)
            after = self._known(path)
            is_odd = old.kind == "other" or (old.kind, after.kind) == ("absent", "other")
            if whose is None or old.same(after) or is_odd:
                continue
            is_moved = after.mark not in was_there and self._is_older(path, whose)
            # it came from elsewhere: to remove it could be to lose it
            yield Change(self.session, time.time(), path, old, UNKNOWN if is_moved else after)

    def _is_older(self, path: str, moment: RunningCall) -> bool:
        """True for a file or link that is older than the call which put it there."""
        what = self._stamps.get(path)
        return what is not None and len(what) > 1 and what[-3] < (moment.at - SLACK) * 1e9

    def _scanned(self, roots: Collection[str], first: list[str]) -> dict[str, Stamp | None]:
        """The stamps of all in some folders that may have changed, and of what is no longer.

        Folders that are looked at for the first time are added to ``first``.
        """
        found: dict[str, Stamp | None] = {}
        for root in outermost(roots):
            if self._roots.get(root) is False:
                continue
            try:
                changed = self._changed_below(root)
                found |= self._whole(root, first) if changed is None else changed
            except (TooManyFilesError, OSError) as error:
                self._roots[root] = False
                self._tell(f"what commands change here cannot be taken back: {error}")
        return found

    def _whole(self, root: str, first: list[str]) -> dict[str, Stamp | None]:
        """Look at all that is in a folder, and hear from then on what changes."""
        if root not in self._followers:
            self._followers[root] = None if self._notices is None else self._notices.follow(root)
        follower = self._followers[root]
        if follower is not None:
            follower.begin()
        here = scan(root, self._limits.skip, self._limits.files, self._check, follower)
        if root not in self._roots:
            first.append(root)
            self._recall(root, here)
        found: dict[str, Stamp | None] = {**here}
        for path in self._stamps.keys() - here.keys():
            seen = self._stamps[path]
            if seen is not None and is_below(path, root):
                found[path] = stamp_of(path, seen)
        return found

    def _changed_below(self, root: str) -> dict[str, Stamp | None] | None:
        """Look at what the kernel has told of; None where all in the folder is to be looked at."""
        follower = self._followers.get(root)
        changed = None if follower is None or root not in self._roots else follower.take()
        if follower is None or changed is None:
            return None
        skip = self._limits.skip
        found: dict[str, Stamp | None] = {}
        made, follower.made = follower.made, set()
        for path in changed | self._linked(follower, changed):
            seen = self._stamps.get(path)
            what = stamp_of(path, seen)
            is_folder = what is not None and len(what) == 1
            if (what or seen) and not (is_folder and os.path.basename(path) in skip):  # noqa: PTH119
                found[path] = what
                if is_folder and path in made:
                    found |= scan(path, skip, self._limits.files, self._check, follower)
        return found

    def _linked(self, follower: Follower, changed: set[str]) -> set[str]:
        """The other names of files that have more than one by now: no change is told of them."""
        inodes = {inode_of_many(path) for path in changed} - follower.inodes
        if inodes:
            follower.inodes |= inodes
            every = ((path, each) for path, each in self._stamps.items() if each is not None)
            found = {path for path, each in every if each[-1] in inodes and len(each) > 1}
            follower.linked |= {path for path in found if is_below(path, follower.root)}
            follower.linked |= {path for path in changed if inode_of_many(path) in inodes}
        return follower.linked

    def _recall(self, root: str, here: Mapping[str, Stamp]) -> None:
        """Take what an earlier session kept of files that look as they did then."""
        for path, (what, mark) in self._store.known_below(root).items():
            if here.get(path) == what and path not in self._stamps:
                self._stamps[path] = what
                self._shapes[path] = PathState("file", what[0] & 0o7777, mark, what[1])

    # keeping

    def _keep_part(self) -> None:
        """Keep some of the files that were put off, as far as they are as they were."""
        some = [*islice(self._put_off, PART)]
        as_then = {path: each for path in some if (each := stamp_of(path)) == self._stamps[path]}
        for path in some:
            del self._put_off[path]
        self._room -= self._take(as_then, self._room)

    def _take(self, new: Mapping[str, Stamp | None], room: int) -> int:
        """Keep what is at some paths, of so many bytes, and know them from now on; the bytes."""
        most = room = 0 if new and self._store.is_full else room
        contents: dict[str, bytes] = {}
        stamps: dict[str, tuple[Stamp, str]] = {}
        size, keeping = 0, self._limits.keeping
        for path in new:
            shape, what, data = look(path, keeping if room > 0 else NOTHING)
            self._put_off.pop(path, None)
            self._tell_large(path, what)
            is_kept = shape.kind == "file" and bool(shape.mark)
            settled = what is None or is_settled(what)
            self._shapes[path] = shape
            self._stamps[path] = what if settled else (0, *(what or ()))  # to be read again
            if is_kept:
                contents[shape.mark] = data
                room, size = room - len(data), size + len(data)
            elif shape.kind == "file" and room <= 0:
                self._tell("there is more here than is kept: not all can be taken back")
            if is_kept and settled and what is not None:
                stamps[path] = what, shape.mark
            if size > BATCH:
                self._store.keep(contents, stamps)
                contents, stamps, size = {}, {}, 0
        if contents:
            self._store.keep(contents, stamps)
        return most - room

    def _tell_large(self, path: str, what: Stamp | None) -> None:
        """Say that a file was too large to be kept, now that it is no longer what it was."""
        was, most = self._shapes.get(path), self._limits.keeping.largest
        is_as_it_was = self._stamps.get(path) in (what, (0, *(what or ())))
        if was is not None and not is_as_it_was and not was.mark and was.size > most:
            self._tell(f"files of more than {most:,} bytes are not kept, such as {path}")

    def _tell(self, text: str) -> None:
        self.told.setdefault(text.partition(", such as")[0], False)


def can_wait(what: Stamp | None) -> TypeGuard[Stamp]:
    """True for a file that has not changed just now: who reads it later sees whether it has."""
    return what is not None and stat.S_ISREG(what[0]) and is_settled(what)


def _with_folders(paths: Iterable[str]) -> Iterable[str]:
    """Paths by where they really are, with the folders on their way that are not there yet."""
    for path in paths:
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        folder = os.path.realpath(folder)
        yield os.path.join(folder, name)  # noqa: PTH118
        while folder and stamp_of(folder) is None:
            yield folder
            folder = os.path.dirname(folder)  # noqa: PTH120
