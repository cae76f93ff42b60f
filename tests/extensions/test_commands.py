"""Slash commands: the built-in ones, and those in files, which run nothing that may not run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from crow import Agent, Allow, Answer, Deny, Stop, tool
from crow.core.catalog import Mode
from crow.core.errors import ModelError
from crow.core.events import CommandsChanged, ConfigChanged, Event, Notice, ToolEnded, ToolPending
from crow.core.extensions import Found
from crow.core.hooks.contexts import CwdContext, ToolContext
from crow.core.messages import text_of
from crow.core.ports.client import NullClient
from crow.extensions import CommandsHook, PermissionsHook, PersistenceHook, SystemPromptHook
from crow.extensions.commands import stamps
from crow.extensions.commands.recipe import Recipe
from crow.project.trust import trust
from crow.testing import FakeEditor, ScriptedModel, call, text


class Watching(NullClient):
    """A client that keeps what it is shown."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def update(self, session_id: str, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.of(Notice)]


class FakeEditorHandlers:
    """A project, and an agent whose model answers everything with "Done."."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.client = Watching()
        self.model = ScriptedModel(*["Done."] * 9, leftover="allow")
        self.agent = Agent(self.model, hooks=[CommandsHook()])
        self.session: Any = None

    def write(self, name: str, content: str, folder: Path | None = None) -> Path:
        path = (folder or self.project) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    async def say(self, prompt: str) -> str:
        """What the agent says to a prompt."""
        if self.session is None:
            self.session = await self.agent.new_session(self.project, client=self.client)
        reply = await self.agent.run(prompt, session=self.session)
        return reply.text

    async def asked(self, prompt: str) -> str:
        """What the model is asked for a prompt."""
        before = len(self.model.asked)
        said = await self.say(prompt)
        assert len(self.model.asked) == before + 1, said
        return text_of(self.model.asked[-1]["messages"][-1].get("content"))

    @property
    def custom(self) -> list[str]:
        return sorted(self.session.commands)


@pytest.fixture
def desk(tmp_path: Path) -> FakeEditorHandlers:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return FakeEditorHandlers(project)


# the built-in ones


async def test_help_lists_every_command(desk: FakeEditorHandlers, home: Path):
    desk.write(".crow/commands/fix.md", "---\nargument-hint: [issue]\n---\nFix $1", home)
    assert await desk.say("/help") == snapshot("""\
- /add-dir [directory]: Work in one more directory
- /cd [directory]: Work in another directory
- /clear: Begin the conversation anew
- /context: Show what fills the model's window
- /extensions: List the extensions
- /fix [issue]: Fix $1 (user)
- /help: List the commands
- /hooks: List the hooks in the order in which they run
- /mode [name]: Show or change the mode
- /model [name]: Show or change the model
- /think [level]: Show or change how hard the model thinks\
""")


async def test_cd_goes_to_another_directory_and_says_so_to_the_model_and_to_hooks(
    desk: FakeEditorHandlers,
):
    heard: list[tuple[str, str]] = []
    here, there = str(desk.project), str(desk.project / "there")
    (desk.project / "there").mkdir()

    @desk.agent.hooks.on_cwd_changed
    def moved(ctx: CwdContext) -> None:
        heard.append((ctx.old_cwd, ctx.new_cwd))

    assert (
        await desk.say("/cd")
        == f"This session works in {here}.\n/cd DIRECTORY goes to another one."
    )
    assert await desk.say("/cd nowhere") == f"There is no directory {here}/nowhere."
    assert await desk.say("/cd .") == f"This session works in {here} already."
    assert await desk.say("/add-dir there/../..")
    assert await desk.say("/cd 'there'") == f"This session works in {there} now."
    assert (desk.session.cwd, heard) == (there, [(here, there)])
    await desk.say("Hello")
    told = text_of(desk.model.asked[-1]["messages"][-1].get("content"))
    assert f"from now on commands start in {there}" in told
    await desk.say(f"/cd {Path(here).parent}")
    assert desk.session.roots == (str(Path(here).parent),)


async def test_clear_begins_anew_and_the_old_conversation_stays_stored(tmp_path: Path):
    heard: list[str] = []
    hook = PersistenceHook(tmp_path / "crow.db")
    model = ScriptedModel("One.", "Two.")
    async with Agent(model, hooks=[hook, CommandsHook()], tools=[]) as agent:
        agent.hooks.register("after_compact", lambda trigger: heard.append(trigger))
        session = (await agent.run("First")).session
        reply = await agent.run("/clear", session=session)
        assert reply.text == "The conversation begins anew; the old one stays stored."
        assert (session.messages, session.segment, heard) == ([], 1, ["restart"])
        await agent.run("Second", session=session)
        assert [m.get("content") for m in model.asked[1]["messages"]] == ["Second"]
        old, new = await hook.store.segments(session.id)
    assert [m.get("content") for m in old] == ["First", "One."]
    assert [m.get("content") for m in new] == ["Second", "Two."]


async def test_model_shows_and_changes_the_model(desk: FakeEditorHandlers):
    desk.model.context_window = 128_000
    assert await desk.say("/model") == snapshot("""\
