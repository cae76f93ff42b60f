"""Options that people know from Claude Code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here, calls

from crow.cli.claude_options import names_in
from crow.testing.endpoint import Endpoint, answer, respond

RAW = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"
TOUCH = ("Bash", {"command": "touch made"})


@pytest.mark.slow
async def test_what_is_to_be_done_needs_no_command(crow: Crow, endpoint: Endpoint) -> None:
    for words in (("-p", "fix it"), ("--print", "fix it"), ("fix it",)):
        endpoint.play(answer("Fixed."))
        ended = await crow(*words)
        assert (ended.out, ended.status) == ("Fixed.\n", 0)
    assert (await crow("fixit")).status == 2


@pytest.mark.slow
async def test_sessions_go_on_by_short_options(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("One."), answer("Two."), answer("Three."), answer("Four."))
    name = "0" * 31 + "7"
    await crow("-p", "first", "--session-id", name)
    again = await crow("-p", "-c", "second", "--output-format", "json")
    assert again.events[0]["session_id"] == name
    again = await crow("-p", "-r", name[:8], "third", "--output-format", "json")
    assert again.events[0]["session_id"] == name
    forked = await crow("-p", "-r", name, "--fork-session", "fourth", "--output-format", "json")
    assert forked.events[0]["session_id"] != name
    assert "Three." in str(endpoint.requests[-1].body["messages"])
    taken = await crow("-p", "x", "--session-id", name)
    assert (await crow("-p", "x", "--session-id", "../up")).status == 2
    assert (taken.status, f"there is a session {name!r} already" in taken.err) == (1, True)


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (("--allowedTools", "Bash(touch *),Edit"), True),
        (("--allowed-tools", "Edit", "Bash(touch *)"), True),
        (("--permission-mode", "bypassPermissions"), True),
        (("--dangerously-skip-permissions",), True),
        (("--allow-dangerously-skip-permissions",), False),
        (("--dangerously-skip-permissions", "--disallowedTools", "Bash(touch *)"), False),
        (("--dangerously-skip-permissions", "--tools", "Read,Edit"), False),
    ],
)
async def test_what_may_run_is_said_in_their_words(
    crow: Crow, endpoint: Endpoint, options: tuple[str, ...], runs: bool
) -> None:
    endpoint.play(calls(TOUCH), answer("Done."))
    await crow("-p", "go", *options)
    assert (crow.cwd / "made").exists() is runs
    if "--tools" in options:
        lent = {each["function"]["name"] for each in endpoint.requests[0].body["tools"]}
        assert lent == {"Read", "Edit"}


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "option", ["--allowedTools", "--disallowedTools", "--tools", "--add-dir", "--mcp-config"]
)
async def test_a_prompt_stands_behind_two_dashes_where_an_option_takes_all_words(
    crow: Crow, endpoint: Endpoint, option: str
) -> None:
    (crow.cwd / "Read").mkdir()
    (crow.cwd / "mcp.json").write_text('{"mcpServers": {}}')
    word = "mcp.json" if option == "--mcp-config" else "Read"
    for given in (("-p", option, word, "--", "-x is what?"), ("run", option, word, "--", "hi")):
        endpoint.play(answer("Done."))
        ended = await crow(*given)
        assert (ended.out, ended.status) == ("Done.\n", 0)
        assert endpoint.requests[-1].body["messages"][-1]["content"] == given[-1]
    swallowed = await crow("-p", option, word, "hi")
    assert swallowed.status == 2
    assert f"behind {option} it stands after --" in swallowed.complaint


async def test_the_model_is_told_what_an_option_says(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("Arr."), answer("Arr."))
    await crow("-p", "hi", "--system-prompt", "You are a pirate.", "--effort", "high")
    body = endpoint.requests[0].body
    assert body["messages"][0]["content"].startswith("You are a pirate.")
    assert body["reasoning_effort"] == "high"
    await crow("-p", "hi", "--append-system-prompt", "Talk like a pirate.")
    (crow.cwd / "prompt.txt").write_text("You are a parrot.")
    endpoint.play(answer("Arr."))
    await crow("-p", "hi", "--system-prompt-file", "prompt.txt")
    assert endpoint.requests[2].body["messages"][0]["content"].startswith("You are a parrot.")
    told = endpoint.requests[1].body["messages"][0]["content"]
    assert told.startswith("You are Crow")
    assert "Talk like a pirate." in told


async def test_limits_are_those_of_one_run(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(("LS", {"path": "."})), answer("Never."))
    ended = await crow("-p", "go", "--max-turns", "1")
    assert (ended.status, len(endpoint.requests)) == (1, 1)


@pytest.mark.slow
async def test_directories_beside_are_worked_in(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("beside")
    endpoint.play(calls(("Read", {"file_path": str(other / "a.txt")})), answer("Yes."))
    await crow("-p", "read", "--add-dir", str(other))
    assert "beside" in str(endpoint.requests[1].body["messages"][-1])
    missing = await crow("-p", "read", "--add-dir", "nowhere")
    assert (missing.status, "there is no directory 'nowhere'" in missing.err) == (2, True)


@pytest.mark.slow
async def test_settings_files_are_chosen_by_layer(crow: Crow, endpoint: Endpoint) -> None:
    folder = Path.home() / ".crow"
    folder.mkdir()
    rules = {"permissions": {"allow": ["Bash(touch *)"]}}
    (folder / "settings.json").write_text(json.dumps(rules))
    for sources, runs in (("project,local", False), ("user", True)):
        endpoint.play(calls(TOUCH), answer("Done."))
        await crow("-p", "go", "--setting-sources", sources)
        assert (crow.cwd / "made").exists() is runs
    wrong = await crow("-p", "go", "--setting-sources", "mine")
    assert "--setting-sources takes user, project, local, not 'mine'" in wrong.err


async def test_servers_are_named_by_file_or_as_json(here: Here, tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": {"one": {"command": "one"}}}')
    other = '{"mcpServers": {"two": {"command": "two"}}}'
    missing = await here("run", "hi", "--mcp-config", "none.json")
    assert "--mcp-config none.json: No such file or directory" in missing.err
    wrong = await here("run", "hi", "--mcp-config", "{}")
    assert "needs a table 'mcpServers'" in wrong.err
    from argparse import Namespace

    from crow.cli.claude_options import servers_of

    assert list(servers_of(Namespace(mcp_config=[str(file), other]))) == ["one", "two"]


def test_rules_keep_their_own_commas_and_blanks() -> None:
    assert names_in(["Bash(git log:*, -n),Edit Read", "Write"]) == [
        "Bash(git log:*, -n)",
        "Edit",
        "Read",
        "Write",
    ]


MISSING = respond(404, {"error": {"message": "no such model", "code": "model_not_found"}})
COUNT = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


@pytest.mark.slow
async def test_no_other_servers_are_used_than_those_that_are_named(
    crow: Crow, endpoint: Endpoint, home: Path
) -> None:
    server = [sys.executable, "-SE", str(RAW), "{}"]
    described = {"command": server[0], "args": server[1:]}
    folder = home / ".crow"
    folder.mkdir(exist_ok=True)
    settings = json.dumps({"mcpServers": {"theirs": described}})
    (folder / "settings.json").write_text(settings)
    mine = json.dumps({"mcpServers": {"mine": described}})
    for strict, servers in ((), {"mine", "theirs"}), (("--strict-mcp-config",), {"mine"}):
        endpoint.play(answer("Hello."))
        await crow("-p", "go", *strict, "--mcp-config", mine, "--allowedTools", "Read")
        tools = [each["function"]["name"] for each in endpoint.requests[-1].body["tools"]]
        assert {each.split("__")[1] for each in tools if each.startswith("mcp__")} == servers


@pytest.mark.slow
async def test_sub_agents_are_defined_on_the_command_line(crow: Crow, endpoint: Endpoint) -> None:
    agents = json.dumps({"reviewer": {"description": "reads code", "prompt": "In rhymes."}})
    hand = ("Agent", {"description": "d", "prompt": "Look", "subagent_type": "reviewer"})
    endpoint.play(calls(hand), answer("All is well."), answer("Good."))
    ran = await crow("-p", "go", "--agents", agents, "--allowedTools", "Agent")
    assert ran.out == "Good.\n"
    assert "In rhymes." in str(endpoint.requests[1].body["messages"][0])
    wrong = await crow("-p", "go", "--agents", '{"reviewer": {"prompt": "x"}}')
    assert "the sub-agent 'reviewer' (settings): it has no description" in wrong.err
    no_json = await crow("-p", "go", "--agents", "reviewer")
    assert "--agents takes JSON, or @FILE" in no_json.err


async def test_other_models_answer_where_one_cannot_be_had(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(MISSING, answer("Hello."))
    ended = await crow("-p", "hi", "--fallback-model", "first,second", "--output-format", "json")
    assert [each.body["model"] for each in endpoint.requests] == ["scripted", "first"]
    assert ended.events[0]["result"] == "Hello."
    assert list(ended.events[0]["modelUsage"]) == ["first"]
    del crow.env["CROW_BASE_URL"], crow.env["CROW_API_KEY"]
    refused = await crow("-p", "hi", "--model", "rehearsal", "--fallback-model", "nobody/x")
    assert (refused.status, len(endpoint.requests)) == (1, 2)
    assert "nobody/x" in refused.complaint


@pytest.mark.slow
async def test_an_answer_fits_a_schema(crow: Crow, endpoint: Endpoint) -> None:
    (crow.cwd / "count.json").write_text(COUNT)
    given = ("StructuredOutput", {"n": 3})
    for schema in (COUNT, "@count.json"):
        endpoint.play(calls(given), calls(given))
        ended = await crow("-p", "count", "--json-schema", schema, "--tools", "Read")
        assert (ended.out, ended.status) == ('{"n": 3}\n', 0)
        ended = await crow("-p", "count", "--json-schema", schema, "--output-format", "json")
        (result,) = ended.events
        assert (result["subtype"], result["structured_output"]) == ("success", {"n": 3})


async def test_an_answer_that_never_fits_is_an_error(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(*[answer("Three.")] * 5)
    ended = await crow("-p", "count", "--json-schema", COUNT, "--output-format", "json")
    (result,) = ended.events
    assert (ended.status, result["is_error"]) == (1, True)
    assert result["subtype"] == "error_max_structured_output_retries"
    assert "structured_output" not in result


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "--json-schema takes JSON, or @FILE"),
        ("[]", "--json-schema takes a JSON object"),
        ("@nowhere.json", "nowhere.json"),
        ('{"type": "array"}', "needs the type object"),
        ('{"type": "object", "required": 1}', "--json-schema: "),
    ],
)
async def test_a_schema_that_is_none_is_said_before_anything_begins(
    crow: Crow, endpoint: Endpoint, schema: str, why: str
) -> None:
    ended = await crow("-p", "count", "--json-schema", schema)
    assert ended.status != 0
    assert why in ended.complaint
    assert endpoint.requests == []
