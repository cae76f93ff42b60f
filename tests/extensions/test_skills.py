"""Skills: where they are found, what the model is told of them and when, and what they cannot do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from crow import Agent, Deny
from crow.core.events import CommandsChanged, Notice, ToolEnded
from crow.core.hooks.run_context import RunContext
from crow.core.messages import text_of
from crow.core.ports.client import NullClient
from crow.core.session import Session
from crow.extensions import (
    PermissionsHook,
    PersistenceHook,
    SkillsHook,
    SubagentsHook,
    SystemPromptHook,
)
from crow.project.trust import trust
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf


class Screen(NullClient):
    """A client that keeps what it is shown."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.outcomes: list[tuple[str, str]] = []
        self.changes = 0

    async def update(self, session_id: str, event: object) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)
        elif isinstance(event, ToolEnded):
            self.outcomes.append((event.call.name, event.outcome))
        self.changes += isinstance(event, CommandsChanged)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def put(folder: Path, name: str, text: str = "", **front: str) -> Path:
    """A skill of this name in a folder of skills; the path of its SKILL.md."""
    fields = {"name": name, "description": f"Does {name}.", **front}
    lines = [f"{key.replace('_', '-')}: {value}" for key, value in fields.items() if value]
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["---", *lines, "---", text or f"How to do {name}."]))
    return path


def asked(agent: Agent, request: int) -> list[str]:
    """The texts of a request's messages."""
    assert isinstance(agent.llm, ScriptedModel)
    return [text_of(message.get("content")) for message in agent.llm.asked[request]["messages"]]


def hooks(**options: Any) -> list[Any]:
    return [SkillsHook(**options), SystemPromptHook("Crow.", environment=False)]


async def open_in(agent: Agent, cwd: Path, screen: Screen | None = None, **fields: Any) -> Session:
    return await agent.new_session(cwd, client=screen, **fields)


async def test_the_list_stands_in_the_system_prompt_and_the_text_comes_when_it_is_used(
    agent_of: AgentOf, project: Path
):
    path = put(project / ".agents/skills", "pdf-forms", "Fill in $ARGUMENTS with care.")
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts" / "fill.py").write_text("print('filled')")
    agent = agent_of(
        call("Skill", skill="pdf-forms", args="form.pdf"),
        call("Read", file_path=str(path.parent / "scripts/fill.py")),
        "Done.",
        hooks=hooks(),
    )
    await agent.run("Fill in the form", cwd=project)
    system = asked(agent, 0)[0]
    assert f"- pdf-forms: Does pdf-forms. ({path})" in system
    assert "with care" not in system
    loaded = asked(agent, 1)[-1]
    assert loaded.replace(str(path.parent), "FOLDER") == snapshot("""\
<skill name="pdf-forms" folder="FOLDER">
Fill in form.pdf with care.
</skill>

Files in its folder, to be read where the text calls for them: scripts/fill.py\
""")
    assert "print('filled')" in asked(agent, 2)[-1]
    assert [asked(agent, n)[0] for n in (1, 2)] == [system, system]


async def test_without_skills_nothing_is_added(agent_of: AgentOf, project: Path):
    agent = agent_of("Hello.", hooks=hooks())
    await agent.run("Hi", cwd=project)
    assert asked(agent, 0)[0] == "Crow."
    assert isinstance(agent.llm, ScriptedModel)
    assert "Skill" not in [tool["function"]["name"] for tool in agent.llm.asked[0]["tools"]]


async def test_of_one_name_the_nearest_counts_and_the_hidden_one_is_named(
    agent_of: AgentOf, project: Path, home: Path, screen: Screen, tmp_path: Path
):
    inner = project / "packages" / "app"
    inner.mkdir(parents=True)
    near = put(inner / ".claude/skills", "deploy", description="Nearest.")
    above = put(project / ".crow/skills", "deploy", description="Above.")
    users = put(home / ".crow/skills", "deploy", description="The user's.")
    only = put(home / ".claude/skills", "mine")
    put(tmp_path / ".claude/skills", "outside")
    put(tmp_path / "more", "added")
    agent = agent_of("Hello.", hooks=hooks(paths=[tmp_path / "more"]))
    await agent.run("Hi", session=await open_in(agent, inner, screen))
    system = asked(agent, 0)[0]
    assert "Nearest." in system
    assert str(only) in system
    assert "Does added." in system
    assert "Above." not in system
    assert "outside" not in system
    assert screen.notices == [
        f"{hidden} is hidden by {near}, which has the same name" for hidden in (above, users)
    ]


