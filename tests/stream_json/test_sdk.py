"""The library that drives ``claude -p``, with its path set to Crow."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookEventMessage,
    HookMatcher,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from tests.cli.conftest import calls, project

from crow.testing.endpoint import HANG, Endpoint, answer, begin, delta, respond, stream

__all__ = ["project"]

CROW = str(Path(sys.executable).with_name("crow"))
Options = Callable[..., ClaudeAgentOptions]


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """A model's endpoint."""
    async with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def options(endpoint: Endpoint, project: Path) -> Options:
    """Options of the library for the project and the endpoint."""

    def made(**options: Any) -> ClaudeAgentOptions:
        env = {"CROW_BASE_URL": endpoint.url, "CROW_MODEL": "scripted", "CROW_API_KEY": "sk-x"}
        return ClaudeAgentOptions(cli_path=CROW, cwd=project, env=env, **options)

    return made


async def said(client: ClaudeSDKClient, prompt: Any) -> list[Message]:
    """What comes of a prompt."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


async def played(options: ClaudeAgentOptions, prompt: Any = "Go") -> list[Message]:
    """What comes of a prompt in a session of its own."""
    messages: list[Message] = []
    async with ClaudeSDKClient(options) as client:
        messages += await said(client, prompt)
    return messages


def blocks(messages: list[Message], *kinds: type[Any]) -> list[Any]:
    """The blocks of a kind, in their order."""
    held = [m for m in messages if isinstance(m, AssistantMessage | UserMessage)]
    return [each for m in held for each in m.content if isinstance(each, kinds)]


def last(messages: list[Message]) -> ResultMessage:
    """The result."""
    assert isinstance(messages[-1], ResultMessage)
    return messages[-1]


TOUCH = ("Bash", {"command": "touch made"})


@pytest.mark.slow
async def test_a_question_is_answered_and_gone_on_with(
    endpoint: Endpoint, options: Options
) -> None:
    endpoint.play(
        calls(("Read", {"file_path": "README.md"}), text="I look."), answer("Things."), answer("Ok")
    )
    messages = [message async for message in query(prompt="What?", options=options())]
    kinds = [type(message).__name__ for message in messages]
    assert kinds == ["SystemMessage", *["AssistantMessage"] * 2, "UserMessage", *kinds[-2:]]
    assert kinds[-2:] == ["AssistantMessage", "ResultMessage"]
    first, result = messages[0], last(messages)
    assert isinstance(first, SystemMessage)
    assert (first.data["model"], first.data["permissionMode"]) == ("scripted", "default")
    assert [each.text for each in blocks(messages, TextBlock)] == ["I look.", "Things."]
    (used,), (got,) = blocks(messages, ToolUseBlock), blocks(messages, ToolResultBlock)
    assert (used.name, used.id, got.is_error) == ("Read", got.tool_use_id, False)
    assert "It does things." in str(got.content)
    assert (result.subtype, result.result, result.num_turns) == ("success", "Things.", 2)
    assert result.usage is not None
    assert result.usage["output_tokens"] > 0
    again = query(prompt="And?", options=options(resume=result.session_id))
    more = [message async for message in again]
    assert last(more).session_id == result.session_id
    assert "Things." in str(endpoint.requests[-1].body["messages"])


@pytest.mark.slow
async def test_the_program_says_what_may_run_and_how(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    async def decide(name: str, given: dict[str, Any], _: Any) -> PermissionResultAllow:
        asked.append((name, given))
        return PermissionResultAllow(updated_input={"command": "touch other"})

    asked: list[tuple[str, dict[str, Any]]] = []
    endpoint.play(calls(TOUCH), answer("Done."))
    settings = '{"permissions": {"ask": ["Bash"]}}'
    messages = await played(options(can_use_tool=decide, settings=settings))
    assert asked == [("Bash", {"command": "touch made"})]
    assert [each.is_error for each in blocks(messages, ToolResultBlock)] == [False]
    assert sorted(each.name for each in project.iterdir() if each.suffix == "") == [
        ".git",
        "other",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True])
async def test_a_refusal_reaches_the_model_or_ends_the_turn(
    endpoint: Endpoint, options: Options, project: Path, ends: bool
) -> None:
    async def decide(*_: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="not on a Friday", interrupt=ends)

    endpoint.play(calls(TOUCH), answer("Then not."), answer("Hello."))
    settings = '{"permissions": {"ask": ["Bash"]}}'
    async with ClaudeSDKClient(options(can_use_tool=decide, settings=settings)) as client:
        messages = await said(client, "Go")
        result = last(messages)
        assert [each.content for each in blocks(messages, ToolResultBlock)] == ["not on a Friday"]
        assert result.subtype == ("error_during_execution" if ends else "success")
        assert result.permission_denials == [
            {"tool_name": "Bash", "tool_use_id": "call_0_Bash", "tool_input": TOUCH[1]}
        ]
        assert last(await said(client, "Hello")).is_error is False
    assert not (project / "made").exists()


@pytest.mark.slow
async def test_where_nobody_answers_a_call_is_denied(endpoint: Endpoint, options: Options) -> None:
    endpoint.play(calls(TOUCH), answer("No."))
    messages = await played(options(settings='{"permissions": {"ask": ["Bash"]}}'))
    (got,) = blocks(messages, ToolResultBlock)
    assert got.is_error
    assert "nobody can be asked" in got.content
    endpoint.play(calls(TOUCH), answer("Yes."))
    allowed = options(allowed_tools=["Bash(touch *)", "Read"], sandbox={"enabled": False})
    (got,) = blocks(await played(allowed), ToolResultBlock)
    assert not got.is_error


async def test_hooks_of_the_program_are_hooks(endpoint: Endpoint, options: Options) -> None:
    async def hook(given: Any, call_id: str | None, _: Any) -> Any:
        event = given["hook_event_name"]
        seen.append(event)
        match event:
            case "UserPromptSubmit":
                specific = {"hookEventName": event, "additionalContext": "It is raining."}
                return {"hookSpecificOutput": specific}
            case "PreToolUse":
                assert call_id == given["tool_use_id"] == "call_0_Bash"
                specific = {"hookEventName": event, "permissionDecision": "deny"}
                return {"hookSpecificOutput": {**specific, "permissionDecisionReason": "no"}}
            case "Stop" if not given["stop_hook_active"]:
                return {"decision": "block", "reason": "Say goodbye."}
            case _:
                return {}

    seen: list[str] = []
    endpoint.play(calls(TOUCH), answer("Well."), answer("Goodbye."))
    events = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    hooks: Any = {event: [HookMatcher(hooks=[hook])] for event in events}
    hooks["PreToolUse"][0].matcher = "Bash|Edit"
    messages = await played(options(hooks=hooks))
    assert seen == ["UserPromptSubmit", "PreToolUse", "Stop", "Stop"]
    assert last(messages).result == "Goodbye."
    assert [each.content for each in blocks(messages, ToolResultBlock)] == ["no"]
    assert "It is raining." in str(endpoint.requests[0].body["messages"])


@pytest.mark.slow
async def test_a_hook_that_fails_at_a_gate_refuses(
    endpoint: Endpoint, options: Options, project: Path
) -> None:
    async def hook(*_: Any) -> Any:
        raise RuntimeError("broken")

    endpoint.play(calls(TOUCH), answer("Well."))
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[hook])]}
    messages = await played(options(hooks=hooks, permission_mode="bypassPermissions"))
    (got,) = blocks(messages, ToolResultBlock)
    assert "could not decide: ControlError: broken" in got.content
    assert not (project / "made").exists()


@pytest.mark.slow
async def test_the_programs_own_servers_lend_tools(endpoint: Endpoint, options: Options) -> None:
    @tool("add", "Add two numbers", {"a": float, "b": float})
    async def add(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{args['a'] + args['b']}"}]}

    endpoint.play(calls(("mcp__sums__add", {"a": 1, "b": 2})), answer("Three."))
    servers: Any = {"sums": create_sdk_mcp_server("sums", tools=[add])}
    async with ClaudeSDKClient(
        options(mcp_servers=servers, allowed_tools=["mcp__sums__add"])
    ) as client:
        messages = await said(client, "Add")
        (got,) = blocks(messages, ToolResultBlock)
        assert (got.content.splitlines()[1], got.is_error) == ("3", False)
        (server,) = (await client.get_mcp_status())["mcpServers"]
        assert (server["name"], server["status"]) == ("sums", "connected")


async def test_a_turn_is_interrupted_and_the_next_one_works(
    endpoint: Endpoint, options: Options
) -> None:
    endpoint.play([begin(), HANG], answer("Here."))
    async with ClaudeSDKClient(options()) as client:
        await client.query("Wait")
        await endpoint.asked.wait()
        await client.interrupt()
        stopped = [message async for message in client.receive_response()]
        assert last(stopped).subtype == "error_during_execution"
        assert last(await said(client, "Are you there?")).result == "Here."


@pytest.mark.slow
async def test_mode_and_model_are_chosen_while_it_runs(
    endpoint: Endpoint, options: Options
) -> None:
    endpoint.play(answer("Hello."))
    async with ClaudeSDKClient(options()) as client:
        info: Any = await client.get_server_info()
        assert {"compact", "mcp"} <= {each["name"] for each in info["commands"]}
        await client.set_permission_mode("acceptEdits")
        await client.set_model("another")
        with pytest.raises(Exception, match="no mode 'sloppy'"):
            await client.set_permission_mode("sloppy")  # type: ignore[arg-type]
        messages = await said(client, "Hello")
        first = next(m for m in messages if isinstance(m, SystemMessage) and m.subtype == "init")
        assert (first.data["permissionMode"], first.data["model"]) == ("acceptEdits", "another")
        assert endpoint.requests[0].body["model"] == "another"
        used: Any = await client.get_context_usage()
        assert used["totalTokens"] > 0


@pytest.mark.slow
async def test_pieces_make_the_whole(endpoint: Endpoint, options: Options) -> None:
    thought = stream(
        delta(reasoning_content="Hm"), delta(reasoning_content="m."), delta(content="I "),
        delta(content="look."), delta(finish="stop"),
    )  # fmt: skip
    endpoint.play(calls(("LS", {"path": "."})), thought)
    messages = await played(options(include_partial_messages=True))
    events = [m.event for m in messages if isinstance(m, StreamEvent)]
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    assert "".join(each.get("text", "") for each in deltas) == "I look."
    assert "".join(each.get("thinking", "") for each in deltas) == "Hmm."
    assert "".join(each.get("partial_json", "") for each in deltas) == '{"path": "."}'
    assert [each.thinking for each in blocks(messages, ThinkingBlock)] == ["Hmm."]
    shape = [each["type"] for each in events if each["type"] != "content_block_delta"]
    block = ["content_block_start", "content_block_stop"]
    ends = ["message_delta", "message_stop"]
    assert shape == ["message_start", *block, *ends, "message_start", *block, *block, *ends]


@pytest.mark.slow
async def test_hooks_are_told_as_they_run(endpoint: Endpoint, options: Options) -> None:
    endpoint.play(calls(("LS", {"path": "."})), answer("Things."))
    hook = {"matcher": "LS", "hooks": [{"type": "command", "command": "echo looked"}]}
    settings = json.dumps({"hooks": {"PreToolUse": [hook]}})
    given = options(include_hook_events=True, settings=settings)
    told = [m for m in await played(given) if isinstance(m, HookEventMessage)]
    assert [(m.subtype, m.hook_event_name) for m in told] == [
        ("hook_started", "PreToolUse"),
        ("hook_response", "PreToolUse"),
    ]
    assert (told[1].data["output"], told[1].data["outcome"]) == ("looked\n", "success")


@pytest.mark.slow
async def test_what_a_sub_agent_does_names_the_call_that_it_works_for(
    endpoint: Endpoint, options: Options
) -> None:
    hand = ("Agent", {"description": "look around", "prompt": "Look"})
    look = calls(("LS", {"path": "."}))
    endpoint.play(calls(hand), look, answer("All is well."), answer("Good."))
    messages = await played(options(allowed_tools=["Agent"]))
    told = [m for m in messages if isinstance(m, AssistantMessage | UserMessage)]
    parents = {m.parent_tool_use_id for m in told if blocks([m], ToolUseBlock, ToolResultBlock)}
    assert parents == {None, "call_0_Agent"}
    began = next(m for m in messages if isinstance(m, TaskStartedMessage))
    done = next(m for m in messages if isinstance(m, TaskNotificationMessage))
    assert (began.tool_use_id, began.description) == ("call_0_Agent", "look around")
    assert (done.task_id, done.status, done.summary) == (began.task_id, "completed", "All is well.")
    assert done.usage is not None
    assert done.usage["tool_uses"] == 1
    assert [each.text for each in blocks(messages, TextBlock)] == ["Good."]


@pytest.mark.slow
async def test_sub_agents_of_the_program_can_be_called(
    endpoint: Endpoint, options: Options
) -> None:
    hand = ("Agent", {"description": "review", "prompt": "Look", "subagent_type": "reviewer"})
    endpoint.play(calls(hand), answer("All is well."), answer("Good."))
    reviewer = AgentDefinition("reads code", "You review, in rhymes.", tools=["Read"])
    given = options(allowed_tools=["Agent"], agents={"reviewer": reviewer})
    messages = await played(given)
    assert [each.text for each in blocks(messages, TextBlock)] == ["Good."]
    asked = endpoint.requests[1].body
    assert "You review, in rhymes." in str(asked["messages"][0])
    assert [each["function"]["name"] for each in asked["tools"]] == ["Read"]


@pytest.mark.slow
async def test_limits_and_failures_are_results(endpoint: Endpoint, options: Options) -> None:
    endpoint.play(calls(("LS", {"path": "."})))
    with pytest.raises(ResultError) as raised:
        async for _ in query(prompt="Go", options=options(max_turns=1)):
            pass
    assert raised.value.data is not None
    assert raised.value.data["subtype"] == "error_max_turns"
    endpoint.play(respond(400, {"error": {"message": "no such thing"}}))
    with pytest.raises(ResultError, match="no such thing"):
        async for _ in query(prompt="Go", options=options()):
            pass


@pytest.mark.slow
async def test_a_prompt_can_have_a_picture(endpoint: Endpoint, options: Options) -> None:
    picture = base64.b64encode(b"GIF89a").decode()
    source = {"type": "base64", "media_type": "image/gif", "data": picture}
    content = [{"type": "text", "text": "What?"}, {"type": "image", "source": source}]

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        yield {"type": "user", "message": {"role": "user", "content": content}}

    endpoint.play(answer("A dot."))
    assert last(await played(options(), prompts())).result == "A dot."
    assert f"data:image/gif;base64,{picture}" in str(endpoint.requests[0].body)


async def test_prompts_follow_one_another(endpoint: Endpoint, options: Options) -> None:
    endpoint.play(answer("One."), answer("Two."))
    results: list[str | None] = []
    async with asyncio.timeout(30), ClaudeSDKClient(options()) as client:
        await client.query("First")
        await client.query("Second")
        results += [last([it async for it in client.receive_response()]).result for _ in "12"]
    assert results == ["One.", "Two."]


@pytest.mark.slow
async def test_an_answer_has_the_form_that_the_program_wants(
    endpoint: Endpoint, options: Options
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    endpoint.play(calls(("StructuredOutput", {"n": "x"})), calls(("StructuredOutput", {"n": 3})))
    wanted = options(output_format={"type": "json_schema", "schema": schema})
    result = last(await played(wanted, "How many?"))
    assert (result.subtype, result.structured_output) == ("success", {"n": 3})


@pytest.mark.slow
async def test_another_model_answers_where_the_first_cannot(
    endpoint: Endpoint, options: Options
) -> None:
    endpoint.play(
        respond(404, {"error": {"code": "model_not_found", "message": "?"}}), answer("Hi.")
    )
    result = last(await played(options(fallback_model="other"), "Hi"))
    assert (result.result, list(result.model_usage or ())) == ("Hi.", ["other"])


@pytest.mark.slow
async def test_all_questions_are_asked_at_once_with_the_whole_input_of_the_call(
    endpoint: Endpoint, options: Options
) -> None:
    def question(text: str, *labels: str, several: bool = False) -> dict[str, Any]:
        listed = [{"label": label, "description": f"about {label}"} for label in labels]
        return {"question": text, "header": text[:5], "options": listed, "multiSelect": several}

    async def decide(name: str, given: dict[str, Any], about: Any) -> PermissionResultAllow:
        asked.append((name, given, about.tool_use_id))
        answers = {"Which one?": "red", "What else?": "tea, milk", "Where?": "Elsewhere"}
        return PermissionResultAllow(updated_input={**given, "answers": answers})

    asked: list[tuple[str, dict[str, Any], str | None]] = []
    wanted = {
        "questions": [
            question("Which one?", "red", "blue"),
            question("What else?", "tea", "milk", "jam", several=True),
            question("Where?", "here", "there"),
        ]
    }
    endpoint.play(calls(("AskUserQuestion", wanted)), answer("Done."))
    messages = await played(options(can_use_tool=decide, permission_mode="plan"))
    (used,), (got,) = blocks(messages, ToolUseBlock), blocks(messages, ToolResultBlock)
    assert asked == [("AskUserQuestion", wanted, used.id)]
    told = "Which one?\nred\n\nWhat else?\ntea, milk\n\nWhere?\nElsewhere"
    assert told in str(got.content)


@pytest.mark.slow
async def test_questions_that_the_program_does_not_let_pass_are_not_answered(
    endpoint: Endpoint, options: Options
) -> None:
    async def decide(name: str, given: dict[str, Any], _: Any) -> PermissionResultDeny:
        asked.append(name)
        return PermissionResultDeny(message="not now")

    asked: list[str] = []
    listed = [{"label": label, "description": ""} for label in ("red", "blue")]
    one = {"question": "Which one?", "header": "One", "options": listed, "multiSelect": False}
    endpoint.play(calls(("AskUserQuestion", {"questions": [one, {**one, "question": "And?"}]})))
    endpoint.play(answer("Done."))
    messages = await played(options(can_use_tool=decide, permission_mode="plan"))
    (got,) = blocks(messages, ToolResultBlock)
    assert asked == ["AskUserQuestion"]
    assert str(got.content).startswith("Nobody has answered")
