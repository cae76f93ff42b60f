"""Compaction: room in the window is made in time, nothing is torn apart, and it ends by itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from tests.watching import Watching

from crow import Agent, Deny, tool
from crow.core.errors import ModelError
from crow.core.events import Compacted
from crow.core.messages import Message, Usage, text_of
from crow.core.ports.llm import Completion, Delta, Request
from crow.extensions import CompactionHook, PermissionsHook, PersistenceHook, SystemPromptHook
from crow.extensions.compaction.history import turns_of
from crow.extensions.compaction.summary import transcript
from crow.testing import ScriptedModel, call, delay, text

FULL: Usage = {"total_tokens": 900}
TOO_LONG = ModelError("HTTP 400: too many tokens", kind="context_length")


@tool
def look(path: str = "a.py", length: int = 10) -> str:
    """Look at a file."""
    return f"{path}: " + "x" * length


class Awaited(ScriptedModel):
    """A model that says when it is asked for the time after the first ``number``."""

    def __init__(self, number: int, *script: Any) -> None:
        super().__init__(*script, context_window=1000)
        self.number = number
        self.reached = asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        if len(self.asked) == self.number:
            self.reached.set()
        async for each in super().stream(request):
            yield each


def model_of(*script: Any, window: int | None = 1000) -> ScriptedModel:
    return ScriptedModel(*script, context_window=window)


def told(model: ScriptedModel, index: int) -> list[str]:
    """What a request held, one line a message."""
    return [line(message) for message in model.asked[index]["messages"]]


def line(message: Message) -> str:
    names = [each["function"]["name"] for each in message.get("tool_calls", ())]
    return " ".join([message["role"], *names, text_of(message.get("content"))[:60]]).strip()


def assert_whole(messages: list[Message]) -> None:
    """Every call has its answer right behind it, and every answer its call."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message.get("tool_call_id") in waiting
            waiting.remove(message.get("tool_call_id", ""))
        else:
            assert not waiting
        waiting += [each["id"] for each in message.get("tool_calls", ())]
    assert not waiting


async def test_a_history_that_fills_the_window_is_replaced_by_a_summary_and_the_last_turns():
    model = model_of(
        call("look", path="one.py"),
        call("look", path="two.py"),
        call("look", path="three.py", usage=FULL),
        "THE SUMMARY",
        text("Done.", usage={"total_tokens": 300}),
    )
    client = Watching()
    agent = Agent(
        model,
        hooks=[SystemPromptHook("You are Crow.", environment=False), CompactionHook(keep_turns=2)],
        tools=[look],
    )
    reply = await agent.run("Look around", client=client)
    model.verify()
    assert reply.text == "Done."
    assert told(model, 4) == snapshot(
        [
            "system You are Crow.",
            """\
user <crow-context source="summary">
THE SUMMARY
</crow-context>\
""",
            "user Look around",
            "assistant look",
            "tool two.py: xxxxxxxxxx",
            "assistant look",
            "tool three.py: xxxxxxxxxx",
        ]
    )
    assert_whole(reply.session.messages)
    assert reply.session.segment == 1
    assert client.of(Compacted) == [Compacted("THE SUMMARY", "auto")]


async def test_the_model_is_asked_for_the_summary_with_a_transcript_and_no_tools():
    model = model_of(
        call("look", path="one.py"), call("look", path="two.py", usage=FULL), "THE SUMMARY", "Done."
    )
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    await agent.run("Look around")
    asked = model.asked[2]
    assert asked["tools"] == []
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert text_of(asked["messages"][1].get("content")) == snapshot("""\
<transcript>
[user]
Look around

[call of look] {"path": "one.py"}

[result of look]
one.py: xxxxxxxxxx
</transcript>

Write the summary.\
""")


async def test_the_tokens_of_the_summary_count_for_run_and_session():
    model = model_of(
        call("look"),
        call("look", usage=FULL),
        text("THE SUMMARY", usage={"total_tokens": 70}),
        text("Done.", usage={"total_tokens": 30}),
    )
    reply = await Agent(model, hooks=[CompactionHook()], tools=[look]).run("Look")
    assert reply.usage == {"total_tokens": 1000}
    assert reply.session.usage == {"total_tokens": 1000}


