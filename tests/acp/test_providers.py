"""Where a client wants providers to be asked, while the process lives: `providers/*`, a draft."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from acp.schema import AgentCapabilities

from crow import Agent
from crow.app import build
from crow.testing import Endpoint, FakeEditor, ScriptedModel
from crow.testing.endpoint import answer

CROW = str(Path(sys.executable).with_name("crow"))
KEYS = {"OPENAI_API_KEY": "sk-own-openai", "ANTHROPIC_API_KEY": "sk-own-anthropic"}
NOWHERE = {"OLLAMA_HOST": "127.0.0.1:9", "AWS_REGION": "us-east-1"}
GATEWAY = {"Authorization": "Bearer of-the-gateway", "X-Team": "birds"}
MESSAGES = [
    ("message_start", {"message": {"id": "m", "role": "assistant", "content": [], "usage": {}}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
    ("content_block_stop", {"index": 0}),
    ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
    ("message_stop", {}),
]
SAYS = {
    "openai": answer("Hi"),
    "anthropic": [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        *(
            f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n".encode()
            for kind, body in MESSAGES
        ),
    ],
}


async def ask(editor: FakeEditor, method: str, **params: Any) -> Any:
    """The answer to a request about providers: its result, or what is wrong with it."""
    answered = await editor.wire.request(f"providers/{method}", params)
    return answered["result"] if "result" in answered else answered["error"]["data"]["details"]


def able(editor: FakeEditor) -> AgentCapabilities:
    assert editor.greeting is not None
    assert editor.greeting.agent_capabilities is not None
    return editor.greeting.agent_capabilities


async def listed(editor: FakeEditor) -> dict[str, dict[str, Any]]:
    return {each["providerId"]: each for each in (await ask(editor, "list"))["providers"]}


async def test_who_announces_it_lists_what_there_is(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(build(cwd=tmp_path, env=KEYS | NOWHERE)):
        assert able(editor).providers is not None
        found = await listed(editor)
    at = {name: each["current"] for name, each in found.items()}
    assert at["openai"] == {"apiType": "openai", "baseUrl": "https://api.openai.com/v1"}
    assert at["anthropic"] == {"apiType": "anthropic", "baseUrl": "https://api.anthropic.com/v1"}
    assert at["bedrock"]["apiType"] == "bedrock"
    assert at["google"]["apiType"] == "_gemini"
    assert at["azure"] is None, "nobody has said where it is"
    assert not any(each["required"] for each in found.values())
    assert found["openai"]["supported"] == ["anthropic", "openai", "_gemini", "_responses"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api_type", "model", "path"),
    [
        ("openai", "openai/gpt-5", "/v1/chat/completions"),
        ("anthropic", "anthropic/claude-opus-5", "/v1/messages"),
    ],
)
async def test_a_provider_is_asked_where_the_client_says_with_its_headers_and_no_key(
    tmp_path: Path, api_type: str, model: str, path: str
) -> None:
    editor, provider = FakeEditor(), model.partition("/")[0]
    async with Endpoint() as gateway:
        gateway.models = [model.partition("/")[2]]
        gateway.play(SAYS[api_type])
        url = gateway.url if api_type == "openai" else gateway.url.removesuffix("/v1")
        env = KEYS | NOWHERE | {"CROW_API_KEY": "sk-shared", "CROW_MODEL": model}
        async with editor.spawned(CROW, "acp", env=env, cwd=tmp_path):
            await editor.connection.set_provider(provider, api_type, url, GATEWAY)
            told = (await listed(editor))[provider]
            assert told["current"] == {"apiType": api_type, "baseUrl": url}
            assert "of-the-gateway" not in json.dumps(told)
            session = await editor.new_session(tmp_path)
            assert (await editor.prompt(session, "Hello")).stop_reason == "end_turn"
            assert editor.text(session) == "Hi"
        (request,) = gateway.requests
    assert request.path == path
    assert request.headers["authorization"] == "Bearer of-the-gateway"
    assert request.headers["x-team"] == "birds"
    assert not any(key in repr(request) for key in ("sk-own", "sk-shared"))


async def test_a_conversation_goes_on_elsewhere_and_not_at_all_where_its_provider_is_off(
    tmp_path: Path, home: Path
) -> None:
    editor = FakeEditor()
    async with Endpoint() as usual, Endpoint() as gateway:
        usual.play(answer("Hi"))
        gateway.play(answer("Hi"))
        settings = {"providers": {"mine": {"base_url": usual.url}}}
        (home / ".crow").mkdir()
        (home / ".crow/settings.json").write_text(json.dumps(settings))
        agent = build(cwd=tmp_path, model="mine/m", env=KEYS | NOWHERE)
        async with editor.connected(agent):
            session = await editor.new_session(tmp_path)
            await editor.prompt(session, "one")
            await editor.connection.set_provider("mine", "openai", gateway.url)
            await editor.prompt(session, "two")
            await editor.connection.disable_provider("mine")
            known = (await editor.connection.list_providers()).providers
            assert next(each for each in known if each.provider_id == "mine").current is None
            reply = await editor.wire.request(
                "session/prompt",
                {"sessionId": session, "prompt": [{"type": "text", "text": "three"}]},
            )
            assert "mine is switched off by the client" in json.dumps(reply)
            gateway.play(answer("Hi"))
            await editor.connection.set_provider("mine", "openai", gateway.url)
            await editor.prompt(session, "four")
    assert len(usual.requests) == 1
    assert [request.body["messages"][-1]["content"] for request in gateway.requests] == [
        "two",
        "four",
    ]


async def test_the_endpoint_that_has_all_models_is_one_provider_and_stays(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with Endpoint() as gateway:
        gateway.play(answer("Hi"))
        env = NOWHERE | {"CROW_BASE_URL": "http://127.0.0.1:9/v1", "CROW_MODEL": "any/m"}
        async with editor.connected(build(cwd=tmp_path, env=env)):
            (only,) = (await listed(editor)).values()
            assert only["required"]
            assert only["current"] == {"apiType": "openai", "baseUrl": env["CROW_BASE_URL"]}
            assert "cannot be switched off" in await ask(editor, "disable", providerId="main")
            route = {"apiType": "openai", "baseUrl": gateway.url, "headers": None}
            assert await ask(editor, "set", providerId="main", **route) == {}
            session = await editor.new_session(tmp_path)
            await editor.prompt(session, "Hello")
    assert gateway.requests[0].body["model"] == "any/m"


async def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    editor = FakeEditor()
    fine = {"providerId": "openai", "apiType": "openai", "baseUrl": "https://gateway.example/v1"}
    async with editor.connected(build(cwd=tmp_path, env=NOWHERE)):
        before = await listed(editor)
        for wrong, words in (
            ({"providerId": "opnai"}, "do you mean openai?"),
            ({"apiType": "bedrock"}, "bedrock is not spoken here with openai: choose anthropic,"),
            ({"baseUrl": "gateway.example"}, "is no base URL of a model"),
            ({"baseUrl": "https://me:secret@gateway.example"}, "carries a secret"),
            ({"headers": {"x-a": "b\r\nx-c: d"}}, "header x-a holds characters"),
            ({"headers": {"x-a": 1}}, "headers.x-a: must be text"),
        ):
            assert words in await ask(editor, "set", **{**fine, **wrong})
        assert await ask(editor, "disable", providerId="nobody") == {}
        assert await listed(editor) == before


async def test_where_the_administrator_says_where_it_is_a_client_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = tmp_path / "managed"
    managed.mkdir()
    (managed / "managed-settings.json").write_text(
        json.dumps({"providers": {"openai": {"base_url": "http://10.0.0.1/v1"}}})
    )
    editor = FakeEditor()
    monkeypatch.setenv("CROW_MANAGED", str(managed))
    async with editor.connected(build(cwd=tmp_path, env=NOWHERE)):
        route = {"apiType": "openai", "baseUrl": "https://gateway.example/v1"}
        refused = await ask(editor, "set", providerId="openai", **route)
        assert refused == "the administrator says where openai is"
        assert await ask(editor, "set", providerId="mistral", **route) == {}


async def test_an_agent_with_a_model_of_its_own_has_no_providers(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        assert able(editor).providers is None
        refused = await editor.wire.request("providers/list", {})
        assert refused["error"]["code"] == -32601
