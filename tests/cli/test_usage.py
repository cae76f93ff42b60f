"""Bad input: one clear line that says what to do, no traceback, a status that is not zero."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import socket
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.conftest import Crow

from crow.cli import main
from crow.cli.parser import COMMANDS, Parser
from crow.extensions.permissions import cli as permissions
from crow.testing.endpoint import Endpoint, answer, respond


@pytest.fixture
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the project, with nothing on standard input."""
    monkeypatch.chdir(project)
    monkeypatch.setattr("sys.stdin", io.StringIO())


async def test_the_version_is_printed(crow: Crow) -> None:
    ended = await crow("--version")
    assert (ended.status, ended.out, ended.err) == (0, "crow 0.1.0\n", "")


async def test_crow_alone_shows_the_commands(crow: Crow) -> None:
    ended = await crow()
    assert ended.status == 2
    assert "crow COMMAND --help" in ended.out
    assert ended.err.startswith("crow: to talk takes a terminal; crow run")
    helped = await crow("help", "run")
    assert helped.status == 0
    assert "--resume" in helped.out


@pytest.mark.slow
async def test_each_command_starts_in_a_process_of_its_own(crow: Crow) -> None:
    for name in (*COMMANDS, "permissions"):
        ended = await crow.alone(name, "--help")
        assert (ended.status, ended.err) == (0, ""), name
        assert ended.out.startswith(f"usage: crow {name}")


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (["rnu", "x"], "there is no command 'rnu'; did you mean 'run'? (see crow --help)"),
        (["--verison"], "there is no option '--verison'; did you mean '--version'? (see crow "),
        (["run", "x", "--extention", "y"], "there is no option '--extention'; did you mean '--ex"),
        (["run", "x", "y"], "there is no argument 'y' (see crow run --help)"),
        (
            ["run", "x", "--model"],
            "argument --model/-m: expected one argument (see crow run --help)",
        ),
        (["run"], 'the prompt is empty: crow run "PROMPT"'),
        (["run", " "], 'the prompt is empty: crow run "PROMPT"'),
        (["run", "x", "--cwd", "absent"], "there is no directory 'absent': --cwd takes one that "),
        (["run", "x", "--cwd", "~nobody-here/x"], "there is no directory '~nobody-here/x': --cwd "),
        (["run", "x", "--resume", "a", "--continue"], "--resume and --continue exclude each other"),
        (["sessions", "shwo"], "there is no action 'shwo'; did you mean 'show'?"),
        (["sessions", "show"], "crow sessions show ID is how to say it"),
        (["sessions", "--limit", "0"], "--limit takes a number from 1 on"),
        (["hooks", "list", "PreToolUze"], "there is no event 'PreToolUze'; did you mean 'PreTool"),
        (["ext", "lst"], "there is no action 'lst'; did you mean 'list'?"),
        (["trust", "absent"], "there is no directory 'absent'"),
    ],
)
def test_what_cannot_be_understood_is_named_and_ends_with_status_2(
    inside: None, capsys: pytest.CaptureFixture[str], argv: list[str], complaint: str
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"crow: {complaint}")
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (["--settings", "absent.json"], "absent.json: cannot be read: No such file or directory"),
        (["--settings", "{"], "--settings: line 1: no JSON"),
        (["--extension", "absent.py"], "the extension absent.py does not exist: there is no such "),
        (["--extension", "no_such_module"], "the extension no_such_module does not exist: No mod"),
        (["--extension", "json:Nothing"], "the extension json:Nothing is broken: json has no 'Not"),
        (["--extension", "colorsys"], "the extension colorsys is broken: it holds no extension"),
        (["--resume", "abc"], "there is no session 'abc': crow sessions --all lists them"),
        (["--continue"], "there is no session in "),
    ],
)
def test_what_does_not_exist_is_named_and_ends_with_status_1(
    inside: None, capsys: pytest.CaptureFixture[str], argv: list[str], complaint: str
) -> None:
    assert main(["run", "hello", *argv]) == 1
    out, err = capsys.readouterr()
    assert err.startswith(f"crow: {complaint}")
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("option", ["--allow", "--deny"])
async def test_a_rule_for_a_tool_that_does_not_exist_is_refused(
    crow: Crow, endpoint: Endpoint, option: str
) -> None:
    ended = await crow("run", "hello", option, "Bsh(ls *)")
    assert ended.status == 2
    assert ended.complaint.startswith("there is no tool 'Bsh'; did you mean 'Bash'? in the rule ")


