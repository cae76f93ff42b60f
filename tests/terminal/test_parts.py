"""The editor, what is completed, what is asked, and the lines at the bottom."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from crow.core.events import UsageReported
from crow.core.ports.client import ALLOW_ONCE, REJECT_ONCE, Option, PermissionRequest, Question
from crow.core.tools import Call, Diff
from crow.terminal.answer import OPEN, AnswerText
from crow.terminal.completion import PromptCompleter, ranked
from crow.terminal.conversation import Offered
from crow.terminal.editor import Editor
from crow.terminal.outbox import Outbox
from crow.terminal.output import notification
from crow.terminal.palette import Palette, plain, trimmed
from crow.terminal.progress_line import ProgressLine, lasted, short
from crow.terminal.question import HINT, Asked, PermissionAsked, QuestionAsked
from crow.terminal.questions import Questions
from crow.terminal.screen import rows_above
from crow.terminal.status import Status, branch_of

PLAIN = Palette(colours=False)
LONG = "\n".join(f"line {n}" for n in range(200))


# the editor


async def test_a_long_paste_is_one_word_and_sent_whole(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "history")
    editor.buffer.insert_text("see ")
    editor.paste(LONG + "\r\n\x1b[31mred")
    editor.paste("short\ntext")
    assert editor.buffer.text == "see [paste #1 +201 lines]short\ntext"
    assert editor.take() == f"see {LONG}\n[31mredshort\ntext"
    assert editor.buffer.text == ""
    assert "line 199" in (tmp_path / "history").read_text("utf-8")
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


async def test_a_paste_is_deleted_as_one_word() -> None:
    editor = Editor(None)
    editor.paste(LONG)
    editor.buffer.insert_text("x")
    editor.backspace()
    editor.backspace()
    assert editor.buffer.text == ""


async def test_a_backslash_begins_another_line_and_what_comes_back_stands_first() -> None:
    editor = Editor(None)
    editor.buffer.insert_text("one\\")
    assert editor.continues()
    assert not editor.continues()
    editor.put_back("zero")
    assert editor.text == "zero\none\n"


# completion


def completed(text: str) -> list[str]:
    """What a draft could become."""
    commands = [
        Offered("help", "Show help"),
        Offered("model", "Choose", "NAME"),
        Offered("exit", "Leave"),
    ]
    files = ["src/app.py", "README.md", "src/deep/snapper.py", "docs/api.md"]
    completer = PromptCompleter(lambda: commands, lambda: files)
    return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]


def test_commands_and_files_are_completed() -> None:
    assert completed("/") == ["/exit", "/help", "/model"]
    assert completed("/mo") == ["/model"]
    assert completed("/model x") == []
    assert completed("look at @ap") == ["@src/app.py", "@docs/api.md", "@src/deep/snapper.py"]
    assert completed("mail me@ap") == []
    assert completed("@srd") == ["@src/deep/snapper.py"]


def test_the_best_fit_comes_first() -> None:
    assert ranked("app", ["x/wrong.py", "a/p/p.py", "lib/app.py", "app.py"]) == [
        "app.py",
        "lib/app.py",
        "a/p/p.py",
    ]


# questions


ALWAYS = Option("allow_always", "Always allow Bash(make)", "allow_always")


def permission(**fields: object) -> PermissionRequest:
    """A request for a command."""
    given: dict[str, object] = {
        "args": {"command": "make"},
        "title": "make",
        "kind": "execute",
        "reason": "no rule allows it",
        "options": (ALLOW_ONCE, ALWAYS, REJECT_ONCE),
        "explanation": "builds it",
        **fields,
    }
    return PermissionRequest(Call("1", "Bash"), **given)  # type: ignore[arg-type]


def texts(asked: Asked, height: int = 30, width: int = 60) -> list[str]:
    """The lines of a question."""
    return [plain(line) for line in asked.lines(width, height, armed=True)]


async def test_a_question_says_what_why_and_which_keys_there_are() -> None:
    asked = PermissionAsked(permission(), "/project", PLAIN, 0.0)
    assert texts(asked) == [
        "? Bash wants to run",
        "  no rule allows it",
        "  make",
        "  y  Allow once",
        "  a  Always allow Bash(make)",
        "  n  Reject",
        "  w  No, and say what should be different",
        "  e  Explain what it would do",
    ]
    asked.press("e")
    assert "  It builds it." in texts(asked)
    assert not asked.answer.done()


@pytest.mark.parametrize(
    "keys, answer",
    [("y", "allow_once"), ("a", "allow_always"), ("N", "reject_once"), ("2", "allow_always")],
)
async def test_one_key_answers(keys: str, answer: str) -> None:
    asked = PermissionAsked(permission(), "/project", PLAIN, 0.0)
    asked.press("q")
    assert not asked.answer.done()
    asked.press(keys)
    assert await asked.answer == answer


async def test_enter_answers_nothing_until_something_is_highlighted() -> None:
    asked = PermissionAsked(permission(), "/project", PLAIN, 0.0)
    asked.enter()
    assert not asked.answer.done()
    asked.move(1)
    asked.enter()
    assert await asked.answer == "allow_once"


async def test_words_go_with_a_no() -> None:
    asked = PermissionAsked(permission(), "/project", PLAIN, 0.0)
    asked.press("w")
    assert asked.typing == "words"
    asked.back()
    assert asked.typing == ""
    asked.press("w")
    asked.typed(" use ninja ")
    assert await asked.answer == "reject_once"
    assert asked.words == "use ninja"


async def test_keys_that_were_meant_for_something_else_answer_nothing() -> None:
    asked = PermissionAsked(permission(), "/project", PLAIN, 100.0)
    assert not asked.is_armed(100.3, last_key=90.0)
    assert not asked.is_armed(100.5, last_key=100.3)
    assert asked.is_armed(100.7, last_key=100.3)
    assert asked.is_armed(100.8, last_key=100.79)


async def test_a_long_change_leaves_room_for_the_answers() -> None:
    diff = Diff("/project/a.py", None, LONG)
    asked = PermissionAsked(permission(diffs=(diff,)), "/project", PLAIN, 0.0)
    lines = texts(asked)
    assert len(lines) <= 22
    assert any(line.startswith("  … 189 more lines (Ctrl-O)") for line in lines)
    assert lines[-1] == "  e  Explain what it would do"
    asked.whole = True
    assert len(texts(asked, 30)) == 30
    assert texts(asked, 30)[-1] == "  e  Explain what it would do"


async def test_rules_that_are_offered_name_files_as_they_are_in_the_folder() -> None:
    request = permission(
        options=(ALLOW_ONCE, ALWAYS, REJECT_ONCE),
        rules=["Edit(//project/a.py)", "Edit(//projects/b.py)"],
        keep=lambda rule, behaviour, lasting: None,
    )
    lines = texts(PermissionAsked(request, "/project", PLAIN, 0.0), 30, 90)
    assert "  s  Allow Edit(./a.py), Edit(//projects/b.py) in this session" in lines


async def test_in_a_small_window_the_change_is_seen_and_answers_are_a_row_each() -> None:
    path = "//home/somebody/with/a/long/name/of/a/project/app.py"
    rule = Option("allow_always", f"Always allow Edit({path})", "allow_always")
    request = permission(
        diffs=(Diff("/project/a.py", None, LONG),), options=(ALLOW_ONCE, rule, REJECT_ONCE)
    )
    asked = PermissionAsked(request, "/project", PLAIN, 0.0)
    lines = texts(asked, 14, 40)
    assert len(lines) == 14
    assert sum(" + " in line for line in lines) >= 3
    assert "  a  Always allow…e/of/a/project/app.py)" in lines
    assert all(len(line) <= 40 for line in lines)
    assert "  a  Always allow" in texts(asked, 40, 40)
    asked.press("w")
    assert "".join(texts(asked, 14, 40)).endswith("Esc goes back.")


async def test_every_line_of_a_change_can_be_seen_whole_before_it_is_allowed() -> None:
    rows = [f"row {n} {'wide' * 30} end of {n}" for n in range(60)]
    diff = Diff("/project/a.py", None, "\n".join(rows))
    asked = PermissionAsked(permission(diffs=(diff,)), "/project", PLAIN, 0.0)
    assert "(Ctrl-O)" in "".join(texts(asked, 30))
    seen = ""
    asked.scroll(1)
    while True:
        page = texts(asked, 30)
        assert len(page) == 30
        seen += "\n".join(page)
        if not any("PageDown" in line for line in page):
            break
        asked.scroll(1)
    assert "more lines (PageUp)" in page[1]
    ends = [part for n in range(60) for part in (f"+ row {n} wide", f"wide end of {n}\n")]
    assert [part for part in ends if part not in f"{seen}\n"] == []
    for _ in range(20):
        asked.scroll(-1)
    assert "PageUp" not in "".join(texts(asked, 30))


async def test_questions_of_hooks_are_answered_by_keys_and_words() -> None:
    sure = QuestionAsked(Question("Sure?", "confirm", default=False), PLAIN, 0.0)
    sure.press("y")
    assert await sure.answer is True
    colour = QuestionAsked(Question("Which?", "select", ("red", "blue")), PLAIN, 0.0)
    assert texts(colour) == ["? Which?", "› 1  red", "  2  blue", f"  {HINT}"]
    colour.press("2")
    assert await colour.answer == "blue"
    name = QuestionAsked(Question("Who?", "text", default="me"), PLAIN, 0.0)
    assert name.typing == "text"
    name.typed("")
    assert await name.answer == "me"


async def test_enter_gives_the_marked_answer_which_is_the_default_else_the_first() -> None:
    choices = ("red", "blue", "green")
    colour = QuestionAsked(Question("Which?", "select", choices), PLAIN, 0.0)
    colour.move(1)
    assert [line for line in texts(colour) if line.startswith("›")] == ["› 2  blue"]
    colour.enter()
    assert await colour.answer == "blue"
    green = QuestionAsked(Question("Which?", "select", choices, "green"), PLAIN, 0.0)
    green.enter()
    assert await green.answer == "green"
    sure = QuestionAsked(Question("Sure?", "confirm", default=False), PLAIN, 0.0)
    sure.enter()
    assert await sure.answer is False


async def test_enter_alone_neither_allows_nor_trusts_anything() -> None:
    allowed = Question("Load it?", "select", ("Yes", "No"), kinds=("allow_once", "reject_once"))
    trusted = Question("Trust?", "select", ("Trust it",), "Trust it", word="trust")
    for question in (allowed, trusted):
        asked = QuestionAsked(question, PLAIN, 0.0)
        asked.enter()
        assert not asked.answer.done()
        assert not asked.typing


async def test_what_wants_a_word_is_not_answered_by_a_key() -> None:
    question = Question("Trust?", "select", ("No", "Never", "Trust it"), "No", word="trust")
    asked = QuestionAsked(question, PLAIN, 0.0)
    asked.press("3")
    assert not asked.answer.done()
    asked.press("w")
    asked.typed("yes")
    assert not asked.answer.done()
    asked.press("w")
    asked.typed("trust")
    assert await asked.answer == "Trust it"


# the lines at the bottom


def test_the_status_drops_what_does_not_fit_from_the_right() -> None:
    status = Status("gpt-5", "default", "sandbox (bubblewrap)", "main")
    usage = {"input_tokens": 1000, "cached_tokens": 910, "cost": 0.042}
    status.report(UsageReported({}, usage, 14_000, 200_000))  # type: ignore[arg-type]
    whole = "gpt-5 · default · sandbox (bubblewrap) · 7 % of 200k · $0.04 · 91 % cached · main"
    assert status.line(100) == whole
    assert status.line(70) == "gpt-5 · default · sandbox (bubblewrap) · 7 % of 200k · $0.04"
    assert status.line(40) == "gpt-5 · default · 7 %"


def test_the_working_line_fits_and_counts() -> None:
    working = ProgressLine()
    working.doing = "Running " + "x" * 90
    working.report({"input_tokens": 3100, "output_tokens": 400})
    working.hear("word" * 20)
    line = plain(working.line(60, working.began + 12.4, PLAIN, moves=False))
    assert line.startswith("· Running xxx")
    assert line.endswith("… · 12 s · ↑3.1k ↓420 · esc stops")
    assert len(line) <= 60


def test_numbers_are_short() -> None:
    assert [short(n) for n in (950, 3100, 42_000, 1_200_000)] == ["950", "3.1k", "42k", "1.2M"]
    assert [lasted(n) for n in (3.9, 185.0)] == ["3 s", "3 min 5 s"]


def test_the_branch_is_read_where_git_keeps_it(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/topic/one\n", "utf-8")
    (tmp_path / "src").mkdir()
    assert branch_of(tmp_path / "src") == "topic/one"
    (tmp_path / "src/.git").write_text("gitdir: ../.git\n", "utf-8")
    assert branch_of(tmp_path / "src") == "topic/one"


def test_somebody_is_called_as_the_terminal_can() -> None:
    assert notification("done", {"TERM_PROGRAM": "iTerm.app"}) == "\x1b]9;done\x07"
    assert notification("done", {"TERM": "xterm-kitty"}) == "\x1b]99;;done\x1b\\"
    assert notification("done", {"TERM": "xterm-256color"}) == "\a"
    assert notification("done", {"TERM_PROGRAM": "iTerm.app", "TMUX": "x"}) == "\a"


def test_the_rows_of_a_narrower_window_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    assert rows_above([0, 30, 99], 5, 100) == 3
    assert rows_above([0, 30, 99], 65, 60) == 1 + 1 + 2 + 1
    monkeypatch.setenv("XTERM_VERSION", "XTerm(390)")
    assert rows_above([0, 30, 99], 65, 60) == 3


def test_blanks_at_the_end_of_a_line_are_not_written() -> None:
    assert trimmed("a \x1b[2mb\x1b[0m   \x1b[1m  \x1b[0m") == "a \x1b[2mb\x1b[0m"


async def test_a_question_that_is_left_has_its_default() -> None:
    asked = QuestionAsked(Question("Sure?", "confirm", default=False), PLAIN, 0.0)
    asked.leave()
    assert asked.left
    assert await asyncio.wait_for(asked.answer, 1) is False


class Said:
    """Something that was said to a run."""

    def __init__(self) -> None:
        self.is_delivered = False
        self.is_back = False

    def take_back(self) -> None:
        self.is_back = True


class Listening:
    """A conversation that keeps what is said to it."""

    def __init__(self) -> None:
        self.said: list[Said] = []

    def steer(self, text: str) -> Said:
        del text
        self.said.append(Said())
        return self.said[-1]


async def test_what_a_run_has_not_heard_at_its_end_is_said_next_in_the_order_of_its_typing():
    outbox, conversation = Outbox(), Listening()
    for text in ("heard", "late", "later"):
        outbox.steer(text, conversation)  # type: ignore[arg-type]
    outbox.put("queued")
    conversation.said[0].is_delivered = True
    assert list(outbox.delivered()) == ["heard"]
    outbox.postpone()
    assert [each.is_back for each in conversation.said] == [False, True, True]
    assert [await outbox.next() for _ in range(3)] == ["late", "later", "queued"]
    assert not outbox


class Kept:
    """Where rules are kept: one begins with a capital letter."""

    def __init__(self) -> None:
        self.rules: list[tuple[str, str, bool]] = []
        self.refused = asyncio.Event()

    async def __call__(self, rule: str, behaviour: str, lasting: bool) -> bool:
        self.rules.append((rule, behaviour, lasting))
        if not rule[0].isupper():
            self.refused.set()
        return rule[0].isupper()


async def test_a_rule_is_shown_and_edited_before_it_is_kept() -> None:
    kept = Kept()
    request = permission(rules=("Bash(make)",), keep=kept)
    questions = Questions(PLAIN, lambda: None, lambda _: None, lambda: None)
    asking = asyncio.create_task(questions.permission(request, "/project"))
    await asyncio.sleep(0)
    questions.press("a")
    assert questions.draft.text == "Bash(make)"
    assert any("Enter keeps them" in line for line in questions.lines(60, 30))
    questions.draft.text = "bash make"
    questions.say()
    await asyncio.wait_for(kept.refused.wait(), 5)
    await asyncio.sleep(0)
    assert any("bash make is no rule." in line for line in questions.lines(60, 30))
    questions.press("a")
    questions.draft.text = "Bash(make *)\nRead"
    questions.say()
    assert (await asyncio.wait_for(asking, 5))[0] == "allow_once"
    assert kept.rules[1:] == [("Bash(make *)", "allow", True), ("Read", "allow", True)]


async def test_a_rule_that_is_kept_as_it_was_offered_is_the_option_itself() -> None:
    kept = Kept()
    asked = PermissionAsked(permission(rules=("Bash(make)",), keep=kept), "/project", PLAIN, 0.0)
    asked.press("a")
    asked.typed(asked.written)
    assert await asked.answer == "allow_always"
    assert asked.kept == ()


async def test_an_answer_holds_for_the_session() -> None:
    kept = Kept()
    request = permission(rules=("Bash(make)",), keep=kept)
    questions = Questions(PLAIN, lambda: None, lambda _: None, lambda: None)
    asking = asyncio.create_task(questions.permission(request, "/project"))
    await asyncio.sleep(0)
    questions.press("s")
    assert (await asyncio.wait_for(asking, 5))[0] == "allow_once"
    assert kept.rules == [("Bash(make)", "allow", False)]


def test_of_a_paragraph_without_an_end_only_its_end_is_drawn_until_it_is_final() -> None:
    answer = AnswerText(Palette(), "m")
    words = [f"word{number}" for number in range(3000)]
    answer.take(" ".join(words))
    live = [plain(line) for line in answer.live(80, 0.0)]
    assert sum(map(len, live)) <= OPEN
    assert live[-1].endswith("word2999")
    answer.end()
    assert " ".join(plain(line) for line in answer.final(80)).split() == words
