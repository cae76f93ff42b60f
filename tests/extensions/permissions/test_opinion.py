"""The two parsers: what both read alike, and what happens where the second is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow.extensions.permissions.shell.commands import PARSERS, plain_command
from crow.extensions.permissions.shell.shfmt import SecondOpinion
from crow.extensions.permissions.shell.tree_sitter import Parsed, new_parser, read

SCRIPTS = (
    'A=1 npm run "x y$z" a\\ b --f="q" {a,b} $\'\\x63\' ~/x *.py 2>&1 >> out.txt',
    'git commit -m "$(cat <<\'EOF\'\nhello "x" `y`\n\nbye\nEOF\n)"',
    "cat > f <<'E' 2>&1\nabc\nE",
    "if a; then b; elif c; then d; else e; fi",
    'for p in a b; do x "$p"; done',
    "! time -p a -p | b |& c &",
    "{ a; b; } > x",
    "(a; b)",
    "[[ -f x && $y == z ]]",
    '[ -f x ] && [ "$a" = "b" ] || ! [ -d y ]',
    'a <<< "b c" &> z',
    "export A=1 B",
    'echo "a  $x  b" `ls` $(pwd) $((1+2)) ${x}',
    "a \\\n  --b",
    "A=1 B=2",
    "> x",
    'grep foo$ a "a$" "a\\$b" "a\\nb"',
    "a >&2 2>/dev/null &>>f >|g <h 2>&-",
    'while read -r l; do rm "$l"; done < f',
    "find . -exec rm {} \\;",
    "echo a{1..3} HEAD@{1} stash@{0} {} x{a b}",
    "diff <(a) <(b)",
    "\\ls \"\" '' a''b",
    "x; # c\ny\n\n# z",
    "a && b || c && d; e",
    "a && b > x",
    "a | b > x",
    "until a; do b; done",
    "cat <<EOF\nplain\nEOF\nls",
    'echo "größe ✨" && ls',
    "for i in $(seq 1 3); do echo $i; done",
    "a && {\n  b\n  c\n}",
    "a; function_x; b() ",
)


@pytest.mark.parametrize("script", SCRIPTS[:-1])
def test_both_parsers_read_the_same(script):
    reading = read(new_parser(), script)
    assert reading.fault is None
    assert SecondOpinion()(script) == reading.script


def test_a_script_that_neither_can_read_has_a_fault():
    assert read(new_parser(), SCRIPTS[-1]).fault is not None
    assert SecondOpinion()(SCRIPTS[-1]) is None


@pytest.mark.parametrize(
    "script", ["a <<A <<B\nx\nA\ny\nB\nls", "a\n\\\nb", "a ${x:-$(b)}", "a\\\nb c"]
)
def test_what_the_parsers_read_differently_is_seen(script):
    reading = read(new_parser(), script)
    assert reading.fault is not None or SecondOpinion()(script) != reading.script


def test_without_the_second_parser_complex_commands_are_asked_about(world):
    missing = SecondOpinion("/nonexistent/shfmt")
    assert world.judge("ls; pwd", second=missing).decision == "ask"
    assert world.judge("ls -la src", second=missing).decision == "allow"
    assert world.judge("ls; pwd").decision == "allow"


@pytest.mark.parametrize("answer", ["{", "{}", '{"Stmts": [{"Cmd": {}}]}', "exit 1"])
def test_a_second_parser_that_answers_nonsense_counts_as_none(world, tmp_path: Path, answer):
    program = tmp_path / "shfmt"
    body = "sys.exit(1)" if answer == "exit 1" else f"print({answer!r})"
    program.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    program.chmod(0o755)
    assert world.judge("ls; pwd", second=SecondOpinion(str(program))).decision == "ask"


def test_answers_are_remembered_up_to_a_number():
    opinion = SecondOpinion(remembered=2)
    first = opinion("a; b")
    assert opinion("a; b") is first
    for text in ("b; c", "c; d"):
        opinion(text)
    assert opinion("a; b") == first
    assert opinion("a; b") is not first


LETTERS = "aAzZ09_./:,-"
SPOKEN = """
echo ls git then do done fi else elif esac in declare export unset let test time if for while coproc
select function case until typeset readonly local eval exec env sudo xargs cd . .. ./x ../y / // - --
-x --long 2 22 1a a.b x,y a:b true return source set
""".split()
PLAIN = st.lists(st.sampled_from(SPOKEN) | st.text(LETTERS, min_size=1, max_size=8), max_size=6)


@given(words=PLAIN, space=st.sampled_from([" ", "  "]), before=st.sampled_from(["", " "]))
@settings(max_examples=examples(3000))
def test_words_alone_are_read_as_both_parsers_read_them(words: list[str], space: str, before: str):
    text = before + space.join(words)
    plain = plain_command(text)
    if plain is not None:
        assert read(new_parser(), text) == Parsed(plain)


@pytest.mark.parametrize(
    "text", ["", " ", "a=b", "then x", "a@b", "- x", "a;b", "a\nb", "2 x", "[ a"]
)
def test_all_else_takes_a_parser(text: str):
    assert plain_command(text) is None
    assert PARSERS.read(text) == read(new_parser(), text)
