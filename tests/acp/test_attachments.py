"""A prompt with attachments is shown again as its client sent it, whatever the model read of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow import Agent
from crow.acp.content import blocks_of, from_blocks, written
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel

LONG = "A sentence that is said again and again. " * 50
PICTURE = base64.b64encode(bytes(range(256)) * 8).decode()
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "Compare "},
    {"type": "resource_link", "uri": "file:///nowhere/a.txt", "name": "a.txt", "size": 12},
    {"type": "text", "text": " with "},
    {
        "type": "resource",
        "resource": {"uri": "file:///nowhere/b.txt", "mimeType": "text/plain", "text": LONG},
    },
    {"type": "image", "mimeType": "image/png", "data": PICTURE, "uri": "file:///nowhere/c.png"},
    {"type": "audio", "mimeType": "audio/mpeg", "data": PICTURE},
    {
        "type": "resource",
        "resource": {"uri": "zed:///d.pdf", "mimeType": "application/pdf", "blob": PICTURE},
    },
    {"type": "text", "text": "and say which."},
]


def stored(tmp_path: Path, model: ScriptedModel, *hooks: Any) -> Agent:
    return Agent(llm=model, hooks=[PersistenceHook(tmp_path / "crow.db"), *hooks])


async def said_again(tmp_path: Path, session: str) -> list[Any]:
    """What a client is shown of a session's prompts when it loads it."""
    later = FakeEditor()
    async with later.connected(stored(tmp_path, ScriptedModel())):
        await later.connection.load_session(str(tmp_path), session)
        return [update["content"] for update in later.updates("user_message_chunk")]


@pytest.mark.rule("the whole history after a reload")
async def test_every_kind_of_attachment_comes_back_as_it_was_sent(tmp_path: Path) -> None:
    first, model = FakeEditor(), ScriptedModel("That one.", "Bye.")
    async with first.connected(stored(tmp_path, model)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, *BLOCKS)
        await first.prompt(session, "Thanks")
    assert await said_again(tmp_path, session) == [*BLOCKS, {"type": "text", "text": "Thanks"}]


async def test_a_fork_shows_them_too(tmp_path: Path) -> None:
    first = FakeEditor()
    async with first.connected(stored(tmp_path, ScriptedModel("That one."))):
        session = await first.new_session(tmp_path)
        await first.prompt(session, *BLOCKS)
        place = {"cwd": str(tmp_path), "sessionId": session}
        forked = await first.wire.request("session/fork", place)
    assert await said_again(tmp_path, forked["result"]["sessionId"]) == BLOCKS


async def test_what_is_said_to_a_run_that_is_on_comes_back_too(tmp_path: Path) -> None:
    first = FakeEditor()

    async def after_llm_response(ctx: Any) -> None:
        if len(ctx.session.messages) == 1:
            await first.wire.request("_session/steering", {"sessionId": session, "prompt": BLOCKS})

    agent = stored(tmp_path, ScriptedModel("One.", "Two."), after_llm_response)
    async with first.connected(agent):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Go")
    assert await said_again(tmp_path, session) == [{"type": "text", "text": "Go"}, *BLOCKS]


async def test_no_model_and_no_request_hook_gets_what_is_kept_for_clients(tmp_path: Path) -> None:
    seen: list[Any] = []

    def before_llm_request(ctx: Any) -> None:
        seen.extend(ctx.messages)

    first, model = FakeEditor(), ScriptedModel("That one.", "Bye.")
    async with first.connected(stored(tmp_path, model, before_llm_request)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, *BLOCKS)
        await first.prompt(session, "Thanks")
    keys = {key for message in [*seen, *model.asked[1]["messages"]] for key in message}
    assert keys == {"role", "content"}


async def test_a_prompt_that_a_hook_has_changed_is_kept_as_it_was_changed(tmp_path: Path) -> None:
    def before_run(ctx: Any) -> None:
        ctx.prompt[0]["text"] = ctx.prompt[0]["text"].replace("hunter2", "***")

    first, model = FakeEditor(), ScriptedModel("Fine.")
    async with first.connected(stored(tmp_path, model, before_run)):
        session = await first.new_session(tmp_path)
        link = {"type": "resource_link", "uri": "https://example.org/hunter2", "name": "x"}
        await first.prompt(session, "My word is hunter2", link, BLOCKS[4])
    assert "hunter2" not in json.dumps(await said_again(tmp_path, session))
    assert b"hunter2" not in (tmp_path / "crow.db").read_bytes()


async def test_attachments_are_not_stored_twice(tmp_path: Path) -> None:
    big = base64.b64encode(bytes(100_000)).decode()
    picture = {"type": "image", "mimeType": "image/png", "data": big, "uri": "file:///a.png"}
    text = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "word " * 20_000}}
    first, model = FakeEditor(), ScriptedModel("Fine.")
    async with first.connected(stored(tmp_path, model)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Look", picture, text)
    hook = PersistenceHook(tmp_path / "crow.db")
    assert len(await hook.store.export(session)) < 1.1 * (len(big) + 100_000)
    assert await said_again(tmp_path, session) == [{"type": "text", "text": "Look"}, picture, text]


TEXTS = st.text(max_size=200)
BASE64 = st.binary(max_size=200).map(lambda data: base64.b64encode(data).decode())
RESOURCES = st.one_of(
    st.fixed_dictionaries({"uri": TEXTS, "text": TEXTS}),
    st.fixed_dictionaries(
        {"uri": TEXTS, "blob": BASE64}, optional={"mimeType": st.just("image/x")}
    ),
)
ANY_BLOCK = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}),
    st.fixed_dictionaries(
        {"type": st.just("image"), "mimeType": st.sampled_from(["image/png", "x"]), "data": BASE64}
    ),
    st.fixed_dictionaries(
        {"type": st.just("audio"), "mimeType": st.just("audio/mpeg"), "data": BASE64}
    ),
    st.fixed_dictionaries({"type": st.just("resource_link"), "uri": TEXTS, "name": TEXTS}),
    st.fixed_dictionaries({"type": st.just("resource"), "resource": RESOURCES}),
)


@given(st.lists(ANY_BLOCK, min_size=1, max_size=6), st.sets(st.sampled_from(["image", "audio"])))
def test_any_prompt_comes_back_from_what_is_kept(blocks: Any, taken: set[str]) -> None:
    content = from_blocks(blocks, frozenset(taken))
    kept = json.loads(json.dumps(written(blocks, content)))
    assert blocks_of(json.loads(json.dumps(content)), kept) == blocks
