"""Truncation: cut for the model, whole on disk, whatever the tool and whatever the text."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crow import tool
from crow.core.messages import Content
from crow.core.tools import ToolResult
from crow.extensions import TruncationHook
from crow.extensions.truncation import clipped, shortened
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf
from crow.tools.text import boundary


def speaking(content: Content, data: Any = None) -> Any:
    @tool(name="mcp__server__Say")
    def say() -> ToolResult:
        """Say something long."""
        return ToolResult(content, data=data)

    return say


class Cut:
    """Runs one call of a tool and keeps what the model was told."""

    def __init__(self, agent_of: AgentOf, directory: Path) -> None:
        self.agent_of = agent_of
        self.directory = directory

    async def __call__(self, content: Content, limit: int = 1000, hooks: Any = ()) -> Any:
        hook = TruncationHook(limit, directory=self.directory)
        agent = self.agent_of(
            call("mcp__server__Say"), "Done.", hooks=[*hooks, hook], tools=[speaking(content)]
        )
        await agent.run("Go")
        assert isinstance(agent.llm, ScriptedModel)
        return agent.llm.asked[1]["messages"][-1].get("content")


@pytest.fixture
def cut(agent_of: AgentOf, tmp_path: Path) -> Cut:
    return Cut(agent_of, tmp_path / "kept")


def kept(told: str) -> Path:
    found = re.search(r"all of it is in (\S+)]", told)
    assert found is not None, told
    return Path(found[1])


async def test_a_text_that_fits_is_left_alone(cut: Cut):
    assert await cut("x" * 1000) == "x" * 1000
    assert not cut.directory.exists()


async def test_head_and_tail_stay_and_the_whole_is_on_disk(cut: Cut):
    text = "first\n" + "x" * 5000 + "\nlast"
    told = await cut(text)
    assert told.startswith("first\n")
    assert told.endswith("\nlast")
    assert len(told) < 1000 + 250
    assert f"[{len(text)} characters; the middle is left out, all of it is in " in told
    assert kept(told).read_text() == text
    assert kept(told).name.startswith("mcp__server__Say-")
    assert stat.S_IMODE(kept(told).stat().st_mode) == 0o600


async def test_it_is_cut_between_lines_where_lines_are_short(cut: Cut):
    lines = [f"line {number}" for number in range(2000)]
    told = await cut("\n".join(lines))
    head, tail = re.split(r"\n\[.*]\n", told)
    assert head.split("\n") == lines[: len(head.split("\n"))]
    assert tail.split("\n") == lines[-len(tail.split("\n")) :]


async def test_hooks_still_see_the_structured_output(agent_of: AgentOf, tmp_path: Path):
    seen: list[Any] = []

    def after_turn(results: Any) -> None:
        seen.extend(call.result.data for call in results)

    agent = agent_of(
        call("mcp__server__Say"),
        "Done.",
        hooks=[TruncationHook(10, directory=tmp_path), after_turn],
        tools=[speaking("x" * 100, data={"stdout": "x" * 100})],
    )
    await agent.run("Go")
    assert seen == [{"stdout": "x" * 100}]


async def test_what_other_hooks_make_of_a_result_is_cut_as_well(cut: Cut):
    def after_tool(result: ToolResult) -> ToolResult:
        return ToolResult(result.text * 1000)

    assert len(await cut("short", hooks=[after_tool])) < 1000 + 250


async def test_pictures_stay_and_texts_share_the_room(cut: Cut):
    picture: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    told = await cut(
        [{"type": "text", "text": "short"}, picture, {"type": "text", "text": "x" * 5000}]
    )
    assert told[:2] == [{"type": "text", "text": "short"}, picture]
    assert kept(told[2]["text"]).read_text() == "short" + "x" * 5000


async def test_a_text_with_half_a_character_is_kept_as_it_is(cut: Cut):
    text = "x" * 900 + "\ud83d" + "y" * 900
    assert kept(await cut(text)).read_bytes().decode("utf-8", "surrogatepass") == text


def test_a_line_ends_with_both_of_its_characters():
    assert boundary("a\r\nb", 2) == 1
    assert boundary("a\r\nb", 2, forward=True) == 3


async def test_a_disk_that_takes_nothing_costs_the_file_alone(cut: Cut):
    cut.directory.write_text("a file where the folder should be")
    told = await cut("x" * 5000)
    assert re.search(r"left out, and could not be kept: \w", told)
    assert len(told) < 1300


async def test_without_a_directory_it_is_in_the_users_cache(agent_of: AgentOf, home: Path):
    agent = agent_of(
        call("mcp__server__Say"), "Done.", hooks=[TruncationHook()], tools=[speaking("x" * 50_000)]
    )
    reply = await agent.run("Go")
    told = str(reply.session.messages[2].get("content"))
    assert kept(told).is_relative_to(home / ".cache" / "crow" / "outputs" / reply.session.id)


CLUSTERS = ["e\u0301", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "\r\n", "\ud83d\ude00", "नी", "x"]


@given(st.lists(st.sampled_from(CLUSTERS), min_size=60, max_size=200), st.integers(8, 60))
def test_no_grapheme_is_split(clusters: list[str], limit: int):
    head, tail = clipped("".join(clusters), limit, "[note]").split("[note]\n")
    head = head.removesuffix("\n") if not head.endswith("\r\n") else head
    starts = ["".join(clusters[:n]) for n in range(len(clusters))]
    ends = ["".join(clusters[n:]) for n in range(len(clusters) + 1)]
    assert head in starts
    assert tail in ends


@given(st.text(alphabet=st.characters(exclude_categories=[])), st.integers(0, 400))
@example("a" + "\u0301" * 300, 100)
@example("🇩" * 301, 100)
def test_a_cut_is_near_where_it_was_wanted(text: str, index: int):
    index = min(index, len(text))
    assert index - 64 <= boundary(text, index) <= index
    assert index <= boundary(text, index, forward=True) <= index + 64


@given(st.lists(st.text(max_size=50), max_size=5), st.integers(0, 100))
def test_several_texts_keep_to_the_limit_together(texts: list[str], limit: int):
    content: Any = [{"type": "text", "text": text} for text in texts]
    parts: Any = shortened(content, limit, "")
    breaks = 2 * len(texts)
    assert sum(len(part["text"]) for part in parts) <= limit + breaks
    if sum(map(len, texts)) <= limit:
        assert parts == content
