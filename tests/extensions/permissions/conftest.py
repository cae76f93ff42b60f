"""What the permission tests share: a workspace with secrets, links and a neighbour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crow.extensions.permissions import Decision, LocalDisk, Permissions


@dataclass
class World:
    """A workspace ``cwd``, a ``home`` and what is around them."""

    top: Path

    @property
    def cwd(self) -> Path:
        return self.top / "work"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def disk(self) -> LocalDisk:
        return LocalDisk(str(self.home), "/usr/local/bin:/usr/bin:/bin")

    def fill(self, value: Any) -> Any:
        """The value with its placeholders replaced."""
        if isinstance(value, str):
            for name, path in (("CWD", self.cwd), ("HOME", self.home), ("TMP", self.top)):
                value = value.replace(f"@{name}@", str(path))
            return value
        if isinstance(value, dict):
            return {key: self.fill(one) for key, one in value.items()}
        return [self.fill(one) for one in value] if isinstance(value, list) else value

    def permissions(self, **options: Any) -> Permissions:
        return Permissions.of(disk=self.disk, **options)

    def judge(self, command: str, **options: Any) -> Decision:
        """The decision on a shell command."""
        return self.permissions(**options).judge("Bash", {"command": command}, cwd=str(self.cwd))


@pytest.fixture(scope="session")
def make_world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], World]:
    def made() -> World:
        world = World(tmp_path_factory.mktemp("world").resolve())
        for path, text in (
            ("work/README.md", "a\n"),
            ("work/.env", "SECRET=1\n"),
            ("work/config/.env", "SECRET=2\n"),
            ("work/src/app.ts", "x\n"),
            ("work/two", "x\n"),
            ("work/dist/old.js", ""),
            ("work/out/other", ""),
            ("work/odd/x", ""),
            ("other/x", ""),
            ("home/.ssh/id_rsa", "key\n"),
        ):
            (world.top / path).parent.mkdir(parents=True, exist_ok=True)
            (world.top / path).write_text(text)
        for link, target in (
            ("odd/lnk", "/tmp"),
            ("odd/dang", str(world.top / "missing")),
            ("inlnk", "src"),
            ("out/app.ts", "/etc/passwd"),
        ):
            (world.cwd / link).symlink_to(target)
        (world.cwd / "hard").hardlink_to(world.cwd / "two")
        return world

    return made


@pytest.fixture(scope="session")
def world(make_world: Callable[[], World]) -> World:
    """A workspace that no test changes."""
    return make_world()
