"""`crow run` as programs drive Claude Code: messages of stream-json, or the last of them alone."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from crow.cli.claude_options import sdk_servers
from crow.cli.interrupt import Interrupts
from crow.cli.options import agent_of, tell_problems
from crow.cli.prompt_run import conclude, refuse_unknown, run_to_end
from crow.cli.session_options import session_of
from crow.core.errors import message_of
from crow.core.messages import Content, text_of
from crow.stream_json.client import StreamClient
from crow.stream_json.conversation import Conversation
from crow.stream_json.lines import Lines, lines_of

if TYPE_CHECKING:
    from crow.cli.output import Output
    from crow.core.agent import Agent
    from crow.core.hooks.run_context import Reply
    from crow.core.session import Session
    from crow.settings import Settings

ON_STDIO = "stdio"
"""Who is asked for permission: the program at the other end."""


def complain(out: Output, error: Exception) -> None:
    """Say in the words of the protocol why there is no session at all."""
    told = {"type": "result", "subtype": "error_during_execution", "is_error": True}
    counts = {"duration_ms": 0, "duration_api_ms": 0, "num_turns": 0, "session_id": ""}
    out.verbatim(json.dumps({**told, **counts, "errors": [message_of(error)]}))


class Streaming:
    """One start of the command; ``prompt`` is None where prompts come as lines."""

    def __init__(
        self, options: argparse.Namespace, settings: Settings, prompt: str | None, out: Output
    ) -> None:
        self.options = options
        self.settings = settings
        self.prompt = prompt
        self.out = out
        self.replies: list[Reply] = []
        self.agent: Agent = agent_of(options, settings)
        tell_problems(settings, self.agent, out)
        lines = Lines(out.verbatim if options.form == "stream-json" else self._last)
        self.client = StreamClient(
            lines,
            asks=options.permission_prompt_tool == ON_STDIO
            and options.permission_prompts != "none",
            partial=options.include_partial_messages,
            servers=sdk_servers(options),
        )
        self.client.tells_all = options.forward_subagent_text
        self.client.tells_hooks = options.include_hook_events
        self.conversation = Conversation(
            *(self.agent, lines, self.client, self._open, self._answer),
            replays=options.replay_user_messages,
        )

    async def run(self) -> int:
        """Answer; the exit status."""
        with Interrupts(self.agent, self.out, None, opening=True) as interrupts:
            self.interrupts = interrupts
            async with self.agent:
                self.out.when_gone = self._gone
                if self.prompt is None:
                    await self.conversation.run(lines_of(sys.stdin.fileno()))
                else:
                    await self.conversation.turn(self.prompt)
        if not self.replies:
            return interrupts.status or self.conversation.status
        concluded = conclude(self.replies[-1], self.client.unasked, self.out, interrupts.status)
        return max(concluded, self.conversation.status)

    def _last(self, line: str) -> None:
        """Write the result alone."""
        if json.loads(line).get("type") == "result":
            self.out.verbatim(line)

    async def _open(self) -> Session:
        session = await session_of(self.agent, self.options, self.settings, self.client)
        self.interrupts.opened()
        return session

    async def _answer(self, session: Session, prompt: Content) -> Reply:
        refuse_unknown(self.agent, session, text_of(prompt))
        reply = await run_to_end(self.agent, session, prompt, self.out)
        self.replies.append(reply)
        return reply

    def _gone(self) -> None:
        for session in self.agent.sessions.values():
            self.agent.cancel(session)