@pytest.mark.slow
async def test_an_endpoint_that_cannot_be_reached_is_named(crow: Crow) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        env = {"CROW_BASE_URL": url, "CROW_MODEL": "m", "CROW_API_KEY": "sk-x"}
        ended = await crow("run", "--settings", '{"timeouts": {"load": 1}}', "hello", **env)
    assert ended.status == 1
    assert ended.err.count("it is waited for, up to 1 s") == 1
    assert url in ended.err
    assert "Traceback" not in ended.err
    assert "sk-x" not in ended.err


@pytest.mark.slow
async def test_where_nobody_looks_on_a_server_that_does_not_listen_is_not_waited_for_long(
    crow: Crow,
) -> None:
    crow.env |= {"CROW_BASE_URL": "http://127.0.0.1:9/v1", "CROW_MODEL": "m"}
    process = await crow.start("run", "hello")
    assert process.stderr is not None
    assert b"it is waited for, up to 10 s" in await process.stderr.readline()
    process.terminate()
    await process.communicate()
    ended = await crow("run", "--settings", '{"timeouts": {"listen": 0}}', "hello")
    assert (ended.status, ended.err.count("\n")) == (1, 1)


async def test_a_refused_key_is_said_in_one_line_without_the_key(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(respond(401, {"error": {"message": "bad key sk-secret-1234"}}))
    ended = await crow("run", "hello", CROW_API_KEY="sk-secret-1234")
    assert ended.status == 1
    assert endpoint.url in ended.complaint
    assert "sk-secret-1234" not in ended.err


@pytest.mark.parametrize(
    "content, why", [(b'{"model": "x",', "line 1: no JSON"), (b"[]", "must be")]
)
async def test_a_settings_file_that_cannot_be_read_is_named_and_nothing_runs_without_its_rules(
    crow: Crow, endpoint: Endpoint, home: Path, content: bytes, why: str
) -> None:
    broken = home / ".crow/settings.json"
    broken.parent.mkdir()
    broken.write_bytes(content)
    ended = await crow("run", "hello")
    assert (ended.status, ended.out, endpoint.requests) == (1, "", [])
    assert ended.complaint.startswith(f"{broken}: {why}")
    assert ended.complaint.endswith("mend the file, or move it away")
    told = await crow("run", "--json", "hello")
    assert (told.status, told.events[0]["type"]) == (1, "error")


async def test_a_setting_that_means_nothing_is_named_and_the_rest_applies(
    crow: Crow, endpoint: Endpoint, home: Path
) -> None:
    endpoint.play(answer("Still here."))
    (home / ".crow").mkdir()
    (home / ".crow/settings.json").write_text('{"modle": "x"}', "utf-8")
    ended = await crow("run", "hello")
    assert (ended.status, ended.out) == (0, "Still here.\n")
    assert "there is no setting 'modle'" in ended.complaint


@pytest.mark.slow
async def test_bytes_that_are_no_text_do_not_reach_the_model_or_the_store(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("one"), answer("two"))
    assert (await crow("run", "hello \udcff")).status == 0
    pipe = asyncio.subprocess.PIPE
    process = await crow.start("run", stdin=pipe, PYTHONIOENCODING="utf-8:strict")
    await process.communicate(b"hello \xff")
    said = [each.body["messages"][-1]["content"] for each in endpoint.requests]
    assert said == ["hello \ufffd", "hello \xff"]
    listed = await crow("sessions")
    assert listed.out.count("hello \ufffd") == listed.out.count("hello \xff") == 1


@pytest.mark.parametrize(
    "closing, status, out, err",
    [
        (">&-", 1, b"", b"crow: standard output is closed\n"),
        (">&- 2>&- <&-", 1, b"", b""),
        ("2>&-", 0, b"Hello.\n", b""),
        ("<&-", 0, b"Hello.\n", b""),
    ],
)
@pytest.mark.variants(1)
async def test_of_the_streams_only_the_output_must_not_be_closed(
    crow: Crow, endpoint: Endpoint, closing: str, status: int, out: bytes, err: bytes
) -> None:
    endpoint.play(answer("Hello."))
    command = " ".join(map(shlex.quote, crow.command("run", "hello")))
    process = await asyncio.create_subprocess_shell(
        f"{command} {closing}",
        cwd=crow.cwd,
        env={**os.environ, **crow.env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert await process.communicate() == (out, err)
    assert process.returncode == status


async def test_the_package_itself_is_the_command(crow: Crow) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "crow", "--version"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert (process.returncode, out.startswith(b"crow ")) == (0, True)


async def test_modules_of_the_folder_that_one_works_in_are_not_imported(crow: Crow) -> None:
    for name in ("queue", "select", "json", "asyncio"):
        (crow.cwd / f"{name}.py").write_text("print('hijacked')\n", "utf-8")
    ended = await crow.alone("ext", "list")
    assert (ended.status, "hijacked" in ended.out + ended.err) == (0, False)


@pytest.mark.slow
async def test_a_command_that_does_not_exist_is_a_mistake_in_the_command_line(
    crow: Crow, endpoint: Endpoint
) -> None:
    ended = await crow("run", "/hepl me")
    assert (ended.status, ended.out) == (2, "")
    assert ended.complaint.startswith("There is no command /hepl; did you mean /help?")
    assert endpoint.requests == []
    endpoint.play(answer("A folder."))
    assert (await crow("run", "/usr is what?")).out == "A folder.\n"


async def test_a_traceback_is_shown_to_whoever_asks_for_it(crow: Crow) -> None:
    ended = await crow("run", "x", "--settings", "absent.json", CROW_DEBUG="1")
    assert ended.status == 1
    assert "Traceback" in ended.err


async def test_unknown_settings_are_listed_by_config_with_status_1(crow: Crow, home: Path) -> None:
    (home / ".crow").mkdir()
    (home / ".crow/settings.json").write_text(json.dumps({"modle": "x"}), "utf-8")
    ended = await crow("config")
    assert ended.status == 1
    assert "there is no setting 'modle'; did you mean 'model'?" in ended.complaint


@pytest.mark.parametrize(
    "argv, wanted",
    [
        (["check", "Bash(ls)", "--allow", "Bash"], {"action": "check", "call": "Bash(ls)"}),
        (["check", "--allow", "Bash", "Bash(ls)"], {"action": "check", "call": "Bash(ls)"}),
        (["--allow", "Bash", "check", "Bash(ls)"], {"action": "check", "call": "Bash(ls)"}),
        (["check", "--allow", "Bash", "--", "--x"], {"action": "check", "call": "--x"}),
        (["--allow", "Bash", "--", "check", "--x"], {"action": "check", "call": "--x"}),
        (["check", "--allow", "Bash"], {"action": "check", "call": None}),
    ],
)
def test_options_may_stand_anywhere_among_the_arguments(argv, wanted) -> None:
    parser = Parser(prog="crow permissions")
    permissions.declare(parser)
    options = vars(parser.understand(argv))
    assert {name: options[name] for name in wanted} == wanted
    assert options["allow"] == ["Bash"]


@pytest.mark.parametrize(
    "name, argv, wanted",
    [
        ("sessions", ["search", "--limit", "3", "a", "--all", "b"], {"words": ["a", "b"]}),
        ("sessions", ["--limit", "3", "show", "a"], {"action": "show", "words": ["a"]}),
        ("sessions", ["--all"], {"action": "list", "words": []}),
        ("hooks", ["list", "--json", "PreToolUse"], {"action": "list"}),
        ("run", ["--model", "m", "do it"], {"prompt": "do it", "model": "m"}),
        ("run", ["--model", "m", "--", "-x --y"], {"prompt": "-x --y", "model": "m"}),
        ("trust", ["--json", "here"], {"directory": "here"}),
    ],
)
def test_so_may_those_of_every_other_command(recwarn, name, argv, wanted) -> None:
    parser = Parser(prog=f"crow {name}")
    import_module(f"crow.cli.{name}").declare(parser)
    options = vars(parser.understand(argv))
    assert {one: options[one] for one in wanted} == wanted
    assert not recwarn.list
