"""Hanging and taking away at three heights, at random, against a model in a few lines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties import examples

from crow.core.agent import Agent
from crow.core.hooks.discovery import hook
from crow.core.hooks.run_context import RunContext
from crow.testing import ScriptedModel

NAMES = st.sampled_from(["a", "b", "c"])
HEIGHTS = st.sampled_from(["agent", "one", "two", "child", "sub"])
EVENTS = st.sets(st.sampled_from(["before_run", "after_run"]), min_size=1)
ORDERS = st.integers(-1, 1)


@dataclass(eq=False)
class Hung:
    """What was hung at a height: an extension's hooks or, without a name, one by hand."""

    number: int
    height: str
    name: str
    events: frozenset[str]
    order: int
    stead: int = 0
    """The number of the agent's extension whose name it had when it was used on a session."""

    def rank(self) -> tuple[int, ...]:
        session = self.height in ("one", "two", "sub")
        place = (0, self.stead, self.number) if self.stead else (int(session), self.number)
        return self.order, *place


def merged(outer: list[Hung], inner: list[Hung]) -> list[Hung]:
    """What counts on a session: of the agent's what no extension there has the name of."""
    names = {each.name for each in inner if each.name}
    return sorted([*(e for e in outer if e.name not in names), *inner], key=Hung.rank)


class Hanging(RuleBasedStateMachine):
    """An agent with two sessions, and a sub-agent whose session works for the first of them."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.count = 0
        self.hung: list[Hung] = []
        self.disposers: dict[int, Any] = {}
        self.heard: list[int] = []
        agent = Agent(ScriptedModel(), tools=())
        child = agent.child()
        one = self.wait(agent.new_session())
        two = self.wait(agent.new_session())
        sub = self.wait(child.new_session(parent=one))
        self.hosts: dict[str, Any] = {
            "agent": agent,
            "one": one,
            "two": two,
            "child": child,
            "sub": sub,
        }

    def wait(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def at(self, *heights: str) -> list[Hung]:
        return [each for each in self.hung if each.height in heights]

    @rule(height=HEIGHTS, name=NAMES, events=EVENTS, order=ORDERS)
    def use(self, height: str, name: str, events: set[str], order: int) -> None:
        if any(each.name == name for each in self.at(height)):
            self.remove(height, name)
        self.count += 1
        above = {"one": "agent", "two": "agent", "sub": "child"}.get(height, "")
        stead = next((e.number for e in self.at(above) if e.name == name), 0)
        mine = Hung(self.count, height, name, frozenset(events), order, stead)
        tell = self.teller(mine.number)
        for event in events:
            tell = hook(event, order=order)(tell)
        self.hosts[height].use(type(name, (), {"tell": staticmethod(tell)})(), name=name)
        self.hung.append(mine)

    def teller(self, number: int) -> Any:
        def tell(ctx: Any) -> None:
            self.heard.append(number)

        return tell

    @rule(height=HEIGHTS, event=st.sampled_from(["before_run", "after_run"]), order=ORDERS)
    def by_hand(self, height: str, event: str, order: int) -> None:
        self.count += 1
        number = self.count
        register = self.hosts[height].hooks.register
        self.disposers[number] = register(event, self.teller(number), order=order)
        self.hung.append(Hung(number, height, "", frozenset({event}), order))

    @precondition(lambda self: self.disposers)
    @rule(data=st.data())
    def dispose(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.disposers)))
        self.disposers.pop(number)()
        self.hung = [each for each in self.hung if each.number != number]

    @rule(height=HEIGHTS, name=NAMES)
    def remove(self, height: str, name: str) -> None:
        host = self.hosts[height]
        if name in host.extensions:
            host.remove(name)
        self.hung = [e for e in self.hung if (e.height, e.name) != (height, name)]

    def expected(self, event: str, session: str) -> list[int]:
        if session == "sub":
            gates = merged(self.at("agent"), self.at("one")) if event == "before_run" else []
            found = [*gates, *merged(self.at("child"), self.at("sub"))]
        else:
            found = merged(self.at("agent"), self.at(session))
        numbers = [each.number for each in found if event in each.events]
        return numbers[::-1] if event == "after_run" else numbers

    @invariant()
    def fires_what_the_model_says(self) -> None:
        for session, of in (("one", "agent"), ("two", "agent"), ("sub", "child")):
            agent = self.hosts[of]
            for event in ("before_run", "after_run"):
                self.heard.clear()
                ctx = RunContext(agent, self.hosts[session], "")
                self.wait(agent.hooks[event].fire(ctx))
                assert self.heard == self.expected(event, session)

    def teardown(self) -> None:
        for height in self.hosts:
            for name in list(self.hosts[height].extensions):
                self.remove(height, name)
        for dispose in self.disposers.values():
            dispose()
        for host in self.hosts.values():
            assert (list(host.hooks), host.hooks.owners, dict(host.extensions)) == ([], (), {})
        self.wait(self.hosts["child"].close())
        self.wait(self.hosts["agent"].close())
        self.loop.close()


TestHanging = Hanging.TestCase
TestHanging.settings = settings(max_examples=examples(40), stateful_step_count=20, deadline=None)


def test_a_hook_keeps_its_place_when_what_hung_before_it_is_replaced():
    hanging = Hanging()
    hanging.begin()
    both = {"before_run", "after_run"}
    for height, name, events, order in (
        ("child", "c", both, 1),
        ("child", "a", both, -1),
        ("sub", "b", both, 0),
        ("sub", "c", {"after_run"}, -1),
    ):
        hanging.use(height, name, events, order)
    hanging.remove("child", "c")
    hanging.use("sub", "b", {"before_run"}, 0)
    hanging.fires_what_the_model_says()
    hanging.teardown()
