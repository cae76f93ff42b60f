"""The second essay: an extension gets the agent, and the agent is the interface.

Its examples stand here as they are written there; only their import lines are adapted, and the
functions that the essay leaves out (``fetch_weather_data``, ``compress_history``) filled in.
"""

# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import asyncio
import types
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Session, tool
from crow.testing import ScriptedModel, call, text


@tool
def look() -> str:
    """Look around."""
    return "nothing special"


def roles(session: Session) -> list[str]:
    return [message["role"] for message in session.messages]


# "Applied to Crow"


class MyExtension:
    def __init__(self, agent=None):
        self.agent = agent
        if agent is not None:
            self.init_agent(agent)

    def init_agent(self, agent):
        # Register hooks
        agent.hooks.register("pre_request", self.pre_request)
        # Store reference
        agent.extensions['my_extension'] = self  # fmt: skip

    def pre_request(self, ctx):
        # Access agent state directly
        messages = self.agent._sessions[ctx.session_id].messages
        # Do whatever you want with the agent!
        self.seen = [*getattr(self, "seen", []), len(messages)]


async def test_an_extension_attaches_itself_when_it_is_made_with_the_agent():
    agent = Agent(llm=ScriptedModel("One.", "Two."), tools=[])
    extension = MyExtension(agent)
    assert agent.extensions["my_extension"] is extension
    reply = await agent.run("Hi")
    await agent.run("Again", session=reply.session)
    assert extension.seen == [0, 2]


@pytest.mark.parametrize("how", ["use the class", "use the object", "list"])
async def test_an_extension_that_is_made_without_the_agent_gets_it_when_it_is_used(how: str):
    agent = Agent(
        llm=ScriptedModel("Hello."), hooks=[MyExtension()] if how == "list" else [], tools=[]
    )
    if how != "list":
        agent.use(MyExtension if how == "use the class" else MyExtension())
    extension = agent.extensions["my_extension"]
    assert extension.agent is agent
    assert [str(hook) for hook in agent.hooks] == ["my_extension.pre_request"]
    await agent.run("Hi")
    assert extension.seen == [0]


async def test_what_attached_itself_can_be_removed():
    agent = Agent(llm=ScriptedModel("Hello."), tools=[])
    extension = MyExtension(agent)
    agent.remove("my_extension")
    assert agent.extensions == {}
    assert list(agent.hooks) == []
    await agent.run("Hi")
    assert not hasattr(extension, "seen")


async def test_init_agent_and_the_methods_name_together_register_a_hook_once():
    """In `MyExtension` the method is named like an event, and registered by hand as well."""
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[extension := MyExtension()], tools=[])
    await agent.run("Hi")
    assert extension.seen == [0]


async def test_built_in_extensions_may_be_modules_with_an_init_agent():
    """The essay: ``skills.init_agent(self); compaction.init_agent(self)``."""
    skills = types.ModuleType("crow_skills")
    exec(  # a module as it would stand in a file
        "seen = []\n"
        "def init_agent(agent):\n"
        "    agent.hooks.register('pre_request', lambda ctx: seen.append(ctx.session_id))\n",
        skills.__dict__,
    )
    by_hand = Agent(llm=ScriptedModel("Hello."), tools=[])
    skills.init_agent(by_hand)
    used = Agent(llm=ScriptedModel("Hello."), hooks=[skills], tools=[])
    first, second = await by_hand.run("Hi"), await used.run("Hi")
    assert skills.seen == [first.session.id, second.session.id]
    assert list(used.extensions) == ["crow_skills"]


# "Hook Points"


async def test_the_four_points_come_in_the_order_of_the_essay():
    seen: list[str] = []
    agent = Agent(llm=ScriptedModel(call("look"), "Done."), tools=[look])
    for point in ("post_request", "post_react_loop", "mid_react", "pre_request"):
        agent.hooks.register(point, lambda ctx, point=point: seen.append(point))
    agent.hooks.register("around_tool", named_around_tool(seen))
    await agent.run("Hi")
    assert seen == [
        "pre_request",
        "mid_react",  # after each LLM response, before tool execution
        "tool",
        "mid_react",
        "post_react_loop",
        "post_request",
    ]


