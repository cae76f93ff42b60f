"""A strict endpoint of Gemini's generateContent: it judges a request by Google's own rules."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from crow.core.support.frozen import frozen
from crow.llm.http.text import is_array, is_object
from crow.testing.endpoint import END, Received, Response, begin, event, piece, respond
from crow.testing.strict import Breaches, Rules, StrictEndpoint

UNSIGNED = "skip_thought_signature_validator"
CALL, RESULT, SIGNATURE = "functionCall", "functionResponse", "thoughtSignature"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
IMAGES = ("image/png", "image/jpeg", "image/webp")
BODY = frozenset(
    {"contents", "tools", "toolConfig", "systemInstruction", "generationConfig", "safetySettings"}
    | {"cachedContent", "labels"}
)
PART = frozenset({"text", "thought", SIGNATURE, CALL, RESULT, "inlineData", "fileData"})
NOT_IN_PARAMETERS = frozenset({"const", "$schema", "$ref", "$defs", "additionalProperties"})
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the function call turn."
)
TOKENS = {"promptTokenCount": 29, "candidatesTokenCount": 10, "thoughtsTokenCount": 5}


@frozen
class Asked:
    """A request: its JSON, the model's name, and the parts that were signed here before."""

    body: dict[str, Any]
    model: str
    signed: dict[str, Any]

    @property
    def is_new(self) -> bool:
        """True for Gemini 3 and later."""
        number = re.search(r"gemini-(\d+)", self.model)
        return number is not None and int(number[1]) >= 3

    @property
    def contents(self) -> list[Any]:
        """The conversation as it was sent."""
        return self.body.get("contents") or []

    @property
    def turns(self) -> list[Any]:
        """The same; what the model said in one step is in one."""
        turns: list[Any] = []
        for content in self.contents:
            if turns and content["role"] == turns[-1]["role"] == "model":
                turns[-1] = {**content, "parts": turns[-1]["parts"] + content["parts"]}
            else:
                turns.append(content)
        return turns

    @property
    def parts(self) -> list[Any]:
        """All parts of the conversation."""
        return [part for content in self.contents for part in content.get("parts") or ()]

    @property
    def declared(self) -> list[Any]:
        """All functions."""
        tools = self.body.get("tools") or ()
        return [each for tool in tools for each in tool.get("functionDeclarations") or ()]


RULES = Rules()
"""What a request is judged by, in this order."""


@RULES.add("empty", "{}")
def _empty(asked: Asked) -> Breaches:
    if not asked.contents:
        yield ("* GenerateContentRequest.contents: contents is not specified",)
    if any(content.get("role") not in ("user", "model") for content in asked.contents):
        yield ("Please use a valid role: user, model.",)
    if any(not content.get("parts") for content in asked.contents) or any(
        not part.keys() - {"thought", SIGNATURE} for part in asked.parts
    ):
        yield ("contents.parts: must have one initialized field.",)


@RULES.add("G01", "function call `{}` in the {}. content block is missing a `thought_signature`.")
def _unsigned(asked: Asked) -> Breaches:
    """A step of the running turn whose first call has no signature."""
    said = [place for place, each in enumerate(asked.turns) if _is_said(each)]
    for place, content in list(enumerate(asked.turns))[said[-1] if said else 0 :]:
        first = next((part for part in content["parts"] if CALL in part), None)
        if asked.is_new and first is not None and not first.get(SIGNATURE):
            yield first[CALL].get("name"), place + 1


def _is_said(content: Any) -> bool:
    return content["role"] == "user" and any(RESULT not in part for part in content["parts"])


@RULES.add("G02", "Thought signature is not valid.")
def _missigned(asked: Asked) -> Breaches:
    """A signature that was made elsewhere, or that has moved to another part."""
    for part in asked.parts:
        signature = part.get(SIGNATURE)
        if signature not in (None, UNSIGNED) and asked.signed.get(signature) != unsigned(part):
            yield ()


