"""What plugins bring: commands, skills and agents, their names, and what their texts stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow import Agent
from crow.core.messages import text_of
from crow.events import Notice
from crow.extensions import (
    CommandsHook,
    PermissionsHook,
    SkillsHook,
    SubagentsHook,
    SystemPromptHook,
)
from crow.project.plugins import Plugin, fill_placeholders, matching_names, read
from crow.testing import ScriptedModel, ScriptedUser, call

SECRET = {"key": {"type": "string", "sensitive": True}, "depth": {"default": 2}, "none": {}}


class House:
    """Plugins in folders, a project, and an agent that uses them."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.project = top / "project"
        self.project.mkdir()
        self.roots: list[Path] = []

    def plugin(self, name: str, manifest: Any = None, **files: str) -> Path:
        """A plugin with these files; ``__`` stands for a slash, all are Markdown."""
        root = self.top / "plugins" / name
        (root / ".claude-plugin").mkdir(parents=True)
        table = {"name": name, **(manifest or {})}
        (root / ".claude-plugin/plugin.json").write_text(json.dumps(table))
        for path, text in files.items():
            file = root / f"{path.replace('__', '/')}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.roots.append(root)
        return root

    def plugins(self, configured: Any = None) -> list[Plugin]:
        data = self.top / "data"
        return [read(root, configured=configured or {}, data=data) for root in self.roots]

    def agent(self, *script: Any, configured: Any = None, **permissions: Any) -> Agent:
        plugins = self.plugins(configured)
        self.model = ScriptedModel(*script)
        hooks = [
            SystemPromptHook("Crow.", environment=False),
            PermissionsHook(mode="dontAsk", **permissions),
            CommandsHook(plugins=plugins),
            SkillsHook(plugins=plugins),
            SubagentsHook([], plugins=plugins),
        ]
        return Agent(self.model, hooks=hooks)

    async def say(self, prompt: str, agent: Agent | None = None) -> str:
        """What the model is asked last for a prompt, or what is answered without one."""
        agent = agent or self.agent("Ok.")
        reply = await agent.run(prompt, cwd=self.project)
        if not self.model.asked:
            return reply.text
        return text_of(self.model.asked[-1]["messages"][-1].get("content"))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def skill(description: str = "D.", text: str = "Text.", **fields: str) -> str:
    head = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return f"---\ndescription: {description}\n{head}---\n{text}"


# names


@pytest.mark.parametrize("typed", ["p:fix", "fix"])
async def test_a_command_is_called_with_its_plugin_or_alone(house: House, typed: str):
    house.plugin("p", commands__fix="Mend $ARGUMENTS.")
    assert await house.say(f"/{typed} the door") == "Mend the door."


async def test_a_command_in_a_folder_has_that_between(house: House):
    house.plugin("p", commands__git__fix="Mend it.")
    for typed in ("p:git:fix", "git:fix", "fix"):
        assert await house.say(f"/{typed}") == "Mend it."


async def test_a_name_that_two_plugins_have_is_answered_with_both(house: House):
    house.plugin("p", commands__fix="One.")
    house.plugin("q", skills__fix__SKILL=skill())
    assert await house.say("/fix it") == "There are several commands /fix: /p:fix, /q:fix"
    assert await house.say("/p:fix") == "One."
    assert "<skill " in await house.say("/q:fix")


async def test_what_is_built_in_and_ones_own_are_meant_before_plugins(house: House):
    home = Path.home() / ".claude"
    (home / "commands").mkdir(parents=True)
    (home / "commands/fix.md").write_text("My own.")
    house.plugin("p", commands__fix="One.", commands__help="Theirs.")
    assert await house.say("/fix") == "My own."
    assert "- /p:help: Theirs. (p)" in await house.say("/help")


async def test_names_are_listed_with_their_plugin(house: House):
    house.plugin("p", commands__fix="Mend it.", skills__care__SKILL=skill("Be careful"))
    listing = await house.say("/help")
    assert "- /p:fix: Mend it. (p)" in listing
    assert "- /p:care: Be careful (p)" in listing
    assert "/fix" not in listing.replace("/p:fix", "")


@pytest.mark.parametrize("name", ["p:care", "care", "p:Take-Care", "Take-Care"])
async def test_a_skill_is_used_by_its_folder_or_the_name_in_its_file(house: House, name: str):
    house.plugin("p", skills__care__SKILL=skill(name="Take-Care"))
    agent = house.agent(call("Skill", skill=name), "Ok.")
    assert '<skill name="p:care"' in await house.say("Go", agent)
    assert "- p:care: D. (" in text_of(house.model.asked[0]["messages"][0].get("content"))


