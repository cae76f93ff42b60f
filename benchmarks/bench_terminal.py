"""The screen: from the start to a prompt, what a key takes to be echoed, what waiting costs.

Crow on a terminal beside a bare prompt-toolkit prompt in the same run, in an empty home. Keys are
pressed while a model says 200 tokens a second, on a server on loopback; the bare prompt has nothing
else to do. Wanted: a prompt within 0.25 s, a key within 16 ms, waiting below 5 % of a core.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import statistics
import string
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from crow.testing.endpoint import USAGE, Endpoint, delta, stream

ROUNDS = 7
TOKENS, RATE = 2400, 200
PARAGRAPH = 80
"""Words in one."""
KEYS = string.ascii_uppercase + string.digits
"""Letters that nothing else on the screen has: the first one that is seen is the echo."""
WAITS = 5.0
READY = "scripted"
BARE = "from prompt_toolkit import PromptSession; PromptSession('ready> ').prompt()"
PROGRAMS = {
    "bare": ([sys.executable, "-c", BARE], "ready>"),
    "crow": ([str(Path(sys.executable).with_name("crow"))], READY),
}


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: str) -> None:
        self.shown = b""
        self.news = asyncio.Event()
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        asyncio.get_running_loop().add_reader(self.fd, self._read)

    def _read(self) -> None:
        try:
            self.shown += os.read(self.fd, 65536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self.fd)
        self.news.set()

    async def until(self, text: str, start: int = 0) -> float:
        """When a text is shown, in seconds of the clock."""
        try:
            async with asyncio.timeout(30):
                while text.encode() not in self.shown[start:]:
                    self.news.clear()
                    await self.news.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} is not on the screen: {self.shown[-800:]!r}") from None
        return time.perf_counter()

    async def echo(self, key: str) -> float:
        """Seconds until a key is on the screen."""
        start, pressed = len(self.shown), time.perf_counter()
        os.write(self.fd, key.encode())
        return await self.until(key, start) - pressed

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it."""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        asyncio.get_running_loop().remove_reader(self.fd)
        os.close(self.fd)


async def typed(terminal: Terminal, seconds: float) -> list[float]:
    """What keys took that are pressed for so long, 15 a second."""
    took: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for key in KEYS:
            took.append(await terminal.echo(key))
            await asyncio.sleep(0.066)
        os.write(terminal.fd, b"\x15")  # Ctrl-U: the line is empty again
        await asyncio.sleep(0.2)
    return took


def told(took: list[float]) -> str:
    """The median and the 95th percentile, in milliseconds."""
    ordered = sorted(took)
    return f"{statistics.median(took) * 1e3:5.1f} {ordered[int(len(ordered) * 0.95)] * 1e3:6.1f}"


async def main() -> None:
    words = [
        delta(content=f"word{n % 10}" + (" " if n % PARAGRAPH else ".\n\n")) for n in range(TOKENS)
    ]
    paced = [step for word in words for step in (word, 1 / RATE)]
    with tempfile.TemporaryDirectory() as home:
        async with Endpoint() as endpoint:
            env = {
                "PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color",
                "PROMPT_TOOLKIT_NO_CPR": "1", "CROW_BASE_URL": endpoint.url,
                "CROW_MODEL": READY, "CROW_API_KEY": "k",
            }  # fmt: skip
            starts: dict[str, list[float]] = {name: [] for name in PROGRAMS}
            for _ in range(ROUNDS):
                for name, (argv, ready) in PROGRAMS.items():
                    terminal = Terminal(argv, env, home)
                    starts[name].append(await terminal.until(ready) - terminal.began)
                    terminal.end()
            medians = {name: statistics.median(each) for name, each in starts.items()}
            ratio = medians["crow"] / medians["bare"]
            print(f"to a prompt   bare {medians['bare'] * 1e3:4.0f} ms   crow "
                  f"{medians['crow'] * 1e3:4.0f} ms   {ratio:.1f} times")  # fmt: skip

            bare = Terminal(*PROGRAMS["bare"][:1], env, home)
            await bare.until(PROGRAMS["bare"][1])
            await asyncio.sleep(0.5)
            print(f"a key (median, 95th, ms)   bare, idle   {told(await typed(bare, 3))}")
            bare.end()

            endpoint.play(stream(*paced, delta(finish="stop"), USAGE))
            crow = Terminal(*PROGRAMS["crow"][:1], env, home)
            await crow.until(READY)
            await asyncio.sleep(1)
            before = crow.cpu()
            await asyncio.sleep(WAITS)
            waiting = (crow.cpu() - before) / WAITS
            os.write(crow.fd, b"go\r")
            await crow.until("word1")
            busy, began = crow.cpu(), time.perf_counter()
            print(f"                           crow, {RATE} tokens/s {told(await typed(crow, 8))}")
            used = (crow.cpu() - busy) / (time.perf_counter() - began)
            crow.end()
            print(f"a core   waiting {waiting:.1%}   streaming, with keys {used:.0%}")


if __name__ == "__main__":
    asyncio.run(main())
