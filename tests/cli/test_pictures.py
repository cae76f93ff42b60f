"""The pictures of the documentation: a dozen screens, each played in a terminal and compared as text.

They are played with the sandbox that people have, and left out where there is none such. ``make
pictures`` writes them anew.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, calls
from tests.cli.forks import Forks
from tests.cli.pictures import keep, picture
from tests.cli.screens import Tmux, needs_tmux
from tests.cli.test_chat import CHOICES, half, slowly

from crow.testing.endpoint import Endpoint, answer, delta, stream

pytestmark = [needs_tmux, pytest.mark.slow]
WIDTH = 84
READY = "gpt-5 · default · sandbox (bubblewrap)"
CONFINED = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")
NOTICE = 0.5
"""Seconds in which a question takes no key."""
QUEUE = '''"""Jobs that wait."""

from collections import deque


class Queue:
    def __init__(self):
        self.jobs = deque()

    def put(self, job):
        self.jobs.append(job)

    def get(self):
        return self.jobs.pop()
'''
MARKDOWN = """## Why the order is wrong

`Queue.get` takes from the *same* end that `put` adds to, so the **last** job comes first:

```python
def get(self):
    return self.jobs.pop()  # popleft() takes the oldest
```

| method      | takes    | order          |
|-------------|----------|----------------|
| `pop()`     | the last | last in, first |
| `popleft()` | the first | as they came  |

1. Use `popleft()`.
2. Add a test with two jobs.
"""
TESTS_FIRST = '''"""No stopping before the tests pass."""

import asyncio

from crow import Continue


class TestsFirst:
    async def on_stop(self, cwd):
        process = await asyncio.create_subprocess_exec("pytest", "-q", cwd=cwd)
        if await process.wait():
            return Continue("The tests fail: mend them.")
'''
EDIT = {
    "file_path": "queue.py",
    "old_string": "return self.jobs.pop()",
    "new_string": "return self.jobs.popleft()",
}


class Studio:
    """A terminal whose screen becomes a picture."""

    def __init__(self, tmux: Tmux, crow: Crow, folder: Path) -> None:
        self.tmux = tmux
        self.crow = crow
        self.folder = folder

    async def open(self, *argv: str, until: str = READY, **env: str) -> None:
        """Start the command."""
        moves = {"CROW_REDUCED_MOTION": "1", "CROW_MODEL": "gpt-5", "CROW_SANDBOX": ""}
        await self.tmux.start(self.crow, *argv, **{**moves, **env})
        if until:
            await self.tmux.until(until)

    async def say(self, text: str, *until: str) -> None:
        """Say something, and wait for what comes."""
        await self.tmux.type(text)
        await self.tmux.keys("Enter")
        await self.tmux.until(*until)

    async def take(self, name: str) -> None:
        """Make the picture, or see that it comes to what is kept: a screen is drawn in several steps."""
        told = {str(self.crow.cwd): "/home/me/jobs", "ended: 0\n": ""}

        def is_kept(screen: str) -> bool:
            return keep(name, picture(name, screen, told, WIDTH))

        try:
            await self.tmux.until_true(is_kept, "-e")
        except AssertionError as unlike:
            raise AssertionError("the picture is old: make pictures") from unlike


@pytest.fixture(scope="module")
def bubblewrap() -> None:
    """Leave the test out where the sandbox is another one than in the pictures."""
    if not shutil.which(CONFINED[0]) or subprocess.run(CONFINED, check=False).returncode:
        pytest.skip("bubblewrap is not installed, or may not do its work here")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name: where it stands on the screen lines are as long everywhere."""
    folder = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def studio(place: Path, forks: Forks, bubblewrap: None) -> AsyncIterator[Studio]:
    """The terminal, in a project with a bug."""
    project = place / "jobs"
    (project / ".git").mkdir(parents=True)
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    (project / "queue.py").write_text(QUEUE, "utf-8")
    (project / "test_queue.py").write_text("from queue import Queue\n", "utf-8")
    tmux = Tmux(place, WIDTH, 34)
    yield Studio(tmux, Crow(project, forks), place)
    await tmux.close()


@pytest.fixture
async def endpoint(studio: Studio) -> AsyncIterator[Endpoint]:
    """A model's endpoint."""
    async with Endpoint() as endpoint:
        studio.crow.use(endpoint)
        yield endpoint


async def test_first_start(studio: Studio) -> None:
    await studio.open(until="sandbox (bubblewrap)", CROW_MODEL="")
    await studio.tmux.until(CHOICES[-1])
    await studio.take("first-start")


async def test_answer(studio: Studio, endpoint: Endpoint) -> None:
    endpoint.play(calls(("Read", {"file_path": "queue.py"})), answer(MARKDOWN))
    await studio.open()
    await studio.say("Why do jobs come in the wrong order?", "Add a test with two jobs")
    await studio.tmux.until(gone="esc stops")
    await studio.take("answer")


