"""The client's files: what its user sees, unsaved changes included."""

from __future__ import annotations

from crow.acp import bounds
from crow.acp.peer import ClientError, Peer

TIMEOUT = 30.0


class EditorFiles:
    """Reads and writes through the client, in the name of one session."""

    def __init__(self, peer: Peer, session_id: str) -> None:
        self._peer = peer
        self._session_id = session_id
        self._timeout = peer.abilities.patience or TIMEOUT

    async def read(self, path: str) -> str:
        """The text of a file. Raises ``FileNotFoundError``, ``PermissionError`` or ``OSError``."""
        params = {"sessionId": self._session_id, "path": path}
        try:
            result = await self._peer.request("fs/read_text_file", params, self._timeout)
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
        params = {"sessionId": self._session_id, "path": path, "content": text}
        bounds.demand_carried(params)
        try:
            await self._peer.request("fs/write_text_file", params, self._timeout)
        except ClientError as error:
            raise _told(error) from None


def _told(error: ClientError) -> OSError:
    """A refusal is one; any other error says only that the client cannot."""
    return PermissionError(str(error)) if error.is_refusal else error
