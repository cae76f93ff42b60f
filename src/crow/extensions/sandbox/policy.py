"""The policy of a confined command: the paths that it may touch, as plain data, all absolute."""

from __future__ import annotations

from typing import Literal, TypeAlias

from crow.dataclasses import frozen

Ring: TypeAlias = Literal["reading", "workspace"]


@frozen
class Limits:
    """Limits on a command; None is as much as it likes."""

    processes: int | None = None  # with threads, of all that it has started
    memory: int | None = None  # bytes, of all that it has started
    open_files: int | None = None  # of each process
    file_size: int | None = None  # bytes


@frozen
class Proxy:
    """The network by name: hosts such as ``pypi.org``, ``*.pypi.org`` or ``pypi.org:443``.

    What is denied is denied though it is allowed, and so is what neither names.
    """

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@frozen
class Policy:
    """One ring around one command.

    ``roots`` are written in the workspace ring and read in the reading ring; a command starts in
    one of them, or below. ``tmp``, a folder of the session's own, takes the place of ``/tmp``;
    without one a command has an empty ``/tmp`` to itself. ``writable`` are further folders and
    files that may be written, in either ring. ``read_only`` may not, wherever they lie, whether
    they are there or not. ``masked`` files and folders are empty or refused, but for what
    ``readable`` names below them. ``by_name`` is masked as well: that may be moved, for it is
    found again by its name.
    """

    ring: Ring
    roots: tuple[str, ...]
    tmp: str = ""
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    by_name: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    network: Literal["none", "host"] | Proxy = "none"
    limits: Limits = Limits()

    @property
    def hidden(self) -> tuple[str, ...]:
        """All that cannot be read."""
        return (*self.masked, *self.by_name)
