"""The prompt cache: a request that begins otherwise than the one before is counted, and named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.tools import step

from crow import Agent, Command, PromptSection, Session, tool
from crow.events import Event, Notice
from crow.extensions import (
    CommandsHook,
    CompactionHook,
    CostHook,
    PersistenceHook,
    PromptCacheHook,
    SubagentsHook,
    SystemPromptHook,
)
from crow.keys import PROMPT_CACHE
from crow.testing import AgentOf, ScriptedModel, call, text


class Watching:
    """A client that keeps the notices."""

    answers = False
    files = terminals = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.texts.append(event.text)

    async def permission(self, session_id: str, request: object) -> None:
        return None

    async def ask(self, session_id: str, question: Any) -> Any:
        return question.default


@tool
def late() -> str:
    """Come late."""
    return "late"


def usage(number: int, cached: int | None = None) -> Any:
    told = {"input_tokens": number, "output_tokens": 0, "total_tokens": number}
    return told if cached is None else {**told, "cached_tokens": cached}


def breaks(session: Session) -> list[dict[str, Any]]:
    """What the trace says of broken prefixes."""
    answers: list[Any] = [r.answer for r in session.trace if r.hook == "prompt_cache"]
    return [answer for answer in answers if answer]


def reasons(session: Session) -> list[str]:
    return [each["reason"] for each in breaks(session)]


def lines(session: Session) -> list[str]:
    known = PROMPT_CACHE.get(session)
    assert known is not None
    return list(known.lines)


async def play(agent: Agent, prompts: int = 2, client: Any = None) -> Session:
    """A session in which somebody prompts so often."""
    session = await agent.new_session(client=client)
    for number in range(prompts):
        await agent.run(f"Prompt {number}", session=session)
    return session


class Stamp:
    """Puts the number of the request into the system message."""

    name = "stamp"

    def __init__(self) -> None:
        self.number = 0

    def before_llm_request(self, messages: list[Any]) -> list[Any]:
        self.number += 1
        head = {**messages[0], "content": f"{messages[0]['content']}\nRequest {self.number}"}
        return [head, *messages[1:]]


class Forgetful:
    """Cuts what a tool has answered, from the second request on."""

    name = "forgetful"

    async def around_llm_request(self, ctx: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
        ctx.messages = [
            {**m, "content": "(cut)"} if m["role"] == "tool" and m is not ctx.messages[-1] else m
            for m in ctx.messages
        ]
        return await call_next()


async def test_nothing_is_said_where_every_request_begins_as_the_one_before(agent_of: AgentOf):
    client = Watching()
    hooks = [SystemPromptHook("Crow."), PromptCacheHook()]
    agent = agent_of(call("step"), "One.", "Two.", hooks=hooks, tools=[step])
    session = await play(agent, client=client)
    assert (breaks(session), client.texts) == ([], [])
    assert lines(session) == ["cached prefix: never broken"]
    known = PROMPT_CACHE.get(session)
    assert known is not None
    assert known.described == {}


async def test_a_hook_that_changes_the_system_message_is_named_once_and_counted_always():
    client = Watching()
    model = ScriptedModel(
        call("step", usage=usage(1000)),
        call("step", usage=usage(1100)),
        text("Done.", usage=usage(1200)),
    )
    hooks = [PromptCacheHook(), SystemPromptHook("Crow."), Stamp()]
    session = await play(Agent(model, hooks=hooks, tools=[step]), 1, client)
    assert reasons(session) == [
        (
            "the hook stamp.before_llm_request changed the system message: "
            "about 1,000 tokens were paid again"
        ),
        (
            "the hook stamp.before_llm_request changed the system message: "
            "about 1,100 tokens were paid again"
        ),
    ]
    assert breaks(session)[0] == {
        "type": "prefix",
        "reason": reasons(session)[0],
        "request": 2,
        "why": "hook",
        "by": "the hook stamp.before_llm_request",
        "what": "the system message",
        "from_message": 1,
        "tokens": 1000,
        "expected": False,
    }
    assert client.texts == [
        f"the provider's cache of the conversation was lost: {reasons(session)[0]} (/cost counts on)"
    ]
    assert lines(session)[0] == (
        "cached prefix: broken 2 times, about 2,100 tokens were paid again"
    )


async def test_what_the_provider_had_in_its_cache_all_the_same_was_not_paid_again():
    model = ScriptedModel(call("step", usage=usage(1000, 0)), text("Done.", usage=usage(1100, 900)))
    hooks = [SystemPromptHook("Crow."), Stamp(), PromptCacheHook()]
    session = await play(Agent(model, hooks=hooks, tools=[step]), 1)
    assert [each["tokens"] for each in breaks(session)] == [200]


async def test_a_wrap_that_changes_an_old_message_is_named_with_the_message(agent_of: AgentOf):
    hooks = [SystemPromptHook("Crow."), Forgetful(), PromptCacheHook()]
    agent = agent_of(call("step"), call("step"), "Done.", hooks=hooks, tools=[step])
    session = await play(agent, 1)
    assert reasons(session) == [
        (
            "the hook forgetful.around_llm_request changed message 4 of 4: "
            "about 1 tokens were paid again"
        )
    ]


async def test_of_several_hooks_the_one_is_named_that_did_it(agent_of: AgentOf):
    def tail(messages: list[Any]) -> list[Any]:
        return [*messages[:1], *messages[1:]]

    class Twice(Stamp):
        name = "twice"

        def before_llm_request(self, messages: list[Any]) -> list[Any]:
            return [messages[0], {"role": "user", "content": "Be brief."}, *messages[1:]]

    agent = agent_of("One.", "Two.", hooks=[SystemPromptHook("Crow."), Twice()], tools=[])
    agent.hooks.register("before_llm_request", tail)
    agent.use(Stamp())
    agent.use(PromptCacheHook())
    session = await play(agent)
    assert [each["by"] for each in breaks(session)] == ["the hook stamp.before_llm_request"]


async def test_a_hook_that_stops_what_it_did_is_named(agent_of: AgentOf):
    def once(ctx: Any) -> Any:
        more = {"role": "user", "content": "Only now."}
        return [more, *ctx.messages] if len(ctx.messages) == 1 else None

    agent = agent_of("One.", "Two.", hooks=[PromptCacheHook()], tools=[])
    agent.hooks.register("before_llm_request", once)
    session = await play(agent)
    assert ["once" in each["by"] for each in breaks(session)] == [True]


async def test_tools_that_an_extension_brings_late_are_named(agent_of: AgentOf):
    class Bringer:
        name = "bringer"

        def init_agent(self, agent: Agent) -> None:
            agent.add_tool(late)

    agent = agent_of("One.", "Two.", "Three.", hooks=[PromptCacheHook()], tools=[step])
    session = await play(agent, 1)
    agent.use(Bringer())
    await agent.run("Go on", session=session)
    agent.remove("bringer")
    await agent.run("Go on", session=session)
    assert [(each["by"], each["what"], each["from_message"]) for each in breaks(session)] == [
        ("the extension bringer", "the tools (new: late)", 0),
        ("an extension", "the tools (gone: late)", 0),
    ]


async def test_a_hook_that_changes_the_tools_is_named(agent_of: AgentOf):
    def fewer(ctx: Any) -> None:
        ctx.tools = ctx.tools[: 2 - len(ctx.messages) // 2]

    agent = agent_of("One.", "Two.", hooks=[PromptCacheHook()], tools=[step, late])
    agent.hooks.register("before_llm_request", fewer)
    session = await play(agent)
    [found] = breaks(session)
    assert (found["why"], found["what"]) == ("hook", "the tools (gone: late)")
    assert "fewer" in found["by"]


async def test_a_part_of_the_system_prompt_is_named(agent_of: AgentOf):
    texts = iter(["old", "new"])

    async def forget(ctx: Any) -> None:
        ctx.cache.pop("system_prompt.composed")

    agent = agent_of("One.", "Two.", hooks=[SystemPromptHook("Crow."), PromptCacheHook()], tools=[])
    agent.add_section(PromptSection("weather", lambda session: next(texts)))
    agent.add_command(Command("forget", "Compose the system message anew", forget))
    session = await play(agent, 1)
    await agent.run("/forget", session=session)
    await agent.run("Go on", session=session)
    assert [(each["why"], each["by"]) for each in breaks(session)] == [
        ("system_prompt", "the system prompt's part weather")
    ]


async def test_what_is_nobodys_fault_is_told_and_not_counted():
    client = Watching()
    model = ScriptedModel(
        *[text(f"{number}", usage=usage(100, 90)) for number in range(7)], context_window=10**6
    )
    hooks = [SystemPromptHook("Crow."), CommandsHook(), CompactionHook(), PromptCacheHook()]
    agent = Agent(model, hooks=hooks, tools=[])
    session = await play(agent, 2, client)
    for prompt in ("/compact", "Go on", "/clear", "Anew", "/model other", "And you?"):
        await agent.run(prompt, session=session)
    await agent.configure(session, params={"reasoning_effort": "high"})
    await agent.run("Think", session=session)
    assert [(each["why"], each["expected"]) for each in breaks(session)] == [
        ("compaction", True),
        ("restart", True),
        ("model", True),
        ("settings", True),
    ]
    assert client.texts == []
    assert lines(session) == [
        "cached prefix: never broken",
        "  - begun anew for a reason: compaction 1, restart 1, model 1, settings 1",
        "beside the conversation (summaries, what hooks ask): 100 tokens",
    ]


async def test_each_model_has_a_cache_of_its_own(agent_of: AgentOf):
    agent = agent_of("1", "2", "3", "4", hooks=[CommandsHook(), PromptCacheHook()], tools=[])
    session = await play(agent, 1)
    for prompt in ("/model other", "Hi", "/model default", "Hi", "/model other", "Hi"):
        await agent.run(prompt, session=session)
    assert reasons(session) == ["another model was asked: other: about 3 tokens were paid again"]


async def test_sub_agents_are_counted_for_themselves():
    def before_llm_request(ctx: Any) -> Any:
        return [{"role": "user", "content": f"{len(ctx.messages)}"}, *ctx.messages]

    model = ScriptedModel(
        call("Agent", description="Look", prompt="Look"), call("step"), "Found.", "Done."
    )
    extension = SubagentsHook((), hooks=lambda definition: [before_llm_request])
    agent = Agent(model, hooks=[extension, PromptCacheHook()], tools=[step])
    session = await play(agent, 1)
    assert breaks(session) == []
    assert lines(session)[0] == "cached prefix: never broken"
    assert lines(session)[1].startswith("sub-agents: 2 requests, broken once, about ")


@pytest.mark.parametrize("what", ["same", "branch", "tools", "text", "hook"])
async def test_a_session_that_goes_on_in_another_process(what: str, tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def agent(*script: Any, text: str = "Crow.", tools: Any = (step,), more: Any = ()) -> Agent:
        store = PersistenceHook(tmp_path / "crow.db")
        hooks = [SystemPromptHook(text), *more, store, PromptCacheHook()]
        return Agent(ScriptedModel(*script), hooks=hooks, tools=tools)

    async with agent(call("step"), "One.") as first:
        session_id = (await first.run("Hi", cwd=tmp_path)).session.id
    if what == "branch":
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/feature\n")
    options: dict[str, Any] = {
        "tools": {"tools": [step, late]},
        "text": {"text": "Crow 2."},
        "hook": {"more": [Stamp()]},
    }
    async with agent("Two.", **options.get(what, {})) as second:
        session = await second.load_session(session_id)
        await second.run("Go on", session=session)
        told = [(each["why"], each["what"]) for each in breaks(session)]
    assert (
        told
        == {
            "same": [],
            "branch": [],
            "tools": [("process", "the tools (new: late)")],
            "text": [("process", "the system prompt (prompt_text)")],
            "hook": [("process", "what hooks make of the system message")],
        }[what]
    )


async def test_cost_and_context_tell_of_it(agent_of: AgentOf):
    hooks = [SystemPromptHook("Crow."), CommandsHook(), CostHook(), Stamp(), PromptCacheHook()]
    agent = agent_of("One.", "Two.", hooks=hooks, tools=[])
    session = await play(agent)
    cost = (await agent.run("/cost", session=session)).text
    context = (await agent.run("/context", session=session)).text
    assert "- cached prefix: broken once, about " in cost
    assert "request 2: the hook stamp.before_llm_request changed the system message" in cost
    assert "\n- cached prefix: broken once, about " in context
    assert "request 2: the hook stamp.before_llm_request changed the system message" in context


@pytest.mark.parametrize("part", ["messages", "tools", "params"])
async def test_a_wrap_that_asks_another_request_is_named(agent_of: AgentOf, part: str):
    asked = 0

    async def asks_another(ctx: Any, call_next: Any) -> Any:
        nonlocal asked
        asked += 1
        head = {"role": "system", "content": f"request {asked}"}
        changes: dict[str, Any] = {
            "messages": [head, *ctx.messages],
            "tools": ctx.tools if asked % 2 else [],
            "params": {"reasoning_effort": "high" if asked % 2 else "low"},
        }
        return await call_next(**{part: changes[part]})

    agent = agent_of("1", "2", hooks=[PromptCacheHook()], tools=[step])
    agent.hooks.register("around_llm_request", asks_another)
    session = await play(agent)
    assert [(each["why"], each["by"], each["expected"]) for each in breaks(session)] == [
        ("hook", "the hook asks_another", False)
    ]


async def test_what_a_wrap_asks_beside_the_conversation_breaks_nothing(agent_of: AgentOf):
    async def asks_beside(call_next: Any) -> Any:
        reply = await call_next()
        await call_next(messages=[{"role": "user", "content": f"Sum up: {reply.text}"}])
        return reply

    agent = agent_of("1", "a", "2", "b", "3", "c", hooks=[PromptCacheHook()], tools=[])
    agent.hooks.register("around_llm_request", asks_beside)
    assert breaks(await play(agent, 3)) == []


@pytest.mark.parametrize("refused", [False, True])
async def test_a_tool_that_comes_late_is_told_whatever_else_was_set(refused: bool):
    class Fixed:
        def on_config_change(self) -> str | None:
            return "not now" if refused else None

    agent = Agent(ScriptedModel("1", "2"), hooks=[PromptCacheHook(), Fixed()], tools=[step])
    session = await play(agent, 1)
    agent.add_tool(late)
    await agent.configure(session, mode="careful")
    await agent.run("Go on", session=session)
    assert [(each["why"], each["expected"]) for each in breaks(session)] == [("tools", False)]


@pytest.mark.parametrize("is_wrap", [True, False])
async def test_who_adds_at_the_tail_is_not_named_for_what_another_did_in_front(
    agent_of: AgentOf, is_wrap: bool
):
    asked = 0

    def adds_at_the_tail(ctx: Any) -> Any:
        return [*ctx.messages, {"role": "user", "content": "Be brief."}]

    def changed(ctx: Any) -> Any:
        nonlocal asked
        asked += 1
        return [{"role": "system", "content": f"request {asked}"}, *ctx.messages]

    def changes_the_head(ctx: Any) -> Any:
        return changed(ctx)

    async def changes_the_head_around(ctx: Any, call_next: Any) -> Any:
        ctx.messages = changed(ctx)
        return await call_next()

    agent = agent_of("1", "2", hooks=[PromptCacheHook()], tools=[])
    agent.hooks.register("before_llm_request", adds_at_the_tail)
    if is_wrap:
        agent.hooks.register("around_llm_request", changes_the_head_around)
    else:
        agent.hooks.register("before_llm_request", changes_the_head)
    session = await play(agent)
    assert [each["from_message"] for each in breaks(session)] == [1]
    assert breaks(session)[0]["by"].startswith("the hook changes_the_head")
