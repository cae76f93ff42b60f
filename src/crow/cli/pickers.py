"""The pickers of the terminal: for stored sessions, open ones, and the points of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crow.cli.line_client import counted
from crow.cli.session_lookup import store_with
from crow.cli.sessions import age
from crow.core.messages import CONTEXT_OPEN
from crow.ports.stores import OverviewStore, SessionOverview, SessionPoint
from crow.project.home import from_home
from crow.terminal.picker import Picker, Row, pick
from crow.terminal.roster import MARKS, about

if TYPE_CHECKING:
    from crow.core.store import Store
    from crow.terminal.tab import Tab

MOST = 100
"""Sessions in the list; a search looks through all."""
MIDDLE = " · "


async def choose_session(store: Store, cwd: str, tab: Tab) -> str | None:
    """The id of the session that the person chooses; None where they choose none."""
    look = store_with(store, OverviewStore).overview
    here = {each.transcript.session_id: "open here" for each in tab.window.tabs}
    here[tab.transcript.session_id] = "you are in it"

    async def rows(text: str, wants_all: bool) -> Sequence[Row]:
        told = await look(text, cwd=None if wants_all else cwd, limit=MOST)
        found = sorted(told, key=lambda each: each.session.cwd != cwd)
        return [session_row(each, cwd, here) for each in found if each.turns]

    told = "Sessions of this directory, the last used first"
    more = "every directory"
    return await choose(tab, told, rows, more=more)


def session_row(each: SessionOverview, cwd: str, here: Mapping[str, str]) -> Row:
    """A session in the list; ``here`` says of those of this window how they are open."""
    info = each.session
    used = each.used_by and info.id not in here
    elsewhere = from_home(info.cwd) if info.cwd != cwd else ""
    parts = [
        here.get(info.id, "in use elsewhere" if used else ""),
        age(info.updated),
        branch_in(each.state),
        counted(each.turns, "turn"),
        "" if each.cost is None else f"${each.cost:.2f}",
        "archived" if info.archived else "",
        elsewhere,
        each.snippet,
    ]
    in_use = f"in use by {each.used_by}: close it there, or crow sessions fork {info.id[:8]}"
    title = info.title or each.prompt
    return Row(info.id, title, MIDDLE.join(filter(None, parts)), in_use if used else "")


def branch_in(state: Mapping[str, str]) -> str:
    """The branch that the model of a session was told of last; empty where it is not known."""
    try:
        told: Any = json.loads(state.get("system_prompt", "{}"))
        return str(told.get("told_branch") or told.get("branch") or "")
    except (ValueError, AttributeError):
        return ""


async def choose_tab(tab: Tab) -> Tab | None:
    """The open session that the person goes to; None where they choose none."""
    tabs = tab.window.tabs

    async def rows(text: str, wants_all: bool) -> Sequence[Row]:
        del wants_all
        every = [tab_row(number, each) for number, each in enumerate(tabs, 1)]
        words = text.casefold().split()
        return [row for row in every if all(word in row.text.casefold() for word in words)]

    return await choose(tab, "Open sessions", rows, at=tabs.index(tab))


def tab_row(number: int, tab: Tab) -> Row:
    """An open session in the list: what goes on in it stands below."""
    asked = tab.questions.asked
    waits = "" if asked is None or tab.is_front else asked.head
    here = "you are in it" if tab.is_front else ""
    parts = filter(None, (here, about(tab), waits))
    return Row(tab, f"{number}{MARKS[tab.state]} {tab.name}", MIDDLE.join(parts))


async def choose_point(points: Sequence[SessionPoint], head: str, tab: Tab) -> SessionPoint | None:
    """The point of a conversation that the person chooses; None where they choose none.

    The last one of the session that they are in is highlighted at first.
    """
    every = [point_row(point) for point in points]
    at = max((n for n, point in enumerate(points) if point.is_here), default=0)

    async def rows(text: str, wants_all: bool) -> Sequence[Row]:
        del wants_all
        words = text.casefold().split()
        return [row for row in every if all(word in row.text.casefold() for word in words)]

    return await choose(tab, head, rows, at=at)


def point_row(point: SessionPoint) -> Row:
    """A point in the list: one line, to the right by as many steps as forks lead there."""
    mark = "> " if point.kind == "prompt" else "  "
    text = point.text.partition(CONTEXT_OPEN)[0].strip() or "(no words)"
    return Row(point, text, before="│ " * point.depth + mark)


async def choose(tab: Tab, head: str, rows: Any, **how: Any) -> Any:
    """What the person chooses from a list."""
    picker = Picker(head, rows, tab.window.palette, tab.look, **how)
    return await pick(tab.questions, picker)
