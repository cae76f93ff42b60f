"""The client's files: what its user sees, unsaved changes included."""

from __future__ import annotations

from crow.acp.bounds import demand_carried
from crow.acp.errors import ClientError
from crow.acp.lending import Lender

READING, WRITING = 10.0, 30.0
"""Seconds; some clients let their user look at what is to be written."""


class ClientFiles:
    """Reads and writes through the client, in the name of one session."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender

    async def read(self, path: str) -> str:
        """The text of a file. Raises ``FileNotFoundError``, ``PermissionError`` or ``OSError``."""
        try:
            result = await self._lender.request("fs/read_text_file", {"path": path}, READING)
        except ClientError as error:
            if error.is_not_found:
                raise FileNotFoundError(f"there is no file {path}") from None
            raise _told(error) from None
        content = result.get("content")
        if not isinstance(content, str):
            raise OSError(f"the client gave no text for {path}")
        return content

    async def write(self, path: str, text: str) -> None:
        """Replace a file's text. Raises ``PermissionError`` or ``OSError``, also for long texts."""
        params = {"path": path, "content": text}
        demand_carried(params)
        try:
            await self._lender.request("fs/write_text_file", params, WRITING)
        except ClientError as error:
            raise _told(error) from None


def _told(error: ClientError) -> OSError:
    """A refusal is one; any other error says only that the client cannot."""
    return PermissionError(str(error)) if error.is_refusal else error
