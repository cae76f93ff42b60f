"""Gemini in its own words: signed thoughts, calls and results, images, faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from crow import Agent, tool
from crow.core.errors import ModelError
from crow.core.events import Retrying, TextDelta, ThoughtDelta
from crow.core.messages import ToolSpec, tool_answer, user
from crow.core.ports.llm import Completion, Request
from crow.llm import Gemini, HttpModel, Retries, Timeouts
from crow.testing import StrictGemini
from crow.testing.endpoint import HANG, begin, event, piece, respond
from crow.testing.gemini import (
    RULES,
    UNSIGNED,
    Asked,
    blocked,
    chunk,
    overloaded,
    quota,
    refusal,
    streamed,
    wanted,
)

QUICK = Timeouts(connect=30, first_byte=30, idle=30, total=100, closing=0.3)
SOON = Retries(limit=3, base=0.01)
KEY = "AIzaSyA-0123456789-secret"
RED = "data:image/png;base64,aW1hZ2U="


class Heard:
    """What came of one request."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.completion: Completion = items[-1]
        self.text = "".join(item.text for item in items if isinstance(item, TextDelta))
        self.retries = [item for item in items if isinstance(item, Retrying)]


@tool
async def ls(path: str = ".") -> str:
    """List."""
    return f"{path}: a b"


@pytest.fixture
async def google() -> AsyncGenerator[StrictGemini, None]:
    async with StrictGemini() as google:
        yield google


def gemini(google: StrictGemini, model: str = "gemini-3-pro", **options: Any) -> HttpModel:
    known: Any = {"timeouts": QUICK, "retries": SOON, **options}
    return Gemini(model, google.url, KEY, **known)


async def heard(llm: HttpModel, *messages: Any, **fields: Any) -> Heard:
    request = Request(list(messages) or [user("hello")], **fields)
    return Heard([item async for item in llm.stream(request)])


def called(name: str = "ls", call_id: str = "c1", arguments: str = "{}") -> Any:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def spec(name: str, **parameters: Any) -> ToolSpec:
    function: Any = {"name": name, "description": "Does.", "parameters": parameters}
    return {"type": "function", "function": function}


async def test_a_turn_with_two_calls_goes_back_as_it_came(google: StrictGemini):
    google.say("Let me look. ", wanted("ls", path="a"), wanted("ls", path="b"), thought="Hm.")
    google.say("Done. Two.")
    google.say("Bye.")
    async with Agent(llm=gemini(google), tools=[ls]) as agent:
        reply = await agent.run("look")
        assert reply.text == "Done. Two."
        await agent.run("thanks", session=reply.session)
    assert google.refused == []
    first, _, last = google.requests
    assert first.path == "/v1/models/gemini-3-pro:streamGenerateContent?alt=sse"
    assert first.headers["x-goog-api-key"] == KEY
    assert "authorization" not in first.headers
    assert last.body["contents"] == [
        {"role": "user", "parts": [{"text": "look"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True},
                {"text": "Let me look. "},
                {
                    "functionCall": {"id": "fc-1", "name": "ls", "args": {"path": "a"}},
                    "thoughtSignature": "c2lnbmF0dXJlIDM=",
                },
                {"functionCall": {"id": "fc-2", "name": "ls", "args": {"path": "b"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "fc-1", "name": "ls", "response": {"output": "a: a b"}}},
                {"functionResponse": {"id": "fc-2", "name": "ls", "response": {"output": "b: a b"}}},
            ],
        },
        {
            "role": "model",
            "parts": [{"text": "Done. Two."}, {"text": "", "thoughtSignature": "c2lnbmF0dXJlIDQ="}],
        },
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]  # fmt: skip


async def test_thoughts_are_shown_and_kept(google: StrictGemini):
    google.say("Yes.", thought="I think.")
    said = await heard(gemini(google))
    assert [item.text for item in said.items if isinstance(item, ThoughtDelta)] == ["I think."]
    message = said.completion.message()
    assert message is not None
    assert message.get("reasoning_content") == "I think."


async def test_calls_without_ids_are_answered_without(google: StrictGemini):
    async with StrictGemini(ids=False) as google:
        google.say(wanted("ls"), wanted("ls", path="b"), signed=True)
        google.say("Done.")
        async with Agent(llm=gemini(google, "gemini-2.5-pro"), tools=[ls]) as agent:
            await agent.run("look")
    assert google.refused == []
    assert "'id'" not in str(google.requests[1].body["contents"])


FOREIGN: list[Any] = [
    user("look"),
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [called(), called(call_id="c2")],
        "origin": "https://elsewhere gpt",
        "reasoning_content": "Hm.",
        "output_items": [{"type": "reasoning", "id": "rs_1"}],
    },
    tool_answer("c1", "a"),
    tool_answer("c2", "b"),
]


