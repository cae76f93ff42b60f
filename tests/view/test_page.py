"""The page in a real browser: what it shows, that hostile text does nothing, and that it is quick."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.view.conftest import dom, session_of

from crow.view.document import document
from crow.view.export import page_of, without_secrets
from crow.view.markdown import dressed
from crow.view.server import Server

pytestmark = pytest.mark.slow


async def test_a_file_shows_the_session_and_its_hostile_text_does_nothing(
    lines: str, tmp_path: Path
) -> None:
    text, hidden = without_secrets(lines, ["nobody's business"])
    file = tmp_path / "page.html"
    file.write_text(page_of(document(text), hidden), "utf-8")
    seen = await asyncio.to_thread(dom, file.as_uri(), tmp_path)
    assert "<title>Shout, please" in seen
    assert "evil</title>" not in seen
    main = seen.partition("<main")[2].partition("</main>")[0]
    assert not re.search(r"<(script|img|svg)\b|href=\"javascript", main)
    assert "<strong>Done</strong>" in main
    assert main.count('class="call"') == 2
    assert "taken out: a secret that Crow knows" in seen
    assert "nobody's business" not in file.read_text()

    call = next(e for e in document(text)["entries"] if e["kind"] == "call")
    opened = await asyncio.to_thread(dom, f"{file.as_uri()}#x/conversation/{call['seq']}", tmp_path)
    detail = opened.partition('<aside id="detail"')[2].partition("</aside>")[0]
    assert "Who decided" in detail
    assert '<ins>+   "word": "hello"</ins>' in detail
    assert '<del>-   "word": "hi"</del>' in detail
    chain = detail.partition("Hooks (")[2]
    assert '<ins>+   "word": "hello"</ins>' in chain  # what the hook itself has changed
    seen_by = [each.partition("</details>")[0] for each in chain.split("ran on")[1:]]
    assert "hi" in seen_by[0]
    assert "hello" in seen_by[1]
    for view, word in [
        ("timeline", "<rect"),
        ("hooks", "judge"),
        ("usage", "<table"),
        ("files", "No call"),
    ]:
        shown = await asyncio.to_thread(dom, f"{file.as_uri()}#x/{view}", tmp_path)
        assert word in shown.partition("<main")[2].partition("</main>")[0], view


async def test_the_server_shows_the_list_and_a_session(lines: str, tmp_path: Path) -> None:
    async def sessions(query: Mapping[str, str]) -> Any:
        row = {"id": "s1", "title": "The <b>one</b>", "updated": "2026-01-01T00:00:00Z", "cwd": "/"}
        return [{**row, "prompt": "p", "turns": 1, "cost": None, "used_by": "x", "snippet": ""}]

    async def session(query: Mapping[str, str]) -> Any:
        return dressed(document(lines)) if "known" not in query else None

    loop = asyncio.get_running_loop()
    with Server({"sessions": sessions, "session": session}, loop) as server:
        seen = await asyncio.to_thread(dom, server.url, tmp_path)
        assert "The &lt;b&gt;one&lt;/b&gt;" in seen
        assert "at work" in seen
        seen = await asyncio.to_thread(dom, f"{server.url}#s1", tmp_path)
        assert "<strong>Done</strong>" in seen
        assert "All sessions" in seen


async def test_a_request_is_shown_as_it_was_sent_and_where_the_cache_was_lost(
    broken: str, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    made = document(broken)
    file.write_text(page_of(made, Counter()), "utf-8")
    seen = await asyncio.to_thread(dom, f"{file.as_uri()}#x/usage", tmp_path)
    main = seen.partition("<main")[2].partition("</main>")[0]
    assert "request 2: the hook tail changed message" in main
    rows = [entry for entry in made["entries"] if entry["kind"] == "request"]
    seen = await asyncio.to_thread(dom, f"{file.as_uri()}#x/usage/{rows[1]['seq']}", tmp_path)
    detail = seen.partition('<aside id="detail"')[2].partition("</aside>")[0]
    for told in ("You are Crow.", "It is turn 2.", "reasoning_effort", "Say a word loudly."):
        assert told in detail, told
    assert "It is turn 1." not in detail
    assert "Done." in detail.partition("The reply, in its pieces")[2]
    seen = await asyncio.to_thread(dom, f"{file.as_uri()}#x/usage/{rows[0]['seq']}", tmp_path)
    reply = seen.partition("The reply, in its pieces")[2].partition("</aside>")[0]
    for told in ("says", "On it.", "calls shout", '"word": "hi"'):
        assert told in reply, told


async def test_two_sessions_are_compared(lines: str, broken: str, tmp_path: Path) -> None:
    docs = {"one": lines, "two": broken}

    async def sessions(query: Mapping[str, str]) -> Any:
        row = {"updated": "2026-01-01T00:00:00Z", "cwd": "/", "prompt": "p", "turns": 1}
        rest = {"cost": None, "used_by": "", "snippet": ""}
        return [{"id": name, "title": f"Session {name}", **row, **rest} for name in docs]

    async def session(query: Mapping[str, str]) -> Any:
        return dressed(document(docs[query["id"]])) if "known" not in query else None

    loop = asyncio.get_running_loop()
    with Server({"sessions": sessions, "session": session}, loop) as server:
        seen = await asyncio.to_thread(dom, f"{server.url}#one/compare", tmp_path)
        assert "Session two" in seen.partition("<main")[2]
        for other, told in (("two", "steps differ"), ("one", "Both did the same")):
            seen = await asyncio.to_thread(dom, f"{server.url}#one/compare/{other}", tmp_path)
            assert told in seen.partition("<main")[2].partition("</main>")[0]


async def test_ten_thousand_turns_are_shown_a_part_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "long.html"
    file.write_text(page_of(document(session_of(10_000)), Counter()), "utf-8")
    began = time.monotonic()
    seen = await asyncio.to_thread(dom, file.as_uri(), tmp_path)
    assert time.monotonic() - began < 60
    assert 40 <= seen.count("<article") < 2000
    assert "prompt 0" in seen
