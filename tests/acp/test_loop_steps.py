"""No step of the event loop takes longer than one pass over what it is about.

Steps are measured in time of their own thread, and beside a pass, so that a loaded machine
changes nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from crow.testing import Endpoint, FakeEditor
from crow.testing.endpoint import answer

CROW = str(Path(sys.executable).with_name("crow"))
WATCH = """
import asyncio, json, time
from pathlib import Path

longest, prompts = 0.0, []

async def watch():
    global longest
    while True:
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)

def before_run(ctx):
    prompts.append(ctx.prompt)

async def on_session_start(ctx):
    if not prompts:
        ctx.session.spawn(watch())

def after_run(ctx):
    global longest
    longest = 0.0 if len(prompts) == 1 else longest  # what is done once only does not count

def one_pass():
    began = time.thread_time()
    json.dumps(prompts, ensure_ascii=False).encode()
    return time.thread_time() - began

def on_session_end(ctx):
    if Path(ctx.session.cwd, "steps.json").exists():
        return
    known, one = longest, max(one_pass() for _ in range(3))
    Path(ctx.session.cwd, "steps.json").write_text(json.dumps([known, one]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False], ids=["stored", "not stored"])
async def test_a_prompt_of_megabytes_is_gone_over_a_few_times_and_not_in_one_step(
    tmp_path: Path, store: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many short lines: whoever splits them all for a title takes ten times as long."""
    (tmp_path / "watch.py").write_text(WATCH)
    options = [] if store else ["--no-session-persistence"]
    options += ["--extension", str(tmp_path / "watch.py")]
    editor = FakeEditor()
    async with Endpoint() as endpoint:
        endpoint.play(*[answer("Read.")] * 3)
        monkeypatch.setenv("CROW_BASE_URL", endpoint.url)
        async with editor.spawned(CROW, "acp", "--model", "m-1", *options):
            await editor.prompt(await editor.new_session(tmp_path), "first")
            session = await editor.new_session(tmp_path)
            for said in ("a\n" * 4_000_000, "last"):  # behind what follows the first one
                await editor.prompt(session, said)
            await editor.wire.request("session/close", {"sessionId": session})
    longest, one_pass = json.loads((tmp_path / "steps.json").read_text())
    assert longest < 0.8 * one_pass, (longest, one_pass)