async def test_a_skill_that_two_plugins_have_is_answered_with_both(house: House):
    for name in ("p", "q"):
        house.plugin(name, skills__care__SKILL=skill())
    agent = house.agent(call("Skill", skill="care"), "Ok.")
    assert await house.say("Go", agent) == "there are several skills 'care': p:care, q:care"


@pytest.mark.parametrize(("rule", "runs"), [("Skill(p:care)", False), ("Skill(q:care)", True)])
async def test_a_rule_means_a_plugins_skill_however_it_is_called(
    house: House, rule: str, runs: bool
):
    house.plugin("p", skills__care__SKILL=skill())
    agent = house.agent(call("Skill", skill="care"), "Ok.", deny=[rule])
    assert ("<skill " in await house.say("Go", agent)) is runs


AGENT = "---\nname: looker\ndescription: Looks\n---\nLook in ${CLAUDE_PLUGIN_ROOT}."


@pytest.mark.parametrize("name", ["p:deep:looker", "deep:looker", "looker"])
async def test_an_agent_is_called_with_its_plugin_or_alone(house: House, name: str):
    root = house.plugin("p", agents__deep__other=AGENT, agents__README="No agent.")
    task = call("Agent", description="x", prompt="/task: do it", subagent_type=name)
    started: list[str] = []
    agent = house.agent(task, "Seen.", "Ok.", allow=["Agent(p:deep:looker)"])
    agent.hooks.register("SubagentStart", lambda ctx: started.append(ctx.session.agent_type))
    await house.say("Go", agent)
    house.model.verify()
    assert started == ["p:deep:looker"]
    system, prompt = (text_of(m.get("content")) for m in house.model.asked[1]["messages"])
    assert (system, prompt) == (f"Look in {root}.", "/task: do it")


async def test_an_agent_that_two_plugins_have_is_answered_with_both(house: House):
    for name in ("p", "q"):
        house.plugin(name, agents__looker=AGENT)
    task = call("Agent", description="x", prompt="Do", subagent_type="looker")
    agent = house.agent(task, "Ok.", allow=["Agent"])
    said = await house.say("Go", agent)
    assert said == "there is no sub-agent 'looker'; there are: p:looker, q:looker"


async def test_nobody_is_told_what_of_a_plugins_agent_has_no_effect(house: House):
    front = "name: looker\ndescription: Looks\nmemory: user\nskills: [nowhere]\ninitialPrompt: Go"
    house.plugin("p", agents__looker=f"---\n{front}\n---\nLook.")
    task = call("Agent", description="x", prompt="Do", subagent_type="looker")
    agent = house.agent(task, "Seen.", "Ok.", allow=["Agent"])
    user = ScriptedUser()
    session = await agent.new_session(house.project, client=user)
    await agent.prompt(session, "Go")
    assert [each.text for each in user.told if isinstance(each, Notice)] == []


NAME = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(":".join)


@given(st.lists(NAME, unique=True), NAME)
def test_a_name_means_itself_or_whatever_ends_with_it_and_nothing_else(
    names: list[str], wanted: str
):
    found = matching_names(wanted, names)
    if wanted in names:
        assert found == [wanted]
    else:
        assert found == [
            n for n in names if n.split(":")[-len(wanted.split(":")) :] == wanted.split(":")
        ]


# what texts stand for


async def test_placeholders_stand_for_the_plugins_folders_and_options(house: House):
    text = (
        "${CLAUDE_PLUGIN_ROOT} $CLAUDE_PLUGIN_ROOT ${CLAUDE_PLUGIN_DATA} ${CLAUDE_PROJECT_DIR} "
        "${user_config.depth} ${user_config.none} ${user_config.key} ${HOME} $CLAUDE_PLUGIN_ROOTS "
        "${CLAUDE_PLUGIN_ROOT:-$HOME/x} ${CLAUDE_PLUGIN_ROOT:-${HOME}/x}/y ${CLAUDE_ELSE:-a}"
    )
    root = house.plugin("p", {"userConfig": SECRET}, commands__fix=text)
    agent = house.agent("Ok.", configured={"p@inline": {"options": {"key": "sesame", "depth": 3}}})
    data = house.top / "data/p-inline"
    assert await house.say("/fix", agent) == (
        f"{root} {root} {data} {house.project} 3 ${{user_config.none}} "
        "[key is a secret of the plugin p: texts cannot have it] ${HOME} $CLAUDE_PLUGIN_ROOTS "
        f"{root} {root}/y ${{CLAUDE_ELSE:-a}}"
    )
    assert data.is_dir()


async def test_what_was_typed_is_no_placeholder(house: House):
    house.plugin("p", commands__fix="Mend $ARGUMENTS", skills__care__SKILL=skill(text="$ARGUMENTS"))
    for typed in ("/p:fix", "/p:care"):
        assert "${CLAUDE_PLUGIN_ROOT}" in await house.say(f"{typed} ${{CLAUDE_PLUGIN_ROOT}}")


