"""A real terminal: tmux, with the command in it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Crow

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """``await tmux.start(crow)``, ``await tmux.until("text")``, ``await tmux.keys("y", "Enter")``."""

    def __init__(self, folder: Path, columns: int = 100, rows: int = 32) -> None:
        self._folder = folder
        self._starts = 0
        self._size = columns, rows

    async def _tmux(self, *argv: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("tmux", "-S", str(self._folder / f"tmux{self._starts}"), "-f", "/dev/null", *argv),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        return out.decode()

    async def start(self, crow: Crow, *argv: str, piped: str = "", **env: str) -> None:
        """Start a command; when it has ended its exit status stands on the screen.

        ``piped`` is a shell's command whose output is the command's input.
        """
        wanted = {
            name: os.environ[name] for name in os.environ if name.startswith(("HOME", "XDG_"))
        }
        wanted |= {"CROW_SANDBOX": "off", "PATH": os.environ["PATH"], **crow.env, **env}
        words = ["env", "-i", *(f"{name}={value}" for name, value in wanted.items())]
        line = f"{shlex.join([*words, 'TERM=screen-256color', *crow.command(*argv)])}"
        if "TERM" in env:
            line = line.replace("TERM=screen-256color ", "")
        self._starts += 1  # a server that ends still answers at its socket
        columns, rows = map(str, self._size)
        line = f"{piped} | {line}" if piped else line
        shell = f"{line}; echo ended: $?; exec cat"
        await self._tmux("new-session", "-d", "-x", columns, "-y", rows, "-c", str(crow.cwd), shell)
        await self._tmux("set", "-g", "history-limit", "9999")

    async def close(self) -> None:
        """End it and everything in it."""
        await self._tmux("kill-server")

    async def keys(self, *names: str) -> None:
        """Press keys, by tmux's names for them."""
        await self._tmux("send-keys", *names)

    async def type(self, text: str) -> None:
        """Type a text."""
        await self._tmux("send-keys", "-l", text)

    async def type_slowly(self, text: str) -> None:
        """Type a text as a person does, a key every 0.05 seconds by the terminal's own clock."""
        words: list[str] = []
        for letter in text:
            words += ["send-keys", "-l", letter, ";", "run-shell", "-d", "0.05", ";"]
        await self._tmux(*words)

    async def paste(self, text: str) -> None:
        """Paste a text, as terminals do."""
        await self._tmux("set-buffer", text)
        await self._tmux("paste-buffer", "-p")

    async def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller."""
        await self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    async def screen(self, *options: str) -> str:
        """What can be seen."""
        return await self._tmux("capture-pane", "-p", *options)

    async def history(self) -> str:
        """What can be seen, and all that has gone over the top."""
        return await self.screen("-S", "-")

    async def until(self, *texts: str, gone: str = "", whole: bool = False) -> str:
        """The screen as soon as it has all of these texts on it, and another one not any more.

        ``whole`` looks at what has gone over the top, too.
        """

        def has_all(screen: str) -> bool:
            return all(text in screen for text in texts) and not (gone and gone in screen)

        return await self.until_true(has_all, *(("-S", "-") if whole else ()))

    async def until_armed(self, key: str) -> None:
        """Wait until a question takes this key: it takes none at first."""
        await self.until_true(lambda screen: f"\x1b[1m\x1b[36m{key}" in screen, "-e")

    async def until_true(self, is_so: Callable[[str], bool], *options: str) -> str:
        """The screen as soon as something is true of it."""
        screen = ""
        try:
            async with asyncio.timeout(50):
                while True:
                    screen = await self.screen(*options)
                    if is_so(screen):
                        return screen
                    await asyncio.sleep(0.02)
        except TimeoutError:
            told = [cell.cell_contents for cell in is_so.__closure__ or ()]
            raise AssertionError(f"{told} are not all on the screen:\n{screen}") from None

    async def title(self) -> str:
        """What the window is called."""
        return (await self._tmux("display-message", "-p", "#{pane_title}")).strip()