async def test_old_outputs_go_to_disk_first_and_no_model_is_asked(tmp_path: Path):
    model = model_of(
        call("look", path="long.py", length=9000),
        call("look", path="short.py"),
        call("look", path="last.py", length=1500, usage={"total_tokens": 3000}),
        "Done.",
        window=4000,
    )
    client = Watching()
    hook = CompactionHook(keep_turns=1, directory=tmp_path)
    reply = await Agent(model, hooks=[hook], tools=[look]).run("Look", client=client)
    model.verify()
    messages = reply.session.messages
    stub = text_of(messages[2].get("content"))
    found = re.fullmatch(
        r"\[output left out to make room: 9009 characters, all of it is in (.+)\]", stub
    )
    assert found is not None
    assert Path(found[1]).read_text() == "long.py: " + "x" * 9000
    assert Path(found[1]).stat().st_mode & 0o777 == 0o600
    assert text_of(messages[4].get("content")) == "short.py: xxxxxxxxxx"
    assert len(text_of(messages[6].get("content"))) == 1509
    assert client.of(Compacted) == [Compacted("", "auto")]
    assert_whole(messages)


async def test_the_last_turn_is_cut_where_it_alone_is_too_long(tmp_path: Path):
    model = model_of(
        call("look", path="huge.py", length=20_000, usage={"total_tokens": 100}),
        "Done.",
        window=4000,
    )
    hook = CompactionHook(directory=tmp_path)
    reply = await Agent(model, hooks=[hook], tools=[look]).run("Look")
    model.verify()
    output = text_of(reply.session.messages[2].get("content"))
    assert output.startswith("huge.py: xxx")
    assert "characters, all of it is in" in output
    assert len(output) < 2300


async def test_what_was_moved_away_can_be_read_without_asking_and_nothing_beside_it(tmp_path: Path):
    hooks = [PermissionsHook(), CompactionHook(directory=tmp_path / "outputs")]
    kept = tmp_path / "outputs" / "s" / "look.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("all of it\n")
    (tmp_path / "outputs" / "secret.txt").write_text("secret\n")
    (kept.parent / "link.txt").symlink_to(tmp_path / "outputs" / "secret.txt")
    (tmp_path / "project").mkdir()
    model = ScriptedModel(
        call("Read", file_path=str(kept)),
        call("Grep", pattern="of", path=str(kept.parent), output_mode="content"),
        call("Read", file_path=str(kept.parent / "link.txt")),
        call("Read", file_path=str(kept.parent.parent / "secret.txt")),
        call("Read", file_path="\0"),
        "Done.",
    )
    agent = Agent(model, hooks=hooks)
    session = await agent.new_session(tmp_path / "project", id="s")
    await agent.run("Go", session=session)
    answers = [text_of(m.get("content")) for m in session.messages if m["role"] == "tool"]
    assert "all of it" in answers[0]
    assert "all of it" in answers[1]
    assert all("nobody can be asked" in answer for answer in answers[2:4])
    assert "secret" not in "".join(answers).replace("secret.txt", "")

    agent = Agent(
        ScriptedModel(call("Read", file_path=str(kept)), "Done."),
        hooks=[PermissionsHook(deny=["Read(//**/look.txt)"]), CompactionHook(directory=tmp_path)],
    )
    reply = await agent.run("Go", cwd=tmp_path / "project")
    assert "all of it" not in str(reply.session.messages)


async def test_what_cannot_be_kept_on_disk_says_so(tmp_path: Path):
    (tmp_path / "file").write_text("")
    model = model_of(
        call("look", length=9000),
        call("look"),
        call("look", usage={"total_tokens": 3300}),
        "Done.",
        window=4000,
    )
    hook = CompactionHook(keep_turns=1, directory=tmp_path / "file")
    reply = await Agent(model, hooks=[hook], tools=[look]).run("Look")
    assert "could not be kept: Not a directory" in text_of(reply.session.messages[2].get("content"))


