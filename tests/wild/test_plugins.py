"""Plugins of public marketplaces: had, used, renewed and taken away, and nothing said in vain."""

from __future__ import annotations

import json
import re
from pathlib import Path
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
    root = place.home / ".crow/plugins" / offer.name
    skills = [Call("Skill", {"skill": name}) for name in skills_of(root, offer)]
    tasks = [
        Call("Agent", {"description": "x", "prompt": "gamma delta", "subagent_type": name})
        for name in agents_of(root, offer)
    ]
    commands = [name for name in await begun(place, offer) if name not in offer.untyped]
    replies: list[Reply] = ["Done." for _ in commands]
    replies += [skills, "Done."] if skills else []
    replies += [tasks, *["Below." for _ in tasks], "Done."] if tasks else []
    texts = [f"/{name} alpha beta" for name in commands]
    texts += ["skills"] * bool(skills) + ["agents"] * bool(tasks)
    if not texts:
        return
    before = len(place.endpoint.requests)
    check_said(await prompts(place, replies, *texts), offer)
    asked = [each.body["messages"] for each in place.endpoint.requests[before:]]
    check_texts(asked, commands, len(skills), len(tasks))


def skills_of(root: Path, offer: Offer) -> list[str]:
    """The skills that the model may use, by their names."""
    files = sorted(root.glob("skills/*/SKILL.md"))
    kept = [file for file in files if "disable-model-invocation: true" not in file.read_text()]
    return [f"{offer.name}:{file.parent.name}" for file in kept]


def agents_of(root: Path, offer: Offer) -> list[str]:
    """The agents, by their names."""
    texts = [file.read_text() for file in sorted(root.glob("agents/*.md"))]
    found = [re.search(r"^name: *\"?([\w-]+)", text, re.MULTILINE) for text in texts]
    return [f"{offer.name}:{each[1]}" for each in found if each]


def check_texts(
    asked: list[list[dict[str, Any]]], commands: list[str], skills: int, tasks: int
) -> None:
    """Everything has reached the model, its arguments and with its places filled in."""
    told = [[each for each in messages if each["role"] in ("user", "tool")] for messages in asked]
    for name, messages in zip(commands, told, strict=False):
        assert "alpha" in str(messages), (name, str(messages[-1])[:500])
    whole = [str(each["content"]) for each in told[-1]]
    assert not [text for text in whole if PLACES.search(text)]
    if skills:
        assert sum("<skill name=" in text for text in whole) >= skills, whole
    if tasks:
        assert whole[-tasks:] == ["Below."] * tasks, whole[-tasks:]


async def begun(place: Place, offer: Offer) -> list[str]:
    """What can be typed behind a slash of a plugin in a new session."""
    ended = await prompts(place, ["Done."], "hello")
    check_said(ended, offer)
    assert offer.tool in place.endpoint.requests[-1].raw.decode()
    events = map(json.loads, ended.out.splitlines())  # hooks of the session's beginning come first
    first = next(each for each in events if each.get("subtype") == "init")
    return [name for name in first["slash_commands"] if name.startswith(f"{offer.name}:")]


async def prompts(place: Place, replies: list[Reply], *texts: str) -> Ended:
    """Prompt in one process."""
    place.endpoint.play(*map(response, replies))
    return await place.crow(*STREAM, *ALLOWED, feed="".join(map(asked, texts)))


def check_said(ended: Ended, offer: Offer) -> None:
    """Nothing is said that the person can do nothing about."""
    assert ended.status == 0, (ended.out[-2000:], ended.err)
    lines = ended.err.splitlines()
    rows = [json.loads(line) for line in ended.out.splitlines()]
    lines += [each["text"] for each in rows if each.get("subtype") == "notice"]
    lines = [line for line in lines if not line.startswith("waiting for ")]
    lines = [line for line in lines if not line.startswith("UserPromptExpansion hook: ")]
    assert bool(lines) == bool(offer.said), lines
    assert all(offer.said in line for line in lines), lines
