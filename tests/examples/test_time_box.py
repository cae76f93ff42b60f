"""Time that was worked ends a run; time that the user took does not."""

from __future__ import annotations

import time

import pytest
from tests.examples.test_examples import load

from crow.testing import Pilot, call


@pytest.mark.slow
def test_the_model_is_told_before_the_run_ends(crow: Pilot):
    crow.configure(allow=["Bash"])
    crow.use(load("time_box").TimeBox(minutes=2 / 60, warn=0.01))
    first, second = call("Bash", command="sleep 0.1"), call("Bash", command="sleep 2")
    reply = crow.run("Go", first, second)
    crow.sent("Your time is nearly over", times=1)
    assert reply.stop_reason == "hook_stopped"


def test_a_question_that_waits_costs_nothing(crow: Pilot):
    crow.use(load("time_box").TimeBox())
    crow.user.always(lambda question: time.sleep(0.5) or "allow_once")
    began = time.monotonic()
    crow.run("Go", call("Bash", command="touch a"), "Done.")
    elapsed = time.monotonic() - began
    assert crow.session.state["time_box"]["spent"] <= elapsed - 0.5
