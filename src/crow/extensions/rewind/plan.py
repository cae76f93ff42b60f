"""The plan of a rewind, path by path: nothing is touched here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import PurePath
from typing import Literal

from crow.dataclasses import frozen
from crow.extensions.rewind.file_tracker import ANYWHERE
from crow.extensions.rewind.path_state import UNKNOWN, Keeping, PathState, look
from crow.extensions.rewind.shared_store import Kept
from crow.extensions.rewind.store import Change

Action = Literal["restore", "delete", "leave"]
SOMEBODY = "somebody else changed it since"
BETWEEN = "somebody else changed it in between"
UNSURE = "how it came to be is not known"
UNKEPT = "what it was is not kept"
NO_WAY_BACK = "it is too large, or has a key in it: no way back would be kept"
MOVED = "it has what somebody else had in a file that is left alone"
BARRED = "somebody else has a file where its folder was"
FOLDERS = ("folder", "absent")
"""What is in nobody's way."""
ODD = "it is no file, folder or link"
ELSEWHERE = "the way to it leads elsewhere now"


@frozen
class Step:
    """A step of a plan: ``leave`` has its ``reason``.

    ``can_overwrite`` is true for what is left alone because somebody else changed it, and would be
    brought back where the user wants that as well. ``now`` is what is there, ``then`` what was.
    """

    path: str
    action: Action
    now: PathState
    then: PathState
    reason: str = ""
    can_overwrite: bool = False

    @property
    def is_folder(self) -> bool:
        """True where a folder is there, or was."""
        return "folder" in (self.now.kind, self.then.kind)


@frozen
class Plan:
    """A plan of going back to a time. ``notes`` are what cannot be known."""

    since: float
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def foreign(self) -> tuple[Step, ...]:
        """What somebody else changed, and is left alone unless the user says otherwise."""
        return tuple(step for step in self.steps if step.can_overwrite)

    @property
    def does_something(self) -> bool:
        """True where there is something to do, beside what is left alone."""
        return any(step.action != "leave" for step in self.steps)

    @property
    def shown(self) -> list[Step]:
        """What a person has to read: a folder goes without saying with what is in it."""
        said = {(step.action, each) for step in self.steps for each in _above(step.path)}
        return [
            step
            for step in self.steps
            if step.reason or not step.is_folder or (step.action, step.path) not in said
        ]

    def lines(self, cwd: str) -> list[str]:
        """The plan as a person reads it, a path a line."""
        return [*(_line(step, cwd) for step in self.shown), *self.notes]


def _above(path: str) -> Iterable[str]:
    """The folders that a path is in."""
    return map(str, PurePath(path).parents)


def _line(step: Step, cwd: str) -> str:
    return f"{step.action:7}  {named(step, cwd)}" + (f"  ({step.reason})" if step.reason else "")


def named(step: Step, cwd: str) -> str:
    """A step's path as a person reads it."""
    path = step.path
    short = os.path.relpath(path, cwd) if path.startswith(cwd.rstrip(os.sep) + os.sep) else path
    shown = short.encode("utf-8", "replace").decode()
    shown = "".join(each if each.isprintable() else "?" for each in shown)
    return f"{shown}/" if step.is_folder else shown


def planned(store: Kept, sessions: Sequence[str], since: float, keeping: Keeping) -> Plan:
    """What it takes to have everything as it was at a time, as far as these sessions changed it."""
    chains: dict[str, list[Change]] = {}
    for change in store.changes(sessions, since):
        chains.setdefault(change.path, []).append(change)
    notes: list[str] = []
    for at, path, before in store.pending(sessions, since):
        if path == ANYWHERE:
            when = time.strftime("%H:%M", time.localtime(at))
            notes.append(f"a command was cut off at {when}: what it changed is not known")
        else:
            cut = Change(sessions[-1], at, path, before, UNKNOWN)
            chains.setdefault(path, []).append(cut)
    others = {mark for chain in chains.values() for mark in _contents_of_others(chain)}
    steps = _with_ways([*_steps(chains, store.has, keeping)])
    steps = _with_folders(_with_last_places(steps, others))
    return Plan(since, tuple(sorted(steps, key=lambda each: each.path)), tuple(notes))


