"""The composition root: settings, packages, files and names become one agent."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.files import write

from crow.app import build, build_to_read, startup_warnings
from crow.core.errors import ExtensionError, ModelError
from crow.core.extensions import Found
from crow.core.verdicts import Allow
from crow.extensions import PermissionsHook, SubagentsHook
from crow.project.trust import is_trusted, trust
from crow.settings import load
from crow.testing.model import ScriptedModel, call

WEATHER = """
class WeatherSkill:
    def __init__(self, agent=None, city="Berlin"):
        self.city = city
    def init_agent(self, agent):
        agent.hooks.register("pre_request", self.say)
        agent.extensions["weather_skill"] = self
    def say(self, ctx):
        return f"weather in {self.city}"
"""
ALLOWING = """
from crow import Allow

def before_tool(ctx):
    return Allow("by a file")
"""
TOOLS = """
from crow import tool

@tool
def double(number: int) -> int:
    "Double a number."
    return 2 * number
"""
ASKING = """
class Asking:
    def __init__(self, rules=(), city="Berlin"):
        self.told = city, list(rules)

    @classmethod
    def options_from(cls, settings, own):
        return {**own, "rules": [rule.text for rule in settings.rules.deny]}

    def before_run(self, ctx): ...
"""
BUILT_IN = (
    "permissions sandbox persistence rewind system_prompt output_styles instructions limits stuck truncation compaction "
    "cost prompt_cache commands authoring skills web background plan questions subagents mcp deferred_tools file_watcher idle"
    " titles worktrees presence"
).split()
TOUCH = call("Bash", command="touch made")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where packages can be installed."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(packages: Path, name: str, module: str, code: str, thing: str = "") -> None:
    """Install a package with an entry point."""
    write(packages / f"{module}.py", code)
    info = packages / f"{name.replace('-', '_')}-1.0.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    point = f"{module}:{thing}" if thing else module
    write(info / "entry_points.txt", f"[crow.extensions]\n{module} = {point}\n")


def owners(agent: Any, event: str) -> list[str]:
    return [hook.owner.name for hook in agent.hooks[event].entries]


@pytest.mark.slow
def test_the_sources_are_hung_in_a_fixed_sequence(
    home: Path, project: Path, packages: Path
) -> None:
    install(packages, "crow-zoo", "zoo", "def on_session_end(ctx): ...")
    install(packages, "crow-ant", "ant", "def on_session_end(ctx): ...")
    write(home / ".crow/extensions/users.py", "def on_session_end(ctx): ...")
    write(project / ".crow/extensions/b.py", "def on_session_end(ctx): ...")
    write(project / ".crow/extensions/a.py", "def on_session_end(ctx): ...")
    named = write(project / "named.py", "def on_session_end(ctx): ...")
    trust(project)

    def on_session_end(ctx: Any) -> None: ...

    agent = build(cwd=project, hooks=[on_session_end], extensions=[str(named)], env={})

    sequence = ["named", "on_session_end", "b", "a", "users", "zoo", "ant"]  # it runs reversed
    assert [name for name in owners(agent, "on_session_end") if name in sequence] == sequence
    assert [found.name for found in agent.found] == [
        *BUILT_IN,
        *("ant", "zoo", "users", "a", "b", "shell_hooks", "named"),
    ]
    assert [found for found in agent.found if found.error or found.disabled] == []


def test_a_broken_one_is_named_and_stops_nobody(home: Path, project: Path, packages: Path) -> None:
    install(packages, "crow-bad", "bad_package", "raise RuntimeError('not\\ntoday')")
    install(packages, "crow-good", "good_package", "def before_run(ctx): ...")
    leaving = write(home / ".crow/extensions/leaving.py", "raise SystemExit(3)")
    empty = write(home / ".crow/extensions/empty.py", "x = 1")
    odd = write(home / ".crow/extensions/odd.py", "def before_run(ctx, colour): ...")
    write(home / ".crow/extensions/_private.py", "raise RuntimeError")

    agent = build(cwd=project, env={})

    assert "good_package" in agent.extensions
    broken = {found.name: (found.source, found.error) for found in agent.found if found.error}
    assert broken["bad_package"] == (
        "crow-bad",
        f"RuntimeError: not today ({packages / 'bad_package.py'}:1)",
    )
    assert broken["leaving"] == (str(leaving), f"SystemExit: 3 ({leaving}:1)")
    assert broken["empty"][0] == str(empty)
    assert "it holds no extension" in str(broken["empty"][1])
    assert broken["odd"][0] == str(odd)
    assert "before_run has no 'colour'" in str(broken["odd"][1])
    assert len(broken) == 4
    lines = list(startup_warnings(load(project), agent))
    failed = "the extension bad_package (crow-bad) is broken: RuntimeError: not today ("
    assert any(line.startswith(failed) for line in lines)


def test_servers_and_sub_agents_of_an_untrusted_project_are_not_left_out_silently(
    project: Path,
) -> None:
    write(project / ".mcp.json", {"mcpServers": {"one": {"command": "one"}}})
    write(project / ".crow/agents/scout.md", "---\nname: scout\n---\nLook.")
    [line] = startup_warnings(load(project))
    assert "not trusted, so these are left out: .crow/agents, .mcp.json (crow trust)" in line
    trust(project)
    assert list(startup_warnings(load(project))) == []


async def test_an_installed_package_may_ask_for_the_settings_of_each_session(
    home: Path, project: Path, packages: Path
) -> None:
    install(packages, "crow-asking", "asking", ASKING, "Asking")
    table = {"permissions": {"deny": ["Read(.env)"]}, "extensions": {"asking": {"city": "Rome"}}}
    write(home / ".crow/settings.json", table)
    with ScriptedModel("One.", "Two.") as model:
        async with build(cwd=project, model=model, env={}) as agent:
            assert agent.extensions["asking"].told == ("Rome", ["Read(.env)"])
            reply = await agent.run("Go", cwd=project)
            write(home / ".crow/settings.json", {**table, "permissions": {"deny": ["WebFetch"]}})
            await agent.run("Go on", session=reply.session)
            used = agent.extensions_of(reply.session)
            assert used["asking"].told == ("Rome", ["WebFetch"])
            assert agent.extensions["asking"].told == ("Rome", ["Read(.env)"])


async def test_a_class_that_a_program_brings_is_made_with_the_options_of_its_name(
    home: Path, project: Path, packages: Path
) -> None:
    install(packages, "crow-asking", "asking", ASKING, "Asking")

    class Mine:
        def __init__(self, city: str = "Berlin") -> None:
            self.city = city

        def before_run(self) -> None: ...

    import asking  # pyright: ignore[reportMissingImports]

    table = {"extensions": {"mine": {"city": "Rome"}, "asking": {"city": "Ulm"}}}
    write(home / ".crow/settings.json", table)
    agent = build(cwd=project, hooks=[Mine, asking.Asking], env={})
    assert agent.extensions["mine"].city == "Rome"
    assert agent.extensions["asking"].told == ("Ulm", [])
    assert "asking_2" not in agent.extensions
    agent = build(cwd=project, hooks=[Mine()], env={})
    assert agent.extensions["mine"].city == "Berlin"


def test_one_of_a_package_may_say_that_it_hangs_behind_all_files(
    home: Path, project: Path, packages: Path
) -> None:
    install(packages, "crow-late", "late", "order = 2000\ndef before_run(ctx): ...")
    install(packages, "crow-zoo", "zoo", "order = 1\ndef before_run(ctx): ...")
    write(home / ".crow/extensions/users.py", "def before_run(ctx): ...")
    agent = build(cwd=project, env={})
    sequence = ["zoo", "users", "late"]
    assert [name for name in owners(agent, "before_run") if name in sequence] == sequence


async def test_what_a_program_brings_stays_as_it_is_whatever_the_settings_say(
    home: Path, project: Path
) -> None:
    table = {"extensions": {"disable": ["subagents"]}}
    write(home / ".crow/settings.json", table)
    own, helpers = PermissionsHook(deny=["WebFetch"]), SubagentsHook(["somewhere"])
    with ScriptedModel("One.", "Two.") as model:
        async with build(cwd=project, model=model, hooks=[own, helpers], env={}) as agent:
            reply = await agent.run("Go", cwd=project)
            write(home / ".crow/settings.json", {**table, "permissions": {"deny": ["Read"]}})
            await agent.run("Go on", session=reply.session)
            used = agent.extensions_of(reply.session)
    assert used["permissions_2"] is own
    assert used["permissions"] is not agent.extensions["permissions"]
    assert helpers.folders == ("somewhere",)


def test_what_is_disabled_is_not_imported(home: Path, project: Path, packages: Path) -> None:
    install(packages, "crow-bad", "bad_package", "raise RuntimeError")
    write(home / ".crow/extensions/mine.py", "raise RuntimeError")
    names = ["bad_package", "mine", "limits"]
    write(home / ".crow/settings.json", {"extensions": {"disable": names}})
    agent = build(cwd=project, env={})
    off = [found for found in agent.found if found.disabled]
    assert sorted(found.name for found in off) == sorted(names)
    assert not set(names) & set(agent.extensions)
    assert [found for found in agent.found if found.error] == []


def test_options_come_from_the_settings(home: Path, project: Path, packages: Path) -> None:
    install(packages, "crow-weather", "weather", WEATHER, "WeatherSkill")
    write(home / ".crow/extensions/sky.py", WEATHER.replace("weather_skill", "sky"))
    options = {"weather": {"city": "Oslo"}, "sky": {"city": "Rome"}, "limits": {"turns": 7}}
    write(home / ".crow/settings.json", {"extensions": options, "limits": {"seconds": 9}})
    agent = build(cwd=project, env={})
    assert agent.extensions["weather_skill"].city == "Oslo"
    assert agent.extensions["sky"].city == "Rome"
    limits = agent.extensions["limits"]
    assert (limits.turns, limits.seconds) == (7, 9)


def test_settings_of_a_program_are_a_mapping_over_the_files(home: Path, project: Path) -> None:
    file = project / "asking.py"
    file.write_text(ASKING)
    settings = {
        "extensions": {"asking": {"city": "Rome"}},
        "permissions": {"deny": ["Bash(make deploy)"]},
    }
    agent = build(settings, cwd=project, extensions=[str(file)], deny=["Bash(rm *)"])
    told, rules = agent.extensions["asking"].told
    assert (told, sorted(rules)) == ("Rome", ["Bash(make deploy)", "Bash(rm *)"])

    wrong = build({"extensions": {"asking": {"citty": 3}}}, cwd=project, extensions=[str(file)])
    assert "did you mean 'city'?" in str([found.problems for found in wrong.found])


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"extensions": {"budget": {"prompts": 3}}}, "settings={'extensions': {...}}"),
        ({"hooks": 3}, "hooks takes a list: [3]"),
        ({"extensions": "guard.py"}, "extensions takes a list: ['guard.py']"),
        ({"allow": "Bash(ls)"}, "allow takes a list: ['Bash(ls)']"),
    ],
)
def test_an_option_of_another_shape_is_refused_with_a_hint(
    project: Path, options: dict[str, Any], hint: str
) -> None:
    with pytest.raises(TypeError) as error:
        build(cwd=project, **options)
    assert hint in str(error.value)


def test_a_files_tools_can_be_called(project: Path) -> None:
    path = write(project / "tools.py", TOOLS)
    assert "double" in build(cwd=project, extensions=[str(path)], env={}).tools


@pytest.mark.parametrize("spec", ["skill.py", "sky", "sky:WeatherSkill", "crow_sky"])
def test_an_extension_is_named_as_file_module_class_or_entry_point(
    project: Path, packages: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    write(project / "skill.py", WEATHER)
    write(packages / "sky.py", WEATHER)
    write(packages / "crow_sky.py", WEATHER)
    agent = build(cwd=project, extensions=[spec], env={})
    assert "weather_skill" in agent.extensions
    assert agent.found[-1].error is None


def test_a_module_beside_the_project_is_found_and_the_path_is_as_before(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    before = list(sys.path)
    monkeypatch.chdir(project)
    write(project / "only_here.py", WEATHER)
    assert "weather_skill" in build(cwd=project, extensions=["only_here"], env={}).extensions
    assert sys.path == before


@pytest.mark.parametrize(
    "spec, complaint",
    [
        ("absent.py", "does not exist: there is no such file"),
        ("no_such_module_anywhere", "does not exist: No module named 'no_such_module_anywhere'"),
        ("json:Nothing", "is broken: json has no 'Nothing'"),
        ("json", "is broken: it holds no extension"),
    ],
)
def test_what_was_asked_for_by_name_must_work(project: Path, spec: str, complaint: str) -> None:
    with pytest.raises(ExtensionError, match=f"the extension {spec} {complaint}"):
        build(cwd=project, extensions=[spec], env={})


def test_without_judged_permissions_there_is_no_agent(home: Path, project: Path) -> None:
    write(home / ".crow/settings.json", {"extensions": {"permissions": {"no_such": 1}}})
    with pytest.raises(ExtensionError, match=r"the permissions cannot be judged: .*\.no_such'"):
        build(cwd=project, env={})


MAY = {"permissions": {"allow": ["Bash"]}}


async def made(agent: Any, project: Path) -> bool:
    """True where the agent may touch a file."""
    agent.llm = ScriptedModel(TOUCH, "done")
    await agent.run("touch it", cwd=project)
    await agent.close()
    return (project / "made").exists()


async def test_without_judged_permissions_an_agent_that_is_read_runs_no_tool(
    home: Path, project: Path
) -> None:
    assert await made(build_to_read(load(project, flags=MAY), cwd=project), project)
    (project / "made").unlink()
    write(home / ".crow/settings.json", {"extensions": {"permissions": {"no_such": 1}}})
    agent = build_to_read(load(project, flags=MAY), cwd=project)
    assert "persistence" in agent.extensions
    assert not await made(agent, project)


async def test_the_allow_of_a_discovered_file_counts_only_where_the_user_says_so(
    home: Path, project: Path
) -> None:
    write(home / ".crow/extensions/generous.py", ALLOWING)
    assert not await made(build(cwd=project, env={}), project)
    write(home / ".crow/settings.json", {"permissions": {"trusted": ["generous"]}})
    assert await made(build(cwd=project, env={}), project)


async def test_the_allow_of_the_users_own_code_counts_and_beats_no_rule(
    home: Path, project: Path
) -> None:
    def before_tool(ctx: Any) -> Allow:
        return Allow()

    assert await made(build(cwd=project, hooks=[before_tool], env={}), project)
    (project / "made").unlink()
    denied = build(cwd=project, hooks=[before_tool], deny=["Bash(touch *)"], env={})
    assert not await made(denied, project)


async def test_rules_of_the_command_line_count(project: Path) -> None:
    assert not await made(build(cwd=project, env={}), project)
    assert await made(build(cwd=project, allow=["Bash(touch *)"], env={}), project)


def test_the_model_is_the_command_lines_before_the_environments_before_the_settings(
    home: Path, project: Path
) -> None:
    write(home / ".crow/settings.json", {"model": "a/settings", "base_url": "http://localhost:1"})
    env = {"CROW_MODEL": "environment"}
    assert build(cwd=project, env={}).llm.model == "a/settings"
    assert build(cwd=project, env=env).llm.model == "environment"
    assert build(cwd=project, model="flag", env=env).llm.model == "flag"


def test_the_environment_of_the_settings_counts_for_the_model(home: Path, project: Path) -> None:
    env = {"CROW_MODEL": "theirs", "CROW_BASE_URL": "http://localhost:1/v1"}
    write(home / ".crow/settings.json", {"env": env})
    assert build(cwd=project, env={}).llm.model == "theirs"


def test_a_model_that_cannot_be_had_is_said_when_it_is_needed(project: Path) -> None:
    agent = build(cwd=project, model="openai/gpt-5", env={})
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        agent.llm.model  # noqa: B018
    with pytest.raises(ModelError, match="do you mean ollama"):
        build(cwd=project, model="olama/x", env={}).llm.context_window  # noqa: B018


async def test_the_model_may_be_an_object_and_no_setting_takes_its_place(
    home: Path, project: Path
) -> None:
    write(home / ".crow/settings.json", {"model": "a/settings", "base_url": "http://localhost:1"})
    env = {"CROW_MODEL": "environment"}
    with ScriptedModel("One.", "Two.") as model:
        async with build(cwd=project, model=model, env=env) as agent:
            reply = await agent.run("Go", cwd=project)
            write(home / ".crow/settings.json", {"model": "b/other"})
            reply = await agent.run("Go on", session=reply.session)
            assert agent.llm is model
    assert reply.text == "Two."


class Completions:
    """What somebody's client has under ``chat.completions``."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def create(self, *, model: str, **_: Any) -> dict[str, Any]:
        self.asked.append(model)
        message = {"role": "assistant", "content": "Yes."}
        return {"choices": [{"message": message, "finish_reason": "stop"}]}


