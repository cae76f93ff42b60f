"""The report on the prefix of a session, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from crow import Usage

SHOWN = 3


class Counts(TypedDict, total=False):
    """The counts that are kept with a session: JSON.

    ``used`` are all tokens of its requests, ``tokens`` those that were paid again. ``expected``
    counts the breaks that are nobody's fault by what they are, ``last`` has the latest breaks,
    ``told`` whom the user has heard of. ``sent`` are fingerprints of the last request.
    """

    requests: int
    breaks: int
    tokens: int
    used: int
    expected: dict[str, int]
    last: list[dict[str, Any]]
    told: list[str]
    subagents: Counts
    sent: dict[str, Any]


def lines(counts: Counts, usage: Usage) -> Iterator[str]:
    """What a person should know; nothing before the first request."""
    requests = counts.get("requests", 0)
    if not requests:
        return
    yield f"cached prefix: {_fate(counts)}"
    breaks = [each for each in counts.get("last", []) if not each["expected"]]
    for each in breaks[-SHOWN:]:
        yield f"  - request {each['request']}: {each['text']}"
    others = {word: number for word, number in counts.get("expected", {}).items() if number}
    if others:
        told = ", ".join(f"{word} {number}" for word, number in others.items())
        yield f"  - begun anew for a reason: {told}"
    below = counts.get("subagents", {})
    if number := below.get("requests", 0):
        yield f"sub-agents: {number} requests, {_fate(below)}"
    beside = usage.get("total_tokens", 0) - counts.get("used", 0) - below.get("used", 0)
    if beside > 0:
        yield f"beside the conversation (summaries, what hooks ask): {beside:,} tokens"


def _fate(counts: Counts) -> str:
    breaks = counts.get("breaks", 0)
    if not breaks:
        return "never broken"
    times = "once" if breaks == 1 else f"{breaks} times"
    return f"broken {times}, about {counts.get('tokens', 0):,} tokens were paid again"


def described(counts: Counts) -> dict[str, Any]:
    """The numbers and the last break; empty as long as there was none, expected or not."""
    breaks = counts.get("last")
    if not breaks:
        return {}
    last = {**breaks[-1]}
    last["fromMessage"] = last.pop("from_message")
    told: dict[str, Any] = {name: counts.get(name, 0) for name in ("requests", "breaks", "tokens")}
    return {**told, "expected": {**counts.get("expected", {})}, "last": last}
