"""What a call would do, in a line for the person who is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow.extensions.permissions.explanation import deeds, explain
from crow.extensions.permissions.permissions import Permissions
from crow.extensions.permissions.shell.commands import script_of
from crow.extensions.permissions.shell.script import Simple, walk
from crow.extensions.permissions.suggestion import suggest

OPAQUE = "something that only the shell will know"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("touch a", "makes a, or changes its date"),
        ("rm -rf build dist", "removes build, dist and all below"),
        ("rm a b c d e", "removes a, b, c and 2 more"),
        ("git push origin main", "sends commits to the remote repository"),
        ("git -C x push -f", "overwrites commits in the remote repository"),
        ("sudo apt-get install vim", "as another user, or as the administrator: installs or removes system packages: install, vim"),
        ("make test 2>&1 | tail -5 > log",
         "runs what the Makefile says: test; then only reads, with tail and writes log"),
        ("echo hi >> a 2>/dev/null", "only reads, with echo and appends to a"),
        ("for f in *.py; do rm $f; done", "removes $f, for each of *.py"),
        ("timeout 5 npm test", 'runs the script "test" of package.json'),
        ("find . -name x -exec rm {} +", "removes what it is given"),
        ("find . -delete", "removes what it finds below ."),
        ("frobnicate --all", "runs frobnicate, which may do whatever you may"),
        ("LD_PRELOAD=./a.so ls",
         "runs ls, which may do whatever you may, with LD_PRELOAD set"),
        ("echo $(rm x)", "removes x; then runs echo, which may do whatever you may"),
        ("a=`rm x`", "removes x"),
        ("$CMD x", f"runs {OPAQUE}"),
        ("cat <<E\n$(rm y)\nE", f"does {OPAQUE}; then only reads, with cat"),
        ("f() { rm x; }", f"does {OPAQUE}"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_command_is_told_by_its_parse(command: str, told: str) -> None:
    assert explain("Bash", {"command": command}, cwd="/tmp") == told


def test_a_long_script_is_told_by_its_beginning() -> None:
    told = explain("Bash", {"command": "; ".join(f"rm {n}" for n in range(9))}, cwd="/tmp")
    assert told.startswith("removes 0; then removes 1; then ")
    assert told.endswith("; and 3 things more")


def test_other_tools_are_told_where_their_arguments_do_not_say_it() -> None:
    assert explain("WebFetch", {"url": "https://a.b/c"}, cwd="/").startswith("asks a.b over the")
    assert explain("mcp__hub__close", {}, cwd="/").startswith("asks the server hub to do close;")
    assert explain("Edit", {"file_path": "/a"}, cwd="/") == ""
    assert explain("WebFetch", {"url": "nonsense"}, cwd="/") == ""


def test_every_line_of_the_table_is_one() -> None:
    for lines in deeds().values():
        for deed in lines:
            assert deed.text.format("X")
            assert all(option.startswith("-") for option in deed.options)


@pytest.mark.parametrize("letter", ["\U0001f600", "\U000e0100", "\U000371a7", "\U0010fffd"])
def test_a_character_beyond_the_parsers_tables_ends_nothing(letter: str) -> None:
    """A scanner of tree-sitter-bash read behind its table, and the process was gone."""
    for command in (f"echo {{{letter}a", f"{{{letter}}}", f"echo ${{{letter}}}", f"a{letter}=1"):
        assert explain("Bash", {"command": command}, cwd="/tmp")
        suggest(Permissions(), "Bash", {"command": command}, cwd="/tmp")
    [echo] = [each for each in walk(script_of(f"echo {letter}")) if isinstance(each, Simple)]
    assert [word.text for word in echo.words] == ["echo", letter]


@given(st.text(max_size=60))
def test_whatever_is_written_is_told_in_one_line(command: str) -> None:
    told = explain("Bash", {"command": command}, cwd="/tmp")
    assert isinstance(told, str)
