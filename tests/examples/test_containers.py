"""examples/containers.toml: its kinds are right, and kubectl does what is said there."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.extensions.cluster import running

from crow import Agent
from crow.extensions.container import Container, listed
from crow.fleet.containers import read_kinds
from crow.testing import ScriptedModel, call
from crow.tools import builtin

FILE = Path(__file__).parents[2] / "examples" / "containers.toml"


def test_docker_gets_a_tree_to_write_and_a_repository_to_read() -> None:
    docker = Container(read_kinds(FILE)["docker"], "crow-1", "/trees/1", shown=["/mirrors/a"])
    start = " ".join(docker.words("start"))
    assert "-v /trees/1:/trees/1:rw -v /mirrors/a:/mirrors/a:ro -w /trees/1 python:3.13" in start
    entered = docker.inside(["true"], "/trees/1/src", {"CI": "1"})
    assert " ".join(entered) == "docker exec -i -w /trees/1/src -e CI=1 crow-1 true"


@pytest.mark.slow
async def test_a_session_works_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GREETING", "hello you")
    (folder := tmp_path / "work").mkdir()
    kind = read_kinds(FILE)["pod"]
    start = kind.start.replace("apply", "apply --validate=false")  # there is no schema here
    hook = replace(kind, start=start, environment=["GREETING"])
    endless = "echo $$ > pid; trap 'echo asked > asked; exit' TERM; while :; do sleep 0.01; done"
    script = [
        call("Bash", command='pwd; echo "$GREETING"; exit 3'),
        call("Bash", command=endless, timeout=1500),
        "ok",
    ]
    agent = Agent(ScriptedModel(*script), hooks=[hook], tools=builtin())
    with running(tmp_path / "config") as cluster:
        async with agent:
            session = await agent.new_session(str(folder))
            await agent.prompt(session, "Go")
            said = [str(m["content"]) for m in session.messages if m["role"] == "tool"]
            assert await listed(hook) == [f"crow-{session.id}"]
        assert cluster.asked == [f"create crow-{session.id}", "list", f"delete crow-{session.id}"]
    assert said[0].splitlines()[:3] == ["Exit code 3", str(folder), "hello you"]
    assert "timed out" in said[1].lower()
    while not (folder / "asked").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
