"""ATIF trajectories (https://pypi.org/project/atif): one JSON object with the steps of an agent.

What Crow puts beside calls into ``extra.crow`` (hooks, outcomes, times) is read again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from crow.transcripts.transcript import (
    DAMAGES,
    Object,
    Transcript,
    as_object,
    as_objects,
    seconds,
    text_in,
    tokens,
)

PROGRAM = "atif"
USAGE = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "cached_tokens": "cached_tokens",
}


def is_atif(value: object) -> bool:
    """True for a trajectory."""
    given: Any = value
    return isinstance(value, dict) and str(given.get("schema_version")).startswith("ATIF")


def read(value: Object) -> Transcript:
    """The conversation of a trajectory."""
    agent, about = as_object(value.get("agent")), _beside(value)
    made = Transcript(
        PROGRAM,
        text_in(value.get("session_id")),
        text_in(about.get("cwd")),
        text_in(about.get("title")),
        text_in(agent.get("model_name")),
    )
    at = 0.0
    for step in as_objects(value.get("steps")):
        with suppress(*DAMAGES):  # a damaged step is passed over
            at = seconds(step.get("timestamp"), at)
            _take(made, step, at)
    return made


def _take(made: Transcript, step: Object, at: float) -> None:
    text = _text(step.get("message"))
    match step.get("source"):
        case "user":
            made.prompt(text, at)
        case "agent":
            _agent(made, step, text, at)
        case _ if text:
            made.context(text, at)
        case _:
            pass
    if records := _hooks(step):
        made.hooks(records, at)


def _agent(made: Transcript, step: Object, text: str, at: float) -> None:
    called = as_objects(step.get("tool_calls"))
    calls: list[Object] = [
        {
            "id": str(each.get("tool_call_id")),
            "name": str(each.get("function_name")),
            "args": each.get("arguments") or {},
        }
        for each in called
    ]
    thought = text_in(step.get("reasoning_content"))
    made.model = text_in(step.get("model_name")) or made.model
    made.answer(text, at, thought=thought, calls=calls)
    if metrics := as_object(step.get("metrics")):
        made.spent(tokens(metrics, USAGE), at)
    records = [record for each in called for record in _hooks(each)]
    if records:
        made.hooks(records, at)
    beside = {str(each.get("tool_call_id")): _beside(each) for each in called}
    for result in as_objects(as_object(step.get("observation")).get("results")):
        call_id = str(result.get("source_call_id"))
        about = beside.get(call_id, {})
        ended = at + float(about.get("seconds") or 0)
        failed = about.get("outcome", "ok") != "ok"
        made.result(call_id, _text(result.get("content")), ended, failed=failed)


def _beside(thing: Object) -> Object:
    return as_object(as_object(thing.get("extra")).get("crow"))


def _hooks(thing: Object) -> list[Object]:
    return as_objects(_beside(thing).get("hooks"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(each["text"]) for each in as_objects(content) if "text" in each)
