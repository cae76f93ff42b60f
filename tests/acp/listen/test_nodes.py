"""Several servers on one PostgreSQL: each takes any session, and clients go from one to another."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from tests.acp.listen.conftest import FLOOD, TOKEN, Server
from tests.acp.listen.test_draft import HELLO, Client
from tests.acp.listen.test_node import two_clients
from tests.acp.listen.waiting import exists, prompting
from tests.postgres import postgres
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from crow.acp.listen.node import Node
from crow.testing import FakeEditor

__all__ = ["postgres"]

PAUSE = 12
"""Seconds in which a client reads nothing; more than a look whether a node is there takes."""
OVER = {"crow": {"running": False}}
Start = Callable[..., Server]
Pair = tuple[Server, Server]


@pytest.fixture
def spawn(postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts a node of a cluster whose store is new."""
    store, started = postgres.database(), list[Server]()

    def run(*options: str, **others: Any) -> Server:
        home = tmp_path_factory.mktemp("node")
        started.append(Server(home, *options, store=store, **others))
        return started[-1]

    yield run
    for each in started:
        each.process.kill()
        each.close()


@pytest.fixture(scope="module")
def pair(
    postgres: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Two nodes for all tests that leave them as they are; they may run commands unasked."""
    store = postgres.database()
    started = [
        Server(tmp_path_factory.mktemp("node"), "--allow", "Bash", store=store) for _ in range(2)
    ]
    yield started[0], started[1]
    for each in started:
        assert each.process.poll() is None, "the node did not live through the tests"
        each.close()


@pytest.mark.slow
async def test_a_session_goes_from_node_to_node_with_its_clients(
    pair: Pair, tmp_path: Path
) -> None:
    first = FakeEditor()
    async with first.dialed(pair[0].ws):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Run `echo 0`")
    for number in range(1, 5):
        scheme = "http" if number > 2 else "ws"
        later = FakeEditor()
        async with later.dialed(pair[number % 2].url(scheme)):
            (info,) = (await later.connection.list_sessions(str(tmp_path))).sessions
            assert info.session_id == session
            await later.connection.load_session(str(tmp_path), session)
            assert len(later.cards()) == number
            reply = await later.prompt(session, f"Run `echo {number}`")
            assert reply.stop_reason == "end_turn"
            assert [card["title"] for card in later.cards()][-1] == f"echo {number}"


async def test_two_clients_of_two_nodes_share_a_session(pair: Pair, tmp_path: Path) -> None:
    here, there = pair
    holder, watcher = FakeEditor(), FakeEditor()
    async with holder.dialed(here.ws), watcher.dialed(there.http):
        session = await holder.new_session(tmp_path)
        await watcher.connection.load_session(str(tmp_path), session)
        await watcher.wire.until(lambda: "you watch it" in watcher.text())
        await holder.prompt(session, "Run `echo one`")
        await watcher.saw("session_info_update", _meta=OVER)
        assert holder.text().rpartition("I call")[2] in watcher.text()
        assert watcher.cards()[0]["status"] == "completed"
        await watcher.prompt(session, "/pen")
        assert (await watcher.prompt(session, "Run `echo two`")).stop_reason == "end_turn"
        await holder.saw("session_info_update", _meta=OVER)
        assert [card["title"] for card in holder.cards()] == ["echo one", "echo two"]


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_client_that_comes_back_elsewhere_is_in_the_middle_of_its_turn(
    pair: Pair, tmp_path: Path, waiting: str, scheme: str
) -> None:
    here, there = pair
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.url(scheme)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Run `echo before`")
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
    async with later.dialed(there.url(scheme)):
        await later.connection.load_session(str(tmp_path), session)
        await later.wire.until(lambda: later.cards()[-1]["status"] == "in_progress")
        said = [u["content"]["text"] for u in later.updates("user_message_chunk")]
        assert said == ["Run `echo before`", waiting]
        (tmp_path / "go").touch()
        await later.saw("session_info_update", _meta=OVER)
        assert [card["status"] for card in later.cards()] == ["completed", "completed"]
        assert later.text().count("the end") == 1
        assert (await later.prompt(session, "Run `echo after`")).stop_reason == "end_turn"


async def test_a_question_is_answered_from_another_node(pair: Pair, tmp_path: Path) -> None:
    first = FakeEditor(silent=["session/request_permission"])
    later = FakeEditor(permissions=["allow_once"])
    async with first.dialed(pair[0].ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, "Create a file called test.txt"):
            await first.saw("tool_call")
    async with later.dialed(pair[1].ws):
        await later.connection.resume_session(session, str(tmp_path))
        await later.saw("session_info_update", _meta=OVER)
        assert len(later.asked) == 1
        assert (tmp_path / "test.txt").exists()


async def test_a_turn_is_cancelled_from_another_node(
    pair: Pair, tmp_path: Path, waiting: str
) -> None:
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(pair[0].ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
    async with later.dialed(pair[1].ws):
        await later.connection.resume_session(session, str(tmp_path))
        await later.cancel(session)
        await later.saw("session_info_update", _meta=OVER)
        assert [card["status"] for card in later.cards()] == ["failed"]
        assert (await later.prompt(session, "Run `echo on`")).stop_reason == "end_turn"


@pytest.mark.slow
async def test_a_node_is_killed_and_its_session_goes_on_where_the_client_comes_back(
    spawn: Start, tmp_path: Path, waiting: str
) -> None:
    here, there = spawn("--allow", "Bash"), spawn("--allow", "Bash")
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
        here.process.kill()
    async with later.dialed(there.ws):
        await later.connection.load_session(str(tmp_path), session)
        (card,) = later.cards()
        assert card["status"] == "failed"
        assert "outcome unknown" in str(card)
        assert (await later.prompt(session, "Run `echo on`")).stop_reason == "end_turn"


@pytest.mark.slow
async def test_a_turn_that_was_cut_short_goes_on_where_the_client_asks_for_that(
    spawn: Start, tmp_path: Path, waiting: str
) -> None:
    here, there = spawn("--allow", "Bash"), spawn("--allow", "Bash")
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
        here.process.kill()
    async with later.dialed(there.ws):
        await later.connection.resume_session(session, str(tmp_path), crow={"goOn": True})
        await later.saw("session_info_update", _meta=OVER)
        said = [each["content"]["text"] for each in later.updates("user_message_chunk")]
        assert len(said) == 1
        assert said[0].startswith("Go on with what you were doing")
        assert "I do not understand" in later.text()
        await later.connection.load_session(str(tmp_path), session, crow={"goOn": True})
        assert (await later.prompt(session, "Hello")).stop_reason == "end_turn"
        assert [each.get("_meta") for each in later.updates("session_info_update")].count(OVER) == 1


@pytest.mark.slow
async def test_who_watches_a_node_die_goes_on_without_coming_back(
    spawn: Start, tmp_path: Path, waiting: str
) -> None:
    here, there = spawn("--allow", "Bash"), spawn("--allow", "Bash")
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws), later.dialed(there.ws):
        session = await first.new_session(tmp_path)
        await later.connection.load_session(str(tmp_path), session)
        await later.prompt(session, "/pen")
        turn = asyncio.create_task(later.prompt(session, waiting))
        await exists(tmp_path / "on")
        here.process.kill()
        answered = (await turn).field_meta or {}
        assert answered["crow"]["stopReason"] == "error"
        assert "is gone" in later.text()
        assert later.cards()[-1]["status"] == "failed"
        assert "outcome unknown" in str(later.cards()[-1])
        assert (await later.prompt(session, "Run `echo on`")).stop_reason == "end_turn"
        assert later.cards()[-1]["title"] == "echo on"


@pytest.mark.slow
async def test_sessions_are_named_put_away_and_deleted_from_any_node(
    spawn: Start, tmp_path: Path
) -> None:
    here, there = spawn(), spawn()
    first, later = FakeEditor(), FakeEditor()
    async with later.dialed(there.ws):
        async with first.dialed(here.ws):
            session = await first.new_session(tmp_path)
            await first.prompt(session, "Hello")
            named = {"sessionId": session, "title": "Greetings"}
            assert "error" not in await later.wire.request("session/set_title", named)
            refused = await later.wire.request("session/archive", {"sessionId": session})
            assert "goes on in another client" in refused["error"]["message"]
            await first.prompt(session, "Hello again")
        (info,) = (await later.connection.list_sessions(str(tmp_path))).sessions
        assert info.title == "Greetings"
        archived = {"archived": "only"}
        put_away = await later.wire.request("session/list", archived)
        assert [each["sessionId"] for each in put_away["result"]["sessions"]] == []
        while "error" in await later.wire.request("session/archive", {"sessionId": session}):
            pass  # the other node has not noticed yet that its client left
        put_away = await later.wire.request("session/list", archived)
        assert [each["sessionId"] for each in put_away["result"]["sessions"]] == [session]
        await later.connection.delete_session(session)
        assert (await later.connection.list_sessions(str(tmp_path))).sessions == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "started, said",
    [
        ({"options": ["--node-url", "http://127.0.0.1:9/acp"]}, "Connect call failed"),
        ({"token": "another-token-for-tests"}, "start all of them with the same token"),
    ],
)
async def test_a_node_that_cannot_be_reached_is_told_in_one_line(
    spawn: Start, tmp_path: Path, started: dict[str, Any], said: str
) -> None:
    here = spawn(*started.get("options", ()), token=started.get("token", TOKEN))
    there = spawn()
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws), later.dialed(there.ws):
        session = await first.new_session(tmp_path)
        with pytest.raises(RequestError) as error:
            await later.connection.load_session(str(tmp_path), session)
        assert error.value.code == -32600
        assert f"the session {session} is in use by" in str(error.value)
        assert said in str(error.value)
        assert TOKEN not in str(error.value)
        await first.prompt(session, "Hello")


@pytest.mark.slow
async def test_a_node_that_was_stopped_for_longer_than_its_lease_stores_nothing_and_says_so(
    spawn: Start, tmp_path: Path, waiting: str
) -> None:
    here, there = spawn("--allow", "Bash"), spawn("--allow", "Bash")
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws), later.dialed(there.ws):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, waiting))
        await exists(tmp_path / "on")
        here.process.send_signal(signal.SIGSTOP)
        await later.connection.load_session(str(tmp_path), session)
        assert "outcome unknown" in str(later.cards()[-1])
        await later.prompt(session, "Run `echo mine`")
        (tmp_path / "go").touch()
        here.process.send_signal(signal.SIGCONT)
        await turn
        await first.wire.until(lambda: "was not heard of" in first.text())
        with pytest.raises(RequestError, match="has the pen"):
            await first.prompt(session, "Run `echo yours`")
        await first.prompt(session, "/pen")
        assert (await first.prompt(session, "Run `echo yours`")).stop_reason == "end_turn"
    last = FakeEditor()
    async with last.dialed(there.ws):
        await last.connection.load_session(str(tmp_path), session)
        assert [card["title"] for card in last.cards()] == ["sh wait.sh", "echo mine", "echo yours"]
        assert "the end" not in last.text()


HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  option http-server-close
frontend all
  bind 127.0.0.1:{port}
  default_backend nodes
backend nodes
  balance roundrobin
{nodes}
"""
TLS = """
frontend tls{port}
  bind 127.0.0.1:{port} ssl crt {certificate} alpn h2,http/1.1
  default_backend plain{port}
backend plain{port}
  server node 127.0.0.1:{node}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def balanced(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts haproxy, which sends each request to the next node; its URL."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        pytest.skip("haproxy is not installed")
    started = list[subprocess.Popen[bytes]]()

    def run(scheme: str, *nodes: Server, more: str = "") -> str:
        port = free_port()
        lines = [f"  server s{n} {s.place[0]}:{s.place[1]}" for n, s in enumerate(nodes)]
        file = tmp_path / "haproxy.cfg"
        file.write_text(HAPROXY.format(port=port, nodes="\n".join(lines)) + more)
        started.append(subprocess.Popen([program, "-f", str(file)], stdin=subprocess.DEVNULL))
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return f"{scheme}://127.0.0.1:{port}/acp?token={TOKEN}"

    yield run
    for each in started:
        each.kill()
        each.wait()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_behind_a_balancer_that_sends_each_request_elsewhere_all_is_as_with_one_node(
    spawn: Start, balanced: Callable[..., str], tmp_path: Path, waiting: str, scheme: str
) -> None:
    url = balanced(scheme, spawn(), spawn(), spawn())
    first, watcher, later = FakeEditor(), FakeEditor(), FakeEditor()
    async with first.dialed(url), watcher.dialed(url):
        session = await first.new_session(tmp_path)
        reply = await first.prompt(session, "Create a file called test.txt")
        assert reply.stop_reason == "end_turn"
        assert len(first.asked) == 1
        await watcher.connection.load_session(str(tmp_path), session)
        assert watcher.cards()[0]["status"] == "completed"
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
    async with later.dialed(url):
        await later.connection.load_session(str(tmp_path), session)
        await later.wire.until(lambda: later.cards()[-1]["status"] == "in_progress")
        await later.cancel(session)
        await later.saw("session_info_update", _meta=OVER)
        assert (await later.prompt(session, "Read the file test.txt")).stop_reason == "end_turn"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and a file that has its key, too."""
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with openssl")
    key, file, both = (tmp_path / name for name in ("key.pem", "certificate.pem", "both.pem"))
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split()
    names = ["-subj", "/CN=nodes", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", *options, "-keyout", str(key), "-out", str(file), *names]
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(file.read_text() + key.read_text())
    return file, both


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_nodes_reach_each_other_by_tls_with_a_certificate_that_the_system_knows(
    spawn: Start,
    balanced: Callable[..., str],
    certificate: tuple[Path, Path],
    tmp_path: Path,
    scheme: str,
) -> None:
    file, both = certificate
    nodes, more = list[Server](), ""
    for _ in range(2):
        port, variables = free_port(), {"SSL_CERT_FILE": str(file)}
        url = f"https://localhost:{port}/acp"
        nodes.append(spawn("--node-url", url, variables=variables))
        more += TLS.format(port=port, certificate=both, node=nodes[-1].place[1])
    dialed = balanced(scheme, *nodes, more=more)
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(dialed):
        session = await first.new_session(tmp_path)
        for _ in range(2):  # and so at another node each time
            later = FakeEditor()
            async with later.dialed(dialed):
                await later.connection.load_session(str(tmp_path), session, crow={"pen": True})
                reply = await later.prompt(session, "Create a file called test.txt")
                assert reply.stop_reason == "end_turn"


@pytest.mark.slow
async def test_files_of_a_client_are_written_through_another_node(
    spawn: Start, tmp_path: Path
) -> None:
    here, there = spawn("--allow", "Write"), spawn("--allow", "Write")
    first, later = FakeEditor(), FakeEditor(files={}, terminals=True)
    async with first.dialed(here.ws), later.dialed(there.http):
        session = await first.new_session(tmp_path)
        await later.connection.load_session(str(tmp_path), session, crow={"pen": True})
        await later.prompt(session, "Create a file called test.txt")
        assert [*(later.files or {})] == [str(tmp_path / "test.txt")]


@pytest.mark.slow
async def test_a_node_that_ends_in_order_takes_no_session_along(
    spawn: Start, tmp_path: Path
) -> None:
    here, there = spawn("--allow", "Bash"), spawn("--allow", "Bash")
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws), later.dialed(there.ws):
        session = await first.new_session(tmp_path)
        await later.connection.load_session(str(tmp_path), session, crow={"pen": True})
        await later.prompt(session, "Run `echo one`")
        here.process.terminate()
        await later.wire.until(lambda: "is gone: it goes on here" in later.text())
        assert "unknown" not in later.text()
        assert (await later.prompt(session, "Run `echo two`")).stop_reason == "end_turn"
        assert [card["status"] for card in later.cards()] == ["completed", "completed"]


async def test_who_resumes_elsewhere_is_told_what_happened_while_nobody_was_there(
    pair: Pair, tmp_path: Path, waiting: str
) -> None:
    here, there = pair
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
    (tmp_path / "go").touch()
    async with later.dialed(there.ws):
        await later.connection.resume_session(session, str(tmp_path))
        await later.wire.until(lambda: "the end" in later.text())


@pytest.mark.slow
async def test_the_draft_is_spoken_through_another_node(
    spawn: Start, tmp_path: Path, waiting: str
) -> None:
    draft = ("--protocol", "2", "--allow", "Bash")
    here, there = spawn(*draft), spawn(*draft)
    place = {"cwd": str(tmp_path), "mcpServers": []}
    async with connect(here.ws) as socket:
        first = Client(socket)
        await first.ask("initialize", HELLO)
        session = (await first.ask("session/new", place))["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": waiting}]}
        await first.ask("session/prompt", prompt)
        await exists(tmp_path / "on")
    async with connect(there.ws) as socket:
        later = Client(socket)
        await later.ask("initialize", HELLO)
        again = {"sessionId": session, **place, "replayFrom": {"type": "start"}}
        await later.ask("session/resume", again)
        (tmp_path / "go").touch()
        while later.states() != ["running", "idle"]:
            await later.next()
        sent = await later.ask("session/prompt", {**prompt, "prompt": [text("Run `echo two`")]})
        assert sent["messageId"]


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_the_typescript_library_connects_to_whichever_node(
    node: str, spawn: Start, balanced: Callable[..., str], tmp_path: Path, scheme: str
) -> None:
    url = balanced(scheme, spawn("--allow", "Bash"), spawn("--allow", "Bash"))
    first, later = await two_clients(node, url, tmp_path)
    assert (first["stopReason"], first["cards"]) == ("end_turn", 1)
    assert (later["stopReason"], later["cards"]) == ("end_turn", 2)
    assert later["text"].startswith(first["text"])