The model is scripted, with a window of 128,000 tokens.
/model NAME changes it, /model default takes the agent's own.\
""")
    assert await desk.say("/model gpt-x") == "The model is gpt-x."
    await desk.say("Hello")
    assert desk.model.asked[-1]["model"] == "gpt-x"
    assert desk.client.of(ConfigChanged) == [ConfigChanged({"model": "gpt-x"})]
    assert await desk.say("/model default") == "The model is scripted."
    desk.agent.hooks.register("on_config_change", lambda changes: "only gpt-x is allowed")
    refused = "The model was not changed: only gpt-x is allowed"
    assert await desk.say("/model gpt-y") == refused


async def test_model_lists_the_models_that_the_agent_knows_of(desk: FakeEditorHandlers):
    desk.agent.llm = type("Known", (ScriptedModel,), {"models": ("one", "two")})()
    assert "- one\n- two\n" in await desk.say("/model")


async def test_think_shows_and_changes_how_hard_the_model_thinks(desk: FakeEditorHandlers):
    thinker = type("Thinker", (ScriptedModel,), {"thought_levels": ("off", "low", "high")})
    desk.agent.llm = model = thinker("Hi.", "Hi.")
    assert await desk.say("/think") == (
        "The model thinks at the level default.\n/think LEVEL changes it: default, off, low, high"
    )
    assert await desk.say("/think high") == "The model thinks at the level high."
    await desk.say("Hello")
    assert model.asked[-1]["params"]["reasoning_effort"] == "high"
    assert await desk.say("/think max") == (
        "There is no level 'max' for this model: default, off, low, high"
    )
    assert await desk.say("/think default") == "The model thinks at the level default."
    await desk.say("Hello")
    assert "reasoning_effort" not in model.asked[-1]["params"]


async def test_mode_shows_and_changes_the_mode(desk: FakeEditorHandlers):
    assert await desk.say("/mode plan") == "There is no mode 'plan'; there are: none"
    desk.agent.add_mode(Mode("plan", "Plan", "Changes nothing"))
    assert await desk.say("/mode") == "The mode is default.\n- plan: Changes nothing"
    assert await desk.say("/mode plan") == "The mode is plan."
    assert desk.session.mode == "plan"
    desk.agent.hooks.register("on_config_change", lambda changes: "no")
    assert await desk.say("/mode plan") == "The mode was not changed: no"


