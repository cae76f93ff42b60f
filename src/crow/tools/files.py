"""The files of a session: what the client's user sees of them, else what is on the disk.

What is on the disk decides whether a file exists. What the model has seen of each file is
remembered, so that nothing is written over a version that it does not know.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace

from crow.core.cache import Key
from crow.core.ports.tool import ToolEnvironment
from crow.core.support.frozen import frozen
from crow.tools.disk import LARGEST, read_whole, replace_file
from crow.tools.encoding import Encoding, decode
from crow.tools.errors import ToolError

_MARK = "\ufeff"


@frozen
class Document:
    """A file as it is now. ``text`` is what counts: the client's where that has unsaved changes.

    ``status`` is None where it is not on the disk; ``has_buffer`` says that the client has it,
    ``stale_buffer`` is the hash of what it has where the disk is newer.
    """

    real: str
    text: str
    encoding: Encoding
    status: os.stat_result | None
    disk_text: str | None
    has_buffer: bool = False
    stale_buffer: int | None = None
    note: str = ""

    @property
    def is_unsaved(self) -> bool:
        """True where the client has changes that are not on the disk."""
        return self.has_buffer and self.text != self.disk_text


@frozen
class Seen:
    """Hashes of what the model knows of a file, and of what the disk had at that time."""

    text: int
    disk: int
    stale_buffer: int | None


@dataclass(slots=True)
class SeenFiles:
    """The files that the model has seen, by real path; lives in the session's cache."""

    seen: dict[str, Seen] = field(default_factory=dict[str, Seen])
    locks: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])

    @classmethod
    def of(cls, ctx: ToolEnvironment) -> SeenFiles:
        """The session's own."""
        return SEEN_FILES.setdefault(ctx, cls())

    def lock(self, real: str) -> asyncio.Lock:
        """One writer a file: calls of one turn run at the same time."""
        return self.locks.setdefault(real, asyncio.Lock())

    def remember(self, document: Document) -> None:
        """The model has seen this."""
        self.seen[document.real] = Seen(
            _digest(document.text), _digest(document.disk_text), document.stale_buffer
        )

    def demand_seen(self, document: Document, path: str) -> None:
        """Raise `ToolError` where the model has not seen the file as it is now."""
        seen = self.seen.get(document.real)
        if seen is None:
            raise ToolError(f"{path} has not been read in this session. Read it first.")
        if seen.text != _digest(document.text):
            raise ToolError(
                f"{path} has changed since it was read, by the user or by a program. "
                "Read it again before changing it."
            )


async def load(
    ctx: ToolEnvironment, path: str, real: str, *, drafts: bool = False
) -> Document | None:
    """A file as it is now; None where there is none.

    ``path`` is the name that the client knows, ``real`` where it is. Clients answer for a file
    that they do not have with an error or with empty text, and some show the user an error each
    time: one that is not on the disk is asked for only where the model knows it as a draft, or
    with ``drafts``. Raises `ToolError` for what is no text, ``OSError`` for what cannot be read.
    """
    seen = SeenFiles.of(ctx).seen.get(real)
    found = await asyncio.to_thread(read_whole, real)
    if found is None:
        return await _draft(ctx, path, real, seen) if drafts or seen else None
    document = await asyncio.to_thread(_from_disk, path, real, *found)
    buffer = await _buffer(ctx, path, document)
    return document if buffer is None else _with_buffer(document, buffer, seen)


async def _draft(ctx: ToolEnvironment, path: str, real: str, seen: Seen | None) -> Document | None:
    """Text that the client alone has; None where that is what is left of a removed file."""
    buffer = await _buffer(ctx, path, None)
    is_left = seen is not None and seen.disk == _digest(buffer) == seen.text
    if not buffer or is_left:
        return None
    return Document(real, buffer, Encoding(), None, None, has_buffer=True, note=_UNSAVED)


_UNSAVED = "The editor has changes that are not saved; they are shown here."
_STALE = "The file changed on the disk behind the editor's back; the disk's text is shown here."


def _from_disk(path: str, real: str, data: bytes, status: os.stat_result) -> Document:
    decoded = decode(data)
    if decoded is None:
        raise ToolError(f"{path} is binary, not text ({len(data)} bytes).")
    text, encoding = decoded
    return Document(real, text, encoding, status, text)


