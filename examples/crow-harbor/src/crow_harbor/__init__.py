"""Crow as an agent of Harbor: installed in a task's environment, run once, and read afterwards."""

import json
import shlex
from pathlib import Path
from typing import Any, override

from harbor.agents.agent_auth_resolution import ModelConnectionSpec, ProviderAccess
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.model_api_format import ModelApiFormat

__all__ = ["CrowAgent"]

UPLOADED = "/installed-agent"
ON_PATH = 'export PATH="$HOME/.local/bin:$PATH"; '
INSTALL = """set -eu
if ! command -v uv >/dev/null; then
    if python3 -m venv "$HOME/.crow-uv" 2>/dev/null && "$HOME/.crow-uv/bin/pip" install -q uv; then
        mkdir -p "$HOME/.local/bin" && ln -sf "$HOME/.crow-uv/bin/uv" "$HOME/.local/bin/uv"
    else
        curl -LsSf https://astral.sh/uv/install.sh | sh
    fi
fi
uv tool install --force --python '>=3.11' {package}
crow --version
"""
RUN = """crow run {options} {instruction} > {logs}/crow.json 2> {logs}/crow.txt < /dev/null
status=$?
session=$(crow sessions --all --limit 1 --json | sed -n '1s/.*"id": *"\\([^"]*\\)".*/\\1/p')
crow sessions export --format atif "$session" > {logs}/trajectory.json
cat {logs}/crow.txt >&2
exit $status
"""


class CrowAgent(BaseInstalledAgent):
    """Runs a task's instruction as one prompt, asked nobody.

    ``package`` is what is installed: a requirement, or a wheel of this machine; ``mode`` the mode
    of permissions; ``settings`` one more settings file, of this machine.
    """

    capabilities = AgentCapabilities(base_url=True, atif=True)
    MODEL_CONNECTION = ModelConnectionSpec(
        agent_provider_access=ProviderAccess(
            api_key_candidate_names=["CROW_API_KEY"], base_url_candidate_names=["CROW_BASE_URL"]
        ),
        base_url_destination_names={"default": "CROW_BASE_URL"},
        supported_api_formats=[
            ModelApiFormat.OPENAI_CHAT_COMPLETIONS,
            ModelApiFormat.OPENAI_RESPONSES,
            ModelApiFormat.ANTHROPIC_MESSAGES,
        ],
    )

    def __init__(
        self,
        *args: Any,
        package: str = "crow-acp",
        mode: str = "bypassPermissions",
        settings: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._mode = mode
        self._settings = settings

    @staticmethod
    @override
    def name() -> str:
        """``crow``."""
        return "crow"

    @override
    def get_version_command(self) -> str | None:
        """What says which version is installed."""
        return ON_PATH + "crow --version"

    @override
    def parse_version(self, stdout: str) -> str:
        """The version alone."""
        return stdout.rsplit(maxsplit=1)[-1]

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        """Install Crow with uv, and that where it is not there."""
        package = self._package
        if Path(package).is_file():
            await self.exec_as_root(environment, command=f"mkdir -p {UPLOADED}")
            package = f"{UPLOADED}/{Path(package).name}"
            await environment.upload_file(self._package, package)
        elif self._version:
            package = f"{package}=={self._version}"
        command = ON_PATH + INSTALL.format(package=shlex.quote(package))
        await self.exec_as_agent(environment, command=command)

    @override
    @with_prompt_template
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Run the instruction; the trajectory is written also where that fails."""
        options = ["--mode", self._mode, "--output-format", "json", "--no-sandbox"]
        if self.model_name:
            options += ["--model", self.model_name]
        if self._settings:
            there = f"{UPLOADED}/settings.json"
            await self.exec_as_root(environment, command=f"mkdir -p {UPLOADED}")
            await environment.upload_file(self._settings, there)
            options += ["--settings", there]
        command = ON_PATH + RUN.format(
            options=shlex.join(options),
            instruction=shlex.quote(instruction),
            logs=self.environment_logs_dir,
        )
        await self.exec_as_agent(environment, command=command, env=self._access())

    def _access(self) -> dict[str, str]:
        """The variables that lead to the model."""
        access = self.model_connection
        env = dict(access.env)
        if access.execution_base_url is not None:
            env["CROW_BASE_URL"] = access.execution_base_url
        if access.api_key is not None:
            env["CROW_API_KEY"] = access.api_key
        return env

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        """Take tokens and cost from the trajectory."""
        try:
            told = json.loads((self.logs_dir / "trajectory.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            self.logger.warning("Crow has left no trajectory: %s", error)
            return
        total = told["final_metrics"]
        context.n_input_tokens = total["total_prompt_tokens"]
        context.n_output_tokens = total["total_completion_tokens"]
        context.n_cache_tokens = total["total_cached_tokens"]
        context.cost_usd = total.get("total_cost_usd")
        context.metadata = {"session_id": told["session_id"], "version": told["agent"]["version"]}
