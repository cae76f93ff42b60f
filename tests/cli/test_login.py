"""``crow login`` and ``crow logout``: where keys are kept, who reads them, and that none is shown."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import stat
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here

from crow.testing.endpoint import Endpoint, answer, respond

KEY = "sk-secret-1234567890"
KEYRING = '''
import json, os
from pathlib import Path
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

class Keyring(KeyringBackend):
    """Keeps passwords in a file; for a machine without any keyring."""
    priority = 1
    file = Path(os.environ["TEST_KEYRING"])

    def _all(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service, username):
        return self._all().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        self.file.write_text(json.dumps({**self._all(), f"{service}/{username}": password}))

    def delete_password(self, service, username):
        kept = self._all()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError(username)
        self.file.write_text(json.dumps(kept))
'''


@pytest.fixture
def file(home: Path) -> Path:
    """Where keys are kept if there is no keyring."""
    return home / ".config/crow/credentials.json"


@pytest.fixture
def keyring(crow: Crow, tmp_path: Path) -> Path:
    """A keyring that the command finds; its content."""
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring/filed.py").write_text(KEYRING, "utf-8")
    crow.env |= {
        "PYTHONPATH": str(tmp_path / "ring"),
        "PYTHON_KEYRING_BACKEND": "filed.Keyring",
        "TEST_KEYRING": str(tmp_path / "ring.json"),
    }
    return tmp_path / "ring.json"


async def test_a_key_is_kept_in_a_file_that_only_its_owner_can_read(here: Here, file: Path) -> None:
    ended = await here("login", "openai", stdin=f"{KEY}\n")
    assert ended.status == 0
    assert str(file) in ended.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text("utf-8")) == {"openai": {"key": KEY}}
    assert KEY not in ended.out + ended.err


@pytest.mark.slow
async def test_a_key_is_kept_in_the_keyring_where_there_is_one(
    crow: Crow, file: Path, keyring: Path
) -> None:
    ended = await crow("login", "openai", stdin=KEY)
    assert "keyring" in ended.out
    assert json.loads(keyring.read_text("utf-8")) == {"crow/openai": KEY}
    assert KEY not in file.read_text("utf-8")
    assert (await crow("login", "--list")).out == "openai  crow login\n"
    await crow("logout")
    assert json.loads(keyring.read_text("utf-8")) == {}
    assert (await crow("login", "--list")).out == ""


async def test_a_stored_key_is_sent_and_the_environments_goes_before_it(
    crow: Crow, here: Here, project: Path, home: Path
) -> None:
    await here("login", "mistral", stdin=KEY)
    async with Endpoint() as endpoint:
        endpoint.play(answer("One."), answer("Two."))
        settings = {"providers": {"mistral": {"base_url": endpoint.url}}}
        (home / ".crow").mkdir()
        (home / ".crow/settings.json").write_text(json.dumps(settings), "utf-8")
        await crow("run", "--model", "mistral/x", "hello")
        await crow("run", "--model", "mistral/x", "hello", MISTRAL_API_KEY="of-the-environment")
        sent = [request.headers["authorization"] for request in endpoint.requests]
    assert sent == [f"Bearer {KEY}", "Bearer of-the-environment"]


@pytest.mark.slow
async def test_a_refused_key_is_named_by_where_it_came_from(
    crow: Crow, here: Here, home: Path
) -> None:
    await here("login", "mistral", stdin=KEY)
    async with Endpoint() as endpoint:
        endpoint.play(*[respond(401, {"error": {"message": "bad key"}})] * 2)
        settings = {"providers": {"mistral": {"base_url": endpoint.url}}}
        (home / ".crow").mkdir()
        (home / ".crow/settings.json").write_text(json.dumps(settings), "utf-8")
        stored = await crow("run", "--model", "mistral/x", "hello")
        given = await crow("run", "--model", "mistral/x", "hello", MISTRAL_API_KEY="wrong-key-here")
    assert "it came from crow login" in stored.err
    assert "it came from MISTRAL_API_KEY" in given.err
    assert KEY not in stored.err
    assert "wrong-key-here" not in given.err


async def test_logout_removes_one_key_or_all(here: Here, file: Path) -> None:
    for provider in ("openai", "mistral", "kimi"):
        await here("login", provider, stdin=KEY)
    assert (await here("logout", "openai")).out == "the key for openai is removed\n"
    assert set(json.loads(file.read_text("utf-8"))) == {"mistral", "moonshot"}
    unknown = await here("logout", "openai")
    assert unknown.status == 2
    await here("logout")
    assert json.loads(file.read_text("utf-8")) == {}
    assert (await here("logout")).out == "no key is stored\n"


async def test_the_list_tells_where_each_key_comes_from_and_never_the_key(
    crow: Crow, here: Here
) -> None:
    await here("login", "openai", stdin=KEY)
    listed = await crow("login", "--list", MISTRAL_API_KEY="in-the-environment")
    assert listed.out == "mistral  MISTRAL_API_KEY\nopenai   crow login\n"


@pytest.mark.parametrize(
    "argv, typed, complaint",
    [
        (["openai"], "", "no key was given"),
        (["openai"], "sk with blanks", "cannot be sent"),
        (["opnai"], KEY, "did you mean 'openai'"),
        ([], KEY, "crow login PROVIDER"),
    ],
)
async def test_what_is_no_key_is_not_stored(
    here: Here, file: Path, argv: list[str], typed: str, complaint: str
) -> None:
    ended = await here("login", *argv, stdin=typed)
    assert ended.status != 0
    assert complaint in ended.complaint
    assert not file.exists()


async def test_a_damaged_file_is_as_good_as_none(here: Here, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("{", "utf-8")
    assert (await here("login", "--list")).status == 0
    assert (await here("login", "openai", stdin=KEY)).status == 0
    assert json.loads(file.read_text("utf-8")) == {"openai": {"key": KEY}}


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["login"], ["acp", "--login"]])
async def test_in_a_terminal_the_key_is_asked_for_and_not_shown(
    crow: Crow, file: Path, argv: list[str]
) -> None:
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *crow.command(*argv),
        cwd=crow.cwd,
        env={**os.environ, "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = ""
    loop = asyncio.get_running_loop()
    for question, typed in (("provider (openai)", "mistral\n"), ("not shown", f"{KEY}\n")):
        while question not in shown:
            shown += (await loop.run_in_executor(None, os.read, ours, 1024)).decode()
        os.write(ours, typed.encode())
    while "stored in" not in shown:
        shown += (await loop.run_in_executor(None, os.read, ours, 1024)).decode()
    assert await process.wait() == 0
    os.close(ours)
    assert KEY not in shown
    assert json.loads(file.read_text("utf-8")) == {"mistral": {"key": KEY}}
