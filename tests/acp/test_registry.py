"""The entry for the registry of agents: its rules, and the check that its CI makes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from crow._version import __version__

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "registry/crow"
ENTRY = json.loads((FOLDER / "agent.json").read_text("utf-8"))
FIELDS = {"id", "name", "version", "description", "distribution"}
OPTIONAL = {"repository", "website", "authors", "license", "license_url"}


def test_the_entry_has_the_fields_that_the_registry_wants() -> None:
    assert set(ENTRY) >= FIELDS
    assert set(ENTRY) - FIELDS <= OPTIONAL
    assert ENTRY["id"] == FOLDER.name
    assert re.fullmatch(r"[a-z][a-z0-9-]*", ENTRY["id"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", ENTRY["version"])
    assert ENTRY["description"].strip()


def test_the_version_is_the_packages_and_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    package = ENTRY["distribution"]["uvx"]["package"]
    assert ENTRY["version"] == __version__
    assert package == f"{project['name']}=={__version__}"
    assert ENTRY["license"] == project["license"]


def test_uvx_finds_a_command_of_the_packages_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(ENTRY["distribution"]["uvx"]) == {"package", "args"}
    assert project["scripts"][project["name"]] == project["scripts"]["crow"]


@pytest.mark.rule("ready for the registry")
def test_the_icon_is_a_square_of_sixteen_in_the_colour_of_the_text() -> None:
    root = ET.fromstring((FOLDER / "icon.svg").read_text("utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("width"), root.get("height")) == ("16", "16")
    assert root.get("viewBox") == "0 0 16 16"
    parts = list(root.iter())
    colours = {part.get(name) for part in parts for name in ("fill", "stroke", "stop-color")}
    assert colours <= {None, "none", "currentColor"}
    assert "currentColor" in colours
    assert not any(part.get("style") for part in parts)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.rule("ready for the registry")
def test_the_wheel_runs_with_uvx_as_the_registry_runs_it(tmp_path: Path) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".uv/bin"))
    if uv is None:
        pytest.skip("uv is not installed: the wheel is not run with uvx")
    build = [uv, "build", "--wheel", "--out-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, capture_output=True, check=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    environment = [uv, "tool", "run", "--python", sys.executable, "--from", str(wheel)]
    fetched = subprocess.run(
        [*environment, "python", "-c", ""], capture_output=True, text=True, timeout=150, check=False
    )
    if fetched.returncode != 0:
        pytest.skip(f"what the wheel needs cannot be fetched: {fetched.stderr[-300:]}")
    package, *_ = ENTRY["distribution"]["uvx"]["package"].split("==")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    ended = subprocess.run(
        [*environment, package, *ENTRY["distribution"]["uvx"]["args"]],
        input=json.dumps(hello) + "\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (line,) = ended.stdout.splitlines()
    assert json.loads(line)["result"]["agentInfo"]["version"] == ENTRY["version"]
    assert ended.returncode == 0


@pytest.mark.parametrize("program", ["crow", "crow-acp"])
@pytest.mark.rule("any path, any PATH, a login that ends", "ready for the registry")
def test_the_registrys_check_finds_a_way_to_authenticate(tmp_path: Path, program: str) -> None:
    """An empty home, a short environment, and no `auth.terminal`: the first line is JSON."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": True, "writeTextFile": True},
                "terminal": True,
                "_meta": {"terminal_output": True, "terminal-auth": True},
            },
        },
    }
    ended = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *ENTRY["distribution"]["uvx"]["args"]],
        input=json.dumps(hello) + "\n",
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    (line,) = ended.stdout.splitlines()
    methods = json.loads(line)["result"]["authMethods"]
    assert {method.get("type", "agent") for method in methods} & {"agent", "terminal"}
    assert ended.returncode == 0
