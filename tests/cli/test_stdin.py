"""Standard input beside a prompt: files, pipes, sockets, what is no text, what never comes."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from tests.cli.conftest import Crow
from tests.cli.test_ask import Screen

from crow.testing.endpoint import Endpoint, answer

LIMIT = 256 * 1024


def prompt(endpoint: Endpoint) -> str:
    """What the model was asked."""
    return endpoint.requests[-1].body["messages"][-1]["content"]


async def run(crow: Crow, source: int, *argv: str) -> tuple[int | None, str]:
    """``crow run`` with this for standard input; its exit status and what it complains of."""
    ended = await crow.reading(source, "run", *argv)
    return ended.status, ended.err


async def test_a_file_that_is_piped_in_goes_to_the_model(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("A note."), answer("A note."))
    await crow("run", "what is this", stdin="Dear Ada,\nHello.\n")
    assert prompt(endpoint) == "what is this\n\n<stdin>\nDear Ada,\nHello.\n</stdin>"
    path = crow.cwd / "README.md"
    assert await run(crow, os.open(path, os.O_RDONLY), "what is this") == (0, "")
    assert prompt(endpoint) == f"what is this\n\n<stdin>\n{path.read_text().strip()}\n</stdin>"


async def test_a_file_without_a_prompt_is_the_prompt(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("It does things."))
    path = crow.cwd / "README.md"
    assert await run(crow, os.open(path, os.O_RDONLY)) == (0, "")
    assert prompt(endpoint) == path.read_text()


async def test_a_socket_is_read_to_its_end(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("Ok."))
    ours, theirs = socket.socketpair()
    ours.setblocking(True)
    theirs.setblocking(False)
    ended = asyncio.create_task(run(crow, theirs.detach(), "what"))
    for piece in (b"one ", b"two"):
        ours.sendall(piece)
    ours.close()
    await ended
    assert prompt(endpoint) == "what\n\n<stdin>\none two\n</stdin>"


@pytest.mark.parametrize("said", ["", " \n\n"])
async def test_what_is_empty_is_not_there(crow: Crow, endpoint: Endpoint, said: str) -> None:
    endpoint.play(answer("Ok."))
    await crow("run", "hello", stdin=said)
    assert prompt(endpoint) == "hello"


@pytest.mark.slow
async def test_a_pipe_that_nobody_writes_to_or_closes_is_given_up_and_that_is_said(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Ok."))
    reader, writer = os.pipe()
    async with asyncio.timeout(50):
        status, err = await run(crow, reader, "hello")
        reader, other = os.pipe()
        assert (await run(crow, reader))[0] == 2  # and there is no prompt without it
    assert (status, prompt(endpoint)) == (0, "hello")
    assert "standard input is open, but nothing came within 3 s" in err
    os.close(writer)
    os.close(other)


@pytest.mark.slow
async def test_a_person_who_looks_on_is_told_that_it_is_waited_for(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Ok."))
    reader, writer = os.pipe()
    screen = Screen()
    streams = reader, screen.slave, screen.slave
    env = {**os.environ, **crow.env}
    process = await crow.forks.start(("run", "what"), crow.cwd, env, streams, new_session=True)
    os.close(reader)
    await screen.until("waiting for standard input to end")
    os.write(writer, b"late")
    os.close(writer)
    await screen.until("Ok.")
    assert await screen.close(process) == 0
    assert prompt(endpoint) == "what\n\n<stdin>\nlate\n</stdin>"


@pytest.mark.variants(8)
@pytest.mark.parametrize("given", ["what", None, "-"])
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("café".encode(), "café"),
        ("café".encode("latin-1"), "café"),
        ("\ufeffcafé".encode(), "café"),
        ("café".encode("utf-16"), "café"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None),
        (b"\x7fELF\x02\x01\x01\0", None),
    ],
)
async def test_text_in_any_encoding_is_text_and_the_rest_is_refused(
    crow: Crow,
    endpoint: Endpoint,
    tmp_path: Path,
    data: bytes,
    shown: str | None,
    given: str | None,
) -> None:
    endpoint.play(answer("Ok."))
    path = tmp_path / "data"
    path.write_bytes(data)
    words = [] if given is None else [given]
    status, err = await run(crow, os.open(path, os.O_RDONLY), *words)
    if shown is None:
        assert (status, endpoint.requests) == (2, [])
        assert "standard input is no text" in err
    elif given == "what":
        assert prompt(endpoint) == f"what\n\n<stdin>\n{shown}\n</stdin>"
    else:
        assert prompt(endpoint) == shown


ALSO = [pytest.param(unit, marks=pytest.mark.slow) for unit in ("x", "é")]


@pytest.mark.parametrize("unit", ["x\n", "€", *ALSO])
async def test_what_is_too_long_is_cut_off_and_that_is_said_to_both(
    crow: Crow, endpoint: Endpoint, tmp_path: Path, unit: str
) -> None:
    endpoint.play(answer("Ok."))
    path = tmp_path / "long.txt"
    path.write_text(unit * (LIMIT + 1), "utf-8")
    status, err = await run(crow, os.open(path, os.O_RDONLY), "what")
    assert (status, err.count("only the first 262,144 bytes of standard input go")) == (0, 1)
    asked = prompt(endpoint)
    assert asked.endswith(
        "[cut off: only the first 262,144 bytes of standard input are here]\n</stdin>"
    )
    assert "\N{REPLACEMENT CHARACTER}" not in asked
    assert LIMIT - 10 < len(asked.encode()) < LIMIT + 200


@pytest.mark.slow
async def test_an_endless_stream_is_not_read_to_its_end(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("Ok."))
    process = await asyncio.create_subprocess_shell(
        f"yes | {' '.join(crow.command('run', 'what'))}",
        cwd=crow.cwd,
        env={**os.environ, **crow.env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert out == b"Ok.\n"
    assert prompt(endpoint).startswith("what\n\n<stdin>\ny\ny\n")
