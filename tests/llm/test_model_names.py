from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from crow.core.errors import ModelError
from crow.llm import HttpModel, Rehearsal, from_environment, resolve
from crow.llm.model_names import info_named
from crow.llm.presets import OTHER_NAMES, PRESETS
from crow.testing import Endpoint
from crow.testing.endpoint import answer

KEYS = {name: "k" for preset in PRESETS.values() for name in preset.key_names}
AZURE = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}


def made(model: str | None, settings: Any = None, **env: str) -> Any:
    llm = resolve(model, settings or {}, env)
    assert isinstance(llm, HttpModel)
    return llm


def refused(model: str | None, settings: Any = None, **env: str) -> str:
    with pytest.raises(ModelError) as caught:
        resolve(model, settings or {}, env)
    assert caught.value.kind == "unconfigured"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_with_nothing_configured_at_all_it_is_the_rehearsal():
    assert isinstance(resolve(None, {}, {}), Rehearsal)
    assert isinstance(resolve(None, {}, KEYS), Rehearsal)
    assert isinstance(resolve("rehearsal", {"base_url": "http://x/v1"}, KEYS), Rehearsal)
    assert isinstance(from_environment(), Rehearsal)
    assert resolve(None, {}, {}).model == "rehearsal"


@pytest.mark.parametrize(
    "name, base_url, model",
    [
        ("gpt-5", "https://api.openai.com/v1", "gpt-5"),
        ("o3", "https://api.openai.com/v1", "o3"),
        ("openai/gpt-5", "https://api.openai.com/v1", "gpt-5"),
        ("claude-sonnet-4-5", "https://api.anthropic.com/v1", "claude-sonnet-4-5"),
        (
            "gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta",
            "gemini-2.5-pro",
        ),
        ("openrouter/vendor/model:free", "https://openrouter.ai/api/v1", "vendor/model:free"),
        ("ollama/qwen3", "http://localhost:11434/v1", "qwen3"),
        ("ollama/hf.co/some/model", "http://localhost:11434/v1", "hf.co/some/model"),
        ("llama.cpp/any", "http://localhost:8080/v1", "any"),
        ("LMStudio/any", "http://localhost:1234/v1", "any"),
        ("vllm/Qwen/Qwen3-8B", "http://localhost:8000/v1", "Qwen/Qwen3-8B"),
        ("z.ai/glm-4.6", "https://api.z.ai/api/paas/v4", "glm-4.6"),
        ("kimi-k2-thinking", "https://api.moonshot.ai/v1", "kimi-k2-thinking"),
        ("grok-4", "https://api.x.ai/v1", "grok-4"),
    ],
)
def test_a_name_says_where_its_model_is(name: str, base_url: str, model: str):
    llm = made(name, **KEYS)
    assert (llm.base_url, llm.model) == (base_url, model)


@pytest.mark.parametrize(
    "provider",
    [name for name in (*PRESETS, *OTHER_NAMES) if not PRESETS[OTHER_NAMES.get(name, name)].cloud],
)
def test_every_preset_makes_a_model_with_its_key_and_asks_for_it_without(provider: str):
    assert made(f"{provider}/some-model", **KEYS, **AZURE).model == "some-model"
    name = OTHER_NAMES.get(provider, provider)
    preset = PRESETS[name]
    if preset.is_local:
        assert made(f"{provider}/some-model").base_url.startswith("http://localhost:")
    else:
        said = refused(f"{provider}/some-model", **AZURE)
        assert said.startswith(f"{name} needs a key for {provider}/some-model: set ")
        assert preset.key_names[0] in said


def test_the_name_comes_from_the_argument_then_the_environment_then_the_settings():
    settings = {"model": "ollama/from-settings"}
    assert made("ollama/argument", settings, CROW_MODEL="ollama/env").model == "argument"
    assert made(None, settings, CROW_MODEL="ollama/env").model == "env"
    assert made(None, settings).model == "from-settings"


def test_a_base_url_takes_the_whole_name_and_needs_no_key():
    llm = made("vendor/model", {}, CROW_BASE_URL="http://gateway:4000/")
    assert (llm.base_url, llm.model) == ("http://gateway:4000", "vendor/model")
    assert made("m", {"base_url": "http://gateway/v1"}).base_url == "http://gateway/v1"
    both = made("m", {"base_url": "http://settings/v1"}, CROW_BASE_URL="http://env/v1")
    assert both.base_url == "http://env/v1"


def test_openai_s_own_variable_moves_openai_and_takes_names_nobody_knows():
    moved = {"OPENAI_BASE_URL": "http://localhost:4000/v1"}
    assert made("gpt-5", **moved).base_url == "http://localhost:4000/v1"
    assert made("some/thing", **moved).model == "some/thing"
    assert made("thing", OPENAI_API_KEY="k").base_url == "https://api.openai.com/v1"
    assert isinstance(resolve(None, {}, moved), Rehearsal)


