"""Goes back: what is there is kept first, and each step written down before it is taken."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress

from crow.dataclasses import frozen
from crow.extensions.rewind.path_state import Keeping, PathState, Stamp, look, stamp
from crow.extensions.rewind.plan import ELSEWHERE, Plan, Step
from crow.extensions.rewind.shared_store import Kept
from crow.extensions.rewind.store import Change
from crow.project import held_folder, put_in, replace_in

FOLDER = "folder"


@frozen
class Outcome:
    """The outcome: ``failed`` are paths with the reason why they are as they were.

    ``since`` is the time of the rewind: going back to it takes it back.
    """

    done: tuple[Step, ...]
    failed: tuple[tuple[str, str], ...]
    since: float


def carry_out(
    store: Kept, session: str, plan: Plan, keeping: Keeping, *, overwrite: bool
) -> Outcome:
    """Bring back what a plan says, and with ``overwrite`` what somebody else changed as well."""
    wanted = [s for s in plan.steps if s.action != "leave" or (overwrite and s.can_overwrite)]
    rewind, since = uuid.uuid4().hex, time.time()
    failed: list[tuple[str, str]] = []
    ready = [step for step in wanted if _keep(store, step, keeping, failed)]
    store.end((), [Change(session, since, s.path, s.now, s.then, rewind) for s in ready])
    done: list[Step] = []
    for step in _sorted(ready):
        try:
            _bring_back(store, step, keeping)
            done.append(step)
        except OSError as error:
            store.drop(session, rewind, step.path)
            failed.append((step.path, error.strerror or str(error)))
    return Outcome(tuple(done), tuple(failed), since)


def _keep(store: Kept, step: Step, keeping: Keeping, failed: list[tuple[str, str]]) -> bool:
    """Keep what is there now; False where it is no longer what the plan saw."""
    now, _, data = look(step.path, keeping)
    if not now.same(step.now):
        failed.append((step.path, "it changed just now"))
        return False
    if now.kind == "file":
        store.keep({now.mark: data}, {})
    return True


def _sorted(steps: Iterable[Step]) -> list[Step]:
    """First what has to go, from the inside out, then what has to be there, from the outside in."""
    every = [*steps]
    goes = [step for step in every if step.then.kind == "absent"]
    comes = [step for step in every if step.then.kind != "absent"]
    return [
        *sorted(goes, key=lambda each: each.path, reverse=True),
        *sorted(comes, key=lambda each: each.path),
    ]


def _bring_back(store: Kept, step: Step, keeping: Keeping) -> None:
    """Take one step. Raises ``OSError``; then the path is as it was."""
    with _folder_of(step.path, makes=step.then.kind == FOLDER) as (folder, name):
        now, what, _ = look(step.path, keeping)
        if not now.same(step.now) or _stamp(name, folder) != what:
            raise OSError("it changed just now")
        data = store.read(step.then.mark) if step.then.kind == "file" else b""
        if data is None:
            raise OSError("what it was is no longer kept")
        if now.kind == FOLDER and step.then.kind != FOLDER:
            os.rmdir(name, dir_fd=folder)
        elif step.then.kind in ("absent", FOLDER) and now.kind != "absent" and now.kind != FOLDER:
            os.unlink(name, dir_fd=folder)
        _make(name, step.then, data, folder)


@contextmanager
def _folder_of(path: str, *, makes: bool) -> Generator[tuple[int, str]]:
    """The folder of a path, held open, and the name in it.

    Raises ``OSError`` where a link is on the way. ``makes`` folders that are not there.
    """
    above, name = os.path.split(path)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(held_folder(above, make=makes))
        except NotADirectoryError as error:
            raise OSError(ELSEWHERE) from error
        yield folder, name


def _stamp(name: str, folder: int) -> Stamp | None:
    try:
        return stamp(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _make(name: str, then: PathState, data: bytes, folder: int) -> None:
    match then.kind:
        case "folder":
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            _change_mode(name, then.mode, folder)
        case "file":
            replace_in(folder, name, data, 0o600, lambda file: os.fchmod(file, then.mode))
        case "link":
            with put_in(folder, name) as fresh:
                os.symlink(then.mark, fresh, dir_fd=folder)
        case _:
            pass


def _change_mode(name: str, mode: int, folder: int) -> None:
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        os.fchmod(made, mode)
    finally:
        os.close(made)
