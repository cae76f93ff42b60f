"""Calls that cannot succeed are answered without asking anybody; the others are shown first."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Ask, tool
from crow.extensions import PermissionsHook, SkillsHook, SubagentsHook, WebHook
from crow.testing import FakeEditor, ScriptedModel, call

Call = tuple[str, dict[str, Any]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one of everything that cannot be written."""
    folder = tmp_path / "project"
    (folder / "folder").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\ntwo\n")
    (folder / "unread.txt").write_text("secret\n")
    (folder / "binary").write_bytes(b"\0\1\2")
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(tmp_path / "outside.txt")
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 32)
    (tmp_path / "outside.txt").write_text("the key\n")
    return folder


async def ask(
    project: Path, *wanted: Call, read: str = "a.txt", permissions: Any = None, **editor: Any
) -> FakeEditor:
    """Have a model read a file, then make calls, one a turn; the editor that saw it."""
    made = [call(name, **args) for name, args in wanted]
    reading = [call("Read", file_path=str(project / read))] if read else []
    asked = FakeEditor(**editor)
    agent = Agent(
        llm=ScriptedModel(*reading, *made, "done"), hooks=[permissions or PermissionsHook()]
    )
    async with asked.connected(agent):
        await asked.prompt(await asked.new_session(project), "Go")
    return asked


IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    ("Edit", {"file_path": "unread.txt", "old_string": "s", "new_string": "t"}, "not been read"),
    ("Edit", {"file_path": "a.txt", "old_string": "three", "new_string": "4"}, "does not occur"),
    ("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, "occurs 2 times"),
    ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "one"}, "are the same"),
    ("Edit", {"file_path": "a.txt", "old_string": "", "new_string": "x"}, "is not empty"),
    ("Edit", {"file_path": "gone.txt", "old_string": "x", "new_string": "y"}, "does not exist"),
    ("Edit", {"file_path": "folder", "old_string": "x", "new_string": "y"}, "is a directory"),
    ("Edit", {"file_path": "binary", "old_string": "x", "new_string": "y"}, "is binary"),
    ("Edit", {"file_path": "pipe", "old_string": "x", "new_string": "y"}, "no regular file"),
    ("Edit", {"file_path": "huge", "old_string": "x", "new_string": "y"}, "more than fit"),
    ("Edit", {"file_path": "link", "old_string": "x", "new_string": "y"}, "a symbolic link"),
    ("Write", {"file_path": "unread.txt", "content": "x"}, "not been read"),
    ("Write", {"file_path": "folder", "content": "x"}, "is a directory"),
    ("Write", {"file_path": "pipe", "content": "x"}, "no regular file"),
    ("Write", {"file_path": "huge", "content": "x"}, "more than fit"),
    ("Write", {"file_path": "a.txt/below.txt", "content": "x"}, "Not a directory"),
    ("Write", {"file_path": "new.txt", "content": "x" * (17 << 20)}, "would have"),
    ("KillShell", {"shell_id": "bash_9"}, "No background command"),
    ("Bash", {"command": "touch made"}, "is not there"),
    ("Bash", {"command": ""}, "no command"),
    ("Bash", {"command": " \n\t"}, "no command"),
    ("Read", {"file_path": "gone.txt"}, "does not exist"),
    ("Read", {"file_path": "folder"}, "is a directory"),
    ("Read", {"file_path": "pipe"}, "no regular file"),
    ("Glob", {"pattern": "*", "path": "gone"}, "does not exist"),
    ("Grep", {"pattern": "x", "path": "pipe"}, "no regular file"),
    ("Grep", {"pattern": "", "path": "."}, "it is empty"),
    ("LS", {"path": "a.txt"}, "Not a directory"),
]


def before_tool(ctx: Any) -> Ask | None:
    """A hook that has everything asked about, but the first read."""
    return None if "a.txt" in str(ctx.args) and ctx.call.name == "Read" else Ask("as always")


@pytest.mark.parametrize(
    "name, args, reason", IMPOSSIBLE, ids=[f"{n} {r}" for n, _, r in IMPOSSIBLE]
)
async def test_what_cannot_succeed_is_answered_without_a_question(
    project: Path, name: str, args: dict[str, Any], reason: str
) -> None:
    editor = FakeEditor()
    cwd = project / "folder" if name == "Bash" else project
    wanted: Any = call(name, **args)
    script = call("Read", file_path=str(project / "a.txt")), wanted, "done"
    agent = Agent(llm=ScriptedModel(*script), hooks=[before_tool])

    def before_llm_request(ctx: Any) -> None:
        if name == "Bash" and cwd.exists():
            cwd.rmdir()

    agent.hooks.before_llm_request(before_llm_request)
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(cwd), "Go")
        card = editor.cards()[-1]
    assert editor.asked == []
    assert card["status"] == "failed"
    assert reason in card["content"][0]["content"]["text"]


