"""A mode in which nothing is changed: the model looks and proposes, you choose when it begins.

    crow run --extension examples/plan_mode.py --mode look "How would you split this file?"

A tool says of itself whether it only reads; a command could do anything, so Bash is no way out.
"""

from crow import Agent, Deny, Mode, RunContext, ToolContext

ABOUT = "Look and say what you would do, file by file. Nothing can be changed in this mode."


class PlanMode:
    def init_agent(self, agent: Agent) -> None:
        agent.add_mode(Mode("look", "Look", "Read and propose, change nothing"))

    def before_run(self, ctx: RunContext) -> str | None:
        return ABOUT if ctx.session.mode == "look" else None

    def before_tool(self, ctx: ToolContext) -> Deny | None:
        reads = ctx.tool is not None and ctx.tool.kind in {"read", "search", "think"}
        if ctx.session.root.mode == "look" and not reads:
            return Deny(f"{ctx.name} may change something: propose it, the user begins it")
        return None
