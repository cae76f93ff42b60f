"""Goes back: what is there is kept first, and each step written down before it is taken."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress

from crow import frozen
from crow.extensions.rewind.plan import Plan, Step
from crow.extensions.rewind.shape import Keeping, Shape, look
from crow.extensions.rewind.store import Change, Store

FOLDER = "folder"


@frozen
class Outcome:
    """What was done: ``failed`` are paths with the reason why they are as they were.

    ``since`` is the time of the rewind: going back to it takes it back.
    """

    done: tuple[Step, ...]
    failed: tuple[tuple[str, str], ...]
    since: float


def carry_out(
    store: Store, session: str, plan: Plan, keeping: Keeping, *, overwrite: bool
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
            store.drop(rewind, step.path)
            failed.append((step.path, error.strerror or str(error)))
    return Outcome(tuple(done), tuple(failed), since)


def _keep(store: Store, step: Step, keeping: Keeping, failed: list[tuple[str, str]]) -> bool:
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


def _bring_back(store: Store, step: Step, keeping: Keeping) -> None:
    """Take one step. Raises ``OSError``; then the path is as it was."""
    now, _, _ = look(step.path, keeping)
    if not now.same(step.now):
        raise OSError("it changed just now")
    if os.path.realpath(os.path.dirname(step.path)) != os.path.dirname(step.path):  # noqa: PTH120
        raise OSError("the way to it leads elsewhere now")
    data = store.read(step.then.mark) if step.then.kind == "file" else b""
    if data is None:
        raise OSError("what it was is no longer kept")
    if now.kind == FOLDER and step.then.kind != FOLDER:
        os.rmdir(step.path)  # noqa: PTH106 - only where nothing is in it
    elif step.then.kind in ("absent", FOLDER) and now.kind != "absent" and now.kind != FOLDER:
        os.unlink(step.path)  # noqa: PTH108
    _make(step.path, step.then, data)


def _make(path: str, then: Shape, data: bytes) -> None:
    match then.kind:
        case "folder":
            os.makedirs(path, exist_ok=True)  # noqa: PTH103
            os.chmod(path, then.mode)  # noqa: PTH101
        case "file":
            _replace(path, then, data)
        case "link":
            fresh = _beside(path)
            os.symlink(then.mark, fresh)  # noqa: PTH211
            _put(fresh, path)
        case _:
            pass


def _replace(path: str, then: Shape, data: bytes) -> None:
    """Put a file in its place: written beside it, down to the disk, then renamed."""
    fresh = _beside(path)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), then.mode)
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)  # noqa: PTH108
        raise
    _put(fresh, path)


def _put(fresh: str, path: str) -> None:
    try:
        os.replace(fresh, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)  # noqa: PTH108
        raise


def _beside(path: str) -> str:
    folder = os.path.dirname(path)  # noqa: PTH120
    return os.path.join(folder, f".crow-{uuid.uuid4().hex[:12]}.tmp")  # noqa: PTH118