async def test_the_model_may_be_somebodys_client_which_is_asked_for_the_model_of_the_settings(
    home: Path, project: Path
) -> None:
    write(home / ".crow/settings.json", {"model": "theirs"})
    client: Any = SimpleNamespace(chat=SimpleNamespace(completions=Completions()))
    async with build(cwd=project, model=client, env={}) as agent:
        assert (await agent.run("Well?", cwd=project)).text == "Yes."
    async with build(cwd=project, model=client, env={"CROW_MODEL": "environments"}) as agent:
        await agent.run("Well?", cwd=project)
    assert client.chat.completions.asked == ["theirs", "environments"]


def test_an_object_that_is_no_model_is_refused_at_once(project: Path) -> None:
    with pytest.raises(ModelError, match="is no model"):
        build(cwd=project, model=object(), env={})  # type: ignore[arg-type]


def test_a_rule_that_the_user_keeps_leaves_the_project_trusted(project: Path) -> None:
    path = write(project / ".claude/settings.local.json", {"env": {"A": "b"}})
    trust(project)
    agent = build(cwd=project, env={})
    agent.extensions["permissions"].save("Bash(make)", "allow")
    agent.extensions["permissions"].save("Bash(make)", "allow")
    assert json.loads(path.read_text("utf-8")) == {
        "env": {"A": "b"},
        "permissions": {"allow": ["Bash(make)"]},
    }
    assert is_trusted(project)
    assert [entry.text for entry in load(project).permissions.allow] == ["Bash(make)"]


