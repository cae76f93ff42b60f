"""A terminal that is gone: the talk ends, whatever is being drawn."""

from __future__ import annotations

import asyncio
import os
import pty

import pytest
from tests.cli.conftest import Crow
from tests.cli.test_chat import half

from crow.testing.endpoint import Endpoint

pytestmark = pytest.mark.skipif(not hasattr(pty, "openpty"), reason="there are no such terminals")


async def seen(master: int, text: str) -> None:
    """Wait for a text on a terminal; one that is closed before says what was there."""
    loop, got = asyncio.get_running_loop(), bytearray()
    there: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            got.extend(os.read(master, 65536))
        except OSError as error:
            loop.remove_reader(master)
            there.set_exception(AssertionError(f"{error}, after {bytes(got)!r}"))
        else:
            if text.encode() in got:
                loop.remove_reader(master)
                there.set_result(None)

    loop.add_reader(master, read)
    try:
        async with asyncio.timeout(60):
            await there
    finally:
        loop.remove_reader(master)


@pytest.mark.slow
@pytest.mark.parametrize("is_at_work", [False, True])
async def test_a_screen_that_can_be_written_to_no_more_ends_the_talk(
    crow: Crow, endpoint: Endpoint, is_at_work: bool
) -> None:
    endpoint.play(half("The pipe is"))
    keys, stdin = pty.openpty()
    screen, stdout = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *crow.command(),
        cwd=crow.cwd,
        env={**os.environ, **crow.env, "TERM": "xterm-256color", "CROW_SANDBOX": "off"},
        stdin=stdin,
        stdout=stdout,
        stderr=stdout,
        start_new_session=True,
    )
    os.close(stdin)
    os.close(stdout)
    try:
        await seen(screen, "lists commands")
        if is_at_work:
            os.write(keys, b"Mend the pipe\r")
            await seen(screen, "The pipe is")
        os.close(screen)
        os.write(keys, b"more")
        async with asyncio.timeout(60):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        os.close(keys)
