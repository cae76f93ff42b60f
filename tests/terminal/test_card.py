"""Tool calls as cards, and the changes that they made."""

from __future__ import annotations

from crow.core.events import ToolEnded
from crow.core.tools import Call, Diff, Outcome, ToolKind, ToolResult
from crow.terminal.card import Card
from crow.terminal.diff import diff_lines
from crow.terminal.palette import Palette, plain

BASH = Call("1", "Bash", {"command": "make"})


def card(title: str = "make", kind: ToolKind = "execute", call: Call = BASH) -> Card:
    """A card without colours of a call that runs."""
    made = Card(call, title, kind, "/project", Palette(colours=False))
    made.start(title)
    return made


def ended(result: ToolResult, outcome: Outcome = "ok", seconds: float = 0.2) -> ToolEnded:
    """The end of a call."""
    return ToolEnded(BASH, outcome, result, seconds)


def texts(lines: list[str]) -> list[str]:
    """Lines without their looks."""
    return [plain(line) for line in lines]


def test_a_command_shows_the_last_lines_of_its_output_and_how_many_more() -> None:
    made = card("pytest -q")
    made.print("".join(f"line {n}\n" for n in range(8)) + "li")
    now = made._began + 3.4
    assert texts(made.live(60, now)) == [
        "● Bash pytest -q · 3 s",
        "  │ … 4 earlier lines (Ctrl-O)",
        "  │ line 4",
        "  │ line 5",
        "  │ line 6",
        "  │ line 7",
        "  │ li",
    ]
    made.end(ended(ToolResult("\n".join(f"line {n}" for n in range(8))), seconds=4.2))
    assert texts(made.final(60)) == [
        "● Bash pytest -q · ✓ 4.2 s",
        "  │ … 3 earlier lines (Ctrl-O)",
        *(f"  │ line {n}" for n in range(3, 8)),
    ]
    assert made.final(60) == []
    assert len(made.expanded(60)) == 9


ENDS: list[tuple[ToolEnded, ToolKind, list[str]]] = [
    (ended(ToolResult("(no output)")), "execute", ["● Bash make · ✓"]),
    (
        ended(ToolResult("Exit code 2\nno rule", error=True), "error"),
        "execute",
        ["● Bash make · ✗ exit 2", "  │ no rule"],
    ),
    (ended(ToolResult("a\nb\n")), "read", ["● Bash make · ✓ 2 lines"]),
    (ended(ToolResult("never"), "denied"), "edit", ["● Bash make · ✗ denied"]),
    (
        ended(ToolResult("the user said no", error=True), "denied"),
        "edit",
        ["● Bash make · ✗ denied", "  │ the user said no"],
    ),
    (ended(ToolResult("half"), "cancelled"), "execute", ["● Bash make · ✗ cancelled"]),
]


def test_a_card_says_what_came_of_its_call() -> None:
    for end, kind, lines in ENDS:
        made = card(kind=kind)
        made.end(end)
        assert texts(made.final(60)) == lines


def test_a_cancelled_card_keeps_what_was_printed() -> None:
    made = card("pytest -q")
    made.print("".join(f"line {n}\n" for n in range(8)) + "li")
    made.end(ended(ToolResult("cancelled"), "cancelled"))
    assert texts(made.final(60)) == [
        "● Bash pytest -q · ✗ cancelled",
        "  │ … 4 earlier lines (Ctrl-O)",
        *(f"  │ line {n}" for n in range(4, 8)),
        "  │ li",
    ]
    assert len(made.expanded(60)) == 10


def test_paths_are_those_in_the_sessions_folder_which_is_a_dot() -> None:
    made = card("List /project", kind="read", call=Call("2", "LS"))
    made.end(ended(ToolResult("a\nb\n")))
    assert texts(made.final(60)) == ["● LS List . · ✓ 2 lines"]


def test_a_card_never_is_wider_than_the_screen() -> None:
    for width in (20, 40, 41):
        made = card("run --with " + "日本語" * 20, call=Call("2", "Bash"))
        made.print("長い" * 50)
        made.end(ended(ToolResult("Exit code 1\n" + "語" * 90, error=True), "error", 12.0))
        for line in texts(made.final(width)):
            assert len(line) + sum(char > "\u2fff" for char in line) <= width, line


def test_a_sub_agents_card_is_nested() -> None:
    made = Card(BASH, "make", "execute", "/project", Palette(colours=False), depth=1)
    made.end(ended(ToolResult("done")))
    assert texts(made.final(60)) == ["  ● Bash make · ✓", "    │ done"]


def test_changes_are_numbered_and_their_words_marked() -> None:
    old = "a\nb = foo(1)\nc\nd\ne\nf\ng\nh\nlast\n"
    new = "a\nb = foo(2, x)\nc\nd\ne\nf\ng\nh\nmore\nlast\n"
    lines = diff_lines(Diff("/x", old, new, line=10), 60, Palette())
    assert texts(lines) == [
        "10   a",
        "11 - b = foo(1)",
        "11 + b = foo(2, x)",
        "12   c",
        "13   d",
        "14   e",
        "   …",
        "15   f",
        "16   g",
        "17   h",
        "18 + more",
        "19   last",
    ] or texts(lines)
    assert "\x1b[31;7m1\x1b[0m" in lines[1]
    assert "\x1b[32;7m2, x\x1b[0m" in lines[2]


def test_what_is_written_cannot_steer_the_terminal() -> None:
    (line,) = diff_lines(Diff("/x", None, "a\x1b[2Jb\u202ec"), 60, Palette())
    assert plain(line) == "1 + a<001B>[2Jb<202E>c"
