"""Crow as the contract kit of Agent Hooks wants to drive it.

``pytest --agent-hooks-harness=crow_agent_hooks.harness:CrowHarness`` runs the kit. What it says of
pieces (``stream``) is not in the scenario that it hands over, so that is looked up in its vectors.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from agent_hooks import (
    CompositionConfig,
    EnforcementMode,
    HostRegistry,
    HostSurface,
    IdentityProvider,
    InterceptionEmitter,
    InterceptionRecord,
)
from agent_hooks.ctk import Capability, RunOutcome, RunRecord, Scenario, load_vectors, redact_paths
from agent_hooks.ctk.harness import ModelResponse, ToolSpec

from crow import Agent, Call, Completion, NullClient, Request, Session, ToolResult
from crow.events import Delta, Event, TextDelta
from crow_agent_hooks import AgentHooks

BOUND = "no character is shown before a verdict has covered it"


CAPABILITIES = (
    Capability.MODEL_CALLS,
    Capability.TOOL_CALLS,
    Capability.INT64_JSON,
    Capability.BIGINT_JSON,
    Capability.INCREMENTAL_OUTPUT,
    Capability.HOST_DECLARATION,
)


class CrowHarness:
    """An agent of Crow's, whose model and tools play a scenario."""

    name = "crow"
    tool_seam_host_error = "continue"

    def __init__(self) -> None:
        self.capabilities: set[Capability] = set(CAPABILITIES)
        self._scenario: Scenario | None = None
        self._emitter: InterceptionEmitter | None = None
        self.shown = ""
        self.stored: list[Any] = []

    def declaration(self) -> None:
        """None: what Crow can do is said in code."""

    def host_surface(self) -> HostSurface:
        """What a host declaration may ask for; one that does not ask for pieces gets none."""
        declared = self.capabilities - {Capability.INCREMENTAL_OUTPUT}
        capabilities = sorted(each.value for each in declared)
        surface = HostSurface.from_capabilities(capabilities, self.tool_seam_host_error)
        return surface.with_exposure_bound(BOUND)

    def setup(
        self,
        scenario: Scenario,
        interceptors: list[Any],
        resolver: Any,
        mode: EnforcementMode,
        composition: CompositionConfig,
        identity_provider: str | None,
        redact_for_approval: list[str] | None = None,
    ) -> None:
        provider = (
            IdentityProvider("ctk-fault", fault) if identity_provider == "ctk-fault" else None
        )
        emitter = InterceptionEmitter(mode=mode, resolver=resolver, composition=composition)
        emitter.set_identity_provider(provider or identity_provider)
        if redact_for_approval:
            emitter.set_approval_redactor(lambda ctx: redact_paths(ctx, redact_for_approval))
        for each in interceptors:
            emitter.register(each)
        self._scenario, self._emitter = scenario, emitter

    def setup_declared(
        self, scenario: Scenario, document: dict[str, Any], registry: HostRegistry
    ) -> None:
        self._scenario = scenario
        self._emitter = InterceptionEmitter.from_declaration_value(document, registry)

    async def run(self) -> RunRecord:
        assert self._scenario is not None
        records: list[InterceptionRecord] = []
        hooks = AgentHooks(emitter=self._emitter, sink=records.append, segment=1)
        tools = [Played(spec) for spec in self._scenario.tools.values()]
        client = Onlooker()
        async with Agent(Script(self._scenario), hooks=[hooks], tools=tools) as agent:
            session = await agent.new_session(client=client)
            reply = await agent.prompt(session, self._scenario.input["content"])
        self.shown, self.stored = client.shown, stored(session)
        is_done = reply.stop_reason == "end_turn"
        return RunRecord(
            outcome=RunOutcome.COMPLETED if is_done else RunOutcome.BLOCKED,
            final_output=reply.text if is_done else None,
            tool_invocations=[ran for tool in tools for ran in tool.ran],
            error=reply.detail or None,
            identities=[(each.input_identity, each.enforced_identity) for each in records],
            records=[each.to_wire() for each in records],
        )

    def teardown(self) -> None:
        self._scenario = self._emitter = None


class Onlooker(NullClient):
    """A client that keeps what it is shown of the answer."""

    shown = ""

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, TextDelta):
            self.shown += event.text


class Script:
    """A model that plays the scenario's answers."""

    model = "mock"
    context_window = None

    def __init__(self, scenario: Scenario) -> None:
        self._answers = iter(scenario.model_script)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion]:
        answer: ModelResponse = next(self._answers)
        pieces, is_truncated = streams().get(answer.content, ([answer.content or ""], False))
        for text in filter(None, pieces):
            yield TextDelta(text, request.message_id)
        if not is_truncated:
            calls = (Call(each["id"], each["name"], each["args"]) for each in answer.tool_calls)
            finish: Any = answer.finish_reason
            yield Completion(answer.content or "", tuple(calls), finish=finish)


def streams() -> dict[str, tuple[list[str], bool]]:
    """The pieces of answers that come in pieces, and whether the last of all is missing."""
    scripts = (each["scenario"].get("model_script", []) for each in load_vectors())
    said = (each["respond"] for script in scripts for each in script)
    return {
        each["content"]: (each["stream"], each.get("stream_truncated", False))
        for each in said
        if "stream" in each
    }


class Played:
    """A tool of the scenario's."""

    description = "Plays what the scenario says."
    kind: Any = "other"

    def __init__(self, spec: ToolSpec) -> None:
        self.name = spec.name
        self.parameters: dict[str, Any] = {"type": "object"}
        self._spec = spec
        self.ran: list[dict[str, Any]] = []

    async def run(self, args: dict[str, Any], ctx: Any) -> ToolResult:
        value, is_error = self._spec.invoke(args)
        self.ran.append({"name": self.name, "args": args})
        result = ToolResult.of(value)
        return ToolResult.failure(result.text) if is_error else result


def stored(session: Session) -> list[Any]:
    """What the history says, in words."""
    return [message.get("content") for message in session.messages]


def fault(context: Any) -> str:
    raise RuntimeError("the identity provider fails, as the vector wants it")