async def _buffer(ctx: ToolEnvironment, path: str, document: Document | None) -> str | None:
    """What the client has; None where it has no such file or cannot say.

    Empty text is what some say of a file that they do not have. Text that is not UTF-8 is left to
    the disk: the protocol could not give it back. Raises `ToolError` where the client refuses:
    then the disk is no way around it.
    """
    files = ctx.client.files
    if files is None or (document and document.encoding.codec != "utf-8"):
        return None
    try:
        text = await files.read(path)
    except PermissionError as error:
        raise ToolError(f"The editor refused to read {path}: {error}") from error
    except OSError:
        return None
    return text if text or (document and not document.text) else None


def _with_buffer(document: Document, buffer: str, seen: Seen | None) -> Document:
    """The client's text where it differs from the disk's in more than line ends and mark.

    A buffer that was the disk's text when the model saw it, while the disk has moved on, is
    merely stale; one that had changes of its own then is not.
    """
    if _plain(buffer) == _plain(document.text):
        return replace(document, has_buffer=True)
    known = _digest(buffer)
    was_saved = seen is not None and seen.text == seen.disk == known
    if was_saved or (seen is not None and seen.stale_buffer == known):
        return replace(document, has_buffer=True, stale_buffer=known, note=_STALE)
    text = buffer.removeprefix(_MARK) if document.encoding.mark else buffer
    return replace(document, text=text, has_buffer=True, note=_UNSAVED)


def _plain(text: str) -> str:
    return text.removeprefix(_MARK).replace("\r\n", "\n")


def _digest(text: str | None) -> int:
    """Differs where texts differ, line ends and mark apart; of this process only."""
    return hash(text if text is None else _plain(text))


async def store(
    ctx: ToolEnvironment, path: str, real: str, text: str, before: Document | None
) -> str:
    """Write a file through the client, else to the disk; what the user should know of it.

    ``before`` is the document that it replaces. Raises `ToolError` or ``OSError``; then nothing
    was written.
    """
    encoding = before.encoding if before else Encoding()
    data = encoding.encode(text)
    demand_small(path, len(data))
    if await _written_by_client(ctx, path, text, before, encoding):
        return await _compare(ctx, real, text)
    await asyncio.to_thread(replace_file, real, data, before.status if before else None)
    after = Document(real, text, encoding, None, text)
    SeenFiles.of(ctx).remember(after)
    return ""


def demand_small(path: str, size: int) -> None:
    """Raise `ToolError` for more than a file may have that can be read and changed again."""
    if size > LARGEST:
        raise ToolError(f"{path} would have {size} bytes; files up to {LARGEST} are written.")


async def _written_by_client(
    ctx: ToolEnvironment, path: str, text: str, before: Document | None, encoding: Encoding
) -> bool:
    files = ctx.client.files
    if files is None or (before is not None and not before.has_buffer):
        return False
    try:
        await files.write(path, text if not encoding.mark else _MARK + text)
    except PermissionError as error:
        raise ToolError(f"The editor refused to write {path}: {error}") from error
    except OSError as error:
        if before is not None and before.is_unsaved:
            raise ToolError(
                f"The editor has unsaved changes in {path} and could not write it: {error}."
            ) from error
        return False
    return True


def _on_disk(real: str) -> str | None:
    try:
        found = read_whole(real)
    except (OSError, ToolError):
        return None
    decoded = decode(found[0]) if found else None
    return decoded[0] if decoded else None


async def _compare(ctx: ToolEnvironment, real: str, text: str) -> str:
    """Look at the disk after the client wrote."""
    on_disk = await asyncio.to_thread(_on_disk, real)
    same = on_disk is not None and _plain(on_disk) == _plain(text)
    known = on_disk if same and on_disk is not None else text
    SeenFiles.of(ctx).remember(Document(real, known, Encoding(), None, on_disk))
    return "" if same else "The editor has it, but has not saved it to the disk yet."


SEEN_FILES: Key[SeenFiles] = Key("tools.files")


async def refresh_file(ctx: ToolEnvironment, path: str) -> None:
    """Let the model go on editing a file that an extension has changed, such as a formatter.

    Without it Edit and Write want the file to be read again. It changes nothing for a file that the
    model has not seen; what was changed is for the extension to tell. Raises `ToolError` for what
    is no text, ``OSError`` for what cannot be read.
    """
    real = os.path.realpath(path)
    if real in SeenFiles.of(ctx).seen and (document := await load(ctx, path, real)) is not None:
        SeenFiles.of(ctx).remember(document)
