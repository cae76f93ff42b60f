"""The table of models: whole, quick to read, and right about well-known ones."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.llm import write_models

from crow.llm.models import (
    FEATURES,
    LEVELS,
    REFUSALS,
    THINKING,
    WIRES,
    ModelInfo,
    known_models,
    model_info,
)
from crow.llm.presets import PRESETS

FILES = sorted(path.stem for path in write_models.HOME.glob("*.json"))


@pytest.mark.parametrize("provider", FILES)
def test_every_row_says_what_the_record_knows(provider: str):
    known = known_models(provider)
    assert known
    for info in known:
        assert info.provider == provider
        assert info.model
        assert info.wire in WIRES
        assert info.thinking in THINKING
        assert [*info.levels] == [level for level in LEVELS if level in info.levels]
        assert bool(info.levels) == bool(info.thinking)
        assert info.refuses <= REFUSALS.keys()
        assert not {"max_tokens", "max_completion_tokens"} <= info.refuses
        assert info.features <= FEATURES.keys()
        assert info.inputs <= {"image", "audio"}
        assert info.context_window is None or info.context_window > 1000
        assert info.max_output is None or info.max_output > 0
        assert info.prices is None or info.prices.input >= 0


@pytest.mark.parametrize("provider", FILES)
def test_what_a_name_is_taken_for_is_in_the_table(provider: str):
    models = {info.model for info in known_models(provider)}
    assert set(write_models.FAMILIES.get(provider, {}).values()) <= models


def test_every_provider_with_a_key_is_in_the_table():
    hosted = {name for name, each in PRESETS.items() if not (each.is_local or each.cloud)}
    assert hosted <= {*FILES}
    assert {*FILES} - hosted <= {"open", "azure"}


@pytest.mark.parametrize(
    "provider, model, wire, thinking, levels",
    [
        ("openai", "gpt-5.4", "responses", "effort", "off low medium high xhigh"),
        ("openai", "gpt-6-astra", "responses", "effort", "low medium high xhigh max"),
        ("openai", "gpt-4.1", "responses", "", ""),
        ("anthropic", "claude-sonnet-4-5", "messages", "budget", "off low medium high"),
        ("anthropic", "claude-opus-4-6", "messages", "adaptive", "off low medium high max"),
        ("anthropic", "claude-opus-5-5", "messages", "adaptive", "low medium high xhigh max"),
        ("google", "gemini-2.5-flash", "gemini", "budget", "off low medium high"),
        ("google", "gemini-2.5-pro", "gemini", "budget", "low medium high"),
        ("google", "gemini-3-flash-preview", "gemini", "level", "minimal low medium high"),
        ("google", "gemini-3.8-flash", "gemini", "level", "low medium high"),
        ("deepseek", "deepseek-v4-pro", "chat", "switch", "off high max"),
        ("moonshot", "kimi-k2.6", "chat", "switch", "off high"),
        ("moonshot", "kimi-k3", "chat", "effort", "low high max"),
        ("xai", "grok-4.7", "responses", "effort", "low medium high xhigh"),
        ("openrouter", "anthropic/claude-opus-5", "chat", "openrouter",
         "off low medium high xhigh max"),
        ("ollama", "gpt-oss:20b", "chat", "effort", "low medium high"),
        ("ollama", "qwen3:8b", "chat", "effort", "off low medium high"),
        ("vllm", "Qwen/Qwen3-8B", "chat", "template", "off high"),
        ("lmstudio", "qwen3-8b", "chat", "", ""),
        ("mine", "gpt-5.4", "chat", "effort", "off low medium high xhigh"),
        ("mine", "never-heard-of", "chat", "", ""),
    ],
)  # fmt: skip
def test_wire_and_levels_of_well_known_models(
    provider: str, model: str, wire: str, thinking: str, levels: str
):
    info = model_info(provider, model)
    assert (info.provider, info.model) == (provider, model)
    assert (info.wire, info.thinking, [*info.levels]) == (wire, thinking, levels.split())


@pytest.mark.parametrize(
    "given, meant",
    [
        ("gpt-5.4-2026-03-05", "gpt-5.4"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("CLAUDE-OPUS-5", "claude-opus-5"),
        ("claude-opus-9", "claude-opus-5-5"),
    ],
)
def test_a_version_has_what_its_model_has(given: str, meant: str):
    provider = next(p for p in ("openai", "anthropic", "google") if meant in _names(p))
    one, other = model_info(provider, given), model_info(provider, meant)
    assert one.model == given
    assert (one.context_window, one.levels) == (other.context_window, other.levels)
    assert one.refuses == other.refuses


def test_a_server_on_this_machine_has_a_window_of_its_own():
    assert model_info("mine", "qwen3-8b").context_window == 262144
    assert model_info("ollama", "qwen3-8b").context_window is None


def test_a_level_that_a_model_has_not_is_the_nearest_one():
    info = model_info("moonshot", "kimi-k3")
    assert [info.effort(level) for level in LEVELS] == [
        "low",
        "low",
        "low",
        "high",
        "high",
        "max",
        "max",
    ]
    assert info.effort("ultra") == "ultra"
    assert ModelInfo().effort("high") is None


def test_a_budget_goes_up_with_the_level_and_off_is_none():
    info = model_info("anthropic", "claude-sonnet-4-5")
    budgets = [info.budget(level) for level in info.levels]
    assert budgets[0] == 0
    assert budgets == sorted(set(budgets))
    assert budgets[1] >= 1024


def test_one_look_into_the_table_is_quick_and_reads_one_provider():
    code = """
import time
import crow.llm.models as table
from crow.llm.models import model_info
began = time.perf_counter()
model_info("openai", "gpt-5")
print(time.perf_counter() - began, table._table.cache_info().currsize)
"""
    fastest = min(_said(code) for _ in range(5))
    assert fastest[0] < 0.005
    assert fastest[1] == 1


def _said(code: str) -> tuple[float, int]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    spent, read = done.stdout.split()
    return float(spent), int(read)


def _names(provider: str) -> set[str]:
    return {info.model for info in known_models(provider)}
