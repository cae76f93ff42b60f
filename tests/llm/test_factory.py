"""What settings say of models and providers, as it reaches the endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crow.core.errors import ModelError
from crow.core.messages import user
from crow.core.ports.llm import Request
from crow.llm import Timeouts, resolve
from crow.llm.models import Prices
from crow.testing import Endpoint
from crow.testing.endpoint import answer, respond


async def asked(
    endpoint: Endpoint, model: str, provider: Any, level: str | None = None, **env: str
) -> Any:
    """The body of a request to a provider that is the endpoint."""
    name = model.partition("/")[0]
    settings = {"providers": {name: {"base_url": endpoint.url, "api_key": "k", **provider}}}
    endpoint.play(answer("Hi."))
    params = {} if level is None else {"reasoning_effort": level}
    llm: Any = resolve(model, settings, env)
    async for _ in llm.stream(Request([user("hello")], params=params)):
        pass
    await llm.aclose()
    return endpoint.requests[-1].body


THINKING = ("reasoning_effort", "thinking", "reasoning", "enable_thinking", "chat_template_kwargs")


@pytest.mark.parametrize(
    "model, level, said",
    [
        ("deepseek/deepseek-v4-pro", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek/deepseek-v4-pro", "low",
         {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("deepseek/deepseek-v4-pro", "max",
         {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("moonshot/kimi-k2.6", "off", {"thinking": {"type": "disabled"}}),
        ("moonshot/kimi-k2.6", "high", {"thinking": {"type": "enabled"}}),
        ("moonshot/kimi-k3", "medium", {"reasoning_effort": "high"}),
        ("zai/glm-5.3", "max",
         {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "max"}),
        ("qwen/qwen3.7-plus", "off", {"enable_thinking": False}),
        ("qwen/qwen3.7-plus", "low", {"enable_thinking": True}),
        ("qwen/qwen3.8-max", "medium", {"enable_thinking": True, "reasoning_effort": "medium"}),
        ("openrouter/anthropic/claude-opus-5", "xhigh", {"reasoning": {"effort": "xhigh"}}),
        ("openrouter/anthropic/claude-opus-5", "off", {"reasoning": {"effort": "none"}}),
        ("together/Qwen/Qwen3.7-Max", "off", {"reasoning": {"enabled": False}}),
        ("groq/openai/gpt-oss-120b", "max", {"reasoning_effort": "high"}),
        ("groq/qwen/qwen3.6-27b", "high", {"reasoning_effort": "default"}),
        ("ollama/qwen3:8b", "off", {"reasoning_effort": "none"}),
        ("vllm/Qwen/Qwen3-8B", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("llamacpp/qwen3-4b", "high", {"chat_template_kwargs": {"enable_thinking": True}}),
        ("mine/unheard-of", "high", {"reasoning_effort": "high"}),
        ("deepseek/deepseek-v4-pro", None, {}),
    ],
)  # fmt: skip
async def test_a_level_is_said_in_the_provider_s_words(
    endpoint: Endpoint, model: str, level: str | None, said: dict[str, Any]
):
    body = await asked(endpoint, model, {}, level)
    assert {name: body[name] for name in THINKING if name in body} == said


async def test_what_is_said_in_the_provider_s_own_words_stays(endpoint: Endpoint):
    own = {"thinking": {"type": "enabled", "budget": 7}}
    body = await asked(endpoint, "deepseek/deepseek-v4-pro", {"params": own}, "max")
    assert body["thinking"] == own["thinking"]


async def test_a_level_that_stands_in_the_settings_is_one_as_well(endpoint: Endpoint):
    told = {"params": {"reasoning_effort": "off"}}
    body = await asked(endpoint, "deepseek/deepseek-v4-pro", told)
    assert body["thinking"] == {"type": "disabled"}
    assert "reasoning_effort" not in body


async def test_only_claude_at_openrouter_is_asked_to_cache(endpoint: Endpoint):
    claude = await asked(endpoint, "openrouter/anthropic/claude-opus-5", {})
    other = await asked(endpoint, "openrouter/deepseek/deepseek-v4-pro", {})
    assert claude["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in other


async def test_openrouter_s_routing_goes_through_as_it_is(endpoint: Endpoint):
    routing = {"order": ["anthropic"], "allow_fallbacks": False}
    body = await asked(
        endpoint, "openrouter/anthropic/claude-opus-5", {"params": {"provider": routing}}
    )
    assert body["provider"] == routing


async def test_a_model_of_the_settings_is_what_they_say_of_it(endpoint: Endpoint):
    small = {
        "context_window": 8192,
        "max_output": 1000,
        "inputs": [],
        "thought_levels": ["off", "high"],
        "thinking": "template",
        "params": {"top_k": 5},
        "prices": {"input": 1, "output": 2},
    }
    table = {
        "context_window": 32768,
        "params": {"top_k": 1, "top_p": 1},
        "models": {"small": small},
    }
    body = await asked(endpoint, "mine/small", table, "off")
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (body["top_k"], body["top_p"]) == (5, 1)
    settings = {"providers": {"mine": {"base_url": endpoint.url, **table}}}
    one: Any = resolve("mine/small", settings, {})
    assert (one.context_window, one.info.max_output, one.inputs) == (8192, 1000, frozenset())
    assert one.thought_levels == ("off", "high")
    assert one.info.prices == Prices(1, 2)
    assert resolve("mine/other", settings, {}).context_window == 32768


def test_patience_is_the_provider_s_own_before_what_holds_for_all():
    settings = {
        "timeouts": {"connect": 3, "idle": 9},
        "providers": {
            "mine": {"base_url": "http://x/v1", "timeouts": {"idle": 600, "total": 7200}}
        },
    }
    one: Any = resolve("mine/x", settings, {})
    other: Any = resolve("ollama/x", settings, {})
    assert one.timeouts == Timeouts(connect=3, idle=600, total=7200)
    assert other.timeouts == Timeouts(connect=3, idle=9)
    assert resolve("ollama/x", {}, {}).timeouts == Timeouts()  # type: ignore[attr-defined]


async def test_azure_has_its_key_in_a_header_of_its_own_and_its_version_in_the_url(
    endpoint: Endpoint,
):
    endpoint.play(answer("Hi."))
    table = {"wire": "chat", "query": {"api-version": "2024-10-21"}}
    env = {"AZURE_OPENAI_ENDPOINT": endpoint.url, "AZURE_OPENAI_API_KEY": "secret-of-azure"}
    llm = resolve("azure/my-deployment", {"providers": {"azure": table}}, env)
    async for _ in llm.stream(Request([user("hello")])):
        pass
    asked = endpoint.requests[0]
    assert asked.path == "/v1/chat/completions?api-version=2024-10-21"
    assert asked.headers["api-key"] == "secret-of-azure"
    assert "authorization" not in asked.headers


def test_azure_is_where_its_variable_says_and_nowhere_without():
    env = {"AZURE_OPENAI_API_KEY": "k"}
    with pytest.raises(ModelError, match="or set AZURE_OPENAI_ENDPOINT"):
        resolve("azure/x", {}, env)
    for url in ("https://mine.openai.azure.com/", "https://mine.openai.azure.com/openai/v1"):
        llm: Any = resolve("azure/x", {}, {**env, "AZURE_OPENAI_ENDPOINT": url})
        assert llm.base_url == "https://mine.openai.azure.com/openai/v1"


@pytest.mark.parametrize("env, settings", [({"CROW_WIRE": "mesages"}, {}), ({}, {"wire": "chats"})])
def test_a_wire_that_there_is_not_is_refused(env: dict[str, str], settings: dict[str, str]):
    with pytest.raises(
        ModelError, match=r"there is no wire .* for the base URL: choose one of chat"
    ):
        resolve("m", settings, {"CROW_BASE_URL": "http://x/v1", **env})


# keys that a command prints


def printing(folder: Path, *keys: str) -> str:
    """A command that prints one key after the other."""
    script = folder / "key.py"
    counter = folder / "asked"
    script.write_text(
        "import pathlib, sys\n"
        f"counter = pathlib.Path({str(counter)!r})\n"
        "n = len(counter.read_text()) if counter.exists() else 0\n"
        "counter.write_text('x' * (n + 1))\n"
        f"keys = {json.dumps(keys)}\n"
        "print(keys[min(n, len(keys) - 1)])\n"
    )
    return f"python3 {script}"


def authorized(endpoint: Endpoint) -> list[str]:
    return [each.headers["authorization"] for each in endpoint.requests]


async def heard(llm: Any) -> None:
    async for _ in llm.stream(Request([user("hello")])):
        pass


async def test_a_command_prints_the_key_once_for_many_requests(endpoint: Endpoint, tmp_path: Path):
    endpoint.play(answer("Hi."), answer("Hi."))
    settings = {"base_url": endpoint.url, "apiKeyHelper": printing(tmp_path, "first", "second")}
    llm = resolve("m", settings, {})
    await heard(llm)
    await heard(llm)
    assert authorized(endpoint) == ["Bearer first", "Bearer first"]


@pytest.mark.slow
async def test_a_key_that_is_refused_is_asked_for_anew_and_once(endpoint: Endpoint, tmp_path: Path):
    endpoint.play(respond(401, "{}"), answer("Hi."))
    settings = {"base_url": endpoint.url, "apiKeyHelper": printing(tmp_path, "old-key", "new-key")}
    await heard(resolve("m", settings, {}))
    assert authorized(endpoint) == ["Bearer old-key", "Bearer new-key"]

    body = json.dumps({"error": {"message": "bad key new-key"}})
    endpoint.play(respond(401, body), respond(401, body))
    with pytest.raises(ModelError, match="apiKeyHelper in the settings") as caught:
        await heard(resolve("m", settings, {}))
    assert caught.value.kind == "authentication"
    assert "new-key" not in str(caught.value)
    assert len(endpoint.requests) == 4


async def test_a_key_lives_as_long_as_the_environment_says(endpoint: Endpoint, tmp_path: Path):
    endpoint.play(answer("Hi."), answer("Hi."))
    settings = {"base_url": endpoint.url, "apiKeyHelper": printing(tmp_path, "first", "second")}
    llm = resolve("m", settings, {"CLAUDE_CODE_API_KEY_HELPER_TTL_MS": "0"})
    await heard(llm)
    await heard(llm)
    assert authorized(endpoint) == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    "command, said",
    [
        (
            "echo first line >&2; echo no vault here >&2; exit 3",
            "ended with status 3: no vault here",
        ),
        ("true", "printed no key"),
        ("printf 'a\\nb'", "printed what is no key"),
        ("/no/such/program", "ended with status 127"),
    ],
)
async def test_a_command_that_gives_no_key_says_why(command: str, said: str):
    with pytest.raises(ModelError, match=f"the apiKeyHelper {said}") as caught:
        await heard(
            resolve("m", {"base_url": "http://127.0.0.1:9/v1", "apiKeyHelper": command}, {})
        )
    assert caught.value.kind == "authentication"


def test_keys_that_are_known_go_before_a_command():
    settings = {"apiKeyHelper": "false", "providers": {"mistral": {"apiKeyHelper": "own"}}}
    by_name: Any = resolve("gpt-5", settings, {"OPENAI_API_KEY": "k"})
    assert by_name.key_origin == "OPENAI_API_KEY"
    own: Any = resolve("mistral/x", settings, {"MISTRAL_API_KEY": "k"})
    assert own.key_origin == "apiKeyHelper of providers.mistral in the settings"
    shared: Any = resolve("gpt-5", settings, {})
    assert shared.key_origin == "apiKeyHelper in the settings"


@pytest.mark.parametrize(
    "model, made",
    [
        ("openai/gpt-5.4", "Responses('gpt-5.4', 'https://api.openai.com/v1')"),
        ("xai/grok-4.7", "Responses('grok-4.7', 'https://api.x.ai/v1')"),
        ("claude-opus-5", "AnthropicMessages('claude-opus-5', 'https://api.anthropic.com/v1')"),
        ("gemini-3.8-flash",
         "Gemini('gemini-3.8-flash', 'https://generativelanguage.googleapis.com/v1beta')"),
        ("mistral/x", "ChatCompletions('x', 'https://api.mistral.ai/v1')"),
    ],
)  # fmt: skip
def test_a_model_is_asked_by_the_wire_of_its_provider(model: str, made: str):
    keys = ("OPENAI", "XAI", "ANTHROPIC", "GEMINI", "MISTRAL")
    assert repr(resolve(model, {}, {f"{name}_API_KEY": "k" for name in keys})) == made


@pytest.mark.parametrize(
    "model, settings, env, wire",
    [
        ("google/gemini-3.8-flash", {"providers": {"google": {"wire": "chat"}}}, {}, "ChatCompletions"),
        ("gpt-5.4", {}, {"CROW_BASE_URL": "http://x/v1"}, "ChatCompletions"),
        ("gpt-5.4", {}, {"CROW_BASE_URL": "http://x/v1", "CROW_WIRE": "responses"}, "Responses"),
        ("gpt-5.4", {"base_url": "http://x/v1", "wire": "messages"}, {}, "AnthropicMessages"),
        ("gpt-5.4", {}, {"OPENAI_BASE_URL": "http://x/v1"}, "ChatCompletions"),
        ("claude-opus-5", {}, {"ANTHROPIC_BASE_URL": "http://x"}, "AnthropicMessages"),
        ("mine/x", {"providers": {"mine": {"base_url": "http://x", "wire": "gemini"}}}, {}, "Gemini"),
    ],
)  # fmt: skip
def test_another_place_is_asked_by_chat_completions_unless_somebody_says_otherwise(
    model: str, settings: Any, env: dict[str, str], wire: str
):
    keys = {"GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert repr(resolve(model, settings, {**keys, **env})).startswith(f"{wire}(")


def test_gemini_on_chat_completions_is_at_another_path():
    settings = {"providers": {"google": {"wire": "chat"}}}
    llm: Any = resolve("google/gemini-3.8-flash", settings, {"GEMINI_API_KEY": "k"})
    assert llm.base_url == "https://generativelanguage.googleapis.com/v1beta/openai"
    assert llm.thought_levels == ("low", "medium", "high")
