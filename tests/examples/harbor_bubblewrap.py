"""An environment of Harbor's in bubblewrap: a root of its own, with the programs of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

SHOWN = ("/usr", "/etc/ssl", "/etc/pki", "/etc/resolv.conf", "/etc/passwd", "/etc/group")
LINKS = ("bin", "sbin", "lib", "lib64")
PASSED = ("PIP_CERT", "SSL_CERT_FILE", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_SYSTEM_CERTS")


class BubblewrapEnvironment(BaseEnvironment):
    """Commands see a folder of the trial as their root."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.root = self.trial_paths.trial_dir / "root"

    @staticmethod
    def type() -> str:
        return "bubblewrap"

    def _validate_definition(self) -> None:
        pass

    async def start(self, force_build: bool) -> None:
        for name in ("app", "root", "tmp", "etc", "logs/agent", "logs/verifier", "logs/artifacts"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    async def stop(self, delete: bool) -> None:
        if delete:
            shutil.rmtree(self.root, ignore_errors=True)

    def at(self, path: str) -> Path:
        return self.root / str(path).lstrip("/")

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self.at(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self.at(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self.at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self.at(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self.at(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        words = ["bwrap", "--bind", str(self.root), "/", "--dev", "/dev", "--proc", "/proc"]
        for path in filter(os.path.exists, SHOWN):
            words += ["--ro-bind", path, path]
        for name in LINKS:
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        words += ["--unshare-pid", "--die-with-parent", "--chdir", cwd or "/app"]
        given = {name: os.environ[name] for name in PASSED if name in os.environ}
        given |= {"HOME": "/root", "PATH": "/usr/local/bin:/usr/bin:/bin", **(env or {})}
        process = await asyncio.create_subprocess_exec(
            *words,
            *("bash", "-c", command),
            env=given,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(timeout_sec):
            out, err = await process.communicate()
        return ExecResult(
            stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0
        )