async def test_context_says_what_fills_the_window():
    @tool
    def look() -> str:
        """Look."""
        return "x" * 400

    model = ScriptedModel(
        call("look"), text("Done.", usage={"total_tokens": 5000}), context_window=20_000
    )
    hooks = [SystemPromptHook("y" * 800, environment=False), CommandsHook()]
    agent = Agent(model, hooks=hooks, tools=[look])
    session = await agent.new_session()
    assert "about 32 tokens of 20,000 (0%)" in (await agent.run("/context", session=session)).text
    await agent.run("z" * 40, session=session)
    assert (await agent.run("/context", session=session)).text == snapshot("""\
The conversation has about 5,000 tokens of 20,000 (25%). In it, about:
- system prompt: 200
- tools (1): 32
- prompts: 10
- added context: 0
- answers and calls: 2
- results of tools: 100\
""")


async def test_hooks_are_listed_in_the_order_in_which_they_run(desk: FakeEditorHandlers):
    def guard(call: Any) -> None:
        return None

    desk.agent.remove("commands")
    desk.agent.use(CommandsHook())
    desk.agent.hooks.register("PreToolUse", guard, tools={"Bash", "Edit"}, judge=True)
    desk.agent.hooks.register("before_tool", lambda call: None, order=5)
    desk.agent.hooks.register("TaskCreated", guard)
    assert await desk.say("/hooks") == snapshot("""\
- on_session_start: commands.on_session_start
- before_run: commands.before_run (order -1000), commands.understand (order 1000)
- before_llm_request: commands.before_llm_request (order 1000)
- before_tool: <lambda> (order 5), commands.judge (only read; judge), guard (only bash, edit; judge)
- TaskCreated: guard (waits for the extension plan)\
""")


async def test_extensions_are_listed_with_what_became_of_them(desk: FakeEditorHandlers):
    desk.agent.found += [
        Found("commands", "crow", names=("commands",)),
        Found("broken", "some-package", "ImportError: no"),
        Found("stuck", "crow", None, disabled=True),
    ]
    assert await desk.say("/extensions") == (
        "- commands (crow)\n- broken (some-package): ImportError: no\n- stuck (crow): disabled"
    )


@pytest.mark.parametrize(
    "prompt",
    [
        "/etc/hosts is broken",
        "/etc/hosts?",
        "/usr/bin/x is broken",
        "/tmp is full",
        "/tmp",
        "/* a comment */",
        "// another",
        "/",
        "/ home",
        "/what? I said",
        "/^[a-z]+$/ matches too much",
        " /nosuch is what I want said",
        "tell /nosuch",
    ],
)
async def test_a_path_or_a_sentence_is_no_command_but_a_prompt(
    desk: FakeEditorHandlers, prompt: str
):
    assert await desk.asked(prompt) == prompt


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("/nosuch", "There is no command /nosuch; /help lists all."),
        ("/nosuch and more\nlines", "There is no command /nosuch; /help lists all."),
        ("/hlep", "There is no command /hlep; did you mean /help?"),
        ("/git:fix", "There is no command /git:fix; /help lists all."),
        ("/Model x", "There is no command /Model; did you mean /model?"),
    ],
)
async def test_an_unknown_command_says_so_and_asks_no_model(
    desk: FakeEditorHandlers, prompt: str, told: str
):
    assert (await desk.say(prompt)).startswith(told)
    assert desk.model.asked == []
    assert desk.session.messages == []


async def test_front_matter_that_is_not_closed_is_text_and_that_is_said(
    desk: FakeEditorHandlers, home: Path
):
    path = desk.write(".crow/commands/broken.md", "---\na: 1\nDo it.", home)
    assert await desk.asked("/broken") == "---\na: 1\nDo it."
    (notice,) = desk.client.notices
    assert notice.startswith(f"{path}: the front matter that begins in line 1 is not closed")


# where custom ones come from


async def test_commands_of_all_folders_are_offered_the_projects_first(
    desk: FakeEditorHandlers, home: Path
):
    desk.write(".crow/commands/same.md", "of the user, crow", home)
    desk.write(".claude/commands/same.md", "of the user, claude", home)
    desk.write(".claude/commands/mine.md", "mine", home)
    desk.write(".claude/commands/git/fix.md", "fix it")
    desk.write(".crow/commands/same.md", "of the project")
    trust(desk.project)
    assert await desk.asked("/same") == "of the project"
    assert desk.custom == ["git:fix", "mine", "same"]
    assert await desk.asked("/git:fix") == "fix it"
    assert desk.session.commands["mine"].description == "mine (user)"
    assert desk.session.commands["same"].description == "of the project (project)"


