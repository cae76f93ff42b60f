"""Faults of an endpoint, each as a `ModelError` of the right kind that never shows a key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crow.core.errors import ModelError
from crow.llm.http.retry import StartingError, retry_after
from crow.llm.http.stream import snippet
from crow.llm.http.text import is_array, is_object

if TYPE_CHECKING:
    from crow.llm.http.overflow import Overflow

KIND_OF_STATUS = {
    400: "invalid_request",
    401: "authentication",
    402: "billing",
    403: "authentication",
    404: "model_not_found",
    408: "timeout",
    409: "server",
    413: "context_length",
    422: "invalid_request",
    425: "server",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
KIND_OF_WORD = (
    (
        (
            r"insufficient_quota|exceeded your current quota|billing|credit balance|payment"
            r"|insufficient balance|(?:usage|spend\w*) limits?\b|\"code\": ?\"?1308\b"
        ),
        "billing",
    ),
    (
        r"model_not_found|unknown model|model\b.{0,60}(does ?n[o']t exist|not found|not exist)",
        "model_not_found",
    ),
    (r"rate.?limit|too many requests", "rate_limit"),
    (r"overloaded|at capacity|no healthy", "overloaded"),
    (
        (
            r"invalid.{0,3}api.{0,3}key|api.?key.{0,3}(?:invalid|not valid|expired)"
            r"|unauthori[sz]ed|authentication|permission_denied"
        ),
        "authentication",
    ),
    (r"invalid_request|invalid.argument|unsupported", "invalid_request"),
    (r"timed? ?out", "timeout"),
)
REFINED = frozenset({"invalid_request", "rate_limit", "server"})
WORDS_THAT_COUNT = {"rate_limit": ("billing",), "server": ("context_length",)}
KEY = r"\b(sk|pk|rk|gsk|xai|key|AIza)[-_A-Za-z0-9*.]{12,}"
LOADING = r"loading model|model is (?:still )?loading"
AGAIN = {"true": True, "false": False}
ADVICE = {
    "authentication": "check the API key and what it may use",
    "billing": "the account has no credit or quota left",
    "model_not_found": "check the model's name and the base URL",
    "context_length": "the conversation is too long for this model",
}


class RefusedError(ModelError):
    """An endpoint's answer in place of a reply; ``body`` is all that it said.

    ``overflow`` has its numbers where the request was too long. ``again`` is whether the endpoint
    itself wants it sent once more, None where it did not say.
    """

    def __init__(
        self, message: str, *, body: str, again: bool | None = None, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.body = body
        self.again = again
        self.overflow = _overflow_in(body) if self.kind == "context_length" else None


class Redactor:
    """Takes secrets out of texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets: list[str] = []
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Take these out, too."""
        known = {*self._secrets, *(text for text in secrets if len(text) > 3)}
        self._secrets = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without any of the secrets, nor what looks like a key."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return re.sub(KEY, "***", text)


def error_of_response(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error of a response that is no success."""
    from crow.llm.http.google_errors import is_passing, retry_delay

    text = body.decode("utf-8", "replace")
    parsed = _parsed(text)
    said = _message(parsed) or _unless_html(text, headers)
    what = f"HTTP {status}" + (f": {snippet(said)}" if said else "")
    if status == 503 and re.search(LOADING, said, re.IGNORECASE):
        return StartingError(what, kind="overloaded", status=status)
    wait = retry_after(headers)
    passing = (status == 429 and is_passing(parsed)) or (status == 402 and wait is not None)
    return RefusedError(
        what,
        body=text,
        again=AGAIN.get(headers.get("x-should-retry", "")),
        kind="rate_limit" if passing else _kind(status, text),
        status=status,
        retry_after=retry_delay(parsed) if wait is None else wait,
    )


def error_of_event(event: Mapping[str, Any]) -> ModelError | None:
    """The error that an event of a stream reports, if it is one."""
    error = event.get("error")
    if not error and ("choices" in event or not _looks_like_error(event)):
        return None
    from crow.llm.http.google_errors import is_passing, retry_delay

    error = error or event
    status = _status(error) or _status(event)
    text = json.dumps(error, ensure_ascii=False)
    kind = _kind(status, text) if status else _kind_of_words(text) or "server"
    said = _message(event) or text
    wait = retry_delay(event)
    kind = "rate_limit" if status == 429 and is_passing(event) else kind
    return RefusedError(snippet(said), body=text, kind=kind, status=status, retry_after=wait)


def _looks_like_error(event: Mapping[str, Any]) -> bool:
    is_named = event.get("type") == "error" or event.get("object") == "error"
    return is_named or isinstance(event.get("detail"), str | list)


def named_error(error: ModelError, who: str, redact: Redactor, key_origin: str = "") -> ModelError:
    """The error as a person reads it: which model at which endpoint, what, and what to do."""
    advice = ADVICE.get(error.kind)
    if numbers := str(getattr(error, "overflow", None) or ""):
        advice = f"{advice}: {numbers}"
    if error.kind == "authentication" and key_origin:
        advice = f"{advice}; it came from {key_origin}"
    text = redact(f"{who}: {error}") + (f" ({advice})" if advice else "")
    return ModelError(text, kind=error.kind, status=error.status, retry_after=error.retry_after)


def _kind(status: int, text: str) -> str:
    kind = KIND_OF_STATUS.get(status, "server" if status >= 500 else "invalid_request")
    if kind not in REFINED:
        return kind
    word = _kind_of_words(text)
    trusted = WORDS_THAT_COUNT.get(kind)
    return kind if word is None or (trusted and word not in trusted) else word


def _kind_of_words(text: str) -> str | None:
    if _overflow_in(text):
        return "context_length"
    found = (kind for words, kind in KIND_OF_WORD if re.search(words, text, re.IGNORECASE))
    return next(found, None)


def _status(error: Any) -> int | None:
    if not is_object(error):
        return None
    for name in ("status", "code", "status_code", "http_status"):
        value = error.get(name)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message(body: Any) -> str:
    """The sentence inside an error body, whatever its shape."""
    if is_array(body) and body:
        return _message(body[0])
    if isinstance(body, str):
        return body
    if not is_object(body):
        return ""
    for name in ("error", "message", "detail", "error_description"):
        value = body.get(name)
        if value and (said := _message(value)):
            return _with_cause(said, body.get("metadata"))
    return ""


def _with_cause(said: str, metadata: Any) -> str:
    """A router's sentence, with that of the provider behind it."""
    raw = metadata.get("raw") if is_object(metadata) else None
    cause = _message(_parsed(raw) or raw) if isinstance(raw, str) else _message(raw)
    if not cause or cause in said:
        return said
    who = metadata.get("provider_name") if is_object(metadata) else None
    return f"{said}: {who}: {cause}" if isinstance(who, str) else f"{said}: {cause}"


def _unless_html(text: str, headers: Mapping[str, str]) -> str:
    if "html" not in headers.get("content-type", ""):
        return text
    title = re.search(r"<title>([^<]*)", text, re.IGNORECASE)
    return title.group(1) if title else "an HTML page"


def _overflow_in(text: str) -> Overflow | None:
    from crow.llm.http.overflow import overflow_in

    return overflow_in(text)