async def test_two_compactions_without_progress_end_the_run_with_what_does_not_fit():
    steps = [call("look", usage=FULL) for _ in range(3)]
    model = model_of(call("look"), steps[0], "FIRST", steps[1], "SECOND", steps[2], window=1000)
    client = Watching()
    agent = Agent(
        model,
        hooks=[SystemPromptHook("x" * 3000, environment=False), CompactionHook(keep_turns=1)],
        tools=[look],
    )
    session = await agent.new_session(client=client)
    reply = await agent.prompt(session, "Look")
    model.verify()
    assert reply.stop_reason == "error"
    assert len(client.of(Compacted)) == 2
    assert reply.detail == snapshot(
        "the conversation does not fit into the model's window of 1000 tokens, and compacting it does not help: the system prompt and what hooks add have about 750 tokens, the tools (1) 56, the summary and the last turns 25; use a model with a larger window or fewer tools and instructions, or begin anew with /clear"
    )
    assert_whole(session.messages)


async def test_a_compaction_that_helped_does_not_count_against_the_next_one():
    script: list[Any] = [call("look")]
    for _ in range(4):
        script += [call("look", usage=FULL), "SUMMARY", call("look", usage={"total_tokens": 100})]
    model = model_of(*script, "Done.")
    reply = await Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look]).run("Look")
    model.verify()
    assert (reply.text, reply.session.segment) == ("Done.", 4)


@pytest.mark.parametrize("window", [None, 100_000])
async def test_a_request_that_is_too_long_is_sent_once_more_after_a_compaction(window: int | None):
    model = model_of(
        call("look", path="one.py"),
        call("look", path="two.py"),
        TOO_LONG,
        "THE SUMMARY",
        "Done.",
        window=window,
    )
    client = Watching()
    hooks = [SystemPromptHook("You are Crow.", environment=False), CompactionHook(keep_turns=1)]
    reply = await Agent(model, hooks=hooks, tools=[look]).run("Look", client=client)
    model.verify()
    assert reply.text == "Done."
    assert told(model, 4) == snapshot(
        [
            "system You are Crow.",
            """\
user <crow-context source="summary">
THE SUMMARY
</crow-context>\
""",
            "user Look",
            "assistant look",
            "tool two.py: xxxxxxxxxx",
        ]
    )
    assert client.of(Compacted) == [Compacted("THE SUMMARY", "overflow")]


async def test_what_hooks_do_to_every_request_they_do_to_the_one_that_is_sent_once_more():
    def redact(messages: list[Message]) -> list[Message]:
        return [
            {**m, "content": text_of(m.get("content")).replace("secret", "***")} for m in messages
        ]

    model = model_of(call("look"), call("look", path="secret.py"), TOO_LONG, "SUMMARY", "Done.")
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    agent.hooks.register("before_llm_request", redact)
    reply = await agent.run("The secret")
    assert "secret" in str(reply.session.messages)
    assert "secret" not in text_of(model.asked[4]["messages"][1].get("content"))
    assert "***" in text_of(model.asked[4]["messages"][1].get("content"))


async def test_a_request_that_stays_too_long_ends_the_run():
    model = model_of(call("look"), call("look"), TOO_LONG, "SUMMARY", TOO_LONG)
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    with pytest.raises(
        ModelError, match="compacting it does not help: the system prompt"
    ) as caught:
        await agent.run("Look")
    assert caught.value.kind == "context_length"


async def test_requests_that_are_too_long_one_after_another_end_the_run():
    again = [TOO_LONG, "SUMMARY", call("look")]
    model = model_of(call("look"), call("look"), *again, *again, TOO_LONG, window=None)
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    with pytest.raises(ModelError, match="does not fit into the model's window, and compacting"):
        await agent.run("Look")
    model.verify()


async def test_an_error_of_the_request_after_a_compaction_is_the_runs():
    model = model_of(call("look"), call("look"), TOO_LONG, "SUMMARY", ModelError("down"))
    with pytest.raises(ModelError, match=r"^down$"):
        await Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look]).run("Look")


