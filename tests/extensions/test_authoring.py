"""The model writes an extension: it learns how, the user looks at the code, it is in use at once."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from crow import Allow
from crow.events import PermissionRequest
from crow.extensions.authoring import SKILL, SKILLS
from crow.testing import FakeEditor, Pilot, ScriptedUser, call

ROOT = Path(__file__).parents[2]
GUIDE = str(SKILLS / SKILL / "SKILL.md")
GUARD = '''"""Nobody pushes."""

from crow import Answer, Command, Deny


class NoPush:
    """Denies what pushes."""

    def init_agent(self, agent):
        agent.add_command(Command("pushes", "How often", self.pushes))

    def pushes(self, ctx):
        return Answer("none")

    def before_tool(self, call):
        if "push" in call.input.get("command", ""):
            return Deny("nobody pushes here")
'''
ASKED = "Write a crow extension that keeps me from pushing"


def test_from_the_prompt_to_the_hook_that_fires(crow: Pilot) -> None:
    path = written(crow)
    crow.user.answers("until_end")
    crow.run(
        ASKED,
        call("Read", file_path=GUIDE),
        call("LoadExtension", file_path=str(path)),
        call("Bash", command="git push"),
        "It works.",
    )
    crow.denied("Bash", "nobody pushes here")
    crow.prefix_stable()
    assert not (Path.home() / ".crow/extensions").exists()


@pytest.mark.parametrize(
    "prompt", ["Write a hook.", "Can Crow do that?", "an (extension) for PRs", "Two hooks, please"]
)
def test_what_speaks_of_it_is_told_of_the_skill(crow: Pilot, prompt: str) -> None:
    crow.run(prompt, "Yes.")
    assert tools(crow) == ["LoadExtension"]
    crow.sent(f"- {SKILL}: ")


def test_later_on_the_tool_comes_with_the_skill(crow: Pilot) -> None:
    crow.run("Hello", "Good day!")
    crow.run("And now a hook of useState", "Yes.")
    assert tools(crow) == []
    crow.run("Read it", call("Skill", skill=SKILL), "I know.")
    assert tools(crow) == ["LoadExtension"]


@pytest.mark.parametrize(
    "prompt", ["Hello", "See /tmp/crow-1/a.png", "Mend src/hooks/use.ts", "crow.py", ".git/hooks"]
)
def test_other_sessions_hear_nothing_of_it(crow: Pilot, prompt: str) -> None:
    crow.run(prompt, "Good day!")
    assert tools(crow) == []
    crow.sent(SKILL, times=0)


def test_reading_the_guide_needs_no_question(crow: Pilot) -> None:
    docs = SKILLS / SKILL / "docs"
    crow.run(
        ASKED,
        call("Read", file_path=GUIDE),
        call("Read", file_path=str(docs / "hooks.md")),
        call("Read", file_path=str(SKILLS / SKILL / "examples" / "stopwatch.py")),
        "I know.",
    )
    crow.called("Read", times=3)
    crow.denied("Read", times=0)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "auto", "bypassPermissions"])
async def test_no_mode_no_rule_and_no_hook_answers_for_the_user(crow: Pilot, mode: str) -> None:
    crow.configure(allow=["LoadExtension", "Bash(*)"])
    crow.use(ALLOWS)
    crow.user.answers("reject_once")
    async with crow:
        await in_mode(crow, mode)
        await crow.arun(ASKED, load(written(crow)), "I see.")
        crow.asked("Use the extension no_push")
        crow.denied("LoadExtension")
        assert not hangs(crow)


async def test_a_mode_in_which_nobody_is_asked_denies(crow: Pilot) -> None:
    async with crow:
        await in_mode(crow, "dontAsk")
        await crow.arun(ASKED, load(written(crow)), "I see.")
        crow.denied("LoadExtension")
        assert not hangs(crow)


class ALLOWS:
    """A hook that is for everything."""

    def before_tool(self) -> Allow:
        return Allow("why not")

    def on_permission(self) -> Allow:
        return Allow("why not")


def test_the_user_sees_the_code_and_what_it_hangs_on(crow: Pilot) -> None:
    def look(request: PermissionRequest) -> str:
        (diff,) = request.diffs
        assert (diff.old, diff.new) == (None, GUARD)
        assert request.reason == (
            "it is code that runs inside of Crow, in no sandbox. "
            "hooks: before_tool; commands: /pushes"
        )
        assert [each.name for each in request.options] == [
            *("Use it until Crow ends", "Use it whenever Crow runs", "Reject"),
        ]
        return "until_end"

    crow.user.answers(look)
    crow.run(ASKED, load(written(crow)), "Done.")
    crow.sent("no_push is in use, until Crow ends. hooks: before_tool; commands: pushes")


def test_what_the_guide_shows_works(crow: Pilot) -> None:
    hook, tool = re.findall(r"```python\n(.*?)```", Path(GUIDE).read_text(), re.DOTALL)
    crow.user.answers("until_end", "until_end", "allow_once")
    crow.run(
        ASKED,
        load(written(crow, hook, "no_push_to_main.py")),
        load(written(crow, tool, "outside.py")),
        call("Bash", command="git push origin main"),
        call("temperature", place="Oslo"),
        "Done.",
    )
    crow.sent("hooks: before_tool; commands: pushes")
    crow.denied("Bash", "nobody pushes to main")
    crow.sent("21 C in Oslo")
    assert crow.run("/pushes").text == "1 pushes were denied."


def test_the_guide_names_files_that_there_are() -> None:
    folder = Path(GUIDE).parent
    named = re.findall(r"`((?:docs|examples)/[^`]*)`", Path(GUIDE).read_text())
    assert len(named) > 5
    assert [name for name in named if not (folder / name).exists()] == []


def links_of(page: Path) -> list[Path]:
    """Where a page's relative links lead, those of pictures as well."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    return [page.parent / link for link in found]


