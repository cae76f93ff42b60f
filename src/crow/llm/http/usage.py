"""A usage report in the shapes in which endpoints send it."""

from __future__ import annotations

from typing import Any

from crow.core.messages import Usage
from crow.llm.http.text import is_object


def usage_of(reported: object) -> Usage | None:
    """A usage report in any of its known shapes; None where there is none.

    OpenAI's names, the ones of the responses and messages protocols, and the cache counts of
    DeepSeek and Moonshot are understood.
    """
    if not is_object(reported) or not reported:
        return None
    report = reported
    given = _first(report, "prompt_tokens", "input_tokens")
    written = _first(report, "completion_tokens", "output_tokens")
    total = _number(report.get("total_tokens"))
    if given is None and written is None and total is None:
        return None
    given, written = given or 0, written or 0
    usage: Usage = {
        "input_tokens": given,
        "output_tokens": written,
        "total_tokens": total or given + written,
    }
    _add_details(usage, report)
    return usage


def _add_details(usage: Usage, report: dict[str, Any]) -> None:
    before = report.get("prompt_tokens_details") or report.get("input_tokens_details")
    after = report.get("completion_tokens_details") or report.get("output_tokens_details")
    cached = _inside(before, "cached_tokens")
    if cached is None:
        cached = _first(report, "prompt_cache_hit_tokens", "cached_tokens")
    reasoning = _inside(after, "reasoning_tokens")
    cost = report.get("cost")
    if cached is not None:
        usage["cached_tokens"] = cached
    if (kept := _inside(before, "cache_write_tokens")) is not None:
        usage["cache_write_tokens"] = kept
    if reasoning is not None:
        usage["reasoning_tokens"] = reasoning
    if isinstance(cost, int | float):
        usage["cost"] = float(cost)


def _first(report: dict[str, Any], *names: str) -> int | None:
    numbers = (_number(report.get(name)) for name in names)
    return next((number for number in numbers if number is not None), None)


def _inside(details: Any, name: str) -> int | None:
    return _number(details.get(name)) if is_object(details) else None


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None