async def test_a_skill_has_its_folder_and_its_session(house: House):
    text = "${CLAUDE_PLUGIN_ROOT}/x ${CLAUDE_SKILL_DIR}/y ${CLAUDE_SESSION_ID} $ARGUMENTS[1] $1"
    root = house.plugin("p", skills__care__SKILL=skill(text=text))
    said = await house.say("/care one two")
    assert f"{root}/x {root}/skills/care/y " in said
    assert "${" not in said
    assert " two $1" in said


async def test_a_shell_line_of_a_plugins_command_runs_its_script_where_that_is_allowed(
    house: House,
):
    root = house.plugin("p", commands__go='```!\n"${CLAUDE_PLUGIN_ROOT}/go.sh" $ARGUMENTS\n```')
    (root / "go.sh").write_text("#!/bin/sh\necho went $1\n")
    (root / "go.sh").chmod(0o755)
    agent = house.agent("Ok.", allow=[f"Bash({root}/go.sh:*)"])
    assert await house.say("/go far", agent) == "went far"
    assert (await house.say("/go far")).startswith("/p:go was not run: ")


async def test_a_plugins_own_files_can_be_read_and_no_others_beside_it(house: House):
    root = house.plugin("p", commands__go="See @${CLAUDE_PLUGIN_ROOT}/notes.txt")
    (root / "notes.txt").write_text("Noted.")
    (house.top / "plugins/other.txt").write_text("Not theirs.")
    assert "1\tNoted." in await house.say("/go")
    for path, seen in ((root / "notes.txt", "Noted."), (root / "../other.txt", "denied")):
        agent = house.agent(call("Read", file_path=str(path)), "Ok.")
        assert seen in (await house.say("Go", agent)).replace("dontAsk", "denied")


@pytest.mark.parametrize(
    ("head", "body", "typed", "expected"),
    [
        (
            "arguments: [who, what]",
            "$what for $who, $HOME",
            "me 'the rest'",
            "the rest for me, $HOME",
        ),
        ("arguments: who what", "$what for $who", "me", "for me"),
        ("argument-hint: '[x]'", "Fix $1", "", "Fix"),
        ("model: x", "awk '{print $1}'", "", "awk '{print $1}'"),
        ("model: x", "$ARGUMENTS[0]-$ARGUMENTS[2]", "a b c", "a-c"),
        ("model: x", "$what", "a", "$what\n\nARGUMENTS: a"),
    ],
)
async def test_arguments_are_put_in_by_number_and_by_name(
    house: House, head: str, body: str, typed: str, expected: str
):
    house.plugin("p", commands__go=f"---\n{head}\n---\n{body}")
    assert await house.say(f"/go {typed}".strip()) == expected


TEXTS = st.lists(
    st.sampled_from(
        ["${CLAUDE_PLUGIN_ROOT}", "$CLAUDE_PLUGIN_ROOT", "${", "}", "$", "user_config.x", "a"]
    )
).map("".join)


@given(TEXTS)
def test_without_a_plugin_and_values_a_text_stays_as_it_is(text: str):
    assert fill_placeholders(text, {}) == text


# what manifests name


async def test_a_manifest_names_files_and_folders_in_place_of_the_usual_ones(house: House):
    house.plugin(
        "p",
        {
            "commands": ["./more/", "./one.md"],
            "agents": "./helpers/looker.md",
            "skills": ["./extra"],
        },
        commands__hidden="Not there.",
        more__two="Two.",
        one="One.",
        helpers__looker=AGENT,
        helpers__other=AGENT.replace("looker", "other"),
        extra__SKILL=skill(),
        skills__care__SKILL=skill(),
    )
    listing = await house.say("/help")
    assert [line.split(":")[1] for line in listing.splitlines() if line.startswith("- /p:")] == [
        "care",
        "extra",
        "one",
        "two",
    ]
    [hook] = [SubagentsHook([], plugins=house.plugins())]
    assert list(hook.definitions.agents) == ["p:looker", "general-purpose"]
    assert hook.definitions.problems == []


async def test_a_skill_whose_folder_cannot_be_typed_is_no_command(tmp_path):
    house = House(tmp_path)
    text = "---\ndescription: About it\n---\nText"
    house.plugin("kit", **{"skills__two words__SKILL": text, "skills__one__SKILL": text})
    agent = house.agent("ok")
    session = (await agent.run("go", cwd=house.project)).session
    commands = agent.commands_of(session)
    assert {"kit:one"} == {name for name in commands if name.startswith("kit:")}
