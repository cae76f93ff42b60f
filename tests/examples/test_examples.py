"""Every example does what it says."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crow import Agent
from crow.core.ports.client import NullClient, PermissionRequest
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class User(NullClient):
    """Answers every question alike."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.reasons: list[str] = []

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.reasons.append(request.reason)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "stays"), [("allow_once", False), ("reject_once", True), (None, True)]
)
async def test_ask_before_removing(
    agent_of: AgentOf, tmp_path: Path, answer: str | None, stays: bool
):
    (tmp_path / "a.txt").write_text("a")
    user = User(answer)
    script = [call("Bash", command="ls"), call("Bash", command="true;rm a.txt"), "Done."]
    async with agent_of(*script, hooks=[load("ask_before_removing")]) as agent:
        await agent.run("Remove it", cwd=tmp_path, client=user)
    assert user.reasons == ["this removes files: true;rm a.txt"]
    assert (tmp_path / "a.txt").exists() == stays


def git(folder: Path, *arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=folder, text=True)


async def test_stage_what_was_written(agent_of: AgentOf, tmp_path: Path):
    git(tmp_path, "init", "-q")
    script = [
        call("Write", file_path="a.txt", content="a"),
        call("Bash", command="touch b"),
        "Done.",
    ]
    async with agent_of(*script, hooks=[load("stage_what_was_written").StageHook]) as agent:
        reply = await agent.run("Write it", cwd=tmp_path)
    assert git(tmp_path, "diff", "--cached", "--name-only") == "a.txt\n"
    assert [record.error for record in reply.session.trace] == [None, None]


async def test_stage_says_what_git_says(agent_of: AgentOf, tmp_path: Path):
    script = [call("Write", file_path="a.txt", content="a"), "Done."]
    agent = agent_of(*script, hooks=[load("stage_what_was_written").StageHook])
    async with agent:
        await agent.run("Write it", cwd=tmp_path)
    assert isinstance(agent.llm, ScriptedModel)
    told = str(agent.llm.asked[1]["messages"][-1].get("content"))
    assert "could not be staged: fatal: not a git repository" in told


@pytest.mark.parametrize("how", ["by hand", "use", "list"])
async def test_stopwatch(agent_of: AgentOf, how: str):
    stopwatch = load("stopwatch").Stopwatch
    script = [call("Bash", command="true"), "Done."]
    async with agent_of(*script, hooks=[stopwatch()] if how == "list" else []) as agent:
        if how == "by hand":
            stopwatch(agent)
        elif how == "use":
            agent.use(stopwatch)
        reply = await agent.run("Go")
        times = await agent.run("/times", session=reply.session)
        agent.remove("stopwatch")
        assert list(agent.hooks) == []
    assert times.text.startswith("Bash: 0.")


def test_drive():
    lines = python(str(EXAMPLES / "drive.py")).splitlines()
    assert lines[0].startswith("[HOOK] before_tool         Read ")
    assert "README.md" in lines[0]
    assert lines[-1] == "end_turn 8 messages"


