"""A model by purpose: settings say which one writes summaries, judges, or does what an extension asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Person, write

from crow import Request, build
from crow.messages import user
from crow.testing import Endpoint
from crow.testing.endpoint import answer


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with Endpoint() as endpoint:
        yield endpoint


class Titles:
    """An extension that has a title made, by the model for titles."""

    async def after_run(self, ctx: Any) -> None:
        wish = Request([user("A title, please.")], model=ctx.model_for("title"))
        ctx.session.title = (await ctx.complete(wish)).text


def settled(home: Path, endpoint: Endpoint, **purposes: str) -> Path:
    mine = {"base_url": endpoint.url}
    table = {"model": "mine/big", "providers": {"mine": mine}, "purposes": purposes}
    return write(home / ".crow/settings.json", table)


def models(endpoint: Endpoint) -> list[str]:
    return [each.body["model"] for each in endpoint.requests]


async def test_an_extension_asks_the_model_that_the_settings_name_for_its_purpose(
    endpoint: Endpoint, home: Path, tmp_path: Path
) -> None:
    settled(home, endpoint, title="mine/small")
    endpoint.play(answer("Done."), answer("A fine title"))
    async with build(cwd=tmp_path, hooks=[Titles()]) as agent:
        reply = await agent.run("Go.", cwd=tmp_path)
    assert models(endpoint) == ["big", "small"]
    assert reply.session.title == "A fine title"


async def test_without_one_it_is_the_session_s(
    endpoint: Endpoint, home: Path, tmp_path: Path
) -> None:
    settled(home, endpoint)
    endpoint.play(answer("Done."), answer("One"), answer("Done."), answer("Two"))
    async with build(cwd=tmp_path, hooks=[Titles()]) as agent:
        session = await agent.new_session(tmp_path)
        await agent.run("Go.", session=session)
        assert await agent.configure(session, model="mine/other") is None
        await agent.run("Go on.", session=session)
    assert models(endpoint) == ["big", "big", "other", "other"]


async def test_summaries_are_written_by_the_model_for_summaries(
    endpoint: Endpoint, home: Path, tmp_path: Path
) -> None:
    settled(home, endpoint, summary="mine/small")
    endpoint.play(answer("One."), answer("Two."), answer("A summary."))
    async with build(cwd=tmp_path) as agent:
        session = await agent.new_session(tmp_path)
        for prompt in ("First.", "Second.", "/compact"):
            await agent.run(prompt, session=session)
    assert models(endpoint)[-1] == "small"


async def test_another_model_in_the_settings_counts_at_once(
    endpoint: Endpoint, home: Path, tmp_path: Path
) -> None:
    settled(home, endpoint, title="mine/small")
    endpoint.play(*[answer("Done."), answer("A title")] * 2)
    async with build(cwd=tmp_path, hooks=[Titles()]) as agent:
        session = await agent.new_session(tmp_path, client=Person())
        await agent.run("Go.", session=session)
        settled(home, endpoint, title="mine/tiny")
        await agent.run("Go on.", session=session)
    assert models(endpoint) == ["big", "small", "big", "tiny"]


async def test_a_hook_of_claude_code_s_is_judged_by_the_model_that_judges(
    endpoint: Endpoint, home: Path, tmp_path: Path
) -> None:
    path = settled(home, endpoint, judge="mine/small")
    hook = {"type": "prompt", "prompt": "Is this fine? $ARGUMENTS"}
    write(path.with_name("settings.local.json"), {})
    write(home / ".claude/settings.json", {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    endpoint.play(answer('{"ok": true}'), answer("Done."))
    async with build(cwd=tmp_path) as agent:
        await agent.run("Go.", cwd=tmp_path)
    assert models(endpoint) == ["small", "big"]