NOWHERE: list[tuple[str, str]] = [
    ("n" * 300, "a name in it has 300 bytes, and 255 is the most"),
    ("ü" * 128 + "/a", "a name in it has 256 bytes"),
    ("b/" * 3000, "bytes, and a path has 4095 at most"),
    ("a\0b", "no path has a NUL character"),
    ("dangling", "leads through a symbolic link to"),
    ("empty", "leads through a symbolic link to"),
    ("empty/below.txt", "leads through a symbolic link to"),
    ("circle", "circle"),
    ("circle/below.txt", "symbolic link"),
]


@pytest.mark.parametrize("path, reason", NOWHERE, ids=[path[:16] for path, _ in NOWHERE])
async def test_a_path_that_leads_nowhere_is_answered_without_a_question_or_a_judge(
    project: Path, path: str, reason: str
) -> None:
    (project / "dangling").symlink_to("/nowhere/at/all")
    (project / "empty").symlink_to("not there")
    (project / "circle").symlink_to("circle")
    field: dict[str, str] = dict.fromkeys(("Read", "Write", "Edit"), "file_path")
    more: dict[str, dict[str, Any]] = {
        "Read": {}, "Write": {"content": "x"}, "Edit": {"old_string": "x", "new_string": "y"},
        "Grep": {"pattern": "x"}, "Glob": {"pattern": "*"}, "LS": {},
    }  # fmt: skip
    calls = [(name, {field.get(name, "path"): path, **args}) for name, args in more.items()]
    editor = await ask(project, *calls)
    assert editor.asked == []
    told = [card["content"][0]["content"]["text"] for card in editor.cards()[1:]]
    assert len(told) == len(more)
    assert all(reason in each and len(each) < 400 for each in told), told


@pytest.mark.parametrize("name", ["Read", "Write", "Edit", "Grep"])
async def test_a_socket_is_no_regular_file(tmp_path: Path, name: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "Read": {"file_path": "s"},
        "Write": {"file_path": "s", "content": "x"},
        "Edit": {"file_path": "s", "old_string": "x", "new_string": "y"},
        "Grep": {"path": "s", "pattern": "x"},
    }
    with tempfile.TemporaryDirectory(prefix="s") as short, socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{short}/s")  # a socket's path has a hundred bytes at most
        editor = await ask(Path(short), (name, given[name]), read="")
        assert editor.asked == []
        assert "no regular file" in editor.cards()[-1]["content"][0]["content"]["text"]


@pytest.mark.parametrize("name", ["Read", "Write", "Edit", "LS"])
async def test_why_a_file_cannot_be_had_is_said_in_words(project: Path, name: str) -> None:
    path = str(project / "a.txt/below.txt")
    given: dict[str, dict[str, Any]] = {
        "Read": {"file_path": path},
        "Write": {"file_path": path, "content": "x"},
        "Edit": {"file_path": path, "old_string": "x", "new_string": "y"},
        "LS": {"path": path},
    }
    editor = await ask(project, (name, given[name]))
    assert editor.asked == []
    assert (
        editor.cards()[-1]["content"][0]["content"]["text"]
        .strip("`\n")
        .endswith(": Not a directory.")
    )


URLS: list[tuple[str, str]] = [
    ("", "must begin with https"),
    ("example.com", "must begin with https"),
    ("//example.com/x", "must begin with https"),
    ("ftp://example.com/", "must begin with https"),
    ("file:///etc/passwd", "must begin with https"),
    ("http:///x", "must begin with https"),
    ("https://a b/", "blanks"),
    ("https://example.com:abc/", "no URL"),
    ("https://example.com:99999/", "no port 99999"),
    ("https://example.com:0/", "no port 0"),
    ("https://[::1", "no URL"),
    ("https://ann:secret@example.com/", "a name or a password"),
    ("https://example..com/", "no host can have the name"),
    (f"https://{'a' * 64}.com/", "no host can have the name"),
    (f"https://{'a.' * 130}com/", "no host can have the name"),
    ("http://127.0.0.1:8000/", "no public address"),
    ("http://[::1]/", "no public address"),
    ("http://[::ffff:10.0.0.1]/", "no public address"),
    ("http://169.254.169.254/latest/", "no public address"),
    ("http://localhost:3000/", "no public address"),
    ("http://app.localhost./", "no public address"),
]


@pytest.mark.parametrize("url, reason", URLS, ids=[url[:30] for url, _ in URLS])
async def test_a_page_that_nobody_can_have_is_answered_without_a_question(
    project: Path, url: str, reason: str
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} was looked up")

    editor = FakeEditor()
    wanted = call("WebFetch", url=url, prompt="What is there?")
    agent = Agent(
        llm=ScriptedModel(wanted, "done"), hooks=[WebHook(resolve=resolve), PermissionsHook()]
    )
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
    assert editor.asked == []
    assert reason in editor.cards()[-1]["content"][0]["content"]["text"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "http://localhost:9/"])
