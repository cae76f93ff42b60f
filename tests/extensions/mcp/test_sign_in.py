"""Signing in to servers: with the library's authorization server, a browser that agrees, real files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import HTTPRedirectHandler, build_opener

import pytest
from tests.extensions.mcp.conftest import SERVERS, Open, Watcher

from crow import Agent
from crow.core.ports.client import Question
from crow.extensions import McpHook
from crow.project import state_directory
from crow.testing import FakeEditor, ScriptedModel, call

BROWSER = f"{sys.executable} {Path(__file__).with_name('browser.py')} %s"
NEEDED = "it needs a sign-in: crow mcp login it"


class Signed:
    """The server, and what is asked of it."""

    def __init__(self, trace: Path, life: int = 3600) -> None:
        env = {**os.environ, "TRACE": str(trace), "LIFE": str(life)}
        pipe = subprocess.PIPE
        argv = [sys.executable, str(SERVERS / "signed.py")]
        self.trace = trace
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=env)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def told(self) -> list[str]:
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return [line.split()[0] for line in lines]

    def do(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def signed(trace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Signed]:
    monkeypatch.setenv("BROWSER", BROWSER)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    server = Signed(trace)
    yield server
    server.end()


class Seat(Watcher):
    """Somebody in front of a terminal with a browser, who wants to sign in, or does not."""

    opens_pages = True

    def __init__(self, *, wants: bool = True) -> None:
        super().__init__(True)  # somebody is there to answer
        self.wants = wants

    async def ask(self, session_id: str, question: Question) -> Any:
        self.questions.append(question)
        if question.kind == "text":
            return ""
        return question.choices[0 if self.wants else 1]


def kept() -> dict[str, Any]:
    """What is in the file, by key."""
    path = state_directory() / "mcp-credentials.json"
    return json.loads(path.read_text()) if path.exists() else {}


def crow(*argv: str, stdin: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("crow")), "mcp", *argv],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


async def test_who_signs_in_has_the_tools_and_nobody_sees_the_tokens(
    opened: Open, signed: Signed
) -> None:
    client = Seat()
    script = ["Hello.", call("mcp__it__headers"), "Done."]
    async with opened({"it": {"url": signed.url}}, *script, client=client) as there:
        await there.prompt()
        assert there.tools() == []
        assert any(NEEDED in text for text in client.notices)
        assert client.questions == []  # nobody has asked for it
        assert "ready" in await there.prompt("/mcp login it")
        assert client.questions[0].url.startswith(signed.url.replace("/mcp", "/authorize?"))
        await there.prompt()
        (result,) = there.results
        told = json.dumps([*there.session.messages, *client.notices], default=str)
    (entry,) = kept().values()
    assert entry["tokens"]["access_token"].startswith("SECRET-")
    assert "(hidden)" in result
    assert "SECRET-" not in result + told
    path = state_directory() / "mcp-credentials.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert signed.told() == ["registered", "authorized"]
    assert signed.url == signed.trace.read_text().split()[-1]  # for this server and no other


@pytest.mark.slow
async def test_who_does_not_want_to_is_not_asked_twice(opened: Open, signed: Signed) -> None:
    client = Seat(wants=False)
    async with opened({"it": {"url": signed.url}}, "Hello.", client=client) as there:
        await there.prompt()
        assert NEEDED in await there.prompt("/mcp login it")
        assert len(client.questions) == 1
    assert signed.told() == ["registered"]


@pytest.mark.slow
async def test_a_token_that_has_ended_is_renewed_by_one_session_for_all(
    opened: Open, signed: Signed
) -> None:
    assert crow("add", "it", signed.url)[0] == 0
    assert crow("login", "it")[0] == 0
    script = [call("mcp__it__headers"), "Done."]
    table = {"it": {"url": signed.url}}
    async with opened(table, *script) as one, opened(table, *script) as other:
        before = kept()
        signed.do("expire")
        await asyncio.gather(one.prompt(), other.prompt())
        assert [len(each.results) for each in (one, other)] == [1, 1]
        assert not any("error" in text for text in (*one.results, *other.results))
    assert kept() != before
    assert signed.told() == ["registered", "authorized", "renewed"]


@pytest.mark.slow
def test_tokens_are_renewed_before_they_end(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", BROWSER)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    server = Signed(trace, life=1)
    try:
        crow("add", "it", server.url)
        assert crow("login", "it")[0] == 0
        assert crow("test", "it")[0] == 0  # starting it took longer than the token lives
        assert "renewed" in server.told()
        assert server.told().count("authorized") == 1
    finally:
        server.end()


@pytest.mark.slow
def test_an_authorization_server_that_fails_costs_nobody_the_sign_in(signed: Signed) -> None:
    crow("add", "it", signed.url)
    assert crow("login", "it")[0] == 0
    signed.do("break")
    status, told = crow("test", "it")
    assert status == 1
    assert "try again later" in told
    signed.do("mend")
    assert crow("test", "it")[0] == 0
    assert signed.told().count("authorized") == 1


@pytest.mark.slow
def test_what_is_renewed_no_more_needs_a_person_and_the_client_is_kept(signed: Signed) -> None:
    crow("add", "it", signed.url)
    assert crow("login", "it")[0] == 0
    signed.do("refuse")
    status, told = crow("test", "it")
    assert (status, NEEDED in told) == (1, True)
    assert crow("login", "it")[0] == 0
    assert signed.told().count("registered") == 1


@pytest.mark.slow
def test_a_client_that_is_not_known_any_more_is_registered_again(signed: Signed) -> None:
    crow("add", "it", signed.url)
    assert crow("login", "it")[0] == 0
    signed.do("forget")
    command = [str(Path(sys.executable).with_name("crow")), "mcp", "login", "it"]
    lost = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert lost.stderr is not None
    while "Sign in there" not in lost.stderr.readline():
        pass
    lost.send_signal(signal.SIGINT)  # the browser has ended at an error, and nobody comes
    lost.communicate(timeout=60)
    assert crow("login", "it")[0] == 0
    assert signed.told().count("registered") == 2


@pytest.mark.slow
def test_the_commands_say_what_is_and_what_to_do(signed: Signed, tmp_path: Path) -> None:
    assert crow("add", "it", signed.url, "--header", "x-key: SECRET-header")[0] == 0
    status, told = crow("list")
    assert status == 0
    assert "needs sign-in" in told
    assert "crow mcp login it" in told
    assert crow("login", "it")[0] == 0
    assert "ready" in crow("list", "--json")[1]
    status, told = crow("test", "it")
    assert (status, "tools: headers" in told) == (0, True)
    assert "SECRET" not in crow("get", "it")[1]
    assert "signed out" in crow("logout", "it")[1]
    assert kept() == {}
    assert "needs sign-in" in crow("list")[1]
    assert crow("remove", "it")[0] == 0
    assert "no MCP servers" in crow("list")[1]
    assert crow("get", "it")[0] == 2


@pytest.mark.slow
def test_an_address_that_is_pasted_ends_a_sign_in(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BROWSER")
    crow("add", "it", signed.url)
    command = [str(Path(sys.executable).with_name("crow")), "mcp", "login", "it", "--no-browser"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stderr is not None
    page = ""
    while "/authorize?" not in page:
        page = process.stderr.readline()
    address = page[page.index("http://", page.index("page is")) :].split()[0]

    class Stay(HTTPRedirectHandler):
        def redirect_request(
            self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
        ):
            self.end = newurl

    stay = Stay()
    with suppress(OSError):
        build_opener(stay).open(address)
    _, told = process.communicate(f"{stay.end}\n", timeout=100)
    assert process.returncode == 0, told


@pytest.mark.slow
def test_servers_of_a_project_that_is_not_trusted_are_named_and_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = {"command": "touch", "args": [str(tmp_path / "started")]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": server}}))
    status, told = crow("list")
    assert status == 0
    assert "untrusted" in told
    assert "crow trust" in told
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "scope, file",
    [
        ("user", ".crow/settings.json"),
        ("project", ".mcp.json"),
        ("local", ".crow/settings.local.json"),
    ],
)
def test_a_server_is_added_where_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, file: str
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    argv = ("-s", scope, "-e", "KEY=value", "--", "npx", "-y", "server", "-v")
    assert crow("add", "files", *argv)[0] == 0
    path = (Path.home() if scope == "user" else tmp_path) / file
    table = json.loads(path.read_text())
    wanted = {"command": "npx", "args": ["-y", "server", "-v"], "env": {"KEY": "value"}}
    assert table["mcpServers"] == {"files": wanted}
    assert crow("add", "files", "ls", "-s", scope)[0] == 2
    assert crow("remove", "files")[0] == 0
    assert json.loads(path.read_text())["mcpServers"] == {}


@pytest.mark.parametrize("wants", [True, False])
async def test_in_an_editor_that_shows_pages_the_sign_in_is_one_until_it_is_done(
    signed: Signed, tmp_path: Path, *, wants: bool
) -> None:
    going: list[asyncio.subprocess.Process] = []

    async def visit(_: Any) -> Any:
        url = str(editor.asked[-1]["url"])
        if wants:
            going.append(await asyncio.create_subprocess_exec(*BROWSER.replace("%s", url).split()))
        return {} if wants else None

    hook = McpHook({"it": {"url": signed.url}}, connect_timeout=50.0, wait=50.0)
    editor = FakeEditor(answers=[visit], pages=True)
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[hook])
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hi")
        await editor.prompt(session, "/mcp login it")
        assert ("ready" if wants else "needs a sign-in") in editor.text()
        (asked,) = editor.asked
        ended = [m for m in editor.wire.received if m.get("method") == "elicitation/complete"]
    assert asked["message"] == "The MCP server 'it' wants you to sign in."
    done = [{"elicitationId": asked["elicitationId"]}] if wants else []
    assert [each["params"] for each in ended] == done
    assert [await each.wait() for each in going] == [0] * len(going)