async def test_a_foreign_step_says_that_it_has_no_signature(google: StrictGemini):
    google.say("Done.")
    await heard(gemini(google), *FOREIGN)
    assert google.refused == []
    assert google.requests[0].body["contents"][1]["parts"] == [
        {"text": "I look."},
        {"functionCall": {"id": "c1", "name": "ls", "args": {}}, "thoughtSignature": UNSIGNED},
        {"functionCall": {"id": "c2", "name": "ls", "args": {}}},
    ]


async def test_an_older_model_needs_no_such_word(google: StrictGemini):
    google.say("Done.")
    await heard(gemini(google, "gemini-2.5-flash"), *FOREIGN)
    assert UNSIGNED not in str(google.requests[0].body)


async def test_a_model_of_another_name_learns_that_it_needs_signatures(google: StrictGemini):
    words = "function call `ls` in the 2. content block is missing a `thought_signature`."
    google.play(refusal(400, "INVALID_ARGUMENT", words))
    google.say("Done.")
    llm = gemini(google, "tuned")
    assert (await heard(llm, *FOREIGN)).text == "Done."
    assert [UNSIGNED in str(each.body) for each in google.requests] == [False, True]


async def signed_turn(google: StrictGemini, llm: HttpModel) -> list[Any]:
    """A user's words, a signed call of the model's, its result."""
    google.say("I look.", wanted("ls", path="a"), thought="Hm.")
    message = (await heard(llm, user("look"))).completion.message()
    assert message is not None
    call_id = message.get("tool_calls", [])[0]["id"]
    return [user("look"), message, tool_answer(call_id, "a b")]


@pytest.mark.parametrize("change", ["text", "arguments", "name", "calls"])
async def test_a_reply_that_a_hook_rewrote_goes_out_as_rewritten_and_unsigned(
    google: StrictGemini, change: str
):
    llm = gemini(google)
    history = await signed_turn(google, llm)
    reply: Any = history[1]
    call = reply["tool_calls"][0]
    match change:
        case "text":
            history[1] = {**reply, "content": "I look there."}
        case "arguments":
            history[1] = {**reply, "tool_calls": [called("ls", call["id"], '{"path":"b"}')]}
        case "name":
            history[1] = {**reply, "tool_calls": [called("dir", call["id"])]}
        case _:
            history[1] = {**reply, "tool_calls": [call, called("ls", "c9")]}
            history.append(tool_answer("c9", "x"))
    google.say("Done.")
    await heard(llm, *history)
    assert google.refused == []
    parts = google.requests[-1].body["contents"][1]["parts"]
    assert not any(part.get("thought") for part in parts)
    assert [part["thoughtSignature"] for part in parts if "thoughtSignature" in part] == [UNSIGNED]


async def test_a_call_that_got_another_id_has_it_in_call_and_result(google: StrictGemini):
    llm = gemini(google)
    history = await signed_turn(google, llm)
    reply: Any = history[1]
    history[1] = {**reply, "tool_calls": [{**reply["tool_calls"][0], "id": "new"}]}
    history[2] = tool_answer("new", "a b")
    google.say("Done.")
    await heard(llm, *history)
    assert google.refused == []
    sent = google.requests[-1].body["contents"]
    assert sent[1]["parts"][-1]["functionCall"]["id"] == "new"
    assert "thoughtSignature" in sent[1]["parts"][-1]
    assert sent[2]["parts"][0]["functionResponse"]["id"] == "new"


async def test_another_model_and_another_place_get_no_signatures(google: StrictGemini):
    llm = gemini(google)
    history = await signed_turn(google, llm)
    async with StrictGemini() as vertex:
        vertex.say("Done.")
        google.say("Done.")
        await heard(gemini(vertex), *history)
        await heard(gemini(google, "gemini-4-argon"), *history)
        assert vertex.refused == google.refused == []
        for endpoint in (vertex, google):
            assert str(endpoint.requests[-1].body).count("thoughtSignature") == 1
            assert UNSIGNED in str(endpoint.requests[-1].body)