async def test_command(studio: Studio, endpoint: Endpoint) -> None:
    tests = "for n in $(seq 12); do echo test_queue.py::test_$n PASSED; done; sleep 60"
    (studio.crow.cwd / "run_tests.sh").write_text(tests, "utf-8")
    command = {"command": "sh run_tests.sh"}
    endpoint.play(calls(("Bash", command), text="Let me run the tests."))
    await studio.open("--allow", "Bash")
    await studio.say("Run the tests", "test_12 PASSED")
    await studio.tmux.type("and then the linter")
    await studio.tmux.keys("Tab")
    await studio.tmux.until("⏸ and then the linter")
    await studio.take("command")


async def test_question(studio: Studio, endpoint: Endpoint) -> None:
    said = calls(("Edit", EDIT), text="Jobs come first in, first out with `popleft`.")
    endpoint.play(calls(("Read", {"file_path": "queue.py"})), said)
    await studio.open()
    await studio.say("Mend it", "w  No, and say what should be different")
    await studio.take("question")


async def test_rule(studio: Studio, endpoint: Endpoint) -> None:
    page = {"url": "https://docs.python.org/3/library/queue.html", "prompt": "What does get do?"}
    endpoint.play(calls(("WebFetch", page)))
    await studio.open()
    await studio.say("What does the library's queue do?", "w  No, and say what should be different")
    await asyncio.sleep(NOTICE)
    await studio.tmux.keys("a")
    await studio.tmux.until("Enter keeps them")
    await studio.take("rule")


async def test_extension(studio: Studio, endpoint: Endpoint) -> None:
    path = studio.crow.cwd / "tests_first.py"
    endpoint.play(
        calls(("Write", {"file_path": str(path), "content": TESTS_FIRST})),
        calls(("LoadExtension", {"file_path": str(path)}), text="It is checked. Have a look:"),
        half("From now on I run the tests before I stop."),  # at its end it would: they are slow
    )
    await studio.open("--allow", "Edit")
    await studio.say(
        "Write an extension: no stopping before the tests pass", "Use it until Crow ends"
    )
    await studio.take("extension")
    await asyncio.sleep(NOTICE)
    await studio.tmux.keys("y")
    await studio.tmux.until("tests_first is in use", "I run the tests", "Writing")
    await studio.take("extension-used")


async def test_plan(studio: Studio, endpoint: Endpoint) -> None:
    steps = {
        "Read how jobs are taken": "completed",
        "Take them in order": "in_progress",
        "Test it with two jobs": "pending",
        "Run all tests": "pending",
    }
    todos = [{"content": content, "status": status} for content, status in steps.items()]
    thought = [delta(reasoning_content="pop() takes from the right end, put() adds there. ")]
    endpoint.play(
        stream(*thought, *calls(("TodoWrite", {"todos": todos}))[1:]),
        calls(("Bash", {"command": "sleep 60"})),
    )
    await studio.open("--allow", "Bash")
    await studio.say("Mend the queue, with a test", "☐ Run all tests", "Running sleep 60")
    await studio.take("plan")


async def test_subagent(studio: Studio, endpoint: Endpoint) -> None:
    task = {"description": "Find who calls get", "prompt": "Who calls Queue.get?"}
    endpoint.play(
        calls(("Agent", task)),
        calls(("Grep", {"pattern": "get"}), ("Read", {"file_path": "queue.py"})),
        half("Nobody but the tests"),
    )
    await studio.open()
    await studio.say("Who would notice?", "│ Read queue.py")
    await studio.take("subagent")


async def test_menu(studio: Studio, endpoint: Endpoint) -> None:
    await studio.open()
    await studio.tmux.type("/")
    await studio.tmux.until("/cd")
    await studio.take("menu")


async def test_sessions(studio: Studio, endpoint: Endpoint) -> None:
    said = ["Why do jobs come in the wrong order?", "Add a command line", "Write the README"]
    endpoint.play(*(answer("It is done.") for _ in said))
    for each in said:
        await studio.crow("run", each, CROW_MODEL="gpt-5")
    await studio.open("--resume", until=said[0])
    await studio.take("sessions")


async def test_roster(studio: Studio, endpoint: Endpoint) -> None:
    endpoint.play(
        calls(("Bash", {"command": "sleep 60"}), text="I run the tests of the queue."),
        calls(("Read", {"file_path": "queue.py"})),
        calls(("Edit", EDIT)),
        answer("Nobody but the tests calls it."),
    )
    await studio.open("--allow", "Bash")
    await studio.say("Run the tests", "Running sleep 60")
    await studio.say("/new Mend the queue", "w  No, and say what should be different")
    await asyncio.sleep(NOTICE)
    await studio.tmux.keys("M-1")
    await studio.say("/new Who calls get?", "Nobody but the tests")
    await studio.tmux.until("waits for you", gone="esc stops")
    await studio.take("roster")


async def test_run(studio: Studio, endpoint: Endpoint) -> None:
    endpoint.play(
        calls(("Read", {"file_path": "queue.py"})),
        calls(("Edit", EDIT)),
        calls(("Bash", {"command": "echo 2 passed"})),
        slowly("Jobs come in their order now, and the tests pass."),
    )
    await studio.open(
        "run", "Mend the queue", "--allow", "Edit", "--allow", "Bash", until="ended: 0"
    )
    await studio.take("run")
