"""Resources of extensions: entered in order before the first run, left in reverse at the end.

Each extension's ``lifespan`` lives in a task of its own, so that it is left where it was entered.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from crow.core.errors import ExtensionError

logger = logging.getLogger("crow.extensions")

ENTER_TIMEOUT = 30.0
LEAVE_TIMEOUT = 5.0


class Lifespan:
    """One extension's ``async def lifespan(self, agent): ... yield ...``."""

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        agent: object,
        *,
        enter_timeout: float = ENTER_TIMEOUT,
        leave_timeout: float = LEAVE_TIMEOUT,
    ) -> None:
        self.name = name
        self.enter_timeout = enter_timeout
        self.leave_timeout = leave_timeout
        self._make = make
        self._agent = agent
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def entered(self) -> bool:
        """True once it was begun."""
        return self._task is not None

    async def enter(self) -> None:
        """Run the part before ``yield``. Raises `ExtensionError` where that fails or hangs."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready), name=f"lifespan of {self.name}")
        try:
            async with asyncio.timeout(self.enter_timeout):
                await ready
        except TimeoutError:
            self._task.cancel()
            raise ExtensionError(
                f"the extension {self.name} did not start within {self.enter_timeout:g} s"
            ) from None

    async def leave(self) -> None:
        """Run the part behind ``yield``; what fails or hangs there is logged."""
        if self._task is None:
            return
        self._leave.set()
        _, late = await asyncio.wait({self._task}, timeout=self.leave_timeout)
        if late:
            logger.warning(
                "the extension %s did not stop within %g s", self.name, self.leave_timeout
            )
            self._task.cancel()

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._context():
                ready.set_result(None)
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001 - somebody else's code
            if ready.done():
                logger.warning("the extension %s failed to stop: %r", self.name, error)
            else:
                text = f"the extension {self.name} failed to start: {error!r}"
                ready.set_exception(ExtensionError(text))

    def _context(self) -> AbstractAsyncContextManager[Any]:
        if inspect.isasyncgenfunction(self._make):
            return asynccontextmanager(self._make)(self._agent)
        return self._make(self._agent)
