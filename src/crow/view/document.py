"""A session as the page shows it: entries in order, each call with its hooks and its decision.

An entry has a ``kind``: ``prompt``, ``answer``, ``call``, ``plan``, ``compacted``, ``aside``,
``request`` (tokens of one), ``break`` (of the cache's prefix), ``moved`` (it went on at another
machine) and ``hooks`` (those of no call). ``machines`` are where it was, each with its part of it.
What a request was beside the conversation is in ``sent``, each once; ``request`` of an answer and
of the tokens is its place there. Times are seconds of the epoch, durations milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from crow.core.messages import is_prompt, text_of, thought_of

Data = dict[str, Any]


def document(lines: str) -> Data:
    """The document of a session's export, as JSON has it.

    ``lines`` are what the store exports: the session, then its records.
    """
    rows = [cast(Data, json.loads(line)) for line in lines.splitlines() if line.strip()]
    head, records = rows[0], rows[1:]
    told = Telling()
    for row in records:
        told.take(row)
    session = {name: head.get(name) for name in ("id", "cwd", "title", "created", "updated")}
    session |= {"mode": head.get("mode"), "model": head.get("model"), "parent": head.get("parent")}
    usage: Data = cast(Data, head.get("usage") or {}).get("total") or {}
    return {
        "session": {**session, "usage": usage, "forked_from": head.get("forked_from")},
        "entries": told.entries,
        "files": files_of(told.entries),
        "sent": told.sent,
        "machines": told.machines,
        "count": len(records),
    }


@dataclass(slots=True)
class Telling:
    """Makes entries of records, one after the other."""

    entries: list[Data] = field(default_factory=list[Data])
    sent: list[Data] = field(default_factory=list[Data])
    machines: list[Data] = field(default_factory=list[Data])
    _calls: dict[str, Data] = field(default_factory=dict[str, Data])
    _turn: int = 0
    _requests: int = 0

    def take(self, row: Data) -> None:
        """Take the next record; one that is damaged is passed over."""
        data = row.get("data")
        if not isinstance(data, dict):
            return
        try:
            self._take(str(row["kind"]), cast(Data, data), row)
        except (KeyError, TypeError, AttributeError):
            return

    def _take(self, kind: str, data: Data, row: Data) -> None:
        match kind:
            case "message":
                self._message(data, row)
            case "started":
                self._started(data, row)
            case "result":
                self._result(data, row)
            case "hooks":
                self._hooks(data["records"], row)
            case _:
                self._beside(kind, data, row)

    def _beside(self, kind: str, data: Data, row: Data) -> None:
        """What stands beside messages and calls; what nobody knows is passed over."""
        match kind:
            case "opened":
                self._opened(data, row)
            case "usage":
                self._requests += 1
                self._add("request", row, **data, request=len(self.sent) - 1)
            case "sent":
                self._sent(data)
            case "plan":
                self._add("plan", row, entries=data.get("entries", []))
            case "segment":
                self._add("compacted", row, summary=data.get("summary", ""), by=data.get("trigger"))
            case "said":
                asked = data.get("prompt")
                prompt = text_of(asked.get("content")) if asked else ""
                text, thought = data.get("text", ""), data.get("thought", "")
                self._add("aside", row, prompt=prompt, text=text, thought=thought)
            case "ended":
                self._add("aside", row, text=data["detail"])
            case _:
                pass

    def _sent(self, data: Data) -> None:
        """A request is another one than before: what of it is, and what still is as it was."""
        before: Data = self.sent[-1] if self.sent else {"made": []}
        now = {**before, **{name: data[name] for name in SENT if name in data}}
        if "since" in data:
            since, at = int(data["since"]), int(data.get("at", 0))
            kept = [each for each in before["made"] if each["at"] < since]
            made = enumerate(data.get("messages", ()), at)
            now["made"] = [*kept, *({"at": place, **_said(each)} for place, each in made)]
        if "system" in data:
            now["system"] = [_said(each) for each in data["system"]]
        self.sent.append(now)

    def _opened(self, data: Data, row: Data) -> None:
        """A machine takes the session up, by itself or from one that was lost."""
        here = {"who": data["who"], "epoch": data["epoch"], "lost": data.get("lost", "")}
        unknown = 0
        if self.machines:
            before = self.machines[-1]
            calls = [call for call in self._calls.values() if call["seq"] > before["seq"]]
            unknown = sum(call["outcome"] in ("", "unknown") for call in calls)
            before |= {"until": self._requests, "ended": self.entries[-1]["at"], "unknown": unknown}
            before["how"] = "lost" if here["lost"] else "handed over"
        if self.machines and (here["lost"] or here["who"] != self.machines[-1]["who"]):
            self._add("moved", row, **here, unknown=unknown)
        at = {"seq": row["seq"], "began": row["at"], "since": self._requests + 1}
        self.machines.append({**here, **at})

    def _add(self, kind: str, row: Mapping[str, Any], **values: Any) -> Data:
        entry = {"kind": kind, "seq": row["seq"], "at": row["at"], "turn": self._turn, **values}
        self.entries.append(entry)
        return entry

    def _message(self, message: Any, row: Data) -> None:
        if message["role"] == "tool":
            call = self._calls.get(message.get("tool_call_id", ""))
            if call is not None and "output" not in call:
                call |= {"output": text_of(message.get("content")), "outcome": "unknown"}
        elif is_prompt(message):
            self._turn += 1
            pictures = [each["type"] for each in _parts(message) if each["type"] != "text"]
            self._add("prompt", row, text=text_of(message.get("content")), beside=pictures)
        elif message["role"] == "assistant":
            text, thought = text_of(message.get("content")), thought_of(message)
            if text or thought:
                self._add("answer", row, text=text, thought=thought, request=len(self.sent) - 1)
            for part in message.get("tool_calls", ()):
                self._open(part, row)
        else:
            self._add("aside", row, text=text_of(message.get("content")), role=message["role"])

    def _open(self, part: Data, row: Data) -> None:
        name, raw = part["function"]["name"], part["function"]["arguments"]
        self._calls[part["id"]] = self._add(
            "call", row, id=part["id"], name=name, args=_args(raw), title=name, hooks=[], outcome=""
        )

    def _call(self, call_id: str, row: Data) -> Data:
        found = self._calls.get(call_id)
        if found is None:
            found = self._calls[call_id] = self._add(
                "call", row, id=call_id, name="", args={}, title=call_id, hooks=[], outcome=""
            )
        return found

    def _started(self, data: Data, row: Data) -> None:
        call = self._call(data["call_id"], row)
        sent = call["args"]
        call |= {"title": data["title"], "sort": data["kind"], "began": row["at"]}
        if sent != data["args"]:
            call |= {"asked": sent, "args": data["args"]}

    def _result(self, data: Data, row: Data) -> None:
        call = self._call(data["call_id"], row)
        ms = round(float(data["duration"]) * 1000, 3)
        call |= {"outcome": data["outcome"], "ms": ms, "ended": row["at"], "title": data["title"]}
        call |= {"name": data["name"], "output": text_of(data["content"])}
        call |= {"diffs": data.get("diffs", []), "error": bool(data.get("error"))}
        call.setdefault("began", float(row["at"]) - ms / 1000)

    def _hooks(self, records: Iterable[Data], row: Data) -> None:
        others: list[Data] = []
        for record in records:
            call = self._calls.get(record.get("call_id", ""))
            if call is None:
                others.append(record)
            else:
                call["hooks"].append(record)
                decided(call, record)
        for record in filter(_breaks, others):
            self._add("break", row, **record["answer"])
        if others:
            self._add("hooks", row, records=others)


def decided(call: Data, record: Data) -> None:
    """Note who decided about a call, where this hook, or its user, did."""
    answer = record.get("answer")
    if not isinstance(answer, dict) or record["event"] not in ("before_tool", "on_permission"):
        return
    said = cast(Data, answer)
    if said.get("type") in ("allow", "deny", "ask", "stop"):
        who = "the user" if record["owner"] == "user" else f"{record['owner']}.{record['hook']}"
        rest = {name: text for name, text in said.items() if name != "type"}
        call.setdefault("decisions", []).append({"verdict": said["type"], "who": who, **rest})


def files_of(entries: Iterable[Data]) -> list[Data]:
    """The files that calls changed, each with its changes in order."""
    found: dict[str, Data] = {}
    for entry in entries:
        for diff in entry.get("diffs") or ():
            file = found.setdefault(diff["path"], {"path": diff["path"], "changes": []})
            file["changes"].append({"seq": entry["seq"], "old": diff["old"], "new": diff["new"]})
    return list(found.values())


SENT = ("model", "params", "tools")


def _said(message: Any) -> Data:
    """A message of a request: whose it is, and its text, or all of it where that is no text."""
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(message, ensure_ascii=False)
    return {"role": message["role"], "text": text}


def _breaks(record: Data) -> bool:
    """True for the record of a request that begins otherwise than the one before."""
    answer = record.get("answer")
    return isinstance(answer, dict) and cast(Data, answer).get("type") == "prefix"


def _parts(message: Any) -> Iterator[Any]:
    content = message.get("content")
    if isinstance(content, list):
        yield from cast("list[Any]", content)


def _args(raw: str) -> Any:
    try:
        return json.loads(raw or "{}")
    except ValueError:
        return raw