async def test_commands_of_a_project_that_is_not_trusted_are_left_out(
    desk: FakeEditorHandlers, home: Path
):
    desk.write(".crow/commands/theirs.md", "!`touch owned`")
    desk.write(".crow/commands/mine.md", "mine", home)
    assert (await desk.say("/theirs")).startswith("There is no command /theirs; ")
    assert desk.custom == ["mine"]
    assert desk.client.notices == [
        f"the commands of {desk.project} are left out: it is not trusted (crow trust)"
    ]


async def test_a_session_below_the_project_has_its_commands(desk: FakeEditorHandlers):
    desk.write(".crow/commands/fix.md", "fix it")
    trust(desk.project)
    (desk.project / "src").mkdir()
    desk.session = await desk.agent.new_session(desk.project / "src", client=desk.client)
    assert await desk.asked("/fix") == "fix it"


async def test_two_sessions_in_two_projects_have_each_their_own(
    desk: FakeEditorHandlers, tmp_path: Path
):
    desk.write(".crow/commands/fix.md", "fix it")
    trust(desk.project)
    other = await desk.agent.new_session(tmp_path)
    await desk.say("Hi")
    assert (desk.custom, sorted(other.commands)) == (["fix"], [])


async def test_changes_are_seen_before_the_next_prompt_and_told(
    desk: FakeEditorHandlers, home: Path
):
    path = desk.write(".crow/commands/fix.md", "fix it", home)
    assert await desk.asked("/fix") == "fix it"
    assert desk.client.of(CommandsChanged) == []
    path.write_text("fix it well")
    desk.write(".crow/commands/more.md", "more", home)
    assert await desk.asked("/fix") == "fix it well"
    assert len(desk.client.of(CommandsChanged)) == 1
    path.unlink()
    assert (await desk.say("/fix")).startswith("There is no command /fix; ")
    assert desk.custom == ["more"]


async def test_a_command_that_changed_is_not_trusted_any_more(desk: FakeEditorHandlers):
    path = desk.write(".crow/commands/fix.md", "fix it")
    trust(desk.project)
    assert await desk.asked("/fix") == "fix it"
    path.write_text("!`touch owned`")
    assert (await desk.say("/fix")).startswith("There is no command /fix; ")
    assert "it is not trusted" in desk.client.notices[-1]


async def test_a_name_that_is_taken_stays_what_it_is(desk: FakeEditorHandlers, home: Path):
    path = desk.write(".crow/commands/clear.md", "something else", home)
    assert (await desk.say("/clear")).startswith("The conversation begins anew")
    assert desk.client.notices == [f"{path}: there is a command /clear already"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("empty.md", "---\na: 1\n---\n\n", "it is empty"),
        ("two words.md", "text", "'two words' cannot be typed as a name"),
        ("long.md", "x" * 100_001, "it has more than 100000 characters"),
    ],
)
async def test_a_file_that_is_no_command_is_named_and_the_others_are_there(
    desk: FakeEditorHandlers, home: Path, name: str, content: str, expected: str
):
    path = desk.write(f".crow/commands/{name}", content, home)
    desk.write(".crow/commands/good.md", "good", home)
    assert await desk.asked("/good") == "good"
    (notice,) = desk.client.notices
    assert notice.startswith(f"{path} is no command: {expected}")
    assert "\n" not in notice


async def test_a_file_that_is_no_text_or_leads_nowhere_is_named(
    desk: FakeEditorHandlers, home: Path
):
    folder = home / ".crow" / "commands"
    folder.mkdir(parents=True)
    (folder / "binary.md").write_bytes(b"\xff\xfe\x00")
    (folder / "dangling.md").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.md")
    await desk.say("Hi")
    assert [notice.split(":")[0] for notice in desk.client.notices] == [
        f"{folder / name} is no command" for name in ("binary.md", "dangling.md", "pipe.md")
    ]