def test_no_rule_is_kept_in_a_project_that_is_not_trusted_or_a_file_that_is_broken(
    home: Path, project: Path
) -> None:
    path = write(project / ".claude/settings.local.json", "{broken")
    trust(project)
    build(cwd=project, env={}).extensions["permissions"].save("Bash(make)", "allow")
    assert path.read_text("utf-8") == "{broken"
    write(path, {})
    assert build(cwd=project, env={}).extensions["permissions"].save is None
    assert build(cwd=home, env={}).extensions["permissions"].save is None


def test_malformed_rules_are_named(project: Path) -> None:
    settings = load(project, flags={"permissions": {"allow": ["Bash(ls"]}})
    agent = build(settings, cwd=project, env={})
    assert any("Bash(ls" in line for line in startup_warnings(settings, agent))


def test_found_extensions_say_where_they_came_from(project: Path) -> None:
    agent = build(cwd=project, env={})
    assert agent.found[0] == Found("permissions", "crow", names=("permissions",))


def test_a_name_that_no_extension_has_is_told_with_the_nearest(project: Path, home: Path) -> None:
    (home / ".crow").mkdir(exist_ok=True)
    table = {"extensions": {"disable": ["mpc"], "nosuch": {"a": 1}, "stuck": {}}}
    (home / ".crow" / "settings.json").write_text(json.dumps(table))
    settings = load(project)
    told = [
        line
        for line in startup_warnings(settings, build(settings, cwd=project))
        if "there is no" in line
    ]
    assert all(line.startswith(f"{home}/.crow/settings.json: ") for line in told)
    assert [line.split(": ", 1)[1] for line in told] == [
        "there is no extension 'mpc'; did you mean 'mcp'?",
        "there is no extension 'nosuch' (crow ext list)",
    ]
