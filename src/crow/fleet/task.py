"""The task of a session of a fleet, and the files that people write tasks in."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, cast

from crow.core.errors import CrowError
from crow.core.support.frozen import frozen


class FleetError(CrowError):
    """Something of a fleet that a person can mend, in one line."""


@frozen
class Workspace:
    """The place where a session works: a ``folder``, or a working tree of a ``git`` repository.

    ``git`` is a path or an address, ``ref`` what the tree begins with; ``push`` brings what the
    session has committed or changed to the branch ``crow/ID`` of that repository. Commands run in a
    ``container`` of a kind that the workers know, of an ``image`` where the kind lets one choose.
    """

    folder: str = ""
    git: str = ""
    ref: str = "HEAD"
    push: bool = False
    container: str = ""
    image: str = ""


@frozen
class Task:
    """One session. ``key`` makes it the same one however often it is submitted.

    ``allow``, ``deny`` and ``mode`` are as the options of ``crow run``; who cannot be asked is
    answered from ``crow fleet inbox``. ``max_cost`` is in dollars, ``max_turns`` in requests.
    ``tries`` is how often it may begin, the times that machines died included.
    """

    prompt: str
    key: str = ""
    workspace: Workspace = field(default_factory=Workspace)
    model: str | None = None
    mode: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    max_turns: int | None = None
    max_cost: float | None = None
    tries: int = 10

    def as_data(self) -> dict[str, Any]:
        """The task as JSON has it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


TYPES: dict[str, type | tuple[type, ...]] = {
    "prompt": str,
    "key": str,
    "workspace": (dict, str),
    "model": str,
    "mode": str,
    "allow": (list, tuple),
    "deny": (list, tuple),
    "settings": dict,
    "priority": int,
    "labels": dict,
    "max_turns": int,
    "max_cost": (int, float),
    "tries": int,
}
WORKSPACE: dict[str, type] = {
    "folder": str,
    "git": str,
    "ref": str,
    "push": bool,
    "container": str,
    "image": str,
}


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a file: JSON Lines, JSON, or TOML with ``[[task]]`` tables.

    A key that is not given is made of all else that the task says. Raises `FleetError`, which names
    the line or the task's number.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError(f"{path} cannot be read: {error}") from error
    tasks = [task_of(data, where) for where, data in _entries(path, text)]
    if not tasks:
        raise FleetError(f"{path} has no tasks: write a JSON object with a prompt in each line")
    keys = [task.key for task in tasks]
    twice = next((key for key in keys if keys.count(key) > 1), None) if _few(keys) else None
    if twice is not None:
        raise FleetError(f"{path}: two tasks have the key {twice!r}: only one of them would run")
    return tasks


def _few(keys: list[str]) -> bool:
    return len(set(keys)) < len(keys)


def _entries(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """What each task is written as, with the place that an error names."""
    if path.suffix == ".toml":
        yield from _numbered(path, _toml(path, text))
    elif path.suffix == ".json" or text.lstrip().startswith("["):
        yield from _numbered(path, _json(text, str(path)))
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{path}:{number}", _json(line, f"{path}:{number}")


def _numbered(path: Path, entries: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(entries, list):
        raise FleetError(f"{path}: a list of tasks is wanted")
    for number, entry in enumerate(cast("list[Any]", entries), 1):
        yield f"{path}, task {number}", entry


def _toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text).get("task", [])
    except tomllib.TOMLDecodeError as error:
        raise FleetError(f"{path}: {error}") from error


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise FleetError(f"{where}: this is no JSON ({error})") from error


def task_of(data: Any, where: str = "the task") -> Task:
    """A task of its JSON. Raises `FleetError`."""
    values: dict[str, Any] = _checked(data, TYPES, where)
    if not str(values.get("prompt", "")).strip():
        raise FleetError(f"{where}: prompt is missing")
    place: Any = values.get("workspace", {})
    place = {"folder": place} if isinstance(place, str) else place
    values["workspace"] = Workspace(**_checked(place, WORKSPACE, f"{where}: workspace"))
    for name in ("allow", "deny"):
        values[name] = tuple(map(str, values.get(name, ())))
    values["labels"] = {str(name): str(text) for name, text in values.get("labels", {}).items()}
    task = Task(**values)
    return task if task.key else replace(task, key=_key(task))


def _key(task: Task) -> str:
    return hashlib.sha256(json.dumps(task.as_data(), sort_keys=True).encode()).hexdigest()[:32]


def _checked(data: Any, types: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise FleetError(f"{where}: an object with a prompt is wanted, not {data!r:.60}")
    values = cast("dict[str, Any]", data)
    for name, value in values.items():
        if name not in types:
            near = difflib.get_close_matches(name, types, 1)
            hint = f" (did you mean {near[0]}?)" if near else f" ({', '.join(types)})"
            raise FleetError(f"{where}: there is no field {name!r}{hint}")
        is_number = types[name] in (int, (int, float)) and isinstance(value, bool)
        if not isinstance(value, types[name]) or is_number:
            raise FleetError(f"{where}: {name} cannot be {value!r:.60}")
    return dict(values)