async def test_folders_are_not_followed_through_links(
    desk: FakeEditorHandlers, home: Path, tmp_path: Path
):
    desk.write("elsewhere/evil.md", "evil", tmp_path)
    folder = home / ".crow" / "commands"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    await desk.say("Hi")
    assert desk.custom == []
    assert stamps([folder]) == []


# what is in them


@pytest.mark.parametrize(
    ("body", "args", "expected"),
    [
        ("Fix $ARGUMENTS now", "the bug", "Fix the bug now"),
        ("Fix $1, not $2", "'the bug' this", "Fix the bug, not this"),
        ("Fix $1 and $3", "it", "Fix it and "),
        ("Fix $1", "it's broken", "Fix it's"),
        ("It costs $10", "now", "It costs $10\n\nARGUMENTS: now"),
        ("Fix it", "", "Fix it"),
        ("Fix it", "now", "Fix it\n\nARGUMENTS: now"),
        ("Fix $ARGUMENTS", "$1 $ARGUMENTS", "Fix $1 $ARGUMENTS"),
    ],
)
async def test_arguments_are_put_in(
    desk: FakeEditorHandlers, home: Path, body: str, args: str, expected: str
):
    desk.write(".crow/commands/fix.md", body, home)
    assert await desk.asked(f"/fix {args}") == expected.strip()


async def test_shell_lines_are_run_and_replaced_by_what_they_print(
    desk: FakeEditorHandlers, home: Path
):
    body = "Here: !`echo one; echo $1`\n\n```!\necho two\necho three\n```\nAnd `!echo no` ! `no`."
    desk.write(".crow/commands/look.md", body, home)
    asked = await desk.asked("/look four")
    assert asked == "Here: one\nfour\n\ntwo\nthree\nAnd `!echo no` ! `no`."
    shown = [event.title for event in desk.client.of(ToolPending)]
    assert shown == [
        "echo one; echo four  # For the command /look",
        "echo two\necho three  # For the command /look",
    ]
    assert [event.outcome for event in desk.client.of(ToolEnded)] == ["ok", "ok"]


async def test_a_shell_line_that_fails_says_so_in_the_prompt(desk: FakeEditorHandlers, home: Path):
    desk.write(".crow/commands/look.md", "See: !`echo oh no; exit 3`", home)
    assert await desk.asked("/look") == "See: Exit code 3\noh no"


async def test_what_an_argument_looks_like_is_not_run_and_not_read(
    desk: FakeEditorHandlers, home: Path
):
    desk.write("secret.txt", "the secret")
    desk.write(".crow/commands/fix.md", "Fix $ARGUMENTS", home)
    assert await desk.asked("/fix !`touch owned` @secret.txt") == "Fix !`touch owned` @secret.txt"
    assert not (desk.project / "owned").exists()


async def test_files_are_added_to_the_prompt(desk: FakeEditorHandlers, home: Path):
    desk.write("src/a b.py", "print('a')\n")
    desk.write("b.py", "print('b')\n")
    body = "Compare @src/a\\ b.py with @$1. Mail me@b.py, @nobody and @src; again @b.py"
    desk.write(".crow/commands/compare.md", body, home)
    asked = await desk.asked("/compare b.py")
    assert asked.startswith(
        "Compare @src/a\\ b.py with @b.py. Mail me@b.py, @nobody and @src; again @b.py\n\n<file path="
    )
    assert asked.count("<file path=") == 2
    assert "print('a')" in asked
    assert asked.count("print('b')") == 1


