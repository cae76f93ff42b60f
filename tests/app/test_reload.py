"""Extensions that are edited while they are in use: exactly undone, and hung again."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Room, write

from crow import Allow, tool
from crow.project.trust import trust
from crow.testing import call

GREETS = """
def before_run(ctx):
    count = ctx.state.setdefault("count", 0) + 1
    ctx.state["count"] = count
    return f"{version} says hello for the {{count}}th time"
"""
LIVES = """
from pathlib import Path

LOG = Path({log!r})


def say(text):
    with LOG.open("a") as log:
        log.write("{version} " + text + "\\n")


class Lives:
    async def lifespan(self, agent):
        say("lives")
        yield
        say("dies")

    def on_session_start(self, ctx):
        say("starts by " + ctx.source)

    def on_session_end(self, ctx):
        say("ends by " + ctx.reason)

    def before_run(self):
        say("runs")
"""


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    """What is imported here is forgotten."""
    before, path = {*sys.modules}, [*sys.path]
    yield
    for name in {*sys.modules} - before:
        del sys.modules[name]
    sys.path[:] = path


def extension(home: Path, name: str, text: str, **given: str) -> Path:
    return write(home / f".crow/extensions/{name}.py", text.format(**given) if given else text)


def contexts(room: Room) -> list[str]:
    """What hooks have told the model."""
    assert room.session is not None
    texts = [str(each["content"]) for each in room.session.messages if each["role"] == "user"]
    return [text for text in texts if "says hello" in text]


def asked(room: Room) -> Any:
    """What the model was asked last."""
    model: Any = room.agents[-1].llm
    return model.asked[-1]


async def said(room: Room, prompt: str) -> str:
    """What a prompt is answered without the model."""
    assert room.session is not None
    return (await room.agents[-1].prompt(room.session, prompt)).text


async def test_a_changed_file_is_used_from_the_next_prompt_on_with_its_state(
    room: Room, home: Path
) -> None:
    path = extension(home, "greets", GREETS, version="v1")
    await room.do()
    extension(home, "greets", GREETS, version="v2")
    await room.do()
    await room.do()
    first, second, third = contexts(room)
    assert "v1 says hello for the 1th time" in first
    assert "v2 says hello for the 2th time" in second
    assert "v2 says hello for the 3th time" in third
    assert room.person.told.count("the extension greets is in use as it is now") == 1
    (found,) = [each for each in room.agents[-1].found if each.source == str(path)]
    assert (found.names, found.error) == (("greets",), None)


async def test_an_edit_of_equal_size_in_the_same_moment_is_seen(room: Room, home: Path) -> None:
    path = extension(home, "greets", GREETS, version="v1")
    await room.do()
    before = path.stat()
    path.write_text(path.read_text("utf-8").replace("v1", "v2"), "utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    await room.do()
    assert "v2 says hello" in contexts(room)[-1]


async def test_a_file_that_is_only_touched_changes_nothing(room: Room, home: Path) -> None:
    path = extension(home, "greets", GREETS, version="v1")
    await room.do()
    thing = room.agents[-1].extensions["greets"]
    os.utime(path)
    await room.do()
    assert room.agents[-1].extensions["greets"] is thing
    assert "greets" not in room.person.told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def before_run(:\n", "SyntaxError"),
        ("raise ValueError('not today')\n", "ValueError: not today"),
        ("def before_rum(ctx): ...\n", "it holds no extension"),
        ("def before_run(ctx, nonsense): ...\n", "before_run has no 'nonsense'"),
        ("def init_agent(agent):\n    agent.no_such_thing\n", "no_such_thing"),
    ],
)
async def test_a_broken_edit_leaves_the_one_before_in_use(
    room: Room, home: Path, text: str, said: str
) -> None:
    path = extension(home, "greets", GREETS, version="v1")
    await room.do()
    thing, order = room.agents[-1].extensions["greets"], [*room.agents[-1].extensions]
    write(path, text)
    await room.do()
    assert "v1 says hello for the 2th time" in contexts(room)[-1]
    assert room.agents[-1].extensions["greets"] is thing
    assert [*room.agents[-1].extensions] == order
    assert "the extension greets is broken, the one before stays in use: " in room.person.told
    assert said in room.person.told
    assert str(path) in room.person.told or said == "it holds no extension"
    extension(home, "greets", GREETS, version="v3")
    await room.do()
    assert "v3 says hello for the 3th time" in contexts(room)[-1]


async def test_it_is_left_and_entered_as_by_a_session(
    room: Room, home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    extension(home, "lives", LIVES, version="v1", log=str(log))
    await room.do()
    extension(home, "lives", LIVES, version="v2", log=str(log))
    await room.do()
    await room.agents[-1].close()
    assert log.read_text().splitlines() == [
        "v1 lives",
        "v1 starts by new",
        "v1 runs",
        "v1 ends by reload",
        "v2 lives",
        "v1 dies",
        "v2 starts by reload",
        "v2 runs",
        "v2 ends by exit",
        "v2 dies",
    ]


async def test_it_stands_where_it_stood(room: Room, home: Path) -> None:
    for name in ("a", "b", "c"):
        extension(home, name, "def before_run(): ...\n")
    await room.do()
    agent = room.agents[-1]

    def order() -> tuple[list[str], list[str]]:
        hooks = [hook.owner.name for hook in agent.hooks.before_run.entries]
        return [name for name in hooks if name in "abc"], [*agent.extensions]

    before = order()
    extension(home, "b", "def before_run(ctx): ...\n")
    await room.do()
    assert "the extension b is in use as it is now" in room.person.told
    assert order() == before


async def test_what_it_imports_beside_itself_counts_too(room: Room, home: Path) -> None:
    extension(home, "_words", 'WORD = "v1"\n')
    here = "import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\n"
    text = "from _words import WORD\ndef before_run(): return WORD + ' says hello'\n"
    extension(home, "greets", here + text)
    await room.do()
    extension(home, "_words", 'WORD = "v2"\n')
    await room.do()
    first, second = contexts(room)
    assert "v1 says hello" in first
    assert "v2 says hello" in second


async def test_a_new_file_is_used_and_one_that_is_gone_is_not(room: Room, home: Path) -> None:
    await room.do()
    path = extension(home, "greets", GREETS, version="v1")
    await room.do()
    assert "the extension greets is new, and in use" in room.person.told
    path.unlink()
    await room.do()
    assert "greets is gone, and not in use any more" in room.person.told
    assert len(contexts(room)) == 1
    assert "greets" not in room.agents[-1].extensions


async def test_a_test_beside_extensions_is_none(room: Room, home: Path) -> None:
    await room.do()
    extension(home, "test_greets", GREETS, version="v1")
    extension(home, "conftest", GREETS, version="v1")
    assert await said(room, "/reload") == "Nothing has changed."


async def test_a_file_of_the_command_line_that_is_gone_goes_by_a_word(
    room: Room, tmp_path: Path
) -> None:
    path = write(tmp_path / "greets.py", GREETS.format(version="v1"))
    room.agent(extensions=[str(path)])
    await room.do()
    path.unlink()
    await room.do()
    await room.do()
    assert room.person.told.count(f"{path} is gone: /reload uses it no more") == 1
    assert len(contexts(room)) == 3
    assert await said(room, "/reload") == "greets is gone, and not in use any more"
    await room.do()
    assert len(contexts(room)) == 3
    assert "greets" not in room.agents[-1].extensions


async def test_the_class_before_is_forgotten(room: Room, home: Path) -> None:
    text = "class Greets:\n    def before_run(self): return '{version} says hello'\n"
    extension(home, "greets", text, version="v1")
    await room.do()
    old = weakref.ref(type(room.agents[-1].extensions["greets"]))
    extension(home, "greets", text, version="v2")
    await room.do()
    await room.do()
    gc.collect()
    assert old() is None


async def test_the_prefix_of_requests_stays_as_it_was(room: Room, home: Path) -> None:
    extension(home, "greets", GREETS, version="v1")
    await room.do()
    first = asked(room)
    extension(home, "greets", GREETS, version="v2")
    await room.do()
    second = asked(room)
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["tools"] == first["tools"]


async def test_a_projects_file_needs_its_trust_again(room: Room, project: Path) -> None:
    path = project / ".crow/extensions/greets.py"
    write(path, GREETS.format(version="v1"))
    trust(project)
    await room.do()
    write(path, GREETS.format(version="v2"))
    await room.do()
    told = await said(room, "/reload")
    assert told == f"{path} has changed, and the project is not trusted (crow trust)"
    await room.do()
    assert "v1 says hello" in contexts(room)[-1]
    trust(project)
    await room.do()
    assert "the extension greets is in use as it is now" in room.person.told
    assert await said(room, "/reload") == "Nothing has changed."
    assert "v2 says hello" in contexts(room)[-1]


async def test_another_session_at_work_is_not_disturbed(room: Room, home: Path) -> None:
    path = extension(home, "greets", GREETS, version="v1")
    await room.do()
    agent = room.agents[-1]
    answers: list[Any] = []

    @tool
    async def change() -> str:
        """Change the extension, and prompt another session meanwhile."""
        write(path, GREETS.format(version="v2"))
        other = await agent.new_session(str(path.parent))
        answers.append((await agent.prompt(other, "/reload")).text)
        await agent.close_session(other)
        return "done"

    agent.add_tool(change)
    agent.hooks.register("on_permission", lambda ctx: Allow())
    await room.do(call("change"))
    assert answers == ["Another session is at work: /reload when it is done."]
    await room.do()
    assert "v2 says hello" in contexts(room)[-1]


async def test_a_package_of_the_command_line_is_offered_and_reloaded_by_a_word(
    room: Room, tmp_path: Path
) -> None:
    folder = tmp_path / "crow-greets"
    told = (
        '[project]\nname = "crow-greets"\nversion = "1"\n[project.entry-points."crow.extensions"]\n'
    )
    write(folder / "pyproject.toml", told + 'greets = "crow_greets_here:Greets"\n')
    hook = "from crow_greets_here.words import WORD\nclass Greets:\n    def before_run(self): return WORD\n"
    write(folder / "src/crow_greets_here/__init__.py", hook)
    words = write(folder / "src/crow_greets_here/words.py", 'WORD = "v1 says hello"\n')
    room.agent(extensions=[str(folder)])
    await room.do()
    write(words, 'WORD = "v2 says hello"\n')
    await room.do()
    await room.do()
    assert room.person.told.count("has changed: /reload uses it as it is now") == 1
    assert "v1 says hello" in contexts(room)[-1]
    await said(room, "/reload")
    await room.do()
    assert "v2 says hello" in contexts(room)[-1]
    await said(room, "/reload")


async def test_a_gate_stays_shut_while_it_is_broken(room: Room, home: Path) -> None:
    text = "from crow import Deny\ndef before_tool(ctx): return Deny('{version} says no')\n"
    path = extension(home, "gate", text, version="v1")
    touch = call("Bash", command="touch made")
    (first,) = await room.do(touch)
    assert "v1 says no" in first
    write(path, "import no_such_module\n")
    (second,) = await room.do(touch)
    assert "v1 says no" in second