async def test_an_address_that_options_allow_is_asked_about(project: Path, url: str) -> None:
    editor = FakeEditor(permissions=["reject_once"])
    wanted = call("WebFetch", url=url, prompt="What is there?")
    web = WebHook(allow_private=["127.0.0.0/8"])
    agent = Agent(llm=ScriptedModel(wanted, "done"), hooks=[web, PermissionsHook()])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
    assert len(editor.asked) == 1


UNKNOWN: list[tuple[str, dict[str, Any], str]] = [
    (
        "Agent",
        {"description": "x", "prompt": "x", "subagent_type": "none"},
        "there is no sub-agent",
    ),
    ("Agent", {"description": "x", "prompt": "  "}, "has nothing to do"),
    ("Skill", {"skill": "none"}, "there is no skill"),
    ("Skill", {"skill": "mine"}, "only the user can start mine"),
]


@pytest.mark.parametrize("name, args, reason", UNKNOWN, ids=[reason for *_, reason in UNKNOWN])
async def test_what_is_not_there_to_be_used_is_answered_without_a_question(
    project: Path, tmp_path: Path, name: str, args: dict[str, Any], reason: str
) -> None:
    for skill, more in {"pdf": "", "mine": "disable-model-invocation: true\n"}.items():
        (tmp_path / "skills" / skill).mkdir(parents=True)
        front = f"---\nname: {skill}\ndescription: A skill.\n{more}---\nDo it.\n"
        (tmp_path / "skills" / skill / "SKILL.md").write_text(front)
    editor = FakeEditor()
    agent = Agent(
        llm=ScriptedModel(call(name, **args), "done"),
        hooks=[SubagentsHook([]), SkillsHook(paths=[tmp_path / "skills"]), before_tool],
    )
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
    assert editor.asked == []
    assert reason in editor.cards()[-1]["content"][0]["content"]["text"]


@pytest.fixture
def closed(project: Path) -> Path:
    """A folder with what is read-only, and what may not even be read."""
    for name, mode in {"seen": 0o400, "kept": 0}.items():
        (project / name).mkdir()
        for file in (project / name / "a.txt", project / f"{name}.txt"):
            file.write_text("one\n")
            file.chmod(mode)
    (project / "seen").chmod(0o500)
    (project / "kept").chmod(0)
    if os.access(project / "kept", os.R_OK):
        pytest.skip("nothing is closed to this user")
    return project


CLOSED: list[tuple[str, str, str]] = [
    ("Read", "kept.txt", "Permission denied"),
    ("Read", "kept/a.txt", "Permission denied"),
    ("Read", "kept", "Permission denied"),
    ("Write", "kept.txt", "Permission denied"),
    ("Write", "kept/new.txt", "Permission denied"),
    ("Write", "seen.txt", "read-only"),
    ("Write", "seen/new.txt", "read-only"),
    ("Write", "seen/below/new.txt", "read-only"),
    ("Edit", "kept.txt", "Permission denied"),
    ("Edit", "seen.txt", "read-only"),
    *((name, path, "Permission denied") for name in ("Grep", "LS") for path in ("kept", "kept/a")),
    *(("Glob", path, "Permission denied") for path in ("kept", "kept/a")),
    ("Grep", "kept.txt", "Permission denied"),
]


@pytest.mark.parametrize("name, path, reason", CLOSED)
async def test_what_is_closed_is_answered_without_a_question(
    closed: Path, name: str, path: str, reason: str
) -> None:
    given: dict[str, dict[str, Any]] = {
        "Read": {"file_path": path},
        "Write": {"file_path": path, "content": "x"},
        "Edit": {"file_path": path, "old_string": "one", "new_string": "x"},
        "Grep": {"path": path, "pattern": "one"},
        "Glob": {"path": path, "pattern": "*"},
        "LS": {"path": path},
    }
    reading = [("Read", {"file_path": path})] if reason == "read-only" else []
    editor = await ask(closed, *reading, (name, given[name]), read="")
    assert editor.asked == []
    told = editor.cards()[-1]["content"][0]["content"]["text"]
    assert reason in told
    assert "Errno" not in told


