"""The fields of a form: a schema as clients know it, and each field asked by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from crow import Context
from crow.extensions.mcp.failure import plain
from crow.extensions.mcp.schema import compiled, mismatch

LEAVE_OUT, ENOUGH = "Leave it out", "That is all"
LONGEST = 1000
TEXTS = ("title", "description")
BOUNDS = (
    *(("minimum", "at least {}"), ("maximum", "at most {}")),
    *(("minItems", "at least {} of them"), ("maxItems", "at most {} of them")),
    *(("minLength", "at least {} characters"), ("maxLength", "at most {} characters")),
    *(("format", "{}"), ("default", "default: {}")),
)
"""What of a field's schema is told where it is asked by itself."""
Judge = Callable[[dict[str, Any]], "str | None"]


def judge_of(schema: dict[str, Any]) -> Judge:
    """Says what is wrong with a form's content. Raises ``ValueError`` for a schema that is none."""
    validator = compiled(schema, formats=True)
    return lambda content: mismatch(validator, content)


def tidied(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A form's schema in the words of the newest protocol, its texts harmless."""
    fields = _object(schema.get("properties"))
    shown = {name: _field(_object(field)) for name, field in fields.items()}
    return {**_clean(schema), "type": "object", "properties": shown}


def _field(schema: dict[str, Any]) -> dict[str, Any]:
    """One field. What may be null may be left out, and names of choices are titles."""
    for each in map(_object, _list(schema.get("anyOf"))):
        if each.get("type") != "null":
            schema = {**each, **{k: v for k, v in schema.items() if k != "anyOf"}}
            break
    kinds = [kind for kind in _list(schema.get("type")) if kind != "null"]
    field = _clean(schema) | ({"type": kinds[0]} if kinds else {})
    values, names = _list(field.get("enum")), _list(field.pop("enumNames", None))
    if values and len(names) == len(values):
        del field["enum"]
        field["oneOf"] = [{"const": v, "title": n} for v, n in zip(values, names, strict=True)]
    for key in ("oneOf", "items"):
        if key in field:
            field[key] = _titled(field[key])
    return field


def _titled(choices: Any) -> Any:
    match choices:
        case [*several]:
            return [_clean(_object(each)) for each in cast("list[object]", several)]
        case {"anyOf": [*several]}:
            return {"anyOf": _titled(several)}
        case _:
            return choices


def _clean(schema: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: value for key, value in schema.items() if value is not None}
    return told | {key: plain(str(told[key]))[:LONGEST] for key in TEXTS if key in told}


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def kept(schema: dict[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """What a user has filled in: of its fields, without those that they have left empty."""
    filled: dict[str, Any] = {}
    required = _list(schema.get("required"))
    for name, field in schema["properties"].items():
        value = content.get(name)
        if value is None and name in required:
            value = field.get("default")
        if value is None or (value == "" and name not in required and wrong_with(field, "")):
            continue
        filled[name] = value
    return filled


def wrong_with(field: dict[str, Any], value: Any) -> str | None:
    """What is wrong with a field's value."""
    whole = {"type": "object", "properties": {"it": field}}
    wrong = judge_of(whole)({"it": value})
    return wrong and wrong.removeprefix("it: ")


class Field:
    """One field of a form, asked by itself."""

    def __init__(self, name: str, schema: dict[str, Any], required: bool) -> None:
        self.name = name
        self.schema = schema
        self.required = required

    async def ask(self, ctx: Context, wrong: str = "") -> Any:
        """The user's answer, converted; None where there is none."""
        text = f"{self.text()}: {wrong}" if wrong else self.text()
        choices = self.choices()
        if not choices:
            return self._converted(await ctx.ui.ask(text))
        if self.schema.get("type") == "array":
            return await self._several(ctx, text, choices)
        labels = [*choices, LEAVE_OUT] if self._may_be_left_out else list(choices)
        chosen = await ctx.ui.select(text, labels)
        return choices.get(chosen or "", self.schema.get("default") if chosen else None)

    async def _several(self, ctx: Context, text: str, choices: Mapping[str, Any]) -> Any:
        """The choices that were made, one after another; None where somebody leaves."""
        least = self.schema.get("minItems") or 0
        most = self.schema.get("maxItems") or len(choices)
        chosen: list[str] = []
        while len(chosen) < min(most, len(choices)):
            left = [each for each in choices if each not in chosen]
            may_leave = not chosen and self._may_be_left_out
            ending = [LEAVE_OUT] if may_leave else [ENOUGH] if len(chosen) >= least else []
            said = await ctx.ui.select(told_of(text, chosen), [*left, *ending])
            if said is None or (may_leave and said == LEAVE_OUT):
                return self.schema.get("default") if said else None
            if said == ENOUGH:
                break
            chosen.append(said)
        return [choices[each] for each in chosen]

    @property
    def _may_be_left_out(self) -> bool:
        return not self.required or "default" in self.schema

    def choices(self) -> dict[str, Any]:
        """What can be chosen, by label; nothing where it is a text or a number."""
        if self.schema.get("type") == "boolean":
            return {"Yes": True, "No": False}
        items = _object(self.schema.get("items")) or self.schema
        choices = {plain(str(value)): value for value in _list(items.get("enum"))}
        for each in map(_object, _list(items.get("oneOf") or items.get("anyOf"))):
            if "const" in each:
                choices[plain(str(each.get("title", each["const"])))] = each["const"]
        return choices

    def text(self) -> str:
        """The question."""
        title = plain(str(self.schema.get("title") or self.name))
        about = self.schema.get("description") or ""
        names = {str(value): label for label, value in self.choices().items()}
        bounds = [(how, self.schema[key]) for key, how in BOUNDS if key in self.schema]
        told = [how.format(_shown(value, names)) for how, value in bounds]
        if self.schema.get("type") == "array" and not self.choices():
            told.insert(0, "several, separated by commas")
        more = f" ({', '.join(told)})" if told else ""
        return f"{title}{': ' if about else ''}{about}{more}"

    def fault(self, answer: Any) -> str | None:
        """What is wrong with an answer; None where it is what the server's schema wants."""
        if answer is None:
            return "It is needed." if self.required else None
        try:
            return wrong_with(self.schema, answer)
        except ValueError as error:
            return str(error)

    def _converted(self, text: str) -> Any:
        kind = self.schema.get("type")
        if not text.strip():
            return self.schema.get("default")
        if kind == "array":
            return [part.strip() for part in text.split(",")]
        if kind not in ("integer", "number"):
            return text
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return text


def _shown(value: object, names: Mapping[str, str]) -> str:
    """A bound or a default in words; what can be chosen by the name that it has there."""
    several = _list(value) or [value]
    return ", ".join(names.get(str(each), str(each)) for each in several)


def told_of(text: str, chosen: Sequence[str]) -> str:
    """A question, with what was chosen already."""
    return f"{text} (so far: {', '.join(chosen)})" if chosen else text