async def test_a_folder_that_is_reached_by_two_names_is_one(
    agent_of: AgentOf, project: Path, screen: Screen
):
    put(project / ".agents/skills", "deploy")
    (project / ".claude").mkdir()
    (project / ".claude/skills").symlink_to("../.agents/skills")
    agent = agent_of("Hello.", hooks=hooks())
    await agent.run("Hi", session=await open_in(agent, project, screen))
    assert asked(agent, 0)[0].count("Does deploy.") == 1
    assert screen.notices == []


@pytest.mark.parametrize(
    "front, listed, told",
    [
        (
            "name: other\ndescription: D.",
            "- other: D.",
            "its name is 'other', but its folder's is 'it'",
        ),
        ("description: D.", "- it: D.", "it has no name; its folder's is used: it"),
        ("name: My Skill!\ndescription: D.", "- my-skill: D.", "'My Skill!' is not in lower case"),
        ("name: it\ndescription: Use: when asked.", "- it: Use: when asked.", ""),
        ("name: it\ndescription: >\n  Two\n  lines.", "- it: Two lines.", ""),
        (
            f"name: it\ndescription: {'x' * 1025}",
            f"- it: {'x' * 1021}...",
            "description is too long: 1025",
        ),
        ("name: it\nlicense: MIT", "- it: Text.", ""),
        ("name: it\ndescription: D: with a\n- [colon", "- it: D: with a - [colon", ""),
        ("name: it\ndescription: D.\nmetadata: none", "- it: D.", "its metadata is no table"),
        (
            f"name: it\ndescription: D.\ncompatibility: {'x' * 501}",
            "- it: D. Needs: xxx",
            "compatibility is too long: 501",
        ),
        ("- it", "- it: Text.", "the front matter is no table"),
        ("name: '?'\ndescription: D.", "", "neither its name"),
    ],
)
async def test_a_faulty_file_is_taken_as_far_as_it_makes_sense_and_named_once(
    agent_of: AgentOf, project: Path, screen: Screen, front: str, listed: str, told: str
):
    path = project / ".claude/skills" / ("it" if "neither" not in told else "?") / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\n{front}\n---\nText.")
    agent = agent_of("One.", "Two.", hooks=hooks())
    session = await open_in(agent, project, screen)
    for prompt in ("Hi", "Again"):
        await agent.run(prompt, session=session)
    system = asked(agent, 0)[0]
    assert listed in system
    assert bool(listed) == ("# Skills" in system)
    assert len(screen.notices) == bool(told)
    assert all(str(path) in notice and told in notice for notice in screen.notices)


async def test_what_is_no_regular_file_or_leads_out_of_the_project_is_left_out(
    agent_of: AgentOf, project: Path, screen: Screen
):
    for name in ("pipe", "link"):
        (project / ".claude/skills" / name).mkdir(parents=True)
    os.mkfifo(project / ".claude/skills/pipe/SKILL.md")
    secret = put(project.parent / "elsewhere", "secret")
    (project / ".claude/skills/link/SKILL.md").symlink_to(secret)
    agent = agent_of("Hello.", hooks=hooks())
    await agent.run("Hi", session=await open_in(agent, project, screen))
    assert asked(agent, 0)[0] == "Crow."
    assert [notice.split(" is ")[1] for notice in screen.notices] == [
        "not read: it",
        "left out: it",
    ]


async def test_a_skill_that_is_added_later_is_announced_once_at_the_tail(
    agent_of: AgentOf, project: Path, screen: Screen
):
    put(project / ".crow/skills", "first")
    agent = agent_of("One.", "Two.", call("Skill", skill="second"), "Three.", hooks=hooks())
    session = await open_in(agent, project, screen)
    await agent.run("Hi", session=session)
    path = put(project / ".crow/skills", "second")
    await agent.run("And?", session=session)
    await agent.run("Use it", session=session)
    assert [asked(agent, n)[0] for n in (1, 2, 3)] == [asked(agent, 0)[0]] * 3
    assert "second" not in asked(agent, 0)[0]
    *_, prompt, announced = asked(agent, 1)
    assert prompt == "And?"
    assert f"- second: Does second. ({path})" in announced
    assert "Does first." not in announced
    assert str(session.messages).count("There are new skills") == 1
    assert "How to do second." in asked(agent, 3)[-1]
    assert "second" in session.commands
    assert screen.changes == 1


