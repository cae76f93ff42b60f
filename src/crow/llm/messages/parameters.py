"""The parameters of a request, beside its conversation: length, thinking, choice of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.llm.http.text import is_object
from crow.llm.messages.refusals import BOUND, DISPLAY, EFFORT, THINKING
from crow.llm.messages.tools import choice_of
from crow.llm.models import ModelInfo

LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
SAMPLING = ("temperature", "top_p", "top_k")
OTHER_NAMES = {"stop": "stop_sequences"}
OUTPUT = 8192
"""Tokens of an answer of a model of which nothing is known."""
SHARE = 6
"""An answer is at most the sixth of the window, unless more is asked for."""
LEAST_BUDGET = 1024
USUAL = "medium"
"""How hard a model thinks that has to be told, where nobody told it."""
FORCED = frozenset({"any", "tool"})


def output_limit(info: ModelInfo) -> int:
    """How many tokens an answer may have."""
    limit = info.max_output or OUTPUT
    return min(limit, info.context_window // SHARE) if info.context_window else limit


def parameters(
    given: Mapping[str, Any],
    info: ModelInfo,
    limit: int,
    without: frozenset[str],
    *,
    has_tools: bool,
    may_think: bool,
) -> dict[str, Any]:
    """A request's parameters, in this wire's words and such as the model takes.

    ``limit`` is how many tokens the answer may have, ``without`` what the endpoint refused,
    ``may_think`` is False in the middle of a turn that was begun without a thought, which models
    with a budget for thinking refuse to go on with.
    """
    params = {OTHER_NAMES.get(name, name): value for name, value in given.items()}
    asked = next((params[name] for name in LIMITS if params.get(name)), limit)
    own = {"thinking", "output_config"} & params.keys()
    level = params.pop("reasoning_effort", None)
    parallel = params.pop("parallel_tool_calls", None) is not False
    choice = choice_of(params.pop("tool_choice", None), parallel=parallel) if has_tools else None
    forces = choice is not None and choice["type"] in FORCED
    params = {name: value for name, value in params.items() if name not in LIMITS}
    params["max_tokens"] = asked
    if not own:
        thinks = may_think and not (forces and "forced_tools" in info.refuses)
        params |= thinking_of(info, level, asked, without, thinks=thinks)
    if choice is not None:
        is_refused = forces and "forced_tools" in info.refuses and _is_on(params)
        params["tool_choice"] = {**choice, "type": "auto"} if is_refused else choice
        if is_refused:
            params["tool_choice"].pop("name", None)
    if "temperature" in info.refuses or _is_on(params):
        params = {name: value for name, value in params.items() if name not in SAMPLING}
    _add_format(params)
    return params


def thinking_of(
    info: ModelInfo, level: Any, limit: int, without: frozenset[str], *, thinks: bool
) -> dict[str, Any]:
    """How a request says how hard to think; nothing where the model thinks as it likes.

    A model that always thinks cannot be told not to: it thinks as little as it can.
    """
    if THINKING in without or not info.thinking:
        return {}
    is_off = not thinks or level in ("off", "none")
    if info.thinking == "adaptive":
        return adaptive(info, "off" if is_off else level, without)
    if level is None and info.thinking != "budget":
        return {}
    budget = 0 if is_off else min(info.budget(str(level or USUAL)), limit - LEAST_BUDGET)
    if budget >= LEAST_BUDGET:
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {} if info.thinking == "budget" else {"thinking": {"type": "disabled"}}


def adaptive(info: ModelInfo, level: Any, without: frozenset[str]) -> dict[str, Any]:
    """Thinking as the model sees fit, shown in summaries; ``level`` bounds its effort."""
    if level == "off" and "off" in info.levels:
        return {"thinking": {"type": "disabled"}}
    thinking: dict[str, Any] = {"type": "adaptive"}
    if DISPLAY not in without:
        thinking["display"] = "summarized"
    if BOUND in without:
        thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    effort = info.effort(str(level)) if level else None
    if not effort or EFFORT in without:
        return {"thinking": thinking}
    return {"thinking": thinking, "output_config": {"effort": effort}}


def _is_on(params: Mapping[str, Any]) -> bool:
    """Whether a request has its model think."""
    thinking = params.get("thinking")
    return is_object(thinking) and thinking.get("type") in ("adaptive", "enabled")


def _add_format(params: dict[str, Any]) -> None:
    """Say in this wire's words that an answer must fit a schema."""
    given: Any = params.pop("response_format", None)
    named: Any = given.get("json_schema") if is_object(given) else None
    if is_object(named) and is_object(schema := named.get("schema")):
        wanted: dict[str, Any] = {"type": "json_schema", "schema": schema}
        params["output_config"] = {**params.get("output_config", {}), "format": wanted}