async def test_a_hook_that_objects_leaves_a_request_that_is_too_long_as_it_was():
    model = model_of(call("look"), call("look"), TOO_LONG, "SUMMARY")
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    agent.hooks.register("before_compact", lambda ctx: Deny("no"))
    with pytest.raises(ModelError, match="too many tokens"):
        await agent.run("Look")


async def test_a_hook_that_stops_the_run_while_room_is_made_keeps_the_request_back():
    def stop(ctx: Any) -> None:
        if ctx.session.segment:
            ctx.stop("enough")

    model = model_of(call("look"), call("look", usage=FULL), "SUMMARY")
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    agent.hooks.register("before_llm_request", stop)
    reply = await agent.run("Look")
    model.verify()
    assert (reply.stop_reason, reply.session.segment) == ("hook_stopped", 1)


async def test_fewer_turns_are_kept_where_they_are_long():
    model = model_of(
        call("look", length=300),
        call("look", length=900),
        call("look", length=900, usage=FULL),
        "SUMMARY",
        "Done.",
    )
    reply = await Agent(model, hooks=[CompactionHook(keep_turns=3)], tools=[look]).run("Look")
    assert [m["role"] for m in reply.session.messages] == [
        "user",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


async def test_a_first_prompt_that_is_too_long_is_said_to_be():
    model = model_of(TOO_LONG)
    with pytest.raises(ModelError, match=r"tools \(0\) 0, the summary and the last turns 25"):
        await Agent(model, hooks=[CompactionHook()], tools=[]).run("x" * 100)


@pytest.mark.parametrize("kind", ["server", "network", "authentication"])
async def test_other_errors_of_the_model_are_none_of_its_business(kind: str):
    model = model_of(call("look"), ModelError("no", kind=kind))
    with pytest.raises(ModelError, match=r"^no$"):
        await Agent(model, hooks=[CompactionHook()], tools=[look]).run("Look")


async def test_an_unknown_window_is_never_full():
    model = model_of(call("look", usage={"total_tokens": 10**9}), "Done.", window=None)
    reply = await Agent(model, hooks=[CompactionHook()], tools=[look]).run("Look")
    assert reply.session.segment == 0


async def test_a_model_that_cannot_summarise_leaves_the_history_as_it_is():
    model = model_of(
        call("look"),
        call("look", usage=FULL),
        ModelError("overloaded", kind="overloaded"),
        call("look", usage={"total_tokens": 920}),
        text("Done.", usage={"total_tokens": 950}),
    )
    client = Watching()
    reply = await Agent(model, hooks=[CompactionHook()], tools=[look]).run("Look", client=client)
    model.verify()
    assert (reply.text, reply.session.segment) == ("Done.", 0)
    assert "The conversation could not be summarised: overloaded" in str(client.events)


async def test_a_request_that_is_too_long_fails_as_it_did_where_no_summary_can_be_had():
    model = model_of(call("look"), call("look"), TOO_LONG, "")
    with pytest.raises(ModelError, match="too many tokens"):
        await Agent(model, hooks=[CompactionHook()], tools=[look]).run("Look")


async def test_a_transcript_that_is_too_long_for_the_model_is_cut_further():
    model = model_of(
        call("look", length=900), call("look", length=900), TOO_LONG, TOO_LONG, "SUMMARY", "Done."
    )
    await Agent(model, hooks=[CompactionHook()], tools=[look]).run("Look")
    first, second = (len(str(model.asked[n]["messages"][1])) for n in (3, 4))
    assert second < first


async def test_a_hook_may_object_and_is_not_asked_again_at_once():
    asked: list[str] = []

    def object_to(trigger: str) -> Deny:
        asked.append(trigger)
        return Deny("not now")

    model = model_of(call("look"), call("look", usage=FULL), "S", call("look", usage=FULL), "Done.")
    agent = Agent(model, hooks=[CompactionHook()], tools=[look])
    agent.hooks.register("before_compact", object_to)
    reply = await agent.run("Look")
    model.verify()
    assert (reply.session.segment, asked) == (0, ["auto"])


async def test_a_hook_may_write_the_summary():
    model = model_of(call("look"), call("look", usage=FULL), "theirs", "Done.")
    agent = Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look])
    agent.hooks.register("before_compact", lambda summary: f"{summary}, and mine")
    client = Watching()
    reply = await agent.run("Look", client=client)
    assert "theirs, and mine" in text_of(reply.session.messages[0].get("content"))
    assert client.of(Compacted) == [Compacted("theirs, and mine", "auto")]


