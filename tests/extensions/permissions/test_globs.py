"""Names that the shell looks for by itself: a glob shows what is in a directory, whatever the program."""

from __future__ import annotations

import pytest

PROGRAMS = [
    "echo",
    "printf '%s\\n'",
    "true",
    "id",
    "basename -a",
    "dirname",
    "which",
    "seq",
    "type",
]
ELSEWHERE = [
    "@HOME@/*",
    "~/.ssh/*",
    "~/.ss[h]",
    "../*",
    "$HOME/.ssh/?*",
    "src/../../*",
    "{@HOME@,.}/*",
]


def decide(world, command: str, **options) -> str:
    args = world.fill({"command": command})
    return world.permissions(**options).judge("Bash", args, cwd=str(world.cwd)).decision


@pytest.mark.parametrize("glob", ELSEWHERE)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_is_shown_the_names_of_another_directory_unasked(world, program, glob):
    assert decide(world, f"{program} {glob}") == "ask"
    assert decide(world, f"{program} src/* *.md", allow=["Bash(npm *)"]) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "for f in @HOME@/*; do echo $f; done",
        "for f in @HOME@/*; do true; done",
        "echo x > /dev/null @HOME@/*",
        "echo $(echo @HOME@/*)",
        "timeout 5 echo @HOME@/*",
        "x='@HOME@/*'; echo $x",
        "x=@HOME@/*; echo $x",
        "for f in '@HOME@/*'; do echo $f; done",
        "read x <<< '@HOME@/*'; echo $x",
        "echo $(echo '@HOME@/*')",
    ],
)
def test_nor_is_it_in_a_roundabout_way(world, command):
    assert decide(world, command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "echo '@HOME@/*' \"~/.ssh/*\"",
        "[[ $x == @HOME@/* ]]",
        "case x in @HOME@/*) echo y;; esac",
        "grep 'a/b.*' README.md | head -n 3",
        'for f in src/*; do echo "$f"; done',
        "x=3; echo $x",
    ],
)
def test_what_is_no_glob_needs_no_question(world, command):
    assert decide(world, command) == "allow"


def test_names_in_a_directory_that_may_not_be_read_are_denied(world):
    deny = ["Read(src/**)"]
    assert decide(world, "ls src", deny=deny) == decide(world, "echo src/*", deny=deny) == "deny"
    assert decide(world, "echo s*/*", deny=deny) == "deny"
    assert decide(world, "echo *", deny=deny) == "allow"


def test_a_rule_for_the_directory_or_the_command_answers(world):
    assert decide(world, "echo @HOME@/*", allow=["Bash(echo *)"]) == "allow"
    notes = world.fill({"allow": ["Read(//**)"]})
    assert decide(world, "ls @HOME@/x", **notes) == decide(world, "echo @HOME@/x/*", **notes)
