"""A budget ends a run, or is raised by the user."""

from __future__ import annotations

import pytest
from tests.examples.test_examples import load

from crow import Usage
from crow.testing import Pilot, call, text


@pytest.mark.parametrize("more", [True, False])
def test_the_user_is_asked_when_it_is_used_up(crow: Pilot, more: bool):
    crow.configure(allow=["Bash"])
    crow.use(load("budget").Budget(tokens=100))
    crow.user.answers(more)
    usage = Usage(input_tokens=80, output_tokens=40)
    first = [text("", usage=usage), call("Bash", command="true")]
    reply = crow.run("Go", first, *(["Done."] if more else []))
    crow.asked("120 tokens are used")
    assert reply.stop_reason == ("end_turn" if more else "hook_stopped")


def test_what_sub_agents_use_counts(crow: Pilot):
    crow.use(load("budget").Budget(tokens=100))
    crow.user.answers(False)
    usage = Usage(input_tokens=90, output_tokens=40)
    task = call("Agent", description="look", prompt="Look", subagent_type="general-purpose")
    reply = crow.run("Go", task, text("Seen.", usage=usage))
    assert reply.stop_reason == "hook_stopped"
