"""Each rule of the strict double: a request that breaks it, and what is answered then."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from crow.testing.messages import RULES
from crow.testing.messages.request import MessagesRequest, Prefix, sign

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
TOOL = {"name": "ls", "description": "List.", "input_schema": {"type": "object"}}
Change = Callable[[dict[str, Any]], object]


def signed(body: dict[str, Any], text: str = "Hm.") -> dict[str, Any]:
    """A thought at the place where the assistant's first message begins."""
    prefix = Prefix()
    for place, block in MessagesRequest({**body, "messages": body["messages"][:1]}, {}).parts():
        prefix.add(place, block)
    return {
        "type": "thinking",
        "thinking": text,
        "signature": sign(body["model"], prefix.value, text),
    }


def request(model: str = "claude-opus-4-8") -> dict[str, Any]:
    """A request that keeps all rules."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": 9000,
        "system": [{"type": "text", "text": "Be careful."}],
        "tools": [copy.deepcopy(TOOL)],
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]},
        ],
    }  # fmt: skip
    body["messages"][1]["content"].insert(0, signed(body))
    return body


def said(body: dict[str, Any]) -> list[dict[str, Any]]:
    return body["messages"][1]["content"]


def answered(body: dict[str, Any]) -> list[dict[str, Any]]:
    return body["messages"][2]["content"]


def strict_tools(body: dict[str, Any]) -> None:
    body["tools"] = [{**TOOL, "name": f"t{n}", "strict": True} for n in range(21)]


def second_call(body: dict[str, Any]) -> None:
    said(body).append({**said(body)[1]})


def part_result(body: dict[str, Any]) -> None:
    said(body).append({**said(body)[1], "id": "toolu_2"})
    result = {"type": "tool_result", "tool_use_id": "toolu_2"}
    body["messages"].append({"role": "user", "content": [result]})


def marks(body: dict[str, Any]) -> None:
    body["messages"][0]["content"] = [
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}} for _ in range(5)
    ]


def image(kind: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": "AA=="}}


def enabled(body: dict[str, Any], budget: int = 2000) -> None:
    body["model"] = "claude-haiku-4-5"
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}


BROKEN: list[tuple[str, Change]] = [
    ("required", lambda b: b.pop("max_tokens")),
    ("A06", lambda b: b.update(thinking={"type": "adaptive", "block_binding": {}})),
    ("A18", lambda b: b.update(reasoning_effort="high")),
    ("A18", lambda b: b.update(context_management={})),
    ("A18", lambda b: b["messages"][0].update(origin="here")),
    ("user first", lambda b: b["messages"].insert(0, {"role": "assistant", "content": "Hi."})),
    ("content", lambda b: b["messages"].insert(0, {"role": "user", "content": []})),
    ("A17", lambda b: said(b)[1].update(id="functions.ls:0")),
    ("A17", lambda b: said(b)[1].update(id="x" * 65)),
    ("input", lambda b: said(b)[1].update(input="{}")),
    ("A17 image", lambda b: answered(b)[0].update(is_error=True, content=[image("image/png")])),
    ("image", lambda b: answered(b)[0].update(content=[image("image/bmp")])),
    ("A09", lambda b: said(b)[0].pop("signature")),
    ("A11", lambda b: answered(b).append({"type": "text", "text": ""})),
    ("A11 blank", lambda b: b["system"].append({"type": "text", "text": " \n"})),
    ("A10", marks),
    ("mark", lambda b: said(b)[0].update(cache_control={"type": "ephemeral"})),
    ("A22", second_call),
    ("A02", lambda b: answered(b).insert(0, {"type": "text", "text": "so"})),
    ("A02 apart", part_result),
    ("A03", lambda b: answered(b)[0].update(tool_use_id="toolu_9")),
    ("A01", lambda b: b["messages"].pop()),
    ("A07", lambda b: said(b)[0].update(thinking="Hm!")),
    ("A04", lambda b: said(b)[0].update(signature="c2ln")),
    ("thought last", lambda b: b["messages"].extend(({"role": "assistant", "content": [signed(b)]}, {"role": "user", "content": "so"}))),
    ("A08", lambda b: (enabled(b), said(b).pop(0))),
    ("A12", lambda b: b["messages"].append({"role": "assistant", "content": "I"})),
    ("A13", lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 2000})),
    ("A13", lambda b: b.update(model="claude-opus-5-5", thinking={"type": "disabled"})),
    ("A13", lambda b: b.update(model="claude-haiku-4-5", thinking={"type": "adaptive"})),
    ("A14", lambda b: b.update(temperature=0.5)),
    ("A14 warm", lambda b: (enabled(b), b.update(temperature=0.5))),
    ("A15", lambda b: (enabled(b), b.update(tool_choice={"type": "any"}))),
    ("A15", lambda b: b.update(model="claude-opus-5-5", tool_choice={"type": "any"})),
    ("choice", lambda b: (b.pop("tools"), b.update(tool_choice={"type": "auto"}))),
    ("A16", lambda b: enabled(b, 1000)),
    ("A16 large", lambda b: enabled(b, 9000)),
    ("A19", strict_tools),
    ("A21", lambda b: (b.update(model="claude-opus-4-6"), b["messages"].append({"role": "system", "content": "now"}))),
    ("A21 place", lambda b: b["messages"].extend(({"role": "assistant", "content": "Hi."}, {"role": "system", "content": "now"}))),
    ("A23", lambda b: b["tools"][0].update(input_schema={"type": "object", "anyOf": []})),
    ("object", lambda b: b["tools"][0].update(input_schema={})),
    ("name", lambda b: b["tools"][0].update(name="a.b")),
    ("names", lambda b: b["tools"].append(TOOL)),
]  # fmt: skip


@pytest.mark.parametrize("rule, change", BROKEN)
def test_a_request_that_breaks_a_rule_is_refused_by_it(rule: str, change: Change):
    body = request()
    change(body)
    fault = RULES.broken(MessagesRequest(body, HEADERS))
    assert fault is not None
    assert fault[0].id == rule
    assert "{" not in fault[1].replace("{1,128}", "")


@pytest.mark.parametrize("rule, header", [("key", "x-api-key"), ("version", "anthropic-version")])
def test_a_request_without_its_headers_is_refused(rule: str, header: str):
    headers = {name: value for name, value in HEADERS.items() if name != header}
    fault = RULES.broken(MessagesRequest(request(), headers))
    assert fault is not None
    assert fault[0].id == rule


@pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-haiku-4-5-20251001", "claude-fable-5-2", "kimi-k2"])  # fmt: skip
def test_a_request_that_breaks_none_is_not(model: str):
    assert RULES.broken(MessagesRequest(request(model), HEADERS)) is None


def test_every_rule_is_tried():
    assert {rule.id for rule in RULES} == {rule for rule, _ in BROKEN} | {"key", "version"}
