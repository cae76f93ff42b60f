"""The kinds of containers that a worker can give to sessions, and what nobody needs of them."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.core.errors import ExtensionError
from crow.core.extensions import make
from crow.extensions.container import Container, ContainerError, ContainerHook, listed
from crow.fleet.task import FleetError, Workspace

if TYPE_CHECKING:
    from crow.fleet.board import Board

logger = logging.getLogger("crow.fleet")

Kinds = Mapping[str, ContainerHook]
PREFIX = "crow-"


def read_kinds(path: Path) -> Kinds:
    """The kinds of a TOML file, a table for each with the options of the extension ``container``.

    Raises `FleetError`.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FleetError(f"{path} cannot be read: {error}") from error
    made: dict[str, ContainerHook] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise FleetError(f"{path}: {name} is no table: write [{name}] and its commands")
        try:
            options = cast("dict[str, Any]", table)
            made[name] = make(ContainerHook, f"container in [{name}]", options)
        except ExtensionError as error:
            raise FleetError(f"{path}: {error}") from error
    return made


def kind_of(kinds: Kinds, wanted: Workspace) -> ContainerHook:
    """The extension for a session in a container. Raises `FleetError` for a kind that is none."""
    kind = kinds.get(wanted.container)
    if kind is None:
        known = ", ".join(kinds) or "none: crow fleet work --containers FILE names them"
        raise FleetError(f"there is no container {wanted.container!r} here; there are {known}")
    return replace(kind, image=wanted.image or kind.image)


def named(job: str) -> str:
    """The name of a job's container, on every machine."""
    return f"{PREFIX}{job}"


async def sweep(kinds: Kinds, board: Board) -> None:
    """Remove containers of jobs that are over, or that wait for a person."""
    for name, kind in kinds.items():
        try:
            there = {each.removeprefix(PREFIX) for each in await listed(kind)}
            for job in await board.over(there):
                logger.info("a container that nobody needs is removed: %s", named(job))
                await Container(kind, named(job)).stop()
        except ContainerError as error:
            logger.warning("containers of the kind %s cannot be looked after: %s", name, error)
