"""Killed between any two steps of keeping or bringing back: nothing is lost, and it goes on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.rewind.test_nothing_is_lost import begin, contents, seen

from crow import Session
from crow.extensions import RewindHook

DYING = Path(__file__).with_name("dying.py")
NEVER = 10**9
SAMPLES = 2
ALL = 60
KILLED = -9


async def die(folder: Path, part: str, step: int) -> tuple[int, list[str]]:
    """Run the session until that step; its exit status and what it said."""
    (folder / "work").mkdir()
    begin(folder / "work")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(DYING), str(folder / "work"), str(folder / "kept"), part, str(step)),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode().split()


COUNTS: dict[str, int] = {}


SURE = 0.98
"""The part of the steps that each run takes: threads wait for one another more or less often."""


async def step_at(part: str, share: float, folder: Path) -> int:
    """A step by how much of the work is done before it."""
    if part not in COUNTS:
        folder.mkdir()
        status, said = await die(folder, part, NEVER)
        assert status == 0
        COUNTS[part] = int(said[-1])
    return 1 + int(share * SURE * (COUNTS[part] - 1))


def whole(folder: Path) -> dict[str, tuple[Any, ...]]:
    """What is there, but for what was written beside a file when the end came."""
    return {n: e for n, e in seen(folder).items() if ".crow-" not in n and e != ("folder",)}


async def back(folder: Path, session: Session, since: float) -> tuple[RewindHook, Any, Any]:
    keeper = RewindHook(directory=folder / "kept")
    plan = await keeper.plan_rewind(session, since)
    return keeper, plan, await keeper.carry_out_rewind(session, plan)


def shares(count: int) -> list[float]:
    return [(n + 0.5) / count for n in range(count)]


@pytest.mark.parametrize(
    "share", [*shares(SAMPLES), *(pytest.param(s, marks=pytest.mark.slow) for s in shares(ALL))]
)
async def test_a_rewind_that_was_killed_is_gone_on_with_and_taken_back(
    share: float, tmp_path: Path
) -> None:
    step = await step_at("rewind", share, tmp_path / "counted")
    status, said = await die(tmp_path, "rewind", step)
    assert (status, said[-1]) == (KILLED, "worked")
    work, session = tmp_path / "work", Session(id=said[0])
    (tmp_path / "first").mkdir()
    begin(tmp_path / "first")
    half = whole(work)
    keeper, plan, outcome = await back(tmp_path, session, 0.0)
    assert not outcome.failed
    assert not plan.foreign
    assert whole(work) == whole(tmp_path / "first")
    await keeper.carry_out_rewind(session, await keeper.plan_rewind(session, outcome.since))
    assert whole(work) == half


@pytest.mark.parametrize(
    "share", [*shares(SAMPLES), *(pytest.param(s, marks=pytest.mark.slow) for s in shares(ALL))]
)
async def test_a_session_that_was_killed_at_work_loses_nothing_when_it_goes_back(
    share: float, tmp_path: Path
) -> None:
    step = await step_at("work", share, tmp_path / "counted")
    status, said = await die(tmp_path, "work", step)
    assert status == KILLED
    work, session = tmp_path / "work", Session(id=said[0])
    (tmp_path / "first").mkdir()
    begin(tmp_path / "first")
    first, half = whole(tmp_path / "first"), whole(work)
    keeper, plan, outcome = await back(tmp_path, session, 0.0)
    assert not outcome.failed
    assert contents(half) & contents(first) <= contents(whole(work))
    changed = {n for n in half.keys() | first.keys() if half.get(n) != first.get(n)}
    left = {str(Path(each.path).relative_to(work)) for each in plan.steps if each.action == "leave"}
    missed = {n for n in changed - left if whole(work).get(n) != first.get(n)}
    assert not missed or plan.notes, "what cannot be known is said"
    await keeper.carry_out_rewind(session, await keeper.plan_rewind(session, outcome.since))
    assert whole(work) == half