def named_around_tool(seen: list[str]) -> Any:
    async def around(ctx: Any, call_next: Any) -> Any:
        seen.append("tool")
        return await call_next()

    return around


async def test_pre_request_can_stop_the_turn():
    async def refuse(ctx):
        if "secret" in await ctx.get_latest_user_message():
            await ctx.stop_current_turn()

    model = ScriptedModel("Hello.")
    agent = Agent(llm=model, tools=[])
    agent.hooks.register("pre_request", refuse)
    refused = await agent.run("Tell me the secret")
    assert model.asked == []
    assert refused.session.messages == []
    assert refused.stop_reason == "refusal"
    assert (await agent.run("Hi")).text == "Hello."


async def test_pre_request_can_modify_messages(contents: Any):
    async def shorten(ctx):
        messages = ctx.agent._sessions[ctx.session_id].messages
        del messages[:-2]

    model = ScriptedModel("1", "2", "3")
    agent = Agent(llm=model, tools=[])
    agent.hooks.register("pre_request", shorten)
    reply = await agent.run("a")
    for prompt in ("b", "c"):
        await agent.run(prompt, session=reply.session)
    assert contents(model.asked[2]["messages"]) == ["b", "2", "c"]


async def test_mid_react_can_stop_before_the_tools_run():
    ran: list[str] = []

    @tool
    def danger() -> str:
        """Do something."""
        ran.append("danger")
        return "done"

    async def stop(ctx):
        count = await ctx.get_token_count()
        if count["total_tokens"] > 10:
            await ctx.stop_current_turn()

    agent = Agent(llm=ScriptedModel(call("danger", usage={"total_tokens": 11})), tools=[danger])
    agent.hooks.register("mid_react", stop)
    reply = await agent.run("Hi")
    assert ran == []
    assert reply.stop_reason == "hook_stopped"
    assert roles(reply.session) == ["user", "assistant", "tool"]


async def test_post_react_loop_can_modify_the_final_response():
    agent = Agent(llm=ScriptedModel("Done."), tools=[])
    agent.hooks.register("post_react_loop", lambda reply: f"{reply.text} (checked)")
    assert (await agent.run("Hi")).text == "Done. (checked)"


async def test_post_request_can_trigger_another_prompt():
    asked: list[str] = []
    answered = asyncio.Event()

    async def ask_again(ctx):
        asked.append(ctx.reply.text)
        if len(asked) == 1:
            ctx.agent.queue(ctx.session, "Are you sure?")
        else:
            answered.set()

    async with Agent(llm=ScriptedModel("Done.", "Yes."), tools=[]) as agent:
        agent.hooks.register("post_request", ask_again)
        reply = await agent.run("Hi")
        assert reply.text == "Done."
        await asyncio.wait_for(answered.wait(), 30)
    assert asked == ["Done.", "Yes."]
    assert reply.session.latest_prompt() == "Are you sure?"


# "Extension Interface": the agent itself


async def test_an_extension_can_do_what_the_agent_can():
    class Everything:
        def init_agent(self, agent):
            agent.add_tool(look)
            agent.stop_cap = 1
            agent.hooks.register("before_run", self.remember)

        def remember(self, ctx):
            self.session = ctx.agent.sessions[ctx.session_id]

    everything = Everything()
    agent = Agent(llm=ScriptedModel(call("look"), "Done."), hooks=[everything], tools=[])
    reply = await agent.run("Hi")
    assert everything.session is reply.session
    assert agent.stop_cap == 1
    agent.remove("everything")
    assert list(agent.tools) == []


# "Example: Skill Extension"

