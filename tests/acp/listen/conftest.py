"""A server as a process of its own, and somewhere to work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

CROW = str(Path(sys.executable).with_name("crow"))
TOKEN = "a-token-for-tests-only"
NOTHING: Mapping[str, str] = {}
LINE = re.compile(r"listening on (http://\S+)")

FLOOD = """
from pathlib import Path
from crow.core.events import TextDelta
from crow.events import Form

async def before_run(ctx):
    "Ask with a form, where there is a file of that name."
    if Path(ctx.cwd, "form").exists():
        schema = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}
        said = await ctx.ui.fill_in(Form("Which?", schema))
        Path(ctx.cwd, "said").write_text(str(said and dict(said.content)))

async def after_tool(ctx):
    "Say more than is kept for anybody, where there is a file of that name."
    flood = Path(ctx.cwd, "flood")
    if flood.exists():
        flood.unlink()
        for number in range(100):
            await ctx.emit(TextDelta("x" * 60_000, f"flood{number}"))
        Path(ctx.cwd, "flooded").touch()
"""
"""An extension of the server."""


class Server:
    """``crow acp --listen``; ``http`` and ``ws`` are its URLs with the token."""

    def __init__(
        self,
        home: Path,
        *options: str,
        token: str | None = TOKEN,
        store: str = "",
        variables: Mapping[str, str] = NOTHING,
    ) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OLLAMA_HOST": "127.0.0.1:9",
            "CROW_SANDBOX": "off",
            **variables,
        }
        if store:
            env["CROW_STORE"] = store
        if token is not None:
            env["CROW_ACP_TOKEN"] = token
        if not any(option.startswith("--listen") for option in options):
            options = ("--listen", "127.0.0.1:0", *options)
        self.process = subprocess.Popen(
            [CROW, "acp", "--model", "rehearsal", *options],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        found = LINE.search(self.said)
        assert found, self.said + self.process.stderr.read()
        url = found[1]
        self.bare = url.partition("?")[0]
        parts = urlsplit(url)
        self.place = (parts.hostname, parts.port)
        self.http = url if "?" in url else f"{url}?token={token}"
        self.ws = self.http.replace("http://", "ws://", 1)

    def url(self, scheme: str) -> str:
        """The URL for ``http`` or for ``ws``."""
        return self.ws if scheme == "ws" else self.http

    def close(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=50)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests, which may run commands unasked."""
    home = tmp_path_factory.mktemp("served")
    (home / "flood.py").write_text(FLOOD)
    served = Server(home, "--allow", "Bash", "--extension", "flood.py")
    yield served
    assert served.process.poll() is None, "the server did not live through the tests"
    served.close()


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts a server with options."""
    started: list[Server] = []

    def run(*options: str, token: str | None = TOKEN) -> Server:
        started.append(Server(tmp_path_factory.mktemp("served"), *options, token=token))
        return started[-1]

    yield run
    for served in started:
        served.close()


@pytest.fixture
def waiting(tmp_path: Path) -> str:
    """A prompt for a command that ends when there is a file ``go``, and says so in ``on``."""
    script = tmp_path / "wait.sh"
    script.write_text("touch on\nuntil [ -e go ]; do sleep 0.02; done\necho the end\n")
    return "Run `sh wait.sh`"
