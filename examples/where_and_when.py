"""The model knows the branch and the day with every prompt: text from a hook becomes context.

    crow run --extension examples/where_and_when.py "What did I change today?"

It stands behind the prompt, so that what came before stays as it was, and in the provider's cache.
"""

import subprocess
from datetime import datetime

from crow import hook


@hook("UserPromptSubmit", thread=True)  # a program is waited for: not on the event loop
def where_and_when(cwd: str) -> str:
    command = ["git", "branch", "--show-current"]
    branch = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False).stdout
    day = datetime.now().astimezone()
    return f"Today is {day:%A, %d %B %Y}. The branch is {branch.strip() or 'none'}."