async def test_signatures_that_are_refused_are_left_out(google: StrictGemini):
    llm = gemini(google)
    history = await signed_turn(google, llm)
    google.play(refusal(400, "INVALID_ARGUMENT", "Thought signature is not valid."))
    google.say("Done.")
    assert (await heard(llm, *history)).text == "Done."
    assert UNSIGNED in str(google.requests[-1].body)


async def test_missing_signatures_are_our_own_fault_and_mended_once(google: StrictGemini):
    llm = gemini(google)
    history = await signed_turn(google, llm)
    for _ in range(2):
        google.play(streamed(chunk(finish="MISSING_THOUGHT_SIGNATURE")))
    with pytest.raises(ModelError, match="without their thought signatures") as caught:
        await heard(llm, *history)
    assert caught.value.kind == "invalid_request"
    assert len(google.requests) == 3


IMAGES = [
    user("look"),
    {"role": "assistant", "content": None, "tool_calls": [called(), called(call_id="c2")]},
    tool_answer("c1", [{"type": "text", "text": "red"}, {"type": "image_url", "image_url": {"url": RED}}]),
    tool_answer("c2", "plain"),
]  # fmt: skip


async def test_the_image_of_a_tool_stands_in_its_result(google: StrictGemini):
    google.say("Red.")
    await heard(gemini(google), *IMAGES)
    assert google.refused == []
    results = google.requests[0].body["contents"][2]["parts"]
    assert results[0]["functionResponse"] == {
        "id": "c1",
        "name": "ls",
        "response": {"output": "red"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}}],
    }


async def test_for_an_older_model_it_follows_in_the_next_turn(google: StrictGemini):
    google.say("Red.")
    await heard(gemini(google, "gemini-2.5-pro"), *IMAGES)
    assert google.refused == []
    _, _, results, shown = google.requests[0].body["contents"]
    assert len(results["parts"]) == 2
    assert shown["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}}


async def test_what_a_person_sends_beside_text(google: StrictGemini):
    google.say("Nice.")
    url = "https://example.org/cat.webp?size=2"
    sound: Any = {"type": "input_audio", "input_audio": {"data": "c291bmQ=", "format": "wav"}}
    seen: Any = [{"type": "image_url", "image_url": {"url": each}} for each in (RED, url)]
    await heard(gemini(google), user([{"type": "text", "text": "so?"}, *seen, sound]))
    assert google.requests[0].body["contents"][0]["parts"] == [
        {"text": "so?"},
        {"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}},
        {"fileData": {"mimeType": "image/webp", "fileUri": url}},
        {"inlineData": {"mimeType": "audio/wav", "data": "c291bmQ="}},
    ]


async def test_tools_are_declared_in_names_and_schemas_that_it_takes(google: StrictGemini):
    google.say("Done.")
    kind: Any = {"const": "a"}
    tools = [
        spec("none", type="object", properties={}),
        spec("mcp__x__y", type="object", properties={"const": {"anyOf": [kind, {"const": 1}]}}),
        spec("9 to ü5", **{"$schema": "x", "type": "object", "properties": {"a": kind}}),
    ]
    llm = gemini(google)
    await heard(llm, tools=tools)
    declared = google.requests[0].body["tools"][0]["functionDeclarations"]
    assert google.refused == []
    assert declared[0] == {"name": "none", "description": "Does."}
    either = {"anyOf": [{"enum": ["a"]}, {"enum": [1]}]}
    assert declared[1]["parametersJsonSchema"]["properties"] == {"const": either}
    assert declared[2]["parametersJsonSchema"] == {
        "type": "object",
        "properties": {"a": {"enum": ["a"]}},
    }


async def test_a_call_comes_back_under_the_tool_s_own_name(google: StrictGemini):
    llm = gemini(google)
    tools = [spec("9 to 5 " * 20, type="object", properties={})]
    google.say("No.")
    await heard(llm, tools=tools)
    (declared,) = google.requests[0].body["tools"][0]["functionDeclarations"]
    google.say(wanted(declared["name"]))
    said = await heard(llm, tools=tools)
    assert [call.name for call in said.completion.calls] == ["9 to 5 " * 20]
    assert len(declared["name"]) == 64
    history = [
        user("hello"),
        said.completion.message(),
        tool_answer(said.completion.calls[0].id, "x"),
    ]
    google.say("Done.")
    await heard(llm, *history, tools=tools)
    assert google.refused == []
    assert UNSIGNED not in str(google.requests[-1].body)


@pytest.mark.parametrize(
    "model, params, config",
    [
        ("gemini-3-pro-preview", {}, {"thinkingConfig": {"includeThoughts": True}}),
        ("gemini-3-pro-preview", {"reasoning_effort": "high"}, {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}}),
        ("gemini-3-pro-preview", {"reasoning_effort": "off"}, {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}}),
        ("gemini-3-flash-preview", {"reasoning_effort": "none"}, {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "MINIMAL"}}),
        ("gemini-2.5-flash", {"reasoning_effort": "off"}, {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 0}}),
        ("gemini-2.5-pro", {"reasoning_effort": "off"}, {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 4096}}),
        ("gemini-2.0-flash", {"reasoning_effort": "high"}, None),
        ("gemini-3-pro-preview", {"reasoning_effort": "high", "generationConfig": {"thinkingConfig": {"thinkingBudget": 7}}}, {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 7}}),
        ("gemini-2.0-flash", {"temperature": 0, "max_tokens": 9, "stop": "x"}, {"temperature": 0, "maxOutputTokens": 9, "stopSequences": ["x"]}),
    ],
)  # fmt: skip
async def test_options_are_said_in_its_words(
    google: StrictGemini, model: str, params: Any, config: Any
):
    google.say("Yes.")
    await heard(gemini(google, model), params=params)
    assert google.refused == []
    assert google.requests[0].body.get("generationConfig") == config


