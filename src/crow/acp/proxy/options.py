"""The options of a permission question: which of them says yes once, and which says no."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crow.acp.jsonrpc import Message, as_object

REFUSALS = ("reject_once", "reject_always")
CANCELLED: Message = {"outcome": {"outcome": "cancelled"}}


def allowed(params: Message) -> Message | None:
    """The answer that lets a call pass this once; None where no option says just that."""
    return _chosen(params, ("allow_once",))


def refused(params: Message) -> Message:
    """The answer that refuses a call; where no option does, the question is cancelled."""
    return _chosen(params, REFUSALS) or CANCELLED


def _chosen(params: Message, kinds: Iterable[str]) -> Message | None:
    options: list[Any] = params.get("options") or []
    for kind in kinds:
        for option in map(as_object, options):
            if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return None


def kind_chosen(params: Message, result: Message) -> str | None:
    """The kind of the option that the client has chosen; None where it chose none."""
    outcome = as_object(result.get("outcome"))
    if outcome.get("outcome") != "selected":
        return None
    options: list[Any] = params.get("options") or []
    for option in map(as_object, options):
        if option.get("optionId") == outcome.get("optionId"):
            return str(option.get("kind"))
    return None
