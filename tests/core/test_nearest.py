"""Names that are nearly right: whoever is told of the error is told of the name."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import crow
from crow import Agent
from crow.errors import ExtensionError, HookError
from crow.testing import ScriptedModel


def add_a_tool(agent: Agent) -> None:
    agent.add_tol(None)  # type: ignore  # noqa: PGH003


class Flask:
    def init_agent(self, agent: Agent) -> None:
        add_a_tool(agent)


def test_a_method_of_the_agent() -> None:
    with pytest.raises(
        ExtensionError, match=r"no attribute 'add_tol'.*; did you mean 'add_tool'\?"
    ):
        Agent(llm=ScriptedModel()).use(Flask())


@pytest.mark.parametrize(
    "code, said",
    [
        ("ctx.argz", "no attribute 'argz'; did you mean 'args'?"),
        ("ctx.session.mod", "no attribute 'mod'; did you mean 'mode'?"),
        ("ctx.agent.tols", "no attribute 'tols'; did you mean 'tools'?"),
        ("contxt", "name 'contxt' is not defined; did you mean 'context'?"),
        ("ctx.call.nam", "no attribute 'nam'; did you mean 'name'?"),
        ("(None).nothing_like_it", "no attribute 'nothing_like_it'"),
    ],
)
async def test_what_a_hook_reaches_for(
    code: str, said: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def before_tool(ctx: object, context: object = None) -> object:
        return eval(code)

    from crow.testing import call

    agent = Agent(llm=ScriptedModel(call("Read", file_path="x"), "Done."), hooks=[before_tool])
    async with agent:
        await agent.run("Read it.", session=await agent.new_session(tmp_path))
    (line,) = {
        each.getMessage() for each in caplog.records if "before_tool failed" in each.msg % each.args
    }
    assert f"{said} (" in line
    assert ("did you mean" in line) == ("did you mean" in said)


def test_a_parameter_of_a_hook() -> None:
    def before_tool(ctx: object, tol: object) -> None: ...

    with pytest.raises(HookError, match=r"has no 'tol'; did you mean 'tool'\? it has agent, args"):
        Agent(llm=ScriptedModel(), hooks=[before_tool])


@pytest.mark.parametrize(
    "line, said",
    [
        ("from crow import Agnet", "cannot import name 'Agnet' from 'crow'; did you mean 'Agent'?"),
        ("from crow.testing import cal", "did you mean 'call'?"),
        ("from crow.project import Proposal", "did you mean 'Proposals'?"),
        ("from crow import nothing_like_it", "cannot import name 'nothing_like_it' from 'crow'"),
    ],
)
def test_an_import(line: str, said: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(line)
    assert str(caught.value).endswith(said)


def test_who_asks_whether_there_is_a_name_is_told_no() -> None:
    assert not hasattr(crow, "Agnet")
    assert getattr(crow, "Agnet", None) is None
    assert importlib.import_module("crow.events") is crow.events  # pyright: ignore[reportAttributeAccessIssue]
    from crow import core  # pyright: ignore[reportAttributeAccessIssue]  # a module, and no name

    assert core.__name__ == "crow.core"
