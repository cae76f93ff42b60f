"""What Claude Code's settings say: honoured, or named once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import Endpoint, answer, respond


def write(table: object, folder: Path | None = None) -> None:
    path = (folder or Path.home()) / ".claude/settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(table))


async def test_what_is_left_out_is_said_once(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(*[answer("Done.")] * 4)
    write({"theme": "dark", "verbose": True, "autoMode": {}, "nonsense": 1})
    first = await crow("-p", "hi")
    assert (first.out, first.status) == ("Done.\n", 0)
    assert first.err.splitlines() == [
        (
            "~/.claude/settings.json: theme, verbose: it is about Claude Code's own screen; Crow's is in "
            "docs/terminal.md"
        ),
        (
            "~/.claude/settings.json: autoMode: nobody judges calls in your place: rules say what may run "
            "(crow permissions list)"
        ),
        "~/.claude/settings.json: nonsense: Crow does not know it, and takes nothing from it",
    ]
    assert (await crow("-p", "hi")).err == ""
    write({"theme": "dark", "includeCoAuthoredBy": False, "tui": "fullscreen"})
    again = await crow("-p", "hi")
    assert again.err.startswith("~/.claude/settings.json: tui: it is about")
    shown = await crow("config")
    assert "docs/terminal.md" in shown.out


async def test_all_keys_together_are_ten_lines(crow: Crow, endpoint: Endpoint) -> None:
    from crow.settings.foreign import LEFT

    endpoint.play(answer("Done."))
    every = {key: "x" for keys in LEFT.values() for key in keys}
    write(every | {"fallbackModel": ["x"], "nonsense": 1})
    ended = await crow("-p", "hi")
    assert len(ended.err.splitlines()) <= 10
    assert max(map(len, ended.err.splitlines())) < 400


async def test_texts_for_commits_the_language_and_left_out_files_reach_the_model(
    crow: Crow, endpoint: Endpoint
) -> None:
    for name in ("one", "two"):
        (crow.cwd / name).mkdir()
    (crow.cwd / "CLAUDE.md").write_text("Use tabs.")
    (crow.cwd / "AGENTS.md").write_text("Use blanks.")
    write(
        {
            "language": "Latin",
            "attribution": {"commit": "By-Hand-Of: Ada", "pr": ""},
            "claudeMdExcludes": ["**/CLAUDE.md"],
        }
    )
    endpoint.play(answer("Salve."))
    ended = await crow("-p", "hi")
    told = endpoint.requests[0].body["messages"][0]["content"]
    assert ended.err == ""
    assert "in this language: Latin." in told
    assert (
        "The message of a git commit ends with these lines, as they are:\nBy-Hand-Of: Ada" in told
    )
    assert ("Use blanks." in told, "Use tabs." in told, "pull request" in told) == (
        True,
        False,
        False,
    )


async def test_the_model_of_claude_counts_where_nobody_names_another(
    crow: Crow, endpoint: Endpoint
) -> None:
    write({"model": "opus"})
    endpoint.play(answer("Done."))
    ended = await crow("-p", "hi", "--output-format", "stream-json")
    assert ended.events[0]["model"] == "scripted"
    for name in ("CROW_MODEL", "CROW_BASE_URL", "CROW_API_KEY"):
        crow.env.pop(name)
    ended = await crow("-p", "Read the file a", "--output-format", "stream-json")
    assert "'model', 'params'" in ended.err
    assert ended.events[0]["model"] == "rehearsal"
    assert "'model', 'params'" not in (await crow("-p", "hi")).err
    assert "opus" in (shown := (await crow("config")).out)
    assert "there is no key for it" in shown
    place = {"ANTHROPIC_BASE_URL": endpoint.url.removesuffix("/v1")}
    with_key = {"ANTHROPIC_API_KEY": "k", **place}
    ended = await crow("-p", "hi", "--output-format", "stream-json", **with_key)
    assert ended.events[0]["model"].startswith("claude-opus-")
    write({"model": "claude-sonnet-4-5[1m]", "apiKeyHelper": "echo k", "env": place})
    ended = await crow("-p", "hi", "--output-format", "stream-json")
    assert ended.events[0]["model"] == "claude-sonnet-4-5"


async def test_how_hard_models_think_is_said_to_those_that_do(
    crow: Crow, endpoint: Endpoint
) -> None:
    write({"effortLevel": "high"})
    endpoint.play(*[answer("Done.")] * 3)
    place = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": endpoint.url}
    assert (await crow("-p", "hi")).err == ""
    for name in ("CROW_BASE_URL", "CROW_MODEL", "CROW_API_KEY"):
        crow.env.pop(name)
    write({"effortLevel": "high", "env": place})
    own = {"providers": {"openai": {"base_url": endpoint.url, "wire": "chat"}}}
    given = ("-p", "hi", "--model", "openai/gpt-5", "--settings", json.dumps(own))
    await crow(*given)
    await crow(*given, "--effort", "low")
    efforts = [each.body.get("reasoning_effort") for each in endpoint.requests]
    assert efforts == [None, "high", "low"]


async def test_other_models_answer_as_the_settings_say(crow: Crow, endpoint: Endpoint) -> None:
    write({"fallbackModel": ["first", "second"]})
    gone = respond(404, {"error": {"message": "no such model", "code": "model_not_found"}})
    endpoint.play(gone, gone, answer("Hello."))
    ended = await crow("-p", "hi")
    assert ended.out == "Hello.\n"
    asked = [each.body["model"] for each in endpoint.requests]
    assert asked == ["scripted", "first", "second"]
    endpoint.play(gone, answer("Hello."))
    await crow("-p", "hi", "--fallback-model", "third")
    assert endpoint.requests[-1].body["model"] == "third"


async def test_a_model_that_nobody_can_ask_is_said_once(crow: Crow) -> None:
    write({"fallbackModel": ["sonnet", "nobody/x"]})
    for name in ("CROW_BASE_URL", "CROW_API_KEY", "CROW_MODEL"):
        crow.env.pop(name)
    said = [(await crow("-p", "hi", "--model", "rehearsal")).err for _ in range(2)]
    assert ["fallbackModel: the model and how hard" in each for each in said] == [True, False]


async def test_variables_reach_what_crow_starts(crow: Crow, endpoint: Endpoint) -> None:
    write({"env": {"PORT": 3000}})
    endpoint.play(calls(("Bash", {"command": "echo port=$PORT"})), answer("Done."))
    await crow("-p", "go", "--allow", "Bash")
    assert "port=3000" in str(endpoint.requests[1].body["messages"][-1])


pytestmark = pytest.mark.usefixtures("endpoint")
