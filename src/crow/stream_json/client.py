"""The program at the other end, as a session's client: it is told, and asked where it answers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from crow.core.agent import Agent
from crow.core.events import Event, ToolEnded
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.session import Session
from crow.core.support.frozen import frozen
from crow.keys import SUBAGENT_CALLS, SUBAGENTS
from crow.stream_json.lines import ControlError, Lines, Message, as_object
from crow.stream_json.projection import Projection
from crow.stream_json.questions import ASK, content_of, input_of

if TYPE_CHECKING:
    from crow.core.ports.client import Filled, Form

YES_NO = ("Yes", "No")
BEGINNING = ("SessionStart", "Setup")
"""Events whose hooks programs are always told of."""


class StreamClient:
    """Tells a program of a session by `Lines`.

    With ``asks`` it answers questions. Whether a call may run it is asked as a hook of
    ``PermissionRequest`` (`crow.stream_json.control.hooks_table`), which can rewrite the arguments;
    what it has allowed there is its user's word here. ``servers`` are names of MCP servers that it
    has itself. ``partial`` and ``tells_all`` are those of a `Projection`, the latter for
    sub-agents; with ``tells_hooks`` it is told of each hook that runs. ``denied`` are the calls
    that were refused; ``has_interrupted`` is True once a refusal was to end the turn as well.
    """

    files: Files | None = None
    terminals: Terminals | None = None
    waits_for_servers = True
    shows_subagents = True

    def __init__(
        self,
        lines: Lines,
        *,
        asks: bool = False,
        partial: bool = False,
        servers: Sequence[str] = (),
    ) -> None:
        self.lines = lines
        self.answers = asks
        self.partial = partial
        self.tells_all = False
        self.tells_hooks = False
        self.mcp_servers: list[Any] = [
            {"name": name, "channel": Channel(lines, name)} for name in servers
        ]
        self.denied: list[Message] = []
        self.unasked: list[PermissionRequest] = []
        self.has_interrupted = False
        self._decided: dict[str, Message | None] = {}
        self._session: Session | None = None
        self._agent: Agent | None = None
        self._early: list[tuple[str, Event]] = []
        self._is_held = True
        self._told: dict[str, Projection] = {}

    def attach(self, agent: Agent, session: Session) -> None:
        """Speak for this session; what was told while it was opened follows the first message."""
        self._agent, self._session = agent, session
        self._is_held = False

    def hold(self) -> None:
        """Keep what is told until `begin`: the first message of a turn comes first."""
        self._is_held = True

    def begin(self) -> None:
        """Tell what was kept."""
        early, self._early, self._is_held = self._early, [], False
        for session_id, event in early:
            self._put(session_id, event)

    async def update(self, session_id: str, event: Event) -> None:
        """Tell of an event."""
        if self._is_held:
            self._early.append((session_id, event))
        else:
            self._put(session_id, event)

    def follow_hook(self, session_id: str, subtype: str, fields: Mapping[str, Any]) -> None:
        """Tell of a hook of settings files; of those of a session's beginning at any rate."""
        if self.tells_hooks or fields["hook_event"] in BEGINNING:
            told = {"type": "system", "subtype": subtype, **fields}
            self.lines.put({**told, "session_id": session_id, "uuid": str(uuid.uuid4())})

    def _put(self, session_id: str, event: Event) -> None:
        projection = self._told.get(session_id) or self._projection(session_id)
        if isinstance(event, ToolEnded) and event.outcome == "denied":
            call = event.call
            denied = {"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.args}
            self.denied.append(denied)
            if call.id not in self._decided:
                self.lines.put(projection.denied(event))
        for message in projection.messages(event):
            self.lines.put(message)
        if isinstance(event, ToolEnded):
            self._conclude(event)

    def _conclude(self, event: ToolEnded) -> None:
        """Tell what came of a sub-agent whose call has ended."""
        data = as_object(event.result.data)
        worker = self._told.get(str(data.get("agentId")))
        if worker is not None:
            self.lines.put(worker.concluded(str(data["agentId"]), event.result.text, data))

    def _projection(self, session_id: str) -> Projection:
        session = cast(Session, self._session)
        parent = (SUBAGENT_CALLS.get(session) or {}).get(session_id)
        projection = self._told[session_id] = Projection(
            session.id,
            self.model,
            parent=parent,
            partial=self.partial,
            tells_all=parent is None or self.tells_all,
        )
        worker = (SUBAGENTS.get(session) or {}).get(session_id)
        if worker is not None:
            self.lines.put(projection.began(worker))
        return projection

    def model(self) -> str:
        """The name of the model that answers."""
        agent, session = cast(Agent, self._agent), cast(Session, self._session)
        return session.model or agent.llm.model

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """What the program has said to this call; it is asked here where no hook has asked it."""
        call, args = request.call, dict(request.args)
        if self.answers and call.id not in self._decided:
            payload = {"tool_name": call.name, "tool_input": args}
            with suppress(ControlError):
                await self.decide(payload, call.id)
        if self._decided.get(call.id) == args:
            return next((it.id for it in request.options if it.kind == "allow_once"), None)
        self.unasked.append(request)
        return None

    async def decide(self, payload: Message, call_id: str | None) -> Message:
        """Have the program say whether a call may run, as a hook of PermissionRequest says it."""
        asked: Message = {
            "tool_name": payload["tool_name"],
            "input": payload["tool_input"],
            "permission_suggestions": payload.get("permission_suggestions") or [],
            "tool_use_id": call_id,
        }
        if "agent_id" in payload:
            asked["agent_id"] = payload["agent_id"]
        decision = await self.lines.ask("can_use_tool", **asked)
        if call_id is not None:
            is_allowed = decision.get("behavior") == "allow"
            wanted = decision.get("updatedInput") or payload["tool_input"]
            self._decided[call_id] = wanted if is_allowed else None
        if decision.get("interrupt") is True:
            self.has_interrupted = True
        specific = {"hookEventName": "PermissionRequest", "decision": decision}
        return {"hookSpecificOutput": specific}

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """The program's answers to several questions at once; None where they cannot be put so."""
        from crow.core.ports.client import LEFT, Filled

        session = cast(Session, self._session)
        worker = (SUBAGENTS.get(session) or {}).get(session_id)
        asked = input_of(form, worker or session) if self.answers else None
        if asked is None:
            return None
        about: Message = {"tool_use_id": form.call_id or None}
        if worker is not None:
            about["agent_id"] = session_id
        try:
            answer = await self.lines.ask("can_use_tool", tool_name=ASK, input=asked, **about)
        except ControlError:
            return LEFT
        if answer.get("interrupt") is True:
            self.has_interrupted = True
        if answer.get("behavior") != "allow":
            return Filled("decline")
        answers = as_object(as_object(answer.get("updatedInput")).get("answers"))
        return Filled("accept", content_of(form, answers))

    async def ask(self, session_id: str, question: Question) -> Any:
        """The program's answer, else the default."""
        if not self.answers:
            return question.default
        labels = YES_NO if question.kind == "confirm" else question.choices
        text = f"{question.text}\n{question.detail}".strip()
        asked = {
            "question": text,
            "header": "Question",
            "options": [{"label": label, "description": ""} for label in labels],
            "multiSelect": False,
        }
        try:
            answer = await self.lines.ask(
                "can_use_tool", tool_name=ASK, input={"questions": [asked]}
            )
        except ControlError:
            return question.default
        return meant(question, text, answer)


def meant(question: Question, text: str, answer: Message) -> Any:
    """What a program has answered to a question."""
    said = as_object(as_object(answer.get("updatedInput")).get("answers")).get(text)
    if answer.get("behavior") != "allow" or not isinstance(said, str):
        return question.default
    if question.kind == "confirm":
        return said == YES_NO[0] if said in YES_NO else question.default
    if question.kind == "select":
        return said if said in question.choices else question.default
    return said


@frozen
class Channel:
    """The way to an MCP server of the program's own."""

    lines: Lines
    name: str

    async def ask(self, method: str, params: Message, hear: object) -> Message:
        """Send a request of MCP; its ``result`` or ``error``. Raises ``OSError``."""
        del hear
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            answer = await self.lines.ask("mcp_message", server_name=self.name, message=message)
        except ControlError as error:
            raise OSError(str(error)) from None
        said = as_object(answer.get("mcp_response"))
        if "result" in said or "error" in said:
            return {each: said[each] for each in ("result", "error") if each in said}
        raise OSError(f"the MCP server {self.name!r} gave no answer")
