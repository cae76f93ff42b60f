"""Every test starts in a home of its own, with no setting or key of the person who runs it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test
from tests import properties

UV_CACHE = os.environ.get("UV_CACHE_DIR", str(Path("~/.cache/uv").expanduser()))
ALL = pytest.StashKey[bool]()
NOBODY = Path(__file__).with_name("nobody.pem")  # a certificate whose key is nowhere
FAR = ("clients", "node", "real", "slow")  # what may install something first
FOREIGN = ("CROW_", "OPENAI_", "ANTHROPIC_", "CLAUDE_", "OTEL_", "GIT_", "XDG_")


def pytest_configure(config: pytest.Config) -> None:
    """Try a part of what properties say, or all of it; let processes hear SIGINT behind nohup, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[ALL] = properties.choose(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: thousands of tests are made, and all of them stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run properties among the slow tests, too, and let the time-out of one end its process.

    So run the variants of a test beyond those that are marked as enough for every day. Hypothesis would try the example again; pytest-xdist names the test and goes on in another
    process.
    """
    counted: Counter[str] = Counter()
    for item in items:
        if (enough := item.get_closest_marker("variants")) is not None:
            name = item.nodeid.partition("[")[0]
            counted[name] += 1
            if counted[name] > enough.args[0]:
                item.add_marker("slow")
        if is_hypothesis_test(getattr(item, "obj", None)):
            if config.stash[ALL]:
                item.add_marker("slow")
            own = item.get_closest_marker("timeout")
            limit = own.args if own else ()
            item.add_marker(pytest.mark.timeout(*limit, method="thread"), append=False)


def is_foreign(name: str) -> bool:
    """True for a variable that could steer Crow, or the programs it runs, from outside."""
    upper = name.upper()
    return upper.startswith(FOREIGN) or upper.endswith(("_API_KEY", "_PROXY"))


@pytest.fixture(autouse=True)
def home(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """The home directory of this test, empty; gone with it, or thousands are left for the end.

    No server of the internet is trusted: to read all that vouch for one costs each client 30 ms.
    """
    path = tmp_path_factory.mktemp("home")
    for name in filter(is_foreign, list(os.environ)):
        monkeypatch.delenv(name)
    for name, folder in (
        ("HOME", ""),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
    ):
        monkeypatch.setenv(name, str(path / folder))
    monkeypatch.setenv("UV_CACHE_DIR", UV_CACHE)
    if not any(map(request.node.get_closest_marker, FAR)):
        monkeypatch.setenv("SSL_CERT_FILE", str(NOBODY))
        monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv(
        "CROW_SANDBOX", "off"
    )  # what machines have differs; tests of it switch it on
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def batteries() -> None:
    """An agent has the defaults that authors know, whichever way a test imports it."""
    from crow.defaults import install

    install()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with nothing in it."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder
