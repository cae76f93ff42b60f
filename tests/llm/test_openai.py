"""The openai library as a client, against a real socket; with whatever version is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.core.errors import ModelError
from crow.core.events import CallDelta
from crow.core.messages import user
from crow.core.ports.llm import Completion, Request
from crow.llm import Retries, Timeouts
from crow.llm.client import ClientModel
from crow.testing import Endpoint
from crow.testing.endpoint import CLOSE, USAGE, answer, delta, respond, stream

if find_spec("openai") is None:
    pytest.skip("the openai library is not installed", allow_module_level=True)

OTHER = "CROW_TEST_OPENAI"  # set in the run against the other version
MAJOR = int(version("openai").split(".")[0])
ANOTHER_MAJOR = {2: "openai>=3,<4", 3: "openai>=2.20,<3"}
ROOT = Path(__file__).parents[2]
KEY = "sk-secret-0123456789"
TOOL: Any = {
    "type": "function",
    "function": {"name": "Read", "description": "", "parameters": {"type": "object"}},
}


@pytest.fixture
def openai() -> Any:
    """The library, which takes a second to import and is none of the other tests' business."""
    return import_module("openai")


@pytest.fixture(params=["AsyncOpenAI", "OpenAI"])
async def model(request: pytest.FixtureRequest, endpoint: Endpoint, openai: Any) -> Any:
    client = getattr(openai, request.param)(base_url=endpoint.url, api_key=KEY, max_retries=0)
    yield ClientModel(
        client, "m-1", {"top_k": 3}, timeouts=Timeouts(idle=2), retries=Retries(1, 0.01)
    )
    closing = client.close()
    if closing is not None:
        await closing


async def ask(model: ClientModel, *messages: Any) -> list[Any]:
    request = Request([*messages] or [user("hello")], [TOOL])
    return [item async for item in model.stream(request)]


async def test_it_sends_the_body_that_crow_s_own_client_sends(endpoint: Endpoint, model: Any):
    endpoint.play(answer("Hello there."))
    completion: Completion = (await ask(model))[-1]
    assert completion.text == "Hello there."
    assert completion.usage == {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    assert endpoint.requests[0].body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [TOOL],
        "stream": True,
        "stream_options": {"include_usage": True},
        "top_k": 3,
    }


async def test_reasoning_and_calls_come_through(endpoint: Endpoint, model: Any):
    pieces = [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "Read", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"file_path": '}},
        {"index": 0, "function": {"arguments": '"a"}'}},
    ]
    endpoint.play(
        stream(
            delta(role="assistant", reasoning_content="Hm."),
            *(delta(tool_calls=[each]) for each in pieces),
            delta(finish="tool_calls"),
            USAGE,
        )
    )
    items = await ask(model)
    completion: Completion = items[-1]
    assert completion.reasoning == "Hm."
    assert completion.calls[0].args == {"file_path": "a"}
    shown = [item for item in items if isinstance(item, CallDelta)]
    assert "".join(item.text for item in shown) == '{"file_path": "a"}'


@pytest.mark.parametrize(
    "status, body, kind",
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "authentication"),
        (404, {"error": {"message": "no such model"}}, "model_not_found"),
        (400, {"error": {"code": "context_length_exceeded", "message": "long"}}, "context_length"),
    ],
)
async def test_errors_are_of_a_kind_and_show_no_key(
    endpoint: Endpoint, model: Any, status: int, body: Any, kind: str
):
    endpoint.play(respond(status, body))
    with pytest.raises(ModelError, match="m-1 at http://127") as caught:
        await ask(model)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert KEY not in str(caught.value)


async def test_a_rate_limit_is_waited_out(endpoint: Endpoint, model: Any):
    endpoint.play(respond(429, {"error": {"message": "slow"}}, retry_after="0.2"), answer("Hi."))
    items = await ask(model)
    assert items[0].delay >= 0.2
    assert items[-1].text == "Hi."


@pytest.mark.parametrize(
    "end",
    [CLOSE, {"error": {"message": "overloaded"}}, b'data: {"broken\n\n'],
    ids=["close", "error", "malformed"],
)
async def test_a_stream_that_breaks_is_asked_for_again(endpoint: Endpoint, model: Any, end: Any):
    endpoint.play(stream("Hel", end, CLOSE, done=False), answer("Hello."))
    items = await ask(model)
    assert [item.text for item in items if hasattr(item, "message_id")] == ["Hel", "lo."]


async def test_an_unreachable_endpoint_is_a_network_error(openai: Any):
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key=KEY, max_retries=0)
    with pytest.raises(ModelError) as caught:
        await ask(ClientModel(client, "m-1", retries=Retries(0)))
    assert caught.value.kind == "network"
    await client.close()


async def test_half_a_surrogate_pair_is_replaced_before_it_is_sent(endpoint: Endpoint, model: Any):
    endpoint.play(answer("Hi."))
    await ask(model, user("a\ud800b"))
    assert endpoint.requests[0].body["messages"][0]["content"] in ("a�b", "a\ud800b")


@pytest.mark.skipif(OTHER in os.environ, reason="this is the other version")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_of_this_holds_with_the_other_version_of_the_library(tmp_path: Path):
    tool = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".uv" / "bin"))
    if tool is None:
        pytest.skip("uv is not there to install the other version of openai")
    library = tmp_path / "library"
    command = [tool, "pip", "install", "-q", "--target", str(library), ANOTHER_MAJOR[MAJOR]]
    installed = subprocess.run(
        [*command, "--python", sys.executable], capture_output=True, text=True, timeout=250
    )
    if installed.returncode:
        pytest.skip(f"the other version of openai cannot be installed: {installed.stderr[-300:]}")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         f"--basetemp={tmp_path / 'other'}", __file__],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(library), OTHER: "1"},
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert f" {MAJOR}." not in subprocess.run(
        [sys.executable, "-c", "import openai; print('', openai.__version__)"],
        env={**os.environ, "PYTHONPATH": str(library)}, capture_output=True, text=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("name", ["AsyncOpenAI", "OpenAI"])
async def test_an_agent_takes_a_client_as_it_is(
    endpoint: Endpoint, name: str, openai: Any, monkeypatch: pytest.MonkeyPatch
):
    endpoint.play(answer("Hello there."), answer("Hello again."), answer("From below."))
    client = getattr(openai, name)(base_url=endpoint.url, api_key=KEY, max_retries=0)
    agent = Agent(client, model="m-1")
    assert (await agent.run("hello")).text == "Hello there."
    assert endpoint.requests[0].body["model"] == "m-1"

    monkeypatch.setenv("CROW_MODEL", "m-2")
    assert (await Agent(llm=client).run("hello")).text == "Hello again."
    assert endpoint.requests[1].body["model"] == "m-2"

    assert (await Agent(client, model="m-3").child().run("hello")).text == "From below."
    assert endpoint.requests[2].body["model"] == "m-3"
    closing = client.close()
    if closing is not None:
        await closing


async def test_a_client_without_a_model_and_what_is_no_client_are_told_apart(
    endpoint: Endpoint, openai: Any
):
    client = openai.AsyncOpenAI(base_url=endpoint.url, api_key=KEY)
    with pytest.raises(ModelError, match=r"which model should AsyncOpenAI ask for\? Agent\(client"):
        await Agent(client).run("hello")
    odd: Any = 5
    with pytest.raises(ModelError, match="5 is no model: it has neither stream"):
        await Agent(odd).run("hello")
    await client.close()