WEATHER = '''
# my_skills/weather_skill.py
from crow import Agent

class WeatherSkill:
    def __init__(self, agent=None):
        self.agent = agent
        if agent is not None:
            self.init_agent(agent)
    
    def init_agent(self, agent: Agent):
        # Register hook
        agent.hooks.register("pre_request", self.pre_request)
        # Store reference
        agent.extensions['weather_skill'] = self
    
    async def pre_request(self, ctx):
        """Inject weather context when user mentions weather"""
        
        # Get the latest user message
        user_message = await ctx.get_latest_user_message()
        
        if not user_message:
            return
        
        # Check if skill is relevant
        if "weather" in user_message.lower():
            # Load weather data
            weather_data = fetch_weather_data()
            
            # Inject context
            context_text = f"Current weather: {weather_data}"
            await ctx.inject_context(context_text)

def fetch_weather_data():
    return "19 degrees, light rain"
'''  # noqa: W293

# "Example: Compaction Extension"

COMPACTION = '''
# my_extensions/compaction.py
from crow import Agent

class Compaction:
    COMPACT_THRESHOLD = 100000  # 100k tokens
    
    def __init__(self, agent=None):
        self.agent = agent
        if agent is not None:
            self.init_agent(agent)
    
    def init_agent(self, agent: Agent):
        # Register hook
        agent.hooks.register("mid_react", self.mid_react)
        # Store reference
        agent.extensions['compaction'] = self
    
    async def mid_react(self, ctx):
        """Compact conversation history if over threshold"""
        
        # Get token count
        token_count = await ctx.get_token_count()
        
        if token_count["total_tokens"] > self.COMPACT_THRESHOLD:
            # Stop current turn
            await ctx.stop_current_turn()
            
            # Compress history
            messages = await ctx.get_messages()
            compressed = compress_history(messages)
            
            # Create new session
            new_session_id = await ctx.restart_with_new_session()
            
            # Load compressed history into new session
            # (This would be done by the agent, not the extension)
            
            # Continue with new session
            await ctx.continue_with_current_session()

def compress_history(messages):
    return f"{len(messages)} messages before"
'''  # noqa: W293


def defined(source: str, name: str) -> Any:
    """A class from a module's source."""
    module = types.ModuleType(name)
    exec(source, module.__dict__)
    return getattr(module, name)


@pytest.fixture(params=["by hand", "in the list", "as a class in the list", "use"])
def attach(request: pytest.FixtureRequest) -> Any:
    """Every way to attach an extension of the essay's form."""

    def attach(cls: Any, model: ScriptedModel, tools: Any) -> Agent:
        listed = {"in the list": lambda: [cls()], "as a class in the list": lambda: [cls]}
        agent = Agent(llm=model, hooks=listed.get(request.param, list)(), tools=tools)
        if request.param == "by hand":
            cls(agent)
        elif request.param == "use":
            agent.use(cls)
        return agent

    return attach


async def test_the_weather_skill_answers_to_the_word_weather(attach: Any, contents: Any):
    model = ScriptedModel("Rain.", "Hello.")
    agent = attach(defined(WEATHER, "WeatherSkill"), model, [])
    assert list(agent.extensions) == ["weather_skill"]
    reply = await agent.run("How is the WEATHER?")
    asked = contents(model.asked[0]["messages"])
    assert asked[0] == "How is the WEATHER?"
    assert "Current weather: 19 degrees, light rain" in asked[1]
    await agent.run("Hi", session=reply.session)
    assert contents(model.asked[1]["messages"])[2:] == ["Rain.", "Hi"]


async def test_the_compaction_runs_as_it_is_written(attach: Any, contents: Any):
    model = ScriptedModel(
        "Hello.", call("look"), call("look", usage={"total_tokens": 200_000}), text("Done.")
    )
    agent = attach(defined(COMPACTION, "Compaction"), model, [look])
    reply = await agent.run("Hi")
    session = reply.session
    reply = await agent.run("Look around", session=session)
    assert (reply.text, reply.stop_reason) == ("Done.", "end_turn")
    assert reply.session is session
    assert agent.sessions == {session.id: session}
    assert session.segment == 1
    assert contents(model.asked[3]["messages"])[0] == "Look around"
    assert roles(session) == ["user", "assistant", "tool", "assistant"]
    assert session.unanswered() == []