@pytest.mark.slow
async def test_a_client_that_does_not_read_for_long_gets_all_from_another_node(
    spawn: Start, tmp_path: Path
) -> None:
    flood = tmp_path / "flood.py"
    flood.write_text(FLOOD.replace("range(100)", "range(600)"))
    options = ("--allow", "Bash", "--extension", str(flood))
    here, there = spawn(*options), spawn(*options)
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(here.ws), later.dialed(there.ws):
        session = await first.new_session(tmp_path)
        await later.connection.load_session(str(tmp_path), session, crow={"pen": True})
        turn = asyncio.create_task(later.prompt(session, "Run `touch flood on`"))
        await exists(tmp_path / "on")
        later.wire.pause()
        await asyncio.sleep(PAUSE)
        assert not (tmp_path / "flooded").exists()
        later.wire.resume()
        assert (await turn).stop_reason == "end_turn"
        assert later.text().count("x") >= 600 * 60_000


async def test_what_nodes_show_each_other_is_of_use_at_one_address_alone(pair: Pair) -> None:
    node = Node(TOKEN, pair[0].bare)

    async def connects(url: str, proof: str) -> bool:
        headers = {"Authorization": f"Bearer {proof}"}
        bare = url.replace("http", "ws", 1)
        try:
            async with connect(bare, additional_headers=headers):
                return True
        except InvalidStatus as error:
            return error.response.status_code != 401

    assert await connects(pair[0].bare, node.proof(pair[0].bare))
    assert not await connects(pair[1].bare, node.proof(pair[0].bare))
    assert not await connects(pair[0].bare, Node("another-token", "").proof(pair[0].bare))
