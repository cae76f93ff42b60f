"""What an endpoint sent of its model's thoughts goes back to it as it came, and to nobody else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow import Agent, tool
from crow.core.errors import ModelError
from crow.core.messages import Message, ToolCall, thought_of, tool_answer, user
from crow.core.ports.llm import LLM
from crow.core.support.validation import fits
from crow.extensions import PersistenceHook
from crow.llm import ChatCompletions
from crow.llm.chat.reasoning_fields import EXTRA, NAMES, ReasoningFields
from crow.llm.model_names import resolve
from crow.testing import Endpoint
from crow.testing.endpoint import Received, Response, answer, delta, respond, stream

SIGNATURE = {"google": {"thought_signature": "CiQB+/=="}}
DETAILS = [
    {"type": "reasoning.text", "text": "I look", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.text", "text": " first.", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.text", "signature": "c2ln", "index": 0},
    {"type": "reasoning.encrypted", "data": "AAAA", "id": "r1", "index": 1},
]
JOINED = [
    {
        "type": "reasoning.text",
        "text": "I look first.",
        "index": 0,
        "format": "anthropic-claude-v1",
        "signature": "c2ln",
    },
    {"type": "reasoning.encrypted", "data": "AAAA", "id": "r1", "index": 1},
]


def wanted(name: str = "ls", arguments: str = "{}", **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": 0, "id": "c1", "type": "function", "function": function, **fields}


@tool
async def ls() -> str:
    """List."""
    return "a b"


Make = Callable[..., LLM]

BLOCKS = [
    {"type": "thinking", "thinking": "I look", "signature": None},
    {"type": "thinking", "thinking": " first."},
    {"type": "thinking", "thinking": "", "signature": "U2ln"},
    {"type": "redacted_thinking", "data": "ZW5j"},
    {"type": "thinking", "thinking": "Then"},
    {"type": "thinking", "thinking": "", "signature": "TmV4dA=="},
    {"type": "thinking", "thinking": "On."},
]
"""As LiteLLM streams what Claude thinks, and wants it back in whole blocks."""
WHOLE_BLOCKS = [
    {"type": "thinking", "thinking": "I look first.", "signature": "U2ln"},
    {"type": "redacted_thinking", "data": "ZW5j"},
    {"type": "thinking", "thinking": "Then", "signature": "TmV4dA=="},
    {"type": "thinking", "thinking": "On."},
]


@pytest.mark.parametrize(
    "pieces, fields",
    [
        ([{"reasoning_content": "Let me "}, {"reasoning_content": "see."}], {"reasoning_content": "Let me see."}),
        ([{"reasoning": "Hm"}, {"reasoning": "."}], {"reasoning": "Hm."}),
        ([{"reasoning_text": "So."}], {"reasoning_text": "So."}),
        (
            [{"reasoning": "I look", "reasoning_details": DETAILS[:1]}, {"reasoning": " first.", "reasoning_details": DETAILS[1:]}],
            {"reasoning": "I look first.", "reasoning_details": JOINED},
        ),
        ([{"reasoning_content": "A", "reasoning": "A"}], {"reasoning_content": "A", "reasoning": "A"}),
        ([{"extra_content": SIGNATURE}], {"extra_content": SIGNATURE}),
        ([{"thinking_blocks": [piece]} for piece in BLOCKS], {"thinking_blocks": WHOLE_BLOCKS}),
    ],
)  # fmt: skip
@pytest.mark.variants(10)
async def test_what_came_goes_back_under_the_name_that_it_had(
    endpoint: Endpoint, make: Make, pieces: list[dict[str, Any]], fields: dict[str, Any]
):
    calls = delta(finish="tool_calls", tool_calls=[wanted(extra_content=SIGNATURE)])
    endpoint.play(stream(*(delta(**piece) for piece in pieces), calls), answer("Done."))
    async with Agent(llm=make(), tools=[ls]) as agent:
        reply = await agent.run("look")
    _, sent, result = endpoint.requests[1].body["messages"]
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    assert sent == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**call, "extra_content": SIGNATURE}],
        **fields,
    }
    assert result == tool_answer("c1", "a b")
    assert reply.text == "Done."


def test_a_message_has_a_type_for_everything_that_an_endpoint_may_have_sent():
    assert get_type_hints(Message).keys() >= NAMES
    assert get_type_hints(ToolCall).keys() >= {EXTRA}
    assert not fits(Message)({"role": "assistant", "content": "", "thinking_blocks": "a text"})


async def test_a_strict_gemini_gets_every_signature_of_parallel_and_sequential_calls(
    endpoint: Endpoint, make: Make
):
    first = wanted(extra_content=SIGNATURE)
    second = {**wanted(), "index": 1, "id": "c2"}
    later = {**wanted(), "id": "c3", "extra_content": {"google": {"thought_signature": "TGF0ZXI="}}}
    endpoint.play(
        stream(delta(tool_calls=[first, second]), delta(finish="tool_calls")),
        stream(delta(tool_calls=[later], finish="stop")),
        answer("Done."),
    )
    async with Agent(llm=make("gemini-3-pro"), tools=[ls]) as agent:
        await agent.run("look")
    sent = [m for m in endpoint.requests[2].body["messages"] if m["role"] == "assistant"]
    extras = [[call.get("extra_content") for call in m["tool_calls"]] for m in sent]
    assert extras == [[SIGNATURE, None], [later["extra_content"]]]
    assert not any("origin" in m for m in sent)


async def test_thoughts_are_shown_once_and_kept_with_the_session(
    endpoint: Endpoint, make: Make, tmp_path: Path
):
    endpoint.play(stream(delta(reasoning="Hm.", reasoning_details=DETAILS), "Hi.", delta(finish="stop")), answer("Yes."))  # fmt: skip
    store = tmp_path / "crow.db"
    async with Agent(llm=make(), hooks=[PersistenceHook(db_path=store)]) as agent:
        session = (await agent.run("hello")).session
        assert thought_of(session.messages[-1]) == "Hm."
        session_id = session.id
    async with Agent(llm=make(), hooks=[PersistenceHook(db_path=store)]) as agent:
        session = await agent.load_session(session_id)
        await agent.run("and?", session=session)
    sent = endpoint.requests[1].body["messages"][1]
    assert (sent["reasoning"], sent["reasoning_details"]) == ("Hm.", JOINED)


async def test_another_model_gets_none_of_it(endpoint: Endpoint, make: Make):
    call = delta(finish="tool_calls", reasoning_content="Hm.", tool_calls=[wanted(extra_content=SIGNATURE)])  # fmt: skip
    endpoint.play(stream(call), answer("Done."), answer("Here."), answer("Back."))
    async with Agent(llm=make(), tools=[ls]) as agent:
        session = (await agent.run("look")).session
    for llm in (make("m-2"), make("m-1")):
        async with Agent(llm=llm, tools=[ls]) as agent:
            other = await agent.new_session()
            other.messages[:] = session.messages
            await agent.run("and now?", session=other)
    plain, own = (request.body["messages"][1] for request in endpoint.requests[2:])
    assert set(plain) == {"role", "content", "tool_calls"}
    assert set(plain["tool_calls"][0]) == {"id", "type", "function"}
    assert own["reasoning_content"] == "Hm."
    assert own["tool_calls"][0]["extra_content"] == SIGNATURE


async def test_an_endpoint_that_wants_a_thought_with_every_call_gets_one(
    endpoint: Endpoint, make: Make
):
    """As DeepSeek and Kimi refuse a history of another model's without ``reasoning_content``."""
    call: Any = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    history: list[Message] = [
        user("look"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        tool_answer("c1", "a b"),
        {"role": "assistant", "content": "Two.", "reasoning": "I count.", "origin": "elsewhere"},
        {"role": "assistant", "content": "Indeed."},
    ]
    endpoint.play(answer("Done."))
    async with Agent(llm=make(echo_reasoning=True)) as agent:
        session = await agent.new_session()
        session.messages[:] = history
        await agent.run("go on", session=session)
    sent = endpoint.requests[0].body["messages"]
    assert sent[1]["reasoning_content"] == ""
    assert sent[3] == {"role": "assistant", "content": "Two.", "reasoning_content": "I count."}
    assert sent[4] == history[4]


@pytest.mark.parametrize(
    "status, said",
    [
        (400, "messages.1.reasoning: Extra inputs are not permitted"),
        (422, "property 'reasoning' is unsupported"),
        (400, "Unrecognized request argument supplied: reasoning_details"),
    ],
)
async def test_an_endpoint_that_refuses_its_own_fields_is_asked_without_from_then_on(
    endpoint: Endpoint, make: Make, status: int, said: str
):
    endpoint.play(
        stream(delta(reasoning="Hm.", reasoning_details=DETAILS), "Hi.", delta(finish="stop")),
        respond(status, {"error": {"message": said}}),
        answer("Yes."),
        answer("Still."),
    )
    async with Agent(llm=make()) as agent:
        session = (await agent.run("hello")).session
        assert (await agent.run("and?", session=session)).text == "Yes."
        assert (await agent.run("and?", session=session)).text == "Still."
    told = ["reasoning" in request.body["messages"][1] for request in endpoint.requests[1:]]
    assert told == [True, False, False]


MISSING = [{"error": {"code": 400, "message": "Function call is missing a thought_signature in functionCall parts.", "status": "INVALID_ARGUMENT"}}]  # fmt: skip


class StrictGoogle(Endpoint):
    """Gemini as chat completions: the first call of a step is signed, or says that it is not."""

    def _steps(self, received: Received) -> Response:
        messages = received.body["messages"] if received.path.endswith("/completions") else []
        firsts = [each["tool_calls"][0] for each in messages if each.get("tool_calls")]
        signed = [list(call.get(EXTRA, {}).values()) for call in firsts]
        if all(each and each[0].get("thought_signature") for each in signed):
            return super()._steps(received)
        self.requests.append(received)
        return respond(400, MISSING)


@pytest.mark.parametrize("place", ["google", "vertex"])
async def test_gemini_gets_its_own_signatures_and_is_told_of_calls_that_have_none(place: str):
    own = {place: {"thought_signature": "CiQB+/=="}}
    asked: Any = {"id": "c0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    foreign: list[Any] = [
        user("look"),
        {"role": "assistant", "content": None, "tool_calls": [asked, {**asked, "id": "c1"}]},
        tool_answer("c0", "a b"),
        tool_answer("c1", "a b"),
    ]
    async with StrictGoogle() as google, Agent(llm=ChatCompletions("gemini-3", google.url), tools=[ls]) as agent:  # fmt: skip
        google.play(stream(delta(tool_calls=[wanted(extra_content=own)]), delta(finish="tool_calls")))  # fmt: skip
        google.play(answer("Two."))
        session = await agent.new_session()
        session.messages[:] = foreign
        assert (await agent.run("go on", session=session)).text == "Two."
        assert len(google.requests) == 3
    sent = google.requests[-1].body["messages"]
    assert "extra_content" not in sent[1]["tool_calls"][1]
    assert sent[1]["tool_calls"][0]["extra_content"]["google"] == {"thought_signature": "skip_thought_signature_validator"}  # fmt: skip
    assert sent[5]["tool_calls"][0]["extra_content"] == own


async def test_an_endpoint_that_misses_a_field_is_asked_with_it_once(
    endpoint: Endpoint, make: Make
):
    said = "The `reasoning_content` in the thinking mode must be passed back to the API."
    endpoint.play(*[respond(400, {"error": {"message": said}})] * 2)
    async with Agent(llm=make()) as agent:
        with pytest.raises(ModelError, match="must be passed back"):
            await agent.run("hello")
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("provider", ["openrouter", "google", "ollama"])
async def test_it_is_no_matter_how_the_endpoint_was_named(endpoint: Endpoint, provider: str):
    settings: dict[str, Any] = {"providers": {provider: {"base_url": endpoint.url}}}
    llm: Any = resolve(f"{provider}/thinker", settings, {})
    endpoint.play(stream(delta(reasoning="Hm."), "Hi.", delta(finish="stop")), answer("Yes."))
    async with aclosing(llm), Agent(llm=llm) as agent:  # it may still look for its window
        session = (await agent.run("hello")).session
        await agent.run("and?", session=session)
    assert endpoint.requests[1].body["messages"][1]["reasoning"] == "Hm."


JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(st.lists(st.tuples(st.sampled_from([0, 1]), JSON_TEXT), min_size=1, max_size=12))
def test_details_keep_their_order_and_lose_no_text(pieces: list[tuple[int, str]]):
    opaque = ReasoningFields()
    for index, text in pieces:
        opaque.take({"reasoning_details": [{"type": "reasoning.text", "index": index, "text": text}]})  # fmt: skip
    details = opaque.fields["reasoning_details"]
    clean = "".join(text for _, text in pieces).replace("\0", "�")
    assert "".join(detail["text"] for detail in details) == clean
    assert all(a["index"] != b["index"] for a, b in itertools.pairwise(details))
