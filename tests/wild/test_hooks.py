"""Entries of public hook collections do in Crow what their authors say."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.wild.conftest import LIMIT, Place, clone_of
from tests.wild.entries import ENTRIES, Entry, Run

from crow.testing.endpoint import Endpoint, Received, Response, respond

pytestmark = [pytest.mark.slow, pytest.mark.timeout(8 * LIMIT)]


class Events(Endpoint):
    """A server that takes whatever is sent to it."""

    def _steps(self, received: Received) -> Response:
        self.requests.append(received)
        return respond(200, {})

    @property
    def told(self) -> str:
        """What has arrived."""
        bodies = [each.body for each in self.requests]
        names = [f"{each.get('hook_event_type')}{'+chat' * ('chat' in each)}" for each in bodies]
        return "\n".join([" ".join(names), *(json.dumps(each) for each in bodies)])


@pytest.fixture
async def events() -> AsyncIterator[Events]:
    async with Events() as events:
        yield events


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
async def test_an_entry_does_what_its_author_says(
    entry: Entry, place: Place, events: Events
) -> None:
    clone = clone_of(entry.repository)
    for program in entry.needs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    await place.prepare(entry, clone)
    for run in entry.runs:
        await check(place, run, f"{events.url}/events")
    for name, text in entry.leaves.items():
        assert text in await left(place, name, events), name
    for name in entry.lacks:
        assert not place.at(name).exists(), name


async def check(place: Place, run: Run, url: str) -> None:
    """Prompt, and look at what the model and the person were told."""
    before = len(place.endpoint.requests)
    ended = await place.run(run, EVENTS=url)
    told = f"{ended.out}\n{ended.err}"
    assert ended.status == run.status, told
    bodies = [each.body for each in place.endpoint.requests[before:]]
    sent = "\n".join(json.dumps(each, ensure_ascii=False) for each in bodies)
    last = bodies[-1]["messages"][1:]
    for text in run.sees:
        assert json.dumps(text, ensure_ascii=False)[1:-1] in sent, (text, last, told)
    for text in run.misses:
        assert json.dumps(text, ensure_ascii=False)[1:-1] not in sent, (text, last, told)
    for text in run.told:
        assert text in told


async def left(place: Place, name: str, events: Events) -> str:
    """What is in a file, in all files of a folder, in a database or in git, or has arrived."""
    match name.split():
        case ["events"]:
            return events.told
        case ["git", *words]:
            return await git(place.project, *words)
        case ["sqlite", path]:
            with sqlite3.connect(place.at(path)) as database:
                return "\n".join(database.iterdump())
        case _:
            path = place.at(name)
            files = [*path.rglob("*")] if path.is_dir() else [path]
            return "\n".join(each.read_text() for each in files if each.is_file())


async def git(folder: Path, *words: str) -> str:
    """What git says."""
    pipe: Any = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("git", *words, cwd=folder, stdout=pipe)
    out, _ = await process.communicate()
    return out.decode()