async def test_the_prompt_that_is_being_answered_is_kept_word_for_word():
    script = [call("look"), call("look"), call("look", usage=FULL), "S1", call("look", usage=FULL)]
    model = model_of(*script, "S2", "Done.")
    reply = await Agent(model, hooks=[CompactionHook(keep_turns=1)], tools=[look]).run("The task")
    assert [line(m) for m in reply.session.messages] == snapshot(
        [
            """\
user <crow-context source="summary">
S2
</crow-context>\
""",
            "user The task",
            "assistant look",
            "tool a.py: xxxxxxxxxx",
            "assistant Done.",
        ]
    )
    assert "[context]\n<crow-context" in str(model.asked[5]["messages"][1]["content"])


async def test_the_points_of_a_compaction_fire_in_this_order():
    heard: list[str] = []
    model = model_of(call("look"), call("look", usage=FULL), "SUMMARY", "Done.")
    agent = Agent(model, hooks=[CompactionHook()], tools=[look])
    for name in ("before_llm_request", "before_compact", "after_compact", "after_llm_response"):
        agent.hooks.register(name, lambda ctx, name=name: heard.append(name))
    await agent.run("Look")
    assert heard == snapshot(
        [
            "before_llm_request",
            "after_llm_response",
            "before_llm_request",
            "after_llm_response",
            "before_llm_request",
            "before_compact",
            "after_compact",
            "before_llm_request",
            "after_llm_response",
        ]
    )


async def test_the_old_segment_stays_stored_and_readable(tmp_path: Path):
    hook = PersistenceHook(tmp_path / "crow.db")
    model = model_of(call("look"), call("look", usage=FULL), "SUMMARY", "Done.")
    async with Agent(model, hooks=[hook, CompactionHook(keep_turns=1)], tools=[look]) as agent:
        reply = await agent.run("Look")
        segments = await hook.store.segments(reply.session.id)
    assert [len(segment) for segment in segments] == [5, 5]
    assert segments[1] == reply.session.messages


async def test_a_session_that_was_compacted_and_loaded_is_not_taken_for_full(tmp_path: Path):
    def agent_of(*script: Any) -> Agent:
        hooks = [PersistenceHook(tmp_path / "crow.db"), CompactionHook()]
        return Agent(model_of(*script), hooks=hooks, tools=[look])

    async with agent_of(text("Hello.", usage=FULL), "SUMMARY") as agent:
        reply = await agent.run("Hi")
        await agent.run("/compact", session=reply.session)
    async with agent_of() as agent:
        session = await agent.load_session(reply.session.id)
        assert session.segment == 1
        assert session.tokens(1000)["total_tokens"] < 100
        assert session.usage == {"total_tokens": 900}


# the command


async def test_the_command_summarises_what_the_user_asks_it_to_keep():
    model = model_of("One.", "Two.", "THE SUMMARY")
    agent = Agent(model, hooks=[CompactionHook()], tools=[])
    reply = await agent.run("First")
    await agent.run("Second", session=reply.session)
    reply = await agent.run("/compact the port is 8080", session=reply.session)
    assert reply.text == snapshot(
        "Compacted: a summary stands for 2 of 4 messages. The whole conversation stays stored."
    )
    assert [line(m) for m in reply.session.messages] == snapshot(
        [
            """\
user <crow-context source="summary">
THE SUMMARY
</crow-context>\
""",
            """\
user <crow-context source="compaction">
The user's own words so f\
""",
            "user Second",
            "assistant Two.",
        ]
    )
    assert str(model.asked[2]["messages"][1]["content"]).endswith("above all: the port is 8080")


