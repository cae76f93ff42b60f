"""A bot: who writes `crow: what does main.py do?` in a chat is answered by `crow acp --listen`.

crow acp --listen 127.0.0.1:8765    # and pip install 'agent-client-protocol[http]' for the bot
python examples/chat_bot.py irc.example.org '#dev' "ws://127.0.0.1:8765/acp?token=..." "$PWD"
"""

import asyncio
import re
import sys
from typing import Any

import acp.ws


class Talk:  # of one person: who asked approves, and the `yes` of another is a prompt of theirs
    def __init__(self, chat: asyncio.StreamWriter, to: str) -> None:
        self.chat, self.to, self.heard, self.said = chat, to, asyncio.Queue[str](), ""

    async def answer(self: Any, url: str, folder: str) -> None:
        agent = acp.connect_to_agent(self, await acp.ws.create_websocket_stream(url))
        await agent.initialize(protocol_version=1)
        session = (await agent.new_session(cwd=folder)).session_id
        while text := await self.heard.get():
            await agent.prompt(session, [acp.schema.TextContentBlock(type="text", text=text)])
            self.say(self.said)
            self.said = ""

    def say(self, text: str) -> None:
        self.chat.writelines(f"{self.to} {line[:400]}\r\n".encode() for line in text.splitlines())

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.said += getattr(update.content, "text", "")

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any):
        self.say(f"{tool_call.title}: yes or no?")
        kind = "allow_once" if await self.heard.get() == "yes" else "reject_once"
        outcome = acp.schema.AllowedOutcome(option_id=kind, outcome="selected")
        return acp.RequestPermissionResponse(outcome=outcome)


async def main(host: str, channel: str, url: str, folder: str, port: str = "6667") -> None:
    lines, chat = await asyncio.open_connection(host, int(port))
    chat.write(f"NICK crow\r\nUSER crow 0 * :Crow\r\nJOIN {channel}\r\n".encode())
    talks: dict[str, Talk] = {}
    async with asyncio.TaskGroup() as tasks:
        async for line in lines:
            if line.startswith(b"PING"):
                chat.write(line.replace(b"PING", b"PONG", 1))
            elif heard := re.match(rb":(.+?)!\S+ PRIVMSG \S+ :crow: (.*\S)", line):
                nick, text = (part.decode(errors="replace") for part in heard.groups())
                if nick not in talks:
                    talks[nick] = Talk(chat, f"PRIVMSG {channel} :{nick}:")
                    tasks.create_task(talks[nick].answer(url, folder))
                talks[nick].heard.put_nowait(text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
