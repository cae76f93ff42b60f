"""``crow ext check``: each thing that can be wrong is found, with its line and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Crow

EXAMPLES = Path(__file__).parents[2] / "examples"
CLASS = "class Guard:\n"
WRONG = {
    "a syntax error": ("def before_tool(:\n", 1, "SyntaxError: invalid syntax", ""),
    "an import": (
        "import no_such_module\n",
        1,
        "ModuleNotFoundError: No module named 'no_such_module'",
        "",
    ),
    "nothing": ("x = 1\n", 0, "it holds no extension", ""),
    "a name": (
        f"{CLASS}    def before_tol(self, ctx): ...\n    def after_tool(self, ctx): ...\n",
        2,
        "before_tol hangs nowhere: there is no such event",
        "did you mean before_tool?",
    ),
    "a mark": (
        "from crow import hook\n@hook('befor_tool')\ndef mine(ctx): ...\n",
        2,
        "there is no event 'befor_tool'",
        "did you mean before_tool?",
    ),
    "a Flask style that hangs nothing": (
        (
            f"{CLASS}    def __init__(self, agent=None):\n        if agent is not None:\n"
            "            self.init_agent(agent)\n    def init_agent(self, agent):\n"
            "        self.agent = agent\n    def before_run(self): ...\n"
        ),
        5,
        "Guard(agent) hangs nothing",
        "let it call agent.use(self)",
    ),
    "a kind": (
        (
            "from crow import tool\n@tool(kind='reed')\ndef f() -> str:\n    '''Do it.'''\n"
            "    return ''\n"
        ),
        2,
        "TypeError: tool f: there is no kind 'reed'; did you mean 'read'?",
        "",
    ),
    "a parameter": (
        "def before_tool(ctx, nonsense): ...\n",
        1,
        "before_tool has no 'nonsense'; it has ",
        "",
    ),
    "an answer": (
        "\ndef before_tool(ctx):\n    return 5\n",
        2,
        "TypeError: answered 5, which is no verdict",
        "",
    ),
    "an error": (
        "def after_tool(ctx):\n    raise ValueError('not today')\n",
        2,
        "failed at after_tool: ValueError: not today",
        "",
    ),
    "a call that blocks": (
        "from time import sleep as nap\nasync def after_tool(ctx):\n    nap(0.001)\n",
        3,
        "time.sleep in the async after_tool keeps everybody waiting",
        "use await asyncio.sleep(...)",
    ),
    "one that blocks unseen": (
        "import time\nasync def after_run(ctx):\n    (lambda: time.sleep(0.3))()\n",
        2,
        "blocked everything for 0.",
        "",
    ),
    "instructions that change": (
        (
            "import time\ndef init_agent(agent):\n    from crow import PromptSection\n"
            "    agent.add_section(PromptSection('now', f'It is {time.time()}'))\n"
        ),
        4,
        "two sessions have different instructions: 'It is ",
        "return it from before_run",
    ),
    "a tool that comes late": (
        (
            "from crow import tool\n@tool\ndef late() -> str:\n    '''Come late.'''\n    return ''\n"
            "def after_run(ctx):\n    ctx.agent.add_tool(late, replace=True)\n"
            "def init_agent(agent): ...\n"
        ),
        7,
        "the tools change in a session",
        "add them in init_agent",
    ),
    "a helper that is taken for an extension": (
        (
            "class Meter:\n    def __init__(self, owner): ...\n    def after_run(self): ...\n"
            "class Guard:\n    def before_run(self): ...\n"
        ),
        1,
        "needs the option 'owner' of Meter; a helper of a file has a name with an underscore",
        "",
    ),
    "an option": (
        (
            f"{CLASS}    def __init__(self, most: int = 'ten') -> None: ...\n"
            "    def before_run(self, ctx): ...\n"
        ),
        2,
        "'guard.most' must be a whole number",
        "let the default be what its type says",
    ),
    "a task": (
        (
            "import asyncio\nasync def on_session_start(ctx):\n"
            "    asyncio.create_task(asyncio.sleep(99), name='mine')\n"
        ),
        3,
        "it leaves a task behind: mine",
        "undo in lifespan",
    ),
    "a thread": (
        (
            "import threading, time\ndef on_session_start(ctx):\n"
            "    threading.Thread(target=time.sleep, args=(600,), name='mine').start()\n"
        ),
        3,
        "it leaves a thread behind: mine",
        "have it end, and join it, in lifespan",
    ),
    "a file": (
        "kept = []\ndef on_session_start(ctx):\n    kept.append(open(__file__))\n",
        3,
        "it leaves an open file behind: /",
        "undo in lifespan",
    ),
    "a variable": (
        "import os\ndef on_session_start(ctx):\n    os.environ['MINE'] = '1'\n",
        3,
        "it leaves an environment variable behind: MINE",
        "undo in lifespan",
    ),
    "an option of a dataclass": (
        (
            "from dataclasses import dataclass\n@dataclass\nclass Guard:\n    least: int = 1\n"
            "    most: int = 'ten'\n    def before_run(self, ctx): ...\n"
        ),
        5,
        "'guard.most' must be a whole number",
        "let the default be what its type says",
    ),
    "a process": (
        (
            "import subprocess\ndef on_session_start(ctx):\n"
            "    subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        ),
        3,
        "it leaves a process behind: sleep 600 (process ",
        "end it, and wait for it, in lifespan",
    ),
    "a process of a shell that is gone": (
        "import os\ndef on_session_start(ctx):\n    os.system('sleep 600 &')\n",
        3,
        "it leaves a process behind: sleep 600 (process ",
        "end it, and wait for it, in lifespan",
    ),
    "a message that changes": (
        (
            "import time\ndef before_llm_request(ctx):\n    text = str(time.time())\n"
            "    ctx.messages = [{'role': 'user', 'content': text}, *ctx.messages]\n"
        ),
        2,
        "a request does not begin as the one before",
        "return it from before_run",
    ),
    "an answer that nobody hears": (
        "def after_run(ctx):\n    return 'well done'\n",
        1,
        "after_run answers 'well done' at after_run, and nobody hears it",
        "return nothing there",
    ),
    "a private import": (
        "from crow.core.verdicts import Deny\ndef before_tool(ctx): ...\n",
        1,
        "crow.core.verdicts.Deny is no public name of Crow",
        "write from crow import Deny",
    ),
    "a private module": (
        "import crow.core.loop\ndef before_tool(ctx): ...\n",
        1,
        "crow.core.loop is no public module of Crow",
        "docs/reference.md lists what there is",
    ),
    "a name that is nearly public": (
        "def before_tool(ctx):\n    from crow import Deni\n",
        2,
        "crow.Deni is no public name of Crow",
        "did you mean Deny?",
    ),
    "a state that cannot be stored": (
        "def before_tool(ctx):\n    ctx.state['seen'] = {'a'}\n",
        2,
        "ctx.state['seen'] is {'a'}, which is no JSON",
        "else use ctx.cache",
    ),
    "a start that fails": (
        (
            f"{CLASS}    async def lifespan(self, agent):\n        raise ValueError('no disk')\n"
            "        yield\n"
        ),
        3,
        "failed to start: ValueError('no disk')",
        "",
    ),
    "instructions that fail": (
        (
            "from crow import PromptSection\ndef init_agent(agent):\n"
            "    agent.add_section(PromptSection('mine', text))\ndef text(session):\n"
            "    return session.titel\n"
        ),
        5,
        "the prompt section mine failed: AttributeError",
        "",
    ),
    "an await that is missing": (
        "async def before_tool(ctx):\n    return None if ctx.ui.confirm('Well?') else 'no'\n",
        2,
        "UI.confirm is called and never awaited",
        "write await in front of the call",
    ),
    "a beginning that is async": (
        "async def init_agent(agent): ...\n",
        1,
        "init_agent is not run by a call: make it a plain def",
        "",
    ),
    "a name of Claude Code's": (
        f"{CLASS}    def pre_tool_use(self, ctx): ...\n    def after_tool(self, ctx): ...\n",
        2,
        "pre_tool_use hangs nowhere: there is no such event",
        "did you mean PreToolUse?",
    ),
    "a tool without a docstring": (
        "from crow import tool\n@tool\ndef look(at: str) -> str:\n    return at\n",
        2,
        "a model is told nothing of the tool look but its name",
        "write a docstring",
    ),
    "a docstring of another tool": (
        (
            "from crow import tool\n@tool\ndef look(at: str) -> str:\n"
            '    """Look.\n\n    Args:\n        to: there\n    """\n    return at\n'
        ),
        2,
        "the docstring of the tool look describes 'to', which is no parameter",
        "call it as the function does",
    ),
    "the end": ("import os\nos._exit(3)\n", 0, "it ended the process that played it", "never exit"),
}


FAST = (
    "a name",
    "a start that fails",
    "an await that is missing",
    "instructions that change",
    "a thread",
    "a process",
    "a private import",
)  # "an error" is what a person reads, below
WHAT = [pytest.param(what, marks=() if what in FAST else pytest.mark.slow) for what in WRONG]


@pytest.mark.variants(1)
@pytest.mark.parametrize("what", WHAT)
async def test_what_is_wrong_is_found(crow: Crow, what: str) -> None:
    text, line, said, do = WRONG[what]
    path = crow.cwd / "guard.py"
    path.write_text(text, "utf-8")
    done = await crow("ext", "check", "guard.py", "--json")
    assert done.status == 1
    found = [json.loads(each) for each in done.out.splitlines()]
    (one, *_) = [each for each in found if said in each["what"]] or [found]
    assert isinstance(one, dict), found
    assert do in one["do"]
    assert (one["path"], one["line"]) == ((str(path), line) if line else ("", 0))


@pytest.mark.slow
async def test_each_thing_is_said_once(crow: Crow) -> None:
    """Though it happens at each prompt, in both plays, and pyright sees it as well."""
    (crow.cwd / "slip.py").write_text("from crow import Deni\ndef before_tool(ctx): ...\n")
    done = await crow("ext", "check", "slip.py")
    assert len(done.out.splitlines()) == 1, done.out
    text = "import threading, no_such_module, time\n"
    (crow.cwd / "broken.py").write_text(text, "utf-8")
    done = await crow("ext", "check", "broken.py")
    assert len(done.out.splitlines()) == 1, done.out
    text = (
        "import threading, time\ndef after_tool(ctx):\n    ctx.state['at'] = {1}\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n    raise ValueError('no')\n"
    )
    (crow.cwd / "guard.py").write_text(text, "utf-8")
    done = await crow("ext", "check", "guard.py", "--json")
    found = [json.loads(each) for each in done.out.splitlines()]
    assert [each["line"] for each in found if "behind" in each["what"]] == [4]
    assert [each["line"] for each in found if "JSON" in each["what"]] == [3]
    assert len({(each["line"], each["what"]) for each in found}) == len(found)


@pytest.mark.parametrize(
    "name", ["stopwatch.py", "ask_before_removing.py", "diagnostics.py", "crow-weather"]
)
@pytest.mark.slow
async def test_the_examples_are_clean(crow: Crow, name: str) -> None:
    done = await crow("ext", "check", str(EXAMPLES / name))
    assert (done.status, done.out) == (0, "")
    assert done.err == "nothing is wrong with it\n"


@pytest.mark.parametrize("kept", ["class _Meter", "__all__ = ['Guard']\nclass Meter"])
@pytest.mark.slow
async def test_a_helper_that_says_so_is_not_used(crow: Crow, kept: str) -> None:
    method = "    def __init__(self, owner): ...\n    def after_run(self): ...\n"
    guard = "class Guard:\n    def before_run(self): ...\n"
    (crow.cwd / "guard.py").write_text(f"{kept}:\n{method}{guard}", "utf-8")
    done = await crow("ext", "check", "guard.py")
    assert (done.status, done.out) == (0, "")


@pytest.mark.slow
async def test_what_crow_writes_is_clean(crow: Crow) -> None:
    await crow("ext", "new", "my-guard")
    done = await crow("ext", "check", "crow-my-guard")
    assert (done.status, done.out) == (0, "")


@pytest.mark.slow
async def test_a_file_of_the_project_has_a_name(crow: Crow) -> None:
    await crow("ext", "new", "my-guard", "--file")
    done = await crow("ext", "check", "my-guard")
    assert (done.status, done.out, done.err) == (0, "", "nothing is wrong with it\n")


@pytest.mark.slow
async def test_a_person_reads_the_place_first(crow: Crow) -> None:
    (crow.cwd / "guard.py").write_text(WRONG["an error"][0], "utf-8")
    done = await crow("ext", "check", "guard.py")
    place = re.escape(str(crow.cwd / "guard.py"))
    assert re.fullmatch(rf"{place}:2: hook .*ValueError: not today\n", done.out), done.out
    assert done.err == "1 finding\n"
    asked = await crow("ext", "check")
    assert asked.status == 2
    assert "crow ext check my_guard.py" in asked.err
    other = await crow("ext", "chek", "guard.py")
    assert "did you mean 'check'?" in other.err


GUARD = """from crow import Agent, tool


class Guard:
    def init_agent(self, agent: Agent) -> None:
        agent.add_tool(guarded)


@tool
def guarded() -> str:
    '''Is guarded.'''
    return ''
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["check", "test"])
@pytest.mark.parametrize("spec", ["crow-guard", "guard"])
async def test_one_that_is_installed_is_looked_at_once(crow: Crow, what: str, spec: str) -> None:
    """By its folder, as after ``pip install -e .``, and by its name."""
    folder = crow.cwd / "crow-guard"
    (folder / "guard-1.0.dist-info").mkdir(parents=True)
    entry = '[project.entry-points."crow.extensions"]\nguard = "crow_guard:Guard"\n'
    (folder / "pyproject.toml").write_text(f'[project]\nname = "crow-guard"\n{entry}', "utf-8")
    (folder / "crow_guard.py").write_text(GUARD, "utf-8")
    (folder / "guard-1.0.dist-info" / "entry_points.txt").write_text(
        "[crow.extensions]\nguard = crow_guard:Guard\n", "utf-8"
    )
    crow.env["PYTHONPATH"] = str(folder)
    done = await crow("ext", what, spec, *(["--plays", "2"] if what == "test" else []))
    assert (done.status, done.out) == (0, "")
