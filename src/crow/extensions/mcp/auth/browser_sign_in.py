"""A sign-in with a browser on this machine, or one whose last address a person pastes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from crow.extensions.mcp.auth.redirect import Listener
from crow.extensions.mcp.auth.sign_in import Redirected

PATIENCE = 600.0
"""Seconds that a person may take for signing in."""


class BrowserSignIn:
    """A `SignIn`. ``show`` shows a page, and may hand the listener an address that was pasted.

    ``waits`` is called with True where it depends on the person from then on, with False after.
    """

    def __init__(
        self,
        show: Callable[[str, Listener], Awaitable[None]],
        waits: Callable[[bool], None],
        patience: float = PATIENCE,
    ) -> None:
        self._show = show
        self._waits = waits
        self._patience = patience
        self._listener: Listener | None = None
        self._showing: asyncio.Future[None] | None = None

    async def open(self, port: int, host: str, path: str) -> str:
        """Listen; the address that the browser is to be sent to."""
        await self.close()
        self._listener = Listener(path)
        port = await self._listener.open(port)
        return f"http://{host}:{port}{path}"

    async def visit(self, url: str) -> None:
        """Show a page."""
        assert self._listener is not None
        self._waits(True)
        self._listener.expect(url)
        self._showing = asyncio.ensure_future(self._show(url, self._listener))

    async def redirected(self) -> Redirected:
        """Wait for the browser, as long as the page is not refused."""
        assert self._listener is not None
        assert self._showing is not None
        arrived, showing = self._listener.arrived, self._showing
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.wait({arrived, showing}, return_when=asyncio.FIRST_COMPLETED)
                if not arrived.done():
                    await showing  # which may have failed
                return await arrived
        except TimeoutError:
            raise OSError(f"nobody signed in within {self._patience:g} s") from None
        finally:
            self._waits(False)

    async def close(self) -> None:
        """Listen no more, and take the page away."""
        if self._showing is not None:
            self._showing.cancel()
            await asyncio.wait({self._showing})
        if self._listener is not None:
            self._listener.close()
        self._listener = self._showing = None
