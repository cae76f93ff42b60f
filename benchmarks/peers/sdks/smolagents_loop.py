"""smolagents, which calls tools and streams, synchronously."""

from __future__ import annotations

import subprocess

from shell import BASE, LIMIT, PROMPT  # type: ignore[import-not-found]
from smolagents import OpenAIServerModel, ToolCallingAgent, tool  # type: ignore[import-not-found]


@tool
def run_command(command: str) -> str:
    """Run a shell command.

    Args:
        command: The command.
    """
    shell = ["/bin/bash", "-c", command]
    return subprocess.run(shell, check=False, capture_output=True, text=True).stdout


model = OpenAIServerModel("double", api_base=BASE, api_key="x")
agent = ToolCallingAgent(
    [run_command], model, max_steps=LIMIT, stream_outputs=True, verbosity_level=0
)
print(agent.run(PROMPT))