async def test_a_refused_prompt_does_not_swallow_an_announcement(agent_of: AgentOf, project: Path):
    class Refuse:
        def before_run(self, prompt: str) -> Deny | None:
            return Deny("no") if prompt == "Stop" else None

    agent = agent_of("One.", "Two.", hooks=[*hooks(keywords=True), Refuse()])
    session = await open_in(agent, project)
    await agent.run("Hi", session=session)
    put(project / ".crow/skills", "later", metadata="{keywords: stop}")
    await agent.run("Stop", session=session)
    await agent.run("Or stop?", session=session)
    assert str(session.messages).count("Does later.") == 1
    assert str(session.messages).count("How to do later.") == 1


async def test_without_a_system_prompt_the_skills_are_announced_at_the_tail(
    agent_of: AgentOf, project: Path
):
    put(project / ".crow/skills", "first")
    agent = agent_of("One.", "Two.", hooks=[SkillsHook()])
    session = await open_in(agent, project)
    await agent.run("Hi", session=session)
    await agent.run("And?", session=session)
    assert "Does first." in asked(agent, 1)[-1]


async def test_a_slash_command_makes_a_prompt_of_a_skill(agent_of: AgentOf, project: Path):
    put(project / ".crow/skills", "deploy", "Deploy to the given place.", argument_hint="place")
    agent = agent_of("Deployed.", hooks=hooks())
    session = await open_in(agent, project)
    command = agent.commands_of(session)["deploy"]
    assert (command.description, command.hint) == ("Does deploy. (project)", "place")
    await agent.run("/deploy staging now", session=session)
    prompt = asked(agent, 0)[-1]
    assert "Deploy to the given place." in prompt
    assert prompt.endswith("Arguments: staging now")


async def test_a_command_that_exists_is_not_shadowed(agent_of: AgentOf, project: Path):
    put(project / ".crow/skills", "skills")
    agent = agent_of(hooks=hooks())
    session = await open_in(agent, project)
    assert session.commands == {}
    reply = await agent.run("/skills", session=session)
    assert reply.text.startswith("- skills: Does skills. (")
    assert reply.text.endswith("[project]")


async def test_skills_can_be_for_the_user_or_for_the_model_alone(agent_of: AgentOf, project: Path):
    put(project / ".crow/skills", "release", disable_model_invocation="true")
    put(project / ".crow/skills", "style", user_invocable="false")
    agent = agent_of(call("Skill", skill="release"), "No.", "Released.", hooks=hooks())
    session = await open_in(agent, project)
    await agent.run("Release it", session=session)
    assert list(session.commands) == ["release"]
    assert "style" in asked(agent, 0)[0]
    assert "release" not in asked(agent, 0)[0]
    assert asked(agent, 1)[-1] == "only the user can start release, with /release"
    await agent.run("/release", session=session)
    assert "How to do release." in asked(agent, 2)[-1]


async def test_a_name_that_does_not_exist_is_answered_with_the_nearest(
    agent_of: AgentOf, project: Path
):
    path = put(project / ".crow/skills", "deploy")
    agent = agent_of(
        call("Skill", skill="deplo"),
        call("Skill", skill="zzz"),
        call("Skill", skill="/deploy"),
        "Done.",
        hooks=hooks(),
    )

    class Vanish:
        def before_tool(self, args: dict[str, Any]) -> None:
            if args["skill"] == "deploy":
                path.unlink()

    agent.use(Vanish())
    await agent.run("Deploy", cwd=project)
    assert asked(agent, 1)[-1] == "there is no skill 'deplo'; did you mean 'deploy'?"
    assert asked(agent, 2)[-1] == "there is no skill 'zzz'; there are: deploy"
    assert "the skill deploy cannot be read: " in asked(agent, 3)[-1]


@pytest.mark.parametrize("written", ["{keywords: 'PDF, form'}", "{triggers: [x, form]}"])
async def test_keywords_bring_the_text_in_behind_the_prompt_once(
    agent_of: AgentOf, project: Path, written: str
):
    put(project / ".crow/skills", "pdf", metadata=written)
    put(project / ".crow/skills", "other", metadata="{keywords: inform}")
    agent = agent_of("One.", "Two.", "Three.", hooks=hooks(keywords=True))
    session = await open_in(agent, project)
    await agent.run("What is a platform?", session=session)
    assert "How to do" not in str(session.messages)
    await agent.run("Fill in this FORM, please", session=session)
    *_, prompt, text = asked(agent, 1)
    assert prompt == "Fill in this FORM, please"
    assert "How to do pdf." in text
    await agent.run("And this form", session=session)
    assert str(session.messages).count("How to do pdf.") == 1
    assert "How to do other." not in str(session.messages)


