"""What a session knows of its files, and what its calls have made of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping

from crow import frozen
from crow.extensions.rewind.shape import ABSENT, UNKNOWN, Shape, Stamp, is_settled, look, stamp_of
from crow.extensions.rewind.store import Change, Store
from crow.extensions.rewind.tree import TooManyFilesError, is_below, outermost, scan

ANYWHERE = ""
"""The path that stands for any below the session's folders."""
SLACK = 0.05
"""Seconds by which a file's time can be behind the clock."""
BATCH = 16_000_000
"""Bytes that are kept in one step."""


@frozen
class Limits:
    """How much is looked at and kept: bytes of a file, bytes and files of a folder."""

    largest: int
    folder: int
    files: int
    skip: frozenset[str]


@frozen
class Moment:
    """A call that is at work. ``paths`` are those that it may change, None for any."""

    at: float
    paths: frozenset[str] | None
    pending: tuple[int, ...]

    def covers(self, path: str, roots: Collection[str]) -> bool:
        """True where the call may have changed a path."""
        if self.paths is not None:
            return path in self.paths
        return any(is_below(path, root) for root in roots)


class Watched:
    """The files of one session: how they looked last, and who is at work on them.

    Used in threads, one look after the other. ``told`` is what its user should know, once each.
    """

    def __init__(self, session: str, store: Store, limits: Limits) -> None:
        self.session = session
        self.told: dict[str, bool] = {}
        self._store = store
        self._limits = limits
        self._stamps: dict[str, Stamp | None] = {}
        self._shapes: dict[str, Shape] = {}
        self._roots: dict[str, bool] = {}
        self._working: list[Moment] = []
        self._lock = threading.Lock()

    def begin(self, paths: Iterable[str] | None, roots: Collection[str]) -> Moment:
        """A call begins, which may change these paths, or any: keep what is there."""
        with self._lock:
            whole = None if paths is None else frozenset(_with_folders(paths))
            self._look(whole, roots)
            at = time.time()
            wanted = {ANYWHERE: UNKNOWN} if whole is None else {
                path: self._known(path) for path in whole
            }  # fmt: skip
            moment = Moment(at, whole, tuple(self._store.begin(self.session, at, wanted)))
            self._working.append(moment)
            return moment

    def end(self, moment: Moment, roots: Collection[str]) -> None:
        """A call is over: write down what it changed."""
        with self._lock:
            try:
                self._look(moment.paths, roots)
                self._store.end(moment.pending, ())
            finally:
                self._working.remove(moment)

    def refresh(self, paths: Iterable[str]) -> None:
        """Somebody has brought paths back, and has written that down."""
        with self._lock:
            self._take({path: stamp_of(path) for path in paths})

    # looking

    def _known(self, path: str) -> Shape:
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
        before = {
            path: self._known(path)
            for path in new
            if path in known or (paths is None and not any(is_below(path, root) for root in first))
        }
        self._take(new)
        self._roots |= dict.fromkeys(first, True)
        self._store.end((), [*self._changes(before, roots)])

    def _is_old(self, path: str, what: Stamp | None) -> bool:
        """True for a file that is too large to be read, and looks as it did."""
        known = self._stamps.get(path)
        is_same = known is not None and what is not None and known == (0, *what)
        return is_same and not self._shapes[path].is_kept

    def _changes(self, before: Mapping[str, Shape], roots: Collection[str]) -> Iterable[Change]:
        real, was_there = outermost(roots), {each.mark for each in before.values()}
        for path, old in before.items():
            whose = next((each for each in self._working if each.covers(path, real)), None)
            after = self._known(path)
            if whose is None or old.same(after) or "other" in (old.kind, after.kind):
                continue
            is_moved = after.mark not in was_there and self._is_older(path, whose)
            # it came from elsewhere: to remove it could be to lose it
            yield Change(self.session, time.time(), path, old, UNKNOWN if is_moved else after)

    def _is_older(self, path: str, moment: Moment) -> bool:
        """True for a file or link that is older than the call which put it there."""
        what = self._stamps.get(path)
        return what is not None and len(what) > 1 and what[-3] < (moment.at - SLACK) * 1e9

    def _scanned(self, roots: Collection[str], first: list[str]) -> dict[str, Stamp | None]:
        """The stamps of all that is in some folders, and of what is no longer.

        Folders that are looked at for the first time are added to ``first``.
        """
        found: dict[str, Stamp | None] = {}
        for root in outermost(roots):
            if self._roots.get(root) is False:
                continue
            try:
                here = scan(root, self._limits.skip, self._limits.files)
            except (TooManyFilesError, OSError) as error:
                self._roots[root] = False
                self._tell(f"what commands change here cannot be taken back: {error}")
                continue
            if root not in self._roots:
                first.append(root)
                self._recall(root, here)
            found |= here
            for path in self._stamps.keys() - here.keys():
                seen = self._stamps[path]
                if seen is not None and is_below(path, root):
                    found[path] = stamp_of(path, seen)
        return found

    def _recall(self, root: str, here: Mapping[str, Stamp]) -> None:
        """Take what an earlier session kept of files that look as they did then."""
        for path, (what, mark) in self._store.known_below(root).items():
            if here.get(path) == what and path not in self._stamps:
                self._stamps[path] = what
                self._shapes[path] = Shape("file", what[0] & 0o7777, mark, what[1])

    # keeping

    def _take(self, new: Mapping[str, Stamp | None]) -> None:
        """Keep what is at some paths, and know them from now on."""
        contents: dict[str, bytes] = {}
        stamps: dict[str, tuple[Stamp, str]] = {}
        size, room = 0, 0 if new and self._store.is_full else self._limits.folder
        for path in new:
            largest = self._limits.largest if room > 0 else -1
            shape, what, data = look(path, largest)
            is_kept = shape.kind == "file" and bool(shape.mark)
            settled = what is None or is_settled(what)
            self._shapes[path] = shape
            self._stamps[path] = what if settled else (0, *(what or ()))  # to be read again
            if is_kept:
                contents[shape.mark] = data
                room, size = room - len(data), size + len(data)
            elif shape.kind == "file":
                self._tell_large(path, shape, is_full=room <= 0)
            if is_kept and settled and what is not None:
                stamps[path] = what, shape.mark
            if size > BATCH:
                self._store.keep(contents, stamps)
                contents, stamps, size = {}, {}, 0
        if contents:
            self._store.keep(contents, stamps)

    def _tell_large(self, path: str, shape: Shape, *, is_full: bool) -> None:
        if is_full:
            self._tell("there is more here than is kept: not all can be taken back")
        elif shape.size > self._limits.largest:
            most = self._limits.largest
            self._tell(f"files of more than {most:,} bytes are not kept, such as {path}")

    def _tell(self, text: str) -> None:
        self.told.setdefault(text.partition(", such as")[0], False)


def _with_folders(paths: Iterable[str]) -> Iterable[str]:
    """Paths by where they really are, with the folders on their way that are not there yet."""
    for path in paths:
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        folder = os.path.realpath(folder)
        yield os.path.join(folder, name)  # noqa: PTH118
        while folder and stamp_of(folder) is None:
            yield folder
            folder = os.path.dirname(folder)  # noqa: PTH120
