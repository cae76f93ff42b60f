"""Forms and pages in the protocol's words: what of a schema there are words for, and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

from crow.acp.capabilities import ClientCapabilities
from crow.acp.jsonrpc import Message, as_object
from crow.acp.limits import LIMIT, fits
from crow.core.ports.client import LEFT, Filled, Form

if TYPE_CHECKING:
    import crow.acp.outgoing as v1

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
}
"""The types of fields, and what a default of each is."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}
"""What else of a field's schema is told as it is."""
FORMATS = frozenset({"email", "uri", "date", "date-time"})
PAGES = ("https://", "http://")


class Texts(TypedDict, total=False):
    """The text of a form, a field or a choice that a person reads."""

    title: str
    description: str


class Unspeakable(Exception):  # noqa: N818 - no error: it is asked in another way
    """There are no words for it."""


def elicitation(
    form: Form, able: ClientCapabilities, scope: v1.ElicitationSessionScope
) -> v1.CreateElicitationRequest | None:
    """The parameters of ``elicitation/create``; ``scope`` is what it belongs to.

    None where the client shows nothing like it, or the protocol has no words for a field.
    """
    if form.url:
        is_shown = able.pages and bool(form.page_id) and form.url.lower().startswith(PAGES)
        page: v1.CreateElicitationRequest = {
            **scope,
            "mode": "url",
            "message": form.text,
            "elicitationId": form.page_id,
            "url": form.url,
        }
        return page if is_shown else None
    if not able.forms:
        return None
    try:
        schema = _schema(form.schema)
    except Unspeakable:
        return None
    asked: v1.CreateElicitationRequest = {
        **scope,
        "mode": "form",
        "message": form.text,
        "requestedSchema": schema,
    }
    return asked if fits(schema, LIMIT // 2) else None


def filled(answer: Message) -> Filled:
    """What came of it; an action that nobody knows counts as ``cancel``."""
    match answer.get("action"):
        case "accept":
            return Filled("accept", as_object(answer.get("content")))
        case "decline":
            return Filled("decline")
        case _:
            return LEFT


def _schema(schema: Mapping[str, Any]) -> v1.ElicitationSchema:
    fields = as_object(schema.get("properties"))
    told: v1.ElicitationSchema = {
        "type": "object",
        **_texts(schema),
        "properties": {name: _field(as_object(field)) for name, field in fields.items()},
    }
    if wanted := [name for name in _listed(schema.get("required")) if name in fields]:
        told["required"] = wanted
    return told


def _field(schema: Message) -> Any:
    kind: Any = schema.get("type")
    if kind not in TYPES:
        raise Unspeakable
    words = {word: schema[word] for word in WORDS[kind] if schema.get(word) is not None}
    field: Message = {"type": kind, **_texts(schema), **words}
    if kind == "array":
        field["items"] = _items(as_object(schema.get("items")))
    elif kind == "string":
        field |= _choices(schema, "oneOf")
        if schema.get("format") in FORMATS:
            field["format"] = schema["format"]
    elif "enum" in schema or "oneOf" in schema:  # numbers to choose from
        raise Unspeakable
    if _is_of(kind, schema.get("default")):
        field["default"] = schema["default"]
    return field


def _is_of(kind: str, value: object) -> bool:
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _items(schema: Message) -> Message:
    titled = "anyOf" if "anyOf" in schema else "oneOf"
    choices = _choices(schema, titled)
    if not choices:
        raise Unspeakable
    if titled in choices:
        return {"anyOf": choices[titled]}
    return {"type": "string", **choices}


def _choices(schema: Message, titled: str) -> Message:
    """What can be chosen, with titles or without; nothing where anything can be said."""
    if titled in schema:
        return {titled: list(map(_choice, _listed(schema[titled])))}
    if "enum" not in schema:
        return {}
    values = _listed(schema["enum"])
    if not values or not all(isinstance(value, str) for value in values):
        raise Unspeakable
    return {"enum": values}


def _choice(choice: object) -> Message:
    told = as_object(choice)
    if not isinstance(told.get("const"), str):
        raise Unspeakable
    return {"const": told["const"], "title": told["const"], **_texts(told)}


def _texts(schema: Mapping[str, Any]) -> Texts:
    texts = {word: schema.get(word) for word in ("title", "description")}
    told: Any = {word: text for word, text in texts.items() if isinstance(text, str) and text}
    return told


def _listed(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list | tuple) else []
