"""Commands that packages bring: entry points of the group ``crow.commands``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Crow

GREETING = '''"""Greets whoever is named.

crow greet NAME
"""

from crow.cli import UsageError, declare_agent, load_agent


def declare(parser):
    parser.add_argument("name", metavar="NAME")
    declare_agent(parser)


def main(options, out):
    if options.name == "nobody":
        raise UsageError("who is nobody?")
    agent = load_agent(options, out)
    first = next(hook for hook in agent.hooks.before_tool.entries if hook.judge)
    out.line(f"Hello {options.name} of {first.owner.name}", "bold")
    return 3
'''


STUMBLING = """
def declare(parser): ...

def main(options, out):
    raise KeyError("left foot")

OFF = object()
"""


@pytest.fixture
def installed(tmp_path: Path, crow: Crow) -> Crow:
    """The command where a package is installed that brings three more."""
    (tmp_path / "greeting.py").write_text(GREETING)
    (tmp_path / "smashed.py").write_text("raise ValueError('in pieces')")
    (tmp_path / "stumbling.py").write_text(STUMBLING)
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        "[crow.commands]\ngreet = greeting\nsmash = smashed\nrun = greeting\npermissions = greeting\n"
        "stumble = stumbling\ncall-off = stumbling:OFF\n"
    )
    crow.env["PYTHONPATH"] = str(tmp_path)
    return crow


@pytest.mark.slow
async def test_it_runs_with_options_of_its_own_and_the_agents(installed: Crow) -> None:
    ended = await installed("greet", "--deny", "Bash", "you")
    assert (ended.status, ended.out, ended.err) == (3, "Hello you of permissions\n", "")


@pytest.mark.slow
async def test_it_is_listed_and_its_docstring_is_its_help(installed: Crow) -> None:
    listed = (await installed("--help")).out
    assert "  greet        greets whoever is named\n" in listed
    assert "  permissions  what becomes of a call" in listed
    helped = await installed("greet", "--help")
    assert (helped.status, "crow greet NAME" in helped.out) == (0, True)
    assert "--allow RULE" in helped.out


@pytest.mark.parametrize(
    "argv, status, complaint",
    [
        (["greet", "nobody"], 2, "who is nobody?"),
        (["greet"], 2, "the following arguments are required: NAME (see crow greet --help)"),
        (["great"], 2, "there is no command 'great'; did you mean 'greet'? (see crow --help)"),
        (["smash"], 1, "the command smash of greeting is broken: ValueError('in pieces')"),
        (
            ["stumble"],
            1,
            "the command stumble of greeting failed: KeyError: 'left foot' (CROW_DEBUG=1 shows where)",
        ),
        (
            ["call-off"],
            1,
            (
                "the command call-off of greeting failed: AttributeError: 'object' object has no "
                "attribute 'declare' (CROW_DEBUG=1 shows where)"
            ),
        ),
    ],
)
@pytest.mark.variants(3)
async def test_what_goes_wrong_is_said_in_a_line(
    installed: Crow, argv: list[str], status: int, complaint: str
) -> None:
    ended = await installed(*argv)
    assert (ended.status, ended.complaint) == (status, complaint)


@pytest.mark.slow
async def test_nobody_takes_the_name_of_one_of_crows_own(installed: Crow) -> None:
    ended = await installed("run", "--help")
    assert ended.out.startswith("usage: crow run [-h]")
    assert (await installed("permissions", "check", "Read(a.txt)")).out.startswith("allow")


@pytest.mark.slow
async def test_a_command_whose_name_is_taken_is_left_out_in_a_line(
    installed: Crow, tmp_path: Path
) -> None:
    info = tmp_path / "another-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[crow.commands]\ngreet = smashed\n")
    left_out = [
        "the command 'greet' of greeting is left out: another has one of that name",
        "the command 'permissions' of greeting is left out: Crow has one of that name",
        "the command 'run' of greeting is left out: Crow has one of that name",
    ]
    helped = (await installed("--help")).out.splitlines()
    assert [line for line in helped if "left out" in line] == left_out
    listed = await installed("ext", "list")
    assert [line for line in listed.err.splitlines() if "left out" in line] == [
        f"crow: {line}" for line in left_out
    ]


async def test_where_a_command_failed_is_shown_to_who_asks(installed: Crow) -> None:
    installed.env["CROW_DEBUG"] = "1"
    assert "stumbling.py" in (await installed("stumble")).err
