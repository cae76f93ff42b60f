"""Permissions on the real loop: what runs, what is asked, and what "always" remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from crow import Agent, tool
from crow.core.events import Event, ToolEnded
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.verdicts import Allow, Ask, Deny
from crow.extensions import PermissionsHook
from crow.extensions.permissions import MODES
from crow.testing import ScriptedModel, call
from crow.tools import builtin


@dataclass
class Person:
    """A client that answers questions by the kind of an option."""

    answer: str | None = None
    asked: list[PermissionRequest] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    files: Files | None = None
    terminals: Terminals | None = None

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, ToolEnded):
            self.outcomes.append(event.outcome)
            self.results.append(event.result.text)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return next((one.id for one in request.options if one.kind == self.answer), None)

    async def ask(self, session_id: str, question: Question) -> Any:
        return question.default


@dataclass
class Shop:
    """Tools that note what they were given."""

    ran: list[str] = field(default_factory=list)

    @property
    def tools(self) -> list[Any]:
        @tool(name="Bash")
        def bash(command: str) -> str:
            """Run it."""
            self.ran.append(command)
            return "done"

        @tool(name="Edit")
        def edit(file_path: str) -> str:
            """Edit it."""
            self.ran.append(file_path)
            return "done"

        return [bash, edit]


Play = Callable[..., Any]


@pytest.fixture
def play(world) -> Play:
    """Run one call after another; what ran, and whom was asked."""

    async def playing(
        *commands: str | dict[str, str], hook: PermissionsHook, hooks: Any = (), mode: str = "default",
        answer: str | None = None,
    ) -> tuple[Shop, Person]:  # fmt: skip
        shop, person = Shop(), Person(answer)
        calls = [
            call("Bash", command=one)
            if isinstance(one, str)
            else call("Edit", file_path=one["file_path"])
            for one in commands
        ]
        agent = Agent(llm=ScriptedModel(*calls, "Done."), hooks=[*hooks, hook], tools=shop.tools)
        session = await agent.new_session(cwd=str(world.cwd), client=person)
        if mode != "default":
            session.mode = mode
        await agent.prompt(session, "Go")
        await agent.close()
        return shop, person

    return playing


async def test_a_rule_lets_a_command_run_without_a_question(play):
    shop, person = await play("npm run x", hook=PermissionsHook(allow=["Bash(npm run *)"]))
    assert (shop.ran, person.asked) == (["npm run x"], [])


async def test_a_deny_rule_ends_a_call_and_tells_the_model_which_rule_it_was(play):
    hook = PermissionsHook(allow=["Bash"], deny=["Bash(curl *)"])
    shop, person = await play("curl x", hook=hook)
    assert (shop.ran, person.asked, person.outcomes) == ([], [], ["denied"])
    assert person.results == ["the rule Bash(curl *) denies it"]


async def test_a_person_is_offered_once_and_always_and_may_refuse(play):
    hook = PermissionsHook(save=lambda rule, behaviour: None)
    shop, person = await play("make all", hook=hook, answer="reject_once")
    assert shop.ran == []
    [request] = person.asked
    assert [(one.kind, one.name) for one in request.options] == [
        ("allow_once", "Allow once"),
        ("allow_always", "Always allow Bash(make all *)"),
        ("reject_once", "Reject"),
        ("reject_always", "Never allow Bash(make all *)"),
    ]
    assert request.reason == "no rule allows make all"


async def test_always_says_so_where_it_ends_with_the_session(play):
    _, person = await play("make all", hook=PermissionsHook(), answer="reject_once")
    [request] = person.asked
    assert [one.name for one in request.options][1::2] == [
        "Always allow Bash(make all *) in this session",
        "Never allow Bash(make all *) in this session",
    ]


async def test_always_is_remembered_for_the_session_and_saved(play):
    saved: list[tuple[str, str]] = []
    hook = PermissionsHook(save=lambda rule, behaviour: saved.append((rule, behaviour)))
    shop, person = await play("make all", "make all -j2", hook=hook, answer="allow_always")
    assert shop.ran == ["make all", "make all -j2"]
    assert len(person.asked) == 1
    assert saved == [("Bash(make all *)", "allow")]


async def test_never_is_remembered_too_and_saving_may_take_its_time(play):
    saved: list[str] = []

    async def save(rule: str, behaviour: str) -> None:
        saved.append(f"{behaviour} {rule}")

    shop, person = await play(
        "tool a", "tool a", hook=PermissionsHook(save=save), answer="reject_always"
    )
    assert (shop.ran, len(person.asked)) == ([], 1)
    assert saved == ["deny Bash(tool a)"]
    assert person.results[1] == "the rule Bash(tool a) denies it"


async def test_a_compound_command_is_remembered_part_by_part(play):
    shop, person = await play(
        "make a && ls | tool b 'c d'", "tool b 'c d'", hook=PermissionsHook(), answer="allow_always"
    )
    assert len(shop.ran) == 2
    assert "Bash(make a *), Bash(tool b 'c d')" in person.asked[0].options[1].name
    assert len(person.asked) == 1


@pytest.mark.parametrize("command", ["rm -rf ..", "echo x > .git/config", "git push", "x $(y)"])
async def test_what_no_rule_may_open_is_offered_once_only(play, command):
    hook = PermissionsHook(ask=["Bash(git push *)"])
    shop, person = await play(command, hook=hook, answer="allow_once")
    assert shop.ran == [command]
    assert [one.kind for one in person.asked[0].options] == ["allow_once", "reject_once"]


async def test_nobody_there_means_no(play):
    shop, person = await play("make all", hook=PermissionsHook(), answer=None)
    assert shop.ran == []
    assert "no rule allows make all" in person.results[0]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("verdict", "command", "ran"),
    [
        (Allow(), "make all", True),
        (Allow(), "curl x", False),
        (Allow(), "git push", False),
        (Allow(), "rm -rf ..", False),
        (Allow(), "echo x > .git/config", False),
        (Ask("sure?"), "npm run x", False),
        (Deny("no"), "npm run x", False),
    ],
)
async def test_a_hooks_allow_skips_the_question_and_nothing_more(
    play, first, verdict, command, ran
):
    def other(ctx: Any) -> Any:
        return verdict

    class Other:
        name = "other"
        before_tool = staticmethod(other)

    permissions = PermissionsHook(
        allow=["Bash(npm run *)", "Bash(rm *)"], ask=["Bash(git push *)"], deny=["Bash(curl *)"]
    )
    hooks, last = ((), permissions)
    if first:
        hooks = (Other(),)
        shop, _ = await play(command, hook=last, hooks=hooks)
    else:
        shop, _ = await play(command, hook=Other(), hooks=(permissions,))
    assert bool(shop.ran) is ran


async def test_what_a_hook_made_of_a_call_is_what_is_judged(play):
    class Rewrite:
        def before_tool(self, ctx: Any) -> Allow:
            ctx.args = {"command": "curl evil"}
            return Allow("fine")

    hook = PermissionsHook(allow=["Bash(npm run *)"], deny=["Bash(curl *)"])
    shop, person = await play("npm run x", hook=hook, hooks=[Rewrite()])
    assert (shop.ran, person.outcomes) == ([], ["denied"])


async def test_the_mode_of_the_settings_is_where_a_session_begins(play, world):
    path = str(world.cwd / "src/new.ts")
    shop, person = await play({"file_path": path}, hook=PermissionsHook(mode="acceptEdits"))
    assert (shop.ran, person.asked) == ([path], [])


async def test_the_sessions_own_mode_is_the_one_that_counts(play, world):
    path = str(world.cwd / "src/new.ts")
    hook = PermissionsHook(mode="acceptEdits")
    shop, _ = await play({"file_path": path}, hook=hook, mode="plan")
    assert shop.ran == []
    shop, person = await play("make all", hook=hook, mode="bypassPermissions")
    assert (shop.ran, person.asked) == (["make all"], [])


async def test_dont_ask_means_no_unless_a_hook_says_yes(play):
    hook = PermissionsHook(mode="dontAsk", ask=["Bash(git push *)"])
    shop, person = await play("make all", "git push", hook=hook, answer="allow_once")
    assert (shop.ran, person.asked) == ([], [])
    assert person.results[0] == "the mode is dontAsk, and no rule allows make all"

    class Yes:
        def before_tool(self, ctx: Any) -> Allow:
            return Allow()

    shop, _ = await play("make all", "git push", hook=hook, hooks=[Yes()])
    assert shop.ran == ["make all"]


@pytest.mark.parametrize("question", [Ask("sure?"), Ask("sure?", rule="mine")])
async def test_dont_ask_means_no_to_the_questions_of_hooks_too(play, question: Ask):
    class Asks:
        def before_tool(self, ctx: Any) -> Ask:
            return question

    hook = PermissionsHook(mode="dontAsk")
    shop, person = await play("make all", hook=hook, answer="allow_once", hooks=[Asks()])
    assert (shop.ran, person.asked) == ([], [])
    assert person.results == ["the mode is dontAsk, and no rule allows make all"]


async def test_a_second_directory_is_worked_in_like_the_first(play, world):
    path = str(world.top / "other/y")
    hook = PermissionsHook(mode="acceptEdits")
    shop, _ = await play({"file_path": path}, hook=hook)
    assert shop.ran == []
    hook = PermissionsHook(mode="acceptEdits", additional_directories=[str(world.top / "other")])
    shop, _ = await play({"file_path": path}, hook=hook)
    assert shop.ran == [path]


def test_malformed_rules_are_named_and_the_rest_applies():
    hook = PermissionsHook(
        allow=[
            "Bash(",
            "*",
            "Bash()",
            "Write(x)",
            "Bash(ls)",
            "TodoWrite(x)",
            "Bsh(x)",
            "bash(x)",
            "WebFetch(x)",
            "Edit(!x)",
        ],
        deny=["Read(.env)", "a b"],
        mode="wild",
    )
    assert hook.warnings == (
        f"there is no mode 'wild', so default is used; there are: {', '.join(MODES)}",
        "allow rule 'Bash(' is ignored: it is neither Tool nor Tool(specifier)",
        "allow rule '*' is ignored: an allow rule may have a wildcard only after a literal mcp__server__",
        "allow rule 'Bash()' is ignored: its parentheses are empty",
        "allow rule 'Write(x)' is ignored: path rules are written for Edit, not for Write",
        "allow rule 'TodoWrite(x)' is ignored: TodoWrite knows no such specifier",
        "allow rule 'Bsh(x)' is ignored: Bsh knows no such specifier; did you mean Bash?",
        "allow rule 'WebFetch(x)' is ignored: WebFetch rules are written WebFetch(domain:example.com)",
        "allow rule 'Edit(!x)' is ignored: only deny and ask rules can be carved out of",
        "deny rule 'a b' is ignored: it is neither Tool nor Tool(specifier)",
    )
    assert [rule.text for rule in hook.permissions.allow] == ["Bash(ls)", "bash(x)"]


async def test_what_may_not_be_read_is_left_out_of_what_a_search_finds(tmp_path):
    for name in ("a.txt", ".env", "config/.env", "secrets/key", "src/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("needle\n")
    (tmp_path / "link").symlink_to("secrets/key")
    searches = [
        call("Grep", pattern="needle", output_mode="content"),
        call("Glob", pattern="*"),
        call("LS"),
    ]
    person = Person()
    hook = PermissionsHook(deny=["Read(.env)"], ask=["Read(secrets/**)"])
    agent = Agent(llm=ScriptedModel(*searches, "Done."), hooks=[hook], tools=builtin())
    session = await agent.new_session(cwd=str(tmp_path), client=person)
    await agent.prompt(session, "Go")
    await agent.close()
    assert (person.asked, person.outcomes) == ([], ["ok", "ok", "ok"])
    grep, glob, ls = (text.split("\n") for text in person.results)
    assert grep[:-1] == ["a.txt:1:needle", "src/b.txt:1:needle"]
    assert sorted(glob[:-1]) == ["a.txt", "src/b.txt"]
    assert ls[1:-1] == ["config/", "secrets/", "src/", "a.txt"]
    assert "left out" in grep[-1]


async def test_a_rule_that_is_gone_hides_nothing_any_more(tmp_path):
    (tmp_path / "a.txt").write_text("")
    person = Person()
    agent = Agent(
        llm=ScriptedModel(call("LS"), "Done.", call("LS"), "Done."),
        hooks=[PermissionsHook(deny=["Read(*.txt)"])],
        tools=builtin(),
    )
    session = await agent.new_session(cwd=str(tmp_path), client=person)
    await agent.prompt(session, "Go")
    session.use(PermissionsHook(), name="permissions")
    await agent.prompt(session, "Go")
    await agent.close()
    assert ["a.txt" in result for result in person.results] == [False, True]


async def test_a_tool_that_wants_its_user_asked_is_not_let_through_by_a_hook(tmp_path):
    ran: list[str] = []

    @tool
    def pay(amount: str) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    cast("Any", pay).interactive = True

    def wave(ctx: Any) -> Allow:
        return Allow("fine")

    person = Person("reject_once")
    agent = Agent(llm=ScriptedModel(call("pay", amount="1"), "Done."), tools=[pay])
    agent.use(PermissionsHook(allow=["pay"], mode="bypassPermissions"))
    agent.hooks.register("before_tool", wave)
    agent.hooks.register("on_permission", wave)
    await agent.prompt(await agent.new_session(cwd=str(tmp_path), client=person), "Go")
    await agent.close()
    assert (ran, len(person.asked)) == ([], 1)
