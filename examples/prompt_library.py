"""A folder of prompts, each a command: `/review-file src/main.py` sends `prompts/review-file.md`.

    crow run --extension examples/prompt_library.py "/review-file README.md"

`$ARGUMENTS` and `$1` stand for what is typed. It is put in once and as it is: a `$1` in an argument
stays one, and none of it is run by a shell. The folder is read when a session begins.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from crow import Command, CommandContext, SessionContext


@dataclass
class PromptLibrary:
    folder: str = "prompts"
    """Below the session's folder, or a whole path."""

    def on_session_start(self, ctx: SessionContext) -> None:
        for path in sorted(Path(ctx.cwd, self.folder).expanduser().glob("*.md")):
            about = path.read_text().strip().partition("\n")[0].lstrip("# ")
            ctx.session.add_command(
                Command(path.stem, about, Prompt(path).fill, hint="[arguments]")
            )


class Prompt:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, ctx: CommandContext) -> str:
        words = shlex.split(ctx.args) if ctx.args.count('"') % 2 == 0 else ctx.args.split()

        def value(found: re.Match[str]) -> str:
            number = found[1]
            return ctx.args if number is None else "".join(words[int(number) - 1 : int(number)])

        return re.sub(r"\$(?:ARGUMENTS|([1-9]))", value, self.path.read_text())