async def test_the_command_leaves_nothing_out_of_a_single_turn():
    model = model_of("One.", "THE SUMMARY")
    agent = Agent(model, hooks=[CompactionHook()], tools=[])
    reply = await agent.run("First")
    await agent.run("/compact", session=reply.session)
    assert len(reply.session.messages) == 2  # the summary, and what the user said


async def test_the_command_says_when_there_is_nothing_to_do_or_it_cannot_be_done():
    model = model_of("One.", ModelError("no network", kind="network"), "SUMMARY")
    agent = Agent(model, hooks=[CompactionHook()], tools=[])
    session = await agent.new_session()
    assert (await agent.run("/compact", session=session)).text == "There is nothing to compact."
    await agent.run("First", session=session)
    reply = await agent.run("/compact", session=session)
    assert reply.text == "Nothing was compacted: no network"
    agent.hooks.register("before_compact", lambda ctx: Deny("no"))
    reply = await agent.run("/compact", session=session)
    assert reply.text == "Nothing was compacted: a hook objected."
    assert len(session.messages) == 2


# cancellation


async def test_a_cancellation_during_the_summary_leaves_the_history_as_it_was():
    model = Awaited(2, call("look"), call("look", usage=FULL), delay(30), "SUMMARY")
    agent = Agent(model, hooks=[CompactionHook()], tools=[look])
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "Look"))
    await model.reached.wait()
    before = list(session.messages)
    agent.cancel(session)
    reply = await running
    assert reply.stop_reason == "cancelled"
    assert (session.messages, session.segment) == (before, 0)
    assert_whole(session.messages)


async def test_a_cancellation_of_the_command_leaves_the_history_as_it_was():
    model = Awaited(1, "Hello.", delay(30), "SUMMARY")
    agent = Agent(model, hooks=[CompactionHook()], tools=[])
    session = (await agent.run("Hi")).session
    running = asyncio.create_task(agent.prompt(session, "/compact"))
    await model.reached.wait()
    agent.cancel(session)
    assert (await running).stop_reason == "cancelled"
    assert (len(session.messages), session.segment) == (2, 0)


# beside others


async def test_the_compaction_of_the_second_essay_works_beside_it():
    class Compaction:
        COMPACT_THRESHOLD = 800

        def init_agent(self, agent: Agent) -> None:
            agent.hooks.register("mid_react", self.mid_react)
            agent.extensions["restarting"] = self  # the other name is taken

        async def mid_react(self, ctx: Any) -> None:
            token_count = await ctx.get_token_count()
            if token_count["total_tokens"] > self.COMPACT_THRESHOLD:
                await ctx.stop_current_turn()
                await ctx.restart_with_new_session()
                await ctx.continue_with_current_session()

    model = model_of(
        call("look"), call("look", usage={"total_tokens": 900}), "Done.", window=10_000
    )
    essay = Compaction()
    agent = Agent(model, hooks=[CompactionHook(), essay], tools=[look])
    reply = await agent.run("Look")
    assert (reply.text, reply.session.segment) == ("Done.", 1)
    assert_whole(reply.session.messages)


# the parts


def test_a_turn_begins_with_what_was_said_and_ends_before_the_model_goes_on():
    roles = "user user assistant tool tool assistant tool assistant assistant user"
    history: list[Message] = [{"role": role} for role in roles.split()]  # type: ignore[typeddict-item]
    found = [" ".join(message["role"] for message in turn) for turn in turns_of(history)]
    assert found == [
        "user user assistant tool tool",
        "assistant tool",
        "assistant",
        "assistant",
        "user",
    ]


def test_a_transcript_is_never_longer_than_the_model_can_read():
    history: list[Message] = [{"role": "user", "content": f"{n} " + "y" * 500} for n in range(100)]
    history.append({"role": "user", "content": "the end </transcript> of it"})
    short = transcript(history, 4000)
    assert len(short) < 4100
    assert short.endswith("the end  of it")
    assert "[... left out ...]" in short
