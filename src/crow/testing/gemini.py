"""A strict endpoint of Gemini's generateContent: it judges a request by Google's own rules."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from crow.core.support.frozen import frozen
from crow.llm.http.text import is_array, is_object
from crow.testing.endpoint import END, Endpoint, Received, Response, begin, event, piece, respond

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
PLACE = (
    "Please ensure that function call turn comes immediately after a user turn or after a function "
    "response turn."
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


Fault: TypeAlias = "str | None"


@frozen
class GeminiRule:
    """A rule on a request: ``fault`` gives the endpoint's words where it is broken."""

    id: str
    fault: Callable[[Asked], Fault]


def _unsigned(asked: Asked) -> Fault:
    """A step of the running turn whose first call has no signature."""
    said = [place for place, each in enumerate(asked.turns) if _is_said(each)]
    for place, content in list(enumerate(asked.turns))[said[-1] if said else 0 :]:
        first = next((part for part in content["parts"] if CALL in part), None)
        if asked.is_new and first is not None and not first.get(SIGNATURE):
            name = first[CALL].get("name")
            where = f"in the {place + 1}. content block"
            return f"function call `{name}` {where} is missing a `thought_signature`."
    return None


def _is_said(content: Any) -> bool:
    return content["role"] == "user" and any(RESULT not in part for part in content["parts"])


def _missigned(asked: Asked) -> Fault:
    """A signature that was made elsewhere, or that has moved to another part."""
    for part in asked.parts:
        signature = part.get(SIGNATURE)
        is_known = signature in (None, UNSIGNED) or asked.signed.get(signature) == unsigned(part)
        if not is_known:
            return "Thought signature is not valid."
    return None


def unsigned(part: dict[str, Any]) -> dict[str, Any]:
    """What a signature holds for: the part without it, whatever its call's id is."""
    rest = {key: value for key, value in part.items() if key != SIGNATURE}
    if CALL in rest:
        rest[CALL] = {key: value for key, value in rest[CALL].items() if key != "id"}
    return rest


def _unmatched(asked: Asked) -> Fault:
    """Results that are not those of the calls right before, in number, order, name and id."""
    open_calls: list[Any] = []
    end: Any = {"parts": []}
    for content in [*asked.turns, end]:
        results: list[Any] = [part[RESULT] for part in content["parts"] if RESULT in part]
        if len(results) != len(open_calls) or (results and len(results) != len(content["parts"])):
            return COUNT
        for call, result in zip(open_calls, results, strict=True):
            if result.get("name") != call.get("name"):
                return COUNT
            if result.get("id") != call.get("id"):
                return "functionResponse.id does not match functionCall.id"
        open_calls = [part[CALL] for part in content["parts"] if CALL in part]
    return None


def _misplaced(asked: Asked) -> Fault:
    """A conversation that begins with a call."""
    calls = any(CALL in part for part in asked.turns[0]["parts"])
    return PLACE if calls else None


def _unknown(asked: Asked) -> Fault:
    found = [
        *(asked.body.keys() - BODY),
        *(key for part in asked.parts for key in part.keys() - PART),
    ]
    for function in asked.declared:
        found += [key for key in _keywords(function.get("parameters")) if key in NOT_IN_PARAMETERS]
    where = "Invalid JSON payload received. Unknown name"
    return f"{where} \"{found[0]}\" at 'tools[0]': Cannot find field." if found else None


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


def _misnamed(asked: Asked) -> Fault:
    calls = [part[CALL] for part in asked.parts if CALL in part]
    names = [str(each.get("name")) for each in (*asked.declared, *calls)]
    fits = all(NAME.fullmatch(name) for name in names)
    return None if fits else "Invalid function name. Must start with a letter or an underscore."


def _hollow(asked: Asked) -> Fault:
    for function in asked.declared:
        if "parameters" in function and "parametersJsonSchema" in function:
            return "parameters and parameters_json_schema are mutually exclusive"
        if _is_hollow(function.get("parameters")):
            return "parameters.properties: should be non-empty for OBJECT type"
    return None


def _is_hollow(schema: Any) -> bool:
    if not is_object(schema):
        return False
    if str(schema.get("type")).upper() == "OBJECT" and not schema.get("properties"):
        return True
    nested = (*schema.get("properties", {}).values(), schema.get("items"))
    return any(_is_hollow(each) for each in nested)


def _thinking(asked: Asked) -> Fault:
    config = asked.body.get("generationConfig", {}).get("thinkingConfig", {})
    if {"thinkingLevel", "thinkingBudget"} <= config.keys():
        return "You can only set only one of thinking budget and thinking level."
    if "thinkingLevel" in config and not asked.is_new:
        return "Thinking level is not supported for this model."
    return None


def _empty(asked: Asked) -> Fault:
    if not asked.contents:
        return "* GenerateContentRequest.contents: contents is not specified"
    if any(content.get("role") not in ("user", "model") for content in asked.contents):
        return "Please use a valid role: user, model."
    if any(not content.get("parts") for content in asked.contents) or any(
        not part.keys() - {"thought", SIGNATURE} for part in asked.parts
    ):
        return "contents.parts: must have one initialized field."
    return None


def _image_in_result(asked: Asked) -> Fault:
    kinds = [
        beside["inlineData"]["mimeType"]
        for part in asked.parts
        for beside in part.get(RESULT, {}).get("parts") or ()
    ]
    if kinds and not asked.is_new:
        return "Multimodal function response is not supported for this model."
    odd = next((kind for kind in kinds if kind not in IMAGES), None)
    return odd and f"Unsupported MIME type in function response: {odd}"


RULES = (
    GeminiRule("G01", _unsigned),
    GeminiRule("G02", _missigned),
    GeminiRule("G03", _unmatched),
    GeminiRule("G04", _unknown),
    GeminiRule("G05", _misnamed),
    GeminiRule("G06", _hollow),
    GeminiRule("place", _misplaced),
    GeminiRule("thinking", _thinking),
    GeminiRule("image", _image_in_result),
)
"""What a request is judged by, once it is a conversation at all."""
EMPTY = GeminiRule("empty", _empty)


class StrictGemini(Endpoint):
    """An `Endpoint` that speaks generateContent and refuses what Google refuses.

    ``say(...)`` plays an answer; ``refused`` has the ids of the `RULES` that requests broke.
    ``ids`` False is for calls without ids, as Gemini 2.5 makes them.
    """

    def __init__(self, *, ids: bool = True) -> None:
        super().__init__()
        self.refused: list[str] = []
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

    def _steps(self, received: Received) -> Response:
        """The answer of the script, unless a rule is broken."""
        path = received.path.partition(":streamGenerateContent")
        if not path[1] or path[2] != "?alt=sse":
            return super()._steps(received)
        asked = Asked(received.body, path[0].rpartition("/")[2], self._signed)
        if (fault := EMPTY.fault(asked)) is not None:
            found = [(EMPTY.id, fault)]
        else:
            found = [(rule.id, words) for rule in RULES if (words := rule.fault(asked))]
        if not found:
            return super()._steps(received)
        self.requests.append(received)
        self.asked.set()
        self.refused += [name for name, _ in found]
        return refusal(400, "INVALID_ARGUMENT", found[0][1])


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
