"""``crow models`` and ``crow models check``, as people and programs run them."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Crow, Here, calls

from crow.testing import Endpoint
from crow.testing.endpoint import answer, delta, respond, stream


async def test_a_provider_s_models_are_listed_with_what_is_known_of_them(here: Here) -> None:
    ended = await here("models", "--provider", "kimi")
    assert ended.status == 0
    line = next(line for line in ended.out.splitlines() if line.startswith("moonshot/kimi-k3 "))
    assert "chat · 1,048,576 tokens · $3 / $15 · image · thinks: low high max" in line


async def test_programs_get_an_object_a_line(here: Here) -> None:
    ended = await here("models", "--provider", "anthropic", "--json")
    found = {each["name"]: each for each in ended.events}
    claude = found["anthropic/claude-opus-5-5"]
    assert (claude["wire"], claude["context_window"]) == ("messages", 1_000_000)
    assert claude["thought_levels"] == ["low", "medium", "high", "xhigh", "max"]
    assert "temperature" in claude["refuses"]
    assert claude["prices"]["cache_read"] < claude["prices"]["input"] < claude["prices"]["output"]


async def test_the_endpoint_in_use_says_which_models_it_has(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.models = ["gpt-5.4", {"id": "gpt-oss", "meta": {"n_ctx": 4096}}, "who-knows"]
    ended = await crow("models")
    first, served, second = ended.out.splitlines()
    assert served.startswith("gpt-oss    chat · 4,096 tokens")
    assert first.startswith("gpt-5.4    chat · 272,000 tokens · image · thinks: off low")
    assert second == "who-knows  chat"


async def test_what_settings_name_is_listed_where_the_server_lists_nothing(
    crow: Crow, endpoint: Endpoint
) -> None:
    del crow.env["CROW_BASE_URL"]
    named = {"big": {"context_window": 32768}, "small": {}}
    away = {"base_url": "http://127.0.0.1:9/v1", "models": {"asleep": {}}}
    providers = {"mine": {"base_url": endpoint.url, "models": named}, "away": away}
    (crow.cwd / "own.json").write_text(json.dumps({"providers": providers}), "utf-8")
    command = ["models", "--settings", "own.json"]
    ended = await crow(*command, OLLAMA_HOST="127.0.0.1:9")
    assert ended.out.splitlines() == [
        "away/asleep  chat",
        "mine/big     chat · 32,768 tokens",
        "mine/small   chat",
    ]
    endpoint.models = [{"id": "small", "meta": {"n_ctx": 4096}}, "third"]
    ended = await crow(*command, OLLAMA_HOST="127.0.0.1:9")
    assert ended.out.splitlines()[1:] == [
        "mine/big     chat · 32,768 tokens",
        "mine/small   chat · 4,096 tokens",
        "mine/third   chat",
    ]
    ended = await crow(*command, "--provider", "mine")
    assert [line.split()[0] for line in ended.out.splitlines()] == ["mine/big", "mine/small"]


async def test_where_there_is_none_it_says_what_to_do(crow: Crow) -> None:
    ended = await crow("models", OLLAMA_HOST="127.0.0.1:9")
    assert (ended.status, ended.out) == (0, "")
    assert "no model was found: crow login, or start a server" in ended.err


async def test_what_is_misspelt_is_guessed(here: Here) -> None:
    assert "did you mean 'mistral'?" in (await here("models", "--provider", "mistrel")).complaint
    assert "did you mean 'check'?" in (await here("models", "chek")).complaint


@pytest.mark.slow
async def test_a_check_tries_what_a_model_may_have(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(
        answer("Hello."),
        calls(("add", {"a": 19, "b": 23})),
        answer("Red."),
        stream(delta(reasoning_content="r, r, r"), "3", delta(finish="stop")),
    )
    levels = {"providers": {"mine": {"base_url": endpoint.url, "thought_levels": ["off", "high"]}}}
    del crow.env["CROW_BASE_URL"]
    ended = await crow("models", "check", "mine/m", "--settings", json.dumps(levels))
    assert (ended.status, ended.err) == (0, "")
    head, *rows = ended.out.splitlines()
    assert head == f"m at {endpoint.url}"
    assert [row.split()[:2] for row in rows] == [
        ["answer", "yes"], ["tools", "yes"], ["images", "yes"], ["thinking", "yes"],
    ]  # fmt: skip
    assert 'add({"a": 19, "b": 23})' in rows[1]
    assert "shown" in rows[3]
    seen = [each.body for each in endpoint.requests]
    assert [tool["function"]["name"] for tool in seen[1]["tools"]] == ["add"]
    assert seen[2]["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/png")
    assert seen[3]["reasoning_effort"] == "high"


async def test_what_a_model_has_not_is_said_and_costs_the_status(
    crow: Crow, endpoint: Endpoint
) -> None:
    refusal = respond(400, json.dumps({"error": {"message": "this model does not support images"}}))
    endpoint.play(answer("Hello."), answer("It is 42."), refusal, answer(""))
    ended = await crow("models", "check", "--json")
    assert ended.status == 1
    works = {each["what"]: each["works"] for each in ended.events}
    assert works == {"answer": True, "tools": False, "images": False}
    assert "It is 42." in ended.events[1]["said"]


async def test_a_model_that_gives_no_answer_is_tried_no_further(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(respond(401, json.dumps({"error": {"message": "bad key"}})))
    ended = await crow("models", "check")
    assert ended.status == 1
    assert len(endpoint.requests) == 1
    assert "bad key" in ended.out
