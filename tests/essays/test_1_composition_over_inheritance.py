"""The first essay: extensions are objects in a list, and the user composes them.

Its examples stand here as they are written there; only their import lines are adapted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from crow import Agent, AgentHook, tool
from crow import Agent as AcpAgent
from crow.extensions import PersistenceHook as StoringHook
from crow.extensions import SystemPromptHook as ComposedPromptHook
from crow.testing import ScriptedModel, call, text

# ruff: noqa: PIE790 - as the essay has it


@tool
def look() -> str:
    """Look around."""
    return "nothing special"


# "Extensions Are Just Hook Classes"


class PersistenceHook(AgentHook):
    async def after_turn(self, session, usage):
        # Save to SQLite
        session.save()


class CompactionHook(AgentHook):
    def __init__(self, token_limit=16000):
        self.limit = token_limit

    async def after_turn(self, session, usage):
        if usage and usage.get("total_tokens", 0) > self.limit:
            # Summarize and prune
            summarize_and_prune(session)


class SystemPromptHook(AgentHook):
    def __init__(self, prompt_text: str):
        self.prompt_text = prompt_text

    async def before_llm_request(self, session, messages):
        messages.insert(0, {"role": "system", "content": self.prompt_text})
        return messages


def summarize_and_prune(session: Any) -> None:
    """What the essay leaves out."""
    session.restart(
        [{"role": "user", "content": f"(a summary of {len(session.messages)} messages)"}]
    )


async def test_the_system_prompt_hook_inserts_at_index_0_and_the_history_stays_clean():
    model = ScriptedModel(call("look"), "Done.")
    agent = AcpAgent(llm=model, hooks=[SystemPromptHook("You are Crow.")], tools=[look])
    reply = await agent.run("Hi")
    for asked in model.asked:
        assert [m["role"] for m in asked["messages"]].count("system") == 1
        assert asked["messages"][0] == {"role": "system", "content": "You are Crow."}
    assert [m["role"] for m in reply.session.messages] == ["user", "assistant", "tool", "assistant"]


async def test_the_persistence_hook_saves_after_every_turn(tmp_path: Path):
    class Counting:
        def __init__(self) -> None:
            self.saved: list[int] = []

        def save(self, session: Any) -> None:
            self.saved.append(len(session.messages))

    agent = AcpAgent(
        llm=ScriptedModel(call("look"), "Done."), hooks=[PersistenceHook()], tools=[look]
    )
    store: Any = Counting()
    agent.store = store
    await agent.run("Hi", cwd=tmp_path)
    assert store.saved == [3, 4]


async def test_session_save_writes_to_sqlite_where_a_store_is_in_use(tmp_path: Path):
    database = tmp_path / "crow.db"
    agent = AcpAgent(
        llm=ScriptedModel("Done."),
        hooks=[StoringHook(db_path=str(database)), PersistenceHook()],
        tools=[],
    )
    async with agent:
        reply = await agent.run("Hi", cwd=tmp_path)
    assert database.exists()
    async with AcpAgent(llm=ScriptedModel(), hooks=[StoringHook(db_path=str(database))]) as again:
        session = await again.load_session(reply.session.id)
        assert session.messages == reply.session.messages


async def test_without_a_store_session_save_says_so_and_does_no_harm():
    agent = AcpAgent(llm=ScriptedModel("Done."), hooks=[PersistenceHook()], tools=[])
    reply = await agent.run("Hi")
    assert reply.text == "Done."
    assert reply.session.save() is False
    assert [record.error for record in reply.session.trace] == [None]


async def test_the_compaction_hook_prunes_above_its_limit_and_only_there(contents: Any):
    model = ScriptedModel(
        text("One.", usage={"total_tokens": 15_000}),
        text("Two.", usage={"total_tokens": 17_000}),
        "3.",
    )
    agent = AcpAgent(llm=model, hooks=[CompactionHook()], tools=[])
    reply = await agent.run("Hi")
    assert len(reply.session.messages) == 2
    await agent.run("Again", session=reply.session)
    assert contents(reply.session.messages) == ["(a summary of 4 messages)"]
    await agent.run("Still there?", session=reply.session)
    assert contents(model.asked[2]["messages"]) == ["(a summary of 4 messages)", "Still there?"]


async def test_usage_may_be_unknown():
    agent = AcpAgent(llm=ScriptedModel("Hello."), hooks=[CompactionHook(token_limit=0)], tools=[])
    reply = await agent.run("Hi")
    assert len(reply.session.messages) == 2


# "Hooks as the Plugin Interface": the interface as the essay defines it, for whoever brings it along


class EssaysAgentHook:
    """Base class for all agent extensions."""

    async def on_session_start(self, session) -> None:
        """Called once when a new session is created."""
        pass

    async def before_run(self, session, user_input) -> None:
        """Called when user sends a message, BEFORE the agent starts the loop.
        Good for: RAG, modifying user input, checking permissions."""
        pass

    async def before_llm_request(self, session, messages) -> list[dict]:
        """Called immediately before sending to LLM.
        Good for: Injecting system prompts, context window management.
        Returns: The modified list of messages to send."""
        return messages

    async def after_turn(self, session, usage) -> None:
        """Called after LLM responds and tools are executed (one full turn).
        Good for: Persistence, Logging, Compaction."""
        pass


class Recorder(EssaysAgentHook):
    def __init__(self, name: str, seen: list[Any]) -> None:
        self.name = name
        self.seen = seen

    async def on_session_start(self, session) -> None:
        self.seen.append((self.name, "on_session_start"))

    async def before_run(self, session, user_input) -> None:
        self.seen.append((self.name, "before_run", user_input, len(session.messages)))

    async def before_llm_request(self, session, messages) -> list[dict]:
        self.seen.append((self.name, "before_llm_request", len(messages)))
        return messages

    async def after_turn(self, session, usage) -> None:
        self.seen.append((self.name, "after_turn", len(session.messages), usage))


async def test_the_lifecycle_is_the_one_of_the_essay():
    seen: list[Any] = []
    model = ScriptedModel(call("look", usage={"total_tokens": 7}), "Done.")
    agent = AcpAgent(llm=model, hooks=[Recorder("one", seen)], tools=[look])
    await agent.run("Hi")
    assert seen == [
        ("one", "on_session_start"),
        ("one", "before_run", "Hi", 0),
        ("one", "before_llm_request", 1),
        ("one", "after_turn", 3, {"total_tokens": 7}),
        ("one", "before_llm_request", 3),
        ("one", "after_turn", 4, None),
    ]


async def test_every_hook_of_the_list_is_called_and_messages_go_from_one_to_the_next():
    seen: list[Any] = []
    hooks = [Recorder("one", seen), SystemPromptHook("You are Crow."), Recorder("two", seen)]
    await AcpAgent(llm=ScriptedModel("Hello."), hooks=hooks, tools=[]).run("Hi")
    requests = [entry for entry in seen if entry[1] == "before_llm_request"]
    assert requests == [("one", "before_llm_request", 1), ("two", "before_llm_request", 2)]


async def test_untouched_methods_of_agent_hook_are_not_registered():
    agent = AcpAgent(llm=ScriptedModel(), hooks=[PersistenceHook()], tools=[])
    assert [hook.event for hook in agent.hooks] == ["after_turn"]


# "Special Cases Mapped to Hooks": skills in before_run


async def test_a_skill_searches_keywords_before_the_run_and_injects_context(contents: Any):
    class SkillsHook(AgentHook):
        def __init__(self, skills: dict[str, str]):
            self.skills = skills

        async def before_run(self, session, user_input):
            found = [text for word, text in self.skills.items() if word in user_input.lower()]
            return "\n".join(found) or None

    model = ScriptedModel("Ok.", "Ok.")
    agent = AcpAgent(llm=model, hooks=[SkillsHook({"deploy": "Deploy with make ship."})], tools=[])
    reply = await agent.run("Deploy it")
    assert "Deploy with make ship." in contents(model.asked[0]["messages"])[1]
    await agent.run("Thanks", session=reply.session)
    assert len(model.asked[1]["messages"]) == 4


# "The User Experience (Now)"

MAIN = """
import asyncio
from crow import Agent as AcpAgent, run_agent
from crow.extensions import PersistenceHook, SystemPromptHook

