"""Sessions of a fleet whose commands run in containers that the workers know how to make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fleet.chaos import Counting
from tests.fleet.conftest import git

from crow.extensions import PersistenceHook
from crow.fleet.agents import builder
from crow.fleet.board import Board, Left
from crow.fleet.containers import read_kinds, sweep
from crow.fleet.job_filter import JobFilter
from crow.fleet.task import FleetError, Task, Workspace
from crow.fleet.worker import Worker
from crow.testing.endpoint import Received, Response

pytestmark = pytest.mark.slow

KINDS = """
[here]  # what enters, enters nothing; what it makes is a file
start = '''bash -c 'echo $$0 >> {log}; touch {log}.$$0' $name'''
exec = '''bash -c 'test -e {log}.$$0 && exec env -C "$$1" "$${{@:2}}"' $name $cwd'''
stop = '''bash -c 'rm -f {log}.$$0' $name'''
list = '''bash -c 'cd {folder}; for each in log.*; do echo $${{each#log.}}; done''''
image = "one"
"""


@pytest.fixture
def kinds(tmp_path: Path) -> Path:
    """A file of one kind."""
    file = tmp_path / "containers.toml"
    file.write_text(KINDS.format(log=tmp_path / "log", folder=tmp_path))
    return file


class Seen(Counting):
    """One that keeps what it was asked last."""

    messages: list[dict[str, Any]]

    def _steps(self, received: Received) -> Response:
        self.messages = received.body.get("messages", [])
        return super()._steps(received)


async def work(address: str, kinds: Path, folder: Path, task: Task) -> list[str]:
    """How the jobs end of a worker of the whole agent."""
    async with Board(address) as board:
        await board.submit("b", [task])
        store, left = PersistenceHook(address, required=True), list[str]()
        worker = Worker(
            board,
            builder(store, None),
            folder,
            until_empty=True,
            kinds=read_kinds(kinds),
            ended=lambda _, each: left.append("lost" if each is None else each.state),
        )
        await worker.run()
        return left


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROW_API_KEY", "k")


async def test_a_tree_is_worked_on_in_a_container_that_ends_with_its_job(
    address: str,
    kinds: Path,
    tmp_path: Path,
    repository: Path,
    model: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Workspace(git=str(repository), push=True, container="here", image="two")
    task = Task("This is session 0, 3 steps.", "k", place, allow=("Bash",), model="m")
    async with Seen() as endpoint:
        monkeypatch.setenv("CROW_BASE_URL", endpoint.url)
        assert await work(address, kinds, tmp_path / "trees", task) == ["done"]
    async with Board(address) as board:
        (row,) = await board.jobs(JobFilter())
    branch = row["outcome"]["branch"]
    assert git(repository, "show", f"{branch}:steps") == "0:0\n0:1\n0:2"
    assert (tmp_path / "log").read_text() == f"crow-{row['id']}\n"
    assert not [*tmp_path.glob("log.*")]
    system = endpoint.messages[0]["content"]
    assert "in a container of the image two" in system


async def test_a_repository_in_a_tree_runs_nothing_outside_of_its_container(
    address: str,
    kinds: Path,
    tmp_path: Path,
    repository: Path,
    model: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Git runs a program that the settings of a nested repository name, as soon as it looks there."""
    ran = tmp_path / "ran"
    (program := tmp_path / "program").write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    evil = (
        "git init -q sub; cd sub; touch f; git add f; git -c user.name=a -c user.email=a@b commit -qm x;"
        f" cd ..; git add sub; git commit -qm x; git -C sub config core.fsmonitor {program};"
        f" echo more > sub/f; rm .git; cp -r sub/.git .git; echo more > own; rm -f {ran}"
    )

    class Writing(Counting):
        def command(self, session: str, step: int) -> str:
            return evil if step == 0 else super().command(session, step)

    place = Workspace(git=str(repository), push=True, container="here")
    task = Task("This is session 0, 2 steps.", "k", place, mode="bypassPermissions", model="m")
    async with Writing() as endpoint:
        monkeypatch.setenv("CROW_BASE_URL", endpoint.url)
        assert await work(address, kinds, tmp_path / "trees", task) == ["done"]
    assert not ran.exists()
    async with Board(address) as board:
        (row,) = await board.jobs(JobFilter())
    assert git(repository, "show", f"{row['outcome']['branch']}:own") == "more"


async def test_a_container_that_cannot_be_had_fails_the_job_at_the_second_time(
    address: str, kinds: Path, tmp_path: Path
) -> None:
    kinds.write_text('[here]\nstart = "sh -c \'echo no room >&2; exit 3\'"\nexec = "false"\n')
    task = Task("Do it", "k", Workspace(container="here"), model="m")
    assert await work(address, kinds, tmp_path / "trees", task) == ["queued", "failed"]
    async with Board(address) as board:
        (row,) = await board.jobs(JobFilter())
    assert row["outcome"]["detail"].endswith("exit code 3: no room")


async def test_a_kind_that_a_worker_does_not_know_is_named(
    address: str, kinds: Path, tmp_path: Path
) -> None:
    task = Task("Do it", "k", Workspace(container="hear"), model="m")
    assert await work(address, kinds, tmp_path / "trees", task) == ["failed"]
    async with Board(address) as board:
        (row,) = await board.jobs(JobFilter())
    assert row["outcome"]["detail"] == "there is no container 'hear' here; there are here"


async def test_what_was_left_is_swept_and_what_runs_is_not(
    address: str, kinds: Path, tmp_path: Path
) -> None:
    async with Board(address) as board:
        await board.submit("b", [Task("over", "k"), Task("runs", "l")])
        over, runs = [await board.claim(each, "w") for each in await board.queue.lease(2)]
        assert over is not None
        assert runs is not None
        await board.leave(over, Left("done"))
        for name in (over.job, runs.job, "of-no-fleet"):
            (tmp_path / f"log.crow-{name}").touch()
        await sweep(read_kinds(kinds), board)
    left = {each.name.removeprefix("log.crow-") for each in tmp_path.glob("log.*")}
    assert left == {runs.job, "of-no-fleet"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("here = 1", "here is no table: write [here] and its commands"),
        ('[here]\nstart = "a"', "the extension container in [here] needs the option 'exec'"),
        (
            '[here]\nstart = "a"\nexec = "b"\nimges = "c"',
            "no option 'imges'; did you mean 'image'?",
        ),
        ("[here", "cannot be read"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_in_a_line(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "kinds.toml"
    file.write_text(text)
    with pytest.raises(FleetError) as caught:
        read_kinds(file)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
