"""Models and what is known of them, as data: a file a provider, read when first asked for.

The files are ``data/PROVIDER.json``, written by ``tests/llm/write_models.py``. A provider that has
none, such as a server on this machine, has the models of their makers, as far as these are the
model's own and not the provider's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crow.core.support.frozen import frozen
from crow.llm.presets import OTHER_NAMES, PRESETS, Preset, provider_meant

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""How hard a model can be made to think, the least first; a model has some of these."""

WIRES = ("chat", "responses", "messages", "gemini")
"""Chat Completions, OpenAI's Responses, Anthropic's Messages, Gemini's generateContent."""

THINKING: Mapping[str, str] = MappingProxyType(
    {
        "": "cannot be chosen",
        "effort": "a word: reasoning_effort, on Responses reasoning.effort",
        "adaptive": "Messages: thinking adaptive or disabled, and a word in output_config.effort",
        "budget": "tokens: thinking.budget_tokens on Messages, thinkingBudget on Gemini",
        "level": "Gemini: a word in thinkingLevel",
        "switch": "thinking enabled or disabled, and a word in reasoning_effort where it has some",
        "zai": "the same, with clear_thinking false",
        "qwen": "enable_thinking true or false, and a word in reasoning_effort where it has some",
        "openrouter": "a word in reasoning.effort, for all that OpenRouter has",
        "together": "reasoning.enabled, and a word in reasoning_effort where it has some",
        "template": "chat_template_kwargs.enable_thinking, as vLLM and llama.cpp have it",
    }
)
"""The styles in which a request says how hard to think."""

REFUSALS: Mapping[str, str] = MappingProxyType(
    {
        "developer": "messages of the role developer",
        "max_tokens": "max_tokens: the limit is max_completion_tokens",
        "max_completion_tokens": "max_completion_tokens: the limit is max_tokens",
        "temperature": "temperature and other parameters of sampling",
        "strict": "tools with strict schemas",
        "store": "the parameter store",
        "tools_on_chat": "tools on Chat Completions, unless thinking is off and can be",
        "forced_tools": "a forced choice of tools while it thinks",
        "prefill": "a history that ends with the assistant's message",
        "null_content": "content that is null beside calls: it is empty",
        "absent_tools": "a history with calls and no list of tools: it is empty",
    }
)
"""What a request to a model must not have."""

FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "tool_images": "images in the results of tools, where chat completions take them seldom",
        "late_system": "messages of the role system in the middle of a history",
        "bound_thinking": "thinking that is bound to all that stood before it",
        "echo_reasoning": "wants reasoning back, and a field for it where there was none",
        "cache_control": "caches what is marked in Anthropic's way, and nothing else",
    }
)
"""What a model has that others of its wire have not."""

OFF: Mapping[str, str] = MappingProxyType({"off": "none"})
BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1024, "low": 4096, "medium": 12288, "high": 24576, "xhigh": 32768, "max": 65536}
)
"""Tokens for thinking, for models that take a number."""


def words_of(style: str) -> Mapping[str, str]:
    """The words for levels where nobody says others; empty where a style only switches."""
    wordless = style in ("switch", "zai", "qwen", "together", "template", "budget")
    return {level: "" if wordless else OFF.get(level, level) for level in LEVELS}


@frozen
class Prices:
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0


@frozen
class ModelInfo:
    """A model as a provider has it. What is not known is None or empty.

    ``wire`` is one of `WIRES`. ``context_window`` and ``max_output`` are tokens. ``inputs`` is what
    it takes beside text (``image``, ``audio``). ``levels`` has those of `LEVELS` that it knows, in
    that sequence, with what the provider calls them; ``thinking`` is how they are said, one of
    `THINKING`. ``refuses`` are words of `REFUSALS`, ``features`` of `FEATURES`. ``cache_minimum``
    is how many tokens a prefix must have to be cached.
    """

    provider: str = ""
    model: str = ""
    name: str = ""
    wire: str = "chat"
    context_window: int | None = None
    max_output: int | None = None
    prices: Prices | None = None
    inputs: frozenset[str] = frozenset({"image"})
    levels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    thinking: str = ""
    refuses: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    cache_minimum: int | None = None

    def on(self, wire: str) -> ModelInfo:
        """The same model where it is asked by another wire, which says thinking its own way."""
        if wire == self.wire:
            return self
        sayable = self.wire != "messages" and wire != "messages"
        words = {level: word or words_of("")[level] for level, word in self.levels.items()}
        return replace(
            self,
            wire=wire,
            levels=words if sayable else {},
            thinking="effort" if sayable and words else "",
            features=frozenset(),
        )

    def effort(self, level: str) -> str | None:
        """What the provider calls a level, or the nearest that the model has.

        None where the model has no levels. A level that is none of `LEVELS` stays as it is.
        """
        if not self.levels or level not in LEVELS:
            return level if self.levels else None
        return self.levels[self.nearest(level)]

    def nearest(self, level: str) -> str:
        """The level itself, else the next one above it, else the highest below."""
        wanted = LEVELS.index(level)
        known = sorted(map(LEVELS.index, self.levels))
        above = [each for each in known if each >= wanted]
        return LEVELS[above[0] if above else known[-1]]

    def budget(self, level: str) -> int:
        """The tokens for a level of thinking, 0 for ``off``."""
        return BUDGETS.get(self.nearest(level) if self.levels else level, 0)


