"""The seven that the design began with."""

from __future__ import annotations

import json
from datetime import datetime

from tests.examples.test_examples import load

from crow import Agent, Usage
from crow.testing import Pilot, ScriptedModel, call, text


def test_where_and_when(crow: Pilot):
    crow.use(load("where_and_when"))
    crow.run("Hi", "Hello.")
    crow.sent(f"Today is {datetime.now().astimezone():%A, %d %B %Y}. The branch is none.")
    crow.prefix_stable()


def test_deny_list(crow: Pilot):
    crow.configure(allow=["Bash"])
    crow.use(load("deny_list"))
    crow.run(
        "Go",
        call("Bash", command="true;/usr/bin/sudo ls"),
        call("Bash", command="echo sudoku"),
        "x",
    )
    crow.denied("Bash", "sudo is never run here", times=1)


def test_call_log(crow: Pilot):
    crow.configure(deny=["Bash"])
    crow.use(load("call_log"))
    crow.run("Go", call("Bash", command="ls"), call("LS", path="."), "Done.")
    entries = [json.loads(line) for line in (crow.cwd / "calls.jsonl").read_text().splitlines()]
    assert [(each["call"], each["outcome"]) for each in entries] == [
        ("Bash", "denied"),
        ("LS", "ok"),
    ]


def test_large_output(crow: Pilot):
    crow.configure(allow=["Bash"])
    crow.use(load("large_output"))
    crow.run("Go", call("Bash", command="seq 10"), call("Bash", command="seq 9999"), "Done.")
    crow.sent("ask for less next time", times=1)


def test_summary(crow: Pilot):
    crow.configure(allow=["Bash"])
    crow.use(load("summary"))
    crow.run("Go", call("Bash", command="true"), call("Bash", command="true"), "Done.")
    crow.told("calls in this session: Bash 2")


async def test_keyword_skill():
    model = ScriptedModel("So.", "So.", "So.")
    agent = Agent(model, tools=[])
    load("keyword_skill").KeywordSkill(agent, "deploy", "Use `make ship`.")
    async with agent:
        reply = await agent.run("Hi")
        await agent.run("How do I deploy?", session=reply.session)
        await agent.run("Deploy it", session=reply.session)
    said = [str(asked["messages"]).count("make ship") for asked in model.asked]
    assert said == [0, 1, 1]


def test_early_compaction(crow: Pilot):
    crow.use(load("early_compaction").EarlyCompaction(tokens=500))
    crow.run("Remember the sparrow", "Yes.")
    large = text("", usage=Usage(input_tokens=900, output_tokens=10))
    crow.run("And now look", [large, call("LS", path=".")], "Done.")
    messages = crow.model.asked[-1]["messages"]
    assert "- Remember the sparrow" in str(messages)
    assert "Yes." not in [message.get("content") for message in messages]
    assert [message["role"] for message in messages][-3:] == ["user", "assistant", "tool"]