async def test_choice_and_format_are_said_in_its_words(google: StrictGemini):
    google.say("{}")
    schema: Any = {"type": "object", "properties": {"a": {"const": 1}}}
    wants: Any = {
        "tool_choice": {"type": "function", "function": {"name": "ls"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        "safetySettings": [],
    }
    await heard(gemini(google, "gemini-2.0-flash", max_output_tokens=100), params=wants)
    body = google.requests[0].body
    choice = {"mode": "ANY", "allowedFunctionNames": ["ls"]}
    assert body["toolConfig"] == {"functionCallingConfig": choice}
    assert body["safetySettings"] == []
    assert body["generationConfig"] == {
        "maxOutputTokens": 100,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"a": {"enum": [1]}}},
    }


async def test_the_system_speaks_first_and_later_as_the_user(google: StrictGemini):
    google.say("Yes.")
    system: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Go."},
    ]
    await heard(gemini(google), *system, user("hello"), {"role": "system", "content": "News."})
    body = google.requests[0].body
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Go."}]}
    said = [content["parts"] for content in body["contents"]]
    assert said == [[{"text": "hello"}], [{"text": "News."}]]


async def test_a_history_that_begins_with_a_reply_begins_with_the_user_there(
    google: StrictGemini,
):
    google.say("Yes.")
    replies: Any = [{"role": "assistant", "content": each} for each in ("A.", "B.")]
    await heard(gemini(google), *replies)
    assert google.refused == []
    assert google.requests[0].body["contents"] == [
        {"role": "user", "parts": [{"text": ""}]},
        {"role": "model", "parts": [{"text": "A."}, {"text": "B."}]},
    ]


async def test_tokens_are_counted_as_everywhere(google: StrictGemini):
    counts = {"promptTokenCount": 100, "cachedContentTokenCount": 80, "toolUsePromptTokenCount": 3}
    more = {"candidatesTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 118}
    google.play(
        streamed(
            chunk({"text": "a"}, usageMetadata=counts),
            chunk(finish="STOP", usageMetadata=more),
        )
    )
    assert (await heard(gemini(google))).completion.usage == {
        "input_tokens": 103,
        "output_tokens": 15,
        "total_tokens": 118,
        "cached_tokens": 80,
        "reasoning_tokens": 5,
    }


@pytest.mark.parametrize(
    "finish, reason",
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("SPII", "content_filter"), ("NEW", "stop")],
)  # fmt: skip
async def test_why_it_ended(google: StrictGemini, finish: str, reason: str):
    google.say("So ", "far.", finish=finish)
    said = await heard(gemini(google))
    assert (said.text, said.completion.finish) == ("So far.", reason)


async def test_a_call_of_an_answer_that_was_cut_off_is_none(google: StrictGemini):
    google.say(wanted("ls", path="a"), finish="MAX_TOKENS")
    (call,) = (await heard(gemini(google))).completion.calls
    assert call.fault