def _with_ways(steps: list[Step]) -> list[Step]:
    """The steps; nothing comes back in a folder in whose place somebody else's file stays."""
    taken = {s.path for s in steps if s.action == "leave" and s.now.kind not in FOLDERS}

    def is_barred(step: Step) -> bool:
        return step.action == "restore" and any(each in taken for each in _above(step.path))

    return [
        replace(s, action="leave", reason=BARRED, can_overwrite=True) if is_barred(s) else s
        for s in steps
    ]


def _with_last_places(steps: list[Step], others: set[str]) -> list[Step]:
    """The steps; none takes away the last place of a content that was not the session's.

    It was moved there, and where it came from is left alone.
    """
    while True:
        stays = {step.now.mark for step in steps if step.action == "leave"}
        comes = {step.then.mark for step in steps if step.action != "leave"}
        lost = others - stays - comes
        found = {s.path for s in steps if s.action != "leave" and s.now.mark in lost}
        if not found:
            return steps
        steps = [
            replace(s, action="leave", reason=MOVED, can_overwrite=True) if s.path in found else s
            for s in steps
        ]


def _with_folders(steps: list[Step]) -> list[Step]:
    """The steps; a folder comes back with what comes back in it, where nothing is in its place.

    Else it would be there without a step, and stay when the rewind is taken back.
    """
    above = {each for step in steps if step.action == "restore" for each in _above(step.path)}

    def comes(step: Step) -> bool:
        is_gone = (step.now.kind, step.then.kind) == ("absent", "folder")
        return step.can_overwrite and is_gone and step.path in above

    return [Step(s.path, "restore", s.now, s.then) if comes(s) else s for s in steps]


def _contents_of_others(chain: Sequence[Change]) -> set[str]:
    """The contents that a session found at a path: at first, and after each gap in its changes."""
    gaps = (two.before for one, two in pairwise(chain) if not one.after.same(two.before))
    return {shape.mark for shape in (chain[0].before, *gaps) if shape.kind == "file"} - {""}


def _steps(
    chains: dict[str, list[Change]], has: Callable[[str], bool], keeping: Keeping
) -> Iterable[Step]:
    folders = {path for path, chain in chains.items() if chain[0].before.kind == "folder"}
    for path, chain in chains.items():
        now, _, _ = look(path, keeping)
        step = judged(path, chain, now, has, folders)
        if step is not None:
            yield step


def judged(
    path: str,
    chain: Sequence[Change],
    now: PathState,
    has: Callable[[str], bool],
    folders: Collection[str],
) -> Step | None:
    """What becomes of one path; None where it is as it was.

    The chain is what the session did to it, in order. A last change whose effect is not there (it
    was undone, or never done) counts as not made. ``folders`` are what will be one again.
    """
    then, rest = chain[0].before, [*chain]
    if now.same(then):
        return None
    while rest and now.same(rest[-1].before):
        rest.pop()
    if (reason := _hindrance(path, now, then, has, folders)) is not None:
        return Step(path, "leave", now, then, reason)
    reason = _strangeness(rest, now)
    if reason:
        return Step(path, "leave", now, then, reason, can_overwrite=True)
    return Step(path, "delete" if then.kind == "absent" else "restore", now, then)


def _hindrance(
    path: str, now: PathState, then: PathState, has: Callable[[str], bool], folders: Collection[str]
) -> str | None:
    """Why a path cannot be brought back, whatever anybody wants."""
    if _leads_elsewhere(os.path.dirname(path), folders):  # noqa: PTH120
        return ELSEWHERE
    if not then.is_kept or (then.kind == "file" and not has(then.mark)):
        return UNKEPT
    if now.kind == "file" and not now.mark:
        return NO_WAY_BACK
    return None if now.is_kept else ODD


def _leads_elsewhere(folder: str, folders: Collection[str]) -> bool:
    """True where a link is on the way, unless it will be a folder again."""
    if os.path.realpath(folder) == folder:
        return False
    names = folder.split(os.sep)  # noqa: PTH206
    way = [*accumulate(names, lambda above, name: f"{above}{os.sep}{name}")]
    first = next((each for each in way if os.path.islink(each)), folder)  # noqa: PTH114
    return first not in folders


def _strangeness(rest: Sequence[Change], now: PathState) -> str:
    """Who else was here; empty where nobody was."""
    if not rest:
        return SOMEBODY
    if rest[-1].after.kind == "unknown":
        return UNSURE
    for one, next_one in pairwise(rest):
        if not one.after.same(next_one.before):
            return BETWEEN
    return "" if now.same(rest[-1].after) else SOMEBODY