UNKNOWN = ModelInfo()


DATA = Path(__file__).with_name("data")
Row = Mapping[str, Any]
ELSEWHERE = Preset("")
EMPTY: Row = MappingProxyType({"usual": {}, "models": {}, "families": {}})
DATED = r"[-@](?:\d{4}-\d\d-\d\d|\d{8}|\d{4}|\d{3}|latest|preview.*)$"
"""What stands behind a model's name and says which of its versions is meant."""
SOLD = r"^(?:[a-z-]{2,6}\.)?[a-z0-9]+\.(?=[a-z])"
"""What a cloud puts before a model's name: where it may run, and who made it."""
VERSION = r"-v\d+(?::\d+)?$"
OPEN = "open"
"""The file of open weights, which anybody may serve."""
SERVED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "": {},
        "effort": {"off": "none", "low": "low", "medium": "medium", "high": "high"},
        "template": {"off": "", "high": ""},
    }
)
"""The levels of a model that thinks, by how its server has it said."""


def model_info(provider: str, model: str) -> ModelInfo:
    """What is known of a provider's model; where it is not known itself, what its family has.

    ``provider`` is a preset's name or any other. Who is not in the table has the model's window,
    output and inputs from its maker; a server on this machine has its own window.
    """
    provider = OTHER_NAMES.get(provider, provider)
    if (own := _found(provider, model)) is not None:
        return own
    preset = PRESETS.get(provider, ELSEWHERE)
    named: dict[str, Any] = {"provider": provider, "model": model, "wire": preset.wire}
    name = model.rpartition("/")[2]
    if preset.cloud:
        name = re.sub(VERSION, "", re.sub(SOLD, "", name))
    made = _found(OPEN, name) or _found(provider_meant(name) or "", name)
    if made is not None and preset.cloud and made.wire in (preset.urls or {}):
        return replace(made, provider=provider, model=model, prices=None)
    if made is None:
        return ModelInfo(**named)
    said = made.thinking if made.thinking == "effort" else preset.thinking
    return ModelInfo(
        **named,
        name=made.name,
        context_window=None if preset.is_own_server else made.context_window,
        max_output=None if preset.is_own_server else made.max_output,
        inputs=made.inputs,
        levels=made.levels if said == made.thinking else SERVED[said if made.levels else ""],
        thinking=said if made.levels else "",
    )


def known_models(provider: str) -> list[ModelInfo]:
    """All of a provider's models that are in the table."""
    return [_info(provider, name) for name in _table(provider)["models"]]


def newest(provider: str, family: str) -> str | None:
    """The model that stands for a family, such as ``claude-opus-``; None where there is none."""
    return _table(provider)["families"].get(family)


def _found(provider: str, model: str) -> ModelInfo | None:
    """A provider's model by its name, by its name without a date, or by its family's."""
    table = _table(provider)
    rows, families = table["models"], table["families"]
    name = model.removeprefix("models/")
    plain = re.sub(DATED, "", name.lower().partition(":")[0])
    for each in (name, name.lower(), plain):
        if each in rows:
            return replace(_info(provider, each), model=model)
    meant = max(filter(plain.startswith, (*rows, *families)), key=len, default=None)
    if meant is None:
        return None
    return replace(_info(provider, families.get(meant, meant)), model=model)


def _info(provider: str, name: str) -> ModelInfo:
    table = _table(provider)
    row: Row = {**table["usual"], **table["models"][name]}
    prices = row["prices"]
    return ModelInfo(
        provider=provider,
        model=name,
        name=row["name"],
        wire=row["wire"],
        context_window=row["window"],
        max_output=row["output"],
        prices=Prices(*prices) if prices else None,
        inputs=frozenset(row["inputs"]),
        levels=MappingProxyType(row["levels"]),
        thinking=row["thinking"],
        refuses=frozenset(row["refuses"]),
        features=frozenset(row["features"]),
        cache_minimum=row["cache_minimum"],
    )


@cache
def _table(provider: str) -> Mapping[str, Any]:
    """A provider's rows; what ``usual`` says is left out of them."""
    path = DATA / f"{provider}.json"
    if not provider.isidentifier() or not path.exists():
        return EMPTY
    return json.loads(path.read_text("utf-8"))
