"""What Crow writes, held against the types of the libraries that read it.

TypeScript's compiler looks at the messages of real runs as literals of the type that the library
of npm has for them: nothing may be missing, be of another type, or be unknown there.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk._internal.message_parser import parse_message
from tests.cli.conftest import Crow, calls, crow, endpoint, forks, project
from tests.npm import LOCKED, Packages

from crow.testing.endpoint import Endpoint, Response, answer, delta, respond, stream

__all__ = ["crow", "endpoint", "forks", "project"]

FOLDER = Path(__file__).with_name("node")
CROW = str(Path(sys.executable).with_name("crow"))
COMPILER = FOLDER / "node_modules/typescript/bin/tsc"
LIBRARY = Packages(
    FOLDER, "the library of npm", 90, options=(*LOCKED, "--no-package-lock", "--omit=optional")
)
"""Without the programs that it can bring."""
STREAM = ("-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
ALL = ("--include-partial-messages", "--include-hook-events", "--replay-user-messages")
OPTIONS = "--noEmit --strict --skipLibCheck --module nodenext --target es2022".split()
OWN = {"crow_version", "reason"}
"""What Crow says beside, which readers pass over."""
Told = dict[str, Any]


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> str:
    """The program `node`; library and compiler are installed where these tests are asked for."""
    return LIBRARY.node(request)


def complaints(node: str, messages: list[Told]) -> str:
    """What the compiler says of messages as literals of the library's type."""
    file = FOLDER / f"told-{os.getpid()}.ts"
    rows = ",\n".join(json.dumps(each) for each in messages)
    head = 'import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";'
    file.write_text(f"{head}\nexport const told: SDKMessage[] = [\n{rows}\n];\n", "utf-8")
    try:
        command = [node, str(COMPILER), *OPTIONS, str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    finally:
        file.unlink()


def messages_of(events: list[Told]) -> list[Told]:
    """The messages that both sides know: not the requests, not what is Crow's own."""
    return [
        {key: value for key, value in each.items() if key not in OWN}
        for each in events
        if not each["type"].startswith("control_") and each.get("subtype") != "notice"
    ]


def sent(*messages: Told) -> str:
    """Lines of a program."""
    return "".join(f"{json.dumps(each)}\n" for each in messages)


def prompt(text: str, **more: Any) -> Told:
    """A prompt."""
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def control(subtype: str, **more: Any) -> Told:
    """A request of a program."""
    return {"type": "control_request", "request_id": "1", "request": {"subtype": subtype, **more}}


def thinking() -> Response:
    """An answer with a thought before it."""
    return stream(*(delta(reasoning_content="Hm."), delta(content="I look."), delta(finish="stop")))


HAND = ("Agent", {"description": "look around", "prompt": "Look"})
HOOKS = {
    "SessionStart": [{"hooks": [{"type": "command", "command": "echo hi"}]}],
    "PostToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}],
}


async def whole(crow: Crow, endpoint: Endpoint) -> list[Told]:
    """What is said of a session in which everything happens that there are words for."""
    endpoint.play(
        calls(("Read", {"file_path": "README.md"}), ("Bash", {"command": "touch made"})),
        respond(503, {"error": {"message": "busy"}}, **{"retry-after": "0"}),
        thinking(),
        calls(HAND),
        answer("Seen."),
        answer("Good."),
        answer("In short."),
    )
    servers = {"mcpServers": {"gone": {"command": "no-such-program-anywhere"}}}
    lines = sent(
        control("initialize"),
        prompt("What?", uuid="98e5bd53-81dc-443c-ab39-44b3ea4ed034"),
        control("set_permission_mode", mode="plan"),
        prompt("And?"),
        prompt("/compact"),
    )
    given = ("--settings", json.dumps({"hooks": HOOKS}), "--mcp-config", json.dumps(servers))
    ended = await crow(*STREAM, *ALL, *given, stdin=lines)
    limited = await crow(*STREAM, "--max-turns", "1", stdin=sent(prompt("Go")))
    failed = await crow(*STREAM, "--model", "openai/gpt-5", stdin=sent(prompt("Go")))
    return [*ended.events, *limited.events, *failed.events]


async def test_every_message_is_one_that_the_library_of_python_reads(
    crow: Crow, endpoint: Endpoint
) -> None:
    messages = messages_of(await whole(crow, endpoint))
    assert [each for each in messages if parse_message(each) is None] == []


@pytest.mark.node
@pytest.mark.slow
async def test_every_message_is_of_the_type_that_the_library_of_npm_has(
    crow: Crow, endpoint: Endpoint, node: str
) -> None:
    messages = messages_of(await whole(crow, endpoint))
    assert await asyncio.to_thread(complaints, node, messages) == ""
    wrong = [{**each, "uuid": 7} for each in messages]
    assert (await asyncio.to_thread(complaints, node, wrong)).count("error TS") >= len(messages)


async def driven(crow: Crow, node: str, *arguments: str) -> Any:
    """What the library of npm has read of Crow, and asked."""
    process = await asyncio.create_subprocess_exec(
        *(node, str(FOLDER / "client.mjs"), CROW, str(crow.cwd), *arguments),
        cwd=crow.cwd,
        env={**os.environ, **crow.env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.node
@pytest.mark.slow
async def test_the_library_of_npm_is_asked_all_questions_at_once(
    crow: Crow, endpoint: Endpoint, node: str
) -> None:
    listed = [{"label": label, "description": ""} for label in ("red", "blue")]
    one = {"question": "Which one?", "header": "One", "options": listed, "multiSelect": False}
    several = {"questions": [one, {**one, "question": "And then?"}]}
    endpoint.play(calls(("AskUserQuestion", several)), answer("Good."))
    read = await driven(crow, node, "{}", "plan")
    assert read["asked"] == ["AskUserQuestion"]
    assert "Which one?\\nred\\n\\nAnd then?\\nred" in json.dumps(read["told"])


@pytest.mark.node
@pytest.mark.slow
async def test_the_library_of_npm_drives_crow(crow: Crow, endpoint: Endpoint, node: str) -> None:
    endpoint.play(calls(("Bash", {"command": "touch made"})), thinking())
    settings = json.dumps({"hooks": HOOKS, "permissions": {"ask": ["Bash"]}})
    read = await driven(crow, node, settings)
    assert read["asked"] == ["Bash"]
    assert (crow.cwd / "made").exists()
    kinds = [each.get("subtype") or each["type"] for each in read["told"]]
    assert kinds[:3] == ["hook_started", "hook_response", "init"]
    assert {"stream_event", "assistant", "user"} <= {*kinds}
    assert kinds[-1] == "success"
    first = read["told"][2]
    assert "critic" in first["agents"]
    assert "critic" in {each["name"] for each in read["agents"]}
    assert await asyncio.to_thread(complaints, node, messages_of(read["told"])) == ""
