"""Which models are on offer: who is asked, with which key, and what is kept of the answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow.llm.listing import look, sources
from crow.llm.source import Source
from crow.testing.endpoint import Endpoint

NOWHERE = {"OLLAMA_HOST": "127.0.0.1:9"}


def provider(endpoint: Endpoint, **more: Any) -> dict[str, Any]:
    return {"base_url": endpoint.url, **more}


async def names(settings: dict[str, Any], env: dict[str, str]) -> list[str]:
    return [each.model for each in await look(sources(settings, env))]


async def test_the_given_endpoint_is_the_only_one_that_is_asked() -> None:
    async with Endpoint() as endpoint:
        endpoint.models = ["b", "a"]
        env = {"CROW_BASE_URL": endpoint.url, "OPENAI_API_KEY": "k", **NOWHERE}
        assert await names({}, env) == ["a", "b"]
        assert endpoint.requests == []


LISTED = ("gpt-5", "gpt-4o-realtime", "o3", "text-embedding-3", "who-knows")


def test_of_a_public_provider_only_models_that_are_known_to_talk_are_kept() -> None:
    source = Source("openai", "https://api.openai.com/v1", "k")
    assert [*filter(source.offers, LISTED)] == ["gpt-5", "o3"]


@pytest.mark.parametrize("by_variable", [True, False])
async def test_what_stands_in_a_providers_place_names_its_models_as_it_likes(
    by_variable: bool,
) -> None:
    async with Endpoint() as endpoint:
        endpoint.models = [*LISTED]
        settings = {"providers": {"openai": provider(endpoint, api_key="k")}}
        env = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "k", **NOWHERE}
        found = await (names({}, env) if by_variable else names(settings, NOWHERE))
        assert found == ["openai/gpt-5", "openai/o3", "openai/who-knows"]


async def test_of_an_own_provider_all_models_are_kept() -> None:
    async with Endpoint() as endpoint:
        endpoint.models = ["models/mine", "embedder"]
        settings = {"providers": {"own": provider(endpoint)}}
        assert await names(settings, NOWHERE) == ["own/embedder", "own/mine"]


async def test_whoever_is_not_there_or_answers_nonsense_has_no_models() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        settings = {
            "providers": {
                "odd": {"base_url": f"http://127.0.0.1:{port}/v1"},
                "gone": {"base_url": "http://127.0.0.1:9/v1"},
                "bare": {},
            }
        }
        assert await names(settings, NOWHERE) == []


@pytest.mark.parametrize(
    "settings, env, named",
    [
        ({}, {}, ["ollama"]),
        ({}, {"OPENAI_API_KEY": "k"}, ["ollama", "openai"]),
        ({"model": "lmstudio/x"}, {}, ["lmstudio", "ollama"]),
        ({}, {"CROW_MODEL": "vllm/x"}, ["ollama", "vllm"]),
        ({"api_key": "shared"}, {"CROW_API_KEY": "shared"}, ["ollama"]),
    ],
)
def test_providers_are_asked_only_with_a_key_of_their_own_or_in_use(
    settings: dict[str, Any], env: dict[str, str], named: list[str]
) -> None:
    assert [source.provider for source in sources(settings, env)] == named


def test_a_stored_key_is_a_key() -> None:
    found = sources({}, {}, {"mistral": "k"}.get)
    assert [(source.provider, source.key) for source in found] == [("mistral", "k"), ("ollama", "")]