def unsigned(part: dict[str, Any]) -> dict[str, Any]:
    """What a signature holds for: the part without it, whatever its call's id is."""
    rest = {key: value for key, value in part.items() if key != SIGNATURE}
    if CALL in rest:
        rest[CALL] = {key: value for key, value in rest[CALL].items() if key != "id"}
    return rest


@RULES.add("G03", "{}")
def _unmatched(asked: Asked) -> Breaches:
    """Results that are not those of the calls right before, in number, order, name and id."""
    open_calls: list[Any] = []
    end: Any = {"parts": []}
    for content in [*asked.turns, end]:
        results: list[Any] = [part[RESULT] for part in content["parts"] if RESULT in part]
        if len(results) != len(open_calls) or (results and len(results) != len(content["parts"])):
            yield (COUNT,)
            return
        for call, result in zip(open_calls, results, strict=True):
            if result.get("name") != call.get("name"):
                yield (COUNT,)
            if result.get("id") != call.get("id"):
                yield ("functionResponse.id does not match functionCall.id",)
        open_calls = [part[CALL] for part in content["parts"] if CALL in part]


@RULES.add(
    "G04",
    "Invalid JSON payload received. Unknown name \"{}\" at 'tools[0]': Cannot find field.",
)
def _unknown(asked: Asked) -> Breaches:
    yield from ((key,) for key in asked.body.keys() - BODY)
    yield from ((key,) for part in asked.parts for key in part.keys() - PART)
    for function in asked.declared:
        words = _keywords(function.get("parameters"))
        yield from ((key,) for key in words if key in NOT_IN_PARAMETERS)


def _keywords(schema: Any) -> Iterator[str]:
    """All keywords of a schema, those of its properties included."""
    if is_array(schema):
        for each in schema:
            yield from _keywords(each)
    if is_object(schema):
        for key, value in schema.items():
            yield key
            nested: list[Any] = [*value.values()] if key == "properties" else [value]
            yield from (word for each in nested for word in _keywords(each))


@RULES.add("G05", "Invalid function name. Must start with a letter or an underscore.")
def _misnamed(asked: Asked) -> Breaches:
    calls = [part[CALL] for part in asked.parts if CALL in part]
    named = (*asked.declared, *calls)
    return (() for each in named if not NAME.fullmatch(str(each.get("name"))))


@RULES.add("G06", "{}")
def _hollow(asked: Asked) -> Breaches:
    for function in asked.declared:
        if "parameters" in function and "parametersJsonSchema" in function:
            yield ("parameters and parameters_json_schema are mutually exclusive",)
        if _is_hollow(function.get("parameters")):
            yield ("parameters.properties: should be non-empty for OBJECT type",)


def _is_hollow(schema: Any) -> bool:
    if not is_object(schema):
        return False
    if str(schema.get("type")).upper() == "OBJECT" and not schema.get("properties"):
        return True
    nested = (*schema.get("properties", {}).values(), schema.get("items"))
    return any(_is_hollow(each) for each in nested)


@RULES.add(
    "place",
    "Please ensure that function call turn comes immediately after a user turn or after a function "
    "response turn.",
)
def _misplaced(asked: Asked) -> Breaches:
    """A conversation that begins with a call."""
    return (() for part in asked.turns[0]["parts"] if CALL in part)


@RULES.add("thinking", "{}")
def _thinking(asked: Asked) -> Breaches:
    config = asked.body.get("generationConfig", {}).get("thinkingConfig", {})
    if {"thinkingLevel", "thinkingBudget"} <= config.keys():
        yield ("You can only set only one of thinking budget and thinking level.",)
    if "thinkingLevel" in config and not asked.is_new:
        yield ("Thinking level is not supported for this model.",)


@RULES.add("image", "{}")
def _image_in_result(asked: Asked) -> Breaches:
    for part in asked.parts:
        for beside in part.get(RESULT, {}).get("parts") or ():
            kind = beside["inlineData"]["mimeType"]
            if not asked.is_new:
                yield ("Multimodal function response is not supported for this model.",)
            if kind not in IMAGES:
                yield (f"Unsupported MIME type in function response: {kind}",)


