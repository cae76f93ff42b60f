"""Plugins of public marketplaces: had, used, renewed and taken away, and nothing said in vain."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.wild.conftest import ALLOWED, LIMIT, STREAM, Ended, Place, asked, clone_of, response
from tests.wild.entries import Call, Reply
from tests.wild.markets import OFFERS, Offer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(8 * LIMIT)]
PLACES = re.compile(r"\$\{?CLAUDE_PLUGIN_(?:ROOT|DATA)\b")
EVERY = [(market, offer) for market, offers in OFFERS.items() for offer in offers]


@pytest.mark.parametrize(("market", "offer"), EVERY, ids=lambda each: getattr(each, "name", each))
async def test_a_plugin_is_had_used_and_taken_away(market: str, offer: Offer, place: Place) -> None:
    clone = clone_of(market)
    (place.project / ".git").mkdir()
    name = json.loads((clone / ".claude-plugin/marketplace.json").read_text())["name"]
    id_ = f"{offer.name}@{name}"
    ended = await place.crow("plugin", "market", "add", f"file://{clone}")
    assert ended.status == 0, ended.err
    ended = await place.crow("plugin", "add", "--yes", id_)
    if offer.refused:
        assert offer.refused in ended.err
        return
    assert (ended.status, ended.err) == (0, "")
    listed = await place.crow("plugin")
    assert id_ in listed.out
    assert offer.brings in listed.out
    await use(place, offer)
    await place.crow("plugin", "disable", offer.name)
    assert await started(place, offer.name) == (False, "")
    await place.crow("plugin", "enable", offer.name)
    updated = await place.crow("plugin", "update", "--yes", offer.name)
    assert (updated.status, updated.err) == (0, "")
    await place.crow("plugin", "remove", offer.name)
    assert await started(place, offer.name) == (False, "")
    assert "no plugins" in (await place.crow("plugin")).out


async def started(place: Place, name: str) -> tuple[bool, str]:
    """Whether the model hears of a plugin, and what the person does."""
    place.endpoint.play(response("Done."))
    ended = await place.crow("-p", "hello")
    assert (ended.status, ended.out) == (0, "Done.\n")
    return f"{name}:" in place.endpoint.requests[-1].raw.decode(), ended.err


async def use(place: Place, offer: Offer) -> None:
    """Start with a plugin, type all of its commands, have its skills and agents used."""
    brought = json.loads((await place.crow("plugin", "--json")).out)
    has = await begun(place, offer)
    assert {part: len(names) for part, names in has.items()} == {
        part: brought[part] for part in has
    }
    replies: list[Reply] = ["Done." for _ in has["commands"]]
    skills = [Call("Skill", {"skill": name}) for name in has["skills"]]
    tasks = [
        Call("Agent", {"description": "x", "prompt": "gamma delta", "subagent_type": name})
        for name in has["agents"]
    ]
    replies += [skills, "Done."] if skills else []
    replies += [tasks, *["Below." for _ in tasks], "Done."] if tasks else []
    texts = [f"/{name} alpha beta" for name in has["commands"]]
    texts += ["skills"] * bool(skills) + ["agents"] * bool(tasks)
    if not texts:
        return
    before = len(place.endpoint.requests)
    check_said(await prompts(place, replies, *texts), offer)
    asked = [each.body["messages"] for each in place.endpoint.requests[before:]]
    check_texts(asked, [f"/{name}" for name in has["commands"]], len(skills), len(tasks))


def check_texts(
    asked: list[list[dict[str, Any]]], commands: list[str], skills: int, tasks: int
) -> None:
    """Everything has reached the model, its arguments and with its places filled in."""
    told = [[each for each in messages if each["role"] in ("user", "tool")] for messages in asked]
    for name, messages in zip(commands, told, strict=False):
        assert "alpha beta" in str(messages[-1]), (name, str(messages[-1])[:500])
    whole = [str(each["content"]) for each in told[-1]]
    assert not [text for text in whole if PLACES.search(text)]
    if skills:
        assert sum("<skill name=" in text for text in whole) >= skills, whole
    if tasks:
        assert whole[-tasks:] == ["Below."] * tasks, whole[-tasks:]


async def begun(place: Place, offer: Offer) -> dict[str, list[str]]:
    """What of a plugin a new session has, by its names."""
    ended = await prompts(place, ["Done."], "hello")
    check_said(ended, offer)
    first = json.loads(ended.out.splitlines()[0])
    kinds = {"commands": "slash_commands", "skills": "skills", "agents": "agents"}
    mine = f"{offer.name}:"
    return {
        part: [each for each in first[field] if each.startswith(mine)]
        for part, field in kinds.items()
    }


async def prompts(place: Place, replies: list[Reply], *texts: str) -> Ended:
    """Prompt in one process."""
    place.endpoint.play(*map(response, replies))
    return await place.crow(*STREAM, *ALLOWED, feed="".join(map(asked, texts)))


def check_said(ended: Ended, offer: Offer) -> None:
    """Nothing is said that the person can do nothing about."""
    assert ended.status == 0, (ended.out[-2000:], ended.err)
    lines = [line for line in ended.err.splitlines() if not line.startswith("waiting for the MCP")]
    rows = [json.loads(line) for line in ended.out.splitlines()]
    lines += [each["text"] for each in rows if each.get("subtype") == "notice"]
    assert bool(lines) == bool(offer.said), lines
    assert all(offer.said in line for line in lines), lines