async def test_after_a_summary_the_texts_in_use_are_there_again_the_latest_first(
    agent_of: AgentOf, project: Path
):
    put(project / ".crow/skills", "deploy")
    put(project / ".crow/skills", "long", "How to do long." + " More." * 2_000)
    put(project / ".crow/skills", "other", "How to do other." + " More." * 2_000)

    class Compact:
        async def before_run(self, ctx: RunContext, prompt: str) -> None:
            if prompt == "Go on":
                await ctx.compact([], "What was.")

    loads = [call("Skill", skill=name) for name in ("long", "deploy", "other")]
    agent = agent_of(loads, "One.", "Two.", hooks=[*hooks(), Compact()])
    assert isinstance(agent.llm, ScriptedModel)
    agent.llm.context_window = 32_000
    session = await open_in(agent, project)
    await agent.run("Deploy", session=session)
    await agent.run("Go on", session=session)
    told = "\n".join(asked(agent, 2))
    assert "skill deploy was in use before the summary. Its text:\n\n<skill" in told
    assert told.count("How to do deploy.") == told.count("How to do other.") == 1
    assert "How to do long." not in told
    assert "The texts of these skills were loaded before the summary" in told


async def test_loading_and_reading_the_users_skills_needs_no_question_but_rules_hold(
    agent_of: AgentOf, project: Path, home: Path, screen: Screen
):
    mine = put(home / ".claude/skills", "mine")
    put(home / ".claude/skills", "kept")
    (mine.parent / "key").symlink_to(home / "key")
    (home / "key").write_text("PRIVATE KEY")
    agent = agent_of(
        call("Skill", skill="mine"),
        call("Skill", skill="kept"),
        call("Read", file_path=str(mine)),
        call("Read", file_path=str(mine.parent / "key")),
        call("Read", file_path=str(home / "key")),
        "Done.",
        hooks=[*hooks(), PermissionsHook(deny=["Skill(kept)"])],
    )
    await agent.run("Use it", session=await open_in(agent, project, screen))
    assert screen.outcomes == [
        ("Skill", "ok"),
        ("Skill", "denied"),
        ("Read", "ok"),
        ("Read", "denied"),
        ("Read", "denied"),
    ]


@pytest.mark.parametrize("folder", [".agents/skills", ".claude/skills"])
@pytest.mark.parametrize("trusted", [True, False])
async def test_scripts_of_an_untrusted_project_do_not_run_by_a_rule_of_the_users(
    agent_of: AgentOf, project: Path, screen: Screen, trusted: bool, folder: str
):
    path = put(project / folder, "run")
    (path.parent / "run.sh").write_text("echo ran")
    if trusted:
        trust(project)
    agent = agent_of(
        call("Skill", skill="run"),
        call("Bash", command=f"sh {folder}/run/run.sh"),
        call("Bash", command=f"cd {path.parent}; sh run.sh"),
        call("Bash", command="echo other"),
        "Done.",
        hooks=[*hooks(), PermissionsHook(allow=["Bash"])],
    )
    await agent.run("Run it", session=await open_in(agent, project, screen))
    script = "ok" if trusted else "denied"
    assert [outcome for _, outcome in screen.outcomes] == ["ok", script, script, "ok"]


async def test_a_long_list_is_shortened_to_names(agent_of: AgentOf, project: Path):
    for number in range(60):
        put(project / ".crow/skills", f"s{number:02}", description="d" * 1000)
    agent = agent_of("Hello.", hooks=hooks())
    await agent.run("Hi", cwd=project)
    system = asked(agent, 0)[0]
    assert len(system) < 45_000
    assert "\n- s00: ddd" in system
    assert system.endswith("\n- s59")


async def test_a_skill_with_much_in_it_is_bounded(agent_of: AgentOf, project: Path):
    path = put(project / ".crow/skills", "big", "x" * 150_000)
    for number in range(60):
        (path.parent / f"{number:02}.md").write_text("more")
    agent = agent_of("Hello.", hooks=hooks())
    await agent.run("/big", session=await open_in(agent, project))
    prompt = asked(agent, 0)[-1]
    assert f"[... cut off; the rest is in {path}]" in prompt
    assert prompt.endswith("48.md, 49.md and more")


