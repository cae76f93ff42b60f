"""Tool calls, put together from the pieces in which endpoints send them.

Indexes may be missing or the same for several calls, ids missing, empty or used twice, arguments
in one piece, in many, or an object in place of its JSON text. Every call that was asked for comes
out once, in the order in which it began, with an id of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from crow.core.events import CallDelta
from crow.core.tools import Call
from crow.llm.http.text import TextFlow, clean, clean_value, is_dirty_json, is_object, merged

EXTRA = "extra_content"
CUT_OFF = "The reply was cut off before it was complete; the call was not executed."


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_strict = json.JSONDecoder(parse_constant=_reject_constant).decode
_lenient = json.JSONDecoder(strict=False, parse_constant=_reject_constant).decode


class Piecework:
    """One call that is being written."""

    __slots__ = ("extra", "flow", "given_id", "id", "name", "parts", "sent")

    def __init__(self, given_id: str, name: str) -> None:
        self.given_id = given_id
        self.name = name
        self.id = ""
        self.extra: Any = None
        self.parts: list[str] = []
        self.flow = TextFlow()
        self.sent = False

    @property
    def raw(self) -> str:
        """The arguments so far."""
        return "".join(self.parts)

    def is_whole(self) -> bool:
        """True where the arguments so far are JSON."""
        if not self.parts:
            return False
        try:
            _lenient(self.raw)
        except (ValueError, RecursionError):
            return False
        return True


class ToolCalls:
    """The calls of one reply. ``known`` gives the ids that the conversation has used already."""

    def __init__(
        self, known: Callable[[], set[str]], earlier: Iterable[tuple[str, str, str]] = ()
    ) -> None:
        self._known = known
        self._before: set[str] | None = None
        self._used: set[str] = set()
        self._earlier = list(earlier)
        self._calls: list[Piecework] = []
        self._by_index: dict[int, Piecework] = {}
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, pieces: Iterable[Any]) -> list[CallDelta]:
        """Add the tool calls of one delta; what can be shown of them."""
        deltas: list[CallDelta] = []
        here: list[Piecework] = []
        for piece in pieces:
            if is_object(piece):
                call, text = self._place(piece, here)
                if call is not None:
                    here.append(call)
                    call.extra = merged(call.extra, piece.get(EXTRA))
                    self._add(call, text, deltas)
        return deltas

    def end(self) -> list[CallDelta]:
        """Show the calls that came without arguments."""
        deltas: list[CallDelta] = []
        for call in self._calls:
            rest = call.flow.end()
            call.parts.append(rest)
            if rest or not call.sent:
                self._show(call, rest, deltas)
        return deltas

    def calls(self, fault: str | None) -> tuple[Call, ...]:
        """The calls, each with its arguments read, or with what is wrong with them."""
        return tuple(_finished(call, fault) for call in self._calls)

    def shown(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of the calls of which something was shown."""
        return [(call.id, call.name, call.raw) for call in self._calls if call.sent]

    def _place(self, piece: dict[str, Any], here: list[Piecework]) -> tuple[Piecework | None, str]:
        """The call that a piece belongs to, and its part of the arguments."""
        function: Any = piece.get("function") or {}
        name, text = clean(_text(function.get("name"))), _arguments(function.get("arguments"))
        given_id, index = _text(piece.get("id")), _index(piece.get("index"))
        call = self._find(given_id, index)
        if call is not None and index is None and call in here and name:
            call = None
        if call is None or _begins_another(call, given_id, name, text):
            return self._begin(given_id, index, name), text
        if name != call.name and not call.sent:
            call.name += name
        if name and call.given_id and text == call.raw and call.is_whole():
            text = ""  # the whole call once more
        call.given_id = call.given_id or given_id
        return call, text

    def _find(self, given_id: str, index: int | None) -> Piecework | None:
        if index is not None:
            return self._by_index.get(index)
        if given_id:
            return next((call for call in self._calls if call.given_id == given_id), None)
        return self._calls[-1] if self._calls else None

    def _begin(self, given_id: str, index: int | None, name: str) -> Piecework | None:
        if not name and not given_id:
            return None
        call = Piecework(given_id, name)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _add(self, call: Piecework, text: str, deltas: list[CallDelta]) -> None:
        if not text:
            return
        self.size += len(text)
        text = call.flow.take(text)
        call.parts.append(text)
        if call.name:
            self._show(call, text, deltas)

    def _show(self, call: Piecework, text: str, deltas: list[CallDelta]) -> None:
        if not call.sent:
            call.sent = True
            call.id = self._new_id(call)
            text = call.raw
        deltas.append(CallDelta(call.id, call.name, text))

    def _new_id(self, call: Piecework) -> str:
        """The endpoint's id where it is one, else ``call`` and a number of five digits.

        Nine letters and digits, because one provider takes nothing else.
        """
        if self._before is None:
            self._before = self._known()
        before, used = self._before, self._used
        position = self._calls.index(call)
        if position < len(self._earlier) and self._earlier[position][1] == call.name:
            new = self._earlier[position][0]
        else:
            new = clean(call.given_id)
        number = len(before) + len(used)
        while not new or new in before or new in used:
            number += 1
            new = f"call{number:05d}"
        used.add(new)
        return new


def _begins_another(call: Piecework, given_id: str, name: str, text: str) -> bool:
    """True where a piece for a call's index is the first of another call."""
    if given_id and call.given_id and given_id != call.given_id:
        return bool(name)
    if not name or not text or not call.is_whole():
        return False
    return not (given_id and text == call.raw)


def _finished(call: Piecework, fault: str | None) -> Call:
    extra = clean_value(call.extra)
    return replace(_whole(call, fault), extra_content=extra) if extra else _whole(call, fault)


def _whole(call: Piecework, fault: str | None) -> Call:
    raw = call.raw
    if fault:
        return Call(call.id, call.name, {}, raw, fault)
    if not raw.strip():
        return Call(call.id, call.name, {}, "{}")
    try:
        return _read(call, raw)
    except (ValueError, RecursionError) as error:
        return Call(call.id, call.name, {}, raw, f"The arguments are not valid JSON: {error}.")


def _read(call: Piecework, raw: str) -> Call:
    """The call with its arguments; ``raw`` stays only where it is JSON by the letter."""
    try:
        args = _strict(raw)
    except ValueError:
        args = _lenient(raw)
        raw = ""
    if isinstance(args, str):
        args = _lenient(args)
        raw = ""
    if not is_object(args):
        what = "The arguments must be one JSON object, such as {}."
        return Call(call.id, call.name, {}, call.raw, what)
    if is_dirty_json(raw or call.raw):
        args = clean_value(args)
        raw = ""
    return Call(call.id, call.name, args, raw or json.dumps(args, ensure_ascii=False))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _index(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None