@pytest.mark.parametrize(
    "host, url",
    [
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v1"),
        ("0.0.0.0", "http://localhost:11434/v1"),
        ("http://box:11434", "http://box:11434/v1"),
        ("https://box/ollama/v1/", "https://box/ollama/v1"),
    ],
)
def test_ollama_s_own_variable_says_where_it_is(host: str, url: str):
    assert made("ollama/qwen3", OLLAMA_HOST=host).base_url == url


def test_settings_add_providers_and_change_presets():
    settings = {
        "providers": {
            "mine": {"base_url": "http://mine/v1", "context_window": 5000, "api_key_env": "MINE"},
            "openai": {"base_url": "http://proxy/v1"},
            "empty": {},
        }
    }
    llm = made("mine/x/y", settings, MINE="k")
    assert (llm.base_url, llm.model, llm.context_window) == ("http://mine/v1", "x/y", 5000)
    assert made("gpt-5", settings).base_url == "http://proxy/v1"
    assert "set MINE" in refused("mine/x", settings)
    assert "no base_url" in refused("empty/x", settings)
    assert made("gpt-5", {**settings, "context_window": 7}).context_window == 7


@pytest.mark.parametrize(
    "name, said",
    [
        ("olama/qwen3", "there is no provider olama for olama/qwen3: do you mean ollama?"),
        ("quux/model", "choose one of anthropic, azure, bedrock"),
        ("unheard-of", "write it as PROVIDER/unheard-of"),
        ("gpt-5", "openai needs a key for gpt-5: set OPENAI_API_KEY, or CROW_API_KEY"),
        ("gemini-3", "set GEMINI_API_KEY or GOOGLE_API_KEY"),
    ],
)
def test_what_cannot_be_used_says_what_to_do_in_one_line(name: str, said: str):
    assert said in refused(name)


def test_an_endpoint_without_a_model_says_so():
    assert "no model: name one with --model" in refused(None, {"base_url": "http://x/v1"})


@pytest.mark.parametrize(
    "base_url, said",
    [
        ("localhost:11434", "no base URL of a model; it looks like http://localhost:11434/v1"),
        ("ftp://x", "no base URL"),
        ("http://host:99999/v1", "no base URL"),
        ("http://host:port/v1", "no base URL"),
        ("https://me:secret@host/v1", "the base URL of host carries a secret"),
        ("https://host/v1?key=secret", "the base URL of host carries a secret"),
    ],
)
def test_a_base_url_that_cannot_work_is_refused_at_once(base_url: str, said: str):
    text = refused("m", {"base_url": base_url})
    assert said in text
    assert "secret@" not in text
    assert "key=secret" not in text


@pytest.mark.parametrize("key", ["sk-with\nnewline", "sk-“quoted”", "sk-\x00"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str):
    text = refused("gpt-5", OPENAI_API_KEY=key)
    assert "the API key holds characters that cannot be sent" in text
    assert "sk-" not in text


async def test_keys_headers_and_params_arrive(endpoint: Endpoint):
    endpoint.play(answer("Hi."), answer("Hi."), answer("Hi."))
    settings = {
        "headers": {"X-Team": "crow"},
        "params": {"temperature": 0},
        "providers": {
            "mine": {
                "base_url": endpoint.url,
                "api_key": "of-the-table",
                "headers": {"X-Mine": "1"},
                "params": {"top_p": 1},
            }
        },
    }
    await drained(made("mine/m", settings, CROW_API_KEY="shared"))
    await drained(made("m", {"base_url": endpoint.url, "api_key": " of-the-settings\n"}))
    await drained(made("m", {"base_url": f"{endpoint.url}/chat/completions"}))
    first, second, third = endpoint.requests
    assert first.headers["authorization"] == "Bearer of-the-table"
    assert (first.headers["x-team"], first.headers["x-mine"]) == ("crow", "1")
    assert (first.body["temperature"], first.body["top_p"]) == (0, 1)
    assert second.headers["authorization"] == "Bearer of-the-settings"
    assert "authorization" not in third.headers
    assert {each.path for each in endpoint.requests} == {"/v1/chat/completions"}


async def drained(llm: Any) -> None:
    from crow.core.messages import user
    from crow.core.ports.llm import Request

    async for _ in llm.stream(Request([user("hello")])):
        pass


@pytest.mark.parametrize(
    "model, window",
    [
        ("gpt-4.1-mini", 1047576),
        ("openai/gpt-4o", 128000),
        ("anthropic/claude-opus-4-1", 200000),
        ("kimi-k3", 1048576),
        ("unheard-of", None),
    ],
)
def test_windows_of_well_known_models_are_known(model: str, window: int | None):
    assert info_named(model).context_window == window


def test_naming_a_model_imports_no_http_library():
    code = (
        "import sys; from crow.llm import resolve; "
        "resolve('ollama/x', {}, {}); resolve(None, {}, {}); "
        "print([name for name in ('httpx2', 'openai', 'anyio') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_unknown_name_is_no_attribute_of_the_package():
    with pytest.raises(ImportError, match="nonsense"):
        from crow.llm import nonsense  # type: ignore  # noqa: F401, PGH003