async def test_commands_and_tool_of_the_skills_go_with_the_extension(
    agent_of: AgentOf, project: Path
):
    put(project / ".crow/skills", "gone")
    agent = agent_of(hooks=hooks())
    session = await open_in(agent, project)
    assert (list(session.commands), list(session.tools)) == (["gone"], ["Skill"])
    agent.remove("skills")
    assert not session.commands
    assert not session.tools


async def test_skills_of_a_package_whose_extension_is_in_use_are_found(
    agent_of: AgentOf, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    package = tmp_path / "site" / "crow_weather"
    put(package / "skills", "forecast")
    (package / "__init__.py").write_text("class Weather:\n    def after_run(self): ...\n")
    info = tmp_path / "site" / "crow_weather-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crow-weather\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[crow.extensions]\nweather = crow_weather:Weather\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    agent = agent_of("Hello.", hooks=hooks())
    try:
        agent.discover()
        await agent.run("Hi", cwd=project)
    finally:
        sys.modules.pop("crow_weather", None)
    assert "Does forecast." in asked(agent, 0)[0]


async def test_a_folder_that_is_added_counts_from_the_next_prompt_on(
    agent_of: AgentOf, project: Path, tmp_path: Path
):
    put(tmp_path / "more", "added")
    agent = agent_of("One.", "Two.", hooks=hooks())
    session = await open_in(agent, project)
    await agent.run("Hi", session=session)
    agent.extensions["skills"].add_folder(tmp_path / "more")
    await agent.run("And?", session=session)
    assert "Does added." in asked(agent, 1)[-1]


async def test_a_session_that_goes_on_has_the_same_prefix_and_knows_what_it_used(
    agent_of: AgentOf, project: Path, tmp_path: Path
):
    put(project / ".crow/skills", "pdf", metadata="{keywords: form}")

    def all_hooks() -> list[Any]:
        return [PersistenceHook(db_path=str(tmp_path / "crow.db")), *hooks(keywords=True)]

    async with agent_of("One.", hooks=all_hooks()) as agent:
        first = await agent.run("A form", cwd=project)
    async with agent_of("Two.", hooks=all_hooks()) as later:
        session = await later.load_session(first.session.id)
        await later.run("Another form", session=session)
    assert asked(later, 0)[0] == asked(agent, 0)[0]
    assert str(session.messages).count("How to do pdf.") == 1


def test_without_skills_no_library_for_yaml_is_imported(project: Path):
    program = (
        "import asyncio, sys; from crow import Agent; from crow.extensions import SkillsHook;"
        "from crow.testing import ScriptedModel;"
        "asyncio.run(Agent(llm=ScriptedModel('.'), tools=[], hooks=[SkillsHook()]).run('Hi'));"
        "print('yaml' in sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=project)
    assert said == "False\n"


async def test_whoever_hangs_there_is_told_of_every_skill_that_is_used(
    agent_of: AgentOf, project: Path, tmp_path: Path
):
    put(project / ".crow/skills", "pdf", metadata="{keywords: form}", hooks="{Stop: []}")
    added = put(tmp_path / "more", "mine")
    told: list[tuple[str, str, bool, object]] = []

    def on_skill(ctx: Any) -> None:
        told.append((ctx.skill, ctx.path, ctx.trusted, ctx.front_matter.get("hooks")))

    agent = agent_of(
        call("Skill", skill="mine"),
        call("Agent", description="A task", prompt="Do it"),
        call("Skill", skill="pdf"),
        "Done.",
        "Ok.",
        hooks=[*hooks(keywords=True, paths=[tmp_path / "more"]), SubagentsHook(())],
    )
    agent.hooks.register("on_skill", on_skill)
    session = await open_in(agent, project)
    await agent.run("Hi", session=session)
    trust(project)
    agent.llm.extend("Ok.", "Ok.")  # type: ignore[attr-defined]
    await agent.run("A form", session=session)
    await agent.run("/mine", session=session)
    pdf = project / ".crow/skills/pdf/SKILL.md"
    assert told == [
        ("mine", str(added), True, None),
        ("pdf", str(pdf), False, {"Stop": []}),  # used by the sub-agent
        ("pdf", str(pdf), True, {"Stop": []}),
        ("mine", str(added), True, None),
    ]
