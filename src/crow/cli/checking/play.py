"""An extension in the whole agent, twice, in a process of its own: ``python -m`` this, SPEC, FILE.

What is wrong is written into FILE, a JSON object a line. Home and folder are empty ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crow.app import build
from crow.app.composer import Composer
from crow.app.loading import find, things
from crow.cli.checking.finding import Finding
from crow.cli.checking.stage import Player, Warnings, around, concerns, left
from crow.core.errors import CrowError
from crow.settings import load
from crow.settings.schema import Sieve

LONGEST = 60
LATE = f"a session did not end within {LONGEST} s"
ACT: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (("Write", {"file_path": "notes.txt", "content": "one\n"}),),
    (("Read", {"file_path": "notes.txt"}), ("Read", {"file_path": "missing.txt"})),
    (("Bash", {"command": "cat notes.txt"}),),
    (("Edit", {"file_path": "notes.txt", "old_string": "one", "new_string": "two"}),),
)
"""What the model does: a reply a line."""


async def check(spec: str) -> list[Finding]:
    """What is wrong with an extension."""
    try:
        name, source, thing = find(spec)
        every = things(thing)
    except CrowError as error:
        return [Finding.of(str(error))]
    findings = [finding for each in every for finding in options(each, name)]
    first, asked = await play(name, source, thing)
    findings += first
    if asked:
        again, others = await play(name, source, thing)
        findings += [*(each for each in again if each not in first), *prefix(asked, others)]
        findings = [*repeated(findings, first, again)]
    return findings


def repeated(
    findings: list[Finding], first: list[Finding], again: list[Finding]
) -> Iterator[Finding]:
    """Without what took long only once, as it may on a busy machine, or was said already."""
    slow = {each.place for each in first if each.is_slow} & {
        each.place for each in again if each.is_slow
    }
    for each in findings:
        if not each.is_slow:
            yield each
        elif each.place in slow:
            slow.remove(each.place)
            yield each


async def play(
    name: str, source: str, thing: Any
) -> tuple[list[Finding], list[tuple[list[Any], list[Any]]]]:
    """Let it take part in a session; what is wrong, and what the model was sent."""
    before, model, heard = around(), Player(ACT), Warnings()
    logging.getLogger("crow").addHandler(heard)
    settings = load(os.getcwd())  # noqa: PTH109 - the folder that it is played in
    agent = build(settings, model=model)
    used, error = Composer(agent, settings).attempt(thing, name, source, True)
    if error is not None:
        await agent.close()
        return [Finding.of(error)], []
    try:
        async with asyncio.timeout(LONGEST):
            session = await agent.new_session(os.getcwd())  # noqa: PTH109
            session.mode = "bypassPermissions"
            for prompt in ("Write down one thing.", "What did you write?"):
                await agent.prompt(session, prompt)
            running = asyncio.create_task(agent.prompt(session, "Once more."))
            await asyncio.sleep(0)
            agent.cancel(session)
            await running
    except TimeoutError:
        heard.said.append(LATE)
    await agent.close()
    logging.getLogger("crow").removeHandler(heard)
    told = dict.fromkeys(line for line in heard.said if line == LATE or concerns(line, used))
    findings = [Finding.of(line) for line in told]
    return [*findings, *left(before)], model.asked


def options(thing: Any, name: str) -> Iterator[Finding]:
    """Defaults that are not what their annotations say."""
    if not inspect.isclass(thing):
        return
    from crow.annotations.options import options_of

    said: list[str] = []
    try:
        node = options_of(thing).node
    except (TypeError, ValueError) as error:
        yield Finding(f"{thing.__name__}: {error}", "annotate its options with types of JSON")
        return
    defaults = {
        key: each["default"]
        for key, each in node.get("properties", {}).items()
        if each.get("default") is not None
    }
    Sieve(lambda path, value, text: said.append(text), node).sift(defaults, name)
    with contextlib.suppress(OSError, TypeError):
        path, line = inspect.getsourcefile(thing) or "", inspect.getsourcelines(thing)[1]
        for text in said:
            yield Finding(text, "let the default be what its type says", path, line)


def prefix(
    first: list[tuple[list[Any], list[Any]]], second: list[tuple[list[Any], list[Any]]]
) -> Iterator[Finding]:
    """Requests that do not begin as others do, so that no provider's cache holds."""
    do = "put what changes behind the conversation: return it from before_run"
    if first and second and first[0][0][:1] != second[0][0][:1]:
        yield Finding(f"two sessions have different instructions: {differing(first, second)}", do)
    if first and second and first[0][1] != second[0][1]:
        yield Finding("two sessions have different tools", "let their descriptions be constant")
    for (messages, tools), (later, also) in itertools.pairwise(first):
        if later[: len(messages)] != messages:
            yield Finding("a request does not begin as the one before", do)
            return
        if tools != also:
            yield Finding("the tools change in a session", "add them in init_agent")
            return


def differing(first: list[Any], second: list[Any]) -> str:
    """The first line that differs."""
    pairs = zip(str(first[0][0][0]).split("\\n"), str(second[0][0][0]).split("\\n"), strict=False)
    return next((f"{a[:80]!r} and {b[:80]!r}" for a, b in pairs if a != b), "their lengths")


def main(spec: str, file: str) -> None:
    """Check an extension, and write down what is wrong."""
    findings = asyncio.run(check(spec))
    lines = [json.dumps(finding.table) for finding in findings]
    Path(file).write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
