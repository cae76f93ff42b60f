"""A message to a webhook when the agent waits for somebody, or is done after a while.

    export CROW_WEBHOOK=https://ntfy.sh/my-topic
    crow run --extension examples/notify.py "Fix the failing test"

It runs beside the conversation (`background`), so that a slow server costs nothing; one that fails
is told in the log. What was said in the conversation is not sent.
"""

import asyncio
import json
import os
import time
from pathlib import Path
from urllib.request import Request, urlopen

from crow import NotificationContext, RunContext, hook


class Notify:
    def __init__(self, url: str = "", after: float = 30.0) -> None:
        self.url, self.after = url or os.environ.get("CROW_WEBHOOK", ""), after

    def before_run(self, ctx: RunContext) -> None:
        ctx.state["began"] = time.time()

    @hook("on_notification", background=True)
    async def waits(self, ctx: NotificationContext) -> None:
        await self.send(ctx.cwd, "waits for you", ctx.kind)

    @hook("after_run", background=True)
    async def is_done(self, ctx: RunContext) -> None:
        if time.time() - ctx.state.get("began", 0) >= self.after:
            await self.send(ctx.cwd, "is done", ctx.stop_reason)

    async def send(self, folder: str, what: str, why: str) -> None:
        body = {"text": f"Crow {what} in {Path(folder).name}", "why": why}
        headers = {"Content-Type": "application/json"}
        request = Request(self.url, json.dumps(body).encode(), headers)
        if self.url.startswith(("http://", "https://")):
            await asyncio.to_thread(lambda: urlopen(request, timeout=10).close())
