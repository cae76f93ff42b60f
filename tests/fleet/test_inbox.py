"""Who is not at a terminal hears what waits, and answers: by webhooks, over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook
from tests.fleet.conftest import Machine
from tests.fleet.test_cli import crow

from crow.core.agent import Agent
from crow.extensions import PersistenceHook
from crow.fleet.board import Board
from crow.fleet.inbox import InboxError, answer, waiting
from crow.fleet.job_filter import JobFilter
from crow.fleet.task import FleetError, Task
from crow.fleet.webhooks import Webhooks, signed
from crow.testing import ScriptedModel, call, text

RUN = [call("Bash", command="true")]


class Team:
    """A web service of a team: it verifies what comes with the library of the standard."""

    def __init__(self) -> None:
        self.secret = ""
        self.got: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.statuses: list[int] = []
        self.reply = b""
        self.read_whole = 0
        self.url = ""

    def took(self, headers: dict[str, str], body: bytes) -> int:
        self.got.append(Webhook(self.secret).verify(body, headers))
        self.ids.append(headers["webhook-id"])
        return self.statuses.pop(0) if self.statuses else 200


@pytest.fixture
def team() -> Iterator[Team]:
    made = Team()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(made.took({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_header("content-length", str(len(made.reply)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(made.reply)
                made.read_whole += 1

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}/crow"
    yield made
    server.shutdown()
    server.server_close()


def test_messages_are_signed_as_the_standard_has_it() -> None:
    secret = "whsec_" + base64.b64encode(os.urandom(24)).decode()
    body = '{"text": "grüße"}'
    now = datetime.now(UTC)
    headers = signed(secret, "msg_1", body.encode())
    assert Webhook(secret).verify(body, headers) == {"text": "grüße"}
    mac = Webhook(secret).sign("msg_2", now, body)
    ours = signed(secret, "msg_2", body.encode(), int(now.timestamp()))
    assert ours["webhook-signature"] == mac


async def ask(board: Board, folder: Path, **fields: Any) -> None:
    await board.submit("b", [Task("edit", key="k", labels={"team": "a"})], **fields)
    machine = Machine(board, folder, lambda _: RUN)
    machine.asks = True
    assert await machine.run() == ["waiting"]


@pytest.mark.slow
async def test_a_question_is_posted_and_the_reply_can_answer_it(
    address: str, tmp_path: Path, team: Team
) -> None:
    async with Board(address) as board:
        webhooks = Webhooks(board)
        team.secret = await webhooks.add(team.url)
        await ask(board, tmp_path / "one")
        team.reply = b'{"answer": "allow_once"}'
        assert await webhooks.deliver() == 1
        (told,) = team.got
        assert told["type"] == "question.asked"
        assert told["data"]["labels"] == {"team": "a"}
        assert told["data"]["question"]["args"] == {"command": "true"}
        assert "allow_once" in told["data"]["question"]["choices"]
        await webhooks.look()
        assert await webhooks.deliver() == 0  # it is answered, and the batch goes on
        team.reply = b"thank you"
        machine = Machine(board, tmp_path / "two", lambda _: [*RUN, "done"])
        machine.asks = True
        assert await machine.run() == ["done"]
        await webhooks.look()
        await webhooks.look()
        await webhooks.deliver()
        assert [each["type"] for each in team.got] == ["question.asked", "batch.finished"]
        assert team.got[1]["data"]["states"] == {"done": 1}
        assert [row["said"] for row in await webhooks.listed()] == ["HTTP 200"]


@pytest.mark.slow
async def test_a_reply_that_does_not_end_is_no_answer_and_is_not_read(
    address: str, tmp_path: Path, team: Team
) -> None:
    async with Board(address) as board:
        webhooks = Webhooks(board)
        team.secret = await webhooks.add(team.url)
        await ask(board, tmp_path)
        team.reply = b'{"answer": "allow_once", "more": "' + b"x" * 50_000_000 + b'"}'
        assert await webhooks.deliver() == 1
        assert [job["state"] for job in await board.jobs(JobFilter())] == ["waiting"]
        assert team.read_whole == 0


@pytest.mark.slow
async def test_what_is_not_taken_is_posted_again_by_any_worker_with_its_id(
    address: str, tmp_path: Path, team: Team
) -> None:
    async with Board(address) as board, Board(address) as other:
        webhooks, others = Webhooks(board), Webhooks(other)
        team.secret = await webhooks.add(team.url)
        await ask(board, tmp_path)
        team.statuses = [500]
        assert await webhooks.deliver() == 0
        assert await others.deliver() == 0  # its time has not come
        assert len(team.got) == 1
        (row,) = await webhooks.listed()
        assert (row["waiting"], row["said"]) == (1, "HTTP 500")
        async with board.connection() as connection:
            await connection.execute("UPDATE fleet_deliveries SET due = clock_timestamp()")
        assert sum(await asyncio.gather(webhooks.deliver(), others.deliver())) == 1
        assert team.ids[0] == team.ids[1]
        assert len(team.got) == 2
        team.statuses = [410]
        assert (await webhooks.test(team.url)).startswith("HTTP 410")


@pytest.mark.slow
async def test_many_workers_post_each_message_once(address: str, team: Team) -> None:
    boards = [Board(address, size=2) for _ in range(4)]
    for board in boards:
        await board.__aenter__()
    every = [Webhooks(board) for board in boards]
    team.secret = await every[0].add(team.url)
    async with boards[0].connection() as connection:
        await connection.execute(
            "INSERT INTO fleet_deliveries (url, type, data)"
            " SELECT url, 'test', '{}' FROM fleet_webhooks, generate_series(1, 60)"
        )
    taken = 0
    while taken < 60:
        taken += sum(await asyncio.gather(*(each.deliver() for each in every)))
    assert len(team.ids) == len(set(team.ids)) == 60
    for board in boards:
        await board.__aexit__()


@pytest.mark.slow
async def test_money_that_is_spent_is_told_once_until_there_is_more(
    address: str, tmp_path: Path, team: Team
) -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost": 1.5}
    async with Board(address) as board:
        webhooks = Webhooks(board)
        team.secret = await webhooks.add(team.url)
        await board.submit("b", [Task("a", key="a"), Task("b", key="b")], budget=1.0)
        machine = Machine(board, tmp_path, lambda _: [text("x", usage=usage)], concurrency=1)
        await machine.run()
        assert {each["type"] for each in team.got} <= {"batch.finished", "batch.budget_spent"}
        for _ in range(2):
            await webhooks.look()
            await webhooks.deliver()
        told = sorted(each["type"] for each in team.got)
        assert told == ["batch.budget_spent", "batch.finished"]
        assert (await board.summary(JobFilter()))["states"] == {"done": 1, "stopped": 1}
        await board.submit("b", [], budget=1.2)
        await webhooks.look()
        assert await webhooks.deliver() >= 1


@pytest.mark.slow
async def test_an_endpoint_that_is_gone_is_told_nothing_more(
    address: str, tmp_path: Path, team: Team
) -> None:
    async with Board(address) as board:
        webhooks = Webhooks(board)
        team.secret = await webhooks.add(team.url)
        await ask(board, tmp_path)
        team.statuses = [410]
        assert await webhooks.deliver() == 0
        assert await webhooks.listed() == []
        with pytest.raises(FleetError, match="a webhook is a URL"):
            await webhooks.add("ftp://example.org")


@pytest.mark.slow
async def test_an_answer_is_to_one_question_and_to_no_later_one(
    address: str, tmp_path: Path
) -> None:
    async with Board(address) as board:
        await ask(board, tmp_path)
        (row,) = await waiting(board, JobFilter())
        for said, number, why in (
            ("allow_onc", None, "did you mean 'allow_once'"),
            ("allow_once", row["number"] + 1, "answered already"),
        ):
            with pytest.raises(InboxError, match=why):
                await answer(board, row["id"], said, number)
        await answer(board, row["id"][:8], "allow_once", row["number"])
        with pytest.raises(InboxError, match="waits for nothing"):
            await answer(board, row["id"], "allow_once")


@pytest.mark.slow
async def test_the_inbox_is_served_over_http(address: str, tmp_path: Path) -> None:
    async with Board(address) as board:
        await ask(board, tmp_path)
    command = ("-m", "crow", "fleet", "inbox", "--listen", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env={**os.environ, "CROW_STORE": address, "CROW_ACP_TOKEN": "t" * 20},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    async with httpx2.AsyncClient(headers={"authorization": "Bearer " + "t" * 20}) as client:
        assert (await client.get(url, headers={"authorization": ""})).status_code == 401
        (row,) = (await client.get(url)).json()["waiting"]
        assert row["question"]["tool"] == "Bash"
        wrong = await client.post(f"{url}/{row['id']}", content=b"[]")
        assert (wrong.status_code, list(wrong.json())) == (400, ["error"])
        assert (await client.post(f"{url}/nobody", json={"answer": "x"})).status_code == 404
        body = {"answer": "allow_once", "number": row["number"]}
        assert (await client.post(f"{url}/{row['id'][:8]}", json=body)).json() == {"id": row["id"]}
        assert (await client.post(f"{url}/{row['id']}", json=body)).status_code == 409
        assert (await client.get(url)).json() == {"waiting": []}
    process.terminate()
    assert await process.wait() in (0, -15)


@pytest.mark.slow
def test_people_keep_webhooks_with_the_command(address: str, team: Team) -> None:
    def said(*args: str) -> str:
        done = crow(address, "webhook", *args)
        return done.stdout or done.stderr

    assert said() == "no webhooks; crow fleet webhook add URL\n"
    team.secret = said("add", team.url).split()[-1]
    assert said("test", team.url) == "HTTP 200\n"
    assert team.got[0]["type"] == "test"
    assert said("list") == f"{team.url}  1 posted, 0 to be; the last one: HTTP 200\n"
    (row,) = [json.loads(line) for line in said("--json").splitlines()]
    assert "secret" not in row
    assert "did you mean" in said("test", team.url + "x")
    assert "did you mean 'remove'?" in said("remov", team.url)
    assert "posted to no more" in said("remove", team.url)


class Person:
    """A client of the protocol's own library, whose person chooses by name."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.asked: list[dict[str, Any]] = []
        self.said = ""

    async def request_permission(
        self, options: Any, session_id: str, tool_call: Any, **_: Any
    ) -> Any:
        from acp import schema

        offered = {option.name: option.option_id for option in options}
        shown = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.asked.append({"names": list(offered), **shown})
        outcome = {"outcome": "selected", "optionId": offered[self.names.pop(0)]}
        return schema.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        told = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        if told["sessionUpdate"] == "agent_message_chunk":
            self.said += told["content"]["text"]

    def on_connect(self, conn: Any) -> None:
        pass


