"""Options and commands that people type who come from other agents."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here

from crow.cli import imported, main
from crow.cli.migration_hints import Flag, flags, said
from crow.cli.parser import COMMANDS as OURS
from crow.cli.parser import SAME, Parser
from crow.testing.endpoint import Endpoint, answer

CLAUDE = """
--add-dir --agent --agents --allow-dangerously-skip-permissions --allowedTools --allowed-tools
--append-system-prompt --append-system-prompt-file --autocompact --ax-screen-reader --background
--bare --betas --bg --brief --chrome --cloud --continue --dangerously-skip-permissions --debug
--debug-file --desktop --disable-slash-commands --disallowedTools --disallowed-tools --effort
--environment --exclude-dynamic-system-prompt-sections --fallback-model --file --fork-session
--forward-subagent-text --from-pr --help --ide --include-hook-events --include-partial-messages
--init --init-only --input-format --json-schema --maintenance --max-budget-usd --max-turns
--mcp-config --model --name --no-chrome --no-session-persistence --output-format
--permission-mode --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url --print
--prompt-suggestions --remote-control --remote-control-session-name-prefix --replay-user-messages
--restricted --resume --safe-mode --session-id --setting-sources --settings --strict-mcp-config
--system-prompt --system-prompt-file --system-prompt-snapshot --teleport --tmux --tools --verbose
--version --worktree -c -d -h -n -p -r -v -w
""".split()
"""All that `claude --help` of 2.1.332 names, and what of its hidden options people know."""
CLAUDES = """
agents attach auth auto-mode doctor gateway import install kill logs mcp plugin plugins project
purge respawn rm setup-token stop ultrareview update upgrade
""".split()
COMMANDS, ACTIONS = said("commands"), said("actions")
ROWS = [(whose, row) for whose, rows in flags().items() for row in rows]
WORDS = ("a", "b")


@pytest.fixture
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the project, with nothing on standard input."""
    monkeypatch.chdir(project)
    monkeypatch.setattr("sys.stdin", io.StringIO())


def names_here() -> set[str]:
    """The options of `crow`, `crow run` and `crow --version`."""
    found = {"--version", "-v"}
    for name in ("run", "chat"):
        parser = Parser()
        imported(name).declare(parser)
        found |= {*parser.names}
    return found


def known_elsewhere() -> set[str]:
    return {name for _, row in ROWS for name in row.names.split()}


def test_every_option_of_claude_is_here_or_says_what_is() -> None:
    assert [each for each in CLAUDE if each not in names_here() | known_elsewhere()] == []
    here = {*OURS, *SAME}
    assert [each for each in CLAUDES if each not in {*here, *COMMANDS}] == []


def test_nothing_is_named_twice_and_nothing_that_crow_has() -> None:
    for rows in flags().values():
        names = [name for row in rows for name in row.names.split()]
        assert len(names) == len({*names})
    assert known_elsewhere() & names_here() == set()
    assert {*COMMANDS} & {*OURS, *SAME} == set()