async def test_below_its_threshold_it_leaves_the_history_alone(attach: Any):
    model = ScriptedModel(call("look", usage={"total_tokens": 99_000}), "Done.")
    reply = await attach(defined(COMPACTION, "Compaction"), model, [look]).run("Look around")
    assert reply.session.segment == 0


# "Registration": entry points of installed packages

PROGRAM = """
import asyncio, json
from crow import Agent
from crow.testing import ScriptedModel

async def main():
    model = ScriptedModel("Rain.")
    agent = Agent(llm=model, tools=[])
    found = agent.discover()
    await agent.run("How is the weather?")
    print(json.dumps({
        "asked": model.asked[0]["messages"],
        "extensions": list(agent.extensions),
        "found": [[each.name, each.source, each.error] for each in found],
        "hooks": [str(hook) for hook in agent.hooks],
    }))

asyncio.run(main())
"""


def test_installed_packages_are_found_by_their_entry_points(environment: Any):
    environment.install(
        "my-skills",
        {"my_skills/__init__.py": "", "my_skills/weather_skill.py": WEATHER},
        {"weather_skill": "my_skills.weather_skill:WeatherSkill"},
    )
    environment.install(
        "my-extensions",
        {"my_extensions/__init__.py": "", "my_extensions/compaction.py": COMPACTION},
        {"compaction": "my_extensions.compaction:Compaction"},
    )
    told = environment.run(PROGRAM)
    assert told["found"] == [
        ["compaction", "my-extensions", None],
        ["weather_skill", "my-skills", None],
    ]
    assert told["extensions"] == ["compaction", "weather_skill"]
    assert told["hooks"] == ["weather_skill.pre_request", "compaction.mid_react"]
    assert "Current weather: 19 degrees, light rain" in told["asked"][1]["content"]


def test_a_broken_package_is_named_and_does_not_stop_the_others(environment: Any):
    broken = {
        "gone": "no_such_module:Thing",
        "half": "half:Half",
        "raises": "raises:Thing",
        "typo": "typo:Typo",
    }
    environment.install(
        "broken-ones",
        {
            "half.py": """
                class Half:
                    def init_agent(self, agent):
                        agent.hooks.register("pre_request", lambda ctx: "from half")
                        raise RuntimeError("no database")
            """,
            "raises.py": "raise SystemError('cannot even be imported')",
            "typo.py": """
                class Typo:
                    def init_agent(self, agent):
                        agent.hooks.register("pre_requst", print)
            """,
        },
        broken,
    )
    environment.install(
        "my-skills", {"weather_skill.py": WEATHER}, {"weather_skill": "weather_skill:WeatherSkill"}
    )
    told = environment.run(PROGRAM)
    errors = {name: error for name, _, error in told["found"]}
    assert errors == {
        "gone": "ModuleNotFoundError: No module named 'no_such_module'",
        "half": "ExtensionError: the extension half failed: RuntimeError('no database')",
        "raises": "SystemError: cannot even be imported",
        "typo": "HookError: there is no event 'pre_requst'; did you mean 'pre_request'?",
        "weather_skill": None,
    }
    assert told["hooks"] == ["weather_skill.pre_request"]
    assert len(told["asked"]) == 2


def test_an_agent_by_itself_uses_no_package_that_happens_to_be_installed(
    environment: Any, tmp_path: Path
):
    environment.install(
        "my-skills", {"weather_skill.py": WEATHER}, {"weather_skill": "weather_skill:WeatherSkill"}
    )
    assert environment.run(PROGRAM.replace("agent.discover()", "[]"))["extensions"] == []