@pytest.mark.parametrize("rule", ["Read", "Read(unread.txt)", "Read(./**)"])
@pytest.mark.parametrize("behaviour", ["ask", "deny"])
async def test_a_file_that_may_not_be_read_unasked_tells_nothing_before_the_answer(
    project: Path, rule: str, behaviour: str
) -> None:
    path = str(project / "unread.txt")
    edit: dict[str, Any] = {"file_path": path, "old_string": "sec", "new_string": "x"}
    rules: Any = {behaviour: [rule]}
    editor = FakeEditor(permissions=["reject_once"])
    agent = Agent(llm=ScriptedModel(call("Edit", **edit), "done"), hooks=[PermissionsHook(**rules)])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
        (card,) = editor.cards()
    told = json.dumps(card)
    assert "not been read" not in told
    assert "secret" not in json.dumps(editor.asked)
    is_asked = behaviour == "ask" or rule == "Read"
    assert len(editor.asked) == (1 if is_asked else 0)
    assert ("rejected" in told) is is_asked


async def test_a_file_outside_is_not_opened_before_the_answer(
    project: Path, tmp_path: Path
) -> None:
    edit = {"file_path": str(tmp_path / "outside.txt"), "old_string": "nope", "new_string": "x"}
    write = {"file_path": str(tmp_path / "outside.txt"), "content": "all new\n"}
    editor = await ask(project, ("Edit", edit), ("Write", write), read="")
    edited, written = (asked["toolCall"]["content"] for asked in editor.asked)
    path = str(tmp_path / "outside.txt")
    assert {"type": "diff", "path": path, "oldText": "nope", "newText": "x"} in edited
    assert {"type": "diff", "path": path, "oldText": "", "newText": "all new\n"} in written
    assert "the key" not in json.dumps(editor.asked)
    assert (tmp_path / "outside.txt").read_text() == "the key\n"


async def test_a_denied_call_is_denied_whether_it_could_succeed_or_not(project: Path) -> None:
    edit = {"file_path": str(project / "a.txt"), "old_string": "three", "new_string": "x"}
    editor = await ask(project, ("Edit", edit), permissions=PermissionsHook(deny=["Edit"]))
    assert editor.asked == []
    assert "the rule Edit denies it" in editor.cards()[-1]["content"][0]["content"]["text"]


async def test_a_call_that_needs_an_earlier_one_of_the_same_reply_is_asked_about(
    project: Path,
) -> None:
    path = str(project / "new.txt")
    both = [
        call("Write", file_path=path, content="one\n"),
        call("Edit", file_path=path, old_string="one", new_string="two"),
    ]
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel(both, "done"), hooks=[PermissionsHook()])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
    assert len(editor.asked) == 2
    assert Path(path).read_text() == "two\n"


async def test_a_file_is_read_before_an_edit_of_the_same_reply_is_made(project: Path) -> None:
    path = str(project / "unread.txt")
    both = [
        call("Read", file_path=path),
        call("Edit", file_path=path, old_string="secret", new_string="known"),
    ]
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel(both, "done"), hooks=[PermissionsHook()])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
    assert (project / "unread.txt").read_text() == "known\n"


@pytest.mark.parametrize(
    "name, args, old, new",
    [
        (
            "Edit",
            {"old_string": "two", "new_string": "2", "replace_all": True},
            "one\ntwo\ntwo\n",
            "one\n2\n2\n",
        ),
        ("Write", {"content": "all\n"}, "one\ntwo\ntwo\n", "all\n"),
    ],
)
async def test_the_question_shows_what_will_be_written(
    project: Path, name: str, args: dict[str, Any], old: str, new: str
) -> None:
    path = str(project / "a.txt")
    editor = await ask(project, (name, {"file_path": path, **args}))
    (asked,) = editor.asked
    diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
    assert diff in asked["toolCall"]["content"]
    assert asked["toolCall"]["rawInput"]["file_path"] == path
    assert Path(path).read_text() == new


async def test_the_question_shows_a_new_file_as_new(project: Path) -> None:
    path = str(project / "new.txt")
    editor = await ask(project, ("Write", {"file_path": path, "content": "hello\n"}), read="")
    diff = editor.asked[0]["toolCall"]["content"][0]
    assert (diff["path"], diff.get("oldText"), diff["newText"]) == (path, None, "hello\n")


async def test_the_question_shows_the_arguments_as_hooks_have_left_them(project: Path) -> None:
    def PreToolUse(ctx: Any) -> None:
        ctx.args = {**ctx.args, "body": "rewritten"}

    async def post(title: str, body: str) -> str:
        return f"{title}: {body}"

    editor = FakeEditor()
    script = call("post", title="Hello", body="there"), "done"
    agent = Agent(
        llm=ScriptedModel(*script), tools=[tool(post)], hooks=[PermissionsHook(), PreToolUse]
    )
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(project), "Go")
    (asked,) = editor.asked
    told = asked["toolCall"]["content"][-1]["content"]["text"]
    assert json.loads(told.strip("`")) == {"title": "Hello", "body": "rewritten"}
    assert asked["toolCall"]["rawInput"] == {"title": "Hello", "body": "rewritten"}
