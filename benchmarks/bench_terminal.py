"""The screen: from the start to a prompt, what a key takes to be echoed, what waiting costs.

Crow on a terminal beside a bare prompt-toolkit prompt in the same run, in an empty home: until
there is a prompt that takes keys, and until it says which model answers. Keys are pressed while a
model says 200 tokens a second, on a server on loopback: in paragraphs, and in one of which 3,000
words are there already; the bare prompt has nothing else to do. Wanted: a prompt within 0.25 s, a
key within 16 ms, waiting below 5 % of a core.
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

from crow.testing.endpoint import USAGE, Endpoint, Response, delta, stream

ROUNDS = 7
TOKENS, RATE = 2400, 200
PARAGRAPH, ENDLESS = 80, 10_000
"""Words in one."""
SAID = 3000
"""Words of the endless one that are there when the keys begin."""
KEYS = string.ascii_uppercase + string.digits
"""Letters that nothing else on the screen has: the first one that is seen is the echo."""
WAITS = 5.0
READY = "scripted"
BARE = "from prompt_toolkit import PromptSession; PromptSession('ready> ').prompt()"
CROW = [str(Path(sys.executable).with_name("crow"))]
STARTS = {
    "a bare prompt": ([sys.executable, "-c", BARE], ("ready>",)),
    "crow": (CROW, ("> ", READY)),
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


def spoken(paragraph: int, said: int = 0) -> Response:
    """An answer that comes word by word, in paragraphs of so many; ``said`` come at once."""
    words = [
        delta(content=f"word{n % 10}" + (" " if (n + 1) % paragraph else ".\n\n"))
        for n in range(said + TOKENS)
    ]
    paced = [step for word in words[said:] for step in (word, 1 / RATE)]
    return stream(*words[:said], *paced, delta(finish="stop"), USAGE)


async def starts(env: dict[str, str], home: str) -> None:
    """Start both in turn, and print how long each takes."""
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, (argv, texts) in STARTS.items():
            terminal = Terminal(argv, env, home)
            for text in texts:
                seconds = await terminal.until(text) - terminal.began
                took.setdefault(f"{name}: {text.strip()!r}", []).append(seconds)
            terminal.end()
    for name, each in took.items():
        median, least = statistics.median(each) * 1e3, min(each) * 1e3
        print(f"to a prompt (median, least, ms)   {name:24} {median:4.0f} {least:4.0f}")


async def keys(endpoint: Endpoint, env: dict[str, str], home: str) -> None:
    """Press keys, and print how long each takes."""
    bare = Terminal(STARTS["a bare prompt"][0], env, home)
    await bare.until("ready>")
    await asyncio.sleep(0.5)
    print(f"a key (median, 95th, ms)   bare, idle              {told(await typed(bare, 3))}")
    bare.end()
    for scene, paragraph, said in (("paragraphs", PARAGRAPH, 0), ("a paragraph", ENDLESS, SAID)):
        endpoint.play(spoken(paragraph, said))
        crow = Terminal(CROW, env, home)
        await crow.until(READY)
        await asyncio.sleep(1)
        before = crow.cpu()
        await asyncio.sleep(WAITS)
        waiting = (crow.cpu() - before) / WAITS
        os.write(crow.fd, b"go\r")
        await crow.until("word1")
        await asyncio.sleep(1 if said else 0)
        busy, began = crow.cpu(), time.perf_counter()
        print(f"{'':27}{RATE} tokens/s, {scene:11} {told(await typed(crow, 8))}", end="")
        used = (crow.cpu() - busy) / (time.perf_counter() - began)
        crow.end()
        print(f"   a core: waiting {waiting:.1%}, then {used:.0%}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        async with Endpoint() as endpoint:
            env = {
                "PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color",
                "PROMPT_TOOLKIT_NO_CPR": "1", "CROW_BASE_URL": endpoint.url,
                "CROW_MODEL": READY, "CROW_API_KEY": "k",
            }  # fmt: skip
            await starts(env, home)
            await keys(endpoint, env, home)


if __name__ == "__main__":
    asyncio.run(main())
