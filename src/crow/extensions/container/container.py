"""A container that somebody else's program makes and enters, by the commands of a recipe."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from signal import SIGKILL
from string import Template
from typing import Protocol

from crow import CrowError
from crow.process import Finished, run

POLL = 0.5
LONGEST = 300
"""Characters of what a command has said that an error repeats."""
MARK = "CROW_COMMAND"
"""The variable in each command's environment that no other command has."""
END = r"""
for found in $(grep -lsF -e "$1" /proc/[0-9]*/environ); do
    found=${found#/proc/}
    kill -s "$2" "${found%/environ}" 2>/dev/null
done
exit 0
"""
"""Ends what carries a mark; nothing but a shell and grep is needed."""


class ContainerError(CrowError):
    """A fault of a container, in one line: the command, its exit code, its last words."""


class Recipe(Protocol):
    """The commands of containers of one kind, and what goes into them.

    Each is split into words as a shell does, and no shell sees it; ``$name``, ``$folder``,
    ``$image``, ``$cwd``, ``$uid`` and ``$gid`` are put into words. ``$mounts`` and ``$env`` are
    words of their own, in the place of which any number of words come.
    """

    start: str
    exec: str
    stop: str
    list: str
    input: str
    image: str
    mount: str
    variable: str
    seconds: float


class Container:
    """One container, known by its name to whoever looks for it, also after this process has died.

    ``folder`` is what is worked in; ``paths`` and it are to be seen inside under their own names,
    ``shown`` as well, where nothing is to be written.
    """

    def __init__(
        self,
        recipe: Recipe,
        name: str,
        folder: str = "",
        paths: Sequence[str] = (),
        shown: Sequence[str] = (),
    ) -> None:
        self.recipe = recipe
        self.name = name
        self.folder = folder
        self.is_new = False
        self._written = {folder, *paths}
        self._paths = [*dict.fromkeys([folder, *paths, *shown])]
        self._starting = asyncio.Lock()
        self._begun = False
        self.is_sure = False

    async def start(self) -> None:
        """Find it, or make it; ``is_new`` says which. Raises `ContainerError`.

        Where it was found by a process that is new to it, commands that run there yet are ended:
        whoever has started them is gone. While it ``is_sure`` to be there nobody looks.
        """
        async with self._starting:
            if self.is_sure:
                return
            if await self._answers():
                if not self._begun:
                    await _said(self.inside(ending(self.marked(), SIGKILL)))
            else:
                await self.stop()  # one that has ended has the name yet
                await _run(self.words("start"), self._text("input", self.recipe.input))
                self.is_new = True
                await self._wait()
            self._begun = self.is_sure = True

    async def _wait(self) -> None:
        """Wait until it answers, which takes some programs longer than starting it."""
        argv, last = self.inside(["true"]), ""
        try:
            async with asyncio.timeout(self.recipe.seconds):
                while said := await _said(argv):
                    last = said
                    await asyncio.sleep(POLL)
        except TimeoutError:
            late = last or f"{shlex.join(argv)} does not answer"
            raise ContainerError(f"{late}, for {self.recipe.seconds:g} s") from None

    async def _answers(self) -> bool:
        return not await _said(self.inside(["true"]))

    async def stop(self) -> None:
        """Remove it, where it is there."""
        self.is_sure = False
        if self.recipe.stop:
            await _said(self.words("stop"))

    def marked(self, command: str = "") -> str:
        """The variable of a command of this container; without one how that of each begins."""
        return f"{MARK}={self.name}/{command}"

    def inside(
        self, argv: Sequence[str], cwd: str = "", variables: Mapping[str, str] | None = None
    ) -> list[str]:
        """The words that start a program inside. Raises `ContainerError`."""
        words = self.words("exec", cwd=cwd or self.folder, variables=variables or {})
        return [*words, *argv]

    def words(
        self, what: str, cwd: str = "", variables: Mapping[str, str] | None = None
    ) -> list[str]:
        """The words of one of the recipe's commands. Raises `ContainerError`."""
        try:
            split = shlex.split(getattr(self.recipe, what))
        except ValueError as error:
            raise ContainerError(f"the container's {what} is no command line: {error}") from error
        return [made for word in split for made in self._made(what, word, cwd, variables or {})]

    def _made(self, what: str, word: str, cwd: str, variables: Mapping[str, str]) -> Iterator[str]:
        match word:
            case "$mounts":
                for path in self._paths:
                    mode = "rw" if path in self._written else "ro"
                    yield from _filled("mount", self.recipe.mount, {"path": path, "mode": mode})
            case "$env":
                for name, value in variables.items():
                    pair = {"variable": f"{name}={value}"}
                    yield from _filled("variable", self.recipe.variable, pair)
            case _:
                yield self._text(what, word, cwd)

    def _text(self, what: str, text: str, cwd: str = "") -> str:
        values = {
            "name": self.name,
            "folder": self.folder,
            "image": self.recipe.image,
            "cwd": cwd,
            "uid": str(os.getuid()),
            "gid": str(os.getgid()),
        }
        return _substituted(what, text, values)


def ending(mark: str, number: int) -> list[str]:
    """What sends a signal, inside, to all whose environment has a mark."""
    return ["sh", "-c", END, "sh", mark, str(int(number))]


async def listed(recipe: Recipe) -> list[str]:
    """The names of the containers that there are, where the recipe has a command that tells."""
    words = Container(recipe, "").words("list")
    return (await _run(words)).split() if words else []


def _filled(what: str, text: str, values: Mapping[str, str]) -> Iterator[str]:
    for word in shlex.split(text):
        yield _substituted(what, word, values)


def _substituted(what: str, text: str, values: Mapping[str, str]) -> str:
    try:
        return Template(text).substitute(values)
    except KeyError as error:
        known = ", ".join(f"${name}" for name in values)
        told = f"the container's {what} has ${error.args[0]}, which is none of {known}"
        raise ContainerError(told) from None
    except ValueError as error:
        raise ContainerError(f"the container's {what}: {error}: write $$ for a $") from error


async def _run(argv: Sequence[str], stdin: str = "") -> str:
    """What a command prints. Raises `ContainerError` where it fails."""
    done = await _ended(argv, stdin)
    if done.code:
        why = f"exit code {done.code}: {done.complaint[:LONGEST]}"
        raise ContainerError(f"{shlex.join(argv)[:LONGEST]}: {why}")
    return done.out.decode(errors="replace")


async def _said(argv: Sequence[str]) -> str:
    """What is wrong with a command that failed; nothing for one that did not."""
    try:
        await _run(argv)
    except ContainerError as error:
        return str(error)
    return ""


async def _ended(argv: Sequence[str], stdin: str) -> Finished:
    try:
        return await run(argv, stdin=stdin.encode())
    except (OSError, ValueError) as error:
        raise ContainerError(f"{shlex.join(argv)[:LONGEST]}: {error}") from error