class StrictGemini(StrictEndpoint):
    """An `Endpoint` that speaks generateContent and refuses what Google refuses.

    ``say(...)`` plays an answer; ``refused`` has the ids of the `RULES` that requests broke.
    ``ids`` False is for calls without ids, as Gemini 2.5 makes them.
    """

    _rules = RULES

    def __init__(self, *, ids: bool = True) -> None:
        super().__init__()
        self._ids = ids
        self._number = 0
        self._signed: dict[str, Any] = {}

    def say(self, *said: Any, thought: str = "", finish: str = "STOP", signed: bool = True) -> None:
        """Play an answer: texts, and parts such as `wanted` makes them.

        It is signed as Gemini 3 signs: the first call of it, else an empty text at its end.
        """
        parts: list[Any] = [{"text": thought, "thought": True}] if thought else []
        for each in said:
            parts += (
                [{"text": w} for w in _words(each)] if isinstance(each, str) else [self._made(each)]
            )
        if signed:
            self._sign(parts)
        last = parts.pop() if parts and parts[-1].get("text") == "" else {"text": ""}
        self.play(streamed(*(chunk(part) for part in parts), chunk(last, finish=finish)))

    def _made(self, part: dict[str, Any]) -> dict[str, Any]:
        if CALL not in part or not self._ids:
            return part
        self._number += 1
        return {CALL: {"id": f"fc-{self._number}", **part[CALL]}}

    def _sign(self, parts: list[Any]) -> None:
        first = next((part for part in parts if CALL in part), None)
        if first is None:
            parts.append(first := {"text": ""})
        self._number += 1
        signature = base64.b64encode(f"signature {self._number}".encode()).decode()
        self._signed[signature] = unsigned(first)
        first[SIGNATURE] = signature

    def _answer(self, received: Received) -> Response:
        is_judged = received.path.endswith(":streamGenerateContent?alt=sse")
        return super()._answer(received) if is_judged else self._reply(None, received)

    def _read(self, received: Received) -> Asked:
        model = received.path.partition(":")[0].rpartition("/")[2]
        return Asked(received.body, model, self._signed)

    def _refusal(self, text: str) -> Response:
        return refusal(400, "INVALID_ARGUMENT", text)


def wanted(name: str, **args: Any) -> dict[str, Any]:
    """A call of a tool, as a part."""
    return {CALL: {"name": name, "args": args}}


def chunk(*parts: Any, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a stream; ``fields`` stand beside its candidates."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    total = sum(TOKENS.values())
    return {
        "candidates": [candidate],
        "usageMetadata": {**TOKENS, "totalTokenCount": total},
        "modelVersion": "gemini-scripted",
        "responseId": "r-1",
        **fields,
    }


def streamed(*events: Any) -> Response:
    """A whole response of these events; nothing marks its end."""
    return [begin(), *(piece(event(each)) for each in events), END]


def refusal(status: int, name: str, message: str, *details: Any) -> Response:
    """An error as Google sends it where a stream was asked for: in an array."""
    error = {"code": status, "message": message, "status": name, "details": list(details)}
    return respond(status, [{"error": error}])


def quota(
    delay: str = "34.07s", quota: str = "GenerateRequestsPerMinutePerProjectPerModel"
) -> Response:
    """The refusal of a quota that is used up."""
    words = "You exceeded your current quota, please check your plan and billing details."
    google = "type.googleapis.com/google.rpc"
    return refusal(
        429,
        "RESOURCE_EXHAUSTED",
        f"{words}\nPlease retry in {delay}.",
        {"@type": f"{google}.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": f"{google}.RetryInfo", "retryDelay": delay},
    )


def overloaded() -> Response:
    """The refusal of a model that is too busy."""
    return refusal(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")


def blocked(reason: str = "PROHIBITED_CONTENT") -> Response:
    """The answer to a prompt that was blocked: no candidate."""
    usage = {"promptTokenCount": 29, "totalTokenCount": 29}
    return streamed({"promptFeedback": {"blockReason": reason}, "usageMetadata": usage})


def _words(text: str) -> list[str]:
    return re.findall(r"\S*\s*", text)[:-1]