@pytest.mark.slow
async def test_an_editor_asks_what_waits_and_its_answers_go_on_elsewhere(
    address: str, tmp_path: Path
) -> None:
    import acp
    from acp import schema

    (tmp_path / ".crow").mkdir()
    (tmp_path / ".crow/settings.json").write_text('{"extensions": {"fleet": {}}}')
    async with Board(address) as board:
        await board.submit("b", [Task("one", key="1"), Task("two", key="2")])
        first = Machine(board, tmp_path / "one", lambda _: RUN)
        first.asks = True
        assert await first.run() == ["waiting"] * 2
        person = Person("later", "allow_once")
        env = {**os.environ, "CROW_STORE": address, "HOME": str(tmp_path)}
        command = (sys.executable, "-m", "crow", "acp")
        agents: Any = acp.spawn_agent_process(person, *command, env=env)  # pyright: ignore[reportArgumentType]
        async with agents as (agent, _):
            able = schema.ClientCapabilities()
            await agent.initialize(protocol_version=1, client_capabilities=able)
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            said = schema.TextContentBlock(type="text", text="/inbox")
            await agent.prompt(prompt=[said], session_id=session.session_id)
        assert [each["names"][-1] for each in person.asked] == ["later", "later"]
        assert "may it?" in person.asked[0]["title"]
        assert "Task, of the batch b: one" in json.dumps(person.asked[0]["content"])
        assert "goes on: allow_once" in person.said
        assert "1 still wait for an answer." in person.said
        machine = Machine(board, tmp_path / "two", lambda _: [*RUN, "done"])
        machine.asks = True
        assert await machine.run() == ["done"]
        assert [row["state"] for row in await board.jobs(JobFilter())] == ["waiting", "done"]


@pytest.mark.slow
async def test_a_session_that_a_person_has_open_goes_on_when_it_is_closed(
    address: str, tmp_path: Path
) -> None:
    async with Board(address) as board:
        await ask(board, tmp_path / "one")
        (row,) = await waiting(board, JobFilter())
        looking = Agent(ScriptedModel(), hooks=[PersistenceHook(address)])
        async with looking:
            await looking.load_session(row["id"], cwd=str(tmp_path))
            await answer(board, row["id"], "allow_once")
            machine = Machine(board, tmp_path / "two", lambda _: [*RUN, "done"])
            machine.asks = True
            work = asyncio.create_task(machine.run())
            async with asyncio.timeout(50):
                while not machine.worker.running:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        assert await work == ["done"]
