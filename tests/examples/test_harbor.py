"""crow-harbor: Harbor installs Crow in a task's environment, runs it, and reads what it did."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("harbor", reason="Harbor needs Python 3.12; it is no part of the project")

from harbor.models.trajectories import Trajectory

from crow.testing.endpoint import USAGE, Endpoint, Response, delta, stream

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
TEST = """#!/bin/bash
[ "$(cat /app/hello.txt)" = hello ]; echo $((1 - $?)) > /logs/verifier/reward.txt
"""
KEY = "sk-of-this-test-alone"


def task_of(folder: Path) -> Path:
    """A task that is done when a file has a word."""
    for name in ("environment", "tests"):
        (folder / name).mkdir(parents=True)
    (folder / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (folder / "task.toml").write_text('version = "1.0"\n[verifier]\n[agent]\n[environment]\n')
    (folder / "instruction.md").write_text("Write hello into hello.txt\n")
    (folder / "tests" / "test.sh").write_text(TEST)
    return folder


def bash(command: str) -> Response:
    function = {"name": "Bash", "arguments": json.dumps({"command": command})}
    call = {"index": 0, "id": f"call_{len(command)}", "function": function}
    return stream(delta(tool_calls=[call]), delta("tool_calls"), USAGE)


def said(text: str) -> Response:
    return stream(text, delta("stop"), USAGE)


async def test_a_task_is_done_and_its_trajectory_has_the_verdicts(tmp_path: Path) -> None:
    if shutil.which("bwrap") is None or shutil.which("uv") is None:
        pytest.skip("needs bwrap and uv")
    build = ["uv", "build", "--wheel", "-q", "-o", str(tmp_path), str(ROOT)]
    await asyncio.to_thread(subprocess.run, build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    (settings := tmp_path / "settings.json").write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    places = [str(ROOT / "examples" / "crow-harbor" / "src"), str(ROOT)]
    script = [bash("rm -rf /"), bash("echo hello > hello.txt"), said("Done.")]
    async with Endpoint() as endpoint:
        endpoint.play(*script)
        env = {
            **os.environ,
            "HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(places),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": endpoint.url,
            "LITELLM_LOCAL_MODEL_COST_MAP": "true",
        }
        harbor = str(Path(sys.executable).with_name("harbor"))
        options = {
            "-p": task_of(tmp_path / "task"),
            "--agent": "crow_harbor:CrowAgent",
            "--env": "tests.examples.harbor_bubblewrap:BubblewrapEnvironment",
            "--model": "openai/scripted",
            "--jobs-dir": tmp_path / "jobs",
        }
        words = [str(word) for pair in options.items() for word in pair]
        words += ["--ak", f"package={wheel}", "--ak", f"settings={settings}", "--yes"]
        done = await run(harbor, "run", *words, env=env)
    (trial,) = (path.parent for path in tmp_path.glob("jobs/*/*/verifier"))
    assert (trial / "verifier" / "reward.txt").read_text() == "1\n", done
    told = (trial / "agent" / "trajectory.json").read_text()
    trajectory = Trajectory.model_validate_json(told)
    denied, made = [call for step in trajectory.steps for call in step.tool_calls or ()]
    assert denied.extra["crow"]["outcome"] == "denied"
    rules = [hook.get("answer", {}).get("rule") for hook in denied.extra["crow"]["hooks"]]
    assert "Bash(rm:*)" in rules
    assert made.extra["crow"]["outcome"] == "ok"
    result = json.loads((trial / "result.json").read_text())["agent_result"]
    assert result["n_input_tokens"] > 0
    assert result["n_output_tokens"] > 0
    assert KEY not in told


async def run(*argv: str, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(*argv, env=env, stdin=-3, stdout=-1, stderr=-2)
    out, _ = await process.communicate()
    return out.decode()
