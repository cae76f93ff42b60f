"""A language server reads what the model wrote, and the model reads what it says, once a turn.

    crow run --extension examples/diagnostics.py "Add a function to main.py"

Any server with pull diagnostics does; pygls has to be installed. A slow one costs a turn `wait`
seconds at most: what it says after that is told in a later one.
"""

import asyncio
from pathlib import Path

from pygls.client import JsonRPCClient

from crow import Session, TurnContext


class Diagnostics:
    def __init__(self, command: str = "ruff server", suffix: str = ".py", wait: float = 5) -> None:
        self.command, self.suffix, self.wait = command.split(), suffix, wait

    async def after_turn(self, ctx: TurnContext) -> None:
        diffs = [diff for call in ctx.results if call.result for diff in call.result.diffs]
        paths = {Path(diff.path) for diff in diffs if diff.path.endswith(self.suffix)}
        server = ctx.agent.extensions_of(ctx.session).get("language_server")
        if server is None and paths:  # starts with the first change, ends with the session
            server = ctx.session.use(_LanguageServer(self.command), name="language_server")
            await ctx.session.scope.start()
        if server is None or not (server.asked or paths):
            return
        server.asked |= {asyncio.create_task(server.problems(path)) for path in paths}
        done, server.asked = await asyncio.wait(server.asked, timeout=self.wait if paths else 0)
        if news := sorted(line for task in done for line in task.result()):
            await ctx.inject_context("The language server says:\n" + "\n".join(news))


class _LanguageServer:
    def __init__(self, command: list[str]) -> None:
        self.command, self.asked = command, set[asyncio.Task[list[str]]]()

    async def lifespan(self, session: Session):
        client = JsonRPCClient()
        await client.start_io(*self.command)  # pyright: ignore[reportUnknownMemberType]
        self.ask, self.tell = client.protocol.send_request_async, client.protocol.notify
        uri = Path(session.cwd).as_uri()
        self.ready = self.ask("initialize", {"capabilities": {}, "processId": None, "rootUri": uri})
        self.ready.add_done_callback(lambda _: self.tell("initialized", {}))
        yield
        await asyncio.wait(questions := [*self.asked, self.ready, self.ask("shutdown")], timeout=1)
        getattr(client.protocol.writer, "close")()  # noqa: B009 - where no input is left, they end
        await asyncio.gather(client.stop(), *questions, return_exceptions=True)

    async def problems(self, path: Path) -> list[str]:
        await asyncio.shield(self.ready)
        file = {"uri": path.as_uri()}
        text = {**file, "languageId": "python", "version": 1, "text": path.read_text()}
        self.tell("textDocument/didOpen", {"textDocument": text})
        report = await self.ask("textDocument/diagnostic", {"textDocument": file})
        self.tell("textDocument/didClose", {"textDocument": file})
        return [f"{path}:{each.range.start.line + 1}: {each.message}" for each in report.items]