def install(package: Path, site: Path) -> None:
    """Put a package where its own ``pyproject.toml`` says, as an installer does."""
    project: dict[str, Any] = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    shutil.copytree(package / "src", site)
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    lines = [
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


WEATHER = """
import asyncio, json
from crow import Agent
from crow.testing import ScriptedModel, call

async def main():
    model = ScriptedModel(call("weather", place="Porto", days=2), "Rain.")
    async with Agent(llm=model, tools=[]) as agent:
        found = agent.discover({"weather": {"place": "Lisbon"}})
        await agent.run("What about the weather?")
        print(json.dumps([[each.error for each in found], model.asked[1]["messages"]]))

asyncio.run(main())
"""


def test_crow_weather_is_found_when_it_is_installed(tmp_path: Path):
    install(EXAMPLES / "crow-weather", tmp_path / "site")
    errors, messages = json.loads(python("-c", WEATHER, PYTHONPATH=str(tmp_path / "site")))
    assert errors == [None]
    assert "Now: Lisbon, in 0 days: 19 degrees" in messages[1]["content"]
    assert messages[-1]["content"] == "Porto, in 2 days: 19 degrees, light rain"


BY_HAND = """
import asyncio
from crow import build
from crow.testing import ScriptedModel
from crow_weather import WeatherSkill

async def main(*hooks):
    model = ScriptedModel("Rain.")
    async with build(model=model, hooks=hooks) as agent:
        await agent.run("What about the weather?")
        print(sum(str(each["content"]).count("Now: Porto") for each in model.asked[0]["messages"]))

asyncio.run(main(WeatherSkill("Porto")))
"""


def test_what_is_given_by_hand_is_not_used_once_more_because_it_is_installed(
    tmp_path: Path, home: Path
):
    install(EXAMPLES / "crow-weather", tmp_path / "site")
    assert python("-c", BY_HAND, PYTHONPATH=str(tmp_path / "site")) == "1\n"


@pytest.mark.slow
def test_the_options_of_crow_weather_are_checked_and_shown(tmp_path: Path, home: Path):
    install(EXAMPLES / "crow-weather", tmp_path / "site")
    (home / ".crow").mkdir()
    path = home / ".crow" / "settings.json"
    path.write_text('{"extensions": {"weather": {"place": "Lisbon", "days": 9}}}')
    command = [sys.executable, "-m", "crow", "config", "--json"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    ended = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    shown = [json.loads(line) for line in ended.stdout.splitlines()]
    rows = {(each["name"], each["state"]): each for each in shown if "weather" in each["name"]}
    assert rows["extensions.weather.place", "set"]["value"] == "Lisbon"
    assert rows["extensions.weather.days", "default"]["value"] == 0
    assert rows["extensions.weather.days", "left out"]["value"] == 9
    wrong = f"{path}: 'extensions.weather.days' must be at most 7, not 9"
    assert (ended.returncode, ended.stderr) == (1, f"crow: {wrong}\n")


POLICY = """
from agent_hooks import Verdict

class NoShouting:
    def intercept(self, context):
        said = context.get("input", {}).get("content", "")
        return Verdict.deny(reason="do not shout") if said.isupper() else Verdict.allow()
"""


@pytest.mark.parametrize("evaluate_only", [False, True])
@pytest.mark.slow
def test_crow_agent_hooks_takes_its_policies_from_the_settings(
    tmp_path: Path, home: Path, evaluate_only: bool
):
    install(EXAMPLES / "crow-agent-hooks", tmp_path / "site")
    (tmp_path / "site" / "my_policies.py").write_text(POLICY)
    options = {"policies": ["my_policies:NoShouting"], "evaluate_only": evaluate_only}
    (home / ".crow").mkdir()
    settings = json.dumps({"extensions": {"agent_hooks": options}})
    (home / ".crow" / "settings.json").write_text(settings)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    for prompt, is_refused in (("HELLO", not evaluate_only), ("Hello", False)):
        command = [sys.executable, "-m", "crow", "run", prompt]
        ended = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert ("do not shout" in ended.stdout + ended.stderr) == is_refused, ended


async def test_a_module_that_imports_stop_has_no_hook_of_that_name(agent_of: AgentOf):
    module = ModuleType("polite")
    exec("from crow import Stop\ndef before_run(ctx): return 'Be polite.'", module.__dict__)
    agent = agent_of("Hello.", hooks=[module], tools=[])
    assert [str(hook) for hook in agent.hooks] == ["polite.before_run"]
    assert (await agent.run("Hi")).stop_reason == "end_turn"


def test_no_example_is_forgotten_here():
    tested = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for path in EXAMPLES.iterdir():
        if not path.name.startswith(("_", ".")):
            assert path.stem in tested, path.name


def test_an_example_is_read_at_a_glance():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < 60, path.name


@pytest.mark.slow
def test_examples_need_nothing_but_crow():
    assert Agent(tools=[]).extensions == {}
    paths = [
        str(path)
        for path in EXAMPLES.rglob("*.py")
        if path.name != "drive.py"
        and not {"crow-agent-hooks", "crow-harbor", "crow-temporal"} & {*path.parts}
    ]
    python("-c", "import runpy, sys; [runpy.run_path(path) for path in sys.argv[1:]]", *paths)
