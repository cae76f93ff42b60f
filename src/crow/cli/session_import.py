"""The import of conversations that other programs have on this machine, and of files."""

from __future__ import annotations

import argparse
import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.cli.options import directory
from crow.cli.output import Output
from crow.cli.parser import UsageError
from crow.cli.session_lookup import store_with
from crow.core.errors import SessionError
from crow.ports.stores import ExportStore, ImportStore
from crow.text import columns, one_line, shorten
from crow.transcripts import Transcript, UnknownTranscriptError, read
from crow.transcripts.discovery import Found, conversations, files, named
from crow.transcripts.relocation import moved, whole
from crow.transcripts.transcript import Object, stamp, text_in

if TYPE_CHECKING:
    from crow.core.store import Store

SHORT = 8
LATEST = 100
"""Conversations among which the latest one of a directory is looked for."""
HERE = "."
"""What ``--cwd`` is where nobody gives it."""
LONGER = 13
"""Letters of an id that is made of the time: the first eight are those of a minute."""


def list_foreign(options: argparse.Namespace, out: Output, age: Any) -> None:
    """List what other programs have; with words those in whose prompts and title they all are."""
    cwd, words = str(directory(options)), [word.casefold() for word in options.words]

    def is_wanted(made: Transcript) -> bool:
        if not options.all and made.cwd != cwd:
            return False
        said = "\n".join([made.title, *made.prompts()]).casefold() if words else ""
        return all(word in said for word in words)

    shown = 0
    for path, made in conversations(Path.home(), os.environ, is_wanted):
        if shown == options.limit:
            break
        shown += 1
        if options.json:
            about = {"program": made.program, "id": made.id, "cwd": made.cwd, "title": made.title}
            about |= {"updated": stamp(made.latest), "messages": made.messages, "file": str(path)}
            out.verbatim(json.dumps(about))
            continue
        when = age(datetime.fromtimestamp(made.latest, UTC).isoformat())
        head = f"{made.id[:LONGER]}  {made.program:6}  {when:>9}  {made.messages:>5} messages  "
        place = f"  [{made.cwd}]" if options.all else ""
        room = out.width - columns(head) if out.is_terminal else 10_000
        title = shorten(f"{one_line(made.title) or '(no title)'}{place}", room)
        out.raw(f"{out.styled(head, 'dim')}{title}")
    if not shown and not options.json:
        where = "" if options.all else f" in {cwd}; --all looks in every directory"
        of = f" with {' '.join(options.words)!r}" if words else ""
        out.line(f"Claude Code, Codex, opencode and pi have no conversation{of}{where}")


async def import_file(store: Store, options: argparse.Namespace, out: Output) -> None:
    """Store a conversation of elsewhere as a session, for this machine's folders."""
    paths = [_pair(each) for each in options.map]
    cwd = str(directory(options)) if options.cwd != HERE else ""
    head, rows = await _kept(store, _text(options.words[0]), options.words[0], paths, cwd)
    session_id = str(head["id"])
    if options.json:
        out.verbatim(json.dumps({"id": session_id, "cwd": head["cwd"], "records": len(rows)}))
        return
    out.line(f"{session_id[:SHORT]} in {head['cwd']}: {len(rows)} records")
    out.line(f'crow run --resume {session_id[:SHORT]} "..." goes on', "dim")


async def import_foreign(store: Store, start: str) -> tuple[str, str] | None:
    """The session of another program's conversation whose id begins so, and the program.

    It is stored now, unless that has been done before; then there is no program to speak of. None
    where there is no such conversation. Raises `SessionError` where it cannot be taken in.
    """
    found = named(Path.home(), os.environ, start)
    return await _brought(store, _read(found[0]), start) if len(found) == 1 else None


async def import_latest(store: Store, cwd: str) -> tuple[str, str] | None:
    """The same for the latest conversation in a directory, among the latest of all."""
    for each in islice(files(Path.home(), os.environ), LATEST):
        with suppress(OSError, UnknownTranscriptError):
            text = each.text
            made = read(text)
            if isinstance(made, Transcript) and made.cwd == cwd:
                return await _brought(store, text, made.id)
    return None


async def _brought(store: Store, text: str, word: str) -> tuple[str, str]:
    made = read(text)
    if isinstance(made, Transcript) and await _is_there(store, made.session_id):
        return made.session_id, ""
    head, _ = await _kept(store, text, word, (), "")
    return str(head["id"]), made.program if isinstance(made, Transcript) else ""


async def _kept(
    store: Store, text: str, word: str, paths: Sequence[tuple[str, str]], cwd: str
) -> tuple[Object, list[Object]]:
    """The session that a text was stored as, in ``cwd`` where that is given, and its rows."""
    add = store_with(store, ImportStore).add
    try:
        made = read(text)
    except UnknownTranscriptError as error:
        raise SessionError(f"{word}: {error}") from None
    head, rows = moved(text if isinstance(made, str) else made.lines(), paths)
    was = text_in(head.get("cwd"))
    if cwd not in ("", was):
        head, rows = moved(whole(head, rows), [(was, cwd)] if was else [])
        head["cwd"] = cwd
    here = Path(text_in(head.get("cwd")))
    if not (here.is_absolute() and here.is_dir()):
        raise SessionError(
            f"its folder is not here: {was or '(unknown)'}; --map {was or 'OLD'}=NEW, or --cwd DIR"
        )
    head["id"] = str(head.get("id") or uuid.uuid4().hex)
    if isinstance(made, str) and await _is_there(store, head["id"]):
        head["id"] = uuid.uuid4().hex  # an export of what is stored here: a copy
    await add(head["id"], head, rows)
    return head, rows


async def _is_there(store: Store, session_id: str) -> bool:
    try:
        await store_with(store, ExportStore).export(session_id)
    except SessionError:
        return False
    return True


def _pair(given: str) -> tuple[str, str]:
    old, equals, new = given.partition("=")
    before, here = Path(old), Path(os.path.expanduser(new))
    if not equals or not before.is_absolute() or not here.is_absolute():
        raise UsageError(f"--map takes two whole paths, OLD=NEW, not {given!r}")
    return str(before), str(here)


def _text(word: str) -> str:
    """What is in a file, or in that of the conversation whose id begins so; - is what is piped."""
    if word == "-":
        import sys

        return sys.stdin.read()
    path = Path(os.path.expanduser(word))
    if not path.exists():
        found = named(Path.home(), os.environ, word)
        if len(found) != 1:
            many = f"{len(found)} conversations begin with {word!r}: give more of the id"
            none = f"there is no file {word!r}, and no conversation of that id"
            raise SessionError(many if found else f"{none} (crow sessions foreign --all)")
        return _read(found[0])
    return _read(Found(0, path))


def _read(found: Found) -> str:
    try:
        return found.text
    except OSError as error:
        raise SessionError(f"{found.path} cannot be read: {error.strerror}") from error