async def test_files_outside_of_the_session_are_left_out(
    desk: FakeEditorHandlers, home: Path, tmp_path: Path
):
    desk.write("secret.txt", "the secret", tmp_path)
    (desk.project / "link.txt").symlink_to(tmp_path / "secret.txt")
    desk.write(".crow/commands/fix.md", "Read @../secret.txt and @link.txt", home)
    assert await desk.asked("/fix") == "Read @../secret.txt and @link.txt"
    assert len(desk.client.notices) == 2
    assert desk.client.notices[0] == (
        "/fix: ../secret.txt is outside of the session's directories and left out"
    )


@pytest.mark.parametrize(
    ("name", "expected"), [(".crow", "small"), (".claude", None)], ids=["crow", "claude"]
)
async def test_a_command_may_name_its_model_where_it_is_meant_for_crow(
    desk: FakeEditorHandlers, home: Path, name: str, expected: str | None
):
    desk.write(f"{name}/commands/fix.md", "---\nmodel: small\n---\nFix it", home)
    assert await desk.asked("/fix") == "Fix it"
    assert desk.model.asked[-1]["model"] == expected
    await desk.say("Go on")
    assert desk.model.asked[-1]["model"] is None


async def test_a_model_that_cannot_be_had_or_is_refused_is_not_asked(
    desk: FakeEditorHandlers, home: Path
):
    class Routing(ScriptedModel):
        def named(self, model: str) -> ScriptedModel:
            if model == "none":
                raise ModelError("there is no model 'none'", kind="unconfigured")
            return self

    desk.agent.llm = Routing()
    desk.write(".crow/commands/fix.md", "---\nmodel: none\n---\nFix it", home)
    desk.write(".crow/commands/other.md", "---\nmodel: some\n---\nFix it", home)
    assert await desk.say("/fix") == "/fix was not run: there is no model 'none'"
    desk.agent.hooks.register("PreModelSwitch", lambda changes: Deny("too dear"))
    assert await desk.say("/other") == "/other was not run: too dear"


# what they may not do


async def test_a_shell_line_that_a_gate_denies_is_not_run_nor_the_others(
    desk: FakeEditorHandlers, home: Path
):
    def guard(ctx: ToolContext) -> Deny | None:
        return Deny("no rm here") if "rm " in ctx.args["command"] else None

    desk.agent.hooks.register("before_tool", guard, tools={"Bash"})
    desk.write(".crow/commands/fix.md", "!`touch owned` !`rm -r /tmp/nothing`", home)
    said = await desk.say("/fix")
    assert said == ("/fix was not run: rm -r /tmp/nothing  # For the command /fix: no rm here")
    assert not (desk.project / "owned").exists()
    assert desk.model.asked == []
    assert desk.session.messages == []
    assert [e.outcome for e in desk.client.of(ToolEnded)] == ["denied", "cancelled"]


async def test_the_front_matter_permits_nothing(desk: FakeEditorHandlers, home: Path):
    desk.agent.use(PermissionsHook())
    desk.write(
        ".crow/commands/fix.md", "---\nallowed-tools: Bash(touch:*)\n---\n!`touch owned`", home
    )
    assert "nobody can be asked" in await desk.say("/fix")
    assert not (desk.project / "owned").exists()


async def test_rules_of_the_user_permit_a_shell_line_and_forbid_a_file(
    desk: FakeEditorHandlers, home: Path
):
    desk.agent.use(PermissionsHook(allow=["Bash(touch *)"], deny=["Read(./.env)"]))
    desk.write(".env", "KEY=1")
    desk.write(".crow/commands/make.md", "!`touch made`Go", home)
    desk.write(".crow/commands/look.md", "@.env", home)
    assert await desk.asked("/make") == "(no output)Go"
    assert (desk.project / "made").exists()
    assert (await desk.say("/look")).startswith("/look was not run: ")


async def test_a_gate_that_stops_ends_the_run(desk: FakeEditorHandlers, home: Path):
    desk.agent.hooks.register("before_tool", lambda ctx: Stop("enough"))
    desk.write(".crow/commands/fix.md", "!`echo a` !`echo b`", home)
    await desk.say("Hi")
    reply = await desk.agent.run("/fix", session=desk.session)
    assert (reply.stop_reason, reply.detail) == ("refusal", "enough")


