"""Instruction files: which are read, in which order, and what they cannot do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.watching import Watching

from crow.core.hooks.run_context import RunContext
from crow.extensions import CommandsHook, InstructionsHook, PersistenceHook, SystemPromptHook
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf


class Instructed:
    """Runs one prompt in a directory and keeps what the model was told."""

    def __init__(self, agent_of: AgentOf) -> None:
        self.agent_of = agent_of
        self.client = Watching()
        self.loaded: list[tuple[str, str, str, str | None]] = []

    async def __call__(self, cwd: Path, **options: Any) -> str:
        system = SystemPromptHook("Crow.", environment=False)
        agent = self.agent_of("Hello.", hooks=[InstructionsHook(**options), system])
        agent.hooks.register("InstructionsLoaded", self.watch)
        await agent.run("Hi", cwd=cwd, client=self.client)
        assert isinstance(agent.llm, ScriptedModel)
        return str(agent.llm.asked[0]["messages"][0].get("content"))

    def watch(
        self, file_path: str, memory_type: str, load_reason: str, parent_file_path: str | None
    ) -> None:
        self.loaded.append((file_path, memory_type, load_reason, parent_file_path))


@pytest.fixture
def instructed(agent_of: AgentOf) -> Instructed:
    return Instructed(agent_of)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with a folder ``app`` in a folder ``packages``."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "packages" / "app").mkdir(parents=True)
    return tmp_path / "project"


async def test_without_files_nothing_is_added(instructed: Instructed, project: Path):
    assert await instructed(project) == "Crow."
    assert instructed.loaded == []


async def test_files_are_read_from_the_user_to_the_folder_at_work(
    instructed: Instructed, project: Path, home: Path
):
    app = project / "packages" / "app"
    (home / ".crow").mkdir()
    files = [
        home / ".crow/AGENTS.md",
        project / "AGENTS.md",
        project / "CLAUDE.md",
        app / "AGENTS.md",
    ]
    for number, file in enumerate(files):
        file.write_text(f"Rule {number}.")
    (project.parent / "AGENTS.md").write_text("Outside of the repository.")
    (app / "deeper").mkdir()
    (app / "deeper" / "AGENTS.md").write_text("Below the folder at work.")
    told = await instructed(app)
    places = [
        told.index(f'<instructions file="{file}">\nRule {n}.\n') for n, file in enumerate(files)
    ]
    assert places == sorted(places)
    assert "Outside" not in told
    assert "Below" not in told
    assert [(kind, why) for _, kind, why, _ in instructed.loaded] == [
        ("User", "session_start"),
        *[("Project", "session_start")] * 3,
    ]


async def test_outside_of_a_repository_only_the_folder_at_work_counts(
    instructed: Instructed, tmp_path: Path
):
    (tmp_path / "AGENTS.md").write_text("Above.")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "AGENTS.md").write_text("Here.")
    told = await instructed(tmp_path / "here")
    assert "Here." in told
    assert "Above." not in told


async def test_an_import_is_read_behind_its_file_and_once(instructed: Instructed, project: Path):
    (project / "docs").mkdir()
    (project / "CLAUDE.md").write_text("See @AGENTS.md, and @docs/style.md. Mail me@example.org.")
    (project / "AGENTS.md").write_text("General.")
    (project / "docs" / "style.md").write_text("Style. Back to @../CLAUDE.md")
    told = await instructed(project)
    assert told.count("General.") == told.count("Style.") == told.count("See @") == 1
    assert [(Path(file).name, why, parent) for file, _, why, parent in instructed.loaded] == [
        ("AGENTS.md", "session_start", None),
        ("CLAUDE.md", "session_start", None),
        ("style.md", "include", str(project / "CLAUDE.md")),
    ]


async def test_what_looks_like_somebodys_home_is_no_import(instructed: Instructed, project: Path):
    (project / "AGENTS.md").write_text("Ask @~nobody-here about @~nobody-here/notes.md.", "utf-8")
    assert "Ask @~nobody-here about" in await instructed(project)


async def test_imports_in_code_and_comments_do_not_count(instructed: Instructed, project: Path):
    (project / "secret.md").write_text("Not meant.")
    (project / "AGENTS.md").write_text(
        "Use `@secret.md`.\n```\n@secret.md\n```\n<!-- @secret.md -->\n@missing.md"
    )
    assert "Not meant." not in await instructed(project)


async def test_imports_end_somewhere(instructed: Instructed, project: Path):
    for number in range(9):
        (project / f"{number}.md").write_text(f"Level {number}. @{number + 1}.md")
    (project / "AGENTS.md").write_text("@0.md")
    told = await instructed(project)
    assert "Level 4." in told
    assert "Level 5." not in told


@pytest.mark.parametrize("written", ["@../key", "@~/key", "@{outside}/key", "@link"])
async def test_a_project_reaches_no_file_outside_of_itself(
    instructed: Instructed, project: Path, home: Path, written: str
):
    outside = project.parent
    for folder in (outside, home):
        (folder / "key").write_text("PRIVATE KEY")
    (project / "link").symlink_to(outside / "key")
    (project / "AGENTS.md").write_text(f"Read {written.format(outside=outside)}")
    assert "PRIVATE KEY" not in await instructed(project)
    [notice] = instructed.client.notices
    assert "is not read: it is outside of the project" in notice


async def test_all_files_together_are_bounded(instructed: Instructed, project: Path):
    for number in range(4):
        (project / f"{number}.md").write_text(str(number) * 40_000)
    (project / "AGENTS.md").write_text("@0.md @1.md @2.md @3.md")
    told = await instructed(project)
    assert len(told) < 121_000
    assert "2" * 39_000 in told
    assert len(instructed.client.notices) == 2


async def test_an_instruction_file_that_is_a_link_out_of_the_project_is_refused_and_named(
    instructed: Instructed, project: Path
):
    (project.parent / "key").write_text("PRIVATE KEY")
    (project / "AGENTS.md").symlink_to(project.parent / "key")
    assert await instructed(project) == "Crow."
    [notice] = instructed.client.notices
    assert notice.startswith(f"{project}/AGENTS.md is not read: it is outside of the project")


async def test_the_user_may_import_from_anywhere(instructed: Instructed, project: Path, home: Path):
    (home / ".crow").mkdir()
    (home / ".crow" / "AGENTS.md").write_text("@~/notes/mine.md")
    (home / "notes").mkdir()
    (home / "notes" / "mine.md").write_text("My notes.")
    assert "My notes." in await instructed(project)


async def test_a_file_that_is_too_long_is_cut_and_named(instructed: Instructed, project: Path):
    (project / "AGENTS.md").write_text("x" * 101)
    told = await instructed(project, limit=100)
    assert "\n" + "x" * 100 + "\n" in told
    assert instructed.client.notices == [
        f"{project}/AGENTS.md is too long: only 100 characters of it are used"
    ]


async def test_what_is_no_text_file_does_no_harm(instructed: Instructed, project: Path):
    os.mkfifo(project / "AGENTS.md")
    (project / "CLAUDE.md").write_bytes(b"\xef\xbb\xbfGood \xff\x00bytes")
    told = await instructed(project)
    assert "\nGood \ufffdbytes\n" in told


async def test_another_name_can_be_read_instead(instructed: Instructed, project: Path):
    (project / "RULES.md").write_text("Other rules.")
    (project / "AGENTS.md").write_text("These rules.")
    told = await instructed(project, names=["RULES.md"])
    assert "Other rules." in told
    assert "These rules." not in told


async def test_removed_and_used_again_it_works_as_before(agent_of: AgentOf, project: Path):
    (project / "AGENTS.md").write_text("A rule.")
    agent = agent_of("One.", "Two.", hooks=[SystemPromptHook("Crow."), InstructionsHook()])
    await agent.run("Hi", cwd=project)
    agent.remove("instructions")
    assert "instructions" not in agent.sections
    agent.use(InstructionsHook())
    await agent.run("Hi", cwd=project)
    assert isinstance(agent.llm, ScriptedModel)
    first, second = (asked["messages"][0].get("content") for asked in agent.llm.asked)
    assert first == second


class Walk:
    """Runs a script in a project and keeps what was injected and loaded."""

    def __init__(self, agent_of: AgentOf, cwd: Path, *script: Any, **options: Any) -> None:
        self.agent = agent_of(
            *script, hooks=[SystemPromptHook("Crow."), InstructionsHook(**options)]
        )
        self.loaded: list[tuple[str, str, str | None]] = []
        self.agent.hooks.register("InstructionsLoaded", self.watch)
        self.cwd = cwd
        self.client = Watching()

    def watch(self, file_path: str, load_reason: str, trigger_file_path: str | None) -> None:
        short = trigger_file_path and os.path.relpath(trigger_file_path, self.cwd)
        self.loaded.append((os.path.relpath(file_path, self.cwd), load_reason, short))

    async def __call__(self, *prompts: str, **fields: Any) -> list[str]:
        session = await self.agent.new_session(self.cwd, client=self.client, **fields)
        for prompt in prompts:
            await self.agent.run(prompt, session=session)
        texts = [str(message.get("content")) for message in session.messages]
        return [text for text in texts if 'source="instructions"' in text]


async def test_nested_instructions_stand_behind_the_first_call_that_comes_by(
    agent_of: AgentOf, project: Path
):
    app = project / "packages" / "app"
    (project / "AGENTS.md").write_text("Root rule.")
    (project / "packages" / "AGENTS.md").write_text("Packages rule.")
    (app / "CLAUDE.md").write_text("App rule. @more.md")
    (app / "more.md").write_text("More rules.")
    (app / "a.py").write_text("a = 1\n")
    walk = Walk(
        agent_of,
        project,
        call("Read", file_path="packages/app/a.py"),
        call("Edit", file_path="packages/app/a.py", old_string="1", new_string="2"),
        "Done.",
    )
    [injected] = await walk("Change it")
    places = [injected.index(rule) for rule in ("Packages rule.", "App rule.", "More rules.")]
    assert places == sorted(places)
    assert "Root rule." not in injected
    assert walk.loaded == [
        ("AGENTS.md", "session_start", None),
        ("packages/AGENTS.md", "nested_traversal", "packages/app/a.py"),
        ("packages/app/CLAUDE.md", "nested_traversal", "packages/app/a.py"),
        ("packages/app/more.md", "include", "packages/app/a.py"),
    ]
    model = walk.agent.llm
    assert isinstance(model, ScriptedModel)
    assert model.asked[1]["messages"][-1].get("content") == injected
    assert model.asked[0]["messages"][0] == model.asked[2]["messages"][0]


async def test_a_folder_below_one_that_is_known_is_looked_at_as_well(
    agent_of: AgentOf, project: Path
):
    app = project / "packages" / "app"
    for folder, rule in ((app.parent, "Packages rule."), (app, "App rule.")):
        (folder / "AGENTS.md").write_text(rule)
        (folder / "x.txt").write_text("x")
    outer = call("Read", file_path="packages/x.txt")
    inner = call("Read", file_path="packages/app/x.txt")
    first, second = await Walk(agent_of, project, outer, outer, inner, inner, "Done.")("Look")
    assert "Packages rule." in first
    assert "App rule." in second
    assert "Packages rule." not in second


async def test_a_new_file_brings_in_the_instructions_of_its_folder(
    agent_of: AgentOf, project: Path
):
    (project / "packages" / "AGENTS.md").write_text("Packages rule.")
    walk = Walk(
        agent_of, project, call("Write", file_path="packages/new/b.txt", content="b"), "Done."
    )
    [injected] = await walk("Write it")
    assert "Packages rule." in injected


async def test_a_call_that_failed_or_searched_brings_in_nothing(agent_of: AgentOf, project: Path):
    (project / "packages" / "AGENTS.md").write_text("Packages rule.")
    walk = Walk(
        agent_of,
        project,
        call("Read", file_path="packages/missing.txt"),
        call("Grep", pattern="rule", path="packages"),
        "Done.",
    )
    assert await walk("Look") == []


async def test_nothing_outside_of_the_directories_of_the_session_is_read(
    agent_of: AgentOf, project: Path, tmp_path: Path
):
    for folder in (tmp_path / "other", tmp_path / "added", tmp_path / "added" / "lib"):
        folder.mkdir()
        (folder / "AGENTS.md").write_text(f"Rule of {folder.name}.")
        (folder / "x.txt").write_text("x")
    (project / "packages" / "linked").symlink_to(tmp_path / "other")
    walk = Walk(
        agent_of,
        project / "packages",
        call("Read", file_path=str(tmp_path / "other" / "x.txt")),
        call("Read", file_path="linked/x.txt"),
        call("Read", file_path=str(tmp_path / "added" / "lib" / "x.txt")),
        "Done.",
    )
    [injected] = await walk("Look", directories=(str(tmp_path / "added"),))
    assert "Rule of added." in injected
    assert "Rule of lib." in injected
    assert "Rule of other." not in injected


async def test_a_nested_file_that_leads_out_of_the_project_is_refused_and_named(
    agent_of: AgentOf, project: Path, tmp_path: Path
):
    (tmp_path / "key").write_text("PRIVATE KEY")
    (project / "packages" / "AGENTS.md").write_text("Rule. @../../key")
    (project / "packages" / "x.txt").write_text("x")
    walk = Walk(agent_of, project, call("Read", file_path="packages/x.txt"), "Done.")
    [injected] = await walk("Look")
    assert "PRIVATE KEY" not in injected
    [notice] = walk.client.notices
    assert "is not read: it is outside of the project" in notice


async def test_nested_instructions_are_read_again_only_in_a_new_segment(
    agent_of: AgentOf, project: Path
):
    (project / "packages" / "AGENTS.md").write_text("Packages rule.")
    (project / "packages" / "x.txt").write_text("x")
    read = call("Read", file_path="packages/x.txt")
    walk = Walk(agent_of, project, read, "1", read, "2", read, "3")
    assert len(await walk("One", "Two")) == 1

    class Anew:
        async def before_run(self, ctx: RunContext) -> None:
            await ctx.restart_with_new_session([])

    walk.agent.use(Anew())
    [session] = walk.agent.sessions.values()
    await walk.agent.run("Three", session=session)
    assert str(session.messages).count("Packages rule.") == 1


async def test_a_session_that_goes_on_does_not_read_nested_instructions_twice(
    agent_of: AgentOf, project: Path, tmp_path: Path
):
    (project / "packages" / "AGENTS.md").write_text("Packages rule.")
    (project / "packages" / "x.txt").write_text("x")

    def hooks() -> list[Any]:
        store = PersistenceHook(db_path=str(tmp_path / "crow.db"))
        return [store, InstructionsHook(), SystemPromptHook("Crow.")]

    read = call("Read", file_path="packages/x.txt")
    async with agent_of(read, "1", hooks=hooks()) as agent:
        first = await agent.run("One", cwd=project)
    async with agent_of(read, "2", hooks=hooks()) as agent:
        session = await agent.load_session(first.session.id)
        await agent.run("Two", session=session)
    assert str(session.messages).count("Packages rule.") == 1


RULES = {
    ".claude/CLAUDE.md": "in the folder",
    "CLAUDE.local.md": "for me alone",
    ".claude/rules/style.md": "short lines",
    ".claude/rules/deep/tests.md": '---\npaths: ["tests/**/*.py"]\n---\ntests are sentences',
    ".cursor/rules/always.mdc": "---\nalwaysApply: true\n---\nno tabs",
    ".cursor/rules/web.mdc": "---\nglobs: *.tsx,*.css\nalwaysApply: false\n---\nno inline styles",
    ".cursor/rules/asked.mdc": "---\ndescription: where asked\nalwaysApply: false\n---\nnever here",
    ".cursorrules": "old ones",
}


def lay(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


async def test_files_of_ones_own_and_rules_are_read_with_the_name_of_their_file(
    instructed: Instructed, project: Path, home: Path
):
    lay(project, RULES)
    lay(home, {".claude/rules/mine.md": "my rule"})
    told = await instructed(project)
    for text in ("in the folder", "for me alone", "short lines", "no tabs", "old ones", "my rule"):
        assert text in told
    for text in ("tests are sentences", "no inline styles", "never here", "alwaysApply"):
        assert text not in told
    assert f"- {project / '.cursor/rules/asked.mdc'}: where asked" in told
    assert f'file="{project / ".cursor/rules/always.mdc"}"' in told
    kinds = {Path(path).name: kind for path, kind, *_ in instructed.loaded}
    assert (kinds["CLAUDE.local.md"], kinds["mine.md"], kinds["style.md"]) == (
        "Local",
        "User",
        "Project",
    )


async def test_an_override_stands_in_for_its_folder_and_one_text_is_told_once(
    instructed: Instructed, project: Path, home: Path
):
    lay(project, {"AGENTS.override.md": "over", "AGENTS.md": "under", "CLAUDE.md": "the same"})
    lay(home, {".claude/CLAUDE.md": "the same"})
    told = await instructed(project)
    assert "over" in told
    assert "under" not in told
    assert told.count("the same") == 1


async def test_context_names_the_files_whose_text_is_in_the_system_prompt(
    agent_of: AgentOf, project: Path
):
    lay(project, {"AGENTS.md": "to be heeded"})
    used = [SystemPromptHook("Be good."), InstructionsHook(), CommandsHook()]
    agent = agent_of("Done.", hooks=used)
    first = await agent.run("Go", cwd=project)
    told = (await agent.run("/context", session=first.session)).text.splitlines()
    at = next(n for n, line in enumerate(told) if line.startswith("- system prompt"))
    assert told[at + 1] == f"  - {project / 'AGENTS.md'}: 3"


async def test_rules_of_a_folder_below_hold_for_the_files_there(agent_of: AgentOf, project: Path):
    rules = {
        "all.mdc": "---\nalwaysApply: true\n---\nall there",
        "css.mdc": "---\nglobs: '*.css'\n---\ncss",
    }
    lay(project, {f"web/.cursor/rules/{name}": text for name, text in rules.items()})
    lay(project, {"web/a.py": "1"})
    script = [call("Read", file_path=str(project / "web/a.py"))]
    agent = agent_of(*script, "Done.", hooks=[InstructionsHook()])
    reply = await agent.run("Go", cwd=project)
    texts = "".join(str(each.get("content")) for each in reply.session.messages)
    assert texts.count("all there") == 1
    assert "\ncss" not in texts


async def test_a_rule_for_certain_files_is_told_once_where_one_is_touched(
    agent_of: AgentOf, project: Path
):
    lay(project, {**RULES, "tests/a.py": "1", "tests/b.py": "2", "page.tsx": "3", "a.py": "4"})
    files = ["a.py", "tests/a.py", "tests/b.py", "page.tsx"]
    script = [call("Read", file_path=str(project / name)) for name in files]
    agent = agent_of(*script, "Done.", hooks=[InstructionsHook()])
    reply = await agent.run("Go", cwd=project)
    texts = [str(each.get("content")) for each in reply.session.messages]
    assert sum("tests are sentences" in text for text in texts) == 1
    assert sum("no inline styles" in text for text in texts) == 1
    first = next(n for n, text in enumerate(texts) if "tests are sentences" in text)
    assert "hold for a file that you have just been at" in texts[first]
    second = [n for n, each in enumerate(reply.session.messages) if each["role"] == "tool"][1]
    assert first == second + 1


async def test_a_rule_that_leads_out_of_the_project_is_refused_and_named(
    instructed: Instructed, project: Path, tmp_path: Path
):
    (tmp_path / "secret.md").write_text("a secret")
    lay(project, {".claude/rules/a.md": "fine"})
    (project / ".claude/rules/b.md").symlink_to(tmp_path / "secret.md")
    told = await instructed(project)
    assert "fine" in told
    assert "a secret" not in told
    assert any("outside of the project" in text for text in instructed.client.notices)
