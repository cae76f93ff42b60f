"""Secrets stay here: what looks like one is a word to the model, and itself again for the tools.

    crow run --extension examples/redact.py "Call the service with the key in .env"

Both directions: prompts and results are masked before the model reads them, and where the model
writes the mask into a call, the tool gets the secret. Masks are the same in every request, so that
the provider's cache holds; the secrets are never stored.
"""

import json
import re
from typing import Any

from crow import RunContext, ToolContext, ToolResult

SECRETS = re.compile(r"AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}|sk-[\w-]{20,}|(?<=password=)\S+")


class Redact:
    def __init__(self) -> None:
        self.masks: dict[str, str] = {}  # by secret; in memory alone

    def mask(self, text: str) -> str:
        def word(found: re.Match[str]) -> str:
            return self.masks.setdefault(found[0], f"<secret-{len(self.masks) + 1}>")

        return SECRETS.sub(word, text)

    def unmask(self, args: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(args)
        for secret, mask in self.masks.items():
            text = text.replace(mask, json.dumps(secret)[1:-1])
        return json.loads(text)

    def before_run(self, ctx: RunContext) -> None:
        if isinstance(ctx.prompt, str):
            ctx.prompt = self.mask(ctx.prompt)

    def before_tool(self, ctx: ToolContext) -> None:
        ctx.args = self.unmask(ctx.args)

    def after_tool(self, ctx: ToolContext) -> None:
        if ctx.result is not None and isinstance(ctx.result.content, str):
            masked = self.mask(ctx.result.content)
            ctx.result = ToolResult(masked, ctx.result.error, None, ctx.result.diffs)