async def test_a_hook_may_answer_for_a_shell_line(desk: FakeEditorHandlers, home: Path):
    desk.agent.hooks.register("before_tool", lambda ctx: Answer("from the cache"))
    desk.agent.hooks.register("before_tool", lambda ctx: Allow())
    desk.write(".crow/commands/fix.md", "See !`echo a`", home)
    assert await desk.asked("/fix") == "See from the cache"


async def test_without_a_shell_the_command_says_what_is_missing(home: Path, tmp_path: Path):
    folder = home / ".crow" / "commands"
    folder.mkdir(parents=True)
    (folder / "fix.md").write_text("!`echo a`")
    agent = Agent(ScriptedModel(), hooks=[CommandsHook()], tools=[])
    reply = await agent.run("/fix", cwd=tmp_path)
    assert reply.text == "/fix was not run: Bash: there is no tool 'Bash'; there are: "


async def test_a_command_is_cancelled_with_its_run(desk: FakeEditorHandlers, home: Path):
    await desk.say("Hi")
    desk.agent.hooks.register("around_tool", cancel_and_wait(desk))
    desk.write(".crow/commands/wait.md", "!`sleep 30`", home)
    reply = await desk.agent.run("/wait", session=desk.session)
    assert reply.stop_reason == "cancelled"
    assert [event.outcome for event in desk.client.of(ToolEnded)] == ["cancelled"]
    assert await desk.asked("Still there?") == "Still there?"


def cancel_and_wait(desk: FakeEditorHandlers) -> Any:
    async def around(ctx: ToolContext, call_next: Any) -> Any:
        desk.agent.cancel(desk.session)
        return await call_next()

    return around


async def test_what_a_command_did_is_stored_with_the_session(tmp_path: Path, home: Path):
    folder = home / ".crow" / "commands"
    folder.mkdir(parents=True)
    (folder / "look.md").write_text("See !`echo one`")
    hook = PersistenceHook(tmp_path / "crow.db")
    async with Agent(ScriptedModel("Done."), hooks=[hook, CommandsHook()]) as agent:
        session = (await agent.run("/look", cwd=tmp_path)).session
        told = [type(event).__name__ async for event in hook.store.replay(session.id)]
        stored = await hook.store.segments(session.id)
    assert told == ["ToolPending", "ToolEnded", "UserMessage", "TextDelta"]
    assert stored == [session.messages]
    assert session.messages[0] == {"role": "user", "content": "See one"}


async def test_an_editor_is_told_of_all_commands_and_of_every_change(
    desk: FakeEditorHandlers, home: Path
):
    def offered(editor: FakeEditor) -> dict[str, str]:
        update = editor.updates("available_commands_update")[-1]
        return {each["name"]: each["description"] for each in update["availableCommands"]}

    desk.write(".crow/commands/fix.md", "Fix it", home)
    editor = FakeEditor()
    async with editor.connected(desk.agent):
        session = await editor.new_session(desk.project)
        await editor.saw("available_commands_update")
        assert offered(editor)["fix"] == "Fix it (user)"
        assert offered(editor)["clear"] == "Begin the conversation anew"
        desk.write(".crow/commands/more.md", "More", home)
        await editor.prompt(session, "/fix")
        assert offered(editor)["more"] == "More (user)"
    assert text_of(desk.model.asked[0]["messages"][-1].get("content")) == "Fix it"


def test_pieces_of_a_text():
    recipe = Recipe("n", "", "", "a !`b $1` c\n@d.py. (@e) x@f !`` @", None, "user", Path("n.md"))
    assert [(piece.kind, piece.text) for piece in recipe.pieces("1") if piece.text] == [
        ("text", "a "),
        ("shell", "b 1"),
        ("text", " c\n"),
        ("file", "d.py"),
        ("text", "."),
        ("text", " ("),
        ("file", "e"),
        ("text", ") x@f !`` @"),
    ]
