"""Two people talk with a bot on a real IRC server, each in a session, and each approves alone."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.acp.listen.conftest import Server
from tests.examples.test_examples import EXAMPLES


@asynccontextmanager
async def started(*command: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", *command, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
        assert process.returncode is None
    finally:
        process.terminate()
        await process.communicate()


class Person:
    """Somebody with a client for IRC."""

    async def join(self, nick: str, port: int) -> None:
        self.lines, self.chat = await asyncio.open_connection("127.0.0.1", port)
        self.chat.write(f"NICK {nick}\r\nUSER {nick} 0 * :{nick}\r\nJOIN #dev\r\n".encode())
        await self.hear("End of NAMES list")

    def say(self, text: str) -> None:
        self.chat.write(f"PRIVMSG #dev :{text}\r\n".encode())

    def leave(self) -> None:
        self.chat.close()

    async def hear(self, words: str) -> str:
        async for line in self.lines:
            if words in line.decode():
                return line.decode()
        raise EOFError(words)


@pytest.mark.slow
async def test_who_asked_is_who_approves(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    irc = [str(Path(sys.executable).with_name("miniircd")), "--verbose"]
    irc += ["--setuid", "root"] if os.geteuid() == 0 else []
    async with started(*irc, "--listen", "127.0.0.1", "--ports", str(port)) as chat:
        assert chat.stdout is not None
        assert b"Listening" in await chat.stdout.readline()
        crow = Server(tmp_path)
        ada, bob = Person(), Person()
        await ada.join("ada", port)
        await bob.join("bob", port)
        bot = str(EXAMPLES / "chat_bot.py"), "127.0.0.1", "#dev", crow.ws, str(tmp_path), str(port)
        async with asyncio.timeout(50), started(*bot):
            await ada.hear(":crow!")  # it has joined
            ada.say("crow: Run `touch hers`")
            await ada.hear("yes or no?")
            bob.say("crow: yes")
            await bob.hear("bob: ")  # the answer to a prompt that was a single word
            assert not (tmp_path / "hers").exists()
            ada.say("crow: yes")
            await ada.hear("ada: ")
            assert (tmp_path / "hers").exists()
            bob.say("crow: Run `touch his`")
            await bob.hear("yes or no?")
            bob.say("crow: rather not")
            await bob.hear("bob: ")
            assert not (tmp_path / "his").exists()
        ada.leave()
        bob.leave()
        crow.close()
