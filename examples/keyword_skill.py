"""Knowledge that comes with a word: a Flask-style extension, with methods by older names.

    agent = Agent()
    KeywordSkill(agent, "deploy", "Deploy with `make ship`; ask before.")

What was said once in a session is not said again: the conversation has it.
"""

from crow import Agent, RunContext


class KeywordSkill:
    def __init__(self, agent: Agent | None = None, word: str = "", text: str = "") -> None:
        self.word, self.text = word, text
        if agent is not None:
            self.init_agent(agent)

    def init_agent(self, agent: Agent) -> None:
        agent.hooks.register("pre_request", self.pre_request)
        agent.extensions["keyword_skill"] = self

    async def pre_request(self, ctx: RunContext) -> None:
        prompt = await ctx.get_latest_user_message()
        if self.word in prompt.lower() and not ctx.state.get("said"):
            ctx.state["said"] = True
            await ctx.inject_context(self.text)