@pytest.mark.parametrize(("whose", "row"), ROWS, ids=[row.names for _, row in ROWS])
def test_an_option_that_crow_has_not_says_what_to_do_in_a_line(
    inside: None, capsys: pytest.CaptureFixture[str], whose: str, row: Flag
) -> None:
    for name in row.names.split():
        assert main(["run", name, *(WORDS[: row.takes in ("1", "?")] if row.takes else ())]) == 2
        out, err = capsys.readouterr()
        lines = err.splitlines()
        assert (out, max(map(len, lines)) < 160) == ("", True)
        if row.passed:
            first, last = lines
            assert first.endswith(f"passed over: {row.told}")
            assert last.startswith("crow: the prompt is empty")
        else:
            (only,) = lines
            assert only.startswith(f"crow: {name} is ")
            assert only.endswith(f"'s: {row.told}")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_crow_has_not_says_what_to_do_in_a_line(
    inside: None, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main([name, "x"]) == 2
    assert capsys.readouterr().err == f"crow: crow has no command {name!r}: {COMMANDS[name]}\n"


@pytest.mark.parametrize("name", ACTIONS)
def test_so_does_an_action(inside: None, capsys: pytest.CaptureFixture[str], name: str) -> None:
    command, action = name.split()
    assert main([command, action, "x"]) == 2
    told = f"crow: crow {command} has no action {action!r}: {ACTIONS[name]}\n"
    assert capsys.readouterr().err == told


async def test_what_is_passed_over_takes_its_words_along(crow: Crow, endpoint: Endpoint) -> None:
    for words in (("--betas", "a", "b", "-p", "go"), ("-p", "go", "--debug=hooks", "--ide")):
        endpoint.play(answer("Done."))
        ended = await crow(*words)
        assert (ended.out, ended.status) == ("Done.\n", 0)
        assert "passed over" in ended.err
        assert endpoint.requests[-1].body["messages"][-1]["content"] == "go"
    endpoint.play(answer("Done."))
    ended = await crow("-p", "--", "--bg")
    assert (ended.out, ended.status) == ("Done.\n", 0)


async def test_modes_of_others_say_what_they_are_here(here: Here) -> None:
    for given, told in (
        (("--mode", "json"), "--mode is the permission mode; --json prints events"),
        (("--permission-mode", "auto"), "nobody judges calls in your place"),
        (("-c", "model=o3"), "-c is --continue, and takes no value"),
    ):
        ended = await here("run", *given, *(() if "-c" in given else ("hi",)))
        assert (ended.status, told in ended.complaint) == (2, True), given


async def test_a_session_has_a_name_and_is_found_by_it(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("One."), answer("Two."), answer("Three."))
    await crow("-p", "first", "-n", "The parser", "-m", "other")
    assert endpoint.requests[0].body["model"] == "other"
    assert "The parser" in (await crow("sessions")).out
    await crow("-p", "second", "-r", "the parser")
    assert "One." in str(endpoint.requests[1].body["messages"])
    await crow("-p", "third", "-c", "-n", "A lexer")
    assert "A lexer" in (await crow("sessions")).out


async def test_a_session_can_leave_nothing_behind(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("One."))
    ended = await crow("-p", "first", "--no-session-persistence")
    assert (ended.out, ended.status, ended.err) == ("One.\n", 0, "")
    assert "first" not in (await crow("sessions", "--all")).out
    assert not [*Path.home().rglob("*.db")]


async def test_commands_and_skills_can_be_left_out(crow: Crow, endpoint: Endpoint) -> None:
    skill = Path.home() / ".claude/skills/baking/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: baking\ndescription: Bakes bread.\n---\nBake.\n")
    endpoint.play(answer("One."), answer("Two."))
    await crow("-p", "first")
    await crow("-p", "first", "--disable-slash-commands")
    with_, without = (json.dumps(each.body) for each in endpoint.requests)
    assert ("Bakes bread" in with_, "Bakes bread" in without) == (True, False)


async def test_both_prompts_can_be_given_and_from_files(crow: Crow, endpoint: Endpoint) -> None:
    (crow.cwd / "more.txt").write_text("Talk like a parrot.")
    endpoint.play(answer("Arr."))
    more = ("--append-system-prompt-file", "more.txt")
    await crow("-p", "hi", "--system-prompt", "You are a pirate.", *more)
    told = endpoint.requests[0].body["messages"][0]["content"]
    assert told.startswith("You are a pirate.\n\nTalk like a parrot.")


async def test_plugins_and_servers_are_had_by_their_words(here: Here, tmp_path: Path) -> None:
    plugin = tmp_path / "mine"
    (plugin / "commands").mkdir(parents=True)
    (plugin / "commands/go.md").write_text("Go.")
    assert (await here("plugin", "install", str(plugin), "-y", "-s", "user")).status == 0
    assert "mine" in (await here("plugins", "list")).out
    assert (await here("plugin", "uninstall", "mine")).status == 0
    assert (await here("plugin", "marketplace", "list")).status == 0
    added = await here("mcp", "add-json", "web", '{"type": "http", "url": "http://localhost:1"}')
    assert "the MCP server web is in" in added.out
    wrong = await here("mcp", "add-json", "web", "nonsense")
    assert "crow mcp add-json NAME JSON" in wrong.complaint


HELPS = (
    ("claude", ()),
    ("codex", ()),
    ("codex", ("exec",)),
    ("pi", ()),
    ("opencode", ()),
    ("opencode", ("run",)),
)


LISTED = r"^ {1,6}(-{1,2}[A-Za-z][\w-]*(?:, -{1,2}[a-zA-Z][\w-]*)*)"


@pytest.mark.slow
@pytest.mark.parametrize(("program", "words"), HELPS)
def test_the_real_programs_have_no_option_that_is_not_known(
    program: str, words: tuple[str, ...]
) -> None:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    argv = [path, *words, "--help"]
    ended = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    listed = re.findall(LISTED, ended.stdout + ended.stderr, re.MULTILINE)
    found = {name for each in listed for name in each.split(", ")}
    assert len(found) > 15
    assert found - names_here() - known_elsewhere() == set()
