"""A session as one page that needs nothing else, without the secrets that are known.

  crow export --html SESSION           writes crow-TITLE.html here
  crow export --html SESSION -o FILE   there; - is standard output
  crow export --html FILE              the same of a conversation in a file, as crow view FILE

What was taken out is counted, and said: look at the page before you give it to others.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from crow.cli import Output, UsageError, declare_agent, load_agent
from crow.cli.session_lookup import store_of, store_with, whole_id
from crow.core.agent import Agent
from crow.core.secrets import HIDDEN, spellings
from crow.ports.stores import ExportStore
from crow.view.cli import lines_of
from crow.view.document import document
from crow.view.markdown import dressed
from crow.view.server import asset

KINDS: dict[str, str] = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{20,8000}?-----END [A-Z ]*KEY-----",
    "a key of a model provider": r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})",
    "a token of GitLab": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "a token of Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a key of AWS": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a key of Google": r"\bAIza[A-Za-z0-9_-]{35}\b",
    "a web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a password in an address": r"(?<=://)[^\s:/@\"']{1,64}:[^\s/@\"']{1,128}(?=@)",
}
"""What secrets look like that Crow does not use itself."""


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of ``crow export``."""
    parser.add_argument("session", metavar="SESSION", help="its id, or how that begins; or a file")
    parser.add_argument("--html", action="store_true", help="as a page")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; - is standard output")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow export``."""
    if not options.html:
        raise UsageError("crow export --html SESSION is a page; crow sessions export has the rest")
    return asyncio.run(_export(load_agent(options, out, reads=True), options, out))


async def _export(agent: Agent, options: argparse.Namespace, out: Output) -> int:
    async with agent:
        path = Path(os.path.expanduser(options.session))
        if await asyncio.to_thread(path.is_file):
            session_id, lines = path.stem, await asyncio.to_thread(lines_of, path)
        else:
            store = store_of(agent)
            session_id = await whole_id(store, options.session)
            lines = await store_with(store, ExportStore).export(session_id)
        text, hidden = without_secrets(lines, agent.secrets)
        made = document(text)
        page = page_of(made, hidden)
    words = re.sub(r"\W+", "-", str(made["session"]["title"]).casefold()).strip("-")[:40]
    name = options.output or f"crow-{words or session_id[:8]}.html"
    if name == "-":
        out.verbatim(page.rstrip("\n"))
        return 0
    await asyncio.to_thread(Path(name).write_text, page, "utf-8")
    out.line(name)
    for what, number in hidden.items():
        out.note(f"taken out: {what}, {number} times")
    return 0


def without_secrets(lines: str, secrets: Any) -> tuple[str, Counter[str]]:
    """The text without what is secret in it, and how often what was taken out."""
    hidden: Counter[str] = Counter()
    for spelling in spellings(secrets):
        if number := lines.count(spelling):
            hidden["a secret that Crow knows"] += number
            lines = lines.replace(spelling, HIDDEN)
    for kind, pattern in KINDS.items():
        lines, number = re.subn(pattern, HIDDEN, lines)
        if number:
            hidden[kind] += number
    return lines, hidden


def page_of(made: dict[str, Any], hidden: Counter[str]) -> str:
    """The page with everything in it."""
    data = json.dumps({**dressed(made), "hidden": hidden}, ensure_ascii=False, default=str)
    data = data.encode(errors="replace").decode().replace("<", "\\u003c")
    style, script = asset("view.css").decode(), asset("view.js").decode()
    policy = (
        f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}"
    )
    html = asset("index.html").decode()
    html = html.replace('<link rel="stylesheet" href="view.css">', f"<style>{style}</style>")
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    html = html.replace("<!-- policy -->", meta)
    whole = f'<script type="application/json" id="data">{data}</script>'
    script = f'<script type="module">{script}</script>'
    return html.replace('<script type="module" src="view.js"></script>', whole + script)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
