"""The pytest plugin: what its fixtures give, what they refuse, and what it costs everybody else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"
OUTSIDE = """
import asyncio
from pathlib import Path
from crow.testing import call

class Extension:
    async def before_tool(self, call):
        return "not here"

def test_an_extension(agent_of):
    agent = agent_of(call("Bash", command="ls"), "Done.", hooks=[Extension()])
    reply = asyncio.run(agent.run("Go"))
    assert reply.text == "Done."
    assert agent.llm.asked[1]["messages"][-1]["content"] == "not here"
    assert "Bash" in agent.tools

def test_tools_can_be_left_out(agent_of):
    assert list(agent_of(tools=[]).tools) == []

def test_a_model_by_itself(scripted):
    assert scripted("never said", leftover="allow").asked == []

def before_run(ctx):
    return "Be polite."

def test_the_whole_agent(build_agent, tmp_path):
    script = call("Bash", command="touch made"), call("Bash", command="touch allowed"), "Done."
    options = {"cwd": tmp_path, "allow": ["Bash(touch allowed)"], "hooks": [before_run]}
    agent = build_agent(*script, **options)

    async def run():
        async with agent:
            return await agent.run("Go", cwd=tmp_path)

    contents = [message["content"] for message in asyncio.run(run()).session.messages]
    assert "Be polite." in contents[1]
    assert [path.name for path in tmp_path.iterdir()] == ["allowed"]
    assert contents[-1] == "Done."
    assert agent.store.path == Path.home() / ".crow/crow.db"
    assert not (Path.home() / ".crow/settings.json").exists()

def test_crow(crow):
    crow.use(Extension())
    crow.run("Go", call("Bash", command="touch made"), "Done.")
    crow.denied("Bash", "not here")
    assert crow.cwd != Path.cwd() and not (crow.cwd / "made").exists()

def test_unexpected(crow):
    crow.run("Go", call("Bash", command="touch made"), "Done.")

def test_unasked(crow):
    crow.user.answers("allow_once")
    crow.run("Go", "Done.")

def test_asserted(crow):
    crow.run("Go", "Done.")
    crow.denied("Bash")

def test_left_over(scripted):
    scripted("never said")

def test_overrun(agent_of):
    agent = agent_of(tools=[])

    async def swallow():
        session = await agent.new_session()
        await agent.prompt(session, "Go")
        await agent.close()

    asyncio.run(swallow())
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of a project that has nothing but Crow installed, and of the docs' test."""
    folder = tmp_path_factory.mktemp("project")
    (folder / ".crow").mkdir()
    (folder / ".crow/settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
    (folder / "test_it.py").write_text(OUTSIDE)
    (folder / "test_docs.py").write_text(
        REFERENCE.read_text().split("```python\n")[-1].split("```")[0]
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=short", "-p", "no:cacheprovider"]
    # with a directory of its own it does not tidy up at its end after every earlier run of pytest
    done = subprocess.run(
        [*command, "--basetemp=temporary", "test_it.py", "test_docs.py"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    return done.stdout


@pytest.mark.slow
def test_an_extension_is_tested_with_a_script(told: str):
    assert "PASSED test_it.py::test_an_extension\n" in told
    assert "PASSED test_it.py::test_tools_can_be_left_out\n" in told
    assert "PASSED test_it.py::test_a_model_by_itself\n" in told


@pytest.mark.slow
def test_an_extension_is_tested_with_the_whole_agent_and_nobodys_settings(told: str):
    assert "PASSED test_it.py::test_the_whole_agent\n" in told
    assert "PASSED test_docs.py::test_nobody_pushes_even_where_the_rules_allow_it\n" in told


@pytest.mark.slow
def test_the_whole_agent_is_at_work_and_asked_what_it_did(told: str):
    assert "PASSED test_it.py::test_crow\n" in told


def test_a_question_that_was_not_expected_fails_the_test_and_is_named(told: str):
    assert "FAILED test_it.py::test_unexpected - AssertionError: the scripted user has" in told
    assert "no answer: permission for Bash (touch made): no rule allows touch made" in told
    assert "ERROR test_it.py::test_unasked - AssertionError: the scripted user was" in told


def test_a_failed_assertion_shows_the_line_of_the_test_and_what_happened(told: str):
    shown = (
        told.split(" test_asserted ")[1].split("\n____", maxsplit=1)[0].split("====", maxsplit=1)[0]
    )
    assert 'crow.denied("Bash")\nE   AssertionError: expected that Bash was denied' in shown
    assert "pilot.py" not in shown


def test_lines_that_are_left_over_fail_the_test(told: str):
    assert "ERROR test_it.py::test_left_over - AssertionError: " in told
    assert "1 of its lines" in told
    assert "'never said'" in told


def test_being_asked_past_the_script_fails_the_test_even_if_the_error_was_swallowed(told: str):
    assert "ERROR test_it.py::test_overrun - AssertionError: the scripted model" in told


@pytest.mark.slow
def test_a_face_that_does_not_exist_is_named(tmp_path: Path):
    text = "import pytest\n@pytest.mark.faces('web')\ndef test_it(crow): pass\n"
    (tmp_path / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "there is no face 'web': there are process, acp, pipe" in done.stdout + done.stderr


def test_whoever_does_not_use_it_pays_nothing(tmp_path: Path):
    """The plugin is loaded in every pytest run where Crow is installed."""
    program = (
        "import pytest, sys; before = set(sys.modules)\n"
        "import crow.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path)
    own = ("crow", "crow._lazy", "crow._version", "crow.testing", "crow.testing.plugin")
    assert set(loaded.split()) == {*own}