async def main():
    hooks = [
        SystemPromptHook("You are Crow, a helpful coding assistant."),
        PersistenceHook(db_path="~/.crow/crow.db"),
    ]

    agent = AcpAgent(hooks=hooks)
    await run_agent(agent)

asyncio.run(main())
"""


async def test_main_py_speaks_acp_on_stdio_and_keeps_its_sessions(tmp_path: Path, home: Path):
    (tmp_path / "main.py").write_text(MAIN)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(tmp_path / "main.py"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    requests = [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
        ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
    ]
    answers: list[dict[str, Any]] = []
    for number, (method, params) in enumerate(requests):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        while not any(answer.get("id") == number for answer in answers):
            answers.append(json.loads(await process.stdout.readline()))
    process.stdin.close()
    assert await process.wait() == 0
    results = [answer["result"] for answer in answers if "id" in answer]
    assert results[0]["protocolVersion"] == 1
    assert results[1]["sessionId"]
    assert (home / ".crow" / "crow.db").exists()


# "The User Experience (Future, Maybe)": a package of its own

RAG = """
from crow import AgentHook

class RAGHook(AgentHook):
    def __init__(self, vector_db):
        self.vector_db = vector_db

    async def before_run(self, session, user_input):
        return f"From {self.vector_db}: what is known about {user_input}"
"""


def test_a_hook_that_was_split_out_into_a_package_is_imported_and_listed(environment: Any):
    environment.install("crow-skill-rag", {"crow_skill_rag.py": RAG}, {})
    asked = environment.run(
        """
        import asyncio, json
        from crow import Agent as AcpAgent
        from crow.extensions import PersistenceHook
        from crow.testing import ScriptedModel
        from crow_skill_rag import RAGHook  # Separate package!

        hooks = [
            RAGHook(vector_db="./embeddings"),
            PersistenceHook(),
        ]

        async def main():
            model = ScriptedModel("Hello.")
            async with AcpAgent(llm=model, hooks=hooks) as agent:
                await agent.run("crows")
            print(json.dumps(model.asked[0]["messages"]))

        asyncio.run(main())
        """
    )
    assert asked[0]["content"] == "crows"
    assert "From ./embeddings: what is known about crows" in asked[1]["content"]


async def test_the_front_doors_example_runs(tmp_path: Path):
    hooks = [ComposedPromptHook("You are Crow."), StoringHook(db_path=str(tmp_path / "crow.db"))]
    agent = Agent(llm=ScriptedModel(text("Fixed.", usage={"total_tokens": 9})), hooks=hooks)
    async with agent:
        reply = await agent.run("Fix the failing test", cwd=str(tmp_path))
    assert (reply.text, reply.stop_reason, reply.usage) == (
        "Fixed.",
        "end_turn",
        {"total_tokens": 9},
    )
    assert len(reply.session.messages) == 2
