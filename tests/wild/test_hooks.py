"""Entries of public hook collections do in Crow what their authors say."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.wild.conftest import LIMIT, Ended, Place, clone_of
from tests.wild.entries import ENTRIES, Entry, Run

from crow.testing.endpoint import Endpoint, respond

pytestmark = [pytest.mark.slow, pytest.mark.timeout(8 * LIMIT)]


class Events(Endpoint):
    """A server that takes events."""

    def _steps(self, received: Any) -> Any:
        self.requests.append(received)
        return respond(200, {})


@pytest.fixture
async def place(home: Path) -> AsyncIterator[Place]:
    """A home in which Claude Code has been, with a project."""
    (home / ".claude").mkdir()
    (home / "project" / ".git").mkdir(parents=True)
    async with Endpoint() as endpoint:
        yield Place(home, endpoint)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
async def test_an_entry_does_what_its_author_says(entry: Entry, place: Place) -> None:
    clone = clone_of(entry.repository)
    for program in entry.needs:
        if shutil.which(program) is None and program != "uv":
            pytest.skip(f"needs {program}")
    if any("git init" in command for command in entry.first):
        (place.project / ".git").rmdir()
    await place.prepare(entry, clone)
    async with Events() as events:
        for run in entry.runs:
            before = len(place.endpoint.requests)
            env = {**run.env, "EVENTS": f"{events.url}/events"}
            ended = await place.run(Run(**{**fields(run), "env": env}))
            sent = [each.raw.decode() for each in place.endpoint.requests[before:]]
            check(run, ended, [json.dumps(json.loads(each), ensure_ascii=False) for each in sent])
        for name, text in entry.leaves.items():
            assert text in await left(place, name, events), name
    for name in entry.lacks:
        assert not place.at(name).exists(), name


def check(run: Run, ended: Ended, texts: list[str]) -> None:
    """Hold what a run did against what is expected of it; ``texts`` are the model's requests."""
    told = f"{ended.out}\n{ended.err}"
    assert ended.status == run.status, told
    for text in run.sees:
        written = json.dumps(text, ensure_ascii=False)[1:-1]
        assert any(written in each for each in texts), (
            f"the model misses {text!r}",
            results(texts),
        )
    for text in run.misses:
        assert not any(text in each for each in texts), results(texts)
    for text in run.told:
        assert text in told


def fields(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in run.__dataclass_fields__}


def results(texts: list[str]) -> list[str]:
    """What the last request holds behind the system prompt."""
    messages = json.loads(texts[-1])["messages"] if texts else []
    return [json.dumps(each, ensure_ascii=False)[:1500] for each in messages[1:]]


async def left(place: Place, name: str, events: Events) -> str:
    """What is in a file, in all files of a folder, in git, or has arrived."""
    match name.split():
        case ["events"]:
            return told(events)
        case ["git", *words]:
            command = ["git", *(words or ["status", "--short"])]
            return await asyncio.to_thread(
                subprocess.check_output, command, cwd=place.project, text=True
            )
        case ["sqlite", path]:
            with sqlite3.connect(place.at(path)) as database:
                return "\n".join(database.iterdump())
        case _:
            path = place.at(name)
            files = [*path.rglob("*")] if path.is_dir() else [path]
            return "\n".join(each.read_text() for each in files if each.is_file())


def told(events: Events) -> str:
    """The events that have arrived, in their order."""
    bodies = [each.body for each in events.requests]
    names = [f"{each['hook_event_type']}{'+chat' if 'chat' in each else ''}" for each in bodies]
    return f"{' '.join(names)} model={bodies[-1]['model_name']}"