@pytest.mark.parametrize(
    "response, words",
    [
        (blocked(), "[The prompt was blocked: PROHIBITED_CONTENT]"),
        (streamed(chunk(finish="RECITATION")), "[The answer was blocked: RECITATION]"),
    ],
)
async def test_what_was_blocked_is_said(google: StrictGemini, response: Any, words: str):
    google.play(response)
    said = await heard(gemini(google))
    assert (said.text, said.completion.finish) == (words, "content_filter")


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"])
async def test_what_was_botched_is_asked_for_once_more(google: StrictGemini, reason: str):
    botched = streamed(chunk(finish=reason))
    google.play(botched)
    google.say("Done.")
    said = await heard(gemini(google))
    assert (said.text, len(said.retries)) == ("Done.", 1)
    google.play(botched, botched)
    with pytest.raises(ModelError, match=reason) as caught:
        await heard(gemini(google))
    assert caught.value.kind == "protocol"
    assert len(google.requests) == 4


FAULTS = [
    (refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "authentication"),
    (refusal(400, "INVALID_ARGUMENT", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."), "context_length"),
    (refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received."), "invalid_request"),
    (refusal(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers."), "authentication"),
    (refusal(404, "NOT_FOUND", "models/x is not found for API version v1beta"), "model_not_found"),
    (quota(quota="GenerateRequestsPerDayPerProjectPerModel-FreeTier"), "billing"),
    (streamed({"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}), "invalid_request"),
]  # fmt: skip


@pytest.mark.parametrize("response, kind", FAULTS)
async def test_a_refusal_is_of_its_kind_and_final(google: StrictGemini, response: Any, kind: str):
    google.play(response)
    with pytest.raises(ModelError) as caught:
        await heard(gemini(google))
    assert caught.value.kind == kind
    assert KEY not in str(caught.value)
    assert len(google.requests) == 1


PASSING = [
    overloaded(),
    refusal(500, "INTERNAL", "An internal error has occurred."),
    refusal(504, "DEADLINE_EXCEEDED", "Deadline expired."),
    quota("0.05s"),
    streamed({"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}),
    streamed([{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}]),
    respond(200, [{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}]),
    streamed(chunk({"text": "So "}), chunk({"text": "far"})),
    streamed(chunk({"text": "So "}), {"error": {"code": 500, "message": "Oh.", "status": "INTERNAL"}}),
]  # fmt: skip


@pytest.mark.parametrize("response", PASSING)
async def test_a_fault_that_passes_is_waited_out(google: StrictGemini, response: Any):
    google.play(response)
    google.say("So far so good.")
    said = await heard(gemini(google))
    assert (said.text, len(said.retries)) == ("So far so good.", 1)


async def test_a_quota_says_when_it_is_there_again(google: StrictGemini):
    google.play(quota("34.07s"))
    llm = gemini(google, retries=Retries(patience=1))
    with pytest.raises(ModelError) as caught:
        await heard(llm)
    assert (caught.value.kind, caught.value.retry_after) == ("rate_limit", 34.07)


async def test_a_stream_that_hangs_behind_its_reason_is_whole(google: StrictGemini):
    chunks = [piece(event(each)) for each in (chunk({"text": "Yes."}, finish="STOP"),)]
    google.play([begin(), *chunks, HANG])
    assert (await heard(gemini(google))).text == "Yes."


async def test_what_is_unknown_is_passed_over(google: StrictGemini):
    google.play(
        streamed(
            {"responseId": "r", "news": 1},
            chunk({"executableCode": {"code": "1"}}, {"text": "Yes.", "partMetadata": {}}, 7),
            {"candidates": []},
            chunk({"text": ""}, finish="STOP"),
        )
    )
    assert (await heard(gemini(google))).text == "Yes."


async def test_a_body_that_is_no_stream_is_read_as_well(google: StrictGemini):
    google.play(respond(200, [chunk({"text": "So "}), chunk({"text": "far."}, finish="STOP")]))
    assert (await heard(gemini(google))).text == "So far."


REFUSED: list[tuple[str, str, Callable[[Any], bool]]] = [
    ('Unknown name "id" at \'contents[1].parts[0].function_call\': Cannot find field.', "gemini-3-pro", lambda body: "'id'" not in str(body)),
    ("Thinking level is not supported for this model.", "gemini-3-pro", lambda body: "thinkingLevel" not in str(body)),
    ("Thinking is not enabled for models/x", "gemini-3-pro", lambda body: "thinkingConfig" not in str(body)),
    ("Developer instruction is not enabled for models/gemma-3", "gemini-3-pro", lambda body: "systemInstruction" not in body and body["contents"][0]["parts"] == [{"text": "Be brief."}]),
    ("Multimodal function response is not supported", "gemini-3-pro", lambda body: "'parts': [{'inlineData'" not in str(body["contents"][2])),
]  # fmt: skip


@pytest.mark.parametrize("words, model, is_left_out", REFUSED)
async def test_what_an_endpoint_refuses_is_left_out_from_then_on(
    google: StrictGemini, words: str, model: str, is_left_out: Callable[[Any], bool]
):
    google.play(refusal(400, "INVALID_ARGUMENT", words))
    google.say("Yes.")
    google.say("Still.")
    llm = gemini(google, model)
    asked: Any = [{"role": "system", "content": "Be brief."}, *IMAGES]
    for _ in range(2):
        await heard(llm, *asked, params={"reasoning_effort": "low"})
    assert [is_left_out(each.body) for each in google.requests] == [False, True, True]


async def test_at_vertex_it_is_a_bearer_s_token(google: StrictGemini):
    place = "/projects/p/locations/global/publishers/google"
    google.say("Yes.")
    await heard(Gemini("gemini-3-pro", google.url + place, "ya29.token", bearer=True))
    assert (
        google.requests[0].path == f"/v1{place}/models/gemini-3-pro:streamGenerateContent?alt=sse"
    )
    assert google.requests[0].headers["authorization"] == "Bearer ya29.token"
    assert "x-goog-api-key" not in google.requests[0].headers


def wrong(*contents: Any, model: str = "gemini-3-pro", **body: Any) -> Asked:
    return Asked({"contents": list(contents), **body}, model, {"real": {"text": ""}})


def says(*parts: Any) -> Any:
    return {"role": "user", "parts": list(parts)}


def replies(*parts: Any) -> Any:
    return {"role": "model", "parts": list(parts)}


HELLO = says({"text": "hello"})
CALL = {"functionCall": {"id": "c1", "name": "ls", "args": {}}, "thoughtSignature": UNSIGNED}
RESULT = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a"}}}
WRONG = [
    ("G01", wrong(HELLO, replies({"functionCall": CALL["functionCall"]}), says(RESULT))),
    ("G02", wrong(HELLO, replies({"text": "moved", "thoughtSignature": "real"}))),
    ("G02", wrong(HELLO, replies({"text": "", "thoughtSignature": "false"}))),
    ("G03", wrong(HELLO, replies(CALL))),
    ("G03", wrong(HELLO, replies(CALL), says(RESULT, RESULT))),
    ("G03", wrong(HELLO, replies(CALL), says({"functionResponse": {**RESULT["functionResponse"], "id": "c2"}}))),
    ("G03", wrong(HELLO, replies(CALL), says(RESULT, {"text": "and"}))),
    ("G04", wrong(HELLO, tools=[{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"const": 1}}}}]}])),
    ("G04", wrong(HELLO, messages=[])),
    ("G05", wrong(HELLO, tools=[{"functionDeclarations": [{"name": "9 to 5"}]}])),
    ("G06", wrong(HELLO, tools=[{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {}}}]}])),
    ("place", wrong(replies({"text": "a"}), replies(CALL), says(RESULT))),
    ("thinking", wrong(HELLO, generationConfig={"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}})),
    ("image", wrong(HELLO, replies(CALL), says({"functionResponse": {**RESULT["functionResponse"], "parts": [{"inlineData": {"mimeType": "image/gif"}}]}}))),
]  # fmt: skip


@pytest.mark.parametrize("rule, asked", WRONG)
def test_the_strict_endpoint_notices_what_is_wrong(rule: str, asked: Asked):
    assert [each.id for each in RULES if list(each.breaches(asked))] == [rule]


def test_the_strict_endpoint_has_a_wrong_request_for_each_of_its_rules():
    assert {"empty", *(rule for rule, _ in WRONG)} == {rule.id for rule in RULES}


@pytest.mark.parametrize("asked", [wrong(), wrong({"parts": [{"text": "a"}], "role": "tool"}), wrong(says())])  # fmt: skip
def test_the_strict_endpoint_looks_first_whether_it_is_a_conversation(asked: Asked):
    fault = RULES.broken(asked)
    assert fault is not None
    assert fault[0].id == "empty"


async def test_the_strict_endpoint_refuses_as_google_does(google: StrictGemini):
    llm = gemini(google, params={"messages": []})
    with pytest.raises(ModelError, match="Unknown name"):
        await heard(llm)
    assert google.refused == ["G04"]
    assert google.requests[0].body["messages"] == []