@pytest.mark.slow
def test_what_is_installed_has_all_that_the_guide_names(tmp_path: Path) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".uv/bin"))
    if uv is None:
        pytest.skip("no uv")
    subprocess.run([uv, "build", "-q", "--wheel", "-o", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "crow-is-here")
    guide = tmp_path / "crow-is-here" / Path(GUIDE).relative_to(ROOT / "src")
    named = re.findall(r"`((?:docs|examples)/[^`]*)`", guide.read_text())
    assert [name for name in named if not (guide.parent / name).exists()] == []
    assert [*guide.parent.rglob("*.json"), *guide.parent.rglob("*.svg")] == []
    links = [link for page in guide.parent.rglob("*.md") for link in links_of(page)]
    assert len(links) > 200
    assert [link for link in links if not link.exists()] == []
    programs = guide.parents[3] / "permissions/programs/programs.txt"
    assert programs in [link.resolve() for link in links]
    assert wheel.stat().st_size < 2_200_000


def test_what_is_loaded_is_what_was_shown(crow: Pilot) -> None:
    path = written(crow)

    def swap(request: PermissionRequest) -> str:
        path.write_text("raise SystemExit('something else')")
        return "keep"

    crow.user.answers(swap)
    crow.run(ASKED, load(path), call("Bash", command="git push"), "Done.")
    crow.denied("Bash", "nobody pushes here")
    assert kept().read_text() == GUARD


def test_what_is_kept_is_in_use_when_crow_starts_again(crow: Pilot, build_agent: Any) -> None:
    crow.user.answers("keep")
    crow.run(ASKED, load(written(crow)), "Done.")
    crow.sent(f"no_push is in use, whenever Crow runs ({kept()})")
    again = build_agent()
    assert [found.name for found in again.found if found.source == str(kept())] == ["no_push"]


def test_another_version_takes_its_place_and_is_shown_beside_it(crow: Pilot) -> None:
    path = written(crow)
    better = GUARD.replace("nobody pushes here", "never push")
    seen: list[str | None] = []

    def look(request: PermissionRequest) -> str:
        seen.append(request.diffs[0].old)
        return "until_end"

    crow.user.answers(look, look)
    crow.run(ASKED, load(path), "Done.")
    path.write_text(better)
    crow.run("Hello", call("Bash", command="git push"), "Still.")  # edits alone change nothing
    crow.denied("Bash", "nobody pushes here")
    crow.run("Again", load(path), call("Bash", command="git push -f"), "Done.")
    crow.denied("Bash", "never push", times=1)
    assert seen == [None, GUARD]
    assert sum(found.name == "no_push" for found in crow.agent.found) == 1


def test_a_broken_one_of_the_users_is_shown_before_it_is_replaced(crow: Pilot) -> None:
    kept().parent.mkdir(parents=True)
    kept().write_text("import not_there\n")
    seen: list[str | None] = []

    def look(request: PermissionRequest) -> str:
        seen.append(request.diffs[0].old)
        return "keep"

    crow.user.answers(look)
    crow.run(ASKED, load(written(crow)), call("Bash", command="git push"), "Done.")
    crow.denied("Bash", "nobody pushes here")
    assert seen == ["import not_there\n"]
    assert [found.error for found in crow.agent.found if found.name == "no_push"] == [None]


async def test_while_another_session_works_nothing_is_changed_under_it(crow: Pilot) -> None:
    async with crow:
        await crow.arun(ASKED, "Shall I?")
        other = await crow.agent.new_session(client=crow.user)
        began, goes_on = asyncio.Event(), asyncio.Event()

        async def before_run(session: Any) -> None:
            if session.id == other.id:
                began.set()
                await goes_on.wait()

        crow.use(before_run)
        working = asyncio.create_task(crow.agent.prompt(other, "Work"))
        await began.wait()
        await crow.arun("Go on", load(written(crow)), "Later, then.")
        crow.sent("another session is at work")
        crow.asked(times=0)
        crow.agent.cancel(other)
        await working


def test_one_that_was_kept_goes_on_being_reloaded(crow: Pilot) -> None:
    crow.user.answers("until_end", "keep")
    path = written(crow)
    crow.run(ASKED, load(path), load(path), "Done.")
    kept().write_text(GUARD.replace("nobody pushes here", "never push"))
    crow.run("Hello", call("Bash", command="git push"), "Now.")
    crow.denied("Bash", "never push")


FAULTS = {
    "no_push.py": [
        ("def before_tool(:\n    pass", "it is no Python: invalid syntax"),
        ("x = 1\n", "it holds no extension"),
        (
            f"{GUARD}import not_there\n",
            "it cannot be imported: there is no module 'not_there' (line 18)",
        ),
        (f"{GUARD}import not_there.at_all as a\n", "there is no module 'not_there.at_all'"),
        (f"{GUARD}from crow.evnts import Option\n", "there is no module 'crow.evnts' (line 18)"),
        (f"{GUARD}from . import beside\n", "a single file has no package to import from (line 18)"),
        (
            GUARD.replace("Answer, Command", "Answr, Command"),
            "cannot import name 'Answr' from 'crow'; did you mean 'Answer'? (line 3)",
        ),
        (GUARD.replace("nobody", "no\u202ebody"), "line 17 holds a character that nobody sees"),
        (GUARD.replace("nobody", "no\U000e0041body"), "line 17 holds a character that nobody sees"),
        ("#" * 100_001, "nobody reads more than 100,000 characters"),
    ],
    "no push.py": [(GUARD, "its name must be one in Python")],
    "permissions.py": [(GUARD, "the name permissions is taken by crow")],
    "off.py": [(GUARD, "the settings disable the extension off")],
    "no_push.txt": [(GUARD, "it must be a .py file in the working directories")],
    "../no_push.py": [(GUARD, "it must be a .py file in the working directories")],
}


@pytest.mark.parametrize(
    ("name", "text", "wrong"), [(name, *each) for name, all_ in FAULTS.items() for each in all_]
)
def test_nobody_is_asked_about_what_cannot_be_used(
    crow: Pilot, name: str, text: str, wrong: str
) -> None:
    (settings := Path.home() / ".crow/settings.toml").parent.mkdir(exist_ok=True)
    settings.write_text('[extensions]\ndisable = ["off"]\n')
    crow.run(ASKED, load(written(crow, text, name)), "I see.")
    crow.sent(wrong)
    crow.asked(times=0)


def test_a_file_that_is_not_there(crow: Pilot) -> None:
    crow.run(ASKED, load(crow.cwd / "gone.py"), "I see.")
    crow.sent("gone.py cannot be read")
    crow.asked(times=0)


BREAKS = """
class Two:
    def __init__(self):
        raise ValueError("not ready")

    def before_run(self):
        pass
"""


LATER = """
def lazily():
    import not_there

try:
    import not_there
except ImportError:
    not_there = None
"""


def test_what_is_imported_later_or_can_be_missing_keeps_nobody_from_using_it(crow: Pilot) -> None:
    crow.user.answers("until_end")
    crow.run(ASKED, load(written(crow, f"{GUARD}{LATER}")), "Done.")
    crow.sent("no_push is in use")


def test_nothing_of_it_runs_before_the_user_agrees(crow: Pilot) -> None:
    """Not even to see whether it could be imported: what it imports may be the model's, too."""
    (crow.cwd / "beside.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    path = written(crow, f"{GUARD}import json\nfrom pathlib import Path\nPath('ran').touch()\n")
    crow.user.answers("reject_once")
    crow.run(ASKED, load(path), "I see.")
    assert not (crow.cwd / "ran").exists()
    assert not Path("ran").exists()


@pytest.mark.parametrize("broken", ["raise ImportError('x')", "raise SystemExit(1)", BREAKS])
def test_one_that_breaks_leaves_the_one_before_and_says_where(crow: Pilot, broken: str) -> None:
    path = written(crow)
    crow.user.answers("until_end", "keep", "until_end")
    crow.run(ASKED, load(path), "Done.")
    path.write_text(f"{GUARD}\n{broken}\n")
    crow.run("Again", load(path), call("Bash", command="git push"), "It is broken.")
    crow.denied("Bash", "nobody pushes here")
    crow.sent("it is not in use: ")
    assert not kept().exists()
    path.write_text(GUARD.replace("nobody pushes here", "never push"))
    crow.run("Mended", load(path), call("Bash", command="git push"), "Now.")
    crow.denied("Bash", "never push")


async def test_where_nobody_can_look_the_tool_is_not_offered(build_agent: Any) -> None:
    async with build_agent("I write it to a file then.") as agent:
        await agent.run(ASKED)
    assert SKILL in str(agent.llm.asked[0]["messages"])
    assert "LoadExtension" not in str(agent.llm.asked[0]["tools"])


async def test_a_session_that_goes_on_has_the_tool_again(build_agent: Any) -> None:
    user = ScriptedUser()
    async with build_agent("Shall I?") as agent:
        session = await agent.new_session(client=user)
        await agent.prompt(session, ASKED)
    async with build_agent("I go on.") as later:
        session = await later.load_session(session.id, client=user)
        await later.prompt(session, "Go on")
    assert "LoadExtension" in str(later.llm.asked[0]["tools"])


async def test_in_an_editor_the_code_is_a_diff_and_the_command_is_known_at_once(
    build_agent: Any, tmp_path: Path
) -> None:
    (path := tmp_path / "no_push.py").write_text(GUARD)
    editor = FakeEditor(permissions=["until_end"])
    async with editor.connected(build_agent(load(path), "Done.", cwd=tmp_path)):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, ASKED)
        update = editor.updates("available_commands_update")[-1]
        await editor.prompt(session, "/pushes")
    (request,) = editor.asked
    (diff,) = [each for each in request["toolCall"]["content"] if each["type"] == "diff"]
    assert (diff["path"], diff["newText"]) == (str(path), GUARD)
    assert "pushes" in str(update)
    assert editor.text(session).endswith("none")


async def in_mode(crow: Pilot, mode: str) -> None:
    """Go on in a mode, with the tool."""
    await crow.arun(ASKED, "Shall I?")
    await crow.agent.configure(crow.session, mode=mode)
    assert crow.session.mode == mode


def load(path: Path) -> Any:
    """The call for a file."""
    return call("LoadExtension", file_path=str(path))


def hangs(crow: Pilot) -> bool:
    """True where the extension is in use."""
    return any(owner.name == "no_push" for owner in crow.agent.hooks.owners)


def kept() -> Path:
    """Where the user's own lie."""
    return Path.home() / ".crow/extensions/no_push.py"


def tools(crow: Pilot) -> list[str]:
    """What the model was offered of this."""
    offered = [tool["function"]["name"] for tool in crow.model.asked[-1]["tools"]]
    return [name for name in offered if name == "LoadExtension"]


def written(crow: Pilot, text: str = GUARD, name: str = "no_push.py") -> Path:
    """A file in the project, as the model has written it."""
    path = crow.cwd / name
    path.write_text(text)
    return path
