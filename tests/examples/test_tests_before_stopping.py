"""The run goes on until the tests pass, and not for ever."""

from __future__ import annotations

from tests.examples.test_examples import load

from crow.testing import Pilot, call

WRITE = call("Write", file_path="a", content="x\n")


def test_it_goes_on_until_they_pass(crow: Pilot):
    crow.configure(allow=["Write"])
    crow.use(load("tests_before_stopping").TestsBeforeStopping(command="echo no b; test -e b"))
    mend = call("Write", file_path="b", content="")
    crow.run("Go", WRITE, "Done.", mend, "Now it is.")
    crow.sent("no b")
    crow.told("Now it is.")


def test_it_gives_up_after_some_attempts(crow: Pilot):
    crow.configure(allow=["Write"])
    crow.use(load("tests_before_stopping").TestsBeforeStopping(command="false", attempts=2))
    crow.run("Go", WRITE, "Done.", "I cannot.", "I really cannot.")
    crow.told("false still fails")


def test_nothing_is_tested_where_nothing_was_done(crow: Pilot):
    crow.use(load("tests_before_stopping").TestsBeforeStopping(command="touch tested"))
    crow.run("Hi", "Hello.")
    assert list(crow.cwd.iterdir()) == []
