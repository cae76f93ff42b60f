"""A bare loop over a socket: the floor of what Python can do."""

from __future__ import annotations

import asyncio
import sys

from sockets import Model  # type: ignore[import-not-found]


async def main() -> None:
    model = Model(sys.argv[1])
    while calls := await model.ask():
        for call in calls:
            await model.run(call)
    print(model.messages[-1]["content"])


asyncio.run(main())
